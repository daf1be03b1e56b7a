"""Number types that MindSpore's collectives take: others pass the parallel pass and fail later.

Source: what type inference says of AllReduce and AllGather in MindSpore 2.7.0 and 2.10.0.
"""

from __future__ import annotations

from collections.abc import Iterator

from irtool.ir.graph import Node
from irtool.operators.table import operator_of
from irtool.sharding.network.analysis import Analysis, Judged
from irtool.sharding.network.sharded_nodes import primitive

TAKEN = {
    "AllReduce": frozenset({"BFloat16", "Complex64", "Float16", "Float32", "Int32", "Int8"}),
    "AllGather": frozenset({
        "BFloat16", "Complex64", "Float16", "Float32", "Int32", "Int64", "Int8", "UInt8",
    }),
}  # fmt: skip
"""By collective the types that it takes; of other collectives none is known to be refused."""


LATER = {"AllReduce": frozenset({"Bool", "Int16", "Int64"})}
"""By collective the types that MindSpore 2.10 takes, and 2.7.0 does not."""

LATER_DIALECT = "2.7.1 or later"
"""What tells dumps of 2.10 from those of 2.7.0; of which version between they are it does not."""


def takes_type(op: str, dtype: str | None) -> bool:
    """Whether a collective takes numbers of this type; true where nobody measured it.

    Args:
        op: name of the collective's primitive.
        dtype: as the dump spells it (``Float32``); None: not known.
    """
    return dtype is None or op not in TAKEN or dtype in TAKEN[op]


def check_sums(analysis: Analysis) -> None:
    """Refuse sums over devices of results whose numbers AllReduce does not take.

    Of several results only those count that somebody reads, or that are handed on as one.

    Args:
        analysis: with every operator judged; takes refusals, and doubts where versions differ.
    """
    for node, judged in analysis.judged.items():
        if judged.judgement.verdict != "legal":
            continue
        for output, op in _summed(judged):
            tensors = node.output_type.tensors if node.output_type is not None else ()
            dtype = tensors[output][0] if output < len(tensors) else None
            cast = dtype == "Bool" and operator_of(primitive(node)).is_("casts_truth")
            if cast or takes_type(op, dtype):
                continue
            if len(tensors) > 1 and not _is_read(analysis, node, output):
                continue
            message = f"{op} would add up result {output}, but it takes no {dtype}"
            later = analysis.network.dump.dialect == LATER_DIALECT
            if later and dtype in LATER.get(op, ()):
                analysis.doubt(f"{message} in MindSpore 2.7.0, in 2.10.0 it does", node, op)
                continue
            analysis.refuse("collective-type", message, "", node, op)


def _summed(judged: Judged) -> Iterator[tuple[int, str]]:
    for collective in judged.judgement.collectives:
        if collective.output is not None:
            yield collective.output, collective.op


def _is_read(analysis: Analysis, node: Node, output: int) -> bool:
    """Whether a result is taken out of the tuple, or the tuple goes on as it is."""
    for use in analysis.network.users_of(node):
        if primitive(use.node) != "TupleGetItem":
            return True
        index = use.node.operands[1]
        if getattr(index, "value", output) == output:
            return True
    return False
