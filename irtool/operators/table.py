"""The table: entries of irtool (``entries/*.rules``), and those that a user declares.

A text is cut into statements (each begins in the first column, what continues it is indented), and
what stands inside of one is read by Lark alone, once: what was parsed is kept (``parsed``).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import replace
from functools import cache, lru_cache
from importlib import resources
from typing import Any

from irtool.ir.dataclass import dataclass
from irtool.operators.entry import Operator
from irtool.operators.gradients import measured_gradients
from irtool.operators.irregular import FUNCTIONS, load_functions
from irtool.operators.notation import (
    Declaration,
    Family,
    Rule,
    RuleError,
)
from irtool.operators.parsed import Parsed, kept_form, parsed_bytes, parsed_from
from irtool.syntax.cache_files import KeptFiles, digest
from irtool.syntax.grammar_files import grammar_text

UNKNOWN = Operator("")
"""What is known of an operator that the table has no entry for: nothing."""

_NAMES = re.compile(r'((?:"[^"]+"|\w+)(?:\s*,\s*(?:"[^"]+"|\w+))*)\s*[(:]')
_WORDS = re.compile(r"\b(?:torch|modules)\s*\(([^)]*)\)")
_MODULES = re.compile(r"\bmodules\s*\(([^)]*)\)")
_VARIANT = re.compile(r"(Grad|Ext|View|V\d+|D|Scalar|Tensor)+$")
_WORD = re.compile(r'[^\s"]+')


@dataclass(frozen=True, slots=True)
class _Statement:
    """An entry's text, and that of the family before it."""

    source: str
    family: str
    text: str


# -- asking ----------------------------------------------------------------------------------------


@lru_cache(maxsize=16384)
def operator_of(name: str) -> Operator:
    """The entry of a primitive (a leading ``_`` does not count); ``UNKNOWN`` if there is none.

    Args:
        name: as a node has it, ``MatMul``, in its own letters.
    """
    for word in (name, name.removeprefix("_")):
        entry = _entry(word)
        if entry is not None:
            return entry
    return UNKNOWN


def akin(name: str) -> Operator:
    """The entry that a name is a variant of (``XGrad``, ``XExt``, ``XV2``), for colours.

    Never for an answer: variants of one name differ in what decides.

    Args:
        name: of an operator that has no entry of its own.

    Returns:
        :data:`UNKNOWN` where the name has no such ending, or nothing is called by the rest.
    """
    stem = _VARIANT.sub("", name.removeprefix("_").removeprefix("Inplace"))
    return operator_of(stem) if stem and stem != name else UNKNOWN


@lru_cache(maxsize=16384)
def operator_called(word: str) -> Operator:
    """The entry that a word means: an operator of MindSpore, a function or method of PyTorch.

    Args:
        word: in any letters; underscores and a leading ``npu`` do not count.

    Returns:
        :data:`UNKNOWN` where no entry has the word.
    """
    index = _words()
    small = word.lower()
    stripped = small.strip("_").replace("_", "")
    for form in (small, stripped, stripped.removeprefix("npu")):
        if form in index:
            return operator_of(index[form])
    return UNKNOWN


def is_framework_module(name: str) -> bool:
    """Whether MindSpore or PyTorch has a module of this name that computes one operator.

    Args:
        name: of a class, ``LayerNorm``, in its own letters.
    """
    return name in _modules()


def rule_of(op: str) -> Rule | None:
    """How a primitive is sharded, or None: MindSpore has no class for it.

    Args:
        op: the primitive's name; a leading ``_`` does not count.
    """
    return operator_of(op).rule


def entries() -> Mapping[str, Operator]:
    """All entries, in alphabetical order."""
    return {name: operator_of(name) for name in sorted({*_statements(), *_declared})}


def operators() -> Mapping[str, Rule]:
    """Every operator with a sharding rule, in alphabetical order."""
    return {name: one.rule for name, one in entries().items() if one.rule is not None}


# -- declaring -------------------------------------------------------------------------------------

_declared: dict[str, list[Declaration]] = {}


def declare(text: str, source: str = "") -> tuple[str, ...]:
    """Add what a user says of operators; it goes before what irtool says.

    What is not said of an operator that irtool knows stays as irtool has it.

    Args:
        text: entries in the notation of the table.
        source: names them in errors and in listings.

    Returns:
        The operators that it is about.

    Raises:
        RuleError: the text can't be read, or uses a word that means nothing.
    """
    from irtool.operators.notation_reader import read_declarations  # it imports Lark

    added = read_declarations(text, source)
    load_functions()
    for one in added:
        rule = one.rule
        if rule is not None and rule.function and rule.function not in FUNCTIONS:
            raise RuleError(f"{source}: no function {rule.function} for {one.op}")
    for one in added:
        _declared.setdefault(one.op, []).append(one)
    _forget()
    return tuple(dict.fromkeys(one.op for one in added))


def forget_declared() -> None:
    """Take back what ``declare`` added."""
    _declared.clear()
    _forget()


def _forget() -> None:
    operator_of.cache_clear()
    operator_called.cache_clear()
    _words.cache_clear()
    _entry.cache_clear()


# -- reading ---------------------------------------------------------------------------------------


@lru_cache(maxsize=1)
def _texts() -> Mapping[str, str]:
    """The texts of the table, by the names of their files."""
    folder = resources.files("irtool.operators") / "entries"
    files = [file for file in folder.iterdir() if file.name.endswith(".rules")]
    return {
        file.name: file.read_text(encoding="utf-8")
        for file in sorted(files, key=lambda file: file.name)
    }


