"""``irtool parse`` as people and scripts use it."""

from __future__ import annotations

import csv
import errno
import io
import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from irtool.cli import work
from irtool.syntax.run.expanding import expand
from tests.cli.running import Run

ROOT = Path(__file__).resolve().parents[2]
GOLDEN = ROOT / "tests" / "golden"


def process(*arguments: str, **options: Any) -> subprocess.CompletedProcess[bytes]:
    """A command line in a process of its own."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT), **options.pop("env", {})}
    command = [sys.executable, "-m", "irtool", *arguments]
    return subprocess.run(
        command, cwd=ROOT, env=environment, capture_output=True, timeout=60, **options
    )


SUMMARY = "samples/mlp_semi_auto/20_validate_0080.ir"
EVIL = (
    "# IR entry: @main\n# Total subgraphs: 1\n\n# Total params: 1\n# Params:\n"
    "%para1_x\x1b[31m: <Tensor[Float32], (2)>\n\nsubgraph @main() {\n"
    "  %0(a) = PrimFunc_Bad(%para1_x\x1b[31m) {instance name: \x9b\u202eboo} primitive_attrs: "
    '{k: "\x1b]0;title\x07", not: F32(nan), large: F32(-inf)}\n'
    "      : (<Tensor[Float32], (2)>) -> (<Tensor[Float32], (2)>)\n"
    "      # Scope: (Default/\x1b[2J)\n"
    "  Return(%0)\n      : (<Tensor[Float32], (2)>)\n}\n"
)


# -- what people see ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("one", [SUMMARY]),
        ("recompute", ["samples/recompute/20_validate_0081.ir"]),
        ("many", ["samples/mlp_semi_auto", "samples/search_page_validate.ir"]),
        ("run", ["samples/pipeline_run"]),
        ("nodes", [SUMMARY, "--where", 'op == "MatMul"']),
        ("groups", ["samples/gpt/20_validate_0080.ir", "--where", "collective", "--group-by",
                    "op,phase"]),
        ("chosen_ir", ["samples/search_page_validate.ir", "-f", "ir", "--where", "collective"]),
        ("search_page_json", ["samples/search_page_validate.ir", "-f", "json"]),
    ],
)  # fmt: skip
def test_golden(irtool: Run, name: str, arguments: list[str]) -> None:
    """Set IRTOOL_UPDATE_GOLDEN=1 to accept new outputs."""
    ran = irtool("parse", *arguments)
    golden = GOLDEN / f"parse_{name}.txt"
    if os.environ.get("IRTOOL_UPDATE_GOLDEN"):
        golden.write_text(ran.output, encoding="utf-8")
    assert ran.status == 0
    assert ran.errors == ""
    assert ran.output == golden.read_text(encoding="utf-8")


def test_equal_ranks_share_a_line(irtool: Run, tmp_path: Path) -> None:
    text = (ROOT / "samples/data_parallel/19_validate_0078.ir").read_text()
    other = (ROOT / "samples/recompute/20_validate_0081.ir").read_text()
    for rank in range(6):
        folder = tmp_path / f"rank_{rank}"
        folder.mkdir()
        content = (text if rank < 4 else other).replace("CNode_", f"CNode_{rank}")
        (folder / "19_validate_0078.ir").write_text(content)
    ran = irtool("parse", str(tmp_path))
    assert "2 dumps in" in ran.output
    assert "which represent 6 ranks" in ran.output
    assert re.search(r"rank_0/19_validate_0078.ir +0-3 ", ran.output)
    assert re.search(r"rank_4/19_validate_0078.ir +4,5 ", ran.output)
    assert "rank_5" in irtool("parse", str(tmp_path), "--rank", "5").output
    missing = irtool("parse", str(tmp_path), "--rank", "9")
    assert missing.status == 2
    assert "0-5" in missing.errors


def test_control_characters_are_shown_not_sent(irtool: Run, tmp_path: Path) -> None:
    dump = tmp_path / "evil.ir"
    dump.write_text(EVIL, encoding="utf-8")
    for arguments in (
        ["-f", "table"],
        ["-f", "json"],
        ["-f", "ndjson"],
        ["-f", "csv"],
        ["--where", "has(op)"],
        ["--group-by", "scope,instance_name,attr.k"],
    ):
        ran = irtool("parse", str(dump), *arguments)
        assert not re.search("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e]", ran.output + ran.errors)
    assert irtool("parse", str(dump), "-f", "ir").output == EVIL
    named = tmp_path / "\x1b[31mred.ir"
    assert "\x1b" not in irtool("parse", str(named)).errors


# -- formats -----------------------------------------------------------------------------------


def all_samples() -> list[Path]:
    return sorted((ROOT / "samples").rglob("*.ir"))


@pytest.mark.parametrize("sample", all_samples(), ids=lambda path: str(path.name))
def test_ir_prints_back(irtool: Run, sample: Path) -> None:
    ran = irtool("parse", str(sample), "--format", "ir")
    assert ran.output == sample.read_bytes().decode()


def test_json_follows_its_schema(irtool: Run) -> None:
    jsonschema = pytest.importorskip("jsonschema")
    schema = json.loads((ROOT / "docs/json-parse.schema.json").read_text(encoding="utf-8"))
    jsonschema.Draft202012Validator.check_schema(schema)
    ran = irtool("parse", "samples", "no-such-file.ir", "--format", "json")
    assert ran.status == 1
    content = json.loads(ran.output)
    jsonschema.validate(content, schema)
    dumps = expand([str(ROOT / "samples")]).files
    assert len(content["files"]) == len(dumps) + 1
    assert content["files"][0]["path"] == "no-such-file.ir"


def test_json_of_the_search_page(irtool: Run) -> None:
    content = json.loads(irtool("parse", "samples/search_page_validate.ir", "-f", "json").output)
    nodes = content["files"][0]["graphs"][0]["nodes"]
    assert [node["op"] for node in nodes] == ["MatMul", "AllReduce", "Load", "BiasAdd", "ReLU"]
    assert nodes[0]["in_strategy"] == [[4, 2], [1, 2]]
    assert nodes[0]["inputs"] == ["%12", "%13"]
    assert nodes[0]["input_types"] == ["Float32[64,392]", "Float32[512,392]"]
    assert nodes[0]["attributes"]["primal"]["unique_id"] == "37896"
    assert nodes[1]["attributes"]["primitive"]["group"] == "2-5004544844489628105"
    assert nodes[1]["ranks"] == [0, 1]


def test_numbers_that_json_lacks(irtool: Run, tmp_path: Path) -> None:
    dump = tmp_path / "evil.ir"
    dump.write_text(EVIL, encoding="utf-8")
    content = json.loads(
        irtool("parse", str(dump), "-f", "json").output, parse_constant=pytest.fail
    )
    attributes = content["files"][0]["graphs"][0]["nodes"][0]["attributes"]["primitive"]
    assert attributes["not"] == "NaN"
    assert attributes["large"] == "-Infinity"


def test_records_are_equal_in_every_format(irtool: Run, tmp_path: Path) -> None:
    parquet = pytest.importorskip("pyarrow.parquet")
    arguments = ("parse", "samples/gpt", "--where", 'op != "Return"')
    lines = irtool(*arguments, "-f", "ndjson").output.splitlines()
    rows = list(csv.DictReader(io.StringIO(irtool(*arguments, "-f", "csv").output)))
    file = tmp_path / "nodes.parquet"
    assert irtool(*arguments, "-f", "parquet", "-o", str(file)).output == ""
    table = parquet.read_table(file)
    assert len(lines) == len(rows) == table.num_rows > 100
    assert list(json.loads(lines[0])) == list(rows[0]) == table.column_names
    assert [json.loads(line)["op"] for line in lines] == table.column("op").to_pylist()
    assert [row["output_bytes"] for row in rows] == [
        "" if size is None else str(size) for size in table.column("output_bytes").to_pylist()
    ]


def test_groups_in_every_format(irtool: Run) -> None:
    arguments = ("parse", SUMMARY, "--group-by", "op,ranks", "--where", "collective")
    content = json.loads(irtool(*arguments, "-f", "json").output)
    assert content["schema"] == "irtool.parse.groups/1"
    assert {"op": "AllReduce", "ranks": [0, 4], "count": 3, "bytes": 664064} in content["groups"]
    lines = [json.loads(line) for line in irtool(*arguments, "-f", "ndjson").output.splitlines()]
    assert lines == content["groups"]
    assert len(irtool(*arguments, "-f", "csv").output.splitlines()) == len(lines) + 1


def test_several_processes_give_the_same(irtool: Run) -> None:
    for format in ("json", "csv", "table"):
        one = irtool("parse", "samples", "-f", format, "-j", "1")
        assert irtool("parse", "samples", "-f", format, "-j", "3") == one


def test_output_file(irtool: Run, tmp_path: Path) -> None:
    file = tmp_path / "out.json"
    assert irtool("parse", SUMMARY, "-f", "json", "-o", str(file)).output == ""
    assert file.read_text() == irtool("parse", SUMMARY, "-f", "json").output
    failed = irtool("parse", SUMMARY, "-o", str(tmp_path / "no" / "out"))
    assert failed.status == 2
    assert "cannot write" in failed.errors


def test_limit(irtool: Run) -> None:
    assert "more operators (--limit 0 shows all)" in irtool("parse", SUMMARY).output
    assert "more" not in irtool("parse", SUMMARY, "--limit", "0").output
    assert len(irtool("parse", SUMMARY, "-f", "ndjson", "--limit", "5").output.splitlines()) == 5


# -- what goes wrong ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["parse", SUMMARY, "--fromat", "json"], "did you mean --format"),
        (["parse", SUMMARY, "--format", "jsn"], "did you mean json?"),
        (["pares", SUMMARY], "did you mean parse?"),
        ([SUMMARY], f"irtool parse {SUMMARY}"),
        (["parse"], "missing argument"),
        (["parse", "no-such.ir"], "no-such.ir:1:1: error[RUN010]"),
        (["parse", "no-such-*.ir"], "nothing matches"),
        (["parse", SUMMARY, "--where", "op = 1"], "--where:1:4: error[QRY001]"),
        (["parse", SUMMARY, "--group-by", "op,grop"], "did you mean group"),
        (["parse", SUMMARY, "--graph", "7"], "there is no compilation 7"),
        (["parse", SUMMARY, "--jobs", "0"], "--jobs"),
    ],
)
def test_mistakes_end_with_2_and_a_hint(irtool: Run, arguments: list[str], expected: str) -> None:
    ran = irtool(*arguments)
    assert ran.status == 2
    assert expected in ran.errors
    assert ran.output == ""
    assert "Traceback" not in ran.errors


def test_a_folder_without_dumps(irtool: Run, tmp_path: Path) -> None:
    ran = irtool("parse", str(tmp_path))
    assert ran.status == 2
    assert "no dumps in this folder" in ran.errors


def test_problems_end_with_1_and_show_the_line(irtool: Run, tmp_path: Path) -> None:
    dump = tmp_path / "broken.ir"
    text = (ROOT / SUMMARY).read_text().replace("PrimFunc_ReLU(%4)", "PrimFunc_ReLU(%4")
    dump.write_text(text)
    ran = irtool("parse", str(dump))
    assert ran.status == 1
    place = re.search(r":(\d+):(\d+): error\[SYN001\]", ran.errors)
    assert place is not None
    line = text.splitlines()[int(place[1]) - 1]
    assert "PrimFunc_ReLU(%4" in line
    _, excerpt, caret, *_ = ran.errors[place.start() :].splitlines()
    assert 0 <= excerpt.index("{instance name") - caret.index("^") <= 3
    assert "hint:" in ran.errors
    assert irtool("parse", str(dump), "-f", "json").status == 1


def test_some_files_unreadable(irtool: Run) -> None:
    ran = irtool("parse", "no-such.ir", SUMMARY, "-f", "ndjson")
    assert ran.status == 1
    assert len(ran.output.splitlines()) == 94


def test_standard_input() -> None:
    data = (ROOT / SUMMARY).read_bytes()
    ran = process("parse", "-", "-f", "ir", input=data)
    assert (ran.returncode, ran.stdout, ran.stderr) == (0, data, b"")
    empty = process("parse", "-", input=b"")
    assert empty.returncode == 1
    assert b"<stdin>:1:1: error[SYN006]" in empty.stderr


@pytest.mark.skipif(os.name == "nt", reason="pipes differ")
@pytest.mark.parametrize("jobs", ["1", "2"])
def test_a_closed_pipe_is_silent(jobs: str) -> None:
    command = [sys.executable, "-m", "irtool", "parse", "samples", "-f", "json", "-j", jobs]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    ran = subprocess.Popen(
        command, cwd=ROOT, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    assert ran.stdout is not None
    assert ran.stderr is not None
    ran.stdout.readline()
    ran.stdout.close()
    errors = ran.stderr.read()
    ran.stderr.close()
    assert ran.wait(30) == 141
    assert errors == b""


@pytest.mark.skipif(os.name == "nt", reason="signals differ")
def test_ctrl_c_is_silent(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe.ir"
    os.mkfifo(pipe)
    ran = interruptible(["-m", "irtool", "parse", str(pipe)])
    # A pipe can be opened for writing from the moment on that irtool reads it, and it never ends.
    writer = None
    while writer is None and ran.poll() is None:
        try:
            writer = os.open(pipe, os.O_WRONLY | os.O_NONBLOCK)
        except OSError as error:
            if error.errno != errno.ENXIO:
                raise
            time.sleep(0.01)
    ran.send_signal(signal.SIGINT)
    output, errors = ran.communicate(timeout=120)
    if writer is not None:
        os.close(writer)
    assert (ran.returncode, output, errors) == (130, b"", b"")


@pytest.mark.skipif(os.name == "nt", reason="no such signals")
def test_ctrl_c_while_it_starts_is_silent() -> None:
    # The signal comes when the command line's module is asked for, before any of ours could run.
    code = (
        "import os, signal, sys\n"
        "class Interrupts:\n"
        "    def find_spec(self, name, path=None, target=None):\n"
        "        if name == 'irtool.cli.main':\n"
        "            os.kill(os.getpid(), signal.SIGINT)\n"
        "sys.meta_path.insert(0, Interrupts())\n"
        "from irtool.__main__ import main\n"
        "sys.exit(main())\n"
    )
    ran = interruptible(["-c", code])
    output, errors = ran.communicate(timeout=120)
    assert (ran.returncode, output, errors) == (130, b"", b"")


def interruptible(arguments: list[str]) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [sys.executable, *arguments],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        # Where the tests run in the background the signal is ignored, and that is inherited.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )


@pytest.mark.skipif(os.name == "nt", reason="needs a pseudo-terminal")
def test_no_color_on_a_terminal() -> None:
    assert "\x1b[" in on_a_terminal({})
    text = on_a_terminal({"NO_COLOR": "1"})
    assert "\x1b" not in text
    assert all(len(line) <= 100 for line in text.splitlines())


def test_colours_go_to_a_pipe_where_they_are_forced() -> None:
    assert "\x1b[" not in through_a_pipe({})
    assert "\x1b[" in through_a_pipe({"FORCE_COLOR": "1"})
    assert "\x1b" not in through_a_pipe({"FORCE_COLOR": "1", "NO_COLOR": "1"})


def through_a_pipe(environment: dict[str, str]) -> str:
    unset = ("NO_COLOR", "FORCE_COLOR")
    clean = {key: value for key, value in os.environ.items() if key not in unset}
    ran = subprocess.run(
        [sys.executable, "-m", "irtool", "parse", "samples/pipeline_run"],
        cwd=ROOT,
        env={**clean, "PYTHONPATH": str(ROOT), **environment},
        capture_output=True,
        text=True,
        check=False,
    )
    return ran.stdout


def on_a_terminal(environment: dict[str, str]) -> str:
    import pty

    main_end, other_end = pty.openpty()
    clean = {key: value for key, value in os.environ.items() if key != "NO_COLOR"}
    ran = subprocess.Popen(
        [sys.executable, "-m", "irtool", "parse", "samples/pipeline_run", "no-such.ir"],
        cwd=ROOT,
        env={**clean, "PYTHONPATH": str(ROOT), "TERM": "xterm", "COLUMNS": "100", **environment},
        stdout=other_end,
        stderr=other_end,
        stdin=subprocess.DEVNULL,
    )
    os.close(other_end)
    pieces: list[bytes] = []
    while True:
        try:
            piece = os.read(main_end, 65536)
        except OSError:
            break
        if not piece:
            break
        pieces.append(piece)
    os.close(main_end)
    assert ran.wait(30) == 1
    return b"".join(pieces).decode()


# -- processes ---------------------------------------------------------------------------------


def _dies_on_three(number: int) -> int:
    if number == 3:
        os._exit(9)
    if number == 5:
        raise ValueError("five")
    return number * 2


def test_a_dying_process_is_the_problem_of_its_item() -> None:
    outcomes = list(work.run_all(_dies_on_three, list(range(12)), 2, bar=False))
    for number, outcome in enumerate(outcomes):
        if number in (3, 5):
            with pytest.raises(work.WorkerDied if number == 3 else ValueError):
                outcome.get()
        else:
            assert outcome.get() == number * 2
