"""``irtool viz`` as people use it."""

from __future__ import annotations

import base64
import json
import re
import shutil
import zlib
from pathlib import Path

import pytest

from irtool.cli.main import main
from tests.cli.running import Run

ROOT = Path(__file__).resolve().parents[2]
MLP = "samples/mlp_semi_auto/20_validate_0080.ir"
BEGIN = "samples/mlp_semi_auto/step_parallel_begin_0018.ir"
GPT = "samples/gpt/20_validate_0080.ir"
needs_dot = pytest.mark.skipif(shutil.which("dot") is None, reason="graphviz's dot is not here")
COMMAND = "viz"


def test_dot_goes_to_standard_output(irtool: Run) -> None:
    ran = irtool(MLP, "--format", "dot")
    assert (ran.status, ran.errors) == (0, "")
    assert ran.output.startswith("digraph irtool {")


@needs_dot
def test_the_files_name_tells_the_format(irtool: Run, tmp_path: Path) -> None:
    for ending, start in (("svg", b"<?xml"), ("png", b"\x89PNG"), ("dot", b"digraph")):
        file = tmp_path / f"picture.{ending}"
        assert irtool(MLP, "-o", str(file)).status == 0
        assert file.read_bytes().startswith(start)


def test_html_is_one_file(irtool: Run, tmp_path: Path) -> None:
    file = tmp_path / "picture.html"
    assert irtool(MLP, "-o", str(file)).status == 0
    assert "<html" in file.read_text(encoding="utf-8")[:500]


def test_model_explorer_gets_node_data_beside_the_graph(irtool: Run, tmp_path: Path) -> None:
    file = tmp_path / "mlp.json"
    ran = irtool(MLP, "-f", "model-explorer", "-o", str(file))
    assert ran.status == 0
    assert "--node_data_paths=" in ran.errors
    graph = json.loads(file.read_text())["graphs"][0]
    data = json.loads((tmp_path / "mlp.bytes.json").read_text())
    assert list(data) == [graph["id"]]


def test_begin_dumps_show_slices_and_findings_by_themselves(irtool: Run) -> None:
    ran = irtool(BEGIN, "-f", "dot")
    assert "64×512 → 32×128" in ran.output
    assert "→ 32×128" not in irtool(BEGIN, "-f", "dot", "--no-check").output
    refused = irtool("samples/mlp_rejected/step_parallel_begin_0018.ir", "-f", "dot").output
    assert "border: error" in refused


def test_max_nodes_bounds_the_boxes(irtool: Run) -> None:
    source = irtool(GPT, "-f", "dot", "--max-nodes", "15").output
    boxes = re.findall(r"^\s*([ns]\d+) \[label", source, re.MULTILINE)
    assert 5 <= len(boxes) <= 15


def test_expand_around_path_and_where_choose(irtool: Run) -> None:
    assert "Softmax" in irtool(GPT, "-f", "dot", "--max-nodes", "15", "--expand", "1-Layer").output
    near = irtool(GPT, "-f", "dot", "--around", "%76", "--radius", "1").output
    assert "GeLUGrad" in near
    assert "LayerNorm" not in near
    way = irtool(GPT, "-f", "dot", "--path", "%75", "%79").output
    assert "4 operators in 4 boxes" in way
    gathers = irtool(MLP, "-f", "dot", "--where", 'op == "AllGather"').output
    assert "1 operator in 1 box;" in gathers


def test_a_run_is_drawn_whole_or_by_rank(irtool: Run) -> None:
    whole = irtool("samples/pipeline_run", "--whole", "-f", "dot")
    assert "stage 1 · rank 4" in whole.output
    assert "4 transfers" in whole.errors
    one = irtool("samples/pipeline_run", "-f", "dot", "--rank", "4")
    assert "rank_4/20_validate_0080.ir" in one.errors


def test_a_page_of_a_whole_run_names_stages_and_ranks(irtool: Run, tmp_path: Path) -> None:
    file = tmp_path / "whole.html"
    assert irtool("samples/pipeline_2_stages", "--whole", "-o", str(file)).status == 0
    packed = re.search(r'id="data">([^<]*)<', file.read_text(encoding="utf-8"))
    assert packed is not None
    data = json.loads(zlib.decompress(base64.b64decode(packed[1]), -15))
    assert {"stage 0 · rank 0", "stage 1 · rank 2"} <= set(data["graph"]["strings"])


def test_joined_ranks_that_send_nothing_are_no_stages(irtool: Run) -> None:
    whole = irtool("samples/gpt", "--whole", "-f", "dot")
    assert "no stage sends to another" in whole.errors
    assert "stage 0" not in whole.output


