"""A dump as rows and as an arrow table."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

import irtool
from irtool.ir.table import COLUMNS, ArrowMissingError, rows


def test_one_row_a_node_with_stable_columns(samples: Path) -> None:
    dump = irtool.load(samples / "mlp_semi_auto" / "20_validate_0080.ir")
    found = list(rows(dump))
    assert len(found) == dump.declared_nodes
    assert all(list(row) == list(COLUMNS) for row in found)
    product = next(row for row in found if row["op"] == "MatMul")
    assert json.loads(product["in_strategy"]) == [[2, 1], [4, 1]]
    assert product["phase"] == "forward"
    assert product["output_type"].startswith("Float32[")
    assert product["inputs"][0].startswith("%")
    reduction = next(row for row in found if row["collective"] == "AllReduce")
    assert reduction["ranks"] == [0, 1, 2, 3]
    assert reduction["origin"] == "forward reduction"


def test_rows_can_be_written_as_json(samples: Path) -> None:
    for path in sorted(samples.rglob("*.ir")):
        for row in rows(irtool.load(path)):
            json.dumps(row)


def test_arrow_table_has_one_schema_for_all_dumps(samples: Path) -> None:
    pytest.importorskip("pyarrow")
    tables = [irtool.load(path).to_arrow() for path in sorted(samples.rglob("*.ir"))]
    assert len({str(table.schema) for table in tables}) == 1
    assert tables[0].column_names == list(COLUMNS)


def test_text_that_is_not_utf8_and_huge_numbers_do_not_break_it() -> None:
    pytest.importorskip("pyarrow")
    text = b"  %0(\xff) = Send(%para1_x) primitive_attrs: {sr_tag: I64(99999999999999999999)}\n"
    assert irtool.load(text).to_arrow().num_rows == 1


def test_without_pyarrow_the_error_says_what_to_install(
    samples: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    dump = irtool.load(samples / "gpt" / "20_validate_0080.ir")
    with pytest.raises(ArrowMissingError, match=r"pip install 'irtool\[arrow\]'"):
        dump.to_arrow()
