"""Mutations that know what a dump is made of: strategies, operands, types, attributes, graphs.

They replace pieces of the text, so that they also work on what irtool can't read.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from functools import lru_cache
from random import Random

Dump = str
Mutation = Callable[[Random, Dump], Dump]

_STRATEGY = re.compile(r"(?<=in_strategy: )\(\(.*?\)\)(?=[,}])|(?<=out_strategy: )\(\(.*?\)\)")
_ROW = re.compile(r"\(\d+(?:, \d+)*(?:, )?\)")
_STATEMENT = re.compile(r"^ {2}%\d+\(.*?$(?:\n {6}.*$)*", re.MULTILINE)
_CALL = re.compile(r"= (?P<op>[\w:.-]+|%\d+|@\w+)\((?P<operands>[^\n]*?)\)(?= |$)", re.MULTILINE)
_TYPE = re.compile(r"<(?:Ref\[)?Tensor\[[^<>\n]*?\), ?\([\d, -]*\)[^<>\n]*>|<Tensor\[[^<>\n]*>")
_SHAPE = re.compile(r"(?<=, )\((?:-?\d+(?:, -?\d+)*(?:, )?)?\)(?=[>,])")
_DTYPE = re.compile(r"(?<=\[)(?:Float|Int|UInt|BFloat|Bool|Complex)\d*(?=\])")
_BLOCK = re.compile(
    r"(?P<kind>primitive_attrs|cnode_attrs|cnode_primal_attrs): \{(?P<inside>[^\n]*?)\}(?= |$)",
    re.MULTILINE,
)
_ENTRY = re.compile(r"(?P<key>\w+): (?P<value>[^,{}]*?(?:\([^{}\n]*?\))?)(?=, \w+: |$)")
_GRAPH = re.compile(
    r"^(?:subgraph attr:\n(?:.*\n)*?)?^subgraph [^\n]*\{\n(?:.*\n)*?^\}\n?", re.MULTILINE
)
_PARAMETER = re.compile(r"%para\d+_[\w.-]+")
_GROUP = re.compile(
    r"(?<=group: \")[^\"]*(?=\")|(?<=rank_list: )\([^)\n]*\)|(?<=rank_ids: )\([^)\n]*\)"
    r"|(?<=rank_size: I64\()\d+"
)
_NUMBER_ATTRIBUTE = re.compile(
    r"(?P<key>\b(?:fusion|micro|stage|chunk|seg|segment|index|sr_tag|src_rank|dest_rank|root_rank"
    r"|split_dim|concat_dim|split_count|group_size|recompute_id|gather_dim|order|unique_id"
    r"|forward_unique_id|primal_attr)\w*): (?P<value>[^,}\n]*)"
)

NUMBERS = (
    "0",
    "-1",
    "1",
    "2",
    "3",
    "5",
    "7",
    "8",
    "64",
    "100003",
    "4294967296",
    "9" * 19,
    "1" * 40,
)
_STRATEGY_NUMBERS = ("0", "-1", "1", "1", "2", "2", "3", "4", "8", "16", "4096", "9" * 25)
_DTYPES = (
    "Float16", "BFloat16", "Float64", "Int8", "UInt1", "Bool", "Complex64", "Int4", "Float8E4M3FN",
    "String", "Unknown", "",
)  # fmt: skip
_WHOLE_TYPES = (
    "<null>", "<Func>", "<UMonad, NoShape>", "<Tuple[], TupleShape()>", "<Int64, NoShape>",
    "<Tensor[Float32], ()>", "<Tensor[Float32], (-1, -1)>", "<Tensor[Float32], (-2)>",
    "<Tensor[Float32], (0, 4)>", "<Tuple[Tensor[Float32]*3], TupleShape((2, 2), (4), ())>",
    "<Tuple[Int64*300000000], TupleShape(NoShape)>", "<SequenceTensor, ()>", "<Problem>",
    "<List[Tensor[Float32]*2], ListShape((2, 2), (2, 2))>", "<Dictionary[a, b], NoShape>",
    "<Ref[Tensor[Float16]], (7, 5, 3), ref_key=x, is_parameter>", "<>",
    "<Tensor[Float32], NoShape>",
)  # fmt: skip
_VALUES = (
    "I64(0)", "I64(-1)", "I64(99999999999999)", "Bool(1)", '"text"', "\"\"", "None", "F32(nan)",
    "F32(inf)", "(I64(1), I64(1))", "[I64(2)]", "()", "((I64(1), I64(2)), ())",
    "(I64(0), I64(0), I64(0), I64(0))", "{(\"a\": I64(1))}", "<null>",
    "Tensor(shape=[], dtype=Float32, value=1)", "I64(" + "9" * 30 + ")",
)  # fmt: skip
_OPERANDS = (
    "I64(0)", "I64(-7)", "None", "(I64(1), I64(2))", "[]", "()", "%999999", "%0", '"sum"',
    "Bool(1)",
    "F32(1)", "$(@nowhere:%3)", "@nowhere", "%para1_x", "(%0, %1)",
    "(I64(-1), I64(0), I64(99999999999))",
    "Tensor(shape=[2], dtype=Int64, value=[1 2])", "U", "(None, None)",
)  # fmt: skip
_USUAL_SIZES = ("8", "16", "64", "1", "7", "-1")
_RANK_LISTS = ("(0)", "()", "(0, 0)", "(3, 1, 2)", "(0, 99999999999)", "(-1, 0)", "None")
_ATTRIBUTE_NAMES = (
    "transpose_a", "transpose_b", "axis", "dim", "keep_dims", "kernel_size", "stride", "pad",
    "pad_list",
    "pad_mode", "dilation", "group", "mode", "format", "strides", "begin_mask", "end_mask",
    "input_layout", "head_num", "reduction", "num_segments", "depth", "perm", "shape", "size",
    "self_define_shard", "recompute", "fusion", "in_layout", "out_layout", "strategy_gen_mode",
    "stage", "micro", "forward_unique_id", "unique_id", "related_comm_node_id", "sparse_mode",
    "group_list_type", "split_dim", "output_num", "ceil_mode", "batch_dims",
)  # fmt: skip


@lru_cache(maxsize=1)
def operator_names() -> tuple[str, ...]:
    """Operators that irtool knows something of, and some that it doesn't."""
    from irtool.operators.table import operators

    others = (
        "Conv2D",
        "AvgPool",
        "Depend",
        "MakeTuple",
        "TupleGetItem",
        "Return",
        "Load",
        "UpdateState",
        "Switch",
        "Partial",
        "AllReduce",
        "AllGather",
        "ReduceScatter",
        "Send",
        "Receive",
        "AlltoAll",
        "Broadcast",
        "_VirtualDataset",
        "_MirrorOperator",
        "Momentum",
        "AdamWeightDecay",
        "Nobody",
        "Cast",
        "Reshape",
        "StridedSlice",
        "MatMulGrad",
        "Conv2DBackpropInput",
        "LayerNormGrad",
        "FlashAttentionScoreGrad",
        "call",
        "S_Prim_x",
        "DoSignature::S-Prim-add",
    )
    return (*operators(), *others)


