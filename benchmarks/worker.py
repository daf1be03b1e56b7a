"""One measurement in a process of its own: ``worker.py KIND FILE…`` prints it as JSON."""

from __future__ import annotations

import gc
import json
import sys
import time
from pathlib import Path
from typing import Any

clock = time.process_time


def irtool(first: str, *later: str) -> dict[str, Any]:
    """Read ``first`` cold, then each of ``later`` in the same process."""
    begun = clock()
    from irtool import load

    imported = clock()
    from touch import touch

    started = clock()
    dump = load(first)
    loaded = clock()
    nodes = [touch(dump)]
    result: dict[str, Any] = {
        "import": imported - begun,
        "cold": clock() - started,
        "touch": clock() - loaded,
        "later": [],
    }
    for path in later:
        del dump
        gc.collect()
        started = clock()
        dump = load(path)
        nodes.append(touch(dump))
        result["later"].append(clock() - started)
    return {**result, "nodes": nodes}


def folder(listing: str) -> dict[str, Any]:
    """Read every file that ``listing`` names."""
    begun = clock()
    from touch import touch

    from irtool import load

    started = clock()
    nodes = sum(touch(load(path)) for path in Path(listing).read_text().splitlines())
    return {"cold": clock() - started, "import": started - begun, "nodes": nodes}


def jobs(count: str, listing: str) -> dict[str, Any]:
    """Wall time of a folder read by ``count`` processes, the way the command line does it."""
    from irtool.cli.work import run_all

    paths = Path(listing).read_text().splitlines()
    begun = time.perf_counter()
    total = sum(outcome.get() for outcome in run_all(_count, paths, int(count), bar=False))
    return {"wall": time.perf_counter() - begun, "nodes": total}


def _count(path: str) -> int:
    from touch import touch

    from irtool import load

    return touch(load(path))


def plain(*paths: str) -> dict[str, Any]:
    """The same models by plain Lark on every statement: no templates, no memo."""
    from touch import touch

    from irtool.syntax.reader import loads
    from irtool.syntax.records import Records

    texts = [Path(path).read_bytes().decode("utf-8", "surrogateescape") for path in paths]
    begun = clock()  # building the parser counts, as it does in a cold read
    nodes = sum(touch(loads(text, records=Records(plain=True))) for text in texts)
    return {"cpu": clock() - begun, "nodes": nodes}


def tree(*paths: str) -> dict[str, Any]:
    """Lark's own trees of every statement and type line: nothing is made of them."""
    from lark import Lark

    from irtool.syntax import scanner
    from irtool.syntax.grammar_files import grammar_text

    texts = [Path(path).read_bytes().decode("utf-8", "surrogateescape") for path in paths]
    begun, nodes, failed = clock(), 0, 0  # building the parser counts
    parser = Lark(
        grammar_text("dump.lark"), start=["statement", "type_line"], parser="lalr",
        maybe_placeholders=False,
    )  # fmt: skip
    for text in texts:
        position = text.find("\nsubgraph @")
        for found in scanner.STATEMENT.finditer(text, max(position, 0)):
            nodes += 1
            lines = [(found[1][2:], "statement")]
            lines += [(line, "type_line") for line in found[2].splitlines()]
            for line, start in lines:
                try:
                    parser.parse(line, start=start)
                except Exception:
                    failed += 1  # continuation lines and odd names: irtool's reader knows better
    return {"cpu": clock() - begun, "nodes": nodes, "failed": failed}


def memory(first: str, second: str) -> dict[str, Any]:
    """Memory that a model keeps: of the second dump alone, and of the first with the templates."""
    import tracemalloc

    from irtool import load

    load(b"# IR entry: @a\nsubgraph @a() {\n  %1(a) = F(%0)\n}\n")  # builds the parser
    gc.collect()
    resident = _resident()
    tracemalloc.start()
    dump = load(first)
    gc.collect()
    all_of_it = tracemalloc.get_traced_memory()[0]
    tracemalloc.stop()
    tracemalloc.start()
    other = load(second)
    gc.collect()
    model = tracemalloc.get_traced_memory()[0]
    tracemalloc.stop()
    nodes = [sum(len(graph.nodes) for graph in each.graphs) for each in (dump, other)]
    return {"first": all_of_it, "model": model, "nodes": nodes, "start": resident}


def resident(first: str) -> dict[str, Any]:
    """Growth of the process by one dump."""
    from irtool import load

    load(b"# IR entry: @a\nsubgraph @a() {\n  %1(a) = F(%0)\n}\n")
    gc.collect()
    before = _resident()
    dump = load(first)
    gc.collect()
    grown = _resident() - before
    return {"grown": grown, "nodes": sum(len(graph.nodes) for graph in dump.graphs)}


def _resident() -> int:
    import resource

    try:
        return int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize()
    except OSError:
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


if __name__ == "__main__":
    kinds = (irtool, folder, jobs, plain, tree, memory, resident)
    chosen = {kind.__name__: kind for kind in kinds}[sys.argv[1]]
    print(json.dumps(chosen(*sys.argv[2:])))
