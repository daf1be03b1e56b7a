"""What functions say of themselves: who uses one from another module need not read it.

A function that another module imports tells each of its arguments.  A command's docstring is its
``--help`` and tells its options there.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

PACKAGE = Path(__file__).resolve().parents[1] / "irtool"
Function = ast.FunctionDef | ast.AsyncFunctionDef


@cache
def trees() -> dict[str, ast.Module]:
    """The modules of the package, by name."""
    paths = sorted(PACKAGE.rglob("*.py"))
    names = [".".join(path.relative_to(PACKAGE.parent).with_suffix("").parts) for path in paths]
    texts = [path.read_text(encoding="utf-8") for path in paths]
    return {
        name.removesuffix(".__init__"): ast.parse(text)
        for name, text in zip(names, texts, strict=True)
    }


@cache
def imported() -> frozenset[tuple[str, str]]:
    """Module and name of everything that a module imports from another one, types included."""
    return frozenset(
        (node.module, alias.name)
        for tree in trees().values()
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and node.module
        for alias in node.names
    )


def functions() -> Iterator[tuple[str, Function]]:
    """Module and function of those that another module imports; of overloads the last one."""
    for module, tree in trees().items():
        last = {node.name: node for node in tree.body if isinstance(node, Function)}
        for name, node in last.items():
            is_help = module.startswith("irtool.cli.") and name == "command"
            if (module, name) in imported() and not is_help:
                yield module, node


def untold(function: Function) -> list[str]:
    """The arguments that a function's docstring does not tell."""
    listed = function.args
    names = [item.arg for item in (*listed.posonlyargs, *listed.args, *listed.kwonlyargs)]
    names += [item.arg for item in (listed.vararg, listed.kwarg) if item is not None]
    _, _, told = (ast.get_docstring(function) or "").partition("Args:\n")
    return [
        name for name in names if not re.search(rf"^ {{4}}\*{{0,2}}{name}: ", told, re.MULTILINE)
    ]


def test_functions_that_other_modules_import_tell_their_arguments() -> None:
    silent = {f"{module}.{node.name}": untold(node) for module, node in functions()}
    assert {name: names for name, names in silent.items() if names} == {}


def test_most_functions_are_looked_at() -> None:
    """The test above would be content if it found none."""
    assert len(list(functions())) > 1500


@pytest.mark.parametrize(
    ("docstring", "names"),
    [
        ('"""Add.\n\n    Args:\n        a: one.\n        b: the other.\n    """', []),
        ('"""Add.\n\n    Args:\n        a: one.\n    """', ["b"]),
        ('"""Add a to b: both."""', ["a", "b"]),
    ],
)
def test_an_argument_is_told_by_its_name(docstring: str, names: list[str]) -> None:
    (node,) = ast.parse(f"def add(a, b):\n    {docstring}\n").body
    assert isinstance(node, ast.FunctionDef)
    assert untold(node) == names
