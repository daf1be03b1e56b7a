"""Ties: which nodes belong together, within a dump and from one pass to another.

Differentiation leaves ids on forward and backward nodes, but not in every dump; otherwise names,
scopes, parameters, source lines and neighbours tell.  Each tie says which rule made it and
whether it is certain: where several candidates stay equal, they are tied in order if their
numbers agree (uncertain), else not at all.
"""

from __future__ import annotations

from irtool.ir.dump import Dump
from irtool.ir.graph import Node
from irtool.ir.operators import PLUMBING, VIRTUAL
from irtool.ir.phases import Phase, phase, phases
from irtool.ir.ties.between import Matcher
from irtool.ir.ties.model import End, Kind, Rule, Tie, Ties, forward_place
from irtool.ir.ties.side import Side
from irtool.ir.ties.within import ForwardNodes, update_tie
from irtool.ir.worked_out import once

__all__ = [
    "TIES",
    "End",
    "Kind",
    "Phase",
    "Rule",
    "Tie",
    "Ties",
    "phase",
    "phases",
    "ties",
    "ties_between",
]


def ties(dump: Dump) -> Ties:
    """Forward to backward nodes, originals to recompute copies, parameters to their updates.

    Args:
        dump: within which nodes are tied; the ties are kept with it.
    """
    return once(dump, TIES, lambda: _ties(dump))


TIES = "ties"
"""What :func:`ties` is called among the results of a dump."""


def _ties(dump: Dump) -> Ties:
    stages = phases(dump)
    finder = ForwardNodes(dump, stages)
    pairs: list[Tie] = []
    backward = [node for node, stage in stages.items() if stage == "backward"]
    copies = [node for node, stage in stages.items() if stage == "recompute"]
    for node in reversed(backward):
        tie = finder.by_id(node) or finder.by_place(node)
        if tie is not None:
            pairs.append(tie)
    tied = {tie.right for tie in pairs}
    pairs += finder.in_order([node for node in reversed(backward) if node not in tied])
    pairs += [tie for tie in map(finder.original, reversed(copies)) if tie is not None]
    updates = [tie for tie in map(update_tie, stages.items()) if tie is not None]
    tieable: dict[Kind, int] = {
        "gradient": sum(
            node.op not in PLUMBING and forward_place(node)[1] not in VIRTUAL for node in backward
        ),
        "recompute": sum(node.op not in PLUMBING for node in copies),
        "parameter": len(updates),
    }
    return Ties((*pairs, *updates), tieable)


def ties_between(begin: Dump, validate: Dump) -> Ties:
    """Operators of an earlier dump to those of a later one of the same compilation.

    Calls are inlined in both.  Tieable are the operators of ``begin``; in ``validate`` the nodes
    that differentiation, recomputation and the parallel passes added are no candidates.  An
    operator that a pass removed or replaced stays untied.

    Args:
        begin: the earlier dump.
        validate: the later one.

    Returns:
        Pairs of the node of ``begin`` and that of ``validate``, each once.
    """
    matcher = Matcher(Side(begin), Side(validate))
    matcher.run()
    by_ends: dict[tuple[End, Node], Tie] = {}
    for tie in matcher.ties():
        by_ends.setdefault((tie.left, tie.right), tie)
    return Ties(tuple(by_ends.values()), {"pass": matcher.tieable})
