"""Tensor dumps: reading, joining with graphs, pairing, and naming the first fault."""

from __future__ import annotations

import json
import math
import tempfile
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from irtool.compare.runs.sides import side_of_run
from irtool.compare.runs.units import Settings, compare_units
from irtool.compare.tensors import digest
from irtool.compare.tensors.case import histogram
from irtool.compare.tensors.comparison import TensorComparison, compare_tensors
from irtool.compare.tensors.dtypes import dtype_name
from irtool.compare.tensors.formats.mindspore import FILE_NAME, read_mindspore
from irtool.compare.tensors.formats.payload import BadPayload, read_array, stored_type
from irtool.compare.tensors.formats.plain import read_plain
from irtool.compare.tensors.join import replayed, sanitised
from irtool.compare.tensors.judging.attributes import changed_attributes
from irtool.compare.tensors.measuring.sketch import distance, sketch
from irtool.compare.tensors.measuring.values import measure_arrays
from irtool.compare.tensors.model import NoTensors, TensorRun
from irtool.ir.run import TensorDump
from irtool.syntax.run import load_run
from tests.compare.dumps import Entry, msprobe, network, npy


def unit(path: Path) -> TensorRun:
    (only,) = side_of_run(load_run(str(path)), None).units.values()
    return only if isinstance(only, TensorRun) else only.read()


def compared(
    tmp_path: Path, left: list[Entry], right: list[Entry], tensors: bool = True
) -> TensorComparison:
    a, b = (
        unit(msprobe(tmp_path / name, entries, tensors))
        for name, entries in (("a", left), ("b", right))
    )
    return compare_tensors(a, b)


# -- verdicts


def test_equal_dumps_are_equal(tmp_path: Path) -> None:
    found = compared(tmp_path, network(), network())
    assert found.is_equal
    assert found.counts == {"equal bits": 4}


@pytest.mark.parametrize("tensors", [True, False])
def test_another_epsilon_is_named_first(tmp_path: Path, tensors: bool) -> None:
    found = compared(tmp_path, network(), network(epsilon=1e-2), tensors)
    assert found.first is not None
    assert found.first.pair.left.name == "Functional.layer_norm.0.forward"
    assert [str(change) for change in found.first.attributes] == ["input.4: 1e-05 → 0.01"]
    assert found.counts["introduces error"] == 1


def test_another_axis_is_named_and_what_follows_carries_it(tmp_path: Path) -> None:
    found = compared(tmp_path, network(), network(axis=-2))
    assert found.first is not None
    assert found.first.pair.left.type == "softmax"
    assert found.judged[3].verdict == "carries error"


def test_rounding_accuses_nobody(tmp_path: Path) -> None:
    found = compared(tmp_path, network(), network(noise=1e-7))
    assert found.first is None
    assert not found.is_equal


def test_a_parameter_that_differs_is_the_origin(tmp_path: Path) -> None:
    right = network()
    name, (n, w), m = right[1]
    right[1] = (name, (n, np.ascontiguousarray(w.T)), (n @ w).astype(np.float32))
    found = compared(tmp_path, network(), right)
    assert found.first is not None
    assert found.first.pair.left.name == name
    assert found.first.parameter
    del m


def test_a_dropped_operator_is_named_through_its_reader(tmp_path: Path) -> None:
    left, right = network(), network()
    _, (s, w), o = left[3]
    doubled = (o * 2).astype(np.float32)
    left.append(("Tensor.__mul__.0.forward", (o, 2.0), doubled))
    left.append(("Functional.relu.0.forward", (doubled,), np.maximum(doubled, 0)))
    right.append(("Functional.relu.0.forward", (o,), np.maximum(o, 0)))
    found = compared(tmp_path, left, right)
    assert found.first is not None
    assert found.first.pair.left.name == "Functional.relu.0.forward"
    assert found.first.maker_left is not None
    assert found.first.maker_left.name == "Tensor.__mul__.0.forward"
    del s, w


