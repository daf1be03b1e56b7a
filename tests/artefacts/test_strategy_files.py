"""Strategy files that MindSpore saved, in both forms; what is wrong with one is said where."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from irtool.artefacts.errors import ArtefactError
from irtool.artefacts.strategies import read_layouts, read_strategies
from irtool.artefacts.strategies.json import read_json_strategies
from irtool.artefacts.strategies.protobuf import read_protobuf_strategies

SAVED = Path(__file__).parents[2] / "samples/strategies"


def test_json_and_protobuf_of_one_network_say_the_same_but_for_shapes() -> None:
    for name in ("dp4tp2", "dp4tp2_opt", "merged/dp2tp2pp2"):
        one, other = (read_layouts(str(SAVED / f"{name}{end}")) for end in (".json", ".ckpt"))
        assert (one.form, other.form) == ("json", "protobuf")
        assert one.strategies == other.strategies
        assert one.devices == other.devices == 8
        told = [(each.device_matrix, each.tensor_map, each.shard_size, each.shard_step)
                for file in (one, other) for _, each in sorted(file.layouts.items())]  # fmt: skip
        half = len(told) // 2
        assert told[:half] == told[half:]
        assert all(each.shape is None for each in other.layouts.values())


def test_a_parameter_of_the_file() -> None:
    layout = read_layouts(str(SAVED / "dp4tp2_opt.json")).layouts["net.blocks.0.w2"]
    assert layout.device_matrix == (4, 2)
    assert layout.tensor_map == (-1, 0)
    assert layout.shape == (64, 256)
    assert (layout.shard_size, layout.shard_step) == (-1, 2)


def test_several_axes_of_one_dimension_stay_together_in_protobuf_alone() -> None:
    assert read_layouts(str(SAVED / "nested_layout.ckpt")).layouts["n.w"].tensor_map == (-1, (1, 0))
    expanded = read_layouts(str(SAVED / "nested_layout.json")).layouts["n.w"]
    assert (expanded.tensor_map, expanded.shape) == ((-1, 1, 0), (64, 2, 128))


def test_a_file_keyed_by_operators_has_no_layouts() -> None:
    path = str(SAVED / "operator_strategy.json")
    assert read_strategies(path).keys == "operators"
    with pytest.raises(ArtefactError, match="keyed by operators"):
        read_layouts(path)


def test_a_folder_of_stage_files_is_the_merged_file() -> None:
    folder = read_layouts(str(SAVED / "stages"))
    merged = read_layouts(str(SAVED / "merged/dp2tp2pp2.json"))
    assert folder.layouts == merged.layouts
    assert (folder.stages, folder.devices) == (2, 8)
    assert len(folder.parts) == 2


def test_a_file_of_a_later_stage_alone_is_refused_and_one_of_the_first_is_not() -> None:
    with pytest.raises(ArtefactError, match="of pipeline stage 1 alone") as caught:
        read_layouts(str(SAVED / "stages/dp2tp2pp2_s1.json"))
    assert "merge_pipeline_strategys" in caught.value.hint
    assert read_layouts(str(SAVED / "stages/dp2tp2pp2_s0.json")).devices == 4


def test_a_later_stage_that_calls_itself_the_first_is_refused(tmp_path: Path) -> None:
    """As the double recursive search writes it: ``stage`` is 0 in every entry."""
    document = json.loads((SAVED / "stages/dp2tp2pp2_s1.json").read_bytes())
    items = document["parallel_strategy_item"]
    for item in items.values():
        item["stage"] = 0
    items["Receive_net.blocks.2.gamma"] = {"parallel_strategy": [[1, 2]], "stage": 0}
    path = tmp_path / "s1.json"
    path.write_text(json.dumps(document), encoding="utf-8")
    with pytest.raises(ArtefactError, match="receive from another pipeline stage"):
        read_layouts(str(path))


def test_files_of_two_runs_do_not_merge(tmp_path: Path) -> None:
    for name, source in (("a.json", "stages/dp2tp2pp2_s0.json"), ("b.json", "dp2.json")):
        (tmp_path / name).write_bytes((SAVED / source).read_bytes())
    with pytest.raises(ArtefactError, match="says other layouts"):
        read_layouts(str(tmp_path))


def test_a_folder_without_the_first_stage_is_refused(tmp_path: Path) -> None:
    (tmp_path / "s1.json").write_bytes((SAVED / "stages/dp2tp2pp2_s1.json").read_bytes())
    with pytest.raises(ArtefactError, match="lacks pipeline stage 0 of 2"):
        read_layouts(str(tmp_path))


def changed(change: dict[str, Any]) -> bytes:
    document = json.loads((SAVED / "dp2.json").read_bytes())
    document["parallel_layout_item"]["net.w"] |= change
    return json.dumps(document, indent=1).encode()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"dev_matrix": [2.5]}, "dev_matrix holds 2.5, not a whole number"),
        ({"dev_matrix": None}, "dev_matrix is no list"),
        ({"dev_matrix": [0]}, "dev_matrix holds 0"),
        ({"tensor_map": [3, -1]}, "names axis 3, and the device matrix has 1"),
        ({"tensor_map": [0, 0]}, "names an axis twice"),
        ({"tensor_map": [0]}, "has 1 entries and its shape 2 dimensions"),
        ({"opt_weight_shard_size": True}, "opt_weight_shard_size is True"),
        ({"opt_weight_shard_size": 2}, "without opt_weight_shard_step"),
        ({"field": -1}, "field is -1"),
    ],
)
def test_what_is_wrong_is_said_at_its_key(change: dict[str, Any], message: str) -> None:
    data = changed(change)
    with pytest.raises(ArtefactError) as caught:
        read_json_strategies("saved.json", data)
    assert message in caught.value.message
    lines = data.decode().splitlines()
    assert '"net.w"' in lines[caught.value.line - 1]
    layouts = lines.index(' "parallel_layout_item": {') + 1
    assert caught.value.line > layouts


def test_a_json_error_has_its_place() -> None:
    with pytest.raises(ArtefactError) as caught:
        read_json_strategies("saved.json", b'{"parallel_strategy_item": {\n  "a" 1}}')
    assert (caught.value.line, caught.value.column) == (2, 7)


@given(st.integers(0, 2479), st.integers(0, 255))
@settings(max_examples=300, deadline=None)
def test_a_damaged_protobuf_file_is_read_or_refused(place: int, byte: int) -> None:
    data = bytearray((SAVED / "dp4tp2.ckpt").read_bytes())
    data[place % len(data)] = byte
    message = "byte"
    try:
        read_protobuf_strategies("saved.ckpt", bytes(data))
    except ArtefactError as error:
        message = error.message
    assert "byte" in message or "current_stage" in message


def test_a_file_that_ends_early_is_refused_wherever_that_shows() -> None:
    data = (SAVED / "dp4tp2.ckpt").read_bytes()
    whole = read_protobuf_strategies("saved.ckpt", data)
    for end in range(1, len(data)):
        try:
            found = read_protobuf_strategies("saved.ckpt", data[:end])
        except ArtefactError:
            continue
        # It ends between two items: protobuf says nowhere how many there are.
        assert len(found.layouts) + len(found.strategies) < len(whole.layouts) + len(
            whole.strategies
        )


@given(st.binary(max_size=200))
@settings(max_examples=200, deadline=None)
def test_any_bytes_are_read_or_refused(data: bytes) -> None:
    for read in (read_protobuf_strategies, read_json_strategies):
        try:
            read("saved", data)
        except ArtefactError:
            pass
