"""What ``irtool comm reuse`` shows for versions that do not reuse communication subgraphs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from irtool.cluster.reuse_later import Later
from irtool.cluster.reuse_limit import VARIABLE
from irtool.ir.units import count_text, part_text, plural
from irtool.report.comm_pieces import pieces, shown
from irtool.report.comm_reuse import SCHEMA, left_out
from irtool.report.model import (
    Answer,
    Block,
    Document,
    Element,
    Facts,
    Heading,
    Note,
    Picture,
    Report,
    Table,
    number_column,
)
from irtool.report.model import text_column as wide
from irtool.report.page.charts import bars


@dataclass(frozen=True, slots=True)
class LaterView:
    """What a version without the feature makes of the graph."""

    path: str
    version: tuple[int, int]
    report: Later
    value: str | None = None
    limit: int | None = None


def later_document(view: LaterView) -> Document:
    """What is left where the feature is gone."""
    version = ".".join(map(str, view.version))
    document = Document(
        [Heading(f"{view.path}: MindSpore {version} does not reuse communication subgraphs")]
    )
    document.add(Facts(_later_facts(view)), *_later_blocks(view))
    return document


def _later_facts(view: LaterView) -> list[tuple[str, str]]:
    later = view.report
    variable = f"{VARIABLE} does nothing, and raises an exception where cells are reused"
    return [
        ("since", "2.3, with the task-sink backend; 1.8 to 2.2 have it"),
        ("variable", variable + (f": {view.value!r} should be unset" if view.value else "")),
        ("tags", f"{plural(later.tagged, 'collective')} still tagged comm_reuse, to no effect"),
        ("streams", f"{later.streams['group']} (multi_stream: group, the default), "
                    f"{later.streams['true']} (true), {later.streams['false']} (false): they do "
                    "not grow with operators"),
        ("statements", f"{count_text(later.statements)}, of which "
                       f"{part_text(later.unrolled, later.statements)} in copies of layers or "
                       "micro-batches: these make compilation slow"),
        ("reuse of cells", f"@lazy_inline would share {count_text(later.shared)} of them"
                           + (" (some are shared already)" if later.reuses_cells else "")),
    ]  # fmt: skip


def _later_blocks(view: LaterView) -> Iterator[Block]:
    later = view.report
    count = shown(len(later.by_scope), view.limit)
    columns = (wide("scope"), number_column("statements"))
    yield Table("By scope", columns, later.by_scope[:count])
    yield from left_out(len(later.by_scope) - count, "scope")
    if later.layers:
        count = shown(len(later.layers), view.limit)
        rows = [(one.scope, one.copies, one.statements) for one in later.layers[:count]]
        columns = (wide("layer"), number_column("copies"), number_column("statements"))
        yield Table("By unrolled layer", columns, rows)
        yield from left_out(len(later.layers) - count, "layer")
    if later.by_micro:
        count = shown(len(later.by_micro), view.limit)
        columns = (number_column("micro-batch"), number_column("statements"))
        yield Table("By micro-batch", columns, later.by_micro[:count])
        yield from left_out(len(later.by_micro) - count, "line")
    if not later.unrolled:
        yield Note("Nothing repeats: reuse of cells would share nothing.")


def later_pieces(view: LaterView) -> Iterator[str]:
    """``irtool.comm.reuse/1`` where the feature is gone."""
    later = view.report
    head: dict[str, object] = {
        "schema": SCHEMA,
        "path": view.path,
        "target_version": ".".join(map(str, view.version)),
        "available": False,
        "enabled": False,
        "limit": None,
        "groups": [],
        "streams_before": later.streams["group"],
        "streams_after": later.streams["group"],
        "labels": None,
        "recommended_limit": None,
        "tagged": later.tagged,
        "streams": later.streams,
        "statements": later.statements,
        "unrolled_statements": later.unrolled,
        "shared_by_cell_reuse": later.shared,
        "reuses_cells": later.reuses_cells,
    }
    lists: dict[str, Sequence[object]] = {
        "by_scope": [{"scope": scope, "statements": count} for scope, count in later.by_scope],
        "by_layer": [
            {"layer": one.scope, "copies": one.copies, "statements": one.statements}
            for one in later.layers
        ],
        "by_micro": [{"micro": micro, "statements": count} for micro, count in later.by_micro],
    }
    return pieces(head, lists)


def later_svg(later: Later) -> str:
    """Statements by scope."""
    rows = [(scope, (float(count),)) for scope, count in later.by_scope[:30]]
    return bars(rows, "number", ("statements",))


def later_page(view: LaterView) -> Report:
    """The page where the feature is gone."""
    version = ".".join(map(str, view.version))
    details = [f"{name}: {value}" for name, value in _later_facts(view)]
    answer = Answer(f"MindSpore {version} does not reuse communication subgraphs", "plain", details)
    picture = Picture("Statements by scope", later_svg(view.report), "Statements by scope.")
    sections: list[Element] = [picture, *_later_blocks(view)]
    return Report(f"comm reuse: {view.path}", answer, sections)
