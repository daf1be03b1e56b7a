"""Logs of compilations that MindSpore 2.7.0 and 2.10.0 refused: the first finding of each.

The networks were this project's own, compiled for virtual devices; the logs hold the ERROR lines
and the exception, with neutral paths. The codes are those that ``irtool check`` gives for the same
begin dumps (``refused``: MindSpore prints no reason there).
"""

from __future__ import annotations

import pytest

from tests.linting.failure.conftest import ReadLog

BY_VECTOR = "operator_info.cc:CheckStrategyByVector"
REPEATED = "operator_info.cc:InferRepeatedCalcInfo"
LAYOUT = "tensor_layout.cc"

REFUSED = {
    "add_mismatch": ("axis-mismatch", "Add", "arithmetic_info.cc:BaseCheckStrategy"),
    "batch_norm": ("axis-mismatch", "BatchNorm", "batchnorm_info.cc:CheckStrategy"),
    "bias_add": ("axis-mismatch", "BiasAdd", "bias_add_info.cc:CheckStrategy"),
    "bmm_batch": ("axis-mismatch", "BatchMatMul", "matmul_info.cc:CheckBatchDimensions"),
    "concat_axis": ("axis-split", "Concat", "concat_info.cc:CheckStrategy"),
    "concat_mismatch": ("axis-mismatch", "Concat", "concat_info.cc:CheckStrategy"),
    "conv_channel": ("axis-mismatch", "Conv2D", "conv2d_info.cc:CheckStrategy"),
    "conv_height": ("refused", "Conv2D", "operator_info.cc:InferByStrategy"),
    "conv_kernel": ("not-divisible", "Conv2D", BY_VECTOR),
    "cumsum_axis": ("axis-split", "CumSum", "activation_info.cc:CheckStrategy"),
    "dataset": ("device-count", "_VirtualDataset", REPEATED),
    "device_list": ("device-list", "MatMul", "device_manager.cc:CreateGroup"),
    "dropout": ("strategy-length", "Dropout", BY_VECTOR),
    "dynamic": ("not-divisible", "Add", BY_VECTOR),
    "expand": ("device-count", "ExpandDims", REPEATED),
    "gather_devices": ("axis-split", "Gather", "gather_info.cc:CheckSplitAxisStrategy"),
    "gather_divide": ("not-divisible", "Gather", BY_VECTOR),
    "gather_nd": ("axis-split", "GatherNd", "gathernd_info.cc:CheckStrategy"),
    "gather_size": ("strategy-size", "Gather", BY_VECTOR),
    "gelu_div": ("not-divisible", "GeLU", BY_VECTOR),
    "layer_norm": ("axis-split", "LayerNorm", "layer_norm_info.cc:CheckStrategy"),
    "layer_norm_gamma": ("axis-mismatch", "LayerNorm", "layer_norm_info.cc:CheckStrategy"),
    "layout_axis_twice": ("layout", "MatMul", "matmul_info.cc:log_func_mm"),
    "layout_devices": ("layout", "MatMul", f"{LAYOUT}:CheckDeviceNum"),
    "layout_divide": (
        "layout",
        "MatMul",
        f"{LAYOUT}:TensorShapeDimensionIsDividedBySplitDeviceDimension",
    ),
    "layout_output": ("out-layout", "Add", "arithmetic_info.cc:CheckOutputLayout"),
    "layout_rank": ("layout", "Add", f"{LAYOUT}:InitFromExtendVector"),
    "log_softmax": ("axis-split", "LogSoftmax", "activation_info.cc:CheckStrategy"),
    "max_pool": ("image-split", "MaxPool", "maxpool_info.cc:CheckHWStrategy"),
    "mm_contract": ("axis-mismatch", "MatMul", "matmul_info.cc:CheckInputStrategy"),
    "mm_devices": ("device-count", "MatMul", REPEATED),
    "mm_divide": ("not-divisible", "MatMul", BY_VECTOR),
    "mm_length": ("strategy-length", "MatMul", BY_VECTOR),
    "mm_out": ("out-strategy", "MatMul", "matmul_info.cc:CheckOutputStrategy"),
    "mm_power": ("not-power-of-two", "MatMul", BY_VECTOR),
    "mm_size": ("strategy-size", "MatMul", BY_VECTOR),
    "mm_zero": ("strategy-value", "MatMul", BY_VECTOR),
    "one_hot": ("strategy-length", "OneHot", BY_VECTOR),
    "reduce_size": ("strategy-size", "ReduceMean", BY_VECTOR),
    "relu_value": ("strategy-value", "ReLU", BY_VECTOR),
    "select": ("axis-mismatch", "Select", "select_info.cc:CheckStrategy"),
    "shared_parameter": ("parameter-users", "parameter", "step_parallel_utils.cc:IsSameTensorInfo"),
    "softmax_axis": ("axis-split", "Softmax", "activation_info.cc:CheckStrategy"),
    "square_len": ("strategy-length", "Square", BY_VECTOR),
    "strided": ("axis-split", "StridedSlice", "strided_slice_info.cc:CheckInputStrategy"),
    "tile_mul": ("not-divisible", "Tile", BY_VECTOR),
    "topk_last": ("axis-split", "TopK", "topk_info.cc:CheckStrategy"),
    "transpose_len": ("strategy-length", "Transpose", BY_VECTOR),
}
OF_THE_NETWORK = {
    "argmax_axis": ("loss-tuple", ""),
    "communication": ("communication", "AllReduce"),
    "devices6": ("devices", ""),
    "pipeline_no_micro": ("micro-batch", ""),
    "memory": ("out-of-memory", ""),
    "reshape_shard": ("reshape-strategy", "Reshape"),
    "search_devices": ("not-power-of-two", ""),
    "search_pinned": ("search", ""),
    "search_refused": ("axis-mismatch", "MatMul"),
    "shape_wrong": ("shape", "MatMul"),
    "stages3": ("devices", ""),
    "strategy_file": ("strategy-file", ""),
}
NEWER = (
    *("concat_axis", "conv_height", "device_list", "dynamic", "gather_divide"),
    *("layout_devices", "mm_contract", "shared_parameter"),
)


