"""Where MindSpore puts operators for the dataset and for results: small networks."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

import irtool
from irtool.planning.recursive.inserted import inserted_datasets, marked_results
from irtool.sharding.network.context import ParallelContext
from irtool.sharding.network.graphs import network_of

SIZE = "<Tensor[Float32], (8, 4)>"
WEIGHT = "<Ref[Tensor[Float32]], (8, 4), ref_key=w, is_parameter>"
HEAD = f"""# IR entry: @main
%para1_x: {SIZE} : [8, 4]
%para2_w: {WEIGHT}  :  has_default
%para3_state: <UMonad, NoShape> : []
%para4_y: {SIZE} : [8, 4]
"""
INNER = f"""# Parameters: 3, ({SIZE}, <UMonad, NoShape>, {SIZE})
subgraph @inner(%para5_p, %para6_token, %para7_q) {{
  %0(i) = PrimFunc_Mul(%para5_p, %para2_w)
      : ({SIZE}, {WEIGHT}) -> ({SIZE})
  %1(j) = PrimFunc_Add(%0, %para7_q)
      : ({SIZE}, {SIZE}) -> ({SIZE})
  Return(%1)
}}
"""


def analysis_of(main: str, *, trains: bool = False, **context: object) -> Any:
    values: dict[str, Any] = {"devices": 2, "full_batch": True, **context}
    network = network_of(irtool.loads(f"{HEAD}subgraph @main() {{\n{main}}}\n{INNER}", "begin.ir"))
    return SimpleNamespace(network=network, trains=trains, context=ParallelContext(**values))


CALL = f"""  %0(a) = call @inner(%para1_x, %para3_state, %para4_y)
      : ({SIZE}, <UMonad, NoShape>, {SIZE}) -> ({SIZE})
"""
OWN = f"""  %1(b) = PrimFunc_Exp(%para4_y)
      : ({SIZE}) -> ({SIZE})
"""
GIVEN = f"({SIZE}, <UMonad, NoShape>, {SIZE})"
DIFFERENTIATED = f"""  %0(a) = J(@inner)
      : (<Func, NoShape>) -> (<Func, NoShape>)
  %2(c) = %0(%para1_x, %para3_state, %para4_y)
      : {GIVEN} -> (<Tuple[Tensor[Float32],Func], TupleShape((8, 4), NoShape)>)
"""


@pytest.mark.parametrize(
    ("main", "trains", "expected"),
    [
        (CALL + OWN + "  Return(%1)\n", False, {"main": 2}),  # the graph that uses the inputs
        (CALL + OWN + "  Return(%1)\n", True, {"main": 2}),  # by an operator of its own
        (CALL + "  Return(%0)\n", False, {"main": 2}),  # by a call
        (CALL + "  Return(%0)\n", True, {}),  # which is none where it is differentiated
        (DIFFERENTIATED + "  Return(%2)\n", True, {"inner": 2}),  # of that graph, as it is called
        (DIFFERENTIATED + OWN + "  Return(%1)\n", True, {"inner": 2, "main": 2}),
        (OWN.replace("Exp", "_VirtualDataset") + "  Return(%1)\n", False, {}),  # there is one
        ("  Return(%para2_w)\n", False, {}),
    ],
)
def test_inputs_are_split_where_they_are_used(
    main: str, trains: bool, expected: dict[str, int]
) -> None:
    found = inserted_datasets(analysis_of(main, trains=trains))
    assert {one.graph.name: len(one.parameters) for one in found} == expected
    assert [one.graph.name for one in found] == list(expected)


def test_data_is_split_and_weights_and_tokens_are_not() -> None:
    (found,) = inserted_datasets(analysis_of(CALL + OWN + "  Return(%1)\n"))
    assert [parameter.name for parameter in found.parameters] == ["x", "y"]
    assert found.shapes == ((8, 4), (8, 4))


PAIR = "<Tuple[Tensor[Float32]*3], TupleShape((8, 4), (8, 4), (3, 4))>"
RESULTS = f"""  %0(a) = PrimFunc_Exp(%para1_x)
      : ({SIZE}) -> ({SIZE})
  %1(b) = PrimFunc_Neg(%0)
      : ({SIZE}) -> ({SIZE})
  %2(c) = PrimFunc_Sum(%1)
      : ({SIZE}) -> (<Tensor[Float32], (3, 4)>)
  %3(all) = MakeTuple(%0, %1, %2, %para4_y)
      : ({SIZE}, {SIZE}, <Tensor[Float32], (3, 4)>, {SIZE}) -> ({PAIR})
  %4(tied) = Depend(%3, %1)
      : ({PAIR}, {SIZE}) -> ({PAIR})
  %5(again) = Depend(%4, %0)
      : ({PAIR}, {SIZE}) -> ({PAIR})
  %6(number) = PrimFunc_Mean(%2)
      : (<Tensor[Float32], (3, 4)>) -> (<Tensor[Float32], ()>)
"""


@pytest.mark.parametrize(
    ("result", "options", "expected"),
    [
        ("%5", {}, ["a", "b", "c"]),  # behind what only orders; a parameter is no result
        ("%1", {}, ["b"]),
        ("%6", {}, []),  # a number has no rows
        ("%5", {"full_batch": False}, ["a", "b"]),  # three rows are not two halves
        ("%5", {"full_batch": False, "devices": 8}, ["a", "b"]),
        ("%5", {"full_batch": False, "devices": 16}, []),
        ("%5", {"trains": True}, []),
        ("%5", {"dataset": ((2, 1),)}, []),
        ("%5", {"stages": 2, "rank": 0}, []),  # the last stage gives results
        ("%5", {"stages": 2, "rank": 1}, ["a", "b", "c"]),
    ],
)
def test_results_of_inference_are_marked(
    result: str, options: dict[str, Any], expected: list[str]
) -> None:
    found = marked_results(analysis_of(f"{RESULTS}  Return({result})\n", **options))
    assert [node.name for node in found] == expected
