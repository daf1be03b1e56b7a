"""One case run in this process, within a time and a memory, and what is wrong with the outcome."""

from __future__ import annotations

import csv
import gc
import io
import json
import os
import resource
import signal
import sys
import tempfile
import time
import traceback
from collections.abc import Generator
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, field
from functools import lru_cache
from hashlib import sha256
from pathlib import Path
from types import FrameType, TracebackType
from typing import Any
from xml.etree import ElementTree

from benchmarks.fuzzing.case import READ, Case
from benchmarks.fuzzing.make import without_times

SECONDS = 20.0
"""Processor time that a small case may take."""
SECONDS_A_MEGABYTE = 20.0
"""What each megabyte of input may add."""
MEMORY = 1 << 30
"""Bytes by which the largest use of memory may grow in a small case."""
MEMORY_A_BYTE = 150
"""What each byte of input may add."""
CEILING = 4 << 30
"""Bytes of address space that a case may add."""


class TooSlow(BaseException):
    """The case's processor time is over; no handler of ``Exception`` keeps it."""


@dataclass(slots=True)
class Outcome:
    """What came of a case.

    Attributes:
        kind: ``clean``, ``crash``, ``hang``, ``memory``, ``status``, ``output``, ``differs``.
        site: the innermost function of irtool on the way, and the exception's type.
        what: the message, for people.
        status: the exit status.
        seconds: processor time.
        digest: of the answer without its times.
        guarded: by site, operators that a guard of irtool took for "could not be judged".
    """

    kind: str = "clean"
    site: str = ""
    what: str = ""
    status: int | None = None
    seconds: float = 0.0
    digest: str = ""
    guarded: dict[str, int] = field(default_factory=dict[str, int])

    @property
    def signature(self) -> str:
        """The same for findings that have one cause."""
        return f"{self.kind} {self.site}"

    def as_json(self) -> dict[str, Any]:
        return asdict(self)


def try_case(case: Case, patience: float = 1.0) -> Outcome:
    """Run a case in a folder of its own.

    Args:
        case: what to run.
        patience: by how much the time allowed is longer than usual.
    """
    limit = patience * (SECONDS + SECONDS_A_MEGABYTE * case.size / 1e6)
    home = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
    with tempfile.TemporaryDirectory(prefix="irtool-fuzz-", dir=home) as folder:
        before = Path.cwd()
        case.write(Path(folder))
        os.chdir(folder)
        try:
            return _limited(case, limit)
        finally:
            os.chdir(before)
            _forget_rules()


def _limited(case: Case, limit: float) -> Outcome:
    outcome = Outcome()
    peak = _peak()
    started = time.process_time()
    output, errors = io.BytesIO(), io.BytesIO()
    try:
        with _ceiling(), _alarm(limit), _captured(output, errors):
            outcome.status = _read(case) if case.command == READ else _main(case)
    except TooSlow as error:
        outcome.kind, outcome.site = "hang", _site(error)
        outcome.what = f"took more than {limit:.0f} s of processor time"
    except MemoryError as error:
        outcome.kind, outcome.site = "memory", _site(error)
        outcome.what = "ran out of memory"
    except Exception as error:
        outcome.kind, outcome.site = "crash", _site(error)
        outcome.what = "".join(traceback.format_exception(error, limit=-6))[-3000:]
    outcome.seconds = time.process_time() - started
    grown = _peak() - peak
    if outcome.kind == "clean" and grown > MEMORY + MEMORY_A_BYTE * case.size:
        outcome.kind, outcome.what = "memory", f"used {grown >> 20} MiB more"
        outcome.site = case.command
    if outcome.kind == "clean":
        wrong = _wrong(case, outcome.status, output.getvalue(), errors.getvalue())
        if wrong:
            outcome.kind, outcome.what = wrong
            outcome.site = f"{case.command} {case.format}"
    outcome.digest = sha256(without_times(output.getvalue())).hexdigest()[:16]
    outcome.guarded = _guarded()
    return outcome


def _main(case: Case) -> int:
    from irtool.cli.main import main

    try:
        return main(list(case.argv))
    except SystemExit as error:
        return error.code if isinstance(error.code, int) else 1


def _read(case: Case) -> int:
    """Read through the library, look at everything, print it back."""
    from benchmarks.touch import touch
    from irtool import dumps, load

    (data,) = case.files.values()
    dump = load(data)
    touch(dump)
    for problem in dump.problems:
        if problem.line < 1 or problem.column < 1:
            raise AssertionError(f"a problem without a place: {problem}")
    if dumps(dump).encode("utf-8", "surrogateescape") != data:
        raise AssertionError("what was read is not printed back byte for byte")
    return 0


def _wrong(case: Case, status: int | None, output: bytes, errors: bytes) -> tuple[str, str] | None:
    """What is wrong with an answer that came."""
    if case.command == READ:
        return None
    if status not in (0, 1, 2):
        return "status", f"exit status {status}"
    if status == 2:
        return ("status", "status 2 without a word") if not errors.strip() else None
    if b"Traceback (most recent call last)" in errors:
        return "output", "a traceback on standard error"
    if "-o" in case.argv:
        return None
    return _unreadable(case.format, output)


