"""How fast dumps are read, beside plain Lark and beside MLIR's own parser.

``python benchmarks/read.py [--runs N] [--mlir-python PYTHON] [--quick]`` prints tables of CPU
time (medians; ratios are medians of ratios taken pair by pair, since machines are noisy).  It
asserts nothing.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from statistics import median
from typing import Any

from material import ROOT, corpus, folder_files, large, renumbered

HERE = Path(__file__).parent
_ENVIRONMENT = {**os.environ, "PYTHONPATH": f"{ROOT}{os.pathsep}{HERE}", "PYTHONHASHSEED": "0"}


def run(*arguments: str, python: str = sys.executable) -> tuple[dict[str, Any], float, float]:
    """Result of a process, its CPU seconds (itself and its children) and its wall seconds."""
    begun = time.perf_counter()
    process = subprocess.Popen(
        [python, *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=_ENVIRONMENT
    )
    assert process.stdout is not None
    assert process.stderr is not None
    output, errors = process.stdout.read(), process.stderr.read()
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    wall = time.perf_counter() - begun
    if process.returncode:
        lines = errors.decode(errors="replace").strip().splitlines()
        raise RuntimeError(lines[-1] if lines else f"exit status {process.returncode}")
    found = json.loads(output) if output.startswith(b"{") else {}
    return found, usage.ru_utime + usage.ru_stime, wall


def work(kind: str, *arguments: str) -> tuple[dict[str, Any], float]:
    """Result and CPU seconds of one worker."""
    result, cpu, _ = run(str(HERE / "worker.py"), kind, *arguments)
    return result, cpu


def table(title: str, head: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    print(f"\n{title}\n")
    widths = [max(len(row[i]) for row in (head, *rows)) for i in range(len(head))]
    for row in (head, ["-" * width for width in widths], *rows):
        cells = [row[0].ljust(widths[0])]
        cells += [cell.rjust(width) for cell, width in zip(row[1:], widths[1:], strict=True)]
        print("  ".join(cells).rstrip())


def rates(seconds: float, size: int, nodes: int) -> list[str]:
    return [
        f"{seconds * 1000:,.0f} ms",
        f"{size / 1e6 / seconds:,.1f}",
        f"{nodes / seconds:,.0f}",
    ]


def paired(ours: Sequence[float], theirs: Sequence[float]) -> float:
    """Median of the ratios of runs that stood next to each other."""
    return median(other / own for own, other in zip(ours, theirs, strict=False))


HEAD = ("", "CPU", "MB/s", "statements/s", "irtool's cold read is faster by")


def large_dumps(options: argparse.Namespace, folder: Path, module: Module | None) -> None:
    """The tables of the two large dumps, and of MLIR's parser measured between their runs."""
    origin, dumps = large()
    print(f"\nLarge dumps: {origin}")
    paths: dict[str, Path] = {}
    for name, data in dumps.items():
        paths[name] = folder / f"{name}.ir"
        paths[name].write_bytes(data)
        paths[f"{name}'"] = folder / f"{name}_renumbered.ir"
        paths[f"{name}'"].write_bytes(renumbered(data))
    for name in dumps:
        other = next((each for each in dumps if each != name), name)
        order = [name, f"{name}'", name, other]
        size = [paths[each].stat().st_size for each in order]
        process: list[float] = []
        reads: list[list[float]] = []
        plain: list[float] = []
        trees: list[float] = []
        nodes, kept = [0], dict[str, Any]()
        cpp: list[dict[str, Any]] = []
        for turn in range(options.runs):
            _, bare, _ = run("-c", "pass")
            kept, whole = work("irtool", *(str(paths[each]) for each in order[:1]))
            process.append(whole - bare)
            kept, _ = work("irtool", *(str(paths[each]) for each in order))
            nodes = kept["nodes"]
            reads.append([kept["cold"], *kept["later"]])
            if module is not None:
                cpp.append(module.parse())
            if turn < options.plain_runs:
                plain.append(work("plain", str(paths[name]))[0]["cpu"])
                trees.append(work("tree", str(paths[name]))[0]["cpu"])
        columns = list(zip(*reads, strict=True))
        cold = median(columns[0])
        rows = [
            [
                "irtool cold, whole process less bare Python",
                *rates(median(process), size[0], nodes[0]),
                "",
            ],
            [
                "irtool cold, from load() with the parser built in it",
                *rates(cold, size[0], nodes[0]),
                "1",
            ],
            [
                "irtool steady, the same network compiled again (renumbered)",
                *rates(median(columns[1]), size[1], nodes[1]),
                "",
            ],
            [
                "irtool steady, the same file again",
                *rates(median(columns[2]), size[2], nodes[2]),
                "",
            ],
            [
                f"irtool then first sight of another dump ({other})",
                *rates(median(columns[3]), size[3], nodes[3]),
                "",
            ],
            [
                "plain Lark, the same models",
                *rates(median(plain), size[0], nodes[0]),
                f"{paired(columns[0], plain):.0f}",
            ],
            [
                "plain Lark, trees only",
                *rates(median(trees), size[0], nodes[0]),
                f"{paired(columns[0], trees):.0f}",
            ],
        ]
        table(f"{name}: {size[0] / 1e6:.1f} MB, {nodes[0]:,} statements", HEAD, rows)
        print(f"(importing irtool, not in the cold read: {kept['import'] * 1000:.0f} ms;"
              f" touching every node, in all of them: {kept['touch'] * 1000:.0f} ms)")  # fmt: skip
        if cpp:
            beside_mlir(name, [each / size[1] for each in columns[1]], size[1] / nodes[1], cpp)
    memory(paths["validate"], paths["begin"])


