"""What language servers answer: irtool's beside MLIR's and ruff's, each on files of its own kind.

    python benchmarks/editor_others.py [--mlir mlir-lsp-server] [--ruff ruff]

Each feature is asked as an editor asks it, on a file that is right and on one with something wrong;
"yes" is an answer that holds something.  A server that is not installed is left out.
"""

from __future__ import annotations

import argparse
import shutil
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from queue import Empty
from typing import Any, cast

from benchmarks.editor import Client

SAMPLES = Path(__file__).resolve().parents[1] / "samples"

MLIR = """\
func.func @callee(%a: i32) -> i32 {
  %b = arith.addi %a, %a : i32
  return %b : i32
}

func.func @caller(%a: i32) -> i32 {
  %c = func.call @callee(%a) : (i32) -> i32
  %d = arith.muli %c, NAME : i32
  return %d : i32
}
"""

PYTHON = """\
import os


def callee(a: int) -> int:
    \"\"\"Double a number.\"\"\"
    return a + a


def caller(a):
    return callee(a)
"""

Place = tuple[int, int]
"""A line and a column, from 0."""


@dataclass(frozen=True, slots=True)
class Document:
    """A file, and the names in it that are asked about."""

    path: Path
    language: str
    text: str
    used: Place
    forward: Place | None = None
    backward: Place | None = None

    def after(self, line: str, name: str) -> Place:
        """Where ``name`` stands in the first line that begins with ``line``."""
        lines = self.text.split("\n")
        row = next(row for row, text in enumerate(lines) if text.startswith(line))
        return row, lines[row].index(name) + 1


@dataclass(frozen=True, slots=True)
class Server:
    """A language server, and the two files that it is asked about."""

    name: str
    command: Sequence[str]
    right: Document
    wrong: Document
    query: str


def servers(mlir: str, ruff: str, folder: Path) -> list[Server]:
    """Those that are here."""
    others = [
        Server(
            "mlir-lsp-server",
            (mlir,),
            written(folder / "right.mlir", "mlir", MLIR.replace("NAME", "%c"), "  %d", "%c"),
            written(folder / "wrong.mlir", "mlir", MLIR.replace("NAME", "%e"), "  %d", "%e"),
            "callee",
        ),
        Server(
            "ruff server",
            (ruff, "server"),
            written(
                folder / "right.py",
                "python",
                PYTHON.replace("import os\n", "", 1),
                "    return c",
                "callee",
            ),
            written(folder / "wrong.py", "python", PYTHON, "import", "os"),
            "callee",
        ),
    ]
    return [irtool(folder), *(other for other in others if shutil.which(other.command[0]))]


def irtool(folder: Path) -> Server:
    """The one here, with the Python file that the dump names."""
    (folder / "net.py").write_text("# the network\n" * 90, encoding="utf-8")
    validate = (SAMPLES / "mlp_semi_auto/20_validate_0080.ir").read_text(encoding="utf-8")
    text = validate.replace("In file net.py", f"In file {folder / 'net.py'}")
    right = written(folder / "20_validate_0080.ir", "mindspore-ir", text, "  %7(", "%5")
    right = replace(
        right, forward=right.after("  %7(", "%7"), backward=right.after("  %53(", "%53")
    )
    refused = (SAMPLES / "mlp_rejected/step_parallel_begin_0018.ir").read_text(encoding="utf-8")
    wrong = written(folder / "step_parallel_begin_0018.ir", "mindspore-ir", refused, "  %8(", "%8")
    (folder / "case.json").write_bytes((SAMPLES / "mlp_rejected/case.json").read_bytes())
    command = (sys.executable, "-m", "irtool", "lsp")
    return Server("irtool lsp", command, right, wrong, 'op == "MatMul"')


def written(path: Path, language: str, text: str, line: str, name: str) -> Document:
    """A document that is there as a file, asked about a name in a line."""
    path.write_text(text, encoding="utf-8")
    document = Document(path, language, text, (0, 0))
    return replace(document, used=document.after(line, name))


