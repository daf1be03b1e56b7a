"""The table, seen from its facts: for each fact all operators of which it is true.

``facts.toml`` was gone through fact by fact, with the definitions (``irtool.operators.facts``) at
hand.  Who changes an entry changes the fact's line too, and so looks at the operators beside it.
Numbers of operations are those of one call with tensors of prime sizes, in which no two formulas
agree.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

import pytest

from irtool.operators.counting import Tensors, size_of
from irtool.operators.entry import Operator
from irtool.operators.table import entries

try:
    import tomllib
except ModuleNotFoundError:  # Python 3.10
    import tomli as tomllib

KEPT: dict[str, dict[str, str]] = tomllib.loads(
    (Path(__file__).parent / "facts.toml").read_text(encoding="utf-8")
)

INPUTS = ((2, 3, 5), (7, 11, 13, 41), (17, 19))
OUTPUTS = ((23, 29, 31), (37,))


def operations(entry: Operator) -> str:
    """How many operations it does with tensors of these sizes; "" where nobody knows."""
    if entry.flops is None:
        return ""
    tensors = Tensors(
        [[shape] for shape in INPUTS], OUTPUTS, lambda key: 1 if key == "head_num" else None
    )
    return str(size_of(entry.flops)(tensors))


def facts(entry: Operator) -> Iterator[tuple[str, str]]:
    """All that the entry says beside how it is sharded, by kind."""
    yield "computes", entry.computes
    yield "operations", operations(entry)
    yield "gradient of", entry.gradient_of
    for trait in entry.traits:
        yield "is", trait
    for word in ("updates", "unwritten", "weights"):
        for place in getattr(entry, word):
            yield word, str(place)
    if entry.search is not None:
        yield "search", entry.search.kind
        yield "search fits", entry.search.fits
        yield "search gives", entry.search.gives
    yield "propagates", entry.propagates
    for one in entry.attributes:
        yield "attribute", f"{one.name}@{one.position} = {one.default if one.has_default else '?'}"


@pytest.fixture(scope="module")
def found() -> dict[str, dict[str, list[str]]]:
    result: dict[str, dict[str, list[str]]] = defaultdict(lambda: defaultdict(list))
    for name, entry in sorted(entries().items()):
        if entry.declared:
            continue
        for kind, value in facts(entry):
            if value:
                result[kind][value].append(name)
    return result


@pytest.mark.parametrize("kind", KEPT)
def test_of_which_operators_a_fact_is_true(
    found: dict[str, dict[str, list[str]]], kind: str
) -> None:
    now, before = found[kind], KEPT[kind]
    assert sorted(now) == sorted(before)
    for value, names in before.items():
        listed = set(names.split())
        assert set(now[value]) - listed == set(), f"{kind} {value}: not in facts.toml"
        assert listed - set(now[value]) == set(), f"{kind} {value}: not in the table"


def test_no_kind_of_fact_is_left_out(found: dict[str, dict[str, list[str]]]) -> None:
    assert set(found) == set(KEPT)
