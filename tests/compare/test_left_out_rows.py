"""A call of one side alone, rows of whose result are joined with others and read then."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from tests.compare.dumps import Entry
from tests.compare.test_judging import Array, compared, numbers, single


def pairs(
    *, is_centred: bool, shift: float = 0.0, extra: bool = False, is_joined: bool = True
) -> list[Entry]:
    """Points, and each beside its distance from others: that is the same wherever they lie.

    Args:
        is_centred: their mean is taken off first.
        shift: of what indexing picks, unseen.
        is_joined: places are joined with distances; else a call reads them alone.
        extra: a call of this side alone that has nothing to do with them.
    """
    x = single(numbers(6, 3) + 1)
    made: list[Entry] = []
    points: Array = x
    if extra:
        made.append(("Tensor.square.0.forward", (x,), single(x * x)))
    if is_centred:
        mean = single(x.mean(0, keepdims=True))
        points = single(x - mean)
        made.append(("Tensor.mean.0.forward", (x, 0), mean))
        made.append(("Tensor.__sub__.0.forward", (x, mean), points))
    near = np.arange(30).reshape(6, 5) % 6
    other = single(points[near] + shift)
    own = single(np.broadcast_to(points[:, None], other.shape))
    made.append(("Functional.mystery.0.forward", (other, own), single(other - own)))
    joined = single(own + shift)
    if is_joined:
        joined = single(np.concatenate([joined, other - own], -1))
    weight = numbers(4, joined.shape[-1], seed=3)
    made.append(("Functional.linear.0.forward", (joined, weight), single(joined @ weight.T)))
    return made


@pytest.mark.parametrize("tensors", [True, False])
@pytest.mark.parametrize("centred", [(True, False), (False, True)])
def test_the_call_that_is_left_out_is_named_not_what_reads_its_rows(
    tmp_path: Path, centred: tuple[bool, bool], tensors: bool
) -> None:
    left, right = (pairs(is_centred=one, is_joined=tensors) for one in centred)
    found = compared(tmp_path, left, right, tensors)
    assert found.first is not None
    makers = found.first.maker_left, found.first.maker_right
    names = [maker.name if maker is not None else "" for maker in makers]
    assert names == ["Tensor.__sub__.0.forward" if one else "" for one in centred]


@pytest.mark.parametrize("tensors", [True, False])
def test_a_call_of_other_numbers_is_not_named(tmp_path: Path, tensors: bool) -> None:
    left, right = pairs(is_centred=False, extra=True), pairs(is_centred=False, shift=0.3)
    found = compared(tmp_path, left, right, tensors)
    assert found.first is not None
    assert found.first.maker_left is None
    assert found.first.maker_right is None


@pytest.mark.parametrize("centred", [True, False])
def test_what_both_do_is_nothing_to_see(tmp_path: Path, centred: bool) -> None:
    found = compared(tmp_path, pairs(is_centred=centred), pairs(is_centred=centred))
    assert found.first is None
