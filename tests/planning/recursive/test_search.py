"""The double recursive search chooses what MindSpore chose, operator by operator."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path

import pytest

import irtool
from irtool.ir.dump import Dump
from irtool.ir.graph import Graph, Item, Node
from irtool.planning.plans.agreement import Agreement, agreement
from irtool.planning.recursive.cut_costs import ROW_COEFFICIENT
from irtool.planning.recursive.search import Choice, search
from irtool.sharding.network.analysis import analysis_of
from irtool.sharding.network.context import ParallelContext
from irtool.sharding.network.graphs import network_of

CASES = {
    "gpt_L2_B64_rec_512": 15, "gpt_L2_B8_rec_64": 15, "gpt_L2_B8_rec_8": 0,
    "gpt_L8_B64_rec_8": 0, "gpt_L8_B8_rec_64": 57, "mlp_rec_64": 9, "mlp_rec_8": 0,
    "resnet_rec_8": 0, "widedeep_rec_8": 0,
}  # fmt: skip
"""By case, how many operators MindSpore splits otherwise than along the batch."""

COEFFICIENTS = {
    "matmul_seq_parallel": 1024.0,
    "flash_attention_bnsd": 2.0**-10,
    "sapp_flash_attention": 1.0,
}
"""``rp_matmul_mem_coef`` that MindSpore's own tests set; a dump does not show it."""


def context(devices: int, **more: object) -> ParallelContext:
    given = {"devices": devices, "full_batch": True, **more}
    return ParallelContext.from_mapping(given, mode="auto_parallel", search="recursive_programming")


def chosen(dump: Dump, devices: int, **more: object) -> Choice:
    return search(analysis_of(network_of(dump), context(devices, **more)))


def without_strategies(dump: Dump) -> Dump:
    def item_of(item: Item | Graph) -> Item | Graph:
        if not isinstance(item, Graph):
            return item
        items = tuple(
            replace(each, strategy=None, graph=None) if isinstance(each, Node) else each
            for each in item.items
        )
        return replace(item, items=items, dump=None)

    return replace(dump, items=tuple(item_of(item) for item in dump.items))


def test_the_sample_gets_the_strategies_that_mindspore_gave_it(samples: Path) -> None:
    folder = samples / "mlp_recursive_search"
    before = irtool.load(str(folder / "step_auto_parallel_begin_0010.ir"))
    after = irtool.load(str(folder / "step_parallel_begin_0019.ir"))
    choice = chosen(before, 8)
    found = agreement(before, after, choice.strategies, choice.outs)
    assert found.operators
    assert not found.differing


def test_a_size_that_is_not_known_counts_minus_one(samples: Path) -> None:
    folder = samples / "mlp_recursive_dynamic"
    before = irtool.load(str(folder / "step_auto_parallel_begin_0010.ir"))
    after = irtool.load(str(folder / "step_parallel_begin_0019.ir"))
    choice = chosen(before, 64)
    found = agreement(before, after, choice.strategies, choice.outs)
    assert len(found.others) == 3
    assert not found.differing


def test_the_dataset_that_mindspore_inserts_counts(samples: Path) -> None:
    """The dump before the search has no ``_VirtualDataset``; the choice is that with one."""
    folder = samples / "mlp_recursive_search"
    before = irtool.load(str(folder / "step_auto_parallel_begin_0010.ir"))
    after = irtool.load(str(folder / "step_parallel_begin_0019.ir"))
    first = chosen(before, 8)
    second = chosen(without_strategies(after), 8)
    named = {(node.name, node.op): rows for node, rows in first.strategies.items()}
    others = {(node.name, node.op): rows for node, rows in second.strategies.items()}
    others = {key: rows for key, rows in others.items() if key[1] != "_VirtualDataset"}
    assert named == others


def test_casts_and_reshapes_keep_nothing(samples: Path) -> None:
    before = irtool.load(str(samples / "gpt" / "step_parallel_begin_0018.ir"))
    choice = chosen(without_strategies(before), 8)
    assert not {node.op for node in choice.strategies} & {"Cast", "Reshape"}


@pytest.mark.parametrize("case", CASES)
def test_a_case_of_the_corpus_gets_what_mindspore_gave_it(corpus: Path, case: str) -> None:
    folder = corpus / "planning" / case
    before = irtool.load(str(folder / "step_auto_parallel_begin.ir"))
    after = irtool.load(str(folder / "step_parallel_begin.ir"))
    choice = chosen(before, int(case.rpartition("_")[2]))
    found = agreement(before, after, choice.strategies, choice.outs)
    assert len(found.others) == CASES[case]
    assert not found.differing


def test_mindspores_own_tests_of_the_search_get_what_it_gave_them(corpus: Path) -> None:
    found = dict(_verdicts(corpus))
    assert len(found) >= 28
    assert {name: each.differing for name, each in found.items() if each.differing} == {}


def _verdicts(corpus: Path) -> list[tuple[str, Agreement]]:
    found: list[tuple[str, Agreement]] = []
    for path in sorted((corpus / "verdicts").glob("*/case.json")):
        text = path.read_text(encoding="utf-8")
        if "auto_parallel" not in text or "recursive_programming" not in text:
            continue
        given = json.loads(text)["context"]
        if given["parallel_mode"] != "auto_parallel":
            continue
        if given["search_mode"] != "recursive_programming":
            continue
        after = irtool.load(str(next(path.parent.glob("step_parallel_begin*"))))
        plain = without_strategies(after)
        coefficient = next(
            (number for key, number in COEFFICIENTS.items() if re.search(key, path.parent.name)),
            ROW_COEFFICIENT,
        )
        analysis = analysis_of(network_of(plain), ParallelContext.from_mapping(given))
        choice = search(analysis, row_coefficient=coefficient)
        found.append((path.parent.name, agreement(plain, after, choice.strategies, choice.outs)))
    return found


def test_a_given_strategy_is_kept_and_seen_by_its_neighbours(samples: Path) -> None:
    """What ``MS_INTERFERED_SAPP=1`` does with configured operators."""
    folder = samples / "mlp_recursive_search"
    before = irtool.load(str(folder / "step_auto_parallel_begin_0010.ir"))
    product = next(node for node in before.nodes() if node.op == "MatMul")
    rows = ((1, 1), (8, 1))
    analysis = analysis_of(network_of(before), context(8))
    free = search(analysis)
    choice = search(analysis, {product: rows})
    assert choice.strategies[product] == rows
    assert free.strategies[product] != rows
