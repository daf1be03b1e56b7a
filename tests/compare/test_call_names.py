"""Names of calls and modules, as msprobe writes them."""

from __future__ import annotations

import pytest

from irtool.compare.tensors.formats.msprobe.names import parsed


@pytest.mark.parametrize(
    ("name", "type_", "phase", "owner", "call", "is_module"),
    [
        ("Functional.linear.3.forward", "linear", "forward", "", "Functional.linear.3.forward", 0),
        ("Functional.linear.3.backward", "linear", "backward", "",
         "Functional.linear.3.forward", 0),
        ("Tensor.__add__.0.forward", "__add__", "forward", "", "Tensor.__add__.0.forward", 0),
        ("Mint.nn.functional.relu.12.backward", "relu", "backward", "",
         "Mint.nn.functional.relu.12.forward", 0),
        ("Primitive.MatMul.0.forward", "MatMul", "forward", "", "Primitive.MatMul.0.forward", 0),
        ("Primitive.mul.Mul.1.forward", "Mul", "forward", "", "Primitive.mul.Mul.1.forward", 0),
        ("Module.blocks.1.up.Linear.forward.0", "Linear", "forward", "blocks.1.up",
         "Module.blocks.1.up.Linear.forward.0", 1),
        ("Cell.blocks.1.up.Dense.backward.2", "Dense", "backward", "blocks.1.up",
         "Cell.blocks.1.up.Dense.forward.2", 1),
        ("Module.up.Linear.parameters_grad", "Linear", "backward", "up",
         "Module.up.Linear.forward.0", 1),
        ("Functional.linear.x.forward", "forward", "forward", "", "Functional.linear.x.forward", 0),
        ("Functional.linear.0.sideward", "sideward", "forward", "",
         "Functional.linear.0.sideward", 0),
        ("linear.0.forward", "forward", "forward", "", "linear.0.forward", 0),
        ("loss", "loss", "forward", "", "loss", 0),
    ],
)  # fmt: skip
def test_what_a_name_says(
    name: str, type_: str, phase: str, owner: str, call: str, is_module: int
) -> None:
    assert parsed(name) == (type_, phase, owner, call, bool(is_module))
