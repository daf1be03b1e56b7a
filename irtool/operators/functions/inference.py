"""Operators of inference: attention over caches, rotary embeddings, caches."""

from __future__ import annotations

from collections.abc import Callable

from irtool.ir.group_names import WORLD_GROUPS
from irtool.operators.case import Case
from irtool.operators.checks import check_strategy
from irtool.operators.functions.attention import RING, RING_LAYOUTS, input_layout
from irtool.operators.functions.common import given_inputs
from irtool.operators.irregular import axes, irregular
from irtool.operators.judgement import Collective, Sharding, Unsure
from irtool.operators.layout import (
    WHOLE,
    Shape,
    TensorMap,
    identity_map,
    ranks_along,
    repeated_calculation,
)

Base = Callable[[], Sharding]

INCREMENTAL = (
    "attn_mask", "actual_seq_lengths", "pse_shift", "dequant_scale1", "quant_scale1",
    "dequant_scale2", "quant_scale2", "quant_offset2", "antiquant_scale", "antiquant_offset",
    "block_table", "kv_padding_size",
)  # fmt: skip

PLACE_CACHE = "kv_cache_scatter_update_info.cc"
QUERY_CHECK = "fused_infer_attention_score_info.cc:CheckQueryStrategy"

SHIFT, MASK = 3, 4
"""Positions of pse_shift and attn_mask among the inputs of FusedInferAttentionScore."""
LENGTHS = (5, 6)
"""Of the actual lengths of the sequences."""
ANTIQUANT = (12, 13)
"""Of scale and offset of a quantised cache."""


def _whole(case: Case, index: int, dimensions: tuple[int, ...], what: str) -> None:
    strategy = case.strategy[index]
    if any(strategy[dimension] != 1 for dimension in dimensions if dimension < len(strategy)):
        case.refuse("axis-split", f"{what} can not be split, strategy {strategy}")


@axes("incremental_attention")
def incremental_attention_axes(case: Case) -> str:
    """Batch and heads; the function says of the optional inputs what they must have."""
    layout = input_layout(case)
    main = {"BSH": "[b !s n]", "BNSD": "[b n !s !d]"}.get(layout)
    if main is None:
        raise Unsure(f"attention with input layout {layout}")
    others: list[str] = []
    for index, name in enumerate(given_inputs(case, INCREMENTAL, 3), 3):
        rest = " ." * (len(case.shape(index)) - 1)
        if name == "attn_mask":
            others.append(f"[b{rest}]")
        elif name.startswith("antiquant"):
            others.append("[. n]" if layout == "BSH" else "[. n . .]")
        else:
            others.append("[*.]")
    return f"{main} {main} {main} {' '.join(others)} -> {main} order (b n) judged (b n)"


@irregular("incremental_attention")
def incremental_attention(case: Case, base: Base) -> Sharding:
    """One new token against the cache: batch and heads may be split."""
    layout = input_layout(case)
    if layout not in ("BSH", "BNSD"):
        case.refuse("attribute", f"the input layout {layout} is not supported")
    query, key, value = case.strategy[:3]
    if not query == key == value:
        message = f"query, key and value are split differently: {case.strategy[:3]}"
        case.refuse("axis-mismatch", message)
    place = "incre_flash_attention_info.cc:CheckStrategyOnIndex"
    if any(query[dimension] != 1 for dimension in ((1,) if layout == "BSH" else (2, 3))):
        message = f"sequence and head size can not be split, strategy {query}"
        case.refuse("axis-split", message, place)
    parts = query[2] if layout == "BSH" else query[1]
    heads = case.number("num_heads")
    if layout == "BSH" and heads % parts:
        case.refuse("not-divisible", f"{heads} heads are not divisible by their split {parts}")
    names = given_inputs(case, INCREMENTAL, 3)
    if len(names) + 3 != len(case.tensors):
        raise Unsure("which inputs of the attention are given is not clear")
    main: TensorMap = (1, WHOLE, 0) if layout == "BSH" else (1, 0, WHOLE, WHOLE)
    maps: list[TensorMap] = [main] * 3
    for index, name in enumerate(names, 3):
        maps.append(_incremental_map(case, index, name, layout, parts))
    return Sharding((query[0], parts), tuple(maps), (main,))


