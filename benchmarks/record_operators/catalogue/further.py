"""Forms that networks ask for beside those of the families: masks, biases, flags, datasets."""

from forms import Text, form

from catalogue.attention import SIZES, H, attention

THIN = {"breadth": "thin"}
MASKED = {
    "BSH": ("bsh", "bth"),
    "BNSD": ("bnsd", "bntd"),
    "SBH": ("sbh", "tbh"),
    "BSND": ("bsnd", "btnd"),
}
ONE = {"BSH": ("b1h", "bth"), "BNSD": ("bn1d", "bntd"), "BSND": ("b1nd", "btnd")}


def inference(name, layout, query, key, optional, count, nested=False, options=None, **more):
    """Attention of inference: lists of keys and values; ``optional``: inputs by position from 3."""
    others = [optional.get(place) for place in range(3, count)]
    return form(
        name,
        f"~{query}:{H}",
        [f"~{key}:{H}"],
        [f"~{key}:{H}"],
        *others,
        sizes={**SIZES, "x": 4, "y": 8},
        num_heads=16,
        num_key_value_heads=16,
        input_layout=Text(layout),
        options={**({"nested": True} if nested else {}), **(options or {})},
        **THIN,
        **more,
    )


MASK, SHIFT = "~b1st:bool", f"~bnst:{H}"
INCREMENTAL = [
    {},
    {3: "~b11t:bool"},
    {3: "~b11t:bool", 4: "~b:int64"},
    {4: "~b:int64"},
    {3: "~b11t:bool", 5: f"~bn1t:{H}"},
]
FUSED = [
    {},
    {4: MASK},
    {3: SHIFT},
    {3: SHIFT, 4: MASK},
    {3: SHIFT, 4: MASK, 5: "~b:int64", 6: "~b:int64"},
]
RING = {"primitive_attributes": {"enable_ring_attention": True}}
FIRST, LSE = {"returns": 0}, {"softmax_lse_flag": True}
FORMS = [
    *(
        attention(layout, *MASKED[layout], *more, breadth="thin", **flags)
        for layout in MASKED
        for more, flags in (
            ((None, None, None, "~b1st:uint8"), {}),
            ((None, None, None, "~st:uint8"), {}),
            ((f"~bnst:{H}",), {}),
            ((f"~bnst:{H}", None, None, "~b1st:uint8"), {}),
            (
                (f"~bnst:{H}", "~bnsx:uint8", None, "~b1st:uint8"),
                {"sizes": {"x": 8}, "keep_prob": 0.5},
            ),
            ((None, "~bnsx:uint8", None, "~b1st:uint8"), {"sizes": {"x": 8}, "keep_prob": 0.5}),
            ((None, None, None, "~zz:uint8"), {"sizes": {"z": 2048}, "sparse_mode": 2}),
            ((None, None, None, "~zz:uint8"), {"sizes": {"z": 2048}, "sparse_mode": 3}),
            ((None, None, None, "~zz:uint8"), {"sizes": {"z": 2048}, "sparse_mode": 4}),
        )
    ),
    *(
        inference("IncreFlashAttention", layout, *ONE[layout], optional, 15)
        for layout in ("BSH", "BNSD")
        for optional in INCREMENTAL
    ),
    *(
        inference("FusedInferAttentionScore", layout, *shapes, optional, 24, nested=True, **more)
        for layout in ("BSH", "BNSD", "BSND")
        for shapes, optionals, more in (
            (MASKED[layout], FUSED, {}),
            (MASKED[layout], [{4: "~zz:bool"}], {"sparse_mode": 2}),
            (
                ONE[layout],
                [{}, {4: "~b11t:bool"}, {5: "~b:int64", 6: "~b:int64"}],
                {"softmax_lse_flag": True},
            ),
            (ONE[layout], [{}, {4: "~b11t:bool"}], {}),
        )
        for optional in optionals
    ),
    # attention in a ring: of two results one must be asked for
    *(
        inference(
            "FusedInferAttentionScore",
            layout,
            *shapes,
            optional,
            24,
            nested=True,
            options=RING | asked,
            **more,
        )
        for layout in ("BSH", "BNSD", "BSND")
        for shapes, optional, asked, more in (
            (MASKED[layout], {}, FIRST, LSE),
            (MASKED[layout], {}, FIRST, {}),
            (ONE[layout], {}, {}, LSE),
            (MASKED[layout], {4: MASK}, FIRST, LSE),
            (MASKED[layout], {4: "~st:bool"}, FIRST, LSE),
            (MASKED[layout], {3: SHIFT}, FIRST, LSE),
            (MASKED[layout], {4: "~zz:bool"}, FIRST, LSE | {"sparse_mode": 2}),
            (MASKED[layout], {5: "~b:int64", 6: "~b:int64"}, FIRST, LSE),
        )
    ),
    *(
        inference(
            "FusedInferAttentionScore", layout, *shapes, {}, 24, nested=True, options=FIRST, **LSE
        )
        for layout in ("BSH", "BNSD", "BSND")
        for shapes in (MASKED[layout], ONE[layout])
    ),
    form("Index", "ab", ["~c:int64"], options={"nested": True}, **THIN),
    form("Index", "ab", ["~c:int64", "~c:int64"], options={"nested": True}, **THIN),
    form("Index", "abc", ["~d:int64"], options={"nested": True}, **THIN),
    *(
        form(
            "GroupedMatmul",
            *arguments,
            split_item=3,
            group_type=0,
            sizes={"e": 8, "c": 64},
            options={"nested": True},
            **THIN,
        )
        for arguments in (
            ([f"~ab:{H}"], [f"@ebc:{H}"], [f"@ec:{H}"], None, None, None, None, "~e:int64"),
            ([f"~ab:{H}"], [f"~ebc:{H}"], None, None, None, None, None, "~e:int64"),
        )
    ),
    # of a list of several results the gradient needs split_item 3: here they are only computed
    *(
        form(
            "GroupedMatmul",
            *arguments,
            split_item=split_item,
            group_type=group_type,
            sizes={"e": 8, "c": 64},
            options={"nested": True, "returns": 0},
            **THIN,
        )
        for split_item, group_type, *arguments in (
            (3, 0, [f"~ab:{H}"], [f"@ebc:{H}"], [f"@ec:{H}"], *[None] * 4, "~e:int64"),
            (3, 0, [f"~ab:{H}"], [f"@ebc:{H}"], *[None] * 5, "~e:int64"),
            (0, -1, [f"~ab:{H}"] * 2, [f"@bc:{H}"] * 2, [f"@c:{H}"] * 2, *[None] * 5),
            (0, -1, [f"~ab:{H}", f"~db:{H}"], [f"@bc:{H}"] * 2, *[None] * 6),
            (0, -1, [f"~ab:{H}"], [f"@bc:{H}"], [f"@c:{H}"], *[None] * 5),
        )
    ),
    form(
        "PagedAttentionMask",
        f"~b1h:{H}",
        f"@ckmd:{H}",
        f"@ckmd:{H}",
        "~be:int32",
        "~b:int32",
        None,
        None,
        f"~bn1t:{H}",
        sizes={**SIZES, "c": 64, "k": 16, "m": 16, "e": 16},
        head_num=16,
        scale_value=1.0,
        kv_head_num=16,
        **THIN,
    ),
    *(
        form(
            "WeightQuantBatchMatmul",
            f"~{x}:{H}",
            f"@{w}:int8",
            *more,
            sizes={"c": 64},
            transpose_x=tx,
            transpose_weight=tw,
            **THIN,
        )
        for x, tx in (("ab", False), ("ba", True))
        for w, tw in (("bc", False), ("cb", True))
        for more in (
            (f"~c:{H}", None, None, None, None),
            (f"~c:{H}", f"~c:{H}", None, None, None),
            (f"~c:{H}", f"~c:{H}", "~c:uint64", "~c:float32", f"~c:{H}"),
        )
    ),
    *(
        form(name, x, y, transpose_a=ta, transpose_b=tb, **THIN)
        for name, pairs in (
            (
                "MatMul",
                (
                    ("ab", False, "bc", False),
                    ("ab", False, "cb", True),
                    ("ba", True, "bc", False),
                    ("ba", True, "cb", True),
                ),
            ),
            (
                "BatchMatMul",
                (
                    ("dab", False, "dbc", False),
                    ("dab", False, "dcb", True),
                    ("dba", True, "dbc", False),
                    ("dba", True, "dcb", True),
                    ("edab", False, "edcb", True),
                ),
            ),
        )
        for x, ta, y, tb in pairs
    ),
    form(
        "FFN",
        f"~ah:{H}",
        f"hf:{H}",
        f"fh:{H}",
        None,
        None,
        None,
        None,
        None,
        None,
        None,
        None,
        None,
        None,
        None,
        activation=Text("fastgelu"),
        inner_precise=1,
        sizes={"a": 16, "h": 64, "f": 128},
        **THIN,
    ),
    form(
        "FFN",
        f"~ah:{H}",
        f"ehf:{H}",
        f"efh:{H}",
        "~e:int64",
        None,
        None,
        None,
        None,
        None,
        None,
        None,
        None,
        None,
        None,
        activation=Text("fastgelu"),
        inner_precise=1,
        sizes={"a": 16, "h": 64, "f": 128, "e": 8},
        **THIN,
    ),
    form(
        "FFN",
        f"~ah:{H}",
        f"hf:{H}",
        f"fh:{H}",
        None,
        f"f:{H}",
        f"h:{H}",
        None,
        None,
        None,
        None,
        None,
        None,
        None,
        None,
        activation=Text("fastgelu"),
        inner_precise=1,
        sizes={"a": 16, "h": 64, "f": 128},
        **THIN,
    ),
    *(
        form(name, "abc", axes, keep, None, **THIN)
        for name in ("MeanExt", "SumExt")
        for axes in (None, (1,), (0, 2))
        for keep in (False, True)
    ),
    *(
        form(name, "abc", axes, keep_dims=keep, **THIN)
        for name in ("ReduceSum", "ReduceMean", "ReduceMax", "ReduceMin")
        for axes in ((), (1,), (0, 2))
        for keep in (False, True)
    ),
    form(
        "UniformCandidateSampler",
        "~ab:int64",
        num_true=32,
        num_sampled=8,
        unique=True,
        range_max=64,
        remove_accidental_hits=True,
        **THIN,
    ),
    form("MaskedFill", "ab", "ab:bool", "~", **THIN),
    form("MaskedFill", "abc", "bc:bool", 1.0, **THIN),
    form("TensorToScalar", "~", **THIN),
    form("DynamicBroadcastTo", "a1", "!2:int32", sizes={"2": 2}, **THIN),
    form("Cast", "ab", {"type": "bfloat16"}, **THIN),
    form("StackExt", ["ab", "@ab"], dim=0, **THIN),
    form("Concat", ["ab", "ab", "ab", "ab"], axis=0, **THIN),
    form("Gather", "@ab", "~c:int32", 1, **THIN),
    form("EmbeddingLookup", "@ab", "~c:int32", 0, **THIN),
    form("EmbeddingLookup", "@ab", "~cd:int32", 8, **THIN),
    *(form("BinaryCrossEntropy", rows, rows, rows, **THIN) for rows in ("ab", "a")),
    *(
        form("Unstack", rows, num=count, axis=axis, sizes={"3": 3, "8": 8}, **THIN)
        for rows, count, axis in (("3abc", 3, 0), ("8ab", 8, 0), ("a3b", 3, 1), ("ab8", 8, -1))
    ),
]
