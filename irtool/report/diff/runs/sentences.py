"""What is told of two runs in sentences: the answer, and why an operator is accused."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping

from irtool.compare.runs.comparison import RunComparison
from irtool.compare.runs.hyperparameters import Row
from irtool.compare.tensors.case import Case, ChecksumAgreement, checksum_agreement
from irtool.compare.tensors.comparison import TensorComparison
from irtool.compare.tensors.dtypes import coarsest, roundoff
from irtool.compare.tensors.judging.verdict import Judged
from irtool.compare.tensors.model import Op
from irtool.compare.tensors.pairing.crossing import Crossing
from irtool.compare.tensors.semantics import family
from irtool.ir.units import error_text, numbered_text, part_text, plural, quantity_text
from irtool.report.diff.losses import answer_text as losses_text

_HALF = 2.0**-12
"""Roundoff from which a type is of half precision."""
_SETTINGS = 4
"""Settings that the first sentence lists."""


def sentences(comparison: RunComparison, case: Case | None, is_strict: bool = False) -> list[str]:
    """The answer, the most important sentence first.

    Args:
        comparison: of the runs.
        case: the first operator that introduces error; None where none does.
        is_strict: whether what differs in a bit is told.
    """
    lines = list(_sentences(comparison, case))
    if is_strict and (text := unequal_text(comparison)):
        lines.insert(0 if case is None else 1, text)
    return lines or ["nothing could be compared"]


def is_by_figures(tensors: TensorComparison) -> bool:
    """Whether one side has figures of its tensors, and neither values nor sketches.

    Args:
        tensors: of one step of one rank.
    """
    runs = (tensors.left, tensors.right)
    return any(run.level == "statistics" and not run.columns.sketches for run in runs)


def unequal_text(comparison: RunComparison) -> str:
    """How many operators differ in a bit, and which is the first; empty where none does."""
    units = comparison.units
    first = next((unit for unit in units if unit.unequal), None)
    if first is None:
        return ""
    count = sum(len(unit.unequal) for unit in units)
    where = f" ({first.name})" if first.name else ""
    return (
        f"not equal to the bit: {part_text(count, sum(unit.pairs for unit in units))} operators "
        f"differ, the first is {first.unequal[0]}{where}"
    )


def _sentences(comparison: RunComparison, case: Case | None) -> Iterator[str]:
    rows = comparison.told_differently[:_SETTINGS]
    if rows:
        yield f"the runs have different settings: {'; '.join(map(_setting_text, rows))}"
    if case is not None:
        yield _case_text(comparison, case)
    elif comparison.units:
        yield _healthy_text(comparison)
    tensors = comparison.tensors
    is_open = case is None or case.judged.may_be_order
    if is_open and tensors is not None and is_by_figures(tensors):
        yield f"cannot be told from statistics: {_unstated_text(comparison)} (dump tensors)"
    layout = comparison.shown.layout if comparison.shown is not None else None
    if layout is not None and tensors is not None and is_by_figures(tensors) and layout.unknown:
        yield (
            f"cannot be told from statistics: {plural(len(layout.unknown), 'tensor')}, most of "
            "them terms of a sum over ranks (dump tensors)"
        )
    agreement = checksum_agreement(tensors) if tensors is not None else None
    if agreement is not None:
        yield checksum_text(agreement)
    if tensors is not None and tensors.crossing is not None:
        unseen = unseen_text(tensors.crossing)
        yield pairing_text(tensors.crossing) + (f"; not seen: {unseen}" if unseen else "")
    if comparison.losses is not None:
        losses = comparison.losses
        if losses.verdict == "noise" and comparison.is_suspicious:
            steps = "one step is" if len(losses.steps) == 1 else f"{len(losses.steps)} steps are"
            yield f"losses: {steps} too few to judge"
        elif comparison.loss_parts:
            yield f"losses: {_parts_text(comparison.loss_parts)}"
        elif comparison.are_losses_summed:
            yield f"losses: {losses_text(losses)}, as micro-batches add theirs up"
        else:
            yield f"losses: {losses_text(losses)}"
    if not comparison.units and comparison.graphs is not None:
        yield _graphs_text(comparison)
    elif comparison.suspects:
        side = "left" if comparison.left.dump is not None else "right"
        yield _suspects_text(comparison, f"the graph of the {side} run")


def _parts_text(parts: Mapping[str, tuple[int, ...]]) -> str:
    """Whose part of the batch a loss curve is of."""
    texts = [
        f"the {side} curve is the loss of {numbered_text('rank', ranks)}, on a part of the batch"
        for side, ranks in parts.items()
    ]
    return (
        f"{' and '.join(texts)}: at the first step the mean over ranks is the other one, later "
        "steps do not tell"
    )


def _unstated_text(comparison: RunComparison) -> str:
    """What statistics leave open: the order of numbers, and whole numbers between two extremes."""
    kinds = dict.fromkeys(
        fact.kind
        for unit in comparison.units
        for fact in unit.facts
        if fact.compared_by == "extremes" and not fact.differing
    )
    text = "whether numbers come in another order"
    if kinds:
        *most, last = kinds
        names = f"{', '.join(most)} and {last}" if most else last
        text += f", and what {names} are between their extremes"
    tensors = comparison.tensors
    alone = alone_text(tensors) if tensors is not None and comparison.first is None else ""
    return f"{text}; what {alone} changes, which rounding may hide" if alone else text


def alone_text(tensors: TensorComparison) -> str:
    """Which calls of half precision only one side makes that compute something; empty for none.

    Args:
        tensors: of one step of one rank.
    """
    texts: list[str] = []
    rows = (("left", tensors.left, tensors.only_left), ("right", tensors.right, tensors.only_right))
    for side, run, ops in rows:
        dtypes = run.columns.dtypes
        names = [
            op.name
            for op in ops
            if op.phase == "forward" and not op.is_module
            and family(op.type) not in ("view", "cast")
            and any(_HALF <= roundoff(dtypes[place]) < 1 for place in op.outputs)
        ]  # fmt: skip
        if names:
            more = f" and {len(names) - 1} more" if len(names) > 1 else ""
            texts.append(f"{names[0]}{more} on the {side} alone")
    return " and ".join(texts)


def _setting_text(row: Row) -> str:
    if row.left != row.right:
        return f"{row.name}: {row.left} | {row.right}"
    # What only tensors tell of both runs is one text.
    return f"{row.name}: {row.left}" + (f" ({row.where})" if row.where else "")


def _case_text(comparison: RunComparison, case: Case) -> str:
    judged = case.judged
    name = case.left.name
    is_added = judged.maker_left is None and judged.maker_right is not None
    if is_added and not judged.may_be_order:
        name = f"{case.right.name} (only in the right run)"
    if judged.since is not None:
        place = f"between {judged.since.name} and {name}"
    elif len(case.left.members) > 1:
        place = f"between {case.left.members[0].name} and {name}"
    else:
        place = f"at {name}"
    if stretch := stretch_text(case.right):
        place += f" (right: {stretch})"
    if judged.stage is not None:
        place += f" of stage {judged.stage}"
    if judged.ranks:
        place += f" on {numbered_text('rank', judged.ranks)}"
    elif judged.ranks_open:
        numbers = numbered_text("rank", judged.ranks_open)
        place += f" on some of {numbers} (statistics do not tell which)"
    if judged.may_be_order:
        same = "has the same numbers in another order"
        if judged.may_be_mask:
            same += ", or other elements of it are masked"
        place += f", or an input of it {same}"
    unit = comparison.shown.name if comparison.shown is not None else ""
    where = ", ".join(text for text in (case.left.source, unit) if text)
    return f"error begins {place}" + (f" ({where})" if where else "")


def _graphs_text(comparison: RunComparison) -> str:
    """What graphs say where no tensors decide."""
    if comparison.graphs is not None and comparison.graphs.is_identical:
        return "the graphs are identical"
    if comparison.suspects:
        return _suspects_text(comparison, "the graphs")
    return "the graphs differ in nothing that could change numbers"


def _suspects_text(comparison: RunComparison, where: str) -> str:
    count = plural(len(comparison.suspects), "suspect")
    return f"{count} in {where}, and no tensors to decide: {comparison.suspects[0].why}"


def _healthy_text(comparison: RunComparison) -> str:
    units, tensors = comparison.units, comparison.tensors
    if all(unit.equal for unit in units):
        is_stated = tensors is not None and is_by_figures(tensors)
        return "the figures of all tensors are equal" if is_stated else "all tensors are equal"
    if tensors is not None and checksum_agreement(tensors) is not None:
        return "checksums cannot show whether an operator introduces error of its own"
    hidden = next((item for item in tensors.judged if item.untold), None) if tensors else None
    if hidden is not None:
        return (
            f"cannot be told: half precision or a fault before or within {hidden.pair.left.name}, "
            "which level L0 does not show (dump level mix)"
        )
    changed = sum(unit.counts.get("attribute differs", 0) for unit in units)
    if changed:
        verb = "has" if changed == 1 else "have"
        operators = plural(changed, "operator")
        first = _first_attribute_text(tensors) if tensors is not None else ""
        return f"no operator introduces error, but {operators} {verb} different arguments{first}"
    lower = sum(unit.counts.get("lower precision, explained", 0) for unit in units)
    lowered = [item for unit in units for item in unit.lowered]
    if lowered:
        more = f" (and {len(lowered) - 1} more)" if len(lowered) > 1 else ""
        return (
            f"no operator introduces error, but precision is lowered before {lowered[0][0]}: "
            f"{lowered[0][1]}{more}"
        )
    if lower:
        where = _lowered_text(tensors) if tensors is not None else ""
        return (
            "no operator introduces error: what differs is explained by "
            f"{plural(lower, 'operator')} in lower precision{where}"
        )
    judged = sum(unit.pairs - unit.counts.get("not comparable", 0) for unit in units)
    if not judged:
        return "no tensor could be judged"
    losses = ", but losses are too far apart" * comparison.are_losses_apart
    return f"no operator introduces error of its own{losses}"


def _first_attribute_text(tensors: TensorComparison) -> str:
    """Which operator is the first with other arguments, and which they are."""
    for item in tensors.judged:
        if item.verdict == "attribute differs" and item.attributes:
            return f", the first {item.pair.left.name} ({item.attributes[0]})"
    return ""


def _lowered_text(tensors: TensorComparison) -> str:
    """Which operator is the first in lower precision, of which type, and on which side."""
    item = next(
        (item for item in tensors.judged if item.verdict == "lower precision, explained"), None
    )
    if item is None:
        return ""
    columns = (tensors.left.columns, tensors.right.columns)
    types = [
        {columns[n].dtypes[places[n]] for places in (*item.slots.inputs, *item.slots.outputs)}
        for n in (0, 1)
    ]
    units = [coarsest(list(kinds)) for kinds in types]
    name = f", the first {item.pair.left.name}"
    if units[0] == units[1]:
        return name
    which = units.index(max(units))
    kind = max(types[which], key=roundoff)
    return f"{name}: {item.pair.left.type} in {kind} on the {('left', 'right')[which]}"


def checksum_text(agreement: ChecksumAgreement) -> str:
    """What checksums alone tell: how many are equal, and the first result that differs."""
    text = f"checksums alone: {agreement.equal:,} of {agreement.pairs:,} pairs of tensors are equal"
    if agreement.first is not None:
        text += f"; the first result that differs is that of {agreement.first.pair.left.name}"
        text += {
            "differ": ", whose inputs differ already",
            "equal": ", whose inputs are equal",
            "unknown": "",
        }[agreement.inputs]
    if agreement.is_across_frameworks:
        return f"{text}; of two frameworks rounding alone makes them differ"
    if agreement.equal == agreement.pairs:
        return text
    return f"{text}; checksums cannot show by how much"


def stretch_text(op: Op) -> str:
    """From which call to which several go that stand as one operator; empty for one call.

    Args:
        op: an operator of a run, its calls in the order in which they ran.
    """
    if len(op.members) < 2:
        return ""
    return f"{len(op.members)} calls, from {op.members[0].name} to {op.members[-1].name}"


def pairing_text(crossing: Crossing) -> str:
    """How many calls of two frameworks' runs are paired.

    Args:
        crossing: how the calls of the two were joined; gradients are told where there are any.
    """
    texts = [f"{crossing.forward[0]:,} of {crossing.forward[1]:,} forward calls"]
    if crossing.backward[1]:
        texts.append(f"{crossing.backward[0]:,} of {crossing.backward[1]:,} gradients")
    return f"{', '.join(texts)} are paired"


def unseen_text(crossing: Crossing) -> str:
    """Which calls of two frameworks' runs could not be seen; empty for none.

    Args:
        crossing: how the calls of the two were joined.
    """
    texts: list[str] = []
    for what, ops in (("", crossing.unseen), ("gradients of ", crossing.unseen_gradients)):
        if len(ops) > 1:
            texts.append(f"{what}{len(ops)} calls from {ops[0].name} to {ops[-1].name}")
        elif ops:
            texts.append(f"{what}{ops[0].name}")
    return "; ".join(texts)


def why_text(judged: Judged) -> str:
    """Why an operator is accused, in one sentence.

    Args:
        judged: a pair of operators with its verdict; errors are relative.
    """
    parts: list[str] = []
    if judged.entered:
        parts.append(judged.entered)
        if judged.is_permuted:
            parts.append("both sides have the same numbers there, in another order")
        if judged.since is not None:
            parts.append(f"{judged.since.name} still makes it alike: {_between_text(judged)}")
        for side, maker in (("left", judged.maker_left), ("right", judged.maker_right)):
            if maker is not None:
                made = "holds numbers of" if judged.is_picked else "is made by"
                parts.append(f"the {side} one {made} {maker.name}, which has no partner")
    elif judged.why and judged.verdict == "introduces error":
        parts.append(judged.why)
    parts += _left_open_texts(judged)
    if judged.attributes:
        parts.append("; ".join(str(change) for change in judged.attributes[:4]))
    if not math.isnan(judged.multiple):
        parts.append(_multiple_text(judged))
    if judged.counted:
        parts.append(judged.counted)
    elif not judged.entered and math.isfinite(judged.z):
        ratio = quantity_text(judged.z, "factor")
        parts.append(
            f"error {_error_in(judged)} in, {error_text(judged.error_out)} out, "
            f"{error_text(judged.budget)} explained ({ratio} times that)"
        )
    elif judged.entered and math.isfinite(judged.error_out):
        parts.append(f"{error_text(judged.error_out)} apart, {_error_in(judged)} before")
    return "; ".join(parts)


def _multiple_text(judged: Judged) -> str:
    """By which factor the accused tensor differs, and how many gradients have it."""
    text = f"the right one is {judged.multiple:.4g} times the left one"
    near, count = judged.multiple_of
    if near > 1:
        text += f", as are {near:,} of {count:,} gradients from here on"
    return text


_MOST_NAMED = 3
"""Operators that one side alone has of which the names are told."""


def _between_text(judged: Judged) -> str:
    """What lies between an input and the operator that still made it alike."""
    texts: list[str] = []
    for side, names in zip(("left", "right"), judged.alone, strict=True):
        if names:
            more = f" and {len(names) - _MOST_NAMED} more" if len(names) > _MOST_NAMED else ""
            texts.append(f"{', '.join(names[:_MOST_NAMED])}{more} on the {side} alone")
    return (
        f"between them lie {'; '.join(texts)}" if texts else "what lies between is not in the dump"
    )


def _left_open_texts(judged: Judged) -> Iterator[str]:
    """Where else a fault may be that figures show."""
    if not judged.may_be_order:
        return
    for side, maker in (("left", judged.maker_left), ("right", judged.maker_right)):
        if maker is not None:
            yield f"an input is made on the {side} by {maker.name}, which has no partner"
    if judged.since is not None and not judged.may_be_mask:
        yield f"{judged.since.name} has other inputs, of which figures of its result show nothing"
    if judged.may_be_mask:
        yield "figures do not tell which elements are masked"


def _error_in(judged: Judged) -> str:
    """The error that goes in; a dump of results alone does not tell it."""
    return error_text(judged.error_in) if math.isfinite(judged.error_in) else "unknown"
