"""What to dump on both sides, so that tensors decide between suspects."""

from __future__ import annotations

import json
from collections.abc import Sequence

from irtool.compare.runs.suspects import IDLE, Suspect


def mindspore_dump_settings(
    suspects: Sequence[Suspect], steps: Sequence[int] = (0,), folder: str = "/absolute/path"
) -> str:
    """The file that MINDSPORE_DUMP_CONFIG has to name to decide between suspects.

    Args:
        suspects: those to decide between; without any, everything is dumped.
        steps: the steps to dump, counted from 0, one after the other.
        folder: where to.
    """
    # Operators by type: full names are numbered anew when the backend has finished a graph.
    nodes = (node for item in suspects for node in item.nodes)
    kernels = list(dict.fromkeys(node.op for node in nodes if node.op not in IDLE))
    settings = {
        "common_dump_settings": {
            "op_debug_mode": 0,
            "dump_mode": 1 if kernels else 0,
            "path": folder,
            "net_name": "Net",
            "iteration": "-".join(str(step) for step in dict.fromkeys((steps[0], steps[-1]))),
            "saved_data": "tensor",
            "input_output": 0,
            "kernels": kernels,
            "support_device": [0, 1, 2, 3, 4, 5, 6, 7],
        },
        "e2e_dump_settings": {"enable": True, "trans_flag": True},
    }
    return json.dumps(settings, indent=2)


def msprobe_settings(steps: Sequence[int] = (0,), folder: str = "/absolute/path") -> str:
    """The config.json with which msprobe dumps the same steps on either side.

    Args:
        steps: the steps to dump, counted from 0.
        folder: where to.
    """
    settings = {
        "task": "statistics",
        "dump_path": folder,
        "rank": [],
        "step": list(steps),
        "level": "mix",
        "async_dump": False,
        "statistics": {"scope": [], "list": [], "data_mode": ["all"], "summary_mode": "statistics"},
    }
    return json.dumps(settings, indent=2)
