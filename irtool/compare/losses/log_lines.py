"""Steps in logs: which lines tell a step, and what they say of it.

Recognised are MindSpore's LossMonitor (``epoch: 1 step: 100, loss is 2.34``), MindFormers
(``{ Epoch:[  1/ 2], step:[ 100/ 1000], loss: 2.34, …}``), Megatron (``iteration 100/ 1000 | … |
lm loss: 2.34E+00 | grad norm: 1.2 |``), the Hugging Face trainer (``{'loss': 2.34, 'epoch': 0.1}``)
and the usual home-made forms (``Epoch [1/5], Step [100/600], Loss: 0.3``; ``step 100 loss=2.34``).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import field

from irtool.compare.losses.series import LossRun, NoLoss, series
from irtool.ir.dataclass import dataclass

_NUMBER = r"([-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?|[-+]?nan|[-+]?inf(?:inity)?)"
_GAP = r"['\"]?\s*(?:is|[:=\[(]|\s)\s*[\[(]?\s*"
_OPEN = r"['\"]?\s*[:=\[(#]?\s*[\[(]?\s*"
_STEP = re.compile(
    r"(?<![\w.-])['\"]?(?:global[ _]?step|iteration|iter|steps?|it)" + _OPEN + r"(\d+)",
    re.IGNORECASE,
)
_EPOCH = re.compile(
    r"(?<![\w.])['\"]?epochs?['\"]?\s*[:=\[(]?\s*[\[(]?\s*(\d+)(?![\d.])", re.IGNORECASE
)
_LOSS = re.compile(
    r"(?<![\w/])['\"]?(?:(?:lm|train(?:ing)?|total|avg|mean|current)[ _/]?)?loss" + _GAP + _NUMBER,
    re.IGNORECASE,
)
_OTHERS: dict[str, re.Pattern[str]] = {
    name: re.compile(r"(?<![\w])['\"]?(?:" + words + ")" + _GAP + _NUMBER, re.IGNORECASE)
    for name, words in (
        ("grad_norm", r"grad(?:ient)?[ _]?norm|global[ _]?norm|gnorm"),
        ("learning_rate", r"learning[ _]?rate|lr"),
        ("loss_scale", r"loss[ _]?scale"),
        ("global_batch_size", r"global[ _]?batch[ _]?size"),
    )
}
_ESCAPES = re.compile(r"\x1b\[[0-9;]*[A-Za-z]")
_LONGEST = 4_000
"""Characters of a line that are looked at: lines with steps are short."""


@dataclass(slots=True)
class _Steps:
    """Numbers steps through: a log that starts anew in every epoch goes on counting here."""

    epoch: int | None = None
    offset: int = 0
    last: int = -1
    highest: int = field(default=-1)

    def number(self, step: int | None, epoch: int | None) -> int:
        if step is None:
            step_here = self.highest + 1
        else:
            next_epoch = epoch is not None and self.epoch is not None and epoch > self.epoch
            if next_epoch and step <= self.last:
                # Steps start at 1 in MindSpore's logs, at 0 in others.
                self.offset = self.highest + (0 if step > 0 else 1)
            step_here = step + self.offset
            self.last = step
        self.epoch = epoch if epoch is not None else self.epoch
        self.highest = max(self.highest, step_here)
        return step_here


def read_log(lines: Iterable[str], path: str) -> LossRun:
    """The loss curve of a log.

    Args:
        lines: of the log.
        path: where it was read.

    Returns:
        The loss, and what else the same lines say, by step.

    Raises:
        NoLoss: no line tells a loss.
    """
    losses: list[tuple[int, str]] = []
    others: dict[str, list[tuple[int, str]]] = {}
    steps = _Steps()
    for line in _candidates(lines):
        loss = _LOSS.search(line)
        if loss is None:
            continue
        step, epoch = _STEP.search(line), _EPOCH.search(line)
        number = steps.number(int(step[1]) if step else None, int(epoch[1]) if epoch else None)
        losses.append((number, loss[1]))
        for name, pattern in _OTHERS.items():
            match = pattern.search(line)
            if match:
                others.setdefault(name, []).append((number, match[1]))
    if not losses:
        raise NoLoss("no line tells a loss, like 'step: 100, loss is 2.34'")
    made = {name: series(pairs) for name, pairs in others.items()}
    return LossRun(path, "log", series(losses), made)


def _candidates(lines: Iterable[str]) -> Iterator[str]:
    """Lines that may tell a loss, without colours."""
    for line in lines:
        if len(line) > _LONGEST or ("oss" not in line and "OSS" not in line):
            continue
        yield _ESCAPES.sub("", line) if "\x1b" in line else line
