"""Whole networks carried out on simulated devices, with the slices and chains that are promised.

Random networks with random strategies: every device computes its slices, takes part in the
collectives of its operators, and goes through the chain of redistribution on every edge.  In the
end each device must hold its slice of what one device alone computes.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import reduce
from math import prod
from typing import Any

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

import irtool
from irtool.ir.graph import Node
from irtool.sharding.check import check
from irtool.sharding.network.context import ParallelContext
from irtool.sharding.network.report import CheckResult
from tests.sharding.test_execution import REDUCTIONS, slice_of
from tests.sharding.test_redistribution import execute, join_split_and_concat

Array = np.ndarray[Any, Any]
DEVICES = 8
CUTS = (1, 2, 4, 8)


@dataclass
class Statement:
    """One operator: its operands by name, its strategy, and what it computes of slices."""

    name: str
    op: str
    operands: tuple[str, ...]
    constants: tuple[str, ...]
    strategy: tuple[tuple[int, ...], ...]
    shape: tuple[int, ...]
    compute: Callable[..., Array]


@dataclass
class Network:
    """Parameters and operators, in the order of the dump."""

    parameters: dict[str, tuple[int, ...]] = field(default_factory=dict[str, tuple[int, ...]])
    statements: list[Statement] = field(default_factory=list[Statement])

    def shape(self, name: str) -> tuple[int, ...]:
        if name in self.parameters:
            return self.parameters[name]
        return next(each.shape for each in self.statements if each.name == name)

    def text(self) -> str:
        numbers = {name: place for place, name in enumerate(self.parameters, 1)}
        lines = ["# IR entry: @main", "# Total subgraphs: 1", "", "# Params:"]
        for name, shape in self.parameters.items():
            if name == "x":
                lines.append(f"%para1_x: <Tensor[Float32], {_tuple(shape)}> : {list(shape)}")
                continue
            kind = f"<Ref[Tensor[Float32]], {_tuple(shape)}, ref_key={name}>"
            lines.append(f"%para{numbers[name]}_{name}: {kind}  :  has_default")
        lines += ["", "subgraph @main() {"]
        places = {each.name: f"%{place}" for place, each in enumerate(self.statements)}
        for name in self.parameters:
            places[name] = f"%para{numbers[name]}_{name}"
        for each in self.statements:
            operands = ", ".join((*(places[name] for name in each.operands), *each.constants))
            types = [f"<Tensor[Float32], {_tuple(self.shape(name))}>" for name in each.operands]
            types += ["<Int64, NoShape>" for _ in each.constants]
            strategy = ", ".join(map(_tuple, each.strategy))
            lines += [
                f"  {places[each.name]}({each.name}) = PrimFunc_{each.op}({operands})"
                f" primitive_attrs: {{in_strategy: ({strategy})}}",
                f"      : ({', '.join(types)}) -> (<Tensor[Float32], {_tuple(each.shape)}>)",
            ]
        last = self.statements[-1]
        lines += [
            f"  Return({places[last.name]})",
            f"      : (<Tensor[Float32], {_tuple(last.shape)}>)",
            "}",
            "",
        ]
        return "\n".join(lines)


def _tuple(sizes: tuple[int, ...]) -> str:
    return f"({', '.join(map(str, sizes))})"


@st.composite
def networks(draw: st.DrawFn) -> Network:
    """Products, sums with a bias, rectifiers, transposes and reductions, one behind the other."""
    net = Network({"x": (16, 32)})
    current = "x"
    for number in range(draw(st.integers(2, 5))):
        rows, columns = net.shape(current)
        kind = draw(st.sampled_from(["MatMul", "MatMul", "Add", "ReLU", "Transpose", "ReduceSum"]))
        if kind == "ReduceSum" and min(rows, columns) < 8:
            kind = "ReLU"

        def cut(*sizes: int) -> tuple[int, ...]:
            found: list[int] = []
            for size in sizes:
                left = DEVICES // prod(found)
                found.append(
                    draw(st.sampled_from([n for n in CUTS if n <= left and size % n == 0]))
                )
            return tuple(found)

        name, weight = f"v{number}", f"w{number}"
        if kind == "MatMul":
            wide = draw(st.sampled_from([8, 16]))
            m, k, n = cut(rows, columns, wide)
            net.parameters[weight] = (columns, wide)
            made = Statement(
                *(name, kind, (current, weight), ("Bool(0)", "Bool(0)")),
                *(((m, k), (k, n)), (rows, wide), lambda a, b: a @ b),
            )
        elif kind == "Add":
            m, n = cut(rows, columns)
            net.parameters[weight] = (columns,)
            made = Statement(
                *(name, kind, (current, weight), ()),
                *(((m, n), (n,)), (rows, columns), lambda a, b: a + b),
            )
        elif kind == "Transpose":
            made = Statement(
                *(name, kind, (current,), ("(I64(1), I64(0))",)),
                *((cut(rows, columns),), (columns, rows), lambda a: a.T),
            )
        elif kind == "ReduceSum":
            axis = draw(st.sampled_from([0, 1]))
            shape = (1, columns) if axis == 0 else (rows, 1)
            made = Statement(
                *(name, kind, (current,), (f"(I64({axis}))", "Bool(1)", "Bool(0)")),
                *((cut(rows, columns),), shape, lambda a, axis=axis: a.sum(axis, keepdims=True)),
            )
        else:
            made = Statement(
                *(name, kind, (current,), (), (cut(rows, columns),), (rows, columns)),
                lambda a: np.maximum(a, 0),
            )
        net.statements.append(made)
        current = name
        if 1 in made.shape:
            break
    return net


def values(net: Network) -> dict[str, Array]:
    """What one device alone computes."""
    chance = np.random.default_rng(len(net.statements))
    found = {
        name: chance.integers(-3, 4, shape).astype(np.float64)
        for name, shape in net.parameters.items()
    }
    for each in net.statements:
        found[each.name] = each.compute(*(found[name] for name in each.operands))
        assert found[each.name].shape == each.shape
    return found


def reports(net: Network) -> list[CheckResult]:
    """What is promised to each rank."""
    dump = irtool.load(net.text().encode())
    assert not dump.problems
    return [
        check(dump, ParallelContext(devices=DEVICES, rank=rank, full_batch=True))
        for rank in range(DEVICES)
    ]


@settings(max_examples=60)
@given(networks())
def test_every_device_ends_with_its_slice(net: Network) -> None:
    whole = values(net)
    found = reports(net)
    held: dict[str, list[Array]] = {}
    for place, each in enumerate(net.statements):
        operators = [report.operators[place] for report in found]
        assert {item.verdict for item in operators} == {"legal"}, operators[0].judgement.reasons
        assert {item.strategy for item in operators} == {each.strategy}
        inputs: list[list[Array]] = []
        for number, name in enumerate(each.operands):
            layout = operators[0].judgement.input_layouts[number]
            if name in net.parameters:
                inputs.append([slice_of(whole[name], layout, rank) for rank in range(DEVICES)])
                continue
            inputs.append(_moved(found, operators[0].node, number, held[name]))
        mine = [each.compute(*(some[rank] for some in inputs)) for rank in range(DEVICES)]
        for step in range(len(operators[0].collectives)):
            before = list(mine)
            for rank, item in enumerate(operators):
                collective = item.collectives[step]
                assert (collective.op, collective.reduce) == ("AllReduce", "sum")
                terms = [before[other] for other in collective.ranks]
                mine[rank] = reduce(REDUCTIONS["sum"], terms)
                assert collective.bytes == 4 * mine[rank].size
        for rank, item in enumerate(operators):
            (layout,) = item.judgement.output_layouts
            np.testing.assert_allclose(mine[rank], slice_of(whole[each.name], layout, rank))
        held[each.name] = mine
    for parameter in found[0].parameters:
        if parameter.name == "x":
            continue
        reader = next(each for each in net.statements if parameter.name in each.operands)
        cut = reader.strategy[reader.operands.index(parameter.name)]
        sizes = net.parameters[parameter.name]
        assert parameter.slice == tuple(s // c for s, c in zip(sizes, cut, strict=True))


def _moved(found: list[CheckResult], user: Node, number: int, held: list[Array]) -> list[Array]:
    """What the operands are after the chain on this edge."""
    edges = [
        next(
            edge
            for edge in report.redistributions
            if (edge.consumer.id, edge.input) == (user.id, number)
        )
        for report in found
    ]
    assert edges[0].source is not None
    assert edges[0].target is not None
    chains = [edge.operators for edge in edges]
    known = [join_split_and_concat(chain) for chain in chains if chain is not None]
    assert len(known) == DEVICES
    assert (not known[0]) == edges[0].source.same_as(edges[0].target)
    now = dict(enumerate(held))
    for steps in zip(*known, strict=True):
        now = execute(dict(enumerate(steps)), now)
    return [now[rank] for rank in range(DEVICES)]
