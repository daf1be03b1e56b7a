"""Answers of irtool in a form that can be compared: what may differ from run to run left out.

An answer is a status, and sections. A section is a name and a sequence of values: one for each path
of keys of a JSON answer (``operators[].collectives[].bytes``: all of them in order), one for each
column of a table, and one that holds the lines of a text.
"""

from __future__ import annotations

import base64
import csv
import hashlib
import html
import io
import json
import os
import re
import signal
import sys
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from types import FrameType
from typing import Any

import irtool
from benchmarks.net_questions import Question
from irtool.cli.main import main

LONGEST = 60
"""CPU seconds that a question may take before it counts as one that never ends."""
LINES = "|"
"""The section of a text's lines."""
ERRORS = "stderr"
"""The section of what was said beside the answer."""
MARKUP = {"html", "svg", "junit"}
DIGITS = 9
"""Of a number: the rest is rounding, which machines and versions of Python do differently."""
SMALLEST = 1e-15
"""Less than this is what rounding leaves of nothing: no time that is told is so short."""

_TIMED = {"plan", "recover"}
"""Commands that say how long they took: under the key ``seconds`` of the answer."""
_TOOK = re.compile(
    r"\b\d+(?:\.\d+)? (?:ns|µs|ms|s|min|h|seconds|minutes) (?:of )?CPU\b|\bin \d+(?:\.\d+)? m?s\b"
)
_SCRIPT = re.compile(r"<(script|style)\b([^>]*)>(.*?)</\1>", re.DOTALL | re.IGNORECASE)
_TAG = re.compile(r"<[^<>]*>")


@dataclass(frozen=True, slots=True)
class Answer:
    """What one question gave: exit status, and values by section."""

    status: str
    sections: dict[str, tuple[str, ...]]


class NeverEnds(BaseException):
    """A question used up its time: not an Exception, so that irtool does not handle it."""


def ask(question: Question) -> Answer:
    """Ask in this process, from the folder where the question's paths begin."""
    out = io.TextIOWrapper(io.BytesIO(), encoding="utf-8", errors="surrogateescape")
    said = io.StringIO()
    kept = sys.stdout, sys.stderr
    sys.stdout, sys.stderr = out, said
    try:
        with _time_limit(LONGEST):
            status = str(main(question.arguments))
    except NeverEnds:
        status = f"no end within {LONGEST} s"
    except BaseException as error:
        # irtool lets nothing through but what it means to: what comes out here is a finding.
        status = f"traceback: {type(error).__name__}: {error}"
    finally:
        out.flush()
        sys.stdout, sys.stderr = kept
    return _answer(question, status, out.buffer.getvalue(), said.getvalue())  # pyright: ignore


@contextmanager
def _time_limit(seconds: int) -> Iterator[None]:
    if not hasattr(signal, "setitimer"):
        yield
        return

    def stop(_signal: int, _frame: FrameType | None) -> None:
        raise NeverEnds

    before = signal.signal(signal.SIGPROF, stop)
    signal.setitimer(signal.ITIMER_PROF, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)


def _answer(question: Question, status: str, output: bytes, said: str) -> Answer:
    sections: dict[str, tuple[str, ...]] = {}
    if said:
        sections[ERRORS] = tuple(_plain(said).splitlines())
        if "CLI999" in said:
            status = f"internal error ({status})"
    read = _READERS.get(question.format, _text)
    if output[:4] == b"PAR1":
        read = _parquet
    try:
        for name, values in read(output):
            sections[name] = tuple(values)
    except ValueError:
        for name, values in _text(output):
            sections[name] = tuple(values)
    if question.command in _TIMED and "seconds" in sections:
        sections["seconds"] = ("TIME",)
    return Answer(status, sections)


def _plain(text: str) -> str:
    """Text without what differs from run to run: paths, versions, times."""
    here = os.getcwd()
    # Titles name the folder that a run is in: what the checkout is called is no part of an answer.
    for place, name in ((here, "HERE"), (f"{os.path.basename(here)}/samples", "HERE/samples")):
        text = text.replace(place, name)
    text = text.replace(f"irtool {irtool.__version__}", "irtool X")
    return _TOOK.sub("TIME", text)


# -- formats -------------------------------------------------------------------------------------


Sections = Iterable[tuple[str, Sequence[str]]]


