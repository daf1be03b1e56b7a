"""Loss curves: reading what runs leave, and telling faults from noise."""

from __future__ import annotations

import json
import math
import random
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from irtool.cli.main import main
from irtool.compare.losses.comparison import NothingInCommon, compare_losses
from irtool.compare.losses.log_lines import read_log
from irtool.compare.losses.read import read_loss
from irtool.compare.losses.series import LossRun, NoLoss, Series, quantum_of, series
from irtool.compare.losses.tables import read_csv, read_json, read_json_lines

# -- reading -------------------------------------------------------------------------------------

LOGS = {
    "LossMonitor": (
        ["epoch: 1 step: 1, loss is 2.5", "epoch: 1 step: 2, loss is 2.25"],
        {1: 2.5, 2: 2.25},
    ),
    "LossMonitor from 0": (["epoch: 0, step: 100, loss is 3.0"], {100: 3.0}),
    "LossMonitor, steps anew in each epoch": (
        [
            "epoch: 1 step: 1, loss is 2.5",
            "epoch: 1 step: 2, loss is 2.25",
            "epoch: 2 step: 1, loss is 2.0",
            "epoch: 2 step: 2, loss is 1.75",
        ],
        {1: 2.5, 2: 2.25, 3: 2.0, 4: 1.75},
    ),
    "MindFormers": (
        [
            "2026-01-02 10:00:00,123 - mindformers - INFO - { Epoch:[  1/  2], step:[   10/ 1000], "
            "loss: 9.812, per_step_time: 512ms, lr: 1e-05, overflow cond: False, "
            "loss_scale: 65536.0, global_norm: [3.5], train_throughput_per_npu: 10.2T"
        ],
        {10: 9.812},
    ),
    "Megatron": (
        [
            " iteration      100/    1000 | consumed samples:         1600 | elapsed time per "
            "iteration (ms): 512.3 | learning rate: 1.500E-04 | global batch size:    16 | "
            "lm loss: 9.876543E+00 | loss scale: 1.0 | grad norm: 1.234 |"
        ],
        {100: 9.876543},
    ),
    "Hugging Face": (
        [
            "{'loss': 2.5, 'grad_norm': 1.25, 'learning_rate': 5e-05, 'epoch': 0.1}",
            "{'loss': 2.4, 'grad_norm': 1.15, 'learning_rate': 5e-05, 'epoch': 0.2}",
        ],
        {0: 2.5, 1: 2.4},
    ),
    "home-made": (["Epoch [1/5], Step [100/600], Loss: 0.3125"], {100: 0.3125}),
    "short": (["step 7 loss=1.5 acc=0.9"], {7: 1.5}),
    "colours": (["\x1b[32mstep 7\x1b[0m loss: 1.5"], {7: 1.5}),
    "not finite": (["step: 3, loss is nan"], {3: math.nan}),
}


@pytest.mark.parametrize(("lines", "values"), LOGS.values(), ids=LOGS)
def test_steps_of_logs(lines: list[str], values: dict[int, float]) -> None:
    found = read_log(["some other line", *lines, "nothing here either"], "train.log")
    assert str(dict(found.loss.values)) == str(values)


def test_what_else_a_line_tells() -> None:
    (line,) = LOGS["Megatron"][0]
    others = {name: dict(each.values) for name, each in read_log([line], "a.log").others.items()}
    assert others == {
        "grad_norm": {100: 1.234},
        "learning_rate": {100: 1.5e-4},
        "loss_scale": {100: 1.0},
        "global_batch_size": {100: 16.0},
    }


@pytest.mark.parametrize(
    ("text", "quantum"),
    [("2.345", 0.001), ("9.876543E+00", 1e-6), ("1.5e-3", 1e-4), ("3", 1.0),
     ("4.334151744842529", 0.0), ("nan", 0.0)],
)  # fmt: skip
def test_printed_digits(text: str, quantum: float) -> None:
    assert quantum_of(text) == pytest.approx(quantum)


