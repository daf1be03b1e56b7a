"""``irtool diff`` of two dumps: its answer for scripts, and its report for people."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Annotated

from msgspec import UNSET, UnsetType, structs

from irtool.ir.dataclass import dataclass
from irtool.ir.graph import Node
from irtool.ir.operators import PLUMBING
from irtool.ir.units import part_text, plural
from irtool.report.answer import AnswerObject, doc
from irtool.report.diff.nodes import (
    SIDES,
    DiffNode,
    Side,
    diff_node,
    node_link,
    optional_node,
    source_text,
)
from irtool.report.model import (
    Answer,
    Cell,
    Element,
    Explorer,
    Facts,
    Note,
    Report,
    Table,
    number_column,
    rows_shown,
    text_column,
)
from irtool.report.picture.overlay import Mark, Overlay
from irtool.report.run_answer import (
    CONTEXT,
    CompilationContext,
    ContextValue,
    Known,
    contexts_fields,
)
from irtool.report.text import shortened
from irtool.syntax.printer import print_statement

if TYPE_CHECKING:
    from irtool.compare.edits import Edit, Pattern
    from irtool.compare.graph_diff import GraphDiff, Pair

USUAL_PATTERNS = 40
_USUAL_PARAMETERS = 20
_DETAIL = 90
_SCOPE = 60
_MOST_STATEMENTS = 4_000
"""Edits whose statements a page shows; more would make it slow to open."""


@dataclass(frozen=True, slots=True)
class DiffView:
    """A difference with what of it is to be shown.

    Attributes:
        diff: the difference.
        limit: rows of each table that text shows; None is the usual number, 0 is all.
        wanted: chooses the nodes that lists are about; None takes all.
    """

    diff: GraphDiff
    limit: int | None = None
    wanted: Callable[[Node], bool] | None = None

    @property
    def patterns(self) -> tuple[Pattern, ...]:
        """The patterns with a node that is wanted."""
        return tuple(
            pattern
            for pattern in self.diff.patterns
            if any(self.wants(*edit.left, *edit.right) for edit in pattern.edits)
        )

    def wants(self, *nodes: Node) -> bool:
        """Whether one of some nodes is wanted."""
        return self.wanted is None or any(map(self.wanted, nodes))


# -- for scripts ---------------------------------------------------------------------------------


class NodePair(AnswerObject, frozen=True, kw_only=True):
    """Matched nodes or operators that differ; of operators with what their tensors show."""

    left: DiffNode
    right: DiffNode
    matched_by: Annotated[str, doc("how they were matched")]
    what: Annotated[list[str], doc("differs between them")]
    verdict: Annotated[str | UnsetType, doc("of tensors: what is said of the pair")] = UNSET
    error_in: Annotated[
        float | str | UnsetType | None, doc("largest relative error of an input")
    ] = UNSET
    error_out: Annotated[
        float | str | UnsetType | None, doc("relative error of the output that decided")
    ] = UNSET
    ratio: Annotated[float | str | UnsetType | None, doc("of error to what explains it")] = UNSET


class FirstDifference(AnswerObject, frozen=True, kw_only=True):
    """Where two dumps begin to differ, in the order of the flow."""

    left: DiffNode | None
    right: DiffNode | None
    why: str


class EditNodes(AnswerObject, frozen=True, kw_only=True):
    """The nodes of one edit, by number."""

    left: list[str]
    right: list[str]


class EditPattern(AnswerObject, frozen=True, kw_only=True):
    """Equal edits of several layers."""

    kind: Annotated[str, doc("what happened")]
    detail: Annotated[str, doc("to what")]
    phase: str
    follows: Annotated[bool, doc("a result's type, which changed only because an operand's did")]
    scope: Annotated[str, doc("without the numbers of layers")]
    times: int
    layers: Annotated[int, doc("scopes that differ in numbers alone")]
    counterpart: Annotated[
        int | None, doc("place in `edits` of the forward or backward operators that go with these")
    ]
    nodes: Annotated[list[EditNodes], doc("of each edit")]


class ParameterDifference(AnswerObject, frozen=True, kw_only=True):
    """A parameter of the network that only one side has, or whose type differs."""

    name: str
    left: Annotated[str | None, doc("its type; null: not there")]
    right: str | None


class ForwardingNodes(AnswerObject, frozen=True, kw_only=True):
    """Nodes of one operator that only hand on values or order, counted."""

    op: str
    left: int
    right: int


class DiffAnswer(AnswerObject, frozen=True, kw_only=True, tag_field="schema", tag="irtool.diff/1"):
    """What differs between two graphs, and where it begins."""

    left: Annotated[str, doc("path")]
    right: Annotated[str, doc("path")]
    identical: Annotated[bool, doc("up to numbers, addresses, hashes and source lines")]
    matched: Annotated[int, doc("operators")]
    rounds: Annotated[dict[str, int], doc("how many each round matched")]
    only_left: Annotated[list[DiffNode], doc("without a match")]
    only_right: Annotated[list[DiffNode], doc("without a match")]
    changed: list[NodePair]
    first_divergence: Annotated[FirstDifference | None, doc("null: they are identical")]
    edits: Annotated[list[EditPattern], doc("in the order of the flow")]
    parameters: list[ParameterDifference]
    passing: Annotated[list[ForwardingNodes], doc("where the numbers differ")]


class DumpsAnswer(DiffAnswer, frozen=True, kw_only=True, tag_field="schema", tag="irtool.diff/1"):
    """What differs between two dumps, and where it begins."""

    context: Annotated[dict[str, ContextValue], CONTEXT, doc("that of the left dump")]
    assumptions: Annotated[list[str], doc("of the left dump, as texts")]
    contradictions: Annotated[list[str], doc("what two sources say differently, as texts")]
    contexts: Annotated[list[CompilationContext], doc("of the left dump, then of the right one")]


def dumps_answer(view: DiffView, known: Known) -> DumpsAnswer:
    """The answer of two dumps for scripts.

    Args:
        view: the difference; lists are of the nodes that are wanted.
        known: both dumps with their contexts, the left one first.
    """
    return DumpsAnswer(**structs.asdict(diff_answer(view)), **contexts_fields(known))


def diff_answer(view: DiffView) -> DiffAnswer:
    """The graphs in a larger answer; its lists are of the nodes that are wanted.

    Args:
        view: the difference of two dumps, and which nodes ``--where`` chose; counts are of all
            nodes.
    """
    diff = view.diff
    first = diff.first_divergence
    return DiffAnswer(
        left=diff.left.path,
        right=diff.right.path,
        identical=diff.is_identical,
        matched=len(diff.pairs),
        rounds=dict(Counter(pair.round for pair in diff.pairs)),
        only_left=[diff_node(node) for node in diff.only_left if view.wants(node)],
        only_right=[diff_node(node) for node in diff.only_right if view.wants(node)],
        changed=[_changed(pair) for pair in diff.changed if view.wants(pair.left, pair.right)],
        first_divergence=None
        if first is None
        else FirstDifference(
            left=optional_node(first.left), right=optional_node(first.right), why=first.why
        ),
        edits=[edit_pattern(pattern) for pattern in view.patterns],
        parameters=[
            ParameterDifference(name=item.name, left=item.before, right=item.after)
            for item in diff.parameters
        ],
        passing=[
            ForwardingNodes(op=op, left=before, right=after) for op, before, after in diff.passing
        ],
    )


def _changed(pair: Pair) -> NodePair:
    return NodePair(
        left=diff_node(pair.left),
        right=diff_node(pair.right),
        matched_by=pair.round,
        what=[str(change) for change in pair.what],
    )


def edit_pattern(pattern: Pattern) -> EditPattern:
    """Equal edits of several layers, for scripts.

    Args:
        pattern: the edits; the first of them speaks for all.
    """
    first = pattern.first
    return EditPattern(
        kind=first.kind,
        detail=first.detail,
        phase=first.phase,
        follows=first.follows,
        scope=pattern.scope,
        times=len(pattern.edits),
        layers=pattern.layers,
        counterpart=pattern.counterpart,
        nodes=[
            EditNodes(left=[node.id for node in edit.left], right=[node.id for node in edit.right])
            for edit in pattern.edits
        ],
    )


# -- for people ----------------------------------------------------------------------------------


def diff_report(view: DiffView, is_page: bool = False) -> Report:
    """The answer, then what happened, equal edits of repeated layers in one line.

    Args:
        view: the difference, and what of it is shown.
        is_page: with the statements of both sides and the graphs.
    """
    diff = view.diff
    elements: list[Element] = [Facts(diff_facts(diff)), *diff_elements(view, is_page)]
    if is_page:
        elements.append(_graphs(diff))
    title = f"diff: {diff.left.path} ↔ {diff.right.path}"
    tone = "good" if diff.is_identical else "plain"
    return Report(title, Answer(answer_text(diff), tone), elements)


def answer_text(diff: GraphDiff) -> str:
    """Whether two dumps are identical, in one line, else how many edits tell them apart.

    Args:
        diff: of two dumps; edits that only follow from others are not counted.
    """
    if diff.is_identical:
        return "identical, up to numbers, addresses, hashes and source lines"
    if not diff.edits:
        return "different, though every operator is the same"
    roots = [pattern for pattern in diff.patterns if not pattern.first.follows]
    edits = sum(len(pattern.edits) for pattern in roots)
    return f"different: {plural(edits, 'edit')} of {plural(len(roots), 'kind')}"


def diff_facts(diff: GraphDiff) -> list[tuple[str, Cell]]:
    """How much was matched, and where the difference begins.

    Args:
        diff: of two dumps.

    Returns:
        a label and a value each; the nodes lead into the graphs of a page.
    """
    rounds = Counter(pair.round for pair in diff.pairs)
    matched = ", ".join(f"{name} {count:,}" for name, count in rounds.most_common())
    facts: list[tuple[str, Cell]] = [
        ("left", f"{diff.left.path}: {_matched(diff, 'left')}"),
        ("right", f"{diff.right.path}: {_matched(diff, 'right')}"),
        ("matched by", matched or "nothing"),
    ]
    first = diff.first_divergence
    if first is not None:
        facts += [
            ("first difference", first.why),
            ("on the left", node_link(first.left, "left")),
            ("on the right", node_link(first.right, "right")),
            ("source", source_text(first.left or first.right)),
        ]
    return [(label, value) for label, value in facts if value]


def _matched(diff: GraphDiff, side: Side) -> str:
    matched = len({getattr(pair, side) for pair in diff.pairs})
    unmatched = len(diff.only_left if side == "left" else diff.only_right)
    return f"{part_text(matched, matched + unmatched)} of the operators matched"


def diff_elements(view: DiffView, is_page: bool) -> Iterator[Element]:
    """What happened: edits, parameters, and what only follows or hands on.

    Args:
        view: the difference, and what of it is shown.
        is_page: with the statements of both sides.
    """
    diff = view.diff
    roots = [pattern for pattern in view.patterns if not pattern.first.follows]
    if roots:
        yield _edits_table(roots, view.limit, is_page)
    following = sum(len(pattern.edits) for pattern in view.patterns if pattern.first.follows)
    if following:
        yield Note(
            f"{plural(following, 'more result')} changed type only because an operand did "
            "(--format json lists them)"
        )
    if diff.parameters:
        yield _parameters_table(diff, view.limit)
    if diff.passing and not diff.is_identical:
        yield Note(f"nodes that only hand values on: {passing_text(diff)}")
    edits = [edit for pattern in view.patterns for edit in pattern.edits]
    if edits and is_page:
        yield _statements_table(edits)


def passing_text(diff: GraphDiff) -> str:
    """``Load 8 → 10, Depend 7 → 8``.

    Args:
        diff: of two dumps; written are operators that only hand values on and whose number differs.
    """
    return ", ".join(f"{op} {before:,} → {after:,}" for op, before, after in diff.passing)


def _edits_table(patterns: Sequence[Pattern], limit: int | None, is_page: bool) -> Table:
    columns = (
        text_column("change"), number_column("times", rank=1), number_column("layers", rank=3),
        text_column("phase", 2), text_column("left"), text_column("right"),
        text_column("detail", 4), text_column("scope", 5),
    )  # fmt: skip
    most = rows_shown(limit, USUAL_PATTERNS)
    rows = [_edits_row(pattern, is_page) for pattern in patterns]
    return Table("Edits, in the order of the flow", columns, rows, noun="kind", most=most)


def _edits_row(pattern: Pattern, is_page: bool) -> list[Cell]:
    first = pattern.first
    return [
        first.kind,
        len(pattern.edits),
        pattern.layers if pattern.layers > 1 else None,
        first.phase,
        _representative(first.left, "left"),
        _representative(first.right, "right"),
        pattern.detail if is_page else shortened(pattern.detail, _DETAIL),
        pattern.scope if is_page else shortened(pattern.scope, _SCOPE),
    ]


def _representative(nodes: tuple[Node, ...], side: Side) -> Cell:
    """``%4 MatMul +2``: the node that stands for several."""
    if not nodes:
        return "-"
    named = next((node for node in nodes if node.op not in PLUMBING), nodes[0])
    more = f" +{len(nodes) - 1}" if len(nodes) > 1 else ""
    return node_link(named, side, f"{named.id} {named.op}{more}")


def _parameters_table(diff: GraphDiff, limit: int | None) -> Table:
    columns = (text_column("parameter"), text_column("left"), text_column("right"))
    rows = [[item.name, item.before or "-", item.after or "-"] for item in diff.parameters]
    most = rows_shown(limit, _USUAL_PARAMETERS)
    return Table("Parameters", columns, rows, noun="parameter", most=most)


def _statements_table(edits: Sequence[Edit]) -> Table:
    """The statements of both sides, side by side."""
    columns = [text_column(title) for title in ("change", "phase", *SIDES, "detail", "scope")]
    rows = [
        [
            edit.kind,
            edit.phase,
            _statements(edit.left),
            _statements(edit.right),
            edit.detail,
            edit.node.scope or "",
        ]
        for edit in edits[:_MOST_STATEMENTS]
    ]
    left_out = len(edits) - len(rows)
    note = "--format json has all of them" if left_out else ""
    return Table("Side by side", columns, rows, left_out, "edit", note=note)


def _statements(nodes: tuple[Node, ...]) -> str:
    lines = [f"{node.line}: {print_statement(node).strip()}" for node in nodes[:6]]
    if len(nodes) > 6:
        lines.append(f"… {len(nodes) - 6} more")
    return "\n".join(lines)


def _graphs(diff: GraphDiff) -> Explorer:
    """Both graphs side by side, with what is on one side only and what changed marked."""
    # Runs without graphs don't need what a page of one takes: half of what is imported.
    from irtool.report.page.graph.data import graph_data

    marks = {node: Mark(None, "removed", "removed") for node in diff.only_left}
    marks |= {node: Mark(None, "added", "added") for node in diff.only_right}
    for pair in diff.changed:
        mark = Mark(None, "changed", ", ".join(map(str, pair.what)))
        marks |= {pair.left: mark, pair.right: mark}
    first = diff.first_divergence
    if first is not None:
        mark = Mark(None, "first", f"first: {first.why}")
        marks |= {node: mark for node in (first.left, first.right) if node is not None}
    overlay = Overlay("diff", "differences", marks=marks)
    dumps = list(zip(SIDES, (diff.left, diff.right), strict=True))
    begins = (first.right or first.left) if first is not None else None
    return Explorer("Both graphs", graph_data(dumps, None, [overlay], first=begins))
