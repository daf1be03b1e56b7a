"""``irtool memory``: its answer for scripts, and its report for people."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Annotated, Any, Literal, TypeAlias

from irtool.artefacts.joining import nodes_by_name
from irtool.artefacts.recorded_memory import MemoryRecord, RecordedMemory
from irtool.artefacts.tracker import MemoryBlock
from irtool.cluster.account import compiled_account
from irtool.cluster.context.model import RunContext
from irtool.cluster.liveness import Rounding
from irtool.cluster.memory import AliveCause, AliveTensor, Interval, Memory
from irtool.cluster.memory.static import StaticCause, StaticTensor
from irtool.cluster.what_if import Combination, Option, Saving, Traffic
from irtool.cluster.what_if.plan import MemoryPlan
from irtool.cluster.what_if.stages import ServedWeight
from irtool.ir.dataclass import dataclass
from irtool.ir.dump import dump_of
from irtool.ir.graph import Node
from irtool.ir.phases import Phase
from irtool.ir.units import (
    bytes_text,
    count_text,
    operations_text,
    plural,
    ranks_text,
    ratio,
    share_text,
)
from irtool.report import model
from irtool.report.answer import AnswerObject, doc
from irtool.report.model import (
    Amount,
    Answer,
    Cell,
    Column,
    Element,
    Facts,
    Note,
    Picture,
    Report,
    Table,
    Tone,
    first_rows,
    number_column,
    text_column,
)
from irtool.report.page.charts import Mark, Series, line_chart
from irtool.report.page.keys import node_key
from irtool.report.run_answer import RunAnswer, context_fields
from irtool.report.text import shortened

USUAL_ROWS = 10


LaunchSourceName: TypeAlias = Literal["recorded", "graph_build", "validate"]


@dataclass(frozen=True, slots=True)
class LaunchOrder:
    """By what the order of launches is known, which decides what is alive together.

    Attributes:
        source: ``recorded`` by a run; else worked out as MindSpore does it, from that dump.
        path: the record, or the dump.
        why: why a record that is there is not used.
    """

    source: LaunchSourceName
    path: str
    why: str | None = None


@dataclass(frozen=True, eq=False)
class RankMemory:
    """Memory of ranks with equal graphs; ``plan`` is there for the worst of them."""

    rank: int | None
    ranks: tuple[int, ...]
    stage: int | None
    memory: Memory
    plan: MemoryPlan | None = None
    order: LaunchOrder | None = None
    recorded: RecordedMemory | None = None

    @property
    def predicted(self) -> Interval:
        """What the record, where there is one, is to be held against.

        Of a CPU's pool the tensors of a step; of a device's the peak, with the work space that is
        in no dump and buffers of fused collectives.
        """
        memory = self.memory
        if self.recorded is not None and not self.recorded.holds_static:
            error, size = memory.order_error, memory.dynamic_bytes
            return Interval(size - error, size + error)
        return memory.peak_interval + memory.workspace + memory.fusion

    @property
    def name(self) -> str:
        """``rank 4-7, stage 1``; the path where nothing says whose dump it is."""
        if not self.ranks:
            return self.memory.path
        stage = "" if self.stage is None else f", stage {self.stage}"
        return f"rank {ranks_text(self.ranks)}{stage}"


@dataclass(frozen=True, eq=False)
class MemoryView:
    """What to show: ranks, the worst first; ``limit`` in bytes; which lists, how many ``rows``."""

    ranks: tuple[RankMemory, ...]
    limit: int | None = None
    layers: bool = False
    servers: bool = False
    rows: int | None = None

    @property
    def worst(self) -> RankMemory:
        """The one that needs most."""
        return self.ranks[0]


# -- for scripts ---------------------------------------------------------------------------------


class StaticTensorBytes(AnswerObject, frozen=True, kw_only=True):
    """A tensor that outlives a step."""

    name: str
    cause: StaticCause
    parameter: Annotated[str, doc("the weight that it belongs to")]
    layer: str
    bytes: Annotated[int | None, doc("null: a dimension is not known")]
    dtype: str | None
    shape: Sequence[int] | None
    on_host: Annotated[bool, doc("in host memory")]
    line: Annotated[int, doc("of the dump")]


class StaticBytes(AnswerObject, frozen=True, kw_only=True):
    """What stays for the whole run."""

    bytes: int
    by_cause: dict[str, int]
    host_bytes: Annotated[int, doc("in host memory, counted nowhere else")]
    tensors: list[StaticTensorBytes]


class PeakBytes(AnswerObject, frozen=True, kw_only=True):
    """When a device holds most."""

    bytes: Annotated[int, doc("`static` and `dynamic`")]
    static: int
    dynamic: Annotated[int, doc("the most that the tensors of a step take at once")]
    by_cause: Annotated[dict[str, int], doc("of `dynamic`")]
    launch: Annotated[int | None, doc("place in `curve`; null: nothing is launched")]
    node: str | None
    op: str | None
    line: Annotated[int | None, doc("of the dump")]


class ByteInterval(AnswerObject, frozen=True, kw_only=True):
    """At least `low` and at most `high` bytes."""

    low: int
    high: int


class RecordedBlock(AnswerObject, frozen=True, kw_only=True):
    """A block of memory that was alive at the recorded peak."""

    name: Annotated[str, doc("of the task that it was made for")]
    node: Annotated[str | None, doc("null: the task is no node of the dump")]
    line: Annotated[int | None, doc("of the dump")]
    kind: Annotated[str, doc("as the tracker calls it: `Weight`, `Kernel`, `WorkSpace`, …")]
    bytes: int


class RecordedBytes(AnswerObject, frozen=True, kw_only=True):
    """The most that the rank held as it recorded it, and what was predicted of the same."""

    record: Annotated[
        MemoryRecord,
        doc("`blocks` of the memory tracker, `pool` of the profiler, the `cpu pool`, or a `log`"),
    ]
    path: str
    allocated: Annotated[int | None, doc("at once, at most")]
    pool: Annotated[int | None, doc("what the pool had taken, fragments included; null: unsaid")]
    fragments: Annotated[int | None, doc("`pool` less `allocated`")]
    workspace: Annotated[int | None, doc("of kernels, at that peak; null: the record has no kinds")]
    by_kind: Annotated[dict[str, int], doc("of `allocated`, by what blocks are for")]
    predicted: Annotated[
        ByteInterval, doc("of what the record holds: a CPU's pool has no weights and inputs in it")
    ]
    alive: Annotated[list[RecordedBlock], doc("at that peak, the largest first")]


class CurvePoint(AnswerObject, frozen=True, kw_only=True):
    """A launch of a step."""

    launch: Annotated[int, doc("from 0")]
    node: str
    op: str
    bytes: Annotated[int, doc("on the device, `static` ones included")]


class AliveAtPeak(AnswerObject, frozen=True, kw_only=True):
    """A tensor that is alive at the peak."""

    node: str
    output: Annotated[int, doc("which result of the node")]
    op: str
    bytes: Annotated[int | None, doc("null: not known, counted as nothing")]
    cause: AliveCause
    phase: Phase
    layer: str
    born: Annotated[int, doc("place in `curve`")]
    dies: Annotated[int, doc("place in `curve`")]
    last_user: Annotated[str | None, doc("the node that keeps it")]
    scope: str | None
    line: Annotated[int, doc("of the dump")]


class CommunicatorBytes(ByteInterval, frozen=True, kw_only=True):
    """Bytes of the buffers that a device holds for its communicators."""

    groups: Annotated[Sequence[str], doc("names of the groups")]


class AppliedOption(AnswerObject, frozen=True, kw_only=True):
    """A switch of MindSpore and what it is applied to."""

    switch: str
    target: Annotated[str, doc("a cell or parameter; empty: the whole network")]
    how: Annotated[str, doc("the lines to write")]


class MemoryOption(AppliedOption, frozen=True, kw_only=True):
    """One of MindSpore's own switches, tried by itself."""

    saved: Annotated[int, doc("of the peak")]
    flops: Annotated[int, doc("done more in a step")]
    flops_unknown: Annotated[int, doc("operators that could not be counted")]
    traffic_bytes: Annotated[int, doc("moved more in a step by one rank; negative: saved")]
    traffic: Sequence[Traffic]
    seconds: Annotated[float, doc("a step takes longer by, modelled")]
    saved_per_flop: float | None
    saved_per_byte: Annotated[float | None, doc("of traffic")]
    note: str


