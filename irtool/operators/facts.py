"""The words in which entries of the table state facts, and what each of them means."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, TypeAlias

from irtool.ir.dataclass import dataclass

Computation: TypeAlias = Literal[
    "matmul", "convolution", "norm", "softmax", "loss", "reduce", "bias gradient", "scatter",
    "collective", "sum", "product", "elementwise", "cast", "view", "lookup", "optimizer",
    "attention", "unknown",
]  # fmt: skip
"""Numeric families: operators of one round alike."""

COMPUTATIONS: Mapping[str, str] = {
    "matmul": "products of matrices: adds up along one axis",
    "convolution": "adds up a window over channels",
    "attention": "two products and a softmax between them",
    "norm": "normalises along axes by a mean and a deviation",
    "softmax": "exponentials divided by their sum",
    "loss": "one number, or one a row, from predictions and labels",
    "reduce": "adds or multiplies up along axes, running sums included",
    "scatter": "adds up rows where indices say",
    "collective": "moves or adds up between devices",
    "sum": "adds or subtracts, element by element",
    "product": "multiplies or divides, element by element",
    "elementwise": "anything else element by element",
    "cast": "another number type",
    "view": "moves, repeats, cuts or makes elements, and computes nothing",
    "lookup": "picks elements where indices say, or gives indices",
    "optimizer": "updates a parameter from its gradient",
    "unknown": "anything else; how it rounds is not known",
}
"""What a numeric family does, by the word of the notation."""

TRAITS: Mapping[str, str] = {
    # sharding
    "unsharded": "never gets a strategy, and no layout of its own",
    "tuples": "takes tuples of tensors beside other operands",
    "nests": "its strategy may be nested as its operands are",
    "pads": "a nested strategy may leave out rows: they mean whole",
    "nested": "its strategy is always nested as its operands are",
    "noted_as_input": "under layouts MindSpore notes the shape of its input for its result, too",
    "glances": "looks at a tensor without wanting it in a layout",
    "silent": "nothing is redistributed behind it",
    "hands_on": "gives its first input on as it is",
    "summary": "writes something down, and launches nothing",
    "blocks": "both matrices may be cut into the same blocks over all devices, gathered before it",
    "debug": "shows or stores a tensor for somebody who looks for a fault",
    "scatters": "the sum of its parts may be scattered over the first dimension of its result",
    "scatters_rows": "rows of its split table may be scattered over the result, or kept everywhere",
    "aligned": "refuses operands that differ in length, as they do where only its first is split",
    "never_in_parts": "MindSpore refuses it under layouts that interleave parts",
    "no_gradient": "MindSpore has no gradient of it, or can't make it",
    "alike_gradient": "its gradient is made for operands of one shape only",
    "aligned_gradient": "batch parallel, its gradient refuses operands longer than a slice",
    "whole_gradient": "batch parallel, its gradient refuses a slice of its first operand",
    "length_gradient": "batch parallel, its gradient refuses a result shorter than its operand",
    "whole_results": "batch parallel, its results come out whole: they follow its other operands",
    "whole_others": "batch parallel, its results but the first come out whole",
    "counts_rows": "batch parallel, it puts out as many tensors as its slice has rows",
    "turns": "batch parallel, what it split comes out where it permutes the first dimension to",
    "stands_alone": "without a class of MindSpore's it stands alone, never batch parallel",
    "shape_taker": "takes a shape, or numbers of elements, that follow the slices it works on",
    "helper": "MindSpore puts it around another operator to make up for its being sliced",
    "masked": "its second operand must be a mask that an unsharded random operator drew",
    "step": "one of the local steps that redistributions are made of",
    # computing
    "adds": "the sum of its operands",
    "subtracts": "its first operand less its second",
    "commutes": "the order of its operands does not matter",
    "averages": "divides by how many numbers it sums up",
    "sums_up": "adds up many numbers in one: long sums lose bits",
    "epsilon": "keeps a division or a root away from 0 by a small constant among its arguments",
    "guard": "keeps away from 0 what is divided by, with a small constant as operand",
    "casts_truth": "its truth values are numbers where they are added up over devices",
    "converts": "gives the same value in another type or form",
    "random": "gives other numbers at each run, by intention",
    "jumps": "a small error of its input may become a large one of the result",
    "gradient_jumps": "so does its gradient",
    # memory
    "renames": "its result is its first input, with another shape at most",
    "strided": "gives a view where kernels run one by one and take strides; else it copies",
    "in_place": "writes its result into its first input",
    "any_gradient": "compares its gradient's shape with nothing",
    "no_results": "nobody reads its declared results, and not every kernel writes them",
    "picks": "reads of its first tensor only what it puts out",
    "masks": "where the rows of its table are split, what a rank lacks is masked, and summed up",
    "looks_up": "looks up rows of a table, also on the host",
    "cuts": "takes a part of its first input",
    "parts": "cuts a tensor up, or puts parts together",
    "host_target": "MindSpore's optimizer of that name can update on the host (target)",
}
"""What ``is (…)`` may say of an operator."""


CONFIGURED: Mapping[str, str] = {
    "passed": "as its first operand does",
    "normalised": "as its first operand does, which must be whole where it works along",
    "broadcast": "as two operands do that are cut alike wherever they are of one size",
    "product": "by the rows of the first and the columns of the second, as they stand",
    "permuted": "as its operand does, in the new order",
    "unknown": "nobody measured it",
}
"""How a result lies under the attribute ``layout``, by the word behind ``configured``."""


@dataclass(frozen=True, slots=True)
class Search:
    """How MindSpore's double recursive search treats an operator.

    Attributes:
        kind: its class, in the words of ``irtool.planning.recursive.kinds.Kind``.
        fits: how its strategy follows from the split that it takes over from a neighbour.
        gives: how the split of its result follows from its strategy.
    """

    kind: str
    fits: str = ""
    gives: str = ""
