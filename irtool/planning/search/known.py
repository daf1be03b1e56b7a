"""Tables that were made of a network, for the next tables of it.

A network is searched again and again: around other strategies, with other operators pinned, where
computing hides a part of what is communicated, on a machine with slower links.  What an operator
may get and how its tensors lie then stays as it was, and most prices do.
"""

from __future__ import annotations

from dataclasses import field

from irtool.cluster.machine import Machine
from irtool.ir.dataclass import dataclass
from irtool.planning.cost.layout_bits import Ints
from irtool.planning.cost.structure import Link, Structure
from irtool.planning.cost.weights import WeightCost
from irtool.planning.search.candidate_layouts import Layouts
from irtool.planning.search.candidates import Candidates
from irtool.planning.search.chains import Chains
from irtool.planning.search.effort import Effort
from irtool.planning.search.exact import Floats
from irtool.planning.search.link_tables import LinkTable, result_of
from irtool.planning.search.shared_weights import Numbered
from irtool.planning.search.starts import WeightStarts


@dataclass(frozen=True, eq=False, slots=True)
class Column:
    """By candidate of an operator: seconds, bytes held, and what its weights pay of starts."""

    seconds: Floats
    held: Floats
    starts: tuple[WeightStarts, ...] = ()


@dataclass(eq=False, slots=True)
class Priced:
    """What was priced on one machine.

    Attributes:
        chains: redistributions of which the price was asked for.
        own: what operators compute and communicate by themselves, by their candidates.
        seconds: all of that together, where some is hidden.
        weights: what weights cost, by kind, and of which kind candidates of their operators are.
        columns: of operators with their weights.
        tables: of links, by the candidates at both ends.
        least: lower bounds of redistributions, by the layouts at both ends.
    """

    chains: Chains
    own: dict[object, tuple[Floats, Floats]] = field(
        default_factory=dict[object, tuple[Floats, Floats]]
    )
    seconds: dict[object, Floats] = field(default_factory=dict[object, Floats])
    weights: dict[object, tuple[list[WeightCost], Ints]] = field(
        default_factory=dict[object, tuple[list[WeightCost], Ints]]
    )
    columns: dict[object, Column] = field(default_factory=dict[object, Column])
    tables: dict[object, LinkTable] = field(default_factory=dict[object, LinkTable])
    least: dict[object, Floats] = field(default_factory=dict[object, Floats])


@dataclass(eq=False, slots=True)
class Known:
    """Tables that were made of one network, in one context.

    Most go by the identity of candidates, which are all kept here.

    Attributes:
        every: strategies up to which all of an operator's are looked at, by effort.
        tried: candidates by kind of call, and by what is looked at where not all are.
        layouts: by candidates and tensor.
        shared: weights that several operators use, by what these may get.
        held: bytes that count as kept with operators, by their candidates.
        results: by link (its identity; the network keeps it) the number of what it brings.
        priced: by machine (its identity; the chains keep it).
        kept: what others worked out of choices, by what they name it.
    """

    every: dict[Effort, int] = field(default_factory=dict[Effort, int])
    tried: dict[object, Candidates] = field(default_factory=dict[object, Candidates])
    layouts: dict[object, Layouts] = field(default_factory=dict[object, Layouts])
    shared: dict[object, Numbered] = field(default_factory=dict[object, Numbered])
    held: dict[object, Floats] = field(default_factory=dict[object, Floats])
    results: dict[int, int] = field(default_factory=dict[int, int])
    priced: dict[int, Priced] = field(default_factory=dict[int, Priced])
    kept: dict[object, object] = field(default_factory=dict[object, object])

    def most(self, structure: Structure, effort: Effort) -> int:
        """Strategies up to which all of an operator's are looked at."""
        if effort not in self.every:
            self.every[effort] = effort.most(structure)
        return self.every[effort]

    def result(self, structure: Structure, link: Link) -> int:
        """A number that is equal for links that bring one result alike."""
        if not self.results:
            number: dict[object, int] = {}
            for each in structure.links:
                self.results[id(each)] = number.setdefault(result_of(each), len(number))
        return self.results[id(link)]

    def on(self, machine: Machine, structure: Structure) -> Priced:
        """What was priced on a machine."""
        known = self.priced.get(id(machine))
        if known is None:
            chains = Chains(structure.operators, machine, structure.context.enable_alltoall)
            known = self.priced[id(machine)] = Priced(chains)
        return known
