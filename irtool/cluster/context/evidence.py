"""The dumps of a run as evidence of its context: each is read once, when a key first needs it."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from dataclasses import field, replace
from functools import cached_property
from itertools import islice

from irtool.cluster.context.logged import logged
from irtool.cluster.context.model import Entry
from irtool.cluster.context.shown import TELLING, Pass, Shown
from irtool.ir.dataclass import dataclass
from irtool.ir.dump import Dump
from irtool.ir.run import LogFile
from irtool.syntax import file_facts
from irtool.syntax.run import Compilation, Run
from irtool.syntax.run.folders import folder_rank
from irtool.syntax.run.names import is_dump, parse_name
from irtool.syntax.source import DumpError

PASSES: Mapping[Pass, str] = {
    "begin": "step_parallel_begin",
    "end": "step_parallel_end",
    "validate": "validate",
}
"""The dumps that show something of the context, by the name of the pass in the file's name."""
MOST_RANKS = 64
"""Of how many other ranks dumps are looked into for how many devices there are."""


class Excerpts:
    """What excerpts of dumps show, each read once; another process reads them itself."""

    __slots__ = ("_shown",)

    def __init__(self) -> None:
        self._shown: dict[tuple[str, Pass, int], Shown | None] = {}

    def __reduce__(self) -> tuple[type[Excerpts], tuple[()]]:
        return Excerpts, ()

    def shown(self, path: str, kind: Pass, rank: int) -> Shown | None:
        """What one dump shows; None where it can't be read."""
        key = path, kind, rank
        if key not in self._shown:
            self._shown[key] = _shown(path, kind, rank, {})
        return self._shown[key]


@dataclass(frozen=True, eq=False)
class Evidence:
    """One compilation of one rank, with what stands beside it.

    Attributes:
        paths: its dumps by pass.
        rank: whose they are; None where no folder says it.
        dumps: those that were read already, by path: whole ones.
        parts: those that were read already, but of which counts what an excerpt would show: who
            reads them so is told the same as who reads excerpts.
        others: the dumps of other ranks' same compilation, by rank.
        ranks: all ranks that left a folder in the run; none where no run folder was given.
        taken_rank: the rank that the dumps of a run folder without folders of ranks count for.
        logs: of the run, of this rank and of others.
        excerpts: of other ranks' dumps; one for all evidence of a run, so that each is read once.
    """

    paths: Mapping[Pass, str] = field(default_factory=dict[Pass, str])
    rank: int | None = None
    dumps: Mapping[str, Dump] = field(default_factory=dict[str, Dump])
    parts: Mapping[str, Dump] = field(default_factory=dict[str, Dump])
    others: Mapping[int, Mapping[Pass, str]] = field(default_factory=dict[int, Mapping[Pass, str]])
    ranks: tuple[int, ...] = ()
    taken_rank: int | None = None
    logs: tuple[LogFile, ...] = ()
    excerpts: Excerpts = field(default_factory=Excerpts, repr=False)

    @cached_property
    def logged(self) -> Mapping[str, Entry]:
        """What logs say of the context, by key."""
        return logged(self.logs, self.rank)

    @cached_property
    def begin(self) -> Shown | None:
        """What the begin dump shows; of a file that nobody read yet, in an excerpt."""
        return self._read("begin")

    @cached_property
    def end(self) -> Shown | None:
        """What the dump after the parallel pass, ``step_parallel_end``, shows; None without one."""
        return self._of_same_network("end")

    @cached_property
    def validate(self) -> Shown | None:
        """What the dump of the whole step, ``validate``, shows; None without one."""
        return self._of_same_network("validate")

    @property
    def later(self) -> Iterator[Shown]:
        """What the later dumps show, the cheapest and most telling first."""
        is_read = self.paths.get("validate") in self.dumps
        kinds: tuple[Pass, ...] = ("validate", "end") if is_read else ("end", "validate")
        for kind in kinds:
            shown = self.validate if kind == "validate" else self.end
            if shown is not None:
                yield shown

    @property
    def sibling_dumps(self) -> Iterator[Shown]:
        """One later dump of each other rank, in order of ranks."""
        for rank, paths in islice(self.others.items(), MOST_RANKS):
            for kind in ("validate", "end"):
                if kind in paths:
                    shown = self._of_sibling(paths[kind], kind, rank)
                    if shown is not None:
                        yield shown
                    break

    def _of_sibling(self, path: str, kind: Pass, rank: int) -> Shown | None:
        if path in self.dumps:
            return _shown(path, kind, rank, self.dumps)
        return self.excerpts.shown(path, kind, rank)

    def _of_same_network(self, kind: Pass) -> Shown | None:
        """A later dump, unless most of its weights are none of the begin dump's.

        Then it is of another network. A stage has fewer of them, never others.
        """
        later, begin = self._read(kind), self.begin
        if later is None or begin is None or not later.weights or not begin.weights:
            return later
        same = later.weights.keys() & begin.weights.keys()
        return later if 2 * len(same) > len(later.weights) else None

    def _read(self, kind: Pass) -> Shown | None:
        path = self.paths.get(kind)
        if path is None:
            return None
        part = self.parts.get(path)
        if part is not None:
            return Shown(part, kind, self.rank)
        return _shown(path, kind, self.rank, self.dumps)


def _shown(path: str, kind: Pass, rank: int | None, dumps: Mapping[str, Dump]) -> Shown | None:
    known = dumps.get(path)
    if known is not None:
        return Shown(known, kind, rank, is_whole=True)
    from irtool.syntax.excerpt import excerpt  # it imports what parses; a kept model needs none

    try:
        return Shown(excerpt(path, TELLING), kind, rank)
    except DumpError:
        return None  # whoever needs the dump itself says what is wrong with it


