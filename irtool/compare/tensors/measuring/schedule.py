"""Where tensors are read: in this process, in several, or on the workers of a Dask cluster.

A process or worker that dies (killed, out of memory) costs nothing but its time: what it had in
hand is done again.  An item that kills whoever takes it is given up, and its result is None.
"""

from __future__ import annotations

import os
import signal
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Generic, Protocol, TypeVar

from irtool.ir.dataclass import dataclass

if TYPE_CHECKING:
    from concurrent.futures import Future, ProcessPoolExecutor

Item = TypeVar("Item")
Result = TypeVar("Result")
Tell = Callable[[str], None]

CHUNK = 512
"""Items that are handed over at a time, at most."""
_CHUNKS_EACH = 4
"""Chunks that a worker gets at least, so that none waits long for another."""
_MOST_DEATHS = 24
"""Processes that one chunk may cost before all of it is given up."""


class Scheduler(Protocol):
    """Does work on items somewhere."""

    def __call__(
        self, work: Callable[[Sequence[Item]], list[Result]], items: Sequence[Item], /
    ) -> Iterator[Result | None]:
        """Results in the order of the items; None for what nobody survived.

        Args:
            work: of a chunk of items; a function of a module, since it travels.
            items: plain data.
        """
        ...


def here(
    work: Callable[[Sequence[Item]], list[Result]], items: Sequence[Item], /
) -> Iterator[Result | None]:
    """Do work in this process, one chunk after the other.

    Args:
        work: of a chunk of items.
        items: plain data.

    Yields:
        Results in the order of the items.
    """
    for chunk in chunks(items, 1):
        yield from work(chunk)


def chunks(items: Sequence[Item], workers: int) -> Iterator[Sequence[Item]]:
    """Cut work into pieces small enough that every worker has something to do.

    Args:
        items: the work.
        workers: how many there are.
    """
    size = max(1, min(CHUNK, len(items) // (workers * _CHUNKS_EACH)))
    for start in range(0, len(items), size):
        yield items[start : start + size]


@dataclass(frozen=True, slots=True)
class _Handed(Generic[Item, Result]):
    """A chunk that processes have in hand, for the first time or again."""

    chunk: Sequence[Item]
    pool: ProcessPoolExecutor
    future: Future[list[Result]]
    is_first: bool


class Processes:
    """Processes of this machine; a window of chunks is in memory at a time."""

    def __init__(self, jobs: int, tell: Tell) -> None:
        self.jobs = jobs
        self._tell = tell
        self._pool: ProcessPoolExecutor | None = None

    def __call__(
        self, work: Callable[[Sequence[Item]], list[Result]], items: Sequence[Item], /
    ) -> Iterator[Result | None]:
        """Results in the order of the items."""
        from concurrent.futures.process import BrokenProcessPool

        waiting: deque[_Handed[Item, Result]] = deque()
        rest = chunks(items, self.jobs)
        while True:
            while len(waiting) < 2 * self.jobs and (chunk := next(rest, None)) is not None:
                waiting.append(self._hand(work, chunk))
            if not waiting:
                return
            handed = waiting.popleft()
            try:
                yield from handed.future.result()
            except BrokenProcessPool:
                self._note_death(handed.pool)
                if handed.is_first:
                    # Most died with the pool, by no fault of theirs.
                    waiting.appendleft(self._hand(work, handed.chunk, is_first=False))
                else:
                    yield from self._alone(work, handed.chunk)

    def close(self) -> None:
        """End the worker processes, and what waits for them."""
        if self._pool is not None:
            self._pool.shutdown(cancel_futures=True)
            self._pool = None

    def _hand(
        self,
        work: Callable[[Sequence[Item]], list[Result]],
        chunk: Sequence[Item],
        is_first: bool = True,
    ) -> _Handed[Item, Result]:
        from concurrent.futures import Future
        from concurrent.futures.process import BrokenProcessPool

        pool = self._pool = self._pool or _pool(self.jobs)
        try:
            future = pool.submit(work, chunk)
        except BrokenProcessPool as error:
            future = Future[list[Result]]()
            future.set_exception(error)
        return _Handed(chunk, pool, future, is_first)

    def _note_death(self, pool: ProcessPoolExecutor) -> None:
        """A death ends every process of a pool: a new one has to be made, once."""
        if pool is self._pool:
            self._tell("a process died (killed, or out of memory): its part is done again")
            self.close()

    def _alone(
        self, work: Callable[[Sequence[Item]], list[Result]], chunk: Sequence[Item]
    ) -> Iterator[Result | None]:
        """A chunk that may have killed a process, each part of it in a process of its own."""
        parts = [chunk]
        deaths = 0
        while parts:
            part = parts.pop()
            done = _in_one(work, part) if deaths < _MOST_DEATHS else None
            if done is not None:
                yield from done
                continue
            deaths += 1
            if deaths == 1 and _in_one(_nothing, part[:1]) is None:
                self._tell("no process can be started: all is done in this one")
                yield from here(work, part)
            elif len(part) == 1 or deaths > _MOST_DEATHS:
                self._tell(f"given up: {len(part):,} that no process survived, first {part[0]!r}")
                for _ in part:
                    yield None
            else:
                middle = len(part) // 2
                parts += [part[middle:], part[:middle]]


def _pool(jobs: int) -> ProcessPoolExecutor:
    from concurrent.futures import ProcessPoolExecutor
    from multiprocessing import get_context

    context = get_context("spawn")  # copies nothing, and is the same on every system
    return ProcessPoolExecutor(jobs, context, initializer=_ignore_interrupts)


def _ignore_interrupts() -> None:
    """Ctrl-C is for the process that waits for the results."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)


def _in_one(
    work: Callable[[Sequence[Item]], list[Result]], chunk: Sequence[Item]
) -> list[Result] | None:
    """Work in a process of its own; None if that dies."""
    from concurrent.futures.process import BrokenProcessPool

    with _pool(1) as pool:
        try:
            return pool.submit(work, chunk).result()
        except BrokenProcessPool:
            return None


def _nothing(items: Sequence[object]) -> list[int]:
    return [os.getpid() for _ in items]
