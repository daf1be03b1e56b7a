"""Which part of a dump ``irtool viz`` draws: ``--around``, ``--path``, ``--where``."""

from __future__ import annotations

from collections.abc import Collection
from difflib import get_close_matches

from irtool.cli.report import Failure
from irtool.cli.where import read_query
from irtool.ir.dataclass import dataclass
from irtool.report.picture.choose import around, between, find_leaves, where
from irtool.report.picture.leaves import Leaf, Material

_MOST_CENTRES = 50


@dataclass(frozen=True, slots=True)
class Choice:
    """What the command line chooses; at most one of the three."""

    around: str | None
    radius: int
    path: tuple[str, str] | None
    where: str | None


def check_choice(choice: Choice) -> None:
    """Find mistakes before anything is read.

    Args:
        choice: what the command line says.

    Raises:
        Failure: two are given, a name is empty, or a query can't be read.
    """
    given = [
        option
        for option, value in (
            ("--around", choice.around),
            ("--path", choice.path),
            ("--where", choice.where),
        )
        if value is not None
    ]
    if len(given) > 1:
        raise Failure(f"{' and '.join(given)} cannot be combined", hint="give one of them")
    for option, name in (
        ("--around", choice.around),
        *(("--path", end) for end in choice.path or ()),
    ):
        if name is not None and not name.strip():
            raise Failure(f"{option} names no node", hint="%12, @graph:%12, or a name")
    if choice.where is not None:
        read_query("--where", choice.where)


def chosen(everything: Material, choice: Choice) -> tuple[Material, Collection[Leaf]]:
    """The part to draw, and the statements in it that were asked for.

    Args:
        everything: that could be drawn.
        choice: what the command line says; nothing: everything is drawn.

    Raises:
        Failure: no such node, or no way between two.
    """
    if choice.around is not None:
        centres = _named(everything, choice.around, "--around")
        if len(centres) > _MOST_CENTRES:
            message = f"--around {choice.around} means {len(centres)} nodes"
            raise Failure(message, hint="name one by its id: --around %12; or use --where")
        return around(everything, centres, choice.radius), centres
    if choice.path is not None:
        starts, ends = (_named(everything, name, "--path") for name in choice.path)
        part = between(everything, starts, ends)
        if not part.leaves:
            raise Failure(
                f"no value gets from {choice.path[0]} to {choice.path[1]}",
                hint="the other way round? What only orders is no way, unless with --all",
            )
        return part, [leaf for leaf in (*starts, *ends) if leaf in set(part.leaves)]
    if choice.where is not None:
        wanted = read_query("--where", choice.where)
        leaves = [leaf for leaf in everything.leaves if leaf.node is not None and wanted(leaf.node)]
        if not leaves:
            raise Failure(
                f"no node that is drawn meets {choice.where}",
                hint="loads, monads and tuples are drawn with --all only",
            )
        return where(everything, leaves), ()
    return everything, ()


def _named(everything: Material, name: str, option: str) -> list[Leaf]:
    leaves = find_leaves(everything, name)
    if leaves:
        return leaves
    names = {leaf.name for leaf in everything.leaves}
    close = get_close_matches(name, sorted(names), n=3)
    hint = f"did you mean {' or '.join(close)}?" if close else "ids are %12; --all draws loads, too"
    raise Failure(f"{option}: there is no node {name} among those that are drawn", hint=hint)
