"""The tensors of two runs: which steps and ranks belong together, and what came of each."""

from __future__ import annotations

import gc
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import field
from typing import TYPE_CHECKING

from irtool.compare.runs.graphs import join_graph
from irtool.compare.runs.sides import Key, RunSide
from irtool.compare.tensors.comparison import TensorComparison, compare_tensors, noise_of
from irtool.compare.tensors.facts import Differing, Fact, Kind, facts_of
from irtool.compare.tensors.join import Joined
from irtool.compare.tensors.judging.past import Training
from irtool.compare.tensors.judging.verdict import Judged
from irtool.compare.tensors.measuring.measure import Scheduler
from irtool.compare.tensors.model import NoTensors, Shape, TensorRun
from irtool.compare.tensors.open import Unit
from irtool.compare.tensors.pairing.fingerprints import partners
from irtool.compare.tensors.pairing.msprobe_maps import NameMaps
from irtool.compare.tensors.semantics import family
from irtool.ir.dataclass import dataclass
from irtool.ir.dump import Dump, dump_of
from irtool.ir.graph import Node
from irtool.ir.run import MsprobeDump, TensorDump

if TYPE_CHECKING:
    from irtool.compare.graph_diff import GraphDiff
    from irtool.compare.layouts.comparison import LayoutComparison
    from irtool.compare.layouts.declared import SideLayout
    from irtool.compare.layouts.whole_runs import AcrossRanks

_LAYOUT = ("dst_type", "left_format", "right_format", "is_dynamic_len", "reduce_scatter_flag")
_MICRO_INPUT = re.compile(r"micro_inputs-CellList_\d+-")
"""In the name of the operator that takes a micro-batch out of the batch."""
_TELLING_KINDS = ("attribute changed", "constant changed")


