"""Networks that the tests of recovery lay out."""

from __future__ import annotations

import json
from pathlib import Path

import irtool
from irtool.ir.dump import Dump
from irtool.operators.call import Strategy
from irtool.planning.cost.holdings import Holdings, holdings
from irtool.planning.plans.annotate import with_strategies
from irtool.sharding.check import check
from irtool.sharding.network.context import ParallelContext

MIB = 1 << 20


def context_of(folder: Path, **options: object) -> ParallelContext:
    values = json.loads((folder / "case.json").read_text(encoding="utf-8"))["context"]
    return ParallelContext.from_mapping({**values, **options})


def chain_of(samples: Path) -> Dump:
    """Four products with 76 MiB of weights and momentum."""
    return irtool.load(samples / "mlp_grown/before/step_parallel_begin_0019.ir")


def with_layout(chain: Dump, data: int, tensor: int) -> Dump:
    """The chain with data × tensor parallelism: columns, then rows, in turn."""
    strategies: dict[object, Strategy] = {}
    products = 0
    for node in chain.nodes():
        if node.op == "MatMul":
            columns = ((data, 1), (1, tensor)), ((data, tensor), (tensor, 1))
            strategies[node] = columns[products % 2]
            products += 1
        elif node.op == "ReLU":
            strategies[node] = ((data, tensor if products % 2 else 1),)
        elif node.in_strategy is not None:
            strategies[node] = tuple((data, *[1] * (len(row) - 1)) for row in node.in_strategy)
    return with_strategies(chain, strategies)  # type: ignore[arg-type]  # nodes are its keys


def laid_out(chain: Dump, data: int, tensor: int) -> Holdings:
    """Who holds what of the chain, with data × tensor parallelism."""
    dump = with_layout(chain, data, tensor)
    context = ParallelContext(devices=data * tensor, full_batch=True)
    assert check(dump, context).accepted
    return holdings(dump, context)
