"""Numbers of thousands of digits, or of devices that nobody has, in options."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from irtool.cli.inputs.memory import size_of
from irtool.cli.main import main

LONG = "9" * 4400
"""More digits than Python turns into a number."""


@pytest.mark.parametrize(
    ("command", "option", "value", "says"),
    [
        ("cost", "--bind", f"s4={LONG}", "binds nothing"),
        ("plan", "--bind", f"s4={LONG}", "binds nothing"),
        ("plan", "--scale", f"hidden={LONG}", "is no size of a role"),
        ("plan", "--scale", f"hidden={1 << 63}", "is no size of a role"),
        ("plan", "--lost", LONG, "there is no rank"),
        ("plan", "--lost", f"0-{LONG}", "too many ranks"),
        ("recover", "--lost", LONG, "there is no rank"),
        ("check", "--set", f"device_num={LONG}", "device_num must be"),
        ("check", "--set", f"pipeline_stages={LONG}", "pipeline_stages"),
        ("check", "--optimizer-weight-shard-size", "4097", "must be -1 or from 1 to 4096"),
        ("memory", "--optimizer-weight-shard-size", LONG, "--optimizer-weight-shard-size"),
        ("plan", "--matmul-mem-coef", "nan", "nan is no finite number"),
        ("plan", "--matmul-mem-coef", "1e400", "1e400 is no finite number"),
        ("plan", "--memory", LONG, "more than any memory"),
        ("plan", "--memory", f"{1 << 63}", "more than any memory"),
        ("recover", "--data-bytes", "8388608TiB", "more than any memory"),
        ("recover", "--add-devices", "4097", "MindSpore takes 4096 at most"),
        ("plan", "--to", "1000000000", "a number from 1 to 4096"),
        ("plan", "--to", "4104", "a number from 1 to 4096"),
    ],
)
def test_a_number_that_nothing_has_is_refused(
    command: str,
    option: str,
    value: str,
    says: str,
    capsys: pytest.CaptureFixture[str],
    samples: Path,
) -> None:
    begin = samples / "mlp_semi_auto" / "step_parallel_begin_0018.ir"
    status = main([command, str(begin), option, value])
    out, errors = capsys.readouterr()
    assert (status, out) == (2, "")
    assert says in errors
    assert "CLI999" not in errors


@pytest.mark.parametrize(
    ("text", "size"),
    [
        ("9007199254740993", 9007199254740993),
        (f"{(1 << 63) - 1}", (1 << 63) - 1),
        ("8388607TiB", 8388607 << 40),
        ("1.5G", 3 << 29),
        ("0.5 kB", 500),
        ("7", 7),
    ],
)
def test_sizes_are_exact(text: str, size: int) -> None:
    assert size_of(text, "--memory") == size


def test_as_many_devices_as_mindspore_takes_may_join(
    capsys: pytest.CaptureFixture[str], samples: Path
) -> None:
    begin = samples / "mlp_semi_auto" / "step_parallel_begin_0018.ir"
    status = main(["recover", str(begin), "--add-devices", "4096", "--scaled", "--format", "json"])
    out, errors = capsys.readouterr()
    assert (status, errors) == (0, "")
    assert json.loads(out)["target"] == 4096


@pytest.mark.parametrize(("length", "printed"), [(4000, 4000), (100_000, 4096)])
def test_a_message_that_quotes_a_long_option_is_cut_in_the_middle(
    length: int, printed: int, capsys: pytest.CaptureFixture[str]
) -> None:
    status = main(["parse", "a" * length])
    errors = capsys.readouterr().err
    first = errors.splitlines()[0]
    assert status == 2
    assert abs(len(first) - printed) < 60
    assert ("…" in first) is (length > printed)
