"""``analyze_fail.ir``: what MindSpore leaves where types or shapes of a network make no sense.

Newer files (2.3 on) begin with the exception and the lines of Python that led to it.  Then come the
graphs of the evaluation stack, outermost first, with a mark before each call that was under way;
the last mark stands before the call that failed.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from difflib import get_close_matches

from irtool.ir.dataclass import dataclass
from irtool.ir.dump import Dump
from irtool.ir.finding import Edit, SourceLine
from irtool.ir.graph import Graph, GraphParameter, Node
from irtool.ir.items import Marker
from irtool.ir.statement import ClosureTarget
from irtool.ir.values import NodeReference, String, Word
from irtool.linting.failure.branches import Branches, branches_of
from irtool.linting.failure.finding import Explained, LoggedFinding
from irtool.linting.failure.frames import FrameCollector, innermost
from irtool.linting.failure.known import KnownLine, KnownLines, known_lines
from irtool.linting.failure.record import Record
from irtool.linting.failure.template import filled

_HEADER = re.compile(r"# ?IR entry ?:")
_RULE = re.compile(r"[-#= ]{5,}")
_CAUGHT = "Caught exception"
_SECTION = re.compile(
    r"- (?:C\+\+ Call Stack|The Traceback of Net Construct Code|The Function Call)"
)
_FROM_EXCEPTION = re.compile(r"For (?:primitive\[|operation )?'?([A-Z]\w*)'?\]?|calling (\w+) with")
_LOOKUPS = ("resolve", "getattr")
_UNDEFINED = re.compile(r"The name '\w+' is not defined")
_MEMBER_OF = re.compile(r"ClassMember: '[^']*<([^']*)>'")
_MEMBER = re.compile(r"ClassMember: '[^']*<([^']*)>'[^{}]*?<Symbol> (\w+)\}")
_NEAR = 0.8
_MOST_EXCEPTION = 2000
_WHERE = "irtool parse {file} --where 'graph == \"{graph}\"'"
_ALL = "irtool parse {file}"


@dataclass(frozen=True, slots=True)
class Call:
    """A call of the evaluation stack."""

    node: Node
    graph: Graph
    depth: str


def explain_dump(dump: Dump, lines: Sequence[str], known: KnownLines | None = None) -> Explained:
    """Why a compilation failed, by the ``analyze_fail.ir`` that it left.

    Args:
        dump: the file.
        lines: its lines, as they stand.
        known: the table of known lines, for the exception.

    Returns:
        one finding, or none for the dump of a pass that succeeded.
    """
    calls = list(calls_of(dump))
    exception, traceback = _preamble(lines)
    if not calls and not exception:
        return Explained(dump.path, "dump", len(lines))
    record = Record("exception", exception.split("\n", 1)[0].rstrip("."))
    matched = (known or known_lines()).match(record) if exception else None
    entry, values = matched if matched is not None else (None, {})
    last = calls[-1] if calls else None
    stack = traceback or _stack(calls)
    op = values.get("op") or _operator(exception, last)
    number = last.node.line if last is not None else 1
    source = innermost(stack)
    joined = tuple(values[name] for name in ("first", "second") if name in values)
    ends = Branches(())
    if joined and last is not None:
        ends = branches_of(dump, last.node, last.graph, joined)
    finding = LoggedFinding(
        code=entry.code if entry else "compile-failed",
        severity="error",
        role="cause",
        message=_message(exception, entry, values, op, last) + ends.text,
        file=dump.path,
        line=number,
        statement=exception or _line(lines, number).strip(),
        op=op,
        values=tuple({**values, "graph": last.graph.name if last is not None else ""}.items()),
        source=source,
        edit=ends.edit or _near_member(values.get("attribute", ""), lines, number, source),
        frames=stack,
        call=_line(lines, number).strip() if last is not None else "",
        operands=() if joined else _operands(last),
        inputs=_inputs(dump),
        command=_command(entry, last),
        hint=filled(entry.meaning, values) if entry else "",
        reference=entry.reference if entry else "",
    )
    return Explained(dump.path, "analyze_fail", len(lines), findings=(finding,))


def calls_of(dump: Dump) -> Iterator[Call]:
    """The calls that were under way, outermost first."""
    for graph in dump.graphs:
        depth: str | None = None
        for item in graph.items:
            if isinstance(item, Marker):
                depth = item.depth
            elif isinstance(item, Node) and depth is not None:
                yield Call(item, graph, depth)
                depth = None


def _preamble(lines: Sequence[str]) -> tuple[str, tuple[SourceLine, ...]]:
    """The exception's text and the lines of Python, from before the header."""
    exception: list[str] = []
    collector = FrameCollector()
    part = ""
    for line in lines:
        if _HEADER.match(line):
            break
        if _CAUGHT in line:
            part = "exception"
        elif match := _SECTION.match(line):
            part = "traceback" if "C++" not in match.group() else "C++"
        elif part == "exception" and not _RULE.fullmatch(line.strip() or "-----"):
            exception.append(line.rstrip())
        elif line.startswith("# ====") and part:
            part = ""
        if part == "traceback":
            collector.feed(line)
    return "\n".join(exception).strip()[:_MOST_EXCEPTION], collector.stack


