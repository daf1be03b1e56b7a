"""Options that had an effect in a compilation although `case.json` does not record them.

What decides is the recorded context and the dump after the parallel pass, never a prediction: the
dump shows something that the defaults of the options that are not recorded rule out.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from math import prod

from irtool.ir.dump import Dump
from irtool.ir.graph import Node
from irtool.ir.types import BITS

PARAMETERS = "parameters"
REDISTRIBUTIONS = "redistributions"
FORWARD = "forward collectives"

DEFAULT_THRESHOLD = 64 * 1024
"""Bytes of the whole weight; below it optimizer parallel leaves weights alone."""

MIRRORS = ("_MirrorOperator", "_MirrorMicroStepOperator")
KEYS = ("RefToEmbed", "EnvironGet")


def not_recorded(context: Mapping[str, object], begin: Dump, end: Dump) -> frozenset[str]:
    """The parts of the answer that such an option changed."""
    found: set[str] = set()
    nodes = [node for graph in end.graphs for node in graph.nodes]
    if "parallel_optimizer_config" not in context and _has_optimizer_config(begin, nodes):
        found.add(PARAMETERS)
    if "enable_alltoall" not in context and any(_is_inserted_exchange(node) for node in nodes):
        found.add(REDISTRIBUTIONS)
    if context.get("dataset_strategy") in ("[]", "()"):
        # No strategy looks like this: layouts were given, and are lost.
        found.add(REDISTRIBUTIONS)
    if "pipeline_result_broadcast" not in context and any(map(is_result_broadcast, nodes)):
        found.add(FORWARD)
    return frozenset(found)


def is_result_broadcast(node: Node) -> bool:
    """Whether a node hands a pipeline's result to the other stages."""
    return node.instance_name == "PARALLEL_RESULT_BROADCAST"


def takes_gradients_of_inputs_only(begin: Dump) -> bool:
    """Whether no gradient of a parameter is taken: nothing shows which ones require one."""
    return not any(node.op in KEYS for graph in begin.graphs for node in graph.nodes)


def _has_optimizer_config(begin: Dump, nodes: list[Node]) -> bool:
    """Whether a weight below the default threshold is gathered, or one over some replicas only."""
    gathered = set(_gathered(nodes))
    mirrored = {
        node.attribute("mirror_user_id")
        for node in nodes
        if node.op in MIRRORS and node.attribute("dev_num") != 1
    }
    small = {
        item.name
        for item in begin.parameters
        if item.type is not None
        and prod(item.type.dimensions or ()) * BITS.get(item.type.dtype or "", 32) // 8
        < DEFAULT_THRESHOLD
    }
    return bool(gathered & small or gathered & mirrored)


def _gathered(nodes: list[Node]) -> Iterator[str]:
    for node in nodes:
        name = node.attribute("mirror_user_id")
        if isinstance(name, str) and (node.instance_name or "").startswith("parallel_optimizer"):
            yield name


def _is_inserted_exchange(node: Node) -> bool:
    return node.op == "AlltoAll" and (node.instance_name or "").startswith("redistribution")
