"""No verdict on a step changes unnoticed: what is said of each operator is what is kept."""

from __future__ import annotations

import platform
import sys
import warnings

import pytest

from tests.compare import kept_verdicts

KEPT = kept_verdicts.kept()
SAME_SUMS = sys.platform == "linux" and platform.machine() == "x86_64"
"""Elsewhere products of matrices may be summed in another order, and the last bits be others."""


@pytest.mark.parametrize("name", kept_verdicts.steps())
def test_what_is_said_of_a_step_is_what_is_kept(name: str) -> None:
    """``python -m tests.compare.kept_verdicts --show NAME`` shows all that is said."""
    if name.startswith("computed") and not SAME_SUMS:
        pytest.skip("the last bits of products are others here")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # some calls are made infinite
        now = kept_verdicts.kept_now(name)
    assert now == KEPT.get(name), "is it meant? python -m tests.compare.kept_verdicts --record"


def test_every_verdict_is_met_often() -> None:
    verdicts = " ".join(KEPT.values())
    for verdict in ("equal bits", "carries error", "introduces error", "attribute differs"):
        assert verdicts.count(f'"{verdict}"') > 40, verdict
    for verdict in ("lower precision, explained", "below rounding floor", "not comparable"):
        assert verdicts.count(f'"{verdict}"') > 20, verdict


def test_nothing_else_is_kept() -> None:
    assert list(KEPT) == list(kept_verdicts.steps())
