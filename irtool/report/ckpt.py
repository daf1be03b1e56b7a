"""``irtool ckpt``: its answer for scripts, and its report for people."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import prod
from typing import Annotated

from msgspec import field

from irtool.artefacts.cuts import Cuts, Refused, cuts_of
from irtool.artefacts.strategies.model import StrategyFile
from irtool.cluster.context.model import RunContext
from irtool.ir.dataclass import dataclass
from irtool.ir.units import bytes_text, plural, ranks_text
from irtool.planning.checkpoints.calls import conversion_lines
from irtool.planning.checkpoints.conversion import (
    Conversion,
    KnownParameter,
    Moved,
    ParameterSources,
    RankSources,
)
from irtool.planning.checkpoints.sources import Source
from irtool.report.answer import AnswerObject, doc
from irtool.report.model import (
    Amount,
    Answer,
    Cell,
    Element,
    Facts,
    Note,
    Report,
    Table,
    number_column,
    rows_shown,
    text_column,
)
from irtool.report.run_answer import RunAnswer, context_fields

WHOLE = "whole"
"""How a checkpoint is called that no devices share."""
_NAMES = 4
"""Parameters that a line names."""


@dataclass(frozen=True, slots=True)
class CkptView:
    """A conversion, and how much of it to show; ``notes``: what the reader should know."""

    conversion: Conversion
    limit: int | None = None
    notes: tuple[str, ...] = ()


# -- for scripts ---------------------------------------------------------------------------------


class SavedForm(AnswerObject, frozen=True, kw_only=True):
    """How a set of checkpoints is cut, and what says so."""

    path: Annotated[str | None, doc("the file, or folder of stage files; null: whole checkpoints")]
    form: Annotated[str, doc("`json`, `protobuf`, `predicted` (of a dump) or `whole`")]
    stages: int
    devices: Annotated[int, doc("checkpoints: one a rank")]


class SliceSource(AnswerObject, frozen=True, kw_only=True):
    """What one old rank gives of a parameter."""

    rank: Annotated[int, doc("of the old layout")]
    slice: Annotated[
        list[tuple[int, int]] | None,
        doc("begin and end in each dimension of the whole parameter; null: its shape is not known"),
    ]
    part: Annotated[
        list[tuple[str, str]], doc('the slice as fractions of each dimension: `["1/4", "1/2"]`')
    ]


class CkptParameter(AnswerObject, frozen=True, kw_only=True):
    """Where a rank gets a parameter from."""

    name: str
    sources: Annotated[list[SliceSource], doc("together they are what the rank holds")] = field(
        name="from"
    )
    unknown: Annotated[str | None, doc("why nobody can say")]


class CkptRank(AnswerObject, frozen=True, kw_only=True):
    """What one rank of the new layout needs."""

    rank: int
    sources: Annotated[
        list[int] | None,
        doc("old ranks that `rank_list_for_transform` names; null: MindSpore raises an error"),
    ]
    refused: Annotated[str | None, doc("the error that MindSpore raises")]
    needed: Annotated[list[int], doc("old ranks of `parameters`: enough, and often fewer")]
    elements_moved: Annotated[int | None, doc("elements that come from other ranks' checkpoints")]
    bytes_moved: Annotated[int | None, doc("bytes that come from other ranks' checkpoints")]
    parameters: list[CkptParameter]


class CkptAnswer(RunAnswer, frozen=True, kw_only=True, tag_field="schema", tag="irtool.ckpt/1"):
    """Which slices of old checkpoints each rank needs under a new layout."""

    old: SavedForm
    new: SavedForm
    elements_moved: Annotated[
        int | None,
        doc("elements that ranks get from others' checkpoints; null: a shape is not known"),
    ]
    bytes_moved: Annotated[
        int | None, doc("bytes that ranks get from others' checkpoints; null: a type is not known")
    ]
    added: Annotated[list[str], doc("parameters that no old checkpoint has")]
    dropped: Annotated[list[str], doc("parameters that nobody needs any more")]
    misplaced: Annotated[
        list[str], doc("parameters that MindSpore's conversion cuts otherwise than training does")
    ]
    convert: Annotated[list[str], doc("Python lines that call MindSpore's own conversion")]
    ranks: list[CkptRank]


def ckpt_answer(view: CkptView) -> CkptAnswer:
    """The answer of ``irtool ckpt`` for scripts.

    Args:
        view: the conversion.
    """
    conversion = view.conversion
    moved = conversion.moved()
    return CkptAnswer(
        old=_form(conversion.old),
        new=_form(conversion.new),
        elements_moved=moved.elements,
        bytes_moved=moved.bytes,
        added=list(conversion.added),
        dropped=list(conversion.dropped),
        misplaced=list(conversion.misplaced),
        convert=list(conversion_lines(conversion)),
        ranks=[_rank(rank, conversion) for rank in conversion.ranks],
        **context_fields(RunContext(None), view.notes),
    )


def _form(file: StrategyFile | None) -> SavedForm:
    if file is None:
        return SavedForm(path=None, form=WHOLE, stages=1, devices=1)
    return SavedForm(path=file.path, form=file.form, stages=file.stages, devices=file.devices)


def _rank(one: RankSources, conversion: Conversion) -> CkptRank:
    moved = conversion.moved([one])
    return CkptRank(
        rank=one.rank,
        sources=None if one.mindspore is None else list(one.mindspore),
        refused=one.refused or None,
        needed=list(one.needed),
        elements_moved=moved.elements,
        bytes_moved=moved.bytes,
        parameters=[_parameter(parameter, conversion) for parameter in one.parameters],
    )


def _parameter(one: ParameterSources, conversion: Conversion) -> CkptParameter:
    known = conversion.parameters.get(one.name)
    return CkptParameter(
        name=one.name,
        sources=[_source(source, known) for source in one.sources],
        unknown=one.unknown or None,
    )


def _source(one: Source, known: KnownParameter | None) -> SliceSource:
    return SliceSource(
        rank=one.rank,
        slice=None if known is None else known.elements_of(one.region),
        part=[(str(begin), str(end)) for begin, end in one.region],
    )


# -- for people ----------------------------------------------------------------------------------


def ckpt_report(view: CkptView) -> Report:
    """The answer, what each rank reads, how parameters change, and how MindSpore converts them.

    Args:
        view: the conversion, and how many rows of it text shows.
    """
    conversion = view.conversion
    elements: list[Element] = [Facts(list(_facts(conversion)))]
    tables = [ranks_table(conversion, view.limit), _parameters_table(view)]
    elements += [table for table in tables if table.rows]
    elements += [Note(f"note: {text}") for text in (*conversion_notes(conversion), *view.notes)]
    elements.append(Note("\n".join(conversion_lines(conversion)), verbatim=True))
    tone = "bad" if conversion.severities else "good"
    title = f"ckpt: {_path(conversion.old)} -> {_path(conversion.new)}"
    return Report(title, Answer(conversion_text(conversion), tone), elements)


def _path(file: StrategyFile | None) -> str:
    return WHOLE if file is None else file.path


def conversion_text(conversion: Conversion) -> str:
    """How many checkpoints become how many, and what moves.

    Args:
        conversion: of checkpoints from one layout to another.
    """
    old = plural(conversion.old_devices, "checkpoint")
    text = f"{old} become {conversion.new_devices}"
    read = [len(one.needed) for one in conversion.ranks if one.parameters]
    if read:
        low, high = min(read), max(read)
        count = f"{low}" if low == high else f"{low} to {high}"
        text += f": a rank reads {count} of them"
    moved = conversion.moved()
    if moved.elements == 0:
        return f"{text}, and nothing comes from another rank's"
    if moved.elements is None:
        return f"{text}; how much moves is not known"
    return f"{text}; {_amount_text(moved)} come from other ranks"


def _amount_text(moved: Moved) -> str:
    if moved.bytes is not None:
        return bytes_text(moved.bytes)
    return plural(moved.elements or 0, "element")


def _facts(conversion: Conversion) -> Iterator[tuple[str, str]]:
    for name, file in (("old", conversion.old), ("new", conversion.new)):
        if file is None:
            yield name, "whole: one checkpoint, which no devices share"
            continue
        parts = f", of {plural(len(file.parts), 'stage file')}" if len(file.parts) > 1 else ""
        kind = "predicted from the dump" if file.is_predicted else file.form
        stages = f"{plural(file.stages, 'stage')} of " if file.stages > 1 else ""
        yield name, f"{file.path}: {stages}{plural(file.stage_devices, 'device')} ({kind}{parts})"
    for name, items in (("added", conversion.added), ("dropped", conversion.dropped)):
        if items:
            yield name, _named(items)


def _named(items: Sequence[str]) -> str:
    more = len(items) - _NAMES
    return ", ".join(items[:_NAMES]) + (f" and {more:,} more" if more > 0 else "")


def conversion_notes(conversion: Conversion) -> Iterator[str]:
    """What the reader of a conversion should know.

    Args:
        conversion: of checkpoints from one layout to another.

    Yields:
        a sentence each: parameters that are lost or misplaced, ranks that MindSpore's conversion
        fails for, and what is not known.
    """
    if conversion.added:
        yield (
            f"{plural(len(conversion.added), 'parameter')} of the new layout are in no old "
            "checkpoint: MindSpore leaves them out of the new ones without an error"
        )
    if conversion.misplaced:
        yield (
            f"MindSpore's conversion cuts {_named(conversion.misplaced)} along the devices in "
            "another order than training does: convert them by the slices told here"
        )
    refused = dict.fromkeys(one.refused for one in conversion.ranks if one.refused)
    for reason in refused:
        ranks = [one.rank for one in conversion.ranks if one.refused == reason]
        yield f"MindSpore's conversion would fail for {ranks_text(ranks)}: {reason}"
    unknown = {
        parameter.name: parameter.unknown
        for one in conversion.ranks
        for parameter in one.parameters
    }
    for name, reason in unknown.items():
        if reason:
            yield f"{name}: not known: {reason}"
    moved = conversion.moved()
    if moved.elements is not None and moved.bytes is None:
        yield "bytes are not known: a strategy file says no types; --network BEGIN does"
    if moved.elements is None and not any(unknown.values()):
        yield "sizes are not known: a protobuf file says no shapes; --network BEGIN does"


def ranks_table(conversion: Conversion, limit: int | None) -> Table:
    """Which old checkpoints each rank reads.

    Args:
        conversion: of checkpoints from one layout to another.
        limit: rows that text shows: None the usual number, 0 all.
    """
    columns = [
        number_column("rank"),
        text_column("reads"),
        text_column("MindSpore asks for", 1),
        number_column("from others", "bytes"),
    ]
    rows: list[list[Cell]] = []
    for one in conversion.ranks:
        asked = one.refused or ranks_text(one.mindspore or ())
        rows.append([one.rank, ranks_text(one.needed), asked, _moved_cell(conversion.moved([one]))])
    most = rows_shown(limit)
    return Table("What each rank of the new layout reads", columns, rows, noun="rank", most=most)


def _moved_cell(moved: Moved) -> Cell:
    if moved.bytes is None and moved.elements is not None:
        return Amount(moved.elements, "number", plural(moved.elements, "element"))
    return moved.bytes


def _parameters_table(view: CkptView) -> Table:
    """The parameters whose cuts change, those of which most moves first."""
    conversion = view.conversion
    columns = [
        text_column("parameter"), text_column("shape", 1), text_column("parts before"),
        text_column("parts after"), number_column("from others", "share"),
    ]  # fmt: skip
    before, after = _cuts_by_name(conversion.old), _cuts_by_name(conversion.new)
    shares = conversion.moved_shares()
    rows: list[list[Cell]] = []
    for name, share in sorted(shares.items(), key=lambda pair: (-pair[1], pair[0])):
        known = conversion.parameters.get(name)
        shape = "" if known is None else " x ".join(map(str, known.shape))
        if share or before.get(name) != after.get(name):
            rows.append([name, shape, before.get(name, "whole"), after.get(name, "whole"), share])
    note = "from others: of what all ranks hold of it after the change"
    return Table(
        "Parameters with another layout", columns, rows,
        noun="parameter", most=rows_shown(view.limit), note=note,
    )  # fmt: skip


def _cuts_by_name(file: StrategyFile | None) -> dict[str, str]:
    """``2 x 1``: into how many parts each dimension is cut."""
    by_name: dict[str, str] = {}
    for layout in file.layouts.values() if file is not None else ():
        try:
            by_name.setdefault(layout.name, _parts_text(cuts_of(layout)))
        except Refused:
            continue
    return by_name


def _parts_text(cuts: Cuts) -> str:
    return " x ".join(str(prod(cut.size for cut in dimension)) for dimension in cuts) or "1"