class OptionSet(AnswerObject, frozen=True, kw_only=True):
    """Options that together stay below the limit; all of them are needed."""

    peak: Annotated[int, doc("of the device, with all of them")]
    seconds: Annotated[float, doc("a step takes longer by, modelled")]
    options: list[AppliedOption]


class UnshardableWeight(AnswerObject, frozen=True, kw_only=True):
    """A weight that optimizer parallel leaves whole."""

    weight: str
    bytes: int | None
    why: str


class ServerWeight(AnswerObject, frozen=True, kw_only=True):
    """What parameter server mode would move for a weight in a step."""

    weight: str
    bytes: int
    rows_only: Annotated[bool, doc("of a lookup table: only looked-up rows are transferred")]
    pushed: Annotated[int, doc("bytes that a worker sends")]
    pulled: Annotated[int, doc("bytes that a worker receives")]
    all_reduce: Annotated[int, doc("bytes that the sum of its gradient moves now")]


class RankPeak(AnswerObject, frozen=True, kw_only=True):
    """What each of some ranks with equal graphs holds."""

    rank: Annotated[int | None, doc("whose dump was read; null: not known")]
    ranks: Sequence[int]
    stage: int | None
    path: str
    static: int
    dynamic: int
    peak: int
    device: ByteInterval
    complete: bool
    fits: bool | None


