"""The strategy file to go on with: stages put together, and what the reader is told."""

from __future__ import annotations

import json
from types import SimpleNamespace
from typing import Any

import pytest

from irtool.planning.files.strategy_files import NotExpressible
from irtool.planning.recovery.files import _code_notes, _merged, _refuse_parts


def entry(strategy: list[list[int]], stage: int) -> dict[str, Any]:
    return {"parallel_strategy": strategy, "stage": stage}


def handed(
    items: dict[str, dict[str, Any]], layouts: tuple[str, ...] = (), notes: tuple[str, ...] = ()
) -> Any:
    layout = {"dev_matrix": [2], "tensor_map": [0, -1], "tensor_shape": [4, 4], "field": 0,
              "opt_weight_shard_size": 0, "opt_weight_shard_step": 0}  # fmt: skip
    document = {
        "parallel_strategy_item": items,
        "parallel_layout_item": dict.fromkeys(layouts, layout),
    }
    return SimpleNamespace(text=json.dumps(document), notes=notes)


def test_files_of_stages_are_one_with_layouts_by_stage() -> None:
    found = _merged(
        {
            0: handed({"a": entry([[2, 1]], 0)}, ("w",), ("slow", "late")),
            1: handed({"b": entry([[1, 2]], 1), "a": entry([[2, 1]], 1)}, ("w", "v"), ("slow",)),
        }
    )
    document = json.loads(found.text)
    assert document["current_stage"] == 1
    assert document["parallel_strategy_item"]["a"]["stage"] == 0  # the first that names it
    assert set(document["parallel_strategy_item"]) == {"a", "b"}
    assert set(document["parallel_layout_item"]) == {"0-w", "1-w", "1-v"}
    assert found.notes == ("stage 0: slow", "stage 0: late", "stage 1: slow")
    assert set(found.file.strategies) == {"a", "b"}


def test_stages_that_want_other_strategies_under_one_key_have_no_file() -> None:
    parts = {stage: handed({"a": entry([[2, stage + 1]], stage)}) for stage in (0, 1)}
    with pytest.raises(NotExpressible, match="stages 0 and 1 share the key a and differ"):
        _merged(parts)


def recovery(
    how: str | None = "searched",
    mode: str = "semi_auto_parallel",
    *,
    alternatives: int = 1,
    target: int = 8,
) -> Any:
    return SimpleNamespace(
        context=SimpleNamespace(mode=mode, searches=mode == "auto_parallel", devices=8),
        plan=None if how is None else SimpleNamespace(how=how),
        alternatives=[1] * alternatives,
        target=target,
    )


def node(key: str | None) -> Any:
    return SimpleNamespace(primitive_attributes=None if key is None else {key: "((2, 1),)"},
                           primal_attributes=None)  # fmt: skip


def notes(keys: str, found: Any, *nodes: Any) -> list[str]:
    made: Any = SimpleNamespace(keys=keys)
    begins: Any = {0: SimpleNamespace(nodes=lambda: nodes)}
    return list(_code_notes(made, found, begins))


OWN = "2 operators have a strategy in the code, which goes before this file: take out their"


@pytest.mark.parametrize(
    ("keys", "found", "expected"),
    [
        ("parameters", recovery(), OWN),
        ("parameters", recovery("given"), ""),  # the plan is what the code says
        ("parameters", recovery(None), ""),
        ("parameters", recovery(mode="auto_parallel"), ""),
        ("operators", recovery(), "to be loaded under auto_parallel with search_mode"),
        ("operators", recovery(mode="auto_parallel"), ""),
    ],
)
def test_what_has_to_change_in_the_code_is_told(keys: str, found: Any, expected: str) -> None:
    told = notes(keys, found, node("in_strategy"), node(None), node("in_layout"), node("axis"))
    assert [text[: len(expected)] for text in told] == [expected] * bool(expected)
    assert keys == "operators" or not notes(keys, found, node(None))


@pytest.mark.parametrize(
    ("reports", "missing", "found", "says"),
    [
        ({}, (), recovery(), "without a begin dump there is no plan"),
        ({0: 1}, (1, 2), recovery(), "no begin dump of pipeline stage 1, 2 is here"),
        ({0: 1}, (), recovery(alternatives=0, target=4), "no plan for 4 devices in other stages"),
        ({0: 1}, (), recovery(alternatives=0), ""),
        ({0: 1}, (), recovery(target=4), ""),
    ],
)
def test_without_a_plan_of_all_stages_there_is_no_file(
    reports: dict[int, int], missing: tuple[int, ...], found: Any, says: str
) -> None:
    held: Any = SimpleNamespace(reports=reports, missing=missing)
    if says:
        with pytest.raises(NotExpressible, match=says):
            _refuse_parts(found, held)
    else:
        _refuse_parts(found, held)
