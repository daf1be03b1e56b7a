"""Which files a command reads, and how: paths to inputs, inputs to dumps."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from dataclasses import replace

from irtool.cli.report import Failure
from irtool.ir.dump import Dump
from irtool.ir.run import InputFile
from irtool.syntax.load import load
from irtool.syntax.run_names import parse_name
from irtool.syntax.source import DumpError

STDIN = "-"
STDIN_NAME = "<stdin>"


def expand(paths: Sequence[str]) -> list[InputFile]:
    """Placeholder until irtool.syntax.run has it."""
    import glob
    import re

    found: list[InputFile] = []
    for path in paths:
        names = [path]
        if path != STDIN and not os.path.exists(path) and glob.has_magic(path):
            names = sorted(glob.glob(path, recursive=True))
            if not names:
                raise DumpError(path, "no file matches")
        for name in names:
            if os.path.isdir(name):
                inner = sorted(glob.glob(os.path.join(glob.escape(name), "**", "*.ir*"), recursive=True))
                if not inner:
                    raise DumpError(name, "no dumps in this folder")
                for item in inner:
                    rank = re.findall(r"rank_(\d+)", item)
                    found.append(InputFile(item, int(rank[-1]) if rank else None, run=name))
            else:
                found.append(InputFile(name))
    return found


def inputs_for(
    paths: Sequence[str], rank: int | None = None, compilation: int | None = None
) -> list[InputFile]:
    """The files that some paths stand for.

    Args:
        paths: as given on the command line.
        rank: where the files belong to several ranks, which to read; else whose they are.
        compilation: in run folders, which compilation's dumps to read.

    Raises:
        Failure: there is nothing to read.
    """
    try:
        found = expand(paths)
    except DumpError as error:
        raise Failure(error.message, error.path, hint=error.hint, code="SYN000") from None
    if compilation is not None:
        numbers = sorted({each.compilation for each in found if each.compilation is not None})
        found = [each for each in found if each.compilation == compilation]
        if not found:
            have = ", ".join(map(str, numbers)) or "none"
            raise Failure(f"there is no compilation {compilation} here", hint=f"there are: {have}")
    if rank is not None:
        found = _of_rank(found, rank)
    return found


def _of_rank(found: list[InputFile], rank: int) -> list[InputFile]:
    ranks = sorted({each.rank for each in found if each.rank is not None})
    if len(ranks) < 2:
        return [replace(each, rank=rank) for each in found]
    chosen = [each for each in found if each.rank == rank]
    if not chosen:
        raise Failure(f"there is no rank {rank} here", hint=f"there are: {ranks}")
    return chosen


def pass_name(file: InputFile) -> str | None:
    """After which pass a dump was taken, by its name."""
    if file.path == STDIN:
        return None
    return file.name or parse_name(os.path.basename(file.path)).name


def read_input(file: InputFile) -> Dump:
    """Read one input.

    Raises:
        DumpError: it cannot be read at all.
    """
    if file.path == STDIN:
        return load(sys.stdin.buffer, STDIN_NAME)
    return load(file.path)


def input_size(file: InputFile) -> int:
    """Bytes of the file as it lies there; 0 where nobody knows."""
    try:
        return 0 if file.path == STDIN else os.stat(file.path).st_size
    except OSError:
        return 0
