"""Hostile input is normal input: a problem that says what is wrong, never an exception.

Whatever it is, it prints back byte for byte.
"""

from __future__ import annotations

import gzip
import io
import lzma
import os
import struct
import subprocess
import sys
import threading
import tracemalloc
import zlib
from pathlib import Path

import pytest

import irtool
from irtool.ir.dump import Dump
from irtool.syntax import source

DUMP = """\
# IR entry: @main_1
# Total subgraphs: 2

# Total params: 2
# Params:
%para1_x: <Tensor[Float32], (8, 4)>
%para2_w "q": <Ref[Tensor[Float32]], (4, 2), ref_key=w "q", is_parameter>  :  has_default

Node counting information:
Total number of nodes: 12
Total number of cnodes: 5

subgraph attr:
training: 1
subgraph instance: inner_2 : 0x55a1
# In file net.py:12, 4~30/    def inner(y):/
subgraph @inner_2(%para3_y) {
  %0(a) = PrimFunc_Add(%para3_y, Tensor(shape=[2, 2], dtype=Float32, value=
[[ 1.0 2.0]
 [ 3.0 4.0]])) {instance name: add} cnode_attrs: {checkpoint: Bool(1)}
      : (<Tensor[Float32], (8, 2)>, <Tensor[Float32], (2, 2), value=...>) -> (<null>)
      # Fullname with scope: (Default/net/Add-op0)
      # In file net.py:13, 8~20/        y + [[1, 2]]/
  Return(%0)
      : (<null>)
}


subgraph attr:
training: 1
subgraph @main_1() {
  %0(x) = MatMul(%para1_x, %para2_w "q") {in_strategy: ((2, 1), (1, 2))}
      : (<Tensor[Float32], (8, 4)>, <Tensor[Float32], (4, 2)>) -> (<Tensor[Float32], (8, 2)>)
  %1(c) = call @inner_2(%0)
      : (<Tensor[Float32], (8, 2)>) -> (<null>)
  Return(%1)
      : (<null>)
}


"""
NODES = 5

MULTIBYTE = (
    DUMP.replace("inner_2", "↓↻_2").replace('w "q"', 'вес "β" {✗}').replace("net.py", "сеть.py")
)


def count(read: Dump) -> int:
    return sum(len(graph.nodes) for graph in read.graphs)


def load_back(data: bytes) -> Dump:
    """The dump of these bytes, having checked that they print back."""
    read = irtool.load(data)
    assert irtool.dumps(read).encode("utf-8", "surrogateescape") == data
    return read


def codes(read: Dump) -> list[str]:
    return [problem.code for problem in read.problems]


@pytest.mark.parametrize("text", [DUMP, MULTIBYTE])
def test_the_dumps_that_are_damaged_below_are_sound(text: str) -> None:
    read = load_back(text.encode())
    assert read.problems == ()
    assert count(read) == NODES


# ---- nothing in it -------------------------------------------------------------------------------


@pytest.mark.parametrize("data", [b"", b"\n", b"\n\n\n", b" ", b" \t \n\t\n", b"\r\n\r\n"])
def test_an_empty_file_is_a_problem(data: bytes) -> None:
    read = load_back(data)
    assert codes(read) == ["SYN006"]
    assert read.graphs == ()


# ---- truncated -----------------------------------------------------------------------------------


@pytest.mark.parametrize("end", range(len(DUMP)))
def test_every_prefix_is_read_and_says_that_nodes_are_missing(end: int) -> None:
    read = load_back(DUMP[:end].encode())
    assert count(read) == NODES or read.problems


def test_every_prefix_by_bytes_is_read_and_says_that_nodes_are_missing() -> None:
    data = MULTIBYTE.encode()
    silent = []
    for end in range(len(data)):
        read = load_back(data[:end])
        if count(read) != NODES and not read.problems:
            silent.append(end)
    assert silent == []


@pytest.mark.parametrize("line", [20, 24, 27, 33])
def test_what_stands_before_the_cut_is_read(line: int) -> None:
    whole = [node for node in irtool.loads(DUMP).nodes() if node.line < line - 3]
    read = list(irtool.loads("\n".join(DUMP.split("\n")[:line])).nodes())
    assert [node.op for node in read][: len(whole)] == [node.op for node in whole]


