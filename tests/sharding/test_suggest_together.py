"""Proposals of a whole network: what is refused, what shares a weight or a primitive with it."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

import irtool
from irtool.ir.dump import Dump
from irtool.ir.finding import Finding
from irtool.ir.graph import Node, node_of
from irtool.report.checking.proposed import output_text, shard_text, together_text
from irtool.report.checking.report import grouped_findings
from irtool.sharding.check import check
from irtool.sharding.network.context import ParallelContext
from irtool.sharding.network.report import CheckResult
from irtool.sharding.network.strategies import Wanted
from irtool.sharding.suggest import Proposals, proposals

CONTEXT = ParallelContext(devices=8, full_batch=True)
X = "<Tensor[Float32], (16, 32)>"
W = "<Ref[Tensor[Float32]], (32, 32), ref_key=w>"


def product(name: str, strategy: str, more: str = "", operands: str = "%para1_x, %para2_w") -> str:
    return (
        f"{name} = MatMul({operands}) {{instance name: {more.strip() or name}}} primitive_attrs: "
        f"{{transpose_a: Bool(0), transpose_b: Bool(0), {strategy}}}\n      : ({X}, {W}) -> ({X})\n"
    )


def network(*statements: str) -> Dump:
    """Operators one behind the other in a dump; the last one is the result."""
    return irtool.loads(
        "# IR entry: @main\n# Total subgraphs: 1\n\n# Total params: 2\n# Params:\n"
        f"%para1_x: {X} : [16, 32]\n%para2_w: {W}  :  has_default\n\nsubgraph @main() {{\n"
        + "".join(
            f"  %{number}({one.replace(' = ', ') = ', 1)}" for number, one in enumerate(statements)
        )
        + f"  Return(%{len(statements) - 1})\n      : ({X})\n}}\n"
    )


def proposed(dump: Dump, context: ParallelContext = CONTEXT) -> tuple[CheckResult, Proposals]:
    report = check(dump, context)
    return report, proposals(dump, report)


def first_edits(found: Proposals) -> dict[Node, Wanted]:
    edits = dict(found.beside)
    for finding, asked in found.first.items():
        node = node_of(finding)
        assert node is not None
        edits[node] = asked
    return edits


def strategies(found: Proposals) -> dict[str, Sequence[object]]:
    return {str(finding.node): rows for finding, rows in found.strategies.items()}


def test_another_line_of_equal_shapes_is_proposed_only_if_it_is_legal_here() -> None:
    """The second product is transposed: what the first has sums along another axis."""
    other = product("b", "in_strategy: ((2, 4), (1, 2))", operands="%0, %para2_w")
    turned = other.replace("transpose_b: Bool(0)", "transpose_b: Bool(1)")
    dump = network(product("a", "in_strategy: ((2, 2), (2, 1))"), turned)
    report, found = proposed(dump)
    (rows,) = found.strategies.values()
    for strategy in rows:
        node = next(node_of(finding) for finding in found.strategies)
        assert node is not None
        again = check(dump, report.context, {node: Wanted(strategy)})
        assert again.accepted is not False or "axis-mismatch" not in {
            finding.code for finding in again.findings
        }
    assert found.together is True


def test_the_user_s_out_strategy_is_kept_where_it_is_legal() -> None:
    dump = network(product("a", "in_strategy: ((2, 4), (2, 1)), out_strategy: ((2, 1))"))
    report, found = proposed(dump)
    ((finding, first),) = found.first.items()
    assert first.out_strategy == ((2, 1),)
    assert output_text(found, finding) == ""
    assert check(dump, report.context, first_edits(found)).accepted is True


def test_an_out_strategy_that_nothing_fits_is_left_out() -> None:
    dump = network(product("a", "in_strategy: ((2, 4), (4, 1)), out_strategy: ((3, 1))"))
    report, found = proposed(dump)
    ((finding, first),) = found.first.items()
    assert (first.strategy, first.out_strategy) == (((2, 4), (4, 1)), None)
    assert output_text(found, finding) == ", without out_strategy"
    assert check(dump, report.context, first_edits(found)).accepted is True


LAYOUT = (
    "{'device_matrix': (%s), 'tensor_map': (%s), 'interleaved_parallel': false, "
    "'alias_name': (dp, tp)}"
)


def layouts(*maps: str, matrix: str = "2, 4") -> str:
    return f"({', '.join(LAYOUT % (matrix, one) for one in maps)})"


def test_an_out_layout_that_is_refused_is_left_out_and_the_others_stay() -> None:
    given = f"in_layout: {layouts('1, 0', '0, -1')}, out_layout: {layouts('-1, 1')}"
    dump = network(product("a", given))
    report, found = proposed(dump)
    ((finding, first),) = found.first.items()
    assert [one.tensor_map for one in first.in_layout or ()] == [(1, 0), (0, -1)]
    assert first.out_layout is None
    assert output_text(found, finding) == ", without out_layout"
    assert check(dump, report.context, first_edits(found)).accepted is True


def test_an_out_layout_over_too_few_devices_gets_an_axis_more_with_the_others() -> None:
    few = "2, 2"
    given = (
        f"in_layout: {layouts('1, 0', '0, -1', matrix=few)}, "
        f"out_layout: {layouts('1, -1', matrix=few)}"
    )
    dump = network(product("a", given))
    report, found = proposed(dump)
    ((finding, first),) = found.first.items()
    assert [one.device_matrix for one in first.out_layout or ()] == [(2, 2, 2)]
    assert output_text(found, finding).startswith(", out_layout ((dp, None)) over (2, 2, 2)")
    assert check(dump, report.context, first_edits(found)).accepted is True


def test_axes_of_layouts_change_in_all_operands_that_share_them() -> None:
    """The axis that is summed up lies along dp and tp: one of both, in both operands."""
    dump = network(product("a", f"in_layout: {layouts('-1, 1', '0, 1')}"))
    report, found = proposed(dump)
    (first,) = found.first.values()
    maps = [one.tensor_map for one in first.in_layout or ()]
    assert maps[0][1] == maps[1][0]
    assert check(dump, report.context, first_edits(found)).accepted is True


CELL = (
    "      # Scope: (Default/head-Head)\n"
    "      # In file net.py:9, 8~30/        return self.product(x, self.weight)/\n"
)


def test_calls_of_one_primitive_get_one_strategy() -> None:
    """Both are self.product of one cell: a strategy for the first is the second's, too."""
    wrong = "in_strategy: ((2, 4), (2, 1))"
    first = product("a", wrong, "product") + CELL
    second = product("b", wrong, "product", "%0, %para2_w") + CELL
    _, found = proposed(network(first, second))
    assert found.together is True
    assert len({asked.strategy for asked in first_edits(found).values()}) == 1


