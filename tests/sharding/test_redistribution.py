"""Redistribution: real chains, and chains executed on simulated devices."""

from __future__ import annotations

import ast
import itertools
import re
from math import prod

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from irtool.operators.layout import DYNAMIC, TensorLayout
from irtool.sharding.redistribution import (
    Level,
    RedistributionError,
    RedistributionStep,
    cost_bytes,
    created_groups,
    infer,
)

np = pytest.importorskip("numpy")


def layout(text: str) -> TensorLayout:
    """``(2, 4) (1, 0) (16, 32)``: device matrix, tensor map, tensor shape."""
    parts = ast.literal_eval(re.sub(r"\) \(", "), (", text))
    return TensorLayout(*parts)


def word(step: RedistributionStep) -> str:
    """One operator as short as the table below has it."""
    ranks = "[" + ",".join(map(str, step.ranks)) + "]"
    match step.op:
        case "AllGather":
            return f"AllGather {ranks}"
        case "AlltoAll":
            return f"AlltoAll {ranks} @{step.axis}>{step.concat_axis}"
        case "Split":
            return f"Split {step.count}"
        case "Concat":
            return f"Concat @{step.axis}"
        case "StridedSlice":
            assert step.begin is not None
            assert step.end is not None
            spans = zip(step.begin, step.end, strict=True)
            return "StridedSlice " + ",".join(f"{low}:{high}" for low, high in spans)
        case _:
            return f"{step.op} " + ",".join(map(str, step.output_shape))


