"""Calls and closures inlined; what cannot be inlined says so."""

from __future__ import annotations

import zlib
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest

import irtool
from irtool.ir.dump import Dump
from irtool.ir.graph import GraphParameter
from irtool.ir.whole import Whole, WholeNode
from irtool.ir.whole.inlining import inline, join


def check(whole: Whole) -> None:
    """What always holds: topological order, users the inverse of producers, nothing lost."""
    producers = [set(item.producers) for item in whole]
    for index, item in enumerate(whole):
        assert item.index == index
        assert all(producer.index < index for producer in producers[index])
        assert all(item in producers[user.index] for user in item.users)
    shown = {item.node for item in whole}
    for dump in whole.dumps:
        for node in dump.nodes():
            assert node in shown or node.is_return or node.op == "call"


CALLS = """\
subgraph @add(%para3_a, %para4_b) {
  %0(c) = Add(%para3_a, %para4_b)
      : (<Tensor[Float32], (2)>, <Tensor[Float32], (2)>) -> (<Tensor[Float32], (2)>)
  Return(%0)
      : (<Tensor[Float32], (2)>)
}

subgraph @closure parent: [subgraph @twice](%para7_k) {
  %0(d) = Sub($(@twice:out), %para7_k)
      : (<Tensor[Float32], (2)>, <Tensor[Float32], (2)>) -> (<Tensor[Float32], (2)>)
  Return(%0)
      : (<Tensor[Float32], (2)>)
}

subgraph @twice(%para5_x, %para6_y) {
  %0(out) = call @add(%para5_x, %para6_y)
      : (<Tensor[Float32], (2)>, <Tensor[Float32], (2)>) -> (<Tensor[Float32], (2)>)
  %1(f) = Partial(@closure, %para6_y)
      : (<Func, NoShape>, <Tensor[Float32], (2)>) -> (<Func, NoShape>)
  %2(g) = %1[@Partial(@closure)]()
      : () -> (<Tensor[Float32], (2)>)
  Return(%2)
      : (<Tensor[Float32], (2)>)
}

subgraph @main(%para1_x, %para2_y) {
  %0(p) = call @twice(%para1_x, %para2_y)
      : (<Tensor[Float32], (2)>, <Tensor[Float32], (2)>) -> (<Tensor[Float32], (2)>)
  %1(q) = call @twice(%0, %para2_y)
      : (<Tensor[Float32], (2)>, <Tensor[Float32], (2)>) -> (<Tensor[Float32], (2)>)
  Return(%1)
      : (<Tensor[Float32], (2)>)
}
"""


def named(source: object) -> str:
    if isinstance(source, GraphParameter):
        return source.name
    return source.op if isinstance(source, WholeNode) else str(source)


def test_calls_closures_and_free_variables_are_followed() -> None:
    whole = irtool.loads(CALLS).whole()
    check(whole)
    assert whole.kept_calls == ()
    shown = [(item.op, *map(named, item.inputs)) for item in whole if item.op != "Partial"]
    assert shown == [
        ("Add", "x", "y"),
        ("Sub", "Add", "y"),
        ("Add", "Sub", "y"),
        ("Sub", "Add", "y"),
        ("Return", "Sub"),
    ]


def test_a_node_knows_its_original_and_its_path() -> None:
    dump = irtool.loads(CALLS)
    whole = dump.whole()
    (original,) = dump.nodes(op="Add")
    first, second = whole.instances(original)
    assert [call.id for call in first.path] == ["%0", "%0"]
    assert [call.id for call in second.path] == ["%1", "%0"]
    assert first.node is second.node is original
    (parameter,) = [item for item in dump.graphs[-1].parameters if item.label == "y"]
    assert [item.op for item in whole.parameter_users(parameter, dump)].count("Sub") == 2


def test_recursion_stays_a_call() -> None:
    text = CALLS.replace("call @add(%para5_x, %para6_y)", "call @main(%para5_x, %para6_y)")
    whole = irtool.loads(text).whole()
    check(whole)
    assert {call.reason for call in whole.kept_calls} == {"recursion"}


