"""Hold what ``irtool calibrate`` predicts of collectives to what processes of this machine take.

python benchmarks/measured_collectives.py --torch PYTHON [--ranks 2,3,4] [--rounds N]

PYTHON is an interpreter with PyTorch, whose gloo backend carries the collectives from process to
process.  Sizes are measured in pairs of neighbours: of each pair one size calibrates, the other is
held back and predicted.  Groups of the last number of ranks calibrate nothing: they are predicted
by the fit of the links.  A line for each collective and number of ranks.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import replace
from statistics import median

from irtool.cluster.calibration import Sample, calibrate
from irtool.cluster.machine import Machine, default_machine
from irtool.ir.units import bytes_text, seconds_text

_WORKER = """
import json, os, sys, time
import torch
import torch.distributed as dist

rank, ranks, store, sizes, rounds = (
    int(sys.argv[1]), int(sys.argv[2]), sys.argv[3], json.loads(sys.argv[4]), int(sys.argv[5]))
torch.set_num_threads(1)
dist.init_process_group("gloo", init_method=f"file://{store}", rank=rank, world_size=ranks)


def call(op, size):
    count = max(ranks, size // 4 // ranks * ranks)
    whole, part = torch.ones(count), torch.ones(count // ranks)
    other = torch.empty(count)
    calls = {
        "AllReduce": lambda: dist.all_reduce(whole),
        "AllGather": lambda: dist.all_gather_into_tensor(other, part),
        "ReduceScatter": lambda: dist.reduce_scatter_tensor(part, whole),
        "AlltoAll": lambda: dist.all_to_all_single(other, whole),
        "Broadcast": lambda: dist.broadcast(whole, 0),
        "Send": lambda: (dist.send(whole, 1) if rank == 0 else dist.recv(whole, 0))
        if rank < 2 else None,
    }
    return calls[op], count * 4


for op in ("AllReduce", "AllGather", "ReduceScatter", "AlltoAll", "Broadcast", "Send"):
    for size in sizes:
        if op == "Send" and ranks > 2:
            continue
        run, count = call(op, size)
        taken = []
        for turn in range(rounds + 2):
            dist.barrier()
            begun = time.perf_counter()
            run()
            mine = torch.tensor([time.perf_counter() - begun], dtype=torch.float64)
            dist.all_reduce(mine, dist.ReduceOp.MAX)
            if turn > 1:
                taken.append(mine.item())
        if rank == 0:
            row = {"op": op, "bytes": count, "seconds": min(taken)}
            print("ROW", json.dumps(row), flush=True)
dist.destroy_process_group()
"""
SIZES = tuple(int(4096 * 2 ** (step / 2)) // 48 * 48 for step in range(24))
"""4 KiB to 11 MiB, two for each doubling; all can be cut among 2, 3 and 4 ranks."""


def main() -> int:
    """Measure, fit, and print what is predicted beside what was measured."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--torch", required=True, help="a Python with PyTorch")
    parser.add_argument("--ranks", default="2,4,3")
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--keep", help="write what was measured here, as JSON")
    options = parser.parse_args()
    counts = [int(each) for each in options.ranks.split(",")]
    rows = [each for ranks in counts for each in measured(options.torch, ranks, options.rounds)]
    if options.keep:
        kept = [[each.op, each.ranks, each.bytes, each.seconds] for each in rows]
        with open(options.keep, "w", encoding="utf-8") as stream:
            json.dump(kept, stream)
    unseen = [each for each in rows if each.ranks == counts[-1] and len(counts) > 1]
    known, held = split([each for each in rows if each not in unseen])
    base = default_machine()
    found = calibrate(known, base)
    print("| collective | ranks | fitted to | held back | median error | worst | of the links |")
    print("| --- | --- | --- | --- | --- | --- | --- |")
    links = without_groups(found.machine)
    for op, ranks in dict.fromkeys((each.op, each.ranks) for each in rows):
        own = [each for each in held if (each.op, each.ranks) == (op, ranks)]
        fit = sum((each.op, each.ranks) == (op, ranks) for each in known)
        own = own or [each for each in rows if (each.op, each.ranks) == (op, ranks)]
        print(line(op, ranks, fit, own, found.machine, links))
    print()
    print("| collective | ranks | size | measured | predicted | of the links |")
    print("| --- | --- | --- | --- | --- | --- |")
    for each in [*held, *unseen][::4]:
        told = [seconds_text(machine_seconds(one, each)) for one in (found.machine, links)]
        print(
            f"| {each.op} | {each.ranks} | {bytes_text(int(each.bytes))} | "
            f"{seconds_text(each.seconds)} | {' | '.join(told)} |"
        )
    return 0


def measured(python: str, ranks: int, rounds: int) -> list[Sample]:
    """Seconds of each collective and size on some processes, as the slowest of them has it.

    The quickest of the rounds: other programs have the processors too.
    """
    with tempfile.TemporaryDirectory() as folder:
        words = [python, "-c", _WORKER]
        rest = [str(ranks), os.path.join(folder, "store"), json.dumps(SIZES), str(rounds)]
        workers = [
            subprocess.Popen([*words, str(rank), *rest], stdout=subprocess.PIPE, text=True)
            for rank in range(ranks)
        ]
        outputs = [each.communicate()[0] for each in workers]
    if any(each.returncode for each in workers):
        raise SystemExit(f"{ranks} processes did not end well")
    found: list[Sample] = []
    for each in outputs[0].splitlines():
        if each.startswith("ROW "):
            row = json.loads(each.removeprefix("ROW "))
            found.append(Sample(row["op"], ranks, row["bytes"], row["seconds"]))
    return found


def split(rows: Sequence[Sample]) -> tuple[list[Sample], list[Sample]]:
    """What calibrates, and what is held back: every other size of a collective."""
    known: list[Sample] = []
    held: list[Sample] = []
    for key in dict.fromkeys((each.op, each.ranks) for each in rows):
        own = sorted(
            (each for each in rows if (each.op, each.ranks) == key), key=lambda each: each.bytes
        )
        known += own[::2]
        held += own[1::2]
    return known, held


def without_groups(machine: Machine) -> Machine:
    """The machine whose links alone are fitted."""
    return replace(machine, groups=())


def machine_seconds(machine: Machine, row: Sample) -> float:
    """What a machine predicts of a measured row."""
    return machine.seconds(row.op, int(row.bytes), row.group)


def line(
    op: str, ranks: int, fit: int, rows: Sequence[Sample], machine: Machine, links: Machine
) -> str:
    """A line of the table: relative errors of rows that calibrated nothing."""
    errors = [abs(machine_seconds(machine, each) / each.seconds - 1) for each in rows]
    others = [abs(machine_seconds(links, each) / each.seconds - 1) for each in rows]
    cells = [
        op, str(ranks), f"{fit} sizes", f"{len(rows)} sizes", f"{100 * median(errors):.0f} %",
        f"{100 * max(errors):.0f} %", f"{100 * median(others):.0f} %",
    ]  # fmt: skip
    return f"| {' | '.join(cells)} |"


if __name__ == "__main__":
    sys.exit(main())
