"""Does the run hang, where, and which ranks diverge?"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from irtool.cluster.hang import HangReport, play
from irtool.cluster.hang.script import Departure
from irtool.cluster.identity import compiled_as_another
from irtool.cluster.memory.layers import layer_of_scope
from irtool.compare.edits import Pattern
from irtool.diagnosis.diagnosis import CannotJudge, Diagnosis, Task, diagnosis, strategy_edit
from irtool.diagnosis.script_difference import (
    ScriptDifference,
    SettingDifference,
    script_difference,
    setting_difference,
)
from irtool.diagnosis.subject import Reads, Subject, source_of
from irtool.ir.finding import Edit, SourceLine
from irtool.ir.graph import Node
from irtool.ir.units import numbered_text, plural, ranks_text

TASK: Task = "hang"
READS: Reads = "validate"
_RESHARDED = re.compile(r"in_strategy: (.+) → (.+)")


def examine(subject: Subject) -> Iterator[Diagnosis]:
    """An error where the run hangs.

    Args:
        subject: the run; the collectives of all its ranks are played against one another.

    Raises:
        CannotJudge: no validate dump is whole; ranks were compiled under other ranks' numbers; or
            nothing hangs in these dumps, and dumps of ranks are missing.
    """
    if next(compiled_as_another(subject.cluster), None) is not None:
        raise CannotJudge("ranks were compiled under other ranks' numbers")
    report = play(subject.cluster)
    if report.hangs:
        yield _hang(subject, report)
    elif report.missing_ranks:
        missing = ranks_text(report.missing_ranks)
        ranks = "rank" if len(report.missing_ranks) == 1 else "ranks"
        cut = " that is whole" if set(report.missing_ranks) & subject.validated.keys() else ""
        raise CannotJudge(f"no hang in the dumps that are there; {ranks} {missing} left none{cut}")


def _hang(subject: Subject, report: HangReport) -> Diagnosis:
    left = report.left[0] if report.left else None
    difference = None if left is None else script_difference(subject.run, left, subject.graph)
    setting = None if left is None else setting_difference(subject.run, left, subject.graph)
    node, rank, file, line = _place(report, left)
    changed = _changed(difference)
    source = source_of(changed) or source_of(node)
    cause = report.blocked.why if report.blocked is not None else "it hangs"
    if left is not None:
        cause = _departure_text(left, report)
    if left is not None and setting is not None and setting.key != left.setting:
        cause += (
            f". It was compiled with {setting.key} = {setting.value}, "
            f"rank {left.common[0]} with {setting.other}"
        )
    cause += _edits_text(difference)
    return diagnosis(
        TASK,
        "error",
        cause,
        subject.command("comm", "hang", "RUN"),
        rank=rank,
        ranks=_accused(left),
        node=None if node is None else node.id,
        file=file,
        line=line,
        source=source,
        edit=_edit(left, setting, difference, source),
        since=difference.pass_name if difference is not None else "",
    )


def _accused(left: Departure | None) -> tuple[int, ...]:
    """Who left the common script; both sides where nobody can say which did."""
    if left is None:
        return ()
    return left.ranks if left.certain else tuple(sorted((*left.ranks, *left.common)))


def _departure_text(left: Departure, report: HangReport) -> str:
    word = "rank" if len(left.ranks) == 1 else "ranks"
    stuck = tuple(report.stuck)
    waits = (
        f"; {numbered_text('rank', stuck)} never proceed{'s' if len(stuck) == 1 else ''}"
        if stuck
        else ""
    )
    if left.certain:
        verb = "diverges" if len(left.ranks) == 1 else "diverge"
        return f"{word} {ranks_text(left.ranks)} {verb} from the other ranks: {left.text}{waits}"
    own = ranks_text(left.ranks)
    sides = f"ranks {own} and {ranks_text(left.common)} do not communicate alike"
    return f"{sides}: {word} {own} has {left.text}{waits}"


def _edits_text(difference: ScriptDifference | None) -> str:
    if difference is None:
        return ""
    if difference.untrained:
        names = _some(difference.untrained)
        return f". It does not train {names}, which rank {difference.other} does"
    if difference.trained:
        return f". It trains {_some(difference.trained)}, which rank {difference.other} does not"
    first = _first_edit(difference)
    more = len(difference.edits) - 1
    rest = f" and {plural(more, 'more edit')}" if more else ""
    return (
        f". Its graph differs from that of rank {difference.other}: {first.first.kind} "
        f"{first.first.node.op} in {layer_of_scope(first.first.node.scope)}: {first.detail}{rest}"
    )


def _some(names: Sequence[str]) -> str:
    """The first of some weights, and how many more there are."""
    rest = f" and {plural(len(names) - 1, 'more weight')}" if len(names) > 1 else ""
    return f"{names[0]}{rest}"


def _first_edit(difference: ScriptDifference) -> Pattern:
    """The first edit of the forward pass, which what follows goes back to."""
    forward = (pattern for pattern in difference.edits if pattern.first.phase == "forward")
    return next(forward, difference.edits[0])


def _place(report: HangReport, left: Departure | None) -> tuple[Node | None, int | None, str, int]:
    place = None
    if left is not None:
        place = left.here or left.there
        rank: int | None = left.ranks[0]
    elif report.blocked is not None:
        place = next((one.place for one in report.blocked.members if one.place), None)
        rank = None if place is None else place.rank
    else:
        rank = None
    if place is None:
        return None, rank, "", 0
    return place.collective.node, rank, place.path, place.line


def _changed(difference: ScriptDifference | None) -> Node | None:
    """What is another in the odd rank's graph."""
    if difference is None:
        return None
    first = _first_edit(difference).first
    return (first.right or first.left)[0]


def _edit(
    left: Departure | None,
    setting: SettingDifference | None,
    difference: ScriptDifference | None,
    source: SourceLine | None,
) -> Edit | None:
    """The setting or strategy that others have, where it is what differs."""
    if left is not None and left.setting and left.certain:
        return Edit(setting=left.setting, value=left.value)
    if left is not None and setting is not None and left.certain:
        value = setting.other
        if isinstance(value, (str, int, float, bool)):
            return Edit(setting=setting.key, value=value)
    if difference is not None and difference.untrained and left is not None and left.certain:
        return Edit(setting="requires_grad", value=f"True for {', '.join(difference.untrained)}")
    if difference is None:
        return None
    match = _RESHARDED.fullmatch(_first_edit(difference).detail)
    if match is None:
        return None
    return strategy_edit(source, match[2], match[1])
