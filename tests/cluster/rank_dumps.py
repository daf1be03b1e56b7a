"""Small dumps of ranks that communicate, and real ones with their ranks rewritten."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import irtool
from irtool.ir.dump import Dump
from irtool.ir.group_names import group_name


@dataclass(frozen=True)
class Do:
    """One communication: a collective in a group of ranks, or a transfer with a peer and tag."""

    op: str
    ranks: Sequence[int] = ()
    group: str = ""
    peer: int = -1
    tag: int = 0
    shape: Sequence[int] = (4, 64)
    dtype: str = "Float32"
    more: str = ""
    instance: str = ""
    micro: int = -1


def all_reduce(ranks: Sequence[int], **more: object) -> Do:
    return Do("AllReduce", ranks, **more)  # type: ignore[arg-type]


def send(peer: int, tag: int = 0, **more: object) -> Do:
    return Do("Send", peer=peer, tag=tag, **more)  # type: ignore[arg-type]


def receive(peer: int, tag: int = 0, **more: object) -> Do:
    return Do("Receive", peer=peer, tag=tag, **more)  # type: ignore[arg-type]


def rank_dump(*steps: Do, chained: bool = True, weights: Sequence[str] = ()) -> Dump:
    """A dump of these communications: each needs the one before, or none needs any."""
    return irtool.load(rank_text(*steps, chained=chained, weights=weights).encode())


def rank_text(*steps: Do, chained: bool = True, weights: Sequence[str] = ()) -> str:
    lines = ["# IR entry: @net", "", "%para1_x: <Tensor[Float32], (4, 64)> : [4, 64]"]
    lines += [
        f"%para{number}_{name}: <Ref[Tensor[Float32]], (4, 64), ref_key={name}>  :  has_default"
        for number, name in enumerate(weights, 2)
    ]
    lines += [""]
    lines += ["subgraph @net() {"]
    for number, step in enumerate(steps):
        source = f"%{number - 1}" if chained and number else "%para1_x"
        lines += _statement(number, step, source)
    last = len(steps) - 1
    returned = f"%{last}"
    if not chained:
        operands = ", ".join(f"%{number}" for number in range(len(steps)))
        lines += [f"  %{last + 1}(all) = MakeTuple({operands})"]
        returned = f"%{last + 1}"
    lines += [f"  Return({returned})", "}", ""]
    return "\n".join(lines)


def _statement(number: int, step: Do, source: str) -> list[str]:
    kind = f"<Tensor[{step.dtype}], ({', '.join(map(str, step.shape))})>"
    if step.op == "Send":
        attributes = f'dest_rank: I64({step.peer}), group: "hccl_world_group", '
        attributes += f"sr_tag: I64({step.tag})"
    elif step.op == "Receive":
        attributes = f'group: "hccl_world_group", src_rank: I64({step.peer}), '
        attributes += f"sr_tag: I64({step.tag})"
    else:
        name = step.group or group_name(step.ranks)
        ranks = f"({', '.join(map(str, step.ranks))})"
        attributes = f'comm_reuse: Bool(1), group: "{name}", fusion: I64(0), op: "sum", '
        attributes += f"rank_list: {ranks}"
    if step.more:
        attributes += f", {step.more}"
    instance = f"{{instance name: {step.instance}}} " if step.instance else ""
    return [
        f"  %{number}(c{number}) = {step.op}({source}) {instance}primitive_attrs: {{{attributes}}} "
        "cnode_attrs: {checkpoint: Bool(1)}"
        + (f" cnode_primal_attrs: {{micro: I64({step.micro})}}" if step.micro >= 0 else ""),
        f"      : ({kind}) -> ({kind})",
        f"      # In file net.py:{number + 1}, 8~20/        x = self.step{number}(x)/",
    ]


# -- real dumps ----------------------------------------------------------------------------------

_RANKS = re.compile(r"\b(rank_list|group_rank_ids): (\([\d, ]+\))")
_NAMES = re.compile(r"\"(\d+)-(\d{10,20})\"")
_DASHED = re.compile(r"group_ranks: \"([\d-]+)\"")
_PEERS = re.compile(r"\b(dest_rank|src_rank): I64\((\d+)\)")


class Movable:
    """A real dump whose ranks can be moved by a number; only lines with ranks are looked at."""

    def __init__(self, text: str, rank: int, world: Sequence[int]) -> None:
        self.rank = rank
        self.lines = text.split("\n")
        self.places = [
            n
            for n, line in enumerate(self.lines)
            if "primitive_attrs: {" in line and "group" in line
        ]
        found = {ranks for place in self.places for ranks in _listed(self.lines[place])}
        self.names = {group_name(ranks): ranks for ranks in found}
        self.world = list(world)

    def moved(self, by: int, total: int) -> str:
        """The dump of the rank further up, of ``total``: see :meth:`placed`."""
        return self.placed(lambda rank: rank + by, total)

    def placed(self, place: Callable[[int], int], total: int) -> str:
        """The dump of the rank that ``place`` makes of its own, as of all others, of ``total``.

        Sends and Receives list their two ends rather than all devices, as some dumps do.
        """
        lines = list(self.lines)
        for number in self.places:
            lines[number] = self._placed_line(lines[number], place, total)
        return "\n".join(lines)

    def _placed_line(self, line: str, place: Callable[[int], int], total: int) -> str:
        def ranks(match: re.Match[str]) -> str:
            found = [int(number) for number in re.findall(r"\d+", match[2])]
            if found == self.world and "sr_tag" in line:
                found = sorted((self.rank, int(_PEERS.findall(line)[0][1])))
            elif found == self.world:
                return f"{match[1]}: ({', '.join(map(str, range(total)))})"
            return f"{match[1]}: ({', '.join(str(place(rank)) for rank in found)})"

        def dashed(match: re.Match[str]) -> str:
            new = (str(place(int(number))) for number in match[1].split("-"))
            return f'group_ranks: "{"-".join(new)}"'

        def name(match: re.Match[str]) -> str:
            return f'"{group_name([place(rank) for rank in self.names[match[0][1:-1]]])}"'

        def peer(match: re.Match[str]) -> str:
            return f"{match[1]}: I64({place(int(match[2]))})"

        head, mark, tail = line.partition("} cnode_")
        head = _RANKS.sub(ranks, _DASHED.sub(dashed, _NAMES.sub(name, head)))
        return _PEERS.sub(peer, head) + mark + tail


def _listed(text: str) -> set[tuple[int, ...]]:
    return {
        tuple(int(number) for number in re.findall(r"\d+", match[2]))
        for match in _RANKS.finditer(text)
    }
