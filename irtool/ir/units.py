"""Quantities as people read them: one text for each unit, the same in every command.

A value travels with its unit until it is written; nothing reads such a text back.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Literal, TypeAlias, cast

Unit: TypeAlias = Literal[
    "text", "number", "bytes", "seconds", "share", "operations", "error", "factor"
]
"""Of a value: how it is written and sorted.

``number`` is a count or a plain number, ``bytes`` a whole number of them, ``seconds`` a time,
``share`` a part of one (0.25 is ``25.0 %``), ``operations`` arithmetic on numbers (FLOP), ``error``
how far numbers are apart, of which only the magnitude counts, ``factor`` how many times something.
"""

UNKNOWN = "?"
"""What stands for a quantity that nobody knows."""

_SECONDS = (
    (7200.0, 3600.0, "h"), (120.0, 60.0, "min"), (1.0, 1.0, "s"), (1e-3, 1e-3, "ms"),
    (1e-6, 1e-6, "µs"), (0.0, 1e-9, "ns"),
)  # fmt: skip
"""From how many seconds on a unit is used, its seconds, and its name."""
_LARGE = ((1e15, "P"), (1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k"))
_SIBILANTS = ("s", "x", "ch", "sh")
"""Ends of nouns whose plural takes a syllable more."""
_BINARY = ("KiB", "MiB", "GiB", "TiB", "PiB")


def quantity_text(value: float | None, unit: Unit = "number") -> str:
    """A value as people read it: ``12,345``, ``1.5 MiB``, ``3.2 ms``, ``25.0 %``, ``1.2 TFLOP``.

    Args:
        value: in the unit's own measure: bytes, seconds, a part of one; None where nobody knows.
        unit: what the value counts.
    """
    if value is None:
        return UNKNOWN
    if isinstance(value, float) and not math.isfinite(value):
        return "∞" if value == math.inf else "-∞" if value == -math.inf else "not a number"
    match unit:
        case "bytes":
            return bytes_text(round(value))
        case "seconds":
            return seconds_text(value)
        case "share":
            return share_text(value)
        case "operations":
            return operations_text(value)
        case "error":
            return error_text(value)
        case "factor":
            return _three_digits(value)
        case _:
            return f"{value:,}" if isinstance(value, int) else f"{value:,.6g}"


def count_text(number: int) -> str:
    """A whole number with its thousands marked: ``12,345``.

    Args:
        number: how many.
    """
    return f"{number:,}"


_IN_FULL: Mapping[Unit, str] = {"bytes": " B", "seconds": " s"}
"""What stands behind a value that is written in full."""


def told_apart(left: float, right: float, unit: Unit) -> tuple[str, str]:
    """Two values as people read them; in full where they differ and would be written alike.

    Args:
        left: in the unit itself: bytes, seconds, …
        right: likewise.
        unit: of both.
    """
    texts = quantity_text(left, unit), quantity_text(right, unit)
    if left == right or texts[0] != texts[1]:
        return texts
    return f"{left:,.12g}{_IN_FULL.get(unit, '')}", f"{right:,.12g}{_IN_FULL.get(unit, '')}"


def bytes_text(number: int | None) -> str:
    """``1.5 MiB``; ``?`` for an unknown size.

    Args:
        number: of bytes.
    """
    if number is None:
        return UNKNOWN
    if abs(number) < 1024:
        return f"{number} B"
    size, prefix = float(number) / 1024, 0
    while abs(size) >= 1023.95 and prefix < len(_BINARY) - 1:
        size, prefix = size / 1024, prefix + 1
    return f"{size:.1f} {_BINARY[prefix]}"


def seconds_text(seconds: float | None) -> str:
    """``3.2 ms``, ``455 µs``, ``12 min``: three digits; ``?`` for an unknown time.

    Args:
        seconds: of any length.
    """
    if seconds is None:
        return UNKNOWN
    if not seconds:
        return "0 s"
    size = abs(seconds)
    # What rounds to the next unit is written in that one: 0.9999 ms is 1 ms, never 1e+03 µs.
    scale, name = next((scale, name) for least, scale, name in _SECONDS if size >= 0.9995 * least)
    return f"{_three_digits(seconds / scale)} {name}"


def share_text(share: float | None, *, signed: bool = False) -> str:
    """``37.5 %`` for 0.375; ``?`` for an unknown share.

    Args:
        share: a part of one.
        signed: whether a gain shows its plus, as a change does: ``+37.5 %``.
    """
    return UNKNOWN if share is None else f"{100 * share:{'+' if signed else ''}.1f} %"


def operations_text(operations: float | None) -> str:
    """``1.25 TFLOP``; ``?`` for an unknown number.

    Args:
        operations: arithmetic on numbers; a multiplication and an addition are two.
    """
    if operations is None:
        return UNKNOWN
    return _rate(operations, "FLOP")


def bandwidth_text(bandwidth: float | None) -> str:
    """``56 GB/s``: decimal, as data sheets have it; ``?`` for an unknown one.

    Args:
        bandwidth: bytes a second.
    """
    return UNKNOWN if bandwidth is None else _rate(bandwidth, "B/s")


def speed_text(speed: float | None) -> str:
    """``312 TFLOPS``; ``?`` for an unknown one.

    Args:
        speed: operations on numbers a second.
    """
    return UNKNOWN if speed is None else _rate(speed, "FLOPS")


def error_text(error: float) -> str:
    """``0.00014``, ``3.6e-07``: two digits of a difference, absolute or relative.

    Args:
        error: of which only the magnitude counts.
    """
    return f"{error:.2g}"


def part_text(part: int, total: int) -> str:
    """``13 of 94 (13.8 %)``.

    Args:
        part: how many.
        total: of how many; of none the text is ``0 of 0``, without a share.
    """
    if not total:
        return "0 of 0"
    return f"{count_text(part)} of {count_text(total)} ({share_text(part / total)})"


def ratio(part: float, total: float) -> float | None:
    """The share that a part is of a whole.

    Args:
        part: in any unit.
        total: in the same.

    Returns:
        A part of one; None where the whole is nothing.
    """
    return part / total if total > 0 else None


def plural(number: int, noun: str) -> str:
    """``1 node``, ``2 nodes``, ``3 passes``, ``4 entries``.

    Args:
        number: how many.
        noun: in the singular, and with a regular plural.
    """
    return f"1 {noun}" if number == 1 else f"{count_text(number)} {_in_plural(noun)}"


def ranks_text(ranks: Sequence[int] | None) -> str:
    """Ranks with even steps folded: ``0-3``, ``0,4,8…28``, ``0-3,8-11``; ``?`` if unknown.

    Args:
        ranks: in any order.
    """
    if ranks is None:
        return UNKNOWN
    ordered = sorted(set(ranks))
    if len(ordered) > 3:
        step = ordered[1] - ordered[0]
        if step > 1 and ordered == list(range(ordered[0], ordered[-1] + 1, step)):
            return f"{ordered[0]},{ordered[1]}…{ordered[-1]}"
    return ",".join(_run_text(run) for run in _runs(ordered))


def numbered_text(noun: str, numbers: Iterable[int]) -> str:
    """Ranks, stages or the like by their numbers: ``rank 1``, ``ranks 0-3``, ``stages 0,2``.

    Args:
        noun: what is numbered, in the singular.
        numbers: in any order.
    """
    listed = sorted(set(numbers))
    return f"{noun if len(listed) == 1 else _in_plural(noun)} {ranks_text(listed)}"


def tuple_text(value: object) -> str:
    """A strategy or shape as Python writes it: ``((4, 1), (1,))``; nothing for None.

    Args:
        value: nested tuples or lists of numbers.
    """
    if isinstance(value, tuple | list):
        items = [tuple_text(item) for item in cast("Sequence[object]", value)]
        return f"({items[0]},)" if len(items) == 1 else f"({', '.join(items)})"
    return "" if value is None else str(value)


def _in_plural(noun: str) -> str:
    if noun.endswith("y") and not noun.endswith(("ay", "ey", "oy", "uy")):
        return f"{noun[:-1]}ies"
    return f"{noun}{'es' if noun.endswith(_SIBILANTS) else 's'}"


def _three_digits(number: float) -> str:
    """``1.25``, ``12.5``, ``125``, ``1250``: three digits that count, never an exponent."""
    return f"{number:.0f}" if abs(number) >= 999.5 else f"{number:.3g}"


def _rate(rate: float, unit: str) -> str:
    for scale, prefix in _LARGE:
        if abs(rate) >= scale * 0.9995:
            return f"{_three_digits(rate / scale)} {prefix}{unit}"
    return f"{_three_digits(rate)} {unit}"


def _run_text(run: tuple[int, int]) -> str:
    first, last = run
    if last - first < 2:
        return ",".join(str(rank) for rank in range(first, last + 1))
    return f"{first}-{last}"


def _runs(ordered: Iterable[int]) -> list[tuple[int, int]]:
    runs: list[tuple[int, int]] = []
    for rank in ordered:
        if runs and rank == runs[-1][1] + 1:
            runs[-1] = (runs[-1][0], rank)
        else:
            runs.append((rank, rank))
    return runs
