"""``irtool plan`` as a user types it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from irtool.cli.main import main

BEGIN = "mlp_recursive_search/step_parallel_begin_0019.ir"
LOOP = "mlp_loop/step_parallel_begin_0019.ir"
"""Whose operators' numbers can be told."""


def run(capsys: pytest.CaptureFixture[str], *arguments: object) -> tuple[int, str, str]:
    status = main(["plan", *map(str, arguments)])
    out, err = capsys.readouterr()
    return status, out, err


def test_something_better_exits_1(capsys: pytest.CaptureFixture[str], samples: Path) -> None:
    status, out, _ = run(capsys, samples / BEGIN, "--devices", 8)
    assert status == 1
    assert "the optimum of the model" in out
    assert "What changes" in out


def test_the_plan_of_a_plan_changes_nothing(
    capsys: pytest.CaptureFixture[str], samples: Path, tmp_path: Path
) -> None:
    planned = tmp_path / "step_parallel_begin.ir"
    context = ("--devices", 8, "--full-batch", "--search-mode", "sharding_propagation")
    mode = ("--parallel-mode", "auto_parallel")
    status, _, _ = run(capsys, samples / BEGIN, *context, *mode, "-f", "ir", "-o", planned)
    assert status == 0
    status, out, _ = run(capsys, planned, *context, *mode, "-f", "json")
    found = json.loads(out)
    assert status == 0
    assert found["cost"]["before"] == pytest.approx(found["cost"]["after"])
    assert main(["check", str(planned), *map(str, (*context, *mode))]) == 0


def test_json(capsys: pytest.CaptureFixture[str], samples: Path) -> None:
    _, out, _ = run(capsys, samples / BEGIN, "--devices", 8, "-f", "json")
    found = json.loads(out)
    assert found["schema"] == "irtool.plan/1"
    assert found["algorithm"] == "exact"
    assert found["cost"]["lower_bound"] <= found["cost"]["after"] * (1 + 1e-9)
    assert {"node", "op", "before", "after", "pinned"} <= set(found["operators"][0])


def test_mindspores_file(capsys: pytest.CaptureFixture[str], samples: Path) -> None:
    status, out, _ = run(capsys, samples / LOOP, "-f", "strategy")
    found = json.loads(out)
    assert status == 0
    assert set(found) == {
        "current_stage",
        "parallel_strategy_item",
        "parallel_out_strategy_item",
        "parallel_layout_item",
    }


def test_names_of_another_network_are_declined(
    capsys: pytest.CaptureFixture[str], samples: Path, tmp_path: Path
) -> None:
    names = tmp_path / "saved.json"
    names.write_text(json.dumps({"parallel_strategy_item": {"Default/other/MatMul-op0": {}}}))
    status, out, err = run(capsys, samples / LOOP, "-f", "strategy", "--names", names)
    assert status == 2
    assert not out
    assert "Default/other/MatMul-op0" in err


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("--algorithm", "recursive", "--memory", "1GiB"), "knows nothing like it"),
        (("--algorithm", "recursive", "--to-stages", "2"), "knows nothing like it"),
        (("--algorithm", "propagation", "--recompute", "auto"), "knows nothing like it"),
        (("--to-stages", "2", "--onto", "x.ir"), "does not go with --to-stages"),
        (("--to", "10000"), "from 1 to 4096"),
        (("--algorithm", "recursive", "--to", "24"), "16 or 32 would do"),
        (("--pin", "op == 1 2=((1,),)"), "--pin"),
        (("--pin", 'op == "MatMul"'), "no strategy"),
        (("--pin", 'op == "MatMul"=((0, 1),)'), "is no strategy"),
        (("--pin", 'op == "MatMul"=((8, 1), (1, 1)) -> x'), " x is no strategy"),
        (("--memory", "lots"), "is no size"),
        (("--memory", "1KiB"), "the least that was found"),
        (("--to", "12"), "would do"),
        (("--region", 'op == "Nothing"'), "no node"),
    ],
)
def test_what_cannot_be_is_said_and_exits_2(
    capsys: pytest.CaptureFixture[str], samples: Path, arguments: tuple[str, ...], says: str
) -> None:
    status, out, err = run(capsys, samples / BEGIN, "--devices", 8, *arguments)
    assert status == 2
    assert not out
    assert says in err
    assert "Traceback" not in err