def _text(output: bytes) -> Sections:
    lines = _plain(output.decode("utf-8", "backslashreplace")).splitlines()
    return [(LINES, lines)] if lines else []


def _json(output: bytes) -> Sections:
    return _columns(json.loads(output)).items() if output else []


def _ndjson(output: bytes) -> Sections:
    return _columns([json.loads(line) for line in output.splitlines()]).items()


def _csv(output: bytes) -> Sections:
    rows = list(csv.reader(io.StringIO(output.decode("utf-8", "backslashreplace"))))
    if not rows:
        return []
    width = max(map(len, rows))
    names = [*rows[0], *(f"(no name {number})" for number in range(len(rows[0]), width))]
    columns = {name: [_rounded(row[at]) for row in rows[1:] if at < len(row)]
               for at, name in enumerate(names)}  # fmt: skip
    return columns.items()


def _toml(output: bytes) -> Sections:
    return [(name, [_rounded(line) for line in lines]) for name, lines in _text(output)]


_FRACTION = re.compile(r"(?<![\w.])-?\d+(?:\.\d+(?:e[-+]?\d+)?|e[-+]?\d+)(?![\w.])")


def _rounded(text: str) -> str:
    """Text whose fractions have the digits that are no rounding."""
    return _FRACTION.sub(lambda match: str(_number(float(match[0]))), _plain(text))


def _parquet(output: bytes) -> Sections:
    try:
        from pyarrow import parquet
    except ImportError:
        return [(LINES, ["a Parquet file"])]
    table = parquet.read_table(io.BytesIO(output)).to_pydict()
    return _columns(table).items()


def _markup(output: bytes) -> Sections:
    """Visible text by line; data inside a page as JSON; scripts, styles and shapes by digest."""
    text = output.decode("utf-8", "backslashreplace")
    parts: list[tuple[str, Sequence[str]]] = []
    code: list[str] = []
    for number, (tag, attributes, content) in enumerate(_SCRIPT.findall(text)):
        try:
            columns = _columns(_data(attributes, content)) if tag == "script" else {}
        except (ValueError, zlib.error):
            columns = {}
        parts.extend((f"data {number}: {name}", values) for name, values in columns.items())
        if not columns:
            code.append(content)
    bare = _SCRIPT.sub("", text)
    shown = [html.unescape(piece).strip() for piece in _TAG.split(bare)]
    parts.append((LINES, [_plain(piece) for piece in shown if piece]))
    parts.append(("scripts and styles", [_digest(code)]))
    parts.append(("tags", [_digest(_plain(tag) for tag in _TAG.findall(bare))]))
    return parts


def _data(attributes: str, content: str) -> Any:
    """The data inside a page, plain or packed.

    Raises:
        ValueError, zlib.error: it is a script.
    """
    if "octet-stream" in attributes:
        content = zlib.decompress(base64.b64decode(content), -zlib.MAX_WBITS).decode()
    elif "json" not in attributes:
        raise ValueError
    return json.loads(content)


_READERS: dict[str, Callable[[bytes], Sections]] = {
    "json": _json,
    "sarif": _json,
    "gitlab": _json,
    "strategy": _json,
    "model-explorer": _json,
    "ndjson": _ndjson,
    "csv": _csv,
    "toml": _toml,
    **dict.fromkeys(MARKUP, _markup),
}


def _columns(value: Any) -> dict[str, list[str]]:
    """The leaves of a JSON value, in order, by the path of keys that leads to them."""
    columns: dict[str, list[str]] = {}
    stack: list[tuple[str, Any]] = [("", value)]
    while stack:
        path, item = stack.pop()
        if _is_value_with_origin(item):
            plain = {key: _number(inner) for key, inner in item.items()}
            columns.setdefault(path, []).append(json.dumps(plain))
        elif isinstance(item, dict) and item:
            names = [(f"{path}.{_key(key)}" if path else _key(key), at) for key, at in item.items()]
            stack.extend(reversed(names))
        elif isinstance(item, list) and item:
            if all(isinstance(inner, int | float) for inner in item):
                # A tuple (a shape, the ranks of a group) is one value.
                columns.setdefault(path, []).append(json.dumps([_number(inner) for inner in item]))
            else:
                stack.extend((f"{path}[]", inner) for inner in reversed(item))
        else:
            columns.setdefault(path, []).append(_leaf(item))
    return columns


_NAMED = re.compile(r"[^A-Za-z_ -]")


