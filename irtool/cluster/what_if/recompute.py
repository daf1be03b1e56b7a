"""What-ifs on activations: recompute a cell, keep less of it, or move it to the host."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import field

from irtool.cluster.flops import flops
from irtool.cluster.liveness import Buffer
from irtool.cluster.memory import Memory
from irtool.cluster.memory.layers import NETWORK, layer_of_scope
from irtool.cluster.what_if import Change, Option, Traffic
from irtool.ir.collectives import Collective
from irtool.ir.dataclass import dataclass
from irtool.ir.graph import Node


@dataclass(slots=True)
class _Run:
    """One forward run of a cell (of one micro-batch): its launches and what they allocate.

    ``inputs`` are tensors of other cells that it reads.
    """

    launches: list[int] = field(default_factory=list[int])
    made: list[Buffer] = field(default_factory=list[Buffer])
    inputs: dict[Buffer, None] = field(default_factory=dict[Buffer, None])


def activation_options(memory: Memory) -> Iterator[Option]:
    """``recompute`` and ``offload`` of each cell that keeps something for the backward pass.

    A recomputed cell keeps its result and what others read of it; the rest dies in the forward
    pass and comes again when the backward pass first needs any of it (MindSpore recomputes a
    cell as one piece).  Its inputs live until then.

    Args:
        memory: of a dump that holds the whole step.
    """
    offloaded = _offloaded(memory)
    for cell, runs in _cells(memory).items():
        options = [_recompute(memory, cell, runs, True)]
        if any(_collectives(memory, run) for run in runs):
            options.append(_recompute(memory, cell, runs, False))
        if cell not in offloaded:
            options.append(_offload(memory, cell, runs))
        yield from (option for option in options if option.changes)


def _offloaded(memory: Memory) -> frozenset[str]:
    """Cells that are offloaded already: ``Cell.offload()`` marks their primitives."""
    return frozenset(
        layer_of_scope(item.node.scope)
        for item in memory.launched
        if item.node.attribute("offload") and memory.phases.get(item.node) == "forward"
    )


def _cells(memory: Memory) -> dict[str, list[_Run]]:
    """Forward runs by cell: the layers of a network, each with one run a micro-batch."""
    runs: dict[tuple[str, int | None], _Run] = {}
    recomputed = _recomputed(memory)
    forward: dict[int, tuple[str, int | None]] = {}
    for place, item in enumerate(memory.launched):
        node = item.node
        if memory.phases.get(node) != "forward":
            continue
        cell = layer_of_scope(node.scope)
        if cell == NETWORK or cell in recomputed:
            continue
        key = (cell, node.micro)
        forward[place] = key
        runs.setdefault(key, _Run()).launches.append(place)
    for buffer in memory.live.buffers:
        key = forward.get(buffer.born)
        if key is not None:
            runs[key].made.append(buffer)
        for user in buffer.users:
            other = forward.get(user)
            if other is not None and other != key:
                runs[other].inputs[buffer] = None
    cells: dict[str, list[_Run]] = {}
    for (cell, _), run in runs.items():
        cells.setdefault(cell, []).append(run)
    return cells


def _recomputed(memory: Memory) -> set[str]:
    """Cells that are recomputed already: their kept operators say so."""
    return {
        layer_of_scope(node.scope)
        for node, stage in memory.phases.items()
        if stage == "recompute" and layer_of_scope(node.scope) != NETWORK
    }


def _kept(memory: Memory, run: _Run) -> list[tuple[Buffer, int, int]]:
    """What a run keeps for later: the tensor, its last use going forward, the first later one."""
    kept: list[tuple[Buffer, int, int]] = []
    own = set(run.launches)
    for buffer in run.made:
        later = [user for user in buffer.users if not _is_forward(memory, user)]
        before = [user for user in buffer.users if _is_forward(memory, user)]
        if not later or buffer.is_result or any(user not in own for user in before):
            continue  # the cell's result stays, or nothing is kept
        communicated = memory.collectives.get(buffer.node.node)
        if communicated is not None and communicated.origin == "optimizer parallel":
            continue  # parallel_optimizer_comm_recompute is for these
        kept.append((buffer, max([buffer.born, *before]), later[0]))
    return kept


def _is_forward(memory: Memory, place: int) -> bool:
    return memory.phases.get(memory.launched[place].node) == "forward"


def _collectives(memory: Memory, run: _Run) -> list[Collective]:
    nodes = (memory.launched[place].node for place in run.launches)
    return [memory.collectives[node] for node in nodes if node in memory.collectives]


def _recompute(memory: Memory, cell: str, runs: list[_Run], communicate: bool) -> Option:
    changes: list[Change] = []
    again_nodes: list[Node] = []
    operations = unknown = 0
    traffic: list[Traffic] = []
    for run in runs:
        kept = [
            item
            for item in _kept(memory, run)
            if communicate or item[0].node.node not in memory.collectives
        ]
        if not kept:
            continue
        again = min(first for _, _, first in kept)
        for buffer, last, _ in kept:
            changes.append(Change(last + 1, again - 1, -(buffer.size or 0)))
        changes += [
            Change(buffer.dies + 1, again, buffer.size or 0)
            for buffer in run.inputs
            if buffer.dies < again
        ]
        for place in run.launches:
            node = memory.launched[place].node
            collective = memory.collectives.get(node)
            if collective is not None:
                if communicate:
                    traffic.append(_traffic(collective))
                continue
            count = flops(node)
            unknown += count is None
            operations += count or 0
            again_nodes.append(node)
    how = f"{cell}.recompute()" if communicate else f"{cell}.recompute(mp_comm_recompute=False)"
    return Option(
        "recompute" if communicate else "recompute, mp_comm_recompute=False",
        cell,
        how,
        tuple(changes),
        flops=operations,
        flops_unknown=unknown,
        again=tuple(again_nodes),
        traffic=tuple(traffic),
        excludes=frozenset(("recompute", "recompute, mp_comm_recompute=False", "offload")),
    )


def _offload(memory: Memory, cell: str, runs: list[_Run]) -> Option:
    changes: list[Change] = []
    moved = 0
    for run in runs:
        for buffer, last, first in _kept(memory, run):
            # Gone behind its last use, back one launch before it is needed.
            changes.append(Change(last + 1, first - 2, -(buffer.size or 0)))
            moved += 2 * (buffer.size or 0)
    return Option(
        "offload",
        cell,
        f"{cell}.offload()",
        tuple(change for change in changes if change.first <= change.last),
        traffic=(Traffic("host", moved, "MoveTo"),),
        excludes=frozenset(("recompute", "recompute, mp_comm_recompute=False", "offload")),
        note="needs lazy_inline; copies may hide behind computation",
    )


def _traffic(collective: Collective) -> Traffic:
    return Traffic("group", collective.bytes or 0, collective.op, collective.ranks or ())


def recomputed_collectives(memory: Memory) -> Option | None:
    """``mp_comm_recompute=False`` where collectives run again now: bytes moved against memory.

    Args:
        memory: of a dump that holds the whole step.

    Returns:
        None where no collective runs again.
    """
    changes: list[Change] = []
    traffic: list[Traffic] = []
    originals = _originals(memory)
    for buffer in memory.live.buffers:
        node = buffer.node.node
        collective = memory.collectives.get(node)
        if collective is None or memory.phases.get(node) != "recompute":
            continue
        if collective.origin == "optimizer parallel":
            continue
        traffic.append(
            Traffic("group", -(collective.bytes or 0), collective.op, collective.ranks or ())
        )
        original = originals.get(_identity(collective))
        if original is not None and original.dies < buffer.born:
            changes.append(Change(original.dies + 1, buffer.born - 1, buffer.size or 0))
    if not traffic:
        return None
    return Option(
        "mp_comm_recompute",
        "",
        "recompute(mp_comm_recompute=False)",
        tuple(changes),
        traffic=tuple(traffic),
        note="takes memory, and saves communication",
    )


def _originals(memory: Memory) -> Mapping[object, Buffer]:
    originals: dict[object, Buffer] = {}
    for buffer in memory.live.buffers:
        item = memory.collectives.get(buffer.node.node)
        if item is not None and memory.phases.get(item.node) == "forward":
            originals[_identity(item)] = buffer
    return originals


def _identity(collective: Collective) -> object:
    """What a recomputed collective shares with its original: scope, place among equals, micro."""
    node = collective.node
    return node.scope, node.op, node.instance_name, node.micro, collective.shape
