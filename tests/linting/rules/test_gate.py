"""GAT: what became worse than in a golden dump, rule by rule."""

from __future__ import annotations

import pytest

from irtool.linting.gate import GateFacts, GateRule
from irtool.linting.gate.run import run_gate
from irtool.linting.rules.gate.gat009_changed_attribute import ChangedAttribute
from irtool.syntax.load import loads
from tests.linting.cases import dump_of


def convolution(channels: int, weight: int, stride: int = 1) -> str:
    """A convolution whose attribute and weight say how many channels it has."""
    shapes = f"(8, 3, 4, 4)>, <Tensor[Float32], ({weight}, 3, 3, 3)"
    return dump_of(
        f"%0(a) = PrimFunc_Conv2D(%para1_x, %para2_w) primitive_attrs: "
        f"{{out_channel: I64({channels}), stride: I64({stride})}}",
        f"    : (<Tensor[Float32], {shapes}>) -> (<Tensor[Float32], (8, {weight}, 4, 4)>)",
        parameters=("%para1_x: <Tensor[Float32], (8, 3, 4, 4)>",
                    f"%para2_w: <Tensor[Float32], ({weight}, 3, 3, 3)>"),
    )  # fmt: skip


@pytest.mark.parametrize(
    ("new", "told"),
    [
        (convolution(32, 32), []),
        (convolution(32, 16), ["Conv2D: out_channel: 16 → 32"]),
        (convolution(16, 16, stride=2), ["Conv2D: stride: 1 → 2"]),
        (convolution(32, 32, stride=2), ["Conv2D: stride: 1 → 2"]),
    ],
    ids=["channels of the weight, too", "channels alone", "stride", "both"],
)
def test_a_number_that_is_a_size_of_the_weights_is_no_attribute_more(
    new: str, told: list[str]
) -> None:
    facts = GateFacts(loads(convolution(16, 16), "old.ir"), loads(new, "new.ir"))
    rules: list[GateRule] = [ChangedAttribute()]

    def failed(rule: object, error: Exception) -> None:
        raise error

    found = run_gate(facts, rules, failed)  # type: ignore[arg-type]  # it never returns
    assert [each.message for each in found] == told
