"""The command line's entry: finds the command, and turns every failure into one clear message."""

from __future__ import annotations

import gc
import os
import signal
import sys
from collections.abc import Sequence
from difflib import get_close_matches
from functools import cache
from importlib import import_module
from typing import Any, cast

import click
from click.shell_completion import CompletionItem, get_completion_class, shell_complete

from irtool.cli.commands import COMMANDS, REPEATED
from irtool.cli.opening import command_made_of
from irtool.cli.report import Failure, forget_stream, report_failure, report_usage
from irtool.ir.version import VERSION

INTERRUPTED = 130
"""Exit status after Ctrl-C, as shells have it."""
TERMINATED = 143
"""Exit status after a polite kill (SIGTERM), as shells have it."""
PIPE_CLOSED = 141
"""Exit status after the reader of a pipe went away, as shells have it."""


class Terminated(BaseException):
    """Somebody ended this process politely: what was begun is taken away."""


_WORDS = "irtool.words"
"""Where a process notes the words of its only question."""
NAME = "irtool"
COMPLETE_VARIABLE = "_IRTOOL_COMPLETE"
"""Set by a shell that asks what could stand next."""
_HELP = """Read, check, re-plan and compare MindSpore's ANF IR dumps.

Exit status: 0 done, nothing to see; 1 done, there is something to see; 2 could not do it.
"""


@cache
def _command_of(name: str) -> click.Command:
    """A command as the parser runs it, made once: a program may ask many questions."""
    target = import_module(COMMANDS[name].module).command
    return target if isinstance(target, click.Command) else command_made_of(name, target)


class LazyGroup(click.Group):
    """A group that imports a command's module when it is asked for, so that --help is quick."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        return _command_of(cmd_name) if cmd_name in COMMANDS else None

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the examples behind the commands."""
        from irtool.cli.help import write_examples

        write_examples(ctx, formatter)

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        """Commands; where none begins so, files: a run alone is enough."""
        from irtool.cli.parameters import files

        return super().shell_complete(ctx, incomplete) or files(incomplete)

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Take the options; nobody who asks nothing is left with a list of all commands."""
        if not args and not ctx.resilient_parsing:
            from irtool.cli.start import first_steps

            click.echo(first_steps(), nl=False)
            ctx.exit(2)
        return super().parse_args(ctx, args)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        name = args[0]
        if _is_run(name):
            return super().resolve_command(ctx, ["doctor", *args])
        if name not in COMMANDS and not name.startswith("-"):
            close = get_close_matches(name, list(COMMANDS))
            known = f"did you mean {close[0]}?" if close else f"there are: {', '.join(COMMANDS)}"
            if not close and (os.path.exists(name) or name.endswith((".ir", ".gz", ".xz"))):
                known = f"to read a dump: irtool parse {name}"
            if not close and not os.path.exists(name):
                known = _path_meant(name) or known
            ctx.fail(f"there is no command {name!r}; {known}")
        return super().resolve_command(ctx, args)

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command; what it returns is the exit status, also where a test runs the app."""
        # Files are written by few commands, and what writes them need not be imported for --help.
        from irtool.cli.writing import PipeClosed, discard_all
        from irtool.syntax.reading import noted_inputs

        words: Sequence[str] = ctx.meta.get(_WORDS, ())
        try:
            with noted_inputs():
                if words and words[0] in REPEATED:
                    from irtool.cli.kept_answers import answered

                    status = answered(words, lambda: super(LazyGroup, self).invoke(ctx))
                else:
                    status = super().invoke(ctx)
        except (BrokenPipeError, PipeClosed):
            # Not an OSError: those the parser answers with status 1, which means findings here.
            raise ReaderGone from None
        except Failure as failure:
            report_failure(failure)
            status = 2
        except ValueError as error:
            report_failure(_of_query(error))
            status = 2
        except OSError as error:
            report_failure(_of_system(error))
            status = 2
        except MemoryError:
            report_failure(_NO_MEMORY)
            status = 2
        finally:
            discard_all()
        return ctx.exit(status if isinstance(status, int) else 0)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, entry.help) for name, entry in COMMANDS.items()])


def _path_meant(name: str) -> str:
    """What to run where a path was misspelt in the place of a command; "" where it is no path."""
    from irtool.syntax.near_path import near_path

    near = near_path(name)
    if not near:
        return "nor a folder of this name" if os.sep in name else ""
    return f"did you mean irtool {'' if os.path.isdir(near) else 'parse '}{near}?"


def _is_run(name: str) -> bool:
    """Whether a folder stands where a command should; names of commands win."""
    return name not in COMMANDS and not name.startswith("-") and os.path.isdir(name)


def _show_version(ctx: click.Context, param: click.Parameter, wanted: bool) -> None:
    if wanted and not ctx.resilient_parsing:
        click.echo(f"irtool {VERSION}")
        ctx.exit()


def _show_completion(ctx: click.Context, param: click.Parameter, shell: str | None) -> None:
    if shell and not ctx.resilient_parsing:
        made = get_completion_class(shell)
        if made is not None:
            click.echo(made(app, {}, NAME, COMPLETE_VARIABLE).source())
        ctx.exit()


