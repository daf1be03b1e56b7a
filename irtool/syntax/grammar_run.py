"""Runs the tables that Lark made of a grammar, without what only its messages need.

Lark counts lines and columns of each token and keeps what came before it, for the messages of
errors, and that is most of its time.  Here its own terminals, tables and callbacks are used for
records that are right; whatever they do not accept is Lark's to parse, and to tell.
"""

from __future__ import annotations

from collections.abc import Callable
from operator import itemgetter
from typing import Any, NamedTuple, TypeAlias, cast

from lark import Lark, Token
from lark.grammar import Rule, Symbol, Terminal

from irtool.syntax.pieces import PIECES, Piece, Pieces

_Maker: TypeAlias = Callable[[list[Any]], Any]
_Match: TypeAlias = Callable[[str, int], Any]
_Action: TypeAlias = tuple[int, int, _Maker | None, str]
"""The next state; or (after -1) how many values a rule takes, what makes one of them, its name."""
_SHIFT = "Shift"
_END = "$END"


class NotRun(Exception):
    """A record that the quick run through the grammar does not take; Lark has to parse it."""


class _Matches(dict[int, _Match]):
    """By state: what finds the next token, made when first needed."""

    def __init__(self, lexers: Any) -> None:
        super().__init__()
        self._lexers = lexers

    def __missing__(self, state: int) -> _Match:
        lexer = self._lexers[state]
        (pattern,) = lexer.scanner._mres
        if lexer.callback or lexer.ignore_types:
            raise NotRun
        self[state] = pattern.match
        return cast("_Match", pattern.match)


class _Actions(dict[int, dict[str, _Action]]):
    """By state and token: what to do, made when first needed."""

    def __init__(self, states: Any, transformer: object) -> None:
        super().__init__()
        self._states = states
        self._transformer = transformer
        self._makers: dict[Rule, _Maker] = {}

    def __missing__(self, state: int) -> dict[str, _Action]:
        made: dict[str, _Action] = {
            name: (argument, 0, None, "")
            if str(action) == _SHIFT
            else (-1, len(argument.expansion), self._maker(argument), argument.origin.name)
            for name, (action, argument) in self._states[state].items()
        }
        self[state] = made
        return made

    def _maker(self, rule: Rule) -> _Maker:
        made = self._makers.get(rule)
        if made is None:
            method = getattr(self._transformer, rule.alias or rule.origin.name, None)
            made = self._makers[rule] = _maker(rule, method)
        return made


def _maker(rule: Rule, method: Callable[..., Any] | None) -> _Maker:
    """What makes something of the values of a rule, as Lark would call the transformer.

    Rules that only stand in others (``_rule``, repetitions) give the list of their values.

    Args:
        rule: one production.
        method: of the transformer, which takes values as arguments; None where it has none.
    """
    symbols = rule.expansion
    kept = [place for place, symbol in enumerate(symbols) if not _is_left_out(symbol)]
    inner = {place for place in kept if _is_inner(symbols[place])}
    if rule.options.expand1 and not rule.alias and len(kept) == 1 and not inner:
        return itemgetter(kept[0])
    if method is None and not rule.origin.name.startswith("_"):
        raise NotRun
    # Without the wrapper that Lark calls it by, where there is one.
    call: Any = getattr(method, "base_func", method)
    if inner:
        return _with_inner(kept, inner, None if method is None else call)
    if method is None:
        return lambda values: [values[place] for place in kept]
    if len(kept) == len(symbols):
        return lambda values: call(*values)
    if len(kept) == 1:
        (only,) = kept
        return lambda values: call(values[only])
    return lambda values: call(*[values[place] for place in kept])


def _with_inner(kept: list[int], inner: set[int], call: Callable[..., Any] | None) -> _Maker:
    """As :func:`_maker`, where some values are lists of values."""

    def make(values: list[Any]) -> Any:
        taken: list[Any] = []
        for place in kept:
            value = values[place]
            if place not in inner:
                taken.append(value)
            elif taken:
                taken += value
            else:
                taken = value  # nobody else has it: repetitions grow in place
        return taken if call is None else call(*taken)

    return make


