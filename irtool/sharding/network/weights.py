"""Parameters: how each lies, who sums its gradient, and who shares its optimizer state."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from irtool.ir.graph import Graph, GraphParameter, Node, Source
from irtool.ir.parameter_roles import parameter_roles
from irtool.ir.types import BITS
from irtool.ir.values import SymbolicKey
from irtool.operators.checks import SERVER, check_group
from irtool.operators.judgement import Context, Refused
from irtool.operators.layout import TensorLayout, ranks_along, replicas
from irtool.sharding.network.analysis import Analysis, Judged, item_of
from irtool.sharding.network.context import ParallelContext
from irtool.sharding.network.graphs import Network, Port, Use
from irtool.sharding.network.received import (
    RECEIVE,
    SEND,
    is_handed,
    is_received,
    received_weight,
)
from irtool.sharding.network.sharded_nodes import primitive
from irtool.sharding.network.states import ParameterReport, like_original, original_of

UNTRAINED = frozenset({("BatchNorm", 3), ("BatchNorm", 4)})
"""Operands that are not trained, where nothing else tells: the running mean and variance."""

KEY = "[Key][Parameter]"
"""What stands before a parameter's name where its gradient is taken out by a constant key."""

ASSUMED = "nothing in the dump tells whether it requires a gradient; taken to require one"
"""Of mirrors in networks that take gradients of their inputs only."""

HANDS_ON = frozenset({"Load", "Cast", "Send", "Receive"})
"""What stands between a weight and the operators that use it, in stages behind the first, too."""

ADASUM = "AdaSum"
"""What the scope of an optimizer holds that sums gradients between servers by itself."""

DIFFERENT = "step_parallel_utils.cc:IsSameTensorInfo"
INTERLEAVED = "parallel_preprocessor.cc:SetParallelShape"


def check_users(analysis: Analysis) -> None:
    """Refuse a parameter whose users want it in different layouts.

    Each user is told of that wants another layout than most do (of as many, than the first does).

    Args:
        analysis: with every operator judged; takes the refusals.
    """
    for port in analysis.order:
        if not isinstance(port, GraphParameter) or not is_weight(port):
            continue
        users = sorted(_users(analysis, port), key=lambda use: use.node.line)
        wanted = [(use, layout) for use in users
                  if (layout := _wanted(analysis, use)) is not None]  # fmt: skip
        if all(wanted[0][1].same_as(layout) for _, layout in wanted[1:]):
            continue
        alike = [sum(layout.same_as(other) for _, other in wanted) for _, layout in wanted]
        first = wanted[alike.index(max(alike))]
        for other in wanted:
            if first[1].same_as(other[1]):
                continue
            listed = ", ".join(f"{use.node.op} slices of {layout.slice_shape}"
                             for use, layout in (first, other))  # fmt: skip
            message = (
                f"the parameter {port.name} has several users that want it in different layouts: "
                f"{listed}"
            )
            analysis.refuse("parameter-users", message, DIFFERENT, other[0].node, "parameter")


def is_weight(parameter: GraphParameter) -> bool:
    """Whether a parameter has a value of its own, and is no input that each step is given.

    Args:
        parameter: of any graph; only the entry's are declared.
    """
    return parameter.declaration is not None and parameter.declaration.has_default


def _users(analysis: Analysis, parameter: GraphParameter) -> list[Use]:
    """Operators that use a parameter: directly, or the first one behind each use of a Load."""
    network = analysis.network
    uses: list[Use] = []
    for use in network.users_of(parameter):
        if primitive(use.node) != "Load":
            if use.node in analysis.judged:
                uses.append(use)
            continue
        if use.position != 0:
            continue
        for loaded in network.users_of(use.node):
            if primitive(loaded.node) == "UpdateState" or loaded.node not in network.forward:
                continue
            if loaded.node in analysis.judged:
                uses.append(loaded)
            elif (first := _first_behind(analysis, loaded.node, loaded.position)) is not None:
                uses.append(_item_of(loaded, first))
    return list(dict.fromkeys(uses))


