"""Plans under a memory limit: they fit, are as cheap as any that fits, and the bound is one."""

from __future__ import annotations

import re
from itertools import product
from math import inf
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import irtool
from irtool.cluster.machine import default_machine
from irtool.ir.dump import Dump
from irtool.planning.limits.bucket_tree import TooWide, Tree, loose_tree_of, tree_of
from irtool.planning.limits.labels import SLACK, Labelling
from irtool.planning.limits.memory import Limited
from irtool.planning.limits.modes import plain_modes
from irtool.planning.plans.plan import plan
from irtool.planning.search.exact import Floats, Table, value_of
from irtool.planning.search.paid_once import seconds_of_links
from irtool.planning.search.problem import planned_context, problem_of
from irtool.planning.search.search import Search
from irtool.planning.search.tables import CannotPlan, Model, model_of
from irtool.sharding.network.context import ParallelContext

SAMPLES = Path(__file__).parents[3] / "samples"
CONTEXT = ParallelContext(
    devices=8, mode="auto_parallel", search="sharding_propagation", full_batch=True
)
MACHINE = default_machine()
Problem = tuple[list[int], list[list[Floats]], list[list[Floats]], list[Table]]


@st.composite
def problems(draw: st.DrawFn) -> Problem:
    """Sizes, by variable and mode seconds and bytes, and tables over two or three variables."""
    sizes = draw(st.lists(st.integers(1, 3), min_size=1, max_size=5))
    rng = np.random.default_rng(draw(st.integers(0, 2**31)))
    modes = [draw(st.integers(1, 2)) for _ in sizes]
    seconds = [[rng.integers(1, 50, size).astype(float) for _ in range(n)]
               for size, n in zip(sizes, modes, strict=True)]  # fmt: skip
    held = [[rng.integers(0, 50, size).astype(float) for _ in range(n)]
            for size, n in zip(sizes, modes, strict=True)]  # fmt: skip
    tables: list[Table] = []
    for count in (2, 3):
        for start in range(len(sizes) - count + 1):
            if draw(st.booleans()):
                variables = tuple(range(start, start + count))
                values = rng.integers(0, 50, [sizes[v] for v in variables]).astype(float)
                tables.append(Table(variables, values))
    return sizes, seconds, held, tables


def priced(seconds: list[list[Floats]], held: list[list[Floats]], price: float) -> list[Floats]:
    return [
        np.min([s + price * h for s, h in zip(rows, sizes, strict=True)], axis=0)
        for rows, sizes in zip(seconds, held, strict=True)
    ]


def tree_at(problem: Problem, price: float) -> Tree:
    sizes, seconds, held, tables = problem
    return tree_of(sizes, priced(seconds, held, price), tables)


@given(problems())
@settings(max_examples=60, deadline=None)
def test_a_tree_knows_of_each_choice_the_least_sum_with_it(problem: Problem) -> None:
    sizes, seconds, held, tables = problem
    unary = priced(seconds, held, 0.5)
    tree = tree_at(problem, 0.5)
    everything = list(product(*(range(size) for size in sizes)))
    for bucket in tree.buckets:
        for choice, least in enumerate(tree.best_with(bucket)):
            sums = (value_of(each, unary, tables) for each in everything
                    if each[bucket.variable] == choice)  # fmt: skip
            assert least == pytest.approx(min(sums))


