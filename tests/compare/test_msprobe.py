"""dump.json and what lies beside it, as msprobe writes them: every form by hand."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import pytest

from irtool.compare.tensors.formats.msprobe.dump import read_msprobe
from irtool.compare.tensors.formats.msprobe.files import whole_part
from irtool.compare.tensors.formats.msprobe.names import parsed
from irtool.compare.tensors.model import NoTensors, TensorRun
from irtool.ir.run import MsprobeDump


def leaf(*shape: int, most: Any = 2.0, least: Any = -1.0, **more: Any) -> dict[str, Any]:
    return {
        "type": "torch.Tensor", "dtype": "torch.float32", "shape": list(shape),
        "Max": most, "Min": least, "Mean": 0.5, "Norm": 3.0, **more,
    }  # fmt: skip


def read(folder: Path, data: Any, name: str = "dump.json", **header: Any) -> TensorRun:
    (folder / name).write_text(json.dumps({"task": "statistics", "data": data, **header}))
    return read_msprobe(MsprobeDump(str(folder), 3, 2))


CALL = {"input_args": [leaf(4, 8)], "input_kwargs": {}, "output": [leaf(4)]}


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("Functional.linear.3.forward",
         ("linear", "forward", "", "Functional.linear.3.forward", False)),
        ("Tensor.__add__.0.backward",
         ("__add__", "backward", "", "Tensor.__add__.0.forward", False)),
        ("Torch.nn.functional.relu.1.forward",
         ("relu", "forward", "", "Torch.nn.functional.relu.1.forward", False)),
        ("Primitive.norm.LayerNorm.2.forward",
         ("LayerNorm", "forward", "", "Primitive.norm.LayerNorm.2.forward", False)),
        ("Primitive.Add.2.forward", ("Add", "forward", "", "Primitive.Add.2.forward", False)),
        ("Module.a.b.Linear.forward.1",
         ("Linear", "forward", "a.b", "Module.a.b.Linear.forward.1", True)),
        ("Cell.a.Dense.backward.1", ("Dense", "backward", "a", "Cell.a.Dense.forward.1", True)),
        ("Module.a.Linear.parameters_grad",
         ("Linear", "backward", "a", "Module.a.Linear.forward.0", True)),
        ("Module.broken", ("broken", "forward", "", "Module.broken", False)),
        ("loose", ("loose", "forward", "", "loose", False)),
        ("Torch.x.y.forward", ("forward", "forward", "", "Torch.x.y.forward", False)),
        ("Torch.x.0.sideways", ("sideways", "forward", "", "Torch.x.0.sideways", False)),
    ],
)  # fmt: skip
def test_what_a_name_says(name: str, expected: tuple[object, ...]) -> None:
    assert parsed(name) == expected


def test_tensors_of_a_call(tmp_path: Path) -> None:
    run = read(tmp_path, {"Functional.linear.0.forward": CALL})
    (op,) = run.ops
    columns = run.columns
    assert columns.labels == ["input.0", "output.0"]
    assert columns.shapes == [(4, 8), (4,)]
    assert columns.dtypes == ["Float32", "Float32"]
    assert (columns.most[0], columns.least[0], columns.mean[0], columns.norm[0]) == (2, -1, 0.5, 3)
    assert (op.type, list(op.inputs), list(op.outputs)) == ("linear", [0], [1])
    assert (run.rank, run.step, run.level, run.framework) == (3, 2, "statistics", "pytorch")
    assert (run.kind, run.complaints) == ("msprobe", [])


def test_arguments_however_deep(tmp_path: Path) -> None:
    entry = {
        "input_args": [leaf(1), [leaf(2), {"k": leaf(3)}], None, {"type": "int", "value": 7}],
        "input_kwargs": {"eps": {"type": "float", "value": 1e-5}, "weight": leaf(4)},
        "output": [[leaf(5)], leaf(6)],
    }
    run = read(tmp_path, {"Torch.f.0.forward": entry})
    (op,) = run.ops
    labels, shapes = run.columns.labels, run.columns.shapes
    assert {labels[at]: shapes[at] for at in op.inputs} == {
        "input.0": (1,), "input.1.0": (2,), "input.1.1.k": (3,), "input.weight": (4,),
    }  # fmt: skip
    assert {labels[at]: shapes[at] for at in op.outputs} == {"output.0.0": (5,), "output.1": (6,)}
    assert op.attributes == {"input.3": 7, "input.eps": 1e-5}


def test_gradients_have_their_tensors_by_other_keys(tmp_path: Path) -> None:
    run = read(
        tmp_path,
        {
            "Functional.linear.0.forward": CALL,
            "Functional.linear.0.backward": {"input": [leaf(4)], "output": [leaf(4, 8), None]},
        },
    )
    op = run.ops[1]
    assert (op.phase, op.call) == ("backward", "Functional.linear.0.forward")
    assert [run.columns.labels[at] for at in op.tensors] == ["input.0", "output.0"]


def test_modules_have_parameters_and_their_gradients(tmp_path: Path) -> None:
    run = read(
        tmp_path,
        {
            "Module.a.Linear.forward.0": {
                **CALL,
                "parameters": {"weight": leaf(8, 8), "bias": leaf(8)},
            },
            "Module.a.Linear.parameters_grad": {"weight": [leaf(8, 8)], "bias": [leaf(8)]},
        },
    )
    forward, gradient = run.ops
    labels = run.columns.labels
    assert [labels[at] for at in forward.inputs] == ["input.0", "weight", "bias"]
    assert [labels[at] for at in sorted(forward.parameters)] == ["weight", "bias"]
    assert (forward.is_module, forward.owner) == (True, "a")
    assert [labels[at] for at in gradient.outputs] == ["weight.grad.0", "bias.grad.0"]
    assert list(gradient.inputs) == []


def test_weights_of_functions_are_parameters(tmp_path: Path) -> None:
    entry = {"input_args": [leaf(4, 8), leaf(8, 8), leaf(8)], "output": [leaf(4, 8)]}
    run = read(tmp_path, {"Functional.linear.0.forward": entry, "Torch.add.0.forward": entry})
    assert [sorted(op.parameters) for op in run.ops] == [[1, 2], []]


@pytest.mark.parametrize(
    ("most", "least", "broken"),
    [
        (1.0, -1.0, 0),
        (math.nan, -1.0, 1),
        (1.0, math.nan, 1),
        (math.inf, -1.0, -1),  # infinite, and nobody says how many
        (1.0, -math.inf, -1),
        (1, -1.0, 0),
        (None, None, -1),
        ("nan", -1.0, -1),
    ],
)
def test_what_extremes_say_of_numbers_that_are_none(
    tmp_path: Path, most: Any, least: Any, broken: int
) -> None:
    one = read(tmp_path, {"Torch.f.0.forward": {"output": [leaf(4, most=most, least=least)]}})
    assert one.columns.broken == [broken]


def test_figures_may_be_missing_or_texts(tmp_path: Path) -> None:
    bare = {"type": "torch.Tensor", "dtype": "torch.bfloat16", "shape": [4], "Max": "1.5"}
    run = read(tmp_path, {"Torch.f.0.forward": {"output": [bare, leaf(4, most="x")]}})
    columns = run.columns
    assert columns.dtypes[0] == "BFloat16"
    assert columns.most[0] == 1.5
    assert all(map(math.isnan, (columns.norm[0], columns.least[0], columns.most[1])))


@pytest.mark.parametrize("key", ["md5", "xor"])
def test_checksums_of_any_kind(tmp_path: Path, key: str) -> None:
    bare = {"type": "torch.Tensor", "dtype": "torch.float32", "shape": [4], key: "abcd"}
    run = read(tmp_path, {"Torch.f.0.forward": {"output": [bare]}})
    assert (run.columns.hashes, run.level) == (["abcd"], "md5")
    both = read(tmp_path, {"Torch.f.0.forward": {"output": [leaf(4, **{key: "abcd"}), leaf(4)]}})
    assert (both.columns.hashes, both.level) == (["abcd", ""], "statistics")


def test_shapes_that_are_none_are_like_no_other(tmp_path: Path) -> None:
    run = read(
        tmp_path,
        {
            "Torch.f.0.forward": {
                "output": [leaf(4), {**leaf(4), "shape": ["x"]}, {**leaf(4), "shape": 7}]
            }
        },
    )
    assert run.columns.shapes == [(4,), (-1,), ()]


def test_values_are_found_beside_it(tmp_path: Path) -> None:
    data = {
        "Torch.f.0.forward": {
            "output": [leaf(4, data_name="a.npy"), leaf(4, data_name="-1"), leaf(4)]
        }
    }
    (tmp_path / "dump_tensor_data").mkdir()
    run = read(tmp_path, data, task="tensor")
    assert run.columns.files == [str(tmp_path / "dump_tensor_data" / "a.npy"), "", ""]
    assert run.level == "tensors"
    assert read(tmp_path, data).columns.files == ["", "", ""]  # statistics have no values


def test_the_framework_is_stated_or_told_by_names(tmp_path: Path) -> None:
    assert read(tmp_path, {"Cell.a.Dense.forward.0": CALL}).framework == "mindspore"
    assert (
        read(tmp_path, {"Torch.f.0.forward": CALL}, framework="mindspore").framework == "mindspore"
    )


def test_what_runs_after_the_last_gradient_is_the_optimizer(tmp_path: Path) -> None:
    names = ["Torch.a.0.forward", "Torch.a.0.backward", "Torch.b.0.forward", "Torch.c.0.forward"]
    phases = [op.phase for op in read(tmp_path, dict.fromkeys(names, CALL)).ops]
    assert phases == ["forward", "backward", "optimizer", "optimizer"]
    forward = read(tmp_path, dict.fromkeys(names[::2], CALL))
    assert [op.phase for op in forward.ops] == ["forward", "forward"]


def test_the_file_of_a_debugger_is_read_where_no_other_is(tmp_path: Path) -> None:
    assert len(read(tmp_path, {"Torch.a.0.forward": CALL}, "debug.json").ops) == 1
    assert len(read(tmp_path, {f"Torch.a.{n}.forward": CALL for n in range(2)}).ops) == 2


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("{}", "holds no operators"),
        ("[1]", "holds no operators"),
        ('{"data": {}}', "holds no operators"),
        ('{"data": 7}', "holds no operators"),
        ('{"da', "cut off or damaged"),
    ],
)
def test_what_can_not_be_read(tmp_path: Path, text: str, reason: str) -> None:
    (tmp_path / "dump.json").write_text(text)
    with pytest.raises(NoTensors, match=reason):
        read_msprobe(MsprobeDump(str(tmp_path), 0, 0))


def test_no_file_at_all(tmp_path: Path) -> None:
    with pytest.raises(NoTensors, match="no such file"):
        read_msprobe(MsprobeDump(str(tmp_path), 0, 0))


def test_what_is_no_operator_is_complained_about(tmp_path: Path) -> None:
    run = read(tmp_path, {"Torch.a.0.forward": CALL, "odd": 7})
    assert (len(run.ops), run.complaints) == (1, ["odd: not an operator"])


def test_a_file_that_was_cut_off_says_what_it_can(tmp_path: Path) -> None:
    whole = json.dumps({"task": "statistics", "framework": "mindspore", "data": {
        f"Torch.f.{n}.forward": CALL for n in range(3)}})  # fmt: skip
    cut = whole[: whole.index('"Torch.f.2') + 40]
    (tmp_path / "dump.json").write_text(cut)
    run = read_msprobe(MsprobeDump(str(tmp_path), 0, 0))
    assert [op.name for op in run.ops] == ["Torch.f.0.forward", "Torch.f.1.forward"]
    assert run.framework == "mindspore"
    assert "after 2 operators" in run.complaints[0]
    (tmp_path / "x.json").write_text('{"task": "x", "data": {"a"')
    assert whole_part(str(tmp_path / "x.json")) is None
    (tmp_path / "x.json").write_text('{"broken, "data": {"a": 1, "b')
    assert whole_part(str(tmp_path / "x.json")) == {"data": {"a": 1}}


def test_lines_of_the_users_code_of_either_form(tmp_path: Path) -> None:
    frames = [
        "File /opt/site-packages/torch/nn.py, line 3, in call, \n x",
        "File /home/me/model.py, line 12, in forward, \n y",
        "File /home/me/train.py, line 99, in main, \n z",
    ]
    data = {f"Torch.f.{n}.forward": CALL for n in range(3)} | {"Torch.f.0.backward": CALL}
    stacks = {"Torch.f.0.forward": frames, "7": [["Torch.f.1.forward"], frames[2:]], "8": 5,
              "Torch.f.2.forward": frames[:1]}  # fmt: skip
    (tmp_path / "stack.json").write_text(json.dumps(stacks))
    sources = [op.source for op in read(tmp_path, data).ops]
    assert sources == ["/home/me/model.py:12", "/home/me/train.py:99", "", "/home/me/model.py:12"]
    (tmp_path / "stack.json").write_text("[1]")
    assert [op.source for op in read(tmp_path, data).ops] == [""] * 4


def test_modules_that_calls_run_in(tmp_path: Path) -> None:
    data = {f"Torch.f.{n}.forward": CALL for n in range(4)} | {"Torch.f.0.backward": CALL}
    parents = {
        "Torch.f.0.forward": "Module.a.b.Linear.forward.0",
        "Torch.f.1.forward": ["Cell.c.Dense.forward.0", "more"],
        "Torch.f.2.forward": [],
        "Torch.f.3.forward": None,
    }
    (tmp_path / "construct.json").write_text(json.dumps(parents))
    assert [op.owner for op in read(tmp_path, data).ops] == ["a.b", "c", "", "", "a.b"]
    (tmp_path / "construct.json").write_text("[]")
    assert [op.owner for op in read(tmp_path, data).ops] == [""] * 5
