"""OPS004: equal layers that are compiled one by one."""

from __future__ import annotations

from collections.abc import Iterator

from irtool.cluster.repeated_code import SECONDS_A_STATEMENT, unshared_layers
from irtool.ir.finding import Edit, Finding
from irtool.ir.units import count_text
from irtool.linting.facts import DumpFacts
from irtool.linting.rule import DumpRule, Threshold


class UnsharedLayers(DumpRule):
    """Many layers of one kind, each with statements of its own."""

    code = "OPS004"
    name = "layers-not-shared"
    severity = "info"
    summary = "Equal layers stand in the graph one by one"
    explanation = """
        Compilation takes time in proportion to the statements of the graph. A cell whose `__init__`
        is decorated with `@lazy_inline` is compiled once and called by all its equals until late in
        the pipeline of passes. Counted are the statements of layers of one kind that would stand in
        the graph once: those of one layer are needed, the others are copies. With micro-batches
        each layer stands in the graph once for each of them, too.

        What that is worth was measured on MindSpore 1.8 with micro-batches: 0.044 s a statement of
        the last graph, which the threshold asks for. MindSpore 2.7's front end took as long for 24
        small layers with `@lazy_inline` (57 s) as without (54 s): without micro-batches most of it
        is in what comes later, so that it is worth a try, and no warning.
        """
    hint = "decorate __init__ of the layer's cell with @lazy_inline"
    bad = "layers.0 … layers.23: 58 statements each, 1,392 of 1,460 of the graph"
    good = "one graph of 58 statements that is called 24 times"
    cases = ("tests/linting/evidence/unrolled_encoder.begin",)
    dumps = ("begin", "validate")
    least_layers = Threshold(8, "layers", "minimum number of equal layers to compare")
    least_share = Threshold(10, "percent", "told where copies are this share of the statements")
    least_seconds = Threshold(15, "seconds", "told where sharing saves so much of the compilation")

    def check(self, facts: DumpFacts) -> Iterator[Finding]:
        unshared = unshared_layers(facts.dump)
        if unshared is None or len(unshared.layers) < self.least_layers:
            return
        copies = unshared.statements - unshared.once
        total = sum(len(graph.nodes) for graph in facts.dump.graphs)
        # The last graph holds the backward pass, too: about four times the statements.
        seconds = copies * SECONDS_A_STATEMENT * (4 if facts.kind == "begin" else 1)
        if copies * 100 < self.least_share * total or seconds < self.least_seconds:
            return
        yield self.finding(
            f"{len(unshared.layers)} equal layers stand in the graph one by one: "
            f"{count_text(unshared.statements)} of {count_text(total)} statements, of which "
            f"{count_text(unshared.once)} would do",
            unshared.first,
            edit=Edit(setting="lazy_inline", value="@lazy_inline on __init__ of the layer's cell"),
            key=unshared.kind,
        )
