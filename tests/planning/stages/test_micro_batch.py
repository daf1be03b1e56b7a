"""The dump of one micro-batch: every tensor that holds the batch is divided, nothing else."""

from __future__ import annotations

from pathlib import Path

import pytest

import irtool
from irtool.ir.dump import Dump
from irtool.planning.search.tables import CannotPlan
from irtool.planning.stages.micro_batch import batch_of, default_micro_batches, micro_batch

SAMPLES = Path(__file__).parents[3] / "samples"


@pytest.fixture(scope="module")
def gpt() -> Dump:
    return irtool.load(str(SAMPLES / "gpt" / "step_parallel_begin_0018.ir"))


def _shapes(dump: Dump, op: str) -> list[list[tuple[int, ...]]]:
    """Shapes of operands and of the result, of all operators of a kind."""
    return [
        [
            shape
            for each in (*node.input_types, node.output_type)
            if each
            for _, shape in each.tensors
        ]
        for node in dump.nodes()
        if node.op == op
    ]


def test_the_batch_is_divided_and_weights_are_not(gpt: Dump) -> None:
    part = micro_batch(gpt, 4)
    assert batch_of(gpt) == 8
    assert batch_of(part) == 2
    for whole, piece in zip(_shapes(gpt, "MatMul"), _shapes(part, "MatMul"), strict=True):
        left, weight, out = whole
        assert piece == [(left[0] // 4, *left[1:]), weight, (out[0] // 4, *out[1:])]


def test_a_reshape_divides_where_the_batch_is(gpt: Dump) -> None:
    whole, part = (
        {node.id: node for node in dump.nodes() if node.op == "Reshape"}
        for dump in (gpt, micro_batch(gpt, 2))
    )
    for name, node in whole.items():
        before, after = node.output_type, part[name].output_type
        assert before is not None
        assert after is not None
        assert before.size == 2 * (after.size or 0)


def test_only_shapes_change(gpt: Dump) -> None:
    part = micro_batch(gpt, 2)
    for old, new in zip(gpt.nodes(), part.nodes(), strict=True):
        assert (old.op, old.name, old.scope, old.line) == (new.op, new.name, new.scope, new.line)
    again = irtool.load(irtool.dumps(part).encode("utf-8", "surrogateescape"))
    assert not again.problems


def test_one_micro_batch_is_the_batch(gpt: Dump) -> None:
    assert micro_batch(gpt, 1) is gpt


def test_a_batch_that_does_not_divide_is_refused(gpt: Dump) -> None:
    with pytest.raises(CannotPlan, match="8 rows, which cannot be cut into 16"):
        micro_batch(gpt, 16)


def test_four_micro_batches_a_stage_or_what_the_batch_allows(gpt: Dump) -> None:
    assert default_micro_batches(gpt, 2) == 8
    assert default_micro_batches(gpt, 4) == 8


@pytest.mark.corpus
@pytest.mark.parametrize(
    "name", ["gpt_L8_B64_rec_8", "resnet_rec_8", "widedeep_rec_8", "mlp_rec_8"]
)
def test_real_networks_are_followed(corpus: Path, name: str) -> None:
    dump = irtool.load(str(corpus / "planning" / name / "step_parallel_begin.ir"))
    batch = batch_of(dump)
    assert batch_of(micro_batch(dump, 4)) == batch // 4
