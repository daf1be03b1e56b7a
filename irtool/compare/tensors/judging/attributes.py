"""Attributes of two operators: what counts as a difference, and what is only another spelling."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from irtool.compare.tensors.nonfinite import LARGEST

_NOISE = re.compile(
    r"dtype|device|layout|memory_format|requires_grad|inplace|foreach|fused|"
    r"need_weights|average_attn_weights|return_indices"
)
"""Arguments that say where and how a result is computed or what else is given: not its value."""
_TYPE_WORDS = re.compile(
    r"(?:torch|mindspore|mstype|numpy|np)\.|^<class|float|int(?:8|16|32|64)|^(?:npu|cuda|cpu|ascend)"
    r"(?::\d+)?$",
    re.IGNORECASE,
)
_PLACE = re.compile(r"input\.\d+")
"""The name of an argument that was given by its place."""
ABSENT = "(none)"
"""The text of an attribute that one side does not have."""
_SAME = 1e-5
"""Relative difference of numbers that are one value written in two precisions."""


@dataclass(frozen=True, slots=True)
class AttributeChange:
    """An attribute that two operators do not have in common, as text."""

    name: str
    left: str
    right: str

    @property
    def is_shape(self) -> bool:
        """Whether it is only the shape of a tensor, or another operator of the same kind."""
        return self.name.endswith(" shape") or self.name == "operator"

    @property
    def is_word(self) -> bool:
        """Whether both sides name how something is computed, which no cut changes.

        Modules that hold a slice are called otherwise: what an operator is called is none of it.
        """
        return not self.is_shape and all(
            text.replace("_", "").isalpha() for text in (self.left, self.right)
        )

    def __str__(self) -> str:
        return f"{self.name}: {self.left} → {self.right}"


def changed_attributes(
    left: Mapping[str, object], right: Mapping[str, object]
) -> Iterator[AttributeChange]:
    """Attributes that differ; types and devices are compared elsewhere or mean nothing.

    Args:
        left: of one operator.
        right: of the other.
    """
    if left == right:
        return
    named = _called_by_place(left, right)
    for name in dict.fromkeys((*left, *right)):
        if name in named:
            continue
        ours, theirs = left.get(name), right.get(name)
        if name in left and name in right and _same(ours, theirs):
            continue
        if _NOISE.search(name) or _is_type(ours) or _is_type(theirs):
            continue
        if name not in left or name not in right:
            given = theirs if name not in left else ours
            if given in (None, False, "", ()):
                continue  # a default that one side wrote out
        texts = [
            _text(attributes, name) if name in attributes else ABSENT
            for attributes in (left, right)
        ]
        yield AttributeChange(name, texts[0], texts[1])


def _called_by_place(left: Mapping[str, object], right: Mapping[str, object]) -> set[str]:
    """Arguments that one side gives by name and the other by place: ``sum(x, 1, True)``."""
    named: set[str] = set()
    for some, others in ((left, right), (right, left)):
        places = [key for key in others if key not in some and _PLACE.fullmatch(key)]
        for name, value in some.items():
            if name in others or _PLACE.fullmatch(name):
                continue
            match = next((p for p in places if p not in named and _same(value, others[p])), None)
            if match is not None:
                named |= {name, match}
    return named


def _same(left: object, right: object) -> bool:
    if left == right or (_masks(left) and _masks(right)):
        return True
    if isinstance(left, int | float) and isinstance(right, int | float):
        return is_same_number(float(left), float(right))
    return False


def is_same_number(left: float, right: float) -> bool:
    """Whether two numbers are one value, written in two precisions.

    Args:
        left: as one dump has it.
        right: as the other has it.
    """
    if math.isnan(left) and math.isnan(right):
        return True
    return math.isclose(left, right, rel_tol=_SAME, abs_tol=0.0)


def _masks(value: object) -> bool:
    """Whether a number is what scores are masked with: softmax gives zero of each."""
    if not isinstance(value, float) or value > 0:
        return False
    return math.isinf(value) or any(
        math.isclose(-value, most, rel_tol=1e-3) for most in LARGEST.values()
    )


def _is_type(value: object) -> bool:
    return isinstance(value, str) and bool(_TYPE_WORDS.search(value))


def _text(values: Mapping[str, object], name: str) -> str:
    value = values[name]
    return f"{value:.6g}" if isinstance(value, float) else str(value)
