"""Options that all commands have: who reads, what is remembered, ``--open`` for pages."""

from __future__ import annotations

import functools
import inspect
import os
import sys
from collections.abc import Callable
from enum import Enum
from typing import Annotated, Any, get_args

import click

from irtool.cli.declared import with_signature
from irtool.cli.help import OUTPUT, READ, HelpfulCommand
from irtool.cli.parameters import Option, command_parameters, with_lists
from irtool.cli.report import Failure, note

OpenPage = Annotated[
    bool,
    Option("--open", help="Write a page and show it in a browser.", group=OUTPUT),
]
NoCache = Annotated[
    bool,
    Option(
        "--no-cache",
        help="Read and look at everything again, remember nothing.",
        group=READ,
    ),
]
Jobs = Annotated[
    int | None,
    Option(
        "--jobs",
        "-j",
        least=1,
        metavar="N",
        help="Processes to read files with.",
        show_default="as many as there are processors, for much input",
        group=READ,
    ),
]
SchedulerAddress = Annotated[
    str | None,
    Option(
        "--scheduler",
        metavar="ADDRESS",
        help="Let the workers of a Dask cluster read files.",
        group=READ,
    ),
]
_HTML = "html"


def command_made_of(name: str, function: Callable[..., Any], **more: Any) -> click.Command:
    """A command of a function: its help with groups and examples, and the options of all commands.

    These are those of reading, and ``--open`` where a command has pages.

    Args:
        name: of the command.
        function: what it does; its docstring is the help.
        more: what ``click.Command`` takes beside these.
    """
    made = _with_reading(_with_open(name, function))

    def called(**given: Any) -> Any:
        return made(**with_lists(made, given))

    return HelpfulCommand(
        name, callback=called, params=command_parameters(made), help=function.__doc__, **more
    )


def _with_open(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
    """The function with ``--open``; the same where it writes no page.

    A function that has a parameter ``open_page`` is told; else nobody needs to know.
    """
    signature = inspect.signature(function, eval_str=True)
    declared = signature.parameters
    forms = _forms(declared["format"].annotation) if "format" in declared else None
    if forms is None or "output_file" not in declared:
        return function
    usual = declared["format"].default

    @functools.wraps(function)
    def wrapped(**arguments: Any) -> Any:
        wanted = arguments["open_page"] if "open_page" in declared else arguments.pop("open_page")
        if not wanted:
            return function(**arguments)
        form = arguments["format"]
        if form is not usual and form.value != _HTML:
            raise Failure(f"--open shows a page, not {form.value}", hint="--format html, or none")
        arguments["format"] = forms(_HTML)
        arguments["output_file"] = file = _file(arguments["output_file"], name)
        status = function(**arguments)
        if os.path.exists(file):
            _show(file)
        return status

    parameters = list(declared.values())
    if "open_page" not in declared:
        option = _option("open_page", OpenPage)
        place = next(i for i, parameter in enumerate(parameters) if parameter.name == "output_file")
        parameters.insert(place + 1, option)
    return with_signature(wrapped, parameters)


def _with_reading(function: Callable[..., Any]) -> Callable[..., Any]:
    """The function with the options of reading: who reads, and whether that is remembered.

    What was read is kept once the answer is written.  A command that has ``jobs`` or ``scheduler``
    of its own gets them as well.
    """
    declared = inspect.signature(function, eval_str=True).parameters

    @functools.wraps(function)
    def wrapped(**arguments: Any) -> Any:
        from irtool.cli.work import Workers, working_with
        from irtool.syntax.kept import keeping

        given = {name: arguments[name] for name in _READING if name in declared}
        asked = {name: arguments.pop(name) for name in _READING}
        workers = Workers(asked["jobs"], asked["scheduler"])
        with keeping(not asked["no_cache"]), working_with(workers):
            status = function(**arguments, **given)
            sys.stdout.flush()
            return status

    more = [option for name, option in _READING.items() if name not in declared]
    return with_signature(wrapped, [*declared.values(), *more])


def _option(name: str, annotation: Any, default: object = False) -> inspect.Parameter:
    kind = inspect.Parameter.KEYWORD_ONLY
    return inspect.Parameter(name, kind, default=default, annotation=annotation)


_READING = {
    "jobs": _option("jobs", Jobs, None),
    "scheduler": _option("scheduler", SchedulerAddress, None),
    "no_cache": _option("no_cache", NoCache),
}
"""Options of all commands."""


def _forms(annotation: Any) -> type[Enum] | None:
    """The class of a command's forms, if a page is one of them."""
    for part in (annotation, *get_args(annotation)):
        for kind in (part, *get_args(part)):
            if isinstance(kind, type) and issubclass(kind, Enum):
                return kind if _HTML in {member.value for member in kind} else None
    return None


def _file(given: str | None, name: str) -> str:
    if given == "-":
        raise Failure("--open needs a file, not standard output", hint="-o FILE, or no -o at all")
    if given is not None:
        return given
    import tempfile

    return os.path.join(tempfile.mkdtemp(prefix=f"irtool-{name}-"), "index.html")


def _show(file: str) -> None:
    """Tell where a page is, and open it."""
    import webbrowser
    from pathlib import Path

    note(f"wrote {file}")
    webbrowser.open(Path(file).absolute().as_uri())
