"""COM: collectives and their groups."""

from __future__ import annotations

from pathlib import Path

import pytest

from irtool.cluster.machine import built_in
from irtool.linting.engine import Linted
from irtool.linting.facts import CompilationFacts
from tests.linting.cases import compilation, dump_of, lint, lint_ranks, messages, rule, the_one


def all_reduce(ranks: str) -> str:
    return dump_of(f"%0(a) = PrimFunc_AllReduce(%para1_x) primitive_attrs: {{rank_list: {ranks}}}")


def test_what_mindspore_puts_in_for_one_rank_is_not_told() -> None:
    text = dump_of(
        "%0(a) = PrimFunc_AllReduce(%para1_x) {instance name: forward_op_12} "
        "primitive_attrs: {rank_list: (0)}"
    )
    assert not lint(rule("COM001"), compilation({"validate": text})).findings


def test_a_collective_over_one_rank_is_named() -> None:
    found = the_one(lint(rule("COM001"), compilation({"validate": all_reduce("(0)")})))
    assert (found.line, found.node, found.severity) == (6, "%0", "warning")


def test_a_collective_over_two_ranks_is_fine() -> None:
    assert not lint(rule("COM001"), compilation({"validate": all_reduce("(0, 1)")})).findings


def pipeline(samples: Path, rank: int) -> Path:
    return samples / f"pipeline_run/rank_{rank}/20_validate_0080.ir"


def test_stages_that_send_what_the_others_receive_are_fine(samples: Path) -> None:
    ranks = {n: compilation({"validate": pipeline(samples, n)}, rank=n) for n in (0, 4)}
    assert not lint_ranks(rule("COM007"), ranks).findings


def test_a_send_that_nobody_receives_is_named(samples: Path) -> None:
    text = pipeline(samples, 4).read_text(encoding="utf-8")
    start = text.index("Receive(")
    cut = text[:start] + "Identity(" + text[start + len("Receive(") :]
    ranks = {
        0: compilation({"validate": pipeline(samples, 0)}, rank=0),
        4: compilation({"validate": cut}, rank=4),
    }
    found = the_one(lint_ranks(rule("COM007"), ranks))
    assert found.message == "rank 0 sends 2 times to rank 4, which receives once"
    assert found.op == "Send"
    assert found.ranks == (0,)


def test_one_rank_alone_says_nothing_of_sends(samples: Path) -> None:
    linted = lint_ranks(rule("COM007"), {0: compilation({"validate": pipeline(samples, 0)})})
    assert messages(linted) == []
    assert [(each.code, each.need) for each in linted.silenced] == [("COM007", "ranks")]


# -- COM002 --------------------------------------------------------------------------------------


def collective(number: int, op: str, source: str, more: str, shape: str = "8, 16") -> str:
    return (
        f"%{number}(a{number}) = PrimFunc_{op}({source}) primitive_attrs: {{{more}}}\n"
        f"      : (<Tensor[Float32], ({shape})>) -> (<Tensor[Float32], ({shape})>)"
    )


PAIR = 'group: "2-5004544844489628105", op: "sum", rank_list: (0, 1)'


def test_a_sum_right_behind_a_sum_over_the_same_ranks() -> None:
    text = dump_of(
        collective(0, "AllReduce", "%para1_x", PAIR), collective(1, "AllReduce", "%0", PAIR)
    )
    found = the_one(lint(rule("COM002"), compilation({"validate": text})))
    assert "which multiplies the sum" in found.message
    assert (found.node, found.related[0].node) == ("%1", "%0")


def test_what_was_gathered_is_scattered_again() -> None:
    text = dump_of(
        collective(0, "AllGather", "%para1_x", PAIR), collective(1, "ReduceScatter", "%0", PAIR)
    )
    assert len(lint(rule("COM002"), compilation({"validate": text})).findings) == 1


def test_other_pairs_of_collectives_are_fine() -> None:
    other = PAIR.replace("(0, 1)", "(0, 4)").replace("2-5004544844489628105", "b")
    for first, second in (
        (collective(0, "AllReduce", "%para1_x", PAIR), collective(1, "AllReduce", "%0", other)),
        (collective(0, "ReduceScatter", "%para1_x", PAIR), collective(1, "AllGather", "%0", PAIR)),
    ):
        facts = compilation({"validate": dump_of(first, second)})
        assert not lint(rule("COM002"), facts).findings


# -- COM003 --------------------------------------------------------------------------------------


def gathered(kept: str) -> str:
    return dump_of(
        "%0(g) = PrimFunc_AllGather(%para1_x) primitive_attrs: {rank_list: (0, 1)}",
        "      : (<Tensor[Float32], (8, 16)>) -> (<Tensor[Float32], (16, 16)>)",
        "%1(s) = PrimFunc_Split(%0, I64(0), I64(2))",
        "      : (<Tensor[Float32], (16, 16)>, <Int64, NoShape>, <Int64, NoShape>)"
        " -> (<Tuple[Tensor[Float32]*2], TupleShape((8, 16), (8, 16))>)",
        "%2(a) = TupleGetItem(%1, I64(0))",
        "%3(b) = TupleGetItem(%1, I64(1))",
        "%4(t) = MakeTuple(%2, %3)",
        "%5(c) = PrimFunc_Concat(%4, I64(1))",
        "      : (<Tuple[Tensor[Float32]*2], TupleShape((8, 16), (8, 16))>, <Int64, NoShape>)"
        " -> (<Tensor[Float32], (8, 32)>)",
        "%6(k) = PrimFunc_StridedSlice(%5)",
        f"      : (<Tensor[Float32], (8, 32)>) -> (<Tensor[Float32], ({kept})>)",
    )


