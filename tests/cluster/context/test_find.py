"""The context of a run: what is given, what dumps show, what is assumed, what contradicts."""

from __future__ import annotations

import lzma
import re
import shutil
from collections.abc import Mapping
from pathlib import Path

import pytest

import irtool
from irtool.cluster.context.evidence import Evidence, evidence_beside, evidence_of, sibling
from irtool.cluster.context.find import find_context
from irtool.cluster.context.given import ContextError, Given, Layer, merged
from irtool.cluster.context.model import Origin, RunContext
from irtool.cluster.context.optimizer import SeenOptimizer, Threshold
from irtool.cluster.context.weigh import weighed
from irtool.cluster.machine import built_in
from irtool.sharding.check import check
from irtool.sharding.network.context import EXCLUDED, ParallelContext

NOTHING = Given()
ASKED = Origin("option")
EVIDENCE = Path(__file__).parents[2] / "linting" / "evidence"
FILE = Origin("file", "case.json")


def asked(**values: object) -> Given:
    return merged([Layer(values, ASKED, is_asked=True)])


def lying_there(**values: object) -> Given:
    return merged([Layer(values, FILE)])


def of_run(folder: Path, given: Given = NOTHING, *, as_run: bool = False) -> RunContext:
    run = irtool.load_run(folder)
    return find_context(given, evidence_of(run, run.compilation()), as_run=as_run)


@pytest.fixture
def excluded(samples: Path) -> Path:
    return samples / "optimizer_excluded"


@pytest.fixture
def semi_auto(samples: Path, tmp_path: Path) -> Path:
    """A run without ``case.json``."""
    folder = tmp_path / "run"
    shutil.copytree(samples / "mlp_semi_auto", folder)
    (folder / "case.json").unlink()
    return folder


def origins(found: RunContext) -> Mapping[str, str]:
    return {key: entry.origin.source for key, entry in found.entries.items()}


# -- what dumps show -----------------------------------------------------------------------------


def test_a_folder_alone_tells_what_its_case_file_does(samples: Path, semi_auto: Path) -> None:
    run = irtool.load_run(samples / "mlp_semi_auto")
    told = find_context(lying_there(**(run.context or {})), Evidence())
    found = of_run(semi_auto)
    assert found.parallel is not None
    assert told.parallel is not None
    same = ("devices", "stages", "rank", "mode", "full_batch", "dataset", "parallel_optimizer")
    for name in same:
        assert getattr(found.parallel, name) == getattr(told.parallel, name), name
    for key in ("device_num", "pipeline_stages", "parallel_mode", "dataset_strategy"):
        assert origins(found)[key] == "dump", key


def test_inputs_tell_the_split_where_no_dataset_operator_is_left(semi_auto: Path) -> None:
    (semi_auto / "step_parallel_end_0019.ir").unlink()
    entry = of_run(semi_auto).entries["dataset_strategy"]
    assert (entry.value, entry.origin.source) == ("full_batch", "dump")
    assert entry.origin.path.endswith("20_validate_0080.ir")


def test_an_input_that_is_no_dataset_says_nothing_of_the_split(semi_auto: Path) -> None:
    """The first gradient of a loss may be an input, cut as the loss lies."""
    (semi_auto / "step_parallel_end_0019.ir").unlink()
    for name in ("step_parallel_begin_0018.ir", "20_validate_0080.ir"):
        path = semi_auto / name
        text = path.read_text()
        line = re.search(r"^%para2_inputs1.*\n", text, re.MULTILINE)
        assert line is not None
        more = line[0].replace("para2_inputs1", "para99_sens").replace("(64, 16)", "(8, 16)")
        path.write_text(text.replace(line[0], line[0] + more))
    assert origins(of_run(semi_auto))["dataset_strategy"] == "assumed"


