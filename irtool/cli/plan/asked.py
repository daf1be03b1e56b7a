"""What the options of ``irtool plan`` ask for: nodes, strategies, ranks, other dumps."""

from __future__ import annotations

import ast
import math
import re
from collections.abc import Mapping
from typing import Any, cast

from irtool.cli.report import Failure
from irtool.cli.where import read_query
from irtool.ir.dump import Dump
from irtool.ir.graph import Node
from irtool.ir.limits import MAX_DOCUMENT, bounded_int
from irtool.operators.call import Strategy
from irtool.syntax.reading import read_json

_RANGE = re.compile(r"(\d+)(?:-(\d+))?")
_MOST_RANKS = 1_000_000


def nodes_like(dump: Dump, option: str, text: str | None) -> frozenset[Node] | None:
    """The nodes that a query of an option means.

    Args:
        dump: that is planned.
        option: with the query, for the message.
        text: the query; None: the option is not given, and nothing is returned.

    Raises:
        Failure: none is like it.
    """
    if text is None:
        return None
    nodes = frozenset(dump.nodes(where=read_query(option, text)))
    if not nodes:
        raise Failure("no node is like this", option)
    return nodes


def twins(dump: Dump, planned: Dump, nodes: frozenset[Node] | None) -> frozenset[Node] | None:
    """Nodes of a dump as those of its plan.

    Args:
        dump: that was planned.
        planned: the dump of the plan, with the same nodes in the same order.
        nodes: of the first; None: none were chosen.

    Returns:
        Nodes of the second; None where none were chosen.
    """
    if nodes is None:
        return None
    pairs = zip(dump.nodes(), planned.nodes(), strict=True)
    return frozenset(new for old, new in pairs if old in nodes)


def pins_of(dump: Dump, given: list[str]) -> tuple[dict[Node, Strategy], dict[Node, Strategy]]:
    """``QUERY=STRATEGY`` or ``QUERY=STRATEGY -> STRATEGY``: strategies, and output strategies.

    The strategy begins behind the last ``=`` that is followed by ``(``.

    Args:
        dump: that is planned.
        given: the texts, as they were given to ``--pin``.

    Returns:
        Strategies by node, and output strategies by node, of those that have one.

    Raises:
        Failure: a text is no such thing, names no node, or pins one twice.
    """
    pins: dict[Node, Strategy] = {}
    outs: dict[Node, Strategy] = {}
    for text in given:
        position = max(text.rfind("=("), text.rfind("= ("))
        if position < 0:
            hint = "--pin 'op == \"MatMul\"=((8, 1), (1, 1))'"
            raise Failure(f"{text} holds no strategy", "--pin", hint=hint)
        query, (own, arrow, out) = text[:position], text[position + 1 :].partition("->")
        strategy = _strategy(own)
        nodes = list(dump.nodes(where=read_query("--pin", query)))
        if not nodes:
            raise Failure(f"no node is like {query}", "--pin")
        twice = next((node for node in nodes if pins.get(node, strategy) != strategy), None)
        if twice is not None:
            raise Failure(
                f"{twice.id} {twice.op} is pinned to {_text(pins[twice])} and to "
                f"{_text(strategy)}", "--pin", hint="one strategy an operator",
            )  # fmt: skip
        pins |= dict.fromkeys(nodes, strategy)
        if arrow:
            outs |= dict.fromkeys(nodes, _strategy(out))
    return pins, outs


def _text(strategy: Strategy) -> str:
    return str(strategy).replace(",)", ")")


def _strategy(text: str) -> Strategy:
    try:
        value: Any = ast.literal_eval(text.strip())
        # (8) is what tables and dumps print for (8,).
        rows = tuple((row,) if isinstance(row, int) else tuple(row) for row in value)
    except (ValueError, SyntaxError, TypeError, MemoryError, RecursionError):
        rows = None
    if rows is None or not all(
        isinstance(n, int) and not isinstance(n, bool) and n > 0 for row in rows for n in row
    ):
        raise Failure(
            f"{text.strip()} is no strategy", "--pin", hint="a tuple of tuples: ((8, 1), (1, 1))"
        )
    return rows


def ranks_of(text: str | None, option: str) -> tuple[int, ...]:
    """The ranks that a text lists, ``3,5,8-15``, in ascending order.

    Args:
        text: as it was given; None: it was not, and there are none.
        option: that it was given to, for the message.

    Raises:
        Failure: it lists none, or a part of it is no rank.
    """
    ranks: set[int] = set()
    for part in (text or "").split(","):
        if not part.strip():
            continue
        match = _RANGE.fullmatch(part.strip())
        if match is None:
            raise Failure(f"{part.strip()} is no rank", option, hint=f"{option} 3,5,8-15")
        first, last = bounded_int(match[1]), bounded_int(match[2] or match[1])
        if last < first:
            hint = f"{option} {last}-{first}"
            raise Failure(f"{part.strip()} ends before it begins", option, hint=hint)
        if last - first > _MOST_RANKS:
            raise Failure(f"{part.strip()} are too many ranks", option)
        ranks.update(range(first, last + 1))
    if text is not None and not ranks:
        raise Failure("names no rank", option, hint=f"{option} 3,5,8-15")
    return tuple(sorted(ranks))


def horizon_of(text: str | None, usual: float) -> float:
    """The number of steps that ``--horizon`` names, which may be ``inf``.

    Args:
        text: as it was given; None: it was not.
        usual: what counts then.

    Raises:
        Failure: it is no number from 1 on.
    """
    if text is None:
        return usual
    try:
        steps = float(text)
    except ValueError:
        steps = math.nan
    if not steps >= 1:
        raise Failure(f"{text} is no number of steps", "--horizon", hint="--horizon 10000, or inf")
    return steps


def json_file(path: str | None) -> Mapping[str, object] | None:
    """The JSON object in a file.

    Args:
        path: of the file; None: none is named, and None is returned.

    Raises:
        Failure: it can't be read, or is no JSON object.
    """
    if path is None:
        return None
    try:
        document = read_json(path, MAX_DOCUMENT)
    except OSError as error:
        raise Failure(f"can't be read: {error.strerror or error}", path) from None
    except ValueError as error:
        raise Failure(f"is no JSON: {error}", path) from None
    if not isinstance(document, dict):
        raise Failure("is no strategy file: no JSON object", path)
    return cast("Mapping[str, object]", document)