def test_a_legal_user_of_the_weight_changes_where_nothing_else_helps() -> None:
    """The first product has to lie along dp; the second lays the weight otherwise, by layouts."""
    fixed = product("a", f"in_layout: {layouts('1, -1', '-1, 0')}")
    other = product("b", f"in_layout: {layouts('-1, 0', '0, 1')}", operands="%0, %para2_w")
    dump = network(fixed, other)
    report, found = proposed(dump)
    refused = {finding.code for finding in report.findings if finding.severity == "error"}
    assert refused == {"parameter-users"}
    assert found.together is True
    assert check(dump, report.context, first_edits(found)).accepted is True


FLASH = (
    "a = FlashAttentionScore(%para1_x, %para1_x, %para1_x, None, None, None, None, None, None, "
    "None, I64(4), F32(1), F32(1), I64(2147483647), I64(2147483647), I64(0), I64(2), I64(0)) "
    "{instance name: flash} primitive_attrs: {enable_ring_attention: Bool(1), in_strategy: "
    "((2, 1, 2), (2, 1, 2), (2, 1, 2))}\n"
)


def flash(mark: str) -> Dump:
    kind = "<Tensor[Float16], (64, 8, 32)>"
    types = ", ".join([kind] * 3 + ["<None, NoShape>"] * 7 + ["<Int64, NoShape>"] * 8)
    results = (
        "<Tuple[Tensor[Float32]*2,Tensor[Float16]*2], "
        "TupleShape((8, 4, 64, 8), (8, 4, 64, 8), (1), (64, 8, 32))>"
    )
    text = (
        "# IR entry: @main\n# Total subgraphs: 1\n\n# Total params: 1\n# Params:\n"
        f"%para1_x: {kind} : [64, 8, 32]\n\nsubgraph @main() {{\n"
        f"  %0({FLASH.replace(' = ', ') = ', 1)}      : ({types}) -> ({results})\n"
        f"  Return(%0)\n      : ({results})\n}}\n"
    )
    return irtool.loads(text.replace("Bool(1)", mark, 1))


def test_what_no_strategy_cures_says_which_flag_stands_in_the_way() -> None:
    report, found = proposed(flash("Bool(1)"))
    (refused,) = (finding for finding in report.findings if finding.severity == "error")
    assert refused.message == "ring attention takes BSH and BNSD, not SBH"
    assert (found.strategies, found.layouts, found.together) == ({}, {}, None)
    told = found.why_none[refused]
    assert told.startswith("no strategy, as long as it has enable_ring_attention=True; without it")
    assert check(flash("Bool(0)"), CONTEXT).accepted is not True
    assert "in_strategy ((1, 2, 2), (1, 2, 2), (1, 2, 2))" in told or "in_strategy" in told


