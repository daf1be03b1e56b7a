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
from math import inf

import numpy as np
import numpy.typing as npt

from irtool.cluster.machine import Machine
from irtool.ir.dataclass import dataclass
from irtool.ir.graph import Node
from irtool.operators.call import Strategy
from irtool.planning.cost.costs import (
    BACKWARD_WORK,
    Communication,
)
from irtool.planning.cost.structure import Link, Parameter, Ref, Structure
from irtool.planning.cost.weights import WeightCost, judgement_of_weight, weight_cost
from irtool.planning.search.candidate_layouts import Layouts, NoLayout, layouts_of, least_prices
from irtool.planning.search.candidates import Candidate, Candidates
from irtool.planning.search.chains import Chains
from irtool.planning.search.effort import EFFORTS, Effort
from irtool.planning.search.exact import MOST_ENTRIES, Floats, Table
from irtool.planning.search.known import Column, Known, Priced
from irtool.planning.search.link_tables import (
    LinkTable,
    PaidAlone,
    PricedLink,
    end_of,
    price_of,
    want_of,
)
from irtool.planning.search.operator_candidates import (
    CannotPlan,
    Given,
    OperatorCandidates,
    index_of,
    kind_of,
)
from irtool.planning.search.own_costs import own_bytes, own_seconds
from irtool.planning.search.shared_weights import Shared, alike_of, numbered
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
    ``constant_part``: what weights that no choice changes take part in, and pay of it. ``known``:
    what was made of the network; ``entries``: of the largest table that a search may make;
    ``found``: by limit of memory what the first search within it found, for whoever searches on.
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
    alone: tuple[PaidAlone, ...] = ()
    starts: tuple[tuple[WeightStarts, ...], ...] = ()
    constant_starts: tuple[Start, ...] = ()
    constant_part: float = 0.0
    known: Known = field(default_factory=Known)
    entries: int = MOST_ENTRIES
    found: dict[int | None, object] = field(init=False, default_factory=dict[int | None, object])

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
        known: what earlier tables of the same network hold, and ``outs`` was the same.
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

    @property
    def priced(self) -> Priced:
        """What is known of prices on this machine."""
        return self.known.on(self.machine, self.structure)

    def build(
        self,
        current: Mapping[Node, Given],
        pinned: Mapping[Node, Given],
        tied: Sequence[Sequence[Node]],
    ) -> Model:
        structure = self.structure
        chains = self.priced.chains
        nodes = tuple(node for node in structure.calls if node not in self.loose)
        place = {node: variable for variable, node in enumerate(nodes)}
        tried = OperatorCandidates(
            structure.operators, self.outs, self._near(),
            self.known.most(structure, self.effort), self.effort.few, self.known.tried,
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
        alone: list[PaidAlone] = []
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
                links.append(PricedLink(link, known[0], known[1], table, self._result(link)))
            elif known:
                added = self._alone(link, candidates[known[0]], chains)
                unary[known[0]] = unary[known[0]] + added
                alone.append(PaidAlone(self._result(link), known[0], added))
            elif (same := (self._result(link), link.target.layout)) not in settled:
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
            self.known,
            self.effort.entries,
        )

    def _near(self) -> dict[object, frozenset[Strategy]]:
        """Strategies around which to look, by kind of call."""
        near: dict[object, frozenset[Strategy]] = {}
        for node, strategy in self.near.items():
            kind = kind_of(self.structure.calls[node])
            near[kind] = near.get(kind, frozenset()) | {strategy}
        return near

    # -- one operator --------------------------------------------------------------------------

    def _column(self, node: Node, candidates: Candidates, parameters: list[Parameter]) -> Column:
        """What an operator costs by itself, with the weights that lie as it wants."""
        seconds, weights = self._seconds(node, candidates), tuple(map(self._shown, parameters))
        held = self._held(node, candidates)
        key = id(seconds), id(held), weights, id(candidates), self.hiding
        column = self.priced.columns.get(key)
        if column is None:
            starts: list[WeightStarts] = []
            more = [self._weight(parameter, candidates) for parameter in parameters]
            for one in more:
                seconds, held = seconds + one.seconds, held + one.held
                starts += one.starts
            column = self.priced.columns[key] = Column(seconds, held, tuple(starts))
        return column

    def _seconds(self, node: Node, candidates: Candidates) -> Floats:
        """Arithmetic and collectives of an operator, by candidate."""
        structure = self.structure
        gradient, runs = node in structure.with_gradient, structure.runs(node)
        own = id(candidates), gradient, structure.communicates_back(node)
        if own not in self.priced.own:
            self.priced.own[own] = own_seconds(structure, node, candidates, self.machine)
        key = (*own, runs, self.hiding)
        if key not in self.priced.seconds:
            computing, communicating = self.priced.own[own]
            if gradient and self.hiding.backward:
                hidden = self.hiding.backward * BACKWARD_WORK / (1 + BACKWARD_WORK)
                computing = computing * (1 - hidden)
            self.priced.seconds[key] = runs * (computing + communicating)
        return self.priced.seconds[key]

    def _held(self, node: Node, candidates: Candidates) -> Floats:
        """Kept bytes of an operator, by candidate."""
        structure = self.structure
        kept = (structure.kept if structure.counts_all else structure.carried).get(node, ())
        key = id(candidates), kept, structure.held(node)
        if key not in self.known.held:
            self.known.held[key] = own_bytes(structure, node, candidates)
        return self.known.held[key]

    def _shown(self, parameter: Parameter) -> object:
        """Equal for weights that cost the same where operators of one kind decide how they lie."""
        owner, mirror = parameter.owner, parameter.mirror
        assert owner is not None
        own = mirror is not None and mirror.node is owner.node
        summed = (end_of(mirror) if own else True) if mirror is not None else None
        return (
            end_of(owner), summed, parameter.dtype, parameter.states, parameter.weight.shape,
            parameter.accumulated,
        )  # fmt: skip

    def _weight(self, parameter: Parameter, candidates: Candidates) -> Column:
        """What a weight costs under each candidate of the operator that decides how it lies."""
        key = id(candidates), self._shown(parameter)
        if key not in self.priced.weights:
            self.priced.weights[key] = self._weight_costs(parameter, candidates)
        return self._weight_column(*self.priced.weights[key])

    def _weight_costs(
        self, parameter: Parameter, candidates: Candidates
    ) -> tuple[list[WeightCost], npt.NDArray[np.int64]]:
        """What a weight costs, by kind; and of which kind each candidate is."""
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
            return costs, np.array(which)
        costs = [
            weight_cost(self.structure, parameter, item.judgement, self.machine)
            for item in candidates.items
        ]
        return costs, np.arange(len(costs))

    def _weight_column(self, costs: Sequence[WeightCost], which: npt.NDArray[np.int64]) -> Column:
        """A weight's column from what it costs under each kind of candidate."""
        table = np.array(
            [(self.hiding.of(cost).seconds, float(cost.stored_bytes)) for cost in costs]
        )[which]
        kinds = tuple(self.hiding.starts(starts_of(cost, self.machine)) for cost in costs)
        starts = (WeightStarts(which, kinds),) if any(kinds) else ()
        return Column(table[:, 0], table[:, 1], starts)

    # -- two operators -------------------------------------------------------------------------

    def _use(
        self, link: Link, place: Mapping[Node, int], candidates: Sequence[Candidates]
    ) -> object:
        """Equal for links that bring one result to operators of one kind."""
        target = link.target.node
        if target is None or target not in place:
            return id(link)
        return self._result(link), id(candidates[place[target]]), end_of(link.target)

    def _result(self, link: Link) -> int:
        return self.known.result(self.structure, link)

    def _table(self, link: Link, first: Candidates, second: Candidates, users: int) -> LinkTable:
        want = want_of(link)
        key = (id(first), end_of(link.source), id(second), end_of(link.target), want, users)
        table = self.priced.tables.get(key)
        if table is None:
            sources, targets = self._layouts(link.source, first), self._layouts(link.target, second)
            alltoall = self.structure.context.enable_alltoall
            alike = (sources.content, targets.content, want)
            if alike not in self.priced.least:
                self.priced.least[alike] = least_prices(
                    sources, targets, want, self.machine, alltoall
                )
            least: Floats = np.array(self.priced.least[alike])
            exact = np.zeros(least.shape, dtype=np.bool_)
            share = np.full(len(targets), 1 / users)
            table = LinkTable(sources, targets, want, least, exact, share)
            self.priced.tables[key] = table
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
