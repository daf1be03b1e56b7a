"""Digests of others: whatever a file says of itself, a digest or a reason."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from irtool.compare.tensors.digest import read_digest
from irtool.compare.tensors.model import NoTensors
from irtool.syntax import unpacking


def document() -> dict[str, Any]:
    column: list[Any] = [1.0, 2.0]
    return {
        "schema": "irtool.digest/1",
        "run": "a run",
        "losses": {},
        "context": {},
        "units": [
            {
                "rank": 0,
                "step": 1,
                "graph": None,
                "framework": "mindspore",
                "level": "statistics",
                "order_known": True,
                "resolution": 0.0,
                "tensors": {
                    "label": ["input.0", "output.0"],
                    "dtype": ["Float32", "Float32"],
                    "shape": [[2], [2]],
                    **{name: list(column) for name in ("max", "min", "mean", "norm")},
                    "broken": [0, 0],
                    "checksum": ["", ""],
                },
                "notes": {},
                "unread": {},
                "sketches": {},
                "operators": [
                    {
                        "name": "Default/mm",
                        "type": "MatMul",
                        "phase": "forward",
                        "inputs": [0],
                        "outputs": [1],
                        "parameters": [0],
                        "attributes": {},
                        "owner": "",
                        "call": "",
                        "source": "",
                        "module": False,
                    }
                ],
            }
        ],
    }


def written(folder: Path, data: object, pack: Callable[[bytes], bytes] = bytes) -> str:
    path = folder / "digest.json"
    path.write_bytes(pack(json.dumps(data).encode()))
    return str(path)


@pytest.mark.parametrize("pack", [bytes, gzip.compress])
def test_a_digest_is_read(tmp_path: Path, pack: Callable[[bytes], bytes]) -> None:
    ((run,), facts) = read_digest(written(tmp_path, document(), pack))
    assert run.ops[0].name == "Default/mm"
    assert facts["run"] == "a run"


WRONG: list[tuple[tuple[str | int, ...], object]] = [
    (("units",), 3),
    (("units", 0), []),
    (("units", 0, "step"), "one"),
    (("units", 0, "graph"), []),
    (("units", 0, "level"), "all"),
    (("units", 0, "resolution"), []),
    (("units", 0, "notes"), []),
    (("units", 0, "tensors", "shape"), [[2], 2]),
    (("units", 0, "tensors", "shape"), [[2], [None]]),
    (("units", 0, "tensors", "max"), [1.0]),
    (("units", 0, "tensors", "norm"), ["x", 1.0]),
    (("units", 0, "tensors", "checksum"), [""]),
    (("units", 0, "operators", 0, "attributes"), []),
    (("units", 0, "operators", 0, "phase"), "sideways"),
    (("units", 0, "operators", 0, "inputs"), [2]),
    (("units", 0, "operators", 0, "inputs"), [-1]),
    (("units", 0, "operators", 0, "parameters"), [7]),
    (("units", 0, "operators", 0, "parameters"), ["x"]),
]


@pytest.mark.parametrize(("place", "value"), WRONG)
def test_what_makes_no_digest_is_said(
    tmp_path: Path, place: tuple[str | int, ...], value: object
) -> None:
    made = document()
    inner: Any = made
    for key in place[:-1]:
        inner = inner[key]
    inner[place[-1]] = value
    with pytest.raises(NoTensors, match="the digest is damaged"):
        read_digest(written(tmp_path, made))


def test_a_digest_that_grows_beyond_proportion_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(unpacking, "ALWAYS_UNPACKED", 1 << 20)
    path = written(tmp_path, " " * (64 << 20), gzip.compress)
    with pytest.raises(NoTensors, match="unpacks to"):
        read_digest(path)


def test_half_a_digest_is_damaged(tmp_path: Path) -> None:
    with pytest.raises(NoTensors):
        read_digest(written(tmp_path, document(), lambda data: gzip.compress(data)[:-9]))