app = LazyGroup(
    NAME,
    params=[
        click.Option(
            ["--version"],
            is_flag=True,
            is_eager=True,
            expose_value=False,
            callback=_show_version,
            help="Print the version.",
        ),
        click.Option(
            ["--completion"],
            type=click.Choice(["bash", "zsh", "fish"]),
            is_eager=True,
            expose_value=False,
            callback=_show_completion,
            help='Print what makes a shell complete: eval "$(irtool --completion bash)".',
        ),
    ],
    help=_HELP,
    context_settings={"help_option_names": ["-h", "--help"]},
)


class ReaderGone(Exception):
    """The reader of our output went away."""


_NO_MEMORY = Failure("not enough memory", hint="--jobs 1 takes less", code="CLI004")


def _of_query(error: ValueError) -> Failure:
    """A query that failed while nodes were looked at, if that is what happened."""
    if "irtool.syntax.query" in sys.modules:  # which few commands need
        from irtool.cli.where import of_query
        from irtool.syntax.query import QueryError

        if isinstance(error, QueryError):
            return of_query("query", error)
    raise error


def _of_system(error: OSError) -> Failure:
    """What the system refused and nothing nearer to it could say."""
    reason = error.strerror or str(error)
    place = error.filename if isinstance(error.filename, str) else ""
    return Failure(reason[:1].lower() + reason[1:], place, code="CLI003")


_COLLECT_AFTER = 100_000
"""Objects more than were freed, after which the youngest are looked through for garbage."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run irtool and return its exit status.

    Args:
        arguments: what stands behind ``irtool``; by default what the process was given.

    Returns:
        0 done, nothing to see; 1 done, there is something to see; 2 could not do it, an output
        that can't be written included; 130 after Ctrl-C, 143 after SIGTERM; 141, silently, if the
        reader of a pipe went away.
    """
    try:
        _complete_streams()
        if arguments is None:
            collect_rarely()
            if hasattr(signal, "SIGTERM"):
                signal.signal(signal.SIGTERM, _terminate)
        status = _run(arguments)
        status = _flushed(status)
        if arguments is None:
            # The process ends here: a last collection would only visit every object once more.
            gc.freeze()
        return status
    except KeyboardInterrupt:
        return INTERRUPTED
    except Terminated:
        return TERMINATED
    except (BrokenPipeError, ReaderGone):
        forget_stream(sys.stdout, 1)
        return PIPE_CLOSED


def collect_rarely() -> None:
    """Let the collector of garbage rest: models live to the end, so that it finds hardly any."""
    gc.set_threshold(_COLLECT_AFTER)


def _terminate(number: int, frame: object) -> None:
    raise Terminated


def _flushed(status: int) -> int:
    """The status, once all that was written has arrived."""
    try:
        sys.stdout.flush()
    except BrokenPipeError:
        raise
    except (OSError, ValueError) as error:
        forget_stream(sys.stdout, 1)
        if status == 2:
            return status  # which was told already
        reason = (getattr(error, "strerror", None) or str(error)).lower()
        report_failure(Failure(f"cannot write: {reason}", "standard output", code="CLI003"))
        return 2
    return status


def _complete_streams() -> None:
    """Take the places of closed standard streams, which the next file opened would get else.

    Reading and writing a closed one fails then as it should; only of messages nobody hears.
    """
    for number, flags in ((0, os.O_WRONLY), (1, os.O_RDONLY), (2, os.O_WRONLY)):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, flags)  # the lowest number that is free: this one
    if cast("object", sys.stdin) is None:
        sys.stdin = os.fdopen(0, encoding="utf-8", closefd=False)
    if cast("object", sys.stdout) is None:
        sys.stdout = os.fdopen(1, "w", encoding="utf-8", closefd=False)
    if cast("object", sys.stderr) is None:
        sys.stderr = os.fdopen(2, "w", encoding="utf-8", closefd=False)


def _run(arguments: Sequence[str] | None) -> int:
    given = sys.argv[1:] if arguments is None else list(arguments)
    try:
        instruction = os.environ.get(COMPLETE_VARIABLE)
        if instruction:
            return shell_complete(app, {}, NAME, COMPLETE_VARIABLE, instruction)
        with app.make_context(NAME, list(given)) as context:
            if arguments is None:  # later questions in one process see less of files: it remembers
                context.meta[_WORDS] = ["doctor", *given] if given and _is_run(given[0]) else given
            app.invoke(context)
    except click.exceptions.Exit as done:
        return done.exit_code
    except click.ClickException as error:
        report_usage(error)
    except click.Abort:
        return INTERRUPTED
    except (BrokenPipeError, ReaderGone):
        raise
    except OSError as error:
        report_failure(_of_system(error))
    except Exception as error:
        if os.environ.get("IRTOOL_DEBUG"):
            raise
        report_failure(_bug(error, given))
    return 2


def _bug(error: Exception, arguments: Sequence[str]) -> Failure:
    """What must never happen, with all that helps to find out why it did."""
    import shlex

    place = error.__traceback__
    while place is not None and place.tb_next is not None:
        place = place.tb_next
    where = ""
    if place is not None:
        file = os.path.basename(place.tb_frame.f_code.co_filename)
        where = f" ({file}:{place.tb_lineno})"
    what = f"{type(error).__name__}: {error}{where}"
    said = shlex.join(["irtool", *arguments])
    hint = f"this is a bug of irtool: please report it with what IRTOOL_DEBUG=1 {said} prints"
    return Failure(f"internal error: {what}", hint=hint, code="CLI999")
