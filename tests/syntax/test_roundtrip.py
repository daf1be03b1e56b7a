"""Nothing is lost: a dump prints back byte for byte, and from the model alone."""

from __future__ import annotations

import lzma
from collections.abc import Callable, Iterator
from dataclasses import dataclass, fields, is_dataclass, replace
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

import irtool
from irtool.ir import comments, dump, graph, items, statement, types, values
from irtool.ir.comments import Comments, Heading, Location, Remark, Scope, SideEffect
from irtool.ir.dump import Dump, LineEnds
from irtool.ir.graph import Graph, Node
from irtool.ir.items import (
    CommentBlock,
    Head,
    Marker,
    Opaque,
    Parameter,
    ParameterList,
    Property,
    Text,
)
from irtool.ir.statement import (
    ClosureSet,
    ClosureTarget,
    GraphTarget,
    PrimitiveTarget,
    StatementStyle,
    ValueTarget,
)
from irtool.ir.types import (
    Abstract,
    DictionaryType,
    DynamicSequenceType,
    FunctionType,
    NamedShape,
    OtherType,
    RefType,
    ScalarType,
    SequenceShape,
    SequenceType,
    Shape,
    Signature,
    TensorType,
    TextSignature,
)
from irtool.ir.values import (
    Attributes,
    Dictionary,
    ForeignNode,
    ForeignParameter,
    GraphReference,
    NodeReference,
    ParameterReference,
    PrimitiveLiteral,
    Scalar,
    Sequence,
    SliceLiteral,
    String,
    SymbolicKey,
    Tagged,
    TensorLiteral,
    Word,
)

# ---- every file prints back --------------------------------------------------------------------

CORPUS_FOLDERS = ["documentation", "versions", "verdicts", "planning", "precision", "large"]
FILES_NAMED = 5


def dumps_in(folder: Path) -> list[Path]:
    names = ("*.ir", "*.ir.xz", "*trace_code_graph_*")
    return sorted({path for name in names for path in folder.rglob(name) if path.is_file()})


def content(path: Path) -> bytes:
    data = path.read_bytes()
    return lzma.decompress(data) if path.suffix == ".xz" else data


def printed(read: Dump) -> bytes:
    return irtool.dumps(read).encode("utf-8", "surrogateescape")


def differing(paths: list[Path]) -> list[str]:
    """The first files that do not print back, with the first byte that differs."""
    found: list[str] = []
    for path in paths:
        expected, actual = content(path), printed(irtool.load(path))
        if actual != expected:
            pairs = enumerate(zip(actual, expected, strict=False))
            at = next((i for i, (a, b) in pairs if a != b), min(len(actual), len(expected)))
            found.append(f"{path} from byte {at}: {actual[at : at + 40]!r}")
        if len(found) == FILES_NAMED:
            break
    return found


def test_every_sample_prints_back(samples: Path) -> None:
    paths = dumps_in(samples)
    assert len(paths) >= 15
    assert differing(paths) == []


@pytest.mark.parametrize("folder", CORPUS_FOLDERS)
def test_every_dump_of_the_corpus_prints_back(corpus: Path, folder: str) -> None:
    paths = dumps_in(corpus / folder)
    assert paths
    assert differing(paths) == []


# ---- from the model alone: changing any field of it changes the text ---------------------------

