"""Attributes of a node as a comparison sees them: what means something, and what is noise."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Literal, TypeAlias, cast

from irtool.ir.graph import Node
from irtool.ir.group_names import WORLD_GROUPS
from irtool.ir.values import TensorLiteral

Topic: TypeAlias = Literal["attribute", "sharding", "recompute", "group", "schedule"]
"""What an attribute is about: the word that people use for its change."""

NOISE = frozenset(
    (
        # Numbers that a compilation hands out, and what refers to them.
        "unique_id", "forward_unique_id", "forward_comm_node_unique_id", "forward_node_name",
        "related_node_id", "related_comm_node_id", "related_fusion_key", "node_id", "fn_id",
        "recompute_id", "send_recv_rely", "uniq_name", "imply_path", "origin_node_unique_id",
        # Marks that passes leave for each other.
        "op_info_created", "need_cse_after_recompute", "keep_value_node_input", "checkpoint",
        "abstract_adaptation_processed", "IsFeatureMapOutput", "IsFeatureMapInputList",
        "topo_sort_rhs_first", "no_eliminate", "is_dynamic_len", "check_complex", "v_shape",
        "input_names", "output_names", "get_item_index", "side_effect_propagate", "call_call",
        "mirror_user_id", "origin_output_shape", "origin_input_shapes", "need_grad", "call_send",
        "send_call", "call_recv", "comm_reuse", "visited", "is_any_output",
    )
)  # fmt: skip
"""Attributes that are never compared."""

_TOPICS: tuple[tuple[Topic, frozenset[str]], ...] = (
    (
        "sharding",
        frozenset(
            ("in_strategy", "out_strategy", "strategy", "gen_strategy", "in_layout", "out_layout",
             "device_matrix", "inputs_tensor_map", "outputs_tensor_map", "BatchParallel")
        ),
    ),
    (
        "recompute",
        frozenset(
            ("recompute", "duplicated", "recompute_comm_op", "recompute_depend", "recompute_insert",
             "recompute_sub_graph", "added_recompute_depend", "target_grad")
        ),
    ),
    (
        "group",
        frozenset(
            ("group", "group_back", "group_ranks", "group_rank_ids", "rank_list", "rank_size",
             "dev_num", "src_rank", "dest_rank", "src_global_rank", "dst_global_rank")
        ),
    ),
    (
        "schedule",
        frozenset(
            ("micro", "stage", "chunk", "seq_chunk", "order", "slice_index", "fusion", "index",
             "segment", "pipeline_begin", "pipeline_end", "forward_end", "sr_tag", "is_bp",
             "send_recv_reorder_depend", "send_receive_depend", "parameter_start",
             "first_parameter_cnode", "micro_interleaved_tag", "micro_interleaved_index",
             "micro_interleaved_forward_comm_order", "order_enforce_skip")
        ),
    ),
)  # fmt: skip

_TOPIC_OF: dict[str, Topic] = {key: topic for topic, keys in _TOPICS for key in keys}
_HASH = re.compile(r"\d{6,}")


def topic(key: str) -> Topic:
    """What an attribute is about, by its name; ``attribute`` where it is about nothing else.

    Args:
        key: name of the attribute.
    """
    return _TOPIC_OF.get(key, "attribute")


def attributes(node: Node) -> dict[str, object]:
    """All attributes of a node that mean something, values as hashable Python values.

    Of two blocks with one key the node's own counts, then the primal's, then the primitive's;
    ``in_strategy`` and the like are those in effect.

    Args:
        node: with its blocks.
    """
    collected: dict[str, object] = {}
    for block in (node.primitive_attributes, node.primal_attributes, node.node_attributes):
        if block is not None:
            collected.update(_clean(block))
    if node.strategy is not None:
        collected.update(_clean(node.strategy))
        if "strategy" in collected:
            collected["in_strategy"] = collected.pop("strategy")
    return collected


def _clean(block: Mapping[str, object]) -> Iterator[tuple[str, object]]:
    for key, value in block.items():
        if key in NOISE:
            continue
        if isinstance(value, str):
            value = _clean_text(key, value)
            if key == "primitive_target" and not value:
                continue
        yield key, frozen(value)


def _clean_text(key: str, text: str) -> str:
    if key in ("group", "group_back", "group_ranks"):
        return "world" if text.startswith(WORLD_GROUPS) or text == "WORLD_GROUP" else text
    return _HASH.sub("#", text)


def frozen(value: object) -> object:
    """A value made of hashable parts; True and 1 stay different.

    Args:
        value: an attribute's; what can't be hashed becomes its text.
    """
    if isinstance(value, bool):
        return ("bool", value)
    if isinstance(value, list | tuple):
        return tuple(frozen(item) for item in cast("list[object]", value))
    if isinstance(value, Mapping):
        entries = cast("Mapping[object, object]", value).items()
        return tuple((str(key), frozen(item)) for key, item in entries)
    try:
        hash(value)
    except TypeError:
        return repr(value)
    return value


def plain_text(value: object) -> str:
    """A frozen value as people write it.

    Args:
        value: as :func:`frozen` made it.
    """
    if isinstance(value, tuple):
        items = cast("tuple[object, ...]", value)
        if len(items) == 2 and items[0] == "bool":
            return str(items[1])
        return f"({', '.join(map(plain_text, items))}{',' if len(items) == 1 else ''})"
    if isinstance(value, TensorLiteral):  # a scalar's shape and name tell nothing
        shape = f"{list(value.shape)} " if value.shape else ""
        return f"{value.dtype} {shape}{value.data}"
    return str(value)


def instance_stem(node: Node) -> str | None:
    """The instance name without the hashes and counters in it; None of a node without one.

    Args:
        node: of any kind.
    """
    name = node.instance_name
    return _HASH.sub("#", name) if name else None
