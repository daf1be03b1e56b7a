"""Go to definition: nodes, parameters, graphs, lines of Python."""

from __future__ import annotations

from pathlib import Path

import pytest

from irtool.editor.features.definition import definition, source_line
from tests.editor.opened import FLOW, REJECTED, at, line_of, opened


@pytest.mark.parametrize(
    ("before", "name", "expected"),
    [
        ("%8(CNode_23) = PrimFunc_MatMul(", "%6", "  %6(x) = PrimFunc_ReLU("),
        ("%7(CNode_328) = Load(", "$(", "%para5_mid.weight:"),
        ("# IR entry: ", "@1", "subgraph @1_mindspore_nn_wrap"),
        ("%10(CNode_24) = PrimFunc_BiasAdd(", "%8", "  %8(CNode_23) = PrimFunc_MatMul("),
    ],
)
def test_a_name_leads_to_its_definition(before: str, name: str, expected: str) -> None:
    document = opened(REJECTED)
    (found,) = definition(document, at(document, before, name))
    assert line_of(document, found).startswith(expected)


def test_a_call_leads_to_the_graph_that_it_calls() -> None:
    document = opened(FLOW)
    (found,) = definition(document, at(document, "= call ", "@"))
    assert line_of(document, found).startswith("subgraph @")


def test_nothing_is_defined_where_no_name_stands() -> None:
    document = opened(REJECTED)
    assert definition(document, at(document, "# Total params")) == []


def python_here(folder: Path) -> None:
    lines = [""] * 100
    lines[32] = "        return self.bias_add(self.matmul(x, self.weight), self.bias)"
    (folder / "net.py").write_text("\n".join(lines), encoding="utf-8")


def test_a_comment_line_leads_to_python_where_the_file_is_here(tmp_path: Path) -> None:
    document = opened(REJECTED, folder=tmp_path)
    place = at(document, "%8(CNode_23)", "# In file")
    assert definition(document, place) == []
    python_here(tmp_path)
    (found,) = definition(opened(REJECTED, folder=tmp_path), place)
    assert found.uri == (tmp_path / "net.py").as_uri()
    assert found.range.start.line == 32


def test_a_node_leads_to_the_line_that_made_it(tmp_path: Path) -> None:
    python_here(tmp_path)
    document = opened(REJECTED, folder=tmp_path)
    for place in (
        at(document, "%10(CNode_24) = PrimFunc_BiasAdd(", "%8"),
        at(document, "%8(CNode_23) = ", "MatMul"),
    ):
        (found,) = source_line(document, place)
        assert found.range.start.line == 32