@pytest.mark.parametrize(
    ("mode", "contradicted"), [("hybrid_parallel", False), ("semi_auto_parallel", True)]
)
def test_shapes_show_no_split_where_the_compiler_splits_nothing(
    mode: str, contradicted: bool, tmp_path: Path
) -> None:
    packed = EVIDENCE / "reduced_twice_encoder.validate.ir.xz"
    (tmp_path / "20_validate_0074.ir").write_bytes(lzma.decompress(packed.read_bytes()))
    given = lying_there(device_num=8, parallel_mode=mode, full_batch=False)
    found = of_run(tmp_path, given)
    told = [each.key for each in found.contradictions if each.key == "dataset_strategy"]
    assert bool(told) == contradicted


def test_a_begin_dump_alone_leaves_it_to_mindspores_default(semi_auto: Path) -> None:
    for name in ("step_parallel_end_0019.ir", "20_validate_0080.ir"):
        (semi_auto / name).unlink()
    found = of_run(semi_auto, asked(device_num=8))
    assert found.value("dataset_strategy") == "data_parallel"
    deciding = {each.key for each in found.assumptions if each.decides}
    assert {"dataset_strategy", "enable_parallel_optimizer", "enable_alltoall"} <= deciding
    assert of_run(semi_auto).parallel is None


def test_weights_that_are_whole_though_smaller_ones_are_cut_were_excluded(excluded: Path) -> None:
    found = of_run(excluded)
    assert found.value("enable_parallel_optimizer") is True
    entry = found.entries[EXCLUDED]
    assert entry.value == ("norm.gamma", "tower.in.weight")
    assert entry.origin.source == "dump"
    assert found.value("parallel_optimizer_threshold") == 0


def test_predicted_slices_are_those_of_the_later_dump(excluded: Path) -> None:
    run = irtool.load_run(excluded)
    begin, validate = run.compilation().begin, run.compilation().validate
    assert begin is not None
    assert validate is not None
    found = of_run(excluded).parallel
    assert found is not None
    real = {one.name: one.type.dimensions for one in validate.parameters if one.type}
    predicted = {item.name: item.slice for item in check(begin, found).parameters}
    assert len(predicted) == 13
    assert predicted == {name: real[name] for name in predicted}


def test_a_redistribution_by_alltoall_shows_that_it_is_on(samples: Path) -> None:
    found = of_run(samples / "all_to_all")
    assert found.value("enable_alltoall") is True
    assert origins(found)["enable_alltoall"] == "dump"
    assert found.value("dataset_strategy") == "full_batch"


def test_stages_are_as_far_apart_as_transfers_reach(samples: Path) -> None:
    folder = samples / "pipeline_run"
    found = of_run(folder)
    assert (found.devices, found.stages) == (8, 2)
    one_stage = of_run(samples / "gpt")
    assert one_stage.entries["pipeline_stages"].origin.source == "dump"
    assert one_stage.stages == 1


INTERLEAVED = Path(__file__).parent / "interleaved_rank_5"


@pytest.mark.parametrize("left", ["", "step_parallel_begin_0018.ir.xz", "20_validate_0089.ir.xz"])
def test_a_rank_of_another_stage_needs_no_folder_of_its_own(left: str, tmp_path: Path) -> None:
    folder = tmp_path / "run"
    shutil.copytree(INTERLEAVED, folder)
    if left:
        (folder / left).unlink()
    found = of_run(folder)
    wanted = {"device_num": 8, "pipeline_stages": 2, "pipeline_interleave": True}
    assert {key: found.value(key) for key in wanted} == wanted
    assert {origins(found)[key] for key in wanted} == {"dump"}
    if left != "20_validate_0089.ir.xz":  # the other has transfers of all stages
        assert (found.value("global_rank"), origins(found)["global_rank"]) == (5, "dump")


def test_chunks_of_layers_contradict_a_file_that_knows_none(tmp_path: Path) -> None:
    folder = tmp_path / "run"
    shutil.copytree(INTERLEAVED, folder)
    config = "{'pipeline_interleave': False, 'pipeline_scheduler': '1f1b'}"
    found = of_run(folder, lying_there(pipeline_config=config))
    assert [each.key for each in found.contradictions] == ["pipeline_interleave"]
    assert found.parallel is not None
    assert found.parallel.interleave


