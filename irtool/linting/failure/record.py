"""Lines of a log: MindSpore's and CANN's headers, Python's tracebacks."""

from __future__ import annotations

import re
from typing import Literal

from irtool.ir.dataclass import dataclass

Level = Literal["error", "exception", "warning", "info", "plain"]
"""``exception`` is the last line of a Python traceback, ``plain`` any other without a header."""

_LEVELS: dict[str, Level] = {
    "ERROR": "error",
    "CRITICAL": "error",
    "EXCEPTION": "error",
    "WARNING": "warning",
    "INFO": "info",
    "DEBUG": "info",
    "EVENT": "info",
}
_MARK = re.compile(r"\[(?:ERROR|CRITICAL|EXCEPTION|WARNING|INFO|DEBUG|EVENT)\]")
_HEADER = re.compile(
    r"\[([A-Z]+)\] ?([A-Z][A-Za-z_]*)\(([^()\[\]]*)\):([\d\-:.]+) ?(.*)", re.DOTALL
)
_SOURCE = re.compile(r"\[([^\[\]\s]+\.(?:cc|cpp|c|h|hpp|py)):(\d+)\] ?(.*)", re.DOTALL)
_FUNCTION = re.compile(r"([A-Za-z_~][\w:~<>]*(?:\(\))?)\] ?(.*)", re.DOTALL)
_TAGS = re.compile(r"(?:\[[^\[\]]*\])+")
_PREFIX = 200
"""Characters before a header that a launcher may have put there: ``[rank3]: ``, a timestamp."""

_EXCEPTION = re.compile(
    r"(?:[A-Za-z_]\w*\.)*([A-Za-z_]\w*(?:Error|Exception|Interrupt|Exit)): ?(.*)", re.DOTALL
)
_RANKED = re.compile(r"\[rank_?(\d{1,7})\]:? ?", re.IGNORECASE)
_NUMBERS = re.compile(r"0x[0-9a-fA-F]+|\d+")


@dataclass(frozen=True, slots=True)
class Record:
    """One line of a log, its header taken apart.

    ``message`` is what follows the header, or the whole line if there is none; ``function`` and
    ``source`` are the place in MindSpore's own code, ``stream`` the process and thread.
    """

    level: Level
    message: str
    module: str = ""
    stream: tuple[str, str] = ("", "")
    time: str = ""
    source: str = ""
    function: str = ""
    rank: int | None = None

    @property
    def is_parallel(self) -> bool:
        """Whether the pass that shards operators wrote it."""
        return self.module == "PARALLEL" or "frontend/parallel/" in self.source

    @property
    def check(self) -> str:
        """What speaks: ``matmul_info.cc:CheckInputStrategy``; empty where the line doesn't say."""
        name = self.source.rpartition("/")[2]
        return f"{name}:{self.function}" if name and self.function else name


def parse_line(text: str) -> Record:
    """Read one line (without its end).

    Args:
        text: as the log has it, with a prefix ``[rank0]:`` before it, if any.

    Returns:
        A record; a line without a header is of level ``plain``.
    """
    ranked = _RANKED.match(text)
    rank = int(ranked[1]) if ranked else None
    if ranked:
        text = text[ranked.end() :]
    mark = _MARK.search(text, 0, _PREFIX)
    match = _HEADER.match(text, mark.start()) if mark else None
    if match is not None:
        level, module, process, time, rest = match.groups()
        source, function, message = _place(rest)
        stream = _stream(process)
        return Record(_LEVELS[level], message, module, stream, time, source, function, rank)
    if text.startswith("["):
        source, function, message = _place(text)
        if source:
            return Record("error", message, "", ("", ""), "", source, function, rank)
    return Record("plain", text, rank=rank)


def _stream(text: str) -> tuple[str, str]:
    """Process and thread of ``9431,7f795862ab80,python`` (Python's own lines have ``9431:7f…``)."""
    parts = text.replace(":", ",").split(",")
    return parts[0], parts[1] if len(parts) > 2 else ""


def _place(text: str) -> tuple[str, str, str]:
    """Source file, function and message of what follows a header."""
    match = _SOURCE.match(text)
    if match is None:
        return "", "", text
    source, _, rest = match.groups()
    function = _FUNCTION.match(rest)
    if function is not None:
        return source, function[1].rpartition("::")[2], function[2]
    tags = _TAGS.match(rest)  # CANN: [1234][Wait][LinkEstablish]wait socket …
    return source, "", rest[tags.end() :].lstrip() if tags else rest


def exception_of(text: str) -> tuple[str, str] | None:
    """Type and message of the last line of a Python traceback, or None.

    Args:
        text: a line of a log.
    """
    match = _EXCEPTION.match(text)
    return (match[1], match[2]) if match else None


def masked(text: str) -> str:
    """The text with its numbers made alike: lines that differ in nothing else tell the same.

    Args:
        text: of which the first 400 characters count.
    """
    return _NUMBERS.sub("#", text[:400])
