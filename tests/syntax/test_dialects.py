"""Dumps of every version are read: 1.0 to 2.10 are alternatives of one grammar.

The fragments are written by hand after the format of their time.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

import pytest

import irtool
from irtool.ir.graph import GraphParameter, Node
from irtool.ir.values import (
    ForeignNode,
    ForeignParameter,
    NodeReference,
    ParameterReference,
    Scalar,
    Sequence,
    String,
    Tagged,
    TensorLiteral,
    Value,
    Word,
)


@dataclass
class Fragment:
    """A small dump of one version, and what its first statement says."""

    version: str
    dialect: str
    text: str
    op: str
    operands: tuple[Value, ...]
    types: list[str]
    strategy: object = None
    attributes: dict[str, object] = field(default_factory=dict)


FRAGMENTS = [
    Fragment(
        "1.0",
        "1.0 to 1.3",
        """\
#IR entry      : @3_1_construct_wrapper.15
#attrs         :
#Total params  : 2

%para1 = x : <Tensor[Float32]x[const vector][64, 32]>
%para2 = w : <Tensor[Float32]x[const vector][32, 16]>

#Total subgraph : 1

subgraph attr:
subgraph @3_1_construct_wrapper.15() {
  %0([CNode]5) = MatMul(%para1, %para2) {transpose_a: false, output_names: [output]}
 { strategy: ((4, 1), (1, 2)) }      : (<Tensor[Float32]x[const vector][64, 32]>, \
<Tensor[Float32]x[const vector][32, 16]>) -> (<Tensor[Float32]x[const vector][64, 16]>)
  return(%0)
      : (<Tensor[Float32]x[const vector][64, 16]>)
}
""",
        "MatMul",
        (ParameterReference(1, None), ParameterReference(2, None)),
        ["Float32[64,32]", "Float32[32,16]"],
        ((4, 1), (1, 2)),
        {"transpose_a": False, "output_names": ["output"]},
    ),
    Fragment(
        "1.1",
        "1.0 to 1.3",
        """\
#IR entry      : @6_5_1_construct_wrapper.15
#attrs         :
check_set_strategy_valid_once_only : 1
#Total params  : 2

%para1_x : <Tensor[Float32]x[const vector][]>
%para2_y : <Tensor[Float32]x[const vector][]>

#Total subgraph : 1

subgraph attr:
check_set_strategy_valid_once_only : 1
subgraph @6_5_1_construct_wrapper.15() {
  %0([CNode]8) = Add(%para1_x, $(3_inner.9:out)) {output_names: [output], input_names: [x, y]}
      : (<Tensor[Float32]x[const vector][]>, <Tensor[Float32]x[const vector][]>) -> \
(<Tensor[Float32]x[const vector][]>)
      # In file demo.py(14)/        x = x + y/
  return(%0)
      : (<Tensor[Float32]x[const vector][]>)
}
""",
        "Add",
        (ParameterReference(1, "x"), ForeignNode("3_inner.9", "out", "")),
        ["Float32[]", "Float32[]"],
        None,
        {"input_names": ["x", "y"]},
    ),
    Fragment(
        "1.3",
        "1.0 to 1.3",
        """\
#IR entry      : @1_construct_wrapper.21
#attrs         :
#Total params  : 1

%para1_x : <Tensor[Float32]x[const vector][2, 3]>

#Total subgraph : 1

subgraph attr:
Undeterminate : 0
subgraph @1_construct_wrapper.21() {
  %0([CNode]4) = Mul(%para1_x, Tensor(shape=[], dtype=Float32, value= 0.5)) \
{instance name: mul} primitive_attrs: {input_names: [x, y]} \
cnode_attrs: {topo_sort_rhs_first: true} cnode_primal_attrs: {micro: 1}
 { strategy: ((2, 1), ()) }      : (<Tensor[Float32]x[const vector][2, 3]>, \
<Tensor[Float32]x[const vector][]>) -> (<Tensor[Float32]x[const vector][2, 3]>)
  return(%0)
      : (<Tensor[Float32]x[const vector][2, 3]>)
}
""",
        "Mul",
        (ParameterReference(1, "x"), TensorLiteral((), "Float32", " 0.5")),
        ["Float32[2,3]", "Float32[]"],
        ((2, 1), ()),
        {"topo_sort_rhs_first": True, "micro": 1},
    ),
    Fragment(
        "1.4",
        "1.4 or 1.5",
        """\
