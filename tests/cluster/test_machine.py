"""The machine: what links join which ranks, and what collectives cost there."""

from __future__ import annotations

import sys

import pytest

from irtool.cluster.machine import (
    BUILT_IN,
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


@pytest.mark.parametrize(
    ("change", "message"),
    [
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
