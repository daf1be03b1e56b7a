"""MLIR's own text parser (C++) on a StableHLO transformer, for comparison.

``mlir.py make FILE`` writes the module (needs jax), ``mlir.py parse FILE`` reads it (needs
jaxlib) and prints CPU seconds as JSON.  Use ``read.py --mlir-python`` if jax is elsewhere.
"""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path
from typing import Any

LAYERS = 10
"""Gives about as many operations as the 24-layer dump has statements."""
BATCH, LENGTH, WIDTH, HEADS, INNER, WORDS = 2, 64, 256, 4, 1024, 1000


def make(path: str) -> None:
    """Lower one training step of a GPT, with debug locations, and write its text."""
    import jax
    import jax.numpy as jnp

    def norm(x: Any, gain: Any, bias: Any) -> Any:
        mean = x.mean(-1, keepdims=True)
        variance = ((x - mean) ** 2).mean(-1, keepdims=True)
        return (x - mean) * jax.lax.rsqrt(variance + 1e-5) * gain + bias

    def heads(x: Any) -> Any:
        return x.reshape(BATCH, LENGTH, HEADS, WIDTH // HEADS).transpose(0, 2, 1, 3)

    def block(p: Any, x: Any) -> Any:
        y = norm(x, p["gain1"], p["bias1"])
        q, k, v = (heads(y @ p[name] + p[f"{name}_bias"]) for name in "qkv")
        scores = q @ k.transpose(0, 1, 3, 2) / (WIDTH // HEADS) ** 0.5
        scores = jnp.where(jnp.tril(jnp.ones((LENGTH, LENGTH))) > 0, scores, -1e9)
        mixed = (jax.nn.softmax(scores, -1) @ v).transpose(0, 2, 1, 3)
        x = x + mixed.reshape(BATCH, LENGTH, WIDTH) @ p["o"] + p["o_bias"]
        y = norm(x, p["gain2"], p["bias2"])
        return x + jax.nn.gelu(y @ p["up"] + p["up_bias"]) @ p["down"] + p["down_bias"]

    def loss(p: Any, words: Any, labels: Any) -> Any:
        x = p["embedding"][words]
        for layer in p["blocks"]:
            x = block(layer, x)
        logits = jax.nn.log_softmax(x @ p["embedding"].T)
        return -jnp.take_along_axis(logits, labels[..., None], -1).mean()

    def step(p: Any, words: Any, labels: Any) -> Any:
        value, gradient = jax.value_and_grad(loss)(p, words, labels)
        return value, jax.tree.map(lambda a, b: a - 1e-3 * b, p, gradient)

    def array(*shape: int) -> Any:
        return jax.ShapeDtypeStruct(shape, jnp.float32)

    names = ("gain1", "bias1", "gain2", "bias2", "q_bias", "k_bias", "v_bias", "o_bias")
    layer = {name: array(WIDTH) for name in (*names, "down_bias")}
    layer |= {name: array(WIDTH, WIDTH) for name in "qkvo"}
    layer |= {"up": array(WIDTH, INNER), "up_bias": array(INNER), "down": array(INNER, WIDTH)}
    parameters = {"embedding": array(WORDS, WIDTH), "blocks": [layer] * LAYERS}
    words = jax.ShapeDtypeStruct((BATCH, LENGTH), jnp.int32)
    text = jax.jit(step).lower(parameters, words, words).as_text(debug_info=True)
    Path(path).write_text(text, encoding="utf-8")


def parse(path: str) -> None:
    """Parse the module, touch every operation, several times; print the CPU seconds."""
    from jax._src.interpreters.mlir import make_ir_context
    from jaxlib.mlir import ir

    text = Path(path).read_text(encoding="utf-8")
    result: dict[str, Any] = {"bytes": len(text.encode()), "parse": [], "touch": []}
    context = make_ir_context()  # a context with func and stablehlo registered
    for _ in range(5):
        begun = time.process_time()
        module = ir.Module.parse(text, context)
        parsed = time.process_time()
        result["nodes"] = _touch(module.operation)
        result["parse"].append(parsed - begun)
        result["touch"].append(time.process_time() - parsed)
        del module
    print(json.dumps(result))


def _touch(operation: Any) -> int:
    """Visit operands, types and attributes of every operation under this one."""
    count = 0
    for region in operation.regions:
        for block in region.blocks:
            for inner in block.operations:
                inner = inner.operation
                count += 1
                for operand in inner.operands:
                    _ = operand.type
                for output in inner.results:
                    _ = output.type
                attributes = inner.attributes
                for index in range(len(attributes)):
                    _ = attributes[index].attr
                count += _touch(inner)
    return count


if __name__ == "__main__":
    {"make": make, "parse": parse}[sys.argv[1]](sys.argv[2])
