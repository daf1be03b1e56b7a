"""What one graph alone computes less exactly than it could, and how much that can bring."""

from __future__ import annotations

import math

import pytest

from irtool import loads
from irtool.compare.runs.suspects import Suspect, lone_suspects

HALF, BRAIN, SINGLE = 2.0**-11, 2.0**-8, 2.0**-24


def typed(text: str) -> str:
    """``f16 8 16`` as MindSpore writes the type of a tensor."""
    kind, *sizes = text.split()
    name = {"f16": "Float16", "bf16": "BFloat16", "f32": "Float32", "i32": "Int32"}[kind]
    return f"<Tensor[{name}], ({', '.join(sizes)})>"


def found(*statements: tuple[str, str, str]) -> list[Suspect]:
    """Suspects of a graph: call, types of the operands, type of the result."""
    lines = ["# IR entry: @net_1", "subgraph @net_1() {"]
    for number, (call, operands, result) in enumerate(statements):
        types = ", ".join(map(typed, operands.split(", ")))
        lines += [f"  %{number}(n{number}) = {call}", f"      : ({types}) -> ({typed(result)})"]
    lines += [f"  Return(%{len(statements) - 1})", "      : (<Tensor[Float32], (8, 16)>)", "}", ""]
    return lone_suspects(loads("\n".join(lines)))


X, W = "%para1_x", "%para2_w"


@pytest.mark.parametrize(
    ("call", "operands", "result", "kind", "error"),
    [
        (f"MatMul({X}, {W})", "f16 8 16, f16 16 8", "f16 8 8", "product", 2 * HALF),
        (f"MatMul({X}, {W})", "bf16 8 16, bf16 16 8", "bf16 8 8", "product", 2 * BRAIN),
        (f"Conv2D({X}, {W})", "f16 1 3 8 8, f16 4 3 3 3", "f16 1 4 8 8", "product", 2 * HALF),
        (f"ReduceSum({X})", "f16 100 7", "f16 7", "reduction", 0.4 * 10 * HALF),
        (f"Softmax({X})", "f16 4 64", "f16 4 64", "reduction", 0.4 * 8 * HALF),
        (f"LayerNorm({X})", "f16 4 64", "f16 4 64", "reduction", 0.4 * 8 * HALF),
        (
            f"AllReduce({X}) primitive_attrs: {{rank_size: I64(16)}}",
            "f16 8 16", "f16 8 16", "collective", 0.5 * 4 * HALF,
        ),
        (
            f"ReduceScatter({X}) primitive_attrs: {{dev_num: I64(4)}}",
            "bf16 8 16", "bf16 2 16", "collective", 0.5 * 2 * BRAIN,
        ),
        (f"AllReduce({X})", "f16 8 16", "f16 8 16", "collective", 0.5 * math.sqrt(8) * HALF),
    ],
)  # fmt: skip
def test_half_precision_where_much_is_added_up(
    call: str, operands: str, result: str, kind: str, error: float
) -> None:
    (one,) = found((call, operands, result))
    assert one.kind == f"half-precision {kind}"
    assert one.error == pytest.approx(error)
    assert (one.times, one.node.op) == (1, call.partition("(")[0])


@pytest.mark.parametrize(
    ("call", "operands", "result"),
    [
        (f"MatMul({X}, {W})", "f16 8 16, f16 16 8", "f32 8 8"),
        (f"ReduceSum({X})", "f32 100 7", "f32 7"),
        (f"AllReduce({X})", "f32 8 16", "f32 8 16"),
        (f"AllGather({X})", "f16 8 16", "f16 64 16"),  # adds nothing up
        (f"ReLU({X})", "f16 8 16", "f16 8 16"),
        (f"Cast({X})", "f16 8 16", "f32 8 16"),
        (f"Cast({X})", "f32 8 16", "i32 8 16"),
    ],
)
def test_what_is_as_exact_as_it_can_be_is_no_suspect(call: str, operands: str, result: str) -> None:
    assert found((call, operands, result)) == []


def test_a_cast_is_one_where_it_rounds() -> None:
    (one,) = found((f"Cast({X})", "f32 8 16", "bf16 8 16"))
    assert (one.kind, one.error, one.why) == ("cast", BRAIN, "Cast rounds Float32 to BFloat16")
    assert found((f"Cast({X})", "bf16 8 16", "f16 8 16")) == []
    (one,) = found((f"Cast({X})", "f16 8 16", "bf16 8 16"))
    assert one.error == BRAIN
    assert found((f"Cast({X})", "f16 8 16", "f16 8 16")) == []


