"""Finds the context of a run once: what is given, what its dumps show, what MindSpore defaults to.

What was asked for on the command line goes before all else, unless the answer is about the run as
it is (``as_run``). What dumps show goes before files that merely lie there: these may be of another
run, a dump is this one. Where two say different things, both are told. What nobody says and nothing
shows has MindSpore's default, and counts as assumed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import field
from fnmatch import fnmatchcase
from typing import Any, cast

from irtool.cluster.context.dataset import (
    PARALLEL,
    WHOLE,
    Dataset,
    given_dataset,
    same_split,
    seen_dataset,
)
from irtool.cluster.context.evidence import Evidence
from irtool.cluster.context.given import IN_OPTIMIZER, OPTIMIZER, ContextError, Given
from irtool.cluster.context.logged import STAGE_DEVICES
from irtool.cluster.context.model import (
    DEFAULT,
    Assumption,
    Contradiction,
    Entry,
    Origin,
    RunContext,
)
from irtool.cluster.context.optimizer import SeenOptimizer, seen_optimizer
from irtool.cluster.context.placement import (
    least_devices,
    seen_devices,
    seen_rank,
    seen_stages,
)
from irtool.cluster.context.shown import Shown
from irtool.cluster.machine import Machine, default_machine
from irtool.ir.dataclass import dataclass
from irtool.operators.checks import first_generation_problem
from irtool.sharding.network.context import EXCLUDED, ParallelContext, context_fields

STAND_ALONE = "stand_alone"
UNSPLIT_MODES = frozenset((STAND_ALONE, "data_parallel", "hybrid_parallel"))
"""Modes in which the compiler splits nothing: a graph holds what its rank is given."""


@dataclass(frozen=True, slots=True)
class _Read:
    """Fields of the parallel context that somebody gave; the others have MindSpore's defaults."""

    fields: Mapping[str, object]

    def __getitem__(self, name: str) -> Any:
        return self.fields.get(name, getattr(_DEFAULTS, name))


_DEFAULTS = ParallelContext()

Same = Callable[[object, object], bool]


def find_context(
    given: Given,
    evidence: Evidence,
    machine: Machine | None = None,
    *,
    as_run: bool = False,
) -> RunContext:
    """The context of a run.

    Args:
        given: what options and files say.
        evidence: its dumps.
        machine: the one that was named; None where it is only taken for want of another.
        as_run: what dumps show goes before whatever is given: for answers about what a run holds.

    Raises:
        ContextError: a value can't be right.
    """
    finder = _Finder(given, evidence, as_run)
    finder.place()
    finder.modes()
    finder.hardware(machine)
    finder.dataset(finder.stage_size)
    finder.optimizer(finder.stage_size)
    finder.switches()
    return finder.done()


