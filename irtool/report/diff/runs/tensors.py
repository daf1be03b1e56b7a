"""What ``irtool diff`` tells of tensors: the first operator that introduces error, and the rest."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence

from irtool.compare.tensors.case import BINS, Case, Histogram, lone_operators
from irtool.compare.tensors.comparison import TensorComparison
from irtool.compare.tensors.join import Joined
from irtool.compare.tensors.judging.verdict import Judged
from irtool.compare.tensors.model import Op, TensorRun
from irtool.ir.units import part_text, plural, share_text
from irtool.report.diff.nodes import SIDES
from irtool.report.diff.runs.sentences import pairing_text, stretch_text, unseen_text, why_text
from irtool.report.model import (
    Cell,
    Element,
    Facts,
    Link,
    Note,
    Picture,
    Table,
    number_column,
    rows_shown,
    text_column,
)
from irtool.report.page.charts import bars
from irtool.report.text import shortened

_USUAL = 15
_NAME = 90
_DETAIL = 80


# -- the first fault -----------------------------------------------------------------------------


def case_elements(case: Case, is_page: bool) -> Iterator[Element]:
    """The accused operator: where, how much, how the error looks, what stands around it.

    Args:
        case: the first operator that introduces error of its own.
        is_page: whether pictures are seen: then the histogram of errors is drawn.
    """
    yield Facts(list(_case_facts(case)), "The first operator that introduces error")
    if is_page and case.histogram is not None:
        yield _histogram_picture(case.histogram)
    neighbours = _neighbours_table(case)
    if neighbours.rows:
        yield neighbours


def _case_facts(case: Case) -> Iterator[tuple[str, Cell]]:
    judged = case.judged
    for side, op in zip(SIDES, (case.left, case.right), strict=True):
        yield side, operator_text(op) if case.only_on in (None, side) else "not in this run"
    yield "why", why_text(judged)
    for label, op in (("stretch, left", case.left), ("stretch, right", case.right)):
        if text := stretch_text(op):
            yield label, text
    if case.missing:
        yield "no gradient", f"of {', '.join(case.missing)} on the other side"
    source = case.left.source or judged.pair.left.source
    other = case.right.source or judged.pair.right.source
    if source:
        yield "source", source
    if other and other != source:
        yield "source, right", other
    if case.only_on is None and (judged.maker_left is not None or judged.maker_right is not None):
        yield "read by", f"{judged.pair.left.name} | {judged.pair.right.name}"
    if case.histogram is not None:
        yield from _histogram_facts(case.histogram)
    for text in case.edits:
        yield "in the graphs", text
    for text in case.advice:
        yield "next", text


def operator_text(op: Op) -> str:
    """An operator by the name of its dump, with the node that it is."""
    node = f" ({op.node.id} {op.node.op}, line {op.node.line})" if op.node is not None else ""
    return f"{op.name}{node}"


def _histogram_facts(histogram: Histogram) -> Iterator[tuple[str, Cell]]:
    total = sum(histogram.counts) or 1
    shown = ", ".join(
        f"{name}: {part_text(count, total)}"
        for name, count in zip(BINS, histogram.counts, strict=True)
        if count
    )
    yield f"ulps ({histogram.dtype})", shown
    yield "bias", f"{histogram.bias:+.2f} (near 1 or -1: all elements are shifted one way)"


def _histogram_picture(histogram: Histogram) -> Picture:
    rows = [(name, [count]) for name, count in zip(BINS, histogram.counts, strict=True)]
    return Picture(
        f"Elements by units in the last place ({histogram.dtype})",
        bars(rows, "number"),
        "How many elements of the output are how many units in the last place apart.",
    )


def _neighbours_table(case: Case) -> Table:
    """The nodes around the accused operator on both sides."""
    columns = (
        text_column("side"), text_column("role"), text_column("node"), text_column("operator"),
        number_column("line", rank=2), text_column("type", 1),
    )  # fmt: skip
    rows: list[list[Cell]] = [
        [side, item.role, Link(item.node, f"{side}:{item.line}:{item.node}"), item.op, item.line,
         item.type]
        for side, neighbours in zip(SIDES, (case.left_neighbours, case.right_neighbours),
                                    strict=True)
        for item in neighbours
    ]  # fmt: skip
    return Table("Around it in the graphs", columns, rows, noun="node")


# -- everything else -----------------------------------------------------------------------------


def tensor_elements(
    tensors: TensorComparison, title: str, limit: int | None, is_page: bool
) -> Iterator[Element]:
    """What was compared, and what is worth a look beside the first fault.

    Args:
        tensors: of the unit that is shown.
        title: of that unit.
        limit: rows of each table that text shows; None is the usual number, 0 is all.
        is_page: with names and reasons in full.
    """
    yield Facts(list(_facts(tensors)), title)
    if tensors.origins:
        yield _origin_note(tensors.origins[0])
    others = _others(tensors)
    if others:
        yield _judged_table(others, limit, is_page)
    unpaired = _unpaired_table(tensors, limit, is_page)
    if unpaired.rows:
        yield unpaired


def verdicts_text(counts: Mapping[str, int]) -> str:
    """Operator pairs by verdict.

    Args:
        counts: pairs of each verdict; written in the order of the names.
    """
    return ", ".join(f"{name} {count:,}" for name, count in sorted(counts.items()))


def phase_counts(tensors: TensorComparison) -> dict[str, int]:
    """Paired tensors by phase.

    Args:
        tensors: the comparison; inputs and outputs of each judged pair count, by the left one's
            phase.
    """
    counts: dict[str, int] = {}
    for item in tensors.judged:
        number = len(item.slots.inputs) + len(item.slots.outputs)
        counts[item.pair.left.phase] = counts.get(item.pair.left.phase, 0) + number
    return counts


def _facts(tensors: TensorComparison) -> Iterator[tuple[str, Cell]]:
    """What was compared, and how far it goes."""
    left, right = tensors.left, tensors.right
    yield "left", _run_text(left)
    yield "right", _run_text(right)
    yield "join left", _join_text(tensors.joined_left)
    yield "join right", _join_text(tensors.joined_right)
    if tensors.crossing is not None:
        yield "frameworks", pairing_text(tensors.crossing)
        if text := unseen_text(tensors.crossing):
            yield "not seen", text
    yield "paired", _paired_text(tensors)
    for phase, (alike, count) in tensors.fingerprints.items():
        yield f"same values, {phase}", f"{alike:,} of {count:,} distinct tensors"
    yield "verdicts", verdicts_text(tensors.counts)
    for side, run in zip(SIDES, (left, right), strict=True):
        if run.conflicts:
            yield f"payload, {side}", _conflicts_text(run.conflicts)
        if run.complaints:
            more = f" (and {len(run.complaints) - 1} more)" if len(run.complaints) > 1 else ""
            yield f"not read, {side}", run.complaints[0] + more


def _run_text(run: TensorRun) -> str:
    framework = f", {run.framework}" if run.framework else ""
    return f"{run.path} ({run.level}{framework}, {plural(len(run.ops), 'operator')})"


def _join_text(joined: Joined | None) -> str:
    """How many operators have a node, and what it took."""
    if joined is None:
        return "no graph to join with"
    text = (
        f"{joined.with_node:,} of {joined.operators:,} operators ({share_text(joined.rate)}) joined"
    )
    text += f" with {joined.path}"
    if joined.replayed:
        text += f"; its names are stale ({joined.stale:,} would have misled), renumbering replayed"
    if joined.mismatched:
        text += f"; {joined.mismatched:,} names lead to another operator or shape: not joined"
    return text


def _paired_text(tensors: TensorComparison) -> str:
    total = len(tensors.left.ops), len(tensors.right.ops)
    paired = total[0] - len(tensors.only_left), total[1] - len(tensors.only_right)
    phases = ", ".join(f"{phase} {count:,}" for phase, count in phase_counts(tensors).items())
    return (
        f"{plural(len(tensors.judged), 'operator')}: {part_text(paired[0], total[0])} of the left "
        f"ones, {part_text(paired[1], total[1])} of the right ones; "
        f"{plural(len(tensors.measures), 'pair')} of tensors ({phases})"
    )


def _conflicts_text(conflicts: int) -> str:
    verb = "holds another type than it declares" if conflicts == 1 else (
        "hold another type than they declare"
    )  # fmt: skip
    return f"{plural(conflicts, 'file')} {verb}"


def _origin_note(first: Judged) -> Note:
    """Where NaN or infinity comes from first."""
    side = "both sides" if first.broken == "both" else f"{first.broken} side"
    name = first.pair.left.name
    return Note(f"NaN or infinity first comes out of {name} ({side}), whose inputs are finite")


def _others(tensors: TensorComparison) -> list[Judged]:
    """What is worth listing beside the first: other faults, attributes, what cannot be told."""
    faults = [item for item in tensors.faults if item is not tensors.first]
    attributes = [item for item in tensors.judged if item.verdict == "attribute differs"]
    lower = [item for item in tensors.judged if item.verdict == "lower precision, explained"]
    untold = [item for item in tensors.judged if item.untold and item.verdict == "not comparable"]
    return [*faults, *attributes, *untold, *sorted(lower, key=lambda item: -item.error_out)]


def _judged_table(items: Sequence[Judged], limit: int | None, is_page: bool) -> Table:
    """Operators with their relative errors."""
    columns = (
        text_column("operator"), text_column("verdict"), number_column("error in", "error", 1),
        number_column("error out", "error"), number_column("times explained", "factor", 2),
        text_column("detail", 3),
    )  # fmt: skip
    rows: list[list[Cell]] = [
        [
            item.pair.left.name if is_page else shortened(item.pair.left.name, _NAME),
            item.verdict,
            _known(item.error_in),
            _known(item.error_out),
            _known(item.z),
            _detail(item) if is_page else shortened(_detail(item), _DETAIL),
        ]
        for item in items
    ]
    most = rows_shown(limit, _USUAL)
    return Table("Also worth a look", columns, rows, noun="operator", most=most)


def _detail(item: Judged) -> str:
    return item.entered or "; ".join(map(str, item.attributes[:2])) or item.why


def _known(value: float) -> float | None:
    return None if math.isnan(value) else value


def _unpaired_table(tensors: TensorComparison, limit: int | None, is_page: bool) -> Table:
    """Operators that only one side has, by type."""
    columns = (
        text_column("side"), text_column("operator"), number_column("number"),
        text_column("first", 1),
    )  # fmt: skip
    rows: list[list[Cell]] = [
        [side, kind, count, name if is_page else shortened(name, _NAME)]
        for side, ops in zip(SIDES, (tensors.only_left, tensors.only_right), strict=True)
        for kind, count, name in lone_operators(ops)
    ]
    most = rows_shown(limit, _USUAL)
    return Table("Operators on one side only", columns, rows, noun="type", most=most)
