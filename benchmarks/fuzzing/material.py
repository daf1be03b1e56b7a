"""What is mutated: the samples, files that irtool wrote of them, and dumps of more than 1 MB."""

from __future__ import annotations

import io
import json
import lzma
import os
import struct
import zipfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from random import Random

from benchmarks.fuzzing.dumps import enlarged

ROOT = Path(__file__).resolve().parents[2]
SAMPLES = ROOT / "samples"
LARGE = 1_000_000
"""Bytes from which a dump counts as large."""


@dataclass(frozen=True, slots=True)
class Seed:
    """A dump to start from.

    Attributes:
        name: where it comes from, for people.
        file: what to call it; the name says after which pass it was taken.
        text: its content.
        case: the ``case.json`` beside it, if there is one.
        is_begin: True if it was taken before slicing.
    """

    name: str
    file: str
    text: str
    case: bytes | None
    is_begin: bool

    @property
    def devices(self) -> int:
        """Devices of the run, 8 where nothing says it."""
        context = json.loads(self.case).get("context", {}) if self.case else {}
        return int(context.get("device_num", 8))


@lru_cache(maxsize=1)
def small() -> tuple[Seed, ...]:
    """The dumps among the samples, and those that the tests have."""
    return tuple(_seeds(SAMPLES, 250_000))


@lru_cache(maxsize=1)
def large() -> tuple[Seed, ...]:
    """Dumps of more than 1 MB: of the corpus where it is, and samples with repeated statements."""
    corpus = Path(os.environ.get("IRTOOL_CORPUS") or ROOT.parent / "shared" / "corpus")
    found = [
        seed
        for folder in ("large", "planning", "versions")
        for seed in _seeds(corpus / folder, 5_000_000, LARGE)
    ]
    repeated = (
        "gpt",
        "mlp_semi_auto",
        "optimizer_parallel",
        "moe",
        "mlp_recursive_search",
        "recompute",
    )
    for seed in small():
        if seed.name.split("/")[0] in repeated:
            grown = enlarged(seed.text, int(1.05 * LARGE))
            if len(grown) >= LARGE:
                found.append(
                    Seed(f"{seed.name} repeated", seed.file, grown, seed.case, seed.is_begin)
                )
    return tuple(found)


def _seeds(folder: Path, most: int, least: int = 0) -> Iterator[Seed]:
    for path in sorted(folder.rglob("*.ir*")):
        if path.suffix == ".ir":
            if not least <= path.stat().st_size <= most:
                continue
            data = path.read_bytes()
        elif path.name.endswith(".ir.xz"):
            data = lzma.decompress(path.read_bytes())
            if not least <= len(data) <= most:
                continue
        else:
            continue
        name = path.name.removesuffix(".xz")
        folders = (path.parent, path.parent.parent)
        cases = (at / "case.json" for at in folders)
        beside = next((case for case in cases if case.is_file()), None)
        text = data.decode("utf-8", "surrogateescape")
        yield Seed(
            str(path.relative_to(folder)),
            name,
            text,
            beside.read_bytes() if beside else None,
            "begin" in name or ("in_strategy" in text and "validate" not in name),
        )


@lru_cache(maxsize=1)
def logs() -> tuple[bytes, ...]:
    """Logs of failed runs, of the tests."""
    folder = ROOT / "tests" / "lint" / "failure" / "logs"
    found = [path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()]
    return tuple(data for data in found if 0 < len(data) < 100_000) or (_LOG,)


_LOG = (
    b"[ERROR] PARALLEL(7,ffff,python):2024-01-01-00:00:00.000.000 [mindspore/ccsrc/frontend"
    b"/parallel/ops_info/matmul_info.cc:128] CheckStrategy] MatMulInfo00: Can not do this "
    b"operator with a "
    b"strategy ((2, 4), (1, 2)), the relevant dimensions of the two inputs are not equal\n"
    b"RuntimeError: Failure:operator MatMul init failed\n"
)


def sample(path: str) -> bytes:
    """A file of the samples."""
    return (SAMPLES / path).read_bytes()


@lru_cache(maxsize=8)
def sample_text(path: str) -> str:
    """A dump of the samples."""
    return sample(path).decode("utf-8", "surrogateescape")


def machine() -> bytes:
    """A machine file that irtool ships."""
    return (ROOT / "irtool" / "cluster" / "machines" / "ascend_910b.toml").read_bytes()


# -- payloads ----------------------------------------------------------------------------------


def npy(random: Random) -> bytes:
    """A small array as numpy writes it."""
    import numpy

    shape = random.choice(((4,), (2, 3), (), (1, 2, 2), (64,)))
    numbers = [random.gauss(0, 1) for _ in range(int(numpy.prod(shape)))]
    kind = random.choice(("<f4", "<f2", "<i8", "<f8"))
    stream = io.BytesIO()
    numpy.save(stream, numpy.array(numbers, dtype=kind).reshape(shape))
    return stream.getvalue()


def torch_file(random: Random) -> bytes:
    """A tensor as PyTorch stores it, without PyTorch."""
    count = random.choice((1, 4, 12))
    values = struct.pack(f"<{count}f", *(random.gauss(0, 1) for _ in range(count)))
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_STORED) as archive:
        archive.writestr("archive/data.pkl", _torch_pickle(count))
        archive.writestr("archive/byteorder", "little")
        archive.writestr("archive/data/0", values)
        archive.writestr("archive/version", "3\n")
    return stream.getvalue()


