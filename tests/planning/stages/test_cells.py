"""A network as a row of cells, between which stages can be cut: small networks by hand."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

import irtool
from irtool.cluster.machine import default_machine
from irtool.planning.cost.costs import BACKWARD_WORK, Communication
from irtool.planning.cost.structure import structure_of
from irtool.planning.plans.step.items import CostItem
from irtool.planning.plans.step.report import MemoryCost, StepCost
from irtool.planning.stages.cells import BEFORE, BEHIND, BETWEEN, StageCells, stage_cells
from irtool.planning.stages.figures import CellFigures, _forward, of_micro_batches
from irtool.sharding.network.context import ParallelContext

SIZE = "(64, 64)"
TENSOR, WEIGHT = f"<Tensor[Float32], {SIZE}>", f"<Ref[Tensor[Float32]], {SIZE}"
CONTEXT = ParallelContext(devices=4, full_batch=True)


def scope(layer: int | None) -> str:
    inner = "" if layer is None else f"layers-CellList/{layer}-Block/"
    return f"Default/network-Net/{inner}"


def cells(layers: Sequence[int | None], reads: Sequence[tuple[int, str]] = ()) -> StageCells:
    """Products one after the other, each in a layer or (None) in none.

    ``reads``: the place of a product, and what it reads as its second operand instead of a weight
    of its own: ``%0`` a result, ``w0`` the weight of another.
    """
    other = dict(reads)
    weights = [at for at in range(len(layers)) if at not in other]
    lines = ["", f"%para1_x: {TENSOR} : [64, 64]"]
    names = {f"w{at}": f"%para{number}_w{at}" for number, at in enumerate(weights, 2)}
    for name, place in names.items():
        lines.append(f"{place}: {WEIGHT}, ref_key={name}, is_parameter>  :  has_default")
    lines += ["", "subgraph attr:", "subgraph instance: main : 0x1", "subgraph @main() {"]
    for at, layer in enumerate(layers):
        first = f"%{at - 1}" if at else "%para1_x"
        second = other.get(at, f"w{at}")
        kind = TENSOR if second.startswith("%") else f"{WEIGHT}>"
        lines += [
            f"  %{at}(c{at}) = PrimFunc_MatMul({first}, {names.get(second, second)}, Bool(0), "
            "Bool(0)) {instance name: matmul} primitive_attrs: {}",
            f"      : ({TENSOR}, {kind}, <Bool, NoShape>, <Bool, NoShape>) -> ({TENSOR})",
            f"      # Fullname with scope: ({scope(layer)}MatMul-op{at})",
        ]
    lines += [f"  Return(%{len(layers) - 1})\n      : ({TENSOR})", "}", ""]
    return stage_cells(structure_of(irtool.loads("\n".join(lines)), CONTEXT))


def named(found: StageCells) -> list[tuple[tuple[str, ...], list[str]]]:
    return [(cell.names, [node.id for node in cell.nodes]) for cell in found.cells]


@pytest.mark.parametrize(
    ("layers", "expected"),
    [
        ((0, 1), [(("layers.0",), ["%0"]), (("layers.1",), ["%1"])]),
        ((0, 0, 1), [(("layers.0",), ["%0", "%1"]), (("layers.1",), ["%2"])]),
        # what stands before the first goes with it, all else with the cell before it
        (
            (None, 0, None, 1, None),
            [((BEFORE, "layers.0", BETWEEN), ["%0", "%1", "%2"]),
             (("layers.1", BEHIND), ["%3", "%4"])],
        ),
        # a layer that comes again is one with what stands between
        ((0, 1, 0, 2), [(("layers.0",), ["%0", "%1", "%2"]), (("layers.2",), ["%3"])]),
        ((0, None, 0, 1), [(("layers.0",), ["%0", "%1", "%2"]), (("layers.1",), ["%3"])]),
        ((None, None), [((BEFORE,), ["%0", "%1"])]),
    ],
)  # fmt: skip
def test_cells_in_the_order_in_which_they_run(
    layers: Sequence[int | None], expected: list[tuple[tuple[str, ...], list[str]]]
) -> None:
    found = cells(layers)
    assert named(found) == expected
    assert {node.id: at for node, at in found.place.items()} == {
        name: at for at, (_, names) in enumerate(expected) for name in names
    }
    assert [cell.is_cell for cell in found.cells] == [layers != (None, None)] * len(expected)


def flows(found: StageCells) -> list[tuple[str, int, int, tuple[int, ...]]]:
    return [(flow.node.id, flow.output, flow.source, flow.users) for flow in found.flows]


def test_each_cell_hands_its_result_to_the_next() -> None:
    assert flows(cells((0, 0, 1, 2))) == [("%1", 0, 0, (1,)), ("%2", 0, 1, (2,))]


def test_a_result_may_be_used_further_on() -> None:
    found = cells((0, 1, 2), [(2, "%0")])
    assert flows(found) == [("%0", 0, 0, (1, 2)), ("%1", 0, 1, (2,))]


def test_what_a_cell_uses_itself_flows_nowhere() -> None:
    assert flows(cells((0, 0, 0), [(2, "%0")])) == []


def test_weights_that_several_cells_use_are_shared() -> None:
    found = cells((0, 1, 2), [(2, "w0")])
    assert [(parameter.name, users) for parameter, users in found.shared] == [("w0", (0, 2))]
    assert cells((0, 0, 1), [(1, "w0")]).shared == ()


# -- figures -------------------------------------------------------------------------------------


def sent(phase: str, seconds: float) -> Communication:
    return Communication("AllReduce", phase, (0, 1), 8, 8, seconds)  # type: ignore[arg-type]


def item(kind: str = "operator", *sends: Communication, **seconds: float) -> CostItem:
    causes = {name.replace("_", " "): value for name, value in seconds.items()}
    return CostItem(kind, None, "name", causes, sends)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("cost", "gradient", "forward"),
    [
        # a third of the arithmetic, the gradient being two products for one
        (item(compute=9.0), True, 9.0 / (1 + BACKWARD_WORK)),
        (item(compute=9.0), False, 9.0),
        (item("recompute", compute=9.0), True, 0.0),
        # collectives as they are, and copies beside them in their proportion
        (item("operator", sent("forward", 3.0), sent("backward", 1.0), compute=9.0,
              operator_collectives=4.0), True, 3.0 + 3.0),
        (item("edge", sent("forward", 3.0), sent("backward", 1.0), redistribution=8.0), True, 6.0),
        (item("edge", sent("forward", 3.0), redistribution=8.0), False, 8.0),
        # slices that communicate nothing, forward and back
        (item("edge", redistribution=8.0), True, 4.0),
        (item("edge", redistribution=8.0), False, 8.0),
    ],
)  # fmt: skip
def test_what_of_a_cost_lies_in_the_forward_pass(
    cost: CostItem, gradient: bool, forward: float
) -> None:
    assert _forward(cost, gradient) == pytest.approx(forward)


def test_a_cell_takes_its_work_for_each_micro_batch_and_weights_once() -> None:
    found = CellFigures(forward=1.0, backward=2.0, once=5.0, weights=7, gradients=11, states=13)
    assert found.seconds(1) == 8.0
    assert found.seconds(4) == 17.0
    assert found.static == 31


def test_a_step_of_several_micro_batches() -> None:
    memory = MemoryCost(1, 2, 3, 4)
    work = item("operator", sent("forward", 3.0), compute=9.0, operator_collectives=3.0)
    weight = item("weight", sent("backward", 2.0), gradients=2.0)
    once = StepCost(default_machine(), (work, weight), MemoryCost(0, 0, 0, 0), (), True)
    step = of_micro_batches(once, 3, memory)
    first, second = step.items
    assert second is weight
    assert first.seconds == {"compute": 27.0, "operator collectives": 9.0}
    assert first.communications == work.communications * 3
    assert step.memory == memory
    assert step.shares["gradients"] == 2.0
    assert step.seconds == pytest.approx(3 * 12.0 + 2.0)
