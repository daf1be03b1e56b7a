"""What would be legal instead for one operator, whatever the others of the network say of it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import field, replace
from functools import partial
from itertools import islice
from typing import cast

from irtool.ir.dataclass import dataclass
from irtool.ir.finding import Finding
from irtool.ir.graph import Node, node_of
from irtool.ir.units import tuple_text
from irtool.operators.call import OperatorCall, Strategy
from irtool.operators.judgement import Context, Judgement
from irtool.operators.layout import TensorLayout
from irtool.operators.table import rule_of
from irtool.sharding.judge import judge
from irtool.sharding.network.graphs import Network
from irtool.sharding.network.layouts import layout_problem
from irtool.sharding.network.report import CheckResult, OperatorReport
from irtool.sharding.network.strategies import StrategyFormatError, Wanted, wanted
from irtool.sharding.suggest.nearest import (
    Layouts,
    fitted_layouts,
    layouts_near,
    over_devices,
    strategies_near,
)
from irtool.sharding.suggest.neighbours import Neighbours, neighbours_of

SHARED = "parameter-users"
"""The code of findings about parameters that several operators want in different layouts."""
_MOST_FOUND = 3
_MOST_COMPARED = 8
"""Of the nearest, those whose edges are looked at."""
_MOST_TWINS = 2
_MOST_ASKED = 50
_MOST_SEEN = 24
MOST_MOVED = 8
"""Legal ones that are tried of an operator which is legal already."""


def asked_of(node: Node) -> Wanted:
    """What the user asks of an operator; nothing where it can't be read.

    Args:
        node: of the operator.
    """
    try:
        return wanted(node)
    except StrategyFormatError:
        return Wanted()


@dataclass(slots=True)
class Alone:
    """Looks for what is legal instead, operator by operator; equal ones are looked at once.

    Attributes:
        report: what ``check`` says of the network.
        network: the dump with its edges resolved; without it nothing is known of neighbours.
        tried: what was found, by what was asked.
    """

    report: CheckResult
    network: Network | None = None
    tried: dict[object, tuple[Wanted, ...]] = field(
        default_factory=dict[object, "tuple[Wanted, ...]"]
    )

    @property
    def findings(self) -> tuple[Finding, ...]:
        """The errors that are about an operator, of another stage, too."""
        return tuple(
            finding
            for finding in self.report.findings
            if finding.severity == "error" and self.subject(finding) is not None
        )

    def subject(self, finding: Finding) -> OperatorReport | None:
        """The operator that a finding is about; None if it is about none."""
        node = node_of(finding)
        return None if node is None else self.operator(node)

    def operator(self, node: Node) -> OperatorReport | None:
        """What is said of a node, of another stage, too."""
        return self.report.operator(node) or self.report.elsewhere.get(node)

    def options(self, finding: Finding) -> tuple[Wanted, ...]:
        """The nearest that is legal for the operator that a finding is about, best first.

        For a parameter that several operators want in different layouts: what lays it as another
        of its users does.
        """
        operator = self.subject(finding)
        if operator is None or operator.verdict == "unknown":
            return ()
        if operator.verdict == "legal":
            return tuple(self._settling(operator)) if finding.code == SHARED else ()
        asked = asked_of(operator.node)
        if asked.in_layout is None:
            if not _by_strategy(operator):
                return ()
            near = self._once(operator, asked, finding.code, self._near_strategies)
            equals = [Wanted(one, asked.out_strategy) for one in self._of_equals(operator)]
            return _distinct(filter(partial(self._is_legal, operator), equals), near)
        if _takes_layouts(operator):
            return self._once(operator, asked, finding.code, self._near_layouts)
        return self._once(operator, asked, finding.code, self._instead_of_layouts)

    def others(self, node: Node, most: int = MOST_MOVED) -> tuple[Wanted, ...]:
        """What else an operator may be given that has to do with what is refused elsewhere.

        Nearest first, behind what lays a weight as others want it, and what needs no sum of a
        gradient.
        """
        operator = self.operator(node)
        if operator is None or operator.verdict != "legal":
            return ()
        asked = asked_of(node)
        if asked.in_layout is None and not _by_strategy(operator):
            return ()
        near = self._layouts if asked.in_layout is not None else self._strategies
        found = tuple(islice(near(operator, asked), max(most, _MOST_SEEN)))
        alone = (one for one in found if not any(self._judged(operator, one).mirrors))
        return _distinct(self._settling(operator), islice(alone, _MOST_FOUND), found[:most])

    def layouts(self, node: Node, asked: Wanted) -> tuple[TensorLayout, ...]:
        """How the operands of a node lie under what is asked of it; nothing where it is refused."""
        operator = self.operator(node)
        if operator is None:
            return ()
        judgement = self._judged(operator, asked)
        return judgement.input_layouts if judgement.verdict == "legal" else ()

    def why_none(self, finding: Finding) -> str:
        """Why nothing is proposed for a finding; "" where there is nothing to say."""
        operator = self.subject(finding)
        if operator is None or operator.verdict != "illegal":
            return ""
        call = operator.call.call
        if any(operand.items for operand in call.inputs):
            return "not looked for: strategies of operators that take a tuple of tensors"
        judgement = judge(call, _unsplit(call), self._context(operator))
        if judgement.verdict != "illegal":
            return ""
        reason = judgement.reasons[0]
        if reason.message != finding.message:
            return f"no strategy: unsplit it is refused, too: {reason.message}"
        flag, strategy = self._without_a_flag(operator)
        if strategy is not None:
            return (
                f"no strategy, as long as it has {flag}=True; without it this operator takes "
                f"in_strategy {tuple_text(strategy)}"
            )
        return "no strategy: unsplit it is refused for the same"

    # -- strategies and layouts near what is there ------------------------------------------------

    def _near_strategies(self, operator: OperatorReport, asked: Wanted) -> Iterator[Wanted]:
        """The nearest strategies, with the user's ``out_strategy`` if any is legal with it.

        Where the strategy is legal without that, it is the ``out_strategy`` that goes.
        """
        without = replace(asked, out_strategy=None)
        is_output = bool(asked.strategy) and without != asked and self._is_legal(operator, without)
        for one in (without,) if is_output else dict.fromkeys((asked, without)):
            given = [without] if is_output else []
            near = self._beside_neighbours(operator, self._strategies(operator, one))
            twins = (replace(one, strategy=other) for other in self._of_twins(operator))
            found = _distinct(given, near, filter(partial(self._is_legal, operator), twins))
            if found:
                yield from found
                return

    def _beside_neighbours(self, operator: OperatorReport, near: Iterator[Wanted]) -> list[Wanted]:
        """The best of the nearest: those beside which fewer edges get redistributions come first.

        An edge counts as much as a place that the next option is further away.
        """
        options = list(islice(near, _MOST_FOUND if self.network is None else _MOST_COMPARED))
        around = self._neighbours(operator)
        costs = {
            one: place + around.differing(self._judged(operator, one))
            for place, one in enumerate(options)
        }
        return sorted(options, key=lambda one: costs[one])[:_MOST_FOUND]

    def _neighbours(self, operator: OperatorReport) -> Neighbours:
        if self.network is None:
            return Neighbours({})
        return neighbours_of(self.network, self.report, operator)

    def _strategies(self, operator: OperatorReport, asked: Wanted) -> Iterator[Wanted]:
        given = operator.strategy or ()
        out = asked.out_strategy

        def is_legal(strategy: Strategy) -> bool:
            return self._is_legal(operator, Wanted(strategy, out))

        near = strategies_near(operator.call.call, given, self._context(operator), is_legal)
        return (Wanted(strategy, out) for strategy in near)

    def _near_layouts(self, operator: OperatorReport, asked: Wanted) -> Iterator[Wanted]:
        """The nearest layouts, with the user's layouts of the results if any is legal with them.

        Where the layouts are legal without those, it is those that go.
        """
        outputs = [asked.out_layout, None]
        is_output = asked.out_layout is not None and self._is_legal(
            operator, replace(asked, out_layout=None)
        )
        if is_output:
            outputs = [None]
        elif asked.out_layout:
            outputs.insert(1, over_devices(asked.out_layout, self.report.context.stage_size))
        for one in dict.fromkeys(replace(asked, out_layout=out) for out in outputs):
            given = [one] if is_output else []
            near = self._beside_neighbours(operator, self._layouts(operator, one))
            found = _distinct(given, near)
            if found:
                yield from found
                return

    def _layouts(self, operator: OperatorReport, asked: Wanted) -> Iterator[Wanted]:
        def is_legal(layouts: Layouts) -> bool:
            return self._is_legal(operator, replace(asked, in_layout=layouts))

        given = asked.in_layout or ()
        if given:
            near = layouts_near(operator.call.call, given, self._context(operator), is_legal)
            yield from (replace(asked, in_layout=layouts) for layouts in near)

    def _instead_of_layouts(self, operator: OperatorReport, asked: Wanted) -> Iterator[Wanted]:
        """For an operator that takes no layouts the strategies nearest to what they come to."""
        call = operator.call.call
        if rule_of(call.op) is None or not asked.in_layout:
            return  # no strategy is looked at of it
        rows = tuple(layout.strategy for layout in fitted_layouts(asked.in_layout, call))
        if self._is_legal(operator, Wanted(rows)):
            yield Wanted(rows)
        near = self._strategies(replace(operator, strategy=rows), Wanted(rows))
        yield from islice(near, _MOST_FOUND - 1)

    # -- a weight that several operators share ----------------------------------------------------

    def _settling(self, operator: OperatorReport) -> Iterator[Wanted]:
        """What lays an operand as another operator wants a weight of its shape; its like first."""
        asked = asked_of(operator.node)
        held = self._layouts_of_weights(operator)
        if asked.in_layout is not None:
            near = self._layouts(operator, asked)
        elif _by_strategy(operator):
            twins = (Wanted(one, asked.out_strategy) for one in self._of_twins(operator))
            yield from filter(partial(self._is_legal, operator), twins)
            near = self._strategies(operator, asked)
        else:
            return
        settling = (one for one in near if _settles(operator, self._judged(operator, one), held))
        yield from islice(settling, _MOST_FOUND)

    def _layouts_of_weights(self, operator: OperatorReport) -> set[TensorLayout]:
        """How other operators want operands that are as large as a weight of the network."""
        shapes = {weight.shape for weight in self.report.parameters}
        others = (*self.report.operators, *self.report.elsewhere.values())
        return {
            layout
            for other in others
            if other.node is not operator.node
            for layout in other.judgement.input_layouts
            if layout.tensor_shape in shapes
        }

    # -- operators like it ------------------------------------------------------------------------

    def _of_equals(self, operator: OperatorReport) -> tuple[Strategy, ...]:
        """What most operators of the same line of Python have that are legal, in other layers."""
        lines = _lines(operator.node)
        if not lines:
            return ()
        alike = (other for other in self._alike(operator) if _lines(other.node) == lines)
        return _commonest(alike, 1)

    def _of_twins(self, operator: OperatorReport) -> tuple[Strategy, ...]:
        """What most operators like this one have, as steps of a recurrence."""
        others = (one for one in self._alike(operator) if one.strategy != operator.strategy)
        return _commonest(others, _MOST_TWINS)

    def _alike(self, operator: OperatorReport) -> Iterator[OperatorReport]:
        shapes = tuple(tensor.shape for tensor in operator.call.call.tensors)
        for other in self.report.operators:
            if (
                other.op == operator.op
                and other.verdict == "legal"
                and _by_strategy(other)
                and tuple(tensor.shape for tensor in other.call.call.tensors) == shapes
            ):
                yield other

    # -- judging ----------------------------------------------------------------------------------

    def _once(
        self,
        operator: OperatorReport,
        asked: Wanted,
        code: str,
        search: Callable[[OperatorReport, Wanted], Iterable[Wanted]],
    ) -> tuple[Wanted, ...]:
        """What a search finds; nothing where too many different ones were asked before."""
        call = operator.call.call
        try:
            around = None
            if self.network is not None:
                neighbours = neighbours_of(self.network, self.report, operator)
                around = (tuple(neighbours.inputs.items()), neighbours.outputs)
            key: object = (
                call.op,
                call.inputs,
                call.outputs,
                operator.strategy,
                asked,
                around,
                code,
            )
            hash(key)
        except TypeError:
            key = operator.node
        if key not in self.tried:
            is_too_much = len(self.tried) >= _MOST_ASKED
            self.tried[key] = () if is_too_much else tuple(search(operator, asked))
        return self.tried[key]

    def _context(self, operator: OperatorReport) -> Context:
        return self.report.context.for_operators(dynamic=operator.call.call.is_dynamic)

    def _judged(self, operator: OperatorReport, asked: Wanted) -> Judgement:
        return judge(
            operator.call.call,
            asked.strategy,
            self._context(operator),
            in_layout=asked.in_layout,
            out_layout=asked.out_layout,
            out_strategy=asked.out_strategy,
        )

    def _is_legal(self, operator: OperatorReport, asked: Wanted) -> bool:
        call = operator.call.call
        nested = any(operand.items for operand in call.inputs)
        if layout_problem(call, asked, self.report.context, nested=nested) is not None:
            return False
        return self._judged(operator, asked).verdict == "legal"

    def _without_a_flag(self, operator: OperatorReport) -> tuple[str, Strategy | None]:
        """A flag that keeps an operator from being taken unsplit, and what it takes without."""
        call, context = operator.call.call, self._context(operator)
        for name, value in call.attributes.items():
            if value is True:
                rest = {key: other for key, other in call.attributes.items() if key != name}
                without = replace(call, attributes=rest)

                def is_legal(strategy: Strategy, call: OperatorCall = without) -> bool:
                    return judge(call, strategy, context).verdict == "legal"

                if is_legal(operator.strategy or ()):
                    return name, operator.strategy
                near = strategies_near(without, operator.strategy or (), context, is_legal)
                strategy = next(near, None)
                if strategy is not None:
                    return name, strategy
        return "", None


def _distinct(*options: Iterable[Wanted]) -> tuple[Wanted, ...]:
    return tuple(dict.fromkeys(one for several in options for one in several))


def _unsplit(call: OperatorCall) -> Strategy:
    return tuple((1,) * len(tensor.shape or ()) for tensor in call.tensors)


def _takes_layouts(operator: OperatorReport) -> bool:
    """Whether an operator may be given layouts at all; one that shards itself may."""
    rule = rule_of(operator.call.call.op)
    return bool(operator.call.call.attributes.get("self_define_shard")) or (
        rule is not None and rule.layout
    )


def _by_strategy(operator: OperatorReport) -> bool:
    """Whether it was given a strategy of one row a tensor (and not layouts, or nested rows)."""
    node = operator.node
    given = node.written_strategy()
    if not operator.strategy or node.in_layout is not None:
        return False
    if given is None:
        return True  # MindSpore's own strategy is refused, the user may give one
    if not isinstance(given, tuple):
        return False
    rows = cast("tuple[tuple[object, ...], ...]", given)
    return not any(isinstance(item, tuple) for row in rows for item in row)


def _settles(operator: OperatorReport, judgement: Judgement, held: Iterable[TensorLayout]) -> bool:
    """Whether an operator would take one of its operands in such a layout, and does not yet."""
    if judgement.verdict != "legal":
        return False
    pairs = list(zip(operator.judgement.input_layouts, judgement.input_layouts, strict=True))
    return any(
        new.tensor_shape == layout.tensor_shape and new.same_as(layout) and not old.same_as(layout)
        for layout in held
        for old, new in pairs
    )


def _commonest(operators: Iterable[OperatorReport], number: int) -> tuple[Strategy, ...]:
    counts = Counter(operator.strategy for operator in operators)
    return tuple(strategy for strategy, _ in counts.most_common(number) if strategy)


def _lines(node: Node) -> tuple[tuple[str, int], ...]:
    """The lines of Python that made a node, from the outermost call on."""
    return tuple((location.path, location.line) for location in node.comments.locations)
