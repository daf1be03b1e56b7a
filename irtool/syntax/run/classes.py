"""Fingerprints of dumps up to what depends on the rank, from the text alone.

Two dumps have the same fingerprint if and only if their texts are equal after these changes:

* left out: source locations (``# In file``), the total of nodes (it counts constants), addresses
  of graphs (``instance: … : 0x…``);
* renumbered by first occurrence, so that equal stays equal and different stays different: debug
  names of nodes, numbers in graph names, unique ids, ids of recomputed copies, addresses
  (``ref_key=0x…``), hashes in instance names, hashes of group names, ``-op<N>`` of full names;
* relative to the dump's rank: the peers of Send, Receive and neighbour exchanges; lists of the
  ranks of a group keep size and distances (where a version prints no list, only the size is left);
* begin and end of a StridedSlice that redistribution inserted, and of its gradient: their
  distance stays; the offset that the sharding of an embedding table or of OneHot subtracts
  or compares with.

Everything else is compared as it stands: operators, operands, types and shapes, parameter names,
strategies, attributes, scopes, all other constants (also those of a user's StridedSlice).
"""

from __future__ import annotations

import hashlib
import re
from array import array
from dataclasses import field
from itertools import pairwise

from irtool.ir.dataclass import dataclass
from irtool.ir.limits import bounded_int
from irtool.syntax.kept import keeper

_NEVER = re.compile(r"\s*#\s*(?:\d+ )?In file |Total number of nodes:|\s*# Corresponding ")
_DEBUG_NAME = re.compile(r"^(\s*%\d+)\((.*?)\)( = )")
_RANK_LIST = re.compile(r"\b(rank_list|group_rank_ids|group_ranks): (\([\d, ]+\)|\"[\d-]+\")")
_PEER = re.compile(r"\b(dest_rank|src_rank): I64\((\d+)\)|\b(\w+_rank_ids): (\([-\d, ]+\))")
_VECTOR = r"\((?:I64\(\d+\)(?:, )?)+\), "
_SLICE = re.compile(
    rf"( = (?:PrimFunc_)?(?:StridedSlice\(\S+, |StridedSliceGrad\(\S+, {_VECTOR}))"
    rf"({_VECTOR}{_VECTOR})"
)
_OFFSET = re.compile(r"( = PrimFunc_(?:Sub|Equal)\(.*?Tensor\(shape=\[\], dtype=Int\d+, value=)\d+")
_INSERTED = re.compile(r"\{instance name: (?:grad)?\d{12,}\}")
# What redistribution inserts is tied to the communication that it follows; its name may be that of
# a user's slice that was merged with it.
_REDISTRIBUTED = ("forward_comm_node_unique_id: ", "{instance name: redistribution_op_")
_OWN_ID = re.compile(r"\bunique_id: \"(\d+)\"")
_FORWARD_ID = re.compile(r"\bforward_unique_id: \"(\d+)\"")

# What is renumbered.  The text before a number stays, so that kinds don't mix.  Each alternative
# begins with a letter as it stands, not with a group or a class: re skips to those letters.
_TOKEN = re.compile(
    r"unique_id: \"(?P<unique>\d+)|node_id: \"(?P<own>\d+)|_rely: \"(?P<relied>\d+)"
    r"|recompute_id: I64\((?P<copied>\d+)"
    r"|forward_node_name: \"[^\"]*_(?P<tied>\d+)(?=\")"
    r"|0x[0-9a-f]{6,}"
    r"|@(?P<graph>[^\s\[\](),:{}]+)(?::(?P<node>[^\s()][^()]*))?"
    r"|instance name: [^}\d]*(?:\d{1,11}[^}\d]+)*(?P<inserted>\d{12,})"
    r"|-(?:op(?P<count>\d+)|(?<=\d-)(?P<hash>\d{6,20})(?!\d))"
)
_IDS = frozenset(("unique", "own", "relied", "tied"))
"""Tokens whose numbers are ids of nodes: one node has one id, whichever key prints it."""
_NUMBER = re.compile(r"\d+")


@dataclass(frozen=True, slots=True)
class _Line:
    """A line without what depends on the rank, and the names in it that are renumbered.

    ``own`` and ``forward`` are the ids of a slice (to tell gradients of redistribution from the
    user's), ``fallback`` the digest that holds where it turns out to be the user's, ``peers``
    absolute ranks.
    """

    digest: bytes
    names: tuple[str, ...]
    peers: tuple[int, ...] = ()
    own: str = ""
    forward: str = ""
    fallback: bytes = b""


def _digest(text: str) -> bytes:
    return hashlib.blake2b(text.encode("utf-8", "surrogateescape"), digest_size=16).digest()


