"""Keys: what two nodes of different dumps must share to be tied, from strict to weak."""

from __future__ import annotations

import re
from collections.abc import Callable, Hashable
from typing import TypeAlias

from irtool.ir.graph import Node
from irtool.ir.ties.model import Rule
from irtool.ir.ties.side import Side

Key: TypeAlias = "Hashable | None"

_AUTOMATIC = re.compile(r"(ValueNode|CNode|Parameter|valuenode|cnode)_?\d*")
_PREFIX = re.compile(r"(equiv_\d+_)+|(?:\d+_)?▲|[▸◂]")


def kin(side: Side, index: int) -> tuple[str, str | None, str | None]:
    """Operator, instance name and scope.

    Args:
        side: the dump.
        index: of the node in the inlined view.
    """
    node = side.nodes[index].node
    return node.op, node.instance_name, node.scope


def home(side: Side, index: int) -> tuple[str, str | None]:
    """Operator and scope: equal primitives of a scope end up with one instance name.

    Args:
        side: the dump.
        index: of the node in the inlined view.
    """
    node = side.nodes[index].node
    return node.op, node.scope


def by_variable(side: Side, index: int) -> Key:
    """The Python variable that the user assigned it to, with its operator and scope.

    Args:
        side: the dump.
        index: of the node in the inlined view.

    Returns:
        A key, with the micro-batch; None where the compiler itself named the node.
    """
    name = own_name(side.nodes[index].node)
    return (name, side.micro[index], *home(side, index)) if name else None


def _by_debug_name(side: Side, index: int) -> Key:
    """Numbered names (``CNode_572``): the number survives as long as nothing clones the node."""
    name = _stem(side.nodes[index].node)
    return (name, *kin(side, index)) if re.search(r"CNode_\d", name) else None


def _by_tag(side: Side, index: int) -> Key:
    node = side.nodes[index].node
    tag, group = node.attribute("sr_tag"), node.attribute("group")
    return (node.op, tag, group) if isinstance(tag, int) and isinstance(group, str) else None


def _by_parameter(side: Side, index: int) -> Key:
    names = tuple(name for _, name in side.parameters(index))
    return (names, side.micro[index], *kin(side, index)) if names else None


def _by_parameter_alone(side: Side, index: int) -> Key:
    names = tuple(name for _, name in side.parameters(index))
    return (names, side.micro[index], side.nodes[index].op) if names else None


def _by_location(side: Side, index: int) -> Key:
    places = _places(side, index)
    return (places, side.micro[index], *kin(side, index)) if places else None


def _by_scope(side: Side, index: int) -> Key:
    key = kin(side, index)
    return (side.micro[index], *key) if key[2] is not None else None


def _by_home(side: Side, index: int) -> Key:
    key = home(side, index)
    return (side.micro[index], *key) if key[1] is not None else None


def _by_instance(side: Side, index: int) -> Key:
    key = kin(side, index)
    return (side.micro[index], *key[:2]) if key[1] is not None else None


def _by_everything(side: Side, index: int) -> Key:
    name = own_name(side.nodes[index].node)
    names = tuple(name for _, name in side.parameters(index))
    return (name, names, _places(side, index), side.micro[index], *kin(side, index))


def _by_all_but_micro(side: Side, index: int) -> Key:
    names = tuple(name for _, name in side.parameters(index))
    return (names, *kin(side, index))


def _places(side: Side, index: int) -> tuple[tuple[str, str], ...]:
    return tuple((line.path, line.span) for line in side.nodes[index].node.comments.locations)


STRICT: tuple[tuple[Rule, Callable[[Side, int], Key]], ...] = (
    ("sr_tag", _by_tag),
    ("debug_name", _by_debug_name),
    ("parameter", _by_parameter),
    ("location", _by_location),
    ("debug_name", by_variable),
    ("scope", _by_scope),
    ("parameter", _by_parameter_alone),
    ("instance_name", _by_instance),
    ("scope", _by_home),
)
EQUAL = (_by_everything, _by_location, _by_scope, _by_all_but_micro)


def innermost(node: Node) -> tuple[str, str] | None:
    """The source line that made a node: path of the file, and span in it, of its last location.

    Args:
        node: of any dump.

    Returns:
        None where the dump shows no source lines for it.
    """
    lines = node.comments.locations
    return (lines[-1].path, lines[-1].span) if lines else None


def _stem(node: Node) -> str:
    """The debug name without the prefixes that copying a graph adds."""
    return _PREFIX.sub("", node.name or "")


def own_name(node: Node) -> str:
    """The Python variable that the user assigned the node to, else the empty text.

    Args:
        node: whose debug name is asked.
    """
    name = _stem(node).partition("$")[0]
    return "" if _AUTOMATIC.fullmatch(name) else name
