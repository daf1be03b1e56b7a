"""SYN006: nothing in the file."""

from __future__ import annotations

from irtool.linting.rules.syntax.reading import ReadingRule


class EmptyDump(ReadingRule):
    """A file with nothing in it."""

    code = "SYN006"
    name = "empty-dump"
    severity = "error"
    summary = "There is nothing in the file"
    explanation = """
        MindSpore opens a dump before it prints the graph: an empty file is what a process leaves
        that died in between, or one that another process still writes.
        """
    hint = "see the log of the process that should have written it"
    bad = "(an empty file)"
    good = "# IR entry: @19_1___main___Net_construct.11"
    cases = ("tests/linting/evidence/gate/golden_mixer.validate, damaged",)
