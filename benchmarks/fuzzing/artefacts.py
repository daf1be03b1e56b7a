"""Cases over what lies beside dumps: a run folder with one artefact, which is then damaged."""

from __future__ import annotations

import json
import lzma
from collections.abc import Callable
from functools import lru_cache
from pathlib import Path
from random import Random

from benchmarks.fuzzing import material

Asked = tuple[str, list[str], str]
"""A command's name, its words, and the file that will be damaged."""

_RUN = "artefacts/run"
_ASCEND = "artefacts/ascend"
_PROFILE = "run/profiler/ASCEND_PROFILER_OUTPUT"
_BUILT = "graph_build_0_0123.ir"
_FORMS = ("table", "json", "html")


@lru_cache(maxsize=2)
def _graph() -> bytes:
    """What the backend built of the run that left the samples."""
    return lzma.decompress(material.sample(f"{_RUN}/graphs/{_BUILT}.xz"))


def beside(random: Random, files: dict[str, bytes], dump: str) -> Asked:
    """One artefact, and a command that reads it.

    Args:
        random: chooses.
        files: of the case; what is asked of stands there alone.
        dump: of other cases, taken away here.
    """
    files.clear()
    command, words, target = random.choice(_CASES)(random, files)
    if command not in ("comm hang", "ckpt") or random.random() < 0.5:
        words = [*words, "--format", random.choice(_FORMS)]
    return command, words, target


def _profiled(random: Random, files: dict[str, bytes]) -> Asked:
    """A profile beside the graph that ran, priced, or calibrated on."""
    files[f"run/graphs/{_BUILT}"] = _graph()
    source, name = random.choice(_PROFILES)
    target = f"{_PROFILE}/{name}"
    files[target] = material.sample(source)
    if random.random() < 0.3:
        return "calibrate", ["calibrate", "run"], target
    return "cost", ["cost", "run", *random.choice(([], ["--profile", target]))], target


_PROFILES = (
    (f"{_RUN}/profiler/cpu_op_execute_timestamp_0.txt", "cpu_op_execute_timestamp_0.txt"),
    (f"{_RUN}/profiler/trace_view.json", "trace_view.json"),
    (f"{_ASCEND}/kernel_details_torch_step.csv", "kernel_details.csv"),
    (
        f"{_ASCEND}/mindinsight_legacy/aicore_intermediate_1_detail.csv",
        "aicore_intermediate_1_detail.csv",
    ),
)


def _held(random: Random, files: dict[str, bytes]) -> Asked:
    """Records of memory and of orders beside the graph that ran."""
    files[f"run/rank_0/{_BUILT}"] = _graph()
    source, target = random.choice(_HELD)
    files[target] = source if isinstance(source, bytes) else material.sample(source)
    command = random.choice(("memory", "memory", "doctor"))
    return command, [command, "run", "--devices", "1"], target


_BLOCKS = (
    b"start_time_stamp,end_time_stamp,device_addr,stream_id,pool_type,size,actual_peak_memory,"
    b"file_name,line_num,type,producer_task,task_name,node_name,graph_name,user_tasks,"
    b"last_user_task,python_stack,\n"
    b"1,9223372036854775807,0x1,0,Default,1024,2048,a.cc,1,Weight,1,,,,{},,,\n"
    b"2,5,0x2,0,Default,512,2048,a.cc,1,Kernel,2,7_Default/MatMul-op0,Default/MatMul-op0,,{3-4},,,\n"
    b"4,8,0x3,0,Default,256,2048,a.cc,1,WorkSpace,4,,,,{},,,\n"
)
_OPERATORS = (
    b"Name,Size(KB),Allocation Time(us),Release Time(us),Allocation Total Allocated(MB),"
    b"Allocation Total Reserved(MB)\n"
    b"first,1024,10.5,20.0,1,4\nsecond,2048,12.25,N/A,3,6\n"
)
_POOL = (
    b"Component,Timestamp(us),Total Allocated(MB),Total Reserved(MB),Total Active(MB),Device Type\n"
    b"MindSpore,1.5,10,20,10,NPU:0\nAPP,2.5,N/A,40,N/A,NPU:0\n"
)
_HELD: tuple[tuple[str | bytes, str], ...] = (
    (_BLOCKS, "run/rank_0/memory_block.csv"),
    (_OPERATORS, "run/rank_0/operator_memory.csv"),
    (_POOL, "run/rank_0/memory_record.csv"),
    (f"{_RUN}/profiler/cpu_ms_memory_record_0.txt", "run/rank_0/cpu_ms_memory_record_0.txt"),
    (f"{_RUN}/execute_order/execute_order.csv", "run/rank_0/execute_order/execute_order.csv"),
    (
        f"{_RUN}/execution_order/ms_execution_order_graph_0.csv",
        "run/rank_0/execution_order/ms_execution_order_graph_0.csv",
    ),
    (f"{_RUN}/memory_tracker/task.csv", "run/rank_0/task.csv"),
)

