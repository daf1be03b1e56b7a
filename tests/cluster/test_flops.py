"""Operations of operators: from shapes, by a line each, never guessed."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

import irtool
from irtool.cluster.flops import flops, flops_of, total_flops
from irtool.operators.counting import Tensors
from irtool.operators.notation import RuleError
from irtool.operators.notation_reader import read_rules
from irtool.operators.table import declare, forget_declared, operator_of


@pytest.fixture(autouse=True)
def forget() -> Iterator[None]:
    yield
    forget_declared()


def of(
    op: str, *inputs: tuple[int, ...], output: tuple[int, ...], **attributes: object
) -> int | None:
    named = dict(attributes)
    return flops_of(
        op, Tensors([[one] for one in inputs], [output], lambda key: named.get(str(key)))
    )


def test_a_product_of_matrices_counts_multiplications_and_additions() -> None:
    assert of("MatMul", (8, 16), (16, 32), output=(8, 32)) == 2 * 8 * 16 * 32


def test_a_transposed_input_is_summed_up_along_its_other_axis() -> None:
    assert of("MatMul", (16, 8), (16, 32), output=(8, 32), transpose_a=True) == 2 * 8 * 16 * 32


def test_a_batch_of_products() -> None:
    assert (
        of("BatchMatMul", (4, 3, 8, 16), (4, 3, 16, 5), output=(4, 3, 8, 5)) == 2 * 12 * 8 * 16 * 5
    )


def test_gradients_of_a_convolution_cost_what_it_costs() -> None:
    x, w, y = (2, 3, 16, 16), (8, 3, 3, 3), (2, 8, 16, 16)
    forward = of("Conv2D", x, w, output=y)
    assert forward == 2 * (2 * 8 * 16 * 16) * 3 * 9
    assert of("Conv2DBackpropInput", y, w, output=x) == forward
    assert of("Conv2DBackpropFilter", y, x, output=w) == forward


@pytest.mark.parametrize(
    ("layout", "shape"), [("BSH", (2, 64, 128)), ("SBH", (64, 2, 128)), ("BNSD", (2, 4, 64, 32))]
)
def test_attention_is_the_same_in_every_layout(layout: str, shape: tuple[int, ...]) -> None:
    found = of("FlashAttentionScore", shape, shape, output=shape, input_layout=layout, head_num=4)
    scores = 2 * 4 * 64 * 64
    assert found == 4 * 32 * scores + 5 * scores


@pytest.mark.parametrize(
    ("layout", "shape"), [("BSH", (2, 64, 128)), ("SBH", (64, 2, 128)), ("BNSD", (2, 4, 64, 32))]
)
def test_the_gradient_of_attention_is_five_products_where_attention_is_two(
    layout: str, shape: tuple[int, ...]
) -> None:
    """Scores again, and the gradients of probabilities, queries, keys and values."""
    named = {"input_layout": layout, "head_num": 4}
    found = of("FlashAttentionScoreGrad", shape, shape, output=shape, **named)
    batch, heads, length, width = 2, 4, 64, 32
    scores = batch * heads * length * length
    product = 2 * scores * width
    assert found == 5 * product + 10 * scores


def test_attention_over_other_keys_counts_their_length() -> None:
    queries, keys = (2, 4, 64, 32), (2, 4, 16, 32)
    named = {"input_layout": "BNSD", "head_num": 4}
    scores = 2 * 4 * 64 * 16
    found = of("FlashAttentionScore", queries, keys, output=queries, **named)
    assert found == 4 * 32 * scores + 5 * scores
    found = of("FlashAttentionScoreGrad", queries, keys, output=queries, **named)
    assert found == 10 * 32 * scores + 10 * scores


@pytest.mark.parametrize("groups", [1, 2, 8])
@pytest.mark.parametrize("kernel", [(3, 3), (1, 5)])
def test_a_convolution_counts_every_multiplication_and_addition(
    groups: int, kernel: tuple[int, int]
) -> None:
    """Each element of the output is a sum over the channels of a group and the kernel."""
    x, y = (2, 8, 6, 6), (2, 16, 4, 4)
    w = (16, 8 // groups, *kernel)
    multiplications = sum(
        1
        for _ in range(2 * 16 * 4 * 4)
        for _channel in range(8 // groups)
        for _place in range(kernel[0] * kernel[1])
    )
    for op in ("Conv2D", "Convolution", "Conv2DExt"):
        assert of(op, x, w, output=y) == 2 * multiplications
    # One product for the gradient of the input, one for that of the weight.
    assert of("Conv2DBackpropInput", y, w, output=x) == 2 * multiplications
    assert of("ConvolutionGrad", y, x, w, output=x) == 4 * multiplications
    if groups == 1:
        assert of("Conv2DBackpropFilter", y, x, output=w) == 2 * multiplications


@pytest.mark.parametrize(
    ("op", "forward"),
    [("Mul", 1), ("ReLU", 1), ("Add", 1), ("SqrtGrad", 2), ("Exp", 4), ("SiLU", 5), ("GeLU", 8)],
)
def test_element_by_element_operators_count_by_their_outputs(op: str, forward: int) -> None:
    assert of(op, (8, 16), (8, 16), output=(8, 16)) == forward * 8 * 16


@pytest.mark.parametrize("op", ["ReduceSum", "ReduceMax", "ReduceMean"])
def test_reductions_count_by_their_inputs(op: str) -> None:
    assert of(op, (8, 16), output=(8,)) == 8 * 16


def test_moving_data_costs_nothing_and_unknown_operators_are_unknown() -> None:
    assert of("Transpose", (8, 16), output=(16, 8)) == 0
    assert of("AllReduce", (8, 16), output=(8, 16)) == 0
    assert of("MyOperator", (8, 16), output=(8, 16)) is None


def test_unknown_sizes_are_never_taken_as_one() -> None:
    assert of("MatMul", (-1, 16), (16, 32), output=(-1, 32)) is None
    assert of("ReLU", (-1, 16), output=(-1, 16)) is None


def test_what_nobody_could_count_is_unknown() -> None:
    size = 10**33
    assert (
        of("MatMul", (size, size), (size, size // 8), output=(size, size // 8)) == 2 * size**3 // 8
    )
    assert of("MatMul", (size, size), (size, size), output=(size, 10 * size)) is None


def test_tuples_count_all_their_tensors() -> None:
    tensors = Tensors([[(4, 4), (4, 4), (4, 4)]], [(4, 4)])
    assert flops_of("AddN", tensors) == 32


def test_a_line_for_a_custom_operator() -> None:
    text = "flops MyOperator, Other = 3 * input * (input1[-1] + 1) - output"
    assert declare(text, "my.rules") == ("MyOperator", "Other")
    assert of("MyOperator", (2, 5), (5, 7), output=(2, 7)) == 3 * 10 * 8 - 14
    forget_declared()
    assert of("MyOperator", (2, 5), (5, 7), output=(2, 7)) is None


def test_lines_stand_beside_sharding_rules() -> None:
    text = "MyRelu:\n    [*x] -> [*x]\nflops MyRelu = 2 * output\n"
    assert [rule.op for rule in read_rules(text)] == ["MyRelu"]
    declare(text)
    assert of("MyRelu", (3, 4), output=(3, 4)) == 24


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("flops My = outputt", "outputt is no size of a tensor"),
        ("flops My = contracted[0]", "contracted is no tensor"),
    ],
)
def test_a_word_that_means_nothing_is_an_error(text: str, message: str) -> None:
    with pytest.raises(RuleError) as caught:
        declare(text, "my.rules")
    assert str(caught.value) == f"my.rules: {message}"
    assert (caught.value.line, caught.value.column) == (1, 12)


def test_a_line_that_cannot_be_read_is_an_error() -> None:
    with pytest.raises(RuleError):
        declare("flops My = 2 *")


def test_what_could_not_be_counted_is_told(samples: Path) -> None:
    dump = irtool.load(samples / "custom_rules/step_parallel_begin_0001.ir")
    found = total_flops(dump.nodes())
    assert dict(found.unknown) == {"MyRowNorm": 1, "MyMatMulBias": 1}
    assert not found.is_complete


def test_every_operator_of_a_transformer_is_counted(samples: Path) -> None:
    dump = irtool.load(samples / "gpt/20_validate_0080.ir")
    assert total_flops(dump.nodes()).is_complete
    products = sum(flops(node) or 0 for node in dump.nodes("MatMul"))
    assert products > 0.8 * total_flops(dump.nodes()).operations


def test_most_operators_of_the_corpus_are_counted(corpus: Path) -> None:
    folders = sorted((corpus / "verdicts").iterdir())[::60]
    nodes = unknown = 0
    for folder in folders:
        for path in folder.glob("*validate*.ir"):
            found = list(irtool.load(path).nodes())
            nodes += len(found)
            unknown += sum(
                flops(node) is None and operator_of(node.op).flops is None for node in found
            )
    assert nodes
    assert unknown < 0.02 * nodes
