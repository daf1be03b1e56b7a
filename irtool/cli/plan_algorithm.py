"""``irtool plan --algorithm``: what goes with MindSpore's own searches."""

from __future__ import annotations

from irtool.cli.report import Failure


def exact_only(algorithm: str, **options: object) -> None:
    """Refuse options that a search of MindSpore's knows nothing of.

    Raises:
        Failure: one of them is given.
    """
    for name, value in options.items():
        if value is not None:
            flag = "--" + name.replace("_", "-")
            message = f"MindSpore's {algorithm} search knows nothing like it"
            raise Failure(message, flag, hint="--algorithm exact")
