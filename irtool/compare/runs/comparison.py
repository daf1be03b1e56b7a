"""Two runs: their graphs, tensors, losses and hyperparameters, whatever of it there is."""

from __future__ import annotations

import math
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field
from typing import TYPE_CHECKING

from irtool.compare.losses.comparison import (
    FIRST_STEP,
    MULTIPLE_SPREAD,
    LossComparison,
    NothingInCommon,
    compare_losses,
)
from irtool.compare.runs.hyperparameters import Evidence, Row, hyperparameters
from irtool.compare.runs.loss_parts import ranks_of_part
from irtool.compare.runs.sides import RunSide
from irtool.compare.runs.units import (
    Settings,
    UnitResult,
    compare_units,
    graph_of,
    read_unit,
    shown_unit,
    unit_name,
)
from irtool.compare.tensors.comparison import TensorComparison
from irtool.compare.tensors.dtypes import coarsest
from irtool.compare.tensors.facts import (
    KINDS,
    ComparedBy,
    Differing,
    Fact,
    factor_text,
    least_telling,
)
from irtool.compare.tensors.judging.verdict import Judged
from irtool.compare.tensors.model import NoTensors, TensorRun
from irtool.ir.dataclass import dataclass
from irtool.ir.display import Shown

if TYPE_CHECKING:
    from irtool.compare.graph_diff import GraphDiff
    from irtool.compare.runs.suspects import Suspect
    from irtool.compare.tensors.case import Case


_EQUAL: Mapping[ComparedBy, str] = {
    "values": "equal", "checksums": "equal checksums",
    "figures": "equal extremes, means and norms", "extremes": "equal extremes",
}  # fmt: skip
"""What is said of tensors between which no difference shows, by what was compared of them."""
_WORTH_A_LOOK = ("attribute differs", "lower precision, explained")
"""Verdicts that accuse nobody, and are something to see."""


@dataclass(slots=True)
class RunComparison(Shown):
    """What came of comparing two runs.

    Attributes:
        left, right: the sides.
        graphs: the difference of the graphs; None where a side has none.
        units: the tensors, by step and rank; empty where there are none on both sides.
        losses: the loss curves; None where a side has none.
        loss_parts: ranks whose part of the batch the curve of a side is of, where it is one.
        hyperparameters: side by side.
        suspects: ranked, only where there are graphs (or one) and no tensors.
        missing: what could not be compared, and why.
    """

    left: RunSide
    right: RunSide
    graphs: GraphDiff | None = None
    units: list[UnitResult] = field(default_factory=list[UnitResult])
    losses: LossComparison | None = None
    loss_parts: dict[str, tuple[int, ...]] = field(default_factory=dict[str, tuple[int, ...]])
    hyperparameters: list[Row] = field(default_factory=list[Row])
    suspects: list[Suspect] = field(default_factory=list["Suspect"])
    missing: list[str] = field(default_factory=list[str])

    @property
    def shown(self) -> UnitResult | None:
        """The unit with the first fault, else the first one."""
        return shown_unit(self.units)

    @property
    def tensors(self) -> TensorComparison | None:
        """The tensors of the unit that is shown; None without any."""
        return self.shown.comparison if self.shown is not None else None

    @property
    def first(self) -> Judged | None:
        """The first operator of the first step that introduces error."""
        shown = self.shown
        return shown.first if shown is not None else None

    @property
    def decisive_steps(self) -> tuple[int, ...]:
        """Steps, counted from 0, whose tensors would decide: where the losses part, and before."""
        losses = self.losses
        if losses is None or losses.verdict != "drift" or losses.change_step is None:
            return (0,)
        place = losses.change_step - losses.steps[0]
        return (place - 1, place) if place > 0 else (0,)

    @property
    def wants_tensors(self) -> bool:
        """Whether there is something to look for, and no tensors that decide."""
        return not self.units and (bool(self.suspects) or self.is_suspicious)

    @property
    def are_losses_summed(self) -> bool:
        """Whether one side's losses are sums over its micro-batches, and the other's are not.

        A pipeline reports what its micro-batches add up to, so its losses are as many times those
        of the same training without micro-batches.
        """
        layout = self.shown.layout if self.shown is not None else None
        if layout is None or self.losses is None or self.losses.multiple is None:
            return False
        multiple = self.losses.multiple
        ours, theirs = layout.micros
        return ours != theirs and math.isclose(multiple, theirs / ours, rel_tol=MULTIPLE_SPREAD)

    @property
    def told_differently(self) -> list[Row]:
        """The hyperparameters that both runs tell, and tell differently."""
        return [row for row in self.hyperparameters if row.same is False]

    @property
    def is_identical(self) -> bool:
        """Whether everything that was compared is the same, and something was."""
        parts: list[bool] = []
        if self.graphs is not None:
            parts.append(self.graphs.is_identical)
        parts += [unit.equal for unit in self.units]
        if self.losses is not None:
            parts.append(self.losses.verdict == "identical")
        return bool(parts) and all(parts) and not self.told_differently

    @property
    def are_losses_apart(self) -> bool:
        """Whether there is something to see in the losses that no way of adding up explains."""
        is_explained = self.are_losses_summed or bool(self.loss_parts)
        return self.losses is not None and self.losses.is_suspicious and not is_explained

    @property
    def is_suspicious(self) -> bool:
        """Whether there is something to see: an error introduced, a drift, other settings.

        Tensors that only carry error, and graphs that only differ in it, are not.
        """
        if self.first is not None or self.told_differently:
            return True
        if self.are_losses_apart:
            return True
        if any(unit.counts.get(word) for unit in self.units for word in _WORTH_A_LOOK):
            return True
        if any(unit.lowered for unit in self.units):
            return True
        return not self.units and self.graphs is not None and not self.graphs.is_identical


