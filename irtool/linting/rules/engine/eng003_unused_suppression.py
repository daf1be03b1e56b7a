"""ENG003: a comment that suppresses nothing."""

from __future__ import annotations

from irtool.linting.rule import EngineRule


class UnusedSuppression(EngineRule):
    """A suppression comment that no finding needs."""

    code = "ENG003"
    name = "unused-suppression"
    severity = "info"
    summary = "A suppression comment answers for no finding"
    explanation = """
        None of the findings in these dumps comes from the statement that the comment stands at, so
        it may be taken away. Off by default, since another compilation of the same source (another
        stage, another number of devices) may still need it. Only files are looked at from which
        some finding comes.
        """
    hint = "take the comment away, if no other compilation needs it"
    bad = "x = self.act(x)  # irtool: ignore[STR002]   (nothing to report here)"
    good = "x = self.act(x)"
    is_default = False