def memory(validate: Path, begin: Path) -> None:
    rows: list[list[str]] = []
    for path, name in ((validate, "validate"), (begin, "begin")):
        again = path.with_name(f"{name}_renumbered.ir")
        traced, _ = work("memory", str(path), str(again))
        grown, _ = work("resident", str(path))
        rows.append(
            [
                name,
                f"{traced['model'] / traced['nodes'][1]:,.0f}",
                f"{traced['first'] / traced['nodes'][0]:,.0f}",
                f"{grown['grown'] / grown['nodes']:,.0f}",
                f"{path.stat().st_size / traced['nodes'][0]:,.0f}",
            ]
        )
    head = ("", "the model alone", "with templates and memos", "resident growth", "text")
    table("Memory: bytes a statement", head, rows)


def many_dumps(options: argparse.Namespace, folder: Path) -> None:
    files = folder_files()
    if not files:
        print("\nNo corpus, so no folder of small dumps.  Set IRTOOL_CORPUS.")
        return
    listing, part = folder / "all.txt", files[:: options.every]
    listing.write_text("\n".join(map(str, files)))
    few = folder / "few.txt"
    few.write_text("\n".join(map(str, part)))
    size, few_size = (sum(path.stat().st_size for path in some) for some in (files, part))
    whole: list[float] = []
    cold: list[float] = []
    ours: list[float] = []
    plain: list[float] = []
    trees: list[float] = []
    result: dict[str, Any] = {}
    count = 0
    for turn in range(options.runs):
        _, bare, _ = run("-c", "pass")
        result, cpu = work("folder", str(listing))
        whole.append(cpu - bare)
        cold.append(result["cold"])
        if turn < options.plain_runs:
            ours.append(work("folder", str(few))[0]["cold"])
            other, _ = work("plain", *map(str, part))
            count = other["nodes"]
            plain.append(other["cpu"])
            trees.append(work("tree", *map(str, part))[0]["cpu"])
    nodes = result["nodes"]
    rows = [
        ["irtool cold, whole process less bare Python", *rates(median(whole), size, nodes), ""],
        ["irtool cold, reading alone", *rates(median(cold), size, nodes), ""],
        [f"irtool cold, every {options.every}th file", *rates(median(ours), few_size, count), "1"],
        [
            "plain Lark, the same models, these files",
            *rates(median(plain), few_size, count),
            f"{paired(ours, plain):.1f}",
        ],
        [
            "plain Lark, trees only, these files",
            *rates(median(trees), few_size, count),
            f"{paired(ours, trees):.1f}",
        ],
    ]
    table(
        f"verdicts: {len(files):,} dumps of {len(list((corpus() or ROOT).glob('verdicts/*/')))}"
        f" compilations, {size / 1e6:.0f} MB, {nodes:,} statements, one process",
        HEAD,
        rows,
    )
    walls: dict[str, list[float]] = {"1": [], "2": []}
    try:
        for _ in range(options.runs):
            for jobs, seen in walls.items():
                seen.append(work("jobs", jobs, str(listing))[0]["wall"])
    except RuntimeError as error:
        print(f"\n--jobs was not measured: {error}")
        return
    table(
        "The same folder in several processes (wall time)",
        ("--jobs", "seconds", "speed-up"),
        [
            ["1", f"{median(walls['1']):.2f}", "1"],
            ["2", f"{median(walls['2']):.2f}", f"{paired(walls['2'], walls['1']):.2f}"],
        ],
    )


