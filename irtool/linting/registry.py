"""Which rules there are: irtool's own by the names of their files, others by entry points."""

from __future__ import annotations

import inspect
import os
import re
import sys
from collections.abc import Iterable, Iterator
from contextlib import suppress
from functools import lru_cache
from importlib import import_module
from importlib.metadata import EntryPoint, entry_points
from pkgutil import iter_modules
from types import ModuleType
from typing import TypeGuard

import irtool.linting.rules as own
from irtool.ir.dataclass import dataclass
from irtool.ir.finding import RuleText
from irtool.linting.rule import Rule
from irtool.syntax import file_facts

ENTRY_POINTS = "irtool.lint_rules"
"""Group under which packages offer rules: a class, a module that holds classes, or a list."""

FAMILIES = {
    "SYN": "Is the dump whole and readable?",
    "STR": "Strategies: legal, complete, and worth their redistributions?",
    "COM": "Communication: needed, balanced, and in the same order on all ranks?",
    "MEM": "Memory: replicated, kept for long, or sharded below the threshold?",
    "NUM": "Numbers: where half precision or another order of summation loses them",
    "PIP": "Pipeline: balanced stages and short bubbles?",
    "OPS": "Operators: left over, different from their peers, or rebuilt in every step?",
    "REC": "Recomputation: where it saves nothing, or did not happen",
    "ENV": "Settings that have no effect",
    "GAT": "Regressions against a golden dump, which irtool gate looks for",
    "ENG": "The linter itself",
}
"""What irtool's own families are about, in the order of documents."""

OFF_FAMILIES = frozenset({"GAT"})
"""Families that another command runs: ``irtool lint`` does not even import their rules."""

_MODULE = re.compile(r"([a-z]{2,5}\d{3})_\w+")
_CODE = re.compile(r"[A-Z]{2,5}\d{3}")


class RegistryError(Exception):
    """Rules of a package cannot be used; the message says which and why."""


@dataclass(frozen=True, slots=True)
class RuleEntry:
    """One rule: its code, and where it comes from ("" for irtool's own)."""

    code: str
    module: str
    origin: str = ""
    rule: type[Rule] | None = None

    def load(self) -> type[Rule]:
        """The class of the rule, whose module is imported now.

        Raises:
            RegistryError: the module does not hold a rule of that code.
        """
        if self.rule is not None:
            return self.rule
        for rule in _rules_in(import_module(self.module)):
            if rule.code == self.code:
                return rule
        raise RegistryError(f"{self.module} holds no rule {self.code}")

    def text(self) -> RuleText:
        """The rule as documentation and reports describe it."""
        return self.load().text(self.origin)


def own_rules() -> dict[str, RuleEntry]:
    """Rules of irtool itself by code; nothing is imported."""
    return dict(_own())


@lru_cache(maxsize=1)
def _own() -> dict[str, RuleEntry]:
    entries: dict[str, RuleEntry] = {}
    for family in iter_modules(own.__path__, f"{own.__name__}."):
        if not family.ispkg:
            continue
        folder = family.name.rpartition(".")[2]
        paths = [f"{path}/{folder}" for path in own.__path__]
        for module in iter_modules(paths, f"{family.name}."):
            named = _MODULE.fullmatch(module.name.rpartition(".")[2])
            if named:
                code = named[1].upper()
                entries[code] = RuleEntry(code, module.name)
    return {code: entries[code] for code in sorted(entries, key=_place)}


def _place(code: str) -> tuple[int, str]:
    family = code[:3]
    order = list(FAMILIES)
    return (order.index(family) if family in order else len(order), code)


@lru_cache(maxsize=1)
def all_rules() -> dict[str, RuleEntry]:
    """All rules by code, those of other packages behind irtool's own.

    Raises:
        RegistryError: a package's rules cannot be loaded, or a code is taken.
    """
    rules = own_rules()
    for folder in filter(os.path.isdir, sys.path):
        with suppress(OSError):
            file_facts.names_in(folder)  # where packages come and go
    for point in sorted(entry_points(group=ENTRY_POINTS), key=lambda plugin: plugin.name):
        for entry in _offered(point):
            if entry.code in rules:
                taken = rules[entry.code].origin or "irtool"
                raise RegistryError(f"{entry.origin}: {entry.code} is a rule of {taken} already")
            rules[entry.code] = entry
    return rules


def _offered(point: EntryPoint) -> Iterator[RuleEntry]:
    origin = point.dist.name if point.dist is not None else point.value
    try:
        file_facts.cannot_repeat()  # its code may change
        offered: object = point.load()
    except Exception as error:
        what = f"{type(error).__name__}: {error}"
        raise RegistryError(f"{origin}: its rules cannot be loaded: {what}") from error
    rules = list(_rules_in(offered))
    if not rules:
        raise RegistryError(f"{origin}: {point.value} holds no rules")
    for rule in rules:
        problem = mistake_in(rule)
        if problem:
            raise RegistryError(f"{origin}: {problem}")
        yield RuleEntry(rule.code, rule.__module__, origin, rule)


def _rules_in(offered: object) -> Iterator[type[Rule]]:
    """The rules that a class, a module, or a list stands for."""
    if _is_rule(offered):
        yield offered
    elif isinstance(offered, ModuleType):
        for value in vars(offered).values():
            if _is_rule(value) and value.__module__ == offered.__name__:
                yield value
    elif isinstance(offered, Iterable) and not isinstance(offered, str | bytes):
        for item in offered:  # pyright: ignore[reportUnknownVariableType]  # whatever a package offers
            yield from _rules_in(item)  # pyright: ignore[reportUnknownArgumentType]  # likewise


def _is_rule(value: object) -> TypeGuard[type[Rule]]:
    """Whether it is a rule rather than a base of rules."""
    return inspect.isclass(value) and issubclass(value, Rule) and hasattr(value, "code")


_TEXTS = ("code", "name", "severity", "summary", "explanation", "bad", "good")


def mistake_in(rule: type[Rule]) -> str:
    """What a rule's declaration lacks; "" if nothing.

    Args:
        rule: a class of one's own.
    """
    who = f"{rule.__module__}.{rule.__qualname__}"
    for attribute in _TEXTS:
        value: object = getattr(rule, attribute, None)
        if not isinstance(value, str) or not value.strip():
            return f"{who} has no {attribute}"
    if not _CODE.fullmatch(rule.code):
        return f"{who}: the code {rule.code!r} is not two to five letters and three digits"
    if not re.fullmatch(r"[a-z][a-z0-9]*(-[a-z0-9]+)*", rule.name):
        return f"{who}: the name {rule.name!r} is not in kebab case"
    if rule.severity not in ("error", "warning", "info"):
        return f"{who}: the severity {rule.severity!r} is none of error, warning, info"
    return ""
