"""What msprobe's names of calls and modules say."""

from __future__ import annotations

import re
from functools import lru_cache

from irtool.compare.tensors.model import Phase

_MODULE = re.compile(
    r"(?P<kind>Module|Cell)\.(?P<path>.+)\.(?P<type>[^.]+)"
    r"\.(?P<way>forward|backward|parameters_grad)(?:\.(?P<call>\d+))?"
)


@lru_cache(maxsize=65536)
def parsed(name: str) -> tuple[str, Phase, str, str, bool]:
    """Operator, phase, owner, name of the forward call, and whether it is a module.

    Args:
        name: of an entry of ``dump.json``.

    Returns:
        A name of neither form is that of a forward call without an owner.
    """
    if name.startswith(("Module.", "Cell.")):
        match = _MODULE.fullmatch(name)
        if match is not None:
            phase: Phase = "forward" if match["way"] == "forward" else "backward"
            call = f"{match['kind']}.{match['path']}.{match['type']}.forward.{match['call'] or 0}"
            return match["type"], phase, match["path"], call, True
    head, _, direction = name.rpartition(".")
    head, _, call = head.rpartition(".")
    kind, mark, api = head.partition(".")
    if not mark or not call.isdecimal() or direction not in ("forward", "backward"):
        return name.rpartition(".")[2] or name, "forward", "", name, False
    type_ = api.rpartition(".")[2]
    if kind == "Primitive":
        type_ = api.partition(".")[2] or api
    phase = "forward" if direction == "forward" else "backward"
    return type_, phase, "", f"{head}.{call}.forward", False
