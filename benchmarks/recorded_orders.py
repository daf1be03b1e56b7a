"""Orders of collectives with random faults: ``irtool comm hang`` against MindSpore's own checker.

    python benchmarks/recorded_orders.py --mindspore PYTHON --seed 7 --sets 40

Draws sets of ranks on a grid of tensor and data parallel, with transfers between neighbours, writes
their ``comm_execute_order.csv``, plants at most one fault, and asks both.  MindSpore's checker sees
no shapes of collectives; a set that hangs by these alone is unseen.  Exit 1: verdicts differ.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import json
import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path
from random import Random

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

HEADER = (
    "index,group,comm_rank,primitive,src_rank,dest_rank,root_rank,input_shape,input_type,"
    "output_shape,output_type,input_size,output_size"
)
FAULTS = (
    "none", "swapped", "none", "removed", "swapped", "another group", "another operator",
    "another shape", "sends first", "receiver of another shape", "doubled",
)  # fmt: skip
_ASK = """
import importlib, json, sys
module = importlib.import_module("mindspore.utils.runtime_execution_order_check")
errors = []
class Logger:
    def error(self, text, *more): errors.append(str(text))
    def warning(self, *more): pass
    info = debug = warning
module.logger = Logger()
told = []
for folder in json.load(open(sys.argv[1])):
    errors.clear()
    module.runtime_execution_order_check(folder)
    told.append(list(errors))
json.dump(told, open(sys.argv[2], "w"))
"""
Row = tuple[str, str, str, str, str, str]
"""Group, ranks, primitive, source, destination, shape."""


def script(random: Random, width: int, height: int) -> dict[int, list[Row]]:
    """What ranks of a grid issue: rows are tensor parallel, columns data parallel."""
    ranks = width * height
    rows: dict[int, list[Row]] = {rank: [] for rank in range(ranks)}
    for _ in range(random.randint(2, 6)):
        kind = random.choice(("tensor", "data", "all", "transfer"))
        op = random.choice(("AllReduce", "AllGather", "ReduceScatter", "AlltoAll"))
        shape = f"({random.choice((4, 8, 16))}, {random.choice((8, 32))})"
        for rank in range(ranks):
            row, column = divmod(rank, width)
            tensor = [row * width + each for each in range(width)]
            data = [each * width + column for each in range(height)]
            if kind == "transfer":
                rows[rank] += _transfer(rank, tensor, shape)
                continue
            group = {"tensor": tensor, "data": data, "all": list(range(ranks))}[kind]
            if len(group) > 1:
                name = f"{len(group)}-{kind}{group[0]}"
                rows[rank].append((name, " ".join(map(str, group)), op, "", "", shape))
    return rows


def _transfer(rank: int, line: list[int], shape: str) -> list[Row]:
    """Each rank of a line receives of the one before it and sends to the next."""
    place, found = line.index(rank), list[Row]()
    group, ranks = f"{len(line)}-line{line[0]}", " ".join(map(str, line))
    if place:
        found.append((group, ranks, "Receive", str(line[place - 1]), "", shape))
    if place + 1 < len(line):
        found.append((group, ranks, "Send", "", str(line[place + 1]), shape))
    return found


def plant(random: Random, fault: str, rows: dict[int, list[Row]]) -> bool:
    """Change one rank; False where nothing fits."""
    rank = random.choice([each for each, mine in rows.items() if mine] or [0])
    mine = rows[rank]
    if not mine:
        return False
    place = random.randrange(len(mine))
    group, ranks, op, source, target, shape = mine[place]
    is_transfer = bool(source or target)
    match fault:
        case "removed":
            del mine[place]
        case "doubled":
            mine.insert(place, mine[place])
        case "swapped":
            other = random.randrange(len(mine))
            if mine[other] == mine[place]:
                return False
            mine[place], mine[other] = mine[other], mine[place]
        case "another group":
            mine[place] = (f"{group}x", ranks, op, source, target, shape)
            return not is_transfer
        case "another operator" if not is_transfer:
            other_op = "AllGather" if op == "AllReduce" else "AllReduce"
            mine[place] = (group, ranks, other_op, source, target, shape)
        case "another shape" if not is_transfer:
            mine[place] = (group, ranks, op, source, target, "(3, 5)")
        case "receiver of another shape" if is_transfer:
            mine[place] = (group, ranks, op, source, target, "(3, 5)")
        case "sends first":
            one, two = sorted(random.sample(sorted(rows), 2))
            for here, there in ((one, two), (two, one)):
                pair = (f"2-pair{one}{two}", f"{one} {two}")
                rows[here] += [(*pair, "Send", "", str(there), "(4)"),
                               (*pair, "Receive", str(there), "", "(4)")]  # fmt: skip
        case "none":
            pass
        case _:
            return False
    return True


def write(folder: Path, rows: dict[int, list[Row]]) -> None:
    """``comm_execute_order.csv`` of each rank."""
    for rank, mine in rows.items():
        place = folder / f"rank_{rank}" / "execute_order"
        place.mkdir(parents=True)
        lines = [HEADER]
        for number, (group, ranks, op, source, target, shape) in enumerate(mine, 1):
            cells = (number, group, ranks, op, source, target, "", shape, "Float32", shape,
                     "Float32", 128, 128)  # fmt: skip
            lines.append(",".join(f'"{cell}"' for cell in cells))
        (place / "comm_execute_order.csv").write_text("\n".join(lines) + "\n", encoding="utf-8")


def alike(rows: dict[int, list[Row]]) -> dict[int, list[Row]]:
    """The same with equal shapes of all collectives, which MindSpore's checker does not see."""
    return {
        rank: [(*row[:5], row[5] if row[3] or row[4] else "(4)") for row in mine]
        for rank, mine in rows.items()
    }


