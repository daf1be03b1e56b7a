"""Damaged dumps: every feature answers with what could be read, whatever the text is."""

from __future__ import annotations

import random
from collections.abc import Callable

import pytest
from lsprotocol.types import Position, Range

from irtool.editor.analyse import analyses
from irtool.editor.document import Document
from irtool.editor.features.actions import actions
from irtool.editor.features.definition import definition, source_line
from irtool.editor.features.diagnostics import diagnostics
from irtool.editor.features.folding import folding
from irtool.editor.features.hover import hover
from irtool.editor.features.inlays import inlays
from irtool.editor.features.lenses import lenses, places, why
from irtool.editor.features.outline import outline
from irtool.editor.features.partners import earlier, later
from irtool.editor.features.references import highlights, references
from irtool.editor.features.search import search
from irtool.editor.features.tokens import tokens
from tests.editor.opened import BEGIN, FLOW, REJECTED, VALIDATE, opened, sample_text

WHOLE = Range(Position(0, 0), Position(100_000, 0))
AT_A_POSITION: list[Callable[[Document, Position], object]] = [
    definition, earlier, highlights, hover, later, references, source_line,
]  # fmt: skip


def cut(text: str, chance: random.Random) -> str:
    return text[: chance.randrange(len(text))]


def spoilt(text: str, chance: random.Random) -> str:
    """Some characters are others."""
    letters = list(text)
    for _ in range(40):
        letters[chance.randrange(len(letters))] = chance.choice('(){}%@$"\n\r\x00:,=é\U0001f600 ')
    return "".join(letters)


def shuffled(text: str, chance: random.Random) -> str:
    """Some lines stand elsewhere, some twice."""
    lines = text.split("\n")
    for _ in range(20):
        lines.insert(chance.randrange(len(lines)), lines[chance.randrange(len(lines))])
        lines.pop(chance.randrange(len(lines)))
    return "\n".join(lines)


def doubled(text: str, chance: random.Random) -> str:
    return text + text[chance.randrange(len(text)) :]


def ask_everything(document: Document, chance: random.Random) -> None:
    rows = document.text.position(len(document.text.content)).line + 1
    for _ in range(25):
        position = Position(chance.randrange(rows), chance.randrange(120))
        for feature in AT_A_POSITION:
            feature(document, position)
        why(document, position.line)
        places(document, position.line)
    outline(document)
    folding(document)
    tokens(document)
    lenses(document)
    inlays(document, WHOLE)
    actions(document, WHOLE)
    search(document, "shape[0] > 1")
    for shown in diagnostics(document):
        start, end = shown.range.start, shown.range.end
        assert (start.line, start.character) <= (end.line, end.character)
        assert end.line < rows


@pytest.mark.parametrize("damage", [cut, spoilt, shuffled, doubled])
@pytest.mark.parametrize("name", [BEGIN, FLOW, REJECTED, VALIDATE])
@pytest.mark.parametrize("seed", range(3))
def test_every_feature_answers(
    name: str, damage: Callable[[str, random.Random], str], seed: int
) -> None:
    chance = random.Random(f"{name} {damage.__name__} {seed}")
    document = opened(name, damage(sample_text(name), chance))
    ask_everything(document, chance)
    for answers in analyses(document):
        document.answers = answers
    ask_everything(document, chance)


@pytest.mark.parametrize(
    "text", ["", "\n", "\ufeff", "}", "subgraph @", "%0(a) = ", "\r\r\r", "\x00"]
)
def test_texts_of_next_to_nothing_are_answered(text: str) -> None:
    ask_everything(opened(BEGIN, text, answered=True), random.Random(1))