# Not real, but with something of everything that the model can hold.
TEXT = """\
# IR entry: @main_1
# Total subgraphs: 3
# Total params: 1
# Params:
%para1_weight: <Ref[Tensor[Float32]], (2, 3), ref_key=weight, is_parameter> : [2, 3]  :  has_default  :  <Float32xDefaultFormat[const vector]{2, 3}>  :  IsWeight: true

subgraph attr:
training: 1
# Parameters: 1, (<Int64, NoShape>)
# In file net.py:40, 4~8/def inner(y):/
subgraph @inner_2 parent: [subgraph @main_1](%para2_y) {
  %0(foreign) = EnvironGet($(@main_1:lhs), $(@main_1:para1_weight), [Key][Parameter]weight, @inner_2)
      : (<null>, <Ref[Tensor[Float32]], (2, 3)>, <Func>, <Func[(Int64), Float32]>) -> (<Ref[Tensor(F32)], (7)>)

#------------------------> 3
  %1(call) = call @inner_2(%0)
  %2(closure) = %1[@@inner_2](%0)
  %3(union) = %1[@FuncUnion(@main_1, @inner_2)]()
  Return(%3)
}


subgraph @old.3(
        %para3_z : <Int8>
    ) {
  %20(split) = Neg(%para3_z)
 {strategy: ((8))}      : (<Int8>) -> (<Int8>)
  return(%para3_z)
}

subgraph @main_1() {
  %10(lhs) = PrimFunc_MatMul(%para1_weight, I64(5), "text", word, (F32(1), U8(2)), None) {instance name: matmul} primitive_attrs: {transpose_a: Bool(0), layout: {'axis': (dp)}} cnode_attrs: {checkpoint: Bool(1)} cnode_primal_attrs: {unique_id: "77"} {in_strategy: ((1, 2), (2, 1))}
      : (<Ref[Tensor[Float32]], (2, 3), value=..., ref_key=weight, is_parameter>, <Int64, NoShape>) -> (<Tuple[Tensor[Float32]*2,Int64], TupleShape((4, 5), NoShape)>)
      : (S:[2, 3], V:5) -> (S:[4])
      # Fullname with scope: (Default/net/MatMul-op0)
      # In file net.py:12~14, 8~20/        x = matmul(x, w)/<~~This line of code can be shared by multiple nodes, and may be duplicated./
      # Comment:
        # the user's own words
      # SideEffect: { memory io }
  %11(values) = Sig::Adam[beta: F32(2)](Tensor(shape=[2], dtype=Float32, value=[ 1.0 2.0], name=bias), Slice[0 : 9 : None], UMonad[U], {"k": I64(6)}, Lamb[decay: Bool(1)],  {instance name: plain} primitive_attrs: {keep: I64(8)})    #U.prototype = (x) -> y
      : (<Dynamic Tuple[element: Int32]>, <Dictionary[[a,b,],[Int16,String]]>, <COOTensor[Int32,]>, <Any(Tensor)[Float64]>, <Int8, DynamicSequenceShape>) -> (<null>)
  %12(value_target) = HyperMap_map{fn_leaf: x}(%11)
  Return(%12)
      : (<null>)
}

what is this
"""  # noqa: E501


@dataclass
class Change:
    """Replacing a field of the first ``kind`` that ``where`` accepts changes the text like this."""

    kind: type
    field: str
    value: Any
    before: str
    after: str
    where: Callable[[Any], bool] = lambda item: True


def named(name: str) -> Callable[[Any], bool]:
    return lambda item: getattr(item, "name", None) == name


def is_old_return(style: StatementStyle) -> bool:
    return style.return_word == "return"


