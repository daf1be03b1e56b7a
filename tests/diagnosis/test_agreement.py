"""Ranks that have to be alike and are not: numbers, the mean of gradients, ids of fusion."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from irtool.cli.main import app
from tests.cluster.rank_dumps import Do, all_reduce, rank_text
from tests.diagnosis.test_examine import made, run_of

WORLD = (0, 1, 2, 3)


def square(rank: int) -> list[Do]:
    """What a rank of two rows of two does: a sum in its row, one in its column."""
    row, column = rank // 2 * 2, rank % 2
    return [all_reduce((row, row + 1)), all_reduce((column, column + 2), shape=(8, 8))]


def told(folder: Path, *programs: list[Do], status: int) -> list[dict[str, Any]]:
    found = made(run_of(folder, *programs), status=status)["findings"]
    return [item for item in found if item["task"] in ("hang", "group")]


def test_a_number_that_was_compiled_twice_is_no_hang(tmp_path: Path) -> None:
    assert told(tmp_path / "healthy", *map(square, range(4)), status=0) == []
    (first,) = told(tmp_path / "run", *map(square, (0, 1, 2, 2)), status=1)
    assert (first["task"], first["rank"]) == ("group", 3)
    assert "compiled as rank 2" in first["cause"]
    assert "number 2 was compiled twice" in first["cause"]
    assert first["edit"] == {"setting": "RANK_ID", "value": 3}


def test_the_command_for_hangs_says_so_too(tmp_path: Path) -> None:
    for name, last in (("healthy", 3), ("run", 2)):
        run = run_of(tmp_path / name, *map(square, (0, 1, 2, last)))
        result = CliRunner().invoke(app, ["comm", "hang", str(run)])
        assert ("compiled as rank 2" in result.output) == (last == 2)


def test_a_number_that_nobody_else_has_was_not_compiled_twice(tmp_path: Path) -> None:
    (first,) = told(tmp_path / "run", *map(square, (0, 1, 3)), status=1)
    assert (first["task"], first["rank"]) == ("group", 2)
    assert "compiled as rank 3" in first["cause"]
    assert "twice" not in first["cause"]


def test_a_wrong_group_is_not_a_wrong_number(tmp_path: Path) -> None:
    """Groups of (0, 1) and (2, 3) have no rank in common."""
    odd = [all_reduce((0, 1)), all_reduce((2, 3), shape=(8, 8))]
    found = told(tmp_path / "run", square(0), square(1), square(2), odd, status=1)
    assert found
    assert all("compiled as" not in item["cause"] for item in found)


@pytest.mark.parametrize(
    ("odd", "differs"),
    [((1, 1, 2), True), ((2, 2, 2), False), ((1, 1, 0), True), ((1, 1, 1), False)],
)
def test_ids_of_fusion_that_join_others_on_one_rank(
    tmp_path: Path, odd: tuple[int, ...], differs: bool
) -> None:
    programs = [numbered((1, 1, 1)), numbered(odd), numbered((1, 1, 1)), numbered((1, 1, 1))]
    run = tmp_path / "run"
    for rank, text in enumerate(programs):
        (run / f"rank_{rank}").mkdir(parents=True)
        (run / f"rank_{rank}" / "20_validate_0080.ir").write_text(text)
    found = made(run, "--task", "group", status=int(differs))["findings"]
    assert [(item["rank"], item["ranks"]) for item in found] == [(1, [1])] * differs
    if differs:
        assert "AllReduce 3 of a rank" in found[0]["cause"]
        assert found[0]["edit"]["setting"] == "comm_fusion"


@pytest.mark.parametrize(
    ("ids", "ranks", "shared"), [((1, 1, 0), 4, 2), ((1, 2, 0), 4, 0), ((1, 1, 0), 1, 0)]
)
def test_cuts_that_backends_make_behind_the_last_dump_are_not_judged(
    tmp_path: Path, ids: tuple[int, ...], ranks: int, shared: int
) -> None:
    for rank in range(ranks):
        (tmp_path / f"rank_{rank}").mkdir()
        (tmp_path / f"rank_{rank}" / "20_validate_0080.ir").write_text(numbered(ids))
    told = made(tmp_path, "--task", "group", status=0)
    assert told["findings"] == []
    said = [item["why"] for item in told["not_judged"] if "split_indices" in item["why"]]
    assert len(said) == (shared > 0)
    assert all(f"the {shared} collectives" in why for why in said)


def numbered(ids: tuple[int, ...], ranks: tuple[int, ...] = WORLD) -> str:
    """A dump of sums with these ids of fusion."""
    text = rank_text(*(all_reduce(ranks, shape=(4, 4 + n)) for n in range(len(ids))))
    for number in ids:
        text = text.replace("fusion: I64(0)", f"fusion: I64(<{number})", 1)
    return text.replace("I64(<", "I64(")


END = """\
# IR entry: @net

%para1_x: <Tensor[Float32], (4, 64)> : [4, 64]
%para2_w: <Ref[Tensor[Float32]], (4, 64), ref_key=w>  :  has_default

subgraph @net() {
  %0(c0) = _MirrorOperator(%para2_w) {instance name: mirror_MirrorOperator} primitive_attrs: \
{group: "hccl_world_group", fusion: I64(1), op: "sum", dev_num: I64(4), mean_flag: Bool(FLAG)}
      : (<Ref[Tensor[Float32]], (4, 64), ref_key=w>) -> (<Tensor[Float32], (4, 64)>)
  %1(c1) = Mul(%para1_x, %0)
      : (<Tensor[Float32], (4, 64)>, <Tensor[Float32], (4, 64)>) -> (<Tensor[Float32], (4, 64)>)
  Return(%1)
}
"""


@pytest.mark.parametrize(
    ("flags", "ranks", "has_edit"),
    [((0, 1, 0, 0), [1], True), ((0, 1, 0, 1), [0, 1, 2, 3], False), ((1, 1, 1, 1), None, False)],
)
def test_a_mean_of_gradients_on_some_ranks_only(
    tmp_path: Path, flags: tuple[int, ...], ranks: list[int] | None, has_edit: bool
) -> None:
    for rank, flag in enumerate(flags):
        place = tmp_path / f"rank_{rank}"
        place.mkdir()
        validate = numbered((1, 1))
        if flag:  # what is divided is divided after the sum
            validate = validate.replace(
                "  Return(%1)", "  %2(dx) = Mul(%1, F32(0.25))\n  Return(%2)"
            )
        (place / "20_validate_0080.ir").write_text(validate)
        (place / "step_parallel_end_0019.ir").write_text(END.replace("FLAG", str(flag)))
    found = made(tmp_path, "--task", "group", status=int(ranks is not None))["findings"]
    if ranks is None:
        assert found == []
        return
    (only,) = found
    assert only["ranks"] == ranks
    assert "gradients_mean is True on rank" in only["cause"]
    edit = {"setting": "gradients_mean", "value": False} if has_edit else None
    assert only["edit"] == edit
