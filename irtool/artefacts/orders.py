"""Orders of execution that a run recorded.

- ``execute_order/execute_order.csv``: every launch of a dry run (``MS_SIMULATION_LEVEL``), step
  after step; on Ascend ``comm_execute_order.csv`` beside it: the collectives.
- ``execution_order/ms_execution_order_graph_<g>.csv``: the kernels of a graph, once, in a
  topological order that is not that of launches, under numbers (``-op<k>``) that MindSpore gave up
  afterwards; written by the tensor dump.

Formats: files that MindSpore 2.7.0 wrote on a CPU; ``comm_execute_order.csv`` after its reader,
``mindspore/utils/runtime_execution_order_check.py``, as only Ascend writes it.
"""

from __future__ import annotations

from collections.abc import Iterator

from irtool.artefacts.damage import Damage
from irtool.artefacts.tables import Row, rows, text_lines
from irtool.ir.dataclass import dataclass

TENSOR_DUMP_HEADER = "NodeExecutionOrder-FullNameWithScope"
NO_EVENT = 4294967295


@dataclass(frozen=True, slots=True)
class OrderRow:
    """A launch: ``index`` counts from 1 over all steps."""

    line: int
    index: int
    node: str
    stream: int | None
    group: str


def launch_rows(path: str, damage: Damage) -> Iterator[OrderRow]:
    """The rows of ``execute_order.csv``: each launch of each step, in order.

    Cells are quoted as C++ does it, with backslashes.

    Args:
        path: the file.
        damage: collects the rows without an index or a name.
    """
    for row in rows(path, ("index", "node_name", "stream_id"), damage, escaped=True):
        index, node = row.integer("index"), row.text("node_name")
        if index is None or not node:
            damage.add(row.line, "no index or no name", text=node)
            continue
        yield OrderRow(row.line, index, node, row.integer("stream_id"), row.text("group"))


@dataclass(frozen=True, slots=True)
class CollectiveRow:
    """A collective in the order in which a rank issues it.

    Attributes:
        line: of the file.
        index: of its row in ``execute_order.csv``.
        group: MindSpore's name of it.
        ranks: of the group.
        op: the primitive.
        source: the rank that it receives from; None where it is no receive.
        destination: the rank that it sends to.
        root: of a broadcast and the like.
        input_shape: and the others, as the file has them.
    """

    line: int
    index: int | None
    group: str
    ranks: tuple[int, ...]
    op: str
    source: int | None = None
    destination: int | None = None
    root: int | None = None
    input_shape: str = ""
    input_type: str = ""
    output_shape: str = ""
    output_type: str = ""
    input_size: int | None = None
    output_size: int | None = None


COMM_NEEDED = ("index", "group", "comm_rank", "primitive", "src_rank", "dest_rank")


def collective_rows(path: str, damage: Damage) -> Iterator[CollectiveRow]:
    """The rows of ``comm_execute_order.csv``: the collectives that a rank launches, in order.

    Args:
        path: the file.
        damage: collects the rows without a primitive, or with ranks that are no numbers.
    """
    for row in rows(path, COMM_NEEDED, damage, escaped=True):
        op, ranks = row.text("primitive"), _ranks(row.text("comm_rank"))
        if not op or ranks is None:
            damage.add(row.line, "no primitive, or ranks that are no numbers", text=op)
            continue
        yield CollectiveRow(
            row.line,
            row.integer("index"),
            row.text("group"),
            ranks,
            op,
            row.integer("src_rank"),
            row.integer("dest_rank"),
            row.integer("root_rank"),
            _shape(row, "input_shape"),
            row.text("input_type"),
            _shape(row, "output_shape"),
            row.text("output_type"),
            row.integer("input_size"),
            row.integer("output_size"),
        )


def _shape(row: Row, name: str) -> str:
    return row.text(name).replace(" ", "")


def _ranks(text: str) -> tuple[int, ...] | None:
    parts = text.replace(",", " ").split()
    if not all(part.isascii() and part.isdecimal() and len(part) < 8 for part in parts):
        return None
    return tuple(map(int, parts))


def graph_order(path: str, damage: Damage) -> Iterator[tuple[int, str]]:
    """``ms_execution_order_graph_<g>.csv``: line and full name of each kernel, without its header.

    Args:
        path: the file.
        damage: collects the lines that are no full name.

    Raises:
        ArtefactError: it can't be opened.
    """
    with text_lines(path) as stream:
        for line, text in enumerate(stream, 1):
            name = text.strip().strip('"')
            if not name or (line == 1 and name == TENSOR_DUMP_HEADER):
                continue
            if "/" not in name:
                damage.add(line, "no full name of an operator", text=name)
                continue
            yield line, name
