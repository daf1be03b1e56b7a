"""Attributes that say nothing of the computation make no difference, all others one."""

from __future__ import annotations

import pytest

from irtool.compare.attributes import topic
from irtool.compare.graph_diff import diff_graphs
from tests.compare.graphs import dump

ASKED = "a = MatMul(%x, %w) f32 (8, 16) @Default {{{key}: I64({value})}}"

HANDED_OUT = """
    unique_id forward_unique_id forward_comm_node_unique_id forward_node_name related_node_id
    related_comm_node_id related_fusion_key node_id fn_id recompute_id send_recv_rely uniq_name
    imply_path origin_node_unique_id
"""
"""What a compilation numbers anew: two of the same network differ in these."""

LEFT_BY_PASSES = """
    op_info_created need_cse_after_recompute keep_value_node_input checkpoint IsFeatureMapOutput
    abstract_adaptation_processed IsFeatureMapInputList topo_sort_rhs_first no_eliminate
    is_dynamic_len check_complex v_shape input_names output_names get_item_index call_call
    side_effect_propagate mirror_user_id origin_output_shape origin_input_shapes need_grad call_send
    send_call call_recv comm_reuse visited is_any_output
"""
"""What passes tell each other: the same network at another pass, or of another version."""


@pytest.mark.parametrize("key", [*HANDED_OUT.split(), *LEFT_BY_PASSES.split()])
def test_what_compilations_number_is_not_compared(key: str) -> None:
    one, other = (dump(ASKED.format(key=key, value=value)) for value in (1, 2))
    assert diff_graphs(one, other).is_identical


@pytest.mark.parametrize(
    ("keys", "kind"),
    [
        ("in_strategy out_strategy gen_strategy in_layout out_layout device_matrix"
         " inputs_tensor_map outputs_tensor_map BatchParallel", "sharding"),
        ("recompute duplicated recompute_comm_op recompute_depend recompute_insert"
         " recompute_sub_graph added_recompute_depend target_grad", "recompute"),
        ("group group_back group_ranks group_rank_ids rank_list rank_size dev_num src_rank"
         " dest_rank src_global_rank dst_global_rank", "group"),
        ("micro stage chunk seq_chunk order slice_index fusion index segment pipeline_begin"
         " pipeline_end forward_end sr_tag is_bp send_recv_reorder_depend send_receive_depend"
         " parameter_start first_parameter_cnode micro_interleaved_tag micro_interleaved_index"
         " micro_interleaved_forward_comm_order order_enforce_skip", "schedule"),
        ("axis transpose_a epsilon keep_prob", "attribute"),
    ],
)  # fmt: skip
def test_a_change_is_called_by_what_it_is_about(keys: str, kind: str) -> None:
    assert {topic(key) for key in keys.split()} == {kind}


@pytest.mark.parametrize("key", ["axis", "transpose_a", "fusion", "rank_size", "recompute"])
def test_what_means_something_is_compared(key: str) -> None:
    one, other = (dump(ASKED.format(key=key, value=value)) for value in (1, 2))
    assert not diff_graphs(one, other).is_identical
