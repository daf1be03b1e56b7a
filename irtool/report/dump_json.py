"""A dump for scripts: the answers of ``irtool parse``, written a node at a time."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Annotated, TypeAlias

from msgspec import field
from msgspec.structs import asdict

from irtool.ir.dump import Dump
from irtool.ir.finding import Finding, Severity
from irtool.ir.graph import Graph, GraphParameter, Node
from irtool.ir.values import Attributes
from irtool.report.answer import AnswerObject, Json, doc, opened_text
from irtool.report.json import json_list, json_text, json_value, type_text
from irtool.report.run_answer import RunAnswer, no_context
from irtool.syntax import query_fields as fields
from irtool.syntax.printer import print_value


class ReadProblem(AnswerObject, frozen=True, kw_only=True):
    """Something that could not be read as it should."""

    code: str
    severity: Severity
    message: str
    line: int
    column: int
    text: Annotated[str, doc("the line, shortened")]
    hint: str


class DumpParameter(AnswerObject, frozen=True, kw_only=True):
    """A parameter of a graph."""

    id: Annotated[str, doc("`%para3`")]
    name: str
    type: Annotated[str | None, doc("`Float32[256,784]`")]
    bytes: int | None
    weight: bool
    line: Annotated[int | None, doc("null where it is declared in no line of its own")]


class DumpNode(AnswerObject, frozen=True, kw_only=True):
    """A statement with everything it says.

    Types are short: `Float32[256,784]`, `Tuple[Float32[2],Int64]`; null where the dump has none.
    Attribute values are plain: `I64(3)` is 3, `Bool(1)` true, tuples and lists are lists,
    dictionaries objects. What has no plain form (a tensor, a reference, a class) is the text of the
    dump.
    """

    id: Annotated[str, doc("`%4` or `Return`")]
    name: str | None
    op: Annotated[str, doc("the primitive without `PrimFunc_`; `call` for any call")]
    inputs: Annotated[
        Sequence[str],
        doc('operands as printed: `"%2"`, `"%para3_up.weight"`, `"I64(1)"`, `"$(@G:x)"`'),
    ]
    callees: Annotated[Sequence[str], doc("graphs that it may call")]
    in_strategy: Annotated[
        Json,
        doc(
            "the strategy in effect: the block at the end of the statement, else the primitive's; "
            "a list or null, as the two below"
        ),
    ]
    user_strategy: Annotated[Json, doc("the primitive's")]
    out_strategy: Json
    in_layout: Json
    out_layout: Json
    input_types: Sequence[str | None]
    output_type: str | None
    output_bytes: int | None
    attributes: Annotated[
        Mapping[str, Mapping[str, Json]], doc("by block: `primitive`, `cnode` and `primal`")
    ]
    instance_name: str | None
    scope: str | None
    phase: Annotated[str, doc("`forward`, `backward`, `recompute`, `optimizer` or `other`")]
    group: Annotated[str | None, doc("of a collective")]
    ranks: Annotated[Json, doc("of its group: a list of numbers, or null")]
    origin: Annotated[str | None, doc("why a collective is there")]
    source: Annotated[str | None, doc("the user's line of Python, `net.py:33`")]
    line: int


class DumpGraph(AnswerObject, frozen=True, kw_only=True):
    """A graph; `--where` and `--limit` thin out its nodes."""

    name: str
    line: int
    parent: str | None
    parameters: Sequence[DumpParameter]
    nodes: Sequence[DumpNode]


class DumpFile(AnswerObject, frozen=True, kw_only=True):
    """A dump. One that could not be opened has a problem and no graphs."""

    path: str
    pass_name: Annotated[str | None, doc("after which it was taken")] = field(name="pass")
    dialect: Annotated[str | None, doc("versions of MindSpore that write so")]
    rank: int | None
    entry: Annotated[str | None, doc("name of the entry graph")]
    problems: Sequence[ReadProblem]
    graphs: Sequence[DumpGraph]


class ParseAnswer(RunAnswer, frozen=True, kw_only=True, tag_field="schema", tag="irtool.parse/1"):
    r"""What is in dumps, written as it is made: memory stays that of one dump.

    Numbers that JSON lacks are the texts `"NaN"`, `"Infinity"` and `"-Infinity"`. Texts are ASCII
    with `\u` escapes; a byte that is not UTF-8 comes as a lone surrogate, `\udc80` to `\udcff`,
    as Python's `surrogateescape` has it. Where nothing at all could be read, nothing is written and
    the exit status is 2. `--format ndjson` gives the same node objects one a line, each with
    `file`, `pass`, `rank` and `graph` before it. The context is empty: what is said rests on the
    dumps alone.
    """

    files: Sequence[DumpFile]


class GroupsAnswer(
    RunAnswer, frozen=True, kw_only=True, tag_field="schema", tag="irtool.parse.groups/1"
):
    """`--group-by`: how many nodes have the same values of some fields, and how many bytes.

    The context is empty: what is said rests on the dumps alone.
    """

    by: Annotated[Sequence[str], doc("the fields")]
    groups: Annotated[
        Sequence[Mapping[str, Json]],
        doc("each with its fields, `count`, and `bytes` of its results"),
    ]


ParseAnswers: TypeAlias = ParseAnswer | GroupsAnswer


def dump_node(node: Node) -> DumpNode:
    """A node with everything it says.

    Args:
        node: of a dump; strategies are those that are written, the trailing block before the
            primitive's attribute.
    """
    return DumpNode(
        id=node.id,
        name=node.name,
        op=node.op,
        inputs=[print_value(operand) for operand in node.operands],
        callees=list(node.callees),
        in_strategy=json_value(node.written_strategy()),
        user_strategy=json_value(node.written_strategy("user_strategy")),
        out_strategy=json_value(node.written_strategy("out_strategy")),
        in_layout=json_value(node.in_layout),
        out_layout=json_value(node.out_layout),
        input_types=[type_text(abstract) for abstract in node.input_types],
        output_type=type_text(node.output_type),
        output_bytes=node.output_bytes,
        attributes={
            "primitive": _attributes(node.primitive_attributes),
            "cnode": _attributes(node.node_attributes),
            "primal": _attributes(node.primal_attributes),
        },
        instance_name=node.instance_name,
        scope=node.scope,
        phase=fields.phase(node),
        group=fields.group(node),
        ranks=json_value(fields.ranks(node)),
        origin=fields.origin(node),
        source=fields.source(node),
        line=node.line,
    )


def _attributes(block: Attributes | None) -> dict[str, object]:
    return {} if block is None else {key: json_value(block[key]) for key in block}


def _parameter(parameter: GraphParameter) -> DumpParameter:
    declared = parameter.declaration
    number = "" if parameter.number is None else parameter.number
    return DumpParameter(
        id=f"%para{number}",
        name=parameter.name,
        type=type_text(parameter.type),
        bytes=parameter.type.size if parameter.type else None,
        weight=bool(declared and declared.is_weight),
        line=declared.line if declared else None,
    )


def _problem(finding: Finding) -> ReadProblem:
    return ReadProblem(
        code=finding.code,
        severity=finding.severity,
        message=finding.message,
        line=finding.line,
        column=finding.column,
        text=finding.statement,
        hint=finding.hint,
    )


def files_text() -> str:
    """The beginning of an answer, up to its files."""
    return opened_text(ParseAnswer(**no_context(), files=()), "files")


def dump_pieces(
    dump: Dump,
    pass_name: str | None,
    rank: int | None,
    where: Callable[[Node], bool] | None = None,
    limit: int | None = None,
) -> Iterator[str]:
    """One entry of ``files``, in pieces to be written one after the other.

    Args:
        dump: the file as read.
        pass_name: what it was taken after; None where the name does not tell.
        rank: whose it is; None where nobody says.
        where: the nodes to write; None: all.
        limit: the first so many of them; None: all.
    """
    entry = DumpFile(
        path=dump.path,
        pass_name=pass_name,
        dialect=dump.dialect,
        rank=rank,
        entry=dump.entry.name if dump.entry else None,
        problems=[_problem(finding) for finding in dump.problems],
        graphs=(),
    )
    yield opened_text(entry, "graphs")
    nodes = dump.nodes(where=where)
    chosen = None
    if where is not None or limit is not None:
        chosen = {id(node) for node in islice(nodes, limit)}
    yield from json_list((_graph_pieces(graph, chosen) for graph in dump.graphs), "  ")
    yield "}"


def _graph_pieces(graph: Graph, chosen: set[int] | None) -> Iterator[str]:
    head = DumpGraph(
        name=graph.name,
        line=graph.line,
        parent=graph.parent,
        parameters=[_parameter(parameter) for parameter in graph.parameters],
        nodes=(),
    )
    yield opened_text(head, "nodes")
    nodes = (node for node in graph.nodes if chosen is None or id(node) in chosen)
    # All of a node's values are plain already.
    yield from json_list(([json_text(asdict(dump_node(node)))] for node in nodes), "   ")
    yield "}"


def unread_text(problem: Finding) -> str:
    """The entry of a file that could not be read at all.

    Args:
        problem: why; it names the file.
    """
    entry = DumpFile(
        path=problem.file,
        pass_name=None,
        dialect=None,
        rank=None,
        entry=None,
        problems=[_problem(problem)],
        graphs=(),
    )
    return f"{opened_text(entry, 'graphs')}[]}}"
