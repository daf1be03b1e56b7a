"""Runs whose ranks are cut as a layout file says: put together, compared, ranks named."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner
from numpy.typing import NDArray

from irtool.cli.main import app
from irtool.compare.layouts.assembled import (
    _are_others,  # pyright: ignore[reportPrivateUsage]
    _as_stated,  # pyright: ignore[reportPrivateUsage]
    _same_figures,  # pyright: ignore[reportPrivateUsage]
)
from irtool.compare.layouts.declared import BadLayout, SideLayout, layouts_of
from irtool.compare.layouts.parts import Degrees, Partition, partitions
from irtool.compare.runs.comparison import RunComparison, compare_runs
from irtool.compare.runs.sides import side_of_run
from irtool.compare.runs.units import Settings
from irtool.syntax.run import load_run
from tests.compare.dumps import Entry, msprobe

Values = NDArray[Any]
ROWS, WIDTH, INNER = 4, 8, 24


def whole_values(seed: int = 0) -> dict[str, Values]:
    draw = np.random.default_rng(seed)
    shapes = {"x": (ROWS, 6, WIDTH), "up": (INNER, WIDTH), "down": (WIDTH, INNER), "norm": (WIDTH,)}
    return {name: draw.normal(size=shape).astype(np.float32) for name, shape in shapes.items()}


def normed(x: Values, weight: Values) -> Values:
    spread = np.sqrt(x.var(-1, keepdims=True) + 1e-5)
    return ((x - x.mean(-1, keepdims=True)) / spread * weight).astype(np.float32)


def block(parts: list[dict[str, Values]], fault: str = "") -> list[list[Entry]]:
    """A norm and two products, their inner dimension over some ranks, and the sum after them."""
    middle = []
    for rank, part in enumerate(parts):
        h = normed(part["x"], part["norm"])
        up = h @ part["up"].T
        active = np.tanh(up * (1.05 if fault == "scale" and rank == len(parts) - 1 else 1))
        middle.append((h, up, active, active @ part["down"].T))
    total = np.sum([row[3] for row in middle], axis=0, dtype=np.float64).astype(np.float32)
    if fault == "mean":
        total = total / np.float32(len(parts))
    ranks: list[list[Entry]] = []
    for part, (h, up, active, y) in zip(parts, middle, strict=True):
        read = y if fault == "missing" else total
        entries: list[Entry] = [
            ("Functional.layer_norm.0.forward", [part["x"], [WIDTH], part["norm"]], h),
            ("Functional.linear.0.forward", [h, part["up"]], up),
            ("Torch.tanh.0.forward", [up], active),
            ("Functional.linear.1.forward", [active, part["down"]], y),
        ]
        if len(parts) > 1 and fault != "missing":
            entries.append(("Distributed.all_reduce.0.forward", [y], total))
        out = part["x"] + read
        entries.append(("Tensor.__add__.0.forward", [part["x"], read], out))
        entries.append(
            ("Functional.layer_norm.1.forward", [out, part["norm"]], normed(out, part["norm"]))
        )
        ranks.append(
            [(name, [v for v in given if isinstance(v, np.ndarray)], made)
             for name, given, made in entries]
        )  # fmt: skip
    return ranks


def cut(values: dict[str, Values], tensor: int, data: int = 1) -> list[list[dict[str, Values]]]:
    """Slices by data parallel and tensor parallel rank."""
    return [
        [
            {
                "x": x,
                "norm": values["norm"].copy(),
                "up": np.split(values["up"], tensor, 0)[t],
                "down": np.split(values["down"], tensor, 1)[t],
            }
            for t in range(tensor)
        ]
        for x in np.split(values["x"], data)
    ]


def written(folder: Path, ranks: list[list[Entry]], tensors: bool = True) -> Path:
    for rank, entries in enumerate(ranks):
        made = msprobe(folder / "parts" / str(rank), entries, tensors=tensors)
        (folder / "step0").mkdir(parents=True, exist_ok=True)
        (made / "step0" / "rank0").rename(folder / "step0" / f"rank{rank}")
    return folder


def run(
    folder: Path, tensor: int = 1, data: int = 1, fault: str = "", tensors: bool = True
) -> Path:
    cells = cut(whole_values(), tensor, data)
    if fault == "slice":
        cells[0][-1]["up"] = cells[0][0]["up"]
    if fault == "replica":
        cells[0][-1]["norm"][2] *= np.float32(1.5)
    if fault == "data":
        cells[-1][-1]["x"] = cells[-1][-1]["x"][::-1].copy()
    return written(folder, [rank for cell in cells for rank in block(cell, fault)], tensors)


def compared(left: Path, right: Path, *layouts: SideLayout) -> RunComparison:
    sides = [side_of_run(load_run(str(path)), None) for path in (left, right)]
    return compare_runs(sides[0], sides[1], Settings(layouts=(layouts[0], layouts[1])))


ONE = SideLayout()


@pytest.mark.parametrize(("tensor", "data"), [(2, 1), (4, 1), (1, 2), (2, 2)])
@pytest.mark.parametrize("tensors", [True, False])
def test_a_healthy_run_on_several_ranks_accuses_nobody(
    tmp_path: Path, tensor: int, data: int, tensors: bool
) -> None:
    single = run(tmp_path / "one", tensors=tensors)
    several = run(tmp_path / "several", tensor, data, tensors=tensors)
    found = compared(single, several, ONE, SideLayout(tensor, data))
    assert found.first is None
    assert found.units[0].pairs == 6  # all but the collective


def test_two_tensor_parallel_ranks_against_four(tmp_path: Path) -> None:
    two, four = run(tmp_path / "two", 2), run(tmp_path / "four", 4)
    assert compared(two, four, SideLayout(2), SideLayout(4)).first is None


@pytest.mark.parametrize(
    ("fault", "tensor", "data", "name", "ranks"),
    [
        ("scale", 2, 1, "Torch.tanh.0.forward", (1,)),
        ("scale", 4, 1, "Torch.tanh.0.forward", (3,)),
        ("slice", 2, 1, "Functional.linear.0.forward", (1,)),
        ("replica", 2, 1, "Functional.layer_norm.0.forward", (1,)),
        ("data", 1, 2, "Functional.layer_norm.0.forward", (1,)),
        ("missing", 2, 1, "Tensor.__add__.0.forward", (0, 1)),
        ("mean", 2, 1, "Tensor.__add__.0.forward", ()),
    ],
)
def test_a_planted_fault_is_named_with_its_ranks(
    tmp_path: Path, fault: str, tensor: int, data: int, name: str, ranks: tuple[int, ...]
) -> None:
    several = run(tmp_path / "several", tensor, data, fault)
    found = compared(run(tmp_path / "one"), several, ONE, SideLayout(tensor, data))
    assert found.first is not None
    assert found.first.pair.right.name == name
    assert found.first.ranks == ranks


def test_a_mean_instead_of_a_sum_is_traced_to_the_collective(tmp_path: Path) -> None:
    found = compared(run(tmp_path / "one"), run(tmp_path / "two", 2, 1, "mean"), ONE, SideLayout(2))
    assert found.first is not None
    assert found.first.maker_right is not None
    assert found.first.maker_right.type == "all_reduce"


def test_ranks_that_the_layout_does_not_make_are_said(tmp_path: Path) -> None:
    found = compared(run(tmp_path / "one"), run(tmp_path / "two", 2), ONE, SideLayout(4))
    assert not found.units
    assert "makes 4 ranks" in found.right.complaints[0]


def test_other_indices_on_one_rank_are_told_by_figures(tmp_path: Path) -> None:
    table = np.random.default_rng(5).normal(size=(9, WIDTH)).astype(np.float32)

    def entries(indices: Values) -> list[Entry]:
        return [("Functional.embedding.0.forward", [indices, table], table[indices])]

    one = written(tmp_path / "one", [entries(np.arange(5))], tensors=False)
    ranks = [entries(np.arange(5)), entries(np.arange(5) + 2)]
    two = written(tmp_path / "two", ranks, tensors=False)
    first = compared(one, two, ONE, SideLayout(2)).first
    assert first is not None
    assert first.between == "replica"
    assert first.ranks == (1,)


@pytest.mark.parametrize(("times", "is_healthy"), [(2, True), (3, False)])
def test_gradients_of_a_mean_over_a_part_of_the_batch_are_told_by_figures(
    tmp_path: Path, times: int, is_healthy: bool
) -> None:
    """Two ranks of data parallel: their gradients are twice as large, and no other multiple."""
    draw = np.random.default_rng(5)
    x, g = (draw.normal(size=(ROWS, WIDTH)).astype(np.float32) for _ in range(2))

    def entries(rows: slice, factor: int) -> list[Entry]:
        given, result, gradient = x[rows], np.exp(x[rows]), g[rows] * np.float32(factor)
        return [
            ("Torch.exp.0.forward", [given], result),
            ("Torch.exp.0.backward", [gradient], gradient * result),
        ]

    one = written(tmp_path / "one", [entries(slice(None), 1)], tensors=False)
    halves = [slice(0, ROWS // 2), slice(ROWS // 2, ROWS)]
    two = written(tmp_path / "two", [entries(half, times) for half in halves], tensors=False)
    found = compared(one, two, ONE, SideLayout(1, 2))
    assert (found.first is None) is is_healthy


def test_figures_of_parts_that_are_stated_in_half_precision_are_rounded() -> None:
    unit = 2.0**-8
    whole = (1.0, -1.0, 0.002, 10.0)
    parts = (1.0, -1.0, 0.0021, 10.0 * (1 + unit))
    assert _as_stated(parts, whole, "BFloat16", 0.05) == whole
    assert _as_stated(parts, whole, "Float32", 0.05) == parts
    longer = (1.0, -1.0, 0.002, 10.0 * (1 + 3 * unit))
    assert _as_stated(longer, whole, "BFloat16", 0.05) == longer
    other = (1.25, -1.0, 0.002, 10.0)
    assert _as_stated(other, whole, "BFloat16", 0.05) == other
    shifted = (1.0, -1.0, 0.01, 10.0)
    assert _as_stated(shifted, whole, "BFloat16", 0.05) == shifted


def test_figures_tell_a_vector_that_one_rank_is_given_otherwise(tmp_path: Path) -> None:
    draw = np.random.default_rng(3)
    x, weight = (draw.normal(size=size).astype(np.float32) for size in ((4, 6, 8), (8,)))
    h = np.tanh(x)

    def entries(scale: float) -> list[Entry]:
        given = (weight * np.float32(scale)).astype(np.float32)
        return [
            ("Torch.tanh.0.forward", [x], h),
            ("Tensor.__mul__.0.forward", [h, given], h * given),
        ]

    one = written(tmp_path / "one", [entries(1)], tensors=False)
    healthy = written(tmp_path / "two", [entries(1), entries(1)], tensors=False)
    odd = written(tmp_path / "odd", [entries(1), entries(1.01)], tensors=False)
    assert compared(one, healthy, ONE, SideLayout(2)).first is None
    first = compared(one, odd, ONE, SideLayout(2)).first
    assert first is not None
    assert first.pair.right.name == "Tensor.__mul__.0.forward"
    assert first.ranks == (1,)


def test_terms_of_gradients_may_have_one_norm() -> None:
    rows = [(1.0, -1.0, 0.0, 10.0), (0.9, -1.0, 0.0, 10.1)]
    assert _are_others(rows)
    assert not _are_others([rows[0], (0.99, -1.0, 0.0, 10.1)])


def test_gradients_of_small_norm_are_no_replicas_for_that() -> None:
    rows = [(1e-10, -1e-10, 0.0, 4e-10), (1e-10, -1e-10, 0.0, 2e-10)]
    assert not _same_figures(rows)
    assert _same_figures([rows[0], (1e-10, -1e-10, 1e-16, 4e-10)])


@pytest.mark.parametrize(("reads_data", "is_named"), [(True, True), (False, False)])
def test_terms_of_a_gradient_are_to_be_added_up_before_they_are_handed_on(
    tmp_path: Path, reads_data: bool, is_named: bool
) -> None:
    """A table reads parameters alone: the gradient of these may be summed after the step."""
    draw = np.random.default_rng(5)
    table, x, g = (draw.normal(size=(5, WIDTH)).astype(np.float32) for _ in range(3))
    terms = [g.copy(), g.copy()]
    terms[0][2:], terms[1][:2] = 0, 0  # each rank has its part of the sequence

    def entries(gradient: Values) -> list[Entry]:
        if reads_data:
            name, given = "Torch.exp.0", [x]
        else:
            name, given = "Functional.embedding.0", [np.arange(5), table]
        result = np.exp(x) if reads_data else table
        made = gradient * result if reads_data else gradient
        return [(f"{name}.forward", given, result), (f"{name}.backward", [gradient], made)]

    one = written(tmp_path / "one", [entries(g)])
    two = written(tmp_path / "two", [entries(term) for term in terms])
    first = compared(one, two, ONE, SideLayout(2)).first
    assert (first is not None) is is_named
    if first is not None:
        assert "the gradient input.0 is a term of a sum" in first.why


# -- ways to hold a tensor


def test_slices_of_several_matrices_in_one_are_put_together_piece_by_piece() -> None:
    whole = np.arange(8).reshape(8, 1)  # two matrices of four rows, each cut in two
    held = {(0, 0, 0): whole[[0, 1, 4, 5]], (0, 0, 1): whole[[2, 3, 6, 7]]}
    partition = Partition(None, 0, 2, (8, 1))
    assert (partition.joined(held) == whole).all()
    assert all((partition.part(whole, c, sorted(held)) == held[c]).all() for c in held)


def test_sizes_on_both_sides_say_the_axis() -> None:
    two, four = Degrees(1, 2, 0), Degrees(1, 4, 0)
    best = partitions(((16, 8), (8, 8)), (two, four), (None, None), True)[0]
    assert [partition.tensor for partition in best] == [0, 0]
    assert best[0].whole == (32, 8)
    assert not partitions(((16, 8), (5, 8)), (two, four), (None, None), True)


# -- the file


LAYOUT: dict[str, Any] = {
    "left": {},
    "right": {
        "tensor_parallel": 2, "data_parallel": 1, "pipeline_parallel": 1, "batch": 0,
        "parameters": {"layers.*.q.weight": 0, "layers.*.o.weight": 1},
    },
}  # fmt: skip


def test_the_file_names_axes_by_pattern() -> None:
    right = layouts_of(LAYOUT)[1]
    assert right.ranks == 2
    assert right.axis("layers.3.o.weight") == 1
    assert right.axis("model.layers.0.q.weight") == 0
    assert right.axis("norm.weight") is None


@pytest.mark.parametrize(
    ("document", "where"),
    [
        ([], ""),
        ({}, ""),
        ({"middle": {}}, "middle"),
        ({"left": {"tensor": 2}}, "left.tensor"),
        ({"right": {"tensor_parallel": 0}}, "right.tensor_parallel"),
        ({"right": {"batch": -1}}, "right.batch"),
        ({"right": {"batch": True}}, "right.batch"),
        ({"right": {"parameters": {"w": "rows"}}}, "right.parameters.w"),
    ],
)
def test_a_layout_that_says_nothing_sensible_names_the_key(document: object, where: str) -> None:
    with pytest.raises(BadLayout) as caught:
        layouts_of(document)
    assert caught.value.where == where


def test_ranks_are_numbered_as_megatron_does() -> None:
    layout = SideLayout(tensor_parallel=2, data_parallel=2, pipeline_parallel=2)
    assert layout.position(1) == (0, 0, 1)
    assert layout.position(2) == (0, 1, 0)
    assert layout.position(4) == (1, 0, 0)


# -- the command


def asked(*arguments: object) -> tuple[int, str]:
    result = CliRunner().invoke(app, ["diff", *map(str, arguments)])
    return result.exit_code, result.output


@pytest.mark.parametrize("suffix", ["json", "toml"])
def test_the_command_reads_a_file_in_either_form(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"layout.{suffix}"
    path.write_text(
        json.dumps(LAYOUT) if suffix == "json" else "[left]\n[right]\ntensor_parallel = 2\n"
    )
    one, two = run(tmp_path / "one"), run(tmp_path / "two", 2)
    status, text = asked(one, two, "--layout", path)
    assert status == 0, text
    status, text = asked(one, run(tmp_path / "bad", 2, 1, "scale"), "--layout", path)
    assert status == 1
    assert "error begins at Torch.tanh.0.forward on rank 1" in text


def test_a_bad_file_is_refused_at_its_line(tmp_path: Path) -> None:
    path = tmp_path / "layout.json"
    path.write_text('{\n "right": {\n  "tensor_parallel": 0\n }\n}\n')
    one, two = run(tmp_path / "one"), run(tmp_path / "two", 2)
    status, text = asked(one, two, "--layout", path)
    assert status == 2
    assert "layout.json:3:4" in text.replace("\n", "")


def test_a_proposed_file_is_one_that_serves(tmp_path: Path) -> None:
    one, two = run(tmp_path / "one"), run(tmp_path / "four", 2, 2)
    path = tmp_path / "proposed.json"
    assert asked(one, two, "--write-layout", "-o", path)[0] == 0
    right = json.loads(path.read_text())["right"]
    assert (right["tensor_parallel"], right["data_parallel"], right["batch"]) == (2, 2, 0)
    assert asked(one, two, "--layout", path)[0] == 0
