"""``check``: what MindSpore's parallel compiler will say of a network before anyone asks it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from math import prod

from irtool.ir.dump import Dump
from irtool.ir.finding import Finding
from irtool.ir.graph import Node
from irtool.ir.group_names import group_name
from irtool.ir.types import BITS
from irtool.operators.judgement import Collective
from irtool.operators.measured import VERSIONS
from irtool.operators.table import operator_of
from irtool.sharding.network.accumulated import check_accumulated
from irtool.sharding.network.analysis import (
    Analysis,
    Judged,
    analysis_of,
    inserted_node,
)
from irtool.sharding.network.backward import check_backward
from irtool.sharding.network.collective_types import check_sums
from irtool.sharding.network.communications import (
    Inserted,
    Phase,
    StepCommunication,
    StepCommunications,
    communications,
)
from irtool.sharding.network.context import ParallelContext
from irtool.sharding.network.data import check_result, dataset_slices
from irtool.sharding.network.edges import Redistribution, redistribute
from irtool.sharding.network.global_norm import global_norms
from irtool.sharding.network.gradients import Differentiated, differentiated
from irtool.sharding.network.graphs import Network, network_of
from irtool.sharding.network.judged import judge_operators
from irtool.sharding.network.loss import loss_nodes
from irtool.sharding.network.needed import launched
from irtool.sharding.network.noted_sizes import check_noted_sizes
from irtool.sharding.network.positions import check_positions
from irtool.sharding.network.propagated import propagate_layouts
from irtool.sharding.network.recomputation import Recomputed, recomputed
from irtool.sharding.network.report import (
    CheckResult,
    CollectiveReport,
    DatasetReport,
    OperatorReport,
    ParameterReport,
    RedistributionReport,
)
from irtool.sharding.network.reshape import judge_reshapes
from irtool.sharding.network.sens import check_sens
from irtool.sharding.network.strategies import Wanted
from irtool.sharding.network.weights import (
    check_users,
    trained_parameters,
    weights,
)
from irtool.sharding.network.weights_across_stages import check_handed
from irtool.sharding.own_code import own_code_of


def check(
    dump: Dump,
    context: ParallelContext,
    instead: Mapping[Node, Wanted] | None = None,
    network: Network | None = None,
) -> CheckResult:
    """Check the strategies of a whole network, and predict what follows from them.

    Args:
        dump: a dump taken before MindSpore's parallel pass (``step_parallel_begin``).
        context: devices and options, as given to ``set_auto_parallel_context``.
        instead: strategies or layouts to judge in the place of those in the dump, by node.
        network: the dump with its edges resolved, where somebody has it already.

    Returns:
        Whether MindSpore accepts the network, why not, and what becomes of operators, edges,
        parameters and the dataset, seen from ``context.rank``. Where it refuses the network there
        is no prediction of edges and parameters beyond the refusal. A dump taken after the pass
        gives a report that says so, and nothing else.
    """
    if not context.is_parallel:
        return CheckResult(True, context, ())
    analysis = analysis_of(network or network_of(dump), context)
    if _is_of_no_begin(analysis, dump):
        return CheckResult(None, context, tuple(analysis.findings))
    parameters, redistributions = _judge_network(analysis, dump, instead or {})
    every = _operators(analysis)
    operators = tuple(item for item in every if item.node not in analysis.foreign)
    broadcasts, norms = tuple(_broadcasts(analysis)), tuple(_norms(analysis))
    step = StepCommunications()
    again = Recomputed()
    gradients = _gradients(analysis, redistributions)
    if _accepted(analysis) is not False:
        again = recomputed(analysis, gradients, redistributions)
        others = _others(broadcasts, norms)
        inserted = Inserted(tuple(redistributions), tuple(parameters), others)
        step = communications(analysis, gradients, again, inserted)
    return CheckResult(
        accepted=_accepted(analysis),
        context=context,
        findings=tuple(analysis.findings),
        operators=operators,
        redistributions=tuple(
            _redistribution(item)
            for item in redistributions
            if item.edge.consumer not in analysis.foreign
        ),
        parameters=tuple(parameters),
        dataset=tuple(
            DatasetReport(
                item.input, item.parameter, item.layout.tensor_shape, item.slice, item.offset
            )
            for item in dataset_slices(analysis)
        ),
        broadcasts=broadcasts,
        norms=norms,
        communications=step.items,
        communications_unknown=step.unknown,
        communications_owned=step.owned,
        again=again,
        merged=step.merged,
        by_node={operator.node: operator for operator in operators},
        elsewhere={item.node: item for item in every if item.node in analysis.foreign},
    )


def _is_of_no_begin(analysis: Analysis, dump: Dump) -> bool:
    """Whether a dump is of another pass, or of code that the pass does not see; notes that."""
    inserted = inserted_node(analysis.network)
    if inserted is not None:
        analysis.doubt("the dump was taken after the parallel pass, its shapes are local", inserted)
        return True
    own = None if BEGIN in dump.path else own_code_of(dump)
    if own is not None:
        # Where MindSpore's own pass sees such a graph, it refuses it.
        analysis.doubt(own.message, own.node)
    return own is not None


def _judge_network(
    analysis: Analysis, dump: Dump, instead: Mapping[Node, Wanted]
) -> tuple[Sequence[ParameterReport], Sequence[Redistribution]]:
    """All that MindSpore's pass looks at, in its order: operators, weights, what joins them.

    Args:
        analysis: takes what is found.
        dump: that is judged.
        instead: strategies or layouts in the place of those in the dump, by node.

    Returns:
        The weights as the pass slices them, and what it inserts on edges.
    """
    for problem in analysis.context.refusals():
        analysis.refuse("context", problem, CONTEXT_CHECK, None)
    if is_older(dump):
        message = f"what was measured with MindSpore {VERSIONS} is taken for this older dump, too"
        analysis.note(message, None)
    judge_operators(analysis, instead)
    _note_declared(analysis)
    propagate_layouts(analysis)
    judge_reshapes(analysis)
    check_users(analysis)
    parameters = weights(analysis)
    check_handed(analysis, parameters)
    check_accumulated(analysis, parameters)
    check_positions(analysis)
    check_sums(analysis)
    check_result(analysis)
    check_sens(analysis)
    redistributions = redistribute(analysis)
    check_noted_sizes(analysis, redistributions)
    return parameters, redistributions


def _note_declared(analysis: Analysis) -> None:
    """Say once which operators are judged by what a user declares of them."""
    declared = [
        judged.call.call.op
        for judged in analysis.judged.values()
        if operator_of(judged.call.call.op).declared
    ]
    if not declared:
        return
    count = "1 operator is" if len(declared) == 1 else f"{len(declared)} operators are"
    names = ", ".join(sorted(set(declared)))
    analysis.note(f"{count} judged by the user's declarations, not by measurement: {names}", None)


SPELLED_SINCE = "2.3.0 or later"
"""The spelling of 2.3 to 2.6; parameters of later versions say that they are parameters."""


def is_older(dump: Dump) -> bool:
    """Whether a dump is of a version before those that operators were measured with."""
    if dump.dialect == SPELLED_SINCE:
        return any(item.has_default for item in dump.parameters)
    return "later" not in dump.dialect and dump.dialect != "unknown"


BEGIN = "step_parallel_begin"
"""In the name of a dump that MindSpore's parallel pass wrote before it began."""

