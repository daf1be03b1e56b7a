"""What the net asks: every command in every format of the samples, and options on fitting ones."""

from __future__ import annotations

import hashlib
import os
import re
import shutil
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import click

from irtool.cli.commands import COMMANDS
from irtool.cli.main import app

NO_ANSWER: dict[str, str] = {"lsp": "it talks with an editor until that ends"}
"""Commands that are not asked, and why."""
DRAWN_BY_GRAPHVIZ = {("viz", "svg"), ("viz", "png"), ("viz", "pdf")}
"""Formats whose answer depends on the graphviz of the machine: never part of the kept answers."""
SEARCHING = {"plan", "recover"}
"""Commands that compute long: with options they are asked once, for the whole answer."""
SLOW = "samples/pipeline_64_micro"
"""Asked with a revision to compare with only: its answers take seconds."""
PEOPLE = 4
"""On how many materials the format for people is kept."""
OTHERS = 2
"""On how many materials every other format is kept, and what a command says of unfit material."""


@dataclass(frozen=True, slots=True)
class Question:
    """One line at the shell: ``irtool WORDS --format FORMAT``, asked of one material."""

    material: str
    command: str
    words: tuple[str, ...]
    format: str

    @property
    def arguments(self) -> list[str]:
        """What stands behind ``irtool``."""
        fixed = FIXED.get(self.command, ())
        return [*self.command.split(), *self.words, *fixed, "--format", self.format]

    @property
    def line(self) -> str:
        """The question as one would type it; it identifies the question."""
        return " ".join(["irtool", self.command, *self.words, "-f", self.format])


FIXED: dict[str, tuple[str, ...]] = {
    "parse": ("--jobs", "1"),
    "lint": ("--jobs", "1", "--no-cache"),
    "diff": ("--jobs", "1"),
    "doctor": ("--jobs", "1"),
}
"""Options that keep a command in this process; they change no answer."""

PLAIN: dict[str, tuple[tuple[str, ...], ...]] = {
    "parse": ((),),
    "check": ((),),
    "cost": ((),),
    "plan": ((),),
    "memory": ((),),
    "pipeline": ((),),
    "viz": ((),),
    "lint": ((),),
    "comm groups": ((),),
    "comm hang": ((),),
    "doctor": ((),),
    "comm reuse": ((),),
    "comm fuse": ((),),
    "recover": (("--lost", "0"),),
    "explain": ((),),
}
"""Commands that take one path, and with which options they are asked of every material."""

FITTING: dict[str, frozenset[str]] = {
    "parse": frozenset({"begin", "final", "other", "run"}),
    "check": frozenset({"begin", "run"}),
    "cost": frozenset({"begin", "run"}),
    "plan": frozenset({"begin", "run"}),
    "memory": frozenset({"final", "run"}),
    "pipeline": frozenset({"final", "run"}),
    "viz": frozenset({"begin", "final", "other", "run"}),
    "lint": frozenset({"begin", "final", "other", "run"}),
    "comm groups": frozenset({"final", "run"}),
    "comm hang": frozenset({"final", "run"}),
    "doctor": frozenset({"run"}),
    "comm reuse": frozenset({"final", "run"}),
    "comm fuse": frozenset({"final", "run"}),
    "recover": frozenset({"run"}),
    "explain": frozenset({"failure"}),
}
"""Which kinds of material a command is made for."""

PAIRS: tuple[tuple[str, str, str], ...] = (
    ("grown", "samples/mlp_grown/before", "samples/mlp_grown/after"),
    ("passes", "samples/mlp_semi_auto/step_parallel_begin_0018.ir",
     "samples/mlp_semi_auto/20_validate_0080.ir"),
    ("versions", "samples/mlp_semi_auto/20_validate_0080.ir",
     "samples/mlp_semi_auto_2.10/21_validate_0082.ir"),
    ("recomputed", "samples/memory/without_recompute.ir.xz",
     "samples/memory/with_recompute.ir.xz"),
    ("same", "samples/recompute/20_validate_0081.ir", "samples/recompute/20_validate_0081.ir"),
    ("optimizer", "samples/memory/without_optimizer_parallel.ir.xz",
     "samples/memory/with_optimizer_parallel.ir.xz"),
    ("tensors", "samples/precision/reference", "samples/precision/tanh_gelu"),
)  # fmt: skip
"""What diff and gate are asked of."""

