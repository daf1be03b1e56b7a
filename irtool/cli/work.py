"""Work on many files: here, in several processes or on a cluster; results in order, with a bar."""

from __future__ import annotations

import os
import signal
import sys
import time
from collections import deque
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from functools import partial
from typing import TYPE_CHECKING, Generic, TypeVar

from irtool.cli.report import Failure, note
from irtool.ir.dataclass import dataclass
from irtool.report.plain import is_terminal
from irtool.syntax.file_facts import Fact, cannot_repeat, noted_facts, noting_facts
from irtool.syntax.kept import flush, remembers, use_keeper

if TYPE_CHECKING:
    from concurrent.futures import Future, ProcessPoolExecutor

Item = TypeVar("Item")
Result = TypeVar("Result")

_WORTH_PROCESSES = 8 << 20
"""Bytes of input from which several processes pay off."""
_PATIENCE = 1.0
"""Seconds of silence before a progress bar appears."""


@dataclass(frozen=True, slots=True)
class Workers:
    """Who reads files: ``jobs`` processes of this machine, or the cluster of a Dask ``scheduler``.

    ``jobs`` is None where nobody said a number.
    """

    jobs: int | None = None
    scheduler: str | None = None


_USUAL = Workers()
_workers: ContextVar[Workers] = ContextVar("workers", default=_USUAL)


@contextmanager
def working_with(workers: Workers) -> Generator[None]:
    """Let these read files, until the end of a block.

    Args:
        workers: processes of this machine, or a cluster.
    """
    token = _workers.set(workers)
    try:
        yield
    finally:
        _workers.reset(token)


def scheduler_address() -> str | None:
    """The address of the Dask cluster that reads files; None where ``--scheduler`` names none."""
    return _workers.get().scheduler


class WorkerDied(Exception):
    """A process ended without a result: killed, or out of memory."""


class Outcome(Generic[Result]):
    """A result, or the exception that came instead."""

    __slots__ = ("_error", "_result")

    def __init__(self, result: Result | None, error: Exception | None = None) -> None:
        self._result = result
        self._error = error

    def get(self) -> Result:
        """The result; raises what the work raised."""
        if self._error is not None:
            raise self._error
        return self._result  # type: ignore[return-value]  # there is one if there is no error


def processes_for(sizes: Sequence[int], asked: int | None) -> int:
    """How many processes to use for files of these sizes.

    Args:
        sizes: bytes of each file.
        asked: goes before ``--jobs``; None: it counts, or without it as many as there are
            processors.

    Returns:
        At least one, and never more than there are files; one for little input that nobody asked
        several for.
    """
    asked = asked if asked is not None else _workers.get().jobs
    if asked is not None:
        return max(1, min(asked, len(sizes)))
    if sum(sizes) < _WORTH_PROCESSES:
        return 1
    available = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else None
    return max(1, min(available or os.cpu_count() or 1, len(sizes)))


def run_all(
    work: Callable[[Item], Result],
    items: Sequence[Item],
    processes: int,
    bar: bool = True,
    together: int = 1,
) -> Iterator[Outcome[Result]]:
    """Outcomes of ``work`` on each item, in the order of the items, as they become ready.

    Args:
        work: what to do with an item.
        items: all of them.
        processes: how many to use.
        bar: whether a terminal shows how far it is.
        together: how many neighbours one process is given at a time, for results that are small:
            dumps that stand side by side are alike, and what a process parsed once it knows.
    """
    progress = Progress(len(items), bar)
    address = _workers.get().scheduler
    if address is not None and len(items) > 1:
        outcomes = _on_cluster(work, items, address)
    else:
        outcomes = (
            _in_processes(work, items, processes, together) if processes > 1 else _here(work, items)
        )
    try:
        for outcome in outcomes:
            yield outcome
            progress.step()
    finally:
        progress.clear()


def _here(work: Callable[[Item], Result], items: Sequence[Item]) -> Iterator[Outcome[Result]]:
    for item in items:
        yield _outcome(work, item)


def _outcome(work: Callable[[Item], Result], item: Item) -> Outcome[Result]:
    try:
        return Outcome(work(item))
    except Exception as error:
        return Outcome(None, error)


