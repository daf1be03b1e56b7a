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


LEFT = """\
# IR entry: @net

%para1_x: <Tensor[Float32], (8, 64)> : [8, 64]
%para2_w: <Ref[Tensor[Float32]], (64, 64), ref_key=w>  :  has_default

subgraph @net() {
  %0(y) = PyExecute("__call_func_str__()", %para1_x)
      : (<String, NoShape>, <Tensor[Float32], (8, 64)>) -> (<Tensor[Float32], SHAPE>)
      # In file net.py:9, 8~20/        y = Tensor(np.tanh(y.asnumpy()))/
  %1(z) = PrimFunc_MatMul(%0, %para2_w, Bool(0), Bool(0)) {in_strategy: ((2, 1), (1, 2))}
      : (<Tensor[Float32], SHAPE>, <Ref[Tensor[Float32]], (64, 64), ref_key=w>, <Bool, NoShape>, \
<Bool, NoShape>) -> (<Tensor[Float32], SHAPE>)
      # In file net.py:10, 8~20/        y = self.product(y, self.w)/
  %2(z) = PrimFunc_ReLU(%1) {in_strategy: ((2, 2))}
      : (<Tensor[Float32], SHAPE>) -> (<Tensor[Float32], SHAPE>)
      # In file net.py:11, 8~20/        y = self.relu(y)/
  Return(%2)
}
"""


@pytest.mark.parametrize(("shape", "is_python"), [("(-2)", True), ("(64)", False)])
def test_what_is_refused_behind_python_is_one_finding_at_the_line_of_python(
    tmp_path: Path, shape: str, is_python: bool
) -> None:
    (tmp_path / "step_parallel_begin_0018.ir").write_text(LEFT.replace("SHAPE", shape))
    found = made(tmp_path, "--task", "strategy", status=1)["findings"]
    assert ("Python's interpreter" in found[0]["cause"]) == is_python
    assert found[0]["source"]["line"] == (9 if is_python else 10)
    assert (len(found) == 1) == is_python
