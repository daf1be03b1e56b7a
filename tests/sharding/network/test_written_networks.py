"""Users of a value in the order in which they came to it, and gradients, as compiled.

``written.json.xz``: networks that MindSpore 2.7.0 compiled, with their source lines, in the form of
``whole_graphs.json.xz``. Values of a Reshape are used by primitives, operators of Python, functions
and cells, before and behind each other (``functions``, ``cells``), and by helpers, methods, loops,
``*=``, behind StopGradient and a Cast that does nothing (``helpers``). ``differences`` unrolls two
LSTM cells whose outputs are added and subtracted. ``nested`` calls cells in cells several times,
``experts`` is a stage of a pipeline whose micro-batches are copies of one graph.
"""

from __future__ import annotations

import json
import lzma
from pathlib import Path
from typing import Any

import pytest

import irtool
from irtool.sharding.check import check
from irtool.sharding.network.context import ParallelContext
from tests.sharding.network.compiled import compiled_launches, predicted_launches

RECORDS = lzma.decompress((Path(__file__).parent / "written.json.xz").read_bytes())
NETWORKS: dict[str, dict[str, Any]] = {record["name"]: record for record in json.loads(RECORDS)}


@pytest.mark.parametrize("name", NETWORKS)
def test_communications(name: str) -> None:
    record = NETWORKS[name]
    report = check(irtool.loads(record["begin"]), ParallelContext.from_mapping(record["context"]))
    assert report.accepted is True
    assert predicted_launches(report) == compiled_launches(record)
