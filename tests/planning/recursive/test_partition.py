"""Cuts in two, round by round."""

from __future__ import annotations

from math import prod

import pytest
from hypothesis import given
from hypothesis import strategies as st

from irtool.planning.recursive.cut_costs import NotSearchable, Round, Terms, best_option, weight_of
from irtool.planning.recursive.elimination import Edge, Vertex
from irtool.planning.recursive.kinds import Kind
from irtool.planning.recursive.partition import Rounds, cut_all
from irtool.planning.recursive.tensors import WHOLE, H, W

sizes = st.integers(1, 4096)


def product(i: int, k: int, j: int, place: int = 0) -> Vertex:
    vertex = Vertex(place, Kind.MATMUL, [(1, 1, i, k), (1, 1, k, j)], (1, 1, i, j))
    vertex.inputs_cut = [WHOLE, WHOLE]
    return vertex


def test_rows_are_cut_where_there_are_many() -> None:
    vertex = product(65536, 1024, 1024)
    cut_all([vertex], Rounds(8))
    assert vertex.inputs_cut == [(1, 1, 8, 1), WHOLE]
    assert vertex.result_cut == (1, 1, 8, 1)


def test_rows_that_cost_more_are_cut_less() -> None:
    cheap, dear = product(512, 512, 512), product(512, 512, 512)
    cut_all([cheap], Rounds(8))
    cut_all([dear], Rounds(8, row_coefficient=1024))
    assert cheap.inputs_cut[0][H] > dear.inputs_cut[0][H]


@given(sizes, sizes, sizes, st.sampled_from([1, 2, 8, 64, 1024]))
def test_a_product_is_cut_into_no_more_pieces_than_devices(
    i: int, k: int, j: int, devices: int
) -> None:
    vertex = product(i, k, j)
    cut_all([vertex], Rounds(devices))
    first, second = vertex.inputs_cut
    assert first[H] * first[W] * second[W] <= devices
    assert first[W] == second[H]
    assert (i % first[H], k % first[W], j % second[W]) == (0, 0, 0)


@given(sizes, sizes, sizes)
def test_columns_and_the_sum_are_never_both_cut(i: int, k: int, j: int) -> None:
    vertex = product(i, k, j)
    cut_all([vertex], Rounds(1024))
    assert 1 in (vertex.inputs_cut[0][W], vertex.inputs_cut[1][W])


def test_what_a_neighbour_has_already_is_taken_over() -> None:
    """Alone the second product would cut its columns; behind rows it cuts rows."""
    first, second = product(256, 4096, 64, 0), product(256, 64, 4096, 1)
    alone = product(256, 64, 4096)
    cut_all([alone], Rounds(2, row_coefficient=1))
    assert alone.inputs_cut[1][W] == 2
    first.targets, second.sources = [Edge(1)], [0]
    known = {0: Round((1, 1, 2, 1), (1, 1, 2, 1))}
    option = best_option([first, second], 1, known, 0, Terms(row_coefficient=1))
    assert option is not None
    assert option.first == (H,)


def test_a_pipeline_takes_the_last_cuts_back() -> None:
    vertex = product(65536, 1024, 1024)
    cut_all([vertex], Rounds(8, stages=2, micro_batch=64))
    assert prod(vertex.inputs_cut[0]) == 4


def test_a_pipeline_cuts_rows_as_far_as_a_micro_batch_goes() -> None:
    vertex = product(65536, 1024, 1024)
    cut_all([vertex], Rounds(64, stages=2, micro_batch=4))
    assert vertex.inputs_cut[0][H] <= 4


def test_all_products_weigh_what_the_first_vertex_does() -> None:
    small, large = product(8, 8, 8, 0), product(4096, 4096, 4096, 1)
    assert weight_of([small, large], 1, 0.1) == weight_of([small, large], 0, 0.1)


def test_a_given_normalisation_has_no_weight_above_32_devices() -> None:
    norm = Vertex(0, Kind.LAYER_NORM, [(1, 1, 64, 64)], (1, 1, 64, 64), pinned=True)
    norm.inputs_cut = [(1, 1, 2, 1), WHOLE]
    cut_all([norm], Rounds(32))
    with pytest.raises(NotSearchable, match="layer normalisation"):
        cut_all([norm], Rounds(64))


def test_a_tie_of_rows_and_the_sum_is_decided_by_the_precision_of_a_tenth() -> None:
    """Rows cost a tenth of ``j k``; a single-precision tenth is a little more, so ``k`` is cut."""
    vertex = product(128, 1280, 512)
    option = best_option([vertex], 0, {}, 0, Terms())
    assert option is not None
    assert option.first == (W,)
    exact = best_option([vertex], 0, {}, 0, Terms(row_coefficient=0.1))
    assert exact is not None
    assert exact.first == (H,)
