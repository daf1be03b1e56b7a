"""The net under networks that nobody compiles: what is said of them does not change unnoticed."""

from __future__ import annotations

import os
from itertools import zip_longest

import pytest

from benchmarks import net_variants
from benchmarks.net_variants import ALTERATIONS, Planned, Tensors, Variant, kept_now, variants

pytestmark = pytest.mark.skipif(os.name == "nt", reason="paths in the answers have slashes")

KEPT = net_variants.kept()


@pytest.fixture(autouse=True)
def _as_users_have_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """What a rule stumbles over is told, not raised as in other tests."""
    from irtool.operators import guard

    monkeypatch.setattr(guard, "strict", False)
    monkeypatch.setenv("COLUMNS", "110")
    monkeypatch.setenv("NO_COLOR", "1")
    monkeypatch.delenv("IRTOOL_DEBUG", raising=False)


@pytest.mark.parametrize("variant", variants(), ids=lambda variant: variant.name)
def test_what_is_said_of_it_is_what_is_kept(variant: Variant | Tensors | Planned) -> None:
    """``benchmarks/net_variants.py --show NAME`` on both revisions shows what differs."""
    lines = kept_now(variant)
    assert not [pair for pair in zip_longest(KEPT[variant.name], lines) if pair[0] != pair[1]]


def test_nothing_else_is_kept() -> None:
    assert list(KEPT) == [variant.name for variant in variants()]


def test_every_alteration_is_tried() -> None:
    altered = {variant.alteration for variant in variants() if isinstance(variant, Variant)}
    assert altered == set(ALTERATIONS)


def test_there_is_an_answer_or_a_clear_error() -> None:
    statuses = {line.split("\t")[2] for lines in KEPT.values() for line in lines}
    assert statuses == {"0", "1", "2"}
