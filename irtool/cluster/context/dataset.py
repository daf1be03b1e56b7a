"""How the dataset is split, as dumps show it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TypeAlias, cast

from irtool.cluster.context.evidence import Evidence
from irtool.cluster.context.model import Entry, Origin
from irtool.cluster.context.shown import Shown
from irtool.operators.call import Strategy
from irtool.operators.layout import UserLayout
from irtool.sharding.network.context import ParallelContext, dataset_of

WHOLE = "full_batch"
PARALLEL = "data_parallel"

Dataset: TypeAlias = Strategy | tuple[UserLayout, ...] | str
"""A strategy, layouts, or one of the words of the context."""


def seen_dataset(evidence: Evidence, stage_size: int | None) -> Entry | None:
    """The split of the dataset: by its operator in a dump, else by the inputs' slices.

    Args:
        evidence: the dumps of a compilation.
        stage_size: devices of a stage; None: not known.

    Returns:
        None where no dump shows it.
    """
    # What stands in the dump before may be the program's own: MindSpore puts the context's there.
    for shown in (evidence.end, evidence.begin):
        if shown is not None and shown.dataset is not None:
            what = f"the strategy of {_operator(shown)}"
            return Entry(named(shown.dataset, stage_size), Origin("dump", shown.path, what))
    operands = None if evidence.begin is None else evidence.begin.dataset_operands
    for shown in evidence.later:
        rows = _ratios(shown, evidence.begin)
        if rows is None or not _is_dataset(rows, operands):
            continue
        value = named(rows, stage_size)
        if not _is_default_cut(value, shown, evidence):
            what = "shapes of the network's inputs"
            return Entry(value, Origin("dump", shown.path, what))
    return None


def _is_default_cut(value: Dataset, shown: Shown, evidence: Evidence) -> bool:
    """Whether inputs may be cut as MindSpore cuts those of a stage that reads no batch.

    The batch goes to the first stage and the labels to the last one; a stage between them has both
    inputs still, cut over its devices whatever the strategy of the dataset is (none are cut under
    ``full_batch``).
    """
    if value == WHOLE or not shown.has_pipeline:
        return False
    earlier = [one for one in (evidence.end, evidence.begin) if one is not None]
    if earlier:
        return not any(one.has_dataset for one in earlier)
    return value == PARALLEL


def _operator(shown: Shown) -> str:
    return "GetNext" if any(True for _ in shown.dump.nodes(op="GetNext")) else "_VirtualDataset"


def _ratios(shown: Shown, begin: Shown | None) -> Strategy | None:
    """Whole dimensions by those of a slice, input by input; None where one is not known.

    A dump writes the whole ones behind the type of an input; where it does not, the inputs of the
    begin dump have them.
    """
    before: Mapping[str, Sequence[int]] = {} if begin is None else begin.inputs
    rows: list[tuple[int, ...]] = []
    for one in shown.dump.parameters:
        if one.is_weight:
            continue
        own = one.type.dimensions if one.type is not None else None
        full = _numbers(one.symbolic) or before.get(one.name)
        if own is None or full is None or len(own) != len(full):
            return None
        if any(part < 1 or size % part for part, size in zip(own, full, strict=True)):
            return None
        rows.append(tuple(size // part for part, size in zip(own, full, strict=True)))
    return tuple(rows) or None


def _is_dataset(rows: Strategy, operands: int | None) -> bool:
    """Whether inputs are the dataset alone: the first gradient of a loss may be an input, too."""
    if operands is not None:
        return operands == len(rows)
    return len({row[:1] for row in rows if row}) <= 1


def _numbers(text: str | None) -> tuple[int, ...] | None:
    """``[256, 64]``; None where a size is a symbol."""
    inner = (text or "").strip()
    if not inner.startswith("[") or not inner.endswith("]"):
        return None
    parts = [part.strip() for part in inner[1:-1].split(",") if part.strip()]
    return tuple(map(int, parts)) if all(part.isdecimal() for part in parts) else None


def named(dataset: Dataset, stage_size: int | None) -> Dataset:
    """The word of the context that says the same as a strategy, if one does.

    Args:
        dataset: a strategy, layouts or a word.
        stage_size: devices of a stage; None: not known, so that no strategy is taken for data
            parallel.

    Returns:
        ``full_batch``, ``data_parallel``, or what was given.
    """
    if isinstance(dataset, str) or any(isinstance(row, UserLayout) for row in dataset):
        return dataset
    rows = cast("Strategy", dataset)
    if all(size == 1 for row in rows for size in row):
        return WHOLE
    parallel = (not row or row == (stage_size, *(1,) * (len(row) - 1)) for row in rows)
    if stage_size is not None and all(parallel):
        return PARALLEL
    return rows


def given_dataset(values: Mapping[str, object]) -> Dataset | None:
    """What the keys ``dataset_strategy`` and ``full_batch`` say; None where neither is there.

    Args:
        values: by key of ``set_auto_parallel_context``.

    Raises:
        ValueError: a value can't be right.
    """
    read = dataset_of(values)
    if "dataset" in read:
        return cast("Dataset", read["dataset"])
    if "full_batch" in read or values.get("full_batch") is not None:
        full_batch = ParallelContext.from_mapping(
            {key: values[key] for key in ("dataset_strategy", "full_batch") if key in values}
        ).full_batch
        return WHOLE if full_batch else PARALLEL
    return None


def same_split(first: Dataset, second: Dataset, stage_size: int | None) -> bool:
    """Whether two ways to say how a dataset is split come to the same; what was lost fits anything.

    Args:
        first: a strategy, layouts or a word.
        second: likewise.
        stage_size: devices of a stage; None: not known.
    """
    if first == "unknown" or second == "unknown":
        return True  # a file that lost the layouts says nothing against any
    one, other = _rows(first), _rows(second)
    if isinstance(one, str) and isinstance(other, str):
        return one == other or stage_size == 1
    return _plain(named(one, stage_size), stage_size) == _plain(
        named(other, stage_size), stage_size
    )


def _rows(dataset: Dataset) -> Strategy | str:
    if isinstance(dataset, str):
        return dataset
    return tuple(row.strategy if isinstance(row, UserLayout) else row for row in dataset)


def _plain(dataset: Dataset, stage_size: int | None) -> Dataset:
    return WHOLE if dataset == PARALLEL and stage_size == 1 else dataset
