"""Settings: ``irtool.toml`` with its ``[context]`` and its files of rules for custom operators."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import field
from difflib import get_close_matches
from typing import Any, cast

from irtool.cli.report import Failure
from irtool.cluster.context.given import KEYS_BY_ALIAS
from irtool.ir.dataclass import dataclass
from irtool.operators.defaults import BATCH_STRATEGIES
from irtool.operators.irregular import FUNCTIONS, load_functions
from irtool.operators.notation import Declaration, Rule, RuleError
from irtool.operators.table import declare, forget_declared
from irtool.sharding.network.context import EXCLUDED
from irtool.syntax import file_facts, reading

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

CONFIG_FILE = "irtool.toml"
PROJECT_FILE = "pyproject.toml"
SECTIONS = ("context", "rules", "lint", "gate")
"""Keys at the top of a file of settings."""
REDUCTIONS = ("sum", "max", "min", "prod")
_OWN_HEADER = re.compile(r"^\s*\[\s*tool\s*\.\s*irtool\s*[.\]]", re.MULTILINE)
_PLACE = re.compile(r" \(at line (\d+), column (\d+)\)| \(at end of document\)")


@dataclass(frozen=True, slots=True)
class Configuration:
    """What an ``irtool.toml`` says; ``path`` is empty where there is none.

    ``rules`` are the paths of rules files, as seen from the current folder; ``lint`` is the table
    of settings of the linter, ``gate`` that of the gate.
    """

    path: str = ""
    context: Mapping[str, object] = field(default_factory=dict[str, object])
    rules: tuple[str, ...] = ()
    lint: Mapping[str, object] = field(default_factory=dict[str, object])
    gate: Mapping[str, object] = field(default_factory=dict[str, object])


def read_configuration(path: str | None, folder: str = "") -> Configuration:
    """Read the file of ``--config``, else the ``irtool.toml`` of a folder or of one above it.

    ``[tool.irtool]`` of a ``pyproject.toml`` says the same where there is no ``irtool.toml``.

    Args:
        path: the file, where one is named.
        folder: where to look else; the current one by default.

    Raises:
        Failure: the file cannot be read, or says something that makes no sense.
    """
    file = path or _above(folder or os.getcwd())
    if file and not path:
        file = os.path.join(folder, file)
    if not file:
        return Configuration()
    table = _own_table(read_table(file), file)
    context = table.get("context", {})
    if not isinstance(context, dict):
        raise Failure("context must be a table", file, hint="write [context] above its keys")
    rules = table.get("rules", [])
    names = [rules] if isinstance(rules, str) else rules
    if not isinstance(names, list) or not all(
        isinstance(name, str) for name in cast("list[object]", names)
    ):
        raise Failure("rules must be a list of files", file, hint='rules = ["custom.rules"]')
    folder = os.path.dirname(file)
    return Configuration(
        file,
        cast("dict[str, object]", context),
        tuple(os.path.join(folder, name) for name in cast("list[str]", names)),
        _section(table, "lint", file),
        _section(table, "gate", file),
    )


def _section(table: Mapping[str, Any], name: str, path: str) -> Mapping[str, object]:
    section = table.get(name, {})
    if not isinstance(section, dict):
        raise Failure(f"{name} must be a table", path, hint=f"write [{name}] above its keys")
    return cast("dict[str, object]", section)


def _own_table(table: dict[str, Any], path: str) -> dict[str, Any]:
    """The part of a file that is ours: all of it, or ``[tool.irtool]`` of a ``pyproject.toml``."""
    if os.path.basename(path) == PROJECT_FILE:
        tools = table.get("tool")
        own = cast("dict[str, Any]", tools).get("irtool") if isinstance(tools, dict) else None
        table = cast("dict[str, Any]", own) if isinstance(own, dict) else {}
    for key in table:
        near = get_close_matches(key, SECTIONS, n=1, cutoff=0.75)
        if key not in SECTIONS and near:
            raise Failure(f"there is no key {key}", path, hint=f"did you mean {near[0]}?")
    return table


def _above(folder: str) -> str:
    """The nearest ``irtool.toml`` from a folder upwards, not beyond a repository's root.

    In a folder without one, a ``pyproject.toml`` counts if it has a table ``[tool.irtool]``.
    """
    start = folder
    while True:
        path = os.path.join(folder, CONFIG_FILE)
        if file_facts.is_file(path):
            return os.path.relpath(path, start)
        path = os.path.join(folder, PROJECT_FILE)
        if file_facts.is_file(path) and _is_about_irtool(path):
            return os.path.relpath(path, start)
        parent = os.path.dirname(folder)
        if parent == folder or file_facts.exists(os.path.join(folder, ".git")):
            return ""
        folder = parent


def _is_about_irtool(path: str) -> bool:
    """Whether a project's file has settings of irtool; a file that cannot be read has none."""
    try:
        return _OWN_HEADER.search(reading.read_text(path, errors="replace")) is not None
    except OSError:
        return False


# -- keys of the context ---------------------------------------------------------------------

