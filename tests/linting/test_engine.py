"""The engine: one walk, findings with their places, silence without context, failures told."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from irtool.ir.dump import Dump
from irtool.ir.finding import Finding
from irtool.ir.graph import Node
from irtool.linting.engine import lint_compilation, lint_run
from irtool.linting.facts import CompilationFacts, DumpFacts, RunFacts, Surroundings
from irtool.linting.rule import (
    EVERY_DUMP,
    DumpRule,
    Lacking,
    NodeRule,
    Rule,
    RunRule,
    Threshold,
)
from irtool.syntax.load import loads
from tests.linting.cases import compilation, dump_of, lint, lint_ranks, messages, rule, the_one

TWO = dump_of("%0(a) = PrimFunc_ReLU(%para1_x)", "%1(b) = PrimFunc_GeLU(%0)")


class Sees(NodeRule):
    """Finds every ReLU."""

    code = "TST001"
    name = "sees"
    severity = "warning"
    summary = "There is a ReLU"
    explanation = "For tests."
    hint = "leave it"
    bad = good = "ReLU"
    operators = frozenset({"ReLU"})
    dumps = EVERY_DUMP

    def check(self, node: Node, facts: DumpFacts) -> Iterator[Finding]:
        yield self.finding("a ReLU", node)


class Fails(Sees):
    """Fails on every node."""

    code = "TST002"
    operators = None

    def check(self, node: Node, facts: DumpFacts) -> Iterator[Finding]:
        yield self.finding("before it fails", node)
        raise KeyError("group")


class Counts(DumpRule):
    """Speaks from so many nodes on."""

    code = "TST003"
    name = "counts"
    severity = "info"
    summary = "There are many nodes"
    explanation = "For tests."
    bad = good = "nodes"
    least = Threshold(3, "nodes", "from so many on")

    def check(self, facts: DumpFacts) -> Iterator[Finding]:
        count = sum(1 for _ in facts.dump.nodes())
        if count >= self.least:
            yield self.finding(f"{count} nodes")


def test_a_rule_gets_only_what_it_registered_for() -> None:
    found = the_one(lint(Sees(), compilation({"other": TWO})))
    assert (found.node, found.op, found.line, found.column) == ("%0", "ReLU", 6, 11)
    assert found.statement == "  %0(a) = PrimFunc_ReLU(%para1_x)"
    assert found.statement[found.column - 1 : found.end_column - 1] == "PrimFunc_ReLU"


def test_a_rule_that_fails_is_one_finding_and_stops_nobody_else() -> None:
    linted = lint_compilation(compilation({"other": TWO}), [Fails(), Sees()])
    assert sorted(each.code for each in linted.findings) == ["ENG001", "TST001"]
    message = next(each.message for each in linted.findings if each.code == "ENG001")
    assert message.startswith("rule TST002 failed here: KeyError: 'group' (test_engine.py:")


def test_thresholds_are_attributes_that_settings_change() -> None:
    assert Counts.thresholds()["least"].default == 3
    assert messages(lint(Counts(), compilation({"validate": TWO}))) == ["3 nodes"]
    assert messages(lint(Counts({"least": 4}), compilation({"validate": TWO}))) == []


def test_a_rule_looks_at_the_first_kind_of_dump_that_there_is() -> None:
    both = compilation({"end": TWO, "validate": TWO})
    assert the_one(lint(Counts(), both)).file == "validate.ir"
    assert the_one(lint(Counts(), compilation({"end": TWO}))).file == "end.ir"


def test_a_rule_without_its_dump_is_silent_and_named() -> None:
    linted = lint(Counts(), compilation({"begin": TWO}))
    assert linted.findings == []
    assert [(each.code, each.need) for each in linted.silenced] == [("TST003", "validate")]


def test_a_rule_that_asks_for_what_is_not_there_is_silent_and_named() -> None:
    class Asks(Counts):
        def check(self, facts: DumpFacts) -> Iterator[Finding]:
            yield self.finding(f"{facts.parallel.devices} devices")

    linted = lint(Asks(), compilation({"validate": TWO}))
    assert [(each.code, each.need) for each in linted.silenced] == [("TST003", "devices")]
    told = lint(Asks(), compilation({"validate": TWO}, {"device_num": 8}))
    assert messages(told) == ["8 devices"]


def test_a_shared_answer_is_made_once_even_if_it_fails() -> None:
    made: list[int] = []

    def make() -> int:
        made.append(1)
        raise Lacking("machine")

    class Asks(Counts):
        def check(self, facts: DumpFacts) -> Iterator[Finding]:
            yield self.finding(str(facts.kept("answer", make)))

    facts = compilation({"validate": TWO})
    linted = lint_compilation(facts, [Asks(), Asks()])
    assert len(made) == 1
    assert [each.need for each in linted.silenced] == ["machine", "machine"]


def test_the_line_of_python_is_the_innermost_outside_mindspore(samples: Path) -> None:
    facts = compilation({"validate": samples / "data_parallel/19_validate_0078.ir"})

    class Everything(Sees):
        operators = None

        def check(self, node: Node, facts: DumpFacts) -> Iterator[Finding]:
            if node.op == "MatMul":
                yield self.finding("a MatMul", node)

    found = lint(Everything(), facts).findings
    assert found
    for each in found:
        assert each.source is not None
        assert each.source == each.frames[-1]
        assert not any("site-packages/mindspore" in frame.path for frame in each.frames)


def test_a_dump_without_lines_of_python_has_none(samples: Path) -> None:
    facts = compilation({"validate": samples / "recompute/20_validate_0081.ir"})

    class Everything(Sees):
        operators = frozenset({"MatMul"})

    assert {each.source for each in lint(Everything(), facts).findings} == {None}


def test_where_leaves_out_other_nodes() -> None:
    facts = compilation({"validate": TWO})
    rules: list[Rule] = [Sees(), Counts()]
    assert [each.code for each in lint_compilation(facts, rules, lambda node: True).findings] == [
        "TST001"
    ]
    assert lint_compilation(facts, rules, lambda node: node.op == "GeLU").findings == []


def test_a_rule_over_ranks_that_fails_is_a_finding_in_the_first_dump() -> None:
    class Broken(RunRule):
        """Fails."""

        code = "TST004"
        name = "broken"
        severity = "error"
        summary = "It fails"
        explanation = "For tests."
        bad = good = "none"

        def check(self, run: RunFacts) -> Iterator[Finding]:
            raise ZeroDivisionError
            yield self.finding("never")

    ranks = {rank: compilation({"validate": TWO}, rank=rank) for rank in (0, 1)}
    found = the_one(lint_ranks(Broken(), ranks))
    assert (found.code, found.file) == ("ENG001", "validate.ir")


def test_a_rule_over_every_dump_may_need_something_too() -> None:
    class Needs(Sees):
        needs = ("devices",)

    linted = lint(Needs(), compilation({"other": TWO}))
    assert (linted.findings, [each.need for each in linted.silenced]) == ([], ["devices"])


# -- ranks that are alike ----------------------------------------------------------------------


@pytest.mark.parametrize("is_broken", [False, True])
def test_ranks_that_are_alike_are_judged_by_one_dump_and_told_by_their_own(
    samples: Path, is_broken: bool
) -> None:
    """Stage 0 lost a Send; what else it sends stands in another line of each dump."""
    parsed: list[int] = []

    def facts_of(rank: int) -> CompilationFacts:
        path = samples / "pipeline_2_stages" / f"rank_{rank}" / "20_validate_0080.ir"
        text = path.read_text(encoding="utf-8").replace("\n", "\n" + "\n" * rank, 1)
        if is_broken and rank < 2:
            text = text.replace(" = Send(", " = Depend(", 1)

        def load() -> Dump:
            parsed.append(rank)
            return loads(text, f"rank_{rank}.ir")

        made = DumpFacts(load, "validate", f"rank_{rank}.ir", "validate", lambda: text)
        return CompilationFacts([made], Surroundings(rank))

    def told(alike: Sequence[tuple[int, ...]]) -> list[tuple[object, ...]]:
        facts = {rank: facts_of(rank) for rank in range(4)}
        linted = lint_run(RunFacts(facts, True, alike), [rule("COM007")])
        return [(item.message, item.file, item.line, item.rank) for item in linted.findings]

    each = told([])
    assert sorted(parsed) == [0, 1, 2, 3]
    assert bool(each) is is_broken
    parsed.clear()
    assert told([(0, 1), (2, 3)]) == each
    assert is_broken or sorted(parsed) == [0, 2]