def _spans(pattern: re.Pattern[str], text: str) -> list[tuple[int, int]]:
    return [found.span() for found in pattern.finditer(text)]


_few_spans = lru_cache(maxsize=256)(_spans)
"""Of texts that come again: the unchanged inputs of many cases."""
_SHORT = 100_000
"""Characters of a text up to which its places are kept."""


def _edit(
    random: Random,
    text: str,
    pattern: re.Pattern[str],
    change: Callable[[str], str],
    counts: Sequence[int] = (1, 1, 2, 6),
) -> str:
    """Replace some of the places where a pattern is found."""
    spans = (_few_spans if len(text) < _SHORT else _spans)(pattern, text)
    chosen = random.sample(spans, min(len(spans), random.choice(counts)))
    for start, end in sorted(chosen, reverse=True):
        text = text[:start] + change(text[start:end]) + text[end:]
    return text


def _row(random: Random, length: int) -> str:
    return "(" + ", ".join(random.choice(_STRATEGY_NUMBERS) for _ in range(length)) + ")"


def strategies(random: Random, text: Dump) -> Dump:
    """Strategies with zeros, negative and huge numbers, and of a wrong length."""

    def change(old: str) -> str:
        rows = _ROW.findall(old) or ["(1)"]
        kind = random.randrange(7)
        if kind < 3:
            rows = [_row(random, row.count(",") + 1) for row in rows]
        elif kind == 3:
            rows = [_row(random, random.randrange(7)) for _ in rows]
        elif kind == 4:
            rows = rows[random.randrange(len(rows)) :][: random.randrange(len(rows) + 1)]
        elif kind == 5:
            rows += [_row(random, random.randrange(5)) for _ in range(random.choice((1, 2, 50)))]
        else:
            return random.choice(("()", "((), ())", "None", "((((1))))", '"x"', "(((1, 2), 3), 4)"))
        return f"({', '.join(rows)})"

    if random.random() < 0.15:
        number = random.choice(("0", "-1", "9" * 12))
        return re.sub(r"(in_strategy: \(\()\d+", rf"\g<1>{number}", text)
    return _edit(random, text, _STRATEGY, change, (1, 1, 3, 10))


