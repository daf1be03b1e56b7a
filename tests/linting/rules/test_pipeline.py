"""PIP: stages and micro-batches."""

from __future__ import annotations

from pathlib import Path

import pytest

from irtool.linting.engine import Linted
from irtool.linting.facts import CompilationFacts
from tests.linting.cases import compilation, dump_of, lint, lint_ranks, messages, rule, the_one

CONTEXT = {"device_num": 8, "pipeline_stages": 2, "parallel_mode": "semi_auto_parallel"}


def real(samples: Path, code: str, **values: float) -> Linted:
    ranks = {
        rank: compilation(
            {"validate": samples / f"pipeline_run/rank_{rank}/20_validate_0080.ir"}, CONTEXT, rank
        )
        for rank in (0, 4)
    }
    return lint_ranks(rule(code, **values), ranks, whole=False)


def products(count: int) -> str:
    return dump_of(
        *(
            f"%{n}(a{n}) = PrimFunc_MatMul(%para1_x, %para1_x)\n"
            "      : (<Tensor[Float32], (64, 64)>, <Tensor[Float32], (64, 64)>)"
            " -> (<Tensor[Float32], (64, 64)>)"
            for n in range(count)
        )
    )


def stages(first: str, second: str) -> dict[int, CompilationFacts]:
    return {
        0: compilation({"validate": first}, CONTEXT, 0),
        4: compilation({"validate": second}, CONTEXT, 4),
    }


def test_a_stage_that_computes_much_more() -> None:
    found = the_one(lint_ranks(rule("PIP001"), stages(products(2), products(6))))
    assert found.message == "stage 1 computes 50.0 % more than the mean of 2 stages"
    assert found.rank == 4


def test_equal_stages_are_fine(samples: Path) -> None:
    assert not lint_ranks(rule("PIP001"), stages(products(4), products(5))).findings
    assert not real(samples, "PIP001").findings


def test_without_the_number_of_stages_nothing_is_said() -> None:
    ranks = {n: compilation({"validate": products(n + 1)}, rank=n) for n in (0, 4)}
    linted = lint_ranks(rule("PIP001"), ranks)
    assert [each.need for each in linted.silenced] == ["devices"]


def micro(count: int) -> str:
    return dump_of(
        *(
            f"%{n}(a{n}) = PrimFunc_ReLU(%para1_x) cnode_primal_attrs: {{micro: I64({n})}}"
            for n in range(count)
        ),
        f'%{count}(g) = PrimFunc_ReluGrad(%para1_x) cnode_primal_attrs: {{forward_unique_id: "1"}}',
    )


@pytest.mark.parametrize(
    ("stages", "micro_batches", "told"),
    [
        (
            4,
            4,
            [
                "4 stages and 4 micro-batches leave each stage idle for 42.9 % of a step even if "
                "all stages are equal"
            ],
        ),
        (4, 8, []),
        (
            4,
            2,
            [
                "4 stages and 2 micro-batches leave each stage idle for 60.0 % of a step even if "
                "all stages are equal"
            ],
        ),
        (2, 2, []),
        (1, 1, []),
    ],
)
def test_a_bubble_above_the_limit(stages: int, micro_batches: int, told: list[str]) -> None:
    facts = compilation({"validate": micro(micro_batches)}, {**CONTEXT, "pipeline_stages": stages})
    assert messages(lint(rule("PIP002"), facts)) == told


def test_a_pipeline_that_only_runs_forward_has_no_bubble() -> None:
    forward = micro(4).replace("forward_unique_id", "unique_id")
    facts = compilation({"validate": forward}, {**CONTEXT, "pipeline_stages": 4})
    assert not lint(rule("PIP002"), facts).findings


def test_a_weight_that_two_stages_hold(samples: Path) -> None:
    assert not real(samples, "PIP003", least_bytes=4096).findings
    table = "%para1_table: <Ref[Tensor[Float32]], (64, 64), ref_key=table>  :  has_default"
    text = dump_of("%0(a) = PrimFunc_ReLU(%para1_table)", parameters=(table,))
    linted = lint_ranks(rule("PIP003", least_bytes=4096), stages(text, text))
    found = the_one(linted)
    assert found.message == "table (16.0 KiB) is held by stages 0 and 1"
    assert found.line == 4
    assert not lint_ranks(rule("PIP003"), stages(text, text)).findings