def test_nan_is_traced_to_where_it_comes_out_of_finite_inputs(tmp_path: Path) -> None:
    right = network()
    name, (n, w), m = right[1]
    broken = np.array(m)
    broken[3, 4] = np.nan
    right[1] = (name, (n, w), broken)
    found = compared(tmp_path, network(), right)
    assert found.first is not None
    assert found.first.pair.left.name == name
    assert found.first.wrong == "right"
    assert math.isinf(found.first.z)


def test_a_signed_difference_counts_either_way(tmp_path: Path) -> None:
    x = np.array([1.0, -1.0, 0.5, 0.0], np.float32)
    lower = np.array([-1e9, -1.0, 0.5, 0.0], np.float32)
    for n, (a, b) in enumerate(((x, lower), (lower, x))):
        found = compared(
            tmp_path / str(n),
            [("Functional.relu.0.forward", (), a)],
            [("Functional.relu.0.forward", (), b)],
            tensors=False,
        )
        assert found.first is not None


def test_reordered_calls_are_paired_by_their_parameters(tmp_path: Path) -> None:
    rng = np.random.default_rng(3)
    x = rng.standard_normal((8, 8)).astype(np.float32)
    weights = [rng.standard_normal((8, 8)).astype(np.float32) for _ in range(3)]

    def calls(order: tuple[int, ...]) -> list[Entry]:
        return [
            (f"Functional.linear.{n}.forward", (x, weights[k]), x @ np.transpose(weights[k]))
            for n, k in enumerate(order)
        ]

    found = compared(tmp_path, calls((0, 1, 2)), calls((2, 1, 0)))
    assert found.first is None
    assert [item.pair.right.name[-9] for item in found.judged] == ["2", "1", "0"]


# -- reading


def test_names_of_dumped_files_are_read() -> None:
    found = FILE_NAME.fullmatch(
        "MatMul.Default_net_MatMul-op3.0.0.1795168165781519.input.1.DefaultFormat.Float32.npy"
    )
    assert found is not None
    assert found["op"], found["name"] == ("MatMul", "Default_net_MatMul-op3")
    assert found["io"], found["index"] == ("input", "1")


def test_a_payload_of_another_type_than_declared_is_seen() -> None:
    assert stored_type("Float16", (4, 4), 64) == (
        "Float32",
        "payload holds Float32, header says Float16",
    )
    assert stored_type("Float16", (4, 4), 32) == ("Float16", "")
    assert "cut off" in stored_type("Float32", (4, 4), 10)[1]


def test_rows_with_and_without_the_last_comma_read_the_same(tmp_path: Path) -> None:
    head = (
        "Op Type,Op Name,Task ID,Stream ID,Timestamp,IO,Slot,Data Size,Data Type,Shape,"
        "Max Value,Min Value,Avg Value,L2Norm Value"
    )
    row = 'Relu,Default_Relu-op0,0,0,5,output,0,16,float32,"(2,2)",1,-1,0,2'
    runs: list[TensorRun] = []
    for name, tail in (("a", ","), ("b", "")):
        folder = tmp_path / name
        folder.mkdir()
        (folder / "statistic.csv").write_text(f"{head}\n{row}{tail}\n")
        table = str(folder / "statistic.csv")
        runs.append(read_mindspore(TensorDump(str(folder), 0, "Net", 0, 0, table)))
    assert [run.columns.norm for run in runs] == [[2.0], [2.0]]
    assert [run.columns.shapes for run in runs] == [[(2, 2)], [(2, 2)]]


def test_launches_of_one_operator_are_told_apart(tmp_path: Path) -> None:
    for time in (100, 200):
        one = np.full((2,), time, np.float32)
        npy(tmp_path, "Add", "Default_Add-op0", time, {"input.0": one, "output.0": one})
    run = read_mindspore(TensorDump(str(tmp_path), 0, "Net", 0, 0, None, True))
    assert [len(op.inputs) for op in run.ops] == [1, 1]


