"""How quick a page with a graph is in headless Chromium, and how libraries compare.

    python benchmarks/page_browser.py DUMP...            our page: size, writing, first picture, use
    python benchmarks/page_browser.py --libraries DUMP   vis-network (from pyvis) and dagre (from
                                                         netron) on all boxes of the dump; needs
                                                         pip install pyvis netron, takes minutes

Times are wall milliseconds (``performance.now``) unless they say otherwise.
"""

from __future__ import annotations

import importlib.util
import json
import shutil
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import irtool
from irtool.ir.dump import Dump
from irtool.report.page.graph.data import MONAD, PASSING, graph_data
from irtool.report.page.graph.page import graph_page
from irtool.report.page.write import render_page

PATIENCE = 300


def browser() -> Any:
    from selenium import webdriver
    from selenium.webdriver.chrome.service import Service

    options = webdriver.ChromeOptions()
    options.binary_location = shutil.which("chromium") or shutil.which("google-chrome") or ""
    for option in ("--headless", "--no-sandbox", "--disable-gpu", "--no-first-run",
                   "--disable-background-networking", "--disable-component-update",
                   "--disable-sync", "--disable-quic", "--disable-dev-shm-usage",
                   "--window-size=1400,900",
                   f"--user-data-dir={tempfile.mkdtemp()}"):  # fmt: skip
        options.add_argument(option)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    found = webdriver.Chrome(options=options, service=Service(shutil.which("chromedriver") or ""))
    found.set_script_timeout(PATIENCE)
    found.set_page_load_timeout(PATIENCE)
    return found


def opened(chrome: Any, text: str, ready: str) -> float:
    """Milliseconds from navigation until ``ready`` says when it was."""
    with tempfile.NamedTemporaryFile("w", suffix=".html", delete=False, encoding="utf-8") as file:
        file.write(text)
    chrome.get(Path(file.name).as_uri())
    end = time.monotonic() + PATIENCE
    while not (found := chrome.execute_script(f"return {ready}")):
        if time.monotonic() > end:
            raise TimeoutError
        time.sleep(0.05)
    Path(file.name).unlink()
    return float(found)


TASKS = """
const done = arguments[0];
const frame = () => new Promise((next) => requestAnimationFrame(() => requestAnimationFrame(next)));
const canvas = document.querySelector('.canvas');
const press = (key) => canvas.dispatchEvent(new KeyboardEvent('keydown', {key, bubbles: true}));
const timed = async (act) => {
  const began = performance.now();
  act();
  const script = performance.now() - began;
  await frame();
  return [script, performance.now() - began];
};
(async () => {
  const result = {};
  const input = document.querySelector('input[type=search]');
  const type = (text) => () => { input.value = text; input.dispatchEvent(new Event('input')); };
  result['search, first letter'] = await timed(type('m'));
  result['search, a word'] = await timed(type('matmul'));
  const row = document.querySelector('.results li');
  const hit = () => row.dispatchEvent(
    new PointerEvent('pointerdown', {bubbles: true, cancelable: true}));
  result['open what was found'] = await timed(hit);
  type('')();
  let worst = [0, 0];
  let sum = 0;
  for (let step = 0; step < 30; step++) {
    const found = await timed(() => canvas.dispatchEvent(
      new WheelEvent('wheel', {deltaX: 40, shiftKey: true, cancelable: true, bubbles: true})));
    sum += found[1];
    if (found[1] > worst[1]) worst = found;
  }
  result['pan, worst of 30'] = worst;
  worst = [0, 0];
  for (let step = 0; step < 30; step++) {
    const turn = {deltaY: step < 15 ? 60 : -60, clientX: 500, clientY: 500};
    const found = await timed(() => canvas.dispatchEvent(
      new WheelEvent('wheel', {...turn, cancelable: true, bubbles: true})));
    if (found[1] > worst[1]) worst = found;
  }
  result['zoom, worst of 30'] = worst;
  result['arrow key'] = await timed(() => press('ArrowDown'));
  result['fit all of it'] = await timed(() => press('f'));
  await new Promise((next) => setTimeout(next, 400));
  result['pan with all in sight'] = await timed(() => canvas.dispatchEvent(
    new WheelEvent('wheel', {deltaX: 40, shiftKey: true, cancelable: true, bubbles: true})));
  result['passing nodes shown'] = await timed(() => press('p'));
  done([result, document.querySelector('.status').textContent]);
})();
"""


OPENING = """
const done = arguments[0];
const frame = () => new Promise((next) => requestAnimationFrame(() => requestAnimationFrame(next)));
const canvas = document.querySelector('.canvas');
const status = document.querySelector('.status');
(async () => {
  const steps = [];
  for (let step = 0; step < 4; step++) {
    const began = performance.now();
    canvas.dispatchEvent(new KeyboardEvent('keydown', {key: 'e', bubbles: true}));
    const script = performance.now() - began;
    await frame();
    steps.push([script, performance.now() - began, status.textContent]);
  }
  done(steps);
})();
"""


