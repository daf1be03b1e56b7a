"""The strategy file of a pipeline: keys by scope and micro-batch, on plans of a few operators."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

import irtool
from irtool.planning.files.strategy_files import NotExpressible
from irtool.planning.stages import files
from irtool.planning.stages.files import staged_cells, staged_operator_file, unsaid_scopes
from irtool.planning.stages.results import PlannedStage, StagedPlan
from irtool.sharding.network.context import ParallelContext

NET = "Default/network-Net"


def stage(*scopes: str, seconds: float = 1.0, static: int = 0, held: int = 0) -> PlannedStage:
    return PlannedStage((), seconds, static, held, 0, scopes, frozenset(), 1)


def staged(*stages: PlannedStage, micro: int = 2, inner: Any = None, **more: Any) -> StagedPlan:
    return StagedPlan(inner, 8, stages, micro, 0.0, 1.0, **more)


# -- cells ---------------------------------------------------------------------------------------


def test_the_outermost_cell_of_one_stage_gets_it() -> None:
    found = staged(
        stage(f"{NET}/head-Dense/inner-Dense", f"{NET}/head-Dense"), stage(f"{NET}/tail-Dense")
    )
    assert staged_cells(found) == {f"{NET}/head-Dense": 0, f"{NET}/tail-Dense": 1}


def test_a_cell_that_several_stages_use_is_told_inside() -> None:
    shared = f"{NET}/blocks-CellList"
    found = staged(stage(f"{shared}/0-Block/up-Dense"), stage(f"{shared}/1-Block/up-Dense"))
    assert staged_cells(found) == {f"{shared}/0-Block": 0, f"{shared}/1-Block": 1}


def test_a_list_of_cells_is_never_called_itself() -> None:
    """Though it is all in one stage, the cells in it get the stage."""
    listed = [f"{NET}/{name}" for name in ("blocks-CellList/0-Block", "table-CellDict/a-Block")]
    found = staged(stage(*listed), stage(f"{NET}/tail-Dense"))
    assert list(staged_cells(found)) == [*listed, f"{NET}/tail-Dense"]


def test_a_scope_that_is_no_way_to_a_cell_gets_none() -> None:
    found = staged(stage("Gradients/network-Net/head-Dense"), stage(f"{NET}/tail-Dense"))
    assert list(staged_cells(found)) == [NET]


def test_a_cell_beside_another_of_the_same_beginning_has_its_own_stage() -> None:
    found = staged(stage(f"{NET}/up-Dense", f"{NET}/up-Denser"), stage(f"{NET}/tail-Dense"))
    assert list(staged_cells(found)) == [f"{NET}/up-Dense", f"{NET}/up-Denser", f"{NET}/tail-Dense"]


def test_one_stage_needs_no_cells() -> None:
    assert staged_cells(staged(stage(f"{NET}/head-Dense"))) == {}


def test_operators_outside_of_cells_are_told_once() -> None:
    found = staged(stage(NET, f"{NET}/head-Dense", NET), stage(NET, f"{NET}/tail-Dense", "Default"))
    assert unsaid_scopes(found) == [NET]


# -- figures -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("seconds", "imbalance"), [((1, 1), 0.0), ((1, 3), 0.5), ((1, 2, 3), 0.5), ((0, 0), 0.0)]
)
def test_imbalance_is_how_much_slower_the_slowest_is_than_the_mean(
    seconds: tuple[float, ...], imbalance: float
) -> None:
    found = staged(*(stage(NET, seconds=each) for each in seconds))
    assert found.imbalance == pytest.approx(imbalance)


def test_a_stage_holds_what_stays_and_what_is_in_flight() -> None:
    assert stage(NET, static=3, held=4).bytes == 7


@pytest.mark.parametrize(
    ("unstaged", "better"), [(None, True), (1.0, False), (1.1, True), (0.9, False)]
)
def test_a_pipeline_is_better_where_a_step_is_shorter(unstaged: float | None, better: bool) -> None:
    assert staged(stage(NET), unstaged=unstaged).is_better is better


# -- keys ----------------------------------------------------------------------------------------

Rows = list[list[int]]


def dump_of(*shapes: str) -> irtool.Dump:
    """A network whose dataset hands on tensors of these shapes."""
    types = ", ".join(f"<Tensor[Float32], ({shape})>" for shape in shapes)
    kinds = (
        f"<Tuple[Tensor[Float32]*{len(shapes)}], TupleShape({', '.join(f'({s})' for s in shapes)})>"
    )
    names = ", ".join(f"%para{n}_x{n}" for n in range(1, len(shapes) + 1))
    inputs = "".join(
        f"%para{n}_x{n}: <Tensor[Float32], ({shape})> : [{shape}]\n"
        for n, shape in enumerate(shapes, 1)
    )
    return irtool.loads(
        f"# Total params: {len(shapes)}\n# Params:\n{inputs}\n"
        "subgraph attr:\nsubgraph instance: main : 0x1\nsubgraph @main() {\n"
        f"  %0(v) = _VirtualDataset({names}) {{instance name: _VirtualDataset}}\n"
        f"      : ({types}) -> ({kinds})\n  Return(%0)\n      : ({kinds})\n}}\n"
    )


DUMP = dump_of("8, 16", "8, 4")
HEAD, TAIL = f"{NET}/head-Dense", f"{NET}/tail-Dense"


def written(
    monkeypatch: pytest.MonkeyPatch,
    plain: dict[str, Rows],
    outs: dict[str, Rows] | None = None,
    names: dict[str, Rows] | None = None,
    *,
    micro: int = 2,
    dump: irtool.Dump = DUMP,
    full_batch: bool = True,
    stages: tuple[PlannedStage, ...] = (stage(NET, HEAD), stage(TAIL)),
    loss: object = None,
) -> dict[str, dict[str, Rows]]:
    """Keys and rows of the staged file, from those of the file without stages."""

    def items(rows: dict[str, Rows]) -> dict[str, object]:
        return {key: {"stage": 0, "parallel_strategy": each} for key, each in rows.items()}

    def plain_file(_: object, *, exact: bool) -> dict[str, object]:
        assert exact == (names is not None)
        return {
            "parallel_strategy_item": items(plain),
            "parallel_out_strategy_item": items(outs or {}),
        }

    monkeypatch.setattr(files, "operator_file", plain_file)
    context = ParallelContext(devices=4, full_batch=full_batch)
    inner = SimpleNamespace(dump=dump, context=context, operators=(loss,) if loss else ())
    found = staged(*stages, micro=micro, inner=inner)
    saved = None if names is None else {"parallel_strategy_item": items(names)}
    file: dict[str, Any] = staged_operator_file(found, saved)
    assert file["current_stage"] == 0
    return {
        kind: {key: item["parallel_strategy"] for key, item in file[name].items()}
        for kind, name in (("in", "parallel_strategy_item"), ("out", "parallel_out_strategy_item"))
    }


def staged_key(scope: str) -> str:
    return scope.replace("network-Net", "network-PipelineCell/network-Net")


def test_a_cell_with_a_stage_is_keyed_once_what_is_outside_once_a_micro_batch(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    plain = {f"{HEAD}/MatMul-op0": [[4, 1], [1, 1]], f"{NET}/ReLU-op0": [[4, 1]]}
    found = written(monkeypatch, plain, micro=3)["in"]
    rows = {key: each for key, each in found.items() if "MatMul" in key or "ReLU" in key}
    assert rows == {
        f"{staged_key(HEAD)}/MatMul-op0": [[4, 1], [1, 1]],
        **{f"{staged_key(NET)}/ReLU-op{n}": [[4, 1]] for n in range(3)},
    }


def test_operators_of_a_cell_keep_the_order_of_their_numbers(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    plain = {f"{HEAD}/MatMul-op{n}": [[n + 1]] for n in (10, 9, 2)}
    found = written(monkeypatch, plain)["in"]
    numbers = [found[f"{staged_key(HEAD)}/MatMul-op{n}"] for n in range(3)]
    assert numbers == [[[3]], [[10]], [[11]]]


def test_out_strategies_go_with_their_operator(monkeypatch: pytest.MonkeyPatch) -> None:
    plain = {f"{HEAD}/MatMul-op{n}": [[2, 2], [2, 1]] for n in range(2)}
    found = written(monkeypatch, plain, {f"{HEAD}/MatMul-op1": [[4, 1]]})
    assert found["out"] == {f"{staged_key(HEAD)}/MatMul-op1": [[4, 1]]}


def test_the_dataset_is_there_once(monkeypatch: pytest.MonkeyPatch) -> None:
    found = written(monkeypatch, {"Default/_VirtualDataset-op0": [[4, 1]]}, micro=4)["in"]
    assert [key for key in found if "_VirtualDataset" in key] == ["Default/_VirtualDataset-op0"]


@pytest.mark.parametrize(("full_batch", "first"), [(True, 1), (False, 4)])
def test_every_micro_batch_is_a_slice_of_every_input(
    monkeypatch: pytest.MonkeyPatch, full_batch: bool, first: int
) -> None:
    found = written(monkeypatch, {}, full_batch=full_batch, micro=2)["in"]
    cell = "Default/network-PipelineCell/micro_inputs-CellList"
    slices = {key: rows for key, rows in found.items() if "StridedSlice" in key}
    assert slices == {
        f"{cell}/{micro}-_MicroBatch/StridedSlice-op{number}": [[first, 1]]
        for micro in range(2)
        for number in range(2)
    }


def test_losses_of_micro_batches_are_added_up(monkeypatch: pytest.MonkeyPatch) -> None:
    def sums(micro: int, loss: object) -> dict[str, Rows]:
        found = written(monkeypatch, {}, micro=micro, loss=loss)["in"]
        return {key: rows for key, rows in found.items() if "/Add-op" in key}

    def ends_in(*shape: int) -> object:
        made = SimpleNamespace(dimensions=shape)
        return SimpleNamespace(after=((1,),), node=SimpleNamespace(output_type=made))

    cell = "Default/network-PipelineCell"
    assert sums(3, ends_in()) == {f"{cell}/Add-op{n}": [[], []] for n in range(2)}
    assert sums(2, ends_in(8, 4)) == {f"{cell}/Add-op0": [[1, 1], [1, 1]]}
    assert sums(1, ends_in()) == {}


def test_different_strategies_outside_of_cells_need_a_saved_file(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    plain: dict[str, Rows] = {f"{NET}/ReLU-op0": [[4, 1]], f"{NET}/ReLU-op1": [[2]]}
    with pytest.raises(NotExpressible, match="stands for 2 operators outside of cells"):
        written(monkeypatch, plain, dump=dump_of("8, 16"))


def saved_names(relus: list[Rows], micro: int = 2) -> dict[str, Rows]:
    """A file of MindSpore's of this network in PipelineCell."""
    cell = "Default/network-PipelineCell"
    slices = {
        f"{cell}/micro_inputs-CellList/{m}-_MicroBatch/StridedSlice-op0": [[2, 1]]
        for m in range(micro)
    }
    sums: dict[str, Rows] = {f"{cell}/Add-op{n}": [[], []] for n in range(micro - 1)}
    listed = {f"{staged_key(NET)}/ReLU-op{n}": rows for n, rows in enumerate(relus)}
    return slices | sums | listed


