"""Reductions and what runs along an axis."""

from forms import Text, form

FORMS = [
    *(
        form(name, "abc", axis, keep_dims=keep, breadth="thin")
        for name in ("ReduceMax", "ReduceMin", "ReduceProd", "ReduceMean")
        for axis, keep in (((0,), False), ((1, 2), True), ((), False))
    ),
    form("ReduceSum", "abcd", (1, 3), breadth="thin"),
    form("ReduceSum", "abc", -1, breadth="thin"),
    form("ReduceSum", "a", 0, breadth="thin"),
    form("ReduceAny", "abc:bool", (1,), breadth="full"),
    form("ReduceAny", "abc:bool", (), keep_dims=True, breadth="thin"),
    form("ReduceAll", "abc:bool", (1,), breadth="full"),
    form("ReduceAll", "abc:bool", None, breadth="thin"),
    form("SumExt", "abc", (1,), False, None),
    form("SumExt", "abc", None, False, None, breadth="thin"),
    form("SumExt", "abc", (0, 2), True, None, breadth="thin"),
    form("MeanExt", "abc", (1,), False, None),
    form("MeanExt", "abc", None, False, None, breadth="thin"),
    form("MeanExt", "abc", (2,), True, None, breadth="thin"),
    form("Max", "ab"),
    form("MaxDim", "abc", 1, False),
    form("MaxDim", "abc", -1, True, breadth="thin"),
    form("ArgMaxWithValue", "abc", axis=1),
    form("ArgMaxWithValue", "abc", axis=2, keep_dims=True, breadth="thin"),
    form("ArgMinWithValue", "abc", axis=1, breadth="thin"),
    form("ArgMinWithValue", "abc", axis=0, keep_dims=True, breadth="thin"),
    form("Argmax", "abc", axis=1),
    form("Argmax", "ab", axis=0, breadth="thin"),
    form("Argmin", "abc", axis=1, breadth="thin"),
    form("SquareSumAll", "ab", "ab"),
    form("LogSoftmax", "abc", axis=0, breadth="thin"),
    form("Softmax", "abcd", axis=-1, breadth="thin"),
    form("Swiglu", "ab", -1),
    form("Swiglu", "abc", 1, breadth="thin"),
    form("L2Normalize", "ab", axis=1),
    form("L2Normalize", "abc", axis=0, breadth="thin"),
    form("Sort", "ab"),
    form("Sort", "abc", axis=1, descending=True, breadth="thin"),
    form("SortExt", "ab", -1, False, False),
    form("SortExt", "abc", 1, True, False, breadth="thin"),
    form("ReverseV2", "ab", axis=(1,)),
    form("ReverseV2", "abc", axis=(0, 2), breadth="thin"),
    form("Cholesky", "abb"),
    form("CumSum", "abc", 0, breadth="thin"),
    form("CumProd", "abc", 1),
    form("CumsumExt", "abc", 1, None),
    form("Cummax", "abc", axis=1),
    form("Cummin", "abc", axis=1, breadth="thin"),
    form("TopK", "abc", 4, breadth="thin"),
    form("TopkExt", "ab", 4, -1, True, True),
    form("TopkExt", "abc", 4, 1, True, True, breadth="thin"),
    form("TraceV2", "abc", 0, 1, 2, None),
    form("TraceV2", "ab", 0, 1, 0, None, breadth="thin"),
    form("Tril", "ab"),
    form("Tril", "abc", diagonal=1, breadth="thin"),
    form("Triu", "ab"),
    form("Triu", "abcd", diagonal=-1, breadth="thin"),
    form("Cdist", "ac", "bc"),
    form("Cdist", "eac", "ebc", breadth="thin"),
    form("KLDivLoss", "ab", "~ab", reduction=Text("mean")),
    *(
        form("KLDivLoss", "ab", "~ab", reduction=Text(reduction), breadth="thin")
        for reduction in ("none", "sum", "batchmean")
    ),
]
