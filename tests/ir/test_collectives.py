"""What a dump communicates, among which ranks, how much, and why."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import get_args

import pytest

import irtool
from irtool.ir.collectives import Origin, collective, collectives, is_collective
from irtool.ir.dump import Dump
from irtool.ir.group_names import group_name
from irtool.ir.groups import devices
from irtool.ir.operators import COMMUNICATION


@pytest.fixture
def validate(samples: Path) -> Dump:
    return irtool.load(samples / "mlp_semi_auto" / "20_validate_0080.ir")


def test_every_collective_is_told_by_its_origin(validate: Dump) -> None:
    found = Counter((item.op, item.origin, item.is_gradient) for item in collectives(validate))
    assert found == {
        ("AllReduce", "forward reduction", False): 2,
        ("AllGather", "redistribution", False): 1,
        ("ReduceScatter", "redistribution", True): 1,
        ("AllReduce", "forward reduction", True): 1,
        ("AllReduce", "mirror", True): 6,
    }


def test_bytes_are_of_the_larger_side(validate: Dump) -> None:
    by_op = {item.op: item for item in collectives(validate) if item.origin == "redistribution"}
    assert by_op["AllGather"].bytes == by_op["ReduceScatter"].bytes == 4 * 32 * 128 * 4
    assert by_op["AllGather"].shape == (4, 32, 128)


def test_a_mirror_knows_its_parameter_and_its_ranks(validate: Dump) -> None:
    mirrors = {item.parameter: item for item in collectives(validate) if item.origin == "mirror"}
    assert set(mirrors) == {f"{layer}.{part}" for layer in ("up", "mid", "down")
                            for part in ("weight", "bias")}  # fmt: skip
    up = mirrors["up.weight"]
    assert (up.ranks, up.ranks_from, up.reduction, up.fusion) == (
        (0, 4), "group_rank_ids", "sum", 1,
    )  # fmt: skip


def test_before_validate_mirrors_are_virtual(samples: Path) -> None:
    dump = irtool.load(samples / "mlp_semi_auto" / "step_parallel_end_0019.ir")
    mirrors = [item for item in collectives(dump) if item.origin == "mirror"]
    assert len(mirrors) == 6
    assert all(item.is_virtual and item.op == "AllReduce" for item in mirrors)


def test_the_world_is_unknown_until_it_is_listed(samples: Path) -> None:
    dump = irtool.load(samples / "mlp_semi_auto" / "step_parallel_end_0019.ir")
    assert devices(dump).world == 5
    assert not devices(dump).is_exact
    worlds = [item for item in collectives(dump) if item.group == "hccl_world_group"]
    assert {item.ranks for item in worlds} == {None}
    worlds = [item for item in collectives(dump, 8) if item.group == "hccl_world_group"]
    assert {(item.ranks, item.ranks_from) for item in worlds} == {(tuple(range(8)), "world")}


def test_devices(validate: Dump) -> None:
    found = devices(validate)
    assert (found.ranks, found.world, found.is_exact) == (tuple(range(8)), 8, True)


def test_sharded_weights_are_gathered_and_their_gradients_scattered(samples: Path) -> None:
    dump = irtool.load(samples / "optimizer_parallel" / "19_validate_0078.ir")
    found = [
        (item.op, item.parameter, item.ranks)
        for item in collectives(dump)
        if item.origin == "optimizer parallel"
    ]
    ranks = (0, 2, 4, 6)
    names = ("layers.0.up", "layers.0.down")
    assert found[:2] == [("AllGather", name, ranks) for name in names]
    assert sorted(found[2:]) == sorted(("ReduceScatter", name, ranks) for name in names)


def test_send_and_receive_name_the_other_end(samples: Path) -> None:
    ends = {
        rank: [
            (item.op, item.peer, item.tag, item.is_gradient)
            for item in collectives(
                irtool.load(samples / "pipeline_run" / f"rank_{rank}" / "20_validate_0080.ir")
            )
            if item.origin == "pipeline"
        ]
        for rank in (0, 4)
    }
    assert sorted(ends[0]) == [
        ("Receive", 4, 0, True), ("Receive", 4, 1, True),
        ("Send", 4, 0, False), ("Send", 4, 1, False),
    ]  # fmt: skip
    assert {(op, peer) for op, peer, *_ in ends[4]} == {("Send", 0), ("Receive", 0)}


def one(group: str) -> Dump:
    attributes = f'group: "{group}", fusion: I64(0), op: "sum"'
    return irtool.loads(
        f"  %0(a) = AllReduce(%para1_x) primitive_attrs: {{{attributes}}}\n"
        "      : (<Tensor[Float16], (-1, 4)>) -> (<Tensor[Float16], (-1, 4)>)\n"
    )


def test_a_hashed_name_alone_tells_the_ranks() -> None:
    (found,) = collectives(one(group_name((2, 18))))
    assert (found.ranks, found.ranks_from) == ((2, 18), "name")
    assert (found.dtype, found.shape, found.bytes) == ("Float16", (-1, 4), None)


def test_a_group_may_be_called_by_its_ranks() -> None:
    (found,) = collectives(one("0-8-16"))
    assert found.ranks == (0, 8, 16)


def test_what_cannot_be_known_is_none() -> None:
    (found,) = collectives(one("my_group"))
    assert (found.ranks, found.ranks_from) == (None, None)


STATEMENTS: dict[Origin, str] = {
    "operator": "NeighborExchangeV2(%para1_x)"
    " {instance name: 6024678979864205669NeighborExchangeV21}"
    ' primitive_attrs: {group: "hccl_world_group", rank_list: (0, 1)}',
    "ring attention": "Receive(%para1_x) {instance name: Receive} primitive_attrs: {"
    'group: "hccl_world_group", src_rank: I64(7), sr_tag: I64(0), flash_tag: "True"}',
    "adasum": 'Send(%para1_x) primitive_attrs: {dest_rank: I64(1), group: "2-16557109384257890687",'
    ' group_rank_ids: (0, 8), origin_fusion: I64(3), target_param: "adasum_delta_weight.w2",'
    " sr_tag: I64(201051690)}",
    "result broadcast": "AllReduce(%para1_x) {instance name: PARALLEL_RESULT_BROADCAST}"
    ' primitive_attrs: {group: "2-4190060298023907007", op: "sum", rank_list: (1, 3)}',
    "user code": 'AllReduce(%para1_x) {instance name: allreduce} primitive_attrs: {op: "sum"}',
    "unknown": 'AllReduce(%para1_x) primitive_attrs: {op: "sum"}',
    # Made up after MindSpore's source; no dump shows it.
    "global norm": "AllReduce(%para1_x) {instance name: PARALLEL_GLOBALNORM_IN_STAGES}"
    ' primitive_attrs: {op: "sum"}',
}
"""Collectives of dumps, shortened: origins that the samples do not show."""


@pytest.mark.parametrize(("origin", "statement"), STATEMENTS.items())
def test_rarer_origins(origin: str, statement: str) -> None:
    (found,) = collectives(irtool.loads(f"  %0(a) = {statement}\n"))
    assert found.origin == origin


def test_other_nodes_are_no_collectives(validate: Dump) -> None:
    assert all(collective(node) is None for node in validate.nodes(op="MatMul"))
    assert COMMUNICATION["_MirrorOperator"].virtual


NOT_IN_VERDICTS = {"global norm", "user code"}
"""The first is in no dump that we have, the second in another part of the corpus."""


@pytest.mark.slow
def test_corpus_ranks_fit_their_context(corpus: Path, load_once: Callable[[Path], Dump]) -> None:
    origins: set[str] = set()
    for path in sorted((corpus / "verdicts").glob("*/*validate*.ir")):
        context = json.loads((path.parent / "case.json").read_text())["context"]
        device_num = int(context.get("device_num") or 0)
        dump = load_once(path)
        origins.update(item.origin for item in collectives(dump))
        if not device_num or not any(True for _ in dump.nodes(where=is_collective)):
            continue
        assert devices(dump).world <= device_num, path
        own = int(context.get("global_rank") or 0)
        for item in collectives(dump, device_num):
            assert item.peer != own, path
            if item.group:
                assert item.ranks is not None, (path, item.group)
            if item.origin in ("mirror", "optimizer parallel"):
                assert item.parameter, path
    assert origins == set(get_args(Origin)) - NOT_IN_VERDICTS


def halo(op: str, slice_shape: str, wider: str, send: str, receive: str) -> Dump:
    """A dump with one exchange of the edges of an image, as MindSpore's validate dumps have it."""
    shapes = (slice_shape, wider) if op == "NeighborExchangeV2" else (wider, slice_shape)
    return irtool.loads(
        "subgraph instance: f : 0x1\nsubgraph @f() {\n"
        f'  %0(a) = {op}(%para1_x) primitive_attrs: {{group: "hccl_world_group", '
        "rank_list: (0, 1, 2, 3), recv_rank_ids: [-1, -1, 1, 3, 2, -1, -1, -1], "
        f'format: "NCHW", send_lens: {send}, recv_lens: {receive}}}\n'
        f"      : (<Tensor[Float32], {shapes[0]}>) -> (<Tensor[Float32], {shapes[1]}>)\n"
        "  Return(%0)\n}\n"
    )


