"""What docs say of answers for scripts: pages and schemas, made of the answers' classes."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from importlib import import_module
from inspect import cleandoc
from typing import Any, cast, get_args

import msgspec

from irtool.report.answer import AnswerObject

ANSWERS: dict[str, str] = {
    "comm-fuse": "irtool.report.comm.fuse:FuseAnswer",
    "comm-groups": "irtool.report.comm.groups:GroupsAnswers",
    "comm-hang": "irtool.report.comm.hang:HangAnswer",
    "comm-reuse": "irtool.report.comm.reuse_later:ReuseAnswers",
    "check": "irtool.report.checking.answer:CheckAnswer",
    "check-why": "irtool.report.checking.answer:WhyAnswer",
    "calibrate": "irtool.report.calibrate:CalibrateAnswer",
    "ckpt": "irtool.report.ckpt:CkptAnswer",
    "cost": "irtool.report.cost:CostAnswers",
    "diff": "irtool.report.diff.graphs:DumpsAnswer",
    "diff-checkpoints": "irtool.report.diff.checkpoints:CheckpointsAnswer",
    "diff-loss": "irtool.report.diff.losses:LossAnswer",
    "diff-passes": "irtool.report.diff.series:PassesAnswer",
    "diff-ranks": "irtool.report.diff.series:RanksAnswer",
    "diff-runs": "irtool.report.diff.runs.answer:RunsAnswer",
    "doctor": "irtool.report.doctor.answer:DoctorAnswer",
    "explain": "irtool.report.explain:ExplainAnswer",
    "explain-code": "irtool.report.rules:CodeAnswers",
    "gate": "irtool.report.findings.answer:GateAnswer",
    "lint": "irtool.report.findings.answer:LintAnswer",
    "memory": "irtool.report.memory:MemoryAnswer",
    "parse": "irtool.report.dump_json:ParseAnswers",
    "parse-history": "irtool.report.history:HistoryAnswer",
    "pipeline": "irtool.report.pipeline:PipelineAnswer",
    "plan": "irtool.report.planning.answer:PlanAnswer",
    "recover": "irtool.report.recovery.answer:RecoverAnswer",
    "rules": "irtool.report.rules:RulesAnswers",
}
"""By the name of its page, ``docs/json-NAME.md``: module and class of each answer."""

_COMMANDS = {
    "check-why": "check --why NODE",
    "explain": "explain PATH",
    "explain-code": "explain CODE",
    "diff": "diff LEFT RIGHT",
    "diff-checkpoints": "irtool.report.diff.checkpoints:CheckpointsAnswer",
    "diff-loss": "diff --loss",
    "diff-passes": "diff --passes",
    "diff-ranks": "diff --ranks",
    "diff-runs": "diff RUN RUN",
    "parse-history": "parse --history NODE",
}
"""By the name of its page, what asks for an answer, where that is not the page's name."""

_HEAD = """# `irtool {command} --format json`

{about}

One JSON object; keys may be added within a version. [Its schema]({name}.schema.json).
Made of `{place}`: do not edit.
"""

_ATTRIBUTE = re.compile(r"^ {4}(\w+): ((?:.+\n?)(?:^ {8}.+\n?)*)", re.MULTILINE)
"""A line of a docstring's attributes, with those that continue it."""

Schema = Mapping[str, Any]


def answer_classes(name: str) -> tuple[type[AnswerObject], ...]:
    """The classes of an answer, by the name of its page: several where options ask for others."""
    module, _, attribute = ANSWERS[name].partition(":")
    answer = getattr(import_module(module), attribute)
    return cast("tuple[type[AnswerObject], ...]", get_args(answer) or (answer,))


def schema_of(name: str) -> dict[str, Any]:
    """The JSON schema (draft 2020-12) of an answer, by the name of its page."""
    tops, kinds = msgspec.json.schema_components(
        answer_classes(name), ref_template="#/$defs/{name}"
    )
    for kind in kinds.values():
        _describe(kind)
    top = tops[0] if len(tops) == 1 else {"anyOf": list(tops)}
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **top, "$defs": kinds}


