"""What ``irtool check --strategy`` tells: which keys of a file take effect, and what changes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Annotated

from irtool.artefacts.strategies.model import SavedLayout
from irtool.operators.call import Strategy
from irtool.planning.files.saved_strategies import (
    Effect,
    Entry,
    FileChanges,
    LayoutChange,
    SavedCheck,
    StrategyChange,
)
from irtool.report.answer import AnswerObject, doc
from irtool.report.model import Block, Cell, Facts, Note, Table, rows_shown, text_column


class SavedEntry(AnswerObject, frozen=True, kw_only=True):
    """A key of a strategy file."""

    key: str
    strategy: Strategy
    effect: Annotated[
        Effect,
        doc(
            "`used`; `same`: nothing changes; `own strategy goes first`: the network gives the "
            "operator one; `other stage`: of an operator in another pipeline stage; `names "
            "nothing`: no operator is called so; `unknown`"
        ),
    ]
    nodes: Annotated[list[str], doc("operators that it names")]
    before: Annotated[Strategy | None, doc("their strategy without the file")]
    why: Annotated[str | None, doc("of an unknown effect")]


class SavedParameterLayout(AnswerObject, frozen=True, kw_only=True):
    """How a parameter lies, as strategy files say it."""

    dev_matrix: list[int]
    tensor_map: list[int | list[int]]
    tensor_shape: Annotated[list[int] | None, doc("null: protobuf says none")]
    opt_weight_shard_size: int
    opt_weight_shard_step: int


class ChangedLayout(AnswerObject, frozen=True, kw_only=True):
    """A parameter with another layout."""

    name: str
    file: Annotated[SavedParameterLayout | None, doc("as the file says; null: it doesn't")]
    network: Annotated[
        SavedParameterLayout | None,
        doc("as the network makes it; with `before`: as that file says"),
    ]


class ChangedFile(AnswerObject, frozen=True, kw_only=True):
    """What a strategy file says otherwise than another one."""

    path: Annotated[str, doc("the other one")]
    strategies: Sequence[StrategyChange]
    layouts: list[ChangedLayout]


class SavedFile(AnswerObject, frozen=True, kw_only=True):
    """A strategy file, held to the network."""

    path: str
    form: Annotated[str, doc("`json` or `protobuf`")]
    keys: Annotated[str, doc("`parameters` or `operators`: what its strategies are keyed by")]
    passed_over: Annotated[
        bool,
        doc(
            "keyed by operators, which MindSpore reads in `auto_parallel` by "
            "`sharding_propagation`, while the context says `semi_auto_parallel`: what is said "
            "holds for the other mode"
        ),
    ]
    entries: list[SavedEntry]
    missing: Annotated[list[str], doc("operators without an entry, where each needs one")]
    layouts: Annotated[
        list[ChangedLayout], doc("parameters that it gives another layout than this network")
    ]
    before: Annotated[ChangedFile | None, doc("with `--strategy-before`")]


def saved_answer(saved: SavedCheck, before: FileChanges | None) -> SavedFile:
    """What a strategy file does to the network, for scripts.

    Args:
        saved: the network checked with the file.
        before: the file held against that of ``--strategy-before``; None where none was given.
    """
    return SavedFile(
        path=saved.file.path,
        form=saved.file.form,
        keys=saved.file.keys,
        passed_over=saved.is_passed_over,
        entries=[_entry(entry) for entry in saved.entries],
        missing=[node.id for node in saved.missing],
        layouts=[_changed(layout) for layout in saved.layouts],
        before=None
        if before is None
        else ChangedFile(
            path=before.before.path,
            strategies=before.strategies,
            layouts=[_changed(layout) for layout in before.layouts],
        ),
    )


def _entry(entry: Entry) -> SavedEntry:
    return SavedEntry(
        key=entry.key,
        strategy=entry.strategy,
        effect=entry.effect,
        nodes=[node.id for node in entry.nodes],
        before=entry.before,
        why=entry.why or None,
    )


def _changed(change: LayoutChange) -> ChangedLayout:
    return ChangedLayout(
        name=change.name, file=_layout(change.saved), network=_layout(change.other)
    )


def _layout(layout: SavedLayout | None) -> SavedParameterLayout | None:
    if layout is None:
        return None
    return SavedParameterLayout(
        dev_matrix=list(layout.device_matrix),
        tensor_map=[
            entry if isinstance(entry, int) else list(entry) for entry in layout.tensor_map
        ],
        tensor_shape=None if layout.shape is None else list(layout.shape),
        opt_weight_shard_size=layout.shard_size,
        opt_weight_shard_step=layout.shard_step,
    )


# -- for people ----------------------------------------------------------------------------------


def saved_blocks(
    saved: SavedCheck, before: FileChanges | None, limit: int | None
) -> Iterator[Block]:
    """What the file says and changes, and what it says otherwise than another one.

    Args:
        saved: the network checked with the file.
        before: the file held against another one; None where none was given.
        limit: rows that text shows: None the usual number, 0 all.
    """
    file = saved.file
    used, same = saved.of("used"), saved.of("same")
    counts = [
        f"{len(file.strategies)} strategies keyed by {file.keys}",
        f"{len(used)} change an operator",
        f"{len(same)} say what the network says",
    ]
    counts += [
        f"{len(entries)} {text}"
        for text, entries in (
            ("have no effect", saved.of("own strategy goes first", "names nothing")),
            ("of other pipeline stages", saved.of("other stage")),
            ("not known", saved.of("unknown")),
        )
        if entries
    ]
    yield Facts([("file", f"{file.path} ({file.form})"), ("says", ", ".join(counts))])
    if saved.is_passed_over:
        yield Note(
            "note: in semi_auto_parallel MindSpore passes over a file keyed by operators: it is "
            "for auto_parallel with sharding_propagation, as which it was checked"
        )
    rows: list[list[Cell]] = [
        [entry.key, _operators_text(entry), _rows_text(entry.before), _rows_text(entry.strategy)]
        for entry in used
    ]
    yield from _table(
        "What the file changes", ["key", "operator", "without it", "with it"], rows, limit
    )
    if saved.layouts:
        yield from _table(
            "Parameters that the file gives another layout than this network",
            ["parameter", "file", "network"],
            _layout_rows(saved.layouts),
            limit,
        )
        yield Note(
            "note: checkpoints saved with this file do not fit this network: irtool ckpt says what "
            "moves"
        )
    if before is not None:
        yield from _before_blocks(saved, before, limit)


def _before_blocks(saved: SavedCheck, before: FileChanges, limit: int | None) -> Iterator[Block]:
    other = before.before.path
    if not before.strategies and not before.layouts:
        yield Note(f"{saved.file.path} says what {other} says")
        return
    rows: list[list[Cell]] = [
        [strategy.key, _rows_text(strategy.before), _rows_text(strategy.after)]
        for strategy in before.strategies
    ]
    yield from _table(
        f"Strategies that differ from {other}", ["key", "before", "after"], rows, limit
    )
    yield from _table(
        f"Layouts that differ from {other}",
        ["parameter", "after", "before"],
        _layout_rows(before.layouts),
        limit,
    )


def _table(
    title: str, columns: Sequence[str], rows: Sequence[Sequence[Cell]], limit: int | None
) -> Iterator[Table]:
    if rows:
        yield Table(title, [text_column(name) for name in columns], rows, most=rows_shown(limit))


def _layout_rows(changes: Sequence[LayoutChange]) -> list[list[Cell]]:
    return [
        [change.name, layout_text(change.saved), layout_text(change.other)] for change in changes
    ]


def layout_text(layout: SavedLayout | None) -> str:
    """``(4, 2) [0, -1]``, and what optimizer parallel cuts."""
    if layout is None:
        return "-"
    entries = [entry if isinstance(entry, int) else list(entry) for entry in layout.tensor_map]
    text = f"{tuple(layout.device_matrix)} {entries}"
    if layout.shard_size:
        text += f", optimizer parallel {layout.shard_size} by {layout.shard_step}"
    return text


def _operators_text(entry: Entry) -> str:
    first = entry.nodes[0]
    more = f" and {len(entry.nodes) - 1} more" if len(entry.nodes) > 1 else ""
    return f"{first.op} in line {first.line}{more}"


def _rows_text(rows: Strategy | None) -> str:
    return "-" if rows is None else str(tuple(map(tuple, rows)))
