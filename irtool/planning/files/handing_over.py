"""A plan in a form that MindSpore loads and that keeps it, or the best plan that the form can say.

A form may say less than a plan holds: which of two operators bears which number, or what operators
without a weight get.  Then the network is planned again within what the form can say, and what that
costs is told.  Nothing is handed over unread: the written text is parsed again and held to the
network (:mod:`irtool.planning.files.saved_strategies`), and each operator must get what the plan
gives it.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace

from irtool.artefacts.errors import ArtefactError
from irtool.artefacts.strategies.json import read_json_strategies
from irtool.artefacts.strategies.model import Keys, StrategyFile
from irtool.ir.dataclass import dataclass
from irtool.ir.dump import Dump
from irtool.ir.graph import Node
from irtool.ir.held import held_by
from irtool.ir.units import seconds_text, share_text
from irtool.planning.cost.kept import FIXED
from irtool.planning.cost.structure import structure_of
from irtool.planning.files.saved_strategies import check_saved, is_free
from irtool.planning.files.strategy_files import (
    NotExpressible,
    OtherNetwork,
    layout_items,
    operator_file,
    parameter_file,
    parameter_keys,
)
from irtool.planning.plans.annotate import with_strategies
from irtool.planning.plans.plan import CannotPlan, Plan
from irtool.planning.plans.step.report import StepCost, step_cost
from irtool.planning.search.problem import Carried, plain_dump
from irtool.sharding.check import check
from irtool.sharding.network.context import ParallelContext
from irtool.sharding.network.report import OperatorReport
from irtool.sharding.network.sharded_nodes import primitive


@dataclass(frozen=True, slots=True)
class Again:
    """Plans the same network within what a form can say.

    Attributes:
        dump: that is planned.
        make: the plan of it under the context that the form is loaded in; None: there is but the
            plan that was made.
    """

    dump: Dump
    make: Callable[[Carried, ParallelContext], Plan] | None = None

    def plan(self, carried: Carried, context: ParallelContext, why: str = "") -> Plan:
        """A plan of the network within what a form of handing over can say.

        Raises:
            NotExpressible: there is none.
        """
        if self.make is None:
            raise NotExpressible(why)
        try:
            return self.make(carried, context)
        except CannotPlan as error:
            raise NotExpressible(
                f"{why}; with equal strategies: {error}" if why else str(error)
            ) from None

    def as_read(self, plan: Plan, nodes: Iterable[Node]) -> tuple[Node, ...]:
        """Nodes of a plan's dump as those of the dump that is planned."""
        twins = dict(zip(plan.dump.nodes(), self.dump.nodes(), strict=True))
        return tuple(twins[node] for node in nodes)


@dataclass(frozen=True, eq=False)
class HandedOver:
    """A strategy file, and the plan that it holds.

    Attributes:
        plan: what MindSpore makes of the file.
        text: the file.
        keys: by what it is keyed.
        notes: what the reader should know: why this form, and what it costs.
    """

    plan: Plan
    text: str
    keys: Keys
    notes: tuple[str, ...] = ()


def hand_over(
    plan: Plan,
    again: Again,
    keys: Keys | None = None,
    names: Mapping[str, object] | None = None,
) -> HandedOver:
    """The strategy file that holds a plan, or the best plan that such a file can hold.

    Args:
        plan: the plan.
        again: plans the network within what a form can say.
        keys: the kind of file; None: by operators, or by parameters where that can't be.
        names: a file that MindSpore saved for this network: keys are held to it.

    Raises:
        NotExpressible: no file can hold such a plan.
    """
    if keys == "parameters":
        return _with_lines_instead(plan, by_parameters(plan, again), again)
    try:
        made = by_operators(plan, again, names)
    except NotExpressible as error:
        if keys == "operators" or isinstance(error, OtherNetwork):
            raise
        try:
            made = by_parameters(plan, again)
        except NotExpressible as other:
            raise NotExpressible(f"{error}; keyed by parameters: {other}") from None
        made = replace(made, notes=(f"keyed by parameters: {error}", *made.notes))
    else:
        if keys is None:
            made = _cheaper(plan, made, again)
    return _with_lines_instead(plan, made, again)


