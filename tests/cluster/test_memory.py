"""Memory of a device: static by cause, the curve over a step, the peak and what is alive there."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import irtool
from irtool.cluster.liveness import curve, liveness, rounded
from irtool.cluster.memory import Memory, MemoryCounting, memory
from irtool.cluster.memory.binding import BindingError, bound, demanded
from irtool.cluster.memory.layers import layer_of_parameter, layer_of_scope
from irtool.ir.parameter_roles import named_owners

MiB = 1 << 20


def of(samples: Path, name: str, options: MemoryCounting | None = None) -> Memory:
    return memory(irtool.load(samples / name), options or MemoryCounting())


# -- known figures -----------------------------------------------------------------------------


def test_recomputation_shows_in_launch_order_only(samples: Path) -> None:
    """8 blocks of width 1024, batch 4096, 4 x 2 devices: 58 MiB, with recompute 42 MiB."""
    without = of(samples, "memory/without_recompute.ir.xz")
    recomputed = of(samples, "memory/with_recompute.ir.xz")
    assert round(without.dynamic_bytes / MiB, 1) == 58.0
    assert round(recomputed.dynamic_bytes / MiB, 1) == 42.0
    printed = MemoryCounting(order="dump")
    for name in ("without_recompute", "with_recompute"):
        in_print = of(samples, f"memory/{name}.ir.xz", printed)
        assert round(in_print.dynamic_bytes / MiB, 1) == 98.0


def test_optimizer_parallel_shards_what_stays_and_gathers_for_the_step(samples: Path) -> None:
    """Four weights of 2048 x 2048 on 8 devices: 128 MiB become 16, the step's 48 become 66."""
    without = of(samples, "memory/without_optimizer_parallel.ir.xz")
    sharded = of(samples, "memory/with_optimizer_parallel.ir.xz")
    for found, parameters, dynamic in ((without, 64, 48), (sharded, 8, 66)):
        assert found.static_by_cause["parameters"] == parameters * MiB
        assert found.static_by_cause["optimizer state"] == parameters * MiB
        assert round(found.dynamic_bytes / MiB) == dynamic
    assert sharded.alive_by_cause()["gathered weights"] > 40 * MiB


def test_rounding() -> None:
    assert [rounded(size, "pool") for size in (0, 1, 512, 513)] == [512, 512, 512, 1024]
    assert [rounded(size, "somas") for size in (1, 512, 1000)] == [512, 1024, 1536]
    assert rounded(700, "none") == 700
    assert rounded(512, "pool", communicated=True) == 512 + 1024


# -- causes ------------------------------------------------------------------------------------


def test_parameters_by_cause(samples: Path) -> None:
    found = of(samples, "pipeline_run/rank_0/20_validate_0080.ir")
    causes = {item.name: item.cause for item in found.static if item.line}
    assert causes["layers.0.up"] == "parameters"
    assert causes["moments.layers.0.up"] == "optimizer state"
    assert causes["accu_grads.layers.0.up"] == "accumulated gradients"
    assert causes["learning_rate"] == "other"
    assert causes["inputs0"] == "inputs"


def test_what_optimizers_keep_is_known_by_its_name() -> None:
    found = named_owners(
        ["bias", "moments.bias", "dense.bias", "moments.dense.bias", "alone.weight",
         "cell.up.weight", "cell.adam_m.up.weight", "accu_grads.cell.up.weight", "global_step"]
    )  # fmt: skip
    kept = {name: owner for name, owner in found.items() if owner != name}
    assert kept == {
        "moments.bias": "bias",
        "moments.dense.bias": "dense.bias",
        "cell.adam_m.up.weight": "cell.up.weight",
        "accu_grads.cell.up.weight": "cell.up.weight",
    }


def test_what_is_kept_for_a_weight_belongs_to_its_layer(samples: Path) -> None:
    found = of(samples, "gpt/20_validate_0080.ir")
    layers = {item.name: item.layer for item in found.static}
    assert layers["moments.layers.1.up.weight"] == layers["layers.1.up.weight"] == "layers.1"


@pytest.mark.parametrize(
    ("scope", "layer"),
    [
        ("Default/network-WithLossCell/_backbone-Gpt/layers-CellList/0-Layer/up-Dense", "layers.0"),
        ("Gradients/Default/network-Net/b1-Block/Grad_MatMul", "b1"),
        ("Default/network-WithLossCell/_backbone-LM/lnf-LN", "lnf"),
        ("Gradients/Default/Grad__MirrorOperator", "(network)"),
        ("recompute_Default/network-WL/n-Net/layers-CellList/1-Block", "n.layers.1"),
        ("Default", "(network)"),
        ("Gradients", "(network)"),
        ("Gradients/Grad_MatMul", "(network)"),
        ("", "(network)"),
        (None, "(network)"),
    ],
)
def test_layer_of_a_scope(scope: str | None, layer: str) -> None:
    assert layer_of_scope(scope) == layer


