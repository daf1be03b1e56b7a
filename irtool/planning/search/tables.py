"""A network as tables of costs: what each strategy of each operator costs, alone and beside others.

One number per candidate of an operator (arithmetic, its own collectives, gradients of its weights),
one table per pair of operators that share a tensor (redistribution).  Operators that are called
alike share their candidates and tables, so that repeated layers cost nothing to build.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import field, replace
from functools import cached_property
from itertools import repeat
from math import inf, prod

import numpy as np
import numpy.typing as npt

from irtool.cluster.machine import Machine
from irtool.ir.dataclass import dataclass
from irtool.ir.graph import Node
from irtool.operators.call import Strategy
from irtool.operators.judgement import Judgement
from irtool.planning.cost.costs import (
    BACKWARD_WORK,
    Communication,
    compute_seconds,
    item_bytes,
    operator_communications,
    seconds_of,
)
from irtool.planning.cost.structure import Link, Parameter, Ref, Structure
from irtool.planning.cost.weights import WeightCost, judgement_of_weight, weight_cost
from irtool.planning.search.alike import alike
from irtool.planning.search.candidate_layouts import Layouts, NoLayout, layouts_of, least_prices
from irtool.planning.search.candidates import Candidate, Candidates
from irtool.planning.search.chains import Chains
from irtool.planning.search.effort import EFFORTS, Effort
from irtool.planning.search.exact import Floats, Table
from irtool.planning.search.link_tables import (
    LinkTable,
    PricedLink,
    end_of,
    price_of,
    result_of,
    want_of,
)
from irtool.planning.search.operator_candidates import (
    CannotPlan,
    Given,
    OperatorCandidates,
    index_of,
    kind_of,
)
from irtool.planning.search.shared_weights import Numbered, Shared, alike_of, numbered
from irtool.planning.search.starts import Start, WeightStarts, starts_of


@dataclass(frozen=True, slots=True)
class Hiding:
    """What parts of some seconds do not count, since computing hides communication.

    Attributes:
        sums: of the sums of gradients.
        gathers: of the gathers of weights.
        backward: of the backward pass' computing, which can hide no more than it lasts.
    """

    sums: float = 0.0
    gathers: float = 0.0
    backward: float = 0.0

    def of(self, cost: WeightCost) -> WeightCost:
        """What a weight costs then."""
        if not self.sums and not self.gathers:
            return cost
        return replace(cost, mirrors=self._left(cost.mirrors), shared=self._left(cost.shared))

    def starts(self, starts: tuple[Start, ...]) -> tuple[Start, ...]:
        """What a weight pays of common starts then."""
        left = {True: 1 - self.gathers, False: 1 - self.sums}
        parts = [left[start.bucket[0] == "AllGather"] for start in starts]
        return tuple(
            replace(start, seconds=part * start.seconds, part=part * start.part)
            for start, part in zip(starts, parts, strict=True)
        )

    def _left(self, communications: tuple[Communication, ...]) -> tuple[Communication, ...]:
        left = {True: 1 - self.gathers, False: 1 - self.sums}
        return tuple(
            replace(
                communication, seconds=left[communication.op == "AllGather"] * communication.seconds
            )
            for communication in communications
        )


@dataclass(frozen=True, eq=False)
class Model:
    """The tables of a network.

    ``nodes``: the variables; ``memory``: bytes by candidate; ``shared``: operators that must agree
    on a weight's layout; ``constant`` and ``constant_memory``: what no choice changes;
    ``current``: by variable the candidate that the dump has now, if it has one; ``alone``: links
    of which one variable decides everything, with what they add to its numbers. ``starts``: by
    variable what its weights pay of starts that fused collectives share; ``constant_starts`` and
    ``constant_part``: what weights that no choice changes take part in, and pay of it.
    """

    structure: Structure
    machine: Machine
    chains: Chains
    nodes: tuple[Node, ...]
    candidates: tuple[Candidates, ...]
    unary: tuple[Floats, ...]
    memory: tuple[Floats, ...]
    links: tuple[PricedLink, ...]
    shared: tuple[Shared, ...]
    constant: float
    constant_memory: float
    current: tuple[int | None, ...]
    pinned: frozenset[Node]
    alone: tuple[tuple[Link, int, Floats], ...] = ()
    starts: tuple[tuple[WeightStarts, ...], ...] = ()
    constant_starts: tuple[Start, ...] = ()
    constant_part: float = 0.0

    def pairs(self) -> list[Table]:
        """All tables over two variables, as they are now."""
        tables = [
            Table((item.source, item.target), item.table.values)
            if item.source < item.target
            else Table((item.target, item.source), item.table.flipped)
            for item in self.links
        ]
        return [*tables, *self.equal]

    @cached_property
    def equal(self) -> tuple[Table, ...]:
        """Pairs that must agree on a weight's layout: 0 where they do, infinite elsewhere."""
        made: dict[object, Floats] = {}
        tables: list[Table] = []
        for weight in self.shared:
            first, *others = weight.users
            for other in others:
                key = id(first[1]), id(other[1])
                if key not in made:
                    same = first[1][:, None] == other[1][None, :]
                    made[key] = np.where(same & (first[1] >= 0)[:, None], 0.0, inf)
                tables.append(Table((first[0], other[0]), made[key]))
        return tuple(tables)

    def tables(
        self, unary: Sequence[Floats], shared: Collection[int] = ()
    ) -> tuple[list[int], list[Floats], list[Table]]:
        """The model for a search: sizes, numbers and tables of all variables.

        Args:
            unary: numbers of the operators' candidates.
            shared: which of the weights that several operators use have one layout; the others are
                left out. Each of them is a variable behind the operators: its layout. It has few
                values, and makes tables small that would have to hold an operator's.
        """
        sizes = [len(candidates) for candidates in self.candidates]
        numbers = list(unary)
        pairs = self.pairs()[: len(self.links)]
        for number in shared:
            weight = self.shared[number]
            own = len(sizes)
            sizes.append(weight.count)
            numbers.append(weight.nothing)
            pairs += [
                Table((variable, own), values)
                for (variable, _), values in zip(weight.users, weight.values, strict=True)
            ]
        return sizes, numbers, pairs

    def chosen(self, choices: Sequence[int]) -> dict[Node, Candidate]:
        """The candidates of some choices."""
        return {
            node: candidates.items[choice]
            for node, candidates, choice in zip(self.nodes, self.candidates, choices, strict=True)
        }

    @property
    def own(self) -> tuple[int, ...] | None:
        """The choices that the dump has now; None: it has not all of them."""
        choices = [
            choice if choice is not None else (0 if len(candidates) == 1 else None)
            for choice, candidates in zip(self.current, self.candidates, strict=True)
        ]
        return (
            tuple(choice for choice in choices if choice is not None)
            if None not in choices
            else None
        )

    @property
    def left_out(self) -> tuple[Node, ...]:
        """Operators of which not all strategies are candidates: the search shows no bound then."""
        pairs = zip(self.nodes, self.candidates, strict=True)
        return tuple(node for node, candidates in pairs if candidates.left_out)

    def memory_of(self, choices: Sequence[int]) -> float:
        """Bytes of a device under some choices."""
        own = sum(float(held[choice]) for held, choice in zip(self.memory, choices, strict=True))
        return self.constant_memory + own


