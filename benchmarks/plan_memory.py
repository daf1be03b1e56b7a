"""Whether plans keep a limit of memory once MindSpore compiled them.

python benchmarks/plan_memory.py --python PYTHON --compiler SCRIPT --networks FILE
                                 [--out FOLDER] [CASE ...]

PYTHON, SCRIPT, FILE and cases as for ``plan_accepted.py``. MindSpore compiles each network with
sharding propagation; irtool plans from its begin dump without a limit and under parts of what that
takes, MindSpore compiles each plan, and what ``irtool memory`` counts in the validate dump is held
against what the plan says and against its limit. Exit status: 1 if a plan is above its limit by
more than 5 %, or was refused.
"""

from __future__ import annotations

import json
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from plan_accepted import CASE, Compiler
from plan_bytes import arguments_of_cases, dump_in

import irtool
from irtool.cluster.account import Account, compiled_account
from irtool.cluster.memory import memory

CASES = ("gpt2_8", "mlp_8")
PARTS = (0.85, 0.6)
"""Limits, as parts of what the plan without one takes."""
ABOVE = 1.05
"""How far a compiled plan may be above its limit."""


def planned(mindspore: Compiler, case: str, begin: Path, name: str, limit: int) -> Path | str:
    """The strategy file of a plan (its answer beside it), or why there is none."""
    options = ["--memory", str(limit)] if limit else []
    saved = mindspore.out / case / "saved.json"
    told = mindspore.irtool(case, begin, f"{name}.plan.json", "--format", "json", *options)
    if isinstance(told, str):
        return told
    names = ("--format", "strategy", "--names", str(saved))
    return mindspore.irtool(case, begin, f"{name}.json", *names, *options)


def compiled(mindspore: Compiler, case: str, name: str, file: Path) -> Account | str:
    """What a compiled plan holds, or why MindSpore refused it."""
    folder, problem = mindspore.compile(case, name, "--mode", "sp", "--load", str(file))
    validate = dump_in(folder, "_validate")
    if problem or validate is None:
        return problem or "no dump"
    return compiled_account(memory(irtool.load(str(validate))))


def run(mindspore: Compiler, case: str) -> bool:
    """Plan and compile a case under all limits; whether every plan kept its own."""
    saved = mindspore.out / case / "saved.json"
    folder, problem = mindspore.compile(case, "sp", "--mode", "sp", "--save", str(saved))
    begin = dump_in(folder, "step_parallel_begin")
    if begin is None:
        print(f"{case}: no begin dump: {problem}")
        return False
    most, is_kept = 0, True
    for part in (None, *PARTS):
        limit = int(most * part) if part is not None else 0
        name = "free" if part is None else f"limit_{part}"
        file = planned(mindspore, case, begin, name, limit)
        if isinstance(file, str):
            print(f"{case} {name}: no plan: {file}")
            continue
        told = json.loads((file.parent / f"{name}.plan.json").read_text(encoding="utf-8"))
        said = told["memory_bytes"]["total"]
        most = most or said
        found = compiled(mindspore, case, name, file)
        if isinstance(found, str):
            print(f"{case} {name}: refused: {found}")
            is_kept = False
            continue
        keeps = not limit or found.total <= limit * ABOVE
        is_kept = is_kept and keeps
        print(
            f"{case} {name}: planned {said:,}, compiled {found.total:,} "
            f"({100 * (said / found.total - 1):+.2f} %)"
            + (f", limit {limit:,}{'' if keeps else ': NOT KEPT'}" if limit else ""),
            flush=True,
        )
    return is_kept


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the cases."""
    parser = arguments_of_cases(__doc__, CASES)
    given = parser.parse_args(arguments)
    for case in given.cases:
        if CASE.fullmatch(case) is None:
            parser.error(f"no case {case}")
    out = given.out or Path(tempfile.mkdtemp(prefix="plan_memory_"))
    mindspore = Compiler(
        given.python,
        given.compiler.resolve(),
        given.networks.resolve(),
        Path(out).resolve(),
        given.again,
        given.alltoall,
        (),
    )
    kept = [run(mindspore, case) for case in given.cases or CASES]
    return 0 if all(kept) else 1


if __name__ == "__main__":
    sys.exit(main())