class MemoryAnswer(RunAnswer, frozen=True, kw_only=True, tag_field="schema", tag="irtool.memory/1"):
    """What a device holds, when it holds most, and what would make that less.

    Sizes are bytes on one device; the keys at the top are those of the worst rank.
    """

    path: Annotated[str, doc("the dump")]
    rank: Annotated[int | None, doc("null: not known")]
    stage: int | None
    limit: Annotated[int | None, doc("bytes of `--limit`")]
    fits: Annotated[
        bool | None, doc("below `limit`; null: no limit, or an unknown part leaves it open")
    ]
    static: StaticBytes
    peak: PeakBytes
    order: LaunchOrder
    recorded: Annotated[RecordedBytes | None, doc("null: nothing recorded it")]
    curve: Annotated[list[CurvePoint], doc("of a step, in launch order")]
    alive_at_peak: Annotated[list[AliveAtPeak], doc("the largest first")]
    communicators: CommunicatorBytes
    workspace: Annotated[ByteInterval, doc("of kernels")]
    fusion: Annotated[ByteInterval, doc("buffers of fused collectives")]
    order_error: Annotated[
        int, doc("by how much the peak may be off, as the order is derived from the validate dump")
    ]
    device: Annotated[ByteInterval, doc("all that a device holds at the peak")]
    account: Annotated[
        dict[str, int],
        doc("bytes of the tensors by cause, as `cost` predicts them; `groups`: how many"),
    ]
    complete: Annotated[
        bool, doc("false: sizes are not known, or results of control flow were not followed")
    ]
    unknown: Annotated[Sequence[str], doc("tensors of unknown size")]
    notes: Annotated[Sequence[str], doc("what the figures leave out")]
    rounding: Rounding
    options: Annotated[list[MemoryOption], doc("the cheapest byte first")]
    combinations: Annotated[list[OptionSet], doc("below the limit, the cheapest first")]
    unshardable: list[UnshardableWeight]
    servers: list[ServerWeight]
    micro_batches: int
    ranks: Annotated[list[RankPeak], doc("the worst first")]


