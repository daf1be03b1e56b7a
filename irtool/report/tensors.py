"""What ``irtool diff`` tells of tensors: the first operator that introduces error, and the rest."""

from __future__ import annotations

import math

from irtool.compare.tensors.comparison import TensorComparison
from irtool.compare.tensors.join import Joined
from irtool.compare.tensors.model import Op
from irtool.compare.tensors.report import (
    BINS,
    Case,
    lone_operators,
    pairing_text,
    stretch_text,
    unseen_text,
    why_text,
)
from irtool.compare.tensors.verdict import Judged
from irtool.ir.units import part_text, plural
from irtool.report.model import Facts, Note, Table, number_column, text_column
from irtool.report.text import shortened

_USUAL = 15
_NAME = 90


def operator_text(op: Op) -> str:
    """An operator by the name of its dump, with the node that it is."""
    node = f" ({op.node.id} {op.node.op}, line {op.node.line})" if op.node is not None else ""
    return f"{op.name}{node}"


def joined_text(joined: Joined | None) -> str:
    """How many operators have a node, and what it took."""
    if joined is None:
        return "no graph to join with"
    text = f"{joined.found:,} of {joined.operators:,} operators ({joined.rate:.1%}) joined"
    text += f" with {joined.path}"
    if joined.replayed:
        text += f"; its names are stale ({joined.stale:,} would have misled), renumbering replayed"
    if joined.mismatched:
        text += f"; {joined.mismatched:,} names lead to another operator or shape: not joined"
    return text


def case_facts(case: Case) -> Facts:
    """The accused operator: where, how much, how the error looks."""
    judged = case.judged
    pairs = [
        ("left", operator_text(case.left)),
        ("right", operator_text(case.right)),
        ("why", why_text(judged)),
    ]
    stretches = (("stretch, left", case.left), ("stretch, right", case.right))
    pairs += [(name, text) for name, op in stretches if (text := stretch_text(op))]
    if case.missing:
        pairs.append(("no gradient", f"of {', '.join(case.missing)} on the other side"))
    source = case.left.source or judged.pair.left.source
    other = case.right.source or judged.pair.right.source
    if source:
        pairs.append(("source", source))
    if other and other != source:
        pairs.append(("source, right", other))
    if judged.maker_left is not None or judged.maker_right is not None:
        reader = f"{judged.pair.left.name} | {judged.pair.right.name}"
        pairs.append(("read by", reader))
    if case.histogram is not None:
        counts = case.histogram.counts
        total = sum(counts) or 1
        shown = ", ".join(
            f"{name}: {part_text(count, total)}"
            for name, count in zip(BINS, counts, strict=True)
            if count
        )
        pairs.append((f"ulps ({case.histogram.dtype})", shown))
        pairs.append(("bias", f"{case.histogram.bias:+.2f} (near 0: rounding; near 1: a shift)"))
    pairs += [("in the graphs", text) for text in case.edits]
    pairs += [("next", text) for text in case.advice]
    return Facts(pairs)


def neighbours_table(case: Case) -> Table | None:
    """The IR around the accused operator on both sides."""
    rows: list[list[str | int | None]] = []
    for side, found in (("left", case.left_neighbours), ("right", case.right_neighbours)):
        rows.extend([side, n.role, n.node, n.op, n.line, n.type] for n in found)
    if not rows:
        return None
    columns = (text_column("side"), text_column("role"), text_column("node"),
               text_column("operator"), number_column("line"), text_column("type"))  # fmt: skip
    return Table("In the graphs", columns, rows)


def verdicts_text(counts: dict[str, int]) -> str:
    """Operator pairs by verdict."""
    return ", ".join(f"{name} {count:,}" for name, count in sorted(counts.items()))


