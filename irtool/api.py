"""The questions of the command line as functions: the same answers, from Python.

Each takes what its command takes (a path, a run folder, ``irtool.load_run``'s run) and dumps that
were read already, finds the context as the command does, prints nothing, and returns an
:class:`Answer`.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import field
from typing import TYPE_CHECKING, Any, Generic, Literal, TypeAlias, TypeVar, cast, overload

from irtool.cli.answering import Answered
from irtool.cli.context import ContextArguments
from irtool.cli.report import Failure, quiet
from irtool.cluster.context.given import KEYS_BY_ALIAS
from irtool.ir.dataclass import dataclass
from irtool.ir.dump import Dump
from irtool.syntax.run import Run

if TYPE_CHECKING:
    from irtool.cli.configuration import Configuration
    from irtool.cli.inputs.cluster import Asked
    from irtool.cli.plan.command import Planned
    from irtool.cli.question import Question, RunOptions
    from irtool.cluster.context.model import RunContext
    from irtool.cluster.groups import GroupReport
    from irtool.cluster.hang import HangReport
    from irtool.cluster.memory import Memory
    from irtool.cluster.pipeline import Pipeline
    from irtool.compare.checkpoints.comparison import CheckpointComparison
    from irtool.compare.graph_diff import GraphDiff
    from irtool.compare.losses.comparison import LossComparison
    from irtool.compare.runs.comparison import RunComparison
    from irtool.diagnosis.examine import Examination
    from irtool.ir.finding import Findings
    from irtool.planning.plans.plan import Plan
    from irtool.planning.plans.step.report import StepCost
    from irtool.report.model import Report
    from irtool.sharding.network.report import CheckResult

Source: TypeAlias = "str | os.PathLike[str] | Run | Dump"
"""A path of a dump or a run folder, a run, or a dump that was read already."""

Place: TypeAlias = "str | os.PathLike[str] | Run"
"""A path, or a run."""

Context: TypeAlias = "Mapping[str, object] | None"
"""Keys of ``set_auto_parallel_context``, which go before what dumps and files show."""

Result = TypeVar("Result", covariant=True)
View = TypeVar("View")
Sources = TypeVar("Sources")
Options = TypeVar("Options", bound="RunOptions")


class CannotAnswer(Exception):
    """A question that can't be answered: the message says why, ``hint`` what would help.

    Attributes:
        message: why.
        place: the file or setting in question, "" where there is none.
        hint: what to do.
        code: the command line's code of this error.
    """

    def __init__(self, message: str, place: str = "", hint: str = "", code: str = "") -> None:
        super().__init__(f"{place}: {message}" if place else message)
        self.message = message
        self.place = place
        self.hint = hint
        self.code = code


@dataclass(frozen=True, slots=True, eq=False)
class Answer(Generic[Result]):
    """What a question came to.

    ``str`` is the text that the command writes into a pipe, ``repr`` its first line; a notebook
    shows the same as html.

    Attributes:
        result: what the analysis found, as typed objects.
        context: of the run, with the origin of each value; None where the answer rests on none.
        notes: what the command would say beside the answer, on standard error.
        has_findings: whether there is something to see: the command would exit with 1.
    """

    result: Result
    context: RunContext | None
    notes: tuple[str, ...]
    has_findings: bool
    _answered: Answered[object] = field(repr=False)

    def to_dict(self) -> dict[str, Any]:
        """The object that ``--format json`` writes; its keys are in docs/json-*.md."""
        return json.loads(self.to_json())

    def to_json(self) -> str:
        """What ``--format json`` writes."""
        from irtool.report.answer import answer_pieces

        return "".join(answer_pieces(self._answered.answer()))

    def rows(self, key: str) -> list[dict[str, Any]]:
        """A list of the answer as flat rows, for ``pandas.DataFrame`` or ``polars.DataFrame``.

        Args:
            key: of a list of objects in :meth:`to_dict`, as ``"operators"`` in that of ``check``.

        Raises:
            KeyError: there is no such list; the message names those that there are.
        """
        whole = self.to_dict()
        lists = sorted(name for name, value in whole.items() if _is_rows(value))
        if key not in lists:
            raise KeyError(f"no list {key!r} in this answer: {', '.join(lists)}")
        return whole[key]

    def to_html(self) -> str:
        """The page that ``--format html`` writes."""
        from irtool.report.page.write import render_page

        return render_page(self._report(is_page=True))

    def _report(self, is_page: bool) -> Report:
        from irtool.report.context import with_context

        report = self._answered.report(is_page)
        if self.context is None:
            return report
        return with_context(report, self.context, self._answered.assumptions, is_page)

    def __repr__(self) -> str:
        first = next((line for line in str(self).splitlines() if line), "")
        return f"<{type(self).__name__} of {type(self.result).__name__}: {first}>"

    def __str__(self) -> str:
        from irtool.report.plain import plain_lines

        if self._answered.text is not None:
            return self._answered.text().rstrip("\n")
        return "\n".join(plain_lines(self._report(is_page=False).blocks))

    def _repr_html_(self) -> str:
        from irtool.report.notebook import document_html

        return document_html(self._report(is_page=False))


@dataclass(frozen=True, slots=True, eq=False)
class PlanAnswer(Answer[Any]):
    """A plan, which can be written in the forms that others read."""

    result: Plan
    _planned: Planned = field(repr=False)

    def written(self, form: Literal["strategy", "ir", "shard", "msjob"]) -> str:
        """The plan itself, as ``--format`` writes it.

        Args:
            form: MindSpore's strategy file, the dump with the plan's strategies, lines of Python,
                or a job of Kubernetes.

        Raises:
            CannotAnswer: the form can't say what the plan says.
        """
        with _heard():
            return "".join(self._planned.written(form))


# -- sharding --------------------------------------------------------------------------------------


def check(
    source: Source,
    context: Context = None,
    *,
    rank: int | None = None,
    graph: int | None = None,
    against: str | os.PathLike[str] | None = None,
) -> Answer[CheckResult]:
    """Is each strategy legal; what will be sliced and communicated?

    Args:
        source: a dump taken before the parallel pass, or a run.
        context: keys of ``set_auto_parallel_context``.
        rank: of a run, whose dump; of a dump, from which rank slices and groups are seen.
        graph: of a run, the number of the compilation.
        against: a later dump, or its run folder: does it hold what the strategies promise?

    Returns:
        With the result of ``check``; ``result.accepted`` is None where a part is unknown.

    Raises:
        CannotAnswer: there is no such dump, or nobody says for how many devices it was compiled.

    Example:
        >>> answer = irtool.check("samples/mlp_rejected")
        >>> answer.result.accepted
        False
        >>> answer.result.findings[0].code
        'axis-mismatch'
    """
    from irtool.cli.check import CheckOptions, check_answered

    later = None if against is None else os.fspath(against)
    asked = _question(_one(source), CheckOptions(graph=graph, against=later), context, rank)
    return _answer(lambda: check_answered(asked), lambda view: view.result)


def cost(
    source: Source,
    context: Context = None,
    *,
    machine: str | None = None,
    rank: int | None = None,
    graph: int | None = None,
) -> Answer[StepCost]:
    """Where does a step go: arithmetic, communication by cause, redistribution, the optimizer?

    Args:
        source: a dump taken before the parallel pass, or a run.
        context: keys of ``set_auto_parallel_context``.
        machine: a built-in machine's name, or a file; None: the usual one of the target.
        rank: of a run, whose dump; of a dump, whose it is.
        graph: of a run, the number of the compilation.

    Returns:
        With seconds and bytes of a step; of a pipeline those of its slowest stage.

    Raises:
        CannotAnswer: there is no dump with strategies, or nothing in it can be priced.

    Example:
        >>> answer = irtool.cost("samples/mlp_semi_auto")
        >>> answer.result.shares["gradients"] < answer.result.seconds
        True
    """
    from irtool.cli.cost import CostOptions, cost_answered

    asked = _question(_one(source), CostOptions(graph=graph, machine=machine), context, rank)
    return _answer(lambda: cost_answered(asked), lambda view: view.cost)


def plan(
    source: Source,
    context: Context = None,
    *,
    devices: int | None = None,
    machine: str | None = None,
    memory: int | None = None,
    stages: int | None = None,
    algorithm: Literal["exact", "recursive", "propagation"] = "exact",
    rank: int | None = None,
    graph: int | None = None,
) -> PlanAnswer:
    """Which strategy would be better, and how far from the best can it be?

    Args:
        source: a dump taken before the parallel pass, or a run.
        context: keys of ``set_auto_parallel_context``, that the dump was compiled under.
        devices: to plan for; None: those of the context.
        machine: a built-in machine's name, or a file; None: the usual one of the target.
        memory: bytes of a device that the plan must not exceed.
        stages: pipeline stages to cut the network into; None: the dump's.
        algorithm: exact, or one of MindSpore's own searches.
        rank: of a run, whose dump; of a dump, whose it is.
        graph: of a run, the number of the compilation.

    Returns:
        With the plan; :meth:`PlanAnswer.written` gives it to MindSpore.

    Raises:
        CannotAnswer: there is no plan, or no dump with operators to plan.

    Example:
        >>> answer = irtool.plan("samples/mlp_recursive_search", devices=8)
        >>> answer.result.after.seconds < answer.result.before.seconds
        True
        >>> answer.written("strategy")[:1]
        '{'
    """
    from irtool.cli.plan.command import plan_answered, planned
    from irtool.cli.plan.options import Algorithm, PlanOptions

    options = PlanOptions(
        algorithm=Algorithm(algorithm), to=devices, machine=machine, to_stages=stages,
        memory=None if memory is None else str(memory), graph=graph,
    )  # fmt: skip
    asked = _question(_one(source), options, context, rank)
    with _heard() as notes:
        found = planned(asked)
        answered = plan_answered(found)
    return PlanAnswer(
        answered.result.plan, answered.context, tuple(notes), answered.status != 0, answered, found
    )


# -- what a run does -------------------------------------------------------------------------------


def memory(
    source: Source,
    context: Context = None,
    *,
    limit: int | None = None,
    machine: str | None = None,
    rank: int | None = None,
    graph: int | None = None,
) -> Answer[Memory]:
    """What does a device hold, when most, and what would make that less?

    Args:
        source: a validate dump, or a run, of which each class of equal ranks is counted.
        context: keys of ``set_auto_parallel_context``.
        limit: bytes of a device: does it fit?
        machine: a built-in machine's name, or a file; None: the usual one of the target.
        rank: whose dump.
        graph: of a run, the number of the compilation.

    Returns:
        With the memory of the rank that needs most, in bytes.

    Raises:
        CannotAnswer: nothing can be read.

    Example:
        >>> irtool.memory("samples/gpt/20_validate_0080.ir").result.peak_bytes // 2**20  # MiB
        1
    """
    from irtool.cli.memory import MemoryOptions, memory_answered

    size = None if limit is None else str(limit)
    options = MemoryOptions(graph=graph, machine=machine, limit=size)
    asked = _question([_one(source)], options, context, rank)
    return _answer(lambda: memory_answered(asked), lambda view: view.worst.memory)


def pipeline(
    source: Source | Sequence[Source],
    context: Context = None,
    *,
    machine: str | None = None,
    graph: int | None = None,
) -> Answer[Pipeline]:
    """Stages: their work and memory, schedule, waiting, balance, transfers; what to change.

    Args:
        source: a run, or a validate dump of each stage.
        context: keys of ``set_auto_parallel_context``.
        machine: a built-in machine's name, or a file; None: the usual one of the target.
        graph: of a run, the number of the compilation.

    Returns:
        With stages, schedule, idle time of each stage, and the best cut.

    Raises:
        CannotAnswer: nothing can be read, or nobody says how many stages there are.

    Example:
        >>> irtool.pipeline("samples/pipeline_4_stages").result.micro_batches
        4
    """
    from irtool.cli.pipeline import PipelineOptions, pipeline_answered

    sources = [source] if isinstance(source, str | os.PathLike | Run | Dump) else source
    options = PipelineOptions(graph=graph, machine=machine)
    asked = _question([_one(stage) for stage in sources], options, context)
    return _answer(lambda: pipeline_answered(asked), lambda view: view.pipeline)


def comm_groups(
    source: Source | Mapping[int, Dump],
    context: Context = None,
    *,
    machine: str | None = None,
    rank: int | None = None,
    graph: int | None = None,
) -> Answer[GroupReport]:
    """Every collective and transfer: group, axis of parallelism, phase, stream, link.

    Args:
        source: a run, a validate dump, or validate dumps by rank.
        context: keys of ``set_auto_parallel_context``.
        machine: a built-in machine's name, or a file; None: that of the groups' names.
        rank: only this one; of a single dump, whose it is.
        graph: of a run, the number of the compilation.

    Returns:
        With every collective and its group; ``rows("collectives")`` are those in its dumps.

    Raises:
        CannotAnswer: nothing can be read, or nobody can say whose dumps these are.

    Example:
        >>> answer = irtool.comm_groups("samples/gpt/20_validate_0080.ir")
        >>> row = answer.rows("collectives")[0]
        >>> row["op"], row["axis"], row["bytes"]
        ('AllReduce', 'tensor', 32768)
    """
    from irtool.cli.comm.groups import GroupsOptions, groups_answered

    asked = _cluster(source, context, rank, graph)
    options = GroupsOptions(machine=machine)
    return _answer(lambda: groups_answered(asked, options), lambda view: view.report)


def hang(
    source: Source | Mapping[int, Dump], context: Context = None, *, graph: int | None = None
) -> Answer[HangReport]:
    """Does the run hang, and which ranks diverge?

    Args:
        source: a run, or validate dumps by rank.
        context: keys of ``set_auto_parallel_context``.
        graph: of a run, the number of the compilation.

    Returns:
        With what is blocked first (None where nothing hangs), the ranks that differ, and all
        that wait.

    Raises:
        CannotAnswer: nothing can be read, or the dumps don't hold all communications.

    Example:
        >>> irtool.hang("samples/hang_one_strategy").result.blocked.index
        1
    """
    from irtool.cli.comm.hang import HangOptions, hang_answered

    asked = _cluster(source, context, None, graph)
    return _answer(lambda: hang_answered(asked, HangOptions()), lambda view: view.report)


# -- what is wrong ---------------------------------------------------------------------------------


@overload
def diff(
    left: Source,
    right: Source,
    *,
    loss: Literal[False] = False,
    rank: int | None = None,
    graph: int | None = None,
    step: int | None = None,
) -> Answer[GraphDiff | RunComparison | CheckpointComparison]: ...
@overload
def diff(left: Source, right: Source, *, loss: Literal[True]) -> Answer[LossComparison]: ...
def diff(
    left: Source,
    right: Source,
    *,
    loss: bool = False,
    rank: int | None = None,
    graph: int | None = None,
    step: int | None = None,
) -> Answer[GraphDiff | RunComparison | CheckpointComparison] | Answer[LossComparison]:
    """Two dumps or two runs: what differs, where does it begin, and why?

    Args:
        left: a dump, a run, a checkpoint, a tensor dump or a digest.
        right: another.
        loss: compare loss curves alone, of runs, logs or tables.
        rank: of runs, whose dumps and tensors.
        graph: of runs, the number of the compilation.
        step: of runs, the step whose tensors are compared.

    Returns:
        With the difference of two graphs, of two checkpoints, or of two runs: tensors, graphs,
        losses, settings.

    Raises:
        CannotAnswer: a side can't be read, or the sides have nothing in common.

    Example:
        >>> old = "samples/mlp_rejected/step_parallel_begin_0018.ir"
        >>> new = "samples/mlp_semi_auto/step_parallel_begin_0018.ir"
        >>> len(irtool.diff(old, new).result.edits)
        1
    """
    from irtool.cli.diff.checkpoints import checkpoints_answered, is_for_checkpoints
    from irtool.cli.diff.graphs import dumps_answered
    from irtool.cli.diff.losses import losses_answered
    from irtool.cli.diff.options import DiffOptions
    from irtool.cli.diff.runs import is_for_runs, runs_answered

    sides = [_one(left), _one(right)]
    paths = [side for side in sides if isinstance(side, str)]
    if loss:
        if len(paths) < len(sides):
            raise CannotAnswer("a dump has no loss curve", hint="name a run, a log or a table")
        return _answer(
            lambda: losses_answered(paths[0], paths[1], DiffOptions()), lambda curves: curves
        )
    asked = DiffOptions(rank=rank, graph=graph, step=step)
    if len(paths) == len(sides) and is_for_checkpoints(paths):
        return _answer(lambda: checkpoints_answered(paths, asked), lambda view: view.comparison)
    if len(paths) == len(sides) and is_for_runs(paths):
        return _answer(lambda: runs_answered(paths, asked), lambda view: view.comparison)
    return _answer(lambda: dumps_answered(sides, asked), lambda view: view.diff)


def lint(
    source: Place | Sequence[Place],
    context: Context = None,
    *,
    select: Sequence[str] = (),
    ignore: Sequence[str] = (),
    machine: str | None = None,
    rank: int | None = None,
    graph: int | None = None,
) -> Answer[Findings]:
    """What is wrong, or worth a look, in dumps?

    Args:
        source: a run, or paths of dumps, folders and run folders. (Rules look at all dumps of a
            compilation together, so what they look at are files.)
        context: keys of ``set_auto_parallel_context``.
        select: only these rules: codes, prefixes, names.
        ignore: not these.
        machine: a built-in machine's name, or a file, for rules that weigh seconds.
        rank: of runs, whose dumps.
        graph: of runs, the number of the compilation.

    Returns:
        With findings, in the order of files and lines, and what was suppressed or not judged.

    Raises:
        CannotAnswer: no dump can be read, or there is no such rule.

    Example:
        >>> [each.code for each in irtool.lint("samples/mlp_rejected").result.items]
        ['STR001']
    """
    from irtool.cli.lint.command import LintOptions, LintQuestion, lint_answered
    from irtool.cli.lint.settings import settings_for

    sources = [source] if isinstance(source, str | os.PathLike | Run) else source
    options = LintOptions(select=list(select), ignore=list(ignore), machine=machine, graph=graph)
    configuration = _no_configuration()
    with _heard():
        rules = settings_for(configuration, options.overrides)
    paths = [_path(one) for one in sources]
    asked = LintQuestion(paths, _arguments(context, rank), configuration, rules, options)
    return _answer(lambda: lint_answered(asked), lambda findings: findings)


def doctor(
    source: Place,
    context: Context = None,
    *,
    against: Place | None = None,
    tasks: Sequence[str] = (),
    machine: str | None = None,
    memory: int | None = None,
    graph: int | None = None,
    jobs: int = 1,
) -> Answer[Examination]:
    """What is wrong with this run, ranked: cause, place, edit, gain, and what shows more.

    Args:
        source: a run, or its folder.
        context: keys of ``set_auto_parallel_context``.
        against: a healthy run, or one of another device: without it neither loss nor precision
            is judged.
        tasks: only these questions.
        machine: a built-in machine's name, or a file; None: the usual one of the target.
        memory: bytes of a device.
        graph: the number of the run's compilation.
        jobs: processes at a time.

    Returns:
        With diagnoses, the gravest first, and what was not judged, and why.

    Raises:
        CannotAnswer: nothing of a run is there.

    Example:
        >>> first = irtool.doctor("samples/mlp_rejected").result.findings[0]
        >>> first.edit.setting, first.edit.value
        ('in_strategy', '((2, 4), (1, 4))')
    """
    from irtool.cli.doctor import DoctorOptions, doctor_answered

    options = DoctorOptions(
        graph=graph, against=None if against is None else _path(against), only=list(tasks),
        machine=machine, memory=None if memory is None else str(memory), jobs=jobs,
    )  # fmt: skip
    asked = _question(_path(source), options, context)
    return _answer(lambda: doctor_answered(asked), lambda examination: examination)


# -- how they are asked ----------------------------------------------------------------------------


def _answer(ask: Callable[[], Answered[View]], result: Callable[[View], Result]) -> Answer[Result]:
    """Ask as a command does, and keep what it would say on the side."""
    with _heard() as notes:
        answered = ask()
    return Answer(
        result(answered.result), answered.context, tuple(notes), answered.status != 0, answered
    )


@contextmanager
def _heard() -> Generator[list[str]]:
    try:
        with quiet() as notes:
            yield notes
    except Failure as failure:
        raise CannotAnswer(failure.message, failure.place, failure.hint, failure.code) from None


def _is_rows(value: object) -> bool:
    items = cast("list[object]", value) if isinstance(value, list) else [None]
    return all(isinstance(item, dict) for item in items)


def _one(source: Source) -> str | Dump:
    return source if isinstance(source, Dump) else _path(source)


def _path(place: Place) -> str:
    return place.path if isinstance(place, Run) else os.fspath(place)


def _question(
    source: Sources, options: Options, context: Context, rank: int | None = None
) -> Question[Sources, Options]:
    """A question as the command line asks it, but without ``irtool.toml``."""
    from irtool.cli.question import Question

    return Question(source, options, _arguments(context, rank), _no_configuration())


def _arguments(context: Context, rank: int | None) -> ContextArguments:
    given = _checked_keys(context)
    if rank is not None:
        given["global_rank"] = rank
    return ContextArguments(given)


def _checked_keys(context: Context) -> dict[str, object]:
    """Settings by the keys that MindSpore has for them.

    Raises:
        CannotAnswer: there is no such key.
    """
    from irtool.cli.configuration import check_context_keys

    with _heard():
        check_context_keys(context or {}, "context")
    return {KEYS_BY_ALIAS.get(key, key): value for key, value in (context or {}).items()}


def _no_configuration() -> Configuration:
    """Without ``irtool.toml``: what a function answers depends on its arguments alone."""
    from irtool.cli.configuration import Configuration

    return Configuration()


def _cluster(
    source: Source | Mapping[int, Dump], context: Context, rank: int | None, graph: int | None
) -> Asked:
    from irtool.cli.inputs.cluster import Asked

    paths: tuple[str, ...] = ()
    dumps: Mapping[int, Dump] = {}
    if isinstance(source, Mapping):
        dumps = source
    elif isinstance(one := _one(source), Dump):
        dumps = {rank or 0: one}
    else:
        paths = (one,)
    return Asked(
        paths, rank, graph, dumps=dumps, given=_checked_keys(context),
        configuration=_no_configuration(),
    )  # fmt: skip
