"""The parallel context: what a user gives to ``set_auto_parallel_context``, and the devices."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from fnmatch import fnmatchcase
from typing import Any, cast

from irtool.ir.dataclass import dataclass
from irtool.operators.call import Strategy
from irtool.operators.judgement import Context
from irtool.operators.layout import MapEntry, UserLayout
from irtool.syntax.reading import parse_json

MODES = ("stand_alone", "data_parallel", "semi_auto_parallel", "auto_parallel", "hybrid_parallel")
SEARCHES = ("recursive_programming", "sharding_propagation", "dynamic_programming")
DEFAULT_THRESHOLD = 64
"""``parallel_optimizer_threshold`` in KB: smaller weights are not sharded over their replicas."""
EXCLUDED = "parallel_optimizer_excluded"
"""Key of the weights that ``Parameter(parallel_optimizer=False)`` keeps whole; it is no key of
MindSpore's, which has this with each weight."""
LARGEST_WORLD = 4096
FEW_DEVICES = (1, 2, 4)
NODE_DEVICES = 8
"""A cluster has a few devices, or whole nodes of them."""
_TARGETS = {"ascend": "Ascend", "gpu": "GPU", "cpu": "CPU"}


@dataclass(frozen=True, slots=True)
class ParallelContext:
    """Devices and options under which a network is compiled; defaults are MindSpore's own.

    ``rank``: the global rank from which slices and groups are seen. ``dataset``: how the dataset is
    split; None: ``full_batch`` decides; ``"unknown"``: it was given in a form that was lost.
    ``threshold``: in KB. ``weight_shard_size``: -1 means all replicas. ``accumulation_step``: 0
    means that the dump shows it. ``scheduler``: of the pipeline, as MindSpore names it.
    ``result_broadcast``: in inference, the last stage hands its results to all others.
    ``excluded``: names of weights, or patterns (``*.norm.*``), that optimizer parallel leaves
    whole.
    """

    devices: int = 1
    stages: int = 1
    rank: int = 0
    mode: str = "semi_auto_parallel"
    search: str = "recursive_programming"
    target: str = "Ascend"
    soc: str = ""
    full_batch: bool = False
    dataset: Strategy | tuple[UserLayout, ...] | str | None = None
    enable_alltoall: bool = False
    parallel_optimizer: bool = False
    threshold: int = DEFAULT_THRESHOLD
    weight_shard_size: int = -1
    accumulation_shard: bool = False
    accumulation_step: int = 0
    gradients_mean: bool = False
    gradient_fp32_sync: bool = True
    loss_repeated_mean: bool = True
    interleave: bool = False
    scheduler: str = "1f1b"
    result_broadcast: bool = False
    excluded: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        _check(self)

    @classmethod
    def from_mapping(cls, values: Mapping[str, object], **overrides: object) -> ParallelContext:
        """Read the keys of ``set_auto_parallel_context``; values may be strings.

        Keys that say nothing about sharding are passed over. ``overrides`` are fields of this
        class and win over the mapping (None: not given).

        Raises:
            ValueError: a value can't be right; the message names key and value.
        """
        fields = context_fields(values)
        fields.update({key: value for key, value in overrides.items() if value is not None})
        return cls(**cast("dict[str, Any]", fields))

    @property
    def stage_size(self) -> int:
        """Devices of one pipeline stage."""
        return self.devices // self.stages

    @property
    def stage(self) -> int:
        """The stage that the rank is in."""
        return self.rank // self.stage_size

    @property
    def stage_ranks(self) -> tuple[int, ...]:
        """The ranks of that stage."""
        first = self.stage * self.stage_size
        return tuple(range(first, first + self.stage_size))

    @property
    def is_parallel(self) -> bool:
        """Whether MindSpore looks at strategies at all in this mode."""
        return self.mode in ("semi_auto_parallel", "auto_parallel")

    @property
    def searches(self) -> bool:
        """Whether a search sets the strategies."""
        return self.mode == "auto_parallel"

    @property
    def propagates(self) -> bool:
        """Whether that search is the propagation of the user's strategies."""
        return self.searches and self.search == "sharding_propagation"

    @property
    def overrides(self) -> bool:
        """Whether the search may set other strategies than those that users gave."""
        return self.searches and not self.propagates

    def excludes(self, weight: str) -> bool:
        """Whether a weight is one of those that optimizer parallel leaves whole."""
        return any(fnmatchcase(weight, pattern) for pattern in self.excluded)

    def keeps_out(self, weight: str) -> bool:
        """Whether others are cut by optimizer parallel, but not this one."""
        return self.parallel_optimizer and self.excludes(weight)

    def refusals(self) -> Iterator[str]:
        """Why MindSpore does not begin to compile under this context at all."""
        size = self.weight_shard_size
        if self.parallel_optimizer and size > self.devices:
            yield f"optimizer_weight_shard_size {size} exceeds the number of devices {self.devices}"
        if self.stages > 1 and self.searches and self.search == "dynamic_programming":
            yield "a search of stages needs sharding_propagation or recursive_programming"

    @property
    def sums_before_scatter(self) -> bool:
        """Whether replicas sum a gradient whole, before an optimizer's shards get theirs of it.

        So it is where stages of a pipeline accumulate gradients whole; elsewhere what was scattered
        is summed (measured).
        """
        return self.stages > 1 and not self.accumulation_shard

    def for_rank(self, rank: int) -> ParallelContext:
        """This context seen from another rank.

        Args:
            rank: a global one.
        """
        return replace(self, rank=rank)

    def for_devices(self, devices: int) -> ParallelContext:
        """A context for another number of devices, all else as here, seen from rank 0.

        A dataset of which each device of a stage reads a part of its own is ``data_parallel``, even
        where its strategy counts the devices: it counts the new ones then, as nothing else fits.

        Args:
            devices: of the whole run, all stages together.
        """
        made = replace(self, devices=devices, rank=0)
        if made.stage_size == self.stage_size or not self.counts_devices:
            return made
        return replace(made, dataset=None, full_batch=False)

    @property
    def counts_devices(self) -> bool:
        """Whether the strategy of the dataset spells ``data_parallel`` for this many devices."""
        size = self.stage_size
        rows = () if isinstance(self.dataset, str) else self.dataset or ()
        parts = [row for row in rows if not isinstance(row, UserLayout)]
        return (
            size > 1
            and any(parts)
            and len(parts) == len(rows)
            and all(not row or row == (size, *(1,) * (len(row) - 1)) for row in parts)
        )

    def dataset_note(self, devices: int) -> str:
        """What has to become of the strategy of the dataset elsewhere; "" where it can stay."""
        size = self.for_devices(devices).stage_size
        if size == self.stage_size or not self.counts_devices:
            return ""
        return (
            f"dataset_strategy cuts batches into {self.stage_size} parts, one a device of a stage: "
            f'it has to become "data_parallel", or {size} parts'
        )

    def for_operators(self, *, dynamic: bool) -> Context:
        """What the judgement of a single operator needs of it."""
        # It reads the table of operators, which who only reads a context doesn't need.
        from irtool.operators.measured import ENFORCED

        dataset = None if isinstance(self.dataset, str) else self.dataset
        return Context(
            devices=self.stage_ranks,
            device_num=self.devices,
            rank=self.rank,
            target=self.target,
            soc=self.soc,
            searching=self.searches,
            dynamic=dynamic,
            full_batch=self.full_batch,
            dataset_strategy=dataset,
            measured_only=ENFORCED,
        )


