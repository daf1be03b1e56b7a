"""The nastiest records seen in real dumps, each written down small.

Every test reads one record, without a problem, and asks the model what it says.
"""

from __future__ import annotations

import pytest

import irtool
from irtool.ir.dump import Dump
from irtool.ir.graph import AmbiguousReference, GraphParameter, Node
from irtool.ir.statement import ClosureTarget, GraphTarget
from irtool.ir.types import (
    DictionaryType,
    NamedShape,
    OtherType,
    RefType,
    ScalarType,
    SequenceShape,
    Shape,
    TensorType,
)
from irtool.ir.values import (
    ForeignNode,
    ForeignParameter,
    GraphReference,
    NodeReference,
    ParameterReference,
    PrimitiveLiteral,
    String,
    SymbolicKey,
    Tagged,
    TensorLiteral,
    Word,
)


def read(text: str) -> Dump:
    """The dump of this text, which must be read whole and print back."""
    made = irtool.loads(text)
    assert made.problems == ()
    assert irtool.dumps(made) == text
    return made


def only(body: str, parameters: str = "") -> Node:
    """The one node of a graph with this body."""
    text = f"# IR entry: @g\n{parameters}\nsubgraph @g() {{\n{body}\n}}\n"
    (node,) = read(text).nodes()
    return node


# ---- 1: names are arbitrary text


PARAMETER = '%para3_w "q" {x}: <Ref[Tensor[Float32]], (4, 4), ref_key=w "q" {x}, is_parameter>'


def test_parameter_name_with_quotes_blanks_and_braces() -> None:
    made = read(f'# IR entry: @g\n{PARAMETER}  :  has_default\n\nsubgraph @g() {{\n'
                '  %0(a) = Load(%para3_w "q" {x}, %para17_u)\n'
                '      : (<Ref[Tensor[Float32]], (4, 4), ref_key=w "q" {x}>, <UMonad, NoShape>)'
                ' -> (<Tensor[Float32], (4, 4)>)\n}\n')  # fmt: skip
    (parameter,) = made.parameters
    (load,) = made.nodes()

    assert parameter.name == 'w "q" {x}'
    assert parameter.has_default
    assert parameter.type is not None
    assert parameter.type.ref_key == 'w "q" {x}'
    assert parameter.type.is_parameter
    assert load.operands == (ParameterReference(3, 'w "q" {x}'), ParameterReference(17, "u"))
    assert isinstance(load.inputs[0], GraphParameter)
    assert load.inputs[0].declaration is parameter
    assert load.input_types[0] is not None
    assert load.input_types[0].ref_key == 'w "q" {x}'


def test_parameter_names_of_which_one_begins_with_another() -> None:
    made = read("%para1_w (a: <Int8>\n%para2_w (a, b: <Int8>\n\nsubgraph @g() {\n"
                "  %0(x) = Add(%para2_w (a, b, %para1_w (a)\n}\n")  # fmt: skip
    (node,) = made.nodes()
    assert node.operands == (ParameterReference(2, "w (a, b"), ParameterReference(1, "w (a"))


# ---- 2, 3: strings are printed raw


def test_string_with_a_newline_a_quote_and_a_brace() -> None:
    node = only('  %2(CNode_58) = MakeTuple("x = {a}, %d\n tab\t", %para31_input_x1, '
                '"quote" and \'single\'")')  # fmt: skip
    assert node.operands == (
        String("x = {a}, %d\n tab\t"),
        ParameterReference(31, "input_x1"),
        String("quote\" and 'single'"),
    )


def test_string_with_the_comment_character_at_the_start_of_a_line() -> None:
    node = only(
        '  %0(s) = MakeTuple("in"put, {x}: (y)\n#z {} % ( ) [ ] , : -> \\ end", "a\nb", None)'
    )
    assert node.operands == (
        String('in"put, {x}: (y)\n#z {} % ( ) [ ] , : -> \\ end'),
        String("a\nb"),
        Word("None"),
    )
    assert node.operands[2].value is None  # type: ignore[union-attr]


# ---- 4, 5: tensors take several lines


