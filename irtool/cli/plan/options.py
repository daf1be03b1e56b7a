"""The options of ``irtool plan``: declared once, with what each goes together with."""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from typing import TYPE_CHECKING, Annotated, Literal

from irtool.cli import options
from irtool.cli.declared import notes_of
from irtool.cli.parameters import Option
from irtool.cli.question import RunOptions
from irtool.cli.report import Failure
from irtool.ir.dataclass import dataclass
from irtool.ir.dump import Dump
from irtool.sharding.network.context import ParallelContext

if TYPE_CHECKING:
    from irtool.planning.search.effort import EffortName

Way = Literal["plan", "devices", "stages", "recursive", "propagation", "candidates"]
"""How a plan is made: for the devices at hand, for others, in stages, as MindSpore would, or with
all that can be decided searched together."""

FLAGS: Mapping[Way, str] = {
    "plan": "a plan for the devices that the dump has",
    "devices": "--lost, or --to for other devices than those that the dump has a plan for",
    "stages": "--to-stages",
    "candidates": "--scale without --to-stages, --optimizer-parallel, --recompute and --pin",
    "recursive": "--algorithm recursive",
    "propagation": "--algorithm propagation",
}
"""What to write for a way; of the usual one what it is."""


class PlanForm(str, Enum):
    """Forms of the answer, and of the plan itself."""

    table = "table"
    json = "json"
    csv = "csv"
    html = "html"
    ir = "ir"
    strategy = "strategy"
    shard = "shard"
    msjob = "msjob"


class Keys(str, Enum):
    """What the strategies of a strategy file are keyed by."""

    operators = "operators"
    parameters = "parameters"


class Decide(str, Enum):
    """The value of options that leave their decision to the search."""

    auto = "auto"


class Effort(str, Enum):
    """How much a search looks at."""

    quick = "quick"
    default = "default"
    full = "full"


class Algorithm(str, Enum):
    """How strategies are searched: irtool's own search, or one of MindSpore's reproduced."""

    exact = "exact"
    recursive = "recursive"
    propagation = "propagation"


@dataclass(frozen=True, slots=True)
class Place:
    """Where an option counts; empty: everywhere."""

    ways: tuple[Way, ...] = ()
    formats: tuple[str, ...] = ()


DECIDED = "Other decisions"
HELD = "What a plan is held to"
AFTER = "After failures"
OTHER_SIZES = "A network of other sizes"
FILES = "Files of the plan"
"""Groups of options."""
_IMITATED: tuple[Way, ...] = ("recursive", "propagation")
_STRATEGY = Place(formats=("strategy",))
_JOB = Place(formats=("msjob",))
JobName = Annotated[
    str | None,
    Option(
        metavar="NAME",
        help="With --format msjob: what the job is called.",
        show_default="mindspore-training",
        group=FILES,
    ),
]
JobImage = Annotated[
    str | None,
    Option(
        metavar="IMAGE",
        help="With --format msjob: the image of all pods.",
        show_default="mindspore-image-name:tag",
        group=FILES,
    ),
]
JobCommand = Annotated[
    str | None,
    Option(
        metavar="SHELL",
        help="With --format msjob: what every role runs.",
        show_default="python train.py",
        group=FILES,
    ),
]
JobServers = Annotated[
    int | None,
    Option(
        least=0,
        metavar="N",
        show_default="1 if parameters live on servers, else 0",
        help="With --format msjob: parameter servers.",
        group=FILES,
    ),
]
_OUTS = "--pin … -> …"
_OUTS_PLACE = Place(("plan", "devices"))


