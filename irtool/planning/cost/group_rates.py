"""Seconds of a collective among devices whose numbers differ in neighbouring bits."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

import numpy as np

from irtool.cluster.machine import Machine
from irtool.ir.dataclass import dataclass
from irtool.planning.cost.layout_bits import Floats


@dataclass(frozen=True, eq=False, slots=True)
class Rates:
    """Seconds of a collective among the devices that differ in neighbouring bits.

    ``start`` and ``per_byte`` by lowest bit and number of bits; a byte of the whole tensor.
    ``least_start`` and ``least_per_byte``: if it may be done in parts, one after the other.
    ``least_grown``: likewise of a gather, by a byte of what it ends with: first parts move less.
    """

    start: Floats
    per_byte: Floats
    least_start: Floats
    least_per_byte: Floats
    least_grown: Floats


@lru_cache(maxsize=256)
def _rates(machine_key: _Same, op: str, count: int, odd: int) -> Rates:
    machine = machine_key.machine
    start = np.zeros((count + 1, count + 1))
    per_byte = np.zeros((count + 1, count + 1))
    for low in range(count):
        for bits in range(1, count - low + 1):
            ranks = range(0, odd << (low + bits), odd << low)
            start[low, bits], per_byte[low, bits] = machine.line(op, ranks)
    return Rates(start, per_byte, _in_parts(start), _in_parts(per_byte), _grown(per_byte))


def _grown(prices: Floats) -> Floats:
    """The least of a gather's price and of its parts', of which the first ones hold less yet."""
    least = np.array(prices)
    count = len(prices) - 1
    for bits in range(2, count + 1):
        for low in range(count - bits + 1):
            for part in range(1, bits):
                inner, outer = least[low, part], least[low + part, bits - part]
                both = min(inner + outer / 2**part, outer + inner / 2 ** (bits - part))
                least[low, bits] = min(least[low, bits], both)
    return least


def _in_parts(prices: Floats) -> Floats:
    """The least of each run's price and of the sums of its parts' prices."""
    least = np.array(prices)
    count = len(prices) - 1
    for bits in range(2, count + 1):
        for low in range(count - bits + 1):
            for part in range(1, bits):
                both = least[low, part] + least[low + part, bits - part]
                least[low, bits] = min(least[low, bits], both)
    return least


@dataclass(frozen=True, slots=True)
class _Same:
    """A machine as a key: by identity, since machines hold mappings."""

    machine: Machine

    def __hash__(self) -> int:
        return id(self.machine)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Same) and other.machine is self.machine


def rates(machine: Machine, ops: Sequence[str], count: int, odd: int = 1) -> Rates:
    """Seconds of some collectives one after the other.

    Args:
        machine: whose links are used.
        ops: the collectives.
        count: bits of a device's number: there are ``odd`` times two to this power of devices.
        odd: what the number is divided by before it has these bits.
    """
    parts = [_rates(_Same(machine), op, count, odd) for op in ops]
    return Rates(
        sum((part.start for part in parts), np.zeros(())),
        sum((part.per_byte for part in parts), np.zeros(())),
        sum((part.least_start for part in parts), np.zeros(())),
        sum((part.least_per_byte for part in parts), np.zeros(())),
        sum((part.least_grown for part in parts), np.zeros(())),
    )
