"""A run folder: what a training run leaves, found once for all commands (:func:`load_run`)."""

from __future__ import annotations

import os
import re
from collections import OrderedDict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import field, replace
from functools import cached_property
from typing import TYPE_CHECKING

from irtool.ir.dataclass import dataclass
from irtool.ir.dump import Dump
from irtool.ir.finding import Finding
from irtool.ir.run import (
    ArtefactFile,
    ArtefactKind,
    LogFile,
    MsprobeDump,
    PassFile,
    RankClass,
    TensorDump,
)
from irtool.ir.units import plural
from irtool.syntax import file_facts
from irtool.syntax.near_path import path_hint
from irtool.syntax.run.classes import Fingerprints
from irtool.syntax.run.context import Context
from irtool.syntax.run.folders import natural, walk
from irtool.syntax.run.sorting import Sorted, sort_listing
from irtool.syntax.source import DumpError, PathLike, read_content

if TYPE_CHECKING:
    from irtool.ir.whole import Whole

_MOST_DUMPS = 64
_MOST_BYTES = 256 << 20
_TRAINING = re.compile(
    rb"^training: 1|Gradients/|forward_unique_id|instance name: grad", re.MULTILINE
)
_TELLING = ("validate", "optimize", "step_parallel_end", "step_parallel_begin")


@dataclass(slots=True)
class _Shelf:
    """The dumps of one run that were read, the least used ones given up beyond a bound."""

    dumps: OrderedDict[str, Dump] = field(default_factory=OrderedDict[str, Dump])
    training: dict[str, bool] = field(default_factory=dict[str, bool])
    size: int = 0

    def dump(self, path: str) -> Dump:
        dump = self.dumps.get(path)
        if dump is not None:
            self.dumps.move_to_end(path)
            return dump
        # Many a run folder is looked into for other things than dumps: no parser for these.
        from irtool.syntax.load import load

        dump = load(path)
        self.dumps[path] = dump
        self.size += dump.size
        while len(self.dumps) > 1 and (len(self.dumps) > _MOST_DUMPS or self.size > _MOST_BYTES):
            _, old = self.dumps.popitem(last=False)
            self.size -= old.size
        return dump

    def trains(self, file: PassFile) -> bool:
        """Whether a dump is of a network in training, by its text alone."""
        if file.path not in self.training:
            try:
                is_training = _TRAINING.search(read_content(file.path).data) is not None
            except DumpError:
                is_training = False
            self.training[file.path] = is_training
        return self.training[file.path]


@dataclass(frozen=True, eq=False, slots=True)
class Compilation:
    """One compilation of one rank: the dumps of its passes in order of time.

    ``index`` counts the compilations of the rank from 0, ``folder`` says where below the run its
    dumps stand, ``context`` is the parallel context, None where no ``case.json`` tells it.
    ``chosen`` says why this one was picked, where it was picked out of several.
    """

    index: int
    rank: int
    passes: tuple[PassFile, ...]
    folder: str = ""
    context: Context | None = None
    chosen: str = ""
    shelf: _Shelf = field(default_factory=_Shelf, repr=False)

    def file(self, name: str) -> PassFile | None:
        """The dump taken after an action or pass, by its name or its file name without number.

        A stage comes before a pass of the same name, a later one before an earlier.
        """
        files = [file for file in self.passes if name in (file.name, file.base)]
        stages = [file for file in files if file.kind in ("stage", "parallel")]
        return next(iter(reversed(stages or files)), None)

    def dump(self, name: str) -> Dump | None:
        """What :meth:`file` names, read; None where there is no such dump.

        Raises:
            DumpError: the file cannot be read.
        """
        file = self.file(name)
        return None if file is None else self.read(file)

    def read(self, file: PassFile) -> Dump:
        """Read one of the passes; a run keeps the dumps read last."""
        return self.shelf.dump(file.path)

    @property
    def begin(self) -> Dump | None:
        """``step_parallel_begin``: strategies are chosen, nothing is sliced yet."""
        return self.dump("step_parallel_begin")

    @property
    def auto_begin(self) -> Dump | None:
        """``step_auto_parallel_begin``: before a search for strategies."""
        return self.dump("step_auto_parallel_begin")

    @property
    def end(self) -> Dump | None:
        """``step_parallel_end``: sliced, with collectives, forward only."""
        return self.dump("step_parallel_end")

    @property
    def validate(self) -> Dump | None:
        """``validate``: the whole graph of this rank, with backward pass and optimizer."""
        return self.dump("validate")

    @property
    def failure(self) -> Dump | None:
        """``analyze_fail.ir``: where the compilation failed."""
        return self.dump("analyze_fail")

    @property
    def kernel_graphs(self) -> tuple[PassFile, ...]:
        """What the backend built: ``graph_build_*``, ``trace_code_graph_*``."""
        return tuple(file for file in self.passes if file.kind == "kernel")

    @property
    def main(self) -> PassFile:
        """The dump that tells most of the network: validate, else the nearest to it there is."""
        for name in _TELLING:
            if (file := self.file(name)) is not None:
                return file
        stages = [file for file in self.passes if file.kind == "stage"]
        return stages[-1] if stages else max(self.passes, key=lambda file: file.size)

    @property
    def is_training(self) -> bool:
        """Whether :attr:`main` has a backward pass, or says that it is meant to get one."""
        return self.shelf.trains(self.main)


