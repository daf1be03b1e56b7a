"""How values are followed through a network, on small dumps written for it."""

from __future__ import annotations

import pytest

import irtool
from irtool.sharding.check import check
from irtool.sharding.network.context import ParallelContext
from irtool.sharding.network.report import CheckResult
from tests.sharding.network.small import Small, constant, tensor

SIZE = "<Tensor[Float32], (64, 64)>"


def relu(number: int, source: str, strategy: str) -> str:
    """One ReLU with its type line."""
    return (
        f"  %{number}(out{number}) = PrimFunc_ReLU({source}) {{instance name: relu}} "
        f"primitive_attrs: {{in_strategy: ({strategy})}}\n      : ({SIZE}) -> ({SIZE})\n"
    )


def dump_of(*graphs: str) -> str:
    """A dump whose entry is the last graph, called main, with one input."""
    head = (
        "# IR entry: @main\n# Total subgraphs: {count}\n\n# Attrs:\n\n"
        "# Total params: 1\n# Params:\n"
        f"%para1_x: {SIZE} : [64, 64]\n\n"
    )
    return head.format(count=len(graphs)) + "\n\n".join(graphs) + "\n"


def graph(name: str, body: str, result: str, parameters: str = "") -> str:
    return (
        f"subgraph attr:\nsubgraph instance: {name} : 0x1\n"
        f"subgraph @{name}({parameters}) {{\n{body}  Return({result})\n      : ({SIZE})\n}}\n"
    )


def checked(text: str, **options: object) -> CheckResult:
    values: dict[str, object] = {"device_num": 8, "full_batch": True, **options}
    dump = irtool.loads(text, "net.ir")
    assert not dump.problems
    return check(dump, ParallelContext.from_mapping(values))


def chains(report: CheckResult) -> list[tuple[str, str, list[str]]]:
    """Producer, consumer, operators; a result of the network is called Return."""
    return [
        (item.producer.id, item.consumer.id, [step.op for step in item.operators or ()])
        for item in report.redistributions
        if not item.consumer.is_return
    ]


def test_an_edge_within_a_graph() -> None:
    body = relu(0, "%para1_x", "(8, 1)") + relu(1, "%0", "(1, 8)")
    report = checked(dump_of(graph("main", body, "%1")))
    assert report.accepted
    assert chains(report) == [("%0", "%1", ["AllGather", "StridedSlice"])]


def test_all_to_all_is_off_unless_asked_for() -> None:
    body = relu(0, "%para1_x", "(8, 1)") + relu(1, "%0", "(1, 8)")
    report = checked(dump_of(graph("main", body, "%1")), enable_alltoall="True")
    assert chains(report)[0][2] == ["Reshape", "AlltoAll", "Reshape"] or chains(report)[0][2] == [
        "AlltoAll"
    ]


def test_equal_layouts_need_nothing() -> None:
    body = relu(0, "%para1_x", "(4, 2)") + relu(1, "%0", "(4, 2)")
    assert chains(checked(dump_of(graph("main", body, "%1")))) == [("%0", "%1", [])]


def test_an_edge_into_a_called_graph_and_out_of_it() -> None:
    inner = graph("inner", relu(0, "%para2_y", "(1, 8)"), "%0", "%para2_y")
    call = f"  %1(c) = call @inner(%0)\n      : ({SIZE}) -> ({SIZE})\n"
    body = relu(0, "%para1_x", "(8, 1)") + call + relu(2, "%1", "(8, 1)")
    report = checked(dump_of(inner, graph("main", body, "%2")))
    edges = {
        (item.producer.graph.name, item.consumer.graph.name)
        for item in report.redistributions
        if item.producer.graph and item.consumer.graph and not item.consumer.is_return
    }
    assert edges == {("main", "inner"), ("inner", "main")}


def test_tuples_are_seen_through() -> None:
    pair = "<Tuple[Tensor[Float32]*2], TupleShape((64, 64), (64, 64))>"
    body = (
        relu(0, "%para1_x", "(8, 1)")
        + relu(1, "%para1_x", "(4, 1)")
        + f"  %2(t) = MakeTuple(%0, %1)\n      : ({SIZE}, {SIZE}) -> ({pair})\n"
        + f"  %3(g) = TupleGetItem(%2, I64(1))\n      : ({pair}, <Int64, NoShape>) -> ({SIZE})\n"
        + relu(4, "%3", "(1, 8)")
    )
    report = checked(dump_of(graph("main", body, "%4")))
    assert [(a, b) for a, b, _ in chains(report)] == [("%1", "%4")]


