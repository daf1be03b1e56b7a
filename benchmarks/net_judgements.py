"""What is said of every operator under many strategies: a net under the table of operators.

    python benchmarks/net_judgements.py                # operators whose answers are not those kept
    python benchmarks/net_judgements.py --show MatMul  # all that is said of one, to compare
    python benchmarks/net_judgements.py --record       # keep the answers of now (net.py does, too)
    python benchmarks/net_judgements.py --collect      # take the calls anew from the records

The calls are those of ``record_operators/records``, some of each operator.  MindSpore answered a
few strategies of each, and the tests replay that; here all small strategies are asked for, so that
no change to a rule goes unnoticed.  What is kept of a call is how many strategies are legal,
illegal and unknown, and a digest of everything that is said of them; and what the entry says
otherwise (what it computes, how many operations on some shapes, what its gradient reads), in words.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import lzma
import sys
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from itertools import combinations, product
from math import prod
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
if str(ROOT) not in sys.path:
    sys.path.append(str(ROOT))

from irtool.cluster.flops import flops_of  # noqa: E402 - found by the line above
from irtool.operators.axes import axes_of  # noqa: E402 - found by the line above
from irtool.operators.call import Operand, OperatorCall, Strategy  # noqa: E402
from irtool.operators.counting import Tensors  # noqa: E402
from irtool.operators.judgement import Context, Judgement  # noqa: E402
from irtool.operators.layout import UserLayout  # noqa: E402
from irtool.operators.table import entries, operator_of  # noqa: E402
from irtool.sharding.judge import judge  # noqa: E402

CALLS = ROOT / "tests" / "operators" / "calls.jsonl.xz"
KEPT = ROOT / "tests" / "net" / "judgements.tsv"
MOST_CALLS = 12
"""Calls that are taken of one operator."""
MOST = 48
"""Strategies that are asked of one call."""

ONE_STAGE = Context(tuple(range(8)), 8, rank=3, soc="Ascend910B")
SECOND_STAGE = Context(tuple(range(4, 8)), 8, rank=6)
"""Another stage, on the first generation."""
SEARCHING = Context(tuple(range(8)), 8, rank=0, soc="Ascend910B", searching=True, full_batch=True)


def strategies(call: OperatorCall) -> Iterator[Strategy]:
    """Strategies of a call: whole, each dimension cut by itself, every pair, some of four."""
    shapes = [operand.shape or () for operand in call.tensors]
    places = [(n, d) for n, shape in enumerate(shapes) for d in range(len(shape))]
    cuts: list[Mapping[tuple[int, int], int]] = [{}]
    cuts += [{place: 2} for place in places]
    alike = defaultdict[int, list[tuple[int, int]]](list)
    for n, d in places:
        alike[shapes[n][d]].append((n, d))
    cuts += [dict.fromkeys(same, 2) for same in alike.values()]
    cuts += [dict.fromkeys(((n, d) for n, d in places if d == at), 2) for at in range(4)]
    cuts += [dict.fromkeys(((n, d) for n, d in places if d == at), 4) for at in range(2)]
    cuts += [{place: cut} for place, cut in product(places[:3], (8, 3))]
    cuts += [dict.fromkeys(pair, 2) for pair in combinations(places, 2)]
    found = (
        tuple(tuple(cut.get((n, d), 1) for d in range(len(s))) for n, s in enumerate(shapes))
        for cut in cuts
    )
    for number, strategy in enumerate(dict.fromkeys(found)):
        if number < MOST:
            yield strategy


def layouts_of(call: OperatorCall, strategy: Strategy) -> list[UserLayout] | None:
    """The same cuts as layouts over one matrix, equal sizes along one axis; None if too many."""
    axes: dict[tuple[int, int], int] = {}
    maps: list[tuple[int, ...]] = []
    for operand, cuts in zip(call.tensors, strategy, strict=True):
        entries: list[int] = []
        for size, cut in zip(operand.shape or (), cuts, strict=True):
            entries.append(-1 if cut == 1 else axes.setdefault((size, cut), len(axes)))
        maps.append(tuple(entries))
    matrix = tuple(cut for _, cut in reversed(axes))
    if not matrix or 8 % prod(matrix):
        return None
    whole = (8 // prod(matrix), *matrix)
    names = tuple(f"a{n}" for n in range(len(whole)))
    return [UserLayout(whole, one, alias_name=names) for one in maps]


def told(found: Judgement) -> str:
    """All that is said, on one line."""
    if found.verdict != "legal":
        reasons = "; ".join(f"{r.code} [{r.check}] {r.message}" for r in found.reasons)
        return f"{found.verdict} {found.strategy} {reasons}"
    moved = [
        (c.op, c.ranks, c.reduce, c.output, c.input, c.shape, c.why) for c in found.collectives
    ]
    return (
        f"legal {found.strategy} {found.device_matrix} {found.input_maps} -> {found.output_maps}"
        f" slices {found.input_slices} -> {found.output_slices}"
        f" runs {found.raw_inputs} -> {found.raw_outputs} {moved} mirrors {found.mirrors}"
        f" repeats {found.repeats} loss {found.loss_divisor} parts {found.parts} {found.kind}"
        f" {found.replaced} {found.unsure} {found.generated}"
    )


def answers(call: OperatorCall) -> Iterator[str]:
    """What is said of a call, a line a question."""
    yield f"axes: {axes_of(call, ONE_STAGE)}"
    sizes = [[each.shape or () for each in operand.tensors] for operand in call.inputs]
    results = [operand.shape or () for operand in call.results]
    yield f"operations: {flops_of(call.op, Tensors(sizes, results, _argument_of(call)))}"
    for context in (ONE_STAGE, SECOND_STAGE, SEARCHING):
        yield told(judge(call, None, context))
    for number, strategy in enumerate(strategies(call)):
        yield told(judge(call, strategy, ONE_STAGE))
        if number < 8:
            yield told(judge(call, strategy, SECOND_STAGE))
            yield told(judge(call, strategy, SEARCHING))
        layouts = layouts_of(call, strategy) if number < 16 else None
        if layouts is not None:
            yield told(judge(call, strategy, ONE_STAGE, in_layout=layouts))
    for strategy in [*strategies(call)][1:6]:
        for result in [*strategies(OperatorCall("", call.results, ()))][1:3]:
            yield told(judge(call, strategy, ONE_STAGE, out_strategy=result))


SOME_SHAPES = Tensors(
    [[(4, 6, 8, 10)], [(12, 6, 3, 5)], [(6,)], [(4, 14)], [(2,)]],
    [(4, 12, 7, 9), (4, 3)],
    {"epsilon": 0.1, "hidden_size": 16}.get,
)
"""Of four, two and one dimensions, no two sizes equal by chance: what is counted shows."""


def facts(operator: str) -> str:
    """What the table says beside how an operator is sharded."""
    entry = operator_of(operator)
    search = entry.search
    said = {
        "family": entry.family,
        "computes": entry.computes,
        "operations": flops_of(operator, SOME_SHAPES),
        "gradient of": entry.gradient_of,
        "torch": " ".join(entry.torch),
        "modules": " ".join(entry.modules),
        "updates": entry.updates,
        "unwritten": entry.unwritten,
        "weights": entry.weights,
        "search": f"{search.kind} {search.fits} {search.gives}" if search else "",
        "propagates": entry.propagates,
        "gradients": None if entry.gradients is None
        else [(g.of, g.operands, g.results) for g in entry.gradients],
        "is": " ".join(sorted(entry.traits)),
    }  # fmt: skip
    return "; ".join(f"{word} {value}" for word, value in said.items() if value not in ("", ()))


def _argument_of(call: OperatorCall) -> Callable[[str | int], object]:
    """An attribute by its name, or a constant operand by its place."""

    def found(key: str | int) -> object:
        if isinstance(key, str):
            return call.attributes.get(key)
        return call.inputs[key].value if key < len(call.inputs) else None

    return found


# -- kept answers --------------------------------------------------------------------------------


@cache
def calls() -> dict[str, list[OperatorCall]]:
    """The calls that are asked of, by operator."""
    found = defaultdict[str, list[OperatorCall]](list)
    for line in lzma.decompress(CALLS.read_bytes()).decode().splitlines():
        call = _read_call(json.loads(line))
        found[call.op].append(call)
    return {name: found[name] for name in sorted({*found, *entries()})}


def kept_now(operator: str) -> list[str]:
    """What would be kept of an operator now: its facts, and a line a call."""
    lines: list[str] = [f"{operator}\t{facts(operator)}"]
    for number, call in enumerate(calls()[operator]):
        said = list(answers(call))
        counts = Counter(line.partition(" ")[0] for line in said)
        digest = hashlib.sha256("\n".join(said).encode("utf-8", "backslashreplace")).hexdigest()
        words = [f"{counts[word]} {word}" for word in ("legal", "illegal", "unknown")]
        lines.append("\t".join((operator, str(number), ", ".join(words), digest[:12])))
    return lines


def kept() -> dict[str, list[str]]:
    """What is kept, by operator."""
    found = defaultdict[str, list[str]](list)
    for line in KEPT.read_text(encoding="utf-8").splitlines():
        found[line.partition("\t")[0]].append(line)
    return dict(found)


def record() -> list[str]:
    """Keep the answers of now; the operators of which something else was kept."""
    before = kept() if KEPT.exists() else {}
    now = {operator: kept_now(operator) for operator in calls()}
    lines = [line for listed in now.values() for line in listed]
    KEPT.write_text("\n".join(lines) + "\n", encoding="utf-8", newline="\n")
    return sorted(name for name in {*before, *now} if before.get(name) != now.get(name))


# -- calls ---------------------------------------------------------------------------------------


def collect() -> None:
    """Take some calls of every operator from the records of what MindSpore made of them."""
    from benchmarks.replay_operators import is_judgeable, records

    chosen: dict[str, dict[str, Any]] = defaultdict(dict)
    for item in records():
        case = item["case"]
        if is_judgeable(item) and case["kind"] == "tuple" and case["phase"] == "train":
            chosen[case["operator"]].setdefault(case["form"], item)
    for item in records():
        case = item["case"]
        if is_judgeable(item) and len(chosen[case["operator"]]) < MOST_CALLS:
            chosen[case["operator"]].setdefault(case["form"], item)
    lines: dict[str, None] = {}
    for operator, forms in sorted(chosen.items()):
        every = list(forms.values())
        step = max(1, len(every) // MOST_CALLS)
        for item in every[::step][:MOST_CALLS]:
            call = _call_of(item, operator)
            written = _written_call(call) if call is not None else None
            if written is not None:
                lines[json.dumps(written, separators=(",", ":"))] = None
    packed = lzma.compress(("\n".join(lines) + "\n").encode(), preset=9 | lzma.PRESET_EXTREME)
    CALLS.write_bytes(packed)


def _call_of(item: Mapping[str, Any], operator: str) -> OperatorCall | None:
    import irtool
    from irtool.sharding.check import check
    from irtool.sharding.network.context import ParallelContext

    dump = irtool.load(item["begin"].encode("utf-8", "surrogateescape"))
    report = check(dump, ParallelContext(devices=item["case"]["devices"], full_batch=True))
    found = (each.call.call for each in report.operators if each.op == operator)
    return next(found, None)


def _written_call(call: OperatorCall) -> dict[str, Any] | None:
    try:
        entry = {
            "op": call.op,
            "inputs": [_written(operand) for operand in call.inputs],
            "outputs": [_written(operand) for operand in call.outputs],
            "attributes": {key: _plain(value) for key, value in call.attributes.items()},
        }
    except TypeError:
        return None
    return entry


def _written(operand: Operand) -> dict[str, Any]:
    entry = {name: _plain(getattr(operand, name)) for name in _FIELDS if getattr(operand, name)}
    if operand.shape is not None:
        entry["shape"] = list(operand.shape)
    if operand.is_constant:
        entry["value"] = _plain(operand.value)
    if operand.items:
        entry["items"] = [_written(item) for item in operand.items]
    return entry


_FIELDS = ("dtype", "is_constant", "is_parameter", "divisors", "symbols")


def _plain(value: Any) -> Any:
    if isinstance(value, tuple | list):
        return [_plain(item) for item in value]
    if value is None or isinstance(value, bool | int | float | str):
        return value
    raise TypeError(type(value))


def _read_call(entry: Mapping[str, Any]) -> OperatorCall:
    inputs, outputs = (tuple(map(_read, entry[key])) for key in ("inputs", "outputs"))
    attributes = {key: _tuples(value) for key, value in entry["attributes"].items()}
    return OperatorCall(entry["op"], inputs, outputs, attributes)


def _read(entry: Mapping[str, Any]) -> Operand:
    plain = {key: _tuples(value) for key, value in entry.items() if key != "items"}
    return Operand(**plain, items=tuple(map(_read, entry.get("items", ()))))


def _tuples(value: Any) -> Any:
    return tuple(map(_tuples, value)) if isinstance(value, list) else value


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--show", metavar="OPERATOR")
    parser.add_argument("--record", action="store_true")
    parser.add_argument("--collect", action="store_true")
    options = parser.parse_args()
    if options.show:
        print(facts(options.show))
        for number, call in enumerate(calls().get(options.show, ())):
            print(number, call, *answers(call), sep="\n")
        return 0
    if options.collect:
        collect()
    if options.record or options.collect:
        print("\n".join(record()))
        return 0
    before = kept()
    changed = [operator for operator in calls() if before.get(operator) != kept_now(operator)]
    print(*changed, sep="\n")
    return int(bool(changed))


if __name__ == "__main__":
    sys.exit(main())
