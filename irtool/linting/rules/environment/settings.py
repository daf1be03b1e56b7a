"""What was set around a compilation: environment variables that somebody told, and the version."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import cast

from irtool.ir.dump import Dump
from irtool.linting.facts import CompilationFacts


def environment(facts: CompilationFacts) -> Mapping[str, str]:
    """Environment variables of the training process, as ``[context.environment]`` tells them.

    Args:
        facts: of a compilation.

    Returns:
        Values by name; empty where nobody told, which does not mean that they are not set.
    """
    context = facts.surroundings.context or {}
    variables = context.get("environment")
    if not isinstance(variables, Mapping):
        return {}
    table = cast("Mapping[object, object]", variables)
    return {str(name): str(value) for name, value in table.items()}


def version_at_least(dump: Dump, major: int, minor: int) -> bool:
    """Whether the dump's own spelling shows this version of MindSpore or a later one.

    Args:
        dump: whose dialect is asked.
        major: of the version, as 2 in 2.3.
        minor: of the version, as 3 in 2.3.

    Returns:
        False where the spelling fits an older version, too.
    """
    match = re.match(r"(\d+)\.(\d+)", dump.dialect)
    if match is None:
        return False
    # A range that begins with an older version proves nothing.
    return (int(match[1]), int(match[2])) >= (major, minor)
