"""Walks a folder once and sorts what a run left there; of ``dump.json`` the beginning is read."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from dataclasses import field
from functools import lru_cache
from typing import Literal

from irtool.ir.dataclass import dataclass
from irtool.ir.group_names import MOST_RANKS
from irtool.ir.run import ArtefactKind
from irtool.syntax import file_facts, reading
from irtool.syntax.reading import note_input, note_input_folder
from irtool.syntax.run.context import CASE_FILE
from irtool.syntax.run.names import is_dump

MAX_ENTRIES = 2_000_000
"""Most names that one walk looks at."""

_MAX_DEPTH = 40
_SKIPPED = {"actor_set", "__pycache__", "node_modules", "dump_tensor_data", "kernel_meta"}
_RANK = re.compile(r"rank[_.\-]?(\d{1,7})")
_LOSS_SUFFIXES = (".json", ".jsonl", ".csv", ".tsv", ".txt", ".log", ".npy")
_LOG_NAME = re.compile(
    r"(?:(?:stdout|stderr)(?:\.log)?|.+\.log|.+\.log\.(?:INFO|WARNING|ERROR)\b.*?)(?:\.gz|\.xz)?"
)
_TENSOR_NAME = re.compile(r".+\.(?:input|output)\.\d+\..+")
_MSPROBE = {"dump.json", "construct.json", "debug.json"}
_ARTEFACTS: tuple[tuple[str, ArtefactKind], ...] = (
    (r"kernel_details\.csv", "kernels"),
    (r"op_statistic(?:_\d+)?\.csv", "kinds"),
    (r"step_trace_time\.csv", "steps"),
    (r"communication\.json", "communication"),
    (r"communication_matrix\.json", "links"),
    (r"profiler_metadata\.json", "communicators"),
    (r"trace_view\.json", "trace"),
    (r"cpu_op_execute_timestamp_\d+\.txt", "cpu launches"),
    (r"cpu_op_detail_info_\d+\.csv", "cpu totals"),
    (r"cpu_op_type_info_\d+\.csv", "cpu kinds"),
    (r"cpu_framework_\d+\.txt", "cpu shapes"),
    (r"cpu_ms_memory_record_\d+\.txt", "cpu memory"),
    (r"memory_record\.csv", "pool memory"),
    (r"operator_memory\.csv", "operator memory"),
    (r"memory_block\.csv", "memory blocks"),
    (r"task\.csv", "tasks"),
    (r"tracker_graph\.ir", "tracker graph"),
    (r"execute_order\.csv", "launch order"),
    (r"comm_execute_order\.csv", "collective order"),
    (r"aicore_intermediate_\d+_detail\.csv", "legacy kernels"),
    (r"aicore_intermediate_\d+_type\.csv", "legacy kinds"),
    (r"framework_raw_\d+\.csv", "legacy tasks"),
    (r"step_trace_raw_\d+_detail_time\.csv", "legacy steps"),
    (r"hccl_raw_\d+\.csv", "legacy communication"),
    (r"ascend_cluster_analyse_\w+-parallel_\d+_\d+_\d+\.csv", "legacy stages"),
)
"""What the profiler, the memory tracker and a dry run write, by the files' names."""
_ARTEFACT_NAMES = re.compile("|".join(pattern for pattern, _ in _ARTEFACTS))
_PROFILED_RANK = re.compile(r"profiler_info_(\d{1,7})\.json")
"""Beside a profile's tables: the only place that says whose it is."""
_SETTINGS = b'"common_dump_settings"'
"""What is asked of MindSpore's dump, in a file that many call ``dump.json``, too."""
_HEAD = 4096

FileKind = Literal[
    "dump", "case", "log", "loss", "order", "strategy", "tensors", "msprobe", "artefact", "rank"
]


@dataclass(frozen=True, slots=True)
class Found:
    """One thing of interest: ``folders`` are the names between the walk's root and it.

    For tensor and msprobe dumps ``path`` is their folder, and ``extra`` says what it holds.
    """

    path: str
    kind: FileKind
    folders: tuple[str, ...]
    size: int = 0
    extra: frozenset[str] = frozenset()

    @property
    def name(self) -> str:
        """The last part of the path."""
        return os.path.basename(self.path)

    @property
    def rank(self) -> int | None:
        """The rank that the innermost ``rank_N`` folder names."""
        return folder_rank(self.folders)


@dataclass(slots=True)
class Listing:
    """What a walk found, and the folders that it could not look into, with the reason.

    ``ranks`` are those that a folder is named after, whatever it holds.
    """

    found: list[Found] = field(default_factory=list[Found])
    ranks: set[int] = field(default_factory=set[int])
    closed: list[tuple[str, str]] = field(default_factory=list[tuple[str, str]])
    truncated: bool = False

    def of(self, kind: FileKind) -> Iterator[Found]:
        """What was found of one kind."""
        return (item for item in self.found if item.kind == kind)


@lru_cache(maxsize=4096)
def folder_rank(folders: tuple[str, ...]) -> int | None:
    """The rank that the innermost ``rank_N`` (``rank.N``, ``rankN``) of some folders names.

    Args:
        folders: names from the outermost to the innermost.

    Returns:
        None where none does.
    """
    for name in reversed(folders):
        if (match := _RANK.fullmatch(name)) and int(match[1]) < MOST_RANKS:
            return int(match[1])
    return None


def folder_rank_of(path: str) -> int | None:
    """The rank that the folders of a file name; None where none does.

    Args:
        path: of the file, relative or absolute.
    """
    return folder_rank(tuple(os.path.dirname(os.path.abspath(path)).split(os.sep)))


