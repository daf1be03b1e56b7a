"""How the search classifies operators, and which classes it does not cut itself.

Source: MindSpore 2.7's log names the class of each operator ("Unknown operator type", "standalone
operator"); which operators are in which class shows in what they are given.
"""

from __future__ import annotations

from enum import Enum

from irtool.operators.call import OperatorCall
from irtool.operators.defaults import is_stand_alone
from irtool.operators.table import rule_of


class NotSearchable(Exception):
    """MindSpore's own search fails here; the message says of what."""


class Kind(Enum):
    """A class of operators."""

    UNKNOWN = "unknown"
    MATMUL = "matrix product"
    BATCH_MATMUL = "batched matrix product"
    CONVOLUTION = "convolution"
    POOLING = "pooling"
    ELEMENTWISE = "element-wise"
    ACTIVATION = "activation"
    BATCH_NORM = "batch normalisation"
    LAYER_NORM = "layer normalisation"
    RMS_NORM = "root mean square normalisation"
    RESHAPE = "reshape"
    FLATTEN = "flatten"
    BIAS_ADD = "bias"
    SOFTMAX = "softmax"
    SPARSE_CROSS_ENTROPY = "sparse cross entropy"
    CROSS_ENTROPY = "cross entropy"
    ONE_HOT = "one-hot"
    SQUEEZE = "squeeze"
    CAST = "cast"
    REDUCE = "reduction"
    PARAMETRIC = "parametric activation"
    GATHER = "gather"
    EXPAND_DIMS = "expand dimensions"
    STRIDED_SLICE = "strided slice"
    ARGUMENT = "argument with value"
    SEGMENT = "unsorted segments"
    CUMULATIVE = "cumulative"
    STAND_ALONE = "stand-alone"
    BATCH_PARALLEL = "batch parallel"
    PAD = "pad"
    VIRTUAL = "virtual"
    ATTENTION = "attention"


CUT = frozenset({
    Kind.UNKNOWN, Kind.MATMUL, Kind.CONVOLUTION, Kind.POOLING, Kind.BATCH_NORM,
    Kind.SPARSE_CROSS_ENTROPY, Kind.CROSS_ENTROPY, Kind.PARAMETRIC, Kind.SEGMENT, Kind.VIRTUAL,
})  # fmt: skip
"""Classes that the search cuts; all others are left out of it, and follow their neighbours."""

_MEMBERS: dict[Kind, str] = {
    Kind.MATMUL: "MatMul",
    Kind.BATCH_MATMUL: "BatchMatMul",
    Kind.CONVOLUTION: "Conv2D Conv2DTranspose",
    Kind.POOLING: "MaxPool MaxPoolV2 Pooling MaxPoolWithArgmax SimpleMean",
    Kind.RESHAPE: "Reshape",
    Kind.FLATTEN: "Flatten",
    Kind.BIAS_ADD: "BiasAdd",
    Kind.BATCH_NORM: "BatchNorm",
    Kind.LAYER_NORM: "LayerNorm",
    Kind.RMS_NORM: "RmsNorm",
    Kind.SPARSE_CROSS_ENTROPY: "SparseSoftmaxCrossEntropyWithLogits",
    Kind.CROSS_ENTROPY: "SoftmaxCrossEntropyWithLogits",
    Kind.ONE_HOT: "OneHot",
    Kind.SQUEEZE: "Squeeze",
    Kind.CAST: "Cast",
    Kind.REDUCE: "ReduceSum ReduceMax ReduceMin ReduceMean",
    Kind.UNKNOWN: "GetNext",
    Kind.VIRTUAL: "_VirtualDataset _VirtualOutput",
    Kind.GATHER: "Gather",
    Kind.EXPAND_DIMS: "ExpandDims",
    Kind.STRIDED_SLICE: "StridedSlice",
    Kind.ARGUMENT: "ArgMaxWithValue ArgMinWithValue",
    Kind.SEGMENT: "UnsortedSegmentSum UnsortedSegmentMax UnsortedSegmentMin",
    Kind.ACTIVATION: """
        Activation ReLU SiLU ReLU6 Sigmoid SigmoidCrossEntropyWithLogits HSigmoid GeLU FastGeLU
        Tanh Softplus Softsign""",
    Kind.PARAMETRIC: "PReLU",
    Kind.SOFTMAX: "Softmax ReverseV2 LogSoftmax Cholesky",
    Kind.PAD: "PadV3",
    Kind.CUMULATIVE: "CumSum",
    Kind.BATCH_PARALLEL: "GatherD",
    Kind.ATTENTION: "FlashAttentionScore",
    Kind.ELEMENTWISE: """
        Split Transpose L2Normalize Add TensorDot Sub Mul Div RealDiv Hypot Igamma Igammac LeftShift
        RightShift NextAfter Zeta Gcd Sqrt Neg Pow Exp Log Cos Lgamma Trunc ACos Asin Asinh Atan
        Atanh Expm1 Log1p LogicalNot LogicalAnd LogicalOr Square Abs Acosh AddN AccumulateNV2 Atan2
        Elu Erf Erfc Mod Floor Ceil FloorDiv FloorMod Greater GreaterEqual HSwish Less LessEqual
        Maximum Minimum Equal NotEqual ApproximateEqual Inv BesselI0e BesselI1e BesselI0 BesselI1
        BesselJ0 BesselJ1 ZerosLike OnesLike DivNoNan Reciprocal Round Rsqrt Sign Sin Sinh Tan
        Assign AssignAdd AssignSub DropoutDoMask Dropout Stack Select Concat Tile MaskedFill FillV2
        ScatterUpdate KVCacheMgr""",
}

KINDS: dict[str, Kind] = {name: kind for kind, names in _MEMBERS.items() for name in names.split()}
"""The class of each primitive that the search knows."""


def kind_of(call: OperatorCall, devices: int) -> Kind:
    """The class of an operator.

    Operators that the search does not know are stand-alone or batch parallel where they have no
    sharding rule either, else unknown: these stay whole.

    Args:
        call: the operator.
        devices: devices of one stage.
    """
    found = KINDS.get(call.op)
    if found is not None:
        return found
    if rule_of(call.op) is not None:
        return Kind.UNKNOWN
    return Kind.STAND_ALONE if is_stand_alone(call, devices) else Kind.BATCH_PARALLEL
