"""The register of functions for operators whose sharding the notation can't say.

A function is registered under a name that a rule mentions (``function NAME``: it says everything;
``via NAME``: it looks at what the notation says, and checks or changes it).  The functions stand in
``functions/``, one module a family.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from importlib import import_module
from pkgutil import iter_modules

from irtool.operators.case import Case
from irtool.operators.judgement import Sharding

_FAMILIES = "irtool.operators.functions"

Function = Callable[[Case, Callable[[], Sharding]], Sharding]
"""Gets the case and a way to evaluate the rule's notation (it fails if there is none)."""

FUNCTIONS: dict[str, Function] = {}
SELF_CHECKED: set[str] = set()
"""Functions whose strategies don't have the form of one tuple a tensor input: they check it."""
OUT_STRATEGY: set[str] = set()
"""Functions that deal with ``out_strategy``; elsewhere it is refused."""

OUT_LAYOUT: set[str] = set()
"""Functions that deal with ``out_layout``; elsewhere it is refused."""


AXES: dict[str, Callable[[Case], str]] = {}
"""By function the axes of a call in the notation, where they depend on attributes or ranks."""


def axes(name: str) -> Callable[[Callable[[Case], str]], Callable[[Case], str]]:
    """Register what says the axes of a call whose entry names this function.

    Args:
        name: of the function that entries mention.

    Returns:
        A decorator that leaves the function as it is.
    """

    def register(axes_function: Callable[[Case], str]) -> Callable[[Case], str]:
        AXES[name] = axes_function
        return axes_function

    return register


def irregular(
    name: str,
    *,
    self_checked: bool = False,
    out_strategy: bool = False,
    out_layout: bool = False,
) -> Callable[[Function], Function]:
    """Register a function under the name that rules use.

    Args:
        name: that entries mention, as ``function NAME`` or ``via NAME``.
        self_checked: its strategies aren't one tuple a tensor input; it checks them itself.
        out_strategy: it deals with ``out_strategy``, which is refused otherwise.
        out_layout: it deals with ``out_layout``, which is refused otherwise.

    Returns:
        A decorator that leaves the function as it is.
    """

    def register(function: Function) -> Function:
        FUNCTIONS[name] = function
        if self_checked:
            SELF_CHECKED.add(name)
        if out_strategy:
            OUT_STRATEGY.add(name)
        if out_layout:
            OUT_LAYOUT.add(name)
        return function

    return register


@lru_cache(maxsize=1)
def load_functions() -> None:
    """Import every family, so that its functions are registered."""
    package = import_module(_FAMILIES)
    for module in iter_modules(package.__path__, f"{_FAMILIES}."):
        import_module(module.name)
