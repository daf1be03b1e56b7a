"""What a cut in two costs, on sizes for which every cost is a round number.

A product of ``i x k`` and ``k x j``: rows cost ``r j k / 2``, columns ``i k / 2``, the summed
dimension ``i j / 2``; not to cut it the square of the least of these over 25.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import inf

import pytest

from irtool.planning.recursive.cut_costs import Round, Terms, best_option, weight_of
from irtool.planning.recursive.elimination import Edge, Vertex
from irtool.planning.recursive.kinds import Kind, NotSearchable
from irtool.planning.recursive.partition import Rounds, cut_all
from irtool.planning.recursive.tensors import (
    WHOLE,
    C,
    Four,
    H,
    N,
    W,
    four_sizes,
    halved,
    last_four,
    local,
    ratio,
    row_of,
    turned,
)

ROWS, COLUMNS, SUM = ((H,), ()), ((), (W,)), ((W,), (H,))


def vertex(kind: Kind, first: Four, second: Four, result: Four, place: int = 0) -> Vertex:
    made = Vertex(place, kind, [first, second], result)
    made.inputs_cut = [WHOLE, WHOLE]
    return made


def product(i: int, k: int, j: int, place: int = 0) -> Vertex:
    return vertex(Kind.MATMUL, (1, 1, i, k), (1, 1, k, j), (1, 1, i, j), place)


def cut(
    vertices: list[Vertex], at: int = 0, known: Mapping[int, Round] | None = None,
    number: int = 0, row: float = 1.0, rows: bool = True,
) -> tuple[tuple[int, ...], tuple[int, ...]] | None:  # fmt: skip
    found = best_option(vertices, at, known or {}, number, Terms(row, rows))
    return None if found is None else (found.first, found.second)


# -- products --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("row", "expected"),
    [(1.99, ROWS), (2.0, ROWS), (2.01, SUM)],  # 400 r against 800; of equals rows come first
)
def test_rows_against_the_sum(row: float, expected: object) -> None:
    assert cut([product(80, 40, 20)], row=row) == expected


@pytest.mark.parametrize(("row", "expected"), [(3.9, ROWS), (4.1, COLUMNS)])
def test_an_odd_sum_leaves_rows_and_columns(row: float, expected: object) -> None:
    """410 r against 1640."""
    assert cut([product(80, 41, 20)], row=row) == expected


def test_what_is_odd_or_one_is_not_halved() -> None:
    assert cut([product(81, 41, 21)]) is None
    assert cut([product(1, 64, 4096)]) == COLUMNS
    assert cut([product(4096, 64, 1)]) == ROWS
    assert cut([product(0, 64, 4097)]) == SUM
    assert cut([product(81, 40, 20)], row=1.99) == SUM  # rows would cost 796, but are odd


@pytest.mark.parametrize(("i", "expected"), [(11, SUM), (10, SUM), (9, None)])
def test_a_small_product_is_best_left_whole(i: int, expected: object) -> None:
    """``j = 5``: the sum costs 27.5, 25 or 22.5, and not to cut 30.25, 25 or 20.25."""
    assert cut([product(i, 6, 5)], row=1024) == expected


def test_rows_may_be_forbidden() -> None:
    assert cut([product(80, 40, 20)], row=1.99) == ROWS
    assert cut([product(80, 40, 20)], row=1.99, rows=False) == SUM
    # not to cut at all is measured by the least of all cuts, the forbidden one too: 40 ** 2 / 25
    assert cut([product(80, 40, 20)], row=0.1, rows=False) is None


def test_of_columns_and_the_sum_one_is_cut() -> None:
    """Sizes are those of the slices: after two cuts of the sum rows cost ``j k / 4 / 2``."""
    summed = product(80, 40, 20)
    summed.inputs_cut = [(1, 1, 1, 4), (1, 1, 4, 1)]
    assert cut([summed], row=7.9) == ROWS  # 100 r against 800 of the sum
    assert cut([summed], row=8.1) == SUM
    beside = product(80, 40, 20)
    beside.inputs_cut = [WHOLE, (1, 1, 1, 2)]
    assert cut([beside], row=1024) == COLUMNS  # the sum, 400, would be less


# -- neighbours ------------------------------------------------------------------------------------


def consumer(sizes: Four = (1, 1, 80, 20)) -> tuple[list[Vertex], dict[int, Round]]:
    """A product whose columns were cut already in what follows."""
    one, other = product(80, 40, 20), vertex(Kind.POOLING, sizes, WHOLE, sizes, 1)
    one.targets, other.sources = [Edge(1)], [0]
    return [one, other], {1: Round((1, 1, 1, 2), WHOLE)}


def test_what_follows_wants_its_own_form() -> None:
    """Each element of the result (1600) that is in another form counts 16: columns are cheapest."""
    vertices, known = consumer()
    assert cut(vertices, row=1.99) == ROWS
    assert cut(vertices, 0, known, row=1.99) == COLUMNS
    vertices, known = consumer((1, 1, 80, 21))  # not the same tensor: nobody prices it
    assert cut(vertices, 0, known, row=1.99) == ROWS


def test_a_flat_view_of_the_result_is_the_same_tensor() -> None:
    """A Reshape in between joins the two dimensions: (80, 20) is 1600, the last one."""
    vertices, known = consumer((1, 1, 1, 1600))
    assert cut(vertices, 0, known, row=1.99) == ROWS
    vertices[0].targets = [Edge(1, ((0,), (), (1,), (2, 3)))]
    assert cut(vertices, 0, known, row=1.99) == COLUMNS
    vertices[0].targets = [Edge(1, ((0,), (), (), (2, 1)))]
    assert cut(vertices, 0, known, row=1.99) == ROWS


def producer(**cuts: Four) -> tuple[list[Vertex], dict[int, Round]]:
    """A product behind another whose result was cut."""
    first, second = product(80, 64, 40, 0), product(80, 40, 20, 1)
    first.targets, second.sources = [Edge(1)], [0]
    return [first, second], {0: Round(WHOLE, cuts["result"])}


def test_what_comes_before_gives_its_own_form() -> None:
    """The first operand has 3200 elements: another form of it costs 51200, more than all cuts."""
    for result, expected in (
        ((1, 1, 2, 1), ROWS),
        ((1, 1, 1, 2), SUM),
        (WHOLE, COLUMNS),
    ):
        vertices, known = producer(result=result)
        assert cut(vertices, 1, known, row=1.99) == expected
    assert cut(vertices, 1, {}, row=1.99) == ROWS


def test_what_was_given_is_seen_halving_by_halving() -> None:
    """A strategy of 2 x 4 was cut along H first, then twice along W; after that it is whole."""
    vertices, _ = producer(result=WHOLE)
    vertices[0].pinned = True
    steps = ((1, 1, 2, 1), (1, 1, 1, 2), (1, 1, 1, 2))
    known = {0: Round(result_steps=steps)}
    found = [cut(vertices, 1, known, number, row=1.99) for number in range(4)]
    assert found == [ROWS, SUM, SUM, COLUMNS]
    assert [known[0].result_in(n) for n in range(4)] == [*steps, WHOLE]
    given = Round(first_steps=steps[:1])
    assert (given.first_in(0), given.first_in(1)) == ((1, 1, 2, 1), WHOLE)


def test_rounds_see_a_pinned_neighbour_as_its_strategy_is_made_of() -> None:
    """The pinned product's result is 2 x 4: in three rounds the next takes H, W and W over."""
    vertices, _ = producer(result=WHOLE)
    first, second = vertices
    first.pinned = True
    first.inputs_cut, first.result_cut = [(1, 1, 2, 1), (1, 1, 1, 4)], (1, 1, 2, 4)
    cut_all(vertices, Rounds(8, row_coefficient=1.99))
    assert first.result_cut == (1, 1, 2, 4)
    assert second.inputs_cut == [(1, 1, 2, 4), (1, 1, 4, 1)]
    assert second.result_cut == (1, 1, 2, 1)


