"""Bounds on what is read: every size that a file may state, in one place.

A file may say anything of itself: a tuple of 300 million elements, rank 10**18, a gzip stream that
unpacks to a terabyte.  What irtool does with it takes time and memory by the bytes that are there,
not by what they claim; these are the bounds where the two part.
"""

from __future__ import annotations

import os
from functools import lru_cache

MAX_DOCUMENT = 1 << 30
"""Most bytes of a document that is read whole and is no dump: a digest, statistics, a table."""
MEMORY_A_BYTE = 6
"""Bytes of memory that a byte of a dump takes: as bytes, as text, in the model.  Measured are 4.6
where 300 MB were parsed or linted, statements of 1,500 bytes; shorter ones take more."""
MAX_SETTINGS = 16 << 20
"""Most bytes of a file of settings: irtool.toml, a context, rules, a machine, a baseline."""
MAX_DEPTH = 200
"""Deepest nesting of lists and tables in a file that is not a dump."""
MAX_DIGITS = 40
"""Digits of the longest whole number that is kept exactly; longer ones are what a float makes."""
MAX_RATIO = 250
"""Most bytes that a byte of a packed file unpacks to, beyond :data:`ALWAYS_UNPACKED`."""
ALWAYS_UNPACKED = 64 << 20
"""Bytes that a packed file may unpack to, however small it is."""
MAX_UNPACKED_VARIABLE = "IRTOOL_MAX_UNPACKED"
"""Environment variable: to how many bytes a packed file may unpack, whatever its own size."""

MAX_RUN = 1000
"""Digits of the longest run of digits in a record of a dump; Python takes 4,300 as a number."""

_FACTORS = {"K": 1 << 10, "M": 1 << 20, "G": 1 << 30, "T": 1 << 40}


@lru_cache(maxsize=1)
def max_dump() -> int:
    """Most bytes of a dump: no more than fit into this machine's memory, and 1 GiB in any case."""
    return max(MAX_DOCUMENT, memory_bytes() // MEMORY_A_BYTE)


def memory_bytes() -> int:
    """Bytes of memory that this process may have, 0 where nobody says; a container's own bound."""
    try:
        machine = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, OSError, ValueError):  # not on Windows
        return 0
    bounds = [machine]
    for path in _CONTAINER_BOUNDS:
        try:
            with open(path, encoding="ascii") as file:
                bounds.append(int(file.read(40)))
        except (OSError, ValueError):  # "max", or no such container
            continue
    return min(bound for bound in bounds if bound > 0)


_CONTAINER_BOUNDS = (
    "/sys/fs/cgroup/memory.max",
    "/sys/fs/cgroup/memory/memory.limit_in_bytes",
)


def max_unpacked() -> int | None:
    """What the environment allows a packed file to unpack to; None where it says nothing.

    Raises:
        ValueError: the environment variable holds no size.
    """
    text = os.environ.get(MAX_UNPACKED_VARIABLE, "").strip().upper()
    if not text:
        return None
    factor = _FACTORS.get(text[-1], 1)
    digits = text if factor == 1 else text[:-1]
    if not digits.isascii() or not digits.isdecimal() or len(digits) > 15:
        raise ValueError(f"{MAX_UNPACKED_VARIABLE} is no size such as 8G: {text[:40]}")
    return int(digits) * factor


def bounded_int(text: str) -> int:
    """The whole number that a run of digits means; of absurdly many digits one that nothing has.

    >>> bounded_int("12"), bounded_int("9" * 5000) == 10**MAX_DIGITS
    (12, True)

    Args:
        text: digits alone, as a pattern matched them.
    """
    return int(text) if len(text) <= MAX_DIGITS else 10**MAX_DIGITS