#IR entry      : @1_construct_wrapper.21
#attrs         :
#Total params  : 1

%para1_x : <Tensor[Float32]x(2, 3)>

#Total subgraph : 1

subgraph attr:
subgraph @1_construct_wrapper.21() {
  %0([CNode]4) = TupleGetItem(%para1_x, 0) primitive_attrs: {fusion: 1}
 { strategy: ((2, 1)) }      : (<Tuple[Tensor[Float32]*2]>, <Int64>) -> (<Tensor[Float32]x(2, 3)>)
  Return(%0)
      : (<Tensor[Float32]x(2, 3)>)
}
""",
        "TupleGetItem",
        (ParameterReference(1, "x"), Word("0")),
        ["Tuple[Float32,Float32]", "Int64"],
        ((2, 1),),
        {"fusion": 1},
    ),
    Fragment(
        "1.6",
        "1.5 or 1.6",
        """\
#IR entry      : @1_construct_wrapper.31
#attrs         :
#Total params  : 2

%para1_x : <Tensor[Float32], (64, 32)>
%para2_weight : <Tensor[Float32], (32, 16)>

#Total subgraph : 1

subgraph attr:
subgraph @3_inner.33(%para3_y) {
  %0([CNode]7) = MatMul($(@1_construct_wrapper.31:x), $(@1_construct_wrapper.31:para2_weight)) \
primitive_attrs: {transpose_a: false}
 {in_strategy: ((4, 2), (2, 1)), out_strategy: ((4, 2))}      : (<Tensor[Float32], (64, 16)>, \
<Tensor[Float32], (16, 32)>) -> (<Tensor[Float32], (64, 32)>)
  Return(%0)
      : (<Tensor[Float32], (64, 32)>)
}
""",
        "MatMul",
        (
            ForeignNode("1_construct_wrapper.31", "x"),
            ForeignParameter("1_construct_wrapper.31", 2, "weight"),
        ),
        ["Float32[64,16]", "Float32[16,32]"],
        ((4, 2), (2, 1)),
    ),
    Fragment(
        "1.8",
        "1.7 or 1.8",
        """\
#IR entry      : @1_construct_wrapper.41
#attrs         :
#Total params  : 1

%para1_weight : <Ref[Tensor[Float32]], (32, 16), ref_key=:weight>

#Total subgraph : 1

subgraph attr:
subgraph instance: 1_construct_wrapper.41 : 0x55d0c1a3d0a0
subgraph @1_construct_wrapper.41() {
  %0([CNode]5) = Load(%para1_weight, U) primitive_attrs: {op: sum} {in_strategy: ((4, 2))}
      : (<Ref[Tensor[Float32]], (32, 16), ref_key=:weight>, <UMonad>) -> \
(<Tensor[Float32], (32, 16)>)
      # scope: (Default)
  %1([CNode]8) = %0[FuncUnion(2_construct.42, 3_construct.43)]()
      : () -> (<Tensor[Float32], (32, 16)>)
      # fullname_with_scope: (Default/net/Call-op3)
  Return(%1)
      : (<Tensor[Float32], (32, 16)>)
}
""",
        "Load",
        (ParameterReference(1, "weight"), Word("U")),
        ["Float32[32,16]", "UMonad"],
        ((4, 2),),
        {"op": "sum"},
    ),
    Fragment(
        "1.10",
        "1.9 or 1.10",
        """\
#IR entry      : @1_construct_wrapper.41
#attrs         :
#Total params  : 1

%para1_x : <Tensor[Float32], (4)>  :  has_default

#Total subgraph : 1

subgraph attr:
subgraph instance: 1_construct_wrapper.41 : 0x55d0c1a3d0a0
subgraph @1_construct_wrapper.41() {
  %0([CNode]5) = S-Prim-Add(%para1_x, 1) {in_strategy: ((4), ())}
      : (<Tensor[Float32], (4)>, <Int64, NoShape>) -> (<Tensor[Float32], (4)>)
      # scope: (Default)
      # In file net.py:14/        x = x + 1/
  Return(%0)
      : (<Tensor[Float32], (4)>)
}
""",
        "Add",
        (ParameterReference(1, "x"), Word("1")),
        ["Float32[4]", "Int64"],
        ((4,), ()),
    ),
    Fragment(
        "2.0 alpha",
        "2.0 alpha to rc1",
        """\
