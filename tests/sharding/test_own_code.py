"""Programs that shard in their own code are recognised, and named as such.

``own_code/``: a network that MindSpore 2.10 compiled with a function of ``register_op_wrapper`` in
the place of ReLU, which communicates; without source lines.
"""

from __future__ import annotations

from pathlib import Path

import pytest

import irtool
from irtool.cli.main import main
from irtool.sharding.check import check
from irtool.sharding.network.context import ParallelContext
from irtool.sharding.own_code import own_code_of

FOLDER = Path(__file__).parent / "own_code"
DUMP = FOLDER / "21_validate_0076.ir"


def test_its_own_collectives_are_counted_without_their_gradients() -> None:
    own = own_code_of(irtool.load(DUMP))
    assert own is not None
    assert (own.node.op, own.collectives, own.library) == ("AllReduce", 2, "")


def test_source_lines_tell_whose_code_it_is() -> None:
    text = DUMP.read_text(encoding="utf-8")
    line = next(line for line in text.splitlines() if "= AllReduce(" in line)
    place = (
        "      # In file /x/site-packages/hyper_parallel/core/dtensor.py:81, 8~24/        reduce/"
    )
    after = text.index(line) + len(line)
    type_end = text.index("\n", text.index("\n", after) + 1)
    own = own_code_of(irtool.loads(f"{text[:type_end]}\n{place}{text[type_end:]}"))
    assert own is not None
    assert own.library == "HyperParallel"
    assert "code of HyperParallel" in own.message


@pytest.mark.parametrize("given", ["in_strategy: ((1, 1))", "in_layout: ({'device_matrix': (8)})"])
def test_a_network_with_a_strategy_is_sharded_by_mindspore_whatever_it_communicates(
    given: str,
) -> None:
    text = DUMP.read_text(encoding="utf-8")
    assert own_code_of(irtool.loads(text)) is not None
    assert "primitive_attrs: {" in text
    strategy = text.replace("primitive_attrs: {", f"primitive_attrs: {{{given}, ", 1)
    assert own_code_of(irtool.loads(strategy)) is None


@pytest.mark.parametrize(
    "name", ["data_parallel", "mlp_semi_auto", "gpt", "pipeline_run/rank_0", "recompute"]
)
def test_what_mindspore_shards_is_none(samples: Path, name: str) -> None:
    dumps = sorted((samples / name).rglob("*_validate_*.ir"))
    assert dumps
    assert [own_code_of(irtool.load(path)) for path in dumps] == [None] * len(dumps)


def test_check_does_not_judge_it() -> None:
    text = DUMP.read_text(encoding="utf-8")
    report = check(irtool.loads(text, "dump.ir"), ParallelContext(devices=8))
    assert report.accepted is None
    (finding,) = report.findings
    assert "shards in its own code" in finding.message
    assert report.communications == ()


@pytest.mark.parametrize("path", [FOLDER, DUMP])
def test_the_command_says_so(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["check", str(path), "--devices", "8"]) == 2
    assert "the program shards in its own code" in capsys.readouterr().err