def test_tensor_of_several_lines_with_tails_on_the_last() -> None:
    node = only("  %0(CNode_87) = PrimFunc_Add(Tensor(shape=[2, 3], dtype=Float32, value=\n"
                "[[ 0.00000000e+00  1.00000000e+00  2.00000000e+00]\n"
                " [ 3.00000000e+00  4.00000000e+00  5.00000000e+00]]), %para1_x)"
                " cnode_attrs: {checkpoint: Bool(1)}")  # fmt: skip
    tensor, parameter = node.operands

    assert node.op == "Add"
    assert isinstance(tensor, TensorLiteral)
    assert tensor.shape == (2, 3)
    assert tensor.dtype == "Float32"
    assert tensor.values == (0, 1, 2, 3, 4, 5)
    assert parameter == ParameterReference(1, "x")
    assert node.attribute("checkpoint") is True


def test_wrapped_tensor_whose_continuation_is_indented_like_a_statement() -> None:
    node = only("  %0(t) = Neg(Tensor(shape=[14], dtype=Float32, value=[ 0.0 1.0 2.0 3.0 4.0 5.0"
                " 6.0 7.0 8.0 9.0 1.0e+01 1.1e+01\n  1.2e+01 1.3e+01]))")  # fmt: skip
    (tensor,) = node.operands
    assert isinstance(tensor, TensorLiteral)
    assert tensor.values == tuple(range(14))


def test_tensor_without_elements_and_one_too_large_to_be_printed() -> None:
    node = only("  %0(t) = MakeTuple(Tensor(shape=[0, 3], dtype=Float32, value=\n"
                "), Tensor(shape=[100], dtype=Int32, value=[...]))")  # fmt: skip
    empty, large = node.operands
    assert isinstance(empty, TensorLiteral)
    assert isinstance(large, TensorLiteral)
    assert (empty.shape, empty.values) == ((0, 3), ())
    assert (large.shape, large.values) == ((100,), None)


# ---- 6, 7, 8: what is called


def test_call_of_a_closure_without_operands() -> None:
    node = only("  %9(n) = %8[@@11_↱__main___Lits_construct_43]()\n"
                "      : () -> (<Tensor[Float32], (2, 3)>)\n"
                "      # Fullname with scope: (2)")  # fmt: skip
    assert node.op == "call"
    assert isinstance(node.target, ClosureTarget)
    assert node.target.callee == NodeReference(8)
    assert node.callees == ("11_↱__main___Lits_construct_43",)
    assert node.operands == ()
    assert node.input_types == ()
    assert node.output_type is not None
    assert node.output_type.short() == "Float32[2,3]"
    assert node.full_name == "2"


def test_call_of_one_of_several_closures() -> None:
    node = only("  %3(CNode_118) = %2[@FuncUnion(@4_↻__main___CF_construct_116,"
                " @8_↓__main___CF_construct_117)]()")  # fmt: skip
    assert node.callees == ("4_↻__main___CF_construct_116", "8_↓__main___CF_construct_117")


def test_call_of_a_partial_closure() -> None:
    assert only("  %3(c) = %2[@Partial(@inner_1)](%1)").callees == ("inner_1",)


def test_call_of_a_parameter_by_its_bare_label() -> None:
    made = read("subgraph @g(%para9_Parameter_1976, %para135_u) {\n"
                "  %1(CNode_1975) = Parameter_1976[@@882_grad_MoEFFNet_construct_1977](%0, "
                "%para135_u)\n}\n")  # fmt: skip
    (node,) = made.nodes()
    assert node.op == "call"
    assert isinstance(node.target, ClosureTarget)
    assert node.target.callee == "Parameter_1976"
    assert node.callees == ("882_grad_MoEFFNet_construct_1977",)
    assert node.operands == (NodeReference(0), ParameterReference(135, "u"))


def test_call_of_a_node_of_another_graph() -> None:
    node = only("  %0(CNode_1982) = $(@881_grad_construct_1983:CNode_1981)(%para141_grad, "
                "%para142_u)")  # fmt: skip
    assert node.op == "call"
    assert isinstance(node.target, ClosureTarget)
    assert node.target.callee == ForeignNode("881_grad_construct_1983", "CNode_1981")


def test_call_of_a_subgraph() -> None:
    made = read("subgraph @inner_2(%para2_x) {\n  Return(%para2_x)\n}\n\n"
                "subgraph @g() {\n  %0(a) = call @inner_2(%para1_x)\n}\n")  # fmt: skip
    inner, outer = made.graphs
    call = outer.nodes[0]
    assert call.target == GraphTarget("inner_2")
    assert outer.called(call) == (inner,)


# ---- 9 to 12: operands


