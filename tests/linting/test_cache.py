"""The cache: what was found comes back as it was, from wherever the dumps stand now."""

from __future__ import annotations

from pathlib import Path

from irtool.ir.finding import RelatedPlace, Silenced, SourceLine
from irtool.linting.cache import Cache
from irtool.linting.engine import Linted
from irtool.syntax.cache_files import digest
from tests.linting.test_baseline import FINDING

FOUND = Linted(
    [
        FINDING,
        type(FINDING)(
            "STR001", "error", "wrong", "b.ir", 3, ranks=(0, 1), frames=(SourceLine("n.py", 3),),
            related=(RelatedPlace("the other one", "a.ir", 5, 2, "%1"),), fix="in_strategy ((1,),)",
        ),
    ],
    [Silenced("COM007", "ranks")],
)  # fmt: skip


def test_what_is_put_in_comes_out(tmp_path: Path) -> None:
    files = (FINDING.file, "a.ir", "b.ir")
    cache = Cache(str(tmp_path))
    cache.put(b"key", FOUND, files)
    assert cache.get(b"key", files) is None, "written when it is closed"
    cache.close()
    again = Cache(str(tmp_path))
    assert again.get(b"key", files) == FOUND
    assert again.get(b"another", files) is None


def test_the_same_dumps_may_stand_elsewhere(tmp_path: Path) -> None:
    cache = Cache(str(tmp_path))
    cache.put(b"key", FOUND, (FINDING.file, "a.ir", "b.ir"))
    cache.close()
    found = Cache(str(tmp_path)).get(b"key", ("x/v.ir", "x/a.ir", "x/b.ir"))
    assert found is not None
    assert [each.file for each in found.findings] == ["x/v.ir", "x/b.ir"]
    assert found.findings[1].related[0].file == "x/a.ir"


def test_a_damaged_cache_is_begun_anew(tmp_path: Path) -> None:
    (tmp_path / "lint.sqlite").write_bytes(b"no database at all" * 100)
    cache = Cache(str(tmp_path))
    assert cache.get(b"key", ()) is None
    cache.put(b"key", Linted(), ())
    cache.close()
    assert Cache(str(tmp_path)).get(b"key", ()) == Linted()


def test_a_folder_that_cannot_be_written_does_no_harm(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    cache = Cache(str(tmp_path / "file" / "below"))
    cache.put(b"key", FOUND, ())
    cache.close()
    assert Cache(None).get(b"key", ()) is None


def test_a_key_tells_its_parts_apart() -> None:
    assert digest("ab", "c") != digest("a", "bc")
    assert digest("ab", "c") == digest(b"ab", b"c")