@pytest.mark.parametrize("start", range(0, len(DUMP), 7))
def test_every_suffix_is_read(start: int) -> None:
    load_back(DUMP[start:].encode())


# ---- lines that do not belong there --------------------------------------------------------------


def test_a_blank_line_after_the_types_is_kept_where_it_is() -> None:
    text = DUMP.replace("      # Fullname", "\n      # Fullname")
    read = load_back(text.encode())
    assert count(read) == NODES
    assert read.graphs[0].nodes[0].signature is not None


def test_a_blank_line_before_the_types_is_kept_where_it_is() -> None:
    load_back(DUMP.replace("\n      : (", "\n\n      : (").encode())


def test_a_type_line_of_two_kinds_is_a_problem() -> None:
    read = load_back(b"%0(a) = Neg(%1)\n: (<Int8>, V:2) -> (<Float32xNCHW[const vector]{1}>)\n")
    assert codes(read) == ["SYN002"]
    assert count(read) == 1


def test_a_comment_that_looks_like_a_location_is_a_remark() -> None:
    read = load_back(b"  %0(a) = Neg(%1)\n      # In file somewhere\n      # SideEffect: { X\n")
    (node,) = read.nodes()
    assert node.location is None
    assert len(node.comments) == 2


# ---- put together --------------------------------------------------------------------------------


def test_two_dumps_in_one_file_are_both_read() -> None:
    read = load_back((DUMP + DUMP).encode())
    assert codes(read) == ["SYN007"]
    assert read.problems[0].line == DUMP.count("\n") + 1
    assert count(read) == 2 * NODES


def test_two_dumps_of_which_the_first_is_truncated() -> None:
    cut = DUMP.index("  Return(%1)")
    read = load_back((DUMP[:cut] + DUMP).encode())
    assert {"SYN003", "SYN007"} <= set(codes(read))
    assert count(read) == 2 * NODES - 1


# ---- line ends -----------------------------------------------------------------------------------


def test_windows_line_ends_are_read() -> None:
    data = DUMP.replace("\n", "\r\n").encode()
    read = load_back(data)
    assert read.problems == ()
    assert count(read) == NODES


@pytest.mark.parametrize("every", [2, 3, 7])
def test_mixed_line_ends_are_read(every: int) -> None:
    lines = DUMP.split("\n")
    ends = ["\r\n" if i % every else "\n" for i in range(len(lines) - 1)]
    data = "".join(f"{a}{b}" for a, b in zip(lines, [*ends, ""], strict=True)).encode()
    read = load_back(data)
    assert read.problems == ()
    assert count(read) == NODES


@pytest.mark.parametrize("data", [DUMP.replace("\n", "\r"), DUMP.replace("\n", "\r\r\n")])
def test_other_line_ends_are_no_dump_but_print_back(data: str) -> None:
    assert load_back(data.encode()).problems


def test_a_byte_order_mark_is_read() -> None:
    read = load_back(b"\xef\xbb\xbf" + DUMP.encode())
    assert read.problems == ()
    assert count(read) == NODES


# ---- bytes that do not belong there --------------------------------------------------------------


@pytest.mark.parametrize("bad", [b"\0", b"\xff", b"\xc3\x28", b"\xed\xa0\x80", b"\x80\x80"])
def test_damaged_bytes_are_a_problem_with_its_place(bad: bytes) -> None:
    before, after = DUMP.encode().split(b"Default")
    read = load_back(before + bad + after)
    assert codes(read) == ["SYN008"]
    assert read.problems[0].line == before.count(b"\n") + 1
    assert read.problems[0].column == len(before) - before.rindex(b"\n")
    assert count(read) == NODES


@pytest.mark.parametrize("bad", [b"\0", b"\xff"])
def test_damaged_bytes_at_every_place_are_a_problem(bad: bytes) -> None:
    data = DUMP.encode()
    for at in range(0, len(data), 11):
        assert load_back(data[:at] + bad + data[at:]).problems


