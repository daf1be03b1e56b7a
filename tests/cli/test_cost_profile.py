"""``irtool cost`` with a profile: measured beside modelled, of a run on one device."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

import irtool
from irtool.artefacts.damage import Damage
from irtool.artefacts.profile import MeasuredRun, kernel_profile, step_totals
from irtool.cli.main import main

RUN = Path(__file__).parents[2] / "samples/artefacts/run"
PROFILE = RUN / "profiler/cpu_op_execute_timestamp_0.txt"


def asked(capsys: pytest.CaptureFixture[str], *words: object) -> Any:
    main(["cost", *map(str, words), "-f", "json"])
    return json.loads(capsys.readouterr().out)


def test_a_run_on_one_device_is_answered(capsys: pytest.CaptureFixture[str]) -> None:
    answer = asked(capsys, RUN)
    measured = answer["measured"]
    assert measured["joined"] == 1
    assert "graph_build" in measured["dump"]
    assert [step["step"] for step in measured["steps"]] == ["0", "1", "2"]
    first = measured["operators"][0]
    assert (first["op"], first["node"]) == ("GeLUGrad", "%81")
    assert first["seconds"] == pytest.approx(654.4275e-6, rel=1e-6)
    assert "train.py" in first["source"]
    shares = sum(each["seconds"] for each in measured["operators"])
    assert shares == pytest.approx(measured["total"])


def test_without_a_profile_the_model_stands_alone(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    shutil.copytree(RUN / "graphs", tmp_path / "graphs")
    answer = asked(capsys, tmp_path)
    assert answer["measured"] is None
    assert answer["modelled"] > 0
    assert len(answer["operators"]) == 83


def test_a_profile_that_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    shutil.copytree(RUN / "graphs", tmp_path / "graphs")
    for given in (PROFILE, RUN / "profiler"):
        assert asked(capsys, tmp_path, "--profile", given)["measured"]["joined"] == 1


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (RUN / "profiler/cpu_op_type_info_0.csv", "is no profile that names operators"),
        (RUN / "graphs", "holds no profile"),
        (RUN / "nothing.csv", "is no profile"),
    ],
)
def test_what_is_no_profile(given: Path, message: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["cost", str(RUN), "--profile", str(given)]) == 2
    assert message in capsys.readouterr().err


def test_a_trace_tells_what_the_table_beside_it_tells(capsys: pytest.CaptureFixture[str]) -> None:
    """Its lanes of scopes tell the same again, and count nothing."""
    table = asked(capsys, RUN)["measured"]
    trace = asked(capsys, RUN, "--profile", RUN / "profiler/trace_view.json")["measured"]
    assert trace["joined"] == 1
    times = {each["node"]: each["seconds"] for each in table["operators"]}
    for each in trace["operators"]:
        assert each["seconds"] == pytest.approx(times[each["node"]], rel=1e-6)
    for one, other in zip(trace["steps"], table["steps"], strict=True):
        assert one["wall"] == pytest.approx(other["wall"], rel=1e-3)
        assert one["computing"] == pytest.approx(other["computing"], rel=1e-3)
        assert one["idle"] == pytest.approx(other["idle"], rel=0.02)


def test_a_trace_that_was_interrupted(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    data = (RUN / "profiler/trace_view.json").read_bytes()
    cut = tmp_path / "trace_view.json"
    cut.write_bytes(data[: len(data) // 4])
    assert asked(capsys, RUN, "--profile", cut)["measured"]["operators"]
    main(["cost", str(RUN), "--profile", str(cut)])
    assert "ends within an event" in capsys.readouterr().err


def test_what_made_a_step_slow(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Of three steps the first warms up; one operator of the last takes 40 ms longer."""
    lines = PROFILE.read_text(encoding="utf-8").splitlines()
    head, _, triples = lines[5].rpartition(";")
    runs = triples.split()
    start, duration, number = runs[2].split(",")
    runs[2] = f"{start},{float(duration) + 40:.6f},{number}"
    lines[5] = f"{head};{' '.join(runs)} "
    slow = tmp_path / PROFILE.name
    slow.write_text("\n".join(lines) + "\n", encoding="utf-8")
    measured = asked(capsys, RUN, "--profile", slow)["measured"]
    assert measured["slowest"] == "2"
    first = measured["slower"][0]
    assert first["name"] == lines[5].partition(";")[0]
    assert first["seconds"] - first["usual"] == pytest.approx(0.020, rel=0.1)
    main(["cost", str(RUN), "--profile", str(slow)])
    assert "What made step 2, the slowest, longer than usual" in capsys.readouterr().out
    main(["cost", str(RUN), "--profile", str(PROFILE)])  # its first step warms up, and takes 31 ms
    told = capsys.readouterr().out
    assert "What made step 1, the slowest after the first, longer than usual" in told


