"""What was worked out of a dump is there for the next command, or as if it had never been."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

import irtool
from irtool.ir import parameter_roles as roles_module
from irtool.ir import phases as phases_module
from irtool.ir.dump import Dump
from irtool.ir.graph import Node
from irtool.ir.parameter_roles import parameter_roles
from irtool.ir.phases import phases
from irtool.ir.ties import ties
from irtool.syntax import kept
from irtool.syntax.kept import keeping
from irtool.syntax.kept.results import results_bytes, results_from

ROOT = Path(__file__).resolve().parents[2]
SAMPLES = sorted(path.relative_to(ROOT).as_posix() for path in (ROOT / "samples").rglob("*.ir"))
GPT = ROOT / "samples" / "gpt" / "step_parallel_begin_0018.ir"
TRAINED = ROOT / "samples" / "mlp_semi_auto" / "20_validate_0080.ir"


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("IRTOOL_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setattr("irtool.syntax.load.LEAST_KEPT", 1)
    return tmp_path / "cache" / "results"


@pytest.fixture
def worked(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """Names of results that are worked out anew, as this happens."""
    seen: list[str] = []

    def noted(module: Any, name: str) -> None:
        usual = getattr(module, name)

        def called(*given: Any) -> Any:
            seen.append(name)
            return usual(*given)

        monkeypatch.setattr(module, name, called)

    noted(phases_module, "_all_phases")
    noted(roles_module, "evidence")
    noted(irtool.ir.ties, "_ties")
    return iter([seen])


def asked_all(dump: Dump) -> tuple[object, ...]:
    """All that is kept of a dump, in words that do not depend on which objects stand for it."""
    tied = ties(dump)
    return (
        [(node.line, stage) for node, stage in phases(dump).items()],
        list(parameter_roles(dump).items()),
        [(_end(tie.left), tie.right.line, tie.kind, tie.how, tie.certain) for tie in tied],
        dict(tied.tieable),
    )


def _end(end: object) -> object:
    return end.line if isinstance(end, Node) else end


def asked_in_a_command(path: Path) -> tuple[object, ...]:
    with keeping():
        return asked_all(irtool.load(path))


@pytest.mark.parametrize("name", SAMPLES)
def test_results_come_back_as_they_were(name: str) -> None:
    first, second = irtool.load(ROOT / name), irtool.load(ROOT / name)
    expected = asked_all(first)
    second.derived.update(results_from(results_bytes(first), second))
    assert set(second.derived) >= {"phases", "parameter roles", "ties"}
    assert asked_all(second) == expected


def test_what_one_command_worked_out_the_next_one_does_not(worked: Iterator[list[str]]) -> None:
    seen = next(worked)
    first = asked_in_a_command(TRAINED)
    assert sorted(seen) == ["_all_phases", "_ties", "evidence"]
    seen.clear()
    assert asked_in_a_command(TRAINED) == first
    assert seen == []


def test_a_command_that_works_out_more_adds_it(worked: Iterator[list[str]]) -> None:
    seen = next(worked)
    with keeping():
        phases(irtool.load(TRAINED))
    with keeping():
        ties(irtool.load(TRAINED))
    seen.clear()
    asked_in_a_command(TRAINED)
    assert seen == ["evidence"]


DAMAGES: list[Callable[[bytes], bytes]] = [
    lambda data: data[:-9],
    lambda data: b"",
    lambda data: data * 2,
]


@pytest.mark.parametrize("damage", DAMAGES)
def test_damaged_results_are_worked_out_anew(
    damage: Callable[[bytes], bytes], folder: Path
) -> None:
    first = asked_in_a_command(TRAINED)
    (file,) = folder.iterdir()
    file.write_bytes(damage(file.read_bytes()))
    assert asked_in_a_command(TRAINED) == first


def test_results_of_a_dump_that_changed_are_not_looked_at(tmp_path: Path) -> None:
    path = tmp_path / "one.ir"
    text = TRAINED.read_bytes()
    path.write_bytes(text)
    before = asked_in_a_command(path)
    changed = text.replace(b"mirror_user_id", b"mirror_none_id")
    assert changed != text
    path.write_bytes(changed)
    after = asked_in_a_command(path)
    assert after == asked_all(irtool.load(path)) != before


def test_another_irtool_does_not_look_at_results(
    worked: Iterator[list[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    seen = next(worked)
    asked_in_a_command(TRAINED)
    seen.clear()
    monkeypatch.setattr(kept, "_maker", lambda: b"another")
    asked_in_a_command(TRAINED)
    assert sorted(seen) == ["_all_phases", "_ties", "evidence"]


CHANGES: list[Callable[[list[Any]], object]] = [
    lambda kept: [kept[0][:-1], *kept[1:]],  # a node less
    lambda kept: [kept[0] + b"\0", *kept[1:]],
    lambda kept: [b"\xff" * len(kept[0]), *kept[1:]],  # no such phase
    lambda kept: [None, [["x", 99, "x", False]], None],  # no such role
    lambda kept: [None, [["x", 0, "x", False]], None],  # no such parameter
    lambda kept: [None, None, [b"\1\0\0\0", *kept[2][1:]]],  # columns of other lengths
    lambda kept: [None, None, [b"\1\0\0", *kept[2][1:]]],
    lambda kept: [None, None, [*kept[2][:2], b"\xff", *kept[2][3:]]],  # no such kinds
    lambda kept: [None, None, [b"\xff\xff\xff\x7f" * (len(kept[2][0]) // 4), *kept[2][1:]]],
    lambda kept: [None, None, [b"\0\0\0\x80" * (len(kept[2][0]) // 4), *kept[2][1:]]],
    lambda kept: [1, 2, 3],
    lambda kept: "text",
]


@pytest.mark.parametrize("change", CHANGES)
def test_results_that_do_not_fit_their_dump_are_left_out(
    change: Callable[[list[Any]], object],
) -> None:
    dump = irtool.load(TRAINED)
    asked_all(dump)
    data = msgspec.msgpack.encode(change(msgspec.msgpack.decode(results_bytes(dump))))
    assert results_from(data, dump) == {}


def test_no_cache_keeps_no_results(folder: Path) -> None:
    with keeping(False):
        asked_all(irtool.load(GPT))
    assert not os.path.exists(folder)
    asked_in_a_command(GPT)
    assert os.listdir(folder)
