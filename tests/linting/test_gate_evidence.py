"""The gate on pairs that MindSpore compiled: what was changed is told first, and as one cause."""

from __future__ import annotations

import json
import lzma
import re
from pathlib import Path

import pytest

from irtool.cli.main import main
from irtool.linting.registry import own_rules
from tests.linting.test_evidence import again

FOLDER = Path(__file__).parent / "evidence" / "gate"
GOLDEN = FOLDER / "golden_dense.validate.ir.xz"
MIXER = FOLDER / "golden_mixer.validate.ir.xz"
"""Trained by a function: its scopes tell no layers."""

CAUSES = {
    "lost_recompute_dense": ("GAT004", r"blocks\.1 is no longer recomputed"),
    "layer_more_dense": ("GAT008", r"blocks\.4 was added"),
    "half_dense": ("GAT006", "Float32.* → Float16"),
    "rate_dense": ("GAT009", r"0\.9 → 0\.5 in blocks\.1"),
    "print_dense": ("GAT010", "Print was added"),
    "strategy_dense": ("GAT003", r"\(\(2, 2\), \(1, 2\)\) → \(\(2, 1\), \(2, 1\)\) in blocks\.1"),
    "lost_recompute_mixer": ("GAT004", r"stages\.2 is no longer recomputed"),
    "lost_recompute_experts": ("GAT004", r"layers\.2 is no longer recomputed"),
    "layer_more_recurrent": ("GAT008", r"units\.4 was added"),
    "layer_more_mixer": ("GAT008", r"stages\.4 was added"),
    "half_mixer": ("GAT006", "Float32.* → Float16"),
    "rate_mixer": ("GAT009", r"0\.9 → 0\.5 in stages\.2"),
    "epsilon_mixer": ("GAT009", r"1e-05 → 0\.001 in stages\.2"),
    "print_mixer": ("GAT010", r"Print was added in stages\.2"),
    "half_gated": ("GAT006", "Float32.* → Float16"),
    "strategy_gated": ("GAT003", r"\(none\) → \(\(2, 1\), \(2, 1\)\) in layers\.2"),
    "epsilon_gated": ("GAT009", r"1e-06 → Float32 0\.001 in layers\.2"),
    "later_rate_gated": ("GAT009", r"0\.9 → 0\.5 in layers\.2"),
    "momentum_blocks": ("GAT010", "^the optimizer is ApplyMomentum instead of Adam$"),
    "clip_blocks": ("GAT010", "Square.* were added between gradients and updates$"),
    "frozen_blocks": ("GAT010", r"^blocks\.1\.up is no longer trained"),
    "detach_blocks": ("GAT010", r"^4 weights of blocks\.2 \(.*\) get no gradient any more"),
    "postnorm_blocks": ("GAT010", r"wired otherwise in blocks\.2, blocks\.3: LayerNorm, Add read"),
    "skip_blocks": ("GAT010", r"wired otherwise in blocks\.2: Add read"),
    "sum_blocks": ("GAT010", "ReduceMean → ReduceSum in _loss_fn-MSELoss"),
    "sharded_blocks": ("GAT008", r"^optimizer parallel was switched on: .*Float32\[32\] instead"),
    "strategy_tables": ("GAT003", r"^Gather: in_strategy: \(\(4, 4\), .*→ \(\(16, 1\), \(1,\)\)"),
    "strategy_mixer": ("GAT003", r"→ \(\(2, 1, 1\), \(1, 2\)\) in stages\.2"),
}
"""By what the golden network was changed to: the first finding's rule, and what it says."""

CONSEQUENCES: list[tuple[str, str, str, list[str]]] = [
    ("GAT001", "golden_dense", "strategy_dense", ["--select", "GAT001"]),
    ("GAT001", "golden_gated", "strategy_gated", ["--select", "GAT001"]),
    ("GAT001", "golden_mixer", "strategy_mixer", ["--select", "GAT001"]),
    ("GAT002", "half_gated", "golden_gated", ["--select", "GAT002"]),
    ("GAT005", "wide_golden_dense", "wide_layer_more_dense", ["--select", "GAT005"]),
    ("GAT007", "golden_dense", "layer_more_dense", ["--select", "GAT007"]),
    ("GAT007", "golden_mixer", "layer_more_mixer", ["--select", "GAT007"]),
    ("GAT011", "golden_dense", "layer_more_dense", ["--budget", "statements=+5%"]),
]
"""Rules that tell what follows from a cause, or what is above a budget: old, new, options."""


