"""``irtool lint``: what goes in, what comes out, and the exit status."""

from __future__ import annotations

import json
import re
import shutil
from collections import Counter
from pathlib import Path

import jsonschema
import pytest

from irtool.cli.main import main
from irtool.ir.dump import Dump
from irtool.syntax.excerpt import excerpt
from irtool.syntax.run import Run, load_run
from tests.cluster.rank_dumps import Movable

ROOT = Path(__file__).resolve().parents[2]
REJECTED = "mlp_rejected/step_parallel_begin_0018.ir"


@pytest.fixture(autouse=True)
def own_cache(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("IRTOOL_CACHE_DIR", str(tmp_path_factory.mktemp("cache")))


@pytest.fixture
def here(tmp_path: Path, samples: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a rejected network, the current one."""
    shutil.copytree(samples / "mlp_rejected", tmp_path / "mlp_rejected")
    (tmp_path / ".git").mkdir()
    monkeypatch.chdir(tmp_path)
    return tmp_path


def run(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    status = main(("lint", *arguments))
    captured = capsys.readouterr()
    return status, captured.out, captured.err


def found(capsys: pytest.CaptureFixture[str], *arguments: str) -> list[dict[str, object]]:
    status, out, _ = run(capsys, *arguments, "--format", "json")
    findings: list[dict[str, object]] = json.loads(out)["findings"]
    grave = any(each["severity"] != "info" for each in findings)
    assert status == (1 if grave else 0)
    return findings


def test_a_refused_strategy_is_a_finding_with_its_places(
    here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    status, out, _ = run(capsys, REJECTED)
    assert status == 1
    assert f"{REJECTED}:75:18: error[STR001]: MatMul:" in out
    assert "^^^^^^^^^^^^^^^" in out
    assert "source net.py:33: return self.bias_add" in out
    assert "fix    in_strategy ((2, 4), (1, 4))" in out


def test_healthy_samples_have_no_errors(samples: Path, capsys: pytest.CaptureFixture[str]) -> None:
    names = ("gpt", "mlp_semi_auto", "pipeline_run", "optimizer_parallel", "recompute")
    folders = [str(samples / name) for name in names]
    assert [each for each in found(capsys, *folders) if each["severity"] == "error"] == []


def test_a_run_folder_is_linted_by_rank(samples: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = run(capsys, str(samples / "pipeline_run"), "--format", "json")[1]
    report = json.loads(out)
    assert report["counts"]["files"] == 4
    assert "COM007" not in {each["code"] for each in report["silent"]}
    one = run(capsys, str(samples / "pipeline_run"), "--rank", "4", "--format", "json")[1]
    assert json.loads(one)["counts"]["files"] == 2
    assert "COM007" in {each["code"] for each in json.loads(one)["silent"]}


def test_a_folder_of_many_compilations_is_walked_no_oftener_than_one_of_few(
    here: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    walks: list[str] = []

    def walked(folder: str) -> Run:
        walks.append(folder)
        return load_run(folder)

    monkeypatch.setattr("irtool.cli.inputs.begin.load_run", walked)
    for number in range(5):
        shutil.copytree("mlp_rejected", f"many/{number}")
    assert len(found(capsys, "many", "--no-cache", "--select", "STR001")) == 5
    assert walks == ["many"]


def test_equal_ranks_are_told_once(
    here: Path, samples: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for rank in range(3):
        shutil.copytree("mlp_rejected", f"run/rank_{rank}")
    findings = [each for each in found(capsys, "run") if each["code"] == "STR001"]
    assert [each["ranks"] for each in findings] == [[0, 1, 2]]


def test_select_and_ignore_choose_rules(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert [each["code"] for each in found(capsys, REJECTED, "--select", "STR001")] == ["STR001"]
    assert found(capsys, REJECTED, "--select", "STR", "--ignore", "STR001") == []
    assert found(capsys, REJECTED, "--select", "SYN") == []


def test_where_chooses_nodes(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert found(capsys, REJECTED, "--where", 'op == "MatMul"')
    assert not found(capsys, REJECTED, "--where", 'op == "ReLU"')


@pytest.mark.parametrize(
    ("file", "text"),
    [
        ("irtool.toml", '[lint]\nignore = ["STR"]\n'),
        ("pyproject.toml", '[tool.irtool.lint]\nignore = ["STR"]\n'),
        ("irtool.toml", '[lint.per-scope-ignores]\n"mid-Linear" = ["STR001"]\n'),
        ("irtool.toml", '[lint.per-file-ignores]\n"mlp_*/*" = ["illegal-strategy"]\n'),
    ],
)
def test_settings_are_read(
    here: Path, file: str, text: str, capsys: pytest.CaptureFixture[str]
) -> None:
    (here / file).write_text(text)
    assert found(capsys, REJECTED) == []


def test_a_project_that_does_not_name_irtool_has_no_settings(
    here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (here / "pyproject.toml").write_text("[tool.other]\nlint = 3\n[not toml at all\n")
    assert found(capsys, REJECTED)


@pytest.mark.parametrize(
    ("text", "message", "hint"),
    [
        ('[lint]\nselct = ["STR"]\n', "irtool.toml: lint.selct: error[LNT001]", "mean select?"),
        ('[lint]\nselect = ["STR9"]\n', "irtool.toml: lint.select: error[LNT001]", "did you mean"),
        ('[lnt]\nselect = ["STR"]\n', "there is no key lnt", "did you mean lint?"),
        ("lint = 3\n", "lint must be a table", "[lint]"),
    ],
)
def test_mistakes_in_settings_are_named(
    here: Path, text: str, message: str, hint: str, capsys: pytest.CaptureFixture[str]
) -> None:
    (here / "irtool.toml").write_text(text)
    status, out, errors = run(capsys, REJECTED)
    assert (status, out) == (2, "")
    assert message in errors
    assert hint in errors


def test_severities_and_fail_on_decide_the_exit_status(
    here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (here / "irtool.toml").write_text(
        '[lint]\nfail-on = "warning"\n[lint.severities]\nSTR = "info"\n'
    )
    status, out, _ = run(capsys, REJECTED, "--format", "concise")
    assert status == 0
    assert "info[STR001]" in out
    assert run(capsys, REJECTED, "--fail-on", "info")[0] == 1
    assert run(capsys, REJECTED, "--fail-on", "never")[0] == 0


def test_exit_zero_reports_and_succeeds(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    status, out, _ = run(capsys, REJECTED, "--exit-zero")
    assert status == 0
    assert "STR001" in out


def test_a_baseline_leaves_only_what_is_new(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    status, _, errors = run(capsys, REJECTED, "--baseline", "known.json")
    assert status == 2
    assert "--update-baseline" in errors
    assert run(capsys, REJECTED, "--baseline", "known.json", "--update-baseline")[0] == 0
    status, out, _ = run(capsys, REJECTED, "--baseline", "known.json")
    assert status == 0
    assert "known in the baseline" in out
    (here / "known.json").write_text("[]")
    assert run(capsys, REJECTED, "--baseline", "known.json")[0] == 2


def test_a_comment_in_the_source_answers(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    line = "        return self.bias_add(self.matmul(x, self.weight), self.bias)"
    (here / "net.py").write_text("\n" * 32 + f"{line}  # irtool: ignore[STR001]\n")
    status, out, _ = run(capsys, REJECTED)
    assert status == 0
    assert "1 suppressed by comments" in out


def test_a_baseline_keeps_what_it_knows_of_other_rules(
    here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    update = (REJECTED, "--baseline", "known.json", "--update-baseline")
    run(capsys, *update)
    run(capsys, *update, "--select", "COM")
    assert run(capsys, REJECTED, "--baseline", "known.json")[0] == 0


def test_a_file_that_is_no_baseline_is_not_overwritten(
    here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (here / "net.py").write_text("x = 1\n")
    status, _, err = run(capsys, REJECTED, "--baseline", "net.py", "--update-baseline")
    assert (status, (here / "net.py").read_text()) == (2, "x = 1\n")
    assert "no baseline" in err


@pytest.mark.parametrize("devices", ["", "device_num = 8"])
def test_the_environment_is_told_by_the_settings(
    here: Path, capsys: pytest.CaptureFixture[str], devices: str
) -> None:
    (here / "mlp_rejected/case.json").unlink()
    table = "[context.environment]\nMS_COMM_COMPILER_OPT = -1\nMS_INTERFERED_SAPP = 1\n"
    (here / "irtool.toml").write_text(f"[context]\n{devices}\n{table}")
    told = [each["code"] for each in found(capsys, REJECTED, "--select", "ENV")]
    # Without the devices, the mode is not known either.
    assert told == (["ENV001", "ENV002"] if devices else ["ENV001"])


def test_the_environment_is_a_table(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (here / "irtool.toml").write_text("[context]\nenvironment = 3\n")
    status, _, err = run(capsys, REJECTED)
    assert status == 2
    assert "irtool.toml: error[CTX002]: environment must be a table" in err


def test_the_context_of_a_run_folder_counts_for_its_ranks(
    samples: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = run(capsys, str(samples / "pipeline_4_stages"), "--format", "json")[1]
    report = json.loads(out)
    assert "devices" not in {each["need"] for each in report["silent"]}
    assert {each["code"] for each in report["findings"]} == {"PIP002"}


def test_rules_about_stages_lack_nothing_where_there_is_one(
    samples: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = run(capsys, str(samples / "hang_one_strategy"), "--format", "json")[1]
    assert "devices" not in {each["need"] for each in json.loads(out)["silent"]}


@pytest.mark.parametrize("code", ["GAT", "GAT001", "more-collectives"])
def test_rules_of_the_gate_are_not_for_lint(
    here: Path, capsys: pytest.CaptureFixture[str], code: str
) -> None:
    status, _, err = run(capsys, REJECTED, "--select", code)
    assert status == 2
    assert "irtool gate OLD NEW" in err


def nobody_works(*arguments: object, **options: object) -> None:
    raise AssertionError("linted again")


def test_the_second_run_tells_the_same_from_the_cache(
    here: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    first = run(capsys, "mlp_rejected")
    monkeypatch.setattr("irtool.cli.lint.linting.lint_unit", nobody_works)
    assert run(capsys, "mlp_rejected") == first
    Path("mlp_rejected").rename("elsewhere")
    assert run(capsys, "elsewhere")[1] == first[1].replace("mlp_rejected", "elsewhere")


def test_each_dump_is_read_once(
    here: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    evidence = "irtool.syntax.excerpt.excerpt"
    expected = run(capsys, "mlp_rejected", "--format", "json")
    with monkeypatch.context() as patch:
        patch.setattr(evidence, nobody_works)
        assert run(capsys, "mlp_rejected", "--no-cache", "--format", "json") == expected
    # What the cache knows is not read at all; only the contexts of a JSON answer are.
    assert run(capsys, "mlp_rejected", "--format", "json") == expected
    with monkeypatch.context() as patch:
        patch.setattr(evidence, nobody_works)
        run(capsys, "mlp_rejected", "--format", "concise")


def test_excerpts_of_other_ranks_are_read_once_however_many_ask(
    here: Path, samples: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each rank looks into its own dumps and into those of others for the number of devices."""
    reads: Counter[str] = Counter()

    def counted(path: str, operators: frozenset[str]) -> Dump:
        reads[path] += 1
        return excerpt(path, operators)

    monkeypatch.setattr("irtool.syntax.excerpt.excerpt", counted)
    for rank in range(4):
        dump = Path("run", f"rank_{rank}", "20_validate_0080.ir")
        dump.parent.mkdir(parents=True)
        text = (samples / "pipeline_2_stages" / dump.relative_to("run")).read_text()
        dump.write_text(Movable(text, rank, range(4)).moved(0, 4))  # no group of all devices
    run(capsys, "run", "--no-cache")
    assert len(reads) == 4
    assert max(reads.values()) == 2  # for itself, and for the others


def test_the_cache_names_no_file_that_has_moved(
    here: Path, samples: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    shutil.copytree(samples / "mlp_semi_auto", here / "mlp_semi_auto")
    case = here / "mlp_semi_auto" / "case.json"
    given = json.loads(case.read_text(encoding="utf-8"))
    given["context"]["device_num"] = "64"
    case.write_text(json.dumps(given), encoding="utf-8")
    first = run(capsys, "mlp_semi_auto", "--select", "ENV004")
    assert "mlp_semi_auto/case.json" in first[1]
    assert run(capsys, "mlp_semi_auto", "--select", "ENV004") == first
    Path("mlp_semi_auto").rename("elsewhere")
    again = run(capsys, "elsewhere", "--select", "ENV004")
    assert again[1] == first[1].replace("mlp_semi_auto", "elsewhere")


def test_the_cache_knows_another_context(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (here / "mlp_rejected" / "case.json").unlink()
    assert found(capsys, REJECTED) == []
    assert found(capsys, REJECTED, "--devices", "8")
    assert found(capsys, REJECTED, "--devices", "8", "--parallel-mode", "data_parallel") == []


def test_the_cache_knows_several_ranks(
    samples: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    first = run(capsys, str(samples / "pipeline_run"))
    monkeypatch.setattr("irtool.cli.lint.linting.lint_unit", nobody_works)
    assert run(capsys, str(samples / "pipeline_run")) == first


def test_the_cache_knows_a_changed_dump(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run(capsys, REJECTED)
    path = here / REJECTED
    path.write_text(path.read_text().replace("((2, 4), (1, 2))", "((2, 4), (1, 4))"))
    assert "STR001" not in run(capsys, REJECTED)[1]


def test_several_processes_tell_the_same(samples: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folders = [str(samples / name) for name in ("gpt", "mlp_rejected", "pipeline_run")]
    one = run(capsys, *folders, "--jobs", "1", "--no-cache")
    assert run(capsys, *folders, "--jobs", "3", "--no-cache") == one


def test_json_is_what_its_page_says(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    schema = json.loads((ROOT / "docs/json-lint.schema.json").read_text(encoding="utf-8"))
    (here / "empty.ir").write_text("")
    for arguments in ((REJECTED,), (REJECTED, "empty.ir", "--ignore", "STR")):
        out = run(capsys, *arguments, "--format", "json")[1]
        jsonschema.validate(json.loads(out), schema)


def test_the_page_shows_what_is_printed(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    page = (ROOT / "docs/lint.md").read_text(encoding="utf-8")
    shown = re.search(r"```console\n\$ irtool lint (.*)\n([\s\S]*?)```", page)
    assert shown is not None
    monkeypatch.chdir(ROOT)
    assert run(capsys, shown[1])[1].startswith(shown[2])


def test_output_goes_to_a_file(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    status, out, errors = run(capsys, REJECTED, "--format", "sarif", "-o", "findings.sarif")
    assert (status, out) == (1, "")
    assert "1 finding in 1 dump" in errors
    assert json.loads((here / "findings.sarif").read_text())["version"] == "2.1.0"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["nothing.ir"], "no such file or folder"),
        (["empty"], "no dumps in this folder"),
        (["-x", REJECTED], "there is no option"),
        ([REJECTED, "--select", "STRR"], "there is no rule STRR"),
        ([REJECTED, "--ignore", "nonsense"], "there is no rule nonsense"),
        ([REJECTED, "--devices", "3"], "device_num must be"),
        ([REJECTED, "--machine", "abacus"], "there is no machine abacus"),
        ([REJECTED, "--where", "op ="], "--where:1:4"),
        ([REJECTED, "--source-map", "x"], "x is not FROM=TO"),
        ([REJECTED, "--update-baseline"], "--update-baseline needs a file"),
        ([REJECTED, "--rank", "7", "--graph", "9"], "there is no compilation 9"),
    ],
)
def test_what_cannot_be_done_ends_with_status_2(
    here: Path, arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    (here / "empty").mkdir()
    status, out, errors = run(capsys, *arguments)
    assert (status, out) == (2, "")
    assert message in errors.replace("No such", "no such")


@pytest.mark.parametrize(("text", "code"), [("", "SYN006"), ("garbage\n", "SYN005")])
def test_a_file_that_is_no_dump_is_a_finding(
    here: Path, text: str, code: str, capsys: pytest.CaptureFixture[str]
) -> None:
    (here / "a.ir").write_text(text)
    assert [each["code"] for each in found(capsys, "a.ir")] == [code]


def test_a_missing_file_beside_others_does_not_go_unnoticed(
    here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for option in (("--ignore", "STR"), ("--exit-zero",)):
        status, _, errors = run(capsys, REJECTED, "nothing.ir", *option)
        assert status == 1
        assert "nothing.ir" in errors


def test_other_passes_of_a_run_folder_are_left_out_and_that_is_said(
    here: Path, samples: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    shutil.copy(samples / "gpt/20_validate_0080.ir", here / "mlp_rejected" / "12_x_0019.ir")
    shutil.copy(samples / "gpt/20_validate_0080.ir", here / "mlp_rejected" / "20_validate_0080.ir")
    _, out, errors = run(capsys, "mlp_rejected", "--format", "json")
    assert json.loads(out)["counts"]["files"] == 2
    assert "left out 1 dump" in errors
    out = run(capsys, "mlp_rejected", "--all-passes", "--format", "json")[1]
    assert json.loads(out)["counts"]["files"] == 3


def test_a_page_shows_the_graph_of_the_dump_with_most_findings(
    samples: Path, tmp_path: Path
) -> None:
    page = tmp_path / "lint.html"
    dump = samples / "mlp_rejected"
    assert main(["lint", str(dump), "--format", "html", "-o", str(page)]) == 1
    text = page.read_text(encoding="utf-8")
    assert "STR001" in text
    assert "of-graph" in text
    healthy = samples / "mlp_semi_auto/20_validate_0080.ir"
    assert main(["lint", str(healthy), "--format", "html", "-o", str(page)]) == 0
    assert "of-graph" not in page.read_text(encoding="utf-8")


def test_json_has_the_context_of_each_compilation(
    here: Path, samples: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    main(["lint", str(samples / "pipeline_run"), "--no-cache", "--format", "json"])
    told = json.loads(capsys.readouterr().out)
    ranks = [each["context"]["global_rank"]["value"] for each in told["contexts"]]
    assert ranks == [0, 4]
    assert [len(each["files"]) for each in told["contexts"]] == [2, 2]
    assert told["context"] == told["contexts"][0]["context"]


# -- what CI rests on ------------------------------------------------------------------------------


@pytest.mark.parametrize("form", ["json", "sarif", "text"])
def test_the_same_bytes_whatever_the_number_of_processes(
    samples: Path, capsys: pytest.CaptureFixture[str], form: str
) -> None:
    folders = [str(samples / name) for name in ("mlp_rejected", "recompute_lost", "gpt")]
    outputs = {
        run(capsys, *folders, "--no-cache", "--jobs", str(jobs), "--format", form)[1]
        for jobs in (1, 2)
    }
    assert len(outputs) == 1


def test_a_network_that_mindspore_compiled_has_no_errors(
    samples: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A begin dump that irtool refuses, with the later dump that shows that MindSpore did not."""
    folder = tmp_path / "rank_0"
    folder.mkdir()
    shutil.copy(samples / REJECTED, folder / "step_parallel_begin_0018.ir")
    shutil.copy(samples / "mlp_rejected/case.json", folder)
    assert [each["severity"] for each in found(capsys, str(folder))] == ["error"]
    shutil.copy(samples / "mlp_semi_auto/step_parallel_end_0019.ir", folder)
    (doubt,) = [each for each in found(capsys, str(folder)) if each["code"] == "STR001"]
    assert doubt["severity"] == "info"
    assert str(doubt["message"]).startswith("irtool would refuse MatMul, but MindSpore compiled it")
    assert "please report it" in str(doubt["hint"])


def test_a_layer_in_front_renames_no_finding(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def prints(layers: list[int]) -> str:
        statements = [
            f'  %{n}(a{n}) = Print("x", %para1_x, U)\n'
            f"      # Scope: (Default/net/layers-CellList/{layer}-Layer)\n"
            for n, layer in enumerate(layers)
        ]
        return (
            f"# Total number of cnodes: {len(layers) + 1}\n%para1_x: <Tensor[Float32], (8)>\n\n"
            "subgraph @1_construct.2() {\n" + "".join(statements) + "  Return(%0)\n}\n"
        )

    path = tmp_path / "net.ir"
    names: list[object] = []
    for layers in ([2], [3], [2, 3]):
        path.write_text(prints(layers))
        told = found(capsys, str(path), "--select", "OPS")
        names.append([each["fingerprint"] for each in told])
    assert names[0] == names[1] == names[2]  # equal findings of two layers are one


@pytest.mark.parametrize(
    ("cut", "severity"),
    [
        ("  %4(b) = PrimFunc_Re-LU(%3) !!\n", "info"),  # whole, and nothing else is damaged
        ("  %4(b) = PrimFunc_ReLU(%3\n", "error"),  # cut in the middle
    ],
)
def test_what_irtool_cannot_read_is_its_own_fault_unless_the_dump_is_damaged(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], cut: str, severity: str
) -> None:
    path = tmp_path / "net.ir"
    path.write_text(
        "%para1_x: <Tensor[Float32], (8)>\n\nsubgraph @1_construct.2() {\n"
        f"  %3(a) = PrimFunc_ReLU(%para1_x)\n{cut}  Return(%3)\n}}\n"
    )
    _, out, _ = run(capsys, str(path), "--format", "json", "--select", "SYN001")
    assert [each["severity"] for each in json.loads(out)["findings"]] == [severity]


def test_findings_that_are_gone_are_named(
    samples: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    baseline = str(tmp_path / "known.json")
    run(capsys, str(samples / "mlp_rejected"), "--baseline", baseline, "--update-baseline")
    _, out, _ = run(capsys, str(samples / "mlp_semi_auto"), "--baseline", baseline)
    assert "1 known finding of the baseline did not come again" in out
    assert "gone: STR001 " in out