def test_symbolic_key_begins_with_a_bracket_but_is_no_list() -> None:
    node = only("  %12(CNode_516) = EnvironGet(%8, [Key][Parameter]w1, %11)")
    assert node.operands == (
        NodeReference(8),
        SymbolicKey("[Key][Parameter]w1"),
        NodeReference(11),
    )


def test_foreign_name_that_two_nodes_bear_is_ambiguous() -> None:
    made = read("subgraph @outer() {\n  %0(gradients) = Neg(%para1_x)\n"
                "  %1(CNode_442) = Abs(%0)\n  %2(gradients) = Exp(%1)\n  Return(%2)\n}\n\n"
                "subgraph @inner parent: [subgraph @outer]() {\n"
                "  %0(c) = call @200_hyper_map_455($(@outer:CNode_442), $(@outer:gradients))\n"
                "}\n")  # fmt: skip
    outer, inner = made.graphs
    exact, ambiguous = inner.nodes[0].inputs

    assert exact is outer.node(1)
    assert isinstance(ambiguous, AmbiguousReference)
    assert ambiguous.candidates == (outer.node(0), outer.node(2))
    assert ambiguous.likely is outer.node(2)


def test_foreign_parameter_is_the_enclosing_graphs() -> None:
    made = read("subgraph @outer(%para7_momentum) {\n  Return(%para7_momentum)\n}\n\n"
                "subgraph @inner parent: [subgraph @outer]() {\n"
                "  %0(c) = Neg($(@outer:para7_momentum))\n}\n")  # fmt: skip
    outer, inner = made.graphs
    (node,) = inner.nodes
    assert node.operands == (ForeignParameter("outer", 7, "momentum"),)
    assert node.inputs == outer.parameters


def test_primitive_as_operand_with_quoted_list_elements() -> None:
    node = only('  %0(p) = Partial(@859__anonymous__1894, ApplyMomentum[output_names: '
                '["output"], side_effect_mem: Bool(1), gradient_scale: F32(1)], '
                "$(@8_g:para7_momentum))")  # fmt: skip
    graph, primitive, momentum = node.operands
    assert graph == GraphReference("859__anonymous__1894")
    assert isinstance(primitive, PrimitiveLiteral)
    assert primitive.name == "ApplyMomentum"
    assert dict(primitive.arguments or {}) == {
        "output_names": ["output"],
        "side_effect_mem": True,
        "gradient_scale": 1,
    }
    assert momentum == ForeignParameter("8_g", 7, "momentum")


def test_python_objects_as_operands() -> None:
    node = only("  %7(i) = PyInterpret(Script['getattr(__py_exec_index1_getattr__, "
                "__py_exec_index2_getattr__, )'], InterpretedObject[PythonObject(type: "
                "<class 'dict'>, value: {})], %6, %8)")  # fmt: skip
    script, made, *rest = node.operands
    assert isinstance(script, Tagged)
    assert isinstance(made, Tagged)
    assert script.tag == "Script"
    assert script.text == "'getattr(__py_exec_index1_getattr__, __py_exec_index2_getattr__, )'"
    assert made.tag == "InterpretedObject"
    assert made.text == "PythonObject(type: <class 'dict'>, value: {})"
    assert rest == [NodeReference(6), NodeReference(8)]


# ---- 13, 14, 15: attributes and strategies


def test_attributes_mix_typed_and_bare_values() -> None:
    node = only("  %4(s) = Send(%3) {instance name: Send} primitive_attrs: {shape: [16, 64], "
                'dest_rank: I64(1), group: "2-17790617963278075814", no_eliminate: Bool(1), '
                "dtype: F32} cnode_primal_attrs: {segment: I64(0), micro: I64(2)}")  # fmt: skip
    assert node.instance_name == "Send"
    assert dict(node.primitive_attributes or {}) == {
        "shape": [16, 64],
        "dest_rank": 1,
        "group": "2-17790617963278075814",
        "no_eliminate": True,
        "dtype": "F32",
    }
    assert dict(node.primal_attributes or {}) == {"segment": 0, "micro": 2}
    assert node.micro == 2


