"""Runs chosen tests against a mutant, in a forked child of a process that has everything ready.

Two processes wait.  One has collected all tests: a child of it puts the mutant's code into the
functions that are already there, whoever imported them, and runs.  The other has only imported what
does not change: its child imports the package with the mutated file, for what runs at import.
"""

from __future__ import annotations

import functools
import gc
import importlib.abc
import importlib.machinery
import importlib.util
import inspect
import json
import math
import os
import pathlib
import resource
import select
import signal
import sys
import time
from collections.abc import Callable, Generator, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import CodeType, FunctionType
from typing import Any

import pytest

ARGUMENTS = (
    *("-q", "-n", "0", "-p", "no:cacheprovider", "-m", "not corpus"),
    "--continue-on-collection-errors",  # what an extra needs may not be here
)
MORE_MEMORY = 4 << 30
"""Bytes a child may take beside what its parent has; a mutant that wants more is noticed."""

PATIENCE = float(os.environ.get("MUTANTS_PATIENCE", "5"))
"""Seconds of CPU a test may take, and as many times what it usually takes."""

START_SECONDS = 120.0
"""Seconds of CPU until the first test starts: importing and collecting."""

WAITING = float(os.environ.get("MUTANTS_WAITING", "100"))
"""How many times its seconds of CPU a test may take by the clock on the wall.

On a busy machine a test waits for its turn, which says nothing of the mutant: what is stopped by
this clock is not decided.
"""

TIMED = ("perf_counter(", "monotonic(", "time.time(", "process_time(")
"""Tests of time fail on a busy machine, whatever the mutant."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What tests made of a mutant.

    Attributes:
        killed_by: the test that failed or was stopped, or "" if none was.
        how: "failed"; "timeout" (of CPU); "crash"; "undecided" (neither passed nor failed until
            the far limit of the clock on the wall); or "" for a survivor.
        ran: how many tests ran, the failing one included.
    """

    killed_by: str
    how: str
    ran: int

    @property
    def is_decided(self) -> bool:
        return self.how != "undecided"


class Collected:
    """Pytest's plugin: what was collected, and what happens instead of running it."""

    def __init__(self, main: Callable[[list[pytest.Item]], None]) -> None:
        self.main = main

    @pytest.hookimpl(trylast=True)
    def pytest_configure(self) -> None:
        _always_the_same_examples()

    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        self.main(session.items)
        return True


def _always_the_same_examples() -> None:
    try:
        from hypothesis import Phase, settings
    except ImportError:
        return
    known = settings.get_profile("patient") if "patient" in _profiles(settings) else settings()
    settings.register_profile(
        "mutants",
        parent=known,
        derandomize=True,
        database=None,
        phases=(Phase.explicit, Phase.generate),  # a failure need not be small
    )
    settings.load_profile("mutants")


def draw_once() -> None:
    """Let Hypothesis look through all modules now, which it does before it first draws."""
    try:
        from hypothesis import given, settings
        from hypothesis.strategies import integers
    except ImportError:
        return

    @settings(max_examples=1)
    @given(integers())
    def drawn(number: int) -> None:
        pass

    drawn()


def _profiles(settings: Any) -> Any:
    return getattr(settings, "_profiles", {})


def collect(root: Path, main: Callable[[list[pytest.Item]], None], *chosen: str) -> None:
    """Collect tests as ``python -m pytest`` in ``root`` would, and hand them to ``main``."""
    os.chdir(root)
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    pytest.main([*ARGUMENTS, "--rootdir", str(root), *chosen], plugins=[Collected(main)])


def is_timed(item: pytest.Item) -> bool:
    """Whether the test looks at the clock."""
    function = getattr(item, "function", None)
    try:
        return any(word in inspect.getsource(function) for word in TIMED) if function else False
    except (OSError, TypeError):
        return False


# -- children ------------------------------------------------------------------------------------


ENDS = ("timeout", "crash", "undecided")
"""Last words about a child that did not end by itself."""


