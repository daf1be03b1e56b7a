"""Small changes of strategies or settings, each checked and priced on the whole network.

An edit gives all operators of one line of Python that have one strategy another one. What makes a
redistribution often stands behind a Reshape, Cast or Transpose: operators further up and down are
tried, too.
What remains is what the whole network accepts and what makes its step shorter.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import field, replace
from math import prod

from irtool.cluster.machine import Machine
from irtool.cluster.memory.layers import layer_of_scope
from irtool.cluster.sources import user_location
from irtool.compare.identity import scope_pattern
from irtool.ir.dataclass import dataclass
from irtool.ir.display import Shown
from irtool.ir.dump import Dump
from irtool.ir.graph import Node
from irtool.ir.operators import COMMUNICATION
from irtool.operators.call import Strategy
from irtool.planning.cost.structure import Structure, structure_of
from irtool.planning.plans.carried import carried
from irtool.planning.plans.step.report import StepCost, step_cost
from irtool.planning.search.candidates import candidates_of
from irtool.sharding.check import check
from irtool.sharding.network.context import ParallelContext
from irtool.sharding.network.graphs import Network, network_of
from irtool.sharding.network.report import CheckResult, OperatorReport, RedistributionReport
from irtool.sharding.network.strategies import Wanted
from irtool.sharding.why.cause import Cause
from irtool.sharding.why.layouts import redistribution_of
from irtool.sharding.why.walk import Surroundings

MOST_TRIED = 24
"""Edits that are checked on the whole network."""
MOST_WORK = 40_000
"""Operators that may be judged in all trials together: large networks get fewer."""
_FEWEST_TRIED = 3
_DISTANCE = 4
"""Operators that an edit may be away from the redistribution that it is to take away."""
_FOR_EACH = 5
"""Strategies that are tried for one group of operators."""
_MOST_EDGES = 4
_LEAST = 0.002
"""Part of the step's seconds that an edit has to save."""
_EVEN = 0.01
"""Part of them that a whole layer may cost that lies as its like do and moves less for it."""


@dataclass(frozen=True, eq=False, slots=True)
class NetworkEdit:
    """A change that the network accepts and that makes a step shorter.

    Attributes:
        nodes: whose strategy changes; empty for a setting.
        old: their strategy.
        new: another one.
        setting: key of the parallel context that changes; empty for strategies.
        value: what it is set to.
        is_usual: the new strategy is the one that most operators alike have already.
        seconds: that a step becomes shorter, nothing hidden; about 0 or less only of a whole layer
            that is cut otherwise than its like.
        bytes: that a device receives less each step.
        edges: redistributions that go, less those that come.
        removes: of the redistributions that were asked for, one goes, and none comes for it.
        moves: one goes, and another one comes elsewhere.
        beside: operators that change with it, with their strategies now and then.
        is_layer_move: all operators of a layer change that lie otherwise than their like.
    """

    nodes: tuple[Node, ...]
    old: Strategy | None
    new: Strategy | None
    setting: str
    value: object
    is_usual: bool
    seconds: float
    bytes: int
    edges: int
    removes: bool
    is_layer_move: bool = False
    moves: bool = False
    beside: tuple[tuple[Node, Strategy | None, Strategy], ...] = ()

    @property
    def node(self) -> Node | None:
        """The first of its operators."""
        return self.nodes[0] if self.nodes else None

    @property
    def is_layer(self) -> bool:
        """Whether operators of several kinds change: all of a layer that its like cut otherwise."""
        return len({node.op for node in self.nodes}) > 1


@dataclass(frozen=True, eq=False)
class NetworkEdits(Shown):
    """What was found, the best first; ``before`` is the step as it is, ``tried`` counts trials.

    Of these the network refuses ``refused``, and ``kept`` leave what was asked for where it is.
    ``dearer`` are edits that do away with a redistribution that was asked for, and make the step
    longer (or save next to nothing), the cheapest first.
    """

    before: StepCost
    edits: tuple[NetworkEdit, ...]
    tried: int
    dearer: tuple[NetworkEdit, ...] = ()
    refused: int = 0
    kept: int = 0


@dataclass(frozen=True, eq=False, slots=True)
class _Trial:
    nodes: tuple[Node, ...]
    old: Strategy | None
    new: Strategy | None
    is_usual: bool = False
    setting: str = ""
    value: object = None
    beside: Mapping[Node, Strategy] = field(default_factory=dict[Node, Strategy])
    """Strategies of operators that change with it."""
    is_chain: bool = False
    """Whether these are operators that hand a layout on."""