def context_fields(values: Mapping[str, object]) -> dict[str, object]:
    """Fields of :class:`ParallelContext` by name, from keys of ``set_auto_parallel_context``.

    Each value is read by itself; whether they fit one another is for the class to say.

    Args:
        values: by key of MindSpore's; None counts as not given, and keys without a meaning here are
            passed over.

    Raises:
        ValueError: a value can't be right; the message names key and value.
    """
    fields: dict[str, object] = {}
    for key, value in values.items():
        reader = _READERS.get(key)
        if reader is not None and value is not None:
            name, read = reader
            fields[name] = read(key, value)
    fields.update(_optimizer_config(values.get("parallel_optimizer_config")))
    fields.update(_pipeline_config(values.get("pipeline_config")))
    fields.update(dataset_of(values))
    return fields


def _check(context: ParallelContext) -> None:
    """Refuse what no cluster has."""
    devices, stages, rank = context.devices, context.stages, context.rank
    if not 0 < devices <= LARGEST_WORLD:
        raise ValueError(f"device_num must be from 1 to {LARGEST_WORLD}, but is {devices}")
    if devices not in FEW_DEVICES and devices % NODE_DEVICES:
        raise ValueError(f"device_num must be 1, 2, 4 or divisible by 8, but is {devices}")
    if stages < 1:
        raise ValueError(f"pipeline_stages must be at least 1, but is {stages}")
    if devices % stages:
        raise ValueError(f"device_num {devices} is not divisible by pipeline_stages {stages}")
    if not 0 <= rank < devices:
        raise ValueError(f"global_rank must be from 0 to {devices - 1}, but is {rank}")
    if context.mode not in MODES:
        raise ValueError(f"parallel_mode {context.mode!r} is none of {', '.join(MODES)}")
    if context.search not in SEARCHES:
        raise ValueError(f"search_mode {context.search!r} is none of {', '.join(SEARCHES)}")
    size = context.weight_shard_size
    if size != -1 and not 0 < size <= LARGEST_WORLD:
        raise ValueError(
            f"optimizer_weight_shard_size must be -1 or from 1 to {LARGEST_WORLD}, but is {size}"
        )
    if context.threshold < 0:
        raise ValueError(
            f"parallel_optimizer_threshold must not be negative, but is {context.threshold}"
        )


