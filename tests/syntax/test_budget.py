"""What reading keeps has a bound in bytes, which changes no answer."""

from __future__ import annotations

import gc
import random
import re
import string
import time
import tracemalloc
import weakref
from pathlib import Path

import pytest

import irtool
from irtool.report.dump_json import dump_node
from irtool.syntax.budget import READING, Aging, Budget
from irtool.syntax.collector import CollectorPause
from irtool.syntax.records import Records


def test_what_was_not_asked_for_is_forgotten_when_half_of_the_budget_is_new() -> None:
    budget = Budget(200)
    used, unused = Aging[int](budget), Aging[int](budget)
    used["a"], unused["b"] = 1, 2
    budget.charge(60)
    budget.charge(40)
    assert (dict(used), dict(unused)) == ({"a": 1}, {"b": 2})
    budget.charge(1)
    assert (dict(used), dict(unused)) == ({}, {})
    assert budget.spent == 1
    assert used.again("a", 10) == 1
    assert dict(used) == {"a": 1}
    budget.charge(100)
    assert used.again("a", 10) == 1
    assert unused.again("b", 10) is None


def test_a_cache_that_nobody_has_is_forgotten() -> None:
    budget = Budget(1)
    cache = Aging[int](budget)
    gone = weakref.ref(cache)
    del cache
    assert gone() is None
    budget.charge(2)
    assert budget.spent == 2


@pytest.mark.parametrize("most", [1, 20_000])
def test_dumps_read_the_same_however_little_is_kept(
    samples: Path, monkeypatch: pytest.MonkeyPatch, most: int
) -> None:
    paths = sorted(samples.rglob("*.ir"), key=lambda path: path.stat().st_size)[:12]
    usual = [irtool.load(path) for path in paths]
    monkeypatch.setattr(READING, "most", most)
    for path, dump in zip(paths, usual, strict=True):
        found = irtool.load(path)
        assert irtool.dumps(found) == irtool.dumps(dump)
        assert list(map(dump_node, found.nodes())) == list(map(dump_node, dump.nodes()))


def different(text: str, chance: random.Random) -> str:
    """A dump of other forms: a word of each line is another one."""
    made: list[str] = []
    for line in text.split("\n"):
        words = re.findall(r"[A-Za-z_]{4,}", line)
        word = "".join(chance.choices(string.ascii_letters, k=12))
        made.append(line.replace(chance.choice(words), word) if words else line)
    return "\n".join(made)


def test_many_different_dumps_fill_no_more_memory(
    samples: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = (samples / "custom_rules" / "step_parallel_begin_0001.ir").read_text()
    chance = random.Random(3)
    monkeypatch.setattr(READING, "most", 1 << 20)
    records = Records()
    tracemalloc.start()
    try:
        for _ in range(60):
            irtool.loads(different(text, chance), records=records)
            assert READING.spent <= 1 << 20
        gc.collect()
        held, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert held < 4 << 20


def test_what_is_read_and_dropped_is_collected_before_long(
    samples: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = (samples / "custom_rules" / "step_parallel_begin_0001.ir").read_text()
    monkeypatch.setattr(CollectorPause, "_COLLECT_EVERY", 10 * len(text))
    monkeypatch.setattr(CollectorPause, "last", 0.0)
    seen: list[int] = []
    dropped: list[weakref.ref[object]] = []
    for _ in range(40):
        dump = irtool.loads(text)
        dropped.append(weakref.ref(dump.graphs[0].nodes[0].graph))
        del dump
        monkeypatch.setattr(CollectorPause, "last", 0.0)
        seen.append(sum(each() is not None for each in dropped))
    assert max(seen) <= 12


@pytest.mark.parametrize(("before", "collections"), [((128 << 20) - 1, 0), (128 << 20, 1)])
def test_a_collection_waits_until_much_was_read(
    before: int, collections: int, samples: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(CollectorPause, "read", before)
    monkeypatch.setattr(CollectorPause, "last", 0.0)
    generations: list[int] = []
    monkeypatch.setattr(gc, "collect", lambda generation=2: generations.append(generation))
    irtool.load(samples / "custom_rules" / "step_parallel_begin_0001.ir")
    assert generations.count(2) == collections


def test_a_collection_waits_until_it_hardly_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(CollectorPause, "last", 1.0)
    monkeypatch.setattr(CollectorPause, "ended", 0.0)
    for seconds, is_due in [(19, False), (20, True)]:
        monkeypatch.setattr(time, "process_time", lambda now=seconds: float(now))
        assert CollectorPause._is_due() == is_due  # pyright: ignore[reportPrivateUsage]
