"""Thresholds: numbers that decide when a rule speaks, and that the configuration may change."""

from __future__ import annotations

from typing import TYPE_CHECKING, Generic, TypeVar, cast, overload

if TYPE_CHECKING:
    from irtool.lint.rule import Rule

Number = TypeVar("Number", int, float)

KIB = 1024
MIB = 1024 * KIB
GIB = 1024 * MIB


class Threshold(Generic[Number]):
    """A class attribute of a rule: ``self.least_bytes`` is what the user set, else the default.

    Args:
        default: quiet on healthy networks.
        unit: of the number: bytes, ranks, percent, elements.
        meaning: one clause for documents: what happens from this number on.
    """

    def __init__(self, default: Number, unit: str, meaning: str) -> None:
        self.default = default
        self.unit = unit
        self.meaning = meaning
        self.name = ""

    def __set_name__(self, owner: type[Rule], name: str) -> None:
        self.name = name

    @overload
    def __get__(self, rule: None, owner: type[Rule]) -> Threshold[Number]: ...
    @overload
    def __get__(self, rule: Rule, owner: type[Rule]) -> Number: ...
    def __get__(self, rule: Rule | None, owner: type[Rule]) -> Threshold[Number] | Number:
        if rule is None:
            return self
        return cast("Number", rule.values.get(self.name, self.default))
