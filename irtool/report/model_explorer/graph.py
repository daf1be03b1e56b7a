"""A dump as Model Explorer's graph: nodes with namespaces, attributes, and edges with shapes.

Format: https://github.com/google-ai-edge/model-explorer/wiki/6.-Develop-Adapter-Extension and the
types of its package ``ai-edge-model-explorer`` 0.1.34, in whose server the result was looked at.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence

from irtool.ir.collectives import collective
from irtool.ir.graph import Node
from irtool.ir.operators import COMMUNICATION
from irtool.ir.units import bytes_text, ranks_text, tuple_text
from irtool.report.picture.boxes import class_of
from irtool.report.picture.classes import BY_KEY
from irtool.report.picture.leaves import Leaf, Link, Material
from irtool.report.picture.tree import LANE_TITLES
from irtool.report.text import escape, shortened
from irtool.sharding.network.report import CheckResult

_LONGEST = 2000
"""Characters of the longest attribute."""

Object = dict[str, object]


def graph_collection(label: str, graphs: Sequence[Object]) -> Object:
    """One file with several graphs.

    Args:
        label: what Model Explorer calls it.
        graphs: what :func:`model_explorer_graph` makes.
    """
    return {"label": escape(label), "graphs": list(graphs)}


def model_explorer_graph(material: Material, id: str, report: CheckResult | None = None) -> Object:
    """A dump as one of Model Explorer's graphs.

    Args:
        material: what is drawn; every leaf becomes a node.
        id: of the graph, unique in its file.
        report: what ``check`` says of the dump: slices, layouts, collectives.
    """
    keys = leaf_keys(material)
    partners = _partners(material)
    return {
        "id": escape(id),
        "nodes": [
            _node(leaf, material.into[leaf], keys, partners.get(leaf, ()), report)
            for leaf in material.leaves
        ],
    }


def leaf_keys(material: Material) -> dict[Leaf, str]:
    """Ids of nodes: ``57:%12`` (line and id), numbered where a statement runs several times.

    Args:
        material: what may be drawn; of several joined dumps the name of the dump stands first.
    """
    seen: Counter[str] = Counter()
    by_leaf: dict[Leaf, str] = {}
    for leaf in material.leaves:
        source = f"{leaf.source}:" if leaf.source is not None else ""
        if leaf.node is not None:
            key = f"{source}{leaf.node.line}:{leaf.node.id}"
        else:
            key = f"{source}parameter {escape(leaf.name)}"
        seen[key] += 1
        by_leaf[leaf] = key if seen[key] == 1 else f"{key}#{seen[key]}"
    return by_leaf


def namespace(leaf: Leaf) -> str:
    """The layers that a node stands in, the outermost first.

    Args:
        leaf: a statement or parameter: stage, phase, micro-batch, graph and scopes are layers where
            it has them.

    Returns:
        joined by slashes, as Model Explorer takes it; a slash inside a name becomes ``∕``.
    """
    parts: list[str] = []
    if leaf.stage is not None:
        parts.append(f"stage {leaf.stage}")
    if leaf.lane != "other":
        parts.append(LANE_TITLES[leaf.lane])
    if leaf.micro is not None and leaf.lane != "optimizer":
        parts.append(f"micro-batch {leaf.micro}")
    parts += (*leaf.graphs, *leaf.place)
    return "/".join(escape(part).replace("/", "∕") for part in parts)


def sync_navigation(
    left: Material, right: Material, pairs: Iterable[tuple[Sequence[Node], Sequence[Node]]]
) -> Object:
    """What lets two panes move together: which nodes of two graphs belong to each other.

    Args:
        left: material of the left graph.
        right: material of the right graph.
        pairs: nodes of the left dump with those of the right one; what is in no pair is shown as
            deleted (left) or new (right).  Parameters and inputs belong together by name.
    """
    sides = [_keys_by_node(material) for material in (left, right)]
    entries: list[Object] = []
    for before, after in pairs:
        ids = [
            [key for node in nodes for key in side.get(node, ())]
            for nodes, side in zip((before, after), sides, strict=True)
        ]
        if ids[0] and ids[1]:
            entries.append({"leftNodeIds": ids[0], "rightNodeIds": ids[1]})
    ours, theirs = (_keys_by_parameter(material) for material in (left, right))
    for name, keys in ours.items():
        if name in theirs:
            entries.append({"leftNodeIds": keys, "rightNodeIds": theirs[name]})
    return {
        "type": "sync_navigation",
        "mappingEntries": entries,
        "showDiffHighlights": True,
        "deletedNodesBorderColor": "#EE3377",
        "newNodesBorderColor": "#009988",
    }


def _keys_by_node(material: Material) -> dict[Node, list[str]]:
    by_node: dict[Node, list[str]] = defaultdict(list)
    for leaf, key in leaf_keys(material).items():
        if leaf.node is not None:
            by_node[leaf.node].append(key)
    return by_node


def _keys_by_parameter(material: Material) -> dict[str, list[str]]:
    by_name: dict[str, list[str]] = defaultdict(list)
    for leaf, key in leaf_keys(material).items():
        if leaf.node is None:
            by_name[leaf.name].append(key)
    return by_name


# ---- one node --------------------------------------------------------------------------------


def _node(
    leaf: Leaf,
    inputs: Sequence[Link],
    keys: Mapping[Leaf, str],
    partners: Sequence[Leaf],
    report: CheckResult | None,
) -> Object:
    attributes: list[Object] = [
        {"key": key, "value": shortened(escape(value), _LONGEST)}
        for key, value in _facts(leaf, report)
        if value
    ]
    if partners:
        value = {"type": "node_ids", "nodeIds": [keys[partner] for partner in partners]}
        attributes.append({"key": "belongs to", "value": value})
    made: Object = {
        "id": keys[leaf],
        "label": escape(leaf.name),
        "namespace": namespace(leaf),
        "attrs": attributes,
        "incomingEdges": [
            {
                "sourceNodeId": keys[link.tail],
                "sourceNodeOutputId": "0",
                "targetNodeInputId": str(number),
            }
            for number, link in enumerate(inputs)
        ],
        "outputsMetadata": [{"id": "0", "attrs": _output(leaf)}],
        "inputsMetadata": [
            {"id": str(number), "attrs": [{"key": "__tensor_tag", "value": tag}]}
            for number, link in enumerate(inputs)
            if (tag := " ".join(filter(None, (link.label, link.note))))
        ],
    }
    colour = _colour(leaf)
    if colour:
        made["style"] = {"backgroundColor": colour}
    return made


def _colour(leaf: Leaf) -> str:
    if leaf.node is None:
        return ""
    operator_class = BY_KEY.get(class_of(leaf.node))
    return operator_class.colour if operator_class and operator_class.colour != "#FFFFFF" else ""


def _output(leaf: Leaf) -> list[Object]:
    type = leaf.node.output_type if leaf.node else leaf.parameter.type if leaf.parameter else None
    if type is None:
        return []
    return [{"key": "tensor_shape", "value": shortened(escape(type.short()), 200)}]


def _facts(leaf: Leaf, report: CheckResult | None) -> list[tuple[str, str]]:
    node = leaf.node
    if node is None:
        type = leaf.parameter.type if leaf.parameter else None
        return [("type", type.short() if type else ""), ("bytes", _bytes(leaf.bytes))]
    location = node.location
    facts = [
        ("id", node.id),
        ("line", str(node.line)),
        ("name", node.name or ""),
        ("instance name", node.instance_name or ""),
        ("scope", node.scope or ""),
        ("source", f"{location.path}:{location.line}" if location else ""),
        ("type", node.output_type.short() if node.output_type else ""),
        ("bytes", _bytes(leaf.bytes)),
        ("strategy", tuple_text(node.written_strategy())),
        ("output strategy", tuple_text(node.written_strategy("out_strategy"))),
        ("calls", ", ".join(node.callees)),
    ]
    facts += _communication(node)
    operator = report.operator(node) if report is not None else None
    if operator is not None:
        facts += [
            ("verdict", operator.verdict),
            ("device matrix", tuple_text(operator.device_matrix)),
            ("input slices", tuple_text(operator.input_slices)),
            ("output slices", tuple_text(operator.output_slices)),
        ]
        facts += [
            (
                f"then {item.op}",
                f"ranks {ranks_text(item.ranks)}, {bytes_text(item.bytes)}, {item.why}",
            )
            for item in operator.collectives
        ]
    for title, block in (
        ("primitive", node.primitive_attributes),
        ("cnode", node.node_attributes),
        ("primal", node.primal_attributes),
    ):
        for key, value in block.items() if block is not None else ():
            facts.append((f"{title}: {key}", str(value)))
    return facts


def _communication(node: Node) -> list[tuple[str, str]]:
    communication = collective(node) if node.op in COMMUNICATION else None
    if communication is None:
        return []
    return [
        ("ranks", ranks_text(communication.ranks) if communication.ranks else ""),
        ("group", communication.group or ""),
        ("communicates", _bytes(communication.bytes)),
        ("why", communication.origin),
    ]


def _bytes(size: int | None) -> str:
    return bytes_text(size) if size is not None else ""


def _partners(material: Material) -> dict[Leaf, list[Leaf]]:
    partners: dict[Leaf, list[Leaf]] = defaultdict(list)
    for bond in material.bonds:
        partners[bond.left].append(bond.right)
        partners[bond.right].append(bond.left)
    return partners