CONTEXT_CHECK = "step_parallel_utils.cc:ParallelInit"


def _accepted(analysis: Analysis) -> bool | None:
    """MindSpore's answer; a refusal holds whatever else is unknown."""
    if analysis.is_refused:
        return False
    return None if analysis.is_unknown else True


def _gradients(analysis: Analysis, redistributions: Sequence[Redistribution]) -> Differentiated:
    """Where a gradient comes back; nothing of it where MindSpore refuses the network before."""
    if _accepted(analysis) is False or not analysis.differentiates:
        return Differentiated()
    gradients = differentiated(analysis, trained_parameters(analysis), redistributions)
    check_backward(analysis, gradients)
    return gradients


def _operators(analysis: Analysis) -> tuple[OperatorReport, ...]:
    losses = loss_nodes(analysis)
    return tuple(
        OperatorReport(
            node=node,
            op=judged.call.call.op,
            verdict=judged.judgement.verdict,
            strategy=judged.judgement.strategy,
            out_strategy=judged.wanted.out_strategy,
            judgement=judged.judgement,
            call=judged.call,
            collectives=tuple(_collective(judged, item) for item in launched(analysis, judged)),
            is_loss=node in losses,
        )
        for node, judged in analysis.judged.items()
    )


def _collective(judged: Judged, item: Collective) -> CollectiveReport:
    dtype = item.dtype_in(judged.call.call)
    return CollectiveReport(
        op=item.op,
        ranks=item.ranks,
        group=item.group,
        bytes=None if item.shape is None else _size(dtype, item.shape),
        why=item.why,
        reduce=item.reduce,
        output=item.output,
        count=judged.judgement.parts,
    )


