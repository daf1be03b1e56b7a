"""ENG002: a comment names a rule that does not exist."""

from __future__ import annotations

from irtool.linting.rule import EngineRule


class UnknownSuppression(EngineRule):
    """A suppression comment with a code that means nothing."""

    code = "ENG002"
    name = "unknown-suppression"
    severity = "warning"
    summary = "A suppression comment names a rule that does not exist"
    explanation = """
        `# irtool: ignore[...]` in the Python source holds a code, a prefix of codes, or a name that
        no rule bears. It suppresses nothing, so the finding that it was written for is reported
        again, or the comment outlived its rule.
        """
    hint = "irtool rules lists all codes"
    bad = "x = self.gate(x)  # irtool: ignore[STR0002]"
    good = "x = self.gate(x)  # irtool: ignore[STR002]"
