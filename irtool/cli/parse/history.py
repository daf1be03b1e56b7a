"""``irtool parse --history``: finds the node and the dumps of its compilation, and tells."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Sequence

from irtool.cli.answering import AnswerForm, write_answer
from irtool.cli.configuration import Configuration
from irtool.cli.inputs.begin import context_of_any
from irtool.cli.output import Output
from irtool.cli.parse.options import ParseForm, ParseOptions
from irtool.cli.report import Failure, note
from irtool.cli.where import read_query
from irtool.compare.history import PassText, history, is_compared
from irtool.ir.dump import Dump
from irtool.ir.graph import Node
from irtool.ir.run import InputFile, PassFile
from irtool.report.history import history_answer, history_report
from irtool.syntax import file_facts
from irtool.syntax.run import Compilation, load_run
from irtool.syntax.run.classes import Fingerprints
from irtool.syntax.source import DumpError, read_content

_KINDS = ("stage", "parallel", "pass")
"""Dumps of the front end; kernel graphs and actor sets hold nodes of another kind."""


def tell_history(path: str, wanted: str, options: ParseOptions, output: Output) -> int:
    """Write what each pass of a compilation made of a node.

    Args:
        path: a run folder, or a dump beside the others of its compilation.
        wanted: the node: a number (``%12``), a name, or a query.
        options: how, and in a run folder of which rank and compilation.
        output: where to.

    Returns:
        The exit status.

    Raises:
        Failure: there is no such node, or there are no dumps.
    """
    form = _answer_form(options.format)
    compilation, named = _compilation(path, options)
    files = [file for file in compilation.passes if file.kind in _KINDS]
    if not files:
        raise Failure("there are no dumps of passes here", path)
    if named is not None:
        candidates = [named]
    elif wanted.startswith("%"):
        candidates = [compilation.main]
    else:
        candidates = [compilation.main, *reversed(files)]
    nodes, file = _nodes(compilation, candidates, wanted)
    if file not in files:
        raise Failure("this dump is of no pass of the front end", file.path)
    moments = history(_passes(compilation, files), files.index(file), nodes)
    write_answer(
        output,
        form,
        answer=lambda: history_answer(
            path,
            wanted,
            moments,
            context_of_any(InputFile(compilation.main.path), Configuration()),
        ),
        report=lambda _: history_report(path, wanted, moments, options.limit),
    )
    return 0


def _answer_form(form: ParseForm) -> AnswerForm:
    try:
        return AnswerForm(form.value)
    except ValueError:
        raise Failure(f"--history has no format {form.value}", hint="table or json") from None


def _compilation(path: str, options: ParseOptions) -> tuple[Compilation, PassFile | None]:
    """The compilation, and the one of its dumps that was named."""
    folder = path
    if not file_facts.is_folder(folder):
        if not file_facts.exists(folder):
            raise Failure("no such file or folder", folder)
        folder = os.path.dirname(folder) or "."
    try:
        run = load_run(folder)
        if folder == path:
            picked = run.compilation(options.graph, options.rank)
            if picked.chosen:
                note(f"{folder}: {picked.chosen}")
            return picked, None
    except DumpError as error:
        raise Failure(error.message, error.path, hint=error.hint) from None
    except LookupError as error:
        raise Failure(str(error.args[0]).removeprefix(f"{folder}: "), folder) from None
    for compilation in run.compilations:
        for file in compilation.passes:
            file_facts.cannot_repeat()
            if os.path.samefile(file.path, path):
                return compilation, file
    raise Failure("this file is no dump of a pass", path)


def _nodes(
    compilation: Compilation, candidates: Sequence[PassFile], asked: str
) -> tuple[tuple[Node, ...], PassFile]:
    """The nodes that are meant, and the dump they stand in."""
    wanted = node_predicate("--history", asked)
    only_handed_on: Node | None = None
    for file in candidates:
        try:
            dump = compilation.read(file)
        except DumpError as error:
            note(f"{error.path}: {error.message}; left out")
            continue
        matching = list(dump.nodes(where=wanted))
        nodes = [node for node in matching if is_compared(node)]
        if nodes:
            return one_graph(dump, nodes, asked, "--history"), file
        only_handed_on = only_handed_on or next(iter(matching), None)
    if only_handed_on is not None:
        raise Failure(
            f"{asked} is {only_handed_on.op}, which only hands values on: passes make and drop "
            "these, and no history of them is kept",
            hint="ask for the operator before or behind it",
        )
    if len(candidates) == 1:
        raise Failure(f"there is no node {asked}", candidates[0].path)
    raise Failure(f"no dump of this compilation has a node {asked}", hint="--where lists nodes")


def node_predicate(option: str, asked: str) -> Callable[[Node], bool]:
    """Which nodes a number, a name or a query means.

    Args:
        option: that it was given to, for the message.
        asked: ``%12``, a name or a scope, or a query.

    Raises:
        Failure: the query can't be read.
    """
    if re.fullmatch(r"%\d+", asked):
        return lambda node: node.id == asked
    if re.search(r"[=<>\"'()]|\b(?:in|and|or|not)\b", asked):
        return read_query(option, asked)
    return lambda node: asked in (node.name, node.full_name, node.instance_name, node.scope)


def one_graph(dump: Dump, nodes: Sequence[Node], asked: str, option: str) -> tuple[Node, ...]:
    """Of equal numbers in several graphs that of the largest one: a number is a graph's own."""
    if not asked.startswith("%") or len(nodes) == 1:
        return tuple(nodes)
    node = by_graph_size(dump, nodes)[0]
    note(other_graphs_text(node, len(nodes), asked, option))
    return (node,)


def by_graph_size(dump: Dump, nodes: Sequence[Node]) -> list[Node]:
    """Nodes, those of the graphs with most statements first.

    Args:
        dump: that they are of.
        nodes: in any order, which is kept within graphs of one size.
    """
    sizes = {graph.name: len(graph.nodes) for graph in dump.graphs}
    return sorted(nodes, key=lambda node: -sizes.get(graph_name(node), 0))


def graph_name(node: Node) -> str:
    """The name of the graph that a node stands in; empty in an excerpt without one.

    Args:
        node: of any dump.
    """
    return node.graph.name if node.graph is not None else ""


def other_graphs_text(node: Node, count: int, asked: str, option: str) -> str:
    """Which of several nodes of one number is taken, and how to take another.

    Args:
        node: that is taken.
        count: how many graphs have such a node.
        asked: the number, ``%12``.
        option: that it was given to.
    """
    return (
        f"{count} graphs have a node {asked}; takes that of @{graph_name(node)} "
        f'({option} \'id == "{asked}" and graph == "NAME"\' takes another)'
    )


def _passes(compilation: Compilation, files: Sequence[PassFile]) -> list[PassText]:
    fingerprints = Fingerprints()
    passes: list[PassText] = []
    for file in files:
        try:
            text = read_content(file.path).data.decode("utf-8", "surrogateescape")
        except DumpError as error:
            note(f"{error.path}: {error.message}; left out")
            continue
        passes.append(
            PassText(
                os.path.basename(file.path),
                fingerprints.of(text, 0),
                lambda file=file: compilation.read(file),
            )
        )
    return passes
