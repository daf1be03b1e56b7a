"""What files given to ``irtool calibrate`` measured of collectives and links."""

from __future__ import annotations

import os
from dataclasses import field

from irtool.artefacts.collective_tests import CollectiveTest, collective_test
from irtool.artefacts.communication import (
    Communicator,
    MeasuredCollective,
    array_bytes,
    communicators,
    measured_collectives,
    measured_links,
    primitive_of,
)
from irtool.artefacts.damage import Damage
from irtool.artefacts.errors import ArtefactError
from irtool.artefacts.galvatron import galvatron_tables
from irtool.cli.report import Failure, report_problems
from irtool.cluster.calibration import GroupPace, LinkPace, Sample
from irtool.ir.dataclass import dataclass
from irtool.ir.operators import COMMUNICATION
from irtool.syntax import file_facts, reading
from irtool.syntax.run import load_run
from irtool.syntax.source import DumpError

CODE = "ART001"
_METADATA = "profiler_metadata.json"
_COLLECTIVES = "communication.json"
_LINKS = "communication_matrix.json"
_ACROSS = ("RDMA",)
_INSIDE = ("HCCS", "SIO", "PCIE", "SDMA", "NVLINK")


@dataclass(slots=True)
class MeasuredCommunication:
    """Collectives and links of all files given; ``left``: what could not be used, and why."""

    samples: list[Sample] = field(default_factory=list[Sample])
    paces: list[GroupPace] = field(default_factory=list[GroupPace])
    links: list[LinkPace] = field(default_factory=list[LinkPace])
    left: list[str] = field(default_factory=list[str])
    overlap: float | None = None
    damages: int = 0

    @property
    def count(self) -> int:
        """How much was measured."""
        return len(self.samples) + len(self.paces) + len(self.links)


def read_communication_in(folder: str, measured: MeasuredCommunication, ranks: int | None) -> None:
    """What the profiles in a run folder measured of communication; nothing where they don't.

    Args:
        folder: the run folder.
        measured: that is added to.
        ranks: how many take part in a collective, where the profile does not say it.

    Raises:
        Failure: the folder can't be read.
    """
    try:
        run = load_run(folder)
    except DumpError as error:
        raise Failure(error.message, folder, hint=error.hint) from None
    for rank in run.by_rank.values():
        metadata = rank.artefact("communicators")
        for artefact in rank.artefacts:
            damage = Damage(artefact.path)
            if artefact.kind == "communication":
                _collectives(artefact.path, metadata, measured, damage, ranks)
            elif artefact.kind == "links":
                _links(artefact.path, measured, damage)
            report_problems(damage.problems)
            measured.damages += damage.count


def read_communication(
    path: str, measured: MeasuredCommunication, damage: Damage, op: str | None, ranks: int | None
) -> None:
    """Read what one file measured of collectives and links.

    Args:
        path: the file.
        measured: takes it.
        damage: takes what can't be read.
        op: the collective, where the file says none.
        ranks: how many took part, where it does not say that.

    Raises:
        Failure: the file is none that measures communication, or says too little.
    """
    name = os.path.basename(path)
    try:
        if name == _COLLECTIVES:
            metadata = os.path.join(os.path.dirname(path), _METADATA)
            above = os.path.join(os.path.dirname(os.path.dirname(path)), _METADATA)
            beside = next((file for file in (metadata, above) if file_facts.exists(file)), None)
            _collectives(path, beside, measured, damage, ranks)
        elif name == _LINKS:
            _links(path, measured, damage)
        elif name.endswith(".json") and not _is_test(path):
            _galvatron(path, measured, damage)
        else:
            measured.samples += _samples(collective_test(path, damage), op, ranks)
    except ArtefactError as error:
        raise Failure(error.message, error.place, hint=error.hint, code=CODE) from None


def _is_test(path: str) -> bool:
    """Whether a JSON file is of nccl-tests."""
    try:
        with reading.opened(path) as stream:
            return b'"results"' in stream.read(1 << 16)
    except OSError:
        return False


def _galvatron(path: str, measured: MeasuredCommunication, damage: Damage) -> None:
    tables = galvatron_tables(path, damage)
    measured.paces += [GroupPace(one.op, one.ranks, one.bandwidth, path) for one in tables.paces]
    measured.samples += [
        Sample(one.op, one.ranks, one.bytes, one.seconds, path) for one in tables.times
    ]
    measured.overlap = measured.overlap if tables.hidden is None else tables.hidden


def _links(path: str, measured: MeasuredCommunication, damage: Damage) -> None:
    """All operations of a type together, where the file sums them up."""
    links = list(measured_links(path, damage))
    totals = [one for one in links if one.is_total] or links
    for one in totals:
        transport = one.transport.upper()
        if transport in (*_ACROSS, *_INSIDE) and one.source != one.target:
            measured.links.append(
                LinkPace(transport in _INSIDE, one.megabytes * 1e6, one.milliseconds / 1e3)
            )
    if not links:
        measured.left.append(f"{path}: no link was measured")


def _collectives(
    path: str,
    metadata: str | None,
    measured: MeasuredCommunication,
    damage: Damage,
    ranks: int | None,
) -> None:
    """Operations of a profile, by the time that data moved: all other time is waiting."""
    groups: dict[int, Communicator] = {}
    if metadata is not None:
        beside = Damage(metadata)
        groups = {one.hash: one for one in communicators(metadata, beside)}
        report_problems(beside.problems)
        measured.damages += beside.count
    unknown: dict[str, int] = {}
    for one in measured_collectives(path, damage):
        sample = _sample(one, groups, ranks, path)
        if isinstance(sample, str):
            unknown[sample] = unknown.get(sample, 0) + 1
        else:
            measured.samples.append(sample)
    measured.left += [f"{path}: {count} operations: {why}" for why, count in unknown.items()]


def _sample(
    one: MeasuredCollective, groups: dict[int, Communicator], ranks: int | None, path: str
) -> Sample | str:
    """A collective, or why it tells nothing."""
    op = primitive_of(one)
    if op is None or op not in COMMUNICATION:
        return "no collective that is priced"
    if op in ("Send", "Receive"):
        return "which ranks a transfer joins is not said"
    group = groups.get(one.group) if one.group is not None else None
    members = group.ranks if group is not None else ()
    count = len(members) or ranks or 0
    if not count:
        return f"who took part is said in {_METADATA} alone, or by --ranks"
    size = array_bytes(one, count)
    if size is None or one.transit <= 0:
        return "nothing tells the size of its array"
    return Sample(op, count, size, one.transit / 1e6, path, members)


def _samples(test: CollectiveTest, op: str | None, ranks: int | None) -> list[Sample]:
    name, count = test.op or op, test.ranks or ranks
    if name is None or name not in COMMUNICATION:
        hint = "--op AllReduce, or name the file after the test: all_reduce_8ranks.txt"
        raise Failure("does not say which collective it measured", test.path, hint=hint, code=CODE)
    if count is None:
        hint = "--ranks 8, or name the file after them: all_reduce_8ranks.txt"
        raise Failure("does not say how many ranks took part", test.path, hint=hint, code=CODE)
    return [
        Sample(name, count, row.bytes, row.seconds, f"{test.path}:{row.line}")
        for row in test.rows
        if row.passed is not False
    ]
