"""Gathers, scatters and segments."""

from forms import form

DATA, ROWS = "@abc", "~d:int32"

FORMS = [
    form("Gather", "@a", "~c:int32", 0, breadth="thin"),
    form("Gather", "@abc", "~d:int32", 0, breadth="full"),
    form("Gather", "@abc", "~d:int32", 2, breadth="thin"),
    form("Gather", "@ab", "~:int32", 0, breadth="thin"),
    form("Gather", "~ab", "~cd:int32", 0, breadth="thin"),
    form("Gather", "@ab", "!cd:int32", 0, breadth="thin"),
    form("Gather", "@abc", "~abd:int32", 2, batch_dims=2, breadth="thin"),
    form("Gather", "@ab", "~cd:int64", -1, breadth="thin"),
    form(
        "Gather",
        "@ab",
        "~cd:int32",
        0,
        breadth="full",
        sizes={"d": 2},
        options={"primitive_attributes": {"manual_split": [8, 8]}},
    ),
    form("SparseGatherV2", "@ab", "~cd:int32", 0, breadth="thin"),
    form("EmbeddingLookup", "@ab", "~cd:int32", 0),
    form(
        "EmbeddingLookup",
        "@ab",
        "~cd:int32",
        0,
        options={"primitive_attributes": {"primitive_target": "CPU"}},
    ),
    form(
        "Gather",
        "@ab",
        "~cd:int32",
        0,
        breadth="thin",
        options={"primitive_attributes": {"primitive_target": "CPU"}},
    ),
    form("Embedding", "~cd:int32", "@ab", None, None, 2.0, False),
    form("Embedding", "~cd:int32", "@ab", 1, None, 2.0, False, breadth="thin"),
    form("IndexSelect", "@ab", 0, "~c:int32"),
    form("IndexSelect", "@ab", 1, "~c:int32", breadth="thin"),
    form("GatherD", "ab", 1, "ab:int32"),
    form("GatherD", "ab", 0, "cb:int32", breadth="thin"),
    form("GatherD", "abc", -1, "abd:int32", breadth="thin"),
    form("GatherNd", "ab", "c1:int32"),
    form("GatherNd", "abc", "de2:int32", sizes={"2": 2}, breadth="thin"),
    form("Index", "ab", ["c:int64"]),
    form("Index", "ab", ["c:int64", "c:int64"], breadth="thin"),
    form("IndexAddExt", "ab", 0, "c:int32", "~cb", 1),
    form("IndexAddExt", "ab", 1, "c:int32", "~ac", 1, breadth="thin"),
    *(
        form(name, DATA, ROWS, "~dbc", breadth="thin")
        for name in ("ScatterUpdate", "ScatterMax", "ScatterMin")
    ),
    *(
        form(name, DATA, ROWS, "~dbc", breadth="thin")
        for name in ("ScatterAdd", "ScatterSub", "ScatterMul", "ScatterDiv")
    ),
    form("ScatterUpdate", "@ab", "~cd:int32", "~cdb", breadth="full"),
    form("ScatterAdd", "@ab", "~cd:int32", "~cdb", breadth="full"),
    *(
        form(name, "@abc", "~d1:int32", "~dbc", breadth="thin")
        for name in ("ScatterNdUpdate", "ScatterNdAdd", "ScatterNdSub")
    ),
    *(
        form(f"TensorScatter{name}", "abc", "~d1:int32", "dbc", breadth="thin")
        for name in ("Update", "Add", "Sub", "Mul", "Div", "Max", "Min")
    ),
    form("ScatterNdAdd", "@abc", "~d2:int32", "~dc", sizes={"2": 2}, breadth="full"),
    form("TensorScatterAdd", "abc", "~d2:int32", "dc", sizes={"2": 2}, breadth="full"),
    form("TensorScatterUpdate", "abc", "~d2:int32", "dc", sizes={"2": 2}, breadth="full"),
    *(
        form(name, "ab", "db", indices=(0, 1), sizes={"d": 2}, breadth="thin")
        for name in ("InplaceAdd", "InplaceSub", "InplaceUpdate")
    ),
    *(
        form(f"UnsortedSegment{name}", "ab", "a:int32", 16, breadth="full")
        for name in ("Sum", "Max", "Min", "Prod")
    ),
    form("UnsortedSegmentSum", "abc", "ab:int32", 16, breadth="thin"),
    form("Unique", "a:int32", breadth="thin"),
]
