"""Cases by number: the same seed and number always make the same case."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from random import Random

from benchmarks.fuzzing import artefacts, dumps, material, tables, text
from benchmarks.fuzzing.case import READ, Case
from benchmarks.fuzzing.material import LARGE, Seed

Options = Callable[[Random, Seed, dict[str, bytes]], list[str]]
"""More words of a command line; may add files to those of the case."""


@dataclass(frozen=True, slots=True)
class Command:
    """A command and its formats.

    Attributes:
        words: what stands behind ``irtool``.
        formats: every value of ``--format`` that works here.
        options: what else may be asked.
        of: the dumps that it is made for: ``begin``, ``later``, or ``""`` for both.
        context: whether it takes the options of a context.
    """

    words: tuple[str, ...]
    formats: tuple[str, ...]
    options: Options
    of: str = ""
    context: bool = True

    @property
    def name(self) -> str:
        return " ".join(self.words)


_WHERE = (
    'op == "MatMul"',
    '"layers" in scope',
    "bytes > 1000",
    'not (op == "Load")',
    "line < 50",
    "(((",
)
_JSON = ("table", "json", "html")
_PICTURES = ("table", "json", "svg", "html")


def _some(random: Random, *choices: list[str]) -> list[str]:
    """Each of the choices with a chance, mostly none or one of them."""
    return [word for words in choices if random.random() < 0.7 / len(choices) for word in words]


def _where(random: Random) -> list[str]:
    """A query, mostly one that can be read."""
    return ["--where", random.choice(_WHERE if random.random() < 0.1 else _WHERE[:-1])]


def _number(random: Random, *usual: int) -> str:
    """A usual number, now and then an absurd one."""
    absurd = (0, 1, 3, 7, 64, 10**6, 2**40)
    return str(random.choice(usual if random.random() < 0.85 else absurd))


def _nodes(random: Random, seed: Seed) -> str:
    return f"%{random.randrange(max(seed.text.count(') = '), 1))}"


def _parse(random: Random, seed: Seed, files: dict[str, bytes]) -> list[str]:
    return _some(
        random,
        _where(random),
        ["--group-by", random.choice(("op", "op,phase", "scope", "nothing"))],
        ["--limit", "3"],
    )


def _check(random: Random, seed: Seed, files: dict[str, bytes]) -> list[str]:
    return _some(
        random,
        ["--operators"],
        ["--redistributions"],
        ["--parameters"],
        _where(random),
        ["--limit", "2"],
        ["--allow-unknown"],
    )


def _against(random: Random, seed: Seed, files: dict[str, bytes]) -> list[str]:
    """A later dump of the same network, itself or the begin dump mutated."""
    partner = _PARTNERS.get(seed.name)
    files["later/20_validate_0080.ir"] = (
        material.sample(partner) if partner else seed.text.encode("utf-8", "surrogateescape")
    )
    why = random.choice((_nodes(random, seed), 'op == "AllReduce"', 'op == "AllGather"'))
    return ["--against", "later/20_validate_0080.ir", *_some(random, ["--why", why])]


_PARTNERS = {
    f"{folder}/{begin}": f"{folder}/{later}"
    for folder, begin, later in (
        ("mlp_semi_auto", "step_parallel_begin_0018.ir", "20_validate_0080.ir"),
        ("mlp_semi_auto_2.10", "step_parallel_begin_0019.ir", "21_validate_0082.ir"),
        ("gpt", "step_parallel_begin_0018.ir", "20_validate_0080.ir"),
        ("pipeline_run/rank_0", "step_parallel_begin_0018.ir", "20_validate_0080.ir"),
    )
}


def _cost(random: Random, seed: Seed, files: dict[str, bytes]) -> list[str]:
    return _some(random, *_machines(random, files), ["--bind", "s4=64"])


def _machines(random: Random, files: dict[str, bytes]) -> list[list[str]]:
    return [["--machine", random.choice(("ascend_910b", "gpu_a100", "gpu_h100"))]]


def _plan(random: Random, seed: Seed, files: dict[str, bytes]) -> list[str]:
    def onto() -> list[str]:
        files["old/step_parallel_begin_0018.ir"] = seed.text.encode("utf-8", "surrogateescape")
        return ["--onto", "old/step_parallel_begin_0018.ir"]

    asked = random.random()
    algorithm = (
        ["--algorithm", "recursive"]
        if asked < 0.3
        else ["--algorithm", "propagation"]
        if asked < 0.55
        else []
    )
    if algorithm:
        recursive = [["--matmul-mem-coef", "0"]] if algorithm[1] == "recursive" else []
        return [*algorithm, *_some(random, *recursive)]
    extra: list[list[str]] = [
        ["--to", _number(random, 4, 16)],
        ["--memory", random.choice(("30GiB", "1MiB", "1", "9999999TiB"))],
        ["--to-stages", _number(random, 2)],
        ["--micro-batches", _number(random, 2, 4)],
        ["--optimizer-parallel", "auto"],
        ["--recompute", "auto"],
        ["--keep-configured"],
        ["--region", random.choice(_WHERE)],
        [
            "--pin",
            random.choice(('op == "MatMul"=((2, 1), (1, 4))', 'op == "ReLU"=((0, 0))', "x=y")),
        ],
        ["--lost", random.choice(("1", "0-3", "7", "99999999999", "0-99999999"))],
        ["--horizon", _number(random, 100)],
        ["--keys", "parameters"],
        *_machines(random, files),
    ]
    words = _some(random, *extra)
    return words + (onto() if random.random() < 0.1 else [])


def _groups(random: Random, seed: Seed, files: dict[str, bytes]) -> list[str]:
    machine = _machines(random, files)
    return _some(random, ["--list"], _where(random), *machine, ["--rank", _number(random, 1)])


def _hang(random: Random, seed: Seed, files: dict[str, bytes]) -> list[str]:
    """Two more ranks, one of which may be another network's."""
    for rank in (1, 2):
        chosen = random.choice(_dumps("later")) if random.random() < 0.2 else seed
        if random.random() < 0.7:
            files[f"run/rank_{rank}/{seed.file}"] = chosen.text.encode("utf-8", "surrogateescape")
    return []