@pytest.mark.parametrize("char", ["\x0b", "\x0c", "\x1c", "\x85", "\u2028", "\u2029"])
def test_only_line_feeds_end_lines(char: str) -> None:
    read = load_back(DUMP.replace("Default/net", f"Default{char}net").encode())
    assert read.problems == ()
    assert count(read) == NODES


# ---- other things than dumps ---------------------------------------------------------------------


PNG = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\0\x01\0\0\0\x01\x08\x06\0\0\0\x1f\x15\xc4\x89" + bytes(64)
DAT = b"""\
# [No.1] construct_wrapper.1
# In file net.py(12)/    def construct(self, x):/
funcgraph fg_1(
        %para1 : Tensor(F32)[2, 3]    # x
    ) {
    %1 : Tensor(F32)[2, 3] = DoSignaturePrimitive::S-Prim-Add{prim_type=1}(%para1, I64(1))
    Primitive::Return{prim_type=1}(%1)
}
# num of total function graphs: 1
"""
ACTOR_SET = b"""\
%0 = DataPrepareActor_0_kernel_graph_0() op control()
\t# device: CPU
%1 = LoopCountActor_1(%0) op control(type)
"""
OTHERS = {
    "png": PNG,
    "dat": DAT,
    "json": b'{"accepted": true, "nodes": [1, 2]}\n',
    "python": b"import mindspore as ms\n\nprint(f'{x}: %para' % 3)\n",
    "dot": b'digraph mindspore {\nsubgraph cluster_0x55{label="w"}\nnode0x1[label=<<table>>]\n}\n',
    "protobuf": b"\n\x04main\x12\x0a\x08\x01\x12\x06MatMul" * 20,
    "numpy": b"\x93NUMPY\x01\0v\0{'descr': '<f4', 'fortran_order': False, 'shape': (2,), }",
}


@pytest.mark.parametrize("name", OTHERS)
def test_another_kind_of_file_is_a_problem(name: str) -> None:
    read = load_back(OTHERS[name])
    assert read.problems
    assert list(read.nodes(op="MatMul")) == []


def test_an_actor_set_is_named_as_such() -> None:
    read = load_back(ACTOR_SET)
    assert codes(read) == ["SYN005"]
    assert "actor set" in read.problems[0].message
    assert read.problems[0].hint


# ---- large ---------------------------------------------------------------------------------------


MEASURE = """
import resource, sys
import irtool
def peak():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10
{make}
before = peak()
read = irtool.load(data)
assert irtool.dumps(read).encode("utf-8", "surrogateescape") == data
print(peak() - before, len(read.problems))
"""


def measured(make: str) -> tuple[int, int]:
    """Mebibytes needed to read and print ``data``, and number of problems."""
    pytest.importorskip("resource")
    code = MEASURE.format(make=make)
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    memory, problems = map(int, done.stdout.split())
    return memory, problems


@pytest.mark.slow
@pytest.mark.parametrize(
    "line",
    [
        "  %0(a) = Add({})",
        "  %0({}) = Add()",
        "  %0(a) = Add() {{instance name: {}}}",
        "      # Scope: ({})",
        "      : (<{}>)",
        "%para1_{}: <null>",
        "subgraph @{}() {{",
        "{}",
        '  %0(a) = Add("{}")',
    ],
)
def test_a_line_of_a_hundred_megabytes(line: str) -> None:
    before, after = line.split("{}")
    memory, _ = measured(
        f"data = b'# IR entry: @g\\nsubgraph @g() {{\\n' + {before.replace('{{', '{')!r}.encode()"
        f" + b'x' * 100_000_000 + {after.replace('}}', '}').replace('{{', '{')!r}.encode()"
        " + b'\\n}\\n'"
    )
    assert memory < 1500, "mebibytes"


@pytest.mark.slow
def test_a_statement_of_a_hundred_megabytes_is_a_problem() -> None:
    _, problems = measured("data = b'  %0(a) = Add(\"' + b'x' * 100_000_000 + b'\")\\n'")
    assert problems == 1


