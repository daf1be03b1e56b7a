"""Weights that changed places, stand the other way round, or are packed in one."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

from irtool.cli.diff.checkpoints import is_for_checkpoints
from irtool.cli.main import app
from irtool.compare.checkpoints.comparison import CheckpointComparison
from irtool.compare.checkpoints.read import NoCheckpoint, read_checkpoint
from irtool.report.diff.checkpoints import answer_text
from tests.compare.checkpoints.checkpoint_files import write_ckpt, write_torch
from tests.compare.checkpoints.test_checkpoints import Array, compared, values, verdicts

LAYERS = 2


def weights() -> dict[str, Array]:
    made: dict[str, Array] = {}
    for layer in range(LAYERS):
        for place, name in enumerate("qkvo"):
            made[f"{layer}.{name}.weight"] = values(8, 8, seed=10 * layer + place)
            made[f"{layer}.{name}.bias"] = values(8, seed=100 + 10 * layer + place)
    return made


def beside(tmp_path: Path, right: dict[str, Array]) -> CheckpointComparison:
    left = write_ckpt(tmp_path / "left.ckpt", weights())
    return compared(left, write_ckpt(tmp_path / "right.ckpt", right))


def test_weights_of_two_layers_changed_places(tmp_path: Path) -> None:
    right = weights()
    right["0.o.weight"], right["1.o.weight"] = right["1.o.weight"], right["0.o.weight"]
    found = beside(tmp_path, right)
    told = {one.pair.left: one.difference.note for one in found.differing}
    assert told == {"0.o.weight": "1.o.weight", "1.o.weight": "0.o.weight"}
    assert verdicts(found)["0.o.weight"] == "exchanged"
    assert "o.weight is on the left" in answer_text(found)


def test_one_layers_weights_may_be_loaded_twice(tmp_path: Path) -> None:
    found = beside(tmp_path, weights() | {"1.q.weight": weights()["0.q.weight"]})
    assert verdicts(found)["1.q.weight"] == "exchanged"
    assert [one.difference.note for one in found.differing] == ["0.q.weight"]


def test_what_several_hold_tells_nothing(tmp_path: Path) -> None:
    """Of zeros nobody knows whose they are."""
    left = {"a": np.zeros((4, 4), np.float32), "b": np.zeros((4, 4), np.float32), "c": values(4, 4)}
    right = left | {"c": np.zeros((4, 4), np.float32)}
    paths = [write_ckpt(tmp_path / f"{n}.ckpt", side) for n, side in enumerate((left, right))]
    assert verdicts(compared(*paths))["c"] == "differs"


@pytest.mark.parametrize(("size", "verdict"), [(15, "differs"), (16, "exchanged")])
def test_few_elements_may_be_equal_by_chance(tmp_path: Path, size: int, verdict: str) -> None:
    left = {"a": values(size), "b": values(size, seed=2)}
    paths = [write_ckpt(tmp_path / "0.ckpt", left),
             write_ckpt(tmp_path / "1.ckpt", {"a": left["b"], "b": left["a"]})]  # fmt: skip
    assert set(verdicts(compared(*paths)).values()) == {verdict}


@pytest.mark.parametrize("dtype", [np.float32, np.float16])
def test_a_square_matrix_may_be_transposed(tmp_path: Path, dtype: type) -> None:
    turned = weights()["0.q.weight"].T.astype(dtype)
    found = beside(tmp_path, weights() | {"0.q.weight": np.ascontiguousarray(turned)})
    assert verdicts(found)["0.q.weight"] == "transposed"
    turned = turned.copy()
    turned[0, 1] *= dtype(1.5)
    found = beside(tmp_path, weights() | {"0.q.weight": np.ascontiguousarray(turned)})
    assert verdicts(found)["0.q.weight"] == "differs"


def packed(order: str = "qkv", heads: int = 1, turned: bool = False) -> dict[str, Array]:
    """Queries, keys and values in one: one after the other, or head by head."""
    made = weights()
    for layer in range(LAYERS):
        for kind in ("weight", "bias"):
            parts = [made.pop(f"{layer}.{name}.{kind}") for name in order]
            pieces = [np.split(part, heads) for part in parts]
            rows = np.concatenate([piece for head in zip(*pieces, strict=True) for piece in head])
            whole = np.ascontiguousarray(rows.T) if turned else rows
            made[f"{layer}.qkv.{kind}"] = whole
    return made


@pytest.mark.parametrize(
    "right", [packed(), packed("kvq"), packed(heads=4), packed(turned=True)],
    ids=["one after the other", "another order", "head by head", "transposed"],
)  # fmt: skip
def test_packed_ones_are_the_separate_ones(tmp_path: Path, right: dict[str, Array]) -> None:
    found = beside(tmp_path, right)
    assert found.is_equal
    assert len(found.parameters) == len(weights())
    assert sum(one.pair.how == "rows" for one in found.parameters) == 6 * LAYERS
    turned = compared(tmp_path / "right.ckpt", tmp_path / "left.ckpt")
    assert turned.is_equal
    assert turned.parameters[-1].pair.left.startswith("1.qkv")


def test_of_packed_ones_the_part_that_differs_is_named(tmp_path: Path) -> None:
    right = packed()
    right["1.qkv.weight"][8:16] *= np.float32(1.25)
    right["0.qkv.bias"][16] += np.float32(1)
    found = beside(tmp_path, right)
    assert {one.pair.left: one.difference.verdict for one in found.differing} == {
        "1.k.weight": "scaled", "0.v.bias": "differs",
    }  # fmt: skip


def test_of_packed_ones_two_parts_that_differ_are_left_alone(tmp_path: Path) -> None:
    """Nothing but their size says then that they belong together."""
    right = packed()
    right["1.qkv.weight"][4:12] *= np.float32(1.25)
    found = beside(tmp_path, right)
    assert [one.name for one in found.only_right] == ["1.qkv.weight", "1.qkv.bias"]


@pytest.mark.parametrize(("layers", "odd"), [(2, []), (3, ["2.k.weight", "2.q.weight"])])
def test_a_layer_that_is_packed_otherwise_than_most_is_told(
    tmp_path: Path, layers: int, odd: list[str]
) -> None:
    left: dict[str, Array] = {}
    right: dict[str, Array] = {}
    for layer in range(layers):
        parts = {name: values(8, 8, seed=10 * layer + n) for n, name in enumerate("qk")}
        left |= {f"{layer}.{name}.weight": part for name, part in parts.items()}
        order = "kq" if layer == layers - 1 else "qk"
        right[f"{layer}.qk.weight"] = np.concatenate([parts[name] for name in order])
    paths = write_ckpt(tmp_path / "0.ckpt", left), write_ckpt(tmp_path / "1.ckpt", right)
    found = compared(*paths)
    assert sorted(one.pair.left for one in found.differing) == odd
    if odd:
        assert "packed in another order than in most layers" in answer_text(found)


@pytest.mark.parametrize(("others", "is_paired"), [(62, True), (63, False)])
def test_parts_of_layers_with_other_numbers_are_looked_for_where_they_are_few(
    tmp_path: Path, others: int, is_paired: bool
) -> None:
    """Stages may count their layers from 0."""
    parts = {f"5.{name}": values(8, 8, seed=place) for place, name in enumerate("qk")}
    more = {f"{n + 100}.w": values(4, 8, seed=n + 100) for n in range(others)}
    whole = {"1.qk": np.concatenate(list(parts.values()))}
    left = write_ckpt(tmp_path / "0.ckpt", parts | more)
    found = compared(left, write_ckpt(tmp_path / "1.ckpt", whole))
    assert bool(found.parameters) == is_paired


def test_a_file_that_is_cut_off_is_compared_as_a_checkpoint(tmp_path: Path) -> None:
    whole = write_torch(tmp_path / "whole.pt", weights())
    cut = tmp_path / "cut.pt"
    cut.write_bytes(whole.read_bytes()[:-100])
    np.save(tmp_path / "tensor.npy", values(3))
    paths = [str(path) for path in (whole, cut, tmp_path / "tensor.npy")]
    assert is_for_checkpoints(paths[:2])
    assert not is_for_checkpoints([paths[0], paths[2]])
    assert not is_for_checkpoints([paths[1], paths[1]])
    with pytest.raises(NoCheckpoint, match="cut off: the directory of the archive"):
        read_checkpoint(paths[1])


@pytest.mark.parametrize(
    ("suffix", "text", "status"),
    [
        ("txt", "a = x.first\nb = x.second\n", 0),
        ("json", '{"a": "x.first", "b": "x.second"}', 0),
        ("yaml", "a.Dense: x.first.Linear\nb.Dense: x.second.Linear\n", 0),
        ("yaml", "a: x.first\nb: x.second\n", 0),
        ("yaml", "TopLayer:\n  a: x.first\n  b: x.second(Linear)\n", 0),
        ("yaml", "Net:\n  a: x.first\n", 2),  # no class is known
        ("yaml", "a: x.second\n", 1),
    ],
)
def test_map_files_name_modules_of_checkpoints(
    tmp_path: Path, suffix: str, text: str, status: int
) -> None:
    left = {f"{name}.weight": values(4, 4, seed=n) for n, name in enumerate("ab")}
    right = {f"x.{name}.weight": values(4, 4, seed=n) for n, name in enumerate(("first", "second"))}
    right["x.first.weight"] = right["x.first.weight"].astype(np.float16)  # not the same bits
    right["x.second.weight"] = right["x.second.weight"].astype(np.float16)
    paths = write_ckpt(tmp_path / "0.ckpt", left), write_ckpt(tmp_path / "1.ckpt", right)
    names = tmp_path / f"names.{suffix}"
    names.write_text(text)
    result = CliRunner().invoke(app, ["diff", *map(str, paths), "--map", str(names)])
    assert result.exit_code == status, result.output
