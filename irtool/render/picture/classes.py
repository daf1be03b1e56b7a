"""Classes of operators, each with a colour of its own that stays the same in every picture.

Colours are Paul Tol's "light" scheme (https://personal.sro.nl/~pault/data/colourschemes.pdf,
figure 5), made for labelled boxes: people with the common colour vision deficiencies tell them
apart, and black text is readable on all of them.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache

from irtool.ir.operators import COMMUNICATION, OPTIMIZERS, PLUMBING


@dataclass(frozen=True, slots=True)
class OperatorClass:
    """One class: key, what the legend says, fill colour, and the names of its members."""

    key: str
    title: str
    colour: str
    names: frozenset[str] = frozenset()
    pattern: re.Pattern[str] | None = None

    def holds(self, op: str) -> bool:
        """Whether an operator is of this class."""
        return op in self.names or (self.pattern is not None and bool(self.pattern.search(op)))


def _names(text: str) -> frozenset[str]:
    return frozenset(text.split())


COMMUNICATES = OperatorClass("communication", "collective", "#EE8866", frozenset(COMMUNICATION))
REDISTRIBUTES = OperatorClass("redistribution", "redistribution", "#FFAABB")
PASSES_ON = OperatorClass("passing", "passes a value on", "#FFFFFF", PLUMBING)
OTHER = OperatorClass("other", "any other operator", "#FFFFFF")

CLASSES: tuple[OperatorClass, ...] = (
    COMMUNICATES,
    REDISTRIBUTES,
    OperatorClass(
        "optimizer", "updates a parameter", "#BBCC33", _names("Assign AssignAdd AssignSub"),
        OPTIMIZERS,
    ),
    OperatorClass(
        "product", "matrix product, convolution, attention", "#77AADD",
        pattern=re.compile(
            r"MatMul|Matmul|^Dense|Conv\dD|Convolution|Attention|Einsum|^GroupedMat|^Mm|^Bmm"
        ),
    ),
    OperatorClass(
        "lookup", "looks up or writes rows", "#44BB99",
        pattern=re.compile(r"Gather|OneHot|Embedding|Scatter|TopK|Unique|IndexSelect|MapTensor"),
    ),
    OperatorClass(
        "norm", "normalisation, softmax, reduction, loss", "#99DDFF",
        pattern=re.compile(
            r"Norm|Softmax|SoftMax|^Reduce|Sum|Mean|Max(?!imum)|ArgM|CumS|CrossEntropy|Loss|Moments|Pool"
        ),
    ),
    OperatorClass(
        "shape", "moves or converts data", "#DDDDDD",
        pattern=re.compile(
            r"Reshape|Transpose|Slice|Concat|Split|Cast|^Tile|Stack|Squeeze|ExpandDims|Broadcast|"
            r"Pad|Shape|Fill|ZerosLike|OnesLike|^Zeros|^Ones|View|Flatten|Identity|Repeat|Resize|"
            r"Reverse|Permute|^Range|TensorTo|Copy|Contiguous|Clone|^_?Virtual|GetTensorSlice"
        ),
    ),
    OperatorClass(
        "elementwise", "element by element", "#EEDD88",
        pattern=re.compile(
            r"^_?(Inplace)?(Add|Sub|Mul|Div|RealDiv|Neg|Abs|Exp|Log|Pow|Sqrt|Rsqrt|Square|Sign|Tanh|Sigmoid|"
            r"ReLU|Relu|GeLU|Gelu|GELU|SiLU|Silu|Swish|SwiGLU|Swiglu|Elu|Mish|HSwish|HSigmoid|FastGe|"
            r"Maximum|Minimum|Equal|NotEqual|Greater|Less|Logical|Select|Where|Clip|Floor|Ceil|Round|"
            r"Mod|Sin|Cos|Tan|Atan|Acos|Asin|Erf|Invert|Dropout|BiasAdd|Masked|PReLU|Reciprocal|Inv|"
            r"Is(Nan|Inf|Finite)|Not|BitwiseA|Lerp|Xlogy|Hypot|SquaredDifference|Softplus|Bias)"
        ),
    ),
    PASSES_ON,
    OTHER,
)  # fmt: skip
"""In the order in which they are tried, and in which legends show them."""

BY_KEY = {item.key: item for item in CLASSES}


@lru_cache(maxsize=4096)
def operator_class(op: str) -> OperatorClass:
    """The class of an operator by its name: the first that holds it."""
    return next((item for item in CLASSES if item.holds(op)), OTHER)
