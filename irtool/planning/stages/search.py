"""Strategies inside of pipeline stages: the best ones, and those with which a stage fits.

All stages run on as many devices, so one model holds the candidates of all.  Without a limit its
optimum is that of every stage, but for what is redistributed on the borders.  A stage that needs
more memory than there is gets the cheapest strategies that fit (and, if that is asked for, what is
computed again and which weights are cut), while all others keep theirs.
"""

from __future__ import annotations

import time
from collections.abc import Set
from dataclasses import dataclass, field, replace
from math import inf

import numpy as np

from irtool.cluster.machine import Machine
from irtool.ir.graph import Node
from irtool.planning.limits.memory import Limited
from irtool.planning.limits.memory import search as search_plain
from irtool.planning.limits.ways import Ways
from irtool.planning.plans.decisions import DecidedWays
from irtool.planning.plans.plan import Plan, refuse_illegal, told
from irtool.planning.search.exact import Floats
from irtool.planning.search.problem import Problem
from irtool.planning.search.search import Found, Search
from irtool.planning.search.tables import Model, kept_bytes, model_of
from irtool.sharding.check import check
from irtool.syntax.collector import CollectorPause


@dataclass(frozen=True, slots=True)
class Chosen:
    """A candidate and a way for every operator; ``bound``: seconds that no others are below."""

    choices: tuple[int, ...]
    ways: tuple[int, ...]
    bound: float


