"""REC: recomputation that costs more than it gives."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.linting.cases import compilation, dump_of, lint, messages, rule, the_one


@pytest.fixture
def recomputed(samples: Path) -> str:
    return (samples / "recompute/20_validate_0081.ir").read_text(encoding="utf-8")


# -- REC001 --------------------------------------------------------------------------------------


def test_a_collective_that_runs_again_is_told(recomputed: str) -> None:
    facts = compilation({"validate": recomputed})
    found = the_one(lint(rule("REC001", least_bytes=1), facts))
    assert (found.op, found.line) == ("AllReduce", 136)
    assert not lint(rule("REC001"), facts).findings


def test_collectives_that_run_once_are_fine(samples: Path) -> None:
    facts = compilation({"validate": samples / "gpt/20_validate_0080.ir"})
    assert not lint(rule("REC001", least_bytes=1), facts).findings


# -- REC003 --------------------------------------------------------------------------------------


def test_recompute_without_any_copy_is_named(recomputed: str) -> None:
    text = recomputed.replace("duplicated: Bool(1)", "duplicated: Bool(0)")
    told = messages(lint(rule("REC003"), compilation({"validate": text})))
    assert len(told) == 1
    assert all("nothing of it is computed again" in each for each in told)


def test_the_scope_of_a_cell_asks_for_recompute_too(recomputed: str) -> None:
    text = recomputed.replace("duplicated: Bool(1)", "duplicated: Bool(0)")
    unmarked = text.replace("recompute: Bool(1)", "recompute: Bool(0)")
    found = the_one(lint(rule("REC003"), compilation({"validate": unmarked})))
    assert "nothing of it is computed again" in found.message
    elsewhere = unmarked.replace("recompute_Default", "Default")
    assert not lint(rule("REC003"), compilation({"validate": elsewhere})).findings


def test_recompute_with_copies_is_fine(recomputed: str) -> None:
    assert not lint(rule("REC003"), compilation({"validate": recomputed})).findings


def test_a_network_that_asks_for_none_is_fine(samples: Path) -> None:
    facts = compilation({"validate": samples / "gpt/20_validate_0080.ir"})
    assert not lint(rule("REC003"), facts).findings


# -- REC004 --------------------------------------------------------------------------------------


def layers(*recomputed: int, count: int = 4) -> str:
    statements: list[str] = []
    for n in range(count):
        scope = f"      # Scope: (Default/net/layers-CellList/{n}-Layer)"
        statements += [f'%{n}(a{n}) = PrimFunc_GeLU({_before(n)}) cnode_primal_attrs: '
                       f'{{unique_id: "{n}"}}', scope]  # fmt: skip
    for place, n in enumerate(recomputed):
        number = count + place
        statements += [
            f"%{number}(c{n}) = PrimFunc_GeLU({_before(n)}) cnode_attrs: {{duplicated: Bool(1)}}",
            f"      # Scope: (Default/net/layers-CellList/{n}-Layer)",
        ]
    return dump_of(*statements)


def _before(number: int) -> str:
    return f"%{number - 1}" if number else "%para1_x"


def test_the_one_layer_without_recompute_is_told() -> None:
    found = the_one(lint(rule("REC004"), compilation({"validate": layers(0, 1, 3)})))
    assert found.message == "layers.2 is not recomputed, as 3 equal layers are (layers.0)"
    assert found.severity == "warning"
    assert found.node == "%2"


@pytest.mark.parametrize("done", [(0, 1, 2, 3), (), (0,)], ids=["all", "none", "one"])
def test_all_none_or_one_of_the_layers_is_fine(done: tuple[int, ...]) -> None:
    assert not lint(rule("REC004"), compilation({"validate": layers(*done)})).findings


def test_half_of_the_layers_without_recompute_are_told() -> None:
    found = the_one(lint(rule("REC004"), compilation({"validate": layers(0, 1)})))
    assert [found.node, *(each.node for each in found.related)] == ["%2", "%3"]


@pytest.mark.parametrize(
    ("done", "severity"),
    [
        ((0, 1), "info"),  # several at one end: selective recomputation
        ((2, 3), "info"),
        ((0, 1, 2), "warning"),  # one alone
        ((0, 3), "warning"),  # in the middle
    ],
)
def test_several_layers_at_one_end_may_be_left_out(done: tuple[int, ...], severity: str) -> None:
    found = the_one(lint(rule("REC004"), compilation({"validate": layers(*done)})))
    assert found.severity == severity


def test_scopes_of_recomputed_cells_are_those_of_the_others() -> None:
    text = re.sub(r"Default(/net/layers-CellList/[013])", r"recompute_Default\1", layers(0, 1, 3))
    found = the_one(lint(rule("REC004"), compilation({"validate": text})))
    assert found.node == "%2"


def test_layers_of_another_kind_are_not_compared() -> None:
    text = layers(0, 1, 3)
    other = re.sub(r"(%2\(a2\) = PrimFunc_)GeLU", r"\1Tanh", text)
    assert not lint(rule("REC004"), compilation({"validate": other})).findings
