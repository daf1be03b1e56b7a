"""Failures as the doctor tells them: what a message names is looked up in the dump."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.diagnosis.test_examine import made

BEGIN = """\
# IR entry: @net

%para1_x: <Tensor[Float32], (4, 64)> : [4, 64]

subgraph @net() {
  %0(CNode_34) = MakeTuple(OPERANDS)
      : (<String, NoShape>, <String, NoShape>) -> (<null>)
      # Fullname with scope: (Default/MakeTuple-op0)
  %1(y) = ReLU(%para1_x)
      : (<Tensor[Float32], (4, 64)>) -> (<Tensor[Float32], (4, 64)>)
      # In file net.py:9, 8~20/        y = y + np.ones(3)/
  Return(%1)
}
"""
LOG = """\
Traceback (most recent call last):
  File "train.py", line 178, in <module>
RuntimeError: GetNodeShape: CNode_34 shape_ptr is nullptr, full name is Default/MakeTuple-op0
"""


@pytest.mark.parametrize(
    ("operands", "interpreted"),
    [('"__py_exec_index0_add__", "__input_key_0__"', True), ('"mean", "sum"', False)],
)
def test_what_python_runs_inside_of_construct_is_named(
    tmp_path: Path, operands: str, interpreted: bool
) -> None:
    rank = tmp_path / "rank_0"
    rank.mkdir()
    (rank / "step_parallel_begin_0018.ir").write_text(BEGIN.replace("OPERANDS", operands))
    (rank / "compile.log").write_text(LOG)
    (found,) = made(tmp_path, "--task", "compile-failure", status=1)["findings"]
    assert "shape_ptr is nullptr" in found["cause"]
    assert ("NumPy array" in found["cause"]) == interpreted