def _operands_of(inside: str) -> list[str]:
    return re.split(r", (?![^()]*\))", inside) if inside else []


def operands(random: Random, text: Dump) -> Dump:
    """Operands removed, added, reordered, and replaced by others."""

    def change(old: str) -> str:
        found = _CALL.match(old)
        if found is None:
            return old
        values = _operands_of(found["operands"])
        kind = random.randrange(6)
        if kind == 0 and values:
            del values[random.randrange(len(values))]
        elif kind == 1:
            values.insert(random.randrange(len(values) + 1), random.choice(_OPERANDS))
        elif kind == 2:
            random.shuffle(values)
        elif kind == 3 and values:
            values[random.randrange(len(values))] = random.choice(_OPERANDS)
        elif kind == 4:
            values = []
        else:
            values = values * random.choice((2, 3, 60))
        return f"= {found['op']}({', '.join(values)})"

    return _edit(random, text, _CALL, change)


def shapes(random: Random, text: Dump) -> Dump:
    """Other ranks, sizes that are zero, negative or huge."""

    def change(old: str) -> str:
        sizes = [size for size in old[1:-1].split(", ") if size]
        kind = random.randrange(5)
        if kind == 0:
            sizes = sizes[:-1]
        elif kind == 1:
            sizes = [*sizes, random.choice(NUMBERS)]
        elif kind == 2 and sizes:
            sizes[random.randrange(len(sizes))] = random.choice(NUMBERS)
        elif kind == 3:
            sizes = [random.choice(NUMBERS) for _ in range(random.choice((0, 1, 3, 5, 9)))]
        else:
            random.shuffle(sizes)
        return f"({', '.join(sizes)})"

    return _edit(random, text, _SHAPE, change, (1, 2, 6, 30))


def types(random: Random, text: Dump) -> Dump:
    """Other data types, and types that are no tensors at all."""
    if random.random() < 0.4:
        return _edit(random, text, _DTYPE, lambda _: random.choice(_DTYPES), (1, 4, 20))
    return _edit(random, text, _TYPE, lambda _: random.choice(_WHOLE_TYPES), (1, 2, 6))


def signatures(random: Random, text: Dump) -> Dump:
    """Type lines dropped, cut, or taken from another statement."""
    pattern = re.compile(r"^ {6}: \(.*$", re.MULTILINE)
    spans = _few_spans(pattern, text)
    lines = [text[start:end] for start, end in spans[:400]] or [""]

    def change(old: str) -> str:
        kind = random.randrange(4)
        if kind == 0:
            return random.choice(lines)
        if kind == 1:
            return ""
        if kind == 2:
            return old.partition(" -> ")[0]
        return re.sub(r"<[^<>]*>, ", "", old, count=1)

    return _edit(random, text, pattern, change)


def attributes(random: Random, text: Dump) -> Dump:
    """Attributes removed, given other types of values, added, or named twice."""

    def change(old: str) -> str:
        found = _BLOCK.match(old)
        if found is None:
            return old
        entries = [entry.group() for entry in _ENTRY.finditer(found["inside"])]
        kind = random.randrange(5)
        if kind == 0 and entries:
            del entries[random.randrange(len(entries))]
        elif kind == 1 and entries:
            place = random.randrange(len(entries))
            entries[place] = f"{entries[place].partition(':')[0]}: {random.choice(_VALUES)}"
        elif kind == 2:
            entries.append(f"{random.choice(_ATTRIBUTE_NAMES)}: {random.choice(_VALUES)}")
        elif kind == 3:
            entries += entries
        else:
            entries = [f"{entry.partition(':')[0]}: {random.choice(_VALUES)}" for entry in entries]
        return f"{found['kind']}: {{{', '.join(entries)}}}"

    return _edit(random, text, _BLOCK, change, (1, 2, 5))