@lru_cache(maxsize=1)
def _statements() -> Mapping[str, _Statement]:
    """Where each entry of irtool stands, by its name."""
    statements: dict[str, _Statement] = {}
    for source, content in _texts().items():
        family = ""
        for text in _cut(content):
            if text.startswith("family "):
                family = text
                continue
            for name in _names_of(text, source):
                if name in statements:
                    raise ValueError(f"two entries for {name}: {statements[name].source}, {source}")
                statements[name] = _Statement(source, family, text)
    return statements


def _cut(text: str) -> Iterator[str]:
    """Statements: a line that begins in the first column, and the indented ones behind it."""
    lines: list[str] = []
    for line in text.splitlines():
        if line[:1].strip() and not line.startswith("#"):
            if lines:
                yield "\n".join(lines)
            lines = []
        if line.strip() and not line.startswith("#"):
            lines.append(line)
    if lines:
        yield "\n".join(lines)


def _names_of(text: str, source: str) -> list[str]:
    match = _NAMES.match(text)
    if match is None:
        raise ValueError(f"{source}: no entry: {text}")
    return [name.strip().strip('"') for name in match[1].split(",")]


@lru_cache(maxsize=1)
def _words() -> Mapping[str, str]:
    """Names of entries by their own names and PyTorch's, in small letters."""
    by_word: dict[str, str] = {}
    for name, one in _statements().items():
        for listed in _WORDS.findall(one.text):
            for word in _WORD.findall(listed):
                by_word.setdefault(word.lower(), name)
                by_word.setdefault(word.lower().strip("_").replace("_", ""), name)
    for name in _statements():
        by_word[name.lower()] = name
    for name, declarations in _declared.items():
        by_word[name.lower()] = name
        for word in (word for one in declarations for word in one.facts.get("torch", ())):
            by_word[word.lower()] = name
    return by_word


@lru_cache(maxsize=1)
def _modules() -> frozenset[str]:
    """Modules of frameworks that entries stand for."""
    lists = (listed for one in _statements().values() for listed in _MODULES.findall(one.text))
    return frozenset(word for listed in lists for word in _WORD.findall(listed))


@cache
def _family(text: str, source: str) -> Family:
    from irtool.operators.notation_reader import read_family

    return read_family(text, source) if text else Family()


@cache
def _read(statement: _Statement) -> Mapping[str, Declaration]:
    from irtool.operators.notation_reader import read_declarations

    family = _family(statement.family, statement.source)
    declarations = read_declarations(statement.text, statement.source, family)
    return {one.op: one for one in declarations}


PARSED_FILE = "parsed.json"
"""Beside the texts of the table in a wheel: all entries, parsed."""


def parsed_table() -> bytes:
    """All entries, parsed anew, as they are kept."""
    read = {name: _read(statement)[name] for name, statement in _statements().items()}
    return parsed_bytes(_key(), read)


def _key() -> str:
    """What kept entries fit: texts, grammar, what reads them, and the form they are kept in."""
    package = resources.files("irtool.operators")
    reads = [(package / name).read_bytes() for name in ("notation.py", "notation_reader.py")]
    return digest(
        kept_form(), grammar_text("rule.lark"), *reads, *_texts(), *_texts().values()
    ).hex()


@lru_cache(maxsize=1)
def _kept() -> Parsed | None:
    """All entries as they were parsed before, or now; None where that can't be told."""
    try:
        key = _key()
    except OSError:  # installed without the source of its modules
        return None
    with suppress(OSError):
        beside = resources.files("irtool.operators") / "entries" / PARSED_FILE
        if kept := parsed_from(key, beside.read_bytes()):
            return kept
    files, place = KeptFiles("entries"), bytes.fromhex(key)
    data = files.get(place)
    if data and (kept := parsed_from(key, data)):
        return kept
    data = parsed_table()
    files.put(place, data)
    return parsed_from(key, data)


def _shipped(name: str) -> Declaration | None:
    """What irtool says of an operator."""
    kept = _kept()
    if kept is not None:
        with suppress(ValueError):  # damaged: the text says the same
            return kept.of(name)
    statement = _statements().get(name)
    return None if statement is None else _read(statement)[name]


@cache
def _entry(name: str) -> Operator | None:
    """An entry by its very name."""
    shipped = _shipped(name)
    said = [] if shipped is None else [shipped]
    own = _declared.get(name, [])
    if not said and not own:
        return None
    # Facts alone that a user adds to an entry of irtool's leave its sharding as it was measured.
    declared = bool(own) and (shipped is None or any(one.rule is not None for one in own))
    entry = Operator(name, declared=declared, gradients=measured_gradients(name))
    for one in (*said, *own):
        entry = _with(entry, one)
    return entry


def _with(entry: Operator, said: Declaration) -> Operator:
    """An entry with what else is said of it."""
    fields: dict[str, Any] = dict(said.facts)
    like = fields.pop("like", None)
    if like is not None:
        model = operator_of(like)
        entry = replace(
            model, name=entry.name, rule=entry.rule, torch=(), declared=entry.declared,
            gradients=entry.gradients,
        )  # fmt: skip
    if said.attributes:
        fields["attributes"] = said.attributes
    rule = said.rule
    if rule is not None:
        load_functions()
        fields["rule"] = rule
    if said.family:
        fields["family"] = said.family
    return replace(entry, **fields)
