"""What ``irtool rules`` and ``irtool explain CODE`` tell of rules, codes and operators."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from textwrap import indent
from typing import Annotated, TypeAlias

from msgspec import field

from irtool.ir.finding import RuleText, Severity, ThresholdText
from irtool.ir.units import count_text, plural
from irtool.linting.failure.known import KnownLine
from irtool.operators.notation import Attribute, Rule
from irtool.report.answer import AnswerObject, Json, doc
from irtool.report.json import json_value
from irtool.report.model import (
    Answer,
    Block,
    Cell,
    Column,
    Element,
    Facts,
    Heading,
    Note,
    Report,
    Table,
    text_column,
)
from irtool.report.text import paragraphs

# -- rules of the linter, for scripts ------------------------------------------------------------


class RuleDescription(AnswerObject, frozen=True, kw_only=True):
    """A rule of `irtool lint` or `irtool gate`."""

    code: str
    name: str
    family: str
    severity: Severity
    is_default: Annotated[bool, doc("whether it is on without being selected")] = field(
        name="default"
    )
    summary: str
    explanation: Annotated[str, doc("Markdown")]
    hint: str
    bad: Annotated[str, doc("statements that it speaks of")]
    good: Annotated[str, doc("the same, mended")]
    references: Sequence[str]
    cases: Annotated[Sequence[str], doc("dumps of MindSpore on which it speaks")]
    needs: Annotated[Sequence[str], doc("what it has to know beside the dump, in words")]
    dumps: Annotated[str, doc("which dumps it looks at, in words")]
    thresholds: Sequence[ThresholdText]
    origin: Annotated[str | None, doc("the package that it comes from, null for irtool's own")]


class RulesAnswer(
    AnswerObject, frozen=True, kw_only=True, tag_field="schema", tag="irtool.rules/1"
):
    """Rules of `irtool lint`; `explain CODE` gives the same for the codes that it was asked for."""

    rules: list[RuleDescription]


class AttributeDescription(AnswerObject, frozen=True, kw_only=True):
    """What a sharding rule reads of an operator."""

    name: str
    input: Annotated[int | None, doc("the input that holds it, else the attribute does")]
    default: Json
    optional: Annotated[bool, doc("whether there is a default")]


class OperatorRule(AnswerObject, frozen=True, kw_only=True):
    """The sharding rule of an operator."""

    op: str
    family: str | None
    kind: Annotated[str, doc("`notation`, `function` or `unknown`")]
    rule: Annotated[str, doc("in the notation of docs/custom-operators.md")]
    function: Annotated[str | None, doc("that says what the notation can't")]
    unknown: Annotated[str | None, doc("why nothing is known")]
    attributes: list[AttributeDescription]
    layout: Annotated[bool, doc("whether it takes layouts")]
    check: Annotated[str, doc("the place in MindSpore that refuses: `file.cc:Function`")]
    source: Annotated[str, doc("the table that holds it")]
    custom: Annotated[bool, doc("whether it is one of irtool.toml")]


class OperatorRulesAnswer(
    AnswerObject, frozen=True, kw_only=True, tag_field="schema", tag="irtool.rules.operators/1"
):
    """`irtool rules --operators`: how operators may be sharded."""

    operators: list[OperatorRule]


RulesAnswers: TypeAlias = RulesAnswer | OperatorRulesAnswer


class CodeLine(AnswerObject, frozen=True, kw_only=True):
    """A line that MindSpore prints for a code of `irtool check`."""

    code: str
    severity: Severity
    message: str
    meaning: str
    next: Annotated[str, doc("the command to type, with places in braces")]
    example: Annotated[Sequence[str], doc("such lines")]


class CodesAnswer(
    AnswerObject, frozen=True, kw_only=True, tag_field="schema", tag="irtool.explain.codes/1"
):
    """`irtool explain CODE` of a code of `irtool check` (`device-list`)."""

    lines: list[CodeLine]


CodeAnswers: TypeAlias = CodesAnswer | RulesAnswer


def rules_answer(rules: Sequence[RuleText]) -> RulesAnswer:
    """Rules of the linter for scripts: the answer of ``irtool rules``, and of ``explain CODE``.

    Args:
        rules: what their classes say of them.
    """
    return RulesAnswer(rules=[_rule(rule) for rule in rules])


def _rule(rule: RuleText) -> RuleDescription:
    return RuleDescription(
        code=rule.code,
        name=rule.name,
        family=rule.family,
        severity=rule.severity,
        is_default=rule.is_default,
        summary=rule.summary,
        explanation=rule.explanation,
        hint=rule.hint,
        bad=rule.bad,
        good=rule.good,
        references=rule.references,
        cases=rule.cases,
        needs=rule.needs,
        dumps=rule.dumps,
        thresholds=rule.thresholds,
        origin=rule.origin or None,
    )


def operators_answer(rules: Sequence[Rule], custom: Collection[str]) -> OperatorRulesAnswer:
    """Sharding rules for scripts.

    Args:
        rules: of the table, and of the user's own operators.
        custom: operators whose rule is the user's own.
    """
    return OperatorRulesAnswer(operators=[_operator(rule, custom) for rule in rules])


def _operator(rule: Rule, custom: Collection[str]) -> OperatorRule:
    return OperatorRule(
        op=rule.op,
        family=rule.family or None,
        kind=rule.kind,
        rule=rule.text,
        function=rule.function or None,
        unknown=rule.reason or None,
        attributes=[
            AttributeDescription(
                name=item.name,
                input=item.position,
                default=json_value(item.default),
                optional=item.has_default,
            )
            for item in rule.attributes
        ],
        layout=rule.layout,
        check=rule.check,
        source=rule.source,
        custom=rule.op in custom,
    )


def codes_answer(lines: Sequence[KnownLine]) -> CodesAnswer:
    """Codes of ``check`` for scripts.

    Args:
        lines: of MindSpore's logs that have the codes.
    """
    return CodesAnswer(
        lines=[
            CodeLine(
                code=line.code,
                severity=line.severity,
                message=line.message,
                meaning=line.meaning,
                next=line.next,
                example=line.examples,
            )
            for line in lines
        ]
    )


# -- for people ----------------------------------------------------------------------------------


def rules_report(rules: Sequence[RuleText]) -> Report:
    """A line a rule.

    Args:
        rules: in the order of the table.
    """
    columns = (
        Column("code"),
        Column("name"),
        Column("severity", rank=1),
        Column("on", rank=2),
        text_column("what it finds", rank=3),
    )
    rows = [
        (rule.code, rule.name, rule.severity, "yes" if rule.is_default else "no", summary(rule))
        for rule in rules
    ]
    more = "irtool explain CODE says more; irtool rules --operators: sharding rules"
    return Report(
        "rules", Answer(plural(len(rules), "rule")), [Table("", columns, rows), Note(more)]
    )


def summary(rule: RuleText) -> str:
    """What it finds, and whose it is.

    Args:
        rule: of irtool itself (without an origin) or of a package of the user's.
    """
    return f"{rule.summary} ({rule.origin})" if rule.origin else rule.summary


def rule_report(rules: Sequence[RuleText]) -> Report:
    """Everything that the classes of some rules say of them.

    Args:
        rules: one or more.
    """
    first, *others = rules
    elements = _rule_blocks(first)
    for rule in others:
        elements += [Heading(_rule_title(rule)), *_rule_blocks(rule)]
    return Report(
        f"explain: {', '.join(rule.code for rule in rules)}", Answer(_rule_title(first)), elements
    )


def _rule_title(rule: RuleText) -> str:
    return f"{rule.code} {rule.name}: {rule.summary}"


def _rule_blocks(rule: RuleText) -> list[Element]:
    facts: list[tuple[str, Cell]] = [("severity", rule.severity), ("looks at", rule.dumps)]
    facts += [("needs", need) for need in rule.needs]
    if not rule.is_default:
        facts.append(("off", f"unless selected: --extend-select {rule.code}"))
    facts += [("threshold", _threshold(item.name, item.default, item.unit, item.meaning))
              for item in rule.thresholds]  # fmt: skip
    blocks: list[Element] = [Facts(facts)]
    blocks += _section("Why", paragraphs(rule.explanation))
    blocks += [Heading("Bad"), Note(indent(rule.bad, "  "), verbatim=True)]
    blocks += [Heading("Good"), Note(indent(rule.good, "  "), verbatim=True)]
    if rule.hint:
        blocks += _section("Instead", paragraphs(rule.hint))
    if rule.cases:
        blocks += _section("Cases", rule.cases)
    if rule.references:
        blocks += _section("References", rule.references)
    return blocks


def _section(title: str, lines: Iterable[str]) -> list[Block]:
    return [Heading(title), *map(Note, lines)]


def _threshold(name: str, default: int | float, unit: str, meaning: str) -> str:
    number = count_text(default) if isinstance(default, int) else f"{default:g}"
    return f"{name} = {number} {unit}: {meaning}"


_KINDS = {"notation": "in notation", "function": "by a function", "unknown": "unknown"}


def operators_report(rules: Sequence[Rule], custom: Collection[str]) -> Report:
    """A line an operator.

    Args:
        rules: of the table, and of the user's own operators.
        custom: operators whose rule is the user's own; they are marked by a star.
    """
    kinds = Counter(rule.kind for rule in rules)
    parts = [f"{count_text(kinds[kind])} {text}" for kind, text in _KINDS.items() if kinds[kind]]
    own = sum(rule.op in custom for rule in rules)
    if own:
        parts.append(f"{count_text(own)} of your own")
    columns = (Column("operator"), text_column("attributes", 1), text_column("rule"))
    rows = [
        (operator_name(rule, custom), attributes_text(rule.attributes), rule.text) for rule in rules
    ]
    elements = [
        Table("", columns, rows),
        Note("docs/custom-operators.md says how to read and write rules"),
    ]
    answer = f"{plural(len(rules), 'operator')}: {', '.join(parts)}"
    return Report("rules: operators", Answer(answer), elements)


def operator_name(rule: Rule, custom: Collection[str]) -> str:
    """The operator, with a star if the rule is the user's own.

    Args:
        rule: of the operator.
        custom: operators whose rule is the user's own.
    """
    return f"{rule.op} *" if rule.op in custom else rule.op


def attributes_text(attributes: Sequence[Attribute]) -> str:
    """``axis@1 = -1``: input 1, else the attribute, else the default.

    Args:
        attributes: that a rule asks for; inputs count from 0.
    """
    return ", ".join(
        attribute.name
        + (f"@{attribute.position}" if attribute.position is not None else "")
        + (f" = {attribute.default!r}" if attribute.has_default else "")
        for attribute in attributes
    )


def codes_report(lines: Sequence[KnownLine]) -> Report:
    """What codes of ``check`` mean, and what MindSpore prints for them.

    Args:
        lines: one or more lines of MindSpore's logs.
    """
    first, *others = lines
    elements: list[Element] = [_line_facts(first)]
    for line in others:
        elements += [Heading(_line_title(line)), _line_facts(line)]
    codes = ", ".join(dict.fromkeys(line.code for line in lines))
    return Report(f"explain: {codes}", Answer(_line_title(first)), elements)


def _line_title(line: KnownLine) -> str:
    return f"{line.code}: {line.message}" if line.message else line.code


def _line_facts(line: KnownLine) -> Facts:
    pairs = [("means", line.meaning), ("next", as_typed(line.next)), ("in logs", line.examples[0])]
    return Facts([pair for pair in pairs if pair[1]])


def as_typed(text: str) -> str:
    """A command with words for what depends on the run.

    Args:
        text: with ``{dumps}`` and ``{op}``.
    """
    return text.replace("{dumps}", "FOLDER").replace("{op}", "OPERATOR")
