#!/usr/bin/env python3
"""Compile networks of one operator with MindSpore's own front end, and keep what it said.

    PYTHON_OF_MINDSPORE benchmarks/record_operators/record.py [FAMILY...] [--only OPERATOR...]

Each family of ``catalogue/`` becomes ``records/FAMILY.jsonl.xz``. A record that is there (same
case, same version of MindSpore) is not made again, so an interrupted run goes on where it stopped,
and a new entry of the catalogue costs its own cases only; ``--again`` makes all anew. README.md
describes the records.
"""

from __future__ import annotations

import argparse
import importlib
import json
import lzma
import os
import pkgutil
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))

import catalogue  # noqa: E402
from compiling import OUT_OF_TIME, Compiler  # noqa: E402
from forms import Form, case, identity, layout_cases, output_cases, tuple_cases  # noqa: E402

RECORDS = HERE / "records"
OF_A_TUPLE = "it is not supported that the sens is a tuple"
NO_GRADIENT = "bprop not defined"
BREADTHS = ("few", "thin", "full")


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    names = sorted(module.name for module in pkgutil.iter_modules(catalogue.__path__))
    parser.add_argument("family", nargs="*", help=f"{', '.join(names)} (default: all)")
    parser.add_argument("--only", nargs="*", help="only these operators")
    parser.add_argument(
        "--breadth", choices=BREADTHS, default="full", help="no more cases of a form than this"
    )
    parser.add_argument("--again", action="store_true", help="make records that are there anew")
    parser.add_argument(
        "--pack", action="store_true", help="only write what an unfinished run has made so far"
    )
    parser.add_argument(
        "--fresh", type=int, metavar="N",
        help="make one in N of the records again, each in a process of its own, and compare",
    )  # fmt: skip
    parser.add_argument("--one", action="store_true", help="the case on standard input alone")
    parser.add_argument("--out", type=Path, default=RECORDS)
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    if options.pack:
        for name in names:
            pack(name, Store(options.out / f"{name}.jsonl.xz", None))
        return 0
    if options.fresh:
        return compare_fresh(options)
    compiler = Compiler()
    try:
        if options.one:
            sys.stdout.write(json.dumps(next(compiler.run([json.load(sys.stdin)]))))
            return 0
        for name in options.family or names:
            record_family(name, compiler, options)
    finally:
        compiler.close()
    return 0


def record_family(name: str, compiler: Compiler, options: argparse.Namespace) -> None:
    """Make the records of a family that are missing, and write its file."""
    forms: list[Form] = importlib.import_module(f"catalogue.{name}").FORMS
    store = Store(options.out / f"{name}.jsonl.xz", compiler, again=options.again)
    began = time.time()
    for form in forms:
        if options.only and form.operator not in options.only:
            continue
        breadth = min(form.breadth, options.breadth, key=BREADTHS.index)
        record_form(replace(form, breadth=breadth), store)
    whole = not options.only and options.breadth == "full"
    store.write({identity(item) for item in store.asked} if whole else None)
    print(
        f"{name}: {len(store.asked)} cases, {store.made} made in {time.time() - began:.0f} s",
        flush=True,
    )


class Store:
    """The records of one family: those of its file, and of a journal that a run left behind."""

    def __init__(self, path: Path, compiler: Compiler | None, *, again: bool = False) -> None:
        self.path, self.compiler = path, compiler
        self.journal = path.with_suffix(".journal")
        self.records: dict[tuple[str, str], dict[str, Any]] = {}
        self.asked: list[dict[str, Any]] = []
        self.made = 0
        if path.exists() and not again:
            with lzma.open(path, "rt", encoding="utf-8", errors="surrogateescape") as stream:
                self._add(stream)
        if self.journal.exists():
            with open(self.journal, encoding="utf-8", errors="surrogateescape") as stream:
                self._add(stream)

    def _add(self, lines: Iterator[str] | Any) -> None:
        for line in lines:
            if line.endswith("\n"):
                record = json.loads(line)
                if record.get("error") == OUT_OF_TIME:  # says more of the machine than of the case
                    continue
                self.records[identity(record["case"]), record["mindspore"]] = record

    def all(self, descriptions: list[dict[str, Any]]) -> list[dict[str, Any]]:
        """The records of some cases; those that are not there are made now."""
        self.asked += descriptions
        assert self.compiler is not None
        version = self.compiler.version
        missing = {
            identity(description): json.loads(json.dumps(description))
            for description in descriptions
            if (identity(description), version) not in self.records
        }
        for record in self.compiler.run(list(missing.values())):
            self.records[identity(record["case"]), version] = record
            self.made += 1
            with open(self.journal, "a", encoding="utf-8", errors="surrogateescape") as stream:
                stream.write(json.dumps(record) + "\n")
        return [self.records[identity(description), version] for description in descriptions]

    def write(self, keep: set[str] | None) -> None:
        """Write the family's file; cases that the catalogue no longer has are dropped."""
        version = self.compiler.version if self.compiler is not None else ""
        chosen = [
            record
            for (case_id, made_by), record in self.records.items()
            if keep is None or case_id in keep or made_by != version
        ]
        chosen.sort(key=lambda record: (
            record["case"]["operator"], record["case"]["form"], record["mindspore"],
            record["case"]["kind"], identity(record["case"]),
        ))  # fmt: skip
        partial = self.path.with_suffix(f".{os.getpid()}.part")
        filters = [
            {"id": lzma.FILTER_LZMA2, "preset": 9 | lzma.PRESET_EXTREME, "dict_size": 1 << 24}
        ]
        with lzma.open(
            partial, "wt", encoding="utf-8", errors="surrogateescape", filters=filters
        ) as stream:
            stream.writelines(json.dumps(record, separators=(",", ":")) + "\n" for record in chosen)
        os.replace(partial, self.path)
        if self.compiler is not None:
            self.journal.unlink(missing_ok=True)


