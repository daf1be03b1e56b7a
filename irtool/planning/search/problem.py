"""What is to be planned: a dump without strategies, those it had, and those that must be."""

from __future__ import annotations

from collections.abc import Mapping, Set
from dataclasses import replace

from irtool.ir.dataclass import dataclass
from irtool.ir.dump import Dump
from irtool.ir.graph import Graph, Item, Node
from irtool.operators.call import Strategy
from irtool.planning.cost.kept import FIXED
from irtool.planning.cost.structure import Structure, structure_of
from irtool.planning.search.device_counts import nearest_legal
from irtool.planning.search.operator_candidates import CannotPlan, Given
from irtool.sharding.check import check
from irtool.sharding.judge import judge
from irtool.sharding.network.context import LARGEST_WORLD, ParallelContext
from irtool.sharding.network.graphs import network_of
from irtool.sharding.network.received import RECEIVE
from irtool.sharding.network.report import CheckResult
from irtool.sharding.network.sharded_nodes import primitive
from irtool.sharding.network.stages import foreign_nodes


@dataclass(frozen=True, slots=True)
class Carried:
    """What a form of handing a plan over can say; nodes are those of the dump.

    Attributes:
        tied: operators that it gives one strategy, whichever.
        left: operators that it says nothing of: they keep what the code gives them, or get what
            MindSpore gives them by itself in semi-auto mode.
        outs: whether it can say an ``out_strategy``.
    """

    tied: tuple[tuple[Node, ...], ...] = ()
    left: frozenset[Node] = frozenset()
    outs: bool = True


@dataclass(frozen=True, eq=False)
class Problem:
    """A network to plan: without its strategies, and with those that it had.

    Attributes:
        dump: as it was read.
        old: the context that it was compiled under, ``report`` what ``check`` says of it there;
            None where no strategies are looked at.
        structure: of the dump without strategies, under the context to plan for.
        twins: nodes without strategies by node of ``dump``.
        current: strategies that the dump has, by node without strategies.
    """

    dump: Dump
    old: ParallelContext
    report: CheckResult | None
    structure: Structure
    twins: Mapping[Node, Node]
    current: Mapping[Node, Given]

    @property
    def target(self) -> ParallelContext:
        """The context to plan for."""
        return self.structure.context

    def takes_strategy(self, node: Node) -> bool:
        """Whether a node (without strategies) is one whose strategy can be chosen."""
        return node in self.structure.calls and primitive(node) not in FIXED


def problem_of(
    dump: Dump, context: ParallelContext, target: ParallelContext, *, counts_all: bool = False
) -> Problem:
    """The problem that a dump poses: its strategies set aside, for a context to plan for.

    Args:
        dump: a begin dump.
        context: that it was compiled under.
        target: the one to plan for.
        counts_all: every result with a gradient counts as kept, as decisions to recompute need it.

    Raises:
        CannotPlan: nothing in it takes a strategy.
    """
    kept: Set[Node] = frozenset()
    if target.stages > 1:
        kept = foreign_nodes(network_of(dump), target.stage)
    if target.stage_size == context.stage_size:
        # What the stage before hands over lies as it does now, whatever this one does with it.
        kept = {*kept, *dump.nodes(RECEIVE)}
    plain = plain_dump(dump, kept)
    twins = dict(zip(dump.nodes(), plain.nodes(), strict=True))
    structure = structure_of(plain, target)
    if not structure.calls:
        raise CannotPlan("no operator here takes a strategy")
    _refuse_unknown_sizes(structure)
    report = check(dump, context) if context.is_parallel else None
    beside = _beside(report, twins, structure)
    if beside:
        plain = plain_dump(dump, beside | kept)
        twins = dict(zip(dump.nodes(), plain.nodes(), strict=True))
        structure = structure_of(plain, target)
    current = _current(report, twins, structure)
    return Problem(dump, context, report, replace(structure, counts_all=counts_all), twins, current)


def _refuse_unknown_sizes(structure: Structure) -> None:
    """Nobody can price what has no size.

    Raises:
        CannotPlan: an operator has a tensor with an unknown dimension.
    """
    unknown = [
        node
        for node, judged in structure.calls.items()
        for tensor in (*judged.call.call.tensors, *judged.call.call.results)
        if any(size < 0 for size in tensor.shape or ())
    ]
    if unknown:
        first = unknown[0]
        raise CannotPlan(
            f"sizes of {len(dict.fromkeys(unknown))} operators are not known, the first in line "
            f"{first.line}: {first.op}; a plan would be a guess"
        )


def _beside(
    report: CheckResult | None, twins: Mapping[Node, Node], structure: Structure
) -> frozenset[Node]:
    """Operators that only their strategies show to be parallel: no gradient is taken of them."""
    return frozenset(
        item.node
        for item in (report.operators if report is not None else ())
        if item.node.has_strategy and twins[item.node] not in structure.calls
    )


