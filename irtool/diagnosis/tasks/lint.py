"""What do the rules say that no other task tells?"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress

from irtool.diagnosis.diagnosis import CannotJudge, Diagnosis, Task, diagnosis
from irtool.diagnosis.subject import BEGIN, VALIDATE, Reads, Subject
from irtool.ir.finding import Finding
from irtool.linting.engine import lint_compilation
from irtool.linting.facts import CompilationFacts, DumpFacts, Surroundings
from irtool.linting.registry import all_rules
from irtool.linting.rule import DumpKind
from irtool.linting.settings import chosen_rules, read_settings

TASK: Task = "lint"
READS: Reads = "validate"
_KINDS: tuple[tuple[str, DumpKind], ...] = ((BEGIN, "begin"), (VALIDATE, "validate"))
_OTHERS = ("STR001", "COM007", "COM008", "COM009", "PIP", "REC", "ENG", "GAT")
"""Rules whose question another task answers, or that are about files."""
_CHANCES = ("COM005",)
"""Rules whose infos no other task tells."""
_MOST = 5


def examine(subject: Subject) -> Iterator[Diagnosis]:
    """Errors and warnings of the rules, each rule once.

    Args:
        subject: the run; dumps of its lowest rank are looked at.

    Raises:
        CannotJudge: there is no compilation; or, once all is told, a dump is damaged.
    """
    facts: list[DumpFacts] = []
    damaged: list[CannotJudge] = []
    for name, kind in _KINDS:
        file = subject.picked.file(name)
        if file is None:
            continue
        try:
            dump = subject.read_whole(subject.picked, file)
        except CannotJudge as reason:
            damaged.append(reason)
            continue
        facts.append(DumpFacts(lambda dump=dump: dump, kind, file.path))
    if facts:
        yield from _found(subject, facts)
    if damaged:
        raise damaged[0]


def _found(subject: Subject, facts: list[DumpFacts]) -> Iterator[Diagnosis]:
    context = subject.context
    known = Surroundings(
        rank=subject.picked.rank,
        parallel=context.parallel,
        context=context.given,
        machine=subject.named,
        contradictions=context.contradictions,
    )
    rules = [
        rule
        for rule in chosen_rules(read_settings({}), all_rules())
        if (rule.severity != "info" or rule.code in _CHANCES) and not rule.code.startswith(_OTHERS)
    ]
    compilation = CompilationFacts(facts, known)
    with suppress(CannotJudge):  # what other tasks asked already
        report = subject.checked.report
        compilation.kept("report", lambda: report)
    findings = lint_compilation(compilation, rules).findings
    by_code: dict[str, list[Finding]] = {}
    for item in findings:
        if item.severity != "info" or item.code in _CHANCES:
            by_code.setdefault(item.code, []).append(item)
    for items in list(by_code.values())[:_MOST]:
        yield _diagnosis(subject, items)


def _diagnosis(subject: Subject, items: list[Finding]) -> Diagnosis:
    first = items[0]
    more = f" (and {len(items) - 1} more)" if len(items) > 1 else ""
    return diagnosis(
        TASK,
        first.severity,
        f"{first.code}: {first.message}{more}",
        subject.command("lint", "RUN", "--select", first.code),
        rank=subject.picked.rank,
        node=first.node,
        file=first.file,
        line=first.line,
        source=first.source,
    )
