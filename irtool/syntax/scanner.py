"""Cuts the text of a dump into records, by what a line begins with.

The format cannot be lexed as a whole: strings are printed raw and may hold quotes, brackets and
line feeds.  What separates records is the first columns of each line; everything else is a
continuation of the line before.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

_NEXT = r"# ?IR entry|subgraph (?:@|attr:|instance:)|indirect: 1"
_MARKER = r"#-{8,}> "

# In a tensor the dots stand for rows, and another row follows.
_ELISION = r"[ \t]*(?:\.\.\.+|…+)[ \t]*(?:\n(?![ \t]*\[)|\Z)"
_STATEMENT = r"  (?:%[0-9]+\(.*\) = |[Rr]eturn\(|Primitive::Return)"
_STOP = (
    rf"(?:{_STATEMENT}|      : ?\(|      #| \{{ ?(?:in_)?strategy: .*\}} *: ?\(|\}}|\Z|{_MARKER}"
    rf"|{_NEXT}|\n(?:{_MARKER}|\}}|{_STATEMENT}|{_NEXT}|      #|\Z)|{_ELISION})"
)
STATEMENT = re.compile(
    r"(  (?:%[0-9]+\(|[Rr]eturn\(|Primitive::Return)"
    rf".*(?:\n(?!{_STOP}).*)*)(?:\n|\Z)"
    rf"((?:(?: \{{ ?(?:in_)?strategy: .*\}} *)?      : ?\(.*(?:\n(?!{_STOP}).*)*(?:\n|\Z))*)"
    r"((?:      #.*(?:\n(?:        .*(?:\n|\Z))*|\Z))*)"
)
"""A statement as MindSpore indents it: statement, type lines, comments (three groups)."""

TYPE_LINES = re.compile(rf"(?: \{{ ?(?:in_)?strategy: .*\}} *)?      : ?\(.*(?:\n(?!{_STOP}).*)*")

_LOOSE_STATEMENT = r"[ \t]*(?:%[0-9]+\(.*?\) = |[Rr]eturn\(|Primitive::Return)"
_LOOSE_STOP = rf"(?:{_LOOSE_STATEMENT}|[ \t]*(?:: ?\(|#|\}}|\.\.\.[ \t]*$)|[ \t]*$|{_NEXT})"
LOOSE_STATEMENT = re.compile(
    rf"({_LOOSE_STATEMENT}.*(?:\n(?!{_LOOSE_STOP}).*)*)(?:\n|\Z)"
    rf"((?:[ \t]*: ?\(.*(?:\n(?!{_LOOSE_STOP}).*)*(?:\n|\Z))*)"
    rf"((?:[ \t]*# ?(?!{_NEXT}|-{{8}})[A-Zsifa-z].*(?:\n|\Z))*)",
    re.MULTILINE,
)
"""A statement of an excerpt, whose indentation may be lost."""

LOOSE_TYPE_LINES = re.compile(rf"[ \t]*: ?\(.*(?:\n(?!{_LOOSE_STOP}).*)*", re.MULTILINE)

LOOSE_REST = re.compile(r"[ \t]{0,5}:[ ]?\(|:[ ]?\(")
"""A type line that a statement's own indentation did not lead to expect."""

DUMP = re.compile(rf"^(?:{_NEXT}|{_LOOSE_STATEMENT}|%para[0-9]+[_ ]|# ?Total )", re.MULTILINE)
"""Any line that only an ANF IR dump has."""

HEADER = re.compile(r"# ?(?:IR entry|Total |Attrs|attrs|Params)|Node counting|Total number of ")
PRELUDE = re.compile(
    r"subgraph (?:attr|instance|flag|symbol engine)\b|indirect: |switch_(?:layer_)?input: "
    r"|# (?:SideEffect|Parameters): "
)
HEAD = re.compile(
    r"subgraph @.*\{[ \t]*$"
    r"|subgraph @.*\([ \t]*\n(?:[ \t]+(?:, )?%para.*\n)*[ \t]*\) ?\{$",
    re.MULTILINE,
)
GRAPH_ENDS = re.compile(rf"(?:{_NEXT})")
MARKER = re.compile(r"(#-{8,}> )(.*)\Z", re.DOTALL)
ELISION = re.compile(r"[ \t]*(?:(?:#|//)[ \t]*)?(?:\.\.\.+|…+)[ \t]*\Z")
ELISION_LINE = re.compile(r"[ \t]*(?:(?:\.\.\.+|…+)[ \t]*)?$", re.MULTILINE)
PROPERTY = re.compile(r"\s*[^:\s][^:\n]*:(?: .*|@.*)?\Z", re.DOTALL)
ACTOR_SET = re.compile(
    r"^(?:%\w+ = .*?(?:Actor|kernel_graph)|Base Block : |\[(?:continuous memory|Device tensor))",
    re.MULTILINE,
)

SIMPLE_LABEL = re.compile(r"(?:\[\w+\]|[^\s,()\[\]{}\"])*\Z")
_LABEL_DEFINITION = re.compile(r"%para[0-9]*_(.{0,1000}?) ?: ?<")
_HEAD_LABELS = re.compile(r"subgraph @[^\n(]*\((.*)\) \{")
_LABEL_PLACES = r"(%?para[0-9]*_(?:[^\s,()]*_)?|ref_key=:?|\[Parameter\]|, name=)"
_PRIVATE = 0xF0000


class OddLabels:
    """Parameter names with blanks, quotes or brackets, hidden from the lexer while it reads.

    Names are arbitrary text (``w "q" {x}``), so that only the spellings which the file itself
    declares tell where one ends.  Each is replaced by one private-use character.
    """

    def __init__(self, text: str) -> None:
        self._pattern: re.Pattern[str] | None = None
        self._marks: dict[str, str] = {}
        names = {name for name in _declared_labels(text) if not SIMPLE_LABEL.match(name)}
        if not names or any(ord(char) >= _PRIVATE for char in set(text)):
            return
        ordered = sorted(names, key=len, reverse=True)
        self._marks = {name: chr(_PRIVATE + index) for index, name in enumerate(ordered)}
        self._names = {mark: name for name, mark in self._marks.items()}
        alternatives = "|".join(map(re.escape, ordered))
        self._pattern = re.compile(rf"{_LABEL_PLACES}({alternatives})")

    def hide(self, record: str) -> str:
        """The record with each odd name replaced by its mark."""
        if self._pattern is None:
            return record
        return self._pattern.sub(lambda found: found[1] + self._marks[found[2]], record)

    def restore(self, text: str) -> str:
        """Put the names back."""
        for mark, name in self._names.items():
            text = text.replace(mark, name)
        return text

    def __bool__(self) -> bool:
        return self._pattern is not None


def _declared_labels(text: str) -> Iterator[str]:
    """Parameter names of the ``# Params:`` section, and labels in heads of graphs."""
    for match in _at_line_starts(text, "%para", _LABEL_DEFINITION):
        yield match[1]
    for match in _at_line_starts(text, "subgraph @", _HEAD_LABELS):
        for label in re.split(r", (?=%para[0-9]*_)", match[1]):
            yield label.partition("_")[2]


def _at_line_starts(text: str, prefix: str, pattern: re.Pattern[str]) -> Iterator[re.Match[str]]:
    # Searching for the prefix is many times faster than a multi-line pattern.
    position = 0 if text.startswith(prefix) else text.find(f"\n{prefix}") + 1
    while position or text.startswith(prefix):
        match = pattern.match(text, position)
        if match is not None:
            yield match
        position = text.find(f"\n{prefix}", position) + 1
        if not position:
            return
