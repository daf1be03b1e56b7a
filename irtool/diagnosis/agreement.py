"""Do ranks that have to be alike agree: numbers, settings of gradients, ids of fusion?"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterator, Mapping

from irtool.cluster.context.given import ContextError
from irtool.cluster.fuse import FUSIBLE
from irtool.cluster.hang.script import script, stages_of
from irtool.cluster.identity import compiled_as_another
from irtool.cluster.matching import place
from irtool.cluster.ranks import RankProgram
from irtool.diagnosis.diagnosis import Diagnosis, Task, diagnosis
from irtool.diagnosis.script_difference import context_alone
from irtool.diagnosis.subject import Subject, source_of
from irtool.ir.finding import Edit
from irtool.ir.units import numbered_text

_TASK: Task = "group"
_UNLIKE = "gradients_mean"
"""What no collective shows, and makes replicas of a weight part from one another."""


def wrong_numbers(subject: Subject) -> Iterator[Diagnosis]:
    """Ranks whose dumps were compiled under another rank's number.

    Args:
        subject: the run; its validate dumps are compared.

    Yields:
        an error for each such rank, with ``RANK_ID`` as the setting to mend.

    Raises:
        CannotJudge: no validate dump is whole.
    """
    for item in compiled_as_another(subject.cluster):
        one = subject.cluster.ranks[item.rank]
        first = place(one, item.step)
        yield diagnosis(
            _TASK,
            "error",
            f"{item.text}. RANK_ID (or global_rank) of its process is wrong",
            subject.command("comm", "groups", "RUN"),
            rank=item.rank,
            ranks=(item.rank,),
            node=first.collective.node.id,
            file=item.path,
            line=first.line,
            source=source_of(first.collective.node),
            edit=Edit(setting="RANK_ID", value=item.rank),
        )


def unlike_gradients(subject: Subject) -> Iterator[Diagnosis]:
    """Ranks that take the mean of gradients where others take the sum.

    Args:
        subject: the run; what the dumps of each class of ranks alone show of ``gradients_mean`` is
            compared.

    Yields:
        one error at most; without an edit where both sides have equally many ranks, for then none
        of them is the odd one.

    Raises:
        CannotJudge: no validate dump is whole.
    """
    values: dict[Hashable, list[int]] = {}
    if len(subject.classes) < 2:
        return  # ranks with equal graphs have equal contexts
    for ranks, _ in subject.classes:
        compilation = subject.compilations.get(ranks[0])
        if compilation is None:
            continue
        try:
            context = context_alone(subject.run, compilation, subject.graph)
        except ContextError:
            continue
        if context.is_known(_UNLIKE):
            values.setdefault(bool(context.value(_UNLIKE)), []).extend(ranks)
    if len(values) < 2:
        return
    common, odd, certain = _sides(values)
    value = next(key for key, ranks in values.items() if ranks == common)
    few, most = numbered_text("rank", odd), numbered_text("rank", common)
    yield diagnosis(
        _TASK,
        "error",
        f"{_UNLIKE} is {not value} on {few} and {value} on {most}: gradients are "
        "divided by the number of replicas on one side only, so that ranks update weights "
        "differently, without any message",
        ("irtool", "diff", *(subject.validated[ranks[0]].path for ranks in (common, odd))),
        rank=odd[0],
        ranks=tuple(odd) if certain else tuple(sorted((*odd, *common))),
        file=subject.validated[odd[0]].path,
        edit=Edit(setting=_UNLIKE, value=bool(value)) if certain else None,
    )


def unlike_fusion(subject: Subject) -> Iterator[Diagnosis]:
    """Ranks whose fusion ids join other collectives than those of the rest of their stage.

    Args:
        subject: the run; ranks of one stage that launch the same collectives are compared.

    Yields:
        an error for each stage in which some members of a group fuse otherwise than others.

    Raises:
        CannotJudge: no validate dump is whole.
    """
    stages: dict[object, dict[Hashable, list[int]]] = {}
    for rank, stage in stages_of(subject.cluster).items():
        one = subject.cluster.ranks[rank]
        key = (stage, script(one))  # those with another script are the task of hangs
        stages.setdefault(key, {}).setdefault(joined(one), []).append(rank)
    for values in stages.values():
        if len(values) > 1:
            yield from _unlike_fusion(subject, values)


def _unlike_fusion(subject: Subject, values: Mapping[Hashable, list[int]]) -> Iterator[Diagnosis]:
    common, odd, certain = _sides(values)
    own, other = subject.cluster.ranks[odd[0]], subject.cluster.ranks[common[0]]
    pairs = enumerate(zip(joined(own), joined(other), strict=True))
    number = next(n for n, (left, right) in pairs if left != right)
    first, second = place(own, number), place(other, number)
    members = set(first.party.ranks or ()) & subject.cluster.ranks.keys()
    if members <= set(odd):
        return  # whole groups do it alike
    few, most = numbered_text("rank", odd), numbered_text("rank", common)
    yield diagnosis(
        _TASK,
        "error",
        f"fusion ids join other collectives on {few} than on {most}: {first.op} "
        f"{number + 1} of a rank has id {first.collective.fusion} there and "
        f"{second.collective.fusion} here, so that members of a group launch other sizes; "
        "comm_fusion has to be the same on all ranks",
        subject.command("comm", "fuse", "RUN"),
        rank=odd[0],
        ranks=tuple(odd) if certain else tuple(sorted((*odd, *common))),
        node=first.collective.node.id,
        file=own.path,
        line=first.line,
        source=source_of(first.collective.node),
        edit=Edit(setting="comm_fusion", value=f"that of {most}") if certain else None,
    )


def joined(one: RankProgram) -> tuple[int, ...]:
    """For each communication the first one that it is joined with; itself where with none.

    Args:
        one: what a rank communicates, in the order of its script.

    Returns:
        a position (from 0) for each position of the rank's steps. Joined are collectives that can
        be fused, with the same operator, group, reduction, data type and a fusion id other than 0.
    """
    firsts: dict[Hashable, int] = {}
    leaders: list[int] = []
    for number, (step, party) in enumerate(zip(one.program.steps, one.parties, strict=True)):
        item = step.collective
        key = (item.op, party.group, item.reduction, item.dtype, item.fusion)
        is_fused = item.op in FUSIBLE and bool(item.fusion)
        leaders.append(firsts.setdefault(key, number) if is_fused else number)
    return tuple(leaders)


def unseen_fusion(subject: Subject) -> str:
    """What no dump tells of how ranks join collectives; empty where there is nothing to tell.

    Fusion ids are there, the backend's cuts of equal ids (split indices, thresholds of plain data
    parallel) are made behind the last dump.

    Args:
        subject: the run; with an execution order recorded by any rank, or fewer than two ranks,
            there is nothing to tell.

    Raises:
        CannotJudge: no validate dump is whole.
    """
    recorded = any(rank.execution_order for rank in subject.run.by_rank.values())
    if len(subject.cluster.ranks) < 2 or recorded:
        return ""
    shared = 0
    for one in subject.cluster.ranks.values():
        firsts = Counter(joined(one))
        shared = max(shared, sum(count for count in firsts.values() if count > 1))
    if not shared:
        return ""
    return (
        f"ranks were compared by fusion ids; whether their backends cut the {shared} collectives "
        "that share one alike (all_reduce_fusion_split_indices) is in no dump, only in the order "
        "that a run records"
    )


def _sides(values: Mapping[Hashable, list[int]]) -> tuple[list[int], list[int], bool]:
    """Most ranks, the fewest, and whether these are fewer."""
    sides = sorted(values.values(), key=lambda ranks: (-len(ranks), ranks))
    return sides[0], sides[-1], len(sides[0]) > len(sides[-1])