def test_a_dump_that_was_cut_off_is_a_message(tmp_path: Path) -> None:
    msprobe(tmp_path, network())
    file = tmp_path / "step0" / "rank0" / "dump.json"
    file.write_text(file.read_text()[:200])
    with pytest.raises(NoTensors, match="cut off"):
        unit(tmp_path)


def test_plain_folders_are_paired_by_name(tmp_path: Path) -> None:
    for side, value in (("a", 1.0), ("b", 1.5)):
        (tmp_path / side).mkdir()
        np.save(tmp_path / side / "x.npy", np.full(20, 1.0, np.float32))
        np.savez(tmp_path / side / "y.npz", k=np.full(20, value, np.float32))
    found = compare_tensors(read_plain(str(tmp_path / "a")), read_plain(str(tmp_path / "b")))
    assert found.first is not None
    assert found.first.pair.left.name == "k"


def test_damaged_payloads_are_named(tmp_path: Path) -> None:
    file = tmp_path / "x.npy"
    np.save(file, np.ones(100, np.float32))
    file.write_bytes(file.read_bytes()[:200])
    with pytest.raises(BadPayload, match="cut off"):
        read_array(str(file), "Float32")


@settings(deadline=None, max_examples=60)
@given(st.sampled_from([b"", b"PK", b"\x93NUMPY\x01\x00"]), st.binary(max_size=200))
def test_garbage_is_a_bad_payload(start: bytes, data: bytes) -> None:
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "x")
        file.write_bytes(start + data)
        with pytest.raises(BadPayload):
            read_array(str(file), "Float32")


# -- pieces


def test_renumbering_counts_each_prefix_over_all_graphs() -> None:
    counters: Counter[str] = Counter()
    assert replayed(["a/X-op7", "a/Y-op1", "a/X-op2", "plain"], counters) == [
        "a/X-op0",
        "a/Y-op0",
        "a/X-op1",
        "plain",
    ]
    assert replayed(["a/X-op0"], counters) == ["a/X-op2"]
    assert sanitised("Default/net.a b/X-op0") == "Default_net_a_b_X-op0"


def test_types_have_one_spelling() -> None:
    spelt = ("torch.bfloat16", "BFloat16", "BF16", "bf16")
    assert {dtype_name(text) for text in spelt} == {"BFloat16"}
    assert dtype_name("torch.float32") == dtype_name("FLOAT") == "Float32"


def test_attributes_in_two_precisions_are_the_same() -> None:
    assert not list(changed_attributes({"eps": 1e-5}, {"eps": 9.99999974e-06}))
    assert not list(changed_attributes({"d": "torch.float32"}, {"d": "torch.bfloat16"}))
    (change,) = changed_attributes({"axis": -1}, {"axis": -2})
    assert str(change) == "axis: -1 → -2"


@settings(deadline=None, max_examples=25)
@given(st.integers(1, 5000), st.floats(1e-7, 1.0))
def test_sketches_tell_distances(size: int, scale: float) -> None:
    rng = np.random.default_rng(size)
    a = rng.standard_normal(size)
    b = a + scale * rng.standard_normal(size)
    true = float(np.linalg.norm(a - b))
    assert true / 3 < distance(sketch(a), sketch(b)) < 3 * true


def test_errors_are_symmetric() -> None:
    a, b = np.arange(10.0), np.arange(10.0) * 1.1
    assert measure_arrays(a, b).error == measure_arrays(b, a).error


def test_histograms_count_units_in_the_last_place() -> None:
    a = np.ones(4, np.float32)
    b = np.array([1.0, np.nextafter(np.float32(1), np.float32(2)), -1.0, np.nan], np.float32)
    counts, _ = histogram(a, b, "Float32")
    assert counts == (1, 1, 0, 0, 0, 0, 1, 1)


