"""What belongs to an operator numerically: how long it adds up, which inputs are parameters.

Operators of both frameworks under one family, so that one table serves MindSpore's primitives,
PyTorch's functions and modules.  A new operator is a name in :data:`FAMILIES`; what it has beyond
that is a line in one of the tables below it.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from functools import lru_cache
from typing import Literal, TypeAlias

from irtool.compare.tensors.model import Shape

Family: TypeAlias = Literal[
    "matmul", "convolution", "norm", "softmax", "loss", "reduce", "bias gradient", "scatter",
    "collective", "sum", "product", "elementwise", "cast", "view", "lookup", "optimizer",
    "attention", "unknown",
]  # fmt: skip

_FAMILIES: dict[Family, str] = {
    "matmul": "matmul bmm batchmatmul batchmatmulext matmulext linear dense addmm baddbmm mm"
    " matmulv2 einsum __matmul__ mv dot parallellinear columnparallellinear rowparallellinear"
    " groupedmatmul matmulallreduce",
    "convolution": "conv2d conv1d conv3d conv2dbackpropinput conv2dbackpropfilter convolution"
    " conv_transpose2d conv1d conv2dtranspose conv3dbackpropinput conv3dbackpropfilter",
    "norm": "layernorm layer_norm layernormext layernormgrad layernormgradext layernormv3 rmsnorm"
    " rms_norm rmsnormgrad fusedlayernorm addrmsnorm addlayernorm batchnorm batch_norm"
    " batchnorm2d batchnorm1d batchnormgrad group_norm groupnorm groupnormgrad instance_norm"
    " npu_rms_norm batchnormext l2normalize normalize syncbatchnorm",
    "softmax": "softmax _softmax softmaxext softmaxbackward logsoftmax log_softmax"
    " logsoftmaxgrad softmaxgrad logsumexp softmaxv2 masked_softmax",
    "loss": "cross_entropy crossentropyloss sparsesoftmaxcrossentropywithlogits"
    " softmaxcrossentropywithlogits nll_loss nllloss nlllossgrad mse_loss binary_cross_entropy"
    " smooth_l1_loss kl_div binarycrossentropy",
    "reduce": "reducesum reducemean sum mean sumext meanext prod reduceprod norm var std"
    " cumsum cumsumext lpnorm square_sum_all squaresumall sum_ linalg_norm vector_norm"
    " clip_grad_norm_ biasaddgrad reducesumd",
    "scatter": "unsortedsegmentsum embedding_dense_backward scatteradd index_add index_add_"
    " scatter_add scatter_add_ embeddinggrad densegrad tensorscatteradd scatternd",
    "collective": "allreduce reducescatter all_reduce reduce_scatter_tensor reduce_scatter"
    " alltoall allgather all_gather all_gather_into_tensor all_to_all_single send recv broadcast"
    " receive neighborexchange alltoallv",
    "sum": "add sub addn __add__ __iadd__ __radd__ __sub__ __isub__ __rsub__ add_ sub_ biasadd"
    " addext subext tensoradd accumulatenv2 bias_add lerp_ lerp addcmul_ addcmul assignadd"
    " assignsub addcdiv addcdiv_ rsub",
    "product": "mul div realdiv muls divs __mul__ __imul__ __rmul__ __truediv__ __itruediv__"
    " __rtruediv__ mul_ div_ divmod multiply true_divide",
    "elementwise": "gelu gelugrad relu relugrad silu silugrad sigmoid sigmoidgrad tanh tanhgrad"
    " exp log sqrt rsqrt sqrt_ rsqrt_ square pow __pow__ neg abs erf cos sin dropout dropoutgrad"
    " where select maximum minimum clamp clip masked_fill masked_fill_ softplus fastgelu"
    " geluext swiglu leaky_relu elu hardtanh reciprocal inv maskedfill dropoutdomask tril triu"
    " greater less equal __gt__ __lt__ __eq__ logical_not logicalnot floor ceil round sign"
    " newgelu geluv2 quickgelu identity selu mish relu6 relu6grad leakyrelugrad elugrad celu"
    " hardswish hardswishgrad hardsigmoid logsigmoid softsign prelu prelugrad absgrad tan atan"
    " sinh cosh erfinv sincos sign trunc ne eq lt gt ge le __ge__ __le__ __ne__ maskedselect"
    " maxpool max_pool2d maxpoolgrad max_pool1d adaptive_max_pool2d maximumgrad minimumgrad"
    " siluext silugradext sqrtgrad rsqrtgrad rmsnormpart topkext glu geglu",
    "cast": "cast to float half bfloat16 type type_as tofloat double tensorcast",
    "view": "reshape transpose view permute contiguous flatten squeeze unsqueeze expand slice"
    " stridedslice split chunk concat cat stack expanddims broadcastto tile repeat slicegrad"
    " stridedslicegrad __getitem__ clone detach depend load identity tensormove"
    " transposeext concatd splitd gather_nd unstack pad padv3 roll flip t expand_as view_as"
    " assign copy_ __setitem__ zero_ fill_ repeat_interleave narrow select_view zeroslike"
    " oneslike zeros_like ones_like fill empty_like unfold index_select",
    "lookup": "gather embedding gatherd embeddinglookup onehot one_hot argmax topk gatherv2 take"
    " wordembedding vocabembedding vocabparallelembedding tensor_split index",
    "optimizer": "adamweightdecay adam adamw adamwfused fusedadam lamb lars applymomentum"
    " applyadam momentum sgd step fusedweightscaleapplymomentum adafactor fusedadamweightdecay"
    " sparseapplyadam adamnoupdateparam",
    "attention": "flashattentionscore flashattentionscoregrad scaled_dot_product_attention"
    " promptflashattention multihead_attention npu_fusion_attention flash_attn_func"
    " incre_flash_attention multiheadattention",
}  # fmt: skip

FRAMEWORK_MODULES = frozenset(
    ("Linear", "Dense", "Embedding", "EmbeddingLookup", "Bilinear", "LayerNorm", "RMSNorm",
     "GroupNorm", "BatchNorm1d", "BatchNorm2d", "BatchNorm3d", "InstanceNorm1d", "InstanceNorm2d",
     "InstanceNorm3d", "SyncBatchNorm", "Conv1d", "Conv2d", "Conv3d", "ConvTranspose1d",
     "ConvTranspose2d", "ConvTranspose3d", "Conv1dTranspose", "Conv2dTranspose",
     "Conv3dTranspose", "ReLU", "ReLU6", "PReLU", "LeakyReLU", "ELU", "CELU", "SELU", "GELU",
     "SiLU", "Mish", "Sigmoid", "Tanh", "Softmax", "LogSoftmax", "Softplus", "Hardswish",
     "MaxPool1d", "MaxPool2d", "AvgPool1d", "AvgPool2d", "AdaptiveAvgPool2d", "Dropout",
     "Flatten", "Identity", "LSTM", "GRU", "RNN", "LSTMCell", "GRUCell", "RNNCell",
     "MultiheadAttention", "CrossEntropyLoss", "NLLLoss", "MSELoss", "L1Loss", "BCELoss",
     "BCEWithLogitsLoss", "SmoothL1Loss", "KLDivLoss")
)  # fmt: skip
"""Modules of PyTorch and MindSpore: what they compute, and in which type, is known; those of a
network may compute in half precision and hand on single."""

FAMILIES: dict[str, Family] = {
    word: family for family, words in _FAMILIES.items() for word in words.split()
}
"""Families by name in lower letters."""

_PARAMETERS = {
    "linear": (1, 2), "dense": (1, 2), "layer_norm": (2, 3), "rms_norm": (2,), "embedding": (1,),
    "conv2d": (1, 2), "conv1d": (1, 2), "conv3d": (1, 2), "batch_norm": (1, 2, 3, 4),
    "group_norm": (2, 3), "instance_norm": (1, 2, 3, 4),
    "multi_head_attention_forward": (5, 6, 7, 8, 11, 12), "embedding_bag": (1,), "prelu": (1,),
    "bilinear": (2, 3), "conv_transpose1d": (1, 2), "conv_transpose2d": (1, 2),
    "conv_transpose3d": (1, 2),
}  # fmt: skip
"""Which positional inputs of PyTorch's functions are parameters."""

