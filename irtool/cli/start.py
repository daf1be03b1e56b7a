"""What ``irtool`` says when it is asked nothing: what to do first."""

from __future__ import annotations

import os

_FIRST = (
    ("irtool RUN", "what is wrong with a run (a folder with rank_0/, rank_1/, …), ranked"),
    ("irtool parse DUMP.ir", "what is in a dump"),
    ("irtool check GRAPHS", "are the strategies legal; what will be sliced and communicated"),
    ("irtool viz DUMP.ir --open", "the graph in a browser"),
    ("irtool diff LEFT RIGHT", "what differs between two dumps or runs, and where first"),
    ("irtool lint GRAPHS", "what is wrong, or worth a look"),
)
_MOST_LISTED = 10_000
"""Entries of the folder that are looked at."""


def first_steps(folder: str = ".") -> str:
    """What to do first, in lines; of dumps in the folder, what to run on them.

    Args:
        folder: that is looked into, without its folders.
    """
    width = max(len(line) for line, _ in _FIRST)
    lines = ["irtool reads the graph dumps (*.ir) of MindSpore. What to do first:", ""]
    lines += [f"  {line:<{width}}  {what}" for line, what in _FIRST]
    here = _dumps_of(folder)
    lines += ["", here] if here else []
    lines += [
        "",
        "No dump yet? MindSpore writes them where these are set:",
        "  MS_DEV_SAVE_GRAPHS=1 MS_DEV_SAVE_GRAPHS_PATH=graphs/",
        "All commands: irtool --help; of one: irtool check --help",
    ]
    return "".join(f"{line}\n" for line in lines)


def _dumps_of(folder: str) -> str:
    """What to run on the dumps that are in a folder; "" where there is none."""
    try:
        with os.scandir(folder) as entries:
            names = [entry.name for _, entry in zip(range(_MOST_LISTED), entries, strict=False)]
    except OSError:
        return ""
    if any(name.startswith("rank_") for name in names):
        return "This folder looks like a run: irtool doctor ."
    if any(name.endswith((".ir", ".ir.gz", ".ir.xz")) for name in names):
        return "There are dumps in this folder: irtool parse . or irtool doctor ."
    return ""
