"""What ``irtool diff RUN_A RUN_B`` tells: the answer, then what it rests on."""

from __future__ import annotations

from irtool.compare.runs import RunComparison
from irtool.compare.suspects import mindspore_dump_settings, msprobe_settings
from irtool.compare.tensors.report import (
    Case,
    checksum_text,
    pairing_text,
    stretch_text,
    unseen_text,
)
from irtool.ir.units import plural
from irtool.report.diff import DiffView, diff_document, node_place, place_text
from irtool.report.losses import answer_text as loss_answer
from irtool.report.losses import losses_document
from irtool.report.model import Document, Facts, Heading, Note, Table, number_column, text_column
from irtool.report.tensors import (
    case_facts,
    facts,
    judged_table,
    lone_table,
    neighbours_table,
    noted,
    origins_note,
    verdicts_text,
)
from irtool.report.text import shortened


def answer(found: RunComparison, case: Case | None) -> list[str]:
    """The answer, the most important sentence first."""
    lines: list[str] = []
    rows = found.told_differently
    if rows:
        texts = "; ".join(f"{row.name}: {row.left} | {row.right}" for row in rows[:4])
        lines.append(f"the runs were told different things: {texts}")
    if case is not None:
        place = f" at {case.left.source}" if case.left.source else ""
        unit = found.shown.name if found.shown is not None else ""
        where = f" ({unit})" if unit else ""
        name = case.left.name
        if case.judged.maker_left is None and case.judged.maker_right is not None:
            name = f"{case.right.name} (only in the right run)"
        if case.judged.since is not None:
            name = f"between {case.judged.since.name} and {name}"
        elif len(case.left.members) > 1:
            name = f"between {case.left.members[0].name} and {name}"
        else:
            name = f"at {name}"
        if stretch := stretch_text(case.right):
            name += f" (right: {stretch})"
        lines.append(f"error begins {name}{place}{where}")
    elif found.units:
        lines.append(_healthy(found))
    comparison = found.shown.comparison if found.shown is not None else None
    if comparison is not None and (text := checksum_text(comparison)):
        lines.append(text)
    crossing = comparison.crossing if comparison is not None else None
    if crossing is not None:
        unseen = unseen_text(crossing)
        lines.append(pairing_text(crossing) + (f"; not seen: {unseen}" if unseen else ""))
    if found.losses is not None:
        lines.append(f"losses: {loss_answer(found.losses)}")
    if not found.units and found.graphs is not None:
        if found.graphs.is_identical:
            lines.append("the graphs are identical")
        elif found.suspects:
            first = found.suspects[0]
            lines.append(
                f"{plural(len(found.suspects), 'suspect')} in the graphs, no tensors to decide: "
                f"{first.why}"
            )
        else:
            lines.append("the graphs differ in nothing that could change numbers")
    elif found.suspects:
        first = found.suspects[0]
        side = "left" if found.left.dump is not None else "right"
        lines.append(
            f"{plural(len(found.suspects), 'suspect')} in the graph of the {side} run, no tensors "
            f"to decide: {first.why}"
        )
    return lines or ["nothing could be compared"]


def _healthy(found: RunComparison) -> str:
    if all(unit.equal for unit in found.units):
        return "all tensors are equal"
    changed = sum(unit.counts.get("attribute differs", 0) for unit in found.units)
    comparison = found.shown.comparison if found.shown is not None else None
    if comparison is not None and checksum_text(comparison):
        return "checksums do not tell whether an operator introduces error of its own"
    if found.shown is not None and found.shown.comparison is not None:
        untold = [item for item in found.shown.comparison.judged if item.untold]
        if untold:
            return (
                f"cannot be told: half precision or a fault before or within "
                f"{untold[0].pair.left.name}, which level L0 does not show: dump level mix"
            )
    lower = sum(unit.counts.get("lower precision, explained", 0) for unit in found.units)
    if changed:
        return (
            f"no operator introduces error, but {plural(changed, 'operator')} got other arguments"
        )
    if lower:
        return f"no operator introduces error: {lower:,} compute in lower precision, as explained"
    judged = sum(unit.pairs - unit.counts.get("not comparable", 0) for unit in found.units)
    if not judged:
        return "no tensor could be judged"
    return "no operator introduces error of its own"