@dataclass(frozen=True, eq=False, slots=True)
class RankRun:
    """What a run left for one rank."""

    rank: int
    compilations: tuple[Compilation, ...] = ()
    context: Context | None = None
    logs: tuple[LogFile, ...] = ()
    tensor_dumps: tuple[TensorDump, ...] = ()
    msprobe: tuple[MsprobeDump, ...] = ()
    execution_order: tuple[str, ...] = ()
    artefacts: tuple[ArtefactFile, ...] = ()

    def artefact(self, kind: ArtefactKind) -> str | None:
        """The file of a kind; of several (profiles of other runs) the one named last."""
        paths = [artefact.path for artefact in self.artefacts if artefact.kind == kind]
        return max(paths, key=natural, default=None)


@dataclass(frozen=True, eq=False)
class Run:
    """A run folder.  Files were listed; each is read when it is first asked for.

    ``losses`` are files that hold loss curves by their names (the ``logs`` may hold some too),
    ``strategy_files`` what MindSpore saved or loaded of strategies and groups, ``problems`` what
    could not be looked into or looks wrong, ``empty_ranks`` those whose folder holds nothing.
    """

    path: str
    by_rank: Mapping[int, RankRun]
    logs: tuple[LogFile, ...] = ()
    losses: tuple[str, ...] = ()
    strategy_files: tuple[str, ...] = ()
    problems: tuple[Finding, ...] = ()
    empty_ranks: tuple[int, ...] = ()

    def __repr__(self) -> str:
        return f"<Run {self.path}: {plural(len(self.ranks), 'rank')}>"

    @property
    def ranks(self) -> tuple[int, ...]:
        """Ranks of which there is anything, in order."""
        return tuple(self.by_rank)

    def rank(self, number: int) -> RankRun:
        """What there is of one rank.

        Raises:
            LookupError: there is nothing of it.
        """
        if number not in self.by_rank:
            there = ", ".join(map(str, self.ranks[:20])) or "none"
            raise LookupError(f"{self.path}: nothing of rank {number} here (ranks: {there})")
        return self.by_rank[number]

    @property
    def compilations(self) -> tuple[Compilation, ...]:
        """All compilations of all ranks."""
        return tuple(one for rank in self.by_rank.values() for one in rank.compilations)

    @property
    def context(self) -> Context | None:
        """The parallel context of the lowest rank that has one."""
        return next((one.context for one in self.by_rank.values() if one.context), None)

    @property
    def tensor_dumps(self) -> tuple[TensorDump, ...]:
        """Tensor dumps of all ranks."""
        return tuple(dump for rank in self.by_rank.values() for dump in rank.tensor_dumps)

    @property
    def msprobe(self) -> tuple[MsprobeDump, ...]:
        """Dumps by msprobe of all ranks."""
        return tuple(dump for rank in self.by_rank.values() for dump in rank.msprobe)

    def compilation(self, graph: int | None = None, rank: int | None = None) -> Compilation:
        """Compilation ``graph`` of a rank (the lowest with dumps), else the largest training one.

        Where it was picked out of several, its ``chosen`` says which and why.

        Raises:
            LookupError: there is none.
        """
        candidates = self._compilations_of(rank)
        if graph is not None:
            if not 0 <= graph < len(candidates):
                raise LookupError(
                    f"{self.path}: no compilation {graph} "
                    f"(rank {candidates[0].rank} has {len(candidates)})"
                )
            return candidates[graph]
        return candidates[0] if len(candidates) == 1 else _largest(candidates)

    def _compilations_of(self, rank: int | None) -> tuple[Compilation, ...]:
        if rank is not None:
            candidates = self.rank(rank).compilations
        else:
            candidates = next((r.compilations for r in self.by_rank.values() if r.compilations), ())
        if not candidates:
            of = "" if rank is None else f" of rank {rank}"
            raise LookupError(f"{self.path}: no dumps{of}")
        return candidates

    def across_ranks(self, graph: int | None = None) -> dict[int, Compilation]:
        """By rank the compilation that answers to the one :meth:`compilation` picks.

        Args:
            graph: as of :meth:`compilation`; None: the largest one.

        Returns:
            Ranks without such a compilation are left out.
        """
        if graph not in self._across:
            self._across[graph] = self._found_across(graph)
        return dict(self._across[graph])

    @cached_property
    def _across(self) -> dict[int | None, dict[int, Compilation]]:
        return {}

    def _found_across(self, graph: int | None) -> dict[int, Compilation]:
        picked = self.compilation(graph)
        own = self.by_rank[picked.rank].compilations
        folders = {compilation.folder for compilation in own}
        by_rank: dict[int, Compilation] = {}
        for number, rank in self.by_rank.items():
            there = rank.compilations
            if len(folders) > 1 and not folders.isdisjoint(
                compilation.folder for compilation in there
            ):
                # Folders mean the same on both ranks: train and eval, or several runs.
                alike = [compilation for compilation in own if compilation.folder == picked.folder]
                there = tuple(
                    compilation for compilation in there if compilation.folder == picked.folder
                )
                place = [compilation.index for compilation in alike].index(picked.index)
            else:
                alike, place = own, picked.index
            if len(there) == len(alike):
                by_rank[number] = there[place]
            elif there and graph is None:
                by_rank[number] = there[0] if len(there) == 1 else _largest(there)
        return by_rank

    def whole(self, graph: int | None = None) -> Whole:
        """The graph of all pipeline stages: one rank's validate dump a stage, joined.

        The lowest rank of each stage is taken, since these send to each other.  Where no context
        tells the stages, one rank of each class of equal graphs is taken.

        Raises:
            LookupError: there is no validate dump.
        """
        from irtool.ir.whole.inlining import join

        dumps: dict[int, Dump] = {}
        for compilation in self._one_a_stage(graph):
            dump = compilation.validate
            if dump is not None:
                dumps[compilation.rank] = dump
        if not dumps:
            raise LookupError(f"{self.path}: no validate dump to join")
        return join(dumps)

    def _one_a_stage(self, graph: int | None) -> list[Compilation]:
        compilations = self.across_ranks(graph)
        context = self.context or {}
        devices, stages = context.get("device_num"), context.get("pipeline_stages")
        if isinstance(devices, int) and isinstance(stages, int) and 0 < stages <= devices:
            lowest: dict[int, Compilation] = {}
            for rank in sorted(compilations):
                lowest.setdefault(rank * stages // devices, compilations[rank])
            return list(lowest.values())
        return [compilations[item.representative] for item in self.classes(graph) if item.file]

    def classes(self, graph: int | None = None) -> tuple[RankClass, ...]:
        """Ranks with equal graphs, folded.

        Compared is the text of each rank's :attr:`Compilation.main`, as
        :mod:`irtool.syntax.run.classes` says; nothing is parsed, and a line that another rank has
        too costs next to nothing.
        """
        if graph not in self._classes:
            self._classes[graph] = _classes(self.across_ranks(graph))
        return self._classes[graph]

    @cached_property
    def _classes(self) -> dict[int | None, tuple[RankClass, ...]]:
        return {}


def _largest(candidates: Sequence[Compilation]) -> Compilation:
    """The largest compilation of a network in training, saying how it was chosen."""
    by_size = sorted(candidates, key=lambda one: (one.main.name != "validate", -one.main.size))
    training = next((one for one in by_size if one.is_training), None)
    chosen = training or by_size[0]
    what = "the largest one in training" if training else "the largest one (none is in training)"
    place = chosen.folder, os.path.basename(chosen.main.path)
    reason = (
        f"compilation {chosen.index} of {len(candidates)} of rank {chosen.rank}: {what} "
        f"({'/'.join(filter(None, place))}, {chosen.main.size:,} bytes); "
        "--graph picks another"
    )
    return replace(chosen, chosen=reason)


def _classes(compilations: Mapping[int, Compilation]) -> tuple[RankClass, ...]:
    fingerprints = Fingerprints()
    ranks: dict[str, list[int]] = {}
    files: dict[str, PassFile | None] = {}
    for rank in sorted(compilations):
        file: PassFile | None = compilations[rank].main
        try:
            text = read_content(file.path).data.decode("utf-8", "surrogateescape")
            key = f"{file.name} {fingerprints.of(text, rank)}"
        except DumpError:
            # Of what cannot be read nothing is known, so it equals nothing.
            file, key = None, f"unread {rank}"
        ranks.setdefault(key, []).append(rank)
        files.setdefault(key, file)
    return tuple(
        RankClass(tuple(ranks[key]), key.rpartition(" ")[2] if files[key] else "", files[key])
        for key in ranks
    )


def load_run(folder: PathLike) -> Run:
    """Find what a training run left in a folder.

    Args:
        folder: the folder that holds ``rank_N/``, or the dumps of one rank themselves.

    Returns:
        The run; it is empty where nothing was found, and any part of it may be missing.

    Raises:
        DumpError: there is no such folder, or it cannot be looked into.
    """
    path = os.fspath(folder)
    if not file_facts.is_folder(path):
        if file_facts.exists(path):
            raise DumpError(path, "is no folder", "load() reads single dumps")
        raise DumpError(path, "no such folder", path_hint(path))
    listing = walk(path)
    for closed, reason in listing.closed:
        if closed == path:
            raise DumpError(path, reason, "MindSpore's folders are open to their owner only")
    run = _run(path, sort_listing(path, listing))
    empty = sorted(listing.ranks - run.by_rank.keys())
    return replace(run, empty_ranks=tuple(empty)) if empty else run


def _run(path: str, contents: Sorted) -> Run:
    shelf = _Shelf()
    by_rank: dict[int, RankRun] = {}
    logs: dict[int | None, list[LogFile]] = {}
    for log in contents.logs:
        logs.setdefault(log.rank, []).append(log)
    for number, part in sorted(contents.ranks.items()):
        compilations = tuple(
            Compilation(index, number, group.files, group.folder, context, "", shelf)
            for index, (group, context) in enumerate(zip(part.groups, part.contexts, strict=True))
        )
        by_rank[number] = RankRun(
            number,
            compilations,
            part.context,
            tuple(logs.get(number, ())),
            tuple(part.tensor_dumps),
            tuple(part.msprobe),
            tuple(part.execution_order),
            tuple(part.artefacts),
        )
    return Run(
        path,
        by_rank,
        tuple(contents.logs),
        tuple(contents.losses),
        tuple(contents.strategy_files),
        tuple(contents.problems),
    )


def all_files(run: Run) -> Iterable[tuple[Compilation, PassFile]]:
    """Every dump of a run with its compilation: by rank, then in order of time.

    Args:
        run: with all of its ranks.
    """
    for compilation in run.compilations:
        for file in compilation.passes:
            yield compilation, file
