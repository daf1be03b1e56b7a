"""MindSpore's strategy files: which operator got which strategy, and how each parameter lies.

Two kinds are told apart by their keys.  ``strategy_ckpt_config`` and ``AutoParallel.
save_param_strategy_file`` write one *keyed by parameters* (``MatMul_w1``), as JSON or protobuf;
``save_operator_strategy_file`` and ``set_op_strategy_config`` write one *keyed by operators*
(``Default/net-Net/MatMul-op0``), as JSON.  Formats: ``node_strategy.proto`` (package
``mindspore.straspb``) and ``mindspore/parallel/_parallel_serialization.py`` of MindSpore 2.7; read
against files that 2.7.0 and 2.10.0 saved.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import prod
from typing import Literal

from irtool.ir.dataclass import dataclass

Rows = tuple[tuple[int, ...], ...]
"""A strategy: a row for each tensor input."""

MapEntry = int | tuple[int, ...]
"""An entry of a tensor map: -1, an axis counted from the right, or several of one dimension."""

Form = Literal["json", "protobuf", "predicted"]
"""``predicted``: no file, but what MindSpore would save for a dump."""

Keys = Literal["parameters", "operators"]


@dataclass(frozen=True, slots=True)
class SavedStrategy:
    """What a file says of one key."""

    key: str
    stage: int
    strategy: Rows


@dataclass(frozen=True, slots=True)
class SavedLayout:
    """How a file says that one parameter lies.

    Attributes:
        key: as the file has it: ``w1``, or ``1-w1`` after merging.
        name: of the parameter.
        stage: that the key names; None where the file is not merged.
        device_matrix: the devices of the stage, slowest axis first.
        tensor_map: an entry a dimension; protobuf keeps several axes of one dimension together,
            JSON makes a dimension of each.
        shape: of the whole parameter; None in protobuf. In JSON it has a dimension for each entry
            of the map, so a parameter with several axes in one dimension shows another shape.
        shard_size: over how many replicas optimizer parallel cuts it: 0 none, -1 all.
        shard_step: ranks between two of these.
        field: and ``split_shape``, ``offsets``: rows that a manual split gives each device.
    """

    key: str
    name: str
    stage: int | None
    device_matrix: tuple[int, ...]
    tensor_map: tuple[MapEntry, ...]
    shape: tuple[int, ...] | None = None
    shard_size: int = 0
    shard_step: int = 0
    field: int = 0
    split_shape: tuple[int, ...] = ()
    offsets: tuple[int, ...] = ()

    @property
    def devices(self) -> int:
        """Devices of the stage."""
        return prod(self.device_matrix)

    @property
    def is_nested(self) -> bool:
        """Whether a dimension lies along several axes, and the map says so."""
        return any(isinstance(entry, tuple) for entry in self.tensor_map)

    @property
    def is_split_by_hand(self) -> bool:
        """Whether the slices are of different sizes, which the map does not say."""
        return self.field > 0 or bool(self.split_shape)


@dataclass(frozen=True, slots=True)
class StrategyFile:
    """A strategy file, or several of pipeline stages put together.

    Attributes:
        path: the file; of stage files the folder.
        form: how it is written.
        keys: what its strategies are keyed by.
        strategies: by key, in the file's order.
        out_strategies: by key: how results lie, in a file keyed by operators.
        with_layouts: keys whose operands the file gives a ``Layout``, which a strategy can't say.
        layouts: by key, in the file's order.
        parts: the stage files that it was put together of; empty for a file of its own.
    """

    path: str
    form: Form
    keys: Keys
    strategies: Mapping[str, SavedStrategy]
    out_strategies: Mapping[str, SavedStrategy]
    with_layouts: frozenset[str]
    layouts: Mapping[str, SavedLayout]
    parts: tuple[str, ...] = ()

    @property
    def is_predicted(self) -> bool:
        """Whether it was read off a dump."""
        return self.form == "predicted"

    @property
    def stages(self) -> int:
        """Pipeline stages that the layouts name; 1 where the file is not merged."""
        return max((layout.stage or 0 for layout in self.layouts.values()), default=0) + 1

    @property
    def is_merged(self) -> bool:
        """Whether layouts name their stage."""
        return any(layout.stage is not None for layout in self.layouts.values())

    @property
    def stage_devices(self) -> int:
        """Devices of a stage; 0 where the file holds no layouts."""
        first = next(iter(self.layouts.values()), None)
        return 0 if first is None else first.devices

    @property
    def devices(self) -> int:
        """Devices of the run."""
        return self.stages * self.stage_devices

    @property
    def stage(self) -> int | None:
        """The stage that a file of one stage is of, by its first strategy; None: it says none."""
        first = next(iter(self.strategies.values()), None)
        return None if first is None else first.stage