def swapped_operators(random: Random, text: Dump) -> Dump:
    """Other operators in the place of those that are there, with the same inputs and strategy."""
    names = operator_names()
    pattern = re.compile(
        r"(?<= = PrimFunc_)\w+(?=\()|(?<= = )(?!PrimFunc_|Return|call)[A-Z_]\w+(?=\()"
    )
    blocks = re.compile(r"(?<=primitive_attrs: \{)(?=\w)")
    text = _edit(random, text, pattern, lambda _: random.choice(names), (1, 1, 3, 12, 60))
    if random.random() < 0.5:

        def added(_: str) -> str:
            return f"{random.choice(_ATTRIBUTE_NAMES)}: {random.choice(_VALUES)}, "

        text = _edit(random, text, blocks, added, (1, 5, 30))
    return text


def one_operator(random: Random, text: Dump) -> Dump:
    """Every sharded operator becomes one and the same other, with inputs of chance shapes."""
    name = random.choice(operator_names())
    rank = random.choice((0, 1, 2, 3, 4, 5))
    text = re.sub(r"(?<= = PrimFunc_)\w+(?=\([^\n]*in_strategy)", name, text)
    if random.random() < 0.7:
        shape = ", ".join(random.choice(_USUAL_SIZES) for _ in range(rank))
        text = _edit(random, text, _SHAPE, lambda _: f"({shape})", (20, 100))
    if random.random() < 0.7:
        row = f"({', '.join(random.choice(('1', '1', '2', '8')) for _ in range(rank))})"
        whole = f"({', '.join([row] * random.choice((1, 1, 2, 2, 3, 4)))})"
        text = _edit(random, text, _STRATEGY, lambda _: whole, (5, 100))
    if random.random() < 0.5:
        given = f"{random.choice(_ATTRIBUTE_NAMES)}: {random.choice(_VALUES)}, "
        text = text.replace("primitive_attrs: {", "primitive_attrs: {" + given)
    return text


def statements(random: Random, text: Dump) -> Dump:
    """Statements dropped, doubled, and reordered."""
    spans = _few_spans(_STATEMENT, text)
    if not spans:
        return text
    kind = random.randrange(4)
    start, end = random.choice(spans)
    other_start, other_end = random.choice(spans)
    if kind == 0:
        return text[:start] + text[end + 1 :]
    if kind == 1:
        return text[:end] + "\n" + text[other_start:other_end] + text[end:]
    if kind == 2:
        body = [text[one:other] for one, other in spans]
        random.shuffle(body)
        pieces, last = [], 0
        for (one, other), statement in zip(spans, body, strict=True):
            pieces += [text[last:one], statement]
            last = other
        return "".join(pieces) + text[last:]
    if end <= other_start:
        first, second = text[start:end], text[other_start:other_end]
        return text[:start] + second + text[end:other_start] + first + text[other_end:]
    return text[:start] + text[end + 1 :]


def graphs(random: Random, text: Dump) -> Dump:
    """Graphs reordered, dropped, doubled, and called by other names."""
    spans = _few_spans(_GRAPH, text)
    if not spans:
        return text
    kind = random.randrange(4)
    bodies = [text[start:end] for start, end in spans]
    if kind == 0:
        random.shuffle(bodies)
    elif kind == 1:
        del bodies[random.randrange(len(bodies))]
    elif kind == 2:
        bodies.append(random.choice(bodies))
    else:
        names = re.findall(r"^subgraph @(\S+?)(?: |\()", text, re.MULTILINE)
        if names:
            one, other = random.choice(names), random.choice([*names, "nowhere"])
            places = [found.start() for found in re.finditer(re.escape("@" + one), text)]
            for place in sorted(random.sample(places, min(len(places), 2)), reverse=True):
                text = f"{text[:place]}@{other}{text[place + 1 + len(one) :]}"
        return text
    return text[: spans[0][0]] + "\n".join(bodies) + text[spans[-1][1] :]


def calls(random: Random, text: Dump) -> Dump:
    """Calls of graphs that call themselves, of graphs that are not there, and of values."""
    names = re.findall(r"^subgraph @(\S+?)(?: |\()", text, re.MULTILINE) or ["nowhere"]
    kind = random.randrange(3)
    callee = f"@{random.choice(names)}" if kind else random.choice(("@gone", "%0", "%1", "None"))

    def change(old: str) -> str:
        found = _CALL.match(old)
        return f"= call {callee}({found['operands']})" if found else old

    if kind == 2:

        def change(old: str) -> str:  # a value that refers to another graph's, or to itself
            return f"$({callee}:{random.choice(('%0', '%1', '%7', 'para1_x', old))})"

        return _edit(random, text, re.compile(r"(?<=[(, ])%\d+(?=[,)])"), change)
    return _edit(random, text, _CALL, change, (1, 1, 2))


