"""The propagation gives what MindSpore gave, operator by operator."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import irtool
from irtool.ir.dump import Dump
from irtool.planning.plans.agreement import Agreement, agreement
from irtool.planning.plans.plan import plain_dump
from irtool.planning.propagation.search import search
from irtool.planning.recursive.kinds import NotSearchable
from irtool.planning.recursive.search import Choice
from irtool.sharding.network.analysis import analysis_of
from irtool.sharding.network.context import ParallelContext
from irtool.sharding.network.graphs import network_of

CASES = {"mlp_sp_8": 16, "gpt_L2_B8_sp_8": 59}
"""By case, how many operators MindSpore gives strategies."""

NEVER_SHOWN = (
    "save_and_load",
    "out_strategy_propagate1",
    "double_subgraphs",
)
"""Tests of MindSpore's where its dump does not say all: strategies from a file, the algorithm
parameter ``fully_use_devices``, and sub-graphs that are copied only after the search."""


KNOWN_TO_DIFFER = ["test_auto_parallel_out_strategy_propagation.test_out_strategy_propagate4.1"]
"""A Reshape behind a scattered sum: MindSpore leaves a free second split aside."""


def context(devices: int, **more: object) -> ParallelContext:
    given = {"devices": devices, "full_batch": True, **more}
    return ParallelContext.from_mapping(given, mode="auto_parallel", search="sharding_propagation")


def chosen(dump: Dump, devices: int) -> Choice:
    return search(analysis_of(network_of(dump), context(devices)))


MATRIX = "<Tensor[Float32], (8, 8)>"


def network(*lines: str) -> Dump:
    body = "\n".join(lines)
    text = f"""
%para1_x: {MATRIX} : [8, 8]
%para2_w: <Ref[Tensor[Float32]], (8, 8), ref_key=w, is_parameter>  :  has_default

subgraph attr:
subgraph instance: main : 0x1
subgraph @main() {{
{body}
}}
"""
    return irtool.loads(text)


def product(name: int, left: str, right: str, attributes: str = "") -> str:
    return (
        f"  %{name}(a{name}) = PrimFunc_Mul({left}, {right}) {{instance name: mul}}"
        f" primitive_attrs: {{{attributes}}}\n"
        f"      : ({MATRIX}, {MATRIX}) -> ({MATRIX})"
    )


def result(name: int) -> str:
    return f"  Return(%{name})\n      : ({MATRIX})"


@pytest.fixture(scope="module")
def layouts(samples: Path) -> Dump:
    return irtool.load(str(samples / "mlp_propagation_layouts" / "step_parallel_begin_0020.ir"))


def test_what_mindspore_gave_is_given(layouts: Dump) -> None:
    plain = plain_dump(layouts)
    choice = chosen(plain, 8)
    found = agreement(plain, layouts, choice.strategies, choice.outs)
    assert len(found.operators) == 11
    assert not found.differing


def test_a_configured_operator_tells_its_neighbours() -> None:
    dump = network(
        product(0, "%para1_x", "%para2_w"),
        product(1, "%0", "%0", "in_strategy: ((1, 4), (1, 4))"),
        product(2, "%1", "%1"),
        result(2),
    )
    choice = chosen(dump, 8)
    rows = {node.name: rows for node, rows in choice.strategies.items()}
    assert rows["a0"] == rows["a1"] == rows["a2"] == ((1, 4), (1, 4))


def test_users_of_a_given_out_strategy_take_its_numbers() -> None:
    dump = network(
        "  %0(a0) = PrimFunc_MatMul(%para1_x, %para2_w, Bool(0), Bool(0)) {instance name: mm}"
        " primitive_attrs: {in_strategy: ((4, 2), (2, 1)), out_strategy: ((8, 1))}\n"
        f"      : ({MATRIX}, {MATRIX}, <Bool, NoShape>, <Bool, NoShape>) -> ({MATRIX})",
        product(1, "%0", "%0"),
        result(1),
    )
    choice = chosen(dump, 8)
    rows = {node.name: rows for node, rows in choice.strategies.items()}
    assert rows["a1"] == ((8, 1), (8, 1))
    assert {node.name: out for node, out in choice.outs.items()} == {"a0": ((8, 1),)}


def test_a_strategy_that_breaks_a_rule_cannot_be_propagated() -> None:
    dump = network(
        product(0, "%para1_x", "%para2_w", "in_strategy: ((1, 4), (4, 1))"),
        result(0),
    )
    with pytest.raises(NotSearchable, match="Mul is illegal"):
        chosen(dump, 8)


def test_ties_behind_a_reshape_are_decided_as_mindspore_decides_them(samples: Path) -> None:
    folder = samples / "lookup_propagation"
    before = irtool.load(str(folder / "step_auto_parallel_begin_0010.ir"))
    after = irtool.load(str(folder / "step_parallel_begin_0019.ir"))
    choice = chosen(before, 64)
    found = agreement(before, after, choice.strategies, choice.outs)
    assert len(found.others) == 4
    assert not found.differing


@pytest.mark.parametrize("case", CASES)
def test_a_case_of_the_corpus_gets_what_mindspore_gave_it(corpus: Path, case: str) -> None:
    folder = corpus / "planning" / case
    before = irtool.load(str(folder / "step_auto_parallel_begin.ir"))
    after = irtool.load(str(folder / "step_parallel_begin.ir"))
    choice = chosen(before, int(case.rpartition("_")[2]))
    found = agreement(before, after, choice.strategies, choice.outs)
    assert len(found.operators) == CASES[case]
    assert not found.differing


def test_mindspores_own_tests_of_the_propagation_get_what_it_gave_them(corpus: Path) -> None:
    found = dict(_verdicts(corpus))
    assert len(found) >= 150
    assert [name for name, each in found.items() if each.differing] == KNOWN_TO_DIFFER


def _verdicts(corpus: Path) -> list[tuple[str, Agreement]]:
    found: list[tuple[str, Agreement]] = []
    for path in sorted((corpus / "verdicts").glob("*/case.json")):
        given = json.loads(path.read_text(encoding="utf-8"))["context"]
        if given.get("parallel_mode") != "auto_parallel":
            continue
        if given.get("search_mode") != "sharding_propagation":
            continue
        begin = next(path.parent.glob("step_parallel_begin*"), None)
        if begin is None or any(name in path.parent.name for name in NEVER_SHOWN):
            continue
        after = irtool.load(str(begin))
        plain = plain_dump(after)
        choice = search(analysis_of(network_of(plain), ParallelContext.from_mapping(given)))
        found.append((path.parent.name, agreement(plain, after, choice.strategies, choice.outs)))
    return found
