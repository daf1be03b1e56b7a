#!/usr/bin/env python3
"""Ask irtool what MindSpore was asked of networks of one operator, and compare the answers.

    python benchmarks/replay_operators.py [FAMILY...] [--operator NAME...] [--list FILE] [--note]

The records stand in ``record_operators/records``; MindSpore is not needed. The table says for each
operator how many cases are equal, unknown and wrong; ``--list`` writes each disagreement, sorted by
kind: which form, which strategy, what MindSpore made of it, what irtool says. ``--note`` writes
``record_operators/disagreements.tsv``: every case that ever was not equal, ``open`` while it is not
and ``mended`` after. The tests replay all that are not open.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import lzma
import re
import sys
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import irtool
from irtool.sharding.check import check
from irtool.sharding.network.context import ParallelContext
from irtool.sharding.network.report import CheckResult, OperatorReport

RECORDS = Path(__file__).resolve().parent / "record_operators" / "records"
NOTED = RECORDS.parent / "disagreements.tsv"
NOT_AS_RESULT = ("sens", "key not found", "pointer[out_cnode] is null")
"""In errors of networks whose only operator MindSpore could not take for the network's result: a
constant (OnesLike, FillV2), or what has no gradient to begin with. In a network it is legal."""
COLLECTIVES = {"AllReduce", "AllGather", "ReduceScatter", "AlltoAll"}
_TENSOR = re.compile(r"Tensor\[\w+\](?:\])?, \(([^)]*)\)")
_SHAPE = re.compile(r"\(((?:-?\d+(?:, )?)*)\)")

Record = dict[str, Any]
Shapes = list[list[int]]


@dataclass(frozen=True, slots=True)
class Disagreement:
    """What differs between MindSpore's answer and irtool's, in one case.

    ``kind``: ``refused though legal``, ``accepted though illegal``, ``accepted, but not as the
    network's result`` (MindSpore can't begin the gradient there), ``accepted, but a later pass
    fails`` (on slices that do not fit each other, say), ``unknown``, ``matrix or maps``,
    ``maps of other axes of size 1`` (equal in effect), ``slices``, ``forward communication``,
    ``mirrors``, ``parameters``, or ``no answer``.
    """

    kind: str
    record: Record
    measured: str
    said: str

    def __str__(self) -> str:
        case = self.record["case"]
        return (
            f"{self.kind}: {case['form']} [{case['phase']}, MindSpore {self.record['mindspore']}] "
            f"in {written(case['in_strategy'])} out {written(case['out_strategy'])}\n"
            f"    MindSpore: {self.measured}\n    irtool:    {self.said}"
        )


def written(strategy: Any) -> str:
    """A strategy or layouts of a case's description on one line."""
    if isinstance(strategy, dict):
        layouts = cast("dict[str, Any]", strategy)
        return f"Layout{tuple(layouts['matrix'])} {layouts['maps']}"
    return str(strategy)


def records(paths: Iterable[Path] | None = None) -> Iterator[Record]:
    """All records of the files, in their order; without files those of the folder."""
    for path in sorted(RECORDS.glob("*.jsonl.xz")) if paths is None else paths:
        opened = lzma.open if path.suffix == ".xz" else open
        with opened(path, "rt", encoding="utf-8", errors="surrogateescape") as stream:
            for line in stream:
                yield json.loads(line)


def identity(record: Record) -> str:
    """A short name of a record, which depends on its case and MindSpore's version only."""
    text = json.dumps([record["case"], record["mindspore"]], sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:12]


def noted() -> dict[str, str]:
    """``open`` or ``mended`` for each record that ever was not equal."""
    if not NOTED.exists():
        return {}
    lines = NOTED.read_text(encoding="utf-8").splitlines()
    return {name: state for name, state, *_ in (line.split("\t") for line in lines)}


def note(wrong: dict[str, Disagreement], judged: set[str]) -> None:
    """Keep which records are not equal, and which no longer are; others' lines stay."""
    kept: dict[str, str] = {}
    if NOTED.exists():
        for line in NOTED.read_text(encoding="utf-8").splitlines():
            name, _, rest = line.partition("\t")
            kept[name] = f"mended\t{rest.partition(chr(9))[2]}" if name in judged else rest
    for name, item in wrong.items():
        operator = item.record["case"]["operator"]
        kept[name] = f"open\t{operator}\t{item.kind}"
    known = {identity(record) for record in records()}
    kept = {name: rest for name, rest in kept.items() if name in known}
    ordered = sorted(kept.items(), key=lambda entry: (entry[1].split("\t")[1:], entry[0]))
    NOTED.write_text("".join(f"{name}\t{rest}\n" for name, rest in ordered), encoding="utf-8")


