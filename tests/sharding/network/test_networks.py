"""Random networks as MindSpore 2.7.0 compiled them: what was compiled is what is predicted.

``networks.jsonl.xz``: of some three hundred networks (``benchmarks/networks/compile.py``, seed
9377) those that between them run all of the analysis that any runs, small ones first; the dump
before the parallel pass and the one after all passes, without source lines.
``more_networks.jsonl.xz``: of a hundred of the seeds 7717, 31337 and 90210 those that run what few
run, each line of it up to four times: an answer may be right by chance once.
"""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from irtool.ir.collectives import collective, exchange_ranks
from irtool.sharding.check import check
from irtool.sharding.why import explain_in
from irtool.sharding.why.walk import surroundings
from tests.records import Record, records
from tests.sharding.network.compiled import assert_predicted, predicted_launches

HERE = Path(__file__).parent
NETWORKS = records(HERE / "networks.jsonl.xz") | records(HERE / "more_networks.jsonl.xz")

Key = tuple[str, tuple[int, ...]]


@pytest.mark.parametrize("name", NETWORKS)
def test_nothing_differs_from_the_later_dump(name: str) -> None:
    """Slices, groups, collectives, redistributions, mirrors, and who shares a weight."""
    assert_predicted(NETWORKS[name])


def compiled(record: Record) -> Counter[Key]:
    """The communication operators of the last dump; of a transfer, its two ends."""
    found: Counter[Key] = Counter()
    for node in record.dump("validate").whole().nodes:
        item = collective(node.node, record.context.devices)
        if item is None or item.is_virtual:
            continue
        ranks = exchange_ranks(node.node, record.context.rank) or item.ranks or ()
        if item.peer is not None:
            ranks = tuple(sorted((record.context.rank, item.peer)))
        if len(ranks) > 1:
            found[item.op, ranks] += 1
    return found


@pytest.mark.parametrize("name", NETWORKS)
def test_all_communications_of_a_step(name: str) -> None:
    """What is predicted is there, and all that is there where nothing is said to be unknown."""
    record = NETWORKS[name]
    report = check(record.dump("begin"), record.context)
    predicted = predicted_launches(report)
    actual = compiled(record)
    if report.communications_unknown:
        assert predicted <= actual
    else:
        assert predicted == actual


def test_what_a_function_communicates_that_is_not_in_the_dump_is_unknown() -> None:
    unknown = [
        name
        for name, record in NETWORKS.items()
        if "Morph" in " ".join(check(record.dump("begin"), record.context).communications_unknown)
    ]
    assert unknown == [name for name in NETWORKS if name.endswith("_morph")]
    record = NETWORKS["0108_morph"]
    (sentence,) = check(record.dump("begin"), record.context).communications_unknown
    assert "the function of Morph" in sentence


@pytest.mark.parametrize("name", NETWORKS)
def test_every_collective_has_a_cause(name: str) -> None:
    """What a redistribution or the operator itself communicates is named in the dump as well."""
    later = NETWORKS[name].dump("validate")
    around = surroundings(later, NETWORKS[name].dump("begin"))
    for node in later.nodes():
        item = collective(node, NETWORKS[name].context.devices)
        if item is None or item.is_virtual or item.peer is not None:
            continue
        cause = explain_in(around, node)
        label = node.instance_name or ""
        assert cause.kind != "unknown", label
        if "redistribution" in label:
            assert cause.kind in ("redistribution", "dataset"), label
        elif "mirror" in label:
            assert cause.kind == "mirror", label
        elif "forward_op" in label:
            assert cause.kind == "forward reduction", label