def operators_behind(analysis: Analysis, parameter: GraphParameter) -> set[Node]:
    """Every operator that uses a parameter: behind Load, and in the graphs that are called with it.

    Several pipeline stages may use one weight, each behind a Load of its own.

    Args:
        analysis: with every operator judged; others are not counted.
        parameter: of any graph.
    """
    network = analysis.network
    todo: list[Port] = [parameter]
    seen: set[int] = set()
    operators: set[Node] = set()
    while todo:
        port = todo.pop()
        if id(port) in seen:
            continue
        seen.add(id(port))
        for use in network.users_of(port):
            graph = network.called(use.node) or _differentiated(analysis, use.node)
            inner = network.parameter(graph, use.position) if graph is not None else None
            if inner is not None:
                todo.append(inner)
            elif is_received(analysis, use.node):
                continue  # names the weight, and reads nothing of it
            elif primitive(use.node) in HANDS_ON and use.position == 0:
                todo.append(use.node)
            elif use.node in analysis.judged:
                operators.add(use.node)
    return operators


def _first_behind(analysis: Analysis, node: Node, position: int) -> Use | None:
    """The nearest operator behind a node that hands on its operand."""
    network = analysis.network
    todo: list[Use] = list(_forward_uses(analysis, node))
    if network.called(node) is not None:
        todo = [Use(node, position)]
    seen: set[tuple[int, int]] = set()
    while todo:
        use = todo.pop(0)
        if (id(use.node), use.position) in seen:
            continue
        seen.add((id(use.node), use.position))
        if use.node in analysis.judged:
            return use
        graph = network.called(use.node)
        if graph is not None:
            parameter = network.parameter(graph, use.position)
            if parameter is not None:
                uses = network.users_of(parameter)
                todo += [u for u in uses if primitive(u.node) not in ("MakeTuple", "UpdateState")]
            continue
        todo += _forward_uses(analysis, use.node)
    return None


def _item_of(use: Use, behind: Use) -> Use:
    """The use that was found behind another one, which may be that of a tuple's item."""
    if primitive(use.node) in ("MakeTuple", "MakeList"):
        return behind._replace(item=use.position)
    return behind


def _forward_uses(analysis: Analysis, node: Node) -> Iterator[Use]:
    for use in analysis.network.users_of(node):
        if use.node in analysis.network.forward and primitive(use.node) != "UpdateState":
            yield use


def _wanted(analysis: Analysis, use: Use) -> TensorLayout | None:
    judged = analysis.judged.get(use.node)
    return None if judged is None else judged.input_layout(use.position, use.item)


def weights(analysis: Analysis) -> list[ParameterReport]:
    """All parameters of the entry that are weights and stay in this stage, in the dump's order.

    Args:
        analysis: with every operator judged; takes refusals of weights that are to be interleaved.

    Returns:
        Each with its slice, and the ranks that sum its gradient, gather it and scatter its
        gradient; states of optimizers lie like their weights.
    """
    entry = analysis.network.entry
    if entry is None:
        return []
    updated = _trained(analysis)
    trained = None if updated is None else updated | _summed_up(analysis)
    mirrors = _mirrors(analysis, trained)
    by_name: dict[str, ParameterReport] = {}
    for parameter in entry.parameters:
        if not is_weight(parameter):
            continue
        weight = weight_of(analysis, parameter)
        untrained = trained is not None and id(parameter) not in trained
        sums = weight.mirror_ranks is not None or weight.scatter_ranks is not None
        if sums and (untrained or not analysis.differentiates):
            weight = replace(weight, mirror_ranks=None, scatter_ranks=None)
        ranks = mirrors.get(id(parameter))
        if ranks is None and weight.mirror_ranks is not None:
            # What sums no gradients sums none between the shares of an optimizer's shards, too.
            if not is_handed(analysis, parameter):
                weight = replace(weight, mirror_ranks=None)
        elif ranks is not None and weight.gather_ranks is None:
            # Optimizer parallel over all replicas makes the mirror needless.
            why = weight.why or (ASSUMED if trained is None else "")
            weight = replace(weight, mirror_ranks=ranks, why=why)
        by_name[parameter.name] = weight
    own: dict[str, ParameterReport] = {}
    for name, weight in by_name.items():
        if not _is_foreign(analysis, weight, by_name):
            own[name] = weight
        elif _is_updated(weight, by_name, updated):
            own[name] = replace(weight, mirror_ranks=None, scatter_ranks=None, is_read=False)
    return [like_original(analysis, weight, own) for weight in own.values()]


