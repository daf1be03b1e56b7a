"""What ranks communicated in the order that they recorded, to be played like what dumps say.

Two records tell: the collectives that each rank issued (``comm_execute_order.csv``), which need no
dump, and the order of a rank's operators, which sorts the communications of its dump and drops
those that the rank never launched.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace

from irtool.artefacts.orders import CollectiveRow
from irtool.artefacts.recorded import RecordedOrder
from irtool.cluster.hang import HangReport, play
from irtool.cluster.ranks import Cluster, Party, Program, RankProgram, Step
from irtool.ir.collectives import Collective
from irtool.ir.dataclass import dataclass
from irtool.ir.dump import Dump, dump_of
from irtool.ir.graph import Node
from irtool.ir.operators import COMMUNICATION, POINT_TO_POINT
from irtool.ir.statement import PrimitiveTarget

_SPELLINGS = re.compile(r"^(?:DistComm|InnerComm|Comm)(?=[A-Z])")
_TRANSFERS = {"Send": "Send", "Receive": "Receive", "Isend": "Send", "Irecv": "Receive"}
_NUMBER = re.compile(r"-?\d+")


@dataclass(frozen=True, slots=True)
class RecordedCollectives:
    """The collectives of a rank, and the file that has them."""

    path: str
    rows: tuple[CollectiveRow, ...]


def recorded_cluster(
    orders: Mapping[int, RecordedCollectives],
    nodes: Mapping[int, Mapping[int, Node]] | None = None,
    in_order: bool = True,
) -> Cluster:
    """The ranks as their records of collectives have them.

    Args:
        orders: by rank.
        nodes: by rank the nodes of its dump, by their index in ``execute_order.csv``; of a rank
            without them places are those of the record.
        in_order: whether each waits for the one before it, as MindSpore's own checker takes it;
            a record says nothing of data, so that streams may let some of them pass.
    """
    tags: dict[str, int] = {}
    ranks: dict[int, RankProgram] = {}
    seen: set[int] = set(orders)
    for rank, recorded in sorted(orders.items()):
        known: Mapping[int, Node] = nodes.get(rank, {}) if nodes is not None else {}
        if any(row.index not in known for row in recorded.rows):
            known = {}
        steps: list[Step] = []
        parties: list[Party] = []
        streams: dict[str, int] = {}
        for number, row in enumerate(recorded.rows):
            # Both ends of a transfer are in one group: in different ones they never meet.
            tag = tags.setdefault(row.group, len(tags))
            item = _collective(row, number, tag, known.get(row.index or 0))
            stream = streams.setdefault(row.group, len(streams) + 1)
            after = (number - 1,) if in_order and number else ()
            steps.append(Step(item, after, stream))
            parties.append(Party(item.group, item.ranks, item.peer))
            seen.update(row.ranks, () if item.peer is None else (item.peer,))
        program = Program(tuple(steps), Dump((), path=recorded.path), len(steps))
        path = recorded.path
        dump = next((dump_of(node) for node in known.values()), None)
        if dump is not None:
            path = dump.path
        ranks[rank] = RankProgram(rank, program, tuple(parties), path)
    return Cluster(ranks, tuple((rank,) for rank in ranks), max(seen, default=0) + 1)


def play_recorded(
    orders: Mapping[int, RecordedCollectives],
    nodes: Mapping[int, Mapping[int, Node]] | None = None,
) -> tuple[Cluster, HangReport]:
    """Play what ranks recorded; what hangs only if each waits for the one before is not certain.

    A Send that its Receive is not ready for waits on the device's stream, and so does all that the
    rank launched behind it: MindSpore's checker takes both ends for one event, and so does this.

    Args:
        orders: by rank.
        nodes: as of :func:`recorded_cluster`.
    """
    cluster = recorded_cluster(orders, nodes)
    report = play(cluster)
    if report.needs_buffers and not report.hangs:
        return cluster, play(cluster, sends_wait=True)
    if report.hangs and not play(recorded_cluster(orders, nodes, in_order=False)).hangs:
        report = replace(report, certain=False)
    return cluster, report


def base_of(primitive: str) -> str:
    """The collective that a primitive's name means: ``DistCommAllReduce`` is AllReduce."""
    plain = _SPELLINGS.sub("", primitive.removeprefix("PrimFunc_"))
    plain = _TRANSFERS.get(plain, plain)
    known = COMMUNICATION.get(plain)
    return plain if known is None else known.base


