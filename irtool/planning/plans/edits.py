"""Small changes of strategies or settings, each checked and priced on the whole network.

An edit gives all operators of one line of Python that have one strategy another one. What makes a
redistribution often stands behind a Reshape, Cast or Transpose: operators further up and down are
tried, too.
What remains is what the whole network accepts and what makes its step shorter.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import prod

from irtool.cluster.machine import Machine
from irtool.cluster.memory_layers import layer_of_scope
from irtool.cluster.sources import user_location
from irtool.compare.identity import scope_pattern
from irtool.ir.display import Shown
from irtool.ir.dump import Dump
from irtool.ir.graph import Node
from irtool.ir.operators import COMMUNICATION
from irtool.operators.call import Strategy
from irtool.planning.cost.structure import Structure, structure_of
from irtool.planning.plans.cost_report import StepCost, step_cost
from irtool.planning.search.candidates import candidates_of
from irtool.sharding.check import check
from irtool.sharding.network.context import ParallelContext
from irtool.sharding.network.graphs import Network, network_of
from irtool.sharding.network.report import CheckResult, OperatorReport, RedistributionReport
from irtool.sharding.network.strategies import Wanted
from irtool.sharding.why_cause import Cause
from irtool.sharding.why_layouts import redistribution_of
from irtool.sharding.why_walk import Surroundings

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
        removes: of the redistributions that were asked for, one goes.
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

    ``dearer`` are edits that do away with a redistribution that was asked for, and make the step
    longer (or save next to nothing), the cheapest first.
    """

    before: StepCost
    edits: tuple[NetworkEdit, ...]
    tried: int
    dearer: tuple[NetworkEdit, ...] = ()


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
    trials += _around(groups, report, asked, with_fewer=edges is not None)
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
    return NetworkEdits(before, tuple(saving), min(most, len(trials)), tuple(dearer))


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


def _groups(report: CheckResult) -> _Groups:
    groups: dict[_Key, dict[Strategy, list[OperatorReport]]] = {}
    for item in report.operators:
        if item.strategy is not None and item.node.has_strategy:
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


def _around(
    groups: _Groups,
    report: CheckResult,
    edges: Iterable[RedistributionReport],
    *,
    with_fewer: bool,
) -> Iterator[_Trial]:
    """Other strategies for the operators on both sides of redistributions, near ones first."""
    alike = {
        item.node: tuple(other.node for other in items)
        for strategies in groups.values()
        for items in strategies.values()
        for item in items
    }
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
    saved = before.seconds - cost.seconds
    fewer = _count(report) - _count(judged)
    return NetworkEdit(
        (*trial.nodes, *trial.beside),
        trial.old,
        trial.new,
        trial.setting,
        trial.value,
        trial.is_usual,
        saved,
        sum(before.received.values()) - sum(cost.received.values()),
        fewer,
        _is_removed(asked, judged.redistributions, otherwise=bool(trial.setting)),
        bool(trial.beside),
    )


def _is_removed(
    asked: Sequence[RedistributionReport],
    edges: Sequence[RedistributionReport],
    *,
    otherwise: bool,
) -> bool:
    """Whether one of the redistributions is gone, or (by a setting) done by other operators.

    One that communicated is gone, too, where slices of its own device are left of it.
    """
    talking = [edge for edge in asked if _communicates(edge)]
    if _places(asked) - _places(edges) or _places(talking) - _places(filter(_communicates, edges)):
        return True
    after = {(e.producer.id, e.consumer.id, e.input): _ops(e) for e in edges}
    places = ((e, (e.producer.id, e.consumer.id, e.input)) for e in asked)
    return otherwise and any(after.get(place, ()) != _ops(edge) for edge, place in places)


def _communicates(edge: RedistributionReport) -> bool:
    return any(op in COMMUNICATION for op in _ops(edge))


def _ops(edge: RedistributionReport) -> tuple[str, ...]:
    return tuple(item.op for item in edge.operators or ())


def _places(edges: Iterable[RedistributionReport]) -> set[tuple[str, str, int]]:
    """Where something is redistributed: nodes of an edited dump keep their numbers."""
    return {(e.producer.id, e.consumer.id, e.input) for e in edges if e.operators}


def _count(report: CheckResult) -> int:
    return sum(bool(edge.operators) for edge in report.redistributions)


# -- why is this collective there? -----------------------------------------------------------------

_MOST_ASKED = 8
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
) -> dict[Node, tuple[NetworkEdit, ...]]:
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
    # Collectives first: slices of the dataset communicate nothing.
    for cause in sorted(causes, key=lambda cause: _KINDS.get(cause.kind, 0)):
        if cause.kind not in _KINDS:
            continue
        edge = redistribution_of(around, cause, report)
        if edge is None or not edge.operators:
            continue
        key = tuple((node.op, scope_pattern(node.scope)) for node in (edge.producer, edge.consumer))
        if key in asked or len(asked) < _MOST_ASKED:
            asked.setdefault(key, edge)
            keys[cause.node] = key
    work = MOST_WORK // max(1, len(asked))
    known = {
        key: _alternatives(network_edits(dump, context, report, machine, [edge], work))
        for key, edge in asked.items()
    }
    return {node: known[key] for node, key in keys.items()}


def _alternatives(edits: NetworkEdits) -> tuple[NetworkEdit, ...]:
    """What saves something, and a strategy that takes the collective away whatever it costs."""
    saving = _shown(edits.edits)
    if any(edit.nodes for edit in saving):
        return saving
    return saving + tuple(edit for edit in _shown(edits.dearer) if edit.nodes)[:1]


def _shown(edits: Sequence[NetworkEdit]) -> tuple[NetworkEdit, ...]:
    """One edit a place, of those that do away with what was asked for."""
    places: dict[object, NetworkEdit] = {}
    for edit in edits:
        if edit.removes and not edit.is_layer:
            places.setdefault(edit.setting or edit.nodes, edit)
    return tuple(places.values())[:_MOST_TOLD]
