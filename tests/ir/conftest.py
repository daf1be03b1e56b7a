"""Fixtures for tests of the model."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from pathlib import Path

import pytest

import irtool
from irtool.ir.dump import Dump


@pytest.fixture(scope="session")
def load_once() -> Callable[[Path], Dump]:
    """Loads a dump once for all tests: most of what they take on the corpus is reading."""
    return cache(irtool.load)
