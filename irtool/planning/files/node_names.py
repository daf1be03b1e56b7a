"""The numbers in MindSpore's names of operators, replayed from a begin dump.

A strategy file names an operator ``<scope>/<primitive>-op<N>``.  ``N`` counts operators of one
scope and primitive in the order in which MindSpore first names them, which no begin dump prints.
It is the order in which MindSpore also numbers nodes (``CNode_98``): graph by graph as they were
before they were put into each other, in each of them inputs before their users.  So the iterations
of an unrolled loop count from the last to the first, and what a helper method made counts last.
What Python's operators and MindSpore's functions made (``a * b``, ``ops.gelu(x)``) counts from the
result back to what it is made of: there users come before their inputs.

Nodes that bear the name of a Python variable show no number.  Where such a one stands follows from
its neighbours of the same function body, and of the same iteration where that is a loop: source
lines tell that, as what stands in an earlier line, or inside of an expression, is computed before.
What does not follow is not guessed.  One thing no dump shows: where a pass made one product of two
by constants, that one counts last, and two numbers stay unused.  Seen in strategy files that
MindSpore 2.7 saved, for networks whose operators were all given different strategies.
"""

from __future__ import annotations

import re
from collections.abc import Hashable, Mapping, Sequence, Set
from functools import cached_property
from math import inf

from irtool.ir.comments import Location
from irtool.ir.dataclass import dataclass
from irtool.ir.graph import GraphParameter, Node
from irtool.sharding.network.graphs import Network
from irtool.sharding.network.sharded_nodes import primitive

_NUMBERED = re.compile(r"CNode_(\d+)(?:\$\w+)*")
"""A node without a name; behind the sign that of a variable that its call is given to."""
_LOOP = re.compile(r"/?\s*(?:async\s+)?(?:for|while)\b")
_BRANCH = re.compile(r"/?\s*(?:if|elif|else|with)\b")
_DEFINITION = re.compile(r"/?\s*(?:async\s+)?def\b")

Place = tuple[float, int]
"""A number, and how many nodes behind the one that bears it."""
_LEAVES = ("Load", "UpdateState")
_ASSIGNED = re.compile(r"/?\s*\w+\s*=\s*(?=[^=\s])")
"""One name gets a value: what is behind it is visited where the name is used."""
_CHOSEN = re.compile(r"\b(?:if|else|for|and|or|lambda)\b")
_MOST_AROUND = 200
_PRIMITIVE = re.compile(
    r"(?:self(?:\.\w+|\[[^\[\]]*\])+|(?:\w+\.)*[A-Z_][A-Z0-9_]*|(?:\w+\.)*[A-Z]\w*\([^()]*\))\s*(?=\()"
)
"""What is called where a primitive is: an attribute of the cell, a constant, or one made there."""
_FUNCTIONS = "/mindspore/ops/"
"""Where MindSpore's own functions stand."""
_FIRST: Place = (-inf, 0)
_LAST: Place = (inf, 0)


@dataclass(frozen=True, slots=True)
class _Body:
    """A function body that a node was written in: the calls that lead there, and its own place.

    ``branches``: how many conditions and the like stand around it.
    """

    calls: tuple[Location, ...]
    own: Location | None
    in_loop: bool
    branches: int


