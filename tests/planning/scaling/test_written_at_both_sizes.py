"""A network scaled to another batch is the network as it is written at that batch."""

from __future__ import annotations

from collections.abc import Callable

import pytest

import irtool
from irtool.planning.scaling.scaled import scaled
from irtool.planning.search.operator_candidates import CannotPlan
from tests.sharding.network.small import Body, Small, Value, constant, tensor

Part = Callable[[Body, Value, int], Value]
"""Goes on from a tensor of (batch, 64)."""


def number(value: float, dtype: str = "Float32") -> Value:
    text = f"Tensor(shape=[], dtype={dtype}, value={value})"
    return Value(text, f"<Tensor[{dtype}], (), value=...>")


def both(*shapes: tuple[int, ...]) -> str:
    """The type of several tensors."""
    types = ",".join("Tensor[Float32]" for _ in shapes)
    texts = ", ".join(f"({', '.join(map(str, shape))})" for shape in shapes)
    return f"<Tuple[{types}], TupleShape({texts})>"


def item(main: Body, source: Value, at: int, shape: tuple[int, ...]) -> Value:
    return main.add("TupleGetItem", [source, constant(at)], tensor(shape))


def split_and_join(main: Body, x: Value, batch: int) -> Value:
    halves = main.add(
        "PrimFunc_Split", [x, constant(1), constant(2)], both((batch, 32), (batch, 32))
    )
    left, right = (item(main, halves, at, (batch, 32)) for at in (0, 1))
    parts = main.add("MakeTuple", [left, right, left], both(*[(batch, 32)] * 3))
    return main.add("PrimFunc_Concat", [parts, constant(1)], tensor((batch, 96)))


