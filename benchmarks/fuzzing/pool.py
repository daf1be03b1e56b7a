"""Workers as the driver sees them: a case goes in, an outcome comes out, whatever happens."""

from __future__ import annotations

import json
import os
import select
import subprocess
import sys
from base64 import b64encode
from types import TracebackType
from typing import Any

from benchmarks.fuzzing.case import Case
from benchmarks.fuzzing.material import ROOT
from benchmarks.fuzzing.trial import Outcome

_WALL = 600.0
"""Seconds after which a worker that doesn't answer is killed: its own clock should have rung."""
_CASES = 1500
"""Cases after which a worker is replaced."""
_RESIDENT = 1_500_000_000
"""Bytes of a worker's memory from which on it is replaced."""


class Worker:
    """One process; a new one comes where it died or hangs."""

    def __init__(self, hash_seed: int = 0) -> None:
        self._hash_seed = hash_seed
        self._process: subprocess.Popen[bytes] | None = None
        self._count = 0

    def run(self, asked: dict[str, Any]) -> dict[str, Any]:
        """The answer to a request; of a process that dies or hangs, only the outcome."""
        process = self._started()
        assert process.stdin is not None
        assert process.stdout is not None
        self._count += 1
        try:
            process.stdin.write(json.dumps(asked).encode() + b"\n")
            process.stdin.flush()
        except BrokenPipeError:
            return self._died()
        ready, _, _ = select.select([process.stdout], [], [], _WALL)
        if not ready:
            self.close()
            outcome = Outcome("hang", "in C code", f"no answer in {_WALL:.0f} s")
            return {"outcome": outcome.as_json()}
        line = process.stdout.readline()
        if not line:
            return self._died()
        told = json.loads(line)
        if told["outcome"]["kind"] in ("memory", "hang") or told["resident"] > _RESIDENT:
            self.close()  # what it holds on to would be the next case's
        return told

    def run_case(self, case: Case) -> Outcome:
        """The outcome of a case that isn't made by number."""
        files = {name: b64encode(data).decode() for name, data in case.files.items()}
        asked = {
            "files": files,
            "argv": case.argv,
            "command": case.command,
            "mutator": case.mutator,
        }
        return Outcome(**self.run(asked)["outcome"])

    def _died(self) -> dict[str, Any]:
        assert self._process is not None
        status = self._process.wait()
        self._process = None
        outcome = Outcome("crash", f"process ended with {status}", "the process died")
        return {"outcome": outcome.as_json()}

    def _started(self) -> subprocess.Popen[bytes]:
        if self._process is not None and self._count >= _CASES:
            self.close()
        if self._process is None:
            self._count = 0
            environment = {
                **os.environ,
                "PYTHONHASHSEED": str(self._hash_seed),
                "PYTHONPATH": str(ROOT),
            }
            self._process = subprocess.Popen(
                [sys.executable, "-m", "benchmarks.fuzzing.worker"],
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
