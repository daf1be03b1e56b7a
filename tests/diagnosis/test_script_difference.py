"""What two ranks' networks and settings differ in."""

from __future__ import annotations

from pathlib import Path

import irtool
from irtool.cluster.hang.script import Departure
from irtool.diagnosis.script_difference import script_difference, setting_difference
from irtool.syntax.run import load_run

BEGIN = "step_parallel_begin_0018.ir"
LEFT = Departure((1,), (0,), True, "fewer", 0, None, None, "")


def ranks(folder: Path, *texts: str) -> irtool.Run:
    for rank, text in enumerate(texts):
        place = folder / f"rank_{rank}"
        place.mkdir(parents=True)
        (place / BEGIN).write_text(text)
    return load_run(str(folder))


def test_a_weight_that_one_rank_does_not_train(samples: Path, tmp_path: Path) -> None:
    text = (samples / "mlp_semi_auto" / BEGIN).read_text()
    frozen = text.replace("ApplyMomentum(%para3_up.weight", "Identity(%para3_up.weight")
    assert frozen != text
    found = script_difference(ranks(tmp_path / "a", text, frozen), LEFT)
    assert found is not None
    assert (found.untrained, found.trained) == (("up.weight",), ())
    found = script_difference(ranks(tmp_path / "b", frozen, text), LEFT)
    assert found is not None
    assert (found.untrained, found.trained) == ((), ("up.weight",))


def test_equal_ranks_differ_in_nothing(samples: Path, tmp_path: Path) -> None:
    text = (samples / "mlp_semi_auto" / BEGIN).read_text()
    run = ranks(tmp_path, text, text)
    assert script_difference(run, LEFT) is None
    assert setting_difference(run, LEFT) is None


def test_the_setting_that_a_rank_was_compiled_with(samples: Path, tmp_path: Path) -> None:
    """Of two samples one is of a pipeline."""
    for rank, sample in enumerate(("mlp_semi_auto", "pipeline_2_stages/rank_0")):
        place = tmp_path / f"rank_{rank}"
        place.mkdir()
        (source,) = (samples / sample).glob("*_validate_*.ir")
        (place / "20_validate_0080.ir").write_text(source.read_text())
    found = setting_difference(load_run(str(tmp_path)), LEFT)
    assert found is not None
    assert (found.key, found.value, found.other) == ("device_num", 4, 8)
