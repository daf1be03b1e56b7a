"""What ``irtool rules --operators`` shows: one rule an operator, in three formats."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence

from irtool.ir.units import count_text
from irtool.operators.notation import Attribute, Rule
from irtool.report.json import json_text, json_value
from irtool.report.model import Column, Document, Heading, Note, Table, text_column
from irtool.report.text import escape

SCHEMA = "irtool.rules.operators/1"
_KINDS = {"notation": "in notation", "function": "by a function", "unknown": "unknown"}


def rules_document(rules: Sequence[Rule], custom: Collection[str]) -> Document:
    """A line an operator."""
    document = Document([Heading(_title(rules, custom))])
    columns = (Column("operator"), text_column("attributes"), text_column("rule"))
    rows = [(_name(rule, custom), attributes_text(rule.attributes), rule.text) for rule in rules]
    document.add(Table("", columns, rows))
    document.add(Note("docs/custom-operators.md says how to read and write rules"))
    return document


def _title(rules: Sequence[Rule], custom: Collection[str]) -> str:
    kinds = Counter(rule.kind for rule in rules)
    parts = [f"{count_text(kinds[kind])} {text}" for kind, text in _KINDS.items() if kinds[kind]]
    own = sum(rule.op in custom for rule in rules)
    if own:
        parts.append(f"{count_text(own)} of your own")
    noun = "operator" if len(rules) == 1 else "operators"
    return f"{count_text(len(rules))} {noun}: {', '.join(parts)}"


def _name(rule: Rule, custom: Collection[str]) -> str:
    return f"{rule.op} *" if rule.op in custom else rule.op


def attributes_text(attributes: Sequence[Attribute]) -> str:
    """``axis@1 = -1``: input 1, else the attribute, else the default."""
    return ", ".join(
        attribute.name
        + (f"@{attribute.position}" if attribute.position is not None else "")
        + (f" = {attribute.default!r}" if attribute.has_default else "")
        for attribute in attributes
    )


def rules_json(rules: Sequence[Rule], custom: Collection[str]) -> str:
    """One object with a list of operators."""
    items = ",\n ".join(json_text(_object(rule, custom)) for rule in rules)
    return f'{{"schema": "{SCHEMA}", "operators": [\n {items}\n]}}\n'


def _object(rule: Rule, custom: Collection[str]) -> dict[str, object]:
    return {
        "op": rule.op,
        "family": rule.family or None,
        "kind": rule.kind,
        "rule": rule.text,
        "function": rule.function or None,
        "unknown": rule.reason or None,
        "attributes": [
            {
                "name": attribute.name,
                "input": attribute.position,
                "default": json_value(attribute.default),
                "optional": attribute.has_default,
            }
            for attribute in rule.attributes
        ],
        "layout": rule.layout,
        "check": rule.check,
        "source": rule.source,
        "custom": rule.op in custom,
    }


def rules_markdown(rules: Sequence[Rule], custom: Collection[str]) -> str:
    """A table for documents."""
    lines = ["| operator | attributes | rule |", "| --- | --- | --- |"]
    lines += [
        f"| {_cell(_name(rule, custom))} | {_code(attributes_text(rule.attributes))} "
        f"| {_code(rule.text)} |"
        for rule in rules
    ]
    return "\n".join(lines) + "\n"


def _cell(text: str) -> str:
    return escape(text).replace("|", "\\|").replace("*", "\\*")


def _code(text: str) -> str:
    return f"`{escape(text).replace('|', chr(92) + '|')}`" if text else ""
