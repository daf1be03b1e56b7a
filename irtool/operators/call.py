"""What a sharding rule knows of an operator call: plain data, no dump behind it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import field
from types import MappingProxyType

from irtool.ir.dataclass import dataclass
from irtool.ir.graph import Strategy as Strategy
from irtool.operators.layout import DYNAMIC, Shape

_NO_ATTRIBUTES: Mapping[str, object] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class Operand:
    """One input or output of an operator call.

    A tensor has a ``shape`` (``()``: a scalar tensor; -1: a dynamic dimension). A tuple of tensors
    has ``items``. A constant has ``is_constant`` and a ``value`` (None is a value too: an optional
    input that was left out). ``divisors``: for dynamic dimensions, numbers that are known to divide
    them (the size itself for the others); None where nothing is known. ``symbols``: what the dump
    calls each size, if it does: equal symbols are equal sizes, whatever they are.
    """

    shape: Shape | None = None
    dtype: str = ""
    value: object = None
    is_constant: bool = False
    is_parameter: bool = False
    items: tuple[Operand, ...] = ()
    divisors: Shape | None = None
    symbols: tuple[str, ...] = ()

    @property
    def tensors(self) -> Iterator[Operand]:
        """The tensors it consists of: itself, or those of its items."""
        if self.shape is not None:
            yield self
        for item in self.items:
            yield from item.tensors

    @property
    def divisible_shape(self) -> Shape:
        """The shape to divide by a strategy: dynamic dimensions as what divides them, or 1.

        Where nothing is known of them 1 alone divides them: so MindSpore takes what it has no
        symbol for, as in graphs that a gradient is taken of.
        """
        shape = self.shape or ()
        divisors = self.divisors or (1,) * len(shape)
        return tuple(
            size if size != DYNAMIC else max(divisor, 1)
            for size, divisor in zip(shape, divisors, strict=True)
        )


@dataclass(frozen=True, slots=True)
class OperatorCall:
    """One node: ``op`` is the primitive's name without ``PrimFunc_``; inputs in their order."""

    op: str
    inputs: tuple[Operand, ...]
    outputs: tuple[Operand, ...]
    attributes: Mapping[str, object] = field(default_factory=lambda: _NO_ATTRIBUTES)
    instance_name: str = ""
    tensors: tuple[Operand, ...] = field(init=False, compare=False, repr=False)
    """The tensor inputs, the elements of tuple inputs in line: what a strategy is about."""
    results: tuple[Operand, ...] = field(init=False, compare=False, repr=False)
    """The tensor outputs, the elements of tuple outputs in line."""

    def __post_init__(self) -> None:
        tensors = tuple(tensor for operand in self.inputs for tensor in operand.tensors)
        results = tuple(tensor for operand in self.outputs for tensor in operand.tensors)
        object.__setattr__(self, "tensors", tensors)  # it is frozen
        object.__setattr__(self, "results", results)

    @property
    def is_dynamic(self) -> bool:
        """True if a size of an input or output is not known when the network is compiled."""
        return any(DYNAMIC in (tensor.shape or ()) for tensor in self.tensors + self.results)


def tensor(*shape: int, dtype: str = "Float32", parameter: bool = False) -> Operand:
    """A tensor operand, for tests and for calls made by hand.

    Args:
        shape: sizes, -1 for one that is not known.
        dtype: as dumps spell it.
        parameter: whether it is a parameter of the network.
    """
    return Operand(shape, dtype, is_parameter=parameter)


def constant(value: object) -> Operand:
    """A constant operand: a number, a flag, a tuple, None.

    Args:
        value: as :mod:`irtool.ir.values` has it in Python; None for an input that was left out.
    """
    return Operand(value=value, is_constant=True)