def test_a_fused_kernel_rounds_at_other_places() -> None:
    (one,) = found((f"FlashAttentionScore({X}, {W})", "f16 2 8 16, f16 2 8 16", "f16 2 8 16"))
    assert (one.kind, one.error) == ("fused kernel", 8 * HALF)
    (one,) = found((f"MatMulAllReduce({X}, {W})", "f32 8 16, f32 16 8", "f32 8 8"))
    assert (one.kind, one.error) == ("fused kernel", 8 * SINGLE)


@pytest.mark.parametrize("op", ["UnsortedSegmentSum", "ScatterNdAdd", "TensorScatterAdd"])
def test_a_sum_in_no_fixed_order_is_one_in_any_type(op: str) -> None:
    """64 rows of 4 are added up."""
    (one,) = found((f"{op}({X}, {W})", "f32 64 4, i32 64", "f32 8 4"))
    assert one.kind == "sum in no fixed order"
    assert one.error == pytest.approx(0.4 * 8 * SINGLE)
    kinds = [each.kind for each in found((f"{op}({X}, {W})", "f16 64 4, i32 64", "f16 8 4"))]
    assert sorted(kinds) == ["half-precision reduction", "sum in no fixed order"]


def parts(*operands: str, op: str = "MatMul", add: str = "Add") -> list[tuple[str, str, str]]:
    """Two products, each of what is said of it, and their sum."""
    return [
        (f"Slice({X})", "f32 8 32", "f32 8 16"),
        (f"Split({W})", "f32 32 8", "f32 16 8"),
        ("TupleGetItem(%1, I64(0))", "f32 16 8, i32", "f32 16 8"),
        (f"{op}({operands[0]})", "f32 8 16, f32 16 8", "f32 8 8"),
        (f"MatMul({operands[1]})", "f32 8 16, f32 16 8", "f32 8 8"),
        ("Cast(%4)", "f32 8 8", "f32 8 8"),
        (f"{add}(%3, %5)", "f32 8 8, f32 8 8", "f32 8 8"),
    ]


def test_a_product_in_parts_is_one() -> None:
    """A slice on one side, an item of a split on the other; casts between are looked through."""
    (one,) = found(*parts(f"%0, {W}", f"{X}, %2"))
    assert (one.kind, one.why) == ("split reduction", "Add adds up 2 partial MatMuls")
    assert one.error == pytest.approx(0.4 * math.sqrt(2) * SINGLE)


@pytest.mark.parametrize(
    "statements",
    [
        parts(f"%0, {W}", f"{X}, {W}"),  # one of them is whole
        parts(f"%0, {W}", f"{X}, %2", op="BatchMatMul"),  # another operator
        parts(f"%0, {W}", f"{X}, %2", add="Mul"),  # no sum
        [*parts(f"%0, {W}", f"{X}, %2")[:-1], (f"Add(%3, {X})", "f32 8 8, f32 8 8", "f32 8 8")],
    ],
)
def test_what_is_no_product_in_parts(statements: list[tuple[str, str, str]]) -> None:
    assert found(*statements) == []


def test_items_of_a_tuple_are_parts_too() -> None:
    statements = parts(f"%0, {W}", f"{X}, %2")[:-1]
    statements += [
        ("MakeTuple(%3, %5, %3)", "f32 8 8, f32 8 8, f32 8 8", "f32 8 8"),
        ("AddN(%6)", "f32 8 8", "f32 8 8"),
    ]
    (one,) = found(*statements)
    assert one.why == "AddN adds up 3 partial MatMuls"
    assert one.error == pytest.approx(0.4 * math.sqrt(3) * SINGLE)


def test_the_heaviest_comes_first_and_equal_ones_once() -> None:
    product = (f"MatMul({X}, {W})", "f16 8 16, f16 16 8", "f16 8 8")
    ranked = found(
        product,
        (f"ReduceSum({X})", "f16 100 7", "f16 7"),
        product,
        (f"ReduceSum({X})", "f16 900 7", "f16 7"),
        product,
    )
    assert [(one.kind, one.times, one.node.id) for one in ranked] == [
        ("half-precision reduction", 2, "%1"),
        ("half-precision product", 3, "%0"),
    ]
    assert ranked[0].error == pytest.approx(0.4 * 30 * HALF)  # the longest sum counts