def test_the_first_refusal_is_that_of_the_operator_that_comes_first() -> None:
    body = relu(0, "%para1_x", "(3, 1)") + relu(1, "%0", "(1, 5)")
    report = checked(dump_of(graph("main", body, "%1")))
    assert report.accepted is False
    assert [item.line for item in report.findings] == sorted(i.line for i in report.findings)
    assert report.findings[0].code == "not-divisible"


@pytest.mark.parametrize(("full_batch", "split"), [(True, 1), (False, 8)])
def test_results_of_an_evaluation_come_with_their_batch_split(full_batch: bool, split: int) -> None:
    body = relu(0, "%para1_x", "(1, 1)")
    report = checked(dump_of(graph("main", body, "%0")), full_batch=full_batch)
    (last,) = [item for item in report.redistributions if item.consumer.is_return]
    assert last.target is not None
    assert last.target.splits == (split, 1)


def test_a_reshape_lies_like_its_neighbours() -> None:
    reshaped = "<Tensor[Float32], (4096)>"
    body = (
        relu(0, "%para1_x", "(8, 1)")
        + "  %1(r) = PrimFunc_Reshape(%0, (I64(4096))) {instance name: reshape}\n"
        + f"      : ({SIZE}, <Tuple[Int64], TupleShape(NoShape)>) -> ({reshaped})\n"
        + "  %2(e) = PrimFunc_Exp(%1) {instance name: exp} primitive_attrs: {in_strategy: ((8))}\n"
        + f"      : ({reshaped}) -> ({reshaped})\n"
    )
    report = checked(dump_of(graph("main", body, "%2")))
    (chain,) = [item for item in report.redistributions if item.replaces]
    assert chain.source is not None
    assert chain.target is not None
    assert (chain.source.slice_shape, chain.target.slice_shape) == ((8, 64), (512,))
    assert [step.op for step in chain.operators or ()] == ["Reshape"]


def test_a_format_that_is_none_is_refused() -> None:
    body = relu(0, "%para1_x", "8, 1")
    report = checked(dump_of(graph("main", body, "%0")))
    assert report.accepted is False
    assert report.findings[0].code == "format"


def test_collectives_of_the_users_own_are_refused() -> None:
    body = relu(0, "%para1_x", "(8, 1)") + (
        f"  %1(r) = AllReduce(%0) {{instance name: mine}}\n      : ({SIZE}) -> ({SIZE})\n"
    )
    report = checked(dump_of(graph("main", body, "%1")))
    assert report.accepted is False
    assert report.findings[0].code == "communication"


@pytest.mark.parametrize("tie", ["MakeTuple", "make_list"])
def test_what_is_tied_together_is_redistributed_before_the_tie(tie: str) -> None:
    both = "<Tuple[Tensor[Float32]*2], TupleShape((64, 64), (64, 64))>"
    body = relu(0, "%para1_x", "(8, 1)") + (
        f"  %1(both) = {tie}(%0, %0)\n      : ({SIZE}, {SIZE}) -> ({both})\n"
        "  %2(sum) = PrimFunc_AddN(%1) {instance name: sum} "
        "primitive_attrs: {in_strategy: ((4, 1), (4, 1))}\n"
        f"      : ({both}) -> ({SIZE})\n"
    )
    report = checked(dump_of(graph("main", body, "%2")))
    found = [item for item in report.redistributions if not item.consumer.is_return]
    assert [item.item for item in found] == [0, 1]
    for item in found:
        assert item.tie is not None
        assert [step.op for step in item.operators or ()] == ["AllGather"]


def test_a_whole_part_beside_an_axis_is_a_dimension_of_its_own() -> None:
    layout = "{'device_matrix': (8), 'tensor_map': (-1, (0, -1)), 'interleaved_parallel': false}"
    body = (
        f"  %0(out) = PrimFunc_ReLU(%para1_x) {{instance name: relu}} "
        f"primitive_attrs: {{in_strategy: ((1, 1))}}\n      : ({SIZE}) -> ({SIZE})\n"
        f"  %1(out) = PrimFunc_ReLU(%0) {{instance name: relu}} "
        f"primitive_attrs: {{in_layout: ({layout})}}\n      : ({SIZE}) -> ({SIZE})\n"
    )
    report = checked(dump_of(graph("main", body, "%1")))
    assert chains(report) == [("%0", "%1", ["Reshape", "StridedSlice", "Reshape"])]


