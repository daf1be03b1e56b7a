"""Lines of logs: headers of MindSpore, of CANN and of Python."""

from __future__ import annotations

import pytest

from irtool.linting.failure.record import exception_of, masked, parse_line

GLOG = (
    "[ERROR] PARALLEL(9431,7f795862ab80,python):2025-06-02-15:26:42.834.896 [mindspore/ccsrc/"
    "frontend/parallel/ops_info/matmul_info.cc:274] CheckInputStrategy] MatMulInfo00: no"
)


def test_a_header_of_mindspore() -> None:
    record = parse_line(GLOG)
    assert record.level == "error"
    assert record.module == "PARALLEL"
    assert record.stream == ("9431", "7f795862ab80")
    assert record.time == "2025-06-02-15:26:42.834.896"
    assert record.check == "matmul_info.cc:CheckInputStrategy"
    assert record.message == "MatMulInfo00: no"
    assert record.is_parallel


@pytest.mark.parametrize("lead", ["[rank3]: ", "2025-06-02 15:26:42 worker "])
def test_what_a_launcher_puts_before_the_header(lead: str) -> None:
    record = parse_line(lead + GLOG)
    assert record.check == "matmul_info.cc:CheckInputStrategy"
    assert record.rank == (3 if "rank" in lead else None)


def test_a_line_without_level_is_an_error_where_it_names_its_source() -> None:
    record = parse_line("[mindspore/ccsrc/frontend/parallel/a/b_info.cc:34] CheckStrategy] no")
    assert (record.level, record.check) == ("error", "b_info.cc:CheckStrategy")


def test_a_header_of_cann() -> None:
    line = (
        "[ERROR] HCCL(3977573,all_reduce_test):2025-11-22-17:37:04.447.996 "
        "[hccl_socket_manager.cc:816] [3977663][Wait][LinkEstablish]wait socket timeout"
    )
    record = parse_line(line)
    assert (record.level, record.module) == ("error", "HCCL")
    assert record.message == "wait socket timeout"


def test_a_header_of_mindspores_python() -> None:
    line = "[WARNING] ME(9431:140154,MainProcess):2025-06-02-15:26:42.1.2 [mindspore/a.py:7] old"
    record = parse_line(line)
    assert (record.level, record.stream, record.message) == ("warning", ("9431", "140154"), "old")


@pytest.mark.parametrize(
    "line", ["", "epoch: 1 step: 2, loss is 0.5", "[1, 2, 3]", "[ERROR]", "[ERROR] (", "]]]]"]
)
def test_anything_else_is_plain(line: str) -> None:
    assert parse_line(line).level == "plain"
    assert parse_line(line).message == line


def test_the_last_line_of_a_traceback() -> None:
    assert exception_of("mindspore.a.RuntimeError: no") == ("RuntimeError", "no")
    assert exception_of("No error: here") is None


def test_numbers_are_made_alike() -> None:
    assert masked("size 12 at 0xff") == masked("size 7 at 0x1")


def test_hostile_headers_cost_no_more_than_one_look() -> None:
    for line in ("[ERROR] A(" + "1" * 60_000, "[" * 60_000, "A." * 30_000, "[ERROR] A(1" * 6_000):
        assert parse_line(line).level == "plain"
        assert exception_of(line) is None
