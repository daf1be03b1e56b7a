"""``irtool cost`` as a user types it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from irtool.cli.main import main
from irtool.ir.dump import Dump
from irtool.ir.units import seconds_text
from irtool.report.cost import CostView, cost_report
from irtool.report.model import Report

BEGIN = "mlp_recursive_search/step_parallel_begin_0019.ir"


def run(capsys: pytest.CaptureFixture[str], *arguments: object) -> tuple[int, str, str]:
    status = main(["cost", *map(str, arguments)])
    out, err = capsys.readouterr()
    return status, out, err


def test_shares_and_assumptions(capsys: pytest.CaptureFixture[str], samples: Path) -> None:
    status, out, _ = run(capsys, samples / BEGIN, "--devices", 8)
    assert status == 0
    assert "Where a step goes" in out
    assert "gradients" in out
    assert "more assumptions: --assumptions lists them" in out
    assert "assumed: nothing is hidden" not in out
    _, whole, _ = run(capsys, samples / BEGIN, "--devices", 8, "--assumptions")
    assert "assumed: nothing is hidden" in whole
    assert "--assumptions lists them" not in whole


def test_shares_add_up_to_the_step(capsys: pytest.CaptureFixture[str], samples: Path) -> None:
    _, out, _ = run(capsys, samples / BEGIN, "--devices", 8, "-f", "json")
    found = json.loads(out)
    assert found["schema"] == "irtool.cost/1"
    assert sum(found["shares"].values()) == pytest.approx(found["cost"]["before"])
    memory = found["memory_bytes"]
    assert memory["total"] == sum(n for key, n in memory.items() if key != "total")


def test_axes_hold_all_communication(capsys: pytest.CaptureFixture[str], samples: Path) -> None:
    _, out, _ = run(capsys, samples / BEGIN, "--devices", 8, "-f", "json")
    found = json.loads(out)
    communicated = sum(found["links"].values())
    assert sum(found["axes"].values()) == pytest.approx(communicated)
    assert found["axes"]["tensor"] > 0
    assert found["axes"]["data"] >= found["shares"]["gradients"] > 0
    assert 0 < found["hidden_at_best"] <= found["shares"]["gradients"]


def test_of_a_pipeline_the_slowest_stage_is_shown(
    capsys: pytest.CaptureFixture[str], samples: Path
) -> None:
    status, out, err = run(capsys, samples / "pipeline_run", "-f", "json")
    assert status == 0
    assert err.count("reads ") == 2  # the dump of the first stage once, and those of the others
    assert "also reads the begin dumps of stage 1" in err
    found = json.loads(out)
    seconds = [stage["seconds"] for stage in found["stages"]]
    assert len(seconds) == 2
    assert seconds == sorted(seconds, reverse=True)
    assert found["cost"]["before"] == seconds[0]
    assert found["stage"] == found["stages"][0]["stage"]
    assert found["path"] == str(samples / "pipeline_run")


def test_the_page_of_a_pipeline_shows_the_graph_of_the_slowest_stage(
    capsys: pytest.CaptureFixture[str], samples: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shown: list[tuple[CostView, Dump]] = []

    def spy(view: CostView, dump: Dump | None = None) -> Report:
        assert dump is not None
        shown.append((view, dump))
        return cost_report(view, dump)

    monkeypatch.setattr("irtool.report.cost.cost_report", spy)
    _, page, _ = run(capsys, samples / "pipeline_run", "-f", "html")
    assert "pipeline_run, stage 1" in page
    ((view, dump),) = shown
    assert {item.node for item in view.cost.items if item.node is not None} <= set(dump.nodes())


def test_communication_is_what_the_links_carry(
    capsys: pytest.CaptureFixture[str], samples: Path
) -> None:
    """Slices that a redistribution cuts from what is there are none of it."""
    _, text, _ = run(capsys, samples / BEGIN, "--devices", 8)
    _, out, _ = run(capsys, samples / BEGIN, "--devices", 8, "-f", "json")
    seconds = sum(json.loads(out)["links"].values())
    assert f"communication  {seconds_text(seconds)} if nothing is hidden" in text


def test_a_limit_of_rows_goes_with_tables(
    capsys: pytest.CaptureFixture[str], samples: Path
) -> None:
    status, out, err = run(capsys, samples / BEGIN, "--devices", 8, "-f", "json", "--limit", 3)
    assert status == 2
    assert not out
    assert err.startswith("--limit: error")


def test_a_refused_network_is_priced_and_said_to_be(
    capsys: pytest.CaptureFixture[str], samples: Path
) -> None:
    status, out, _ = run(
        capsys, samples / "mlp_rejected/step_parallel_begin_0018.ir", "--devices", 8
    )
    assert status == 1
    assert "MindSpore would refuse these strategies" in out


@pytest.mark.parametrize("text", ["", "nonsense\n"])
def test_what_is_no_dump(capsys: pytest.CaptureFixture[str], tmp_path: Path, text: str) -> None:
    path = tmp_path / "x.ir"
    path.write_text(text)
    status, out, err = run(capsys, path, "--devices", 8)
    assert status == 2
    assert not out
    assert "Traceback" not in err


def test_an_unknown_machine(capsys: pytest.CaptureFixture[str], samples: Path) -> None:
    status, _, err = run(capsys, samples / BEGIN, "--devices", 8, "--machine", "abacus")
    assert status == 2
    assert "ascend_910b" in err


DYNAMIC = "verdicts/test_meanext.test_mean_ext_shard_dynamic_dim_None.1"
"""A network whose input has two unknown dimensions."""


def test_what_has_no_size_is_not_priced(capsys: pytest.CaptureFixture[str], corpus: Path) -> None:
    status, out, err = run(capsys, corpus / DYNAMIC, "-f", "json")
    found = json.loads(out)
    assert status == 1
    assert "say them: --bind s19=32 --bind s20=32" in err
    assert any("its sizes are not known" in text for text in found["unknown"])
    assert all(item["received_bytes"] >= 0 for item in found["communication"])
    assert found["cost"]["before"] is None


def test_sizes_that_are_given_price_it(capsys: pytest.CaptureFixture[str], corpus: Path) -> None:
    sizes = ("--bind", "s19=32", "--bind", "input_data[1]=64")
    status, out, _ = run(capsys, corpus / DYNAMIC, "-f", "json", *sizes)
    found = json.loads(out)
    assert status == 0
    assert found["unknown"] == []
    assert found["cost"]["before"] > 0


def test_a_size_of_nothing(capsys: pytest.CaptureFixture[str], corpus: Path) -> None:
    status, out, err = run(capsys, corpus / DYNAMIC, "--bind", "batch=32")
    assert status == 2
    assert not out
    assert "there are: s19, s20" in err


def test_operators_that_nobody_gave_a_strategy_are_counted(
    capsys: pytest.CaptureFixture[str], samples: Path
) -> None:
    before = samples / "mlp_recursive_search/step_auto_parallel_begin_0010.ir"
    _, out, _ = run(capsys, before, "--devices", 8)
    assert "assumed: 11 operators without a strategy: as MindSpore makes them" in out
    _, out, _ = run(capsys, samples / BEGIN, "--devices", 8)
    assert "without a strategy" not in out
