"""One operator call under one strategy (or user layouts), as rules and functions see it."""

from __future__ import annotations

from typing import NoReturn

from irtool.ir.dataclass import dataclass
from irtool.operators.call import Operand, OperatorCall, Strategy
from irtool.operators.judgement import Context, Refused, Unsure
from irtool.operators.layout import WHOLE, Shape, TensorLayout
from irtool.operators.notation import Attribute, Rule


@dataclass(frozen=True, slots=True)
class Case:
    """A call with its strategy: one tuple a tensor input.

    ``layouts``: the user's ``in_layout`` (then ``strategy`` is what the layouts come to), and
    ``output_layouts`` the ``out_layout``, if given. ``generated``: MindSpore makes the strategy.
    """

    rule: Rule
    call: OperatorCall
    strategy: Strategy
    context: Context
    layouts: tuple[TensorLayout, ...] | None = None
    output_layouts: tuple[TensorLayout, ...] | None = None
    out_strategy: Strategy | None = None
    generated: bool = False

    @property
    def tensors(self) -> tuple[Operand, ...]:
        return self.call.tensors

    @property
    def devices(self) -> int:
        """Number of devices of the stage."""
        return self.context.stage_size

    def tensor(self, index: int) -> Operand:
        """A tensor input by its place among the tensors, elements of tuples in line.

        Raises:
            Unsure: the call has no such input.
        """
        if index >= len(self.tensors):
            raise Unsure(f"{self.call.op} has no tensor input {index} here")
        return self.tensors[index]

    def shape(self, index: int) -> Shape:
        """The whole shape of a tensor input."""
        return self.tensor(index).shape or ()

    def sizes(self, index: int) -> Shape:
        """The shape of a tensor input, dynamic dimensions as what is known to divide them."""
        return self.tensor(index).divisible_shape

    def is_split(self, index: int, dimension: int) -> bool:
        """Whether a dimension of an input is split: of layouts, lies along any axis (even of 1)."""
        if self.layouts is not None:
            return self.layouts[index].tensor_map[dimension] != WHOLE
        return self.strategy[index][dimension] != 1

    def result(self, index: int = 0) -> Shape:
        """The whole shape of a tensor output."""
        results = self.call.results
        if index >= len(results) or results[index].shape is None:
            raise Unsure(f"the shape of output {index} is not known")
        return results[index].shape or ()

    def has(self, name: str) -> bool:
        """True if the call has this attribute, or a constant input in its place."""
        declared = next((a for a in self.rule.attributes if a.name == name), Attribute(name))
        return name in self.call.attributes or self._constant(declared) is not None

    def _constant(self, declared: Attribute) -> Operand | None:
        position = declared.position
        if position is None or position >= len(self.call.inputs):
            return None
        operand = self.call.inputs[position]
        return operand if operand.is_constant and operand.shape is None else None

    def attribute(self, name: str) -> object:
        """An attribute's value: constant input in its place, else attribute, else the default.

        Raises ``Unsure`` if the value is not a constant, or there is none.
        """
        declared = next((a for a in self.rule.attributes if a.name == name), Attribute(name))
        operand = self._constant(declared)
        if operand is not None:
            return operand.value
        if name in self.call.attributes:
            return self.call.attributes[name]
        position = declared.position
        if position is not None and position < len(self.call.inputs):
            raise Unsure(f"input {position} ({name}) is no constant")
        if declared.has_default:
            return declared.default
        raise Unsure(f"the value of {name} is not known")

    def flag(self, name: str) -> bool:
        """A truth value among the attributes; absent: False."""
        try:
            return bool(self.attribute(name))
        except Unsure:
            if self.has(name):
                raise
            return False

    def number(self, name: str) -> int:
        value = self.attribute(name)
        if isinstance(value, int):
            return int(value)
        raise Unsure(f"{name} is {value!r}, not a number")

    def text(self, name: str) -> str:
        value = self.attribute(name)
        if isinstance(value, str):
            return value
        raise Unsure(f"{name} is {value!r}, not a text")

    def numbers(self, name: str) -> tuple[int, ...]:
        """A number or a tuple of numbers, as a tuple."""
        value = self.attribute(name)
        if isinstance(value, int):
            return (int(value),)
        if isinstance(value, (tuple, list)):
            numbers = tuple(item for item in value if isinstance(item, int))  # type: ignore[misc]  # items of any type
            if len(numbers) == len(value):  # type: ignore[arg-type]  # the same
                return numbers
        raise Unsure(f"{name} is {value!r}, not numbers")

    def axes(self, name: str, rank: int) -> tuple[int, ...]:
        """The dimensions an attribute names, counted from 0; None or () names all of them."""
        if self.attribute(name) is None:
            return tuple(range(rank))
        numbers = self.numbers(name)
        if any(not -max(rank, 1) <= number < max(rank, 1) for number in numbers):
            raise Unsure(f"{name} {numbers} is out of range for rank {rank}")
        if not numbers:
            return tuple(range(rank))
        return tuple(sorted({number % rank if rank else 0 for number in numbers})) if rank else ()

    def refuse(self, code: str, message: str, check: str = "") -> NoReturn:
        """The strategy is illegal. ``check``: log source if it is not the rule's own.

        Layouts are checked by another function of the same file.
        """
        place = check or self.rule.check
        if self.layouts is not None and not check:
            place = place.partition(":")[0] + ":CheckInputLayout"
        raise Refused(code, message, place)

    def refuse_output_layout(self) -> NoReturn:
        """The user gave an ``out_layout`` where none may be given."""
        place = self.rule.check.partition(":")[0] + ":CheckOutputLayout"
        message = f"the output layout of {self.call.op} follows from its inputs, it can't be given"
        raise Refused("out-layout", message, place)