def _is_foreign(
    analysis: Analysis, weight: ParameterReport, by_name: dict[str, ParameterReport]
) -> bool:
    """Whether only operators of other stages use a weight (or that which it is a state of)."""
    if not analysis.foreign:
        return False
    original = original_of(weight, by_name) or weight
    users = operators_behind(analysis, original.parameter)
    return bool(users) and users <= analysis.foreign


def _is_updated(
    weight: ParameterReport, by_name: dict[str, ParameterReport], updated: set[int] | None
) -> bool:
    """Whether this stage's optimizer updates a weight (or that which it is a state of).

    Where stages share lazily inlined cells MindSpore leaves the updates of one or the other weight
    that only other stages read, with a gradient of zeros: the stage keeps such a weight, with all
    its states (MindSpore 2.7, the table of a decoder on each stage but the first).
    """
    original = original_of(weight, by_name) or weight
    return updated is not None and id(original.parameter) in updated


def weight_of(analysis: Analysis, parameter: GraphParameter) -> ParameterReport:
    """How a weight lies, and who shares its optimizer's states; not yet who sums its gradient.

    Args:
        analysis: with every operator judged; takes a refusal where it is to be interleaved.
        parameter: of the entry.

    Returns:
        Without slice and with the reason where its first user is not legal, or its layout not
        known.
    """
    shape = (parameter.type.dimensions if parameter.type else None) or ()
    known = parameter_roles(analysis.network.dump).get(parameter.name)
    plain = ParameterReport(
        parameter.name,
        parameter,
        shape,
        shape,
        shape,
        None,
        role=known.role if known is not None else "weight",
        weight=known.weight if known is not None else parameter.name,
    )
    received = received_weight(analysis.network, parameter)
    if received is not None and received.output_type is not None:
        return replace(plain, shape=received.output_type.dimensions or shape)
    use = _care_user(analysis, parameter, set())
    if use is None:
        return plain
    judged = analysis.judged[use.node]
    if judged.judgement.verdict != "legal":
        why = f"its user {use.node.id} {primitive(use.node)} is {judged.judgement.verdict}"
        return replace(plain, slice=None, base=None, user=use.node, why=why)
    layout = judged.input_layout(use.position, use.item)
    _check_interleaving(analysis, parameter, use)
    tensor = judged.call.slots.tensor(use.position, use.item)
    if layout is None or tensor is None:
        return replace(plain, slice=None, base=None, user=use.node, why="its layout is not known")
    local = judged.judgement.input_slices[tensor]
    weight = replace(plain, slice=local, base=local, layout=layout, user=use.node)
    return _optimizer_parallel(analysis, weight)


def _check_interleaving(analysis: Analysis, parameter: GraphParameter, use: Use) -> None:
    """Refuse a weight that is cut along the interleaving axis: it can't be computed in turn."""
    judged = analysis.judged[use.node]
    tensor = judged.call.slots.tensor(use.position, use.item)
    layouts = judged.wanted.in_layout or ()
    if tensor is not None and tensor < len(layouts) and layouts[tensor].interleaves:
        message = f"the parameter {parameter.name} can not be interleaved"
        analysis.refuse("interleaved-parameter", message, INTERLEAVED, use.node, "parameter")


def _care_user(analysis: Analysis, port: Port, seen: set[int]) -> Use | None:
    """The operator that decides a parameter's layout: breadth before depth, calls last."""
    user = _care_user_here(analysis, port, seen)
    if user is not None:
        return user
    network = analysis.network
    for use in network.users_of(port):
        graph = network.called(use.node) or _differentiated(analysis, use.node)
        if graph is None:
            continue
        inner = network.parameter(graph, use.position)
        if inner is not None and id(inner) not in seen:
            user = _care_user(analysis, inner, seen | {id(inner)})
            if user is not None:
                return user
    return None


