"""The other way to put out what an operator adds up from parts: whole or scattered."""

from __future__ import annotations

from irtool.operators.call import OperatorCall, Strategy
from irtool.operators.judgement import Judgement
from irtool.operators.table import operator_of


def other_output(call: OperatorCall, strategy: Strategy, judgement: Judgement) -> Strategy | None:
    """The ``out_strategy`` that asks for the way which is not MindSpore's own; None: there is none.

    Whether it is legal the rule has to say.

    Args:
        call: the operator's inputs and attributes.
        strategy: of its inputs.
        judgement: what that strategy makes of it without an ``out_strategy``.
    """
    if len(judgement.output_layouts) != 1:
        return None
    operator = operator_of(call.op)
    if operator.is_("scatters") and judgement.collectives:
        return _scattered_sum(judgement)
    if operator.is_("scatters_rows") and len(judgement.collectives) == 1:
        return _other_rows(call, strategy, judgement.collectives[0].op)
    return None


def _scattered_sum(judgement: Judgement) -> Strategy | None:
    """The split sum scattered: half of what an AllReduce moves."""
    splits = judgement.output_layouts[0].splits
    if len(splits) != 2:
        return None
    return ((splits[0] * len(judgement.collectives[0].ranks), splits[1]),)


def _other_rows(call: OperatorCall, strategy: Strategy, own: str) -> Strategy | None:
    """Rows of a split table, whole instead of scattered or the other way round.

    By itself MindSpore scatters them over the first dimension of the result where that divides,
    but for split indices; an ``out_strategy`` says which (``gather_info.cc:CheckOutputStrategy``).
    Where indices of two dimensions are split, it takes the scattered rows for larger than they
    are, and refuses what comes behind (seen with 2.7.0).
    """
    table, indices = strategy[:2]
    unscattered = (*indices, *table[1:])
    if not indices or len(unscattered) != len(call.results[0].shape or ()):
        return None
    if own != "AllReduce":
        return (unscattered,)
    divides = (call.results[0].shape or (1,))[0] % (unscattered[0] * table[0]) == 0
    return (
        ((unscattered[0] * table[0], *unscattered[1:]),) if divides and len(indices) == 1 else None
    )
