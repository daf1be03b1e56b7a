"""SYN004: the header counts otherwise."""

from __future__ import annotations

from irtool.linting.rules.syntax.reading import DoubtfulReading


class CountDisagrees(DoubtfulReading):
    """The number of nodes or graphs in the header is not what was read."""

    code = "SYN004"
    name = "count-disagrees"
    severity = "error"
    summary = "The header states another number of nodes or graphs than there are"
    explanation = """
        Every dump carries its own checksum: `Total number of cnodes` and `Total subgraphs`. Where
        they disagree with what stands below them, statements were lost or added after MindSpore
        wrote the file. It is an error where something refers to what is not there, or the dump
        shows other damage; where all that is used is there, irtool may have counted otherwise than
        MindSpore, and it is an info.
        """
    hint = "dump again, and do not edit dumps by hand"
    bad = "# Total number of cnodes: 12   (of which 11 are there)"
    good = "# Total number of cnodes: 12   (all of which are there)"
    cases = ("tests/linting/evidence/gate/golden_mixer.validate, damaged",)
    follows_from = ("SYN003", "SYN007", "SYN008", "SYN001", "SYN009", "SYN010")