def model_of(
    structure: Structure,
    machine: Machine,
    current: Mapping[Node, Given],
    pinned: Mapping[Node, Given],
    tied: Sequence[Sequence[Node]] = (),
    *,
    outs: bool = True,
    hiding: Hiding | None = None,
    near: Mapping[Node, Strategy] | None = None,
    effort: Effort = EFFORTS["full"],
    known: Known | None = None,
    loose: Collection[Node] = (),
) -> Model:
    """The tables of a network: what each strategy of each operator costs, alone and beside others.

    Args:
        structure: the network, its nodes those of a dump without strategies.
        machine: what things cost.
        current: strategies that the dump has now; they are candidates, whatever else is.
        pinned: strategies that must be.
        tied: operators that must have one strategy, whichever.
        outs: whether operators may get an ``out_strategy``.
        hiding: what does not count since it is hidden.
        near: strategies around which to look where operators have too many.
        effort: how many that are.
        known: tables of the same network, for the same question but for ``near``.
        loose: operators that are left out, with their weights and all that leads to them or from
            them: no plan costs less than such tables say.

    Raises:
        CannotPlan: an operator has no legal strategy, or a pinned one is illegal.
    """
    builder = _Builder(
        structure, machine, outs, hiding or Hiding(), near or {}, effort, known or Known(),
        frozenset(loose),
    )  # fmt: skip
    return builder.build(current, pinned, tied)