def in_child(
    work: Callable[[Callable[[Any], None]], None], limit: Callable[[Any], float]
) -> Iterator[Any]:
    """What a forked child tells, until it ends; its last word is one of ``ENDS`` if it must.

    Args:
        work: runs in the child and tells with the function it is given.  What it raises is told as
            ``{"broke": ...}`` before the child crashes.
        limit: seconds of CPU until the next word, after this one (None before the first).  The
            child's own clock is asked for them: how busy the machine is does not count.
    """
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reading)
        _quiet()
        code = 1
        try:
            allow_seconds(limit(None))
            with os.fdopen(writing, "w", buffering=1) as pipe:

                def tell(word: Any) -> None:
                    allow_seconds(limit(word))
                    print(json.dumps(word), file=pipe)

                try:
                    work(tell)
                except Exception as error:  # its streams are closed: this is how it is heard
                    print(json.dumps({"broke": repr(error)}), file=pipe)
                    raise
            code = 0
        finally:
            os._exit(code)
    os.close(writing)
    ended = "undecided"
    try:
        ended = yield from _told(reading, limit)
    finally:
        os.close(reading)
        _kill_group(child)
        _, status = os.waitpid(child, 0)
    if ended == "crash" and os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGXCPU:
        ended = "timeout"
    if ended != "done":
        yield ended


def _kill_group(child: int) -> None:
    """End a child and what it started."""
    try:
        os.killpg(child, signal.SIGKILL)
    except (ProcessLookupError, PermissionError):
        os.kill(child, signal.SIGKILL)


def allow_seconds(seconds: float) -> None:
    """Let this process use so many seconds of CPU from now on, before a signal ends it."""
    used = resource.getrusage(resource.RUSAGE_SELF)
    until = math.ceil(used.ru_utime + used.ru_stime + seconds)
    _, hard = resource.getrlimit(resource.RLIMIT_CPU)
    resource.setrlimit(resource.RLIMIT_CPU, (until, hard))


def _told(reading: int, limit: Callable[[Any], float]) -> Generator[Any, None, str]:
    rest = b""
    until = time.monotonic() + WAITING * limit(None)
    while True:
        ready, _, _ = select.select([reading], [], [], max(0.0, until - time.monotonic()))
        if not ready:
            return "undecided"
        piece = os.read(reading, 1 << 16)
        if not piece:
            return "crash"
        *lines, rest = (rest + piece).split(b"\n")
        for line in lines:
            word = json.loads(line)
            until = time.monotonic() + WAITING * limit(word)
            if word == "done":
                return "done"
            yield word


def _quiet() -> None:
    os.setpgid(0, 0)
    nothing = os.open(os.devnull, os.O_RDWR)
    for stream in (0, 1, 2):
        os.dup2(nothing, stream)
    taken = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (taken + MORE_MEMORY, resource.RLIM_INFINITY))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def run_items(items: Sequence[pytest.Item], tell: Callable[[Any], None]) -> None:
    """Run tests until one fails; tells each one's id before it starts, and what failed."""
    for item, following in zip(items, [*items[1:], items[-1]], strict=True):
        tell({"starts": item.nodeid})
        if not passes(item, following):
            tell({"failed": item.nodeid})
            break
    tell("done")


def passes(
    item: pytest.Item,
    following: pytest.Item | None,
    is_made: Callable[[], None] | None = None,
) -> bool:
    """Whether a test passes, run here and now.

    Args:
        item: the test.
        following: the next one, for which what both need is kept.
        is_made: called between the making of its fixtures and the test itself.
    """
    from _pytest.runner import runtestprotocol

    plugins = item.config.pluginmanager
    between = None if is_made is None else plugins.register(_Between(is_made))
    reports = runtestprotocol(item, log=False, nextitem=following)
    if between is not None:
        plugins.unregister(name=between)
    return not any(report.failed for report in reports)


