"""``irtool gate``: what became worse than in a golden dump."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path
from typing import Any

import pytest

from irtool.cli.main import main
from irtool.linting.budget import Measured
from irtool.linting.trend import Build
from irtool.report.trend import trend_report


def gate(capsys: pytest.CaptureFixture[str], *arguments: object) -> tuple[int, str, str]:
    status = main(["gate", *map(str, arguments)])
    out, err = capsys.readouterr()
    return status, out, err


def codes(capsys: pytest.CaptureFixture[str], *arguments: object) -> list[str]:
    status, out, _ = gate(capsys, *arguments, "--format", "json")
    report = json.loads(out)
    assert report["schema"] == "irtool.gate/1"
    grave = any(finding["severity"] != "info" for finding in report["findings"])
    assert status == int(grave)
    return [code for finding in report["findings"] for code in (finding["code"], *below(finding))]


def below(finding: dict[str, Any]) -> list[str]:
    """Codes of the consequences that are told below a cause."""
    return [
        place["message"].partition(", ")[2].partition(":")[0]
        for place in finding["related"]
        if place["message"].startswith("consequence, ")
    ]


@pytest.fixture
def golden(samples: Path) -> Path:
    return samples / "recompute/20_validate_0081.ir"


def changed(golden: Path, folder: Path, old: str, new: str) -> Path:
    text = golden.read_text(encoding="utf-8")
    assert old in text
    path = folder / golden.name
    path.write_text(text.replace(old, new), encoding="utf-8")
    return path


def test_a_dump_is_no_worse_than_itself(capsys: pytest.CaptureFixture[str], golden: Path) -> None:
    status, out, _ = gate(capsys, golden, golden)
    assert status == 0
    assert out.startswith("nothing found in 2 dumps")


def test_more_collectives(capsys: pytest.CaptureFixture[str], golden: Path, tmp_path: Path) -> None:
    # One of the GeLUs becomes a forward reduction.
    new = changed(
        golden,
        tmp_path,
        "%3(equiv_22_CNode_344) = PrimFunc_GeLU(%2) {instance name: gelu}",
        "%3(equiv_22_CNode_344) = AllReduce(%2) {instance name: forward_op_11}",
    )
    assert "GAT001" in codes(capsys, golden, new)
    assert "GAT001" not in codes(capsys, golden, new, "--threshold", "GAT001.most_more=1")
    assert "GAT001" not in codes(capsys, golden, new, "--ignore", "GAT001")


def test_fewer_collectives_are_fine(
    capsys: pytest.CaptureFixture[str], golden: Path, tmp_path: Path
) -> None:
    new = changed(golden, tmp_path, " = AllReduce(%23)", " = PrimFunc_Neg(%23)")
    assert "GAT001" not in codes(capsys, golden, new)


def test_larger_collectives(
    capsys: pytest.CaptureFixture[str], golden: Path, tmp_path: Path
) -> None:
    text = golden.read_text(encoding="utf-8")
    lines = text.split("\n")
    at = next(n for n, line in enumerate(lines) if " = AllReduce(" in line)
    lines[at + 1] = lines[at + 1].replace("(8, 64)", "(8000, 64)")
    new = tmp_path / golden.name
    new.write_text("\n".join(lines), encoding="utf-8")
    found = codes(capsys, golden, new)
    assert "GAT002" in found
    assert "GAT002" not in codes(capsys, golden, new, "--threshold", "GAT002.most_percent=1e9")


def test_changed_strategies_are_told_once_for_all_layers(
    capsys: pytest.CaptureFixture[str], golden: Path, tmp_path: Path
) -> None:
    new = changed(
        golden, tmp_path, "in_strategy: ((4, 1), (1, 2))", "in_strategy: ((2, 1), (1, 4))"
    )
    assert codes(capsys, golden, new, "--select", "GAT003") == ["GAT003"]


def test_lost_recompute(capsys: pytest.CaptureFixture[str], golden: Path, tmp_path: Path) -> None:
    new = changed(golden, tmp_path, "duplicated: Bool(1)", "duplicated: Bool(0)")
    assert codes(capsys, golden, new, "--select", "GAT004") == ["GAT004"]
    assert codes(capsys, new, golden, "--select", "GAT004") == []


def test_more_memory(capsys: pytest.CaptureFixture[str], golden: Path, tmp_path: Path) -> None:
    new = changed(golden, tmp_path, "(8, 64)", "(80000, 64)")
    assert "GAT005" in codes(capsys, golden, new)


def test_changed_precision(
    capsys: pytest.CaptureFixture[str], golden: Path, tmp_path: Path
) -> None:
    text = golden.read_text(encoding="utf-8")
    lines = text.split("\n")
    at = next(n for n, line in enumerate(lines) if " = PrimFunc_GeLU(%2)" in line)
    head, arrow, result = lines[at + 1].partition(" -> ")
    lines[at + 1] = head + arrow + result.replace("Float32", "Float16")
    new = tmp_path / golden.name
    new.write_text("\n".join(lines), encoding="utf-8")
    assert "GAT006" in codes(capsys, golden, new)


def test_a_larger_graph(capsys: pytest.CaptureFixture[str], samples: Path) -> None:
    small, large = (samples / name for name in ("recompute/20_validate_0081.ir",
                                                "gpt/20_validate_0080.ir"))  # fmt: skip
    assert "GAT007" in codes(capsys, small, large)
    assert "GAT007" not in codes(capsys, large, small)


def test_severities_decide_the_status(
    capsys: pytest.CaptureFixture[str], golden: Path, tmp_path: Path
) -> None:
    new = changed(golden, tmp_path, "duplicated: Bool(1)", "duplicated: Bool(0)")
    assert gate(capsys, golden, new, "--fail-on", "error")[0] == 0
    assert gate(capsys, golden, new, "--fail-on", "never")[0] == 0
    assert gate(capsys, golden, new, "--fail-on", "warning")[0] == 1


def test_sarif_and_configuration(
    capsys: pytest.CaptureFixture[str], golden: Path, tmp_path: Path
) -> None:
    new = changed(golden, tmp_path, "duplicated: Bool(1)", "duplicated: Bool(0)")
    settings = tmp_path / "irtool.toml"
    settings.write_text('[lint.severities]\nGAT004 = "error"\n', encoding="utf-8")
    status, out, _ = gate(
        capsys, golden, new, "--format", "sarif", "--config", settings, "--select", "GAT004"
    )
    assert status == 1
    results = json.loads(out)["runs"][0]["results"]
    assert [(each["ruleId"], each["level"]) for each in results] == [("GAT004", "error")]


# -- causes ----------------------------------------------------------------------------------------


def test_a_cause_is_told_with_its_consequences_below(
    capsys: pytest.CaptureFixture[str], golden: Path, tmp_path: Path
) -> None:
    new = changed(golden, tmp_path, "duplicated: Bool(1)", "duplicated: Bool(0)")
    _, out, _ = gate(capsys, golden, new, "--format", "json")
    first = json.loads(out)["findings"][0]
    assert first["code"] == "GAT004"
    assert first["message"].startswith("layers.0, layers.1 are no longer recomputed")
    assert first["edit"]["setting"] == "recompute"


def test_a_consequence_without_its_cause_stands_alone(
    capsys: pytest.CaptureFixture[str], golden: Path, tmp_path: Path
) -> None:
    new = changed(golden, tmp_path, "(8, 64)", "(80000, 64)")
    _, out, _ = gate(capsys, golden, new, "--format", "json", "--select", "GAT005")
    assert [each["code"] for each in json.loads(out)["findings"]] == ["GAT005"]


def test_another_version_of_mindspore_is_no_change(
    capsys: pytest.CaptureFixture[str], samples: Path
) -> None:
    old = samples / "mlp_semi_auto/20_validate_0080.ir"
    new = samples / "mlp_semi_auto_2.10/21_validate_0082.ir"
    assert codes(capsys, old, new) == []


def test_other_types_are_one_warning(
    capsys: pytest.CaptureFixture[str], golden: Path, tmp_path: Path
) -> None:
    new = changed(golden, tmp_path, "Tensor[Float32]", "Tensor[Float16]")
    _, out, _ = gate(capsys, golden, new, "--format", "json", "--select", "GAT006")
    (found,) = json.loads(out)["findings"]
    assert found["severity"] == "warning"
    assert "Float32 → Float16" in found["message"]


# -- budgets ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("budget", "told"),
    [
        ("peak_memory=2693120", []),
        (
            "peak_memory=2693119",
            ["peak_memory of rank 0 is 2,693,120 B, the budget is 2,693,119"],
        ),
        ("statements=94", []),
        ("statements=93", ["statements of rank 0 is 94, the budget is 93"]),
        ("redistribution_share=13%", ["redistribution_share of rank 0 is 13.6 %, the budget is"]),
        ("redistribution_share=14%", []),
        ("communication_bytes=961092", []),
        ("communication_bytes=900KiB", ["communication_bytes of rank 0 is 938.6 KiB"]),
        ("step_seconds=1s", []),
        ("step_seconds=1us", ["step_seconds of rank 0 is 185 µs, the budget is 1 µs"]),
    ],
)
def test_a_build_above_its_budget(
    capsys: pytest.CaptureFixture[str], samples: Path, budget: str, told: list[str]
) -> None:
    status, out, _ = gate(capsys, samples / "mlp_semi_auto", "--budget", budget, "-f", "json")
    found = [each["message"] for each in json.loads(out)["findings"]]
    assert status == bool(told)
    assert [message.startswith(text) for message, text in zip(found, told, strict=True)] == (
        [True] * len(told)
    )


def test_a_budget_against_the_golden_dump(
    capsys: pytest.CaptureFixture[str], golden: Path, tmp_path: Path
) -> None:
    new = changed(golden, tmp_path, "(8, 64)", "(80000, 64)")
    only = ("--select", "GAT011", "--budget")
    assert codes(capsys, golden, new, *only, "peak_memory=+5%") == ["GAT011"]
    assert codes(capsys, golden, golden, *only, "peak_memory=+0%") == []
    status, out, err = gate(capsys, new, "--budget", "peak_memory=+5%")
    assert status == 2
    assert "peak_memory = +5.0 % was not judged: it is against a golden dump, and none" in out
    assert "1 budget could not be judged: peak_memory" in err
    assert "hint: irtool gate OLD NEW" in err


def test_budgets_of_the_settings_are_for_ranks_and_stages(
    capsys: pytest.CaptureFixture[str], samples: Path, tmp_path: Path
) -> None:
    settings = tmp_path / "irtool.toml"
    settings.write_text(
        "[gate.budget]\nstatements = 100000\n[gate.budget.stage.1]\npeak_memory = '1 KiB'\n"
    )
    run = samples / "pipeline_2_stages"
    _, out, _ = gate(capsys, run, "--config", settings, "-f", "json")
    assert [(each["code"], each["ranks"]) for each in json.loads(out)["findings"]] == [
        ("GAT011", [2, 3])
    ]


@pytest.mark.parametrize(
    ("budget", "told"),
    [
        ("statements=89", [[0, 1], [2, 3]]),
        ("rank.1.statements=89", [[1]]),
        ("rank.3.statements=108,rank.2.statements=109", [[3]]),
        ("rank.1.statements=90", []),
        ("stage.1.statements=108", [[2, 3]]),
    ],
)
def test_a_budget_of_a_rank_holds_where_its_dumps_are_those_of_another(
    capsys: pytest.CaptureFixture[str],
    samples: Path,
    budget: str,
    told: list[list[int]],
) -> None:
    run = samples / "pipeline_2_stages"
    status, out, err = gate(capsys, run, "--budget", budget, "-f", "json")
    assert status == bool(told)
    assert [each["ranks"] for each in json.loads(out)["findings"]] == told
    assert "judged" not in err


NOT_JUDGED = [
    ("rank.7.statements=1", "rank.7.statements = 1 was not judged: no dump of rank 7 is there, "
     "only of ranks 0-3"),
    ("stage.3.statements=1", "stage.3.statements = 1 was not judged: no dump of stage 3 is there, "
     "only of stages 0,1"),
    ("statements=+1%", "statements = +1.0 % was not judged: it is against a golden dump"),
    ("step_seconds=1", "step_seconds = 1 s was not judged: there is no begin dump"),
]  # fmt: skip


@pytest.mark.parametrize(("budget", "message"), NOT_JUDGED)
def test_a_budget_that_cannot_be_judged_is_not_kept(
    capsys: pytest.CaptureFixture[str], samples: Path, budget: str, message: str
) -> None:
    run = samples / "pipeline_2_stages"
    status, out, err = gate(capsys, run, "--budget", budget, "--fail-on", "never", "-f", "json")
    (found,) = json.loads(out)["findings"]
    assert status == 2
    assert found["code"] == "GAT011"
    assert found["message"].startswith(message)
    assert found["hint"] in err
    assert f"1 budget could not be judged: {budget.partition('=')[0]}" in err


@pytest.mark.parametrize(
    "form", ["text", "concise", "json", "sarif", "github", "gitlab", "junit", "html"]
)
def test_every_format_says_what_was_not_judged(
    capsys: pytest.CaptureFixture[str], samples: Path, form: str
) -> None:
    run = samples / "pipeline_2_stages"
    status, out, _ = gate(capsys, run, "--budget", "rank.7.statements=1", "-f", form)
    assert status == 2
    assert "was not judged: no dump of rank 7 is there" in out


def test_what_can_be_judged_is_told_beside_what_cannot(
    capsys: pytest.CaptureFixture[str], samples: Path
) -> None:
    budget = "statements=108,rank.9.statements=1"
    status, out, _ = gate(capsys, samples / "pipeline_2_stages", "--budget", budget, "-f", "json")
    above, missed = json.loads(out)["findings"]
    assert status == 2
    assert above["message"] == "statements of ranks 2,3 is 109, the budget is 108"
    assert "rank.9.statements" in missed["message"]


def test_a_golden_dump_that_does_not_tell_a_measure_judges_nothing(
    capsys: pytest.CaptureFixture[str], samples: Path, golden: Path
) -> None:
    new = samples / "mlp_semi_auto/20_validate_0080.ir"
    status, out, _ = gate(
        capsys, golden, new, "--budget", "step_seconds=+5%", "--select", "GAT011", "-f", "json"
    )
    (found,) = json.loads(out)["findings"]
    assert status == 2
    assert "was not judged: of the golden dump, there is no begin dump" in found["message"]


def test_ranks_that_only_the_new_run_has_are_held_against_the_budget(
    capsys: pytest.CaptureFixture[str], samples: Path, tmp_path: Path
) -> None:
    run, old = samples / "pipeline_2_stages", tmp_path / "old"
    for rank in (0, 1):
        shutil.copytree(run / f"rank_{rank}", old / f"rank_{rank}")
    only = ("--select", "GAT011", "-f", "json")
    _, out, _ = gate(capsys, old, run, "--budget", "statements=108", *only)
    assert [each["ranks"] for each in json.loads(out)["findings"]] == [[2, 3]]


def test_a_rank_that_is_asked_for_alone_needs_no_budget_of_others(
    capsys: pytest.CaptureFixture[str], samples: Path, tmp_path: Path
) -> None:
    settings = tmp_path / "irtool.toml"
    settings.write_text(
        "[gate.budget.rank.0]\nstatements = 1\n[gate.budget.rank.3]\nstatements = 1\n"
    )
    run = samples / "pipeline_2_stages"
    status, out, err = gate(capsys, run, "--config", settings, "--rank", "3", "-f", "json")
    assert status == 1
    assert [each["ranks"] for each in json.loads(out)["findings"]] == [[3]]
    assert "left out the budgets of ranks 0: --rank asks for rank 3 alone" in err


def test_a_budget_without_its_rule_is_refused(
    capsys: pytest.CaptureFixture[str], golden: Path
) -> None:
    status, _, err = gate(capsys, golden, "--budget", "statements=1", "--ignore", "GAT011")
    assert status == 2
    assert "GAT011 is not selected" in err


def test_options_go_before_the_settings_for_the_same_ranks(
    capsys: pytest.CaptureFixture[str], samples: Path, tmp_path: Path
) -> None:
    settings = tmp_path / "irtool.toml"
    settings.write_text(
        "[gate.budget.rank.0]\nstatements = 1\n[gate.budget.rank.2]\nstatements = 1\n"
    )
    run = samples / "pipeline_2_stages"
    _, out, _ = gate(
        capsys, run, "--config", settings, "--budget", "rank.2.statements=1k", "-f", "json"
    )
    assert [each["ranks"] for each in json.loads(out)["findings"]] == [[0]]


def test_a_trend_has_a_line_a_build(
    capsys: pytest.CaptureFixture[str], samples: Path, tmp_path: Path
) -> None:
    trend, page = tmp_path / "trend.jsonl", tmp_path / "trend.html"
    for name in ("a", "b", "b"):  # a job that was run again takes its own place
        gate(capsys, samples / "mlp_semi_auto", "--trend", trend, "--build", name,
             "--trend-page", page, "--budget", "statements=90")  # fmt: skip
    lines = [json.loads(line) for line in trend.read_text().splitlines()]
    assert [each["build"] for each in lines] == ["a", "b"]
    assert lines[0]["ranks"][0]["values"]["peak_memory"] == 2693120
    assert lines[0]["exceeded"] == ["statements"]
    text = page.read_text()
    assert "above its budget: statements" in text
    assert "as a, at most 90: statements of the last graph" in text
    assert re.search(r"<title>b, (all ranks|rank 0): \d+</title>", text)


@pytest.mark.parametrize("page", ["dump.ir", "link.ir", "trend.jsonl"])
def test_the_page_of_a_trend_takes_the_place_of_no_input(
    capsys: pytest.CaptureFixture[str], samples: Path, tmp_path: Path, page: str
) -> None:
    text = (samples / "mlp_semi_auto" / "20_validate_0080.ir").read_bytes()
    (tmp_path / "dump.ir").write_bytes(text)
    (tmp_path / "link.ir").symlink_to("dump.ir")
    status, _, errors = gate(
        capsys, tmp_path / "dump.ir", "--trend", tmp_path / "trend.jsonl",
        "--trend-page", tmp_path / page,
    )  # fmt: skip
    assert status == 2
    assert "will not replace an input" in errors
    assert (tmp_path / "dump.ir").read_bytes() == text
    kept = tmp_path / "trend.jsonl"
    assert not kept.exists() or len(kept.read_text().splitlines()) == 1


def test_a_strange_line_of_a_trend_is_named_and_kept(
    capsys: pytest.CaptureFixture[str], samples: Path, tmp_path: Path
) -> None:
    trend = tmp_path / "trend.jsonl"
    new = samples / "mlp_semi_auto"
    gate(capsys, new, "--trend", trend, "--build", "a")
    strange = b'<<<<<<< HEAD \xff\r\n{"schema": "irtool.gate.trend/2", "build": "b"}\n'
    later = trend.read_bytes().replace(b'"build":"a"', b'"build":"a","more":1')
    trend.write_bytes(strange + later)
    status, out, err = gate(
        capsys, new, "--trend", trend, "--build", "c", "--budget", "statements=93", "-f", "concise"
    )
    assert status == 1  # of the budget, which is judged all the same
    assert "statements of rank 0 is 94, the budget is 93" in out
    assert f"{trend}:1:1: warning[GAT900]: this line is no build: no JSON" in err
    assert f"{trend}:2:1: warning[GAT900]: this line is no build: no" in err
    assert "<<<<<<< HEAD" in err
    assert trend.read_bytes().startswith(strange + later)
    assert [line[:1] for line in trend.read_bytes().split(b"\n")] == [b"<", b"{", b"{", b"{", b""]


def test_a_file_that_holds_no_build_is_left_alone_after_the_verdict(
    capsys: pytest.CaptureFixture[str], samples: Path, tmp_path: Path
) -> None:
    notes = tmp_path / "notes.md"
    notes.write_text("# what we built\n")
    status, out, err = gate(
        capsys, samples / "mlp_semi_auto", "--trend", notes, "--budget", "statements=93"
    )
    assert status == 2
    assert "statements of rank 0 is 94, the budget is 93" in out
    assert "no trend of builds: line 1: no JSON" in err
    assert notes.read_text() == "# what we built\n"


@pytest.mark.parametrize(
    ("budget", "headline"),
    [
        ((), "1 build, without a budget"),
        (("--budget", "statements=94"), "1 build, the last one within its budget"),
        (("--budget", "statements=+1%"),
         "1 build, the last one within its budget; not judged: statements"),
    ],
)  # fmt: skip
def test_a_trend_says_what_the_last_build_was_held_against(
    budget: tuple[str, ...], headline: str, capsys: pytest.CaptureFixture[str], samples: Path,
    tmp_path: Path,
) -> None:  # fmt: skip
    page = tmp_path / "trend.html"
    gate(capsys, samples / "mlp_semi_auto", "--trend", tmp_path / "trend.jsonl", "--trend-page",
         page, *budget)  # fmt: skip
    assert f">{headline}<" in page.read_text()


@pytest.mark.parametrize(("rise", "is_told"), [(99, False), (100, True)])
def test_a_trend_names_the_build_in_which_a_measure_rose_most(rise: int, is_told: bool) -> None:
    counts = {"a": 10_000, "f" * 40: 10_000 + rise, "c": 10_000 + rise, "d": 1}
    builds = [
        Build(name, (Measured(0, 0, {"statements": count}, {}),)) for name, count in counts.items()
    ]
    notes = str(trend_report(builds, ()).elements)
    assert ("rose most in ffffffffff (+1.0 %)" in notes) == is_told


@pytest.mark.parametrize(
    ("budget", "words"),
    [
        ("peak=1", "there is no measure peak"),
        ("peak_memory", "is not MEASURE=LIMIT"),
        ("peak_memory=-1", "is no amount"),
        ("peak_memory=1 parsec", "there is no unit parsec"),
    ],
)
def test_budgets_that_make_no_sense(
    capsys: pytest.CaptureFixture[str], golden: Path, budget: str, words: str
) -> None:
    status, _, err = gate(capsys, golden, "--budget", budget)
    assert status == 2
    assert words in err


def test_run_folders(capsys: pytest.CaptureFixture[str], samples: Path) -> None:
    status, _, err = gate(capsys, samples / "gpt", samples / "gpt")
    assert status == 0
    assert "20_validate_0080.ir" in err


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["nowhere.ir", "{golden}"], "no such file"),
        (["{golden}", "{golden}", "--threshold", "GAT001"], "is not CODE.NAME=NUMBER"),
        (["{golden}", "{golden}", "--threshold", "GAT001.mots_more=1"], "most_more"),
        (["{golden}", "{golden}", "--threshold", "GAT001.mots_more=1"], "--threshold: error"),
        (["{golden}", "{golden}", "--select", "GAT999"], "GAT999"),
        (["{golden}", "{golden}", "--select", "COM"], "no rule of the gate"),
    ],
)
def test_mistakes_are_explained(
    capsys: pytest.CaptureFixture[str], golden: Path, arguments: list[str], words: str
) -> None:
    status, _, err = gate(capsys, *(text.format(golden=golden) for text in arguments))
    assert status == 2
    assert words in err
    assert "Traceback" not in err


def test_all_ranks_of_two_runs_are_compared(
    capsys: pytest.CaptureFixture[str], samples: Path, tmp_path: Path
) -> None:
    old, new = samples / "pipeline_2_stages", tmp_path / "new"
    shutil.copytree(old, new)
    assert codes(capsys, old, new) == []
    worse = new / "rank_2/20_validate_0080.ir"
    worse.write_text(worse.read_text("utf-8").replace("PrimFunc_ReLU(", "PrimFunc_AllReduce("))
    report = json.loads(gate(capsys, old, new, "--format", "json")[1])
    (found,) = report["findings"]
    assert (found["code"], found["ranks"]) == ("GAT010", [2])  # ReLU became AllReduce
    assert "GAT001" in below(found)
    assert report["counts"]["files"] == 6  # ranks 0 and 1 are equal
    assert codes(capsys, old, new, "--rank", "0") == []
    shutil.rmtree(new / "rank_0")
    assert "left out ranks 0: in one of the runs only" in gate(capsys, old, new)[2]


def test_dumps_of_different_passes_are_not_compared(
    capsys: pytest.CaptureFixture[str], samples: Path, tmp_path: Path
) -> None:
    folder = samples / "mlp_semi_auto"
    begin = shutil.copy(folder / "step_parallel_begin_0018.ir", tmp_path / "new.ir")
    status, _, err = gate(capsys, folder / "20_validate_0080.ir", begin)
    assert status == 2
    assert "validate cannot be compared with" in err


def test_the_answer_for_scripts_holds_the_context_of_both_dumps(
    capsys: pytest.CaptureFixture[str], samples: Path
) -> None:
    pair = samples / "mlp_grown"
    _, out, _ = gate(capsys, pair / "before", pair / "after", "-f", "json")
    answer = json.loads(out)
    judged, golden = (one["files"][0] for one in answer["contexts"])
    assert "after" in judged
    assert "before" in golden
    assert answer["context"] == answer["contexts"][0]["context"]
    assert answer["context"]["device_num"]["path"].endswith("mlp_grown/after/case.json")
    assert answer["context"]["origins"]["device_target"] == "assumed"
    assert any(text.startswith("device_target") for text in answer["assumptions"])
