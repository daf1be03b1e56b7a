"""Numbers of thousands of digits, or of devices that nobody has, in options."""

from __future__ import annotations

from pathlib import Path

import pytest

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