BEGIN = "samples/mlp_semi_auto/step_parallel_begin_0018.ir"
VALIDATE = "samples/mlp_semi_auto/20_validate_0080.ir"
SEARCHED = "samples/mlp_recursive_search/step_parallel_begin_0019.ir"
UNSEARCHED = "samples/mlp_recursive_search/step_auto_parallel_begin_0010.ir"
GPT = "samples/gpt/step_parallel_begin_0018.ir"
GPT_VALIDATE = "samples/gpt/20_validate_0080.ir"
PROPAGATED = "samples/lookup_propagation/step_auto_parallel_begin_0010.ir"
CUSTOM = "samples/custom_rules/step_parallel_begin_0001.ir"

SINGLE: tuple[tuple[str, str], ...] = (
    ("parse", f"{GPT_VALIDATE} --where op=='MatMul'"),
    ("parse", f"{GPT_VALIDATE} --group-by op,phase"),
    ("parse", "samples/gpt samples/moe samples/fragment_1.3.ir"),
    ("check", f"{BEGIN} --operators --redistributions --parameters"),
    ("check", f"{BEGIN} --against {VALIDATE}"),
    ("check", f"{GPT} --against {GPT_VALIDATE}"),
    ("check", f"{BEGIN} --against {VALIDATE} --why op=='AllGather'"),
    ("check", f"{BEGIN} --devices 16"),
    ("check", f"{BEGIN} --dataset-strategy data_parallel"),
    ("check", f"{BEGIN} --enable-parallel-optimizer"),
    ("check", f"{CUSTOM} --devices 8 --config samples/custom_rules/irtool.toml"),
    ("check", "samples/shard_size_4/step_parallel_begin_0018.ir.xz"
              " --against samples/shard_size_4/20_validate_0080.ir.xz"),
    ("check", "samples/pipeline_no_replicas/rank_0/step_parallel_begin_0018.ir.xz"
              " --devices 4 --stages 2"),
    ("cost", f"{SEARCHED} --devices 8"),
    ("cost", f"{SEARCHED} --devices 8 --machine gpu_a100"),
    ("cost", f"{BEGIN} --enable-parallel-optimizer"),
    ("cost", f"{BEGIN} --grad-accumulation-step 4"),
    ("cost", "samples/artefacts/run"),
    ("memory", "samples/artefacts/run"),
    ("plan", f"{SEARCHED} --devices 8"),
    ("plan", f"{UNSEARCHED} --devices 8 --algorithm recursive"),
    ("plan", f"{UNSEARCHED} --devices 8 --algorithm propagation"),
    ("plan", f"{PROPAGATED} --algorithm propagation"),
    ("plan", f"{BEGIN} --to 16"),
    ("plan", f"{BEGIN} --memory 1MiB"),
    ("plan", f"{BEGIN} --to-stages 2 --micro-batches 4"),
    ("plan", f"{BEGIN} --optimizer-parallel auto"),
    ("plan", f"{BEGIN} --recompute auto"),
    ("plan", f"{BEGIN} --keep-configured"),
    ("plan", f"{BEGIN} --region op=='MatMul'"),
    ("plan", f"{BEGIN} --lost 3"),
    ("plan", "samples/mlp_grown/after/step_parallel_begin_0019.ir"
             " --onto samples/mlp_grown/before/step_parallel_begin_0019.ir"),
    ("memory", f"{GPT_VALIDATE} --limit 1MiB"),
    ("memory", f"{GPT_VALIDATE} --layers"),
    ("memory", "samples/memory/without_recompute.ir.xz --order dfs"),
    ("memory", "samples/memory/without_recompute.ir.xz --rounding somas"),
    ("memory", "samples/memory/with_recompute.ir.xz --views"),
    ("memory", f"{BEGIN}"),
    ("pipeline", "samples/pipeline_2_stages --machine gpu_a100"),
    ("comm groups", f"{GPT_VALIDATE} --list"),
    ("comm groups", "samples/gpt --group 4-6301172352641561019"),
    ("comm groups", "samples/moe/20_validate_0080.ir.xz --machine gpu_h100"),
    ("comm reuse", f"{GPT_VALIDATE} --target-version 2.0"),
    ("comm fuse", f"{GPT_VALIDATE} --size 1"),
    ("comm fuse", "samples/data_parallel/19_validate_0078.ir --index 1"),
    ("recover", "samples/mlp_semi_auto --to 4"),
    ("recover", "samples/mlp_semi_auto --add-devices 8"),
    ("recover", "samples/pipeline_run --to 4"),
    ("recover", "samples/mlp_semi_auto --lost 5 --scaled"),
    ("recover", "samples/mlp_grown/before --grown"
                " samples/mlp_grown/after/step_parallel_begin_0019.ir"),
    ("recover", "samples/pipeline_run --lost 0,4 --server 4"),
    ("diff", "--loss samples/loss/reference.csv samples/loss/halved_gradient.csv"),
    ("diff", "--loss samples/loss/reference.csv samples/loss/bfloat16.csv"),
    ("diff", "--ranks samples/pipeline_2_stages"),
    ("diff", "--ranks samples/rank_classes/search"),
    ("diff", "--passes samples/mlp_semi_auto"),
    ("lint", "samples/mlp_rejected --select STR"),
    ("lint", "samples/gpt --extend-select ALL --statistics"),
    ("viz", f"{GPT_VALIDATE} --max-nodes 40"),
    ("viz", f"{GPT_VALIDATE} --around %12"),
    ("viz", f"{GPT} --color-by strategy --expand Default"),
    ("viz", "samples/pipeline_2_stages --whole"),
    ("rules", ""),
    ("rules", "--operators"),
    ("rules", "MatMul Softmax --operators"),
    ("explain", "COM001 STR001 SYN001"),
    ("explain", "GAT"),
    ("explain", "nothing-like-this"),
    ("check", "samples/not_there.ir"),
    ("check", "samples/mlp_loop --strategy samples/mlp_loop/saved.json"),
    ("check", f"{BEGIN} --strategy samples/strategies/dp8.json"
              " --strategy-before samples/strategies/dp4tp2_opt.ckpt"),
    ("ckpt", "samples/strategies/dp4tp2_opt2.json samples/strategies/dp4tp2.ckpt --rank 0"),
    ("ckpt", "samples/strategies/merged/dp2tp2pp2.ckpt whole"),
    ("ckpt", "samples/mlp_semi_auto whole --network samples/mlp_semi_auto"),
    ("ckpt", "samples/strategies/dp8.json samples/strategies/stages/dp2tp2pp2_s1.json"),
)  # fmt: skip
"""Questions with options, each asked for the whole answer, and mostly in the format for people."""

