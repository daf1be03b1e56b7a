"""How far plans under a memory limit may be from the best, and how long they take.

For every begin dump: what is decided beside strategies, the bytes of the plan without a limit and
the fewest that were found, the most of all limits in between by which a plan may be above the
optimum (its gap), and CPU seconds of tables and search.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from plan_bytes import context_for

import irtool
from irtool.cluster.machine import Machine
from irtool.ir.dump import Dump
from irtool.planning.plans.plan import Plan, plan
from irtool.planning.search.tables import CannotPlan

DECIDED = ((False, False), (True, False), (False, True), (True, True))
"""Whether optimizer parallel and recomputation are decided."""
_BYTES = re.compile(r"(?:take|results is) ([\d,]+) bytes")


def limits(cases: Sequence[tuple[str, Path, int]], machine: Machine, count: int) -> None:
    """A row for every dump and what is decided; ``count`` limits each."""
    print("case                 decided                free MB  least MB  limits"
          "  gap %: mean   most  seconds: mean   most")  # fmt: skip
    for name, path, devices in cases:
        dump = irtool.load(str(path))
        for optimizer, recompute in DECIDED:
            words = [
                word for word, on in (("optimizer", optimizer), ("recompute", recompute)) if on
            ]
            rows = list(_rows(dump, devices, machine, count, optimizer, recompute))
            free, least = rows[0][1], rows[0][2]
            plans = [row[0] for row in rows]
            gaps = [100 * (each.gap or 0.0) for each in plans]
            seconds = [each.seconds for each in plans]
            print(
                f"{name:20.20} {' + '.join(words) or 'strategies':22} {free / 1e6:8.1f}"
                f"  {least / 1e6:8.1f}  {len(plans):6}       {sum(gaps) / len(gaps):5.3f}"
                f"  {max(gaps):5.3f}          {sum(seconds) / len(seconds):5.2f}"
                f"  {max(seconds):5.2f}",
                flush=True,
            )


def _rows(
    dump: Dump, devices: int, machine: Machine, count: int, optimizer: bool, recompute: bool
) -> Iterator[tuple[Plan, int, int]]:
    """Plans under limits from just above the fewest bytes to just below those of the free plan."""

    def made(limit: int | None) -> Plan:
        return plan(
            dump, context_for(devices), machine, memory_limit=limit,
            decide_optimizer=optimizer, decide_recompute=recompute,
        )  # fmt: skip

    free = made(None)
    most, least = free.after.memory.total, _least(made)
    if least >= most:
        yield free, most, most
        return
    for number in range(count):
        limit = int(least + (most - least) * (number + 0.1) / (count - 0.5))
        found = made(limit)
        if found.after.memory.total > limit:
            raise SystemExit(f"a plan takes {found.after.memory.total:,} of {limit:,} bytes")
        yield found, most, least


def _least(made: Callable[[int], Plan]) -> int:
    """The fewest bytes that were found: what the answer to an impossible limit says."""
    try:
        made(1)
    except CannotPlan as error:
        match = _BYTES.search(str(error))
        return int(match[1].replace(",", "")) if match is not None else 0
    raise AssertionError("one byte is enough")
