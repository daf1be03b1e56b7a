"""Who left the common script: of ranks that should communicate alike, which one does not, and how.

The ranks of one pipeline stage run one program: in launch order they come to the same collectives,
each in its own group of the same form.  Where they part, what most of them do is the common
script; the others are odd.  Where no side has more ranks nobody can say which is odd.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence, Set
from difflib import SequenceMatcher
from typing import Literal, TypeAlias

from irtool.cluster.hang.board import step_text
from irtool.cluster.matching import Place, place, shape_text
from irtool.cluster.ranks import Cluster, Party, RankProgram
from irtool.ir.collectives import Collective
from irtool.ir.dataclass import dataclass
from irtool.ir.operators import POINT_TO_POINT
from irtool.ir.units import plural, ranks_text

DepartureKind: TypeAlias = Literal[
    "micro-batches", "more", "fewer", "order", "operator", "reduction", "type", "size", "group",
    "peer",
]  # fmt: skip
"""How a rank leaves the common script."""

_MOST_COMPARED = 4096
"""So many communications behind the first difference are compared to tell how ranks part."""


@dataclass(frozen=True, slots=True)
class Departure:
    """Where some ranks of a stage leave the script of the others.

    Attributes:
        ranks: those that leave, doing the same.
        common: those that keep to the script, as many or more.
        certain: whether more ranks keep to the script than leave it.
        kind: how they leave.
        index: of the communication, in launch order of a rank.
        here: what the first of ``ranks`` does there; None where it is through.
        there: what the first of ``common`` does there; None where it is through.
        text: the difference in words, without saying whose it is.
        setting: that explains it, ``micro_size`` or one of the context; empty where none does.
        value: of that setting on ``common``.
    """

    ranks: tuple[int, ...]
    common: tuple[int, ...]
    certain: bool
    kind: DepartureKind
    index: int
    here: Place | None
    there: Place | None
    text: str
    setting: str = ""
    value: int | bool | None = None


Token: TypeAlias = tuple[object, ...]
"""What a communication is on every rank of a stage alike."""

_FIELDS: tuple[tuple[DepartureKind, int], ...] = (
    ("operator", 0), ("reduction", 1), ("group", 4), ("type", 2), ("size", 3),
)  # fmt: skip
"""What a token holds, and at which place of it, what tells most first."""


_HASHED = re.compile(r"^\d+-\d+")
"""The part of a group's name that its ranks decide."""


def _token(item: Collective, rank: int, party: Party) -> Token:
    ranks, peer = party.ranks, party.peer
    if item.op in POINT_TO_POINT:
        form: object = None if peer is None else peer - rank
    else:
        offsets = tuple(other - ranks[0] for other in ranks) if ranks else ()
        form = (offsets, _HASHED.sub("", party.group or ""))
    return (item.op, item.reduction, item.dtype, item.shape, form)


def script(one: RankProgram) -> tuple[Token, ...]:
    """What a rank communicates, as it should be on every rank of its stage.

    Args:
        one: the rank; ranks with equal scripts do the same, each in its own groups.

    Returns:
        One token for each communication, in launch order.
    """
    return tuple(
        _token(step.collective, one.rank, party)
        for step, party in zip(one.program.steps, one.parties, strict=True)
    )