def _is_dearer(made: StepCost, plan: StepCost) -> bool:
    return made.seconds > plan.seconds * (1 + 1e-9)


def _cheaper(plan: Plan, made: HandedOver, again: Again) -> HandedOver:
    """A file keyed by operators, or one keyed by parameters that holds more of the plan."""
    if not _is_dearer(made.plan.after, plan.after):
        return made
    try:
        other = by_parameters(plan, again)
    except NotExpressible:
        return made
    if not _is_dearer(made.plan.after, other.plan.after):
        return made
    why = (
        "keyed by parameters: numbers of operators that this dump does not tell would take "
        f"{seconds_text(made.plan.after.seconds)} a step"
    )
    return replace(other, notes=(why, *other.notes))


def _with_lines_instead(plan: Plan, made: HandedOver, again: Again) -> HandedOver:
    """A file, with a note where lines of Python keep more of the plan than it does."""
    if not _is_dearer(made.plan.after, plan.after):
        return made
    try:
        said, _ = by_lines(plan, again)
    except NotExpressible:
        return made
    if not _is_dearer(made.plan.after, said.after):
        return made
    note = f"--format shard keeps more: {seconds_text(said.after.seconds)} a step"
    return replace(made, notes=(*made.notes, note))


def by_operators(plan: Plan, again: Again, names: Mapping[str, object] | None = None) -> HandedOver:
    """The file keyed by operators; those whose numbers are not known get one strategy.

    Args:
        plan: to hand over.
        again: plans the network anew, with such operators tied.
        names: a strategy file that MindSpore saved of this network, as JSON: it tells numbers
            apart.

    Raises:
        NotExpressible: such a file can't hold a plan of this network.
    """
    tied: tuple[tuple[Node, ...], ...] = ()
    made = plan
    while True:
        try:
            text = _text(operator_file(made, names))
            break
        except NotExpressible as error:
            if not error.tied or again.make is None:
                raise
            more = tuple(again.as_read(made, nodes) for nodes in error.tied)
            if set(more) <= set(tied):
                raise
            tied = (*tied, *more)
            made = again.plan(Carried(tied), plan.context, str(error))
    _read_back(made, text, again.dump, made.context)
    if not tied:
        return HandedOver(plan, text, "operators")
    count = sum(map(len, tied))
    why = (
        f"{count} operators whose numbers this dump does not tell got the strategies of others "
        f"like them{_price(plan, made.after)}; --names SAVED.json with a file that MindSpore "
        "saved may tell them apart"
    )
    return HandedOver(made, text, "operators", (why,))


def by_parameters(plan: Plan, again: Again) -> HandedOver:
    """The file keyed by parameters, for semi-auto mode; what it leaves out MindSpore completes.

    Args:
        plan: to hand over.
        again: plans the network anew, within what such a file can say.

    Raises:
        NotExpressible: such a file can't hold a plan of this network.
    """
    context = replace(plan.context, mode="semi_auto_parallel")
    if again.make is None or _is_sayable(plan):
        file = parameter_file(plan)[0]
        text = _text(file)
        completed = _completed(plan, text, again.dump, context)
        if _is_kept(plan, completed):
            return HandedOver(plan, text, "parameters")
        if again.make is None:
            price = _price(plan, completed.after)
            note = f"this file can't say all of the plan: MindSpore completes it{price}"
            text = _text({**file, "parallel_layout_item": layout_items(completed.report)})
            return HandedOver(completed, text, "parameters", (note,))
    made = again.plan(_by_weights(plan, again), context)
    text = _text(parameter_file(made)[0])
    _read_back(made, text, again.dump, context)
    note = (
        "to be loaded in semi-auto mode: operators without a weight get what the code or MindSpore "
        "gives them"
        f"{_price(plan, made.after)}"
    )
    return HandedOver(made, text, "parameters", (note,))


