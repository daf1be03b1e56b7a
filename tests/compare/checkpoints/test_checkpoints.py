"""Two checkpoints: which parameters differ, how, and what stands for what."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from irtool.artefacts.strategies import read_layouts
from irtool.compare.checkpoints.comparison import CheckpointComparison, compare_checkpoints
from irtool.compare.checkpoints.joining import side_of
from irtool.compare.checkpoints.read import NoCheckpoint, is_checkpoint, read_checkpoint
from irtool.report.diff.checkpoints import answer_text
from tests.compare.checkpoints.checkpoint_files import (
    write_ckpt,
    write_legacy_torch,
    write_safetensors,
    write_torch,
)

Array = NDArray[Any]


def values(*shape: int, seed: int = 1) -> Array:
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


def compared(left: Path, right: Path, **names: str) -> CheckpointComparison:
    sides = [side_of(read_checkpoint(str(path)), None) for path in (left, right)]
    return compare_checkpoints(sides[0], sides[1], names)


def verdicts(found: CheckpointComparison) -> dict[str, str]:
    return {one.pair.left: one.difference.verdict for one in found.parameters}


def bfloat16(array: Array) -> Array:
    """Bit patterns, rounded to nearest even."""
    bits = array.view(np.uint32).astype(np.uint64)
    return ((bits + 0x7FFF + (bits >> 16 & 1)) >> 16).astype(np.uint16)


STATE = {"a.weight": values(6, 4), "a.bias": values(6, seed=2), "step": np.array(3, np.int32)}


def test_formats_hold_the_same(tmp_path: Path) -> None:
    floats = {name: array for name, array in STATE.items() if name != "step"}
    ckpt = write_ckpt(tmp_path / "a.ckpt", STATE)
    packed = write_safetensors(tmp_path / "a.safetensors", STATE)
    torch = write_torch(tmp_path / "a.pth", floats)
    assert compared(ckpt, packed).is_equal
    assert verdicts(compared(packed, torch)) == {"a.weight": "equal", "a.bias": "equal"}
    assert [one.name for one in compared(packed, torch).only_left] == ["step"]


def test_a_large_parameter_stands_in_several_parts(tmp_path: Path) -> None:
    whole = {"w": values(64, 33)}
    left = write_ckpt(tmp_path / "a.ckpt", whole)
    assert compared(left, write_ckpt(tmp_path / "b.ckpt", whole, part=1000)).is_equal
    whole["w"][63, 32] += 1
    (one,) = compared(left, write_ckpt(tmp_path / "c.ckpt", whole, part=1000)).parameters
    assert (one.difference.verdict, one.difference.unequal) == ("differs", 1)
    assert one.difference.largest == pytest.approx(1, rel=1e-6)


def test_states_lie_in_dictionaries(tmp_path: Path) -> None:
    weight = values(3, 5)
    state = {"model": {"a.weight": weight}, "optimizer": {"state": {0: {"exp_avg": weight * 2}}}}
    found = read_checkpoint(str(write_torch(tmp_path / "a.pth", {**state, "epoch": 3})))
    assert list(found.ranks[0]) == ["model.a.weight", "optimizer.state.0.exp_avg"]
    assert (found.ranks[0]["optimizer.state.0.exp_avg"].array() == weight * 2).all()


@pytest.mark.parametrize(
    ("change", "verdict", "is_seen"),
    [
        (lambda w: w.copy(), "equal", False),
        (lambda w: w * np.float32(1.01), "scaled", True),
        (lambda w: w[::-1].copy(), "reordered", True),
        (lambda w: w.T.copy(), "transposed", True),
        (lambda w: w.reshape(8, 3), "shape", True),
        (lambda w: w[:5].copy(), "shape", True),
        (lambda w: w + np.float32(1e-3) * np.sign(values(6, 4, seed=9)), "differs", True),
        (lambda w: w.astype(np.float16), "rounded", False),
        (bfloat16, "rounded", False),
        (lambda w: bfloat16(w) + np.uint16(1), "differs", True),
    ],
)
def test_what_a_difference_is_called(
    change: Any, verdict: str, is_seen: bool, tmp_path: Path
) -> None:
    left = write_ckpt(tmp_path / "a.ckpt", {"w": STATE["a.weight"]})
    right = write_ckpt(tmp_path / "b.ckpt", {"w": change(STATE["a.weight"])})
    found = compared(left, right)
    assert verdicts(found) == {"w": verdict}
    assert found.is_equal is not is_seen


def test_numbers_of_another_type_are_no_others_in_another_order(tmp_path: Path) -> None:
    left = write_ckpt(tmp_path / "a.ckpt", {"w": np.array([3, 1, 2], np.float32)})
    for dtype, verdict in ((np.float32, "reordered"), (np.int32, "differs")):
        right = write_ckpt(tmp_path / "b.ckpt", {"w": np.array([1, 2, 3], dtype)})
        assert verdicts(compared(left, right)) == {"w": verdict}


def test_figures_of_a_difference(tmp_path: Path) -> None:
    left, right = np.array([3, 4, 0, 0], np.float32), np.array([3, 4, 12, 0], np.float32)
    found = compared(
        write_ckpt(tmp_path / "a.ckpt", {"w": left}), write_ckpt(tmp_path / "b.ckpt", {"w": right})
    )
    difference = found.parameters[0].difference
    assert (difference.unequal, difference.largest) == (1, 12)
    assert difference.relative == pytest.approx(12 / 5)
    assert difference.factor == 1
    assert difference.rest == pytest.approx(12 / 13)


def test_figures_of_small_and_of_no_differences(tmp_path: Path) -> None:
    """The largest of all is that of one element; what is 0 on both sides is 0 apart."""
    left = {"w": np.array([1, 2], np.float32), "n": np.array([0.0, 0.0], np.float32)}
    right = {"w": np.array([1, 2.125], np.float32), "n": np.array([0.0, -0.0], np.float32)}
    found = compared(write_ckpt(tmp_path / "a.ckpt", left), write_ckpt(tmp_path / "b.ckpt", right))
    weight, zero = (item.difference for item in found.parameters)
    assert (weight.unequal, weight.largest) == (1, 0.125)
    assert weight.relative == pytest.approx(0.125 / 5**0.5)
    # Zeros of two signs are other bits, and no distance.
    assert (zero.unequal, zero.largest, zero.relative) == (1, 0, 0)


def test_from_nothing_any_distance_is_infinite(tmp_path: Path) -> None:
    left, right = np.zeros(4, np.float32), np.array([0, 1, 0, 0], np.float32)
    found = compared(
        write_ckpt(tmp_path / "a.ckpt", {"w": left}), write_ckpt(tmp_path / "b.ckpt", {"w": right})
    )
    difference = found.parameters[0].difference
    assert (difference.relative, difference.rest) == (np.inf, 1.0)
    assert np.isnan(difference.factor)


@pytest.mark.parametrize(
    "dtype", [np.float16, np.float32, np.float64, np.int64, np.int8, np.complex64, np.complex128]
)
def test_equality_goes_by_bits(dtype: type, tmp_path: Path) -> None:
    """Of any width: what is not a number is equal to itself."""
    left = np.array([1, 2, 3], dtype)
    right = left.copy()
    if np.issubdtype(dtype, np.floating):
        left[1] = right[1] = np.nan
    same = compared(
        write_ckpt(tmp_path / "a.ckpt", {"w": left}), write_ckpt(tmp_path / "b.ckpt", {"w": right})
    )
    assert same.is_equal
    right[2] = 4
    other = compared(
        tmp_path / "a.ckpt", write_ckpt(tmp_path / "c.ckpt", {"w": right})
    ).parameters[0].difference  # fmt: skip
    assert (other.verdict, other.unequal, other.largest) == ("differs", 1, 1)


@pytest.mark.parametrize(("factor", "verdict"), [(1 + 2**-18, "scaled"), (1 + 2**-22, "differs")])
def test_a_factor_has_to_be_more_than_rounding(factor: float, verdict: str, tmp_path: Path) -> None:
    weight = values(50, 40)
    left = write_ckpt(tmp_path / "a.ckpt", {"w": weight})
    right = write_ckpt(tmp_path / "b.ckpt", {"w": (weight * np.float64(factor)).astype(np.float32)})
    assert verdicts(compared(left, right)) == {"w": verdict}


@pytest.mark.parametrize(("units", "verdict"), [(3.6, "scaled"), (4.4, "differs")])
def test_a_multiple_may_be_four_roundings_off(tmp_path: Path, units: float, verdict: str) -> None:
    weight = values(50, 40)
    signs = np.sign(values(50, 40, seed=2)).astype(np.float64)
    other = (weight * 1.5 * (1 + units * 2.0**-24 * signs)).astype(np.float32)
    left = write_ckpt(tmp_path / "a.ckpt", {"w": weight})
    assert verdicts(compared(left, write_ckpt(tmp_path / "b.ckpt", {"w": other}))) == {"w": verdict}


def test_a_factor_of_large_values_is_told_from_noise(tmp_path: Path) -> None:
    weight = values(1500, 1000) + np.float32(9)  # sums of squares cancel here
    left = write_ckpt(tmp_path / "a.ckpt", {"w": weight})
    noise = 1 + np.float32(1e-6) * values(1500, 1000, seed=2)
    for name, other, verdict in (
        ("b", weight * np.float32(1.01), "scaled"),
        ("c", weight * np.float32(1.01) * noise, "differs"),
    ):
        right = write_ckpt(tmp_path / f"{name}.ckpt", {"w": other})
        assert verdicts(compared(left, right)) == {"w": verdict}


def test_nan_is_counted_and_equal_nan_is_equal(tmp_path: Path) -> None:
    broken = values(10)
    broken[3] = np.nan
    left = write_ckpt(tmp_path / "a.ckpt", {"w": broken})
    assert compared(left, left).is_equal
    found = compared(write_ckpt(tmp_path / "b.ckpt", {"w": values(10)}), left).parameters[0]
    assert (found.difference.verdict, found.difference.broken_right) == ("differs", 1)
    assert found.difference.broken_left == 0
    assert found.difference.largest == 0  # of what is finite


def test_names_of_frameworks_wrappers_maps_and_values(tmp_path: Path) -> None:
    named = {
        "network.norm.gamma": values(20), "network.norm.beta": values(20, seed=2),
        "old.thing": values(4, 4, seed=3), "lone.secret": values(5, 5, seed=4),
        "small": np.array([1.0], np.float32),
    }  # fmt: skip
    other = {
        "module.norm.weight": values(20), "module.norm.bias": values(20, seed=2),
        "new.thing": values(4, 4, seed=3) + 1, "whatever": values(5, 5, seed=4),
        "tiny": np.array([1.0], np.float32),
    }  # fmt: skip
    left = write_ckpt(tmp_path / "a.ckpt", named)
    right = write_torch(tmp_path / "b.pth", other)
    found = compared(left, right, old="new")
    assert [(one.pair.left, one.pair.right, one.pair.how) for one in found.parameters] == [
        ("network.norm.gamma", "module.norm.weight", "framework's name"),
        ("network.norm.beta", "module.norm.bias", "framework's name"),
        ("old.thing", "new.thing", "map"),
        ("lone.secret", "whatever", "value"),
    ]
    assert [one.name for one in found.only_left] == ["small"]  # one element is equal by chance


@pytest.mark.parametrize(("elements", "is_paired"), [(16, True), (15, False)])
def test_equal_bits_of_sixteen_elements_are_no_chance(
    tmp_path: Path, elements: int, is_paired: bool
) -> None:
    left = write_ckpt(tmp_path / "a.ckpt", {"lone.secret": values(elements)})
    right = write_ckpt(tmp_path / "b.ckpt", {"whatever": values(elements)})
    assert bool(compared(left, right).parameters) == is_paired


def test_an_explicit_map_comes_before_equal_names(tmp_path: Path) -> None:
    left = write_ckpt(tmp_path / "a.ckpt", {"a": values(20), "b": values(20, seed=2)})
    right = write_ckpt(tmp_path / "b.ckpt", {"a": values(20, seed=2), "b": values(20)})
    assert compared(left, right, a="b", b="a").is_equal
    assert not compared(left, right).is_equal


def renamed(changed: Array, second: str = "attn") -> tuple[dict[str, Array], dict[str, Array]]:
    """Two layers whose modules are called otherwise on the right; one weight is another."""
    weights = [values(6, 4, seed=n) for n in range(2)]
    left = {f"layers.{n}.attention.gamma": weight for n, weight in enumerate(weights)}
    right = {"h.0.attn.weight": weights[0], f"h.1.{second}.weight": changed}
    for n in range(2):  # alike in both layers: no value tells which is which
        left[f"layers.{n}.attention.beta"] = np.zeros(20, np.float32)
        right[f"h.{n}.{'attn' if n == 0 else second}.bias"] = np.zeros(20, np.float32)
    return left, right


def test_modules_that_were_renamed_pair_the_rest(tmp_path: Path) -> None:
    left, right = renamed(values(6, 4, seed=1) * np.float32(1.5))
    found = compared(write_ckpt(tmp_path / "a.ckpt", left), write_torch(tmp_path / "b.pth", right))
    assert [(one.pair.right, one.pair.how, one.difference.verdict) for one in found.parameters] == [
        ("h.0.attn.weight", "value", "equal"),
        ("h.1.attn.weight", "renamed modules", "scaled"),
        ("h.0.attn.bias", "renamed modules", "equal"),
        ("h.1.attn.bias", "renamed modules", "equal"),
    ]


def test_modules_that_pairs_name_in_two_ways_pair_nothing(tmp_path: Path) -> None:
    left, right = renamed(values(6, 4, seed=1), second="cross")
    found = compared(write_ckpt(tmp_path / "a.ckpt", left), write_torch(tmp_path / "b.pth", right))
    assert {one.pair.how for one in found.parameters} == {"value"}
    assert len(found.only_left) == len(found.only_right) == 2


# -- ranks ---------------------------------------------------------------------------------------


def layout(matrix: list[int], tensor_map: list[int], shape: list[int], **more: int) -> object:
    """As MindSpore saves it; the matrix slowest first, the map by axes from the right."""
    usual = {"field": 0, "opt_weight_shard_size": 0, "opt_weight_shard_step": 0}
    return {**usual, "dev_matrix": matrix, "tensor_map": tensor_map, "tensor_shape": shape, **more}


def shared(folder: Path, slices: dict[int, dict[str, Array]]) -> Path:
    for rank, arrays in slices.items():
        write_ckpt(folder / f"rank_{rank}" / f"net-{rank}.ckpt", arrays)
    return folder


@pytest.fixture
def strategy(tmp_path: Path) -> str:
    """Four ranks: rows of ``w`` over the outer axis, columns over the inner one; ``v`` whole."""
    items = {
        "w": layout([2, 2], [1, 0], [4, 6]),
        "v": layout([2, 2], [-1], [5]),
        "o": layout([2, 2], [-1, 0], [8, 2], opt_weight_shard_size=2, opt_weight_shard_step=2),
    }
    path = tmp_path / "strategy.json"
    content = {"current_stage": 0, "parallel_strategy_item": {}, "parallel_layout_item": items}
    path.write_text(json.dumps(content))
    return str(path)


W, V, O = values(4, 6), values(5, seed=2), values(8, 2, seed=3)  # noqa: E741


def slices_of(rank: int) -> dict[str, Array]:
    outer, inner = rank // 2, rank % 2
    return {
        "w": W[2 * outer : 2 * outer + 2, 3 * inner : 3 * inner + 3].copy(),
        "v": V,
        "o": O[4 * outer : 4 * outer + 4, inner : inner + 1].copy(),
        "moments.w": 2 * W[2 * outer : 2 * outer + 2, 3 * inner : 3 * inner + 3],
    }


WHOLE = {"w": W, "v": V, "o": O, "moments.w": 2 * W}


def test_slices_are_put_together_by_a_strategy_file(tmp_path: Path, strategy: str) -> None:
    folder = shared(tmp_path / "cut", {rank: slices_of(rank) for rank in range(4)})
    cut = side_of(read_checkpoint(str(folder)), read_layouts(strategy))
    whole = side_of(read_checkpoint(str(write_ckpt(tmp_path / "w.ckpt", WHOLE))), None)
    found = compare_checkpoints(cut, whole)
    assert verdicts(found) == dict.fromkeys(("w", "v", "o", "moments.w"), "equal")
    assert found.is_equal


def test_a_replica_that_differs_is_named_with_its_rank(tmp_path: Path, strategy: str) -> None:
    slices = {rank: slices_of(rank) for rank in range(4)}
    slices[3]["v"] = V + 1
    cut = side_of(read_checkpoint(str(shared(tmp_path / "cut", slices))), read_layouts(strategy))
    assert [(one.name, one.rank, one.as_rank) for one in cut.odd] == [("v", 3, 0)]
    whole = side_of(read_checkpoint(str(write_ckpt(tmp_path / "w.ckpt", WHOLE))), None)
    found = compare_checkpoints(cut, whole)
    assert not found.is_equal
    text = answer_text(found)
    assert text.startswith("rank 3 does not hold the slice of v that rank 0 holds; what both have")


def test_missing_slices_and_unknown_layouts_are_said(tmp_path: Path, strategy: str) -> None:
    slices = {rank: slices_of(rank) for rank in range(3)}
    slices[1]["extra"] = values(2)
    slices[2]["extra"] = values(3)
    folder = str(shared(tmp_path / "cut", slices))
    cut = side_of(read_checkpoint(folder), read_layouts(strategy))
    assert cut.apart is not None
    assert cut.apart["w"] == "1 of 4 slices are missing"
    assert cut.apart["extra"] == "ranks hold slices of different shapes or types"
    # Without a strategy file what ranks hold is taken to be the whole, and they contradict it.
    alone = side_of(read_checkpoint(folder), None)
    assert ("w", 1, 0) in [(one.name, one.rank, one.as_rank) for one in alone.odd]


def test_a_dimension_along_two_axes_comes_back_as_one(tmp_path: Path) -> None:
    """JSON makes a dimension of each axis: 8 rows over both axes are 2 x 4 there."""
    weight = values(8, 3)
    items = {"w": layout([2, 2], [1, 0, -1], [2, 4, 3])}
    path = tmp_path / "strategy.json"
    path.write_text(json.dumps({"parallel_strategy_item": {}, "parallel_layout_item": items}))
    slices = {rank: {"w": weight[2 * rank : 2 * rank + 2].copy()} for rank in range(4)}
    folder = shared(tmp_path / "cut", slices)
    cut = side_of(read_checkpoint(str(folder)), read_layouts(str(path)))
    assert cut.parameters["w"].shape == (8, 3)
    whole = side_of(read_checkpoint(str(write_ckpt(tmp_path / "w.ckpt", {"w": weight}))), None)
    assert compare_checkpoints(cut, whole).is_equal


# -- what is no checkpoint -----------------------------------------------------------------------


@pytest.mark.parametrize("name", ["x.ckpt", "x.safetensors", "x.pth"])
@pytest.mark.parametrize("data", [b"\0", b"hello, this is no checkpoint at all", b"PK\x05\x06"])
def test_what_is_no_checkpoint_says_so(name: str, data: bytes, tmp_path: Path) -> None:
    (tmp_path / name).write_bytes(data)
    with pytest.raises(NoCheckpoint, match=r"\w"):
        read_checkpoint(str(tmp_path / name))


@pytest.mark.parametrize("name", ["x.ckpt", "x.pth"])
def test_an_empty_file_holds_nothing(name: str, tmp_path: Path) -> None:
    (tmp_path / name).write_bytes(b"")
    with pytest.raises(NoCheckpoint, match=r"holds no parameter|the file is empty"):
        read_checkpoint(str(tmp_path / name))


def test_files_of_before_pytorch_1_6_hold_the_same(tmp_path: Path) -> None:
    state = {"a.weight": values(6, 4), "a.bias": values(6, seed=2), "lr": 0.1}
    old = write_legacy_torch(tmp_path / "old.bin", state)
    assert compared(write_torch(tmp_path / "new.pth", state), old).is_equal
    old.write_bytes(old.read_bytes()[:-3])  # within the last storage
    assert verdicts(compared(tmp_path / "new.pth", old)) == {
        "a.weight": "equal", "a.bias": "unreadable",
    }  # fmt: skip
    old.write_bytes(old.read_bytes()[:-30])  # before it
    with pytest.raises(NoCheckpoint, match="cut off"):
        read_checkpoint(str(old))


def test_cut_off_values_are_said_of_their_parameter(tmp_path: Path) -> None:
    whole = write_safetensors(tmp_path / "a.safetensors", STATE)
    cut = tmp_path / "b.safetensors"
    cut.write_bytes(whole.read_bytes()[:-3])
    found = compared(whole, cut)
    assert verdicts(found)["step"] == "unreadable"
    assert [one.pair.left for one in found.unreadable] == ["step"]
    assert answer_text(found).startswith("1 of 3 (33.3 %) parameters cannot be read")
    assert verdicts(found)["a.weight"] == "equal"


# -- what is a checkpoint --------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("names", "is_one"),
    [
        ((), False),
        (("net.ckpt",), True),
        (("rank_0/net.ckpt", "rank_1/net.ckpt"), True),
        (("weights.safetensors",), True),
        (("strategy.ckpt",), False),  # says how checkpoints are cut
        (("18_validate_0001.ir", "notes.txt"), False),
        (("other/net.ckpt",), False),  # a folder that is no rank's
    ],
)
def test_a_folder_is_a_checkpoint_by_the_names_in_it(
    tmp_path: Path, names: tuple[str, ...], is_one: bool
) -> None:
    for name in names:
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_bytes(b"")
    assert is_checkpoint(str(tmp_path)) is is_one


@pytest.mark.parametrize(("name", "is_one"), [("a.ckpt", True), ("a.pt", True), ("a.ir", False)])
def test_a_file_is_a_checkpoint_by_its_name(tmp_path: Path, name: str, is_one: bool) -> None:
    assert not is_checkpoint(str(tmp_path / name))
    (tmp_path / name).write_bytes(b"")
    assert is_checkpoint(str(tmp_path / name)) is is_one
