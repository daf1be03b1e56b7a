"""The attribute ``layout: {dev_matrix, input_tensor_map}``: what MindSpore 2.7 makes of it.

``benchmarks/record_operators/records/attribute.jsonl.xz`` holds two compilations of each operator
of the catalogue, and both sides of what MindSpore checks; here all of these and a part of those.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from benchmarks.replay_operators import RECORDS, disagreements, identity, records
from irtool.operators.call import Operand, OperatorCall
from irtool.operators.judgement import Context
from irtool.operators.layout import UserLayout
from irtool.sharding.judge import judge_configured

EDGES = ("ReLU", "Mul", "MatMul", "BatchMatMul", "Transpose", "AddExt")
FILE = Path(RECORDS) / "attribute.jsonl.xz"
ASKED: dict[str, dict[str, Any]] = {
    f"{record['case']['operator']}-{identity(record)}": record
    for number, record in enumerate(records([FILE]))
    if record["case"]["operator"] in EDGES or number % 5 == 0
}


@pytest.mark.parametrize("name", ASKED)
def test_what_mindspore_made_of_it_is_what_is_said_or_nothing_is(name: str) -> None:
    wrong = [item for item in disagreements(ASKED[name]) if item.kind != "unknown"]
    assert not wrong, "\n".join(map(str, wrong))


def test_most_are_known_and_both_verdicts_are_there() -> None:
    verdicts = {record["verdict"] == "accepted" for record in ASKED.values()}
    known = sum(not disagreements(record) for record in list(ASKED.values())[::4])
    assert verdicts == {True, False}
    assert known > len(ASKED) // 4 * 0.7


def asked(op: str, shapes: list[tuple[int, ...]], *maps: tuple[int, ...]) -> Any:
    inputs = tuple(Operand(shape) for shape in shapes)
    call = OperatorCall(op, inputs, (Operand(shapes[0]),))
    given = tuple(UserLayout((2, 4), entries) for entries in maps)
    return judge_configured(call, given, Context(tuple(range(8)), 8))


def test_a_class_that_says_how_its_result_lies() -> None:
    judgement = asked("ReLU", [(16, 32)], (1, 0))
    assert judgement.verdict == "legal"
    assert judgement.input_slices == judgement.output_slices == ((8, 8),)


def test_one_that_does_not_is_refused() -> None:
    judgement = asked("BiasAdd", [(16, 32), (32,)], (1, 0), (0,))
    assert judgement.verdict == "illegal"
    assert "without a layout" in judgement.reasons[0].message


def test_without_a_class_nobody_knows_what_stands_behind() -> None:
    judgement = asked("AcosExt", [(16, 32)], (1, 0))
    assert judgement.verdict == "unknown"
    assert "depends on its user" in judgement.reasons[0].message


def test_records_hold_the_attribute_as_it_was_given() -> None:
    case = next(iter(ASKED.values()))["case"]
    assert set(case["primitive_attributes"]["layout"]) <= {
        "dev_matrix",
        "input_tensor_map",
        "other",
    }
    assert json.dumps(case)
