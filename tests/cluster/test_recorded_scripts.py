"""Orders that ranks recorded are played, not compared: who left the common script, and where."""

from __future__ import annotations

import json
import lzma
import shutil
from pathlib import Path
from typing import Any

import pytest

from irtool.cli.main import main
from irtool.cluster.recorded_scripts import base_of

HEADER = (
    "index,group,comm_rank,primitive,src_rank,dest_rank,root_rank,input_shape,input_type,"
    "output_shape,output_type,input_size,output_size"
)
Row = tuple[str, str, str, str, str, str]
"""Group, ranks, primitive, source, destination, shape."""


def reduce(group: str, ranks: str, shape: str = "(4, 8)", op: str = "AllReduce") -> Row:
    return (group, ranks, op, "", "", shape)


TENSOR = {0: reduce("2-1001", "0 1"), 1: reduce("2-1001", "0 1"), 2: reduce("2-1002", "2 3"),
          3: reduce("2-1002", "2 3")}  # fmt: skip
DATA = {0: reduce("2-2001", "0 2"), 1: reduce("2-2002", "1 3"), 2: reduce("2-2001", "0 2"),
        3: reduce("2-2002", "1 3")}  # fmt: skip


def script() -> dict[int, list[Row]]:
    """Tensor parallel, data parallel, tensor parallel, on a grid of two by two."""
    return {rank: [TENSOR[rank], DATA[rank], TENSOR[rank]] for rank in range(4)}


def written(folder: Path, rows: dict[int, list[Row]]) -> Path:
    """``comm_execute_order.csv`` of each rank; rows by hand: only its header is MindSpore's."""
    for rank, mine in rows.items():
        place = folder / f"rank_{rank}/execute_order"
        place.mkdir(parents=True)
        lines = [HEADER]
        for number, (group, ranks, op, source, destination, shape) in enumerate(mine, 1):
            cells = (number, group, ranks, op, source, destination, "", shape, "Float32", shape,
                     "Float32", 128, 128)  # fmt: skip
            lines.append(",".join(f'"{cell}"' for cell in cells))
        (place / "comm_execute_order.csv").write_text("\n".join(lines) + "\n", encoding="utf-8")
    return folder


def asked(folder: Path, capsys: pytest.CaptureFixture[str]) -> tuple[int, dict[str, Any]]:
    status = main(["comm", "hang", str(folder), "--format", "json"])
    return status, json.loads(capsys.readouterr().out)