def _key(key: str) -> str:
    """A key that is a name stays; one that is data (a node, a rank, a scope) is any such."""
    return "*" if _NAMED.search(key) else key


def _is_value_with_origin(item: Any) -> bool:
    """Whether this is a value of the context with where it is from: one value, not several."""
    if not isinstance(item, dict) or "origin" not in item:
        return False
    return not any(isinstance(inner, dict | list) and inner for inner in item.values())


def _number(value: Any) -> Any:
    if not isinstance(value, float):
        return value
    return float(f"{value:.{DIGITS}g}") if abs(value) >= SMALLEST else 0.0


def _leaf(value: Any) -> str:
    if isinstance(value, str):
        return json.dumps(_plain(value), ensure_ascii=False)
    return json.dumps(_number(value))


def _digest(values: Iterable[str]) -> str:
    return hashlib.sha256("\n".join(values).encode("utf-8", "surrogatepass")).hexdigest()[:10]


# -- how answers are kept ------------------------------------------------------------------------

WIDEST = 110
"""Characters of a value or of a column that are kept as they are."""
MOST_LINES = 60
"""Lines of a text that are kept as they are."""


def abridged(answer: Answer) -> dict[str, tuple[str, ...]]:
    """The answer as it is kept: long columns and texts by their beginning, count and digest."""
    kept: dict[str, tuple[str, ...]] = {"exit": (answer.status,)}
    for name, values in answer.sections.items():
        if name in {LINES, ERRORS}:
            lines = [_cut(value) for value in values]
            if len(lines) > MOST_LINES:
                rest = f"… {len(lines)} lines in all #{_digest(values)}"
                lines = [*lines[: MOST_LINES // 4], rest]
            kept[name] = tuple(lines)
        else:
            kept[name] = (_column(values),)
    return kept


def _cut(text: str) -> str:
    return text if len(text) <= WIDEST else f"{text[:WIDEST]}… #{_digest([text])}"


def _column(values: Sequence[str]) -> str:
    runs: list[list[Any]] = []
    for value in values:
        if runs and runs[-1][1] == value:
            runs[-1][0] += 1
        else:
            runs.append([1, value])
    text = ""
    for count, value in runs:
        piece = f"{count}*{value}" if count > 1 else value
        if len(text) + len(piece) > WIDEST:
            return f"{text or piece[:WIDEST]} … {len(values)} in all #{_digest(values)}"
        text = f"{text} {piece}" if text else piece
    return text


def kept_text(answers: Sequence[tuple[Question, Answer]]) -> str:
    """What is kept of the questions on one command and material: text, a line a section."""
    lines: list[str] = []
    for question, answer in answers:
        lines.append(f"$ {question.line}")
        for name, values in abridged(answer).items():
            prefix = {LINES: "|", ERRORS: "!"}.get(name)
            if prefix:
                lines.extend(f"{prefix} {_one_line(value)}".rstrip() for value in values)
            else:
                lines.append(f"{name} = {_one_line(values[0])}")
        lines.append("")
    return "\n".join(lines)


def joined(before: str, now: str) -> str:
    """Kept answers with those of some questions replaced, or added behind the others."""
    blocks = {**_blocks(before), **_blocks(now)}
    return "\n".join(blocks.values())


def _blocks(text: str) -> dict[str, str]:
    pieces = re.split(r"^(?=\$ )", text, flags=re.MULTILINE)
    # What is kept of a question ends with an empty line, the last one's with the file.
    return {piece.split("\n", 1)[0]: piece.rstrip("\n") + "\n" for piece in pieces if piece}


def _one_line(text: str) -> str:
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)


def read_kept(text: str) -> dict[str, dict[str, tuple[str, ...]]]:
    """Kept answers by the line of their question."""
    found: dict[str, dict[str, list[str]]] = {}
    sections: dict[str, list[str]] = {}
    for line in text.splitlines():
        if line.startswith("$ "):
            sections = found.setdefault(line[2:], {})
        elif line[:1] == "|":
            sections.setdefault(LINES, []).append(line[2:])
        elif line[:1] == "!":
            sections.setdefault(ERRORS, []).append(line[2:])
        elif " = " in line:
            name, _, value = line.partition(" = ")
            sections.setdefault(name, []).append(value)
    return {
        line: {name: tuple(values) for name, values in sections.items()}
        for line, sections in found.items()
    }
