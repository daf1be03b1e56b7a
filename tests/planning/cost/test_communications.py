"""Bytes and seconds of collectives, against rings and exchanges walked through step by step."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from irtool.cluster.machine import Level, Machine, built_in
from irtool.operators.call import OperatorCall, tensor
from irtool.operators.judgement import Collective, Judgement
from irtool.planning.cost.costs import (
    Fusion,
    communication,
    gradient_communications,
    operator_communications,
    received_bytes,
)

ASCEND = built_in("ascend_910b")
RING = Machine("ring", "Ascend", (Level("only", None, 100.0, latency=0.5, start=3.0),), 1 << 30)
MESH = Machine(
    "mesh",
    "Ascend",
    (Level("only", None, 100.0, latency=0.5, start=3.0, topology="mesh"),),
    1 << 30,
)


def pieces(size: int, count: int) -> list[int]:
    """A tensor's bytes in one piece a rank."""
    return [size // count] * count


def ring_gather(size: int, count: int) -> tuple[int, int]:
    """Steps, and bytes that rank 0 receives, until it has every rank's piece."""
    parts = pieces(size, count)
    held = [{rank} for rank in range(count)]
    steps = received = 0
    while any(len(one) < count for one in held):
        passed = [(rank - steps) % count for rank in range(count)]
        for rank in range(count):
            part = passed[(rank - 1) % count]
            if rank == 0:
                received += parts[part]
            held[rank].add(part)
        steps += 1
    return steps, received


def ring_sum(size: int, count: int) -> tuple[int, int]:
    """The same until every rank has the sum of one piece: partial sums go round."""
    parts = pieces(size, count)
    terms = [{part: {rank} for part in range(count)} for rank in range(count)]
    steps = received = 0
    while not all(any(len(some) == count for some in one.values()) for one in terms):
        sent = [(rank - steps) % count for rank in range(count)]
        before = [(rank - 1) % count for rank in range(count)]
        arriving = [(sent[rank], set(terms[rank][sent[rank]])) for rank in before]
        for rank, (part, some) in enumerate(arriving):
            terms[rank][part] |= some
            if rank == 0:
                received += parts[part]
        steps += 1
    return steps, received


def exchanged(size: int, count: int) -> tuple[int, int]:
    """Each rank hands every other one its piece."""
    return count - 1, sum(pieces(size, count)[1:])


WALKS = {
    "AllGather": [ring_gather],
    "ReduceScatter": [ring_sum],
    "AllReduce": [ring_sum, ring_gather],
    "AlltoAll": [exchanged],
}


@pytest.mark.parametrize("op", WALKS)
@given(st.sampled_from([2, 3, 4, 8]), st.integers(1, 40))
def test_a_collective_receives_and_takes_what_its_ring_does(op: str, count: int, unit: int) -> None:
    size = 12 * 8 * unit
    walked = [walk(size, count) for walk in WALKS[op]]
    ranks = tuple(range(count))
    assert received_bytes(op, size, count) == sum(received for _, received in walked)
    found = communication(op, "forward", ranks, size, RING)
    assert found.received == sum(received for _, received in walked)
    seconds = 3.0 + sum(steps * 0.5 + received / 100.0 for steps, received in walked)
    assert found.seconds == pytest.approx(seconds)
    # In a full mesh all links of a rank carry at once, and each walk is one step.
    in_mesh = 3.0 + sum(0.5 + received / (count - 1) / 100.0 for _, received in walked)
    assert communication(op, "forward", ranks, size, MESH).seconds == pytest.approx(in_mesh)
    # Of what may share a start with others, the seconds are between those without and with one.
    shared = communication(op, "forward", ranks, size, RING, Fusion(sums=4, gathers=4)).seconds
    assert sum(received / 100.0 for _, received in walked) <= shared * (1 + 1e-9)
    assert shared <= seconds * (1 + 1e-9)


@pytest.mark.parametrize("op", ["Send", "Receive", "NeighborExchangeV2"])
def test_a_transfer_receives_all_of_it(op: str) -> None:
    assert received_bytes(op, 96, 2) == 96


def judged(op: str, ranks: tuple[int, ...], parts: int = 1) -> Judgement:
    step = Collective(op, ranks, "sum" if "Reduce" in op else "", shape=(4, 8), output=0)
    return Judgement("legal", ((1, 1),), parts=parts, collectives=(step,))


CALL = OperatorCall("MatMul", (tensor(4, 8), tensor(8, 8)), (tensor(4, 8, dtype="Float16"),), {})


@pytest.mark.parametrize(
    ("op", "whole", "back"),
    [
        ("AllGather", 4 * 2 * 4 * 8, "ReduceScatter"),
        ("ReduceScatter", 2 * 4 * 8, "AllGather"),
        ("AllReduce", 2 * 4 * 8, "AllReduce"),
        ("AlltoAll", 2 * 4 * 8, "AlltoAll"),
        ("NeighborExchangeV2", 2 * 4 * 8, "NeighborExchangeV2Grad"),
    ],
)
def test_an_operators_collective_counts_the_whole_tensor_and_has_a_gradient(
    op: str, whole: int, back: str
) -> None:
    """What is gathered is as many slices as there are ranks."""
    ranks = (0, 1, 2, 3)
    forward, backward = operator_communications(CALL, judged(op, ranks), ASCEND, gradient=True)
    assert (forward.op, forward.phase, forward.size) == (op, "forward", whole)
    assert (backward.op, backward.phase, backward.size) == (back, "backward", whole)
    assert forward.seconds == ASCEND.seconds(op, whole, ranks)
    (only,) = operator_communications(CALL, judged(op, ranks), ASCEND, gradient=False)
    assert only == forward
    twice = operator_communications(CALL, judged(op, ranks, parts=2), ASCEND, gradient=False)
    assert twice == [forward, forward]
    assert operator_communications(CALL, judged(op, (0,)), ASCEND, gradient=True) == []


@pytest.mark.parametrize("mirror", [None, (0,), (0, 1, 2, 3)])
@pytest.mark.parametrize("gather", [None, (0,), (0, 4)])
def test_a_shared_optimizer_gathers_weights_and_sums_its_share_of_gradients(
    mirror: tuple[int, ...] | None, gather: tuple[int, ...] | None
) -> None:
    mirrors, shared = gradient_communications(1024, mirror, gather, ASCEND)
    is_shared = gather is not None and len(gather) > 1
    assert [(item.op, item.phase, item.size) for item in shared] == (
        [("AllGather", "forward", 1024), ("ReduceScatter", "backward", 1024)] if is_shared else []
    )
    is_summed = mirror is not None and len(mirror) > 1
    size = 512 if is_shared else 1024
    assert [(item.op, item.size) for item in mirrors] == (
        [("AllReduce", size)] if is_summed else []
    )