@pytest.mark.parametrize(("entry", "known"), [("(1, 0)", True), ("(2, 0, 1)", False)])
def test_parts_that_do_not_lie_beside_each_other(entry: str, known: bool) -> None:
    matrix = "(8, 2)" if known else "(4, 2, 2)"
    layout = f"{{'device_matrix': {matrix}, 'tensor_map': ({entry}, -1), "
    body = (
        f"  %0(out) = PrimFunc_ReLU(%para1_x) {{instance name: relu}} primitive_attrs: "
        f"{{in_layout: ({layout}'interleaved_parallel': true}})}}\n      : ({SIZE}) -> ({SIZE})\n"
    ) + relu(1, "%0", "(8, 1)")
    (edge,) = (
        item
        for item in checked(dump_of(graph("main", body, "%1"))).redistributions
        if not item.consumer.is_return
    )
    assert (edge.operators == ()) is known
    assert bool(edge.why) is not known


LOOP = """\
# Total params: 1
# Params:
%para1_inputs0: <Tensor[Float32], (32, 64)> : [32, 64]

subgraph @2_header parent: [subgraph @1_net](%para2_i, %para3_x) {
  %0(c) = PrimFunc_Less(%para2_i, Tensor(shape=[], dtype=Int32, value=3))
      : (<Tensor[Int32], ()>, <Tensor[Int32], ()>) -> (<Tensor[Bool], ()>)
  %1(s) = Switch(%0, @3_body, @5_after)
      : (<Tensor[Bool], ()>, <Func, NoShape>, <Func, NoShape>) -> (<Func, NoShape>)
  %2(r) = %1[@FuncUnion(@3_body, @5_after)]()
      : () -> (<Tensor[Float32], (32, 64)>)
  Return(%2)
      : (<Tensor[Float32], (32, 64)>)
}

subgraph @3_body parent: [subgraph @2_header]() {
  %0(i) = PrimFunc_Add($(@2_header:para2_i), Tensor(shape=[], dtype=Int32, value=1))
      : (<Tensor[Int32], ()>, <Tensor[Int32], ()>) -> (<Tensor[Int32], ()>)
  %1(y) = PrimFunc_ReLU($(@2_header:para3_x)) primitive_attrs: {in_strategy: ((8, 1))}
      : (<Tensor[Float32], (32, 64)>) -> (<Tensor[Float32], (32, 64)>)
  %2(r) = call @2_header(%0, %1)
      : (<Tensor[Int32], ()>, <Tensor[Float32], (32, 64)>) -> (<Tensor[Float32], (32, 64)>)
  Return(%2)
      : (<Tensor[Float32], (32, 64)>)
}

subgraph @5_after parent: [subgraph @2_header]() {
  %0(z) = PrimFunc_Tanh($(@2_header:para3_x)) primitive_attrs: {in_strategy: ((1, 8))}
      : (<Tensor[Float32], (32, 64)>) -> (<Tensor[Float32], (32, 64)>)
  Return(%0)
      : (<Tensor[Float32], (32, 64)>)
}

subgraph @1_net() {
  %0(v) = _VirtualDataset(%para1_inputs0) {instance name: _VirtualDataset}
      : (<Tensor[Float32], (32, 64)>) -> (<Tuple[Tensor[Float32]], TupleShape((32, 64))>)
  %1(x) = TupleGetItem(%0, I64(0))
      : (<Tuple[Tensor[Float32]], TupleShape((32, 64))>, <Int64, NoShape>) -> (<Tensor[Float32], (32, 64)>)
  %2(r) = call @2_header(Tensor(shape=[], dtype=Int32, value=0), %1)
      : (<Tensor[Int32], ()>, <Tensor[Float32], (32, 64)>) -> (<Tensor[Float32], (32, 64)>)
  Return(%2)
      : (<Tensor[Float32], (32, 64)>)
}
"""  # noqa: E501  (lines as MindSpore prints them)


def test_what_a_loop_hands_to_its_next_round_is_not_redistributed() -> None:
    report = check(irtool.loads(LOOP), ParallelContext(devices=8, full_batch=True))
    edges = [
        (item.producer.op, item.consumer.op, [step.op for step in item.operators or ()])
        for item in report.redistributions
        if item.producer.op != "Add"
    ]
    assert sorted(edges) == [
        ("_VirtualDataset", "ReLU", ["StridedSlice"]),
        ("_VirtualDataset", "Tanh", ["StridedSlice"]),
    ]