def test_a_saved_file_tells_operators_of_different_ranks_apart(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """By how many numbers each row has; what the rows are is the plan's business."""
    plain: dict[str, Rows] = {f"{NET}/ReLU-op0": [[4, 1]], f"{NET}/ReLU-op1": [[2]]}
    names = saved_names([[[1]], [[1, 1]], [[1, 1]], [[1]]])
    found = written(monkeypatch, plain, names=names, dump=dump_of("8, 16"))["in"]
    relus = [found[f"{staged_key(NET)}/ReLU-op{n}"] for n in range(4)]
    assert relus == [[[2]], [[4, 1]], [[4, 1]], [[2]]]
    # How the inputs are cut is what the file has.
    cell = "Default/network-PipelineCell/micro_inputs-CellList/1-_MicroBatch"
    assert found[f"{cell}/StridedSlice-op0"] == [[2, 1]]


@pytest.mark.parametrize(
    "relus",
    [
        [[[1]], [[1, 1]], [[1, 1]], [[1, 1]]],  # not as many of each rank
        [[[1]], [[1, 1]], [[1]]],
    ],
)
def test_a_saved_file_of_other_operators_tells_nothing(
    monkeypatch: pytest.MonkeyPatch, relus: list[Rows]
) -> None:
    plain: dict[str, Rows] = {f"{NET}/ReLU-op0": [[4, 1]], f"{NET}/ReLU-op1": [[2]]}
    with pytest.raises(NotExpressible, match="which number each has"):
        written(monkeypatch, plain, names=saved_names(relus), dump=dump_of("8, 16"))


def test_operators_of_one_rank_with_different_strategies_stay_unknown(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    plain: dict[str, Rows] = {f"{NET}/ReLU-op0": [[4, 1]], f"{NET}/ReLU-op1": [[2, 2]]}
    names = saved_names([[[1, 1]]] * 4)
    with pytest.raises(NotExpressible, match="which number each has"):
        written(monkeypatch, plain, names=names, dump=dump_of("8, 16"))


def test_inputs_of_different_ranks_need_a_saved_file(monkeypatch: pytest.MonkeyPatch) -> None:
    dump = dump_of("8, 16", "8")
    with pytest.raises(NotExpressible, match="inputs have different numbers of dimensions"):
        written(monkeypatch, {}, dump=dump)
    cell = "Default/network-PipelineCell"
    names: dict[str, Rows] = {
        f"{cell}/micro_inputs-CellList/{micro}-_MicroBatch/StridedSlice-op{number}": rows
        for micro in range(2)
        for number, rows in enumerate(([[1]], [[1, 1]]))
    }
    names[f"{cell}/Add-op0"] = [[], []]
    found = written(monkeypatch, {}, names=names, dump=dump)["in"]
    assert found == names


def test_a_file_with_other_names_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    plain: dict[str, Rows] = {f"{NET}/ReLU-op0": [[4, 1]]}
    dump = dump_of("8, 16")
    fitting = saved_names([[[1, 1]], [[1, 1]]])
    assert written(monkeypatch, plain, names=fitting, dump=dump)
    more: dict[str, Rows] = {**fitting, "Default/x-op0": [[1]]}
    with pytest.raises(NotExpressible, match=r"MindSpore asks for Default/x-op0 \(and 0 more\)"):
        written(monkeypatch, plain, names=more, dump=dump)
    fewer = {key: rows for key, rows in fitting.items() if "/Add-" not in key}
    with pytest.raises(NotExpressible, match=r"does not know .*Add-op0 \(and 0 more\)"):
        written(monkeypatch, plain, names=fewer, dump=dump)


@pytest.mark.parametrize(
    "file", [{}, {"parallel_strategy_item": [1]}, {"parallel_strategy_item": {"a": {}}}]
)
def test_a_file_without_strategies_is_refused(
    monkeypatch: pytest.MonkeyPatch, file: dict[str, object]
) -> None:
    monkeypatch.setattr(
        files, "operator_file",
        lambda _, *, exact: {"parallel_strategy_item": {}, "parallel_out_strategy_item": {}},
    )  # fmt: skip
    inner = SimpleNamespace(dump=DUMP, context=ParallelContext(devices=4), operators=())
    with pytest.raises(NotExpressible, match="holds no parallel_strategy_item"):
        staged_operator_file(staged(stage(HEAD), stage(TAIL), inner=inner), file)


def test_a_scope_without_the_cell_of_the_network_can_not_be_staged(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    plain: dict[str, Rows] = {"Default/loose/ReLU-op0": [[4, 1]]}
    with pytest.raises(NotExpressible, match="Default/loose: the cell that holds the network"):
        written(monkeypatch, plain)


def test_a_plan_without_scopes_has_no_micro_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    bare = replace(stage(), scopes=("Default",))
    assert written(monkeypatch, {}, stages=(bare, bare))["in"] == {}
