"""A network as tables of costs: what each strategy of each operator costs, alone and beside others.

One number per candidate of an operator (arithmetic, its own collectives, gradients of its weights),
one table per pair of operators that share a tensor (redistribution).  Operators that are called
alike share their candidates and tables, so that repeated layers cost nothing to build.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import inf, prod

import numpy as np

from irtool.cluster.machine import Machine
from irtool.ir.node import Node
from irtool.planning.candidates import Candidate, Candidates, candidates_of
from irtool.planning.cost_chains import Chains, Floats, Want, least_seconds
from irtool.planning.costs import (
    compute_seconds,
    gradient_communications,
    item_bytes,
    operator_communications,
    seconds_of,
    update_seconds,
)
from irtool.planning.exact import Table
from irtool.planning.plan_structure import FIXED, Link, Parameter, Ref, Structure
from irtool.sharding.judgement import Judgement
from irtool.sharding.layout import TensorLayout
from irtool.sharding.network.analysis import Judged
from irtool.sharding.network.care import primitive
from irtool.sharding.network.weights import shared_state


@dataclass(eq=False, slots=True)
class LinkTable:
    """Prices of a redistribution for all candidates at both ends; lower bounds until asked for."""

    sources: list[TensorLayout]
    targets: list[TensorLayout]
    source_of: npt_ints
    target_of: npt_ints
    base: Floats
    exact: Floats
    want: Want
    values: Floats

    def refine(self, chains: Chains, first: int, second: int) -> bool:
        """Ask for the exact price of one pair of candidates; whether that was new."""
        a, b = int(self.source_of[first]), int(self.target_of[second])
        if self.exact[a, b]:
            return False
        self.base[a, b] = chains.seconds(self.sources[a], self.targets[b], self.want)
        self.exact[a, b] = 1.0
        return True

    def renew(self) -> None:
        """Put refined prices into a new table, since results are kept by the table's identity."""
        self.values = self.base[np.ix_(self.source_of, self.target_of)]


npt_ints = "np.typing.NDArray[np.int64]"