def hangs(folder: Path) -> bool:
    """What irtool says."""
    from irtool.cli.main import main as irtool

    told = io.StringIO()
    with contextlib.redirect_stdout(told), contextlib.redirect_stderr(io.StringIO()):
        irtool(["comm", "hang", str(folder), "--format", "json"])
    return bool(json.loads(told.getvalue())["hangs"])


def main() -> int:
    """Print where verdicts differ, and how many are the same."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--mindspore", required=True, help="a Python that has MindSpore")
    parser.add_argument("--seed", type=int, default=7)
    parser.add_argument("--sets", type=int, default=40)
    parser.add_argument("--told", action="store_true", help="print what the checker says")
    given = parser.parse_args()
    random = Random(given.seed)
    counts: Counter[str] = Counter()
    with tempfile.TemporaryDirectory() as name:
        root = Path(name)
        faults: list[str] = []
        orders: list[dict[int, list[Row]]] = []
        while len(faults) < given.sets:
            rows = script(random, random.choice((2, 2, 4)), random.choice((1, 2)))
            fault = FAULTS[len(faults) % len(FAULTS)]
            if any(rows.values()) and plant(random, fault, rows):
                write(root / str(len(faults)), rows)
                faults.append(fault)
                orders.append(rows)
        folders = [str(root / str(number)) for number in range(len(faults))]
        (root / "asked.json").write_text(json.dumps(folders), encoding="utf-8")
        words = [given.mindspore, "-c", _ASK, str(root / "asked.json"), str(root / "told.json")]
        subprocess.run(words, check=True, capture_output=True)
        told = json.loads((root / "told.json").read_text(encoding="utf-8"))
        for number, (fault, folder, text) in enumerate(zip(faults, folders, told, strict=True)):
            mine, theirs = hangs(Path(folder)), bool(text)
            kind = "same" if mine == theirs else "different"
            if mine and not theirs:
                write(root / f"{number}-alike", alike(orders[number]))
                kind = kind if hangs(root / f"{number}-alike") else "unseen"
            counts[kind] += 1
            counts[f"{kind}, hangs" if mine else kind + ", passes"] += 1
            if kind == "different" or given.told:
                print(f"{number} {fault}: irtool {mine}, MindSpore {theirs}", *text, sep="\n    ")
    print(dict(counts))
    return 1 if counts["different"] else 0


if __name__ == "__main__":
    sys.exit(main())
