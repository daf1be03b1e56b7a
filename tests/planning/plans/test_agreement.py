"""Which operators of a dump after a search are those of the dump before it."""

from __future__ import annotations

import irtool
from irtool.ir.dump import Dump
from irtool.planning.plans.agreement import Agreement, Compared, agreement

TYPE = "<Tensor[Float32], (64, 64)>"


def relu(number: int, name: str, source: str, strategy: str = "") -> str:
    given = f" {{in_strategy: {strategy}}}" if strategy else ""
    return (
        f"  %{number}({name}) = PrimFunc_ReLU({source}) {{instance name: relu}}{given}\n"
        f"      : ({TYPE}) -> ({TYPE})\n      # Scope: (Default/layer)\n"
    )


def dump(*graphs: str) -> Dump:
    head = (
        "# IR entry: @main\n# Total subgraphs: {count}\n\n# Attrs:\n\n"
        f"# Total params: 1\n# Params:\n%para1_x: {TYPE} : [64, 64]\n\n"
    )
    found = irtool.loads(head.format(count=len(graphs)) + "\n\n".join(graphs) + "\n", "net.ir")
    assert not found.problems
    return found


def graph(name: str, body: str, result: str, parameters: str = "") -> str:
    return (
        f"subgraph attr:\nsubgraph instance: {name} : 0x1\n"
        f"subgraph @{name}({parameters}) {{\n{body}  Return({result})\n      : ({TYPE})\n}}\n"
    )


def call(number: int, source: str) -> str:
    return f"  %{number}(c) = call @layer({source})\n      : ({TYPE}) -> ({TYPE})\n"


SHARED = dump(
    graph("layer", relu(0, "first", "%para2_a"), "%0", f"%para2_a: {TYPE}"),
    graph("main", call(0, "%para1_x") + call(1, "%0"), "%1"),
)
"""A graph that is called twice."""


def test_copies_of_a_graph_are_the_operators_that_they_were_made_of() -> None:
    (node,) = [each for each in SHARED.nodes() if each.op == "ReLU"]
    copied = relu(0, "a", "%para1_x", "((8, 1))") + relu(1, "b", "%0", "((8, 1))")
    found = agreement(SHARED, dump(graph("main", copied, "%1")), {node: ((8, 1),)}, {})
    assert [each.agrees for each in found.operators] == [True, True]
    differing = agreement(SHARED, dump(graph("main", copied, "%1")), {node: ((1, 8),)}, {})
    assert len(differing.differing) == 2


def test_an_operator_of_another_scope_is_not_taken_for_one() -> None:
    (node,) = [each for each in SHARED.nodes() if each.op == "ReLU"]
    other = relu(0, "a", "%para1_x", "((8, 1))").replace("Default/layer", "Default/loss")
    found = agreement(SHARED, dump(graph("main", other, "%0")), {node: ((8, 1),)}, {})
    assert [each.ours for each in found.operators] == [None]


def test_the_share_is_that_of_the_telling_operators() -> None:
    """A split of the batch alone is what anybody would guess: it counts where nothing else is."""
    (node,) = [each for each in SHARED.nodes() if each.op == "ReLU"]
    guessed = Compared(node, ((8, 1),), ((8, 1),))
    alike, other = Compared(node, ((2, 4),), ((2, 4),)), Compared(node, ((4, 2),), ((2, 4),))
    placed = Compared(node, ((1, 2),), ((1, 2),), ((2, 1),), None)
    assert Agreement((guessed, alike, other)).telling == (alike, other)
    assert Agreement((guessed, alike, other)).share == 0.5
    assert Agreement((guessed, alike, other, placed)).differing == (other, placed)
    assert Agreement((guessed, guessed)).telling == (guessed, guessed)
    assert Agreement((guessed,)).share == Agreement(()).share == 1.0
