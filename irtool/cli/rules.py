"""``irtool rules``: what irtool looks for, and what it knows of operators."""

from __future__ import annotations

import os
from collections.abc import Sequence
from difflib import get_close_matches
from typing import Annotated

from irtool.cli import complete, options
from irtool.cli.answering import DocumentForm, write_answer
from irtool.cli.configuration import load_custom_rules, read_configuration
from irtool.cli.lint.settings import known_rules
from irtool.cli.output import Output
from irtool.cli.parameters import Argument, Option
from irtool.cli.report import Failure, note
from irtool.cli.writing import CODE, cannot_write, output_errors, write_file
from irtool.ir.finding import RuleText
from irtool.linting.registry import FAMILIES, own_rules
from irtool.linting.settings import SettingsError, expanded
from irtool.operators.notation import Rule
from irtool.operators.table import operators, rule_of
from irtool.report.rule_pages import (
    GENERATED,
    documents,
    operators_markdown,
    rules_markdown,
)
from irtool.report.rules import operators_answer, operators_report, rules_answer, rules_report


def command(
    names: Annotated[
        list[str] | None,
        Argument(
            metavar="CODE|OPERATOR",
            help="Only these: codes, prefixes (COM), names of rules; or operators.",
            show_default=False,
            complete=complete.codes_or_operators,
        ),
    ] = None,
    operators: Annotated[bool, Option("--operators", help="Sharding rules of operators.")] = False,
    format: options.DocumentFormat = DocumentForm.table,
    write_docs: Annotated[
        str | None, Option(metavar="FOLDER", help="Write the pages of docs/rules.")
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
        rules = _chosen(names or ())
        write_answer(
            output,
            format,
            answer=lambda: operators_answer(rules, custom),
            report=lambda _: operators_report(rules, custom),
            markdown=lambda: operators_markdown(rules, custom),
        )
        return 0
    write_answer(
        output,
        format,
        answer=lambda: rules_answer(chosen),
        report=lambda _: rules_report(chosen),
        markdown=lambda: rules_markdown(chosen),
    )
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
        with output_errors(os.path.join(folder, name)):
            os.unlink(os.path.join(folder, name))
    note(f"{len(pages)} pages written to {folder}")
    return 0


def _is_generated(path: str) -> bool:
    with open(path, "rb") as file:
        return file.read(len(GENERATED)) == GENERATED.encode()


# -- sharding rules of operators ---------------------------------------------------------------


def _chosen(names: Sequence[str]) -> list[Rule]:
    known = operators()
    if not names:
        return list(known.values())
    chosen: list[Rule] = []
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
        chosen.append(rule)
    return chosen
