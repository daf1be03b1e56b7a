"""Documents of reports for a notebook: what the commands show, with their usual settings."""

from __future__ import annotations

from typing import TYPE_CHECKING

from irtool.ir.units import plural, seconds_text, tuple_text
from irtool.report.model import (
    Answer,
    Cell,
    Column,
    Document,
    Facts,
    Heading,
    Note,
    Report,
    Table,
    number_column,
    text_column,
)

if TYPE_CHECKING:
    from irtool.cluster.groups import GroupReport
    from irtool.cluster.hang import HangReport
    from irtool.cluster.memory import Memory
    from irtool.cluster.pipeline import Pipeline
    from irtool.cluster.reuse import ReuseReport
    from irtool.compare.checkpoints.comparison import CheckpointComparison
    from irtool.compare.graph_diff import GraphDiff
    from irtool.compare.runs.comparison import RunComparison
    from irtool.diagnosis.examine import Examination
    from irtool.ir.finding import Findings
    from irtool.planning.checkpoints.conversion import Conversion
    from irtool.planning.plans.edits import NetworkEdits
    from irtool.planning.plans.plan import Plan
    from irtool.planning.plans.step.report import StepCost
    from irtool.planning.recovery.elastic import ElasticPlan
    from irtool.planning.recovery.recover import Recovery
    from irtool.planning.scaling.candidates import Candidates
    from irtool.planning.scaling.scaled import Scaled
    from irtool.planning.stages.stages import StagedPlan
    from irtool.sharding.network.report import CheckResult


def check(report: CheckResult) -> Report:
    """What ``check`` says of a network, with what would be legal instead of what is refused.

    Args:
        report: of one dump; edges on which nothing moves are left out.
    """
    from irtool.report.checking.report import CheckView, check_report
    from irtool.sharding.network.totals import moves
    from irtool.sharding.suggest import Proposals, layouts_instead, legal_instead

    first = next(iter(report.operators), None)
    graph = first.node.graph if first is not None else None
    path = graph.dump.path if graph is not None and graph.dump is not None else "check"
    edges = [edge for edge in report.redistributions if moves(edge)]
    alone = Proposals(legal_instead(report), layouts_instead(report))
    view = CheckView(
        path,
        report,
        report.operators,
        edges,
        instead=alone,
    )
    return check_report(view)


def groups(report: GroupReport) -> Report:
    """What a run communicates, by group.

    Args:
        report: of all ranks; all its communications count.
    """
    from irtool.report.comm.groups import GroupsView, groups_report

    return groups_report(GroupsView("communication", report, lambda node: True))


def hang(report: HangReport) -> Report:
    """Whether a run hangs, and why.

    Args:
        report: how the ranks' collectives played out.
    """
    from irtool.report.comm.hang import HangView, hang_report

    return hang_report(HangView("communication", report))


def reuse(report: ReuseReport) -> Report:
    """What reuse of communication subgraphs does to a graph.

    Args:
        report: of one rank.
    """
    from irtool.report.comm.reuse import ReuseView, reuse_report

    return reuse_report(ReuseView("reuse", report))


def memory(result: Memory) -> Report:
    """What one device holds in a step, and its peak.

    Args:
        result: of one dump; there is no limit to hold it against.
    """
    from irtool.report.memory import MemoryView, RankMemory, memory_report

    return memory_report(MemoryView((RankMemory(None, (), None, result),)))


def pipeline(result: Pipeline) -> Report:
    """The stages of a pipeline, and what of a step is idle.

    Args:
        result: of all stages.
    """
    from irtool.report.pipeline import PipelineView, pipeline_report

    return pipeline_report(PipelineView("pipeline", result))


def ckpt(result: Conversion) -> Report:
    """Which slices of old checkpoints each rank needs.

    Args:
        result: of checkpoints from one layout to another.
    """
    from irtool.report.ckpt import CkptView, ckpt_report

    return ckpt_report(CkptView(result))


def diff(result: GraphDiff) -> Report:
    """How two dumps differ, and where that begins.

    Args:
        result: all nodes of both dumps are told of.
    """
    from irtool.report.diff.graphs import DiffView, diff_report

    return diff_report(DiffView(result))


def doctor(result: Examination) -> Report:
    """What is wrong with a run.

    Args:
        result: findings ranked, without the context that they were judged in.
    """
    from irtool.report.doctor.report import doctor_report

    return doctor_report(result, None, is_page=False)


def edits(result: NetworkEdits) -> Report:
    """Changes that make a step shorter, the best first.

    Args:
        result: changes that were tried on the whole network, and the step before.
    """
    columns = (
        text_column("operators"), text_column("now"), text_column("instead"),
        number_column("saves", "seconds"), number_column("receives less", "bytes"),
    )  # fmt: skip
    rows: list[list[Cell]] = [
        [
            ", ".join(f"{node.id} {node.op}" for node in edit.nodes) or edit.setting,
            tuple_text(edit.old),
            tuple_text(edit.new) if edit.nodes else str(edit.value),
            edit.seconds,
            edit.bytes,
        ]
        for edit in result.edits
    ]
    step = seconds_text(result.before.seconds)
    text = f"of {plural(result.tried, 'change')} tried, {len(rows):,} shorten a step of {step}"
    return Report("edits", Answer(text), [Table("", columns, rows, noun="change")])


