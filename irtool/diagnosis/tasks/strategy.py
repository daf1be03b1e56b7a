"""Would MindSpore refuse a strategy, and what would it take instead?"""

from __future__ import annotations

import os
from collections.abc import Generator, Iterator, Mapping, Sequence
from contextlib import suppress
from math import lcm, prod
from typing import TYPE_CHECKING, cast

from irtool.artefacts.errors import ArtefactError
from irtool.artefacts.strategies import SUFFIXES, read_strategies
from irtool.diagnosis.diagnosis import CannotJudge, Diagnosis, Task, diagnosis, strategy_edit
from irtool.diagnosis.failures import INTERPRETED, is_interpreted, logged
from irtool.diagnosis.subject import BEGIN, Checked, Reads, Subject, source_of
from irtool.ir.dump import Dump
from irtool.ir.finding import Edit, Finding, SourceLine
from irtool.ir.graph import Node, node_of
from irtool.ir.limits import bounded_int
from irtool.sharding.check import check
from irtool.sharding.network.context import (
    FEW_DEVICES,
    LARGEST_WORLD,
    NODE_DEVICES,
    ParallelContext,
)
from irtool.sharding.network.graphs import network_of
from irtool.sharding.suggest import Proposals, proposals

if TYPE_CHECKING:
    from irtool.planning.files.saved_strategies import SavedCheck

TASK: Task = "strategy"
READS: Reads = "begin"
_UNKNOWN_RANK = -2
_COUNTED = ("device-count", "layout")
"""Codes of refusals that say how many devices a stage has."""


def examine(subject: Subject) -> Iterator[Diagnosis]:
    """An error for each strategy that the compiler refuses, on every stage that left a dump.

    Where nobody says how many devices there are, those are told that are refused on as many as a
    log names, else on any number of them.

    Args:
        subject: the run; of each stage the lowest rank's begin dump is checked.

    Raises:
        CannotJudge: nobody says how many devices there are, and no strategy is refused on any
            number of them; or there is no begin dump.
    """
    try:
        _ = subject.parallel
    except CannotJudge:
        refused = list(_on_logged_devices(subject)) or list(_on_any_devices(subject))
        if not refused:
            raise
        yield from refused
        return
    for rank in _one_a_stage(subject):
        checked = _checked_of(subject, rank)
        wrong = [item for item in checked.report.findings if item.severity == "error"]
        wrong = yield from _without_python(subject, checked, wrong, rank)
        proposed = proposals(checked.dump, checked.report) if wrong else None
        for finding in wrong:
            yield _refused(subject, checked, finding, proposed, rank)
    yield from _saved(subject)  # a damaged dump is not judged from here on


def edit_of_refused(subject: Subject, op: str, source: SourceLine | None) -> Edit | None:
    """What to write in the place of a refused strategy, for who knows of the refusal from a log.

    Args:
        subject: the run.
        op: the operator that is refused.
        source: the line that calls it, if known.

    Returns:
        None where the begin dumps refuse no such operator, or several edits would mend it.
    """
    held = subject.remembered.get("refused")
    if held is None:
        diagnoses: list[Diagnosis] = []
        with suppress(CannotJudge):
            diagnoses += examine(subject)
        held = subject.remembered["refused"] = diagnoses
    refused = [item for item in cast("list[Diagnosis]", held) if item.op == op]
    here = [item for item in refused if source is None or item.source == source] or refused
    edits = {item.edit for item in here}
    return edits.pop() if len(edits) == 1 else None


def _checked_of(subject: Subject, rank: int) -> Checked:
    """The begin dump of a rank, judged; of a damaged one what is left."""
    with suppress(CannotJudge):
        return subject.checked_of(rank) if rank != subject.picked.rank else subject.checked
    return subject.checked_of(rank, partly=True)


def _without_python(
    subject: Subject, checked: Checked, wrong: list[Finding], rank: int
) -> Generator[Diagnosis, None, list[Finding]]:
    """Tells the line left to Python, if what is refused follows from one, and gives the rest."""
    python = {finding: source for finding in wrong if (source := _python_before(finding))}
    if python:
        yield _left_to_python(subject, checked, python, rank)
    return [finding for finding in wrong if finding not in python]


