"""The table: entries, where they are found, and what users declare."""

from __future__ import annotations

from collections.abc import Iterator
from importlib import resources

import pytest

from irtool.operators.facts import COMPUTATIONS, TRAITS
from irtool.operators.irregular import FUNCTIONS
from irtool.operators.notation import RuleError
from irtool.operators.notation_reader import read_declarations
from irtool.operators.table import (
    UNKNOWN,
    akin,
    declare,
    entries,
    forget_declared,
    is_framework_module,
    operator_called,
    operator_of,
    rule_of,
)
from irtool.planning.propagation import choices
from irtool.planning.recursive import fitting, sources
from irtool.planning.recursive.kinds import Kind


@pytest.fixture(autouse=True)
def _own_entries_are_forgotten() -> Iterator[None]:
    yield
    forget_declared()


def test_an_entry_read_alone_says_what_it_says_in_its_file() -> None:
    folder = resources.files("irtool.operators") / "entries"
    said = {
        one.op: one
        for file in folder.iterdir()
        if file.name.endswith(".rules")
        for one in read_declarations(file.read_text(encoding="utf-8"), file.name)
    }
    assert set(said) == set(entries())
    for name, entry in entries().items():
        assert entry.rule == said[name].rule, name
        assert entry.family == said[name].family
        facts = {key: value for key, value in said[name].facts.items() if key != "like"}
        assert {key: getattr(entry, key) for key in facts} == facts


def test_every_word_of_the_table_means_something() -> None:
    searched = {word.name.lower() for word in Kind}
    fits = set(fitting.FITS) | {""}
    gives = {*sources.RESULTS, *sources.AFTER, ""}
    for name, entry in entries().items():
        assert entry.computes.replace(" ", "_") in COMPUTATIONS, name
        assert entry.traits <= set(TRAITS), name
        assert not entry.gradient_of or operator_of(entry.gradient_of).name, name
        if entry.search is not None:
            assert entry.search.kind in searched, name
            assert entry.search.fits in fits, name
            assert entry.search.gives in gives, name
        assert entry.propagates in ("", *choices.TRIED), name
        if entry.rule is not None and entry.rule.function:
            assert entry.rule.function in FUNCTIONS, name


def test_every_trait_and_way_is_used() -> None:
    table = entries().values()
    assert set(TRAITS) == {trait for entry in table for trait in entry.traits}
    searches = [entry.search for entry in table if entry.search is not None]
    assert set(fitting.FITS) == {search.fits for search in searches} - {""}
    assert {*sources.RESULTS, *sources.AFTER} == {search.gives for search in searches} - {""}
    assert set(choices.TRIED) == {entry.propagates for entry in table} - {""}


def test_an_operator_is_found_by_the_names_of_both_frameworks() -> None:
    assert operator_called("layernorm").name == "LayerNorm"
    assert operator_called("masked_fill_").name == "MaskedFill"
    assert operator_called("npu_rms_norm").name == "RmsNorm"
    assert operator_called("Conv2d").computes == "convolution"
    assert operator_called("MyOwnBlock") is UNKNOWN


def test_operands_of_a_function_may_stand_elsewhere() -> None:
    assert operator_called("layer_norm").weights == (2, 3)
    assert operator_called("LayerNorm").weights == ()


def test_modules_of_frameworks_are_known_by_their_very_names() -> None:
    assert is_framework_module("Linear")
    assert not is_framework_module("linear")
    assert not is_framework_module("MyLinear")


def test_a_gradient_knows_its_operator() -> None:
    assert operator_of("LayerNormGrad").gradient_of == "LayerNorm"
    assert operator_of("SoftmaxBackward").gradient_of == "Softmax"
    assert operator_of("LayerNorm").gradient_of == ""


def test_a_variant_of_a_name_serves_for_colours_only() -> None:
    assert akin("SomethingGrad") is UNKNOWN
    assert akin("InplaceReLU").computes == "elementwise"
    assert operator_of("InplaceReLU") is UNKNOWN


def test_what_a_user_declares_goes_before_and_the_rest_stays() -> None:
    declare("ReLU: flops 7 * output")
    entry = operator_of("ReLU")
    assert entry.flops == ("multiply", ("integer", 7), ("quantity", "output"))
    assert not entry.declared, "how it is sharded is still as measured"
    assert entry.computes == "elementwise"
    assert entry.rule == rule_of("ReLU") is not None
    declare("ReLU: [*x] -> [*x]")
    assert operator_of("ReLU").declared
    forget_declared()
    assert not operator_of("ReLU").declared


def test_an_operator_of_ones_own_says_it_in_the_same_form() -> None:
    text = """
    family Mine: computes matmul
    MyProduct: [m k] [k n] -> [m n]  reduce k  flops 2 * output * contracted  is (renames)
    MyProductGrad: gradient of MyProduct  like MyProduct
    """
    assert declare("\n".join(line.strip() for line in text.splitlines())) == (
        "MyProduct",
        "MyProductGrad",
    )
    product, gradient = operator_of("MyProduct"), operator_of("MyProductGrad")
    assert product.rule is not None
    assert product.is_heavy
    assert product.is_("renames")
    assert gradient.rule is None
    assert (gradient.gradient_of, gradient.flops) == ("MyProduct", product.flops)


@pytest.mark.parametrize(
    ("text", "message", "hint"),
    [
        ("My: computes matmull", "matmull is no numeric family", "did you mean matmul?"),
        ("My: is (renamed)", "renamed is no trait", "did you mean renames?"),
        ("My: flops 2 * outputt", "outputt is no size of a tensor", ""),
    ],
)
def test_a_word_that_means_nothing_is_an_error(text: str, message: str, hint: str) -> None:
    with pytest.raises(RuleError) as caught:
        declare(text, "my.rules")
    assert str(caught.value) == f"my.rules: {message}"
    assert (caught.value.line, caught.value.hint) == (1, hint)
