"""Weights over those who hold the same slice: who keeps what, for every rank."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import irtool
from irtool.ir.graph import GraphParameter
from irtool.ir.types import Abstract, ScalarType, Shape, TensorType
from irtool.operators.layout import TensorLayout
from irtool.sharding.check import check
from irtool.sharding.network.context import ParallelContext
from irtool.sharding.network.states import ParameterReport
from irtool.sharding.network.weights import shared_state

MATRIX, MAP = (4, 2), (-1, 0)
"""Columns along two neighbours; four ranks hold the same ones."""


def shared(
    rank: int = 0,
    shape: tuple[int, ...] = (64, 32),
    dtype: str = "Float32",
    entries: tuple[int, ...] = MAP,
    **options: object,
) -> ParameterReport:
    values = {"parallel_optimizer": True, "threshold": 0, **options}
    context = ParallelContext(8, rank=rank, **values)  # type: ignore[arg-type]
    layout = TensorLayout(MATRIX, entries, shape)
    kind = Abstract(TensorType(ScalarType(dtype)), Shape(shape))
    weight = ParameterReport(
        "layer.w", GraphParameter(1, "w", "main", kind), shape, layout.slice_shape,
        layout.slice_shape, layout,
    )  # fmt: skip
    return shared_state(weight, context, context.for_operators(dynamic=False))


def test_all_who_hold_the_same_share_it() -> None:
    for rank in range(8):
        weight = shared(rank)
        assert weight.slice == (16, 16)
        assert weight.base == (64, 16)
        assert weight.gather_ranks == weight.scatter_ranks == tuple(range(rank % 2, 8, 2))
        assert weight.mirror_ranks is None


def test_in_blocks_of_two_the_others_sum_the_gradient() -> None:
    """Ranks 0 2 and 4 6 share; 0 and 4 hold the same half, and so do 2 and 6."""
    for rank in range(8):
        weight = shared(rank, weight_shard_size=2)
        assert weight.slice == (32, 16)
        block = 0 if rank < 4 else 4
        assert weight.gather_ranks == (block + rank % 2, block + rank % 2 + 2)
        assert weight.mirror_ranks == (rank % 4, rank % 4 + 4)


@pytest.mark.parametrize(("size", "parts"), [(-1, 4), (4, 4), (8, 4), (1, 1), (2, 2)])
def test_how_many_share(size: int, parts: int) -> None:
    weight = shared(weight_shard_size=size)
    assert weight.slice == (64 // parts, 16)
    assert len(weight.gather_ranks or ()) == parts
    assert (weight.mirror_ranks is None) == (parts == 4)


def test_what_does_not_divide_stays_whole() -> None:
    assert shared(shape=(62, 32)).gather_ranks is None
    assert shared(shape=(62, 32)).slice == (62, 16)
    assert shared(weight_shard_size=3).gather_ranks is None
    assert shared(shape=(66, 32), weight_shard_size=3).gather_ranks is None  # 4 ranks in threes


@pytest.mark.parametrize(
    ("shape", "dtype", "bytes_"),
    [
        ((64, 32), "Float32", 8192),
        ((64, 32), "Float16", 4096),
        ((64, 32), "Float64", 16384),
        ((64, 32), "Bool", 2048),
        ((64, 32), "Int4", 2048),  # no element has less than a byte
        ((64, 32), "NoSuchType", 8192),
    ],
)
def test_the_threshold_counts_the_bytes_of_the_whole_weight(
    shape: tuple[int, ...], dtype: str, bytes_: int
) -> None:
    at = bytes_ // 1024
    assert shared(shape=shape, dtype=dtype, threshold=at).gather_ranks is not None
    assert shared(shape=shape, dtype=dtype, threshold=at + 1).gather_ranks is None


def test_what_is_not_asked_for_is_not_shared() -> None:
    assert shared(parallel_optimizer=False).gather_ranks is None
    assert shared(excluded=("layer.*",)).gather_ranks is None
    assert shared(excluded=("other.*",)).gather_ranks is not None


def test_a_weight_that_nobody_else_holds_has_nobody_to_share_with() -> None:
    weight = shared(entries=(1, 0))
    assert (weight.slice, weight.gather_ranks) == ((16, 16), None)


def test_a_scalar_is_left_alone() -> None:
    assert shared(shape=(), entries=()).gather_ranks is None


def test_states_of_a_weight_whose_slice_is_unknown_are_unknown() -> None:
    """An operator that nobody measured splits its weight: its moments are not said to be whole."""
    folder = Path(__file__).parent / "unknown_weight"
    case = json.loads((folder / "case.json").read_text(encoding="utf-8"))
    text = irtool.dumps(irtool.load(next(folder.glob("step_parallel_begin*"))))
    begin = irtool.loads(text.replace("Renorm", "NobodysOwn"))
    report = check(begin, ParallelContext.from_mapping(case["context"]))
    slices = {weight.name: weight.slice for weight in report.parameters}
    assert slices["w"] is None
    assert slices["moments.w"] is None
