"""What logs and ``analyze_fail.ir`` of a run say went wrong; several tasks ask."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Iterator
from typing import TypeAlias, cast

from irtool.diagnosis.diagnosis import CannotJudge, Diagnosis, Task, diagnosis
from irtool.diagnosis.subject import BEGIN, Subject, source_of
from irtool.ir.finding import Edit, SourceLine
from irtool.ir.graph import Node
from irtool.ir.limits import max_dump
from irtool.ir.values import String
from irtool.linting.failure.fail_dump import explain_dump, with_rank
from irtool.linting.failure.finding import Explained, LoggedFinding
from irtool.linting.failure.log import LogReader
from irtool.linting.failure.report import NO_DUMPS, Place, report_of
from irtool.syntax.lines import text_lines
from irtool.syntax.load import load
from irtool.syntax.printer import dumps
from irtool.syntax.run import Compilation
from irtool.syntax.run.folders import folder_rank_of
from irtool.syntax.source import DumpError

_NAMED = re.compile(r"(\w*CNode_\d+)\b.{0,80}?full name is (\S+?)[.,]?(?:\s|$)")
"""How messages of later passes name a statement: by its name and its operator's."""

_PYTHON = re.compile(r"__(?:py_exec_|call_func_str|input_key_)\w*")
"""Keys of statements that MindSpore leaves to Python's interpreter: JIT fallback."""
INTERPRETED = (
    "; this line is left to Python's interpreter (a NumPy array or another object that is no Tensor"
    " in construct), and parallel passes know no shape of what it gives: make it a Tensor"
)

TASK_OF: dict[str, Task] = {
    "hccl-timeout": "failed-node",
    "rank-missing": "failed-node",
    "device-error": "failed-node",
    "out-of-memory": "memory",
}
"""The task that a code belongs to; all others are failures of the compilation."""


def logged(subject: Subject) -> tuple[LoggedFinding, ...]:
    """What the run's logs and failure dumps say, causes first.

    They are read once and remembered by the run.

    Args:
        subject: the run.

    Raises:
        CannotJudge: there are none.
    """
    held = subject.remembered.get("failures")
    if held is None:
        held = subject.remembered["failures"] = _logged(subject)
    if isinstance(held, CannotJudge):
        raise held
    return cast("tuple[LoggedFinding, ...]", held)


def _logged(subject: Subject) -> tuple[LoggedFinding, ...] | CannotJudge:
    explained = list(_explained(subject))
    if not explained:
        return CannotJudge("there is no log and no analyze_fail.ir in this folder")
    has_begin = any(one.file("step_parallel_begin") for one in subject.run.compilations)
    place = Place(subject.path if has_begin else "", subject.path)
    return report_of([(one, place) for one in explained]).findings


def _explained(subject: Subject) -> Iterator[Explained]:
    for compilation in subject.run.compilations:
        for file in compilation.passes:
            if file.kind != "failure" or file.size > max_dump():
                continue
            try:
                dump = load(file.path)
            except DumpError:
                continue
            yield with_rank(explain_dump(dump, dumps(dump).splitlines()), compilation.rank)
    for log in subject.run.logs:
        rank = log.rank if log.rank is not None else folder_rank_of(log.path)
        reader = LogReader(log.path, rank)
        try:
            for number, line in enumerate(text_lines(log.path), 1):
                reader.feed(number, line)
        except (OSError, ValueError):
            continue
        yield reader.finish("")


EditOf: TypeAlias = Callable[[LoggedFinding, SourceLine | None], Edit | None]
"""What mends a failure, by what is said of it and its line of Python."""


def logged_causes(
    subject: Subject, task: Task, edit_of: EditOf | None = None
) -> Iterator[Diagnosis]:
    """What logs say of a task: causes as errors, consequences only where no cause is told.

    Args:
        subject: the run.
        task: a code that belongs to another task (``TASK_OF``) is left to that one.
        edit_of: gives the change that mends a failure, where the log itself names none.

    Yields:
        an error for each; what logs only mention (info) is left out.

    Raises:
        CannotJudge: there is no log and no failure dump.
    """
    findings = logged(subject)
    causes = [item for item in findings if item.role in ("cause", "unknown")]
    for item in causes or [item for item in findings if item.role == "consequence"]:
        if item.severity == "info" or TASK_OF.get(item.code, "compile-failure") != task:
            continue
        yield diagnosed(subject, item, task, edit_of)


