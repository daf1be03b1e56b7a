"""A plan of a later pipeline stage: what the stage before hands over lies as that left it."""

from __future__ import annotations

import pytest

import irtool
from irtool.cluster.machine import default_machine
from irtool.planning.files.handing_over import Again, by_operators
from irtool.planning.plans.plan import Plan, plan
from irtool.planning.plans.step.report import StepCost
from irtool.sharding.network.context import ParallelContext

SIZE = "<Tensor[Float32], (1024, 1024)>"
MACHINE = default_machine()


def stage(left_by: str, part: str) -> str:
    """The second stage: two operators behind what it receives."""
    return (
        "# Total params: 1\n# Params:\n"
        f"%para1_x: {SIZE} : [1024, 1024]\n\n"
        "subgraph attr:\nsubgraph instance: main : 0x1\nsubgraph @main() {\n"
        "  %0(got) = Receive(%para1_x) {instance name: Receive} primitive_attrs: "
        f"{{shape: [{part}], src_rank: I64(0), sr_tag: I64(0)}} cnode_primal_attrs: "
        f"{{micro: I64(0)}} {{in_strategy: ({left_by})}}\n      : ({SIZE}) -> ({SIZE})\n"
        "  %1(out) = PrimFunc_ReLU(%0) {instance name: relu} primitive_attrs: "
        f"{{in_strategy: ((8, 1))}}\n      : ({SIZE}) -> ({SIZE})\n      # Scope: (Default)\n"
        "  %2(out) = PrimFunc_Exp(%1) {instance name: exp} primitive_attrs: "
        f"{{in_strategy: ((8, 1))}}\n      : ({SIZE}) -> ({SIZE})\n      # Scope: (Default)\n"
        f"  Return(%2)\n      : ({SIZE})\n}}\n"
    )


def planned(left_by: str, part: str, devices: int = 16) -> Plan:
    dump = irtool.loads(stage(left_by, part), "step_parallel_begin_0001.ir")
    context = ParallelContext(devices=16, stages=2, rank=8, full_batch=True)
    return plan(dump, context, MACHINE, devices=devices)


def behind_receive(cost: StepCost) -> list[str]:
    """What is redistributed of what comes."""
    return [item.name for item in cost.items if item.name.startswith("Receive")]


@pytest.mark.parametrize(
    ("left_by", "part", "strategy"),
    [("(8, 1)", "128, 1024", (8, 1)), ("(1, 8)", "1024, 128", (1, 8))],
)
def test_operators_take_it_as_it_comes(left_by: str, part: str, strategy: tuple[int, int]) -> None:
    made = planned(left_by, part)
    assert made.operators[0].after == (strategy,)
    assert not made.after.unknown
    assert not behind_receive(made.after)


def test_what_the_dump_has_pays_for_the_way_it_comes() -> None:
    as_it_comes, otherwise = (
        planned(*left) for left in (("(8, 1)", "128, 1024"), ("(1, 8)", "1024, 128"))
    )
    assert as_it_comes.before is not None
    assert otherwise.before is not None
    assert behind_receive(as_it_comes.before) == []
    assert behind_receive(otherwise.before) == ["Receive to ReLU"]
    assert otherwise.before.seconds > as_it_comes.before.seconds


def test_how_it_comes_is_not_known_for_other_devices() -> None:
    made = planned("(8, 1)", "128, 1024", devices=32)
    assert [text for text in made.after.unknown if "does not tell which operator" in text]


def test_a_file_read_back_has_it_come_the_same_way() -> None:
    made = planned("(1, 8)", "1024, 128")
    dump = irtool.loads(stage("(1, 8)", "1024, 128"), "step_parallel_begin_0001.ir")
    handed = by_operators(made, Again(dump))
    assert handed.plan.after.seconds == pytest.approx(made.after.seconds)
    assert not handed.plan.after.unknown