def _incremental_map(case: Case, index: int, name: str, layout: str, parts: int) -> TensorMap:
    strategy = case.strategy[index]
    rank = len(case.shape(index))
    if name == "attn_mask":
        place = "incre_flash_attention_info.cc:CheckAttenMaskStrategy"
        if strategy[0] != case.strategy[0][0]:
            message = f"the mask's batch is split by {strategy[0]}, the query's by another number"
            case.refuse("axis-mismatch", message, place)
        if any(split != 1 for split in strategy[1:]):
            message = f"only the batch of the mask can be split, strategy {strategy}"
            case.refuse("axis-split", message, "incre_flash_attention_info.cc:CheckStrategyOnIndex")
        return (1, *((WHOLE,) * (rank - 1)))
    if name == "pse_shift":
        return (1, *((WHOLE,) * (rank - 1))) if rank >= 3 else (WHOLE,) * rank
    if name.startswith("antiquant"):
        place = "incre_flash_attention_info.cc:CheckAntiquantStrategy"
        wanted = (1, parts) if layout == "BSH" else (1, parts, 1, 1)
        if strategy != wanted:
            case.refuse("strategy-expected", f"{name} must be split by {wanted}", place)
        return (WHOLE, 0) if layout == "BSH" else (WHOLE, 0, WHOLE, WHOLE)
    lengths = name == "actual_seq_lengths" and strategy == case.strategy[0][:1]
    if any(split != 1 for split in strategy) and not lengths:
        raise Unsure(f"a split {name}")
    return (1,) if name == "actual_seq_lengths" else (WHOLE,) * rank


@axes("fused_infer_attention")
def fused_infer_attention_axes(case: Case) -> str:
    """Batch, heads, and the sequence of the query, or of the cache for a single token."""
    axes = {"BSH": "bsn", "BNSD": "bns.", "BSND": "bsn."}.get(input_layout(case))
    if axes is None:
        raise Unsure("an input layout that the operator does not take")
    single = case.shape(0)[axes.index("s")] == 1
    long, short = " ".join(axes), " ".join(axes).replace("s", ".")
    query, key = (short, long) if single else (long, short)
    others = " [*.]" * (len(case.tensors) - 3)
    outputs = "[*.]" * (len(case.call.results) - 1)
    return f"[{query}] [{key}] [{key}]{others} -> [{query}] {outputs} judged (b s n)"


@irregular("fused_infer_attention", self_checked=True)
def fused_infer_attention(case: Case, base: Base) -> Sharding:
    """Query and lists of keys and values; with one query token the cache may be split instead."""
    layout = input_layout(case)
    axes = {"BSH": "bsn", "BNSD": "bns.", "BSND": "bsn."}.get(layout)
    if axes is None:
        case.refuse("attribute", f"the input layout {layout} is not supported")
    ring = bool(case.call.attributes.get(RING))
    if ring:
        _check_ring(case, layout)
    count = len(case.strategy)
    shifted = len(case.call.inputs) > SHIFT and case.call.inputs[SHIFT].shape is not None
    if count not in (len(case.tensors), len(case.tensors) - shifted):  # a shift needs no row
        message = f"the strategy has {count} rows for {len(case.tensors)} tensors"
        case.refuse("strategy-size", message)
    if len(case.call.inputs) < 3 or any(len(list(o.tensors)) != 1 for o in case.call.inputs[:3]):
        raise Unsure("attention over several caches")
    query, key, value = case.strategy[:3]
    if key != value:
        message = f"key and value are split differently: {key} and {value}"
        case.refuse("axis-mismatch", message)
    shapes = tuple(case.sizes(index) for index in range(count))
    check_strategy(case.strategy, shapes, case.context)
    place = "fused_infer_attention_score_info.cc:CheckStrategyOnIndex"
    if layout != "BSH" and query[3] != 1:
        case.refuse("axis-split", f"the head size can not be split, strategy {query}", place)
    heads, parts = case.number("num_heads"), query[axes.index("n")]
    if layout == "BSH" and heads % parts:
        message = f"{heads} heads are not divisible by their split {parts}"
        case.refuse("not-divisible", message, QUERY_CHECK)
    single = case.shape(0)[axes.index("s")] == 1
    if ring and single:
        case.refuse("attention", "ring attention takes queries of several tokens", QUERY_CHECK)
    return _fused(case, axes, single=single, ring=ring)


def _check_ring(case: Case, layout: str) -> None:
    """What attention along a split sequence must be, whatever its strategy."""
    place = "fused_infer_attention_score_info.cc:CheckInputInRingAttention"
    if layout not in RING_LAYOUTS:
        message = f"ring attention takes {' and '.join(RING_LAYOUTS)}, not {layout}"
        case.refuse("attention", message, place)
    if not case.flag("softmax_lse_flag"):
        case.refuse("attention", "ring attention needs softmax_lse_flag", place)
    mode = case.number("sparse_mode")
    if mode != 0:
        case.refuse("attention", f"ring attention takes sparse_mode 0, not {mode}", place)


