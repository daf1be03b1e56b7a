"""Two runs: their graphs, tensors, losses and hyperparameters, whatever of it there is."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from irtool.compare.graph_diff import GraphDiff, diff_graphs
from irtool.compare.hyperparameters import Evidence, Row, hyperparameters
from irtool.compare.losses.comparison import LossComparison, NothingInCommon, compare_losses
from irtool.compare.losses.series import LossRun
from irtool.compare.suspects import Suspect, suspects
from irtool.compare.tensors.comparison import TensorComparison, compare_tensors
from irtool.compare.tensors.digest import read_digest
from irtool.compare.tensors.fingerprints import partners
from irtool.compare.tensors.join import Joined, choose, full_names, graph_files, join
from irtool.compare.tensors.measure import Scheduler
from irtool.compare.tensors.model import NoTensors, TensorRun
from irtool.compare.tensors.open import Unit, is_digest, plain_units, units_of
from irtool.compare.tensors.verdict import Judged
from irtool.ir.dump import Dump
from irtool.ir.node import Node
from irtool.syntax.load import load
from irtool.syntax.run import Run
from irtool.syntax.source import DumpError, read_content

_LAYOUT = ("dst_type", "left_format", "right_format", "is_dynamic_len", "reduce_scatter_flag")
_MOST_GRAPH_FILES = 60
_TELLING_KINDS = ("attribute changed", "constant changed")

Key = tuple[int, int, int, str]


@dataclass(slots=True)
class RunSide:
    """One side of a comparison; what is not there is None or empty."""

    path: str
    run: Run | None = None
    units: dict[Key, Unit | TensorRun] = field(default_factory=dict[Key, "Unit | TensorRun"])
    dump: Dump | None = None
    losses: LossRun | None = None
    context: Mapping[str, object] = field(default_factory=dict[str, object])
    complaints: list[str] = field(default_factory=list[str])


@dataclass(slots=True)
class UnitResult:
    """One step of one rank.

    ``comparison`` is kept only for the unit that the report shows; the counts of all.
    """

    name: str
    counts: Mapping[str, int]
    pairs: int
    only_left: int
    only_right: int
    first: Judged | None
    equal: bool
    joined: tuple[Joined | None, Joined | None]
    comparison: TensorComparison | None = None


@dataclass(slots=True)
class RunComparison:
    """What came of comparing two runs.

    Attributes:
        left, right: the sides.
        graphs: the difference of the graphs; None where a side has none.
        units: the tensors, by step and rank; empty where there are none on both sides.
        losses: the loss curves; None where a side has none.
        hyperparameters: side by side.
        suspects: ranked, only where there are graphs and no tensors.
        missing: what could not be compared, and why.
    """

    left: RunSide
    right: RunSide
    graphs: GraphDiff | None = None
    units: list[UnitResult] = field(default_factory=list[UnitResult])
    losses: LossComparison | None = None
    hyperparameters: list[Row] = field(default_factory=list[Row])
    suspects: list[Suspect] = field(default_factory=list[Suspect])
    missing: list[str] = field(default_factory=list[str])

    @property
    def shown(self) -> UnitResult | None:
        """The unit with the first fault, else the first one."""
        faulty = next((unit for unit in self.units if unit.first is not None), None)
        return faulty or (self.units[0] if self.units else None)

    @property
    def first(self) -> Judged | None:
        """The first operator of the first step that introduces error."""
        shown = self.shown
        return shown.first if shown is not None else None

    @property
    def told_differently(self) -> list[Row]:
        """Hyperparameters that differ."""
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
    def is_suspicious(self) -> bool:
        """Whether there is something to see: an error introduced, a drift, other settings.

        Tensors that only carry error, and graphs that only differ in it, are not.
        """
        if self.first is not None or self.told_differently:
            return True
        if self.losses is not None and self.losses.is_suspicious:
            return True
        if any(unit.counts.get("attribute differs") for unit in self.units):
            return True
        return not self.units and self.graphs is not None and not self.graphs.is_identical


# -- sides ---------------------------------------------------------------------------------------


def side_of_run(run: Run, losses: LossRun | None) -> RunSide:
    """A run folder."""
    side = RunSide(run.path, run, losses=losses, context=run.context or {})
    for unit in units_of(run):
        side.units[unit.key] = unit
    if not side.units:
        for unit in plain_units(run.path):
            side.units[unit.key] = unit
    return side


def side_of_file(path: str) -> RunSide:
    """A digest, a file of tensors.

    Raises:
        NoTensors: it is damaged, or neither.
    """
    side = RunSide(path)
    if is_digest(path):
        runs, facts = read_digest(path)
        for item in runs:
            step = -1 if item.step is None else item.step
            side.units[item.rank, step, item.graph or 0, ""] = item
        context = facts.get("context")
        side.context = context if isinstance(context, dict) else {}  # pyright: ignore[reportUnknownMemberType]  # plain JSON
        side.losses = digest_losses(path, facts)
        return side
    for unit in plain_units(path):
        side.units[unit.key] = unit
    if not side.units:
        raise NoTensors("neither a digest nor a file of tensors")
    return side


def digest_losses(path: str, facts: Mapping[str, object]) -> LossRun | None:
    """The loss curve that a digest carries."""
    from irtool.compare.losses.series import Series

    values = facts.get("losses")
    if not isinstance(values, dict) or not values:
        return None
    pairs: Mapping[str, float] = values  # pyright: ignore[reportUnknownVariableType]  # plain JSON
    return LossRun(path, "digest", Series({int(step): float(v) for step, v in pairs.items()}))


# -- tensors -------------------------------------------------------------------------------------


def read_unit(unit: Unit | TensorRun) -> TensorRun:
    """A unit's tensors.

    Raises:
        NoTensors: it cannot be read.
    """
    return unit if isinstance(unit, TensorRun) else unit.read()


def join_graph(side: RunSide, tensors: TensorRun) -> Joined | None:
    """Join a dump with the graph of its run that knows it best; None where there is none."""
    if tensors.kind not in ("mindspore", "statistics"):
        return None
    files = list(dict.fromkeys(_graph_files(side, tensors)))
    names = (full_names(path, data) for path, data in _read_all(files[:_MOST_GRAPH_FILES], side))
    chosen = choose(tensors, names)
    if chosen is None:
        return None
    path, is_replayed, printed = chosen
    try:
        return join(tensors, load(path), printed, is_replayed)
    except DumpError as error:
        side.complaints.append(f"{path}: {error.message}")
        return None


def _graph_files(side: RunSide, tensors: TensorRun) -> Iterator[str]:
    """Graphs that may know a dump: kernel graphs, the dump's own, then any late stage."""
    if side.run is not None and tensors.rank in side.run.by_rank:
        for compilation in side.run.by_rank[tensors.rank].compilations:
            yield from (file.path for file in compilation.kernel_graphs)
    yield from graph_files(tensors.path)
    if side.run is not None:
        for compilation in side.run.compilations:
            yield from (file.path for file in compilation.kernel_graphs)
        for compilation in side.run.compilations:
            yield compilation.main.path