def test_what_is_left_is_told_where_not_all_of_it_passes() -> None:
    context = ParallelContext.from_mapping({
        "device_num": 8, "full_batch": True, "enable_parallel_optimizer": True,
        "parallel_optimizer_config": {"optimizer_weight_shard_size": 16},
    })  # fmt: skip
    report, found = proposed(network(product("a", "in_strategy: ((2, 4), (2, 1))")), context)
    assert report.accepted is False
    assert found.together is False
    assert [finding.code for finding in found.remaining] == ["context"]
    assert together_text(found).startswith("With the first of each instead, this is left: ")


# -- the line ------------------------------------------------------------------------------------


def made_in(source: str, scope: str = "Default/head-Head") -> Node:
    statement = product("a", "in_strategy: ((2, 4), (2, 1))", "product")
    place = f"      # Scope: ({scope})\n      # In file net.py:9, 8~30/        {source}/\n"
    dump = network(statement + place)
    return next(node for node in dump.nodes() if node.op == "MatMul")


@pytest.mark.parametrize(
    ("source", "scope", "told"),
    [
        (
            "return ops.MatMul().shard(((2, 4), (2, 1)))(x, w)", "Default/head-Head",
            "net.py:9: return ops.MatMul().shard(((2, 4), (2, 1)))(x, w)",
        ),
        (
            "return self.product(x, w)", "Default/head-Head",
            "net.head.product.shard(…), whose line the dump does not tell",
        ),
        (
            "return ops.matmul(x, w)", "Default/head-Head",
            "a .shard( whose line the dump does not tell",
        ),
    ],
    ids=["in the dump", "an attribute", "neither"],
)  # fmt: skip
def test_the_line_with_shard_is_told_where_the_dump_has_it(
    source: str, scope: str, told: str
) -> None:
    assert shard_text(made_in(source, scope)) == told


def test_operators_beside_are_named_in_the_text() -> None:
    node = made_in("return self.product(x, w)")
    finding = Finding("parameter-users", "error", "", "")
    found = Proposals(
        {finding: (((2, 1), (1, 1)),)}, {}, together=True, beside={node: Wanted(((2, 4), (4, 1)))}
    )
    assert together_text(found) == (
        "With the first of each instead, and these beside, it passes this check: "
        "MatMul %0 in_strategy ((2, 4), (4, 1))."
    )


def test_the_same_mistake_with_another_proposal_is_told_by_itself() -> None:
    wrong = "in_strategy: ((2, 4), (2, 1))"
    report, _ = proposed(network(product("a", wrong), product("b", wrong, operands="%0, %para2_w")))
    one, other = (finding for finding in report.findings if finding.code == "axis-mismatch")
    near, far = Wanted(((2, 4), (4, 1))), Wanted(((2, 2), (2, 1)))

    def groups(*firsts: Wanted) -> list[int]:
        found = Proposals({}, {}, first=dict(zip((one, other), firsts, strict=True)))
        told = grouped_findings(report, found)
        return [1 + len(group.others) for group in told if group.first.code == "axis-mismatch"]

    assert groups(near, near) == [2]
    assert groups(near, far) == [1, 1]


def test_what_is_not_looked_for_is_said() -> None:
    """A Concat has a row for each tensor of its tuple: nothing is tried for those."""
    both = "<Tuple[Tensor[Float32]*2], TupleShape((16, 32), (16, 32))>"
    dump = irtool.loads(
        "# IR entry: @main\n# Total subgraphs: 1\n\n# Total params: 1\n# Params:\n"
        f"%para1_x: {X} : [16, 32]\n\nsubgraph @main() {{\n"
        f"  %0(t) = MakeTuple(%para1_x, %para1_x)\n      : ({X}, {X}) -> ({both})\n"
        "  %1(a) = Concat(%0, I64(0)) {instance name: concat} primitive_attrs: "
        "{in_strategy: (((1, 3), (1, 3)))}\n"
        f"      : ({both}, <Int64, NoShape>) -> (<Tensor[Float32], (32, 32)>)\n"
        "  Return(%1)\n      : (<Tensor[Float32], (32, 32)>)\n}\n"
    )
    report, found = proposed(dump)
    refused = [finding for finding in report.findings if finding.severity == "error"]
    assert refused
    assert [found.why_none[finding] for finding in refused] == [
        "not looked for: strategies of operators that take a tuple of tensors"
    ]
