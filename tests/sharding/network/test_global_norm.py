"""Clipping by the global norm adds sums of squares up over devices, and over stages."""

from __future__ import annotations

import pytest

import irtool
from irtool.sharding.check import check
from irtool.sharding.network.context import ParallelContext

CLIPPED = """\
# Total params: 2
# Params:
%para1_g: <Tensor[Float32], (16)> : [16]
%para2_w: <Ref[Tensor[Float32]], (16), ref_key=w, is_parameter>  :  has_default

subgraph @1_step() {
  %0(e) = EnvironCreate()
      : () -> (<Object:EnvType, NoShape>)
  %1(k) = RefToEmbed(%para2_w)
      : (<Ref[Tensor[Float32]], (16), ref_key=w, is_parameter>) -> (<Object:SymbolicKey, NoShape>)
  %2(g) = EnvironGet(%0, %1, %para1_g)
      : (<Object:EnvType, NoShape>, <Object:SymbolicKey, NoShape>, <Tensor[Float32], (16)>) -> (<Tensor[Float32], (16)>)
  %3(q) = PrimFunc_Square(%2)
      : (<Tensor[Float32], (16)>) -> (<Tensor[Float32], (16)>)
  %4(s) = PrimFunc_ReduceSum(%3, (), Bool(0), Bool(0))
      : (<Tensor[Float32], (16)>, <Tuple[], TupleShape()>, <Bool, NoShape>, <Bool, NoShape>) -> (<Tensor[Float32], ()>)
  %5(s) = PrimFunc_ExpandDims(%4, I64(0)) primitive_attrs: {grad_scale: Bool(1)}
      : (<Tensor[Float32], ()>, <Int64, NoShape>) -> (<Tensor[Float32], (1)>)
  %6(n) = PrimFunc_Sqrt(%5)
      : (<Tensor[Float32], (1)>) -> (<Tensor[Float32], (1)>)
  Return(%6)
      : (<Tensor[Float32], (1)>)
}
"""  # noqa: E501  (lines as MindSpore prints them)


@pytest.mark.parametrize(
    ("stages", "groups"),
    [(1, [(0, 1, 2, 3, 4, 5, 6, 7)]), (2, [(0, 1, 2, 3), (2, 6)])],
)
def test_over_the_stage_and_between_stages(stages: int, groups: list[tuple[int, ...]]) -> None:
    context = ParallelContext(devices=8, rank=2, stages=stages, full_batch=True)
    norms = check(irtool.loads(CLIPPED), context).norms
    assert [item.ranks for item in norms] == groups
    assert {(item.op, item.reduce, item.bytes) for item in norms} == {("AllReduce", "sum", 4)}


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (" primitive_attrs: {grad_scale: Bool(1)}", ""),
        ("PrimFunc_Sqrt", "PrimFunc_Exp"),
        ("PrimFunc_Square", "PrimFunc_Abs"),
    ],
    ids=["unmarked", "no square root", "another operator on the way"],
)
def test_other_sums_are_left_alone(old: str, new: str) -> None:
    context = ParallelContext(devices=8, full_batch=True)
    assert check(irtool.loads(CLIPPED.replace(old, new)), context).norms == ()
