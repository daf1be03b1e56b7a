"""Settings of the linter: what ``[lint]`` says, checked, and merged with the command line.

``[lint]`` stands in ``irtool.toml``, or as ``[tool.irtool.lint]`` in ``pyproject.toml``::

    [lint]
    select = ["SYN", "STR", "COM"]      # these only; without it: all that are on by default
    extend-select = ["ENG003"]          # these too
    ignore = ["COM005"]
    baseline = "irtool-baseline.json"
    machine = "ascend_910b"             # or a TOML file
    fail-on = "warning"                 # status 1 only from this severity on

    [lint.severities]
    COM004 = "info"

    [lint.thresholds.COM005]
    least_bytes = 65536

    [lint.per-scope-ignores]
    "layers.0" = ["STR005"]

    [lint.per-file-ignores]
    "eval/**" = ["MEM"]

    [lint.source-map]
    "/home/ci/build" = "."
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import field, replace
from difflib import get_close_matches
from typing import Literal, TypeVar, cast

from irtool.ir.dataclass import dataclass
from irtool.ir.finding import SEVERITIES, Severity
from irtool.linting.registry import OFF_FAMILIES, RegistryError, RuleEntry
from irtool.linting.rule import Rule, family_of

KEYS = (
    "select", "extend-select", "ignore", "severities", "thresholds", "per-scope-ignores",
    "per-file-ignores", "source-map", "baseline", "fail-on", "machine",
)  # fmt: skip
"""Every key of ``[lint]``; underscores are understood too."""


_Value = TypeVar("_Value")


class SettingsError(Exception):
    """A setting that makes no sense: ``place`` is the key, ``hint`` what may be meant."""

    def __init__(self, message: str, place: str = "", hint: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.place = place
        self.hint = hint


@dataclass(frozen=True, slots=True)
class Settings:
    """What to look for, and what to leave out.

    Codes may be prefixes (``COM``) or names of rules. ``select`` is None where all rules that are
    on by default are meant. ``scopes`` and ``files`` say which codes are left out where.
    """

    select: tuple[str, ...] | None = None
    extend_select: tuple[str, ...] = ()
    ignore: tuple[str, ...] = ()
    severities: Mapping[str, Severity] = field(default_factory=dict[str, Severity])
    thresholds: Mapping[str, Mapping[str, int | float]] = field(
        default_factory=dict[str, Mapping[str, int | float]]
    )
    scopes: tuple[tuple[str, tuple[str, ...]], ...] = ()
    files: tuple[tuple[str, tuple[str, ...]], ...] = ()
    source_map: tuple[tuple[str, str], ...] = ()
    baseline: str | None = None
    machine: str | None = None
    fail_on: Severity | Literal["never"] = "warning"


def read_settings(table: Mapping[str, object], folder: str = "") -> Settings:
    """The settings of a table ``[lint]``; codes are checked by :func:`chosen_rules`.

    Args:
        table: what the file says.
        folder: where it stands: its own paths are seen from there.

    Raises:
        SettingsError: a key does not exist, or has a value of another kind.
    """
    values: dict[str, object] = {}
    for key, value in table.items():
        name = key.replace("_", "-")
        if name not in KEYS:
            near = get_close_matches(name, KEYS, n=1)
            hint = f"did you mean {near[0]}?" if near else f"there are: {', '.join(KEYS)}"
            raise SettingsError(f"there is no key {key} in [lint]", key, hint)
        values[name] = value
    return Settings(
        select=_codes(values, "select") if "select" in values else None,
        extend_select=_codes(values, "extend-select"),
        ignore=_codes(values, "ignore"),
        severities={
            code: severity_of(value, f"severities.{code}")
            for code, value in _table(values, "severities").items()
        },
        thresholds={
            code: _numbers(value, f"thresholds.{code}")
            for code, value in _table(values, "thresholds").items()
        },
        scopes=_ignores(values, "per-scope-ignores"),
        files=_ignores(values, "per-file-ignores"),
        source_map=tuple(
            (old, os.path.join(folder, _text(new, f"source-map.{old}")))
            for old, new in _table(values, "source-map").items()
        ),
        baseline=_inside(folder, _name(values, "baseline", "a file")),
        machine=_name(values, "machine", "the name of a machine, or a file"),
        fail_on=_level(values.get("fail-on", "warning"), "fail-on"),
    )


def severity_of(value: object, place: str) -> Severity:
    """A severity of the settings, checked: ``error``, ``warning`` or ``info``.

    Args:
        value: as the settings have it.
        place: the key, for the message.

    Raises:
        SettingsError: it is none of them.
    """
    for severity in SEVERITIES:
        if value == severity:
            return severity
    near = get_close_matches(str(value), SEVERITIES, n=1)
    hint = f"did you mean {near[0]}?" if near else f"there are: {', '.join(SEVERITIES)}"
    raise SettingsError(f"{value!r} is no severity", place, hint)


def _level(value: object, place: str) -> Severity | Literal["never"]:
    """From which severity on a command fails.

    Raises:
        SettingsError: it is neither a severity nor ``never``.
    """
    return "never" if value == "never" else severity_of(value, place)


def _inside(folder: str, path: str | None) -> str | None:
    return None if path is None else os.path.join(folder, path)


def _name(values: Mapping[str, object], key: str, what: str) -> str | None:
    name = values.get(key)
    if name is not None and not isinstance(name, str):
        raise SettingsError(f"{key} must be {what}", key)
    return name


def _table(values: Mapping[str, object], key: str) -> Mapping[str, object]:
    table = values.get(key, {})
    if not isinstance(table, Mapping):
        raise SettingsError(f"{key} must be a table", key, f"write [lint.{key}] above its keys")
    return cast("Mapping[str, object]", table)


def _codes(values: Mapping[str, object], key: str) -> tuple[str, ...]:
    return _list(values.get(key, ()), key)


def _list(value: object, place: str) -> tuple[str, ...]:
    items = [value] if isinstance(value, str) else value
    if not isinstance(items, Sequence):
        raise SettingsError(f"{place} must be a list of codes", place, f'{place} = ["COM005"]')
    codes: list[str] = []
    for item in cast("Sequence[object]", items):
        if not isinstance(item, str):
            raise SettingsError(f"{place} must hold codes, not {item!r}", place, '"COM005"')
        codes += [part.strip() for part in item.split(",") if part.strip()]
    return tuple(codes)


def _ignores(values: Mapping[str, object], key: str) -> tuple[tuple[str, tuple[str, ...]], ...]:
    table = _table(values, key)
    return tuple((pattern, _list(codes, f"{key}.{pattern}")) for pattern, codes in table.items())


def _numbers(value: object, place: str) -> dict[str, int | float]:
    if not isinstance(value, Mapping):
        message = f"{place} must be a table of numbers"
        raise SettingsError(message, place, "[lint.thresholds.COM005] above its keys")
    numbers: dict[str, int | float] = {}
    for key, number in cast("Mapping[str, object]", value).items():
        if isinstance(number, bool) or not isinstance(number, int | float):
            raise SettingsError(f"{place}.{key} must be a number", place)
        numbers[key.replace("-", "_")] = number
    return numbers


def _text(value: object, place: str) -> str:
    if not isinstance(value, str):
        raise SettingsError(f"{place} must be a folder", place)
    return value


# -- which rules -------------------------------------------------------------------------------


def chosen_rules(settings: Settings, rules: Mapping[str, RuleEntry]) -> list[Rule]:
    """The rules that the settings turn on, with their severities and thresholds.

    Args:
        settings: of the file, with those of the command line.
        rules: all that there are, by code.

    Raises:
        SettingsError: a code, a name or a threshold does not exist.
        RegistryError: a rule cannot be loaded.
    """
    known = _Codes(rules)
    by_default = settings.select is None
    select = known.all("select", settings.select) if settings.select is not None else None
    extended = known.all("extend-select", settings.extend_select)
    ignored = known.all("ignore", settings.ignore)
    for place, codes in (*settings.scopes, *settings.files):
        known.all(place, codes)
    severities = known.table("severities", settings.severities)
    thresholds = known.table("thresholds", settings.thresholds)
    chosen: list[Rule] = []
    for code, entry in rules.items():
        how = known.strongest(code, select or {}, extended)
        if code in ignored and ignored[code] >= how:
            continue
        if not how and (not by_default or family_of(code) in OFF_FAMILIES):
            continue
        rule = entry.load()
        if not how and not rule.is_default:
            continue
        chosen.append(_made(rule, severities.get(code), thresholds.get(code, {})))
    for code, values in thresholds.items():
        _check_thresholds(rules[code].load(), values)
    return chosen


def expanded(codes: Iterable[str], rules: Mapping[str, RuleEntry], place: str) -> frozenset[str]:
    """Full codes of codes, prefixes and names.

    Args:
        codes: as a person writes them: ``STR001``, ``STR``, ``illegal-strategy``.
        rules: all that there are, by code.
        place: the setting or option that names them, for the message.

    Raises:
        SettingsError: one does not exist.
    """
    return frozenset(_Codes(rules).all(place, tuple(codes)))


def _made(rule: type[Rule], severity: Severity | None, values: Mapping[str, int | float]) -> Rule:
    made = rule(values)
    if severity is not None:
        made.chosen_severity = severity
    return made


def _check_thresholds(rule: type[Rule], values: Mapping[str, int | float]) -> None:
    known = rule.thresholds()
    for name, value in values.items():
        place = f"thresholds.{rule.code}.{name}"
        if name not in known:
            near = get_close_matches(name, list(known), n=1)
            hint = (
                f"did you mean {near[0]}?" if near else f"there are: {', '.join(known) or 'none'}"
            )
            raise SettingsError(f"{rule.code} has no threshold {name}", place, hint)
        if value < 0:
            raise SettingsError(f"{place} must not be negative", place)
        if isinstance(known[name].default, int) and not float(value).is_integer():
            raise SettingsError(f"{place} must be a whole number of {known[name].unit}", place)


class _Codes:
    """What codes, prefixes of codes, and names of rules mean."""

    def __init__(self, rules: Mapping[str, RuleEntry]) -> None:
        self.rules = rules
        self._names: dict[str, str] | None = None

    def all(self, place: str, given: Sequence[str]) -> dict[str, int]:
        """The codes that are meant, each with the length of what meant it."""
        lengths: dict[str, int] = {}
        for text in given:
            codes, length = self._meant(place, text)
            for code in codes:
                lengths[code] = max(lengths.get(code, 0), length)
        return lengths

    def table(self, place: str, given: Mapping[str, _Value]) -> dict[str, _Value]:
        """A value by code, of a table by codes, prefixes and names: the longest one counts."""
        longest: dict[str, tuple[int, _Value]] = {}
        for text, value in given.items():
            codes, length = self._meant(place, text)
            for code in codes:
                if code not in longest or longest[code][0] < length:
                    longest[code] = length, value
        return {code: value for code, (_, value) in longest.items()}

    def strongest(self, code: str, *given: Mapping[str, int]) -> int:
        """How long the text was that turned a rule on; 0 for none."""
        return max(lengths.get(code, 0) for lengths in given)

    def _meant(self, place: str, text: str) -> tuple[list[str], int]:
        if text.upper() == "ALL":
            return list(self.rules), 1
        code = text.upper()
        codes = [known for known in self.rules if known.startswith(code)]
        if codes and code:
            return codes, 1 + len(code)
        name = text.lower().replace("_", "-")
        if name in self.names:
            return [self.names[name]], 100
        near = get_close_matches(code, list(self.rules), n=1) or get_close_matches(
            name, list(self.names), n=1
        )
        families = ", ".join(dict.fromkeys(known.rstrip("0123456789") for known in self.rules))
        hint = f"did you mean {near[0]}?" if near else f"there are: {families}; see irtool rules"
        raise SettingsError(f"there is no rule {text}", place, hint)

    @property
    def names(self) -> dict[str, str]:
        """Codes by name: imports all rules."""
        if self._names is None:
            self._names = {entry.load().name: code for code, entry in self.rules.items()}
        return self._names


@dataclass(frozen=True, slots=True)
class Overrides:
    """What a command line, or a caller, says beside the settings of a file.

    Attributes:
        select: codes, prefixes or names of rules; replaces what the file selects.
        extend_select: likewise; adds to what is selected.
        ignore: likewise; adds to what is ignored.
        baseline: file of known findings.
        machine: a built-in machine's name, or a file.
        fail_on: the least severity that sets the exit status, or ``never``.
        source_map: ``FROM=TO`` of paths of Python files; goes before those of the file.
    """

    select: Sequence[str] = ()
    extend_select: Sequence[str] = ()
    ignore: Sequence[str] = ()
    baseline: str | None = None
    machine: str | None = None
    fail_on: str | None = None
    source_map: Sequence[str] = ()


def overridden(settings: Settings, by: Overrides) -> Settings:
    """Settings with what the command line says beside them.

    Args:
        settings: of the file.
        by: what the command line says, which goes before the file or adds to it.

    Raises:
        SettingsError: a severity does not exist, or a path is not mapped to another.
    """
    return replace(
        settings,
        select=_list(tuple(by.select), "--select") if by.select else settings.select,
        extend_select=settings.extend_select + _list(tuple(by.extend_select), "--extend-select"),
        ignore=settings.ignore + _list(tuple(by.ignore), "--ignore"),
        baseline=by.baseline or settings.baseline,
        machine=by.machine or settings.machine,
        fail_on=_level(by.fail_on, "--fail-on") if by.fail_on else settings.fail_on,
        source_map=(*map(_mapping, by.source_map), *settings.source_map),
    )


def _mapping(text: str) -> tuple[str, str]:
    old, equals, new = text.partition("=")
    if not equals:
        raise SettingsError(f"{text} is not FROM=TO", "--source-map", "--source-map /build=.")
    return old, new or "."


__all__ = [
    "KEYS",
    "Overrides",
    "RegistryError",
    "Settings",
    "SettingsError",
    "chosen_rules",
    "expanded",
    "overridden",
    "read_settings",
    "severity_of",
]
