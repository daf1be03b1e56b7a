"""Readers of artefacts, on files that MindSpore wrote, and on what damage makes of them."""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import irtool
from irtool.artefacts.checkpoints import saved_parameters
from irtool.artefacts.collective_tests import collective_test, operator_in
from irtool.artefacts.communication import communicator_hash, measured_collectives
from irtool.artefacts.cpu_profile import (
    kind_totals,
    launched_shapes,
    memory_samples,
    node_launches,
    node_totals,
)
from irtool.artefacts.damage import Damage
from irtool.artefacts.errors import ArtefactError
from irtool.artefacts.joining import EXPANDED, NO_NODE, join_names, replayed
from irtool.artefacts.kernels import kernel_rows, kind_statistics, nanoseconds, shapes, step_times
from irtool.artefacts.legacy import (
    legacy_collectives,
    legacy_kernels,
    legacy_kinds,
    legacy_profile,
    legacy_stages,
    legacy_steps,
    legacy_tasks,
)
from irtool.artefacts.names import full_name_of_kernel, full_name_of_task
from irtool.artefacts.orders import collective_rows, graph_order, launch_rows
from irtool.artefacts.tables import rows
from irtool.artefacts.trace_view import trace_events
from irtool.artefacts.tracker import memory_blocks, tasks, tracked_statements

RUN = Path(__file__).parents[2] / "samples/artefacts/run"
ASCEND = RUN.parent / "ascend"
LEGACY = ASCEND / "mindinsight_legacy"

Reader = Callable[[str, Damage], Iterator[Any]]

REAL: list[tuple[Reader, Path, int]] = [
    (node_launches, RUN / "profiler/cpu_op_execute_timestamp_0.txt", 83),
    (node_totals, RUN / "profiler/cpu_op_detail_info_0.csv", 83),
    (kind_totals, RUN / "profiler/cpu_op_type_info_0.csv", 17),
    (launched_shapes, RUN / "profiler/cpu_framework_0.txt", 249),
    (memory_samples, RUN / "profiler/cpu_ms_memory_record_0.txt", 1080),
    (trace_events, RUN / "profiler/trace_view.json", 277),
    (launch_rows, RUN / "execute_order/execute_order.csv", 166),
    (graph_order, RUN / "execution_order/ms_execution_order_graph_0.csv", 83),
    (memory_blocks, RUN / "memory_tracker/memory_block.csv", 0),
    (tasks, RUN / "memory_tracker/task.csv", 35),
    (tracked_statements, ASCEND / "tracker_graph_gelu.ir", 35),
    (kernel_rows, ASCEND / "kernel_details_torch_step.csv", 29),
    (step_times, ASCEND / "cluster_step_trace_time.csv", 9),
    (legacy_kernels, LEGACY / "aicore_intermediate_1_detail.csv", 10),
    (legacy_kinds, LEGACY / "aicore_intermediate_1_type.csv", 5),
    (legacy_steps, LEGACY / "step_trace_raw_0_detail_time.csv", 2),
    (legacy_stages, LEGACY / "ascend_cluster_analyse_pipeline-parallel_2_4_0.csv", 2),
]
IDS = [path.name for _, path, _ in REAL]


@pytest.mark.parametrize(("reader", "path", "count"), REAL, ids=IDS)
def test_files_of_real_runs_are_read_whole(reader: Reader, path: Path, count: int) -> None:
    damage = Damage(str(path))
    assert len(list(reader(str(path), damage))) == count
    assert damage.count == 0


