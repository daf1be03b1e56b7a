"""The command line's entry: finds the command, and turns every failure into one clear message."""

from __future__ import annotations

import gc
import os
import sys
from collections.abc import Sequence
from difflib import get_close_matches
from importlib import import_module
from typing import Annotated, Any, cast

import typer
from typer.core import TyperGroup

from irtool import __version__
from irtool.cli.commands import COMMANDS
from irtool.cli.report import Failure, report_failure, report_usage

INTERRUPTED = 130
"""Exit status after Ctrl-C, as shells have it."""
PIPE_CLOSED = 141
"""Exit status after the reader of a pipe went away, as shells have it."""

# typer brings click along (inside itself in newer versions): its base of all usage errors.
_ClickException = cast("type[Exception]", typer.BadParameter.__mro__[2])


class PipeClosed(Exception):
    """The reader of our output went away."""


class LazyGroup(TyperGroup):
    """A group that imports a command's module when it is asked for, so that --help is quick."""

    def list_commands(self, ctx: Any) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        entry = COMMANDS.get(cmd_name)
        if entry is None:
            return None
        target = import_module(entry.module).command
        if not isinstance(target, typer.Typer):
            single = typer.Typer(add_completion=False, rich_markup_mode=None)
            single.command(name=cmd_name, help=target.__doc__)(target)
            target = single
        return typer.main.get_command(target)

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        name = args[0]
        if name not in COMMANDS and not name.startswith("-"):
            close = get_close_matches(name, list(COMMANDS))
            known = f"did you mean {close[0]}?" if close else f"there are: {', '.join(COMMANDS)}"
            if not close and (os.path.exists(name) or name.endswith((".ir", ".gz", ".xz"))):
                known = f"to read a dump: irtool parse {name}"
            ctx.fail(f"there is no command {name!r}; {known}")
        return super().resolve_command(ctx, args)

    def invoke(self, ctx: Any) -> Any:
        """Run the command; what it returns is the exit status, also where a test runs the app."""
        try:
            status = super().invoke(ctx)
        except BrokenPipeError:
            # Not an OSError: those typer would answer with status 1, which means findings here.
            raise PipeClosed from None
        except Failure as failure:
            report_failure(failure)
            status = 2
        raise typer.Exit(status if isinstance(status, int) else 0)

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, entry.help) for name, entry in COMMANDS.items()])


app = typer.Typer(
    name="irtool",
    cls=LazyGroup,
    rich_markup_mode=None,
    no_args_is_help=True,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _show_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"irtool {__version__}")
        raise typer.Exit


@app.callback()
def _root(  # pyright: ignore[reportUnusedFunction]  # typer calls it
    version: Annotated[
        bool,
        typer.Option("--version", callback=_show_version, is_eager=True, help="Print the version."),
    ] = False,
) -> None:
    """Read, check, re-plan and compare MindSpore's ANF IR dumps.

    Exit status: 0 done, nothing to see; 1 done, there is something to see; 2 could not do it.
    """


def main(arguments: Sequence[str] | None = None) -> int:
    """Run irtool and return its exit status.

    Args:
        arguments: what stands behind ``irtool``; by default what the process was given.
    """
    try:
        status = _run(arguments)
        sys.stdout.flush()
        if arguments is None:
            # The process ends here: a last collection would only visit every object once more.
            gc.freeze()
        return status
    except KeyboardInterrupt:
        return INTERRUPTED
    except (BrokenPipeError, PipeClosed):
        _forget_output()
        return PIPE_CLOSED


def _run(arguments: Sequence[str] | None) -> int:
    given = None if arguments is None else list(arguments)
    try:
        command = typer.main.get_command(app)
        status = command.main(args=given, prog_name="irtool", standalone_mode=False)
        return status if isinstance(status, int) else 0
    except _ClickException as error:
        report_usage(error)
    except typer.Abort:
        return INTERRUPTED
    except (BrokenPipeError, PipeClosed):
        raise
    except Exception as error:
        if os.environ.get("IRTOOL_DEBUG"):
            raise
        what = f"{type(error).__name__}: {error}"
        hint = "this is a bug of irtool: please report it with what IRTOOL_DEBUG=1 prints"
        report_failure(Failure(f"internal error: {what}", hint=hint, code="CLI999"))
    return 2


def _forget_output() -> None:
    """Point standard output elsewhere, so that Python's last flush has nothing to fail on."""
    try:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    except (OSError, ValueError):
        pass