def is_judgeable(record: Record) -> bool:
    """Whether MindSpore's sharding gave an answer that a dump before it can be asked for."""
    return "begin" in record and record["verdict"] in ("accepted", "refused", "later")


def disagreements(record: Record) -> list[Disagreement]:
    """What irtool says otherwise than MindSpore did; empty if all that was measured is equal."""
    case = record["case"]
    values = {
        "device_num": case["devices"],
        "full_batch": True,
        "parallel_mode": "semi_auto_parallel",
        **case.get("context", {}),
    }
    try:
        dump = irtool.load(record["begin"].encode("utf-8", "surrogateescape"))
        report = check(dump, ParallelContext.from_mapping(values))
    except Exception as fault:
        return [
            Disagreement("no answer", record, record["verdict"], f"{type(fault).__name__}: {fault}")
        ]
    return list(_compared(record, report))


def _compared(record: Record, report: CheckResult) -> Iterator[Disagreement]:
    wanted = record["verdict"] == "accepted"
    reasons = "; ".join(finding.message for finding in report.findings)[:400]
    if report.accepted is None:
        yield Disagreement("unknown", record, _verdict(record), reasons)
        return
    if report.accepted != wanted:
        kind = "refused though legal" if wanted else "accepted though illegal"
        if record["verdict"] == "later":
            kind = "accepted, but a later pass fails"
        elif any(word in str(record.get("error", "")) for word in NOT_AS_RESULT):
            kind = "accepted, but not as the network's result"
        yield Disagreement(kind, record, _verdict(record), reasons or "accepted")
        return
    if not wanted:
        return
    operator = _of_operator(record, report)
    if operator is not None:
        yield from _layouts(record, operator)
        yield from _slices(record, operator)
    yield from _communications(record, report)
    yield from _parameters(record, report)


def _verdict(record: Record) -> str:
    log = cast("list[str]", record.get("log", []))
    reason = log[0] if log else str(record.get("error", ""))
    return " ".join(f"{record['verdict']} {reason}".split())


def _of_operator(record: Record, report: CheckResult) -> OperatorReport | None:
    name = record["case"]["operator"]
    return next((operator for operator in report.operators if operator.op == name), None)


def _lists(value: Any) -> Any:
    if isinstance(value, (tuple, list)):
        return [_lists(item) for item in cast("Sequence[Any]", value)]
    return value


def _layouts(record: Record, operator: OperatorReport) -> Iterator[Disagreement]:
    """Device matrix and maps; MindSpore prints none where layouts were given."""
    if not record.get("matrix") or record["case"]["kind"] in ("layout", "out_layout"):
        return
    if record["node"] == "_VirtualOutput":  # the operator's own node was replaced
        return
    measured = [record["matrix"], record["inputs"], record["outputs"]]
    said = _lists((operator.device_matrix, operator.input_maps, operator.output_maps))
    if not any(measured[1:]):  # it prints no maps where operands are tuples
        said = [said[0], [], []]
    elif len(measured[1]) != len(said[1]):
        # neither does it of scalars everywhere, and it counts a constant shape as an operand
        measured[1] = [one for one in measured[1] if one][-len(said[1]) :] if said[1] else []
        said[1] = [one for one in said[1] if one][: len(measured[1]) or None]
    if said != measured:
        same = _standard(*said) == _standard(*measured)
        kind = "maps of other axes of size 1" if same else "matrix or maps"
        yield Disagreement(kind, record, str(measured), str(said))


def _standard(matrix: list[int], inputs: Any, outputs: Any) -> Any:
    """Device matrix and maps without device axes of size 1, which have no effect."""
    left = [axis for axis in range(len(matrix)) if matrix[len(matrix) - 1 - axis] > 1]
    number = {axis: position for position, axis in enumerate(left)}

    def entry(value: Any) -> Any:
        if isinstance(value, list):
            return [entry(item) for item in cast("list[Any]", value)]
        return number.get(value, -1)

    return [size for size in matrix if size > 1], entry(inputs), entry(outputs)


def _slices(record: Record, operator: OperatorReport) -> Iterator[Disagreement]:
    """Shapes of the operator's one forward node; more than one, or none: it was replaced."""
    lines = cast("list[str]", record["slices"])
    if len(lines) != 1 or len(record["shapes"]) != 1:
        return
    before, _, after = lines[0].partition(" -> ")
    inputs = [_sizes(text) for text in _TENSOR.findall(before)]
    outputs = [_sizes(text) for text in _SHAPE.findall(after)]
    outputs = [one for one in outputs if one != [0]]  # what was not asked for
    said_inputs, said_outputs = _lists(operator.input_slices), _lists(operator.output_slices)
    moved = {item[0] for item in record["communications"] if item[3] == "forward"}
    haloed = any(op.startswith("NeighborExchange") for op in moved)  # the node has the halo too
    if len(inputs) == len(said_inputs) and inputs != said_inputs and not haloed:
        yield Disagreement("slices", record, f"inputs {inputs}", f"inputs {said_inputs}")
    if outputs and outputs != said_outputs and "ReduceScatter" not in moved:
        yield Disagreement("slices", record, f"outputs {outputs}", f"outputs {said_outputs}")