@dataclass(slots=True)
class UnitResult:
    """One step of one rank.

    ``comparison`` is kept only for the unit that the report shows; the counts of all.  ``layout``:
    of a run that was put together of several ranks, how; ``cause`` orders faults of several ranks;
    ``lowered``: operators and inputs of theirs that were rounded to half precision; ``unequal``:
    operators of which a tensor differs in a bit, in their order; ``undivided``: how many times too
    large gradients are on each side, where micro-batches add theirs up; ``facts``: what the runs
    were given, compared exactly.
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
    layout: LayoutComparison | AcrossRanks | None = None
    cause: tuple[int, ...] = ()
    lowered: tuple[tuple[str, str], ...] = ()
    unequal: tuple[str, ...] = ()
    undivided: tuple[float, float] = (1.0, 1.0)
    facts: tuple[Fact, ...] = ()


def shown_unit(units: Sequence[UnitResult]) -> UnitResult | None:
    """The unit where the first cause lies: of the first faulty step the rank where it begins.

    What a collective hands on was wrong before on the rank that sent it: an operator before it
    comes first, whichever rank that ran on.

    Args:
        units: that were compared.

    Returns:
        The first one where none is faulty; None where there are none.
    """
    faulty = [unit for unit in units if unit.first is not None]
    if not faulty:
        return units[0] if units else None
    return min(faulty, key=lambda unit: unit.cause)


def _cause(result: TensorComparison) -> tuple[int, ...]:
    """What comes first of several ranks: step, collectives before, no collective, place."""
    first = result.first
    if first is None:
        return ()
    op = first.pair.left
    ops = result.left.ops
    before = sum(family(other.type) == "collective" for other in ops[: op.index])
    is_collective = family(op.type) == "collective"
    return (result.left.step or 0, before, is_collective, op.index)


def read_unit(unit: Unit | TensorRun) -> TensorRun:
    """A unit's tensors.

    Args:
        unit: to be read, or read already.

    Raises:
        NoTensors: it cannot be read.
    """
    return unit if isinstance(unit, TensorRun) else unit.read()


def common_units(left: RunSide, right: RunSide) -> list[tuple[str, Key, Key]]:
    """Units that both sides have, by step and then rank.

    Where no key is common, steps that one side counts from 1 are counted from 0; where each side
    has one unit, these two belong together.

    Args:
        left: one side.
        right: the other.

    Returns:
        Name and both keys of each pair of units.
    """
    both = [key for key in left.units if key in right.units]
    if not both and len(left.units) == len(right.units) == 1:
        return [("", next(iter(left.units)), next(iter(right.units)))]
    if not both:
        both_sides = _renumbered(left), _renumbered(right)
        return [
            (unit_name(key), both_sides[0][key], both_sides[1][key])
            for key in both_sides[0]
            if key in both_sides[1]
        ]
    ordered = sorted(both, key=lambda key: (key[1], key[0], key[2:]))
    return [(unit_name(key), key, key) for key in ordered]


def _renumbered(side: RunSide) -> dict[Key, Key]:
    """Keys with ranks kept and steps counted from 0: one side may count from 1."""
    steps = sorted({key[1] for key in side.units})
    place = {step: number for number, step in enumerate(steps)}
    return {(key[0], place[key[1]], 0, ""): key for key in reversed(list(side.units))}


def unit_name(key: Key) -> str:
    """What a unit is called: ``rank 0, step 1``.

    Args:
        key: rank, step (below 0: not known), graph (0: not named), part.
    """
    words = [f"rank {key[0]}"]
    if key[1] >= 0:
        words.append(f"step {key[1]}")
    if key[2] > 0:
        words.append(f"graph {key[2]}")
    return ", ".join([*words, key[3]] if key[3] else words)


@dataclass(frozen=True, slots=True)
class Settings:
    """How tensors are compared.

    Attributes:
        given: names of the left run, and what they are called in the right one.
        schedule: where files are measured; None: here.
        rank, step: only the units of these.
        tell: takes what is to be said.
        repeats: more healthy runs of the left side: what differs between them is noise.
        layouts: how the ranks of both runs are cut, where a layout file says so.
        keeps_all: every result keeps its tensors, not the one alone that is shown.
    """

    given: NameMaps = field(default_factory=NameMaps)
    schedule: Scheduler | None = None
    rank: int | None = None
    step: int | None = None
    tell: Callable[[str], None] = lambda message: None
    repeats: Sequence[RunSide] = ()
    layouts: tuple[SideLayout, SideLayout] | None = None
    keeps_all: bool = False


def compare_units(left: RunSide, right: RunSide, settings: Settings) -> list[UnitResult]:
    """Compare the tensors of two runs, one unit after the other; memory holds one unit at a time.

    Args:
        left: the run that is trusted more.
        right: the other.
        settings: how tensors are compared, and of which ranks and steps.

    Returns:
        A result for each unit that could be read on both sides; only the one that is shown keeps
        its tensors.
    """
    if settings.layouts is not None:
        return _compare_declared(left, right, settings, settings.layouts)
    if settings.rank is None and (why := _other_ranks(left, right)):
        right.complaints.append(why)
        return []
    if are_cut_otherwise(left, right):
        return _compare_cut(left, right, settings)
    units: list[UnitResult] = []
    graphs: dict[tuple[str, str], GraphDiff] = {}
    compared: set[tuple[int, int]] = set()
    for name, ours, theirs in common_units(left, right):
        if settings.rank is not None and ours[0] != settings.rank:
            continue
        if settings.step is not None and ours[1] != settings.step:
            continue
        both = _read(left, ours), _read(right, theirs)
        if both[0] is None or both[1] is None:
            continue
        runs = both[0], both[1]
        joined = join_graph(left, runs[0]), join_graph(right, runs[1])
        diff = _kernel_diff(runs, joined, graphs)
        training: Training = "steps before" if ours[1] > 0 else "first step"
        if (ours[0], ours[1] - 1) in compared:
            training = "steps compared"
        result = compare_tensors(
            runs[0],
            runs[1],
            nodes={pair.left: pair.right for pair in diff.pairs} if diff else None,
            changed=_changed(diff) if diff else None,
            given=settings.given.of_runs(*runs),
            schedule=settings.schedule,
            training=training,
            noise=_noise(runs[0], ours, settings, training),
        )
        result.joined_left, result.joined_right = joined
        result.graphs = diff
        if runs[0].framework != runs[1].framework:
            result.fingerprints = partners(runs[0], runs[1])
        compared.add((ours[0], ours[1]))
        units.append(_unit(name, result))
        for side, run in zip((left, right), runs, strict=True):
            side.complaints += [f"{run.path}: {problem}" for problem in run.problems]
        _forget(units, settings)
        if any(joined):
            gc.collect()  # a graph is cyclic: where nothing is collected, it would stay
    return units


def _noise(run: TensorRun, key: Key, settings: Settings, training: Training) -> Mapping[int, float]:
    """How far operators of a unit are off in repeated runs: the most of all of them."""
    noise: dict[int, float] = {}
    for side in settings.repeats:
        other = _read(side, key) if key in side.units else None
        if other is None:
            side.complaints.append(f"{side.path}: it has no {unit_name(key)} to tell noise by")
            continue
        made = compare_tensors(run, other, schedule=settings.schedule, training=training)
        for index, error in noise_of(made).items():
            noise[index] = max(noise.get(index, 0.0), error)
    return noise


def _other_ranks(left: RunSide, right: RunSide) -> str:
    """Why two runs of msprobe's dumps cannot be compared rank by rank; empty where they can."""
    counts = [len({key[0] for key in side.units}) for side in (left, right)]
    are_msprobe = all(
        isinstance(unit, Unit) and isinstance(unit.source, MsprobeDump)
        for side in (left, right)
        for unit in side.units.values()
    )
    if not are_msprobe or 0 in counts or counts[0] == counts[1]:
        return ""
    return (
        f"tensors cannot be compared rank by rank: {counts[0]} on the left, {counts[1]} on the "
        "right; --layout FILE says how they are cut (--write-layout proposes one), --rank chooses"
    )


