"""Findings made small: files, lines and bytes go as long as the finding stays the same."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import replace

from benchmarks.fuzzing.case import READ, Case
from benchmarks.fuzzing.pool import Worker


def minimised(case: Case, signature: str, worker: Worker, seconds: float) -> Case:
    """The smallest case that was found to have the same finding.

    Args:
        case: one that has it.
        signature: of the finding.
        worker: what cases run in.
        seconds: how long to try.
    """
    end = time.monotonic() + seconds

    def same(tried: Case) -> bool:
        return time.monotonic() < end and worker.run_case(tried).signature == signature

    if case.command != READ:
        case = _without_words(_without_files(case, same), same)
    for name in sorted(case.files, key=lambda name: -len(case.files[name])):
        case = _smaller(case, name, same, b"\n")
        if len(case.files[name]) < 4000:
            case = _smaller(case, name, same, b"")
    return case


def _without_files(case: Case, same: Callable[[Case], bool]) -> Case:
    for name in list(case.files):
        fewer = {other: data for other, data in case.files.items() if other != name}
        tried = replace(case, files=fewer)
        if fewer and same(tried):
            case = tried
    return case


def _without_words(case: Case, same: Callable[[Case], bool]) -> Case:
    """Options that don't matter go, with or without their value."""
    at = 1
    while at < len(case.argv):
        for count in (2, 1):
            argv = case.argv[:at] + case.argv[at + count :]
            if case.argv[at].startswith("-") and same(replace(case, argv=argv)):
                case = replace(case, argv=argv)
                break
        else:
            at += 1
    return case


def _smaller(case: Case, name: str, same: Callable[[Case], bool], separator: bytes) -> Case:
    """Delta debugging over the lines of a file, or over its bytes."""
    data = case.files[name]
    pieces = data.split(separator) if separator else [bytes((byte,)) for byte in data]

    def with_pieces(kept: Sequence[bytes]) -> Case:
        return replace(case, files={**case.files, name: separator.join(kept)})

    count = 2
    while len(pieces) >= 2:
        size = max(1, len(pieces) // count)
        for start in range(0, len(pieces), size):
            kept = pieces[:start] + pieces[start + size :]
            if same(with_pieces(kept)):
                pieces = kept
                count = max(count - 1, 2)
                break
        else:
            if size == 1:
                break
            count = min(count * 2, len(pieces))
    return with_pieces(pieces)