CONTEXT_KEYS = frozenset(KEYS_BY_ALIAS) | frozenset(
    (
        *("device_num", "global_rank", "pipeline_stages", "device_target", "soc"),
        *("parallel_mode", "search_mode", "dataset_strategy", "full_batch", "enable_alltoall"),
        *("enable_parallel_optimizer", "parallel_optimizer_config"),
        *("parallel_optimizer_threshold", "optimizer_weight_shard_size"),
        *("gradient_accumulation_shard", "grad_accumulation_step", "gradients_mean"),
        *("gradient_fp32_sync", "loss_repeated_mean", "pipeline_config"),
        "pipeline_result_broadcast",
        # These say nothing about sharding.
        *("parameter_broadcast", "strategy_ckpt_load_file", "strategy_ckpt_save_file"),
        *("strategy_ckpt_config", "group_ckpt_save_file", "all_reduce_fusion_config"),
        *("communi_parallel_mode", "comm_fusion", "optimizer_weight_shard_aggregated_save"),
        *("sharding_propagation", "auto_pipeline", "pipeline_segments", "pipeline_scheduler"),
        *("pipeline_interleave", "dump_local_norm"),
        *("dump_local_norm_path", "dump_device_local_norm", "auto_parallel_new_interface"),
        "init_param_in_compile",
        # No keys of MindSpore: environment variables of the training process, a table; weights
        # with Parameter(parallel_optimizer=False).
        *("environment", EXCLUDED),
    )
)
"""Every key that a context may have: those of ``set_auto_parallel_context``, the target, and the
environment."""


def check_context_keys(keys: Iterable[str], place: str) -> None:
    """Make sure that all keys mean something.

    Args:
        keys: of a parallel context, as somebody wrote them.
        place: where they stand, for the message: a file or an option.

    Raises:
        Failure: one does not.
    """
    for key in keys:
        if key in CONTEXT_KEYS:
            continue
        near = get_close_matches(key, sorted(CONTEXT_KEYS), n=1)
        hint = f"did you mean {near[0]}?" if near else "docs/check.md lists the keys"
        message = f"there is no key {key} in a parallel context"
        raise Failure(message, place, hint=hint, code="CTX001")


# -- JSON and TOML -----------------------------------------------------------------------------


def read_table(path: str) -> dict[str, Any]:
    """The table that a JSON or TOML file holds; the suffix tells which, else its first letter.

    Args:
        path: the file.

    Raises:
        Failure: the file cannot be read, or holds no table; names line and column.
    """
    text = read_text(path)
    is_json = path.endswith(".json") or (
        not path.endswith(".toml") and text.lstrip()[:1] in ("{", "[")
    )
    try:
        table: object = reading.parse_json(text) if is_json else tomllib.loads(text)
    except reading.JsonError as error:
        message = f"no JSON: {error.message}"
        raise _located(path, text, error.line, error.column, message) from None
    except tomllib.TOMLDecodeError as error:
        place = _PLACE.search(str(error))
        line, column = _end_of(text) if not place or not place[1] else map(int, place.groups())
        message = f"no TOML: {_PLACE.sub('', str(error))}"
        raise _located(path, text, line, column, message) from None
    except (ValueError, RecursionError) as error:
        why = "nested too deeply" if isinstance(error, RecursionError) else f"no TOML: {error}"
        raise Failure(why, path, code="CLI002") from None
    if not isinstance(table, dict):
        raise Failure("holds no table of keys and values", path)
    return cast("dict[str, Any]", table)


def read_text(path: str) -> str:
    """A small text file.

    Args:
        path: the file.

    Raises:
        Failure: it cannot be read.
    """
    try:
        return reading.read_text(path)
    except OSError as error:
        reason = error.strerror or str(error)
        raise Failure(f"cannot be read: {reason[:1].lower()}{reason[1:]}", path) from None


def _end_of(text: str) -> tuple[int, int]:
    lines = text.split("\n")
    return len(lines), len(lines[-1]) + 1


def _located(
    path: str, text: str, line: int, column: int, message: str, hint: str = "", code: str = "CLI002"
) -> Failure:
    lines = text.split("\n")
    shown = lines[line - 1] if 0 < line <= len(lines) else ""
    return Failure(message, f"{path}:{line}:{column}", column, shown, hint, code)


# -- entries for custom operators --------------------------------------------------------------

_NOTATION = "docs/custom-operators.md says how rules are written"


def load_custom_rules(configuration: Configuration) -> tuple[str, ...]:
    """Add to the table of operators what a configuration's files say; the operators they are for.

    What was added before is forgotten first.

    Args:
        configuration: whose ``rules`` name the files.

    Raises:
        Failure: a file cannot be read, or holds no rules; names line and column.
    """
    forget_declared()
    added: dict[tuple[str, str], str] = {}
    names: dict[str, None] = {}
    for path in configuration.rules:
        text = read_text(path)
        for said in _read(path, text):
            for what in _said(said):
                if (said.op, what) in added:
                    line, column = _place(text, max(text.rfind(said.op), 0))
                    message = f"{what} for {said.op} already, in {added[said.op, what]}"
                    raise _located(path, text, line, column, message, code="RUL003")
                added[said.op, what] = path
            if (rule := said.rule) is not None:
                _check_rule(rule, path, text)
            names[said.op] = None
        declare(text, path)
    return tuple(names)


