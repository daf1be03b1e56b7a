"""Users of a value in the order in which they came to it, by what the user wrote."""

from __future__ import annotations

import irtool
from irtool.ir.graph import Node
from irtool.sharding.network.graphs import network_of
from irtool.sharding.network.written import as_they_came, parsed_scopes

SIZE = "<Tensor[Float32], (8, 8)>"
TURN = "return self.add(self.scale(x, self.one), self.turn(x))"
CONSTRUCT = "      # In file net.py:4~9, 4~30/    def construct(self, x):/\n"
NEGATED = "      # In file net.py:6, 12~24/        y = self.turn(x)/\n"
CALL = "      # In file net.py:8, 12~27/        z = helper(x, y)/\n"
HELPER = "      # In file net.py:1~2/def helper(x, y):/\n"
PLAIN = "return self.add(x, self.turn(x))"


def users(
    line: str,
    place: str,
    names: tuple[str, str] = ("x", "z"),
    *,
    around: str = "",
    inside: str = "",
    cells: tuple[str, str] = ("Default", "Default"),
    also: frozenset[str] = frozenset(),
) -> list[str]:
    """The users of a Reshape: the sum of a line of the user's, and what stands before the sum.

    ``names``: those of the Reshape and of the sum. ``around``: location lines of functions that all
    stand in, ``inside``: of those that the sum alone stands in, ``cells``: that of all, the sum's.
    ``also``: scopes of which other nodes tell what was parsed.
    """
    end = 8 + len(line)
    text = (
        "# IR entry: @main\n# Total subgraphs: 1\n\n# Attrs:\n\n# Total params: 1\n# Params:\n"
        f"%para1_x: {SIZE} : [8, 8]\n\n"
        "subgraph attr:\nsubgraph instance: main : 0x1\nsubgraph @main() {\n"
        f"  %0({names[0]}) = PrimFunc_Reshape(%para1_x, (I64(8), I64(8)))\n"
        f"      : ({SIZE}, <null>) -> ({SIZE})\n"
        f"      # Scope: ({cells[0]})\n{around}"
        f"      # In file net.py:{place}/        x = self.reshape(x)/\n"
        f"  %1(y) = PrimFunc_Neg(%0)\n      : ({SIZE}) -> ({SIZE})\n"
        f"      # Scope: ({cells[0]})\n{around}"
        f"{NEGATED if around else ''}"
        f"  %2({names[1]}) = PrimFunc_Add(%0, %1)\n      : ({SIZE}, {SIZE}) -> ({SIZE})\n"
        f"      # Scope: ({cells[1]})\n{around}{inside}"
        f"      # In file net.py:9, 8~{end}/        {line}/\n"
        f"  Return(%2)\n      : ({SIZE})\n}}\n"
    ).replace(f"8~{end}", f"15~{end}")
    network = network_of(irtool.loads(text, "net.ir"))
    reshape = next(node for node in network.inputs if node.op == "Reshape")
    assert isinstance(reshape, Node)
    parsed = parsed_scopes(network) | also
    return [use.node.op for use in as_they_came(reshape, network.users_of(reshape), parsed)]


def test_who_was_given_it_instead_of_another_value_comes_last() -> None:
    assert users(TURN, "5, 12~30") == ["Neg", "Add"]


def test_in_a_copy_of_a_graph_users_come_in_its_own_order() -> None:
    copied, parsed = ("CNode_2969", "CNode_2973"), ("CNode_451$x", "CNode_433$x")
    assert users(TURN, "5, 12~30", copied) == ["Add", "Neg"]
    assert users(TURN, "5, 12~30", parsed) == ["Neg", "Add"]


def test_in_the_copy_for_a_micro_batch_users_come_in_its_own_order() -> None:
    """What the parser made has a ``$`` in its name, in the scopes that were copied."""
    line, place = "return x + y", "5, 12~30"
    copied = frozenset(("Default",))
    for names, also, order in (
        (("CNode_2246", "z"), copied, ["Add", "Neg"]),
        (("x", "CNode_2246"), copied, ["Add", "Neg"]),
        (("CNode_181$y", "z"), copied, ["Neg", "Add"]),
        (("CNode_2246", "z"), frozenset[str](), ["Neg", "Add"]),
        (("CNode_2246", "z"), frozenset(("Default/other",)), ["Neg", "Add"]),
    ):
        assert users(line, place, names, around=CONSTRUCT, also=also) == order


def test_who_names_it_keeps_its_place() -> None:
    assert users(PLAIN, "5, 12~30") == ["Add", "Neg"]


def test_what_the_call_itself_made_is_no_other_value() -> None:
    begin = 8 + TURN.index("self.scale")
    end = 8 + TURN.index(", self.turn")
    assert users(TURN, f"9, {begin}~{end}") == ["Add", "Neg"]


def test_a_line_that_is_no_call_says_nothing() -> None:
    assert users("return x + self.turn(x)", "5, 12~30") == ["Add", "Neg"]
    assert users("return self.add(*parts(x)", "5, 12~30") == ["Add", "Neg"]


def test_what_an_operator_of_python_uses_came_after_what_is_called_beside_it() -> None:
    assert users("return x + y", "5, 12~30", around=CONSTRUCT) == ["Neg", "Add"]
    assert users("return self.add(x, y)", "5, 12~30", around=CONSTRUCT) == ["Add", "Neg"]


def test_an_augmented_assignment_is_an_operator() -> None:
    assert users("x_and_more += y", "5, 12~30", around=CONSTRUCT) == ["Neg", "Add"]


def test_what_a_function_uses_came_after_what_its_caller_uses() -> None:
    inside = CALL + HELPER
    assert users(PLAIN, "5, 12~30", around=CONSTRUCT, inside=inside) == ["Neg", "Add"]


def test_what_another_cell_of_a_loop_uses_came_later() -> None:
    """Cells of a list are called in one line: their lines are the same, and their scopes differ."""
    around = CALL + CONSTRUCT
    for cells, order in (
        (("Default/0-Block", "Default/0-Block"), ["Add", "Neg"]),
        (("Default/0-Block", "Default/1-Block"), ["Neg", "Add"]),
        (("Default/1-Block", "Default/10-Block"), ["Neg", "Add"]),
    ):
        assert users(PLAIN, "5, 12~30", around=around, cells=cells) == order


def test_lines_that_tell_no_function_leave_the_order_of_the_search() -> None:
    assert users("return x + y", "5, 12~30") == ["Add", "Neg"]
    assert users(PLAIN, "5, 12~30", inside=CALL) == ["Add", "Neg"]