def _describe(kind: dict[str, Any]) -> None:
    """Say what an object and its keys mean.

    A part of an analysis' result says it in its docstring; all its keys are always there.
    """
    about, _, attributes = cleandoc(kind.get("description", "")).partition("\n\nAttributes:\n")
    if about:
        kind["description"] = about.replace("``", "`")
    for key, text in _ATTRIBUTE.findall(attributes):
        meaning = " ".join(text.split()).replace("``", "`")
        kind["properties"][key]["description"] = meaning.removesuffix(".")
    if attributes:
        kind["required"] = list(kind["properties"])
        for value in kind["properties"].values():
            value.pop("default", None)


def page_of(name: str) -> str:
    """The page of an answer: its keys in a table, and each object in it in one below."""
    kinds = cast("dict[str, Schema]", schema_of(name)["$defs"])
    tops = [answer.__name__ for answer in answer_classes(name)]
    about = [str(kinds[top].get("description", "")) for top in tops]
    command = _COMMANDS.get(name, name.replace("-", " "))
    parts = [
        _HEAD.format(command=command, about=about[0], name=f"json-{name}", place=ANSWERS[name])
    ]
    parts += _table(kinds[tops[0]], kinds)
    for top, text in zip(tops[1:], about[1:], strict=True):
        parts += [f"\n## {_title(top)}\n\n{text}\n", *_table(kinds[top], kinds)]
    for kind in _reached(tops, kinds):
        title = str(kinds[kind].get("description", kind))
        parts += [f"\n## {_title(kind)}\n\n{title}\n", *_table(kinds[kind], kinds)]
    return "\n".join(parts) + "\n"


def _table(kind: Schema, kinds: Mapping[str, Schema]) -> Iterator[str]:
    yield "| key | type | what |"
    yield "| --- | --- | --- |"
    for key, value in cast("dict[str, Schema]", kind["properties"]).items():
        text = str(value.get("description", "")).replace("|", "\\|")
        yield f"| `{key}` | {_type_text(value, kinds)} | {text} |"


def _reached(tops: Sequence[str], kinds: Mapping[str, Schema]) -> list[str]:
    """Objects in an answer, in the order in which one meets them."""
    reached: list[str] = []
    waiting = list(tops)
    while waiting:
        inner = [kind for kind in _references(kinds[waiting.pop(0)]) if kind not in reached]
        reached += dict.fromkeys(inner)
        waiting += inner
    return reached


def _references(value: object) -> Iterator[str]:
    if isinstance(value, Mapping):
        entries = cast("Mapping[str, object]", value)
        if "$ref" in entries:
            yield str(entries["$ref"]).rsplit("/", 1)[-1]
        for inner in entries.values():
            yield from _references(inner)
    elif isinstance(value, list):
        for inner in cast("list[object]", value):
            yield from _references(inner)


def _type_text(value: Schema, kinds: Mapping[str, Schema]) -> str:
    if "$ref" in value:
        kind = str(value["$ref"]).rsplit("/", 1)[-1]
        return f"[{_title(kind)}](#{_title(kind).replace(' ', '-')})"
    if "enum" in value:
        return " or ".join(f"`{item}`" for item in cast("Sequence[object]", value["enum"]))
    if "anyOf" in value:
        inner = cast("Sequence[Schema]", value["anyOf"])
        return " or ".join(_type_text(item, kinds) for item in inner)
    match value.get("type"):
        case "array":
            return f"list{_of(value.get('items'), kinds)}"
        case "object":
            return f"object{_of(value.get('additionalProperties'), kinds)}"
        case None:
            return "any"
        case name:
            return str(name)


def _of(inner: object, kinds: Mapping[str, Schema]) -> str:
    if not isinstance(inner, Mapping):
        return ""
    return f" of {_type_text(cast('Schema', inner), kinds)}"


def _title(kind: str) -> str:
    """The name of a class in words: ``CostPart`` as ``cost part``."""
    return "".join(f" {c.lower()}" if c.isupper() else c for c in kind).strip()
