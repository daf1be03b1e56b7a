"""Nothing that is said of a compiled network changes unnoticed.

What MindSpore made of these networks is held against the answers in the tests beside this one.
"""

from __future__ import annotations

import pytest

from benchmarks import net_networks

KEPT = net_networks.kept()


@pytest.mark.parametrize("name", net_networks.networks())
def test_what_is_said_is_what_is_kept(name: str) -> None:
    """``python benchmarks/net_networks.py --show NAME`` on both revisions shows what differs."""
    assert net_networks.kept_now(name) == KEPT.get(name), "is it meant? benchmarks/net.py --record"


def test_nothing_else_is_kept() -> None:
    assert list(KEPT) == list(net_networks.networks())


def test_legal_and_illegal_networks_are_kept_with_all_that_there_is() -> None:
    verdicts = [line.split("\t")[1] for line in KEPT.values()]
    assert verdicts.count("accepted True") > 100
    assert verdicts.count("accepted False") > 50
    assert sum("\tagainst validate " in line for line in KEPT.values()) > 30