@dataclass(frozen=True, eq=False, slots=True)
class _Column:
    """By candidate of an operator: seconds, bytes held, and what its weights pay of starts."""

    seconds: Floats
    held: Floats
    starts: tuple[WeightStarts, ...] = ()


@dataclass(eq=False, slots=True)
class Known:
    """Tables that were made of a network: those of operators whose candidates stay are used again.

    Most go by the identity of candidates, so ``gone`` keeps those that others took the place of.
    """

    every: dict[Effort, int] = field(default_factory=dict[Effort, int])
    tried: dict[object, Candidates] = field(default_factory=dict[object, Candidates])
    gone: list[Candidates] = field(default_factory=list[Candidates])
    columns: dict[object, _Column] = field(default_factory=dict[object, "_Column"])
    tables: dict[object, LinkTable] = field(default_factory=dict[object, LinkTable])
    least: dict[object, Floats] = field(default_factory=dict[object, Floats])
    layouts: dict[object, Layouts] = field(default_factory=dict[object, Layouts])
    shared: dict[object, Numbered] = field(default_factory=dict[object, Numbered])

    def most(self, structure: Structure, effort: Effort) -> int:
        """Strategies up to which all of an operator's are looked at."""
        if effort not in self.every:
            self.every[effort] = effort.most(structure)
        return self.every[effort]

    def complete(self) -> dict[object, Candidates]:
        """Candidates that are all there are; the others are forgotten."""
        self.gone += [item for item in self.tried.values() if item.left_out]
        self.tried = {key: item for key, item in self.tried.items() if not item.left_out}
        return self.tried


