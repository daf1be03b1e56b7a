"""Which files a command reads, and how: paths to inputs, inputs to dumps."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from dataclasses import replace

from irtool.cli.report import Failure, report_problems
from irtool.ir.dump import Dump
from irtool.ir.finding import Finding
from irtool.ir.group_names import MOST_RANKS
from irtool.ir.groups import is_rank
from irtool.ir.run import InputFile
from irtool.ir.units import ranks_text
from irtool.syntax import file_facts
from irtool.syntax.load import load
from irtool.syntax.run.expanding import STDIN, expand
from irtool.syntax.run.names import parse_name
from irtool.syntax.source import DumpError

STDIN_NAME = "<stdin>"


def inputs_for(
    paths: Sequence[str], rank: int | None = None, compilation: int | None = None
) -> tuple[list[InputFile], tuple[Finding, ...]]:
    """The files that some paths stand for, and what could not be opened.

    Args:
        paths: as given on the command line.
        rank: where the files belong to several ranks, which to read; else whose they are.
        compilation: in run folders, which compilation's dumps to read.

    Raises:
        Failure: there is no such rank or compilation.
    """
    expansion = expand(paths)
    files = list(expansion.files)
    if compilation is not None and files:
        numbers = {file.compilation for file in files if file.compilation is not None}
        files = [file for file in files if file.compilation == compilation]
        if not files:
            have = ", ".join(map(str, sorted(numbers))) or "none: give a run folder"
            raise Failure(f"there is no compilation {compilation}", hint=f"there are: {have}")
    if rank is not None and files:
        files = _of_rank(files, rank)
    return files, expansion.problems


def _of_rank(files: list[InputFile], rank: int) -> list[InputFile]:
    if not is_rank(rank):
        raise Failure(f"there is no rank {rank}", hint=f"ranks are numbers below {MOST_RANKS}")
    ranks = sorted({file.rank for file in files if file.rank is not None})
    if len(ranks) < 2:
        return [replace(file, rank=rank) for file in files]
    chosen = [file for file in files if file.rank == rank]
    if not chosen:
        raise Failure(f"there is no rank {rank}", hint=f"there are: {ranks_text(ranks)}")
    return chosen


def pass_name(file: InputFile) -> str | None:
    """After which pass a dump was taken, by its name.

    Args:
        file: the dump.

    Returns:
        ``validate``; None for standard input.
    """
    if file.path == STDIN:
        return None
    return file.name or parse_name(os.path.basename(file.path)).name


def read_input(file: InputFile) -> Dump:
    """The dump that an input holds.

    Args:
        file: the dump; standard input where its path is ``-``.

    Raises:
        DumpError: it cannot be read at all.
    """
    if file.path == STDIN:
        file_facts.cannot_repeat()
        return load(sys.stdin.buffer, STDIN_NAME)
    return load(file.path)


def read_statements(file: InputFile) -> Dump:
    """Read one input that has statements; an empty one's problems go to stderr.

    Args:
        file: the dump; standard input where its path is ``-``.

    Raises:
        Failure: it cannot be read, or there is no statement in it.
    """
    try:
        dump = read_input(file)
    except DumpError as error:
        raise Failure(error.message, error.path, hint=error.hint, code="SYN000") from None
    if not any(True for _ in dump.nodes()):
        report_problems(dump.problems)
        place = STDIN_NAME if file.path == STDIN else file.path
        raise Failure("there is no statement in this dump", place, code="SYN000")
    return dump


def input_size(file: InputFile) -> int:
    """Bytes of the file as it lies there; 0 where nobody knows.

    Args:
        file: the dump; of standard input nobody knows.
    """
    return 0 if file.path == STDIN else file_facts.file_size(file.path)
