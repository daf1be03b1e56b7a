"""Launch order: as real runs wrote it down, and true to the graph for any dump."""

from __future__ import annotations

from itertools import combinations
from pathlib import Path

import pytest

import irtool
from irtool.cluster.launch_order import call_waits, launch_order, launches, launches_nothing
from irtool.cluster.liveness import curve, liveness
from irtool.ir.dump import Dump

NETS = (
    "mlp_momentum", "cnn_momentum", "cnn_adam", "transformer_momentum", "transformer_adam",
)  # fmt: skip


def executed(path: Path) -> list[str]:
    """Full names in the order of execution, as MindSpore's tensor dump records it."""
    return path.read_text().split("\n")[1:-1]


def agreement(ordered: list[str], truth: list[str]) -> float:
    """Share of pairs of operators that stand in the same order in both."""
    place = {name: number for number, name in enumerate(truth)}
    common = [place[name] for name in ordered if name in place]
    pairs = [first < second for first, second in combinations(common, 2)]
    return sum(pairs) / len(pairs)


def full_names(dump: Dump, order: str = "bfs") -> list[str]:
    nodes = launch_order(dump) if order == "bfs" else dump.nodes()
    return [node.full_name or "" for node in nodes]


@pytest.mark.parametrize("net", NETS)
def test_order_is_the_one_a_real_run_wrote(net: str, samples: Path) -> None:
    folder = samples / "execution_order"
    dump = irtool.load(folder / f"{net}.ir.xz")
    assert full_names(dump) == executed(folder / f"{net}.csv")


@pytest.mark.parametrize("net", NETS)
def test_printed_order_is_another(net: str, samples: Path) -> None:
    folder = samples / "execution_order"
    dump = irtool.load(folder / f"{net}.ir.xz")
    assert agreement(full_names(dump, "dump"), executed(folder / f"{net}.csv")) < 0.99


@pytest.mark.parametrize("net", NETS)
def test_peak_memory_is_that_of_the_real_order(net: str, samples: Path) -> None:
    folder = samples / "execution_order"
    whole = irtool.load(folder / f"{net}.ir.xz").whole()
    by_name = {item.node.full_name: item for item in whole.nodes}
    real = [by_name[name] for name in executed(folder / f"{net}.csv")]
    ours, truth, printed = liveness(whole), liveness(whole, real), liveness(whole, "dump")
    peaks = [max(curve(found.buffers, len(real))) for found in (ours, truth, printed)]
    assert peaks[0] == peaks[1] != peaks[2]


@pytest.mark.parametrize("run", ["reference", "half_matmul"])
def test_corpus_agrees_with_recorded_orders(run: str, corpus: Path) -> None:
    folder = corpus / "precision" / "mindspore_cpu" / run
    truth = executed(folder / "rank_0/execution_order/ms_execution_order_graph_0.csv")
    kernels = irtool.load(folder / "rank_0/graphs/ms_output_trace_code_graph_0.ir")
    validate = irtool.load(folder / "ir/20_validate_0074.ir")
    assert agreement(full_names(kernels), truth) == 1.0
    assert agreement(full_names(validate), truth) >= 0.99


ANY = (
    "gpt/20_validate_0080.ir",
    "pipeline_run/rank_0/20_validate_0080.ir",
    "recompute/20_validate_0081.ir",
    "optimizer_parallel/19_validate_0078.ir",
    "control_flow/01_type_inference_0001.ir",
    "search_page_validate.ir",
)


@pytest.mark.parametrize("method", ["bfs", "dfs"])
@pytest.mark.parametrize("path", ANY)
def test_no_node_is_lost_and_none_runs_before_its_inputs(
    path: str, method: str, samples: Path
) -> None:
    whole = irtool.load(samples / path).whole()
    ordered = launches(whole, "bfs" if method == "bfs" else "dfs")
    launched = [item for item in whole.nodes if not launches_nothing(item.op)]
    assert sorted(item.index for item in ordered) == [item.index for item in launched]
    place = {item: number for number, item in enumerate(ordered)}
    for item in ordered:
        for producer in item.producers:
            assert producer not in place or place[producer] < place[item]


