# ruff: noqa: E501
# a case, or a strategy, a line
"""What is planted in which run: a name, the task that should find it, and what the cause says."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any


def _usual(network: Any, asked: dict[str, Any]) -> Any:
    return network.build(asked)


@dataclass(frozen=True)
class Case:
    """One run folder.

    Attributes:
        name: of the folder.
        task: of ``irtool doctor`` that has to come first; empty for a healthy run.
        words: regular expressions that the first cause has to match, all of them.
        network: settings of ``network.build`` on every rank.
        odd: by rank, what is different there.
        odd_ranks: who left the common script, where anybody did.
        ranks: whose dumps there are; all of them if empty.
        ended: by rank, what ends it: ``killed:start`` or ``killed:`` and the pass after whose dump it
            dies, ``disk:`` and the bytes after which no file grows.
        executed: what to train on processes of this machine, instead of compiling alone.
        against: the other side, trained too.
        line: of the source, that the first finding has to name; 0: any.
        edit: what the first finding's edit has to match; empty: any, or none.
        since: what its step or pass has to match.
    """

    name: str
    task: str = ""
    words: tuple[str, ...] = ()
    devices: int = 4
    network: dict[str, Any] = field(default_factory=dict)
    odd: dict[int, dict[str, Any]] = field(default_factory=dict)
    odd_ranks: tuple[int, ...] = ()
    settings: dict[str, Any] = field(default_factory=dict)
    odd_settings: dict[int, dict[str, Any]] = field(default_factory=dict)
    environment: dict[int | None, dict[str, str]] = field(default_factory=dict)
    ranks: tuple[int, ...] = ()
    all_passes: bool = False
    logged: bool = False
    ended: dict[int, str] = field(default_factory=dict)
    executed: dict[str, Any] = field(default_factory=dict)
    against: dict[str, Any] = field(default_factory=dict)
    line: int = 0
    edit: str = ""
    since: str = ""
    build: Callable[[Any, dict[str, Any]], Any] = _usual

    @property
    def compiled(self) -> tuple[int, ...]:
        return self.ranks or tuple(range(self.devices))

    def truth(self) -> dict[str, Any]:
        """What a judge of the answers is told."""
        return {
            "task": self.task, "words": self.words, "odd_ranks": self.odd_ranks, "line": self.line,
            "edit": self.edit, "since": self.since,
            "network": self.network, "odd": self.odd, "ended": self.ended,
            "executed": self.executed, "settings": self.settings, "devices": self.devices,
        }  # fmt: skip


_PIPE = {"stages": 2, "micro": 4, "layers": 2, "dp": 2, "tp": 1}

HANGS = [
    Case(
        "hang_strategy",
        "hang",
        ("rank 1",),
        odd={1: {"layer": {0: {"down": ((2, 1), (2, 1))}}}},
        odd_ranks=(1,),
    ),
    Case(
        "hang_strategy_late",
        "hang",
        ("rank 3",),
        network={"layers": 3},
        odd={3: {"layer": {2: {"attention_dp": 4, "attention_tp": 1}}}},
        odd_ranks=(3,),
    ),
    Case(
        "hang_softmax",
        "hang",
        ("rank 2",),
        odd={2: {"layer": {1: {"softmax": ((2, 1, 2, 1),)}}}},
        odd_ranks=(2,),
    ),
    Case("hang_layer_more", "hang", ("rank 0",), odd={0: {"layers": 3}}, odd_ranks=(0,)),
    Case(
        "hang_layer_less",
        "hang",
        ("rank 2",),
        network={"layers": 3},
        odd={2: {"layers": 2}},
        odd_ranks=(2,),
    ),
    Case(
        "hang_reduction",
        "hang",
        ("rank 3", "max|sum"),
        network={"shift": "sum"},
        odd={3: {"shift": "max"}},
        odd_ranks=(3,),
    ),
    Case("hang_group", "hang", ("rank 2", "group"), odd={2: {"dp": 4, "tp": 1}}, odd_ranks=(2,)),
    Case("hang_size", "hang", ("rank 1",), odd={1: {"batch": 16}}, odd_ranks=(1,)),
    Case("hang_inner", "hang", ("rank 0",), odd={0: {"hidden": 128}}, odd_ranks=(0,)),
    Case("hang_half", "hang", ("rank 2",), odd={2: {"half": True}}, odd_ranks=(2,)),
    Case("hang_micro", "hang", ("micro",), network=_PIPE, odd={1: {"micro": 3}}, odd_ranks=(1,)),
    Case(
        "hang_micro_stage",
        "hang",
        ("micro",),
        network=_PIPE,
        odd={2: {"micro": 6}, 3: {"micro": 6}},
        odd_ranks=(2, 3),
    ),
    Case(
        "hang_pipe_strategy",
        "hang",
        ("rank 3",),
        network={**_PIPE, "dp": 1, "tp": 2},
        odd={3: {"layer": {1: {"down": ((1, 1), (2, 1))}}}},
        odd_ranks=(3,),
    ),
    Case(
        "hang_pipe_layer",
        "hang",
        ("rank 0",),
        network={**_PIPE, "layers": 4, "dp": 1, "tp": 2},
        odd={0: {"split_of_stage": (0, 0, 0, 1)}},
        odd_ranks=(0,),
    ),
    Case(
        "hang_optimizer",
        "hang",
        ("rank 1",),
        settings={
            "enable_parallel_optimizer": True,
            "parallel_optimizer_config": {"parallel_optimizer_threshold": 0},
        },
        odd_settings={1: {"enable_parallel_optimizer": False}},
        odd_ranks=(1,),
    ),
    Case(
        "hang_two_of_eight",
        "hang",
        ("rank",),
        devices=8,
        network={"dp": 4},
        odd={
            2: {"layer": {0: {"up": ((4, 1), (1, 1)), "flat_up": ((4, 1),)}}},
            5: {"layer": {0: {"up": ((4, 1), (1, 1)), "flat_up": ((4, 1),)}}},
        },
        odd_ranks=(2, 5),
    ),
    Case(
        "hang_fusion_mean",
        "hang",
        ("rank 3",),
        network={"layers": 2},
        odd={3: {"recompute": (0,)}},
        odd_ranks=(3,),
    ),
]

_TWO = {"dp": 1, "tp": 2, "layers": 3}
"""Two devices: few compilations a case."""

REDISTRIBUTIONS = [
    Case(
        "redistribution_down",
        "redistribution|strategy",
        ("MatMul",),
        2,
        {**_TWO, "layer": {1: {"down": ((1, 1), (2, 1))}}},
    ),
    Case(
        "redistribution_up",
        "redistribution|strategy",
        ("MatMul",),
        2,
        {**_TWO, "layer": {2: {"up": ((1, 2), (1, 2))}}},
    ),
    Case(
        "redistribution_softmax",
        "redistribution",
        ("Softmax",),
        2,
        {**_TWO, "softmax": ((1, 1, 2, 1),)},
    ),
    Case(
        "redistribution_softmax_one",
        "redistribution",
        ("Softmax",),
        2,
        {**_TWO, "layer": {0: {"softmax": ((1, 1, 2, 1),)}}},
    ),
    Case(
        "redistribution_transpose",
        "redistribution",
        ("Transpose",),
        2,
        {**_TWO, "layer": {1: {"transpose": ((1, 2, 1, 1),)}}},
    ),
    Case("redistribution_relu", "redistribution", ("ReLU",), 2, {**_TWO, "flat_up": ((2, 1),)}),
    Case(
        "redistribution_cast",
        "redistribution",
        ("Softmax|Cast",),
        2,
        {**_TWO, "half": True, "softmax": ((1, 1, 2, 1),)},
    ),
]

REFUSED = [
    Case(
        "refused_contracted",
        "strategy|compile-failure",
        ("MatMul",),
        2,
        {**_TWO, "layer": {1: {"down": ((1, 2), (1, 1))}}},
    ),
    Case(
        "refused_softmax",
        "strategy|compile-failure",
        ("Softmax",),
        2,
        {**_TWO, "softmax": ((1, 1, 1, 2),)},
    ),
    Case(
        "refused_norm",
        "strategy|compile-failure",
        ("LayerNorm",),
        2,
        {**_TWO, "norm_strategy": ((1, 2), (2,), (2,))},
    ),
    Case(
        "refused_division",
        "strategy|compile-failure",
        ("MatMul",),
        2,
        {**_TWO, "inner": 129, "up": ((1, 1), (2, 1))},
    ),
    Case(
        "refused_logged",
        "strategy|compile-failure",
        ("MatMul",),
        2,
        {**_TWO, "layer": {1: {"down": ((1, 2), (1, 1))}}},
        logged=True,
    ),
    Case(
        "refused_devices",
        "strategy|compile-failure",
        ("",),
        2,
        {**_TWO, "up": ((1, 1), (4, 1))},
        logged=True,
    ),
]

RECOMPUTE = [
    Case(
        "recompute_lost",
        "recompute",
        ("layers.2",),
        2,
        {**_TWO, "layers": 4, "recompute": (0, 1, 3)},
    ),
    Case(
        "recompute_half", "recompute", ("layers.2",), 2, {**_TWO, "layers": 4, "recompute": (0, 1)}
    ),
    Case(
        "recompute_first", "recompute", ("layers.0",), 2, {**_TWO, "layers": 3, "recompute": (1, 2)}
    ),
]

BALANCE = [
    Case(
        "balance_front",
        "stage-balance",
        ("stage 0",),
        2,
        {
            "stages": 2,
            "micro": 4,
            "layers": 6,
            "dp": 1,
            "tp": 1,
            "hidden": 256,
            "inner": 1024,
            "split_of_stage": (0, 0, 0, 0, 0, 1),
        },
    ),
    Case(
        "balance_back",
        "stage-balance",
        ("stage 1",),
        2,
        {
            "stages": 2,
            "micro": 4,
            "layers": 6,
            "dp": 1,
            "tp": 1,
            "hidden": 256,
            "inner": 1024,
            "split_of_stage": (0, 1, 1, 1, 1, 1),
        },
    ),
]

COMPILE = [
    Case(
        "compile_unrolled",
        "slow-compile",
        ("loop|unrolled",),
        1,
        {"dp": 1, "tp": 1, "layers": 2, "unroll": 40},
    ),
    Case(
        "compile_no_lazy",
        "slow-compile",
        ("lazy_inline",),
        2,
        {"stages": 2, "micro": 12, "layers": 12, "dp": 1, "tp": 1},
        ranks=(0, 1),
    ),
    Case(
        "compile_all_passes",
        "slow-compile",
        ("loop|unrolled",),
        1,
        {"dp": 1, "tp": 1, "layers": 1, "unroll": 60},
        all_passes=True,
    ),
]

MEMORY = [
    Case(
        "memory_weights",
        "memory",
        ("GiB",),
        2,
        {**_TWO, "hidden": 16384, "inner": 65536, "heads": 128, "optimizer": "adam"},
    ),
    Case(
        "memory_activations",
        "memory",
        ("GiB",),
        2,
        {**_TWO, "hidden": 4096, "inner": 16384, "heads": 32, "batch": 64, "sequence": 4096},
    ),
]

HEALTHY = [
    Case("healthy_dp", devices=4, network={"dp": 4, "tp": 1}),
    Case("healthy_tp", devices=4, network={"dp": 1, "tp": 4}),
    Case("healthy_mix", devices=4),
    Case("healthy_eight", devices=8, network={"dp": 4, "tp": 2, "layers": 3}),
    Case("healthy_pipe", network=_PIPE),
    Case("healthy_pipe_tp", network={**_PIPE, "dp": 1, "tp": 2, "layers": 4}),
    Case("healthy_lazy", network={**_PIPE, "lazy_inline": True}),
    Case("healthy_gated", network={"gated": True}),
    Case(
        "healthy_optimizer",
        settings={
            "enable_parallel_optimizer": True,
            "parallel_optimizer_config": {"parallel_optimizer_threshold": 0},
        },
    ),
    Case("healthy_recompute", network={"recompute": (0, 1)}),
    Case("healthy_missing", ranks=(0, 1, 3)),
]


def _failing(kind: str) -> Callable[[Any, dict[str, Any]], Any]:
    return lambda network, asked: network.failing(kind)


FAILURES = [
    Case(
        "failure_types",
        "compile-failure",
        ("type|Float16",),
        1,
        build=_failing("types"),
        logged=True,
    ),
    Case(
        "failure_shapes",
        "compile-failure",
        ("MatMul|shape|dimension",),
        1,
        build=_failing("shapes"),
        logged=True,
    ),
    Case(
        "failure_attribute",
        "compile-failure",
        ("attribute|missing",),
        1,
        build=_failing("attribute"),
        logged=True,
    ),
    Case(
        "failure_concat",
        "compile-failure",
        ("Concat|shape",),
        1,
        build=_failing("concat"),
        logged=True,
    ),
    Case(
        "failure_unlogged",
        "compile-failure",
        ("MatMul|shape|dimension",),
        1,
        build=_failing("shapes"),
    ),
]

HEALTHY_TOO = [
    Case("healthy_two", devices=2, network=_TWO),
    Case("healthy_half", devices=2, network={**_TWO, "half": True}),
    Case("healthy_recompute_all", devices=2, network={**_TWO, "recompute": (0, 1, 2)}),
    Case("healthy_adam", devices=2, network={**_TWO, "optimizer": "adam"}),
    Case("healthy_dp2", devices=2, network={"dp": 2, "tp": 1, "layers": 3}),
    Case("healthy_one", devices=1, network={"dp": 1, "tp": 1, "layers": 3}),
    Case("healthy_logged", devices=2, network=_TWO, logged=True),
    Case("healthy_passes", devices=2, network=_TWO, all_passes=True),
    Case(
        "healthy_pipe_two",
        devices=2,
        network={"stages": 2, "micro": 4, "layers": 4, "dp": 1, "tp": 1},
    ),
]

FRESH = [
    Case(
        "fresh_redistribution_add",
        "redistribution",
        ("Add",),
        2,
        {**_TWO, "layer": {1: {"add": ((2, 1), (2, 1))}}},
    ),
    Case(
        "fresh_redistribution_norm",
        "redistribution",
        ("LayerNorm",),
        2,
        {"dp": 2, "tp": 1, "layers": 3, "layer": {1: {"norm_strategy": ((1, 1), (1,), (1,))}}},
    ),
    Case(
        "fresh_recompute_last",
        "recompute",
        ("layers.4",),
        2,
        {**_TWO, "layers": 5, "recompute": (0, 1, 2, 3)},
    ),
    Case(
        "fresh_hang_transpose",
        "hang",
        ("rank 0",),
        4,
        {"layers": 2},
        {0: {"layer": {1: {"transpose": ((2, 1, 1, 1),)}}}},
        (0,),
    ),
    Case("fresh_hang_unroll", "hang", ("rank 3",), 4, {"layers": 2}, {3: {"unroll": 2}}, (3,)),
    Case("fresh_hang_adam", "hang", ("rank 2",), 4, {"layers": 1}, {2: {"recompute": (0,)}}, (2,)),
    Case(
        "fresh_refused_gather",
        "strategy|compile-failure",
        ("Gather",),
        2,
        {**_TWO, "gather": ((3, 1), (1,))},
    ),
    Case("fresh_healthy_sum", devices=2, network={**_TWO, "reduction": "sum"}),
    Case("fresh_healthy_wide", devices=2, network={**_TWO, "inner": 256, "heads": 4}),
]

CASES = [
    *HANGS, *HEALTHY, *HEALTHY_TOO, *REDISTRIBUTIONS, *REFUSED, *RECOMPUTE, *BALANCE, *COMPILE,
    *MEMORY, *FAILURES, *FRESH,
]  # fmt: skip