def _read_all(paths: Sequence[str], side: RunSide) -> Iterator[tuple[str, bytes]]:
    for path in paths:
        try:
            yield path, read_content(path).data
        except DumpError as error:
            side.complaints.append(f"{path}: {error.message}")


def common_units(left: RunSide, right: RunSide) -> list[tuple[str, Key, Key]]:
    """Units of both sides, by step and then rank; where each has one, these two."""
    both = [key for key in left.units if key in right.units]
    if not both and len(left.units) == len(right.units) == 1:
        return [("", next(iter(left.units)), next(iter(right.units)))]
    if not both:
        both_sides = _renumbered(left), _renumbered(right)
        return [
            (_unit_name(key), both_sides[0][key], both_sides[1][key])
            for key in both_sides[0]
            if key in both_sides[1]
        ]
    ordered = sorted(both, key=lambda key: (key[1], key[0], key[2:]))
    return [(_unit_name(key), key, key) for key in ordered]


def _renumbered(side: RunSide) -> dict[Key, Key]:
    """Keys with ranks kept and steps counted from 0: one side may count from 1."""
    steps = sorted({key[1] for key in side.units})
    place = {step: number for number, step in enumerate(steps)}
    return {(key[0], place[key[1]], 0, ""): key for key in reversed(list(side.units))}