# What MindSpore 2.7.0 inserted between a Tanh and a Sigmoid (with a Reshape between them where the
# shapes differ): layouts, rank, enable_alltoall (True only where it makes a difference), operators.
REAL_CHAINS = """
(2, 4) (1, 0) (16, 32) -> (4, 2) (1, 0) (16, 32); rank 5
    Reshape 1,8,1,8; AllGather [4,5]; Split 2; Concat @3; AllGather [5,7]; Split 2; Concat @2;
    StridedSlice 0:1,0:4,0:2,0:16; StridedSlice 0:1,0:4,1:2,0:16; Reshape 4,16
(8, 1) (1, 0) (16, 32) -> (1, 8) (1, 0) (16, 32); rank 5
    AllGather [0,1,2,3,4,5,6,7]; StridedSlice 0:16,20:24
(2, 4) ((1, 0), -1) (16, 32) -> (2, 2, 2) ((0, 2), 1) (16, 32); rank 5
    AllGather [4,5,6,7]; Reshape 1,2,4,32; AllGather [1,5]; StridedSlice 1:2,0:2,0:4,0:32;
    StridedSlice 0:1,1:2,0:4,0:32; StridedSlice 0:1,0:1,0:4,0:16; Reshape 4,16
(2, 2, 2) (1, 2) (16, 32) -> (2, 2, 2) (2, 1) (16, 32); rank 5
    AllGather [1,5]; Split 2; Concat @1; AllGather [5,7]; StridedSlice 8:16,0:32; StridedSlice
    0:8,0:16
(2, 4) (1, 0) (16, 32) -> (4, 2) (1, 0) (32, 16); rank 5
    Reshape 1,8,1,8; AllGather [5,7]; Split 2; Concat @2; Reshape 16,8; StridedSlice 0:8,0:8
(8, 1) (1, 0) (16, 32) -> (2, 4, 1) (2, 1, 0) (2, 8, 32); rank 5
    Reshape 1,2,32
(1, 4, 2) (2, 1, 0) (2, 8, 32) -> (2, 4) (1, 0) (16, 32); rank 5
    Reshape 2,1,2,1,16; AllGather [4,5]; Split 2; Concat @3; AllGather [5,7]; Split 2; Concat
    @2; AllGather [1,5]; Split 2; Concat @1; StridedSlice 1:2,0:2,0:4,0:2,0:16; StridedSlice
    0:1,0:2,0:4,0:1,0:16; StridedSlice 0:1,0:2,0:4,0:1,8:16; Reshape 8,8
(1, 8, 1, 1) (3, 2, 1, 0) (1, 8, 1, 32) -> (1, 2, 1, 4) (3, 2, 1, 0) (1, 8, 1, 32); rank 5
    Reshape 1,32; AllGather [4,5,6,7]; Reshape 1,4,32; StridedSlice 0:1,0:4,8:16; Reshape
    1,4,1,8
(2, 4) (1, 0) (16, 32) -> (4, 2) (1, 0) (16, 32); rank 5; alltoall
    Reshape 1,8,1,8; AlltoAll [5,7] @1>2; AlltoAll [4,5] @2>3; Reshape 4,16
(8, 1) (1, 0) (16, 32) -> (1, 8) (1, 0) (16, 32); rank 5; alltoall
    AlltoAll [0,1,2,3,4,5,6,7] @1>0
(2, 4) ((1, 0), -1) (16, 32) -> (2, 2, 2) ((0, 2), 1) (16, 32); rank 5; alltoall
    Reshape 1,2,32; Reshape 1,1,2,32; AlltoAll [5,7] @3>1; AlltoAll [1,5] @1>0; AlltoAll [4,5]
    @0>2; Reshape 1,4,16; Reshape 4,16
(2, 2, 2) (1, 2) (16, 32) -> (2, 2, 2) (2, 1) (16, 32); rank 5; alltoall
    AllGather [5,7]; AlltoAll [1,5] @0>1; StridedSlice 0:8,0:16
(1, 4, 2) (2, 1, 0) (2, 8, 32) -> (2, 4) (1, 0) (16, 32); rank 5; alltoall
    Reshape 2,1,2,1,16; AlltoAll [1,5] @0>1; AlltoAll [4,5] @4>3; AlltoAll [5,7] @3>2; Reshape
    8,8
(2, 2, 2) (0, 1, 2) (4, 16, 8) -> (2, 2, 2) (1, 2, 0) (4, 16, 8); rank 5; alltoall
    AllGather [4,5]; AlltoAll [5,7] @0>1; AlltoAll [1,5] @1>2; StridedSlice 0:2,0:8,4:8
(2, 2, 2, 2) ((3, 2), (1, 0)) (16, 32) -> (2, 2, 2, 2) ((1, 0), (3, 2)) (16, 32); rank 9
    Reshape 1,4,1,8; AllGather [8,9]; Split 2; Concat @3; AllGather [9,11]; Split 2; Concat @2;
    AllGather [9,13]; Reshape 1,8,2,16; AllGather [1,9]; StridedSlice 0:1,0:8,0:2,0:16;
    StridedSlice 0:1,4:8,0:2,0:16; StridedSlice 0:1,0:4,1:2,0:16; StridedSlice 0:1,0:4,0:1,0:8;
    Reshape 4,8
(16,) (0,) (64,) -> (2, 8) (1,) (64,); rank 9
    AllGather [8,9,10,11,12,13,14,15]
(2, 2, 2, 2) ((3, 2), (1, 0)) (16, 32) -> (2, 2, 2, 2) ((1, 0), (3, 2)) (16, 32); rank 9; alltoall
    Reshape 1,4,1,8; AllGather [1,9]; AlltoAll [9,11] @0>2; StridedSlice 0:1,0:4,1:2,0:8;
    AllGather [9,13]; Split 2; Concat @1; AlltoAll [8,9] @1>3; StridedSlice 0:1,0:4,0:1,0:8;
    Reshape 4,8
(3, 8) (1, 0) (24, 24) -> (8, 3) (1, 0) (24, 24); rank 17
    AllGather [16,17,18,19,20,21,22,23]; Split 8; Concat @1; AllGather [1,9,17]; StridedSlice
    15:18,0:24; StridedSlice 0:3,16:24
(4, 6) (1, 0) (24, 48) -> (6, 4) (-1, (1, 0)) (24, 48); rank 17
    AllGather [12,13,14,15,16,17]; Split 6; Concat @1; AllGather [5,11,17,23]; Reshape 24,6,8;
    StridedSlice 0:24,4:5,0:8; StridedSlice 0:24,0:1,2:4; Reshape 24,2
(4, 4, 4) (2, 1, 0) (64, 64, 64) -> (2, 8, 4) (0, 1, 2) (64, 64, 64); rank 38
    Reshape 1,16,1,1,16,1,16; AllGather [38,39]; Split 2; Concat @6; AllGather [36,38]; Split 2;
    Concat @5; AllGather [34,38]; Split 2; Concat @3; AllGather [38,46]; Split 2; Concat @2;
    AllGather [38,54]; Reshape 1,32,2,2,16,2,32; AllGather [6,38]; StridedSlice
    1:2,0:32,0:2,0:2,0:16,0:2,0:32; StridedSlice 0:1,0:16,0:2,0:2,0:16,0:2,0:32; StridedSlice
    0:1,0:16,0:1,0:2,0:16,0:2,0:32; StridedSlice 0:1,0:16,0:1,0:1,0:16,0:2,0:32; StridedSlice
    0:1,0:16,0:1,0:1,8:16,0:2,0:32; StridedSlice 0:1,0:16,0:1,0:1,0:8,1:2,0:32; Reshape 16,8,32
(4, 4, 4) (2, 1, 0) (64, 64, 64) -> (2, 8, 4) (0, 1, 2) (64, 64, 64); rank 38; alltoall
    Reshape 1,16,1,1,16,1,16; AlltoAll [34,38] @4>3; AlltoAll [38,46] @3>2; AlltoAll [38,54]
    @2>1; AlltoAll [38,39] @1>6; AllGather [6,38]; AlltoAll [36,38] @0>5; StridedSlice
    0:1,0:16,0:1,0:1,0:8,1:2,0:32; Reshape 16,8,32
(1, 20, 2) (2, 1, 0) (5, 120, 120) -> (5, 1, 8) (2, 1, 0) (5, 120, 120); rank 13; alltoall
    Reshape 5,1,6,2,30; AlltoAll [5,13,21,29,37] @0>1; AlltoAll [12,13] @4>3;
    AlltoAll [9,11,13,15] @3>2; Reshape 1,120,15
"""


