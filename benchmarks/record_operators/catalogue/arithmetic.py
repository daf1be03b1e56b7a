"""Two tensors or more, broadcast from the right."""

from forms import Text, form

FLOATS = (
    "Mod", "FloorMod", "FloorDiv", "DivNoNan", "MulNoNan", "TruncateDiv", "TruncateMod", "Minimum",
    "NotEqual", "ApproximateEqual", "GreaterEqual", "Less", "LessEqual", "Atan2", "Xdivy", "Xlogy",
    "SquaredDifference", "Hypot", "Igamma", "Igammac", "NextAfter", "Zeta", "IsClose", "FmodTensor",
    "RemainderTensorTensor", "AddExt", "SubExt", "DivMod",
)  # fmt: skip
INTEGERS = ("BitwiseAnd", "BitwiseOr", "BitwiseXor", "LeftShift", "RightShift", "Gcd")

FORMS = [
    *(
        form(name, "ab", "ab", breadth="thin")
        for name in ("Sub", "Div", "RealDiv", "Maximum", "Pow")
    ),
    *(form(name, "ab", "b", breadth="thin") for name in FLOATS),
    *(form(name, "ab:int32", "b:int32", breadth="thin") for name in INTEGERS),
    *(form(name, "ab:bool", "b:bool", breadth="thin") for name in ("LogicalAnd", "LogicalOr")),
    form("AddExt", "ab", "ab", 2, breadth="few"),
    form("DivMod", "ab", "b", Text("floor"), breadth="few"),
    form("Polar", "ab", "ab", breadth="thin"),
    form("Add", "", "ab", breadth="thin"),
    form("Add", "", "", breadth="thin"),
    form("Add", "a", "a", breadth="thin"),
    form("Add", "1b", "~ab", breadth="thin"),
    form("Add", "abc", "a1c"),
    form("Mul", "abcd", "1b1d", breadth="thin"),
    form("Sub", "ab", "!1b", breadth="thin"),
    form("Div", "ab", "~b", breadth="thin"),
    form("Div", "ab", 2.0, breadth="thin"),
    form("Pow", "ab", 2.0, breadth="thin"),
    form("Assign", "@ab", "~ab", breadth="thin"),
    form("AssignAdd", "@ab", "~ab", breadth="thin"),
    form("AssignSub", "@ab", "~ab", breadth="thin"),
    form("InplaceCopy", "@ab", "~ab", breadth="thin"),
    form("SigmoidCrossEntropyWithLogits", "ab", "~ab", breadth="thin"),
    form("Lerp", "ab", "ab", "ab", breadth="full"),
    form("Lerp", "ab", "b", "b", breadth="thin"),
    form("Lerp", "ab", "ab", 0.5, breadth="thin"),
    form("Lerp", "ab", "ab", "", breadth="thin"),
    form("AddcmulExt", "ab", "ab", "ab"),
    form("AddcmulExt", "ab", "b", "1b", breadth="thin"),
    form("AddcmulExt", "ab", "ab", "ab", 2, breadth="few"),
    form("MaskedFill", "ab", "ab:bool", ""),
    form("MaskedFill", "ab", "b:bool", "", breadth="thin"),
    form("MaskedFill", "ab", "ab:bool", 1.0, breadth="thin"),
    form("MaskedFill", "ab", "ab:bool", "!", breadth="thin"),
    form("Outer", "a", "b"),
    form("AntiQuant", "ab:int8", "b:float16", None, breadth="thin"),
    form("AntiQuant", "ab:int8", "b:float16", "b:float16", breadth="thin"),
    form("Dequant", "ab:int32", "b:uint64", breadth="thin"),
    form("QuantV2", "ab:float16", "b:float16", "b:float16", breadth="thin"),
    form("Select", "abc:bool", "~abc", "abc", breadth="thin"),
    form("Select", "ab:bool", "~b", "b", breadth="thin"),
    form("Betainc", "ab", "ab", "ab"),
    form("AddN", ["ab", "@ab"]),
    form("AddN", ["ab", "ab", "ab"], breadth="thin"),
]