def _analysed(line: str) -> _Line | None:
    if _NEVER.match(line):
        return None
    if line.startswith("subgraph instance: "):
        line = line.partition(" : 0x")[0]
    names: list[str] = []

    def debug_name(match: re.Match[str]) -> str:
        names.append(f"node {match[2]}")
        return f"{match[1]}(#){match[3]}"

    def token(match: re.Match[str]) -> str:
        kind, text = match.lastgroup, match[0]
        if kind is None:
            names.append(text)
            return "#"
        if kind in ("graph", "node"):
            names.append(f"@{match['graph']}")
            if kind == "node":
                names.append(f"node {match['node']}")
            return "@" + _NUMBER.sub("#", match["graph"]) + (":#" if kind == "node" else "")
        number = match[kind]
        label = text[: -len(number)]
        names.append(f"{'id' if kind in _IDS else label} {number}")
        return f"{label}#"

    # Most lines lack most of these: looking for a word first is many times quicker.
    text = _DEBUG_NAME.sub(debug_name, line) if " = " in line else line
    if "group_rank" in text or "rank_list" in text:
        text = _RANK_LIST.sub(_distances, text)
    if "Tensor(shape=[]" in text and _INSERTED.search(text):
        text = _OFFSET.sub(r"\1#", text)
    text, peers = _without_peers(text)
    if line.startswith(("subgraph instance:", "# IR entry:", "#IR entry")):
        names.append("@" + re.split(r"[:@]\s*", line, maxsplit=1)[1].strip("@ "))
        return _Line(_digest(_NUMBER.sub("#", text)), tuple(names))
    widths = _SLICE.sub(_width, text) if "StridedSlice" in text else text
    if widths == text:
        return _Line(_digest(_TOKEN.sub(token, text)), tuple(names), peers)
    fallback = _digest(_TOKEN.sub(token, text))
    names_once = tuple(names)
    widths = _TOKEN.sub(token, widths)
    own, forward = _OWN_ID.search(line), _FORWARD_ID.search(line)
    if any(mark in line for mark in _REDISTRIBUTED):
        return _Line(_digest(widths), names_once, peers, own=own[1] if own else "")
    partner = forward[1] if forward else ""
    return _Line(_digest(widths), names_once, peers, forward=partner, fallback=fallback)


def _distances(match: re.Match[str]) -> str:
    ranks = [bounded_int(rank) for rank in _NUMBER.findall(match[2])]
    return f"{match[1]}: {len(ranks)} {[b - a for a, b in pairwise(ranks)]}"


def _width(match: re.Match[str]) -> str:
    begin_text, _, end_text = match[2].partition("), (")
    begin, end = (
        [bounded_int(n) for n in re.findall(r"I64\((\d+)\)", t)] for t in (begin_text, end_text)
    )
    if len(begin) != len(end):
        return match[0]
    return f"{match[1]}<{[b - a for a, b in zip(begin, end, strict=True)]}>, "


def _without_peers(text: str) -> tuple[str, tuple[int, ...]]:
    """Take peers out of the primitive's attributes; elsewhere such keys hold stages."""
    start = text.find("primitive_attrs: {")
    if start < 0 or "_rank" not in text:
        return text, ()
    end = text.find("} cnode_", start)
    end = len(text) if end < 0 else end
    peers: list[int] = []

    def peer(match: re.Match[str]) -> str:
        numbers = [bounded_int(number) for number in re.findall(r"-?\d+", match[2] or match[4])]
        peers.extend(numbers)
        return f"{match[1] or match[3]}: {len(numbers)}"

    return text[:start] + _PEER.sub(peer, text[start:end]) + text[end:], tuple(peers)


@dataclass(slots=True)
class Fingerprints:
    """Makes fingerprints; each distinct line is analysed once, so equal ranks cost little."""

    lines: dict[str, _Line | None] = field(default_factory=dict[str, "_Line | None"])
    most_lines: int = 500_000

    def of(self, text: str, rank: int) -> str:
        """The fingerprint of a dump that was compiled for ``rank``."""
        keep = keeper()
        if keep is None:
            return self._made(text, rank)
        return keep.fingerprint(text, rank, lambda: self._made(text, rank))

    def _made(self, text: str, rank: int) -> str:
        if len(self.lines) > self.most_lines:
            self.lines.clear()
        lines = self.lines
        digests: list[bytes] = []
        numbers: dict[str, int] = {}
        stream = array("q")
        redistributed: set[str] = set()
        for text_line in text.split("\n"):
            try:
                line = lines[text_line]
            except KeyError:
                line = lines[text_line] = _analysed(text_line)
            if line is None:
                continue
            digest = line.digest
            if line.own:
                redistributed.add(line.own)
            elif line.fallback and line.forward not in redistributed:
                digest = line.fallback
            digests.append(digest)
            for name in line.names:
                stream.append(numbers.setdefault(name, len(numbers)))
            for peer in line.peers:
                # -1 in the lists of a neighbour exchange means that there is no neighbour.
                stream.append(peer - rank if peer >= 0 else -(1 << 40))
        hasher = hashlib.blake2b(b"".join(digests), digest_size=16)
        hasher.update(stream.tobytes())
        return hasher.hexdigest()