# -- other classes ---------------------------------------------------------------------------------


@pytest.mark.parametrize(("batch", "expected"), [(4, ((N,), ())), (3, None), (1, None)])
def test_a_convolution_is_cut_along_its_batch(batch: int, expected: object) -> None:
    one = vertex(Kind.CONVOLUTION, (batch, 4, 8, 8), (6, 4, 2, 2), (batch, 6, 8, 8))
    assert cut([one]) == expected


@pytest.mark.parametrize(
    ("sizes", "expected"),
    [((4, 4, 3, 3), ((N,), (N,))), ((3, 4, 4, 4), ((C,), (C,))), ((3, 3, 4, 4), None)],
)
def test_pooling_is_cut_along_batch_or_channels(sizes: Four, expected: object) -> None:
    one = vertex(Kind.POOLING, sizes, WHOLE, sizes)
    assert cut([one]) == expected


def test_pooling_follows_what_comes_before() -> None:
    sizes = (4, 4, 4, 4)
    first = vertex(Kind.CONVOLUTION, sizes, sizes, sizes)
    one = vertex(Kind.POOLING, sizes, WHOLE, sizes, 1)
    first.targets, one.sources = [Edge(1)], [0]
    known = {0: Round(WHOLE, halved(WHOLE, C))}
    assert cut([first, one], 1, known) == ((C,), (C,))


