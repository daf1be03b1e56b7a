"""Small things that several families need."""

from __future__ import annotations

from irtool.operators.case import Case
from irtool.operators.judgement import Sharding, Unsure
from irtool.operators.layout import WHOLE, Shape, TensorMap, identity_map


def whole_map(shape: Shape) -> TensorMap:
    """The map of a tensor that every device has whole.

    Args:
        shape: of the tensor; only its rank counts.
    """
    return (WHOLE,) * len(shape)


def whole_sharding(case: Case, matrix: Shape = ()) -> Sharding:
    """Every input and output whole on every device.

    Args:
        case: with the tensors.
        matrix: the device matrix that nothing is mapped to.
    """
    return Sharding(
        device_matrix=matrix,
        input_maps=tuple(whole_map(operand.shape or ()) for operand in case.tensors),
        output_maps=tuple(whole_map(operand.shape or ()) for operand in case.call.results),
    )


def first_sharding(case: Case, *output_maps: TensorMap, others: bool = False) -> Sharding:
    """The matrix is the strategy of input 0; further inputs are whole.

    Args:
        case: under a strategy.
        output_maps: of each result, over that matrix.
        others: whether the strategy may have rows for further inputs, which are not looked at.

    Raises:
        Unsure: it has some, and may not.
    """
    matrix, *rest = case.strategy
    if rest and not others:
        raise Unsure(f"{case.call.op} has more inputs than its rule knows")
    inputs = (identity_map(len(matrix)), *(whole_map(t.shape or ()) for t in case.tensors[1:]))
    return Sharding(device_matrix=matrix, input_maps=inputs, output_maps=output_maps)


def layout_maps(case: Case) -> tuple[Shape, tuple[TensorMap, ...]]:
    """Device matrix and input maps of the user's layouts.

    Args:
        case: under user layouts.

    Raises:
        Refused: they have different device matrices.
        Unsure: there are none.
    """
    assert case.layouts is not None
    if not case.layouts:
        raise Unsure("there are no input layouts")
    matrices = {layout.device_matrix for layout in case.layouts}
    if len(matrices) > 1:
        case.refuse("layout", f"the layouts have different device matrices: {sorted(matrices)}")
    return case.layouts[0].device_matrix, tuple(layout.tensor_map for layout in case.layouts)


def base_maps(case: Case) -> tuple[Shape, TensorMap]:
    """Matrix and map of input 0: from its layout, or its strategy as the matrix.

    Args:
        case: under user layouts, or a strategy of at least one row.
    """
    if case.layouts is not None:
        matrix, maps = layout_maps(case)
        return matrix, maps[0]
    return case.strategy[0], identity_map(len(case.strategy[0]))


def must_be_whole(case: Case, index: int, what: str, check: str = "") -> None:
    """Refuse a strategy that splits input ``index`` at all.

    Args:
        case: under a strategy.
        index: of the row in the strategy.
        what: the input is called in the message.
        check: MindSpore's file and function that refuses; empty: that of the rule.

    Raises:
        Refused: it splits the input.
    """
    if any(split != 1 for split in case.strategy[index]):
        message = f"{what} can not be split, but its strategy is {case.strategy[index]}"
        case.refuse("axis-split", message, check)


def check_masked(case: Case, index: int) -> None:
    """Refuse int64 where the pieces that a rank lacks are masked: MindSpore does so in int32.

    Args:
        case: with the call.
        index: of the tensor input that holds indices.

    Raises:
        Refused: they are int64.
    """
    if case.tensor(index).dtype == "Int64":
        message = (
            f"input {index} is of type int64, but what a rank lacks is masked with int32 numbers, "
            "and their types must be equal: cast it to int32"
        )
        case.refuse("dtype", message, "sub.cc:InferType")


def given_inputs(case: Case, names: tuple[str, ...], first: int) -> tuple[str, ...]:
    """Names of the optional inputs that are given, in order; they begin at position ``first``.

    Args:
        case: with the call.
        names: of the optional inputs, as their operator declares them.
        first: place of the first of them among the call's inputs.
    """
    return tuple(
        name
        for place, name in enumerate(names, first)
        if place < len(case.call.inputs) and any(True for _ in case.call.inputs[place].tensors)
    )
