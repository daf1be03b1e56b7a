"""The Python source of the network that a case describes: one operator, its operands, gradients.

The text is what MindSpore's parser reads, so everything that is constant stands in it as a literal.
"""

from __future__ import annotations

from typing import Any

HEADER = """\
import mindspore as ms
import numpy as np
from mindspore import Layout, Parameter, Symbol, Tensor, nn, ops
from mindspore.common.initializer import initializer
from mindspore.nn.wrap.cell_wrapper import _VirtualDatasetCell
from primitives import primitive


"""

GRADIENT = """

class Step(nn.Cell):
    def __init__(self, network):
        super().__init__()
        self.network = network
        self.weights = ms.ParameterTuple(network.trainable_params())
        self.gradient = ops.value_and_grad(network, {positions}, {weights})

    def construct(self{names}):
        return self.gradient({inputs})
"""


def source(case: dict[str, Any]) -> str:
    """A module with ``network()``, which returns the cell to compile and its inputs."""
    writer = _Writer()
    arguments = [writer.argument(argument) for argument in case["arguments"]]
    inputs = writer.inputs
    names = "".join(f", {name}" for name, _ in inputs)
    attributes = ", ".join(f"{key}={_literal(value)}" for key, value in case["attributes"].items())
    in_strategy = _strategy(case["in_strategy"])
    out_strategy = _strategy(case["out_strategy"])
    shard = ""
    if in_strategy or out_strategy:
        shard = f"\n        self.operator.shard({in_strategy or None}, {out_strategy or None})"
    extra = "".join(
        f"\n        self.operator.add_prim_attr({key!r}, {_literal(value)})"
        for key, value in case.get("primitive_attributes", {}).items()
    )
    result = "" if case.get("returns") is None else f"[{case['returns']}]"
    text = HEADER + (
        "class Network(nn.Cell):\n"
        "    def __init__(self):\n"
        "        super().__init__()\n"
        f"        self.operator = primitive({case['operator']!r})({attributes}){extra}{shard}"
        f"{''.join(chr(10) + ' ' * 8 + line for line in writer.members)}\n\n"
        f"    def construct(self{names}):\n"
        f"        return self.operator({', '.join(arguments)}){result}\n"
    )
    # users' networks stand in such a cell once Model builds them; MindSpore adds what it holds else
    cell = "_VirtualDatasetCell(Network())" if case.get("dataset_cell") else "Network()"
    gradient = case.get("gradient", True) and case["phase"] == "train"
    weights = any("requires_grad=True" in line for line in writer.members)
    positions = [index for index, (_, is_float) in enumerate(inputs) if is_float]
    if gradient and (weights or positions):
        text += GRADIENT.format(
            positions=tuple(positions) if positions else None,
            weights="self.weights" if weights else None,
            names=names,
            inputs=", ".join(name for name, _ in inputs),
        )
        cell = f"Step({cell})"
    values = "".join(f"{value}, " for value in writer.values)
    return text + f"\n\ndef network():\n    return {cell}, ({values})\n"


class _Writer:
    """Operands by name, and what the cell and its caller must hold of them."""

    def __init__(self) -> None:
        self.members: list[str] = []
        self.inputs: list[tuple[str, bool]] = []
        self.values: list[str] = []
        self._count = 0

    def argument(self, argument: Any) -> str:
        if not isinstance(argument, dict):
            return _literal(argument)
        if "tuple" in argument:
            return "(" + "".join(f"{self.argument(item)}, " for item in argument["tuple"]) + ")"
        if "type" in argument:
            return f"ms.{argument['type']}"
        name = f"tensor{self._count}"
        self._count += 1
        shape, dtype = tuple(argument["shape"]), argument["dtype"]
        is_float = dtype.startswith(("float", "bfloat"))
        if argument["is"] == "parameter":
            made = f"initializer('ones', {shape}, ms.{dtype})"
            self.members.append(
                f"self.{name} = Parameter({made}, name={name!r}, requires_grad={is_float})"
            )
            return f"self.{name}"
        if argument["is"] == "constant":
            self.members.append(f"self.{name} = {self._tensor(argument)}")
            return f"self.{name}"
        self.inputs.append((name, is_float))
        self.values.append(self._tensor(argument))
        return name

    @staticmethod
    def _tensor(argument: dict[str, Any]) -> str:
        dtype = argument["dtype"]
        if "values" in argument:
            return f"Tensor({_literal(argument['values'])}, ms.{dtype})"
        if any(not isinstance(size, int) for size in argument["shape"]):
            sizes = ", ".join(_size(size) for size in argument["shape"])
            return f"Tensor(shape=[{sizes}], dtype=ms.{dtype})"
        shape = tuple(argument["shape"])
        return f"Tensor(np.ones({shape}, np.int8), ms.{dtype})"


def _size(size: Any) -> str:
    """A static size, ``None`` of a dynamic one, or ``Symbol(divisor=8)`` for ``"8n"``."""
    if isinstance(size, str):
        return f"Symbol(divisor={int(size.removesuffix('n'))})"
    return repr(size)


def _literal(value: Any) -> str:
    if isinstance(value, list):
        return "(" + "".join(f"{_literal(item)}, " for item in value) + ")"
    if isinstance(value, dict) and "type" in value:
        return f"ms.{value['type']}"
    return repr(value)


def _strategy(strategy: Any) -> str | None:
    """Python text of a tuple strategy, or of the layouts in a description of layouts."""
    if strategy is None:
        return None
    if isinstance(strategy, dict):
        base = f"Layout({tuple(strategy['matrix'])}, {tuple(strategy['names'])})"
        return "(" + "".join(f"{_layout(base, one)}, " for one in strategy["maps"]) + ")"
    return _literal(strategy)


def _layout(base: str, entries: Any) -> str:
    if isinstance(entries, dict):
        return _layout(base, entries["map"])
    if entries and isinstance(entries[0], dict):  # the layouts of a tuple operand, nested
        return "(" + "".join(f"{_layout(base, one)}, " for one in entries) + ")"
    return f"{base}({', '.join(_literal(entry) for entry in entries)})"
