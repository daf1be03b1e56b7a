"""Callbacks for types, shapes and type lines."""

from __future__ import annotations

from typing import Any, TypeAlias

from lark import Token

from irtool.ir.types import (
    Abstract,
    AnyShape,
    DictionaryType,
    DynamicSequenceType,
    FunctionType,
    OtherType,
    RefType,
    SequenceShape,
    SequenceType,
    Signature,
    TensorType,
    TextSignature,
    Type,
)
from irtool.ir.values import Attributes
from irtool.syntax.assemble.base import (
    NOTHING,
    TEXT_KINDS,
    Block,
    Leaves,
    Note,
    SignatureParts,
    TypeList,
    flat,
    pair,
)
from irtool.syntax.part import Part, compose, gather, remember

_Items: TypeAlias = tuple[Any, ...]


class TypeRules(Leaves):
    """Rules from scalar type to type line."""

    # ---- types

    def tensor_type(self, token: Token) -> Part[Any]:
        return self.leaf("tensor_type", token)

    def ref_type(self, token: Token) -> Part[Any]:
        return self.leaf("ref_type", token)

    def scalar_type(self, token: Token) -> Part[Any]:
        return self.leaf("scalar_type", token)

    def tensor_of(self, opening: Token, element: Part[Any]) -> Part[Any]:
        def build(element: Type) -> TensorType:
            return TensorType(element, opening[:-1])

        return compose(build, [element])

    def ref_of(self, _: Token, target: Part[Any]) -> Part[Any]:
        return compose(RefType, [target])

    def run(self, type: Part[Any], repeat: Token | None = None) -> Part[Any]:
        count = NOTHING if repeat is None else self.leaf("integer", repeat[1:])
        return compose(pair, [type, count])

    def sequence_type(self, opening: Token, *runs: Part[Any]) -> Part[Any]:
        return compose(lambda *items: SequenceType(opening[:-1], items), runs)

    def dynamic_type(self, opening: Token, element: Part[Any]) -> Part[Any]:
        kind = opening[len("Dynamic ") : -len("[element: ")]

        def build(element: Type) -> DynamicSequenceType:
            return DynamicSequenceType(kind, element)

        return compose(build, [element])

    def function_arguments(self, *types: Part[Any]) -> Part[Any]:
        return gather(types)

    def function_type(
        self, _: Token, arguments: Part[Any], result: Part[Any] = NOTHING
    ) -> Part[Any]:
        return compose(FunctionType, [arguments, result])

    def dictionary_type(self, opening: Token, *values: Part[Any]) -> Part[Any]:
        def build(keys: str, *runs: tuple[Type, int | None]) -> DictionaryType:
            return DictionaryType(tuple(keys.split(",")[:-1]), runs)

        keys = self.text(opening[len("Dictionary[[") : -len("],[")])
        return compose(build, [keys, *values])

    def other_type(self, name: Token, body: str) -> Part[Any]:
        return compose(OtherType, [self.text(name), self.text(body)])

    def dimensions(self, token: Token) -> Part[Any]:
        return self.leaf("shape", token)

    def named_shape(self, token: Token) -> Part[Any]:
        return self.leaf("named_shape", token)

    def inner_dimensions(self, token: Token) -> Part[Any]:
        return self.leaf("inner_dimensions", token)

    def inner_named_shapes(self, token: Token) -> Part[Any]:
        return self.leaf("inner_named_shapes", token)

    def sequence_shape(self, opening: Token, *groups: Part[Any]) -> Part[Any]:
        kind = opening.removeprefix(", ")
        brackets = "()" if kind[-1] == "(" else "[]"

        def build(*groups: tuple[AnyShape, ...] | SequenceShape) -> SequenceShape:
            return SequenceShape(kind[:-1], flat(groups), brackets)

        return compose(build, groups)

    def note(self, token: Token) -> Note:
        return Note(token.type == "REF_KEY", self.text(token[2:]))

    def simple_abstract(self, token: Token) -> Part[Any]:
        return self.leaf("simple_abstract", token)

    def null(self, token: Token) -> Part[Any]:
        return Part(None if token == "<null>" else str(token))

    def shape(self, shape: Part[Any]) -> Part[Any]:
        return shape

    def abstract(self, type: Part[Any], *rest: Part[Any] | Note) -> Part[Any]:
        notes = [item for item in rest if isinstance(item, Note)]
        shapes = [item for item in rest if isinstance(item, Part)]
        order = tuple(note.is_key for note in notes)
        parts = [type, *(shapes or [NOTHING]), *(note.text for note in notes)]

        def build(type: Type, shape: AnyShape | None, *texts: str) -> Abstract:
            return _abstract(type, shape, order, texts)

        return remember(compose(build, parts))

    def type_list(self, *items: Any) -> TypeList:
        kinds = {item.type for item in items if isinstance(item, Token)}
        return TypeList(
            items=gather([self.text(i) if isinstance(i, Token) else i for i in items]),
            kind=TEXT_KINDS.get(min(kinds), "objects") if kinds else None,
            is_path=any(isinstance(i, Token) and i.type == "OBJECT" and "/" in i for i in items),
        )

    def signature(self, *items: Any) -> SignatureParts:
        strategy: Part[Attributes] | None = None
        lists = [item for item in items if isinstance(item, TypeList)]
        for item in items:
            if isinstance(item, Block):
                strategy = item.attributes
        words = [str(item) for item in items if isinstance(item, Token)]
        lead, arrow = words[0], words[1] if len(words) > 1 else " -> "
        kind = next((item.kind for item in lists if item.kind), None)
        if any(item.is_path for item in lists):
            kind = "scope"
        inputs = lists[0].items if lists else Part[Any](())
        outputs = lists[1].items if len(lists) > 1 else NOTHING

        def build(inputs: _Items, outputs: _Items | None) -> Signature | TextSignature:
            if kind is None:
                return _signature(inputs, outputs, lead, arrow)
            return TextSignature(kind, _texts(inputs), outputs and _texts(outputs), lead, arrow)

        return SignatureParts(compose(build, [inputs, outputs]), strategy)


def _abstract(
    type: Type, shape: AnyShape | None, order: tuple[bool, ...], texts: tuple[str, ...]
) -> Abstract:
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


def _signature(inputs: _Items, outputs: _Items | None, lead: str, arrow: str) -> Signature:
    null = "<null>"
    spelled = next((i for i in (*inputs, *(outputs or ())) if isinstance(i, str)), None)
    if spelled is not None:
        null = spelled
        inputs = tuple(None if isinstance(i, str) else i for i in inputs)
        outputs = outputs and tuple(None if isinstance(i, str) else i for i in outputs)
    return Signature(inputs, outputs, lead, arrow, null)


def _texts(items: _Items) -> tuple[str, ...]:
    if any(isinstance(item, Abstract) for item in items):
        raise ValueError("types and other entries in one line")
    return tuple("<null>" if item is None else str(item) for item in items)
