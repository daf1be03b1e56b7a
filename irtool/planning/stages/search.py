"""Strategies inside of pipeline stages: the best ones, and those with which a stage fits.

All stages run on as many devices, so one model holds the candidates of all.  Without a limit its
optimum is that of every stage, but for what is redistributed on the borders.  A stage that needs
more memory than there is gets the cheapest strategies that fit (and, if that is asked for, what is
computed again and which weights are cut), while all others keep theirs.
"""

from __future__ import annotations

import time
from collections.abc import Set
from dataclasses import field, replace
from math import inf

import numpy as np

from irtool.cluster.machine import Machine
from irtool.ir.dataclass import dataclass
from irtool.ir.graph import Node
from irtool.planning.limits.around import Near, around_the_best
from irtool.planning.limits.memory import Limited
from irtool.planning.limits.memory import search as search_plain
from irtool.planning.limits.modes import Modes
from irtool.planning.plans.decisions import DecidedModes
from irtool.planning.plans.plan import Plan, plan_of_choices, refuse_illegal
from irtool.planning.search.effort import EFFORTS, EffortName
from irtool.planning.search.exact import Floats
from irtool.planning.search.known import Known
from irtool.planning.search.own_costs import kept_bytes
from irtool.planning.search.problem import Problem
from irtool.planning.search.search import Search, Solution
from irtool.planning.search.tables import Model, model_of
from irtool.sharding.check import check
from irtool.syntax.collector import CollectorPause


@dataclass(frozen=True, slots=True)
class Chosen:
    """A candidate and a mode for every operator; ``bound``: seconds that no others are below."""

    choices: tuple[int, ...]
    modes: tuple[int, ...]
    bound: float


