"""Reads a part of a dump: its header, and the statements of a few operators.

What a later dump says of the context of its run stands in a few statements out of thousands. The
text is cut at what a line begins with, as the scanner does, and what was cut out is read as any
other dump: the records by the same grammar.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from functools import lru_cache

from irtool.ir.dump import Dump
from irtool.syntax.reader import loads
from irtool.syntax.scanner import STATEMENT
from irtool.syntax.source import PathLike, read_content

_GRAPH = re.compile(r"^subgraph @", re.MULTILINE)


def excerpt(source: PathLike, operators: Iterable[str]) -> Dump:
    """The header of a dump with the statements of some operators only, of all of its graphs.

    Operands that other statements make stay unresolved, lines are those of the excerpt, and the
    dump's ``problems`` say nothing of the file: for questions about attributes and parameters.

    Args:
        source: path (``.gz`` and ``.xz`` are read as they are).
        operators: names of the operators, as statements print them without ``PrimFunc_``.

    Raises:
        DumpError: nothing can be read.
    """
    content = read_content(source)
    text = content.data.decode("utf-8", "surrogateescape").replace("\r\n", "\n")
    return loads("".join(_kept(text, frozenset(operators))), content.path)


def _kept(text: str, operators: frozenset[str]) -> Iterator[str]:
    first = _GRAPH.search(text)
    if first is None:
        yield text
        return
    yield text[: first.start()]
    for place in _places(operators).finditer(text, first.start()):
        if not place[0].startswith("  "):
            yield place[0] + "\n"
            continue
        statement = STATEMENT.match(text, place.start())
        if statement is not None:
            yield f"{statement[1]}\n{statement[2]}"


@lru_cache(maxsize=8)
def _places(operators: frozenset[str]) -> re.Pattern[str]:
    """Where a graph begins or ends, and where a statement of one of the operators does."""
    names = "|".join(sorted(map(re.escape, operators)))
    return re.compile(
        rf"^(?:subgraph @.*\{{[ \t]*$|\}}$|  %[0-9]+\([^()\n]*\) = (?:\w+_)??(?:{names})\()",
        re.MULTILINE,
    )