def memory_answer(view: MemoryView, plan: MemoryPlan, context: RunContext) -> MemoryAnswer:
    """The answer of ``irtool memory`` for scripts.

    Args:
        view: what ranks hold, the one that needs most first.
        plan: what would make it less, of that rank.
        context: of the run, with origins.
    """
    worst = view.worst
    memory = worst.memory
    return MemoryAnswer(
        path=memory.path,
        rank=worst.rank,
        stage=worst.stage,
        limit=view.limit,
        fits=None if view.limit is None else memory.fits(view.limit),
        static=StaticBytes(
            bytes=memory.static_bytes,
            by_cause={str(cause): size for cause, size in memory.static_by_cause.items()},
            host_bytes=memory.host_bytes,
            tensors=[_static(item) for item in memory.static],
        ),
        peak=_peak(memory),
        order=_order(worst),
        recorded=None if worst.recorded is None else _recorded(worst, worst.recorded),
        curve=[
            CurvePoint(launch=place, node=item.node.id, op=item.op, bytes=size)
            for place, (item, size) in enumerate(
                zip(memory.launched, memory.device_curve, strict=True)
            )
        ],
        alive_at_peak=[_alive(item) for item in memory.alive],
        communicators=CommunicatorBytes(
            groups=memory.communicators.groups,
            low=memory.communicators.bytes.low,
            high=memory.communicators.bytes.high,
        ),
        workspace=_interval(memory.workspace),
        fusion=_interval(memory.fusion),
        order_error=memory.order_error,
        device=_interval(memory.device_bytes),
        account=compiled_account(memory).items(),
        complete=memory.is_complete,
        unknown=memory.unknown,
        notes=memory.notes,
        rounding=memory.rounding,
        options=[_option(saving) for saving in plan.savings],
        combinations=[_option_set(one) for one in plan.combinations],
        unshardable=[
            UnshardableWeight(weight=weight.name, bytes=weight.tensor.bytes, why=why)
            for weight, why in plan.unshardable
        ],
        servers=[_server(one) for one in plan.served],
        micro_batches=plan.micro_batches,
        ranks=[_rank(one, view.limit) for one in view.ranks],
        **context_fields(context),
    )


def _order(one: RankMemory) -> LaunchOrder:
    return one.order or LaunchOrder("validate", one.memory.path)


def _recorded(one: RankMemory, record: RecordedMemory) -> RecordedBytes:
    nodes = _nodes_of(one)
    return RecordedBytes(
        record=record.record,
        path=record.path,
        allocated=record.allocated,
        pool=record.pool,
        fragments=record.fragments,
        workspace=record.workspace,
        by_kind=dict(record.by_kind),
        predicted=_interval(one.predicted),
        alive=[
            RecordedBlock(
                name=block.full_name or block.node or block.task,
                node=None if node is None else node.id,
                line=None if node is None else node.line,
                kind=block.kind,
                bytes=block.size,
            )
            for block in record.alive
            for node in [_node_of(block, nodes)]
        ],
    )


def _nodes_of(one: RankMemory) -> Mapping[str, Sequence[Node]]:
    """Nodes by full name, of the dump whose memory was counted."""
    launched = one.memory.launched
    dump = dump_of(launched[0].node) if launched else None
    return {} if dump is None else nodes_by_name(dump)


def _node_of(block: MemoryBlock, nodes: Mapping[str, Sequence[Node]]) -> Node | None:
    candidates = nodes.get(block.full_name or "", ())
    return candidates[0] if len(candidates) == 1 else None


def _static(item: StaticTensor) -> StaticTensorBytes:
    return StaticTensorBytes(
        name=item.name,
        cause=item.cause,
        parameter=item.parameter,
        layer=item.layer,
        bytes=item.bytes,
        dtype=item.dtype,
        shape=item.shape,
        on_host=item.on_host,
        line=item.line,
    )


def _peak(memory: Memory) -> PeakBytes:
    launched = memory.peak_launch
    node = None if launched is None else memory.launched[launched].node
    return PeakBytes(
        bytes=memory.peak_bytes,
        static=memory.static_bytes,
        dynamic=memory.dynamic_bytes,
        by_cause={str(cause): size for cause, size in memory.alive_by_cause().items()},
        launch=launched,
        node=node.id if node else None,
        op=node.op if node else None,
        line=node.line if node else None,
    )


def _alive(item: AliveTensor) -> AliveAtPeak:
    return AliveAtPeak(
        node=item.node.id,
        output=item.index,
        op=item.node.op,
        bytes=item.bytes,
        cause=item.cause,
        phase=item.phase,
        layer=item.layer,
        born=item.born,
        dies=item.dies,
        last_user=None if item.last_user is None else item.last_user.id,
        scope=item.node.scope,
        line=item.node.line,
    )


def _interval(interval: Interval) -> ByteInterval:
    return ByteInterval(low=interval.low, high=interval.high)