APART = ("--pin", "line == 67=((1, 8),)")
"""One of two ReLU of a scope, in a dump without source lines."""


def test_operators_whose_numbers_cannot_be_told_get_one_strategy(
    capsys: pytest.CaptureFixture[str], samples: Path
) -> None:
    status, out, err = run(capsys, samples / BEGIN, "--devices", 8, "-f", "strategy", *APART)
    assert status == 0
    assert "numbers this dump does not tell" in err
    items = json.loads(out)["parallel_strategy_item"]
    relus = [item["parallel_strategy"] for key, item in items.items() if "/ReLU-" in key]
    assert relus == [[[1, 8]]] * len(relus)


def test_what_no_file_can_hold_is_declined(
    capsys: pytest.CaptureFixture[str], samples: Path
) -> None:
    others = ("--pin", 'op == "ReLU" and line != 67=((8, 1),)')
    pins = (*APART, *others)
    status, out, err = run(capsys, samples / BEGIN, "--devices", 8, "-f", "strategy", *pins)
    assert status == 2
    assert not out
    assert "MindSpore counts first" in err
    assert "--names" in err


# -- other devices, an old plan, a region ----------------------------------------------------------


def test_lost_ranks_lead_to_a_list_of_plans(
    capsys: pytest.CaptureFixture[str], samples: Path
) -> None:
    status, out, _ = run(capsys, samples / LOOP, "--lost", "3,5")
    assert status == 1
    assert "of 6 devices that are left, 4 can be used" in out
    assert "chosen" in out
    assert "fetched by a device" in out
    assert "with 10,000 steps" in out
    assert "with the old strategies fitted to them" in out


def test_fewer_devices_than_there_are_left_are_justified(
    capsys: pytest.CaptureFixture[str], samples: Path
) -> None:
    _, out, _ = run(capsys, samples / BEGIN, "--devices", 8, "--lost", "3", "-f", "json")
    elastic = json.loads(out)["elastic"]
    chosen = elastic["points"][elastic["chosen"]]
    total = {
        at: 10_000 * point["seconds"] + point["seconds_before"]
        for at, point in enumerate(elastic["points"])
    }
    assert min(total, key=total.__getitem__) == elastic["chosen"]
    assert chosen["cheapest_for"][0] <= 10_000
    assert chosen["cheapest_for"][1] is None or chosen["cheapest_for"][1] >= 10_000
    _, out, _ = run(capsys, samples / BEGIN, "--devices", 8, "--lost", "3")
    assert ("not more" in out) == (chosen["devices"] < max(elastic["legal"]))


def test_a_rank_that_does_not_exist_is_refused(
    capsys: pytest.CaptureFixture[str], samples: Path
) -> None:
    status, _, err = run(capsys, samples / LOOP, "--lost", "8")
    assert status == 2
    assert "there is no rank 8" in err


def test_other_devices_are_a_part_of_the_json(
    capsys: pytest.CaptureFixture[str], samples: Path
) -> None:
    _, out, _ = run(capsys, samples / LOOP, "--to", 16, "-f", "json")
    elastic = json.loads(out)["elastic"]
    assert elastic["points"][elastic["chosen"]]["devices"] == 16
    assert elastic["devices"] == [*range(8), *[None] * 8]


def test_a_network_onto_itself_keeps_everything(
    capsys: pytest.CaptureFixture[str], samples: Path
) -> None:
    status, out, _ = run(capsys, samples / LOOP, "--onto", samples / LOOP, "-f", "json")
    found = json.loads(out)
    assert status == 0
    assert found["onto"]["added"] == []
    assert all(item["before"] == item["after"] for item in found["operators"])