def _command(entry: KnownLine | None, last: Call | None) -> str:
    """What to type next: the graph that failed, unless the entry knows more than this page."""
    own = entry.next if entry is not None else ""
    if own.startswith("irtool explain"):
        own = ""
    return (own or _WHERE) if _is_plain(last) else _ALL


def _is_plain(last: Call | None) -> bool:
    """Whether the graph's name can stand in a command between quotation marks."""
    return last is not None and not set(last.graph.name) & set("'\"\\")


def _stack(calls: Sequence[Call]) -> tuple[SourceLine, ...]:
    """Lines of Python from the statements themselves: older files have no other."""
    frames: list[SourceLine] = []
    for call in calls:
        location = next(iter(reversed(call.node.comments.locations)), None)
        if location is not None:
            source = (location.source or "").strip().strip("/").strip()
            frame = SourceLine(location.path, location.line, text=source)
            if not frames or frames[-1].place != frame.place:
                frames.append(frame)
    return tuple(frames)


def _operator(exception: str, last: Call | None) -> str:
    """The operator or function that failed, by the exception or by what is called."""
    named = _FROM_EXCEPTION.search(exception.split("\n", 1)[0])
    if named is not None:
        return named[1] or named[2]
    if last is None:
        return ""
    if last.node.op != "call":
        return "" if last.node.op in _LOOKUPS else last.node.op
    target = last.node.target
    if not isinstance(target, ClosureTarget) or not isinstance(target.callee, NodeReference):
        return ""
    for node in last.graph.nodes:
        if node.number == target.callee.number and node.op in _LOOKUPS and node.operands:
            operand = node.operands[-1]
            return operand.text.rpartition(".")[2] if isinstance(operand, Word | String) else ""
    return ""


def _operands(last: Call | None) -> tuple[str, ...]:
    if last is None:
        return ()
    return tuple("?" if kind is None else kind.short() for kind in last.node.input_types)


def _inputs(dump: Dump) -> tuple[str, ...]:
    """Types of the network's inputs, where the entry uses them: declarations have none yet."""
    inputs: dict[str, str] = {}
    for node in dump.graphs[0].nodes if dump.graphs else ():
        for item, kind in zip(node.inputs, node.input_types, strict=False):
            declared = item.declaration if isinstance(item, GraphParameter) else None
            if declared is not None and not declared.has_default and kind is not None:
                inputs.setdefault(declared.name, kind.short())
    return tuple(inputs.values())


def _near_member(
    asked: str, lines: Sequence[str], number: int, source: SourceLine | None
) -> Edit | None:
    """A member of the same cell whose name is near one that there is not."""
    cell = _MEMBER_OF.search(_line(lines, number))
    written = f"self.{asked}"
    if not asked or cell is None or source is None or source.text.count(written) != 1:
        return None
    members = {
        match[2] for line in lines for match in _MEMBER.finditer(line) if match[1] == cell[1]
    }
    near = get_close_matches(asked, sorted(members - {asked}), 1, _NEAR)
    if not near:
        return None
    new = source.text.replace(written, f"self.{near[0]}")
    return Edit(file=source.path, line=source.line, old=source.text, new=new)


def _parsed_function(last: Call | None) -> str:
    """The function that was being parsed, where no line is told: ``net.Block.construct``."""
    if last is None or last.node.op != "resolve" or not last.node.operands:
        return ""
    operand = last.node.operands[-1]
    return operand.text if isinstance(operand, Word) else ""


def _message(
    exception: str,
    entry: KnownLine | None,
    values: dict[str, str],
    op: str,
    last: Call | None,
) -> str:
    if entry is not None and entry.message:
        return " ".join(filled(entry.message, {**values, "op": op}).split())
    first = exception.split("\n", 1)[0].replace("[const vector]", "")
    if _UNDEFINED.search(first) and (place := _parsed_function(last)):
        first = f"{first.rstrip('.')}, in {place}"
    return first or f"MindSpore could not tell the types of {op or 'a call'}"


def _line(lines: Sequence[str], number: int) -> str:
    return lines[number - 1] if 0 < number <= len(lines) else ""


def with_rank(explained: Explained, rank: int | None) -> Explained:
    """What a dump explains, marked with the rank that left it.

    Args:
        explained: of one file.
        rank: global; None: nobody knows, and nothing is changed.
    """
    if rank is None:
        return explained
    findings = tuple(replace(finding, ranks=(rank,)) for finding in explained.findings)
    return replace(explained, rank=rank, findings=findings)