class Module:
    """A StableHLO module that MLIR's own parser reads."""

    def __init__(self, python: str, folder: Path) -> None:
        self._python = python
        self._path = str(folder / "module.mlir")
        run(str(HERE / "mlir.py"), "make", self._path, python=python)

    def parse(self) -> dict[str, Any]:
        """CPU seconds of parsing and of touching, several times in one process."""
        return run(str(HERE / "mlir.py"), "parse", self._path, python=self._python)[0]

    @classmethod
    def made(cls, options: argparse.Namespace, folder: Path) -> Module | None:
        """The module, or None where jax is missing."""
        try:
            return cls(options.mlir_python, folder)
        except (RuntimeError, OSError) as error:
            print(f"\nNo MLIR: {error}.  `pip install jax`, or give --mlir-python.")
            return None


def beside_mlir(
    name: str, steady: Sequence[float], dense: float, found: Sequence[dict[str, Any]]
) -> None:
    """MLIR's figures; ``steady`` is irtool's seconds a byte in the runs next to them."""
    size, nodes = found[0]["bytes"], found[0]["nodes"]
    parse = [median(each["parse"]) for each in found]
    both = [median(each["parse"]) + median(each["touch"]) for each in found]
    rows = [
        ["parse (C++)", *rates(median(parse), size, nodes)],
        ["parse, then touch through its Python bindings", *rates(median(both), size, nodes)],
    ]
    table(
        f"jaxlib's MLIR parser, run by run beside {name}: StableHLO of a GPT,"
        f" {size / 1e6:.1f} MB, {nodes:,} operations, {size / nodes:.0f} bytes each",
        (*HEAD[:3], "operations/s"),
        rows,
    )
    ours = [each * size for each in steady]
    parse_ratio, both_ratio = 1 / paired(ours, parse), 1 / paired(ours, both)
    factor = dense * nodes / size
    print(
        f"A byte: irtool (steady, touched) takes {parse_ratio:.2f} of the C++ parse,"
        f" {both_ratio:.2f} of parse and touch.  A statement has {dense:,.0f} bytes:"
        f" {factor * parse_ratio:.1f} and {factor * both_ratio:.1f} of the time an operation."
    )


def start_up(options: argparse.Namespace) -> None:
    try:
        runs = [run("-m", "irtool.cli.main", "--help") for _ in range(10)]
    except RuntimeError as error:
        print(f"\nirtool --help was not measured: {error}")
        return
    print(
        f"\nirtool --help: {median(wall for *_, wall in runs):.3f} s wall,"
        f" {median(cpu for _, cpu, _ in runs):.3f} s CPU (median of 10)"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--plain-runs", type=int, default=2, help="plain Lark is slow")
    parser.add_argument("--every", type=int, default=20, help="plain Lark reads every Nth file")
    parser.add_argument("--mlir-python", default=sys.executable, help="a Python that has jax")
    options = parser.parse_args()
    options.plain_runs = max(1, min(options.plain_runs, options.runs))
    print(f"Python {platform.python_version()}, {os.cpu_count()} CPUs, {platform.machine()};"
          f" medians of {options.runs} runs")  # fmt: skip
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        large_dumps(options, folder, Module.made(options, folder))
        many_dumps(options, folder)
        start_up(options)


if __name__ == "__main__":
    main()
