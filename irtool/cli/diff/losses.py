"""``irtool diff --loss``: the loss curves of two runs."""

from __future__ import annotations

from collections.abc import Sequence

from irtool.cli.answering import Answered, tell
from irtool.cli.diff.options import DiffOptions
from irtool.cli.output import Output
from irtool.cli.report import Failure, note
from irtool.compare.losses.comparison import LossComparison, NothingInCommon, compare_losses
from irtool.compare.losses.read import read_loss
from irtool.compare.losses.series import LossRun, NoLoss
from irtool.syntax import file_facts
from irtool.syntax.run import Run, load_run
from irtool.syntax.source import DumpError


def tell_losses(left: str, right: str, asked: DiffOptions, output: Output) -> int:
    """Compare two loss curves and write the answer.

    Args:
        left: a log, a table or a run folder.
        right: another.
        asked: what the command line asks for.
        output: where the answer goes.

    Returns:
        The exit status.

    Raises:
        Failure: a side has no loss curve, or they have no step in common.
    """
    return tell(losses_answered(left, right, asked), output, asked.answer_form)


def losses_answered(left: str, right: str, asked: DiffOptions) -> Answered[LossComparison]:
    """How two loss curves differ, and from which step on.

    Args:
        left: a log, a table or a run folder.
        right: another.
        asked: more runs of the left side, whose differences are the noise floor, and from which
            severity on the status is 1.

    Raises:
        Failure: a side has no loss curve, or they have no step in common.
    """
    from irtool.report.diff.losses import losses_answer, losses_report

    repeats = [loss_of(path) for path in asked.repeat or ()]
    comparison = compared_losses(loss_of(left), loss_of(right), repeats)
    return Answered(
        comparison,
        lambda: losses_answer(comparison),
        lambda is_page: losses_report(comparison, is_page),
        status=asked.status(comparison.is_suspicious),
    )


def compared_losses(
    left: LossRun, right: LossRun, repeats: Sequence[LossRun] = ()
) -> LossComparison:
    """As the analysis, but what cannot be compared ends the command."""
    try:
        return compare_losses(left, right, repeats)
    except NothingInCommon as error:
        hint = "are these the same steps? curves are compared by step number"
        raise Failure(str(error), right.path, hint=hint) from None


def loss_of(path: str) -> LossRun:
    """The loss curve of a file, or of a run folder.

    Raises:
        Failure: there is none.
    """
    if file_facts.is_folder(path):
        curve = run_loss(_run(path))
        if curve is None:
            hint = "name the log or table itself"
            raise Failure("no file of this folder holds a loss curve", path, hint=hint)
        note(f"reads {curve.path}")
        return curve
    try:
        return read_loss(path)
    except NoLoss as error:
        raise Failure(f"no loss curve: {error}", path) from None
    except DumpError as error:
        raise Failure(error.message, error.path, hint=error.hint) from None


def run_loss(run: Run) -> LossRun | None:
    """The longest loss curve among a run's files and logs; None where there is none.

    With pipeline stages only the last one knows the loss, so every log is looked into.

    Args:
        run: the run folder.
    """
    best: LossRun | None = None
    logs = [log.path for log in run.logs]
    logs += [log.path for rank in run.by_rank.values() for log in rank.logs]
    for path in dict.fromkeys((*run.losses, *logs)):
        try:
            curve = read_loss(path)
        except (NoLoss, DumpError):
            continue
        if best is None or len(curve.loss) > len(best.loss):
            best = curve
    return best


def _run(path: str) -> Run:
    try:
        return load_run(path)
    except DumpError as error:
        raise Failure(error.message, path, hint=error.hint) from None