def planned_context(context: ParallelContext, devices: int) -> ParallelContext:
    """The context that a plan is checked and loaded under.

    Args:
        context: that the dump was compiled under.
        devices: to plan for, of all stages.

    Raises:
        CannotPlan: MindSpore does not take that many devices.
    """
    if not 1 <= devices <= LARGEST_WORLD:
        raise CannotPlan(f"{devices} devices: a number from 1 to {LARGEST_WORLD} would do")
    mode = context.mode if context.is_parallel else "semi_auto_parallel"
    base = replace(context, rank=0, mode=mode, search="sharding_propagation")
    problem = nearest_legal(devices, base)
    if problem:
        raise CannotPlan(problem)
    # A dump of a pipeline is one stage's: what other stages do is no part of it.
    made = base.for_devices(devices)
    return replace(made, rank=context.stage * made.stage_size)


def plain_dump(dump: Dump, keep: Set[Node] = frozenset()) -> Dump:
    """The dump without the strategies that stand behind statements, but for some nodes.

    Args:
        dump: a begin dump; it is not changed, and attributes of primitives stay.
        keep: nodes of it whose strategies stay.
    """

    def item_of(item: Item | Graph) -> Item | Graph:
        if not isinstance(item, Graph):
            return item
        items = tuple(
            replace(inner, strategy=inner.strategy if inner in keep else None, graph=None)
            if isinstance(inner, Node)
            else inner
            for inner in item.items
        )
        return replace(item, items=items, dump=None)

    return replace(dump, items=tuple(item_of(item) for item in dump.items))


# -- strategies that must be ----------------------------------------------------------------------


def _current(
    report: CheckResult | None, twins: Mapping[Node, Node], structure: Structure
) -> dict[Node, Given]:
    """Strategies that the dump has, by node of the plain dump."""
    current: dict[Node, Given] = {}
    for item in report.operators if report is not None else ():
        node = twins.get(item.node)
        if node in structure.calls and item.strategy and item.node.has_strategy:
            current[node] = (item.strategy, item.out_strategy)
    return current


def pins(
    problem: Problem, given: Mapping[Node, Strategy], outs: Mapping[Node, Strategy]
) -> dict[Node, Given]:
    """Strategies that somebody wants, by node without strategies.

    Args:
        problem: the network to plan.
        given: strategies by node of the dump.
        outs: an ``out_strategy`` to some of them.

    Raises:
        CannotPlan: a node takes no strategy.
    """
    fixed: dict[Node, Given] = {}
    for node, wanted in given.items():
        twin = problem.twins[node]
        if not problem.takes_strategy(twin):
            raise CannotPlan(f"{node.id} {node.op} (line {node.line}) takes no strategy")
        fixed[twin] = (wanted, outs.get(node))
    return fixed


def configured(problem: Problem) -> dict[Node, Given]:
    """Strategies that users gave: those of the primitives' attributes.

    Args:
        problem: the network to plan.

    Returns:
        by node without strategies.
    """
    return {
        node: (judged.wanted.strategy, judged.wanted.out_strategy)
        for node, judged in problem.structure.calls.items()
        if judged.wanted.strategy is not None and primitive(node) not in FIXED
    }


def left_alone(problem: Problem, nodes: Set[Node]) -> dict[Node, Given]:
    """What operators have that nobody gives a strategy, by node without strategies.

    Args:
        problem: the network.
        nodes: operators of its dump.
    """
    own = configured(problem) if nodes else {}
    kept: dict[Node, Given] = {}
    for node in nodes:
        twin = problem.twins[node]
        if not problem.takes_strategy(twin) or twin not in problem.structure.calls:
            continue
        call = problem.structure.calls[twin].call.call
        judgement = judge(call, None, problem.structure.operators)
        if twin in own:
            kept[twin] = own[twin]
        elif judgement.verdict == "legal" and judgement.kind == "rule" and judgement.strategy:
            kept[twin] = (judgement.strategy, None)
    return kept


def outside(problem: Problem, region: set[Node]) -> dict[Node, Given]:
    """What the dump has outside of a region (nodes without strategies).

    Args:
        problem: the network to plan.
        region: nodes that may change.

    Raises:
        CannotPlan: something there has no strategy, so that nothing can be frozen.
    """
    current = problem.current
    missing = [
        node
        for node, judged in problem.structure.calls.items()
        if node not in region
        and node not in current
        and primitive(node) not in FIXED
        and judged.call.call.tensors
        and judged.judgement.kind == "rule"
    ]
    if missing:
        first = missing[0]
        raise CannotPlan(
            f"outside of the region nothing may change, but {len(missing)} operators there have no "
            f"strategy, the first in line {first.line}: {first.op}"
        )
    return {
        node: given
        for node, given in current.items()
        if node not in region and primitive(node) not in FIXED
    }