UPDATED = {
    "adamweightdecay": (0, 1, 2), "adam": (0, 1, 2), "fusedadam": (0, 1, 2), "lamb": (0, 1, 2),
    "adamw": (0, 1, 2), "applymomentum": (0, 1), "momentum": (0, 1), "sgd": (0,),
    "applyadam": (0, 1, 2), "assignadd": (0,), "assignsub": (0,), "assign": (0,),
    "fusedweightscaleapplymomentum": (3, 4), "adamwfused": (0, 1, 2),
    "batchnorm": (3, 4), "batchnormwithactivation": (3, 4), "batchnormwithaddandactivation": (4, 5),
}  # fmt: skip
"""Inputs that MindSpore's operators update in place: what a dump shows is the state after."""

DEAD_OUTPUTS = frozenset(
    ("adamweightdecay", "adam", "fusedadam", "lamb", "applymomentum", "applyadam", "momentum")
)
"""Operators whose declared results nobody reads and no kernel writes on every device."""


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


_JUMPS = _words(
    "relu relu6 leakyrelu relugrad relu6grad leakyrelugrad relugradv2 reluv2 prelu prelugrad abs"
    " absgrad clamp clip hardtanh hardtanhgrad hardswish hardswishgrad hardsigmoid threshold"
    " maxpool2d maxpool1d maxpool3d maxpool maxpoolgrad maxpoolgradwithargmax maxpoolgradv1"
    " adaptivemaxpool2d maximum minimum maximumgrad minimumgrad max min amax amin where select"
    " sort topk median smoothl1loss smoothl1lossgrad l1loss"
)
"""Operators whose gradient jumps where the input crosses a limit or two inputs change places."""
_ROUNDS = _words("sign floor ceil round trunc heaviside rint bucketize floordiv")
"""Operators that jump themselves."""
_RANDOM = re.compile(
    r"dropout|^rand|random|bernoulli|multinomial|^normal_?$|uniform|standardnormal|gumbel|"
    r"exponential_|poisson|gamma"
)
_TOOLS = str.maketrans("", "", "_")