CALIBRATIONS = (
    "samples/artefacts/tests/all_reduce_8ranks.txt",
    "samples/artefacts/tests/all_reduce_perf_8gpus.txt",
)
"""What calibrate is asked of, in every format."""

CHECKPOINTS: tuple[tuple[str, str, str], ...] = (
    ("grown", "samples/strategies/dp2.json", "samples/strategies/dp2tp2.json"),
    ("stages", "samples/strategies/stages", "samples/strategies/dp2.json"),
)
"""What ckpt is asked of, in every format."""


INSERTED = "op=~'All|Reduce|Broadcast|Send|Receive|Exchange|Slice|Split|Concat|Div|Mirror'"
"""A query for what MindSpore inserts, and for the users' own operators of the same names."""

DATA: tuple[tuple[str, str], ...] = (
    ("check", f"{GPT} --against {GPT_VALIDATE} --why {INSERTED}"),
    ("check", "samples/pipeline_run/rank_0/step_parallel_begin_0018.ir"
              f" --against samples/pipeline_run/rank_0/20_validate_0080.ir --why {INSERTED}"),
    ("check", "samples/shard_size_4/step_parallel_begin_0018.ir.xz"
              f" --against samples/shard_size_4/20_validate_0080.ir.xz --why {INSERTED}"),
    ("memory", "samples/memory/without_optimizer_parallel.ir.xz --hccl-buffer 1MiB --limit 190MiB"),
    ("memory", "samples/memory/without_optimizer_parallel.ir.xz --machine gpu_a100 --servers"
               " --hccl-buffer 1MiB --limit 120MiB"),
    ("memory", "samples/memory/with_optimizer_parallel.ir.xz --hccl-buffer 1MiB --limit 160MiB"),
    ("memory", "samples/memory/without_recompute.ir.xz --hccl-buffer 1MiB --limit 170MiB"),
    ("memory", "samples/memory/without_recompute.ir.xz --layers --hccl-buffer 1MiB --limit 150MiB"
               " --machine gpu_h100"),
    ("memory", "samples/memory/with_recompute.ir.xz --order dump --input-copies 2 --limit 1GiB"),
    ("memory", "samples/memory/accumulated_whole.ir.xz --hccl-buffer 1MiB --limit 5900kB"),
    ("memory", "samples/memory/accumulated_sharded.ir.xz --rounding none --servers"),
    ("memory", "samples/memory/threshold_120.ir.xz --hccl-buffer 1MiB --limit 1900kB"),
    ("memory", "samples/memory/two_stages.ir.xz --stages 2 --hccl-buffer 1MiB --limit 150MiB"),
    ("memory", "samples/moe/20_validate_0080.ir.xz --servers --layers --views"),
    ("memory", "samples/lookup_propagation --servers --layers"),
    ("memory", "samples/dynamic_shape --bind s4=64"),
    ("pipeline", "samples/pipeline_4_stages --machine gpu_h100"),
    ("pipeline", "samples/pipeline_interleaved --machine gpu_a100"),
    ("comm groups", "samples/pipeline_run --machine gpu_h100 --list"),
    ("comm groups", "samples/moe --list"),
    ("comm groups", "samples/pipeline_interleaved --list --rank 0"),
    ("comm groups", "samples/memory/accumulated_sharded.ir.xz --list --devices 8"),
    ("comm groups", "samples/all_to_all --machine gpu_a100 --list"),
    ("comm groups", "samples/optimizer_parallel --where op=='AllGather' --list"),
    ("comm reuse", "samples/pipeline_8_micro --stream-limit 12 --rank 0"),
    ("comm reuse", "samples/pipeline_run --stream-limit 64 --task-opt"),
    ("comm reuse", "samples/pipeline_8_micro --limit 4"
                   " --communi-parallel-mode same_server_group_parallel"),
    ("comm reuse", "samples/pipeline_run --limit 2 --communi-parallel-mode no_group_parallel"),
    ("comm reuse", "samples/moe --limit -1 --target-version 2.2"),
    ("comm fuse", "samples/gpt --index 2,5 --machine gpu_a100"),
    ("comm fuse", "samples/memory/without_optimizer_parallel.ir.xz --size 2"),
    ("comm fuse", "samples/pipeline_run --index 1 --machine gpu_h100"),
    ("cost", f"{GPT} --machine gpu_h100"),
    ("cost", f"{GPT} --enable-parallel-optimizer --parallel-optimizer-threshold 0"),
    ("cost", "samples/pipeline_run --machine gpu_a100"),
    ("cost", f"{BEGIN} --enable-parallel-optimizer --parallel-optimizer-threshold 0"
             " --optimizer-weight-shard-size 2"),
    ("plan", f"{GPT} --to 4"),
    ("plan", f"{GPT} --algorithm recursive"),
    ("plan", f"{GPT} --algorithm propagation"),
    ("plan", f"{GPT} --memory 1MiB --optimizer-parallel auto"),
    ("plan", f"{GPT} --to-stages 2"),
    ("plan", f"{GPT} --machine gpu_a100 --optimizer-parallel auto"),
    ("plan", "samples/mlp_loop --algorithm recursive"),
    ("plan", "samples/mlp_propagation_layouts --algorithm propagation"),
    ("plan", "samples/layout --machine gpu_a100"),
    ("recover", "samples/gpt --lost 1,2 --machine gpu_a100"),
    ("recover", "samples/gpt --to 4 --scaled"),
    ("recover", "samples/optimizer_parallel --lost 2 --server 2"),
    ("recover", "samples/pipeline_run --lost 1 --assume step_seconds=2.5"),
    ("recover", "samples/pipeline_run --add-devices 8 --scaled"),
    ("recover", "samples/shard_size_4 --lost 0,1"),
    ("recover", "samples/moe --lost 3"),
    ("recover", "samples/pipeline_no_replicas --lost 1"),
)  # fmt: skip
"""Questions with options on what branches most, asked for data only."""