def stages_of(cluster: Cluster) -> dict[int, int]:
    """The pipeline stage of each rank, by how far apart those are that send to each other.

    Args:
        cluster: the programs of all ranks.

    Returns:
        Stages from 0 on, by rank; 0 for all where nothing is sent.
    """
    distances = {
        abs(party.peer - one.rank)
        for one in cluster.ranks.values()
        for step, party in zip(one.program.steps, one.parties, strict=True)
        if party.peer is not None and step.collective.origin == "pipeline"
    }
    size = math.gcd(*distances) if distances else 0
    return {rank: rank // size if size else 0 for rank in cluster.ranks}


def micro_batches(one: RankProgram) -> int | None:
    """How many micro-batches a rank works through; None where nothing tells.

    Args:
        one: the rank, whose communications may name their micro-batch.
    """
    numbers = {
        number for step in one.program.steps if (number := step.collective.node.micro) is not None
    }
    return len(numbers) or None


def departures(cluster: Cluster) -> tuple[Departure, ...]:
    """Who leaves the common script of its stage: those that do for certain first, by place.

    Args:
        cluster: the programs of all ranks.
    """
    stages: dict[int, list[RankProgram]] = {}
    for rank, stage in stages_of(cluster).items():
        stages.setdefault(stage, []).append(cluster.ranks[rank])
    leaving: list[Departure] = []
    for stage, members in stages.items():
        others = [one for number, rest in stages.items() if number != stage for one in rest]
        outside = frozenset[str]().union(*map(_weights, others)) if others else None
        leaving += _of_stage(members, outside, {micro_batches(one) for one in others})
    leaving += _between_stages(list(stages.values()))
    return tuple(sorted(leaving, key=lambda item: (not item.certain, item.index, item.ranks)))


def _of_stage(
    members: Sequence[RankProgram], outside: frozenset[str] | None, counts: Set[int | None]
) -> list[Departure]:
    """Who leaves the script of one stage.

    ``outside``: weights of all other stages, if any; ``counts``: their numbers of micro-batches.
    """
    scripts = {one.rank: script(one) for one in members}
    alike: dict[tuple[Token, ...], list[int]] = {}
    for rank, tokens in scripts.items():
        alike.setdefault(tokens, []).append(rank)
    if len(alike) < 2:
        return []
    by_rank = {one.rank: one for one in members}
    groups = sorted(alike.values(), key=lambda ranks: (-len(ranks), ranks))
    common = groups[0]
    tied = len(groups) == 2 and len(groups[1]) == len(common)
    if tied and outside is not None:
        wrong = [_misplaced(by_rank[ranks[0]], by_rank[other[0]], outside)
                 for ranks, other in (groups, groups[::-1])]  # fmt: skip
        if wrong[0] != wrong[1]:
            odd, common = groups if wrong[0] > wrong[1] else groups[::-1]
            return [_departure(by_rank, scripts, odd, common, certain=True)]
    if tied:  # a step has as many micro-batches on all stages
        fits = [micro_batches(by_rank[ranks[0]]) in counts - {None} for ranks in groups]
        if fits[0] != fits[1]:
            common, odd = groups if fits[0] else groups[::-1]
            return [_departure(by_rank, scripts, odd, common, certain=True)]
    return [
        _departure(by_rank, scripts, odd, common, certain=len(common) > len(odd))
        for odd in groups[1:]
    ]


def _misplaced(one: RankProgram, other: RankProgram, outside: frozenset[str]) -> int:
    """Weights that a rank holds beside another stage, and those of its twin that nobody holds.

    Each weight stands on one stage: of two ranks that part, the one that breaks that is odd.
    """
    own, twin = _weights(one), _weights(other)
    return len(own & outside) + len(twin - own - outside)


def _weights(one: RankProgram) -> frozenset[str]:
    return frozenset(
        item.name
        for item in one.program.dump.parameters
        if item.name and item.type is not None and item.type.ref_key is not None
    )


def _departure(
    by_rank: Mapping[int, RankProgram],
    scripts: Mapping[int, tuple[Token, ...]],
    odd: Sequence[int],
    common: Sequence[int],
    *,
    certain: bool,
) -> Departure:
    here, there = by_rank[odd[0]], by_rank[common[0]]
    left, right = scripts[odd[0]], scripts[common[0]]
    counts = micro_batches(here), micro_batches(there)
    kind: DepartureKind
    setting: str = ""
    value: int | bool | None = None
    if None not in counts and counts[0] != counts[1]:
        index = first = _common_start(left, right)
        kind, text = "micro-batches", f"{counts[0]} micro-batches instead of {counts[1]}"
        setting, value = "micro_size", counts[1]
    else:
        kind, index, first, text = _how(left, right, here, there)
    shards = [_shards_weights(one) for one in (here, there)]
    if shards[0] != shards[1]:
        setting, value = "enable_parallel_optimizer", shards[1]
        one, other = (here, there) if shards[0] else (there, here)
        text += (
            f" (optimizer parallel cuts weights on rank {one.rank}, none on rank {other.rank}: "
            "it is off there, or its threshold is higher)"
        )
    return Departure(
        tuple(odd), tuple(common), certain, kind, index,
        place(here, index) if index < len(left) else None,
        place(there, first) if first < len(right) else None,
        text, setting, value,
    )  # fmt: skip


def _shards_weights(one: RankProgram) -> bool:
    return any(step.collective.origin == "optimizer parallel" for step in one.program.steps)


def _common_start(left: Sequence[Token], right: Sequence[Token]) -> int:
    pairs = zip(left, right, strict=False)
    return next((n for n, (a, b) in enumerate(pairs) if a != b), min(len(left), len(right)))


def _how(
    left: Sequence[Token], right: Sequence[Token], here: RankProgram, there: RankProgram
) -> tuple[DepartureKind, int, int, str]:
    """Kind, place on either side, and words of the first difference of two scripts."""
    start = _common_start(left, right)
    own, other = left[start : start + _MOST_COMPARED], right[start : start + _MOST_COMPARED]
    matcher = SequenceMatcher(None, own, other, autojunk=False)
    tag, a, b, c, d = next(code for code in matcher.get_opcodes() if code[0] != "equal")
    left_index, right_index = start + a, start + c
    if sorted(map(repr, own)) == sorted(map(repr, other)):
        first, second = step_text(place(here, left_index)), step_text(place(there, right_index))
        if left[left_index][-1] != right[right_index][-1]:
            first, second = (
                f"{text} in {_form_text(one, n)}"
                for text, one, n in ((first, here, left_index), (second, there, right_index))
            )
        return "order", left_index, right_index, f"{first} comes before {second}"
    if tag == "delete" or (tag == "replace" and b - a > d - c and _more_of(own, other, a, b, c, d)):
        more = b - a - (d - c)
        text = f"{plural(more, 'communication')} more: {step_text(place(here, left_index))}"
        return "more", left_index, right_index, text
    if tag == "insert" or (tag == "replace" and d - c > b - a and _more_of(other, own, c, d, a, b)):
        more = d - c - (b - a)
        missing = step_text(place(there, right_index))
        text = f"{plural(more, 'communication')} fewer: {missing} is missing"
        return "fewer", left_index, right_index, text
    return _field_difference(left, right, here, there, left_index, right_index)


def _more_of(
    longer: Sequence[Token], shorter: Sequence[Token], a: int, b: int, c: int, d: int
) -> bool:
    """Whether what stands for a shorter piece holds all of it."""
    rest = list(longer[a:b])
    for token in shorter[c:d]:
        if token not in rest:
            return False
        rest.remove(token)
    return True


def _field_difference(
    left: Sequence[Token],
    right: Sequence[Token],
    here: RankProgram,
    there: RankProgram,
    left_index: int,
    right_index: int,
) -> tuple[DepartureKind, int, int, str]:
    """What is another for two communications at the same place."""
    mine, theirs = left[left_index], right[right_index]
    differing: list[tuple[DepartureKind, int]] = [
        (kind, n) for kind, n in _FIELDS if mine[n] != theirs[n]
    ]
    kind, field = differing[0]
    if kind == "group" and mine[0] in POINT_TO_POINT:
        peers = here.parties[left_index].peer, there.parties[right_index].peer
        text = f"{mine[0]} with rank {peers[0]} instead of {peers[1]}"
        return "peer", left_index, right_index, text
    if len(differing) > 1 or kind in ("operator", "group"):
        texts = step_text(place(here, left_index)), step_text(place(there, right_index))
        forms = [""] * 2
        if mine[4] != theirs[4]:
            forms = [
                f" in {_form_text(one, n)}" for one, n in ((here, left_index), (there, right_index))
            ]
        text = f"{texts[0]}{forms[0]} instead of {texts[1]}{forms[1]}"
    else:
        values = [
            shape_text(value) if isinstance(value, tuple) else str(value)  # type: ignore[arg-type]  # a shape
            for value in (mine[field], theirs[field])
        ]
        text = f"{mine[0]} of {kind} {values[0]} instead of {values[1]}"
    return kind, left_index, right_index, text


def _form_text(one: RankProgram, step: int) -> str:
    party = one.parties[step]
    if party.ranks is None:
        return f"the group {party.group}"
    name = "" if _HASHED.match(party.group or "") else f"{party.group} of "
    return f"the group {name or 'of '}ranks {ranks_text(party.ranks)}"


def _between_stages(stages: Sequence[Sequence[RankProgram]]) -> list[Departure]:
    """Stages whose ranks agree among themselves and work through other numbers of micro-batches."""
    counts = [{micro_batches(one) for one in members} for members in stages]
    single = [next(iter(numbers)) if len(numbers) == 1 else None for numbers in counts]
    known = [count for count in single if count is not None]
    if len(set(known)) < 2:
        return []
    usual = max(set(known), key=lambda count: (known.count(count), -known.index(count)))
    common = [
        one.rank
        for members, count in zip(stages, single, strict=True)
        if count == usual
        for one in members
    ]
    leaving: list[Departure] = []
    for members, count in zip(stages, single, strict=True):
        if count is None or count == usual:
            continue
        text = f"{count} micro-batches instead of {usual}"
        ranks = tuple(one.rank for one in members)
        certain = known.count(usual) > known.count(count)
        here = place(members[0], len(members[0].parties) - 1)
        leaving.append(
            Departure(ranks, tuple(common), certain, "micro-batches", 0, here, None, text)
        )
    return leaving
