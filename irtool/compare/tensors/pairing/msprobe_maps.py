"""msprobe's mapping files as pairs of names: of cells, of data, of layers.

- cells: ``path.Class`` of a cell = ``path.Class`` of a module;
- data: the name of a tensor = the name of a tensor, by which their operators are paired;
- layers: by the class of a parent, what its children are called on the other side; ``TopLayer``
  stands for the parent of all.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import field

from irtool.compare.tensors.model import Op, TensorRun
from irtool.ir.dataclass import dataclass

_TENSOR = re.compile(r"\.(?:input|output|parameters)(?:\.|$)")
TOP = "TopLayer"
"""The parent of all modules, in layer files."""


@dataclass(frozen=True, slots=True)
class NameMaps:
    """What map files say.

    Attributes:
        names: operators, or beginnings of their names, and what they are called on the right.
        cells: modules on the left, path and class, and those on the right.
        layers: by class of a left module, its children and what they are called on the right.
    """

    names: Mapping[str, str] = field(default_factory=dict[str, str])
    cells: Mapping[str, str] = field(default_factory=dict[str, str])
    layers: Mapping[str, Mapping[str, str]] = field(default_factory=dict[str, Mapping[str, str]])

    @property
    def of_parameters(self) -> Mapping[str, str]:
        """Names of modules, and what they are called on the right, where no module has a class.

        What children of a class are called does not serve there, but for those of the top layer.
        """
        names = {**self.layers.get(TOP, {}), **self.names, **self.cells}
        for ours, theirs in self.cells.items():
            if _names_class(ours) and _names_class(theirs):
                names.setdefault(_path(ours), _path(theirs))
        return names

    def of_runs(self, left: TensorRun, right: TensorRun) -> Mapping[str, str]:
        """Names of left operators and of their partners, for two dumps.

        Args:
            left: one dump.
            right: the other.
        """
        if not self.cells and not self.layers:
            return self.names
        names = dict(self.names)
        theirs = {_key(op, op.owner): op.name for op in right.ops if op.is_module}
        classes = {op.owner: op.type for op in left.ops if op.is_module}
        paths = {_path(a): _path(b) for a, b in self.cells.items()}
        for op in left.ops:
            if not op.is_module:
                continue
            path = paths.get(op.owner) or (self._translated(op.owner, classes))
            match = theirs.get(_key(op, path))
            if match is not None:
                names.setdefault(op.name, match)
        return names

    def _translated(self, path: str, classes: Mapping[str, str]) -> str:
        """A path under the names of the right side, parent by parent."""
        words = path.split(".")
        made: list[str] = []
        place = 0
        while place < len(words):
            kind = classes.get(".".join(words[:place]), "") if place else TOP
            children = self.layers.get(kind, {})
            taken = next(
                (
                    size
                    for size in range(len(words) - place, 0, -1)
                    if ".".join(words[place : place + size]) in children
                ),
                0,
            )
            child = ".".join(words[place : place + (taken or 1)])
            made.append(children.get(child, child))
            place += taken or 1
        return ".".join(word for word in made if word)


def operator_of(name: str) -> str:
    """The name of the operator that a tensor belongs to, by the tensor's name.

    Args:
        name: of the tensor.
    """
    return _TENSOR.split(name, maxsplit=1)[0]


def is_tensor(name: str) -> bool:
    """Whether a name is that of a tensor, not of a cell.

    Args:
        name: of a mapping file.
    """
    return _TENSOR.search(name) is not None


def _names_class(name: str) -> bool:
    """Whether a name ends with that of a class, which begins with a capital."""
    return name.rpartition(".")[2][:1].isupper()


def _path(name: str) -> str:
    return name.rpartition(".")[0]


def _key(op: Op, path: str) -> tuple[str, str, bool, str]:
    return path, op.phase, ".parameters_grad" in op.name, op.name.rpartition(".")[2]
