"""SYN001: a statement that cannot be read."""

from __future__ import annotations

from irtool.linting.rules.syntax.reading import DoubtfulReading


class UnreadableStatement(DoubtfulReading):
    """A record that the grammar of dumps does not know."""

    code = "SYN001"
    name = "unreadable-statement"
    severity = "error"
    summary = "A statement cannot be read"
    explanation = """
        The statement is none that any version of MindSpore is known to print: the dump was cut,
        edited, or pasted together, or its version is newer than this irtool. The statement is kept
        as it stands and the rest of the dump is read, but no rule can say anything about it, nor
        about what uses its result.

        It is an error where the statement is cut (a bracket is open) or the dump shows damage
        elsewhere. Where nothing does, the fault is irtool's, and it is an info.
        """
    hint = "dump again; if MindSpore printed it like this, please report the line"
    bad = "  %4(CNode_9) = PrimFunc_MatMul(%2, %3"
    good = "  %4(CNode_9) = PrimFunc_MatMul(%2, %3, Bool(0), Bool(1)) cnode_attrs: {}"
    cases = ("tests/linting/evidence/gate/golden_mixer.validate, damaged",)
    follows_from = ("SYN003", "SYN008")
