#!/usr/bin/env python3
"""Draw networks of one operator, and keep what MindSpore's own front end makes of them.

    PYTHON_OF_MINDSPORE benchmarks/record_operators/drawn.py --seed 7 --count 300 --out FILE.jsonl
    python benchmarks/replay_operators.py ./FILE.jsonl --list disagreements.txt

An operator is drawn first, then one of its forms in ``catalogue/``, then sizes, ranks, devices and
what is given: layouts of inputs (``--kind layout``, the default), also of outputs
(``out_layout``), or tuple strategies (``tuple``). Nothing of it is in the catalogue's own cases
but by chance, so that an answer that is right here was not learnt from its record. What can't be
built with drawn sizes is built with the catalogue's. One seed draws the same cases with every
version of MindSpore (``--versions`` compares two files made so).
"""

from __future__ import annotations

import argparse
import importlib
import json
import pkgutil
import random
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))

import catalogue  # noqa: E402
from compiling import Compiler  # noqa: E402
from dumps import output_shapes  # noqa: E402
from forms import Form, case, letters_of  # noqa: E402

DEVICES = (4, 8, 8, 8, 16, 32)
SIZES = (8, 16, 24, 32, 40, 48, 64, 96, 128, 12, 6)
ILLEGAL = 0.25
"""Share of cases that are spoilt on purpose; of the others many are illegal of themselves."""


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seed", type=int)
    parser.add_argument("--count", type=int, default=300)
    parser.add_argument("--kind", choices=("layout", "out_layout", "tuple"), default="layout")
    parser.add_argument("--only", nargs="*", help="only these operators")
    parser.add_argument(
        "--takes-layouts", action="store_true", help="only operators that layouts.tsv says take any"
    )
    parser.add_argument(
        "--unknown-sizes", action="store_true", help="only forms with sizes that are not known"
    )
    parser.add_argument("--out", type=Path)
    parser.add_argument("--versions", nargs=2, type=Path, metavar="FILE")
    options = parser.parse_args()
    if options.takes_layouts:
        rows = (line.split("\t") for line in (HERE / "layouts.tsv").read_text().splitlines())
        options.only = [row[0] for row in rows if row[1] in ("yes", "by form")]
    if options.versions:
        return compare(*options.versions)
    compiler = Compiler()
    try:
        with open(options.out, "a", encoding="utf-8", errors="surrogateescape") as stream:
            for record in drawn(compiler, options):
                stream.write(json.dumps(record) + "\n")
                stream.flush()
    finally:
        compiler.close()
    return 0


def drawn(compiler: Compiler, options: argparse.Namespace) -> Iterator[dict[str, Any]]:
    """The records of as many cases as asked for; what could not be built is drawn again."""
    by_operator: dict[str, list[Form]] = {}
    for module in sorted(one.name for one in pkgutil.iter_modules(catalogue.__path__)):
        if module == "common":
            continue
        for form in importlib.import_module(f"catalogue.{module}").FORMS:
            if options.unknown_sizes and all(isinstance(n, int) for n in form.sizes.values()):
                continue
            if form.letters and (not options.only or form.operator in options.only):
                by_operator.setdefault(form.operator, []).append(form)
    made = 0
    kind = f"{options.kind} {options.takes_layouts}" + " unknown" * options.unknown_sizes
    for number in range(20 * options.count):
        draw = random.Random(f"{options.seed} {kind} {number}")
        form = draw.choice(by_operator[draw.choice(sorted(by_operator))])
        record = one(form, draw, options.kind, compiler)
        if record is not None:
            yield record
            made += 1
        if made == options.count:
            return


def one(form: Form, draw: random.Random, kind: str, compiler: Compiler) -> dict[str, Any] | None:
    """One case of a form, with drawn sizes if it can be built so; None if it can't at all."""
    devices = draw.choice(DEVICES)
    for shaped in (resized(form, draw), form):
        given = layouts(shaped, draw, devices) if kind != "tuple" else tuples(shaped, draw, devices)
        for more in ({}, {"returns": 0}, {"gradient": False}):
            asked = replace(shaped, options={**shaped.options, **more})
            description = case(
                asked, given, kind="tuple" if kind == "tuple" else "layout", devices=devices
            )
            (record,) = compiler.run([json.loads(json.dumps(description))])
            if "sens is a tuple" in record.get("error", ""):
                continue
            if "bprop not defined" in record.get("error", ""):
                continue
            break
        if record["verdict"] == "unbuilt":
            continue
        if kind != "out_layout":
            return record
        if record["verdict"] != "accepted":
            return None
        return with_outputs(asked, record, draw, compiler)
    return None


def resized(form: Form, draw: random.Random) -> Form:
    """The form with other sizes, all different, and with a dimension more where that may be."""
    spare = list(SIZES)
    draw.shuffle(spare)
    letters = [letter for letter in letters_of(form) if isinstance(form.sizes[letter], int)]
    plain = all("values" not in one for one in form.arguments if isinstance(one, dict))
    named = [size for size in form.attributes.values() if isinstance(size, int)]  # out_channel
    sizes = {
        letter: spare.pop() if spare and plain else form.sizes[letter]
        for letter in letters
        if form.sizes[letter] >= 8 and form.sizes[letter] not in named
    }

    def moved(argument: Any, operand: list[str]) -> Any:
        if isinstance(argument, dict) and "tuple" in argument:
            return {"tuple": [moved(item, operand) for item in argument["tuple"]]}
        if isinstance(argument, dict) and "shape" in argument:
            shape = [
                sizes.get(letter, size)
                for letter, size in zip(operand.pop(0), argument["shape"], strict=True)
            ]
            return {**argument, "shape": shape}
        return argument

    left = list(form.letters)
    return replace(
        form,
        arguments=[moved(argument, left) for argument in form.arguments],
        sizes={**form.sizes, **sizes},
    )


