"""Callbacks for values, attribute blocks and statements."""

from __future__ import annotations

from typing import Any

from lark import Token

from irtool.ir.statement import ClosureSet, ClosureTarget, PrimitiveTarget, ValueTarget
from irtool.ir.values import Attributes, Dictionary, GraphReference, PrimitiveLiteral, Sequence
from irtool.syntax.assemble.base import (
    NOTHING,
    Block,
    Entries,
    Entry,
    Leaves,
    StatementParts,
    Tails,
    flat,
    pair,
)
from irtool.syntax.part import Part, compose, remember


class ValueRules(Leaves):
    """Rules from operand to statement."""

    # ---- values

    def node_reference(self, token: Token) -> Part[Any]:
        return self.leaf("node_reference", token)

    def parameter_reference(self, token: Token) -> Part[Any]:
        return self.leaf("parameter_reference", token)

    def foreign_reference(self, token: Token) -> Part[Any]:
        return self.leaf("foreign_reference", token)

    def graph_reference(self, token: Token) -> Part[Any]:
        return self.leaf("graph_reference", token)

    def scalar(self, token: Token) -> Part[Any]:
        return self.leaf("scalar", token)

    def string(self, token: Token) -> Part[Any]:
        return self.leaf("string", token)

    def word(self, token: Token) -> Part[Any]:
        return self.leaf("word", token)

    def tensor(self, token: Token) -> Part[Any]:
        return self.leaf("tensor", token)

    def slice_value(self, token: Token) -> Part[Any]:
        return self.leaf("slice", token)

    def symbolic_key(self, token: Token) -> Part[Any]:
        return self.leaf("symbolic_key", token)

    def tagged(self, tag: Token, *bodies: str) -> Part[Any]:
        return self.leaf("tagged", tag + "".join(bodies))

    def square_body(self, *pieces: str) -> str:
        return f"[{''.join(pieces)}]"

    def round_body(self, *pieces: str) -> str:
        return f"({''.join(pieces)})"

    def curly_body(self, *pieces: str) -> str:
        return f"{{{''.join(pieces)}}}"

    def tuple_value(self, *items: Part[Any]) -> Part[Any]:
        return compose(_tuple_of, items)

    def list_value(self, *items: Part[Any]) -> Part[Any]:
        return compose(_list_of, items)

    def bare_numbers(self, token: Token) -> Part[Any]:
        return self.leaf("bare_numbers", token)

    def entry(self, key: Token, value: Part[Any]) -> tuple[str, Part[Any]]:
        return str(key), value

    def dictionary(self, *entries: tuple[str, Part[Any]]) -> Part[Any]:
        quote = entries[0][0][0] if entries and entries[0][0][0] in "'\"" else ""
        inset = len(quote)
        pairs = [
            compose(pair, [self.text(key[inset : -2 - inset]), value]) for key, value in entries
        ]
        return compose(lambda *items: Dictionary(items, quote), pairs)

    def primitive_value(self, name: Token, entries: Entries) -> Part[Any]:
        return compose(PrimitiveLiteral, [self.text(name), self._attributes(entries)])

    def plain_primitive(self, *blocks: Any) -> Part[Any]:
        instance, attributes = NOTHING, NOTHING
        for block in blocks:
            if isinstance(block, Token):
                instance = self._instance_name(block)
            else:
                attributes = block.attributes
        return compose(_plain_primitive, [instance, attributes])

    # ---- attribute blocks

    def attribute(self, key: Token, value: Part[Any] | None = None) -> Entry:
        name = self.text(key.rstrip(" ").rstrip(":="))
        entry = remember(compose(pair, [name, value or self.leaf("word", "")]))
        return Entry(entry, "=" if key.endswith("=") else ": ")

    def attribute_list(self, *entries: Entry) -> Entries:
        return entries

    def block(self, opening: Token, entries: Entries, close: Token | None = None) -> Block:
        label = str(opening).strip().rstrip("{ ").rstrip(":")
        return Block(label, self._attributes(entries, label, close is not None))

    def _attributes(
        self, entries: Entries, label: str = "", spaced: bool = False
    ) -> Part[Attributes]:
        separator = entries[0].separator if entries else ": "
        pairs = [entry.pair for entry in entries]
        return remember(compose(lambda *items: Attributes(items, label, separator, spaced), pairs))

    def _instance_name(self, token: Token) -> Part[str]:
        return self.text(token[len(" {instance name: ") : -1])

    # ---- statements

    def graph_target(self, token: Token) -> Part[Any]:
        return self.leaf("graph_target", token)

    def primitive_target(self, token: Token, entries: Entries | None = None) -> Part[Any]:
        if entries is None:
            return self.leaf("primitive_target", token)
        kind, colons, name = str(token).rpartition("::")

        def build(name: str, attributes: Attributes) -> PrimitiveTarget:
            return PrimitiveTarget(name, attributes, kind + colons)

        return compose(build, [self.text(name), self._attributes(entries)])

    def closure_target(self, callee: Token, closure: Any = None) -> Part[Any]:
        kinds = {"NODE_CALLEE": "node_reference", "FOREIGN_CALLEE": "foreign_reference"}
        reference = self.leaf(kinds.get(callee.type, "text"), callee)
        if closure is None:
            return compose(ClosureTarget, [reference])
        mark, closures = closure

        def build(callee: Any, closures: ClosureSet) -> ClosureTarget:
            return ClosureTarget(callee, closures, mark)

        return compose(build, [reference, closures])

    def value_target(self, tag: Token, *bodies: str) -> Part[Any]:
        return compose(ValueTarget, [self.leaf("tagged", tag + "".join(bodies))])

    def closure(self, opening: Token, closures: Part[ClosureSet]) -> tuple[str, Part[ClosureSet]]:
        return opening[1:], closures

    def closure_graph(self, token: Token) -> Part[Any]:
        marked = token.type == "GRAPH"
        name = self.text(token[1:] if marked else token)
        kind = "@" if marked else ""

        def build(name: str) -> ClosureSet:
            return ClosureSet(kind, (GraphReference(name),))

        return compose(build, [name])

    def closure_kind(self, kind: Token, *members: Part[Any]) -> Part[Any]:
        return compose(lambda *items: ClosureSet(str(kind), items), members)

    def node_references(self, token: Token) -> Part[Any]:
        return self.leaf("node_references", token)

    def operands(self, *items: Part[Any]) -> Part[tuple[Any, ...]]:
        return compose(lambda *items: flat(items), items)

    def tails(self, *items: Any) -> Tails:
        instance, prototype = None, None
        blocks: list[Block] = []
        for item in items:
            if isinstance(item, Block):
                blocks.append(item)
            elif item.type == "PROTOTYPE":
                prototype = self.text(item)
            else:
                instance = self._instance_name(item)
        return Tails(instance, tuple(blocks), prototype)

    def node(
        self, head: Token, target: Part[Any], operands: Part[Any], tails: Tails
    ) -> StatementParts:
        number, _, name = head.partition("(")
        return StatementParts(
            self.leaf("integer", number[1:]),
            self.text(name[: -len(") = ")]),
            target,
            operands,
            tails,
            None,
        )

    def return_node(self, word: Token, operands: Part[Any], tails: Tails) -> StatementParts:
        target = Part[Any](PrimitiveTarget("Return"))
        return StatementParts(None, None, target, operands, tails, self.text(word))


def _tuple_of(*items: Any) -> Sequence:
    return Sequence(items)


def _list_of(*items: Any) -> Sequence:
    return Sequence(items, True)


def _plain_primitive(instance: str | None, attributes: Attributes | None) -> PrimitiveLiteral:
    return PrimitiveLiteral("", None, instance, attributes)