def groups(random: Random, text: Dump) -> Dump:
    """Groups, rank lists and the numbers of communications: absurd ones."""

    def change(old: str) -> str:
        if old.startswith("("):
            return random.choice(_RANK_LISTS)
        if old.isdigit():
            return random.choice(NUMBERS)
        return random.choice(
            ("", "hccl_world_group", "99999999-1234", "8-", "2-\\x1b[1m", "a" * 300)
        )

    def number(old: str) -> str:
        return f"{old.partition(':')[0]}: {random.choice(_VALUES)}"

    pattern = random.choice((_GROUP, _NUMBER_ATTRIBUTE))
    return _edit(random, text, pattern, change if pattern is _GROUP else number, (1, 2, 8))


def parameters(random: Random, text: Dump) -> Dump:
    """Parameters renamed, everywhere or in one place only."""
    names = sorted(set(_PARAMETER.findall(text)))
    if not names:
        return text
    old = random.choice(names)
    new = random.choice(
        (
            random.choice(names),
            old + "_",
            "%para1_",
            "%para9_a b",
            "%para7_<b>&\"'",
            "%para99999999999999999999_x",
        )
    )
    if random.random() < 0.5:
        return text.replace(old, new)
    return text.replace(old, new, 1)


def headers(random: Random, text: Dump) -> Dump:
    """What stands before the graphs: entry, counts, attributes of the graph."""
    lines = text.split("\n")
    end = min(len(lines), 40)
    for _ in range(random.choice((1, 2, 5))):
        place = random.randrange(end)
        kind = random.randrange(3)
        if kind == 0:
            lines[place] = re.sub(r"\d+", random.choice(NUMBERS), lines[place])
        elif kind == 1:
            lines[place] = lines[place].partition(":")[0] + ": " + random.choice(_VALUES)
        else:
            lines[place] = ""
    return "\n".join(lines)


def scopes(random: Random, text: Dump) -> Dump:
    """Scopes and source lines: deep, empty, full of signs."""
    pattern = re.compile(
        r"(?<=# Scope: \()[^)\n]*(?=\))|(?<=# In file )[^\n]*|(?<=instance name: )[^}]*"
    )
    deep = "/".join(["a"] * 3000)
    pool = (
        "",
        "/",
        "//",
        "Default/<script>alert(1)</script>",
        deep,
        "Default/\x1b[2J",
        "x" * 5000,
        "]]>&\x00",
    )
    return _edit(random, text, pattern, lambda _: random.choice(pool), (1, 3, 40))


MUTATIONS: dict[str, Mutation] = {
    "strategies": strategies,
    "operands": operands,
    "shapes": shapes,
    "types": types,
    "signatures": signatures,
    "attributes": attributes,
    "swapped operators": swapped_operators,
    "one operator": one_operator,
    "statements": statements,
    "graphs": graphs,
    "calls": calls,
    "groups": groups,
    "parameters": parameters,
    "headers": headers,
    "scopes": scopes,
}
"""By the name that they are counted under."""


def enlarged(text: Dump, size: int) -> Dump:
    """The dump with the statements of its longest graph repeated until it has ``size`` bytes.

    A copy reads what its original reads, with the statements' own results renumbered.
    """
    found = max(_GRAPH.finditer(text), key=lambda found: len(found.group()), default=None)
    if found is None:
        return text
    body = found.group()
    spans = [match.span() for match in _STATEMENT.finditer(body)]
    spans = [span for span in spans if "Return(" not in body[slice(*span)]]
    if not spans:
        return text
    block = "\n".join(body[start:end] for start, end in spans) + "\n"
    numbers = [int(number) for number in re.findall(r"^ {2}%(\d+)\(", block, re.MULTILINE)]
    if not numbers:
        return text
    own, shift = set(numbers), max(numbers) + 1
    copies: list[str] = []
    for copy in range(1, max(2, (size - len(text)) // max(len(block), 1) + 2)):
        added = copy * shift

        def moved(match: re.Match[str], added: int = added) -> str:
            number = int(match[1])
            return f"%{number + added}" if number in own else match[0]

        copies.append(re.sub(r"%(\d+)(?=[(,)])", moved, block))
    last = found.start() + spans[-1][1] + 1
    return text[:last] + "".join(copies) + text[last:]