@dataclass(eq=False, slots=True)
class _Builder:
    structure: Structure
    machine: Machine
    outs: bool
    hiding: Hiding
    near: Mapping[Node, Strategy]
    effort: Effort
    known: Known
    loose: frozenset[Node] = frozenset()

    def build(
        self,
        current: Mapping[Node, Given],
        pinned: Mapping[Node, Given],
        tied: Sequence[Sequence[Node]],
    ) -> Model:
        structure = self.structure
        context = structure.context
        chains = Chains(structure.operators, self.machine, context.enable_alltoall)
        nodes = tuple(node for node in structure.calls if node not in self.loose)
        place = {node: variable for variable, node in enumerate(nodes)}
        tried = OperatorCandidates(
            structure.operators, self.outs, self._near(),
            self.known.most(structure, self.effort), self.effort.few, self.known.complete(),
        )  # fmt: skip
        candidates = tuple(
            tried.of(node, structure.calls[node], current.get(node), pinned.get(node))
            for node in nodes
        )
        owned: dict[Node, list[Parameter]] = {}
        constant, held, constant_part = 0.0, 0.0, 0.0
        constant_starts: list[Start] = []
        for parameter in structure.parameters:
            owner = parameter.owner
            if owner is not None and owner.node in self.loose:
                continue
            if owner is not None and owner.node in place:
                owned.setdefault(owner.node, []).append(parameter)
                continue
            cost = weight_cost(structure, parameter, None, self.machine)
            constant += self.hiding.of(cost).seconds
            held += cost.stored_bytes
            own = self.hiding.starts(starts_of(cost, self.machine))
            constant_starts += own
            constant_part += sum(start.part for start in own) / cost.micro_batches
        unary: list[Floats] = []
        starts: list[tuple[WeightStarts, ...]] = []
        memory: list[Floats] = []
        for node, choices in zip(nodes, candidates, strict=True):
            column = self._column(node, choices, owned.get(node, []))
            unary.append(column.seconds)
            memory.append(column.held)
            starts.append(column.starts)
        links: list[PricedLink] = []
        alone: list[tuple[Link, int, Floats]] = []
        settled: set[object] = set()
        users = Counter(self._use(link, place, candidates) for link in structure.links)
        for link in structure.links:
            ends = [ref.node for ref in (link.source, link.target)]
            if not self.loose.isdisjoint(ends):
                continue
            known = [place[node] for node in ends if node is not None and node in place]
            if len(set(known)) == 2:
                count = users[self._use(link, place, candidates)]
                table = self._table(link, candidates[known[0]], candidates[known[1]], count)
                links.append(PricedLink(link, known[0], known[1], table))
            elif known:
                added = self._alone(link, candidates[known[0]], chains)
                unary[known[0]] = unary[known[0]] + added
                alone.append((link, known[0], added))
            elif (same := (result_of(link), link.target.layout)) not in settled:
                settled.add(same)
                constant += price_of(chains, link, None, None)
        return Model(
            structure,
            self.machine,
            chains,
            nodes,
            candidates,
            tuple(unary),
            tuple(memory),
            tuple(links),
            (*self._shared(place, candidates), *_tied(place, candidates, tied)),
            constant,
            held,
            tuple(
                index_of(choices, current.get(node))
                for node, choices in zip(nodes, candidates, strict=True)
            ),
            frozenset(pinned),
            tuple(alone),
            tuple(starts),
            tuple(constant_starts),
            constant_part,
        )

    def _near(self) -> dict[object, frozenset[Strategy]]:
        """Strategies around which to look, by kind of call."""
        near: dict[object, frozenset[Strategy]] = {}
        for node, strategy in self.near.items():
            kind = kind_of(self.structure.calls[node])
            near[kind] = near.get(kind, frozenset()) | {strategy}
        return near

    # -- one operator --------------------------------------------------------------------------

    def _column(self, node: Node, candidates: Candidates, parameters: list[Parameter]) -> _Column:
        gradient = node in self.structure.with_gradient
        shown = tuple(
            (p.owner.side, p.owner.index, p.mirror is None, p.dtype, p.states, p.weight.shape)
            for p in parameters
            if p.owner is not None
        )
        back = self.structure.communicates_back(node)
        structure = self.structure
        kept = (structure.kept if structure.counts_all else structure.carried).get(node, ())
        times = structure.runs(node), structure.held(node)
        key = (id(candidates), gradient, back, shown, kept, times)
        column = self.known.columns.get(key)
        if column is None:
            seconds, held = self._own(node, candidates, gradient=gradient, back=back)
            starts: list[WeightStarts] = []
            for parameter in parameters:
                more = self._weight(parameter, candidates)
                seconds, held = seconds + more.seconds, held + more.held
                starts += more.starts
            column = self.known.columns[key] = _Column(seconds, held, tuple(starts))
        return column

    def _own(
        self, node: Node, candidates: Candidates, *, gradient: bool, back: bool
    ) -> tuple[Floats, Floats]:
        """Arithmetic, collectives and kept bytes of an operator, by candidate."""
        judged = self.structure.calls[node]
        call, runs = judged.call.call, self.structure.runs(node)

        def numbers(judgement: Judgement, operations: int | None = None) -> tuple[float, float]:
            communications = operator_communications(call, judgement, self.machine, gradient=back)
            seconds = compute_seconds(
                call, judgement, self.machine, gradient=gradient, operations=operations
            )
            if gradient and self.hiding.backward:
                seconds *= 1 - self.hiding.backward * BACKWARD_WORK / (1 + BACKWARD_WORK)
            seconds += seconds_of(communications)
            held = kept_bytes if self.structure.counts_all else carried_bytes
            return runs * seconds, held(self.structure, node, judgement)

        rows: list[Floats] = []
        for family in candidates.families:
            same = alike(family.form, family.values)
            sketches = family.form.sketches(family.values[same.first])
            operations = same.operations or repeat(None)
            few = [numbers(*pair) for pair in zip(sketches, operations, strict=False)]
            rows.append(np.array(few)[same.which])
        covered = sum(len(row) for row in rows)
        rest = [numbers(item.judgement) for item in candidates.items[covered:]]
        if rest:
            rows.append(np.array(rest))
        table = np.concatenate(rows)
        return np.array(table[:, 0]), np.array(table[:, 1])

    def _weight(self, parameter: Parameter, candidates: Candidates) -> _Column:
        """What a weight costs under each candidate of the operator that decides how it lies."""
        owner, mirror = parameter.owner, parameter.mirror
        assert owner is not None
        layouts = self._layouts(owner, candidates)
        elsewhere = mirror is not None and mirror.node is owner.node and mirror != owner
        if candidates.families and owner.side == "input" and not elsewhere:
            # The operator's judgement is not needed: how the weight lies says everything.
            form = candidates.families[0].form
            which, first = layouts.kinds
            costs: list[WeightCost] = []
            for number in first:
                layout = layouts.layout(number)
                mirror = form.mirror(owner.index, layout)
                judgement = judgement_of_weight(owner.index, layout, mirror)
                costs.append(weight_cost(self.structure, parameter, judgement, self.machine))
            return self._weight_column(costs, np.array(which))
        costs = [
            weight_cost(self.structure, parameter, item.judgement, self.machine)
            for item in candidates.items
        ]
        return self._weight_column(costs, np.arange(len(costs)))

    def _weight_column(self, costs: Sequence[WeightCost], which: npt.NDArray[np.int64]) -> _Column:
        """A weight's column from what it costs under each kind of candidate."""
        table = np.array(
            [(self.hiding.of(cost).seconds, float(cost.stored_bytes)) for cost in costs]
        )[which]
        kinds = tuple(self.hiding.starts(starts_of(cost, self.machine)) for cost in costs)
        starts = (WeightStarts(which, kinds),) if any(kinds) else ()
        return _Column(table[:, 0], table[:, 1], starts)

    # -- two operators -------------------------------------------------------------------------

    def _use(
        self, link: Link, place: Mapping[Node, int], candidates: Sequence[Candidates]
    ) -> object:
        """Equal for links that bring one result to operators of one kind."""
        target = link.target.node
        if target is None or target not in place:
            return id(link)
        return result_of(link), id(candidates[place[target]]), end_of(link.target)

    def _table(self, link: Link, first: Candidates, second: Candidates, users: int) -> LinkTable:
        want = want_of(link)
        key = (id(first), end_of(link.source), id(second), end_of(link.target), want, users)
        table = self.known.tables.get(key)
        if table is None:
            sources, targets = self._layouts(link.source, first), self._layouts(link.target, second)
            alltoall = self.structure.context.enable_alltoall
            alike = (sources.content, targets.content, want)
            if alike not in self.known.least:
                self.known.least[alike] = least_prices(
                    sources, targets, want, self.machine, alltoall
                )
            least: Floats = np.array(self.known.least[alike])
            exact = np.zeros(least.shape, dtype=np.bool_)
            share = np.full(len(targets), 1 / users)
            table = LinkTable(sources, targets, want, least, exact, share)
            self.known.tables[key] = table
        return table

    def _layouts(self, ref: Ref, candidates: Candidates) -> Layouts:
        key = (id(candidates), end_of(ref))
        if key not in self.known.layouts:
            try:
                devices = self.structure.operators.stage_size
                self.known.layouts[key] = layouts_of(ref, candidates, devices)
            except NoLayout:
                where = ref.node.id if ref.node else "?"
                raise CannotPlan(f"a layout of {where} is not known") from None
        return self.known.layouts[key]

    def _alone(self, link: Link, candidates: Candidates, chains: Chains) -> Floats:
        """A link of which one operator decides both ends, or the only end that is decided."""
        ends = [ref for ref in (link.source, link.target) if ref.node is not None]
        which = [self._layouts(ref, candidates).which.tolist() for ref in ends]
        known: dict[object, float] = {}
        prices = np.zeros(len(candidates))
        for choice, key in enumerate(zip(*which, strict=True)):
            if key not in known:
                judgement = candidates.items[choice].judgement
                known[key] = price_of(chains, link, judgement, judgement)
            prices[choice] = known[key]
        return prices

    def _shared(
        self, place: Mapping[Node, int], candidates: Sequence[Candidates]
    ) -> Iterator[Shared]:
        """All users of a weight want it in one layout."""
        for parameter in self.structure.parameters:
            users = {ref.node: ref for ref in parameter.users if ref.node in place}
            if len(users) < 2:
                continue
            ends = [(place[node], ref) for node, ref in users.items() if node is not None]
            ends.sort(key=lambda end: end[0])
            key = tuple((id(candidates[variable]), end_of(ref)) for variable, ref in ends)
            if key not in self.known.shared:
                users_of = [self._layouts(ref, candidates[variable]) for variable, ref in ends]
                self.known.shared[key] = numbered(users_of)
            numbers, values, nothing = self.known.shared[key]
            variables = tuple(variable for variable, _ in ends)
            yield Shared(tuple(zip(variables, numbers, strict=True)), values, nothing)