def real_chains() -> list[tuple[str, str, int, bool, str]]:
    """Source, target, rank, alltoall, chain of each case: a line, and indented ones below it."""
    cases: list[tuple[str, str, int, bool, str]] = []
    for case in re.split(r"\n(?=\()", REAL_CHAINS.strip("\n")):
        head, *body = case.split("\n")
        edge, rank, *options = head.split("; ")
        source, target = edge.split(" -> ")
        chain = " ".join(line.strip() for line in body)
        cases.append((source, target, int(rank.removeprefix("rank ")), bool(options), chain))
    return cases


@pytest.mark.parametrize(("source", "target", "rank", "alltoall", "expected"), real_chains())
def test_chain_is_what_mindspore_inserts(
    source: str, target: str, rank: int, alltoall: bool, expected: str
) -> None:
    first, last = layout(source), layout(target)
    steps = infer(
        first,
        last,
        range(prod(first.device_matrix)),
        rank,
        enable_alltoall=alltoall,
        keep_reshape=first.tensor_shape != last.tensor_shape,
    )
    assert "; ".join(map(word, steps)) == expected


def test_unknown_sizes_are_split_not_sliced() -> None:
    """Real chain (8 devices, rank 0): no peephole pass, Split and TupleGetItem for slices."""
    source = layout("(2, 4) (1, 0) (-1, 64)")
    target = layout("(4, 2) (1, 0) (-1, 64)")
    steps = infer(source, target, range(8), 0)
    assert [(step.op, step.axis, step.output_shape) for step in steps] == [
        ("Reshape", None, (1, DYNAMIC, 1, 16)),
        ("AllGather", 0, (2, DYNAMIC, 1, 16)),
        ("Split", 0, (1, DYNAMIC, 1, 16)),
        ("Concat", 2, (1, DYNAMIC, 2, 16)),
        ("Split", 1, (1, DYNAMIC, 2, 16)),
        ("TupleGetItem", None, (1, DYNAMIC, 2, 16)),
        ("AllGather", 0, (2, DYNAMIC, 2, 16)),
        ("Split", 0, (1, DYNAMIC, 2, 16)),
        ("Concat", 3, (1, DYNAMIC, 2, 32)),
        ("Split", 2, (1, DYNAMIC, 1, 32)),
        ("TupleGetItem", None, (1, DYNAMIC, 1, 32)),
        ("Reshape", None, (DYNAMIC, 32)),
    ]
    with pytest.raises(RedistributionError, match="unknown sizes"):
        infer(source, layout("(8,) (-1,) (-1,)"), range(8), 0)


def test_levels() -> None:
    source, target = layout("(2, 2) (1, 0) (8, 8)"), layout("(2, 2) (1, -1) (8, 8)")

    def operators(level: Level) -> list[str]:
        return [step.op for step in infer(source, target, range(4), 0, level=level)]

    assert operators("abstract") == ["AllConcat"]
    assert operators("operators") == ["AllGather", "Split", "Concat"]
    assert operators("nodes") == [
        "AllGather",
        "Split",
        "TupleGetItem",
        "TupleGetItem",
        "MakeTuple",
        "Concat",
    ]


def test_nothing_is_inserted_between_equal_layouts() -> None:
    """Repeated calculation on the right, on the left, or spelled out: the slices decide."""
    source = layout("(4, 2) (1, -1) (16, 32)")
    assert infer(source, layout("(2, 2, 2) ((2, 1), -1) (16, 32)"), range(8), 3) == ()
    assert infer(source, layout("(1, 4, 1, 2) (2, 3) (16, 32)"), range(8), 3) == ()
    (kept,) = infer(source, source, range(8), 3, keep_reshape=True)
    assert (kept.op, kept.output_shape) == ("Reshape", (4, 32))


