"""Hostile input is normal input: a problem that says what is wrong, never an exception.

Whatever it is, it prints back byte for byte.
"""

from __future__ import annotations

import gzip

import pytest

import irtool
from irtool.ir.values import number
from tests.syntax.damaged import DUMP, MULTIBYTE, NODES, codes, count, load_back


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


def test_a_compressed_picture_is_a_problem() -> None:
    assert codes(irtool.load(gzip.compress(PNG))) == ["SYN005"]


def test_an_actor_set_is_named_as_such() -> None:
    read = load_back(ACTOR_SET)
    assert codes(read) == ["SYN005"]
    assert "actor set" in read.problems[0].message
    assert read.problems[0].hint


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


def sized(shape: str) -> str:
    return (
        "# IR entry      : @f\n\nsubgraph @f() {\n"
        f"  %0(a) = PrimFunc_ReLU(%para1_x)\n      : (<Tensor[Float32], {shape}>) -> "
        f"(<Tensor[Float32], {shape}>)\n}}\n"
    )


@pytest.mark.parametrize(
    ("shape", "is_known"),
    [
        (f"({2**63 - 1})", True),
        (f"({2**63})", False),
        (f"({2**32}, {2**31})", False),
        (f"({2**32}, {2**30}, -1)", True),
        (f"(0, {2**63})", False),
        ("(" + ", ".join(["4000000000"] * 40) + ")", False),
    ],
)
def test_of_a_tensor_that_no_machine_has_the_shape_is_unknown(shape: str, is_known: bool) -> None:
    read = irtool.loads(sized(shape))
    assert irtool.dumps(read) == sized(shape)
    assert read.problems == ()
    (node,) = (node for node in read.nodes() if node.op == "ReLU")
    assert node.output_type is not None
    assert (node.output_type.dimensions is not None) == is_known


def test_a_size_of_thousands_of_digits_is_a_problem() -> None:
    read = irtool.loads(sized(f"({'9' * 5000})"))
    assert irtool.dumps(read) == sized(f"({'9' * 5000})")
    assert [problem.code for problem in read.problems] == ["SYN002"]


@pytest.mark.parametrize(("digits", "kind"), [(40, int), (41, float), (5000, float)])
def test_numbers_of_many_digits_are_no_whole_numbers(digits: int, kind: type) -> None:
    assert type(number("9" * digits)) is kind


@pytest.mark.parametrize(("digits", "is_read"), [(1000, True), (1001, False), (5000, False)])
def test_a_run_of_thousands_of_digits_is_a_problem(digits: int, is_read: bool) -> None:
    text = sized("(8)").replace("(%para1_x)", f"(I64({'9' * digits}))")
    read = irtool.loads(text)
    assert irtool.dumps(read) == text
    assert [problem.code for problem in read.problems] == ([] if is_read else ["SYN001"])
