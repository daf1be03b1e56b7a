"""Turns what the grammar recognised into parts of the model (see :mod:`irtool.syntax.part`).

One method a rule of ``grammars/dump.lark``; each returns the :class:`Part` for its text.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias

from lark import Token, Transformer, v_args

from irtool.ir.comments import CommentLine, Heading, Location, Remark, Scope, SideEffect
from irtool.ir.graph import Head, Parameter, ParameterList, Property
from irtool.ir.node import (
    ClosureSet,
    ClosureTarget,
    GraphTarget,
    PrimitiveTarget,
    Target,
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
from irtool.syntax.part import Memo, Part, compose, gather, leaf, remember


@dataclass(frozen=True, slots=True)
class StatementParts:
    """The parts of one statement, and how its blocks are to be understood."""

    number: Part[int] | None
    name: Part[str] | None
    target: Part[Target]
    operands: Part[tuple[Any, ...]]
    tails: _Tails
    return_word: Part[str] | None


@dataclass(frozen=True, slots=True)
class SignatureParts:
    """A type line; ``strategy`` is the block that versions up to 1.6 print before it."""

    line: Part[Signature | TextSignature]
    strategy: Part[Attributes] | None


@dataclass(frozen=True, slots=True)
class _Block:
    label: str
    attributes: Part[Attributes]


@dataclass(frozen=True, slots=True)
class _Tails:
    instance_name: Part[str] | None
    blocks: tuple[_Block, ...]
    prototype: Part[str] | None


@dataclass(frozen=True, slots=True)
class _TypeList:
    items: Part[tuple[Any, ...]]
    kind: str | None
    is_path: bool


@dataclass(frozen=True, slots=True)
class _HeadParameters:
    items: Part[tuple[Any, ...]]
    spelling: tuple[str, str, str]


_Entries: TypeAlias = tuple[tuple[str, Part[Any]], ...]
_NOTHING: Part[Any] = Part(None)
_TEXT_KINDS = {"KERNEL": "kernel", "SYMBOLIC": "symbolic", "OBJECT": "objects"}


# ---- decoding of single tokens -------------------------------------------------------------


def _integer(text: str) -> int:
    """An integer that prints back as it stands; ValueError for leading zeros."""
    value = int(text)
    if str(value) != text:
        raise ValueError(f"unusual number {text!r}")
    return value


def _scalar(text: str) -> Scalar:
    kind, _, rest = text.partition("(")
    return Scalar(kind, rest[:-1])


def _parameter(text: str) -> ParameterReference:
    number, underscore, label = text[5:].partition("_")
    return ParameterReference(_integer(number) if number else None, label if underscore else None)


_FOREIGN = re.compile(r"\$\((@?)([^\s:]+?):(?:para([0-9]*)_)?(.*)\)\Z", re.S)


def _foreign(text: str) -> ForeignNode | ForeignParameter:
    match = _FOREIGN.match(text)
    assert match is not None, text
    at, graph, number, name = match.groups()
    if number is None:
        return ForeignNode(graph, name, at)
    return ForeignParameter(graph, _integer(number) if number else None, name, at)


_TENSOR = re.compile(
    r"Tensor\(shape=\[(.*?)\], dtype=([^,]*), value=(.*?)(?:, name=([^()]*))?\)\Z", re.S
)


def _tensor(text: str) -> TensorLiteral | Tagged:
    match = _TENSOR.match(text)
    if match is None:
        return Tagged("Tensor", text[6:])
    shape, dtype, data, name = match.groups()
    sizes = tuple(_integer(size) for size in shape.split(", ")) if shape else ()
    return TensorLiteral(sizes, dtype, data, name)


def _slice(text: str) -> SliceLiteral:
    start, stop, step = text[6:-1].split(" : ")
    return SliceLiteral(Word(start), Word(stop), Word(step))


def _tagged(text: str) -> Tagged:
    at = min(i for i in map(text.find, "([{") if i >= 0)
    return Tagged(text[:at], text[at:])


def _shape(text: str) -> Shape:
    if text.startswith("x[const"):
        inside = text[len("x[const vector][") : -1]
        style = "x[const vector][%s]"
    else:
        at = text.index("(")
        inside = text[at + 1 : -1]
        style = text[:at] + "(%s)"
    return Shape(tuple(_integer(size) for size in inside.split(", ")) if inside else (), style)


def _tensor_type(text: str) -> TensorType:
    kind, bracket, element = text.partition("[")
    return TensorType(ScalarType(element[:-1]) if bracket else None, kind)


def _ref_type(text: str) -> RefType:
    target = text[4:-1]
    if target.endswith("]"):
        return RefType(_tensor_type(target))
    return RefType(TensorType(ScalarType(target[7:-1])), "()")


_SPAN = re.compile(r"[:(]([0-9]+)(?:~([0-9]+))?(?:, ([0-9]+)~([0-9]+))?")


def _text(text: str) -> str:
    return text


MEMOS: dict[str, Memo[Any]] = {
    "node_reference": Memo(lambda text: NodeReference(_integer(text[1:]))),
    "parameter_reference": Memo(_parameter),
    "foreign_reference": Memo(_foreign),
    "graph_reference": Memo(lambda text: GraphReference(text[1:])),
    "scalar": Memo(_scalar),
    "string": Memo(lambda text: String(text[1:-1])),
    "word": Memo(Word),
    "tensor": Memo(_tensor),
    "slice": Memo(_slice),
    "symbolic_key": Memo(lambda text: SymbolicKey(text)),
    "tagged": Memo(_tagged),
    "shape": Memo(_shape),
    "named_shape": Memo(lambda text: NamedShape(text.removeprefix(", "))),
    "tensor_type": Memo(_tensor_type),
    "ref_type": Memo(_ref_type),
    "scalar_type": Memo(ScalarType),
    "graph_target": Memo(lambda text: GraphTarget(text[5:].removeprefix("@"))),
    "primitive_target": Memo(PrimitiveTarget),
    "text": Memo(_text),
    "integer": Memo(_integer),
}


@v_args(inline=True)
class Assembler(Transformer[Token, Any]):
    """Callbacks of the grammar.  ``masked`` says whether digits are indices of holes."""

    masked = True
    restore: Callable[[str], str] | None = None

    def _leaf(self, kind: str, token: str) -> Part[Any]:
        text = str(token)
        if self.restore is not None:
            text = self.restore(text)
        return leaf(text, MEMOS[kind], self.masked)

    def _text(self, token: str) -> Part[str]:
        return self._leaf("text", token)

    # ---- values

    def node_reference(self, token: Token) -> Part[Any]:
        return self._leaf("node_reference", token)

    def parameter_reference(self, token: Token) -> Part[Any]:
        return self._leaf("parameter_reference", token)

    def foreign_reference(self, token: Token) -> Part[Any]:
        return self._leaf("foreign_reference", token)

    def graph_reference(self, token: Token) -> Part[Any]:
        return self._leaf("graph_reference", token)

    def scalar(self, token: Token) -> Part[Any]:
        return self._leaf("scalar", token)

    def string(self, token: Token) -> Part[Any]:
        return self._leaf("string", token)

    def word(self, token: Token) -> Part[Any]:
        return self._leaf("word", token)

    def tensor(self, token: Token) -> Part[Any]:
        return self._leaf("tensor", token)

    def slice(self, token: Token) -> Part[Any]:
        return self._leaf("slice", token)

    def symbolic_key(self, token: Token) -> Part[Any]:
        return self._leaf("symbolic_key", token)

    def tagged(self, tag: Token, *bodies: str) -> Part[Any]:
        return self._leaf("tagged", tag + "".join(bodies))

    def square_body(self, *pieces: str) -> str:
        return f"[{''.join(pieces)}]"

    def round_body(self, *pieces: str) -> str:
        return f"({''.join(pieces)})"

    def curly_body(self, *pieces: str) -> str:
        return f"{{{''.join(pieces)}}}"

    def tuple(self, *items: Part[Any]) -> Part[Any]:
        return compose(_tuple_of, items)

    def list(self, *items: Part[Any]) -> Part[Any]:
        return compose(_list_of, items)

    def entry(self, key: Token, value: Part[Any]) -> tuple[str, Part[Any]]:
        return str(key), value

    def dictionary(self, *entries: tuple[str, Part[Any]]) -> Part[Any]:
        quote = entries[0][0][0] if entries and entries[0][0][0] in "'\"" else ""
        inset = len(quote)
        pairs = [
            compose(_pair, [self._text(key[inset : -2 - inset]), value]) for key, value in entries
        ]
        return compose(lambda *items: Dictionary(items, quote), pairs)

    def primitive_value(self, name: Token, entries: _Entries) -> Part[Any]:
        return compose(PrimitiveLiteral, [self._text(name), self._attributes(entries)])

    def plain_primitive(self, *blocks: Any) -> Part[Any]:
        instance, attributes = _NOTHING, _NOTHING
        for block in blocks:
            if isinstance(block, Token):
                instance = self._instance_name(block)
            else:
                attributes = block.attributes
        return compose(_plain_primitive, [instance, attributes])

    # ---- attribute blocks

    def attribute(self, key: Token, value: Part[Any] | None = None) -> tuple[str, Part[Any]]:
        return str(key), value or self._leaf("word", "")

    def attribute_list(self, *entries: tuple[str, Part[Any]]) -> _Entries:
        return entries

    def block(self, opening: Token, entries: _Entries, close: Token | None = None) -> _Block:
        label = str(opening).strip().rstrip("{ ").rstrip(":")
        return _Block(label, self._attributes(entries, label, close is not None))

    def _attributes(
        self, entries: _Entries, label: str = "", spaced: bool = False
    ) -> Part[Attributes]:
        separator = "=" if entries and entries[0][0].endswith("=") else ": "
        pairs = [
            remember(compose(_pair, [self._text(key.rstrip(" ").rstrip(":=")), value]))
            for key, value in entries
        ]
        return remember(
            compose(lambda *items: Attributes(items, label, separator, spaced), pairs)
        )

    def _instance_name(self, token: Token) -> Part[str]:
        return self._text(token[len(" {instance name: ") : -1])

    # ---- statements

    def graph_target(self, token: Token) -> Part[Any]:
        return self._leaf("graph_target", token)

    def primitive_target(self, token: Token, entries: _Entries | None = None) -> Part[Any]:
        if entries is None:
            return self._leaf("primitive_target", token)
        kind, colons, name = str(token).rpartition("::")
        return compose(
            lambda name, attributes: PrimitiveTarget(name, attributes, kind + colons),
            [self._text(name), self._attributes(entries)],
        )

    def closure_target(self, callee: Token, closure: Any = None) -> Part[Any]:
        kinds = {"NODE_CALLEE": "node_reference", "FOREIGN_CALLEE": "foreign_reference"}
        reference = self._leaf(kinds.get(callee.type, "text"), callee)
        if closure is None:
            return compose(ClosureTarget, [reference])
        at, closures = closure
        return compose(
            lambda callee, closures: ClosureTarget(callee, closures, at), [reference, closures]
        )

    def value_target(self, tag: Token, body: str) -> Part[Any]:
        return compose(ValueTarget, [self._leaf("tagged", tag + body)])

    def closure(self, opening: Token, closures: Part[ClosureSet]) -> tuple[str, Part[ClosureSet]]:
        return opening[1:], closures

    def closure_graph(self, token: Token) -> Part[Any]:
        marked = token.type == "GRAPH"
        name = self._text(token[1:] if marked else token)
        kind = "@" if marked else ""
        return compose(lambda name: ClosureSet(kind, (GraphReference(name),)), [name])

    def closure_kind(self, kind: Token, *members: Part[Any]) -> Part[Any]:
        return compose(lambda *items: ClosureSet(str(kind), items), members)

    def operands(self, *items: Part[Any]) -> Part[tuple[Any, ...]]:
        return gather(items)

    def tails(self, *items: Any) -> _Tails:
        instance, prototype = None, None
        blocks: list[_Block] = []
        for item in items:
            if isinstance(item, _Block):
                blocks.append(item)
            elif item.type == "PROTOTYPE":
                prototype = self._text(item)
            else:
                instance = self._instance_name(item)
        return _Tails(instance, tuple(blocks), prototype)

    def node(
        self, head: Token, target: Part[Any], operands: Part[Any], tails: _Tails
    ) -> StatementParts:
        number, _, name = head.partition("(")
        return StatementParts(
            self._leaf("integer", number[1:]),
            self._text(name[: -len(") = ")]),
            target,
            operands,
            tails,
            None,
        )

    def return_node(self, word: Token, operands: Part[Any], tails: _Tails) -> StatementParts:
        target = Part[Any](PrimitiveTarget("Return"))
        return StatementParts(None, None, target, operands, tails, self._text(word))

    # ---- types

    def tensor_type(self, token: Token) -> Part[Any]:
        return self._leaf("tensor_type", token)

    def ref_type(self, token: Token) -> Part[Any]:
        return self._leaf("ref_type", token)

    def scalar_type(self, token: Token) -> Part[Any]:
        return self._leaf("scalar_type", token)

    def tensor_of(self, opening: Token, element: Part[Any]) -> Part[Any]:
        return compose(lambda element: TensorType(element, opening[:-1]), [element])

    def ref_of(self, _: Token, target: Part[Any]) -> Part[Any]:
        return compose(RefType, [target])

    def run(self, type: Part[Any], repeat: Token | None = None) -> Part[Any]:
        count = _NOTHING if repeat is None else self._leaf("integer", repeat[1:])
        return compose(_pair, [type, count])

    def sequence_type(self, opening: Token, *runs: Part[Any]) -> Part[Any]:
        return compose(lambda *items: SequenceType(opening[:-1], items), runs)

    def dynamic_type(self, opening: Token, element: Part[Any]) -> Part[Any]:
        kind = opening[len("Dynamic ") : -len("[element: ")]
        return compose(lambda element: DynamicSequenceType(kind, element), [element])

    def function_arguments(self, *types: Part[Any]) -> Part[Any]:
        return gather(types)

    def function_type(
        self, _: Token, arguments: Part[Any], result: Part[Any] = _NOTHING
    ) -> Part[Any]:
        return compose(FunctionType, [arguments, result])

    def dictionary_type(self, opening: Token, *values: Part[Any]) -> Part[Any]:
        text = opening[len("Dictionary[[") : -len("],[")]
        keys = compose(lambda text: tuple(text.split(",")[:-1]), [self._text(text)])
        return compose(lambda keys, *values: DictionaryType(keys, values), [keys, *values])

    def other_type(self, name: Token, body: str) -> Part[Any]:
        return compose(OtherType, [self._text(name), self._text(body)])

    def dimensions(self, token: Token) -> Part[Any]:
        return self._leaf("shape", token)

    def named_shape(self, token: Token) -> Part[Any]:
        return self._leaf("named_shape", token)

    def sequence_shape(self, opening: Token, *items: Part[Any]) -> Part[Any]:
        kind = opening.removeprefix(", ")
        brackets = "()" if kind[-1] == "(" else "[]"
        return compose(lambda *items: SequenceShape(kind[:-1], items, brackets), items)

    def note(self, token: Token) -> tuple[str, Part[str]]:
        return token.type, self._text(token[2:])

    def null(self, token: Token) -> Part[Any]:
        return Part(None if token == "<null>" else str(token))

    def shape(self, shape: Part[Any]) -> Part[Any]:
        return shape

    def abstract(self, type: Part[Any], *rest: Any) -> Part[Any]:
        notes = [item for item in rest if isinstance(item, tuple)]
        shapes = [item for item in rest if not isinstance(item, tuple)]
        order = tuple(kind == "REF_KEY" for kind, _ in notes)
        parts = [type, *(shapes or [_NOTHING]), *(part for _, part in notes)]
        return remember(
            compose(lambda type, shape, *texts: _abstract(type, shape, order, texts), parts)
        )

    def type_list(self, *items: Any) -> _TypeList:
        kinds = {item.type for item in items if isinstance(item, Token)}
        return _TypeList(
            items=gather([self._text(i) if isinstance(i, Token) else i for i in items]),
            kind=_TEXT_KINDS.get(min(kinds), "objects") if kinds else None,
            is_path=any(isinstance(i, Token) and "/" in i for i in items),
        )

    def signature(self, *items: Any) -> SignatureParts:
        strategy: Part[Attributes] | None = None
        lists = [item for item in items if isinstance(item, _TypeList)]
        for item in items:
            if isinstance(item, _Block):
                strategy = item.attributes
        words = [str(item) for item in items if isinstance(item, Token)]
        lead, arrow = words[0], words[1] if len(words) > 1 else " -> "
        kind = next((item.kind for item in lists if item.kind), None)
        if any(item.is_path for item in lists):
            kind = "scope"
        inputs = lists[0].items if lists else Part[Any](())
        outputs = lists[1].items if len(lists) > 1 else _NOTHING
        if kind is None:
            made = compose(lambda i, o: _signature(i, o, lead, arrow), [inputs, outputs])
        else:
            name = kind
            made = compose(
                lambda i, o: TextSignature(name, _texts(i), o and _texts(o), lead, arrow),
                [inputs, outputs],
            )
        return SignatureParts(made, strategy)

    # ---- parameters, graphs, header

    def parameter(self, head: Token, type: Part[Any], *rest: Token) -> Part[Parameter]:
        texts = {token.type: str(token) for token in rest}
        parts = [self._text(head), type]
        parts += [
            self._text(texts[kind]) if kind in texts else _NOTHING
            for kind in ("PARAMETER_SYMBOLIC", "PARAMETER_DEFAULT", "PARAMETER_KERNEL")
        ]
        return compose(_parameter_definition, parts)

    def head_parameters(self, *items: Any) -> _HeadParameters:
        opens = [i for i in items if isinstance(i, Token) and i.type.startswith("MULTILINE")]
        parts = [
            self._leaf("parameter_reference", i) if isinstance(i, Token) else i
            for i in items
            if not (isinstance(i, Token) and i.type.startswith("MULTILINE"))
        ]
        spelling = ("(", ", ", ")")
        if opens:
            spelling = (str(opens[0]), str(opens[1]), str(opens[-1]))
        return _HeadParameters(gather(parts), spelling)

    def head(self, name: Token, *rest: Any) -> Part[Head]:
        parent = _NOTHING
        if isinstance(rest[0], Token):
            parent = self._text(rest[0][len(" parent: [subgraph @") : -1])
            rest = rest[1:]
        parameters, end = rest
        opening, comma, close = parameters.spelling
        spelling = (opening, comma, close + str(end))
        return compose(
            lambda name, parent, items: Head(name, parent, items, spelling),
            [self._text(name[len("subgraph @") :]), parent, parameters.items],
        )

    def parameter_list(self, lead: Token, types: _TypeList) -> Part[ParameterList]:
        return compose(lambda lead, types: ParameterList(types, lead), [self._text(lead), types.items])

    def property(self, *tokens: Token) -> Part[Property]:
        parts = [self._text(token) for token in tokens]
        return compose(Property, [*parts, *[Part("")] * (3 - len(parts))])

    # ---- comments

    def scope(self, label: Token, name: Token, end: Token | None = None) -> Part[CommentLine]:
        has_open = label.endswith("(")
        return Part(Scope(str(name), str(label).removesuffix("("), has_open and end is not None))

    def location(self, lead: Token, path: Token, span: Token, *rest: Token) -> Part[CommentLine]:
        match = _SPAN.match(span)
        assert match is not None
        line, end_line, column, end_column = (int(n) if n else None for n in match.groups())
        texts = {token.type: str(token) for token in rest}
        return Part(
            Location(
                str(path), str(span), line or 0, end_line, column, end_column,
                texts.get("SOURCE"), texts.get("TAIL", ""), str(lead),
            )
        )  # fmt: skip

    def side_effect(self, *tokens: Token) -> Part[CommentLine]:
        return Part(SideEffect(tuple(t.strip() for t in tokens if t.type == "EFFECT")))

    def heading(self, token: Token) -> Part[CommentLine]:
        return Part(Heading(str(token)))

    def remark(self, token: Token) -> Part[CommentLine]:
        return Part(Remark(str(token)))


# ---- values from parts ---------------------------------------------------------------------


def _tuple_of(*items: Any) -> Sequence:
    return Sequence(items)


def _list_of(*items: Any) -> Sequence:
    return Sequence(items, True)


def _pair(first: Any, second: Any) -> tuple[Any, Any]:
    return first, second


def _plain_primitive(instance: str | None, attributes: Attributes | None) -> PrimitiveLiteral:
    return PrimitiveLiteral("", None, instance, attributes)


def _abstract(type: Any, shape: Any, order: tuple[bool, ...], texts: tuple[str, ...]) -> Abstract:
    notes: list[str] = []
    key, mark = None, ""
    for is_key, text in zip(order, texts, strict=True):
        if is_key:
            key = text.removeprefix("ref_key=")
            if key.startswith(":"):
                key, mark = key[1:], ":"
        else:
            notes.append(text)
    # The flags that may stand before the key are few; the printer puts value=... first.
    return Abstract(type, shape, tuple(notes), key, mark)


def _signature(inputs: Any, outputs: Any, lead: str, arrow: str) -> Signature:
    null = "<null>"
    spelled = next((i for i in (*inputs, *(outputs or ())) if isinstance(i, str)), None)
    if spelled is not None:
        null = spelled
        inputs = tuple(None if isinstance(i, str) else i for i in inputs)
        outputs = outputs and tuple(None if isinstance(i, str) else i for i in outputs)
    return Signature(inputs, outputs, lead, arrow, null)


def _texts(items: tuple[str | None, ...]) -> tuple[str, ...]:
    return tuple("<null>" if item is None else item for item in items)


_HEAD = re.compile(r"%para([0-9]*)( = |_|)(.*?)( ?: )\Z", re.S)


def _parameter_definition(
    head: str, type: Any, symbolic: str | None, default: str | None, kernel: str | None
) -> Parameter:
    match = _HEAD.match(head)
    assert match is not None, head
    number, joint, name, colon = match.groups()
    return Parameter(
        _integer(number) if number else None,
        name,
        None if isinstance(type, str) else type,
        0,
        symbolic and symbolic.removeprefix(" : "),
        default is not None,
        kernel and kernel.removeprefix("  :  "),
        (joint, colon),
    )
