"""The functions of the package answer what their commands answer, and print nothing."""

from __future__ import annotations

import doctest
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import irtool
from irtool.cli.main import main

Ask = Callable[..., "irtool.Answer[Any]"]

SAME: list[tuple[str, Ask, str, dict[str, object]]] = [
    ("check", irtool.check, "mlp_semi_auto/step_parallel_begin_0018.ir", {}),
    ("check", irtool.check, "mlp_rejected", {}),
    ("check", irtool.check, "layout", {}),
    ("cost", irtool.cost, "mlp_recursive_search/step_parallel_begin_0019.ir", {"device_num": 8}),
    ("cost", irtool.cost, "pipeline_run", {}),
    ("memory", irtool.memory, "gpt/20_validate_0080.ir", {}),
    ("memory", irtool.memory, "pipeline_2_stages", {}),
    ("pipeline", irtool.pipeline, "pipeline_2_stages", {}),
    ("comm groups", irtool.comm_groups, "gpt/20_validate_0080.ir", {}),
    ("comm groups", irtool.comm_groups, "pipeline_2_stages", {}),
    ("comm hang", irtool.hang, "hang_one_strategy", {}),
    ("comm hang", irtool.hang, "pipeline_2_stages", {}),
    ("plan", irtool.plan, "mlp_semi_auto/step_parallel_begin_0018.ir", {"device_num": 8}),
    ("doctor", irtool.doctor, "hang_one_strategy", {}),
    ("lint --no-cache", irtool.lint, "mlp_rejected", {}),
]