def are_cut_otherwise(left: RunSide, right: RunSide) -> bool:
    """Whether runs are cut in different ways, and graphs tell how.

    That is so of two runs of MindSpore's own dump, and of one beside another framework's run on
    one device.
    """
    counts = [len({key[0] for key in side.units}) for side in (left, right)]
    if 0 in counts or counts == [1, 1]:
        return False
    if counts[0] == counts[1] and not _hold_other_parts(left, right):
        return False
    sides = zip((left, right), counts, strict=True)
    return all(_is_own(side) or count == 1 for side, count in sides)


def _hold_other_parts(left: RunSide, right: RunSide) -> bool:
    """Whether the lowest ranks of as many ranks hold other slices, stages or micro-batches."""
    if not (_is_own(left) and _is_own(right)):
        return False
    shapes: list[dict[str, Shape]] = []
    micros: list[set[str]] = []
    for side in (left, right):
        try:
            run = read_unit(side.units[min(side.units)])
        except NoTensors:
            return False
        shapes.append(
            {
                op.name: run.columns.shapes[op.outputs[0]]
                for op in run.ops
                if op.type == "Parameter" and op.outputs
            }
        )
        micros.append({match[0] for op in run.ops if (match := _MICRO_INPUT.search(op.name))})
    ours, theirs = shapes
    if any(ours[name] != theirs[name] for name in ours.keys() & theirs.keys()):
        return True
    has_begins = all(_begin(side)(min(key[0] for key in side.units)) for side in (left, right))
    return has_begins and (ours.keys() != theirs.keys() or micros[0] != micros[1])


def _is_own(side: RunSide) -> bool:
    """Whether a run has MindSpore's own dump, which its graphs explain."""
    return all(
        isinstance(unit, Unit) and isinstance(unit.source, TensorDump)
        for unit in side.units.values()
    )