_COLLECTIVES = (
    "index,group,comm_rank,primitive,src_rank,dest_rank,root_rank,input_shape,input_type,"
    "output_shape,output_type,input_size,output_size\n"
)


def _recorded(random: Random, files: dict[str, bytes]) -> Asked:
    """Collectives that two ranks recorded."""
    lines = [
        f'{row},{group},0 1,{op},,,,"(4, 8)",Float32,"(4, 8)",Float32,128,128\n'
        for row, (group, op) in enumerate((("a", "AllReduce"), ("b", "AllGather")), 1)
    ]
    for rank in range(2):
        path = f"run/rank_{rank}/execute_order/comm_execute_order.csv"
        files[path] = (_COLLECTIVES + "".join(lines)).encode()
    return "comm hang", ["comm", "hang", "run"], random.choice(list(files))


def _stages(random: Random, files: dict[str, bytes]) -> Asked:
    """Steps of a stage beside its dumps."""
    files["run/rank_0/b_validate_0080.ir"] = material.sample("mlp_semi_auto/20_validate_0080.ir")
    source, name = random.choice((
        ("cluster_step_trace_time.csv", "step_trace_time.csv"),
        ("mindinsight_legacy/ascend_cluster_analyse_pipeline-parallel_2_4_0.csv",
         "ascend_cluster_analyse_pipeline-parallel_2_4_0.csv"),
    ))  # fmt: skip
    target = f"run/rank_0/{name}"
    files[target] = material.sample(f"{_ASCEND}/{source}")
    return "pipeline", ["pipeline", "run", "--devices", "8"], target


def _links(random: Random, files: dict[str, bytes]) -> Asked:
    """Tables of links and collectives."""
    source, target = random.choice(_LINKS)
    files[target] = source if isinstance(source, bytes) else material.sample(source)
    if target == "communication.json" and random.random() < 0.5:
        files["profiler_metadata.json"] = _METADATA
        target = random.choice((target, "profiler_metadata.json"))
    words = ["calibrate", next(iter(files)), *random.choice(([], ["--ranks", "8"]))]
    return "calibrate", words, target


_METADATA = json.dumps(
    {"parallel_group_info": {"hccl_world_group": {"group_name": "dp", "global_ranks": [0, 1]}}}
).encode()
_INFO = {
    "Communication Time Info": {"Elapse Time(ms)": 2.0, "Transit Time(ms)": 1.0},
    "Communication Bandwidth Info": {"SDMA": {"Transit Size(MB)": 8.0, "Transit Time(ms)": 1.0}},
}
_MATRIX = {"0-1": {"Transport Type": "HCCS", "Transit Size(MB)": 8.0, "Transit Time(ms)": 1.0}}
_LINKS: tuple[tuple[str | bytes, str], ...] = (
    (
        json.dumps({
            "step1": {"collective": {f"hcom_allReduce__1_{index}@7": _INFO for index in range(3)}}
        }).encode(),
        "communication.json",
    ),
    (
        json.dumps({"step1": {"collective": {"allreduce-total@7": _MATRIX}}}).encode(),
        "communication_matrix.json",
    ),
    *(
        (f"artefacts/galvatron/{name}.json", f"{name}.json")
        for name in (
            "allreduce_bandwidth_2nodes_8gpus_per_node", "p2p_bandwidth_2nodes_8gpus_per_node",
            "sp_time_1nodes_8gpus_per_node", "overlap_coefficient",
        )
    ),
    (f"{_ASCEND}/cluster_step_trace_time.csv", "step_trace_time.csv"),
)  # fmt: skip


def _saved(random: Random, files: dict[str, bytes]) -> Asked:
    """Strategy files, of parameters in either form and of operators."""
    folder = Path("strategies")
    names = [path.name for path in sorted((material.SAMPLES / folder).glob("d*"))]
    old, new = random.choice(names), random.choice(names)
    files[old] = material.sample(f"{folder}/{old}")
    files[new] = material.sample(f"{folder}/{new}")
    target = random.choice((old, new))
    if random.random() < 0.5:
        return "ckpt", ["ckpt", old, new], target
    files["a_step_parallel_begin_0018.ir"] = material.sample(
        "mlp_semi_auto/step_parallel_begin_0018.ir"
    )
    words = ["check", "a_step_parallel_begin_0018.ir", "--devices", "8", "--strategy", target]
    return "check", words, target


_CASES: tuple[Callable[[Random, dict[str, bytes]], Asked], ...] = (
    _profiled, _held, _recorded, _stages, _links, _saved,
)  # fmt: skip
