"""What a path holds of tensors: run folders, msprobe's, digests, plain folders and files."""

from __future__ import annotations

from irtool.compare.tensors import digest
from irtool.compare.tensors.formats.mindspore import read_mindspore
from irtool.compare.tensors.formats.msprobe.dump import read_msprobe
from irtool.compare.tensors.formats.plain import read_plain
from irtool.compare.tensors.model import TensorRun
from irtool.compare.tensors.plain_files import holds_plain
from irtool.ir.dataclass import dataclass
from irtool.ir.run import MsprobeDump, TensorDump
from irtool.syntax.run import Run


@dataclass(frozen=True, slots=True)
class Unit:
    """The tensors of one step of one rank, not yet read.

    ``key`` tells units of one run apart and is the same in another run: rank, step, graph, part.
    """

    key: tuple[int, int, int, str]
    source: TensorDump | MsprobeDump | str

    @property
    def rank(self) -> int:
        """The rank; 0 where nobody says."""
        return self.key[0]

    @property
    def step(self) -> int | None:
        """The step or iteration; None where nobody says."""
        return None if self.key[1] < 0 else self.key[1]

    @property
    def path(self) -> str:
        """The folder or file that its tensors lie in."""
        return self.source if isinstance(self.source, str) else self.source.path

    @property
    def name(self) -> str:
        """What the unit is called: ``rank 0, step 1``."""
        rank, step, graph, part = self.key
        words = [f"rank {rank}"]
        if step >= 0:
            words.append(f"step {step}")
        if graph > 0:
            words.append(f"graph {graph}")
        if part:
            words.append(part)
        return ", ".join(words)

    def read(self) -> TensorRun:
        """Read what it names.

        Raises:
            NoTensors: it cannot be read.
        """
        if isinstance(self.source, TensorDump):
            return read_mindspore(self.source)
        if isinstance(self.source, MsprobeDump):
            return read_msprobe(self.source)
        return read_plain(self.source)


def units_of(run: Run) -> list[Unit]:
    """The tensor dumps of a run folder, by step and then by rank.

    Args:
        run: the run folder; of two dumps of one rank, step, graph and part the first counts.
    """
    units: list[Unit] = []
    for dump in run.tensor_dumps:
        if dump.iteration is not None and (dump.tensors or dump.statistics):
            graph = dump.graph or 0
            units.append(Unit((dump.rank, dump.iteration, graph, ""), dump))
    for dump in run.msprobe:
        step = -1 if dump.step is None else dump.step
        units.append(Unit((dump.rank, step, 0, dump.part), dump))
    unique: dict[tuple[int, int, int, str], Unit] = {}
    for unit in units:
        unique.setdefault(unit.key, unit)
    return sorted(unique.values(), key=lambda unit: (unit.key[1], unit.key[0], unit.key[2:]))


def plain_units(path: str) -> list[Unit]:
    """A folder of npy, npz, pt or safetensors files as the only unit there is; or a file.

    Args:
        path: of the folder or the file.

    Returns:
        Empty, or one, of rank 0 and no step.
    """
    return [Unit((0, -1, 0, ""), path)] if holds_plain(path) else []


def is_digest(path: str) -> bool:
    """Whether a file is what ``--digest`` wrote.

    Args:
        path: of the file.
    """
    return digest.is_digest(path)
