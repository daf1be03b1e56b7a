"""Weights: how each lies, who sums its gradient, and how optimizer parallel cuts it."""

from __future__ import annotations

import pytest

from irtool.sharding.network.report import CheckResult, ParameterReport
from tests.sharding.network.small import Body, Small, Value, constant, parameter, tensor

SQUARE = (64, 64)
PAIR = "<Tuple[Tensor[Float32]*2], TupleShape((64, 64), (64, 64))>"


def product(strategy: tuple[tuple[int, ...], ...], rows: int = 64) -> Small:
    """One product with a weight of so many rows."""
    net = Small()
    x, w = net.input("x", (64, rows)), net.weight("w", (rows, 64))
    main = net.graph("main")
    main.result = main.product(x, w, SQUARE, strategy)
    return net


def cut(net: Small, threshold: int = 0, shard_size: int = -1, **more: object) -> ParameterReport:
    """The weight under optimizer parallel."""
    config = {
        "parallel_optimizer_threshold": threshold, "optimizer_weight_shard_size": shard_size,
    }  # fmt: skip
    options = {"enable_parallel_optimizer": True, "parallel_optimizer_config": config, **more}
    return parameter(net.checked(**options), "w")


# -- how a weight lies ---------------------------------------------------------------------------


def test_a_weight_lies_as_its_user_wants_it() -> None:
    found = parameter(product(((2, 2), (2, 2))).checked(), "w")
    assert (found.slice, found.base) == ((32, 32), (32, 32))
    assert found.gather_ranks is None
    assert not found.why


def test_a_weight_that_nothing_uses_is_whole() -> None:
    net = product(((8, 1), (1, 1)))
    net.weight("rate", (4,))
    found = parameter(net.checked(), "rate")
    assert (found.slice, found.why, found.user) == ((4,), "", None)


def test_of_a_weight_of_a_refused_operator_the_slice_is_not_known() -> None:
    found = parameter(product(((3, 1), (1, 1))).checked(), "w")
    assert (found.slice, found.base) == (None, None)
    assert found.why == "its user %0 MatMul is illegal"


def used_twice(first: tuple[int, int], second: tuple[int, int], through: str = "") -> Small:
    """A weight behind which two products stand, with these splits of its rows and columns."""
    net = Small()
    x, w = net.input("x", SQUARE), net.weight("w", SQUARE)
    inner = net.graph("inner")
    y, v = inner.parameter(tensor(SQUARE)), inner.parameter(w.type)
    inner.result = inner.product(y, v, SQUARE, ((1, second[0]), second))
    if through != "call":
        net.graphs.clear()
    main = net.graph("main")
    one = main.product(x, w, SQUARE, ((1, first[0]), first))
    if through == "call":
        other = main.add("call @inner", [x, w], tensor(SQUARE))
    else:
        used = w
        if through == "Load":
            used = main.add("Load", [w, x], tensor(SQUARE))
        if through == "Load and Cast":
            used = main.add("Load", [w, x], tensor(SQUARE))
            used = main.add("PrimFunc_Cast", [used, constant(43)], tensor(SQUARE))
        other = main.product(x, used, SQUARE, ((1, second[0]), second))
    main.result = main.add("MakeTuple", [one, other], PAIR)
    return net


@pytest.mark.parametrize("through", ["", "Load", "Load and Cast"])
def test_users_that_want_a_weight_in_two_layouts_are_refused(through: str) -> None:
    report = used_twice((2, 2), (4, 1), through).checked()
    assert report.accepted is False
    (finding,) = (item for item in report.findings if item.code == "parameter-users")
    assert "w has several users" in finding.message


@pytest.mark.parametrize("through", ["", "Load", "Load and Cast", "call"])
def test_users_that_want_a_weight_alike_are_not(through: str) -> None:
    report = used_twice((2, 2), (2, 2), through).checked()
    assert report.accepted
    assert parameter(report, "w").slice == (32, 32)