def test_late_start_of_what_could_run_at_once() -> None:
    """An operator that depends on nothing starts when what it is for is near."""
    dump = irtool.load(
        b"""# IR entry: @main
# Total subgraphs: 1
subgraph @main() {
  %0(a) = PrimFunc_ReLU(%para1_x)
      : (<Tensor[Float32], (4, 4)>) -> (<Tensor[Float32], (4, 4)>)
  %1(early) = PrimFunc_Ones((I64(4), I64(4)), I64(43))
      : (<Tuple[Int64*2], TupleShape(NoShape, NoShape)>, <Int64, NoShape>) -> (<Tensor[Float32], (4, 4)>)
  %2(b) = PrimFunc_Exp(%0)
      : (<Tensor[Float32], (4, 4)>) -> (<Tensor[Float32], (4, 4)>)
  %3(c) = PrimFunc_Abs(%2)
      : (<Tensor[Float32], (4, 4)>) -> (<Tensor[Float32], (4, 4)>)
  %4(d) = PrimFunc_Add(%3, %1)
      : (<Tensor[Float32], (4, 4)>, <Tensor[Float32], (4, 4)>) -> (<Tensor[Float32], (4, 4)>)
  Return(%4)
      : (<Tensor[Float32], (4, 4)>)
}
"""  # noqa: E501  # a type line cannot be broken
    )
    assert [node.op for node in launch_order(dump)] == ["ReLU", "Exp", "Abs", "Ones", "Add"]


CALLED = """# IR entry: @main
%para1_x: <Tensor[Float32], (4)> : [4]
subgraph @main() {
  %0(a) = PrimFunc_ReLU(%para1_x)
      : (<Tensor[Float32], (4)>) -> (<Tensor[Float32], (4)>)
  %1(b) = PrimFunc_Tanh(%para1_x)
      : (<Tensor[Float32], (4)>) -> (<Tensor[Float32], (4)>)
  %2(c) = Depend(%0, %1)
      : (<Tensor[Float32], (4)>, <Tensor[Float32], (4)>) -> (<Tensor[Float32], (4)>)
  %3(d) = call @outer(%2, %para1_x)
      : (<Tensor[Float32], (4)>, <Tensor[Float32], (4)>) -> (<Tensor[Float32], (4)>)
  Return(%3)
}
subgraph @outer(%para2_p, %para3_q) {
  %0(e) = call @inner(%para3_q)
      : (<Tensor[Float32], (4)>) -> (<Tensor[Float32], (4)>)
  %1(f) = PrimFunc_Add(%0, %para2_p)
      : (<Tensor[Float32], (4)>, <Tensor[Float32], (4)>) -> (<Tensor[Float32], (4)>)
  Return(%1)
}
subgraph @inner(%para4_r) {
  %0(g) = PrimFunc_Exp(%para4_r)
      : (<Tensor[Float32], (4)>) -> (<Tensor[Float32], (4)>)
  %1(h) = PrimFunc_Abs(%0)
      : (<Tensor[Float32], (4)>) -> (<Tensor[Float32], (4)>)
  Return(%1)
}
"""


def test_the_first_nodes_of_a_call_wait_for_the_arguments_that_only_order() -> None:
    """Exp is given x, and yet waits as the call around it does; Abs and Add follow from it."""
    nodes = irtool.load(CALLED.encode()).whole().nodes
    waits = {item.op: [one.op for one in ones] for item, ones in call_waits(nodes).items()}
    assert waits == {"Exp": ["Depend"]}


def test_a_joined_view_keeps_each_rank_in_its_own_order(samples: Path) -> None:
    from irtool.ir.whole.inlining import join

    dumps = {
        rank: irtool.load(samples / f"pipeline_run/rank_{rank}/20_validate_0080.ir")
        for rank in (0, 4)
    }
    together = launches(join(dumps))
    for rank, dump in dumps.items():
        alone = [item.node.line for item in launches(dump)]
        assert [item.node.line for item in together if item.source == rank] == alone


def test_an_empty_dump_launches_nothing() -> None:
    assert launch_order(irtool.load(b"# IR entry: @main\n")) == ()