@dataclass
class _Finder:
    """One search: entries as they are found."""

    given: Given
    evidence: Evidence
    as_run: bool
    entries: dict[str, Entry] = field(default_factory=dict[str, Entry])
    assumptions: list[Assumption] = field(default_factory=list[Assumption])
    contradictions: list[Contradiction] = field(default_factory=list[Contradiction])
    values: dict[str, object] = field(default_factory=dict[str, object])

    def __post_init__(self) -> None:
        self.values = dict(self.given.values)
        self._read = _checked(self.given)

    # -- one key -------------------------------------------------------------------------------

    def said(self, key: str, value: object) -> Entry | None:
        """The entry of a key that somebody gave."""
        origin = self.given.origins.get(key)
        return None if origin is None else Entry(value, origin)

    def settle(
        self, key: str, said: Entry | None, seen: Entry | None, same: Same | None = None
    ) -> Entry | None:
        """Take what is given or shown; say so where they differ."""
        used = said or seen
        sure = seen is not None and seen.origin.source != "assumed"
        if said and seen and sure and not (same or _equal)(said.value, seen.value):
            asked = not self.as_run and self._is_asked(key)
            used, other = (said, seen) if asked else (seen, said)
            self.contradictions.append(Contradiction(key, used, other))
        if used is not None:
            self.entries[key] = used
            if used.origin.source == "assumed":
                self.assumptions.append(Assumption(key, used.value, used.origin.what, decides=True))
        return used

    def with_log(self, key: str, seen: Entry | None) -> Entry | None:
        """What a dump shows, else what a log says; where the two differ, that is said."""
        said = self.evidence.logged.get(key)
        if said is None or seen is None or seen.origin.source == "assumed":
            return said or seen
        if seen.value != said.value:
            self.contradictions.append(Contradiction(key, seen, said))
        return seen

    def _is_asked(self, key: str) -> bool:
        keys = (key, "full_batch") if key == "dataset_strategy" else (key,)
        return any(name in self.given.asked for name in keys)

    def assume(self, key: str, value: object, *, decides: bool, why: str = "") -> None:
        """Take MindSpore's default for a key of which nobody says anything, and note it as assumed.

        Args:
            key: of the context.
            value: that MindSpore takes.
            decides: whether another value could change answers.
            why: what it is assumed from; "": it is the default.
        """
        origin = Origin("assumed", what=why) if why else DEFAULT
        self.entries[key] = Entry(value, origin)
        self.assumptions.append(Assumption(key, value, origin.what, decides))

    @property
    def has_later(self) -> bool:
        """Whether a dump is there that shows what became of the strategies."""
        return next(self.evidence.later, None) is not None

    # -- devices -------------------------------------------------------------------------------

    def place(self) -> None:
        """Find the number of devices, that of pipeline stages, and the rank."""
        said = self.said("device_num", self._read["devices"])
        seen = seen_devices(self.evidence, thorough=said is None)
        seen = self.with_log("device_num", seen)
        stages = seen_stages(self.evidence)
        if said is None and seen is None and stages is not None and not stages.has_pipeline:
            seen = self.evidence.logged.get(STAGE_DEVICES)  # of the only stage
        if said is None and seen is None and stages is not None:
            seen = least_devices(self.evidence, stages)
        devices = self.settle("device_num", said, seen)
        count = cast("int", devices.value) if devices is not None else None
        said = self.said("pipeline_stages", self._read["stages"])
        seen = None
        if stages is not None and not stages.has_pipeline:
            seen = Entry(1, Origin("dump", stages.path, "nothing is sent to another stage"))
        elif stages and devices and count and stages.size and count % stages.size == 0:
            what = stages.what or f"each sends to ranks {stages.size} away"
            if stages.taken_rank is not None:
                what = f"the dump taken for one of rank {stages.taken_rank}"
            guessed = stages.taken_rank is not None or devices.origin.source == "assumed"
            origin = Origin("assumed" if guessed else "dump", stages.path, what)
            seen = Entry(count // stages.size, origin)
        self.settle("pipeline_stages", said, self.with_log("pipeline_stages", seen))
        if "pipeline_stages" not in self.entries and stages is None:
            self.assume("pipeline_stages", 1, decides=True)
        said = self.said("global_rank", self._read["rank"])
        rank = said or self.with_log("global_rank", seen_rank(self.evidence))
        if rank is None:
            self.assume("global_rank", 0, decides=False)
        else:
            self.settle("global_rank", rank, None)

    @property
    def stage_size(self) -> int | None:
        """Devices of one stage, where both counts are known."""
        devices, stages = self.number("device_num"), self.number("pipeline_stages")
        return devices // stages if devices and stages and devices % stages == 0 else None

    def number(self, key: str) -> int | None:
        """A count that is known."""
        entry = self.entries.get(key)
        return entry.value if entry is not None and isinstance(entry.value, int) else None

    # -- modes, hardware -----------------------------------------------------------------------

    def modes(self) -> None:
        """Whether, and how, a search sets strategies."""
        said = self.said("parallel_mode", self._read["mode"])
        begin = self.evidence.begin
        seen = None
        if begin is not None and begin.searches is not None:
            mode = "auto_parallel" if begin.searches else "semi_auto_parallel"
            what = (
                "a strategy stands behind statements"
                if begin.searches
                else "no search left a strategy"
            )
            if begin.searches and begin.shards_functions:
                what = "mindspore.shard of a function searches, in semi-auto mode too"
                if said is not None and said.value == "semi_auto_parallel":
                    said = None  # as it was set; what it came to is no contradiction
            seen = Entry(mode, Origin("dump", begin.path, what))
        plain = said is not None and said.value not in ("auto_parallel", "semi_auto_parallel")
        if plain or self._is_asked("parallel_mode"):
            seen = None  # what another mode would make of the same network
        if self.settle("parallel_mode", said, seen) is None:
            self.assume("parallel_mode", "semi_auto_parallel", decides=False)
        said = self.said("search_mode", self._read["search"])
        asked = self._is_asked("search_mode") and not self.as_run
        seen = None if asked else self.with_log("search_mode", self._search(said))
        if self.settle("search_mode", said, seen) is None:
            searches = self.entries["parallel_mode"].value == "auto_parallel"
            self.assume("search_mode", ParallelContext().search, decides=searches)

    def _search(self, said: Entry | None) -> Entry | None:
        """How strategies were searched for, by the marks that a search leaves."""
        begin = self.evidence.begin
        searched = self.entries["parallel_mode"].origin.source == "dump"
        if begin is None or begin.weighs_costs is None or not searched:
            return None
        if not begin.weighs_costs:
            what = "a search left no marks of operators' costs"
            return Entry("recursive_programming", Origin("dump", begin.path, what))
        what = "marks of a search that weighs operators' costs"
        if said is not None:
            is_other = said.value != "recursive_programming"
            value = said.value if is_other else "sharding_propagation"
            return Entry(value, Origin("dump", begin.path, what))
        what += ", which dynamic_programming leaves, too"
        return Entry("sharding_propagation", Origin("assumed", begin.path, what))

    def hardware(self, machine: Machine | None) -> None:
        """Target, and the generation of devices that says which groups there may be."""
        said = self.said("device_target", self._read["target"])
        seen = None
        for shown in self.evidence.later:
            if shown.target is not None:
                seen = Entry(shown.target, Origin("dump", shown.path, "its group of all devices"))
            break
        seen = self.with_log("device_target", seen)
        if said is None and seen is None and machine is not None:
            seen = Entry(machine.target, Origin("option", what=f"--machine {machine.name}"))
        if self.settle("device_target", said, seen) is None:
            self.assume("device_target", "Ascend", decides=False)
        target = cast("str", self.entries["device_target"].value)
        if target != "Ascend":
            return
        said = self.said("soc", self._read["soc"])
        if said is None and machine is not None and machine.soc:
            said = Entry(machine.soc, Origin("option", what=f"the machine {machine.name}"))
        if self.settle("soc", said, self._soc()) is None:
            usual = default_machine(target)
            self.assume("soc", usual.soc, decides=False, why=f"that of the machine {usual.name}")

    def _soc(self) -> Entry | None:
        """Another generation than the first, where a group would not fit its servers."""
        for shown in self.evidence.later:
            for item in shown.communications:
                problem = first_generation_problem(item.ranks or ())
                if problem is not None and not item.peer:
                    return Entry("Ascend910B", Origin("dump", shown.path, problem))
            break
        return None

    # -- dataset -------------------------------------------------------------------------------

    def dataset(self, stage_size: int | None) -> None:
        """How the dataset is split."""
        key = "dataset_strategy"
        origin = self.given.origins.get(key) or self.given.origins.get("full_batch")
        value = given_dataset(self.values)
        said = Entry(value, origin) if origin is not None and value is not None else None
        seen = seen_dataset(self.evidence, stage_size)
        if said is not None and seen is not None and self._overrides:
            seen = None  # a search may have set it
        mode = self.entries.get("parallel_mode")
        if mode is not None and mode.value in UNSPLIT_MODES:
            seen = None  # shapes show nothing where the compiler splits nothing
        if said is not None and said.value == "unknown" and seen is not None:
            said = None  # a file that lost the layouts

        def same(one: object, other: object) -> bool:
            return same_split(cast("Dataset", one), cast("Dataset", other), stage_size)

        if self.settle(key, said, seen, same) is None:
            decides = (
                stage_size != 1
                and self.evidence.begin is not None
                and self.evidence.begin.has_dataset
            )
            self.assume(key, PARALLEL, decides=decides)
        used = self.entries[key].value
        self.values.pop("full_batch", None)
        self.values[key] = used
        if used == PARALLEL and said is None and stage_size == 1:
            self.values[key] = WHOLE

    @property
    def _overrides(self) -> bool:
        search = self.entries["search_mode"].value
        return (
            self.entries["parallel_mode"].value == "auto_parallel"
            and search != "sharding_propagation"
        )

    # -- optimizer parallel --------------------------------------------------------------------

    def optimizer(self, stage_size: int | None) -> None:
        """Optimizer parallel with its threshold, size of shards, and weights left out."""
        optimizer = seen_optimizer(self.evidence, stage_size)
        key = "enable_parallel_optimizer"
        said = self.said(key, self._read["parallel_optimizer"])
        seen = None
        if optimizer is not None and optimizer.gathers:
            count = len(optimizer.gathers)
            what = f"{count} weight{'s' if count > 1 else ''} gathered from slices"
            seen = Entry(True, Origin("dump", optimizer.path, what))
        elif (
            optimizer is not None and said is not None and said.value and self._would_cut(optimizer)
        ):
            seen = Entry(False, Origin("dump", optimizer.path, "no weight is gathered from slices"))
        used = self.settle(key, said, seen)
        if used is None:
            self.assume(key, False, decides=optimizer is None and self._trains)
            return
        self.values[key] = used.value
        if used.value and optimizer is not None and optimizer.gathers:
            # Of a dump that cuts no weight, settings and exceptions can't be read off.
            self._settings(optimizer)

    @property
    def _trains(self) -> bool:
        begin = self.evidence.begin
        if begin is None:
            return False
        return any(graph.attributes.get("training") == "1" for graph in begin.dump.graphs)

    def _would_cut(self, optimizer: SeenOptimizer) -> bool:
        """Whether what is given would cut a weight that is whole."""
        return bool(self._left(optimizer.excluded(self._read["threshold"])))

    def _left(self, names: Iterable[str]) -> tuple[str, ...]:
        """Those weights that nobody excluded."""
        patterns = cast("tuple[str, ...]", self._read["excluded"])
        return tuple(n for n in names if not any(fnmatchcase(n, pattern) for pattern in patterns))

    def _settings(self, optimizer: SeenOptimizer) -> None:
        threshold = self._threshold(optimizer)
        shard = self.said("optimizer_weight_shard_size", self._read["weight_shard_size"])
        seen = None
        if optimizer.shard_size is not None:
            what = f"weights are gathered from {optimizer.shard_size} of their replicas"
            seen = Entry(optimizer.shard_size, Origin("dump", optimizer.path, what))
        if self.settle("optimizer_weight_shard_size", shard, seen) is None:
            self.assume("optimizer_weight_shard_size", -1, decides=False)
        shard_grads = self.said("gradient_accumulation_shard", self._read["accumulation_shard"])
        seen = None
        if optimizer.accumulated is not None:
            what = "slices of accumulated gradients"
            seen = Entry(optimizer.accumulated, Origin("dump", optimizer.path, what))
        self.settle("gradient_accumulation_shard", shard_grads, seen)
        config = dict(cast("Mapping[str, object]", self.values.get(OPTIMIZER) or {}))
        for key in IN_OPTIMIZER:
            if key in self.entries:
                config[key] = self.entries[key].value
        self.values[OPTIMIZER] = config
        self._excluded(optimizer, threshold)

    def _threshold(self, optimizer: SeenOptimizer) -> int:
        key = "parallel_optimizer_threshold"
        said = self.said(key, self._read["threshold"])
        allowed = optimizer.threshold
        if allowed is None:
            if self.settle(key, said, None) is None:
                self.assume(key, self._read["threshold"], decides=False)
            return self._read["threshold"]
        seen = None
        usual = self._read["threshold"]
        if (
            allowed.low == allowed.high
            and (said is None or not allowed.allows(usual))
            and usual > allowed.high
        ):
            what = f"weights of {optimizer.smallest} bytes are cut"
            seen = Entry(allowed.high, Origin("dump", optimizer.path, what))
        elif usual > allowed.high:
            what = f"{allowed.low} to {allowed.high} KB would cut the same weights"
            origin = Origin("dump" if said is not None else "assumed", optimizer.path, what)
            seen = Entry(allowed.high, origin)
        used = self.settle(key, said, seen)
        if used is None:
            self.assume(key, usual, decides=False)
            return usual
        return cast("int", used.value)

    def _excluded(self, optimizer: SeenOptimizer, threshold: int) -> None:
        """Weights that ``parallel_optimizer=False`` left whole."""
        said = self.said(EXCLUDED, self._read["excluded"])
        left = self._left(optimizer.excluded(threshold))
        if not left:
            if said is not None:
                self.settle(EXCLUDED, said, None)
            return
        what = f"{len(left)} whole, though as large as weights that are cut"
        sure = (
            set(left) <= set(optimizer.surely_excluded())
            or "parallel_optimizer_threshold" in self.given.origins
        )
        origin = (
            Origin("dump", optimizer.path, what)
            if sure
            else Origin(
                "assumed",
                optimizer.path,
                "whole in the dump; a higher threshold would leave them so, too",
            )
        )
        value = (*self._read["excluded"], *left)
        self.entries[EXCLUDED] = Entry(value, origin)
        self.values[EXCLUDED] = value
        if not sure:
            self.assumptions.append(Assumption(EXCLUDED, value, origin.what, decides=False))

    # -- the rest ------------------------------------------------------------------------------

    def switches(self) -> None:
        """Settle all-to-all, gradients, micro-batches and fusion, and keys that are only given."""
        self._alltoall()
        self._gradients()
        self._micro_batches()
        self._interleaving()
        later = next(self.evidence.later, None)
        if later is not None and later.fusions:
            what = "fusion numbers by operator"
            self.entries["fusion"] = Entry(later.fusions, Origin("dump", later.path, what))
        for key, value in self.given.values.items():
            origin = self.given.origins.get(key)
            if key not in self.entries and key not in _TABLES and origin is not None:
                self.entries[key] = Entry(value, origin)

    def _alltoall(self) -> None:
        key = "enable_alltoall"
        seen = None
        for shown in self.evidence.later:
            if shown.alltoall is not None:
                seen = Entry(True, Origin("dump", shown.path, "a redistribution by AlltoAll"))
            break
        used = self.settle(key, self.said(key, self._read["enable_alltoall"]), seen)
        if used is None:
            self.assume(key, False, decides=not self.has_later)
        else:
            self.values[key] = used.value

    def _gradients(self) -> None:
        for key, own, name in (
            ("gradients_mean", self._read["gradients_mean"], "mean"),
            ("loss_repeated_mean", self._read["loss_repeated_mean"], "divides_loss"),
        ):
            seen = None
            end = self.evidence.end
            flag = getattr(end, name) if end is not None else None
            if flag is not None and (flag or name == "mean"):
                what = "what stands for the sums of gradients" if name == "mean" else "_VirtualDiv"
                seen = Entry(flag, Origin("dump", end.path if end is not None else "", what))
            seen = self.with_log(key, seen)
            used = self.settle(key, self.said(key, own), seen)
            if used is None:
                self.assume(key, own, decides=False)
            else:
                self.values[key] = used.value
        key = "gradient_fp32_sync"
        used = self.settle(key, self.said(key, self._read[key]), self.with_log(key, None))
        if used is not None:
            self.values[key] = used.value

    def _micro_batches(self) -> None:
        key = "grad_accumulation_step"
        said = self.said(key, self._read["accumulation_step"])
        if said is not None:
            self.settle(key, said, None)
        for shown in (self.evidence.begin, *self.evidence.later):
            if shown is not None and shown.micro_batches is not None:
                origin = Origin("dump", shown.path, "numbers of micro-batches")
                self.entries["micro_batches"] = Entry(shown.micro_batches, origin)
                return

    def _interleaving(self) -> None:
        """Whether layers of a stage are cut into chunks that take turns."""
        key = "pipeline_interleave"
        origin = self.given.origins.get(key) or self.given.origins.get(_PIPELINE)
        said = None if origin is None else Entry(self._read["interleave"], origin)
        seen = None
        for shown in self._with_transfers():
            if shown.chunks is None and shown.borders is None:
                what = "transfers between stages in one piece"
                seen = Entry(False, Origin("dump", shown.path, what))
            elif shown.chunks is not None and shown.chunks > 1:
                what = f"{shown.chunks} chunks of layers a stage"
                seen = Entry(True, Origin("dump", shown.path, what))
            break  # of one chunk, both settings leave the same
        used = self.settle(key, said, seen)
        if used is not None:
            if self.values.pop(_PIPELINE, None) is not None:
                self.values["pipeline_scheduler"] = self._read["scheduler"]
            self.values[key] = used.value
        elif (self.number("pipeline_stages") or 1) > 1:
            self.assume(key, False, decides=False)

    def _with_transfers(self) -> Iterator[Shown]:
        """Dumps that send to another stage, or receive from one."""
        for shown in (*self.evidence.later, self.evidence.begin):
            if shown is not None and shown.has_pipeline:
                yield shown

    # -- all of them ---------------------------------------------------------------------------

    def done(self) -> RunContext:
        """Put together what was settled of each key, and the parallel context that it makes.

        Raises ContextError where a value that somebody gave can't be right.
        """
        for key in ("device_num", "pipeline_stages", "global_rank", "device_target", "soc",
                    "parallel_mode", "search_mode"):  # fmt: skip
            if key in self.entries:
                self.values[key] = self.entries[key].value
        stands_alone = self.values.get("parallel_mode") == STAND_ALONE
        parallel = None
        if ("device_num" in self.entries and "pipeline_stages" in self.entries) or stands_alone:
            try:
                parallel = ParallelContext.from_mapping(self.values)
            except ValueError as error:
                wrong = _wrong(str(error), self.given)
                if wrong.key:
                    raise wrong from None
                # What was found makes no cluster: whoever needs one says that it is not known.
        return RunContext(
            parallel,
            dict(sorted(self.entries.items())),
            tuple(self.assumptions),
            tuple(self.contradictions),
            self.given.values,
        )


_PIPELINE = "pipeline_config"
_TABLES = frozenset({OPTIMIZER, "full_batch", "environment"})
"""Keys whose content stands under other keys, or is no part of the parallel context."""


def _equal(one: object, other: object) -> bool:
    return one == other


def _checked(given: Given) -> _Read:
    """What is given, each value read by itself: they fit one another once all are found.

    Raises:
        ContextError: a value can't be right.
    """
    try:
        fields = context_fields(given.values)
        # Stages and rank fit devices only once all are found.
        unplaced = () if "devices" in fields else ("stages", "rank")
        placed = {key: value for key, value in fields.items() if key not in unplaced}
        ParallelContext(**cast("dict[str, Any]", placed))
    except ValueError as error:
        raise _wrong(str(error), given) from None
    return _Read(fields)


def _wrong(message: str, given: Given) -> ContextError:
    key = next((key for key in sorted(given.origins, key=len, reverse=True) if key in message), "")
    return ContextError(message, key, given.origins.get(key))
