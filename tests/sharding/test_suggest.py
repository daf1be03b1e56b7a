"""What is proposed in the place of what is refused: the nearest that is legal, all together."""

from __future__ import annotations

import json
import lzma
import random
import re
from collections.abc import Mapping
from pathlib import Path

import pytest

import irtool
from irtool.ir.dump import Dump
from irtool.ir.graph import Node, node_of
from irtool.sharding.check import check
from irtool.sharding.network.context import ParallelContext
from irtool.sharding.network.report import CheckResult
from irtool.sharding.network.strategies import Wanted
from irtool.sharding.suggest import Proposals, proposals
from irtool.sharding.suggest.nearest import distance
from tests.records import records

ASKED = Path(__file__).parent / "network" / "asked.json.xz"
SHARED_WEIGHT = """\
# IR entry: @main
# Total subgraphs: 1

# Total params: 3
# Params:
%para1_x: <Tensor[Float32], (16, 32)> : [16, 32]
%para2_y: <Tensor[Float32], (16, 32)> : [16, 32]
%para3_w: <Ref[Tensor[Float32]], (32, 32), ref_key=w>  :  has_default

subgraph @main() {
  %0(a) = MatMul(%para1_x, %para3_w) {instance name: a} primitive_attrs: \
{transpose_a: Bool(0), transpose_b: Bool(0), in_strategy: ((2, 4), (2, 1))}
      : (<Tensor[Float32], (16, 32)>, <Ref[Tensor[Float32]], (32, 32), ref_key=w>) -> \
(<Tensor[Float32], (16, 32)>)
  %1(b) = MatMul(%para2_y, %para3_w) {instance name: b} primitive_attrs: \
{transpose_a: Bool(0), transpose_b: Bool(0), in_strategy: ((1, 2), (2, 4))}
      : (<Tensor[Float32], (16, 32)>, <Ref[Tensor[Float32]], (32, 32), ref_key=w>) -> \
(<Tensor[Float32], (16, 32)>)
  %2(c) = Add(%0, %1) {instance name: c}
      : (<Tensor[Float32], (16, 32)>, <Tensor[Float32], (16, 32)>) -> \
(<Tensor[Float32], (16, 32)>)
  Return(%2)
      : (<Tensor[Float32], (16, 32)>)
}
"""


def checked(dump: Dump, context: Mapping[str, object]) -> tuple[CheckResult, Proposals]:
    report = check(dump, ParallelContext.from_mapping(context))
    return report, proposals(dump, report)


def first_ones(found: Proposals) -> dict[Node, Wanted]:
    """The first proposal of each finding, as something to check."""
    instead: dict[Node, Wanted] = {}
    for finding, rows in found.strategies.items():
        if (node := node_of(finding)) is not None and rows:
            instead[node] = Wanted(rows[0])
    for finding, layouts in found.layouts.items():
        if (node := node_of(finding)) is not None and layouts:
            instead[node] = Wanted(in_layout=layouts[0])
    return instead


def test_the_first_proposals_pass_the_check_of_the_whole_network(samples: Path) -> None:
    folder = samples / "mlp_rejected"
    case = json.loads((folder / "case.json").read_text(encoding="utf-8"))
    dump = irtool.load(next(folder.glob("step_parallel_begin*")))
    report, found = checked(dump, case["context"])
    assert report.accepted is False
    assert found.together is True
    assert check(dump, report.context, first_ones(found)).accepted is True


def test_proposals_agree_on_a_weight_that_operators_share() -> None:
    dump = irtool.loads(SHARED_WEIGHT)
    context = {"device_num": 8, "full_batch": True}
    report, found = checked(dump, context)
    refused = {node_of(finding) for finding in report.findings if finding.severity == "error"}
    assert refused
    assert found.together is True
    assert check(dump, report.context, first_ones(found)).accepted is True


@pytest.mark.parametrize("name", ["tr_multi_bad", "ring_BSH_flash_sp"])
def test_a_network_without_a_layout_to_propose_proposes_none(name: str) -> None:
    records = json.loads(lzma.decompress(ASKED.read_bytes()))
    record = next(item for item in records if item["name"] == name)
    _, found = checked(irtool.loads(record["begin"]), record["context"])
    for layouts in found.layouts.values():
        assert all(layouts)


