"""``irtool plan --scale``: the network that is not there yet, and the devices that it is for."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from irtool.cli.plan.options import PlanOptions
from irtool.cli.report import Failure
from irtool.ir.dataclass import dataclass
from irtool.ir.dump import Dump
from irtool.ir.limits import bounded_int
from irtool.ir.types import LARGEST_SIZE
from irtool.sharding.network.context import ParallelContext

if TYPE_CHECKING:
    from irtool.planning.scaling.scaled import Scaled


@dataclass(frozen=True, slots=True)
class ScaledNetwork:
    """A network of other sizes, and what it is planned under.

    Attributes:
        scaled: the network.
        context: that of the small one, for the devices to plan for.
    """

    scaled: Scaled
    context: ParallelContext


def scaled_network(
    options: PlanOptions, dump: Dump, context: ParallelContext
) -> ScaledNetwork | None:
    """What ``--scale`` asks for; None: nothing.

    Args:
        options: of ``irtool plan``.
        dump: of the small network.
        context: that it was compiled under.

    Returns:
        The network in its new sizes, and the context with the devices that it is planned for.

    Raises:
        Failure: it can't be.
    """
    from irtool.planning.scaling.scaled import scaled
    from irtool.planning.search.operator_candidates import CannotPlan

    given = sizes_given("--role", options.role)
    if not options.scale:
        if given:
            raise Failure("says which size of a network is scaled", "--role", hint="--scale …")
        return None
    asked = sizes_given("--scale", options.scale)
    if options.keep_configured:
        message = "strategies in the code are meant for the sizes and devices of the small network"
        raise Failure(message, "--keep-configured", hint="leave it out, or --pin")
    if context.stages > 1:
        message = f"this dump is of one of {context.stages} stages: its network is not whole"
        raise Failure(message, "--scale", hint="the begin dump of a run without stages")
    try:
        network = scaled(dump, asked, given)
    except CannotPlan as error:
        raise Failure(str(error), "--scale") from None
    devices = options.to or context.devices
    return ScaledNetwork(network, replace(context, devices=devices, rank=0))


def sizes_given(option: str, texts: Sequence[str] | None) -> Mapping[str, int]:
    """Sizes by role, of texts such as ``layers=80,hidden=8192``.

    Args:
        option: that they were given to, for the message.
        texts: as they were given; None: they were not.

    Raises:
        Failure: something is no role, no size, or there twice.
    """
    from irtool.planning.scaling.roles import NAMES

    sizes: dict[str, int] = {}
    for pair in (pair.strip() for text in texts or () for pair in text.split(",")):
        name, equals, number = (part.strip() for part in pair.partition("="))
        name = name.replace("-", "_")
        if not equals or not number.isdecimal() or not 0 < bounded_int(number) <= LARGEST_SIZE:
            raise Failure(f"{pair!r} is no size of a role", option, hint="hidden=8192,layers=80")
        if name not in NAMES:
            raise Failure(f"{name!r} is no role", option, hint=f"one of {', '.join(NAMES)}")
        size = bounded_int(number)
        if sizes.setdefault(name, size) != size:
            raise Failure(f"{name} is given twice", option)
    return sizes
