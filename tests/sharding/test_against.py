"""``against``: whether a later dump is what the strategies promise."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import irtool
from irtool.ir.dump import Dump
from irtool.sharding.against import Comparison, _reach, compare
from irtool.sharding.against.operators import local_shapes, plain
from irtool.sharding.check import check
from irtool.sharding.network.context import ParallelContext
from irtool.sharding.why.walk import Surroundings
from tests.sharding.network.small import Small, constant, tensor


def text_of(folder: Path, name: str) -> str:
    path = next(iter(sorted(folder.glob(f"*{name}*.ir"))))
    return path.read_text(encoding="utf-8")


def compared(folder: Path, name: str, *changes: tuple[str, str], **options: object) -> Comparison:
    """A sample's begin dump, with some text replaced, against a later dump of it."""
    text = text_of(folder, "step_parallel_begin")
    for old, new in changes:
        assert text.count(old) == 1
        text = text.replace(old, new)
    begin = irtool.load(text.encode())
    case = json.loads((folder / "case.json").read_text(encoding="utf-8"))
    context = ParallelContext.from_mapping(case["context"], **options)
    return compare(check(begin, context), begin, load(folder, name))


def load(folder: Path, name: str) -> Dump:
    return irtool.load(next(iter(sorted(folder.glob(f"*{name}*.ir")))))


@pytest.mark.parametrize("later", ["step_parallel_end", "validate"])
def test_a_dump_that_keeps_its_promise_has_no_differences(samples: Path, later: str):
    result = compared(samples / "mlp_semi_auto", later)
    assert result.differences == ()
    assert result.agrees
    assert result.total == 12
    assert result.share > 0.9


@pytest.mark.parametrize("name", ["gpt", "pipeline_run/rank_0", "pipeline_run/rank_4"])
def test_gradients_transfers_and_mirrors_are_no_differences(samples: Path, name: str):
    result = compared(samples / name, "validate")
    assert [item.message for item in result.differences] == []
    causes = {item.cause for item in result.explained}
    assert "gradients of predicted ones" in causes
    assert "sums of gradients, from the mirrors of parameters" in causes
    assert ("transfers between pipeline stages" in causes) is name.startswith("pipeline")


ROWS = "in_strategy: ((2, 4), (1, 4))"
BATCH = "in_strategy: ((8, 1), (1, 1))"


@pytest.fixture(scope="module")
def changed(samples: Path) -> Comparison:
    """The strategy of the second MatMul was changed after the dump was made."""
    folder = samples / "mlp_semi_auto"
    line = next(row for row in text_of(folder, "begin").splitlines() if ROWS in row)
    return compared(folder, "validate", (line, line.replace(ROWS, BATCH)))


def test_another_strategy_is_named_at_its_operator(changed: Comparison):
    found = [item for item in changed.differences if item.kind == "strategy"]
    assert [item.begin.id for item in found if item.begin] == ["%8"]
    assert found[0].predicted == "((8, 1), (1, 1))"
    assert found[0].actual == "((2, 4), (1, 4))"


def test_all_that_follows_from_it_says_so(changed: Comparison):
    kinds = {item.kind for item in changed.differences}
    assert kinds == {
        "strategy",
        "slice",
        "extra collective",
        "redistribution",
        "parameter slice",
        "mirror",
    }
    for item in changed.differences:
        if item.kind != "strategy":
            assert item.root is not None
            assert item.root.id == "%8"
            assert item.cause == "follows from the other strategy of MatMul %8 (((2, 4), (1, 4)))"


def test_nothing_unrelated_differs(changed: Comparison):
    touched = {item.begin.id for item in changed.differences if item.begin}
    assert touched == {"%8", "%10"}  # the MatMul, and the BiasAdd that its result goes to
    parameters = {item.parameter for item in changed.differences if item.parameter}
    assert parameters == {"mid.weight", "moments.mid.weight"}


def test_the_collective_that_is_not_promised_is_shown(changed: Comparison):
    found = next(item for item in changed.differences if item.kind == "extra collective")
    assert found.actual == "AllReduce sum (0, 1, 2, 3)"
    assert found.node is not None
    assert found.node.op == "AllReduce"


