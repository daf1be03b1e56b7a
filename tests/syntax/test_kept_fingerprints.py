"""Fingerprints of ranks are made once for many commands, and never taken for another text's."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from irtool.syntax import kept
from irtool.syntax.cache_files import KeptFiles
from irtool.syntax.kept import fingerprints, keeping
from irtool.syntax.run.classes import Fingerprints

ROOT = Path(__file__).resolve().parents[2]
TEXTS = [path.read_text() for path in sorted((ROOT / "samples/pipeline_2_stages").rglob("*.ir"))]


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("IRTOOL_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setattr(fingerprints, "LEAST_KEPT", 1)
    return tmp_path / "cache" / "fingerprints"


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Ranks of which a fingerprint is made, as this happens."""
    seen: list[int] = []
    usual = Fingerprints._made

    def noted(self: Fingerprints, text: str, rank: int) -> str:
        seen.append(rank)
        return usual(self, text, rank)

    monkeypatch.setattr(Fingerprints, "_made", noted)
    return seen


def anew(texts: list[str]) -> list[str]:
    prints = Fingerprints()
    return [prints.of(text, rank) for rank, text in enumerate(texts)]


def in_a_command(texts: list[str]) -> list[str]:
    with keeping():
        return anew(texts)


def test_the_next_command_makes_none(made: list[int]) -> None:
    expected = anew(TEXTS)
    made.clear()
    assert in_a_command(TEXTS) == expected
    assert made == list(range(len(TEXTS)))
    made.clear()
    assert in_a_command(TEXTS) == expected
    assert made == []


def test_a_rank_that_changed_is_made_anew(made: list[int]) -> None:
    in_a_command(TEXTS)
    changed = [*TEXTS[:-1], TEXTS[-1].replace("MatMul", "BatchMatMul")]
    made.clear()
    assert in_a_command(changed) == anew(changed)
    assert made[0] == len(TEXTS) - 1


def test_equal_texts_of_other_ranks_are_told_apart() -> None:
    """Peers count from the rank: of one text, every rank has its own fingerprint."""
    sends = next(text for text in TEXTS if "dest_rank: " in text)
    texts = [sends] * 4
    first = in_a_command(texts)
    assert len(set(first)) == 4
    assert in_a_command(texts) == first


DAMAGES: list[Callable[[bytes], bytes]] = [
    lambda data: data[:-9],
    lambda data: b"",
    lambda data: data * 2,
    lambda data: data.replace(data[-20:-10], b"0" * 10),
]


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_file_is_as_none(damage: Callable[[bytes], bytes], folder: Path) -> None:
    expected = in_a_command(TEXTS)
    (file,) = folder.iterdir()
    file.write_bytes(damage(file.read_bytes()))
    assert in_a_command(TEXTS) == expected


@pytest.mark.parametrize("held", [[1, 2], {"text": "x"}, {b"key": 3}, "text"])
def test_a_file_of_another_form_is_as_none(held: object, monkeypatch: pytest.MonkeyPatch) -> None:
    expected = anew(TEXTS)
    monkeypatch.setattr(KeptFiles, "get", lambda *_: msgspec.msgpack.encode(held))
    assert in_a_command(TEXTS) == expected


def test_another_irtool_does_not_look_at_them(
    made: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    in_a_command(TEXTS)
    made.clear()
    monkeypatch.setattr(kept, "_maker", lambda: b"another")
    in_a_command(TEXTS)
    assert made == list(range(len(TEXTS)))


def test_little_text_is_not_worth_a_file(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    total = sum(map(len, TEXTS))
    monkeypatch.setattr(fingerprints, "LEAST_KEPT", total + 1)
    in_a_command(TEXTS)
    assert not folder.exists()
    monkeypatch.setattr(fingerprints, "LEAST_KEPT", total)
    in_a_command(TEXTS)
    assert len(list(folder.iterdir())) == 1


def test_a_file_holds_so_many(made: list[int], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fingerprints, "_MOST", 1)
    in_a_command(TEXTS)
    made.clear()
    in_a_command(TEXTS)
    assert made == list(range(1, len(TEXTS)))


def test_nothing_is_kept_without_a_command_or_where_it_is_not_wanted(folder: Path) -> None:
    anew(TEXTS)
    with keeping(False):
        anew(TEXTS)
    assert not folder.exists()


LINES = st.lists(
    st.sampled_from(
        ["  %1(CNode_7) = PrimFunc_Add(%a, %b)", "  %2(CNode_9) = PrimFunc_Add(%a, %b)",
         "  %3(x) = Send(%1) primitive_attrs: {dest_rank: I64(1)} cnode_attrs: {}",
         "# In file a.py",
         "subgraph instance: f_3 : 0x55aa", "}", ""]
    ), max_size=6,
).map("\n".join)  # fmt: skip


@given(texts=st.lists(LINES, min_size=1, max_size=5), again=st.lists(LINES, max_size=5))
def test_whatever_was_kept_before_changes_none(texts: list[str], again: list[str]) -> None:
    in_a_command(texts)
    assert in_a_command([texts[0], *again]) == anew([texts[0], *again])
    assert in_a_command([*again, *texts]) == anew([*again, *texts])
