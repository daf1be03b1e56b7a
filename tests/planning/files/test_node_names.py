"""The numbers of operators: those of a file that MindSpore saved, or none."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import irtool
from irtool.cluster.machine import default_machine
from irtool.ir.dump import Dump
from irtool.ir.graph import Node
from irtool.planning.files.node_names import Naming
from irtool.planning.files.strategy_files import NotExpressible, operator_file
from irtool.planning.plans.plan import plan
from irtool.sharding.check import check
from irtool.sharding.network.context import ParallelContext
from irtool.sharding.network.graphs import network_of
from tests.sharding.network.small import Small, Value, tensor

SAMPLES = Path(__file__).parents[3] / "samples"
LOOP = SAMPLES / "mlp_loop" / "step_parallel_begin_0019.ir"
CONTEXT = ParallelContext(
    devices=8, mode="auto_parallel", search="sharding_propagation", full_batch=True
)


@pytest.fixture(scope="module")
def loop() -> Dump:
    return irtool.load(str(LOOP))


def ranked(dump: Dump, op: str) -> tuple[tuple[Node, ...], ...]:
    """Which operators may bear each number."""
    nodes = [node for node in dump.nodes() if node.op == op]
    return Naming(network_of(dump)).ranked(nodes)


def test_iterations_of_a_loop_count_from_the_last(loop: Dump) -> None:
    found = [node.name or "" for (node,) in ranked(loop, "MatMul")]
    numbers = [int(name.removeprefix("CNode_")) for name in found]
    assert numbers == sorted(numbers)
    assert found == list(reversed([n.name for n in loop.nodes() if n.op == "MatMul"]))


def test_nodes_with_the_name_of_a_variable_count_with_their_iteration(loop: Dump) -> None:
    """Both ReLU are called ``x``; what stands beside them in their iteration has numbers."""
    nodes = [node for node in loop.nodes() if node.op == "ReLU"]
    assert [node.name for node in nodes] == ["x", "x"]
    assert ranked(loop, "ReLU") == tuple((node,) for node in reversed(nodes))


def test_every_strategy_has_the_key_that_mindspore_saved_it_under(loop: Dump) -> None:
    saved = json.loads((LOOP.parent / "saved.json").read_text())["parallel_strategy_item"]
    naming = Naming(network_of(loop))
    groups: dict[str, list[irtool.Node]] = {}
    strategies = {item.node: item.strategy for item in check(loop, CONTEXT).operators}
    for node in strategies:
        groups.setdefault(f"{node.scope}/{node.op}", []).append(node)
    seen = set[str]()
    for prefix, nodes in groups.items():
        for number, (node,) in enumerate(naming.ranked(nodes)):
            key = f"{prefix}-op{number}"
            seen.add(key)
            rows = [list(row) for row in strategies[node] or ()]
            assert rows == saved[key]["parallel_strategy"], key
    assert seen == set(saved)


def test_a_number_counts_behind_the_names_of_variables_too(loop: Dump) -> None:
    text = irtool.dumps(loop)
    for node in loop.nodes():
        if node.op == "MatMul":
            text = text.replace(f"({node.name})", f"({node.name}$x$y)")
    found = ranked(irtool.loads(text), "MatMul")
    names = [(node.name or "").partition("$")[0] for (node,) in found]
    assert names == [node.name for (node,) in ranked(loop, "MatMul")]


SQUARE = (64, 64)


def two_branches(
    first: tuple[int, int], second: tuple[int, int], *, then: str = "Exp", between: str = ""
) -> Dump:
    """Two ReLU called ``x``, each between a product and another operator that have numbers."""
    net = Small()
    main = net.graph("main")
    x, names = net.input("x", SQUARE), dict[str, str]()
    ends: list[Value] = []
    for (low, high), behind in ((first, "Exp"), (second, then)):
        weight = net.weight(f"w{low}", SQUARE)
        value = main.product(x, weight, SQUARE)
        names[f"(v{main.count - 1})"] = f"(CNode_{low})"
        if between:
            value = main.op(between, value, SQUARE)
            names[f"(v{main.count - 1})"] = "(y)"
        value = main.op("ReLU", value, SQUARE)
        names[f"(v{main.count - 1})"] = "(x)"
        ends.append(main.op(behind, value, SQUARE))
        names[f"(v{main.count - 1})"] = f"(CNode_{high})"
    main.result = main.add("PrimFunc_Add", ends, tensor(SQUARE))
    text = irtool.dumps(net.dump())
    for name, number in names.items():
        text = text.replace(name, number)
    return irtool.loads(text)


@pytest.mark.parametrize("between", ["", "Tanh"])
@pytest.mark.parametrize(
    ("first", "second", "order"),
    [
        ((10, 12), (20, 22), (0, 1)),
        ((20, 22), (10, 12), (1, 0)),
        ((10, 32), (20, 22), None),  # what is before and what is behind say otherwise
        ((10, 22), (20, 12), None),
    ],
)
def test_without_source_lines_numbers_of_neighbours_tell(
    first: tuple[int, int], second: tuple[int, int], order: tuple[int, int] | None, between: str
) -> None:
    dump = two_branches(first, second, between=between)
    relus = [node for node in dump.nodes() if node.op == "ReLU"]
    expected = (tuple(relus),) * 2 if order is None else tuple((relus[at],) for at in order)
    assert ranked(dump, "ReLU") == expected


def test_neighbours_that_are_other_operators_do_not_tell() -> None:
    relus = ranked(two_branches((10, 12), (20, 22), then="Sqrt"), "ReLU")
    assert [len(each) for each in relus] == [2, 2]


@pytest.mark.parametrize(("first", "second"), [((10, 12), (10, 22)), ((10, 12), (9, 12))])
def test_one_neighbour_of_both_does_not_tell(
    first: tuple[int, int], second: tuple[int, int]
) -> None:
    relus = ranked(two_branches(first, second), "ReLU")
    assert [len(each) for each in relus] == [2, 2]


def test_without_source_lines_an_order_is_not_guessed() -> None:
    dump = irtool.load(str(SAMPLES / "mlp_recursive_search" / "step_parallel_begin_0019.ir"))
    relus = tuple(node for node in dump.nodes() if node.op == "ReLU")
    assert ranked(dump, "ReLU") == (relus,) * len(relus)


def test_ranks_of_a_saved_file_tell_operators_apart() -> None:
    dump = irtool.load(str(SAMPLES / "mlp_recursive_search" / "step_parallel_begin_0019.ir"))
    first, *others = (node for node in dump.nodes() if node.op == "ReLU")
    naming = Naming(network_of(dump))
    forms = {first: (4,), **dict.fromkeys(others, (2,))}
    rest = tuple(others)
    found = naming.ranked([first, *others], forms, [(2,), (4,), *[(2,)] * (len(others) - 1)])
    assert found == (rest, (first,), *[rest] * (len(others) - 1))
    with pytest.raises(ValueError, match="other operators"):
        naming.ranked([first, *others], forms, [(4,)] * (len(others) + 1))


# -- the file ------------------------------------------------------------------------------------


def test_the_file_has_the_keys_of_the_saved_one(loop: Dump) -> None:
    saved = json.loads((LOOP.parent / "saved.json").read_text())
    found = operator_file(plan(loop, CONTEXT, default_machine()), saved)
    entries = found["parallel_strategy_item"]
    assert isinstance(entries, dict)
    assert set(entries) == set(saved["parallel_strategy_item"])


def test_keys_that_the_saved_file_lacks_are_refused(loop: Dump) -> None:
    saved = json.loads((LOOP.parent / "saved.json").read_text())
    saved["parallel_strategy_item"].popitem()
    with pytest.raises(NotExpressible, match="does not know"):
        operator_file(plan(loop, CONTEXT, default_machine()), saved)


def test_the_dataset_has_an_entry_even_before_mindspore_put_it_in() -> None:
    """The dump before the search has no ``_VirtualDataset`` yet, but the file must name it."""
    dump = irtool.load(str(SAMPLES / "mlp_recursive_search" / "step_auto_parallel_begin_0010.ir"))
    relus = [node for node in dump.nodes() if node.op == "ReLU"]
    made = plan(dump, CONTEXT, default_machine(), pinned=dict.fromkeys(relus, ((8, 1),)))
    entries = operator_file(made)["parallel_strategy_item"]
    assert isinstance(entries, dict)
    assert entries["Default/_VirtualDataset-op0"]["parallel_strategy"] == [[1, 1], [1, 1]]
