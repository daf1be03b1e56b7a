"""Communication that computing may hide: what ``cost`` and ``comm fuse`` both tell."""

from __future__ import annotations

from typing import Annotated

from irtool.cluster.pricing import Overlap
from irtool.report.answer import AnswerObject, doc


class HideableSeconds(AnswerObject, frozen=True, kw_only=True):
    """Communication that computing may hide."""

    seconds: Annotated[float, doc("of such communication")]
    exposed_seconds: Annotated[float, doc("of it that nothing hides, fused as it is")]


def hideable_seconds(sums: Overlap, gathers: Overlap) -> dict[str, HideableSeconds]:
    """Communication that computing may hide, by kind.

    Args:
        sums: of the gradients' collectives.
        gathers: of weights that are gathered before they are used.
    """
    return {
        kind: HideableSeconds(seconds=overlap.hideable, exposed_seconds=overlap.exposed)
        for kind, overlap in (("gradients", sums), ("gathers", gathers))
    }