@dataclass(frozen=True, slots=True)
class _Between:
    """Pytest's plugin that is asked when the fixtures of a test are there."""

    is_made: Callable[[], None]

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_call(self) -> None:
        self.is_made()


def outcome(words: Iterator[Any]) -> Outcome:
    """What the words of a child that ran tests come to."""
    current, ran = "", 0
    for word in words:
        if word in ENDS:
            return Outcome(current, word, ran)
        if "starts" in word:
            current, ran = word["starts"], ran + 1
        if "failed" in word:
            return Outcome(word["failed"], "failed", ran)
    return Outcome("", "", ran)


# -- code put into functions that are there ------------------------------------------------------


_CACHED = type(functools.lru_cache(lambda: None))


class Functions:
    """All functions that live in this process, by the file they come from, and all caches."""

    def __init__(self, root: Path) -> None:
        self.by_file: dict[str, list[FunctionType]] = {}
        self.caches: list[Any] = []
        kept = str(root) + os.sep
        for thing in gc.get_objects():
            if isinstance(thing, FunctionType):
                file = thing.__code__.co_filename
                if file.startswith(kept):
                    self.by_file.setdefault(file, []).append(thing)
            elif isinstance(thing, _CACHED):
                self.caches.append(thing)

    def put(self, path: Path, original: bytes, mutated: bytes) -> bool:
        """Give every function of a file its mutated code; False if that changes nothing."""
        pairs = dict[tuple[int, str], list[tuple[CodeType, CodeType]]]()
        codes = (
            compile(text, str(path), "exec", dont_inherit=True) for text in (original, mutated)
        )
        for old, new in _pairs(*codes):
            pairs.setdefault((old.co_firstlineno, old.co_name), []).append((old, new))
        changed = False
        for function in self.by_file.get(str(path), ()):
            code = function.__code__
            same = pairs.get((code.co_firstlineno, code.co_name), [])
            chosen = same if len(same) == 1 else [pair for pair in same if pair[0] == code]
            if not chosen:
                continue
            new = chosen[0][1]
            if len(new.co_freevars) != len(code.co_freevars):
                return False
            function.__code__ = new
            changed = True
        return changed


def _pairs(old: CodeType, new: CodeType) -> Iterator[tuple[CodeType, CodeType]]:
    yield old, new
    inner = [[c for c in code.co_consts if isinstance(c, CodeType)] for code in (old, new)]
    for name in dict.fromkeys(code.co_name for code in inner[0]):
        olds, news = ([code for code in codes if code.co_name == name] for codes in inner)
        if len(olds) == len(news):
            for one, other in zip(olds, news, strict=True):
                yield from _pairs(one, other)


# -- a package imported with a mutated file ------------------------------------------------------


class _Mutated(importlib.machinery.SourceFileLoader):
    def __init__(self, name: str, path: str, source: bytes) -> None:
        super().__init__(name, path)
        self.mutated = source

    def get_code(self, fullname: str) -> CodeType:
        return compile(self.mutated, self.path, "exec", dont_inherit=True)


class MutatedFile(importlib.abc.MetaPathFinder):
    """Finds one module with another source than its file has."""

    def __init__(self, root: Path, file: str, source: bytes) -> None:
        parts = list(Path(file).with_suffix("").parts)
        self.is_package = parts[-1] == "__init__"
        self.name = ".".join(parts[:-1] if self.is_package else parts)
        self.path = str(root / file)
        self.source = source

    def find_spec(
        self, fullname: str, path: object = None, target: object = None
    ) -> importlib.machinery.ModuleSpec | None:
        if fullname != self.name:
            return None
        places = [str(Path(self.path).parent)] if self.is_package else None
        return importlib.util.spec_from_file_location(
            fullname,
            self.path,
            loader=_Mutated(fullname, self.path, self.source),
            submodule_search_locations=places,
        )


