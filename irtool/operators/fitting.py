"""Whether a call has the inputs that its operator's rule is about: asked once, before the rule.

A rule's signature says how many tensors there are, and of which ranks.  A function beside the table
says it by ``takes``; there may be more inputs than it names.
"""

from __future__ import annotations

from irtool.operators.call import OperatorCall
from irtool.operators.judgement import Unsure
from irtool.operators.notation import InputPattern, Rule


def assigned(rule: Rule, call: OperatorCall) -> list[InputPattern]:
    """One pattern for each tensor input of the call: ``?`` may be missing, ``+`` takes several.

    Args:
        rule: with the patterns of its inputs.
        call: with the tensors that they are for.

    Raises:
        Unsure: the call has more tensors, or fewer, than the rule has places.
    """
    count = len(call.tensors)
    spare = count - sum(pattern.count == "" for pattern in rule.inputs)
    patterns: list[InputPattern] = []
    for pattern in rule.inputs:
        if pattern.count == "":
            patterns.append(pattern)
        elif pattern.count == "?" and spare > 0:
            patterns.append(pattern)
            spare -= 1
        elif pattern.count == "+":
            patterns += [pattern] * spare
            spare = 0
    if len(patterns) > count or (len(patterns) < count and rule.kind != "function"):
        raise Unsure(f"the rule of {call.op} has no place for {count} tensor inputs")
    return patterns


def check_inputs(rule: Rule, call: OperatorCall) -> None:
    """See that a call has the tensors that a rule is about.

    Where a function goes before the notation (``via``), it may look at other forms of the inputs,
    too: of these only the number is held against the rule.

    Args:
        rule: one without patterns takes anything.
        call: with the tensors, whose number and ranks are compared.

    Raises:
        Unsure: it has others; the reason says which.
    """
    if not rule.inputs:
        return
    count = len(call.tensors)
    needed = sum(pattern.count == "" for pattern in rule.inputs)
    if rule.function and rule.kind != "function":
        if count < needed:
            raise Unsure(f"the rule of {call.op} has {needed} tensor inputs, here are {count}")
        return
    patterns = assigned(rule, call)
    ranks = [len(tensor.shape or ()) for tensor in call.tensors]
    for index, (pattern, rank) in enumerate(zip(patterns, ranks, strict=False)):
        if not _fits(pattern, rank):
            raise Unsure(
                f"the rule of {call.op} has {_axes(pattern)}, input {index} has rank {rank}"
            )


def _fits(pattern: InputPattern, rank: int) -> bool:
    fixed = sum(not axis.many for axis in pattern.axes)
    return rank == fixed or (rank > fixed and len(pattern.axes) > fixed)


def _axes(pattern: InputPattern) -> str:
    count = sum(not axis.many for axis in pattern.axes)
    least = "at least " if len(pattern.axes) > count else ""
    return f"{least}{count} {'axis' if count == 1 else 'axes'}"
