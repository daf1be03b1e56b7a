"""``why`` of nodes that bear no name of MindSpore's: attributes and neighbours have to tell."""

from __future__ import annotations

import pytest

import irtool
from irtool.sharding.why import Cause, explain

T = "<Tensor[Float32], (8, 4)>"


def causes(*statements: tuple[str, str] | tuple[str, str, str]) -> list[Cause]:
    """The cause of each statement: operator with operands, attributes, what stands behind them."""
    lines = ["# IR entry: @main", "", f"%para1_x: {T} : [8, 4]", "", "subgraph @main() {"]
    for number, (call, attributes, *more) in enumerate(statements):
        behind = more[0] if more else "\n      # Scope: (Default)"
        marks = f" primitive_attrs: {{{attributes}}}" if attributes else ""
        lines += [f"  %{number}(v{number}) = {call}{marks}", f"      : ({T}) -> ({T}){behind}"]
    lines += [f"  Return(%{len(statements) - 1})", "}", ""]
    dump = irtool.loads("\n".join(lines).replace("}\n      :", "}\n      :"))
    nodes = [node for node in dump.nodes() if not node.is_return]
    return [explain(node, dump) for node in nodes]


GROUP = 'group: "2-5004544844489628105", rank_list: (0, 1)'
LINE = "\n      # Scope: (Default)\n      # In file net.py:7, 8~20/        x = f(x)/"


# -- ring attention --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "mark", ["RING_ATTENTION_INDEX", "RING_ATTENTION_POS", "FLASH_SP_COMM_TYPE", "flash_tag"]
)
@pytest.mark.parametrize("between", [0, 1])
def test_a_cut_that_feeds_a_ring_is_part_of_it(mark: str, between: int) -> None:
    """Right before what is sent around, or one operator further away."""
    steps = [("PrimFunc_StridedSlice(%para1_x)", "")]
    steps += [(f"PrimFunc_Exp(%{number})", "") for number in range(between)]
    steps += [(f"PrimFunc_Tanh(%{between})", f'{mark}: "0"')]
    assert causes(*steps)[0].kind == "ring attention"


def test_a_cut_two_operators_before_a_ring_is_the_users() -> None:
    steps = [("PrimFunc_StridedSlice(%para1_x)", "")]
    steps += [(f"PrimFunc_Exp(%{number})", "") for number in range(2)]
    steps += [("PrimFunc_Tanh(%2)", 'flash_tag: "0"')]
    assert causes(*steps)[0].kind == "user code"


def test_a_cut_behind_a_ring_is_part_of_it() -> None:
    found = causes(("PrimFunc_Tanh(%para1_x)", 'flash_tag: "0"'), ("PrimFunc_Split(%0)", ""))
    assert found[1].kind == "ring attention"


@pytest.mark.parametrize("named", ["{instance name: mine}", "line"])
def test_a_cut_with_a_name_or_a_line_is_the_users(named: str) -> None:
    cut = "PrimFunc_Split(%0)"
    statement = (f"{cut} {named}", "") if named != "line" else (cut, "", LINE)
    found = causes(("PrimFunc_Tanh(%para1_x)", 'flash_tag: "0"'), statement)
    assert found[1].kind == "user code"


@pytest.mark.parametrize(
    "mark",
    ["RING_ATTENTION_UPDATE_SUM", "RING_ATTENTION_UPDATE_MAX", "RING_ATTENTION_UPDATE_MUL"],
)
@pytest.mark.parametrize("between", [0, 5, 11, 12])
def test_a_cut_of_what_a_ring_updates_is_part_of_it(mark: str, between: int) -> None:
    """Up to twelve nodes before it are looked at."""
    steps = [("PrimFunc_Add(%para1_x, %para1_x)", f'{mark}: "0"')]
    steps += [(f"PrimFunc_Exp(%{number})", "") for number in range(between)]
    steps += [(f"PrimFunc_Split(%{between})", "")]
    assert causes(*steps)[-1].kind == ("ring attention" if between < 12 else "user code")


# -- collectives of unknown origin -----------------------------------------------------------------


def test_a_sum_of_nothing_but_the_result_hands_it_to_all_stages() -> None:
    found = causes(("PrimFunc_Exp(%para1_x)", ""), ("AllReduce(%0)", GROUP))
    assert (found[1].kind, found[1].message) == (
        "result broadcast", "hands the last stage's result to all stages",
    )  # fmt: skip


def test_a_sum_that_goes_on_is_unknown() -> None:
    found = causes(("AllReduce(%para1_x)", GROUP), ("PrimFunc_Exp(%0)", ""))
    assert (found[0].kind, found[0].message) == ("unknown", "AllReduce of unknown origin")
    assert any("it has no instance name" in each for each in found[0].missing)


def test_another_collective_of_the_result_is_unknown() -> None:
    found = causes(("PrimFunc_Exp(%para1_x)", ""), ("AllGather(%0)", GROUP))
    assert found[1].kind == "unknown"


def test_a_collective_of_the_optimizer_is_its_own() -> None:
    scope = "\n      # Scope: (Default/optimizer-Mine)"
    found = causes(("AllReduce(%para1_x)", GROUP, scope), ("PrimFunc_Exp(%0)", ""))
    assert (found[0].kind, found[0].message) == (
        "optimizer", "the optimizer's own AllReduce in Default/optimizer-Mine",
    )  # fmt: skip


# -- nodes that don't communicate ------------------------------------------------------------------


@pytest.mark.parametrize(
    ("call", "attributes", "kind"),
    [
        ("PrimFunc_StridedSlice(%para1_x)", "grad_accu_num: I64(2)", "gradient accumulation"),
        ("PrimFunc_StridedSlice(%para1_x)", "slice_index: I64(2)", "micro-batch"),
        ("PrimFunc_StridedSlice(%para1_x)", "strided_slice_flag: I64(2)", "micro-batch"),
        ("PrimFunc_Split(%para1_x)", "slice_index: I64(2)", "user code"),
        ("_VirtualDiv(%para1_x)", "", "loss division"),
        ("PrimFunc_RealDiv(%para1_x)", "", "user code"),
        ("_GetTensorSlice(%para1_x)", "", "constant"),
        ("PrimFunc_Exp(%para1_x)", "", "user code"),
    ],
)
def test_what_marks_say(call: str, attributes: str, kind: str) -> None:
    assert causes((call, attributes))[0].kind == kind


# -- what the user wrote ---------------------------------------------------------------------------

OWN_LINE = "\n      # In file net.py:7, 8~20/        x = self.sum(x)/"


@pytest.mark.parametrize(
    ("behind", "kind"),
    [
        (OWN_LINE, "user code"),  # of a dump without scopes
        (f"\n      # Scope: (Default/net-Net){OWN_LINE}", "user code"),
        (f"\n      # Scope: (Default/optimizer-Momentum){OWN_LINE}", "optimizer"),
        ("", "unknown"),
        ("\n      # Scope: (Default/net-Net)", "unknown"),
        ("\n      # Scope: (Default/optimizer-Momentum)", "optimizer"),
    ],
)
def test_a_sum_without_a_name_is_the_users_or_the_optimizers_or_unknown(
    behind: str, kind: str
) -> None:
    (sum_, _) = causes(("AllReduce(%para1_x)", GROUP, behind), ("PrimFunc_Tanh(%0)", ""))
    assert sum_.kind == kind
