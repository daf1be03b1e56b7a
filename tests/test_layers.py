"""Imports run one way only: api, cli, editor, report, diagnosis, linting, ... down to ir."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

PACKAGE = Path(__file__).resolve().parents[1] / "irtool"

LAYERS = [
    {"api"},
    {"cli"},
    {"editor"},
    {"report"},
    {"diagnosis"},
    {"linting"},
    {"planning"},
    {"cluster", "compare"},
    {"sharding"},
    {"operators"},
    {"artefacts"},
    {"syntax"},
    {"ir"},
]
"""From the top; a module imports from its own package and from those below its layer."""

PLANNING = [
    "checkpoints", "recovery", "scaling", "stages", "files", "plans", "limits", "propagation",
    "recursive", "search", "cost",
]  # fmt: skip
"""The packages of ``planning``, likewise from the top."""

OUTSIDE = {"__init__", "__main__"}
"""The doors of the package: they may import from everywhere."""

LEVEL = {name: level for level, names in enumerate(LAYERS) for name in names}


def modules() -> list[Path]:
    return sorted(PACKAGE.rglob("*.py"))


def layer_of(path: Path) -> str:
    return path.relative_to(PACKAGE).parts[0].removesuffix(".py")


def imports(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """Line and name of every import, except of those that only the type checker sees."""
    for child in ast.iter_child_nodes(tree):
        if isinstance(child, ast.If) and "TYPE_CHECKING" in ast.unparse(child.test):
            yield from imports(ast.Module(body=child.orelse, type_ignores=[]))
            continue
        if isinstance(child, ast.Import):
            yield from ((child.lineno, alias.name) for alias in child.names)
        elif isinstance(child, ast.ImportFrom):
            yield child.lineno, child.module or ""
            yield from ((child.lineno, f"{child.module}.{alias.name}") for alias in child.names)
        yield from imports(child)


def offences(source: str, layer: str) -> list[str]:
    """What a module of this layer must not import."""
    found: list[str] = []
    for line, name in imports(ast.parse(source)):
        parts = name.split(".")
        if parts[0] != "irtool" or len(parts) < 2 or parts[1] not in LEVEL:
            continue
        if parts[1] != layer and LEVEL[parts[1]] <= LEVEL[layer]:
            found.append(f"line {line}: {layer} imports {name}")
    return found


def test_every_module_stands_in_a_layer() -> None:
    unknown = {layer_of(path) for path in modules()} - set(LEVEL) - OUTSIDE
    assert unknown == set()


def test_imports_run_one_way_only() -> None:
    found = [
        f"{path.relative_to(PACKAGE.parent)}: {offence}"
        for path in modules()
        if layer_of(path) not in OUTSIDE
        for offence in offences(path.read_text(encoding="utf-8"), layer_of(path))
    ]
    assert found == []


def test_imports_of_planning_run_one_way_only() -> None:
    found: list[str] = []
    for path in (PACKAGE / "planning").rglob("*.py"):
        own = path.relative_to(PACKAGE / "planning").parts[0]
        if own == "__init__.py":
            continue
        above = set(PLANNING[: PLANNING.index(own)])
        for line, name in imports(ast.parse(path.read_text(encoding="utf-8"))):
            parts = name.split(".")
            if parts[:2] == ["irtool", "planning"] and len(parts) > 2 and parts[2] in above:
                found.append(f"{path.name}:{line}: {own} imports {name}")
    assert found == []


def test_the_model_imports_nothing_of_ours() -> None:
    for path in (PACKAGE / "ir").glob("*.py"):
        names = {name for _, name in imports(ast.parse(path.read_text(encoding="utf-8")))}
        ours = {name for name in names if name.split(".")[0] == "irtool"}
        assert {name for name in ours if not name.startswith("irtool.ir")} == set(), path


def every_import(tree: ast.AST) -> Iterator[str]:
    """Names of all imports, those for types and those inside functions included."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield node.module
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def circles(sources: Mapping[str, str]) -> list[list[str]]:
    """Modules that import each other, directly or through others: by name their source."""
    direct = {
        name: {other for other in every_import(ast.parse(source)) if other in sources} - {name}
        for name, source in sources.items()
    }
    reached: dict[str, set[str]] = {}
    for name in direct:
        found: set[str] = set()
        pending = [name]
        while pending:
            fresh = direct[pending.pop()] - found
            found |= fresh
            pending += fresh
        reached[name] = found
    joined = {
        tuple(sorted(other for other in reached[name] if name in reached[other]))
        for name in reached
        if name in reached[name]
    }
    return sorted(map(list, joined))


def module_name(path: Path) -> str:
    parts = path.relative_to(PACKAGE.parent).with_suffix("").parts
    return ".".join(parts).removesuffix(".__init__")


def test_no_modules_import_each_other_not_even_for_types() -> None:
    assert circles({module_name(p): p.read_text(encoding="utf-8") for p in modules()}) == []


@pytest.mark.parametrize(
    "back",
    [
        "from p.a import A",
        "import p.a",
        "from p import a",
        "if TYPE_CHECKING:\n    from p.a import A",
        "def f():\n    from p.a import A",
    ],
)
def test_a_circle_is_seen_however_it_is_closed(back: str) -> None:
    sources = {
        "p": "",
        "p.a": "import p.b",
        "p.b": "from p.c import C",
        "p.c": back,
        "p.d": "import p.a",
    }
    assert circles(sources) == [["p.a", "p.b", "p.c"]]


def test_no_part_of_a_package_takes_the_name_of_an_import() -> None:
    # When the part is imported, the package's name becomes the part.
    for path in modules():
        if path.name != "__init__.py":
            continue
        parts = {part.stem for part in path.parent.iterdir()}
        imported = {
            name.asname or name.name
            for statement in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
            if isinstance(statement, ast.ImportFrom) and statement.module != module_name(path)
            for name in statement.names
        }
        assert not parts & imported, path


def test_no_import_is_relative() -> None:
    for path in modules():
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            assert not (isinstance(node, ast.ImportFrom) and node.level), f"{path}:{node.lineno}"


@pytest.mark.parametrize(
    ("layer", "source"),
    [
        ("ir", "import irtool.syntax.load"),
        ("ir", "from irtool.syntax import load"),
        ("ir", "from irtool import syntax"),
        ("syntax", "def f():\n    from irtool.operators.layout import Layout"),
        ("cluster", "import irtool.compare"),
        ("linting", "from irtool.diagnosis import hang"),
        ("editor", "from irtool.cli.configuration import read_configuration"),
        ("sharding", "if True:\n    import irtool.cli.main"),
        ("sharding", "if TYPE_CHECKING:\n    pass\nelse:\n    import irtool.cli.main"),
    ],
)
def test_the_check_sees_an_import_upwards(layer: str, source: str) -> None:
    assert len(offences(source, layer)) >= 1


@pytest.mark.parametrize(
    ("layer", "source"),
    [
        ("cli", "import irtool.linting, irtool.report, irtool.ir.dump"),
        ("syntax", "from irtool.ir.dump import Dump"),
        ("syntax", "from irtool.syntax.part import Part"),
        ("ir", "if TYPE_CHECKING:\n    from irtool.syntax.load import load"),
        ("ir", "import lark"),
    ],
)
def test_the_check_allows_an_import_downwards(layer: str, source: str) -> None:
    assert offences(source, layer) == []
