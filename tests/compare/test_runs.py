"""``irtool diff`` on runs: one report that begins with the answer."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import irtool
from irtool.cli.main import main
from irtool.compare.runs.comparison import _add_missing
from irtool.compare.runs.hyperparameters import Evidence, hyperparameters
from irtool.compare.runs.units import _cause, unit_name
from tests.compare.dumps import msprobe, network


def run(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    try:
        status = main(list(arguments))
    except SystemExit as error:
        status = error.code
    captured = capsys.readouterr()
    return int(status or 0), captured.out, captured.err


@pytest.fixture
def runs(tmp_path: Path) -> tuple[str, str, str]:
    """A reference, a faulty run, a healthy one."""
    made = (
        msprobe(tmp_path / "reference", network(), True),
        msprobe(tmp_path / "faulty", network(epsilon=1e-2), True),
        msprobe(tmp_path / "healthy", network(noise=1e-7), True),
    )
    return str(made[0]), str(made[1]), str(made[2])


def found(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, dict[str, Any]]:
    status, out, _ = run(capsys, "diff", *arguments, "--format", "json")
    return status, json.loads(out)


def test_a_fault_is_status_1_and_the_first_divergence(
    capsys: pytest.CaptureFixture[str], runs: tuple[str, str, str]
) -> None:
    status, answer = found(capsys, runs[0], runs[1])
    assert status == 1
    first = answer["first_divergence"]
    assert first["left"]["name"] == "Functional.layer_norm.0.forward"
    assert first["left"]["source"] == "model.py:0"
    assert "input.4: 1e-05 → 0.01" in first["why"]
    assert answer["answer"][0].startswith("error begins at Functional.layer_norm.0.forward")
    assert sum(first["ulps"]["counts"].values()) == 32 * 16


def test_rounding_is_status_0_without_a_divergence(
    capsys: pytest.CaptureFixture[str], runs: tuple[str, str, str]
) -> None:
    status, answer = found(capsys, runs[0], runs[2])
    assert status == 0
    assert answer["first_divergence"] is None
    assert not answer["identical"]


def test_a_run_is_identical_to_itself(
    capsys: pytest.CaptureFixture[str], runs: tuple[str, str, str]
) -> None:
    status, answer = found(capsys, runs[0], runs[0])
    assert (status, answer["identical"]) == (0, True)


@pytest.mark.parametrize(("noise", "accused"), [(-1e-3, False), (-5e-4, False), (-2e-4, True)])
def test_a_repeated_run_says_what_is_noise(
    noise: float, accused: bool, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Results may be three times as far off as those of a healthy run of the left side."""
    made = {
        name: str(msprobe(tmp_path / name, network(noise=value), True))
        for name, value in (("left", 0.0), ("right", 1e-3), ("again", noise))
    }
    assert found(capsys, made["left"], made["right"])[0] == 1
    status, answer = found(capsys, made["left"], made["right"], "--repeat", made["again"])
    assert (status == 1, answer["first_divergence"] is not None) == (accused, accused)
    assert answer["repeats"] == [made["again"]]
    # The largest of several counts.
    both = ("--repeat", made["again"], "--repeat", made["right"])
    assert found(capsys, made["left"], made["right"], *both)[0] == 0


def test_strict_tells_a_single_bit(
    capsys: pytest.CaptureFixture[str], runs: tuple[str, str, str]
) -> None:
    status, answer = found(capsys, runs[0], runs[2], "--strict")
    assert status == 1
    assert answer["answer"][0] == (
        "not equal to the bit: 4 of 4 (100.0 %) operators differ, the first is "
        "Functional.layer_norm.0.forward (rank 0, step 0)"
    )
    assert answer["unequal"][0] == "Functional.layer_norm.0.forward"
    assert found(capsys, runs[0], runs[0], "--strict")[0] == 0


def test_strict_and_repeat_go_with_runs(capsys: pytest.CaptureFixture[str], samples: Path) -> None:
    left = str(samples / "mlp_semi_auto" / "step_parallel_begin_0018.ir")
    for option in (["--strict"], ["--repeat", left]):
        status, _, errors = run(capsys, "diff", left, left, *option)
        assert status == 2
        assert f"{option[0]}: error[CLI001]: goes with two runs" in errors


