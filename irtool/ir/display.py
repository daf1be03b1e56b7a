"""How results show themselves in a notebook: a table that the layers above fill.

The model knows nothing of html.  ``irtool`` names the module that does; it is imported when the
first result is shown, and registers a function for each type.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any

View = Callable[[Any], str]

VIEWS: dict[str, View] = {}
"""Functions that give html, by module and name of the type that they show."""

_SOURCES: list[str] = []


def add_source(module: str) -> None:
    """Name a module that fills :data:`VIEWS` when it is imported, which is when it is needed.

    Args:
        module: its name, as ``import`` takes it; naming it again changes nothing.
    """
    if module not in _SOURCES:
        _SOURCES.append(module)


def view_of(kind: type) -> View | None:
    """The function that shows values of a type, or None."""
    for module in _SOURCES:
        import_module(module)
    names = (f"{base.__module__}.{base.__qualname__}" for base in kind.__mro__)
    return next((VIEWS[name] for name in names if name in VIEWS), None)


class Shown:
    """A result that shows itself in a notebook, if someone has registered how."""

    __slots__ = ()

    def _repr_html_(self) -> str | None:
        """Html for notebooks; None, and so the plain text, where nobody knows how to show it."""
        view = view_of(type(self))
        return None if view is None else view(self)
