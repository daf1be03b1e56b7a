"""``why``: the cause of collectives, slices, concats and splits."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import pytest

import irtool
from irtool.ir.collectives import is_collective
from irtool.ir.dump import Dump
from irtool.ir.graph import Node
from irtool.sharding.check import check
from irtool.sharding.network.context import ParallelContext
from irtool.sharding.network.report import CheckResult
from irtool.sharding.why import Cause, explain, explain_all


def of_pass(folder: Path, name: str) -> Dump:
    return irtool.load(next(iter(sorted(folder.glob(f"*{name}*.ir")))))


def checked(folder: Path) -> tuple[Dump, CheckResult]:
    begin = of_pass(folder, "step_parallel_begin")
    case = json.loads((folder / "case.json").read_text(encoding="utf-8"))
    return begin, check(begin, ParallelContext.from_mapping(case["context"]))


def all_of(folder: Path) -> tuple[Cause, ...]:
    """Every cause in a sample's validate dump, with its begin dump."""
    begin, report = checked(folder)
    return explain_all(of_pass(folder, "validate"), report, begin)


def alone(folder: Path) -> tuple[Cause, ...]:
    return explain_all(of_pass(folder, "validate"))


def forward(causes: Sequence[Cause], kind: str) -> list[Cause]:
    return [
        cause
        for cause in causes
        if cause.kind == kind and not cause.is_gradient and not cause.is_recomputed
    ]


@pytest.fixture(scope="module")
def mlp(samples: Path) -> tuple[Cause, ...]:
    return all_of(samples / "mlp_semi_auto")


def only(nodes: Sequence[Node]) -> Node:
    assert len(nodes) == 1
    return nodes[0]


# -- partial sums --------------------------------------------------------------------------------


def test_an_allreduce_adds_up_the_partial_results_of_a_matmul(mlp: tuple[Cause, ...]):
    cause = forward(mlp, "forward reduction")[0]
    assert cause.operator is not None
    assert cause.operator.op == "MatMul"
    assert (cause.op, cause.ranks) == ("AllReduce", (0, 1, 2, 3))
    assert (cause.bytes, cause.times, cause.bytes_per_step) == (32 * 512 * 4, 1, 65536)
    assert cause.begin is not None
    assert (cause.begin.id, cause.begin.line) == ("%8", 75)
    assert cause.location is not None
    assert (cause.location.path, cause.location.line) == (
        "net.py",
        33,
    )


def test_sharding_the_batch_instead_of_the_contracted_dimension_removes_it(
    mlp: tuple[Cause, ...],
):
    cause = forward(mlp, "forward reduction")[0]
    assert "((8, 1), (1, 1)) instead of ((2, 4), (1, 4))" in cause.remedy


def test_a_loss_over_a_cut_batch_can_not_do_without(mlp: tuple[Cause, ...]):
    cause = forward(mlp, "forward reduction")[1]
    assert cause.operator is not None
    assert cause.operator.op == "ReduceMean"
    assert "no legal strategy without it" in cause.remedy


def test_its_gradient_leads_back_to_it(mlp: tuple[Cause, ...]):
    gradient = next(c for c in mlp if c.kind == "forward reduction" and c.is_gradient)
    first = forward(mlp, "forward reduction")[0]
    assert gradient.forward is first.node
    assert gradient.operator is first.operator
    assert gradient.remedy == first.remedy


# -- redistributions -----------------------------------------------------------------------------


def test_a_gather_stands_between_two_layouts(mlp: tuple[Cause, ...]):
    cause = next(c for c in forward(mlp, "redistribution") if c.op == "AllGather")
    assert cause.operator is not None
    assert cause.operator.op == "ReLU"
    assert cause.consumer is not None
    assert cause.consumer.op == "MatMul"
    assert cause.source is not None
    assert cause.source.splits == (2, 4)
    assert cause.target is not None
    assert cause.target.splits == (8, 1)


def test_the_producer_s_layout_or_the_consumer_s_removes_it(mlp: tuple[Cause, ...]):
    cause = next(c for c in forward(mlp, "redistribution") if c.op == "AllGather")
    assert "((2, 4), (1, 4)) instead of ((8, 1), (1, 1)) (which brings AllReduce)" in cause.remedy
    assert "((8, 1),) instead of ((2, 4),)" in cause.remedy


def test_slices_splits_and_concats_of_a_chain_have_one_cause(mlp: tuple[Cause, ...]):
    chain = [
        cause.node.op
        for cause in forward(mlp, "redistribution")
        if cause.consumer is not None and cause.consumer.op == "MatMul"
    ]
    assert chain == ["AllGather", "Split", "Concat", "StridedSlice"]


def test_a_slice_of_an_input_is_what_the_rank_reads(mlp: tuple[Cause, ...]):
    causes = forward(mlp, "dataset")
    assert [cause.parameter for cause in causes] == ["inputs0", "inputs1"]
    assert "dataset_strategy" in causes[0].remedy