def _reuse(random: Random, seed: Seed, files: dict[str, bytes]) -> list[str]:
    return _some(
        random,
        ["--limit", random.choice(("0", "1", "3", "-1", "x", "99999999999999999999", "1.5"))],
        ["--stream-limit", _number(random, 2)],
        ["--task-opt"],
        ["--communi-parallel-mode", "no_group_parallel"],
        ["--rank", _number(random, 1)],
    )


def _fuse(random: Random, seed: Seed, files: dict[str, bytes]) -> list[str]:
    return _some(
        random,
        ["--size", random.choice(("0", "1", "64", "-1", "1e300"))],
        ["--index", random.choice(("1", "0,2", "5,3", "999999999999"))],
        *_machines(random, files),
    )


def _memory(random: Random, seed: Seed, files: dict[str, bytes]) -> list[str]:
    return _some(
        random,
        ["--limit", random.choice(("1KiB", "60GiB", "0"))],
        ["--order", random.choice(("bfs", "dfs", "dump"))],
        ["--rounding", random.choice(("pool", "somas", "none"))],
        ["--views"],
        ["--input-copies", _number(random, 2)],
        ["--layers"],
        ["--servers"],
        ["--bind", "s4=64"],
        ["--hccl-buffer", "1MiB"],
    )


def _pipeline(random: Random, seed: Seed, files: dict[str, bytes]) -> list[str]:
    """Of two ranks, mostly."""
    if random.random() < 0.6:
        other = random.choice(_dumps("later"))
        files[f"run/rank_1/{seed.file}"] = other.text.encode("utf-8", "surrogateescape")
    return _some(random, *_machines(random, files), ["--rows", "2"])


def _recover(random: Random, seed: Seed, files: dict[str, bytes]) -> list[str]:
    def grown() -> list[str]:
        files["grown/step_parallel_begin_0018.ir"] = material.sample(
            "mlp_grown/after/step_parallel_begin_0019.ir"
        )
        return ["--grown", "grown/step_parallel_begin_0018.ir"]

    words = _some(
        random,
        ["--lost", random.choice(("1", "0-3", "7", "5,5", "99999999999", "0-99999999"))],
        ["--to", _number(random, 4)],
        ["--add-devices", _number(random, 8)],
        ["--scaled"],
        ["--server", _number(random, 4)],
        ["--data-bytes", "20GiB"],
        ["--assume", "step_seconds=2.5"],
        ["--horizon", _number(random, 10)],
    )
    return words + (grown() if random.random() < 0.1 else [])


