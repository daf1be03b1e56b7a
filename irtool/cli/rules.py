"""``irtool rules``: what irtool looks for, and what it knows of operators."""

from __future__ import annotations

import os
from collections.abc import Sequence
from difflib import get_close_matches
from enum import Enum
from typing import Annotated

import typer

from irtool.cli import complete, options
from irtool.cli.configuration import load_custom_rules, read_configuration
from irtool.cli.lint_settings import known_rules
from irtool.cli.output import Output
from irtool.cli.report import Failure, note
from irtool.cli.writing import CODE, cannot_write, told, write_file
from irtool.ir.finding import RuleText
from irtool.lint.registry import FAMILIES, own_rules
from irtool.lint.settings import SettingsError, expanded
from irtool.operators.notation import Rule
from irtool.operators.table import operators, rule_of
from irtool.report.check_rules import rules_document, rules_json
from irtool.report.check_rules import rules_markdown as operators_markdown
from irtool.report.rule_pages import (
    GENERATED,
    documents,
    rules_json_pieces,
    rules_markdown,
    rules_table,
)


class Format(str, Enum):
    """Output formats."""

    table = "table"
    json = "json"
    markdown = "markdown"


def command(
    names: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[CODE|OPERATOR]...",
            help="Only these: codes, prefixes (COM), names of rules; or operators.",
            show_default=False,
            autocompletion=complete.codes,
        ),
    ] = None,
    operators: Annotated[
        bool, typer.Option("--operators", help="Sharding rules of operators.")
    ] = False,
    format: Annotated[
        Format, typer.Option("--format", "-f", help="table is for people.")
    ] = Format.table,
    write_docs: Annotated[
        str | None, typer.Option(metavar="FOLDER", help="Write the pages of docs/rules.")
    ] = None,
    config: options.Config = None,
    output_file: options.OutputFile = None,
) -> int:
    """What irtool lint looks for; with --operators, what irtool knows of operators.

    Sharding rules of custom operators are those of irtool.toml.
    """
    if write_docs is not None:
        return _write(write_docs)
    custom = frozenset(load_custom_rules(read_configuration(config)))
    output = Output(output_file)
    chosen = None if operators else _lint_rules(names or ())
    if chosen is None:
        _show_operators(names or (), custom, format, output)
    elif format is Format.json:
        for piece in rules_json_pieces(chosen):
            output.write(piece)
    elif format is Format.markdown:
        output.write(rules_markdown(chosen))
    else:
        output.show(rules_table(chosen))
    output.close()
    return 0


# -- rules of the linter -----------------------------------------------------------------------


def _lint_rules(names: Sequence[str]) -> list[RuleText] | None:
    """The rules that are meant; None where operators are."""
    known = known_rules()
    if not names:
        return [entry.text() for entry in known.values()]
    if rule_of(names[0].removeprefix("PrimFunc_")) is not None:
        return None
    try:
        codes = expanded(names, known, "")
    except SettingsError as error:
        if _near_operator(names[0]):
            return None
        raise Failure(error.message, hint=error.hint, code="RUL004") from None
    return [entry.text() for code, entry in known.items() if code in codes]


def _near_operator(name: str) -> bool:
    """Whether a name is more like an operator's than like a rule's."""
    return bool(get_close_matches(name.removeprefix("PrimFunc_"), list(operators()), n=1))


def _write(folder: str) -> int:
    """Write the pages of irtool's own rules, and take away those of rules that are gone.

    Raises:
        Failure: a page can't be written, or a file of somebody else is in its place.
    """
    pages = documents([entry.text() for entry in own_rules().values()], FAMILIES)
    try:
        os.makedirs(folder, exist_ok=True)
        there = [name for name in os.listdir(folder) if name.endswith(".md")]
        ours = {name for name in there if _is_generated(os.path.join(folder, name))}
    except OSError as error:
        raise cannot_write(error, folder) from None
    for name in pages:
        if name in there and name not in ours:
            hint = "name a folder for these pages alone"
            place = os.path.join(folder, name)
            raise Failure("this page is not one of irtool's", place, hint=hint, code=CODE)
    for name, text in pages.items():
        write_file(os.path.join(folder, name), text)
    for name in ours - set(pages):
        with told(os.path.join(folder, name)):
            os.unlink(os.path.join(folder, name))
    note(f"{len(pages)} pages written to {folder}")
    return 0


def _is_generated(path: str) -> bool:
    with open(path, "rb") as file:
        return file.read(len(GENERATED)) == GENERATED.encode()


# -- sharding rules of operators ---------------------------------------------------------------


def _show_operators(
    names: Sequence[str], custom: frozenset[str], format: Format, output: Output
) -> None:
    rules = _chosen(names)
    if format is Format.json:
        output.write(rules_json(rules, custom))
    elif format is Format.markdown:
        output.write(operators_markdown(rules, custom))
    else:
        output.show(rules_document(rules, custom))


def _chosen(names: Sequence[str]) -> list[Rule]:
    known = operators()
    if not names:
        return list(known.values())
    found: list[Rule] = []
    for name in names:
        rule = rule_of(name.removeprefix("PrimFunc_"))
        if rule is None:
            near = get_close_matches(name, list(known), n=1)
            hint = (
                f"did you mean {near[0]}?"
                if near
                else ("MindSpore has none either: it runs batch parallel, or whole on every device")
            )
            raise Failure(f"there is no rule for {name}", hint=hint, code="RUL004")
        found.append(rule)
    return found