def _option(saving: Saving) -> MemoryOption:
    option = saving.option
    return MemoryOption(
        switch=option.switch,
        target=option.target,
        how=option.how,
        saved=saving.saved,
        flops=option.flops,
        flops_unknown=option.flops_unknown,
        traffic_bytes=option.traffic_bytes,
        traffic=option.traffic,
        seconds=saving.seconds,
        saved_per_flop=saving.per_flop,
        saved_per_byte=saving.per_byte,
        note=option.note,
    )


def _option_set(one: Combination) -> OptionSet:
    return OptionSet(
        peak=one.peak,
        seconds=one.seconds,
        options=[
            AppliedOption(switch=option.switch, target=option.target, how=option.how)
            for option in one.options
        ],
    )


def _server(one: ServedWeight) -> ServerWeight:
    return ServerWeight(
        weight=one.name,
        bytes=one.bytes,
        rows_only=one.is_table,
        pushed=one.pushed,
        pulled=one.pulled,
        all_reduce=one.all_reduce,
    )


def _rank(one: RankMemory, limit: int | None) -> RankPeak:
    memory = one.memory
    return RankPeak(
        rank=one.rank,
        ranks=one.ranks,
        stage=one.stage,
        path=memory.path,
        static=memory.static_bytes,
        dynamic=memory.dynamic_bytes,
        peak=memory.peak_bytes,
        device=_interval(memory.device_bytes),
        complete=memory.is_complete,
        fits=None if limit is None else memory.fits(limit),
    )


# -- for people ----------------------------------------------------------------------------------


def memory_report(view: MemoryView, is_page: bool = False) -> Report:
    """What a device holds; a page draws the curve of a step and shows every list.

    Args:
        view: what ranks hold, and the bytes that a device has, where a limit is asked for.
        is_page: whether pictures are seen.
    """
    memory = view.worst.memory
    facts = [*_facts(memory), *_order_facts(view.worst), *_recorded_facts(view.worst)]
    elements: list[Element] = [Facts(facts)]
    elements += [Note(f"note: {text}") for text in memory.notes]
    if is_page:
        elements += [_curve_picture(view), _causes_table(memory)]
    elements += _tables(view, is_page)
    tone: Tone = "plain"
    if view.limit is not None:
        fits = memory.fits(view.limit)
        tone = "unknown" if fits is None else "good" if fits else "bad"
    return Report(f"memory: {memory.path}", Answer(_answer_text(view), tone), elements)


def _tables(view: MemoryView, is_page: bool) -> Iterator[Element]:
    def shown(table: Table) -> Table:
        return first_rows(table, view.rows, USUAL_ROWS)

    memory, plan = view.worst.memory, view.worst.plan
    if len(view.ranks) > 1:
        yield shown(_ranks_table(view))
    if view.layers or is_page:
        yield _layers_table(memory)
    yield shown(_alive_table(memory))
    if view.worst.recorded is not None and view.worst.recorded.alive:
        yield shown(_recorded_table(view.worst, view.worst.recorded))
    if plan is None:
        return
    if plan.savings:
        yield shown(_savings_table(plan, is_page))
    yield from _combinations(view, plan)
    if plan.unshardable:
        yield shown(_unshardable_table(plan))
    if view.servers or (is_page and plan.served):
        yield shown(_servers_table(plan))


def _answer_text(view: MemoryView) -> str:
    """``rank 0-3, stage 0: peak 52.1 GiB: does not fit 32.0 GiB``."""
    worst = view.worst
    name = worst.name if len(view.ranks) > 1 or worst.ranks else worst.memory.path
    text = f"{name}: peak {bytes_text(worst.memory.peak_bytes)}"
    if not worst.memory.is_complete:
        text = f"{name}: peak at least {bytes_text(worst.memory.peak_bytes)}"
    return text if view.limit is None else f"{text}; {_verdict_text(worst.memory, view.limit)}"


def _verdict_text(memory: Memory, limit: int) -> str:
    """Whether it fits, in words."""
    size = bytes_text(limit)
    match memory.fits(limit):
        case True:
            return f"fits {size}"
        case False:
            return f"does not fit {size}"
        case None:
            return f"may or may not fit {size}"


