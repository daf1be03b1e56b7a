"""SYN000: a file that cannot be read at all."""

from __future__ import annotations

from irtool.linting.rule import EngineRule


class UnreadableFile(EngineRule):
    """A dump that is there, but cannot be opened or expanded."""

    code = "SYN000"
    name = "unreadable-file"
    severity = "error"
    summary = "A dump cannot be read at all"
    explanation = """
        The file is there, but nobody may read it, it is too large, or there is not enough memory
        for it. Nothing is known about it. Where no file at all can be read, the command ends with
        status 2 instead.
        """
    hint = "MindSpore writes dumps readable by their owner only"
    bad = "-r-------- root 20_validate_0080.ir"
    good = "-rw-r--r-- user 20_validate_0080.ir"
