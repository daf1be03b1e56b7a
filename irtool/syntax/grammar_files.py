"""The files of irtool's grammars, for who reads them without a parser."""

from __future__ import annotations

import os
from functools import cache

_PACKAGE = os.path.dirname(os.path.dirname(__file__))


@cache
def grammar_folder() -> str:
    """Where the grammars are: inside the package, or beside it in a checkout."""
    packaged = os.path.join(_PACKAGE, "grammars")
    return packaged if os.path.isdir(packaged) else os.path.join(_PACKAGE, "..", "grammars")


def grammar_text(name: str) -> str:
    """The text of one of irtool's grammars.

    Args:
        name: of the file, as ``dump.lark``.

    Raises:
        OSError: there is no such file.
    """
    return grammar_file(name).decode()


def grammar_file(name: str) -> bytes:
    """A grammar, or the tables of one, which a checkout lacks.

    Args:
        name: of the file, as ``dump.lark``.

    Raises:
        OSError: there is no such file.
    """
    with open(os.path.join(grammar_folder(), name), "rb") as file:
        return file.read()
