"""Matrix products."""

from forms import form

FORMS = [
    form("MatMul", "ab", "bc"),
    form("MatMul", "ab", "cb", transpose_b=True),
    form("MatMul", "ba", "bc", transpose_a=True, breadth="thin"),
    form("MatMul", "ba", "cb", transpose_a=True, transpose_b=True, breadth="thin"),
    form("MatMul", "ab", "~bc", breadth="few"),
    form("MatMul", "ab", "!bc", breadth="few"),
    form("BatchMatMul", "abc", "acd"),
    form("BatchMatMul", "abc", "adc", transpose_b=True),
    form("BatchMatMul", "acb", "acd", transpose_a=True, breadth="thin"),
    form("BatchMatMul", "abcd", "abde", breadth="full", sizes={"e": 16}),
    form("BatchMatMul", "abc", "cd", breadth="thin"),
    form("BatchMatMul", "abcd", "1bde", breadth="thin", sizes={"e": 16}),
    form("MatMulExt", "ab", "bc"),
    form("MatMulExt", "abc", "cd", breadth="thin"),
    form("BatchMatMulExt", "abc", "acd"),
    form("BiasAdd", "ab", "b"),
    form("BiasAdd", "abcd", "b", breadth="thin"),
    form("Dense", "ab", "cb", "c"),
    form("Dense", "ab", "cb", None, breadth="thin"),
]
