"""What a profile says of communication: ``communication.json`` and ``communication_matrix.json``.

Structure: ``ascend_communication_viewer.py`` of MindSpore 2.7.0; values were seen in a sample that
msprof-analyze made of a torch_npu cluster, none of MindSpore's own.  There MB and GB are decimal.
Who took part stands in ``profiler_metadata.json`` (``profiler_meta_data.py``), of which no file was
seen either.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, Literal, cast

from irtool.artefacts.damage import Damage
from irtool.artefacts.json_files import json_object, number_of, table_of
from irtool.ir.dataclass import dataclass

CommunicationKind = Literal["collective", "p2p"]
_OPERATOR = re.compile(r"(?P<op>.+?)__(?P<group>\d+)_(?P<index>\d+)(?:_\d+)?(?:@(?P<hash>\d+))?")
_TOTAL = "Total Op Info"
MAX_RANKS = 1 << 24
"""Above this a number is no rank."""


@dataclass(frozen=True, slots=True)
class LinkTraffic:
    """What went over one kind of links: decimal megabytes, milliseconds."""

    link: str
    megabytes: float
    milliseconds: float


@dataclass(frozen=True, slots=True)
class MeasuredCollective:
    """A collective as a rank saw it; times in microseconds.

    ``elapsed`` holds the wait for the slowest rank: ``transit`` alone tells the bandwidth.

    Attributes:
        step: as the file has it.
        kind: MindSpore's viewer takes ``hcom_send`` for a collective.
        name: of the operation.
        op: ``hcom_allReduce``.
        group: hash of the communicator's name; None where the name bears none.
        index: which operation of the communicator it is.
        start: microseconds since 1970.
        links: what went over each kind of links.
    """

    step: str
    kind: CommunicationKind
    name: str
    op: str
    group: int | None
    index: int | None
    start: float
    elapsed: float
    transit: float
    wait: float
    links: tuple[LinkTraffic, ...]


def measured_collectives(path: str, damage: Damage) -> Iterator[MeasuredCollective]:
    """The operations of ``communication.json``, without sums.

    Args:
        path: the file.
        damage: collects the operations without times, which are left out.

    Raises:
        ArtefactError: it is no such file.
    """
    for step, kinds in json_object(path, "table of steps").items():
        table = table_of(kinds)
        for kind in ("p2p", "collective"):
            for name, info in table_of(table.get(kind)).items():
                if name == _TOTAL:
                    continue
                collective = _collective(step, kind, name, table_of(info))
                if collective is None:
                    damage.add(1, f"{name} of {step} has no times")
                else:
                    yield collective


def communicator_hash(name: str) -> int:
    """The number by which a profile names a communicator.

    Source: ``double_hash`` of msprof-analyze.
    """
    low = high = 0
    for letter in name:
        high = (high * 29 + ord(letter)) & 0xFFFFFFFF
        low = (low * 131 + ord(letter)) & 0xFFFFFFFF
    return high << 32 | low


def _collective(
    step: str, kind: CommunicationKind, name: str, info: Mapping[str, Any]
) -> MeasuredCollective | None:
    times = table_of(info.get("Communication Time Info"))
    elapsed, transit = number_of(times, "Elapse Time(ms)"), number_of(times, "Transit Time(ms)")
    if elapsed is None or transit is None:
        return None
    match = _OPERATOR.fullmatch(name)
    links = tuple(
        LinkTraffic(link, megabytes, milliseconds)
        for link, values in table_of(info.get("Communication Bandwidth Info")).items()
        if (megabytes := number_of(table_of(values), "Transit Size(MB)"))
        and (milliseconds := number_of(table_of(values), "Transit Time(ms)"))
    )
    return MeasuredCollective(
        step,
        kind,
        name,
        match["op"] if match else name,
        int(match["hash"]) if match and match["hash"] else None,
        int(match["index"]) if match else None,
        number_of(times, "Start Timestamp(us)") or 0.0,
        elapsed * 1e3,
        transit * 1e3,
        (number_of(times, "Wait Time(ms)") or 0.0) * 1e3,
        links,
    )


# -- who took part ---------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Communicator:
    """A group of ranks, as the profiler names it.

    ``hash`` is the number after ``@`` in the names of its operations; ``group`` what the IR calls
    it (attribute ``group``).
    """

    hash: int
    name: str
    group: str
    ranks: tuple[int, ...]


def communicators(path: str, damage: Damage) -> tuple[Communicator, ...]:
    """The communicators under ``parallel_group_info`` of ``profiler_metadata.json``.

    Args:
        path: the file.
        damage: collects the communicators without a list of ranks, which are left out.
    """
    entries: list[Communicator] = []
    document = json_object(path, "metadata of a profile")
    for name, info in table_of(document.get("parallel_group_info")).items():
        table = table_of(info)
        listed: object = table.get("global_ranks")
        ranks = cast("list[object]", listed) if isinstance(listed, list) else None
        if ranks is None or not all(_is_rank(rank) for rank in ranks):
            damage.add(1, f"{name} has no ranks")
            continue
        group = str(table.get("group_name", ""))
        entries.append(
            Communicator(communicator_hash(name), name, group, tuple(cast("list[int]", ranks)))
        )
    return tuple(entries)


def _is_rank(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value < MAX_RANKS


_WHOLE_TWICE = ("hcom_allReduce",)
_WHOLE_ONCE = ("hcom_allGather", "hcom_reduceScatter", "hcom_alltoall", "hcom_alltoallv")
_SINGLE = ("hcom_send", "hcom_receive")


def array_bytes(measured: MeasuredCollective, ranks: int) -> float | None:
    """Bytes of the whole array, from what went over links; None where the operation tells none.

    A rank of ``n`` sends (n - 1) / n of the array at least, twice in an all-reduce, and does so in
    a ring, a mesh, and in units first; traffic of ``SDMA`` holds that of HCCS, PCIe and SIO.

    Args:
        measured: as one rank saw it, with the traffic over each kind of links.
        ranks: in its communicator.
    """
    sizes = {link.link.upper(): link.megabytes * 1e6 for link in measured.links}
    inside = sizes.get("SDMA") or sum(sizes.get(link, 0.0) for link in ("HCCS", "PCIE", "SIO"))
    moved = inside + sizes.get("RDMA", 0.0)
    op = measured.op.rstrip("_")
    if ranks < 2 or not moved:
        return None
    if op in _SINGLE:
        return moved
    if op in _WHOLE_ONCE or op in _WHOLE_TWICE:
        return moved * ranks / (ranks - 1) / (2 if op in _WHOLE_TWICE else 1)
    return None


def primitive_of(measured: MeasuredCollective) -> str | None:
    """The primitive that an operation of HCCL runs: ``hcom_allReduce`` is AllReduce.

    Args:
        measured: whose name begins with that of HCCL's operation.

    Returns:
        None where MindSpore has no primitive for it.
    """
    return _PRIMITIVES.get(measured.op.rstrip("_"))


_PRIMITIVES = {
    "hcom_allReduce": "AllReduce",
    "hcom_allGather": "AllGather",
    "hcom_reduceScatter": "ReduceScatter",
    "hcom_alltoall": "AlltoAll",
    "hcom_alltoallv": "AlltoAll",
    "hcom_broadcast": "Broadcast",
    "hcom_send": "Send",
    "hcom_receive": "Receive",
}


# -- links -----------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class MeasuredLink:
    """What went from one rank of a group to another: decimal megabytes, milliseconds.

    Attributes:
        step: as the file has it.
        operation: ``hcom_allReduce-total@<hash>``.
        source: rank inside the group; likewise ``target``.
        transport: ``HCCS``, ``RDMA``, ``PCIE``, ``SIO``, ``LOCAL``.
    """

    step: str
    operation: str
    source: int
    target: int
    transport: str
    megabytes: float
    milliseconds: float

    @property
    def is_total(self) -> bool:
        """Whether it sums up all operations of a type, of which single ones stand beside."""
        return "-total@" in self.operation or self.operation.endswith("-total")


def measured_links(path: str, damage: Damage) -> Iterator[MeasuredLink]:
    """The links of ``communication_matrix.json``.

    Structure: ``ascend_communication_viewer.py`` of MindSpore 2.7.0; no file was seen.

    Args:
        path: the file.
        damage: collects the entries that are no link between two ranks, which are left out.

    Raises:
        ArtefactError: it is no such file.
    """
    for step, kinds in json_object(path, "table of steps").items():
        for kind in ("p2p", "collective"):
            for operation, links in table_of(table_of(kinds).get(kind)).items():
                for ends, info in table_of(links).items():
                    link = _link(step, operation, ends, table_of(info))
                    if link is None:
                        damage.add(1, f"{ends} of {operation} in {step} is no measured link")
                    else:
                        yield link


def _link(step: str, operation: str, ends: str, info: Mapping[str, Any]) -> MeasuredLink | None:
    match = _ENDS.fullmatch(ends)
    megabytes = number_of(info, "Transit Size(MB)")
    milliseconds = number_of(info, "Transit Time(ms)")
    if match is None or megabytes is None or milliseconds is None:
        return None
    transport = str(info.get("Transport Type", ""))
    return MeasuredLink(
        step, operation, int(match[1]), int(match[2]), transport, megabytes, milliseconds
    )


_ENDS = re.compile(r"(\d{1,9})-(\d{1,9})")
