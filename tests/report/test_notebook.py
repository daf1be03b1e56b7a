"""Results in a notebook: small, harmless html, for a dump of any size."""

from __future__ import annotations

import pkgutil
import re
import subprocess
import sys
from dataclasses import replace
from importlib import import_module
from pathlib import Path

import pytest

import irtool
from irtool.cluster.fuse import fusion
from irtool.cluster.fuse_plan import plan as best_buckets
from irtool.cluster.machine import default_machine
from irtool.cluster.memory import memory
from irtool.cluster.ranks import single
from irtool.compare.graph_diff import diff_graphs
from irtool.compare.losses.comparison import compare_losses
from irtool.compare.losses.read import read_loss
from irtool.ir.display import Shown, view_of
from irtool.ir.dump import Dump
from irtool.ir.finding import Finding, Findings
from irtool.planning.plans.edits import network_edits
from irtool.planning.recovery.recover import Request, recover
from irtool.report.model import Column, Document, Facts, Heading, Note, Table, number_column
from irtool.report.notebook import DOCUMENTS, document_html
from irtool.sharding.check import check
from irtool.sharding.network.context import ParallelContext

EVIL = "<script>alert(1)</script>\x1b[31m"


@pytest.fixture
def dump(samples: Path) -> Dump:
    return irtool.load(samples / "gpt" / "20_validate_0080.ir")


def html(result: Shown) -> str:
    text = result._repr_html_()
    assert text is not None
    assert "<script" not in text
    assert len(text) < 200_000
    return text


def test_a_dump_shows_what_is_in_it(dump: Dump) -> None:
    text = html(dump)
    assert "20_validate_0080.ir" in text
    assert "AllReduce" in text
    assert "MatMul" in text


