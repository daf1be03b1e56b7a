"""Comparing tensor dumps: CPU seconds and memory of irtool and of msprobe on the same dumps.

    python benchmarks/tensors.py generate OUT APIS statistics|tensor
    python benchmarks/tensors.py measure OUT [--msprobe /path/to/bin/msprobe]

``generate`` writes two dumps in msprobe's own form (three tensors of 1024 Float32 a call), the
second one apart from the first by rounding.  ``measure`` prints CPU time (user and system, all
processes) and the largest resident memory.
"""

from __future__ import annotations

import argparse
import io
import json
import os
import resource
import struct
import subprocess
import sys
import tempfile
import time
import zipfile

import numpy as np

SIZE = 1024


def torch_file(values: np.ndarray) -> bytes:
    """A tensor as torch.save writes it."""
    shape = b"".join(b"K" + bytes([n]) if n < 256 else b"M" + struct.pack("<H", n)
                     for n in values.shape)  # fmt: skip
    count = struct.pack("<H", values.size)
    pickle = (
        b"\x80\x02ctorch._utils\n_rebuild_tensor_v2\nq\x00((X\x07\x00\x00\x00storageq\x01"
        b"ctorch\nFloatStorage\nq\x02X\x01\x00\x00\x000q\x03X\x03\x00\x00\x00cpuq\x04M"
        + count
        + b"tq\x05QK\x00"
        + shape
        + b"\x85q\x06K\x01\x85q\x07\x89ccollections\nOrderedDict\nq\x08)Rq\ttq\nRq\x0b."
    )
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        archive.writestr("archive/data.pkl", pickle)
        archive.writestr("archive/byteorder", "little")
        archive.writestr("archive/data/0", values.tobytes())
        archive.writestr("archive/version", "3\n")
    return buffer.getvalue()


def generate(out: str, calls: int, task: str) -> None:
    for side, seed in (("a", 0), ("b", 1)):
        folder = os.path.join(out, side, "step0", "rank0")
        tensors = os.path.join(folder, "dump_tensor_data")
        os.makedirs(tensors, exist_ok=True)
        noise = np.random.default_rng(100 + seed)
        data = {}
        for call in range(calls):
            name = f"Functional.linear.{call}.forward"
            values = np.random.default_rng(call).standard_normal((3, SIZE)).astype(np.float32)
            values *= 1 + 1e-7 * noise.standard_normal((3, SIZE)).astype(np.float32)
            leaves = []
            for place, tensor in enumerate(values):
                leaf = {
                    "type": "torch.Tensor", "dtype": "torch.float32", "shape": [SIZE],
                    "Max": float(tensor.max()), "Min": float(tensor.min()),
                    "Mean": float(tensor.mean()), "Norm": float(np.linalg.norm(tensor)),
                    "requires_grad": True,
                }  # fmt: skip
                if task == "tensor":
                    way = f"input.{place}" if place < 2 else "output.0"
                    leaf["data_name"] = f"{name}.{way}.pt"
                    with open(os.path.join(tensors, leaf["data_name"]), "wb") as stream:
                        stream.write(torch_file(tensor))
                leaves.append(leaf)
            data[name] = {"input_args": leaves[:2], "input_kwargs": {}, "output": leaves[2:]}
        document = {
            "task": "tensor" if task == "tensor" else "statistics", "level": "L1",
            "framework": "pytorch",
            "dump_data_dir": os.path.abspath(tensors) if task == "tensor" else None, "data": data,
        }  # fmt: skip
        for file, content in (
            ("dump.json", document),
            ("stack.json", {"0": [list(data), ["File model.py, line 1, in forward, \n x = f(x)"]]}),
            ("construct.json", {}),
        ):
            with open(os.path.join(folder, file), "w") as stream:
                json.dump(content, stream)


def timed(command: list[str], **variables: str) -> tuple[float, float, int]:
    """Wall and CPU seconds, and mebibytes, of a command."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    start = time.monotonic()
    process = subprocess.Popen(
        command, env={**os.environ, **variables}, stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )  # fmt: skip
    _, _, usage = os.wait4(process.pid, 0)
    wall = time.monotonic() - start
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    del before, after
    return wall, usage.ru_utime + usage.ru_stime, usage.ru_maxrss >> 10


def measure(out: str, msprobe: str | None) -> None:
    sides = [os.path.join(out, side) for side in ("a", "b")]
    ours = timed(
        [sys.executable, "-m", "irtool", "diff", *sides, "-f", "json", "-o", os.devnull],
        OMP_NUM_THREADS="1", OPENBLAS_NUM_THREADS="1",
    )  # fmt: skip
    print(f"irtool   wall {ours[0]:7.1f} s  CPU {ours[1]:7.1f} s  {ours[2]:6,} MiB", flush=True)
    if msprobe is None:
        return
    with tempfile.TemporaryDirectory() as folder:
        theirs = timed(
            [msprobe, "compare", "-tp", *_step(sides[1]), "-gp", *_step(sides[0]), "-o", folder],
            OMP_NUM_THREADS="1",
        )
        rows = 0
        for name in os.listdir(folder):
            if name.endswith(".csv"):
                with open(os.path.join(folder, name), "rb") as stream:
                    rows += sum(1 for _ in stream)
    print(f"msprobe  wall {theirs[0]:7.1f} s  CPU {theirs[1]:7.1f} s  {theirs[2]:6,} MiB "
          f"({rows:,} lines)")  # fmt: skip
    print(f"irtool takes {theirs[1] / ours[1]:.1f} times less CPU time")


def _step(side: str) -> list[str]:
    return [os.path.join(side, "step0", "rank0", "dump.json")]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    commands = parser.add_subparsers(dest="command", required=True)
    made = commands.add_parser("generate")
    made.add_argument("out")
    made.add_argument("calls", type=int)
    made.add_argument("task", choices=("statistics", "tensor"))
    asked = commands.add_parser("measure")
    asked.add_argument("out")
    asked.add_argument("--msprobe")
    given = parser.parse_args()
    if given.command == "generate":
        generate(given.out, given.calls, given.task)
    else:
        measure(given.out, given.msprobe)


if __name__ == "__main__":
    main()