def split_batch(main: Body, x: Value, batch: int) -> Value:
    half = (batch // 2, 64)
    halves = main.add("PrimFunc_Split", [x, constant(0), constant(2)], both(half, half))
    return item(main, halves, 1, half)


def twice_the_batch(main: Body, x: Value, batch: int) -> Value:
    parts = main.add("MakeTuple", [x, x], both((batch, 64), (batch, 64)))
    return main.add("PrimFunc_Concat", [parts, constant(0)], tensor((2 * batch, 64)))


def gated(main: Body, x: Value, batch: int) -> Value:
    return main.add("PrimFunc_Swiglu", [x, constant(1)], tensor((batch, 32)))


def tiled(main: Body, x: Value, batch: int) -> Value:
    return main.add("PrimFunc_Tile", [x, constant((3, 1, 2))], tensor((3, batch, 128)))


def broadcast(main: Body, x: Value, batch: int) -> Value:
    thin = main.reshape(x, (batch, 1, 64))
    return main.add(
        "PrimFunc_BroadcastTo", [thin, constant((batch, 5, 64))], tensor((batch, 5, 64))
    )


def repeated(main: Body, x: Value, batch: int) -> Value:
    made = "axis: I64(1), rep: I64(3)"
    return main.add("PrimFunc_RepeatElements", [x], tensor((batch, 192)), attributes=made)


def largest(main: Body, x: Value, batch: int) -> Value:
    found = main.add("PrimFunc_TopK", [x, constant(4)], both((batch, 4), (batch, 4)))
    return item(main, found, 0, (batch, 4))


def cut(
    main: Body, x: Value, begin: tuple[int, ...], end: tuple[int, ...], shape: tuple[int, ...]
) -> Value:
    words = [constant(begin), constant(end), constant((1,) * len(begin))]
    masks = [constant(0) for _ in range(5)]
    return main.add("PrimFunc_StridedSlice", [x, *words, *masks], tensor(shape))


def columns(main: Body, x: Value, batch: int) -> Value:
    return cut(main, x, (0, 8), (batch, 40), (batch, 32))


def first_rows(main: Body, x: Value, batch: int) -> Value:
    return cut(main, x, (0, 0), (6, 64), (6, 64))


def last_rows(main: Body, x: Value, batch: int) -> Value:
    return cut(main, x, (batch - 6, 0), (batch, 64), (6, 64))


def last_rows_from_the_end(main: Body, x: Value, batch: int) -> Value:
    return cut(main, x, (-6, 0), (batch, 64), (6, 64))


def middle_rows(main: Body, x: Value, batch: int) -> Value:
    return cut(main, x, (1, 0), (7, 64), (6, 64))


def half_the_rows(main: Body, x: Value, batch: int) -> Value:
    """What is added to them tells that half of the rows are meant, not four."""
    half = split_batch(main, x, batch)
    taken = cut(main, x, (0, 0), (batch // 2, 64), (batch // 2, 64))
    return main.add("PrimFunc_Add", [half, taken], tensor((batch // 2, 64)))


def other_half(main: Body, x: Value, batch: int) -> Value:
    half = split_batch(main, x, batch)
    taken = cut(main, x, (batch // 2, 0), (batch, 64), (batch // 2, 64))
    return main.add("PrimFunc_Add", [taken, half], tensor((batch // 2, 64)))


def two_halves(main: Body, x: Value, batch: int) -> Value:
    """Slices that together are the whole, and are added to one another."""
    half = batch // 2
    first = cut(main, x, (0, 0), (half, 64), (half, 64))
    second = cut(main, x, (half, 0), (batch, 64), (half, 64))
    return main.add("PrimFunc_Add", [first, second], tensor((half, 64)))


def shifted(main: Body, x: Value, batch: int) -> Value:
    """All rows but the last beside all but the first."""
    before = cut(main, x, (0, 0), (batch - 1, 64), (batch - 1, 64))
    behind = cut(main, x, (1, 0), (batch, 64), (batch - 1, 64))
    return main.add("PrimFunc_Sub", [behind, before], tensor((batch - 1, 64)))


def classes(main: Body, x: Value, batch: int) -> Value:
    best = main.add("PrimFunc_Argmax", [x], tensor((batch,), "Int32"), attributes="axis: I64(-1)")
    return main.add("PrimFunc_OneHot", [best, constant(64), number(1.0), number(0.0), constant(-1)],
                    tensor((batch, 64)))  # fmt: skip


def filled(main: Body, x: Value, batch: int) -> Value:
    ones = main.add("PrimFunc_FillV2", [constant((batch, 64)), number(1.0)], tensor((batch, 64)))
    return main.add("PrimFunc_Add", [x, ones], tensor((batch, 64)))


def counted(main: Body, x: Value, batch: int) -> Value:
    numbers = [constant(0), constant(batch), constant(1), constant(1000000)]
    rows = main.add("PrimFunc_Range", numbers, tensor((batch,), "Int64"))
    cast = main.add("PrimFunc_Cast", [rows, constant(43)], tensor((batch,)))
    return main.add("PrimFunc_Add", [summed(main, x, batch), cast], tensor((batch,)))


def parts_of_the_batch(main: Body, x: Value, batch: int) -> Value:
    half = (batch // 2, 64)
    parts = main.add(
        "PrimFunc_SplitWithSize", [x, constant((batch // 2, batch // 2)), constant(0)],
        both(half, half),
    )  # fmt: skip
    first, second = (item(main, parts, at, half) for at in (0, 1))
    return main.add("PrimFunc_Add", [first, second], tensor(half))


def dense(main: Body, x: Value, batch: int) -> Value:
    weight = Value("%para2_w", "<Ref[Tensor[Float32]], (96, 64), ref_key=w, is_parameter>")
    return main.add("PrimFunc_Dense", [x, weight, Value("None", "<None, NoShape>")],
                    tensor((batch, 96)))  # fmt: skip


def flat(main: Body, x: Value, batch: int) -> Value:
    return main.reshape(x, (batch * 64,))


def heads(main: Body, x: Value, batch: int) -> Value:
    apart = main.reshape(x, (batch, 4, 16))
    turned = main.add("PrimFunc_Transpose", [apart, constant((1, 0, 2))], tensor((4, batch, 16)))
    return main.reshape(turned, (4 * batch, 16))


def summed(main: Body, x: Value, batch: int) -> Value:
    return main.add("PrimFunc_ReduceSum", [x, constant((1,)), constant(False), constant(False)],
                    tensor((batch,)))  # fmt: skip


PARTS: dict[str, Part] = {
    part.__name__: part
    for part in (
        split_and_join, split_batch, twice_the_batch, gated, tiled, broadcast, repeated, largest,
        columns, first_rows, last_rows, last_rows_from_the_end, half_the_rows, other_half,
        two_halves, classes,
        filled, counted, parts_of_the_batch, dense, flat, heads, summed,
    )
}  # fmt: skip


def written(part: Part, batch: int) -> irtool.Dump:
    net = Small()
    main = net.graph("main")
    x = net.input("x", (batch, 64))
    if part is dense:
        net.weight("w", (96, 64))
    found = part(main, main.add("PrimFunc_Exp", [x], tensor((batch, 64))), batch)
    shape = found.type.split("(")[1].split(")")[0]
    main.result = main.add("PrimFunc_Tanh", [found], f"<Tensor[Float32], ({shape})>")
    return net.dump()


@pytest.mark.parametrize("name", PARTS)
@pytest.mark.parametrize("batch", [16, 40])
def test_it_is_the_network_as_written(name: str, batch: int) -> None:
    found = scaled(written(PARTS[name], 8), {"batch": batch})
    assert found.sizes["batch"] == (8, batch)
    assert irtool.dumps(found.dump) == irtool.dumps(scaled(written(PARTS[name], batch), {}).dump)


def test_rows_from_the_middle_are_not_known_elsewhere() -> None:
    with pytest.raises(CannotPlan, match="takes 6 of 8, and would have to take 6 of 16"):
        scaled(written(middle_rows, 8), {"batch": 16})


def test_fewer_rows_than_are_taken_are_none() -> None:
    with pytest.raises(CannotPlan, match="takes 6 of 8, and would have to take 6 of 4"):
        scaled(written(first_rows, 8), {"batch": 4})


def test_a_batch_that_is_one_more_than_what_is_read_is_not_scaled() -> None:
    """All rows but the last are read beside all but the first: such rows are a sequence."""
    with pytest.raises(CannotPlan, match="not all of that can change"):
        scaled(written(shifted, 8), {"batch": 16})