@pytest.mark.parametrize("seed", range(5))
def test_a_tree_that_would_be_too_wide_is_nowhere_above(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A ring: one of its variables has to be chosen twice."""
    rng = np.random.default_rng(seed)
    sizes = [3] * 5
    unary = [rng.integers(0, 50, 3).astype(float) for _ in sizes]
    ring = [(0, 1), (1, 2), (2, 3), (3, 4), (0, 4)]
    tables = [Table(ends, rng.integers(0, 50, (3, 3)).astype(float)) for ends in ring]
    exact = tree_of(sizes, unary, tables)
    monkeypatch.setattr("irtool.planning.limits.bucket_tree.MOST_ENTRIES", 10)
    with pytest.raises(TooWide):
        tree_of(sizes, unary, tables)
    loose = loose_tree_of(sizes, unary, tables)
    best = {bucket.variable: loose.best_with(bucket) for bucket in loose.buckets}
    assert len(best) == 6
    for bucket in exact.buckets:
        assert (best[bucket.variable] <= exact.best_with(bucket) + 1e-9).all()


@given(problems(), st.integers(0, 150), st.sampled_from([0.0, 0.3, 2.0]))
@settings(max_examples=120, deadline=None)
def test_labels_find_the_cheapest_that_fits(problem: Problem, room: int, price: float) -> None:
    sizes, seconds, held, tables = problem
    best = inf
    for choices in product(*(range(size) for size in sizes)):
        for modes in product(*(range(len(rows)) for rows in seconds)):
            picked = list(zip(choices, modes, strict=True))
            if sum(held[v][mode][choice] for v, (choice, mode) in enumerate(picked)) > room:
                continue
            own = [seconds[v][mode] for v, (_, mode) in enumerate(picked)]
            best = min(best, value_of(choices, own, tables))
    found = Labelling(tree_at(problem, price), seconds, held, price, room, 400.0).run()
    if best == inf:
        assert not found.choices
        return
    own = [seconds[v][mode] for v, mode in enumerate(found.modes)]
    assert value_of(found.choices, own, tables) <= best + SLACK * 400
    assert best - SLACK * 400 - 1e-9 <= found.bound <= best + 1e-9


@given(problems(), st.integers(0, 150))
@settings(max_examples=40, deadline=None)
def test_labels_find_nothing_where_nothing_is_cheap_enough(problem: Problem, room: int) -> None:
    _, seconds, held, _ = problem
    found = Labelling(tree_at(problem, 0.3), seconds, held, 0.3, room, 0.5).run()
    assert not found.choices
    assert found.bound == 0.5


# -- networks ------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def begin() -> Dump:
    return irtool.load(str(SAMPLES / "mlp_loop" / "step_parallel_begin_0019.ir"))


def small_model() -> Model:
    """Two products, so few strategies that all of them can be tried."""
    lines = [
        "", "%para1_x: <Tensor[Float32], (1024, 512)> : [1024, 512]",
        "%para2_a: <Ref[Tensor[Float32]], (512, 2048), ref_key=a, is_parameter>  :  has_default",
        "%para3_b: <Ref[Tensor[Float32]], (2048, 256), ref_key=b, is_parameter>  :  has_default",
        "", "subgraph attr:", "subgraph instance: main : 0x1", "subgraph @main() {",
    ]  # fmt: skip
    product_ = (
        "  %{at}(c{at}) = PrimFunc_MatMul({x}, {w}, Bool(0), Bool(0)) {{instance name: matmul}}"
        " primitive_attrs: {{}}\n      : (<Tensor[Float32], {shape}>, <Ref[Tensor[Float32]],"
        " {weight}>, <Bool, NoShape>, <Bool, NoShape>) -> (<Tensor[Float32], {out}>)"
    )
    lines.append(product_.format(at=0, x="%para1_x", w="%para2_a", shape="(1024, 512)",
                                 weight="(512, 2048)", out="(1024, 2048)"))  # fmt: skip
    lines.append(product_.format(at=1, x="%0", w="%para3_b", shape="(1024, 2048)",
                                 weight="(2048, 256)", out="(1024, 256)"))  # fmt: skip
    lines += ["  Return(%1)\n      : (<Tensor[Float32], (1024, 256)>)", "}", ""]
    context = ParallelContext.from_mapping(
        {"devices": 4, "full_batch": True}, mode="auto_parallel", search="sharding_propagation"
    )
    problem = problem_of(irtool.loads("\n".join(lines)), context, planned_context(context, 4))
    return model_of(problem.structure, MACHINE, problem.current, {})


def test_a_bound_is_not_above_any_choice_that_fits() -> None:
    """Every choice of a small network, priced exactly, against what is found under limits."""
    model = small_model()
    search = Search(model)
    everything: list[tuple[float, float]] = []
    for choices in product(*(range(len(each)) for each in model.candidates)):
        if any(item.items[at].judgement.verdict != "legal"
               for item, at in zip(model.candidates, choices, strict=True)):  # fmt: skip
            continue
        search.refine(choices)
        if not all(shared.agrees(choices) for shared in model.shared):
            continue
        own = sum(float(each[at]) for each, at in zip(model.unary, choices, strict=True))
        seconds = own + model.constant + seconds_of_links(model, choices)
        everything.append((model.memory_of(choices), seconds))
    sizes = sorted({held for held, _ in everything})
    assert len(sizes) > 5
    for limit in [*sizes, *(size + 1000 for size in sizes)]:
        best = min(seconds for held, seconds in everything if held <= limit)
        found = Limited(Search(model), plain_modes(model)).cheapest(int(limit))
        assert found.held <= limit
        assert found.bound <= best * (1 + 1e-9)
        assert best <= found.seconds * (1 + 1e-9)
        assert found.seconds <= found.bound * 1.0011


@pytest.mark.parametrize("part", [0.1, 0.5, 0.9])
@pytest.mark.parametrize("recompute", [False, True])
def test_plans_under_a_limit_are_close_to_the_bound(
    begin: Dump, part: float, recompute: bool
) -> None:
    most = plan(begin, CONTEXT, MACHINE).after.memory.total
    least = smallest(begin, recompute)
    limit = int(least + part * (most - least))
    found = plan(begin, CONTEXT, MACHINE, memory_limit=limit, decide_recompute=recompute)
    assert found.after.memory.total <= limit
    assert found.gap is not None
    # Of so small a batch, the buffer of fused sums, which no table counts, is more than is kept.
    assert found.gap <= (0.005 if recompute else 0.04)


def smallest(begin: Dump, recompute: bool) -> int:
    with pytest.raises(CannotPlan) as caught:
        plan(begin, CONTEXT, MACHINE, memory_limit=1, decide_recompute=recompute)
    exact = re.findall(r"\(([\d,]+) bytes\)", str(caught.value))
    return max(int(each.replace(",", "")) for each in exact)


@pytest.mark.parametrize("optimizer", [False, True])
@pytest.mark.parametrize("recompute", [False, True])
def test_what_is_decided_already_is_not_advised(
    begin: Dump, optimizer: bool, recompute: bool
) -> None:
    with pytest.raises(CannotPlan, match="more devices") as caught:
        plan(
            begin, CONTEXT, MACHINE, memory_limit=1000,
            decide_optimizer=optimizer, decide_recompute=recompute,
        )  # fmt: skip
    assert ("--optimizer-parallel auto" in str(caught.value)) is not optimizer
    assert ("--recompute auto" in str(caught.value)) is not recompute


def test_parts_of_the_choices_keep_bound_and_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without the search for the optimum inside a part, dividing the choices closes the gap."""
    model = small_model()
    search = Search(model)
    everything: list[tuple[float, float]] = []
    for choices in product(*(range(len(each)) for each in model.candidates)):
        if any(item.items[at].judgement.verdict != "legal"
               for item, at in zip(model.candidates, choices, strict=True)):  # fmt: skip
            continue
        search.refine(choices)
        if all(shared.agrees(choices) for shared in model.shared):
            own = sum(float(each[at]) for each, at in zip(model.unary, choices, strict=True))
            seconds = own + model.constant + seconds_of_links(model, choices)
            everything.append((model.memory_of(choices), seconds))
    module = "irtool.planning.limits.memory"
    monkeypatch.setattr(f"{module}.Closing.run", lambda *_, **__: None)
    monkeypatch.setattr(f"{module}._CLOSE", 0.0)
    sizes = sorted({held for held, _ in everything})
    for limit in [*sizes, *(size + 1000 for size in sizes)]:
        best = min(seconds for held, seconds in everything if held <= limit)
        found = Limited(Search(model), plain_modes(model)).cheapest(int(limit))
        assert found.held <= limit
        assert found.bound <= best * (1 + 1e-9)
        assert best * (1 - 1e-9) <= found.seconds <= best * 1.05
        assert found.bound >= best * 0.9
