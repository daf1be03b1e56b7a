"""What becomes of a run's checkpoints when it goes on with other devices or layers."""

from __future__ import annotations

from irtool.artefacts.strategies.model import StrategyFile
from irtool.planning.checkpoints.conversion import Conversion, convert, known_parameters
from irtool.planning.cost.holdings import StageDumps
from irtool.planning.files.parameter_layouts import predicted_file
from irtool.planning.recovery.files import NEW_FILE
from irtool.planning.recovery.recover import Recovery

OLD_FILE = "old_strategy.json"
"""How the lines for MindSpore call the strategy file of the run, where it left none."""


def checkpoint_conversion(
    recovery: Recovery, begins: StageDumps, new: StrategyFile, saved: StrategyFile | None = None
) -> Conversion:
    """How checkpoints of the run become those of the plan.

    Args:
        recovery: the recovery.
        begins: the begin dumps of the run, by stage.
        new: the strategy file of the plan.
        saved: the one that the run left; None: what its dumps predict.

    Raises:
        UnknownLayout: how a parameter lies is not known.
        Refused: a layout makes no sense.
    """
    predicted_file(NEW_FILE, recovery.new.reports, recovery.stages)  # says what is not known
    old = saved or predicted_file(OLD_FILE, recovery.old.reports, recovery.context.stages)
    plan = recovery.plan
    dumps = [*begins.values(), *(plan.network.values() if plan is not None else ())]
    known = {
        name: parameter for dump in dumps for name, parameter in known_parameters(dump).items()
    }
    return convert(old, new, known)