def _python_before(finding: Finding) -> Node | None:
    """What runs in Python's interpreter and gives a refused operator a tensor of unknown rank."""
    seen: set[Node] = set()
    waiting = [finding.subject]
    first: Node | None = None
    while waiting:
        node = waiting.pop()
        for source in node.inputs if isinstance(node, Node) else ():
            if not isinstance(source, Node) or source in seen or not _is_of_unknown_rank(source):
                continue
            seen.add(source)
            if is_interpreted(source) and source.location is not None:
                first = source if first is None or source.line < first.line else first
            waiting.append(source)
    return first


def _is_of_unknown_rank(node: Node) -> bool:
    kind = node.output_type
    return kind is not None and _UNKNOWN_RANK in (kind.dimensions or ())


def _left_to_python(
    subject: Subject, checked: Checked, python: Mapping[Finding, Node], rank: int
) -> Diagnosis:
    """One line that the compiler leaves to Python, with the first operator behind it."""
    finding, node = next(iter(python.items()))
    more = f" and {len(python) - 1} more behind it" if len(python) > 1 else ""
    return diagnosis(
        TASK,
        "error",
        f"MindSpore refuses {finding.op}{more}: it is given a tensor whose shape is not known"
        f"{INTERPRETED}",
        subject.command("parse", checked.dump.path, "--where", f"line == {node.line}"),
        rank=rank,
        node=node.id,
        file=checked.dump.path,
        line=node.line,
        source=source_of(node),
        since=BEGIN,
    )


def _on_logged_devices(subject: Subject) -> Iterator[Diagnosis]:
    """What is refused on as many devices as MindSpore says, where it refuses, that a stage has."""
    file = subject.picked.file(BEGIN)
    try:
        log_findings = [item for item in logged(subject) if item.code in _COUNTED]
    except CannotJudge:
        return
    values = [dict(item.values) for item in log_findings]
    counts = {bounded_int(one["devices"]) for one in values if "devices" in one}
    if file is None or len(counts) != 1 or not 1 < (devices := counts.pop()) <= LARGEST_WORLD:
        return
    checked = _checked_for(subject.read(subject.picked, file), devices)
    refused = {(item.code, item.op) for item in log_findings}
    wrong = [item for item in checked.report.findings if (item.code, item.op) in refused]
    wrong = yield from _without_python(subject, checked, wrong, subject.picked.rank)
    proposed = proposals(checked.dump, checked.report) if wrong else None
    for finding in wrong:
        yield _refused(
            subject, checked, finding, proposed, subject.picked.rank, ("--devices", str(devices))
        )


def _on_any_devices(subject: Subject) -> Iterator[Diagnosis]:
    """Strategies that are refused however many devices there are.

    A network that was refused leaves one dump, which may tell nothing of devices.  On so many as
    every strategy of it divides, none is refused for taking too many.
    """
    file = subject.picked.file(BEGIN)
    if file is None:
        return
    dump = subject.read_whole(subject.picked, file)
    counts = {prod(row) for node in dump.nodes() for row in _rows(node.written_strategy())}
    every = lcm(*counts) if counts else 0
    devices = lcm(*(count for count in counts if not count & (count - 1)))
    if every not in FEW_DEVICES:
        every = lcm(every, NODE_DEVICES)
    if not 1 < every <= LARGEST_WORLD:
        return
    if devices not in FEW_DEVICES:
        devices = lcm(devices, NODE_DEVICES)
    checked = _checked_for(dump, every)
    # On 24 devices, say, groups are refused that nobody asked for: what the usual number of devices
    # allows is not told.
    usual = checked if devices == every or devices < 2 else _checked_for(dump, devices)
    refused = {node_of(item) for item in usual.report.findings if item.severity == "error"}
    proposed = proposals(dump, usual.report)
    edits = {node_of(finding): rows for finding, rows in proposed.strategies.items()}
    errors = [item for item in checked.report.findings if item.severity == "error"]
    for finding in (yield from _without_python(subject, checked, errors, subject.picked.rank)):
        node = finding.subject
        if not isinstance(node, Node) or node not in refused:
            continue
        if node.written_strategy():
            near = Proposals({finding: edits.get(node, ())}, {})
            yield _refused(
                subject, checked, finding, near, subject.picked.rank, ("--devices", str(every))
            )