def test_another_context_shows_in_parameters_and_groups(samples: Path):
    result = compared(samples / "mlp_semi_auto", "validate", parallel_optimizer=True)
    assert {item.kind for item in result.differences} >= {"parameter slice", "optimizer parallel"}
    assert all(item.root is None for item in result.differences)


def test_what_could_not_be_compared_is_listed_with_the_reason(samples: Path):
    result = compared(samples / "mlp_semi_auto", "validate")
    assert all(item.why for item in result.unmatched)
    assert "_VirtualDataset %0" in {item.what for item in result.unmatched}


def test_operators_that_replace_others_are_compared(corpus: Path):
    name = "test_gather_v2.test_gatherv2_forward_all_reduce.1"
    for later in ("step_parallel_end", "validate"):
        assert compared(corpus / "verdicts" / name, later).agrees


def test_sums_that_do_not_tell_their_parameter_are_no_missing_mirrors(samples: Path):
    """In the body of a loop MindSpore does not say of which parameter a gradient is."""
    folder = samples / "mlp_semi_auto"
    begin = irtool.load(text_of(folder, "step_parallel_begin").encode())
    case = json.loads((folder / "case.json").read_text(encoding="utf-8"))
    report = check(begin, ParallelContext.from_mapping(case["context"]))
    text = text_of(folder, "validate")
    for name, there in (("down.weight", True), ("down.weight", False)):
        later = text.replace(f', mirror_user_id: "{name}"', "")
        if not there:  # neither is any other sum over these ranks left that tells nothing
            later = later.replace("instance name: grad_mirror_MirrorOperator", "instance name: x")
        result = compare(report, begin, irtool.load(later.encode()))
        mirrors = [item for item in result.differences if item.kind == "mirror"]
        assert bool(mirrors) is not there
        assert any(item.what == f"mirror of {name}" for item in result.unmatched) is there


EMPTY = b"""\
# IR entry: @main
# Total subgraphs: 1
# Total params: 0
subgraph @main() {
  Return(I64(1))
}
"""


def test_a_dump_that_holds_none_of_the_operators_agrees_with_nothing(samples: Path):
    folder = samples / "mlp_semi_auto"
    begin = load(folder, "step_parallel_begin")
    case = json.loads((folder / "case.json").read_text(encoding="utf-8"))
    report = check(begin, ParallelContext.from_mapping(case["context"]))
    result = compare(report, begin, irtool.load(EMPTY))
    assert result.differences == ()
    assert (result.matched, result.total) == (0, 12)
    assert result.share == 0.0
    assert not result.agrees


def test_a_comparison_agrees_only_with_what_it_compared():
    nothing_there = Comparison((), (), (), 0, 0)
    nothing_compared = Comparison((), (), (), 0, 3)
    one_compared = Comparison((), (), (), 1, 3)
    assert nothing_there.agrees
    assert not nothing_compared.agrees
    assert one_compared.agrees
    assert one_compared.share == pytest.approx(1 / 3)


@pytest.mark.parametrize(("added", "differ"), [(", ()", False), (", (1)", True)])
def test_empty_rows_behind_a_strategy_are_none(samples: Path, added: str, differ: bool):
    """MindSpore appends an empty row for a number; any other row is another strategy."""
    folder = samples / "mlp_semi_auto"
    begin = load(folder, "step_parallel_begin")
    case = json.loads((folder / "case.json").read_text(encoding="utf-8"))
    text = text_of(folder, "validate")
    applied = "} {in_strategy: ((2, 4), (1, 4))}"
    assert applied in text
    later = text.replace(applied, applied.replace("))}", f"){added})}}"))
    report = check(begin, ParallelContext.from_mapping(case["context"]))
    found = compare(report, begin, irtool.loads(later, "20_validate_0080.ir"))
    assert any(item.kind == "strategy" for item in found.differences) is differ


