"""GAT005: more memory than the golden dump takes."""

from __future__ import annotations

from collections.abc import Iterator

from irtool.ir.finding import Finding
from irtool.ir.units import told_apart
from irtool.linting.gate import GateFacts, GateRule
from irtool.linting.rule import MIB, Threshold


class MoreMemory(GateRule):
    """Static memory or the peak of a step that grew."""

    code = "GAT005"
    name = "more-memory"
    severity = "warning"
    summary = "A device needs more memory than with the golden dump"
    explanation = """
        Compared are the bytes that stay (parameters, optimizer state, accumulated gradients) and
        the peak of a step's tensors in launch order, as `irtool memory` counts them. Dumps with
        dimensions that are not known are not compared.
        """
    hint = "irtool memory shows what is alive at the peak"
    bad = "peak of a step: 3,100 MiB became 5,900 MiB"
    follows_from = ("GAT004", "GAT008", "GAT006", "GAT003", "GAT010", "GAT009")
    good = "peak of a step: 3,100 MiB became 3,120 MiB"
    cases = ("tests/linting/evidence/gate/wide_layer_more_dense.validate",)
    most_percent = Threshold(5, "percent", "growth up to this is ignored")
    least_bytes = Threshold(MIB, "bytes", "growth below this is ignored")

    def check(self, facts: GateFacts) -> Iterator[Finding]:
        old, new = facts.old_memory, facts.new_memory
        if not old.is_complete or not new.is_complete:
            return
        largest = new.alive[0].node if new.alive else None
        if self._is_more(old.static_bytes, new.static_bytes):
            text = _text("memory that stays", old.static_bytes, new.static_bytes)
            yield self.finding(text, line=_line(facts), key="memory that stays")
        if self._is_more(old.dynamic_bytes, new.dynamic_bytes):
            text = _text("peak of a step", old.dynamic_bytes, new.dynamic_bytes)
            yield self.finding(text, largest, key="peak of a step")

    def _is_more(self, old: int, new: int) -> bool:
        grew = new - old
        return grew >= self.least_bytes and grew * 100 > self.most_percent * old


def _text(what: str, old: int, new: int) -> str:
    before, now = told_apart(old, new, "bytes")
    return f"{what}: {before} became {now}"


def _line(facts: GateFacts) -> int:
    """Where the parameter stands that grew by most: one that is new by all that it holds."""
    old = {item.name: item.bytes or 0 for item in facts.old_memory.static}
    new = facts.new_memory.static
    grown = max(new, key=lambda item: (item.bytes or 0) - old.get(item.name, 0), default=None)
    named = grown.name if grown is not None else ""
    return next(
        (parameter.line for parameter in facts.new.dump.parameters if parameter.name == named), 1
    )
