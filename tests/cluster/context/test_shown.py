"""What one dump shows of the context that it was compiled under."""

from __future__ import annotations

from pathlib import Path

import irtool
from irtool.cluster.context.shown import TELLING, Shown
from irtool.syntax.excerpt import excerpt


def shown(path: Path, kind: str, rank: int | None = None) -> Shown:
    return Shown(excerpt(path, TELLING), kind, rank)  # type: ignore[arg-type]


def test_an_excerpt_holds_the_statements_that_were_asked_for(samples: Path) -> None:
    path = samples / "gpt/20_validate_0080.ir"
    whole, part = irtool.load(path), excerpt(path, TELLING)
    wanted = [(node.id, node.op) for node in whole.nodes() if node.op in TELLING]
    assert [(node.id, node.op) for node in part.nodes()] == wanted
    assert [one.name for one in part.parameters] == [one.name for one in whole.parameters]
    assert part.groups.devices == whole.groups.devices


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


def test_a_search_leaves_its_strategy_behind_the_dataset(samples: Path) -> None:
    (path,) = (samples / "mlp_recursive_search").glob("step_parallel_begin*.ir")
    assert shown(path, "begin").searches is True
