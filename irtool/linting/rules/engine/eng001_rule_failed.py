"""ENG001: a rule failed."""

from __future__ import annotations

from irtool.linting.rule import EngineRule


class RuleFailed(EngineRule):
    """A rule raised an exception."""

    code = "ENG001"
    name = "rule-failed"
    severity = "warning"
    summary = "A rule failed, so what it looks for is not known here"
    explanation = """
        A rule raised an exception while it looked at this dump. All other rules went on; what this
        one would have found is not known.
        """
    hint = "report it with the dump, if the rule is one of irtool's own; --ignore leaves it out"
    bad = "COM999 failed here: KeyError: 'group' (com999_example.py:31)"
    good = "the rule takes what it may meet in a dump"
