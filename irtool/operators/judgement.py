"""What is said of an operator's sharding: reasons, collectives, layouts; and what can go wrong."""

from __future__ import annotations

from dataclasses import field
from typing import Literal

from irtool.ir.dataclass import dataclass
from irtool.operators.call import OperatorCall, Strategy
from irtool.operators.layout import DeviceMatrix, Shape, TensorLayout, TensorMap, UserLayout

Verdict = Literal["legal", "illegal", "unknown"]


@dataclass(frozen=True, slots=True)
class Context:
    """Where an operator runs: the devices of its stage, the rank that looks, the target.

    ``devices``: the sorted, consecutive ranks of the stage; ``device_num``: all devices;
    ``soc``: the soc version ("" is taken for the first Ascend 910, as MindSpore does).
    ``dynamic``: some shape of the whole graph is dynamic. ``searching``: strategies are chosen by a
    search, so this one was not given by the user. ``measured_only``: what nobody asked the real
    compiler about is unknown.
    """

    devices: tuple[int, ...]
    device_num: int = 0
    rank: int = -1
    target: str = "Ascend"
    soc: str = ""
    searching: bool = False
    dynamic: bool = False
    full_batch: bool = False
    dataset_strategy: Strategy | tuple[UserLayout, ...] | None = None
    measured_only: bool = False

    @property
    def stage_size(self) -> int:
        return len(self.devices)

    @property
    def world_size(self) -> int:
        return self.device_num or len(self.devices)

    @property
    def own_rank(self) -> int:
        return self.devices[0] if self.rank < 0 else self.rank


@dataclass(frozen=True, slots=True)
class Reason:
    """Why an operator may not be split so, or why nobody can say: a short code and a sentence.

    ``check``: the place in MindSpore that refuses it (log source ``file:function``), "" where
    there is none.  ``check`` makes a finding of it, which says at which node.
    """

    code: str
    message: str
    check: str


@dataclass(frozen=True, slots=True)
class Collective:
    """A communication that the operator brings with it, seen from one rank.

    ``op``: AllReduce, ReduceScatter, AllGather, NeighborExchangeV2, …; ``reduce``: sum, max, min,
    prod or ""; ``output``: index of the output it follows, or None if it stands before the
    operator, behind its tensor ``input``; ``shape`` is what one device puts in (None: not known).
    ``late``: a pass behind the parallel one makes it, so that ``step_parallel_end`` has it not.
    """

    op: str
    ranks: tuple[int, ...]
    reduce: str = ""
    why: str = ""
    output: int | None = 0
    shape: Shape | None = None
    group: str = ""
    input: int = 0
    late: bool = False

    def dtype_in(self, call: OperatorCall) -> str:
        """Element type of what it carries, of an operator's call; "" where that is not known."""
        if self.output is None:
            return call.tensors[self.input].dtype if self.input < len(call.tensors) else ""
        results = call.results
        return results[min(self.output, len(results) - 1)].dtype if results else ""


@dataclass(frozen=True, slots=True)
class Reduction:
    """A collective of a rule, over device axes (positions in the operator's own matrix)."""

    op: str
    axes: tuple[int, ...]
    reduce: str = "sum"
    why: str = ""
    output: int | None = 0
    shape: Shape | None = None
    input: int = 0


