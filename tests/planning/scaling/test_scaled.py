"""A dump of other sizes is the one that MindSpore compiles at those sizes."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import irtool
from irtool.ir.dump import Dump
from irtool.ir.graph import GraphParameter
from irtool.planning.scaling.scaled import Scaled, scaled
from irtool.planning.search.operator_candidates import CannotPlan

SAMPLES = Path(__file__).parents[3] / "samples"
GPT = SAMPLES / "gpt" / "step_parallel_begin_0018.ir"


def gpt() -> Dump:
    return irtool.load(str(GPT))


def sizes(found: Scaled) -> dict[str, int]:
    return {name: after for name, (_, after) in found.sizes.items()}


def shape(dump: Dump, name: str) -> tuple[int, ...] | None:
    (found,) = [item for item in dump.parameters if item.name == name]
    return found.type.dimensions if found.type is not None else None


def test_roles_are_found_where_vocabulary_and_feed_forward_have_one_size() -> None:
    assert sizes(scaled(gpt(), {})) == {
        "layers": 2, "batch": 8, "sequence": 32, "vocabulary": 256, "hidden": 64, "heads": 4,
        "kv_heads": 4, "head_size": 16, "feed_forward": 256,
    }  # fmt: skip


def test_hidden_keeps_the_head_size_and_takes_heads_and_feed_forward_along() -> None:
    found = scaled(gpt(), {"hidden": 256})
    assert sizes(found) == {
        "layers": 2, "batch": 8, "sequence": 32, "vocabulary": 256, "hidden": 256, "heads": 16,
        "kv_heads": 16, "head_size": 16, "feed_forward": 1024,
    }  # fmt: skip
    assert shape(found.dump, "layers.1.up.weight") == (1024, 256)
    assert shape(found.dump, "moments.layers.1.up.weight") == (1024, 256)
    assert shape(found.dump, "embedding") == (256, 256)


def test_named_heads_change_the_head_size() -> None:
    found = sizes(scaled(gpt(), {"hidden": 256, "heads": 8}))
    assert (found["heads"], found["kv_heads"], found["head_size"]) == (8, 8, 32)


def test_a_named_head_size_changes_the_heads() -> None:
    found = sizes(scaled(gpt(), {"hidden": 256, "head_size": 64}))
    assert (found["heads"], found["head_size"]) == (4, 64)


def test_the_vocabulary_alone_leaves_the_feed_forward_size_of_the_same_number() -> None:
    found = scaled(gpt(), {"vocabulary": 1000})
    assert shape(found.dump, "embedding") == (1000, 64)
    assert shape(found.dump, "head.weight") == (1000, 64)
    assert shape(found.dump, "layers.0.up.weight") == (256, 64)
    (one_hot,) = found.dump.nodes("OneHot")
    assert one_hot.output_type is not None
    assert one_hot.output_type.dimensions == (256, 1000)
    assert one_hot.operands[1].value == 1000  # type: ignore[union-attr]


def test_batch_and_sequence_move_the_constants_of_reshapes() -> None:
    found = scaled(gpt(), {"batch": 16, "sequence": 128})
    assert shape(found.dump, "inputs0") == (16, 128)
    assert shape(found.dump, "mask") == (128, 128)
    for node in found.dump.nodes("Reshape"):
        asked = [getattr(item, "value", None) for item in getattr(node.operands[1], "items", ())]
        made = node.output_type.dimensions if node.output_type is not None else ()
        assert made is not None
        assert [n for n in asked if n != -1] == [m for n, m in zip(asked, made) if n != -1]  # noqa: B905


def test_more_layers_have_weights_states_and_updates_of_their_own() -> None:
    found = scaled(gpt(), {"layers": 5})
    names = [item.name for item in found.dump.parameters]
    assert len(set(names)) == len(names)
    assert {f"layers.{n}.attention.query.weight" for n in range(5)} <= set(names)
    assert {f"moments.layers.{n}.attention.query.weight" for n in range(5)} <= set(names)
    scopes = {node.scope for node in found.dump.nodes("Softmax")}
    assert len(scopes) == 5
    updates = list(found.dump.nodes("ApplyMomentum"))
    assert len(updates) == len([name for name in names if name.startswith("moments.")])


def test_what_is_scaled_reads_back_as_it_is() -> None:
    found = scaled(gpt(), {"layers": 3, "hidden": 128})
    text = irtool.dumps(found.dump)
    again = irtool.load(text.encode())
    assert not again.problems
    assert sizes(scaled(again, {})) == sizes(found)


@pytest.mark.parametrize(
    ("asked", "says"),
    [
        ({"layers": 1}, "has 2 layers"),
        ({"hidden": 65}, "heads is 4 and would be 4.0625"),
        ({"hidden": 96, "heads": 6, "kv_heads": 4}, "can't share"),
    ],
)
def test_what_can_not_be_is_refused(asked: dict[str, int], says: str) -> None:
    with pytest.raises(CannotPlan, match=re.escape(says)):
        scaled(gpt(), asked)


def test_a_network_without_attention_has_no_heads() -> None:
    dump = irtool.load(str(next((SAMPLES / "mlp_semi_auto").glob("*begin*"))))
    with pytest.raises(CannotPlan, match="no heads"):
        scaled(dump, {"heads": 8})


@pytest.mark.corpus
def test_another_batch_is_the_dump_that_mindspore_compiles(corpus: Path) -> None:
    def text(dump: Dump) -> list[str]:
        lines = re.sub(r"CNode_\d+", "", irtool.dumps(dump)).splitlines()
        return [line for line in lines if "subgraph instance" not in line and "# " not in line]

    small, large = (
        irtool.load(str(corpus / "planning" / name / "step_auto_parallel_begin.ir"))
        for name in ("gpt_L2_B8_rec_8", "gpt_L2_B64_rec_512")
    )
    assert text(scaled(small, {"batch": 64}).dump) == text(large)


def packed(name: str) -> Dump:
    return irtool.load(str(Path(__file__).parent / "dumps" / f"{name}_small.ir.xz"))


@pytest.mark.parametrize("name", ["llama", "former"])
def test_batch_and_head_size_of_one_number_are_told_apart(name: str) -> None:
    found = sizes(scaled(packed(name), {}))
    assert (found["batch"], found["head_size"]) == (16, 16)
    assert (found["heads"], found["kv_heads"]) == (4, 2)
    assert (found["sequence"], found["feed_forward"], found["vocabulary"]) == (32, 192, 512)


def test_heads_of_values_grow_with_those_of_queries() -> None:
    asked = {"hidden": 1024, "heads": 16, "kv_heads": 8}
    found = scaled(packed("former"), asked)
    assert shape(found.dump, "network.blocks.1.attention.out.weight") == (1024, 1024)
    assert shape(found.dump, "network.blocks.1.attention.qkv.weight") == (1024 + 2 * 8 * 64, 1024)
    for node in found.dump.nodes("FlashAttentionScore"):
        assert node.output_type is not None
        assert node.output_type.tensors[-1][1] == (16, 16, 32, 64)


def test_code_that_equal_cells_share_belongs_to_the_layer_that_it_computes_of() -> None:
    """GeLU and the heads' Transposes of the second layer bear the scope of the first."""
    small = packed("encoder")
    shared = [node for node in small.nodes("GeLU") if "0-Block" in node.scope]
    assert len(shared) == len(list(small.nodes("GeLU"))) == 2
    found = scaled(small, {"layers": 5}).dump
    for op, a_layer in (("GeLU", 1), ("BatchMatMul", 2), ("Transpose", 4), ("Softmax", 1)):
        assert len(list(small.nodes(op))) == 2 * a_layer, op
        assert len(list(found.nodes(op))) == 5 * a_layer, op
    read = {
        source.name
        for node in found.nodes("Load")
        for source in node.inputs
        if isinstance(source, GraphParameter) and source.name.endswith("wide.weight")
    }
    assert read == {f"network.blocks.{layer}.wide.weight" for layer in range(5)}
