"""MindSpore's own tensor dump, file by file and row by row."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from irtool.compare.tensors.formats.mindspore import read_mindspore
from irtool.compare.tensors.model import NoTensors, TensorRun
from irtool.ir.run import TensorDump


def put(folder: Path, name: str, values: Any) -> None:
    np.save(folder / f"{name}.npy", values)


def read(folder: Path, statistics: str | None = None) -> TensorRun:
    return read_mindspore(TensorDump(str(folder), 5, "Net", 1, 7, statistics, True))


ONES = np.ones((2, 3), np.float32)


def test_files_become_operators_in_the_order_of_time(tmp_path: Path) -> None:
    put(tmp_path, "Mul.Default_Mul-op1.0.0.200.output.0.DefaultFormat.Float32", ONES)
    put(tmp_path, "Add.Default_Add-op0.0.0.100.input.1.DefaultFormat.Float32", ONES[:1])
    put(tmp_path, "Add.Default_Add-op0.0.0.100.input.0.DefaultFormat.Float32", ONES)
    put(tmp_path, "Add.Default_Add-op0.0.0.101.output.0.DefaultFormat.Float32", ONES)
    (tmp_path / "notes.txt").write_text("no tensor")
    run = read(tmp_path)
    add, mul = run.ops
    assert (add.name, add.type, mul.name) == ("Default_Add-op0", "Add", "Default_Mul-op1")
    labels, shapes = run.columns.labels, run.columns.shapes
    assert [labels[at] for at in add.inputs] == ["input.0", "input.1"]
    assert [shapes[at] for at in add.tensors] == [(2, 3), (1, 3), (2, 3)]
    assert (run.kind, run.level, run.rank, run.step, run.graph) == ("mindspore", "tensors", 5, 7, 1)
    assert run.columns.resolution == 0.0
    assert all(map(math.isnan, run.columns.most))


def test_a_loop_launches_an_operator_again(tmp_path: Path) -> None:
    for time in (100, 300, 200):
        put(tmp_path, f"Add.n-op0.0.0.{time}.input.0.DefaultFormat.Float32", ONES)
        put(tmp_path, f"Add.n-op0.0.0.{time + 1}.output.0.DefaultFormat.Float32", ONES)
    run = read(tmp_path)
    assert [(len(op.inputs), len(op.outputs)) for op in run.ops] == [(1, 1)] * 3
    names = [Path(run.columns.files[op.inputs[0]]).name.split(".")[4] for op in run.ops]
    assert names == ["100", "200", "300"]


@pytest.mark.parametrize(
    ("stored", "named", "dtype", "note"),
    [
        ("float32", "Float32", "Float32", ""),
        ("float32", "Float16", "Float16", ""),  # the values are what the graph has
        ("float32", "Int32", "Float32", ""),
        ("int32", "Int32", "Int32", ""),
        ("float16", "Float16", "Float16", ""),
    ],
)
def test_types_by_name_and_by_header(
    tmp_path: Path, stored: str, named: str, dtype: str, note: str
) -> None:
    put(tmp_path, f"Add.n-op0.0.0.1.output.0.DefaultFormat.{named}", ONES.astype(stored))
    run = read(tmp_path)
    assert run.columns.dtypes == [dtype]
    assert run.columns.notes.get(0, "") == note


def test_a_body_of_another_type_than_its_header_says_is_noted(tmp_path: Path) -> None:
    name = "Add.n-op0.0.0.1.output.0.DefaultFormat.Float16"
    put(tmp_path, name, ONES.astype(np.float16))
    file = tmp_path / f"{name}.npy"
    head = file.read_bytes()[: -2 * ONES.size]
    file.write_bytes(head + ONES.tobytes())
    run = read(tmp_path)
    assert run.columns.notes == {0: "payload holds Float32, header says Float16"}
    assert run.conflicts == 1


def test_raw_bytes_have_as_many_elements_as_their_type_makes(tmp_path: Path) -> None:
    (tmp_path / "Add.n-op0.0.0.1.output.0.NC1HWC0.Float16").write_bytes(bytes(24))
    run = read(tmp_path)
    assert (run.columns.dtypes, run.columns.shapes) == (["Float16"], [(12,)])


def test_scalars_are_arguments(tmp_path: Path) -> None:
    put(tmp_path, "Adam.n-op0.0.0.1.input.0.DefaultFormat.Float32", ONES)
    put(tmp_path, "Adam.n-op0.0.0.1.input.3.DefaultFormat.Float32", np.float32(0.5))
    put(tmp_path, "Adam.n-op0.0.0.1.input.4.DefaultFormat.Bool", np.bool_(True))
    put(tmp_path, "Adam.n-op0.0.0.1.output.0.DefaultFormat.Float32", ONES)
    (op,) = read(tmp_path).ops
    assert op.attributes == {"input.3": 0.5, "input.4": True}


def test_state_that_is_written_in_place_stands_afterwards(tmp_path: Path) -> None:
    """Adam's inputs 0 to 2 hold the new state; nobody reads its results."""
    for place in range(3):
        put(tmp_path, f"Adam.n-op0.0.0.1.input.{place}.DefaultFormat.Float32", ONES)
    put(tmp_path, "Adam.n-op0.0.0.1.input.9.DefaultFormat.Float32", ONES)
    put(tmp_path, "Adam.n-op0.0.0.1.output.0.DefaultFormat.Float32", ONES)
    run = read(tmp_path)
    (op,) = run.ops
    labels, notes = run.columns.labels, run.columns.notes
    assert [labels[at] for at in op.inputs] == ["input.9"]
    assert [(labels[at], notes[at]) for at in op.outputs] == [
        *((f"input.{n}", "updated in place") for n in range(3)),
        ("output.0", "dead output"),
    ]
    assert op.phase == "optimizer"