def test_an_accepted_network_gets_no_proposals(samples: Path) -> None:
    folder = samples / "mlp_semi_auto"
    case = json.loads((folder / "case.json").read_text(encoding="utf-8"))
    dump = irtool.load(next(folder.glob("step_parallel_begin*")))
    _, found = checked(dump, case["context"])
    assert (found.strategies, found.layouts, found.together) == ({}, {}, None)


LAYOUT = """{'device_matrix': (2, 4), 'tensor_map': (%s), 'interleaved_parallel': false, \
'alias_name': (dp, tp)}"""


def test_a_layout_is_proposed_for_a_layout() -> None:
    """Softmax along an axis that lies along the devices: the axis is taken off them."""
    layout = LAYOUT % "1, 0"
    dump = irtool.loads(
        "# IR entry: @main\n# Total subgraphs: 1\n\n# Total params: 1\n# Params:\n"
        "%para1_x: <Tensor[Float32], (16, 32)> : [16, 32]\n\nsubgraph @main() {\n"
        "  %0(a) = Softmax(%para1_x) {instance name: a} primitive_attrs: {axis: (I64(-1)), "
        f"in_layout: ({layout})}}\n"
        "      : (<Tensor[Float32], (16, 32)>) -> (<Tensor[Float32], (16, 32)>)\n"
        "  Return(%0)\n      : (<Tensor[Float32], (16, 32)>)\n}\n"
    )
    report, found = checked(dump, {"device_num": 8, "full_batch": True})
    assert report.accepted is False
    ((nearest, *_),) = found.layouts.values()
    assert [tuple(layout.tensor_map) for layout in nearest] == [(1, -1)]
    assert check(dump, report.context, first_ones(found)).accepted is True


def test_a_strategy_is_proposed_where_no_layout_is_taken() -> None:
    """Select takes no layouts: what they come to, as a strategy."""
    layout = LAYOUT % "1, -1"
    three = ", ".join(["<Tensor[Float32], (16, 32)>"] * 3)
    dump = irtool.loads(
        "# IR entry: @main\n# Total subgraphs: 1\n\n# Total params: 1\n# Params:\n"
        "%para1_x: <Tensor[Float32], (16, 32)> : [16, 32]\n\nsubgraph @main() {\n"
        "  %0(a) = Select(%para1_x, %para1_x, %para1_x) {instance name: a} "
        f"primitive_attrs: {{in_layout: ({', '.join([layout] * 3)})}}\n"
        f"      : ({three}) -> (<Tensor[Float32], (16, 32)>)\n"
        "  Return(%0)\n      : (<Tensor[Float32], (16, 32)>)\n}\n"
    )
    report, found = checked(dump, {"device_num": 8, "full_batch": True})
    wrong = [finding.code for finding in report.findings if finding.severity == "error"]
    assert wrong == ["layout-unsupported"]
    ((nearest, *_),) = found.strategies.values()
    assert nearest == ((2, 1), (2, 1), (2, 1))
    assert found.together is True


def test_a_strategy_for_too_few_tensors_is_filled_up() -> None:
    """Of a product one row was given: the other one is proposed with it."""
    text = SHARED_WEIGHT.replace("((2, 4), (2, 1))", "((2, 4))")
    report, found = checked(irtool.loads(text), {"device_num": 8, "full_batch": True})
    assert report.accepted is False
    (rows, *_) = (
        rows for finding, rows in found.strategies.items()
        if (node := node_of(finding)) is not None and node.name == "a"
    )  # fmt: skip
    assert rows
    assert all(len(strategy) == 2 and strategy[0][1] == strategy[1][0] for strategy in rows)


STRATEGY = re.compile(r"in_strategy: (\((?:\((?:\d+(?:, )?)*\)(?:, )?)+\))")
NETWORKS = records(ASKED.with_name("networks.jsonl.xz"))


def spoilt(text: str, draw: random.Random) -> str:
    """The dump with a number changed in two to four of its strategies."""
    given = list(STRATEGY.finditer(text))
    chosen = draw.sample(given, min(len(given), draw.choice((2, 3, 4))))
    for strategy in sorted(chosen, key=lambda one: -one.start(1)):
        number = draw.choice(list(re.finditer(r"\d+", strategy[1])))
        start, end = (strategy.start(1) + at for at in number.span())
        text = text[:start] + str(draw.choice((2, 3, 4, 8, 16, 64))) + text[end:]
    return text