def pack(name: str, store: Store) -> None:
    """Write what there is of a family, without the forms that its catalogue no longer has."""
    forms = {form.text for form in importlib.import_module(f"catalogue.{name}").FORMS}
    gone = [key for key, record in store.records.items() if record["case"]["form"] not in forms]
    for key in gone:
        del store.records[key]
    if gone or store.journal.exists():
        store.write(None)


def compare_fresh(options: argparse.Namespace) -> int:
    """Whether records are what a process that compiles nothing else makes."""
    asked = different = 0
    for path in sorted(options.out.glob("*.jsonl.xz")):
        if options.family and path.name.partition(".")[0] not in options.family:
            continue
        for (name, _), record in Store(path, None).records.items():
            if int(name, 16) % options.fresh:
                continue
            told = subprocess.run(
                [sys.executable, __file__, "--one"],
                input=json.dumps(record["case"]), capture_output=True, text=True, check=False,
            )  # fmt: skip
            asked += 1
            fresh = json.loads(told.stdout) if told.stdout else {}
            keys = [key for key in {*record, *fresh} if _plain(record, key) != _plain(fresh, key)]
            different += bool(keys)
            if keys:
                print(name, record["case"]["form"], keys, flush=True)
    print(f"{asked} made again, {different} different")
    return 1 if different else 0


def _plain(record: dict[str, Any], key: str) -> str:
    """A value without the numbers that MindSpore counts up through a process."""
    text = json.dumps(record.get(key), sort_keys=True)
    return re.sub(r"CNode_\d+|Info\d+|construct_\d+|@\d+_|\d+_\d*one_operator|: 0x0", "", text)


def record_form(form: Form, store: Store) -> None:
    """All cases of a form: tuples, layouts, then outputs after what those gave."""
    fitted = fit(form, store)
    if fitted is None:
        return
    records = store.all([*tuple_cases(fitted), *layout_cases(fitted)])
    store.all(list(output_cases(fitted, records)))


def fit(form: Form, store: Store) -> Form | None:
    """The form with gradients of all its outputs, of the first, or without, whatever compiles.

    Some operators have no gradient, and MindSpore takes none of a tuple. Where no way is accepted
    it is the first that the parallel pass refuses; None if the network can't be built at all: the
    record of that stays, for the catalogue to be mended.
    """
    refused: Form | None = None
    error, options = "", [{}, {"gradient": False}, {"returns": 0}]
    while options:
        tried = replace(form, options={**form.options, **options.pop(0)})
        record = store.all([case(tried, None, kind="none")])[0]
        if record["verdict"] == "accepted":
            return tried
        error = record.get("error", "")
        if OF_A_TUPLE in error:
            options.insert(0, {"returns": 0})
        elif record["verdict"] == "refused" or is_slice_problem(record):
            refused = refused or tried
    if refused is None:
        print(f"  not built: {form.text}: {error[:300]!r}", flush=True)
    return refused


def is_slice_problem(record: dict[str, Any]) -> bool:
    """Whether a later pass fails on what the parallel pass made, as on slices that differ."""
    return record["verdict"] == "later" and NO_GRADIENT not in record.get("error", "")


if __name__ == "__main__":
    sys.exit(main())
