"""Which options of ``irtool plan`` go together: one table, so that none is ignored in silence."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from irtool.cli.report import Failure
from irtool.ir.dump import Dump
from irtool.sharding.network.context import ParallelContext

Way = Literal["plan", "devices", "stages", "recursive", "propagation"]
"""How a plan is made: for the devices at hand, for others, in stages, or as MindSpore would."""

FLAGS: Mapping[Way, str] = {
    "plan": "a plan for the devices that the dump has",
    "devices": "--lost, or --to for other devices than those that the dump has a plan for",
    "stages": "--to-stages",
    "recursive": "--algorithm recursive",
    "propagation": "--algorithm propagation",
}
"""What to write for a way; of the usual one what it is."""


@dataclass(frozen=True, slots=True)
class Place:
    """Where an option counts; empty: everywhere."""

    ways: tuple[Way, ...] = ()
    formats: tuple[str, ...] = ()


_IMITATED: tuple[Way, ...] = ("recursive", "propagation")
_JOB = Place(formats=("msjob",))

PLACES: Mapping[str, Place] = {
    "--memory": Place(("plan", "devices", "stages")),
    "--micro-batches": Place(("stages",)),
    "--to-stages": Place(("stages",)),
    "--optimizer-parallel": Place(("plan", "stages")),
    "--recompute": Place(("plan", "stages")),
    "--pin": Place(("plan", "devices", *_IMITATED)),
    "--pin … -> …": Place(("plan", "devices")),
    "--keep-configured": Place(("plan", *_IMITATED)),
    "--region": Place(("plan",)),
    "--onto": Place(("plan",)),
    "--lost": Place(("devices",)),
    "--horizon": Place(("devices",)),
    "--matmul-mem-coef": Place(("recursive",)),
    "--keys": Place(formats=("strategy",)),
    "--names": Place(formats=("strategy",)),
    "--name": _JOB,
    "--image": _JOB,
    "--command": _JOB,
    "--servers": _JOB,
    "--limit": Place(formats=("table",)),
}
"""Every option that does not count everywhere."""


def is_given(value: object) -> bool:
    """Whether an option was written; flags and lists have an empty value where they were not."""
    return value is not None and value is not False and value != [] and value != {}


def way_of(
    algorithm: str, given: Mapping[str, object], dump: Dump, context: ParallelContext
) -> Way:
    """How a plan is to be made.

    Args:
        algorithm: of ``--algorithm``.
        given: values by option, ``--to`` included.
        dump: what is planned.
        context: that it was compiled under.
    """
    if algorithm == "recursive" or algorithm == "propagation":
        return algorithm
    if is_given(given["--to-stages"]):
        return "stages"
    if is_given(given["--lost"]):
        return "devices"
    to = given["--to"]
    others = to is not None and to != context.devices and context.is_parallel
    if others and not _plan_alone(given):
        return "devices" if any(node.in_strategy is not None for node in dump.nodes()) else "plan"
    return "plan"


def _plan_alone(given: Mapping[str, object]) -> list[str]:
    """Options that were given and make sense only where nothing has to be moved."""
    return [
        option
        for option, place in PLACES.items()
        if "plan" in place.ways and "devices" not in place.ways and is_given(given.get(option))
    ]


def refuse_ignored(way: Way, format: str, given: Mapping[str, object]) -> None:
    """Refuse options that would not count.

    Args:
        way: how the plan is made.
        format: in which it is written.
        given: values by option.

    Raises:
        Failure: an option would be ignored.
    """
    for option, place in PLACES.items():
        if not is_given(given.get(option)):
            continue
        if place.ways and way not in place.ways:
            raise _not_this_way(option, place, way, given)
        if place.formats and format not in place.formats:
            wanted = " or ".join(place.formats)
            message = f"goes with --format {wanted}, not with {format}"
            raise Failure(message, option, hint=f"--format {place.formats[0]}")
    if is_given(given.get("--names")) and given.get("--keys") == "parameters":
        message = "checks the keys of operators; with --keys parameters there are none"
        raise Failure(message, "--names", hint="--keys operators")


def _not_this_way(option: str, place: Place, way: Way, given: Mapping[str, object]) -> Failure:
    """Why an option does not go with the way, and what it does go with."""
    wanted = ", or ".join(FLAGS[each] for each in place.ways)
    if way == "recursive" or way == "propagation":
        if "plan" in place.ways or "devices" in place.ways or "stages" in place.ways:
            message = f"MindSpore's {way} search knows nothing like it"
            return Failure(message, option, hint="--algorithm exact")
        return Failure(f"does not go with --algorithm {way}", option, hint=f"goes with {wanted}")
    if way == "stages":
        hint = "" if option in wanted else f"goes with {wanted}"
        return Failure("does not go with --to-stages", option, hint=hint)
    if way == "devices":
        forced = "--lost" if is_given(given["--lost"]) else "--to"
        return Failure(f"does not go with {forced}", option, hint=f"goes with {wanted}")
    alone = _plan_alone(given)
    more = f" (and without {', '.join(alone)})" if alone else ""
    return Failure("would change nothing here", option, hint=f"goes with {wanted}{more}")


def not_weighed(way: Way, given: Mapping[str, object], dump: Dump, context: ParallelContext) -> str:
    """What to say where ``--to`` is not taken as devices that come or go; empty if it is."""
    to = given["--to"]
    alone = _plan_alone(given)
    if way != "plan" or to is None or to == context.devices or not alone:
        return ""
    if not any(node.in_strategy is not None for node in dump.nodes()):
        return ""
    return f"with {', '.join(alone)} it is not weighed what has to be moved for {to} devices"
