"""Problems that only the whole file shows: counts that disagree, damaged bytes."""

from __future__ import annotations

import re
from collections.abc import Iterator

from irtool.ir.dump import Dump
from irtool.ir.finding import Finding
from irtool.ir.items import Property

_HEADER_LINE = re.compile(r"^# ?(?:IR entry|Total )", re.MULTILINE)
_SURROGATE = re.compile("[\ud800-\udfff]")


def whole_file_problems(dump: Dump, text: str) -> Iterator[Finding]:
    """Problems that only the whole file shows: counts that disagree, damaged bytes.

    Args:
        dump: as it was read, with the problems of single statements.
        text: of the whole file.

    Yields:
        Nothing where the file is empty, or no dump: that is a problem already.
    """
    if any(problem.code in ("SYN005", "SYN006") for problem in dump.problems):
        return
    entries = [i for i in dump.items if isinstance(i, Property) and "IR entry" in i.key]
    if len(entries) > 1:
        message = f"{len(entries)} dumps in one file; the first one's header is used"
        yield Finding("SYN007", "error", message, dump.path, entries[1].line, 1)
    declared = dump.declared_nodes
    read = sum(len(graph.nodes) for graph in dump.graphs)
    if declared is not None and len(entries) == 1 and declared != read:
        message = f"the header states {declared} nodes, {read} were read"
        hint = "the dump is truncated or was edited"
        yield Finding("SYN004", "error", message, dump.path, 1, hint=hint)
    if not dump.graphs and _HEADER_LINE.search(text):
        message = "a header without any graph"
        yield Finding("SYN003", "error", message, dump.path, 1, hint="the dump is truncated")
    stated = dump.properties.get("Total subgraphs") or dump.properties.get("Total subgraph")
    # Dumps of failed compilations state 0 and print those that were being compiled.
    if dump.graphs and len(entries) == 1 and stated not in (None, "0", str(len(dump.graphs))):
        message = f"the header states {stated[:20]} graphs, {len(dump.graphs)} were read"
        hint = "the dump is truncated or was edited"
        yield Finding("SYN004", "error", message, dump.path, 1, hint=hint)
    for name, bad in (("a NUL byte", "\0"), ("bytes that are not UTF-8", None)):
        position = text.find(bad) if bad else _first_surrogate(text)
        if position >= 0:
            line = text.count("\n", 0, position) + 1
            column = position - (text.rfind("\n", 0, position) + 1) + 1
            yield Finding("SYN008", "warning", f"{name} in the dump", dump.path, line, column)


def _first_surrogate(text: str) -> int:
    if text.isascii():
        return -1
    match = _SURROGATE.search(text)
    return match.start() if match else -1
