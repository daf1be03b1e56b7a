"""Extraction and reuse of communication subgraphs, as MindSpore 1.8 to 2.2 did it on Ascend.

Tagged collectives of a graph are put in groups by operator, output shape and type, HCCL group,
reduction and neighbours.  Groups are taken in the order of these keys as texts, each as a whole or
not at all, as long as the cap allows; a group is taken only if its operators do not fit on one
stream anyway.  Of a group that is taken one subgraph with a single operator is left, which all
others call: one stream and one HCCL group for it, and a label for every call.

The feature is gone from 2.3 on; :mod:`irtool.cluster.reuse.later_versions` says what is left.
"""

from __future__ import annotations

from typing import Literal, TypeAlias

from irtool.cluster.ranks import Cluster
from irtool.cluster.reuse.graph import Candidate, Choice, Graph, Target
from irtool.cluster.reuse.limit import DEFAULT_CAP, Limit, read_limit
from irtool.cluster.reuse.plan import LargestMicro, best_choice, ideal_streams, largest_micro
from irtool.ir.dataclass import dataclass
from irtool.ir.display import Shown

Verdict: TypeAlias = Literal["not needed", "needed", "not enough"]


@dataclass(frozen=True, slots=True)
class ReuseGroup:
    """One kind with what becomes of it, and why."""

    candidate: Candidate
    reused: bool
    reason: str

    @property
    def streams_before(self) -> int:
        """Communication streams without reuse."""
        return self.candidate.streams

    @property
    def streams_after(self) -> int:
        """Communication streams as decided."""
        return 1 if self.reused else self.candidate.streams


@dataclass(frozen=True, slots=True)
class ReuseReport(Shown):
    """What reuse does to one rank's graph.

    Attributes:
        limit: what the variable's value means.
        groups: all kinds in the order of their keys, as decided under that limit.
        before: the graph without reuse.
        after: the graph under the limit.
        recommended: the best cap there is; None where reuse saves no stream.
        knapsack_streams: streams that an ideal choice would need (MindSpore's own order may miss
            it).
        default: what the default cap (a value of -1) would do.
        in_dump: collectives and transfers in the dump.
        communications: operators that are left of them when equal fusion ids are fused.
        micro: micro-batches in the graph; 0 where it is no pipeline.
        has_tags: whether the dump tags anything for reuse (automatic parallel modes only).
        largest_micro: None where the graph has no micro-batches.
    """

    rank: int
    path: str
    target: Target
    limit: Limit
    groups: tuple[ReuseGroup, ...]
    before: Choice
    after: Choice
    recommended: Choice | None
    default: Choice
    knapsack_streams: int
    in_dump: int
    communications: int
    micro: int
    largest_micro: LargestMicro | None
    has_tags: bool

    @property
    def verdict(self) -> Verdict:
        """Whether reuse is needed, and suffices."""
        if self.before.streams <= self.target.usable_streams:
            return "not needed"
        best = self.recommended
        return "needed" if best and best.streams <= self.target.usable_streams else "not enough"

    @property
    def by_count(self) -> list[ReuseGroup]:
        """All kinds, those with the most communications first."""
        return sorted(self.groups, key=lambda item: (-item.candidate.count, item.candidate.key))

    @property
    def communications_after(self) -> int:
        """Communication operators left in the graph: reused ones count once a subgraph."""
        return self.communications - self.after.reused + self.after.subgraphs


def reuse_report(cluster: Cluster, rank: int, text: str | None, target: Target) -> ReuseReport:
    """What ``MS_COMM_COMPILER_OPT`` does to one rank's graph.

    Args:
        cluster: the run.
        rank: whose graph.
        text: the variable's raw value; None: unset.
        target: MindSpore's version (1.8 to 2.2) and the device.
    """
    one = cluster.ranks[rank]
    graph = Graph(one, cluster.devices, target)
    limit = read_limit(text, target.version)
    before = graph.choose(0)
    after = graph.choose(limit.cap) if limit.enabled else before
    recommended = best_choice(graph)
    groups = tuple(_decided(item, after, limit) for item in graph.candidates)
    return ReuseReport(
        rank,
        one.path,
        target,
        limit,
        groups,
        before,
        after,
        recommended,
        graph.choose(DEFAULT_CAP),
        ideal_streams(graph),
        len(one.program.steps),
        graph.communications,
        graph.micros,
        largest_micro(graph),
        graph.tagged_at_all,
    )


def _decided(item: Candidate, after: Choice, limit: Limit) -> ReuseGroup:
    if item.key in after.taken:
        return ReuseGroup(item, True, "")
    if item.barred:
        reason = item.barred
    elif not item.eligible:
        reason = f"{item.count} fit on one stream" if item.capacity >= item.count else "only one"
    elif not limit.enabled:
        reason = "reuse is off"
    else:
        reason = f"the cap of {limit.cap} does not hold {item.count} more"
    return ReuseGroup(item, False, reason)
