"""``--help`` of every command: options in named groups, the rare ones last, and real examples."""

from __future__ import annotations

from collections.abc import Iterator

import click

from irtool.cli.parameters import GroupedOption, HelpfulArgument

READ = "What is read"
OUTPUT = "Output"
CONTEXT = "Parallel context"
"""Groups that commands share; options without one stand first."""

EXAMPLES: dict[str, tuple[str, ...]] = {
    "": (
        "irtool RUN",
        "irtool check graphs/",
        "irtool parse 20_validate_0080.ir",
    ),
    "parse": (
        "irtool parse graphs/",
        "irtool parse graphs/rank_0/graph/*_validate_*.ir --where 'op == \"AllReduce\"'",
        "irtool parse validate.ir --group-by op,phase --format csv -o nodes.csv",
    ),
    "check": (
        "irtool check graphs/",
        "irtool check step_parallel_begin_0018.ir --against 20_validate_0080.ir",
        "irtool check graphs/ --why 'op == \"AllGather\"'",
    ),
    "cost": (
        "irtool cost graphs/",
        "irtool cost graphs/ --machine gpu_a100 --format html -o cost.html",
        "irtool cost RUN --profile ASCEND_PROFILER_OUTPUT",
    ),
    "plan": (
        "irtool plan graphs/",
        "irtool plan graphs/ --to 16 --memory 30GiB",
        "irtool plan step_parallel_begin_0018.ir --format strategy -o strategy.json",
    ),
    "diff": (
        "irtool diff left.ir right.ir",
        "irtool diff RUN_A RUN_B --format html -o diff.html",
        "irtool diff old.ckpt new.safetensors",
    ),
    "memory": (
        "irtool memory graphs/",
        "irtool memory graphs/ --limit 60GiB --layers",
    ),
    "pipeline": (
        "irtool pipeline graphs/",
        "irtool pipeline graphs/ --format svg -o step.svg",
    ),
    "viz": (
        "irtool viz graphs/ -o graph.html",
        "irtool viz validate.ir --around %12 --radius 3 -o near.svg",
    ),
    "lint": (
        "irtool lint graphs/",
        "irtool lint graphs/ --format sarif -o findings.sarif",
        "irtool lint graphs/ --select COM,MEM --fail-on error",
    ),
    "gate": (
        "irtool gate golden/ graphs/",
        "irtool gate golden.ir validate.ir --threshold GAT001.most_more=3",
    ),
    "comm": (
        "irtool comm groups graphs/",
        "irtool comm hang graphs/",
    ),
    "comm groups": (
        "irtool comm groups graphs/",
        "irtool comm groups graphs/ --format html -o communication.html",
    ),
    "comm hang": (
        "irtool comm hang graphs/",
        "irtool comm hang graphs/ --format json",
    ),
    "comm reuse": (
        "irtool comm reuse graphs/",
        "irtool comm reuse graphs/ --format html -o reuse.html",
    ),
    "comm fuse": (
        "irtool comm fuse graphs/",
        "irtool comm fuse graphs/ --machine gpu_h100",
    ),
    "recover": (
        "irtool recover graphs/ --lost 3,5",
        "irtool recover graphs/ --to 16 --format html -o recovery.html",
    ),
    "calibrate": (
        "irtool calibrate all_reduce_8ranks.txt all_gather_16ranks.txt -o machine.toml",
        "irtool calibrate output.txt --op AllReduce --ranks 8",
    ),
    "ckpt": (
        "irtool ckpt old.json new.json",
        "irtool ckpt old.json new.json --network step_parallel_begin_0018.ir",
    ),
    "doctor": (
        "irtool RUN",
        "irtool doctor RUN --open",
        "irtool doctor RUN --against HEALTHY_RUN",
    ),
    "lsp": (
        "irtool lsp",
        "irtool lsp --no-cache",
    ),
    "rules": (
        "irtool rules",
        "irtool rules COM001",
        "irtool rules --operators MatMul",
    ),
    "explain": (
        "irtool explain COM001",
        "irtool explain log_output/",
        "irtool explain analyze_fail.ir",
    ),
}
"""By the command's words, two or three lines that a user would type."""


class HelpfulCommand(click.Command):
    """A command whose help groups options as they were declared, and ends in examples."""

    def format_arguments(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Nothing: arguments stand with the options, as the first group."""

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write arguments, options without a group, and then each group."""
        groups: dict[str, list[tuple[str, str]]] = {}
        shown = [(param, param.get_help_record(ctx)) for param in self.get_params(ctx)]
        has_own = any(_group_of(param) == "Options" for param, _ in shown if param.name != "help")
        for param, record in shown:
            if record is not None:
                title = _group_of(param)
                if param.name == "help" and not has_own and OUTPUT in groups:
                    title = OUTPUT
                groups.setdefault(title, []).append(record)
        for title in sorted(groups, key=_order):
            with formatter.section(title):
                formatter.write_dl(groups[title])

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write examples of the command."""
        write_examples(ctx, formatter)


def write_examples(ctx: click.Context, formatter: click.HelpFormatter) -> None:
    """Write the lines of :data:`EXAMPLES` for the words that led to a command.

    Args:
        ctx: of the command.
        formatter: what writes its help.
    """
    with formatter.section("Examples"):
        for line in EXAMPLES[" ".join(_words(ctx))]:
            formatter.write(f"{'':>{formatter.current_indent}}{line}\n")


class FamilyOfCommands(click.Group):
    """Commands below a word; nobody who asks for none of them has asked for anything."""

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write examples of its commands."""
        write_examples(ctx, formatter)

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Take the options; where nothing is asked, print the help and end with status 2."""
        if not args and not ctx.resilient_parsing:
            click.echo(self.get_help(ctx), err=True)
            ctx.exit(2)
        return super().parse_args(ctx, args)


def _group_of(param: click.Parameter) -> str:
    if isinstance(param, HelpfulArgument):
        return "Arguments"
    declared = param.group if isinstance(param, GroupedOption) else ""
    return declared or (OUTPUT if "--format" in param.opts else "Options")


def _order(title: str) -> int:
    """Where a group stands; those of a command's own stay as they were declared."""
    first, last = ("Arguments", "Options"), (READ, OUTPUT, CONTEXT)
    if title in first:
        return first.index(title)
    return 3 + last.index(title) if title in last else 2


def _words(ctx: click.Context) -> Iterator[str]:
    """The words behind ``irtool`` that lead to a command."""
    if ctx.parent is not None:
        yield from _words(ctx.parent)
        yield str(ctx.info_name)