def natural(text: str) -> list[tuple[int, str]]:
    """Sort key that puts ``rank_2`` before ``rank_10``.

    Args:
        text: with numbers anywhere in it.
    """
    parts = re.split(r"(\d+)", text)
    return [(int(part), "") if index % 2 else (-1, part) for index, part in enumerate(parts)]


def walk(root: str) -> Listing:
    """List a folder and all folders below it, each real folder once whatever links lead to it.

    Args:
        root: the folder.

    Returns:
        What was found there by kind, what could not be listed, and whether the bound on entries cut
        it off.
    """
    listing = Listing()
    seen: set[tuple[int, int]] = set()
    links: list[Found] = []
    pending: list[tuple[str, tuple[str, ...]]] = [(root.rstrip(os.sep) or root, ())]
    budget = MAX_ENTRIES
    while pending:
        path, folders = pending.pop()
        if folders and (rank := folder_rank(folders[-1:])) is not None:
            listing.ranks.add(rank)
        entries = _entries(path, seen, listing)
        budget -= len(entries)
        if budget < 0:
            listing.truncated = True
            break
        below = _sort(path, folders, entries, listing, links)
        if len(folders) < _MAX_DEPTH:
            pending += reversed(below)
    _add_links(listing, links)
    for item in listing.found:
        (note_input_folder if item.kind in ("tensors", "msprobe") else note_input)(item.path)
    return listing


def _entries(path: str, seen: set[tuple[int, int]], listing: Listing) -> list[os.DirEntry[str]]:
    try:
        status = os.stat(path)
        if (status.st_dev, status.st_ino) in seen:
            return []
        seen.add((status.st_dev, status.st_ino))
        with os.scandir(path) as entries:
            listed = sorted(entries, key=lambda entry: entry.name)
        file_facts.note_entries(path, listed)
        return listed
    except OSError as error:
        file_facts.note_no_entries(path)
        listing.closed.append((path, (error.strerror or str(error)).lower()))
        return []


def _sort(
    path: str,
    folders: tuple[str, ...],
    entries: list[os.DirEntry[str]],
    listing: Listing,
    links: list[Found],
) -> list[tuple[str, tuple[str, ...]]]:
    """Sort the entries of one folder; what is returned are the folders below it."""
    below: list[tuple[str, tuple[str, ...]]] = []
    held: set[str] = set()
    for entry in entries:
        name = entry.name
        if _is_folder(entry):
            if name not in _SKIPPED and not name.startswith("."):
                below.append((entry.path, (*folders, name)))
        elif _ARTEFACT_NAMES.fullmatch(name):
            listing.found.append(Found(entry.path, "artefact", folders))
        elif _PROFILED_RANK.fullmatch(name):
            listing.found.append(Found(entry.path, "rank", folders))
        elif is_dump(name):
            item = Found(entry.path, "dump", folders, _size(entry))
            (links if entry.is_symlink() else listing.found).append(item)
        elif name in _MSPROBE or (name.startswith("statistic") and name.endswith(".csv")):
            if name != "dump.json" or not _is_settings(entry.path):
                held.add(name)
        elif _TENSOR_NAME.fullmatch(name):
            held.add("tensors")
        elif (kind := _kind(name, os.path.basename(path).lower())) is not None:
            listing.found.append(Found(entry.path, kind, folders))
    if held & _MSPROBE:
        listing.found.append(Found(path, "msprobe", folders, extra=frozenset(held)))
    elif held:
        listing.found.append(Found(path, "tensors", folders, extra=frozenset(held)))
    return below


def artefact_kind(name: str) -> ArtefactKind:
    """What a file with the name of an artefact holds.

    Args:
        name: of the file, without its folders.

    Raises:
        LookupError: no artefact has this name.
    """
    for pattern, kind in _ARTEFACTS:
        if re.fullmatch(pattern, name):
            return kind
    raise LookupError(name)


def profiled_rank(name: str) -> int | None:
    """The rank in ``profiler_info_<rank>.json``; None where the name is another.

    Args:
        name: of the file, without its folders.
    """
    match = _PROFILED_RANK.fullmatch(name)
    return int(match[1]) if match is not None and int(match[1]) < MOST_RANKS else None


def _kind(name: str, parent: str) -> FileKind | None:
    """Kind of a file that is no dump, by its name."""
    if name == CASE_FILE:
        return "case"
    lower = name.lower()
    if parent == "execution_order" and lower.endswith(".csv"):
        return "order"
    if "strategy" in lower and lower.endswith((".json", ".ckpt", ".txt")):
        return "strategy"
    if lower.startswith("dump_parallel_info_") and lower.endswith(".json"):
        return "strategy"
    if "tfevents" in lower or (
        lower.endswith(_LOSS_SUFFIXES) and ("loss" in lower or parent in ("loss", "losses"))
    ):
        return "loss"
    return "log" if _LOG_NAME.fullmatch(name) else None


def _is_settings(path: str) -> bool:
    """Whether a ``dump.json`` says what to dump, and is no dump of msprobe."""
    try:
        if not file_facts.is_file(path):
            return False
        with reading.opened(path) as stream:
            return _SETTINGS in stream.read(_HEAD)
    except OSError:
        return False


def _is_folder(entry: os.DirEntry[str]) -> bool:
    try:
        return entry.is_dir()
    except OSError:
        return False


def _size(entry: os.DirEntry[str]) -> int:
    try:
        size = entry.stat().st_size
    except OSError:
        return 0
    file_facts.note_size(entry.path, size)
    return size


def _add_links(listing: Listing, links: list[Found]) -> None:
    """Keep links to dumps that are not in the run themselves: ``latest.ir`` would count twice."""
    if not links:
        return
    real = {file_facts.real_path(item.path) for item in listing.of("dump")}
    for item in links:
        target = file_facts.real_path(item.path)
        if target not in real and file_facts.exists(target):
            real.add(target)
            listing.found.append(item)