def test_cost() -> None:
    """A float32 slice of (4, 32) gathered over 8 devices; each device receives 7 of them."""
    source, target = layout("(8, 1) (1, 0) (32, 32)"), layout("(1, 8) (1, 0) (32, 32)")
    gather = infer(source, target, range(8), 0)
    assert [step.cost_bytes(4) for step in gather] == [7 * 4 * 32 * 4, 0]
    exchange = infer(source, target, range(8), 0, enable_alltoall=True)
    assert cost_bytes(exchange, 4) == 7 * 4 * 32 * 4 // 8


def test_groups_that_no_operator_uses() -> None:
    """MindSpore creates a group for a slice too, and that group can be refused."""
    source, target = layout("(24,) (-1,) (24,)"), layout("(3, 8) (1,) (24,)")
    assert [step.ranks for step in infer(source, target, range(24), 9)] == [()]
    assert created_groups(source, target, range(24), 9) == ((1, 9, 17),)


@pytest.mark.parametrize(
    ("source", "target", "ranks", "rank", "message"),
    [
        ("(2,) (0,) (8,)", "(2,) (0,) (16,)", [0, 1], 0, "from shape size must be equal"),
        ("(2,) (0,) (9,)", "(2,) (-1,) (9,)", [0, 1], 0, "divi"),
        ("(2,) (1,) (8,)", "(2,) (0,) (8,)", [0, 1], 0, "no axis 1"),
        ("(2,) (0,) (0,)", "(2,) (-1,) (0,)", [0, 1], 0, "no elements"),
        ("(4,) (0,) (8,)", "(2,) (0,) (8,)", [0, 1], 0, "needs 4 devices"),
        ("(2,) (0,) (8,)", "(2,) (-1,) (8,)", [0, 1], 2, "rank 2 is outside"),
        ("(2,) (0,) (8,)", "(2,) (-1,) (8,)", [0, 4], 0, "not consecutive"),
    ],
)
def test_errors(source: str, target: str, ranks: list[int], rank: int, message: str) -> None:
    with pytest.raises(RedistributionError, match=message):
        infer(layout(source), layout(target), ranks, rank)
    with pytest.raises(RedistributionError, match=message):
        created_groups(layout(source), layout(target), ranks, rank)


# ------------------------------------------------------------------------------ execution


def slices(given: TensorLayout, whole: np.ndarray, ranks: range) -> dict[int, np.ndarray]:
    """What each rank holds of a tensor under a layout."""
    held: dict[int, np.ndarray] = {}
    for position, rank in enumerate(ranks):
        piece = given.piece(position)
        spans = zip(piece.offset, piece.shape, strict=True)
        held[rank] = whole[tuple(slice(low, low + size) for low, size in spans)]
    return held


def execute(
    steps: dict[int, RedistributionStep], held: dict[int, np.ndarray]
) -> dict[int, np.ndarray]:
    """All ranks execute one step together (MakeTuple, TupleGetItem are not among them)."""
    after: dict[int, np.ndarray] = {}
    for rank, step in steps.items():
        mine = held[rank]
        assert not step.ranks or rank in step.ranks
        match step.op:
            case "Reshape":
                after[rank] = mine.reshape(step.output_shape)
            case "StridedSlice" | "SplitByAxis":
                assert step.begin is not None
                assert step.end is not None
                spans = zip(step.begin, step.end, strict=True)
                after[rank] = mine[tuple(slice(low, high) for low, high in spans)]
            case "AllGather" | "AllConcat":
                after[rank] = np.concatenate([held[peer] for peer in step.ranks], step.axis)
            case "AlltoAll" | "PermuteByAxis":
                at = step.ranks.index(rank)
                parts = [
                    np.split(held[peer], len(step.ranks), step.axis)[at] for peer in step.ranks
                ]
                after[rank] = np.concatenate(parts, step.concat_axis)
            case _:
                raise AssertionError(step.op)
        assert after[rank].shape == step.output_shape
    return after


def join_split_and_concat(chain: tuple[RedistributionStep, ...]) -> list[RedistributionStep]:
    """AllGather, Split, Concat as the one gather along another dimension that they are."""
    found: list[RedistributionStep] = []
    for step in chain:
        if step.op == "Concat":
            split, gather = found.pop(), found.pop()
            assert (split.op, gather.op) == ("Split", "AllGather")
            assert split.input_shape == gather.output_shape
            assert split.output_shape == gather.input_shape == step.input_shape
            step = RedistributionStep(
                "AllGather",
                gather.input_shape,
                step.output_shape,
                step.axis,
                ranks=gather.ranks,
            )
        found.append(step)
    return found