def _diff(random: Random, seed: Seed, files: dict[str, bytes]) -> list[str]:
    """Against the dump as it was, or against another."""
    other = seed if random.random() < 0.7 else random.choice(_dumps(""))
    files["other.ir"] = other.text.encode("utf-8", "surrogateescape")
    return ["other.ir", *_some(random, _where(random), ["--limit", "2"])]


def _gate(random: Random, seed: Seed, files: dict[str, bytes]) -> list[str]:
    files["golden.ir"] = seed.text.encode("utf-8", "surrogateescape")
    return [
        "golden.ir",
        *_some(random, ["--threshold", "GAT001.most_more=3"], ["--fail-on", "error"]),
    ]


def _viz(random: Random, seed: Seed, files: dict[str, bytes]) -> list[str]:
    colours = ("op", "strategy", "stage", "bytes")
    return _some(
        random,
        ["--max-nodes", _number(random, 10, 300)],
        ["--around", _nodes(random, seed), "--radius", _number(random, 2)],
        ["--path", _nodes(random, seed), _nodes(random, seed)],
        ["--all"],
        ["--color-by", random.choice(colours)],
        ["--expand", "layers.0"],
        _where(random),
    )


def _lint(random: Random, seed: Seed, files: dict[str, bytes]) -> list[str]:
    return [
        "--no-cache",
        "-j",
        "1",
        *_some(
            random,
            ["--select", random.choice(("ALL", "STR,COM", "NUM", "MEM", "PIP", "ENG"))],
            ["--extend-select", "ENG"],
            ["--statistics"],
            _where(random),
            *_machines(random, files),
        ),
    ]


def _explain(random: Random, seed: Seed, files: dict[str, bytes]) -> list[str]:
    return []


def _doctor(random: Random, seed: Seed, files: dict[str, bytes]) -> list[str]:
    """A run of one rank or of several."""
    _hang(random, seed, files)
    tasks = ("hang", "memory", "slow-step", "recompute", "redistribution", "lint")
    return [
        "--jobs",
        "1",
        *_some(
            random,
            ["--task", random.choice(tasks)],
            ["--memory", random.choice(("1MiB", "64GiB"))],
            *_machines(random, files),
        ),
    ]


def _ckpt(random: Random, seed: Seed, files: dict[str, bytes]) -> list[str]:
    """To the layout of another network, or of the same one before it was mutated."""
    other = seed if random.random() < 0.7 else random.choice(_dumps("begin"))
    files["new/step_parallel_begin_0001.ir"] = other.text.encode("utf-8", "surrogateescape")
    return [
        random.choice(("new", "new/step_parallel_begin_0001.ir", "whole")),
        *_some(random, ["--rank", _number(random, 1)], ["--limit", "2"]),
    ]


def _calibrate(random: Random, seed: Seed, files: dict[str, bytes]) -> list[str]:
    """A dump, which is no measurement, beside a damaged one of collectives."""
    name = random.choice(("all_reduce_8ranks.txt", "all_reduce_perf_8gpus.txt"))
    output = material.sample(f"artefacts/tests/{name}")
    files[name] = random.choice(list(text.MUTATIONS.values()))(random, output)
    return [name, *_some(random, ["--ranks", _number(random, 8)], ["--op", "AllGather"])]


