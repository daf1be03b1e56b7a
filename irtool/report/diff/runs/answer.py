"""``irtool diff RUN RUN --format json``."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated

from irtool.compare.runs.comparison import RunComparison
from irtool.compare.runs.dump_settings import mindspore_dump_settings, msprobe_settings
from irtool.compare.runs.suspects import Suspect
from irtool.compare.runs.units import UnitResult
from irtool.compare.tensors.case import BINS, Case, Neighbour
from irtool.compare.tensors.comparison import TensorComparison
from irtool.compare.tensors.join import Joined
from irtool.compare.tensors.model import Op, TensorRun
from irtool.report.answer import AnswerObject, Json, doc
from irtool.report.diff.graphs import DiffAnswer, DiffView, NodePair, diff_answer
from irtool.report.diff.losses import LossAnswer, losses_answer
from irtool.report.diff.nodes import DiffNode, diff_node
from irtool.report.diff.runs.sentences import sentences, why_text
from irtool.report.diff.runs.tensors import phase_counts
from irtool.report.run_answer import CompilationsAnswer, Known, contexts_fields

_UNTOLD = ("equal bits", "equal figures", "carries error", "not comparable")
"""Verdicts of operators that are not listed as changed."""
_ORIGINS = 5


@dataclass(frozen=True, slots=True)
class RunsView:
    """What to show of a comparison of two runs.

    Attributes:
        comparison: of the runs.
        case: the first operator that introduces error, looked at closely; None where none does.
        limit: rows of each table that text shows; None is the usual number, 0 is all.
        is_strict: what differs in a bit is told.
        repeats: runs that noise was measured by.
    """

    comparison: RunComparison
    case: Case | None = None
    limit: int | None = None
    is_strict: bool = False
    repeats: tuple[str, ...] = ()


class UlpHistogram(AnswerObject, frozen=True, kw_only=True):
    """Elements by how many units in the last place they are apart."""

    dtype: Annotated[str, doc("the coarser type of the two sides")]
    counts: dict[str, int]
    bias: Annotated[
        float,
        doc("mean over root mean square of the difference: 1 or -1 where all are shifted one way"),
    ]


class ErrorOrigin(AnswerObject, frozen=True, kw_only=True):
    """The first operator that introduces error; errors are relative."""

    left: Annotated[DiffNode | None, doc("null: only the other run has this operator")]
    right: DiffNode | None
    why: str
    stretch: Annotated[
        dict[str, list[str]], doc("by side the calls that stand as one operator, if several do")
    ]
    no_gradient: Annotated[Sequence[str], doc("calls with a gradient on one side only")]
    alike_until: Annotated[str | None, doc("the last operator that made its input alike")]
    permuted: Annotated[bool, doc("both sides have the same numbers, in another order")]
    unit: Annotated[str, doc("rank and step")]
    ranks: Annotated[
        Sequence[int], doc("whose part is off, of a run that was put together of several")
    ]
    stage: Annotated[int | None, doc("the pipeline stage of these ranks; null: there is one")]
    ranks_open: Annotated[Sequence[int], doc("it is some of these; statistics do not tell which")]
    error_in: float | str | None
    error_out: float | str | None
    explained: Annotated[float | str | None, doc("what of `error_out` is no fault")]
    ratio: Annotated[float | str | None, doc("of `error_out` to `explained`")]
    wrong_side: Annotated[str | None, doc("that does not put out what its own inputs give")]
    attributes: Annotated[list[str], doc("arguments that differ")]
    read_by: Annotated[str | None, doc("the operator whose input comes from nowhere")]
    ulps: Annotated[UlpHistogram | None, doc("null: there are no values")]
    neighbours: Annotated[dict[str, Sequence[Neighbour]], doc("by side")]
    graph_edits: Annotated[Sequence[str], doc("what differs around it in the graphs")]
    next: Annotated[Sequence[str], doc("what to try")]


class HyperparameterValues(AnswerObject, frozen=True, kw_only=True):
    """A hyperparameter of both runs."""

    name: str
    left: str
    right: str
    same: Annotated[bool | None, doc("null: not known")]
    seen: Annotated[str, doc("where")]


class GraphJoin(AnswerObject, frozen=True, kw_only=True):
    """How a tensor dump was joined with a graph of its run."""

    graph: Annotated[str, doc("path")]
    operators: Annotated[int, doc("of the tensor dump")]
    joined: Annotated[int, doc("of them, with a node")]
    rate: Annotated[float, doc("share that was joined")]
    stale: Annotated[int, doc("names that would have led to another node")]
    replayed: Annotated[bool, doc("names were renumbered as the backend does")]
    mismatched: Annotated[int, doc("names that lead to another operator or shape: not joined")]
    shapes_checked: int


class PartnersByValue(AnswerObject, frozen=True, kw_only=True):
    """How many tensors of one side have the same values as one of the other."""

    found: int
    distinct: Annotated[int, doc("tensors of the left side")]


class UnitTensors(AnswerObject, frozen=True, kw_only=True):
    """The tensors of one step of one rank; the last five keys of the unit that is shown."""

    unit: Annotated[str, doc("`rank 0, step 1`")]
    equal: Annotated[bool, doc("every tensor is the same, and none is missing")]
    operators: Annotated[int, doc("pairs")]
    only_left: int
    only_right: int
    verdicts: Annotated[dict[str, int], doc("pairs of operators by verdict")]
    first: Annotated[str | None, doc("operator that introduces error")]
    join: Annotated[dict[str, GraphJoin | None], doc("by side; null: there is no graph")]
    tensor_pairs: Annotated[dict[str, int] | None, doc("by phase")] = None
    same_values: Annotated[dict[str, PartnersByValue] | None, doc("of two frameworks")] = None
    level: Annotated[list[str] | None, doc("what is known of tensors left and right")] = None
    payload_conflicts: Annotated[
        list[int] | None, doc("files left and right that hold another type than they declare")
    ] = None
    not_finite_from: Annotated[
        list[str] | None, doc("operators that make NaN or infinity of finite inputs")
    ] = None


class GraphSuspect(AnswerObject, frozen=True, kw_only=True):
    """What in the graphs may make numbers differ."""

    why: str
    may_bring: Annotated[float, doc("relative error")]
    times: int
    kind: Annotated[str, doc("of the edit, or what a graph without a partner computes")]
    node: Annotated[DiffNode, doc("the first one")]


class DumpSettings(AnswerObject, frozen=True, kw_only=True):
    """What to dump on both sides for tensors that decide."""

    steps: Annotated[list[int], doc("counted from 0")]
    mindspore: Annotated[Json, doc("for MINDSPORE_DUMP_CONFIG")]
    msprobe: Annotated[Json, doc("its config.json")]


class RunsAnswer(
    CompilationsAnswer, frozen=True, kw_only=True, tag_field="schema", tag="irtool.diff/1"
):
    """What differs between two runs or tensor dumps, and the first operator at fault.

    Lists are of the operators of the tensor dumps; without tensors, of the nodes of the graphs.
    """

    left: Annotated[str, doc("path")]
    right: Annotated[str, doc("path")]
    identical: Annotated[bool, doc("all that was compared is the same")]
    answer: Annotated[list[str], doc("the answer in sentences, the most important first")]
    matched: int
    only_left: Annotated[list[DiffNode], doc("without a match")]
    only_right: Annotated[list[DiffNode], doc("without a match")]
    changed: Annotated[list[NodePair], doc("with a verdict worth a look")]
    first_divergence: Annotated[
        ErrorOrigin | None, doc("the first operator that introduces error; null: none does")
    ]
    hyperparameters: list[HyperparameterValues]
    tensors: list[UnitTensors]
    losses: Annotated[LossAnswer | None, doc("null: a side has none")]
    graphs: Annotated[DiffAnswer | None, doc("null: a side has none")]
    suspects: Annotated[list[GraphSuspect], doc("where no tensor decides, the heaviest first")]
    dump_settings: Annotated[DumpSettings | None, doc("null: there is nothing to look for")]
    not_compared: Annotated[list[str], doc("what was missing")]
    complaints: Annotated[list[str], doc("what could not be read")]
    repeats: Annotated[list[str], doc("healthy runs that noise was measured by")]
    unequal: Annotated[
        list[str], doc("operators of which a tensor differs in a bit, of all units, in their order")
    ]


def runs_answer(view: RunsView, known: Known = ()) -> RunsAnswer:
    """The answer of ``irtool diff`` of two runs, for scripts.

    Args:
        view: the comparison.
        known: the dumps of both runs with their contexts, the left one first.
    """
    comparison = view.comparison
    tensors = comparison.tensors
    losses = comparison.losses
    graphs = comparison.graphs and diff_answer(DiffView(comparison.graphs))
    # Without tensors the lists are those of the graphs; nobody is accused by graphs alone.
    of_graphs = None if comparison.units else graphs
    return RunsAnswer(
        left=comparison.left.path,
        right=comparison.right.path,
        identical=comparison.is_identical,
        answer=sentences(comparison, view.case, view.is_strict),
        matched=of_graphs.matched if of_graphs else sum(unit.pairs for unit in comparison.units),
        only_left=of_graphs.only_left if of_graphs else _unpaired(tensors, "left"),
        only_right=of_graphs.only_right if of_graphs else _unpaired(tensors, "right"),
        changed=of_graphs.changed if of_graphs else _changed(tensors),
        first_divergence=None if view.case is None else _origin(comparison, view.case),
        hyperparameters=[
            HyperparameterValues(
                name=row.name, left=row.left, right=row.right, same=row.same, seen=row.where
            )
            for row in comparison.hyperparameters
        ],
        tensors=[_unit(unit) for unit in comparison.units],
        losses=None if losses is None else losses_answer(losses),
        graphs=graphs,
        suspects=[_suspect(item) for item in comparison.suspects],
        dump_settings=_dump_settings(comparison),
        not_compared=comparison.missing,
        complaints=[*comparison.left.complaints, *comparison.right.complaints],
        repeats=list(view.repeats),
        unequal=list(dict.fromkeys(name for unit in comparison.units for name in unit.unequal)),
        **contexts_fields(known),
    )


def _unpaired(tensors: TensorComparison | None, side: str) -> list[DiffNode]:
    if tensors is None:
        return []
    if side == "left":
        return [_operator(op, tensors.left) for op in tensors.only_left]
    return [_operator(op, tensors.right) for op in tensors.only_right]


def _changed(tensors: TensorComparison | None) -> list[NodePair]:
    if tensors is None:
        return []
    return [
        NodePair(
            left=_operator(item.pair.left, tensors.left),
            right=_operator(item.pair.right, tensors.right),
            matched_by=item.pair.how,
            what=[*([item.entered] if item.entered else []), *map(str, item.attributes)],
            verdict=item.verdict,
            error_in=_known(item.error_in),
            error_out=_known(item.error_out),
            ratio=_known(item.z),
        )
        for item in tensors.judged
        if item.verdict not in _UNTOLD
    ]


def _operator(op: Op, run: TensorRun | None) -> DiffNode:
    """An operator: its node where it was joined with one, else as its dump has it."""
    node = diff_node(op.node) if op.node is not None else None
    return DiffNode(
        node=node.node if node else op.name,
        op=op.type,
        file=node.file if node else run.path if run is not None else None,
        line=node.line if node else None,
        graph=node.graph if node else None,
        scope=node.scope if node else None,
        source=(node.source if node else None) or op.source or None,
        name=op.name,
        phase=op.phase,
        owner=op.owner or None,
    )


def _origin(comparison: RunComparison, case: Case) -> ErrorOrigin:
    shown, tensors = comparison.shown, comparison.tensors
    judged = case.judged
    return ErrorOrigin(
        left=None
        if case.only_on == "right"
        else _operator(case.left, tensors.left if tensors else None),
        right=None
        if case.only_on == "left"
        else _operator(case.right, tensors.right if tensors else None),
        why=why_text(judged),
        stretch={"left": _stretch(case.left), "right": _stretch(case.right)},
        no_gradient=case.missing,
        alike_until=judged.since.name if judged.since is not None else None,
        permuted=judged.is_permuted,
        unit=shown.name if shown is not None else "",
        ranks=judged.ranks,
        stage=judged.stage,
        ranks_open=judged.ranks_open,
        error_in=_known(judged.error_in),
        error_out=_known(judged.error_out),
        explained=_known(judged.budget),
        ratio=_known(judged.z),
        wrong_side=judged.wrong or None,
        attributes=[str(change) for change in judged.attributes],
        read_by=judged.pair.left.name if judged.entered else None,
        ulps=None if case.histogram is None else _ulps(case),
        neighbours={
            "left": case.left_neighbours,
            "right": case.right_neighbours,
        },
        graph_edits=case.edits,
        next=case.advice,
    )


def _stretch(op: Op) -> list[str]:
    return [call.name for call in op.members] if len(op.members) > 1 else []


def _ulps(case: Case) -> UlpHistogram | None:
    if case.histogram is None:
        return None
    return UlpHistogram(
        dtype=case.histogram.dtype,
        counts=dict(zip(BINS, case.histogram.counts, strict=True)),
        bias=case.histogram.bias,
    )


def _unit(unit: UnitResult) -> UnitTensors:
    tensors = unit.comparison
    return UnitTensors(
        unit=unit.name,
        equal=unit.equal,
        operators=unit.pairs,
        only_left=unit.only_left,
        only_right=unit.only_right,
        verdicts=dict(unit.counts),
        first=unit.first.pair.left.name if unit.first is not None else None,
        join={"left": _join(unit.joined[0]), "right": _join(unit.joined[1])},
        **({} if tensors is None else _of_shown(tensors)),
    )


def _of_shown(tensors: TensorComparison) -> dict[str, Json]:
    """The keys of the unit that is shown."""
    return {
        "tensor_pairs": phase_counts(tensors),
        "same_values": _partners(tensors.fingerprints),
        "level": [tensors.left.level, tensors.right.level],
        "payload_conflicts": [tensors.left.conflicts, tensors.right.conflicts],
        "not_finite_from": [item.pair.left.name for item in tensors.origins[:_ORIGINS]],
    }


def _partners(fingerprints: Mapping[str, tuple[int, int]]) -> dict[str, PartnersByValue]:
    return {
        phase: PartnersByValue(found=alike, distinct=count)
        for phase, (alike, count) in fingerprints.items()
    }


def _join(joined: Joined | None) -> GraphJoin | None:
    if joined is None:
        return None
    return GraphJoin(
        graph=joined.path,
        operators=joined.operators,
        joined=joined.with_node,
        rate=joined.rate,
        stale=joined.stale,
        replayed=joined.replayed,
        mismatched=joined.mismatched,
        shapes_checked=joined.checked,
    )


def _suspect(item: Suspect) -> GraphSuspect:
    return GraphSuspect(
        why=item.why,
        may_bring=item.error,
        times=item.times,
        kind=item.kind,
        node=diff_node(item.node),
    )


def _dump_settings(comparison: RunComparison) -> DumpSettings | None:
    """What to dump on both sides, where no tensors decided."""
    if not comparison.wants_tensors:
        return None
    steps = comparison.decisive_steps
    return DumpSettings(
        steps=list(steps),
        mindspore=json.loads(mindspore_dump_settings(comparison.suspects, steps)),
        msprobe=json.loads(msprobe_settings(steps)),
    )


def _known(value: float) -> float | None:
    """A figure; None where it is not known."""
    return None if math.isnan(value) else value