def matrix_of(draw: random.Random, devices: int) -> list[int]:
    """A device matrix of all devices, of one to four axes; some of size 1."""
    matrix = [1] * draw.choice((1, 2, 2, 3, 3, 4))
    rest = devices
    while rest > 1:
        matrix[draw.randrange(len(matrix))] *= 2
        rest //= 2
    return matrix


def layouts(form: Form, draw: random.Random, devices: int) -> dict[str, Any]:
    """Layouts that split some letters, everywhere alike; one in four is spoilt."""
    matrix = matrix_of(draw, devices)
    names = list("xyzw"[: len(matrix)])
    spoilt = draw.random() < ILLEGAL
    letters = letters_of(form)
    axes: dict[str, Any] = {}
    spare = list(names)
    draw.shuffle(spare)
    for letter in draw.sample(letters, len(letters)):
        if not spare or draw.random() < 0.45:
            continue
        size = form.sizes[letter]
        axis = spare[0]
        cut = matrix[names.index(axis)]
        if isinstance(size, int) and size % cut and draw.random() < 0.9:
            continue
        axes[letter] = spare.pop(0)
        if spare and draw.random() < 0.15:
            axes[letter] = [axes[letter], spare.pop(0)]
    maps = [[axes.get(letter, "None") for letter in operand] for operand in form.letters]
    if spoilt:
        spoil(maps, names, draw)
    return {"matrix": matrix, "names": names, "maps": maps}


def spoil(maps: list[list[Any]], names: list[str], draw: random.Random) -> None:
    """Another axis, or none, in one dimension of one operand; or a dimension too many."""
    operand = draw.randrange(len(maps))
    if maps[operand] and draw.random() < 0.9:
        used = [
            axis
            for entry in maps[operand]
            for axis in ([entry] if isinstance(entry, str) else entry)
        ]
        free = [name for name in names if name not in used]
        maps[operand][draw.randrange(len(maps[operand]))] = draw.choice(["None", *free])
    elif draw.random() < 0.5:
        maps[operand].append("None")
    elif len(maps) > 1:
        maps.pop()


def tuples(form: Form, draw: random.Random, devices: int) -> list[list[int]]:
    """A tuple strategy that splits some letters, everywhere alike; one in four is spoilt."""
    rest = devices
    split: dict[str, int] = {}
    letters = letters_of(form)
    for letter in draw.sample(letters, len(letters)):
        size = form.sizes[letter]
        options = [
            p for p in (1, 2, 4, 8) if p <= rest and not (isinstance(size, int) and size % p)
        ]
        split[letter] = draw.choice(options)
        rest //= split[letter]
    rows = [[split.get(letter, 1) for letter in operand] for operand in form.letters]
    if draw.random() < ILLEGAL:
        operand = draw.randrange(len(rows))
        if rows[operand] and draw.random() < 0.8:
            rows[operand][draw.randrange(len(rows[operand]))] = draw.choice((1, 2, 3, 4, 16))
        elif len(rows) > 1 and draw.random() < 0.5:
            rows.pop()
        else:
            rows[operand].append(1)
    return rows


def with_outputs(
    form: Form, record: dict[str, Any], draw: random.Random, compiler: Compiler
) -> dict[str, Any] | None:
    """A case with layouts of outputs, made from the slices that it got without: kept or changed."""
    if not record.get("shapes") or not record.get("slices"):
        return None
    given = record["case"]["in_strategy"]
    letter_of = {form.sizes[letter]: letter for letter in letters_of(form)}
    axes: dict[str, Any] = {}
    for operand, entries in zip(form.letters, given["maps"], strict=False):
        axes |= {k: e for k, e in zip(operand, entries, strict=False) if e != "None"}
    wholes, locals_ = output_shapes(record["shapes"][0]), output_shapes(record["slices"][0])
    maps: list[list[Any]] = []
    for whole, local in zip(wholes, locals_, strict=False):
        maps.append(
            [
                axes.get(letter_of.get(size, ""), "None") if size != part else "None"
                for size, part in zip(whole, local, strict=False)
            ]
        )
    if not maps:
        return None
    if draw.random() < 0.5:
        spoil(maps, given["names"], draw)
    description = case(
        form, given, kind="out_layout", devices=record["case"]["devices"],
        out_strategy={**given, "maps": maps},
    )  # fmt: skip
    (found,) = compiler.run([json.loads(json.dumps(description))])
    return None if found["verdict"] == "unbuilt" else found


def compare(left: Path, right: Path) -> int:
    """Which cases two versions answer differently."""
    read = [
        [json.loads(line) for line in path.read_text(errors="surrogateescape").splitlines()]
        for path in (left, right)
    ]
    known = {json.dumps(record["case"], sort_keys=True): record for record in read[1]}
    both = different = 0
    for record in read[0]:
        other = known.get(json.dumps(record["case"], sort_keys=True))
        if other is None:
            continue
        both += 1
        keys = ("verdict", "matrix", "inputs", "outputs", "mirrors", "communications", "parameters")
        changed = [key for key in keys if record.get(key) != other.get(key)]
        if changed:
            different += 1
            print(record["case"]["form"], record["case"]["in_strategy"], changed)
            for key in changed:
                print("   ", key, record["mindspore"], record.get(key), record.get("log", [])[:1])
                print("   ", key, other["mindspore"], other.get(key), other.get("log", [])[:1])
    print(f"{both} of both, {different} different")
    return 1 if different else 0


if __name__ == "__main__":
    sys.exit(main())