@pytest.mark.parametrize(("reader", "path", "count"), REAL, ids=IDS)
def test_a_file_that_ends_early_keeps_what_was_there(
    reader: Reader, path: Path, count: int, tmp_path: Path
) -> None:
    data = path.read_bytes()
    cut = tmp_path / path.name
    cut.write_bytes(data[: len(data) * 2 // 3])
    damage = Damage(str(cut))
    found = list(reader(str(cut), damage))
    assert count // 2 <= len(found) <= count


@settings(
    max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(
    real=st.sampled_from(REAL),
    place=st.integers(0, 10**9),
    noise=st.binary(min_size=1, max_size=40),
)
def test_damage_is_a_problem_and_never_a_failure(
    real: tuple[Reader, Path, int], place: int, noise: bytes, tmp_path: Path
) -> None:
    reader, path, count = real
    data = bytearray(path.read_bytes()[:20_000])
    place %= len(data)
    data[place : place + len(noise)] = noise
    damaged = tmp_path / "damaged"
    damaged.write_bytes(data)
    damage = Damage(str(damaged))
    try:
        found = list(reader(str(damaged), damage))
    except ArtefactError as error:
        assert error.message  # noqa: PT017 - either is right
    else:
        assert len(found) <= count + 40
    assert all(problem.line >= 1 for problem in damage.problems)


def test_a_row_that_can_not_be_read_has_its_line(tmp_path: Path) -> None:
    text = (ASCEND / "kernel_details_torch_step.csv").read_text(encoding="utf-8")
    lines = text.splitlines(keepends=True)
    lines[3] = lines[3].replace(lines[3].split(",")[9], "soon", 1)
    path = tmp_path / "kernel_details.csv"
    path.write_text("".join(lines), encoding="utf-8")
    damage = Damage(str(path))
    assert len(list(kernel_rows(str(path), damage))) == 28
    assert [problem.line for problem in damage.problems] == [4]


def test_other_tables_of_the_process_keep_their_limit_of_cells(tmp_path: Path) -> None:
    path = tmp_path / "kernel_details.csv"
    path.write_text("Name,Duration(us)\n" + "x" * 200_000 + ",1\n")
    usual = csv.field_size_limit()
    (row,) = rows(str(path), ("Name",), damage=Damage(str(path)))
    assert len(row.text("Name")) == 200_000
    assert csv.field_size_limit() == usual


def test_a_table_without_its_columns_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "kernel_details.csv"
    path.write_text("a,b\n1,2\n", encoding="utf-8")
    with pytest.raises(ArtefactError, match="has no column 'Name'"):
        list(kernel_rows(str(path), Damage(str(path))))


# -- single formats ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "node"),
    [
        ("Kernel::KernelLaunch::Default/a/MatMul-op0/aclnnMatmul_MatMulV2", "Default/a/MatMul-op0"),
        ("Default/a-A/MatMul-op12", "Default/a-A/MatMul-op12"),
        ("Default/a-A/Cast-op1/Cast-op2", "Default/a-A/Cast-op1"),
        ("aclnnMatmul_MatMulCommon_MatMulV2", None),
        ("hcom_allReduce__935_3", None),
        ("MatMul-op3", None),
    ],
)  # fmt: skip
def test_the_node_in_a_kernels_name(name: str, node: str | None) -> None:
    assert full_name_of_kernel(name) == node


def test_the_node_in_a_tasks_name() -> None:
    assert full_name_of_task("12_Default/a-A/MatMul-op0") == "Default/a-A/MatMul-op0"


def test_a_start_keeps_its_nanoseconds() -> None:
    assert nanoseconds("1736413971558972.912\t") == 1736413971558972912
    assert nanoseconds("5") == 5000
    assert nanoseconds("soon") is None


def test_shapes_of_a_kernel() -> None:
    assert shapes('"81920,4096;8192,512"') == ((81920, 4096), (8192, 512))
    assert shapes('"4;;2,3"') == ((4,), (), (2, 3))
    assert shapes("N/A") == ()


def test_launches_of_a_node_are_medians_in_microseconds() -> None:
    path = str(RUN / "profiler/cpu_op_execute_timestamp_0.txt")
    first = next(iter(node_launches(path, Damage(path))))
    assert [each.duration for each in first.launches] == pytest.approx([615.738, 719.895, 588.96])
    assert first.usual == pytest.approx(615.738)


def test_a_trace_without_its_end_is_read(tmp_path: Path) -> None:
    events = [
        {"ph": "X", "name": f"e{number}", "pid": 7, "ts": "1.5", "dur": 2} for number in range(9)
    ]
    text = json.dumps(events)
    path = tmp_path / "trace_view.json"
    for end, count, told in ((len(text), 9, 0), (len(text) - 1, 9, 1), (len(text) - 20, 8, 1)):
        path.write_text(text[:end], encoding="utf-8")
        damage = Damage(str(path))
        found = list(trace_events(str(path), damage))
        assert (len(found), damage.count) == (count, told)
    assert found[0].start == 1500
    assert found[0].lane == "7"


def test_an_object_of_trace_events_is_read(tmp_path: Path) -> None:
    path = tmp_path / "trace.json"
    path.write_text(
        '{"traceEvents": [{"ph": "X", "name": "a", "ts": 1, "dur": 1}]}', encoding="utf-8"
    )
    assert len(list(trace_events(str(path), Damage(str(path))))) == 1


def test_a_trace_is_read_in_bounded_memory(tmp_path: Path) -> None:
    import tracemalloc

    event = json.dumps({"ph": "X", "name": "n" * 200, "pid": 2, "ts": "1.0", "dur": "2.0"})
    path = tmp_path / "trace_view.json"
    with path.open("w", encoding="utf-8") as stream:
        stream.write("[" + event)
        for _ in range(60_000):
            stream.write(", " + event)
        stream.write("]")
    assert path.stat().st_size > 15_000_000
    tracemalloc.start()
    count = sum(1 for _ in trace_events(str(path), Damage(str(path))))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert count == 60_001
    assert peak < 12_000_000


def test_statistics_of_kinds(tmp_path: Path) -> None:
    """Written by hand after the vendor's documentation: it proves no format."""
    path = tmp_path / "op_statistic.csv"
    header = (
        "Device_id,OP Type,Core Type,Count,Total Time(us),Min Time(us),Avg Time(us),Max Time(us)"
    )
    path.write_text(
        f"{header},Ratio(%)\n0,MatMulV2,AI_CORE,12,480.5,1,2,3,95.1\n", encoding="utf-8"
    )
    (found,) = kind_statistics(str(path), Damage(str(path)))
    assert (found.kind, found.count, found.total, found.share) == (
        "MatMulV2",
        12,
        480.5,
        pytest.approx(0.951),
    )


def test_the_order_of_collectives(tmp_path: Path) -> None:
    """After the header that MindSpore's own checker asks for; rows by hand: no format is proven."""
    path = tmp_path / "comm_execute_order.csv"
    path.write_text(
        "index,group,comm_rank,primitive,src_rank,dest_rank,root_rank,input_shape,input_type,"
        "output_shape,output_type,input_size,output_size\n"
        '"7","2-1","0 1","AllReduce","","","","(4, 8)","Float32","(4, 8)","Float32","128","128"\n'
        '"9","2-1","0 1","Send","","1","","(4)","Float32","","","16","0"\n',
        encoding="utf-8",
    )
    one, other = collective_rows(str(path), Damage(str(path)))
    assert (one.op, one.ranks, one.index, one.input_shape) == ("AllReduce", (0, 1), 7, "(4,8)")
    assert (other.destination, other.source) == (1, None)


def test_communication_of_a_step(tmp_path: Path) -> None:
    """Values are of a sample of msprof-analyze, the structure is that of MindSpore's viewer."""
    sample = json.loads((ASCEND / "cluster_communication.json").read_text(encoding="utf-8"))
    (group,) = list(sample.values())[:1]
    (name, info) = next(iter(next(iter(group.values())).items()))
    path = tmp_path / "communication.json"
    document = {"step3": {"p2p": {}, "collective": {name: info["0"], "Total Op Info": info["0"]}}}
    path.write_text(json.dumps(document), encoding="utf-8")
    (found,) = measured_collectives(str(path), Damage(str(path)))
    assert (found.step, found.op, found.index) == ("step3", "hcom_broadcast", 0)
    assert found.group == 6297232067196334501
    assert found.group % 1000 == 501
    assert found.elapsed == pytest.approx(121736.94384375)
    assert {link.link for link in found.links} >= {"HCCS", "PCIE"}


def test_the_hash_of_a_communicator_is_that_of_msprof() -> None:
    assert communicator_hash("a") == 97 << 32 | 97
    assert communicator_hash("ab") == (97 * 29 + 98) << 32 | (97 * 131 + 98)


@pytest.mark.parametrize(
    ("name", "op"),
    [("all_reduce_perf", "AllReduce"), ("alltoall_test", "AlltoAll"), ("run.txt", None),
     ("reduce_scatter_8ranks.log", "ReduceScatter"), ("all_gather", "AllGather")],
)  # fmt: skip
def test_the_operator_of_a_test(name: str, op: str | None) -> None:
    assert operator_in(name) == op


def test_outputs_of_hccl_test_and_nccl_tests(tmp_path: Path) -> None:
    """Printed with the tools' own format strings, figures invented but for one row."""
    path = tmp_path / "all_reduce_8_ranks.txt"
    text = (
        "the minbytes is 8192\n"
        "data_size(Bytes): | aveg_time(us): | alg_bandwidth(GB/s): | check_result:\n"
    )
    path.write_text(
        text + "1073741824        | 6000.00        | 178.95697            | success\n"
        "rank id 3, check result failed\n",
        encoding="utf-8",
    )
    damage = Damage(str(path))
    found = collective_test(str(path), damage)
    assert (found.tool, found.op, found.ranks) == ("hccl_test", "AllReduce", 8)
    assert found.rows[0].seconds == pytest.approx(6e-3)
    assert found.rows[0].bytes == pytest.approx(1073741824, rel=1e-6)
    assert damage.count == 1
    path = tmp_path / "out.txt"
    path.write_text(
        "# Using devices\n#  Rank  0 Group  0\n#  Rank  1 Group  0\n"
        "#       size         count      type   redop    root     time   algbw   busbw #wrong\n"
        "#        (B)    (elements)                               (us)  (GB/s)  (GB/s)\n"
        "     1048576        262144     float     sum      -1    32.50   32.26   56.46       0\n"
        "# Collective test concluded: all_gather_perf\n",
        encoding="utf-8",
    )
    found = collective_test(str(path), Damage(str(path)))
    assert (found.tool, found.op, found.ranks) == ("nccl-tests", "AllGather", 2)
    assert found.rows[0] == found.rows[0].__class__(6, 1048576.0, 3.25e-05, True)


def test_headers_of_checkpoints() -> None:
    for name in ("three.ckpt", "three.safetensors"):
        found = saved_parameters(str(RUN.parent / "checkpoints" / name))
        assert {key: (each.shape, each.bytes) for key, each in found.items()} == {
            "a.w": ((3, 5), 60), "b.h": ((7,), 14), "s": ((), 4),
        }  # fmt: skip


def test_a_checkpoint_that_ends_early_is_refused(tmp_path: Path) -> None:
    data = (RUN.parent / "checkpoints/three.ckpt").read_bytes()
    cut = tmp_path / "cut.ckpt"
    cut.write_bytes(data[:-9])
    with pytest.raises(ArtefactError, match=r"bytes early|ends within"):
        saved_parameters(str(cut))


# -- joining -------------------------------------------------------------------------------------


def test_every_measured_node_is_one_of_the_dump() -> None:
    path = str(RUN / "profiler/cpu_op_execute_timestamp_0.txt")
    names = [each.name for each in node_launches(path, Damage(path))]
    orders = str(RUN / "execute_order/execute_order.csv")
    launched = [each.node for each in launch_rows(orders, Damage(orders))]
    dump = irtool.load(RUN / "graphs/graph_build_0_0123.ir.xz")
    assert join_names(names, dump).share == 1
    assert join_names(launched, dump).share == 1
    assert set(names) == set(launched)


def test_why_a_name_has_no_node() -> None:
    dump = irtool.load(RUN / "graphs/graph_build_0_0123.ir.xz")
    found = join_names(["Default/no/Such-op0", "Expand/_MatMulExt/BatchMatMul-op0"], dump)
    assert found.reasons() == {NO_NODE: 1, EXPANDED: 1}
    assert found.share == 0


def test_old_numbers_are_replayed() -> None:
    """Two names of the tensor dump's order are not those of graph_build, and the others are."""
    dump = irtool.load(RUN / "graphs/graph_before_reset_id_0_0122.ir.xz")
    printed = [node.full_name for node in dump.nodes() if node.full_name]
    new = replayed(printed)
    path = str(RUN / "execution_order/ms_execution_order_graph_0.csv")
    order = [name for _, name in graph_order(path, Damage(path))]
    built = irtool.load(RUN / "graphs/graph_build_0_0123.ir.xz")
    assert join_names(order, built).share == pytest.approx(81 / 83)
    assert join_names([new[name] for name in order], built).share == 1


def test_a_run_folder_lists_its_artefacts() -> None:
    run = irtool.load_run(RUN)
    found = {each.kind for each in run.rank(0).artefacts}
    assert found >= {"cpu launches", "trace", "launch order", "tasks", "memory blocks"}
    trace = run.rank(0).artefact("trace")
    assert trace is not None
    assert re.search(r"trace_view\.json$", trace)


def test_a_profile_is_of_the_rank_that_stands_beside_it(tmp_path: Path) -> None:
    folder = tmp_path / "host_1_2_ascend_ms"
    (folder / "ASCEND_PROFILER_OUTPUT").mkdir(parents=True)
    (folder / "profiler_info_3.json").write_text("{}", encoding="utf-8")
    (folder / "ASCEND_PROFILER_OUTPUT/kernel_details.csv").write_text("Name\n", encoding="utf-8")
    run = irtool.load_run(tmp_path)
    assert [each.kind for each in run.rank(3).artefacts] == ["kernels"]


# -- profiles of MindSpore up to 2.2 ---------------------------------------------------------------


def test_times_of_an_older_profile_are_of_one_step() -> None:
    path = LEGACY / "aicore_intermediate_1_detail.csv"
    found = legacy_profile(str(path), Damage(str(path)))
    assert found.seconds["Default/network-WithLossCell/_backbone-LeNet5/fc3-Dense/MatMul-op9"] == (
        pytest.approx(0.370864e-3)
    )
    steps = list(legacy_steps(str(path.with_name("step_trace_raw_0_detail_time.csv")), Damage("")))
    assert [(each.step, each.total) for each in steps] == [
        ("1", pytest.approx(205261.44)), ("2", pytest.approx(205248.04)),
    ]  # fmt: skip
    assert steps[0].collectives[0] == ("stream_10_parallel_0", pytest.approx(259.99))


def test_tasks_and_collectives_of_an_older_profile(tmp_path: Path) -> None:
    """Made in the structure that MindInsight reads: only excerpts of other tables were there."""
    tasks_of = tmp_path / "framework_raw_0.csv"
    tasks_of.write_text(
        "task_id,stream_id,block_dim,full_kernel_name,op_name,kernel_name,kernel_type,subgraph,"
        "op_info\n3,1,8,Default/MatMul-op9,MatMul-op9,k,MatMul,Default,\n,x,,,,,,,\n",
        encoding="utf-8",
    )
    damage = Damage(str(tasks_of))
    (task,) = legacy_tasks(str(tasks_of), damage)
    assert (task.task, task.stream, task.name, damage.count) == (3, 1, "Default/MatMul-op9", 1)
    collectives = tmp_path / "hccl_raw_0.csv"
    cell = '{""stream_41_0_AllReduce-op4582"": [1, 2.5, 0.5, {}], ""b"": []}'
    collectives.write_text(
        "step_num,communication_cost,wait_cost,link_info,communication_operator_cost\n"
        f'1,2.5,0.5,{{}},"{cell}"\n-,2.5,0.5,{{}},"{cell}"\n2,0,0,{{}},"{{"\n',
        encoding="utf-8",
    )
    damage = Damage(str(collectives))
    (found,) = legacy_collectives(str(collectives), damage)
    assert (found.name, found.cost, found.wait) == ("stream_41_0_AllReduce-op4582", 2500.0, 500.0)
    assert damage.count == 2
