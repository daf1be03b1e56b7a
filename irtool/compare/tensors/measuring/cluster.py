"""Tensors read by the workers of a Dask cluster, which have to see the files under equal paths.

Dask gives the work of a worker that dies to another one; only figures travel.  Where the cluster
itself is gone, the rest is done here.
"""

from __future__ import annotations

import logging
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import CancelledError
from contextlib import suppress
from typing import Any

from irtool.compare.tensors.measuring.schedule import Item, Result, Tell, chunks, here

_PATIENCE = 30.0
"""Seconds without a single worker after which a cluster is given up."""
_ANSWER = "15s"
"""How long a scheduler may take to answer."""
_CHUNKS_AHEAD = 4
"""Chunks that wait for each worker."""


class NoDask(RuntimeError):
    """No cluster can be asked, with the reason and a hint."""

    def __init__(self, reason: str, hint: str) -> None:
        super().__init__(reason, hint)
        self.hint = hint

    def __str__(self) -> str:
        return str(self.args[0])


class Cluster:
    """The workers at the address of a scheduler.

    Raises:
        NoDask: Dask is not installed, nobody answers, or there are no workers.
    """

    def __init__(self, address: str, tell: Tell) -> None:
        try:
            from dask.distributed import Client  # pyright: ignore  # an extra, untyped
        except ImportError:
            raise NoDask("--scheduler needs Dask", "pip install 'irtool[dask]'") from None
        for name in ("distributed", "distributed.client"):
            logging.getLogger(name).setLevel(logging.CRITICAL)  # what matters is told below
        self.address = address
        self._tell = tell
        hint = "start one with: dask scheduler; then workers with: dask worker tcp://HOST:8786"
        try:
            self._client: Any = Client(address, timeout=_ANSWER, set_as_default=False)
            self._at_first = self._workers()
        except (OSError, TimeoutError, ValueError, _Gone) as error:
            reason = str(error).splitlines()[0] if str(error) else "no answer"
            raise NoDask(f"no scheduler answers at {address}: {reason}", hint) from None
        if not self._at_first:
            self.close()
            raise NoDask(f"the scheduler at {address} has no workers", hint)
        tell(f"{self._at_first} worker{'s' if self._at_first != 1 else ''} at {address}")

    def _workers(self) -> int:
        """How many workers there are now; raises :class:`_Gone` where nobody can say."""
        try:
            told = self._client.scheduler_info(n_workers=-1)
        except Exception:  # which one depends on how far the connection is lost
            raise self._gone() from None
        if self._client.status != "running" or "workers" not in told:
            raise self._gone()
        return len(told["workers"])

    def _gone(self) -> _Gone:
        return _Gone(f"the scheduler at {self.address} is gone")

    def close(self) -> None:
        """Close the connection to the cluster's scheduler."""
        with suppress(Exception):  # nobody is left to take leave of
            self._client.close()

    def __call__(
        self, work: Callable[[Sequence[Item]], list[Result]], items: Sequence[Item], /
    ) -> Iterator[Result | None]:
        """Results in the order of the items."""
        left = deque(chunks(items, self._at_first))
        handed: deque[Any] = deque()
        try:
            while left:
                while len(handed) < min(len(left), _CHUNKS_AHEAD * self._at_first):
                    handed.append(self._submit(work, left[len(handed)]))
                done = self._result(handed.popleft())
                chunk = left.popleft()
                yield from done if done is not None else [None] * len(chunk)
            self._tell_lost()
        except _Gone as error:
            if left:
                self._tell(f"{error}: the rest is done here")
            for chunk in left:
                yield from here(work, chunk)

    def _tell_lost(self) -> None:
        lost = self._at_first - self._workers()
        if lost > 0:
            self._tell(f"{lost} of {self._at_first} workers left; others did their part again")
            self._at_first -= lost

    def _submit(self, work: Callable[..., Any], chunk: Sequence[object]) -> Any:
        try:
            return self._client.submit(work, chunk, pure=False, retries=2)
        except Exception:  # a client that is closed says so in several ways
            raise self._gone() from None

    def _result(self, future: Any) -> list[Any] | None:
        """What a chunk gave; None if it killed several workers."""
        from dask.distributed import KilledWorker  # pyright: ignore  # an extra, untyped

        alone_since: float | None = None
        while True:
            try:
                return future.result(timeout=5)
            except KilledWorker:
                self._tell("given up: a part that no worker survived")
                return None
            except TimeoutError:
                if future.status == "cancelled" or self._client.status != "running":
                    raise self._gone() from None
                if self._workers():
                    alone_since = None
                    continue
                alone_since = alone_since or time.monotonic()
                if time.monotonic() - alone_since > _PATIENCE:
                    raise _Gone(f"all workers at {self.address} are gone") from None
            except (OSError, CancelledError):
                raise self._gone() from None
            except Exception as error:  # whatever a worker without irtool raises
                reason = str(error).splitlines()[0] if str(error) else type(error).__name__
                raise _Gone(f"the workers at {self.address} cannot do it ({reason})") from None


class _Gone(Exception):
    """A cluster that is not there any more, with the reason."""