def runs_document(found: RunComparison, case: Case | None, limit: int | None) -> Document:
    """The report for people."""
    lines = answer(found, case)
    document = Document([Heading(lines[0])])
    document.add(*(Note(line) for line in lines[1:]))
    if found.missing:
        document.add(Facts([("not compared", text) for text in found.missing]))
    if found.hyperparameters:
        document.add(_hyperparameters(found))
    if case is not None:
        document.add(Heading("The first operator that introduces error"), case_facts(case))
        neighbours = neighbours_table(case)
        if neighbours is not None:
            document.add(neighbours)
    _add_tensors(document, found, limit)
    if found.suspects:
        document.add(_suspects(found, limit))
    if not found.units and (found.suspects or found.is_suspicious):
        document.add(*_dump_settings(found))
    if found.losses is not None:
        document.add(Heading("Losses"), *losses_document(found.losses).blocks)
    if found.graphs is not None and not found.graphs.is_identical:
        graph = diff_document(DiffView(found.graphs, found.graphs.patterns, limit))
        document.add(Heading("Graphs"), *graph.blocks)
    return document


def _hyperparameters(found: RunComparison) -> Table:
    marks = {True: "same", False: "DIFFERS", None: "?"}
    rows: list[list[str | int | None]] = [
        [row.name, row.left, row.right, marks[row.same], shortened(row.where, 70)]
        for row in found.hyperparameters
    ]
    columns = tuple(map(text_column, ("hyperparameter", "left", "right", "", "seen in")))
    return Table("Hyperparameters", columns, rows)


def _add_tensors(document: Document, found: RunComparison, limit: int | None) -> None:
    shown = found.shown
    if shown is None:
        return
    title = f"Tensors, {shown.name}" if shown.name else "Tensors"
    if shown.comparison is None:
        document.add(Heading(title), Facts([("verdicts", verdicts_text(dict(shown.counts)))]))
        return
    comparison = shown.comparison
    document.add(Heading(title), Facts(facts(comparison)))
    origin = origins_note(comparison)
    if origin is not None:
        document.add(origin)
    others = noted(comparison)
    if others:
        document.add(judged_table("Also worth a look", others, limit))
    lone = lone_table(comparison)
    if lone is not None:
        document.add(lone)
    if len(found.units) > 1:
        rows: list[list[str | int | None]] = [
            [unit.name, unit.pairs, verdicts_text(dict(unit.counts)),
             unit.first.pair.left.name if unit.first else "-"]
            for unit in found.units
        ]  # fmt: skip
        columns = (text_column("unit"), number_column("pairs"), text_column("verdicts"),
                   text_column("first that introduces error"))  # fmt: skip
        document.add(Table("All steps and ranks", columns, rows))


def _suspects(found: RunComparison, limit: int | None) -> Table:
    shown = len(found.suspects) if limit == 0 else limit or 15
    rows: list[list[str | int | None]] = [
        [
            f"{item.error:.1g}",
            item.times,
            shortened(item.why, 100),
            node_place(item.node),
            place_text(item.node),
        ]
        for item in found.suspects[:shown]
    ]
    columns = (number_column("may bring"), number_column("times"), text_column("suspect"),
               text_column("node"), text_column("source"))  # fmt: skip
    left_out = max(0, len(found.suspects) - shown)
    return Table("Suspects (not culprits: only tensors decide)", columns, rows, left_out, "suspect")


def _dump_settings(found: RunComparison) -> list[Heading | Note]:
    """What both sides have to dump, to be compared once more."""
    steps = found.decisive_steps
    which = f"step {steps[0]}" if len(steps) == 1 else f"steps {steps[0]} and {steps[-1]}"
    return [
        Heading(f"To decide, dump {which} in MindSpore (MINDSPORE_DUMP_CONFIG)"),
        *(Note(line) for line in mindspore_dump_settings(found.suspects, steps).splitlines()),
        Heading("and in PyTorch, or in MindSpore's PyNative mode (config.json of msprobe)"),
        *(Note(line) for line in msprobe_settings(steps).splitlines()),
    ]
