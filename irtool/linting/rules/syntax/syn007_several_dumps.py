"""SYN007: several dumps in one file."""

from __future__ import annotations

from irtool.linting.rules.syntax.reading import ReadingRule


class SeveralDumps(ReadingRule):
    """More than one header."""

    code = "SYN007"
    name = "several-dumps"
    severity = "error"
    summary = "Several dumps stand in one file"
    explanation = """
        There is more than one header. Names and numbers of the dumps overlap, so that references
        may be taken for those of another one.
        """
    hint = "split the file before each line that begins with '# IR entry'"
    bad = """
        # IR entry: @net_a
        ...
        # IR entry: @net_b
        """
    good = "# IR entry: @net_a"
    cases = ("tests/linting/evidence/gate/golden_mixer.validate, damaged",)