#IR entry      : @1_Default_wrapper.24
#Total subgraph: 1

#attrs         :
#Total params  : 1

%para1_x : <Tensor[Float32], ()>

subgraph attr:
undeterminate : 0
subgraph instance: 1_Default_wrapper.24 : 0x556cab47cd00
# In file testir1.py:19/    def construct(self, x, y):/
subgraph @1_Default_wrapper.24() {
  %0([CNode]6) = call @2_Default.23(%para1_x, Tensor(shape=[], dtype=Float32, value=1))
      : (<Tensor[Float32], ()>, <Tensor[Float32], (), value=...>) -> (<Tensor[Float32], ()>)
      # scope: (Default)
  %1([CNode]7) = %0[@@2_Default.23](%para1_x)
      : (<Tensor[Float32], ()>) -> (<Tensor[Float32], ()>)
  Return(%1)
      : (<Tensor[Float32], ()>)
}
# order:
#   1: @1_Default_wrapper.24:[CNode]6{[0]: ValueNode `<FuncGraph>` 2_Default.23, [1]: x, [2]: y}
""",
        "call",
        (ParameterReference(1, "x"), TensorLiteral((), "Float32", "1")),
        ["Float32[]", "Float32[]"],
    ),
    Fragment(
        "2.0.0",
        "2.0.0 to 2.2",
        """\
# IR entry: @1_construct_wrapper.51
# Total subgraphs: 1

# Attrs:
check_set_strategy_valid_once_only : 1

# Total params: 1
# Params:
%para1_weight : <Ref[Tensor[Float32]], (32, 16), ref_key=:weight>  :  has_default

subgraph attr:
undeterminate : 0
subgraph instance: 1_construct_wrapper.51 : 0x55a3b7c40d10
subgraph @1_construct_wrapper.51() {
  %0([CNode]4) = Cast(%para1_weight, Float16) {instance name: cast} primitive_attrs: \
{group: hccl_world_group, fusion: 0, no_eliminate: true} {in_strategy: ((4, 2))}
      : (<Tensor[Float32], (32, 16)>, <TypeType, NoShape>) -> (<Tensor[Float16], (32, 16)>)
      # Comment:
        # half precision is enough here
      # Scope: (Default)
      # inlined:In file net.py:17/        return self.cast(x, ms.float16)/
  Return(%0)
      : (<Tensor[Float16], (32, 16)>)
}
# Order:
#   1: @1_construct_wrapper.51:[CNode]4{[0]: ValueNode<PrimitivePy> Cast, [1]: weight}


""",
        "Cast",
        (ParameterReference(1, "weight"), Word("Float16")),
        ["Float32[32,16]", "TypeType"],
        ((4, 2),),
        {"group": "hccl_world_group", "fusion": 0, "no_eliminate": True},
    ),
    Fragment(
        "2.1",
        "2.1 or 2.2",
        """\
# IR entry: @1_train_step.61
# Total subgraphs: 1

# Total params: 1
# Params:
%para1_x : <Tensor[Float32], (64, 32)>

subgraph attr:
training : 1
subgraph instance: 1_train_step.61 : 0x5619d0f7a2e0
subgraph @1_train_step.61() {
  %0([CNode]73) = MultitypeFuncGraph-add{(Tensor, Number)}(%para1_x, step) primitive_attrs: \
{comm_reuse: Bool(1), group: "2-5004544844489628105", fusion: I64(0)} {in_strategy: ((1, 2))}
      : (<Tensor[Float32], (64, 32)>, <String, NoShape>) -> (<Tensor[Float32], (64, 32)>)
      # Scope: (Default)
  Return(%0)
      : (<Tensor[Float32], (64, 32)>)
}


""",
        "MultitypeFuncGraph-add",
        (ParameterReference(1, "x"), Word("step")),
        ["Float32[64,32]", "String"],
        ((1, 2),),
        {"comm_reuse": True, "group": "2-5004544844489628105", "fusion": 0},
    ),
    Fragment(
        "2.2",
        "2.2 or 2.3",
        """\
# IR entry: @1_train_step_61
# Total subgraphs: 1

# Total params: 1
# Params:
%para1_x : <Tensor[Float32], (64, 32)>

