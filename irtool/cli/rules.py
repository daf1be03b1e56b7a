"""``irtool rules``: what irtool knows of operators."""

from __future__ import annotations

from collections.abc import Sequence
from difflib import get_close_matches
from enum import Enum
from typing import Annotated

import typer

from irtool.cli import options
from irtool.cli.configuration import load_custom_rules, read_configuration
from irtool.cli.output import Output
from irtool.cli.report import Failure
from irtool.render.check_rules import rules_document, rules_json, rules_markdown
from irtool.sharding.notation import Rule
from irtool.sharding.rules import operators, rule_of


class Format(str, Enum):
    """Output formats."""

    table = "table"
    json = "json"
    markdown = "markdown"


def command(
    names: Annotated[
        list[str] | None,
        typer.Argument(metavar="[OPERATOR]...", help="Only these.", show_default=False),
    ] = None,
    operators: Annotated[
        bool, typer.Option("--operators", help="Sharding rules of operators.")
    ] = False,
    format: Annotated[
        Format, typer.Option("--format", "-f", help="table is for people.")
    ] = Format.table,
    config: options.Config = None,
    output_file: options.OutputFile = None,
) -> int:
    """What irtool knows of operators: their sharding rules, and what is not known.

    Rules of custom operators are those of irtool.toml.
    """
    if not operators and not names:
        raise Failure("rules of what?", hint="irtool rules --operators")
    custom = frozenset(load_custom_rules(read_configuration(config)))
    rules = _chosen(names or ())
    output = Output(output_file)
    if format is Format.json:
        output.write(rules_json(rules, custom))
    elif format is Format.markdown:
        output.write(rules_markdown(rules, custom))
    else:
        output.show(rules_document(rules, custom))
    output.close()
    return 0


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
