"""Remake the pictures that the documents show: svg by irtool's own layout, pages in Chromium.

python benchmarks/screenshots.py              # all; needs chromium, chromedriver and selenium
python benchmarks/screenshots.py gpt.svg      # some

``model-explorer-diff.png`` is Model Explorer's window, ``html-search-16000-dark.png`` a page of a
large dump that is no sample: these two are made by hand.
"""

from __future__ import annotations

import base64
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
PICTURES = ROOT / "docs" / "pictures"
SVGS = {
    "gpt.svg": "viz samples/gpt/20_validate_0080.ir",
    "pipeline.svg": "viz samples/pipeline_4_stages --whole",
    "recompute.svg": "viz samples/recompute",
    "rejected.svg": "viz samples/mlp_rejected/step_parallel_begin_0018.ir",
}
PAGES = {
    "html-check-light.png": ("check samples/mlp_rejected", "light"),
    "html-check-dark.png": ("check samples/mlp_rejected", "dark"),
    "html-graph-light.png": ("viz samples/gpt/20_validate_0080.ir", "light"),
    "html-runs-light.png": (
        "diff samples/precision/reference samples/precision/tanh_gelu", "light"),
    "html-recover-light.png": ("recover samples/mlp_semi_auto --lost 5,6", "light"),
}  # fmt: skip
"""A command and the colours of its page, by the picture's name."""
CHOOSES = {"html-graph-light.png": "SoftmaxBackward"}
"""What is searched and chosen before the picture is taken."""
SIZE = (1400, 900)


def irtool(line: str, file: Path, *more: str) -> None:
    words = [sys.executable, "-m", "irtool", *line.split(), *more, "-o", str(file)]
    done = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, check=False)
    if done.returncode not in (0, 1):
        raise SystemExit(done.stderr)


def photograph(chrome: Any, page: Path, picture: Path, colours: str) -> None:
    """A picture of a page as it stands once everything is drawn."""
    media = {"features": [{"name": "prefers-color-scheme", "value": colours}]}
    chrome.execute_cdp_cmd("Emulation.setEmulatedMedia", media)
    chrome.set_window_size(*SIZE)
    chrome.get(page.as_uri())
    time.sleep(2)
    wanted = CHOOSES.get(picture.name)
    if wanted:
        box = chrome.find_element("css selector", "input[type=search]")
        box.send_keys(wanted)
        time.sleep(1)
        box.send_keys("\ue007")
        time.sleep(2)
    data = chrome.execute_cdp_cmd("Page.captureScreenshot", {"format": "png"})["data"]
    picture.write_bytes(base64.b64decode(data))


def main(wanted: list[str]) -> None:
    """Make the pictures that are asked for, or all."""

    def asked(name: str) -> bool:
        return not wanted or name in wanted

    for name, line in SVGS.items():
        if asked(name):
            irtool(line, PICTURES / name, "--layout", "own")
            print(name)
    pages = {name: entry for name, entry in PAGES.items() if asked(name)}
    if not pages:
        return
    sys.path.insert(0, str(ROOT / "benchmarks"))
    from page_browser import browser  # pyright: ignore[reportImplicitRelativeImport]

    chrome = browser()
    try:
        for name, (line, colours) in pages.items():
            with tempfile.TemporaryDirectory() as folder:
                page = Path(folder) / "page.html"
                irtool(line, page, "--format", "html")
                photograph(chrome, page, PICTURES / name, colours)
            print(name)
    finally:
        chrome.quit()


if __name__ == "__main__":
    main(sys.argv[1:])
