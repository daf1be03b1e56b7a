"""STR: what strategies cost, beside whether they are legal."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from irtool.linting.facts import CompilationFacts
from tests.linting.cases import compilation, dump_of, lint, messages, rule, the_one

SEMI = {"device_num": 8, "parallel_mode": "semi_auto_parallel", "full_batch": True}
MATMUL = "<Tensor[Float32], (4096, 4096)>, <Tensor[Float32], (4096, 4096)>"
INPUTS = (
    "%para1_x: <Tensor[Float32], (4096, 4096)>",
    "%para2_w: <Ref[Tensor[Float32]], (4096, 4096), ref_key=w, is_parameter>  :  has_default",
)
WEIGHT = "<Ref[Tensor[Float32]], (4096, 4096), ref_key=w, is_parameter>"
RESULT = "<Tensor[Float32], (4096, 4096)>"


def matmul(number: int, source: str, strategy: str | None, weight: str = "%para2_w") -> str:
    block = f" {{in_strategy: {strategy}}}" if strategy else ""
    return (
        f"%{number}(a{number}) = PrimFunc_MatMul({source}, {weight}, Bool(0), Bool(0)){block}\n"
        f"      : ({RESULT}, {WEIGHT}, <Bool, NoShape>, <Bool, NoShape>) -> ({RESULT})"
    )


def relu(number: int, source: str, strategy: str) -> str:
    return (
        f"%{number}(a{number}) = PrimFunc_ReLU({source}) {{in_strategy: {strategy}}}\n"
        f"      : ({RESULT}) -> ({RESULT})"
    )


def network(*statements: str, **options: object) -> CompilationFacts:
    return compilation({"begin": dump_of(*statements, parameters=INPUTS)}, {**SEMI, **options})


@pytest.fixture
def perceptron(samples: Path) -> CompilationFacts:
    folder = samples / "mlp_semi_auto"
    context = json.loads((folder / "case.json").read_text(encoding="utf-8"))["context"]
    return compilation({"begin": folder / "step_parallel_begin_0018.ir"}, context)


QUIET = ("STR001", "STR002", "STR003", "STR005", "STR007", "STR008")


@pytest.mark.parametrize("code", QUIET)
def test_a_healthy_network_has_no_findings(perceptron: CompilationFacts, code: str) -> None:
    assert not lint(rule(code), perceptron).findings


def test_a_refused_strategy_is_an_error(samples: Path) -> None:
    folder = samples / "mlp_rejected"
    context = json.loads((folder / "case.json").read_text(encoding="utf-8"))["context"]
    facts = compilation({"begin": folder / "step_parallel_begin_0018.ir"}, context)
    found = lint(rule("STR001"), facts).findings
    assert found
    assert {each.severity for each in found} == {"error"}


def test_an_operator_that_could_not_be_judged_is_told() -> None:
    text = matmul(0, "%para1_x", "((8, 1), (1, 1))").partition("\n")[0]
    found = the_one(lint(rule("STR002"), network(text)))
    assert found.message == "MatMul: the dump does not print its types"
    assert found.severity == "info"


@pytest.mark.parametrize(
    ("strategy", "told"),
    [
        ("((2, 1), (1, 1))", ["2 of 8 devices; each result is computed 4 times"]),
        ("((2, 2), (2, 2))", []),
        ("((8, 1), (1, 1))", []),
    ],
)
def test_devices_without_work_of_their_own(strategy: str, told: list[str]) -> None:
    found = messages(lint(rule("STR003"), network(matmul(0, "%para1_x", strategy))))
    assert [each.partition(" uses ")[2] for each in found] == told


def test_products_that_all_leave_devices_idle_are_one_finding() -> None:
    strategy = "((2, 1), (1, 1))"
    alike = network(matmul(0, "%para1_x", strategy), matmul(1, "%0", strategy))
    found = the_one(lint(rule("STR003"), alike))
    assert found.message.startswith("no product uses more than 2 of 8 devices")
    other = network(matmul(0, "%para1_x", strategy), matmul(1, "%0", "((8, 1), (1, 1))"))
    assert messages(lint(rule("STR003"), other)) == [
        f"MatMul with strategy {strategy} uses 2 of 8 devices; each result is computed 4 times"
    ]


@pytest.mark.parametrize(("share", "severity"), [(60, "warning"), (61, "info")])
def test_products_of_little_work_are_an_info(share: int, severity: str) -> None:
    """Of five parts of work (one four times, one once) three are done again."""
    idle, busy = "((2, 1), (1, 1))", "((8, 1), (1, 1))"
    facts = network(matmul(0, "%para1_x", idle), matmul(1, "%0", busy))
    assert the_one(lint(rule("STR003", least_share=share), facts)).severity == severity


def test_small_products_may_leave_devices_idle() -> None:
    facts = network(matmul(0, "%para1_x", "((1, 1), (1, 1))"))
    assert not lint(rule("STR003", least_gigaflops=1000), facts).findings


def test_a_redistribution_of_a_large_tensor() -> None:
    facts = network(matmul(0, "%para1_x", "((8, 1), (1, 1))"), relu(1, "%0", "((1, 1))"))
    found = the_one(lint(rule("STR005", least_bytes=1 << 20), facts))
    assert found.message == "MatMul to ReLU: AllGather of 56.0 MiB on each device"
    assert [each.node for each in found.related] == ["%0"]
    assert not lint(rule("STR005"), facts).findings


@pytest.mark.parametrize(
    ("strategy", "severity"),
    [
        ("((1, 1), (1, 8))", "info"),  # the columns of the weight lie where the rows are gathered
        ("((2, 1), (1, 4))", "info"),
        ("((1, 1), (1, 4))", "warning"),  # of two devices that gather the same columns one idles
    ],
)
def test_what_tensor_parallel_products_gather_is_meant(strategy: str, severity: str) -> None:
    facts = network(
        relu(0, "%para1_x", "((8, 1))"), matmul(1, "%0", strategy), enable_alltoall=True
    )
    found = the_one(lint(rule("STR005", least_bytes=1), facts))
    assert found.severity == severity


def test_an_edge_that_alltoall_makes_cheap_is_one_finding_with_the_setting() -> None:
    statements = matmul(0, "%para1_x", "((8, 1), (1, 1))"), relu(1, "%0", "((1, 8))")
    facts = network(*statements)
    found = the_one(lint(rule("COM009"), facts))
    assert found.message == "MatMul to ReLU receives 56.0 MiB by gathering, 7.0 MiB by AlltoAll"
    assert found.edit is not None
    assert (found.edit.setting, found.edit.value) == ("enable_alltoall", True)
    assert not lint(rule("STR005", least_bytes=1 << 20), facts).findings
    assert found.severity == "warning"
    (small,) = lint(rule("COM009", least_grave=50 << 20), facts).findings
    assert small.severity == "info"  # 49 MiB are saved
    with_it = network(*statements, enable_alltoall=True)
    assert not lint(rule("COM009"), with_it).findings
    whole = network(statements[0], relu(1, "%0", "((1, 1))"))
    assert not lint(rule("COM009"), whole).findings  # a gather stays a gather


def test_layouts_that_agree_need_no_redistribution() -> None:
    facts = network(matmul(0, "%para1_x", "((8, 1), (1, 1))"), relu(1, "%0", "((8, 1))"))
    assert not lint(rule("STR005", least_bytes=1), facts).findings


def test_a_parameter_that_its_users_split_differently_is_refused() -> None:
    one = matmul(0, "%para1_x", "((1, 1), (1, 8))")
    facts = network(one, matmul(1, "%0", "((8, 1), (1, 1))"))
    found = the_one(lint(rule("STR001"), facts))
    assert found.message.endswith("MatMul slices of (4096, 512), MatMul slices of (4096, 4096)")
    assert (found.severity, found.node) == ("error", "%1")
    same = network(one, matmul(1, "%0", "((1, 1), (1, 8))"))
    assert not lint(rule("STR001"), same).findings


def test_a_large_product_that_gets_the_default() -> None:
    given = matmul(0, "%para1_x", "((1, 1), (1, 8))")
    silent = matmul(1, "%0", None)
    found = the_one(lint(rule("STR007"), network(given, silent)))
    assert found.message == "MatMul has no strategy and gets the default ((8, 1), (1, 1))"
    alone = matmul(0, "%para1_x", None)
    assert not lint(rule("STR007"), network(alone)).findings
    assert not lint(rule("STR007"), network(given)).findings


def test_a_strategy_that_a_search_overrode() -> None:
    text = (
        "%0(a) = PrimFunc_ReLU(%para1_x) primitive_attrs: {in_strategy: ((2, 1))}"
        " {in_strategy: ((8, 1))}"
    )
    found = the_one(lint(rule("STR008"), compilation({"begin": dump_of(text)})))
    assert found.message == "ReLU: strategy ((2, 1),) was given, ((8, 1),) is in effect"
    kept = text.replace("((8, 1))", "((2, 1))")
    assert not lint(rule("STR008"), compilation({"begin": dump_of(kept)})).findings