def _number(key: str, value: object) -> int:
    try:
        if isinstance(value, bool) or (isinstance(value, float) and not value.is_integer()):
            raise ValueError
        return int(cast("str", value))
    except (TypeError, ValueError):
        raise ValueError(f"{key} must be a whole number, but is {value!r}") from None


def _count(key: str, value: object) -> int:
    number = _number(key, value)
    if number < 1:
        raise ValueError(f"{key} must be at least 1, but is {number}")
    return number


def _shard_size(key: str, value: object) -> int:
    """Over how many replicas: MindSpore only warns of 1, and keeps its default, all of them."""
    size = _number(key, value)
    return -1 if size == 1 else size


def _flag(key: str, value: object) -> bool:
    if isinstance(value, bool):
        return value
    known = {"true": True, "1": True, "false": False, "0": False}.get(str(value).strip().lower())
    if known is None:
        raise ValueError(f"{key} must be true or false, but is {value!r}")
    return known


def _text(key: str, value: object) -> str:
    if not isinstance(value, str):
        raise ValueError(f"{key} must be a text, but is {value!r}")
    return value.strip()


def _target(key: str, value: object) -> str:
    text = _text(key, value)
    known = _TARGETS.get(text.lower())
    if known is None:
        raise ValueError(f"{key} must be Ascend, GPU or CPU, but is {value!r}")
    return known


def _pipeline_config(value: object) -> dict[str, object]:
    """``pipeline_config``: whether stages hold several chunks, and the scheduler."""
    if value is None:
        return {}
    key = "pipeline_config"
    config = _structure(key, value)
    if not isinstance(config, Mapping):
        raise ValueError(f"{key} must be a table, but is {value!r}")
    table = cast("Mapping[str, object]", config)
    name = "pipeline_interleave"
    fields: dict[str, object] = {"interleave": _flag(f"{key}.{name}", table.get(name, False))}
    if (scheduler := table.get("pipeline_scheduler")) is not None:
        fields["scheduler"] = _text(f"{key}.pipeline_scheduler", scheduler)
    return fields


def _names(key: str, value: object) -> tuple[str, ...]:
    """Names, or one text with commas between them."""
    items: object = value
    if isinstance(value, str):
        text = value.strip()
        items = _structure(key, text) if text[:1] in ("[", "(") else text.split(",")
    if not isinstance(items, Iterable) or isinstance(items, str | Mapping):
        raise ValueError(f"{key} must be names of weights, but is {value!r}")
    listed = list(cast("Iterable[object]", items))
    if not all(isinstance(item, str) for item in listed):
        raise ValueError(f"{key} must be names of weights, but is {value!r}")
    return tuple(name for item in cast("list[str]", listed) if (name := item.strip()))


