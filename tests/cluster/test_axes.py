"""Which axis a group of ranks stands for, on eight ranks: data every second, tensor in pairs."""

from __future__ import annotations

import pytest

import irtool
from irtool.cluster.axes import Axis, axes, axis_of_ranks, sums_product
from irtool.ir.collectives import Collective, collectives

DATA = (frozenset({0, 2, 4, 6}), frozenset({1, 3, 5, 7}))
TENSOR = (frozenset({0, 1}),)


@pytest.mark.parametrize(
    ("ranks", "axis"),
    [
        ((0, 1), "tensor"),
        ((2, 3), "tensor"),  # meets no data group in two ranks
        ((0, 2, 4, 6), "data"),
        ((2, 6), "data"),  # inside one
        ((0, 1, 2), "data and tensor"),  # two ranks of a data group, and the tensor group
        ((0, 2, 5), "unknown"),  # two ranks of a data group, one beside, no tensor group
        (range(8), "data and tensor"),
    ],
)
def test_ranks_tell_the_axis(ranks: tuple[int, ...], axis: Axis) -> None:
    assert axis_of_ranks(ranks, DATA, TENSOR) == axis


def test_without_products_a_group_around_a_whole_data_group_holds_both() -> None:
    assert axis_of_ranks((0, 1, 2, 4, 6), DATA, ()) == "data and tensor"
    assert axis_of_ranks((0, 1, 2, 4), DATA, ()) == "unknown"
    assert axis_of_ranks((0, 1), DATA, ()) == "tensor"


def test_without_any_evidence_nothing_is_known() -> None:
    assert axis_of_ranks((0, 1), (), ()) == "unknown"
    assert axis_of_ranks((0, 1), (), (frozenset({4, 5}),)) == "tensor"


def test_of_groups_inside_one_another_the_smallest_is_data() -> None:
    """Some weights are replicated on all ranks: their sums join both axes."""
    everybody = frozenset(range(8))
    assert axis_of_ranks((0, 1), (*DATA, everybody), ()) == "tensor"
    assert axis_of_ranks((0, 1), (everybody,), ()) == "data"


def test_a_group_that_is_both_is_tensor_only_if_another_is_data() -> None:
    pair = frozenset({0, 1})
    assert axis_of_ranks((0, 1), (pair,), (pair,)) == "unknown"
    assert axis_of_ranks((0, 1), (pair, *DATA), (pair,)) == "tensor"


@pytest.mark.parametrize(
    ("op", "sums"),
    [
        ("MatMul", True),
        ("BatchMatMul", True),
        ("Conv2D", True),
        ("Gather", True),  # rows of a table that is split
        ("ReduceSum", False),
        ("ReLU", False),
        ("TopK", False),  # looks nothing up in a table
    ],
)
def test_what_contracts_a_split_dimension(op: str, sums: bool) -> None:
    assert sums_product(op) is sums


# -- collectives of a dump -------------------------------------------------------------------------

HEAD = """\
# IR entry: @net
%para1_x: <Tensor[Float32], (4, 4)> : [4, 4]
%para2_w: <Ref[Tensor[Float32]], (4, 4), ref_key=w>  :  has_default
%para3_e: <Ref[Tensor[Float32]], (8, 4, 4), ref_key=e>  :  has_default
subgraph @net() {
"""
T = "<Tensor[Float32], (4, 4)>"


def line(
    number: int,
    op: str,
    *inputs: str,
    name: str = "",
    ranks: tuple[int, ...] = (),
    primal: str = "",
    scope: str = "Default",
) -> str:
    """One statement; a collective lists its ranks."""
    text = f"  %{number}(v{number}) = {op}({', '.join(inputs)})"
    if name:
        text += f" {{instance name: {name}}}"
    if ranks:
        text += f' primitive_attrs: {{group: "{len(ranks)}-{ranks}", op: "sum", '
        text += f"rank_list: ({', '.join(map(str, ranks))})}}"
    if primal:
        text += f" cnode_primal_attrs: {{{primal}}}"
    types = ", ".join([T] * len(inputs))
    return f"{text}\n      : ({types}) -> ({T})\n      # Fullname with scope: ({scope}/{op}-op0)\n"


def found_in(*lines: str) -> dict[str, Axis]:
    """Axes by the numbers of statements, however the collectives are ordered."""
    text = HEAD + "".join(lines) + f"  Return(%{len(lines) - 1})\n}}\n"
    found: list[Collective] = list(collectives(irtool.load(text.encode()), 8))
    forwards = {item.node.id: axis for item, axis in _by_item(found)}
    backwards = {item.node.id: axis for item, axis in _by_item(found[::-1])}
    assert forwards == backwards
    return forwards


def _by_item(found: list[Collective]) -> list[tuple[Collective, Axis]]:
    axis_of = axes(found)
    return [(item, axis_of[item.node]) for item in found]


