"""The parallel context: options that several commands share, and files of settings.

What is said on the command line goes before ``--context FILE``, that before ``[context]`` of
``irtool.toml``, that before a ``case.json`` beside the dump. Each key is looked up on its own. What
the dumps themselves show is for :mod:`irtool.cluster.context` to find.
"""

from __future__ import annotations

import inspect
import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import field
from difflib import get_close_matches
from typing import Annotated, Any, cast

import click

from irtool.cli.configuration import (
    CONTEXT_KEYS,
    Configuration,
    check_context_keys,
    read_table,
)
from irtool.cli.declared import given_by_parts
from irtool.cli.help import CONTEXT
from irtool.cli.opening import command_made_of
from irtool.cli.parameters import Option
from irtool.cli.report import Failure, note, report
from irtool.cluster.context.evidence import Evidence
from irtool.cluster.context.find import find_context
from irtool.cluster.context.given import KEYS_BY_ALIAS, ContextError, Given, Layer, merged
from irtool.cluster.context.model import Origin, RunContext
from irtool.cluster.machine import Machine
from irtool.ir.dataclass import dataclass
from irtool.ir.limits import bounded_int
from irtool.sharding.network.context import EXCLUDED, ParallelContext
from irtool.syntax import file_facts
from irtool.syntax.run.context import CASE_FILE, read_case
from irtool.syntax.run.folders import folder_rank_of

NO_DEVICES = "CTX003"
"""Code of the failure where nobody says how many devices there are."""
NO_STAGES = "CTX004"
"""Code of the failure where nobody says how many stages a pipeline has."""
NEAR_KEY = 0.8
"""How alike a key of ``case.json`` is to a known one that it is told as a slip of the pen: of a key
of ten letters one or two may differ. What a newer MindSpore has is further away."""
CONTRADICTION = "CTX005"
"""Code of the warning where two sources say different things of the context."""


@dataclass(frozen=True, slots=True)
class ContextOption:
    """One key of ``set_auto_parallel_context`` as an option of the command line."""

    key: str
    flags: tuple[str, ...]
    kind: type
    help: str
    metavar: str | None = None


OPTIONS = (
    ContextOption("device_num", ("--devices", "--device-num"), int, "Devices of the run.", "N"),
    ContextOption("pipeline_stages", ("--stages", "--pipeline-stages"), int, "Stages.", "N"),
    ContextOption(
        "global_rank", ("--rank", "--global-rank"), int,
        "From which rank slices and groups are seen; in a run folder, whose dump.", "N",
    ),
    ContextOption(
        "soc", ("--soc", "--soc-version"), str,
        "Ascend910 or '' (first generation, whose groups must fit a server's links), Ascend910B …",
        "NAME",
    ),
    ContextOption("device_target", ("--target", "--device-target"), str, "Ascend or GPU.", "NAME"),
    ContextOption(
        "parallel_mode", ("--parallel-mode",), str, "semi_auto_parallel, auto_parallel, …", "MODE"
    ),
    ContextOption(
        "search_mode", ("--search-mode", "--auto-parallel-search-mode"), str,
        "recursive_programming, sharding_propagation, dynamic_programming.", "MODE",
    ),
    ContextOption(
        "dataset_strategy", ("--dataset-strategy",), str,
        "full_batch, data_parallel, or '((8, 1), (8,))'.", "STRATEGY",
    ),
    ContextOption("full_batch", ("--full-batch",), bool, "Every device reads the whole batch."),
    ContextOption("enable_alltoall", ("--enable-alltoall",), bool, "Redistribute with AlltoAll."),
    ContextOption(
        "enable_parallel_optimizer", ("--enable-parallel-optimizer",), bool,
        "Shard weights and their optimizer states over replicas.",
    ),
    ContextOption(
        "parallel_optimizer_threshold", ("--parallel-optimizer-threshold",), int,
        "Weights of fewer KB are not sharded (64).", "KB",
    ),
    ContextOption(
        "optimizer_weight_shard_size", ("--optimizer-weight-shard-size",), int,
        "Over how many replicas (-1: all).", "N",
    ),
    ContextOption(
        EXCLUDED, ("--parallel-optimizer-excluded",), str,
        "Weights with parallel_optimizer=False: names or patterns, with commas between.", "NAMES",
    ),
    ContextOption("gradients_mean", ("--gradients-mean",), bool, "Mean of gradients, not sum."),
    ContextOption(
        "grad_accumulation_step", ("--grad-accumulation-step",), int, "Micro-batches.", "N"
    ),
)  # fmt: skip
"""Keys that have an option of their own; ``--set KEY=VALUE`` gives all others."""


