"""``--layout FILE``: how the ranks of both runs are cut."""

from __future__ import annotations

from typing import TYPE_CHECKING

from irtool.cli.configuration import read_table, read_text
from irtool.cli.report import Failure

if TYPE_CHECKING:
    from irtool.compare.layouts.declared import SideLayout

_HINT = "irtool diff LEFT RIGHT --write-layout -o layout.json proposes one"


def layouts_at(path: str | None) -> tuple[SideLayout, SideLayout] | None:
    """Both sides of a layout file; None where none is named.

    Args:
        path: of the file, JSON or TOML.

    Returns:
        How the left and the right run are cut.

    Raises:
        Failure: it cannot be read, or says nothing sensible.
    """
    if path is None:
        return None
    from irtool.compare.layouts.declared import BadLayout, layouts_of

    table = read_table(path)
    try:
        return layouts_of(table)
    except BadLayout as error:
        where = f"{error.where}: " if error.where else ""
        raise _located(path, error.where, f"{where}{error}") from None


def _located(path: str, key: str, message: str) -> Failure:
    """The failure at the line where a key stands, as far as that can be told."""
    word = key.rpartition(".")[2]
    side = key.partition(".")[0]
    seen = False
    for number, line in enumerate(read_text(path).splitlines() if word else [], 1):
        seen = seen or side in line
        if seen and word in line:
            column = line.index(word) + 1
            return Failure(message, f"{path}:{number}:{column}", column, line, _HINT)
    return Failure(message, path, hint=_HINT)
