"""Every family of rules has a page of records, and every operator is in one of them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from types import ModuleType

from irtool.operators.irregular import FUNCTIONS
from irtool.operators.table import operators, rule_of

HERE = Path(__file__).parent
CALLED = re.compile(r"= (?:PrimFunc_)?_?(\w+)\(")

NOT_COMPILED = {
    "AShardIdentity": "made by the front end, with no class of its own in Python",
    "Activation": "has no class in Python",
    "Arange": "of constants it is folded before the parallel pass",
    "BatchParallel": "stands for operators without rule: see the page of Virtual",
    "Cast": "has no strategy unless a search gives it one",
    "Custom": "needs a kernel that is compiled for the device",
    "FFN": "its newer form FFNExt has the same rule",
    "GetNext": "needs a dataset in sink mode",
    "OnesLike": "of a known shape it is folded before the parallel pass",
    "Range": "of constants it is folded before the parallel pass",
    "RepeatElements": "has no class in Python",
    "RepeatInterleave": "has no class in Python",
    "SelfDefineShard": "stands for operators with that attribute: see the page of Virtual",
    "StandAlone": "stands for operators without rule: see the page of Virtual",
    "TensorDot": "has no class in Python",
    "VirtualOutput": "is inserted by the parallel pass itself",
}
"""Operators that no page has a record of, and why."""

NOT_REACHED = {"get_next", "stand_alone", "tensor_dot", "unsplit", "virtual_output"}
"""Functions of those operators only."""


def pages() -> dict[str, ModuleType]:
    """The pages by the name of their family, in small letters."""
    return {
        path.stem.removeprefix("test_").replace("_", ""): import_module(
            f"tests.sharding.families.{path.stem}"
        )
        for path in sorted(HERE.glob("test_*.py"))
        if path.stem != "test_pages"
    }


def compiled(page: ModuleType) -> Iterator[str]:
    """The operators that a page has compiled."""
    for record in page.RECORDS.values():
        yield from CALLED.findall(record.statement)
        if "self_define_shard: Bool(1)" in record.statement:
            yield "SelfDefineShard"
    yield from getattr(page, "ALIKE", "").split()


def test_every_family_has_one_page() -> None:
    assert set(pages()) == {rule.family.lower() for rule in operators().values()}


def test_every_page_is_about_its_family() -> None:
    for name, page in pages().items():
        families = {rule.family.lower() for op in compiled(page) if (rule := rule_of(op))}
        assert name in families


def test_every_operator_was_compiled() -> None:
    seen = {rule.op for page in pages().values() for op in compiled(page) if (rule := rule_of(op))}
    missing = set(operators()) - seen
    assert missing - {"SelfDefineShard"} == set(NOT_COMPILED) - {"SelfDefineShard"}


def test_every_irregular_function_is_reached() -> None:
    rules = [rule_of(op) for page in pages().values() for op in compiled(page)]
    reached = {rule.function for rule in rules if rule is not None}
    assert set(FUNCTIONS) - reached == NOT_REACHED


def test_every_page_has_what_is_legal_and_what_is_not() -> None:
    for name, page in pages().items():
        kinds = {type(record).__name__ for record in page.RECORDS.values()}
        if name not in ("transpose", "reshape"):  # nothing is refused; nothing has a strategy
            assert kinds == {"Accepted", "Refused"}, name
