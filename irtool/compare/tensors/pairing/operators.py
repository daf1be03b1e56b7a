"""Which operators of two dumps are the same one.

Names do not say: a split, an added or a reordered operator gives other numbers to all that come
behind it, so equal names may be different operators.  In this order:

1. nodes of the graphs, where both dumps were joined with one and the graphs were matched;
2. a map that the user gave;
3. modules by their path in the network;
4. calls by operator, shapes and the values of the parameters that they read, where that is unique,
   and it is not the values that changed places;
5. of two frameworks, calls of one kind that put out the same values;
6. the order of calls between what is known by then;
7. gradients through their forward calls.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from difflib import SequenceMatcher
from itertools import pairwise
from typing import Literal, NamedTuple, TypeAlias

from irtool.compare.tensors.measuring.measure import complete, has_figures
from irtool.compare.tensors.model import Columns, Op, TensorRun
from irtool.compare.tensors.pairing.exchanged import placed
from irtool.compare.tensors.semantics import family
from irtool.ir.graph import Node

How: TypeAlias = Literal[
    "graph", "map", "module", "parameters", "values", "order", "gradient", "name", "flow"
]

_NUMBER = re.compile(r"-op\d+|\.\d+(?=\.(?:forward|backward))|(?<=\.)\d+$")
_WORD = re.compile(r"_|(?<=.)(?:ext|v2)$|^reduce")
_SAME_WORD = {
    "iadd": "add", "radd": "add", "tensoradd": "add", "isub": "sub", "rsub": "sub",
    "imul": "mul", "rmul": "mul", "muls": "mul", "multiply": "mul", "realdiv": "div",
    "truediv": "div", "itruediv": "div", "rtruediv": "div", "divs": "div", "truedivide": "div",
    "maskedfill": "select", "where": "select", "fastgelu": "gelu", "newgelu": "gelu",
}  # fmt: skip
"""Operators of both frameworks that are called otherwise."""
_MOST_COMPARED = 3000
"""Calls of a gap up to which the best alignment is searched; beyond, equal ends are taken."""


class OpPair(NamedTuple):
    """Two operators that are the same one, and how that is known."""

    left: Op
    right: Op
    how: How


def pair_operators(
    left: TensorRun,
    right: TensorRun,
    nodes: Mapping[Node, Node] | None = None,
    given: Mapping[str, str] | None = None,
    *,
    calls: bool = True,
) -> list[OpPair]:
    """Pairs of operators in the order of the left dump.

    Args:
        left: one dump.
        right: the other.
        nodes: matched nodes of the graphs that the dumps were joined with.
        given: names of the left dump and what they are called in the right one.
        calls: whether to look for pairs of calls too, not of modules and optimizers alone.
    """
    pairs = _Pairs(left, right)
    pairs.by_own_names(lambda op: op.type == "Parameter")
    if nodes:
        pairs.by_nodes(nodes)
    if given:
        pairs.by_names(given)
    if not left.order_known or not right.order_known:
        pairs.by_own_names()
        return pairs.sorted()
    pairs.by_modules()
    for phase in ("forward", "optimizer", "backward") if calls else ("optimizer",):
        if phase == "backward":
            pairs.by_forward_calls()
        pairs.by_unique(phase)
        pairs.by_values(phase)
        pairs.by_order(phase)
    return pairs.sorted()


class _Pairs:
    def __init__(self, left: TensorRun, right: TensorRun) -> None:
        self.runs = left, right
        self.left: dict[int, tuple[int, How]] = {}
        self.right: dict[int, int] = {}
        cross = left.framework != right.framework and bool(left.framework and right.framework)
        self.cross = cross or (left.kind == "msprobe" and right.kind != "msprobe")
        self._phases: dict[tuple[int, str], list[Op]] = {}
        self._keys: tuple[dict[int, Hashable], dict[int, Hashable]] = ({}, {})
        self._calls = [
            {op.name: op.index for op in run.ops if op.call and op.phase == "forward"}
            for run in self.runs
        ]

    def pair(self, a: int, b: int, how: How) -> None:
        if a in self.left or b in self.right:
            return
        if not self._is_split(a, b) and not self._is_of_other_calls(a, b):
            self.left[a] = (b, how)
            self.right[b] = a

    def _is_split(self, a: int, b: int) -> bool:
        """Whether one of two products is only a part of the other: no partner for it."""
        ours, theirs = self.runs[0].ops[a], self.runs[1].ops[b]
        if ours.is_module or family(ours.type) not in ("matmul", "convolution"):
            return False
        if _shapes(ours, self.runs[0].columns) == _shapes(theirs, self.runs[1].columns):
            return False
        if ours.type != theirs.type or (ours.phase == "backward" and ours.call):
            return False
        sizes = _sizes(ours, self.runs[0].columns), _sizes(theirs, self.runs[1].columns)
        return any(sizes[1].get(label, size) != size for label, size in sizes[0].items())

    def _is_of_other_calls(self, a: int, b: int) -> bool:
        """Whether they are gradients of calls that both dumps show and that are not paired."""
        ops = self.runs[0].ops[a], self.runs[1].ops[b]
        if ops[0].phase != "backward" or not all(op.call for op in ops):
            return False
        calls = [self._calls[which].get(op.call) for which, op in enumerate(ops)]
        if calls[0] is None or calls[1] is None:
            return False
        match = self.left.get(calls[0])
        return match is None or match[0] != calls[1]

    def sorted(self) -> list[OpPair]:
        ours, theirs = self.runs[0].ops, self.runs[1].ops
        return [OpPair(ours[a], theirs[b], how) for a, (b, how) in sorted(self.left.items())]

    def of_phase(self, which: int, phase: str) -> list[Op]:
        """Operators of one phase, in their order."""
        ops = self._phases.get((which, phase))
        if ops is None:
            ops = [op for op in self.runs[which].ops if op.phase == phase]
            self._phases[which, phase] = ops
        return ops

    def free(self, which: int, phase: str) -> list[Op]:
        """Those of them that have no partner yet."""
        taken = self.right if which else self.left
        return [op for op in self.of_phase(which, phase) if op.index not in taken]

    # -- what is known for sure

    def by_nodes(self, nodes: Mapping[Node, Node]) -> None:
        theirs: dict[Node, list[int]] = {}
        for op in self.runs[1].ops:
            if op.node is not None:
                theirs.setdefault(op.node, []).append(op.index)
        seen: dict[Node, int] = {}
        for op in self.runs[0].ops:
            if op.node is None:
                continue
            run = seen.get(op.node, 0)
            seen[op.node] = run + 1
            other = nodes.get(op.node)
            places = theirs.get(other, []) if other is not None else []
            if run < len(places):
                self.pair(op.index, places[run], "graph")

    def by_names(self, given: Mapping[str, str]) -> None:
        theirs = {op.name: op.index for op in self.runs[1].ops}
        prefixes = sorted(given, key=len, reverse=True)
        for op in self.runs[0].ops:
            name = given.get(op.name)
            if name is None:
                name = _renamed(op.name, prefixes, given)
            if name is not None and name in theirs:
                self.pair(op.index, theirs[name], "map")

    def by_own_names(self, wanted: Callable[[Op], bool] = lambda op: True) -> None:
        theirs = {op.name: op.index for op in self.runs[1].ops if wanted(op)}
        for op in self.runs[0].ops:
            if op.name in theirs and wanted(op):
                self.pair(op.index, theirs[op.name], "name")

    def by_modules(self) -> None:
        """Modules of the same path, direction and count of calls."""
        theirs = {module_key(op): op.index for op in self.runs[1].ops if op.is_module}
        for op in self.runs[0].ops:
            if op.is_module and (match := theirs.get(module_key(op))) is not None:
                self.pair(op.index, match, "module")

    def by_forward_calls(self) -> None:
        """Gradients of calls that are paired."""
        ours, theirs = self.runs[0].ops, self.runs[1].ops
        if not self.of_phase(0, "backward"):
            return
        calls = {ours[a].name: theirs[b].name for a, (b, _) in self.left.items() if ours[a].call}
        backward = {op.call: op.index for op in theirs if op.phase == "backward" and op.call}
        for op in self.free(0, "backward"):
            match = backward.get(calls.get(op.call, "")) if op.call else None
            if match is not None:
                self.pair(op.index, match, "gradient")

    # -- what is likely

    def by_unique(self, phase: str) -> None:
        """Calls whose operator, shapes and parameter values nobody else has, in any order.

        Where it is the parameters that changed places, those are paired that stand in one place.
        """
        groups: list[dict[tuple[Hashable, Hashable], list[Op]]] = []
        for which in (0, 1):
            columns = self.runs[which].columns
            members: dict[tuple[Hashable, Hashable], list[Op]] = {}
            for op in self.free(which, phase):
                if not op.parameters:
                    continue
                values = _parameter_values(op, columns)
                if values:
                    members.setdefault((self._key(which, op), values), []).append(op)
            groups.append(members)
        same: dict[Hashable, list[tuple[Op, Op]]] = {}
        for key, ours in groups[0].items():
            theirs = groups[1].get(key, [])
            if len(ours) == len(theirs) == 1:
                same.setdefault(key[0], []).append((ours[0], theirs[0]))
            elif len(ours) == len(theirs):  # norms that half precision rounds may be alike
                sides = [
                    {_parameter_means(op, run.columns): op for op in ops}
                    for run, ops in zip(self.runs, (ours, theirs), strict=True)
                ]
                if len(sides[0]) == len(ours) and sides[0].keys() == sides[1].keys():
                    pairs = [(op, sides[1][means]) for means, op in sides[0].items()]
                    same.setdefault(key[0], []).extend(pairs)
        for a, b, told in placed(self.runs, same.values()):
            self.pair(a.index, b.index, "order" if told == "order" else "parameters")

    def by_values(self, phase: str) -> None:
        """Calls of one kind whose results have the same figures, in the same order."""
        if not self.cross:
            return
        for ours, theirs in self._gaps(phase):
            for a, b in aligned(ours, theirs, self._value_key):
                self.pair(a.index, b.index, "values")

    def by_order(self, phase: str) -> None:
        """Calls in the same order between pairs that are known."""
        for key in (self._key, self._loose_key, self._input_key):
            if not (self.free(0, phase) and self.free(1, phase)):
                return
            for ours, theirs in self._gaps(phase):
                for a, b in aligned(ours, theirs, key):
                    self.pair(a.index, b.index, "order")

    def _gaps(self, phase: str) -> Iterable[tuple[list[Op], list[Op]]]:
        """Free calls of both sides between known pairs; pairs that cross others bound nothing."""
        ours, theirs = self.of_phase(0, phase), self.of_phase(1, phase)
        place = {op.index: n for n, op in enumerate(theirs)}
        anchors = [
            (n, place[self.left[op.index][0]])
            for n, op in enumerate(ours)
            if op.index in self.left and self.left[op.index][0] in place
        ]
        bounds = [(-1, -1), *_rising(anchors), (len(ours), len(theirs))]
        for (a, b), (c, d) in pairwise(bounds):
            left = [op for op in ours[a + 1 : c] if op.index not in self.left]
            right = [op for op in theirs[b + 1 : d] if op.index not in self.right]
            if left and right:
                yield left, right

    def _key(self, which: int, op: Op) -> Hashable:
        known = self._keys[which].get(op.index)
        if known is None:
            shapes = self.runs[which].columns.shapes
            if self.cross:
                sizes = tuple(math.prod(shapes[place]) for place in op.outputs)
                known = (kind_of(op), op.phase, sizes)
            else:
                inputs = tuple([shapes[place] for place in op.inputs])  # a list is quicker made
                results = tuple([shapes[place] for place in op.outputs])
                known = (_scope(op), op.type, inputs, results)
            self._keys[which][op.index] = known
        return known

    def _value_key(self, which: int, op: Op) -> Hashable:
        """What a call puts out, roughly; nothing else is like what has no figures, or is flat."""
        columns = self.runs[which].columns
        key: list[Hashable] = [kind_of(op)]
        for place in op.outputs[:1]:
            if not has_figures(columns, place):
                complete(columns, place, False)
            norm, most, least = columns.norm[place], columns.most[place], columns.least[place]
            if norm > 0 and most != least:
                key += [math.prod(columns.shapes[place]), f"{norm:.3e}", f"{most:.2e}"]
        return tuple(key) if len(key) > 1 else (which, op.index)

    def _loose_key(self, which: int, op: Op) -> Hashable:
        """A key that stays where a fault put another operator of the same family in the place."""
        shapes = self.runs[which].columns.shapes
        places = (*op.inputs[:1], *op.outputs[:1])
        sizes = tuple(math.prod(shapes[place]) for place in places)
        kind = kind_of(op) if self.cross else family(op.type)
        return (op.type.lower() if kind in ("unknown", "view") else kind, sizes)

    def _input_key(self, which: int, op: Op) -> Hashable:
        """Less still: the same operator on inputs of these sizes, whatever comes out."""
        shapes = self.runs[which].columns.shapes
        if family(op.type) not in ("reduce", "norm", "softmax", "loss"):
            return (which, op.index)
        return (op.type.lower(), tuple(math.prod(shapes[place]) for place in op.inputs))


def kind_of(op: Op) -> str:
    """The family of an operator; functions of one value are as many kinds as there are names.

    Args:
        op: of a tensor dump of either framework.
    """
    kind = family(op.type)
    if kind not in ("elementwise", "product", "sum", "reduce"):
        return kind
    word = _WORD.sub("", op.type.lower())
    return _SAME_WORD.get(word, word)


def _shapes(op: Op, columns: Columns) -> list[Hashable]:
    """Labels and shapes of an operator's tensors."""
    labels, shapes = columns.labels, columns.shapes
    places = (*op.inputs, *op.outputs)
    return [*[labels[place] for place in places], *[shapes[place] for place in places]]


