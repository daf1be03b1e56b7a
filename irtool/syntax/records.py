"""Reads single records: statements, type lines, comments, parameters, heads, header lines."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from operator import itemgetter
from typing import TYPE_CHECKING, Any

from irtool.ir.comments import NO_COMMENTS, CommentLine, Comments, Remark
from irtool.ir.dataclass import dataclass
from irtool.ir.graph import Node
from irtool.ir.items import Head, Parameter, ParameterList, Property
from irtool.ir.statement import STANDARD_STYLE, StatementStyle
from irtool.ir.types import Signature, TextSignature
from irtool.ir.values import Attributes
from irtool.syntax.budget import READING, Aging
from irtool.syntax.grammar import Key, Unreadable, check_length, mask
from irtool.syntax.part import DIGITS, Holes, Memo, Part
from irtool.syntax.printer import (
    print_attributes,
    print_comment,
    print_head,
    print_parameter,
    print_parameter_list,
    print_signature,
    print_statement,
)

if TYPE_CHECKING:
    from irtool.syntax.assemble.base import SignatureParts, StatementParts

Restore = Callable[[str], str]
_STANDARD_WORD = "Return"


class StatementTemplate:
    """Makes nodes of all statements that differ only in runs of digits."""

    __slots__ = ("_constant", "_prototype", "_return_word", "_variable")

    def __init__(self, parts: StatementParts) -> None:
        tails = parts.tails
        self._return_word = parts.return_word
        self._prototype = tails.prototype
        blocks: dict[str, Part[Attributes]] = {}
        for block in tails.blocks:
            _place(blocks, block.label, block.attributes)
        fields: tuple[Part[Any] | None, ...] = (
            parts.number,
            parts.name,
            parts.target,
            parts.operands,
            tails.instance_name,
            *(blocks.get(label) for label in (*_BLOCK_LABELS, "strategy")),
        )
        self._constant = [part and part.value for part in fields]
        self._variable = [
            (place, part.fill)
            for place, part in enumerate(fields)
            if part is not None and part.fill is not None
        ]

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
        word, prototype = self._return_word, self._prototype
        if word is not None and (text := word(holes)) != _STANDARD_WORD:
            style = replace(style, return_word=text)
        values: list[Any] = self._constant.copy()
        for place, fill in self._variable:
            values[place] = fill(holes)
        ending = prototype and prototype(holes)
        values += (signature, text_signatures, comments, ending, line, style)
        return Node(*values)


_BLOCK_LABELS = ("primitive_attrs", "cnode_attrs", "cnode_primal_attrs")


def _place(blocks: dict[str, Part[Attributes]], label: str, block: Part[Attributes]) -> None:
    if label == "" and "primitive_attrs" not in blocks and not _is_strategy(block):
        label = "primitive_attrs"  # 1.0 and 1.1 print no label
    blocks[label if label in _BLOCK_LABELS else "strategy"] = block


def _is_strategy(block: Part[Attributes]) -> bool:
    sample = block(tuple(str(i) for i in range(block.stop)))
    return any(key.endswith(("strategy", "layout")) for key, _ in sample.entries)


@dataclass(frozen=True, slots=True)
class TypeLine:
    """A type line as read; ``strategy`` stood before it in versions up to 1.6."""

    line: Signature | TextSignature
    strategy: Attributes | None = None


class Form:
    """One kind of record: each form of it is parsed once, and checked by printing it back.

    A gap in the grammar therefore shows as an unreadable record instead of a wrong model.  One
    check a form is enough: templates decode every run of digits exactly or refuse it.

    Args:
        start: start symbol of the grammar.
        prepare: makes a template from what the grammar gives.
        show: prints what a template makes of some holes.
        plain: parse every record by Lark afresh (the reference that the fast way is held to).
        many: thousands of records have one form, so that finding the runs of digits matters.
    """

    def __init__(
        self,
        start: str,
        show: Callable[[Any, Holes], str],
        plain: bool,
        prepare: Callable[[Any], Any] = lambda parts: parts,
        many: bool = False,
    ) -> None:
        self._many = many
        self._start = start
        self._show = show
        self._plain = plain
        self._prepare = prepare
        self._templates: Aging[Any] = Aging()
        self._outlines: dict[bytes, tuple[Any, Callable[[str], Holes]]] = {}
        READING.add(self)

    def age(self) -> None:
        """Forget the outlines: those that come again find their templates, which age too."""
        self._outlines.clear()

    def read(self, text: str, restore: Restore | None = None) -> tuple[Any, Holes]:
        """The template of a record and the holes to fill it with.

        Raises:
            Unreadable: the grammar does not accept it, or would not print it back.
        """
        if self._plain or restore is not None:
            template = self._prepare(_parsed(text, self._start, restore=restore, plain=self._plain))
            _verify(self._show(template, ()), restore(text) if restore else text)
            return template, ()
        check_length(text)
        outline = b""
        if self._many:
            outline = text.encode("utf-8", "surrogatepass").translate(_ZEROS)
            known = self._outlines.get(outline)
            if known is not None:
                return known[0], known[1](text)
        pieces = DIGITS.split(text)
        literals, holes = tuple(pieces[::2]), tuple(pieces[1::2])
        template = self._templates.get(literals) or self._templates.again(
            literals, _template_size(text)
        )
        if template is None:
            template = self._make(literals, holes, text)
        if isinstance(template, Unreadable):
            _parsed(text, self._start)  # fails at the column of this text, not of the masked one
            raise template
        if self._many:
            READING.charge(_outline_size(text))
            self._outlines[outline] = template, _slicer(text)
        return template, holes

    def _make(self, literals: Key, holes: Holes, text: str) -> Any:
        try:
            template = self._prepare(_parsed(mask(literals), self._start, masked=True))
            _verify(self._show(template, holes), text)
        except Unreadable as error:
            template = error
        self._templates.keep(literals, template, _template_size(text))
        return template


def _parsed(text: str, start: str, **how: Any) -> Any:
    """A record as Lark parses it, which is imported for the first one that nobody kept."""
    from irtool.syntax.grammar_parser import parse

    return parse(text, start, **how)


def _outline_size(text: str) -> int:
    """Bytes of an outline of a record."""
    return 1000 + 2 * len(text)


def _template_size(text: str) -> int:
    """Bytes of a template that was made of a record."""
    return 1000 + 20 * len(text)


_ZEROS = bytes.maketrans(b"123456789", b"000000000")


def _slicer(text: str) -> Callable[[str], Holes]:
    """Takes the runs of digits out of any text that has them in the same places as ``text``."""
    places = [slice(*match.span()) for match in DIGITS.finditer(text)]
    if len(places) > 1:
        return itemgetter(*places)
    return lambda text: tuple(text[place] for place in places)


class Records:
    """Reads records; what it has seen once it does not parse again (see :class:`Form`)."""

    def __init__(self, plain: bool = False) -> None:
        self._plain = plain
        self._statements = Form("statement", _show_statement, plain, StatementTemplate, True)
        self._type_lines = Form("type_line", _show_type_line, plain)
        self._parameters = Form("parameter", lambda t, h: print_parameter(t(h)), plain)
        self._heads = Form("head", lambda t, h: print_head(t(h)), plain)
        self._lists = Form("parameter_list", lambda t, h: print_parameter_list(t(h)), plain)
        self._known_type_lines: Memo[TypeLine] = Memo(self._read_type_line)
        self._comments = Form("comment", _show_comment, plain)
        self._known_comments: Memo[CommentLine] = Memo(self._read_comment)
        self._properties = Form("property_line", _show_property, plain)
        self._known_properties: Memo[Property] = Memo(self._read_property)

    def statement(
        self, text: str, restore: Restore | None = None
    ) -> tuple[StatementTemplate, Holes]:
        """Template and holes of a statement (without indentation).

        Raises:
            Unreadable: the grammar does not accept it, or would not print it back.
        """
        return self._statements.read(text, restore)

    def type_line(self, text: str, restore: Restore | None = None) -> TypeLine:
        """A type line or a line of its look, indentation included; raises like a statement."""
        if self._plain or restore is not None:
            return self._read_type_line(text, restore)
        return self._known_type_lines[text]

    def _read_type_line(self, text: str, restore: Restore | None = None) -> TypeLine:
        parts, holes = self._type_lines.read(text, restore)
        return TypeLine(parts.line(holes), parts.strategy and parts.strategy(holes))

    def parameter(self, text: str, restore: Restore | None = None) -> Parameter:
        """A line of the ``# Params:`` section; raises like a statement."""
        template, holes = self._parameters.read(text, restore)
        return template(holes)

    def head(self, text: str, restore: Restore | None = None) -> Head:
        """``subgraph @G(…) {``; raises like a statement."""
        template, holes = self._heads.read(text, restore)
        return template(holes)

    def parameter_list(self, text: str, restore: Restore | None = None) -> ParameterList:
        """``# Parameters: 2, (…)``; raises like a statement."""
        template, holes = self._lists.read(text, restore)
        return template(holes)

    def property(self, text: str, line: int) -> Property:
        """A header line or graph attribute; raises like a statement."""
        known = self._known_properties[text]
        return Property(known.key, known.separator, known.value, line)

    def _read_property(self, text: str) -> Property:
        template, holes = self._properties.read(text)
        return template(holes)

    def comment_lines(self, text: str) -> tuple[CommentLine, ...]:
        """Comment lines (whole lines), read at once."""
        known = self._known_comments
        return tuple(known[line] for line in text.split("\n"))

    def _read_comment(self, text: str) -> CommentLine:
        body = text.lstrip(" \t>" if text.startswith(">") else " \t")
        indent = text[: len(text) - len(body)]
        try:
            template, holes = self._comments.read(body)
        except Unreadable:
            return Remark(body, indent)
        return replace(template(holes), indent=indent)


_BARE = StatementStyle(indent="")


def _show_statement(template: StatementTemplate, holes: Holes) -> str:
    return print_statement(template.node(holes, style=_BARE))


def _show_comment(template: Part[CommentLine], holes: Holes) -> str:
    return print_comment(replace(template(holes), indent=""))


def _show_type_line(parts: SignatureParts, holes: Holes) -> str:
    strategy = f" {print_attributes(parts.strategy(holes))}" if parts.strategy else ""
    return strategy + print_signature(parts.line(holes))


def _show_property(template: Part[Property], holes: Holes) -> str:
    made = template(holes)
    return f"{made.key}{made.separator}{made.value}"


def _verify(printed: str, expected: str) -> None:
    if printed != expected:
        column = next(
            (i for i, (a, b) in enumerate(zip(printed, expected, strict=False)) if a != b),
            min(len(printed), len(expected)),
        )
        raise Unreadable("unusual spelling", column)
