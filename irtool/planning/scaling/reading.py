"""The factors of all sizes of a begin dump."""

from __future__ import annotations

from irtool.ir.dump import Dump
from irtool.ir.parameter_roles import parameter_roles
from irtool.planning.scaling.dimensions import Dimensions, Extent
from irtool.planning.scaling.special import HANDLERS
from irtool.sharding.network.graphs import network_of


def dimensions_in(dump: Dump) -> Dimensions:
    """The factors of all sizes of a dump, found by following every operator.

    Args:
        dump: a begin dump without strategies.
    """
    known = Dimensions(network_of(dump), HANDLERS)
    for graph in dump.graphs:
        for node in graph.nodes:
            known.follow(node)
    known.settle_cuts()
    _tie_states(dump, known)
    return known


def _tie_states(dump: Dump, known: Dimensions) -> None:
    """What an optimizer keeps for a weight is as large as the weight."""
    entry = dump.entry
    parameters = {item.name: item for item in entry.parameters} if entry is not None else {}
    for name, role in parameter_roles(dump).items():
        if role.weight == name or name not in parameters or role.weight not in parameters:
            continue
        own, weight = known.of(parameters[name]), known.of(parameters[role.weight])
        if isinstance(own, Extent) and isinstance(weight, Extent):
            sizes = [tuple(map(known.sizes.value, extent.dimensions)) for extent in (own, weight)]
            if sizes[0] == sizes[1]:
                known.same(own, weight, parameters[name])