@pytest.mark.parametrize("name", REFUSED)
def test_operator_rule_and_code_of_a_refusal(read_log: ReadLog, name: str) -> None:
    findings = read_log("2.7.0", name)
    assert [each.role for each in findings] == ["cause"]
    assert (findings[0].code, findings[0].op, findings[0].check) == REFUSED[name]


@pytest.mark.parametrize("name", NEWER)
def test_the_same_of_a_newer_version(read_log: ReadLog, name: str) -> None:
    findings = read_log("2.10.0", name)
    assert [each.role for each in findings] == ["cause"]
    assert (findings[0].code, findings[0].op, findings[0].check) == REFUSED[name]


@pytest.mark.parametrize("name", OF_THE_NETWORK)
def test_what_is_no_operators_fault(read_log: ReadLog, name: str) -> None:
    causes = [each for each in read_log("2.7.0", name) if each.role == "cause"]
    assert [(each.code, each.op) for each in causes] == [OF_THE_NETWORK[name]]


def test_the_lines_of_one_refusal_are_one_finding(read_log: ReadLog) -> None:
    (finding,) = read_log("2.7.0", "mm_contract")
    assert finding.line == 1
    assert (finding.times, finding.echoes) == (1, 3)
    assert finding.message == (
        "the dimension that is summed up is split by 4 in the first input, "
        "by 2 in the second: [1, 4] and [2, 1]"
    )


def test_the_line_of_python_is_the_users_innermost(read_log: ReadLog) -> None:
    (finding,) = read_log("2.7.0", "mm_contract")
    assert finding.source is not None
    assert finding.source.shown == "net.py:49: return self.op(self.relu(x), self.w)"
    assert finding.frames[-1] == finding.source


def test_the_exception_names_the_operator_that_the_reason_does_not(read_log: ReadLog) -> None:
    (finding,) = read_log("2.7.0", "layout_rank")
    assert "AddInfo" not in finding.statement
    assert finding.op == "Add"


def test_the_exception_names_the_parameter(read_log: ReadLog) -> None:
    (finding,) = read_log("2.7.0", "shared_parameter")
    assert dict(finding.values)["parameter"] == "shared.weight"
    assert finding.message.startswith("the parameter shared.weight has several users")


def test_an_exception_without_its_log_still_names_the_operator(read_log: ReadLog) -> None:
    from irtool.linting.failure.log import LogReader

    reader = LogReader("run.log")
    reader.feed(1, "RuntimeError: Failure:operator MatMul init failed")
    (finding,) = reader.finish().findings
    assert (finding.code, finding.op, finding.check) == ("refused", "MatMul", "")