def test_layouts_are_dictionaries_of_nested_tuples() -> None:
    node = only("  %0(a) = ReLU(%1) primitive_attrs: {in_layout: ({'device_matrix': (2, 2, 2), "
                "'tensor_map': ((2, 1), -1), 'interleaved_parallel': false, 'alias_name': "
                "(dp, sp, mp)}, {'device_matrix': (2), 'tensor_map': (0)})}")  # fmt: skip
    assert node.in_layout == (
        {
            "device_matrix": (2, 2, 2),
            "tensor_map": ((2, 1), -1),
            "interleaved_parallel": False,
            "alias_name": ("dp", "sp", "mp"),
        },
        {"device_matrix": (2,), "tensor_map": (0,)},
    )


def test_layout_without_outer_tuple() -> None:
    node = only("  %0(a) = ReLU(%1) primitive_attrs: {layout: {'dev_matrix': (2, 2, 2, 1), "
                "'input_tensor_map': ((3, 1, 2, 0), ())}}")  # fmt: skip
    assert node.attribute("layout") == {
        "dev_matrix": (2, 2, 2, 1),
        "input_tensor_map": ((3, 1, 2, 0), ()),
    }


def test_asked_for_strategy_and_strategy_in_effect_are_two_things() -> None:
    node = only("  %0(a) = LayerNorm(%1, %2) primitive_attrs: {in_strategy: ((4, 1), (1))} "
                "cnode_attrs: {op_info_created: Bool(1)} {in_strategy: ((2, 2), (2)), "
                "out_strategy: ((2, 2)), in_layout: ({'device_matrix': (4, 1, 2), "
                "'tensor_map': (2, 1)}), out_layout: ({'device_matrix': (4), 'tensor_map': (0)})}"
    )  # fmt: skip
    assert node.user_strategy == ((4, 1), (1,))
    assert node.in_strategy == ((2, 2), (2,))
    assert node.out_strategy == ((2, 2),)
    assert node.in_layout == ({"device_matrix": (4, 1, 2), "tensor_map": (2, 1)},)
    assert node.out_layout == ({"device_matrix": (4,), "tensor_map": (0,)},)


def test_strategy_of_a_scalar_is_the_empty_tuple() -> None:
    node = only("  %0(a) = Mul(%1, %2) {in_strategy: ((), (1, 16))}")
    assert node.in_strategy == ((), (1, 16))


# ---- 16: dynamic shapes


SYMBOLIC = (
    "(S:[2, 17, s73<[2,inf]|2N>], V:0, <null>)"
    " -> (S:[[1, 17, s73<[2,inf]|2N>], [1, 17, s77<[4,inf]|2N|=s73>]])"
)
ENGINE = """\
symbol engine details:
SymbolEngine_g {
  s77 = ScalarMul(s73, 2)
    s78 = ScalarAdd(s77, 1)
}
"""


def test_second_type_line_is_symbolic_and_the_engines_block_ends_at_its_own_brace() -> None:
    made = read("subgraph @g() {\n  %0(a) = Split(%1, I64(0), I64(2))\n"
                "      : (<Tensor[Float32], (2, 17, -1)>, <Int64, NoShape>, <null>) -> "
                "(<Tuple[Tensor[Float32]*2], TupleShape((1, 17, -1), (1, 17, -1))>)\n"
                f"      : {SYMBOLIC}\n"
                "      # Scope: (Default)\n  Return(%0)\n}\n" + ENGINE
                + "\nsubgraph @h() {\n  Return(None)\n}\n")  # fmt: skip
    split = made.graphs[0].nodes[0]

    assert [graph.name for graph in made.graphs] == ["g", "h"]
    assert [len(graph.nodes) for graph in made.graphs] == [2, 1]
    assert split.input_types[0] is not None
    assert split.input_types[0].dimensions == (2, 17, -1)
    (symbols,) = split.text_signatures
    assert symbols.kind == "symbolic"
    assert symbols.inputs == ("S:[2, 17, s73<[2,inf]|2N>]", "V:0", "<null>")
    assert symbols.outputs is not None
    assert len(symbols.outputs) == 1
    assert split.scope == "Default"


def test_kernel_lines_follow_the_type_line() -> None:
    node = only("  %0(a) = Add(%1)\n      : (<Tensor[Float32], (4, 8)>) -> (<null>)\n"
                "      : (<Float32xDefaultFormat[const vector]{4, 8}>) -> (<Float32xNCHW[const "
                "vector]{4}>)\n      : (Tensor, Tuple) -> (TupleUnfold)")  # fmt: skip
    assert [line.kind for line in node.text_signatures] == ["kernel", "objects"]
    assert node.text_signatures[1].inputs == ("Tensor", "Tuple")


