"""Parts of dumps read and show what the whole shows; redacted dumps mean the same without names."""

from __future__ import annotations

import random
import re
from pathlib import Path

import pytest

from irtool.cli.main import main
from irtool.ir.phases import phases
from irtool.syntax.load import load
from irtool.syntax.reader import loads
from irtool.syntax.redact import Redaction, redacted
from irtool.syntax.reduce import NotShown, cut, reduced

ROOT = Path(__file__).resolve().parents[2]
SAMPLES = [
    "gpt/step_parallel_begin_0018.ir", "mlp_semi_auto/20_validate_0080.ir",
    "control_flow/01_type_inference_0001.ir", "analyze_fail/rank_0/om/analyze_fail.ir",
    "grad_accumulation/20_validate_0082.ir", "fragment_1.3.ir", "fragment_2.1.ir",
    "control_flow/graph_build_0_0104.ir", "memory/with_recompute.ir.xz",
]  # fmt: skip
REFUSED = str(ROOT / "samples/mlp_rejected/step_parallel_begin_0018.ir")


@pytest.mark.parametrize("name", SAMPLES)
@pytest.mark.parametrize("seed", range(3))
def test_any_part_of_a_dump_reads_without_problems(name: str, seed: int) -> None:
    dump = load(ROOT / "samples" / name)
    nodes = [node for node in dump.nodes() if not node.is_return]
    draw = random.Random(seed)
    kept = set(draw.sample(nodes, max(1, len(nodes) // draw.choice((2, 5, 20)))))
    part = loads(cut(dump, kept), name)
    assert not part.problems
    there = {(node.graph.name if node.graph else "", node.id, node.op) for node in part.nodes()}
    assert there >= {(node.graph.name if node.graph else "", node.id, node.op) for node in kept}


@pytest.mark.parametrize("name", SAMPLES)
def test_a_whole_that_is_cut_keeps_every_statement(name: str) -> None:
    dump = load(ROOT / "samples" / name)
    part = loads(cut(dump, set(dump.nodes())), name)
    assert [node.op for node in part.nodes()] == [node.op for node in dump.nodes()]


def test_a_part_is_as_small_as_what_it_shows_allows() -> None:
    dump = load(ROOT / "samples/mlp_semi_auto/20_validate_0080.ir")
    node = next(dump.nodes(op="ReLU"))
    alone = reduced(dump, node)
    assert alone.statements == (2, sum(len(graph.nodes) for graph in dump.graphs))
    with_products = reduced(
        dump, node, lambda part: sum(other.op == "MatMul" for other in part.nodes()) >= 2
    )
    assert with_products.statements[0] == 4
    assert with_products.is_least


def test_what_the_whole_does_not_show_no_part_does() -> None:
    dump = load(ROOT / "samples/mlp_semi_auto/20_validate_0080.ir")
    with pytest.raises(NotShown):
        reduced(dump, next(dump.nodes(op="ReLU")), lambda part: False)


def test_reduce_keeps_what_lint_says_of_the_node(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "small.ir"
    assert main(["parse", REFUSED, "--reduce", "line == 75", "-o", str(path)]) == 0
    assert (
        "4 statements of 83 around %8 MatMul; it still shows STR001 (with --devices 8)"
        in capsys.readouterr().err
    )
    assert main(["check", str(path), "--devices", "8"]) == 1
    assert "split by 4 in the first input, by 2 in the second" in capsys.readouterr().out


def test_of_equal_numbers_that_is_meant_of_which_rules_speak(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "part.ir"
    assert main(["parse", REFUSED, "--reduce", "%8", "-o", str(path)]) == 0
    told = capsys.readouterr().err
    assert "2 graphs have a node %8; takes that of @" in told
    assert "around %8 MatMul; it still shows STR001" in told
    # Of numbers that no rule speaks of it is that of the largest graph.
    assert main(["parse", REFUSED, "--reduce", "%0", "-o", str(path)]) == 0
    assert "no rule says anything of it" in capsys.readouterr().err


def test_a_finding_that_the_node_has_not_cannot_be_kept(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["parse", REFUSED, "--reduce", "line == 75", "--keep", "COM003"]) == 2
    assert "COM003 says nothing of %8" in capsys.readouterr().err


@pytest.mark.parametrize("name", SAMPLES)
def test_a_redacted_dump_reads_the_same(name: str) -> None:
    dump = load(ROOT / "samples" / name)
    other = loads(redacted(dump), name)
    assert not other.problems
    ours, theirs = phases(dump), phases(other)
    for node, twin in zip(dump.nodes(), other.nodes(), strict=True):
        assert (node.op, node.input_types and len(node.input_types)) == (
            twin.op, twin.input_types and len(twin.input_types),
        )  # fmt: skip
        assert node.in_strategy == twin.in_strategy
        assert ours[node] == theirs[twin]


def test_names_scopes_paths_and_source_lines_are_gone_and_shapes_stay() -> None:
    dump = load(ROOT / "samples/gpt/step_parallel_begin_0018.ir")
    text = redacted(dump)
    for word in ("attention", "query", "embedding", "layers"):
        assert not re.search(word, text, re.IGNORECASE)
    assert "self." not in text
    assert "/usr/lib" not in text
    assert [item.type and item.type.dimensions for item in dump.parameters] == [
        item.type and item.type.dimensions for item in loads(text, "").parameters
    ]


@pytest.mark.parametrize("name", SAMPLES)
@pytest.mark.parametrize("seed", range(2))
def test_no_word_of_a_user_is_left(name: str, seed: int) -> None:
    """Whatever the user's words are: here each is another random one."""
    dump = load(ROOT / "samples" / name)
    draw = random.Random(seed)
    planted = Redaction()
    planted.look(dump)
    for word in planted.names:
        if word not in planted.kept:
            planted.replaced[word] = "zq" + "".join(draw.choices("aeioubdgk", k=8))
    text = planted.text_of(dump)
    assert not planted.replaced or "zq" in text.lower()
    shown = redacted(loads(text, name)).lower()
    assert not [word for word in planted.replaced.values() if word in shown]


OWN_WORDS = """\
# IR entry: @zyxgraph_1
# Total params: 1

%para1_zyxweight.zyxbias: <Ref[Tensor[Float32]], (4, 4), ref_key=zyxweight.zyxbias>

subgraph @zyxgraph_1() {
  %0(zyxvalue) = PrimFunc_ReLU(%para1_zyxweight.zyxbias) {instance name: zyxact} \
primitive_attrs: {zyxkey: "zyxattribute", note: "zyxCamelCase", keep_alive: Bool(1)}
      : (<Ref[Tensor[Float32]], (4, 4), ref_key=zyxweight.zyxbias>) -> (<Tensor[Float32], (4, 4)>)
      # Fullname with scope: (Default/network-ZyxNet/ReLU-op0)
      # In file /home/u00412345/zyxteam7/zyx_net.py:12, 8~20/        y = self.zyxact(x)/
  %1(CNode_2) = resolve(NameSpace[SymbolStr: 'Namespace:zyxmodule'], zyxhelper)
      : (<External, NoShape>, <External, NoShape>) -> (<Func, NoShape>)
      # In file runs_u00412345/zyx_net.py:12, 8~20/        y = zyxhelper(x)/
  %2(CNode_3) = PrimFunc_ZyxCustom(%0, "zyxunderscored_text", 1)
      : (<Tensor[Float32], (4, 4)>, <String, NoShape>, <Int64, NoShape>) -> (<null>)
  Return(%2)
      : (<null>)
}
"""


HEAD = """\
%para1_network.head: <Ref[Tensor[Float32]], (4, 4), ref_key=network.head>

subgraph @G() {
  %0(CNode_1) = PrimFunc_Block(%para1_network.head) {instance name: act} \
primitive_attrs: {head_num: Int64(1), block: Bool(1)}
      : (<Ref[Tensor[Float32]], (4, 4), ref_key=network.head>) -> (<Tensor[Float32], (4, 4)>)
      # Fullname with scope: (Default/network-WithLossCell/blocks-CellList/0-Block/Block-op0)
  Return(%0)
      : (<Tensor[Float32], (4, 4)>)
      # Scope: (Default/network-WithLossCell/blocks-CellList/0-Block)
}
"""


def test_words_of_attributes_are_replaced_where_they_name_weights_and_cells() -> None:
    text = redacted(loads(HEAD, ""))
    assert "network.head" not in text
    assert "0-Block" not in text
    for own in ("head_num", "block: Bool", "CellList", "WithLossCell", "%para1_network."):
        assert own in text
    (parameter,) = loads(text, "").parameters
    assert parameter.type is not None
    assert parameter.type.ref_key == parameter.name
    first, second = (re.findall(r"0-(\w+)", line) for line in text.splitlines() if "0-" in line)
    assert first == second


def test_what_stands_where_mindspore_writes_is_shown_only_if_it_is_its_own() -> None:
    """Attributes, symbols, operators and folders that the user named."""
    text = redacted(loads(OWN_WORDS, ""))
    assert "zyx" not in text.lower()
    assert "412345" not in text
    for own in ("PrimFunc_ReLU", "keep_alive: Bool(1)", "ref_key=", "resolve(", "Default/network-"):
        assert own in text
    twice = loads(text, "")
    assert [node.location and node.location.line for node in twice.nodes()][:2] == [12, 12]


def test_equal_names_get_equal_ones_in_all_dumps_of_a_call() -> None:
    begin = load(ROOT / "samples/gpt/step_parallel_begin_0018.ir")
    validate = load(ROOT / "samples/gpt/20_validate_0080.ir")
    made = Redaction()
    made.look(begin)
    made.look(validate)
    names = [
        {item.name for item in loads(made.text_of(dump), "").parameters if item.is_weight}
        for dump in (begin, validate)
    ]
    assert names[0] == names[1]
    weights = {item.name for item in begin.parameters if item.is_weight}
    assert len(names[0]) == len(weights), "different names stay different"


def test_several_dumps_need_a_folder(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run = str(ROOT / "samples/gpt")
    assert main(["parse", run, "--redact"]) == 2
    assert "--redact -o FOLDER" in capsys.readouterr().err
    assert main(["parse", run, "--redact", "-o", str(tmp_path / "shown")]) == 0
    assert len(list((tmp_path / "shown").rglob("*.ir"))) == 2