_UNWRITTEN = {"batchnorm": ("output.1", "output.2")}
"""Results that kernels of some devices leave as they find the memory."""


def is_unwritten(type_: str, label: str) -> bool:
    """Whether a result of a MindSpore operator may be memory that nobody has written."""
    return label in _UNWRITTEN.get(type_.lower(), ())


@lru_cache(maxsize=8192)
def is_random(type_: str) -> bool:
    """Whether an operator puts out other numbers at every run, by intention."""
    return bool(_RANDOM.search(type_.lower()))


@lru_cache(maxsize=8192)
def jumps(type_: str, phase: str) -> bool:
    """Whether a small error of the inputs may come out as a large one of a few elements.

    A share of the elements in proportion to the error falls on the other side of the jump, so the
    relative error of the result grows as the square root of that of the inputs.
    """
    word = type_.lower().translate(_TOOLS)
    if family(type_) == "optimizer" or word in ("addcdiv", "addcdivext"):
        return True  # a first step from zero moments is a sign
    if word in _ROUNDS:
        return True
    return word in _JUMPS and (phase == "backward" or word.endswith("grad"))


@lru_cache(maxsize=8192)
def family(type_: str) -> Family:
    """The family of an operator of either framework."""
    word = type_.lower()
    found = FAMILIES.get(word)
    if found is None:
        stripped = word.strip("_").removesuffix("_").replace("_", "")
        found = FAMILIES.get(stripped) or FAMILIES.get(stripped.removeprefix("npu"))
    if found is None and "allreduce" in word:
        found = "collective"
    return found or "unknown"


@lru_cache(maxsize=8192)
def parameter_places(type_: str) -> tuple[int, ...]:
    """Which inputs of an operator are parameters of the network, by its name alone."""
    return _PARAMETERS.get(type_.lower(), ())


def reduction_length(
    family_: Family, phase: str, inputs: Sequence[Shape], output: Shape, opaque: bool
) -> float:
    """How many terms one element of an output adds up; 4 for what works element by element.

    Args:
        family_: of the operator.
        phase: in a backward operator each output has a length of its own.
        inputs: shapes of its tensor inputs (of a backward operator, those of the forward one too).
        output: shape of the output in question.
        opaque: it is a module, or unknown: several operators in one, so the longest guess counts.
    """
    return _reduction_length(family_, phase, tuple(inputs), output, opaque)


@lru_cache(maxsize=8192)  # layers are alike
def _reduction_length(
    family_: Family, phase: str, inputs: tuple[Shape, ...], output: Shape, opaque: bool
) -> float:
    elements = [math.prod(shape) for shape in inputs]
    largest = max(elements, default=1)
    dims = [size for shape in inputs for size in shape]
    count = math.prod(output) or 1
    if opaque:
        longest = max(dims, default=1)
        return float(max(4, longest, largest // max(count, 1)) * (4 if len(dims) > 4 else 2))
    if family_ in ("matmul", "attention"):
        if phase == "backward":
            return float(max(4, max(dims, default=1), largest // max(count, 1)))
        return float(max(4, _inner(inputs, count)))
    if family_ == "convolution":
        return float(max(4, largest // max(count, 1), *_kernel(inputs)))
    if family_ in ("norm", "softmax"):
        last = max((shape[-1] for shape in inputs if shape), default=1)
        if phase == "backward" and count < largest:
            return float(max(4, last, largest // max(count, 1)))
        return float(max(4, last, largest // max(count, 1) if count < largest else 1))
    if family_ in ("reduce", "bias gradient", "loss"):
        last = max((shape[-1] for shape in inputs if shape), default=1)
        return float(max(4, largest // max(count, 1), last if family_ == "loss" else 1))
    if family_ == "scatter":
        return float(max(4, largest // max(1, max((s[-1] for s in inputs if s), default=1))))
    if family_ == "unknown":
        return float(max(16, max(dims, default=1), largest // max(count, 1)))
    if family_ == "collective":
        return 64.0
    if count < largest and phase == "backward":  # gradient of something that was broadcast
        return float(max(4, largest // count))
    return 4.0


def _inner(inputs: Sequence[Shape], count: int) -> int:
    """The dimension that a product of matrices adds over."""
    if len(inputs) < 2 or not inputs[0] or not inputs[1]:
        return max((size for shape in inputs for size in shape), default=1)
    left, right = math.prod(inputs[0]), math.prod(inputs[1])
    batch = 1
    if len(inputs[0]) == len(inputs[1]):
        batch = math.prod(inputs[0][:-2]) or 1
    # (b m k)(b k n) -> (b m n): left · right / (b · count) is k².
    squared = left * right / max(1, batch) / max(1, count)
    return max(1, round(math.sqrt(squared)))


def _kernel(inputs: Sequence[Shape]) -> list[int]:
    return [math.prod(shape[1:]) for shape in inputs[1:2] if len(shape) > 2]
