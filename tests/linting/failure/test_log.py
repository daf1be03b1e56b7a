"""What a whole log says: folding, echoes, unknown errors, bounds."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from irtool.linting.failure.log import MOST_FINDINGS, LogReader
from tests.linting.failure.conftest import Read, ReadLog


def line(level: str, text: str, thread: str = "a1", module: str = "DEVICE", at: int = 0) -> str:
    time = f"2025-06-02-15:26:42.100.{at:03}"
    return f"[{level}] {module}(7,{thread},python):{time} [a/b.cc:1] F] {text}"


def refusal(text: str, function: str = "CheckStrategy", thread: str = "a1") -> str:
    source = f"mindspore/ccsrc/frontend/parallel/ops_info/x_info.cc:1] {function}]"
    return f"[ERROR] PARALLEL(7,{thread},python):2025-06-02-15:26:42.100.100 [{source} {text}"


def test_a_healthy_log_says_nothing(read: Read) -> None:
    assert read(["epoch: 1 step: 1, loss is 2.3", line("INFO", "all is well")]).findings == ()


def test_an_unknown_error_is_told_as_it_stands(read: Read) -> None:
    (finding,) = read(["fine", line("ERROR", "the flux is out of phase")]).findings
    assert (finding.code, finding.role, finding.line) == ("unknown", "unknown", 2)
    assert finding.statement == line("ERROR", "the flux is out of phase")


def test_an_unknown_exception_is_told_with_its_line_of_python(read: Read) -> None:
    lines = [
        "Traceback (most recent call last):",
        '  File "train.py", line 3, in <module>',
        "    main()",
        '  File "train.py", line 9, in main',
        "    open_door()",
        "KeyError: 'door'",
    ]
    (finding,) = read(lines).findings
    assert finding.statement == "KeyError: 'door'"
    assert finding.source is not None
    assert finding.source.shown == "train.py:9: open_door()"


def test_unknown_errors_that_differ_in_numbers_are_one(read: Read) -> None:
    (finding,) = read([line("ERROR", f"lost {n} of 10") for n in range(5)]).findings
    assert finding.times == 5
    assert "lost 0 of 10" in finding.statement


def test_threads_do_not_mix(read: Read) -> None:
    lines = [
        refusal("MatMulInfo00: The axis can not be split", thread="a1"),
        refusal("AddInfo00: All must be equal", thread="b2"),
        refusal("MatMulInfo00: CheckStrategy failed.", "InferByStrategy", "a1"),
        refusal("AddInfo00: CheckStrategy failed.", "InferByStrategy", "b2"),
    ]
    found = read(lines).findings
    assert [(each.op, each.code, each.echoes) for each in found] == [
        ("MatMul", "axis-split", 1),
        ("Add", "axis-mismatch", 1),
    ]


def test_two_refusals_of_one_thread_are_two(read: Read) -> None:
    lines = [
        refusal("MatMulInfo00: The axis can not be split"),
        refusal("MatMulInfo00 : Init failed.", "Init"),
        refusal("AddInfo00: All must be equal"),
        refusal("AddInfo00 : Init failed.", "Init"),
    ]
    assert [each.op for each in read(lines).findings] == ["MatMul", "Add"]


def test_an_unheard_of_rule_is_a_refusal_once_the_operator_gives_up(read: Read) -> None:
    reason = refusal("FooInfo00: Monday", "CheckWeekday")
    (alone,) = read([reason]).findings
    assert alone.role == "unknown"
    (finding,) = read([reason, refusal("FooInfo00 : Init failed.", "Init")]).findings
    assert (finding.code, finding.role, finding.op) == ("refused", "cause", "Foo")
    assert finding.check == "x_info.cc:CheckWeekday"
    assert finding.message == "Monday"


def test_codes_that_differ_in_digits_are_told_apart(read: Read) -> None:
    lines = ["see EL0005: nothing", "see EL0004: Failed to allocate memory."]
    assert [each.code for each in read(lines).findings] == ["out-of-memory"]


def test_interfered_search_in_effect(read_log: ReadLog) -> None:
    found = read_log("2.7.0", "rec_interfered")
    assert {each.code for each in found} == {"interfered-sapp"}
    assert all("is in effect" in each.message for each in found)


def test_interfered_search_not_in_effect(read_log: ReadLog) -> None:
    (finding,) = read_log("2.7.0", "rec_user")
    assert finding.code == "interfered-sapp"
    assert "no line says that MS_INTERFERED_SAPP is in effect" in finding.message


def test_a_graph_out_of_the_compile_cache(read_log: ReadLog) -> None:
    (finding,) = read_log("2.7.0", "cache_used")
    assert (finding.code, finding.severity) == ("stale-cache", "warning")
    (finding,) = read_log("2.7.0", "cache_changed")
    assert (finding.code, finding.severity) == ("stale-cache", "info")


def test_an_exception_that_begins_with_an_empty_line(read: Read) -> None:
    lines = [
        "RuntimeError: ",
        "----------------------------------------------------",
        "- Memory not enough:",
        "----------------------------------------------------",
        "Memory isn't enough and alloc failed, kernel name: a/Tile-op0, alloc size: 1048576B.",
    ]
    (finding,) = read(lines).findings
    assert finding.code == "out-of-memory"
    assert finding.message == "the device has no memory left for a/Tile-op0 (1.0 MiB)"


def test_a_worker_without_scheduler(read_log: ReadLog) -> None:
    (finding,) = read_log("2.7.0", "no_scheduler")
    assert (finding.code, finding.role) == ("rank-missing", "consequence")
    assert finding.source is not None
    assert finding.source.shown == 'train.py:6: init("mccl")'


def test_a_failed_inference_points_at_the_dump_that_it_left(read_log: ReadLog) -> None:
    (finding,) = read_log("2.7.0", "shape_wrong")
    assert (finding.code, finding.op) == ("shape", "MatMul")
    assert finding.command == "irtool explain rank_0/om/analyze_fail.ir"


def test_labels_beyond_the_limit_are_an_error(read: Read) -> None:
    few, many = "Label list size: 514, label id: 1", "Label list size: 1404, label id: 2"
    (finding,) = read([line("INFO", few, module="GE")]).findings
    assert (finding.role, finding.severity) == ("note", "info")
    (finding,) = read([line("INFO", many, module="GE")]).findings
    assert (finding.code, finding.role, finding.severity) == ("label-limit", "cause", "error")


PIECES = [
    line("ERROR", "the flux is out of phase"),
    line("INFO", "Label list size: 514, label id: 3"),
    refusal("MatMulInfo00: The axis can not be split"),
    refusal("MatMulInfo00 : Init failed.", "Init"),
    "RuntimeError: Failure:operator MatMul init failed",
    "KeyError: 'door'",
    "Traceback (most recent call last):",
    '  File "train.py", line 3, in <module>',
    "- The Traceback of Net Construct Code:",
    "# In file net.py:12, 8~20",
    "In file net.py:12, 8~20/    x = y/",
    " (See file 'rank_0/om/analyze_fail.ir' for more details.",
    "",
]


@given(st.lists(st.one_of(st.sampled_from(PIECES), st.text(max_size=60)), max_size=40))
def test_lines_in_any_order_never_break_it(lines: list[str]) -> None:
    reader = LogReader("run.log")
    for number, text in enumerate(lines, 1):
        reader.feed(number, text)
    found = reader.finish()
    assert found.lines == len(lines)
    for finding in found.findings:
        assert 1 <= finding.line <= len(lines)
        assert finding.times >= 1
        assert finding.message


@given(st.sampled_from(PIECES), st.integers(0, 200))
def test_a_line_cut_anywhere_never_breaks_it(text: str, cut: int) -> None:
    reader = LogReader("run.log")
    reader.feed(1, text[:cut])
    assert reader.finish().lines == 1


def test_hostile_lines_cost_no_more_than_one_look(read: Read) -> None:
    lines = [
        line("ERROR", "A" * 60_000),
        refusal("AInfo" * 12_000),
        "RuntimeError: " + "For '" * 12_000,
        "# In file " + "a:1" * 20_000,
        " (See file '" * 5_000,
        '  File "' * 7_000,
        "RuntimeError: " + "x" * 60_000,
    ]
    assert len(read(lines).findings) >= 2


def test_memory_is_bounded() -> None:
    reader = LogReader("run.log")
    words = [f"{a}{b}{c}" for a in "abcdefghij" for b in "abcdefghij" for c in "abcdefghij"]
    for number, word in enumerate(words, 1):
        reader.feed(number, line("ERROR", f"no {word}"))
    found = reader.finish()
    assert len(found.findings) == MOST_FINDINGS
    assert found.left_out == len(words) - MOST_FINDINGS
    assert found.lines == len(words)


def test_what_a_pass_says_before_it_raises_is_one_failure(read: Read) -> None:
    lines = [
        refusal("the flux is out of phase", "MainGraph"),
        "Traceback (most recent call last):",
        '  File "train.py", line 3, in <module>',
        "    main()",
        "RuntimeError: no flux, no graph.",
    ]
    (finding,) = read(lines).findings
    assert finding.message == "the flux is out of phase: no flux, no graph."
    assert finding.source is not None
    assert finding.source.line == 3


def test_of_an_interleaved_pipeline_the_exception_speaks(read: Read) -> None:
    lines = [
        refusal("Pipeline parallel now only support shared_cell.", "MainGraph"),
        "Traceback (most recent call last):",
        "RuntimeError: Using pipeline parallel with interleave, should enable lazy_inline.",
    ]
    (finding,) = read(lines).findings
    assert "needs a cell with @lazy_inline" in finding.message
    assert finding.edit is not None
    assert finding.edit.setting == "lazy_inline"