def test_what_is_given_may_cost_more_than_the_dump(
    capsys: pytest.CaptureFixture[str], samples: Path
) -> None:
    after = samples / "mlp_grown/after/step_parallel_begin_0019.ir"
    _, out, _ = run(capsys, after, "--pin", 'op == "MatMul"=((1, 1), (1, 1))')
    assert "which is not within what is given" in out.splitlines()[0]
    assert "the optimum of the model under what is given" in out.splitlines()[0]


def test_a_strategy_may_be_pinned_as_tables_print_it(
    capsys: pytest.CaptureFixture[str], samples: Path
) -> None:
    pins = [f'op == "BiasAdd"={text}' for text in ("((8, 1), (1))", "((8, 1), (1,))")]
    found = [run(capsys, samples / BEGIN, "--devices", 8, "-f", "ir", "--pin", pin) for pin in pins]
    assert [status for status, _, _ in found] == [0, 0]
    assert found[0][1] == found[1][1]


def test_an_operator_is_not_pinned_twice(capsys: pytest.CaptureFixture[str], samples: Path) -> None:
    pins = ("--pin", 'op == "ReLU"=((8, 1),)', "--pin", 'op == "ReLU"=((1, 8),)')
    status, _, err = run(capsys, samples / BEGIN, "--devices", 8, *pins)
    assert status == 2
    assert "is pinned to ((8, 1)) and to ((1, 8))" in err


def test_a_dimension_may_be_halved_as_often_as_it_likes(
    capsys: pytest.CaptureFixture[str], samples: Path, tmp_path: Path
) -> None:
    text = (samples / BEGIN).read_text(encoding="utf-8")
    begin = tmp_path / "step_parallel_begin.ir"
    begin.write_text(text.replace("512", str(2**19)), encoding="utf-8")
    status, out, _ = run(capsys, begin, "--devices", 8)
    assert status in (0, 1)
    assert "the optimum of the model" in out


def test_why_nothing_is_known_of_the_cost_before_is_said(
    capsys: pytest.CaptureFixture[str], samples: Path
) -> None:
    _, out, _ = run(capsys, samples / "mlp_rejected/step_parallel_begin_0018.ir")
    assert "note: what they cost before is not known: MindSpore would refuse" in out
    _, out, _ = run(capsys, samples / BEGIN, "--devices", 8)
    assert "not known" not in out


def test_a_region_says_what_its_border_costs(
    capsys: pytest.CaptureFixture[str], samples: Path
) -> None:
    _, out, _ = run(capsys, samples / LOOP, "--region", 'op == "ReLU"', "-f", "json")
    border = json.loads(out)["border"]
    assert border["operators"] == 2
    assert border["step_seconds"] > 0


def test_what_is_not_weighed_is_said(capsys: pytest.CaptureFixture[str], samples: Path) -> None:
    status, _, err = run(capsys, samples / LOOP, "--to", 16, "--keep-configured")
    assert status == 1
    assert "with --keep-configured it is not weighed what has to be moved for 16 devices" in err


# -- options that would be ignored -----------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "option", "says"),
    [
        ("--horizon 5", "--horizon", "--lost, or --to"),
        ("--horizon 5 --to 8", "--horizon", "--lost, or --to"),
        ("--horizon 5 --to 16 --keep-configured", "--horizon", "without --keep-configured"),
        ("--micro-batches 4", "--micro-batches", "--to-stages"),
        ("--matmul-mem-coef 2", "--matmul-mem-coef", "--algorithm recursive"),
        ("--matmul-mem-coef 2 --algorithm propagation", "--matmul-mem-coef", "does not go with"),
        ("--lost 3 --algorithm recursive", "--lost", "knows nothing like it"),
        ("--lost 3 --region line==63", "--region", "does not go with --lost"),
        ("--lost 3 --recompute auto", "--recompute", "does not go with --lost"),
        ("--to-stages 2 --keep-configured", "--keep-configured", "does not go with --to-stages"),
        ("--to-stages 2 --lost 3", "--lost", "does not go with --to-stages"),
        ("--keys parameters", "--keys", "--format strategy"),
        ("--names saved.json", "--names", "--format strategy"),
        ("--names x.json --keys parameters -f strategy", "--names", "--keys operators"),
        ("--name job", "--name", "--format msjob"),
        ("--image lab:1", "--image", "--format msjob"),
        ("--command ls -f shard", "--command", "--format msjob"),
        ("--servers 0 -f json", "--servers", "--format msjob"),
        ("--limit 3 -f ir", "--limit", "--format table"),
    ],
)
def test_options_that_would_be_ignored_are_refused(
    capsys: pytest.CaptureFixture[str], samples: Path, arguments: str, option: str, says: str
) -> None:
    status, out, err = run(capsys, samples / LOOP, *arguments.split())
    assert status == 2
    assert not out
    assert err.startswith(f"{option}: error")
    assert says in err


