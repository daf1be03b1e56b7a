"""The tensors of all ranks of one step: which operator is the same one on each, and its values.

In a pipeline what a rank computes of one micro-batch is taken for a rank of its own.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import field
from typing import TYPE_CHECKING, Any

from irtool.compare.tensors.formats.payload import BadPayload, read_array
from irtool.compare.tensors.model import Op, TensorRun
from irtool.ir.dataclass import dataclass
from irtool.ir.graph import GraphParameter, Node
from irtool.ir.values import python_value

if TYPE_CHECKING:
    from numpy.typing import NDArray

_HAND_ON = ("Load", "Depend")
_ASSIGNS = ("AssignAdd", "Assign")
_ACCUMULATED = "accu_grads."
"""Before the name of a parameter that gradients of micro-batches are added up in."""
_MOST_STEPS = 20
_MOST_READERS = 500


@dataclass(slots=True)
class Ranks:
    """All ranks of one step of one run; operators are known by their names, which all ranks share.

    Attributes:
        runs: the tensors by rank, ascending; with micro-batches by rank x micros + micro-batch.
        micros: number of micro-batches.
        ops: operators of each rank by name.
        tensors: of each rank, places of tensors by operator and label.
    """

    runs: Mapping[int, TensorRun]
    micros: int = 1
    ops: Mapping[int, Mapping[str, Op]] = field(init=False)
    tensors: Mapping[int, Mapping[tuple[str, str], int]] = field(init=False)

    def __post_init__(self) -> None:
        self.ops = {rank: {op.name: op for op in run.ops} for rank, run in self.runs.items()}
        self.tensors = {
            rank: {
                (op.name, run.columns.labels[place]): place
                for op in run.ops
                for place in op.tensors
            }
            for rank, run in self.runs.items()
        }

    @property
    def lead(self) -> TensorRun:
        """The run of the lowest rank, whose operators speak for all."""
        return self.runs[min(self.runs)]

    def rank_of(self, part: int) -> int:
        """The rank of one of the runs."""
        return part // self.micros

    def shape(self, rank: int, name: str, label: str) -> tuple[int, ...] | None:
        """Dimensions of one tensor on one rank; None where the rank lacks it."""
        place = self.tensors[rank].get((name, label))
        return None if place is None else self.runs[rank].columns.shapes[place]

    def values(self, rank: int, name: str, label: str) -> NDArray[Any] | None:
        """One tensor on one rank; None where it lacks it or it cannot be read."""
        import numpy as np

        place = self.tensors[rank].get((name, label))
        if place is None:
            op = self.ops[rank].get(name)
            scalar = op.attributes.get(label) if op is not None else None
            is_number = isinstance(scalar, int | float) and not isinstance(scalar, bool)
            return np.asarray(scalar, np.float64) if is_number else None
        columns = self.runs[rank].columns
        if not columns.files[place]:
            return None
        try:
            return read_array(columns.files[place], columns.dtypes[place])
        except BadPayload:
            return None


def operand(node: Node, place: int) -> tuple[Node, int] | None:
    """Which node makes an operand, and which of its results that is.

    Args:
        node: the one that reads it.
        place: of the operand.

    Returns:
        The maker, seen through nodes that only hand on, and the place of the result; None for
        parameters and constants.
    """
    source: object = node.inputs[place] if place < len(node.inputs) else None
    result = 0
    for _ in range(_MOST_STEPS):
        if not isinstance(source, Node):
            return None
        if source.op == "TupleGetItem" and len(source.inputs) > 1:
            item = source.inputs[1]
            number = None if isinstance(item, Node) else python_value(item)  # type: ignore[arg-type]  # no node is a value
            result = number if isinstance(number, int) else 0
        elif source.op not in _HAND_ON:
            return source, result
        source = source.inputs[0] if source.inputs else None
    return None


def parameter_of(node: Node, place: int) -> GraphParameter | None:
    """The parameter that an operand is, seen through Load and Depend; None for anything else.

    Args:
        node: the one that reads it.
        place: of the operand.
    """
    source: object = node.inputs[place] if place < len(node.inputs) else None
    while isinstance(source, Node) and source.op in ("Load", "Depend"):
        source = source.inputs[0] if source.inputs else None
    return source if isinstance(source, GraphParameter) else None


def is_accumulated(parameter: GraphParameter | None) -> bool:
    """Whether gradients of micro-batches are added up in a parameter.

    Args:
        parameter: None: an operand that is none.
    """
    return parameter is not None and str(parameter.name).startswith(_ACCUMULATED)


def micro_of(node: Node | None) -> int | None:
    """The micro-batch that a node computes, where it or what it reads says so.

    Args:
        node: any; what adds up gradients of several micro-batches belongs to none.
    """
    micros: set[int] = set()
    waiting = [] if node is None else [node]
    for _ in range(_MOST_STEPS):
        if not waiting or len(micros) > 1:
            break
        item = waiting.pop()
        if item.op in _ASSIGNS:
            continue
        if item.micro is not None and item.op != "AddN":
            micros.add(item.micro)
            continue
        sums = item.op == "AddN"  # of one micro-batch where a result is read twice
        sources = [operand(item, place) for place in range(len(item.inputs) if sums else 1)]
        if sums and len(sources) == 1 and sources[0] is not None:
            tuple_node = sources[0][0]
            if tuple_node.op == "MakeTuple":
                sources = [operand(tuple_node, place) for place in range(len(tuple_node.inputs))]
        waiting += [source[0] for source in sources if source is not None]
    return micros.pop() if len(micros) == 1 else None


def readers(node: Node) -> Iterator[Node]:
    """The nodes that compute with a node's results, seen through those that only hand on.

    Args:
        node: whose results are followed.

    Yields:
        In no order that means anything; a node that reads several results may come several times.
    """
    waiting = [(user, node) for user in node.users]
    for _ in range(_MOST_READERS):
        if not waiting:
            return
        user, source = waiting.pop()
        if user.op == "TupleGetItem" or (user.op in _HAND_ON and user.inputs[0] is source):
            waiting += [(other, user) for other in user.users]
        elif user.op not in (*_HAND_ON, "UpdateState", "MakeTuple", "Return"):
            yield user


def node_ops(run: TensorRun) -> dict[Node, Op]:
    """The operator of the dump that each node of its graph is.

    Args:
        run: with the graph that it was joined with; none without one.
    """
    return {op.node: op for op in run.ops if op.node is not None}