def _tied(
    place: Mapping[Node, int], candidates: Sequence[Candidates], tied: Sequence[Sequence[Node]]
) -> Iterator[Shared]:
    """Operators that must have one strategy."""
    for nodes in tied:
        users = [place[node] for node in nodes if node in place]
        if len(users) > 1:
            yield alike_of([(variable, _both(candidates[variable])) for variable in users])


def _both(candidates: Candidates) -> list[Given | None]:
    return [
        None if item.strategy is None else (item.strategy, item.out_strategy)
        for item in candidates.items
    ]


def carried_bytes(structure: Structure, node: Node, judgement: Judgement) -> float:
    """Bytes on one device of what counts as kept with an operator.

    Whatever the whole plan is, it keeps no less than all of these together.
    """
    call = structure.calls[node].call.call
    sides = {
        "input": (judgement.input_slices, call.tensors),
        "output": (judgement.output_slices, call.results),
    }
    total = 0.0
    for carried in structure.carried.get(node, ()):
        slices, tensors = sides[carried.side]
        index = carried.index
        if index >= len(tensors) or index >= len(slices) or min(slices[index], default=0) < 0:
            continue
        if carried.is_batch and not structure.cuts_batch(slices[index], tensors[index]):
            continue
        total += carried.share * prod(slices[index]) * item_bytes(tensors[index].dtype)
    return structure.held(node) * total


def kept_bytes(structure: Structure, node: Node, judgement: Judgement) -> float:
    """Bytes of an operator's results that count as kept on one device, as the operator makes them.

    Where a reader wants another layout it is the redistributed copy that stays, which only a plan
    of the whole network tells (:func:`irtool.planning.plans.step.kept.kept_in`).

    Args:
        structure: of the network.
        node: the operator.
        judgement: its slices under a strategy; those of unknown size are left out.
    """
    judged = structure.calls[node]
    results = judged.call.call.results
    slices = judgement.output_slices
    total = 0
    for index in structure.kept.get(node, ()):
        if index >= len(results) or index >= len(slices) or min(slices[index], default=0) < 0:
            continue
        total += prod(slices[index]) * item_bytes(results[index].dtype)
    return structure.held(node) * total