_READERS: dict[str, tuple[str, Callable[[str, object], object]]] = {
    "device_num": ("devices", _number),
    "devices": ("devices", _number),
    "global_rank": ("rank", _number),
    "rank": ("rank", _number),
    "pipeline_stages": ("stages", _number),
    "stages": ("stages", _number),
    "parallel_mode": ("mode", _text),
    "search_mode": ("search", _text),
    "auto_parallel_search_mode": ("search", _text),
    "device_target": ("target", _target),
    "target": ("target", _target),
    "soc": ("soc", _text),
    "soc_version": ("soc", _text),
    "full_batch": ("full_batch", _flag),
    "enable_alltoall": ("enable_alltoall", _flag),
    "enable_parallel_optimizer": ("parallel_optimizer", _flag),
    "optimizer_weight_shard_size": ("weight_shard_size", _shard_size),
    "grad_accumulation_step": ("accumulation_step", _count),
    "gradients_mean": ("gradients_mean", _flag),
    "gradient_fp32_sync": ("gradient_fp32_sync", _flag),
    "loss_repeated_mean": ("loss_repeated_mean", _flag),
    "pipeline_interleave": ("interleave", _flag),
    "pipeline_scheduler": ("scheduler", _text),
    "pipeline_result_broadcast": ("result_broadcast", _flag),
    EXCLUDED: ("excluded", _names),
}
"""Keys that are understood: the field they fill, and how their value is read."""


def _structure(key: str, value: object) -> object:
    """A value that may be written as text: JSON, or a Python literal."""
    if not isinstance(value, str):
        return value
    try:
        return parse_json(value)
    except ValueError:
        pass
    try:
        return ast.literal_eval(value)
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        raise ValueError(f"{key} can't be read: {value!r}") from None


def _optimizer_config(value: object) -> dict[str, object]:
    """``parallel_optimizer_config``: threshold, shard size, sharding of accumulated gradients."""
    if value is None:
        return {}
    key = "parallel_optimizer_config"
    config = _structure(key, value)
    if not isinstance(config, Mapping):
        raise ValueError(f"{key} must be a table, but is {value!r}")
    table = cast("Mapping[str, object]", config)
    fields: dict[str, object] = {}
    if "parallel_optimizer_threshold" in table:
        name = f"{key}.parallel_optimizer_threshold"
        threshold = _number(name, table["parallel_optimizer_threshold"])
        # -1 stands for the default.
        fields["threshold"] = DEFAULT_THRESHOLD if threshold == -1 else threshold
    if "optimizer_weight_shard_size" in table:
        name = f"{key}.optimizer_weight_shard_size"
        fields["weight_shard_size"] = _shard_size(name, table["optimizer_weight_shard_size"])
    if "gradient_accumulation_shard" in table:
        name = f"{key}.gradient_accumulation_shard"
        fields["accumulation_shard"] = _flag(name, table["gradient_accumulation_shard"])
    return fields


def dataset_of(values: Mapping[str, object]) -> dict[str, object]:
    """``dataset_strategy``: a word, strategies, or layouts. It goes before ``full_batch``.

    Args:
        values: by key of ``set_auto_parallel_context``, of which ``dataset_strategy`` alone is
            read.

    Returns:
        The fields of :class:`ParallelContext` that it fills.

    Raises:
        ValueError: it is nothing of these.
    """
    given = values.get("dataset_strategy")
    if given is None:
        return {}
    if isinstance(given, str) and given in ("full_batch", "data_parallel"):
        return {"full_batch": given == "full_batch"}
    rows = _layouts_in(given) if isinstance(given, str) else given
    if rows is None:
        rows = _structure("dataset_strategy", given)
    if not isinstance(rows, Sequence) or isinstance(rows, str):
        raise ValueError(f"dataset_strategy must be a tuple of tuples, but is {given!r}")
    items = list(cast("Sequence[object]", rows))
    if not items:
        # Strategies can't be none at all: it was given as layouts, which are not shown.
        return {"dataset": "unknown"}
    if any(isinstance(item, (Mapping, UserLayout)) for item in items):
        return {"dataset": tuple(_layout(item) for item in items)}
    return {"dataset": tuple(row for item in items for row in _rows(given, item))}