def test_overlays_of_other_commands_are_laid_over(irtool: Run, tmp_path: Path) -> None:
    refused = "samples/mlp_rejected/step_parallel_begin_0018.ir"
    main(["check", refused, "--format", "json", "-o", str(tmp_path / "check.json")])
    found = irtool(refused, "-f", "dot", "--no-check", "--overlay", str(tmp_path / "check.json"))
    assert "border: error" in found.output


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("no-such.ir",), "no-such.ir"),
        ((MLP, "-o", "picture.xyz"), "which format"),
        ((MLP, "-f", "dot", "--around", "nothing like this"), "there is no node"),
        ((MLP, "-f", "dot", "--around", ""), "names no node"),
        ((MLP, "-f", "dot", "--path", "%1", " "), "names no node"),
        ((MLP, "-f", "dot", "--around", "%1", "--where", "op"), "cannot be combined"),
        ((MLP, "-f", "dot", "--path", "%22", "%0"), "no value gets from"),
        ((MLP, "-f", "dot", "--where", 'op == "Nope"'), "no node that is drawn"),
        ((MLP, "-f", "dot", "--where", "op =="), "QRY001"),
        ((MLP, "-f", "dot", "--expand", "nowhere"), "there is no scope"),
        ((MLP, "-f", "dot", "--color-by", "memory"), "irtool memory"),
        ((MLP, "-f", "dot", "--overlay", "README.md"), "no JSON"),
        ((MLP, "-f", "dot", "--overlay", "no.json"), "cannot read"),
        ((MLP, "-f", "dot", "--max-nodes", "-3"), "--max-nodes"),
        ((MLP, "-f", "gif"), "gif"),
        ((MLP, "-f", "dot", "--whole"), "--whole joins"),
    ],
)
def test_mistakes_end_with_one_clear_message(
    irtool: Run, arguments: tuple[str, ...], message: str
) -> None:
    ran = irtool(*arguments)
    assert ran.status == 2
    assert message in ran.errors
    assert "Traceback" not in ran.errors
    assert ran.output == ""


def test_without_dot_svg_is_drawn_by_the_own_layout(
    irtool: Run, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    ran = irtool(MLP, "-o", str(tmp_path / "picture.svg"))
    assert ran.status == 0
    assert ran.errors.count("own layout") == 1
    assert (tmp_path / "picture.svg").read_text(encoding="utf-8").startswith("<?xml")
    assert irtool(MLP, "-f", "svg", "--layout", "own").errors == "", "asked for, so not told"
    assert irtool(MLP, "-f", "dot").status == 0
    assert irtool(MLP, "-f", "html", "-o", str(tmp_path / "p.html")).status == 0


@pytest.mark.parametrize("arguments", [("-f", "png"), ("-f", "pdf"), ("--layout", "dot")])
def test_what_only_dot_can_draw_says_how_to_install_it(
    irtool: Run, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, arguments: tuple[str, ...]
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    ran = irtool(MLP, *arguments)
    assert ran.status == 2
    assert "install graphviz" in ran.errors
    assert ran.output == ""


def test_the_own_layout_draws_svg_only(irtool: Run) -> None:
    ran = irtool(MLP, "-f", "png", "--layout", "own")
    assert ran.status == 2
    assert "--layout own draws svg, not png" in ran.errors


def test_problems_in_the_dump_are_status_1(irtool: Run, tmp_path: Path) -> None:
    text = (ROOT / MLP).read_text()
    broken = tmp_path / "broken.ir"
    broken.write_text(text[: len(text) // 2])
    ran = irtool(str(broken), "-f", "dot")
    assert ran.status == 1
    assert ran.output.startswith("digraph")


@needs_dot
def test_chosen_nodes_of_several_lanes_can_be_drawn(irtool: Run, tmp_path: Path) -> None:
    """Texts on lines that dot does not rank by are what it fails on."""
    file = tmp_path / "reductions.svg"
    ran = irtool(GPT, "--where", 'op == "AllReduce"', "-o", str(file))
    assert (ran.status, ran.errors) == (0, "")
    assert "AllReduce" in file.read_text(encoding="utf-8")


def test_standard_output_by_its_name_has_no_format_of_its_own(irtool: Run) -> None:
    named, unnamed = irtool(MLP, "-o", "-", "--layout", "own"), irtool(MLP, "--layout", "own")
    assert (named.status, named.output) == (0, unnamed.output)
    assert named.output.startswith("<?xml")
