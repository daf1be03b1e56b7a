"""From which number on a rule speaks: one case at the number, and one just beside it."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.linting.cases import compilation, lint, messages, rule
from tests.linting.rules import test_communication as communication
from tests.linting.rules import test_memory as memory
from tests.linting.rules import test_numerics as numerics
from tests.linting.rules import test_strategies as strategies


@pytest.mark.parametrize(("length", "told"), [(8191, False), (8192, True)])
def test_a_sum_of_8192_numbers_is_long(length: int, told: bool) -> None:
    text = numerics.statement(
        "ReduceSum(%para1_x, I64(1))", f"Float16], (32, {length})", "Float16], (32)"
    )
    assert bool(numerics.found("NUM001", text)) == told


@pytest.mark.parametrize(("length", "told"), [(2047, False), (2048, True)])
def test_an_axis_of_2048_numbers_is_long(length: int, told: bool) -> None:
    shape = f"Float16], (8, {length})"
    assert (
        bool(numerics.found("NUM004", numerics.statement("Softmax(%para1_x)", shape, shape)))
        == told
    )


@pytest.mark.parametrize(("ranks", "told"), [(15, False), (16, True)])
def test_sixteen_ranks_are_many_for_gradients_in_half_precision(ranks: int, told: bool) -> None:
    text = numerics.gradient("Float16", f"rank_list: {tuple(range(ranks))}")
    assert bool(numerics.found("NUM002", text)) == told


@pytest.mark.parametrize(
    ("count", "shape", "told"),
    [
        (16, "512, 64", True),
        (15, "512, 64", False),
        (16, "8192, 8192", False),
    ],
)
def test_sixteen_gradients_want_fusion_unless_they_are_large(
    count: int, shape: str, told: bool
) -> None:
    text = communication.many(count, 0, "grad_mirror_MirrorOperator", shape)
    assert bool(lint(rule("COM004"), compilation({"validate": text})).findings) == told


@pytest.mark.parametrize(
    ("count", "elements", "told"),
    [(31, 4, False), (32, 4, True), (32, 16, True), (32, 17, False)],
)
def test_thirty_two_collectives_of_sixty_four_bytes_are_many_tiny_ones(
    count: int, elements: int, told: bool
) -> None:
    text = communication.many(count, 0, "norm", str(elements))
    assert bool(lint(rule("COM005"), compilation({"validate": text})).findings) == told


@pytest.mark.parametrize(
    ("largest", "told"), [(1024 * 100, True), (1024 * 99, False), (1 << 20, True)]
)
def test_tiny_is_one_in_a_hundred_of_the_largest_collective(largest: int, told: bool) -> None:
    text = communication.many(32, 0, "norm", "1024")
    one = (
        "  %99(z) = PrimFunc_AllReduce(%para1_x) {instance name: forward_op_1} primitive_attrs: "
        '{group: "hccl_world_group", fusion: I64(0), op: "sum"}\n'
        f"      : (<Tensor[Float32], ({largest})>) -> (<Tensor[Float32], ({largest})>)\n"
    )
    lines = text.split("\n")
    place = next(n for n, line in enumerate(lines) if line.lstrip().startswith("%0("))
    text = "\n".join([*lines[:place], *one.rstrip("\n").split("\n"), *lines[place:]])
    assert bool(lint(rule("COM005"), compilation({"validate": text})).findings) == told


@pytest.mark.parametrize("more", [0, 1])
def test_what_is_gathered_counts_whole(more: int) -> None:
    facts = compilation({"validate": communication.gathered("4, 32")})
    found = lint(rule("COM003", least_bytes=16 * 16 * 4 + more), facts).findings
    assert bool(found) == (more == 0)


@pytest.mark.parametrize("more", [0, 1])
def test_what_is_kept_counts_its_own_bytes(more: int) -> None:
    facts = compilation({"validate": memory.KEPT})
    found = lint(rule("MEM003", least_bytes=8 * 16 * 4 + more), facts).findings
    assert bool(found) == (more == 0)


@pytest.mark.parametrize("more", [0, 1])
def test_what_is_held_whole_counts_its_own_bytes(samples: Path, more: int) -> None:
    linted = lint(rule("MEM001", least_bytes=512 * 4 + more), memory.network(samples))
    assert any("mid.bias" in text for text in messages(linted)) == (more == 0)


@pytest.mark.parametrize("more", [0, 1])
def test_a_redistribution_counts_what_a_device_receives(more: int) -> None:
    facts = strategies.network(
        strategies.matmul(0, "%para1_x", "((8, 1), (1, 1))"),
        strategies.relu(1, "%0", "((1, 1))"),
    )
    found = lint(rule("STR005", least_bytes=(56 << 20) + more), facts).findings
    assert bool(found) == (more == 0)
