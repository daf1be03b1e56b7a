"""Divides the dumps of one rank into compilations (train, eval, …)."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import replace
from math import inf

from irtool.ir.dataclass import dataclass
from irtool.ir.run import PassFile
from irtool.syntax.run.folders import Found, natural
from irtool.syntax.run.names import parse_base, phase, split_number, split_prefix

# Folders inside the folder of one compilation's dumps; they don't make it another one.
_INNER = re.compile(r"rank[_.\-]?\d+|om|ir|irs|graph|graphs|verbose_ir_files|bprop")


@dataclass(frozen=True, slots=True)
class Group:
    """Dumps of one compilation: where they stand (without ``rank_N``) and which they are."""

    folder: str
    files: tuple[PassFile, ...]


def group_folder(folders: Sequence[str]) -> str:
    """The folder that a dump's file number is unique in, as path below the run."""
    return "/".join(name for name in folders if not _INNER.fullmatch(name))


def compilations(listed: Iterable[Found], rank: int) -> tuple[list[Group], list[str]]:
    """Compilations of one rank in order of time, and what looks wrong with the dumps.

    The compilations of one process share one counter of file numbers, so a compilation ends
    where the sequence of stages begins anew.  Kernel graphs and backend passes belong to the
    compilation whose stages surround them.

    Args:
        listed: dumps of this rank, in any order.
        rank: that wrote them.
    """
    by_place: dict[tuple[str, bool, str], list[PassFile]] = {}
    companions: list[tuple[str, PassFile]] = []
    for item in listed:
        folder, file = group_folder(item.folders), _pass_file(item, rank)
        if file.number is None and file.kind in ("kernel", "failure"):
            companions.append((folder, file))
        else:
            # Dumps beside rank_0/ and in it come from two counters.
            place = (folder, item.rank is None, _prefix(file))
            by_place.setdefault(place, []).append(file)
    groups: list[Group] = []
    warnings: list[str] = []
    for place in sorted(by_place, key=lambda place: (natural(place[0]), place[1:])):
        folder, files = place[0], sorted(by_place[place], key=_time)
        if (repeated := _repeated(files)) is not None:
            warnings.append(
                f"dumps of several processes are mixed in {folder or 'one folder'}: "
                f"file number {repeated} occurs twice"
            )
        groups += [Group(folder, tuple(part)) for part in _divided(files)]
    for folder, file in sorted(companions, key=lambda pair: natural(pair[1].path)):
        _attach(groups, folder, file)
    return _numbered(groups), warnings


def _prefix(file: PassFile) -> str:
    """What somebody wrote before the usual name; files whose names say nothing stand alone."""
    if file.kind == "other" and file.number is None:
        return file.base
    return split_prefix(file.base)[0]


def _pass_file(item: Found, rank: int) -> PassFile:
    number, base = split_number(item.name)
    stage, name, kind = parse_base(base)
    return PassFile(item.path, name, number, 0, rank, stage, kind, base, item.size)


def _anchor(file: PassFile) -> int | None:
    return phase(file.name, file.kind)


def _time(file: PassFile) -> tuple[float, float, list[tuple[int, str]]]:
    """In order of the file number; without one, in the order in which passes run."""
    number = inf if file.number is None else file.number
    place = _anchor(file)
    if place is None:
        place = inf
    return number, place, natural(file.path) if number == inf else []


def _repeated(files: Sequence[PassFile]) -> int | None:
    """A file number that two different dumps bear: the counter of a process never repeats."""
    counts = Counter(file.number for file in files if file.number is not None)
    return next((number for number, count in counts.items() if count > 1), None)


def _divided(files: Sequence[PassFile]) -> list[list[PassFile]]:
    parts: list[list[PassFile]] = []
    latest = inf
    names: set[str] = set()
    for file in files:
        place = _anchor(file)
        if place is None and file.kind == "stage":
            # A stage that no version known here has: it can only tell by coming twice.
            restarts = file.name in names
        else:
            restarts = place is not None and place <= latest
        if not parts or (restarts and names):
            parts.append([])
            names = set()
            latest = -1
        parts[-1].append(file)
        if file.kind in ("stage", "parallel"):
            names.add(file.name)
            latest = latest if place is None else place
    return parts


def _attach(groups: list[Group], folder: str, file: PassFile) -> None:
    """Give a failure, or a graph of the tensor dump, to the compilation that it belongs to.

    Both may stand in folders of their own; with dumps in several folders nothing tells whose.
    """
    main = {group.folder for group in groups}
    place = folder if folder in main else next(iter(main)) if len(main) == 1 else None
    indices = [index for index, group in enumerate(groups) if group.folder == place]
    if not indices:
        groups.append(Group(folder, (file,)))
        return
    chosen = indices[-1] if file.kind == "failure" else _with_graph(groups, indices, file)
    groups[chosen] = Group(groups[chosen].folder, (*groups[chosen].files, file))


def _with_graph(groups: Sequence[Group], indices: Sequence[int], file: PassFile) -> int:
    """The compilation that built the kernel graph with this file's graph number, else the first."""
    wanted = re.search(r"\d+$", file.base)
    for index in indices:
        for other in groups[index].files:
            built = re.search(r"graph_build_(\d+)$", other.base)
            if wanted and built and wanted[0] == built[1]:
                return index
    return indices[0]


def _numbered(groups: Sequence[Group]) -> list[Group]:
    order = 0
    numbered: list[Group] = []
    for group in groups:
        files = tuple(replace(file, order=order + i) for i, file in enumerate(group.files))
        order += len(files)
        numbered.append(Group(group.folder, files))
    return numbered
