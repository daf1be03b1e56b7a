"""How much room a text takes: widths of DejaVu Sans, which is wider than what usually stands in."""

from __future__ import annotations

import unicodedata
from functools import lru_cache

from irtool.report.picture.looks import FONT_SIZE, Run, TextLine

LINE_HEIGHT = 1.25
"""Height of a line by its size."""
_BOLD = 1.12
_NARROW = dict.fromkeys("iljI.,:;'|!()[] ", 0.42) | dict.fromkeys('ftr"-/\\{}`', 0.5)
_WIDE = dict.fromkeys("mwMW@%", 1.0) | dict.fromkeys("×→…—+=<>~^#&", 0.92)


@lru_cache(maxsize=4096)
def _letter(letter: str) -> float:
    known = _NARROW.get(letter) or _WIDE.get(letter)
    if known:
        return known
    if unicodedata.combining(letter):
        return 0.0
    if ord(letter) > 0x2000 or unicodedata.east_asian_width(letter) in "WF":
        return 1.15
    return 0.8 if letter.isupper() else 0.66


def text_width(text: str, size: float, bold: bool = False) -> float:
    """Width of a text in pixels, rather too much than too little.

    Args:
        text: one line.
        size: of the font, in pixels.
        bold: letters are wider then.
    """
    return sum(map(_letter, text)) * size * (_BOLD if bold else 1.0)


def run_width(run: Run, default: int = FONT_SIZE) -> float:
    """Width of a text of one look; ``default`` is the size of what names none."""
    return text_width(run.text, run.size or default, run.bold)


def line_size(line: TextLine, default: int = FONT_SIZE) -> tuple[float, float]:
    """Width and height of a line of texts.

    Args:
        line: texts side by side.
        default: size of the font, in pixels, of those that have none of their own.

    Returns:
        both in pixels.
    """
    height = max((run.size or default for run in line), default=default) * LINE_HEIGHT
    return sum(run_width(run, default) for run in line), height
