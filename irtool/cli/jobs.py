"""Plans as Kubernetes jobs: what ``--format msjob`` of several commands writes."""

from __future__ import annotations

import re
from collections.abc import Callable

from irtool.cli.report import Failure, note
from irtool.ir.dataclass import dataclass
from irtool.ir.dump import Dump

_NAME = re.compile(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?")


@dataclass(frozen=True, slots=True)
class JobWords:
    """A job as it is typed; None: as usual."""

    name: str | None = None
    image: str | None = None
    command: str | None = None
    servers: int | None = None


@dataclass(frozen=True, slots=True)
class WrittenJob:
    """The job as text, and whether the strategy file is in it."""

    text: str
    has_strategies: bool


def written_job(
    words: JobWords, dump: Dump, devices: int, target: str, strategy: Callable[[], str]
) -> WrittenJob:
    """The job, with the plan as the strategy file that its pods mount.

    Args:
        words: as it is typed.
        dump: the network.
        devices: workers.
        target: ``Ascend``, ``GPU`` or ``CPU``.
        strategy: writes the strategy file, or fails where none can hold the plan.

    Raises:
        Failure: the name is none.
    """
    from irtool.artefacts.strategies.json import read_json_strategies
    from irtool.planning.recovery.servers import serves_parameters
    from irtool.report.msjob import LARGEST_MAP, Job, job_text

    name = words.name or "mindspore-training"
    if not _NAME.fullmatch(name):
        hint = "lower-case letters, digits and hyphens, 63 at most"
        raise Failure(f"{name!r} is no name for a job", "--name", hint=hint)
    servers = words.servers
    if servers is None:
        servers = int(serves_parameters(dump))
    held: str | None = None
    try:
        held = strategy()
        if len(held.encode()) > LARGEST_MAP:
            note("the strategy file is larger than a ConfigMap may be: --format strategy writes it")
            held = None
    except Failure as error:
        note(f"the job carries no strategy file: {error.message}")
    job = Job(
        name,
        words.image or "mindspore-image-name:tag",
        words.command or "python train.py",
        devices,
        servers,
        target,
        held,
        "parameters" if held is None else read_json_strategies("", held.encode()).keys,
    )
    return WrittenJob(job_text(job), held is not None)