def network_edits(
    dump: Dump,
    context: ParallelContext,
    report: CheckResult,
    machine: Machine,
    edges: Sequence[RedistributionReport] | None = None,
    work: int = MOST_WORK,
    known: tuple[Structure, StepCost] | None = None,
    network: Network | None = None,
) -> NetworkEdits:
    """Edits that make a step shorter.

    Args:
        dump: taken before the parallel pass.
        context: devices and options.
        report: what ``check`` says of it.
        machine: what things cost.
        edges: redistributions to take away; None: the dearest ones, and whatever is cut otherwise
            than its like.
        work: operators to judge in all trials together.
        known: the structure of the dump and what its step costs, where both were made already.
        network: the dump with its edges resolved, where somebody has it already.
    """
    network = network or network_of(dump)
    if known is None:
        structure = structure_of(dump, context, network=network)
        known = structure, step_cost(structure, report, machine)
    structure, before = known
    groups = _groups(report)
    asked = _dearest(report, before) if edges is None else list(edges)
    trials = [*_unusual(groups, report), *_settings(report, context, asked)]
    if edges is not None:  # somebody asks: operators that are given no numbers count as well
        groups = _groups(report, every=True)
        trials += _chains(groups, report, asked)
    alone = {(trial.nodes, trial.new) for trial in trials if trial.is_chain and not trial.beside}
    trials += (
        trial
        for trial in _around(groups, report, asked, with_fewer=edges is not None)
        if (trial.nodes, trial.new) not in alone
    )
    most = max(_FEWEST_TRIED, min(MOST_TRIED, work // max(1, len(report.operators))))
    edits: list[NetworkEdit] = []
    for trial in trials[:most]:
        made = _tried(trial, structure, network, report, before, asked)
        if made is not None:
            edits.append(made)
    edits.sort(key=lambda edit: (not edit.is_usual, -edit.seconds, -edit.bytes))
    saving = [edit for edit in edits if _is_worth(edit, before)]
    dearer = [edit for edit in edits if edit not in saving and edit.removes] if edges else []
    dearer.sort(key=lambda edit: -edit.seconds)
    tried = min(most, len(trials))
    kept = sum(not edit.removes and not edit.moves for edit in edits)
    return NetworkEdits(
        before, tuple(saving), tried, tuple(dearer), refused=tried - len(edits), kept=kept
    )


def _is_worth(edit: NetworkEdit, before: StepCost) -> bool:
    """Whether it saves something; a whole layer that lies as its like do may cost a little."""
    is_even = edit.is_layer_move and edit.edges > 0 and edit.seconds > -_EVEN * before.seconds
    return edit.seconds >= _LEAST * before.seconds or is_even


# -- operators alike -----------------------------------------------------------------------------

_Key = tuple[object, ...]
_Groups = Mapping[_Key, Mapping[Strategy, list[OperatorReport]]]


def _key(item: OperatorReport) -> _Key:
    """What operators of one line of Python in layers of one kind have in common."""
    location = user_location(item.node)
    line = None if location is None else (location.path, location.line)
    shapes = tuple(type and (type.dtype, type.shape) for type in item.node.input_types or ())
    return (item.op, scope_pattern(item.node.scope), line, shapes)


def _groups(report: CheckResult, *, every: bool = False) -> _Groups:
    """Operators alike that have a strategy of numbers; with ``every`` those of Layouts as well."""
    groups: dict[_Key, dict[Strategy, list[OperatorReport]]] = {}
    for item in report.operators:
        is_given = item.node.has_strategy or (every and item.node.in_layout is not None)
        if item.strategy is not None and is_given:
            groups.setdefault(_key(item), {}).setdefault(item.strategy, []).append(item)
    return groups


def _unusual(groups: _Groups, report: CheckResult) -> Iterator[_Trial]:
    """Operators that are cut otherwise than most of their like, where that moves anything."""
    moved = {
        node for edge in report.redistributions if edge.operators for _, node in _near(edge, report)
    }
    moved.update(item.node for item in report.operators if item.collectives)
    layers: dict[str, dict[Node, _Trial]] = {}
    for strategies in groups.values():
        if len(strategies) < 2:
            continue
        counts = Counter({strategy: len(items) for strategy, items in strategies.items()})
        (usual, most), (_, second) = counts.most_common(2)
        if most == second:
            continue
        for strategy, items in strategies.items():
            if strategy == usual:
                continue
            for item in items:
                alone = _Trial((item.node,), strategy, usual, is_usual=True)
                layers.setdefault(layer_of_scope(item.node.scope), {})[item.node] = alone
            if any(item.node in moved for item in items):
                yield _Trial(tuple(item.node for item in items), strategy, usual, is_usual=True)
    yield from _layers(layers.values())


def _layers(layers: Iterable[Mapping[Node, _Trial]]) -> Iterator[_Trial]:
    """Whole layers that lie otherwise than their like: one operator alone may save nothing."""
    for trials in layers:
        if len(trials) < 2:
            continue
        first = min(trials.values(), key=lambda trial: trial.nodes[0].line)
        beside = {
            node: trial.new
            for node, trial in trials.items()
            if node is not first.nodes[0] and trial.new is not None
        }
        yield replace(first, beside=beside)


# -- around redistributions ------------------------------------------------------------------------


def _dearest(report: CheckResult, cost: StepCost) -> list[RedistributionReport]:
    """One redistribution a place of the code, the places that take longest first."""
    seconds: dict[tuple[Node | None, Node | None], float] = {}
    for item in cost.items:
        if item.producer is not None:
            seconds[item.producer, item.node] = item.total
    places: dict[object, tuple[float, RedistributionReport]] = {}
    for edge in report.redistributions:
        if not edge.operators:
            continue
        key = tuple((node.op, scope_pattern(node.scope)) for node in (edge.producer, edge.consumer))
        total, first = places.get(key, (0.0, edge))
        places[key] = (total + seconds.get((edge.producer, edge.consumer), 0.0), first)
    ordered = sorted(places.values(), key=lambda pair: -pair[0])
    return [edge for _, edge in ordered[:_MOST_EDGES]]


def _alike(groups: _Groups) -> dict[Node, tuple[Node, ...]]:
    """By operator all of its line of Python that have its strategy, that included."""
    return {
        item.node: tuple(other.node for other in items)
        for strategies in groups.values()
        for items in strategies.values()
        for item in items
    }


def _around(
    groups: _Groups,
    report: CheckResult,
    edges: Iterable[RedistributionReport],
    *,
    with_fewer: bool,
) -> Iterator[_Trial]:
    """Other strategies for the operators on both sides of redistributions, near ones first."""
    alike = _alike(groups)
    seen: set[tuple[Node, Strategy]] = set()
    rounds: list[list[_Trial]] = []
    for edge in edges:
        for distance, node in _near(edge, report):
            if node not in alike:
                continue
            item = report.operator(node)
            if item is None:
                continue
            while len(rounds) <= distance:
                rounds.append([])
            for strategy in _others(item, edge, report, with_fewer=with_fewer):
                nodes = alike[node]
                if (nodes[0], strategy) in seen:
                    continue
                seen.add((nodes[0], strategy))
                rounds[distance].append(_Trial(nodes, item.strategy, strategy))
    for trials in rounds:
        yield from trials


def _chains(
    groups: _Groups, report: CheckResult, edges: Iterable[RedistributionReport]
) -> Iterator[_Trial]:
    """Operators that hand a layout on, each with all of its line of Python."""
    alike = _alike(groups)
    for edge in edges:
        for chain in carried(edge, report):
            if not all(node in alike for node in chain):
                continue
            first, *others = chain
            item = report.operator(first)
            beside = {twin: chain[node] for node in others for twin in alike[node]}
            yield _Trial(
                alike[first], item.strategy if item is not None else None, chain[first],
                beside={node: new for node, new in beside.items() if node not in alike[first]},
                is_chain=True,
            )  # fmt: skip


def _near(edge: RedistributionReport, report: CheckResult) -> Iterator[tuple[int, Node]]:
    """Operators before the producer and behind the consumer, with how far away they are."""
    judged = {item.node for item in report.operators}
    for start, upwards in ((edge.consumer, False), (edge.producer, True)):
        layer, seen = [start], {start}
        for distance in range(_DISTANCE):
            following: list[Node] = []
            for node in layer:
                if node in judged:
                    yield distance, node
                near = node.inputs if upwards else node.users
                for other in near:
                    if isinstance(other, Node) and other not in seen and not other.is_return:
                        seen.add(other)
                        following.append(other)
            layer = following


def _others(
    item: OperatorReport, edge: RedistributionReport, report: CheckResult, *, with_fewer: bool
) -> list[Strategy]:
    """Strategies that use as many devices, those first that fit the other side of the edge.

    Those that fit may use fewer, too, where somebody asks about this edge.
    """
    context = report.context.for_operators(dynamic=item.call.call.is_dynamic)
    now = item.strategy or ()
    used = prod(item.device_matrix) if item.device_matrix else 1
    wanted = {layout.splits for layout in (edge.source, edge.target) if layout is not None}
    scored: list[tuple[tuple[object, ...], Strategy]] = []
    for candidate in candidates_of(item.call.call, context).items:
        strategy = candidate.strategy
        if strategy is None or strategy == now or len(strategy) != len(now):
            continue
        own, old = [prod(row) for row in strategy], [prod(row) for row in now]
        fits = any(row in wanted for row in strategy)
        is_fewer = max(own, default=1) < max(old, default=1)
        if (is_fewer and not (fits and with_fewer)) or max(own, default=1) > used:
            continue
        apart = sum(
            a != b
            for row, other in zip(strategy, now, strict=True)
            for a, b in zip(row, other, strict=False)
        )  # type: ignore[arg-type]  # rows of numbers
        scored.append(((not fits, apart, strategy), strategy))
    scored.sort(key=lambda pair: repr(pair[0]))
    return [strategy for _, strategy in scored[:_FOR_EACH]]


def _settings(
    report: CheckResult, context: ParallelContext, edges: Sequence[RedistributionReport]
) -> Iterator[_Trial]:
    """``enable_alltoall``, where something is redistributed without it."""
    if edges and not context.enable_alltoall:
        yield _Trial((), None, None, setting="enable_alltoall", value=True)


# -- trying ----------------------------------------------------------------------------------------


def _tried(
    trial: _Trial,
    structure: Structure,
    network: Network,
    report: CheckResult,
    before: StepCost,
    asked: Sequence[RedistributionReport],
) -> NetworkEdit | None:
    """What a trial brings; None where the network refuses it."""
    dump = structure.dump
    if trial.setting:
        structure = structure.under(enable_alltoall=True)
        judged = check(dump, structure.context, None, network)
    else:
        instead = {node: Wanted(strategy=new) for node, new in trial.beside.items()}
        instead.update(dict.fromkeys(trial.nodes, Wanted(strategy=trial.new)))
        judged = check(dump, structure.context, instead, network)
    if judged.accepted is False or (judged.accepted is None and report.accepted):
        return None
    cost = step_cost(structure, judged, before.machine)
    if len(cost.unknown) > len(before.unknown):
        return None
    goes, comes = _fate(asked, report, judged, is_setting=bool(trial.setting))
    return NetworkEdit(
        trial.nodes if trial.is_chain else (*trial.nodes, *trial.beside),
        trial.old,
        trial.new,
        trial.setting,
        trial.value,
        trial.is_usual,
        before.seconds - cost.seconds,
        sum(before.received.values()) - sum(cost.received.values()),
        _count(report) - _count(judged),
        goes and not comes,
        bool(trial.beside) and not trial.is_chain,
        goes and comes,
        _beside(trial, report) if trial.is_chain else (),
    )


def _beside(
    trial: _Trial, report: CheckResult
) -> tuple[tuple[Node, Strategy | None, Strategy], ...]:
    """Operators that change with the first ones, one for each line of Python."""
    lines: dict[object, tuple[Node, Strategy | None, Strategy]] = {}
    for node, new in trial.beside.items():
        item = report.operator(node)
        if item is not None:
            lines.setdefault(_key(item), (node, item.strategy, new))
    return tuple(lines.values())


def _fate(
    asked: Sequence[RedistributionReport],
    before: CheckResult,
    after: CheckResult,
    *,
    is_setting: bool,
) -> tuple[bool, bool]:
    """Whether a redistribution that was asked for goes, and whether another one comes for it.

    One that communicated is gone, too, where slices of its own device are left of it; by a setting
    it goes where other operators do it.
    """
    talking = [edge for edge in asked if _communicates(edge)] or list(asked)
    left = {_place(edge): _ops(edge) for edge in after.redistributions if _communicates(edge)}
    if is_setting:
        changed = [edge for edge in talking if left.get(_place(edge), ()) != _ops(edge)]
        goes = any(_gathers(left.get(_place(edge), ())) < _gathers(_ops(edge)) for edge in changed)
        return bool(changed), not goes
    goes = any(_place(edge) not in left for edge in talking)
    fewer = _talking(after) < _talking(before) or not any(map(_communicates, asked))
    return goes, not fewer


def _gathers(ops: Sequence[str]) -> int:
    return sum(op == "AllGather" for op in ops)


def _talking(report: CheckResult) -> int:
    return sum(map(_communicates, report.redistributions))


def _communicates(edge: RedistributionReport) -> bool:
    return any(op in COMMUNICATION for op in _ops(edge))


def _ops(edge: RedistributionReport) -> tuple[str, ...]:
    return tuple(item.op for item in edge.operators or ())


def _place(edge: RedistributionReport) -> tuple[str, str, int]:
    """Where something is redistributed: nodes of an edited dump keep their numbers."""
    return edge.producer.id, edge.consumer.id, edge.input


def _count(report: CheckResult) -> int:
    return sum(bool(edge.operators) for edge in report.redistributions)


# -- why is this collective there? -----------------------------------------------------------------

_MOST_ASKED = 16
"""Redistributions that edits are looked for, where many nodes are asked about."""
_KINDS = {"redistribution": 0, "dataset": 1}
"""Causes that an edit takes away, those that communicate first."""
_MOST_TOLD = 4


def edits_of_causes(
    around: Surroundings,
    causes: Sequence[Cause],
    dump: Dump,
    context: ParallelContext,
    report: CheckResult,
    machine: Machine,
) -> CauseEdits:
    """For nodes of redistributions the edits that take them away, those that save most first.

    Args:
        around: the later dump.
        causes: of its nodes.
        dump: taken before the parallel pass.
        context: devices and options.
        report: what ``check`` says of it.
        machine: what things cost.
    """
    asked: dict[object, RedistributionReport] = {}
    keys: dict[Node, object] = {}
    why_none: dict[Node, str] = {}
    # Collectives first: slices of the dataset communicate nothing.
    for cause in sorted(causes, key=lambda cause: _KINDS.get(cause.kind, 0)):
        if cause.kind not in _KINDS:
            continue
        attribution = redistribution_of(around, cause, report)
        edge = attribution.redistribution
        if edge is None or not edge.operators:
            why = attribution.why_none or "no redistribution is predicted here"
            why_none[cause.node] = f"no edit was tried: {why}"
            continue
        key = _edge_key(edge)
        why_none[cause.node] = f"no edit was tried: it is none of the first {_MOST_ASKED} places"
        if key in asked or len(asked) < _MOST_ASKED:
            asked.setdefault(key, edge)
            keys[cause.node] = key
    work = MOST_WORK // max(1, len(asked))
    known = {
        key: network_edits(dump, context, report, machine, [edge], work)
        for key, edge in asked.items()
    }
    told = {key: _alternatives(found) for key, found in known.items()}
    why_none.update((node, _why_none(known[key])) for node, key in keys.items())
    return CauseEdits(
        {node: told[key] for node, key in keys.items()},
        {node: why for node, why in why_none.items() if not told.get(keys.get(node), ())},
    )


@dataclass(frozen=True, slots=True)
class CauseEdits:
    """Edits of nodes that were asked about, and why there is none of others."""

    edits: Mapping[Node, tuple[NetworkEdit, ...]] = field(
        default_factory=dict[Node, "tuple[NetworkEdit, ...]"]
    )
    why_none: Mapping[Node, str] = field(default_factory=dict[Node, str])


def _edge_key(edge: RedistributionReport) -> object:
    """What redistributions that one line of Python makes in layers of one kind have in common."""
    sides = tuple(
        (node.op, scope_pattern(node.scope), str(user_location(node)))
        for node in (edge.producer, edge.consumer)
    )
    splits = tuple(None if each is None else each.splits for each in (edge.source, edge.target))
    return sides, splits, edge.input, _ops(edge)


def _why_none(found: NetworkEdits) -> str:
    """What was tried where nothing takes a redistribution away."""
    moving = found.tried - found.refused - found.kept
    return (
        f"no edit was found: of {found.tried} tried on the whole network (strategies of operators "
        f"around it, alone and together, and enable_alltoall) {found.refused} are refused, "
        f"{found.kept} leave it where it is, {moving} replace it with another"
    )


def _alternatives(edits: NetworkEdits) -> tuple[NetworkEdit, ...]:
    """What saves something, and a strategy that takes the collective away whatever it costs.

    Where no strategy does, one that moves it to a place where it costs less.
    """
    saving = _shown([edit for edit in edits.edits if edit.removes])
    if any(edit.nodes for edit in saving):
        return saving
    dearer = tuple(edit for edit in _shown(edits.dearer) if edit.nodes)[:1]
    return saving + (dearer or _shown([edit for edit in edits.edits if edit.moves])[:1])


def _shown(edits: Sequence[NetworkEdit]) -> tuple[NetworkEdit, ...]:
    """The first edit of each setting or set of nodes; edits of whole layers are left out."""
    places: dict[object, NetworkEdit] = {}
    for edit in edits:
        if not edit.is_layer:
            places.setdefault(edit.setting or edit.nodes, edit)
    return tuple(places.values())[:_MOST_TOLD]
