"""Plans in files: as they are, or the best that a file can hold, read back and priced."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

import irtool
from irtool.cluster.machine import default_machine
from irtool.ir.dump import Dump
from irtool.ir.units import seconds_text
from irtool.planning.files.handing_over import (
    Again,
    HandedOver,
    by_lines,
    by_operators,
    by_parameters,
    hand_over,
)
from irtool.planning.files.strategy_files import NotExpressible
from irtool.planning.plans.plan import Plan, plan
from irtool.planning.search.problem import Carried
from irtool.sharding.network.context import ParallelContext

SAMPLES = Path(__file__).parents[3] / "samples"
LOOP = SAMPLES / "mlp_loop" / "step_parallel_begin_0019.ir"
MACHINE = default_machine()
CONTEXT = ParallelContext(
    devices=8, mode="auto_parallel", search="sharding_propagation", full_batch=True
)
FLAGS = "Bool(0), Bool(0)"
SCOPE = "      # Scope: (Default/net-Net)"


def two_relus() -> Dump:
    """Two ReLU of one scope without source lines: a small one, and one that is worth cutting."""
    small, wide = "<Tensor[Float32], (16, 16)>", "<Tensor[Float32], (16, 2097152)>"
    weight = "<Ref[Tensor[Float32]], (16, 2097152)>"
    return irtool.loads(f"""
%para1_x: {small} : [16, 16]
%para2_w: <Ref[Tensor[Float32]], (16, 2097152), ref_key=w, is_parameter>  :  has_default

subgraph attr:
subgraph instance: main : 0x1
subgraph @main() {{
  %0(a) = _VirtualDataset(%para1_x) primitive_attrs: {{}}
      : ({small}) -> ({small})
{SCOPE}
  %1(x) = PrimFunc_ReLU(%0) {{instance name: relu}} primitive_attrs: {{}}
      : ({small}) -> ({small})
{SCOPE}
  %2(y) = PrimFunc_MatMul(%1, %para2_w, {FLAGS}) {{instance name: product}} primitive_attrs: {{}}
      : ({small}, {weight}, <Bool, NoShape>, <Bool, NoShape>) -> ({wide})
{SCOPE}
  %3(x) = PrimFunc_ReLU(%2) {{instance name: relu}} primitive_attrs: {{}}
      : ({wide}) -> ({wide})
{SCOPE}
  Return(%3)
      : ({wide})
}}
""")


def again(dump: Dump) -> Again:
    def make(carried: Carried, context: ParallelContext) -> Plan:
        return plan(dump, context, MACHINE, carried=carried)

    return Again(dump, make)


def test_operators_whose_numbers_are_not_known_get_one_strategy() -> None:
    dump = two_relus()
    free = plan(dump, CONTEXT, MACHINE)
    relus = [item.after for item in free.operators if item.node.op == "ReLU"]
    assert len(set(relus)) == 2
    made = hand_over(free, again(dump))
    assert made.keys == "operators"
    rows = json.loads(made.text)["parallel_strategy_item"]
    one, other = (rows[f"Default/net-Net/ReLU-op{n}"]["parallel_strategy"] for n in (0, 1))
    assert one == other
    assert made.plan.after.seconds > free.after.seconds
    assert made.plan.gap == pytest.approx(0, abs=1e-9)
    assert "numbers this dump does not tell" in made.notes[0]
    lines, _ = by_lines(free, again(dump))
    said = f"--format shard keeps more: {seconds_text(lines.after.seconds)} a step"
    assert (said in made.notes) == (lines.after.seconds < made.plan.after.seconds)


def test_the_file_that_holds_more_of_a_plan_is_handed_over(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    dump = two_relus()
    free = plan(dump, CONTEXT, MACHINE)
    tied = by_operators(free, again(dump))
    other = HandedOver(free, "by parameters", "parameters")

    def by_weights(_plan: Plan, _again: Again) -> HandedOver:
        return other

    monkeypatch.setattr("irtool.planning.files.handing_over.by_parameters", by_weights)
    assert hand_over(free, again(dump)).text == "by parameters"
    assert hand_over(free, again(dump), keys="operators").text == tied.text
    other = replace(other, plan=tied.plan)
    assert hand_over(free, again(dump)).keys == "operators"


def test_without_planning_again_such_a_file_is_declined() -> None:
    dump = two_relus()
    free = plan(dump, CONTEXT, MACHINE)
    with pytest.raises(NotExpressible, match="counts first") as caught:
        by_operators(free, Again(dump))
    assert len(caught.value.tied) == 1


def test_what_is_known_is_handed_over_as_it_is() -> None:
    dump = irtool.load(str(LOOP))
    free = plan(dump, CONTEXT, MACHINE)
    made = hand_over(free, again(dump))
    assert (made.plan, made.keys, made.notes) == (free, "operators", ())


def test_layouts_that_the_code_gives_stand_in_the_file_as_mindspore_saves_them() -> None:
    """Without them an operator lies as its strategy says, on other devices than the code wants."""
    dump = irtool.load(str(SAMPLES / "layout" / "step_parallel_begin_0019.ir"))
    context = replace(CONTEXT, mode="auto_parallel")
    made = hand_over(plan(dump, context, MACHINE), again(dump), keys="operators")
    file = json.loads(made.text)
    scope = "Default/network-WithLossCell/_backbone-LayoutNet"

    def layout(*tensor_map: list[int]) -> dict[str, object]:
        names, matrix = ["dp", "sp", "mp"], [2, 2, 2]
        return {"alias_name": names, "dev_matrix": matrix, "interleaved_parallel": False,
                "tensor_map": [*tensor_map]}  # fmt: skip

    assert file["parallel_layout_value_item"] == {
        f"{scope}/MatMul-op0": {"0": layout([2, 1], [0]), "1": layout([0], [-1])},
        f"{scope}/ReLU-op0": {"0": layout([2, 1, 0], [-1])},
    }
    assert file["parallel_out_layout_value_item"] == {
        f"{scope}/MatMul-op0": {"0": layout([2, 1, 0], [-1])}
    }
    loop = irtool.load(str(LOOP))
    plain = hand_over(plan(loop, CONTEXT, MACHINE), again(loop)).text
    assert "layout_value_item" not in plain


def test_a_file_by_parameters_is_planned_within_what_it_says_and_priced_so() -> None:
    """What has no weight gets MindSpore's own strategy: the price says it, and no gap is hidden."""
    dump = irtool.load(str(LOOP))
    free = plan(dump, CONTEXT, MACHINE)
    made = by_parameters(free, again(dump))
    assert made.plan.context.mode == "semi_auto_parallel"
    assert made.plan.after.seconds >= free.after.seconds
    adds = {item.after for item in made.plan.operators if item.node.op == "ReLU"}
    assert adds == {((8, 1),)}
    assert "% more" in made.notes[0] or "costs nothing" in made.notes[0]


