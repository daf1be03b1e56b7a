"""Networks of one operator that were drawn by a seed, or asked for by hand, replayed.

``drawn.jsonl.xz`` is what ``benchmarks/record_operators/drawn.py`` made with seeds that nobody had
looked at, and fresh examples of what was once known to be wrong. None of it is a record of the
catalogue.
"""

from __future__ import annotations

from collections import Counter
from pathlib import Path

from benchmarks.replay_operators import disagreements, is_judgeable, records

DRAWN = Path(__file__).with_name("drawn.jsonl.xz")
UNKNOWN = 12
"""Cases that may be unknown: attention in a ring under layouts, MaxDim, forms of unknown sizes."""
OPEN = {
    "OnesLike": "folded before the parallel pass, which then fails on the constant that is left",
    "SparseGatherV2": "its gradient fails in a later pass, not that of Gather in the same form",
}
RING = "enable_ring_attention"


def test_no_drawn_network_is_judged_otherwise_than_by_mindspore() -> None:
    kinds = Counter[str]()
    wrong: list[str] = []
    for record in records([DRAWN]):
        if not is_judgeable(record) or record["case"]["operator"] in OPEN:
            continue
        for item in disagreements(record):
            kinds[item.kind] += 1
            ring = RING in record["case"].get("primitive_attributes", {})
            # the exchanges of a ring are said not to be worked out
            if item.kind != "unknown" and not (ring and item.kind == "forward communication"):
                wrong.append(str(item))
    assert not wrong, "\n".join(wrong)
    assert kinds["unknown"] <= UNKNOWN


def test_legal_and_illegal_networks_were_drawn() -> None:
    verdicts = Counter(record["verdict"] for record in records([DRAWN]))
    operators = {record["case"]["operator"] for record in records([DRAWN])}
    assert verdicts["accepted"] >= 100
    assert verdicts["refused"] >= 100
    assert len(operators) >= 150
