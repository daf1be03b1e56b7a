"""Whether bounds of plans are true: every strategy of small networks, written down and priced.

    python benchmarks/plan_enumerated.py [--seeds 1 20] [--devices 4] [--alltoall]

Nothing of the search is used: strategies are all tuples of divisors that ``check`` accepts for an
operator, with every ``out_strategy`` that it accepts; each combination is written into the dump,
and priced as ``irtool cost`` does. No combination may cost less than the bound of the plan.
"""

from __future__ import annotations

import argparse
import random
import sys
from collections.abc import Iterator, Sequence
from itertools import product
from math import inf, prod
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import irtool
from irtool.cluster.machine import Machine, default_machine
from irtool.ir.dump import Dump
from irtool.ir.graph import Node
from irtool.operators.call import Strategy
from irtool.planning.cost.structure import structure_of
from irtool.planning.plans.annotate import with_strategies
from irtool.planning.plans.plan import Plan, plan
from irtool.planning.plans.step.report import step_cost
from irtool.sharding.check import check
from irtool.sharding.network.context import ParallelContext

Both = tuple[Strategy, Strategy | None]
"""A strategy with its out_strategy."""
UNARY = ("ReLU", "Exp", "Neg", "Softmax")


def shape_text(shape: Sequence[int], dtype: str = "Float32") -> str:
    """A type as dumps print it."""
    return f"<Tensor[{dtype}], ({', '.join(map(str, shape))})>"


def network(draw: random.Random, count: int = 2) -> str:
    """A dump of a forward network: products with weights, and what stands between them."""
    sizes = (16, 256, 2048, 8192)
    rows, width = draw.choice(sizes), draw.choice(sizes)
    parameters = [f"%para1_x: {shape_text((rows, width))} : [{rows}, {width}]"]
    lines: list[str] = []
    last, shape = "%para1_x", (rows, width)
    for number in range(count):
        at, made = len(lines), f"%{len(lines)}"
        if draw.random() < 0.6:
            columns, name = draw.choice(sizes), f"%para{len(parameters) + 1}_w{number}"
            weight = (shape[1], columns)
            parameters.append(
                f"{name}: <Ref[Tensor[Float32]], {weight}, ref_key=w{number}, is_parameter>"
                "  :  has_default"
            )
            out = (shape[0], columns)
            lines.append(
                f"  {made}(a{at}) = PrimFunc_MatMul({last}, {name}, Bool(0), Bool(0)) "
                "{instance name: matmul} primitive_attrs: {}\n"
                f"      : ({shape_text(shape)}, <Ref[Tensor[Float32]], {weight}>, <Bool, NoShape>, "
                f"<Bool, NoShape>) -> ({shape_text(out)})"
            )
            last, shape = made, out
            continue
        op = draw.choice(UNARY)
        last_axis = ", (I64(-1))" if op == "Softmax" else ""
        more = ", <Tuple[Int64], TupleShape(NoShape)>" if op == "Softmax" else ""
        lines.append(
            f"  {made}(a{at}) = PrimFunc_{op}({last}{last_axis}) {{instance name: each}} "
            f"primitive_attrs: {{}}\n      : ({shape_text(shape)}{more}) -> ({shape_text(shape)})"
        )
        last = made
    body = "\n".join([*lines, f"  Return({last})\n      : ({shape_text(shape)})"])
    head = "\n".join(["", *parameters, "", "subgraph attr:", "subgraph instance: main : 0x1"])
    return f"{head}\nsubgraph @main() {{\n{body}\n}}\n"


def context_of(devices: int, *, alltoall: bool = False) -> ParallelContext:
    """The context that the networks are planned under."""
    return ParallelContext.from_mapping(
        {"devices": devices, "full_batch": True, "enable_alltoall": alltoall},
        mode="auto_parallel",
        search="sharding_propagation",
    )


def legal(dump: Dump, node: Node, context: ParallelContext) -> Iterator[Both]:
    """All strategies of one operator that ``check`` accepts, whatever others have."""
    report = check(dump, context)
    operator = report.by_node[node]
    ranks = [len(shape.shape or ()) for shape in operator.call.call.tensors]
    result = len(operator.call.call.results[0].shape or ())
    cuts = [n for n in range(1, context.devices + 1) if context.devices % n == 0]

    def is_legal(given: Strategy, out: Strategy | None) -> bool:
        outs = {} if out is None else {node: out}
        made = with_strategies(dump, {node: given}, outs)
        twin = list(made.nodes())[list(dump.nodes()).index(node)]
        return check(made, context).by_node[twin].verdict == "legal"

    for numbers in product(cuts, repeat=sum(ranks)):
        left = iter(numbers)
        rows = tuple(tuple(next(left) for _ in range(rank)) for rank in ranks)
        if any(prod(row) > context.devices for row in rows) or not is_legal(rows, None):
            continue
        yield rows, None
        for out in product(cuts, repeat=result) if node.op == "MatMul" else ():
            if prod(out) <= context.devices and is_legal(rows, (out,)):
                yield rows, (out,)


def cheapest(dump: Dump, context: ParallelContext, machine: Machine) -> tuple[float, int]:
    """Seconds of the cheapest of all combinations, and how many there are."""
    nodes = [item.node for item in check(dump, context).operators]
    ways = [list(legal(dump, node, context)) for node in nodes]
    least, count = inf, 0
    for chosen in product(*ways):
        strategies = {node: rows for node, (rows, _) in zip(nodes, chosen, strict=True)}
        outs = {n: out for n, (_, out) in zip(nodes, chosen, strict=True) if out is not None}
        made = with_strategies(dump, strategies, outs)
        report = check(made, context)
        if report.accepted is not True:
            continue
        count += 1
        least = min(least, step_cost(structure_of(made, context), report, machine).seconds)
    return least, count


def judged(
    seed: int, devices: int, *, alltoall: bool = False, count: int = 2
) -> tuple[Plan, float, int]:
    """A network of a seed: its plan, the cheapest of all combinations, and their number."""
    dump = irtool.loads(network(random.Random(seed), count))
    context, machine = context_of(devices, alltoall=alltoall), default_machine()
    return plan(dump, context, machine), *cheapest(dump, context, machine)


def main() -> int:
    """Compare plans with everything there is."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seeds", type=int, nargs=2, default=(1, 20), metavar=("FIRST", "LAST"))
    parser.add_argument("--devices", type=int, default=4)
    parser.add_argument("--operators", type=int, default=2)
    parser.add_argument("--alltoall", action="store_true")
    given = parser.parse_args()
    wrong = 0
    for seed in range(given.seeds[0], given.seeds[1] + 1):
        made, least, count = judged(
            seed, given.devices, alltoall=given.alltoall, count=given.operators
        )
        bound = made.lower_bound
        holds = bound is not None and bound <= least * (1 + 1e-9) and made.gap is not None
        best = made.after.seconds <= least * (1 + 1e-9)
        wrong += not (holds and best)
        print(
            f"seed {seed}: {count} combinations, the cheapest {1e6 * least:.3f} µs, planned "
            f"{1e6 * made.after.seconds:.3f} µs, bound {1e6 * (bound or 0):.3f} µs: "
            f"{'true' if holds and best else 'WRONG'}",
            flush=True,
        )
    print(f"{wrong} of {given.seeds[1] - given.seeds[0] + 1} are wrong")
    return int(wrong > 0)


if __name__ == "__main__":
    sys.exit(main())