def _size(dtype: str | None, shape: Sequence[int]) -> int | None:
    """Bytes of a tensor; None if a size of it is not known."""
    if any(size < 0 for size in shape):
        return None
    return prod(shape) * BITS.get(dtype or "", 32) // 8


def _others(
    broadcasts: tuple[CollectiveReport, ...], norms: tuple[CollectiveReport, ...]
) -> tuple[StepCommunication, ...]:
    """What is communicated for the network as a whole."""
    phases: dict[Phase, tuple[CollectiveReport, ...]] = {"forward": broadcasts, "optimizer": norms}
    return tuple(
        StepCommunication(item.op, item.ranks, item.bytes, phase, item.count, item.why)
        for phase, items in phases.items()
        for item in items
    )


def _broadcasts(analysis: Analysis) -> Iterator[CollectiveReport]:
    """``pipeline_result_broadcast``: an AllReduce of each result among all stages (inference)."""
    context, entry = analysis.context, analysis.network.entry
    result = entry.result if entry is not None else None
    if not context.result_broadcast or analysis.trains or context.stages == 1 or result is None:
        return
    ranks = tuple(range(context.rank % context.stage_size, context.devices, context.stage_size))
    types = result.input_types
    abstract = types[0] if types else None
    source = analysis.network.returned(entry) if entry is not None else None
    if abstract is None and isinstance(source, Node) and source.input_types:
        abstract = source.input_types[0]  # of stages that have no result: something like it
    for dtype, shape in abstract.tensors if abstract is not None else ():
        yield CollectiveReport(
            op="AllReduce",
            ranks=ranks,
            group=group_name(ranks, context.devices, context.target),
            bytes=_size(dtype, shape),
            why="the last stage hands its result to all stages",
            reduce="sum",
        )


def _norms(analysis: Analysis) -> Iterator[CollectiveReport]:
    """What clipping by the global norm of the gradients communicates: a number or a few."""
    context = analysis.context
    between = tuple(range(context.rank % context.stage_size, context.devices, context.stage_size))
    for root in global_norms(analysis):
        abstract = root.input_types[0] if root.input_types else None
        tensors = abstract.tensors if abstract is not None else ()
        size = _size(*tensors[0]) if tensors else None
        for ranks, where in ((context.stage_ranks, "a stage"), (between, "all stages")):
            if where == "a stage" or context.stages > 1:
                yield CollectiveReport(
                    op="AllReduce",
                    ranks=ranks,
                    group=group_name(ranks, context.devices, context.target),
                    bytes=size,
                    why=f"global norm of the gradients, over {where}",
                    reduce="sum",
                )


def _redistribution(item: Redistribution) -> RedistributionReport:
    edge = item.edge
    return RedistributionReport(
        producer=edge.producer,
        consumer=edge.consumer,
        input=edge.position,
        item=edge.item,
        tie=edge.tie,
        source=item.source,
        target=item.target,
        operators=item.operators,
        why=item.why,
        replaces=item.replaces,
    )


def of_what_was_read(result: CheckResult, dump: Dump) -> CheckResult:
    """A result of a dump, where statements that could not be read are parts that nobody knows.

    Args:
        result: what ``check`` says of the statements that were read.
        dump: with its problems.

    Returns:
        ``accepted`` is None instead of True where errors of reading are there; a refusal holds.
    """
    unread = [problem for problem in dump.problems if problem.severity == "error"]
    if not unread:
        return result
    message = f"statements could not be read, the first in line {unread[0].line}"
    finding = Finding("unknown", "warning", message, dump.path)
    accepted = None if result.accepted else result.accepted
    return replace(result, accepted=accepted, findings=(*result.findings, finding))
