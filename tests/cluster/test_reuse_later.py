"""What 2.3 and later make of a graph, counted by hand."""

from __future__ import annotations

import pytest

import irtool
from irtool.cluster.ranks import single
from irtool.cluster.reuse.later_versions import Later, Repeated, later

TENSOR = "<Tensor[Float32], (4, 64)>"


def found(*statements: tuple[str, str, int | None], inner: str = "", attribute: str = "") -> Later:
    """What is said of a graph of operators with scopes, and micro-batches; and a called graph."""
    lines = ["# IR entry: @net", "", f"%para1_x: {TENSOR} : [4, 64]", ""]
    if inner:
        lines += [
            f"subgraph attr:\n{attribute}\nsubgraph instance: {inner} : 0x1" if attribute else "",
            f"subgraph @{inner}(%para2_y) {{", "  Return(%para2_y)", f"      : ({TENSOR})", "}", "",
        ]  # fmt: skip
    lines += ["subgraph @net() {"]
    for number, (op, scope, micro) in enumerate(statements):
        source = f"%{number - 1}" if number else "%para1_x"
        more = "" if micro is None else f" cnode_primal_attrs: {{micro: I64({micro})}}"
        lines += [
            f"  %{number}(c{number}) = {op}({source}){more}", f"      : ({TENSOR}) -> ({TENSOR})",
            f"      # Scope: ({scope})",
        ]  # fmt: skip
    last = f"%{len(statements) - 1}"
    if inner:
        lines += [
            f"  %{len(statements)}(r) = call @{inner}({last})",
            f"      : ({TENSOR}) -> ({TENSOR})",
        ]
        last = f"%{len(statements)}"
    lines += [f"  Return({last})", f"      : ({TENSOR})", "}", ""]
    dump = irtool.loads("\n".join(lines), "20_validate_0080.ir")
    assert not dump.problems
    return later(single(dump, 0, 8).ranks[0])


BLOCKS = "Default/network-Net/blocks-CellList"


def layers(*counts: int) -> list[tuple[str, str, int | None]]:
    """So many operators in each layer."""
    return [
        ("PrimFunc_ReLU", f"{BLOCKS}/{layer}-Block/up-Dense", None)
        for layer, count in enumerate(counts)
        for _ in range(count)
    ]


def test_copies_of_a_layer_are_counted_together() -> None:
    got = found(*layers(2, 2, 2), ("PrimFunc_Exp", "Default/network-Net", None))
    assert got.statements == 7
    assert got.layers == (Repeated(f"{BLOCKS}/*-Block", 3, 6),)
    assert (got.unrolled, got.shared) == (6, 4)
    assert got.by_scope == ((BLOCKS, 6), ("Default/network-Net", 1))


def test_one_layer_is_no_copy() -> None:
    got = found(*layers(2))
    assert got.layers == ()
    assert (got.unrolled, got.shared) == (2, 0)


def test_of_unequal_copies_the_largest_is_kept() -> None:
    got = found(*layers(3, 1))
    assert (got.unrolled, got.shared) == (4, 1)


def test_micro_batches_are_copies_too() -> None:
    steps = [("PrimFunc_ReLU", "Default/network-Net", micro) for micro in (0, 0, 1, 1, None)]
    got = found(*steps)
    assert got.by_micro == ((0, 2), (1, 2))
    assert (got.unrolled, got.shared) == (4, 2)


def test_gradients_belong_to_the_cell_of_their_forward_pass() -> None:
    got = found(
        ("PrimFunc_ReLU", f"{BLOCKS}/0-Block", None),
        ("PrimFunc_ReLU", f"Gradients/{BLOCKS}/1-Block/Grad_ReLU", None),
    )
    assert got.layers == (Repeated(f"{BLOCKS}/*-Block", 2, 2),)
    assert got.by_scope == ((BLOCKS, 2),)


def test_outer_cells_are_told_to_the_fourth() -> None:
    got = found(("PrimFunc_ReLU", "Default/a-A/b-B/c-C/d-D", None), ("PrimFunc_ReLU", "", None))
    assert dict(got.by_scope) == {"Default/a-A/b-B/c-C": 1, "(no scope)": 1}


@pytest.mark.parametrize(("op", "copies"), [("MoveTo", 2), ("MoveAssign", 2), ("PrimFunc_ReLU", 0)])
def test_copies_between_host_and_device_have_streams(op: str, copies: int) -> None:
    got = found((op, "Default", None))
    assert got.streams == {"group": 1 + copies, "true": 1 + copies, "false": 1}


@pytest.mark.parametrize(
    ("inner", "attribute", "reuses"),
    [
        ("", "", False),
        ("block", "", False),
        ("block", "cell_reuse: 1", True),
        ("CR_block", "", True),
    ],
)
def test_cells_that_are_shared_already_are_seen(inner: str, attribute: str, reuses: bool) -> None:
    got = found(("PrimFunc_ReLU", "Default", None), inner=inner, attribute=attribute)
    assert got.reuses_cells is reuses
