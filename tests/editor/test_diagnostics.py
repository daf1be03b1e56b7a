"""Diagnostics: problems of reading, findings of check and lint, and what could not be asked."""

from __future__ import annotations

from pathlib import Path

import pytest
from lsprotocol.types import DiagnosticSeverity

from irtool.editor.features.diagnostics import diagnostics
from irtool.editor.features.hover import hover
from tests.editor.opened import BEGIN, REJECTED, VALIDATE, at, opened, sample_text, text_in


def test_a_refused_strategy_is_told_once_where_the_operator_stands() -> None:
    document = opened(REJECTED, answered=True)
    (found,) = diagnostics(document)
    assert (found.code, found.severity) == ("STR001", DiagnosticSeverity.Error)
    assert text_in(document, found.range) == "PrimFunc_MatMul"
    assert "instead: in_strategy ((2, 4), (1, 4))" in found.message


def test_check_speaks_where_the_linter_is_told_not_to() -> None:
    document = opened(REJECTED, answered=True, lint={"ignore": ["STR001"]})
    (found,) = diagnostics(document)
    assert found.source == "irtool check"
    assert "instead: in_strategy ((2, 4), (1, 4))" in found.message


@pytest.mark.parametrize("name", [BEGIN, VALIDATE])
def test_a_sound_dump_has_none(name: str) -> None:
    assert diagnostics(opened(name, answered=True)) == []


def test_what_could_not_be_read_is_told_before_any_analysis() -> None:
    text = sample_text(REJECTED).replace("= PrimFunc_MatMul(%6", "= PrimFunc_MatMul(%6 %%", 1)
    document = opened(REJECTED, text)
    found = diagnostics(document)
    line = document.text.content[: document.text.content.index("%6 %%")].count("\n")
    (here,) = [each for each in found if each.range.start.line == line]
    assert here.severity == DiagnosticSeverity.Error


def test_a_file_that_is_no_dump_is_said_to_be_none() -> None:
    (found, *_) = diagnostics(opened(REJECTED, "%PDF-1.7 and so on\n"))
    assert found.code == "SYN005"


def test_it_is_said_that_check_did_not_run_where_devices_are_not_known(tmp_path: Path) -> None:
    path = tmp_path / "step_parallel_begin_0001.ir"
    path.write_text(sample_text(REJECTED), encoding="utf-8")
    document = opened(str(path), sample_text(REJECTED), answered=True)
    if document.answers.report is None:
        messages = [each.message for each in diagnostics(document)]
        assert any("how many devices" in message for message in messages)


def test_a_setting_that_makes_no_sense_is_told() -> None:
    document = opened(BEGIN, answered=True, lint={"ignore": ["XYZ999"]})
    (found,) = diagnostics(document)
    assert found.severity == DiagnosticSeverity.Information
    assert "XYZ999" in found.message
    assert hover(document, at(document, "%8(CNode_23)")) is not None


def test_the_context_that_a_client_gives_goes_before_files() -> None:
    document = opened(REJECTED, answered=True, context={"device_num": 16})
    assert document.answers.context is not None
    assert document.answers.context.devices == 16


def test_python_lines_are_named_where_the_file_is_here(tmp_path: Path) -> None:
    (tmp_path / "net.py").write_text("\n" * 40, encoding="utf-8")
    (found,) = diagnostics(opened(REJECTED, folder=tmp_path, answered=True))
    (related,) = found.related_information or ()
    assert related.location.uri == (tmp_path / "net.py").as_uri()
    assert related.location.range.start.line == 32
