"""Cuts the text of a dump into records, by what a line begins with.

The format cannot be lexed as a whole: strings are printed raw and may hold quotes, brackets and
line feeds.  What separates records is the first columns of each line; everything else is a
continuation of the line before.
"""

from __future__ import annotations

import re

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

# What people paste is quoted, fenced and shortened in many ways.
_DOTS = r"(?:\.\.\.+|…+|\[\.\.\.\]|```\w*)"
_LOOSE_STATEMENT = r"[ \t>]*(?:%[0-9]+\(.*?\) = |[Rr]eturn\(|Primitive::Return)"
_LOOSE_STOP = rf"(?:{_LOOSE_STATEMENT}|[ \t>]*(?:: ?\(|#|\}}|{_DOTS}[ \t]*$)|[ \t>]*$|{_NEXT})"
LOOSE_STATEMENT = re.compile(
    rf"({_LOOSE_STATEMENT}.*(?:\n(?!{_LOOSE_STOP}).*)*)(?:\n|\Z)"
    rf"((?:[ \t>]*: ?\(.*(?:\n(?!{_LOOSE_STOP}).*)*(?:\n|\Z))*)"
    rf"((?:[ \t>]*# ?(?!{_NEXT}|-{{8}})[A-Zsifa-z].*(?:\n|\Z))*)",
    re.MULTILINE,
)
"""A statement of an excerpt, whose indentation may be lost."""

FIRST_LINE = re.compile(rf"({_LOOSE_STATEMENT}.*)(?:\n|\Z)()()")
"""A statement alone, where what follows it does not belong to it."""

LOOSE_TYPE_LINES = re.compile(rf"[ \t>]*: ?\(.*(?:\n(?!{_LOOSE_STOP}).*)*", re.MULTILINE)

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
ELISION = re.compile(rf"[ \t>]*(?:(?:#|//)[ \t]*)?{_DOTS}[ \t]*\Z")
EXCERPT_ENDS = re.compile(rf"{HEADER.pattern}|{PRELUDE.pattern}|subgraph @|%para[0-9]+[_ ].*: ?<")
"""A line that belongs to a whole dump and so cannot stand in an excerpt's statements."""
PROPERTY = re.compile(r"\s*[^:\s][^:\n]*:(?: .*|@.*)?\Z", re.DOTALL)
ACTOR_SET = re.compile(
    r"^(?:%\w+ = .*?(?:Actor|kernel_graph)|Base Block : |\[(?:continuous memory|Device tensor))",
    re.MULTILINE,
)
