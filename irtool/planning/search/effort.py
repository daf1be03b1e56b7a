"""How much a search looks at: all strategies of an operator, or those around the best of a few."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from irtool.planning.search.candidates import MOST

EffortName = Literal["quick", "default", "full"]
"""How ``irtool plan --effort`` names them."""


@dataclass(frozen=True, slots=True)
class Effort:
    """What is looked at of an operator's strategies.

    Attributes:
        every: of an operator that has no more, all are looked at.
        every_beyond: the same for a stage of more than ``LARGE`` devices.
        few: of any other operator so many in one search, at most.
    """

    every: int
    every_beyond: int
    few: int

    def most(self, devices: int) -> int:
        """Strategies up to which all of an operator's are looked at, in a stage of some devices."""
        return self.every if devices <= LARGE else self.every_beyond


LARGE = 1024
"""Devices of a stage; beyond, many operators have thousands of strategies."""
EFFORTS: dict[EffortName, Effort] = {
    "quick": Effort(every=300, every_beyond=150, few=150),
    "default": Effort(every=MOST, every_beyond=300, few=300),
    "full": Effort(every=MOST, every_beyond=MOST, few=MOST),
}
