"""A tensor dump as data: operators in the order they ran, and the tensors they read and wrote.

Figures of tensors are kept in columns (one list a figure) instead of one object a tensor: a dump
has ten thousands of them, and most are only ever looked at as a whole.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field
from typing import Literal, TypeAlias

from irtool.ir.dataclass import dataclass
from irtool.ir.graph import Node

Shape: TypeAlias = tuple[int, ...]
Phase: TypeAlias = Literal["forward", "backward", "optimizer"]
Kind: TypeAlias = Literal["mindspore", "statistics", "msprobe", "folder", "digest"]
Level: TypeAlias = Literal["tensors", "statistics", "md5"]
Places: TypeAlias = tuple[int, int]
"""A pair of tensors: where it stands in the columns of the left and of the right dump."""

NAN = float("nan")
_NAMED = 3


@dataclass(slots=True)
class Columns:
    """All tensors of one dump, a column a property; a tensor is a place in them.

    Attributes:
        labels: which tensor of its operator: ``input.0``, ``output.0``, ``weight``.
        dtypes: element type, spelt as MindSpore prints it (``Float32``); what the *values* have
            been rounded to, wherever the file keeps them in a wider type.
        shapes: dimensions; empty for scalars.
        most, least, mean, norm: figures that the dump states; NaN where it does not.
        broken: number of elements that are NaN or infinite, -1 where nobody counted.
        hashes: checksum of the bytes, empty where there is none.
        files: where the values are, empty where only figures are; see
            :mod:`irtool.compare.tensors.formats.payload`.
        notes: what is wrong with the tensor itself, empty for nothing.
        unread: why the values of a tensor could not be read, though there should be some.
        resolution: relative distance of figures that printing them with few digits hides.
        sketches: sums that stand for the values, None where there are none; see
            :mod:`irtool.compare.tensors.measuring.sketch`.
    """

    labels: list[str] = field(default_factory=list[str])
    dtypes: list[str] = field(default_factory=list[str])
    shapes: list[Shape] = field(default_factory=list[Shape])
    most: list[float] = field(default_factory=list[float])
    least: list[float] = field(default_factory=list[float])
    mean: list[float] = field(default_factory=list[float])
    norm: list[float] = field(default_factory=list[float])
    broken: list[int] = field(default_factory=list[int])
    hashes: list[str] = field(default_factory=list[str])
    files: list[str] = field(default_factory=list[str])
    resolution: float = 0.0
    notes: dict[int, str] = field(default_factory=dict[int, str])
    unread: dict[int, str] = field(default_factory=dict[int, str])
    sketches: dict[int, tuple[float, ...]] = field(default_factory=dict[int, tuple[float, ...]])

    def add(
        self,
        label: str,
        dtype: str,
        shape: Shape,
        figures: tuple[float, float, float, float] = (NAN, NAN, NAN, NAN),
        file: str = "",
        checksum: str = "",
        broken: int = -1,
    ) -> int:
        """Put a tensor at the end; its place."""
        self.labels.append(label)
        self.dtypes.append(dtype)
        self.shapes.append(shape)
        most, least, mean, norm = figures
        self.most.append(most)
        self.least.append(least)
        self.mean.append(mean)
        self.norm.append(norm)
        self.broken.append(broken)
        self.hashes.append(checksum)
        self.files.append(file)
        return len(self.labels) - 1

    def add_from(self, source: Columns, place: int) -> int:
        """Put a tensor of other columns at the end, but for its sketch; its place."""
        made = self.add(
            source.labels[place],
            source.dtypes[place],
            source.shapes[place],
            (source.most[place], source.least[place], source.mean[place], source.norm[place]),
            source.files[place],
            source.hashes[place],
            source.broken[place],
        )
        for theirs, ours in ((source.notes, self.notes), (source.unread, self.unread)):
            if place in theirs:
                ours[made] = theirs[place]
        return made

    def __len__(self) -> int:
        return len(self.labels)


@dataclass(slots=True)
class Op:
    """One operator (or module) that ran.

    Attributes:
        index: its place in the order of execution.
        name: as the dump calls it.
        type: the operator: ``MatMul``, ``linear``, ``LayerNorm``.
        phase: forward, backward or optimizer.
        inputs, outputs: places of its tensors; parameters of a module count as inputs.
        parameters: those of the inputs that are parameters of the network.
        attributes: everything that is no tensor: scalars, flags, axes, as the dump has them.
        owner: the module it ran in, empty where nobody says.
        call: of a backward operator the name of the forward one, and of a forward one its own.
        source: the innermost line of the user's code, empty where nobody says.
        node: the node of the graph dump that it was joined with.
        parts: calls that stand together as this one, where the other framework has one for them.
    """

    index: int
    name: str
    type: str
    phase: Phase
    inputs: Sequence[int]
    outputs: Sequence[int]
    parameters: frozenset[int] = frozenset()
    attributes: Mapping[str, object] = field(default_factory=dict[str, object])
    owner: str = ""
    call: str = ""
    source: str = ""
    node: Node | None = None
    is_module: bool = False
    parts: tuple[Op, ...] = ()

    @property
    def members(self) -> tuple[Op, ...]:
        """The calls of the dump that it stands for: itself, as a rule."""
        return self.parts or (self,)

    @property
    def is_opaque(self) -> bool:
        """Whether it is several calls, of which only what goes in and comes out is looked at."""
        return self.is_module or bool(self.parts)

    @property
    def tensors(self) -> Iterator[int]:
        """All its tensors, inputs first."""
        yield from self.inputs
        yield from self.outputs


@dataclass(slots=True)
class TensorRun:
    """The tensors of one step of one rank.

    ``level`` says how much there is of each tensor; ``complaints`` what could not be read, for
    people; ``casts`` are the operators that convert types, once somebody has asked for them.
    """

    path: str
    kind: Kind
    level: Level
    framework: str
    columns: Columns
    ops: list[Op]
    rank: int = 0
    step: int | None = None
    graph: int | None = None
    complaints: list[str] = field(default_factory=list[str])
    order_known: bool = True
    casts: list[Op] | None = None

    @property
    def problems(self) -> list[str]:
        """What of it could not be read, the first few tensors by name."""
        unread = self.columns.unread
        problems = [*self.complaints]
        for place, reason in list(unread.items())[:_NAMED]:
            problems.append(f"{os.path.basename(self.columns.files[place])}: {reason}")
        if len(unread) > _NAMED:
            problems.append(f"… and {len(unread) - _NAMED:,} more tensors that cannot be read")
        return problems

    @property
    def conflicts(self) -> int:
        """Tensors whose payload contradicts their declared type."""
        return sum(note.startswith("payload") for note in self.columns.notes.values())


class NoTensors(ValueError):
    """A path without a tensor dump that can be read; the message says what was looked for."""
