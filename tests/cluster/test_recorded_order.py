"""Memory counted in the order that a run recorded, and why a record is not used."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

import irtool
from irtool.artefacts.recorded import NoOrder, RecordedOrder, recorded_order
from irtool.cli.main import main
from irtool.cluster.recorded_order import recorded_launches

RUN = Path(__file__).parents[2] / "samples/artefacts/run"
ORDER = "execution_order/ms_execution_order_graph_0.csv"


@pytest.fixture
def run(tmp_path: Path) -> Path:
    for part in ("graphs", "execution_order", "execute_order"):
        shutil.copytree(RUN / part, tmp_path / "run" / part)
    return tmp_path / "run"


def asked(run: Path, capsys: pytest.CaptureFixture[str], *words: str) -> dict[str, Any]:
    main(["memory", str(run), "--format", "json", *words])
    return json.loads(capsys.readouterr().out)


def recorded(run: Path) -> RecordedOrder | NoOrder:
    found = irtool.load_run(run)
    return recorded_order(found.rank(0), found.compilation())[0]


def test_the_recorded_order_is_used_and_named(
    run: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    answer = asked(run, capsys)
    assert answer["order"]["source"] == "recorded"
    assert answer["order"]["path"].endswith(ORDER)
    assert "graph_build" in answer["path"]
    assert len(answer["curve"]) == 83


def test_steps_of_a_dry_run_that_differ_are_no_order(run: Path) -> None:
    """A CPU launches what is ready, by several threads."""
    shutil.rmtree(run / "execution_order")
    found = recorded(run)
    assert isinstance(found, NoOrder)
    assert found.why == "its steps launch in different orders"


def test_a_dry_run_with_equal_steps_is_an_order(run: Path) -> None:
    path = run / "execute_order/execute_order.csv"
    lines = path.read_text(encoding="utf-8").splitlines(keepends=True)
    path.write_text("".join([*lines[:84], *lines[1:84], *lines[1:10]]), encoding="utf-8")
    found = recorded(run)
    assert isinstance(found, RecordedOrder)
    assert found.path == str(path)
    assert len(found.names) == 83


def test_old_numbers_need_the_graph_that_has_them(
    run: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    next((run / "graphs").glob("graph_before*")).unlink()
    shutil.rmtree(run / "execute_order")
    found = recorded(run)
    assert isinstance(found, NoOrder)
    assert "numbers that MindSpore gave up" in found.why
    answer = asked(run, capsys)
    assert answer["order"]["source"] == "graph_build"
    assert "numbers that MindSpore gave up" in answer["order"]["why"]


def test_a_record_that_lacks_an_operator_is_not_used(
    run: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    lines = (run / ORDER).read_text(encoding="utf-8").splitlines(keepends=True)
    (run / ORDER).write_text("".join(lines[:5] + lines[6:]), encoding="utf-8")
    answer = asked(run, capsys)
    assert answer["order"]["source"] == "graph_build"
    assert "lacks 1 of 83 operators" in answer["order"]["why"]


def test_an_order_against_what_nodes_need_is_not_used() -> None:
    dump = irtool.load(RUN / "graphs/graph_build_0_0123.ir.xz")
    found = recorded(RUN)
    assert isinstance(found, RecordedOrder)
    whole = dump.whole()
    assert not isinstance(recorded_launches(whole, found.names), str)
    told = recorded_launches(whole, found.names[::-1])
    assert isinstance(told, str)
    assert "before what that needs" in told
    assert recorded_launches(whole, [*found.names, found.names[0]]) == (
        "it launches an operator twice"
    )
    strange = recorded_launches(whole, [*found.names, "Default/other/MatMul-op0"])
    assert strange == (
        "1 of its operators are not in this dump, the first: Default/other/MatMul-op0"
    )


def test_an_order_that_is_asked_for_goes_before_a_record(
    run: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    answer = asked(run, capsys, "--order", "dfs")
    assert answer["order"]["source"] == "validate"
    assert "validate" in answer["path"]