def diagnosed(
    subject: Subject, item: LoggedFinding, task: Task, edit_of: EditOf | None = None
) -> Diagnosis:
    """A failure as the doctor tells it."""
    command = tuple(shlex.split(item.command)) if item.command else ()
    if not command or command[:2] == ("irtool", "explain") or NO_DUMPS in command:
        command = ("irtool", "explain", item.file)
    node = _named_node(subject, item)
    users = () if node is None else node.users
    lines = (source_of(statement) for statement in (node, *users))
    source = next((line for line in lines if line is not None), item.source)
    interpreted = INTERPRETED if node is not None and is_interpreted(node) else ""
    types = f" (operands {', '.join(item.operands)})" if item.operands else ""
    edit = item.edit
    if edit is None and edit_of is not None:
        edit = edit_of(item, source)
    of = f"{item.op}: " if item.op and item.op not in item.message else ""
    return diagnosis(
        task,
        "error",
        f"{of}{item.message}{types}{interpreted}",
        command,
        rank=item.ranks[0] if item.ranks else None,
        ranks=tuple(item.ranks),
        node=None if node is None else node.id,
        op=item.op,
        file=item.file,
        line=item.line,
        source=source,
        edit=edit,
        since=_last_pass(subject, item),
        no_edit=_why_no_edit(item, source) if task == "compile-failure" else "",
    )


_OPEN_QUESTIONS = (
    (re.compile("values? (?:are|is) unpacked"),
     "whether the line unpacks too much, or what it unpacks holds too little"),
    (re.compile("not defined, or not supported|has no (?:attribute|member)"),
     "what the name was to stand for: nothing with a name near it is in the dump"),
    (re.compile("without its argument"), "which tensor was meant for the argument"),
    (re.compile("accumulate of x_shape"), "which shape was meant"),
)  # fmt: skip
"""What nobody but the author of a line knows, by the message that asks it."""


def _why_no_edit(item: LoggedFinding, source: SourceLine | None) -> str:
    """Why no edit is proposed."""
    for pattern, question in _OPEN_QUESTIONS:
        if pattern.search(item.message):
            return f"neither log nor dump tells {question}"
    if source is None:
        return "neither log nor dump names a line of Python"
    if not item.operands:
        return "neither log nor dump tells the types and shapes of what the line takes"
    return "several changes would mend it, and neither log nor dump tells which is meant"


def is_interpreted(node: Node) -> bool:
    """Whether a statement, or what names its operands, is run by Python's interpreter.

    MindSpore leaves what is no Tensor to it (JIT fallback): a ``PyExecute`` node, or one that reads
    a key such as ``__py_exec_…``.

    Args:
        node: a statement of any dump.
    """
    return node.op.startswith("PyExecute") or any(
        isinstance(item, String) and _PYTHON.fullmatch(item.text) for item in node.operands
    )


def _compilation(subject: Subject, item: LoggedFinding) -> Compilation | None:
    try:
        compilations = subject.compilations
    except CannotJudge:
        return None
    rank = item.ranks[0] if item.ranks else min(compilations, default=0)
    return compilations.get(rank)


def _last_pass(subject: Subject, item: LoggedFinding) -> str:
    """The pass whose dump is the last one before the failure; "" where there is none."""
    compilation = _compilation(subject, item)
    done = [file for file in (compilation.passes if compilation else ()) if file.kind != "failure"]
    return f"after {done[-1].name}" if done else ""


def _named_node(subject: Subject, item: LoggedFinding) -> Node | None:
    """The node that a message names in full, where its dump is there."""
    named = _NAMED.search(item.message)
    compilation = _compilation(subject, item) if named is not None else None
    file = None if compilation is None else compilation.file(BEGIN)
    if named is None or compilation is None or file is None:
        return None
    try:
        dump = subject.read(compilation, file)
    except CannotJudge:
        return None
    names = named.groups()
    return next((n for n in dump.nodes() if n.name in names or n.full_name in names), None)