@pytest.mark.parametrize(
    ("name", "layer"),
    [
        ("layers.0.attention.query.weight", "layers.0"),
        ("network._backbone.blocks.12.up", "blocks.12"),
        ("layer1.weight", "layer1"),
        ("embedding", "embedding"),
        ("w3", "w3"),
    ],
)
def test_layer_of_a_parameter(name: str, layer: str) -> None:
    assert layer_of_parameter(name) == layer


def test_activations_are_kept_for_the_backward_pass(samples: Path) -> None:
    found = of(samples, "memory/without_recompute.ir.xz")
    assert found.alive_by_cause()["activations"] > found.dynamic_bytes / 2
    for item in found.alive:
        if item.cause == "activations":
            assert item.phase == "forward"
            assert item.born <= (found.peak_launch or 0) <= item.dies


def test_communicators_are_counted_by_group(samples: Path) -> None:
    found = of(samples, "memory/without_recompute.ir.xz", MemoryCounting(hccl_buffer=100))
    assert len(found.communicators.groups) == 3
    assert found.communicators.bytes.low == 300


# -- invariants --------------------------------------------------------------------------------

DUMPS = (
    "gpt/20_validate_0080.ir",
    "pipeline_run/rank_4/20_validate_0080.ir",
    "recompute/20_validate_0081.ir",
    "grad_accumulation/20_validate_0082.ir",
    "memory/accumulated_whole.ir.xz",
)


@pytest.mark.parametrize("name", DUMPS)
def test_what_is_alive_adds_up_to_the_peak(name: str, samples: Path) -> None:
    found = of(samples, name)
    assert sum(item.bytes or 0 for item in found.alive) == max(found.curve) == found.dynamic_bytes
    assert sum(found.alive_by_cause().values()) == found.dynamic_bytes
    assert sum(found.static_by_cause.values()) == found.static_bytes


@pytest.mark.parametrize("name", DUMPS)
@pytest.mark.parametrize("order", ["bfs", "dfs", "dump"])
def test_no_tensor_is_used_before_its_birth_or_after_its_death(
    name: str, order: str, samples: Path
) -> None:
    options = MemoryCounting(order=order)  # type: ignore[arg-type]  # of the three
    found = of(samples, name, options).live
    for buffer in found.buffers:
        assert all(buffer.born <= user <= buffer.dies for user in buffer.users)


@pytest.mark.parametrize("name", DUMPS)
def test_views_and_no_rounding_never_take_more(name: str, samples: Path) -> None:
    usual = of(samples, name).dynamic_bytes
    assert of(samples, name, MemoryCounting(views=True)).dynamic_bytes <= usual
    assert of(samples, name, MemoryCounting(rounding="none")).dynamic_bytes <= usual


@given(st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9), st.integers(0, 99)), max_size=9))
def test_the_curve_is_the_sum_of_what_is_alive(spans: list[tuple[int, int, int]]) -> None:
    from irtool.cluster.liveness import Buffer

    buffers = tuple(
        Buffer(None, 0, size, min(a, b), max(a, b))  # type: ignore[arg-type]  # no node is needed
        for a, b, size in spans
    )
    for place, alive in enumerate(curve(buffers, 10)):
        assert alive == sum(one.size or 0 for one in buffers if one.born <= place <= one.dies)


# -- aliases -----------------------------------------------------------------------------------

ALIASES = b"""# IR entry: @main
# Total subgraphs: 1
# Total params: 2
# Params:
%para1_x: <Tensor[Float32], (256, 4)> : [256, 4]
%para2_w: <Ref[Tensor[Float32]], (256, 4), ref_key=w>  :  has_default
subgraph @main() {
  %0(a) = PrimFunc_ReLU(%para1_x)
      : (<Tensor[Float32], (256, 4)>) -> (<Tensor[Float32], (256, 4)>)
  %1(b) = PrimFunc_Reshape(%0, (I64(1024)))
      : (<Tensor[Float32], (256, 4)>, <Tuple[Int64], TupleShape(NoShape)>) -> (<Tensor[Float32], (1024)>)
  %2(c) = PrimFunc_Exp(%1)
      : (<Tensor[Float32], (1024)>) -> (<Tensor[Float32], (1024)>)
  %3(d) = PrimFunc_Abs(%2)
      : (<Tensor[Float32], (1024)>) -> (<Tensor[Float32], (1024)>)
  %4(e) = Depend(%3, %0)
      : (<Tensor[Float32], (1024)>, <Tensor[Float32], (256, 4)>) -> (<Tensor[Float32], (1024)>)
  %5(f) = MakeTuple(%4, %2)
      : (<Tensor[Float32], (1024)>, <Tensor[Float32], (1024)>) -> (<Tuple[Tensor[Float32]*2], TupleShape((1024), (1024))>)
  %6(g) = TupleGetItem(%5, I64(0))
      : (<Tuple[Tensor[Float32]*2], TupleShape((1024), (1024))>, <Int64, NoShape>) -> (<Tensor[Float32], (1024)>)
  %7(h) = PrimFunc_Neg(%6)
      : (<Tensor[Float32], (1024)>) -> (<Tensor[Float32], (1024)>)
  Return(%7)
      : (<Tensor[Float32], (1024)>)
}
"""  # noqa: E501  # a type line cannot be broken


