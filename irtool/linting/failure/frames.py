"""Lines of Python in logs: MindSpore's ``In file …`` and the frames of Python's own tracebacks."""

from __future__ import annotations

import re
from collections.abc import Sequence

from irtool.ir.finding import SourceLine
from irtool.ir.framework import is_framework
from irtool.ir.limits import bounded_int

_IN_FILE = re.compile(
    r"(?:# ?(?:\d+ )?)?In file ([^,]*?):(\d+)(~\d+)?(?:, ?\d+~\d+)?(.*)", re.DOTALL
)
_PYTHON = re.compile(r'\s{0,8}File "([^"]*)", line (\d+)(?:, in (\S+))?')
_MOST_SOURCE = 160


def mindspore_frame(text: str) -> tuple[SourceLine, bool] | None:
    """A line ``In file net.py:12, 8~20/    x = y/`` and whether it stands for a whole function."""
    if "In file " not in text[:24]:
        return None
    match = _IN_FILE.match(text.strip())
    if match is None:
        return None
    path, line, until, rest = match.groups()
    source = rest.strip().strip("/").strip()[:_MOST_SOURCE]
    return SourceLine(path, bounded_int(line), text=source), until is not None


def python_frame(text: str) -> SourceLine | None:
    """A line ``File "train.py", line 3, in main`` of a traceback.

    Args:
        text: a line of a log.

    Returns:
        None where the line is no frame.
    """
    match = _PYTHON.match(text)
    return SourceLine(match[1], bounded_int(match[2])) if match else None


def innermost(stack: Sequence[SourceLine]) -> SourceLine | None:
    """The user's innermost line of a stack (outermost first); MindSpore's own if there is none.

    Args:
        stack: of one error; empty where nothing was printed.
    """
    own = [frame for frame in stack if not is_framework(frame.path)]
    return own[-1] if own else (stack[-1] if stack else None)


class FrameCollector:
    """Gathers the lines of Python that follow an exception, and the source lines below them.

    MindSpore prints up to two lists: ``The Function Call Stack`` is innermost first, ``The
    Traceback of Net Construct Code`` outermost first; the second is preferred.
    """

    def __init__(self) -> None:
        self._calls: list[SourceLine] = []
        self._traceback: list[SourceLine] = []
        self._in_traceback = False
        self._wants_source = False
        self._whole = False

    def feed(self, text: str) -> bool:
        """Take a line that follows the exception; False once it is not part of it any more."""
        if "The Function Call Stack" in text:
            self._in_traceback = False
        elif "The Traceback of Net Construct Code" in text:
            self._in_traceback = True
        parsed = mindspore_frame(text)
        if parsed is not None:
            frame, self._whole = parsed
            numbered = text.lstrip().startswith("#")
            target = self._traceback if self._in_traceback or numbered else self._calls
            if not self._whole and len(target) < 200:
                target.append(frame)
            self._wants_source = numbered and not frame.text and not self._whole
            return True
        if self._wants_source and text.strip() and not text.lstrip().startswith(("^", "~", "-")):
            last = self._traceback[-1]
            source = text.strip()[:_MOST_SOURCE]
            self._traceback[-1] = SourceLine(last.path, last.line, text=source)
            self._wants_source = False
        return True

    @property
    def stack(self) -> tuple[SourceLine, ...]:
        """The frames that were collected, outermost first."""
        return tuple(self._traceback or reversed(self._calls))
