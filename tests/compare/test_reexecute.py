"""Operators computed again: what a healthy dump holds is what its own inputs give."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from irtool.compare.runs.graphs import join_graph
from irtool.compare.runs.sides import side_of_run
from irtool.compare.runs.units import read_unit
from irtool.compare.tensors.formats.payload import read_array
from irtool.compare.tensors.judging.cleared import recomputed_error
from irtool.compare.tensors.judging.reexecute import can_compute
from irtool.compare.tensors.measuring.values import measure_arrays
from irtool.syntax.run import load_run


@pytest.mark.corpus
def test_what_a_healthy_dump_holds_is_what_its_inputs_give(corpus: Path) -> None:
    side = side_of_run(load_run(str(corpus / "precision" / "mindspore_cpu" / "reference")), None)
    (unit,) = side.units.values()
    run = read_unit(unit)
    join_graph(side, run)
    checked: Counter[str] = Counter()
    for op in run.ops:
        if not can_compute(op):
            continue
        for at in op.outputs:
            error = recomputed_error(run, op, None, at)
            if error is None:
                continue
            checked[op.type] += 1
            values = read_array(run.columns.files[at], run.columns.dtypes[at])
            is_residue = measure_arrays(values, values).left < 1e-6
            assert error < 2e-6 or is_residue, op.name
    assert checked["MatMul"] >= 30
    assert checked.keys() >= {"LayerNorm", "Softmax", "GeLU", "GeLUGrad", "BatchMatMul", "AddN"}