def test_renaming_allocates_nothing_and_ordering_uses_nothing() -> None:
    found = liveness(irtool.load(ALIASES), rounding="none")
    spans = {buffer.node.op: (buffer.born, buffer.dies) for buffer in found.buffers}
    # ReLU lives until Exp has read it under its other name; Depend's second input keeps nothing,
    # and a tuple keeps only the element that is taken out.
    assert spans == {"ReLU": (0, 2), "Exp": (2, 3), "Abs": (3, 4), "Neg": (4, 4)}


@pytest.mark.parametrize(
    ("views", "spans"),
    [
        (False, {"ReLU": (0, 1), "TransposeView": (1, 2), "Exp": (2, 2)}),
        (True, {"ReLU": (0, 2), "Exp": (2, 2)}),
    ],
)
def test_a_transposed_tensor_is_a_copy_or_the_tensor_itself(
    views: bool, spans: dict[str, tuple[int, int]]
) -> None:
    kind = "<Tensor[Float32], (4, 4)>"
    lines = ["# IR entry: @main", f"%para1_x: {kind} : [4, 4]", "subgraph @main() {"]
    for number, call in enumerate(("ReLU(%para1_x)", "TransposeView(%0)", "Exp(%1)")):
        lines += [f"  %{number}(v) = PrimFunc_{call}", f"      : ({kind}) -> ({kind})"]
    dump = irtool.load("\n".join([*lines, "  Return(%2)", "}", ""]).encode())
    found = liveness(dump, rounding="none", views=views)
    assert {buffer.node.op: (buffer.born, buffer.dies) for buffer in found.buffers} == spans


def test_tuples_of_tuples_take_neither_depth_nor_time() -> None:
    """Each of 2,000 tuples holds the one before it twice: written out, 2 to the 2,000 elements."""
    lines = ["# IR entry: @main", "subgraph @main() {", "  %0(a) = PrimFunc_ReLU(%para1_x)"]
    lines += ["      : (<Tensor[Float32], (4)>) -> (<Tensor[Float32], (4)>)"]
    lines += [f"  %{n}(t{n}) = MakeTuple(%{n - 1}, %{n - 1})" for n in range(1, 2001)]
    lines += ["  %2001(b) = PrimFunc_AddN(%2000)", "  Return(%2001)", "}", ""]
    found = liveness(irtool.load("\n".join(lines).encode()), rounding="none")
    assert [buffer.size for buffer in found.buffers] == [16]
    assert found.buffers[0].dies == 1


def test_updates_write_into_their_parameter(samples: Path) -> None:
    found = of(samples, "optimizer_parallel/19_validate_0078.ir")
    assert "ApplyMomentum" not in {buffer.node.op for buffer in found.live.buffers}


# -- unknown sizes -----------------------------------------------------------------------------


def test_unknown_sizes_are_told_and_make_the_answer_open(samples: Path) -> None:
    found = of(samples, "dynamic_shape/20_validate_0080.ir")
    assert "inputs0" in found.unknown
    assert not found.is_complete
    assert found.fits(1 << 60) is None


def test_a_bound_symbol_gives_sizes_to_all_that_follow_from_it(samples: Path) -> None:
    dump = irtool.load(samples / "dynamic_shape/20_validate_0080.ir")
    assert [symbol.name for symbol in demanded(dump)] == ["s4"]
    by_symbol = memory(bound(dump, {"s4": 64}))
    by_place = memory(bound(dump, {"inputs0[0]": 64}))
    assert by_symbol.peak_bytes == by_place.peak_bytes
    assert "inputs0" not in by_symbol.unknown
    twice = memory(bound(dump, {"s4": 128}))
    assert twice.peak_bytes > by_symbol.peak_bytes


def test_a_bound_dump_keeps_everything_else(samples: Path) -> None:
    dump = irtool.load(samples / "dynamic_shape/20_validate_0080.ir")
    made = bound(dump, {"s4": 64})
    assert [str(node) for node in made.nodes()] == [str(node) for node in dump.nodes()]
    first = next(made.nodes("Split"))
    assert first.input_types[0] is not None
    assert first.input_types[0].dimensions == (64, 4, 64)


@pytest.mark.parametrize(
    ("sizes", "message"),
    [
        ({"s4": 12}, "s4 is a multiple of 8, not 12"),
        ({"s4": 0}, "s4 is from 8 to any number, not 0"),
    ],
)
def test_a_size_that_cannot_be_is_refused(
    sizes: dict[str, int], message: str, samples: Path
) -> None:
    dump = irtool.load(samples / "dynamic_shape/20_validate_0080.ir")
    with pytest.raises(BindingError, match=message):
        bound(dump, sizes)
