"""Runs the tables that Lark made of a grammar, without what only its messages need.

Lark counts lines and columns of each token and keeps what came before it, for the messages of
errors, and that is most of its time.  Here its own terminals, tables and callbacks are used for
records that are right; whatever they do not accept is Lark's to parse, and to tell.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias, cast

from lark import Lark, Token

_Match: TypeAlias = Callable[[str, int], Any]
_Action: TypeAlias = tuple[int, int, Callable[[list[Any]], Any] | None, str]
"""The next state; or (after -1) how many values a rule takes, what makes one of them, its name."""
_SHIFT = "Shift"
_END = "$END"


class NotRun(Exception):
    """Lark has to parse it."""


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

    def __init__(self, states: Any, callbacks: Any) -> None:
        super().__init__()
        self._states = states
        self._callbacks = callbacks

    def __missing__(self, state: int) -> dict[str, _Action]:
        made: dict[str, _Action] = {
            name: (argument, 0, None, "")
            if str(action) == _SHIFT
            else (-1, len(argument.expansion), self._callbacks[argument], argument.origin.name)
            for name, (action, argument) in self._states[state].items()
        }
        self[state] = made
        return made


class Run:
    """The tables of a parser.

    Args:
        parser: LALR, with a contextual lexer and a transformer.

    Raises:
        Exception: this version of Lark keeps them elsewhere.
    """

    def __init__(self, parser: Lark) -> None:
        front = cast("Any", parser).parser
        core = front.parser.parser
        table = core.parse_table
        self._starts: dict[str, int] = table.start_states
        self._ends: dict[str, int] = table.end_states
        self._matches = _Matches(front.lexer.lexers)
        self._actions = _Actions(table.states, core.callbacks)

    def parse(self, text: str, start: str) -> Any:
        """What the transformer makes of a text.

        Raises:
            Exception: the grammar does not accept it, or a callback refuses it.
        """
        matches, actions = self._matches, self._actions
        state, end = self._starts[start], self._ends[start]
        states, values = [state], list[Any]()
        position, length = 0, len(text)
        while True:
            if position < length:
                found = matches[state](text, position)
                if found is None:
                    raise NotRun
                kind, position = found.lastgroup, found.end()
                token = str.__new__(Token, found.group())
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
                state = actions[states[-1]][name][0]
                if state == end and token is None:
                    return values[-1]
                states.append(state)
            state = following
            states.append(state)
            values.append(token)
