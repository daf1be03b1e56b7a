"""How each piece of a statement may be spelled: parameters, types, places, scopes, calls."""

from __future__ import annotations

import pytest

import irtool
from irtool.ir.values import (
    NodeReference,
)


@pytest.mark.parametrize(
    ("printed", "name", "number"),
    [
        ("%para3 = x : <Int8>", "x", 3),
        ("%para3_x : <Int8>", "x", 3),
        ("%para3_x: <Int8>", "x", 3),
        ("%para3_x : <Int8>  :  <Int8xDefaultFormat[const vector][4, 8]>  :  IsWeight:true",
         "x", 3),
        ("%para3_x: <Int8>  :  has_default", "x", 3),
        ("%para3_x: <Int8> : [2, s1<[1,inf]>]", "x", 3),
        ("%para3_x: <Int8> : [DynLen-s1]  :  <Int8xDefaultFormat[const vector]{}>"
         "  :  IsWeight: false", "x", 3),
        ("%para_x: <Int8>", "x", None),
    ],
)  # fmt: skip
def test_spellings_of_a_parameter(printed: str, name: str, number: int | None) -> None:
    text = f"# IR entry: @g\n{printed}\n\nsubgraph @g() {{\n}}\n"
    read = irtool.loads(text)
    (parameter,) = read.parameters
    assert read.problems == ()
    assert (parameter.name, parameter.number) == (name, number)
    assert irtool.dumps(read) == text


@pytest.mark.parametrize(
    ("printed", "short"),
    [
        ("<Tensor[Float32]x[const vector][2, 3]>", "Float32[2,3]"),
        ("<Tensor[Float32]x[const vector][]>", "Float32[]"),
        ("<Tensor[Float32]x(2, 3)>", "Float32[2,3]"),
        ("<Tensor[Float32], (2, 3)>", "Float32[2,3]"),
        ("<Tensor[Float32], (5)>", "Float32[5]"),
        ("<Tensor[Float32], (-1, 3)>", "Float32[-1,3]"),
        ("<Tuple[Tensor[Float32]*2], TupleShape((2), (3))>", "Tuple[Float32[2],Float32[3]]"),
        ("<List[Int64], ListShape(NoShape)>", "List[Int64]"),
        ("<List[Int64], ListShape[NoShape]>", "List[Int64]"),
        ("<Ref[Tensor[Float32]], (4), ref_key=:w>", "Float32[4]"),
        ("<Ref[Tensor[Float32]], (4), ref_key=w>", "Float32[4]"),
        ("<Tuple[Int64], sequence_nodes={node={[CNode]3, elements_use_flags=[const vector][1]}}>",
         "Tuple[Int64]"),
        ("<Tuple[Int64], sequence_nodes={node={[CNode]3>", "Tuple[Int64]"),
        ("<Tuple[Int64], TupleShape(NoShape), sequence_nodes={node={CNode_3, elements_use_flags: "
         "{ptr: 0x55, value: [const vector]{1}}}}>", "Tuple[Int64]"),
        ("<Tuple[Int64], TupleShape(NoShape), elements_use_flags={[const vector]{1}}>",
         "Tuple[Int64]"),
        ("<Tuple[String], TupleShape(NoShape), sequence_nodes={node={0x55/@11_print__48:CNode_49"
         "{[0]: ValueNode<Primitive> MakeTuple, [1]: ValueNode<StringImm> x = {a}, %d, (y>), <b>}, "
         "elements_use_flags: {ptr: 0x55, value: [const vector]{1}}}}>", "Tuple[String]"),
    ],
)  # fmt: skip
def test_spellings_of_a_type(printed: str, short: str) -> None:
    text = f"%0(a) = Neg(%1)\n      : ({printed}) -> ({printed})\n"
    read = irtool.loads(text)
    (node,) = read.nodes()
    assert read.problems == ()
    assert [made.short() for made in node.input_types if made] == [short]
    assert node.output_type == node.input_types[0]
    assert irtool.dumps(read) == text


@pytest.mark.parametrize(
    ("printed", "path", "line", "columns"),
    [
        ("# In file net.py(12)/        x = y/", "net.py", 12, (None, None)),
        ("# In file net.py:12/        x = y/", "net.py", 12, (None, None)),
        ("# In file net.py:12", "net.py", 12, (None, None)),
        ("# In file net.py:12~14, 8~20/        x = y/", "net.py", 12, (8, 20)),
        ("# In file net.py:12, 8~20/        x = y/", "net.py", 12, (8, 20)),
        ("# inlined:In file net.py:12/        x = y/", "net.py", 12, (None, None)),
        ("# In file /a b/c:d/net.py:12/        d[3:4]/", "/a b/c:d/net.py", 12, (None, None)),
    ],
)
def test_spellings_of_a_location(
    printed: str, path: str, line: int, columns: tuple[int | None, int | None]
) -> None:
    text = f"  %0(a) = Neg(%1)\n      {printed}\n"
    read = irtool.loads(text)
    (node,) = read.nodes()
    assert node.location is not None
    assert (node.location.path, node.location.line) == (path, line)
    assert (node.location.column, node.location.end_column) == columns
    assert irtool.dumps(read) == text


