"""A later dump that differs in one number is noticed, or the place is said not to be compared.

One statement of each compiled network's last dump is edited: the reduction or the ranks of a
collective, a step of a redistribution, a strategy, a slice in the header.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache

import pytest

import irtool
from irtool.ir.dump import Dump
from irtool.ir.graph import Node
from irtool.sharding.against import Comparison, compare
from irtool.sharding.check import check
from irtool.sharding.network.report import CheckResult
from irtool.sharding.why.walk import is_redistribution
from tests.sharding.network.test_networks import NETWORKS


def of_the_operator(node: Node) -> bool:
    return "forward_op" in (node.instance_name or "")


@dataclass(frozen=True)
class Edit:
    """A number of one statement is raised by one, or its text replaced.

    ``kinds``: of the differences that it makes, all of them; ``declared``: what the edge or
    operator is called where it is said not to be compared instead.
    """

    op: str
    where: Callable[[Node], bool]
    pattern: str
    kinds: tuple[str, ...]
    declared: str
    text: str = ""


RANKS = r"rank_list: \((?:\d+, )*(\d+)\)"
FIRST = r"\(%\w+, \(?I64\((\d+)\)"
EDITS = {
    "another reduction": Edit(
        "AllReduce", of_the_operator, r'op: ("sum")', ("extra collective", "missing collective"),
        declared="AllReduce ", text='"max"',
    ),
    "other ranks": Edit("AllReduce", of_the_operator, RANKS, ("group",), declared="AllReduce "),
    "a gather of other ranks": Edit(
        "AllGather", is_redistribution, RANKS, ("redistribution",), declared="redistribution",
    ),
    "another slice": Edit(
        "StridedSlice", is_redistribution, FIRST, ("redistribution",), declared="redistribution",
    ),
    "a split along another axis": Edit(
        "Split", is_redistribution, FIRST, ("redistribution",), declared="redistribution",
    ),
    "joined along another axis": Edit(
        "Concat", is_redistribution, FIRST, ("redistribution",), declared="redistribution",
    ),
    "an exchange along another axis": Edit(
        "AlltoAll", is_redistribution, r"split_dim: I64\((\d+)\)", ("redistribution",),
        declared="redistribution",
    ),
    "another strategy": Edit(
        "MatMul", lambda node: node.in_layout is None and node.in_strategy is not None,
        r".*in_strategy: \(\((\d+)", ("strategy",), declared="MatMul ",
    ),
}  # fmt: skip


@cache
def promised(name: str) -> tuple[Dump, CheckResult, Comparison]:
    record = NETWORKS[name]
    begin = record.dump("begin")
    report = check(begin, record.context)
    return begin, report, compare(report, begin, record.dump("validate"))


def edited(name: str, edit: Edit) -> str | None:
    """The last dump with the first statement of that kind edited; None if there is none."""
    text = NETWORKS[name].dumps["validate"]
    lines = text.split("\n")
    for node in NETWORKS[name].dump("validate").nodes(edit.op):
        match = re.search(edit.pattern, lines[node.line - 1])
        if node.is_backward or node.is_recomputed or not edit.where(node) or match is None:
            continue
        line = lines[node.line - 1]
        new = edit.text or str(int(match[1]) + 1)
        lines[node.line - 1] = line[: match.start(1)] + new + line[match.end(1) :]
        return "\n".join(lines)
    return None


def cases() -> Iterator[tuple[str, str]]:
    for name in NETWORKS:
        for kind, edit in EDITS.items():
            if re.search(rf"[_ ]{edit.op}\(", NETWORKS[name].dumps["validate"]):
                yield name, kind


@pytest.mark.parametrize(("name", "kind"), list(cases()))
def test_one_edit_is_noticed_or_said_not_to_be_compared(name: str, kind: str) -> None:
    edit = EDITS[kind]
    text = edited(name, edit)
    if text is None:
        return
    begin, report, before = promised(name)
    found = compare(report, begin, irtool.loads(text, "20_validate_0080.ir"))
    kinds = {item.kind for item in found.differences}
    if kinds:
        assert kinds == set(edit.kinds)
        assert not found.agrees
    else:
        assert any(edit.declared in item.what and item.why for item in found.unmatched)
    assert found.matched == before.matched
    assert [item.message for item in before.differences] == []


@pytest.mark.parametrize("name", NETWORKS)
def test_another_slice_of_a_parameter_is_noticed(name: str) -> None:
    """Every weight that is predicted, one after the other; nothing else differs."""
    begin, report, _ = promised(name)
    text = NETWORKS[name].dumps["validate"]
    for weight in [item for item in report.parameters if item.slice][:3]:
        pattern = rf"^(%para\d+_{re.escape(weight.name)}: <Ref\[Tensor\[\w+\]\], \()(\d+)"
        new, count = re.subn(
            pattern, lambda match: f"{match[1]}{int(match[2]) + 1}", text, flags=re.MULTILINE
        )
        if not count:
            continue
        found = compare(report, begin, irtool.loads(new, "20_validate_0080.ir"))
        (item,) = found.differences
        assert (item.kind, item.parameter) == ("parameter slice", weight.name)
        assert item.predicted == str(weight.slice)
        assert item.actual == str((weight.slice[0] + 1, *weight.slice[1:]))
