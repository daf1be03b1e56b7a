"""What an operator gets that nobody gave a strategy: the batch over all devices, or everything."""

from __future__ import annotations

import pytest

from irtool.operators.call import Strategy
from tests.sharding.calls import call, judged

SQUARE = [64, 64]


@pytest.mark.parametrize(
    ("axis", "tensors", "strategy"),
    [
        (1, 2, ((8, 1), (8, 1))),
        (0, 2, ((1, 1), (1, 1))),
        (-1, 2, ((8, 1), (8, 1))),
        (-2, 2, ((1, 1), (1, 1))),
        (1, 1, ((8, 1),)),
        (0, 1, ((1, 1),)),
    ],
)
def test_what_is_joined_along_the_batch_stays_whole(
    axis: int, tensors: int, strategy: Strategy
) -> None:
    size = [64, 64]
    size[axis] *= tensors
    found = judged(call("Concat", [SQUARE] * tensors, axis, out=size, axis=axis), None)
    assert (found.verdict, found.strategy) == ("legal", strategy)


@pytest.mark.parametrize(
    ("op", "shapes", "strategy"),
    [
        ("Add", ([64, 64], [64, 64]), ((8, 1), (8, 1))),
        ("Add", ([64, 64], [64]), ((8, 1), (1,))),
        ("Add", ([64, 64], [1, 64]), ((8, 1), (1, 1))),
        ("Add", ([], []), ((), ())),
    ],
)
def test_what_is_repeated_along_the_batch_stays_whole(
    op: str, shapes: tuple[list[int], ...], strategy: Strategy
) -> None:
    found = judged(call(op, *shapes, out=list(shapes[0])), None)
    assert found.strategy == strategy


@pytest.mark.parametrize(
    ("left", "right", "out", "turned", "strategy"),
    [
        ([64, 32], [32, 64], [64, 64], False, ((8, 1), (1, 1))),
        ([32, 64], [32, 64], [64, 64], True, ((1, 8), (1, 1))),
    ],
)
def test_a_product_cuts_its_rows(
    left: list[int], right: list[int], out: list[int], turned: bool, strategy: Strategy
) -> None:
    found = judged(
        call("MatMul", left, right, turned, False, out=out, transpose_a=turned, transpose_b=False),
        None,
    )
    assert found.strategy == strategy


def test_products_of_a_batch_cut_the_batch() -> None:
    left, right, out = [8, 64, 32], [8, 32, 64], [8, 64, 64]
    product = call(
        "BatchMatMul", left, right, False, False, out=out, transpose_a=False, transpose_b=False
    )
    assert judged(product, None).strategy == ((8, 1, 1), (8, 1, 1))
