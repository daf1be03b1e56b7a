"""GAT008: layers that came or went, and parameters of other sizes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from irtool.cluster.memory.layers import layer_of_parameter
from irtool.compare.graph_diff import ParameterEdit
from irtool.ir.finding import Finding
from irtool.ir.units import count_text, plural
from irtool.linting.gate import GateFacts, GateRule
from irtool.linting.gate.layers import forward_layers, layer_change, shown, siblings
from irtool.linting.layers import kind_of

_SWITCHES = {
    "off": "set enable_parallel_optimizer=True; update the golden dump if the change is meant",
    "on": "update the golden dump if enable_parallel_optimizer=True is meant",
}


class ChangedStructure(GateRule):
    """A layer more or less than in the golden dump, or weights and inputs of other shapes."""

    code = "GAT008"
    name = "changed-structure"
    severity = "warning"
    summary = "Layers, or the sizes of weights or inputs, are not those of the golden dump"
    explanation = """
        Layers are numbered cells (`layers-CellList/4-Block`), and one is told as added or removed
        where others of its kind are in both dumps. Weights and inputs that are in both are compared
        by their shapes, unless a strategy changed, which slices them otherwise; where all differ by
        the devices that gathered them for use, and only one dump gathers, optimizer parallel was
        switched off or on. More collectives, more memory and more statements follow from it and are
        told below.
        """
    hint = "update the golden dump if the network was meant to change"
    bad = "layers.4 was added: 5 layers instead of 4"
    good = "layers.0 to layers.3, as before"
    cases = (
        "tests/linting/evidence/gate/layer_more_dense.validate",
        "tests/linting/evidence/gate/layer_more_mixer.validate",
        "tests/linting/evidence/gate/layer_more_recurrent.validate",
        "tests/linting/evidence/gate/sharded_blocks.validate",
    )

    def check(self, facts: GateFacts) -> Iterator[Finding]:
        change = layer_change(facts)
        old, new = forward_layers(facts.old), forward_layers(facts.new)
        for layers, what in ((change.added, "added"), (change.removed, "removed")):
            by_kind: dict[str, list[str]] = {}
            for layer in layers:
                by_kind.setdefault(kind_of(layer), []).append(layer)
            for kind, names in by_kind.items():
                counts = [siblings(names[0], side) for side in (old, new)]
                side = new if what == "added" else old
                operators = sum(len(side[name]) for name in names)
                listed = ", ".join(names[:4])
                listed += f" and {len(names) - 4} more" if len(names) > 4 else ""
                last = names[0] if what == "added" else [k for k in new if kind_of(k) == kind][-1]
                yield self.finding(
                    f"{listed} {'was' if len(names) == 1 else 'were'} {what}: {counts[1]} layers "
                    f"instead of {counts[0]}, {plural(operators, 'operator')}",
                    shown(new[last]),
                    key=f"{kind} {what}",
                )
        yield from self._sizes(facts, (*change.added, *change.removed))

    def _sizes(self, facts: GateFacts, layers: tuple[str, ...]) -> Iterator[Finding]:
        resized = [
            item
            for item in facts.diff.parameters
            if item.before and item.after and _shape(item.before) != _shape(item.after)
            and layer_of_parameter(item.name) not in layers
        ]  # fmt: skip
        if not resized or any(
            pattern.first.kind == "re-sharded" for pattern in facts.diff.patterns
        ):
            return  # another strategy slices them otherwise
        first = resized[0]
        more = f", and {count_text(len(resized) - 1)} more" if len(resized) > 1 else ""
        parameters = {item.name: item for item in facts.new.dump.parameters}
        declared = parameters.get(first.name)
        switched = _optimizer_parallel(facts, resized)
        yield self.finding(
            f"{f'optimizer parallel was switched {switched}: ' if switched else ''}"
            f"{first.name} is {first.after} instead of {first.before}{more}",
            line=declared.line if declared is not None else 0,
            hint=_SWITCHES.get(switched, ""),
            key="sizes",
        )


def _optimizer_parallel(facts: GateFacts, resized: Sequence[ParameterEdit]) -> str:
    """``off`` or ``on`` where the sizes are those with and without its shards, else "".

    Then only one of the dumps gathers weights for it before they are used, and each of the sizes
    differs in its first dimension by the number of devices of such a gather.
    """
    shards = [
        {
            len(item.ranks)
            for item in side.collectives
            if item.origin == "optimizer parallel" and item.op == "AllGather" and item.ranks
        }
        for side in (facts.old, facts.new)
    ]
    if bool(shards[0]) == bool(shards[1]):
        return ""
    counts = shards[0] or shards[1]
    for item in resized:
        cut, whole = (_dimensions(text or "") for text in (item.before, item.after))
        if not shards[0]:
            cut, whole = whole, cut
        if not cut or not whole or cut[1:] != whole[1:]:
            return ""
        if not any(cut[0] * count == whole[0] for count in counts):
            return ""
    return "off" if shards[0] else "on"


def _dimensions(text: str) -> tuple[int, ...]:
    """``(32, 4)`` of ``Float32[32,4]``; () where one of them is no number."""
    words = _shape(text).removesuffix("]").split(",")
    return tuple(map(int, words)) if all(word.strip().isdecimal() for word in words) else ()


def _shape(text: str) -> str:
    return text.partition("[")[2]