def _facts(memory: Memory) -> Iterator[tuple[str, str]]:
    yield "static", f"{bytes_text(memory.static_bytes)}: {_parts_text(memory.static_by_cause)}"
    yield "dynamic", f"{bytes_text(memory.dynamic_bytes)}: {_parts_text(memory.alive_by_cause())}"
    if memory.peak_launch is not None:
        node = memory.launched[memory.peak_launch].node
        count = f"launch {count_text(memory.peak_launch + 1)} of {count_text(len(memory.launched))}"
        yield "peak at", f"{node} in line {node.line} ({count})"
    if memory.host_bytes:
        yield "on the host", bytes_text(memory.host_bytes)
    yield "not in a dump", ", ".join(_intervals(memory))
    yield "device", _interval_text(memory.device_bytes)
    if memory.unknown:
        names = ", ".join(shortened(name, 32) for name in memory.unknown[:4])
        more = f" and {len(memory.unknown) - 4} more" if len(memory.unknown) > 4 else ""
        what = f"{plural(len(memory.unknown), 'tensor')} of unknown size"
        yield "not counted", f"{what}: {names}{more}"


def _order_facts(one: RankMemory) -> Iterator[tuple[str, str]]:
    """By what the order is known; nothing of a dump that was named alone."""
    order = one.order
    if order is None:
        return
    text = {
        "recorded": f"as recorded by {order.path}",
        "graph_build": f"derived from the graph that the backend built, {order.path}",
        "validate": "derived from the validate dump; the backend may launch in another order",
    }[order.source]
    yield "order", text
    if order.why:
        yield "not as recorded", order.why


def _recorded_facts(one: RankMemory) -> Iterator[tuple[str, str]]:
    """What was recorded beside what is predicted of the same."""
    record = one.recorded
    if record is None:
        return
    held = record.pool if record.allocated is None else record.allocated
    if held is None:
        return
    what = "" if record.holds_static else " by tensors of a step (a CPU's pool holds no weights)"
    yield "recorded", f"{bytes_text(held)}{what}, by {record.path}"
    predicted = one.predicted
    off = _off_text(held, predicted)
    yield "predicted", f"{_interval_text(predicted)} of the same{off}"
    parts = [f"{kind} {bytes_text(size)}" for kind, size in record.by_kind.items()]
    if parts:
        yield "recorded for", ", ".join(parts)
    if record.fragments is not None:
        pool = f"the pool took {bytes_text(record.pool or 0)}"
        yield "fragments", f"{bytes_text(record.fragments)}: {pool}"
    if record.others:
        parts = [f"{pool or 'unnamed'} {bytes_text(size)}" for pool, size in record.others.items()]
        yield "other pools", ", ".join(parts)


def _off_text(recorded: int, predicted: Interval) -> str:
    """``: 2.8 % less``; empty where the record lies in the interval."""
    if predicted.low <= recorded <= predicted.high and predicted.low < predicted.high:
        return ", which holds it"
    near = predicted.high if predicted.high < recorded else predicted.low
    if near == recorded:
        return ": equal"
    more = "more" if near > recorded else "less"
    return f": {share_text(ratio(abs(near - recorded), recorded))} {more}"


def _parts_text(sizes: Mapping[Any, int]) -> str:
    parts = [f"{cause} {bytes_text(size)}" for cause, size in sizes.items() if size]
    return ", ".join(parts) or "nothing"


def _intervals(memory: Memory) -> Iterator[str]:
    yield f"workspace {_interval_text(memory.workspace)}"
    yield f"fused collectives {_interval_text(memory.fusion)}"
    groups = len(memory.communicators.groups)
    buffers = _interval_text(memory.communicators.bytes)
    yield f"communicators {buffers} ({plural(groups, 'group')})"
    if memory.order_error:
        yield f"order of launches up to {bytes_text(memory.order_error)} more or less"


def _interval_text(interval: Interval) -> str:
    """``1.0 GiB``, ``0 B to 32.0 MiB``."""
    if interval.low == interval.high:
        return bytes_text(interval.low)
    return f"{bytes_text(interval.low)} to {bytes_text(interval.high)}"


