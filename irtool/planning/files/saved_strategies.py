"""Saved strategy files held to a network: what of them takes effect, and what they change.

A file *keyed by parameters* is asked for operators without a strategy of their own whose first
trained weight it names (``ExtractStrategyAndInit`` of MindSpore's ``step_parallel.cc``); its other
keys have no effect, and MindSpore does not say so.  A file *keyed by operators* replaces the search
of sharding propagation: MindSpore compiles nothing where an operator has no entry.  In semi-auto
mode it is passed over without a word, whoever gave operators their strategies (four networks and
their plans, compiled by 2.7.0 with ``set_op_strategy_config("LOAD", …)`` in both modes).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Literal

from irtool.artefacts.strategies import RECEIVES
from irtool.artefacts.strategies.model import SavedLayout, SavedStrategy, StrategyFile
from irtool.ir.dataclass import dataclass
from irtool.ir.dump import Dump
from irtool.ir.finding import Finding
from irtool.ir.graph import Node
from irtool.operators.call import Strategy
from irtool.planning.files.node_names import Naming, first_weight
from irtool.planning.files.parameter_layouts import predicted_layouts
from irtool.sharding.check import check
from irtool.sharding.network.analysis import finding_about
from irtool.sharding.network.context import ParallelContext
from irtool.sharding.network.graphs import network_of
from irtool.sharding.network.report import CheckResult, OperatorReport
from irtool.sharding.network.sharded_nodes import primitive
from irtool.sharding.network.strategies import Wanted

Effect = Literal[
    "used", "same", "own strategy goes first", "other stage", "names nothing", "unknown"
]
DATASET = "_VirtualDataset"


@dataclass(frozen=True, slots=True)
class Entry:
    """One key of a file, and what becomes of it.

    ``nodes``: the operators that it names; ``before``: the strategy that the first of them has
    without the file, None where it has none; ``why``: of an unknown effect.
    """

    key: str
    strategy: Strategy
    nodes: tuple[Node, ...]
    effect: Effect
    before: Strategy | None = None
    why: str = ""


@dataclass(frozen=True, slots=True)
class LayoutChange:
    """A parameter that the file says lies otherwise than the network makes it lie.

    ``saved`` and ``other`` are None where one of the two lacks it.
    """

    name: str
    saved: SavedLayout | None
    other: SavedLayout | None


@dataclass(frozen=True, eq=False)
class SavedCheck:
    """A saved file and a network.

    Attributes:
        file: the file.
        report: what ``check`` says of the network under it.
        entries: every key of the file.
        missing: operators without an entry, where each needs one.
        layouts: parameters whose saved layout is not the one that the network now gives them.
    """

    file: StrategyFile
    report: CheckResult
    entries: tuple[Entry, ...]
    missing: tuple[Node, ...]
    layouts: tuple[LayoutChange, ...]

    @property
    def is_passed_over(self) -> bool:
        """Whether MindSpore would not read the file in the mode of the context."""
        mode = self.report.context.mode
        return self.file.keys == "operators" and mode == "semi_auto_parallel"

    def of(self, *effects: Effect) -> tuple[Entry, ...]:
        """The entries of some effects."""
        return tuple(entry for entry in self.entries if entry.effect in effects)


def check_saved(dump: Dump, context: ParallelContext, file: StrategyFile) -> SavedCheck:
    """Is a saved strategy file legal for a network, and what of it takes effect?

    Args:
        dump: its begin dump.
        context: what it is compiled under.
        file: the strategy file.
    """
    plain = check(dump, context)
    by_operators = file.keys == "operators"
    entries = (
        list(_by_operators(dump, plain, file))
        if by_operators
        else list(_by_parameters(plain, file))
    )
    instead = {
        node: Wanted(entry.strategy, _out_of(file, entry.key))
        for entry in entries
        if entry.effect == "used"
        for node in entry.nodes
    }
    report = check(dump, context, instead) if instead else plain
    named = {node for entry in entries for node in entry.nodes}
    missing: tuple[Node, ...] = ()
    if by_operators:
        # Operators of which nobody can tell the number have an entry all the same.
        unsure = {entry.key.rpartition("-op")[0] for entry in entries if entry.effect == "unknown"}
        missing = tuple(
            item.node
            for item in plain.operators
            if item.node not in named and _prefix(item.node) not in unsure
        )
    layouts = tuple(_layout_changes(file, report))
    saved = SavedCheck(file, report, tuple(entries), missing, layouts)
    return replace(saved, report=_with_findings(saved, context, dump.path))


def _out_of(file: StrategyFile, key: str) -> Strategy | None:
    saved = file.out_strategies.get(key)
    return None if saved is None else saved.strategy


# -- keyed by parameters -------------------------------------------------------------------------


def _by_parameters(plain: CheckResult, file: StrategyFile) -> list[Entry]:
    trained = {
        parameter.name
        for parameter in plain.parameters
        if parameter.mirror_ranks or parameter.scatter_ranks
    }
    weights = {parameter.name for parameter in plain.parameters if parameter.role == "weight"}
    by_key: dict[str, list[OperatorReport]] = {}
    for item in plain.operators:
        weight = first_weight(item.node, trained | weights)
        if weight is not None:
            by_key.setdefault(f"{primitive(item.node)}_{weight}", []).append(item)
    return [
        _entry(saved, by_key.get(key, ()), file, plain.context)
        for key, saved in file.strategies.items()
    ]


def _entry(
    saved: SavedStrategy,
    items: Sequence[OperatorReport],
    file: StrategyFile,
    context: ParallelContext,
) -> Entry:
    nodes = tuple(item.node for item in items)
    if not items:
        # MindSpore saves the layout of what comes from another stage beside those of operators.
        is_other = saved.stage != context.stage or saved.key.startswith(RECEIVES)
        is_other = is_other and file.is_merged
        return Entry(saved.key, saved.strategy, (), "other stage" if is_other else "names nothing")
    own = [item for item in items if not is_free(item.node)]
    before = items[0].strategy
    completes = context.mode == "semi_auto_parallel"  # a search would choose another
    is_said = completes and all(item.strategy == saved.strategy for item in items)
    if any(_differs(item.strategy, saved.strategy) for item in own):
        return Entry(saved.key, saved.strategy, nodes, "own strategy goes first", before)
    if len(own) == len(items) or is_said:
        return Entry(saved.key, saved.strategy, nodes, "same", before)
    free = tuple(item.node for item in items if is_free(item.node))
    return Entry(saved.key, saved.strategy, free, "used", before)


def _differs(own: Strategy | None, saved: Strategy) -> bool:
    """Whether a file says another strategy; one without rows says a ``Layout``, which it can't."""
    return bool(saved) and own != saved