def test_ranks_that_keep_to_the_script_do_not_hang(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    status, answer = asked(written(tmp_path, script()), capsys)
    assert (status, answer["hangs"], answer["order"]["source"]) == (0, False, "recorded")
    assert answer["played"] == 12


def test_a_collective_that_a_rank_never_issues(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = script()
    del rows[1][2]
    status, answer = asked(written(tmp_path, rows), capsys)
    assert (status, answer["hangs"], answer["odd_ranks"]) == (1, True, [1])
    blocked = answer["blocked"]
    assert (blocked["group"], blocked["index"]) == ("2-1001", 1)
    assert [each["line"] for each in blocked["members"] if each["rank"] == 0] == [4]


def test_a_collective_of_another_shape(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """MindSpore's own checker does not see this."""
    rows = script()
    rows[2][1] = reduce("2-2001", "0 2", "(4, 4)")
    status, answer = asked(written(tmp_path, rows), capsys)
    assert (status, answer["hangs"]) == (1, True)
    assert answer["blocked"]["group"] == "2-2001"


def test_a_swap_on_one_rank_that_gets_through(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """On the grid a swap on one rank closes no circle; on a chain of the same two ranks it does."""
    rows = {rank: [TENSOR[rank], DATA[rank]] for rank in range(4)}
    rows[0] = [DATA[0], TENSOR[0]]
    status, answer = asked(written(tmp_path / "grid", rows), capsys)
    assert (status, answer["hangs"]) == (0, False)
    two = {rank: [reduce("a", "0 1"), reduce("b", "0 1")] for rank in range(2)}
    two[1] = two[1][::-1]
    status, answer = asked(written(tmp_path / "chain", two), capsys)
    assert (status, answer["hangs"], answer["closed"]) == (1, True, True)


def two_stages() -> dict[int, list[Row]]:
    """Ranks 0 to 2 sum and send; ranks 3 to 5 receive, and sum more than those."""
    rows: dict[int, list[Row]] = {}
    for rank in range(3):
        group, pair = f"p{rank}", f"{rank} {rank + 3}"
        rows[rank] = [
            reduce("a", "0 1 2"),
            (group, pair, "Send", "", str(rank + 3), "(4, 8)"),
        ]
        rows[rank + 3] = [
            (group, pair, "Receive", str(rank), "", "(4, 8)"),
            reduce("b", "3 4 5"),
            reduce("b", "3 4 5", "(32)"),
        ]
    return rows


@pytest.mark.parametrize(("rank", "row"), [(4, 2), (4, 1), (1, 1), (2, 0)])
def test_ranks_of_other_stages_keep_to_a_script_of_their_own(
    rank: int, row: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = two_stages()
    assert asked(written(tmp_path / "whole", rows), capsys)[1]["hangs"] is False
    del rows[rank][row]
    status, answer = asked(written(tmp_path / "less", rows), capsys)
    assert (status, answer["hangs"], answer["odd_ranks"]) == (1, True, [rank])


def test_a_receive_in_another_group_has_no_send(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rows: dict[int, list[Row]] = {
        0: [("p", "0 1", "Send", "", "1", "(4)")],
        1: [("p", "0 1", "Receive", "0", "", "(4)")],
    }
    assert asked(written(tmp_path / "right", rows), capsys)[1]["hangs"] is False
    rows[1] = [("q", "0 1", "Receive", "0", "", "(4)")]
    assert asked(written(tmp_path / "wrong", rows), capsys)[1]["hangs"] is True


def test_what_hangs_only_in_one_stream_is_not_certain(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rows: dict[int, list[Row]] = {
        0: [reduce("t", "0 1"), ("p", "0 1", "Send", "", "1", "(4)")],
        1: [("p", "0 1", "Receive", "0", "", "(4)"), reduce("t", "0 1")],
    }
    _, answer = asked(written(tmp_path, rows), capsys)
    assert (answer["hangs"], answer["certain"]) == (True, False)


def test_two_ranks_that_send_before_they_receive_hang_where_a_send_waits(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """MindSpore's checker finds this circle: it takes both ends of a transfer for one event."""
    rows: dict[int, list[Row]] = {
        0: [("p", "0 1", "Send", "", "1", "(4)"), ("p", "0 1", "Receive", "1", "", "(4)")],
        1: [("p", "0 1", "Send", "", "0", "(4)"), ("p", "0 1", "Receive", "0", "", "(4)")],
    }
    status, answer = asked(written(tmp_path / "both", rows), capsys)
    assert (status, answer["hangs"], answer["certain"]) == (1, True, False)
    assert {each["op"] for each in answer["needs_buffers"]} == {"Send"}
    rows[1].reverse()
    status, answer = asked(written(tmp_path / "one", rows), capsys)
    assert (status, answer["hangs"], answer["needs_buffers"]) == (0, False, [])


def test_a_row_that_can_not_be_read_is_no_verdict_without_a_word(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = written(tmp_path, script())
    path = folder / "rank_3/execute_order/comm_execute_order.csv"
    text = path.read_text(encoding="utf-8")
    path.write_text(text[:-40], encoding="utf-8")
    assert main(["comm", "hang", str(folder)]) == 1
    assert "comm_execute_order.csv:4" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("name", "op"),
    [("AllReduce", "AllReduce"), ("DistCommAllReduce", "AllReduce"), ("DistCommIsend", "Send"),
     ("InnerCommIrecv", "Receive"), ("PrimFunc_AllGather", "AllGather"), ("Receive", "Receive")],
)  # fmt: skip
def test_the_collective_that_a_primitive_means(name: str, op: str) -> None:
    assert base_of(name) == op


# -- the order of the tensor dump ----------------------------------------------------------------

RUN = Path(__file__).parents[2] / "samples/pipeline_2_stages"


def with_records(tmp_path: Path) -> Path:
    """A run whose ranks recorded the order that their dumps say: names kept, numbers replayed."""
    import irtool
    from irtool.cluster.launch_order import launch_order

    folder = tmp_path / "run"
    shutil.copytree(RUN, folder)
    for rank in range(4):
        (path,) = (folder / f"rank_{rank}").glob("*validate*")
        text = path.read_bytes()
        if path.suffix == ".xz":
            text = lzma.decompress(text)
        dump = irtool.load(path)
        (path.parent / "graph_before_reset_id_0_0090.ir").write_bytes(text)
        order = folder / f"rank_{rank}/execution_order"
        order.mkdir()
        names = [node.full_name for node in launch_order(dump) if node.full_name]
        (order / "ms_execution_order_graph_0.csv").write_text(
            "NodeExecutionOrder-FullNameWithScope\n" + "\n".join(names) + "\n", encoding="utf-8"
        )
    return folder


def test_an_operator_order_of_all_ranks_is_played(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = with_records(tmp_path)
    status, answer = asked(folder, capsys)
    if answer["order"]["source"] != "recorded":
        pytest.skip("numbers of this sample are not those of a replay")
    assert (status, answer["hangs"]) == (0, False)
    path = folder / "rank_1/execution_order/ms_execution_order_graph_0.csv"
    lines = path.read_text(encoding="utf-8").splitlines(keepends=True)
    cut = next(number for number, line in enumerate(lines) if "/AllReduce-op" in line)
    path.write_text("".join(lines[:cut] + lines[cut + 1 :]), encoding="utf-8")
    status, answer = asked(folder, capsys)
    assert (status, answer["hangs"]) == (1, True)
    assert answer["order"]["notes"][0].startswith("1: never launched ")
