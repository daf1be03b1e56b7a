"""SYN003: a dump that ends early."""

from __future__ import annotations

from irtool.linting.rules.syntax.reading import ReadingRule


class TruncatedDump(ReadingRule):
    """The end of the file is not the end of the dump."""

    code = "SYN003"
    name = "truncated-dump"
    severity = "error"
    summary = "The dump ends early"
    explanation = """
        The last graph is not closed, there is a header without any graph, or a compressed file ends
        in the middle. MindSpore was stopped while it wrote, the disk was full, or the file was not
        copied whole. What is there was read; what is missing may hold anything.
        """
    hint = "copy the file again, or dump again with enough room on the disk"
    bad = """
        subgraph @1_construct.2() {
          %0(CNode_3) = PrimFunc_ReLU(%para1_x)
        """
    good = """
        subgraph @1_construct.2() {
          %0(CNode_3) = PrimFunc_ReLU(%para1_x)
          Return(%0)
        }
        """
    cases = ("tests/linting/evidence/gate/golden_mixer.validate, damaged",)