def test_a_gather_most_of_which_is_cut_off() -> None:
    facts = compilation({"validate": gathered("4, 32")})
    found = the_one(lint(rule("COM003", least_bytes=1024), facts))
    assert (found.node, found.related[0].node) == ("%0", "%6")
    assert not lint(rule("COM003"), facts).findings


def test_a_gather_that_is_kept_is_fine() -> None:
    facts = compilation({"validate": gathered("8, 32")})
    assert not lint(rule("COM003", least_bytes=1024), facts).findings


# -- COM004, COM005 ------------------------------------------------------------------------------


def many(count: int, fusion: int, name: str, shape: str = "512, 1024") -> str:
    return dump_of(
        *(
            f"%{n}(a{n}) = PrimFunc_AllReduce(%para1_x) {{instance name: {name}}} "
            f'primitive_attrs: {{group: "hccl_world_group", fusion: I64({fusion}), op: "sum"}}\n'
            f"      : (<Tensor[Float32], ({shape})>) -> (<Tensor[Float32], ({shape})>)"
            for n in range(count)
        )
    )


def test_gradients_that_are_not_fused() -> None:
    text = many(20, 0, "grad_mirror_MirrorOperator")
    found = the_one(lint(rule("COM004"), compilation({"validate": text})))
    assert found.message == "20 gradients (40.0 MiB) of one group are reduced one by one"


@pytest.mark.parametrize(
    ("setting", "told"),
    [
        ({"openstate": False}, True),
        ("{'openstate': False}", True),
        ({"openstate": True}, False),
        (None, False),
    ],
)
def test_fusion_that_the_context_switches_off(setting: object, told: bool) -> None:
    text = many(20, 1, "grad_mirror_MirrorOperator", "512, 64")
    context = {"device_num": 8, "comm_fusion": setting}
    facts = compilation({"validate": text}, context)
    assert bool(lint(rule("COM004"), facts).findings) == told


def test_fused_few_and_forward_reductions_are_fine() -> None:
    for text in (
        many(20, 1, "grad_mirror_MirrorOperator"),
        many(4, 0, "grad_mirror_MirrorOperator"),
        many(20, 0, "forward_op_11"),
    ):
        assert not lint(rule("COM004"), compilation({"validate": text})).findings


def test_many_tiny_collectives() -> None:
    facts = compilation({"validate": many(40, 0, "norm", "4")})
    found = the_one(lint(rule("COM005"), facts))
    assert found.message == (
        "40 times AllReduce of at most 16 B in a step, 0 of them in the backward pass"
    )
    for text in (many(10, 0, "norm", "4"), many(40, 1, "norm", "4"), many(40, 0, "norm")):
        assert not lint(rule("COM005"), compilation({"validate": text})).findings


# -- COM006 --------------------------------------------------------------------------------------


def test_a_group_that_would_fit_into_a_node() -> None:
    reduction = "{instance name: forward_op_1544267}"

    def facts(ranks: str, name: str = reduction) -> CompilationFacts:
        text = (
            f"%0(a) = PrimFunc_AllReduce(%para1_x) {name} primitive_attrs: {{rank_list: {ranks}}}\n"
            "      : (<Tensor[Float32], (4096, 8192)>) -> (<Tensor[Float32], (4096, 8192)>)"
        )
        return compilation({"validate": dump_of(text)}, machine=built_in("ascend_910b"))

    found = the_one(lint(rule("COM006"), facts("(0, 8)")))
    assert found.message == (
        "2 ranks on 2 nodes exchange 128.0 MiB a step in 1 collective; a node holds 8 devices"
    )
    assert not lint(rule("COM006"), facts("(0, 1)")).findings
    mirror = "{instance name: grad_mirror_MirrorOperator}"
    assert not lint(rule("COM006"), facts("(0, 8)", mirror)).findings
    nobody_says = compilation({"validate": dump_of("%0(a) = PrimFunc_ReLU(%para1_x)")})
    assert [each.need for each in lint(rule("COM006"), nobody_says).silenced] == ["machine"]


# -- COM008 --------------------------------------------------------------------------------------


def two_groups(*order: str) -> str:
    """A rank that reduces over each group in turn, the second after the first."""
    return dump_of(
        *(
            collective(
                n,
                "AllReduce",
                f"%{n - 1}" if n else "%para1_x",
                f'group: "{name}", op: "sum", rank_list: (0, 1)',
            )
            for n, name in enumerate(order)
        )
    )


def played(*texts: str) -> Linted:
    ranks = {n: compilation({"validate": text}, rank=n) for n, text in enumerate(texts)}
    return lint_ranks(rule("COM008"), ranks)


def test_two_groups_in_opposite_order_wait_for_each_other() -> None:
    found = played(two_groups("a", "b"), two_groups("b", "a")).findings
    assert any("wait" in each.message for each in found)
    assert {each.severity for each in found} == {"error"}


def test_groups_in_the_same_order_are_fine() -> None:
    assert not played(two_groups("a", "b"), two_groups("a", "b")).findings


def test_members_that_disagree_on_the_shape() -> None:
    text = two_groups("a")
    found = played(text, text.replace("8, 16", "4, 16")).findings
    assert len(found) == 1


def test_real_stages_do_not_hang(samples: Path) -> None:
    ranks = {n: compilation({"validate": pipeline(samples, n)}, rank=n) for n in (0, 4)}
    assert not lint_ranks(rule("COM008"), ranks).findings
