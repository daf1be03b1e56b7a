"""Several files: ranks are folded, causes come before what follows from them."""

from __future__ import annotations

from irtool.linting.failure.fail_dump import explain_dump, with_rank
from irtool.linting.failure.finding import Explained
from irtool.linting.failure.log import LogReader
from irtool.linting.failure.report import NO_DUMPS, Place, report_of
from irtool.syntax.reader import loads

MEMORY = (
    "RuntimeError: Device(id:0) memory isn't enough and alloc failed, "
    "kernel name: a/b-op1, alloc size: 8B."
)
WAITS = (
    "EI0002: The wait execution of the Notify register times out. Reason: The Notify register has "
    "not received the Notify record from remote rank [3].base information: [tag[AllReduce_1]]"
)


def explained(rank: int, *lines: str) -> Explained:
    reader = LogReader(f"worker_{rank}.log", rank)
    for number, line in enumerate(lines, 1):
        reader.feed(number, line)
    return reader.finish()


def stamped(text: str, second: int) -> str:
    return f"[ERROR] DEVICE(7,a1,python):2025-06-02-15:26:{second:02}.100.100 [a/b.cc:1] F] {text}"


def test_ranks_that_say_the_same_are_one_finding() -> None:
    files = [(explained(rank, WAITS), Place()) for rank in range(3)]
    (finding,) = report_of(files).findings
    assert finding.ranks == (0, 1, 2)
    assert finding.times == 3


def test_the_cause_comes_before_its_consequences() -> None:
    files = [(explained(rank, WAITS), Place()) for rank in range(3)]
    found = report_of([*files, (explained(3, MEMORY), Place())]).findings
    assert [(each.code, each.ranks) for each in found] == [
        ("out-of-memory", (3,)),
        ("hccl-timeout", (0, 1, 2)),
    ]


def test_of_lines_that_tell_of_one_timeout_the_one_that_names_the_rank_is_shown() -> None:
    lines = (stamped("Call runtime aclrtSynchronizeStreamWithTimeout error.", 1), WAITS)
    (finding,) = report_of([(explained(0, *lines), Place())]).findings
    assert finding.message == "a collective waited in vain for rank 3"
    assert finding.times == 2


def test_of_two_causes_the_earlier_is_first() -> None:
    late = explained(0, stamped("Malloc device memory failed, size[8]", 50))
    early = explained(1, stamped("The HCCL group 2-5 does not existed. The group", 10))
    found = report_of([(late, Place()), (early, Place())]).findings
    assert [each.code for each in found] == ["group-missing", "out-of-memory"]


def test_an_unknown_error_comes_before_a_timeout() -> None:
    late = explained(0, WAITS)
    early = explained(1, stamped("the flux is out of phase", 10))
    found = report_of([(late, Place()), (early, Place())]).findings
    assert [each.role for each in found] == ["unknown", "consequence"]


def test_commands_name_the_dumps_of_the_run() -> None:
    (finding,) = report_of([(explained(0, MEMORY), Place("my run", "my run"))]).findings
    assert finding.command == "irtool memory 'my run'"
    (finding,) = report_of([(explained(0, MEMORY), Place())]).findings
    assert finding.command == f"irtool memory {NO_DUMPS}"


def test_a_command_does_not_ask_for_an_operator_that_nobody_knows() -> None:
    place = "[mindspore/ccsrc/frontend/parallel/a/b_info.cc:1] CheckStrategy]"
    line = f"{place} The input can not be split"
    (finding,) = report_of([(explained(0, line), Place("run"))]).findings
    assert finding.command == "irtool check run"


FAIL_DUMP = """\
# The following shows the last analyze fail log message.
----------------------------------------------------
- Caught exception:
----------------------------------------------------
For 'MatMul' the input dimensions must be equal, but got 'x1_col': 5 and 'x2_row': 3.

----------------------------------------------------
- The Traceback of Net Construct Code:
----------------------------------------------------
# 0 In file net.py:46, 15~37
        return self.matmul(x, self.w)

# IR entry: @construct_6
# Total subgraphs: 1

subgraph @construct_6(%para1_x, %para2_w) {
#------------------------> 0
  %1(CNode_2) = PrimFunc_MatMul(%para1_x, %para2_w)
      : (<Tensor[Float32], (2, 5)>, <Tensor[Float32], (3, 4)>) -> (<null>)
  Return(%1)
      : (<null>)
}
"""


def test_a_log_and_the_dump_of_one_failure_are_one_finding() -> None:
    dump = loads(FAIL_DUMP, "rank_0/om/analyze_fail.ir")
    left = with_rank(explain_dump(dump, FAIL_DUMP.splitlines()), 0)
    log = explained(
        0,
        "Traceback (most recent call last):",
        '  File "train.py", line 155, in main',
        "    net.compile(x)",
        "ValueError: For 'MatMul' the input dimensions must be equal, but got 'x1_col': 5 and "
        "'x2_row': 3. Check the shapes of both.",
    )
    (finding,) = report_of([(left, Place()), (log, Place())]).findings
    assert finding.op == "MatMul"
    assert finding.operands == ("Float32[2,5]", "Float32[3,4]")
    assert finding.source is not None
    assert (finding.source.path, finding.source.line) == ("net.py", 46)
    assert finding.file == "worker_0.log"
    assert finding.command.startswith("irtool parse rank_0/om/analyze_fail.ir")


def test_failures_of_two_ranks_that_differ_stay_two() -> None:
    dump = loads(FAIL_DUMP, "rank_0/om/analyze_fail.ir")
    left = with_rank(explain_dump(dump, FAIL_DUMP.splitlines()), 0)
    found = report_of([(left, Place()), (explained(1, MEMORY), Place())]).findings
    assert len(found) == 2