DEEP = 100_000


@pytest.mark.parametrize(
    "record",
    [
        "  %0(a) = Add({open}{close})",
        "  %0(a) = Add({open}",
        "  %0(a) = Add({close}",
        "  %0(a) = Add(x) primitive_attrs: {{k: {open}{close}}}",
        "  %0(a) = Add{open}{close}(x)",
        "  %0(a) = %1[@{kind}@g{ends}](x)",
        "  %0(a) = Neg(x)\n      : (<{types}Int8{closes}>)",
        "  %0(a) = Neg(x)\n      : (<Int8, {shapes}{ends}>)",
        "  %0(a) = Neg(x)\n      : (S:{open}{close})",
    ],
)
@pytest.mark.parametrize("brackets", ["()", "[]", "{}"])
def test_nesting_of_a_hundred_thousand_levels(record: str, brackets: str) -> None:
    text = record.format(
        open=brackets[0] * DEEP,
        close=brackets[1] * DEEP,
        kind="Partial(" * DEEP,
        types="Tuple[" * DEEP,
        shapes="TupleShape(" * DEEP,
        ends=")" * DEEP,
        closes="]" * DEEP,
    )
    read = load_back(f"subgraph @g() {{\n{text}\n  Return(%0)\n}}\n".encode())
    assert read.problems
    assert [node.op for node in read.nodes()][-1] == "Return"


@pytest.mark.parametrize(
    "line",
    [
        "x{blanks}y",
        "{blanks}y",
        "{blanks}...y",
        "a: {blanks}b",
        "subgraph @g({blanks}",
        "%para1_x{blanks}: <",
        "# Parameters: 1, ({blanks}",
    ],
)
@pytest.mark.parametrize("inside", [False, True])
def test_long_lines_of_blanks_take_no_time_to_speak_of(line: str, inside: bool) -> None:
    # Quadratic work would take minutes here, which is what this test shows when it fails.
    text = line.format(blanks=" " * 200_000)
    body = f"subgraph @g() {{\n{text}\n}}\n" if inside else f"{text}\n"
    load_back(f"# IR entry: @g\n{body}".encode())


@pytest.mark.parametrize(
    "text",
    [
        "subgraph @g(\n" + " \n" * 60 + "x\n",
        "subgraph @g(\n  %para1_x: <null>\n" * 2000,
        "  %0(a) = A(\n" + "\n" * 50_000 + ")\n",
        "  %0(a) = A()\n      : (<" + "x" * 100_000 + ">)\n",
        "  %0(a) = A() {instance name: x" + " " * 100_000 + "x\n",
        "  %0(a) = A()" + " {instance name: " * 20_000 + "\n",
        '  %0(a) = A("' + '"a, ' * 20_000 + "\n",
        "  %0(a) = A(" + "$(@a:" * 20_000 + ")\n",
        "  %0(a) = A(" + "Tensor(shape=[" * 20_000 + ")\n",
        "  %0(a) = A()\n      : (<Int8" + ", elements_use_flags={" * 20_000 + ")\n",
        "  %0(a) = A()\n      : (" + "<Int8, ref_key=" * 20_000 + ")\n",
        "  %0(a) = A()\n      : (S:" + "[a][a" * 2000 + ")\n",
        "  %0(a) = A()\n      # In file " + ":1" * 20_000 + "x\n",
    ],
    ids=lambda text: text[:40],
)
def test_ambiguous_text_takes_no_time_to_speak_of(text: str) -> None:
    # Text that may be cut in many ways must not be tried in all of them.
    load_back(f"# IR entry: @g\nsubgraph @g() {{\n{text}}}\n".encode())


