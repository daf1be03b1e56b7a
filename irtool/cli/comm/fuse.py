"""``irtool comm fuse``: buckets of fused collectives, as configured and better ones."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

from irtool.cli import options as shared
from irtool.cli.answering import Answered, DrawnForm, tell
from irtool.cli.comm.options import CommOptions
from irtool.cli.declared import with_options
from irtool.cli.inputs.cluster import Asked, Rank, machine_for, read_cluster, refuse_partial
from irtool.cli.output import Output
from irtool.cli.parameters import Option
from irtool.cli.report import Failure, note, report_problems
from irtool.cluster.fuse import (
    Bucket,
    Tensor,
    buckets_of,
    fusion,
    ids_by_index,
    ids_by_size,
    in_parameter_order,
)
from irtool.cluster.fuse_plan import plan
from irtool.cluster.ranks import RankProgram
from irtool.ir.dataclass import dataclass

if TYPE_CHECKING:
    from irtool.report.comm.fuse import FuseView


@dataclass(frozen=True, slots=True)
class FuseOptions(CommOptions):
    """What the command line asks of fusion, as it is typed."""

    format: shared.DrawnFormat = DrawnForm.table
    size: Annotated[
        int | None,
        Option(least=1, metavar="MB", help="Buckets of comm_fusion's mode size (auto is 64)."),
    ] = None
    index: Annotated[
        str | None,
        Option(metavar="I,J,…", help="Buckets of comm_fusion's mode index: where they begin."),
    ] = None
    machine: shared.MachineName = None
    rank: Rank = None
    limit: shared.Limit = None


@with_options(FuseOptions)
def command(paths: shared.Paths, options: FuseOptions) -> int:
    """Fusion of collectives: buckets as configured, better ones, and what they would gain.

    Of a run folder the lowest rank is taken, unless --rank says another.
    """
    if options.size is not None and options.index is not None:
        raise Failure("--size and --index are two modes: give one")
    answered = fuse_answered(options.asked(paths, options.rank), options)
    return tell(answered, Output(options.output_file), options.format, options.assumptions)


def fuse_answered(asked: Asked, options: FuseOptions) -> Answered[FuseView]:
    """The buckets of a rank's collectives, and better ones.

    Args:
        asked: what to read.
        options: which buckets are simulated, and on which machine they are priced.

    Raises:
        Failure: nothing can be read, or positions make no sense.
    """
    from irtool.report.comm.fuse import FuseView, fuse_answer, fuse_report

    read = refuse_partial(read_cluster(asked))
    report_problems(read.problems)
    chosen = min(read.cluster.ranks)
    if len(read.cluster.ranks) > 1:
        note(f"rank {chosen}; --rank picks another")
    one = read.cluster.ranks[chosen]
    fused = fusion(one)
    tensors = [tensor for bucket in fused.buckets for tensor in bucket.tensors]
    simulated, setting, notes = _simulated(one, tensors, options.size, options.index)
    planned = plan(one, machine_for(options.machine, read.cluster))
    view = FuseView(read.path, chosen, fused, planned, simulated, setting, notes, options.limit)
    return Answered(
        view,
        lambda: fuse_answer(view, read.context),
        lambda is_page: fuse_report(view, is_page),
        read.context,
        status=1 if read.problems else 0,
    )


def _simulated(
    one: RankProgram, tensors: Sequence[Tensor], size: int | None, index: str | None
) -> tuple[tuple[Bucket, ...], str, list[str]]:
    """The buckets of ``--size`` or ``--index``, and what has to be said of them."""
    if size is not None:
        return _by_size(one, tensors, size), f"size {size}", []
    if index is None:
        return (), "", []
    try:
        cuts = [int(part) for part in index.split(",") if part.strip()]
        reduces = [tensor for tensor in tensors if tensor.collective.op == "AllReduce"]
        ordered = in_parameter_order(one, reduces)
        ids, skipped = ids_by_index(len(ordered), cuts)
    except ValueError as error:
        message = str(error) if "increase" in str(error) else f"{index!r} is no list of positions"
        raise Failure(message, "--index", hint="--index 3,7") from None
    numbers = {tensor.collective.node: i for tensor, i in zip(ordered, ids, strict=True)}
    notes = ["mode index is there for AllReduce only"]
    if skipped:
        notes.append(f"positions beyond the last AllReduce are skipped: {skipped}")
    return buckets_of(ordered, numbers), f"index {index}", notes


def _by_size(one: RankProgram, tensors: Sequence[Tensor], size: int) -> tuple[Bucket, ...]:
    numbers: dict[object, int] = {}
    for op in dict.fromkeys(tensor.collective.op for tensor in tensors):
        ordered = in_parameter_order(one, [item for item in tensors if item.collective.op == op])
        counts = [item.elements for item in ordered]
        if None in counts:
            raise Failure(f"the size of some {op} is not known", "--size")
        ids = ids_by_size([count or 0 for count in counts], size)
        numbers |= {item.collective.node: i for item, i in zip(ordered, ids, strict=True)}
    return buckets_of(tensors, numbers)  # type: ignore[arg-type]  # nodes, all of them