def test_a_small_dump_is_drawn_with_or_without_graphviz(
    dump: Dump, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert "<svg" in html(dump)
    monkeypatch.setenv("PATH", "/nowhere")
    assert "<svg" in html(dump)


def test_a_large_dump_is_no_larger_on_the_page(dump: Dump) -> None:
    graph = dump.graphs[0]
    items = tuple(
        replace(node, number=number)
        for number, node in enumerate(graph.nodes[:100] * 30)
        if not node.is_return
    )
    large = Dump((replace(graph, items=items),))
    assert len(html(large)) < 10_000
    assert len(html(large.graphs[0])) < 20_000


def test_a_graph_shows_its_statements(dump: Dump) -> None:
    text = html(dump.graphs[0])
    assert "325 statements" in text
    assert "more statements" in text
    assert text.count("<tr>") < 30


def test_a_report_of_check_shows_its_verdict(samples: Path) -> None:
    begin = irtool.load(samples / "mlp_rejected" / "step_parallel_begin_0018.ir")
    text = html(check(begin, ParallelContext(devices=8, mode="semi_auto_parallel")))
    assert "refused" in text
    assert "axis-mismatch" in text


def test_a_difference_shows_what_happened(dump: Dump, samples: Path) -> None:
    begin = irtool.load(samples / "gpt" / "step_parallel_begin_0018.ir")
    assert "begin" in html(diff_graphs(begin, dump))
    assert "identical" in html(diff_graphs(dump, dump))


def test_memory_shows_its_peak(dump: Dump) -> None:
    assert "peak" in html(memory(dump))


def test_fusion_shows_buckets_and_better_ones(samples: Path) -> None:
    (path,) = (samples / "data_parallel").glob("*validate*.ir")
    one = single(irtool.load(path), 0, 8).ranks[0]
    assert "in 1 bucket" in html(fusion(one))
    shown = html(best_buckets(one, default_machine()))
    assert "Communication that compute does not hide" in shown
    assert default_machine().name in shown


def test_a_pipeline_that_was_planned_shows_its_stages(samples: Path) -> None:
    pytest.importorskip("numpy")
    from irtool.planning.stages.stages import staged_plan

    begin = irtool.load(samples / "gpt" / "step_parallel_begin_0018.ir")
    context = ParallelContext(devices=8, mode="semi_auto_parallel")
    assert "2 stages" in html(staged_plan(begin, context, default_machine(), 2))


def test_loss_curves_show_whether_they_differ(samples: Path) -> None:
    curves = [
        read_loss(str(samples / "loss" / f"{name}.csv")) for name in ("reference", "bfloat16")
    ]
    assert "loss" in html(compare_losses(*curves))


def test_a_recovery_shows_what_is_lost(samples: Path) -> None:
    begin = irtool.load(samples / "mlp_semi_auto" / "step_parallel_begin_0018.ir")
    context = ParallelContext(devices=8, mode="semi_auto_parallel")
    assert "replica" in html(recover({0: begin}, context, Request(lost=(3,))))


def test_costs_and_plans_show_where_a_step_goes(samples: Path) -> None:
    pytest.importorskip("numpy")
    from irtool.planning.cost.structure import structure_of
    from irtool.planning.plans.plan import plan
    from irtool.planning.plans.step.report import step_cost

    begin = irtool.load(samples / "mlp_semi_auto" / "step_parallel_begin_0018.ir")
    context = ParallelContext(devices=8, mode="semi_auto_parallel")
    found = step_cost(structure_of(begin, context), check(begin, context), default_machine())
    assert "gradients" in html(found)
    assert "a step" in html(plan(begin, context, default_machine()))


def test_two_runs_show_what_differs(dump: Dump) -> None:
    from irtool.compare.runs.comparison import RunComparison
    from irtool.compare.runs.sides import RunSide

    found = RunComparison(RunSide("a"), RunSide("b"), diff_graphs(dump, dump))
    assert "the graphs are identical" in html(found)


def test_findings_show_what_and_where() -> None:
    text = html(Findings((Finding("STR001", "error", EVIL, "a.ir", 7),), files=1))
    assert "STR001" in text
    assert "a.ir:7" in text


@pytest.mark.parametrize("kind", DOCUMENTS)
def test_every_report_that_has_a_view_uses_it(kind: str) -> None:
    """What the table names is there, and the type asks for it."""
    module, _, name = kind.rpartition(".")
    found = getattr(import_module(module), name)
    assert issubclass(found, Shown)
    assert view_of(found) is not None
    place, _, function = DOCUMENTS[kind].partition(":")
    assert callable(getattr(import_module(place), function))


def test_every_result_that_asks_for_a_view_has_one() -> None:
    pytest.importorskip("numpy")
    for module in pkgutil.walk_packages(irtool.__path__, "irtool."):
        # The command line is not for notebooks, and the adapter needs a viewer that is not here.
        if not module.name.startswith(("irtool.cli", "irtool.__main__", "irtool.report.model_")):
            import_module(module.name)
    kinds = [kind for kind in _below(Shown) if kind.__module__.startswith("irtool.")]
    assert len(kinds) > 10
    assert [kind for kind in kinds if view_of(kind) is None] == []


def _below(kind: type) -> list[type]:
    return [each for child in kind.__subclasses__() for each in (child, *_below(child))]


def test_a_result_that_nobody_shows_stays_text() -> None:
    class Unknown(Shown):
        pass

    assert Unknown()._repr_html_() is None


def test_texts_are_escaped_and_tables_cut() -> None:
    rows = [(EVIL, n) for n in range(100)]
    table = Table(EVIL, [Column(EVIL), number_column("n")], rows, 7)
    text = document_html(Document([Heading(EVIL), Note(EVIL), Facts([(EVIL, EVIL)]), table]))
    assert "<script" not in text
    assert "\x1b" not in text
    assert text.count("<tr>") == 22
    assert "87 more rows" in text


def test_importing_irtool_loads_no_renderer() -> None:
    code = "import sys, irtool; print([name for name in sys.modules if 'render' in name])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert re.fullmatch(r"\[\]\s*", done.stdout)


def test_edits_show_what_they_save(samples: Path) -> None:
    pytest.importorskip("numpy")
    begin = irtool.load(samples / "mlp_semi_auto" / "step_parallel_begin_0018.ir")
    context = ParallelContext(devices=8, mode="semi_auto_parallel")
    report = check(begin, context)
    text = html(network_edits(begin, context, report, default_machine(), work=1))
    assert "shorten a step of" in text
    assert "µs</td>" in text
