"""Rules as people read them: a table of all, a page of one, and the Markdown of the documents."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from irtool.ir.finding import RuleText
from irtool.ir.units import count_text, plural
from irtool.report.json import json_list, json_text
from irtool.report.model import Block, Column, Document, Facts, Heading, Note, Table, text_column
from irtool.report.text import escape

SCHEMA = "irtool.rules/1"
GENERATED = "<!-- Written by `irtool rules --write-docs`; edit the rule instead. -->"


# -- all of them -------------------------------------------------------------------------------


def rules_table(rules: Sequence[RuleText]) -> Document:
    """A line a rule."""
    columns = (
        Column("code"),
        Column("name"),
        Column("severity"),
        Column("on"),
        text_column("what it finds"),
    )
    rows = [
        (rule.code, rule.name, rule.severity, "yes" if rule.is_default else "no", _summary(rule))
        for rule in rules
    ]
    document = Document([Heading(plural(len(rules), "rule"))])
    document.add(Table("", columns, rows))
    document.add(Note("irtool explain CODE says more; irtool rules --operators: sharding rules"))
    return document


def _summary(rule: RuleText) -> str:
    return f"{rule.summary} ({rule.origin})" if rule.origin else rule.summary


def rules_json_pieces(rules: Sequence[RuleText]) -> Iterator[str]:
    """One object with a list of rules."""
    yield f'{{"schema": "{SCHEMA}", "rules": '
    yield from json_list(([json_text(rule_object(rule))] for rule in rules), "")
    yield "}\n"


def rule_object(rule: RuleText) -> dict[str, object]:
    """One rule as JSON data."""
    return {
        "code": rule.code,
        "name": rule.name,
        "family": rule.family,
        "severity": rule.severity,
        "default": rule.is_default,
        "summary": rule.summary,
        "explanation": rule.explanation,
        "hint": rule.hint,
        "bad": rule.bad,
        "good": rule.good,
        "references": rule.references,
        "needs": rule.needs,
        "dumps": rule.dumps,
        "thresholds": [
            {
                "name": each.name,
                "default": each.default,
                "unit": each.unit,
                "meaning": each.meaning,
            }
            for each in rule.thresholds
        ],
        "origin": rule.origin or None,
    }


# -- one of them -------------------------------------------------------------------------------


def rule_blocks(rule: RuleText) -> list[Block]:
    """Everything about a rule, for a terminal."""
    facts = [("severity", rule.severity), ("looks at", rule.dumps)]
    facts += [("needs", need) for need in rule.needs]
    if not rule.is_default:
        facts.append(("off", f"unless selected: --extend-select {rule.code}"))
    facts += [("threshold", _threshold(each.name, each.default, each.unit, each.meaning))
              for each in rule.thresholds]  # fmt: skip
    blocks: list[Block] = [Heading(f"{rule.code} {rule.name}: {rule.summary}"), Facts(facts)]
    blocks += _section("Why", rule.explanation)
    blocks += _section("Bad", rule.bad, "  ")
    blocks += _section("Good", rule.good, "  ")
    if rule.hint:
        blocks += _section("Instead", rule.hint)
    if rule.references:
        blocks += _section("References", "\n".join(rule.references))
    return blocks


def _section(title: str, text: str, indent: str = "") -> list[Block]:
    return [Heading(title), *(Note(indent + line) for line in text.split("\n"))]


def _threshold(name: str, default: int | float, unit: str, meaning: str) -> str:
    number = count_text(default) if isinstance(default, int) else f"{default:g}"
    return f"{name} = {number} {unit}: {meaning}"


# -- documents ---------------------------------------------------------------------------------


def rule_markdown(rule: RuleText) -> str:
    """The page of a rule."""
    lines = [
        f"# {rule.code}: {rule.name}",
        "",
        f"{rule.summary}.",
        "",
        "| | |",
        "| --- | --- |",
        f"| severity | {rule.severity} |",
        f"| looks at | {_cell(rule.dumps)} |",
    ]
    lines += [f"| needs | {_cell(need)} |" for need in rule.needs]
    if not rule.is_default:
        lines.append(f"| off by default | turn it on with `--extend-select {rule.code}` |")
    for each in rule.thresholds:
        number = count_text(each.default) if isinstance(each.default, int) else f"{each.default:g}"
        lines.append(f"| `{each.name}` | {number} {each.unit}: {_cell(each.meaning)} |")
    lines += ["", rule.explanation, "", "Bad:", "", "```", rule.bad, "```", ""]
    lines += ["Good:", "", "```", rule.good, "```", ""]
    if rule.hint:
        lines += [f"**Instead:** {rule.hint}.", ""]
    if rule.references:
        lines += ["References:", "", *(f"- {reference}" for reference in rule.references), ""]
    return "\n".join(lines)


def rules_markdown(rules: Sequence[RuleText], link: str = "") -> str:
    """A table for documents; ``link`` leads to the pages: ``{code}.md``."""
    lines = ["| code | name | severity | what it finds |", "| --- | --- | --- | --- |"]
    for rule in rules:
        code = f"[{rule.code}]({link.format(code=rule.code)})" if link else rule.code
        off = "" if rule.is_default else " (off by default)"
        summary = _cell(_summary(rule)) + off
        lines.append(f"| {code} | {rule.name} | {rule.severity} | {summary} |")
    return "\n".join(lines) + "\n"


def documents(rules: Sequence[RuleText], families: Mapping[str, str]) -> dict[str, str]:
    """All pages by file name, the index among them."""
    pages = {f"{rule.code}.md": f"{GENERATED}\n\n{rule_markdown(rule)}" for rule in rules}
    index = [GENERATED, "", "# Rules of `irtool lint`", ""]
    for family, about in families.items():
        members = [rule for rule in rules if rule.family == family]
        if members:
            index += [f"## {family}: {about}", "", rules_markdown(members, "{code}.md")]
    pages["README.md"] = "\n".join(index).rstrip() + "\n"
    return pages


def _cell(text: str) -> str:
    return escape(text).replace("|", "\\|")
