"""What differs between two sets of answers, by class of change."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from difflib import SequenceMatcher
from itertools import zip_longest

from benchmarks.net_answers import ERRORS, LINES

Sections = Mapping[str, Sequence[str]]

_QUOTED = re.compile(r"'[^']*'|\"[^\"]*\"|`[^`]*`")
_NODE = re.compile(r"%\d+\b|@[\w.…]+|\b[\w.-]+/[\w./-]+")
_FIGURE = re.compile(r"-?\d+(?:\.\d+)?(?:e[-+]?\d+)?")
_DIGEST = re.compile(r"#[0-9a-f]{10}\b")
_SHAPE = 70
"""Characters of a line's shape that tell it from others."""


@dataclass(frozen=True, slots=True)
class Class:
    """A class of change: of which command and format, what kind, and where in the answer."""

    command: str
    format: str
    kind: str
    where: str


@dataclass(slots=True)
class Members:
    """The changes of one class: how many values, in which answers, and the first as example."""

    values: int = 0
    answers: dict[str, None] = field(default_factory=dict[str, None])
    example: tuple[str, str, str] = ("", "", "")


Changes = dict[Class, Members]


def compare(changes: Changes, line: str, old: Sections | None, new: Sections | None) -> None:
    """Add to ``changes`` what differs between two answers to the question ``line``."""
    words = line.split()
    command = " ".join(words[1:3]) if words[1] == "comm" else words[1]
    for kind, where, before, after, count in _differences(old, new):
        members = changes.setdefault(Class(command, words[-1], kind, where), Members())
        if not members.answers:
            members.example = (line, before, after)
        members.values += count
        members.answers[line] = None


_Difference = tuple[str, str, str, str, int]


def _differences(old: Sections | None, new: Sections | None) -> Iterator[_Difference]:
    if old is None or new is None:
        if old is not new:
            kind = "answer added" if old is None else "answer removed"
            yield kind, "", "", "", 1
        return
    before, after = old["exit"][0], new["exit"][0]
    if before != after:
        yield "exit status", f"{_status(before)} → {_status(after)}", before, after, 1
    if before != after and _is_empty(old) != _is_empty(new):
        # Where there was only an error there is an answer now, or the reverse: all of it differs.
        kind = "answer where there was none" if _is_empty(old) else "no answer where there was one"
        yield kind, "", _some(old.get(ERRORS, ())), _some(new.get(ERRORS, ())), 1
        return
    for name in dict.fromkeys((*old, *new)):
        if name == "exit":
            continue
        left, right = old.get(name, ()), new.get(name, ())
        if left == right:
            continue
        if name in {LINES, ERRORS}:
            beside = " on stderr" if name == ERRORS else ""
            yield from _of_lines(left, right, beside)
        elif not left:
            yield "key added", name, "", _some(right), len(right)
        elif not right:
            yield "key removed", name, _some(left), "", len(left)
        else:
            yield _of_column(name, left, right)


def _is_empty(sections: Sections) -> bool:
    return not set(sections) - {"exit", ERRORS}


def _status(text: str) -> str:
    return text if len(text) == 1 else _shape(text)


def _of_column(name: str, left: Sequence[str], right: Sequence[str]) -> _Difference:
    pairs = [(one, other) for one, other in zip_longest(left, right, fillvalue="")
             if one != other]  # fmt: skip
    if len(left) != len(right):
        example = next((pair for pair in pairs), ("", ""))
        return (
            "values changed in number",
            name,
            f"{len(left)}: {example[0]}",
            (f"{len(right)}: {example[1]}"),
            abs(len(left) - len(right)),
        )
    return "value changed", name, *pairs[0], len(pairs)


def _of_lines(left: Sequence[str], right: Sequence[str], beside: str) -> Iterator[_Difference]:
    same = [" ".join(line.split()) for line in left], [" ".join(line.split()) for line in right]
    if same[0] == same[1]:
        index = next(
            at for at, pair in enumerate(zip(left, right, strict=True)) if len({*pair}) > 1
        )
        yield f"spacing{beside}", "", left[index], right[index], 1
        return
    matcher = SequenceMatcher(None, *same, autojunk=False)
    for kind, from_left, to_left, from_right, to_right in matcher.get_opcodes():
        if kind == "equal":
            continue
        pairs = zip_longest(left[from_left:to_left], right[from_right:to_right])
        for before, after in pairs:
            if before is None:
                yield f"line added{beside}", _shape(after), "", after, 1
            elif after is None:
                yield f"line removed{beside}", _shape(before), before, "", 1
            else:
                yield f"line changed{beside}", _shape(before), before, after, 1


def _shape(line: str) -> str:
    """A line without its figures and names, so that lines of one kind are one class."""
    for pattern, sign in ((_DIGEST, "#…"), (_QUOTED, "'…'"), (_NODE, "…"), (_FIGURE, "9")):
        line = pattern.sub(sign, line)
    return " ".join(line.split())[:_SHAPE]


def _some(values: Sequence[str]) -> str:
    if not values:
        return ""
    return values[0] if len(values) == 1 else f"{values[0]} … ({len(values)})"


# -- told ----------------------------------------------------------------------------------------


def told(changes: Changes, most: int = 12) -> Iterator[str]:
    """Lines that say what changed: each class with its count and one example.

    Args:
        changes: what ``compare`` found.
        most: classes of one command and format that are told; 0: all of them.
    """
    groups: dict[tuple[str, str], list[tuple[Class, Members]]] = {}
    for found, members in changes.items():
        groups.setdefault((found.command, found.format), []).append((found, members))
    data_first = sorted(groups, key=lambda key: (key[0], key[1] != "json", key[1]))
    for command, kind in data_first:
        classes = sorted(groups[command, kind], key=_weight)
        answers = {line for _, members in classes for line in members.answers}
        yield f"irtool {command} --format {kind}: {_count(len(answers), 'answer')} changed"
        for found, members in classes[: most or None]:
            yield from _class(found, members)
        if most and len(classes) > most:
            yield f"  … and {_count(len(classes) - most, 'more class', 'more classes')}"
    if not changes:
        yield "nothing changed"


_FIRST = ("exit status", "answer", "key", "value")


def _weight(entry: tuple[Class, Members]) -> tuple[int, int]:
    kind = entry[0].kind
    rank = next((at for at, word in enumerate(_FIRST) if kind.startswith(word)), len(_FIRST))
    return rank, -len(entry[1].answers)


def _class(found: Class, members: Members) -> Iterable[str]:
    line, before, after = members.example
    many = f"{_count(members.values, 'value')} in " if found.where else ""
    yield f"  {found.kind}: {found.where}  [{many}{_count(len(members.answers), 'answer')}]"
    yield f"      $ {line}"
    if before:
        yield f"      - {before[:240]}"
    if after:
        yield f"      + {after[:240]}"


def _count(number: int, one: str, many: str | None = None) -> str:
    return f"{number} {one if number == 1 else many or one + 's'}"
