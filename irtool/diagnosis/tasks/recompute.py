"""Is something not recomputed though its like is?"""

from __future__ import annotations

from collections.abc import Iterator

from irtool.cluster.recomputed_layers import UnevenLayers, uneven_layers
from irtool.cluster.what_if import savings
from irtool.cluster.what_if.plan import HOST_BANDWIDTH, prices
from irtool.cluster.what_if.recompute import activation_options
from irtool.diagnosis.diagnosis import Diagnosis, Task, diagnosis
from irtool.diagnosis.subject import Held, Reads, Subject, source_of
from irtool.ir.finding import Edit, Gain
from irtool.ir.units import bytes_text

TASK: Task = "recompute"
READS: Reads = "validate"
_MEANT = 0.5
"""Where a larger part of the layers is left out, it was hardly forgotten."""


def examine(subject: Subject) -> Iterator[Diagnosis]:
    """A warning for layers that are left out, with what recomputing them would save.

    Args:
        subject: the run; each class of ranks with equal graphs is looked at.

    Raises:
        CannotJudge: no validate dump is whole.
    """
    for held in subject.memories:
        for item in uneven_layers(held.dump, held.memory.phases):
            yield _left_out(subject, held, item)


def _left_out(subject: Subject, held: Held, item: UnevenLayers) -> Diagnosis:
    wanted = set(item.kept)
    options = [
        option
        for option in activation_options(held.memory)
        if option.switch == "recompute" and option.target in wanted
    ]
    price = prices(held.memory, subject.machine, HOST_BANDWIDTH)
    found = savings(held.memory, options, price)
    saved = sum(saving.saved for saving in found)
    layers = list(item.kept)
    names = ", ".join(layers[:4]) + (f" and {len(layers) - 4} more" if len(layers) > 4 else "")
    node = item.kept[layers[0]][0]
    worth = f": {bytes_text(saved)} of the peak" if saved > 0 else ""
    done = len(item.recomputed)
    return diagnosis(
        TASK,
        "warning" if item.share_kept <= _MEANT else "info",
        f"{names} {'is' if len(layers) == 1 else 'are'} not recomputed, as {done} equal "
        f"layer{'' if done == 1 else 's'} {'is' if done == 1 else 'are'} "
        f"({item.recomputed[0]}){worth}",
        subject.command("memory", "RUN"),
        rank=held.ranks[0],
        ranks=held.ranks,
        node=node.id,
        file=held.dump.path,
        line=node.line,
        source=source_of(node),
        edit=Edit(setting="recompute", value="; ".join(f"{layer}.recompute()" for layer in layers)),
        gain=Gain(bytes=saved) if saved > 0 else None,
        weight=float(saved),
        share=saved / subject.machine.memory_bytes,
    )