@pytest.mark.parametrize(
    ("printed", "scope", "full_name"),
    [
        ("# scope: (Default)", "Default", None),
        ("# Scope: (Default/net)", "Default/net", None),
        ("#scope: (Default)", "Default", None),
        ("#scope: Default", "Default", None),
        ("# fullname_with_scope: (Default/net/Add-op0)", "Default/net", "Default/net/Add-op0"),
        ("# Fullname with scope: (Default/net/Add-op0)", "Default/net", "Default/net/Add-op0"),
        ("# Scope: (Default/a(b)/c)", "Default/a(b)/c", None),
    ],
)
def test_spellings_of_a_scope(printed: str, scope: str, full_name: str | None) -> None:
    text = f"  %0(a) = Neg(%1)\n      {printed}\n"
    read = irtool.loads(text)
    (node,) = read.nodes()
    assert (node.scope, node.full_name) == (scope, full_name)
    assert irtool.dumps(read) == text


@pytest.mark.parametrize(
    ("printed", "op", "callees"),
    [
        ("MatMul", "MatMul", ()),
        ("PrimFunc_MatMul", "MatMul", ()),
        ("S_Prim_MatMul", "MatMul", ()),
        ("S-Prim-MatMul", "MatMul", ()),
        ("_MirrorOperator", "_MirrorOperator", ()),
        ("call @3_g.4", "call", ("3_g.4",)),
        ("%8[@@g_1]", "call", ("g_1",)),
        ("%8[@Partial(@g_1)]", "call", ("g_1",)),
        ("%8[@FuncUnion(@g_1, Partial(@g_2))]", "call", ("g_1", "g_2")),
        ("%8[@FuncUnion(@g_1, @g_2)]", "call", ("g_1", "g_2")),
        ("%8[g.1]", "call", ("g.1",)),
        ("%8[Partial(g.1)]", "call", ("g.1",)),
        ("%8[FuncUnion(g.1, g.2)]", "call", ("g.1", "g.2")),
        ("%8", "call", ()),
        ("$(@p_1:f)", "call", ()),
        ("$(@p_1:f)[@@g_1]", "call", ("g_1",)),
        ("HyperMap_hyper_map{fn_leaf: x}", "HyperMap_hyper_map", ()),
        ("MetaFuncGraph-add.12", "MetaFuncGraph-add.12", ()),
        ("UnpackCall-unpack_call", "UnpackCall-unpack_call", ()),
        ("GradOperation_grad{get_all: 1, get_by_list: 0, sens_param: 0}",
         "GradOperation_grad", ()),
        ("Depend[side_effect_propagate: I64(1)]", "Depend", ()),
        ("DoSignaturePrimitive::S-Prim-MatMul{prim_type=1}[output_names=[\"output\"]]",
         "MatMul", ()),
    ],
)  # fmt: skip
def test_spellings_of_what_is_called(printed: str, op: str, callees: tuple[str, ...]) -> None:
    text = f"  %0(a) = {printed}(%1)\n"
    read = irtool.loads(text)
    (node,) = read.nodes()
    assert read.problems == ()
    assert node.op == op
    assert node.callees == callees
    assert node.operands == (NodeReference(1),)
    assert irtool.dumps(read) == text


@pytest.mark.parametrize("numbers", ["0, 1, 2, 3", "-1, 2, -1", "12, 7"])
@pytest.mark.parametrize("after", ["", ", send_rank_ids: 3, 2", ', group: "hccl_world_group"'])
def test_a_list_of_numbers_without_brackets(numbers: str, after: str) -> None:
    text = (
        "  %3(CNode_490) = NeighborExchange(%2) {instance name: x} "
        f"primitive_attrs: {{format: NCHW, recv_rank_ids: {numbers}{after}}}\n"
    )
    read = irtool.loads(text)
    (node,) = read.nodes()
    assert read.problems == ()
    assert node.attribute("recv_rank_ids") == [int(number) for number in numbers.split(", ")]
    assert irtool.dumps(read) == text
