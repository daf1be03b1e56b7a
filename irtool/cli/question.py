"""A question of the command line: what is asked about, the options, and what is said of the run.

Options of a command are fields of a frozen dataclass, declared once and passed whole, from the
command line as from Python.
"""

from __future__ import annotations

from typing import Generic, TypeVar

from irtool.cli import options as shared
from irtool.cli.configuration import Configuration, load_custom_rules, read_configuration
from irtool.cli.context import ContextArguments
from irtool.cli.failing import FailLevel, FailOn
from irtool.ir.dataclass import dataclass


@dataclass(frozen=True, slots=True)
class RunOptions:
    """Options of every command that judges a run; they stand behind those of its own."""

    graph: shared.GraphNumber = None
    fail_on: FailOn = FailLevel.info
    assumptions: shared.Assumptions = False
    config: shared.Config = None
    output_file: shared.OutputFile = None


Source = TypeVar("Source", covariant=True)
Options = TypeVar("Options", bound=RunOptions, covariant=True)


@dataclass(frozen=True, slots=True)
class Question(Generic[Source, Options]):
    """A question of a command: what is asked about, and under which options and settings.

    Attributes:
        source: what is asked about: dumps, their paths, or a run folder.
        options: as they are typed, with defaults for all others.
        context: what is said of the run.
        configuration: ``irtool.toml``.
    """

    source: Source
    options: Options
    context: ContextArguments
    configuration: Configuration


def question_of(
    source: Source, options: Options, context: ContextArguments
) -> Question[Source, Options]:
    """A question of the command line, with the settings that it names or that lie there.

    The rules of sharding that the settings name count from now on.

    Args:
        source: what is asked about.
        options: as they were typed; they name the settings.
        context: what the command line says of the run.

    Raises:
        Failure: settings can't be read, or make no sense.
    """
    configuration = read_configuration(options.config)
    load_custom_rules(configuration)
    return Question(source, options, context, configuration)