def _sizes(text: str) -> list[int]:
    return [int(size) for size in text.split(",") if size.strip()]


Counted = Counter[tuple[str, tuple[int, ...]]]


def _communications(record: Record, report: CheckResult) -> Iterator[Disagreement]:
    forward = Counted()
    for op, ranks, count, phase, _ in record["communications"]:
        if phase == "forward":
            forward[op, tuple(ranks)] += count
    said = Counted()
    for operator in report.operators:
        for item in operator.collectives:
            said[item.op, item.ranks] += item.count
    for edge in report.redistributions:
        for step in edge.operators or ():
            if step.op in COLLECTIVES:
                said[step.op, tuple(step.ranks)] += 1
    if said != forward:
        yield Disagreement("forward communication", record, _counted(forward), _counted(said))
    mirrors = {name: tuple(ranks) for name, ranks in record["mirrors"] if len(ranks) > 1}
    predicted = {
        parameter.name: parameter.mirror_ranks
        for parameter in report.parameters
        if parameter.mirror_ranks is not None and len(parameter.mirror_ranks) > 1
    }
    if predicted != mirrors:
        yield Disagreement("mirrors", record, str(mirrors), str(predicted))


def _counted(found: Counted) -> str:
    return (
        ", ".join(f"{count} {op}{ranks}" for (op, ranks), count in sorted(found.items())) or "none"
    )


def _parameters(record: Record, report: CheckResult) -> Iterator[Disagreement]:
    measured = cast("dict[str, list[int]]", record["parameters"])
    for parameter in report.parameters:
        actual = measured.get(parameter.name)
        if actual is not None and parameter.slice is not None and actual != list(parameter.slice):
            yield Disagreement(
                "parameters", record, f"{parameter.name} {actual}", str(list(parameter.slice))
            )


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("family", nargs="*")
    parser.add_argument("--operator", nargs="*")
    parser.add_argument("--list", type=Path)
    parser.add_argument("--note", action="store_true")
    options = parser.parse_args()
    paths = [_path(name) for name in options.family] or None
    began = time.process_time()
    by_operator: dict[str, Counter[str]] = {}
    listed: list[Disagreement] = []
    skipped = Counter[str]()
    wrong: dict[str, Disagreement] = {}
    judged: set[str] = set()
    for record in records(paths):
        name = record["case"]["operator"]
        if options.operator and name not in options.operator:
            continue
        if not is_judgeable(record):
            skipped[record["verdict"]] += 1
            continue
        different = disagreements(record)
        listed += different
        judged.add(identity(record))
        if different:
            wrong[identity(record)] = different[0]
        kinds = {item.kind for item in different}
        outcome = "unknown" if kinds == {"unknown"} else "wrong" if kinds else "equal"
        by_operator.setdefault(name, Counter())[outcome] += 1
    _print(by_operator, listed, skipped, time.process_time() - began)
    if options.note:
        note(wrong, judged)
    if options.list:
        listed.sort(key=lambda item: (item.kind, item.record["case"]["form"]))
        options.list.write_text("\n".join(map(str, listed)) + "\n", errors="surrogateescape")
    return 1 if listed else 0


def _path(name: str) -> Path:
    return Path(name) if "/" in name else RECORDS / f"{name}.jsonl.xz"


def _print(
    by_operator: dict[str, Counter[str]],
    listed: list[Disagreement],
    skipped: Counter[str],
    seconds: float,
) -> None:
    print(f"{'operator':36} {'equal':>6} {'unknown':>8} {'wrong':>6}")
    total = Counter[str]()
    for name, counts in sorted(by_operator.items()):
        total += counts
        if counts["unknown"] or counts["wrong"]:
            print(f"{name:36} {counts['equal']:6} {counts['unknown']:8} {counts['wrong']:6}")
    name = f"all of {len(by_operator)}"
    print(f"{name:36} {total['equal']:6} {total['unknown']:8} {total['wrong']:6}")
    kinds = Counter(item.kind for item in listed)
    print("; ".join(f"{kind}: {count}" for kind, count in kinds.most_common()))
    print(f"not compared: {dict(skipped)}; {seconds:.0f} s CPU")


if __name__ == "__main__":
    sys.exit(main())