def test_transfers_in_one_piece_are_not_interleaved(samples: Path) -> None:
    found = of_run(samples / "pipeline_run")
    assert found.value("pipeline_interleave") is False
    assert origins(found)["pipeline_interleave"] == "dump"


def test_marks_of_a_search_say_which_one_it_was(samples: Path, tmp_path: Path) -> None:
    for name in ("mlp_recursive_search", "mlp_propagation_layouts"):
        shutil.copytree(samples / name, tmp_path / name)
        (tmp_path / name / "case.json").unlink(missing_ok=True)
    found = of_run(tmp_path / "mlp_recursive_search")
    assert found.value("search_mode") == "recursive_programming"
    assert origins(found)["search_mode"] == "dump"
    found = of_run(tmp_path / "mlp_propagation_layouts")
    assert found.value("search_mode") == "sharding_propagation"
    assert origins(found)["search_mode"] == "assumed"  # another search leaves the same marks
    for given, value, contradicted in (
        (lying_there(search_mode="dynamic_programming"), "dynamic_programming", False),
        (lying_there(search_mode="recursive_programming"), "sharding_propagation", True),
        (asked(search_mode="recursive_programming"), "recursive_programming", False),
    ):
        found = of_run(tmp_path / "mlp_propagation_layouts", given)
        assert found.value("search_mode") == value
        assert bool([c for c in found.contradictions if c.key == "search_mode"]) is contradicted


def test_folders_of_all_ranks_say_how_many_there_are(semi_auto: Path, tmp_path: Path) -> None:
    begin = semi_auto / "step_parallel_begin_0018.ir"
    for rank in range(4):
        folder = tmp_path / "four" / f"rank_{rank}"
        folder.mkdir(parents=True)
        shutil.copy(begin, folder)
    found = of_run(tmp_path / "four")
    assert found.entries["device_num"].value == 4
    assert origins(found)["device_num"] == "folder"
    shutil.rmtree(tmp_path / "four" / "rank_1")
    assert of_run(tmp_path / "four").parallel is None


# -- thresholds, both sides ------------------------------------------------------------------------


def test_thresholds_are_whole_kilobytes(excluded: Path, tmp_path: Path) -> None:
    """Weights of 512 bytes are cut, so the threshold is 0: one of 256 bytes was excluded, too."""
    run = irtool.load_run(excluded)
    folder = tmp_path / "run" / "rank_0"
    folder.mkdir(parents=True)
    for file in run.compilation().passes:
        text = irtool.dumps(run.compilation().read(file))
        text = re.sub(r"^.*norm\.beta.*\n", "", text, flags=re.MULTILINE)
        (folder / Path(file.path).name.removesuffix(".xz")).write_text(text)
    entry = of_run(tmp_path / "run").entries[EXCLUDED]
    assert entry.value == ("norm.gamma", "tower.in.weight")
    assert entry.origin.source == "dump"


def test_a_weight_of_exactly_the_threshold_would_have_been_cut() -> None:
    whole = {"below": 1023, "exactly": 1024, "above": 1025, "large": 9000}
    seen = SeenOptimizer("validate.ir", {}, whole, Threshold(2, 4), None, None, 4096)
    assert seen.excluded(1) == ("above", "exactly", "large")
    assert seen.surely_excluded() == ("large",)
    assert [Threshold(2, 4).allows(value) for value in (1, 2, 4, 5)] == [False, True, True, False]


# -- contradictions --------------------------------------------------------------------------------