def _sizes(op: Op, columns: Columns) -> dict[str, int]:
    """Numbers of elements of an operator's tensors."""
    return {columns.labels[place]: math.prod(columns.shapes[place]) for place in op.tensors}


def _renamed(name: str, prefixes: Sequence[str], given: Mapping[str, str]) -> str | None:
    """A name whose beginning the map knows: a line for a module serves all that is in it."""
    for prefix in prefixes:
        if prefix and prefix in name:
            return name.replace(prefix, given[prefix], 1)
    return None


def module_key(op: Op) -> Hashable:
    """What a module is known by on both sides: its path, direction and count of calls.

    Args:
        op: a module, or the gradients of its parameters.
    """
    call = op.name.rpartition(".")[2]
    grads = ".parameters_grad" in op.name
    return (op.owner, op.phase, grads, call)


def _scope(op: Op) -> str:
    """Where a call stands, by its name without counters; calls of APIs say nothing."""
    return "" if op.call else _NUMBER.sub("", op.name)


def _parameter_values(op: Op, columns: Columns) -> Hashable:
    """What the parameters that a call reads are, roughly; None where that is not known."""
    values: list[Hashable] = []
    for place in sorted(op.parameters) if len(op.parameters) > 1 else op.parameters:
        norm, most = columns.norm[place], columns.most[place]
        if math.isnan(norm) or math.isnan(most):
            return None
        if norm == 0 or columns.least[place] == most:
            continue  # zeros and ones are the same everywhere
        values.append((columns.shapes[place], f"{norm:.3e} {most:.2e}"))
    return tuple(values) or None


