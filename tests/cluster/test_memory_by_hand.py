"""Memory of small steps: what stays, what is alive at the peak, what saving it is said to cost."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

import irtool
from irtool.cluster.machine import default_machine
from irtool.cluster.memory import memory
from irtool.cluster.what_if import Option
from irtool.cluster.what_if.plan import prices
from irtool.cluster.what_if.state import Weight, _full  # pyright: ignore[reportPrivateUsage]
from irtool.ir.graph import Node
from tests.cluster.rank_dumps import Do, rank_dump


def test_a_weight_that_stays_has_its_type_and_shape() -> None:
    found = memory(rank_dump(Do("AllReduce", (0, 1)), weights=["w"]))
    (item,) = (one for one in found.static if one.name == "w")
    assert (item.dtype, item.shape, item.cause) == ("Float32", (4, 64), "parameters")


def test_the_largest_tensor_alive_at_the_peak_comes_first() -> None:
    steps = [Do("AllReduce", (0, 1), shape=(4, rows)) for rows in (64, 512, 128)]
    alive = memory(rank_dump(*steps, chained=False)).alive
    sizes = [item.bytes or 0 for item in alive]
    assert len(sizes) == 3
    assert sizes == sorted(sizes, reverse=True)
    assert sizes[0] > sizes[-1]


# -- what an option costs --------------------------------------------------------------------------


def launched(dtype: str, size: int) -> Any:
    output = SimpleNamespace(dtype=dtype, size=size)
    return SimpleNamespace(node=SimpleNamespace(output_type=output))


@pytest.mark.parametrize(
    ("tensors", "dtype"),
    [
        ([launched("Float16", 10), launched("Float32", 5)], "Float16"),
        ([launched("Float16", 10), launched("Float32", 15)], "Float32"),
        ([launched("Float16", 10), launched("Float32", 9), launched("Float16", 1)], "Float16"),
        ([], None),
    ],
)
def test_operations_are_priced_at_the_rate_of_what_most_bytes_are(
    tensors: list[Any], dtype: str | None
) -> None:
    machine = default_machine()
    seconds = prices(SimpleNamespace(launched=tensors), machine, 1e9)  # type: ignore[arg-type]
    assert seconds(Option("recompute", "a", "", flops=10**12)) == pytest.approx(
        10**12 / machine.rate(dtype)
    )
    assert machine.rate("Float16") != machine.rate("Float32")


# -- why an optimizer can't be shared --------------------------------------------------------------


@pytest.mark.parametrize(
    ("shape", "replicas", "size", "why"),
    [
        ((64, 4), (0, 1), 65536, ""),
        ((64, 4), (0,), 65536, "no other rank has this slice"),
        ((65, 4), (0, 1), 65536, "the first dimension, 65, is no multiple of 2 replicas"),
        ((), (0, 1), 65536, "the first dimension, 1, is no multiple of 2 replicas"),
        ((64, 4), (0, 1), 65535, "smaller than parallel_optimizer_threshold (64 KB)"),
        ((64, 4), (0, 1), None, ""),  # how large it is nobody knows
    ],
)
def test_a_weight_is_shared_by_its_rows_from_a_threshold_on(
    shape: tuple[int, ...], replicas: tuple[int, ...], size: int | None, why: str
) -> None:
    tensor = SimpleNamespace(shape=shape, bytes=size)
    weight = SimpleNamespace(replicas=replicas, tensor=tensor, full_bytes=None, threshold=65536)
    assert Weight.unshardable(weight) == why  # type: ignore[arg-type]
    if size is not None:
        whole = SimpleNamespace(
            replicas=replicas, tensor=tensor, full_bytes=size + 1, threshold=65536
        )
        expected = "" if size == 65535 else why
        assert Weight.unshardable(whole) == expected  # type: ignore[arg-type]


# -- how large a weight was before it was cut ------------------------------------------------------


def product(shapes: str, weight: str = "(16, 8)") -> Node:
    """A product of (4, 16) with a slice of a weight, whose inputs had these shapes."""
    marks = f" primitive_attrs: {{origin_input_shapes: {shapes}}}" if shapes else ""
    one, other = "<Tensor[Float32], (4, 16)>", f"<Tensor[Float32], {weight}>"
    text = (
        f"# IR entry: @net\n\n%para1_x: {one} : [4, 16]\n%para2_w: {other} : [16, 8]\n\n"
        f"subgraph @net() {{\n  %0(v) = PrimFunc_MatMul(%para1_x, %para2_w){marks}\n"
        f"      : ({one}, {other}) -> (<Tensor[Float32], (4, 8)>)\n  Return(%0)\n}}\n"
    )
    return next(iter(irtool.loads(text).nodes("MatMul")))


@pytest.mark.parametrize(
    ("shapes", "whole"),
    [
        ("((8, 16), (16, 32))", 16 * 32 * 4),
        ("((8, 16), (3, 3), (16, 32))", 16 * 32 * 4),  # the last one is the weight
        ("((16, 32))", 16 * 32 * 4),
        ("((8, 16), (-1, 32))", None),
        ("((8, 16), ())", None),
        ("()", None),
        ("", None),
    ],
)
def test_the_whole_weight_is_the_last_input_before_slicing(shapes: str, whole: int | None) -> None:
    assert _full(product(shapes)) == whole