COMMANDS = (
    Command(("parse",), ("table", "json", "ndjson", "csv", "parquet", "ir"), _parse, context=False),
    Command(("check",), _JSON, _check, "begin"),
    Command(("check", "--against"), _JSON, _against, "begin"),
    Command(("cost",), _JSON, _cost, "begin"),
    Command(("plan",), (*_JSON, "ir", "strategy", "shard", "msjob"), _plan, "begin"),
    Command(("comm", "groups"), _PICTURES, _groups, "later", context=False),
    Command(("comm", "hang"), _PICTURES, _hang, "later", context=False),
    Command(("comm", "reuse"), _PICTURES, _reuse, "later", context=False),
    Command(("comm", "fuse"), _PICTURES, _fuse, "later", context=False),
    Command(("memory",), _PICTURES, _memory, "later"),
    Command(("pipeline",), _PICTURES, _pipeline, "later"),
    Command(("recover",), _JSON, _recover, "begin"),
    Command(("diff",), ("table", "json", "html", "model-explorer"), _diff, context=False),
    Command(("viz",), ("dot", "html", "model-explorer"), _viz),
    Command(
        ("lint",),
        ("text", "concise", "json", "sarif", "github", "gitlab", "junit", "html"),
        _lint,
    ),
    Command(("gate",), ("text", "json", "sarif"), _gate, "later", context=False),
    Command(("explain",), ("table", "json", "markdown"), _explain, context=False),
    Command(("doctor",), _JSON, _doctor, "later"),
    Command(("ckpt",), _JSON, _ckpt, "begin", context=False),
    Command(("calibrate",), (*_JSON, "toml"), _calibrate, context=False),
)
"""Everything that is asked of dumps."""

_BESIDE = (
    "context", "case", "settings", "rules", "machine", "baseline", "names", "log",
    "losses", "payload", "overlay", "map", "artefact",
)  # fmt: skip
"""Files beside dumps that are mutated, too."""


@lru_cache(maxsize=4)
def _dumps(of: str) -> tuple[Seed, ...]:
    """Samples of a kind: ``begin``, ``later``, or all of them."""
    return tuple(seed for seed in material.small() if not of or seed.is_begin == (of == "begin"))


@lru_cache(maxsize=4)
def _large(of: str) -> tuple[Seed, ...]:
    return tuple(seed for seed in material.large() if not of or seed.is_begin == (of == "begin"))


def _seed(random: Random, of: str, is_large: bool) -> Seed:
    """A dump of a kind; short ones come oftener, so that more cases are tried in a time."""
    seeds = (_large if is_large else _dumps)(of)
    weights = [1 / (len(seed.text) + 3000) ** (3 if is_large else 1.5) for seed in seeds]
    return random.choices(seeds, weights)[0]


def make(seed: int, number: int, large: float = 0.1, reads: float = 0.8) -> Case:
    """The case of a number.

    Args:
        seed: the run's.
        number: of the case.
        large: the share of cases on dumps of more than 1 MB.
        reads: the share of cases that only read.
    """
    random = Random(f"{seed}:{number}")
    is_large = random.random() < large
    # Commands and mutators take turns, so that every one meets every other.
    turn, command = divmod(number, len(COMMANDS))
    mutator = mutators()[turn % len(mutators())]
    if random.random() < reads:
        return _read(random, mutator, is_large)
    if not is_large and random.random() < 0.2:
        return _beside(random, random.choice(_BESIDE))
    return _run(random, COMMANDS[command], mutator, is_large)


def mutators() -> Sequence[str]:
    """Names of the mutations of dumps; those that know the format come twice."""
    return (*dumps.MUTATIONS, *text.MUTATIONS, *dumps.MUTATIONS)


_PART = 60_000
"""Characters of a large dump that are mutated by themselves, mostly."""


def _mutated(random: Random, seed: Seed, name: str) -> bytes:
    """The dump after a mutation, and perhaps after more; of a large one, mostly in one part."""
    if len(seed.text) < LARGE or random.random() < 0.2:
        return _changed(random, seed.text, name)
    start = seed.text.rfind("\n", 0, random.randrange(len(seed.text))) + 1
    end = seed.text.find("\n", start + random.randrange(_PART)) + 1 or len(seed.text)
    before, after = (
        part.encode("utf-8", "surrogateescape") for part in (seed.text[:start], seed.text[end:])
    )
    return before + _changed(random, seed.text[start:end], name) + after


def _changed(random: Random, original: str, name: str, again: float = 0.3) -> bytes:
    if name not in dumps.MUTATIONS:
        return text.MUTATIONS[name](random, original.encode("utf-8", "surrogateescape"))
    changed = dumps.MUTATIONS[name](random, original)
    while random.random() < again:
        changed = random.choice(list(dumps.MUTATIONS.values()))(random, changed)
    return changed.encode("utf-8", "surrogateescape")