def _unit_name(key: Key) -> str:
    words = [f"rank {key[0]}"]
    if key[1] >= 0:
        words.append(f"step {key[1]}")
    if key[2] > 0:
        words.append(f"graph {key[2]}")
    return ", ".join([*words, key[3]] if key[3] else words)


@dataclass(frozen=True, slots=True)
class Settings:
    """How tensors are compared.

    ``given`` is the map of names, ``schedule`` where files are measured, ``wanted`` chooses units.
    """

    given: Mapping[str, str] = field(default_factory=dict[str, str])
    schedule: Scheduler | None = None
    rank: int | None = None
    step: int | None = None
    tell: Callable[[str], None] = lambda message: None


def compare_units(left: RunSide, right: RunSide, settings: Settings) -> list[UnitResult]:
    """The tensors of two runs, one unit after the other; memory holds one unit at a time."""
    found: list[UnitResult] = []
    graphs: dict[tuple[str, str], GraphDiff] = {}
    clean_steps: set[tuple[int, int]] = set()
    for name, ours, theirs in common_units(left, right):
        if settings.rank is not None and ours[0] != settings.rank:
            continue
        if settings.step is not None and ours[1] != settings.step:
            continue
        try:
            runs = read_unit(left.units[ours]), read_unit(right.units[theirs])
        except NoTensors as error:
            settings.tell(f"{name or 'tensors'}: {error}")
            left.complaints.append(f"{name or 'tensors'}: {error}")
            continue
        joined = join_graph(left, runs[0]), join_graph(right, runs[1])
        diff = _kernel_diff(runs, joined, graphs)
        known = (ours[0], ours[1] - 1) in clean_steps
        result = compare_tensors(
            runs[0],
            runs[1],
            nodes={pair.left: pair.right for pair in diff.pairs} if diff else None,
            changed=_changed(diff) if diff else None,
            given=settings.given,
            schedule=settings.schedule,
            parameters_known=known,
        )
        result.joined_left, result.joined_right = joined
        if runs[0].framework != runs[1].framework:
            result.fingerprints = partners(runs[0], runs[1])
        clean_steps.add((ours[0], ours[1]))
        unit = UnitResult(
            name,
            result.counts,
            len(result.judged),
            len(result.only_left),
            len(result.only_right),
            result.first,
            result.is_equal,
            joined,
            result,
        )
        found.append(unit)
        _forget(found)
    return found


def _forget(found: Sequence[UnitResult]) -> None:
    """Keep the tensors of the first faulty unit, or of the first; let go of the others."""
    keep = next((unit for unit in found if unit.first is not None), found[0])
    for unit in found:
        if unit is not keep:
            unit.comparison = None


def _kernel_diff(
    runs: tuple[TensorRun, TensorRun],
    joined: tuple[Joined | None, Joined | None],
    known: dict[tuple[str, str], GraphDiff],
) -> GraphDiff | None:
    """The difference of the graphs that both dumps were joined with."""
    if joined[0] is None or joined[1] is None:
        return None
    dumps = _dump_of(runs[0]), _dump_of(runs[1])
    if dumps[0] is None or dumps[1] is None:
        return None
    known.clear()  # nodes of a dump that is read anew are others
    diff = known[joined[0].path, joined[1].path] = diff_graphs(dumps[0], dumps[1])
    return diff


def _dump_of(run: TensorRun) -> Dump | None:
    for op in run.ops:
        if op.node is not None and op.node.graph is not None:
            return op.node.graph.dump
    return None


