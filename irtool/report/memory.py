"""Memory for people: a document of facts and tables."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from irtool.cluster.memory import AliveTensor, Interval, Memory
from irtool.cluster.memory_plan import MemoryPlan
from irtool.cluster.what_if import Option, Saving
from irtool.ir.units import bytes_text, count_text, plural, ranks_text
from irtool.report.model import (
    Block,
    Cell,
    Column,
    Document,
    Facts,
    Heading,
    Note,
    Table,
    first_rows,
    number_column,
    text_column,
)
from irtool.report.text import shortened

USUAL_ROWS = 10


@dataclass(frozen=True, eq=False)
class RankMemory:
    """Memory of ranks with equal graphs; ``plan`` is there for the worst of them."""

    rank: int | None
    ranks: tuple[int, ...]
    stage: int | None
    memory: Memory
    plan: MemoryPlan | None = None

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


def memory_document(view: MemoryView) -> Document:
    """Everything that a view shows."""
    document = Document()
    worst = view.worst
    document.add(Heading(answer_text(view)), Facts(list(_facts(view))))
    document.add(*(Note(f"note: {text}") for text in worst.memory.notes))
    if len(view.ranks) > 1:
        document.add(first_rows(ranks_table(view), view.rows, USUAL_ROWS))
    if view.layers:
        document.add(first_rows(layers_table(worst.memory), 0, USUAL_ROWS))
    document.add(first_rows(alive_table(worst.memory), view.rows, USUAL_ROWS))
    plan = worst.plan
    if plan is not None:
        if plan.savings:
            document.add(first_rows(savings_table(plan), view.rows, USUAL_ROWS))
        document.add(*combination_blocks(view, plan))
        if plan.unshardable:
            document.add(first_rows(unshardable_table(plan), view.rows, USUAL_ROWS))
        if view.servers:
            document.add(first_rows(servers_table(plan), view.rows, USUAL_ROWS))
    return document


def answer_text(view: MemoryView) -> str:
    """``rank 0-3, stage 0: peak 52.1 GiB: does not fit 32.0 GiB``."""
    worst = view.worst
    name = worst.name if len(view.ranks) > 1 or worst.ranks else worst.memory.path
    text = f"{name}: peak {bytes_text(worst.memory.peak_bytes)}"
    if not worst.memory.is_complete:
        text = f"{name}: peak at least {bytes_text(worst.memory.peak_bytes)}"
    return text if view.limit is None else f"{text}; {verdict_text(worst.memory, view.limit)}"


def verdict_text(memory: Memory, limit: int) -> str:
    """Whether it fits, in words."""
    size = bytes_text(limit)
    match memory.fits(limit):
        case True:
            return f"fits {size}"
        case False:
            return f"does not fit {size}"
        case None:
            return f"may or may not fit {size}"


def _facts(view: MemoryView) -> Iterator[tuple[str, str]]:
    memory = view.worst.memory
    static = memory.static_by_cause
    parts = [f"{cause} {bytes_text(size)}" for cause, size in static.items() if size]
    yield "stays", f"{bytes_text(memory.static_bytes)}: {', '.join(parts) or 'nothing'}"
    alive = [
        f"{cause} {bytes_text(size)}" for cause, size in memory.alive_by_cause().items() if size
    ]
    yield "comes and goes", f"{bytes_text(memory.dynamic_bytes)}: {', '.join(alive) or 'nothing'}"
    if memory.peak_launch is not None:
        node = memory.launched[memory.peak_launch].node
        count = f"launch {count_text(memory.peak_launch + 1)} of {count_text(len(memory.launched))}"
        yield "peak at", f"{node} in line {node.line} ({count})"
    if memory.host_bytes:
        yield "on the host", bytes_text(memory.host_bytes)
    yield "unknown to a dump", ", ".join(_intervals(memory))
    yield "device", interval_text(memory.device_bytes)
    if memory.unknown:
        names = ", ".join(shortened(name, 32) for name in memory.unknown[:4])
        more = f" and {len(memory.unknown) - 4} more" if len(memory.unknown) > 4 else ""
        yield (
            "not counted",
            f"{plural(len(memory.unknown), 'tensor')} of unknown size: {names}{more}",
        )


def _intervals(memory: Memory) -> Iterator[str]:
    yield f"work space {interval_text(memory.workspace)}"
    yield f"fused collectives {interval_text(memory.fusion)}"
    groups = len(memory.communicators.groups)
    buffers = interval_text(memory.communicators.bytes)
    yield f"communicators {buffers} ({plural(groups, 'group')})"


def interval_text(interval: Interval) -> str:
    """``1.0 GiB``, ``0 B to 32.0 MiB``."""
    if interval.low == interval.high:
        return bytes_text(interval.low)
    return f"{bytes_text(interval.low)} to {bytes_text(interval.high)}"


# -- tables ------------------------------------------------------------------------------------


def ranks_table(view: MemoryView) -> Table:
    """One line a class of equal ranks, the worst first."""
    columns = [Column("ranks"), number_column("stage"), number_column("stays")]
    columns += [number_column("comes and goes"), number_column("peak"), Column("device")]
    columns += [Column("")] if view.limit is not None else []
    rows: list[list[Cell]] = []
    for one in view.ranks:
        memory = one.memory
        row: list[Cell] = [
            ranks_text(one.ranks) if one.ranks else memory.path,
            one.stage,
            bytes_text(memory.static_bytes),
            bytes_text(memory.dynamic_bytes),
            bytes_text(memory.peak_bytes),
            interval_text(memory.device_bytes),
        ]
        rows.append(row + ([verdict_text(memory, view.limit)] if view.limit is not None else []))
    return Table("Ranks, the worst first", columns, rows)


def layers_table(memory: Memory) -> Table:
    """What stays, by layer and cause."""
    causes = ("parameters", "optimizer state", "accumulated gradients")
    layers: dict[str, dict[str, int]] = {}
    for item in memory.static:
        if item.cause in causes and not item.on_host:
            sizes = layers.setdefault(item.layer, dict.fromkeys(causes, 0))
            sizes[item.cause] += item.bytes or 0
    rows = [
        [layer, *(bytes_text(sizes[cause]) for cause in causes), bytes_text(sum(sizes.values()))]
        for layer, sizes in layers.items()
    ]
    columns = [Column("layer"), *(number_column(cause) for cause in causes), number_column("all")]
    return Table("What stays, by layer", columns, rows)


def alive_table(memory: Memory) -> Table:
    """What is alive at the peak, the largest first."""
    columns = [Column("node"), Column("operator"), number_column("bytes"), Column("why")]
    columns += [
        Column("layer"),
        number_column("from"),
        number_column("to"),
        text_column("last user"),
    ]
    rows = [_alive_row(item) for item in memory.alive]
    return Table("Alive at the peak (from and to: places in launch order)", columns, rows)


def _alive_row(item: AliveTensor) -> list[Cell]:
    last = "" if item.last_user is None else f"{item.last_user.id} {item.last_user.op}"
    return [
        item.node.id + (f"[{item.index}]" if item.index else ""),
        item.node.op,
        bytes_text(item.bytes),
        item.cause,
        item.layer,
        item.born + 1,
        item.dies + 1,
        last,
    ]


def savings_table(plan: MemoryPlan) -> Table:
    """Options, the cheapest byte first; one line for equal ones on many cells."""
    columns = [text_column("what"), text_column("where"), number_column("saves")]
    columns += [number_column("operations"), number_column("moves"), number_column("ms a step")]
    columns += [number_column("saved per FLOP"), number_column("per byte"), text_column("")]
    rows = [_saving_row(names, saving) for names, saving in folded(plan.savings)]
    return Table("What would save memory, each by itself (ms: modelled)", columns, rows)


def folded(savings: Sequence[Saving]) -> Iterator[tuple[list[str], Saving]]:
    """Savings with equal effect of one switch on several targets, together."""
    found: dict[tuple[object, ...], tuple[list[str], Saving]] = {}
    for saving in savings:
        option = saving.option
        key = (option.switch, saving.saved, option.flops, option.traffic_bytes)
        if option.target:
            found.setdefault(key, ([], saving))[0].append(option.target)
        else:
            found[(*key, len(found))] = ([], saving)
    yield from found.values()


def _saving_row(names: Sequence[str], saving: Saving) -> list[Cell]:
    option = saving.option
    where = ", ".join(names[:3]) + (f" … ({len(names)}: each)" if len(names) > 3 else "")
    unknown = f" (+ {option.flops_unknown} unknown)" if option.flops_unknown else ""
    return [
        option.switch,
        where,
        _signed(saving.saved),
        f"{option.flops:,}{unknown}" if option.flops or unknown else "",
        _signed(option.traffic_bytes) if option.traffic else "",
        f"{1000 * saving.seconds:.3f}",
        "" if saving.per_flop is None else f"{saving.per_flop:.2g}",
        "" if saving.per_byte is None else f"{saving.per_byte:.2g}",
        option.note,
    ]


def _signed(size: int) -> str:
    return bytes_text(size) if size >= 0 else f"-{bytes_text(-size)}"


def combination_blocks(view: MemoryView, plan: MemoryPlan) -> Iterator[Block]:
    """Sets of options that bring the device below the limit."""
    if view.limit is None or plan.memory.fits(view.limit) is True:
        return
    if not plan.combinations:
        yield Note("")
        yield Note(f"No set of these options fits {bytes_text(view.limit)}.")
        return
    columns = [number_column(""), number_column("peak"), number_column("ms a step")]
    columns.append(text_column("what to write"))
    rows: list[list[Cell]] = [
        [number, bytes_text(one.peak), f"{1000 * one.seconds:.3f}", recipe_text(one.options)]
        for number, one in enumerate(plan.combinations, 1)
    ]
    yield Table(f"What fits {bytes_text(view.limit)}, the cheapest first", columns, rows)


def recipe_text(options: Sequence[Option]) -> str:
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


def unshardable_table(plan: MemoryPlan) -> Table:
    """Weights that optimizer parallel leaves whole, and why."""
    rows: list[list[Cell]] = [
        [weight.name, bytes_text(weight.tensor.bytes), len(weight.replicas), why]
        for weight, why in plan.unshardable
    ]
    columns = [Column("weight"), number_column("bytes"), number_column("replicas")]
    return Table(
        "Weights that optimizer parallel leaves whole", [*columns, text_column("why")], rows
    )


def servers_table(plan: MemoryPlan) -> Table:
    """Parameter server mode, weight by weight."""
    rows: list[list[Cell]] = [
        [
            one.name,
            "rows" if one.is_table else "all",
            bytes_text(one.bytes),
            bytes_text(one.moved),
            bytes_text(one.all_reduce),
            "servers move less" if one.moved < one.all_reduce else "",
        ]
        for one in plan.served
    ]
    columns = [Column("weight"), Column("moved"), number_column("bytes"), number_column("servers")]
    columns += [number_column("AllReduce"), Column("")]
    return Table("Parameter server mode: bytes a worker moves each step", columns, rows)