def _said(said: Declaration) -> Iterator[str]:
    """What a declaration says, each in a few words."""
    if said.sharding is not None:
        yield "there is a rule"
    for fact in said.facts:
        yield f"{fact} is given"


def _read(path: str, text: str) -> list[Declaration]:
    from lark.exceptions import UnexpectedInput

    from irtool.operators.notation_reader import read_declarations

    try:
        return read_declarations(text, path)
    except RuleError as error:
        if error.line:
            message = str(error).removeprefix(f"{path}: ")
            hint = error.hint or _NOTATION
            raise _located(path, text, error.line, error.column, message, hint, "RUL002") from None
        cause = error.__cause__
        if not isinstance(cause, UnexpectedInput):
            raise Failure(f"no rules: {error}", path, hint=_NOTATION, code="RUL001") from None
        line, column = cause.line, cause.column
        token: Any = getattr(cause, "token", None)
        if token is not None and token.type == "$END":
            line, column = _end_of(text)
            message = "the file ends within a rule"
        else:
            what = str(token if token is not None else getattr(cause, "char", ""))
            message = f"a rule cannot go on with {what!r} here"
        raise _located(path, text, line, column, message, _NOTATION, "RUL001") from None


def _check_rule(rule: Rule, path: str, text: str) -> None:
    """What the grammar lets through, but nothing can be done with."""
    for pattern, message, known, name in _mistakes(rule):
        line, column = _find(text, pattern, rule.op)
        near = get_close_matches(name, known, n=1)
        hint = f"did you mean {near[0]}?" if near else f"there are: {', '.join(known) or 'none'}"
        raise _located(path, text, line, column, f"{rule.op}: {message}", hint, "RUL002")


def _mistakes(rule: Rule) -> Iterator[tuple[str, str, list[str], str]]:
    """Names that mean nothing: a pattern to find them by, a message, and what there is instead."""
    load_functions()
    if rule.function and rule.function not in FUNCTIONS:
        pattern = rf"\b(?:via|function)\s+(?={re.escape(rule.function)}\b)"
        known = sorted(FUNCTIONS)
        near = get_close_matches(rule.function, known, n=5, cutoff=0.3)
        yield pattern, f"there is no function {rule.function}", near, rule.function
    ways = sorted(BATCH_STRATEGIES)
    if rule.batch and rule.batch not in ways:
        pattern = rf"\bbatch\s+(?=\"{re.escape(rule.batch)}\")"
        yield pattern, f"there is no way {rule.batch!r} to split a batch", ways, rule.batch
    declared = [attribute.name for attribute in rule.attributes]
    for name in _attributes_used(rule):
        if name not in declared:
            pattern = (
                rf"\b(?:whole|swap|drop|keep|insert|permute|unsplit)\s+(?={re.escape(name)}\b)"
            )
            yield pattern, f"{name} is no attribute of the rule", declared, name
    axes = [axis.name for pattern in rule.inputs for axis in pattern.axes if axis.name]
    for reduce in rule.reduces:
        name = reduce.over.name
        if name not in axes and name not in declared:
            pattern = rf"\breduce\s+[*~!]*(?={re.escape(name)}\b)"
            yield pattern, f"{name} is no axis of an input", [*axes, *declared], name
        if reduce.reduce not in REDUCTIONS:
            pattern = rf"\bwith\s+(?={re.escape(reduce.reduce)}\b)"
            message = f"there is no reduction {reduce.reduce}"
            yield pattern, message, list(REDUCTIONS), reduce.reduce
    for name in rule.order or ():
        if name not in axes:
            pattern = rf"\border\s*\([^)]*?\b(?={re.escape(name)}\b)"
            yield pattern, f"{name} is no axis of an input", axes, name
    for output in rule.outputs:
        for axis in output.axes:
            if axis.name and axis.name not in axes and rule.kind == "notation":
                pattern = rf"->[^:]*?\b(?={re.escape(axis.name)}\b)"
                yield pattern, f"{axis.name} is no axis of an input", axes, axis.name


def _attributes_used(rule: Rule) -> Iterator[str]:
    for pattern in rule.inputs:
        yield from pattern.swaps
    for output in rule.outputs:
        for change in output.changes:
            yield change.attribute
            if change.keep:
                yield change.keep
    for whole in rule.wholes:
        yield whole.attribute


def _find(text: str, pattern: str, after: str) -> tuple[int, int]:
    """Where the match of a pattern ends, behind the rule's name."""
    name = re.search(rf"^[^#\n]*?\b{re.escape(after)}\b", text, re.MULTILINE)
    start = name.end() if name else 0
    match = re.compile(pattern).search(text, start)
    return _place(text, start if match is None else match.end())


def _place(text: str, offset: int) -> tuple[int, int]:
    return text.count("\n", 0, offset) + 1, offset - text.rfind("\n", 0, offset)
