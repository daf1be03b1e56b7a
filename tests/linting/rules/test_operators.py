"""Rules about operators that are left over, unlike their equals, or made anew."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.linting.cases import compilation, dump_of, lint, messages, rule, the_one

TENSOR = "<Tensor[Float32], (64, 64)>"


# -- OPS001 --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("op", "severity"),
    [("Print", "warning"), ("TensorDump", "warning"), ("ScalarSummary", "info")],
)
def test_what_only_shows_a_tensor_is_left_over(op: str, severity: str) -> None:
    text = dump_of(f'%0(a) = {op}("layer", %para1_x, U)')
    found = the_one(lint(rule("OPS001"), compilation({"validate": text})))
    assert (found.op, found.severity) == (op, severity)
    assert not lint(
        rule("OPS001"), compilation({"validate": text.replace(f"{op}(", "ReLU(")})
    ).findings


# -- OPS002 --------------------------------------------------------------------------------------


def layers(*rates: str | None) -> str:
    statements: list[str] = []
    for n, rate in enumerate(rates):
        scope = f"      # Scope: (Default/net/layers-CellList/{n}-Layer)"
        statements += [f"%{2 * n}(a{n}) = PrimFunc_ReLU(%para1_x)", scope]
        op = f"PrimFunc_Dropout(%{2 * n}, F32({rate}))" if rate else f"PrimFunc_GeLU(%{2 * n})"
        statements += [f"%{2 * n + 1}(b{n}) = {op}", scope]
    return dump_of(*statements)


@pytest.mark.parametrize(
    ("rates", "told"),
    [
        (
            ("0.9", "0.9", "1", "0.9"),
            ["Dropout: keep_prob is 1 in layers.2, 0.9 in 3 equal layers"],
        ),
        (("0.9", "0.9", "0.5"), ["Dropout: keep_prob is 0.5 in layers.2, 0.9 in 2 equal layers"]),
        (
            ("0.9", None, "0.9", "0.9"),
            ["Dropout is missing in layers.1, and stands in 3 equal layers"],
        ),
        (("0.9", "0.9", "0.9"), []),
        (("0.9", "0.5"), []),  # which of two is the usual one?
        (("0.9", "0.85", "0.8", "0.75"), []),  # stochastic depth
        (("0.9", "0.9", "0.5", "0.5"), []),  # half of them
    ],
)
def test_a_rate_that_the_equal_layers_do_not_have(
    rates: tuple[str | None, ...], told: list[str]
) -> None:
    assert messages(lint(rule("OPS002"), compilation({"begin": layers(*rates)}))) == told


def test_recomputed_layers_are_equals_of_the_others() -> None:
    text = layers("0.9", "0.9", "0.9").replace(
        "Default/net/layers-CellList/1", "recompute_Default/net/layers-CellList/1"
    )
    assert not lint(rule("OPS002"), compilation({"begin": text})).findings


# -- OPS003 --------------------------------------------------------------------------------------

WEIGHT = "%para2_w: <Ref[Tensor[Float32]], (64, 64), ref_key=w>  :  has_default"
TABLE = "%para3_t: <Ref[Tensor[Float32]], (64, 64), ref_key=t>  :  has_default"
INPUT = "%para1_x: <Tensor[Float32], (64, 64)>"
IDS = "%para4_i: <Tensor[Int64], (64)>"


def step(*statements: str) -> str:
    """A training step that updates the weight ``w`` with what the statements made last."""
    update = f"%{len(statements)}(u) = ApplyMomentum(%para2_w, %para2_w, F32(1), %para1_x, F32(1))"
    typed = [line for each in statements for line in each.split("\n")]
    return dump_of(*typed, update, parameters=(INPUT, WEIGHT, TABLE, IDS))


def test_a_weight_that_is_transposed_in_every_step() -> None:
    turned = (
        f"%0(a) = PrimFunc_Transpose(%para2_w, (I64(1), I64(0)))\n      : ({TENSOR}) -> ({TENSOR})"
    )
    product = (
        f"%1(b) = PrimFunc_MatMul(%para1_x, %0, Bool(0), Bool(0))\n"
        f"      : ({TENSOR}, {TENSOR}) -> ({TENSOR})"
    )
    found = the_one(lint(rule("OPS003"), compilation({"validate": step(turned, product)})))
    assert found.message == "a weight is transposed in every step for MatMul"
    assert found.fix == "MatMul(transpose_b=True) of the weight as it is stored"
    other = product.replace("PrimFunc_MatMul(%para1_x, %0, Bool(0), Bool(0))", "PrimFunc_ReLU(%0)")
    assert not lint(rule("OPS003"), compilation({"validate": step(turned, other)})).findings
    data = turned.replace("%para2_w", "%para1_x")
    assert not lint(rule("OPS003"), compilation({"validate": step(data, product)})).findings


@pytest.mark.parametrize(("columns", "told"), [(64, True), (63, False)])
def test_a_small_slice_of_a_weight_is_told_and_a_tiny_one_is_not(columns: int, told: bool) -> None:
    text = step(
        "%0(a) = PrimFunc_Transpose(%para2_w, (I64(1), I64(0)))\n"
        f"      : ({TENSOR}) -> (<Tensor[Float32], ({columns}, 1)>)",
        "%1(b) = PrimFunc_MatMul(%para1_x, %0, Bool(0), Bool(0))\n"
        f"      : ({TENSOR}, {TENSOR}) -> ({TENSOR})",
    )
    assert bool(lint(rule("OPS003"), compilation({"validate": text})).findings) == told


def test_what_another_stage_sends_may_change_whatever_it_waits_for() -> None:
    """Depends say when a Receive runs, not what it receives."""
    wait = f"%0(a) = Depend(%para3_t, %para1_x)\n      : ({TENSOR}, {TENSOR}) -> ({TENSOR})"
    used = f"%2(c) = PrimFunc_Add(%para1_x, %1)\n      : ({TENSOR}, {TENSOR}) -> ({TENSOR})"
    taken = (
        '%1(b) = {op}(%0) primitive_attrs: {{group: "hccl_world_group", src_rank: I64(0), '
        f"sr_tag: I64(0)}}}}\n      : ({TENSOR}) -> ({TENSOR})"
    )
    for op, told in (("Receive", False), ("PrimFunc_GeLU", True)):
        text = step(wait, taken.format(op=op), used)
        assert bool(lint(rule("OPS003"), compilation({"validate": text})).findings) == told


def test_what_reads_only_what_nothing_updates_is_always_the_same() -> None:
    cast = f"%0(a) = PrimFunc_Cast(%para3_t, I64(43))\n      : ({TENSOR}) -> ({TENSOR})"
    used = f"%1(b) = PrimFunc_Add(%para1_x, %0)\n      : ({TENSOR}, {TENSOR}) -> ({TENSOR})"
    found = the_one(lint(rule("OPS003"), compilation({"validate": step(cast, used)})))
    assert "it reads only constants and t, which nothing updates" in found.message
    trained = cast.replace("%para3_t", "%para2_w")
    assert not lint(rule("OPS003"), compilation({"validate": step(trained, used)})).findings


def test_what_an_operator_writes_to_is_updated() -> None:
    gather = f"%0(a) = AllGather(%para3_t)\n      : ({TENSOR}) -> ({TENSOR})"
    norm = "%1(b) = PrimFunc_BatchNorm(%para1_x, %0) primitive_attrs: {side_effect_mem: Bool(1)}"
    assert not lint(rule("OPS003"), compilation({"validate": step(gather, norm)})).findings
    plain = norm.partition(" primitive_attrs")[0]
    assert lint(rule("OPS003"), compilation({"validate": step(gather, plain)})).findings


@pytest.mark.parametrize(
    ("source", "target", "told"),
    [("Int64", "Int32", True), ("Int32", "Int64", False), ("Int64", "Float32", False)],
)
def test_an_input_that_is_cast_in_every_step(source: str, target: str, told: bool) -> None:
    types = f"(<Tensor[{source}], (64)>) -> (<Tensor[{target}], (64)>)"
    text = step(
        f"%0(a) = PrimFunc_Cast(%para4_i, I64(34))\n      : {types}",
        f"%1(b) = PrimFunc_Gather(%para2_w, %0, I64(0))\n      : ({TENSOR}) -> ({TENSOR})",
    )
    assert bool(lint(rule("OPS003"), compilation({"validate": text})).findings) == told


# -- OPS004 --------------------------------------------------------------------------------------


def copies(count: int, statements: int = 12) -> str:
    lines: list[str] = []
    for n in range(count):
        for place in range(statements):
            number = n * statements + place
            lines += [
                f"%{number}(a{number}) = PrimFunc_ReLU(%para1_x)",
                f"      # Scope: (Default/net/layers-CellList/{n}-Layer)",
            ]
    return dump_of(*lines)


def test_equal_layers_that_stand_one_by_one() -> None:
    facts = compilation({"validate": copies(24, 40)})
    found = the_one(lint(rule("OPS004"), facts))
    assert found.message == (
        "24 equal layers stand in the graph one by one: 960 of 961 statements, of which 40 would do"
    )
    assert not lint(rule("OPS004", least_seconds=41), facts).findings


@pytest.mark.parametrize(("count", "told"), [(7, False), (8, True)])
def test_eight_layers_are_many(count: int, told: bool) -> None:
    facts = compilation({"validate": copies(count)})
    assert bool(lint(rule("OPS004", least_seconds=0), facts).findings) == told


# -- OPS005 --------------------------------------------------------------------------------------


def test_an_input_of_unknown_size(samples: Path) -> None:
    facts = compilation({"validate": samples / "dynamic_shape/20_validate_0080.ir"})
    found = the_one(lint(rule("OPS005"), facts))
    assert "not known" in found.message
    assert found.severity == "warning"
    assert not lint(
        rule("OPS005"), compilation({"validate": samples / "gpt/20_validate_0080.ir"})
    ).findings


def test_an_input_of_unknown_size_that_nothing_depends_on() -> None:
    text = dump_of(
        f"%0(a) = PrimFunc_ReLU(%para2_y)\n      : ({TENSOR}) -> ({TENSOR})",
        parameters=("%para1_x: <Tensor[Float32], (-1, 8)>", f"%para2_y: {TENSOR}"),
    )
    assert not lint(rule("OPS005"), compilation({"validate": text})).findings


@pytest.mark.parametrize(
    ("symbols", "op", "severity", "told"),
    [
        ("[s4<[1,inf]>, 8]", "AllReduce", "warning", "no strategy can split it, 1 of 1 results"),
        ("[s4<[8,inf]|8N>, 8]", "AllReduce", "info", "is not known: 1 of 1 results"),
        ("[s4<[1,inf]>, 8]", "ReLU", "info", "is not known: 1 of 1 results"),
        ("[s4<[8,inf]|8N>, 8]", "Shape", "warning", "1 operator finds out shapes in every step"),
    ],
)
def test_an_unknown_size_is_grave_where_it_keeps_something_from_being_done(
    symbols: str, op: str, severity: str, told: str
) -> None:
    dynamic = "<Tensor[Float32], (-1, 8)>"
    group = ' {group: "hccl_world_group", op: "sum", rank_list: (0, 1)}' if "All" in op else ""
    text = dump_of(
        f"%0(a) = PrimFunc_{op}(%para1_x){group}",
        f"      : ({dynamic}) -> ({dynamic})",
        parameters=(f"%para1_x: {dynamic} : {symbols}",),
    )
    found = the_one(lint(rule("OPS005"), compilation({"begin": text, "validate": text})))
    assert found.severity == severity
    assert told in found.message


def test_a_slice_does_not_tell_what_divides_the_whole() -> None:
    def text(symbols: str) -> str:
        return dump_of(
            '%0(a) = PrimFunc_AllReduce(%para1_x) {group: "g", op: "sum", rank_list: (0, 1)}',
            "      : (<Tensor[Float32], (-1, 8)>) -> (<Tensor[Float32], (-1, 8)>)",
            parameters=(f"%para1_x: <Tensor[Float32], (-1, 8)> : {symbols}",),
        )

    whole, cut = text("[s1<[8,inf]|8N>, 8]"), text("[s2<[1,inf]>, 8]")
    for dumps in ({"validate": cut}, {"begin": whole, "validate": cut}):
        found = the_one(lint(rule("OPS005"), compilation(dumps)))
        assert found.severity == "info"
        assert "no strategy" not in found.message
