"""``irtool diff RUN_A RUN_B --format json``: the keys that docs/json-diff.md describes."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping

from irtool.compare.run_tensors import UnitResult
from irtool.compare.runs import RunComparison
from irtool.compare.suspects import mindspore_dump_settings, msprobe_settings
from irtool.compare.tensors.comparison import TensorComparison
from irtool.compare.tensors.join import Joined
from irtool.compare.tensors.model import Op, TensorRun
from irtool.compare.tensors.report import BINS, Case, why_text
from irtool.compare.tensors.verdict import Judged
from irtool.report.diff_json import SCHEMA, diff_object, node_object
from irtool.report.losses import losses_object
from irtool.report.runs import answer
from irtool.report.tensors import phase_counts


def runs_object(found: RunComparison, case: Case | None) -> dict[str, object]:
    """The whole answer."""
    shown = found.shown
    comparison = shown.comparison if shown is not None else None
    graphs = diff_object(found.graphs, found.graphs.patterns) if found.graphs is not None else None
    whole: dict[str, object] = {
        "schema": SCHEMA,
        "left": found.left.path,
        "right": found.right.path,
        "identical": found.is_identical,
        "answer": answer(found, case),
        "matched": sum(unit.pairs for unit in found.units)
        if found.units
        else len(found.graphs.pairs)
        if found.graphs is not None
        else 0,
        "only_left": _lone(comparison, found, 0),
        "only_right": _lone(comparison, found, 1),
        "changed": [
            judged_object(item, comparison)
            for item in comparison.judged
            if item.verdict not in ("equal bits", "carries error", "not comparable")
        ]
        if comparison is not None
        else [],
        "first_divergence": _first(found, case),
        "hyperparameters": [
            {"name": row.name, "left": row.left, "right": row.right, "same": row.same,
             "seen": row.where}
            for row in found.hyperparameters
        ],
        "tensors": [_unit(unit) for unit in found.units],
        "losses": losses_object(found.losses) if found.losses is not None else None,
        "graphs": graphs,
        "suspects": [
            {"why": item.why, "may_bring": item.error, "times": item.times,
             "kind": item.kind, "node": node_object(item.node)}
            for item in found.suspects
        ],
        "dump_settings": _dump_settings(found),
        "not_compared": found.missing,
        "complaints": [*found.left.complaints, *found.right.complaints],
    }  # fmt: skip
    if graphs is not None and not found.units:
        # Without tensors the lists are those of the graphs; nobody is accused by graphs alone.
        for key in ("matched", "only_left", "only_right", "changed"):
            whole[key] = graphs[key]
    return whole


def _dump_settings(found: RunComparison) -> dict[str, object] | None:
    """What to dump on both sides, where no tensors decided."""
    if found.units or not (found.suspects or found.is_suspicious):
        return None
    steps = found.decisive_steps
    return {
        "steps": list(steps),
        "mindspore": json.loads(mindspore_dump_settings(found.suspects, steps)),
        "msprobe": json.loads(msprobe_settings(steps)),
    }


def _first(found: RunComparison, case: Case | None) -> dict[str, object] | None:
    if case is None:
        return None
    shown = found.shown
    judged = case.judged
    comparison = shown.comparison if shown is not None else None
    histogram = case.histogram
    return {
        "left": operator_object(case.left, comparison.left if comparison else None),
        "right": operator_object(case.right, comparison.right if comparison else None),
        "why": why_text(judged),
        "stretch": {
            side: [call.name for call in op.members] if len(op.members) > 1 else []
            for side, op in (("left", case.left), ("right", case.right))
        },
        "no_gradient": list(case.missing),
        "alike_until": judged.since.name if judged.since is not None else None,
        "permuted": judged.is_permuted,
        "unit": shown.name if shown is not None else "",
        "error_in": _number(judged.error_in),
        "error_out": _number(judged.error_out),
        "explained": _number(judged.budget),
        "ratio": _number(judged.z),
        "wrong_side": judged.wrong or None,
        "attributes": [str(change) for change in judged.attributes],
        "read_by": judged.pair.left.name if judged.entered else None,
        "ulps": {
            "dtype": histogram.dtype,
            "counts": dict(zip(BINS, histogram.counts, strict=True)),
            "bias": histogram.bias,
        }
        if histogram is not None
        else None,
        "neighbours": {
            side: [
                {"role": item.role, "node": item.node, "op": item.op, "line": item.line,
                 "type": item.type}
                for item in items
            ]
            for side, items in (("left", case.left_neighbours), ("right", case.right_neighbours))
        },
        "graph_edits": list(case.edits),
        "next": list(case.advice),
    }  # fmt: skip


def operator_object(op: Op, run: TensorRun | None) -> dict[str, object]:
    """An operator: its node where it was joined with one, else as its dump has it."""
    found: dict[str, object] = {
        "node": op.node.id if op.node is not None else op.name,
        "op": op.type,
        "file": run.path if run is not None else None,
        "line": op.node.line if op.node is not None else None,
        "name": op.name,
        "phase": op.phase,
        "source": op.source or None,
        "owner": op.owner or None,
    }
    if op.node is not None:
        found.update(node_object(op.node) or {})
        found["op"] = op.type
    return found


def judged_object(item: Judged, comparison: TensorComparison) -> dict[str, object]:
    """One operator pair with its verdict."""
    return {
        "left": operator_object(item.pair.left, comparison.left),
        "right": operator_object(item.pair.right, comparison.right),
        "matched_by": item.pair.how,
        "verdict": item.verdict,
        "what": [*([item.entered] if item.entered else []), *map(str, item.attributes)],
        "error_in": _number(item.error_in),
        "error_out": _number(item.error_out),
        "ratio": _number(item.z),
    }


def _lone(
    comparison: TensorComparison | None, found: RunComparison, which: int
) -> list[dict[str, object]]:
    if comparison is not None:
        run = (comparison.left, comparison.right)[which]
        ops = (comparison.only_left, comparison.only_right)[which]
        return [operator_object(op, run) for op in ops]
    if found.graphs is not None and not found.units:
        nodes = (found.graphs.only_left, found.graphs.only_right)[which]
        return [each for node in nodes if (each := node_object(node)) is not None]
    return []


def _unit(unit: UnitResult) -> dict[str, object]:
    found: dict[str, object] = {
        "unit": unit.name,
        "equal": unit.equal,
        "operators": unit.pairs,
        "only_left": unit.only_left,
        "only_right": unit.only_right,
        "verdicts": dict(unit.counts),
        "first": unit.first.pair.left.name if unit.first is not None else None,
        "join": {
            side: _joined(joined)
            for side, joined in zip(("left", "right"), unit.joined, strict=True)
        },
    }
    comparison = unit.comparison
    if comparison is not None:
        found["tensor_pairs"] = phase_counts(comparison)
        found["same_values"] = _partners(comparison.fingerprints)
        found["level"] = [comparison.left.level, comparison.right.level]
        found["payload_conflicts"] = [comparison.left.conflicts, comparison.right.conflicts]
        found["not_finite_from"] = [item.pair.left.name for item in comparison.origins[:5]]
    return found


def _partners(fingerprints: Mapping[str, tuple[int, int]]) -> dict[str, dict[str, int]]:
    return {
        phase: {"found": have, "distinct": total} for phase, (have, total) in fingerprints.items()
    }


def _joined(joined: Joined | None) -> dict[str, object] | None:
    if joined is None:
        return None
    return {
        "graph": joined.path,
        "operators": joined.operators,
        "joined": joined.found,
        "rate": joined.rate,
        "stale": joined.stale,
        "replayed": joined.replayed,
        "mismatched": joined.mismatched,
        "shapes_checked": joined.checked,
    }


def _number(value: float) -> float | str | None:
    if math.isnan(value):
        return None
    return value if math.isfinite(value) else "Infinity" if value > 0 else "-Infinity"
