"""Statements that one line of code makes many times, counted by hand."""

from __future__ import annotations

from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

import pytest

import irtool
from irtool.cluster.repeated_code import micro_batch_copies, unrolled_loops, unshared_layers
from irtool.ir.dump import Dump
from irtool.ir.phases import phases

SIZE = "<Tensor[Float32], (4, 4)>"
LAYER = "Default/net/layers-CellList/{}-Block"


def dump(
    rows: Sequence[tuple[str, str]], micro: Sequence[int | None] = (), line: int | None = 12
) -> Dump:
    """Statements by operator and scope, one behind the other, of one line of Python."""
    lines: list[str] = []
    for number, (op, scope) in enumerate(rows):
        own = micro[number] if micro else None
        note = "" if own is None else f" cnode_primal_attrs: {{micro: I64({own})}}"
        source = f"%{number - 1}" if number else "%para1_x"
        lines += [
            f"  %{number}(n{number}) = PrimFunc_{op}({source}) {{instance name: act}}{note}",
            f"      : ({SIZE}) -> ({SIZE})",
            f"      # Scope: ({scope})",
        ]
        if line is not None:
            lines.append(f"      # In file /home/u/net.py:{line}, 8~20/        x = self.act(x)/")
    text = "\n".join(lines)
    return irtool.loads(
        f"# IR entry: @main\n%para1_x: {SIZE} : [4, 4]\nsubgraph @main() {{\n{text}\n"
        f"  Return(%{len(rows) - 1})\n}}\n",
        "validate.ir",
    )


def layers(*sizes: int, kind: str = LAYER) -> list[tuple[str, str]]:
    return [("ReLU", kind.format(number)) for number, size in enumerate(sizes) for _ in range(size)]


# -- layers that each have statements of their own -------------------------------------------------


@pytest.mark.parametrize(
    ("sizes", "expected"),
    [
        ((4, 4, 4), (3, 12, 4)),
        ((4, 4), (2, 8, 4)),
        ((4,), None),
        ((8, 8, 4), (3, 20, 8)),  # half as many statements are of the kind
        ((8, 8, 3), (2, 16, 8)),  # fewer are not
        ((2, 8, 8, 30), (3, 46, 8)),  # many more are
        ((1, 8), None),
    ],
)
def test_layers_of_one_kind_have_about_as_many_statements(
    sizes: tuple[int, ...], expected: tuple[int, int, int] | None
) -> None:
    found = unshared_layers(dump(layers(*sizes)))
    assert (
        None if found is None else (len(found.layers), found.statements, found.once)
    ) == expected
    if found is not None:
        assert found.kind == "layers.#"
        assert found.first.op == "ReLU"


def test_the_kind_with_most_statements_is_told() -> None:
    heads = "Default/net/heads-CellList/{}-Head"
    found = unshared_layers(dump([*layers(3, 3), *layers(2, 2, 2, 2, kind=heads)]))
    assert found is not None
    assert (found.kind, found.statements) == ("heads.#", 8)
    found = unshared_layers(dump([*layers(3, 3), *layers(3, 3, kind=heads)]))
    assert found is not None
    assert found.kind == "layers.#"  # the first of as many


def test_a_network_without_numbered_layers_has_none() -> None:
    assert unshared_layers(dump([("ReLU", "Default/net/head")] * 9)) is None


# -- copies for micro-batches ----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("rows", "micro", "expected"),
    [
        (layers(2, 2) * 3, [m for m in range(3) for _ in range(4)], (2, 3, 12, 2)),
        (layers(2, 2) * 2, [m for m in range(2) for _ in range(4)], (2, 2, 8, 2)),
        (layers(2, 2), [0] * 4, None),  # one micro-batch
        (layers(2, 2), [], None),
        ([("ReLU", "Default/net/head")] * 4, [0, 0, 1, 1], None),  # no layers
        ([*layers(1, 1), ("ReLU", "Default/net/head")] * 2, [0, 0, 0, 1, 1, 1], (2, 2, 6, 1)),
        (layers(2, 2, 2) * 2, [*[0] * 6, *[1] * 5, None], (3, 2, 11, 1)),
    ],
)
def test_copies_are_what_names_a_micro_batch(
    rows: list[tuple[str, str]], micro: list[int | None], expected: tuple[int, ...] | None
) -> None:
    found = micro_batch_copies(dump(rows, micro))
    told = None if found is None else (
        found.layers, found.micro_batches, found.statements, found.once,
    )  # fmt: skip
    assert told == expected


def test_reused_cells_are_called_and_not_copied() -> None:
    nodes = [
        SimpleNamespace(
            micro=number % 2, scope=LAYER.format(0), op="call" if number == 3 else "Add"
        )
        for number in range(4)
    ]
    whole: Any = SimpleNamespace(nodes=lambda: nodes)
    assert micro_batch_copies(whole) is None
    nodes[3].op = "Add"
    assert micro_batch_copies(whole) is not None


# -- unrolled loops --------------------------------------------------------------------------------


def loops(found: Dump, fewest: int = 8) -> list[tuple[str, int, int]]:
    return [
        (loop.scope, loop.times, loop.statements)
        for loop in unrolled_loops(found, phases(found), fewest)
    ]


@pytest.mark.parametrize(("rounds", "is_told"), [(7, False), (8, True)])
def test_eight_rounds_are_a_loop(rounds: int, is_told: bool) -> None:
    assert loops(dump(layers(rounds))) == [("layers.0", rounds, rounds)] * is_told


def test_loops_of_as_many_rounds_in_one_layer_are_one() -> None:
    scope = LAYER.format(0)
    found = dump([("ReLU", scope), ("Tanh", scope)] * 9 + [("Exp", scope)] * 12)
    assert loops(found) == [("layers.0", 9, 18), ("layers.0", 12, 12)]


def test_what_no_line_of_python_made_is_no_loop() -> None:
    assert loops(dump(layers(20), line=None)) == []


def test_copies_for_micro_batches_are_no_rounds() -> None:
    assert loops(dump(layers(20), [number % 4 for number in range(20)])) == []
    assert loops(dump(layers(20), [number % 2 for number in range(20)])) == [
        ("layers.0", 10, 20),
    ]  # fmt: skip