def _differentiated(analysis: Analysis, node: Node) -> Graph | None:
    """The graph that a node applies the gradient function of, if it does."""
    callee = analysis.network.callee.get(node)
    if isinstance(callee, Node) and primitive(callee) == "J":
        graph = analysis.network.first(callee)
        return analysis.network.dump.graph(getattr(graph, "name", ""))
    return None


def _in_order(analysis: Analysis, port: Port) -> list[Use]:
    """The users of a value: where one dump holds several stages, those of the first stage first.

    Users were put in order before the stages were cut from one another: what a later stage is sent
    made no difference then.
    """
    uses = analysis.network.users_of(port)
    return sorted(uses, key=lambda use: use.node.line) if analysis.foreign else list(uses)


def _care_user_here(analysis: Analysis, port: Port, seen: set[int]) -> Use | None:
    later: list[Use] = []
    for use in _in_order(analysis, port):
        name = primitive(use.node)
        if not name or (name == "Depend" and use.position != 0) or name in ("Receive", "Send"):
            continue
        if name == "UpdateState":
            continue
        if name == "Generator":
            return None
        if use.node in analysis.judged:
            return use
        later.append(use)
    for use in later:
        if id(use.node) not in seen:
            seen.add(id(use.node))
            user = _care_user_here(analysis, use.node, seen)
            if user is not None:
                return _item_of(use, user)
    return None


# -- optimizer parallel ------------------------------------------------------------------------


def _optimizer_parallel(analysis: Analysis, weight: ParameterReport) -> ParameterReport:
    return shared_state(weight, analysis.context, analysis.operators)


