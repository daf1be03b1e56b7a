"""Values at the top of a module, changed in a process that has imported everything already.

Importing a package anew for every such mutant takes longer than the tests.  Where only functions
read a name, they can as well be given its other value.
"""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from types import CodeType

from mutants_syntax import Mutant

_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)


@dataclass(frozen=True, slots=True)
class Value:
    """What a mutant makes of a name of a module.

    Attributes:
        name: as the module calls it.
        module: dotted name.
        code: gives the other value, if evaluated in the module.
        imported: modules that import it, with their name for it; the module itself is one.
    """

    name: str
    module: str
    code: CodeType
    imported: tuple[tuple[str, str], ...]

    def put(self) -> bool:
        """Let all that read the name in this process read the other value; False if none did."""
        own = vars(sys.modules[self.module])
        before = own[self.name]
        value = eval(self.code, own)  # the project's own source
        for module, name in self.imported:
            known = vars(sys.modules[module]) if module in sys.modules else {}
            if known.get(name) is before:
                known[name] = value
        return value != before or type(value) is not type(before)


@dataclass(slots=True)
class Values:
    """Finds the mutants that are nothing but another value of a name.

    Attributes:
        root: of the project.
        folders: where what may read a name is: packages, and the tests.
    """

    root: Path
    folders: tuple[str, ...]
    _texts: dict[str, str] = field(default_factory=dict[str, str])

    def of(self, mutant: Mutant) -> Value | None:
        """The other value, or None where it was read before any function was called."""
        if mutant.function or not mutant.file.endswith(".py"):
            return None
        source = (self.root / mutant.file).read_bytes()
        name = _assigned(source, mutant.line)
        changed = _assignment(mutant.apply(source), name) if name else None
        if not name or changed is None:
            return None
        module = _module(mutant.file)
        imported = self._importing(module, name)
        if imported is None:
            return None
        code = compile(ast.Expression(changed), mutant.file, "eval", dont_inherit=True)
        return Value(name, module, code, imported)

    def _importing(self, module: str, name: str) -> tuple[tuple[str, str], ...] | None:
        """All modules that know the name; None where one reads it while it is imported."""
        found = {module: name}
        trees: dict[str, ast.Module] = {}
        before = 0
        while before < len(found):
            before = len(found)
            words = re.compile(rf"\b(?:{'|'.join(set(found.values()))})\b")
            for file, text in self.texts.items():
                if _module(file) not in trees and words.search(text):
                    trees[_module(file)] = ast.parse(text)
            for other, tree in trees.items():
                found.update((other, alias) for alias in _aliases(tree, found))
        if any(_reads_attribute(tree, set(found.values())) for tree in trees.values()):
            return None
        if any(_reads(trees[other], alias) for other, alias in found.items()):
            return None
        return tuple(found.items())

    @property
    def texts(self) -> dict[str, str]:
        """The sources of all that may read a name, by file."""
        if not self._texts:
            for folder in self.folders:
                for path in sorted((self.root / folder).rglob("*.py")):
                    file = path.relative_to(self.root).as_posix()
                    self._texts[file] = path.read_text("utf-8")
        return self._texts


def _module(file: str) -> str:
    return file.removesuffix(".py").removesuffix("/__init__").replace("/", ".")


def _assigned(source: bytes, line: int) -> str:
    """The only name that the statement at the top around a line gives a value, once."""
    for node in ast.parse(source).body:
        if node.lineno <= line <= (node.end_lineno or 0):
            targets = node.targets if isinstance(node, ast.Assign) else []
            if isinstance(node, ast.AnnAssign) and node.value is not None:
                targets = [node.target]
            if len(targets) == 1 and isinstance(targets[0], ast.Name):
                return targets[0].id
    return ""


def _assignment(source: bytes, name: str) -> ast.expr | None:
    """What a module gives a name, if it does so once, at its top."""
    stores = [
        node
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.Name) and node.id == name and not isinstance(node.ctx, ast.Load)
    ]
    if len(stores) != 1:
        return None
    for node in ast.parse(source).body:
        if isinstance(node, ast.Assign | ast.AnnAssign) and _assigned(source, node.lineno) == name:
            return node.value
    return None


def _aliases(tree: ast.Module, known: dict[str, str]) -> Iterator[str]:
    """What a module calls the name that it imports from one of those that know it."""
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module in known:
            for alias in node.names:
                if alias.name == known[node.module]:
                    yield alias.asname or alias.name


def _reads(tree: ast.Module, name: str) -> bool:
    """Whether a name is read while the module is imported: outside of what functions do."""
    return any(
        isinstance(node, ast.Name) and node.id == name and isinstance(node.ctx, ast.Load)
        for node in _at_import(tree)
    )


def _reads_attribute(tree: ast.Module, names: set[str]) -> bool:
    return any(isinstance(node, ast.Attribute) and node.attr in names for node in _at_import(tree))


def _at_import(node: ast.AST) -> Iterator[ast.AST]:
    """What is evaluated when a module is imported."""
    yield node
    later = node.body if isinstance(node, _FUNCTIONS) else []
    bodies = later if isinstance(later, list) else [later]  # that of a lambda is an expression
    for inner in ast.iter_child_nodes(node):
        if inner not in bodies:
            yield from _at_import(inner)