def test_causes_that_are_certain_decide_whatever_the_ranks() -> None:
    names = {
        "grad_mirror_MirrorOperator": "data",
        "parallel_optimizer_allgather": "optimizer",
        "PARALLEL_RESULT_BROADCAST_0": "pipeline",
    }
    for name, axis in names.items():
        found = found_in(line(0, "AllReduce", "%para1_x", name=name, ranks=(0, 1)))
        assert found == {"%0": axis}


@pytest.mark.parametrize("name", ["grad_mirror_MirrorOperator", "grad_parallel_optimizer_x"])
def test_gradient_sums_and_cut_optimizers_tell_which_ranks_hold_copies(name: str) -> None:
    """Ranks 0 and 2 hold copies, so that another group of them is of data, too."""
    shared = line(0, "ReduceScatter", "%para1_x", name=name, ranks=(0, 2))
    shared = shared.replace(
        "grad_parallel_optimizer_x", "parallel_optimizer_allgather_not_recompute"
    )
    alike, apart = (line(n, "AllReduce", "%0", ranks=r) for n, r in ((1, (0, 2)), (2, (0, 1))))
    found = found_in(shared, alike, apart)
    assert (found["%1"], found["%2"]) == ("data", "tensor")


def test_what_a_product_leaves_is_tensor_through_operators_that_keep_the_sum() -> None:
    product = line(0, "MatMul", "%para1_x", "%para2_w")
    for op, axis in {"Cast": "tensor", "Mul": "tensor", "ReLU": "data"}.items():
        found = found_in(
            product,
            line(1, op, "%0"),
            line(2, "AllReduce", "%1", name="forward_op_123456789012", ranks=(0, 1)),
            line(3, "AllReduce", "%2", name="grad_mirror_MirrorOperator", ranks=(0, 1, 2, 3)),
        )
        assert found["%2"] == axis, op


def test_a_gradient_follows_its_forward_collective_and_not_its_ranks() -> None:
    """By its ranks alone the second would be neither: (0, 1) shares gradients and sums products."""
    forward = (
        line(0, "MatMul", "%para1_x", "%para2_w"),
        line(1, "AllReduce", "%0", name="forward_op_123456789012", ranks=(0, 1),
             primal='unique_id: "7"'),
        line(2, "AllReduce", "%1", name="grad_mirror_MirrorOperator", ranks=(0, 1)),
    )  # fmt: skip
    gradient = "grad_redistribution_op0"
    tied = line(3, "AllGather", "%2", name=gradient, ranks=(0, 1), primal='forward_unique_id: "7"')
    alone = line(3, "AllGather", "%2", name=gradient, ranks=(0, 1), primal='forward_unique_id: "8"')
    assert found_in(*forward, tied)["%3"] == "tensor"
    assert found_in(*forward, alone)["%3"] == "unknown"


def test_a_forward_collective_of_no_known_axis_decides_nothing() -> None:
    found = found_in(
        line(0, "AllReduce", "%para1_x", name="mine", ranks=(0, 1), primal='unique_id: "7"'),
        line(1, "AllReduce", "%0", name="grad_mirror_MirrorOperator", ranks=(0, 1, 2, 3)),
        line(2, "AllGather", "%1", name="grad_redistribution_op0", ranks=(0, 1),
             primal='forward_unique_id: "7"'),
    )  # fmt: skip
    assert found == {"%0": "unknown", "%1": "data", "%2": "data"}


@pytest.mark.parametrize("scope", ["Default/moe-Layer", "Default/experts", "Default/mlp"])
def test_an_exchange_in_a_place_named_after_experts_is_theirs(scope: str) -> None:
    mirror = line(0, "AllReduce", "%para1_x", name="grad_mirror_MirrorOperator", ranks=(0, 1))
    exchange = line(1, "AlltoAll", "%0", name="redistribution_op0", ranks=(0, 1), scope=scope)
    axis = "data" if scope.endswith("mlp") else "expert"
    assert found_in(mirror, exchange)["%1"] == axis
    gather = exchange.replace("AlltoAll", "AllGather")  # only exchanges move tokens
    assert found_in(mirror, gather)["%1"] == "data"


@pytest.mark.parametrize(
    ("between", "weight", "axis"),
    [
        ("Reshape", "%para3_e", "expert"),
        ("Transpose", "%para3_e", "expert"),
        ("Reshape", "%para2_w", "data"),  # a matrix is no stack of experts'
        ("ReLU", "%para3_e", "data"),  # computes
    ],
)
def test_tokens_are_known_by_the_experts_products_behind_or_before_them(
    between: str, weight: str, axis: Axis
) -> None:
    mirror = line(0, "AllReduce", "%para1_x", name="grad_mirror_MirrorOperator", ranks=(0, 1))
    to = found_in(
        mirror,
        line(1, "AlltoAll", "%0", name="redistribution_op0", ranks=(0, 1)),
        line(2, between, "%1"),
        line(3, "BatchMatMul", "%2", weight),
    )
    back = found_in(
        mirror,
        line(1, "BatchMatMul", "%0", weight),
        line(2, between, "%1"),
        line(3, "AlltoAll", "%2", name="redistribution_op0", ranks=(0, 1)),
    )
    assert (to["%1"], back["%3"]) == (axis, axis)
