"""An encoder as users write BERT: norms behind the sums, a padding mask, a pooled first token.

What ``sized.py`` compiles as the style ``encoder``.
"""

from __future__ import annotations

import math
from typing import Any

import mindspore as ms
import numpy as np
from drawing import Mesh
from mindspore import Parameter, Tensor, nn, ops
from transformers import Sizes


class Attention(nn.Cell):
    """Every token sees every other one that is no padding."""

    def __init__(self, s: Sizes) -> None:
        super().__init__()
        self.query, self.key, self.value, self.out = (
            nn.Dense(s.hidden, s.hidden) for _ in range(4)
        )
        self.shape = (s.batch, s.sequence, s.heads, s.head)
        self.flat = (s.batch, s.sequence, s.hidden)
        self.scores = ops.BatchMatMul(transpose_b=True)
        self.values = ops.BatchMatMul()
        self.softmax = nn.Softmax(-1)
        self.scale = 1.0 / math.sqrt(s.head)

    def heads(self, x: Any) -> Any:
        return ops.transpose(ops.reshape(x, self.shape), (0, 2, 1, 3))

    def construct(self, x: Any, mask: Any) -> Any:
        q, k = self.heads(self.query(x)), self.heads(self.key(x))
        weights = self.softmax(self.scores(q, k) * self.scale + mask)
        y = self.values(weights, self.heads(self.value(x)))
        return self.out(ops.reshape(ops.transpose(y, (0, 2, 1, 3)), self.flat))


class Block(nn.Cell):
    """Attention and a feed-forward part, each with its sum and norm behind it."""

    def __init__(self, s: Sizes) -> None:
        super().__init__()
        self.attention = Attention(s)
        self.norm1, self.norm2 = (nn.LayerNorm((s.hidden,)) for _ in range(2))
        self.wide, self.narrow = nn.Dense(s.hidden, s.inner), nn.Dense(s.inner, s.hidden)
        self.gelu = nn.GELU()

    def construct(self, x: Any, mask: Any) -> Any:
        x = self.norm1(x + self.attention(x, mask))
        return self.norm2(x + self.narrow(self.gelu(self.wide(x))))


class Encoder(nn.Cell):
    """Embeddings of tokens and places, blocks, and a head that says which token was masked."""

    def __init__(self, mesh: Mesh, sizes: Sizes, style: dict[str, Any]) -> None:
        super().__init__()
        s = sizes
        normal = np.random.default_rng(0).normal
        self.words = Parameter(
            Tensor(normal(size=(s.vocabulary, s.hidden)) * 0.02, ms.float32), name="words"
        )
        self.places = Parameter(
            Tensor(normal(size=(s.sequence, s.hidden)) * 0.02, ms.float32), name="places"
        )
        self.norm = nn.LayerNorm((s.hidden,))
        self.blocks = nn.CellList([Block(s) for _ in range(style["layers"])])
        self.head = nn.Dense(s.hidden, s.vocabulary)
        self.gather = ops.Gather()
        self.mask_shape = (s.batch, 1, 1, s.sequence)
        self.flat = (s.batch * s.sequence, s.hidden)

    def construct(self, tokens: Any) -> Any:
        mask = ops.cast(ops.equal(tokens, 0), ms.float32) * -1e4
        mask = ops.reshape(mask, self.mask_shape)
        x = self.norm(self.gather(self.words, tokens, 0) + self.places)
        for block in self.blocks:
            x = block(x, mask)
        return self.head(ops.reshape(x, self.flat))