def compare_runs(left: RunSide, right: RunSide, settings: Settings) -> RunComparison:
    """Compare everything that two runs have in common.

    Args:
        left: the run that is trusted more.
        right: the other.
        settings: how tensors are compared, and of which ranks and steps.

    Returns:
        What came of it; what could not be compared is in its ``missing``.
    """
    comparison = RunComparison(left, right)
    comparison.units = compare_units(left, right, settings)
    _add_graphs(comparison)
    _add_losses(comparison)
    ours, theirs = (
        Evidence(
            side.dump, _first_tensors(comparison, which), side.losses, side.context,
            _joined(comparison, which),
        )
        for which, side in enumerate((left, right))
    )  # fmt: skip
    comparison.hyperparameters = hyperparameters(ours, theirs, _told_by_tensors(comparison))
    if not comparison.units:
        _add_suspects(comparison)
    _add_missing(comparison)
    return comparison


def first_case(comparison: RunComparison) -> Case | None:
    """The first operator that introduces error, looked at closely.

    Args:
        comparison: of two runs.

    Returns:
        None where no operator does, or no tensors were compared.
    """
    from irtool.compare.tensors.case import case_of

    tensors, first = comparison.tensors, comparison.first
    return case_of(tensors, first) if tensors is not None and first is not None else None


def _add_suspects(comparison: RunComparison) -> None:
    """What the graphs let one suspect, where no tensor can decide."""
    if comparison.graphs is not None:
        from irtool.compare.runs.suspects import suspects

        comparison.suspects = suspects(comparison.graphs)
        return
    dump = comparison.left.dump or comparison.right.dump
    if dump is not None:
        from irtool.compare.runs.suspects import lone_suspects

        comparison.suspects = lone_suspects(dump)


def _first_tensors(comparison: RunComparison, which: int) -> TensorRun | None:
    shown = next(
        (unit.comparison for unit in comparison.units if unit.comparison is not None), None
    )
    if shown is not None:
        return (shown.left, shown.right)[which]
    side = (comparison.left, comparison.right)[which]
    for unit in side.units.values():
        try:
            return read_unit(unit)
        except NoTensors:
            continue
    return None


def _joined(comparison: RunComparison, which: int) -> frozenset[int] | None:
    """Places of tensors of the first tensors that a layout file's ranks were put together to."""
    from irtool.compare.layouts.whole_runs import AcrossRanks

    shown = next((unit for unit in comparison.units if unit.comparison is not None), None)
    layout = None if shown is None else shown.layout
    return layout.joined(which) if isinstance(layout, AcrossRanks) else None


def _add_graphs(comparison: RunComparison) -> None:
    shown = next(
        (unit.comparison for unit in comparison.units if unit.comparison is not None), None
    )
    if shown is not None:
        for side, run in ((comparison.left, shown.left), (comparison.right, shown.right)):
            side.dump = side.dump or graph_of(run)
    if comparison.left.dump is not None and comparison.right.dump is not None:
        from irtool.compare.graph_diff import diff_graphs

        comparison.graphs = diff_graphs(comparison.left.dump, comparison.right.dump)


def _add_losses(comparison: RunComparison) -> None:
    if comparison.left.losses is None or comparison.right.losses is None:
        return
    try:
        limit = _first_limit(comparison.tensors)
        comparison.losses = compare_losses(
            comparison.left.losses, comparison.right.losses, first_limit=limit
        )
    except NothingInCommon as error:
        comparison.missing.append(f"losses: {error}")
        return
    layout = comparison.shown.layout if comparison.shown is not None else None
    if layout is None or comparison.losses.verdict != "different from the first step":
        return
    curves = comparison.left.losses, comparison.right.losses
    for which, side in enumerate(("left", "right")):
        ranks = ranks_of_part(curves[which], curves[1 - which], layout.ranks[which])
        if ranks:
            comparison.loss_parts[side] = ranks