@pytest.mark.parametrize("name", NETWORKS)
def test_the_proposals_for_several_illegal_strategies_pass_together(name: str) -> None:
    record = NETWORKS[name]
    dump = irtool.loads(spoilt(record.dumps["begin"], random.Random(name)))
    report = check(dump, record.context)
    if report.accepted is not False:
        return  # what was drawn is legal, too
    found = proposals(dump, report)
    assert found.together is True
    assert check(dump, record.context, first_ones(found)).accepted is True


@pytest.mark.parametrize(
    "given",
    ["(1, -1, -1)", "(1)", "(1, 0)"],
    ids=["too many entries", "too few", "one that does not divide"],
)
def test_a_layout_that_can_not_be_one_is_made_to_fit(given: str) -> None:
    layout = (
        f"{{'device_matrix': (2, 4), 'tensor_map': {given}, 'interleaved_parallel': false, "
        "'alias_name': (x, y)}"
    )
    dump = irtool.loads(f"""\
# IR entry: @main
# Total subgraphs: 1

# Total params: 1
# Params:
%para1_x: <Tensor[Float32], (16, 6)> : [16, 6]

subgraph @main() {{
  %0(a) = PrimFunc_ReLU(%para1_x) {{instance name: a}} primitive_attrs: {{in_layout: ({layout})}}
      : (<Tensor[Float32], (16, 6)>) -> (<Tensor[Float32], (16, 6)>)
  Return(%0)
      : (<Tensor[Float32], (16, 6)>)
}}
""")
    report, found = checked(dump, {"device_num": 8, "full_batch": True})
    assert report.accepted is False
    ((first, *_),) = found.layouts.values()
    assert [one.tensor_map for one in first] == [(1, -1)]
    assert found.together is True


@pytest.mark.parametrize(
    ("matrix", "entries", "wanted"),
    [("(2, 2)", "(1, -1)", (2, 2, 2)), ("(4, 4)", "(0, -1)", (2, 4))],
    ids=["over four devices", "over sixteen"],
)
def test_a_layout_over_another_number_of_devices_gets_an_axis_more_or_a_smaller_one(
    matrix: str, entries: str, wanted: tuple[int, ...]
) -> None:
    layout = (
        f"{{'device_matrix': {matrix}, 'tensor_map': {entries}, 'interleaved_parallel': false, "
        "'alias_name': (r0, x)}"
    )
    dump = irtool.loads(f"""\
# IR entry: @main
# Total subgraphs: 1

# Total params: 1
# Params:
%para1_x: <Tensor[Float32], (16, 6)> : [16, 6]

subgraph @main() {{
  %0(a) = PrimFunc_ReLU(%para1_x) {{instance name: a}} primitive_attrs: {{in_layout: ({layout})}}
      : (<Tensor[Float32], (16, 6)>) -> (<Tensor[Float32], (16, 6)>)
  Return(%0)
      : (<Tensor[Float32], (16, 6)>)
}}
""")
    _, found = checked(dump, {"device_num": 8, "full_batch": True})
    ((((first,), *_)),) = found.layouts.values()
    assert first.device_matrix == wanted
    assert len(set(first.alias_name)) == len(first.device_matrix)
    assert found.together is True


def two_adds(second_line: int) -> str:
    """An operator that is refused, and one like it, made by a line of Python each."""
    types = "(<Tensor[Float32], (16, 32)>, <Tensor[Float32], (16, 32)>)"
    rows = (("%para1_x", "((8, 1), (8, 1))", 7), ("%0", "((2, 4), (4, 2))", second_line))
    statements = "".join(
        f"  %{n}(a{n}) = Add({first}, %para2_y) {{instance name: add}} primitive_attrs: "
        f"{{in_strategy: {strategy}}}\n      : {types} -> (<Tensor[Float32], (16, 32)>)\n"
        f"      # In file net.py:{line}, 8~9/        return self.add(x, y)/\n"
        for n, (first, strategy, line) in enumerate(rows)
    )
    head, _, _ = SHARED_WEIGHT.partition("%para3_w")
    head = head.replace("# Total params: 3", "# Total params: 2")
    end = "  Return(%1)\n      : (<Tensor[Float32], (16, 32)>)\n}\n"
    return f"{head}\nsubgraph @main() {{\n{statements}{end}"