def _fused(case: Case, axes: str, *, single: bool, ring: bool) -> Sharding:
    """Maps and communication. ``single``: there is one query token only."""
    query, key = case.strategy[:2]
    where = axes.index("s")
    splits = {"b": query[0], "n": query[axes.index("n")], "s": (key if single else query)[where]}
    matrix = tuple(splits[axis] for axis in axes if axis != ".")
    entry = {axis: 2 - place for place, axis in enumerate(axes[:3])} | {".": WHOLE}
    plain = tuple(entry[axis] for axis in axes)
    short = tuple(WHOLE if axis == "s" else entry[axis] for axis in axes)
    first, second = (short, plain) if single else (plain, plain if ring else short)
    lse = (entry["b"], entry["n"], WHOLE if single else entry["s"], WHOLE)
    exchanges: tuple[Collective, ...] = ()
    if ring:
        exchanges = _passed_round(case, matrix, axes, splits["s"])
    elif single and case.flag("softmax_lse_flag"):
        exchanges = _combined(case, matrix, axes, splits["s"])
    others = _optional_maps(case, entry, single)
    results = case.call.results
    outputs = (first, lse if len(results) > 1 and len(results[1].shape or ()) == 4 else (WHOLE,))
    if len(results) > 1 and len(results[1].shape or ()) not in (1, 4):
        raise Unsure("the second output of the attention has an unknown form")
    maps = (first, second, second, *others)
    replaced = "attention in steps, keys and values passed on" if ring and splits["s"] > 1 else ""
    return Sharding(matrix, maps, outputs[: len(results)], exchanges=exchanges, replaced=replaced)


def _optional_maps(case: Case, entry: dict[str, int], single: bool) -> tuple[TensorMap, ...]:
    """Maps of the optional inputs that are there. ``single``: there is one query token only."""
    maps: list[TensorMap] = []
    for position, operand in enumerate(case.call.inputs[3:], start=3):
        if operand.shape is None:
            continue
        maps.append(_optional_map(case, position, operand.shape, entry, single))
    if len(maps) != len(case.tensors) - 3:
        raise Unsure("lists of tensors among the optional inputs")
    return tuple(maps)


def _optional_map(
    case: Case, position: int, shape: Shape, entry: dict[str, int], single: bool
) -> TensorMap:
    unsplit: TensorMap = (WHOLE,) * len(shape)
    batch, heads, sequence = entry["b"], entry["n"], entry["s"]
    if position == SHIFT and len(shape) == 4:
        last = (WHOLE, sequence) if single else (sequence, WHOLE)
        return (batch, heads, *last)
    if position == MASK and single:
        middle = (WHOLE,) * (len(shape) - 2)
        return (batch, *middle, sequence) if len(shape) in (2, 3, 4) else unsplit
    if position == MASK:
        rows = sequence if case.number("sparse_mode") == 0 else WHOLE
        first = {2: (), 3: (WHOLE if shape[0] == 1 else batch,), 4: (batch, WHOLE)}
        return (*first[len(shape)], rows, WHOLE) if len(shape) in first else unsplit
    if position in LENGTHS and len(shape) == 1:
        return (batch,)
    if position in ANTIQUANT:
        if case.number("antiquant_mode") == 1:
            return (WHOLE, batch, WHOLE) if len(shape) == 3 else unsplit
        known = {
            "BSH": (WHOLE, 0),
            "BNSD": (WHOLE, 0, WHOLE, WHOLE),
            "BSND": (WHOLE, WHOLE, 0, WHOLE),
        }
        tensor_map = known.get(input_layout(case), unsplit)
        return tensor_map if len(tensor_map) == len(shape) else unsplit
    return unsplit


def _along_sequence(case: Case, matrix: Shape, axes: str) -> tuple[int, ...]:
    """The ranks that MindSpore takes for those along the sequence; none if nothing fits.

    Where calculation is repeated, it counts the sequence's axis from the right and forgets the axis
    of repetition there: the group is that of the next axis, if need be of one rank.
    """
    context = case.context
    repeated = repeated_calculation(matrix, context.stage_size, right=True)
    if repeated is None:
        return ()
    over = axes.replace(".", "").index("s") + len(repeated.device_matrix) - len(matrix)
    return ranks_along(repeated.device_matrix, [over], context.devices, context.own_rank)


