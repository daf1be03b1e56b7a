"""The machine: what links join which ranks, and what collectives cost there."""

from __future__ import annotations

import sys

import pytest

from irtool.cluster.machine import (
    BUILT_IN,
    Level,
    Machine,
    MachineError,
    built_in,
    default_machine,
    machine_from,
)
from irtool.sharding.network.context import ParallelContext

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

RING = """
name = "two nodes of four"
memory_bytes = 1000
[flops]
Float16 = 4e12
Float32 = 1e12
[[levels]]
name = "inside"
devices = 4
bandwidth = 100.0
[[levels]]
name = "across"
bandwidth = 10.0
latency = 1.0
"""
IN_PHASES = "hierarchical = true\n" + RING


def machine(text: str = RING):
    return machine_from(tomllib.loads(text))


@pytest.mark.parametrize("name", BUILT_IN)
def test_a_built_in_machine_says_where_its_figures_are_from(name: str) -> None:
    found = built_in(name)
    assert found.sources
    assert found.node_devices == 8
    assert found.memory_bytes > 2**34


def test_the_default_goes_by_target() -> None:
    assert default_machine("Ascend").target == "Ascend"
    assert default_machine("GPU").levels[0].name == "NVLink"


def test_ranks_of_one_node_use_its_links() -> None:
    found = machine()
    assert found.level_of((0, 3)).name == "inside"
    assert found.level_of((3, 4)).name == "across"


def test_a_ring_allreduce_moves_twice_all_but_one_share() -> None:
    assert machine().seconds("AllReduce", 400, (0, 1, 2, 3)) == pytest.approx(2 * 3 / 4 * 400 / 100)


def test_allgather_moves_half_of_an_allreduce() -> None:
    found = machine()
    ranks = (0, 1, 2, 3)
    assert 2 * found.seconds("AllGather", 400, ranks) == pytest.approx(
        found.seconds("AllReduce", 400, ranks)
    )


def test_across_nodes_only_what_is_left_goes_outside() -> None:
    inside = 2 * 3 / 4 * 400 / 100
    outside = 2 * (1.0 + 1 / 2 * (400 / 4) / 10)
    found = machine(IN_PHASES)
    assert found.seconds("AllReduce", 400, range(8)) == pytest.approx(inside + outside)


def test_one_rank_a_node_goes_outside_with_everything() -> None:
    assert machine().seconds("AllReduce", 400, (0, 4)) == pytest.approx(
        2 * (1.0 + 1 / 2 * 400 / 10)
    )


def test_in_a_mesh_all_links_carry_at_once() -> None:
    text = RING.replace("devices = 4\n", 'devices = 4\ntopology = "mesh"\n')
    ring, mesh = machine(), machine(text)
    ranks = (0, 1, 2, 3)
    assert mesh.seconds("AllReduce", 400, ranks) * 3 == pytest.approx(
        ring.seconds("AllReduce", 400, ranks)
    )


def test_a_rank_alone_communicates_in_no_time() -> None:
    assert machine().seconds("AllReduce", 400, (3,)) == 0.0


def test_nothing_counts_on_phases_unless_the_file_says_so() -> None:
    ranks = tuple(range(8))
    slow = 7 + 7 / 8 * 800 / 10
    assert machine().seconds("AllGather", 800, ranks) == pytest.approx(slow)
    assert machine(IN_PHASES).seconds("AllGather", 800, ranks) < slow


def test_seconds_are_linear_in_bytes() -> None:
    for found in (machine(), machine(IN_PHASES)):
        for op in ("AllReduce", "AllGather", "AlltoAll", "Send"):
            start, per_byte = found.line(op, range(8))
            wanted = found.seconds(op, 12_345, range(8))
            assert start + 12_345 * per_byte == pytest.approx(wanted)


def test_an_unknown_type_computes_at_the_slowest_rate() -> None:
    assert machine().rate("Int4") == 1e12
    assert machine().rate("Float16") == 4e12


HALF = {"name": "links", "bandwidth": 50.0, "latency": 2.0, "start": 3.0}


@pytest.mark.parametrize(
    ("op", "seconds"),
    [
        # four ranks, 400 bytes, 50 bytes a second, 2 s a step, 3 s before the first
        ("AllReduce", 3 + 2 * (3 * 2 + 3 / 4 * 400 / 50)),
        ("AllGather", 3 + 3 * 2 + 3 / 4 * 400 / 50),
        ("ReduceScatter", 3 + 3 * 2 + 3 / 4 * 400 / 50),
        ("AlltoAll", 3 + 3 * 2 + 3 / 4 * 400 / 50),
        ("Send", 3 + 2 + 400 / 50),
        ("Receive", 3 + 2 + 400 / 50),
        ("NeighborExchange", 3 + 2 + 400 / 50),
        ("NeighborExchangeV2", 3 + 2 + 400 / 50),
        ("NeighborExchangeV2Grad", 3 + 2 + 400 / 50),
        ("Barrier", 3 + 3 * 2),
    ],
)
def test_start_steps_and_bytes(op: str, seconds: float) -> None:
    found = machine_from({"levels": [HALF]})
    assert found.seconds(op, 400, (0, 1, 2, 3)) == pytest.approx(seconds)


