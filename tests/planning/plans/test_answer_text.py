"""The first line of a plan: it says no more than the bound does."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

import irtool
from irtool.cluster.machine import default_machine
from irtool.planning.plans.plan import plan
from irtool.report.planning.report import answer_text
from irtool.sharding.network.context import ParallelContext

CONTEXT = ParallelContext(devices=8, mode="auto_parallel", full_batch=True)


@pytest.mark.parametrize(
    ("part", "text"),
    [
        (1.0, "107 µs a step can't be made shorter; the optimum of the model"),
        (0.8, "107 µs a step, as the dump has it: nothing shorter was found; "
              "at most 25.0 % above the optimum of the model"),
    ],
)  # fmt: skip
def test_what_the_dump_has_can_not_be_made_shorter_where_that_is_proved(
    samples: Path, part: float, text: str
) -> None:
    begin = irtool.load(samples / "mlp_recursive_search/step_parallel_begin_0019.ir")
    made = plan(begin, CONTEXT, default_machine())
    kept = replace(made, before=made.after, lower_bound=part * made.after.seconds)
    assert answer_text(kept) == text
