"""The examination: what is asked of a run, in which order it is told, and what guards it."""

from __future__ import annotations

import gc
import json
import random
import shutil
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from irtool.cli.main import app
from irtool.cluster.context.given import Given
from irtool.diagnosis.diagnosis import (
    TASKS,
    CannotJudge,
    Diagnosis,
    NotJudged,
    Task,
    diagnosis,
    ranked,
    strategy_edit,
)
from irtool.diagnosis.examine import Examination, _told_once
from irtool.diagnosis.figures import Figures
from irtool.diagnosis.registry import RegisteredTask, all_tasks
from irtool.diagnosis.subject import Subject
from irtool.diagnosis.tasks.lint import _diagnosis as lint_diagnosis
from irtool.ir.finding import Edit, Finding, Severity, SourceLine
from irtool.report.doctor.report import commands_of, doctor_report
from irtool.report.model import Note
from irtool.syntax.run import load_run
from tests.cluster.rank_dumps import Do, all_reduce, rank_text

WORLD = (0, 1, 2)


def asked(*words: object, status: int) -> Any:
    result = CliRunner().invoke(app, [str(word) for word in words])
    assert result.exit_code == status, result.output
    return result.stdout


def made(path: Path, *words: object, status: int, command: str = "doctor") -> dict[str, Any]:
    return json.loads(asked(command, path, *words, "-f", "json", status=status))


def run_of(folder: Path, *programs: list[Do]) -> Path:
    for rank, steps in enumerate(programs):
        place = folder / f"rank_{rank}"
        place.mkdir(parents=True)
        (place / "20_validate_0080.ir").write_text(rank_text(*steps))
    return folder


def test_every_task_is_registered_once_and_has_a_place_in_the_order() -> None:
    names = [task.name for task in all_tasks()]
    assert sorted(names) == sorted(TASKS)


def test_errors_come_first_and_then_what_stops_a_run() -> None:
    def of(task: str, severity: str, weight: float = 0.0) -> Diagnosis:
        return Diagnosis(task, severity, "", (), weight=weight)  # type: ignore[arg-type]  # names

    found = [
        of("memory", "info"), of("lint", "error"), of("recompute", "warning", 1.0),
        of("recompute", "warning", 2.0), of("hang", "error"), of("strategy", "error"),
    ]  # fmt: skip
    order = [(item.task, item.severity, item.weight) for item in ranked(found)]
    assert order == [
        ("strategy", "error", 0.0),
        ("hang", "error", 0.0),
        ("lint", "error", 0.0),
        ("recompute", "warning", 2.0),
        ("recompute", "warning", 1.0),
        ("memory", "info", 0.0),
    ]


def test_chances_come_by_what_they_save_and_then_by_task() -> None:
    def of(task: str, severity: str, share: float) -> Diagnosis:
        return Diagnosis(task, severity, "", (), share=share)  # type: ignore[arg-type]  # names

    found = [
        of("memory", "info", 0.02), of("slow-step", "info", 0.1), of("redistribution", "info", 0.3),
        of("lint", "info", 0.0), of("recompute", "info", 0.0), of("lint", "warning", 0.0),
        of("hang", "error", 0.0), of("strategy", "error", 0.0),
    ]  # fmt: skip
    assert [item.task for item in ranked(found)] == [
        "strategy", "hang", "lint", "redistribution", "slow-step", "memory", "recompute", "lint",
    ]  # fmt: skip


def test_a_refused_strategy_comes_with_its_line_and_what_to_write(samples: Path) -> None:
    told = made(samples / "mlp_rejected", status=1)
    first = told["findings"][0]
    assert (first["task"], first["severity"]) == ("strategy", "error")
    assert first["source"] == {"file": "net.py", "line": 33}
    assert first["edit"] == {"setting": "in_strategy", "value": "((2, 4), (1, 4))"}
    assert first["command"] == ["irtool", "check", str(samples / "mlp_rejected")]