def test_measured_time_by_cause(capsys: pytest.CaptureFixture[str]) -> None:
    """One device communicates nothing, so that no axis is served."""
    measured = asked(capsys, RUN)["measured"]
    assert set(measured["by_cause"]) == {"compute", "optimizer"}
    assert sum(measured["by_cause"].values()) == pytest.approx(measured["total"])
    assert measured["by_axis"] == {}


def test_a_profile_of_another_network_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    other = tmp_path / PROFILE.name
    other.write_text(
        "Default/other/MatMul-op0;HostCpuOps;1000,0.5,0 2000,0.5,0 \n", encoding="utf-8"
    )
    assert main(["cost", str(RUN), "--profile", str(other)]) == 2
    assert "names no node of" in capsys.readouterr().err


def test_a_damaged_profile_is_read_as_far_as_it_goes(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    data = PROFILE.read_bytes()
    cut = tmp_path / PROFILE.name
    cut.write_bytes(data[: len(data) // 2] + b"\0;;nonsense,,\n")
    main(["cost", str(RUN), "--profile", str(cut), "-f", "json"])
    captured = capsys.readouterr()
    assert 30 < len(json.loads(captured.out)["measured"]["operators"]) < 83
    assert "ART002" in captured.err


@pytest.mark.parametrize("has_profile", [True, False])
def test_a_run_on_one_device_as_a_trace(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], has_profile: bool
) -> None:
    shutil.copytree(RUN / ("" if has_profile else "graphs"), tmp_path / "run")
    assert main(["cost", str(tmp_path / "run"), "-f", "perfetto"]) == 0
    trace = json.loads(capsys.readouterr().out)
    events = [each for each in trace["traceEvents"] if each["ph"] == "X"]
    assert len(events) == 83
    assert {each["cat"] for each in events} == {"forward", "backward", "optimizer"}
    ends = [each["ts"] + each["dur"] for each in events]
    assert [each["ts"] for each in events] == pytest.approx([0, *ends[:-1]])
    total = asked(capsys, tmp_path / "run")["modelled"]
    assert ends[-1] == pytest.approx(total * 1e6)


# -- a step's time -------------------------------------------------------------------------------


def test_what_runs_at_once_counts_once() -> None:
    runs = [
        MeasuredRun(0, 10.0),
        MeasuredRun(5_000, 10.0),
        MeasuredRun(12_000, 10.0, communicates=True),
        MeasuredRun(30_000, 4.0, communicates=True),
    ]
    found = step_totals("1", runs)
    assert (found.wall, found.computing, found.communicating) == (34.0, 15.0, 14.0)
    assert (found.exposed, found.hidden, found.idle) == (11.0, 3.0, 8.0)


def test_kernels_of_a_node_count_for_it(tmp_path: Path) -> None:
    """Columns as in a real table of torch_npu, names as MindSpore's viewer makes them, by hand."""
    path = tmp_path / "kernel_details.csv"
    node = "Kernel::KernelLaunch::Default/a-A/MatMul-op0"
    path.write_text(
        "Step ID,Name,Type,Accelerator Core,Start Time(us),Duration(us)\n"
        f"1,{node}/aclnnCast,Cast,AI_VECTOR_CORE,10.000,2.0\n"
        f"1,{node}/aclnnMatmul_MatMulV2,MatMulV2,AI_CORE,12.000,8.0\n"
        "1,hcom_allReduce__935_0,hcom_allReduce_,HCCL,15.000,10.0\n"
        f"2,{node}/aclnnMatmul_MatMulV2,MatMulV2,AI_CORE,40.000,6.0\n",
        encoding="utf-8",
    )
    found = kernel_profile(str(path), Damage(str(path)))
    assert found.seconds == {"Default/a-A/MatMul-op0": pytest.approx(8e-6)}
    assert found.unnamed == (1, 10.0)
    assert [step.name for step in found.steps] == ["1", "2"]
    assert found.steps[0].exposed == pytest.approx(5.0)


def test_a_page_lays_time_and_memory_over_the_graph_that_ran(tmp_path: Path) -> None:
    page = tmp_path / "cost.html"
    assert main(["cost", str(RUN), "-f", "html", "-o", str(page)]) == 0
    text = page.read_text(encoding="utf-8")
    for title in (
        "A step, measured and predicted",
        "Memory over the measured step",
        "the pool, as recorded",
        "Time and memory in the graph that ran",
    ):
        assert title in text


def of_another_batch(tmp_path: Path) -> Path:
    """The sample's profile beside shapes of twice the batch."""
    folder = tmp_path / "run"
    shutil.copytree(RUN, folder)
    file = folder / "profiler/cpu_framework_0.txt"
    text = file.read_text(encoding="utf-8").replace("input_1:[128, 64]", "input_1:[256, 64]")
    file.chmod(0o644)
    file.write_text(text, encoding="utf-8")
    return folder


def test_shapes_are_joined_too(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    measured = asked(capsys, RUN)["measured"]
    assert (measured["shapes"], measured["other_shapes"]) == (73, [])
    folder = of_another_batch(tmp_path)
    assert "MatMul-op0" in asked(capsys, folder)["measured"]["other_shapes"]
    main(["cost", str(folder)])
    assert "this profile is of other sizes, another batch perhaps" in capsys.readouterr().out


def test_a_profile_of_other_sizes_calibrates_nothing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["calibrate", str(RUN)]) == 0
    capsys.readouterr()
    assert main(["calibrate", str(of_another_batch(tmp_path))]) == 2
    assert "ran with other shapes than" in capsys.readouterr().err


def test_shapes_say_nothing_where_names_are_missing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """What a backend expanded shares names without a scope with other nodes."""
    folder = of_another_batch(tmp_path)
    file = folder / "profiler/cpu_op_execute_timestamp_0.txt"
    text = file.read_text(encoding="utf-8").replace("0-Block/norm", "0-Block/other")
    file.chmod(0o644)
    file.write_text(text, encoding="utf-8")
    measured = asked(capsys, folder)["measured"]
    assert measured["missing"]
    assert measured["shapes"] == 0


def test_without_recorded_shapes_names_alone_are_joined(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = of_another_batch(tmp_path)
    (folder / "profiler/cpu_framework_0.txt").write_text("cut", encoding="utf-8")
    assert asked(capsys, folder)["measured"]["shapes"] == 0
    (folder / "profiler/cpu_framework_0.txt").unlink()
    assert asked(capsys, folder)["measured"]["shapes"] == 0


def test_what_is_not_priced_has_no_share_of_the_model(
    tmp_path: Path, samples: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The model of a kernel graph prices no communication: a share of 0 % would be wrong."""
    head = "Step ID,Name,Type,Accelerator Core,Start Time(us),Duration(us),Wait Time(us),Stream ID"
    lines = [head]
    nodes = irtool.load(samples / "gpt/20_validate_0080.ir").nodes()
    for node in nodes:
        if node.full_name and node.op in ("MatMul", "AllReduce"):
            name = f"Kernel::KernelLaunch::{node.full_name}/kernel"
            lines.append(f"1,{name},{node.op},AI_CORE,{1e6 + 10 * len(lines)},5.0,0,2")
    profile = tmp_path / "kernel_details.csv"
    profile.write_text("\n".join(lines) + "\n", encoding="utf-8")
    main(["cost", str(samples / "gpt"), "--profile", str(profile), "--limit", "0"])
    told = capsys.readouterr().out
    rows = told.partition("Measured by operator\n")[2].partition("\n\n")[0].splitlines()
    by_operator = {line.split()[0]: line.count("%") for line in rows[1:]}
    assert by_operator == {"MatMul": 2, "AllReduce": 1}