NETWORKS = "tests/networks"
"""Random networks that MindSpore compiled, each with the dumps before and after its passes."""

OF_NETWORKS: tuple[tuple[str, str], ...] = (
    ("check", "BEGIN"),
    ("check", "BEGIN --against LAST"),
    ("check", f"BEGIN --against LAST --why {INSERTED}"),
    ("cost", "BEGIN"),
    ("cost", "BEGIN --machine gpu_a100"),
    ("cost", "BEGIN --enable-parallel-optimizer --parallel-optimizer-threshold 0"),
    ("memory", "RUN --hccl-buffer 1MiB --layers"),
    ("memory", "RUN --order dfs --rounding somas --views"),
    ("pipeline", "RUN"),
    ("comm groups", "RUN --list"),
    ("comm reuse", "RUN --limit 2"),
    ("comm fuse", "RUN --size 1"),
    ("recover", "RUN --lost 1"),
    ("recover", "RUN --lost 0,1 --scaled"),
    ("recover", "RUN --to 4 --machine gpu_a100"),
    ("plan", "BEGIN"),
    ("plan", "BEGIN --to 4 --matmul-mem-coef 0.2 --algorithm recursive"),
    ("plan", "BEGIN --memory 512KiB --optimizer-parallel auto --recompute auto"),
    ("plan", "BEGIN --optimizer-parallel auto --machine gpu_h100"),
    ("plan", "BEGIN --algorithm recursive"),
    ("plan", "BEGIN --algorithm propagation"),
)
"""What is asked of each of them, for data only."""

