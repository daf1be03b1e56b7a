"""ENV: what is set and has no effect."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from irtool.cli.main import main
from irtool.cluster.context.model import Contradiction, Entry, Origin
from irtool.linting.facts import CompilationFacts, DumpFacts, Surroundings
from irtool.syntax.load import loads
from tests.linting.cases import compilation, dump_of, lint, messages, rule

CONTEXT: dict[str, object] = {"device_num": 8, "parallel_mode": "semi_auto_parallel"}


def facts(source: str | Path, **more: object) -> CompilationFacts:
    return compilation({"validate": source}, {**CONTEXT, **more})


def test_comm_compiler_opt_after_its_time(samples: Path) -> None:
    dump = samples / "gpt/20_validate_0080.ir"
    told = messages(lint(rule("ENV001"), facts(dump, environment={"MS_COMM_COMPILER_OPT": "-1"})))
    assert told == ["MS_COMM_COMPILER_OPT=-1 does nothing in MindSpore 2.7.0 or later"]


@pytest.mark.parametrize("environment", [{}, {"MS_COMM_COMPILER_OPT": ""}, {"OTHER": "1"}, None])
def test_comm_compiler_opt_that_is_not_set(samples: Path, environment: object) -> None:
    found = lint(
        rule("ENV001"), facts(samples / "gpt/20_validate_0080.ir", environment=environment)
    )
    assert not found.findings


@pytest.mark.parametrize("code", ["ENV001", "ENV002"])
def test_an_environment_that_nobody_told(samples: Path, code: str) -> None:
    silenced = lint(rule(code), facts(samples / "gpt/20_validate_0080.ir")).silenced
    assert [each.need for each in silenced] == ["environment"]


def test_comm_compiler_opt_in_its_time() -> None:
    old = dump_of("%0([CNode]1) = ReLU(%para1_x) {}").replace("# ", "#")
    told = lint(rule("ENV001"), facts(old, environment={"MS_COMM_COMPILER_OPT": "-1"}))
    assert not told.findings


@pytest.mark.parametrize(
    ("options", "speaks"),
    [
        ({"parallel_mode": "semi_auto_parallel"}, True),
        ({"parallel_mode": "auto_parallel", "search_mode": "sharding_propagation"}, True),
        ({"parallel_mode": "auto_parallel", "search_mode": "recursive_programming"}, False),
    ],
)
def test_interfered_sapp(options: dict[str, object], speaks: bool) -> None:
    text = dump_of("%0(a) = PrimFunc_ReLU(%para1_x)")
    found = lint(rule("ENV002"), facts(text, environment={"MS_INTERFERED_SAPP": "1"}, **options))
    assert bool(found.findings) == speaks
    assert not lint(rule("ENV002"), facts(text, **options)).findings


def test_options_of_optimizer_parallel_while_it_is_off() -> None:
    text = dump_of("%0(a) = PrimFunc_ReLU(%para1_x)")
    config = {"parallel_optimizer_threshold": 0}
    told = messages(lint(rule("ENV003"), facts(text, parallel_optimizer_config=config)))
    assert told == ["parallel_optimizer_config is set, but enable_parallel_optimizer is off"]
    on = facts(text, parallel_optimizer_config=config, enable_parallel_optimizer=True)
    assert not lint(rule("ENV003"), on).findings
    assert not lint(rule("ENV003"), facts(text)).findings


@pytest.mark.parametrize(("value", "count"), [(False, 1), (True, 0)])
def test_a_context_that_the_dumps_contradict(
    samples: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], value: bool, count: int
) -> None:
    given = tmp_path / "context.json"
    given.write_text(json.dumps({"enable_parallel_optimizer": value}))
    arguments = ("--context", str(given), "--select", "ENV004", "--format", "json", "--no-cache")
    assert main(["lint", str(samples / "optimizer_excluded"), *arguments]) == count
    found = json.loads(capsys.readouterr().out)["findings"]
    assert [each["code"] for each in found] == ["ENV004"] * count
    assert all("enable_parallel_optimizer: " in each["message"] for each in found)


@pytest.mark.parametrize(
    ("op", "told"), [("_VirtualDataset", ["dataset_strategy"]), ("ReLU", [])], ids=["read", "not"]
)
def test_the_dataset_of_a_stage_that_reads_none_contradicts_nothing(
    op: str, told: list[str]
) -> None:
    given = Entry(((1, 1),), Origin("case", "case.json"))
    seen = Entry("data_parallel", Origin("dump", "end.ir", "shapes of the network's inputs"))
    begin = loads(dump_of(f"%0(a) = {op}(%para1_x)"), "begin.ir")
    facts = CompilationFacts(
        [DumpFacts(lambda: begin, "begin", "begin.ir")],
        Surroundings(contradictions=(Contradiction("dataset_strategy", seen, given),)),
    )
    assert [each.key for each in lint(rule("ENV004"), facts).findings] == told