MAIN_BODY = TEXT.partition("subgraph @main_1() {\n")[2].partition("}\n\n")[0]
PRELUDE = "subgraph attr:" + TEXT.partition("subgraph attr:")[2].partition("subgraph @inner_2")[0]
ONE = ScalarType("One")
CHANGES = [
    # values
    Change(Scalar, "type", "I32", "I64(5)", "I32(5)", lambda s: s.text == "5"),
    Change(Scalar, "text", "55", "I64(5)", "I64(55)", lambda s: s.text == "5"),
    Change(String, "text", "te\nxt", '"text"', '"te\nxt"'),
    Change(Word, "text", "words", ", word,", ", words,", lambda w: w.text == "word"),
    Change(Sequence, "items", (Word("x"),), "{strategy: ((8))}", "{strategy: (x)}"),
    Change(Sequence, "is_list", True, "{strategy: ((8))}", "{strategy: [(8)]}"),
    Change(Sequence, "is_bare", True, "{strategy: ((8))}", "{strategy: (8)}"),
    Change(Dictionary, "entries", (("a", Word("b")),), "{'axis': (dp)}", "{'a': b}"),
    Change(Dictionary, "quote", '"', "{'axis': (dp)}", '{"axis": (dp)}'),
    Change(TensorLiteral, "shape", (1, 2), "shape=[2]", "shape=[1, 2]"),
    Change(TensorLiteral, "dtype", "Int8", "dtype=Float32", "dtype=Int8"),
    Change(TensorLiteral, "data", "[...]", "value=[ 1.0 2.0]", "value=[...]"),
    Change(TensorLiteral, "name", None, ", name=bias", ""),
    Change(SliceLiteral, "start", Word("1"), "Slice[0 : 9", "Slice[1 : 9"),
    Change(SliceLiteral, "stop", Word("8"), "Slice[0 : 9", "Slice[0 : 8"),
    Change(SliceLiteral, "step", Word("2"), ": None]", ": 2]"),
    Change(Tagged, "tag", "IOMonad", "UMonad[U]", "IOMonad[U]"),
    Change(Tagged, "body", "[V]", "UMonad[U]", "UMonad[V]"),
    Change(SymbolicKey, "text", "[Key][Parameter]b", "[Key][Parameter]weight", "[Key][Parameter]b"),
    Change(PrimitiveLiteral, "name", "Lars", "Lamb[", "Lars["),
    Change(PrimitiveLiteral, "arguments", None, "Lamb[decay: Bool(1)]", "Lamb"),
    Change(
        PrimitiveLiteral, "instance_name", "p", "name: plain", "name: p", lambda p: p.instance_name
    ),
    Change(
        PrimitiveLiteral, "attributes", None, " primitive_attrs: {keep: I64(8)}", "",
        lambda p: p.attributes,
    ),
    Change(NodeReference, "number", 9, "call @inner_2(%0)", "call @inner_2(%9)"),
    Change(ParameterReference, "number", 7, "PrimFunc_MatMul(%para1", "PrimFunc_MatMul(%para7",
           lambda p: p.label == "weight"),
    Change(ParameterReference, "label", "w", "MatMul(%para1_weight", "MatMul(%para1_w",
           lambda p: p.label == "weight"),
    Change(ForeignNode, "graph", "g", "$(@main_1:lhs)", "$(@g:lhs)"),
    Change(ForeignNode, "name", "rhs", "$(@main_1:lhs)", "$(@main_1:rhs)"),
    Change(ForeignNode, "at", "", "$(@main_1:lhs)", "$(main_1:lhs)"),
    Change(ForeignParameter, "graph", "g", "$(@main_1:para1", "$(@g:para1"),
    Change(ForeignParameter, "number", 8, "$(@main_1:para1", "$(@main_1:para8"),
    Change(ForeignParameter, "label", "w", "1:para1_weight)", "1:para1_w)"),
    Change(ForeignParameter, "at", "", "$(@main_1:para1", "$(main_1:para1"),
    Change(GraphReference, "name", "other", "weight, @inner_2", "weight, @other"),
    Change(Attributes, "entries", (("k", Word("v")),), "{checkpoint: Bool(1)}", "{k: v}",
           lambda a: "checkpoint" in a),
    Change(Attributes, "label", "attrs", "cnode_attrs: {", "attrs: {", lambda a: "checkpoint" in a),
    Change(Attributes, "separator", "=", "checkpoint: Bool", "checkpoint=Bool",
           lambda a: "checkpoint" in a),
    Change(Attributes, "spaced", True, "{checkpoint: Bool(1)}", "{ checkpoint: Bool(1) }",
           lambda a: "checkpoint" in a),
    # types
    Change(ScalarType, "name", "Int4", "Func[(Int64)", "Func[(Int4)",
           lambda t: t.name == "Int64"),
    Change(TensorType, "element", ONE, "Any(Tensor)[Float64]", "Any(Tensor)[One]",
           lambda t: t.kind == "Any(Tensor)"),
    Change(TensorType, "kind", "Undetermined", "Any(Tensor)[", "Undetermined[",
           lambda t: t.kind == "Any(Tensor)"),
    Change(RefType, "target", ONE, "%para1_weight: <Ref[Tensor[Float32]]",
           "%para1_weight: <Ref[One]"),
    Change(RefType, "brackets", "[]", "Ref[Tensor(F32)]", "Ref[Tensor[F32]]",
           lambda t: t.brackets == "()"),
    Change(SequenceType, "kind", "List", "Tuple[Tensor[", "List[Tensor["),
    Change(SequenceType, "runs", ((ONE, 3),), "Tuple[Tensor[Float32]*2,Int64]", "Tuple[One*3]"),
    Change(DynamicSequenceType, "kind", "List", "Dynamic Tuple[", "Dynamic List["),
    Change(DynamicSequenceType, "element", ONE, "[element: Int32]", "[element: One]"),
    Change(FunctionType, "arguments", (ONE, ONE), "Func[(Int64)", "Func[(One, One)"),
    Change(FunctionType, "result", None, "Func[(Int64), Float32]", "Func[(Int64)]"),
    Change(DictionaryType, "keys", ("c",), "[[a,b,],", "[[c,],"),
    Change(DictionaryType, "runs", ((ONE, None),), "[Int16,String]", "[One]"),
    Change(OtherType, "name", "CSRTensor", "COOTensor[", "CSRTensor["),
    Change(OtherType, "body", "[]", "COOTensor[Int32,]", "COOTensor[]"),
    Change(Shape, "dimensions", (6, -1), "(4, 5)", "(6, -1)", lambda s: s.dimensions == (4, 5)),
    Change(Shape, "style", "(%s,)", "(4, 5)", "(4, 5,)", lambda s: s.dimensions == (4, 5)),
    Change(NamedShape, "name", "NoShape", ", DynamicSequenceShape", ", NoShape",
           lambda s: s.name != "NoShape"),
    Change(SequenceShape, "kind", "ListShape", "TupleShape(", "ListShape("),
    Change(SequenceShape, "items", (), "TupleShape((4, 5), NoShape)", "TupleShape()"),
    Change(SequenceShape, "brackets", "[]", "TupleShape((4, 5), NoShape)",
           "TupleShape[(4, 5), NoShape]"),
    Change(Abstract, "type", ONE, "(<Ref[Tensor[Float32]], (2, 3), value", "(<One, (2, 3), value",
           lambda a: a.is_constant),
    Change(Abstract, "shape", None, "(<Ref[Tensor[Float32]], (2, 3), value",
           "(<Ref[Tensor[Float32]], value", lambda a: a.is_constant),
    Change(Abstract, "notes", (), "value=..., ref_key=weight, is_parameter", "ref_key=weight",
           lambda a: a.is_constant),
    Change(Abstract, "ref_key", "w", "value=..., ref_key=weight", "value=..., ref_key=w",
           lambda a: a.is_constant),
    Change(Abstract, "ref_key_mark", ":", "value=..., ref_key=weight", "value=..., ref_key=:weight",
           lambda a: a.is_constant),
    Change(Signature, "inputs", (), "(<Dynamic Tuple[element: Int32]>, <Dictionary[[a,b,],"
           "[Int16,String]]>, <COOTensor[Int32,]>, <Any(Tensor)[Float64]>, "
           "<Int8, DynamicSequenceShape>) ->", "() ->", lambda s: len(s.inputs) == 5),
    Change(Signature, "outputs", None, "Shape>) -> (<null>)", "Shape>)",
           lambda s: len(s.inputs) == 5),
    Change(Signature, "lead", "\t:", "      : (<Dynamic", "\t:(<Dynamic",
           lambda s: len(s.inputs) == 5),
    Change(Signature, "arrow", "->", ") -> (<null>)", ")->(<null>)", lambda s: len(s.inputs) == 5),
    Change(Signature, "null", "`<null>`", ") -> (<null>)", ") -> (`<null>`)",
           lambda s: len(s.inputs) == 5),
    Change(TextSignature, "inputs", ("V:1",), "(S:[2, 3], V:5)", "(V:1)"),
    Change(TextSignature, "outputs", None, " -> (S:[4])", ""),
    Change(TextSignature, "lead", "\t:", "      : (S:", "\t:(S:"),
    Change(TextSignature, "arrow", "->", " -> (S:", "->(S:"),
    # nodes
    Change(Node, "number", 99, "%10(lhs)", "%99(lhs)", named("lhs")),
    Change(Node, "name", "x", "%10(lhs)", "%10(x)", named("lhs")),
    Change(Node, "target", GraphTarget("g"), "= PrimFunc_MatMul(", "= call @g(", named("lhs")),
    Change(Node, "operands", (Word("x"),), "HyperMap_map{fn_leaf: x}(%11)",
           "HyperMap_map{fn_leaf: x}(x)", named("value_target")),
    Change(Node, "instance_name", "m", "name: matmul}", "name: m}", named("lhs")),
    Change(Node, "primitive_attributes", None,
           " primitive_attrs: {transpose_a: Bool(0), layout: {'axis': (dp)}}", "", named("lhs")),
    Change(Node, "node_attributes", None, " cnode_attrs: {checkpoint: Bool(1)}", "", named("lhs")),
    Change(Node, "primal_attributes", None, ' cnode_primal_attrs: {unique_id: "77"}', "",
           named("lhs")),
    Change(Node, "strategy", None, " {in_strategy: ((1, 2), (2, 1))}", "", named("lhs")),
    Change(Node, "signature", None, "  Return(%12)\n      : (<null>)\n", "  Return(%12)\n",
           lambda n: n.is_return and n.signature),
    Change(Node, "text_signatures", (), "      : (S:[2, 3], V:5) -> (S:[4])\n", "", named("lhs")),
    Change(Node, "comments", Comments((Remark("# r"),)), "Return(%12)\n      : (<null>)\n",
           "Return(%12)\n      : (<null>)\n      # r\n", lambda n: n.is_return and n.signature),
    Change(Node, "prototype", None, "    #U.prototype = (x) -> y", "", named("values")),
    Change(Node, "style", StatementStyle(indent=""), "  %10(", "%10(", named("lhs")),
    Change(PrimitiveTarget, "name", "Mul", "PrimFunc_MatMul(", "Mul(",
           named("PrimFunc_MatMul")),
    Change(PrimitiveTarget, "arguments", None, "Sig::Adam[beta: F32(2)]", "Sig::Adam",
           named("Adam")),
    Change(PrimitiveTarget, "kind", "", "Sig::Adam[", "Adam[", named("Adam")),
    Change(GraphTarget, "graph", "g", "call @inner_2", "call @g"),
    Change(ClosureSet, "kind", "Union", "FuncUnion(", "Union(", lambda c: len(c.members) > 1),
    Change(ClosureSet, "members", (), "FuncUnion(@main_1, @inner_2)", "FuncUnion()",
           lambda c: len(c.members) > 1),
    Change(ClosureTarget, "callee", "p", "= %1[@@inner_2]", "= p[@@inner_2]"),
    Change(ClosureTarget, "closure", None, "%1[@@inner_2]", "%1"),
    Change(ClosureTarget, "at", "", "%1[@@inner_2]", "%1[@inner_2]"),
    Change(ValueTarget, "value", Word("x"), "HyperMap_map{fn_leaf: x}(", "x("),
    Change(StatementStyle, "indent", "", "  return(", "return(", is_old_return),
    Change(StatementStyle, "trailing", " ", "return(%para3_z)", "return(%para3_z) ", is_old_return),
    Change(Node, "style", StatementStyle(strategy_on_type_line=True),
           " {in_strategy: ((1, 2), (2, 1))}\n", "\n {in_strategy: ((1, 2), (2, 1))}",
           named("lhs")),
    Change(StatementStyle, "strategy_on_type_line", False,
           "\n {strategy: ((8))}", " {strategy: ((8))}\n", lambda s: s.strategy_on_type_line),
    Change(StatementStyle, "return_word", "Return", "  return(", "  Return(", is_old_return),
    # comments
    Change(Scope, "name", "D", "(Default/net/MatMul-op0)", "(D)"),
    Change(Scope, "label", "# Scope: ", "# Fullname with scope: ", "# Scope: "),
    Change(Scope, "parenthesised", False, "(Default/net/MatMul-op0)", "Default/net/MatMul-op0"),
    Change(Scope, "indent", "", "      # Fullname", "# Fullname"),
    Change(Location, "path", "n.py", "net.py:12", "n.py:12", lambda c: c.line == 12),
    Change(Location, "span", ":1", ":12~14, 8~20", ":1", lambda c: c.line == 12),
    Change(Location, "source", "/y/", "/        x = matmul(x, w)/", "/y/", lambda c: c.line == 12),
    Change(Location, "tail", "",
           "<~~This line of code can be shared by multiple nodes, and may be duplicated./", "",
           lambda c: c.line == 12),
    Change(Location, "lead", "# inlined:In file ", "# In file net.py:12",
           "# inlined:In file net.py:12", lambda c: c.line == 12),
    Change(Location, "indent", "", "      # In file net.py:12", "# In file net.py:12",
           lambda c: c.line == 12),
    Change(SideEffect, "effects", ("load",), "{ memory io }", "{ load }"),
    Change(SideEffect, "indent", "", "      # SideEffect", "# SideEffect"),
    Change(Heading, "text", "# Heading", "# Comment:", "# Heading"),
    Change(Heading, "indent", "", "      # Comment:", "# Comment:"),
    Change(Remark, "text", "# r", "# the user's own words", "# r"),
    Change(Remark, "indent", "", "        # the user's", "# the user's"),
    Change(Comments, "lines", (), "# In file net.py:40, 4~8/def inner(y):/\n", "", len),
    # around the nodes
    Change(Parameter, "number", 5, "%para1_weight: <", "%para5_weight: <"),
    Change(Parameter, "name", "w", "%para1_weight: <", "%para1_w: <"),
    Change(Parameter, "type", None,
           "<Ref[Tensor[Float32]], (2, 3), ref_key=weight, is_parameter> : [", "<null> : ["),
    Change(Parameter, "symbolic", None, " : [2, 3]  :", "  :"),
    Change(Parameter, "has_default", False, "  :  has_default", ""),
    Change(Parameter, "kernel", None,
           "  :  <Float32xDefaultFormat[const vector]{2, 3}>  :  IsWeight: true", ""),
    Change(Parameter, "spelling", (" = ", " : "), "%para1_weight: ", "%para1 = weight : "),
    Change(Property, "key", "k", "training: 1", "k: 1", lambda p: p.key == "training"),
    Change(Property, "separator", " : ", "training: 1", "training : 1",
           lambda p: p.key == "training"),
    Change(Property, "value", "0", "training: 1", "training: 0", lambda p: p.key == "training"),
    Change(Text, "text", "} ", "  Return(%3)\n}", "  Return(%3)\n} ", lambda t: t.text == "}"),
    Change(Opaque, "text", "nothing", "what is this", "nothing"),
    Change(Marker, "depth", "4", "> 3\n", "> 4\n"),
    Change(Marker, "lead", "#> ", "#------------------------> 3", "#> 3"),
    Change(CommentBlock, "comments", Comments((Remark("# r", ""),)),
           "# In file net.py:40, 4~8/def inner(y):/", "# r"),
    Change(ParameterList, "types", (), "(<Int64, NoShape>)\n", "()\n"),
    Change(ParameterList, "lead", "# Parameters: 2, ", "# Parameters: 1, ", "# Parameters: 2, "),
    Change(Head, "name", "g", "subgraph @inner_2 ", "subgraph @g "),
    Change(Head, "parent", None, " parent: [subgraph @main_1]", ""),
    Change(Head, "parameters", (), "(%para2_y) {", "() {"),
    Change(Head, "spelling", ("(", ",", ")\n{"), "(%para2_y) {", "(%para2_y)\n{"),
    Change(Graph, "head", None, "subgraph @inner_2 parent: [subgraph @main_1](%para2_y) {\n", ""),
    Change(Graph, "items", (),
           "subgraph @main_1() {\n" + MAIN_BODY, "subgraph @main_1() {\n", named("main_1")),
    Change(Graph, "prelude", (), PRELUDE, ""),
    Change(Graph, "close", None, "  Return(%12)\n      : (<null>)\n}\n",
           "  Return(%12)\n      : (<null>)\n", named("main_1")),
    Change(Dump, "items", (), TEXT, "\n"),
    Change(Dump, "line_ends", LineEnds("\r\n"), TEXT, TEXT.replace("\n", "\r\n")),
    Change(Dump, "bom", True, TEXT, "\ufeff" + TEXT),
    Change(LineEnds, "usual", "\r\n", TEXT, TEXT.replace("\n", "\r\n")),
    Change(LineEnds, "exceptions", frozenset({1}), "@main_1\n# Total", "@main_1\r\n# Total"),
    Change(LineEnds, "last", False, "what is this\n", "what is this"),
]  # fmt: skip

