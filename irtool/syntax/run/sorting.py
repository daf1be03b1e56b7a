"""Assigns what a walk found to ranks."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from dataclasses import field

from irtool.ir.dataclass import dataclass
from irtool.ir.finding import Finding
from irtool.ir.run import ArtefactFile, LogFile, LogKind, MsprobeDump, PassFile, TensorDump
from irtool.syntax.run.compilations import Group, compilations
from irtool.syntax.run.context import Context, read_case
from irtool.syntax.run.folders import (
    Found,
    Listing,
    artefact_kind,
    folder_rank,
    natural,
    profiled_rank,
)


@dataclass(slots=True)
class RankPart:
    """What belongs to one rank; ``contexts`` are those of the ``groups``, in their order."""

    dumps: list[Found] = field(default_factory=list[Found])
    groups: list[Group] = field(default_factory=list[Group])
    contexts: list[Context | None] = field(default_factory=list["Context | None"])
    context: Context | None = None
    tensor_dumps: list[TensorDump] = field(default_factory=list[TensorDump])
    msprobe: list[MsprobeDump] = field(default_factory=list[MsprobeDump])
    execution_order: list[str] = field(default_factory=list[str])
    artefacts: list[ArtefactFile] = field(default_factory=list["ArtefactFile"])


@dataclass(slots=True)
class Sorted:
    """What a run folder holds, by the ranks that left it; logs and losses may be of all ranks."""

    ranks: dict[int, RankPart] = field(default_factory=dict[int, RankPart])
    logs: list[LogFile] = field(default_factory=list[LogFile])
    losses: list[str] = field(default_factory=list[str])
    strategy_files: list[str] = field(default_factory=list[str])
    problems: list[Finding] = field(default_factory=list[Finding])

    def rank(self, number: int) -> RankPart:
        """The part of a rank, made where it is not there yet."""
        return self.ranks.setdefault(number, RankPart())


@dataclass(frozen=True, slots=True)
class _Cases:
    """The ``case.json`` files of a run by folder, and what tells the rank where no folder does."""

    by_folder: dict[tuple[str, ...], dict[str, object]]
    default: int

    def context(self, folders: Sequence[str], rank: int | None) -> Context | None:
        """What the files on the way from the run's folder to a dump say, the inner ones last.

        A rank that a folder's name tells overrides ``global_rank``: one file may serve all ranks.
        """
        merged: dict[str, object] = {}
        for depth in range(len(folders) + 1):
            merged.update(self.by_folder.get(tuple(folders[:depth]), {}))
        if merged and rank is not None:
            merged["global_rank"] = rank
        return merged or None

    def rank(self, item: Found) -> int:
        """The rank of a thing: its folder's, else its case's, else the run's default."""
        if item.rank is not None:
            return item.rank
        context = self.context(item.folders, None) or {}
        rank = context.get("global_rank")
        return rank if isinstance(rank, int) and rank >= 0 else self.default


def sort_listing(root: str, listing: Listing) -> Sorted:
    """Assign everything found to ranks; dumps are divided into compilations.

    Args:
        root: the folder that was walked.
        listing: what is in it.
    """
    contents = Sorted()
    for path, reason in listing.closed:
        contents.problems.append(
            _problem("RUN001", path, f"cannot look into this folder: {reason}")
        )
    if listing.truncated:
        contents.problems.append(_problem("RUN002", root, "too many files: only a part was listed"))
    cases = _cases(root, listing, contents)
    for item in listing.found:
        _assign(item, cases, contents)
    for number, part in contents.ranks.items():
        part.groups, warnings = compilations(part.dumps, number)
        contents.problems += [_problem("RUN003", root, text) for text in warnings]
        folders = {item.path: item.folders for item in part.dumps}
        for group in part.groups:
            part.contexts.append(_group_context(group.files, folders, cases, number))
        there = [context for context in part.contexts if context is not None]
        part.context = there[0] if there else cases.context((), number)
    _add_artefacts(listing, cases, contents)
    contents.logs.sort(key=lambda log: natural(log.path))
    contents.losses.sort(key=natural)
    return contents


def _group_context(
    files: Sequence[PassFile],
    folders: dict[str, tuple[str, ...]],
    cases: _Cases,
    rank: int,
) -> Context | None:
    deepest = max((folders[file.path] for file in files), key=len)
    return cases.context(deepest, rank)


