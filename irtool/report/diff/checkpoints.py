"""``irtool diff`` of checkpoints: its answer for scripts, and its report for people."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from typing import Annotated

from irtool.compare.checkpoints.comparison import (
    CheckpointComparison,
    ComparedParameter,
    LoneParameter,
)
from irtool.compare.checkpoints.joining import Side
from irtool.compare.checkpoints.measuring import Verdict
from irtool.compare.checkpoints.naming import How
from irtool.ir.dataclass import dataclass
from irtool.ir.units import count_text, error_text, part_text, plural, tuple_text
from irtool.report.answer import AnswerObject, doc
from irtool.report.model import (
    Answer,
    Cell,
    Element,
    Facts,
    Report,
    Table,
    number_column,
    rows_shown,
    text_column,
)
from irtool.report.run_answer import RunAnswer, no_context

WORDS: dict[Verdict, str] = {
    "equal": "equal to the bit",
    "rounded": "rounded to another type",
    "scaled": "a multiple",
    "exchanged": "what another parameter is",
    "transposed": "transposed",
    "reordered": "the same values in another order",
    "differs": "other values",
    "shape": "another shape",
    "unreadable": "cannot be read",
}
"""What each verdict is called."""
_ALIKE = 1e-4
"""Relative spread up to which several factors are one."""


@dataclass(frozen=True, slots=True)
class CheckpointView:
    """A comparison, and how many rows of it text shows."""

    comparison: CheckpointComparison
    limit: int | None = None


# -- for scripts ---------------------------------------------------------------------------------


class CheckpointSide(AnswerObject, frozen=True, kw_only=True):
    """One of the two checkpoints that were compared."""

    path: str
    files: int
    ranks: Annotated[int, doc("that share the checkpoint; 1: it is whole")]
    parameters: int


class ParameterDifference(AnswerObject, frozen=True, kw_only=True):
    """A parameter that both checkpoints have."""

    left: Annotated[str, doc("its name")]
    right: str
    paired_by: Annotated[How, doc("what says that they are one")]
    left_type: str
    right_type: str
    left_shape: list[int]
    right_shape: list[int]
    verdict: Verdict
    unequal: Annotated[int, doc("elements whose bits (of two types: numbers) differ")]
    elements: int
    largest: Annotated[float | str, doc("largest absolute difference of finite elements")]
    relative: Annotated[float | str, doc("L2 norm of the difference over that of the left one")]
    factor: Annotated[float | str, doc("⟨l, r⟩ / ⟨l, l⟩")]
    rest: Annotated[float, doc("relative difference behind that factor")]
    broken_left: Annotated[int, doc("NaN and infinite elements")]
    broken_right: int
    note: str


class LoneCheckpointParameter(AnswerObject, frozen=True, kw_only=True):
    """A parameter that one checkpoint has alone."""

    name: str
    type: str
    shape: list[int]


class ReplicaDifference(AnswerObject, frozen=True, kw_only=True):
    """A rank that should hold what another holds, and does not."""

    path: str
    name: str
    rank: int
    as_rank: Annotated[int, doc("whose slice it should hold")]


class NotJoined(AnswerObject, frozen=True, kw_only=True):
    """A parameter whose slices could not be put together."""

    path: str
    name: str
    why: str


class CheckpointsAnswer(
    RunAnswer, frozen=True, kw_only=True, tag_field="schema", tag="irtool.diff.checkpoints/1"
):
    """Which parameters of two checkpoints differ, and how."""

    identical: Annotated[bool, doc("all parameters are the same, and both have all of them")]
    left: CheckpointSide
    right: CheckpointSide
    parameters: Annotated[list[ParameterDifference], doc("that both have")]
    only_left: list[LoneCheckpointParameter]
    only_right: list[LoneCheckpointParameter]
    replicas: Annotated[list[ReplicaDifference], doc("that differ within a side")]
    not_joined: list[NotJoined]


def checkpoints_answer(view: CheckpointView) -> CheckpointsAnswer:
    """The answer of ``irtool diff`` of two checkpoints, for scripts.

    Args:
        view: the comparison.
    """
    comparison = view.comparison
    return CheckpointsAnswer(
        **no_context(),
        identical=comparison.is_equal,
        left=_side(comparison.left),
        right=_side(comparison.right),
        parameters=[_parameter(one) for one in comparison.parameters],
        only_left=[_lone(one) for one in comparison.only_left],
        only_right=[_lone(one) for one in comparison.only_right],
        replicas=[
            ReplicaDifference(path=path, name=one.name, rank=one.rank, as_rank=one.as_rank)
            for path, one in comparison.odd
        ],
        not_joined=[
            NotJoined(path=path, name=name, why=why) for path, name, why in comparison.apart
        ],
    )


def _side(side: Side) -> CheckpointSide:
    return CheckpointSide(
        path=side.path, files=side.files, ranks=side.ranks, parameters=len(side.parameters)
    )


def _lone(one: LoneParameter) -> LoneCheckpointParameter:
    return LoneCheckpointParameter(name=one.name, type=one.dtype, shape=list(one.shape))


def _parameter(one: ComparedParameter) -> ParameterDifference:
    difference = one.difference
    return ParameterDifference(
        left=one.pair.left,
        right=one.pair.right,
        paired_by=one.pair.how,
        left_type=one.dtypes[0],
        right_type=one.dtypes[1],
        left_shape=list(one.shapes[0]),
        right_shape=list(one.shapes[1]),
        verdict=difference.verdict,
        unequal=difference.unequal,
        elements=one.elements,
        largest=difference.largest,
        relative=difference.relative,
        factor=difference.factor,
        rest=difference.rest,
        broken_left=difference.broken_left,
        broken_right=difference.broken_right,
        note=difference.note,
    )


# -- for people ----------------------------------------------------------------------------------


def checkpoints_report(view: CheckpointView) -> Report:
    """The answer, what was compared, and the parameters that differ, the worst first.

    Args:
        view: the comparison, and how many rows of it text shows.
    """
    comparison = view.comparison
    elements: list[Element] = [Facts(_facts(comparison))]
    most = rows_shown(view.limit)
    differing = sorted(comparison.differing, key=_badness)
    if differing:
        elements.append(_differences(differing, most))
    for side, alone in (("left", comparison.only_left), ("right", comparison.only_right)):
        if alone:
            elements.append(_alone_table(side, alone, most))
    if comparison.odd:
        columns = (text_column("checkpoint"), text_column("parameter"), text_column("replica"))
        rows: list[list[Cell]] = [
            [path, one.name, f"rank {one.rank} is not as rank {one.as_rank}"]
            for path, one in comparison.odd
        ]
        elements.append(Table("Replicas that differ", columns, rows, most=most))
    if comparison.apart:
        columns = (text_column("checkpoint"), text_column("parameter"), text_column("why"))
        elements.append(
            Table("Not put together", columns, [list(row) for row in comparison.apart], most=most)
        )
    return Report(
        f"diff: {comparison.left.path} ↔ {comparison.right.path}",
        Answer(
            answer_text(comparison), "good" if comparison.is_equal else "bad", _notes(comparison)
        ),
        elements,
    )


def answer_text(comparison: CheckpointComparison) -> str:
    """Whether two checkpoints are equal, in one line, else the worst parameter.

    Args:
        comparison: of two checkpoints.
    """
    unreadable = comparison.unreadable
    differing = [one for one in comparison.differing if one not in unreadable]
    if not differing:
        if unreadable:
            return (
                f"{part_text(len(unreadable), len(comparison.parameters))} parameters cannot be "
                f"read, first of all {unreadable[0].pair.left}: {_what(unreadable[0])}"
            )
        if comparison.is_equal:
            rounded = sum(one.difference.verdict == "rounded" for one in comparison.parameters)
            more = f", {rounded} of them but for rounding to another type" if rounded else ""
            return f"the same {plural(len(comparison.parameters), 'parameter')}{more}"
        if not comparison.parameters:
            return "no parameter of one checkpoint is in the other"
        same = f"what both have is the same ({plural(len(comparison.parameters), 'parameter')})"
        if not comparison.odd:
            return same
        _, odd = comparison.odd[0]
        more = f" (and {len(comparison.odd) - 1} more)" if len(comparison.odd) > 1 else ""
        return (
            f"rank {odd.rank} does not hold the slice of {odd.name} that rank {odd.as_rank} "
            f"holds{more}; {same} in the slices that were taken"
        )
    worst = min(differing, key=_badness)
    return (
        f"{part_text(len(differing), len(comparison.parameters))} parameters differ, first of all "
        f"{worst.pair.left}: {_what(worst)}"
    )


def _what(one: ComparedParameter) -> str:
    difference = one.difference
    match difference.verdict:
        case "exchanged":
            return f"what {difference.note} is on the left"
        case "scaled":
            return f"{difference.factor:.6g} times the left one"
        case "differs":
            broken = difference.broken_left, difference.broken_right
            if broken[0] != broken[1]:
                side = "right" if broken[1] > broken[0] else "left"
                return f"{plural(max(broken), 'element')} not finite on the {side}"
            many = difference.unequal == one.elements
            where = (
                f"all {plural(one.elements, 'element')}"
                if many
                else f"{part_text(difference.unequal, one.elements)} elements"
            )
            if one.elements == 1:
                where = "its only element"
            if math.isinf(difference.relative):
                return f"zero on the left, and not on the right; in {where}"
            return f"{error_text(difference.relative)} relative, in {where}"
        case "shape":
            return f"{tuple_text(one.shapes[0])} and {tuple_text(one.shapes[1])}"
        case "unreadable":
            return difference.note
        case "reordered" if difference.note:
            return difference.note
        case _:
            return WORDS[difference.verdict]


def _badness(one: ComparedParameter) -> tuple[int, float]:
    """Sorts the worst first: broken, unreadable and of another shape, then by how far apart."""
    difference = one.difference
    broken = difference.broken_left != difference.broken_right
    grave = broken or difference.verdict in ("unreadable", "shape")
    distance = difference.relative if math.isfinite(difference.relative) else 1e300
    return (0 if grave else 1, -distance)


def _facts(comparison: CheckpointComparison) -> list[tuple[str, Cell]]:
    facts: list[tuple[str, Cell]] = [
        (name, _side_text(side))
        for name, side in (("left", comparison.left), ("right", comparison.right))
    ]
    counts = Counter(one.difference.verdict for one in comparison.parameters)
    verdicts = [
        f"{count_text(counts[verdict])} {WORDS[verdict]}" for verdict in WORDS if counts[verdict]
    ]
    facts.append(("parameters", ", ".join(verdicts) or "none in common"))
    paired = Counter(one.pair.how for one in comparison.parameters)
    others = [f"{paired[how]} by {how}" for how in paired if how != "name"]
    if others:
        facts.append(("paired otherwise", ", ".join(others)))
    return facts


def _side_text(side: Side) -> str:
    size = f"{plural(len(side.parameters), 'parameter')} in {plural(side.files, 'file')}"
    return f"{side.path} ({size}{f' of {side.ranks} ranks' if side.ranks > 1 else ''})"


def _notes(comparison: CheckpointComparison) -> list[str]:
    """What several differences have in common."""
    notes: list[str] = []
    factors = [
        one.difference.factor for one in comparison.differing if one.difference.verdict == "scaled"
    ]
    if len(factors) > 1 and max(factors) - min(factors) <= _ALIKE * abs(factors[0]):
        notes.append(f"{len(factors)} parameters are {factors[0]:.6g} times the left ones")
    unreadable = len(comparison.unreadable)
    if 0 < unreadable < len(comparison.differing):
        notes.append(f"{plural(unreadable, 'parameter')} cannot be read")
    alone = len(comparison.only_left), len(comparison.only_right)
    if any(alone):
        texts = [
            f"{plural(count, 'parameter')} only on the {side}"
            for count, side in zip(alone, ("left", "right"), strict=True)
            if count
        ]
        notes.append(", ".join(texts) + ("; --map FILE pairs names" if all(alone) else ""))
    reshaped = any(one.difference.verdict == "shape" for one in comparison.differing)
    if reshaped and comparison.left.ranks != comparison.right.ranks:
        notes.append(
            "ranks may hold slices: --left-strategy and --right-strategy name the files that say "
            "how they lie"
        )
    elif comparison.apart:
        hint = "--left-strategy and --right-strategy name the files that say how they lie"
        notes.append(
            f"{plural(len(comparison.apart), 'parameter')} could not be put together: {hint}"
        )
    return notes


def _differences(differing: Sequence[ComparedParameter], most: int | None) -> Table:
    columns = (
        text_column("parameter"),
        text_column("what"),
        number_column("relative", "error"),
        number_column("largest", "error", rank=1),
        number_column("factor", rank=1),
        number_column("elements", rank=2),
    )
    rows: list[list[Cell]] = []
    for one in differing:
        difference = one.difference
        measured = difference.verdict not in ("shape", "unreadable", "transposed")
        name = one.pair.left
        if one.pair.right != name:
            name += f" ↔ {one.pair.right}"
        figures: list[Cell] = [None, None, None]
        if measured:
            factor = difference.factor if math.isfinite(difference.factor) else None
            figures = [difference.relative, difference.largest, factor]
        rows.append([name, _what(one), *figures, one.elements])
    return Table("Parameters that differ", columns, rows, noun="parameter", most=most)


def _alone_table(side: str, alone: Sequence[LoneParameter], most: int | None) -> Table:
    columns = (text_column("parameter"), text_column("type"), text_column("shape"))
    rows: list[list[Cell]] = [[one.name, one.dtype, tuple_text(one.shape)] for one in alone]
    return Table(f"Only on the {side}", columns, rows, noun="parameter", most=most)