@dataclass(eq=False)
class StageSearch:
    """Searches for the plan that all stages share, and for stages that have to fit.

    Attributes:
        problem: the network of one micro-batch, on the devices of one stage.
        model: its tables, with weights counted once for all micro-batches.
        decided: what can be decided beside strategies.
        seconds: CPU time so far.
        rounds: searches so far.
    """

    problem: Problem
    model: Model
    decided: DecidedModes
    optimizer: bool
    recompute: bool
    seconds: float = 0.0
    rounds: int = 0
    _kept: dict[object, Floats] = field(default_factory=dict[object, Floats])
    _held: dict[object, Floats] = field(default_factory=dict[object, Floats])
    _frozen_modes: dict[tuple[int, int], Modes] = field(
        default_factory=dict[tuple[int, int], Modes]
    )

    @classmethod
    def of(
        cls,
        problem: Problem,
        machine: Machine,
        micro_batches: int,
        *,
        optimizer: bool,
        recompute: bool,
        effort: EffortName = "default",
    ) -> StageSearch:
        """Build the tables, around the best strategies where not all are looked at.

        Raises:
            CannotPlan: an operator has no legal strategy.
        """
        started = time.process_time()
        structure = replace(problem.structure, micro_batches=micro_batches)
        known = Known()

        def make(near: Near) -> Model:
            return model_of(
                structure, machine, problem.current, {},
                near=near, effort=EFFORTS[effort], known=known,
            )  # fmt: skip

        with CollectorPause.over(0):
            model, _ = around_the_best(make, None)
            decided = DecidedModes(model, optimizer=optimizer, recompute=recompute)
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
        search = Search.of(self.model)
        choice = Limited(search, self.decided.modes).cheapest(None)
        self.rounds += search.rounds
        best = Chosen(choice.choices, choice.modes, choice.bound)
        # That search does not know which buckets of fused collectives are opened by its choice.
        plain = search_plain(self.model, None)
        self.rounds += plain.rounds
        other = Chosen(plain.choices, (0,) * len(plain.choices), choice.bound)
        best = min(best, other, key=lambda chosen: self.plan_of(chosen).after.seconds)
        self.seconds += time.process_time() - started
        return best

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
            self._of_stage(variable, in_flight) if node in inside else self._nothing(variable)
            for variable, node in enumerate(self.model.nodes)
        )
        model = replace(self.model, memory=memory)
        decided = DecidedModes(
            model,
            optimizer=self.optimizer,
            recompute=self.recompute,
            inside=inside,
            in_flight=in_flight,
        )
        modes = [
            free if node in inside else self._frozen(variable, now.choices[variable], free)
            for variable, (node, free) in enumerate(zip(model.nodes, decided.modes, strict=True))
        ]
        search = Search.of(model)
        try:
            limited = Limited(search, modes, decided if self.recompute else None)
            choice = limited.cheapest(limit)
        finally:
            self.seconds += time.process_time() - started
            self.rounds += search.rounds
        own = [node in inside for node in model.nodes]

        def merged(new: tuple[int, ...], old: tuple[int, ...]) -> tuple[int, ...]:
            return tuple(
                a if is_inside else b for is_inside, a, b in zip(own, new, old, strict=True)
            )

        return Chosen(
            merged(choice.choices, now.choices), merged(choice.modes, now.modes), now.bound
        )

    def plan_of(self, chosen: Chosen) -> Plan:
        """The plan of one micro-batch, with what was decided.

        Raises:
            CannotPlan: ``check`` refuses it.
        """
        solution = Solution(chosen.choices, chosen.bound, self.rounds)
        made = plan_of_choices(self.model, solution, self.problem.current, None, self.seconds)
        if not self.optimizer and not self.recompute:
            return made
        unpriced = Limited(Search.of(self.model), self.decided.modes).choice(
            chosen.choices, chosen.modes
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
        sizes: dict[str, tuple[int, int, int]] = {}
        for variable, (choice, mode) in enumerate(zip(chosen.choices, chosen.modes, strict=True)):
            for parameter in self.decided.owned(variable) if self.decided.is_sharded(mode) else ():
                _, cut = self.decided.costs(parameter, variable, choice)
                sizes[parameter.name] = cut.weights, cut.gradients, cut.states
        return sizes

    # -- bytes ---------------------------------------------------------------------------------

    def _of_stage(self, variable: int, in_flight: int) -> Floats:
        """Bytes of an operator whose results are held for several micro-batches."""
        memory = self.model.memory[variable]
        if in_flight == 1 or self.model.nodes[variable] not in self.model.structure.with_gradient:
            return memory
        key = (id(memory), id(self.model.candidates[variable]), in_flight)
        if key not in self._held:
            self._held[key] = memory + (in_flight - 1) * self._results(variable)
        return self._held[key]

    def _results(self, variable: int) -> Floats:
        candidates = self.model.candidates[variable]
        structure, node = self.model.structure, self.model.nodes[variable]
        key = id(candidates), structure.kept.get(node, ())
        if key not in self._kept:
            sketches = [
                sketch
                for family in candidates.families
                for sketch in family.form.sketches(family.values)
            ]
            sketches += [item.judgement for item in candidates.items[len(sketches) :]]
            sizes = [kept_bytes(structure, node, sketch) for sketch in sketches]
            self._kept[key] = np.array(sizes)
        return self._kept[key]

    def _nothing(self, variable: int) -> Floats:
        count = len(self.model.candidates[variable])
        key = ("nothing", count)
        if key not in self._held:
            self._held[key] = np.zeros(count)
        return self._held[key]

    def _frozen(self, variable: int, choice: int, own: Modes) -> Modes:
        """The modes of an operator that stays as it is."""
        unary = self.model.unary[variable]
        key = ("frozen", id(unary), choice)
        if key not in self._held:
            only = np.full(len(unary), inf)
            only[choice] = unary[choice]
            self._held[key] = only
        arrays = (self._held[key], own.held[0])
        known = (id(arrays[0]), id(arrays[1]))
        if known not in self._frozen_modes:
            self._frozen_modes[known] = Modes((arrays[0],), (arrays[1],))
        return self._frozen_modes[known]