def test_an_output_strategy_is_nothing_that_mindspores_searches_know(
    capsys: pytest.CaptureFixture[str], samples: Path
) -> None:
    pin = ("--pin", 'op == "MatMul"=((1, 8), (1, 8)) -> ((8, 1),)', "--algorithm", "recursive")
    status, out, err = run(capsys, samples / LOOP, *pin)
    assert status == 2
    assert not out
    assert "MindSpore's recursive search knows nothing like it" in err


# -- Python and Kubernetes -------------------------------------------------------------------------


def test_shard_lines_are_python(capsys: pytest.CaptureFixture[str], samples: Path) -> None:
    status, out, _ = run(capsys, samples / LOOP, "-f", "shard", "--region", 'op == "MatMul"')
    assert status == 0
    compile(out, "plan", "exec")
    assert "sharded = mindspore.shard(" in out


def test_a_job_has_a_worker_for_every_device(
    capsys: pytest.CaptureFixture[str], samples: Path
) -> None:
    status, out, _ = run(capsys, samples / LOOP, "-f", "msjob", "--image", "lab/train:1")
    assert status == 0
    assert 'image: "lab/train:1"' in out
    assert "replicas: 8" in out
    assert "PS:" not in out


def test_a_job_must_have_a_name_that_kubernetes_takes(
    capsys: pytest.CaptureFixture[str], samples: Path
) -> None:
    status, out, err = run(capsys, samples / LOOP, "-f", "msjob", "--name", "My_Job")
    assert status == 2
    assert not out
    assert "--name" in err


@pytest.mark.parametrize(
    ("form", "silent"),
    [
        ("ir", ("which weights optimizer parallel cuts",)),
        ("strategy", ("which weights optimizer parallel cuts",)),
        ("msjob", ("which weights optimizer parallel cuts",)),
        ("shard", ()),
    ],
)
def test_a_form_says_what_it_says_nothing_of(
    capsys: pytest.CaptureFixture[str], samples: Path, form: str, silent: tuple[str, ...]
) -> None:
    status, out, err = run(capsys, samples / LOOP, "--optimizer-parallel", "auto", "-f", form)
    assert status == 0
    assert ("says nothing of " + ", ".join(silent) in err) == bool(silent)
    assert ("parallel_optimizer = parameter.name not in whole" in out) == (form == "shard")


def test_an_output_strategy_is_in_every_form_that_has_one(
    capsys: pytest.CaptureFixture[str], samples: Path
) -> None:
    forms = {
        "table": "((1, 8), (1, 8)) -> ((8, 1),)",
        "json": '"out_after"',
        "ir": "{in_strategy: ((1, 8), (1, 8)), out_strategy: ((8, 1))}",
        "strategy": 'MatMul-op1": {"parallel_strategy": [[8, 1]], "stage": 0}',
    }
    for form, text in forms.items():
        _, out, _ = run(capsys, samples / LOOP, "-f", form)
        assert text in out, form
    _, out, err = run(capsys, samples / LOOP, "-f", "shard")
    assert "used with different strategies" not in out
    assert out.count("_backbone.mm.shard(") == 1
    assert "uses of one primitive have one strategy" in err
    _, _, err = run(capsys, samples / LOOP, "-f", "strategy", "--keys", "parameters")
    assert "to be loaded in semi-auto mode" in err
    assert "% more" in err


