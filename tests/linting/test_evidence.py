"""Rules on dumps that MindSpore itself printed: each plant is told, and nothing else."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from pathlib import Path
from typing import cast

import pytest

from irtool.cluster.machine import built_in
from irtool.ir.finding import Finding
from irtool.linting.engine import lint_compilation
from irtool.linting.facts import CompilationFacts, DumpFacts, Surroundings
from irtool.linting.fingerprint import fingerprinted
from irtool.linting.registry import all_rules, own_rules
from irtool.linting.rule import DumpKind, RunRule
from irtool.linting.settings import chosen_rules, read_settings
from irtool.sharding.network.context import ParallelContext
from irtool.syntax.load import load, loads
from irtool.syntax.printer import dumps
from tests.linting.cases import compilation, lint_ranks, rule

FOLDER = Path(__file__).parent / "evidence"

TOLD: dict[str, list[tuple[str, str]]] = {
    "recompute_lost_last_encoder.validate": [
        ("REC004", r"layers\.3 is not recomputed, as 3 equal layers are \(layers\.0\)")
    ],
    "epsilon_half_gated.validate": [("NUM008", "Add is 0 in float16: nothing keeps Rsqrt")],
    "epsilon_subnormal_gated.begin": [("NUM007", "1.01e-06 in Add is subnormal")],
    "print_gated.begin": [("OPS001", "Print is left in the graph")],
    "tensor_dump_encoder.begin": [("OPS001", "TensorDump is left in the graph")],
    "summary_gated.begin": [("OPS001", "ScalarSummary writes a summary")],
    "dropout_gone_encoder.begin": [("OPS002", r"Dropout is missing in layers\.\d, and stands in")],
    "dropout_half_gated.begin": [("OPS002", r"Dropout: keep_prob is 0\.5 in layers\.\d, 0\.9 in")],
    "epsilon_one_encoder.begin": [("OPS002", r"LayerNorm: epsilon is 0\.001 in layers\.\d")],
    "weight_turned_encoder.validate": [("OPS003", "a weight is transposed in every step for Mat")],
    "ids_cast_gated.validate": [("OPS003", "Int64 and is cast to Int32 in every step")],
    "table_gathered_encoder.validate": [("OPS003", "only constants and positions, which nothing")],
    "reductions_scalar_gated.validate": [("COM005", "times AllReduce of at most 4 B")],
    "group_of_one_encoder.validate": [("COM001", "AllReduce over a group of one rank")],
    "reduced_twice_encoder.validate": [("COM002", "right behind an AllReduce over the same")],
    "reduced_scatter_encoder.validate": [("COM002", "ReduceScatter right behind an AllGather")],
    "mesh_across_gated.validate": [
        ("COM006", "2 ranks on 2 nodes exchange 26.0 GiB a step in 45 collectives"),
        ("COM003", "AllGather collects 2.0 GiB, of which 256.0 MiB are kept"),
    ],
    "reductions_small_gated.validate": [
        ("COM004", "28 gradients .* of 2 groups are reduced one by one")
    ],
    "reductions_off_dense.validate": [("COM004", "16 gradients .* are reduced one by one")],
    "alltoall_dense.begin": [
        ("COM009", "GeLU to MatMul and 2 other edges receive 576.0 MiB by gathering"),
        ("MEM001", r"0\.down\.weight and 2 more like it \(each 256.0 MiB\) are held whole"),
        ("STR003", "uses 2 of 8 devices"),
    ],
    "random_zoo2_0044.begin": [("COM009", "Concat to Sqrt and 1 other edge receive 2.8 MiB")],
    "table_whole_gated.begin": [
        ("MEM001", r"embedding \(1.0 GiB\) is held whole by 4 devices"),
        ("MEM002", "2.0 GiB of optimizer state"),
        ("STR003", "uses 1 of 4 devices"),
    ],
    "mask_kept_encoder.validate": [("MEM003", "Cast makes 1.0 GiB that are kept across")],
    "rows_odd_gated.begin": [("MEM004", "embedding stays whole: 1030 rows cannot be divided")],
    "guard_log_dense.validate": [("NUM008", "Add is 0 in float16: nothing keeps Log away")],
    "half_encoder.end": [("NUM006", "partial sums of 2 ranks are added in float16")],
    "round_trip_gated.validate": [("NUM003", "Float32 is cast to Float16 and straight back")],
    "loss_half_gated.validate": [("NUM005", "computed in float16")],
    "residual_one_dense.begin": [("OPS002", r"Mul: operand 2 is 0\.25 in blocks\.1, 0\.5 in 2")],
    "labels_cast_dense.validate": [("OPS003", "is Int64 and is cast to Int32 in every step")],
    "weight_transpose_dense.validate": [("OPS003", "a weight is transposed in every step")],
    "recomputed_sums_gated.validate": [("REC001", "3 collectives again: 768.0 MiB a step")],
    "recompute_idle_encoder.validate": [
        ("REC003", "own-Positions, but nothing of it is computed again"),
        ("OPS003", "GeLU gives the same in every step"),
    ],
    "recompute_shared_encoder.validate": [("REC003", "squared-Squared and 2 more like it")],
    "recompute_lost_dense.validate": [("REC004", r"blocks\.1 is not recomputed")],
    "half_sums_gated.validate": [
        ("NUM001", r"ReduceSum adds 2,097,152 numbers in float16"),
        ("NUM007", "1.01e-06 in Add is subnormal"),
    ],
    "half_gradients_gated.validate": [
        ("NUM002", "AllReduce sums a gradient over 16 ranks in float16"),
        ("NUM007", "1e-05 in Add is subnormal"),
    ],
    "half_softmax_encoder.validate": [("NUM004", "Softmax over an axis of 4,096 works in")],
    "healthy_lazy_dense.begin": [],
    "unrolled_encoder.begin": [
        ("OPS004", "24 equal layers stand in the graph one by one: 576 of 2,390 statements")
    ],
    "own_operator_own.begin": [("STR002", "FusedGate was never measured")],
    "tied_encoder.begin": [("STR001", "Gather slices of .*, MatMul slices of")],
    "flatten_reshape.begin": [
        ("STR008", r"strategy \(\(4, 1, 1, 1\),\) was given, \(\(8, 1, 1, 1\),\) is in effect")
    ],
    "random_images_0309.begin": [("STR003", "no product uses more than 16 of 32 devices")],
    "random_images_0277.begin": [
        ("STR003", "uses 16 of 512 devices"),
        ("STR007", "Conv2D has no strategy"),
    ],
    "random_moe_0193.begin": [
        ("STR003", "no product uses more than 16 of 128 devices"),
        ("STR005", "MatMul to SoftmaxCrossEntropyWithLogits: AllGather of 120.0 MiB"),
    ],
}
"""By dump, the rules that speak there and what they say."""


RANKS: dict[str, tuple[str, str]] = {
    "stages_uneven_pipes": ("PIP001", r"stage 1 computes 46\.\d % more than the mean of 2 stages"),
    "tied_over_stages_pipes": ("PIP003", r"end\.table \(128.0 MiB\) is held by stages 0 and 1"),
}
"""By run, the rule that speaks of its ranks and what it says."""

OFF_BY_DEFAULT = {
    "half_encoder": ["NUM006"],
    "half_sums_gated": ["NUM001"],
    "half_gradients_gated": ["NUM002"],
    "half_softmax_encoder": ["NUM004"],
}
"""Rules that have to be asked for."""

MACHINES = {"mesh_across_gated": "ascend_910b"}
"""Machines that rules are told, by what the dump is called."""


def linted(name: str, text: str | None = None) -> list[Finding]:
    """Findings of all rules about a dump, or about this text in its place."""
    stem, _, kind = name.rpartition(".")
    dump = load(FOLDER / f"{name}.ir.xz") if text is None else loads(text, f"{name}.ir")
    told = FOLDER / f"{stem}.json"
    context = json.loads(told.read_text(encoding="utf-8")) if told.exists() else None
    parallel = None if context is None else ParallelContext.from_mapping(context)
    machine = built_in(MACHINES[stem]) if stem in MACHINES else None
    facts = DumpFacts(lambda: dump, cast("DumpKind", kind), dump.path)
    surroundings = Surroundings(None, parallel, context, machine)
    settings = read_settings({"extend-select": OFF_BY_DEFAULT.get(stem, [])})
    rules = chosen_rules(settings, all_rules())
    return lint_compilation(CompilationFacts([facts], surroundings), rules).findings


@pytest.mark.parametrize("name", TOLD)
def test_a_plant_is_told_and_nothing_else(name: str) -> None:
    found = linted(name)
    assert {each.code for each in found} == {code for code, _ in TOLD[name]}
    for code, words in TOLD[name]:
        assert any(each.code == code and re.search(words, each.message) for each in found)


@pytest.mark.parametrize("name", TOLD)
def test_findings_stand_at_the_line_that_would_change(name: str) -> None:
    for found in linted(name):
        assert found.code == "MEM002" or (
            found.source and found.source.path.startswith(("net/", "tests/"))
        )


def test_every_dump_has_a_verdict() -> None:
    of_ranks = {f"{name}.rank_{rank}.validate" for name in RANKS for rank in (0, 2)}
    names = {path.name.removesuffix(".ir.xz") for path in FOLDER.glob("*.xz")}
    assert names == set(TOLD) | of_ranks


@pytest.mark.parametrize("name", RANKS)
def test_a_plant_among_ranks_is_told_and_nothing_else(name: str) -> None:
    context = json.loads((FOLDER / f"{name}.json").read_text(encoding="utf-8"))
    ranks = {
        rank: compilation(
            {"validate": FOLDER / f"{name}.rank_{rank}.validate.ir.xz"},
            {**context, "global_rank": rank},
            rank,
        )
        for rank in (0, 2)
    }
    code, words = RANKS[name]
    for entry in own_rules().values():
        if issubclass(entry.load(), RunRule):
            found = lint_ranks(rule(entry.code), ranks).findings
            assert len(found) == (entry.code == code), entry.code
            assert all(re.search(words, each.message) for each in found)


def test_rules_name_the_dumps_on_which_they_speak() -> None:
    told = {(code, name) for name, found in TOLD.items() for code, _ in found}
    told |= {(code, name) for name, (code, _) in RANKS.items()}
    named = {
        (entry.code, Path(case).name)
        for entry in own_rules().values()
        for case in entry.load().cases
        if Path(case).parent == Path("tests/linting/evidence")
    }
    assert named == told


LOWERED: dict[str, tuple[str, str, dict[str, float], str]] = {
    "NUM001": (
        "epsilon_half_gated",
        "validate",
        {"least_length": 64},
        "adds 64 numbers in float16",
    ),
    "NUM004": ("half_encoder", "end", {"least_length": 32}, "Softmax over an axis of 32 works in"),
}
"""Rules whose thresholds no small network reaches, on a real dump with lower ones."""


@pytest.mark.parametrize("code", LOWERED)
def test_rules_about_long_axes_speak_of_shorter_ones_if_asked(code: str) -> None:
    stem, kind, thresholds, words = LOWERED[code]
    facts = compilation({cast("DumpKind", kind): FOLDER / f"{stem}.{kind}.ir.xz"})
    found = lint_compilation(facts, [rule(code, **thresholds)]).findings
    assert any(words in each.message for each in found)
    above = {name: value + 1 for name, value in thresholds.items()}
    assert all(
        words not in each.message
        for each in lint_compilation(facts, [rule(code, **above)]).findings
    )


def test_dumps_of_two_runs_in_one_folder_send_what_nobody_receives(samples: Path) -> None:
    def ranks(of_rank_2: str) -> dict[int, CompilationFacts]:
        paths = {0: "pipeline_no_replicas/rank_0/20_validate_0080.ir.xz", 2: of_rank_2}
        return {
            rank: compilation({"validate": samples / path}, None, rank)
            for rank, path in paths.items()
        }

    mixed = lint_ranks(rule("COM007"), ranks("pipeline_2_stages/rank_2/20_validate_0080.ir"))
    assert {each.code for each in mixed.findings} == {"COM007"}
    same = lint_ranks(rule("COM007"), ranks("pipeline_no_replicas/rank_2/20_validate_0080.ir.xz"))
    assert not same.findings


ENVIRONMENT: list[tuple[str, dict[str, object], str]] = [
    ("ENV001", {"environment": {"MS_COMM_COMPILER_OPT": "-1"}}, "does nothing in MindSpore 2"),
    ("ENV002", {"environment": {"MS_INTERFERED_SAPP": "1"}}, "semi_auto_parallel"),
    ("ENV003", {"parallel_optimizer_config": {"parallel_optimizer_threshold": 0}}, "is off"),
]


@pytest.mark.parametrize(("code", "said", "words"), ENVIRONMENT)
def test_settings_without_effect_are_told_of_a_compiled_network(
    code: str, said: dict[str, object], words: str
) -> None:
    own = json.loads((FOLDER / "recompute_lost_dense.json").read_text(encoding="utf-8"))
    dump = FOLDER / "recompute_lost_dense.validate.ir.xz"
    first, *others = lint_compilation(
        compilation({"validate": dump}, {**own, **said}), [rule(code)]
    ).findings
    assert words in first.message
    assert not others
    quiet = {**own, "environment": {"GLOG_v": "2"}}
    assert not lint_compilation(compilation({"validate": dump}, quiet), [rule(code)]).findings


def again(text: str) -> str:
    """A dump as the next compilation prints it: other numbers and addresses, lines that moved."""
    text = re.sub(r"%(\d+)(?=[(,)\s\[])", lambda m: f"%{int(m[1]) + 500}", text)
    text = re.sub(r"CNode_(\d+)", lambda m: f"CNode_{int(m[1]) + 4000}", text)
    text = re.sub(r"0x[0-9a-f]{6,}", lambda m: f"{int(m[0], 16) + 64:#x}", text)
    text = re.sub(r'(unique_id: ")(\d+)', lambda m: f"{m[1]}{int(m[2]) + 900}", text)
    text = re.sub(r"-op(\d+)\)", lambda m: f"-op{int(m[1]) + 3})", text)
    text = re.sub(r"(net/\w+\.py:)(\d+)(?:~(\d+))?", _moved, text)
    return "\n\n" + text


def _moved(found: re.Match[str]) -> str:
    end = f"~{int(found[3]) + 12}" if found[3] else ""
    return f"{found[1]}{int(found[2]) + 12}{end}"


@pytest.mark.parametrize("name", TOLD)
def test_fingerprints_outlive_the_next_compilation(name: str) -> None:
    text = dumps(load(FOLDER / f"{name}.ir.xz"))
    first, second = linted(name, text), linted(name, again(text))
    assert [each.line + 2 for each in first if each.node] == [
        each.line for each in second if each.node
    ]
    assert prints(first) == prints(second)


def prints(found: Iterable[Finding]) -> list[str]:
    return [each.fingerprint for each in fingerprinted(found, lambda each: "validate")]
