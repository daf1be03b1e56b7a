"""Workers as the driver sees them: cases go in, outcomes come out, whatever happens."""

from __future__ import annotations

import json
import os
import select
import subprocess
import sys
from base64 import b64encode
from collections.abc import Iterator, Sequence
from contextlib import suppress
from types import TracebackType
from typing import IO, Any

from benchmarks.fuzzing.case import Case
from benchmarks.fuzzing.material import ROOT
from benchmarks.fuzzing.trial import Outcome

COMMAND = ("-m", "benchmarks.fuzzing.worker")
"""What Python runs as a worker."""
_WALL = 600.0
"""Seconds after which a worker that doesn't answer is killed: its own clock should have rung."""
_CASES = 5000
"""Cases after which a worker is replaced."""
_RESIDENT = 1_500_000_000
"""Bytes of a worker's memory from which on it is replaced."""


class Worker:
    """One process; a new one comes where it died or hangs."""

    def __init__(self, hash_seed: int = 0) -> None:
        self._hash_seed = hash_seed
        self._process: subprocess.Popen[bytes] | None = None
        self._count = 0
        self._buffer = b""

    def run_numbers(
        self, asked: dict[str, Any], numbers: Sequence[int]
    ) -> Iterator[dict[str, Any]]:
        """The answers to cases by number, in their order, each as soon as it is there.

        Of a case over which the process dies or hangs, the answer holds its number and outcome
        only; the next ones run in another process.  Whoever stops listening closes the worker.

        Args:
            asked: seed and shares, as :func:`~benchmarks.fuzzing.make.make` takes them.
            numbers: of the cases.
        """
        left = list(numbers)
        while left:
            self._ask({**asked, "numbers": left})
            while left:
                told = self._answer()
                told.setdefault("number", left[0])
                del left[0]
                yield told
                if self._process is None or self._is_worn(told):
                    self.close()
                    break

    def run_case(self, case: Case) -> Outcome:
        """The outcome of a case that isn't made by number."""
        files = {name: b64encode(data).decode() for name, data in case.files.items()}
        self._ask(
            {
                "files": files,
                "argv": case.argv,
                "command": case.command,
                "mutator": case.mutator,
            }
        )
        told = self._answer()
        if self._process is not None and self._is_worn(told):
            self.close()
        return Outcome(**told["outcome"])

    def _ask(self, asked: dict[str, Any]) -> None:
        pipe = self._started().stdin
        assert pipe is not None
        with suppress(BrokenPipeError):  # it died: so the answer will say
            pipe.write(json.dumps(asked).encode() + b"\n")
            pipe.flush()

    def _answer(self) -> dict[str, Any]:
        """The next answer; of a process that dies or hangs, only the outcome."""
        assert self._process is not None
        assert self._process.stdout is not None
        line = self._line(self._process.stdout)
        if line is None:
            self.close()
            outcome = Outcome("hang", "in C code", f"no answer in {_WALL:.0f} s")
            return {"outcome": outcome.as_json()}
        if not line:
            status = self._process.wait()
            self.close()
            outcome = Outcome("crash", f"process ended with {status}", "the process died")
            return {"outcome": outcome.as_json()}
        self._count += 1
        return json.loads(line)

    def _line(self, pipe: IO[bytes]) -> bytes | None:
        """The next line; nothing at the end; None where none comes in time."""
        while b"\n" not in self._buffer:
            ready, _, _ = select.select([pipe], [], [], _WALL)
            if not ready:
                return None
            more = os.read(pipe.fileno(), 1 << 20)
            if not more:
                return b""
            self._buffer += more
        line, _, self._buffer = self._buffer.partition(b"\n")
        return line

    def _is_worn(self, told: dict[str, Any]) -> bool:
        """Whether what it holds on to would be the next case's."""
        return (
            told["outcome"]["kind"] in ("memory", "hang")
            or told["resident"] > _RESIDENT
            or self._count >= _CASES
        )

    def _started(self) -> subprocess.Popen[bytes]:
        if self._process is None:
            self._count, self._buffer = 0, b""
            environment = {
                **os.environ,
                "PYTHONHASHSEED": str(self._hash_seed),
                "PYTHONPATH": str(ROOT),
            }
            self._process = subprocess.Popen(
                [sys.executable, *COMMAND],
                cwd=ROOT,
                env=environment,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
            )
        return self._process

    def close(self) -> None:
        """End the process."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None

    def __enter__(self) -> Worker:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()
