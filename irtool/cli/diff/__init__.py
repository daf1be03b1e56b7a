"""``irtool diff``: two dumps or two runs: what differs, where does it begin, and why?"""

from __future__ import annotations

from typing import Annotated

from irtool.cli.declared import with_options
from irtool.cli.diff.options import DiffForm, DiffOptions
from irtool.cli.output import Output
from irtool.cli.parameters import Argument
from irtool.cli.report import Failure
from irtool.syntax import file_facts


@with_options(DiffOptions, "asked")
def command(
    paths: Annotated[
        list[str],
        Argument(
            metavar="LEFT RIGHT",
            help="Two dumps, run folders, checkpoints, tensor dumps or digests; with --passes, "
            "--ranks or --digest one run folder.",
            show_default=False,
        ),
    ],
    asked: DiffOptions,
) -> int:
    """Two dumps or two runs: what differs, where does it begin, and why?

    Numbers, addresses, hashes and source lines make no difference.  Exit status: 0 identical,
    1 different, 2 could not compare.  Of runs with tensors: 1 if an operator introduces error,
    settings or losses differ; tensors that only carry error are none of these.  Of checkpoints: 1
    if a parameter differs by more than its type explains, or only one has it.
    """
    _check_options(asked, paths)
    output = Output(asked.output_file)
    # Each question has modules of its own: only those of the one that is asked are imported.
    if asked.digest:
        from irtool.cli.diff.digest import write_digest

        return write_digest(paths[0], asked, output)
    if asked.write_layout:
        from irtool.cli.diff.proposed_layout import write_layout

        return write_layout(paths, asked, output)
    if asked.loss:
        from irtool.cli.diff.losses import tell_losses

        return tell_losses(paths[0], paths[1], asked, output)
    if not (asked.passes or asked.ranks):
        return _tell_sides(paths, asked, output)
    _refuse_noise(asked)
    from irtool.cli.diff.graphs import tell_passes, tell_ranks

    tell = tell_passes if asked.passes else tell_ranks
    return tell(paths[0], asked, output)


def _tell_sides(paths: list[str], asked: DiffOptions, output: Output) -> int:
    """Compare what two paths hold: checkpoints, runs with tensors, or graphs."""
    form = asked.format
    if asked.where is None and form is not DiffForm.model_explorer:
        from irtool.cli.diff.checkpoints import is_for_checkpoints, tell_checkpoints
        from irtool.cli.diff.runs import is_for_runs, tell_runs

        if asked.left_strategy or asked.right_strategy or is_for_checkpoints(paths):
            _refuse_noise(asked)
            return tell_checkpoints(paths, asked, output)
        if is_for_runs(paths):
            if form is DiffForm.msprobe_csv:
                from irtool.cli.diff.msprobe_csv import tell_msprobe_csv

                return tell_msprobe_csv(paths, asked, output)
            return tell_runs(paths, asked, output)
    if form is DiffForm.msprobe_csv:
        raise Failure("msprobe-csv is of tensors", hint="irtool diff RUN_A RUN_B")
    _refuse_noise(asked)
    from irtool.cli.diff.graphs import tell_dumps

    return tell_dumps(paths, asked, output)


def _check_options(asked: DiffOptions, paths: list[str]) -> None:
    """Find what does not go together before anything is read."""
    _ = asked.wanted
    others = asked.passes or asked.ranks or asked.loss
    if asked.digest:
        if len(paths) != 1 or others:
            raise Failure("--digest takes one run", hint="irtool diff --digest RUN -o FILE")
        return
    _check_paths(paths, asked.passes, asked.ranks, asked.loss)
    if asked.format is DiffForm.model_explorer and others:
        raise Failure("model-explorer shows two graphs", hint="irtool diff left.ir right.ir")
    if asked.format is DiffForm.svg and not (asked.loss or asked.write_layout):
        raise Failure("svg goes with --loss", hint="irtool viz draws graphs")
    if asked.format is DiffForm.msprobe_csv and (asked.passes or asked.ranks):
        raise Failure("msprobe-csv is of tensors", hint="irtool diff RUN_A RUN_B")


def _refuse_noise(asked: DiffOptions) -> None:
    """Say that two graphs, or two checkpoints, are compared to the bit anyway."""
    if asked.repeat or asked.strict:
        option = "--repeat" if asked.repeat else "--strict"
        raise Failure("goes with two runs or tensor dumps", option, hint="irtool diff RUN_A RUN_B")


def _check_paths(paths: list[str], passes: bool, ranks: bool, loss: bool) -> None:
    if passes + ranks + loss > 1:
        message = "--passes, --ranks and --loss are different questions"
        raise Failure(message, hint="ask one at a time")
    if passes or ranks:
        if len(paths) != 1 or not file_facts.is_folder(paths[0]):
            option = "--passes" if passes else "--ranks"
            raise Failure(f"{option} takes one run folder", hint=f"irtool diff {option} graphs/")
        return
    if len(paths) != 2:
        hint = "irtool diff left.ir right.ir"
        raise Failure(
            f"two paths are compared, and {len(paths)} {'is' if len(paths) == 1 else 'are'} given",
            hint=hint,
        )
    if paths[0] == paths[1] == "-":
        raise Failure("standard input can be one side only")