def test_a_log_without_a_loss() -> None:
    with pytest.raises(NoLoss, match="no line tells a loss"):
        read_log(["step 1 accuracy 0.5", "glossy step 2"], "a.log")


@pytest.mark.parametrize(
    "text",
    [
        '{"loss": [1.0, 0.5]}',
        "[1.0, 0.5]",
        '[{"step": 0, "loss": 1.0}, {"step": 1, "loss": 0.5}]',
        '{"0": 1.0, "1": 0.5}',
        '{"loss": {"0": 1.0, "1": 0.5}}',
        '{"log_history": [{"step": 0, "loss": 1.0}, {"step": 1, "loss": 0.5}, {"eval": 3}]}',
        '{"step": [0, 1], "train_loss": [1.0, 0.5]}',
        '[{"loss": 1.0}, {"loss": 0.5}, "done", null, 7]',
        '{"log_history": ["begun", {"step": 0, "loss": 1.0}, [3], {"step": 1, "loss": 0.5}]}',
    ],
)
def test_json_in_every_shape(text: str) -> None:
    assert read_json(text, "a.json").loss.values == {0: 1.0, 1: 0.5}


def test_json_lines_with_a_broken_one() -> None:
    found = read_json_lines(['{"iteration": 5, "lm loss": 2.0}', "{broken", ""], "a.jsonl")
    assert (dict(found.loss.values), found.skipped) == ({5: 2.0}, 1)


@pytest.mark.parametrize("separator", [",", ";", "\t"])
def test_tables(separator: str) -> None:
    text = "step,loss,lr\n1,2.5,0.1\n2,2.25,0.1\n".replace(",", separator)
    found = read_csv(text, "a.csv")
    assert found.loss.values == {1: 2.5, 2: 2.25}
    assert found.others["learning_rate"].values == {1: 0.1, 2: 0.1}


def test_a_table_with_a_field_that_never_ends_is_none(tmp_path: Path) -> None:
    table = tmp_path / "loss.csv"
    table.write_text("step,loss\n1," + "9" * 200_000 + "\n")
    with pytest.raises(NoLoss, match="no table: field larger than"):
        read_loss(str(table))


@pytest.mark.parametrize("text", ["{", "[]", '{"accuracy": [1]}', '{"loss": ["x"]}', "7"])
def test_json_without_a_loss(text: str) -> None:
    with pytest.raises(NoLoss):
        read_json(text, "a.json")


@given(st.text(max_size=300))
def test_no_text_is_a_traceback(text: str) -> None:
    for read in (read_json, read_csv, lambda each, path: read_log(each.splitlines(), path)):
        try:
            read(text, "any")
        except NoLoss:
            pass


# -- comparing -----------------------------------------------------------------------------------


def run(values: list[float], first: int = 0) -> LossRun:
    return LossRun("run", "json", Series(dict(enumerate(values, start=first))))


BASE = [3.0 * 0.995**step + 1.0 + 0.05 * math.sin(step * 1.7) for step in range(400)]


def noisy(scale: float, seed: int = 1) -> list[float]:
    """Differences whose sign changes, and which go together from step to step."""
    source = random.Random(seed)
    drifted = 0.0
    made: list[float] = []
    for value in BASE:
        drifted = 0.7 * drifted + source.gauss(0, scale)
        made.append(value * (1 + drifted))
    return made


def test_equal_curves_are_identical() -> None:
    found = compare_losses(run(BASE), run(BASE))
    assert found.verdict == "identical"
    assert not found.is_suspicious
    assert found.change_step is None


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize("scale", [1e-7, 1e-4])
def test_noise_is_no_fault(scale: float, seed: int) -> None:
    assert compare_losses(run(BASE), run(noisy(scale, seed))).verdict == "noise"


