"""Unknown sizes: one dimension of the inputs of which nothing is known, or a divisor (``8n``).

MindSpore knows divisors where the network stands in ``_VirtualDatasetCell``, as ``Model`` has it,
and where no gradient is taken of it.
"""

from forms import Text, form


def dynamic(name, *arguments, few=False, **more):
    """Nothing known, with gradients; a divisor, without."""
    sizes, breadth = {"k": 3, "x": 16}, "few" if few else "thin"
    cell = {"dataset_cell": True}
    return [
        form(name, *arguments, sizes={**sizes, "a": None}, breadth=breadth, options=cell, **more),
        form(
            name, *arguments, sizes={**sizes, "a": "8n"}, breadth=breadth,
            options={**cell, "gradient": False}, **more,
        ),
    ]  # fmt: skip


FORMS = [
    form("ReLU", "ab", sizes={"a": "8n"}, breadth="thin"),
    form("MatMul", "ab", "bc", sizes={"a": "8n"}, breadth="thin"),
    form("ReLU", "ab", sizes={"a": "8n"}, breadth="thin", options={"dataset_cell": True}),
    form("MatMul", "ab", "bc", sizes={"a": "8n"}, breadth="thin", options={"dataset_cell": True}),
    *(entry for name in ("ReLU", "GeLU", "SiLU", "L2Loss") for entry in dynamic(name, "ab")),
    *(
        entry
        for name in ("Add", "Mul", "RealDiv", "Greater")
        for entry in [*dynamic(name, "ab", "b"), *dynamic(name, "ab", "~ab")]
    ),
    *(
        entry
        for name in ("Sub", "Div", "Maximum", "Minimum", "Pow", "Equal", "Less", "LessEqual")
        for second in ("b", "~ab", 2.0)
        for entry in dynamic(name, "ab", second, few=True)
    ),
    *(
        entry
        for name in ("Sigmoid", "Tanh", "Exp", "Sqrt", "Rsqrt", "Neg", "Square", "Abs", "Log")
        for entry in dynamic(name, "ab", few=True)
    ),
    *(
        entry
        for name in ("FloorDiv", "FloorMod", "Mod", "DivNoNan")
        for second in ("b", "~ab")
        for entry in dynamic(name, "ab", second, few=True)
    ),
    *dynamic("Gather", "@cb", "~ac:int32", 0, few=True),
    *dynamic("Transpose", "ab", (1, 0), few=True),
    *dynamic("ReduceMean", "ab", 1, few=True),
    *dynamic("Cast", "ab", {"type": "float16"}),
    *dynamic("Softmax", "ab"),
    *dynamic("LogSoftmax", "ab"),
    *dynamic("MatMul", "ab", "bc"),
    *dynamic("MatMul", "ab", "cb", transpose_b=True),
    *dynamic("BatchMatMul", "abc", "~acd"),
    *dynamic("BatchMatMul", "xab", "~xbc", few=True),
    *dynamic("MatMulExt", "ab", "bc"),
    *dynamic("Dense", "ab", "cb", "c"),
    *dynamic("BiasAdd", "ab", "b"),
    *dynamic("ReduceSum", "abc", (1,)),
    *dynamic("ReduceSum", "ab", 0),
    *dynamic("ReduceMean", "ab", -1, keep_dims=True),
    *dynamic("ReduceMax", "ab", 1),
    *dynamic("SumExt", "ab", (1,), False, None),
    *dynamic("MeanExt", "ab", (0,), False, None),
    *dynamic("ArgMaxWithValue", "ab", axis=1),
    *dynamic("Transpose", "abcd", (0, 2, 1, 3)),
    *dynamic("Reshape", "abc", (-1, 48)),
    *dynamic("Concat", ["ab", "~ab"], axis=1),
    *dynamic("Split", "ab", axis=1, output_num=2),
    *dynamic("StackExt", ["ab", "~ab"], dim=0),
    *dynamic("StridedSlice", "ab", (0, 0), (8, 16), (1, 1)),
    *dynamic("StridedSlice", "ab", (0, 0), (0, 16), (1, 1), end_mask=1),
    *dynamic("SliceExt", "ab", 1, 0, 16, 1),
    *dynamic("ExpandDims", "ab", 1),
    *dynamic("Squeeze", "a1b", axis=1),
    *dynamic("Tile", "ab", (1, 2)),
    *dynamic("Gather", "@cb", "~a:int32", 0),
    *dynamic("Gather", "~ab", "~c:int32", 1),
    *dynamic("GatherD", "ab", 1, "ab:int32"),
    *dynamic("LayerNorm", "ab", "b", "b", begin_norm_axis=1, begin_params_axis=1),
    *dynamic("RmsNorm", "abc", "c"),
    *dynamic("OneHot", "a:int32", 32, "!", "!"),
    *dynamic("SoftmaxCrossEntropyWithLogits", "ab", "~ab"),
    *dynamic("Dropout", "ab", keep_prob=0.5),
    *dynamic("Select", "ab:bool", "~ab", "~ab"),
    *dynamic("TopK", "ab", 4),
    *dynamic("CumSum", "ab", 1),
    *dynamic("MaskedFill", "ab", "ab:bool", 1.0),
    *dynamic("Swiglu", "ab", -1),
    *dynamic("Tril", "abc"),
    *dynamic("PadV3", "ab", (0, 2), None),
    *dynamic("UnsortedSegmentSum", "ab", "a:int32", 16),
    *dynamic("AddN", ["ab", "~ab"]),
    *dynamic("GeluExt", "ab"),
    *dynamic("Conv2D", "abcd", "ebkk", out_channel=80, kernel_size=3, pad_mode=Text("same")),
]
