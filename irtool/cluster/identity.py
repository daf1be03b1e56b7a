"""Whether a rank's dump is its own: folders hold what was compiled under another rank's number.

A rank is a member of every group that it communicates in.  Where all groups of a dump have one
other rank in common and not the folder's own, that other rank is whom it was compiled for.
"""

from __future__ import annotations

from collections.abc import Iterator

from irtool.cluster.ranks import Cluster, RankProgram
from irtool.ir.dataclass import dataclass


@dataclass(frozen=True, slots=True)
class CompiledAs:
    """A rank whose dump was compiled under another number.

    Attributes:
        rank: whose folder it is.
        number: of the rank that the dump is of.
        path: of the dump.
        step: the place of the first communication that the rank is no member of.
        other: the dump of the rank with that number; "" where it left none.
    """

    rank: int
    number: int
    path: str
    step: int
    other: str

    @property
    def text(self) -> str:
        """A sentence that says whose dumps these are, and by which groups that is known."""
        twice = (
            f"number {self.number} was compiled twice ({self.other} and {self.path}), and number "
            f"{self.rank} not at all"
            if self.other
            else f"number {self.rank} was not compiled at all"
        )
        return (
            f"the dumps of rank {self.rank} were compiled as rank {self.number}: all their groups "
            f"have rank {self.number}, not all have rank {self.rank}; {twice}"
        )


def compiled_as_another(cluster: Cluster) -> Iterator[CompiledAs]:
    """Ranks with dumps of another rank's number, in the order of ranks.

    Args:
        cluster: the programs of all ranks, by the folder that they were found in.
    """
    for rank, one in sorted(cluster.ranks.items()):
        foreign = next(
            (n for n, party in enumerate(one.parties) if party.ranks and rank not in party.ranks),
            None,
        )
        if foreign is None:
            continue
        number = _number(cluster, one)
        if number is not None:
            twin = cluster.ranks.get(number)
            yield CompiledAs(rank, number, one.path, foreign, "" if twin is None else twin.path)


def _number(cluster: Cluster, one: RankProgram) -> int | None:
    """The only rank that all groups have; of several, the only one that communicates alike."""
    groups = [frozenset(ranks) for ranks in {p.ranks for p in one.parties} if ranks is not None]
    if not groups:
        return None
    common = groups[0].intersection(*groups[1:])
    if len(common) == 1 and len(groups) > 1:
        return next(iter(common))
    alike = [n for n in common if n in cluster.ranks and _is_alike(cluster.ranks[n], one)]
    return alike[0] if len(alike) == 1 else None


def _is_alike(left: RankProgram, right: RankProgram) -> bool:
    """Whether two ranks come to the same collectives of the same groups and the same peers."""
    return left.parties == right.parties and [
        step.collective.op for step in left.program.steps
    ] == [step.collective.op for step in right.program.steps]
