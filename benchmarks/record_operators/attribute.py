#!/usr/bin/env python3
"""Record what MindSpore makes of the attribute ``layout: {dev_matrix, input_tensor_map}``.

    PYTHON_OF_MINDSPORE benchmarks/record_operators/attribute.py OUT.jsonl [--edges]

A primitive may say with it how its operands lie, instead of a strategy (``add_prim_attr``). Of each
operator of the catalogue two cases are compiled: the last letter cut along an axis, and two letters
cut along two. ``--edges`` compiles what the checks of all operators, of arithmetic, products and
Transpose have two sides of. A run that was stopped goes on where it was. The records have the form
of ``record.py``, their kind is ``attribute``; ``records/attribute.jsonl.xz`` holds both.
"""

from __future__ import annotations

import argparse
import importlib
import json
import pkgutil
import random
import sys
from collections.abc import Iterator, Mapping
from itertools import product
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))

import catalogue  # noqa: E402
import network  # noqa: E402
from compiling import Compiler  # noqa: E402
from forms import Form, case, letters_of  # noqa: E402

KEY = "layout"
DEVICES = 8
MATRICES = ([2, 4], [4, 2], [2, 2, 2])
RETRIES: tuple[dict[str, Any], ...] = ({}, {"returns": 0}, {"gradient": False})
NOT_AS_RESULT = ("sens is a tuple", "output size is not 1", "bprop not defined")
"""In errors of operators whose results can't be the network's, or have no gradient."""

Case = dict[str, Any]


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("out", type=Path)
    parser.add_argument("--seed", type=int, default=62)
    parser.add_argument("--only", nargs="*", help="only these operators")
    parser.add_argument("--edges", action="store_true", help="both sides of what is checked")
    options = parser.parse_args()
    plain = network._literal
    network._literal = lambda value: _tuples(value) if _is_attribute(value) else plain(value)
    cases = edges() if options.edges else drawn(options.seed, options.only or ())
    done = len(options.out.read_text().splitlines()) if options.out.exists() else 0
    compiler = Compiler()
    try:
        with options.out.open("a", encoding="utf-8", errors="surrogateescape") as stream:
            for description in list(cases)[done:]:
                stream.write(json.dumps(recorded(compiler, description)) + "\n")
                stream.flush()
    finally:
        compiler.close()
    return 0


def recorded(compiler: Compiler, description: Case) -> Case:
    """The record of a case, as the network's result if it can be that."""
    record: Case = {}
    for more in RETRIES:
        (record,) = compiler.run([json.loads(json.dumps({**description, **more}))])
        if not any(text in record.get("error", "") for text in NOT_AS_RESULT):
            break
    return record


def _is_attribute(value: object) -> bool:
    return isinstance(value, Mapping) and ("dev_matrix" in value or "input_tensor_map" in value)


def _tuples(value: Any) -> str:
    """The text of an attribute: MindSpore reads tuples of it, and no lists."""

    def inner(item: Any) -> Any:
        return tuple(map(inner, item)) if isinstance(item, list) else item

    return repr({key: inner(item) for key, item in value.items()})


def drawn(seed: int, only: Any) -> Iterator[Case]:
    """Two cases of the first form of each operator of the catalogue."""
    first: dict[str, Form] = {}
    for module in sorted(one.name for one in pkgutil.iter_modules(catalogue.__path__)):
        for form in importlib.import_module(f"catalogue.{module}").FORMS:
            known = all(isinstance(size, int) for size in form.sizes.values())
            if form.letters and known and (not only or form.operator in only):
                first.setdefault(form.operator, form)
    for operator, form in sorted(first.items()):
        draw = random.Random(f"{seed} {operator}")
        letters, matrix = letters_of(form), draw.choice(MATRICES)
        places = range(len(matrix))
        cuts = [{letters[-1]: draw.choice(places)}]
        if len(letters) > 1:
            cuts.append(dict(zip(draw.sample(letters, 2), draw.sample(places, 2), strict=True)))
        for cut in cuts:
            maps = [[cut.get(letter, -1) for letter in row] for row in form.letters]
            description = case(form, None, kind="attribute", devices=DEVICES)
            yield _with(description, {"dev_matrix": matrix, "input_tensor_map": maps})