def _torch_pickle(count: int) -> bytes:
    """The opcodes of one contiguous float tensor, as ``torch.save`` writes them."""

    def text(value: str) -> bytes:
        data = value.encode()
        return b"X" + struct.pack("<I", len(data)) + data

    size = b"M" + struct.pack("<H", count)
    storage = (
        b"(" + text("storage") + b"ctorch\nFloatStorage\n" + text("0") + text("cpu") + size + b"tQ"
    )
    rebuild = b"ctorch._utils\n_rebuild_tensor_v2\n("
    hooks = b"\x89ccollections\nOrderedDict\n)R"
    return b"\x80\x02" + rebuild + storage + b"K\x00" + size + b"\x85K\x01\x85" + hooks + b"tR."


def payloads(random: Random) -> dict[str, bytes]:
    """Two folders of tensors, ``left`` and ``right``, of one of the layouts that irtool reads."""
    kind = random.choice(("npy", "pt", "mindspore", "statistic", "msprobe", "npz"))
    if kind == "msprobe":
        files: dict[str, bytes] = {}
        for side, name in (("left", "reference"), ("right", "tanh_gelu")):
            for path in (
                "loss.json",
                *(f"step0/proc1000/{n}.json" for n in ("construct", "dump", "stack")),
            ):
                files[f"{side}/{path}"] = sample(f"precision/{name}/{path}")
        return files
    made: dict[str, bytes] = {}
    for at in range(3):
        if kind in ("npy", "pt"):
            made[f"layer.{at}.{kind}"] = npy(random) if kind == "npy" else torch_file(random)
        elif kind == "npz":
            stream = io.BytesIO()
            with zipfile.ZipFile(stream, "w") as archive:
                archive.writestr("a.npy", npy(random))
            made[f"layer.{at}.npz"] = stream.getvalue()
        elif kind == "mindspore":
            for side, index in (("input", 0), ("input", 1), ("output", 0)):
                name = f"MatMul.Default_MatMul-op{at}.0.0.{1000 + at}.{side}.{index}"
                made[f"rank_0/Net/0/0/{name}.DefaultFormat.float32.npy"] = npy(random)
    if kind == "statistic":
        made["rank_0/Net/0/0/statistic.csv"] = _STATISTIC
    return {f"{side}/{name}": data for side in ("left", "right") for name, data in made.items()}


_STATISTIC = (
    b"Op Type,Op Name,Task ID,Stream ID,Timestamp,IO,Slot,Data Size,Data Type,Shape,Max Value,"
    b"Min Value,L2Norm Value\n"
    b'MatMul,Default_MatMul-op0,0,0,1000,input,0,24,float32,"(2,3)",1.5,-2,3.25\n'
    b'MatMul,Default_MatMul-op0,0,0,1000,input,1,24,float32,"(3,2)",1,-1,2\n'
    b'MatMul,Default_MatMul-op0,0,0,1000,output,0,16,float32,"(2,2)",4,-3,5.5\n'
    b'ReLU,Default_ReLU-op1,0,0,1001,input,0,16,float32,"(2,2)",4,-3,5.5\n'
    b'ReLU,Default_ReLU-op1,0,0,1001,output,0,16,float32,"(2,2)",4,0,4.5\n'
)

CONTEXTS: Mapping[str, bytes] = {
    "context.json": json.dumps(
        {
            "device_num": 8,
            "global_rank": 0,
            "pipeline_stages": 1,
            "parallel_mode": "semi_auto_parallel",
            "search_mode": "recursive_programming",
            "dataset_strategy": [[8, 1], [8, 1]],
            "full_batch": True,
            "enable_alltoall": True,
            "enable_parallel_optimizer": True,
            "gradients_mean": True,
            "device_target": "Ascend",
            "parallel_optimizer_config": {
                "parallel_optimizer_threshold": 64,
                "optimizer_weight_shard_size": -1,
                "gradient_accumulation_shard": False,
            },
            "comm_fusion": {"allreduce": {"mode": "auto", "config": None}},
        }
    ).encode(),
    "context.toml": b"""device_num = 8
global_rank = 0
pipeline_stages = 2
dataset_strategy = "data_parallel"
enable_parallel_optimizer = true
soc = "Ascend910B"

[parallel_optimizer_config]
parallel_optimizer_threshold = 0
optimizer_weight_shard_size = 4

[environment]
MS_COMM_COMPILER_OPT = "3"
""",
}
"""Context files, every kind of value in them."""

SETTINGS = b"""rules = ["custom.rules"]
[context]
device_num = 8
full_batch = true
[lint]
select = ["SYN", "STR", "COM", "MEM"]
ignore = ["STR007"]
fail-on = "warning"
machine = "ascend_910b"
[lint.severities]
COM = "info"
[lint.thresholds.MEM001]
least_bytes = 1_000
[lint.per-scope-ignores]
"layers.0" = ["STR005"]
[lint.per-file-ignores]
"eval/*" = ["MEM"]
"""
"""An irtool.toml with every part that commands read."""

BASELINE = json.dumps(
    {
        "schema": "irtool.linting.baseline/1",
        "findings": [
            {"code": "STR005", "fingerprint": "0" * 16, "what": "MatMul: a strategy"},
        ],
    }
).encode()
"""Known findings, as ``irtool lint --update-baseline`` writes them."""
