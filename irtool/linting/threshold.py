"""Thresholds: numbers that decide when a rule speaks, and that the configuration may change."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Generic, Protocol, TypeVar, cast, overload

Number = TypeVar("Number", int, float)

KIB = 1024
MIB = 1024 * KIB
GIB = 1024 * MIB


class Configured(Protocol):
    """A rule with the numbers that the configuration gives it."""

    values: Mapping[str, int | float]


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

    def __set_name__(self, owner: type, name: str) -> None:
        self.name = name

    @overload
    def __get__(self, rule: None, owner: type) -> Threshold[Number]: ...
    @overload
    def __get__(self, rule: Configured, owner: type) -> Number: ...
    def __get__(self, rule: Configured | None, owner: type) -> Threshold[Number] | Number:
        if rule is None:
            return self
        return cast("Number", rule.values.get(self.name, self.default))
