"""Callbacks for the lines around statements: parameters, heads, header lines, comments."""

from __future__ import annotations

import re
from typing import Any

from lark import Token

from irtool.ir.comments import CommentLine, Heading, Location, Remark, Scope, SideEffect
from irtool.ir.items import Head, Parameter, ParameterList, Property
from irtool.syntax.assemble.base import NOTHING, HeadParameters, Leaves, TypeList
from irtool.syntax.decode import integer
from irtool.syntax.part import Part, compose, gather

_SPAN = re.compile(r"[:(]([0-9]+)(?:~([0-9]+))?(?:, ([0-9]+)~([0-9]+))?")
_HEAD = re.compile(r"%para([0-9]*)( = |_|)(.*?)( ?: )\Z", re.DOTALL)


class LineRules(Leaves):
    """Callbacks of the grammar's rules for parameters, heads of graphs, the header and comments."""

    # ---- parameters, graphs, header

    def parameter(self, head: Token, type: Part[Any], *rest: Token) -> Part[Parameter]:
        texts = {token.type: str(token) for token in rest}
        parts = [self.text(head), type]
        parts += [
            self.text(texts[kind]) if kind in texts else NOTHING
            for kind in ("PARAMETER_SYMBOLIC", "PARAMETER_DEFAULT", "PARAMETER_KERNEL")
        ]
        return compose(_parameter_definition, parts)

    def head_parameters(self, *items: Any) -> HeadParameters:
        opens = [i for i in items if isinstance(i, Token) and i.type.startswith("MULTILINE")]
        parts = [
            self.leaf("parameter_reference", i) if isinstance(i, Token) else i
            for i in items
            if not (isinstance(i, Token) and i.type.startswith("MULTILINE"))
        ]
        spelling = ("(", ", ", ")")
        if opens:
            spelling = (str(opens[0]), str(opens[1]), str(opens[-1]))
        return HeadParameters(gather(parts), spelling)

    def head(self, name: Token, *rest: Any) -> Part[Head]:
        parent = NOTHING
        if isinstance(rest[0], Token):
            parent = self.text(rest[0][len(" parent: [subgraph @") : -1])
            rest = rest[1:]
        parameters: HeadParameters = rest[0]
        opening, comma, close = parameters.spelling
        spelling = (opening, comma, close + str(rest[1]))

        def build(name: str, parent: str | None, items: tuple[Any, ...]) -> Head:
            return Head(name, parent, items, spelling)

        label = self.text(name[len("subgraph @") :])
        return compose(build, [label, parent, parameters.items])

    def parameter_list(self, lead: Token, types: TypeList) -> Part[ParameterList]:
        def build(lead: str, types: tuple[Any, ...]) -> ParameterList:
            return ParameterList(types, lead)

        return compose(build, [self.text(lead), types.items])

    def property_line(self, *tokens: Token) -> Part[Property]:
        parts = [self.text(token) for token in tokens]
        return compose(Property, [*parts, *[Part("")] * (3 - len(parts))])

    # ---- comments

    def scope(self, label: Token, name: Token, end: Token | None = None) -> Part[CommentLine]:
        is_open = label.endswith("(")
        plain, parenthesised = str(label).removesuffix("("), is_open and end is not None

        def build(name: str) -> CommentLine:
            return Scope(name, plain, parenthesised)

        return compose(build, [self.text(name)])

    def location(self, lead: Token, path: Token, span: Token, *rest: Token) -> Part[CommentLine]:
        kinds = [token.type for token in rest]

        def build(lead: str, path: str, span: str, *rest: str) -> CommentLine:
            match = _SPAN.match(span)
            assert match is not None
            line, end_line, column, end_column = (int(n) if n else None for n in match.groups())
            texts = dict(zip(kinds, rest, strict=True))
            return Location(
                path, span, line or 0, end_line, column, end_column,
                texts.get("SOURCE"), texts.get("TAIL", ""), lead,
            )  # fmt: skip

        return compose(build, [self.text(token) for token in (lead, path, span, *rest)])

    def side_effect(self, *tokens: Token) -> Part[CommentLine]:
        def build(*effects: str) -> CommentLine:
            return SideEffect(tuple(effect.strip() for effect in effects))

        return compose(build, [self.text(token) for token in tokens if token.type == "EFFECT"])

    def heading(self, token: Token) -> Part[CommentLine]:
        return compose(Heading, [self.text(token)])

    def remark(self, token: Token) -> Part[CommentLine]:
        return compose(Remark, [self.text(token)])


def _parameter_definition(
    head: str, type: Any, symbolic: str | None, default: str | None, kernel: str | None
) -> Parameter:
    match = _HEAD.match(head)
    assert match is not None, head
    number, joint, name, colon = match.groups()
    return Parameter(
        integer(number) if number else None,
        name,
        None if isinstance(type, str) else type,
        0,
        symbolic and symbolic.removeprefix(" : "),
        default is not None,
        kernel and kernel.removeprefix("  :  "),
        (joint, colon),
    )
