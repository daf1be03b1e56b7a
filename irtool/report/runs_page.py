"""What ``irtool diff RUN_A RUN_B`` tells, as a page, with the graphs open where error begins."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from irtool.compare.runs import RunComparison
from irtool.compare.tensors.model import Op
from irtool.compare.tensors.report import Case, Neighbour
from irtool.compare.tensors.verdict import Judged
from irtool.ir.dump import Dump, dump_of
from irtool.ir.graph import Node
from irtool.report.model import (
    Answer,
    Cell,
    Element,
    Explorer,
    Link,
    Report,
    Table,
)
from irtool.report.page.graph_data import graph_data
from irtool.report.picture.overlay import Mark, Overlay, Severity
from irtool.report.runs import answer, runs_document
from irtool.report.tensors import neighbours_table
from irtool.report.text import shortened

_SIDES = ("left", "right")
_MOST = 5
"""Faults or suspects that are marked, on both sides: so many a graph can be opened at."""
_WHY = 60


def runs_page(found: RunComparison, case: Case | None) -> Report:
    """The same as a page.

    Args:
        found: what came of the comparison.
        case: the first operator that introduces error.
    """
    lines = answer(found, case)
    document = runs_document(found, case, 0)
    tone = "bad" if found.is_suspicious else "good"
    sections: list[Element] = list(document.blocks[len(lines) :])
    if not found.told_differently:
        sections.sort(
            key=lambda section: getattr(section, "title", "") == "Hyperparameters"
        )  # no news: last
    dumps = _dumps(found, case)
    if case is not None and dumps:
        sections = list(_with_links(sections, case))
    if dumps:
        sections.append(_graphs(found, case, dumps))
    title = f"{found.left.path} ↔ {found.right.path}"
    return Report(title, Answer(lines[0], tone, lines[1:]), sections)


def _with_links(sections: Sequence[Element], case: Case) -> Iterator[Element]:
    """The neighbours of the accused operator lead into the graph."""
    table = neighbours_table(case)
    neighbours = [
        (side, item)
        for side, items in zip(_SIDES, (case.left_neighbours, case.right_neighbours), strict=True)
        for item in items
    ]
    for section in sections:
        if table is None or not isinstance(section, Table) or section.title != table.title:
            yield section
            continue
        rows = [
            _linked(row, side, item)
            for row, (side, item) in zip(section.rows, neighbours, strict=True)
        ]
        yield replace(section, rows=rows)


def _linked(row: Sequence[Cell], side: str, item: Neighbour) -> list[Cell]:
    key = f"{side}:{item.line}:{item.node}"
    return [Link(item.node, key) if cell == item.node else cell for cell in row]


# -- the graphs --------------------------------------------------------------------------------


def _dumps(found: RunComparison, case: Case | None) -> list[tuple[str, Dump]]:
    """The graphs that the operators were joined with, else those that were compared."""
    joined: list[Op] = [case.left, case.right] if case is not None else []
    comparison = found.shown.comparison if found.shown is not None else None
    graphs = (found.graphs.left, found.graphs.right) if found.graphs is not None else (None, None)
    dumps: list[tuple[str, Dump]] = []
    for at, side in enumerate(_SIDES):
        ops = [joined[at]] if joined else []
        if comparison is not None:
            ops += [_ops(item)[at] for item in comparison.judged]
        node = next((op.node for op in ops if op.node is not None), None)
        dump = dump_of(node) if node is not None else graphs[at]
        if dump is not None:
            dumps.append((side, dump))
    return dumps


def _ops(item: Judged) -> tuple[Op, Op]:
    return item.pair.left, item.pair.right


def _graphs(found: RunComparison, case: Case | None, dumps: Sequence[tuple[str, Dump]]) -> Explorer:
    overlays = [_verdicts(found, case), _errors(found), _suspects(found)]
    title = "Both graphs" if len(dumps) == 2 else f"The graph of the {dumps[0][0]} run"
    first = (case.left.node or case.right.node) if case is not None else None
    laid = [each for each in overlays if each.marks]
    return Explorer(title, graph_data(dumps, None, laid, first=first))


def _verdicts(found: RunComparison, case: Case | None) -> Overlay:
    """Where error begins, other faults, and operators that got other arguments."""
    marks: dict[Node, Mark] = {}
    comparison = found.shown.comparison if found.shown is not None else None
    faults = comparison.faults if comparison is not None else []
    for item in faults[:_MOST]:
        _mark(marks, _ops(item), "warning", item.verdict)
    changed = [
        item
        for item in (comparison.judged if comparison is not None else ())
        if item.verdict == "attribute differs"
    ]
    for item in changed[: _MOST - len(faults[:_MOST])]:
        _mark(marks, _ops(item), "changed", "; ".join(map(str, item.attributes[:2])))
    if case is not None:
        _mark(marks, (case.left, case.right), "error", "error begins here")
    return Overlay("findings", "what tensors show", marks=marks)


def _mark(marks: dict[Node, Mark], ops: Sequence[Op], severity: Severity, text: str) -> None:
    for op in ops:
        if op.node is not None:
            marks[op.node] = Mark(None, severity, shortened(text, _WHY))


def _errors(found: RunComparison) -> Overlay:
    """The relative error of each operator's output."""
    marks: dict[Node, Mark] = {}
    comparison = found.shown.comparison if found.shown is not None else None
    for item in comparison.judged if comparison is not None else ():
        if not math.isnan(item.error_out):
            for op in _ops(item):
                if op.node is not None:
                    marks[op.node] = Mark(item.error_out, None, item.verdict)
    return Overlay("error", "relative error of outputs", marks=marks, total="max")


def _suspects(found: RunComparison) -> Overlay:
    """Without tensors: what in the graphs may make numbers differ, the heaviest first."""
    marks: Mapping[Node, Mark] = {
        node: Mark(None, "warning", shortened(item.why, _WHY))
        for item in reversed(found.suspects[:_MOST])
        for node in item.nodes
    }
    return Overlay("diff", "suspects", marks=marks)
