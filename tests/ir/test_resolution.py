"""Every operand of every node stands for something, and users know their producers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import irtool
from irtool.ir.dump import Dump
from irtool.ir.graph import AmbiguousReference, GraphParameter, Node, Unresolved


def dump_files(folder: Path) -> Iterator[Path]:
    for path in sorted(folder.rglob("*")):
        if (
            path.is_file()
            and path.name.endswith((".ir", ".ir.xz"))
            and "actor_set" not in str(path)
        ):
            yield path


def count(dump: Dump) -> Counter[str]:
    found: Counter[str] = Counter()
    for graph in dump.graphs:
        for node in graph.nodes:
            for reference in node.references():
                source = graph.source(reference)
                if isinstance(source, AmbiguousReference):
                    found["ambiguous"] += 1
                elif isinstance(source, Unresolved):
                    found["unresolved"] += 1
                else:
                    found["resolved"] += 1
    return found


def mistyped(dump: Dump) -> list[tuple[int, str]]:
    """Operands whose type line disagrees with what they were taken for."""
    found: list[tuple[int, str]] = []
    for node in dump.nodes():
        for type, source in zip(node.input_types, node.inputs, strict=False):
            if isinstance(source, AmbiguousReference):
                source = source.likely
            if isinstance(source, Node):
                given = source.output_type
            elif isinstance(source, GraphParameter):
                given = source.type
            else:
                continue
            if type is not None and given is not None and type.short() != given.short():
                found.append((node.line, type.short()))
    return found


def test_samples_have_no_dangling_reference(samples: Path) -> None:
    for path in dump_files(samples):
        if path.name.startswith(("search_page", "fragment")):
            continue
        dump = irtool.load(path)
        assert count(dump)["unresolved"] == 0, path
        assert mistyped(dump) == [], path


def test_excerpts_say_what_they_lack(samples: Path) -> None:
    dump = irtool.load(samples / "search_page_step_parallel_begin.ir")
    first = next(dump.nodes())
    assert isinstance(first.inputs[0], Unresolved)


@pytest.mark.slow
def test_corpus_resolves(corpus: Path, load_once: Callable[[Path], Dump]) -> None:
    total: Counter[str] = Counter()
    for folder in ("verdicts", "versions", "planning", "large", "precision"):
        for path in dump_files(corpus / folder):
            dump = load_once(path)
            total += count(dump)
            assert mistyped(dump) == [], path
    assert total["unresolved"] == 0
    assert total["ambiguous"] <= total["resolved"] * 1e-4


BY_LABEL = """\
subgraph @f(%para0_x, %para0_y) {
  %0(a) = Sub(%para0_y, %para0_x)
      : (<Tensor[Float32], (2)>, <Tensor[Float32], (2)>) -> (<Tensor[Float32], (2)>)
  Return(%0)
      : (<Tensor[Float32], (2)>)
}
"""


def test_parameters_of_failed_compilations_are_all_numbered_zero() -> None:
    (node, _) = irtool.loads(BY_LABEL).nodes()
    assert [getattr(source, "label", None) for source in node.inputs] == ["y", "x"]


CLOSURES = """\
subgraph @inner parent: [subgraph @outer](%para2_u) {
  %0(a) = ReLU($(@outer:out))
      : (<Tensor[Float32], (2)>) -> (<Tensor[Float32], (2)>)
  Return(%0)
      : (<Tensor[Float32], (2)>)
}

subgraph @outer(%para1_x) {
  %0(out) = Cast(%para1_x, I64(1))
      : (<Tensor[Float16], (2)>, <Int64, NoShape>) -> (<Tensor[Float16], (2)>)
  %1(out) = Sub(%0, %0)
      : (<Tensor[Float16], (2)>, <Tensor[Float16], (2)>) -> (<Tensor[Float32], (2)>)
  %2(out) = Neg(%1)
      : (<Tensor[Float32], (2)>) -> (<Tensor[Float32], (2)>)
  %3(f) = Partial(@inner)
      : (<Func, NoShape>) -> (<Func, NoShape>)
  %4(out) = %3[@@inner](UMonad[U])
      : (<UMonad, NoShape>) -> (<Tensor[Float32], (2)>)
  Return(%4)
      : (<Tensor[Float32], (2)>)
}
"""


def test_a_name_that_several_nodes_bear_is_ambiguous() -> None:
    dump = irtool.loads(CLOSURES)
    relu = next(dump.nodes(op="ReLU"))
    (source,) = relu.inputs
    assert isinstance(source, AmbiguousReference)
    # The type rules out the first, and what is computed after the closure's use cannot be meant.
    assert [node.id for node in source.candidates] == ["%1", "%2", "%4"]
    assert source.likely.id == "%2"
    assert relu in source.likely.users


def test_users_are_the_inverse_of_inputs(samples: Path) -> None:
    dump = irtool.load(samples / "mlp_semi_auto" / "20_validate_0080.ir")
    for node in dump.nodes():
        for source in node.inputs:
            if isinstance(source, Node):
                assert node in source.users
        for user in node.users:
            assert node in user.inputs


def test_names_that_all_nodes_share_take_linear_time() -> None:
    lines = [f"  %{i}(x) = Neg(%{i - 1})" for i in range(1, 20_000)]
    text = "subgraph @f(%para1_x) {\n  %0(x) = Neg(%para1_x)\n" + "\n".join(lines) + "\n}\n"
    (graph,) = irtool.loads(text).graphs
    assert len(graph.named("x")) == 20_000
