"""Compare predicted slices, mirrors and gathers of parameters with those of a later dump."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from irtool.ir.collectives import collective
from irtool.ir.dump import Dump
from irtool.ir.graph import GraphParameter, Node
from irtool.ir.ties import ties
from irtool.sharding.against.model import Difference, DifferenceKind, Unmatched
from irtool.sharding.network.report import CheckResult, ParameterReport
from irtool.sharding.why.cause import Cause
from irtool.sharding.why.walk import Surroundings

Found = dict[str, tuple[tuple[int, ...] | None, Node]]
"""By name of a parameter: the ranks that communicate for it, and the node."""


def compare_slices(report: CheckResult, actual: Dump) -> Iterator[Difference]:
    """Slices of parameters and of dataset inputs that differ in the header of the later dump.

    Args:
        report: what ``check`` predicts, seen from the rank that wrote the later dump.
        actual: the later dump; parameters that it lacks are not compared.
    """
    there = {item.name: item.type.dimensions if item.type else None for item in actual.parameters}
    for weight in report.parameters:
        if weight.name not in there or weight.slice is None:
            continue
        if weight.slice != there[weight.name]:
            message = f"{weight.name}, {weight.shape} in whole, has another slice"
            yield _of(weight, "parameter slice", message, weight.slice, there[weight.name])
    for data in report.dataset:
        if data.input in there and data.slice != there[data.input]:
            yield Difference(
                "dataset slice",
                f"the dataset input {data.input} has another slice",
                str(data.slice),
                str(there[data.input]),
                "",
                parameter=data.input,
            )


def _of(
    weight: ParameterReport,
    kind: DifferenceKind,
    message: str,
    predicted: object,
    actual: object,
    node: Node | None = None,
) -> Difference:
    return Difference(
        kind,
        message,
        "none" if predicted is None else str(predicted),
        "none" if actual is None else str(actual),
        "",
        weight.user,
        node,
        weight.name,
    )


def compare_mirrors(
    report: CheckResult, around: Surroundings, causes: Iterable[Cause], virtual: bool
) -> Iterator[Difference | Unmatched]:
    """Who sums the gradient of each parameter and who gathers it, if not as predicted.

    Args:
        report: what ``check`` predicts of the begin dump.
        around: the later dump, and what is known around its nodes.
        causes: why each collective of the later dump is there.
        virtual: whether the dump is from right after the parallel pass, where mirrors are nodes of
            their own; later only the collectives of gradients that are used are left.

    Yields:
        Differences, and mirrors that the later dump can't tell of.
    """
    causes = list(causes)
    mirrors, gathers = _found(report, causes, virtual)
    nameless: set[tuple[int, ...]] = set() if virtual else _nameless(report, causes)
    used = _updated(around)
    if not virtual:
        _add_shared(mirrors, around, {w.name for w in report.parameters if w.mirror_ranks})
    for weight in report.parameters:
        if weight.why:
            continue
        ranks, node = mirrors.get(weight.name, (None, None))
        missing = weight.mirror_ranks is not None and node is None
        if not virtual and missing and weight.name not in used:
            yield Unmatched(
                f"mirror of {weight.name}", "nothing uses its gradient in this dump", weight.user
            )
        elif missing and weight.mirror_ranks in nameless:
            why = "sums over these ranks there do not tell of which parameter they are"
            yield Unmatched(f"mirror of {weight.name}", why, weight.user)
        elif ranks != weight.mirror_ranks and not _is_needless(weight, node):
            message = f"the gradient of {weight.name} is not summed over the ranks predicted"
            yield _of(weight, "mirror", message, weight.mirror_ranks, ranks, node)
        ranks, node = gathers.get(weight.name, (None, None))
        if ranks != weight.gather_ranks and (weight.is_read or ranks is not None):
            message = f"{weight.name} is not gathered from the ranks predicted"
            yield _of(weight, "optimizer parallel", message, weight.gather_ranks, ranks, node)


def _is_needless(weight: ParameterReport, node: Node | None) -> bool:
    """Whether a mirror over one rank is meant, which later passes drop."""
    return node is None and weight.mirror_ranks is not None and len(weight.mirror_ranks) == 1


def _found(report: CheckResult, causes: Iterable[Cause], virtual: bool) -> tuple[Found, Found]:
    mirrors: Found = {}
    gathers: Found = {}
    for cause in causes:
        sent = collective(cause.node, report.devices)
        if cause.parameter is None or cause.is_recomputed or sent is None:
            continue
        if cause.kind == "mirror" and sent.is_virtual is virtual:
            mirrors.setdefault(cause.parameter, (sent.ranks, cause.node))
        elif cause.kind == "optimizer parallel" and sent.op == "AllGather" and sent.group:
            gathers.setdefault(cause.parameter, (sent.ranks, cause.node))
    return mirrors, gathers


def _nameless(report: CheckResult, causes: Iterable[Cause]) -> set[tuple[int, ...]]:
    """The ranks of mirrors whose parameter is not told: gradients that a loop carries."""
    groups: set[tuple[int, ...]] = set()
    for cause in causes:
        sent = collective(cause.node, report.devices)
        if cause.kind == "mirror" and cause.parameter is None and sent is not None and sent.ranks:
            groups.add(sent.ranks)
    return groups


def _add_shared(mirrors: Found, around: Surroundings, mirrored: set[str]) -> None:
    """Equal gradients of several ``mirrored`` parameters are summed up once."""
    sums = {node: ranks for ranks, node in mirrors.values()}
    for node in around.dump.nodes():
        operands = node.inputs
        shared = next((item for item in operands if isinstance(item, Node) and item in sums), None)
        if shared is None:
            continue
        for item in operands:
            if isinstance(item, GraphParameter) and item.name in mirrored:
                mirrors.setdefault(item.name, (sums[shared], shared))


def _updated(around: Surroundings) -> set[str]:
    """Names of the parameters that some node of the optimizer updates."""
    return {
        tie.left.name
        for tie in ties(around.dump)
        if tie.kind == "parameter" and not isinstance(tie.left, Node)
    }