def test_a_small_steady_difference_is_a_drift() -> None:
    right = [value * (1 + 1e-4 + 1e-5 * math.sin(n)) for n, value in enumerate(BASE)]
    found = compare_losses(run(BASE), run(right))
    assert found.verdict == "drift"
    assert found.drift.positive == 1.0
    assert found.mre < 0.005


def test_the_step_of_a_late_change_is_found() -> None:
    right = [value * (1 + (2e-4 if step >= 300 else 0)) for step, value in enumerate(BASE)]
    found = compare_losses(run(BASE), run(right))
    assert (found.verdict, found.change_step) == ("drift", 300)
    assert found.drift_after is not None
    assert found.drift_after.t > found.drift.t


def test_another_first_loss_is_told_as_such() -> None:
    right = [1.01 * value + 1e-3 * math.sin(step) for step, value in enumerate(BASE)]
    assert compare_losses(run(BASE), run(right)).verdict == "different from the first step"


def test_a_loss_that_is_scaled_is_told_as_such() -> None:
    found = compare_losses(run(BASE), run([1.01 * value for value in BASE]))
    assert (found.verdict, found.multiple) == ("multiple", pytest.approx(1.01))


def test_repeats_raise_the_noise_floor() -> None:
    right = run([value + 1e-4 for value in BASE])
    repeat = run([value + 2e-5 * (-1) ** step for step, value in enumerate(BASE)])
    assert compare_losses(run(BASE), right).verdict == "drift"
    widened = compare_losses(run(BASE), right, [repeat])
    assert (widened.verdict, widened.floor_from) == ("noise", "repeats")


def test_printed_digits_are_part_of_the_floor() -> None:
    left = LossRun("a", "log", Series({n: round(v, 2) for n, v in enumerate(BASE)}, 0.01))
    right = LossRun("b", "log", Series({n: round(v + 0.003, 2) for n, v in enumerate(BASE)}, 0.01))
    found = compare_losses(left, right)
    assert (found.verdict, found.floor_from) == ("noise", "printed digits")


def test_runs_that_count_from_0_and_from_1_are_aligned() -> None:
    found = compare_losses(run(BASE), run(BASE, first=1))
    assert (found.verdict, found.offset, len(found.steps)) == ("identical", -1, 400)


def test_other_steps_are_counted() -> None:
    found = compare_losses(run(BASE), run(BASE[100:], first=100))
    assert (found.only_left, found.only_right, len(found.steps)) == (100, 0, 300)
    with pytest.raises(
        NothingInCommon, match="steps 0 to 399 on the left, steps 1000 to 1399 on the right"
    ):
        compare_losses(run(BASE), run(BASE, first=1000))


def test_a_loss_that_is_no_number_any_more() -> None:
    right = [*BASE[:200], *[math.nan] * 200]
    found = compare_losses(run(BASE), run(right))
    assert found.is_suspicious
    assert found.broken[0] == (200, "right")


def test_a_spike_of_one_run() -> None:
    right = list(BASE)
    right[250] += 2.0
    found = compare_losses(run(BASE), run(right))
    assert (250, "right") in found.spikes


def test_a_first_loss_that_differs_in_its_last_digit_does_not_differ() -> None:
    left = LossRun("a", "log", series(enumerate(["2.34", "2.20", "2.11"])))
    assert compare_losses(left, replace(left, loss=series(enumerate(["2.35", "2.20", "2.11"])))
                          ).verdict == "noise"  # fmt: skip
    assert compare_losses(left, replace(left, loss=series(enumerate(["2.37", "2.20", "2.11"])))
                          ).verdict == "different from the first step"  # fmt: skip


def test_a_loss_in_bfloat16_has_its_unit() -> None:
    left = LossRun("a", "json", series([(0, 2.1371490955352783), (1, 2.015286922454834)]))
    right = LossRun("b", "json", series([(0, 2.140625), (1, 2.015625)]))
    assert right.loss.quantum == 2.0**-6
    assert series([(0, 2.5), (1, 1.5)]).quantum == 0
    assert compare_losses(left, right).verdict == "noise"


