"""Reads overlays from what other commands write with ``--format json``, by the schema they name."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from typing import cast

from irtool.ir.dump import Dump
from irtool.ir.graph import Node
from irtool.ir.units import tuple_text
from irtool.report.picture.overlay import Mark, Overlay, OverlaySeverity, Topic, worst
from irtool.report.text import shortened

Object = Mapping[str, object]
_TEXT = 60
_ERRORS = "relative error of outputs, where a run differs"
_DUMP = re.compile(r"\.ir(\.gz|\.xz)?$")


class OverlayError(ValueError):
    """What is in the file is no overlay of what is drawn; the message says why."""

    def __init__(self, message: str, hint: str = "") -> None:
        super().__init__(message)
        self.hint = hint


def read_overlays(data: object, dumps: Sequence[Dump]) -> list[Overlay]:
    """Overlays of one JSON result, for the dumps that are drawn.

    Args:
        data: the decoded JSON.
        dumps: whose nodes the marks are for; nodes are found by file, line and id.

    Raises:
        OverlayError: it is not the result of a command, or of one that says nothing of nodes, or
            it is about another dump.
    """
    result = _object(data)
    schema = str(result.get("schema", ""))
    name, _, version = schema.rpartition("/")
    reader = READERS.get(name)
    if reader is None:
        known = ", ".join(sorted(READERS))
        message = (
            f"schema {schema!r} says nothing of nodes" if schema else "there is no schema in it"
        )
        raise OverlayError(f"{message}; overlays are {known}")
    if version != "1":
        raise OverlayError(f"{name} version {version} is not known here, version 1 is")
    about = str(result.get("path") or "")
    about = about if _DUMP.search(about) else ""
    measured = _measured_dump(result)
    files = {*_files(result), about, measured} - {""}
    nodes = _Nodes(dumps, files, about)
    if measured and not nodes.is_about(about):
        about = measured
        nodes = _Nodes(dumps, files, about)
    if about and not nodes.is_about(about):
        raise OverlayError(f"it is about {about}, which is not drawn", f"irtool viz {about}")
    return [overlay for overlay in reader(result, nodes) if overlay.marks or overlay.unplaced]


def _measured_dump(result: Object) -> str:
    """The dump whose nodes were measured, where that is another than the result is about."""
    measured = result.get("measured")
    return str(cast("Object", measured).get("dump") or "") if isinstance(measured, Mapping) else ""


class _Nodes:
    """Finds the nodes that objects of a result name."""

    def __init__(self, dumps: Sequence[Dump], files: Collection[str], about: str = "") -> None:
        self._dumps = dumps
        self._about = about
        self._meant = [_best(dump.path, files) for dump in dumps]
        self._by_line: dict[int, dict[tuple[int, str], Node]] = {}
        for number, dump in enumerate(dumps):
            self._by_line[number] = {(node.line, node.id): node for node in dump.nodes()}

    def find(self, item: Object, file: str = "") -> Node | None:
        """The node with this line and id in the dump of this file, or in any."""
        id = str(item.get("node") or item.get("id") or "")
        line = item.get("line")
        named = str(item.get("file") or file) or self._about
        for number in range(len(self._dumps)):
            if named and named not in self._meant[number]:
                continue
            if isinstance(line, int):
                node = self._by_line[number].get((line, id))
                if node is None and not id:
                    node = next(
                        (n for (other, _), n in self._by_line[number].items() if other == line),
                        None,
                    )
            else:
                graph = str(item.get("graph") or "").removeprefix("@")
                called = [
                    node
                    for (_, name), node in self._by_line[number].items()
                    if name == id and (not graph or (node.graph and node.graph.name == graph))
                ]
                node = called[0] if len(called) == 1 else None
            if node is not None:
                return node
        return None

    def is_about(self, file: str) -> bool:
        """Whether a file is one of the dumps that are drawn; what names none may be about any."""
        return not file or any(file in meant for meant in self._meant)


def _best(path: str, files: Iterable[str]) -> set[str]:
    """The files that a dump's path means: equal, else alike in most of their last parts.

    Two runs have dumps of one name in folders of one name, so that two parts are not enough where
    others agree in more; a name without a folder agrees in one.
    """
    ours = os.path.abspath(path).split(os.sep)[::-1]
    scores: dict[str, int] = {}
    for file in files:
        theirs = os.path.normpath(file).split(os.sep)[::-1]
        alike = next(
            (
                depth
                for depth, pair in enumerate(zip(ours, theirs, strict=False))
                if pair[0] != pair[1]
            ),
            min(len(ours), len(theirs)),
        )
        if alike >= min(2, len(theirs), len(os.path.normpath(path).split(os.sep))):
            scores[file] = alike
    most = max(scores.values(), default=0)
    return {file for file, alike in scores.items() if alike == most}


def _files(data: object) -> Iterator[str]:
    """Every file that a result names."""
    pending = [data]
    while pending:
        item = pending.pop()
        if isinstance(item, Mapping):
            there = cast("Object", item)
            file = there.get("file")
            if isinstance(file, str):
                yield file
            pending += there.values()
        else:
            pending += _list(item)


class _Collector:
    """Collects marks; several of one node become one."""

    def __init__(self, nodes: _Nodes) -> None:
        self._nodes = nodes
        self._marks: dict[Node, list[Mark]] = {}
        self._unplaced: list[str] = []

    def add(self, item: Object, mark: Mark, file: str = "") -> None:
        node = self._nodes.find(item, file)
        if node is not None:
            self._marks.setdefault(node, []).append(mark)
        elif item.get("node") or item.get("line"):
            where = f"{item.get('file') or file}:{item.get('line') or ''}".strip(":")
            self._unplaced.append(f"{item.get('node') or ''} {where}: {mark.text}".strip())

    def overlay(self, topic: Topic, title: str, unit: str = "", total: str = "sum") -> Overlay:
        marks = {node: _joined(several) for node, several in self._marks.items()}
        reduction = "max" if total == "max" else "sum"
        return Overlay(topic, title, unit, marks, reduction, tuple(self._unplaced))


def _joined(marks: Sequence[Mark]) -> Mark:
    if len(marks) == 1:
        return marks[0]
    values = [mark.value for mark in marks if mark.value is not None]
    texts = dict.fromkeys(mark.text for mark in marks if mark.text)
    text = "; ".join(texts)
    return Mark(sum(values) if values else None, worst(mark.severity for mark in marks), text)


# ---- one reader a schema ---------------------------------------------------------------------


def _findings(result: Object, nodes: _Nodes) -> list[Overlay]:
    schema = str(result["schema"]).split("/")[0].removeprefix("irtool.")
    collector = _Collector(nodes)
    for item in _objects(result.get("findings")):
        severity = str(item.get("severity"))
        text = shortened(f"{item.get('code') or ''}: {item.get('message') or ''}", _TEXT)
        known = severity if severity in ("error", "warning", "info") else "info"
        collector.add(item, Mark(None, cast("OverlaySeverity", known), text))
    return [collector.overlay("findings", f"findings of {schema}")]


def _plan(result: Object, nodes: _Nodes) -> list[Overlay]:
    collector = _Collector(nodes)
    for item in _objects(result.get("operators")):
        before, after = (tuple_text(_tuples(item.get(key))) for key in ("before", "after"))
        pinned = " (pinned)" if item.get("pinned") else ""
        if after and before != after:
            text = f"{before} → {after}" if before else after
            collector.add(item, Mark(None, "changed", f"{text}{pinned}"))
        elif pinned:
            collector.add(item, Mark(None, "info", f"{after}{pinned}"))
    return [collector.overlay("plan", "strategies before → after the plan")]


def _cost(result: Object, nodes: _Nodes) -> list[Overlay]:
    """What was measured where that is of the dump that is drawn, else what is modelled."""
    measured = _measured_dump(result)
    if measured and nodes.is_about(measured):
        collector = _Collector(nodes)
        for item in _objects(cast("Object", result["measured"]).get("operators")):
            value = _seconds(item.get("seconds"))
            if value is not None:
                collector.add(item, Mark(value), measured)
        return [collector.overlay("cost", "measured time of a step", "seconds")]
    collector = _Collector(nodes)
    for item in _objects(result.get("operators")):
        value = _seconds(item.get("seconds"))
        value = _seconds(item.get("modelled")) if value is None else value
        if value is not None:
            collector.add(item, Mark(value))
    return [collector.overlay("cost", "cost of a step", "seconds")]


def _seconds(given: object) -> float | None:
    """Seconds of an operator: a number, or numbers by cause."""
    if isinstance(given, Mapping):
        parts = [_seconds(part) for part in cast("Mapping[str, object]", given).values()]
        known = [part for part in parts if part is not None]
        return sum(known) if known else None
    return float(given) if isinstance(given, int | float) else None


def _memory(result: Object, nodes: _Nodes) -> list[Overlay]:
    collector = _Collector(nodes)
    for item in _objects(result.get("alive_at_peak")):
        value = _number(item, "bytes", "size")
        if value is not None:
            collector.add(item, Mark(value))
    return [collector.overlay("memory", "alive at the peak of memory", "bytes")]


def _diff(result: Object, nodes: _Nodes) -> list[Overlay]:
    collector = _Collector(nodes)
    numbers = _Collector(nodes)
    for key, severity in (("only_left", "removed"), ("only_right", "added")):
        for item in _objects(result.get(key)):
            if nodes.is_about(str(item.get("file") or "")):
                collector.add(item, Mark(None, cast("OverlaySeverity", severity), severity))
    changed = _objects(result.get("changed"))
    for item in changed:
        text = shortened(", ".join(map(_what, _list(item.get("what")))), _TEXT)
        for end in _ends(item, nodes):
            collector.add(end, Mark(None, "changed", text))
    first = result.get("first_divergence")
    begins = [cast("Object", first)] if isinstance(first, Mapping) else []
    for item in begins:
        why = shortened(f"first: {item.get('why') or ''}", _TEXT)
        for end in _ends(item, nodes):
            collector.add(end, Mark(None, "first", why))
    # Of runs: what each operator puts out; the first one may stand among those worth a look, too.
    errors: dict[str, tuple[Object, float]] = {}
    for item in (*changed, *begins):
        value = _number(item, "error_out")
        for end in _ends(item, nodes) if value is not None else ():
            errors[f"{end.get('file')}:{end.get('line')}:{end.get('node')}"] = end, value or 0.0
    for end, value in errors.values():
        numbers.add(end, Mark(value))
    return [collector.overlay("diff", "differences"), numbers.overlay("error", _ERRORS, "", "max")]


def _ends(item: Object, nodes: _Nodes) -> list[Object]:
    """The side of an item that is drawn, the right one first."""
    ends = [_object(item.get(side) or {}) for side in ("right", "left")]
    return [end for end in ends if end and nodes.is_about(str(end.get("file") or ""))][:1]


READERS: dict[str, Callable[[Object, _Nodes], list[Overlay]]] = {
    "irtool.check": _findings,
    "irtool.lint": _findings,
    "irtool.plan": _plan,
    "irtool.cost": _cost,
    "irtool.memory": _memory,
    "irtool.diff": _diff,
}
"""Reader by name of the schema."""


# ---- plain JSON ------------------------------------------------------------------------------


def _object(data: object) -> Object:
    if not isinstance(data, Mapping):
        raise OverlayError("expected a JSON object, as commands write with --format json")
    return cast("Object", data)


def _list(data: object) -> list[object]:
    return list(cast("Iterable[object]", data)) if isinstance(data, list) else []


def _objects(data: object) -> list[Object]:
    return [cast("Object", item) for item in _list(data) if isinstance(item, Mapping)]


def _number(item: Object, *keys: str) -> float | None:
    for key in keys:
        value = item.get(key)
        if isinstance(value, int | float) and not isinstance(value, bool):
            return float(value)
    return None


def _what(item: object) -> str:
    if isinstance(item, Mapping):
        change = cast("Object", item)
        return str(change.get("field") or change.get("what") or change.get("kind") or "")
    return str(item)


def _tuples(value: object) -> object:
    if isinstance(value, list):
        return tuple(_tuples(item) for item in cast("list[object]", value))
    return value
