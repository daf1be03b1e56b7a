"""The machine: devices in nested units, links between them, and what a collective costs there.

A machine is data (``machines/*.toml``, or a file of the user's): levels from the innermost out,
each with the devices of one unit, a bandwidth, and start-up times; memory and arithmetic rate of a
device.  Times follow the usual alpha-beta model: ``n`` ranks, ``S`` bytes of the whole tensor,
``a`` seconds a step, ``b`` bytes a second that one rank sends.

* AllReduce: ``2 k a + 2 (n - 1) / n S / b``, AllGather, ReduceScatter and AlltoAll:
  ``k a + (n - 1) / n S / b``, Send and Receive: ``a + S / b``;
* in a ring ``k = n - 1``; in a full mesh of links of ``l`` bytes a second every rank sends to all
  others at once: ``k = 1`` and ``b = (n - 1) l``;
* of a group that was measured itself, the line that was fitted to it (:class:`MeasuredGroup`);
* across units all of it goes at the pace of the links outside; with ``hierarchical = true``, where
  units hold several ranks each, ReduceScatter inside, the collective outside on what is left, and
  AllGather inside.  Whether a library works so depends on its version and settings, and what is
  planned for the slow pace needs few bytes on the slow links in either case.

What several communications of one step take together, and what of it computing hides, is said by
:mod:`irtool.cluster.pricing`, which asks here for each launch.

Only ratios should be relied on: nothing here was measured for the network at hand.
"""

from __future__ import annotations

import math
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import field
from functools import cache, lru_cache
from importlib.resources import files
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Literal, TypeVar, cast

from irtool.ir.dataclass import dataclass

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

Amount = TypeVar("Amount", float, "npt.NDArray[np.float64]")
"""A number, or one for each of many strategies."""

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

Topology = Literal["ring", "mesh"]

BUILT_IN = ("ascend_910b", "gpu_a100", "gpu_h100")
"""Machines that come with irtool; the first of a target is the default for it."""

_BOTH_WAYS = ("AllReduce",)
_IN_PHASES = ("AllReduce", "AllGather", "ReduceScatter")
_NO_DATA = ("Barrier",)
_PAIRS = ("Send", "Receive", "NeighborExchange", "NeighborExchangeV2", "NeighborExchangeV2Grad")


_MUCH = 1 << 40
"""Bytes beside which the start of a collective is nothing."""


class MachineError(ValueError):
    """A machine file that makes no sense; the message names the key."""


@dataclass(frozen=True, slots=True)
class Level:
    """Links of one kind.

    Attributes:
        name: what the links are called.
        devices: of one unit whose members these links join; None: any number (the outermost).
        bandwidth: bytes a second that a device sends, in a mesh over one link.
        latency: seconds a step.
        start: seconds a collective takes before its first step.
        topology: whether the members form a ring, or each is linked to every other.
    """

    name: str
    devices: int | None
    bandwidth: float
    latency: float = 0.0
    start: float = 0.0
    topology: Topology = "ring"


@dataclass(frozen=True, slots=True)
class Roofline:
    """Operators of one kind as they were measured: a launch, operations and bytes add up.

    Attributes:
        launch: seconds that each takes, whatever its size.
        flops: operations a second; 0 where they don't count.
        bandwidth: bytes a second, read and written; 0 where they don't count.
    """

    launch: float
    flops: float = 0.0
    bandwidth: float = 0.0

    def seconds(self, operations: Amount, size: Amount) -> Amount:
        """How long one takes that does so many operations on so many bytes."""
        arithmetic = operations / self.flops if self.flops else operations * 0.0
        traffic = size / self.bandwidth if self.bandwidth else size * 0.0
        return self.launch + arithmetic + traffic


@dataclass(frozen=True, slots=True)
class MeasuredTime:
    """How long an operator of given slices took, and all of its gradient (None: not measured)."""

    forward: float
    backward: float | None = None


@dataclass(frozen=True, slots=True)
class MeasuredGroup:
    """One collective of groups of one shape as it was measured: ``start + bytes / bandwidth``.

    Attributes:
        op: the collective; a Receive takes what was measured of a Send.
        ranks: how many take part.
        together: how many of them stand in one unit of each level but the outermost, innermost
            first: which links they share.
        start: seconds of one that moves nothing.
        bandwidth: bytes of the whole array a second.
    """

    op: str
    ranks: int
    together: tuple[int, ...]
    start: float
    bandwidth: float


ANY_KIND = "*"
"""Key of the roofline of operators whose kind was not measured."""