@dataclass(eq=False)
class Naming:
    """In which order MindSpore names the operators of a dump."""

    network: Network

    def ranked(
        self,
        nodes: Sequence[Node],
        forms: Mapping[Node, Hashable] | None = None,
        known: Sequence[Hashable] = (),
    ) -> tuple[tuple[Node, ...], ...]:
        """Operators of one scope and primitive, by number: each with those it may be.

        Args:
            nodes: the operators.
            forms: what of each ``known`` shows.
            known: the forms by number, where a saved file shows them.

        Returns:
            For each number the operators that may bear it: one where that is known, else all of a
            set whose order cannot be told; such a set stands at each of its numbers.

        Raises:
            ValueError: ``known`` shows other forms than the operators have.
        """
        if forms is None or len(known) != len(nodes):
            return tuple(group for group in self._groups(nodes) for _ in group)
        queues: dict[Hashable, list[tuple[Node, ...]]] = {}
        for form in dict.fromkeys(known):
            alike = [node for node in nodes if forms[node] == form]
            queues[form] = [group for group in self._groups(alike) for _ in group]
        if any(len(queues[form]) != known.count(form) for form in queues):
            raise ValueError("a saved file shows other operators")
        return tuple(queues[form].pop(0) for form in known)

    def _groups(self, nodes: Sequence[Node]) -> list[tuple[Node, ...]]:
        """Sets of operators whose order among each other is not known, in the order of numbers."""
        earlier = self._earlier(nodes)
        sets: list[set[Node]] = [{node} for node in nodes]

        def is_before(one: set[Node], other: set[Node]) -> bool:
            return all(a in earlier[b] and b not in earlier[a] for a in one for b in other)

        def is_apart(one: set[Node], other: set[Node]) -> bool:
            return is_before(one, other) or is_before(other, one)

        position = 0
        while position < len(sets):
            joined = [number for number in range(position + 1, len(sets))
                      if not is_apart(sets[position], sets[number])]  # fmt: skip
            for number in reversed(joined):
                sets[position] |= sets.pop(number)
            position = 0 if joined else position + 1
        sets.sort(key=lambda one: max(len(earlier[node] - one) for node in one))
        return [tuple(sorted(one, key=lambda node: self._lines[node])) for one in sets]

    def _earlier(self, nodes: Sequence[Node]) -> dict[Node, set[Node]]:
        """By operator those that have a lower number, as far as that is known."""
        repeated, elsewhere = self._is_repeated(nodes), self._is_called_elsewhere(nodes)
        lower: dict[Node, set[Node]] = {node: set() for node in nodes}
        for position, first in enumerate(nodes):
            for second in nodes[position + 1 :]:
                if self._is_called(first) and self._is_called(second):
                    sign = self._order(first, second, repeated)
                else:
                    sign = self._order_of_made(first, second, elsewhere)
                if sign:
                    early, late = (first, second) if sign < 0 else (second, first)
                    lower[late].add(early)
        for middle in nodes:  # what is before an earlier one is before
            for node in nodes:
                if middle in lower[node]:
                    lower[node] |= lower[middle]
        return lower

    def _order(self, first: Node, second: Node, repeated: bool) -> int:
        """-1: the first one has the lower number, 1: the second one, 0: nobody knows."""
        if self._is_one_place(first, second):
            return self._order_of_instances(first, second)
        ours, theirs = self._places[first], self._places[second]
        if ours[1] < theirs[0]:
            return -1
        if theirs[1] < ours[0]:
            return 1
        if self._body(first).own is None and self._body(second).own is None:
            return self._order_of_neighbours(first, second)
        if repeated:
            return 0
        for early, late, sign in ((first, second, -1), (second, first, 1)):
            if self._in_one_graph(early, late) and self._leads_to(early, late):
                return sign
        return 0

    def _order_of_made(self, first: Node, second: Node, elsewhere: bool) -> int:
        """-1, 1 or 0 where operators or functions made one of two: users before their inputs.

        ``elsewhere``: what made them was called in several places, whose order is not known.
        """
        makers = {self._maker(first), self._maker(second)}
        ours, theirs = node_number(first), node_number(second)
        if ours is not None and theirs is not None and "" not in makers:
            return -1 if ours < theirs else 1
        if elsewhere or makers != {"function"}:
            return 0
        if self._leads_to(first, second):
            return 1
        return -1 if self._leads_to(second, first) else 0

    def _is_called(self, node: Node) -> bool:
        return self._maker(node) == "primitive"

    def _maker(self, node: Node) -> str:
        """What made a node: a ``primitive`` that was called, a ``function``, or "": not known."""
        if node not in self._makers:
            maker = _maker_of(node, self._body(node).own)
            number = node_number(node)
            # A pass that ran later put it in the place of another one.
            is_late = number is not None and number > self._last_called
            self._makers[node] = "" if maker == "function" and is_late else maker
        return self._makers[node]

    @cached_property
    def _last_called(self) -> int:
        """The highest number of a primitive that the network calls."""
        numbers = [node_number(node) for node in self._lines if node.instance_name]
        return max((number for number in numbers if number is not None), default=0)

    @cached_property
    def _makers(self) -> dict[Node, str]:
        return {}

    def _is_one_place(self, first: Node, second: Node) -> bool:
        """Whether one piece of code made both."""
        one, other = self._body(first), self._body(second)
        return one.own is not None and one.own == other.own and one.calls == other.calls

    def _order_of_instances(self, first: Node, second: Node) -> int:
        """-1, 1 or 0 for two runs of one piece of code: by the numbers of what ran with them."""
        ours, theirs = self._around(first), self._around(second)
        signs = {ours[location] < theirs[location] for location in ours.keys() & theirs.keys()}
        if len(signs) != 1:
            return 0
        return -1 if signs.pop() else 1

    def _order_of_neighbours(self, first: Node, second: Node) -> int:
        """-1, 1 or 0 where no source lines are: by the numbers between which each stands.

        Its own number is near one of the two; so if both say the same, it is sure.
        """
        ours, theirs = self._between(first), self._between(second)
        if ours is None or theirs is None or ours[0] != theirs[0]:
            return 0
        signs = {a < b for a, b in zip(ours[1], theirs[1], strict=True) if a != b}
        if len(signs) != 1 or ours[1][0] == theirs[1][0] or ours[1][1] == theirs[1][1]:
            return 0
        return -1 if signs.pop() else 1

    def _between(self, node: Node) -> tuple[tuple[str, str], tuple[int, int]] | None:
        """Operators and numbers of the numbered nodes of its scope before and behind a node."""
        ends: list[tuple[str, int]] = []
        for forward in (False, True):
            seen: set[Node] = set()
            todo = [node]
            numbers: dict[Node, int] = {}
            while todo:
                current = todo.pop()
                sources = self.network.inputs[current]
                near = [use.node for use in self.network.users_of(current)] if forward else sources
                for item in near:
                    if not isinstance(item, Node) or item.scope != node.scope or item in seen:
                        continue
                    seen.add(item)
                    match = _NUMBERED.fullmatch(item.name or "")
                    if match is None:
                        todo.append(item)
                    elif item.op not in _LEAVES:
                        numbers[item] = int(match[1])
            if len(numbers) != 1:
                return None
            ends += [(item.op, number) for item, number in numbers.items()]
        (before, low), (behind, high) = ends
        return (before, behind), (low, high)

    def _around(self, node: Node) -> dict[Location, int]:
        """Numbers of what stands in the same run of the same code, by its place there."""
        numbers: dict[Location, int] = {}
        seen: set[Node] = {node}
        todo = [node]
        while todo and len(seen) < _MOST_AROUND:
            current = todo.pop(0)
            own = self._body(current).own
            match = _NUMBERED.fullmatch(current.name or "")
            if match is not None and own is not None:
                numbers.setdefault(own, int(match[1]))
            inputs = [item for item in self.network.inputs[current] if isinstance(item, Node)]
            near = [item for item in inputs if self._together(item, current)]
            users = [use.node for use in self.network.users_of(current)]
            near += [item for item in users if self._together(current, item)]
            todo += [item for item in near if item not in seen]
            seen.update(near)
        return numbers

    def _is_called_elsewhere(self, nodes: Sequence[Node]) -> bool:
        """Whether one piece of code made several of them for different calls of it."""
        calls: dict[object, set[object]] = {}
        for node in nodes:
            body = self._body(node)
            if body.own is not None:
                calls.setdefault((body.own.path, body.own.span), set()).add(body.calls)
        return any(len(some) > 1 for some in calls.values())

    def _is_repeated(self, nodes: Sequence[Node]) -> bool:
        """Whether a piece of code made several of them: a loop, or a helper called repeatedly."""
        places = [(item.path, item.span) for node in nodes if (item := self._body(node).own)]
        return len(set(places)) < len(nodes)

    def _leads_to(self, first: Node, second: Node) -> bool:
        """Whether a node depends on another one."""
        line = self._lines[first]
        seen: set[Node] = {second}
        todo = [second]
        while todo:
            for source in self.network.inputs[todo.pop()]:
                if source is first:
                    return True
                if isinstance(source, Node) and source not in seen and self._lines[source] > line:
                    seen.add(source)
                    todo.append(source)
        return False

    # -- numbers -------------------------------------------------------------------------------

    @cached_property
    def _lines(self) -> dict[Node, int]:
        return {node: position for position, node in enumerate(self.network.dump.nodes())}

    @cached_property
    def _places(self) -> dict[Node, tuple[Place, Place]]:
        """By node the first and the last place that its number may have."""
        places: dict[Node, tuple[Place, Place]] = {}
        for node in self._lines:
            match = _NUMBERED.fullmatch(node.name or "")
            if match is not None:
                own = (float(match[1]), 0)
                places[node] = (own, own)
                continue
            low, high = _FIRST, _LAST
            if not self._is_called(node):
                places[node] = low, high
                continue
            for source in self.network.inputs[node]:
                if not isinstance(source, Node) or source not in places:
                    continue
                (number, steps), last = places[source]
                if number == -inf or not self._in_one_graph(source, node) or (number, steps) < low:
                    continue
                low = (number, steps + 1)
                # Its only user is visited right behind it.
                alone = last == (number, steps) and len(self.network.users_of(source)) == 1
                high = low if alone else _LAST
            places[node] = (low, high)
        for node in reversed(self._lines):
            low, high = places[node]
            if low == high or not self._is_called(node):
                continue
            for use in self.network.users_of(node):
                if not self._is_called(use.node):
                    continue
                if use.node in places and self._in_one_graph(node, use.node):
                    high = min(high, places[use.node][1])
            places[node] = (low, max(low, high))
            user = self._comes_right_before(node)
            if user is not None and places[user][0] == places[user][1]:
                number, steps = places[user][0]
                if low <= (number, steps - 1):
                    places[node] = ((number, steps - 1), (number, steps - 1))
        return places

    def _comes_right_before(self, node: Node) -> Node | None:
        """The user that is numbered right behind a node: its only one, which has no other input.

        Only where a node is a part of its user's expression, or the whole of what one name gets:
        a tuple of names is visited whole where the first of them is used.
        """
        users = self.network.users_of(node)
        if len(users) != 1 or not self._in_one_graph(node, users[0].node):
            return None
        user = users[0].node
        if not self._is_called(user):
            return None
        made = [item for item in self.network.inputs[user] if isinstance(item, Node)]
        if any(item is not node and item.op not in _LEAVES for item in made):
            return None
        own, other = self._body(node).own, self._body(user).own
        if own is None or other is None:
            return None
        first = (other.line, other.column or 0) <= (own.line, own.column or 0)
        if first:
            return user  # a part of its expression
        match = _ASSIGNED.match(own.source or "")
        is_all = match is not None and own.column is not None and match.end() >= own.column
        return user if is_all and not _CHOSEN.search(own.source or "") else None

    def _together(self, source: Node, node: Node) -> bool:
        """Whether a node and one of its inputs were written in one body, in one iteration."""
        one, other = self._body(source), self._body(node)
        if one.own is None or other.own is None or one.calls != other.calls:
            return False
        if source.scope != node.scope:
            return False
        return _is_behind(one.own, other.own)

    def _in_one_graph(self, source: Node, node: Node) -> bool:
        """Whether both were written in one body, in one iteration, and were made in one graph.

        What stands behind a condition or a loop is in another graph than what stands before it: so
        every line between the two must be known for one that only computes, and behind a condition
        both must have been made on the same way there.
        """
        one, other = self._body(source), self._body(node)
        if not self._together(source, node) or one.own is None or other.own is None:
            return False
        if one.branches or other.branches:
            # A graph that is made behind a condition names the statement that it comes after.
            return source.comments.locations[:-1] == node.comments.locations[:-1]
        known = self._computing.get(one.calls, set())
        return known.issuperset(range(one.own.line, other.own.line + 1))

    @cached_property
    def _computing(self) -> dict[tuple[Location, ...], set[int]]:
        """Lines of each function body that hold a computation or a call, outside of conditions."""
        computing: dict[tuple[Location, ...], set[int]] = {}
        for node in self._lines:
            lines = node.comments.locations
            for depth, line in enumerate(lines):
                text = line.source or ""
                if _BRANCH.match(text):
                    break
                if not (_LOOP.match(text) or _DEFINITION.match(text)):
                    span = range(line.line, (line.end_line or line.line) + 1)
                    computing.setdefault(tuple(lines[:depth]), set()).update(span)
        return computing

    def _body(self, node: Node) -> _Body:
        body = self._bodies.get(node)
        if body is None:
            lines = node.comments.locations
            own = lines[-1] if lines else None
            start = max(
                (depth for depth, line in enumerate(lines) if _DEFINITION.match(line.source or "")),
                default=-1,
            )
            in_loop = any(_LOOP.match(line.source or "") for line in lines[start + 1 :])
            calls = tuple(line for line in lines[:-1] if not _BRANCH.match(line.source or ""))
            branches = len(lines[:-1]) - len(calls)
            body = self._bodies[node] = _Body(calls, own, in_loop, branches)
        return body

    @cached_property
    def _bodies(self) -> dict[Node, _Body]:
        return {}