@pytest.mark.parametrize(
    ("text", "edit"),
    [
        ("self.matmul.shard(((2, 4), (1, 2)))",
         Edit(file="net.py", line=33, old="((2, 4), (1, 2))", new="((2, 4), (1, 4))")),
        ("x = self.matmul(x, w)", Edit(setting="in_strategy", value="((2, 4), (1, 4))")),
    ],
)  # fmt: skip
def test_a_line_is_edited_only_where_it_holds_what_is_to_go(text: str, edit: Edit) -> None:
    source = SourceLine("net.py", 33, text=text)
    assert strategy_edit(source, "((2, 4), (1, 2))", "((2, 4), (1, 4))") == edit


def test_a_folder_in_the_place_of_a_command_is_examined(samples: Path) -> None:
    path = samples / "pipeline_2_stages"
    by_command = asked("doctor", path, status=0)
    assert asked(path, status=0) == by_command
    assert "nothing wrong" in by_command


def test_the_name_of_a_command_wins_over_a_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "rules").mkdir()
    monkeypatch.chdir(tmp_path)
    assert "STR001" in asked("rules", status=0)


def test_a_rank_that_leaves_the_script_is_named_with_its_line(tmp_path: Path) -> None:
    usual = [all_reduce(WORLD), all_reduce(WORLD, shape=(8, 8))]
    odd = [all_reduce(WORLD), all_reduce(WORLD, shape=(9, 9))]
    told = made(run_of(tmp_path / "run", usual, odd, usual), status=1)
    first = told["findings"][0]
    assert (first["task"], first["rank"], first["ranks"]) == ("hang", 1, [1])
    assert first["source"] == {"file": "net.py", "line": 2}
    assert "rank 1 diverges from the other ranks" in first["cause"]


def test_ranks_that_left_nothing_make_a_hang_not_judged(samples: Path) -> None:
    told = made(samples / "pipeline_run", status=0)
    assert "hang" in {item["task"] for item in told["not_judged"]}
    assert told["healthy"] is None


@pytest.mark.parametrize(
    ("severities", "not_judged", "healthy"),
    [
        ((), ("loss", "precision", "compile-failure", "failed-node"), True),
        (("info",), (), True),
        (("info",), ("hang",), None),
        (("info", "warning"), ("hang",), False),
        (("error",), (), False),
    ],
)
def test_a_run_is_healthy_only_where_all_that_a_run_shows_was_judged(
    severities: tuple[Severity, ...], not_judged: tuple[Task, ...], healthy: object
) -> None:
    findings = tuple(
        diagnosis("lint", severity, "a cause", command=("lint",)) for severity in severities
    )
    missing = tuple(NotJudged(task, "not there") for task in not_judged)
    assert Examination("run", findings, missing, Figures()).is_healthy is healthy


def test_a_rank_that_stopped_half_way_is_a_failed_node(samples: Path, tmp_path: Path) -> None:
    path = tmp_path / "run"
    shutil.copytree(samples / "pipeline_run", path)
    (path / "rank_4/20_validate_0080.ir").unlink()
    told = made(path, status=1)
    first = told["findings"][0]
    assert (first["task"], first["rank"]) == ("failed-node", 4)


def test_a_rank_whose_folder_is_empty_is_a_failed_node(samples: Path, tmp_path: Path) -> None:
    one = samples / "mlp_semi_auto"
    shutil.copytree(one, tmp_path / "rank_0")
    assert made(tmp_path, "--task", "failed-node", status=0)["findings"] == []
    (tmp_path / "rank_1").mkdir()
    found = made(tmp_path, "--task", "failed-node", status=1)["findings"]
    assert [(item["task"], item["rank"]) for item in found] == [("failed-node", 1)]


@pytest.mark.parametrize(("run", "stage"), [("pipeline_run", " on stage 0"), ("gpt", "")])
def test_the_step_of_a_pipeline_names_its_stage(run: str, stage: str, samples: Path) -> None:
    told = CliRunner().invoke(app, ["doctor", str(samples / run)]).stdout
    assert f" µs{stage} as predicted for Ascend 910B" in told


def test_without_another_run_losses_and_precision_are_not_judged(samples: Path) -> None:
    told = made(samples / "pipeline_2_stages", status=0)
    why = {item["task"]: item["why"] for item in told["not_judged"]}
    assert "--against" in why["loss"]
    assert "--against" in why["precision"]


