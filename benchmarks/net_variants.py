"""What is said of networks that nobody compiles: altered, incomplete, under other contexts.

Real networks reach what real networks have.  Here types, names, scopes or attributes are missing,
sizes are not known, operators have other strategies and other neighbours, and the context is
another one: what analyses do about that is kept as a digest, for each command.  So are plans and
recoveries of networks as MindSpore compiled them, each asked some questions in turn.

    python benchmarks/net_variants.py --record                  # keep the answers of now
    python benchmarks/net_variants.py --show 0182_decoder/halves    # what is said of one, in full
"""

from __future__ import annotations

import argparse
import hashlib
import json
import lzma
import os
import re
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
# Beside this file lie modules with names of others.
sys.path[:] = [entry for entry in sys.path if Path(entry).resolve() != Path(__file__).parent]
if str(ROOT) not in sys.path:
    sys.path.append(str(ROOT))

from benchmarks import net_answers, net_networks  # noqa: E402 - found by the line above
from benchmarks.fuzzing import dumps  # noqa: E402
from benchmarks.net_questions import INSERTED, Question  # noqa: E402

KEPT = ROOT / "tests" / "net" / "variants.tsv"
NETWORKS = ROOT / "tests" / "networks"
BEGIN, LAST, OTHER = "step_parallel_begin_0018.ir", "20_validate_0080.ir", "20_validate_0180.ir"
OF_EACH = 4
"""Alterations of each network."""

Alteration = Callable[[Random, str], str]

# -- alterations -----------------------------------------------------------------------------------

_LINES = {
    "type": re.compile(r"\n      : \([^\n]*"),
    "scope": re.compile(r"\n      # (?:Scope|Fullname)[^\n]*"),
    "source": re.compile(r"\n      # In file[^\n]*"),
    "name": re.compile(r" \{instance name: [^{}\n]*\}"),
    "entry": re.compile(r"(?<=[{ ])\w+: [^,{}\n()]+, (?=\w+: )"),
}
_STRATEGY = re.compile(r"(?<=in_strategy: )\(\([^\n{}]*?\)\)(?=[,}])")
_TYPE = re.compile(r"(?<=Float32\], )\([\d, ]*\)")


def _without(what: str, part: float) -> Alteration:
    def altered(random: Random, text: str) -> str:
        return _LINES[what].sub(lambda match: "" if random.random() < part else match[0], text)

    return altered


def _split_otherwise(random: Random, text: str) -> str:
    """Of some strategies one number, or two that change places."""

    def change(match: re.Match[str]) -> str:
        if random.random() > 0.3:
            return match[0]
        numbers = list(re.finditer(r"\d+", match[0]))
        one, other = random.choice(numbers), random.choice(numbers)
        if random.random() < 0.5:
            new = str(random.choice((1, 2, 2 * int(one[0]))))
            return match[0][: one.start()] + new + match[0][one.end() :]
        first, second = sorted((one, other), key=lambda found: found.start())
        return (
            match[0][: first.start()] + second[0] + match[0][first.end() : second.start()]
            + first[0] + match[0][second.end() :]
        ) if first != second else match[0]  # fmt: skip

    return _STRATEGY.sub(change, text)


def _halves(random: Random, text: str) -> str:
    """Statements in half precision, with what they take."""
    lines = text.split("\n")
    return "\n".join(
        line.replace("Float32", "Float16") if random.random() < 0.4 else line for line in lines
    )


def _unknown_size(random: Random, text: str) -> str:
    """One size, wherever it is one."""
    sizes = sorted({size for found in _TYPE.findall(text) for size in re.findall(r"\d+", found)})
    size = random.choice(sizes)
    return _TYPE.sub(lambda match: re.sub(rf"\b{size}\b", "-1", match[0]), text)


def _other_size(random: Random, text: str) -> str:
    """One size is another one, in types and in constants."""
    sizes = sorted({size for found in _TYPE.findall(text) for size in re.findall(r"\d+", found)})
    size, new = random.choice(sizes), random.choice(("1", "6", "12", "40", "0"))
    text = _TYPE.sub(lambda match: re.sub(rf"\b{size}\b", new, match[0]), text)
    return text.replace(f"I64({size})", f"I64({new})")


ALTERATIONS: Mapping[str, Alteration] = {
    "untyped": _without("type", 0.1),
    "unscoped": _without("scope", 1.0),
    "half unscoped": _without("scope", 0.3),
    "without source": _without("source", 1.0),
    "nameless": _without("name", 0.5),
    "fewer attributes": _without("entry", 0.15),
    "split otherwise": _split_otherwise,
    "split at random": _split_otherwise,
    "halves": _halves,
    "unknown size": _unknown_size,
    "other size": _other_size,
    "attributes": dumps.attributes,
    "swapped operators": dumps.swapped_operators,
    "operands": dumps.operands,
    "statements": dumps.statements,
    "groups": dumps.groups,
    "parameters": dumps.parameters,
    "shapes": dumps.shapes,
    "calls": dumps.calls,
}

