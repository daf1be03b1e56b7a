"""``irtool parse --reduce`` and ``--redact``: a part of a dump, and dumps that may be shown."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Sequence
from typing import TypeAlias

from irtool.cli.configuration import Configuration, read_configuration
from irtool.cli.context import ContextArguments
from irtool.cli.inputs.dumps import STDIN_NAME, inputs_for, read_statements
from irtool.cli.lint.linting import Linting
from irtool.cli.lint.settings import settings_for
from irtool.cli.lint.units import with_context
from irtool.cli.lint.work import Plan, PlannedRule, surroundings_of
from irtool.cli.output import Output
from irtool.cli.parse.history import by_graph_size, node_predicate, other_graphs_text
from irtool.cli.parse.options import ParseOptions
from irtool.cli.report import Failure, note, report_problems
from irtool.ir.dump import Dump
from irtool.ir.finding import Finding
from irtool.ir.graph import Node
from irtool.ir.run import InputFile
from irtool.ir.units import plural
from irtool.linting.cache import Cache
from irtool.linting.engine import lint_compilation
from irtool.linting.facts import CompilationFacts, DumpFacts, Surroundings
from irtool.linting.kinds import kind_of_dump
from irtool.linting.rule import DumpKind, Rule
from irtool.linting.settings import Overrides
from irtool.syntax import file_facts
from irtool.syntax.redact import Redaction
from irtool.syntax.reduce import NotShown, Shows, reduced
from irtool.syntax.run.expanding import STDIN

_Shown: TypeAlias = tuple[Shows, tuple[str, ...], str]
"""Whether a part shows it, which codes that are, and with which options."""


def tell_excerpt(paths: Sequence[str], options: ParseOptions) -> int:
    """Write a part of a dump, or dumps without the user's names.

    Args:
        paths: of dumps.
        options: which part, and where to: a file, or a folder where there are several dumps.

    Returns:
        The exit status.

    Raises:
        Failure: nothing can be read, there is no such node, or several dumps have no folder.
    """
    files, problems = inputs_for(paths, options.rank, options.graph)
    report_problems(problems)
    if not files:
        return 2
    if options.reduce is not None:
        if len(files) > 1:
            raise Failure(
                f"--reduce is about one dump, and these are {len(files)}",
                hint=f"name one, {files[-1].path} say",
            )
        _write_part(files[0], options, options.reduce)
        return 0
    return _write_redacted(files, options)


# -- a part --------------------------------------------------------------------------------------


def _write_part(file: InputFile, options: ParseOptions, asked: str) -> None:
    dump = read_statements(file)
    report_problems(dump.problems)
    nodes = list(dump.nodes(where=node_predicate("--reduce", asked)))
    if not nodes:
        raise Failure(f"there is no node {asked}", dump.path)
    node, (shows, codes, known) = _chosen(file, dump, nodes, asked, options.kept_codes)
    try:
        part = reduced(dump, node, shows)
    except NotShown as error:
        raise Failure(f"{node.id} cannot be cut out: {error}", dump.path) from None
    text = _without_names(part.dump, part.text) if options.redact else part.text
    output = Output(options.output_file)
    output.write_dump(text)
    output.close()
    few, many = part.statements
    kept = (
        f"; it still shows {', '.join(codes)}{known}" if codes else "; no rule says anything of it"
    )
    more = "" if part.is_least else "; the time for it ran out, less may do"
    note(f"{plural(few, 'statement')} of {many:,} around {node.id} {node.op}{kept}{more}")


def _chosen(
    file: InputFile, dump: Dump, nodes: Sequence[Node], asked: str, keep: tuple[str, ...]
) -> tuple[Node, _Shown]:
    """The node that is meant: of equal numbers in several graphs one that rules speak of.

    Where they speak of none, or of several, that of the largest graph.
    """
    if not asked.startswith("%") or len(nodes) == 1:
        return nodes[0], _shows(file, dump, nodes[0], keep)
    ordered = by_graph_size(dump, nodes)
    codes = _speaking(file, dump, keep)
    node = next((candidate for candidate in ordered if codes(candidate)), ordered[0])
    note(other_graphs_text(node, len(nodes), asked, "--reduce"))
    return node, _shows(file, dump, node, keep)


def _speaking(
    file: InputFile, dump: Dump, keep: tuple[str, ...]
) -> Callable[[Node], frozenset[str]]:
    """Which of the wanted rules say something of a node."""
    rules, around, kind = _linting(file, dump, keep)
    facts = CompilationFacts([DumpFacts(lambda: dump, kind, dump.path)], around)
    findings = lint_compilation(facts, rules).findings
    return lambda node: frozenset(
        item.code for item in findings if _is_about(item, node) and (not keep or item.code in keep)
    )


def _without_names(dump: Dump, text: str) -> str:
    made = Redaction()
    made.look(dump)
    return made.text_of(dump)


def _shows(file: InputFile, dump: Dump, node: Node, keep: tuple[str, ...]) -> _Shown:
    """Whether a part has the findings of the node that the whole has, and which these are."""
    rules, around, kind = _linting(file, dump, keep)

    def codes_of(part: Dump) -> set[str]:
        facts = CompilationFacts([DumpFacts(lambda: part, kind, dump.path)], around)
        linted = lint_compilation(facts, rules).findings
        return {item.code for item in linted if _is_about(item, node)}

    codes = codes_of(dump)
    missing = [code for code in keep if code not in codes]
    if missing:
        raise Failure(
            f"{missing[0]} says nothing of {node.id}", dump.path,
            hint=f"of it speak: {', '.join(sorted(codes)) or 'no rules'}",
        )  # fmt: skip
    wanted = set(keep) or codes
    rules = [rule for rule in rules if rule.code in wanted]

    def shows(part: Dump) -> bool:
        return not wanted or wanted <= codes_of(part)

    return shows, tuple(sorted(wanted)), _known_text(around)


def _known_text(around: Surroundings) -> str:
    """What a part alone may not tell, as the options that say it."""
    parallel = around.parallel
    if parallel is None:
        return ""
    stages = f" --stages {parallel.stages}" if parallel.stages > 1 else ""
    return f" (with --devices {parallel.devices}{stages})"


def _is_about(item: Finding, node: Node) -> bool:
    """Numbers and graphs stay as they are in a part."""
    graph = node.graph.name if node.graph is not None else None
    return item.node == node.id and item.graph in (None, graph)


def _linting(
    file: InputFile, dump: Dump, keep: tuple[str, ...]
) -> tuple[list[Rule], Surroundings, DumpKind]:
    """All rules, and what is known beside the dump, as ``irtool lint`` has them."""
    configuration: Configuration = read_configuration(None)
    asked = settings_for(configuration, Overrides(extend_select=keep))
    planned = tuple(PlannedRule.of(rule) for rule in asked.rules)
    plan = Plan(planned, ContextArguments(), configuration, None, asked.machine, os.getpid())
    if file.path == STDIN:
        return list(asked.rules), Surroundings(), kind_of_dump(dump)
    linting = Linting(asked, plan, Cache(None))
    linting.find([file.path], file.rank, None, True)
    unit = with_context(linting.units[0], plan.machine)
    kind = unit.files[0].kind
    return (
        list(asked.rules),
        surroundings_of(unit, plan),
        kind_of_dump(dump) if kind == "other" else kind,
    )


# -- without names -------------------------------------------------------------------------------


def _write_redacted(files: Sequence[InputFile], options: ParseOptions) -> int:
    folder = options.output_file
    if len(files) > 1 and (folder is None or file_facts.is_file(folder)):
        raise Failure(
            f"{len(files)} dumps need a folder to go to", hint="--redact -o FOLDER", code="CLI003"
        )
    made = Redaction()
    for file in files:
        made.look(read_statements(file))
    if len(files) == 1:
        output = Output(folder)
        output.write_dump(made.text_of(read_statements(files[0])))
        output.close()
    else:
        assert folder is not None  # said above
        places = _places(files, made)
        for file, place in zip(files, places, strict=True):
            path = os.path.join(folder, place)
            os.makedirs(os.path.dirname(path), exist_ok=True)
            output = Output(path)
            output.write_dump(made.text_of(read_statements(file)))
            output.close()
    note(
        f"replaced {plural(len(made.replaced), 'word')} of names, paths and scopes in "
        f"{plural(len(files), 'dump')}; shapes, strategies and constants are as they were"
    )
    return 0


def _places(files: Sequence[InputFile], made: Redaction) -> list[str]:
    """Where each dump goes: its path below the folder that holds all, unpacked, without names."""
    paths = [STDIN_NAME if file.path == STDIN else os.path.abspath(file.path) for file in files]
    top = os.path.commonpath([os.path.dirname(path) for path in paths])
    return [made.name_of(re.sub(r"\.(?:gz|xz)$", "", os.path.relpath(path, top))) for path in paths]
