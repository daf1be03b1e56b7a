"""What ``irtool comm groups --group NAME`` shows."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from irtool.cluster.groups import GroupReport, NamedGroup
from irtool.render.comm_groups import SCHEMA, GroupsView, row_object, rows_table
from irtool.render.comm_pieces import disagreement_object, disagreements_table, pieces
from irtool.render.tables import Document, Facts, Heading, Note
from irtool.render.text import ranks_text


def named_document(view: GroupsView, found: NamedGroup) -> Document:
    """What a group's name stands for."""
    ranks = "unknown ranks" if found.ranks is None else f"ranks {ranks_text(found.ranks)}"
    document = Document([Heading(f"{found.name}: {ranks}")])
    known = {"dump": "the dumps list them", "name": "the name's hash, searched"}
    facts = [
        (
            "known from",
            known.get(found.found_by, "no dump lists it, and no regular group hashes so"),
        ),
        ("axes", ", ".join(found.axes) or "unknown: no operator of these dumps uses it"),
    ]
    if found.level:
        facts.append(("link", found.level))
    facts.append(("used by", f"ranks {ranks_text(found.members)}" if found.members else "no dump"))
    document.add(Facts(facts))
    if found.ranks is None:
        document.add(
            Note("--devices N tells how far to search; groups of the user's own have no hash")
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