NOT_PRINTED = {
    # Where it stands and what it stands in: the place in the model already says so.
    (Node, "line"), (Node, "graph"), (Graph, "dump"), (Parameter, "line"), (Property, "line"),
    (Text, "line"), (Opaque, "line"), (Marker, "line"), (CommentBlock, "line"),
    (ParameterList, "line"), (Head, "line"),
    # What was found out about the text rather than what it says.
    (Dump, "path"), (Dump, "problems"), (Dump, "dialect"), (Dump, "size"),
    (Text, "kind"), (TextSignature, "kind"),
    # Numbers that stand in `span` as printed: its spelling changed with versions.
    (Location, "line"), (Location, "end_line"), (Location, "column"), (Location, "end_column"),
}  # fmt: skip

NOT_PART_OF_A_DUMP = {"AmbiguousReference", "DumpModel", "GraphParameter", "Unresolved"}
"""Answers to questions about a dump, and what ``Dump`` is made on."""

MODULES: list[ModuleType] = [comments, dump, graph, items, statement, types, values]


def model_classes() -> list[type]:
    """The classes that a dump is made of."""
    found = [
        item
        for module in MODULES
        for item in vars(module).values()
        if isinstance(item, type) and item.__module__ == module.__name__ and is_dataclass(item)
    ]
    return [*(c for c in found if c.__name__ not in NOT_PART_OF_A_DUMP), Attributes, Comments]


