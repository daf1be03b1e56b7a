"""Attention over a whole prompt, for inference."""

from __future__ import annotations

from collections.abc import Callable

from irtool.operators.case import Case
from irtool.operators.functions.attention import COMPRESSED, input_layout
from irtool.operators.irregular import axes, irregular
from irtool.operators.judgement import Sharding, Unsure
from irtool.operators.layout import WHOLE, Shape, TensorMap

Base = Callable[[], Sharding]
ON_INDEX = "prompt_flash_attention_info.cc:CheckStrategyOnIndex"
LATER = "evaluator.cc:Run"
"""Where the shapes of the operator on each device are looked at."""
FOR_EACH_ROW = (0, 1)
"""Sparse modes whose mask has a row for each one of the query; others compress it."""
MASK, LENGTHS, SHIFT = 3, (4, 5), 6
"""Positions of the optional inputs that may be there."""


@axes("prompt_attention")
def prompt_attention_axes(case: Case) -> str:
    """Batch, heads and the query's sequence; keys and values follow."""
    query, key = {
        "BSH": ("b s n", "b . n"),
        "BNSD": ("b n s !d", "b n . !d"),
    }.get(input_layout(case), ("", ""))
    if not query:
        raise Unsure("an input layout that the operator does not take")
    others: list[str] = []
    for position, operand in enumerate(case.call.inputs[3:], start=3):
        if operand.shape is not None:
            rank = len(operand.shape)
            before = {2: "", 3: "b ", 4: "b . "}.get(rank)
            mode = case.number("sparse_mode")
            own = position == MASK and before is not None and mode in FOR_EACH_ROW
            before = "" if before is None else before if mode == 0 else before.replace("b", ".")
            others.append(f"[{before}s .]" if own else "[*.]")
    return f"[{query}] [{key}] [{key}] {' '.join(others)} -> [{query}] judged (b s n)"


@irregular("prompt_attention")
def prompt_attention(case: Case, base: Base) -> Sharding:
    """The query decides: keys and values follow it whatever their own strategy says."""
    layout = input_layout(case)
    query, key, value = case.strategy[:3]
    if key != value:
        message = f"key and value are split differently: {key} and {value}"
        case.refuse("axis-mismatch", message)
    if layout == "BSH":
        matrix: Shape = query
        first: TensorMap = (2, 1, 0)
        second: TensorMap = (2, WHOLE, 0)
        rows = 1
        if case.number("num_heads") % query[2]:
            message = f"{case.number('num_heads')} heads are not divisible by {query[2]}"
            case.refuse("not-divisible", message)
    elif layout == "BNSD":
        if query[3] != 1:
            message = f"the head size can not be split, strategy {query}"
            case.refuse("axis-split", message, ON_INDEX)
        matrix = query[:3]
        first, second, rows = (2, 1, 0, WHOLE), (2, 1, WHOLE, WHOLE), 2
    else:
        raise Unsure(f"attention over a prompt with input layout {layout}")
    maps: list[TensorMap] = [first, second, second]
    entry = 2 - (1 if layout == "BSH" else 2)
    for position, operand in enumerate(case.call.inputs[3:], start=3):
        if operand.shape is not None:
            index = len(maps)
            maps.append(_optional(case, position, index, (query[rows], entry)))
    if len(maps) != len(case.tensors):
        raise Unsure("lists of tensors among the inputs of the attention")
    return Sharding(matrix, tuple(maps), (first,))


def _optional(case: Case, position: int, index: int, sequence: tuple[int, int]) -> TensorMap:
    """The map of an optional input. ``sequence``: split and map entry of the query's rows."""
    rank = len(case.shape(index))
    if position in LENGTHS:
        return (WHOLE,) * rank
    if position == SHIFT and rank == 4:
        return (2, WHOLE, WHOLE, WHOLE)
    if position == MASK and rank in (2, 3, 4):
        split, entry = sequence
        given = case.strategy[index][rank - 2]
        mode = case.number("sparse_mode")
        if mode not in (*FOR_EACH_ROW, *COMPRESSED):
            raise Unsure(f"a mask with sparse_mode {mode}")
        if mode in FOR_EACH_ROW and given != split:
            message = f"the rows of the mask are split by {given}, those of the query by {split}"
            case.refuse("axis-mismatch", message, ON_INDEX)
        if mode in COMPRESSED and given != 1:
            message = f"the rows of a mask for all can not be split, strategy {given}"
            case.refuse("axis-split", message, ON_INDEX)
        if mode != 0 and rank > 2:
            _check_batch(case, index)
        batch = 2 if mode == 0 else WHOLE
        before: TensorMap = ((), (batch,), (batch, WHOLE))[rank - 2]
        return (*before, entry, WHOLE)
    raise Unsure(f"input {position} of the attention was not seen in a dump")


def _check_batch(case: Case, index: int) -> None:
    """A mask that stays whole is for all of the batch, or for what each device has of it."""
    masks, local = case.shape(index)[0], case.shape(0)[0] // case.strategy[0][0]
    if masks not in (1, local):
        message = f"the mask of {masks} stays whole, but each device has a batch of {local}"
        case.refuse("attention", message, LATER)