def test_a_file_that_says_otherwise_than_the_dumps_does_not_count(excluded: Path) -> None:
    found = of_run(excluded, lying_there(enable_parallel_optimizer=False, device_num=16))
    assert found.value("enable_parallel_optimizer") is True
    assert found.devices == 8
    assert {each.key for each in found.contradictions} == {
        "device_num",
        "enable_parallel_optimizer",
    }
    message = next(each.message for each in found.contradictions if each.key != "device_num")
    assert "false (case.json), but true (" in message


@pytest.mark.parametrize(("as_run", "counts"), [(False, False), (True, True)])
def test_what_was_asked_for_counts_unless_the_run_itself_is_meant(
    excluded: Path, as_run: bool, counts: bool
) -> None:
    given = asked(enable_parallel_optimizer=False)
    found = of_run(excluded, given, as_run=as_run)
    assert found.value("enable_parallel_optimizer") is counts
    assert [each.key for each in found.contradictions] == ["enable_parallel_optimizer"]


def test_the_same_said_in_another_way_is_no_contradiction(semi_auto: Path) -> None:
    for values in (
        {"full_batch": True},
        {"dataset_strategy": ((1, 1), (1, 1))},
        {"dataset_strategy": "full_batch", "full_batch": False},
    ):
        assert of_run(semi_auto, asked(**values)).contradictions == ()
    (found,) = of_run(semi_auto, asked(dataset_strategy=((8, 1), (8, 1)))).contradictions
    assert found.key == "dataset_strategy"


def test_names_that_were_given_may_be_patterns(excluded: Path) -> None:
    given = asked(**{EXCLUDED: "norm.gamma, tower.in.*"})
    found = of_run(excluded, given)
    assert found.parallel is not None
    assert found.parallel.excludes("tower.in.weight")
    assert not found.parallel.excludes("tower.out.weight")


# -- hardware --------------------------------------------------------------------------------------


def test_a_machine_brings_its_soc(semi_auto: Path) -> None:
    evidence = evidence_beside(str(semi_auto / "step_parallel_begin_0018.ir"))
    taken = find_context(NOTHING, evidence)
    assert (taken.value("soc"), origins(taken)["soc"]) == ("Ascend910B", "assumed")
    named = find_context(NOTHING, evidence, built_in("ascend_910b"))
    assert (named.value("soc"), origins(named)["soc"]) == ("Ascend910B", "option")
    first = find_context(asked(soc=""), evidence, built_in("ascend_910b"))
    assert (first.value("soc"), origins(first)["soc"]) == ("", "option")


def test_an_assumed_soc_decides_only_where_a_group_fits_no_server(semi_auto: Path) -> None:
    begin = irtool.load(semi_auto / "step_parallel_begin_0018.ir")
    found = of_run(semi_auto)
    assert found.parallel is not None
    keys = {each.key for each in weighed(found, check(begin, found.parallel)).assumptions}
    deciding = weighed(found, check(begin, found.parallel)).assumptions
    assert "soc" in keys
    assert not any(each.decides for each in deciding)


# -- values that can't be right --------------------------------------------------------------------


@pytest.mark.parametrize(
    ("values", "key"),
    [
        ({"device_num": 12}, "device_num"),
        ({"parallel_mode": "semi_auto"}, "parallel_mode"),
        ({"dataset_strategy": "some"}, "dataset_strategy"),
        ({EXCLUDED: 3}, EXCLUDED),
        ({"dataset_strategy": "(Layout((4, 2), ('dp', 'mp'))('xx', 'None'),)"}, "dataset_strategy"),
    ],
)
def test_a_value_that_makes_no_sense_names_its_key(values: dict[str, object], key: str) -> None:
    with pytest.raises(ContextError) as raised:
        find_context(asked(**values), Evidence())
    assert raised.value.key == key


# -- forms of the dataset --------------------------------------------------------------------------


