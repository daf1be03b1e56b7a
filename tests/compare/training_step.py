"""A training step of a small attention block in NumPy, recorded call by call as msprobe does.

Any call can be made wrong, forward or backward: everything behind it is computed from what it then
gives, as in a real run, so that the first wrong call is known.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tests.compare.dumps import Entry

Values = NDArray[Any]
Change = Callable[[Values], Values]
"""What is done to the first result of a call."""

TOKENS, WIDTH, WORDS = 12, 16, 24
EPSILON = 1e-5
"""What layer_norm takes without being told."""


def as_is(values: Values) -> Values:
    return values


@dataclass
class Call:
    """A call of the forward pass, and how its gradients come of that of its result."""

    name: str
    sources: Sequence[str]
    result: str
    gradients: Callable[[Values], Sequence[Values]]
    shown: Callable[..., Sequence[Values]]


def _in_order(*gradients: Values) -> Sequence[Values]:
    return gradients


@dataclass
class Step:
    """Values by name, and the calls that made them.

    Attributes:
        wrong: what is done to the results of calls, by their names in the dump.
        rounded: done to every result: another precision, another order of a sum.
        seed: of the weights and the batch.
    """

    wrong: Mapping[str, Change] = field(default_factory=dict[str, Change])
    rounded: Change = as_is
    seed: int = 0
    entries: list[Entry] = field(default_factory=list[Entry])
    values: dict[str, Values] = field(default_factory=dict[str, Values])
    calls: list[Call] = field(default_factory=list[Call])
    counts: dict[str, int] = field(default_factory=dict[str, int])

    def made(self, name: str, values: Values) -> Values:
        changed = self.wrong.get(name, as_is)(self.rounded(np.asarray(values, np.float32)))
        return np.asarray(changed, np.float32)

    def call(
        self,
        kind: str,
        sources: Sequence[str],
        compute: Callable[..., Values],
        gradients: Callable[[Values], Sequence[Values]],
        plain: Sequence[Any] = (),
        plain_at: int = -1,
        shown: Callable[..., Sequence[Values]] = _in_order,
    ) -> str:
        """One call; the name of its result.  ``plain`` stand at ``plain_at`` of its arguments."""
        number = self.counts.get(kind, 0)
        self.counts[kind] = number + 1
        name = f"{kind}.{number}"
        inputs = [self.values[source] for source in sources]
        self.values[name] = self.made(f"{name}.forward", compute(*inputs))
        at = len(inputs) if plain_at < 0 else plain_at
        arguments = (*inputs[:at], *plain, *inputs[at:])
        self.entries.append((f"{name}.forward", arguments, self.values[name]))
        self.calls.append(Call(name, sources, name, gradients, shown))
        return name

    def backward(self, last: str) -> None:
        """The gradients of all calls, from the last one on."""
        sums: dict[str, Values] = {last: np.ones_like(self.values[last])}
        for call in reversed(self.calls):
            gradient = sums[call.result]
            name = f"{call.name}.backward"
            found = [self.rounded(one.astype(np.float32)) for one in call.gradients(gradient)]
            found[0] = self.made(name, found[0])
            self.entries.append((name, (gradient,), list(call.shown(*found))))
            for source, part in zip(call.sources[-len(found) :], found, strict=True):
                sums[source] = sums[source] + part if source in sums else part

    # -- operators ---------------------------------------------------------------------------

    def linear(self, x: str, w: str, b: str) -> str:
        def gradients(dy: Values) -> list[Values]:
            return [dy @ self.values[w], dy.T @ self.values[x], dy.sum(0)]

        # PyTorch's call ends in addmm(b, x, w^T), whose gradients are what is dumped.
        return self.call(
            "Functional.linear", (x, w, b), lambda i, m, v: i @ m.T + v, gradients,
            shown=lambda dx, dw, db: [db, dx, np.ascontiguousarray(dw.T)],
        )  # fmt: skip

    def layer_norm(self, x: str, g: str, b: str) -> str:
        def parts() -> tuple[Values, Values]:
            values = self.values[x]
            spread = np.sqrt(values.var(-1, keepdims=True) + EPSILON)
            return (values - values.mean(-1, keepdims=True)) / spread, spread

        def gradients(dy: Values) -> list[Values]:
            normed, spread = parts()
            inner = dy * self.values[g]
            mean, along = inner.mean(-1, keepdims=True), (inner * normed).mean(-1, keepdims=True)
            return [(inner - mean - normed * along) / spread, (dy * normed).sum(0), dy.sum(0)]

        return self.call(
            "Functional.layer_norm", (x, g, b), lambda _, m, v: parts()[0] * m + v, gradients,
            (WIDTH,), 1,
        )  # fmt: skip

    def matmul(self, a: str, b: str) -> str:
        def gradients(dy: Values) -> list[Values]:
            return [dy @ self.values[b].T, self.values[a].T @ dy]

        return self.call("Torch.matmul", (a, b), np.matmul, gradients)

    def transpose(self, x: str) -> str:
        return self.call(
            "Tensor.transpose", (x,), lambda v: np.ascontiguousarray(v.T),
            lambda dy: [np.ascontiguousarray(dy.T)], (0, 1),
        )  # fmt: skip

    def softmax(self, x: str) -> str:
        name = f"Functional.softmax.{self.counts.get('Functional.softmax', 0)}"

        def gradients(dy: Values) -> list[Values]:
            y = self.values[name]
            return [y * (dy - (dy * y).sum(-1, keepdims=True))]

        return self.call("Functional.softmax", (x,), _softmax, gradients, (-1,))

    def divide(self, x: str, by: float) -> str:
        return self.call("Tensor.__truediv__", (x,), lambda v: v / by, lambda dy: [dy / by], (by,))

    def add(self, a: str, b: str) -> str:
        return self.call("Tensor.__add__", (a, b), np.add, lambda dy: [dy, dy])

    def relu(self, x: str) -> str:
        return self.call(
            "Functional.relu",
            (x,),
            lambda v: np.maximum(v, 0),
            lambda dy: [dy * (self.values[x] > 0)],
        )

    def cross_entropy(self, x: str, labels: Values) -> str:
        rows = np.arange(labels.size)

        def loss(logits: Values) -> Values:
            return np.array(-np.log(_softmax(logits)[rows, labels]).mean())

        def gradients(dy: Values) -> list[Values]:
            over = _softmax(self.values[x])
            over[rows, labels] -= 1
            return [dy * over / labels.size]

        return self.call("Functional.cross_entropy", (x,), loss, gradients, (labels,))


def _softmax(values: Values) -> Values:
    powers = np.exp(values - values.max(-1, keepdims=True))
    return powers / powers.sum(-1, keepdims=True)


def training_step(
    wrong: Mapping[str, Change] | None = None,
    rounded: Change = as_is,
    seed: int = 0,
    heads: Sequence[str] = ("query", "key", "value"),
) -> list[Entry]:
    """The calls of a step, forward and backward.

    Args:
        wrong: what is done to the first result of calls, by their names in the dump;
            everything behind is computed from it.
        rounded: done to every result.
        seed: of the weights and the batch.
        heads: in which order three products that don't need one another are computed.
    """
    step = Step(wrong or {}, rounded, seed)
    chance = np.random.default_rng(seed)
    shapes = dict.fromkeys(("query", "key", "value", "out"), (WIDTH, WIDTH))
    shapes |= {"up": (2 * WIDTH, WIDTH), "down": (WIDTH, 2 * WIDTH), "head": (WORDS, WIDTH)}
    for name, shape in shapes.items():
        weight = chance.standard_normal(shape) / math.sqrt(shape[1])
        step.values[name] = weight.astype(np.float32)
        step.values[f"{name}.bias"] = (chance.standard_normal(shape[0]) / 8).astype(np.float32)
    for name in ("first", "second"):
        step.values[name] = (1 + chance.standard_normal(WIDTH) / 8).astype(np.float32)
        step.values[f"{name}.bias"] = (chance.standard_normal(WIDTH) / 8).astype(np.float32)
    step.values["x"] = chance.standard_normal((TOKENS, WIDTH)).astype(np.float32)
    labels = chance.integers(0, WORDS, TOKENS)

    normed = step.layer_norm("x", "first", "first.bias")
    made = {name: step.linear(normed, name, f"{name}.bias") for name in heads}
    query, key, value = (made[name] for name in ("query", "key", "value"))
    scores = step.divide(step.matmul(query, step.transpose(key)), math.sqrt(WIDTH))
    seen = step.matmul(step.softmax(scores), value)
    first = step.add("x", step.linear(seen, "out", "out.bias"))
    inner = step.linear(step.layer_norm(first, "second", "second.bias"), "up", "up.bias")
    last = step.add(first, step.linear(step.relu(inner), "down", "down.bias"))
    loss = step.cross_entropy(step.linear(last, "head", "head.bias"), labels)
    step.backward(loss)
    return step.entries
