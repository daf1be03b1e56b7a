"""Comment lines under a node or before a graph: scope, source locations, side effects."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from types import EllipsisType
from typing import TypeAlias

from irtool.ir.dataclass import dataclass


@dataclass(frozen=True, slots=True)
class Scope:
    """``# Scope: (Default/net)``, or ``# Fullname with scope: (Default/net/MatMul-op0)``."""

    name: str
    label: str = "# Scope: "
    parenthesised: bool = True
    indent: str = "      "

    @property
    def is_full_name(self) -> bool:
        """Whether the last part is the node's own name rather than a scope."""
        return "ull" in self.label


@dataclass(frozen=True, slots=True)
class Location:
    """``# In file net.py:12~14, 8~20/        x = self.matmul(x, w)/``.

    Lines and columns count from 1 and 0 as Python prints them; ``span`` is the printed text of
    both (its spelling changed with versions), ``source`` the first source line, ``tail`` what
    follows it.
    """

    path: str
    span: str
    line: int
    end_line: int | None
    column: int | None
    end_column: int | None
    source: str | None
    tail: str = ""
    lead: str = "# In file "
    indent: str = "      "

    @property
    def is_shared(self) -> bool:
        """Whether MindSpore says that several nodes stem from this source line."""
        return "can be shared by multiple nodes" in self.tail


@dataclass(frozen=True, slots=True)
class SideEffect:
    """``# SideEffect: { memory io load }``."""

    effects: tuple[str, ...]
    indent: str = "      "


@dataclass(frozen=True, slots=True)
class Heading:
    """A line that says what the following ones are, such as the forward node's location."""

    text: str
    indent: str = "      "

    @property
    def opens_forward(self) -> bool:
        """Whether the locations that follow are the forward node's."""
        return "forward node" in self.text


@dataclass(frozen=True, slots=True)
class Remark:
    """Any other comment: the user's own Python comment, or text of an unknown kind."""

    text: str
    indent: str = "      "


CommentLine: TypeAlias = Scope | Location | SideEffect | Heading | Remark


class Comments:
    """The comment lines of one node or graph, read when first asked for.

    Two thirds of a dump are comments and most analyses never look at them, so a reader may pass
    the text and a function that reads it; printing goes through the lines that it returns.
    """

    __slots__ = ("_decode", "_lines", "_rest", "_scope", "_text")

    def __init__(self, lines: tuple[CommentLine, ...] = ()) -> None:
        self._lines: tuple[CommentLine, ...] | None = lines
        self._text = ""
        self._rest: str | None = None
        self._scope: Scope | EllipsisType | None = ...
        self._decode: Callable[[str], tuple[CommentLine, ...]] | None = None

    @classmethod
    def deferred(
        cls,
        text: str,
        rest: str | None,
        decode: Callable[[str], tuple[CommentLine, ...]],
        scope: Scope | EllipsisType | None = ...,
    ) -> Comments:
        """Comments that are read when they are first needed.

        Args:
            text: their first lines.
            rest: the lines after these, which other comments may share; None where there are none.
            decode: reads whole lines.
            scope: the scope among them, None if there is none; left out where nobody looked yet.
        """
        comments = cls()
        comments._lines, comments._text, comments._rest = None, text, rest
        comments._decode, comments._scope = decode, scope
        return comments

    @property
    def lines(self) -> tuple[CommentLine, ...]:
        """All comment lines in printed order."""
        if self._lines is None:
            assert self._decode is not None
            self._lines = self._decode(self._whole_text)
            self._text, self._rest, self._decode = "", None, None
        return self._lines

    @property
    def unread(self) -> str | None:
        """The text of comments that nobody has looked at yet; None once they are read."""
        return None if self._lines is not None else self._whole_text

    @property
    def _whole_text(self) -> str:
        return self._text if self._rest is None else f"{self._text}\n{self._rest}"

    @property
    def scope(self) -> Scope | None:
        """The scope line: mostly the first of many, so that the others may stay unread."""
        if self._scope is ...:
            lines = self._one_by_one()
            self._scope = next((line for line in lines if isinstance(line, Scope)), None)
        return self._scope

    def _one_by_one(self) -> Iterator[CommentLine]:
        if self._lines is not None or self._decode is None:
            yield from self.lines
            return
        for part in (self._text, self._rest):
            rest = part or ""
            while rest:
                text, _, rest = rest.partition("\n")
                yield from self._decode(text)

    @property
    def locations(self) -> tuple[Location, ...]:
        """Where the user's code made this node, outermost call first."""
        locations: list[Location] = []
        for line in self.lines:
            if isinstance(line, Heading) and line.opens_forward:
                break
            if isinstance(line, Location):
                locations.append(line)
        return tuple(locations)

    @property
    def forward_locations(self) -> tuple[Location, ...]:
        """Of a gradient node: where the user's code made its forward node."""
        locations: list[Location] = []
        inside = False
        for line in self.lines:
            if isinstance(line, Heading):
                inside = line.opens_forward
            elif inside and isinstance(line, Location):
                locations.append(line)
        return tuple(locations)

    @property
    def is_backward(self) -> bool:
        """Whether the compiler names a forward node for this one."""
        if self._lines is None:
            return _FORWARD in self._text or (self._rest is not None and _FORWARD in self._rest)
        return any(isinstance(line, Heading) and line.opens_forward for line in self._lines)

    def __len__(self) -> int:
        return len(self.lines)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Comments) and self.lines == other.lines

    def __hash__(self) -> int:
        return hash(self.lines)

    def __repr__(self) -> str:
        return f"Comments({self.lines!r})"

    def __reduce__(self) -> tuple[type[Comments], tuple[tuple[CommentLine, ...]]]:
        return Comments, (self.lines,)


_FORWARD = "# Corresponding forward node candidate:"
NO_COMMENTS = Comments()


class CommentTexts:
    """Makes comments of one dump out of their texts, and keeps what they have in common once.

    The scope, which comes first, is each statement's own; the lines of code after it are those of
    all statements that the same code made, in every layer.

    Args:
        decode: reads comment lines.
    """

    def __init__(self, decode: Callable[[str], tuple[CommentLine, ...]]) -> None:
        self._decode = decode
        self._rests: dict[str, str] = {}
        self._known: dict[tuple[str, str | None], Comments] = {}

    def comments(self, text: str) -> Comments:
        """Comments of whole lines; equal texts give one object."""
        key = self._parted(text)
        known = self._known.get(key)
        if known is None:
            known = self._known[key] = Comments.deferred(*key, self._decode)
        return known

    def with_scope(self, text: str, scope: Scope | EllipsisType | None) -> Comments:
        """Comments whose scope may be known already: see :meth:`Comments.deferred`."""
        return Comments.deferred(*self._parted(text), self._decode, scope)

    def _parted(self, text: str) -> tuple[str, str | None]:
        first, line_feed, rest = text.partition("\n")
        return first, self._rests.setdefault(rest, rest) if line_feed else None