@pytest.mark.parametrize(
    ("op", "name", "phase"),
    [
        ("Add", "Default_Add-op0", "forward"),
        ("Add", "Gradients_Default_Add-op0", "backward"),
        ("Add", "Default_Gradients_Add-op0", "backward"),
        ("ReluGrad", "Default_ReluGrad-op0", "backward"),
        ("Add", "Default_optimizer-Adam_Add-op0", "optimizer"),
        ("Parameter", "w", "optimizer"),
    ],
)
def test_phases_by_name(tmp_path: Path, op: str, name: str, phase: str) -> None:
    put(tmp_path, f"{op}.{name}.0.0.1.output.0.DefaultFormat.Float32", ONES)
    assert read(tmp_path).ops[0].phase == phase


def test_names_too_long_for_a_file_stand_in_a_table(tmp_path: Path) -> None:
    put(tmp_path, "123456", ONES)
    name = "Add.Default_Add-op0.0.0.1.output.0.DefaultFormat.Float32.npy"
    (tmp_path / "mapping.csv").write_text(f"123456.npy,{name}\nalone\n")
    assert [op.name for op in read(tmp_path).ops] == ["Default_Add-op0"]


def test_files_that_can_not_be_read_are_named_up_to_three(tmp_path: Path) -> None:
    put(tmp_path, "Add.n-op0.0.0.1.output.0.DefaultFormat.Float32", ONES)
    for number in range(3):
        bad = tmp_path / f"Add.n-op{number}.0.0.1.input.0.DefaultFormat.Float32.npy"
        bad.write_bytes(b"no array")
    assert (
        sorted(line.partition(": ")[2] for line in read(tmp_path).complaints)
        == ["not an npy file"] * 3
    )
    for number in (3, 4):
        bad = tmp_path / f"Add.n-op{number}.0.0.1.input.0.DefaultFormat.Float32.npy"
        put(tmp_path, bad.stem, ONES)
        bad.write_bytes(bad.read_bytes()[:-4])
    complaints = read(tmp_path).complaints
    assert len(complaints) == 4
    assert complaints[-1] == "… and 2 more files that cannot be read"


def test_a_folder_of_nothing(tmp_path: Path) -> None:
    with pytest.raises(NoTensors, match="no file is called as a dump calls them"):
        read(tmp_path)
    with pytest.raises(NoTensors, match="no such file"):
        read(tmp_path / "none")


# -- statistics


HEAD = [
    "Op Type", "Op Name", "Task ID", "Stream ID", "Timestamp", "IO", "Slot", "Data Size",
    "Data Type", "Shape", "Max Value", "Min Value", "Avg Value", "L2Norm Value",
]  # fmt: skip
ROW = {
    "Op Type": "Add", "Op Name": "Default_Add-op0", "Timestamp": "5", "IO": "output", "Slot": "0",
    "Data Type": "float32", "Shape": '"(2,3)"', "Max Value": "1.5", "Min Value": "-2",
    "Avg Value": "0.25", "L2Norm Value": "4",
}  # fmt: skip


