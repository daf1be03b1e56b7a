"""Rules in Markdown: a page of one, a table of many, and the documents of all."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from irtool.ir.finding import RuleText
from irtool.ir.units import count_text
from irtool.linting.failure.known import KnownLine
from irtool.operators.notation import Rule
from irtool.report.rules import as_typed, attributes_text, operator_name, summary
from irtool.report.text import escape

GENERATED = "<!-- Written by `irtool rules --write-docs`; edit the rule instead. -->"


def rule_markdown(rule: RuleText) -> str:
    """The page of a rule.

    Args:
        rule: what its class says of it.
    """
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
    for threshold in rule.thresholds:
        number = (
            count_text(threshold.default)
            if isinstance(threshold.default, int)
            else f"{threshold.default:g}"
        )
        lines.append(
            f"| `{threshold.name}` | {number} {threshold.unit}: {_cell(threshold.meaning)} |"
        )
    lines += ["", rule.explanation, "", "Bad:", "", "```", rule.bad, "```", ""]
    lines += ["Good:", "", "```", rule.good, "```", ""]
    if rule.hint:
        lines += [f"**Instead:** {rule.hint}.", ""]
    if rule.cases:
        cases = ", ".join(f"`{case}`" for case in rule.cases)
        lines += [f"Dumps of MindSpore on which it speaks: {cases}.", ""]
    if rule.references:
        lines += ["References:", "", *(f"- {reference}" for reference in rule.references), ""]
    return "\n".join(lines)


def rules_markdown(rules: Sequence[RuleText], link: str = "") -> str:
    """A table for documents, one row a rule.

    Args:
        rules: in the order of the table.
        link: leads to the page of a rule: ``{code}.md``; "": codes are no links.
    """
    lines = ["| code | name | severity | what it finds |", "| --- | --- | --- | --- |"]
    for rule in rules:
        code = f"[{rule.code}]({link.format(code=rule.code)})" if link else rule.code
        off = "" if rule.is_default else " (off by default)"
        what = _cell(summary(rule)) + off
        lines.append(f"| {code} | {rule.name} | {rule.severity} | {what} |")
    return "\n".join(lines) + "\n"


def documents(rules: Sequence[RuleText], families: Mapping[str, str]) -> dict[str, str]:
    """All pages by file name, the index among them.

    Args:
        rules: of irtool itself.
        families: what a family looks for, by its letters; in the order of the index.
    """
    pages = {f"{rule.code}.md": f"{GENERATED}\n\n{rule_markdown(rule)}" for rule in rules}
    index = [GENERATED, "", "# Rules of `irtool lint`", ""]
    for family, about in families.items():
        members = [rule for rule in rules if rule.family == family]
        if members:
            index += [f"## {family}: {about}", "", rules_markdown(members, "{code}.md")]
    pages["README.md"] = "\n".join(index).rstrip() + "\n"
    return pages


def _cell(text: str, starred: bool = False) -> str:
    """A text in a table; ``starred``: its stars are stars."""
    cell = escape(text).replace("|", "\\|")
    return cell.replace("*", "\\*") if starred else cell


def codes_markdown(lines: Sequence[KnownLine]) -> str:
    """What codes of ``check`` mean, and what MindSpore prints for them.

    Args:
        lines: of MindSpore's logs, each with an example.
    """
    parts: list[str] = []
    for line in lines:
        title = f"{line.code}: {line.message}" if line.message else line.code
        parts += [f"# {escape(title)}", ""]
        if line.meaning:
            parts += [line.meaning, ""]
        if line.next:
            parts += [f"**Next:** `{as_typed(line.next)}`", ""]
        parts += ["In logs:", "", "```", line.examples[0], "```", ""]
    return "\n".join(parts)


def operators_markdown(rules: Sequence[Rule], custom: Collection[str]) -> str:
    """A table of sharding rules for documents.

    Args:
        rules: one row each, in their order.
        custom: operators whose rule is the user's own; they are marked by a star.
    """
    lines = ["| operator | attributes | rule |", "| --- | --- | --- |"]
    lines += [
        f"| {_cell(operator_name(rule, custom), starred=True)} "
        f"| {_code(attributes_text(rule.attributes))} | {_code(rule.text)} |"
        for rule in rules
    ]
    return "\n".join(lines) + "\n"


def _code(text: str) -> str:
    return f"`{escape(text).replace('|', chr(92) + '|')}`" if text else ""