# -- unknown sizes ---------------------------------------------------------------------------------


DYNAMIC = "verdicts/test_meanext.test_mean_ext_shard_dynamic_dim_None.1"
SIZES = ("--bind", "s19=32", "--bind", "s20=64")


def test_what_has_no_size_is_not_planned(capsys: pytest.CaptureFixture[str], corpus: Path) -> None:
    status, out, err = run(capsys, corpus / DYNAMIC)
    assert status == 2
    assert not out
    assert "--bind s19=32 --bind s20=32" in err
    assert "a plan would be a guess" in err


def test_a_plan_for_given_sizes_stands_in_the_dump_as_it_was(
    capsys: pytest.CaptureFixture[str], corpus: Path, tmp_path: Path
) -> None:
    planned = tmp_path / "step_parallel_begin_0577.ir"
    status, _, _ = run(capsys, corpus / DYNAMIC, *SIZES, "-f", "ir", "-o", planned)
    assert status == 0
    (begin,) = (corpus / DYNAMIC).glob("*step_parallel_begin*")
    old, new = (path.read_text(encoding="utf-8").splitlines() for path in (begin, planned))
    changed = [one for one, two in zip(old, new, strict=True) if one != two]
    assert changed
    assert all("in_strategy" in line for line in changed)


# -- parts -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("form", ["table", "ir"])
def test_half_a_dump_is_half_a_plan(
    capsys: pytest.CaptureFixture[str], samples: Path, tmp_path: Path, form: str
) -> None:
    half = tmp_path / "step_parallel_begin_0019.ir"
    half.write_text((samples / LOOP).read_text(encoding="utf-8")[:9000], encoding="utf-8")
    status, out, err = run(capsys, half, "--devices", 8, "-f", form)
    assert status == 1
    assert out
    assert err.count("a part of the dump could not be read: this is a plan of the rest") == 1


def test_the_plan_of_half_a_dump_is_called_so(
    capsys: pytest.CaptureFixture[str], samples: Path, tmp_path: Path
) -> None:
    half = tmp_path / "step_parallel_begin_0019.ir"
    half.write_text((samples / LOOP).read_text(encoding="utf-8")[:9000], encoding="utf-8")
    _, out, _ = run(capsys, half, "--devices", 8)
    assert "note: a part of the dump could not be read: this is a plan of the rest" in out


@pytest.mark.parametrize(
    "more", [(), ("--algorithm", "recursive"), ("--to", 4), ("--to-stages", 2)], ids=str
)
def test_of_a_plan_of_half_a_dump_no_more_is_accepted_than_check_says(
    capsys: pytest.CaptureFixture[str], samples: Path, tmp_path: Path, more: tuple[object, ...]
) -> None:
    whole = samples / "mlp_recursive_search/step_parallel_begin_0019.ir"
    damaged = tmp_path / "step_parallel_begin_0019.ir"
    lines = whole.read_text(encoding="utf-8").splitlines(keepends=True)
    lines[29] = "  no statement\n"
    damaged.write_text("".join(lines), encoding="utf-8")
    said = [
        json.loads(run(capsys, path, "--devices", 8, "-f", "json", *more)[1])["accepted"]
        for path in (whole, damaged)
    ]
    assert said == [True, None]


def test_a_plan_of_a_stage_says_so(capsys: pytest.CaptureFixture[str], samples: Path) -> None:
    _, _, err = run(capsys, samples / "pipeline_run", "--lost", 3)
    assert "a plan of stage 0 of 2" in err


def test_a_dump_that_was_taken_too_late_is_refused(
    capsys: pytest.CaptureFixture[str], samples: Path
) -> None:
    status, _, err = run(capsys, samples / "gpt/20_validate_0080.ir", "--devices", 8)
    assert status == 2
    assert "what is needed is step_parallel_begin" in err
    assert "give " in err