BOUND = ("--bind", "s1=8")
"""What else searches and prices are told of networks in which a size is not known."""


@dataclass(frozen=True, slots=True)
class Material:
    """A dump or a folder, by name, with what it is: begin, final, other, run or failure."""

    name: str
    path: str
    kind: str


def formats() -> dict[str, list[str]]:
    """Every command (``comm groups`` is one) with its formats, the one for people first.

    Raises:
        LookupError: a command has no formats and is not among those that give no answer.
    """
    context = click.Context(app)
    listed: dict[str, list[str]] = {}
    for name in COMMANDS:
        if name in NO_ANSWER:
            continue
        command = app.get_command(context, name)
        homes = {name: command}
        if isinstance(command, click.Group):
            words = command.list_commands(context)
            homes = {f"{name} {word}": command.get_command(context, word) for word in words}
        listed |= {words: _formats_of(words, home) for words, home in homes.items()}
    return listed


def _formats_of(words: str, command: click.Command | None) -> list[str]:
    for parameter in () if command is None else command.params:
        if parameter.name == "format" and isinstance(parameter.type, click.Choice):
            return list(parameter.type.choices)
    raise LookupError(f"{words} has no --format; ask it here, or list it in NO_ANSWER with why")


def materials(root: Path, folder: str = "samples") -> list[Material]:
    """The dumps and run folders below a folder, with paths relative to ``root``."""
    found: list[Material] = []
    runs: dict[Path, int] = {}
    top = root / folder
    for path in sorted(top.rglob("*.ir*")):
        if path.is_file() and path.suffix in {".ir", ".xz", ".gz"}:
            name = path.relative_to(top).as_posix().replace(".ir", "").removesuffix(".xz")
            found.append(Material(name.removesuffix(".gz"), _under(path, root), _kind(path)))
            home = path.parent
            while home.name.startswith("rank_") or home.name == "om":
                home = home.parent
            if home != top:
                runs[home] = runs.get(home, 0) + 1
    for path in sorted(home for home, dumps in runs.items() if dumps > 1):
        name = f"{path.relative_to(top).as_posix()}/run"
        found.append(Material(name, _under(path, root), "run"))
    return found


def _under(path: Path, root: Path) -> str:
    return Path(os.path.relpath(path, root)).as_posix()


def _kind(path: Path) -> str:
    if "analyze_fail" in path.name:
        return "failure"
    if "parallel_begin" in path.name:
        return "begin"
    if any(word in path.as_posix() for word in ("validate", "execution_order/", "/memory/")):
        return "final"
    return "other"


def all_questions(root: Path, folders: Sequence[str]) -> list[Question]:
    """Every command in every format of every material below folders, whether it fits or not.

    Raises:
        SystemExit: a folder holds no dumps.
    """
    asked: list[Question] = []
    choices = formats()
    known = {folder: materials(root, folder) for folder in folders}
    for folder in (folder for folder, listed in known.items() if not listed):
        raise SystemExit(f"there are no dumps in {folder}")
    for material in (item for listed in known.values() for item in listed):
        for command, variants in PLAIN.items():
            for options in variants:
                words = (material.path, *options)
                asked.extend(
                    Question(material.name, command, words, kind)
                    for kind in choices[command]
                    if _is_drawable(command, kind)
                )
    asked.extend(_with_options(choices))
    return list(dict.fromkeys(asked))


