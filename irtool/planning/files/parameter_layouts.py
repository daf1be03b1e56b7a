"""How parameters lie, as MindSpore writes it into ``parallel_layout_item``.

Of weights that an operator with a strategy uses, and of what an optimizer keeps for them; learning
rates and counters have none.  Device matrices are those of the standard form.  In JSON a dimension
that lies along several axes becomes a dimension of each.  Held to files that MindSpore 2.7.0 saved
for the same networks (docs/ckpt.md).
"""

from __future__ import annotations

from collections.abc import Mapping

from irtool.artefacts.strategies.model import SavedLayout, StrategyFile
from irtool.ir.dataclass import dataclass
from irtool.operators.layout import TensorLayout
from irtool.sharding.network.report import CheckResult, ParameterReport

_SAVED = ("weight", "state", "accumulated gradient")
"""Roles of parameters that have a layout."""


@dataclass(frozen=True, slots=True)
class PredictedLayouts:
    """Layouts by parameter, and those that are not known, with the reason."""

    layouts: Mapping[str, SavedLayout]
    unknown: Mapping[str, str]


def predicted_layouts(report: CheckResult, stage: int | None = None) -> PredictedLayouts:
    """The layouts that MindSpore saves when it compiles a network.

    Args:
        report: what ``check`` says of it, seen from a rank of the stage.
        stage: the stage that keys name, as after merging; None: keys are names alone.
    """
    by_name = {item.name: item for item in report.parameters}
    known: dict[str, SavedLayout] = {}
    unknown: dict[str, str] = {}
    for item in report.parameters:
        if item.role not in _SAVED:
            continue
        owner = by_name.get(item.weight, item)
        layout = owner.layout if item.layout is None else item.layout
        if owner.slice is None or (layout is None and item.why):
            unknown[item.name] = owner.why or item.why or "its layout is not known"
        elif layout is not None and len(layout.tensor_map) == len(item.shape):
            key = item.name if stage is None else f"{stage}-{item.name}"
            known[key] = _saved(key, item.name, stage, layout, owner, report)
    return PredictedLayouts(known, unknown)


class UnknownLayout(ValueError):
    """How a parameter lies is not known; ``stage``: the pipeline stage that has it."""

    def __init__(self, stage: int, name: str, reason: str) -> None:
        super().__init__(f"how {name} lies is not known: {reason}")
        self.stage, self.name, self.reason = stage, name, reason

    def __reduce__(self) -> tuple[type[UnknownLayout], tuple[object, ...]]:
        return type(self), (self.stage, self.name, self.reason)


def predicted_file(path: str, reports: Mapping[int, CheckResult], stages: int) -> StrategyFile:
    """The layouts of a run as the strategy file that MindSpore would save of it.

    Args:
        path: what the file is called.
        reports: what ``check`` says of each pipeline stage.
        stages: how many there are; of several the file is a merged one.

    Raises:
        UnknownLayout: how a parameter lies is not known.
    """
    layouts: dict[str, SavedLayout] = {}
    for stage, report in sorted(reports.items()):
        predicted = predicted_layouts(report, stage if stages > 1 else None)
        for name, reason in predicted.unknown.items():
            raise UnknownLayout(stage, name, reason)
        layouts |= predicted.layouts
    return StrategyFile(path, "predicted", "parameters", {}, {}, frozenset(), layouts)


def _saved(
    key: str,
    name: str,
    stage: int | None,
    layout: TensorLayout,
    owner: ParameterReport,
    report: CheckResult,
) -> SavedLayout:
    plain = layout.standard().expanded()
    size = step = 0
    ranks = owner.gather_ranks
    if ranks is not None and len(ranks) > 1:
        size, step = report.context.weight_shard_size, ranks[1] - ranks[0]
    entries = tuple(entry for entry in plain.tensor_map if not isinstance(entry, tuple))
    return SavedLayout(
        key, name, stage, plain.device_matrix, entries, plain.tensor_shape, size, step
    )


def layout_object(layout: SavedLayout) -> dict[str, object]:
    """A layout as its JSON object.

    Args:
        layout: how a parameter lies, in a device matrix and tensor map as MindSpore counts them.
    """
    return {
        "dev_matrix": list(layout.device_matrix),
        "tensor_map": [
            entry if isinstance(entry, int) else list(entry) for entry in layout.tensor_map
        ],
        "tensor_shape": list(layout.shape or ()),
        "field": layout.field,
        "opt_weight_shard_size": layout.shard_size,
        "opt_weight_shard_step": layout.shard_step,
    }