def facts(found: TensorComparison) -> list[tuple[str, str]]:
    """What was compared, and how far it goes."""
    left, right = found.left, found.right
    pairs = [
        ("left", _run_text(found.left)),
        ("right", _run_text(found.right)),
        ("join left", joined_text(found.joined_left)),
        ("join right", joined_text(found.joined_right)),
    ]
    total = len(left.ops), len(right.ops)
    have = total[0] - len(found.only_left), total[1] - len(found.only_right)
    if found.crossing is not None:
        pairs.append(("frameworks", pairing_text(found.crossing)))
        if text := unseen_text(found.crossing):
            pairs.append(("not seen", text))
    pairs.append(
        (
            "paired",
            f"{len(found.judged):,} operators: {part_text(have[0], total[0])} of the "
            f"left ones, {part_text(have[1], total[1])} of the right ones; "
            f"{len(found.measures):,} pairs of tensors ({_phases(found)})",
        )
    )
    for phase, (alike, count) in found.fingerprints.items():
        pairs.append((f"same values, {phase}", f"{alike:,} of {count:,} distinct tensors"))
    pairs.append(("verdicts", verdicts_text(found.counts)))
    for name, run in (("left", left), ("right", right)):
        if run.conflicts:
            text = f"{plural(run.conflicts, 'file')} hold another type than they declare"
            pairs.append((f"payload, {name}", text))
        if run.complaints:
            more = f" (and {len(run.complaints) - 1} more)" if len(run.complaints) > 1 else ""
            pairs.append((f"not read, {name}", run.complaints[0] + more))
    return pairs


def _phases(found: TensorComparison) -> str:
    counts = phase_counts(found)
    return ", ".join(f"{phase} {count:,}" for phase, count in counts.items())


def phase_counts(found: TensorComparison) -> dict[str, int]:
    """Paired tensors by phase."""
    counts: dict[str, int] = {}
    for item in found.judged:
        number = len(item.slots.inputs) + len(item.slots.outputs)
        counts[item.pair.left.phase] = counts.get(item.pair.left.phase, 0) + number
    return counts


def _run_text(run: object) -> str:
    from irtool.compare.tensors.model import TensorRun

    assert isinstance(run, TensorRun)
    framework = f", {run.framework}" if run.framework else ""
    return f"{run.path} ({run.level}{framework}, {len(run.ops):,} operators)"


def judged_table(title: str, items: list[Judged], limit: int | None) -> Table:
    """Operators with their errors."""
    shown = len(items) if limit == 0 else limit or _USUAL
    rows: list[list[str | int | None]] = [_row(item) for item in items[:shown]]
    columns = (
        text_column("operator"),
        text_column("verdict"),
        number_column("error in"),
        number_column("error out"),
        number_column("of budget"),
        text_column("detail"),
    )
    return Table(title, columns, rows, max(0, len(items) - shown), "operator")


def _row(item: Judged) -> list[str | int | None]:
    detail = item.entered or "; ".join(map(str, item.attributes[:2])) or item.why
    return [
        shortened(item.pair.left.name, _NAME),
        item.verdict,
        _figure(item.error_in),
        _figure(item.error_out),
        _figure(item.z),
        shortened(detail, 80),
    ]


def _figure(value: float) -> str:
    return "" if math.isnan(value) else f"{value:.2g}"


def lone_table(found: TensorComparison) -> Table | None:
    """Operators that only one side has, by type."""
    rows: list[list[str | int | None]] = []
    for side, ops in (("left", found.only_left), ("right", found.only_right)):
        rows.extend(
            [side, kind, count, shortened(name, _NAME)] for kind, count, name in lone_operators(ops)
        )
    if not rows:
        return None
    columns = (text_column("only"), text_column("operator"), number_column("number"),
               text_column("first"))  # fmt: skip
    return Table("Operators that one side has alone", columns, rows)


def noted(found: TensorComparison) -> list[Judged]:
    """What is worth listing beside the first: other faults, attributes, what cannot be told."""
    faults = [item for item in found.faults if item is not found.first]
    attributes = [item for item in found.judged if item.verdict == "attribute differs"]
    lower = [item for item in found.judged if item.verdict == "lower precision, explained"]
    untold = [item for item in found.judged if item.untold and item.verdict == "not comparable"]
    return [*faults, *attributes, *untold, *sorted(lower, key=lambda item: -item.error_out)]


def origins_note(found: TensorComparison) -> Note | None:
    """Where NaN or infinity comes from first."""
    origins = found.origins
    if not origins:
        return None
    first = origins[0]
    return Note(
        f"NaN or infinity first comes out of {first.pair.left.name} ({first.broken} side"
        f"{'s' if first.broken == 'both' else ''}), whose inputs are finite"
    )
