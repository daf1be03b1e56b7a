"""A recovery in the form that MindSpore loads: its strategy file.

A pipeline has one file, keyed by parameters and merged: MindSpore looks up what a stage's operators
ask for, and its conversion of checkpoints needs the stages together (tried with 2.7.0).
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from irtool.artefacts.strategies.json import LAYOUTS, STRATEGIES, read_json_strategies
from irtool.artefacts.strategies.model import Keys, StrategyFile
from irtool.cluster.machine import Machine
from irtool.ir.dataclass import dataclass
from irtool.ir.dump import Dump
from irtool.ir.units import plural
from irtool.planning.cost.holdings import Holdings, StageDumps
from irtool.planning.cost.kept import FIXED
from irtool.planning.cost.structure import structure_of
from irtool.planning.files.handing_over import Again, HandedOver, by_parameters, hand_over
from irtool.planning.files.saved_strategies import is_free
from irtool.planning.files.strategy_files import NotExpressible
from irtool.planning.plans.plan import Plan, PlannedOperator
from irtool.planning.plans.plan import plan as search
from irtool.planning.plans.step.report import step_cost
from irtool.planning.recovery.recover import Recovery
from irtool.planning.search.problem import Carried
from irtool.sharding.network.context import ParallelContext
from irtool.sharding.network.report import CheckResult
from irtool.sharding.network.sharded_nodes import primitive

NEW_FILE = "new_strategy.json"
"""How the lines for MindSpore call the strategy file of the new plan."""


@dataclass(frozen=True, eq=False)
class RecoveryFile:
    """The strategy file to go on with.

    Attributes:
        text: the file.
        file: the same, read back.
        notes: what the reader should know of it.
    """

    text: str
    file: StrategyFile
    notes: tuple[str, ...] = ()

    @property
    def keys(self) -> Keys:
        """What it is keyed by."""
        return self.file.keys


def recovery_file(
    recovery: Recovery,
    begins: StageDumps,
    keys: Keys | None = None,
    names: Mapping[str, object] | None = None,
) -> RecoveryFile:
    """The strategy file of the plan to go on with; of the run's own where nothing changes.

    Args:
        recovery: the recovery.
        begins: the begin dumps of the run, by stage.
        keys: the kind of file; None: by operators, or by parameters where that can't be.
        names: a file that MindSpore saved for this network: keys are held to it.

    Raises:
        NotExpressible: no such file can hold the plan.
    """
    plan = recovery.plan
    network, held = (begins, recovery.old) if plan is None else (plan.network, plan.holdings)
    _refuse_parts(recovery, held)
    plans = {
        stage: _plan_of(network[stage], report, recovery.machine)
        for stage, report in sorted(held.reports.items())
    }
    again = {stage: _again(stage_plan, recovery) for stage, stage_plan in plans.items()}
    if len(plans) == 1:
        ((stage, stage_plan),) = plans.items()
        made = hand_over(stage_plan, again[stage], keys, names)
        result = RecoveryFile(made.text, _read(made.text), made.notes)
    elif keys == "operators":
        raise NotExpressible(
            "MindSpore's file keyed by operators has an entry for what every stage computes before "
            "the pipeline is split, and the begin dumps of stages do not show all of that"
        )
    else:
        result = _merged(
            {stage: by_parameters(stage_plan, again[stage]) for stage, stage_plan in plans.items()}
        )
    return replace(result, notes=(*result.notes, *_code_notes(result, recovery, begins)))


def _again(plan: Plan, recovery: Recovery) -> Again:
    """Plans a stage anew where the file can't say a searched plan."""
    if recovery.plan is None or recovery.plan.how != "searched":
        return Again(plan.dump)
    machine = replace(recovery.machine, overlap=0.0)

    def make(carried: Carried, context: ParallelContext) -> Plan:
        wanted = replace(plan.context, mode=context.mode)
        return search(plan.dump, wanted, machine, devices=wanted.devices, carried=carried)

    return Again(plan.dump, make)


def _code_notes(made: RecoveryFile, recovery: Recovery, begins: StageDumps) -> Iterator[str]:
    """What has to be changed in the code for the file to count."""
    mode = recovery.context.mode
    if made.keys == "operators":
        if not recovery.context.searches:
            yield "to be loaded under auto_parallel with search_mode sharding_propagation"
        return
    if mode != "semi_auto_parallel" or recovery.plan is None or recovery.plan.how == "given":
        return
    own = sum(not is_free(node) for dump in begins.values() for node in dump.nodes())
    if own:
        yield (
            f"{plural(own, 'operator')} have a strategy in the code, which goes before this file: "
            "take out their .shard(...) calls"
        )


def _refuse_parts(recovery: Recovery, held: Holdings) -> None:
    if not held.reports:
        raise NotExpressible("without a begin dump there is no plan")
    if held.missing:
        stages = ", ".join(map(str, held.missing))
        raise NotExpressible(f"no begin dump of pipeline stage {stages} is here")
    if not recovery.alternatives and recovery.target != recovery.context.devices:
        raise NotExpressible(f"there is no plan for {recovery.target} devices in other stages")


def _plan_of(dump: Dump, report: CheckResult, machine: Machine) -> Plan:
    """A dump that holds its plan already."""
    after = step_cost(structure_of(dump, report.context), report, machine)
    operators = tuple(
        PlannedOperator(item.node, None, item.strategy, None, item.out_strategy, pinned=False)
        for item in report.operators
        if primitive(item.node) not in FIXED
    )
    return Plan(
        dump, report.context, report, operators, None, after, None, None, 0.0, 0, (),
        algorithm="given",
    )  # fmt: skip


def _merged(parts: Mapping[int, HandedOver]) -> RecoveryFile:
    """The files of stages as one.

    Raises:
        NotExpressible: two stages want different strategies under one key.
    """
    strategies: dict[str, Any] = {}
    layouts: dict[str, Any] = {}
    notes: dict[str, None] = {}
    for stage, part in parts.items():
        document = json.loads(part.text)
        for key, item in document[STRATEGIES].items():
            known = strategies.setdefault(key, item)
            if known["parallel_strategy"] != item["parallel_strategy"]:
                raise NotExpressible(
                    f"stages {known['stage']} and {stage} share the key {key} and differ"
                )
        layouts |= {f"{stage}-{name}": item for name, item in document[LAYOUTS].items()}
        notes |= dict.fromkeys(f"stage {stage}: {note}" for note in part.notes)
    document = {"current_stage": 1, STRATEGIES: strategies, LAYOUTS: layouts}
    text = json.dumps(document, sort_keys=True) + "\n"
    return RecoveryFile(text, _read(text), tuple(notes))


def _read(text: str) -> StrategyFile:
    return read_json_strategies(NEW_FILE, text.encode())
