"""Findings: what is wrong or worth a look, where in the dump, and at which line of Python.

They know nothing of rules or reports: whatever looks for something may make them, and every report
can show them.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from irtool.ir.display import Shown
from irtool.ir.problem import Severity

SEVERITIES: tuple[Severity, ...] = ("error", "warning", "info")
"""From the gravest: an error is what MindSpore would refuse, a run that would hang, or damage."""


@dataclass(frozen=True, slots=True)
class SourceLine:
    """A place in the user's Python code; lines and columns count from 1, None where unknown.

    ``path`` is as the dump prints it, or where the file was found; ``text`` is the statement.
    """

    path: str
    line: int
    end_line: int | None = None
    column: int | None = None
    end_column: int | None = None
    text: str = ""


@dataclass(frozen=True, slots=True)
class RelatedPlace:
    """Another place that a finding is about, with what it has to do with it."""

    message: str
    file: str
    line: int
    column: int = 1
    node: str | None = None


@dataclass(frozen=True, slots=True)
class Finding:
    """One finding.

    Attributes:
        code: of the rule that it comes from.
        severity: error, warning or info.
        message: what is wrong, in one sentence, without numbers of nodes.
        file: the dump.
        line: in the dump, from 1; 0 where it belongs to the whole file.
        column: from 1; of a node, where its operator stands.
        end_column: where what is meant ends (exclusive); ``column`` if that is not known.
        node: ``%4``; None where no node is meant.
        op: the node's operator.
        graph: the graph that holds it.
        scope: the node's scope.
        statement: the line of the dump, shortened.
        source: the user's line of Python, the innermost outside MindSpore.
        frames: all of the user's lines that led to the node, outermost call first.
        hint: what to do about findings of this kind.
        fix: what to write instead, here; None where irtool does not know.
        related: other places.
        rank: whose dump it is; None where nobody says.
        ranks: all ranks that it holds for.
        key: what tells it from other findings of the rule at the same place (a parameter's name).
        fingerprint: stays the same when nodes are renumbered and lines move; "" until made.
        suppressed: why it is not to be reported; "" for all others.
    """

    code: str
    severity: Severity
    message: str
    file: str
    line: int = 0
    column: int = 1
    end_column: int = 1
    node: str | None = None
    op: str | None = None
    graph: str | None = None
    scope: str | None = None
    statement: str = ""
    source: SourceLine | None = None
    frames: tuple[SourceLine, ...] = ()
    hint: str = ""
    fix: str | None = None
    related: tuple[RelatedPlace, ...] = ()
    rank: int | None = None
    ranks: tuple[int, ...] = ()
    key: str = ""
    fingerprint: str = field(default="", compare=False)
    suppressed: str = field(default="", compare=False)

    @property
    def place(self) -> str:
        """``FILE:LINE:COLUMN``, or the file alone."""
        return f"{self.file}:{self.line}:{self.column}" if self.line else self.file


@dataclass(frozen=True, slots=True)
class ThresholdText:
    """A number that decides when a rule speaks, as documents show it."""

    name: str
    default: int | float
    unit: str
    meaning: str


@dataclass(frozen=True, slots=True)
class RuleText:
    """What documents and reports say of a rule.

    ``needs`` is what it has to know beside the dump, ``dumps`` which dumps it looks at, in words;
    ``origin`` names the package that it comes from, "" for irtool's own.
    """

    code: str
    name: str
    family: str
    severity: Severity
    summary: str
    explanation: str
    hint: str
    bad: str
    good: str
    references: tuple[str, ...]
    needs: tuple[str, ...]
    dumps: str
    thresholds: tuple[ThresholdText, ...]
    is_default: bool = True
    origin: str = ""


@dataclass(frozen=True, slots=True)
class Silenced:
    """Rules could not look at something: ``count`` compilations of ``total`` lack ``need``."""

    code: str
    need: str
    reason: str = ""
    count: int = 1
    total: int = 1


@dataclass(frozen=True, slots=True)
class Findings(Shown):
    """All findings of one call, with what the reports say around them.

    ``suppressed`` are those that comments, the configuration or the baseline answer for;
    ``stale`` are entries of the baseline that nothing matched; ``rules`` are the texts of the
    rules that spoke; ``files`` and ``compilations`` were looked at, by the rules ``checked``.
    """

    items: tuple[Finding, ...]
    rules: tuple[RuleText, ...] = ()
    suppressed: tuple[Finding, ...] = ()
    silenced: tuple[Silenced, ...] = ()
    stale: tuple[str, ...] = ()
    files: int = 0
    compilations: int = 0
    checked: tuple[str, ...] = ()
