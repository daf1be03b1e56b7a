"""The candidates of a network's operators; operators that are called alike share theirs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field, replace

from irtool.ir.dataclass import dataclass
from irtool.ir.graph import Node
from irtool.operators.call import OperatorCall, Strategy
from irtool.operators.judgement import Context, Judgement
from irtool.planning.cost.kept import FIXED
from irtool.planning.search.candidates import (
    MOST,
    Candidate,
    Candidates,
    Space,
    candidates_of,
    given_candidate,
)
from irtool.sharding.network.analysis import Judged
from irtool.sharding.network.sharded_nodes import primitive

Given = tuple[Strategy, Strategy | None]
"""A strategy and, if there is one, an out_strategy."""


class CannotPlan(Exception):
    """There is no plan; the message says why, and what would have to change."""


@dataclass(eq=False, slots=True)
class OperatorCandidates:
    """Candidates of operators in one context; each kind of call is tried once.

    ``outs``: whether an ``out_strategy`` can be given; ``near``: strategies around which to look
    where an operator has too many, by kind of call; ``every``: strategies up to which all of an
    operator's are looked at; ``few``: how many, at most, of any other; ``tried``: what was found.
    """

    context: Context
    outs: bool = True
    near: Mapping[object, frozenset[Strategy]] = field(
        default_factory=dict[object, frozenset[Strategy]]
    )
    every: int = MOST
    few: int = MOST
    tried: dict[object, Candidates] = field(default_factory=dict[object, Candidates])

    def of(
        self, node: Node, judged: Judged, current: Given | None, pinned: Given | None
    ) -> Candidates:
        """All that may be tried for it.

        Args:
            node: the operator.
            judged: what is known of it.
            current: what the dump has: a candidate, whatever else is.
            pinned: what must be.

        Raises:
            CannotPlan: it has no legal strategy, or the pinned one is illegal.
        """
        call, context = judged.call.call, self.context
        if primitive(node) in FIXED or judged.wanted.in_layout is not None:
            judgement = judged.judgement
            if judgement.verdict != "legal":
                raise CannotPlan(_refusal(node, judgement))
            kept = judgement.strategy if judged.wanted.in_layout is None else None
            only = self.tried.get((id(node),))
            return only or self._kept((id(node),), Candidates((Candidate(kept, None, judgement),)))
        if judged.call.missing:
            raise CannotPlan(f"{node.id} {node.op} (line {node.line}): {judged.call.missing}")
        key = kind_of(judged)
        if pinned is not None:
            candidates = self.tried.get((key, pinned))
            if candidates is None:
                given = given_candidate(call, *pinned, context)
                if given.judgement.verdict != "legal":
                    raise CannotPlan(_refusal(node, given.judgement))
                candidates = self._kept((key, pinned), Candidates((given,)))
            return candidates
        candidates = self._all(key, call)
        if current is not None and candidates.why == "" and current not in candidates.places:
            own_too = (id(candidates), current)
            more = self.tried.get(own_too)
            if more is None:
                own = given_candidate(call, *current, context)
                items = (
                    (*candidates.items, own)
                    if own.judgement.verdict == "legal"
                    else candidates.items
                )
                more = replace(candidates, items=items)
                more = self._kept(own_too, more)
            candidates = more
        if not candidates.items:
            raise CannotPlan(
                f"{node.id} {node.op} (line {node.line}) has no legal strategy: {candidates.why}"
            )
        return candidates

    def _all(self, kind: object, call: OperatorCall) -> Candidates:
        """All that are looked at of a kind: where some are left out, that depends on where."""
        candidates = self.tried.get(kind)
        if candidates is None:
            space = Space(self.every, self.few, self.near.get(kind, frozenset()))
            candidates = self.tried.get((kind, space))
            if candidates is None:
                made = candidates_of(call, self.context, space)
                candidates = self._kept((kind, space) if made.left_out else kind, made)
        return candidates

    def _kept(self, key: object, candidates: Candidates) -> Candidates:
        self.tried[key] = candidates if self.outs else candidates.without_outs()
        return self.tried[key]


def kind_of(judged: Judged) -> object:
    """Equal for operators that are called alike.

    Args:
        judged: an operator with its call.

    Returns:
        something hashable; an operator whose attributes cannot be hashed is of a kind of its own.
    """
    call = judged.call.call
    try:
        shown = tuple((item, type(item.value)) for item in call.inputs)
        key = (call.op, shown, call.outputs, judged.call.node.primitive_attributes)
        hash(key)
    except TypeError:
        return id(judged)
    return key


def _refusal(node: Node, judgement: Judgement) -> str:
    reason = judgement.reasons[0].message if judgement.reasons else "it is not legal"
    what = judgement.strategy or "what the code or the context gives it"
    return f"{node.id} {node.op} (line {node.line}): {what} can't be: {reason}"


def index_of(candidates: Candidates, given: Given | None) -> int | None:
    """Where what the dump has stands among the candidates, if it does.

    Args:
        candidates: what may be tried for the operator.
        given: what the dump has; None: nothing, and only a single candidate is taken for it.
    """
    index = None if given is None else candidates.places.get(given)
    return 0 if index is None and len(candidates) == 1 else index