# -- parameters ----------------------------------------------------------------------------------


def test_a_mirror_sums_the_gradient_of_a_replicated_weight(mlp: tuple[Cause, ...]):
    causes = {cause.parameter: cause for cause in mlp if cause.kind == "mirror"}
    assert causes["up.weight"].ranks == (0, 4)
    assert "enable_parallel_optimizer=True" in causes["up.weight"].remedy
    assert "below parallel_optimizer_threshold" in causes["up.bias"].remedy


def test_optimizer_parallel_gathers_weights_and_scatters_gradients(samples: Path):
    causes = [c for c in alone(samples / "optimizer_parallel") if c.kind == "optimizer parallel"]
    assert Counter((c.op, c.parameter) for c in causes) == {
        (op, name): 1
        for op in ("AllGather", "ReduceScatter")
        for name in ("layers.0.up", "layers.0.down")
    }


# -- later passes ----------------------------------------------------------------------------------


def test_recomputation_copies_a_collective(samples: Path):
    copies = [cause for cause in alone(samples / "recompute") if cause.is_recomputed and cause.op]
    cause = copies[0]
    assert cause.forward is not None
    assert cause.forward.op == "AllReduce"
    assert cause.kind == "forward reduction"
    assert "mp_comm_recompute=False" in cause.remedy


def test_a_pipeline_sends_and_receives_and_cuts_micro_batches(samples: Path):
    causes = alone(samples / "pipeline_run" / "rank_0")
    sent = [(cause.op, cause.micro, cause.is_gradient) for cause in causes if cause.op == "Send"]
    assert sent == [("Send", 0, False), ("Send", 1, False)]
    received = [cause for cause in causes if cause.op == "Receive"]
    assert all(cause.kind == "pipeline" and cause.is_gradient for cause in received)
    assert [cause.micro for cause in causes if cause.kind == "micro-batch"] == [0, 1]


def test_accumulated_gradients_cut_the_batch(samples: Path):
    causes = alone(samples / "grad_accumulation")
    cuts = [cause.micro for cause in causes if cause.kind == "gradient accumulation"]
    assert cuts == [0, 0, 1, 1]


# -- what is known -------------------------------------------------------------------------------


def test_the_validate_dump_alone_names_operators_and_strategies(samples: Path):
    causes = alone(samples / "mlp_semi_auto")
    cause = next(c for c in forward(causes, "redistribution") if c.op == "AllGather")
    assert cause.message == "redistribution from ReLU %12 to MatMul %25"
    assert "ReLU %12 has ((2, 4),), MatMul %25 has ((8, 1), (1, 1))" in cause.remedy
    assert cause.source is None
    assert cause.begin is None
    assert "no begin dump was given" in cause.missing[-1]


def test_the_users_own_operators_say_so(samples: Path):
    dump = of_pass(samples / "mlp_semi_auto", "validate")
    cause = explain(only(list(dump.nodes("Sub"))), dump)
    assert cause.kind == "user code"
    assert cause.location is not None
    assert cause.location.line == 46


def test_any_node_has_an_answer(samples: Path):
    dump = of_pass(samples / "gpt", "validate")
    assert all(explain(node, dump).message for node in list(dump.nodes())[::97])


def test_step_parallel_end_is_explained_too(samples: Path):
    folder = samples / "mlp_semi_auto"
    begin, report = checked(folder)
    causes = explain_all(of_pass(folder, "step_parallel_end"), report, begin)
    kinds = Counter(cause.kind for cause in causes if is_collective(cause.node))
    assert kinds == {"mirror": 6, "forward reduction": 2, "redistribution": 1}


@pytest.mark.parametrize("name", ["gpt", "mlp_semi_auto", "pipeline_run/rank_0"])
def test_nothing_stays_unknown(samples: Path, name: str):
    assert [cause for cause in all_of(samples / name) if cause.kind == "unknown"] == []


def test_an_operator_s_own_sharded_form_is_its_cause(corpus: Path):
    folder = corpus / "verdicts" / "test_gather_v2.test_gatherv2_forward_all_reduce.1"
    cause = forward(all_of(folder), "operator")[0]
    assert cause.operator is not None
    assert cause.operator.op == "Gather"
    assert cause.op == "AllReduce"


def test_halos_are_part_of_a_convolution(corpus: Path):
    folder = corpus / "verdicts" / "test_conv2d_transpose.test_conv2d_transpose_group.1"
    cause = next(cause for cause in all_of(folder) if cause.op == "NeighborExchangeV2")
    assert cause.operator is not None
    assert cause.operator.op == "Conv2DTranspose"


def test_ring_attention_is_told(corpus: Path):
    name = "test_parallel_ringattention_inputs_graph.test_ring_semi_auto_bnsh_cut_not_full.1"
    causes = alone(corpus / "verdicts" / name)
    assert {c.kind for c in causes if c.op in ("Send", "Receive")} == {"ring attention"}
