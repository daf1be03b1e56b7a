"""One tensor in, the same shape out."""

from forms import form

FLOATS = (
    "ReLU6", "FastGeLU", "HSigmoid", "Softsign", "Elu", "EluExt", "LeakyReLUExt", "SeLU",
    "Mish", "Softplus", "SoftplusExt", "HShrink", "SoftShrink", "Rsqrt", "Abs", "Expm1", "Log",
    "Log1p", "Cos", "Sin", "Tan", "ACos", "Asin", "Atan", "Cosh", "Sinh", "Acosh", "Asinh",
    "Atanh", "Ceil", "Floor", "Round", "Rint", "Trunc", "Sign", "Erf", "Erfc", "Erfinv", "Inv",
    "Reciprocal", "IsFinite", "NanToNum", "BesselI0", "BesselI0e", "BesselI1", "BesselI1e",
    "BesselJ0", "BesselJ1", "Lgamma", "Identity", "ZerosLike", "OnesLike", "L2Loss",
    "AShardIdentity",
)  # fmt: skip

FORMS = [
    *(form(name, "ab", breadth="thin") for name in FLOATS),
    form("Invert", "ab:int16", breadth="thin"),
    form("PopulationCount", "ab:int16", breadth="thin"),
    form("LogicalNot", "ab:bool", breadth="thin"),
    form("Cast", "abc", {"type": "int32"}, breadth="thin"),
    form("ClampScalar", "ab", 0.0, 1.0, breadth="thin"),
    form("ClampScalar", "ab", None, 1.0, breadth="few"),
    form("RemainderTensorScalar", "ab", 2.0, breadth="thin"),
    form("RemainderScalarTensor", 2.0, "ab", breadth="thin"),
    form("FmodScalar", "ab", 2.0, breadth="thin"),
    form("Muls", "ab", 2.0, breadth="thin"),
    form("Round", "abc", 2, breadth="few"),
    form("SoftplusExt", "abc", 2, 10, breadth="few"),
    form("Quant", "ab:float16", scale=1.0, offset=0.0, breadth="thin"),
    form("DropoutExt", "ab", 0.5, "~1:int64", "~1:int64"),
    form("DropoutExt", "ab", 0.5, "!:int64", "!:int64", breadth="thin"),
    form("DropoutDoMask", "ab", "~c:uint8", "!", sizes={"c": 64}, breadth="thin"),
    form("RepeatInterleaveInt", "ab", 2, 0),
    form("RepeatInterleaveInt", "ab", 2, None),
    form("RepeatInterleaveInt", "ab", 2, 1, 64, breadth="thin"),
    form("RepeatInterleaveTensor", "ab", "~1:int64", 0),
    form("RepeatInterleaveTensor", "ab", "~a:int64", 0, breadth="thin"),
    form("RepeatInterleaveTensor", "ab", "~1:int64", None, breadth="thin"),
    form("ExpandDims", "abc", 0, breadth="thin"),
    form("ExpandDims", "abc", -1, breadth="thin"),
    form("Squeeze", "1ab", axis=0, breadth="thin"),
    form("Squeeze", "1a1b", axis=(0, 2), breadth="thin"),
    form("Squeeze", "ab", breadth="thin"),
    form("Exp", "a", breadth="thin"),
    form("Neg", "abcd", breadth="thin"),
    form("Sqrt", "", breadth="thin"),
    form("LogicalNot", "abc:bool", breadth="few"),
]
