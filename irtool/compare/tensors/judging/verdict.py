"""What is said of one operator pair: the words, and what they rest on."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Literal, TypeAlias

from irtool.compare.tensors.judging.attributes import AttributeChange
from irtool.compare.tensors.measuring.measure import Measure
from irtool.compare.tensors.model import Op, Places
from irtool.compare.tensors.pairing.operators import OpPair
from irtool.compare.tensors.pairing.slots import Slots
from irtool.ir.dataclass import dataclass

Verdict: TypeAlias = Literal[
    "equal bits",
    "equal figures",
    "carries error",
    "lower precision, explained",
    "introduces error",
    "attribute differs",
    "below rounding floor",
    "not comparable",
]
Measured: TypeAlias = tuple[Places, Measure]


@dataclass(slots=True)
class Judged:
    """What came of one operator pair.

    Attributes:
        pair: the operators.
        slots: their tensors.
        verdict: in one word.
        z: the largest ratio of error to budget of an output; NaN where there is none.
        error_in: largest relative error of an input (of a gradient, of the forward tensors too).
        error_out: relative error of the output that decided.
        budget: what of it is explained.
        output: places of that output in both dumps.
        entered: the input whose error comes from nowhere, if it is that which is accused.
        attributes: what differs in their arguments.
        why: in words.
        wrong: the side that does not put out what its own inputs give, where that was computed.
        broken: NaN or infinity comes from here.
        parameter: the input that is accused is a parameter of the network.
        untold: an input whose error has a cause that the dump does not let anybody tell.
        gets_other_rows: its operands have another number of rows on the other side, nothing else.
        since: of an accused input, the last operator that made it alike on both sides.
        is_permuted: both sides have the same numbers there, in another order.
        may_be_order: figures alone were compared, which do not tell whether it is this operator or
            an input of it that holds the same numbers in another order.
        may_be_mask: of figures that hold infinity: or other elements of an input are masked.
        unlike_input: the input that differs though figures of the result agree, as those of a
            product do whose operands changed places.
        maker_left, maker_right: operators that made the input that is accused, where the other
            side has no partner for them: an operator that was added, removed or replaced.
        alone: operators that one side alone has between ``since`` and this one, by name.
        is_picked: what is accused holds some numbers of what those operators put out.
        lowered: half precision that this operator's input went through on one side, which only the
            values show.
        ranks: whose part of the output is off, where a run is cut over several.
        stage: the pipeline stage whose ranks these are; None where there is one alone.
        ranks_open: it is some of these, and figures do not tell which.
        counted: of whole numbers that are accused, how many differ, in words.
        multiple: what the accused tensor of the right run is times the left one, if a multiple.
        multiple_of: of a gradient, how many from it on are the same multiple, and of how many.
        between: what is wrong between ranks: "replica", or "sum" that nobody added up.
    """

    pair: OpPair
    slots: Slots
    verdict: Verdict = "not comparable"
    z: float = math.nan
    error_in: float = math.nan
    error_out: float = math.nan
    budget: float = math.nan
    output: Places | None = None
    entered: str = ""
    attributes: tuple[AttributeChange, ...] = ()
    why: str = ""
    wrong: str = ""
    broken: str = ""
    parameter: bool = False
    untold: str = ""
    gets_other_rows: bool = False
    since: Op | None = None
    is_permuted: bool = False
    may_be_order: bool = False
    may_be_mask: bool = False
    unlike_input: str = ""
    maker_left: Op | None = None
    maker_right: Op | None = None
    alone: tuple[tuple[str, ...], tuple[str, ...]] = ((), ())
    is_picked: bool = False
    lowered: str = ""
    ranks: tuple[int, ...] = ()
    ranks_open: tuple[int, ...] = ()
    stage: int | None = None
    between: Literal["", "replica", "sum"] = ""
    counted: str = ""
    multiple: float = math.nan
    multiple_of: tuple[int, int] = (0, 0)


def first_fault(judged: Sequence[Judged]) -> Judged | None:
    """The first operator that introduces error, in the order of execution; None where none does.

    Args:
        judged: in that order.
    """
    return next((item for item in judged if item.verdict == "introduces error"), None)
