"""What parameters are, by what graphs of real train steps do with them."""

from __future__ import annotations

from pathlib import Path

import pytest

import irtool
from irtool.ir.parameter_roles import Role, named_owners, parameter_roles

DUMPS = Path(__file__).parents[1] / "cluster" / "dumps"
KINDS = ("step_parallel_begin", "validate")


def roles_in(folder: Path, kind: str) -> dict[Role, dict[str, str]]:
    """By role, parameters and the weights that they belong to."""
    (file,) = folder.glob(f"*{kind}_[0-9]*.ir*")
    found: dict[Role, dict[str, str]] = {}
    for name, each in parameter_roles(irtool.load(file)).items():
        found.setdefault(each.role, {})[name] = each.weight
    return found


def weights(*places: int, prefix: str = "optimizer.") -> list[str]:
    names = [f"{prefix}layer{i}.weight" for i in range(3)]
    names += [f"{prefix}layer{i}.bias" for i in range(3)]
    return [names[place] for place in places] if places else names


@pytest.mark.parametrize("kind", KINDS)
def test_states_with_names_that_say_nothing_are_kept_for_what_is_updated_from_them(
    kind: str,
) -> None:
    found = roles_in(DUMPS / "own_lion", kind)
    assert list(found["weight"]) == weights()
    states = {f"optimizer.q{i}": weight for i, weight in enumerate(weights())}
    means = {f"optimizer.shadow{i}": weight for i, weight in enumerate(weights())}
    assert found["state"] == {**states, **means}
    assert list(found["other"]) == ["optimizer.count"]


@pytest.mark.parametrize("kind", KINDS)
def test_states_of_other_shapes_belong_to_their_weights(kind: str) -> None:
    found = roles_in(DUMPS / "own_factor", kind)
    rows = {f"optimizer.r_{i}": weight for i, weight in enumerate(weights(0, 1, 2))}
    columns = {f"optimizer.c_{i}": weight for i, weight in enumerate(weights())}
    assert found["state"] == {**rows, **columns}
    assert list(found["weight"]) == weights()
    assert list(found["other"]) == [f"optimizer.r_{i}" for i in (3, 4, 5)], "nothing takes them"


@pytest.mark.parametrize("kind", KINDS)
def test_copies_in_single_precision_are_states_and_a_loss_scale_is_none(kind: str) -> None:
    found = roles_in(DUMPS / "own_master", kind)
    assert list(found["weight"]) == weights()
    copies = {f"optimizer.fp32_{i}": weight for i, weight in enumerate(weights())}
    momenta = {f"optimizer.v{i}": weight for i, weight in enumerate(weights())}
    assert found["state"] == {**copies, **momenta}
    assert list(found["other"]) == ["scale"]


@pytest.mark.parametrize("kind", KINDS)
def test_gradients_summed_under_a_name_of_the_users_own(kind: str) -> None:
    found = roles_in(DUMPS / "accumulate", kind)
    assert found["accumulated gradient"] == {f"total.{weight}": weight for weight in weights()}
    assert len(found["state"]) == 12
    assert "counter" in found["other"]


@pytest.mark.parametrize("kind", KINDS)
def test_a_scale_that_follows_the_gradients_is_no_weight(kind: str) -> None:
    found = roles_in(DUMPS / "loss_scale", kind)
    assert sorted(found["weight"]) == sorted(weights(prefix=""))
    assert {"scale_sense", "current_iterator_step", "learning_rate"} <= set(found["other"])


@pytest.mark.parametrize("kind", KINDS)
def test_moving_means_of_batches_are_weights(kind: str) -> None:
    found = roles_in(DUMPS / "convolutions", kind)
    assert any("moving_mean" in name for name in found["weight"])
    assert all(name.startswith("moments.") for name in found["state"])
    assert all(name == f"moments.{weight}" for name, weight in found["state"].items())


def test_weights_of_a_network_that_is_not_trained() -> None:
    text = """# Total params: 3
# Params:
%para1_x: <Tensor[Float32], (8, 4)> : [8, 4]
%para2_scale: <Ref[Tensor[Float32]], (1), ref_key=scale, is_parameter>  :  has_default
%para3_cache: <Ref[Tensor[Float32]], (8, 4), ref_key=cache, is_parameter>  :  has_default

subgraph @1_f() {
  %0(y) = PrimFunc_Mul(%para1_x, %para2_scale)
      : (<Tensor[Float32], (8, 4)>, <Ref[Tensor[Float32]], (1)>) -> (<Tensor[Float32], (8, 4)>)
  %1(z) = PrimFunc_Assign(%para3_cache, %0)
      : (<Ref[Tensor[Float32]], (8, 4)>, <Tensor[Float32], (8, 4)>) -> (<Tensor[Float32], (8, 4)>)
  Return(%1)
      : (<Tensor[Float32], (8, 4)>)
}
"""
    found = {name: each.role for name, each in parameter_roles(irtool.load(text.encode())).items()}
    assert found == {"x": "input", "scale": "weight", "cache": "other"}


def test_names_decide_where_no_operator_does() -> None:
    found = named_owners(
        ["w1", "exp_avg_sq_row_w1", "exp_avg_w1", "moments.w1", "mean_w1", "a.w2", "a.moments.w2"]
    )
    kept = {name: owner for name, owner in found.items() if owner != name}
    assert kept == {
        "exp_avg_sq_row_w1": "w1",
        "exp_avg_w1": "w1",
        "moments.w1": "w1",
        "a.moments.w2": "a.w2",
    }
