"""How quickly the language server answers, asked over its streams as an editor does.

    python benchmarks/editor.py DUMP...                 # each as it is
    python benchmarks/editor.py DUMP --megabytes 100    # its statements repeated up to that size

A dump counts as open when the first hover is answered.  "while busy" are hovers that are asked
while the analyses still run.  Behind times stand, where the system tells them, the server's own
seconds of processor: on a machine with other work they say more than the clock.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import re
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from queue import Empty, Queue
from statistics import median
from typing import Any

from irtool.syntax.source import read_content

HOVERS = 50
_NUMBER = re.compile(r"%(\d+)\b")
_WHOLE = {"start": {"line": 0, "character": 0}, "end": {"line": 1 << 30, "character": 0}}


class Client:
    """Just enough of a client: it writes requests and waits for their answers."""

    def __init__(self, command: Sequence[str] = (sys.executable, "-m", "irtool", "lsp")) -> None:
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.count = 0
        self.answers: dict[int, Queue[Any]] = {}
        self.published: Queue[Any] = Queue()
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self) -> None:
        stream = self.process.stdout
        assert stream is not None
        while True:
            size = 0
            while (line := stream.readline()) not in (b"\r\n", b""):
                if line.lower().startswith(b"content-length:"):
                    size = int(line.split(b":")[1])
            if not size:
                return
            message = json.loads(stream.read(size))
            if "method" not in message:
                self.answers[message["id"]].put(message)
            elif message["method"] == "textDocument/publishDiagnostics":
                self.published.put(message["params"])

    def notify(self, method: str, params: Mapping[str, Any]) -> None:
        self._write({"method": method, "params": params})

    def ask(self, method: str, params: Mapping[str, Any], seconds: float = 600) -> Any:
        self.count += 1
        answer = self.answers[self.count] = Queue()
        self._write({"id": self.count, "method": method, "params": params})
        message = answer.get(timeout=seconds)
        if "error" in message:
            raise RuntimeError(message["error"]["message"])
        return message["result"]

    def _write(self, message: dict[str, Any]) -> None:
        data = json.dumps({"jsonrpc": "2.0", **message}).encode()
        assert self.process.stdin is not None
        self.process.stdin.write(b"Content-Length: %d\r\n\r\n" % len(data) + data)
        self.process.stdin.flush()

    def processor(self) -> float | None:
        """Seconds that the server computed so far."""
        try:
            text = Path(f"/proc/{self.process.pid}/stat").read_text(encoding="utf-8")
        except OSError:
            return None
        fields = text.rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def memory(self) -> str:
        """The most that the server ever held, where the system tells it."""
        try:
            status = Path(f"/proc/{self.process.pid}/status").read_text(encoding="utf-8")
        except OSError:
            return "not known"
        found = re.search(r"VmHWM:\s+(\d+) kB", status)
        return f"{int(found[1]) / 1024:.0f} MiB" if found else "not known"


def repeated(text: str, size: int) -> str:
    """A dump with the statements of its last graph repeated, numbered on, up to ``size``."""
    start = text.index("{\n", text.rindex("\nsubgraph @")) + 2
    end = text.rindex("  Return(")
    body = text[start:end]
    step = 1 + max(int(found) for found in re.findall(r"^  %(\d+)\(", body, re.MULTILINE))
    copies = max(1, round((size - len(text)) / len(body)) + 1)
    bodies = [numbered_on(body, copy * step) for copy in range(copies)]
    return text[:start] + "".join(bodies) + text[end:]


def numbered_on(body: str, by: int) -> str:
    """Statements with all numbers of nodes raised."""
    return _NUMBER.sub(lambda found: f"%{int(found[1]) + by}", body)


def measure(path: Path, text: str, seed: int, waits: bool) -> None:
    """Open a dump, ask for everything, and print how long each answer took."""
    rows = [row for row, line in enumerate(text.split("\n")) if re.match(r"  %\d+\(", line)]
    chosen = random.Random(seed).choices(rows, k=2 * HOVERS)
    uri = path.resolve().as_uri()
    document = {"textDocument": {"uri": uri}}
    client = Client()
    clock = Clock(client)
    client.ask("initialize", {"processId": None, "rootUri": None, "capabilities": {}})
    client.notify("initialized", {})
    print(f"{path.name}: {len(text.encode()) / 1e6:.1f} MB, {len(rows)} statements, seed {seed}")
    clock.show("server starts")

    def hover(row: int) -> float:
        start = time.perf_counter()
        place = {"line": row, "character": 3}
        found = client.ask("textDocument/hover", {**document, "position": place})
        assert found is not None
        return time.perf_counter() - start

    clock = Clock(client)
    item = {"uri": uri, "languageId": "mindspore-ir", "version": 1, "text": text}
    client.notify("textDocument/didOpen", {"textDocument": item})
    hover(rows[0])
    clock.show("opens")
    show("hover, while busy", [hover(row) for row in chosen[:HOVERS]])
    if waits:
        wait(client)
    show("hover", [hover(row) for row in chosen[HOVERS:]])
    for name, method, params in questions(rows):
        clock = Clock(client)
        client.ask(method, {**document, **params})
        clock.show(name)
    clock = Clock(client)
    change = {"range": {k: {"line": 0, "character": 0} for k in ("start", "end")}, "text": "\n"}
    versioned = {"textDocument": {"uri": uri, "version": 2}, "contentChanges": [change]}
    client.notify("textDocument/didChange", versioned)
    hover(rows[0] + 1)
    clock.show("hover after a change")
    print(f"  {'memory of the server':24} {client.memory()}")
    client.process.kill()


class Clock:
    """Seconds since it was made, on the wall and of the server."""

    def __init__(self, client: Client) -> None:
        self.client = client
        self.start = time.perf_counter()
        self.before = client.processor()

    def show(self, name: str) -> None:
        """Print a line."""
        wall, now = time.perf_counter() - self.start, self.client.processor()
        text = f"{wall * 1000:8.1f} ms"
        if now is not None and self.before is not None:
            text += f"  ({(now - self.before) * 1000:.0f} ms of processor)"
        print(f"  {name:24} {text}", flush=True)


def wait(client: Client) -> None:
    """Until nothing more was published for a while."""
    quiet = 3.0
    while True:
        try:
            client.published.get(timeout=quiet)
        except Empty:
            return


def questions(rows: list[int]) -> list[tuple[str, str, dict[str, Any]]]:
    """What is asked once of each dump."""
    middle = rows[len(rows) // 2]
    place = {"position": {"line": middle, "character": 3}}
    page = {"start": {"line": middle, "character": 0}, "end": {"line": middle + 60, "character": 0}}
    context = {"context": {"includeDeclaration": True}}
    actions = {"range": page, "context": {"diagnostics": []}}
    return [
        ("definition", "textDocument/definition", place),
        ("references, first time", "textDocument/references", {**place, **context}),
        ("references", "textDocument/references", {**place, **context}),
        ("implementation", "textDocument/implementation", place),
        ("inlay hints, a page", "textDocument/inlayHint", {"range": page}),
        ("tokens, a page", "textDocument/semanticTokens/range", {"range": page}),
        ("tokens, all", "textDocument/semanticTokens/full", {}),
        ("code actions, a page", "textDocument/codeAction", actions),
        ("outline", "textDocument/documentSymbol", {}),
        ("folding", "textDocument/foldingRange", {}),
        ("code lenses", "textDocument/codeLens", {}),
        ("search by query", "workspace/symbol", {"query": 'op == "MatMul"'}),
    ]


def show(name: str, seconds: list[float]) -> None:
    text = f"{median(seconds) * 1000:8.1f} ms"
    if len(seconds) > 1:
        text += f" median, {max(seconds) * 1000:.1f} ms at most, of {len(seconds)}"
    print(f"  {name:24} {text}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("dumps", nargs="+", type=Path, metavar="DUMP")
    parser.add_argument("--megabytes", type=float, help="repeat statements up to this size")
    parser.add_argument("--busy", action="store_true", help="don't wait for check and lint")
    parser.add_argument("--seed", type=int, default=1)
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        for path in asked.dumps:
            data = read_content(path).data
            text = data.decode("utf-8", "surrogateescape")
            if asked.megabytes:
                text = repeated(text, int(asked.megabytes * 1e6))
                path = Path(folder) / path.name.removesuffix(".xz")
                path.write_text(text, encoding="utf-8", errors="surrogateescape")
            measure(path, text, asked.seed, not asked.busy)


if __name__ == "__main__":
    main()
