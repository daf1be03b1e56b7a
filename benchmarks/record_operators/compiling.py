"""Compilations in processes forked from one that has MindSpore imported.

Importing MindSpore takes seconds, a network of one operator a fraction of one. The parent imports
and patches once, and never compiles. A child compiles some networks one after the other, with
the parallel context set anew for each, as MindSpore's own unit tests do, and answers over a pipe.
Where a child crashes or takes too long, that is the record of the case, and the next child goes on
after it.
"""

from __future__ import annotations

import contextlib
import gc
import json
import os
import re
import select
import shutil
import signal
import sys
import tempfile
import time
import traceback
from collections.abc import Iterator
from typing import Any

import dumps
from network import source

TIME_LIMIT = 90.0
"""Seconds of one case on a loaded machine."""
OUT_OF_TIME = "time limit"
CASES_A_PROCESS = 16
_HEAD = re.compile(r"^\[(?:ERROR|CRITICAL)\] \w+\([^)]*\):\S+ \[([^:\]]*):\d+\] (\w+)\] ?(.*)$")


class Compiler:
    """MindSpore imported and patched, ready to be forked."""

    def __init__(self, target: str = "Ascend", *, together: int = CASES_A_PROCESS) -> None:
        os.environ.update(
            GLOG_v="3",
            MS_DEV_SAVE_GRAPHS="2",
            MS_DEV_DUMP_IR_PASSES="step_parallel_begin,step_parallel_end,validate",
            MS_DEV_DUMP_IR_PARALLEL_DETAIL="1",
            MS_DEV_DUMP_IR_CONFIG="LINE_LEVEL0",
            OMP_NUM_THREADS="1",
        )
        shared = "/dev/shm" if os.path.isdir("/dev/shm") else None
        self.folder = tempfile.mkdtemp(prefix="operators-", dir=shared)
        os.environ["MS_DEV_SAVE_GRAPHS_PATH"] = os.path.join(self.folder, "dumps")
        import mindspore
        import primitives
        import virtual_devices
        from mindspore import context

        for module in primitives.MODULES:
            with contextlib.suppress(ImportError):
                __import__(module)
        context.set_context(mode=context.GRAPH_MODE, device_target="CPU")
        virtual_devices.set_device_name(target)
        virtual_devices.answer_group_sizes()
        self.version: str = mindspore.__version__
        self.together = together
        gc.freeze()

    def close(self) -> None:
        shutil.rmtree(self.folder, ignore_errors=True)

    def run(self, cases: list[dict[str, Any]]) -> Iterator[dict[str, Any]]:
        """The record of each case: verdict, reason, maps, communication, the dump before it all."""
        left = list(cases)
        while left:
            answered = 0
            for record in self._child(left[: self.together]):
                answered += 1
                yield record
            left = left[answered:]

    def _child(self, cases: list[dict[str, Any]]) -> Iterator[dict[str, Any]]:
        reading, writing = os.pipe()
        sys.stdout.flush()
        child = os.fork()
        if child == 0:
            os.close(reading)
            _compile_all(cases, self.version, self.folder, writing)
        os.close(writing)
        left = list(cases)
        ended = yield from _answers(reading, child, left)
        if left:
            yield {"case": left[0], "mindspore": self.version, "verdict": "ended", "error": ended}


