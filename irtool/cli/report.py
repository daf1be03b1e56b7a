"""Messages for people on standard error: ``FILE:LINE:COL: error[CODE]: …``, the line, a caret."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Generator, Iterable
from contextlib import contextmanager
from contextvars import ContextVar
from difflib import get_close_matches
from typing import TextIO

import click

from irtool.ir.finding import Finding
from irtool.report.plain import colours_wanted
from irtool.report.text import escape, shortened

MAX_REPORTED = 20
"""Most problems printed in one run; the rest is counted."""
_LINE_WIDTH = 96
_LONGEST_MESSAGE = 4096
"""Characters of a message or place that are printed: what they quote may be long."""
_COLOURS = {"error": "1;31", "warning": "1;33", "info": "1;34", "hint": "36"}


class Failure(Exception):
    """Why a command could not do what was asked: ends it with status 2."""

    def __init__(
        self,
        message: str,
        place: str = "",
        column: int = 1,
        text: str = "",
        hint: str = "",
        code: str = "CLI001",
    ) -> None:
        super().__init__(message)
        self.message = message
        self.place = place
        self.column = column
        self.text = text
        self.hint = hint
        self.code = code


def report(
    place: str,
    severity: str,
    code: str,
    message: str,
    text: str = "",
    column: int = 1,
    hint: str = "",
) -> None:
    """Print one message on standard error.

    Args:
        place: that it is about: ``FILE:LINE:COLUMN``, an option; empty: irtool itself.
        severity: ``error``, ``warning`` or ``info``.
        code: of the message, ``CLI001``.
        message: in one line.
        text: the line of the input that is shown below; empty: none.
        column: in that line, from 1.
        hint: what to do about it.
    """
    place, message, hint = (
        shortened(escape(part), _LONGEST_MESSAGE) for part in (place, message, hint)
    )
    lines = [f"{place}: " if place else "irtool: "]
    lines[0] += f"{_coloured(f'{severity}[{code}]', severity)}: {message}"
    lines += _excerpt(text, column)
    if hint:
        lines.append(f"  {_coloured('hint:', 'hint')} {hint}")
    say("\n".join(lines))


_heard: ContextVar[list[str] | None] = ContextVar("heard", default=None)


@contextmanager
def quiet() -> Generator[list[str]]:
    """Keep what would be said on standard error in a list: for those who ask from Python."""
    heard: list[str] = []
    token = _heard.set(heard)
    try:
        yield heard
    finally:
        _heard.reset(token)


_noted: ContextVar[list[str] | None] = ContextVar("noted", default=None)


@contextmanager
def noting() -> Generator[list[str]]:
    """Keep a copy of what is said on standard error."""
    noted: list[str] = []
    token = _noted.set(noted)
    try:
        yield noted
    finally:
        _noted.reset(token)


def say(text: str) -> None:
    """Print a line on standard error; where nobody listens any more, that is no failure.

    Args:
        text: as it is printed; callers have escaped it.
    """
    heard = _heard.get()
    if heard is not None:
        heard.append(text.removeprefix("irtool: "))
        return
    noted = _noted.get()
    if noted is not None:
        noted.append(text)
    _print(text)


def _print(text: str) -> None:
    try:
        print(text, file=sys.stderr, flush=True)
    except UnicodeEncodeError:
        encoding = getattr(sys.stderr, "encoding", None) or "ascii"
        _print(text.encode(encoding, "backslashreplace").decode(encoding))
    except (OSError, ValueError):
        forget_stream(sys.stderr, 2)


def forget_stream(stream: TextIO, number: int) -> None:
    """Point a standard stream elsewhere, so that Python's last flush has nothing to fail on.

    Args:
        stream: standard output, say.
        number: of its file descriptor; a stream that has another is left as it is.
    """
    try:
        if stream.fileno() == number:
            elsewhere = os.open(os.devnull, os.O_WRONLY)
            os.dup2(elsewhere, number)
            os.close(elsewhere)
    except (OSError, ValueError):  # not a file, or closed
        pass


def report_failure(failure: Failure) -> None:
    """Print why a command could not do what was asked.

    Args:
        failure: with its place, and what to do about it.
    """
    report(
        failure.place,
        "error",
        failure.code,
        failure.message,
        failure.text,
        failure.column,
        failure.hint,
    )


def report_usage(error: click.ClickException) -> None:
    """Print what is wrong with the command line.

    Args:
        error: as click raises it.
    """
    message = error.format_message().rstrip(".")
    context = error.ctx if isinstance(error, click.UsageError) else None
    hint = f"{context.command_path} --help shows the options" if context else ""
    if isinstance(error, click.NoSuchOption):
        message = f"there is no option {error.option_name}"
        if error.possibilities:
            hint = f"did you mean {' or '.join(sorted(error.possibilities))}?"
    wrong = re.search(r"'([^']*)' is not one of (.*)", message)
    if wrong:
        near = get_close_matches(wrong[1], re.findall(r"'([^']*)'", wrong[2]), n=1)
        hint = f"did you mean {near[0]}?" if near else hint
    report("", "error", "CLI000", message[:1].lower() + message[1:], hint=hint)


def note(message: str) -> None:
    """Tell the user about a choice that was made for them.

    Args:
        message: in one line; control characters are escaped.
    """
    say(f"irtool: {escape(message)}")


def report_problems(problems: Iterable[Finding]) -> None:
    """Print problems found while reading, at most :data:`MAX_REPORTED` of them.

    Args:
        problems: in the order of the file.
    """
    listed = list(problems)
    for problem in listed[:MAX_REPORTED]:
        place = f"{problem.file}:{problem.line}:{problem.column}"
        text = problem.statement.split("\n", 1)[0]
        report(
            place,
            problem.severity,
            problem.code,
            problem.message,
            text,
            problem.column,
            problem.hint,
        )
    if len(listed) > MAX_REPORTED:
        rest = len(listed) - MAX_REPORTED
        note(f"… and {rest:,} more problems; --format json lists all")


def _excerpt(text: str, column: int) -> list[str]:
    """The offending line and a caret under the column; long lines are cut around it."""
    if not text.strip() or column > len(text) + 1:
        return []  # a very long line, of which the problem keeps only the beginning
    position = min(max(column - 1, 0), len(text))
    start = max(0, position - _LINE_WIDTH // 2) if len(text) > _LINE_WIDTH else 0
    before, after = escape(text[start:position]), escape(text[position : start + _LINE_WIDTH])
    lead = "…" if start else ""
    end = "…" if start + _LINE_WIDTH < len(text) else ""
    return [f"  {lead}{before}{after}{end}", f"  {' ' * len(lead + before)}^"]


def _coloured(text: str, kind: str) -> str:
    return f"\x1b[{_COLOURS[kind]}m{text}\x1b[0m" if colours_wanted(sys.stderr) else text
