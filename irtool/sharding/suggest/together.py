"""One choice for every operator that is refused, such that the whole network is accepted."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import field

from irtool.ir.dataclass import dataclass
from irtool.ir.finding import Finding
from irtool.ir.graph import GraphParameter, Node, node_of
from irtool.ir.held import held_by
from irtool.sharding.check import check
from irtool.sharding.network.analysis import Analysis, analysis_of
from irtool.sharding.network.graphs import Network
from irtool.sharding.network.report import CheckResult, OperatorReport
from irtool.sharding.network.strategies import Wanted
from irtool.sharding.network.weights import behind
from irtool.sharding.suggest.alone import SHARED, Alone, asked_of

_MOST_CHECKS = 40
_MOST_WORK = 20_000
"""Operators that may be judged in all checks together: large networks get fewer checks."""
_FEWEST_CHECKS = 8
MOST_SHARED = 24
"""Legal ones that are looked at of each user of a weight."""

Key = tuple[Node, ...]
"""Operators that get the same: they are calls of one primitive, which has one strategy."""


@dataclass(frozen=True, slots=True)
class Repair:
    """What to ask of operators, and what is refused then.

    Attributes:
        chosen: strategies or layouts by operator.
        remaining: errors of the network with these.
    """

    chosen: Mapping[Node, Wanted]
    remaining: tuple[Finding, ...]


def repaired(
    network: Network, report: CheckResult, options: Mapping[Node, tuple[Wanted, ...]]
) -> Repair:
    """Choices with which the network is accepted, or as few errors as a bounded search leaves.

    Starts with the nearest ones. Where the check still refuses, an operator that it names moves on
    to its next option; one that is legal by itself gets options when it is named, and so do the
    other users of its weights.

    Args:
        network: the dump that was checked, its edges resolved.
        report: what ``check`` says of it.
        options: what is legal for each operator that is refused, the nearest first.
    """
    search = _Search(network, report)
    for node, given in options.items():
        search.offer(node, given)
    best: Repair | None = None
    for _ in range(search.most_checks):
        result = check(network.dump, report.context, search.instead, network)
        errors = tuple(one for one in result.findings if one.severity == "error")
        if best is None or len(errors) < len(best.remaining):
            best = Repair(search.instead, errors)
        if not errors or not search.move(result, errors):
            break
    if best is None:
        return Repair({}, ())
    return search.without_needless(best, options) if not best.remaining else best


@dataclass(slots=True)
class _Search:
    """Where a search for choices stands: the options of each primitive, and which one is taken."""

    network: Network
    report: CheckResult
    analysis: Analysis = field(init=False)
    calls: dict[object, Key] = field(init=False)
    options: dict[Key, tuple[Wanted, ...]] = field(default_factory=dict[Key, "tuple[Wanted, ...]"])
    taken: dict[Key, int] = field(default_factory=dict[Key, int])
    shared: set[str] = field(default_factory=set[str])
    """Messages about weights that were laid alike once."""

    def __post_init__(self) -> None:
        self.analysis = analysis_of(self.network, self.report.context)
        calls: dict[object, list[Node]] = {}
        for operator in _operators(self.report):
            calls.setdefault(primitive_of(operator.node), []).append(operator.node)
        self.calls = {key: tuple(nodes) for key, nodes in calls.items()}

    @property
    def most_checks(self) -> int:
        """How often the network may be checked."""
        size = max(1, len(self.report.operators))
        return max(_FEWEST_CHECKS, min(_MOST_CHECKS, _MOST_WORK // size))

    @property
    def instead(self) -> dict[Node, Wanted]:
        """What is asked of the operators now."""
        return {node: self.options[key][place] for key, place in self.taken.items() for node in key}

    def key(self, node: Node) -> Key:
        """The calls of a node's primitive."""
        return self.calls.get(primitive_of(node), (node,))

    def offer(self, node: Node, given: tuple[Wanted, ...]) -> bool:
        """Take the first of these options for a node; whether there is any."""
        key = self.key(node)
        known = self.options.get(key, ())
        self.options[key] = tuple(dict.fromkeys((*known, *given)))
        if self.options[key]:
            self.taken.setdefault(key, 0)
        return len(self.options[key]) > len(known)

    def move(self, result: CheckResult, errors: tuple[Finding, ...]) -> bool:
        """Take another option of an operator that is named, or has to do with one; False: none."""
        alone = Alone(result, self.network)
        for finding in errors:
            concerned = list(self._concerned(finding))
            if finding.code == SHARED and self._share(alone, finding, concerned):
                return True
            if any(self._next(self.key(node)) for node in concerned):
                return True
            for node in concerned:
                key = self.key(node)
                if key in self.options:
                    continue
                given = alone.options(finding) if node is node_of(finding) else ()
                if self.offer(node, given or alone.others(node)):
                    # With it the nearest of the others may do.
                    changed = [self.key(one) for one in concerned]
                    self.taken |= {one: 0 for one in changed if one in self.taken}
                    return True
        curable = [finding for finding in errors if self._is_between(result, finding)]
        return bool(curable) and any(self._next(key) for key in list(self.taken))

    def _share(self, alone: Alone, finding: Finding, users: list[Node]) -> bool:
        """Lay a weight alike for all its users, once: with what is nearest to what they have."""
        weights = {tuple(weight.type.dimensions or ()) for node in users[:1]
                   for weight in self._weights(node) if weight.type is not None}  # fmt: skip
        if finding.message in self.shared or len(users) < 2:
            return False
        self.shared.add(finding.message)
        by_user: list[tuple[Key, dict[object, tuple[int, Wanted]]]] = []
        for node in users:
            layouts: dict[object, tuple[int, Wanted]] = {}
            given = (self.instead.get(node, asked_of(node)), *alone.others(node, MOST_SHARED))
            for place, asked in enumerate(given):
                for layout in alone.layouts(node, asked):
                    if layout.tensor_shape in weights:
                        layouts.setdefault(layout.strides(), (place, asked))
            by_user.append((self.key(node), layouts))
        common: set[object] = set[object].intersection(*(set(layouts) for _, layouts in by_user))
        if not common:
            return False

        def cost(layout: object) -> tuple[int, int]:
            places = [(key, layouts[layout][0]) for key, layouts in by_user]
            untouched = sum(place > 0 and key not in self.options for key, place in places)
            return untouched, sum(place for _, place in places)

        best = min(common, key=cost)
        for key, layouts in by_user:
            place, asked = layouts[best]
            if place or key in self.options:
                known = self.options.get(key, ())
                self.options[key] = tuple(dict.fromkeys((*known, asked)))
                self.taken[key] = self.options[key].index(asked)
        return True

    def _next(self, key: Key) -> bool:
        place = self.taken.get(key)
        if place is None or place + 1 >= len(self.options[key]):
            return False
        self.taken[key] = place + 1
        return True

    def _is_between(self, result: CheckResult, finding: Finding) -> bool:
        """Whether a finding is about operators that are legal, each alone."""
        node = node_of(finding)
        operator = Alone(result).operator(node) if node is not None else None
        return operator is not None and operator.verdict == "legal"

    def _concerned(self, finding: Finding) -> Iterator[Node]:
        """The operator that a finding is about, and the other users of its weights."""
        node = node_of(finding)
        if node is None:
            return
        yield node
        weights = set(map(id, self._weights(node)))
        for operator in _operators(self.report) if weights else ():
            if operator.node is not node and weights & set(map(id, self._weights(operator.node))):
                yield operator.node

    def _weights(self, node: Node) -> list[GraphParameter]:
        sources = self.network.inputs.get(node, ())
        return [weight for one in sources if (weight := behind(self.analysis, one)) is not None]

    def without_needless(self, made: Repair, options: Mapping[Node, tuple[Wanted, ...]]) -> Repair:
        """Choices without those that no finding is about and that change nothing."""
        about = {self.key(node) for node in options}
        for key in [key for key in self.taken if key not in about][:_FEWEST_CHECKS]:
            rest = {node: one for node, one in made.chosen.items() if node not in key}
            result = check(self.network.dump, self.report.context, rest, self.network)
            if all(one.severity != "error" for one in result.findings):
                made = Repair(rest, ())
        return made


def _operators(report: CheckResult) -> tuple[OperatorReport, ...]:
    return (*report.operators, *report.elsewhere.values())


def primitive_of(node: Node) -> object:
    """What calls of one primitive have in common: the cell that holds it, and its name there.

    Args:
        node: that applies a primitive.

    Returns:
        A key; the node itself where no cell holds the primitive.
    """
    return held_by(node) or node