def _passed_round(case: Case, matrix: Shape, axes: str, parts: int) -> tuple[Collective, ...]:
    """Keys and values, one behind the other, go to the next rank in all steps but the last."""
    ring = _along_sequence(case, matrix, axes)
    if parts == 1 or not ring:
        return ()
    place, rank = ring.index(case.context.own_rank), case.context.own_rank
    cut = dict(zip(axes.replace(".", ""), matrix, strict=True)) | {".": 1}
    first, *others = (size // cut[axis] for size, axis in zip(case.shape(1), axes, strict=True))
    exchange = Collective(
        "NeighborExchange",
        tuple(sorted({rank, ring[(place + 1) % len(ring)], ring[place - 1]})),
        why="keys and values of the pieces of a split sequence",
        output=None,
        shape=(2 * first, *others),
        group=WORLD_GROUPS[0],
        input=1,
        late=True,
    )
    return (exchange,) * (parts - 1)


def _combined(case: Case, matrix: Shape, axes: str, parts: int) -> tuple[Collective, ...]:
    """A split cache: the parts' results are weighed by their sums of exponentials and added.

    Without ``softmax_lse_flag`` MindSpore adds nothing: each device keeps the result of its part.
    """
    ranks = _along_sequence(case, matrix, axes)
    if parts == 1 or not ranks:
        return ()
    heads, batch = matrix[axes.index("n")], matrix[0]
    lse = (case.shape(0)[0] // batch, case.number("num_heads") // heads, 1, 1)
    why = "the cache is split along its sequence"
    return (
        Collective("AllGather", ranks, "", why, None, lse),
        Collective("AllReduce", ranks, "sum", why, None, lse),
        Collective("AllReduce", ranks, "sum", why, 0, _result_slice(case, matrix, axes)),
    )


def _result_slice(case: Case, matrix: Shape, axes: str) -> Shape:
    """What one device has of the result: of one query token, so its sequence is whole."""
    cut = dict(zip(axes.replace(".", ""), matrix, strict=True)) | {"s": 1, ".": 1}
    return tuple(size // cut[axis] for size, axis in zip(case.result(0), axes, strict=True))


@irregular("paged_attention")
def paged_attention(case: Case, base: Base) -> Sharding:
    """Query [b s h], caches [. . n .], block tables [b .], lengths [b], a mask [b n . .]."""
    query, key, value, tables = case.strategy[:4]
    if len(query) != 3:
        raise Unsure("a query without batch and sequence")
    _whole(case, 0, (1,), "the sequence")
    _whole(case, 3, (1,), "the second dimension of block_tables")
    for index in (1, 2):
        _whole(case, index, (0,), "the blocks' size")
    for index in (1, 2):
        _whole(case, index, (1,), "the number of blocks")
    masked = case.call.op == "PagedAttentionMask"
    heads = {key[2], value[2], query[2]}
    if masked and len(case.strategy) > 5:
        heads.add(case.strategy[5][1])
    if len(heads) > 1:
        message = f"heads of the cache and the hidden size are split differently: {case.strategy}"
        case.refuse("axis-mismatch", message)
    for index in (1, 2):
        _whole(case, index, (3,), "the heads' size")
    del tables
    if masked and len(case.tensors) < 6:
        case.refuse("strategy-size", "PagedAttentionMask needs a mask where it is sharded", "")
    cache: TensorMap = (WHOLE, WHOLE, 0, WHOLE)
    if masked:
        main: TensorMap = (1, WHOLE, 0)
        maps = (main, cache, cache, (1, WHOLE), (1,), (1, 0, WHOLE, WHOLE))
        matrix: Shape = (query[0], query[2])
    else:
        # Three axes of size 1 between batch and heads; lengths are whole.
        main = (4, 1, 0)
        maps = (main, cache, cache, (4, WHOLE), (WHOLE,))
        matrix = (query[0], 1, 1, 1, query[2])
    if len(maps) != len(case.tensors):
        raise Unsure("optional inputs of the paged attention")
    return Sharding(matrix, maps, (main,))


@axes("rotary_embedding")
def rotary_embedding_axes(case: Case) -> str:
    """Batch and heads of query and key; of position ids the batch, if they have one."""
    if len(case.shape(0)) == 3:
        return "[b !s n] [b !s n] [*.] [*.] [b] -> [b !s n] [b !s n] order (n b) judged (b n)"
    main = "[b !s n !d]"
    return f"{main} {main} [*.] [*.] [.] -> {main} {main} order (n b) judged (b n)"


@irregular("rotary_embedding")
def rotary_embedding(case: Case, base: Base) -> Sharding:
    """Query and key [b s h] or [b s n d]; cos and sin whole; position ids."""
    query, key, cos, sin, ids = case.strategy[:5]
    if any(split != 1 for split in (*cos, *sin)):
        case.refuse("axis-split", f"cos and sin can not be split: {cos}, {sin}")
    rank = len(query)
    if rank not in (3, 4):
        raise Unsure(f"a query of rank {rank}")
    check = f"apply_rotary_pos_emb_info.cc:CheckStrategy{rank}Dims"
    if query[1] != 1 or key[1] != 1:
        case.refuse("axis-split", f"the sequence can not be split: {query}, {key}", check)
    if rank == 4 and (query[3] != 1 or key[3] != 1):
        case.refuse("axis-split", f"the heads' size can not be split: {query}, {key}", check)
    if query[2] != key[2]:
        message = f"query and key are split differently: {query} and {key}"
        case.refuse("axis-mismatch", message, check)
    if query[0] != key[0] or (rank == 3 and query[0] != ids[0]):
        message = f"the batch is split differently: {case.strategy}"
        case.refuse("axis-mismatch", message, check)
    main: TensorMap = (0, WHOLE, 1) if rank == 3 else (0, WHOLE, 1, WHOLE)
    # With one token a step every position belongs to one piece of the batch.
    ids_map: TensorMap = (0,) if case.shape(4)[0] == 1 and ids[0] > 1 else (WHOLE,)
    others = tuple(
        (0, *((WHOLE,) * (len(t.shape or ()) - 1))) if rank == 4 else (WHOLE,) * len(t.shape or ())
        for t in case.tensors[2:4]
    )
    return Sharding((query[2], query[0]), (main, main, *others, ids_map), (main, main))


@irregular("cache_update")
def cache_update(case: Case, base: Base) -> Sharding:
    """Variable, indices, updates: the first dimension is whole."""
    if len(case.strategy) != 3:
        case.refuse("strategy-size", f"the strategy must have three entries: {case.strategy}")
    first, indices, updates = case.strategy
    if any(split != 1 for split in indices):
        case.refuse("axis-split", f"the indices can not be split: {indices}")
    rank = len(first)
    if rank not in (2, 3, 4) or len(updates) != rank:
        raise Unsure(f"a cache of rank {rank}")
    if first[0] != updates[0]:
        message = f"the batch is split differently: {first} and {updates}"
        case.refuse("axis-mismatch", message)
    if rank == 4 and first[2] != 1:
        message = f"the sequence can not be split: {first}"
        case.refuse("axis-split", message, f"{PLACE_CACHE}:CheckStrategy4Dims")
    if first != updates:
        check = f"{PLACE_CACHE}:CheckStrategy{rank}Dims"
        message = f"variable and updates are split differently: {first} and {updates}"
        case.refuse("axis-mismatch", message, check)
    plain = identity_map(rank)
    return Sharding(first, (plain, (WHOLE,) * len(indices), plain), (plain,))


@irregular("reshape_and_cache")
def reshape_and_cache(case: Case, base: Base) -> Sharding:
    """New keys and values [. . h] or [. n d] into caches [. . n d] at the slots."""
    key, value, key_cache, value_cache, slots = case.strategy[:5]
    if slots[0] != 1:
        case.refuse("axis-split", f"the slots can not be split: {slots}")
    for index in (0, 1):
        _whole(case, index, tuple(range(len(key) - 1)), "the sequence")
    for index in (2, 3):
        _whole(case, index, (0,), "the blocks' size")
    for index in (2, 3):
        _whole(case, index, (1,), "the number of blocks")
    if len({key[-1], value[-1], key_cache[2], value_cache[2]}) > 1:
        message = f"hidden size and heads of the cache are split differently: {case.strategy}"
        case.refuse("axis-mismatch", message)
    for index in (2, 3):
        _whole(case, index, (3,), "the heads' size")
    # Four axes of size 1 before the heads, to which the rows of the updates point.
    matrix: Shape = (1, 1, 1, 1, key[-1])
    update: TensorMap = (*((4, 1) if len(key) == 3 else (WHOLE,)), 0)
    cache = (WHOLE, WHOLE, 0, WHOLE)
    out = (*((WHOLE,) * (len(key) - 1)), 0)
    return Sharding(matrix, (update, update, cache, cache, (WHOLE,)), (out,))
