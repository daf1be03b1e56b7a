"""Births and deaths of random programs, against a walk over who uses what."""

from __future__ import annotations

from dataclasses import dataclass, field
from math import prod

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import irtool
from irtool.cluster.launch_order import launches_nothing
from irtool.cluster.liveness import curve, liveness
from irtool.cluster.memory import MemoryCounting, memory

HEAD = """\
# IR entry: @main
# Total subgraphs: 1
# Total params: 1
# Params:
%para1_x: <Tensor[Float32], (4, 4)> : [4, 4]
subgraph @main() {
"""


@dataclass
class Value:
    """What a statement gives: the allocations that it stands for."""

    shape: tuple[int, ...]
    made_by: list[int] = field(default_factory=list[int])


@dataclass
class Program:
    """A program as text, and what a walk over it finds: born, dies, bytes of each allocation."""

    text: str
    buffers: dict[int, tuple[int, int, int]]


SIZES = st.sampled_from([(4, 4), (8, 2), (16,), (2, 2, 4), (3,), (7, 5)])


@st.composite
def programs(draw: st.DrawFn) -> Program:
    """Operators, renamings and orderings of earlier values, in the order in which they launch."""
    values = [Value((4, 4))]
    names = ["%para1_x"]
    lines: list[str] = []
    launched = 0
    born: dict[int, tuple[int, int]] = {}
    dies: dict[int, int] = {}

    def use(value: Value, launch: int) -> None:
        for number in value.made_by:
            dies[number] = max(dies[number], launch)

    for number in range(draw(st.integers(1, 9))):
        pick = st.integers(0, len(values) - 1)
        a, b = draw(pick), draw(pick)
        kind = draw(st.sampled_from(["ReLU", "Add", "Add", "Reshape", "Depend"]))
        first, second = values[a], values[b]
        shape = first.shape
        if kind in ("ReLU", "Add"):
            shape = draw(SIZES)
            use(first, launched)
            if kind == "Add":
                use(second, launched)
            born[number] = (launched, 4 * prod(shape))
            dies[number] = launched
            made = Value(shape, [number])
            launched += 1
        elif kind == "Reshape":
            use(first, launched)
            made = Value(shape, list(first.made_by))
            launched += not launches_nothing("Reshape")
        else:
            made = Value(shape, list(first.made_by))
        operands = {"Add": f"{names[a]}, {names[b]}", "Depend": f"{names[a]}, {names[b]}"}
        types = {
            "Add": f"{_type(first)}, {_type(second)}",
            "Depend": f"{_type(first)}, {_type(second)}",
        }
        lines += [
            f"  %{number}(v{number}) = {kind}({operands.get(kind, names[a])})",
            f"      : ({types.get(kind, _type(first))}) -> ({_type(made)})",
        ]
        values.append(made)
        names.append(f"%{number}")
    last = max(0, launched - 1)
    for made_by in values[-1].made_by:
        dies[made_by] = last
    text = HEAD + "\n".join([*lines, f"  Return({names[-1]})", "}", ""])
    return Program(text, {n: (place, dies[n], size) for n, (place, size) in born.items()})


def _type(value: Value) -> str:
    return f"<Tensor[Float32], ({', '.join(map(str, value.shape))})>"


@settings(max_examples=100)
@given(programs())
def test_a_tensor_lives_from_its_launch_to_its_last_user(program: Program) -> None:
    found = liveness(irtool.load(program.text.encode()), "dump", "none")
    lives = {
        int(buffer.node.node.id.removeprefix("%")): (buffer.born, buffer.dies, buffer.size)
        for buffer in found.buffers
    }
    assert lives == program.buffers
    assert not found.incomplete
    count = len(found.launched)
    assert curve(found.buffers, count) == [
        sum(size for born, dies, size in program.buffers.values() if born <= launch <= dies)
        for launch in range(count)
    ]


# -- weights of a network that is only run ---------------------------------------------------------

INFERENCE = b"""\
# IR entry: @main
# Total subgraphs: 1
# Total params: 3
# Params:
%para1_x: <Tensor[Float32], (8, 4)> : [8, 4]
%para2_weight: <Ref[Tensor[Float32]], (4, 16), ref_key=weight>  :  has_default
%para3_bias: <Ref[Tensor[Float16]], (16), ref_key=bias>  :  has_default
subgraph @main() {
  %0(a) = MatMul(%para1_x, %para2_weight)
      : (<Tensor[Float32], (8, 4)>, <Ref[Tensor[Float32]], (4, 16)>) -> (<Tensor[Float32], (8, 16)>)
  %1(b) = Add(%0, %para3_bias)
      : (<Tensor[Float32], (8, 16)>, <Ref[Tensor[Float16]], (16)>) -> (<Tensor[Float32], (8, 16)>)
  Return(%1)
      : (<Tensor[Float32], (8, 16)>)
}
"""


def test_weights_that_no_optimizer_updates_are_weights() -> None:
    found = memory(irtool.load(INFERENCE), MemoryCounting(rounding="none"))
    causes = {item.name: item.cause for item in found.static}
    assert causes == {"x": "inputs", "weight": "parameters", "bias": "parameters"}
    assert found.static_by_cause["parameters"] == 4 * 4 * 16 + 2 * 16
    assert found.static_by_cause["inputs"] == 4 * 8 * 4
    assert found.static_by_cause.get("other", 0) == 0
    assert found.static_by_cause.get("optimizer state", 0) == 0


@pytest.mark.parametrize(
    ("rounding", "bytes_"),
    [("none", 2 * 4 * 8 * 16), ("pool", 2 * 512), ("somas", 2 * 1024)],
)
def test_a_result_lives_beside_what_it_is_made_of(rounding: str, bytes_: int) -> None:
    """Both tensors of 512 bytes are alive while the second is computed."""
    options = MemoryCounting(rounding=rounding)  # type: ignore[arg-type]  # of the three
    assert memory(irtool.load(INFERENCE), options).dynamic_bytes == bytes_