def test_a_user_in_a_called_graph_decides_where_there_is_no_other() -> None:
    net = Small()
    x, w = net.input("x", SQUARE), net.weight("w", SQUARE)
    inner = net.graph("inner")
    y, v = inner.parameter(tensor(SQUARE)), inner.parameter(w.type)
    loaded = inner.add("Load", [v, y], tensor(SQUARE))
    inner.result = inner.product(y, loaded, SQUARE, ((2, 4), (4, 1)))
    main = net.graph("main")
    main.result = main.add("call @inner", [x, w], tensor(SQUARE))
    assert parameter(net.checked(), "w").slice == (16, 64)


@pytest.mark.parametrize(
    ("through", "slice"),
    [
        ("Depend", (16, 64)),
        ("Load", (16, 64)),
        ("Depend Load", (16, 64)),
        ("waits", (64, 64)),  # what only waits for a weight does not use it
        ("UpdateState", (64, 64)),
    ],
)
def test_what_hands_a_weight_on_is_looked_behind(through: str, slice: tuple[int, int]) -> None:
    net = Small()
    x, w = net.input("x", SQUARE), net.weight("w", SQUARE)
    main = net.graph("main")
    used = w
    for op in through.split():
        operands = [x, used] if op == "waits" else [used, x]
        used = main.add(op.replace("waits", "Depend"), operands, tensor(SQUARE))
    main.result = main.product(x, used, SQUARE, ((2, 4), (4, 1)))
    assert parameter(net.checked(), "w").slice == slice


def test_an_item_of_a_tuple_lies_as_the_operator_wants_that_item() -> None:
    net = Small()
    x, w = net.input("x", SQUARE), net.weight("w", SQUARE)
    main = net.graph("main")
    both = main.add("MakeTuple", [x, w], PAIR)
    main.result = main.add("PrimFunc_AddN", [both], tensor(SQUARE), user=((4, 2), (4, 2)))
    assert parameter(net.checked(), "w").slice == (16, 32)


# -- optimizer parallel --------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("strategy", "slice", "ranks"),
    [
        (((8, 1), (1, 1)), (8, 64), tuple(range(8))),  # everybody holds it
        (((2, 4), (4, 1)), (8, 64), (0, 4)),
        (((4, 1), (1, 2)), (16, 32), (0, 2, 4, 6)),
        (((1, 8), (8, 1)), (8, 64), None),  # nobody else holds this part
    ],
)
def test_who_holds_the_same_part_shares_it(
    strategy: tuple[tuple[int, ...], ...], slice: tuple[int, int], ranks: tuple[int, ...] | None
) -> None:
    found = cut(product(strategy))
    assert (found.slice, found.gather_ranks) == (slice, ranks)
    assert found.base is not None
    assert found.base[0] == slice[0] * (len(ranks) if ranks else 1)


@pytest.mark.parametrize(("threshold", "is_cut"), [(15, True), (16, True), (17, False)])
def test_a_weight_below_the_threshold_stays_whole(threshold: int, is_cut: bool) -> None:
    """64 x 64 numbers of 4 bytes are 16 KB, however they are split."""
    assert (cut(product(((8, 1), (1, 1))), threshold).gather_ranks is not None) is is_cut
    assert (cut(product(((2, 4), (4, 1))), threshold).gather_ranks is not None) is is_cut


@pytest.mark.parametrize(("dtype", "least"), [("Float16", 8), ("Float32", 16)])
def test_the_threshold_counts_bytes(dtype: str, least: int) -> None:
    net = Small()
    x, w = net.input("x", SQUARE, dtype), net.weight("w", SQUARE, dtype)
    main = net.graph("main")
    turns = [constant(False), constant(False)]
    main.result = main.add(
        "PrimFunc_MatMul", [x, w, *turns], tensor(SQUARE, dtype), user=((8, 1), (1, 1))
    )
    assert cut(net, least).gather_ranks is not None
    assert cut(net, least + 1).gather_ranks is None


def test_an_excluded_weight_stays_whole() -> None:
    net = product(((8, 1), (1, 1)))
    assert cut(net, parallel_optimizer_excluded=["w"]).gather_ranks is None
    assert cut(net, parallel_optimizer_excluded=["*.w", "v"]).gather_ranks is not None