indirect: 1
subgraph attr:
training : 1
subgraph instance: 1_train_step_61 : 0x5619d0f7a2e0
# In file net.py:20/    def train_step(x):/
subgraph @1_train_step_61() {
  %0(CNode_73) = S_Prim_StridedSlice(%para1_x, (I64(0), I64(1)), "NCHW", UMonad[U]) \
{in_strategy: ((1, 2))}
      : (<Tensor[Float32], (64, 32)>, \
<Tuple[Int64*2], TupleShape(NoShape, NoShape)>, <String, NoShape>, <UMonad, NoShape>) -> \
(<Tensor[Float32], (64, 32)>)
      # Scope: (Default)
  Return(%0)
      : (<Tensor[Float32], (64, 32)>)
}


""",
        "StridedSlice",
        (
            ParameterReference(1, "x"),
            Sequence((Scalar("I64", "0"), Scalar("I64", "1"))),
            String("NCHW"),
            Tagged("UMonad", "[U]"),
        ),
        ["Float32[64,32]", "Tuple[Int64,Int64]", "String", "UMonad"],
        ((1, 2),),
    ),
    Fragment(
        "2.3",
        "2.3.0 or later",
        """\
# IR entry: @1_train_step_61
# Total subgraphs: 1

# Total params: 1
# Params:
%para1_w: <Ref[Tensor[Float32]], (64, 32), ref_key=w>  :  has_default

Node counting information:
Total number of nodes: 4
Total number of cnodes: 2

subgraph attr:
training: 1
chunk:\x20
subgraph instance: 1_train_step_61 : 0x5619d0f7a2e0
# SideEffect: { memory }
# In file net.py:20~24, 4~30/    def train_step(x):/
subgraph @1_train_step_61() {
  %0(CNode_73) = PrimFunc_Add(%para1_w, F32(0.5)) {in_strategy: ((1, 2), ())}
      : (<Ref[Tensor[Float32]], (64, 32), ref_key=w>, <Float32, NoShape>) -> \
(<Tensor[Float32], (64, 32)>)
      # Fullname with scope: (Default/net/Add-op0)
      # SideEffect: { memory load }
  Return(%0)
      : (<Tensor[Float32], (64, 32)>)
}


""",
        "Add",
        (ParameterReference(1, "w"), Scalar("F32", "0.5")),
        ["Float32[64,32]", "Float32"],
        ((1, 2), ()),
    ),
    Fragment(
        "2.7.0",
        "2.7.0 or later",
        """\
# IR entry: @g
# Total subgraphs: 1

# Total params: 1
# Params:
%para1_w: <Ref[Tensor[Float32]], (64, 32), ref_key=w, is_parameter>  :  has_default

Node counting information:
Total number of nodes: 4
Total number of cnodes: 2

subgraph @g() {
  %0(a) = Neg(%para1_w) {in_strategy: ((1, 2))}
      : (<Ref[Tensor[Float32]], (64, 32), ref_key=w, is_parameter>) -> \
(<Tensor[Float32], (64, 32)>)
  Return(%0)
      : (<Tensor[Float32], (64, 32)>)
}


""",
        "Neg",
        (ParameterReference(1, "w"),),
        ["Float32[64,32]"],
        ((1, 2),),
    ),
    Fragment(
        "2.7.1",
        "2.7.1 or later",
        """\
# IR entry: @g
# Total subgraphs: 1

# Total params: 0

Node counting information:
Total number of nodes: 4
Total number of cnodes: 2

subgraph attr:
compile_phase: train.1749.2
subgraph @g() {
  %0(a) = Neg(F32(1))
      : (<Float32, NoShape>) -> (<Float32, NoShape>)
  Return(%0)
      : (<Float32, NoShape>)
}


""",
        "Neg",
        (Scalar("F32", "1"),),
        ["Float32"],
    ),
    Fragment(
        "2.8.0",
        "2.8.0 or later",
        """\
# IR entry: @g
# Total subgraphs: 1

jit config {
debug_level: RELEASE
exc_mode: auto
jit_level:\x20
}

# Attrs:
compile_phase: train.1749.2

# Total params: 0

Node counting information:
Total number of nodes: 4
Total number of cnodes: 2

subgraph @g() {
  %0(a) = Neg(F32(1))
      : (<Float32, NoShape>) -> (<Float32, NoShape>)
  Return(%0)
      : (<Float32, NoShape>)
}