@dataclass(frozen=True, slots=True)
class ContextArguments:
    """What the command line says of the context: values by key, and ``--context FILE``."""

    given: Mapping[str, object] = field(default_factory=dict[str, object])
    file: str | None = None

    @property
    def rank(self) -> int | None:
        """The rank that ``--rank`` names; None where it is not given."""
        return cast("int | None", self.given.get("global_rank"))


# -- the command line --------------------------------------------------------------------------


def context_command(name: str, function: Callable[..., int]) -> click.Command:
    """A command of ``function`` with the options of a context.

    The function's parameter ``context`` gets :class:`ContextArguments`; options may be written with
    underscores, as MindSpore's keys are.

    Args:
        name: of the command.
        function: gives the exit status; its docstring is the help.
    """
    settings = {"token_normalize_func": _with_dashes}
    return command_made_of(name, _with_context(function), context_settings=settings)


def _with_dashes(token: str) -> str:
    return token.replace("_", "-")


def _with_context(function: Callable[..., int]) -> Callable[..., int]:
    parts = [_parameter(option.key, _annotation(option)) for option in OPTIONS]
    parts += [
        _parameter("settings", Annotated[list[str] | None, _SETTINGS]),
        _parameter("context_file", Annotated[str | None, _FILE]),
    ]
    return given_by_parts(function, "context", parts, _gathered)


def _gathered(arguments: dict[str, Any]) -> ContextArguments:
    given = {option.key: arguments.pop(option.key) for option in OPTIONS}
    given = {key: value for key, value in given.items() if value is not None}
    for item in arguments.pop("settings") or ():
        key, value = _setting(item)
        given[key] = value
    return ContextArguments(given, arguments.pop("context_file"))


_SETTINGS = Option(
    "--set", metavar="KEY=VALUE", help="Any other key of the context.", group=CONTEXT
)
_FILE = Option(
    "--context",
    metavar="FILE",
    help="The parallel context, JSON or TOML.",
    group=CONTEXT,
)


def _parameter(name: str, annotation: Any) -> inspect.Parameter:
    kind = inspect.Parameter.KEYWORD_ONLY
    return inspect.Parameter(name, kind, default=None, annotation=annotation)


def _annotation(option: ContextOption) -> Any:
    flags = list(option.flags)
    if option.kind is bool:
        flags = [f"{flag}/--no-{flag.removeprefix('--')}" for flag in flags]
    made = Option(
        *flags,
        metavar=option.metavar,
        help=option.help,
        show_default=False,
        group=CONTEXT,
    )
    return Annotated[option.kind | None, made]


def _setting(item: str) -> tuple[str, object]:
    key, equals, value = item.partition("=")
    if not equals:
        raise Failure(f"--set takes KEY=VALUE, not {item}", hint="--set gradients_mean=true")
    key = key.strip().replace("-", "_")
    check_context_keys([key], "--set")
    return KEYS_BY_ALIAS.get(key, key), value.strip()


# -- what is given -----------------------------------------------------------------------------


def given_by(
    arguments: ContextArguments,
    configuration: Configuration,
    beside: str | None,
    run: str = "",
) -> Given:
    """What the command line, files and folders say of the context of a dump.

    Args:
        arguments: what the command line says.
        configuration: ``irtool.toml``.
        beside: the path of the dump; None for standard input. Its folder may say whose dump it is
            (``--rank`` goes before it).
        run: the run folder that holds the dump: a ``case.json`` there, or between it and the dump,
            counts too.

    Raises:
        Failure: a key does not exist, or a value is no table that must be one.
    """
    layers = list(_files(configuration, beside, run))
    if arguments.file is not None:
        table = read_table(arguments.file)
        inner = table.get("context", table)
        if not isinstance(inner, dict):
            raise Failure("context must be a table", arguments.file)
        values = cast("dict[str, object]", inner)
        check_context_keys(values, arguments.file)
        layers.append(Layer(values, Origin("file", arguments.file), is_asked=True))
    rank = None if beside is None else folder_rank_of(beside)
    if rank is not None:
        folder = Origin("folder", what=f"the folder rank_{rank}")
        layers.append(Layer({"global_rank": rank}, folder))
    layers.append(Layer(arguments.given, Origin("option"), is_asked=True))
    try:
        return merged(layers)
    except ContextError as error:
        raise refused_value(error, {}) from None


def find(
    given: Given,
    evidence: Evidence,
    machine: Machine | None = None,
    *,
    as_run: bool = False,
    quiet: bool = False,
) -> RunContext:
    """The context of a run, as :func:`find_context` finds it.

    What contradicts goes to stderr, unless ``quiet``: then the caller tells it.

    Args:
        given: what options and files say.
        evidence: the dumps of the run.
        machine: the one that was named; None where none was.
        as_run: what dumps show goes before whatever is given.
        quiet: contradictions are not told here.

    Raises:
        Failure: a value makes no sense.
    """
    try:
        context = find_context(given, evidence, machine, as_run=as_run)
    except ContextError as error:
        raise refused_value(error, given.values) from None
    for contradiction in () if quiet else context.contradictions:
        report("", "warning", CONTRADICTION, contradiction.message)
    return context


