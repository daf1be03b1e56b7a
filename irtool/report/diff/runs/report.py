"""``irtool diff RUN RUN`` for people: the answer, then what it rests on."""

from __future__ import annotations

from collections.abc import Iterator

from irtool.compare.losses.comparison import LossComparison
from irtool.compare.runs.comparison import RunComparison
from irtool.compare.runs.dump_settings import mindspore_dump_settings, msprobe_settings
from irtool.compare.runs.hyperparameters import Row
from irtool.compare.tensors.case import Case
from irtool.ir.dump import Dump, dump_of
from irtool.report.diff.graphs import DiffView, diff_elements, diff_facts
from irtool.report.diff.graphs import answer_text as graphs_text
from irtool.report.diff.losses import loss_elements, loss_facts, next_note
from irtool.report.diff.nodes import SIDES, Side, node_link, place_text, source_text
from irtool.report.diff.runs.answer import RunsView
from irtool.report.diff.runs.overlays import run_overlays
from irtool.report.diff.runs.sentences import sentences
from irtool.report.diff.runs.tensors import case_elements, tensor_elements, verdicts_text
from irtool.report.model import (
    Answer,
    Cell,
    Element,
    Explorer,
    Facts,
    Heading,
    Note,
    Report,
    Table,
    Tone,
    number_column,
    rows_shown,
    text_column,
)
from irtool.report.text import shortened

_USUAL_SUSPECTS = 15
_USUAL_UNITS = 40
_WHY = 100
_SEEN = 70
_SAME = {True: "same", False: "differs", None: "not known"}


def runs_report(view: RunsView, is_page: bool = False) -> Report:
    """The answer in sentences, and what it rests on.

    Args:
        view: the comparison, and what of it is shown.
        is_page: with pictures, and the graphs open where error begins.
    """
    comparison = view.comparison
    first, *others = sentences(comparison, view.case, view.is_strict)
    is_bad = comparison.is_suspicious or (view.is_strict and not comparison.is_identical)
    tone: Tone = "bad" if is_bad else "good"
    title = f"diff: {comparison.left.path} ↔ {comparison.right.path}"
    return Report(title, Answer(first, tone, others), list(_elements(view, is_page)))


def _elements(view: RunsView, is_page: bool) -> Iterator[Element]:
    comparison, case = view.comparison, view.case
    if view.repeats:
        yield Facts([("noise", f"measured by {', '.join(view.repeats)}")])
    if comparison.missing:
        yield Facts([("not compared", text) for text in comparison.missing])
    # Settings that differ explain all that follows; on a page those that don't come last.
    are_last = is_page and not comparison.told_differently
    if comparison.hyperparameters and not are_last:
        yield _hyperparameters_table(comparison.hyperparameters, is_page)
    if case is not None:
        yield from case_elements(case, is_page)
    yield from _tensors(view, is_page)
    if comparison.suspects:
        yield _suspects_table(view, is_page)
    if comparison.wants_tensors:
        yield from _dump_settings(comparison)
    if comparison.losses is not None:
        is_explained = (
            comparison.are_losses_summed
            or bool(comparison.loss_parts)
            or _is_dumped(comparison, comparison.losses)
        )
        yield from _losses(comparison.losses, is_page, is_explained)
    if comparison.graphs is not None and not comparison.graphs.is_identical:
        graphs = comparison.graphs
        yield Facts([("answer", graphs_text(graphs)), *diff_facts(graphs)], "Graphs")
        yield from diff_elements(DiffView(graphs, view.limit), is_page)
    if comparison.hyperparameters and are_last:
        yield _hyperparameters_table(comparison.hyperparameters, is_page)
    if is_page:
        yield from _explorer(comparison, case)


def _hyperparameters_table(rows: list[Row], is_page: bool) -> Table:
    columns = (
        text_column("hyperparameter"), text_column("left"), text_column("right"),
        text_column("compared"), text_column("seen in", 1),
    )  # fmt: skip
    cells = [
        [row.name, row.left, row.right, _SAME[row.same],
         row.where if is_page else shortened(row.where, _SEEN)]
        for row in rows
    ]  # fmt: skip
    return Table("Hyperparameters", columns, cells, noun="hyperparameter")


