"""SYN005: another kind of file."""

from __future__ import annotations

from irtool.linting.rules.syntax.reading import ReadingRule


class NotADump(ReadingRule):
    """A file without header, graph or statement."""

    code = "SYN005"
    name = "not-a-dump"
    severity = "error"
    summary = "The file is not an ANF IR dump"
    explanation = """
        There is no header, no graph and no statement in the file. Actor sets (`actor_set_*.ir`)
        bear the same suffix but are another language, a list of runtime actors.
        """
    hint = "give the dumps beside it: step_parallel_begin_*.ir, *_validate_*.ir"
    bad = "<!DOCTYPE html>"
    good = "# IR entry: @19_1___main___Net_construct.11"
    cases = ("samples/artefacts", "tests/linting/evidence/gate/golden_mixer.validate, damaged")