def _is_sayable(plan: Plan) -> bool:
    """Whether a file keyed by parameters can say what operators with a weight get."""
    rows: dict[str, object] = {}
    keys = parameter_keys(plan)
    return all(
        item.out_after is None and rows.setdefault(keys[item.node], item.after) == item.after
        for item in plan.operators
        if item.node in keys
    )


def _by_weights(plan: Plan, again: Again) -> Carried:
    """What a file keyed by parameters can say."""
    keys = parameter_keys(plan)
    groups: dict[str, list[Node]] = {}
    left: list[Node] = []
    planned = [item.node for item in plan.operators]
    for node, twin in zip(planned, again.as_read(plan, planned), strict=True):
        if node in keys and is_free(twin):
            groups.setdefault(keys[node], []).append(twin)
        else:
            left.append(twin)
    tied = [tuple(nodes) for nodes in groups.values() if len(nodes) > 1]
    return Carried(tuple(tied), frozenset(left), outs=False)


# -- as lines of Python --------------------------------------------------------------------------


def by_lines(plan: Plan, again: Again) -> tuple[Plan, tuple[str, ...]]:
    """The plan that ``.shard(...)`` calls can say in semi-auto mode, and what is to be known of it.

    A primitive has one strategy wherever it is used, and one that no attribute holds has none: it
    gets what the code or MindSpore gives it.

    Args:
        plan: to hand over.
        again: plans the network anew, within what such calls can say.

    Raises:
        NotExpressible: no such calls keep a plan of this network.
    """
    context = replace(plan.context, mode="semi_auto_parallel")
    rows: dict[object, object] = {}
    agree = all(
        rows.setdefault(held_by(item.node) or item.node, strategies) == strategies
        for item in plan.operators
        if (strategies := (item.after, item.out_after))[0] is not None
    )
    if agree and _is_kept(plan, _with_calls(plan, again.dump, context)):
        return plan, ()
    made = again.plan(_by_calls(plan, again), context, "its lines can't say all of this plan")
    if not _is_kept(made, _with_calls(made, again.dump, context)):
        raise NotExpressible("MindSpore would complete these lines to another plan")
    note = (
        "for semi-auto mode: uses of one primitive have one strategy, and what no attribute holds "
        f"gets what MindSpore gives it{_price(plan, made.after)}"
    )
    return made, (note,)


def _by_calls(plan: Plan, again: Again) -> Carried:
    """What ``.shard(...)`` calls can say."""
    groups: dict[tuple[str, str], list[Node]] = {}
    left: list[Node] = []
    planned = [item.node for item in plan.operators]
    for node, twin in zip(planned, again.as_read(plan, planned), strict=True):
        held = held_by(node)
        if held is None:
            left.append(twin)
        else:
            groups.setdefault(held, []).append(twin)
    tied = [tuple(nodes) for nodes in groups.values() if len(nodes) > 1]
    return Carried(tuple(tied), frozenset(left))


def _with_calls(plan: Plan, dump: Dump, context: ParallelContext) -> Plan:
    """What MindSpore makes of a network with the calls for a plan: its own for the rest."""
    bare = _unplanned(plan, dump)
    twins = dict(zip(plan.dump.nodes(), bare.nodes(), strict=True))
    said = [item for item in plan.operators if held_by(item.node) and item.after is not None]
    written = with_strategies(
        bare,
        {twins[item.node]: item.after for item in said if item.after is not None},
        {twins[item.node]: item.out_after for item in said if item.out_after is not None},
    )
    return replace(plan, dump=written, context=context, report=check(written, context))


def _unplanned(plan: Plan, dump: Dump) -> Dump:
    """The dump without the strategies that a plan decides: what other stages do, it does not."""
    planned = {item.node for item in plan.operators}
    pairs = zip(dump.nodes(), plan.dump.nodes(), strict=True)
    return plain_dump(
        dump, {node for node, made in pairs if made.strategy is not None and made not in planned}
    )


