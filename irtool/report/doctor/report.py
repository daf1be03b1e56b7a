"""The report of ``irtool doctor``: one ranked screen; a page links the pages of each question."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from irtool.diagnosis.diagnosis import Diagnosis
from irtool.diagnosis.examine import Examination, ranks_of
from irtool.ir.finding import Gain
from irtool.ir.units import bytes_text, count_text, plural, ranks_text, seconds_text, share_text
from irtool.report.model import (
    Answer,
    Cell,
    Element,
    Facts,
    Note,
    Report,
    Tone,
    rows_shown,
)

_MOST = 10


def doctor_report(
    examination: Examination,
    limit: int | None,
    is_page: bool,
    pages: Sequence[tuple[str, str]] = (),
) -> Report:
    """What is wrong, the gravest first; of a healthy run the figures that one wants first.

    Args:
        examination: what the doctor says.
        limit: findings that text tells of.
        is_page: whether all are shown.
        pages: of each question, beside the page of all: the command and its file. One that a
            finding names stands behind it, others behind the overview.
    """
    elements: list[Element] = [Facts(list(_figures(examination)))]
    linked = dict(pages)
    commands = {item.command for item in examination.findings}
    elements += [Note(title, page=file) for title, file in pages if title not in commands]
    most = None if is_page else rows_shown(limit, _MOST)
    shown = examination.findings[:most]
    for number, item in enumerate(shown, 1):
        title = f"{number}. {item.severity}, {item.task}: {item.message}"
        page = linked.get(item.command)
        elements.append(Facts(list(_finding(item, with_command=page is None)), title))
        if page is not None:
            elements.append(Note(item.command, page=page))
    if len(shown) < len(examination.findings):
        rest = plural(len(examination.findings) - len(shown), "more finding")
        elements.append(Note(f"… {rest} (--limit 0 shows all)"))
    if examination.not_judged:
        elements.append(
            Facts([(item.task, item.why) for item in examination.not_judged], "Not judged")
        )
    return Report(f"doctor: {examination.path}", _answer(examination), elements, examination.path)


def _answer(examination: Examination) -> Answer:
    counts = Counter(item.severity for item in examination.findings)
    parts = [
        plural(counts[severity], noun)
        for severity, noun in (("error", "error"), ("warning", "warning"), ("info", "opportunity"))
        if counts[severity]
    ]
    text = ", ".join(parts)
    tone: Tone = "bad"
    if examination.is_healthy is not False:
        is_known = examination.is_healthy is True
        tone = "good" if is_known else "unknown"
        clear = "nothing wrong" if is_known else "nothing wrong in what could be judged"
        text = f"{clear}; {text}" if text else clear
    return Answer(text, tone)


def _figures(examination: Examination) -> Iterator[tuple[str, Cell]]:
    figures = examination.figures
    if figures.devices is not None:
        axes = " × ".join(map(str, figures.axes))
        stages = f", {plural(figures.stages or 1, 'stage')}"
        matrix = f", device matrix {axes}" if axes else ""
        yield "devices", f"{count_text(figures.devices)}{stages}{matrix}"
    if figures.ranks:
        yield "ranks", ranks_text(figures.ranks)
    if figures.parameters:
        yield "weights", f"{count_text(figures.parameters)} elements a stage"
    if figures.step is not None:
        largest = sorted(figures.seconds.items(), key=lambda pair: -pair[1])[:4]
        causes = ", ".join(f"{cause} {seconds_text(seconds)}" for cause, seconds in largest)
        stage = f" on stage {figures.stage}" if (figures.stages or 1) > 1 else ""
        predicted = f"{seconds_text(figures.step)}{stage} as predicted for {figures.target}"
        yield "step", f"{predicted}: {causes}"
    if figures.communication is not None:
        yield "communication", f"{share_text(figures.communication)} of the step"
    if figures.peak is not None:
        buffers = figures.communicators
        part = f", of which {bytes_text(buffers)} are communicator buffers" if buffers else ""
        yield "memory", f"{bytes_text(figures.peak)} at the peak{part}"


def _finding(item: Diagnosis, *, with_command: bool) -> Iterator[tuple[str, Cell]]:
    ranks = ranks_of(item)
    if ranks:
        yield "rank", ranks
    if item.since:
        yield "since", item.since
    if item.file:
        place = f"{item.file}:{item.line}" if item.line else item.file
        yield "where", f"{item.node} at {place}" if item.node else place
    if item.source is not None:
        text = f": {item.source.text}" if item.source.text else ""
        yield "source", f"{item.source.path}:{item.source.line}{text}"
    if item.edit is not None:
        edit = item.edit
        yield (
            "edit",
            (
                f"{edit.setting} = {edit.value}"
                if edit.setting
                else f"{edit.file}:{edit.line}: {edit.new} instead of {edit.old}"
            ),
        )
    elif item.no_edit:
        yield "edit", f"none: {item.no_edit}"
    if item.gain is not None and (text := _gain(item)):
        yield "gains", text
    if with_command:
        yield "more", item.command


def _gain(item: Diagnosis) -> str:
    gain = item.gain or Gain()
    is_compile = item.task == "slow-compile"  # the least that is known
    of, least = ("of compilation", "at least ") if is_compile else ("a step", "")
    parts: list[str] = []
    if gain.seconds is not None:
        parts.append(f"{least}{seconds_text(gain.seconds)} {of}")
    if gain.bytes is not None:
        parts.append(f"{bytes_text(gain.bytes)} of memory")
    return ", ".join(parts)


def commands_of(examination: Examination) -> Sequence[tuple[str, ...]]:
    """The commands that findings name, and those behind the figures of the overview, each once.

    Args:
        examination: of a run.

    Returns:
        the words of each, in the order of the findings.
    """
    figures, commands = examination.figures, [item.arguments for item in examination.findings]
    if figures.step is not None:
        commands.append(("irtool", "cost", examination.path))
    if figures.peak is not None:
        commands += [
            ("irtool", "memory", examination.path),
            ("irtool", "comm", "groups", examination.path),
        ]
    if (figures.stages or 1) > 1:
        commands.append(("irtool", "pipeline", examination.path))
    return list(dict.fromkeys(commands))