@pytest.mark.parametrize(("part", "is_said"), [(0.99, True), (1.01, False)])
def test_a_form_that_is_dearer_than_what_the_dump_has_says_so(part: float, is_said: bool) -> None:
    dump = irtool.load(str(LOOP))
    free = plan(dump, CONTEXT, MACHINE)
    cost = by_parameters(free, again(dump)).plan.after.seconds
    own = replace(free.after, hides=free.after.spent - part * cost)
    made = by_parameters(replace(free, before=own), again(dump))
    assert made.plan.after.seconds == cost > free.after.seconds
    assert (f"and what the dump has {seconds_text(own.seconds)}" in made.notes[0]) == is_said


def test_a_plan_that_can_not_be_made_again_is_priced_as_mindspore_completes_it() -> None:
    dump = irtool.load(str(LOOP))
    free = plan(dump, CONTEXT, MACHINE)
    made = by_parameters(free, Again(dump))
    best = by_parameters(free, again(dump))
    assert made.plan.after.seconds >= best.plan.after.seconds * (1 - 1e-9)
    assert "MindSpore completes it" in made.notes[0]


def test_what_is_compiled_once_for_many_uses_has_no_known_numbers() -> None:
    """Copies that MindSpore made before count, too: a file would name what is not there."""
    text = irtool.dumps(two_relus())
    dump = irtool.loads(text.replace("subgraph attr:\n", "subgraph attr:\ncell_reuse: 1\n"))
    free = plan(dump, CONTEXT, MACHINE)
    with pytest.raises(NotExpressible, match="lazy_inline"):
        by_operators(free, again(dump))
    assert hand_over(free, again(dump)).keys == "parameters"


def test_a_file_by_parameters_holds_what_it_can_say_and_no_out_strategy() -> None:
    dump = two_relus()
    made = by_parameters(plan(dump, CONTEXT, MACHINE), again(dump))
    items = json.loads(made.text)["parallel_strategy_item"]
    assert set(items) == {"MatMul_w"}
    assert all(item.out_after is None for item in made.plan.operators)
    relus = [item.after for item in made.plan.operators if item.node.op == "ReLU"]
    assert relus == [((8, 1),)] * 2


def test_uses_of_one_primitive_get_one_strategy_in_lines() -> None:
    dump = two_relus()
    free = plan(dump, CONTEXT, MACHINE)
    made, notes = by_lines(free, again(dump))
    relus = {item.after for item in made.operators if item.node.op == "ReLU"}
    assert len(relus) == 1
    assert made.after.seconds > free.after.seconds
    assert "% more" in notes[0]


def test_lines_that_say_all_are_those_of_the_plan() -> None:
    dump = irtool.load(str(LOOP))
    free = plan(dump, CONTEXT, MACHINE)
    made, _ = by_lines(free, again(dump))
    again_made, notes = by_lines(made, again(dump))
    assert again_made is made
    assert notes == ()
