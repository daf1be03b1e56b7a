"""Every dump is read: no problem in any real one, and no statement is missing."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import irtool
from irtool.ir.dump import Dump
from irtool.syntax.source import read_content

FILES_NAMED = 5
"""Files that a failing test names, so that its report stays small."""


def dumps_in(folder: Path) -> list[Path]:
    names = ("*.ir", "*.ir.xz", "trace_code_graph_*", "*__trace_code_graph_*")
    found = {path for name in names for path in folder.rglob(name) if path.is_file()}
    others = ("actor_set", "tracker_graph")  # written beside dumps, in forms of their own
    return sorted(path for path in found if not any(name in path.name for name in others))


def content(path: Path) -> str:
    return read_content(path).data.decode("utf-8")


def statements(read: Dump) -> int:
    return sum(len(graph.nodes) for graph in read.graphs)


def unread(paths: list[Path]) -> list[str]:
    """The first problems of the first files that have some."""
    found: list[str] = []
    for path in paths:
        problems = irtool.load(path).problems
        found += [str(problem) for problem in problems[:1]]
        if len(found) == FILES_NAMED:
            break
    return found


def header_count(read: Dump) -> int | None:
    """The number of statements that the header states, read from the printed text."""
    stated = re.search(r"^Total number of cnodes: (\d+)$", irtool.dumps(read), re.MULTILINE)
    return int(stated[1]) if stated else None


# ---- samples -------------------------------------------------------------------------------------


def test_every_sample_is_read_without_problem(samples: Path) -> None:
    paths = dumps_in(samples)
    assert len(paths) >= 15
    assert unread(paths) == []


def test_every_sample_has_nodes(samples: Path) -> None:
    assert [path.name for path in dumps_in(samples) if not statements(irtool.load(path))] == []


def test_every_node_knows_its_line(samples: Path) -> None:
    for path in dumps_in(samples):
        read = irtool.load(path)
        lines = ["", *content(path).split("\n")]
        for node in read.nodes():
            start = "eturn(" if node.is_return else f"{node.id}({node.name}) = "
            assert start in lines[node.line], f"{path}:{node.line}"
            assert lines[node.line][node.column - 1] in "%Rr", f"{path}:{node.line}"


def test_every_parameter_knows_its_line(samples: Path) -> None:
    for path in dumps_in(samples):
        lines = ["", *content(path).split("\n")]
        for parameter in irtool.load(path).parameters:
            assert lines[parameter.line].startswith(parameter.id), f"{path}:{parameter.line}"


# ---- the corpus ----------------------------------------------------------------------------------


@pytest.mark.parametrize("folder", ["versions", "verdicts", "planning", "precision", "large"])
def test_every_dump_of_the_corpus_is_read_without_problem(corpus: Path, folder: str) -> None:
    paths = dumps_in(corpus / folder)
    stated = 0
    unread: list[str] = []
    miscounted: list[str] = []
    for path in paths:
        read = irtool.load(path)
        unread += [str(problem) for problem in read.problems[:1]]
        if read.declared_nodes is not None:
            stated += 1
            if read.declared_nodes != statements(read):
                miscounted.append(f"{path}: {read.declared_nodes} stated, {statements(read)} read")
    assert unread[:FILES_NAMED] == []
    assert miscounted[:FILES_NAMED] == []
    assert stated > len(paths) // 2, "few headers state the number of nodes"


def test_the_number_of_statements_is_the_one_printed_in_the_header(corpus: Path) -> None:
    paths = dumps_in(corpus / "planning")
    stated = {path: header_count(irtool.load(path)) for path in paths}
    assert {path for path, count in stated.items() if count is None} == set()
    assert {path for path, count in stated.items() if count != statements(irtool.load(path))} == (
        set()
    )


def test_an_actor_set_is_one_problem_and_no_nodes(corpus: Path) -> None:
    paths = [path for path in (corpus / "versions").rglob("*actor_set*") if path.is_file()]
    assert paths
    for path in paths:
        read = irtool.load(path)
        assert [problem.code for problem in read.problems] == ["SYN005"], path
        assert "actor set" in read.problems[0].message
        assert list(read.nodes()) == []
        assert irtool.dumps(read).encode("utf-8", "surrogateescape") == path.read_bytes()


BROKEN_FRAGMENTS: dict[str, list[str]] = {}
"""Codes of the problems by fragment.  Those of the documentation lost text but no structure."""


def test_fragments_of_the_documentation_are_read_unless_broken(corpus: Path) -> None:
    found = {path.name: irtool.load(path).problems for path in dumps_in(corpus / "documentation")}
    assert len(found) > 15
    codes = {name: [p.code for p in problems] for name, problems in found.items() if problems}
    assert codes == BROKEN_FRAGMENTS


def test_fragments_of_the_documentation_lose_no_statement(corpus: Path) -> None:
    statement = re.compile(r"^\s*(?:%\d+\(.*?\) = |(?:Primitive::)?[Rr]eturn[({])", re.MULTILINE)
    for path in dumps_in(corpus / "documentation"):
        expected = len(statement.findall(path.read_text(encoding="utf-8")))
        assert statements(irtool.load(path)) == expected, path


# ---- excerpts that people paste ------------------------------------------------------------------


def test_excerpt_of_the_search_page_before_slicing(samples: Path) -> None:
    read = irtool.load(samples / "search_page_step_parallel_begin.ir")
    nodes = list(read.nodes())

    assert read.problems == ()
    assert [node.id for node in nodes] == ["%2", "%3", "%4", "%5", "%6", "%7"]
    assert [node.op for node in nodes] == ["Flatten", "Load", "MatMul", "Load", "BiasAdd", "ReLU"]
    assert [node.in_strategy for node in nodes] == [
        ((8, 1, 1, 1),),
        None,
        ((4, 2), (1, 2)),
        None,
        ((4, 1), (1,)),
        ((4, 1),),
    ]
    assert [[a.short() for a in node.input_types if a] for node in nodes] == [
        ["Float32[256,1,28,28]"],
        ["Float32[512,784]", "UMonad"],
        ["Float32[256,784]", "Float32[512,784]"],
        ["Float32[512]", "UMonad"],
        ["Float32[256,512]", "Float32[512]"],
        ["Float32[256,512]"],
    ]
    assert [node.output_type.short() for node in nodes if node.output_type] == [
        "Float32[256,784]",
        "Float32[512,784]",
        "Float32[256,512]",
        "Float32[512]",
        "Float32[256,512]",
        "Float32[256,512]",
    ]
    assert {node.scope for node in nodes} == {"Default"}


def test_excerpt_of_the_search_page_after_slicing(samples: Path) -> None:
    read = irtool.load(samples / "search_page_validate.ir")
    nodes = {node.id: node for node in read.nodes()}

    assert read.problems == ()
    assert list(nodes) == ["%14", "%15", "%16", "%17", "%18"]
    assert [n.op for n in nodes.values()] == ["MatMul", "AllReduce", "Load", "BiasAdd", "ReLU"]
    reduce = nodes["%15"]
    assert reduce.attribute("group") == "2-5004544844489628105"
    assert reduce.attribute("group_ranks") == "0-1"
    assert reduce.attribute("rank_list") == (0, 1)
    assert [output.short() for n in nodes.values() if (output := n.output_type)] == [
        "Float32[64,512]",
        "Float32[64,512]",
        "Float32[512]",
        "Float32[64,512]",
        "Float32[64,512]",
    ]
    assert nodes["%14"].in_strategy == ((4, 2), (1, 2))
    assert nodes["%18"].in_strategy == ((4, 1),)
    assert reduce.inputs == (nodes["%14"],)


def test_excerpt_of_one_statement(samples: Path) -> None:
    read = irtool.load(samples / "search_page_pinned.ir")
    (node,) = read.nodes()

    assert read.problems == ()
    assert (node.id, node.name, node.op) == ("%50", "h", "Add")
    assert node.in_strategy == ((1, 1, 8), (1, 1, 8))
    assert node.user_strategy == ((1, 1, 8), (1, 1, 8))
    assert node.output_type is None
    assert node.attribute("slice_activation") is True


@pytest.mark.parametrize("name", ["step_parallel_begin", "validate", "pinned"])
def test_samples_hold_the_same_excerpts_as_the_corpus(
    corpus: Path, samples: Path, name: str
) -> None:
    file = f"search_page_{name}.ir"
    assert (samples / file).read_bytes() == (corpus / "documentation" / file).read_bytes()


def test_operands_that_an_excerpt_does_not_define_are_said_to_be_unresolved() -> None:
    (node,) = irtool.loads("%50(h) = PrimFunc_Add(%4, %para1_x)\n").nodes()
    assert [type(source).__name__ for source in node.inputs] == ["Unresolved", "Unresolved"]


@pytest.mark.parametrize("indent", ["", "  ", "    ", "\t"])
def test_an_excerpt_may_be_indented_in_any_way(indent: str) -> None:
    text = (
        f"{indent}%0(a) = ReLU(%para1_x)\n"
        f"{indent}: (<Tensor[Float32], (2)>) -> (<Tensor[Float32], (2)>)\n"
        f"{indent}# Scope: (Default)\n"
        f"{indent}%1(b) = Neg(%0)\n"
    )
    read = irtool.loads(text)
    first, second = read.nodes()

    assert read.problems == ()
    assert first.output_type is not None
    assert first.output_type.short() == "Float32[2]"
    assert first.scope == "Default"
    assert second.inputs == (first,)
    assert irtool.dumps(read) == text


@pytest.mark.parametrize("elision", ["...", "  ...", "......", "…", "      # ..."])
def test_left_out_lines_are_no_problem(elision: str) -> None:
    text = f"subgraph @g() {{\n  %0(a) = ReLU(%para1_x)\n{elision}\n  Return(%0)\n}}\n"
    read = irtool.loads(text)

    assert read.problems == ()
    assert [node.op for node in read.nodes()] == ["ReLU", "Return"]
    assert irtool.dumps(read) == text


def test_an_excerpt_without_last_line_end_is_read() -> None:
    read = irtool.loads("%0(a) = ReLU(%para1_x)")
    assert read.problems == ()
    assert [node.op for node in read.nodes()] == ["ReLU"]
    assert irtool.dumps(read) == "%0(a) = ReLU(%para1_x)"
