"""Which parameter of one checkpoint is which of the other.

By a map that somebody gives; by name; by what frameworks call the same thing; what is left where
exactly one parameter on each side has the same bits; and what is then left by how the modules of
those that are paired were renamed.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Mapping
from typing import Literal, TypeAlias

from irtool.compare.checkpoints.joining import Whole
from irtool.ir.dataclass import dataclass

How: TypeAlias = Literal["name", "map", "framework's name", "value", "renamed modules", "rows"]
"""What says that two parameters are the same; by rows several are one that packs them."""

_CALLED = {
    "gamma": "weight", "beta": "bias", "embedding_table": "weight",
    "moving_mean": "running_mean", "moving_variance": "running_var",
}  # fmt: skip
"""Last parts of names: MindSpore's cells, and the modules of PyTorch."""
_WRAPPERS = frozenset(
    ("network", "_backbone", "backbone", "model", "module", "_orig_mod", "state_dict", "net")
)
"""First parts of names that what wraps a network adds."""
_NUMBER = re.compile(r"\d+")
LEAST = 16
"""Elements from which equal bits are no chance."""


@dataclass(frozen=True, slots=True)
class Pair:
    """Two parameters that are one, by name on either side, and how they were found to be."""

    left: str
    right: str
    how: How


def pairs_of(
    left: Mapping[str, Whole], right: Mapping[str, Whole], names: Mapping[str, str]
) -> list[Pair]:
    """Pair parameters, in the order of the left ones.

    Args:
        left: by name.
        right: by name.
        names: names on the left (or their beginnings) and what they are called on the right.
    """
    pairs: dict[str, Pair] = {}
    for name in left:
        if (other := _mapped(name, names)) in right:
            pairs[name] = Pair(name, other, "map")
    mapped = {pair.right for pair in pairs.values()}
    for name in left:
        if name in right and name not in pairs and name not in mapped:
            pairs[name] = Pair(name, name, "name")
    _by_framework(left, right, pairs)
    _by_value(left, right, pairs)
    _by_renaming(left, right, pairs)
    return [pairs[name] for name in left if name in pairs]


def _mapped(name: str, names: Mapping[str, str]) -> str:
    """The name on the right; the longest beginning that is mapped decides."""
    for start in sorted(names, key=len, reverse=True):
        if name == start or name.startswith((f"{start}.", f"{start}/")):
            return names[start] + name[len(start) :]
    return ""


def _left(names: Iterable[str], used: Iterable[str]) -> list[str]:
    taken = set(used)
    return [name for name in names if name not in taken]


def _by_framework(
    left: Mapping[str, Whole], right: Mapping[str, Whole], pairs: dict[str, Pair]
) -> None:
    """Names that are the same once wrappers and the words of frameworks are left out."""
    rest = _left(left, pairs), _left(right, (pair.right for pair in pairs.values()))
    plain = [_unique(names) for names in rest]
    for key, name in plain[0].items():
        other = plain[1].get(key)
        if name is not None and other is not None:
            pairs[name] = Pair(name, other, "framework's name")


def _unique(names: Iterable[str]) -> dict[str, str | None]:
    """Names by what is left of them; None where several are left the same."""
    by_key: dict[str, str | None] = {}
    for name in names:
        key = _plain(name)
        by_key[key] = None if key in by_key else name
    return by_key


def _plain(name: str) -> str:
    parts = name.replace("/", ".").split(".")
    while len(parts) > 1 and parts[0] in _WRAPPERS:
        parts = parts[1:]
    return ".".join((*parts[:-1], _CALLED.get(parts[-1], parts[-1])))


def _by_value(
    left: Mapping[str, Whole], right: Mapping[str, Whole], pairs: dict[str, Pair]
) -> None:
    """What is left and has the same bits as exactly one that is left on the other side."""
    rest = _left(left, pairs), _left(right, (pair.right for pair in pairs.values()))
    if not (rest[0] and rest[1]):
        return
    shapes = {(right[name].dtype, right[name].shape) for name in rest[1]}
    digests: list[dict[bytes, list[str]]] = [{}, {}]
    for side, held in enumerate((left, right)):
        for name in rest[side]:
            one = held[name]
            if one.elements >= LEAST and (side or (one.dtype, one.shape) in shapes):
                digests[side].setdefault(digest_of(one), []).append(name)
    for digest, names in digests[0].items():
        others = digests[1].get(digest, [])
        if len(names) == len(others) == 1:
            pairs[names[0]] = Pair(names[0], others[0], "value")


def _by_renaming(
    left: Mapping[str, Whole], right: Mapping[str, Whole], pairs: dict[str, Pair]
) -> None:
    """What is left, by how modules were renamed: ``layers.*.attention`` is ``h.*.attn``.

    Only where all pairs of a module's parameters say the same, and layers count alike.
    """
    rest = _left(left, pairs), _left(right, (pair.right for pair in pairs.values()))
    if not (rest[0] and rest[1]):
        return
    called: tuple[dict[str, set[str]], dict[str, set[str]]] = {}, {}
    for pair in pairs.values():
        ours, theirs = _parts(pair.left), _parts(pair.right)
        if ours.layers == theirs.layers and ours.last == theirs.last:
            called[0].setdefault(ours.module, set()).add(theirs.module)
            called[1].setdefault(theirs.module, set()).add(ours.module)
    there = {_parts(name): name for name in rest[1]}
    for name in rest[0]:
        parts = _parts(name)
        modules = called[0].get(parts.module, set())
        if len(modules) != 1:
            continue
        (module,) = modules
        other = there.get(_Parts(module, parts.layers, parts.last))
        if other is not None and called[1][module] == {parts.module}:
            pairs[name] = Pair(name, other, "renamed modules")


@dataclass(frozen=True, slots=True)
class _Parts:
    """A name: its module without numbers, these numbers, and what both frameworks call the rest."""

    module: str
    layers: tuple[str, ...]
    last: str


def starred(name: str) -> str:
    """A name with a star for each number: that of its like in all layers.

    Args:
        name: of a parameter.
    """
    return _NUMBER.sub("*", name)


def numbers_in(name: str) -> tuple[str, ...]:
    """The numbers in a name, as those of its layer.

    Args:
        name: of a parameter.
    """
    return tuple(_NUMBER.findall(name))


def _parts(name: str) -> _Parts:
    module, _, last = name.replace("/", ".").rpartition(".")
    return _Parts(starred(module), numbers_in(module), _CALLED.get(last, last))


def digest_of(one: Whole) -> bytes:
    """A checksum of a parameter: of its type, its shape and its bits.

    Args:
        one: the parameter.

    Raises:
        BadPayload: it can't be read.
    """
    made = hashlib.blake2b(f"{one.dtype}{one.shape}".encode(), digest_size=16)
    for block in one.blocks():
        made.update(block.tobytes())
    return made.digest()