# ---- 17, 18: types


@pytest.mark.parametrize(
    ("printed", "expected", "shape"),
    [
        (
            "<Dictionary[[k1,k 2,l,],[Int64,Tuple[Float32,None,String],List[Int64*2]]], NoShape>",
            DictionaryType,
            NamedShape("NoShape"),
        ),
        ("<Any(Tensor)[Float64], (-2)>", TensorType, Shape((-2,))),
        ("<unknown, NoShape>", ScalarType, NamedShape("NoShape")),
        ("<Object:EnvType, NoShape>", ScalarType, NamedShape("NoShape")),
        (
            "<COOTensor[Int32,Float32,Int64,Int64,], TupleShape((2, 2), (2), NoShape, NoShape)>",
            OtherType,
            SequenceShape(
                "TupleShape",
                (
                    Shape((2, 2), "(%s)"),
                    Shape((2,), "(%s)"),
                    NamedShape("NoShape"),
                    NamedShape("NoShape"),
                ),
            ),
        ),
        ("<Ref[Tensor[Float32]], (2), ref_key=0x55800ccc7a402, is_inplace>", RefType, Shape((2,))),
        ("<Func, NoShape>", ScalarType, NamedShape("NoShape")),
        ("<Tensor[BFloat16], ()>", TensorType, Shape(())),
    ],
)
def test_types(printed: str, expected: type, shape: object) -> None:
    node = only(f"  %0(a) = Neg(%1)\n      : ({printed}) -> (<null>)")
    (made,) = node.input_types
    assert made is not None
    assert isinstance(made.type, expected)
    assert made.shape == shape
    assert node.output_type is None


def test_dictionary_keys_may_have_blanks() -> None:
    node = only("  %0(a) = Neg(%1)\n      : (<Dictionary[[k1,k 2,l,],[Int64,Tuple[Float32,None,"
                "String],List[Int64*2]]], NoShape>) -> (<null>)")  # fmt: skip
    (made,) = node.input_types
    assert made is not None
    assert isinstance(made.type, DictionaryType)
    assert made.type.keys == ("k1", "k 2", "l")
    assert len(made.type.values) == 3


@pytest.mark.parametrize(
    "flags",
    [
        "elements_use_flags={[const vector]{[0]:{1}, [1]:{1}, [2]:{0}}}",
        "elements_use_flags={[const vector]{1}}",
        "elements_use_flags={}",
    ],
)
def test_flags_of_sequences(flags: str) -> None:
    node = only("  %0(a) = Neg(%1)\n"
                f"      : (<Tuple[Int64*2], TupleShape(NoShape, NoShape), {flags}>)"
                " -> (<Tuple[], TupleShape()>)")  # fmt: skip
    (made,) = node.input_types
    assert made is not None
    assert made.notes == (flags,)
    assert made.short() == "Tuple[Int64,Int64]"


def test_view_temporaries_have_a_pointer_for_a_key() -> None:
    node = only("  %0(a) = Neg(%1)\n      : (<Ref[Tensor[Float32]], (2), ref_key=0x55800ccc7a402, "
                "is_inplace>) -> (<Tensor[Float32], (2)>)")  # fmt: skip
    (made,) = node.input_types
    assert made is not None
    assert made.ref_key == "0x55800ccc7a402"
    assert made.notes == ("is_inplace",)


# ---- 19, 20: text that could confuse a reader


def test_source_text_inside_a_comment() -> None:
    source = """/        print("x = {a}, %d\\n tab\\t", x, "quote\\" and 'single'")/"""
    node = only(f"  %0(a) = Print(%1)\n      # In file /net/gnets.py:32, 8~13{source}")
    assert node.location is not None
    assert (node.location.path, node.location.line) == ("/net/gnets.py", 32)
    assert (node.location.column, node.location.end_column) == (8, 13)
    assert node.location.source == source


def test_statement_of_hundreds_of_kilobytes() -> None:
    ranks = "-".join(map(str, range(32_768)))
    node = only(f'  %0(m) = _MirrorMicroStepOperator(%1, %2) primitive_attrs: {{group_ranks: '
                f'"{ranks}", dev_num: I64(32768)}}')  # fmt: skip
    assert node.attribute("group_ranks") == ranks
    assert node.attribute("dev_num") == 32_768


# ---- 21: numbers, not names, identify parameters


