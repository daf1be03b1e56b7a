"""Remake the pictures that the documents show: svg by irtool's own layout, pages in Chromium.

python benchmarks/screenshots.py              # all; needs chromium, chromedriver and selenium
python benchmarks/screenshots.py gpt.svg      # some
python benchmarks/screenshots.py --check      # make none; status 1 if any would look different

``model-explorer-diff.png`` is Model Explorer's window, ``html-search-16000-dark.png`` a page of a
large dump that is no sample: these two are made by hand.
"""

from __future__ import annotations

import base64
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
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
VISIBLE = 0.002
"""Share of pixels from which pictures look different: a cursor or the edge of a letter is less."""
COMPARES = """
const [old, made, done] = arguments;
const drawn = (data) => new Promise((ready) => {
  const image = new Image();
  image.onload = () => {
    const canvas = new OffscreenCanvas(image.width, image.height).getContext("2d");
    canvas.drawImage(image, 0, 0);
    ready(canvas.getImageData(0, 0, image.width, image.height));
  };
  image.src = data;
});
Promise.all([drawn(old), drawn(made)]).then(([left, right]) => {
  if (left.width !== right.width || left.height !== right.height) return done(1);
  let count = 0;
  const differs = (at) => Math.abs(left.data[at] - right.data[at]) > 24;
  for (let at = 0; at < left.data.length; at += 4)
    if (differs(at) || differs(at + 1) || differs(at + 2)) count++;
  done(count / (left.width * left.height));
});
"""


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


def differing(chrome: Any, old: Path, new: Path) -> float:
    """Share of the pixels of two pictures of which a colour differs visibly; 1 for other sizes."""
    data = [
        f"data:image/png;base64,{base64.b64encode(file.read_bytes()).decode()}"
        for file in (old, new)
    ]
    return float(chrome.execute_async_script(COMPARES, *data))


def remade(folder: Path, wanted: list[str], old: Path) -> Iterator[tuple[str, bool]]:
    """Make pictures in a folder; of each its name, and whether it looks as in ``old``."""
    for name, line in SVGS.items():
        if not wanted or name in wanted:
            before = (old / name).read_text(encoding="utf-8")
            irtool(line, folder / name, "--layout", "own")
            yield name, (folder / name).read_text(encoding="utf-8") == before
    pages = {name: entry for name, entry in PAGES.items() if not wanted or name in wanted}
    if not pages:
        return
    sys.path.insert(0, str(ROOT / "benchmarks"))
    from page_browser import browser  # pyright: ignore[reportImplicitRelativeImport]

    chrome = browser()
    try:
        for name, (line, colours) in pages.items():
            with tempfile.TemporaryDirectory() as work:
                page, picture = Path(work) / "page.html", Path(work) / name
                irtool(line, page, "--format", "html")
                photograph(chrome, page, picture, colours)
                alike = differing(chrome, old / name, picture) <= VISIBLE
                # A picture that looks the same keeps its bytes: history stays small.
                if not alike or not (folder / name).exists():
                    (folder / name).write_bytes(picture.read_bytes())
            yield name, alike
    finally:
        chrome.quit()


def main(words: list[str]) -> int:
    """Make the pictures that are asked for, or all."""
    checks = "--check" in words
    wanted = [word for word in words if word != "--check"]
    different = False
    with tempfile.TemporaryDirectory() as aside:
        for name, alike in remade(Path(aside) if checks else PICTURES, wanted, PICTURES):
            print(f"{name}: {'as it was' if alike else 'looks different'}")
            different = different or not alike
    return int(checks and different)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