def rows(folder: Path, *given: dict[str, str], head: list[str] | None = None) -> TensorRun:
    names = head or HEAD
    lines = [",".join(names)]
    lines += [",".join({**ROW, **row}.get(name, "0") for name in names) for row in given]
    (folder / "statistic.csv").write_text("\n".join(lines) + "\n")
    return read(folder, str(folder / "statistic.csv"))


def test_a_row_is_a_tensor_with_figures_of_six_digits(tmp_path: Path) -> None:
    columns = (run := rows(tmp_path, {})).columns
    assert (columns.most, columns.least, columns.mean, columns.norm) == ([1.5], [-2], [0.25], [4])
    assert (columns.shapes, columns.dtypes, columns.labels) == ([(2, 3)], ["Float32"], ["output.0"])
    assert (run.level, run.kind, columns.resolution) == ("statistics", "statistics", 1e-5)
    assert columns.broken == [-1]


@pytest.mark.parametrize(
    ("row", "broken"),
    [
        ({"NaN Count": "0", "Positive Inf Count": "0", "Negative Inf Count": "0"}, 0),
        ({"NaN Count": "2", "Positive Inf Count": "3", "Negative Inf Count": "4"}, 9),
        ({"Max Value": "nan"}, 1),
        ({"Min Value": "-nan", "NaN Count": "2", "Positive Inf Count": "0"}, 3),
    ],
)  # fmt: skip
def test_numbers_that_are_none_are_counted(
    tmp_path: Path, row: dict[str, str], broken: int
) -> None:
    names = [*HEAD, "NaN Count", "Positive Inf Count", "Negative Inf Count"]
    assert rows(tmp_path, row, head=names).columns.broken == [broken]


def test_other_versions_call_figures_otherwise(tmp_path: Path) -> None:
    names = [{"Avg Value": "Mean Value", "L2Norm Value": "L2Norm"}.get(name, name) for name in HEAD]
    columns = rows(tmp_path, {"Mean Value": "7", "L2Norm": "8"}, head=names).columns
    assert (columns.mean, columns.norm) == ([7], [8])
    truth = rows(tmp_path, {"Max Value": "True", "Min Value": "False", "Data Type": "bool"}).columns
    assert (truth.most, truth.least) == ([1.0], [0.0])


def test_checksums_alone(tmp_path: Path) -> None:
    names = ["Op Type", "Op Name", "Timestamp", "IO", "Slot", "Data Type", "Shape", "MD5"]
    run = rows(tmp_path, {"MD5": "abcd"}, head=names)
    assert (run.level, run.columns.hashes) == ("md5", ["abcd"])


@pytest.mark.parametrize(
    ("kind", "most", "value"),
    [("float32", "0.5", 0.5), ("int32", "7", 7), ("bool", "1", True), ("int64", "1e30", (1 << 63))],
)
def test_scalars_of_rows_are_arguments(tmp_path: Path, kind: str, most: str, value: object) -> None:
    given = {"IO": "input", "Shape": '"()"', "Data Type": kind, "Max Value": most}
    (op,) = rows(tmp_path, given, {}).ops
    assert op.attributes == {"input.0": value}
    assert type(op.attributes["input.0"]) is type(value)


def test_rows_that_can_not_be_read_are_counted(tmp_path: Path) -> None:
    run = rows(tmp_path, {}, {"Slot": "x"}, {"Max Value": "?"})
    assert len(run.ops) == 1
    assert run.complaints == [f"{tmp_path / 'statistic.csv'}: 2 rows that cannot be read"]


def test_a_table_of_something_else(tmp_path: Path) -> None:
    (tmp_path / "statistic.csv").write_text("a,b\n1,2\n")
    with pytest.raises(NoTensors, match="no columns Op Name and IO"):
        read(tmp_path, str(tmp_path / "statistic.csv"))


def test_values_go_before_rows(tmp_path: Path) -> None:
    put(tmp_path, "Mul.Default_Mul-op1.0.0.200.output.0.DefaultFormat.Float32", ONES)
    assert [op.name for op in rows(tmp_path, {}).ops] == ["Default_Mul-op1"]