def read_as(path: Path, content: bytes) -> None:
    """From now on this process reads this in that file, if it reads it with ``pathlib``."""
    place = os.path.realpath(path)
    read_bytes = pathlib.Path.read_bytes
    read_text = pathlib.Path.read_text

    def bytes_of(self: Path) -> bytes:
        return content if os.path.realpath(self) == place else read_bytes(self)

    def text_of(self: Path, *args: Any, **options: Any) -> str:
        if os.path.realpath(self) == place:
            return content.decode()
        return read_text(self, *args, **options)

    def opened(self: Path, mode: str = "r", *args: Any, **options: Any) -> Any:
        if os.path.realpath(self) == place:
            import io

            return io.BytesIO(content) if "b" in mode else io.StringIO(content.decode())
        return open_path(self, mode, *args, **options)

    open_path = pathlib.Path.open
    pathlib.Path.read_bytes = bytes_of  # type: ignore[method-assign]
    pathlib.Path.read_text = text_of  # type: ignore[method-assign]
    pathlib.Path.open = opened  # type: ignore[method-assign,assignment]


class Importer:
    """A process that has imported what stays the same, and waits to import the rest mutated."""

    def __init__(self, root: Path, before: Sequence[str]) -> None:
        self.root = root
        to_child, self.jobs = os.pipe()
        self.answers, from_child = os.pipe()
        self.process = os.fork()
        if self.process == 0:
            os.close(self.jobs)
            os.close(self.answers)
            self._serve(before, to_child, from_child)
            os._exit(0)
        os.close(to_child)
        os.close(from_child)
        self._lines = os.fdopen(self.answers)

    def run(self, file: str, source: bytes, tests: dict[str, float]) -> Outcome:
        """Run tests (with their usual seconds) on the package with this file in it."""
        job = {"file": file, "source": source.decode(), "tests": tests}
        os.write(self.jobs, (json.dumps(job) + "\n").encode())
        answer = json.loads(self._lines.readline())
        return Outcome(answer["killed_by"], answer["how"], answer["ran"])

    def close(self) -> None:
        os.close(self.jobs)
        os.waitpid(self.process, 0)

    def _serve(self, before: Sequence[str], jobs: int, answers: int) -> None:
        for name in before:
            try:
                importlib.import_module(name)
            except ImportError:
                continue
        gc.freeze()
        with os.fdopen(jobs) as lines, os.fdopen(answers, "w", buffering=1) as out:
            for line in lines:
                job = json.loads(line)
                limits: dict[str, float] = job["tests"]
                words = in_child(
                    functools.partial(self._play, job), functools.partial(limit_of, limits)
                )
                done = outcome(words)
                answer = {"killed_by": done.killed_by, "how": done.how, "ran": done.ran}
                out.write(json.dumps(answer) + "\n")

    def _play(self, job: dict[str, Any], tell: Callable[[Any], None]) -> None:
        file, source = job["file"], job["source"].encode()
        if file.endswith(".py"):
            sys.meta_path.insert(0, MutatedFile(self.root, file, source))
        else:
            read_as(self.root / file, source)
        order = {test: place for place, test in enumerate(job["tests"])}

        def main(items: list[pytest.Item]) -> None:
            known = [item for item in items if item.nodeid in order]
            run_items(sorted(known, key=lambda item: order[item.nodeid]), tell)

        class Errors:
            def pytest_collectreport(self, report: pytest.CollectReport) -> None:
                if report.failed:
                    tell({"starts": report.nodeid})
                    tell({"failed": report.nodeid})
                    tell("done")
                    os._exit(0)

        files = dict.fromkeys(test.split("::")[0] for test in order)
        os.chdir(self.root)
        pytest.main(
            [*ARGUMENTS, "--rootdir", str(self.root), *files],
            plugins=[Collected(main), Errors()],
        )


def limit_of(seconds: dict[str, float], word: Any) -> float:
    """Seconds of CPU a test may take: many times what it usually does."""
    if word is not None and "starts" in word:
        return PATIENCE * (1 + seconds.get(word["starts"], 1.0))
    return START_SECONDS