def shared_state(
    weight: ParameterReport, context: ParallelContext, operators: Context
) -> ParameterReport:
    """Cut a replicated weight along its first dimension over those who hold the same slice.

    This is MindSpore's optimizer parallel. Where the weight is smaller than the threshold, is
    excluded, does not divide, or needs a group that can't be made, it stays whole.

    Args:
        weight: with its layout, before optimizer parallel.
        context: whether, above which size, and over how many replicas weights are cut.
        operators: the devices of the stage, and the rank that looks.

    Returns:
        The weight with the slice that is stored, the ranks that gather and scatter it, and those
        that hold the same share where there are more replicas than shards; or the weight as it was.
    """
    layout = weight.layout
    if not context.parallel_optimizer or layout is None or not weight.base:
        return weight
    if _bytes(weight) < context.threshold * 1024 or context.excludes(weight.name):
        return weight
    ranks, rank = operators.devices, operators.own_rank
    group = replicas(layout, ranks, rank)
    size = context.weight_shard_size
    if len(group) == 1:
        return weight
    parts = size if size != -1 and len(group) >= size else len(group)
    if weight.base[0] % parts:
        return weight
    mirror: tuple[int, ...] | None = None
    if parts < len(group):
        if len(group) % parts:
            return weight
        rest = len(group) // parts
        block = group.index(rank) // parts
        matrix = (rest, len(ranks) // rest)
        mirror = ranks_along(matrix, (0,), ranks, rank)
        group = group[block * parts : (block + 1) * parts]
    for members, what in ((group, "gather"), (mirror or (), "mirror")):
        try:
            check_group(members, f"optimizer parallel {what} of {weight.name}", operators)
        except Refused:
            # MindSpore only warns, and leaves the weight whole.
            return weight
    local = (weight.base[0] // parts, *weight.base[1:])
    return replace(
        weight, slice=local, gather_ranks=group, scatter_ranks=group, mirror_ranks=mirror
    )


def _bytes(weight: ParameterReport) -> int:
    """Bytes of the whole weight, the unsliced one."""
    count = 1
    for size in weight.shape:
        count *= size
    dtype = weight.parameter.type.dtype if weight.parameter.type else None
    return count * max(BITS.get(dtype or "", 32), 8) // 8


# -- mirrors -----------------------------------------------------------------------------------


def _mirrors(analysis: Analysis, trained: set[int] | None) -> dict[int, tuple[int, ...]]:
    """Per parameter (by identity) the ranks over which its gradient is summed."""
    by_parameter: dict[int, tuple[int, ...]] = {}
    if not analysis.differentiates:
        return by_parameter
    adasum = sums_by_server(analysis)
    own = analysis.operators.own_rank
    for port in analysis.order:
        judged = analysis.judged.get(port) if isinstance(port, Node) else None
        if judged is None or judged.judgement.verdict != "legal":
            continue
        mirrors = judged.judgement.mirrors
        for tensor, position, source in tensors_of(analysis, judged):
            parameter = behind(analysis, source)
            if parameter is None and analysis.context.parallel_optimizer:
                parameter = _given(analysis, source)
            if parameter is None or tensor >= len(mirrors) or id(parameter) in by_parameter:
                continue
            if trained is not None and id(parameter) not in trained:
                continue
            if trained is None and (primitive(judged.node), position) in UNTRAINED:
                continue
            ranks = _of_server(mirrors[tensor], own) if adasum else mirrors[tensor]
            if is_mirrored(analysis, judged, ranks) and judged.node not in analysis.foreign:
                by_parameter[id(parameter)] = ranks
    return by_parameter


def is_mirrored(analysis: Analysis, judged: Judged, ranks: tuple[int, ...]) -> bool:
    """Whether MindSpore makes a group that sums up a gradient between these ranks.

    Groups of one rank are kept where micro-batches and optimizer parallel meet; not of layouts.

    Args:
        analysis: that knows whether gradients are accumulated.
        judged: the operator that uses the weight.
        ranks: that hold the same slice of it, the own one included.
    """
    keeps_one = analysis.accumulates and analysis.context.parallel_optimizer
    return len(ranks) > 1 or (bool(ranks) and keeps_one and judged.wanted.in_layout is None)


def sums_by_server(analysis: Analysis) -> bool:
    """Whether gradients are summed within a server only, as with AdaSum.

    Args:
        analysis: of the network; of 8 devices or fewer it never is.
    """
    entry = analysis.network.entry
    if entry is None or analysis.context.devices <= SERVER:
        return False
    return any(ADASUM in (node.scope or "") for node in entry.nodes)


def _of_server(ranks: tuple[int, ...], own: int) -> tuple[int, ...]:
    """The ranks in the server of one rank: AdaSum sums up between servers by itself."""
    return tuple(rank for rank in ranks if rank // SERVER == own // SERVER)


def tensors_of(analysis: Analysis, judged: Judged) -> Iterator[tuple[int, int, Source]]:
    """Each tensor input of an operator, in order.

    Args:
        analysis: that resolves operands.
        judged: the operator.

    Yields:
        The tensor's index among all of the call, the position of its operand, and where it comes
        from; of a tuple made on the spot the item.
    """
    for position, source in enumerate(analysis.network.inputs[judged.node]):
        items: tuple[Source, ...] = (source,)
        if isinstance(source, Node) and primitive(source) in ("MakeTuple", "MakeList"):
            items = analysis.network.inputs[source]
        for item, part in enumerate(items):
            tensor = judged.call.slots.tensor(position, item)
            if tensor is not None:
                yield tensor, position, part


def _trained(analysis: Analysis) -> set[int] | None:
    """Parameters (by identity) whose gradient the network takes out; None: it takes out none.

    Then gradients are of inputs, and nothing tells which parameters have one.
    """
    trained: set[int] = set()
    names: set[str] = set()
    for node in analysis.network.applying("RefToEmbed"):
        parameter = behind(analysis, analysis.network.first(node))
        if parameter is not None:
            trained.add(id(parameter))
    for node in analysis.network.applying("EnvironGet"):
        names |= {v.text.removeprefix(KEY) for v in node.operands if isinstance(v, SymbolicKey)}
    entry = analysis.network.entry
    if names and entry is not None:
        trained |= {id(parameter) for parameter in entry.parameters if parameter.name in names}
    return trained or None


def _summed_up(analysis: Analysis) -> set[int]:
    """Parameters (by identity) whose gradient is summed over micro-batches.

    They have a mirror though no gradient of theirs be taken out: that of a table which two stages
    share is left out of the optimizer on one of them (MindSpore 2.7, stages cut in chunks).
    """
    entry = analysis.network.entry
    roles = parameter_roles(analysis.network.dump).values()
    names = {one.weight for one in roles if one.role == "accumulated gradient"}
    return {id(item) for item in entry.parameters if item.name in names} if entry else set()


def trained_parameters(analysis: Analysis) -> list[GraphParameter]:
    """The weights, and inputs, that have a gradient: all weights where nothing tells which.

    Args:
        analysis: of the network.

    Returns:
        Inputs first; none where the network holds no gradient.
    """
    entry = analysis.network.entry
    if entry is None or not analysis.differentiates:
        return []
    trained = _trained(analysis)
    inputs = differentiated_inputs(analysis)
    if trained is None and inputs:
        return inputs
    return inputs + [
        parameter
        for parameter in entry.parameters
        if is_weight(parameter) and (trained is None or id(parameter) in trained)
    ]


def differentiated_inputs(analysis: Analysis) -> list[GraphParameter]:
    """Inputs of the differentiated graph whose gradients are taken out.

    What ``J(graph)`` gives is applied; item 1 of that is applied to the gradient of the result, and
    gives the gradients: item 0 those of the weights, then one an input.
    """
    network = analysis.network
    inputs: list[GraphParameter] = []
    for node in network.callee:
        graph = _differentiated_behind(analysis, node)
        if graph is None:
            continue
        for use in network.users_of(node):
            index = item_of(use.node) if primitive(use.node) == "TupleGetItem" else 0
            if index > 0 and (parameter := network.parameter(graph, index - 1)) is not None:
                inputs.append(parameter)
    return inputs


def _differentiated_behind(analysis: Analysis, node: Node) -> Graph | None:
    """The graph whose gradients a node computes, if it applies item 1 of what ``J`` gives."""
    network = analysis.network
    item = network.callee.get(node)
    if not isinstance(item, Node) or primitive(item) != "TupleGetItem" or item_of(item) != 1:
        return None
    applied = network.first(item)
    return _differentiated(analysis, applied) if isinstance(applied, Node) else None


def behind(analysis: Analysis, source: Source | None) -> GraphParameter | None:
    """The weight that an operand is, behind Load, Cast, Depend and calls; else None.

    Args:
        analysis: of the network; of several calls of a graph the first is followed.
        source: the operand.
    """
    network = analysis.network
    for _ in range(1000):
        while isinstance(source, Node) and primitive(source) in ("Load", "Cast", "Depend"):
            source = network.first(source)
        if not isinstance(source, GraphParameter):
            return None
        if source.declaration is not None:
            return source if source.declaration.has_default else None
        place = network.index_of(source)
        if place is None:
            return None
        graph, index = place
        calls = network.calls.get(graph.name, ())
        source = network.argument(calls[0], index) if calls else None
    return None


def handed_weight(analysis: Analysis, receive: Node) -> GraphParameter | None:
    """The weight that a Receive brings whose Send stands in the same dump.

    Args:
        analysis: of a dump with several stages.
        receive: any node.

    Returns:
        None of a node that is no such Receive, and of a value that is no weight.
    """
    if primitive(receive) != RECEIVE:
        return None
    send = analysis.network.first(receive)
    if not isinstance(send, Node) or primitive(send) != SEND:
        return None
    return behind(analysis, analysis.network.first(send))


def through(network: Network, source: Source | None) -> Source | None:
    """What a value is one step earlier: before what hands it on, or the argument for a parameter.

    Args:
        network: that knows the calls of a graph; the first is taken.
        source: a value.

    Returns:
        None where there is no earlier one.
    """
    if isinstance(source, Node) and primitive(source) in ("Load", "Cast", "Depend"):
        return network.first(source)
    place = network.index_of(source) if isinstance(source, GraphParameter) else None
    calls = network.calls.get(place[0].name, ()) if place is not None else ()
    return network.argument(calls[0], place[1]) if calls and place is not None else None


def _given(analysis: Analysis, source: Source | None) -> GraphParameter | None:
    """The weight that another stage hands over, where an operator's graph is called with it.

    Optimizer parallel looks behind the Receive for it, and sums its gradient on this stage, too;
    without that nobody does. Source: MindSpore 2.7.0 and 2.10.0.
    """
    given = False
    while (earlier := through(analysis.network, source)) is not None:
        given = given or isinstance(source, GraphParameter)
        source = earlier
    return handed_weight(analysis, source) if given and isinstance(source, Node) else None