@pytest.mark.parametrize(("code", "old", "new", "options"), CONSEQUENCES)
def test_consequences_are_told_where_they_are_asked_for(
    code: str,
    old: str,
    new: str,
    options: list[str],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    answer = tmp_path / "answer.json"
    paths = [str(FOLDER / f"{name}.validate.ir.xz") for name in (old, new)]
    assert (
        main(["gate", *paths, *options, "--fail-on", "info", "-f", "json", "-o", str(answer)]) == 1
    )
    found = json.loads(answer.read_text(encoding="utf-8"))["findings"]
    assert code in {each["code"] for each in found}
    # Of the golden dump against itself, none of it is true.
    assert main(["gate", paths[0], paths[0], *options, "--fail-on", "info"]) == 0
    capsys.readouterr()


@pytest.mark.parametrize("name", CAUSES)
def test_what_was_changed_is_told_first(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    answer = tmp_path / "answer.json"
    new = FOLDER / f"{name}.validate.ir.xz"
    golden = FOLDER / f"golden_{name.rpartition('_')[2]}.validate.ir.xz"
    assert main(["gate", str(golden), str(new), "-f", "json", "-o", str(answer)]) == 1
    capsys.readouterr()
    first, *others = json.loads(answer.read_text(encoding="utf-8"))["findings"]
    code, words = CAUSES[name]
    assert first["code"] == code
    assert re.search(words, first["message"])
    assert all(place["line"] > 0 for each in (first, *others) for place in each["related"])
    causes = {entry[0] for entry in CAUSES.values()}
    assert not causes & {each["code"] for each in others}


REVERSED = {
    "momentum_blocks": ("GAT010", "^the optimizer is Adam instead of ApplyMomentum$"),
    "clip_blocks": ("GAT010", "Square.* were removed between gradients and updates$"),
    "frozen_blocks": ("GAT010", r"^blocks\.1\.up is now trained"),
    "detach_blocks": ("GAT010", r"^4 weights of blocks\.2 \(.*\) get a gradient now$"),
    "postnorm_blocks": ("GAT010", r"wired otherwise in blocks\.2, blocks\.3"),
    "skip_blocks": ("GAT010", r"wired otherwise in blocks\.2"),
    "sum_blocks": ("GAT010", "ReduceSum → ReduceMean"),
    "sharded_blocks": ("GAT008", r"^optimizer parallel was switched off: .*Float32\[256\] instead"),
}
"""Where the change was golden, and what was golden came: the only finding."""


@pytest.mark.parametrize("name", REVERSED)
def test_what_was_changed_back_is_told_as_one_finding(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    answer = tmp_path / "answer.json"
    old, new = (FOLDER / f"{each}.validate.ir.xz" for each in (name, "golden_blocks"))
    assert main(["gate", str(old), str(new), "-f", "json", "-o", str(answer)]) == 1
    capsys.readouterr()
    (finding,) = json.loads(answer.read_text(encoding="utf-8"))["findings"]
    code, words = REVERSED[name]
    assert finding["code"] == code
    assert re.search(words, finding["message"])


def test_updates_of_a_layer_that_came_are_no_optimizer(tmp_path: Path) -> None:
    answer = tmp_path / "answer.json"
    old, new = (FOLDER / f"{name}_dense.validate.ir.xz" for name in ("golden", "layer_more"))
    main(["gate", str(old), str(new), "--select", "GAT010", "-f", "json", "-o", str(answer)])
    assert not json.loads(answer.read_text(encoding="utf-8"))["findings"]


def test_the_next_compilation_of_the_same_network_is_silent(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    new = tmp_path / "20_validate_0080.ir"
    text = lzma.decompress(GOLDEN.read_bytes()).decode("utf-8", "surrogateescape")
    new.write_text(again(text), encoding="utf-8", errors="surrogateescape")
    assert main(["gate", str(GOLDEN), str(new), "--fail-on", "info"]) == 0
    capsys.readouterr()


def test_the_same_network_compiled_again_from_lines_that_moved_is_silent(
    capsys: pytest.CaptureFixture[str],
) -> None:
    new = FOLDER / "again_mixer.validate.ir.xz"
    lines = [
        set(re.findall(rb"mixers\.py:\d+", lzma.decompress(each.read_bytes())))
        for each in (MIXER, new)
    ]
    assert not lines[0] & lines[1]
    assert main(["gate", str(MIXER), str(new), "--fail-on", "info"]) == 0
    capsys.readouterr()


def test_rules_of_the_gate_name_the_dumps_on_which_they_speak() -> None:
    named = {
        (entry.code, Path(case).name)
        for entry in own_rules().values()
        for case in entry.load().cases
        if case.startswith("tests/linting/evidence/gate/") and not case.endswith(", damaged")
    }
    told = {(code, f"{name}.validate") for name, (code, _) in CAUSES.items()}
    told |= {(code, f"{new}.validate") for code, _, new, _ in CONSEQUENCES}
    assert named == told


def test_another_version_of_mindspore_is_silent(capsys: pytest.CaptureFixture[str]) -> None:
    """2.10 against 2.7; ``later_rate_gated`` is of 2.10, too."""
    old, new = (FOLDER / f"{name}_gated.validate.ir.xz" for name in ("golden", "later"))
    assert main(["gate", str(old), str(new), "--fail-on", "info"]) == 0
    assert main(["gate", str(new), str(old), "--fail-on", "info"]) == 0
    capsys.readouterr()
