"""What MindSpore decided, where a later dump of the same compilation shows it."""

from __future__ import annotations

from irtool.linting.facts import CompilationFacts

REPORT = "please report it with the dump"
"""What to do about an answer that MindSpore itself contradicts."""


def is_accepted(facts: CompilationFacts) -> bool:
    """Whether the parallel pass is known to have ended well.

    It writes ``step_parallel_end`` when it is done, and ``validate`` comes after it: a compilation
    that it refused has neither.

    Args:
        facts: of one compilation, with the dumps of it that are there.
    """
    return facts.of_kind("validate") is not None or facts.of_kind("end") is not None