def _read(random: Random, mutator: str, is_large: bool) -> Case:
    data = _mutated(random, _seed(random, "", is_large), mutator)
    return Case(READ, mutator, (), {"a.ir": data}, ("a.ir",))


def _run(random: Random, command: Command, mutator: str, is_large: bool) -> Case:
    """A command over a mutated dump."""
    fitting = command.of if random.random() < 0.92 else ""
    seed = _seed(random, fitting, is_large)
    data = _mutated(random, seed, mutator)
    files: dict[str, bytes] = {}
    options = command.options(random, seed, files)
    path = (
        f"run/rank_0/{seed.file}" if any(name.startswith("run/") for name in files) else seed.file
    )
    in_run = path.startswith("run/")
    if command.words[-1] == "--against" and random.random() < 0.5:
        # The later dump is the one that is mutated.
        other = next(iter(files))
        changed = _mutated(random, _later(seed, files[other]), mutator)
        files[other], data = changed, seed.text.encode("utf-8", "surrogateescape")
        mutated = other
    else:
        mutated = path
    files[path] = data
    words = [word for word in command.words if word != "--against"]
    if command.words[0] in ("diff", "gate") and random.random() < 0.5:
        words += [options[0], path, *options[1:]]
    else:
        words += ["run" if in_run else path, *options]
    format = random.choice(command.formats)
    words += ["--format", format]
    if format == "parquet":
        words += ["-o", "out.parquet"]
    if command.context:
        words += _context(random, seed, files)
    elif seed.case is not None:
        files.setdefault("case.json", seed.case)
    return Case(command.name, mutator, tuple(words), files, (mutated,))


def _later(seed: Seed, data: bytes) -> Seed:
    return Seed(seed.name, "later", data.decode("utf-8", "surrogateescape"), None, False)


def _context(random: Random, seed: Seed, files: dict[str, bytes]) -> list[str]:
    """How the command learns what the dump was compiled with: a file beside it, or options."""
    if seed.case is not None and random.random() < 0.6:
        files["case.json"] = seed.case
        return []
    devices = str(seed.devices) if random.random() < 0.85 else _number(random, 8, 16)
    return [
        "--devices",
        devices,
        *_some(
            random,
            ["--stages", random.choice(("2", "4", "0", "3"))],
            ["--rank", _number(random, 1)],
            ["--soc", random.choice(("Ascend910", "", "Ascend910B", "x"))],
            ["--target", "GPU"],
            [
                "--dataset-strategy",
                random.choice(("data_parallel", "((8, 1), (8, 1))", "((0,),)", "x")),
            ],
            ["--enable-parallel-optimizer"],
            ["--optimizer-weight-shard-size", _number(random, 2)],
            ["--grad-accumulation-step", _number(random, 2)],
            ["--enable-alltoall"],
            [
                "--set",
                random.choice(("gradients_mean=true", "comm_fusion={}", "fusion_threshold=x")),
            ],
        ),
    ]


# -- files beside dumps ------------------------------------------------------------------------


def _beside(random: Random, kind: str) -> Case:
    """A command over good dumps and one file that is not good."""
    begin = "mlp_semi_auto/step_parallel_begin_0018.ir"
    files = {"a_step_parallel_begin_0018.ir": material.sample(begin)}
    dump = "a_step_parallel_begin_0018.ir"
    command, words, target = _BESIDE_COMMANDS[kind](random, files, dump)
    ending = "." + target.rpartition(".")[2]
    own = dict(tables.MUTATIONS.get(ending, {}))
    mutators = {**own, **text.MUTATIONS}
    names = list(own) * 12 + list(text.MUTATIONS)
    if target.endswith(".ir"):
        mutators = text.MUTATIONS
        names = list(mutators)
    name = random.choice(names)
    files[target] = mutators[name](random, files[target])
    return Case(command, f"{kind}: {name}", tuple(words), files, (target,))


_Beside = tuple[str, list[str], str]


