"""One training step of a small transformer block, dumped by msprobe (level L1, statistics)."""
import json, os, sys

import torch
import torch.nn as nn
import torch.nn.functional as F
from msprobe.pytorch import PrecisionDebugger, seed_all

out, activation = sys.argv[1:]


class Block(nn.Module):
    def __init__(self, width, heads, activation):
        super().__init__()
        self.heads, self.activation = heads, activation
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.query_key_value, self.output = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x):
        batch, length, width = x.shape
        parts = self.query_key_value(self.norm1(x)).chunk(3, -1)
        q, k, v = (z.view(batch, length, self.heads, -1).transpose(1, 2) for z in parts)
        scores = torch.softmax(torch.matmul(q, k.transpose(-1, -2)) / (width // self.heads) ** 0.5, -1)
        x = x + self.output(torch.matmul(scores, v).transpose(1, 2).reshape(x.shape))
        return x + self.down(F.gelu(self.up(self.norm2(x)), approximate=self.activation))


class Network(nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(128, 64)
        self.blocks = nn.ModuleList([Block(64, 4, "none"), Block(64, 4, activation)])
        self.norm, self.head = nn.LayerNorm(64), nn.Linear(64, 128, bias=False)

    def forward(self, tokens):
        x = self.embedding(tokens)
        for block in self.blocks:
            x = block(x)
        return self.head(self.norm(x))


os.makedirs(out)
config = {"task": "statistics", "dump_path": out, "rank": [], "step": [], "level": "L1",
          "statistics": {"scope": [], "list": [], "data_mode": ["all"], "summary_mode": "statistics"}}
json.dump(config, open(f"{out}/config.json", "w"))
seed_all(1234)
network = Network()
tokens = torch.randint(0, 128, (4, 17), generator=torch.Generator().manual_seed(1))
debugger = PrecisionDebugger(config_path=f"{out}/config.json")
debugger.start(model=network)
logits = network(tokens[:, :-1])
loss = F.cross_entropy(logits.reshape(-1, 128), tokens[:, 1:].reshape(-1))
loss.backward()
debugger.stop()
debugger.step()
json.dump([loss.item()], open(f"{out}/loss.json", "w"))