def received(strategy: str, part: str, wanted: str) -> CheckResult:
    """What is said of a ReLU behind a Receive, on the second of two stages with eight devices."""
    body = (
        "  %0(got) = Receive(%para1_x) {instance name: Receive} primitive_attrs: {shape: "
        f"[{part}], src_rank: I64(0), sr_tag: I64(0)}} cnode_primal_attrs: {{micro: I64(0)}} "
        f"{{in_strategy: ({strategy})}}\n      : ({SIZE}) -> ({SIZE})\n"
    ) + relu(1, "%0", wanted)
    text = dump_of(graph("main", body, "%1"))
    return checked(text, device_num=16, pipeline_stages=2, global_rank=9)


@pytest.mark.parametrize(
    ("strategy", "part", "wanted", "operators"),
    [
        ("(8, 1), (8, 1)", "8, 64", "(4, 1)", ["AllGather"]),
        ("(8, 1), (8, 1)", "8, 64", "(8, 1)", []),
        ("(4, 1), (1, 1)", "16, 64", "(8, 1)", ["StridedSlice"]),
        ("(2, 4), (4, 1)", "32, 64", "(2, 1)", []),
        ("(2, 4), (1, 4)", "32, 64", "(4, 1)", ["StridedSlice"]),
    ],
)
def test_what_another_stage_sends_lies_as_its_operator_left_it(
    strategy: str, part: str, wanted: str, operators: list[str]
) -> None:
    found = received(strategy, part, wanted).redistributions
    steps = [
        step.op for item in found if item.producer.op == "Receive" for step in item.operators or ()
    ]
    assert steps == operators


def test_what_several_operators_may_have_sent_is_not_known() -> None:
    # A sum leaves (2, 2) on neighbours, a product with what it adds up between both.
    report = received("(2, 2), (2, 2)", "32, 32", "(2, 1)")
    (edge,) = [item for item in report.redistributions if item.producer.op == "Receive"]
    assert edge.operators is None
    assert "does not tell which operator" in edge.why
    assert report.communications_unknown == ("what is redistributed on an edge is not known",)


def test_slices_that_come_as_they_are_wanted_stay() -> None:
    assert not received("(2, 2), (2, 2)", "32, 32", "(2, 2)").communications_unknown


# -- what is not known, and why --------------------------------------------------------------------


@pytest.mark.parametrize(
    ("first", "then", "why"),
    [
        ("(3, 1)", "(8, 1)", "the layouts of %0 ReLU are not known"),
        ("(8, 1)", "(3, 1)", "the layouts of %1 ReLU are not known"),
        ("(3, 1)", "(3, 1)", "the layouts of %0 ReLU are not known"),  # the first one is told
        ("(8, 1)", "(1, 8)", ""),
    ],
)
def test_beside_a_refused_operator_nothing_is_known_and_it_is_said_whose_layout(
    first: str, then: str, why: str
) -> None:
    body = relu(0, "%para1_x", first) + relu(1, "%0", then)
    report = checked(dump_of(graph("main", body, "%1")))
    (item,) = [item for item in report.redistributions if not item.consumer.is_return]
    assert item.why == why
    assert (item.operators is None) is bool(why)


# -- Reshapes that are not to redistribute ---------------------------------------------------------


MOVED = ["AllGather", "Split", "Concat", "Reshape", "StridedSlice"]


@pytest.mark.parametrize(
    ("skip", "steps"),
    [
        ("", MOVED),
        ("skip_redistribution: Bool(0)", MOVED),
        ("skip_redistribution: Bool(1)", ["Reshape"]),
    ],
)
def test_a_reshape_that_skips_redistribution_reshapes_the_slice(
    skip: str, steps: list[str]
) -> None:
    net = Small()
    x = net.input("x", (64, 64))
    main = net.graph("main")
    cut = main.op("Exp", x, (64, 64), [(1, 8)])
    flat = main.add("PrimFunc_Reshape", [cut, constant((4096,))], tensor((4096,)), attributes=skip)
    main.result = main.op("ReLU", flat, (4096,), [(8,)])
    (chain,) = [item for item in net.checked().redistributions if item.replaces]
    assert [step.op for step in chain.operators or ()] == steps
    last = (chain.operators or ())[-1]
    assert last.output_shape == (512,)


def test_a_reshape_between_whole_tensors_needs_nothing() -> None:
    net = Small()
    x = net.input("x", (64, 64))
    main = net.graph("main")
    whole = main.op("Exp", x, (64, 64), [(1, 1)])
    main.result = main.op("ReLU", main.reshape(whole, (4096,)), (4096,), [(1,)])
    (chain,) = [item for item in net.checked().redistributions if item.replaces]
    assert chain.operators == ()