def test_wrong_numbers_of_arguments_stay_calls() -> None:
    whole = irtool.loads(
        CALLS.replace("call @add(%para5_x, %para6_y)", "call @add(%para5_x)")
    ).whole()
    check(whole)
    assert [call.reason for call in whole.kept_calls] == ["arguments"] * 2


def test_control_flow_stays_calls(samples: Path) -> None:
    whole = irtool.load(samples / "control_flow" / "01_type_inference_0001.ir").whole()
    check(whole)
    reasons = {call.reason for call in whole.kept_calls}
    assert "control flow" in reasons
    assert reasons <= {"control flow", "recursion"}


def test_gradient_requests_stay_calls_with_their_network_in_view(samples: Path) -> None:
    dump = irtool.load(samples / "mlp_semi_auto" / "step_parallel_begin_0018.ir")
    whole = dump.whole()
    check(whole)
    requests = [call for call in whole.kept_calls if call.reason == "gradient"]
    assert [len(call.graphs) for call in requests] == [1, 0]  # the forward run, the backward run
    assert Counter(item.op for item in whole)["MatMul"] == 6  # loss and gradient


def tower(height: int, calls: int) -> str:
    """A hostile dump: each graph calls the one before ``calls`` times."""
    parts = ["subgraph @g0(%para1_x) {\n  %0(a) = Neg(%para1_x)\n  Return(%0)\n}\n"]
    for level in range(1, height):
        body = "".join(
            f"  %{i}(a) = call @g{level - 1}({f'%{i - 1}' if i else f'%para{level + 1}_x'})\n"
            for i in range(calls)
        )
        parts.append(
            f"subgraph @g{level}(%para{level + 1}_x) {{\n{body}  Return(%{calls - 1})\n}}\n"
        )
    return "\n".join(parts)


def test_the_number_of_nodes_is_bounded() -> None:
    whole = inline(irtool.loads(tower(60, 2)), limit=10_000)
    check(whole)
    assert len(whole) <= 11_000
    assert {call.reason for call in whole.kept_calls} == {"limit"}


def test_deep_nesting_is_no_problem() -> None:
    whole = irtool.loads(tower(5_000, 1)).whole()
    assert [item.op for item in whole] == ["Neg", "Return"]
    assert len(whole.nodes[0].path) == 4_999


@pytest.fixture
def stages(samples: Path) -> dict[int, Dump]:
    folder = samples / "pipeline_run"
    return {r: irtool.load(folder / f"rank_{r}" / "20_validate_0080.ir") for r in (0, 4)}


def test_stages_are_joined_where_they_send_and_receive(stages: dict[int, Dump]) -> None:
    whole = join(stages)
    check(whole)
    assert whole.unmatched == ()
    assert whole.cyclic == ()
    routes = Counter((send.source, receive.source) for send, receive in whole.transfers)
    assert routes == {(0, 4): 2, (4, 0): 2}
    for send, receive in whole.transfers:
        assert send.node.attribute("sr_tag") == receive.node.attribute("sr_tag")
        assert receive in send.users
        assert send in receive.producers


def test_without_ranks_tag_and_group_pair_them(stages: dict[int, Dump]) -> None:
    whole = join({"first": stages[0], "second": stages[4]})
    assert len(whole.transfers) == 4
    assert whole.unmatched == ()


def test_a_missing_stage_leaves_sends_unmatched(stages: dict[int, Dump]) -> None:
    whole = join({"rank_0": stages[0]})
    check(whole)
    assert [item.op for item in whole.unmatched] == ["Send", "Receive", "Send", "Receive"]


@pytest.mark.slow
def test_corpus_is_inlined_without_loss(corpus: Path, load_once: Callable[[Path], Dump]) -> None:
    reasons: Counter[str] = Counter()
    for folder in ("verdicts", "versions", "planning"):
        for path in sorted((corpus / folder).rglob("*.ir")):
            # Hundreds of passes of one compilation differ little: every fourth file will do.
            if "actor_set" not in str(path) and zlib.crc32(path.name.encode()) % 4 == 0:
                whole = load_once(path).whole()
                check(whole)
                reasons.update(call.reason for call in whole.kept_calls)
    assert set(reasons) <= {"gradient", "control flow", "recursion", "unknown function"}