def slices_key(op: str, dtype: str, shapes: Iterable[Sequence[int]]) -> str:
    """The key of what was measured, by operator, type and slices: ``MatMul Float32 8,16;16,32``.

    Args:
        op: name of the primitive.
        dtype: element type of the first operand, as dumps spell it.
        shapes: of the operands on one device.
    """
    return f"{op} {dtype} {';'.join(','.join(map(str, shape)) for shape in shapes)}"


@dataclass(frozen=True, slots=True)
class Machine:
    """Devices and links.

    Attributes:
        name: for people.
        target: ``Ascend`` or ``GPU``.
        levels: the links, innermost first.
        memory_bytes: of one device.
        flops: operations a second of one device, by element type.
        sources: where the figures are from.
        memory_bandwidth: bytes a second between a device and its memory; 0 where unknown.
        hierarchical: whether collectives across units work inside the units first.
        soc: what MindSpore calls its devices, which decides what groups there may be; empty where
            nothing says.
        overlap: what part of the communication that computing can hide it does hide, from 0 to 1.
        rooflines: of operators as measured, by kind; ``ANY_KIND`` is that of all others.
        measured: what operators took, by :func:`slices_key`.
        groups: collectives of groups that were measured; all others go by their links.
    """

    name: str
    target: str
    levels: tuple[Level, ...]
    memory_bytes: int
    flops: Mapping[str, float] = field(default_factory=dict[str, float])
    sources: tuple[str, ...] = ()
    memory_bandwidth: float = 0.0
    hierarchical: bool = False
    soc: str = ""
    overlap: float = 0.0
    rooflines: Mapping[str, Roofline] = field(default_factory=dict[str, Roofline])
    measured: Mapping[str, MeasuredTime] = field(default_factory=dict[str, MeasuredTime])
    groups: tuple[MeasuredGroup, ...] = ()

    def roofline(self, op: str) -> Roofline | None:
        """The roofline that was measured of an operator's kind; None where none was."""
        return self.rooflines.get(op) or self.rooflines.get(ANY_KIND)

    @property
    def node_devices(self) -> int | None:
        """Devices of the innermost unit, a node; None where there is only one level."""
        return self.levels[0].devices

    def level_of(self, ranks: Sequence[int]) -> Level:
        """The innermost level whose links join all these ranks."""
        for level in self.levels:
            size = level.devices
            if size is None or not ranks or min(ranks) // size == max(ranks) // size:
                return level
        return self.levels[-1]

    def together(self, ranks: Sequence[int]) -> tuple[int, ...]:
        """The most of some ranks that stand in one unit, of each level that has units."""
        return tuple(
            max(Counter(rank // level.devices for rank in ranks).values())
            for level in self.levels
            if level.devices is not None
        )

    def measured_group(self, op: str, ranks: Sequence[int]) -> MeasuredGroup | None:
        """What was measured of a collective on groups of this shape; None where nothing was."""
        if not self.groups:
            return None
        known = "Send" if op == "Receive" else op
        alike = [one for one in self.groups if one.op == known and one.ranks == len(ranks)]
        together = self.together(ranks) if alike else ()
        return next((one for one in alike if one.together == together), None)

    def seconds(self, op: str, size: int, ranks: Sequence[int]) -> float:
        """How long one collective takes.

        Args:
            op: the collective (``AllReduce``, …).
            size: bytes of the whole tensor on one rank: the larger of input and output.
            ranks: who takes part; for a Send, sender and receiver.
        """
        if len(ranks) < 2:
            return 0.0
        known = self.measured_group(op, ranks)
        if known is not None:
            return known.start + size / known.bandwidth
        return self._seconds(op, float(size), tuple(ranks))

    def line(self, op: str, ranks: Sequence[int]) -> tuple[float, float]:
        """Seconds of a collective that moves nothing, and seconds that each byte adds.

        Times are linear in bytes: ``seconds(op, size, ranks) == start + size * per_byte``.
        """
        start = self.seconds(op, 0, ranks)
        return start, (self.seconds(op, _MUCH, ranks) - start) / _MUCH

    def rate(self, dtype: str | None) -> float:
        """Operations a second for an element type; of the slowest known one, if it is not listed.

        Raises:
            LookupError: the machine lists no rates.
        """
        if not self.flops:
            raise LookupError(f"{self.name}: no arithmetic rates")
        return self.flops.get(dtype or "", min(self.flops.values()))

    def _seconds(self, op: str, size: float, ranks: tuple[int, ...]) -> float:
        level = self.level_of(ranks)
        index = self.levels.index(level)
        inner = (self.levels[index - 1].devices if index else None) or 1
        local = _members(ranks, inner)
        if local < 2 or op not in _IN_PHASES or not self.hierarchical:
            return _flat(op, size, len(ranks), level)
        # Inside the units first, then among one rank of each, on what is left.
        some_unit = _unit_of_first(ranks, inner)
        outer = _flat(op, size / local, len(ranks) // local, level)
        halves = 2 if op in _BOTH_WAYS else 1
        return outer + halves * self._seconds("AllGather", size, some_unit)


@lru_cache(maxsize=4096)
def _unit_of_first(ranks: tuple[int, ...], size: int) -> tuple[int, ...]:
    """Those of the ranks that are in one unit with the first."""
    return tuple(rank for rank in ranks if rank // size == ranks[0] // size)


@lru_cache(maxsize=4096)
def _members(ranks: tuple[int, ...], size: int) -> int:
    """How many of the ranks each unit holds, where all hold as many; else 1."""
    numbers = set(Counter(rank // size for rank in ranks).values())
    return numbers.pop() if len(numbers) == 1 else 1


def _flat(op: str, size: float, count: int, level: Level) -> float:
    """A collective among ranks that only one kind of links joins."""
    if op in _NO_DATA:
        size = 0.0
    if op in _PAIRS:
        return level.start + level.latency + size / level.bandwidth
    mesh = level.topology == "mesh"
    steps = 1 if mesh else count - 1
    bandwidth = level.bandwidth * (count - 1 if mesh else 1)
    once = steps * level.latency + (count - 1) / count * size / bandwidth
    return level.start + (2 * once if op in _BOTH_WAYS else once)


# -- where machines come from ------------------------------------------------------------------


@cache
def built_in(name: str) -> Machine:
    """A machine that comes with irtool.

    Args:
        name: of the machine, as ``ascend_910b``.

    Raises:
        LookupError: there is none of that name.
    """
    if name not in BUILT_IN:
        raise LookupError(f"there is no machine {name!r}; there are {', '.join(BUILT_IN)}")
    text = (files("irtool.cluster") / "machines" / f"{name}.toml").read_text("utf-8")
    return machine_from(tomllib.loads(text))


def default_machine(target: str = "Ascend") -> Machine:
    """The built-in machine for a target: an A100 for ``GPU``, an Ascend 910B for any other.

    Args:
        target: as ``device_target`` has it, in small or capital letters.
    """
    return built_in("gpu_a100" if target.upper() == "GPU" else "ascend_910b")


_KEYS = {
    "name", "target", "memory_bytes", "memory_bandwidth", "sources", "flops", "levels",
    "hierarchical", "soc", "overlap", "operators", "measured", "groups",
}  # fmt: skip
_LEVEL_KEYS = {"name", "devices", "bandwidth", "latency", "start", "topology"}


def machine_from(table: Mapping[str, Any]) -> Machine:
    """A machine from the table of a TOML file.

    Args:
        table: as the file has it.

    Raises:
        MachineError: a key is missing, unknown, or has a value that makes no sense.
    """
    _known(table, _KEYS, "")
    listed = table.get("levels")
    if not isinstance(listed, list) or not listed:
        raise MachineError("levels: at least one [[levels]] is needed, the innermost first")
    entries = cast("list[object]", listed)
    levels = tuple(_level(entry, place, len(entries)) for place, entry in enumerate(entries))
    for small, large in pairwise(level.devices for level in levels):
        if small is not None and large is not None and (large <= small or large % small):
            raise MachineError(f"levels: a unit of {large} devices is not made of units of {small}")
    flops = table.get("flops", {})
    if not isinstance(flops, Mapping):
        raise MachineError("flops: must be a table of element types")
    rates = cast("Mapping[str, Any]", flops)
    return Machine(
        str(table.get("name", "unnamed machine")),
        str(table.get("target", "Ascend")),
        levels,
        int(_number(table, "memory_bytes", "", 0.0)),
        {str(key): _number(rates, key, "flops.") for key in rates},
        tuple(str(item) for item in cast("list[object]", table.get("sources", []))),
        _number(table, "memory_bandwidth", "", 0.0),
        _flag(table, "hierarchical"),
        str(table.get("soc", "")),
        _part(table, "overlap"),
        {op: _roofline(entry, f"operators.{op}.") for op, entry in _entries(table, "operators")},
        {key: _measured(entry, f"measured.{key}.") for key, entry in _entries(table, "measured")},
        _groups(table.get("groups", [])),
    )


def _groups(entries: object) -> tuple[MeasuredGroup, ...]:
    if not isinstance(entries, list):
        raise MachineError("groups: must be a list of tables, [[groups]]")
    return tuple(
        _group(entry, f"groups[{place}].") for place, entry in enumerate(cast("list[Any]", entries))
    )


def _group(entry: object, where: str) -> MeasuredGroup:
    if not isinstance(entry, Mapping):
        raise MachineError(f"{where[:-1]}: must be a table")
    table = cast("Mapping[str, Any]", entry)
    _known(table, {"op", "ranks", "together", "start", "bandwidth"}, where)
    together = table.get("together", [])
    numbers: list[Any] = cast("list[Any]", together) if isinstance(together, list) else [None]
    ranks = table.get("ranks")
    for key, value in (("ranks", ranks), *(("together", number) for number in numbers)):
        if isinstance(value, bool) or not isinstance(value, int) or value < 1:
            raise MachineError(f"{where}{key}: must be whole numbers from 1, but is {value!r}")
    return MeasuredGroup(
        str(table.get("op", "")),
        cast("int", ranks),
        tuple(cast("list[int]", numbers)),
        _number(table, "start", where, 0.0),
        _number(table, "bandwidth", where),
    )


def _entries(table: Mapping[str, Any], key: str) -> Iterator[tuple[str, Mapping[str, Any]]]:
    entries = table.get(key, {})
    if not isinstance(entries, Mapping):
        raise MachineError(f"{key}: must be a table")
    for name, entry in cast("Mapping[str, object]", entries).items():
        if not isinstance(entry, Mapping):
            raise MachineError(f"{key}.{name}: must be a table")
        yield str(name), cast("Mapping[str, Any]", entry)


def _roofline(entry: Mapping[str, Any], where: str) -> Roofline:
    _known(entry, {"launch", "flops", "bandwidth"}, where)
    return Roofline(*(_number(entry, key, where, 0.0) for key in ("launch", "flops", "bandwidth")))


def _measured(entry: Mapping[str, Any], where: str) -> MeasuredTime:
    _known(entry, {"forward", "backward"}, where)
    backward = _number(entry, "backward", where, 0.0) if "backward" in entry else None
    return MeasuredTime(_number(entry, "forward", where, 0.0), backward)


def _part(table: Mapping[str, Any], key: str) -> float:
    value = table.get(key, 0.0)
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 <= value <= 1:
        raise MachineError(f"{key}: must be a number from 0 to 1, but is {value!r}")
    return float(value)


def _flag(table: Mapping[str, Any], key: str) -> bool:
    value = table.get(key, False)
    if not isinstance(value, bool):
        raise MachineError(f"{key}: must be true or false, but is {value!r}")
    return value


def _level(entry: object, place: int, count: int) -> Level:
    where = f"levels[{place}]."
    if not isinstance(entry, Mapping):
        raise MachineError(f"{where[:-1]}: must be a table")
    table = cast("Mapping[str, Any]", entry)
    _known(table, _LEVEL_KEYS, where)
    devices = table.get("devices")
    if devices is None and place < count - 1:
        raise MachineError(f"{where}devices: only the outermost level may leave it out")
    if devices is not None and (not isinstance(devices, int) or devices < 1):
        raise MachineError(f"{where}devices: must be a whole number from 1, but is {devices!r}")
    topology = table.get("topology", "ring")
    if topology not in ("ring", "mesh"):
        raise MachineError(f"{where}topology: is ring or mesh, not {topology!r}")
    return Level(
        str(table.get("name", f"level {place}")),
        devices,
        _number(table, "bandwidth", where),
        _number(table, "latency", where, 0.0),
        _number(table, "start", where, 0.0),
        topology,
    )


def _known(table: Mapping[str, Any], keys: set[str], where: str) -> None:
    unknown = sorted(str(key) for key in table if key not in keys)
    if unknown:
        listed = ", ".join(sorted(keys))
        raise MachineError(f"{where}{unknown[0]}: there is no such key; there are {listed}")


def _number(table: Mapping[str, Any], key: str, where: str, default: float | None = None) -> float:
    """A number above 0, or the default where the key is missing (which may be given itself)."""
    value = table.get(key, default)
    if value is None:
        raise MachineError(f"{where}{key}: is missing")
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        raise MachineError(f"{where}{key}: must be a number, but is {value!r}")
    if value < 0 or (value == 0 and default is None):
        raise MachineError(f"{where}{key}: must be above 0, but is {value!r}")
    return float(value)