def _curve_picture(view: MemoryView) -> Picture:
    """The curve of the worst rank: bytes over the launches of a step."""
    memory = view.worst.memory
    static = float(memory.static_bytes)
    total = [(float(place), float(size)) for place, size in enumerate(memory.device_curve)]
    below = [(0.0, static), (float(max(len(total) - 1, 1)), static)]
    series = [Series("static and dynamic", total, True), Series("static", below)]
    marks = [] if memory.peak_launch is None else [Mark(memory.peak_launch, _peak_label(memory))]
    svg = line_chart(
        series if total else [],
        "launches of one step",
        "bytes on the device",
        "bytes",
        marks,
        None if view.limit is None else float(view.limit),
    )
    about = "Bytes on the device over the launches of one step, with the static ones and the peak."
    return Picture("Over one step", svg, about)


def _peak_label(memory: Memory) -> str:
    node = memory.launched[memory.peak_launch or 0].node
    return f"peak {bytes_text(memory.peak_bytes)} at {node.id} {node.op}"


# -- tables ----------------------------------------------------------------------------------------


def _causes_table(memory: Memory) -> Table:
    columns = [text_column("cause"), text_column("memory"), number_column("bytes", "bytes")]
    static, alive = memory.static_by_cause, memory.alive_by_cause()
    rows = [
        *([cause, "static", size] for cause, size in static.items() if size),
        *([cause, "at the peak", size] for cause, size in alive.items() if size),
    ]
    return Table("What the device holds", columns, rows)


def _ranks_table(view: MemoryView) -> Table:
    """One line a class of equal ranks, the worst first."""
    columns = [
        text_column("ranks"), number_column("stage"), number_column("static", "bytes", 1),
        number_column("dynamic", "bytes", 1), number_column("peak", "bytes"),
        Column("device"),
    ]  # fmt: skip
    columns += [text_column("verdict")] if view.limit is not None else []
    rows: list[Sequence[Cell]] = []
    for one in view.ranks:
        memory = one.memory
        device = memory.device_bytes
        row: list[Cell] = [
            ranks_text(one.ranks) if one.ranks else memory.path,
            one.stage,
            memory.static_bytes,
            memory.dynamic_bytes,
            memory.peak_bytes,
            Amount(device.low, "bytes", _interval_text(device)),
        ]
        rows.append(row if view.limit is None else [*row, _verdict_text(memory, view.limit)])
    return Table("Ranks, the worst first", columns, rows)


def _layers_table(memory: Memory) -> Table:
    causes: tuple[StaticCause, ...] = ("parameters", "optimizer state", "accumulated gradients")
    columns = [text_column("layer"), *(number_column(cause, "bytes") for cause in causes)]
    rows = [
        [layer, *(sizes.get(cause, 0) for cause in causes), sum(sizes.values())]
        for layer, sizes in memory.static_by_layer(causes).items()
    ]
    return Table("Static memory by layer", [*columns, number_column("all", "bytes")], rows)


def _alive_table(memory: Memory) -> Table:
    columns = [
        text_column("node"), text_column("operator"), number_column("bytes", "bytes"),
        text_column("cause"), text_column("layer", 1), number_column("from", rank=2),
        number_column("to", rank=2), text_column("last user", 1),
    ]  # fmt: skip
    rows = [_alive_row(item) for item in memory.alive]
    return Table("Alive at the peak (from and to: places in launch order)", columns, rows)


def _alive_row(item: AliveTensor) -> list[Cell]:
    last = "" if item.last_user is None else f"{item.last_user.id} {item.last_user.op}"
    name = item.node.id + (f"[{item.index}]" if item.index else "")
    return [
        model.Link(name, node_key(item.node)),
        item.node.op,
        Amount(item.bytes, "bytes"),
        item.cause,
        item.layer,
        item.born + 1,
        item.dies + 1,
        last,
    ]


def _recorded_table(one: RankMemory, record: RecordedMemory) -> Table:
    columns = [
        text_column("node"), text_column("made for", 1), number_column("bytes", "bytes"),
        text_column("kind"),
    ]  # fmt: skip
    nodes = _nodes_of(one)
    rows: list[list[Cell]] = []
    for block in record.alive:
        node = _node_of(block, nodes)
        link = None if node is None else model.Link(node.id, node_key(node))
        rows.append([link, block.full_name or block.node or block.task, block.size, block.kind])
    return Table("Alive at the peak, as recorded", columns, rows, noun="block")