def _changed(diff: GraphDiff) -> dict[Node, list[str]]:
    """What differs in matched nodes that can change numbers."""
    found: dict[Node, list[str]] = {}
    for pair in diff.pairs:
        for change in pair.what:
            if change.kind in _TELLING_KINDS and change.what not in _LAYOUT:
                found.setdefault(pair.left, []).append(change.detail)
    return found


# -- the whole -----------------------------------------------------------------------------------


def compare_runs(left: RunSide, right: RunSide, settings: Settings) -> RunComparison:
    """Everything that two runs have in common to be compared."""
    found = RunComparison(left, right)
    found.units = compare_units(left, right, settings)
    _add_graphs(found)
    _add_losses(found)
    evidence = [
        Evidence(side.dump, _first_tensors(found, which), side.losses, side.context)
        for which, side in enumerate((left, right))
    ]
    found.hyperparameters = hyperparameters(*evidence, _initial_weights(found))
    if found.graphs is not None and not found.units:
        found.suspects = suspects(found.graphs)
    _add_missing(found)
    return found


def _first_tensors(found: RunComparison, which: int) -> TensorRun | None:
    shown = next((unit.comparison for unit in found.units if unit.comparison is not None), None)
    if shown is not None:
        return (shown.left, shown.right)[which]
    side = (found.left, found.right)[which]
    for unit in side.units.values():
        try:
            return read_unit(unit)
        except NoTensors:
            continue
    return None


def _add_graphs(found: RunComparison) -> None:
    shown = next((unit.comparison for unit in found.units if unit.comparison is not None), None)
    if shown is not None:
        for side, run in ((found.left, shown.left), (found.right, shown.right)):
            side.dump = side.dump or _dump_of(run)
    if found.left.dump is not None and found.right.dump is not None:
        found.graphs = diff_graphs(found.left.dump, found.right.dump)


def _add_losses(found: RunComparison) -> None:
    if found.left.losses is None or found.right.losses is None:
        return
    try:
        found.losses = compare_losses(found.left.losses, found.right.losses)
    except NothingInCommon as error:
        found.missing.append(f"losses: {error}")


def _add_missing(found: RunComparison) -> None:
    sides = (found.left, found.right)
    names = [os.path.basename(side.path.rstrip("/")) or side.path for side in sides]
    if names[0] == names[1]:
        names = [side.path for side in sides]
    for what, have in (
        ("graphs", [side.dump is not None for side in sides]),
        ("tensors", [bool(side.units) for side in sides]),
        ("losses", [side.losses is not None for side in sides]),
    ):
        lacking = [name for name, has in zip(names, have, strict=True) if not has]
        if lacking:
            found.missing.append(f"{what}: none in {' and '.join(lacking)}")
    if all(side.units for side in sides) and not found.units:
        texts = [", ".join(_unit_name(key) for key in list(side.units)[:4]) for side in sides]
        found.missing.append(f"tensors: no step of a rank is in both ({texts[0]}; {texts[1]})")


def _initial_weights(found: RunComparison) -> tuple[bool | None, str]:
    """Whether parameters are equal where they are first used, by the first unit's tensors."""
    if not found.units or found.units[0].comparison is None:
        return None, ""
    comparison = found.units[0].comparison
    if (comparison.left.step or 0) > 0:
        return None, ""
    total = 0
    differing: list[tuple[float, str]] = []
    seen: set[tuple[int, ...]] = set()
    for item in comparison.judged:
        op = item.pair.left
        if op.phase != "forward":
            continue
        for places in item.slots.inputs:
            if places[0] not in op.parameters or places in seen:
                continue
            seen.add(places)
            measure = comparison.measures[places]
            total += 1
            if item.parameter and item.output == places:
                differing.append((measure.error, op.name))
    if not total:
        return None, ""
    if differing:
        worst = max(differing)
        text = f"{len(differing)} of {total} differ, most at {worst[1]} ({worst[0]:.2g} relative)"
        return False, text
    return True, f"equal ({total} compared)"