def ours(path: str, chrome: Any) -> None:
    dump = irtool.load(path)
    count = sum(len(graph.nodes) for graph in dump.graphs)
    began = time.process_time()
    text = render_page(graph_page(dump))
    wrote = time.process_time() - began
    print(f"{path}: {count:,} nodes, page {len(text) / 1e6:.2f} MB, written in {wrote:.2f} CPU s")
    first = min(opened(chrome, text, "document.documentElement.dataset.ready") for _ in range(3))
    print(f"  first picture {first:.0f} ms")
    tasks, status = chrome.execute_async_script(TASKS)
    for name, (script, frame) in tasks.items():
        print(f"  {name:24} {script:7.1f} ms script, {frame:7.1f} ms to the second frame after")
    print(f"  at the end: {status}")
    opened(chrome, text, "document.documentElement.dataset.ready")
    for number, (script, frame, status) in enumerate(chrome.execute_async_script(OPENING), 1):
        print(f"  open all, step {number:<9} {script:7.1f} ms script, {frame:7.1f} ms: {status}")
    console = [entry["message"] for entry in chrome.get_log("browser")]
    print(f"  console: {console or 'nothing'}")


# -- libraries ---------------------------------------------------------------------------------


def flat_graph(dump: Dump) -> tuple[list[str], list[tuple[int, int]]]:
    """All boxes of a dump without groups, and the lines between them."""
    data = graph_data(dump)
    kinds, edges = data["nodes"]["kind"], data["edges"]
    ops = [data["strings"][op] for op in data["nodes"]["op"]]
    shown = [number for number, kind in enumerate(kinds) if kind not in (PASSING, MONAD)]
    shown.sort(key=lambda number: ops[number] == "Parameter")  # statements first, for parts of it
    place = {number: index for index, number in enumerate(shown)}

    def sources(number: int) -> set[int]:
        found, pending, seen = set[int](), [number], {number}
        while pending:
            item = pending.pop()
            own = edges[item]
            first = ops[item] in ("Load", "Depend")
            if item != number and ops[item] == "UpdateState":
                continue
            for at in range(0, len(own), 3):
                source = own[at]
                if source in seen or (item != number and first and own[at + 1]):
                    continue
                seen.add(source)
                if source in place:
                    found.add(source)
                else:
                    pending.append(source)
        return found

    lines = [(place[tail], place[head]) for head in shown for tail in sources(head)]
    return [ops[number] for number in shown], lines


VIS = """<!DOCTYPE html><meta charset=utf-8><div id=g style="width:1300px;height:800px"></div>
<script>%s</script><script>
const [names, lines] = %s;
const nodes = names.map((label, id) => ({id, label, shape: 'box'}));
const edges = lines.map(([from, to]) => ({from, to, arrows: 'to'}));
setTimeout(() => {
  const net = new vis.Network(document.getElementById('g'), {nodes, edges}, {physics: false,
    layout: {hierarchical: {enabled: true, direction: 'UD', sortMethod: 'directed'}}});
  net.once('afterDrawing', () => { window.done = performance.now(); });
}, 0);
</script>"""

DAGRE = """<!DOCTYPE html><meta charset=utf-8><script>%s</script><script>
const [names, lines] = %s;
const nodes = names.map((label, v) => ({v: String(v), width: 90, height: 30}));
const edges = lines.map(([v, w]) => ({v: String(v), w: String(w), minlen: 1, weight: 1, width: 0,
  height: 0, labeloffset: 10, labelpos: 'r'}));
setTimeout(() => {
  dagre.layout(nodes, edges, {}, {log: ''});
  window.done = performance.now();
}, 0);
</script>"""


def packaged(package: str, pattern: str) -> str:
    found = importlib.util.find_spec(package)
    assert found is not None, package
    assert found.submodule_search_locations is not None, package
    folder = Path(found.submodule_search_locations[0])
    return max(folder.rglob(pattern)).read_text(encoding="utf-8")


def libraries(path: str, chrome: Any) -> None:
    names, lines = flat_graph(irtool.load(path))
    vis = packaged("pyvis", "vis-network.min.js")
    dagre = packaged("netron", "dagre.js").replace("export const { layout, Graph } = dagre;", "")
    for most in (1000, 3000, len(names)):
        part = [(tail, head) for tail, head in lines if tail < most and head < most]
        data = json.dumps([names[:most], part])
        for name, page in (("vis-network", VIS % (vis, data)), ("dagre", DAGRE % (dagre, data))):
            try:
                took = f"{opened(chrome, page, 'window.done') / 1000:.1f} s"
            except Exception as error:
                took = f"not in {PATIENCE} s ({type(error).__name__})"
                chrome.quit()
                chrome = browser()
            print(f"  {name:12} {most:6,} boxes, {len(part):6,} lines: {took}", flush=True)
    chrome.quit()


def main() -> None:
    arguments = sys.argv[1:]
    chrome = browser()
    if arguments[:1] == ["--libraries"]:
        libraries(arguments[1], chrome)
        return
    for path in arguments:
        ours(path, chrome)
    chrome.quit()


if __name__ == "__main__":
    main()
