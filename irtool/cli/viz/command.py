"""``irtool viz``: a picture of a dump."""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum
from typing import Annotated

from irtool.cli import complete
from irtool.cli import options as shared
from irtool.cli.configuration import load_custom_rules, read_configuration
from irtool.cli.context import ContextArguments, context_command
from irtool.cli.declared import with_options
from irtool.cli.output import Output
from irtool.cli.parameters import Argument, Option
from irtool.cli.report import Failure, note, report_problems
from irtool.cli.viz.choice import Choice, check_choice, chosen
from irtool.cli.viz.formats import WRITERS, Drawing, format_of
from irtool.cli.viz.load import load_drawn, overlays_of
from irtool.ir.dataclass import dataclass
from irtool.report.picture.build import MAX_BOXES, Wishes
from irtool.report.picture.material import material


class Format(str, Enum):
    """Output formats of ``irtool viz``."""

    svg = "svg"
    png = "png"
    pdf = "pdf"
    dot = "dot"
    html = "html"
    model_explorer = "model-explorer"


class ColourBy(str, Enum):
    """What the colours of boxes stand for."""

    op = "op"
    strategy = "strategy"
    stage = "stage"
    bytes = "bytes"
    memory = "memory"
    cost = "cost"
    error = "error"


class LayoutBy(str, Enum):
    """Who places the boxes of an svg."""

    own = "own"
    dot = "dot"


@dataclass(frozen=True, slots=True)
class VizOptions:
    """What the command line asks of a picture, as it is typed."""

    format: Annotated[
        Format | None,
        Option("--format", "-f", help="By default what -o FILE ends with, else svg."),
    ] = None
    max_nodes: Annotated[
        int,
        Option(
            "--max-nodes",
            least=0,
            metavar="N",
            help="Boxes at most: layers are folded and scopes closed until they fit; 0: no limit.",
        ),
    ] = MAX_BOXES
    expand: Annotated[
        list[str] | None,
        Option(metavar="SCOPE", help="Open this scope in any case; may be given again."),
    ] = None
    around: Annotated[
        str | None,
        Option(
            metavar="NODE",
            help="Only what is near a node: %12 or a name.",
            complete=complete.nodes,
        ),
    ] = None
    radius: Annotated[
        int, Option(least=0, metavar="N", help="How many steps away, with --around.")
    ] = 2
    path_between: Annotated[
        tuple[str, str] | None,
        Option(
            "--path",
            metavar="A B",
            help="Only what is on a way from A to B.",
            complete=complete.nodes,
        ),
    ] = None
    where: shared.Where = None
    whole: Annotated[
        bool,
        Option("--whole", help="All stages of a run, joined where one sends to another."),
    ] = False
    everything: Annotated[
        bool, Option("--all", help="Monads, loads and what only orders, too.")
    ] = False
    color_by: Annotated[
        ColourBy, Option("--color-by", "--colour-by", help="What colours mean.")
    ] = ColourBy.op
    layout: Annotated[
        LayoutBy | None,
        Option(
            help="Who places the boxes of an svg: irtool itself, or Graphviz's program dot. By "
            "default dot where it is installed.",
            show_default=False,
        ),
    ] = None
    overlay: Annotated[
        list[str] | None,
        Option(
            metavar="FILE",
            help="What check, lint, plan, cost, memory or diff wrote with --format json.",
        ),
    ] = None
    check: Annotated[
        bool,
        Option("--check/--no-check", help="Slices and findings of check, on dumps it can judge."),
    ] = True
    graph: shared.GraphNumber = None
    config: shared.Config = None
    output_file: shared.OutputFile = None

    @property
    def choice(self) -> Choice:
        """Which part is drawn."""
        return Choice(self.around, self.radius, self.path_between, self.where)


@with_options(VizOptions)
def _viz(
    path: Annotated[
        str, Argument(metavar="PATH", help="A dump, a run folder, or -.", show_default=False)
    ],
    options: VizOptions,
    *,
    context: ContextArguments,
) -> int:
    """A picture of a dump.

    Operators in the frames of their scopes; repeated layers are drawn once, with how often they are
    there. Forward runs down, backward up beside it.
    """
    check_choice(options.choice)
    output = Output(options.output_file)
    form = options.format.value if options.format else None
    writer = WRITERS[format_of(form, options.output_file, output.terminal)]
    configuration = read_configuration(options.config)
    load_custom_rules(configuration)
    drawn = load_drawn(
        path, context, configuration, options.graph, whole=options.whole, judge=options.check
    )
    report_problems(drawn.problems)
    overlays = overlays_of(drawn, options.overlay or ())
    _check_colours(options.color_by, [layer.topic for layer in overlays])
    for layer in overlays:
        for text in layer.unplaced[:3]:
            note(f"{layer.title}: not in this dump: {text}")
    everywhere = material(
        drawn.whole,
        everything=options.everything,
        must_show=[node for layer in overlays for node in layer.marks],
        report=drawn.report,
        title=drawn.title,
    )
    shown, focus = chosen(everywhere, options.choice)
    wishes = Wishes(options.max_nodes, tuple(options.expand or ()), options.color_by.value, focus)
    by = options.layout.value if options.layout else None
    writer(Drawing(drawn, shown, wishes, overlays, by), output, options.output_file)
    output.close()
    return 1 if drawn.problems else 0


command = context_command("viz", _viz)


def _check_colours(colour_by: ColourBy, topics: Sequence[str]) -> None:
    """Colours by memory, cost or error need the numbers of another command."""
    topic = colour_by.value
    if topic in ("memory", "cost", "error") and topic not in topics:
        source = "diff" if topic == "error" else topic
        raise Failure(
            f"--color-by {topic} needs the numbers that irtool {source} finds",
            hint=f"irtool {source} … --format json -o {source}.json, then --overlay {source}.json",
        )