def test_in_a_mesh_there_is_one_step() -> None:
    found = machine_from({"levels": [{**HALF, "topology": "mesh"}]})
    gathered = 3 + 2 + 3 / 4 * 400 / (3 * 50)
    assert found.seconds("AllGather", 400, (0, 1, 2, 3)) == pytest.approx(gathered)


def test_phases_are_for_what_reduces_or_gathers_among_equally_many_of_each_node() -> None:
    found = machine(IN_PHASES)
    flat = 7 * 1.0 + 7 / 8 * 800 / 10
    assert found.seconds("AlltoAll", 800, range(8)) == pytest.approx(flat)
    inside, outside = 3 / 4 * 800 / 100, 1.0 + 1 / 2 * (800 / 4) / 10
    assert found.seconds("ReduceScatter", 800, range(8)) == pytest.approx(inside + outside)
    # three of one node and one of the next: nothing is left in equal parts
    unequal = 3 * 1.0 + 3 / 4 * 800 / 10
    assert found.seconds("AllGather", 800, (0, 1, 2, 4)) == pytest.approx(unequal)
    # two of each of two nodes
    both = (1 / 2 * 800 / 100) + (1.0 + 1 / 2 * (800 / 2) / 10)
    assert found.seconds("AllGather", 800, (2, 3, 4, 5)) == pytest.approx(both)


def test_what_a_file_leaves_out_has_its_default() -> None:
    found = machine_from({"levels": [{"bandwidth": 5}]})
    (links,) = found.levels
    assert (links.name, links.devices, links.bandwidth) == ("level 0", None, 5.0)
    assert (links.latency, links.start, links.topology) == (0.0, 0.0, "ring")
    assert (found.name, found.target, found.soc) == ("unnamed machine", "Ascend", "")
    assert (found.memory_bytes, found.memory_bandwidth) == (0, 0.0)
    assert not found.hierarchical
    assert found.node_devices is None
    with pytest.raises(LookupError, match="no arithmetic rates"):
        found.rate("Float16")


def test_what_a_file_says_is_kept() -> None:
    table = {
        "name": "mine", "target": "GPU", "soc": "x", "memory_bytes": 7, "memory_bandwidth": 9,
        "hierarchical": True, "sources": ["seen"], "flops": {"Float32": 2},
        "levels": [
            {"name": "in", "devices": 2, "bandwidth": 3, "latency": 4, "start": 5,
             "topology": "mesh"},
            {"devices": 4, "bandwidth": 1},
        ],
    }  # fmt: skip
    found = machine_from(table)
    assert found == Machine(
        "mine", "GPU", (Level("in", 2, 3.0, 4.0, 5.0, "mesh"), Level("level 1", 4, 1.0)), 7,
        {"Float32": 2.0}, ("seen",), 9.0, True, "x",
    )  # fmt: skip
    # beyond the outermost unit there is nothing else: its links are what there is
    assert found.level_of((0, 4)).name == "level 1"


def test_all_that_is_listed_is_built_in_and_nothing_else() -> None:
    with pytest.raises(LookupError, match="ascend_910b, gpu_a100, gpu_h100"):
        built_in("ascend_910")
    assert default_machine("gpu") is built_in("gpu_a100")
    assert default_machine("Ascend") is built_in("ascend_910b")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (("devices = 4", "devices = 0"), "devices: must be a whole number from 1, but is 0"),
        (("devices = 4", "devices = 1.5"), "devices: must be a whole number"),
        (("devices = 4", 'devices = 4\ntopology = "star"'), "is ring or mesh, not 'star'"),
        (('name = "across"', 'name = "across"\ndevices = 4'), "of 4 devices is not made of"),
        (("latency = 1.0", "latency = -1"), r"levels\[1\].latency: must be above 0"),
        (("latency = 1.0", "latency = true"), "latency: must be a number"),
        (("latency = 1.0", "latency = inf"), "latency: must be a number"),
        (("Float16 = 4e12", "Float16 = 0"), "flops.Float16: must be above 0"),
        (("[flops]\n", "[[flops]]\n"), "flops: must be a table"),
        (("memory_bytes", "memory"), "memory: there is no such key"),
        (("bandwidth = 10.0", "bandwith = 10.0"), "bandwith: there is no such key"),
        (("bandwidth = 10.0", "bandwidth = 0"), "bandwidth: must be above 0"),
        (("bandwidth = 10.0\n", ""), "bandwidth: is missing"),
        (("devices = 4\n", ""), "only the outermost level"),
        (('name = "across"', 'name = "across"\ndevices = 6'), "not made of units of 4"),
        (("memory_bytes = 1000", "hierarchical = 1"), "hierarchical: must be true or false"),
    ],
)
def test_a_file_that_makes_no_sense_is_refused_by_its_key(
    change: tuple[str, str], message: str
) -> None:
    with pytest.raises(MachineError, match=message):
        machine(RING.replace(*change))


@pytest.mark.parametrize(
    ("devices", "legal"), [(4, True), (8, True), (6, False), (7, False), (12, False)]
)
def test_device_numbers_are_1_2_4_or_multiples_of_8(devices: int, legal: bool) -> None:
    if legal:
        assert ParallelContext(devices=devices).devices == devices
    else:
        with pytest.raises(ValueError, match="divisible by 8"):
            ParallelContext(devices=devices)