def _answers(reading: int, child: int, left: list[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """What the child writes, a line a case, and how it ended; answered cases leave ``left``."""
    content = b""
    killed = False
    deadline = time.monotonic() + TIME_LIMIT
    with os.fdopen(reading, "rb", buffering=0) as pipe:
        while True:
            ready, _, _ = select.select([pipe], [], [], max(deadline - time.monotonic(), 0))
            if not ready:
                os.kill(child, signal.SIGKILL)
                killed = True
                break
            piece = pipe.read(1 << 20)
            if not piece:
                break
            content += piece
            while b"\n" in content:
                line, _, content = content.partition(b"\n")
                left.pop(0)
                deadline = time.monotonic() + TIME_LIMIT
                yield json.loads(line)
    _, status = os.waitpid(child, 0)
    if killed:
        return OUT_OF_TIME
    return f"signal {os.WTERMSIG(status)}" if os.WIFSIGNALED(status) else f"exit {status >> 8}"


def _compile_all(cases: list[dict[str, Any]], version: str, folder: str, writing: int) -> None:
    """The child's whole life."""
    gc.disable()
    os.chdir(folder)  # MindSpore leaves files where it stands
    log = os.path.join(folder, "log")
    stream = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    os.dup2(stream, 1)
    os.dup2(stream, 2)
    dumped = os.path.join(folder, "dumps")
    with contextlib.suppress(BaseException), os.fdopen(writing, "w") as pipe:
        for number, case in enumerate(cases):
            shutil.rmtree(dumped, ignore_errors=True)
            os.makedirs(dumped)
            os.ftruncate(stream, 0)
            try:
                answer = _compile(case, os.path.join(folder, f"one_operator_{number}.py"))
            except BaseException:
                answer = {"step": "script", "error": traceback.format_exc()}
            record = _record(case, version, folder, answer)
            pipe.write(json.dumps(record) + "\n")
            pipe.flush()
    os._exit(0)


def _compile(case: dict[str, Any], path: str) -> dict[str, Any]:
    import importlib.util

    import virtual_devices
    from mindspore import context
    from mindspore.common.api import _cell_graph_executor

    virtual_devices.set_world_size(case["devices"])
    context.reset_auto_parallel_context()
    settings = {
        "device_num": case["devices"],
        "global_rank": 0,
        "full_batch": True,
        "parallel_mode": "semi_auto_parallel",
        **case.get("context", {}),
    }
    context.set_auto_parallel_context(**settings)
    with open(path, "w") as stream:
        stream.write(source(case))
    spec = importlib.util.spec_from_file_location("one_operator", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["one_operator"] = module
    step = "python"
    try:
        spec.loader.exec_module(module)
        cell, inputs = module.network()
        cell.set_train(case["phase"] == "train")
        if any(-1 in value.shape for value in inputs):
            cell.set_inputs(*inputs)
        step = "compile"
        _cell_graph_executor.compile(cell, *inputs, phase=case["phase"])
    except Exception as problem:
        text = str(problem)
        if "device context" in text.lower():  # the device is opened last, and there is none
            return {"step": "done"}
        return {"step": step, "error": f"{type(problem).__name__}: {text}"}
    return {"step": "done"}


def _record(
    case: dict[str, Any], version: str, folder: str, answer: dict[str, Any]
) -> dict[str, Any]:
    texts = dumps.of_passes(os.path.join(folder, "dumps"))
    record: dict[str, Any] = {"case": case, "mindspore": version}
    if answer["step"] == "done" and "validate" in texts:
        record["verdict"] = "accepted"
    elif "end" in texts:
        record["verdict"] = "later"
    elif "begin" in texts or answer["step"] == "python":
        record["verdict"] = "refused"
    else:
        record["verdict"] = "unbuilt"
    if answer.get("error"):
        text = re.split(r"\n+---", answer["error"], maxsplit=1)[0].strip()
        record["error"] = _neutral(text, folder)[:1200]
        record["step"] = answer["step"]
    if record["verdict"] != "accepted":
        record["log"] = _error_lines(folder)
    if "end" in texts:
        record.update(dumps.layouts(texts["end"], case["operator"]))
        record["mirrors"] = dumps.mirrors(texts["end"], case["devices"])
    if record["verdict"] == "accepted":
        record["communications"] = dumps.communications(texts["validate"], case["devices"])
        record["slices"] = dumps.slices(texts["validate"], case["operator"])
        record["parameters"] = dumps.parameters(texts["validate"])
    if "begin" in texts:
        record["shapes"] = dumps.slices(texts["begin"], case["operator"])[:1]
        record["begin"] = dumps.neutral(texts["begin"])
    return record


def _error_lines(folder: str) -> list[str]:
    """MindSpore's own ERROR lines: file, function and text, without time, process and addresses."""
    lines: list[str] = []
    with open(os.path.join(folder, "log"), encoding="utf-8", errors="replace") as stream:
        for line in stream:
            if match := _HEAD.match(line):
                file, function, text = match.groups()
                lines.append(f"{os.path.basename(file)} {function}: {_neutral(text, folder)}"[:600])
    return list(dict.fromkeys(lines))[:8]


def _neutral(text: str, folder: str) -> str:
    text = re.sub(r"0x[0-9a-f]{6,}", "0x0", text.replace(folder, "."))
    return re.sub(r"/\S*?/site-packages/", "", text)
