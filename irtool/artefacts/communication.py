"""``communication.json``: what each collective of a profile took, and what of it was waiting.

Structure: ``ascend_communication_viewer.py`` of MindSpore 2.7.0; values were seen in a sample that
msprof-analyze made of a torch_npu cluster, none of MindSpore's own.  There MB and GB are decimal.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal, cast

from irtool.artefacts.damage import Damage
from irtool.artefacts.errors import ArtefactError, bytes_of
from irtool.ir.limits import MAX_DOCUMENT
from irtool.syntax.reading import JsonError, parse_json

CommunicationKind = Literal["collective", "p2p"]
_OPERATOR = re.compile(r"(?P<op>.+?)__(?P<group>\d+)_(?P<index>\d+)(?:_\d+)?(?:@(?P<hash>\d+))?")
_TOTAL = "Total Op Info"


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

    Raises:
        ArtefactError: it is no such file.
    """
    try:
        document = parse_json(bytes_of(path, MAX_DOCUMENT))
    except JsonError as error:
        raise ArtefactError(
            path, f"is no JSON: {error.message}", error.line, error.column
        ) from None
    if not isinstance(document, dict):
        raise ArtefactError(path, "holds no table of steps", 1)
    for step, kinds in cast("dict[str, Any]", document).items():
        table = _table(kinds)
        for kind in ("p2p", "collective"):
            for name, info in _table(table.get(kind)).items():
                if name == _TOTAL:
                    continue
                found = _collective(step, kind, name, _table(info))
                if found is None:
                    damage.add(1, f"{name} of {step} has no times")
                else:
                    yield found


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
    times = _table(info.get("Communication Time Info"))
    elapsed, transit = _number(times, "Elapse Time(ms)"), _number(times, "Transit Time(ms)")
    if elapsed is None or transit is None:
        return None
    match = _OPERATOR.fullmatch(name)
    links = tuple(
        LinkTraffic(link, megabytes, milliseconds)
        for link, values in _table(info.get("Communication Bandwidth Info")).items()
        if (megabytes := _number(_table(values), "Transit Size(MB)"))
        and (milliseconds := _number(_table(values), "Transit Time(ms)"))
    )
    return MeasuredCollective(
        step,
        kind,
        name,
        match["op"] if match else name,
        int(match["hash"]) if match and match["hash"] else None,
        int(match["index"]) if match else None,
        _number(times, "Start Timestamp(us)") or 0.0,
        elapsed * 1e3,
        transit * 1e3,
        (_number(times, "Wait Time(ms)") or 0.0) * 1e3,
        links,
    )


def _table(value: object) -> dict[str, Any]:
    return cast("dict[str, Any]", value) if isinstance(value, dict) else {}


def _number(table: Mapping[str, Any], name: str) -> float | None:
    value: Any = table.get(name)
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return float(value)