@pytest.mark.parametrize(("command", "function", "path", "context"), SAME)
def test_a_function_answers_as_its_command(
    command: str,
    function: Ask,
    path: str,
    context: dict[str, object],
    samples: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    place = str(samples / path)
    devices = [f"--devices={value}" for value in context.values()]
    status = main([*command.split(), place, *devices, "--format", "json"])
    told = capsys.readouterr()
    answer = function(place, context)
    assert without_time(answer.to_dict()) == without_time(json.loads(told.out))
    assert answer.has_findings == (status == 1)
    assert capsys.readouterr() == ("", "")
    # What the command says beside its answer is kept; lint says the end of its text again.
    if command.startswith("lint"):
        assert str(answer).endswith(told.err.replace("irtool: ", "").rstrip("\n"))
        assert answer.notes == ()
        return
    assert [line.removeprefix("irtool: ") for line in told.err.splitlines()] == [
        line for note in answer.notes for line in note.splitlines()
    ]


def without_time(answer: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in answer.items() if key != "seconds"}


@pytest.mark.parametrize(
    ("command", "function", "path", "context"), SAME[:1] + SAME[5:6] + SAME[-2:]
)
def test_text_is_that_of_a_pipe(
    command: str,
    function: Ask,
    path: str,
    context: dict[str, object],
    samples: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    main([*command.split(), str(samples / path)])
    assert str(function(samples / path, context)) == capsys.readouterr().out.rstrip("\n")


def test_a_dump_that_was_read_is_taken_as_it_is(samples: Path) -> None:
    text = (samples / "mlp_semi_auto" / "step_parallel_begin_0018.ir").read_text()
    dump = irtool.loads(text)
    assert irtool.check(dump, {"device_num": 8}).result.accepted
    broken = irtool.loads(text.replace("((2, 4), (1, 4))", "((2, 4), (1, 2))"))
    assert irtool.check(broken, {"device_num": 8}).result.accepted is False


def test_dumps_by_rank_are_a_run(samples: Path) -> None:
    folder = samples / "hang_one_strategy"
    dumps = {
        rank: irtool.load(folder / f"rank_{rank}" / "20_validate_0080.ir.xz") for rank in range(4)
    }
    report = irtool.hang(dumps).result
    assert report.hangs
    assert tuple(report.odd_ranks) == (1,)
    # Without the odd one nobody can tell.
    assert not irtool.hang({0: dumps[0], 2: dumps[2]}).result.hangs


def test_a_plan_is_written_as_its_command_writes_it(
    samples: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    begin = samples / "mlp_semi_auto" / "step_parallel_begin_0018.ir"
    answer = irtool.plan(begin, {"device_num": 8})
    for form in ("strategy", "ir", "shard", "msjob"):
        main(["plan", str(begin), "--devices=8", "--format", form])
        assert answer.written(form) == capsys.readouterr().out
    staged = irtool.plan(begin, {"device_num": 8}, devices=16)
    assert staged.result.context.devices == 16
    with pytest.raises(irtool.CannotAnswer, match="no strategies fit into 1 B"):
        irtool.plan(begin, {"device_num": 8}, memory=1)


@pytest.mark.parametrize(
    ("left", "right"),
    [
        (
            "mlp_semi_auto/step_parallel_begin_0018.ir",
            "mlp_recursive_search/step_parallel_begin_0019.ir",
        ),
        ("hang_one_strategy/rank_0", "hang_one_strategy/rank_1"),
    ],
)
def test_a_difference_is_that_of_the_command(
    left: str, right: str, samples: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    paths = [str(samples / left), str(samples / right)]
    status = main(["diff", *paths, "--format", "json"])
    told = json.loads(capsys.readouterr().out)
    answer = irtool.diff(*paths)
    assert answer.to_dict() == told
    assert answer.has_findings == (status == 1)


def test_dumps_that_were_read_are_compared(samples: Path) -> None:
    begin = samples / "mlp_semi_auto" / "step_parallel_begin_0018.ir"
    text = begin.read_text()
    left, right = (
        irtool.loads(text),
        irtool.loads(text.replace("((2, 4), (1, 4))", "((4, 2), (1, 2))")),
    )
    assert not irtool.diff(left, begin).has_findings
    assert irtool.diff(left, right).has_findings
    with pytest.raises(irtool.CannotAnswer, match="a dump has no loss curve"):
        irtool.diff(left, right, loss=True)


def test_lint_and_doctor_refuse_what_is_not_there(samples: Path, tmp_path: Path) -> None:
    with pytest.raises(irtool.CannotAnswer):
        irtool.lint(tmp_path)
    with pytest.raises(irtool.CannotAnswer, match="XYZ"):
        irtool.lint(samples / "mlp_rejected", select=["XYZ"])
    with pytest.raises(irtool.CannotAnswer, match="nothing of a run"):
        irtool.doctor(tmp_path)
    with pytest.raises(irtool.CannotAnswer, match="there is no task hanging"):
        irtool.doctor(samples / "hang_one_strategy", tasks=["hanging"])


def test_rows_are_those_of_a_list(samples: Path) -> None:
    answer = irtool.check(samples / "mlp_semi_auto" / "step_parallel_begin_0018.ir")
    assert answer.rows("operators") == answer.to_dict()["operators"]
    with pytest.raises(KeyError, match=r"no list 'nodes' in this answer: .*operators"):
        answer.rows("nodes")


def test_pages_and_notebooks(samples: Path) -> None:
    answer = irtool.memory(samples / "gpt" / "20_validate_0080.ir")
    assert answer.to_html().startswith("<!DOCTYPE html>")
    assert "peak 1.3 MiB" in answer._repr_html_()  # pyright: ignore[reportPrivateUsage]  # as a notebook


def test_what_can_not_be_answered_says_what_would_help(samples: Path) -> None:
    dump = irtool.loads((samples / "mlp_semi_auto" / "step_parallel_begin_0018.ir").read_text())
    with pytest.raises(irtool.CannotAnswer, match="for how many devices was this compiled") as said:
        irtool.check(dump)
    assert said.value.code == "CTX003"
    with pytest.raises(irtool.CannotAnswer, match="device_num must be 1, 2, 4 or divisible by 8"):
        irtool.check(dump, {"device_num": 7})
    with pytest.raises(irtool.CannotAnswer, match="there is no key device_number"):
        irtool.check(dump, {"device_number": 8})
    with pytest.raises(irtool.CannotAnswer, match=r"nothing\.ir"):
        irtool.cost("nothing.ir")


def test_settings_of_the_folder_are_not_read(
    samples: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "irtool.toml").write_text("[context]\ndevice_num = 16\n")
    dump = irtool.loads((samples / "gpt" / "20_validate_0080.ir").read_text())
    assert irtool.comm_groups(dump).result.devices == 8


@pytest.mark.parametrize(
    "name",
    [
        "check",
        "comm_groups",
        "cost",
        "diff",
        "doctor",
        "hang",
        "lint",
        "memory",
        "pipeline",
        "plan",
    ],
)
def test_the_example_of_a_function_is_true(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(Path(__file__).parents[1])
    function = getattr(irtool, name)
    (test,) = doctest.DocTestFinder(recurse=False).find(function, name, globs={"irtool": irtool})
    said: list[str] = []
    assert len(test.examples) > 0
    assert doctest.DocTestRunner().run(test, out=said.append).failed == 0, "".join(said)


def test_what_a_prompt_shows_is_a_line(samples: Path) -> None:
    refused = irtool.check(samples / "mlp_rejected")
    assert repr(refused).startswith("<Answer of CheckResult: ")
    assert repr(refused).endswith("step_parallel_begin_0018.ir: refused, for 1 reason>")
    assert repr(irtool.load_run(samples / "pipeline_run")).endswith("pipeline_run: 2 ranks>")
    text = (samples / "gpt" / "20_validate_0080.ir").read_text(encoding="utf-8")
    assert repr(irtool.loads(text)) == "<Dump <text>: 1 graph, 325 nodes>"


def test_the_door_shows_what_it_has() -> None:
    names = dir(irtool)
    functions = {"check", "comm_groups", "cost", "diff", "doctor", "hang", "lint", "memory"}
    assert {*functions, "pipeline", "plan", "load", "load_run"} <= set(names)
    assert [name for name in names if not name.startswith("__")] == sorted(irtool.__all__)
    assert all(getattr(irtool, name) is not None for name in irtool.__all__)