@pytest.mark.parametrize(
    "kind",
    [Kind.BATCH_NORM, Kind.PARAMETRIC, Kind.SPARSE_CROSS_ENTROPY, Kind.SEGMENT, Kind.VIRTUAL],
)
def test_others_are_cut_along_the_first_even_dimension(kind: Kind) -> None:
    for sizes, axis in (((4, 4, 4, 4), N), ((3, 4, 4, 4), C), ((1, 1, 4, 4), H), ((1, 1, 5, 4), W)):
        assert cut([vertex(kind, sizes, WHOLE, sizes)]) == ((axis,), ())
    assert cut([vertex(kind, (1, 3, 5, 7), WHOLE, WHOLE)]) is None


def test_cross_entropy_cuts_both_operands_and_the_result_along_its_rows() -> None:
    found = best_option(
        [vertex(Kind.CROSS_ENTROPY, (1, 1, 4, 4), (1, 1, 4, 4), (1, 1, 1, 4))], 0, {}, 0, Terms()
    )
    assert found is not None
    assert (found.first, found.second, found.result) == ((H,), (H,), (W,))
    found = best_option(
        [vertex(Kind.CROSS_ENTROPY, (1, 1, 3, 4), (1, 1, 3, 4), (1, 1, 1, 3))], 0, {}, 0, Terms()
    )
    assert found is not None
    assert (found.first, found.second, found.result) == ((W,), (W,), ())


def test_what_no_cut_is_known_of() -> None:
    assert cut([vertex(Kind.UNKNOWN, (4, 4, 4, 4), WHOLE, WHOLE)]) is None
    with pytest.raises(NotSearchable, match="no cut is known of softmax"):
        cut([vertex(Kind.SOFTMAX, (4, 4, 4, 4), WHOLE, WHOLE)])


# -- order -----------------------------------------------------------------------------------------


def test_weights_are_reckoned_from_the_first_vertex() -> None:
    """``80 x 40 x 20``: the dearest of 400 r, 1600, 800 and the square of the least over 25."""
    first = product(80, 40, 20)
    other = product(8, 8, 8, 1)
    assert weight_of([first, other], 1, 1.0) == 400**2 / 25
    assert weight_of([first, other], 1, 0.1) == 1600
    assert weight_of([first, other], 1, 100.0) == 40_000
    # convolution: the least half of kernel 72, kernel and input 192, input 120, result 240, ...
    sizes = ((2, 3, 4, 5), (6, 3, 2, 2), (2, 6, 4, 5))
    convolution = vertex(Kind.CONVOLUTION, *sizes)
    assert weight_of([convolution], 0, 1.0) == 36
    light = vertex(Kind.CONVOLUTION, (1, 2, 3, 4), (6, 3, 2, 2), (2, 6, 4, 5))
    assert weight_of([light], 0, 1.0) == 12


