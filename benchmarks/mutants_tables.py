"""Small changes of meaning in tables: rules of operators, machines.

A table is changed line by line: an operator of a list is left out, two letters of a rule change
places, a number grows, a word of the notation becomes its opposite.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import pairwise

from mutants_syntax import Mutant

WORDS = {
    "sum": "max",
    "max": "sum",
    "min": "max",
    "prod": "sum",
    "reduce": "split",
    "input": "output",
    "output": "input",
    "input1": "input",
    "input2": "input1",
    "True": "False",
    "False": "True",
    "true": "false",
    "false": "true",
}
OPPOSITES = {"*": "/", "/": "*", "+": "-"}


def table_mutants(source: bytes, file: str) -> list[Mutant]:
    """All mutants of a table."""
    found: list[Mutant] = []
    start = 0
    for number, line in enumerate(source.splitlines(keepends=True), 1):
        text = line.decode()
        code = text.split("#")[0].rstrip()
        for kind, column, before, after in _of_line(code, file.endswith(".toml")):
            at = start + len(text[:column].encode())
            found.append(Mutant(file, number, "", kind, at, before, after, at_import=True))
        start += len(line)
    return found


def _of_line(code: str, is_toml: bool) -> Iterator[tuple[str, int, str, str]]:
    if is_toml:
        match = re.fullmatch(r"\s*[\w.\"-]+\s*=\s*(.+)", code)
        begin = match.start(1) if match else len(code)
    else:
        begin = 0
        for match in re.finditer(r"(?<=[\w)]), +\w+(?=[,:(]| =)", code.split("=")[0]):
            yield "entry", match.start(), match[0], ""
    for match in re.finditer(r"\[([^\[\]]+)\]", code[begin:]):
        yield from _letters(match, begin)
    for match in re.finditer(r"(?<![\w.@])\d[\d_]*(\.\d+)?(e-?\d+)?(?![\w.])", code[begin:]):
        number = match[0]
        is_whole = number.replace("_", "").isdigit()
        more = str(int(number) * (4 if "_" in number else 1) + 1) if is_whole else ""
        more = more or repr(float(number) * 4)
        yield "constant", begin + match.start(), number, more
    if is_toml:
        return
    for match in re.finditer(r"(?<![\w])[A-Za-z]\w*(?!\w)", code):
        if match[0] in WORDS:
            yield "word", match.start(), match[0], WORDS[match[0]]
    for match in re.finditer(r"(?<=flops ).*", code):
        for sign in re.finditer(r" ([*/+]) ", match[0]):
            at = match.start() + sign.start(1)
            yield "arithmetic", at, sign[1], OPPOSITES[sign[1]]
    for match in re.finditer(r"\b(?:computes|search|gives) \w+", code):
        yield "entry", match.start(), match[0], ""
    for match in re.finditer(r"(?<=\bis \()[^()]+(?=\))", code):
        for word in re.finditer(r"\w+", match[0]):
            yield "entry", match.start() + word.start(), word[0], ""


def _letters(match: re.Match[str], begin: int) -> Iterator[tuple[str, int, str, str]]:
    parts = match[1].split()
    for one, other in pairwise(parts):
        if one != other and one.strip(",") and other.strip(","):
            before = match[1]
            swapped = before.replace(f"{one} {other}", f"{other} {one}", 1)
            if swapped != before:
                yield "letters", begin + match.start(1), before, swapped
    if len(parts) == 1 and parts[0].isalpha():
        yield "letters", begin + match.start(1), parts[0], "zz"
