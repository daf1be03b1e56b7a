"""What shells complete: codes, machines, operators, fields of queries, names in the given dump.

Nothing here may fail or say anything: a shell waits for it in the middle of a line.
"""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Iterator
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from irtool.ir.dump import Dump

MOST = 200
"""Names of a dump that a shell is offered; more help nobody."""
_LAST_WORD = re.compile(r"[A-Za-z_][\w.]*$")
_OPERATOR = re.compile(r"""\bop\s*(?:[=!]=|(?:not\s+)?in\s*\(.*)\s*["'](\w*)$""")

Offer = list[tuple[str, str]]


def codes(incomplete: str) -> Offer:
    """Codes of rules and their families, after the last comma.

    Args:
        incomplete: what was typed of the word, codes with commas between.

    Returns:
        Words to offer, what stands before the last comma kept, each with the rule's name.
    """
    from irtool.linting.registry import FAMILIES, own_rules

    before, _, word = incomplete.rpartition(",")
    lead = f"{before}," if before else ""
    known = {**FAMILIES, **{code: _name(entry.module) for code, entry in own_rules().items()}}
    return [(f"{lead}{code}", text) for code, text in known.items() if _begins(code, word)]


def _name(module: str) -> str:
    """The words of a rule's module, ``str001_illegal_strategy``, without its code."""
    return " ".join(module.rpartition(".")[2].split("_")[1:])


def machines(incomplete: str) -> list[str]:
    """Names of machines that irtool knows.

    Args:
        incomplete: what was typed of the word.
    """
    from irtool.cluster.machine import BUILT_IN

    return [name for name in BUILT_IN if _begins(name, incomplete)]


def fields(incomplete: str) -> list[str]:
    """Fields of nodes, after the last comma.

    Args:
        incomplete: what was typed of the word, fields with commas between.

    Returns:
        Words to offer, what stands before the last comma kept.
    """
    from irtool.syntax.query_fields import FIELDS

    before, _, word = incomplete.rpartition(",")
    lead = f"{before}," if before else ""
    return [f"{lead}{name}" for name in FIELDS if name.startswith(word)]


def codes_or_operators(incomplete: str) -> Offer:
    """Codes of rules; behind their first letter names of operators, too.

    Args:
        incomplete: what was typed of the word.

    Returns:
        Words to offer, each with what it is.
    """
    from irtool.operators.table import entries

    operators = [(name, "operator") for name in entries() if _begins(name, incomplete)]
    return codes(incomplete) + (operators if incomplete else [])


def query_words(incomplete: str) -> list[str]:
    """The word that a query ends in: a field; behind ``op ==`` and a quotation mark an operator.

    Args:
        incomplete: what was typed of the query.

    Returns:
        Queries to offer, each with that word completed.
    """
    from irtool.operators.table import entries
    from irtool.syntax.query_fields import BLOCKS, FIELDS

    operator = _OPERATOR.search(incomplete)
    if operator is not None:
        lead = incomplete[: operator.start(1)]
        return [f"{lead}{name}" for name in entries() if name.startswith(operator[1])]
    last = _LAST_WORD.search(incomplete)
    word = last[0] if last is not None else ""
    lead = incomplete[: len(incomplete) - len(word)]
    known = (*FIELDS, *(f"{block}." for block in BLOCKS))
    return [f"{lead}{name}" for name in known if name.startswith(word)]


def groups(incomplete: str) -> Offer:
    """Communication groups of the dumps that stand before it in the line.

    Args:
        incomplete: what was typed of the group's name.

    Returns:
        At most :data:`MOST` names, each with its ranks.
    """
    from irtool.ir.collectives import collectives
    from irtool.ir.units import ranks_text

    by_group: dict[str, str] = {}
    for dump in _dumps():
        for collective in collectives(dump):
            if collective.group and collective.group.startswith(incomplete):
                by_group.setdefault(collective.group, f"ranks {ranks_text(collective.ranks)}")
    return list(by_group.items())[:MOST]


def nodes(incomplete: str) -> Offer:
    """Nodes of the dumps that stand before it in the line: ``%12``, behind a letter its name.

    Args:
        incomplete: what was typed of the word.

    Returns:
        At most :data:`MOST` words, each with the operator.
    """
    offers: Offer = []
    for dump in _dumps():
        for node in dump.nodes():
            name = node.id if incomplete.startswith("%") or not incomplete else node.name or ""
            if len(offers) < MOST and name.startswith(incomplete or "%"):
                offers.append((name, node.op))
    return offers


def nodes_or_query(incomplete: str) -> Offer:
    """Nodes as ``%12``, or words of a query.

    Args:
        incomplete: what was typed of the word.

    Returns:
        Words to offer, those of nodes with the operator.
    """
    if incomplete and not incomplete.startswith("%"):
        return [(text, "") for text in query_words(incomplete)]
    return nodes(incomplete)


def _dumps() -> Iterator[Dump]:
    """The dumps that the line names; what can't be read offers nothing.

    Options that lack their value yet keep the line from being parsed, so that its words must do.
    """
    from irtool.syntax.load import load
    from irtool.syntax.source import DumpError

    for word in _words():
        if os.path.isfile(word):
            try:
                yield load(word)
            except DumpError:
                continue


def _words() -> list[str]:
    """The line as shells hand it over."""
    line = os.environ.get("COMP_WORDS", "")
    try:
        return shlex.split(line)
    except ValueError:  # a quotation mark is open
        return line.split()


def _begins(name: str, word: str) -> bool:
    return name.lower().startswith(word.lower())