@pytest.mark.parametrize("digits", [5_000, 100_000])
@pytest.mark.parametrize(
    "record",
    [
        "Total number of cnodes: {}",
        "# Total subgraphs: {}",
        "%para{}_x: <null>",
        "%para1_x: <Tensor[Float32], ({})>",
        "subgraph @g(%para{}_x) {{",
        "  %{}(a) = Add()",
        "  %0(a) = Add(%{})",
        "  %0(a) = Add(I64({}), {})",
        "  %0(a) = Add()\n      : (<Tuple[Int8*{}]>)",
        "  %0(a) = Add()\n      # In file net.py:{}/x/",
        "#------------------------> {}",
    ],
)
def test_numbers_of_any_length(record: str, digits: int) -> None:
    number = "9" * digits
    read = load_back(f"# IR entry: @g\n{record.format(number, number)}\n".encode())
    for node in read.nodes():
        assert node.attribute("x") is None
        assert node.location is None or node.location.path


@pytest.mark.parametrize("number", ["007", "00", "-01"])
def test_numbers_spelled_in_an_unusual_way_print_back(number: str) -> None:
    load_back(
        f"subgraph @g(%para{number}_x) {{\n  %{number}(a) = Add(%{number}, {number})\n"
        f"      : (<Tensor[Int8], ({number})>)\n}}\n".encode()
    )


# ---- places from which nothing can be read -------------------------------------------------------


def test_a_folder_is_refused(tmp_path: Path) -> None:
    with pytest.raises(irtool.DumpError, match="is a folder"):
        irtool.load(tmp_path)


def test_a_file_that_is_not_there_is_refused(tmp_path: Path) -> None:
    with pytest.raises(irtool.DumpError, match="no such file"):
        irtool.load(tmp_path / "none.ir")


@pytest.mark.skipif(
    not hasattr(os, "geteuid") or os.geteuid() == 0, reason="root may read every file"
)
def test_a_file_without_permission_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "closed.ir"
    path.write_text(DUMP)
    path.chmod(0)
    with pytest.raises(irtool.DumpError, match="permission denied"):
        irtool.load(path)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no named pipes here")
def test_a_pipe_is_read(tmp_path: Path) -> None:
    path = tmp_path / "pipe"
    os.mkfifo(path)
    data = DUMP.encode() * 100  # more than a pipe holds
    writer = threading.Thread(target=path.write_bytes, args=(data,))
    writer.start()
    read = irtool.load(path)
    writer.join()
    assert count(read) == 100 * NODES


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no named pipes here")
def test_a_pipe_that_nobody_writes_into_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(source, "_WRITER_PATIENCE", 0.05)
    path = tmp_path / "pipe"
    os.mkfifo(path)
    with pytest.raises(irtool.DumpError, match="nobody writes"):
        irtool.load(path)


# ---- compressed ----------------------------------------------------------------------------------


@pytest.mark.parametrize(("suffix", "compress"), [(".gz", gzip.compress), (".xz", lzma.compress)])
def test_compressed_dumps_are_read(tmp_path: Path, suffix: str, compress: object) -> None:
    path = tmp_path / f"dump.ir{suffix}"
    path.write_bytes(compress(DUMP.encode()))  # type: ignore[operator]
    read = irtool.load(path)
    assert read.problems == ()
    assert irtool.dumps(read) == DUMP


@pytest.mark.parametrize("compress", [gzip.compress, lzma.compress])
def test_compression_is_told_by_content_not_by_name(tmp_path: Path, compress: object) -> None:
    path = tmp_path / "dump.ir"
    path.write_bytes(compress(DUMP.encode()))  # type: ignore[operator]
    assert count(irtool.load(path)) == NODES


@pytest.mark.parametrize("compress", [gzip.compress, lzma.compress])
def test_compressed_parts_one_after_the_other_are_read(compress: object) -> None:
    half = len(DUMP) // 2
    parts = [compress(part.encode()) for part in (DUMP[:half], DUMP[half:])]  # type: ignore[operator]
    assert irtool.dumps(irtool.load(b"".join(parts))) == DUMP


@pytest.mark.parametrize("compress", [gzip.compress, lzma.compress])
def test_a_compressed_dump_may_be_truncated_anywhere(compress: object) -> None:
    data = compress(DUMP.encode())  # type: ignore[operator]
    for end in range(6, len(data)):
        read = irtool.load(data[:end])
        assert "SYN003" in codes(read)
        assert DUMP.startswith(irtool.dumps(read))