def test_the_page_of_stages_shows_them(capsys: pytest.CaptureFixture[str], samples: Path) -> None:
    status, out, _ = run(capsys, samples / "gpt", "--to-stages", 2, "-f", "html")
    assert status in (0, 1)
    assert "a step in 2 stages" in out
    assert "Stages (one device of each)" in out
    assert "All stages together" in out


# -- what computing hides --------------------------------------------------------------------------


@pytest.mark.parametrize("overlap", ["none", "0.5", "1"])
def test_cost_and_plan_agree_about_what_is_hidden(
    capsys: pytest.CaptureFixture[str], samples: Path, tmp_path: Path, overlap: str
) -> None:
    planned = tmp_path / "plan.ir"
    _, out, _ = run(capsys, samples / LOOP, "-f", "json", "--overlap", overlap)
    run(capsys, samples / LOOP, "-f", "ir", "--overlap", overlap, "-o", planned)
    asked = ["--devices", "8", "--full-batch", "-f", "json", "--overlap", overlap]
    main(["cost", str(planned), *asked])
    cost = json.loads(capsys.readouterr().out)["cost"]
    told = json.loads(out)["cost"]
    assert cost["before"] == pytest.approx(told["after"])
    assert cost["hidden"]["before"] == pytest.approx(told["hidden"]["after"])
    assert told["after"] < told["before"]


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("--overlap", "2"), "from 0 to 1"),
        (("--overlap", "much"), "is no part"),
        (("--overlap", "1", "--to-stages", "2"), "does not go with --to-stages"),
        (("--overlap", "1", "--recompute", "auto"), "leave out the overlap"),
    ],
)
def test_an_overlap_that_means_nothing_is_refused(
    capsys: pytest.CaptureFixture[str], samples: Path, arguments: tuple[str, ...], says: str
) -> None:
    status, _, err = run(capsys, samples / LOOP, *arguments)
    assert status == 2
    assert says in err


@pytest.mark.parametrize(("to", "moves"), [(4, True), (8, False)])
def test_a_file_that_moves_weights_names_what_tells_of_checkpoints(
    capsys: pytest.CaptureFixture[str], samples: Path, tmp_path: Path, to: int, moves: bool
) -> None:
    begin = samples / "mlp_semi_auto/step_parallel_begin_0018.ir"
    if not moves:  # nobody had strategies before
        begin = samples / "mlp_recursive_search/step_auto_parallel_begin_0010.ir"
    file = tmp_path / "plan.json"
    words = () if moves else ("--devices", 8)
    _, _, err = run(capsys, begin, "--to", to, *words, "--format", "strategy", "-o", file)
    assert (f"what becomes of checkpoints: irtool ckpt {begin} {file}" in err) == moves
    if moves:
        assert main(["ckpt", str(begin), str(file)]) == 0
        assert "8 checkpoints become 4" in capsys.readouterr().out


@pytest.mark.parametrize("option", [("--devices", 16), ("--devices", 8, "--to", 16)], ids=str)
def test_it_is_said_that_fewer_devices_are_faster(
    capsys: pytest.CaptureFixture[str], samples: Path, option: tuple[object, ...]
) -> None:
    begin = samples / "mlp_recursive_search/step_parallel_begin_0019.ir"
    _, out, err = run(capsys, begin, *option)
    assert "note: fewer devices are faster: on 1 a step takes 84.3 µs" in out
    assert "fewer devices are faster" in err


@pytest.mark.parametrize("option", [("--keep-configured",), ("--recompute", "auto")], ids=str)
def test_of_what_was_chosen_for_the_devices_no_fewer_are_tried(
    capsys: pytest.CaptureFixture[str], samples: Path, option: tuple[object, ...]
) -> None:
    begin = samples / "mlp_recursive_search/step_parallel_begin_0019.ir"
    _, out, err = run(capsys, begin, "--devices", 16, *option)
    assert "fewer devices" not in out + err