def test_a_digest_compares_like_the_run(tmp_path: Path) -> None:
    left = unit(msprobe(tmp_path / "a", network(), True))
    right = unit(msprobe(tmp_path / "b", network(epsilon=1e-2), True))
    runs: list[TensorRun] = []
    for n, run in enumerate((left, right)):
        digest.fill(run)
        file = tmp_path / f"{n}.json"
        with file.open("wb") as stream:
            digest.write_digest(stream, "x", [run], {})
        assert digest.is_digest(str(file))
        runs.append(digest.read_digest(str(file))[0][0])
        assert runs[n].columns.sketches.keys() == run.columns.sketches.keys() != set()
        assert (runs[n].columns.notes, runs[n].columns.unread) == ({}, {})
    found = compare_tensors(runs[0], runs[1])
    assert found.first is not None
    assert found.first.pair.left.type == "layer_norm"


def test_damaged_digests_are_a_message(tmp_path: Path) -> None:
    file = tmp_path / "d.json"
    file.write_text(json.dumps({"schema": "irtool.digest/1", "units": [{"tensors": {}}]}))
    with pytest.raises(NoTensors, match="damaged"):
        digest.read_digest(str(file))


# -- the corpus


@pytest.mark.corpus
@pytest.mark.parametrize(("name", "operators"), [("reference", 299), ("half_matmul", 475)])
def test_every_operator_is_joined(corpus: Path, name: str, operators: int) -> None:
    from irtool.compare.tensors.join import choose, full_names, graph_files, join
    from irtool.syntax.load import load

    run = unit(corpus / "precision" / "mindspore_cpu" / name)
    files = graph_files(run.path)
    chosen = choose(run, [full_names(file, Path(file).read_bytes()) for file in files])
    assert chosen is not None
    path, is_replayed, names = chosen
    found = join(run, load(path), names, is_replayed)
    assert (found.with_node, found.operators, found.mismatched) == (operators, operators, 0)
    assert found.replayed
    assert found.stale > 0


@pytest.mark.corpus
@pytest.mark.parametrize(
    ("left", "right"),
    [
        ("msprobe_pytorch/L0_fp32", "msprobe_pytorch/L0_bf16"),
        ("msprobe_pytorch/L1_fp32", "msprobe_pytorch/L1_bf16"),
        ("msprobe_pytorch/mix_fp32", "msprobe_pytorch/mix_bf16"),
        ("msprobe_cross_pytorch_L0", "msprobe_cross_mindspore_L0"),
        ("statistics/reference", "statistics/half_softmax"),
        ("mindspore_cpu/reference", "statistics/reference"),
    ],
)
def test_healthy_pairs_accuse_nobody(corpus: Path, left: str, right: str) -> None:
    sides = [
        side_of_run(load_run(str(corpus / "precision" / name)), None) for name in (left, right)
    ]
    found = compare_units(sides[0], sides[1], Settings())
    assert found
    assert [each.first for each in found] == [None] * len(found)


@pytest.mark.corpus
def test_the_faulty_gelu_is_named_from_statistics(corpus: Path) -> None:
    folder = corpus / "precision" / "msprobe_pytorch"
    found = compare_tensors(unit(folder / "none"), unit(folder / "gelu"))
    assert found.first is not None
    assert found.first.pair.left.name == "Functional.gelu.1.forward"


@pytest.mark.corpus
def test_every_row_of_the_sign_probe_is_flagged(corpus: Path) -> None:
    folder = corpus / "precision" / "statistics" / "sign_probe"
    found = compare_tensors(unit(folder / "b"), unit(folder / "n"))
    assert found.counts == {"introduces error": 4}


@pytest.mark.corpus
def test_added_casts_are_named(corpus: Path) -> None:
    folder = corpus / "precision" / "statistics"
    sides = [side_of_run(load_run(str(folder / n)), None) for n in ("reference", "half_softmax")]
    found = compare_units(sides[0], sides[1], Settings(step=0))
    assert found[0].comparison is not None
    assert Counter(op.type for op in found[0].comparison.only_right) == {"Cast": 12}