def _unreadable(format: str, output: bytes) -> tuple[str, str] | None:
    """Whether an answer is what its format says."""
    try:
        if format in ("json", "sarif", "gitlab", "model-explorer"):
            json.loads(output, parse_constant=_no_constant)
        elif format == "ndjson":
            for line in output.splitlines():
                json.loads(line, parse_constant=_no_constant)
        elif format in ("junit", "svg") and output.strip():
            ElementTree.fromstring(output)
        elif format == "csv":
            rows = csv.reader(io.StringIO(output.decode("utf-8")), strict=True)
            lengths = {len(row) for row in rows}
            if len(lengths) > 1:
                raise ValueError(f"rows of {sorted(lengths)} cells")
        elif format not in ("ir", "parquet"):
            output.decode("utf-8")
    except (ValueError, csv.Error, ElementTree.ParseError) as error:
        return "output", f"no {format}: {error}"
    return None


def _no_constant(name: str) -> None:
    raise ValueError(f"{name} is no JSON")


def _site(error: BaseException) -> str:
    """The innermost function of irtool, and the kind of error."""
    name = type(error).__name__
    if isinstance(error, RecursionError):
        return f"{_repeated(error.__traceback__)} {name}"
    place = ""
    step: TracebackType | None = error.__traceback__
    while step is not None:
        code = step.tb_frame.f_code
        if f"{os.sep}irtool{os.sep}" in code.co_filename:
            place = _place(code.co_filename, code.co_name)
        step = step.tb_next
    return f"{place} {name}" if place else name


def _repeated(step: TracebackType | None) -> str:
    """Of a recursion, the function of irtool that stands in it most often."""
    counts: dict[str, int] = {}
    while step is not None:
        code = step.tb_frame.f_code
        if f"{os.sep}irtool{os.sep}" in code.co_filename:
            place = _place(code.co_filename, code.co_name)
            counts[place] = counts.get(place, 0) + 1
        step = step.tb_next
    return max(counts, key=lambda place: (counts[place], place)) if counts else ""


def _place(path: str, function: str) -> str:
    return f"{path.rpartition(f'{os.sep}irtool{os.sep}')[2]}:{function}"


def _guarded() -> dict[str, int]:
    """What guards of irtool caught since the last case."""
    from irtool.operators import guard

    return guard.take_counts()


def _peak() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def resident() -> int:
    """Bytes of memory that this process has, as far as the system tells."""
    try:
        pages = int(Path("/proc/self/statm").read_text().split()[1])
    except OSError:
        return 0
    return pages * resource.getpagesize()


@contextmanager
def _alarm(seconds: float) -> Generator[None]:
    """Raise ``TooSlow`` in whatever runs when the processor time is over."""

    def ring(_number: int, _frame: FrameType | None) -> None:
        raise TooSlow

    before = signal.signal(signal.SIGPROF, ring)
    signal.setitimer(signal.ITIMER_PROF, seconds, 1.0)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)


@contextmanager
def _captured(output: io.BytesIO, errors: io.BytesIO) -> Generator[None]:
    """Standard output and error as a pipe has them, in memory; a bug of irtool is raised."""
    before = sys.stdout, sys.stderr, os.environ.get("IRTOOL_DEBUG")
    sys.stdout = io.TextIOWrapper(output, encoding="utf-8", write_through=True)
    sys.stderr = io.TextIOWrapper(
        errors, encoding="utf-8", errors="backslashreplace", write_through=True
    )
    os.environ["IRTOOL_DEBUG"] = "1"
    try:
        yield
    finally:
        for stream in (sys.stdout, sys.stderr):
            with suppress(ValueError):
                stream.flush()
                stream.detach()
        sys.stdout, sys.stderr = before[0], before[1]
        if before[2] is None:
            del os.environ["IRTOOL_DEBUG"]
        else:
            os.environ["IRTOOL_DEBUG"] = before[2]


@contextmanager
def _ceiling() -> Generator[None]:
    """Bound this process's address space, so that what needs too much fails by itself."""
    before = resource.getrlimit(resource.RLIMIT_AS)
    try:
        now = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    except OSError:  # not Linux: nobody says how much there is already
        yield
        return
    resource.setrlimit(resource.RLIMIT_AS, (now + CEILING, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_AS, before)


_CACHE = type(lru_cache(_peak))
"""What functions with a cache are."""


def forget() -> None:
    """Empty every cache of irtool that grows with what is read."""
    modules = [module for name, module in sys.modules.items() if name.startswith("irtool.")]
    spaces = [vars(module) for module in modules]
    spaces += [vars(kind) for space in spaces for kind in space.values() if isinstance(kind, type)]
    for held in (held for space in spaces for held in space.values()):
        if isinstance(held, _CACHE) and held.__module__.startswith("irtool."):
            cache: Any = held
            if cache.cache_info().maxsize != 1:
                cache.cache_clear()
    gc.collect()


def _forget_rules() -> None:
    """A user's rules stay for a process; the next case has others."""
    from irtool.operators.table import forget_declared

    forget_declared()
