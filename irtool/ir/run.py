"""What a training run leaves behind, as plain records: files with what their names say."""

from __future__ import annotations

from typing import Literal, NamedTuple

from irtool.ir.dataclass import dataclass

PassKind = Literal["stage", "parallel", "pass", "substep", "backend", "kernel", "failure", "other"]
LogKind = Literal["stdout", "stderr", "worker", "scheduler", "log"]


class PassName(NamedTuple):
    """What a dump's file name says: file number, action or pass, index of the stage."""

    number: int | None
    name: str
    stage: int | None


@dataclass(frozen=True, slots=True)
class PassFile:
    """One dump of a run, not yet read.

    ``name`` is the action or pass it was taken after, ``base`` the file name without number and
    suffix, ``number`` the file number (None where the name has none), ``stage`` the index of the
    stage, ``order`` the place in time among the dumps of its rank, ``size`` the file's bytes.
    """

    path: str
    name: str
    number: int | None
    order: int
    rank: int
    stage: int | None = None
    kind: PassKind = "other"
    base: str = ""
    size: int = 0


@dataclass(frozen=True, slots=True)
class LogFile:
    """A log of the run; ``rank`` is None where it belongs to no rank (scheduler)."""

    path: str
    kind: LogKind
    rank: int | None = None


ArtefactKind = Literal[
    "kernels", "kinds", "steps", "communication", "trace", "cpu launches", "cpu totals",
    "cpu kinds", "cpu shapes", "cpu memory", "pool memory", "memory blocks", "tasks",
    "tracker graph", "launch order", "collective order", "dump order",
    "links", "communicators", "operator memory", "legacy kernels", "legacy kinds", "legacy tasks",
    "legacy steps", "legacy communication", "legacy stages",
]  # fmt: skip
"""What a file beside the dumps tells; ``dump order``: of the tensor dump, one for each graph."""


@dataclass(frozen=True, slots=True)
class ArtefactFile:
    """A file that a profiler, the memory tracker or a dry run left, not yet read."""

    path: str
    kind: ArtefactKind
    rank: int


@dataclass(frozen=True, slots=True)
class TensorDump:
    """One folder of MindSpore's tensor dump: the tensors or statistics of one iteration.

    ``iteration`` is None for the folder of constants; ``statistics`` is the path of its table of
    figures, as ``path`` is given: from the current folder, or from the root.
    """

    path: str
    rank: int
    net: str
    graph: int | None
    iteration: int | None
    statistics: str | None = None
    tensors: bool = False


@dataclass(frozen=True, slots=True)
class MsprobeDump:
    """One ``dump.json`` folder of msprobe: one step of one rank.

    ``part`` is ``graph`` or ``pynative`` where msprobe wrote both halves; ``process`` is the
    process number where the rank was not known to msprobe.
    """

    path: str
    rank: int
    step: int | None
    process: int | None = None
    part: str = ""


@dataclass(frozen=True, slots=True)
class RankClass:
    """Ranks whose graphs are equal up to what depends on the rank.

    ``fingerprint`` is empty where there was no dump that could be read.
    """

    ranks: tuple[int, ...]
    fingerprint: str
    file: PassFile | None = None

    @property
    def representative(self) -> int:
        """The lowest rank, which speaks for the others."""
        return self.ranks[0]


@dataclass(frozen=True, slots=True)
class InputFile:
    """One file to be read, with what its place says.

    ``rank`` and ``compilation`` are None where nothing says them; ``run`` is the folder that was
    named on the command line, empty for files named themselves.
    """

    path: str
    rank: int | None = None
    compilation: int | None = None
    name: str = ""
    run: str = ""