def is_free(node: Node) -> bool:
    """Whether the user gave an operator neither strategy nor layout.

    Args:
        node: an operator of a begin dump.
    """
    keys = ("in_strategy", "in_layout", "out_layout", "layout")
    blocks = (node.primitive_attributes, node.primal_attributes)
    return not any(
        block is not None and key in block and block[key] is not None
        for block in blocks
        for key in keys
    )


# -- keyed by operators --------------------------------------------------------------------------


def _by_operators(dump: Dump, plain: CheckResult, file: StrategyFile) -> list[Entry]:
    naming = Naming(network_of(dump))
    groups: dict[str, dict[Node, OperatorReport]] = {}
    for item in plain.operators:
        groups.setdefault(_prefix(item.node), {})[item.node] = item
    checked: list[Entry] = []
    for prefix, keys in _prefixes(file).items():
        items = groups.get(prefix, {})
        entries = [file.strategies[key] for key in keys]
        order = _order(naming, items, entries)
        for place, saved in enumerate(entries):
            effect: Effect
            # Numbers have gaps where MindSpore removed an operator that it had counted.
            number = place if len(entries) == len(items) else int(saved.key.rpartition("-op")[2])
            if isinstance(order, str):
                checked.append(Entry(saved.key, saved.strategy, (), "unknown", why=order))
            elif prefix.endswith(f"/{DATASET}") and not items:
                checked.append(Entry(saved.key, saved.strategy, (), "same"))
            elif number >= len(order) or place >= len(order):
                # One strategy at numbers that may be in use: those that are not say nothing.
                is_spare = bool(items) and len({entry.strategy for entry in entries}) == 1
                effect = "same" if is_spare else "names nothing"
                checked.append(Entry(saved.key, saved.strategy, (), effect))
            else:
                node = order[number]
                own = items[node].strategy
                # A Reshape must have an entry, but takes over the layouts of its neighbours.
                has_rows = primitive(node) != "Reshape" and saved.key not in file.with_layouts
                effect = "used" if has_rows and own != saved.strategy else "same"
                checked.append(Entry(saved.key, saved.strategy, (node,), effect, own))
    return checked


def _prefix(node: Node) -> str:
    return f"{node.scope or ''}/{primitive(node)}"


def _prefixes(file: StrategyFile) -> Mapping[str, list[str]]:
    """Keys by scope and primitive, in the order of their numbers."""
    by_prefix: dict[str, list[str]] = {}
    for key in file.strategies:
        prefix, _, number = key.rpartition("-op")
        if number.isdecimal():
            by_prefix.setdefault(prefix, []).append(key)
        else:
            by_prefix.setdefault(key, []).append(key)
    for keys in by_prefix.values():
        keys.sort(key=lambda key: (len(key), key))
    return by_prefix


def _order(
    naming: Naming, items: Mapping[Node, OperatorReport], entries: Sequence[SavedStrategy]
) -> tuple[Node, ...] | str:
    """The operators by their numbers, or why these can't be told."""
    if len(items) <= 1 or len({entry.strategy for entry in entries}) == 1:
        return tuple(items)
    ranks = {
        node: tuple(len(shape) for shape in item.judgement.input_slices)
        for node, item in items.items()
    }
    known = [tuple(map(len, entry.strategy)) for entry in entries]
    try:
        ranked = naming.ranked(tuple(items), ranks, known)
    except ValueError:
        ranked = naming.ranked(tuple(items))
    ordered: list[Node] = []
    for number, nodes in enumerate(ranked):
        own = [entry for entry, other in zip(entries, ranked, strict=False) if other == nodes]
        if len({entry.strategy for entry in own}) > 1:
            return (
                f"which of the operators in lines {nodes[0].line} and {nodes[-1].line} MindSpore "
                "counts first cannot be told from this dump"
            )
        ordered.append(nodes[ranked[:number].count(nodes)])
    return tuple(ordered)