def findings(result: Findings) -> Document:
    """What ``lint`` found, the gravest first.

    Args:
        result: of one run of the linter.
    """
    from irtool.report.findings.places import by_severity
    from irtool.report.findings.text import summary_text

    first, *rest = summary_text(result).splitlines()
    columns = [Column(title) for title in ("severity", "code", "where", "message", "fix")]
    rows = [
        (item.severity, item.code, f"{item.file}:{item.line}", item.message, item.fix or "")
        for item in by_severity(result.items)
    ]
    document = Document([Heading(first), *(Note(text) for text in rest)])
    document.add(*([Table("", columns, rows, 0, "finding")] if rows else []))
    return document


def runs(result: RunComparison) -> Report:
    """What came of comparing two runs.

    Args:
        result: of graphs, losses and tensors, as far as both runs left them.
    """
    from irtool.compare.runs.comparison import first_case
    from irtool.report.diff.runs.answer import RunsView
    from irtool.report.diff.runs.report import runs_report

    return runs_report(RunsView(result, first_case(result)))


def plan(result: Plan) -> Document:
    """A plan: what it costs, and what changes.

    Args:
        result: of one dump.
    """
    from irtool.report.planning.report import plan_report
    from irtool.report.planning.view import PlanView

    return Document(plan_report(PlanView(result, result.dump.path or "plan")).blocks)


def staged(result: StagedPlan) -> Document:
    """A pipeline that was planned: its stages, and the plan inside of each.

    Args:
        result: cuts of the layers, and the plan that all stages share.
    """
    from irtool.report.planning.report import plan_report
    from irtool.report.planning.view import PlanView

    inner = result.inner
    return Document(plan_report(PlanView(inner, inner.dump.path or "plan", staged=result)).blocks)


def elastic(result: ElasticPlan) -> Document:
    """Plans for other devices, and what there was to choose from.

    Args:
        result: the chosen number of devices, with a plan for each stage.
    """
    from irtool.report.planning.elastic import elastic_facts, points_table
    from irtool.report.planning.report import elastic_text

    stages = [
        Note((f"stage {stage}: " if len(result.plans) > 1 else "") + elastic_text(stage_plan))
        for stage, stage_plan in result.plans.items()
    ]
    head = Heading(f"a plan for {result.points[result.chosen].devices:,} devices")
    return Document([head, *stages, Facts(elastic_facts(result)), points_table(result)])


def cost(result: StepCost) -> Document:
    """Seconds of a step by cause, and its communication.

    Args:
        result: of one stage, on its machine; the first five things that are not priced are named.
    """
    from irtool.report.cost import links_table, shares_table

    head = Heading(f"a step of {seconds_text(result.seconds)} ({result.machine.name})")
    document = Document([head, shares_table(result), links_table(result)])
    document.add(*(Note(f"not priced: {text}") for text in result.unknown[:5]))
    return document


def recovery(result: Recovery) -> Document:
    """What changes and moves when devices or layers came or went.

    Args:
        result: its times rest on the usual assumptions.
    """
    from irtool.planning.recovery.times import Assumptions
    from irtool.report.recovery.report import recovery_report
    from irtool.report.recovery.view import RecoveryView

    return Document(recovery_report(RecoveryView(result, "recovery", Assumptions())).blocks)


def checkpoints(comparison: CheckpointComparison) -> Report:
    """How two checkpoints differ, parameter by parameter.

    Args:
        comparison: of two checkpoints, each whole or in slices.
    """
    from irtool.report.diff.checkpoints import CheckpointView, checkpoints_report

    return checkpoints_report(CheckpointView(comparison))


def scaled(network: Scaled) -> Report:
    """A network of other sizes: which of its sizes play which role.

    Args:
        network: the scaled dump, with sizes before and after.
    """
    from irtool.report.planning.scaled import roles_table

    layers = f"{plural(network.layers, 'layer')}, " if network.layers else ""
    size = plural(sum(1 for _ in network.dump.nodes()), "statement")
    return Report("scaled", Answer(f"{layers}{size}", "plain", []), [roles_table(network)])


def candidates(search: Candidates) -> Report:
    """What was searched together for a network of other sizes.

    Args:
        search: candidates ranked, and the best that fits into a device's memory.
    """
    from irtool.report.planning.scaled import candidates_table

    best = search.best
    text = "none fits" if best is None else f"{seconds_text(search.ranked[best].seconds)} a step"
    tone = "bad" if best is None else "good"
    return Report("candidates", Answer(text, tone, []), [candidates_table(search)])