def _rows(given: object, item: object) -> Iterator[tuple[int, ...]]:
    """The rows of one input: several where it is a list of tensors."""
    if isinstance(item, list | tuple):
        parts = list(cast("Sequence[object]", item))
        if parts and all(isinstance(part, list | tuple) for part in parts):
            for part in parts:
                yield from _rows(given, part)
            return
    yield _row(given, cast("object", item))


def _row(given: object, item: object) -> tuple[int, ...]:
    if not isinstance(item, Sequence) or isinstance(item, str):
        raise ValueError(f"dataset_strategy must be a tuple of tuples, but is {given!r}")
    values = list(cast("Sequence[object]", item))
    if not all(isinstance(value, int) and not isinstance(value, bool) for value in values):
        raise ValueError(f"dataset_strategy must hold whole numbers, but is {given!r}")
    return tuple(cast("list[int]", values))


def _layout(item: object) -> UserLayout:
    if isinstance(item, UserLayout):
        return item
    if not isinstance(item, Mapping):
        raise ValueError(f"dataset_strategy mixes layouts with {item!r}")
    table = cast("Mapping[str, Any]", item)
    try:
        matrix = tuple(int(size) for size in table["device_matrix"])
        alias = tuple(str(name) for name in table.get("alias_name", ()))
        entries: list[MapEntry] = [_map_entry(entry, alias) for entry in table["tensor_map"]]
        if any(not -1 <= axis < len(matrix) for entry in entries for axis in _axes(entry)):
            raise ValueError(entries)
    except (KeyError, TypeError, ValueError):
        raise ValueError(
            f"a layout needs device_matrix and tensor_map, but dataset_strategy has {item!r}"
        ) from None
    return UserLayout(matrix, tuple(entries), alias_name=alias)


def _map_entry(entry: object, alias: tuple[str, ...]) -> MapEntry:
    """An entry by numbers, as dumps print it, or by names of axes, as ``Layout`` takes it."""
    if isinstance(entry, str):
        return -1 if entry == "None" else len(alias) - 1 - alias.index(entry)
    if isinstance(entry, int):
        return entry
    if not isinstance(entry, list | tuple):
        raise TypeError(entry)
    return tuple(
        axis for part in cast("Sequence[object]", entry) for axis in _axes(_map_entry(part, alias))
    )


def _axes(entry: MapEntry) -> tuple[int, ...]:
    return entry if isinstance(entry, tuple) else (entry,)


def _layouts_in(text: str) -> list[object] | None:
    """``(Layout((4, 2), ("dp", "mp"))("dp", "None"), …)`` as tables; None if it is no such text."""
    if "Layout(" not in text:
        return None
    message = f"dataset_strategy can't be read: {text!r}"
    try:
        tree = ast.parse(text.strip(), mode="eval").body
        items = tree.elts if isinstance(tree, ast.Tuple | ast.List) else [tree]
        return [_layout_call(item) for item in items]
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        raise ValueError(message) from None


def _layout_call(item: ast.expr) -> dict[str, object]:
    """Read ``Layout(device_matrix, alias_name)(axes)`` as the table of a layout.

    Raises ValueError where it is no such call, or its arguments are no literals.

    Args:
        item: the expression, as Python parses it.
    """
    if not isinstance(item, ast.Call) or not isinstance(item.func, ast.Call):
        raise ValueError(ast.dump(item))
    values = dict(zip(("device_matrix", "alias_name"), item.func.args, strict=False))
    values |= {keyword.arg: keyword.value for keyword in item.func.keywords if keyword.arg}
    if item.keywords:
        raise ValueError(ast.dump(item))
    arguments: dict[str, object] = {key: ast.literal_eval(value) for key, value in values.items()}
    arguments["tensor_map"] = [ast.literal_eval(axis) for axis in item.args]
    return arguments
