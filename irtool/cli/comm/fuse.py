"""``irtool comm fuse``: buckets of fused collectives, as configured and better ones."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

from irtool.cli import options
from irtool.cli.answering import DrawnForm, write_answer
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


def command(
    paths: options.Paths,
    format: options.DrawnFormat = DrawnForm.table,
    size: Annotated[
        int | None,
        Option(least=1, metavar="MB", help="Buckets of comm_fusion's mode size (auto is 64)."),
    ] = None,
    index: Annotated[
        str | None,
        Option(metavar="I,J,…", help="Buckets of comm_fusion's mode index: where they begin."),
    ] = None,
    machine: options.MachineName = None,
    rank: Rank = None,
    devices: options.Devices = None,
    graph: options.GraphNumber = None,
    limit: options.Limit = None,
    context: options.Context = None,
    config: options.Config = None,
    assumptions: options.Assumptions = False,
    output_file: options.OutputFile = None,
) -> int:
    """Fusion of collectives: buckets as configured, better ones, and what they would gain.

    Of a run folder the lowest rank is taken, unless --rank says another.
    """
    from irtool.report.comm.fuse import FuseView, fuse_answer, fuse_report

    if size is not None and index is not None:
        raise Failure("--size and --index are two modes: give one")
    read = refuse_partial(read_cluster(Asked(paths, rank, graph, devices, context, config)))
    report_problems(read.problems)
    chosen = min(read.cluster.ranks)
    if len(read.cluster.ranks) > 1:
        note(f"rank {chosen}; --rank picks another")
    one = read.cluster.ranks[chosen]
    priced = machine_for(machine, read.cluster)
    fused = fusion(one)
    tensors = [tensor for bucket in fused.buckets for tensor in bucket.tensors]
    simulated, setting, notes = _simulated(one, tensors, size, index)
    view = FuseView(read.path, chosen, fused, plan(one, priced), simulated, setting, notes, limit)
    write_answer(
        Output(output_file),
        format,
        answer=lambda: fuse_answer(view, read.context),
        report=lambda is_page: fuse_report(view, is_page),
        context=read.context,
        all_assumptions=assumptions,
    )
    return 1 if read.problems else 0


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