def _is_left_out(symbol: Symbol) -> bool:
    return isinstance(symbol, Terminal) and symbol.filter_out


def _is_inner(symbol: Symbol) -> bool:
    return not symbol.is_term and symbol.name.startswith("_")


class _Begins(dict[int, tuple[str, _Match] | None]):
    """By state: the rule whose pieces may begin there, and what finds one."""

    def __init__(self, actions: _Actions) -> None:
        super().__init__()
        self._actions = actions

    def __missing__(self, state: int) -> tuple[str, _Match] | None:
        follows = self._actions[state]
        rule = next((rule for rule in PIECES if rule in follows), None)
        self[state] = made = None if rule is None else (rule, PIECES[rule].match)
        return made


class _Awaited(NamedTuple):
    """A piece that was not met before, until its rule is complete."""

    piece: Piece
    rule: str
    depth: int
    end: int


class Run:
    """The tables of a parser.

    Args:
        parser: LALR, with a contextual lexer.
        transformer: its own; each method takes the values of a rule as arguments.

    Raises:
        Exception: this version of Lark keeps them elsewhere.
    """

    def __init__(self, parser: Lark, transformer: object) -> None:
        front = cast("Any", parser).parser
        core = front.parser.parser
        table = core.parse_table
        self._starts: dict[str, int] = table.start_states
        self._ends: dict[str, int] = table.end_states
        self._matches = _Matches(front.lexer.lexers)
        self._actions = _Actions(table.states, transformer)
        self._begins = _Begins(self._actions)
        self._pieces = Pieces()
        # Tokens that some rule takes a value of.
        self._kept = {
            symbol.name
            for rule in core.callbacks
            for symbol in rule.expansion
            if symbol.is_term and not _is_left_out(symbol)
        }

    def parse(self, text: str, start: str, masked: bool = False) -> Any:
        """What the transformer makes of a text.

        Args:
            text: the record.
            start: start symbol of the grammar.
            masked: runs of digits are indices of holes, so that pieces mean the same elsewhere.

        Raises:
            Exception: the grammar does not accept it, or a callback refuses it.
        """
        matches, actions, begins, kept = self._matches, self._actions, self._begins, self._kept
        state, end = self._starts[start], self._ends[start]
        states, values = [state], list[Any]()
        position, length = 0, len(text)
        awaited: _Awaited | None = None
        while True:
            if masked and awaited is None and (begin := begins[state]) is not None:
                rule, find = begin
                if (lexeme := find(text, position)) is not None:
                    piece = self._pieces.piece(state, rule, lexeme.group())
                    if (known := self._pieces.get(piece)) is not None:
                        values.append(known)
                        state = actions[state][rule][0]
                        states.append(state)
                        position = lexeme.end()
                    else:
                        awaited = _Awaited(piece, rule, len(states), lexeme.end())
            before = position
            if position < length:
                lexeme = matches[state](text, position)
                if lexeme is None:
                    raise NotRun
                kind, position = lexeme.lastgroup, lexeme.end()
                token = None
                if kind in kept:  # nobody asks for the others
                    token = str.__new__(Token, lexeme.group())
                    token.type = kind
            else:
                kind, token = _END, None
            while True:
                following, size, make, name = actions[state][kind]
                if following >= 0:
                    break
                taken: list[Any] = []
                if size:
                    taken = values[-size:]
                    del values[-size:], states[-size:]
                assert make is not None
                values.append(make(taken))
                if awaited is not None and len(states) <= awaited.depth:
                    if (awaited.rule, awaited.depth, awaited.end) == (name, len(states), before):
                        self._pieces.keep(awaited.piece, values[-1])
                    awaited = None
                state = actions[states[-1]][name][0]
                if state == end and kind == _END:
                    return values[-1]
                states.append(state)
            state = following
            states.append(state)
            values.append(token)
