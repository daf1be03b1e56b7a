"""Where pairs of files are measured: in several processes here, or on workers of a Dask cluster."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

from irtool.compare.tensors.measure import Files, Measure, Scheduler, measure_files


class NoDask(RuntimeError):
    """No cluster can be asked, with the reason."""


def process_scheduler(jobs: int) -> tuple[Scheduler, Callable[[], None]]:
    """Processes of this machine, and how to end them; memory holds a window of chunks."""
    from concurrent.futures import ProcessPoolExecutor
    from multiprocessing import get_context

    pool = ProcessPoolExecutor(jobs, mp_context=get_context("spawn"))

    def schedule(chunks: Sequence[Sequence[Files]]) -> Iterable[list[Measure]]:
        return pool.map(measure_files, chunks)

    return schedule, lambda: pool.shutdown(cancel_futures=True)


def dask_scheduler(
    address: str, tell: Callable[[str], None]
) -> tuple[Scheduler, Callable[[], None]]:
    """Workers of the cluster at an address; they must see the files under the same paths.

    A chunk whose worker dies is given to another one; only the figures travel.

    Raises:
        NoDask: Dask is not installed, or nobody answers.
    """
    try:
        from dask.distributed import Client  # pyright: ignore  # an extra, untyped
    except ImportError:
        raise NoDask("--scheduler needs Dask") from None
    try:
        client: Any = Client(address, timeout="10s", set_as_default=False)
    except (OSError, TimeoutError, ValueError) as error:
        raise NoDask(f"no scheduler answers at {address}: {error}") from None
    workers = len(client.scheduler_info()["workers"])
    tell(f"{workers} worker{'s' if workers != 1 else ''} at {address}")

    def schedule(chunks: Sequence[Sequence[Files]]) -> Iterator[list[Measure]]:
        for future in client.map(measure_files, list(chunks), pure=False, retries=3):
            yield future.result()
            future.release()

    return schedule, client.close