@pytest.mark.parametrize("compress", [gzip.compress, lzma.compress])
def test_a_compressed_dump_may_be_damaged_anywhere(compress: object) -> None:
    data = compress(DUMP.encode())  # type: ignore[operator]
    for at in range(6, len(data)):
        damaged = bytearray(data)
        damaged[at] ^= 0x55
        read = irtool.load(bytes(damaged))
        assert read.problems or irtool.dumps(read) == DUMP


@pytest.mark.parametrize("compress", [gzip.compress, lzma.compress])
def test_a_bomb_is_refused_before_it_fills_memory(
    monkeypatch: pytest.MonkeyPatch, compress: object
) -> None:
    monkeypatch.setattr(source, "MAX_BYTES", 4 << 20)
    bomb = compress(bytes(64 << 20))  # type: ignore[operator]
    tracemalloc.start()
    try:
        with pytest.raises(irtool.DumpError, match="expands to more than"):
            irtool.load(bomb)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 16 << 20


def test_the_limit_is_what_a_dump_may_have_after_expanding() -> None:
    assert source.MAX_BYTES == 1 << 30


def test_a_file_that_is_too_large_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(source, "MAX_BYTES", 100)
    with pytest.raises(irtool.DumpError, match="larger than"):
        irtool.load(io.BytesIO(DUMP.encode()))


def test_a_compressed_picture_is_a_problem() -> None:
    assert codes(irtool.load(gzip.compress(PNG))) == ["SYN005"]


def test_a_gzip_header_without_content_is_a_problem() -> None:
    header = b"\x1f\x8b\x08\0" + struct.pack("<I", 0) + b"\0\xff"
    assert "SYN003" in codes(irtool.load(header))
    assert "SYN003" in codes(irtool.load(header + zlib.compress(b"x")[2:]))


# ---- what may be given instead of a path ---------------------------------------------------------


def test_bytes_are_read() -> None:
    assert irtool.load(DUMP.encode()).problems == ()
    assert irtool.load(bytearray(DUMP.encode())).problems == ()  # type: ignore[arg-type]


def test_a_binary_file_is_read(tmp_path: Path) -> None:
    path = tmp_path / "dump.ir"
    path.write_text(DUMP, encoding="utf-8")
    with path.open("rb") as file:
        read = irtool.load(file)
    assert read.path == str(path)
    assert count(read) == NODES


def test_a_stream_without_name_is_read() -> None:
    read = irtool.load(io.BytesIO(DUMP.encode()))
    assert read.path == "<stream>"
    assert count(read) == NODES


def test_a_path_may_be_a_string(tmp_path: Path) -> None:
    path = tmp_path / "dump.ir"
    path.write_text(DUMP, encoding="utf-8")
    assert irtool.load(str(path)).path == str(path)


def test_a_name_may_be_given_for_messages() -> None:
    read = irtool.load(b"x", name="pasted")
    assert str(read.problems[0]).startswith("pasted:1:1: error[SYN005]: ")


# ---- names that mean harm ------------------------------------------------------------------------


EVIL = ["<script>alert(1)</script>", "\x1b[2J\x1b]0;gone\x07", "'; rm -rf / #", "../../etc/passwd"]


@pytest.mark.parametrize("name", EVIL)
def test_a_harmful_name_is_kept_as_it_is(name: str) -> None:
    text = f"subgraph @g() {{\n  %0({name}) = Add(%1)\n      # Scope: ({name})\n}}\n"
    read = load_back(text.encode())
    (node,) = read.nodes()
    assert read.problems == ()
    assert node.name == name
    assert node.scope == name


@pytest.mark.parametrize("name", EVIL)
def test_a_harmful_parameter_name_is_kept_as_it_is(name: str) -> None:
    read = load_back(
        f"# IR entry: @g\n%para1_{name}: <Int8>\n\nsubgraph @g() {{\n"
        f"  %0(a) = Neg(%para1_{name})\n}}\n".encode()
    )
    (node,) = read.nodes()
    assert read.problems == ()
    assert read.parameters[0].name == name
    assert node.operands[0].label == name  # type: ignore[union-attr]
