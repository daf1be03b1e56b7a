"""How the search classifies operators, and which classes it does not cut itself.

The table of operators says which operator is of which class (``search``).

Source: MindSpore 2.7's log names the class of each operator ("Unknown operator type", "standalone
operator"); which operators are in which class shows in what they are given.
"""

from __future__ import annotations

from enum import Enum

from irtool.operators.call import OperatorCall
from irtool.operators.defaults import is_stand_alone
from irtool.operators.fitting import check_inputs
from irtool.operators.judgement import Unsure
from irtool.operators.table import operator_of


class NotSearchable(Exception):
    """MindSpore's own search fails here; the message says of what."""


class Kind(Enum):
    """A class of operators, as MindSpore's search tells them apart."""

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


def kind_of(call: OperatorCall, devices: int) -> Kind:
    """The class of an operator.

    Operators that the search does not know are stand-alone or batch parallel where they have no
    sharding rule either, else unknown: these stay whole.

    Args:
        call: the operator.
        devices: devices of one stage.
    """
    entry = operator_of(call.op)
    if entry.search is not None:
        return Kind[entry.search.kind.upper()]
    if entry.rule is not None:
        return Kind.UNKNOWN
    return Kind.STAND_ALONE if is_stand_alone(call, devices) else Kind.BATCH_PARALLEL


def fitting(call: OperatorCall) -> OperatorCall:
    """The call, which must have the inputs that its rule is about.

    Args:
        call: of an operator with or without a rule.

    Raises:
        NotSearchable: it has others; MindSpore would not compile it.
    """
    rule = operator_of(call.op).rule
    if rule is not None:
        try:
            check_inputs(rule, call)
        except Unsure as unsure:
            raise NotSearchable(unsure.reason) from None
    return call