@pytest.mark.parametrize(("line", "is_usual"), [(7, True), (8, False)])
def test_what_the_same_line_of_python_has_elsewhere_goes_first(line: int, is_usual: bool) -> None:
    dump = irtool.load(two_adds(line).encode())
    report, found = checked(dump, {"device_num": 8, "parallel_mode": "semi_auto_parallel"})
    assert report.accepted is False
    (rows,) = found.strategies.values()
    assert (rows[0] == ((8, 1), (8, 1))) is is_usual


def refusals(report: CheckResult) -> list[str]:
    return [finding.code for finding in report.findings if finding.severity == "error"]


@pytest.mark.parametrize(
    ("first", "second"),
    [
        pytest.param("((2, 4), (4, 1))", "((1, 2), (2, 4))", id="other slices"),
        pytest.param("((2, 1), (1, 4))", "((1, 1), (1, 4))", id="slices on other devices"),
    ],
)
def test_users_of_one_weight_are_brought_together(first: str, second: str) -> None:
    """Each strategy is legal alone: what is proposed lays the weight as its first user does."""
    text = SHARED_WEIGHT.replace("((2, 4), (2, 1))", first).replace("((1, 2), (2, 4))", second)
    report, found = checked(irtool.loads(text), {"device_num": 8, "full_batch": True})
    assert refusals(report) == ["parameter-users"]
    assert all(operator.verdict == "legal" for operator in report.operators)
    assert found.together is True


def test_users_of_one_weight_are_brought_together_by_layouts() -> None:
    def given(*maps: str) -> str:
        return f"in_layout: ({', '.join(LAYOUT % each for each in maps)})"

    text = SHARED_WEIGHT.replace("in_strategy: ((2, 4), (2, 1))", given("1, -1", "-1, 0"))
    text = text.replace("in_strategy: ((1, 2), (2, 4))", given("0, -1", "-1, 1"))
    report, found = checked(irtool.loads(text), {"device_num": 8, "full_batch": True})
    assert refusals(report) == ["parameter-users"]
    assert found.together is True
    (options,) = found.layouts.values()
    assert options[0][1].tensor_map == (-1, 0)


def test_the_nearest_three_are_proposed_and_each_is_legal_alone() -> None:
    text = SHARED_WEIGHT.replace("((2, 4), (2, 1))", "((2, 4), (4, 1))")
    layouts = f"in_layout: ({LAYOUT % '1, 0'}, {LAYOUT % '1, -1'})"
    wrong = text.replace("in_strategy: ((1, 2), (2, 4))", layouts)
    dump = irtool.loads(wrong)
    report, found = checked(dump, {"device_num": 8, "full_batch": True})
    (options,) = found.layouts.values()
    assert len(options) == 3
    node = next(operator.node for operator in report.operators if operator.verdict == "illegal")
    for option in options:
        tried = check(dump, report.context, {node: Wanted(in_layout=option)})
        assert next(one for one in tried.operators if one.node is node).verdict == "legal"


def test_operators_of_other_stages_that_the_dump_holds_get_proposals_too() -> None:
    for record in records(ASKED.with_name("pipelines.jsonl.xz")).values():
        dump = record.dump("begin")
        report = check(dump, record.context)
        for node, operator in report.elsewhere.items():
            given = node.written_strategy()
            if operator.verdict != "legal" or operator.op != "MatMul" or not given:
                continue
            instead = {node: Wanted(((3, 1), (1, 1)))}
            report = check(dump, report.context, instead)
            found = proposals(dump, report)
            (rows,) = found.strategies.values()
            assert rows
            assert found.together is True
            return
    pytest.fail("no record holds other stages")


def test_near_is_what_changes_little_and_uses_as_many_devices() -> None:
    assert distance((4, 2), (4, 2)) == 0
    assert distance((4, 2), (8, 2)) == 1 + 1
    assert distance((4, 2), (8, 1)) == 2 + 2
    assert distance((4, 2), (1, 2)) == 1 + 2 + 2 / 4
    assert distance((4, 2), (1, 1)) == 2 + 3 + 3 / 4
    assert distance((1, 2), (4, 2)) == 1 + 2
