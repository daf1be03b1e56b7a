"""Parameters written into the box of the one operator that takes them, where boxes are dear."""

from __future__ import annotations

from collections import defaultdict

from irtool.ir.dataclass import dataclass
from irtool.report.picture.leaves import Leaf, Material


@dataclass(frozen=True, slots=True)
class Absorbed:
    """Material without the absorbed parameters; ``held`` has them by operator, in operand order."""

    material: Material
    held: dict[Leaf, list[Leaf]]
    updates: dict[Leaf, Leaf]


def absorb(material: Material, weights: bool) -> Absorbed:
    """Put parameters into the operators that take them.

    Args:
        material: what may be drawn.
        weights: weights, too, where one operator of the forward pass takes them; optimizer states
            are absorbed in any case, and so are weights where only their update is drawn.
    """
    held: dict[Leaf, list[Leaf]] = defaultdict(list)
    gone: set[Leaf] = set()
    for leaf in material.leaves:
        if leaf.kind != "parameter":
            continue
        heads = dict.fromkeys(link.head for link in material.out_of[leaf])
        home = [head for head in heads if head.lane == leaf.lane]
        if len(home) == 1 and (weights or leaf.lane == "optimizer"):
            held[home[0]].append(leaf)
            gone.add(leaf)
    updates = {
        bond.right: bond.left
        for bond in material.bonds
        if bond.kind == "parameter" and bond.left.parameter is not None
    }
    kept = [leaf for leaf in material.leaves if leaf not in gone]
    return Absorbed(material.part(kept), held, updates)