def _is_behind(source: Location, user: Location) -> bool:
    """Whether an expression is a part of another one, or stands in an earlier line."""
    if source.column is None or user.column is None or source == user:
        return False
    begin = (source.line, source.column)
    end = (source.end_line or source.line, source.end_column or 0)
    first = (user.line, user.column)
    last = (user.end_line or user.line, user.end_column or 0)
    return (first <= begin and end <= last) or end[0] < first[0]


def _maker_of(node: Node, own: Location | None) -> str:
    if node.instance_name or own is None or own.column is None:
        return "primitive"
    if _FUNCTIONS in own.path.replace("\\", "/"):
        return "function"
    if own.source is None or own.end_line not in (None, own.line):
        return ""
    line = own.source.removeprefix("/")  # columns count behind the sign that begins it
    text = line[own.column : own.end_column].strip()
    called = _PRIMITIVE.match(text)
    return "primitive" if called is not None and _ends_with_call(text, called.end()) else "function"


def _ends_with_call(text: str, start: int) -> bool:
    """Whether what a parenthesis at a position holds reaches to the end of an expression."""
    depth = 0
    for position in range(start, len(text)):
        depth += {"(": 1, ")": -1}.get(text[position], 0)
        if depth == 0:
            return position == len(text) - 1
    return False


def node_number(node: Node) -> int | None:
    """The number that MindSpore gave a node when it made it; None: it bears a variable's name.

    Args:
        node: of a begin dump.
    """
    match = _NUMBERED.fullmatch(node.name or "")
    return None if match is None else int(match[1])


def first_weight(node: Node, among: Set[str]) -> str | None:
    """The first operand that is one of some weights, behind Load, Cast and Depend.

    Args:
        node: an operator.
        among: names of the weights.

    Returns:
        its name; None where no operand is one with a value of its own.
    """
    for source in node.inputs:
        while isinstance(source, Node) and primitive(source) in ("Load", "Cast", "Depend"):
            source = source.inputs[0]
        if (
            isinstance(source, GraphParameter)
            and source.declaration is not None
            and source.declaration.has_default
            and source.name in among
        ):
            return source.name
    return None
