"""What was measured of each operator with the real compiler, and what was not.

Measured means: an operator, a kind of strategy, which inputs are there, tensor or constant, sizes
known or not, and the branch of each flag; sizes and ranks of one branch count as one.
``measured.tsv`` lists it, made of the records of ``benchmarks/record_operators`` by
``benchmarks/measured_forms.py``.

``ENFORCED`` says whether the answer for what nobody measured is "unknown" in whole networks; a call
that is judged by itself asks for that with ``Context.measured_only``.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache, lru_cache
from importlib import resources
from typing import Literal, TypeAlias

from irtool.operators.call import Operand, OperatorCall
from irtool.operators.layout import DYNAMIC
from irtool.operators.notation import Attribute
from irtool.operators.table import operator_of

Kind: TypeAlias = Literal["none", "tuple", "layout", "out_strategy", "out_layout", "attribute"]
"""What is given: nothing (MindSpore makes a strategy), a tuple, layouts; for outputs, too; the
attribute ``layout``."""

ENFORCED = True
"""Whether what nobody measured is answered by "unknown"."""

VERSIONS = "2.7 to 2.10"
"""The versions of MindSpore that were asked."""

FILE = "measured.tsv"
_CHOICE = re.compile(r"(mode|layout|format|reduction)\Z")
"""Names of numbers that choose a branch; other numbers are sizes and axes."""


def form_of(call: OperatorCall) -> str:
    """What decides the branch that a call takes: its inputs, then its flags.

    ``t`` is a tensor, ``d`` one of unknown sizes, ``c`` a constant, ``-`` an input that was left
    out, ``(t)`` a tuple of tensors; inputs that the entry names stand as flags, or not at all.

    Args:
        call: whose operator's entry names attributes and inputs.
    """
    entry = operator_of(call.op)
    named = {one.position for one in entry.attributes if one.position is not None}
    inputs = [_letter(one) for position, one in enumerate(call.inputs) if position not in named]
    while inputs and inputs[-1] in "-c":
        inputs.pop()  # later versions have more of them
    if entry.rule is not None and any(pattern.count == "+" for pattern in entry.rule.inputs):
        inputs = list(dict.fromkeys(inputs))  # however many there are
    flags = [text for one in entry.attributes if (text := _flag(call, one))]
    return " ".join([*inputs, *flags])


def _letter(operand: Operand) -> str:
    if operand.items:
        return f"({_letter(operand.items[0])})"
    if operand.shape is not None:
        return "d" if DYNAMIC in operand.shape else "t"
    return "-" if operand.value is None else "c"


def _flag(call: OperatorCall, attribute: Attribute) -> str:
    """``name=value`` of what chooses a branch; nothing of sizes, axes and what is not known."""
    place = attribute.position
    operand = call.inputs[place] if place is not None and place < len(call.inputs) else None
    if operand is not None and operand.shape is not None:
        return f"{attribute.name}=tensor"
    value = call.attributes.get(attribute.name, attribute.default)
    if operand is not None and operand.is_constant:
        value = operand.value
    chooses = isinstance(value, bool | str) or value is None or _CHOICE.search(attribute.name)
    return f"{attribute.name}={value}" if chooses else ""


def kind_of(strategy: object, layouts: object, out_strategy: object, out_layouts: object) -> Kind:
    """What is given to an operator, of which the outputs' goes before the inputs'.

    Args:
        strategy: its ``in_strategy``; None where none is given, as in the others.
        layouts: its ``in_layout``.
        out_strategy: its ``out_strategy``.
        out_layouts: its ``out_layout``.
    """
    if out_layouts is not None:
        return "out_layout"
    if out_strategy is not None:
        return "out_strategy"
    if layouts is not None:
        return "layout"
    return "none" if strategy is None else "tuple"


def why_not_measured(call: OperatorCall, kind: Kind) -> str:
    """Why nobody knows what MindSpore makes of such a call; empty where it was measured.

    What a user declares of an operator of their own counts as declared: it is not held against the
    records. What ``self_define_shard`` leaves to the user's layouts, its function judges.

    Args:
        call: whose operator and form are looked up.
        kind: of what it is given.
    """
    entry = operator_of(call.op)
    by_layouts = entry.rule is not None and entry.rule.function == "self_define_shard"
    if entry.declared or by_layouts or call.attributes.get("self_define_shard"):
        return ""
    if kind == "out_layout" and (entry.rule is None or not entry.rule.layout):
        kind = "layout"  # refused for those of its inputs, before its outputs are looked at
    known = _known(call.op.removeprefix("_"))
    if not known:
        return f"{call.op} was never measured"
    forms = known.get(kind, frozenset())
    if not forms:
        return f"{call.op} was never measured with {_WORDS[kind]}"
    if kind == "layout" and entry.rule is not None and not entry.rule.layout:
        return ""  # its class takes none: MindSpore does not look at the call
    if kind == "attribute" and (entry.rule is None or not entry.rule.configured):
        return ""  # its class gives the result no layout, whatever the call is like
    form = form_of(call)
    if form not in forms:
        return f"{call.op} was measured with {_WORDS[kind]}, but not as ({form})"
    return ""


_WORDS: Mapping[Kind, str] = {
    "none": "no strategy",
    "tuple": "a strategy",
    "layout": "layouts",
    "out_strategy": "an output strategy",
    "out_layout": "output layouts",
    "attribute": "the attribute layout",
}


@cache
def _known(op: str) -> Mapping[str, frozenset[str]]:
    """By kind of strategy, the forms of an operator that were measured."""
    rows = (line.split("\t") for line in _lines().get(op, ()))
    return {kind: frozenset(forms.split(" | ")) for _, kind, forms in rows}


@lru_cache(maxsize=1)
def _lines() -> Mapping[str, list[str]]:
    """The lines of each operator that was measured."""
    text = (resources.files("irtool.operators") / FILE).read_text(encoding="utf-8")
    by_operator: dict[str, list[str]] = {}
    for line in text.splitlines():
        by_operator.setdefault(line.partition("\t")[0], []).append(line)
    return by_operator
