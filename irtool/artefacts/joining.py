"""What artefacts measured, joined with the nodes that it was measured on.

The key is the full name.  The profiler, the memory tracker and the launch order write the names
that ``graph_build`` prints; ``validate`` has the same where the backend expanded nothing.  The
tensor dump's order has the numbers of ``graph_before_reset_id``, which MindSpore gave up
afterwards: these are replayed, never taken for equal (:func:`replayed`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from irtool.artefacts.names import split_number
from irtool.artefacts.profile import LaunchedAs
from irtool.ir.dataclass import dataclass
from irtool.ir.dump import Dump
from irtool.ir.graph import Node

NO_NAME = "bears no name of a node"
NO_NODE = "no node of this name"
SEVERAL = "several nodes of this name"
EXPANDED = "the backend expanded a node into it"
_EXPANDED = "Expand/"


@dataclass(frozen=True, eq=False)
class Joined:
    """What artefacts call operators, joined with the nodes of a dump.

    Attributes:
        nodes: by name its node.
        missing: by name why it has none.
        path: the dump.
    """

    nodes: Mapping[str, Node]
    missing: Mapping[str, str]
    path: str

    @property
    def share(self) -> float:
        """Of all names those that have a node; 1 where there are no names."""
        count = len(self.nodes) + len(self.missing)
        return len(self.nodes) / count if count else 1.0

    def reasons(self) -> dict[str, int]:
        """How many names have no node, by reason."""
        return dict(Counter(self.missing.values()))


@dataclass(frozen=True, slots=True)
class JoinedShapes:
    """Shapes of what was launched, held to those of the nodes of its name.

    Attributes:
        count: operators with their shapes that a node of their name could have.
        others: those that none has: the profile is of other sizes than the dump.
    """

    count: int
    others: tuple[LaunchedAs, ...] = ()


def join_shapes(launched: Iterable[LaunchedAs], dump: Dump) -> JoinedShapes:
    """Whether what was launched had the shapes that the dump says.

    Args:
        launched: names without scopes, as a CPU's profiler writes them, and shapes.
        dump: of what ran. Names that it lacks, and nodes of unknown sizes, say nothing.
    """
    known: dict[str, set[tuple[tuple[int, ...], ...]] | None] = {}
    for name, nodes in nodes_by_name(dump).items():
        for node in nodes:
            shapes = _tensor_shapes(node)
            short = name.rpartition("/")[2]
            if shapes is None:
                known[short] = None
            elif (own := known.setdefault(short, set())) is not None:
                own.add(shapes)
    held = [launch for launch in launched if known.get(launch[0]) is not None]
    others = sorted(launch for launch in held if launch[1] not in (known[launch[0]] or ()))
    return JoinedShapes(len(held), tuple(others))


def _tensor_shapes(node: Node) -> tuple[tuple[int, ...], ...] | None:
    """Shapes of the tensors that a node is given; None where one is not known."""
    shapes: list[tuple[int, ...]] = []
    for abstract in node.input_types:
        for _, shape in abstract.tensors if abstract is not None else ():
            if min(shape, default=0) < 0:
                return None
            shapes.append(tuple(shape))
    return tuple(shapes)


def nodes_by_name(dump: Dump) -> dict[str, list[Node]]:
    """The nodes of each full name, in the order of the dump.

    Args:
        dump: whose nodes; those without a full name (only a scope) are left out.
    """
    by_name: dict[str, list[Node]] = {}
    for node in dump.nodes():
        if node.full_name is not None:
            by_name.setdefault(node.full_name, []).append(node)
    return by_name


def join_names(names: Iterable[str], dump: Dump) -> Joined:
    """Join full names with the nodes of a dump.

    Args:
        names: as an artefact has them; equal ones count once.
        dump: ``graph_build`` if it is there, else ``validate``.
    """
    known = nodes_by_name(dump)
    nodes: dict[str, Node] = {}
    missing: dict[str, str] = {}
    for name in dict.fromkeys(names):
        candidates = known.get(name, ())
        if len(candidates) == 1:
            nodes[name] = candidates[0]
        elif candidates:
            missing[name] = SEVERAL
        else:
            missing[name] = EXPANDED if name.startswith(_EXPANDED) else NO_NODE
    return Joined(nodes, missing, dump.path)


def replayed(names: Sequence[str]) -> dict[str, str]:
    """The numbers that MindSpore gives in place of those before: by old name the new one.

    Args:
        names: full names of ``graph_before_reset_id`` in printed order, which is that of the
            numbering: one counter for each text before the last ``-op``.
    """
    counters: Counter[str] = Counter()
    renamed: dict[str, str] = {}
    for name in names:
        parts = split_number(name)
        if parts is None:
            continue
        renamed[name] = f"{parts[0]}{counters[parts[0]]}"
        counters[parts[0]] += 1
    return renamed
