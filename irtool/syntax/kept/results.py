"""What was worked out of a dump, as bytes, and back: phases, roles of parameters, ties.

These take longer than opening a kept model, and most commands ask for them.  The bytes are data;
what does not fit the dump that it is read for is as if it were not there.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, get_args

import msgspec

from irtool.ir.dump import Dump
from irtool.ir.graph import GraphParameter, Node
from irtool.ir.parameter_roles import PARAMETER_ROLES, ROLES, ParameterRole
from irtool.ir.phases import PHASES, Phase
from irtool.ir.ties import TIES
from irtool.ir.ties.model import End, Kind, Rule, Tie, Ties

_PHASES: tuple[Phase, ...] = get_args(Phase)
_KINDS: tuple[Kind, ...] = get_args(Kind)
_RULES: tuple[Rule, ...] = get_args(Rule)
KEPT = (PHASES, PARAMETER_ROLES, TIES)
"""Names of the results that are kept."""


class _Ties(msgspec.Struct, array_like=True):
    """Columns: of the left end a node's number, or -1 - the number of a parameter."""

    left: bytes
    right: bytes
    kind: bytes
    rule: bytes
    certain: bytes
    tieable: dict[str, int]


class _Results(msgspec.Struct, array_like=True):
    """``phases`` has a byte a node; ``roles`` an entry a name: which role, of which weight."""

    phases: bytes | None
    roles: list[tuple[str, int, str, bool]] | None
    ties: _Ties | None


_ENCODER = msgspec.msgpack.Encoder()
_DECODER = msgspec.msgpack.Decoder(_Results)


def worked_out(dump: Dump) -> frozenset[str]:
    """Which of the results that are kept a dump has.

    Args:
        dump: of which results may have been derived.

    Returns:
        Their names.
    """
    return frozenset(KEPT) & dump.derived.keys()


def results_bytes(dump: Dump) -> bytes:
    """What was worked out of a dump so far, as bytes.

    Args:
        dump: with its phases, roles of parameters and ties, or some of them.

    Raises:
        LookupError: something is tied that is not of the dump.
    """
    derived = dump.derived
    phases, roles, ties = (derived.get(name) for name in KEPT)
    return _ENCODER.encode(
        _Results(
            None if phases is None else _phase_bytes(dump, phases),
            None if roles is None else _role_rows(roles),
            None if ties is None else _tie_columns(dump, ties),
        )
    )


def results_from(data: bytes, dump: Dump) -> dict[str, Any]:
    """The results that bytes hold for a dump, by name; those that don't fit it are left out.

    Args:
        data: as :func:`results_bytes` made them, or anything else.
        dump: that they are read for.
    """
    try:
        results = _DECODER.decode(data)
    except msgspec.DecodeError:
        return {}
    found: dict[str, Any] = {}
    nodes = list(dump.nodes())
    try:
        if results.phases is not None:
            names = [_PHASES[number] for number in results.phases]
            found[PHASES] = dict(zip(_as_phases(dump), names, strict=True))
        if results.roles is not None:
            roles = {
                name: ParameterRole(ROLES[number], weight, updated)
                for name, number, weight, updated in results.roles
            }
            if roles.keys() == {item.name for item in dump.parameters}:
                found[PARAMETER_ROLES] = roles
        if results.ties is not None:
            found[TIES] = _ties_from(results.ties, nodes, _parameters(dump))
    except (LookupError, ValueError):
        return {}
    return found


def _phase_bytes(dump: Dump, phases: Mapping[Node, Phase]) -> bytes:
    numbers = {name: number for number, name in enumerate(_PHASES)}
    return bytes(numbers[phases[node]] for node in _as_phases(dump))


def _as_phases(dump: Dump) -> Iterator[Node]:
    """Nodes in the order of :func:`irtool.ir.phases.phases`, which others go by."""
    return (node for graph in dump.graphs for node in reversed(graph.nodes))


def _role_rows(roles: Mapping[str, ParameterRole]) -> list[tuple[str, int, str, bool]]:
    return [
        (name, ROLES.index(item.role), item.weight, item.updated) for name, item in roles.items()
    ]


def _tie_columns(dump: Dump, ties: Ties) -> _Ties:
    number: dict[End, int] = {node: place for place, node in enumerate(dump.nodes())}
    number |= {item: -1 - place for place, item in enumerate(_parameters(dump))}
    return _Ties(
        array("i", [number[tie.left] for tie in ties]).tobytes(),
        array("i", [number[tie.right] for tie in ties]).tobytes(),
        bytes(_KINDS.index(tie.kind) for tie in ties),
        bytes(_RULES.index(tie.how) for tie in ties),
        bytes(tie.certain for tie in ties),
        {**ties.tieable},
    )


def _ties_from(kept: _Ties, nodes: list[Node], parameters: list[GraphParameter]) -> Ties:
    left, right = array("i", kept.left), array("i", kept.right)
    ends: Iterable[End] = (
        nodes[number] if number >= 0 else parameters[-1 - number] for number in left
    )
    rights = [nodes[number] for number in right if number >= 0]
    kinds: list[Kind] = [_KINDS[number] for number in kept.kind]
    rules: list[Rule] = [_RULES[number] for number in kept.rule]
    items = tuple(map(Tie, ends, rights, kinds, rules, map(bool, kept.certain)))
    if not len(items) == len(left) == len(right) == len(kinds) == len(rules):
        raise ValueError("columns of different lengths")
    return Ties(items, {kind: kept.tieable[kind] for kind in _KINDS if kind in kept.tieable})


def _parameters(dump: Dump) -> list[GraphParameter]:
    return [item for graph in dump.graphs for item in graph.parameters]