def test_text_begins_with_the_answer_and_html_holds_it(
    capsys: pytest.CaptureFixture[str], runs: tuple[str, str, str]
) -> None:
    _, text, _ = run(capsys, "diff", runs[0], runs[1])
    assert text.startswith("error begins at Functional.layer_norm.0.forward (model.py:0")
    _, page, _ = run(capsys, "diff", runs[0], runs[1], "--format", "html")
    assert "error begins at Functional.layer_norm.0.forward" in page


def test_digests_compare_without_the_tensors(
    capsys: pytest.CaptureFixture[str], runs: tuple[str, str, str], tmp_path: Path
) -> None:
    files = [str(tmp_path / name) for name in ("a.json.gz", "b.json")]
    for path, file in zip(runs, files, strict=False):
        assert run(capsys, "diff", "--digest", path, "-o", file)[0] == 0
    status, answer = found(capsys, *files)
    assert status == 1
    assert answer["first_divergence"]["left"]["op"] == "layer_norm"


def test_several_processes_give_the_same_answer(
    capsys: pytest.CaptureFixture[str], runs: tuple[str, str, str]
) -> None:
    assert found(capsys, runs[0], runs[1]) == found(capsys, runs[0], runs[1], "--jobs", "2")


def test_a_map_pairs_what_has_other_names(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    for side, name in (("a", "x"), ("b", "other")):
        (tmp_path / side).mkdir()
        np.save(tmp_path / side / f"{name}.npy", np.full(32, 1.0 + (side == "b"), np.float32))
    names = tmp_path / "names.txt"
    names.write_text("# left = right\nx = other\n")
    sides = str(tmp_path / "a"), str(tmp_path / "b")
    _, answer = found(capsys, *sides, "--map", str(names))
    assert answer["matched"] == 1
    names.write_text("nothing here\n")
    status, _, err = run(capsys, "diff", *sides, "--map", str(names))
    assert status == 2
    assert "one pair a line" in err


def test_a_folder_without_anything_is_a_message(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, runs: tuple[str, str, str]
) -> None:
    (tmp_path / "empty").mkdir()
    status, _, err = run(capsys, "diff", runs[0], str(tmp_path / "empty"))
    assert status == 2
    assert "nothing to compare" in err


def test_runs_that_have_nothing_in_common_cannot_be_compared(
    capsys: pytest.CaptureFixture[str], runs: tuple[str, str, str], tmp_path: Path
) -> None:
    values = np.ones((3, 5), np.float32)
    other = msprobe(tmp_path / "other", [("Torch.cosh.0.forward", (values,), values)])
    status, _, err = run(capsys, "diff", runs[0], str(other))
    assert status == 2
    assert "no operator of one run has a partner in the other" in err


def test_digest_takes_one_run(
    capsys: pytest.CaptureFixture[str], runs: tuple[str, str, str]
) -> None:
    status, _, err = run(capsys, "diff", "--digest", *runs[:2])
    assert status == 2
    assert "one run" in err


def test_hyperparameters_that_only_one_side_knows_are_no_difference() -> None:
    (row,) = hyperparameters(Evidence(context={"device_num": 8}), Evidence())
    assert (row.name, row.left, row.right, row.same) == ("devices", "8", "(not known)", None)
    (row,) = hyperparameters(
        Evidence(context={"gradients_mean": True}), Evidence(context={"gradients_mean": False})
    )
    assert (row.left, row.right, row.same) == ("mean", "sum", False)


@pytest.mark.parametrize(("size", "told"), [("8", "8"), ("-1", None)])
def test_a_dynamic_batch_is_not_known(size: str, told: str | None) -> None:
    text = (
        "# IR entry: @net_1\n# Total subgraphs: 1\n\n# Params:\n"
        f"%para1_x: <Tensor[Float32], ({size}, 16)>\n\n"
        "subgraph instance: net_1 : 0x55aa\nsubgraph @net_1() {\n"
        f"  %0(CNode_1) = ReLU(%para1_x)\n      : (<Tensor[Float32], ({size}, 16)>)"
        f" -> (<Tensor[Float32], ({size}, 16)>)\n"
        f"  Return(%0)\n      : (<Tensor[Float32], ({size}, 16)>)\n}}\n"
    )
    given = Evidence(dump=irtool.loads(text, "net.ir"))
    rows = {row.name: row.left for row in hyperparameters(given, given)}
    assert rows.get("batch of a rank") == told


@pytest.mark.corpus
def test_half_precision_products_accuse_nobody_and_casts_are_located(
    capsys: pytest.CaptureFixture[str], corpus: Path
) -> None:
    folder = corpus / "precision" / "mindspore_cpu"
    status, answer = found(capsys, str(folder / "reference"), str(folder / "half_matmul"))
    assert status == 1, "a precision that one side lowers is something to see, and nobody's fault"
    assert answer["first_divergence"] is None
    assert [op["op"] for op in answer["only_right"]] == ["Cast"] * 176
    assert [each["rate"] for each in answer["tensors"][0]["join"].values()] == [1.0, 1.0]
    assert answer["tensors"][0]["payload_conflicts"] == [0, 72]


@pytest.mark.parametrize(
    ("key", "name"),
    [
        ((0, 1, 0, ""), "rank 0, step 1"),
        ((3, 0, 2, ""), "rank 3, step 0, graph 2"),
        ((3, -1, 0, "eval"), "rank 3, eval"),
        ((1, 2, 1, "x"), "rank 1, step 2, graph 1, x"),
    ],
)
def test_a_unit_is_named_by_what_it_is(key: tuple[int, int, int, str], name: str) -> None:
    assert unit_name(key) == name


# -- what is missing, and what comes first ---------------------------------------------------------


def side(path: str, units: tuple[tuple[int, int, int, str], ...], **more: object) -> Any:
    kept = {"dump": None, "losses": None, **more}
    return SimpleNamespace(path=path, units=dict.fromkeys(units), **kept)


@pytest.mark.parametrize(
    ("left", "right", "common", "missing"),
    [
        (
            side("a/run", ((0, 1, 0, ""),), dump=1, losses=1),
            side("b/run", ((0, 2, 0, ""),), dump=1, losses=1),
            {},
            ["tensors: no step of a rank is in both (rank 0, step 1; rank 0, step 2)"],
        ),
        (
            side("a/run", ((0, 1, 0, ""),), dump=1, losses=1),
            side("b/run", ((0, 1, 0, ""),), dump=1, losses=1),
            {(0, 1, 0, ""): 1},
            [],
        ),
        (
            side("a/run", (), dump=1),
            side("b/run", ((0, 2, 0, ""),), dump=1),
            {},
            ["tensors: a/run has none", "losses: neither run has any"],
        ),
        (
            side("a/one", (), losses=1),
            side("b/two/", (), losses=1, dump=1),
            {},
            ["graphs: one has none", "tensors: neither run has any"],
        ),
    ],
)
def test_what_a_run_lacks_is_said(left: Any, right: Any, common: Any, missing: list[str]) -> None:
    comparison: Any = SimpleNamespace(left=left, right=right, units=common, missing=[])
    _add_missing(comparison)
    assert comparison.missing == missing


def test_what_comes_first_goes_by_step_then_by_collectives_then_by_place() -> None:
    def cause(step: int | None, *types: str) -> tuple[int, ...]:
        ops = [SimpleNamespace(type=name, index=n) for n, name in enumerate(types)]
        left = SimpleNamespace(step=step, ops=ops)
        first = SimpleNamespace(pair=SimpleNamespace(left=ops[-1]))
        comparison: Any = SimpleNamespace(left=left, first=first)
        return _cause(comparison)

    unnumbered = cause(None, "MatMul", "ReLU")
    order = [
        unnumbered,
        cause(0, "MatMul", "MatMul", "ReLU"),
        cause(0, "MatMul", "AllReduce"),
        cause(0, "AllReduce", "ReLU"),
        cause(1, "ReLU"),
    ]
    assert sorted(order) == order
    nothing: Any = SimpleNamespace(first=None)
    assert _cause(nothing) == ()
