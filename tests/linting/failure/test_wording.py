"""Failures in the words of the user's line."""

from __future__ import annotations

import pytest

from irtool.ir.finding import SourceLine
from irtool.linting.failure.log import LogReader
from irtool.linting.failure.report import Place, report_of
from irtool.linting.failure.wording import worded

INDEX = "TupleGetItem evaluator index should be in range[-2, 2), but got 2."


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("y, _, _ = self.split(x)", "3 values are unpacked, and there are 2"),
        ("y, z = self.split(x)", INDEX),  # the index is wrong elsewhere
        ("y = self.split(x)[2]", INDEX),
        ("y, *z = self.split(x)", INDEX),
        ("y, (", INDEX),
    ],
)
def test_an_assignment_that_wants_more_values_than_there_are(text: str, said: str) -> None:
    assert worded(INDEX, "tuple_getitem", SourceLine("net.py", 3, text=text)) == said


@pytest.mark.parametrize(("op", "told"), [("product", True), ("", False)])
def test_a_missing_argument(op: str, told: bool) -> None:
    message = worded("KeyError: 'mat2'", op, None)
    assert message.startswith("product is called without its argument mat2") is told


def test_the_exception_behind_a_line_that_only_announces_it_is_told_once() -> None:
    reader = LogReader("worker.log", 0)
    lines = [
        "[ERROR] ANALYZER(1,7f,python):2026-11-23-05:24:24.977.933 [mindspore/ccsrc/pipeline/jit/"
        "ps/static_analysis/async_eval_result.cc:74] HandleException] Exception happened, check "
        "the information as below.",
        "ValueError: For Stack element 1 shape in input can not pack with first element",
        "",
        "# 0 In file net.py:317, 12~60",
        "            y = self.stacked((y, z))",
    ]
    for number, text in enumerate(lines, 1):
        reader.feed(number, text)
    (found,) = report_of([(reader.finish(), Place())]).findings
    assert found.message.startswith("ValueError: For Stack element 1")
    assert found.source is not None
    assert found.source.line == 317


def test_too_few_micro_batches_come_with_the_number_to_set() -> None:
    reader = LogReader("worker.log", 0)
    reader.feed(
        1,
        "RuntimeError: The size of micro_batch must be greater than or equal to stage_num. But got "
        "the size of micro_batch is 3 and the stage_num is 4",
    )
    (found,) = report_of([(reader.finish(), Place())]).findings
    assert found.edit is not None
    assert (found.edit.setting, found.edit.value) == ("micro_size", 4)