# -- the command ---------------------------------------------------------------------------------


@pytest.fixture
def curves(tmp_path: Path) -> Callable[..., list[str]]:
    def write(*values: list[float]) -> list[str]:
        paths: list[str] = []
        for number, each in enumerate(values):
            path = tmp_path / f"run{number}.json"
            path.write_text(json.dumps({"loss": each}), encoding="utf-8")
            paths.append(str(path))
        return paths

    return write


def test_the_command_tells_the_verdict(
    curves: Callable[..., list[str]], capsys: pytest.CaptureFixture[str]
) -> None:
    right = [value * (1 + (2e-4 if step >= 300 else 0)) for step, value in enumerate(BASE)]
    assert main(["diff", "--loss", *curves(BASE, right)]) == 1
    out = capsys.readouterr().out
    assert out.startswith("the right run drifts above the left one from step 300 on")
    assert "█" in out
    assert main(["diff", "--loss", *curves(BASE, BASE)]) == 0


def test_one_step_is_one_step(
    curves: Callable[..., list[str]], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["diff", "--loss", *curves([2.5], [2.5])]) == 0
    out = capsys.readouterr().out
    assert out.startswith("identical in 1 step\n")
    assert "1 steps" not in out


@pytest.mark.parametrize("format", ["json", "svg", "html"])
def test_other_formats(
    format: str, curves: Callable[..., list[str]], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["diff", "--loss", *curves(BASE, noisy(1e-4)), "--format", format]) == 0
    out = capsys.readouterr().out
    if format == "json":
        assert json.loads(out)["schema"] == "irtool.diff.loss/1"
    else:
        assert "<svg" in out


def test_a_run_folder_gives_its_longest_curve(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for name, count in (("a", 5), ("b", 5)):
        folder = tmp_path / name / "log_output"
        folder.mkdir(parents=True)
        lines = [f"epoch: 1 step: {n}, loss is {2.5 - n / 10}" for n in range(1, count + 1)]
        (folder / "worker_0.log").write_text("\n".join(lines), encoding="utf-8")
    assert main(["diff", "--loss", str(tmp_path / "a"), str(tmp_path / "b")]) == 0
    assert "identical in 5 steps" in capsys.readouterr().out


def test_mistakes_are_explained(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    empty = tmp_path / "empty.log"
    empty.write_text("", encoding="utf-8")
    assert main(["diff", "--loss", str(empty), str(empty)]) == 2
    assert "no line tells a loss" in capsys.readouterr().err
    assert main(["diff", "--loss", str(tmp_path), str(tmp_path)]) == 2
    assert main(["diff", "--loss", str(empty)]) == 2


# -- real curves ---------------------------------------------------------------------------------

REAL = {
    "bf16": ("noise", None),
    "ulp1": ("noise", None),
    "lr105": ("drift", 1),
    "wd0": ("drift", 1),
    "gradscale": ("drift", 101),
}


@pytest.mark.parametrize(("name", "expected"), REAL.items(), ids=REAL)
def test_real_faults_and_real_noise(
    corpus: Path, name: str, expected: tuple[str, int | None]
) -> None:
    folder = corpus / "precision/loss"
    found = compare_losses(
        read_loss(str(folder / "base.json")), read_loss(str(folder / f"{name}.json"))
    )
    verdict, step = expected
    assert found.verdict == verdict
    if step is not None:
        assert found.change_step is not None
        assert abs(found.change_step - step) <= 1


@pytest.mark.parametrize(("loss", "is_finite"), [(9e99, True), (1e100, False), (-1e200, False)])
def test_a_loss_that_no_training_has_counts_as_infinite(loss: float, is_finite: bool) -> None:
    assert math.isfinite(series([(1, loss)]).values[1]) == is_finite


def test_a_loss_that_is_no_number_stays_none() -> None:
    assert math.isnan(series([(1, "nan")]).values[1])
