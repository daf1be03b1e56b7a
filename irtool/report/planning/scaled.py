"""What ``irtool plan --scale`` shows: which sizes play which role, and what they become."""

from __future__ import annotations

from irtool.ir.units import bytes_text, plural
from irtool.planning.scaling.candidates import Candidates
from irtool.planning.scaling.roles import MEANINGS
from irtool.planning.scaling.scaled import Scaled
from irtool.report.model import Cell, Table, number_column, text_column


def roles_table(network: Scaled) -> Table:
    """One row a role of a size: before, after, and what it is.

    Args:
        network: its sizes by role, before and after, and those that could not be told apart.
    """
    rows: list[list[Cell]] = []
    for name, (before, after) in network.sizes.items():
        rows.append([name, _text(before), _text(after), MEANINGS[name]])
    for name, sizes in network.roles.open.items():
        listed = " or ".join(map(str, sizes))
        rows.append([name, listed, None, f"{MEANINGS[name]}: not told apart"])
    columns = [
        text_column("size"), text_column("in the dump"), text_column("planned"),
        text_column("what it is", 2),
    ]  # fmt: skip
    return Table("Sizes (found from what operators do with them)", columns, rows)


def _text(size: object) -> str | None:
    return None if size is None else str(size)


def candidates_table(candidates: Candidates) -> Table:
    """One row a candidate, the fastest first.

    Args:
        candidates: ranked; the one that is planned below is marked.
    """
    rows: list[list[Cell]] = [
        [
            f"{number} *" if number - 1 == candidates.chosen else str(number),
            candidate.devices,
            candidate.stages,
            candidate.micro_batches,
            "auto" if candidate.optimizer_parallel else "off",
            "auto" if candidate.recompute else "none",
            candidate.seconds,
            candidate.memory_bytes,
            candidate.lower_bound,
            "" if candidate.fits else "too full",
        ]
        for number, candidate in enumerate(candidates.ranked, 1)
    ]
    columns = [
        text_column("candidate"), number_column("devices"), number_column("stages"),
        number_column("micro-batches"), text_column("optimizer parallel"), text_column("recompute"),
        number_column("a step", "seconds"), number_column("of a device", "bytes"),
        number_column("lower bound", "seconds", 1), text_column("", 1),
    ]  # fmt: skip
    return Table(f"Candidates ({bytes_text(candidates.limit)} a device; * is planned below)",
                 columns, rows)  # fmt: skip


def candidates_fact(candidates: Candidates) -> str:
    """How many candidates were planned, and how many passed over.

    Args:
        candidates: with the numbers of those planned and passed over.
    """
    text = f"{plural(candidates.tried, 'candidate')} planned together"
    if candidates.passed_over:
        text += (
            f", {candidates.passed_over} passed over that compute or wait longer than these take"
        )
    return text
