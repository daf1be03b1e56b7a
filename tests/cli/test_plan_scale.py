"""``irtool plan --scale``: sizes and candidates as text and JSON, and each of them written out."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from irtool.cli.main import main

BEGIN = "gpt/step_parallel_begin_0018.ir"
SCALE = ("--scale", "layers=3,hidden=128,batch=2", "--devices", "2")


def run(capsys: pytest.CaptureFixture[str], samples: Path, *arguments: str) -> tuple[int, str, str]:
    status = main(["plan", str(samples / BEGIN), *arguments])
    found = capsys.readouterr()
    return status, found.out, found.err


def test_roles_and_candidates_are_told(capsys: pytest.CaptureFixture[str], samples: Path) -> None:
    status, out, _ = run(capsys, samples, *SCALE, "--format", "json")
    found = json.loads(out)
    assert status == 0
    assert found["devices"] <= 2
    roles = {each["role"]: (each["before"], each["after"]) for each in found["roles"]}
    assert roles["layers"] == (2, 3)
    assert roles["heads"] == (4, 8)
    assert roles["feed_forward"] == (256, 512)
    candidates = found["candidates"]
    assert {
        "devices", "stages", "micro_batches", "optimizer_parallel", "recompute", "seconds",
        "memory_bytes", "lower_bound",
    } <= candidates[0].keys()  # fmt: skip
    assert [each["seconds"] for each in candidates] == sorted(x["seconds"] for x in candidates)
    assert sum(each["chosen"] for each in candidates) == 1


def test_one_plan_is_asked_for_by_what_it_is_held_to(
    capsys: pytest.CaptureFixture[str], samples: Path
) -> None:
    _, out, _ = run(capsys, samples, *SCALE, "--optimizer-parallel", "auto", "--format", "json")
    found = json.loads(out)
    assert found["candidates"] is None
    assert found["devices"] == 2
    assert found["decisions"] is not None


def test_a_candidate_is_written_out(capsys: pytest.CaptureFixture[str], samples: Path) -> None:
    status, out, _ = run(capsys, samples, *SCALE, "--candidate", "2", "--format", "shard")
    assert status == 0
    assert "layers" in out


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("--scale", "width=3"), "is no role"),
        (("--scale", "hidden=lots"), "is no size of a role"),
        (("--scale", "hidden=128,hidden=64"), "given twice"),
        (("--role", "hidden=64"), "--scale"),
        (("--scale", "hidden=128", "--keep-configured"), "small network"),
        (("--scale", "hidden=128", "--role", "hidden=63"), "no size of this network that is 63"),
        (("--candidate", "2"), "--candidate"),
    ],
)
def test_what_means_nothing_is_refused(
    arguments: tuple[str, ...], says: str, capsys: pytest.CaptureFixture[str], samples: Path
) -> None:
    status, out, error = run(capsys, samples, *arguments)
    assert status == 2
    assert not out
    assert says in error
