"""What ``irtool lint`` was asked: settings of the configuration and of the command line."""

from __future__ import annotations

import os
from collections.abc import Mapping

from irtool.cli.configuration import Configuration
from irtool.cli.machines import machine_named
from irtool.cli.report import Failure
from irtool.cluster.machine import Machine
from irtool.ir.dataclass import dataclass
from irtool.ir.finding import Severity
from irtool.linting.registry import RegistryError, RuleEntry, all_rules
from irtool.linting.rule import Rule
from irtool.linting.rules.engine.eng001_rule_failed import RuleFailed
from irtool.linting.settings import (
    Overrides,
    Settings,
    SettingsError,
    chosen_rules,
    expanded,
    overridden,
    read_settings,
)

BAD_SETTING = "LNT001"
"""Code of failures about settings."""
BAD_RULES = "LNT002"
"""Code of failures about rules of other packages."""


@dataclass(frozen=True, slots=True)
class Asked:
    """Settings with what they stand for."""

    settings: Settings
    known: Mapping[str, RuleEntry]
    rules: tuple[Rule, ...]
    machine: Machine | None

    @property
    def codes(self) -> frozenset[str]:
        """Codes of the rules that are on."""
        return frozenset(rule.code for rule in self.rules)

    def wants(self, code: str) -> bool:
        """Whether findings of a rule are reported; a rule that failed goes unnoticed by nobody."""
        if code == RuleFailed.code:
            return code not in expanded(self.settings.ignore, self.known, "ignore")
        return code in self.codes

    def severity(self, code: str) -> Severity | None:
        """The severity that the settings say."""
        return next((rule.chosen_severity for rule in self.rules if rule.code == code), None)


def known_rules() -> Mapping[str, RuleEntry]:
    """All rules by code.

    Raises:
        Failure: a package's rules cannot be used.
    """
    try:
        return all_rules()
    except RegistryError as error:
        hint = "uninstall the package, or tell its authors"
        raise Failure(str(error), hint=hint, code=BAD_RULES) from None


def settings_for(configuration: Configuration, overrides: Overrides) -> Asked:
    """The settings of the configuration with what is said beside them.

    Args:
        configuration: ``irtool.toml``.
        overrides: what the command line says.

    Raises:
        Failure: a code, key or value does not exist, or makes no sense.
    """
    known = known_rules()
    folder = os.path.dirname(configuration.path)
    path = configuration.path
    try:
        settings = read_settings(configuration.lint, folder)
        path = ""
        settings = overridden(settings, overrides)
        rules = chosen_rules(settings, known)
    except SettingsError as error:
        place = error.place if not path else f"{path}: lint.{error.place}"
        if not path and not error.place.startswith("-"):
            place = _option(error.place, configuration)
        raise Failure(error.message, place, hint=error.hint, code=BAD_SETTING) from None
    except RegistryError as error:
        raise Failure(str(error), code=BAD_RULES) from None
    priced = None if settings.machine is None else machine_named(settings.machine, "")
    return Asked(settings, known, tuple(rules), priced)


def _option(place: str, configuration: Configuration) -> str:
    """Where a code stands that does not exist: in the file if it has the key, else an option."""
    key = place.partition(".")[0]
    if not configuration.path:
        return "--threshold" if key == "thresholds" else f"--{place}"
    if key in configuration.lint or key.replace("-", "_") in configuration.lint:
        return f"{configuration.path}: lint.{place}"
    return f"--{place}"
