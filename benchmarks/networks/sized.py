"""Compile a transformer of a style at sizes that are given, and keep the dump before the pass.

    MINDSPORE/bin/python benchmarks/networks/sized.py OUT --instrument FOLDER --style llama \
        --sizes layers=2,batch=16,sequence=32,heads=4,kv_heads=2,head=16,inner=192,vocabulary=512

What ``benchmarks/plan_scaled.py`` holds plans of scaled dumps against. No operator gets a strategy.
"""

from __future__ import annotations

import argparse
import random
import sys
from functools import partial
from pathlib import Path
from typing import Any

STYLES: dict[str, dict[str, Any]] = {
    "gpt": {"rms": False, "rotary": False, "flash": False, "bias": True},
    "llama": {"rms": True, "rotary": True, "flash": False, "bias": False},
    "flash": {"rms": True, "rotary": True, "flash": True, "bias": False},
    "moe": {"kind": "moe", "rms": True, "rotary": False, "flash": False, "bias": False},
    "former": {
        "rms": True, "bias": False, "form": "BNSD", "sparse": 0, "rotary": True, "feed": "swiglu",
        "sequence": False, "mint": False, "recompute": "", "excluded": {},
    },
    "encoder": {},
}  # fmt: skip
COMMON = {
    "kind": "decoder", "tile": True, "dropout": False, "tied": False, "stages": 1,
    "recompute": "", "lazy": False, "lazy_blocks": False,
}  # fmt: skip


class Alike(random.Random):
    """Draws the same for every layer."""

    def random(self) -> float:
        return 0.5

    def choice(self, seq: Any) -> Any:
        return seq[0]


def sizes_of(text: str) -> dict[str, int]:
    """``layers=2,batch=16`` as numbers by name."""
    return {name: int(number) for name, number in (pair.split("=") for pair in text.split(","))}


def drawn(style: str, given: dict[str, int], devices: int, draw: random.Random) -> Any:
    """The network, of a form that ``compile.py`` compiles."""
    import encoders
    import formers
    import mindspore as ms
    import transformers
    from drawing import Drawn, Mesh, tensor
    from mindspore import nn

    mesh = Mesh(draw, {"dp": 1, "tp": 1}, 1.0)
    sizes = transformers.Sizes(draw, mesh)
    for name, number in given.items():
        setattr(sizes, name, number)
    sizes.hidden = sizes.heads * sizes.head
    own = {**COMMON, **STYLES[style], "layers": given["layers"]}
    models: dict[str, Any] = {"former": formers.Model, "encoder": encoders.Encoder}
    model = models.get(style, transformers.Model)

    def network() -> Any:
        loss = transformers.TokenLoss(model(mesh, sizes, own), mesh, sizes)
        step = nn.TrainOneStepCell(loss, nn.Adam(loss.trainable_params(), 1e-3))
        return step, tuple(tensor(sizes.batch, sizes.sequence, dtype=ms.int32) for _ in range(2))

    return Drawn(style, devices, {"full_batch": True}, {"sizes": given}, network)


def main() -> int:
    """Compile one network in this process."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("out", type=Path)
    parser.add_argument("--instrument", type=Path, required=True, help="holds virtual_devices.py")
    parser.add_argument("--style", choices=list(STYLES), required=True)
    parser.add_argument("--sizes", type=sizes_of, required=True)
    parser.add_argument("--devices", type=int, default=8)
    parser.add_argument("--seconds", type=float, default=500)
    given = parser.parse_args()
    sys.path[:0] = [str(given.instrument), str(Path(__file__).resolve().parent)]
    from compile import compile_one, finish, in_child

    given.out.mkdir(parents=True, exist_ok=True)
    build = partial(drawn, given.style, given.sizes, given.devices)
    work = partial(compile_one, build, Alike(), given.out)
    verdict = finish(given.out, given.style, in_child(work, given.seconds), False)
    print(f"{given.out.name}: {verdict}", flush=True)
    return 0 if verdict == "accepted" else 1


if __name__ == "__main__":
    sys.exit(main())
