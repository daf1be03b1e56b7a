"""Which legal strategies MindSpore's propagation tries of an operator, and which it does not."""

from __future__ import annotations

import pytest

from irtool.operators.call import OperatorCall, Strategy
from irtool.planning.propagation.choices import _is_offered
from tests.sharding.calls import call

OUTER = call("Outer", [8], [16], out=[8, 16])
CONVOLUTION = call("Conv2D", [8, 16, 4, 4], [32, 16, 3, 3], out=[8, 32, 4, 4])
TRANSPOSED = call("Conv2DTranspose", [8, 16, 4, 4], [16, 32, 3, 3], out=[8, 32, 4, 4])
TILE = call("Tile", [8, 16], (1, 2), out=[8, 32])


@pytest.mark.parametrize(
    ("what", "rows", "is_offered"),
    [
        (OUTER, ((2,), (2,)), True),
        (OUTER, ((2,), (4,)), False),
        (CONVOLUTION, ((2, 4, 1, 1), (1, 4, 1, 1)), True),
        (CONVOLUTION, ((2, 1, 1, 1), (2, 1, 1, 1)), False),  # filters' results split
        (TRANSPOSED, ((2, 4, 1, 1), (4, 1, 1, 1)), True),
        (TRANSPOSED, ((2, 1, 1, 1), (1, 4, 1, 1)), False),
        (TILE, ((2, 1),), False),  # what is copied once is not spread
        (TILE, ((1, 2),), True),
        (TILE, ((1, 1),), True),
        (call("ReLU", [8, 16], out=[8, 16]), ((2, 4),), True),  # whatever is legal
    ],
)
def test_what_is_tried(what: OperatorCall, rows: Strategy, is_offered: bool) -> None:
    assert _is_offered(what, rows) == is_offered
