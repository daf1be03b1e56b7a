"""Parsers of irtool's grammars, with tables that were made before.

Lark derives LALR tables from a grammar's text in a tenth of a second; reading them back takes a
tenth of that.  They are made when a wheel is built (``hatch_build.py``), as JSON beside the
grammar.  They fit one version of Lark and one text only, which their key says; where it differs (a
checkout, another Lark) tables come from the user's folder for caches, else from the grammar.

This module is also run by itself when a wheel is built: it imports nothing of irtool.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from hashlib import blake2b
from typing import Any, cast

import lark
from lark.grammar import Rule
from lark.lexer import TerminalDef

OPTIONS: Mapping[str, Mapping[str, Any]] = {
    "dump.lark": {
        "start": [
            "statement",
            "type_line",
            "parameter",
            "head",
            "parameter_list",
            "property_line",
            "comment",
        ],
        "lexer": "contextual",
        "maybe_placeholders": False,
    },
    "query.lark": {
        "lexer": "contextual",
        "maybe_placeholders": False,
        "propagate_positions": True,
    },
    "rule.lark": {"maybe_placeholders": True, "propagate_positions": True},
}
"""How Lark is to read each grammar; all are LALR."""
_FORM = 1
"""Of the tables' file; a new one where that changes."""


def built(name: str, text: str, transformer: object = None) -> lark.Lark:
    """The parser of a grammar, from its text.

    Args:
        name: of the grammar's file, which says its options.
        text: of the grammar.
        transformer: whose methods are called while parsing; None: the parser gives trees.
    """
    options = dict(OPTIONS[name])
    if transformer is not None:
        options["transformer"] = transformer
    return lark.Lark(text, parser="lalr", **options)


def file_of(name: str) -> str:
    """Name of the file that holds a grammar's tables, beside it in a wheel.

    Args:
        name: of the grammar's file.
    """
    return name.removesuffix(".lark") + ".tables.json"


def key_of(name: str, text: str) -> str:
    """The key of what tables depend on: grammar text, options, Lark's version, form of the file.

    Args:
        name: of the grammar's file, which says its options.
        text: of the grammar.

    Returns:
        Hexadecimal digits.
    """
    parts = (str(_FORM), lark.__version__, json.dumps(dict(OPTIONS[name])), text)
    return blake2b("\0".join(parts).encode(), digest_size=16).hexdigest()


def tables_of(name: str, text: str, parser: lark.Lark) -> bytes:
    """The tables of a parser as JSON, to be kept.

    Args:
        name: of the grammar's file.
        text: of the grammar that the parser was made of.
        parser: as :func:`built` made it; its transformer is not kept.
    """
    untyped = cast("Any", parser)  # Lark says of the result that it is anything
    data, memo = untyped.memo_serialize([TerminalDef, Rule])
    options = {key: value for key, value in data["options"].items() if key != "transformer"}
    document = {"key": key_of(name, text), "data": {**data, "options": options}, "memo": memo}
    return json.dumps(document, separators=(",", ":")).encode()


def from_tables(
    name: str, text: str, tables: bytes, transformer: object = None
) -> lark.Lark | None:
    """The parser that some tables describe.

    Args:
        name: of the grammar's file.
        text: of the grammar.
        tables: as :func:`tables_of` gave them.
        transformer: whose methods are called while parsing; None: the parser gives trees.

    Returns:
        None where they don't fit the grammar or this Lark, or are damaged.
    """
    try:
        document = json.loads(tables)
        if document["key"] != key_of(name, text):
            return None
        data, memo = document["data"], _numbered(document["memo"])
        table = data["parser"]["parser"]
        table["tokens"] = _numbered(table["tokens"])
        table["states"] = {
            number: _numbered(actions) for number, actions in _numbered(table["states"]).items()
        }
        given = {} if transformer is None else {"transformer": transformer}
        made = cast("Any", lark.Lark)._load_from_dict(data, memo, **given)
        return cast("lark.Lark", made)
    # Whatever is wrong with them: the grammar is there, and says the same.
    except Exception:
        return None


def _numbered(table: dict[str, Any]) -> dict[int, Any]:
    """A table whose keys are numbers, which JSON made texts."""
    return {int(key): value for key, value in table.items()}
