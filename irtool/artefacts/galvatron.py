"""Tables of bandwidth that Galvatron measures before it searches.

Formats: its own files (PKU-DAIR/Hetu-Galvatron cea12ffb, ``profile_hardware``).  MB is 2^20 bytes
there, so that a MB a millisecond is 1.048576 GB/s.

- ``allreduce_bandwidth_<N>nodes_<G>gpus_per_node.json``: ``allreduce_size_<n>_consec_<1|0>``, what
  a rank sends a millisecond, ``2 (n - 1) / n`` of the array; 1: neighbours, 0: as far apart as
  they go;
- ``p2p_bandwidth_…json``: ``pp_size_<n>``, between neighbours of n pipeline stages;
- ``sp_time_…json``: ``allreduce_size_<n>_<S>MB_time``, milliseconds of one of a size;
- ``overlap_coefficient.json``: by what factor computing and communication slow each other down.
"""

from __future__ import annotations

import os
import re

from irtool.artefacts.damage import Damage
from irtool.artefacts.errors import ArtefactError
from irtool.artefacts.json_files import json_object, number_of
from irtool.ir.dataclass import dataclass

_WORLD = re.compile(r"(\d{1,5})nodes_(\d{1,5})gpus_per_node")
_PACE = re.compile(r"allreduce_size_(\d{1,6})_consec_([01])")
_PAIR = re.compile(r"pp_size_(\d{1,6})")
_TIME = re.compile(r"(allreduce|all2all)_size_(\d{1,6})_(\d{1,9})MB_time")
_OVERLAP = "overlap_coe"
_MIB = 1 << 20
_OPERATORS = {"allreduce": "AllReduce", "all2all": "AlltoAll"}


@dataclass(frozen=True, slots=True)
class GalvatronPace:
    """A collective's bandwidth where nobody says of which size: bytes of the array a second."""

    op: str
    ranks: tuple[int, ...]
    bandwidth: float


@dataclass(frozen=True, slots=True)
class GalvatronTime:
    """A collective of neighbours that was measured: bytes of the array, seconds."""

    op: str
    ranks: int
    bytes: int
    seconds: float


@dataclass(frozen=True, slots=True)
class GalvatronTables:
    """What a file holds; ``slowdown``: 1 where overlapping costs nothing."""

    path: str
    paces: tuple[GalvatronPace, ...] = ()
    times: tuple[GalvatronTime, ...] = ()
    slowdown: float | None = None

    @property
    def hidden(self) -> float | None:
        """What part of communication overlapping hides.

        While both run each takes ``slowdown`` times as long, so that ``2 - slowdown`` of the
        shorter one is gained.
        """
        return None if self.slowdown is None else min(1.0, max(0.0, 2 - self.slowdown))


def galvatron_tables(path: str, damage: Damage) -> GalvatronTables:
    """What a file of Galvatron's measurements holds: bandwidths, times, or the cost of overlapping.

    Args:
        path: the JSON; its name (``…_2nodes_8gpus_per_node.json``) tells how many devices were
            measured.
        damage: collects the keys that calibrate nothing here.
    """
    document = json_object(path, "table of Galvatron's")
    match = _WORLD.search(os.path.basename(path))
    world = int(match[1]) * int(match[2]) if match else 0
    paces: list[GalvatronPace] = []
    times: list[GalvatronTime] = []
    slowdown = None
    for key in document:
        value = number_of(document, key)
        if value is None or value <= 0:
            damage.add(1, f"{key[:60]} is no measured number")
        elif key == _OVERLAP:
            slowdown = value
        elif (time := _TIME.fullmatch(key)) is not None:
            size = int(time[3]) * _MIB
            times.append(GalvatronTime(_OPERATORS[time[1]], int(time[2]), size, value / 1e3))
        elif (pace := _pace(key, value, world)) is not None:
            paces.append(pace)
        else:
            damage.add(1, f"{key[:60]} is no key of Galvatron's that calibrates anything")
    if not paces and not times and slowdown is None:
        hint = "allreduce_bandwidth_*, p2p_bandwidth_*, sp_time_*, overlap_coefficient.json"
        raise ArtefactError(path, "holds no bandwidth of Galvatron's", hint=hint)
    return GalvatronTables(path, tuple(paces), tuple(times), slowdown)


def _pace(key: str, value: float, world: int) -> GalvatronPace | None:
    sent = value * _MIB * 1e3
    match = _PACE.fullmatch(key)
    if match is not None:
        count = int(match[1])
        if count < 2:
            return None
        stride = 1 if match[2] == "1" else world // count
        if not stride:
            return None
        ranks = tuple(range(0, count * stride, stride))
        return GalvatronPace("AllReduce", ranks, sent * count / (2 * (count - 1)))
    match = _PAIR.fullmatch(key)
    stages = int(match[1]) if match is not None else 0
    if stages < 2 or world < stages:
        return None
    return GalvatronPace("Send", (0, world // stages), sent)