def _parameter_means(op: Op, columns: Columns) -> Hashable:
    """What tells parameters apart whose norms and largest values are alike."""
    places = sorted(op.parameters)
    return tuple((f"{columns.least[p]:.2e}", f"{columns.mean[p]:.2e}") for p in places)


def _rising(pairs: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
    """The longest chain of pairs whose both places rise."""
    from bisect import bisect_left

    if all(a[1] < b[1] for a, b in pairwise(pairs)):  # nearly always
        return list(pairs)
    tails: list[int] = []
    last: list[int] = []
    before: list[int] = [-1] * len(pairs)
    for n, (_, place) in enumerate(pairs):
        length = bisect_left(tails, place)
        before[n] = last[length - 1] if length else -1
        if length == len(tails):
            tails.append(place)
            last.append(n)
        else:
            tails[length], last[length] = place, n
    chain: list[tuple[int, int]] = []
    n = last[-1] if last else -1
    while n >= 0:
        chain.append(pairs[n])
        n = before[n]
    return chain[::-1]


def aligned(
    ours: Sequence[Op], theirs: Sequence[Op], key: Callable[[int, Op], Hashable]
) -> Iterable[tuple[Op, Op]]:
    """Pairs of calls with equal keys in the same order, as many as possible.

    Equal heads and tails are paired first; what is between them by its longest common blocks, where
    it is not too long for that.

    Args:
        ours: calls of the left side, in order.
        theirs: calls of the right side, in order.
        key: of a call, given the side (0, 1) and the call.
    """
    left, right = [key(0, op) for op in ours], [key(1, op) for op in theirs]
    if left == right:
        yield from zip(ours, theirs, strict=True)
        return
    head = 0
    while head < min(len(left), len(right)) and left[head] == right[head]:
        head += 1
    tail = 0
    limit = min(len(left), len(right)) - head
    while tail < limit and left[-1 - tail] == right[-1 - tail]:
        tail += 1
    yield from zip(ours[:head], theirs[:head], strict=True)
    if tail:
        yield from zip(ours[-tail:], theirs[-tail:], strict=True)
    middle = left[head : len(left) - tail], right[head : len(right) - tail]
    if not middle[0] or not middle[1] or max(map(len, middle)) > _MOST_COMPARED:
        return
    matcher = SequenceMatcher(None, middle[0], middle[1], autojunk=False)
    for a, b, size in matcher.get_matching_blocks():
        for n in range(size):
            yield ours[head + a + n], theirs[head + b + n]