def field_names(kind: type) -> list[str]:
    if kind is Attributes:
        return ["entries", "label", "separator", "spaced"]
    if kind is Comments:
        return ["lines"]
    return [field.name for field in fields(kind)]


def changed(item: Any, change: Change) -> Any:
    """A copy of ``item`` in which the change was made once; ``item`` itself if it was not."""
    if isinstance(item, change.kind) and change.where(item):
        return with_field(item, change.field, change.value)
    if isinstance(item, tuple):
        for index, inner in enumerate(item):
            made = changed(inner, change)
            if made is not inner:
                return (*item[:index], made, *item[index + 1 :])
        return item
    if not is_dataclass(item) and not isinstance(item, Attributes | Comments):
        return item
    for name in field_names(type(item)):
        inner = getattr(item, name)
        if (type(item), name) in NOT_PRINTED:
            continue
        made = changed(inner, change)
        if made is not inner:
            return with_field(item, name, made)
    return item


def with_field(item: Any, name: str, value: Any) -> Any:
    if isinstance(item, Comments):
        return Comments(value)
    if isinstance(item, Attributes):
        return Attributes(**{n: getattr(item, n) for n in field_names(Attributes)} | {name: value})
    return replace(item, **{name: value})


def ids() -> Iterator[str]:
    for change in CHANGES:
        yield f"{change.kind.__name__}.{change.field}"


@pytest.fixture(scope="module")
def everything() -> Dump:
    read = irtool.loads(TEXT)
    # The last line is there to be one that cannot be read.
    assert [problem.line for problem in read.problems] == [TEXT.count("\n")]
    return read


def test_the_text_with_something_of_everything_prints_back(everything: Dump) -> None:
    assert irtool.dumps(everything) == TEXT


@pytest.mark.parametrize("change", CHANGES, ids=ids())
def test_changing_a_field_changes_the_text(everything: Dump, change: Change) -> None:
    assert change.before in TEXT, "the table names text that the dump lacks"

    made = changed(everything, change)

    assert made is not everything, "nothing in the dump to change"
    assert irtool.dumps(made) == TEXT.replace(change.before, change.after, 1)


def test_every_field_of_the_model_is_in_the_table() -> None:
    tried = {(change.kind, change.field) for change in CHANGES} | NOT_PRINTED
    model = {(kind, name) for kind in model_classes() for name in field_names(kind)}
    assert tried == model