def _first_limit(tensors: TensorComparison | None) -> float:
    """How far first losses may be apart: what rounding to the type that both compute in makes.

    A loss is computed of numbers that the forward pass has rounded to it.
    """
    if tensors is None:
        return FIRST_STEP
    units = [
        coarsest(
            [run.columns.dtypes[p] for op in run.ops if op.phase == "forward" for p in op.outputs]
        )
        for run in (tensors.left, tensors.right)
    ]
    return max(FIRST_STEP, min(units))


def _add_missing(comparison: RunComparison) -> None:
    sides = (comparison.left, comparison.right)
    names = [os.path.basename(side.path.rstrip("/")) or side.path for side in sides]
    if names[0] == names[1]:
        names = [side.path for side in sides]
    for what, have in (
        ("graphs", [side.dump is not None for side in sides]),
        ("tensors", [bool(side.units) for side in sides]),
        ("losses", [side.losses is not None for side in sides]),
    ):
        lacking = [name for name, has in zip(names, have, strict=True) if not has]
        if len(lacking) == len(sides):
            comparison.missing.append(f"{what}: neither run has any")
        elif lacking:
            comparison.missing.append(f"{what}: {lacking[0]} has none")
    if all(side.units for side in sides) and not comparison.units:
        texts = [", ".join(unit_name(key) for key in list(side.units)[:4]) for side in sides]
        comparison.missing.append(f"tensors: no step of a rank is in both ({texts[0]}; {texts[1]})")


def _told_by_tensors(comparison: RunComparison) -> list[Row]:
    """Hyperparameters that show only where tensors are held against each other."""
    rows: list[Row] = []
    rows += _facts(comparison.units)
    shown = comparison.shown
    if shown is not None and shown.undivided != (1, 1):
        ours, theirs = shown.undivided
        where = "gradients of micro-batches are added up, and not divided by their number"
        rows.append(Row("gradient scale", f"{ours:g}", f"{theirs:g}", False, where))
    if shown is not None and shown.comparison is not None:
        scale = shown.comparison.gradient_scale
        if scale != 1.0:
            where = "all gradients are that many times those of the other side"
            sides = ("1", f"{scale:g}") if scale > 1 else (f"{1 / scale:g}", "1")
            rows.append(Row("loss scale (right over left)", *sides, False, where))
    return rows


def _facts(units: Sequence[UnitResult]) -> Iterator[Row]:
    """What the runs were given: of all ranks of the first step, and what differs in later ones."""
    for kind in KINDS:
        facts = [fact for unit in units for fact in unit.facts if fact.kind == kind]
        if not facts:
            continue
        total = max(fact.compared for fact in facts)
        differing = {item.name: item for fact in facts for item in fact.differing}
        rounded = {name for fact in facts for name in fact.rounded}
        if differing:
            text = f"{len(differing)} of {max(total, len(differing))} differ"
            # Random by intention: a fact that accuses nobody; so are states that training moved.
            same = None if kind in ("random numbers", "optimizer states") else False
            yield Row(kind, text, text, same, _differing_text(facts, list(differing.values())))
        elif rounded:
            text = f"{len(rounded)} of {total} rounded on one side, the others equal"
            yield Row(kind, text, text, None, min(rounded))
        else:
            yield _equal_row(kind, facts, total)


_NAMED = 3
"""Tensors that differ, or have no counterpart, of which the names are told."""


def _differing_text(facts: Sequence[Fact], differing: Sequence[Differing]) -> str:
    """Which tensors differ, and how: the worst one first."""
    factors = {factor_text(fact.factor) for fact in facts}
    if len(factors) == 1 and "nan" not in factors:
        return f"all that differ are {factors.pop()} times the left ones"
    ranked = sorted(differing, key=lambda item: -item.error)
    if not any(item.how for item in ranked):
        return f"most at {ranked[0].text}"
    more = f"; and {len(ranked) - _NAMED} more" if len(ranked) > _NAMED else ""
    return "; ".join(item.text for item in ranked[:_NAMED]) + more


def _equal_row(kind: str, facts: Sequence[Fact], total: int) -> Row:
    """What is said of one kind of given tensors between which no difference shows."""
    by = least_telling(fact.compared_by for fact in facts)
    # Other whole numbers between the same extremes are the rule, not the exception.
    same = None if by == "extremes" else True
    where = "values between them are not in the dump" if by == "extremes" else ""
    compared = f"{total} compared"
    reordered = {name for fact in facts for name in fact.reordered}
    if reordered:
        compared += f", {len(reordered)} in another layout"
        where = min(reordered)
    others = dict.fromkeys(name for fact in facts for name in (*fact.lone, *fact.unsure))
    if others:
        compared += ", others not"
        names = list(others)
        more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
        lone = any(fact.lone for fact in facts)
        one = len(names) == 1
        why = f"differ{'s' * one}, and may have been computed"
        if lone:
            why = f"{'has' if one else 'have'} no counterpart"
        same, where = None, f"{', '.join(names[:_NAMED])}{more} {why}"
    text = f"{_EQUAL[by]} ({compared})"
    return Row(kind, text, text, same, where)