def _in_processes(
    work: Callable[[Item], Result], items: Sequence[Item], processes: int, together: int
) -> Iterator[Outcome[Result]]:
    """A window of items is in work at a time, so that results do not pile up.

    When a process dies, its pool is lost with all that it was doing; the items it was doing are
    then done one at a time, each in a process of its own, so that only the culprit fails.
    """
    from concurrent.futures.process import BrokenProcessPool

    waiting = deque(items[start : start + together] for start in range(0, len(items), together))
    pool = _pool(processes)
    active: deque[tuple[Sequence[Item], Future[_Done[Result]]]] = deque()
    try:
        while waiting or active:
            try:
                while waiting and len(active) < 4 * processes:
                    active.append((waiting[0], pool.submit(_worked, work, waiting[0])))
                    waiting.popleft()
                outcomes = _finished(*active[0])
                active.popleft()
            except BrokenProcessPool:
                lost = [items for items, _ in active] or [waiting.popleft()]
                active.clear()
                pool.shutdown(wait=True)
                yield from (_alone(work, item) for items in lost for item in items)
                pool = _pool(processes)
            else:
                yield from outcomes
    finally:
        pool.shutdown(wait=True, cancel_futures=True)


def _finished(items: Sequence[Item], future: Future[_Done[Result]]) -> list[Outcome[Result]]:
    """Outcomes of neighbours; where they can't travel between processes, that is each one's."""
    from concurrent.futures.process import BrokenProcessPool

    try:
        return future.result().taken()
    except BrokenProcessPool:
        raise
    except Exception as error:
        cannot_repeat()
        return [Outcome(None, error)] * len(items)


def _on_cluster(
    work: Callable[[Item], Result], items: Sequence[Item], address: str
) -> Iterator[Outcome[Result]]:
    """Outcomes by the workers of a Dask cluster, which see the files under the same paths.

    Raises:
        Failure: there is no Dask, nobody answers, or there are no workers.
    """
    from irtool.compare.tensors.measuring.cluster import Cluster, NoDask

    cannot_repeat()
    try:
        cluster = Cluster(address, note)
    except NoDask as error:
        raise Failure(str(error), hint=error.hint) from None
    try:
        for outcome in cluster(partial(_outcomes, work), items):
            yield outcome or Outcome(None, WorkerDied("no worker of the cluster survived it"))
    finally:
        cluster.close()


def _outcomes(work: Callable[[Item], Result], items: Sequence[Item]) -> list[Outcome[Result]]:
    return [_outcome(work, item) for item in items]


def _pool(processes: int) -> ProcessPoolExecutor:
    # Most commands start no process, and the import takes as long as reading a small dump.
    from concurrent.futures import ProcessPoolExecutor

    return ProcessPoolExecutor(processes, initializer=_begin_worker, initargs=(remembers(),))


def _begin_worker(is_kept: bool) -> None:
    """Ctrl-C is for the process that the user started, which then ends the others."""
    use_keeper(is_kept)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)


@dataclass(frozen=True, slots=True)
class _Done(Generic[Result]):
    """What a worker sends: outcomes, and what it saw of files meanwhile."""

    outcomes: list[Outcome[Result]]
    facts: list[Fact]
    bytes_read: int
    is_complete: bool

    def taken(self) -> list[Outcome[Result]]:
        """The outcomes; what the worker saw counts as seen here."""
        if (noted := noted_facts()) is not None:
            noted.add(self.facts, self.bytes_read, self.is_complete)
        return self.outcomes


def _worked(work: Callable[[Item], Result], items: Sequence[Item]) -> _Done[Result]:
    """What a worker does: the work, and keeping what it read before the next comes."""
    made: list[Outcome[Result]] = []
    with noting_facts() as facts:
        for item in items:
            made.append(_outcome(work, item))
            flush()
        return _Done(made, facts.taken(), facts.bytes_read, facts.is_complete)


def _alone(work: Callable[[Item], Result], item: Item) -> Outcome[Result]:
    from concurrent.futures.process import BrokenProcessPool

    with _pool(1) as pool:
        try:
            return pool.submit(_worked, work, [item]).result().taken()[0]
        except BrokenProcessPool:
            cannot_repeat()
            return Outcome(None, WorkerDied("the process that read it died"))
        except Exception as error:
            return Outcome(None, error)


class Progress:
    """A bar on standard error, if that is a terminal and the work takes long."""

    _WIDTH = 30

    def __init__(self, total: int, wanted: bool) -> None:
        self._total = total
        self._done = 0
        self._shown = False
        self._start = self._last = time.monotonic()
        self._wanted = wanted and total > 1 and is_terminal(sys.stderr)

    def step(self) -> None:
        """One more item is done."""
        self._done += 1
        now = time.monotonic()
        if not self._wanted or now - self._start < _PATIENCE or now - self._last < 0.1:
            return
        self._last = now
        filled = self._WIDTH * self._done // self._total
        bar = "█" * filled + "░" * (self._WIDTH - filled)
        sys.stderr.write(f"\r{bar} {self._done:,} of {self._total:,} files\x1b[K")
        sys.stderr.flush()
        self._shown = True

    def clear(self) -> None:
        """Take the bar away."""
        if self._shown:
            sys.stderr.write("\r\x1b[K")
            sys.stderr.flush()
            self._shown = False
