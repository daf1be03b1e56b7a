"""A node is followed through the dumps of a compilation: added, changed, removed, and where."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from irtool.compare.history import Moment, PassText, history
from irtool.ir.dump import Dump
from irtool.syntax.reader import loads

HEAD = "subgraph @G(%para1_x) {\n"
TYPE = "      : (<Tensor[Float32], (4, 4)>) -> (<Tensor[Float32], (4, 4)>)\n"
END = "  Return(%{0})\n      : (<Tensor[Float32], (4, 4)>)\n}}\n"


def text(*operators: str) -> str:
    """A chain of operators of one input each."""
    lines = [HEAD]
    for number, op in enumerate(operators):
        source = "%para1_x" if number == 0 else f"%{number - 1}"
        lines.append(f"  %{number}(CNode_{number}) = {op}({source})\n{TYPE}")
    return "".join(lines) + END.format(len(operators) - 1)


def told(*chains: Sequence[str], at: int, node: int) -> list[tuple[str, str]]:
    """Name of the dump and event of each moment."""
    return [(moment.name, moment.event) for moment in followed(*chains, at=at, node=node)]


def followed(*chains: Sequence[str], at: int, node: int) -> tuple[Moment, ...]:
    dumps: list[Dump] = [loads(text(*chain), f"{number}.ir") for number, chain in enumerate(chains)]
    passes = [
        PassText(dump.path, " ".join(chain), lambda dump=dump: dump)
        for dump, chain in zip(dumps, chains, strict=True)
    ]
    return history(passes, at, [dumps[at].graphs[0].nodes[node]])


def test_what_is_there_from_the_first_dump_is_present_and_stays_unchanged() -> None:
    chain = ["ReLU", "Tanh"]
    assert told(chain, chain, chain, at=1, node=1) == [
        ("0.ir", "present"), ("1.ir", "unchanged"), ("2.ir", "unchanged"),
    ]  # fmt: skip


def test_the_pass_that_adds_a_node_begins_its_history() -> None:
    found = followed(["ReLU", "Tanh"], ["ReLU", "AllReduce", "Tanh"], at=1, node=1)
    assert [(moment.name, moment.event) for moment in found] == [("1.ir", "added")]
    assert "collective inserted" in found[0].details[0]


def test_the_pass_that_removes_a_node_ends_its_history() -> None:
    with_it, without = ["ReLU", "Cast", "Tanh"], ["ReLU", "Tanh"]
    assert told(with_it, with_it, without, without, at=0, node=1) == [
        ("0.ir", "present"), ("1.ir", "unchanged"), ("2.ir", "removed"),
    ]  # fmt: skip


def test_a_changed_attribute_is_told_from_and_to() -> None:
    found = followed(["ReLU", "Softmax", "Tanh"], ["ReLU", "Softmax", "Tanh", "Abs"], at=0, node=1)
    assert found[-1].event == "unchanged"
    before, after = (
        text("ReLU", "Softmax"),
        text("ReLU", "Softmax").replace(
            "Softmax(%0)", "Softmax(%0) primitive_attrs: {axis: I64(1)}"
        ),
    )
    dumps = loads(before, "0.ir"), loads(after, "1.ir")
    passes = [PassText(dump.path, dump.path, lambda dump=dump: dump) for dump in dumps]
    moments = history(passes, 0, [dumps[0].graphs[0].nodes[1]])
    assert moments[-1].event == "changed"
    assert moments[-1].details == ("attribute changed: axis: (none) → 1",)


@pytest.mark.parametrize("at", [0, 1])
def test_the_history_is_the_same_from_whatever_dump_one_asks(at: int) -> None:
    chains = ["ReLU", "Tanh"], ["ReLU", "Tanh", "Abs"]
    assert told(*chains, at=at, node=0) == [("0.ir", "present"), ("1.ir", "unchanged")]
