"""Run folders: ranks, compilations, passes, what else a run leaves, and paths of a command line."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

import irtool
from irtool import DumpError, load_run
from irtool.syntax.run.context import context_beside, context_value, read_case
from irtool.syntax.run.expanding import expand

TINY = "# IR entry: @main_1\n# Total subgraphs: 1\n\n# Total params: 0\n\n"


def put(folder: Path, *names: str, text: str = TINY) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for name in names:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)


# -- runs --------------------------------------------------------------------------------------


def test_a_pipeline_run(samples: Path) -> None:
    run = irtool.load_run(samples / "pipeline_run")
    assert run.ranks == (0, 4)
    assert not run.problems
    (compilation,) = run.rank(4).compilations
    assert [file.name for file in compilation.passes] == ["step_parallel_begin", "validate"]
    assert [(file.number, file.order, file.rank) for file in compilation.passes] == [
        (18, 0, 4),
        (80, 1, 4),
    ]
    assert compilation.context is not None
    assert compilation.context["pipeline_stages"] == 2
    assert compilation.context["global_rank"] == 4
    assert compilation.begin is not None
    assert compilation.begin is compilation.begin
    assert compilation.validate is not None
    assert compilation.validate.path.endswith("20_validate_0080.ir")
    assert compilation.auto_begin is None
    assert compilation.end is None
    assert compilation.dump("no such pass") is None
    assert compilation.is_training
    assert compilation.chosen == ""
    assert [item.ranks for item in run.classes()] == [(0,), (4,)]
    with pytest.raises(LookupError, match="ranks: 0, 4"):
        run.rank(1)


def test_whole_joins_one_rank_a_stage(samples: Path, tmp_path: Path) -> None:
    whole = load_run(samples / "pipeline_run").whole()
    assert [Path(dump.path).parent.name for dump in whole.dumps] == ["rank_0", "rank_4"]
    assert whole.transfers
    # Without a context, one rank of each class of equal graphs.
    for rank in (0, 4):
        folder = tmp_path / f"rank_{rank}"
        folder.mkdir()
        shutil.copy(samples / f"pipeline_run/rank_{rank}/20_validate_0080.ir", folder)
    assert len(load_run(tmp_path).whole().transfers) == len(whole.transfers)


def two_compilations(folder: Path, samples: Path) -> None:
    """Train and eval of one process: one counter, kernel graphs between the stages."""
    names = ("00_bootstrap", "opt_pass_0_opt_a", "step_parallel_begin", "12_optimize")
    put(folder, *(f"{name}_{index:04}.ir" for index, name in enumerate(names)))
    shutil.copy(samples / "gpt/20_validate_0080.ir", folder / "20_validate_0004.ir")
    put(
        folder, "verbose_ir_files/hwopt_x_0005.ir", "graph_build_0_0006.ir", "trace_code_graph_0007"
    )
    put(folder, "22_task_emit_0008.ir")
    put(folder, *(f"{name}_{index:04}.ir" for index, name in enumerate(names, 9)))
    put(folder, "20_validate_0013.ir", "graph_build_1_0014.ir", text=TINY * 10_000)
    put(folder / "actor_set", "0_actor_set_x.ir")
    put(folder, "ms_output_optimize.pb", "00_bootstrap_0000.dot")


def test_ranks_of_different_runs_are_not_taken_for_one_run(tmp_path: Path) -> None:
    """Two ranks ran first, four then; the first is larger on rank 0."""
    for name, ranks, size in (("first", 2, 300), ("second", 4, 200)):
        for rank in range(ranks):
            put(tmp_path / name / f"rank_{rank}", "20_validate_0001.ir", text=TINY * size)
    put(tmp_path / "second" / "rank_3" / "again", "20_validate_0001.ir", text=TINY * 900)
    across = load_run(tmp_path).across_ranks()
    assert {rank: one.folder for rank, one in across.items()} == {0: "first", 1: "first"}
    across = load_run(tmp_path).across_ranks(1)
    assert {rank: one.folder for rank, one in across.items()} == dict.fromkeys(range(4), "second")


def test_folders_that_no_other_rank_has_do_not_part_ranks(tmp_path: Path) -> None:
    """As where each process names its folder by the time."""
    for rank in range(2):
        for number in range(2):
            put(tmp_path / f"rank_{rank}" / f"at_{rank}{number}", "20_validate_0001.ir")
    assert sorted(load_run(tmp_path).across_ranks(1)) == [0, 1]


def test_two_compilations_in_one_folder(tmp_path: Path, samples: Path) -> None:
    two_compilations(tmp_path / "rank_3", samples)
    run = load_run(tmp_path)
    train, evaluate = run.rank(3).compilations
    assert [file.number for file in train.passes] == list(range(9))
    assert [file.number for file in evaluate.passes] == list(range(9, 15))
    assert [file.order for file in evaluate.passes] == list(range(9, 15))
    assert [file.base for file in train.kernel_graphs] == ["graph_build_0", "trace_code_graph"]
    # The other one is the larger file, but has no backward pass.
    assert evaluate.main.size > train.main.size
    picked = run.compilation()
    assert picked.index == 0
    assert "compilation 0 of 2 of rank 3: the largest one in training" in picked.chosen
    assert run.compilation(1).index == 1
    with pytest.raises(LookupError, match="no compilation 2"):
        run.compilation(2)


def test_compilations_without_stage_files(tmp_path: Path) -> None:
    put(tmp_path, *(f"step_parallel_begin_{number:04}.ir" for number in (18, 99)))
    put(tmp_path, *(f"20_validate_{number:04}.ir" for number in (80, 160, 240)))
    compilations = load_run(tmp_path).compilations
    assert [[file.number for file in one.passes] for one in compilations] == [
        [18, 80],
        [99, 160],
        [240],
    ]


def test_stages_of_an_unknown_version_restart_too(tmp_path: Path) -> None:
    put(tmp_path, "00_new_0000.ir", "01_newer_0001.ir", "00_new_0002.ir", "01_newer_0003.ir")
    assert [len(one.passes) for one in load_run(tmp_path).compilations] == [2, 2]


def test_dumps_without_numbers_stand_in_the_order_of_passes(tmp_path: Path) -> None:
    put(tmp_path, "validate.ir", "step_parallel_begin.ir", "step_auto_parallel_begin.ir")
    (compilation,) = load_run(tmp_path).compilations
    assert [file.name for file in compilation.passes] == [
        "step_auto_parallel_begin",
        "step_parallel_begin",
        "validate",
    ]


def test_numbers_that_repeat_are_reported(tmp_path: Path) -> None:
    put(tmp_path, "00_bootstrap_0000.ir", "01_type_inference_0001.ir", "01_event_method_0001.ir")
    (problem,) = load_run(tmp_path).problems
    assert "several processes" in problem.message


def test_everything_that_a_run_leaves(tmp_path: Path) -> None:
    put(tmp_path / "out/graphs/rank_0", "step_parallel_begin_0018.ir", "20_validate_0080.ir")
    put(tmp_path / "out/graphs/rank_10", "step_parallel_begin_0018.ir")
    put(tmp_path / "rank_0/om", "analyze_fail.ir")
    put(tmp_path / "log_output/1/rank.2", "stdout", "stderr")
    put(tmp_path, "worker_0.log", "scheduler.log", "loss.csv", "strategy_ckpt.json")
    put(tmp_path / "dump/rank_0/Net/0/3", "statistic.csv")
    put(tmp_path / "dump/rank_0/Net/0/4", "Add.x_Add-op0.0.0.17.input.0.DefaultFormat.Float32.npy")
    put(
        tmp_path / "dump/rank_0/Net/0/constants",
        "Parameter.d.0.0.1.output.0.DefaultFormat.Bool.npy",
    )
    put(tmp_path / "dump/rank_0/execution_order", "ms_execution_order_graph_0.csv")
    put(tmp_path / "dump/rank_0/graphs", "ms_output_trace_code_graph_0.ir")
    put(tmp_path / "probe/graph/step2/rank1", "dump.json", "stack.json")
    put(tmp_path / "probe/step0/proc77", "dump.json")
    put(tmp_path, "case.json", text='{"context": {"device_num": "16", "full_batch": "True"}}')
    run = load_run(tmp_path)
    assert run.ranks == (0, 1, 2, 10)
    (compilation,) = run.rank(0).compilations
    assert [file.name for file in compilation.passes] == [
        "step_parallel_begin",
        "validate",
        "ms_output_trace_code_graph_0",
        "analyze_fail",
    ]
    assert compilation.context == {"device_num": 16, "full_batch": True, "global_rank": 0}
    assert run.rank(10).context == {"device_num": 16, "full_batch": True, "global_rank": 10}
    assert [(log.kind, log.rank) for log in run.logs] == [
        ("stderr", 2),
        ("stdout", 2),
        ("scheduler", None),
        ("worker", 0),
    ]
    assert [log.kind for log in run.rank(2).logs] == ["stderr", "stdout"]
    assert [Path(path).name for path in run.losses] == ["loss.csv"]
    assert [Path(path).name for path in run.strategy_files] == ["strategy_ckpt.json"]
    dumps = [(dump.net, dump.graph, dump.iteration) for dump in run.rank(0).tensor_dumps]
    assert dumps == [("Net", 0, 3), ("Net", 0, 4), ("Net", 0, None)]
    assert [dump.tensors for dump in run.rank(0).tensor_dumps] == [False, True, True]
    assert len(run.rank(0).execution_order) == 1
    assert [(m.rank, m.step, m.process, m.part) for m in run.msprobe] == [
        (0, 0, 77, ""),
        (1, 2, None, "graph"),
    ]


def test_settings_of_a_dump_are_no_dump(tmp_path: Path) -> None:
    put(tmp_path / "run", "dump.json", text='{"common_dump_settings": {"dump_mode": 0}}')
    put(tmp_path / "run", "20_validate_0080.ir")
    assert not load_run(tmp_path / "run").msprobe
    put(tmp_path / "run", "dump.json", text='{"task": "statistics", "data": {')
    assert len(load_run(tmp_path / "run").msprobe) == 1


def test_rank_of_a_flat_folder(tmp_path: Path) -> None:
    put(tmp_path / "flat", "20_validate_0080.ir")
    assert load_run(tmp_path / "flat").ranks == (0,)
    put(tmp_path / "flat", "case.json", text='{"context": {"global_rank": "5"}}')
    assert load_run(tmp_path / "flat").ranks == (5,)
    put(tmp_path / "rank_7", "20_validate_0080.ir")
    assert load_run(tmp_path / "rank_7").ranks == (7,)
    put(tmp_path / "rank_7", "case.json", text="{oops")
    (problem,) = load_run(tmp_path / "rank_7").problems
    assert problem.file.endswith("case.json")


def test_graphs_beside_the_only_rank_belong_to_it(tmp_path: Path) -> None:
    put(tmp_path / "ir", "20_validate_0074.ir")
    put(tmp_path / "rank_6/Net/0/0", "statistic.csv")
    run = load_run(tmp_path)
    assert run.ranks == (6,)
    assert run.compilation().main.rank == 6


def test_an_empty_folder_is_an_empty_run(tmp_path: Path) -> None:
    run = load_run(tmp_path)
    assert (run.ranks, run.compilations, run.context, run.problems) == ((), (), None, ())
    with pytest.raises(LookupError, match="no dumps"):
        run.compilation()


def test_a_folder_that_is_none(tmp_path: Path) -> None:
    with pytest.raises(DumpError, match="no such folder"):
        load_run(tmp_path / "missing")
    put(tmp_path, "20_validate_0080.ir")
    with pytest.raises(DumpError, match="is no folder"):
        load_run(tmp_path / "20_validate_0080.ir")


def test_closed_folders_are_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    put(tmp_path / "rank_0", "20_validate_0080.ir")
    put(tmp_path / "rank_1", "20_validate_0080.ir")
    real = os.scandir

    def scandir(path: str) -> object:
        if str(path).endswith(closed):
            raise PermissionError(13, "Permission denied", path)
        return real(path)

    monkeypatch.setattr(os, "scandir", scandir)
    closed = "rank_1"
    run = load_run(tmp_path)
    assert run.ranks == (0,)
    assert "permission denied" in run.problems[0].message
    closed = tmp_path.name
    with pytest.raises(DumpError, match="permission denied"):
        load_run(tmp_path)
    (problem,) = expand([str(tmp_path)]).problems
    assert (problem.code, problem.message) == ("RUN012", "permission denied")


def test_loops_of_links_end_and_links_to_dumps_count_once(tmp_path: Path) -> None:
    put(tmp_path / "rank_0", "20_validate_0080.ir")
    (tmp_path / "rank_0/loop").symlink_to(tmp_path)
    (tmp_path / "rank_0/latest.ir").symlink_to("20_validate_0080.ir")
    (tmp_path / "rank_0/gone.ir").symlink_to("missing")
    (tmp_path / "again").symlink_to(tmp_path / "rank_0")
    assert [file.base for one in load_run(tmp_path).compilations for file in one.passes] == [
        "20_validate"
    ]
    found = expand([str(tmp_path / "**" / "*.ir")])
    assert [Path(file.path).name for file in found.files] == ["20_validate_0080.ir", "latest.ir"]


def test_dumps_are_kept_up_to_a_bound(
    tmp_path: Path, samples: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = samples / "mlp_semi_auto/step_parallel_begin_0018.ir"
    for number in range(3):
        shutil.copy(source, tmp_path / f"step_parallel_begin_{number:04}.ir")
    monkeypatch.setattr("irtool.syntax.run._MOST_DUMPS", 2)
    first, second, third = load_run(tmp_path).compilations
    kept = first.begin
    assert second.begin is not None
    assert first.begin is kept
    assert third.begin is not None
    assert len(first.shelf.dumps) == 2
    assert first.begin is kept


def test_context_values() -> None:
    assert context_value("8") == 8
    assert context_value("[[1, 2], [3]]") == ((1, 2), (3,))
    assert context_value("[]") == ()
    assert context_value("False") is False
    assert context_value("full_batch") == "full_batch"
    assert context_value("(oops") == "(oops"
    assert context_value(3) == 3


def test_context_beside_a_dump(samples: Path, tmp_path: Path) -> None:
    context = context_beside(str(samples / "mlp_semi_auto/20_validate_0080.ir"))
    assert context is not None
    assert context["device_num"] == 8
    assert context_beside(str(tmp_path / "x.ir")) is None


def test_a_case_without_a_table_context_is_the_context_itself(tmp_path: Path) -> None:
    (tmp_path / "case.json").write_text('{"device_num": "8", "gradients_mean": "True"}')
    assert context_beside(str(tmp_path / "x.ir")) == {"device_num": 8, "gradients_mean": True}


def test_a_case_whose_context_is_no_table_says_so(tmp_path: Path) -> None:
    (tmp_path / "case.json").write_text('{"context": 8, "device_num": 8}')
    assert context_beside(str(tmp_path / "x.ir")) is None
    assert "is no table" in read_case(str(tmp_path / "case.json"))[1]


# -- the corpus --------------------------------------------------------------------------------


def test_every_case_of_the_corpus_is_one_compilation(corpus: Path) -> None:
    cases = sorted(path for path in (corpus / "verdicts").iterdir() if path.is_dir())
    run = load_run(corpus / "verdicts")
    assert not run.problems
    assert len(run.compilations) == len(cases)
    for compilation in run.compilations:
        assert compilation.context is not None
        assert compilation.context["global_rank"] == compilation.rank
        assert compilation.file("step_parallel_begin") is not None


def test_precision_runs_of_the_corpus(corpus: Path) -> None:
    run = load_run(corpus / "precision/mindspore_cpu/reference")
    (compilation,) = run.compilations
    assert [file.base for file in compilation.kernel_graphs] == [
        "graph_build_0",
        "ms_output_trace_code_graph_0",
    ]
    assert [dump.iteration for dump in run.tensor_dumps] == [0]
    assert [Path(path).name for path in run.losses] == ["loss.json"]
    assert len(run.rank(0).execution_order) == 2
    probe = load_run(corpus / "precision/msprobe_pytorch/none")
    assert [(dump.step, dump.process) for dump in probe.msprobe] == [(0, 3712)]
    assert len(load_run(corpus / "precision/loss").losses) == 7


def test_large_dumps_of_the_corpus_have_names_of_their_own(corpus: Path) -> None:
    (compilation,) = load_run(corpus / "large").compilations
    assert [file.name for file in compilation.passes] == ["step_parallel_begin", "validate"]
