"""``MS_COMM_COMPILER_OPT`` as each version of MindSpore read it.

The variable switched the reuse of communication subgraphs on, on Ascend in graph mode, from 1.8 to
2.2; the value is the most operators that may be reused.  Behaviour of the branches r1.8 to r2.2.
"""

from __future__ import annotations

import re

from irtool.ir.dataclass import dataclass
from irtool.ir.limits import bounded_int

VARIABLE = "MS_COMM_COMPILER_OPT"
DEFAULT_CAP = 1000
LAST_VERSION = (2, 2)
FIRST_VERSION = (1, 8)

_INTEGER = re.compile(r"[ \t\n\v\f\r]*([+-]?\d+)")
_LONGEST = 1 << 63


@dataclass(frozen=True, slots=True)
class Limit:
    """What a value of the variable does.

    Attributes:
        enabled: whether operators may be reused.
        cap: the most operators, 0 where none may.
        error: the exception that MindSpore raises; empty for none.
        warning: what MindSpore's log says of the value; empty for nothing.
    """

    enabled: bool
    cap: int
    error: str = ""
    warning: str = ""


def has_feature(version: tuple[int, int]) -> bool:
    """Whether a version of MindSpore reuses communication subgraphs at all.

    Args:
        version: major and minor number.
    """
    return FIRST_VERSION <= version <= LAST_VERSION


def read_limit(text: str | None, version: tuple[int, int]) -> Limit:
    """What a value means; None is an unset variable.

    Args:
        text: the raw value.
        version: MindSpore's, such as ``(2, 0)``; 1.8 to 2.2.
    """
    if not text:
        return Limit(False, 0)
    match = _INTEGER.match(text)
    if match is None:
        return Limit(False, 0, error=f"invalid_argument: stol cannot read {text!r} as a number")
    number = bounded_int(match[1])
    if not -_LONGEST <= number < _LONGEST:
        return Limit(False, 0, error=f"out_of_range: {text!r} is no 64-bit number")
    if version < (2, 0):
        if number < 0:
            return Limit(False, 0, error=f"a negative number ({number}) is no size")
        return Limit(True, number)
    if number == -1:
        return Limit(True, DEFAULT_CAP)
    if number > 0:
        return Limit(True, number)
    warning = f"{VARIABLE} should be -1 or a positive integer but {number} was got: disabled"
    return Limit(False, 0, warning=warning)
