"""MEM: what devices hold that they need not."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from irtool.linting.facts import CompilationFacts
from tests.linting.cases import compilation, dump_of, lint, messages, rule, the_one


def network(samples: Path, **options: object) -> CompilationFacts:
    """The perceptron's begin dump, with other options of the context."""
    folder = samples / "mlp_semi_auto"
    context = json.loads((folder / "case.json").read_text(encoding="utf-8"))["context"]
    return compilation({"begin": folder / "step_parallel_begin_0018.ir"}, {**context, **options})


# -- MEM001 --------------------------------------------------------------------------------------


def test_a_weight_that_every_device_holds_whole_is_named(samples: Path) -> None:
    found = lint(rule("MEM001", least_bytes=2048), network(samples)).findings
    assert [each.message for each in found if "mid.bias" in each.message] == [
        "mid.bias (2.0 KiB) is held whole by 8 devices"
    ]
    assert not any("up.weight" in each.message for each in found)


def test_small_weights_may_be_held_whole(samples: Path) -> None:
    assert not lint(rule("MEM001"), network(samples)).findings


def test_without_the_number_of_devices_nothing_is_said(samples: Path) -> None:
    facts = compilation({"begin": samples / "mlp_semi_auto/step_parallel_begin_0018.ir"})
    linted = lint(rule("MEM001", least_bytes=1), facts)
    assert [each.need for each in linted.silenced] == ["devices"]


# -- MEM002, MEM004 ------------------------------------------------------------------------------


def test_optimizer_state_kept_alike_is_named(samples: Path) -> None:
    found = the_one(lint(rule("MEM002", least_bytes=1024), network(samples)))
    assert "of optimizer state on each device are kept alike by up to 8 of them" in found.message


@pytest.mark.parametrize("options", [{"enable_parallel_optimizer": True}, {}])
def test_sharded_or_little_state_is_fine(samples: Path, options: dict[str, object]) -> None:
    least = 1024 if options else 1 << 30
    assert not lint(rule("MEM002", least_bytes=least), network(samples, **options)).findings


def test_weights_below_the_threshold_are_told_together(samples: Path) -> None:
    facts = network(samples, enable_parallel_optimizer=True)
    found = the_one(lint(rule("MEM004", least_total=1), facts))
    assert "weights below 64 KiB stay whole" in found.message
    assert not lint(rule("MEM004"), facts).findings
    assert not lint(rule("MEM004", least_total=1), network(samples)).findings


def test_a_weight_that_cannot_be_divided_is_named(samples: Path) -> None:
    folder = samples / "mlp_semi_auto"
    text = (folder / "step_parallel_begin_0018.ir").read_text(encoding="utf-8")
    context = json.loads((folder / "case.json").read_text(encoding="utf-8"))["context"]
    context["enable_parallel_optimizer"] = True
    context["parallel_optimizer_config"] = {"parallel_optimizer_threshold": 0}
    odd = text.replace("(16, 512)", "(12, 512)").replace("(64, 16)", "(64, 12)")
    told = messages(lint(rule("MEM004", least_bytes=4096), compilation({"begin": odd}, context)))
    assert told == ["down.weight stays whole: 12 rows cannot be divided among 8 devices"]
    assert not lint(
        rule("MEM004", least_bytes=4096), compilation({"begin": text}, context)
    ).findings


# -- MEM003 --------------------------------------------------------------------------------------

KEPT = dump_of(
    "%0(mask) = PrimFunc_Neg(%para1_x)",
    "      : (<Tensor[Float32], (8, 16)>) -> (<Tensor[Float32], (8, 16)>)",
    *(
        f"%{n}(f{n}) = PrimFunc_ReLU(%{n - 1})\n"
        "      : (<Tensor[Float32], (8, 16)>) -> (<Tensor[Float32], (8, 16)>)"
        for n in range(1, 10)
    ),
    *(
        f"%{n}(b{n}) = PrimFunc_ReluGrad(%{n - 1}, %9) cnode_primal_attrs: "
        f'{{forward_unique_id: "{n}"}}\n'
        "      : (<Tensor[Float32], (8, 16)>, <Tensor[Float32], (8, 16)>)"
        " -> (<Tensor[Float32], (8, 16)>)"
        for n in range(10, 19)
    ),
    '%19(last) = PrimFunc_Mul(%18, %0) cnode_primal_attrs: {forward_unique_id: "1"}',
    "      : (<Tensor[Float32], (8, 16)>, <Tensor[Float32], (8, 16)>)"
    " -> (<Tensor[Float32], (8, 16)>)",
)


def test_a_tensor_kept_across_the_backward_pass_is_told() -> None:
    found = the_one(lint(rule("MEM003", least_bytes=512), compilation({"validate": KEPT})))
    assert (found.node, found.op) == ("%0", "Neg")


def test_a_tensor_that_dies_early_is_fine() -> None:
    text = KEPT.replace("PrimFunc_Mul(%18, %0)", "PrimFunc_Mul(%18, %18)")
    assert not lint(rule("MEM003", least_bytes=512), compilation({"validate": text})).findings
    assert not lint(rule("MEM003"), compilation({"validate": KEPT})).findings