def _compare_cut(left: RunSide, right: RunSide, settings: Settings) -> list[UnitResult]:
    """Compare two runs that are cut otherwise, one of them maybe on one device, step by step."""
    from irtool.compare.layouts.comparison import CannotJoin, CutRun, compare_layouts

    sides = left, right
    counts = [len({key[0] for key in side.units}) for side in sides]
    begins = [_begin(side) for side in sides]
    units: list[UnitResult] = []
    for step in sorted({key[1:] for key in left.units} & {key[1:] for key in right.units}):
        if settings.step not in (None, step[0]):
            continue
        runs: list[dict[int, TensorRun]] = []
        joined: list[Joined | None] = []
        for side in sides:
            keys = [key for key in sorted(side.units) if key[1:] == step]
            read = {key[0]: run for key in keys if (run := _read(side, key)) is not None}
            joined += [join_graph(side, run) for run in read.values()][:1]
            runs.append(read)
        if [len(read) for read in runs] != counts:
            continue
        if any(count == 1 and _is_own(side) and joined[which] is None
               for which, (side, count) in enumerate(zip(sides, counts, strict=True))):  # fmt: skip
            right.complaints.append(
                "tensors cannot be compared: the run on one device has no graph, which says what "
                "its operators are"
            )
            continue
        training: Training = "steps before" if step[0] > 0 else "first step"
        try:
            layout_comparison = compare_layouts(
                CutRun(runs[0], begins[0]), CutRun(runs[1], begins[1]),
                schedule=settings.schedule, training=training,
            )  # fmt: skip
        except CannotJoin as error:
            cut = left if counts[1] == 1 else right
            cut.complaints.append(f"tensors cannot be compared: {error}")
            continue
        result = layout_comparison.comparison
        if not (_is_own(left) and _is_own(right)):
            result.fingerprints = partners(result.left, result.right)
        if 1 in counts:
            result.joined_left, result.joined_right = joined
        words = [f"step {step[0]}"] * (step[0] >= 0)
        words.append(" and ".join(_put_together(read) for read in runs if len(read) > 1))
        units.append(_unit(", ".join(words), result, layout_comparison))
        _add_replicas(units[-1], layout_comparison.replicas)
        for side, read in zip(sides, runs, strict=True):
            side.complaints += [f"{run.path}: {text}" for run in read.values()
                                for text in run.problems]  # fmt: skip
        _forget(units, settings)
        gc.collect()
    return units


def _begin(side: RunSide) -> Callable[[int], Dump | None]:
    """What gives the network of a rank before it is cut."""
    run = side.run if _is_own(side) else None
    has_graphs = run is not None and any(rank.compilations for rank in run.by_rank.values())
    compilations = run.across_ranks() if run is not None and has_graphs else {}
    return lambda rank: compilations[rank].begin if rank in compilations else None


def _compare_declared(
    left: RunSide, right: RunSide, settings: Settings, layouts: tuple[SideLayout, SideLayout]
) -> list[UnitResult]:
    """Compare two runs whose ranks are cut as a layout file says, step by step."""
    from irtool.compare.layouts.across_ranks import compare_across
    from irtool.compare.layouts.chained import CannotChain

    steps = [_by_step(side) for side in (left, right)]
    if not set(steps[0]) & set(steps[1]):  # one side may count from 1
        steps = [dict(enumerate(step for _, step in sorted(side.items()))) for side in steps]
    units: list[UnitResult] = []
    for step in sorted(set(steps[0]) & set(steps[1])):
        if settings.step not in (None, step):
            continue
        runs: list[dict[int, TensorRun]] = []
        for side, keys in zip((left, right), steps, strict=True):
            read = {key[0]: run for key in keys[step] if (run := _read(side, key)) is not None}
            side.complaints += [f"{r.path}: {text}" for r in read.values() for text in r.problems]
            runs.append(read)
        training: Training = "steps before" if step > 0 else "first step"
        try:
            for across in compare_across(
                (runs[0], runs[1]), layouts, schedule=settings.schedule, training=training
            ):
                words = [f"step {step}"] * (step >= 0) + [across.name] * bool(across.name)
                words += [_put_together(read) for read in runs if len(read) > 1][:1]
                units.append(_unit(", ".join(words), across.comparison, across))
                units[-1].undivided = across.undivided
                _add_replicas(units[-1], across.replicas)
                _forget(units, settings)
        except CannotChain as error:
            right.complaints.append(f"tensors cannot be compared: {error}")
    return units