def _with(description: Case, attribute: Mapping[str, Any]) -> Case:
    others = description.get("primitive_attributes", {})
    return {**description, "primitive_attributes": {**others, KEY: dict(attribute)}}


def _call(operator: str, arguments: list[Any], attribute: Mapping[str, Any], **flags: Any) -> Case:
    return {
        "operator": operator, "form": f"{operator}{arguments}", "kind": "attribute",
        "arguments": arguments, "attributes": flags, "in_strategy": None, "out_strategy": None,
        "phase": "train", "devices": DEVICES, "primitive_attributes": {KEY: dict(attribute)},
    }  # fmt: skip


def _tensor(shape: list[Any], what: str = "input") -> Case:
    return {"is": what, "shape": shape, "dtype": "float32"}


def _layout(matrix: list[int], *maps: Any) -> Case:
    return {"dev_matrix": matrix, "input_tensor_map": [list(entries) for entries in maps]}


def edges() -> Iterator[Case]:
    """Both sides of what MindSpore checks of the attribute."""
    x, two = [_tensor([16, 32])], [2, 4]
    for matrix in ([2, 2], [2], [16], [8], [4, 2, 2], two, [1, 8], [3, 2], [2, 2, 2, 1]):
        yield _call("ReLU", x, _layout(matrix, (0, -1)))
        yield _call("ReLU", x, _layout(matrix, (len(matrix) - 1, -1)))
    for maps in ([(1, 1)], [(2, -1)], [(-2, -1)], [(1,)], [(1, 0, -1)], [(1, 0), (1, 0)], []):
        yield _call("ReLU", x, _layout(two, *maps))
    yield _call("ReLU", x, {"dev_matrix": two})
    yield _call("ReLU", x, {"input_tensor_map": [[1, 0]]})
    yield _call("ReLU", x, {**_layout(two, (1, 0)), "other": 3})
    for rows in (6, 1, None, "8n"):
        yield _call("ReLU", [_tensor([rows, 32])], _layout(two, (0, -1)))
    shapes = (([16, 32], [16, 32]), ([16, 32], [32]), ([16, 32], [1, 32]), ([16, 1], [1, 32]),
              ([32], [16, 32]), ([16, 1, 32], [16, 8, 32]))  # fmt: skip
    pairs = (((1, 0), (1, 0)), ((1, 0), (-1, 0)), ((1, 0), (1, -1)), ((1, -1), (-1, 0)),
             ((1, 0), (0, 1)), ((-1, -1), (1, 0)), ((-1, 0), (-1, 1)))  # fmt: skip
    for (left, right), what, maps in product(shapes, ("input", "parameter"), pairs):
        fitted = [((-1,) * 3 + entries)[-len(shape) :]
                  for entries, shape in zip(maps, (left, right), strict=True)]  # fmt: skip
        yield _call("Mul", [_tensor(left), _tensor(right, what)], _layout(two, *fitted))
    products = (((1, -1), (-1, 0)), ((1, -1), (0, -1)), ((-1, -1), (-1, 0)), ((1, 0), (0, -1)),
                ((0, -1), (-1, 0)), ((1, -1), (-1, 1)), ((-1, -1), (1, -1)))  # fmt: skip
    square = [_tensor([32, 32]), _tensor([32, 32], "parameter")]
    for flags, maps in product(({}, {"transpose_b": True}, {"transpose_a": True}), products):
        yield _call("MatMul", square, _layout(two, *maps), **flags)
    batches = (((1, -1, -1), (1, -1, 0)), ((1, 0, -1), (1, -1, -1)), ((1, 0, -1), (-1, -1, -1)),
               ((-1, 0, -1), (1, -1, -1)), ((1, -1, 0), (1, 0, -1)))  # fmt: skip
    for first, second in batches:
        left = _tensor([16, 32, 32])
        for shape, entries in (
            ([16, 32, 32], second), ([32, 32], second[1:]), ([1, 32, 32], (-1, *second[1:])),
        ):  # fmt: skip
            yield _call(
                "BatchMatMul", [left, _tensor(shape, "parameter")], _layout(two, first, entries)
            )
    for perm, entries in product(([1, 0], [0, 1]), ((1, 0), (0, -1), (-1, 1))):
        yield _call("Transpose", [_tensor([16, 32]), perm], _layout(two, entries))


if __name__ == "__main__":
    sys.exit(main())