def test_what_an_excerpt_does_not_hold_is_not_compared(samples: Path):
    begin = irtool.load(samples / "search_page_step_parallel_begin.ir")
    later = irtool.load(samples / "search_page_validate.ir")
    found = compare(check(begin, ParallelContext(devices=8)), begin, later)
    assert found.differences == ()
    reasons = {item.what: item.why for item in found.unmatched}
    edge = "redistribution from Flatten %2 to MatMul %4"
    assert reasons[edge] == "the later dump does not hold what %14 takes there"
    assert reasons["Flatten %2"] == "it is not in the later dump, which is an excerpt"
    # Its last statement has lost the comment with its scope, and is there all the same.
    assert not any(what.startswith("ReLU") for what in reasons)
    assert found.matched == 3


def test_a_tuple_of_numbers_is_as_long_as_the_tensor_that_it_was():
    """What FFNExt is given of tokens for each expert: eight numbers, in both dumps."""
    numbers = "<Tuple[Int64*3], TupleShape(NoShape, NoShape, NoShape)>"
    text = (
        "# IR entry: @main\n# Total subgraphs: 1\n\n# Attrs:\n\n# Total params: 2\n# Params:\n"
        "%para1_x: <Tensor[Float16], (16, 64)> : [16, 64]\n"
        "%para2_n: <Tensor[Int64], (3)> : [3]\n\n"
        "subgraph attr:\nsubgraph instance: main : 0x1\nsubgraph @main() {\n"
        "  %0(n) = PrimFunc_TensorToTuple(%para2_n)\n"
        f"      : (<Tensor[Int64], (3)>) -> ({numbers})\n"
        "  %1(y) = PrimFunc_FFNExt(%para1_x, %0)\n"
        f"      : (<Tensor[Float16], (16, 64)>, {numbers}) -> (<Tensor[Float16], (16, 64)>)\n"
        "  Return(%1)\n      : (<Tensor[Float16], (16, 64)>)\n}\n"
    )
    node = next(node for node in irtool.loads(text).nodes() if node.op == "FFNExt")
    assert local_shapes(node) == (((16, 64), (3,)), ((16, 64),))


def reached(*roots: str) -> dict[str, str]:
    """The operators of a small chain that follow from others', each with the other."""
    net = Small()
    x, w = net.input("x", (16, 4)), net.weight("w", (4, 4))
    main = net.graph("main")
    first = main.op("ReLU", x, (16, 4))  # %0
    before = main.reshape(first, (8, 2, 4))  # %1
    again = main.reshape(before, (16, 4))  # %2
    product = main.product(again, w, (16, 4))  # %3
    small = main.add("PrimFunc_Cast", [product, constant(42)], tensor((16, 4)))  # %4
    flat = main.reshape(small, (64,))  # %5
    main.result = main.op("Neg", flat, (64,))  # %6
    dump = net.dump()
    around = Surroundings(dump, dump.whole(), {}, {}, {}, before=dump.whole())
    nodes = {node.id: node for node in dump.nodes()}
    found = _reach([nodes[root] for root in roots], around)
    return {node.id: root.id for node, root in found.items()}


def test_reshapes_and_casts_around_an_operator_follow_from_it() -> None:
    assert reached("%3") == dict.fromkeys(("%1", "%2", "%3", "%4", "%5"), "%3")


def test_each_follows_from_one() -> None:
    found = reached("%3", "%6")
    assert set(found) >= {"%1", "%2", "%3", "%4", "%5", "%6"}
    assert (found["%3"], found["%6"]) == ("%3", "%6")
    assert set(found.values()) == {"%3", "%6"}
    assert found["%1"] == found["%2"] == "%3"


def test_without_the_earlier_dump_nothing_else_follows() -> None:
    dump = irtool.loads("")
    assert _reach([], Surroundings(dump, dump.whole(), {}, {}, {})) == {}


@pytest.mark.parametrize(
    ("strategy", "rows"),
    [
        (((1, 2), (3, 4)), ((1, 2), (3, 4))),
        ((((1, 2), (3, 4)), (5,)), ((1, 2), (3, 4), (5,))),  # the first input is a tuple
        ([[1, 2], []], ((1, 2), ())),
        (((), ((1,),)), ((), (1,))),
        (None, None),
    ],
)
def test_strategies_of_inputs_that_are_tuples_stand_in_line(strategy: object, rows: object) -> None:
    assert plain(strategy) == rows