def _price(plan: Plan, made: StepCost) -> str:
    """What it costs that a form says less, and whether the dump's own strategies cost less still.

    Args:
        plan: what the form can't say all of.
        made: what is paid for what it says.
    """
    free, own = plan.after, plan.before
    if not _is_dearer(made, free):
        return ", which costs nothing"
    text = (
        f": {seconds_text(made.seconds)} a step where the plan takes "
        f"{seconds_text(free.seconds)} ({share_text(made.seconds / free.seconds - 1)} more)"
    )
    if own is not None and _is_dearer(made, own):
        text += f", and what the dump has {seconds_text(own.seconds)}"
    return text


# -- read back -----------------------------------------------------------------------------------


def _text(file: Mapping[str, object]) -> str:
    return json.dumps(file, sort_keys=True) + "\n"


def _file(text: str) -> StrategyFile:
    """What a written file says.

    Raises:
        NotExpressible: nothing that can be read back: a plan that keeps strategies of 0 parts, say.
    """
    try:
        return read_json_strategies("plan.json", text.encode())
    except ArtefactError as error:
        raise NotExpressible(f"read back, {error.message}") from None


def _read_back(plan: Plan, text: str, dump: Dump, context: ParallelContext) -> None:
    """Hold a written file to the network.

    Raises:
        NotExpressible: under it MindSpore would not do what the plan says.
    """
    completed = _completed(plan, text, dump, context)
    if not _is_kept(plan, completed):
        first = next(
            (one.node for one, other in _pairs(plan, completed) if one.strategy != other.strategy),
            plan.report.operators[0].node,
        )
        raise NotExpressible(
            f"read back, the file does not give {first.op} in line {first.line} what was planned"
        )


def _is_kept(plan: Plan, completed: Plan) -> bool:
    """Whether every operator gets what a plan gives it."""
    return all(
        primitive(one.node) in FIXED
        or (one.strategy, one.out_strategy) == (other.strategy, other.out_strategy)
        for one, other in _pairs(plan, completed)
    )


def _pairs(plan: Plan, completed: Plan) -> Iterator[tuple[OperatorReport, OperatorReport]]:
    """Operators as planned, each with what it becomes under the file.

    Raises:
        NotExpressible: one of them is no sharded operator any more: its strategy has no parts, say.
    """
    planned, again = plan.report.operators, completed.report.operators
    if len(planned) != len(again):
        raise NotExpressible(
            f"read back, the file leaves {len(again)} of {len(planned)} operators with a strategy"
        )
    return zip(planned, again, strict=True)


def _completed(plan: Plan, text: str, dump: Dump, context: ParallelContext) -> Plan:
    """What MindSpore makes of a network with a file: what the file says, and its own for the rest.

    Raises:
        NotExpressible: MindSpore would refuse it, or what it makes of it is not known.
    """
    bare = _unplanned(plan, dump)
    saved = check_saved(bare, context, _file(text))
    if unknown := saved.of("unknown", "names nothing"):
        raise NotExpressible(f"read back, {unknown[0].key} of the file names no certain operator")
    report = saved.report
    if report.accepted is False:
        first = next(item for item in report.findings if item.severity == "error")
        raise NotExpressible(f"MindSpore would refuse the file: {first.message}")
    written = with_strategies(
        bare,
        {item.node: item.strategy for item in report.operators
         if item.strategy is not None and primitive(item.node) not in FIXED},
        {item.node: item.out_strategy for item in report.operators
         if item.out_strategy is not None},
    )  # fmt: skip
    again = check(written, context)
    cost = step_cost(structure_of(written, context), again, plan.after.machine)
    twins = dict(zip(plan.dump.nodes(), written.nodes(), strict=True))
    operators = tuple(replace(item, node=twins[item.node]) for item in plan.operators)
    return replace(
        plan, dump=written, context=context, report=again, operators=operators, after=cost
    )