def features(document: Document) -> list[tuple[str, str, Mapping[str, Any]]]:
    """Name, method and parameters of each."""
    end = {"line": document.text.count("\n"), "character": 0}
    everything = {"start": {"line": 0, "character": 0}, "end": end}
    here = position(document.used)
    forward, backward = (
        here if place is None else position(place)
        for place in (document.forward, document.backward)
    )
    there = {"range": {"start": here["position"], "end": here["position"]}}
    options = {"tabSize": 4, "insertSpaces": True}
    return [
        ("hover", "hover", here),
        ("go to definition", "definition", here),
        ("go to type definition", "typeDefinition", forward),
        ("go to implementation", "implementation", forward),
        ("go to declaration", "declaration", backward),
        ("references", "references", {**here, "context": {"includeDeclaration": True}}),
        ("highlights", "documentHighlight", here),
        ("outline", "documentSymbol", {}),
        ("folding", "foldingRange", {}),
        ("semantic colours", "semanticTokens/full", {}),
        ("inlay hints", "inlayHint", {"range": everything}),
        ("code lens", "codeLens", {}),
        ("quick fixes", "codeAction", there),
        ("completion", "completion", here),
        ("rename", "prepareRename", here),
        ("formatting", "formatting", {"options": options}),
        ("diagnostics", "diagnostic", {}),
    ]


def position(place: Place) -> dict[str, Any]:
    """A place as the protocol has it."""
    return {"position": {"line": place[0], "character": place[1]}}


def tried(server: Server) -> dict[str, str]:
    """What a server answers, by feature: the best of both files."""
    client = Client(server.command)
    start = {"processId": None, "rootUri": None, "capabilities": CAPABILITIES}
    client.ask("initialize", start, 60)
    client.notify("initialized", {})
    best: dict[str, str] = {}
    for document in (server.right, server.wrong):
        uri = document.path.as_uri()
        item = {"uri": uri, "languageId": document.language, "version": 1, "text": document.text}
        client.notify("textDocument/didOpen", {"textDocument": item})
        diagnostics = published(client)
        for name, method, parameters in features(document):
            whole = {"textDocument": {"uri": uri}, **parameters}
            if method == "codeAction":
                whole["context"] = {"diagnostics": diagnostics}
            told = answer(client, f"textDocument/{method}", whole)
            if method == "diagnostic" and diagnostics:
                told = "yes"
            best[name] = min(best.get(name, told), told, key=ANSWERS.index)
    best["search in all files"] = answer(client, "workspace/symbol", {"query": server.query})
    client.process.kill()
    return best


ANSWERS = ("yes", "empty", "no answer", "no")
"""From the best on."""

CAPABILITIES = {
    "textDocument": {
        "codeAction": {"codeActionLiteralSupport": {"codeActionKind": {"valueSet": ["quickfix"]}}},
        "documentSymbol": {"hierarchicalDocumentSymbolSupport": True},
        "publishDiagnostics": {},
    }
}


def published(client: Client) -> list[Any]:
    """Diagnostics, once nothing more comes."""
    latest: list[Any] = []
    seconds = 15.0
    while True:
        try:
            latest = client.published.get(timeout=seconds)["diagnostics"] or latest
        except Empty:
            return latest
        seconds = 4.0


def answer(client: Client, method: str, parameters: Mapping[str, Any]) -> str:
    """One of :data:`ANSWERS`."""
    try:
        result = client.ask(method, parameters, 30)
    except RuntimeError:
        return "no"
    except Empty:
        return "no answer"
    held: object = result
    for key in ("items", "data"):
        if isinstance(result, dict) and key in result:
            held = cast("dict[str, object]", result)[key]
    return "yes" if held else "empty"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--mlir", default="mlir-lsp-server")
    parser.add_argument("--ruff", default="ruff")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        asked = servers(given.mlir, given.ruff, Path(folder))
        columns = {server.name: tried(server) for server in asked}
    print(f"| asked | {' | '.join(columns)} |")
    print(f"| --- |{' --- |' * len(columns)}")
    for feature in next(iter(columns.values())):
        print(f"| {feature} | {' | '.join(column[feature] for column in columns.values())} |")


if __name__ == "__main__":
    main()
