"""What users of msprobe are used to: its result columns, its mapping files."""

from __future__ import annotations

import csv
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

from irtool.cli.diff.msprobe_csv import cell_text
from irtool.cli.diff.names import maps_of
from irtool.cli.main import app
from irtool.cli.report import Failure
from irtool.compare.tensors.model import Columns, Op, TensorRun
from irtool.compare.tensors.msprobe_rows import header, value_metrics
from tests.compare.dumps import msprobe, network

COMMON = ["NPU Name", "Bench Name", "NPU Dtype", "Bench Dtype", "NPU Tensor Shape",
          "Bench Tensor Shape", "NPU Requires_grad", "Bench Requires_grad"]  # fmt: skip
STATED = ["NPU max", "NPU min", "NPU mean", "NPU l2norm", "Bench max", "Bench min", "Bench mean",
          "Bench l2norm", "Requires_grad Consistent", "Result", "Err_message",
          "NPU_Stack_Info"]  # fmt: skip


@pytest.mark.parametrize(
    ("text", "cell"),
    [("-0.5%", "-0.5%"), ("-1", "-1"), ("nan", "nan"), ("=1+1", "'=1+1"), ("-x", "'-x")],
)
def test_numbers_stand_as_they_are_and_formulas_as_text(text: str, cell: str) -> None:
    assert cell_text(text) == cell


def test_the_columns_are_those_of_msprobe_compare() -> None:
    values = ["Cosine", "EucDist", "MaxAbsErr", "MaxRelativeErr", "One Thousandth Err Ratio",
              "Five Thousandths Err Ratio"]  # fmt: skip
    figures = ["Max diff", "Min diff", "Mean diff", "L2norm diff", "MaxRelativeErr",
               "MinRelativeErr", "MeanRelativeErr", "NormRelativeErr"]  # fmt: skip
    assert header(True) == [*COMMON, *values, *STATED, "Data_name"]
    assert header(False) == [*COMMON, *figures, *STATED]


@pytest.mark.parametrize(
    ("left", "right", "metrics"),
    [
        ([1, 2, 2], [1, 2, 2], [1, 0, 0, 0, 1, 1]),
        ([3, 0], [0, 4], [0, 5, 4, 3 / np.finfo(np.float32).eps, 0, 0]),
        ([1.004, 2], [1, 2], [0.999997, 0.004, 0.004, 0.004, 0.5, 1]),
        ([-np.inf, 1], [-np.inf, 1], [1, 0, 0, 0, 1, 1]),  # masked alike
    ],
)
def test_metrics_mean_what_they_do_there(
    left: list[float], right: list[float], metrics: list[float]
) -> None:
    made = value_metrics(np.array(left, np.float32), np.array(right, np.float32))
    assert [float(text) for text in made] == pytest.approx(metrics, rel=1e-4, abs=1e-6)


def test_infinity_on_one_side_has_no_metrics() -> None:
    made = value_metrics(np.array([np.inf, 1]), np.array([1.0, 1.0]))
    assert made == ["N/A"] * 6


@pytest.mark.parametrize("tensors", [True, False])
def test_a_row_a_tensor_and_the_fault_is_an_error(tmp_path: Path, tensors: bool) -> None:
    left = msprobe(tmp_path / "a", network(), tensors=tensors)
    right = msprobe(tmp_path / "b", network(epsilon=0.1), tensors=tensors)
    out = tmp_path / "out.csv"
    asked = ["diff", str(left), str(right), "--format", "msprobe-csv", "-o", str(out)]
    assert CliRunner().invoke(app, asked).exit_code == 1
    with open(out, newline="") as stream:
        rows = list(csv.DictReader(stream))
    assert list(rows[0]) == header(tensors)
    errors = [row["NPU Name"] for row in rows if row["Result"] == "error"]
    assert errors[0].startswith("Functional.layer_norm.0.forward")


def test_graphs_have_no_such_table() -> None:
    asked = ["diff", "a.ir", "b.ir", "--format", "msprobe-csv"]
    assert CliRunner().invoke(app, asked).exit_code == 2


# -- mapping files


def modules(kind: str, framework: str, *paths: str) -> TensorRun:
    ops = []
    for path in paths:
        owner, _, type_ = path.rpartition(".")
        name = f"{kind}.{path}.forward.0"
        ops.append(Op(len(ops), name, type_, "forward", (), (), owner=owner, is_module=True))
    return TensorRun("", "msprobe", "statistics", framework, Columns(), ops)


MINDSPORE = modules("Cell", "mindspore", "net.Net", "net.layers.Blocks", "net.layers.0.Block",
                    "net.layers.0.attn.Attention", "net.fc.Dense")  # fmt: skip
TORCH = modules("Module", "pytorch", "model.Net", "model.blocks.Blocks", "model.blocks.0.Block",
                "model.blocks.0.self_attn.Attention", "model.head.Linear")  # fmt: skip


def names(tmp_path: Path, text: str) -> dict[str, str]:
    path = tmp_path / "map.yaml"
    path.write_text(text)
    return dict(maps_of(str(path)).of_runs(MINDSPORE, TORCH))


def test_a_cell_map_pairs_one_module(tmp_path: Path) -> None:
    found = names(tmp_path, "# cells\nnet.fc.Dense: model.head.Linear\n")
    assert found == {"Cell.net.fc.Dense.forward.0": "Module.model.head.Linear.forward.0"}


def test_a_layer_map_renames_children_by_the_class_of_their_parent(tmp_path: Path) -> None:
    text = (
        "TopLayer:\n  net: model\n\nNet:\n  layers: blocks\n  fc: head\nBlock:\n  attn: self_attn\n"
    )
    found = names(tmp_path, text)
    assert len(found) == 5
    attention = "Module.model.blocks.0.self_attn.Attention.forward.0"
    assert found["Cell.net.layers.0.attn.Attention.forward.0"] == attention


@pytest.mark.parametrize("top", ["TopLayer", "Cell"])
def test_older_layer_maps_name_the_top_otherwise_and_classes_of_children(
    top: str, tmp_path: Path
) -> None:
    found = names(tmp_path, f"{top}:\n  net: model (Net)\nNet:\n  fc: head(Linear)\n")
    assert found["Cell.net.fc.Dense.forward.0"] == "Module.model.head.Linear.forward.0"


def test_a_data_map_pairs_the_operators_of_its_tensors(tmp_path: Path) -> None:
    text = "Mint.linear.3.forward.input.0: Functional.linear.4.forward.input.0\n"
    assert names(tmp_path, text) == {"Mint.linear.3.forward": "Functional.linear.4.forward"}


@pytest.mark.parametrize("text", ["only a name\n", "  child: first\n", "Net:\n  child:\n"])
def test_what_is_no_map_is_refused_at_its_line(tmp_path: Path, text: str) -> None:
    with pytest.raises(Failure) as caught:
        names(tmp_path, text)
    assert "map.yaml:" in caught.value.place


@pytest.mark.parametrize(
    ("left", "right", "is_known"),
    [
        ([1.0, 2.0], [1.0, 2.0], True),
        ([1.0, 2.0], [1.0, np.nan], False),
        ([np.nan, 2.0], [1.0, 2.0], False),
        ([1.0, np.inf], [1.0, -np.inf], False),
        ([1.0, np.inf], [1.0, np.inf], True),  # the same on both sides
        ([1.0, np.nan], [1.0, np.nan], True),
    ],
)
def test_metrics_need_numbers_on_both_sides(
    left: list[float], right: list[float], is_known: bool
) -> None:
    made = value_metrics(np.array(left), np.array(right))
    assert (len(set(made)) > 1) is is_known