def _analysis(random: Random, files: dict[str, bytes], dump: str) -> tuple[str, list[str]]:
    """One of the commands that read a context, over a good begin or validate dump."""
    command = random.choice(
        [each for each in COMMANDS if each.context and "--against" not in each.words]
    )
    path = dump
    if command.of == "later":
        path = "b_validate_0080.ir"
        files[path] = material.sample("mlp_semi_auto/20_validate_0080.ir")
    extra = ["--no-cache", "-j", "1"] if command.name == "lint" else []
    format = random.choice(command.formats)
    return command.name, [*command.words, path, *extra, "--format", format]


def _of_context(random: Random, files: dict[str, bytes], dump: str) -> _Beside:
    command, words = _analysis(random, files, dump)
    target = random.choice(list(material.CONTEXTS))
    files[target] = material.CONTEXTS[target]
    return command, [*words, "--context", target], target


def _of_case(random: Random, files: dict[str, bytes], dump: str) -> _Beside:
    command, words = _analysis(random, files, dump)
    case = json.loads(material.sample("mlp_semi_auto/case.json"))
    if random.random() < 0.5:
        case["context"] = json.loads(material.CONTEXTS["context.json"])
    files["case.json"] = json.dumps(case).encode()
    return command, words, "case.json"


def _of_settings(random: Random, files: dict[str, bytes], dump: str) -> _Beside:
    command, words = _analysis(random, files, dump)
    files["irtool.toml"] = material.SETTINGS
    files["custom.rules"] = material.sample("custom_rules/custom.rules")
    return command, [*words, "--config", "irtool.toml"], "irtool.toml"


def _of_rules(random: Random, files: dict[str, bytes], dump: str) -> _Beside:
    files["irtool.toml"] = b'rules = ["custom.rules"]\n[context]\ndevice_num = 8\n'
    files["custom.rules"] = material.sample("custom_rules/custom.rules")
    if random.random() < 0.5:
        shipped = sorted((material.ROOT / "irtool" / "operators" / "entries").glob("*.rules"))
        files["custom.rules"] = random.choice(shipped).read_bytes()[:6000]
    if random.random() < 0.3:
        return (
            "rules",
            [
                "rules",
                "--operators",
                "--config",
                "irtool.toml",
                "--format",
                random.choice(("table", "json", "markdown")),
            ],
            "custom.rules",
        )
    path = "c_step_parallel_begin_0001.ir"
    files[path] = material.sample("custom_rules/step_parallel_begin_0001.ir")
    command = random.choice(("check", "cost", "plan"))
    return command, [command, path, "--config", "irtool.toml", "--format", "json"], "custom.rules"


def _of_machine(random: Random, files: dict[str, bytes], dump: str) -> _Beside:
    files["machine.toml"] = material.machine()
    command = random.choice(
        ("cost", "plan", "recover", "memory", "comm fuse", "comm groups", "pipeline", "lint")
    )
    path = dump
    if command in ("memory", "comm fuse", "comm groups", "pipeline", "lint"):
        path = "b_validate_0080.ir"
        files[path] = material.sample("mlp_semi_auto/20_validate_0080.ir")
    extra = [] if command.startswith("comm") else ["--devices", "8"]
    extra += ["--no-cache", "-j", "1"] if command == "lint" else []
    return (
        command,
        [*command.split(), path, "--machine", "machine.toml", *extra, "--format", "json"],
        "machine.toml",
    )


def _of_baseline(random: Random, files: dict[str, bytes], dump: str) -> _Beside:
    files["baseline.json"] = material.BASELINE
    words = ["lint", dump, "--no-cache", "-j", "1", "--devices", "8", "--baseline", "baseline.json"]
    return (
        "lint",
        [*words, *_some(random, ["--update-baseline"], ["--statistics"])],
        "baseline.json",
    )


def _of_names(random: Random, files: dict[str, bytes], dump: str) -> _Beside:
    files["saved.json"] = material.sample("mlp_loop/saved.json")
    files[dump] = material.sample("mlp_loop/step_parallel_begin_0019.ir")
    return (
        "plan",
        ["plan", dump, "--devices", "8", "--format", "strategy", "--names", "saved.json"],
        "saved.json",
    )