def _cases(root: str, listing: Listing, contents: Sorted) -> _Cases:
    by_folder: dict[tuple[str, ...], dict[str, object]] = {}
    for item in listing.of("case"):
        context, reason = read_case(item.path)
        if context is not None:
            by_folder[item.folders] = context
        elif reason:
            contents.problems.append(_problem("RUN004", item.path, f"cannot read: {reason}"))
    named = {item.rank for item in listing.found if item.rank is not None}
    own = folder_rank(tuple(os.path.abspath(root).split(os.sep)))
    default = next(iter(named)) if len(named) == 1 else own or 0
    return _Cases(by_folder, default)


def _assign(item: Found, cases: _Cases, contents: Sorted) -> None:
    match item.kind:
        case "dump":
            contents.rank(cases.rank(item)).dumps.append(item)
        case "tensors":
            rank = cases.rank(item)
            contents.rank(rank).tensor_dumps.append(_tensor_dump(item, rank))
        case "msprobe":
            rank = cases.rank(item)
            contents.rank(rank).msprobe.append(_msprobe(item, rank))
        case "order":
            contents.rank(cases.rank(item)).execution_order.append(item.path)
        case "log":
            log = _log(item)
            contents.logs.append(log)
            if log.rank is not None:
                contents.rank(log.rank)
        case "loss":
            contents.losses.append(item.path)
        case "strategy":
            contents.strategy_files.append(item.path)
        case "case" | "artefact" | "rank":
            pass


def _add_artefacts(listing: Listing, cases: _Cases, contents: Sorted) -> None:
    """Give artefacts to ranks: by their folders, or by what stands beside a profile."""
    profiled = {
        item.folders: rank
        for item in listing.of("rank")
        if (rank := profiled_rank(item.name)) is not None
    }
    for item in listing.of("artefact"):
        inner = (profiled.get(item.folders[:depth]) for depth in range(len(item.folders), -1, -1))
        rank = next((number for number in inner if number is not None), None)
        rank = cases.rank(item) if rank is None else rank
        file = ArtefactFile(item.path, artefact_kind(item.name), rank)
        contents.rank(rank).artefacts.append(file)


def _log(item: Found) -> LogFile:
    """Logs by mpirun (``rank.N/stdout``), msrun (``worker_N.log``, ``scheduler.log``), others."""
    name = item.name.lower()
    kind: LogKind = "log"
    rank = item.rank
    if name.startswith(("stdout", "stderr")):
        kind = "stdout" if name.startswith("stdout") else "stderr"
    elif match := re.match(r"worker_(\d{1,7})\b", name):
        kind, rank = "worker", int(match[1])
    elif name.startswith("scheduler"):
        kind, rank = "scheduler", None
    elif match := re.search(r"rank[_.\-]?(\d{1,7})\b", name):
        rank = int(match[1])
    return LogFile(item.path, kind, rank)


def _tensor_dump(item: Found, rank: int) -> TensorDump:
    """What the folder ``{net}/{graph}/{iteration}`` or ``{net}/{graph}/constants`` holds.

    Args:
        item: the folder, and the folders above it.
        rank: that wrote it.
    """
    net, graph, last = ("", "", "", *item.folders)[-3:]
    statistics = "statistic.csv" if "statistic.csv" in item.extra else None
    if statistics is None:
        statistics = next((name for name in sorted(item.extra) if name != "tensors"), None)
    return TensorDump(
        item.path,
        rank,
        net,
        int(graph) if graph.isdecimal() else None,
        int(last) if last.isdecimal() else None,
        os.path.join(item.path, statistics) if statistics else None,
        "tensors" in item.extra,
    )


def _msprobe(item: Found, rank: int) -> MsprobeDump:
    """``{graph|pynative}/step{S}/rank{R}|proc{PID}``, each part of which may be missing."""
    step = process = None
    part = ""
    # The run's folder may be the step's own.
    above = os.path.abspath(item.path).split(os.sep)[-3:]
    for name in item.folders or above:
        if match := re.fullmatch(r"step(\d{1,12})", name):
            step = int(match[1])
        elif match := re.fullmatch(r"proc(\d{1,12})", name):
            process = int(match[1])
        elif name in ("graph", "pynative"):
            part = name
    return MsprobeDump(item.path, rank, step, process, part)


def _problem(code: str, path: str, message: str) -> Finding:
    return Finding(code, "warning", message, path, 1)
