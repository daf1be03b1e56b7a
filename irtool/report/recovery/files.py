"""How a recovery is handed over: the strategy file, and what becomes of checkpoints."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated

from irtool.ir.units import ranks_text
from irtool.planning.checkpoints.calls import conversion_lines
from irtool.planning.checkpoints.conversion import Conversion, RankSources
from irtool.planning.checkpoints.recovered import OLD_FILE
from irtool.planning.recovery.files import NEW_FILE
from irtool.report.answer import AnswerObject, doc
from irtool.report.ckpt import conversion_notes, conversion_text, ranks_table
from irtool.report.model import Block, Facts, Note
from irtool.report.recovery.view import RecoveryView


class RecoveryStrategies(AnswerObject, frozen=True, kw_only=True):
    """The strategy file that `--format strategy` writes."""

    keys: Annotated[str, doc("`operators` or `parameters`: which of MindSpore's files")]
    entries: Annotated[int, doc("strategies in it")]
    layouts: Annotated[int, doc("parameters of which it says how they lie")]
    notes: Annotated[list[str], doc("why this kind of file, and what it cannot say")]


class RecoveryCheckpoint(AnswerObject, frozen=True, kw_only=True):
    """What one new rank needs of old checkpoints."""

    rank: int
    sources: Annotated[
        list[int] | None,
        doc("old ranks that `rank_list_for_transform` names; null: MindSpore raises an error"),
    ]
    refused: Annotated[str | None, doc("that error")]
    needed: Annotated[list[int], doc("old ranks that are enough")]
    bytes_moved: Annotated[int | None, doc("that come from other ranks' checkpoints")]


class RecoveryCheckpoints(AnswerObject, frozen=True, kw_only=True):
    """How checkpoints of the run become those of the plan, as [ckpt](json-ckpt.md) tells it."""

    old: Annotated[str, doc("the strategy file of the run, or what this command calls it")]
    new: Annotated[str, doc("what this command calls the strategy file of the plan")]
    bytes_moved: Annotated[int | None, doc("of all ranks")]
    ranks: list[RecoveryCheckpoint]
    added: Annotated[list[str], doc("parameters that no old checkpoint has")]
    dropped: Annotated[list[str], doc("parameters that nobody needs any more")]
    misplaced: Annotated[
        list[str], doc("parameters that MindSpore's conversion cuts otherwise than training does")
    ]
    call: Annotated[list[str], doc("the lines of Python that call MindSpore's conversion")]


def strategies_answer(view: RecoveryView) -> RecoveryStrategies | None:
    """The strategy file for scripts.

    Args:
        view: the recovery.

    Returns:
        None where there is no file to go on with.
    """
    made = view.file
    if made is None:
        return None
    return RecoveryStrategies(
        keys=made.keys,
        entries=len(made.file.strategies),
        layouts=len(made.file.layouts),
        notes=list(made.notes),
    )


def checkpoints_answer(view: RecoveryView) -> RecoveryCheckpoints | None:
    """What becomes of checkpoints, for scripts.

    Args:
        view: the recovery.

    Returns:
        None where nothing changes, or nothing can be said: the notes say which.
    """
    conversion = view.conversion
    if conversion is None:
        return None
    return RecoveryCheckpoints(
        old=OLD_FILE if conversion.old is None else conversion.old.path,
        new=NEW_FILE,
        bytes_moved=conversion.moved().bytes,
        ranks=[_rank(one, conversion) for one in conversion.ranks],
        added=list(conversion.added),
        dropped=list(conversion.dropped),
        misplaced=list(conversion.misplaced),
        call=list(_lines(view, conversion)),
    )


def _rank(one: RankSources, conversion: Conversion) -> RecoveryCheckpoint:
    return RecoveryCheckpoint(
        rank=one.rank,
        sources=None if one.mindspore is None else list(one.mindspore),
        refused=one.refused or None,
        needed=list(one.needed),
        bytes_moved=conversion.moved([one]).bytes,
    )


def file_blocks(view: RecoveryView) -> Iterator[Block]:
    """For people: which strategy file to go on with, and what becomes of checkpoints.

    Args:
        view: the recovery.
    """
    made, conversion = view.file, view.conversion
    facts: list[tuple[str, str]] = []
    if made is not None:
        entries = f"{len(made.file.strategies):,} entries keyed by {made.keys}"
        facts.append(("strategy file", f"--format strategy writes it: {entries}"))
        facts += [("", note) for note in made.notes]
        facts.append(("job", "--format msjob writes it, with the strategy file"))
    if conversion is not None:
        facts.append(("checkpoints", conversion_text(conversion)))
    if facts:
        yield Facts(facts)
    if conversion is None:
        return
    yield ranks_table(conversion, view.limit)
    for text in (*_lost_notes(view, conversion), *conversion_notes(conversion)):
        yield Note(f"note: {text}")
    yield Note("\n".join(_lines(view, conversion)), verbatim=True)


def _lost_notes(view: RecoveryView, conversion: Conversion) -> Iterator[str]:
    """Checkpoints of lost ranks that are read, which nobody can copy from their devices."""
    lost = set(view.recovery.request.lost)
    asked = sorted(lost & {rank for one in conversion.ranks for rank in one.mindspore or ()})
    if not asked:
        return
    text = f"MindSpore's conversion reads checkpoints of lost ranks {ranks_text(asked)}: they must "
    text += "lie on storage that outlives them"
    if not view.recovery.lost:
        text += ", though others hold the same slices"
    yield text


def _lines(view: RecoveryView, conversion: Conversion) -> Iterator[str]:
    makers = {
        NEW_FILE: "this command with --format strategy writes it",
        OLD_FILE: f"irtool recover {view.path} --format strategy writes it",
    }
    yield from conversion_lines(conversion, makers)