@pytest.mark.parametrize(
    ("batch", "weight"),
    [
        # A product of 8 x 4 and 4 x 8: halves of 16, 16 and 32 elements; 0.15 of the least is 2.4.
        ((1, 1), 32 * 2.4),  # all cores but none for the batch
        ((2, 1), (32 / 2 - 1) * 4.8),
        ((1, 2), (32 / 2 - 1) * 4.8),
        ((2, 3), 192.0),  # 32 / 6 - 1 of 14.4 is less than half of the result
        ((5, 8), 1280.0),  # more than the cores
    ],
)
def test_a_batched_product_weighs_its_dearest_choice(batch: tuple[int, int], weight: float) -> None:
    made = vertex(Kind.BATCH_MATMUL, (*batch, 8, 4), (*batch, 4, 8), (*batch, 8, 8))
    assert weight_of([made], 0, 1.0) == pytest.approx(weight)


def test_not_to_cut_a_large_batched_product_is_the_dearest() -> None:
    """Halves of 10,000 elements: 1,500 squared over 25 is more than 32 times 1,500."""
    sizes = (1, 1, 200, 100), (1, 1, 100, 200), (1, 1, 200, 200)
    assert weight_of([vertex(Kind.BATCH_MATMUL, *sizes)], 0, 1.0) == pytest.approx(90_000)


@pytest.mark.parametrize(
    ("kind", "weight"),
    [(Kind.SOFTMAX, inf), (Kind.BATCH_NORM, inf), (Kind.CAST, 0.0), (Kind.UNKNOWN, 0.0)],
)
def test_weights_of_other_classes(kind: Kind, weight: float) -> None:
    assert weight_of([vertex(kind, WHOLE, WHOLE, WHOLE)], 0, 1.0) == weight


@pytest.mark.parametrize(
    ("devices", "micro", "last_first"),
    [(32, 1, True), (64, 1, False), (64, 7, False), (64, 8, True)],
)
def test_above_32_devices_the_heaviest_is_cut_first_except_in_large_micro_batches(
    devices: int, micro: int, last_first: bool
) -> None:
    """A normalisation weighs most.  Cut before the pooling behind it, it does not see it.

    Which was first shows in the pooling: it follows a neighbour that was cut before it.
    """
    sizes = (3, 4096, 4096, 4)
    norm = vertex(Kind.BATCH_NORM, sizes, WHOLE, sizes, 0)
    norm.inputs_cut = [WHOLE, WHOLE]
    pool = vertex(Kind.POOLING, (4096, 4096, 3, 4), WHOLE, (4096, 4096, 3, 4), 1)
    pool.arguments[0] = sizes
    norm.targets, pool.sources = [Edge(1)], [0]
    cut_all([norm, pool], Rounds(devices, micro_batch=micro))
    rounds = devices.bit_length() - 1
    assert norm.inputs_cut[0] == (1, 2**rounds, 1, 1)
    pieces = (2**rounds, 1) if last_first else (1, 2**rounds)
    assert pool.result_cut[:2] == pieces


# -- tensors of four dimensions --------------------------------------------------------------------


def test_shapes_as_four_dimensions() -> None:
    assert four_sizes(()) == WHOLE
    assert four_sizes((7, 8)) == (1, 1, 7, 8)
    assert four_sizes((5, 6, 7, 8)) == (5, 6, 7, 8)
    assert four_sizes((4, 5, 6, 7, 8)) == WHOLE
    assert last_four((4, 5, 6, 7, 8)) == [5, 6, 7, 8]
    assert last_four((7, 8)) == [1, 1, 7, 8]
    assert turned((1, 2, 3, 4)) == (1, 2, 4, 3)
    assert local((8, 9, 7, 5), (2, 3, 2, 1)) == (4, 3, 3, 5)
    assert halved((1, 2, 4, 8), N, W) == (2, 2, 4, 16)
    assert ratio((8, 4, 2, 1), (2, 4, 1, 1)) == (4, 1, 2, 1)
    assert row_of((1, 2, 4, 8), 2) == (4, 8)
    assert row_of((1, 2, 4, 8), 0) == ()
