"""Fixtures that every test may use: where the dumps are."""

from __future__ import annotations

import gc
import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

ROOT = Path(__file__).resolve().parents[1]

# A busy machine is no reason to fail: what a property says does not depend on time.
settings.register_profile("patient", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("patient")


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "slow: takes seconds rather than milliseconds")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if "corpus" in getattr(item, "fixturenames", ()):
            item.add_marker("corpus")


def pytest_unconfigure() -> None:
    # What was read from the corpus is not worth collecting before the process ends.
    gc.freeze()


@pytest.fixture(scope="session")
def samples() -> Path:
    """The folder of small dumps that comes with irtool."""
    return ROOT / "samples"


@pytest.fixture(scope="session")
def corpus() -> Path:
    """The folder of the large collection of real dumps, which does not come with irtool."""
    folder = Path(os.environ.get("IRTOOL_CORPUS") or ROOT.parent / "shared" / "corpus")
    if not (folder / "versions").is_dir():
        pytest.skip(
            "the corpus of real dumps is not here: put it at ../shared/corpus beside the checkout,"
            " or set IRTOOL_CORPUS to its folder"
        )
    return folder


@pytest.fixture(scope="session", autouse=True)
def cache_of_the_tests(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """The linter's cache is the tests' own, so that they neither use nor change the user's."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("IRTOOL_CACHE_DIR", str(tmp_path_factory.mktemp("irtool-cache")))
        yield


@pytest.fixture(scope="session", autouse=True)
def mistakes_are_seen() -> Iterator[None]:
    """What a rule stumbles over is raised in tests, not said to be unknown."""
    from irtool.operators import guard

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(guard, "strict", True)
        yield
