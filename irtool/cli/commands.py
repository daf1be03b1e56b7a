"""The table of commands; a command's module is imported when it is run."""

from __future__ import annotations

from typing import NamedTuple


class CommandEntry(NamedTuple):
    """``module`` has a ``command``: a function with declared parameters, or a ``click.Command``."""

    module: str
    help: str


COMMANDS: dict[str, CommandEntry] = {
    "doctor": CommandEntry(
        "irtool.cli.doctor",
        "What is wrong with this run, what would mend it? (irtool RUN)",
    ),
    "parse": CommandEntry("irtool.cli.parse.command", "What is in this dump?"),
    "check": CommandEntry(
        "irtool.cli.check", "Is each strategy legal; what will be sliced and communicated?"
    ),
    "cost": CommandEntry(
        "irtool.cli.cost", "Where does a step go: arithmetic, communication, redistribution?"
    ),
    "plan": CommandEntry(
        "irtool.cli.plan.command", "Which strategies would be better, and how far from the best?"
    ),
    "diff": CommandEntry("irtool.cli.diff", "Two dumps or runs: what differs, and where first?"),
    "memory": CommandEntry(
        "irtool.cli.memory", "What does a device hold, when most, and what would make that less?"
    ),
    "pipeline": CommandEntry(
        "irtool.cli.pipeline", "Pipeline stages: work, memory, schedule, waiting, balance."
    ),
    "viz": CommandEntry("irtool.cli.viz.command", "A picture of a dump, as svg, html and more."),
    "lint": CommandEntry(
        "irtool.cli.lint.command", "What is wrong, or worth a look, in these dumps?"
    ),
    "gate": CommandEntry("irtool.cli.gate.command", "What became worse than in a golden dump?"),
    "comm": CommandEntry(
        "irtool.cli.comm", "What is communicated: groups, hangs, reuse of subgraphs, fusion."
    ),
    "recover": CommandEntry(
        "irtool.cli.recover.command",
        "Devices or layers came or went: what changes, what has to move?",
    ),
    "lsp": CommandEntry("irtool.cli.lsp", "The language server for editors."),
    "calibrate": CommandEntry(
        "irtool.cli.calibrate", "What do links and operators of this machine really take?"
    ),
    "ckpt": CommandEntry(
        "irtool.cli.ckpt", "Which slices of old checkpoints does each rank need in another layout?"
    ),
    "rules": CommandEntry("irtool.cli.rules", "What irtool looks for, and knows of operators."),
    "explain": CommandEntry(
        "irtool.cli.explain.command", "What a code means; what a failed run says."
    ),
}

REPEATED = frozenset(("check", "comm", "cost", "lint", "memory", "parse", "pipeline", "viz"))
"""Commands that read and write, and do nothing else: their answers are kept."""
