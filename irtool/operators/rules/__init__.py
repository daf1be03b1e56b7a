"""The table of operator rules: files of the notation beside this module, and a user's own."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Mapping
from functools import lru_cache
from importlib import resources

import irtool.operators.functions as functions
from irtool.operators.notation import Rule, read_rules

_extra: dict[str, Rule] = {}


@lru_cache(maxsize=1)
def _shipped() -> Mapping[str, Rule]:
    """Rules that come with irtool, by operator."""
    for module in pkgutil.iter_modules(functions.__path__):
        importlib.import_module(f"{functions.__name__}.{module.name}")
    found: dict[str, Rule] = {}
    files = [file for file in resources.files(__name__).iterdir() if file.name.endswith(".rules")]
    for file in sorted(files, key=lambda file: file.name):
        for rule in read_rules(file.read_text(encoding="utf-8"), file.name):
            if rule.op in found:
                raise ValueError(f"two rules for {rule.op}: {found[rule.op].source}, {file.name}")
            found[rule.op] = rule
    return found


def load_rules(text: str, source: str = "") -> tuple[str, ...]:
    """Add a user's rules (they go before those of irtool); returns the operators they are for."""
    added = read_rules(text, source)
    _shipped()
    for rule in added:
        if rule.function and rule.function not in functions.FUNCTIONS:
            raise ValueError(f"{source}: no function {rule.function} for {rule.op}")
        _extra[rule.op] = rule
    return tuple(rule.op for rule in added)


def unload_rules() -> None:
    """Forget what ``load_rules`` added."""
    _extra.clear()


def rule_of(op: str) -> Rule | None:
    """The rule of a primitive (one leading ``_`` does not count), or None: MindSpore has none."""
    for name in (op, op.removeprefix("_")):
        rule = _extra.get(name) or _shipped().get(name)
        if rule is not None:
            return rule
    return None


def operators() -> Mapping[str, Rule]:
    """Every operator with a rule, in alphabetical order: its notation, function, or why unknown."""
    return dict(sorted({**_shipped(), **_extra}.items()))
