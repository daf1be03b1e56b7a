"""Findings: what is wrong or worth a look, where in the dump, and at which line of Python.

There is one class of them.  The reader makes them of what it cannot read, ``check`` of what
MindSpore refuses, the rules of ``lint`` and ``gate`` of what they look for, ``explain`` of what a
log says.  They know nothing of rules or reports, and every report can show them.
"""

from __future__ import annotations

from dataclasses import field
from typing import Literal

from irtool.ir.dataclass import dataclass
from irtool.ir.display import Shown

Severity = Literal["error", "warning", "info"]

SEVERITIES: tuple[Severity, ...] = ("error", "warning", "info")
"""From the gravest: an error is what MindSpore would refuse, a run that would hang, or damage."""


@dataclass(frozen=True, slots=True)
class SourceLine:
    """A line of the user's Python; lines and columns count from 1.

    Attributes:
        path: where the file was found here, else as the dump or the log prints it.
        column: null: not known.
        end_column: exclusive.
        text: the statement.
    """

    path: str
    line: int
    end_line: int | None = None
    column: int | None = None
    end_column: int | None = None
    text: str = ""

    @property
    def place(self) -> str:
        """File and line, as editors take them: ``net.py:12``."""
        return f"{self.path}:{self.line}"

    @property
    def shown(self) -> str:
        """``net.py:12: x = self.matmul(x, w)``."""
        return f"{self.place}: {self.text}" if self.text else self.place


CONSEQUENCE = "consequence, "
"""What the message of a place begins with that tells what comes of a finding."""


@dataclass(frozen=True, slots=True)
class RelatedPlace:
    """Another place that a finding is about.

    Attributes:
        message: what it has to do with the finding.
    """

    message: str
    file: str
    line: int
    column: int = 1
    node: str | None = None


@dataclass(frozen=True, slots=True)
class Edit:
    """A change to make: of a line of Python, or of a setting.

    Attributes:
        file: the file of the user's code, "" for a setting.
        line: in it, from 1.
        old: what stands there, as far as it is to go.
        new: what to write in its place.
        setting: key of ``set_auto_parallel_context``, of the environment or of another setting; ""
            for a line of Python.
        value: what to set it to.
    """

    file: str = ""
    line: int = 0
    old: str = ""
    new: str = ""
    setting: str = ""
    value: str | int | float | bool | None = None

    @property
    def text(self) -> str:
        """``net.py:12: write … instead of …``, or ``KEY = VALUE``."""
        if self.setting:
            return f"{self.setting} = {self.value}"
        place = f"{self.file}:{self.line}: " if self.file else ""
        return f"{place}write {self.new} instead of {self.old}" if self.old else place + self.new


@dataclass(frozen=True, slots=True)
class Gain:
    """What an edit is worth: seconds a step, bytes of memory on a device; None if not known."""

    seconds: float | None = None
    bytes: int | None = None


@dataclass(frozen=True, slots=True)
class Finding:
    """What is wrong or worth a look, where that is, and what to do about it.

    Attributes:
        code: of the rule that it comes from, or a word that says what it is.
        severity: error, warning or info.
        message: what is wrong, in one sentence, without numbers of nodes.
        file: the dump, log or other file.
        line: in the file, from 1; 0 where it belongs to the whole file.
        column: from 1; of a node, where its operator stands.
        end_column: where what is meant ends (exclusive); ``column`` if that is not known.
        node: ``%4``; None where no node is meant.
        op: the node's operator, or the one that a log names.
        graph: the graph that holds it.
        scope: the node's scope.
        is_backward: whether the node computes a gradient.
        statement: the line of the file, shortened.
        source: the user's line of Python, the innermost outside MindSpore.
        frames: all of the user's lines that led to the node, outermost call first.
        check: the place in MindSpore that refuses it, ``file.cc:Function``; "" where there is none.
        hint: what it means, and what to do about findings of this kind.
        fix: what to write instead, here; None where irtool does not know.
        edit: the same as a change of a line or a setting, where it is one.
        gain: what that is worth.
        command: the command to type next.
        reference: where it is said: a page, a part of MindSpore.
        related: other places.
        rank: whose dump it is; None where nobody says.
        ranks: all ranks that it holds for.
        key: what tells it from other findings of the rule at the same place (a parameter's name).
        fingerprint: stays the same when nodes are renumbered and lines move; "" until made.
        suppressed: why it is not to be reported; "" for all others.
        subject: the node or parameter of the model that it is about, while somebody holds the
            model; it is not written.
    """

    code: str
    severity: Severity
    message: str
    file: str = ""
    line: int = 0
    column: int = 1
    end_column: int = 1
    node: str | None = None
    op: str | None = None
    graph: str | None = None
    scope: str | None = None
    is_backward: bool = False
    statement: str = ""
    source: SourceLine | None = None
    frames: tuple[SourceLine, ...] = ()
    check: str = ""
    hint: str = ""
    fix: str | None = None
    edit: Edit | None = None
    gain: Gain | None = None
    command: str = ""
    reference: str = ""
    related: tuple[RelatedPlace, ...] = ()
    rank: int | None = None
    ranks: tuple[int, ...] = ()
    key: str = ""
    fingerprint: str = field(default="", compare=False)
    suppressed: str = field(default="", compare=False)
    subject: object = field(default=None, compare=False, repr=False)

    @property
    def place(self) -> str:
        """``FILE:LINE:COLUMN``, or the file alone."""
        return f"{self.file}:{self.line}:{self.column}" if self.line else self.file

    @property
    def instead(self) -> str | None:
        """What to do about it here, as text: the fix, else the edit."""
        return self.fix or (self.edit.text if self.edit is not None else None)

    def __str__(self) -> str:
        return f"{self.place}: {self.severity}[{self.code}]: {self.message}"


@dataclass(frozen=True, slots=True)
class ThresholdText:
    """A number that decides when a rule speaks."""

    name: str
    default: int | float
    unit: str
    meaning: str


@dataclass(frozen=True, slots=True)
class RuleText:
    """What documents and reports say of a rule.

    ``needs`` is what it has to know beside the dump, ``dumps`` which dumps it looks at, in words;
    ``origin`` names the package that it comes from, "" for irtool's own; ``cases`` names dumps that
    MindSpore printed, on which it speaks.
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
    cases: tuple[str, ...] = ()


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
