"""Comparing tensor dumps: CPU seconds and memory of irtool and of msprobe on the same dumps.

    python benchmarks/tensors.py --msprobe /path/to/bin/msprobe
    python benchmarks/tensors.py --only "50,000 APIs" --jobs 4
    python benchmarks/tensors.py --memory

Dumps are made in msprobe's own form (three tensors of 1024 Float32 a call), the second one apart
from the first by rounding.  Both programs get the same two folders and write their result to a
file; files are read once before each, so that neither waits for the disk.  CPU time is user and
system time of the whole process and its children, from start-up to exit; memory is the largest
resident set of one process.

``--memory`` compares two tensors that are larger each time, and prints how memory grows.
"""

from __future__ import annotations

import argparse
import compileall
import io
import json
import os
import struct
import subprocess
import sys
import tempfile
import time
import zipfile
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

SIZE = 1024
ROWS = (
    ("1,000 APIs, statistics", 1_000, False),
    ("10,000 APIs, statistics", 10_000, False),
    ("50,000 APIs, statistics", 50_000, False),
    ("10,000 pairs of tensors", 3_334, True),
    ("50,000 pairs of tensors", 16_667, True),
)


@dataclass(frozen=True)
class Spent:
    """What a process and its children took."""

    wall: float
    cpu: float
    memory: int
    status: int


# -- dumps ---------------------------------------------------------------------------------------


def torch_file(values: NDArray[np.float32]) -> bytes:
    """A vector as torch.save writes it."""
    count = struct.pack("<H", values.size)
    pickle = (
        b"\x80\x02ctorch._utils\n_rebuild_tensor_v2\nq\x00((X\x07\x00\x00\x00storageq\x01"
        b"ctorch\nFloatStorage\nq\x02X\x01\x00\x00\x000q\x03X\x03\x00\x00\x00cpuq\x04M"
        + count
        + b"tq\x05QK\x00M"
        + count
        + b"\x85q\x06K\x01\x85q\x07\x89ccollections\nOrderedDict\nq\x08)Rq\ttq\nRq\x0b."
    )
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        archive.writestr("archive/data.pkl", pickle)
        archive.writestr("archive/byteorder", "little")
        archive.writestr("archive/data/0", values.tobytes())
        archive.writestr("archive/version", "3\n")
    return buffer.getvalue()


def leaf(values: NDArray[np.float32]) -> dict[str, object]:
    """A tensor as msprobe states it."""
    return {
        "type": "torch.Tensor", "dtype": "torch.float32", "shape": [SIZE],
        "Max": float(values.max()), "Min": float(values.min()), "Mean": float(values.mean()),
        "Norm": float(np.linalg.norm(values)), "requires_grad": True,
    }  # fmt: skip


def generate(out: Path, calls: int, with_tensors: bool) -> None:
    """Two dumps of one step."""
    for side, seed in (("a", 100), ("b", 101)):
        folder = out / side / "step0" / "rank0"
        tensors = folder / "dump_tensor_data"
        tensors.mkdir(parents=True)
        noise = np.random.default_rng(seed)
        data: dict[str, object] = {}
        for call in range(calls):
            name = f"Functional.linear.{call}.forward"
            values = np.random.default_rng(call).standard_normal((3, SIZE)).astype(np.float32)
            weight = values[1].copy()  # comes out of a checkpoint: the same on both sides
            values *= 1 + 1e-7 * noise.standard_normal((3, SIZE)).astype(np.float32)
            values[1] = weight
            leaves = [leaf(each) for each in values]
            if with_tensors:
                for way, each, found in zip(("input.0", "input.1", "output.0"), values, leaves,
                                            strict=True):  # fmt: skip
                    found["data_name"] = f"{name}.{way}.pt"
                    (tensors / f"{name}.{way}.pt").write_bytes(torch_file(each))
            data[name] = {"input_args": leaves[:2], "input_kwargs": {}, "output": leaves[2:]}
        document = {
            "task": "tensor" if with_tensors else "statistics", "level": "L1",
            "framework": "pytorch",
            "dump_data_dir": str(tensors.resolve()) if with_tensors else None, "data": data,
        }  # fmt: skip
        frames = ["File model.py, line 1, in forward, \n x = f(x)"]
        (folder / "dump.json").write_text(json.dumps(document))
        (folder / "stack.json").write_text(json.dumps({"0": [list(data), frames]}))
        (folder / "construct.json").write_text("{}")


# -- measuring -----------------------------------------------------------------------------------


