"""What one dump shows of the context that it was compiled under."""

from __future__ import annotations

from pathlib import Path

import irtool
from irtool.cluster.context.shown import TELLING, Borders, Shown
from irtool.ir.groups import groups_of
from irtool.syntax.excerpt import excerpt

INTERLEAVED = Path(__file__).parent / "interleaved_rank_5"
"""Two stages of four devices, two chunks of layers each (MindSpore 2.7.0); lines that name sources
of MindSpore are left out."""


def shown(path: Path, kind: str, rank: int | None = None) -> Shown:
    return Shown(excerpt(path, TELLING), kind, rank)  # type: ignore[arg-type]


def test_an_excerpt_holds_the_statements_that_were_asked_for(samples: Path) -> None:
    path = samples / "gpt/20_validate_0080.ir"
    whole, part = irtool.load(path), excerpt(path, TELLING)
    wanted = [(node.id, node.op) for node in whole.nodes() if node.op in TELLING]
    assert [(node.id, node.op) for node in part.nodes()] == wanted
    assert [one.name for one in part.parameters] == [one.name for one in whole.parameters]
    assert groups_of(part).devices == groups_of(whole).devices


def test_an_excerpt_of_an_operator_that_is_not_there_keeps_the_header(samples: Path) -> None:
    part = excerpt(samples / "gpt/20_validate_0080.ir", ["Nothing"])
    assert list(part.nodes()) == []
    assert len(part.parameters) == 54


def test_the_distance_of_peers_is_the_size_of_a_stage(samples: Path) -> None:
    dump = samples / "pipeline_run/rank_4/20_validate_0080.ir"
    assert shown(dump, "validate", 4).stage_size == 4
    middle = samples / "pipeline_8_micro/rank_1/20_validate_0080.ir.xz"
    assert shown(middle, "validate", 1).stage_size == 1
    assert shown(middle, "validate").stage_size == 1
    assert shown(samples / "gpt/20_validate_0080.ir", "validate", 0).stage_size is None


def test_gathered_weights_have_their_ranks(samples: Path) -> None:
    found = shown(samples / "optimizer_parallel/19_validate_0078.ir", "validate", 0)
    assert found.gathers
    assert all(len(gather.ranks) > 1 for gather in found.gathers.values())
    assert not shown(samples / "gpt/20_validate_0080.ir", "validate", 0).gathers


def test_the_dataset_operator_of_a_later_dump_says_its_strategy(samples: Path) -> None:
    end = shown(samples / "mlp_semi_auto/step_parallel_end_0019.ir", "end")
    assert end.dataset == ((1, 1), (1, 1))
    begin = shown(samples / "mlp_semi_auto/step_parallel_begin_0018.ir", "begin")
    assert begin.dataset is None
    assert begin.searches is False


def test_a_dataset_with_a_tuple_of_tensors_has_its_strategy_before_it(tmp_path: Path) -> None:
    """MindSpore 2.7 prints () behind the statement, and the nested strategy as attribute."""
    lines = [
        "# IR entry: @1_main",
        "",
        "subgraph @1_main(%para1_inputs0) {",
        "  %0(CNode_52) = _VirtualDataset(%para1_inputs0, %para1_inputs0) {instance name: d} "
        "primitive_attrs: {in_strategy: ((1, 1), ((1, 1), (1, 1)))} {in_strategy: ()}",
        "      : (<Tensor[Float32], (16, 16)>, <null>) -> (<Tensor[Float32], (16, 16)>)",
        "  Return(%0)",
        "      : (<Tensor[Float32], (16, 16)>)",
        "}",
    ]
    path = tmp_path / "step_parallel_end_0019.ir"
    path.write_text("\n".join(lines), encoding="utf-8")
    assert shown(path, "end").dataset == ((1, 1), (1, 1), (1, 1))


def test_a_search_leaves_its_strategy_behind_the_dataset(samples: Path) -> None:
    (path,) = (samples / "mlp_recursive_search").glob("step_parallel_begin*.ir")
    assert shown(path, "begin").searches is True


def test_a_search_that_weighs_costs_marks_the_dataset(samples: Path) -> None:
    (recursive,) = (samples / "mlp_recursive_search").glob("step_parallel_begin*.ir")
    (propagated,) = (samples / "mlp_propagation_layouts").glob("step_parallel_begin*.ir*")
    assert shown(recursive, "begin").weighs_costs is False
    assert shown(propagated, "begin").weighs_costs is True
    semi = samples / "mlp_semi_auto/step_parallel_begin_0018.ir"
    assert shown(semi, "begin").weighs_costs is None


def test_transfers_that_name_stages_show_how_many_there_are() -> None:
    begin = shown(INTERLEAVED / "step_parallel_begin_0018.ir.xz", "begin")
    assert begin.borders == Borders(4, 2, "stages and ranks that its transfers name")
    assert begin.stage_size == 4  # though it sends to ranks 1 and 5
    validate = shown(INTERLEAVED / "20_validate_0089.ir.xz", "validate")
    assert validate.borders == Borders(4, 2, "the ranks with one place in all stages")


def test_transfers_that_name_ranks_only_show_no_stages(samples: Path) -> None:
    found = shown(samples / "pipeline_run/rank_4/20_validate_0080.ir", "validate", 4)
    assert found.borders is None
    assert found.chunks is None


def test_chunks_of_layers_are_counted(samples: Path) -> None:
    assert shown(INTERLEAVED / "step_parallel_begin_0018.ir.xz", "begin").chunks == 2
    assert shown(INTERLEAVED / "20_validate_0089.ir.xz", "validate").chunks == 2


def test_transfers_that_list_their_ranks_say_whose_dump_it_is() -> None:
    assert shown(INTERLEAVED / "20_validate_0089.ir.xz", "validate").named_rank == 5
    assert shown(INTERLEAVED / "step_parallel_begin_0018.ir.xz", "begin").named_rank is None


def test_a_stage_has_to_hold_the_groups_that_tensors_are_split_over(samples: Path) -> None:
    path = samples / "pipeline_run/rank_4/20_validate_0080.ir"
    only = shown(path, "validate")
    assert (only.possible_ranks, only.stage_size) == ({4}, 4)
    # Of ranks 1 and 4, 1 is one away from rank 0; but ranks 4 to 6 would not be of one stage.
    several = shown(path, "validate")
    several.__dict__["possible_ranks"] = frozenset({1, 4})
    assert several.stage_size == 4
    # Ranks 4 and 6 away from rank 0: groups of 4 to 6 could lie in stages of both sizes.
    several = shown(path, "validate")
    several.__dict__["possible_ranks"] = frozenset({4, 8})
    assert several.stage_size is None
