"""The table of rules, its notation, and rules of one's own."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from irtool.operators.notation import RuleError
from irtool.operators.notation_reader import read_rules
from irtool.operators.table import declare, forget_declared, operators, rule_of
from tests.sharding.calls import call, collectives, judged, reason


@pytest.fixture(autouse=True)
def _own_rules_are_forgotten() -> Iterator[None]:
    yield
    forget_declared()


def test_every_operator_says_how_it_is_sharded() -> None:
    table = operators()
    assert len(table) >= 334
    for rule in table.values():
        assert rule.text
        assert rule.reason or rule.function or rule.outputs
        assert rule.kind == "unknown" or rule.check or rule.function or rule.family


def test_a_leading_underscore_does_not_count() -> None:
    rule = rule_of("_VirtualDataset")
    assert rule is not None
    assert rule.op == "VirtualDataset"
    assert rule_of("Flatten") is None


def test_a_rule_of_ones_own() -> None:
    added = declare(
        """
        family Mine in "my_scan:CheckStrategy"
        # tokens and channels may be split, the state is carried along the sequence
        MyScan(state@2 = 16):
            [b !s c]  [c .]  ->  [b !s c]   equal says "channels differ"
        MyNorm(axis = -1):  [*x]  ->  [*x]  [*x] drop axis   reduce axis with max
        """,
        "irtool.rules",
    )
    assert added == ("MyScan", "MyNorm")
    scan = call("MyScan", [8, 128, 64], [64, 4], out=[8, 128, 64])
    legal = judged(scan, ((2, 1, 4), (4, 1)))
    assert legal.device_matrix == (2, 1, 4)
    assert legal.input_slices == ((4, 128, 16), (16, 4))
    assert reason(judged(scan, ((2, 1, 4), (2, 1)))) == ("axis-mismatch", "my_scan:CheckStrategy")
    assert reason(judged(scan, ((2, 2, 1), (1, 1))))[0] == "axis-split"
    norm = call("MyNorm", [8, 64], out=([8, 64], [8]))
    assert collectives(judged(norm, ((2, 4),))) == [("AllReduce", "max", (0, 1, 2, 3))]


def test_the_notation_says_where_it_is_wrong() -> None:
    with pytest.raises(RuleError, match=r"mine: .*line 1"):
        read_rules("Add: [~x] [~x -> [~x]", "mine")
    with pytest.raises(ValueError, match="no function nothing"):
        declare("Add: function nothing")


def test_a_call_that_the_rule_has_no_place_for_is_unknown() -> None:
    assert judged(call("BiasAdd", [8], [8], out=[8]), ((1,), (1,))).verdict == "unknown"
    assert judged(call("TopK", [8, 8], [8], out=[8, 8]), ((1, 1), (1,))).verdict == "unknown"