def _collective(row: CollectiveRow, number: int, tag: int, node: Node | None) -> Collective:
    op = base_of(row.op)
    peer = row.destination if op == "Send" else row.source if op == "Receive" else None
    shape = row.output_shape if op == "Receive" else row.input_shape
    return Collective(
        node=node or Node(number, None, PrimitiveTarget(row.op), (), line=row.line),
        op=op,
        group=row.group or None,
        ranks=tuple(sorted(row.ranks)) or None,
        ranks_from="group_rank_ids",
        reduction=None,
        fusion=None,
        dtype=(row.output_type if op == "Receive" else row.input_type) or None,
        shape=tuple(map(int, _NUMBER.findall(shape))) if shape else None,
        bytes=max(row.input_size or 0, row.output_size or 0) or None,
        # Stages are told by who sends to whom: their ranks are not held to one another's scripts.
        origin="pipeline" if op in POINT_TO_POINT else "unknown",
        is_gradient=False,
        peer=peer,
        tag=tag if op in POINT_TO_POINT else None,
    )


# -- the order of a rank's operators ---------------------------------------------------------------


def reordered(
    cluster: Cluster, orders: Mapping[int, RecordedOrder]
) -> tuple[Cluster, tuple[str, ...]]:
    """A cluster whose ranks communicate as they recorded it.

    Args:
        cluster: what their dumps say.
        orders: what each recorded, by rank.

    Returns:
        The cluster, and what a record says that its dump does not know.
    """
    ranks = dict(cluster.ranks)
    strange: dict[int, list[str]] = {}
    for rank, order in orders.items():
        one = ranks.get(rank)
        if one is None:
            continue
        ranks[rank], strange[rank] = _reordered(one, order)
    records = [{text.partition(" ")[2] for text in texts} for texts in strange.values()]
    if len(records) > 1 and records[0] and all(record == records[0] for record in records):
        # All ranks alike: the backend fused or split them, and names tell no more.
        return cluster, ("records name communications otherwise than all dumps: not used",)
    classes = tuple((rank,) for rank in ranks)
    notes = tuple(text for texts in strange.values() for text in texts)
    return replace(cluster, ranks=ranks, classes=classes), notes


def _reordered(one: RankProgram, order: RecordedOrder) -> tuple[RankProgram, list[str]]:
    steps = one.program.steps
    by_name = {
        name: number
        for number, step in enumerate(steps)
        if (name := step.collective.node.full_name) is not None
    }
    known = set(order.names)
    chosen = [by_name[name] for name in order.names if name in by_name]
    strange = [
        f"{one.rank}: recorded {name}, which its dump does not have"
        for name in order.names
        if name not in by_name and _communicates(name)
    ]
    strange += [
        f"{one.rank}: never launched {name}, which its dump has"
        for name in by_name
        if name not in known
    ]
    place = {number: new for new, number in enumerate(chosen)}
    kept: list[Step] = []
    for new, number in enumerate(chosen):
        after = (place[earlier] for earlier in steps[number].after if earlier in place)
        kept.append(
            replace(steps[number], after=tuple(earlier for earlier in after if earlier < new))
        )
    program = Program(tuple(kept), one.program.dump, one.program.operators)
    parties = tuple(one.parties[number] for number in chosen)
    return RankProgram(one.rank, program, parties, one.path), strange


def _communicates(name: str) -> bool:
    """Whether a full name is that of a communication."""
    op = name.rpartition("/")[2].rpartition("-op")[0]
    return op in COMMUNICATION or op in POINT_TO_POINT