def _tensors(view: RunsView, is_page: bool) -> Iterator[Element]:
    comparison = view.comparison
    shown = comparison.shown
    if shown is None:
        return
    title = f"Tensors, {shown.name}" if shown.name else "Tensors"
    if shown.comparison is None:
        yield Facts([("verdicts", verdicts_text(shown.counts))], title)
    else:
        yield from tensor_elements(shown.comparison, title, view.limit, is_page)
    if len(comparison.units) > 1 and shown.comparison is not None:
        yield _units_table(view)


def _units_table(view: RunsView) -> Table:
    columns = (
        text_column("unit"), number_column("pairs"), text_column("verdicts", 1),
        text_column("first that introduces error", 2),
    )  # fmt: skip
    rows: list[list[Cell]] = [
        [
            unit.name,
            unit.pairs,
            verdicts_text(unit.counts),
            unit.first.pair.left.name if unit.first else "-",
        ]
        for unit in view.comparison.units
    ]
    most = rows_shown(view.limit, _USUAL_UNITS)
    return Table("All steps and ranks", columns, rows, noun="unit", most=most)


def _suspects_table(view: RunsView, is_page: bool) -> Table:
    comparison = view.comparison
    columns = (
        number_column("possible error", "error"), number_column("times"), text_column("suspect"),
        text_column("node", 1), text_column("source", 2),
    )  # fmt: skip
    rows: list[list[Cell]] = [
        [
            item.error,
            item.times,
            item.why if is_page else shortened(item.why, _WHY),
            node_link(item.node, _side_of(comparison, dump_of(item.node)), place_text(item.node)),
            source_text(item.node),
        ]
        for item in comparison.suspects
    ]
    title = "Suspects (only tensors can decide)"
    most = rows_shown(view.limit, _USUAL_SUSPECTS)
    return Table(title, columns, rows, noun="suspect", most=most)


def _side_of(comparison: RunComparison, dump: Dump | None) -> Side:
    return "right" if dump is comparison.right.dump else "left"


def _dump_settings(comparison: RunComparison) -> Iterator[Element]:
    """What both sides have to dump, to be compared once more."""
    steps = comparison.decisive_steps
    which = f"step {steps[0]}" if len(steps) == 1 else f"steps {steps[0]} and {steps[-1]}"
    yield Heading(f"To decide, dump {which} in MindSpore (MINDSPORE_DUMP_CONFIG)")
    yield Note(mindspore_dump_settings(comparison.suspects, steps), verbatim=True)
    yield Heading("and in PyTorch, or in MindSpore's PyNative mode (config.json of msprobe)")
    yield Note(msprobe_settings(steps), verbatim=True)


def _losses(losses: LossComparison, is_page: bool, is_explained: bool) -> Iterator[Element]:
    yield Facts(loss_facts(losses), "Losses")
    yield from loss_elements(losses, is_page)
    if not is_explained:
        yield from next_note(losses)


def _is_dumped(comparison: RunComparison, losses: LossComparison) -> bool:
    """Whether tensors were compared of the step that the next one would be to dump."""
    steps = {
        "different from the first step": (0, *losses.steps[:1]),
        "spike": tuple(step for step, _ in losses.spikes[:1]),
    }.get(losses.verdict, ())
    compared = {key[1] for key in comparison.left.units if key in comparison.right.units}
    return bool(comparison.units) and any(step in compared for step in steps)


def _explorer(comparison: RunComparison, case: Case | None) -> Iterator[Element]:
    dumps = list(_dumps(comparison, case))
    if not dumps:
        return
    from irtool.report.page.graph.data import graph_data  # half of all that is imported

    title = "Both graphs" if len(dumps) == 2 else f"The graph of the {dumps[0][0]} run"
    first = (case.left.node or case.right.node) if case is not None else None
    overlays = run_overlays(comparison, case)
    yield Explorer(title, graph_data(dumps, None, overlays, first=first))


def _dumps(comparison: RunComparison, case: Case | None) -> Iterator[tuple[Side, Dump]]:
    """The graphs that the operators were joined with, else those that were compared."""
    judged = comparison.tensors.judged if comparison.tensors is not None else []
    ops = {
        "left": [case.left] if case is not None else [],
        "right": [case.right] if case is not None else [],
    }
    for item in judged:
        ops["left"].append(item.pair.left)
        ops["right"].append(item.pair.right)
    are_shown = comparison.graphs is not None or bool(comparison.suspects)
    for side, own in zip(SIDES, (comparison.left.dump, comparison.right.dump), strict=True):
        node = next((op.node for op in ops[side] if op.node is not None), None)
        dump = dump_of(node) if node is not None else own if are_shown else None
        if dump is not None:
            yield side, dump