def _savings_table(plan: MemoryPlan, is_page: bool) -> Table:
    """Options, the cheapest byte first; text puts equal ones on many cells in one line."""
    columns = [
        Column("option"), text_column("applied to"), number_column("saves", "bytes"),
        number_column("operations", "operations", 1), number_column("moves", "bytes", 1),
        number_column("a step longer", "seconds"), number_column("saved per FLOP", rank=2),
        number_column("per byte moved", rank=2), text_column("note", 1),
    ]  # fmt: skip
    single: list[tuple[Sequence[str], Saving]] = [
        ([saving.option.target], saving) for saving in plan.savings
    ]
    folded = [(one.targets, one.saving) for one in plan.folded_savings]
    rows = [_saving_row(targets, saving) for targets, saving in (single if is_page else folded)]
    title = "What would save memory, each by itself (times are modelled)"
    return Table(title, columns, rows, noun="option")


def _saving_row(targets: Sequence[str], saving: Saving) -> list[Cell]:
    option = saving.option
    more = f" … ({len(targets)}: each)" if len(targets) > 3 else ""
    return [
        option.switch,
        ", ".join(targets[:3]) + more,
        saving.saved,
        _operations(option),
        option.traffic_bytes if option.traffic else None,
        saving.seconds,
        _two_digits(saving.per_flop),
        _two_digits(saving.per_byte),
        option.note,
    ]


def _operations(option: Option) -> Cell:
    if not option.flops_unknown:
        return option.flops or None
    text = f"{operations_text(option.flops)} + {plural(option.flops_unknown, 'unknown operator')}"
    return Amount(option.flops, "operations", text)


def _two_digits(number: float | None) -> Cell:
    return None if number is None else Amount(number, text=f"{number:.2g}")


def _combinations(view: MemoryView, plan: MemoryPlan) -> Iterator[Element]:
    """Sets of options that bring the device below the limit."""
    if view.limit is None or plan.memory.fits(view.limit) is True:
        return
    size = bytes_text(view.limit)
    if not plan.combinations:
        yield Note("")
        yield Note(f"No set of these options fits {size}.")
        return
    columns = [
        number_column("set"), number_column("peak", "bytes"),
        number_column("a step longer", "seconds"), text_column("what to write"),
    ]  # fmt: skip
    rows: list[list[Cell]] = [
        [number, one.peak, one.seconds, _recipe_text(one.options)]
        for number, one in enumerate(plan.combinations, 1)
    ]
    yield Table(f"What fits {size}, the cheapest first", columns, rows)


def _recipe_text(options: Sequence[Option]) -> str:
    """What to write, cells of one switch together."""
    cells: dict[str, list[str]] = {}
    lines: list[str] = []
    for option in options:
        if option.target and option.how.startswith(f"{option.target}."):
            cells.setdefault(option.how.removeprefix(option.target), []).append(option.target)
        else:
            lines.append(option.how)
    for call, names in cells.items():
        some = ", ".join(names) if len(names) < 5 else f"{names[0]} … {names[-1]} ({len(names)})"
        lines.append(f"{some}: {call}")
    return "; ".join(lines)


def _unshardable_table(plan: MemoryPlan) -> Table:
    columns = [
        text_column("weight"), number_column("bytes", "bytes"), number_column("replicas"),
        text_column("why", rank=1),
    ]  # fmt: skip
    rows: list[list[Cell]] = [
        [weight.name, Amount(weight.tensor.bytes, "bytes"), len(weight.replicas), why]
        for weight, why in plan.unshardable
    ]
    return Table("Weights that optimizer parallel leaves whole", columns, rows, noun="weight")


def _servers_table(plan: MemoryPlan) -> Table:
    columns: list[Column] = [
        text_column("weight"), text_column("moved"), number_column("bytes", "bytes"),
        number_column("servers", "bytes"), number_column("AllReduce", "bytes"),
        text_column("result", 1),
    ]  # fmt: skip
    rows: list[list[Cell]] = [
        [
            one.name,
            "rows" if one.is_table else "all",
            one.bytes,
            one.moved,
            one.all_reduce,
            "servers move less" if one.moved < one.all_reduce else "",
        ]
        for one in plan.served
    ]
    title = "Parameter server mode: bytes that a worker moves in a step"
    return Table(title, columns, rows, noun="weight")