def kept_questions(root: Path) -> list[Question]:
    """The questions whose answers are kept: every command and format, on fitting samples.

    JSON is asked of every fitting material, other formats of a few, chosen by a hash, so that one
    more sample moves no more than its own share.
    """
    asked: list[Question] = []
    choices = formats()
    known = [item for item in materials(root) if not _is_left_out(item)]
    for command, variants in PLAIN.items():
        fitting = [item for item in known if item.kind in FITTING[command]]
        unfit = [item for item in known if item.kind not in FITTING[command]]
        for position, kind in enumerate(choices[command]):
            if (command, kind) in DRAWN_BY_GRAPHVIZ:
                continue
            if kind == "json":
                chosen = [*fitting, *_some(unfit, OTHERS, command, kind)]
            else:
                chosen = _some(fitting, OTHERS if position else PEOPLE, command, kind)
            asked.extend(
                Question(item.name, command, (item.path, *options), kind)
                for item in chosen
                for options in variants
            )
    asked.extend(_with_options(choices))
    asked.extend(_of_networks(root))
    return list(dict.fromkeys(asked))


def _is_left_out(material: Material) -> bool:
    """Whether answers are not kept: of ranks of a run beside the first, of the slowest sample."""
    rank = re.search(r"/rank_(\d+)/", material.path)
    return material.path.startswith(SLOW) or (rank is not None and rank[1] != "0")


def _some(items: Sequence[Material], count: int, *salt: str) -> list[Material]:
    def rank(item: Material) -> str:
        return hashlib.sha256("\0".join((item.name, *salt)).encode()).hexdigest()

    return sorted(items, key=rank)[:count]


def _is_drawable(command: str, kind: str) -> bool:
    """Whether this machine draws the format, as text that can be compared."""
    if (command, kind) not in DRAWN_BY_GRAPHVIZ:
        return True
    return kind == "svg" and shutil.which("dot") is not None


def _with_options(choices: Mapping[str, Sequence[str]]) -> Iterator[Question]:
    for command, line in SINGLE:
        kinds = choices[command]
        data = "json" if "json" in kinds else "dot"
        more = ["markdown", "html", "csv"] if "markdown" in kinds else []  # asked of nothing else
        people = [] if command in SEARCHING else [kinds[0]]
        for kind in dict.fromkeys((data, *people, *more)):
            if (command, kind) not in DRAWN_BY_GRAPHVIZ:
                yield Question("options", command, tuple(line.split()), kind)
    for command, line in DATA:
        sample = line.split()[0].removeprefix("samples/").split(".")[0]
        yield Question(f"options/{sample}", command, tuple(line.split()), "json")
    for place in CALIBRATIONS:
        for kind in choices["calibrate"]:
            yield Question("checkpoints/calibrate", "calibrate", (place,), kind)
    for name, old, new in CHECKPOINTS:
        for kind in choices["ckpt"]:
            yield Question(f"checkpoints/{name}", "ckpt", (old, new), kind)
    for name, left, right in PAIRS:
        for command in ("diff", "gate"):
            if (command, name) != ("gate", "tensors"):
                for kind in choices[command]:
                    yield Question(f"pairs/{name}", command, (left, right), kind)


def _of_networks(root: Path) -> Iterator[Question]:
    for folder in sorted(path for path in (root / NETWORKS).iterdir() if path.is_dir()):
        place = _under(folder, root)
        names = {
            "RUN": place,
            "BEGIN": f"{place}/step_parallel_begin_0018.ir.xz",
            "LAST": f"{place}/20_validate_0080.ir.xz",
        }
        for command, line in OF_NETWORKS:
            words = tuple(names.get(word, word) for word in line.split())
            if folder.name.endswith("_unknown") and command in ("plan", "cost"):
                words += BOUND
            yield Question(f"networks/{folder.name}", command, words, "json")


def by_material(questions: Iterable[Question]) -> Mapping[str, list[Question]]:
    """Questions by what they are asked of, in a fixed order."""
    grouped: dict[str, list[Question]] = {}
    for question in questions:
        grouped.setdefault(question.material, []).append(question)
    return dict(sorted(grouped.items()))
