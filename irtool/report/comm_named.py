"""What ``irtool comm groups --group NAME`` shows."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from irtool.cluster.groups import GroupReport, NamedGroup
from irtool.ir.units import ranks_text
from irtool.report.comm_groups import SCHEMA, GroupsView, row_object, rows_table
from irtool.report.comm_pieces import disagreement_object, disagreements_table, pieces
from irtool.report.model import Document, Facts, Heading, Note

_KNOWN_FROM = {
    "dump": "the dumps list them",
    "world": "it is the group of all devices",
    "plain": "the name is its ranks",
    "name": "the name's hash, searched",
    "nothing": "no dump lists it, and no regular group hashes so",
}


def named_document(view: GroupsView, found: NamedGroup) -> Document:
    """What a group's name stands for."""
    ranks = "unknown ranks" if found.ranks is None else f"ranks {ranks_text(found.ranks)}"
    document = Document([Heading(f"{found.name}: {ranks}")])
    axes = ", ".join(found.axes)
    if not axes:
        axes = "unknown: no operator of these dumps uses it" if view.report.ranks else ""
    facts = [("known from", _KNOWN_FROM[found.found_by])]
    if axes:
        facts.append(("axes", axes))
    if found.level:
        facts.append(("link", found.level))
    if view.report.ranks:
        users = f"ranks {ranks_text(found.members)}" if found.members else "no dump"
        facts.append(("used by", users))
    else:
        facts.append(("used by", "no dump was given: a run folder would tell operators and lines"))
    document.add(Facts(facts))
    if found.ranks is None:
        document.add(
            Note("--devices N tells how many there are; groups of the user's own have no hash")
        )
    if found.rows:
        rows = GroupsView(view.path, _only(view, found), lambda node: True, True, view.limit)
        document.add(rows_table(rows))
    if found.disagreements:
        document.add(disagreements_table(found.disagreements, view.limit))
    return document


def _only(view: GroupsView, found: NamedGroup) -> GroupReport:
    return replace(view.report, rows=found.rows)


def named_pieces(view: GroupsView, found: NamedGroup) -> Iterator[str]:
    """``irtool.comm.groups/1`` for one group."""
    head = {
        "schema": SCHEMA,
        "path": view.path,
        "group": {
            "name": found.name,
            "ranks": None if found.ranks is None else list(found.ranks),
            "known_from": found.found_by,
            "axes": list(found.axes),
            "level": found.level,
            "members": list(found.members),
        },
    }
    lists = {
        "collectives": [row_object(row) for row in found.rows],
        "disagreements": [disagreement_object(item) for item in found.disagreements],
    }
    return pieces(head, lists)
