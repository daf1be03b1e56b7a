"""Reads single records: statements, type lines, comments, parameters, heads, header lines."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, TypeVar

from irtool.ir.comments import NO_COMMENTS, CommentLine, Comments
from irtool.ir.graph import Head, Parameter, ParameterList, Property
from irtool.ir.node import STANDARD_STYLE, Node, StatementStyle
from irtool.ir.types import Signature, TextSignature
from irtool.ir.values import Attributes
from irtool.syntax.assemble_base import SignatureParts, StatementParts
from irtool.syntax.grammar import Key, Templates, Unreadable, parse, split_digits
from irtool.syntax.part import Holes, Memo, Part
from irtool.syntax.printer import (
    print_attributes,
    print_comment,
    print_head,
    print_parameter,
    print_parameter_list,
    print_signature,
    print_statement,
)

T = TypeVar("T")
Restore = Callable[[str], str]
_STANDARD_WORD = "Return"


class StatementTemplate:
    """Makes nodes of all statements that differ only in runs of digits."""

    __slots__ = (
        "instance_name", "name", "node_attributes", "number", "operands", "primal_attributes",
        "primitive_attributes", "prototype", "return_word", "strategy", "target", "verified",
    )  # fmt: skip

    def __init__(self, parts: StatementParts) -> None:
        self.verified = False
        self.number = parts.number
        self.name = parts.name
        self.target = parts.target
        self.operands = parts.operands
        self.instance_name = parts.tails.instance_name
        self.prototype = parts.tails.prototype
        self.return_word = parts.return_word
        self.primitive_attributes: Part[Attributes] | None = None
        self.node_attributes: Part[Attributes] | None = None
        self.primal_attributes: Part[Attributes] | None = None
        self.strategy: Part[Attributes] | None = None
        for block in parts.tails.blocks:
            self._place(block.label, block.attributes)

    def _place(self, label: str, block: Part[Attributes]) -> None:
        if label == "primitive_attrs":
            self.primitive_attributes = block
        elif label == "cnode_attrs":
            self.node_attributes = block
        elif label == "cnode_primal_attrs":
            self.primal_attributes = block
        elif label == "" and self.primitive_attributes is None and not _is_strategy(block):
            self.primitive_attributes = block  # 1.0 and 1.1 print no label
        else:
            self.strategy = block

    def node(
        self,
        holes: Holes,
        signature: Signature | None = None,
        text_signatures: tuple[TextSignature, ...] = (),
        comments: Comments = NO_COMMENTS,
        line: int = 0,
        style: StatementStyle = STANDARD_STYLE,
    ) -> Node:
        """The node whose statement has these runs of digits."""
        word = self.return_word
        if word is not None and (text := word(holes)) != _STANDARD_WORD:
            style = replace(style, return_word=text)
        number, name, instance = self.number, self.name, self.instance_name
        primitive, cnode, primal = (
            self.primitive_attributes, self.node_attributes, self.primal_attributes,
        )  # fmt: skip
        strategy, prototype = self.strategy, self.prototype
        return Node(
            number and number(holes),
            name and name(holes),
            self.target(holes),
            self.operands(holes),
            instance and instance(holes),
            primitive and primitive(holes),
            cnode and cnode(holes),
            primal and primal(holes),
            strategy and strategy(holes),
            signature,
            text_signatures,
            comments,
            prototype and prototype(holes),
            line,
            style,
        )


def _is_strategy(block: Part[Attributes]) -> bool:
    sample = block(tuple(str(i) for i in range(block.stop)))
    return any(key.endswith(("strategy", "layout")) for key, _ in sample.entries)


def _statement_template(masked: str) -> StatementTemplate:
    return StatementTemplate(parse(masked, "statement", masked=True))


@dataclass(frozen=True, slots=True)
class TypeLine:
    """A type line as read; ``strategy`` stood before it in versions up to 1.6."""

    line: Signature | TextSignature
    strategy: Attributes | None = None


class Records:
    """Reads records, each form of record once.

    What was read is printed and compared with the text the first time that a form is seen, so
    that a gap in the grammar shows as an unreadable record instead of a wrong model.

    Args:
        plain: parse every record by Lark afresh (the reference that the fast way is held to).
    """

    def __init__(self, plain: bool = False) -> None:
        self._plain = plain
        self._statements = Templates(_statement_template)
        self._signatures = Templates(lambda text: parse(text, "type_line", masked=True))
        self._parameters = Templates(lambda text: parse(text, "parameter", masked=True))
        self._type_lines: Memo[TypeLine] = Memo(self._read_type_line)
        self._comment_lines: Memo[CommentLine] = Memo(_read_comment)
        self._heads = Templates(lambda text: parse(text, "head", masked=True))
        self._parameter_lists = Templates(lambda text: parse(text, "parameter_list", masked=True))
        self._properties: Memo[Property] = Memo(lambda text: parse(text, "property_line")(()))

    # ---- statements

    def statement(self, text: str, restore: Restore | None = None) -> tuple[Any, Holes]:
        """Template and holes of a statement (without indentation).

        Raises:
            Unreadable: the grammar does not accept it, or would not print it back.
        """
        if self._plain or restore is not None:
            template = StatementTemplate(parse(text, "statement", restore=restore))
            _verify(print_statement(template.node((), style=_BARE)), restore, text)
            return template, ()
        literals, holes = split_digits(text)
        try:
            template = self._statements.get(literals)
        except Unreadable:
            parse(text, "statement")  # fails at the column of this text, not of the masked one
            raise
        if not template.verified:
            _verify(print_statement(template.node(holes, style=_BARE)), None, text)
            template.verified = True
        return template, holes

    # ---- type lines

    def type_line(self, text: str, restore: Restore | None = None) -> TypeLine:
        """A type line or a line of its look, indentation included.

        Raises:
            Unreadable: the grammar does not accept it, or would not print it back.
        """
        if self._plain or restore is not None:
            return _type_line(parse(text, "type_line", restore=restore), (), text, restore)
        return self._type_lines[text]

    def _read_type_line(self, text: str) -> TypeLine:
        literals, holes = split_digits(text)
        try:
            template = self._signatures.get(literals)
        except Unreadable:
            parse(text, "type_line")
            raise
        return _type_line(template, holes, text, None)

    # ---- the rest

    def comments(self, text: str) -> Comments:
        """Comment lines (whole lines), read when first asked for."""
        return Comments.deferred(text, self._read_comments)

    def _read_comments(self, text: str) -> tuple[CommentLine, ...]:
        known = self._comment_lines
        return tuple(known[line] for line in text.split("\n"))

    def parameter(self, text: str, restore: Restore | None = None) -> Parameter:
        """A line of the ``# Params:`` section.

        Raises:
            Unreadable: the grammar does not accept it, or would not print it back.
        """
        made: Parameter = self._filled(self._parameters, "parameter", text, restore)
        _verify(print_parameter(made), restore, text)
        return made

    def head(self, text: str, restore: Restore | None = None) -> Head:
        """``subgraph @G(…) {``; raises like :meth:`parameter`."""
        made: Head = self._filled(self._heads, "head", text, restore)
        _verify(print_head(made), restore, text)
        return made

    def parameter_list(self, text: str, restore: Restore | None = None) -> ParameterList:
        """``# Parameters: 2, (…)``; raises like :meth:`parameter`."""
        made: ParameterList = self._filled(self._parameter_lists, "parameter_list", text, restore)
        _verify(print_parameter_list(made), restore, text)
        return made

    def _filled(self, known: Templates, start: str, text: str, restore: Restore | None) -> Any:
        if self._plain or restore is not None:
            return parse(text, start, restore=restore)(())
        literals, holes = split_digits(text)
        try:
            template = known.get(literals)
        except Unreadable:
            parse(text, start)  # fails at the column of this text, not of the masked one
            raise
        return template(holes)

    def property(self, text: str, line: int) -> Property:
        """A header line or graph attribute."""
        known = self._properties[text]
        return Property(known.key, known.separator, known.value, line)


_BARE = StatementStyle(indent="")


def _type_line(parts: SignatureParts, holes: Holes, text: str, restore: Restore | None) -> TypeLine:
    line = parts.line(holes)
    strategy = parts.strategy(holes) if parts.strategy else None
    printed = print_signature(line)
    if strategy is not None:
        printed = f" {print_attributes(strategy)}{printed}"
    _verify(printed, restore, text)
    return TypeLine(line, strategy)


def _read_comment(text: str) -> CommentLine:
    body = text.lstrip(" \t")
    line: CommentLine = parse(body, "comment")(()) if body else parse(" ", "comment")(())
    line = replace(line, indent=text[: len(text) - len(body)])
    if print_comment(line) != text:
        raise Unreadable("a comment that would not be printed back", 0)
    return line


def _verify(printed: str, restore: Restore | None, text: str) -> None:
    expected = restore(text) if restore else text
    if printed != expected:
        column = next(
            (i for i, (a, b) in enumerate(zip(printed, expected, strict=False)) if a != b),
            min(len(printed), len(expected)),
        )
        raise Unreadable("unusual spelling", column)


__all__ = ["Key", "Records", "StatementTemplate", "TypeLine", "Unreadable"]
