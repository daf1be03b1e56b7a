"""Lines to paste: one a primitive, comments where a line could not say it."""

from __future__ import annotations

from pathlib import Path

import pytest

import irtool
from irtool.cluster.machine import default_machine
from irtool.planning.files.shard_lines import (
    cell_path,
    decision_lines,
    function_lines,
    shard_lines,
    sharded_function,
)
from irtool.planning.plans.decisions import Decisions
from irtool.planning.plans.plan import Plan, plan
from irtool.sharding.network.context import ParallelContext

SAMPLES = Path(__file__).parents[3] / "samples"
CONTEXT = ParallelContext(
    devices=8, mode="auto_parallel", search="sharding_propagation", full_batch=True
)


@pytest.fixture(scope="module")
def made() -> Plan:
    dump = irtool.load(str(SAMPLES / "mlp_loop" / "step_parallel_begin_0019.ir"))
    first, second, last = (node for node in dump.nodes() if node.op == "MatMul")
    pinned = {
        first: ((8, 1), (1, 1)), second: ((1, 8), (1, 8)), last: ((8, 1), (1, 1)),
        **{node: ((8, 1),) for node in dump.nodes() if node.op == "ReLU"},
    }  # fmt: skip
    return plan(dump, CONTEXT, default_machine(), pinned=pinned)


@pytest.mark.parametrize(
    ("scope", "path"),
    [
        ("Default", "net"),
        ("Default/network-GPT/blocks-CellList/0-Block", "net.network.blocks[0]"),
        ("Default/network-WithLossCell/_backbone-MLP", "net.network._backbone"),
        ("Gradients/Default/network-GPT", ""),
        ("Default/no cell", ""),
        ("", ""),
    ],
)
def test_a_scope_is_the_way_to_a_cell(scope: str, path: str) -> None:
    assert cell_path(scope) == path


def test_a_primitive_with_one_strategy_has_one_line(made: Plan) -> None:
    lines = list(shard_lines(made))
    assert lines.count("net.network._backbone.relu.shard(in_strategy=((8, 1),))") == 1


def test_a_primitive_with_two_strategies_has_none(made: Plan) -> None:
    lines = [line for line in shard_lines(made) if "MatMul" in line]
    assert len(lines) == 3
    assert all(line.startswith("# /home/user/train.py:") for line in lines)
    assert all("primitive of its own" in line for line in lines)


def test_a_region_is_a_function_of_what_comes_in(made: Plan) -> None:
    region = frozenset(
        node for node in made.dump.nodes() if node.op in ("MatMul", "BiasAdd", "ReLU")
    )
    found = sharded_function(made, region)
    assert found.in_strategy == ((8, 1),)
    assert found.out_strategy == ((8, 1),)
    assert set(found.weights) == {
        "layer0.weight", "layer0.bias", "layer1.weight", "layer1.bias", "out.weight",
    }  # fmt: skip
    text = "\n".join(function_lines(found))
    assert "in_strategy=((8, 1),)" in text
    compile(text, "region", "exec")


def test_weights_of_a_region_are_named_though_they_are_loaded_inside(made: Plan) -> None:
    region = frozenset(
        node for node in made.dump.nodes() if node.op in ("MatMul", "Load") and node.scope
    )
    found = sharded_function(made, region)
    assert found.weights
    assert all(f"# {name} lies as" in "\n".join(function_lines(found)) for name in found.weights)
    assert not any(text.startswith("Load") for text in found.inputs)


# -- what was decided beside strategies ------------------------------------------------------------


@pytest.fixture(scope="module")
def decided() -> Decisions:
    dump = irtool.load(str(SAMPLES / "mlp_loop" / "step_parallel_begin_0019.ir"))
    again = tuple(node for node in dump.nodes() if node.op in ("ReLU", "Sub"))
    return Decisions(("ws.0",), ("ws.1", "bs.0"), again)


def test_weights_that_stay_whole_are_set_in_a_loop(decided: Decisions) -> None:
    class Weight:
        def __init__(self, name: str) -> None:
            self.name = name
            self.parallel_optimizer = True

    class Net:
        weights = tuple(map(Weight, ("ws.0", "ws.1", "bs.0")))

        def get_parameters(self) -> tuple[Weight, ...]:
            return self.weights

    lines = list(decision_lines(decided))
    exec("\n".join(lines[: lines.index("")]), {"net": Net()})
    assert [weight.parallel_optimizer for weight in Net.weights] == [True, False, False]


def test_a_primitive_runs_again_once_for_all_its_uses(decided: Decisions) -> None:
    lines = list(decision_lines(decided))
    assert lines.count("net.network._backbone.relu.recompute()") == 1
    assert sum("Sub().recompute()" in line for line in lines) == 1
    assert all(line.startswith("#") for line in lines if "Sub()" in line)


def test_nothing_decided_is_nothing_said() -> None:
    assert not list(decision_lines(Decisions((), (), ())))