@dataclass(frozen=True, slots=True)
class PlanOptions(RunOptions):
    """What the command line asks of a plan, as it is typed."""

    format: Annotated[
        PlanForm, Option("--format", "-f", help="ir, strategy, shard, msjob: the plan itself.")
    ] = PlanForm.table
    algorithm: Annotated[Algorithm, Option(help="How to search.")] = Algorithm.exact
    effort: Annotated[
        Effort | None,
        Option(help="How many strategies of operators are looked at."),
        Place(("plan", "devices", "stages", "candidates")),
    ] = None
    to: Annotated[int | None, Option(least=1, metavar="N", help="Devices to plan for.")] = None
    machine: options.MachineName = None
    overlap: Annotated[options.Overlap, Place(("plan", *_IMITATED))] = None
    memory: Annotated[
        str | None,
        Option(metavar="SIZE", help="At most so much a device: 30GiB.", group=HELD),
        Place(("plan", "devices", "stages", "candidates")),
    ] = None
    to_stages: Annotated[
        int | None,
        Option(
            least=1,
            metavar="S",
            help="Cut the network into so many pipeline stages.",
            group=DECIDED,
        ),
        Place(("stages",)),
    ] = None
    micro_batches: Annotated[
        int | None,
        Option(
            least=1,
            metavar="M",
            show_default="4 a stage",
            help="Of a step, in stages.",
            group=DECIDED,
        ),
        Place(("stages",)),
    ] = None
    optimizer_parallel: Annotated[
        Decide | None,
        Option(
            help="auto: which weights to cut over their replicas.",
            show_default="as the context says",
            group=DECIDED,
        ),
        Place(("plan", "stages")),
    ] = None
    recompute: Annotated[
        Decide | None,
        Option(
            help="auto: which operators to run again, so as not to keep results.",
            show_default="none",
            group=DECIDED,
        ),
        Place(("plan", "stages")),
    ] = None
    pin: Annotated[
        list[str] | None,
        Option(
            metavar="QUERY=STRATEGY",
            help="Operators that must have a strategy.",
            group=HELD,
        ),
        Place(("plan", "devices", *_IMITATED)),
    ] = None
    keep_configured: Annotated[
        bool,
        Option("--keep-configured", help="What users sharded stays as it is.", group=HELD),
        Place(("plan", *_IMITATED)),
    ] = False
    region: Annotated[
        str | None,
        Option(metavar="QUERY", help="Plan these operators, freeze all others.", group=HELD),
        Place(("plan",)),
    ] = None
    onto: Annotated[
        str | None,
        Option(
            metavar="OLD",
            help="A begin dump whose plan stays where nothing changed.",
            group=HELD,
        ),
        Place(("plan",)),
    ] = None
    bind: options.Bind = None
    scale: Annotated[
        list[str] | None,
        Option(
            metavar="ROLE=SIZE,…",
            help="Plan a network of other sizes: layers=80,hidden=8192,heads=64,batch=1024.",
            group=OTHER_SIZES,
        ),
        Place(("plan", "stages", "candidates")),
    ] = None
    role: Annotated[
        list[str] | None,
        Option(
            metavar="ROLE=SIZE,…",
            help="Which size of the dump plays a role that several could play.",
            group=OTHER_SIZES,
        ),
        Place(("plan", "stages", "candidates")),
    ] = None
    candidate: Annotated[
        int | None,
        Option(
            least=1,
            metavar="N",
            show_default="the fastest that fits",
            help="Of what was searched together: which one to plan and write.",
            group=OTHER_SIZES,
        ),
        Place(("candidates",)),
    ] = None
    lost: Annotated[
        str | None,
        Option(metavar="RANKS", help="Ranks whose devices are gone: 3,5,8-15.", group=AFTER),
        Place(("devices",)),
    ] = None
    horizon: Annotated[
        str | None,
        Option(
            metavar="STEPS",
            show_default="10000",
            help="Steps that pay off what is moved and compiled for other devices.",
            group=AFTER,
        ),
        Place(("devices",)),
    ] = None
    keys: Annotated[
        Keys | None,
        Option(
            help="With --format strategy: which of MindSpore's files.",
            show_default="operators, or parameters where those can't be told apart",
            group=FILES,
        ),
        _STRATEGY,
    ] = None
    names: Annotated[
        str | None,
        Option(
            metavar="SAVED.json",
            help="A strategy file of MindSpore's to check keys by.",
            group=FILES,
        ),
        _STRATEGY,
    ] = None
    row_coefficient: Annotated[
        float | None,
        Option(
            "--matmul-mem-coef",
            least=0,
            metavar="X",
            help="Of recursive: MindSpore's rp_matmul_mem_coef.",
        ),
        Place(("recursive",)),
    ] = None
    name: Annotated[JobName, _JOB] = None
    image: Annotated[JobImage, _JOB] = None
    command: Annotated[JobCommand, _JOB] = None
    servers: Annotated[JobServers, _JOB] = None
    limit: Annotated[options.Limit, Place(formats=("table",))] = None

    @property
    def effort_name(self) -> EffortName:
        """How much the search looks at."""
        return "default" if self.effort is None else self.effort.value

    def given(self) -> dict[str, object]:
        """Values by flag, of all options that do not count everywhere."""
        values = {flag: getattr(self, name) for name, flag in _FLAG_OF.items()}
        values[_OUTS] = [text for text in self.pin or () if "->" in text.rpartition("=(")[2]]
        return values


def _flag(name: str) -> str:
    names = notes_of(PlanOptions, Option)[name].names
    return names[0] if names else f"--{name.replace('_', '-')}"


