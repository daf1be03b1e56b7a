"""SYN002: a type line that cannot be read."""

from __future__ import annotations

from irtool.linting.rules.syntax.reading import DoubtfulReading


class UnreadableTypeLine(DoubtfulReading):
    """The line with the types of a statement is no such line."""

    code = "SYN002"
    name = "unreadable-type-line"
    severity = "error"
    summary = "The types of a statement cannot be read"
    explanation = """
        The statement itself was read, but not the line below it that holds the types of its inputs
        and outputs. Rules that need shapes or element types are silent about this node. An error
        where the line is cut or the dump shows damage elsewhere; else irtool's own fault, an info.
        """
    hint = "dump again; if MindSpore printed it like this, please report the line"
    bad = """
        %4(CNode_9) = PrimFunc_ReLU(%3)
            : (<Tensor[Float32], (8, 16>) -> (<Tensor[Float32], (8, 16)>)
        """
    good = """
        %4(CNode_9) = PrimFunc_ReLU(%3)
            : (<Tensor[Float32], (8, 16)>) -> (<Tensor[Float32], (8, 16)>)
        """
    cases = ("tests/linting/evidence/gate/golden_mixer.validate, damaged",)
    follows_from = ("SYN003", "SYN008", "SYN001")
