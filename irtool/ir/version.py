"""The version of irtool, as pyproject.toml has it."""

from typing import Final

VERSION: Final = "0.2.0"