def _of_log(random: Random, files: dict[str, bytes], dump: str) -> _Beside:
    files["worker_0.log"] = random.choice(material.logs())
    if random.random() < 0.3:
        files["b_validate_0080.ir"] = material.sample("mlp_semi_auto/20_validate_0080.ir")
        return (
            "comm reuse",
            ["comm", "reuse", "b_validate_0080.ir", "--log", "worker_0.log", "--format", "json"],
            "worker_0.log",
        )
    if random.random() < 0.2:
        path = "rank_0/om/analyze_fail.ir"
        files[path] = material.sample(f"analyze_fail/{path}")
        return "explain", ["explain", path, "--format", "json"], path
    return (
        "explain",
        ["explain", "worker_0.log", "--format", random.choice(("table", "json", "markdown"))],
        "worker_0.log",
    )


def _of_losses(random: Random, files: dict[str, bytes], dump: str) -> _Beside:
    files |= {
        f"{name}.csv": material.sample(f"loss/{name}.csv")
        for name in ("reference", "halved_gradient", "bfloat16")
    }
    words = ["diff", "--loss", "reference.csv", "halved_gradient.csv"]
    words += _some(random, ["--repeat", "bfloat16.csv"])
    return (
        "diff",
        [*words, "--format", random.choice(("table", "json", "html"))],
        random.choice(("reference.csv", "halved_gradient.csv")),
    )


def _of_payload(random: Random, files: dict[str, bytes], dump: str) -> _Beside:
    files.clear()
    files |= material.payloads(random)
    target = random.choice([name for name in files if not name.endswith("loss.json")])
    if random.random() < 0.1:
        return "diff", ["diff", "--digest", target.partition("/")[0], "-o", "digest.json"], target
    words = ["diff", "left", "right", "-j", "1", *_some(random, ["--limit", "2"], ["--step", "0"])]
    return "diff", [*words, "--format", random.choice(("table", "json", "html"))], target


@lru_cache(maxsize=1)
def _overlay() -> bytes:
    """What ``check --format json`` says of a sample."""
    import contextlib
    import io

    from irtool.cli.main import main

    stream = io.TextIOWrapper(io.BytesIO(), encoding="utf-8")
    path = material.SAMPLES / "mlp_semi_auto" / "step_parallel_begin_0018.ir"
    with contextlib.redirect_stdout(stream), contextlib.redirect_stderr(io.StringIO()):
        main(["check", str(path), "--format", "json"])
        stream.flush()
    told: bytes = stream.buffer.getvalue()  # type: ignore[attr-defined]
    return told.replace(str(path).encode(), b"a_step_parallel_begin_0018.ir")


def _of_overlay(random: Random, files: dict[str, bytes], dump: str) -> _Beside:
    files["overlay.json"] = _overlay()
    return (
        "viz",
        [
            "viz",
            dump,
            "--devices",
            "8",
            "--overlay",
            "overlay.json",
            "--format",
            random.choice(("dot", "html")),
        ],
        "overlay.json",
    )


def _of_map(random: Random, files: dict[str, bytes], dump: str) -> _Beside:
    files.clear()
    files |= material.payloads(random)
    files["map.json"] = b'{"layer.0": "layer.1", "a": "b"}'
    return "diff", ["diff", "left", "right", "-j", "1", "--map", "map.json"], "map.json"


_BESIDE_COMMANDS: dict[str, Callable[[Random, dict[str, bytes], str], _Beside]] = {
    "context": _of_context,
    "case": _of_case,
    "settings": _of_settings,
    "rules": _of_rules,
    "machine": _of_machine,
    "baseline": _of_baseline,
    "names": _of_names,
    "log": _of_log,
    "losses": _of_losses,
    "payload": _of_payload,
    "overlay": _of_overlay,
    "map": _of_map,
    "artefact": artefacts.beside,
}


_SECONDS = re.compile(rb'("(?:seconds|search_seconds|elapsed)": )[\d.e+-]+')
_PROCESSOR = re.compile("[\\d.]+ (?:s|ms|µs|ns|min) CPU".encode())


def without_times(output: bytes) -> bytes:
    """An answer without how long it took to find it."""
    return _PROCESSOR.sub(b"0 s CPU", _SECONDS.sub(rb"\g<1>0", output))