@dataclass(eq=False)
class StageSearch:
    """Searches inside of stages.

    Attributes:
        problem: the network of one micro-batch, on the devices of one stage.
        model: its tables, with weights counted once for all micro-batches.
        decided: what can be decided beside strategies.
        seconds: CPU time so far.
        rounds: searches so far.
    """

    problem: Problem
    model: Model
    decided: DecidedWays
    optimizer: bool
    recompute: bool
    seconds: float = 0.0
    rounds: int = 0
    _kept: dict[object, Floats] = field(default_factory=dict[object, Floats])
    _held: dict[object, Floats] = field(default_factory=dict[object, Floats])
    _frozen_ways: dict[tuple[int, int], Ways] = field(default_factory=dict[tuple[int, int], Ways])

    @classmethod
    def of(
        cls,
        problem: Problem,
        machine: Machine,
        micro_batches: int,
        *,
        optimizer: bool,
        recompute: bool,
    ) -> StageSearch:
        """Build the tables.

        Raises:
            CannotPlan: an operator has no legal strategy.
        """
        started = time.process_time()
        structure = replace(problem.structure, micro_batches=micro_batches)
        with CollectorPause.over(0):
            model = model_of(structure, machine, problem.current, {})
            decided = DecidedWays(model, optimizer=optimizer, recompute=recompute)
        spent = time.process_time() - started
        return cls(problem, model, decided, optimizer, recompute, spent)

    def free(self) -> Chosen:
        """The best where memory does not matter.

        Raises:
            CannotPlan: nothing fits together.
        """
        started = time.process_time()
        if not self.optimizer and not self.recompute:
            plain = search_plain(self.model, None)
            self.seconds += time.process_time() - started
            self.rounds += plain.rounds
            return Chosen(plain.choices, (0,) * len(plain.choices), plain.bound)
        search = Search(self.model)
        found = Limited(search, self.decided.ways).cheapest(None)
        self.seconds += time.process_time() - started
        self.rounds += search.rounds
        return Chosen(found.choices, found.ways, found.bound)

    def fitted(self, now: Chosen, inside: Set[Node], in_flight: int, limit: int) -> Chosen:
        """The best whose stage fits, all other stages as they are.

        Args:
            now: what all operators have.
            inside: those of the stage.
            in_flight: micro-batches whose results the stage holds at once.
            limit: bytes of a device.

        Raises:
            CannotPlan: nothing fits; the message says how much is needed.
        """
        started = time.process_time()
        memory = tuple(
            self._of_stage(at, in_flight) if node in inside else self._nothing(at)
            for at, node in enumerate(self.model.nodes)
        )
        model = replace(self.model, memory=memory)
        decided = DecidedWays(
            model,
            optimizer=self.optimizer,
            recompute=self.recompute,
            inside=inside,
            in_flight=in_flight,
        )
        ways = [
            each if node in inside else self._frozen(at, now.choices[at], each)
            for at, (node, each) in enumerate(zip(model.nodes, decided.ways, strict=True))
        ]
        search = Search(model)
        try:
            limited = Limited(search, ways, decided if self.recompute else None)
            found = limited.cheapest(limit)
        finally:
            self.seconds += time.process_time() - started
            self.rounds += search.rounds
        own = [node in inside for node in model.nodes]

        def merged(new: tuple[int, ...], old: tuple[int, ...]) -> tuple[int, ...]:
            return tuple(a if each else b for each, a, b in zip(own, new, old, strict=True))

        return Chosen(merged(found.choices, now.choices), merged(found.ways, now.ways), now.bound)

    def told(self, chosen: Chosen) -> Plan:
        """The plan of one micro-batch, with what was decided.

        Raises:
            CannotPlan: ``check`` refuses it.
        """
        found = Found(chosen.choices, chosen.bound, self.rounds)
        made = told(self.model, found, self.problem.current, None, self.seconds)
        if not self.optimizer and not self.recompute:
            return made
        unpriced = Limited(Search(self.model), self.decided.ways).choice(
            chosen.choices, chosen.ways
        )
        twins = dict(zip(self.model.structure.dump.nodes(), made.dump.nodes(), strict=True))
        decisions = self.decided.decided(unpriced)
        if decisions.sharded:
            report = check(made.dump, replace(made.context, parallel_optimizer=True))
            refuse_illegal(report)
        after = self.decided.priced(made.after, unpriced, twins)
        return replace(made, after=after, decisions=decisions)

    def sharded(self, chosen: Chosen) -> dict[str, tuple[int, int, int]]:
        """Bytes of weights, gradients and states of weights that are cut by decision."""
        found: dict[str, tuple[int, int, int]] = {}
        for at, (choice, way) in enumerate(zip(chosen.choices, chosen.ways, strict=True)):
            for parameter in self.decided.owned(at) if self.decided.is_sharded(way) else ():
                _, cut = self.decided.costs(parameter, at, choice)
                found[parameter.name] = cut.weights, cut.gradients, cut.states
        return found

    # -- bytes ---------------------------------------------------------------------------------

    def _of_stage(self, at: int, in_flight: int) -> Floats:
        """Bytes of an operator whose results are held for several micro-batches."""
        memory = self.model.memory[at]
        if in_flight == 1 or self.model.nodes[at] not in self.model.structure.with_gradient:
            return memory
        key = (id(memory), id(self.model.candidates[at]), in_flight)
        if key not in self._held:
            self._held[key] = memory + (in_flight - 1) * self._results(at)
        return self._held[key]

    def _results(self, at: int) -> Floats:
        candidates = self.model.candidates[at]
        structure, node = self.model.structure, self.model.nodes[at]
        key = id(candidates), structure.kept.get(node, ())
        if key not in self._kept:
            sketches = [
                sketch for each in candidates.families for sketch in each.form.sketches(each.values)
            ]
            sketches += [item.judgement for item in candidates.items[len(sketches) :]]
            sizes = [kept_bytes(structure, node, each) for each in sketches]
            self._kept[key] = np.array(sizes)
        return self._kept[key]

    def _nothing(self, at: int) -> Floats:
        count = len(self.model.candidates[at])
        key = ("nothing", count)
        if key not in self._held:
            self._held[key] = np.zeros(count)
        return self._held[key]

    def _frozen(self, at: int, choice: int, own: Ways) -> Ways:
        """The ways of an operator that stays as it is."""
        unary = self.model.unary[at]
        key = ("frozen", id(unary), choice)
        if key not in self._held:
            only = np.full(len(unary), inf)
            only[choice] = unary[choice]
            self._held[key] = only
        arrays = (self._held[key], own.held[0])
        known = (id(arrays[0]), id(arrays[1]))
        if known not in self._frozen_ways:
            self._frozen_ways[known] = Ways((arrays[0],), (arrays[1],))
        return self._frozen_ways[known]