def test_a_task_that_breaks_leaves_the_others_alone(
    samples: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(subject: object) -> list[Diagnosis]:
        raise ZeroDivisionError("by design")

    monkeypatch.delenv("IRTOOL_DEBUG", raising=False)
    tasks = [
        RegisteredTask(task.name, task.reads, broken) if task.name == "memory" else task
        for task in all_tasks()
    ]
    monkeypatch.setattr("irtool.diagnosis.examine.all_tasks", lambda: tuple(tasks))
    told = made(samples / "mlp_rejected", status=1)
    why = {item["task"]: item["why"] for item in told["not_judged"]}
    assert "ZeroDivisionError" in why["memory"]
    assert told["findings"][0]["task"] == "strategy"


def test_half_of_a_dump_gives_what_can_be_judged(samples: Path, tmp_path: Path) -> None:
    path = tmp_path / "run"
    shutil.copytree(samples / "pipeline_2_stages", path)
    dump = path / "rank_1/20_validate_0080.ir"
    dump.write_bytes(dump.read_bytes()[:2000])
    told = made(path, status=1)
    assert (told["findings"][0]["task"], told["findings"][0]["rank"]) == ("failed-node", 1)
    assert {item["task"] for item in told["not_judged"]} >= {"strategy"}


@pytest.mark.parametrize("part", [0.3, 0.9])
def test_a_rank_whose_dump_is_cut_off_makes_no_hang_of_a_healthy_run(
    samples: Path, tmp_path: Path, part: float
) -> None:
    path = tmp_path / "run"
    shutil.copytree(samples / "pipeline_2_stages", path)
    dump = path / "rank_2/20_validate_0080.ir"
    text = dump.read_bytes()
    dump.write_bytes(text[: int(part * len(text))])
    told = made(path, status=1)
    assert [item["task"] for item in told["findings"]] == ["failed-node"]
    (why,) = (item["why"] for item in told["not_judged"] if item["task"] == "hang")
    assert "rank 2 left none that is whole" in why
    played = json.loads(asked("comm", "hang", path, "-f", "json", status=1))
    assert (played["hangs"], played["missing_ranks"]) == (None, [2])


def test_a_dump_that_is_cut_off_is_told(samples: Path, tmp_path: Path) -> None:
    path = tmp_path / "run"
    shutil.copytree(samples / "pipeline_2_stages", path)
    dump = path / "rank_3/20_validate_0080.ir"
    dump.write_bytes(dump.read_bytes()[:-3000])
    told = made(path, status=1)
    assert "is damaged (SYN003)" in told["findings"][0]["cause"]


def damaged(samples: Path, folder: Path, pass_name: str, make: Any) -> Path:
    """A healthy run of two stages, one dump of it altered."""
    shutil.copytree(samples / "pipeline_run", folder)
    (dump,) = (folder / "rank_0").glob(f"*{pass_name}*.ir")
    dump.write_bytes(make(dump.read_bytes()))
    return folder


DAMAGE = {
    "cut at 60 %": lambda text: text[: len(text) * 6 // 10],
    "cut in the last line": lambda text: text.rstrip()[:-1],
    "empty": lambda text: b"",
    "zero bytes": lambda text: bytes(4096),
    "random bytes": lambda text: random.Random(17).randbytes(4096),
    "without its middle": lambda text: b"".join(without_statements(text.splitlines(True))),
}


def without_statements(lines: list[bytes]) -> list[bytes]:
    places = [number for number, line in enumerate(lines) if line.startswith(b"  %")]
    return lines[: places[2]] + lines[places[4] :]


@pytest.mark.parametrize("how", DAMAGE)
@pytest.mark.parametrize(
    ("name", "task"), [("step_parallel_begin", "lint"), ("validate", "failed-node")]
)
def test_a_damaged_dump_is_no_healthy_run_and_gives_no_figures(
    samples: Path, tmp_path: Path, how: str, name: str, task: str
) -> None:
    told = made(damaged(samples, tmp_path / "run", name, DAMAGE[how]), status=1)
    assert told["healthy"] is False
    found = [item for item in told["findings"] if "is damaged (SYN" in item["cause"]]
    assert [(item["task"], item["severity"], item["rank"]) for item in found] == [
        (task, "error", 0)
    ]
    if name == "step_parallel_begin":
        figures = told["figures"]
        assert (figures["step_seconds"], figures["parameters"], figures["axes"]) == (None, None, [])
        unjudged = {item["task"] for item in told["not_judged"]}
        assert unjudged >= {"strategy", "redistribution", "slow-step"}
        assert {item["task"] for item in told["findings"]} & unjudged <= {"lint"}


def test_damage_of_a_rank_that_nothing_else_reads_is_told(samples: Path, tmp_path: Path) -> None:
    path = tmp_path / "run"
    shutil.copytree(samples / "pipeline_run", path)
    shutil.copytree(path / "rank_0", path / "rank_1")
    (dump,) = (path / "rank_1").glob("step_parallel_begin*.ir")
    dump.write_bytes(DAMAGE["cut at 60 %"](dump.read_bytes()))
    found = made(path, status=1)["findings"]
    assert [item["ranks"] for item in found if item["task"] == "lint"] == [[1]]


def test_a_whole_run_is_not_damaged(samples: Path, tmp_path: Path) -> None:
    path = damaged(samples, tmp_path / "run", "step_parallel_begin", lambda text: text)
    assert made(path, status=0)["healthy"] is not False


def test_a_refused_strategy_is_told_of_what_is_left_of_a_dump(
    samples: Path, tmp_path: Path
) -> None:
    shutil.copytree(samples / "mlp_rejected", tmp_path / "run")
    (dump,) = (tmp_path / "run").rglob("*step_parallel_begin*.ir")
    text = dump.read_bytes().rstrip()
    dump.write_bytes(text[:-1])
    told = made(tmp_path / "run", status=1)
    assert told["findings"][0]["task"] == "strategy"
    assert "strategy" in {item["task"] for item in told["not_judged"]}


def test_one_question_alone(samples: Path) -> None:
    told = made(samples / "mlp_rejected", "--task", "hang", status=0)
    assert (told["findings"], [item["task"] for item in told["not_judged"]]) == ([], ["hang"])


def test_an_unknown_task_is_refused_with_the_nearest(samples: Path) -> None:
    result = CliRunner().invoke(app, ["doctor", str(samples / "gpt"), "--task", "hangs"])
    assert result.exit_code == 2
    assert "did you mean hang?" in result.output


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--devices", 4097), "--devices: error[CTX002]: device_num must be from 1 to 4096"),
        (("--devices", 0), "--devices: error[CTX002]: device_num must be from 1 to 4096"),
        (("--stages", 3), "--stages: error[CTX002]: device_num 8 is not divisible by"),
        (("--rank", 8), "--rank: error[CTX002]: global_rank must be from 0 to 7"),
        (("--grad-accumulation-step", 0), "grad_accumulation_step must be at least 1, but is 0"),
        (("--set", "grad_accumulation_step=-1"), "grad_accumulation_step must be at least 1"),
    ],
)
def test_what_is_asked_for_and_makes_no_sense_is_refused(
    samples: Path, words: tuple[object, ...], message: str
) -> None:
    result = CliRunner().invoke(app, ["doctor", str(samples / "gpt"), *map(str, words)])
    assert (result.exit_code, result.stdout) == (2, "")
    assert message in result.stderr