def parallel_of(context: RunContext, path: str = "") -> ParallelContext:
    """Devices and options, for whoever can say nothing without.

    Args:
        context: of the run.
        path: of its dump, for the message.

    Raises:
        Failure: nobody says how many devices or stages there are.
    """
    if context.parallel is not None:
        return context.parallel
    if context.value("device_num") is None:
        raise Failure(
            "for how many devices was this compiled? Neither the dumps nor their folder say it",
            hint="--devices 8, or --context FILE with device_num",
            code=NO_DEVICES,
        )
    raise Failure(
        "how many stages are there? The dump has a pipeline",
        path,
        hint="--stages 4",
        code=NO_STAGES,
    )


def _case_folders(beside: str, run: str) -> list[str]:
    """Folders from the run's down to the dump's; the dump's alone where it is in no run."""
    folder = os.path.dirname(beside)
    inner = os.path.relpath(folder or ".", run) if run else ".."
    if inner.split(os.sep)[0] == "..":
        return [folder]
    folders = [run]
    for part in inner.split(os.sep) if inner != "." else ():
        folders.append(os.path.join(folders[-1], part))
    return folders


def _files(configuration: Configuration, beside: str | None, run: str) -> Iterator[Layer]:
    """Contexts of files that merely lie there, the strongest last."""
    for folder in _case_folders(beside, run) if beside is not None else ():
        path = os.path.join(folder, CASE_FILE)
        if file_facts.exists(path):
            values, reason = read_case(path)
            if reason:
                note(f"{path} {reason}: not used")
            elif values is None:
                note(f"{path} holds no parallel context: not used")
            known = {key: v for key, v in (values or {}).items() if key in CONTEXT_KEYS}
            _name_slips(path, (values or {}).keys() - known.keys())
            yield Layer(known, Origin("file", path))
    if configuration.context:
        check_context_keys(configuration.context, configuration.path)
        yield Layer(configuration.context, Origin("file", configuration.path))


def _name_slips(path: str, unknown: Iterable[str]) -> None:
    """Say which keys of a file that merely lies there look like keys of a context and are none.

    What else a tool keeps there, or a newer MindSpore has, is nobody's mistake.
    """
    for key in sorted(unknown):
        if near := get_close_matches(key, sorted(CONTEXT_KEYS), n=1, cutoff=NEAR_KEY):
            note(
                f"{path}: {key} is no key of a parallel context: not used (did you mean {near[0]}?)"
            )


# -- what is wrong with a value ----------------------------------------------------------------


def refused_value(error: ContextError, values: Mapping[str, object]) -> Failure:
    """Say a wrong value by the name under which the user gave it.

    Args:
        error: what is wrong with it.
        values: all that is given, by key.
    """
    key, place = error.key, error.origin.path if error.origin is not None else ""
    if not place:
        option = next((option for option in OPTIONS if option.key == key), None)
        place = option.flags[0] if option else "--set" if key else ""
    return Failure(error.message, place, hint=_hint(key, error.message, values), code="CTX002")


def _near_counts(merged: Mapping[str, object]) -> str:
    """The legal numbers of devices around one that is none."""
    from irtool.planning.search.device_counts import near_counts

    count, stages = (str(merged.get(key, 1)) for key in ("device_num", "pipeline_stages"))
    if not count.isdecimal() or not stages.isdecimal():
        return ""
    try:
        context = ParallelContext(devices=8 * bounded_int(stages), stages=bounded_int(stages))
    except ValueError:  # there is no such number of stages
        return ""
    near = near_counts(bounded_int(count), context)
    return f"{' or '.join(map(str, near))} would do" if near else ""


def _hint(key: str, message: str, merged: Mapping[str, object]) -> str:
    devices = merged.get("device_num")
    if "divisible by pipeline_stages" in message and str(devices).isdecimal():
        count = bounded_int(str(devices))
        fitting = [str(stages) for stages in range(1, min(count, 64) + 1) if count % stages == 0]
        return f"{count} devices allow {', '.join(fitting)} stages"
    if key == "device_num":
        return _near_counts(merged)
    if key == "global_rank":
        return "ranks count from 0, over all stages"
    if key in ("parallel_mode", "search_mode"):
        names = message.partition("none of ")[2].split(", ")
        near = get_close_matches(str(merged.get(key)), names, n=1)
        return f"did you mean {near[0]}?" if near else ""
    if key == "dataset_strategy":
        return "full_batch, data_parallel, or one tuple an input: '((8, 1), (8,))'"
    return ""