_PLACES = notes_of(PlanOptions, Place)
_FLAG_OF: Mapping[str, str] = {name: _flag(name) for name in _PLACES}
PLACES: Mapping[str, Place] = {
    **{_FLAG_OF[name]: place for name, place in _PLACES.items()},
    _OUTS: _OUTS_PLACE,
}
"""Every option that does not count everywhere."""


def is_given(value: object) -> bool:
    """Whether an option was written; flags and lists have an empty value where they were not.

    Args:
        value: of the option.
    """
    return value is not None and value is not False and value != [] and value != {}


def way_of(asked: PlanOptions, dump: Dump, context: ParallelContext) -> Way:
    """How a plan is to be made.

    Args:
        asked: what is typed.
        dump: what is planned.
        context: that it was compiled under.
    """
    if asked.algorithm is Algorithm.recursive:
        return "recursive"
    if asked.algorithm is Algorithm.propagation:
        return "propagation"
    if asked.to_stages is not None:
        return "stages"
    if asked.lost is not None:
        return "devices"
    if asked.scale and not any(map(is_given, _alone(asked))):
        return "candidates"
    to, given = asked.to, asked.given()
    others = to is not None and to != context.devices and context.is_parallel
    if others and not _plan_alone(given):
        return "devices" if any(node.has_strategy for node in dump.nodes()) else "plan"
    return "plan"


def _alone(asked: PlanOptions) -> tuple[object, ...]:
    """What is asked of one plan, so that nothing else is searched beside it."""
    return (
        asked.optimizer_parallel, asked.recompute, asked.pin, asked.region, asked.onto,
        asked.micro_batches,
    )  # fmt: skip


def _plan_alone(given: Mapping[str, object]) -> list[str]:
    """Options that were given and make sense only where nothing has to be moved."""
    return [
        option
        for option, place in PLACES.items()
        if "plan" in place.ways and "devices" not in place.ways and is_given(given.get(option))
    ]


def refuse_ignored(way: Way, asked: PlanOptions) -> None:
    """Refuse options that would not count.

    Args:
        way: how the plan is made.
        asked: what is typed.

    Raises:
        Failure: an option would be ignored.
    """
    given, form = asked.given(), asked.format.value
    for option, place in PLACES.items():
        if not is_given(given.get(option)):
            continue
        if place.ways and way not in place.ways:
            raise _not_this_way(option, place, way, given)
        if place.formats and form not in place.formats:
            wanted = " or ".join(place.formats)
            message = f"goes with --format {wanted}, not with {form}"
            raise Failure(message, option, hint=f"--format {place.formats[0]}")
    if asked.names is not None and asked.keys is Keys.parameters:
        message = "checks the keys of operators; with --keys parameters there are none"
        raise Failure(message, "--names", hint="--keys operators")


def _not_this_way(option: str, place: Place, way: Way, given: Mapping[str, object]) -> Failure:
    """Why an option does not go with the way, and what it does go with."""
    wanted = ", or ".join(FLAGS[other] for other in place.ways)
    if way == "recursive" or way == "propagation":
        if "plan" in place.ways or "devices" in place.ways or "stages" in place.ways:
            message = f"MindSpore's {way} search knows nothing like it"
            return Failure(message, option, hint="--algorithm exact")
        return Failure(f"does not go with --algorithm {way}", option, hint=f"goes with {wanted}")
    if way == "stages":
        hint = "" if option in wanted else f"goes with {wanted}"
        return Failure("does not go with --to-stages", option, hint=hint)
    if way == "candidates":
        return Failure("is decided by the search, too", option, hint="--to-stages 1, to plan alone")
    if way == "devices":
        forced = "--lost" if is_given(given["--lost"]) else "--to"
        return Failure(f"does not go with {forced}", option, hint=f"goes with {wanted}")
    alone = _plan_alone(given)
    more = f" (and without {', '.join(alone)})" if alone else ""
    return Failure("would change nothing here", option, hint=f"goes with {wanted}{more}")


def not_weighed(way: Way, asked: PlanOptions, dump: Dump, context: ParallelContext) -> str:
    """What to say where ``--to`` is not taken as devices that come or go; empty if it is.

    Args:
        way: how it is planned.
        asked: the options.
        dump: that is planned.
        context: that it was compiled under.
    """
    to = asked.to
    alone = _plan_alone(asked.given())
    if way != "plan" or to is None or to == context.devices or not alone:
        return ""
    if not any(node.has_strategy for node in dump.nodes()):
        return ""
    return f"with {', '.join(alone)} it is not weighed what has to be moved for {to} devices"