@st.composite
def layouts(draw: st.DrawFn, devices: int, shape: tuple[int, ...]) -> TensorLayout:
    """A layout of ``shape`` on ``devices`` devices; dimensions may lie along several axes."""
    matrix: list[int] = []
    rest = devices
    while rest > 1:
        size = draw(st.sampled_from([n for n in range(2, rest + 1) if rest % n == 0]))
        matrix.append(size)
        rest //= size
    if draw(st.booleans()):
        matrix.insert(draw(st.integers(0, len(matrix))), 1)
    free = draw(st.permutations(range(len(matrix))))
    entries: list[int | tuple[int, ...]] = []
    for size in shape:
        taken: list[int] = []
        cut = 1
        for axis in list(free):
            factor = matrix[len(matrix) - 1 - axis]
            if size % (cut * factor) == 0 and draw(st.booleans()):
                taken.append(axis)
                free.remove(axis)
                cut *= factor
        entries.append(tuple(taken) if len(taken) > 1 else taken[0] if taken else -1)
    return TensorLayout(tuple(matrix), tuple(entries), shape)


@st.composite
def edges(draw: st.DrawFn) -> tuple[TensorLayout, TensorLayout]:
    """Two layouts of one tensor, reshaped between them half of the time."""
    devices = draw(st.sampled_from([2, 4, 8, 16, 32, 6, 12, 24, 40]))
    factors = draw(st.lists(st.sampled_from([2, 2, 2, 3, 4, 5]), min_size=1, max_size=8))

    def shape() -> tuple[int, ...]:
        cuts = sorted(draw(st.lists(st.integers(0, len(factors)), max_size=4)))
        bounds = [0, *cuts, len(factors)]
        return tuple(prod(factors[low:high]) for low, high in itertools.pairwise(bounds))

    first = shape()
    last = shape() if draw(st.booleans()) else first
    return draw(layouts(devices, first)), draw(layouts(devices, last))


@given(edge=edges(), alltoall=st.booleans(), keep=st.booleans(), base=st.sampled_from([0, 16]))
@settings(max_examples=300, deadline=None)
@example(
    edge=(layout("(2, 3) (1, 0) (6, 6)"), layout("(3, 2) (1, 0) (6, 6)")),
    alltoall=True,
    keep=False,
    base=0,
)
def test_each_device_ends_with_its_slice(
    edge: tuple[TensorLayout, TensorLayout], alltoall: bool, keep: bool, base: int
) -> None:
    source, target = edge
    ranks = range(base, base + prod(source.device_matrix))
    whole = np.arange(prod(source.tensor_shape))
    for level in ("abstract", "operators"):
        chains = {
            rank: join_split_and_concat(
                infer(
                    source,
                    target,
                    ranks,
                    rank,
                    enable_alltoall=alltoall,
                    keep_reshape=keep,
                    level=level,
                )
            )
            for rank in ranks
        }
        held = slices(source, whole.reshape(source.tensor_shape), ranks)
        assert len({len(chain) for chain in chains.values()}) == 1
        for steps in zip(*chains.values(), strict=True):
            assert len({step.op for step in steps}) == 1
            held = execute(dict(zip(ranks, steps, strict=True)), held)
        expected = slices(target, whole.reshape(target.tensor_shape), ranks)
        for rank in ranks:
            assert np.array_equal(held[rank], expected[rank])


@given(edge=edges(), alltoall=st.booleans())
@settings(max_examples=200, deadline=None)
def test_chains_fit_together(edge: tuple[TensorLayout, TensorLayout], alltoall: bool) -> None:
    """Shapes connect, all ranks of a group name the same group, and MindSpore creates it."""
    source, target = edge
    ranks = range(prod(source.device_matrix))
    chains = {r: infer(source, target, ranks, r, enable_alltoall=alltoall) for r in ranks}
    for rank, chain in chains.items():
        groups = created_groups(source, target, ranks, rank, enable_alltoall=alltoall)
        shape = source.slice_shape
        for index, step in enumerate(chain):
            if step.op != "Concat":  # its input is one part of the Split before it
                assert step.input_shape == shape
            shape = step.output_shape
            assert not step.ranks or step.ranks in groups
            assert all(chains[peer][index].ranks == step.ranks for peer in step.ranks)
        assert shape == target.slice_shape
        assert infer(source, source, ranks, rank, enable_alltoall=alltoall) == ()