CONTEXTS: tuple[Mapping[str, Any], ...] = (
    {},
    {"enable_parallel_optimizer": True, "parallel_optimizer_config":
        {"parallel_optimizer_threshold": 0}},
    {"device_num": 16},
    {"device_num": 4, "dataset_strategy": "full_batch"},
    {"pipeline_stages": 2},
    {"gradient_accumulation": 2, "gradients_mean": True},
    {"parallel_mode": "auto_parallel", "search_mode": "sharding_propagation"},
    {"global_rank": 3},
    {"enable_parallel_optimizer": True, "parallel_optimizer_config":
        {"parallel_optimizer_threshold": 1, "gradient_accumulation_shard": False,
         "optimizer_weight_shard_size": 2}, "enable_alltoall": False},
)  # fmt: skip
"""What the context of an altered network says otherwise."""

# -- tensors ---------------------------------------------------------------------------------------

_FIGURES = ("Max", "Min", "Mean", "Norm")
PRECISION = ROOT / "samples" / "precision"
DUMP = "step0/proc1000"
EACH_FAULT = 6
"""Variants of each fault."""

Calls = dict[str, dict[str, Any]]
Fault = Callable[[Random, Calls], Calls]


def _tensors(call: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    todo: list[Any] = [call.get("input_args"), call.get("output"), call.get("input_kwargs")]
    todo += [call.get("input"), call.get("output_grad")]
    while todo:
        item = todo.pop(0)
        if isinstance(item, list):
            todo += item
        elif isinstance(item, dict) and "shape" in item:
            yield item
        elif isinstance(item, dict):
            todo += item.values()


def _of_some(change: Callable[[Random, dict[str, Any]], None], part: float) -> Fault:
    """Change that part of the tensors, one at least."""

    def fault(random: Random, calls: Calls) -> Calls:
        found = [item for call in calls.values() for item in _tensors(call)]
        for item in random.sample(found, max(1, int(part * len(found)))):
            change(random, item)
        return calls

    return fault


def _scaled(random: Random, item: dict[str, Any]) -> None:
    factor = random.choice((1 + 1e-6, 1 + 1e-3, 1.01, 2.0, -1.0, 0.0, 1e6))
    for name in _FIGURES:
        if isinstance(item.get(name), float):
            item[name] *= abs(factor) if name == "Norm" else factor


def _broken(random: Random, item: dict[str, Any]) -> None:
    for name in random.sample(_FIGURES, random.randint(1, 4)):
        item[name] = random.choice((float("nan"), float("inf"), None))


def _reshaped(random: Random, item: dict[str, Any]) -> None:
    item["shape"] = random.choice(([*item["shape"], 1], item["shape"][::-1], item["shape"][1:]))


def _retyped(random: Random, item: dict[str, Any]) -> None:
    item["dtype"] = random.choice(("torch.float16", "torch.bfloat16", "torch.int64"))


def _fewer(random: Random, calls: Calls) -> Calls:
    gone = set(random.sample(sorted(calls), random.choice((1, 3, 20))))
    return {name: call for name, call in calls.items() if name not in gone}


def _moved(random: Random, calls: Calls) -> Calls:
    names = list(calls)
    at = random.randrange(len(names) - 3)
    names[at : at + 3] = names[at + 2], names[at], names[at + 1]
    return {name: calls[name] for name in names}


def _renamed(random: Random, calls: Calls) -> Calls:
    kind = random.choice(sorted({name.split(".")[1] for name in calls}))
    new = random.choice((f"{kind}_ext", "addmm", "unheard_of"))
    return {name.replace(f".{kind}.", f".{new}."): call for name, call in calls.items()}


def _other_arguments(random: Random, calls: Calls) -> Calls:
    for call in calls.values():
        for item in call.get("input_args") or ():
            if isinstance(item, dict) and item.get("type") in ("int", "float"):
                item["value"] = random.choice((item["value"], 2 * item["value"], None))
    return calls


FAULTS: Mapping[str, Fault] = {
    "one scaled": _of_some(_scaled, 0.0),
    "some scaled": _of_some(_scaled, 0.05),
    "not finite": _of_some(_broken, 0.03),
    "other shapes": _of_some(_reshaped, 0.03),
    "other types": _of_some(_retyped, 0.3),
    "fewer calls": _fewer,
    "calls moved": _moved,
    "calls renamed": _renamed,
    "other arguments": _other_arguments,
}


@dataclass(frozen=True, slots=True)
class Tensors:
    """A training step in PyTorch, recorded twice, and what is wrong with the second record."""

    fault: str
    number: int

    @property
    def name(self) -> str:
        """``precision/one scaled/0``."""
        return f"precision/{self.fault}/{self.number}"

    def write(self, folder: Path) -> None:
        """Both records, below ``left`` and ``right``."""
        random = Random(self.name)
        right = random.choice(("reference", "tanh_gelu"))
        for side, name in (("left", "reference"), ("right", right)):
            place = folder / side / DUMP
            place.mkdir(parents=True)
            for path in (PRECISION / name / DUMP).iterdir():
                text = path.read_text(encoding="utf-8")
                if side == "right" and path.name == "dump.json":
                    content = json.loads(text)
                    content["data"] = FAULTS[self.fault](random, content["data"])
                    text = json.dumps(content)
                (place / path.name).write_text(text, encoding="utf-8")

    def questions(self) -> Iterator[Question]:
        """What is asked, from within the folder of both."""
        words = ("left", "right") if self.number % 2 == 0 else ("right", "left")
        yield Question(self.name, "diff", words, "json")


# -- questions -------------------------------------------------------------------------------------

QUESTIONS: tuple[tuple[str, str], ...] = (
    ("check", f"{BEGIN} --against {LAST} --operators --redistributions --parameters"),
    ("check", f"{BEGIN} --against {LAST} --why {INSERTED}"),
    ("cost", BEGIN),
    ("memory", f"{LAST} --layers --hccl-buffer 1MiB"),
    ("comm groups", f"{LAST} --list"),
    ("comm reuse", f"{LAST} --limit 2"),
    ("comm fuse", f"{LAST} --size 1"),
    ("pipeline", "."),
    ("recover", ". --lost 1"),
    ("diff", f"{LAST} {OTHER}"),
)
"""Asked of every variant."""

PLANS: tuple[str, ...] = (
    f"{BEGIN} --algorithm recursive",
    f"{BEGIN} --algorithm propagation",
    f"{BEGIN} --memory 256KiB --recompute auto",
    f"{BEGIN} --to 4 --optimizer-parallel auto",
    f"{BEGIN} --to-stages 2 --micro-batches 4",
)
"""Of these one is asked of every third variant."""


@dataclass(frozen=True, slots=True)
class Variant:
    """A network, and how it is altered."""

    network: str
    alteration: str

    @property
    def name(self) -> str:
        """``0182_decoder/halves``."""
        return f"{self.network}/{self.alteration}"

    @property
    def random(self) -> Random:
        """The same for the same variant."""
        return Random(self.name)

    def write(self, folder: Path) -> None:
        """The altered run: both dumps and the context, and the last dump as it was."""
        own, random = NETWORKS / self.network, self.random
        alter = ALTERATIONS[self.alteration]
        for name in (BEGIN, LAST):
            text = lzma.decompress((own / f"{name}.xz").read_bytes()).decode()
            (folder / name).write_text(alter(random, text), encoding="utf-8")
            if name == LAST:
                (folder / OTHER).write_text(text, encoding="utf-8")
        context = json.loads((own / "case.json").read_text(encoding="utf-8"))["context"]
        context |= random.choice(CONTEXTS)
        (folder / "case.json").write_text(json.dumps({"context": context}), encoding="utf-8")

    def questions(self) -> Iterator[Question]:
        """What is asked, from within the folder of the run."""
        for command, words in QUESTIONS:
            yield Question(self.name, command, tuple(words.split()), "json")
        number = int(hashlib.sha256(self.name.encode()).hexdigest(), 16)
        if number % 3 == 0:
            words = PLANS[number // 3 % len(PLANS)]
            yield Question(self.name, "plan", tuple(words.split()), "json")


PLANNED: tuple[tuple[str, str], ...] = (
    ("plan", f"{BEGIN} --effort quick"),
    ("plan", f"{BEGIN} --algorithm recursive"),
    ("plan", f"{BEGIN} --algorithm propagation"),
    ("plan", f"{BEGIN} --effort quick --memory 24KiB --recompute auto"),
    ("plan", f"{BEGIN} --effort quick --memory 96KiB --optimizer-parallel auto"),
    ("plan", f"{BEGIN} --effort quick --to 2 --machine gpu_a100 --overlap 0.5"),
    ("plan", f"{BEGIN} --effort quick --to 16 --enable-alltoall"),
    ("plan", f"{BEGIN} --effort quick --to-stages 2 --micro-batches 4"),
    ("plan", f"{BEGIN} --effort quick --region op=='MatMul'"),
    ("plan", f"{BEGIN} --effort quick --lost 1"),
    ("plan", f"{BEGIN} --effort quick --keep-configured --optimizer-parallel auto"),
    ("recover", ". --lost 0"),
    ("recover", ". --to 4 --server 2"),
    ("recover", ". --lost 1 --add-devices 3 --scaled --assume step_seconds=2"),
    ("memory", f"{LAST} --limit 4KiB --hccl-buffer 1KiB"),
    ("comm groups", f"{LAST} --list --machine gpu_h100"),
    ("check", f"{BEGIN} --devices 4"),
    ("cost", f"{BEGIN} --enable-parallel-optimizer --parallel-optimizer-threshold 0"),
)
"""Five of them are asked of every compiled network, in turn."""


@dataclass(frozen=True, slots=True)
class Planned:
    """A network that MindSpore compiled, as it is: plans, recoveries and prices of it."""

    network: str
    number: int

    @property
    def name(self) -> str:
        """``compiled/tied/weights_of_two``."""
        return f"compiled/{self.network}"

    def write(self, folder: Path) -> None:
        """The run: both dumps and the context."""
        own = net_networks.networks()[self.network]
        (folder / BEGIN).write_text(own.begin, encoding="utf-8")
        (folder / LAST).write_text(own.later["validate"], encoding="utf-8")
        (folder / "case.json").write_text(json.dumps({"context": own.context}), encoding="utf-8")

    def questions(self) -> Iterator[Question]:
        """What is asked, from within the folder of the run."""
        for place in range(5):
            command, words = PLANNED[(self.number + 4 * place) % len(PLANNED)]
            yield Question(self.name, command, tuple(words.split()), "json")


def planned() -> list[Planned]:
    """The compiled networks that have a last dump."""
    names = [name for name, own in net_networks.networks().items() if "validate" in own.later]
    return [Planned(name, number) for number, name in enumerate(names)]


def variants() -> list[Variant | Tensors | Planned]:
    """Every network with some alterations, records of tensors with every fault, and plans."""
    found: list[Variant | Tensors | Planned] = []
    for folder in sorted(path.name for path in NETWORKS.iterdir() if path.is_dir()):
        chosen = Random(folder).sample(sorted(ALTERATIONS), OF_EACH)
        found += [Variant(folder, name) for name in chosen]
    found += [Tensors(fault, number) for fault in FAULTS for number in range(EACH_FAULT)]
    return found + planned()


def said_of(variant: Variant | Tensors | Planned) -> Iterator[tuple[Question, net_answers.Answer]]:
    """The answers; asked in a folder of their own, which is the current one meanwhile."""
    before = os.getcwd()
    with tempfile.TemporaryDirectory(prefix="irtool-variant-") as place:
        folder = Path(place) / "run"
        folder.mkdir()
        variant.write(folder)
        os.chdir(folder)
        try:
            for question in variant.questions():
                yield question, net_answers.ask(question)
        finally:
            os.chdir(before)


def kept_now(variant: Variant | Tensors | Planned) -> list[str]:
    """Lines that are kept of a variant: question, status, digest."""
    lines: list[str] = []
    for question, answer in said_of(variant):
        said = [f"{name}\n" + "\n".join(values) for name, values in answer.sections.items()]
        digest = hashlib.sha256("\n".join(said).encode("utf-8", "backslashreplace")).hexdigest()
        words = question.line.replace(INSERTED, "INSERTED").removesuffix(" -f json")
        lines.append("\t".join((variant.name, words, answer.status, digest[:12])))
    return lines


def kept() -> dict[str, list[str]]:
    """What is kept, by variant."""
    found: dict[str, list[str]] = {}
    for line in KEPT.read_text(encoding="utf-8").splitlines():
        found.setdefault(line.partition("\t")[0], []).append(line)
    return found


def record() -> list[str]:
    """Keep the answers of now; the lines that are others."""
    before = KEPT.read_text(encoding="utf-8").splitlines() if KEPT.exists() else []
    now = [line for variant in variants() for line in kept_now(variant)]
    KEPT.write_text("\n".join(now) + "\n", encoding="utf-8", newline="\n")
    return [line for line in now if line not in set(before)]


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--record", action="store_true", help="keep the answers of now")
    parser.add_argument("--show", metavar="VARIANT", help="all answers of one, in full")
    options = parser.parse_args()
    os.environ.update(COLUMNS="110", NO_COLOR="1")
    if options.record:
        print(*record(), sep="\n")
        return 0
    for variant in variants():
        if options.show in (None, variant.name):
            if options.show is None:
                print(variant.name)
                continue
            for question, answer in said_of(variant):
                print(question.line, answer.status)
                for name, values in answer.sections.items():
                    print(f"  {name}", *values, sep="\n    ")
    return 0


if __name__ == "__main__":
    sys.exit(main())
