"""Numbers of operators in files that MindSpore 2.7.0 saved, for small networks that it sharded.

Each network multiplies in another form: with Python's operators, with functions, with primitives of
the cell, in loops and helpers. A number that is told is the one that MindSpore gave, or it is open.
"""

from __future__ import annotations

import json
import lzma
from pathlib import Path
from typing import Any

import pytest

import irtool
from irtool.ir.graph import Node
from irtool.planning.files.node_names import Naming
from irtool.sharding.network.graphs import network_of
from irtool.sharding.network.sharded_nodes import primitive

RECORDS = lzma.decompress((Path(__file__).parent / "named_by_mindspore.jsonl.xz").read_bytes())
NETWORKS: dict[str, dict[str, Any]] = {
    record["name"]: record for record in map(json.loads, RECORDS.splitlines())
}
OPEN = {"a helper that is called twice", "gelu twice", "two products that are subtracted"}
"""Networks where the dump does not tell all numbers."""


def products(name: str) -> tuple[list[list[Node]], list[object]]:
    """The products by number, with all that may bear it, and the strategies that were saved."""
    record = NETWORKS[name]
    dump = irtool.loads(record["begin"])
    nodes = [node for node in dump.nodes() if primitive(node) == "Mul" and node.has_strategy]
    ranked = Naming(network_of(dump)).ranked(nodes)
    keys = [key for key in record["saved"] if "/Mul-op" in key]
    keys.sort(key=lambda key: int(key.rpartition("-op")[2]))
    return [list(some) for some in ranked], [record["saved"][key] for key in keys]


def rows(node: Node) -> list[list[int]]:
    """The strategy that stands behind a statement."""
    return [list(row) for row in node.written_strategy() or ()]


@pytest.mark.parametrize("name", NETWORKS)
def test_no_number_is_told_that_mindspore_gave_another_operator(name: str) -> None:
    ranked, saved = products(name)
    assert len(ranked) == len(saved) > 1
    assert all(strategy in map(rows, some) for some, strategy in zip(ranked, saved, strict=True))


@pytest.mark.parametrize("name", NETWORKS)
def test_numbers_are_told_where_the_dump_tells_them(name: str) -> None:
    ranked, _ = products(name)
    assert any(len(some) > 1 for some in ranked) == (name in OPEN)
