"""Operators by what they are for, where their name alone tells it."""

from __future__ import annotations

import re

from irtool.ir.dataclass import dataclass


@dataclass(frozen=True, slots=True)
class Communication:
    """What a communication operator does.

    ``base`` is the collective that runs.  ``virtual`` operators compute nothing themselves: their
    gradient, or a later pass, makes the collective.
    """

    base: str
    virtual: bool = False


COMMUNICATION: dict[str, Communication] = {
    # Seen in dumps.
    **{
        name: Communication(name)
        for name in (
            "AllReduce", "AllGather", "ReduceScatter", "AlltoAll", "NeighborExchangeV2",
            "NeighborExchangeV2Grad", "Send", "Receive",
        )
    },
    "_MirrorOperator": Communication("AllReduce", virtual=True),
    "_MirrorMicroStepOperator": Communication("AllReduce", virtual=True),
    "_MicroStepAllGather": Communication("AllGather"),
    # Not seen in a dump: names from MindSpore's API and sources.
    **{
        name: Communication(name)
        for name in (
            "AllGatherV", "ReduceScatterV", "Reduce", "Broadcast", "AlltoAllV", "AlltoAllVC",
            "AllSwap", "NeighborExchange", "CollectiveScatter", "CollectiveGather", "Barrier",
            "BatchISendIRecv",
        )
    },
    "_MirrorMiniStepOperator": Communication("AllReduce", virtual=True),
    "_MiniStepAllGather": Communication("AllGather"),
    "AllToAll": Communication("AlltoAll"),
    "AllToAllv": Communication("AlltoAllV"),
    "AllToAllV": Communication("AlltoAllV"),
    "MatMulAllReduce": Communication("AllReduce"),
    "AllGatherMatmul": Communication("AllGather"),
    "MatmulReduceScatter": Communication("ReduceScatter"),
    "InnerCommAllReduce": Communication("AllReduce"),
    "InnerCommAllGather": Communication("AllGather"),
    "InnerCommReduceScatter": Communication("ReduceScatter"),
    "InnerCommAllToAllV": Communication("AlltoAllV"),
    "InnerCommIsend": Communication("Send"),
    "InnerCommIrecv": Communication("Receive"),
    "DistCommAllReduce": Communication("AllReduce"),
    "DistCommAllGather": Communication("AllGather"),
    "DistCommReduceScatter": Communication("ReduceScatter"),
    "DistCommBroadcast": Communication("Broadcast"),
    "DistCommIsend": Communication("Send"),
    "DistCommIrecv": Communication("Receive"),
}  # fmt: skip
"""Every communication operator by name."""

POINT_TO_POINT = ("Send", "Receive")
"""The collectives with one other end."""

PLUMBING = frozenset(
    ("Load", "Depend", "UpdateState", "MakeTuple", "TupleGetItem", "MakeList", "ListGetItem",
     "Return", "call", "J", "Partial", "Switch", "SwitchLayer", "StopGradient", "RefToEmbed",
     "EnvironGet", "EnvironSet", "EnvironCreate", "EnvironAdd", "MakeDict", "make_dict")
)  # fmt: skip
"""Operators that pass values on and compute nothing."""

VIRTUAL = frozenset(
    ("_VirtualDataset", "_VirtualOutput", "_VirtualDiv", "_VirtualPipelineEnd", "_VirtualAdd",
     "_VirtualAssignAdd", "_VirtualAccuGrad", "_VirtualStageEnd", "VirtualPipelineReceive",
     "_GetTensorSlice", "AShardIdentity", "_MirrorOperator", "_MirrorMiniStepOperator",
     "_MirrorMicroStepOperator", "_VirtualConverterBegin", "_VirtualConverterEnd")
)  # fmt: skip
"""Marks for the parallel passes, gone in ``validate``."""

ACCUMULATED = "accu_grads."
"""What MindSpore puts before a weight's name for the sum of its gradients over micro-batches."""

OPTIMIZERS = re.compile(
    r"(Apply(?!RotaryPosEmb)[A-Z]|Sparse(Apply|.*Adagrad|.*Ftrl)|Fused(Sparse|Adam|Cast|Weight|Mul)"
    r"|Lamb|Lars|LARS|Adam|AdamW|SGD|Muon)(?!Grad)"
)
"""Names of operators that update parameters."""