@pytest.mark.parametrize(("rows", "is_cut"), [(64, True), (8, True), (12, False), (4, False)])
def test_rows_that_do_not_divide_stay_together(rows: int, is_cut: bool) -> None:
    assert (cut(product(((8, 1), (1, 1)), rows)).gather_ranks is not None) is is_cut


@pytest.mark.parametrize(
    ("size", "slice", "ranks"),
    [
        (-1, (8, 64), tuple(range(8))),
        (8, (8, 64), tuple(range(8))),
        (4, (16, 64), (0, 1, 2, 3)),
        (2, (32, 64), (0, 1)),
    ],
)
def test_the_size_of_a_share_may_be_given(
    size: int, slice: tuple[int, int], ranks: tuple[int, ...]
) -> None:
    found = cut(product(((8, 1), (1, 1))), shard_size=size, soc="Ascend910B")
    assert (found.slice, found.gather_ranks) == (slice, ranks)


@pytest.mark.parametrize(("rank", "ranks"), [(0, (0, 1)), (1, (0, 1)), (2, (2, 3)), (7, (6, 7))])
def test_a_share_is_that_of_the_ranks_own_block(rank: int, ranks: tuple[int, int]) -> None:
    found = cut(product(((8, 1), (1, 1))), shard_size=2, soc="Ascend910B", global_rank=rank)
    assert found.gather_ranks == ranks


def test_a_size_that_does_not_divide_the_copies_leaves_the_weight_whole() -> None:
    assert cut(product(((8, 1), (1, 1)), 24), shard_size=3).gather_ranks is None
    assert cut(product(((2, 4), (4, 1))), shard_size=4).gather_ranks == (0, 4)  # at most all


@pytest.mark.parametrize(("soc", "ranks"), [("Ascend910B", (0, 1, 2)), ("Ascend910", None)])
def test_without_a_group_of_the_ranks_the_weight_stays_whole(
    soc: str, ranks: tuple[int, ...] | None
) -> None:
    """Three devices of one server form no group on the first generation."""
    found = cut(product(((1, 1), (1, 1)), 96), shard_size=3, soc=soc, device_num=24)
    assert found.gather_ranks == ranks
    assert found.slice == ((32, 64) if ranks else (96, 64))


# -- gradients -----------------------------------------------------------------------------------


def trained(
    strategy: tuple[tuple[int, ...], ...], *, all_weights: bool = True, **options: object
) -> CheckResult:
    """A step that takes out the gradient of ``w`` (and of ``v``) of two products."""
    net = Small()
    x, w, v = net.input("x", SQUARE), net.weight("w", SQUARE), net.weight("v", SQUARE)
    forward = net.graph("forward")
    y = forward.parameter(tensor(SQUARE))
    first = forward.product(y, w, SQUARE, strategy)
    second = forward.product(first, v, SQUARE, strategy)
    loss = forward.add(
        "PrimFunc_ReduceSum", [second, constant((0, 1)), constant(False), constant(False)],
        tensor(()), user=((1, 1),),
    )  # fmt: skip
    forward.result = loss
    main = net.graph("main")
    found = main.gradients(forward, [x], [w, v] if all_weights else [w])
    main.result = found[0]
    return net.checked(**options)


def test_copies_of_a_weight_sum_its_gradient() -> None:
    report = trained(((2, 4), (4, 1)))
    assert parameter(report, "w").mirror_ranks == (0, 4)
    assert parameter(report, "v").mirror_ranks == (0, 4)


def test_a_weight_whose_gradient_is_not_taken_sums_none() -> None:
    report = trained(((2, 4), (4, 1)), all_weights=False)
    assert parameter(report, "w").mirror_ranks == (0, 4)
    assert parameter(report, "v").mirror_ranks is None


def test_a_weight_that_nobody_else_holds_sums_none() -> None:
    assert parameter(trained(((1, 8), (8, 1))), "w").mirror_ranks is None


