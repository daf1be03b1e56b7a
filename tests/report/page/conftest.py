"""A real browser for the tests of pages: headless Chromium, driven by selenium."""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

OPTIONS = (
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
    "--disable-background-networking", "--disable-component-update", "--disable-sync",
    "--disable-dev-shm-usage", "--hide-scrollbars", "--window-size=1400,900",
)  # fmt: skip
PATIENCE = 20.0


def _program(*names: str) -> str:
    found = next((path for name in names if (path := shutil.which(name))), None)
    if found is None:
        pytest.skip(f"there is no {names[0]} here: pages are not tried in a browser")
    return found


@pytest.fixture(scope="session")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """One browser for all tests."""
    program = _program("chromium", "chromium-browser", "google-chrome", "chrome")
    driver = _program("chromedriver", "chromium.chromedriver")
    webdriver = pytest.importorskip("selenium.webdriver", reason="selenium is not installed")
    from selenium.webdriver.chrome.service import Service

    options = webdriver.ChromeOptions()
    options.binary_location = program
    profile = tmp_path_factory.mktemp("profile")
    for option in (*OPTIONS, f"--user-data-dir={profile}"):
        options.add_argument(option)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    found = webdriver.Chrome(options=options, service=Service(driver))
    yield found
    found.quit()


@pytest.fixture
def opened(browser: Any, tmp_path: Path) -> Iterator[Callable[[str], Any]]:
    """Opens a page from disk; at the end nothing may have been said on the console."""

    def open_page(text: str) -> Any:
        path = tmp_path / "page.html"
        path.write_bytes(text.encode("utf-8", "backslashreplace"))
        browser.get_log("browser")
        browser.get(path.as_uri())
        wait(browser, "return document.documentElement.dataset.ready")
        return browser

    yield open_page
    assert [entry["message"] for entry in browser.get_log("browser")] == []


def wait(browser: Any, script: str, *arguments: object) -> Any:
    """The first true answer of a script."""
    end = time.monotonic() + PATIENCE
    while not (found := browser.execute_script(script, *arguments)):
        assert time.monotonic() < end, f"in vain: {script}"
        time.sleep(0.02)
    return found