# -- layouts -------------------------------------------------------------------------------------


def _layout_changes(file: StrategyFile, report: CheckResult) -> list[LayoutChange]:
    """Parameters that the file says lie otherwise than they do under it."""
    if not file.layouts or report.accepted is False:
        return []
    context = report.context
    stage = context.stage if file.is_merged else None
    predicted = predicted_layouts(report, stage)
    saved = {
        key: layout
        for key, layout in file.layouts.items()
        if layout.stage in (None, context.stage) and layout.name not in predicted.unknown
    }
    return layout_changes(saved, predicted.layouts)


def layout_changes(
    saved: Mapping[str, SavedLayout], other: Mapping[str, SavedLayout]
) -> list[LayoutChange]:
    """What lies otherwise in two sets of layouts, by key."""
    return [
        LayoutChange(key, saved.get(key), other.get(key))
        for key in dict.fromkeys([*saved, *other])
        if not _is_alike(saved.get(key), other.get(key))
    ]


def _is_alike(one: SavedLayout | None, other: SavedLayout | None) -> bool:
    """Whether two layouts say the same, as far as both say it: protobuf knows no shapes."""
    if one is None or other is None:
        return one is other
    plain = replace(other, key=one.key, name=one.name, stage=one.stage)
    if one.shape is None or other.shape is None:
        one, plain = _expanded(one), _expanded(plain)
    return one == plain


def _expanded(layout: SavedLayout) -> SavedLayout:
    """Without a shape, and with an entry for each axis."""
    entries = [
        axis
        for entry in layout.tensor_map
        for axis in (entry if isinstance(entry, tuple) else (entry,))
    ]
    return replace(layout, shape=None, tensor_map=tuple(entries))


# -- two files -----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class StrategyChange:
    """A key that two files give different strategies.

    Attributes:
        before: null: the file before lacks it.
        after: null: the file lacks it.
    """

    key: str
    before: Strategy | None
    after: Strategy | None


@dataclass(frozen=True, slots=True)
class FileChanges:
    """What a file says otherwise than another one."""

    before: StrategyFile
    strategies: tuple[StrategyChange, ...]
    layouts: tuple[LayoutChange, ...]


def file_changes(before: StrategyFile, after: StrategyFile) -> FileChanges:
    """What the second file says otherwise than the first one.

    Args:
        before: a strategy file.
        after: one that is keyed alike.
    """
    strategies: list[StrategyChange] = []
    for key in dict.fromkeys([*before.strategies, *after.strategies]):
        old, new = before.strategies.get(key), after.strategies.get(key)
        rows = tuple(None if saved is None else saved.strategy for saved in (old, new))
        if rows[0] != rows[1]:
            strategies.append(StrategyChange(key, rows[0], rows[1]))
    layouts = [
        LayoutChange(change.name, change.other, change.saved)
        for change in layout_changes(after.layouts, before.layouts)
    ]
    return FileChanges(before, tuple(strategies), tuple(layouts))


# -- findings ------------------------------------------------------------------------------------


def _with_findings(saved: SavedCheck, context: ParallelContext, path: str) -> CheckResult:
    """What ``check`` says, and what is wrong with the file itself."""
    findings: list[Finding] = []
    file = saved.file

    def add(code: str, is_error: bool, message: str, node: Node | None = None) -> None:
        severity = "error" if is_error else "warning"
        findings.append(finding_about(node, path, code, severity, message))

    if file.layouts and file.stage_devices != context.stage_size:
        message = (
            f"{file.path} is for {file.stage_devices} devices a stage, the network for "
            f"{context.stage_size}"
        )
        add("strategy-file-devices", False, message)
    for node in saved.missing:
        message = (
            f"{file.path} has no entry for {_prefix(node)}: MindSpore says 'Load strategies failed'"
        )
        add("strategy-file-missing", True, message, node)
    for entry in saved.of("own strategy goes first"):
        message = (
            f"{entry.key} of {file.path} has no effect: the network's own strategy {entry.before} "
            f"goes before {entry.strategy}"
        )
        add("strategy-file-unused", False, message, entry.nodes[0])
    for entry in saved.of("names nothing"):
        add("strategy-file-unused", False, f"{entry.key} of {file.path} names no operator here")
    for entry in saved.of("unknown"):
        add("unknown", False, f"{entry.key} of {file.path}: {entry.why}")
    accepted = saved.report.accepted
    if saved.missing:
        accepted = False
    elif accepted and saved.of("unknown"):
        accepted = None
    return replace(saved.report, accepted=accepted, findings=(*saved.report.findings, *findings))
