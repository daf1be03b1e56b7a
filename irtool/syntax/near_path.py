"""A path that is there and is written like one that is not."""

from __future__ import annotations

import os
from difflib import get_close_matches

from irtool.syntax import file_facts


def near_path(path: str) -> str:
    """The path that was probably meant, with every name that is not there put right.

    Args:
        path: that is not there, relative or absolute.

    Returns:
        "" where nothing there is written like it.
    """
    drive, rest = os.path.splitdrive(path)
    corrected = drive + os.sep if rest.startswith(os.sep) else drive
    for name in filter(None, rest.split(os.sep)):
        nearer = os.path.join(corrected, name)
        if not file_facts.is_there(nearer):
            try:
                there = file_facts.names_in(corrected or os.curdir)
            except OSError:
                return ""
            close = get_close_matches(name, there, n=1)
            if not close:
                return ""
            nearer = os.path.join(corrected, close[0])
        corrected = nearer
    return corrected


def path_hint(path: str, else_hint: str = "check the path") -> str:
    """What to write instead of a path that is not there, as ``did you mean samples/gpt?``.

    Args:
        path: that is not there.
        else_hint: what to say where nothing is written like it.
    """
    near = near_path(path)
    return f"did you mean {near}?" if near else else_hint