def _add_replicas(unit: UnitResult, replicas: Sequence[tuple[Kind, Differing]]) -> None:
    """Add to the facts of a unit what ranks were given otherwise than other ranks."""
    for kind, differing in replicas:
        fact = next((fact for fact in unit.facts if fact.kind == kind), None)
        if fact is None:
            unit.facts += (fact := Fact(kind, 1),)
        if not fact.differing:
            fact.differing.append(differing)


def _by_step(side: RunSide) -> dict[int, list[Key]]:
    steps: dict[int, list[Key]] = {}
    for key in sorted(side.units):
        steps.setdefault(key[1], []).append(key)
    return steps


def _put_together(runs: Mapping[int, TensorRun]) -> str:
    return f"ranks {min(runs)} to {max(runs)} put together"


def _unit(
    name: str,
    result: TensorComparison,
    layout: LayoutComparison | AcrossRanks | None = None,
) -> UnitResult:
    """What is kept of one comparison."""
    return UnitResult(
        name,
        result.counts,
        len(result.judged),
        len(result.only_left),
        len(result.only_right),
        result.first,
        result.is_equal,
        (result.joined_left, result.joined_right),
        result,
        layout,
        _cause(result),
        tuple((item.pair.left.name, item.lowered) for item in result.judged if item.lowered),
        tuple(item.pair.left.name for item in result.unequal),
        facts=tuple(facts_of(result)),
    )


def _read(side: RunSide, key: Key) -> TensorRun | None:
    """A unit of one side; where it cannot be read, that is said."""
    unit = side.units[key]
    try:
        return read_unit(unit)
    except NoTensors as error:
        side.complaints.append(f"{unit.path}: {error}")
        return None


def _forget(units: Sequence[UnitResult], settings: Settings) -> None:
    """Keep the tensors of the first faulty unit, or of the first; let go of the others."""
    if settings.keeps_all:
        return
    keep = shown_unit(units)
    for unit in units:
        if unit is not keep:
            unit.comparison = unit.layout = None


def _kernel_diff(
    runs: tuple[TensorRun, TensorRun],
    joined: tuple[Joined | None, Joined | None],
    known: dict[tuple[str, str], GraphDiff],
) -> GraphDiff | None:
    """The difference of the graphs that both dumps were joined with."""
    if joined[0] is None or joined[1] is None:
        return None
    from irtool.compare.graph_diff import diff_graphs

    dumps = graph_of(runs[0]), graph_of(runs[1])
    if dumps[0] is None or dumps[1] is None:
        return None
    known.clear()  # nodes of a dump that is read anew are others
    diff = known[joined[0].path, joined[1].path] = diff_graphs(dumps[0], dumps[1])
    return diff


def graph_of(run: TensorRun) -> Dump | None:
    """The graph that a dump of tensors was joined with; None without one.

    Args:
        run: with its operators.
    """
    return next((dump_of(op.node) for op in run.ops if op.node is not None), None)


def _changed(diff: GraphDiff) -> dict[Node, list[str]]:
    """What differs in matched nodes that can change numbers."""
    changed: dict[Node, list[str]] = {}
    for pair in diff.pairs:
        for change in pair.what:
            if change.kind in _TELLING_KINDS and change.what not in _LAYOUT:
                changed.setdefault(pair.left, []).append(change.detail)
    return changed
