"""Work on many files: here, in several processes or on a cluster; results in order, with a bar."""

from __future__ import annotations

import os
import signal
import sys
import time
from collections import deque
from collections.abc import Callable, Generator, Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from functools import partial
from typing import Generic, TypeVar

from irtool.cli.report import Failure, note
from irtool.report.plain import is_terminal
from irtool.syntax.kept import flush, remembers, use_keeper

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
    """Let these read files, until the end of a block."""
    token = _workers.set(workers)
    try:
        yield
    finally:
        _workers.reset(token)


def scheduler_address() -> str | None:
    """The address of ``--scheduler``."""
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
    """How many processes to use for files of these sizes; ``asked`` goes before ``--jobs``."""
    asked = asked if asked is not None else _workers.get().jobs
    if asked is not None:
        return max(1, min(asked, len(sizes)))
    if sum(sizes) < _WORTH_PROCESSES:
        return 1
    available = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else None
    return max(1, min(available or os.cpu_count() or 1, len(sizes)))


def run_all(
    work: Callable[[Item], Result], items: Sequence[Item], processes: int, bar: bool = True
) -> Iterator[Outcome[Result]]:
    """Outcomes of ``work`` on each item, in the order of the items, as they become ready."""
    progress = Progress(len(items), bar)
    address = _workers.get().scheduler
    if address is not None and len(items) > 1:
        outcomes = _on_cluster(work, items, address)
    else:
        outcomes = _in_processes(work, items, processes) if processes > 1 else _here(work, items)
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
    work: Callable[[Item], Result], items: Sequence[Item], processes: int
) -> Iterator[Outcome[Result]]:
    """A window of items is in work at a time, so that results do not pile up.

    When a process dies, its pool is lost with all that it was doing; the items it was doing are
    then done one at a time, each in a process of its own, so that only the culprit fails.
    """
    waiting = deque(items)
    pool = _pool(processes)
    active: deque[tuple[Item, Future[Result]]] = deque()
    try:
        while waiting or active:
            try:
                while waiting and len(active) < 4 * processes:
                    active.append((waiting[0], pool.submit(_worked, work, waiting[0])))
                    waiting.popleft()
                outcome = _finished(active[0][1])
                active.popleft()
            except BrokenProcessPool:
                lost = [item for item, _ in active] or [waiting.popleft()]
                active.clear()
                pool.shutdown(wait=True)
                yield from (_alone(work, item) for item in lost)
                pool = _pool(processes)
            else:
                yield outcome
    finally:
        pool.shutdown(wait=True, cancel_futures=True)


def _finished(future: Future[Result]) -> Outcome[Result]:
    try:
        return Outcome(future.result())
    except BrokenProcessPool:
        raise
    except Exception as error:
        return Outcome(None, error)


def _on_cluster(
    work: Callable[[Item], Result], items: Sequence[Item], address: str
) -> Iterator[Outcome[Result]]:
    """Outcomes by the workers of a Dask cluster, which see the files under the same paths.

    Raises:
        Failure: there is no Dask, nobody answers, or there are no workers.
    """
    from irtool.compare.tensors.measuring.cluster import Cluster, NoDask

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
    return ProcessPoolExecutor(processes, initializer=_begin_worker, initargs=(remembers(),))


def _begin_worker(is_kept: bool) -> None:
    """Ctrl-C is for the process that the user started, which then ends the others."""
    use_keeper(is_kept)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)


def _worked(work: Callable[[Item], Result], item: Item) -> Result:
    """What a worker does: the work, and keeping what it read before the next comes."""
    made = work(item)
    flush()
    return made


def _alone(work: Callable[[Item], Result], item: Item) -> Outcome[Result]:
    with _pool(1) as pool:
        try:
            return Outcome(pool.submit(_worked, work, item).result())
        except BrokenProcessPool:
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