def test_a_parameters_name_may_differ_between_definition_and_use() -> None:
    made = read("# IR entry: @g\n%para1_inputs: <null>\n\nsubgraph @g() {\n"
                "  %0(a) = Neg(%para1_Parameter_3)\n}\n")  # fmt: skip
    (node,) = made.nodes()
    (source,) = node.inputs
    assert isinstance(source, GraphParameter)
    assert source.name == "inputs"
    assert source.declaration is made.parameters[0]


# ---- 22: dumps of failed compilations


ANALYZE_FAIL = """\
# ===============================================================================================
# The following shows the IR when the function graphs evaluation fails to help locate the problem.
ValueError: For 'MatMul', the input dimensions must be equal, but got 'x1_col': 5 and 'x2_row': 3.

----------------------------------------------------
- Ascend Error Message:
----------------------------------------------------
# ===============================================================================================

# IR entry: @__main___A_construct_30
# Total subgraphs: 0

# Total params: 1
# Params:
%para1_x: <Tensor[Float32], (2, 5)>

subgraph attr:
subgraph instance: __main___A_construct_30 : 0x5571
# In file net.py:9, 4~20/    def construct(self, x):/
subgraph @__main___A_construct_30() {
  %0(CNode_31) = resolve(NameSpace[ClassMember: 'Namespace:__main__..<A::94>'], matmul)
      #scope: (Default)

#------------------------> 0
  %1(CNode_32) = call @bias_add_14(%para1_x, %0)
      : (<Tensor[Float32], (2, 5)>, <Func, NoShape>) -> (<null>)
      #scope: (Default)
  Return(%1)
      : (<null>)
}


# ===============================================================================================
# The total of function graphs in evaluation stack: 2/6 (Ignored 4 internal frames).
# ===============================================================================================


# ===============================================================================================
# The rest function graphs are the following:
# ===============================================================================================
subgraph attr:
subgraph instance: bias_add_14 : 0x5572
subgraph @bias_add_14(%para0_input_x, %para0_bias) {

#------------------------> 1
  %0(CNode_15) = %1(%para0_bias, %para0_input_x)
      : (<null>, <null>) -> (<null>)
}

subgraph attr:
subgraph instance: __main___A_construct_30 : 0x5573
subgraph @__main___A_construct_30(%para0_x) {
  Return(%para0_x)
}
"""


def test_failed_compilation_prints_a_message_first() -> None:
    made = read(ANALYZE_FAIL)
    assert made.entry is made.graphs[0]
    assert [parameter.name for parameter in made.parameters] == ["x"]


def test_failed_compilation_may_print_a_graph_twice() -> None:
    made = read(ANALYZE_FAIL)
    names = [graph.name for graph in made.graphs]
    assert names == ["__main___A_construct_30", "bias_add_14", "__main___A_construct_30"]


def test_failed_compilation_numbers_all_parameters_zero() -> None:
    made = read(ANALYZE_FAIL)
    inner = made.graphs[1]
    call = inner.nodes[0]
    assert [parameter.label for parameter in inner.parameters] == ["input_x", "bias"]
    assert call.inputs == (inner.parameters[1], inner.parameters[0])


def test_failed_compilation_marks_the_calls_on_the_stack() -> None:
    made = read(ANALYZE_FAIL)
    marks = [
        (graph.name, item.depth)
        for graph in made.graphs
        for item in graph.items
        if hasattr(item, "depth")
    ]
    assert marks == [("__main___A_construct_30", "0"), ("bias_add_14", "1")]


def test_nodes_without_operands_may_have_no_type_line() -> None:
    node = read(ANALYZE_FAIL).graphs[0].nodes[0]
    assert node.op == "resolve"
    assert node.output_type is None
    assert node.scope == "Default"


# ---- 23: strategies in front of the type line


def test_old_strategy_stands_in_front_of_the_type_line() -> None:
    node = only("  %0([CNode]5) = MatMul(%1, %2)\n"
                " { strategy: ((4, 1), (1, 2)) }      : (<Tensor[Float32]x[const vector][64, 32]>, "
                "<Tensor[Float32]x[const vector][32, 64]>) -> "
                "(<Tensor[Float32]x[const vector][64, 64]>)")  # fmt: skip
    assert node.in_strategy == ((4, 1), (1, 2))
    assert [t.short() for t in node.input_types if t] == ["Float32[64,32]", "Float32[32,64]"]
    assert node.output_type is not None
    assert node.output_type.dimensions == (64, 64)