@dataclass(frozen=True, slots=True)
class Sharding:
    """What a rule says of a legal strategy, before the matrix is completed to all devices.

    ``layouts`` given by the user have the whole matrix already (``complete``). ``mirrored``: which
    inputs get a gradient AllReduce if they are parameters (None: all). ``repeat_right``: where the
    axis of repeated calculation goes (None: as the primitive's attribute says, else right).
    ``output_matrix``: matrix of the outputs if it is another,
    ``output_matrices``: that of single outputs.
    ``exchanges``: communication with other ranks than those along an axis (halos), as ranks.
    ``input_slices``: local shapes that the maps don't give (uneven splits), by input.
    ``raw_inputs``: what the local operator gets if it is not the slice (halos, gathers, parts);
    ``raw_outputs``: what it puts out, likewise.
    ``loss_output``: the output that decides the loss divisor; ``loss_divisor``: a fixed one.
    ``replaced``: what the operator is replaced by, if it does not stay one node.
    ``unsure``: what irtool can't say although the strategy is legal. ``no_gradient``: why its
    gradient can't be made of these slices. ``strategy``: what the rule made itself where none was
    given.
    """

    device_matrix: DeviceMatrix
    input_maps: tuple[TensorMap, ...]
    output_maps: tuple[TensorMap, ...]
    reductions: tuple[Reduction, ...] = ()
    exchanges: tuple[Collective, ...] = ()
    mirrored: tuple[bool, ...] | None = None
    repeat_right: bool | None = None
    complete: bool = False
    output_matrix: DeviceMatrix | None = None
    output_matrices: tuple[tuple[int, DeviceMatrix], ...] = ()
    input_slices: tuple[tuple[int, Shape], ...] = ()
    raw_inputs: tuple[tuple[int, Shape], ...] = ()
    raw_outputs: tuple[tuple[int, Shape], ...] = ()
    output_slices: tuple[tuple[int, Shape], ...] = ()
    loss_output: int = 0
    loss_divisor: int | None = None
    replaced: str = ""
    unsure: str = ""
    no_gradient: str = ""
    strategy: Strategy | None = None


@dataclass(frozen=True, slots=True)
class Judgement:
    """The answer for one operator call under one strategy, seen from ``Context.rank``.

    Device matrix and maps are in MindSpore's origin form, the repeated axis included. Slices and
    maps are one a tensor input (elements of tuples in line) and one a tensor output.
    ``raw_inputs`` and ``raw_outputs``: what the operator itself takes in and puts out: after its
    own gathers and halos, before its own scatters.
    ``parts``: how many parts are computed in turn (interleaved layouts); slices are of all parts.
    ``part_inputs`` and ``part_outputs``: the layouts with the axis of parts, where there is one.
    ``mirrors``: per input the ranks of the gradient's AllReduce if that input is a parameter (one
    rank: none is needed). ``loss_divisor``: by what the gradient is divided if this is the loss.
    """

    verdict: Verdict
    strategy: Strategy
    reasons: tuple[Reason, ...] = ()
    device_matrix: DeviceMatrix = ()
    input_layouts: tuple[TensorLayout, ...] = ()
    output_layouts: tuple[TensorLayout, ...] = ()
    input_slices: tuple[Shape, ...] = ()
    output_slices: tuple[Shape, ...] = ()
    raw_inputs: tuple[Shape, ...] = ()
    raw_outputs: tuple[Shape, ...] = ()
    parts: int = 1
    part_inputs: tuple[TensorLayout, ...] = ()
    part_outputs: tuple[TensorLayout, ...] = ()
    collectives: tuple[Collective, ...] = ()
    mirrors: tuple[tuple[int, ...], ...] = ()
    repeats: int = 1
    loss_divisor: int = 1
    generated: bool = False
    kind: Literal["rule", "stand-alone", "batch-parallel"] = "rule"
    replaced: str = ""
    unsure: str = ""
    no_gradient: str = ""
    devices: tuple[int, ...] = field(default=())

    @property
    def input_maps(self) -> tuple[TensorMap, ...]:
        return tuple(layout.tensor_map for layout in self.input_layouts)

    @property
    def output_maps(self) -> tuple[TensorMap, ...]:
        return tuple(layout.tensor_map for layout in self.output_layouts)


class Refused(Exception):
    """A strategy is illegal: MindSpore would refuse it."""

    def __init__(self, code: str, message: str, check: str) -> None:
        super().__init__(message)
        self.reason = Reason(code, message, check)


class Unsure(Exception):
    """A rule does not know what MindSpore makes of a call, and says why."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason
