"""Attention in training: FlashAttentionScore.

Axes: b batch, s1 sequence of the query, n1 its heads, s2 sequence of key and value, n2 their heads.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from irtool.ir.dataclass import dataclass
from irtool.ir.group_names import WORLD_GROUPS
from irtool.operators.case import Case
from irtool.operators.checks import check_strategy
from irtool.operators.functions.common import given_inputs, layout_maps
from irtool.operators.irregular import axes, irregular
from irtool.operators.judgement import Collective, Sharding, Unsure
from irtool.operators.layout import (
    WHOLE,
    DeviceMatrix,
    MapEntry,
    Shape,
    TensorLayout,
    TensorMap,
    axes_of,
    ranks_along,
    repeated_calculation,
    split_of,
)

Base = Callable[[], Sharding]

LAYOUTS = ("BSH", "BNSD", "SBH", "BSND", "TND", "TH", "NSD", "SH")
"""Input layouts in the order of the numbers that dumps print for them."""
COMPRESSED = (2, 3, 4)
"""Sparse modes whose mask is compressed, so not split along the query's sequence."""
LATER = "flash_attention_score.cc:InferShape"
"""Of what no check of layouts refuses, but the operator on each device then does."""
MASKS = ("real_shift", "drop_mask", "attn_mask")
OPTIONAL = (
    "real_shift", "drop_mask", "padding_mask", "attn_mask", "prefix",
    "actual_seq_qlen", "actual_seq_kvlen",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class _Splits:
    """Into how many slices each axis is cut."""

    b: int
    s1: int
    n1: int
    s2: int
    n2: int

    def of(self, axes: str) -> Shape:
        known = {"b": self.b, "s": self.s1, "n": self.n1, "t": self.s2, "m": self.n2, ".": 1}
        return tuple(known[axis] for axis in axes)


QUERY = {"BSH": "bsn", "SBH": "sbn", "BNSD": "bns.", "BSND": "bsn.", "TND": "bn."}
KEY = {"BSH": "btm", "SBH": "tbm", "BNSD": "bmt.", "BSND": "btm.", "TND": "bm."}
MATRIX = {"BSH": "bsn", "SBH": "sbn", "BNSD": "bns", "BSND": "bsn", "TND": "bsn"}
"""Of TND, sequences of several lengths in line, the line is cut as a batch is."""
JOINED = "TND"
BY_LAYOUT = "flash_attention_score_info.cc:InferSplitNumAndDevMatrixShapeByLayout"


def input_layout(case: Case) -> str:
    """The layout of query, key and value by its name: ``BSH``, ``BNSD``, ….

    Args:
        case: with the attribute ``input_layout``, a name or its number in :data:`LAYOUTS`.

    Raises:
        Unsure: it is neither.
    """
    value = case.attribute("input_layout")
    if isinstance(value, str):
        return value
    if isinstance(value, int) and 0 <= value < len(LAYOUTS):
        return LAYOUTS[value]
    raise Unsure(f"input layout {value!r}")


RING = "enable_ring_attention"
"""Attribute of attention that passes keys and values round from rank to rank."""
BALANCED = "enable_flash_sp"
"""The same, with pieces of the sequence that are equally long to compute."""
SEND_RECEIVE = "enable_ra_send_recv"
"""Attribute of a ring that sends and receives instead of exchanging."""
RING_LAYOUTS = ("BSH", "BNSD")


@axes("flash_attention")
def flash_attention_axes(case: Case) -> str:
    """Batch, heads and the query's sequence; along a split sequence the function decides."""
    layout = input_layout(case)
    if layout not in QUERY or layout == JOINED:
        raise Unsure(f"attention with input layout {layout}")
    ring = any(case.call.attributes.get(n) for n in (RING, BALANCED))
    names = ("query", "key", "value", *given_inputs(case, OPTIONAL, 3))
    heads = case.number("head_num")
    shared = _is_shared_head(case, layout, heads)
    compressed = case.number("sparse_mode") in COMPRESSED
    inputs = [
        _axes_of(name, layout, case.shape(index), compressed) for index, name in enumerate(names)
    ]
    meant = {"m": "." if shared else "n", "t": "s" if ring else "."}

    def signature(pattern: str) -> str:
        return f"[{' '.join(meant.get(axis, axis) for axis in pattern)}]"

    outputs = ["bns.", "bns.", "", QUERY[layout]]
    results = [
        signature(pattern) if index != 2 else "[*.]"
        for index, pattern in enumerate(outputs[: len(case.call.results)])
    ]
    order = " ".join(MATRIX[layout])
    return (
        f"{' '.join(map(signature, inputs))} -> {' '.join(results)} order ({order}) "
        f"divides n {heads} mirror 0" + (" judged (b s n)" if ring else "")
    )


@irregular("flash_attention", self_checked=True, out_layout=True)
def flash_attention(case: Case, base: Base) -> Sharding:
    """The strategy must be the one that the splits of query and key make necessary."""
    layout = input_layout(case)
    ring = any(case.call.attributes.get(n) for n in (RING, BALANCED))
    case = _without_numbers(case)
    if ring:
        _check_ring(case, layout)
    if layout not in QUERY or (layout == JOINED and ring):
        raise Unsure(f"attention with input layout {layout}")
    names = ("query", "key", "value", *given_inputs(case, OPTIONAL, 3))
    if len(names) != len(case.tensors):
        raise Unsure("which inputs of the attention are given is not clear")
    if case.layouts is None:
        shapes = tuple(tensor.divisible_shape for tensor in case.tensors)
        check_strategy(case.strategy, shapes, case.context)
    compressed = case.number("sparse_mode") in COMPRESSED
    axes = tuple(
        _axes_of(name, layout, case.shape(index), compressed) for index, name in enumerate(names)
    )
    if case.layouts is not None:
        if ring:
            _check_ring_layouts(case, layout)
        sharding = _by_layout(case, layout, names, axes)
        if not ring:
            return sharding
        axis = QUERY[layout].index("s")
        split = case.strategy[0][axis]
        return sharding if split == 1 else _passed_round(case, sharding, axis)
    splits = _splits(case, layout, ring)
    expected = tuple(splits.of(pattern) for pattern in axes)
    if expected != case.strategy:
        message = f"the strategy must be {expected}, but is {case.strategy}"
        place = "flash_attention_score_info.cc:CheckStrategyExpected"
        case.refuse("strategy-expected", message, place)
    sharding = _plain(case, layout, splits, axes, ring)
    if not ring or splits.s1 == 1:
        return sharding
    return _passed_round(case, sharding, QUERY[layout].index("s"))


def _passed_round(case: Case, sharding: Sharding, dimension: int) -> Sharding:
    """Attention in as many steps as there are pieces: between two the next piece comes round.

    Keys and values, one behind the other, go to the next rank of the ring and come from the one
    before. Source: validate dumps of MindSpore 2.7.

    Args:
        case: the call.
        sharding: what the notation of its layouts comes to.
        dimension: that of the sequence in the query.
    """
    sharding = replace(sharding, replaced="attention in steps, keys and values passed on")
    if case.call.attributes.get(SEND_RECEIVE) or not case.call.attributes.get(RING):
        unsure = "what passes round between the pieces of a split sequence is not worked out"
        return replace(sharding, unsure=unsure)
    devices, rank = case.context.devices, case.context.own_rank
    matrix, tensor_map = sharding.device_matrix, sharding.input_maps[0]
    axes = axes_of(matrix, tensor_map[dimension])
    repeated = repeated_calculation(matrix, len(devices))
    if repeated is None:
        return sharding
    ring = ranks_along(repeated.device_matrix, axes, devices, rank)
    place = ring.index(rank)
    ranks = {rank, ring[(place + 1) % len(ring)], ring[place - 1]}
    sizes = zip(case.shape(1), case.strategy[1], strict=True)
    first, *others = (size // split for size, split in sizes)
    exchange = Collective(
        "NeighborExchange",
        tuple(sorted(ranks)),
        why="keys and values of the pieces of a split sequence",
        output=None,
        shape=(2 * first, *others),
        group=WORLD_GROUPS[0],
        input=1,
        late=True,
    )
    return replace(sharding, exchanges=(exchange,) * (len(ring) - 1))


def _check_ring(case: Case, layout: str) -> None:
    """What attention along a split sequence must be, whatever its strategy."""
    if case.call.attributes.get(BALANCED) and "attn_mask" in given_inputs(case, OPTIONAL, 3):
        message = "ring attention with balanced pieces takes no mask of the user's"
        case.refuse("attention", message, "flash_sp.cc:SetFlashSP")
    place = "flash_attention_score_info.cc:CheckInputInRingAttention"
    if layout not in RING_LAYOUTS:
        message = f"ring attention takes {' and '.join(RING_LAYOUTS)}, not {layout}"
        case.refuse("attention", message, place)
    mode = case.number("sparse_mode")
    if mode != 0:
        case.refuse("attention", f"ring attention takes sparse_mode 0, not {mode}", place)


def _check_ring_layouts(case: Case, layout: str) -> None:
    """The sequence of key and value lies as the query's does, or is whole; more is not known."""
    _, maps = layout_maps(case)
    query = maps[0][QUERY[layout].index("s")]
    key = maps[1][KEY[layout].index("t")]
    if query == WHOLE:
        message = "ring attention looks up the device axis of a sequence that lies along none"
        case.refuse("layout", message, LATER)
    if case.strategy[1][KEY[layout].index("t")] != 1 and query != key:
        raise Unsure("layouts of an attention along a sequence that the key does not share")


def _without_numbers(case: Case) -> Case:
    """Without the entries of the strategy for lengths that are given as tuples of numbers."""
    extra = case.strategy[len(case.tensors) :]
    if any(split != 1 for row in extra for split in row):
        raise Unsure("lengths of sequences given as numbers are split")
    return replace(case, strategy=case.strategy[: len(case.tensors)]) if extra else case


def _splits(case: Case, layout: str, ring: bool) -> _Splits:
    query, key = case.strategy[0], case.strategy[1]
    first = dict(zip(QUERY[layout], query, strict=True))
    second = dict(zip(KEY[layout], key, strict=True))
    splits = _Splits(first["b"], first.get("s", 1), first["n"], second.get("t", 1), second["m"])
    heads = case.number("head_num")
    check = "flash_attention_score_info.cc:CheckStrategy"
    if heads % splits.n1:
        message = f"{heads} heads are not divisible by their split {splits.n1}"
        case.refuse("not-divisible", message, check)
    if layout == JOINED and first["b"] != second["b"]:
        message = f"the sequences of query and key are split differently: {query} and {key}"
        case.refuse("axis-mismatch", message, check)
    if splits.s2 != (splits.s1 if ring else 1):
        message = f"the sequence of the key can not be split, strategy {key}"
        case.refuse("axis-split", message, check)
    shared = _is_shared_head(case, layout, heads)
    if shared:
        return replace(splits, n2=1)
    if splits.n2 != splits.n1:
        message = f"heads of the query are split by {splits.n1}, of the key by {splits.n2}"
        case.refuse("axis-mismatch", message, check)
    return replace(splits, n2=splits.n1)


def _is_shared_head(case: Case, layout: str, heads: int) -> bool:
    """All heads of the query share one head of key and value."""
    if layout in ("BNSD", JOINED):
        return case.shape(1)[1] == 1
    if layout == "BSND":
        return case.shape(1)[2] == 1
    return case.shape(0)[2] != case.shape(1)[2] and case.shape(0)[2] == case.shape(1)[2] * heads


def _axes_of(name: str, layout: str, shape: Shape, compressed: bool) -> str:
    """Which axis each dimension of an input lies along: b s n, t and m of the key, . whole."""
    if name == "query":
        return QUERY[layout]
    if name in ("key", "value"):
        return KEY[layout]
    if name in ("prefix", "actual_seq_qlen", "actual_seq_kvlen"):
        return "b" + "." * (len(shape) - 1)
    rows = "." if compressed else "s"
    if name == "drop_mask":
        return "bns."
    if name == "real_shift":
        return _unless_one("bns.", shape)
    if name == "attn_mask" and len(shape) == 2:
        return f"{rows}."
    if name == "attn_mask" and len(shape) == 4:
        return _unless_one(f"bn{rows}.", shape)
    raise Unsure(f"{name} of shape {shape}")


def _unless_one(axes: str, shape: Shape) -> str:
    if len(axes) != len(shape):
        raise Unsure(f"a mask of shape {shape}")
    return "".join("." if size == 1 else axis for axis, size in zip(axes, shape, strict=True))


def _plain(case: Case, layout: str, splits: _Splits, axes: tuple[str, ...], ring: bool) -> Sharding:
    order = MATRIX[layout]
    matrix = splits.of(order)
    place: dict[str, MapEntry] = {axis: 2 - order.index(axis) for axis in order}
    shared = _is_shared_head(case, layout, case.number("head_num"))
    place |= {".": WHOLE, "m": WHOLE if shared else place["n"]}
    place["t"] = place["s"] if ring else WHOLE
    return Sharding(
        device_matrix=matrix,
        input_maps=tuple(tuple(place[axis] for axis in pattern) for pattern in axes),
        output_maps=_outputs(case, layout, place),
        loss_output=3,
        # MindSpore loses the mirrors of all inputs behind the query, except with layouts.
        mirrored=(True, *(False for _ in case.tensors[1:])),
    )


def _outputs(case: Case, layout: str, place: dict[str, MapEntry]) -> tuple[TensorMap, ...]:
    """softmax_max, softmax_sum, softmax_out, attention_out."""
    statistics = tuple(place[axis] for axis in ("bn." if layout == JOINED else "bns."))
    softmax_out = tuple(WHOLE for _ in case.result(2)) if len(case.call.results) > 2 else (WHOLE,)
    attention = tuple(place[axis] for axis in QUERY[layout])
    return (statistics, statistics, softmax_out, attention)[: len(case.call.results)]


def _by_layout(case: Case, layout: str, names: tuple[str, ...], axes: tuple[str, ...]) -> Sharding:
    """User layouts: MindSpore looks at the query's alone; what does not fit locally fails later.

    An output layout may say anything: the result lies as the query does, and is taken to lie so.
    """
    matrix, maps = layout_maps(case)
    if layout == JOINED:
        _check_joined(case, matrix, maps)
    elif any(isinstance(entry, tuple) for entry in maps[0]):
        message = f"a dimension of the query lies along several device axes: {maps[0]}"
        case.refuse("layout", message, BY_LAYOUT)
    if maps[1] != maps[2]:
        raise Unsure(f"key and value with different layouts, {maps[1]} and {maps[2]}")
    if layout != JOINED:
        _check_local(case, layout, names, axes)
    place: dict[str, MapEntry] = {".": WHOLE}
    for axis, entry in zip(axes[0], maps[0], strict=True):
        place.setdefault(axis, entry)
    outputs = _outputs(case, layout, place)
    # A head size that is split comes out as that of the values.
    result = tuple(
        maps[2][place] if axis == "." else maps[0][place] for place, axis in enumerate(axes[0])
    )
    outputs = (*outputs[:3], *(result for _ in outputs[3:]))
    if case.output_layouts is None:
        return Sharding(matrix, maps, outputs, complete=True, loss_output=3)
    slices = tuple(
        TensorLayout(matrix, tensor_map, case.result(index)).slice_shape
        for index, tensor_map in enumerate(outputs)
    )
    return Sharding(
        matrix,
        maps,
        tuple(given.tensor_map for given in case.output_layouts),
        complete=True,
        loss_output=3,
        output_slices=tuple(enumerate(slices)),
    )


def _check_joined(case: Case, matrix: DeviceMatrix, maps: tuple[TensorMap, ...]) -> None:
    """Sequences in line may lie along two axes: the inner one cuts the query's, not the keys'."""
    if any(isinstance(entry, tuple) for entry in maps[0][1:]):
        raise Unsure(f"heads that lie along several device axes, in the layout {JOINED}")
    along = maps[0][0]
    if not isinstance(along, tuple):
        return
    if len(along) > 2:
        message = f"the sequences of the query lie along more than two device axes: {along}"
        case.refuse("layout", message, BY_LAYOUT)
    inner = split_of(matrix, along[len(along) - 1])
    query, key = case.strategy[0][0], case.strategy[1][0]
    if query != key * inner:
        message = (
            f"the sequences of the query are split by {query}, of that {inner} along the inner "
            f"axis, so those of the key must be by {query // inner}, not {key}"
        )
        case.refuse("attention", message, "")


def _check_local(case: Case, layout: str, names: tuple[str, ...], axes: tuple[str, ...]) -> None:
    """Local heads of the key must divide those of the query, and masks must be as long."""
    query = dict(zip(axes[0], case.strategy[0], strict=True))
    key = dict(zip(axes[1], case.strategy[1], strict=True))
    width = case.shape(0)[QUERY[layout].index("n")]
    heads = case.number("head_num")
    shared = heads * case.shape(1)[KEY[layout].index("m")] // width
    if layout in ("BNSD", "BSND"):
        shared = case.shape(1)[KEY[layout].index("m")]
    local = max(shared // key["m"], 1)
    if (heads // query["n"]) % local:
        message = f"{local} heads of the key are no factor of {heads // query['n']} of the query"
        case.refuse("attention", message, LATER)
    for name, pattern, given in zip(names[3:], axes[3:], case.strategy[3:], strict=True):
        # a mask that is compressed, or broadcast along the keys, is of another size
        mask = case.shape(names.index(name))
        along = name in MASKS and mask[-1:] == (case.shape(1)[KEY[layout].index("t")],)
        along = along and (name != "attn_mask" or case.number("sparse_mode") not in COMPRESSED)
        if (along or name == "drop_mask") and given[-1] != key["t"]:
            message = f"{name} is split by {given[-1]} along the keys, they by {key['t']}"
            case.refuse("attention", message, LATER)
        pairs = zip(pattern, given, strict=True)
        if name in MASKS and any(axis in "bsn" and query[axis] != split for axis, split in pairs):
            message = f"the layout of {name} leaves it slices that those of the query do not fit"
            case.refuse("attention", message, LATER)
