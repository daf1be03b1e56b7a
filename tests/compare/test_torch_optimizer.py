"""Hyperparameters, read off the calls that PyTorch's optimizers make."""

from __future__ import annotations

import math

import pytest

from irtool.compare.runs.torch_optimizer import told_by_calls
from irtool.compare.tensors.model import Columns, Op, TensorRun
from tests.compare.operators import run, tensor

Call = tuple[str, dict[str, float], float, float]
"""Operator, numbers among its arguments, norms of its tensor and of its result."""


def calls(*made: Call, steps: tuple[float, ...] = ()) -> TensorRun:
    """A dump of these calls; the results of ``__iadd__`` are the steps."""
    columns = Columns()
    ops: list[Op] = []
    counted = iter(steps)
    for index, (kind, numbers, norm_in, norm_out) in enumerate(made):
        given = tensor(columns, "input.0", norm=norm_in)
        other = tensor(columns, "input.1", norm=norm_in)
        out = tensor(columns, "output.0", norm=norm_out)
        if kind == "__iadd__":
            columns.most[out] = next(counted)
        attributes = {f"input.{name}": value for name, value in numbers.items()}
        name = f"{kind}.{index}"
        inputs = [given, other]
        ops.append(Op(index, name, kind, "optimizer", inputs, [out], (), attributes, call=name))
    return run(columns, ops)


def told(dump: TensorRun) -> dict[str, float]:
    found = list(told_by_calls(dump))
    assert len({name for name, _, _ in found}) == len(found)
    return {name: value for name, value, _ in found}


RATE, DECAY, BETA1, BETA2, EPSILON, STEP = 1e-3, 0.1, 0.9, 0.98, 1e-6, 3
STEP_SIZE = RATE / (1 - BETA1**STEP)


def adam(*before: Call, step: bool = True, beta1: bool = True) -> TensorRun:
    """The calls of one parameter, with what a variant does to begin with."""
    return calls(
        *([("__iadd__", {}, 1.0, 1.0)] if step else []),
        *before,
        *([("lerp_", {"2": 1 - BETA1}, 1.0, 1.0)] if beta1 else []),
        ("mul_", {"1": BETA2}, 1.0, 1.0),
        ("addcmul_", {}, 1.0, 1.0),
        ("add_", {"1": EPSILON}, 1.0, 1.0),
        ("addcdiv_", {"value": -STEP_SIZE}, 1.0, 1.0),
        steps=(float(STEP),),
    )


ADAM = {"beta1": BETA1, "beta2": BETA2, "optimizer epsilon": EPSILON, "learning rate": RATE}


def test_adam_with_decoupled_decay() -> None:
    """The parameter is multiplied by 1 - rate · decay before the moments are."""
    found = told(adam(("mul_", {"1": 1 - RATE * DECAY}, 1.0, 1.0)))
    assert found == pytest.approx({**ADAM, "weight decay": DECAY})


def test_adam_with_decay_in_the_gradient() -> None:
    """The parameter that is updated is what was added to the gradient."""
    found = told(adam(("add", {"alpha": DECAY}, 1.0, 2.0)))
    assert found == pytest.approx({**ADAM, "weight decay": DECAY})


def test_adam_without_decay() -> None:
    assert told(adam()) == pytest.approx({**ADAM, "weight decay": 0.0})


def test_adam_of_which_the_step_or_a_moment_is_not_known() -> None:
    """Without the corrections of bias only the product of both is known."""
    known = {name: ADAM[name] for name in ("beta2", "optimizer epsilon")}
    factor = 1 - RATE * DECAY
    for dump in (
        adam(("mul_", {"1": factor}, 1.0, 1.0), step=False),
        adam(("mul_", {"1": factor}, 1.0, 1.0), beta1=False),
    ):
        found = told(dump)
        found.pop("beta1", None)
        found.pop("decay factor (1 - rate · decay)", None)
        assert found == pytest.approx({**known, "step size (rate, bias corrected)": STEP_SIZE})
    found = told(adam(("mul_", {"1": factor}, 1.0, 1.0), step=False))
    assert found["decay factor (1 - rate · decay)"] == factor


def test_each_parameter_is_told_by_its_own_calls() -> None:
    made = [
        call
        for rate in (1e-2, 1e-3)
        for call in (
            ("__iadd__", {}, 1.0, 1.0),
            ("lerp_", {"2": 0.5}, 1.0, 1.0),
            ("addcdiv_", {"3": -rate * 2}, 1.0, 1.0),
        )
    ]
    rates = [v for n, v, _ in told_by_calls(calls(*made, steps=(1.0, 1.0))) if n == "learning rate"]
    assert rates == pytest.approx([1e-2, 1e-3])


def test_what_was_known_of_one_parameter_is_not_believed_of_the_next() -> None:
    made: list[Call] = [
        ("__iadd__", {}, 1.0, 1.0),
        ("lerp_", {"2": 0.5}, 1.0, 1.0),
        ("addcdiv_", {"value": -2e-2}, 1.0, 1.0),
        ("addcdiv_", {"value": -2e-2}, 1.0, 1.0),
    ]
    names = [name for name, _, _ in told_by_calls(calls(*made, steps=(1.0,)))]
    assert names == [
        *("beta1", "learning rate", "weight decay"),
        "step size (rate, bias corrected)",
    ]


def test_sgd_with_momentum_and_decay() -> None:
    """``p`` has norm 3; ``g + decay · p`` comes of it, then the momentum, then the update."""
    found = told(
        calls(
            ("add", {"alpha": 5e-4}, 3.0, 1.0),
            ("mul_", {"1": 0.9}, 1.0, 1.0),
            ("add_", {"alpha": 1.0}, 1.0, 1.0),
            ("add_", {"alpha": -0.05}, 3.0, 1.0),
        )
    )
    assert found == {"momentum": 0.9, "weight decay": 5e-4, "learning rate": 0.05}


def test_sgd_that_looks_ahead() -> None:
    """What Nesterov adds to the gradient is the momentum's buffer, not the parameter."""
    found = list(
        told_by_calls(
            calls(
                ("add", {"alpha": 5e-4}, 3.0, 1.0),
                ("add", {"alpha": 0.9}, 7.0, 1.0),
                ("add_", {"alpha": -0.05}, 3.0, 1.0),
            )
        )
    )
    assert [(name, value) for name, value, _ in found] == [
        ("momentum", 0.9),
        ("Nesterov's momentum", 1.0),
        ("weight decay", 5e-4),
        ("learning rate", 0.05),
    ]


def test_what_is_no_number_says_nothing() -> None:
    assert told(calls(("addcdiv_", {}, 1.0, 1.0), ("mul_", {}, 1.0, 1.0))) == {}
    assert told(calls(("mul_", {"1": 0.9}, 1.0, 1.0))) == {}
    assert told(calls(("lerp_", {}, 1.0, 1.0))) == {}
    rows = told(calls(("addcdiv_", {"value": math.nan}, 1.0, 1.0)))
    assert list(rows) == ["step size (rate, bias corrected)"]


def test_calls_of_the_network_are_not_looked_at() -> None:
    dump = adam()
    for op in dump.ops:
        op.phase = "forward"
    assert told(dump) == {}
    dump = adam()
    for op in dump.ops:
        op.call = ""
    assert told(dump) == {}