def _checked_for(dump: Dump, devices: int) -> Checked:
    parallel = ParallelContext(devices=devices, full_batch=True, dataset="unknown")
    network = network_of(dump)
    return Checked(dump, parallel, check(dump, parallel, network=network), network)


def _rows(strategy: object) -> Iterator[tuple[int, ...]]:
    """What a strategy says of each tensor, those inside tuples of tensors too."""
    if not isinstance(strategy, tuple | list):
        return
    items = cast("Sequence[object]", strategy)
    row = tuple(item for item in items if isinstance(item, int))
    if len(row) == len(items):
        if row:
            yield row
        return
    for item in items:
        yield from _rows(item)


def _saved(subject: Subject) -> Iterator[Diagnosis]:
    """A warning for a strategy file of the run that says otherwise than its network."""
    checked = subject.checked
    if checked.report.accepted is False:
        return
    paths = [path for path in subject.run.strategy_files if path.endswith(SUFFIXES)]
    if not paths:
        return
    from irtool.planning.files.saved_strategies import check_saved  # few runs keep strategies

    for path in paths:
        try:
            file = read_strategies(path)
        except ArtefactError:
            continue
        said = _contradiction(
            check_saved(checked.dump, checked.context, file), checked.context.stage
        )
        if said:
            yield diagnosis(
                TASK,
                "warning",
                f"{os.path.relpath(path, subject.path)} {said}",
                subject.command("check", "RUN", "--strategy", path),
                rank=subject.picked.rank,
                file=path,
            )


def _contradiction(saved: SavedCheck, stage: int) -> str:
    """What a saved file says otherwise than the network that lies beside it; "" for nothing."""
    others = [
        entry
        for entry in saved.entries
        if entry.before is not None and entry.before != entry.strategy and entry.effect != "unknown"
    ]
    if others:
        first = others[0]
        more = f" and {len(others) - 1} more" if len(others) > 1 else ""
        return (
            f"names {first.strategy} for {first.key}{more}, and the run has {first.before}: "
            "it was not loaded, or has no effect"
        )
    lying = [
        layout.name
        for layout in saved.layouts
        if layout.saved is not None
        and layout.other is not None
        and (layout.saved.stage or 0) == stage
    ]
    if not lying:
        return ""
    more = f" and {len(lying) - 1} more" if len(lying) > 1 else ""
    return (
        f"gives {lying[0]}{more} another layout than this run does: checkpoints that are "
        "converted by it are cut wrong"
    )


def _one_a_stage(subject: Subject) -> list[int]:
    """The lowest rank of each stage that has a begin dump."""
    size = subject.parallel.stage_size
    lowest: dict[int, int] = {}
    for rank, compilation in sorted(subject.compilations.items()):
        if compilation.file(BEGIN) is not None:
            lowest.setdefault(rank // size, rank)
    return list(lowest.values()) or [subject.picked.rank]


def _refused(
    subject: Subject,
    checked: Checked,
    finding: Finding,
    proposed: Proposals | None,
    rank: int,
    options: tuple[str, ...] = (),
) -> Diagnosis:
    node = finding.subject if isinstance(finding.subject, Node) else None
    source = finding.source or source_of(node)
    rows = proposed.strategies.get(finding, ()) if proposed is not None else ()
    edit = finding.edit
    strategy = node.written_strategy() if node is not None else None
    if edit is None and rows and strategy is not None:
        edit = strategy_edit(source, str(strategy), str(rows[0]))
    refused = f"MindSpore refuses {finding.op}: " if finding.op else ""
    return diagnosis(
        TASK,
        "error",
        f"{refused}{finding.message}",
        subject.command("check", "RUN", *options),
        rank=rank,
        node=finding.node,
        op=finding.op,
        file=checked.dump.path,
        line=finding.line,
        source=source,
        edit=edit,
        since=BEGIN,
        no_edit="no strategy was found that this operator and those around it take together",
    )
