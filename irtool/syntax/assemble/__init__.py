"""Turns what the grammar recognised into parts of the model (see :mod:`irtool.syntax.part`)."""

from __future__ import annotations

from lark import v_args  # pyright: ignore[reportUnknownVariableType]  # partly typed in Lark

from irtool.syntax.assemble.lines import LineRules
from irtool.syntax.assemble.types import TypeRules
from irtool.syntax.assemble.values import ValueRules

for _rules in (ValueRules, TypeRules, LineRules):
    # As a function, not a decorator: type checkers would lose the class.
    v_args(inline=True)(_rules)


class Assembler(ValueRules, TypeRules, LineRules):
    """One method a rule of ``grammars/dump.lark``; each returns the part for its text."""
