"""Mutations of JSON, TOML, CSV and npy: values of other types, keys gone, numbers absurd."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from copy import deepcopy
from random import Random
from typing import Any

Mutation = Callable[[Random, bytes], bytes]

_VALUES: tuple[Any, ...] = (
    None, True, False, 0, -1, 1, 3, 7, 8, 10**12, 10**30, -(10**18), 1.5, float("nan"),
    float("inf"), 1e308, "", "x", "8", "full_batch", "((8, 1), (1, 1))", "=1+1", "\x1b[1m",
    "\ud800",
    [], [1], [[1, 2], [3]], [0, 0], {}, {"a": 1}, [None], [[[[]]]], "a" * 4000,
)  # fmt: skip
_TOML_VALUES = (
    "0", "-1", "1", "3", "nan", "inf", "1e308", "9223372036854775807", "-0.0", '""', '"x"', "[]",
    "[1, 2]", "{}", "{ a = 1 }", "true", "1979-05-27", "[[1], [2]]", '"HCCS"', "0.0", "[{}]",
)  # fmt: skip

_NPY_TYPES = (
    b"'<f4'", b"'>f4'", b"'<f8'", b"'|O'", b"'<U9'", b"'<f2'", b"'|V3'", b"'?'", b"[('a', '<f4')]",
    b"9",
)  # fmt: skip
_NPY_SHAPES = (
    b"()", b"(0,)", b"(-1,)", b"(99999999999,)", b"(4, 4)", b"'x'", b"(2.5,)", b"(" * 300,
)  # fmt: skip


def json_values(random: Random, data: bytes) -> bytes:
    """Some values of a JSON document become others; keys vanish or get other names."""
    try:
        document = json.loads(data)
    except (ValueError, RecursionError):
        return data
    for _ in range(random.choice((1, 1, 2, 6))):
        document = _changed(random, document)
    return json.dumps(document, indent=random.choice((None, 1))).encode("utf-8", "surrogatepass")


def _changed(random: Random, document: Any) -> Any:
    """One place changed, found by a walk from the root."""
    at = document
    for _ in range(random.randrange(1, 9)):
        inner = [key for key in _keys(at) if isinstance(at[key], (dict, list)) and at[key]]
        if not inner or random.random() < 0.15:
            break
        at = at[random.choice(inner)]
    keys = _keys(at)
    if not keys:
        return deepcopy(random.choice(_VALUES))
    key = random.choice(keys)
    kind = random.randrange(6)
    if kind == 0:
        del at[key]
    elif kind == 1 and isinstance(at, dict):
        at[random.choice(("", "x", "__class__", str(key) + "_", "device_num"))] = at.pop(key)
    elif kind == 2 and isinstance(at, list):
        at.extend(at[:50])
    else:
        at[key] = deepcopy(random.choice(_VALUES))  # or the next case would change it
    return document


def _keys(value: Any) -> list[Any]:
    if isinstance(value, dict):
        return list(value)
    return list(range(len(value))) if isinstance(value, list) else []


def toml_values(random: Random, data: bytes) -> bytes:
    """Values of some keys become others; keys and headers vanish or come twice."""
    lines = data.decode("utf-8", "replace").split("\n")
    for _ in range(random.choice((1, 1, 2, 5))):
        places = [at for at, line in enumerate(lines) if "=" in line or line.startswith("[")]
        if not places:
            break
        at = random.choice(places)
        kind = random.randrange(5)
        if kind < 3 and "=" in lines[at]:
            lines[at] = f"{lines[at].partition('=')[0]}= {random.choice(_TOML_VALUES)}"
        elif kind == 3:
            del lines[at]
        else:
            lines.insert(random.randrange(len(lines)), lines[at])
    return "\n".join(lines).encode()


def csv_cells(random: Random, data: bytes) -> bytes:
    """Cells of other types, columns gone or doubled, rows of other lengths."""
    rows = [line.split(b",") for line in data.split(b"\n")]
    values = (
        b"",
        b"nan",
        b"inf",
        b"-1",
        b"0",
        b"1e400",
        b"x",
        b'"',
        b"=1",
        b"9" * 30,
        b"\xff",
        b"(1;2)",
    )
    for _ in range(random.choice((1, 1, 3, 20))):
        row = rows[random.randrange(len(rows))]
        kind = random.randrange(5)
        if kind < 3:
            row[random.randrange(len(row))] = random.choice(values)
        elif kind == 3:
            del row[random.randrange(len(row)) :]
            row.append(b"")
        else:
            column = random.randrange(max(len(rows[0]), 1))
            for each in rows:
                del each[column : column + 1]
                each or each.append(b"")
    return b"\n".join(b",".join(row) for row in rows)


def npy_header(random: Random, data: bytes) -> bytes:
    """Another type, order or shape than the bytes hold."""
    descr, shape = random.choice(_NPY_TYPES), random.choice(_NPY_SHAPES)
    changed = data
    if random.random() < 0.7:
        changed = re.sub(rb"(?<='descr': )'[^']*'", lambda _: descr, changed, count=1)
    if random.random() < 0.7:
        changed = re.sub(rb"(?<='shape': )\([^)]*\)", lambda _: shape, changed, count=1)
    return changed


MUTATIONS: dict[str, dict[str, Mutation]] = {
    ".json": {"json values": json_values},
    ".toml": {"toml values": toml_values},
    ".csv": {"csv cells": csv_cells},
    ".npy": {"npy header": npy_header},
}
"""By the end of a file's name, and the name that they are counted under."""