@pytest.mark.parametrize("op", ["NeighborExchangeV2", "NeighborExchangeV2Grad"])
@pytest.mark.parametrize(
    ("slice_shape", "wider", "send", "receive", "elements"),
    [
        ("(16, 8, 2, 8)", "(16, 8, 3, 8)", "[0, 1, 0, 0]", "[0, 1, 0, 0]", 16 * 8 * 8),
        ("(16, 8, 8, 2)", "(16, 8, 8, 4)", "[0, 0, 1, 1]", "[0, 0, 1, 1]", 16 * 8 * 8 * 2),
        # corners come with rows and columns
        ("(32, 8, 4, 2)", "(32, 8, 5, 3)", "[0, 1, 0, 1]", "[0, 1, 0, 1]", 32 * 8 * (2 + 4 + 1)),
        # a slice at the edge that only gives away columns
        ("(16, 4, 8, 4)", "(16, 4, 8, 4)", "[0, 0, 1, 0]", "[0, 0, 0, 0]", 16 * 4 * 8),
        ("(16, 4, 8, 4)", "(16, 4, 8, 5)", "[0, 0, 0, 0]", "[0, 0, 1, 0]", 16 * 4 * 8),
    ],
)
def test_neighbours_exchange_edges_not_slices(
    op: str, slice_shape: str, wider: str, send: str, receive: str, elements: int
) -> None:
    (item,) = collectives(halo(op, slice_shape, wider, send, receive))
    assert item.bytes == 4 * elements
    assert str(item.shape) == slice_shape


@pytest.mark.parametrize("send", ["[0, 1, 0]", "[0, 1, 0, x]", "3"])
def test_of_an_exchange_that_does_not_say_how_much_the_bytes_are_unknown(send: str) -> None:
    (item,) = collectives(
        halo("NeighborExchangeV2", "(16, 8, 2, 8)", "(16, 8, 3, 8)", send, "[0, 1, 0, 0]")
    )
    assert item.bytes is None