def test_layouts_of_the_dataset_may_be_written_as_in_python() -> None:
    text = (
        "(Layout((4, 2), ('dp', 'mp'))('dp', 'None'), Layout((4, 2), ('dp', 'mp'))(('dp', 'mp')))"
    )
    found = ParallelContext.from_mapping({"device_num": 8, "dataset_strategy": text}).dataset
    assert isinstance(found, tuple)
    first, second = found
    assert not isinstance(first, tuple)
    assert not isinstance(second, tuple)
    assert (first.device_matrix, first.tensor_map) == ((4, 2), (1, -1))
    assert second.tensor_map == ((1, 0),)


def test_a_list_of_tensors_has_a_nested_strategy() -> None:
    values = {"device_num": 8, "dataset_strategy": "(((4, 1), (4, 1)), (4, 1))"}
    assert ParallelContext.from_mapping(values).dataset == ((4, 1), (4, 1), (4, 1))


# -- which dumps belong together -------------------------------------------------------------------


def test_later_dumps_are_those_of_the_same_compilation(tmp_path: Path) -> None:
    for name in (
        "step_parallel_begin_0018.ir", "step_parallel_end_0019.ir", "20_validate_0080.ir",
        "step_parallel_begin_0118.ir", "20_validate_0180.ir",
    ):  # fmt: skip
        (tmp_path / name).write_text("")
    second = str(tmp_path / "step_parallel_begin_0118.ir")
    assert sibling(second, "validate") == str(tmp_path / "20_validate_0180.ir")
    assert sibling(second, "end") is None
    first = str(tmp_path / "20_validate_0080.ir")
    assert sibling(first, "begin") == str(tmp_path / "step_parallel_begin_0018.ir")


def test_a_later_dump_of_another_network_says_nothing(samples: Path, tmp_path: Path) -> None:
    shutil.copy(samples / "mlp_semi_auto/step_parallel_begin_0018.ir", tmp_path)
    shutil.copy(samples / "gpt/20_validate_0080.ir", tmp_path)
    evidence = evidence_beside(str(tmp_path / "step_parallel_begin_0018.ir"))
    assert evidence.validate is None
    assert find_context(NOTHING, evidence).parallel is None


# -- layouts of functions ------------------------------------------------------------------------

SHARDED_FUNCTION = """\
subgraph @main() {
  %0(CNode_1) = _VirtualDataset(%para1_x) {in_strategy: ((8, 1))}
      : (<Tensor[Float32], (16, 64)>) -> (<Tuple[Tensor[Float32]], TupleShape((16, 64))>)
  %1(CNode_2) = TupleGetItem(%0, I64(0))
      : (<Tuple[Tensor[Float32]], TupleShape((16, 64))>, <Int64, NoShape>) -> (<Tensor[Float32], (16, 64)>)
MARK  %3(CNode_4) = PrimFunc_ReLU(%1) {in_strategy: ((4, 1))}
      : (<Tensor[Float32], (16, 64)>) -> (<Tensor[Float32], (16, 64)>)
  Return(%3)
      : (<Tensor[Float32], (16, 64)>)
}
"""  # noqa: E501  # statements stand in one line
MARK = """\
  %2(CNode_3) = PrimFunc_AShardIdentity(%1) {in_strategy: ((4, 1))}
      : (<Tensor[Float32], (16, 64)>) -> (<Tensor[Float32], (16, 64)>)
"""


def searched(folder: Path, mark: str) -> RunContext:
    text = "%para1_x: <Tensor[Float32], (16, 64)>\n\n" + SHARDED_FUNCTION.replace("MARK", mark)
    (folder / "step_parallel_begin_0001.ir").write_text(text)
    return of_run(folder, lying_there(device_num=8, parallel_mode="semi_auto_parallel"))


def test_a_strategy_of_the_dataset_contradicts_semi_auto_mode(tmp_path: Path) -> None:
    found = searched(tmp_path, "")
    assert [item.key for item in found.contradictions] == ["parallel_mode"]


def test_a_function_with_layouts_is_searched_in_semi_auto_mode_too(tmp_path: Path) -> None:
    found = searched(tmp_path, MARK)
    assert found.contradictions == ()
    assert found.entries["parallel_mode"].value == "auto_parallel"