def test_without_a_gradient_nobody_sums_one() -> None:
    assert parameter(product(((2, 4), (4, 1))).checked(), "w").mirror_ranks is None


def test_shared_weights_scatter_what_they_sum() -> None:
    found = parameter(
        trained(
            ((8, 1), (1, 1)), enable_parallel_optimizer=True,
            parallel_optimizer_config={"parallel_optimizer_threshold": 0},
        ),
        "w",
    )  # fmt: skip
    assert found.gather_ranks == tuple(range(8))
    assert found.mirror_ranks is None
    assert found.slice == (8, 64)


def test_shares_of_a_part_sum_between_themselves() -> None:
    options = {
        "enable_parallel_optimizer": True, "soc": "Ascend910B",
        "parallel_optimizer_config": {
            "parallel_optimizer_threshold": 0, "optimizer_weight_shard_size": 2,
        },
    }  # fmt: skip
    found = parameter(trained(((8, 1), (1, 1)), **options), "w")
    assert found.gather_ranks == (0, 1)
    assert found.mirror_ranks == (0, 2, 4, 6)
    untrained = parameter(trained(((8, 1), (1, 1)), all_weights=False, **options), "v")
    assert untrained.gather_ranks == (0, 1)
    assert untrained.mirror_ranks is None


def body_of(net: Small) -> tuple[Body, Value]:
    forward = net.graph("forward")
    return forward, forward.parameter(tensor(SQUARE))


@pytest.mark.parametrize(("devices", "ranks"), [(8, (0, 4)), (16, (0, 4, 8, 12))])
def test_adasum_sums_within_a_server_only(devices: int, ranks: tuple[int, ...]) -> None:
    """Between servers of eight the optimizer does it."""
    for scope, wanted in (("Default/optimizer-AdaSumCell", ranks[:2]), ("Default", ranks)):
        net = Small()
        x, w = net.input("x", SQUARE), net.weight("w", SQUARE)
        forward, y = body_of(net)
        first = forward.product(y, w, SQUARE, ((devices // 4, 4), (4, 1)))
        forward.result = forward.add(
            "PrimFunc_ReduceSum", [first, constant((0, 1)), constant(False), constant(False)],
            tensor(()), user=((1, 1),),
        )  # fmt: skip
        main = net.graph("main")
        (found,) = main.gradients(forward, [x], [w])
        main.result = main.add("PrimFunc_Neg", [found], tensor(SQUARE), scope=scope)
        report = net.checked(device_num=devices)
        assert parameter(report, "w").mirror_ranks == wanted, scope


# -- states without a dimension --------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "shape", "slice"),
    [
        ("exp_avg_sq_row_w", (4, 64), (2, 32)),  # one for each row of each matrix
        ("exp_avg_sq_col_w", (4, 32), (2, 16)),
        ("exp_avg_insta_row_w", (4, 64), (2, 32)),
        ("exp_avg_insta_col_w", (4, 32), (2, 16)),
        ("exp_avg_sq_w", (4, 64, 32), (2, 32, 16)),
        ("exp_avg_sq_row_w", (4, 32), (4, 32)),  # a row's state is no column's
        ("exp_avg_sq_col_w", (4, 64), (4, 64)),
    ],
)
def test_factored_states_lie_as_their_weight_without_a_dimension(
    name: str, shape: tuple[int, ...], slice: tuple[int, ...]
) -> None:
    """AdaFactor keeps means over the rows and over the columns of a weight."""
    net = Small()
    main = net.graph("main")
    x, w = net.input("x", (4, 16, 64)), net.weight("w", (4, 64, 32))
    net.weight(name, shape)
    main.result = main.add(
        "PrimFunc_BatchMatMul", [x, w, constant(False), constant(False)], tensor((4, 16, 32)),
        user=((2, 1, 2), (2, 2, 2)),
    )  # fmt: skip
    report = net.checked(device_num=8)
    assert parameter(report, "w").slice == (2, 32, 16)
    assert parameter(report, name).slice == slice