""",
        "Neg",
        (Scalar("F32", "1"),),
        ["Float32"],
    ),
]


@pytest.fixture(params=FRAGMENTS, ids=lambda fragment: fragment.version)
def fragment(request: pytest.FixtureRequest) -> Fragment:
    return request.param


def first_node(fragment: Fragment) -> Node:
    return irtool.loads(fragment.text).graphs[0].nodes[0]


def test_it_is_read_without_problem(fragment: Fragment) -> None:
    read = irtool.loads(fragment.text)
    assert read.problems == ()
    assert [node.op for node in read.nodes()][-1] == "Return"


def test_it_prints_back(fragment: Fragment) -> None:
    assert irtool.dumps(irtool.loads(fragment.text)) == fragment.text


def test_its_dialect_is_named(fragment: Fragment) -> None:
    assert irtool.loads(fragment.text).dialect == fragment.dialect


def test_its_operator_is_named_alike(fragment: Fragment) -> None:
    assert first_node(fragment).op == fragment.op


def test_its_operands_are_read(fragment: Fragment) -> None:
    assert first_node(fragment).operands == fragment.operands


def test_its_types_are_read(fragment: Fragment) -> None:
    types = first_node(fragment).input_types
    assert [made.short() for made in types if made] == fragment.types


def test_there_is_one_type_an_operand(fragment: Fragment) -> None:
    node = first_node(fragment)
    assert len(node.input_types) == len(node.operands)


def test_its_strategy_is_in_one_place(fragment: Fragment) -> None:
    assert first_node(fragment).in_strategy == fragment.strategy


def test_its_attributes_have_python_values(fragment: Fragment) -> None:
    node = first_node(fragment)
    assert {key: node.attribute(key) for key in fragment.attributes} == fragment.attributes


def test_its_parameters_are_found_from_their_uses(fragment: Fragment) -> None:
    read = irtool.loads(fragment.text)
    declared = {parameter.number: parameter for parameter in read.parameters}
    for node in read.nodes():
        for operand, source in zip(node.operands, node.inputs, strict=True):
            if isinstance(operand, ParameterReference) and operand.number in declared:
                assert isinstance(source, GraphParameter)
                assert source.declaration is declared[operand.number]


def test_nodes_are_found_from_their_uses(fragment: Fragment) -> None:
    for node in irtool.loads(fragment.text).nodes():
        for operand, source in zip(node.operands, node.inputs, strict=True):
            if isinstance(operand, NodeReference):
                assert isinstance(source, Node)
                assert source.number == operand.number


@pytest.mark.parametrize(
    ("name", "dialect"),
    [
        ("fragment_1.3.ir", "1.0 to 1.3"),
        ("fragment_1.6.ir", "1.5 or 1.6"),
        ("fragment_1.7.ir", "1.7 or 1.8"),
        ("fragment_2.0.ir", "2.0.0 to 2.2"),
        ("fragment_2.1.ir", "2.1 or 2.2"),
        ("mlp_semi_auto/20_validate_0080.ir", "2.7.0 or later"),
        ("data_parallel/19_validate_0078.ir", "2.7.1 or later"),
        ("mlp_semi_auto_2.10/21_validate_0082.ir", "2.8.0 or later"),
    ],
)
def test_dialect_of_samples(samples: Path, name: str, dialect: str) -> None:
    assert irtool.load(samples / name).dialect == dialect


ORDER = [
    "unknown",
    "1.0 to 1.3",
    "1.4 or 1.5",
    "1.5 or 1.6",
    "1.7 or 1.8",
    "1.9 or 1.10",
    "2.0 alpha to rc1",
    "2.0.0 to 2.2",
    "2.1 or 2.2",
    "2.2 or 2.3",
    "2.3.0 or later",
    "2.7.0 or later",
    "2.7.1 or later",
    "2.8.0 or later",
]


@pytest.mark.parametrize(
    ("run", "newest"),
    [
        ("v270_run", "2.7.0 or later"),
        ("v271_l2", "2.7.1 or later"),
        ("v272_l2", "2.7.1 or later"),
        ("v290_l2", "2.8.0 or later"),
        ("par_ms210", "2.8.0 or later"),
    ],
)
def test_no_dump_is_taken_for_a_newer_one(corpus: Path, run: str, newest: str) -> None:
    paths = [p for p in (corpus / "versions" / run).rglob("*.ir") if "actor_set" not in p.name]
    dialects = {irtool.load(path).dialect for path in paths}
    assert max(dialects, key=ORDER.index) == newest
    assert min(dialects, key=ORDER.index) in ORDER[ORDER.index("2.3.0 or later") :]