# -- where dumps stand ---------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class RunEvidence:
    """What a run folder is evidence of, found once however many of its ranks are asked about.

    Attributes:
        run: the folder.
        graph: the number of the compilation, where one was asked for.
    """

    run: Run
    graph: int | None = None
    excerpts: Excerpts = field(default_factory=Excerpts, repr=False)

    def of(self, picked: Compilation, dumps: Mapping[str, Dump] | None = None) -> Evidence:
        """The evidence of one compilation of one rank.

        Args:
            picked: the compilation that is asked about.
            dumps: what was read already, by path.
        """
        evidence = Evidence(
            _paths(picked),
            None,
            dumps or {},
            others=_OtherRanks(self._paths, picked.rank),
            logs=self.run.logs,
            excerpts=self.excerpts,
        )
        if not _names_ranks(picked):
            return replace(evidence, taken_rank=picked.rank)
        return replace(evidence, rank=picked.rank, ranks=self._ranks)

    @cached_property
    def _paths(self) -> Mapping[int, Mapping[Pass, str]]:
        return {rank: _paths(one) for rank, one in self.run.across_ranks(self.graph).items()}

    @cached_property
    def _ranks(self) -> tuple[int, ...]:
        return tuple(rank for rank in self.run.ranks if self.run.rank(rank).compilations)


class _OtherRanks(Mapping[int, Mapping[Pass, str]]):
    """The dumps of all ranks but one, without a table of its own for each."""

    __slots__ = ("_all", "_without")

    def __init__(self, by_rank: Mapping[int, Mapping[Pass, str]], without: int) -> None:
        self._all = by_rank
        self._without = without

    def __getitem__(self, rank: int) -> Mapping[Pass, str]:
        if rank == self._without:
            raise KeyError(rank)
        return self._all[rank]

    def __iter__(self) -> Iterator[int]:
        return (rank for rank in self._all if rank != self._without)

    def __len__(self) -> int:
        return len(self._all) - (self._without in self._all)


def evidence_of(
    run: Run, picked: Compilation, dumps: Mapping[str, Dump] | None = None, graph: int | None = None
) -> Evidence:
    """The evidence of one compilation of a run folder: see :class:`RunEvidence`.

    Args:
        run: the run folder.
        picked: the compilation.
        dumps: those that were read already, by path.
        graph: number of the compilation that was asked for; None: the one that commands pick.
    """
    return RunEvidence(run, graph).of(picked, dumps)


def evidence_beside(
    path: str,
    rank: int | None = None,
    dumps: Mapping[str, Dump] | None = None,
    otherwise: Pass = "begin",
) -> Evidence:
    """The evidence of one file: itself, and the dumps of the same compilation beside it.

    Args:
        path: of a dump.
        rank: whose it is, if known; else as its folder says.
        dumps: what was read already, by path.
        otherwise: which dump it is where its name is none that MindSpore gives.
    """
    folders = os.path.dirname(os.path.abspath(path)).split(os.sep)
    own = pass_of(path, otherwise)
    named = parse_name(os.path.basename(path)).name in PASSES.values()
    paths: dict[Pass, str] = {own: path}
    for kind in PASSES:
        if named and kind != own:
            beside = sibling(path, kind)
            if beside is not None:
                paths[kind] = beside
    whose = rank if rank is not None else folder_rank(tuple(folders))
    return Evidence(paths, whose, dumps or {})


def sibling(path: str, kind: Pass) -> str | None:
    """The dump of another pass of the same compilation, in the same folder.

    Files count up while MindSpore compiles: later passes have higher numbers, and the next begin
    dump is of another compilation.

    Args:
        path: of a dump.
        kind: the other pass.

    Returns:
        Its path; None where the folder can't be listed, or nothing tells which one it is.
    """
    folder = os.path.dirname(path)
    own = parse_name(os.path.basename(path)).number
    numbers: dict[Pass, list[tuple[int, str]]] = {name: [] for name in PASSES}
    try:
        listed = file_facts.names_in(folder or os.curdir)
    except OSError:
        return None
    for file_name in listed:
        parsed = parse_name(file_name)
        for name, text in PASSES.items():
            if is_dump(file_name) and parsed.name == text:
                numbers[name].append(
                    (parsed.number if parsed.number is not None else -1, file_name)
                )
    candidates = numbers[kind]
    if own is None or not candidates or any(number < 0 for number, _ in candidates):
        return os.path.join(folder, candidates[0][1]) if len(candidates) == 1 else None
    borders = sorted(number for number, _ in numbers["begin"])
    first = max((number for number in borders if number <= own), default=-1)
    last = min((number for number in borders if number > own), default=1 << 60)
    same = [(number, file_name) for number, file_name in candidates if first <= number < last]
    return os.path.join(folder, max(same)[1]) if same else None


def pass_of(path: str, otherwise: Pass = "validate") -> Pass:
    """Which dump a file is by its name; ``otherwise`` where MindSpore gives no such name.

    Args:
        path: of the dump, of which the file name counts.
        otherwise: what it is where MindSpore gives no such name.
    """
    name = parse_name(os.path.basename(path)).name
    for kind, text in PASSES.items():
        if text == name:
            return kind
    return otherwise


def _paths(compilation: Compilation) -> dict[Pass, str]:
    paths: dict[Pass, str] = {}
    for kind, name in PASSES.items():
        file = compilation.file(name)
        if file is not None:
            paths[kind] = file.path
    return paths


def _names_ranks(compilation: Compilation) -> bool:
    """Whether a folder says the rank; else all dumps count as those of rank 0."""
    folders = os.path.dirname(os.path.abspath(compilation.main.path)).split(os.sep)
    return folder_rank(tuple(folders)) is not None