def spent(command: list[str]) -> Spent:
    """Run a command to its end."""
    start = time.monotonic()
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    wall = time.monotonic() - start
    cpu = usage.ru_utime + usage.ru_stime
    return Spent(wall, cpu, usage.ru_maxrss >> 10, process.returncode)


def warmed(folder: Path) -> None:
    """Read every file once."""
    for file in folder.rglob("*"):
        if file.is_file():
            file.read_bytes()


def best(command: list[str], folder: Path, times: int) -> Spent:
    """The run that took the least CPU time."""
    found: list[Spent] = []
    for _ in range(times):
        warmed(folder)
        found.append(spent(command))
    return min(found, key=lambda one: one.cpu)


def irtool(folder: Path, result: Path, *options: str) -> list[str]:
    """The command that compares two dumps."""
    sides = [str(folder / side) for side in ("a", "b")]
    return [sys.executable, "-m", "irtool", "diff", *sides, "-f", "json", "-o", str(result),
            *options]  # fmt: skip


def compare(name: str, calls: int, with_tensors: bool, given: argparse.Namespace) -> None:
    """One row of the table."""
    with tempfile.TemporaryDirectory(dir=given.folder) as place:
        folder = Path(place)
        generate(folder, calls, with_tensors)
        result = folder / "result.json"
        ours = best(irtool(folder, result), folder, given.times)
        text = f"{name:26}{ours.cpu:8.2f}{ours.wall:8.2f}{ours.memory:7,}"
        if given.jobs:
            shared = best(irtool(folder, result, "--jobs", str(given.jobs)), folder, given.times)
            text += f"{shared.cpu:10.2f}{shared.wall:8.2f}"
        if given.msprobe:
            sides = [str(folder / side / "step0/rank0/dump.json") for side in ("b", "a")]
            command = [given.msprobe, "compare", "-tp", sides[0], "-gp", sides[1], "-o",
                       str(folder / "msprobe")]  # fmt: skip
            theirs = best(command, folder, given.times)
            tables = list((folder / "msprobe").glob("*.csv"))
            lines = sum(len(table.read_bytes().splitlines()) - 1 for table in tables[:1])
            if not lines:
                raise SystemExit(f"msprobe wrote no table (status {theirs.status})")
            text += f"{theirs.cpu:10.2f}{theirs.wall:8.2f}{theirs.memory:7,}"
            text += f"{theirs.cpu / ours.cpu:9.1f}"
        print(text, flush=True)


def memory(folder: str | None) -> None:
    """Memory by the size of two tensors."""
    print("two tensors of MiB     CPU s   wall s    MiB")
    for size in (1, 64, 512, 1024):
        with tempfile.TemporaryDirectory(dir=folder) as place:
            for side in ("a", "b"):
                path = Path(place, side)
                path.mkdir()
                values = np.lib.format.open_memmap(path / "x.npy", "w+", np.float32, (size << 18,))
                for start in range(0, values.size, 1 << 22):
                    values[start : start + (1 << 22)] = start % 1000 + (side == "b") * 1e-3
                del values
            found = best(irtool(Path(place), Path(place, "r.json")), Path(place), 1)
            print(f"{size:18,}{found.cpu:10.2f}{found.wall:9.2f}{found.memory:7,}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--msprobe", help="its command, to be measured on the same dumps")
    parser.add_argument("--jobs", type=int, help="also with so many processes")
    parser.add_argument("--only", default="", help="rows whose name holds this")
    parser.add_argument("--times", type=int, default=2, help="runs of which the best counts")
    parser.add_argument("--folder", help="where the dumps are made (900 MB for the largest)")
    parser.add_argument("--memory", action="store_true", help="memory by the size of tensors")
    given = parser.parse_args()
    # Bytecode as an installation leaves it, whatever the environment says of writing any.
    compileall.compile_dir(Path(__file__).parent.parent / "irtool", quiet=1)
    if given.memory:
        memory(given.folder)
        return
    head = f"{'':26}{'CPU s':>8}{'wall s':>8}{'MiB':>7}"
    if given.jobs:
        head += f"{f'--jobs {given.jobs}':>10}{'wall s':>8}"
    if given.msprobe:
        head += f"{'msprobe':>10}{'wall s':>8}{'MiB':>7}{'times':>9}"
    print(head)
    for name, calls, with_tensors in ROWS:
        if given.only in name:
            compare(name, calls, with_tensors, given)


if __name__ == "__main__":
    main()