def test_what_is_asked_for_is_refused_where_no_dump_is_either(tmp_path: Path) -> None:
    (tmp_path / "rank_0").mkdir()
    (tmp_path / "rank_0" / "train.log").write_text("step 1 loss 2.5\nstep 2 loss 2.25\n")
    result = CliRunner().invoke(app, ["doctor", str(tmp_path), "--devices", "1000000000"])
    assert result.exit_code == 2
    assert "device_num must be from 1 to 4096" in result.stderr


def test_a_context_beside_the_dumps_that_makes_no_sense_is_told_with_each_task(
    samples: Path, tmp_path: Path
) -> None:
    run = shutil.copytree(samples / "gpt", tmp_path / "gpt")
    (run / "case.json").write_text('{"device_num": 1000000000}')
    told = made(run, status=0)
    why = {item["task"]: item["why"] for item in told["not_judged"]}
    assert "device_num must be from 1 to 4096" in why["strategy"]


def test_an_empty_folder_is_no_run(tmp_path: Path) -> None:
    result = CliRunner().invoke(app, ["doctor", str(tmp_path)])
    assert result.exit_code == 2
    assert "nothing of a run" in result.output


def test_processes_side_by_side_say_the_same(
    samples: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = samples / "mlp_rejected"
    alone = made(path, "--jobs", 1, status=1)
    monkeypatch.setattr("irtool.diagnosis.examine._WORTH_PROCESSES", 0)
    assert made(path, "--jobs", 2, status=1) == alone


def test_what_cannot_be_judged_says_why() -> None:
    assert str(CannotJudge("no logs")) == "no logs"


def test_open_writes_a_page_that_leads_to_those_of_each_question(
    samples: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened: list[str] = []
    monkeypatch.setattr("webbrowser.open", opened.append)
    page = tmp_path / "index.html"
    asked("doctor", samples / "mlp_rejected", "--open", "-o", page, status=1)
    assert opened == [f"file://{page}"]
    text = page.read_text()
    assert '<a href="1.html">irtool check' in text
    assert "MindSpore refuses MatMul" in text
    assert "the dimension that is summed up" in (tmp_path / "1.html").read_text()


def test_the_page_of_a_healthy_run_leads_to_what_is_behind_its_figures() -> None:
    figures = Figures(stages=2, step=0.5, peak=1 << 30)
    commands = commands_of(Examination("run", (), (), figures))
    asked_for = [" ".join(command[1:]) for command in commands]
    assert asked_for == ["cost run", "memory run", "comm groups run", "pipeline run"]
    assert commands_of(Examination("run", (), (), Figures())) == []
    report = doctor_report(
        Examination("run", (), (), figures),
        None,
        is_page=True,
        pages=[("irtool cost run", "1.html")],
    )
    assert Note("irtool cost run", page="1.html") in report.elements


def test_the_operator_that_introduces_error_is_named_with_its_line(samples: Path) -> None:
    runs = samples / "precision"
    told = made(runs / "tanh_gelu", "--against", runs / "reference", status=1)
    first = told["findings"][0]
    assert (first["task"], first["since"]) == ("precision", "rank 0, step 0")
    assert "gelu" in first["cause"]
    assert first["source"]["line"] == 26


def test_runs_cut_over_different_devices_are_not_compared(samples: Path, tmp_path: Path) -> None:
    runs = samples / "precision"
    other = tmp_path / "run"
    shutil.copytree(samples / "pipeline_2_stages", other)
    told = made(runs / "reference", "--against", other, "--task", "precision", status=0)
    assert "slices" in told["not_judged"][0]["why"]


def test_the_step_from_which_losses_part_is_told(tmp_path: Path) -> None:
    for name, factor in (("good", 1), ("bad", 2)):
        (tmp_path / name).mkdir()
        rows = [f"{n},{(3 / (n + 1) + 0.5) * (factor if n >= 6 else 1)}" for n in range(12)]
        (tmp_path / name / "loss.csv").write_text("\n".join(["step,loss", *rows]))
    told = made(tmp_path / "bad", "--against", tmp_path / "good", status=1)
    assert (told["findings"][0]["task"], told["findings"][0]["since"]) == ("loss", "step 6")
    assert made(tmp_path / "good", "--against", tmp_path / "good", status=0)["findings"] == []


def test_a_strategy_file_that_the_run_does_not_follow_is_told(
    tmp_path: Path, samples: Path
) -> None:
    run = tmp_path / "run"
    shutil.copytree(samples / "mlp_semi_auto", run)
    key = "Default/network-WithLossCell/_backbone-Mlp/ReLU-op0"

    def saved(strategy: list[int]) -> None:
        item = {key: {"parallel_strategy": [strategy], "stage": 0}}
        text = {"current_stage": 0, "parallel_strategy_item": item, "parallel_layout_item": {}}
        (run / "strategy.json").write_text(json.dumps(text))

    saved([1, 8])
    (first,) = made(run, "--task", "strategy", status=1)["findings"]
    assert first["severity"] == "warning"
    assert "strategy.json names ((1, 8),) for" in first["cause"]
    saved([2, 4])
    assert made(run, "--task", "strategy", status=0)["findings"] == []


def test_losses_of_several_ranks_are_read(tmp_path: Path) -> None:
    curve = [3.0 / (step + 1) + 0.4 for step in range(12)]
    sick = [value * (2 if step >= 6 else 1) for step, value in enumerate(curve)]
    for name, values in (("healthy", curve), ("sick", sick)):
        (tmp_path / name).mkdir()
        (tmp_path / name / "loss.json").write_text(json.dumps({"loss": [values, values]}))
    told = made(
        tmp_path / "sick", "--task", "loss", "--against", tmp_path / "healthy", status=1
    )  # fmt: skip
    assert "from step 6 on" in told["findings"][0]["cause"]


@pytest.mark.parametrize(("last", "status"), [("nan", 1), ("1.5", 0)])
def test_a_loss_that_is_no_number_needs_no_other_run(
    tmp_path: Path, last: str, status: int
) -> None:
    rows = [f"{step},{2.0 - step / 10}" for step in range(1, 5)] + [f"5,{last}"]
    (tmp_path / "loss.csv").write_text("\n".join(["step,loss", *rows]))
    told = made(tmp_path, "--task", "loss", status=status)
    assert [item["since"] for item in told["findings"]] == ["step 5"] * status
    assert [item["task"] for item in told["not_judged"]] == ["loss"] * (1 - status)


def test_a_strategy_that_no_number_of_devices_allows_needs_no_number(
    samples: Path, tmp_path: Path
) -> None:
    begin = "step_parallel_begin_0018.ir"
    shutil.copy(samples / "mlp_rejected" / begin, tmp_path)
    (first,) = made(tmp_path, "--task", "strategy", status=1)["findings"]
    assert "the dimension that is summed up is split by 4" in first["cause"]
    assert first["edit"] == {"setting": "in_strategy", "value": "((2, 4), (1, 4))"}
    asked(*first["command"][1:], status=1)
    (tmp_path / begin).write_text(  # what needs more devices than there may be is not known
        (samples / "mlp_semi_auto" / begin).read_text()
    )
    assert made(tmp_path, "--task", "strategy", status=0)["not_judged"][0]["task"] == "strategy"


REFUSED = (
    "[ERROR] PARALLEL(31,7fd214c46b80,python):2025-06-02-15:32:10.100.100 "
    "[mindspore/ccsrc/frontend/parallel/ops_info/operator_info.cc:745] InferRepeatedCalcInfo] "
    "{op}Info22: The strategy is ((2, 1), (4, 1)), it requires 8 devices, but the device number "
    "of this stage is {devices}, it can not be divisible by 8\n"
    "RuntimeError: Failure:operator {op} init failed\n"
)


@pytest.mark.parametrize(
    ("op", "devices", "new"),
    [("MatMul", 4, True), ("MatMul", 16, False), ("Transpose", 4, False)],
)
def test_a_refusal_that_a_log_counts_devices_in_is_told_with_its_edit(
    samples: Path, tmp_path: Path, op: str, devices: int, new: bool
) -> None:
    """No dump tells how many devices there are; the refusal does, of the operator that it names."""
    begin = "step_parallel_begin_0018.ir"
    (tmp_path / "rank_0").mkdir()
    shutil.copy(samples / "mlp_semi_auto" / begin, tmp_path / "rank_0")
    (tmp_path / "rank_0" / "compile.log").write_text(REFUSED.format(op=op, devices=devices))
    first, *_ = made(tmp_path, status=1)["findings"]
    assert first["task"] == ("strategy" if new else "compile-failure")
    if new:
        assert "requires 8 devices, the stage has 4" in first["cause"]
        assert first["edit"] == {"setting": "in_strategy", "value": "((1, 1), (4, 1))"}
        asked(*first["command"][1:], status=1)


@pytest.mark.parametrize(
    ("limit", "edit"),
    [("602MiB", ()), ("601.2MiB", ("optimizer parallel, offload",)), ("401MiB", (None,))],
)
def test_an_edit_for_memory_is_proposed_where_it_is_enough(
    samples: Path, limit: str, edit: tuple[str | None, ...]
) -> None:
    told = made(
        samples / "gpt", "--task", "memory", "--memory", limit, status=1 if edit else 0
    )["findings"]  # fmt: skip
    assert tuple(item["edit"] and item["edit"]["setting"] for item in told) == edit
    assert all("buffers of 3 groups" in item["cause"] for item in told)


def test_the_collector_of_garbage_is_as_it_was_when_the_doctor_is_done(samples: Path) -> None:
    before = gc.get_threshold()
    made(samples / "mlp_rejected", "--task", "strategy", status=1)
    assert gc.get_threshold() == before


def test_a_jump_of_one_step_is_a_warning(tmp_path: Path) -> None:
    for name, height in (("good", 0.0), ("bad", 2.0)):
        (tmp_path / name).mkdir()
        rows = [f"{n},{3 / (n + 1) + 0.5 + height * (n == 6)}" for n in range(12)]
        (tmp_path / name / "loss.csv").write_text("\n".join(["step,loss", *rows]))
    (found,) = made(tmp_path / "bad", "--against", tmp_path / "good", status=1)["findings"]
    assert (found["task"], found["severity"], found["since"]) == ("loss", "warning", "step 6")
    assert "alone" in found["cause"]


def test_runs_of_other_data_are_told_as_such_and_accused_of_nothing(tmp_path: Path) -> None:
    for name, sign in (("good", 1), ("other", -1)):
        (tmp_path / name).mkdir()
        rows = [
            f"{n},{2 + 0.05 * sign * (-1) ** (n // (1 if sign > 0 else 2)):.6f}" for n in range(40)
        ]
        (tmp_path / name / "loss.csv").write_text("\n".join(["step,loss", *rows]))
    words = ("--task", "loss", "--against", tmp_path / "good")
    (found,) = made(tmp_path / "other", *words, status=0)["findings"]
    assert (found["severity"], found["since"]) == ("info", "step 0")
    assert "other data or other weights" in found["cause"]


def test_of_a_strategy_of_threes_only_what_is_wrong_is_told(samples: Path, tmp_path: Path) -> None:
    """On 24 devices groups would be refused that nobody asked for."""
    begin = "step_parallel_begin_0018.ir"
    text = (samples / "mlp_semi_auto" / begin).read_text()
    (tmp_path / begin).write_text(text.replace("((2, 1), (4, 1))", "((2, 1), (3, 1))", 1))
    found = made(tmp_path, "--task", "strategy", status=1)["findings"]
    assert found
    assert all("3" in item["cause"] for item in found)
    assert all(item["edit"] is not None for item in found)


def test_a_dump_in_the_place_of_a_folder_is_refused_with_what_reads_it(samples: Path) -> None:
    words = ["doctor", str(samples / "gpt" / "20_validate_0080.ir")]
    result = CliRunner().invoke(app, words)
    assert result.exit_code == 2
    assert "examines the folder" in result.output


def test_what_slow_step_and_rules_say_of_weights_held_whole_is_told_once_and_as_gravely() -> None:
    def of(task: str, severity: str, message: str = "", edit: Edit | None = None) -> Diagnosis:
        return Diagnosis(task, severity, message, edit=edit)  # type: ignore[arg-type]  # names

    switch = of("slow-step", "info", edit=Edit(setting="enable_parallel_optimizer", value=True))
    rules = [of("lint", "warning", "MEM002: state"), of("lint", "warning", "STR003: idle")]
    assert [(item.task, item.severity) for item in _told_once([switch, *rules])] == [
        ("slow-step", "warning"),
        ("lint", "warning"),
    ]
    assert _told_once(rules) == rules


def test_rules_have_the_severity_that_lint_gives_them(samples: Path) -> None:
    found = [Finding("MEM001", "warning", "held whole"), Finding("COM005", "info", "few bytes")]
    subject = Subject(load_run(str(samples / "mlp_semi_auto")), lambda path: Given())
    assert [lint_diagnosis(subject, [item]).severity for item in found] == ["warning", "info"]


def test_a_failure_without_an_edit_says_why(samples: Path, tmp_path: Path) -> None:
    log = tmp_path / "compile.log"
    log.write_text("TypeError: For 'MatMul', too many values\nRuntimeError: compile failed\n")
    for item in made(tmp_path, "--task", "compile-failure", status=1)["findings"]:
        assert (item["edit"] is None) == (item["no_edit"] is not None)
