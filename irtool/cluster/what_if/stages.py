"""What-ifs on the whole run: twice the pipeline stages, or parameters on servers."""

from __future__ import annotations

from collections.abc import Sequence

from irtool.cluster.flops import total_flops
from irtool.cluster.memory import Memory
from irtool.cluster.memory.layers import NETWORK, layer_of_scope
from irtool.cluster.pipeline.cut import Cut, Layer, best_cut
from irtool.cluster.schedule import ideal_bubble
from irtool.cluster.what_if import Change, Option, Traffic
from irtool.cluster.what_if.state import STATE_SWITCHES, Weight
from irtool.ir.dataclass import dataclass
from irtool.ir.units import share_text
from irtool.operators.table import operator_of

_SAME_BYTES = STATE_SWITCHES | {
    *("recompute", "recompute, mp_comm_recompute=False", "offload"),
    *("gradient_accumulation_shard", "parallel_optimizer_comm_recompute"),
}


def more_stages(memory: Memory, stages: int, micro_batches: int) -> Option | None:
    """``pipeline_stages`` doubled: the heavier half of the layers is left on a device.

    Where gradients were not accumulated before, they are now: a tensor as large as the weights,
    and a constant as large that clears it.

    Activations of a micro-batch halve too, but twice as many micro-batches are in flight on the
    first stage as long as there are enough.  The price is the longer bubble, as operations that
    could have been done meanwhile, and the tensors between the new stages.

    Args:
        memory: of a device of one of the stages.
        stages: pipeline stages now; 1: none.
        micro_batches: of a step now; 1: there are to be as many as stages then.

    Returns:
        None where this device holds fewer than two layers.
    """
    sizes: dict[str, int] = {}
    for tensor in memory.static:
        if tensor.parameter and tensor.layer and tensor.cause != "inputs":
            sizes[tensor.layer] = sizes.get(tensor.layer, 0) + (tensor.bytes or 0)
    layers = [Layer(name, float(size)) for name, size in sizes.items() if size]
    cut = best_cut(layers, 2)
    if cut is None or len(_forward_layers(memory)) < 2:
        return None
    saved = int(sum(cut.costs) - cut.slowest) - _new_accumulators(memory, cut)
    twice = 2 * stages
    micro = micro_batches if micro_batches > 1 else twice
    before = min(micro, stages) if stages > 1 else 1
    # Without a pipeline the batch is one piece; with one, it comes in ``micro`` pieces.
    kept = 0.5 * min(micro, twice) / (before if stages > 1 else micro)
    activations = memory.alive_by_cause()["activations"]
    less = int(activations * (1 - kept))
    last = len(memory.launched) - 1
    operations = total_flops(item.node for item in memory.launched).operations
    idle = ideal_bubble(twice, micro) - (ideal_bubble(stages, micro) if stages > 1 else 0.0)
    boundary = _boundary(memory)
    batches = 1 if stages == 1 else micro
    return Option(
        "pipeline_stages",
        "",
        f"set_auto_parallel_context(pipeline_stages={twice})",
        (Change(0, last, -less),),
        -saved,
        flops=int(operations * max(0.0, idle)),
        traffic=(Traffic("stage", 2 * boundary * batches, "Send"),),
        excludes=_SAME_BYTES,
        note=f"with {micro} micro-batches, idle time grows by {share_text(max(0.0, idle))} of "
        "work; "
        "needs twice the devices, or half the data parallelism",
    )


def _new_accumulators(memory: Memory, cut: Cut) -> int:
    """Bytes of accumulated gradients that a first pipeline brings, and of what clears them."""
    if memory.static_by_cause["accumulated gradients"]:
        return 0
    stages = [
        sum(
            item.bytes or 0
            for item in memory.static
            if item.cause == "parameters" and item.layer in names
        )
        for names in cut.stages
    ]
    return 2 * max(stages)


def _forward_layers(memory: Memory) -> set[str]:
    return {
        layer
        for item in memory.launched
        if memory.phases.get(item.node) == "forward"
        and (layer := layer_of_scope(item.node.scope)) != NETWORK
    }


def _boundary(memory: Memory) -> int:
    """Bytes that one layer hands to the next: the largest that leaves a layer going forward."""
    largest = 0
    for buffer in memory.live.buffers:
        node = buffer.node.node
        if memory.phases.get(node) != "forward" or layer_of_scope(node.scope) == NETWORK:
            continue
        own = layer_of_scope(node.scope)
        for user in buffer.users:
            other = memory.launched[user].node
            if memory.phases.get(other) == "forward" and layer_of_scope(other.scope) != own:
                largest = max(largest, buffer.size or 0)
    return largest


@dataclass(frozen=True, slots=True)
class ServedWeight:
    """A weight in parameter server mode.

    ``pushed`` and ``pulled`` are bytes that one worker moves each step (of a table, only the rows
    that are looked up), ``all_reduce`` what its gradient moves now.
    """

    name: str
    bytes: int
    is_table: bool
    pushed: int
    pulled: int
    all_reduce: int

    @property
    def moved(self) -> int:
        """Bytes to and from the servers."""
        return self.pushed + self.pulled


def served_weights(memory: Memory, weights: Sequence[Weight]) -> tuple[ServedWeight, ...]:
    """What parameter server mode would move for each weight, those it helps most first.

    Weights that live on servers have their optimizer there too. AllReduce moves ``2 (n - 1) / n``
    of a gradient (ring).

    Args:
        memory: of the device.
        weights: that it holds, with the ranks that hold the same slice.

    Returns:
        In bytes a step of one worker.
    """
    served: list[ServedWeight] = []
    for weight in weights:
        size = weight.tensor.bytes or 0
        rows = _looked_up(memory, weight.name)
        count = len(weight.replicas)
        now = 2 * (count - 1) * size // count if count else 0
        moved = size if rows is None else min(size, rows)
        served.append(ServedWeight(weight.name, size, rows is not None, moved, moved, now))
    return tuple(sorted(served, key=lambda one: (one.moved - one.all_reduce, -one.bytes)))


def _looked_up(memory: Memory, name: str) -> int | None:
    """Bytes of the rows that a step reads; None where the weight is more than a table."""
    places = memory.live.parameter_uses.get(name, [])
    forward = [
        memory.launched[place].node
        for place in places
        if memory.phases.get(memory.launched[place].node) == "forward"
    ]
    if not forward or not all(operator_of(node.op).is_("looks_up") for node in forward):
        return None
    return sum(node.output_bytes or 0 for node in forward)
