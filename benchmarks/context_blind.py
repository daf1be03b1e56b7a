r"""Answers with nothing but the folder of a run, against those with its whole context given.

    MINDSPORE/bin/python benchmarks/networks/compile.py OUT --instrument FOLDER --seed 7 \
        --count 40 --kinds contexts
    python benchmarks/context_blind.py OUT [--list] [--rank-folder]

Every accepted network of OUT (``case.json`` beside its dumps) is asked twice by every command: as a
folder that holds its dumps alone, and with the context that it was compiled under. Answers are
compared without what they say of the context; where they differ, it is told whether the answer says
that it assumed something. Keys of the context are compared with what was given, too. With
``--rank-folder``, dumps stand in a folder of their rank, as a cluster leaves them.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import json
import re
import shutil
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, TypeGuard, cast

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from irtool.cli.main import main as irtool
from irtool.cluster.context.dataset import given_dataset, same_split
from irtool.sharding.network.context import ParallelContext

COMMANDS = (
    ("check",),
    ("cost",),
    ("plan",),
    ("memory",),
    ("pipeline",),
    ("comm", "groups"),
    ("comm", "hang"),
    ("comm", "reuse"),
    ("comm", "fuse"),
    ("recover", "--lost", "0"),
    ("lint", "--no-cache"),
)
_APART = frozenset(
    {"context", "assumptions", "contradictions", "origins", "seconds", "search_seconds", "path",
     "paths", "file", "files", "command", "asked", "given"}
)  # fmt: skip
"""Keys of an answer that say where it is from, not what it is."""
_SAID = re.compile(r"\bassum|\btaken (as|for)\b|default")


def run(argv: list[str]) -> tuple[int, bytes, str]:
    """Exit status, standard output and standard error of a command line."""
    stream, errors = io.BytesIO(), io.StringIO()
    output = io.TextIOWrapper(stream, encoding="utf-8")
    with contextlib.redirect_stdout(output), contextlib.redirect_stderr(errors):
        try:
            status = irtool(argv)
        except SystemExit as end:
            status = end.code if isinstance(end.code, int) else 2
        output.flush()
    return status, stream.getvalue(), errors.getvalue()


def ask(words: tuple[str, ...], folder: Path) -> tuple[int, object, str]:
    """Exit status, the answer without what stands apart, and all that was said of assumptions."""
    split = 2 if words[0] == "comm" else 1
    argv = [*words[:split], str(folder), *words[split:], "--format", "json"]
    status, output, errors = run(argv)
    try:
        told = json.loads(output)
    except ValueError:
        return status, None, errors
    said = str(told.get("assumptions", "")) if _is_table(told) else ""
    return status, bare(told), said


def bare(value: object) -> object:
    """An answer without the keys that stand apart."""
    if _is_table(value):
        return {key: bare(item) for key, item in value.items() if key not in _APART}
    if _is_list(value):
        return [bare(item) for item in value]
    return value


def _is_table(value: object) -> TypeGuard[dict[str, object]]:
    return isinstance(value, dict)


def _is_list(value: object) -> TypeGuard[list[object]]:
    return isinstance(value, list)


def differences(left: object, right: object, place: str = "") -> Iterator[str]:
    """Where two answers differ."""
    if _is_table(left) and _is_table(right):
        for key in sorted({*left, *right}):
            yield from differences(left.get(key), right.get(key), f"{place}.{key}")
    elif _is_list(left) and _is_list(right) and len(left) == len(right):
        for number, (one, other) in enumerate(zip(left, right, strict=True)):
            yield from differences(one, other, f"{place}[{number}]")
    elif left != right:
        yield f"{place}: {str(left)[:60]} for {str(right)[:60]}"


def keys_of(case: Mapping[str, object]) -> dict[str, object]:
    """The context that a network was compiled under, by key."""
    wanted = ParallelContext.from_mapping(case)
    return {
        "device_num": wanted.devices,
        "pipeline_stages": wanted.stages,
        "global_rank": wanted.rank,
        "parallel_mode": wanted.mode,
        "search_mode": wanted.search,
        "dataset_strategy": given_dataset(case),
        "enable_parallel_optimizer": wanted.parallel_optimizer,
        "enable_alltoall": wanted.enable_alltoall,
        "gradients_mean": wanted.gradients_mean,
        "pipeline_interleave": wanted.interleave,
    }


def compare_keys(folder: Path, case: Mapping[str, object]) -> Iterator[tuple[str, str, str]]:
    """Key, class, and both values, of one network that nobody says anything of."""
    _, output, _ = run(["check", str(folder), "--format", "json"])
    try:
        found = json.loads(output)["context"]
    except (ValueError, KeyError):
        yield "context", "no answer", ""
        return
    wanted = keys_of(case)
    stages = cast("int", wanted["pipeline_stages"])
    size = cast("int", wanted["device_num"]) // stages
    idle = {"search_mode"} if wanted["parallel_mode"] != "auto_parallel" else set[str]()
    idle |= {"pipeline_interleave"} if stages == 1 else set()
    for key, value in wanted.items():
        if key in idle:
            continue
        entry = found.get(key)
        if entry is None:
            yield key, "unknown", f"for {value}"
            continue
        same = entry["value"] == value
        if key == "dataset_strategy":
            split = entry["value"]
            split = given_dataset({key: split}) if split is not None else None
            same = same_split(cast("Any", split), cast("Any", value), size)
        kind = "assumed" if entry["origin"] == "assumed" else "shown"
        yield key, f"{kind}, {'equal' if same else 'other'}", f"{entry['value']} for {value}"


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder", type=Path)
    parser.add_argument("--list", action="store_true", help="tell every difference")
    parser.add_argument("--rank-folder", action="store_true")
    parser.add_argument("--only", default="", help="networks whose name holds this")
    options = parser.parse_args()
    keys: dict[str, Counter[str]] = {}
    answers: dict[str, Counter[str]] = {}
    total = 0
    for path in sorted(options.folder.glob("*/case.json")):
        case = json.loads(path.read_text(encoding="utf-8"))
        if not case.get("accepted") or options.only not in path.parent.name:
            continue
        total += 1
        with tempfile.TemporaryDirectory() as home:
            blind, told = Path(home) / "run", Path(home) / "told" / "run"
            rank = case["context"].get("global_rank", "0")
            inner = f"rank_{rank}" if options.rank_folder else ""
            shutil.copytree(path.parent, blind / inner, ignore=shutil.ignore_patterns("case.json"))
            shutil.copytree(path.parent, told / inner)
            for key, kind, values in compare_keys(blind, case["context"]):
                keys.setdefault(key, Counter())[kind] += 1
                if options.list and not kind.endswith("equal"):
                    print(f"  {path.parent.name}: {key}: {kind}: {values}")
            for words in COMMANDS:
                name = " ".join(words)
                one, other = ask(words, blind), ask(words, told)
                if other[1] is None:
                    kind = "no answer either way" if one[1] is None else "answered blind only"
                elif one[1] is None:
                    kind = "asked for more" if one[0] == 2 else "no answer"
                else:
                    found = list(differences(one[1], other[1]))
                    kind = "equal" if not found else "other, assumption said"
                    if found and not _SAID.search(one[2]):
                        kind = "other, nothing said"
                    if found and options.list:
                        print(f"  {path.parent.name}: {name}: {len(found)}, {found[0]}")
                if options.list and kind in ("asked for more", "no answer"):
                    print(f"  {path.parent.name}: {name}: {one[2].strip()[-200:]}")
                answers.setdefault(name, Counter())[kind] += 1
    print(f"{total} networks, nothing given but the folder")
    for title, table in (("context", keys), ("answers, against those with the context", answers)):
        print(title)
        for key, classes in table.items():
            print(f"  {key:26}", ", ".join(f"{kind}: {n}" for kind, n in sorted(classes.items())))
    same = sum(classes["equal"] for classes in answers.values())
    print(f"equal answers: {same} of {sum(classes.total() for classes in answers.values())}")


if __name__ == "__main__":
    main()
