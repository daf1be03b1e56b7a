"""Imports run one way only: api, cli, editor, report, diagnosis, linting, ... down to ir."""

from __future__ import annotations

import ast
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
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


def module_name(path: Path) -> str:
    parts = path.relative_to(PACKAGE.parent).with_suffix("").parts
    return ".".join(parts).removesuffix(".__init__")


NAMES = frozenset(map(module_name, modules())) - {"irtool"}


def layer_of(path: Path) -> str:
    return path.relative_to(PACKAGE).parts[0].removesuffix(".py")


@dataclass(frozen=True)
class Names:
    """What a module names of others: (line, name) of each."""

    imported: tuple[tuple[int, str], ...]
    registered: tuple[tuple[int, str], ...]


@cache
def named(source: str) -> Names:
    """What a module imports, for types and inside functions too, and registers to be imported.

    A module registers another where a text of it is the other's name.
    """
    imported: list[tuple[int, str]] = []
    registered: list[tuple[int, str]] = []
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            imported += ((node.lineno, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            module = "." * node.level + (node.module or "")
            imported.append((node.lineno, module))
            imported += ((node.lineno, f"{module}.{alias.name}") for alias in node.names)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and node.value in NAMES:
            registered.append((node.lineno, node.value))
    return Names(tuple(imported), tuple(registered))


def offences(source: str, layer: str) -> list[str]:
    """What a module of this layer must not import."""
    found: list[str] = []
    for line, name in (*named(source).imported, *named(source).registered):
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
        for line, name in named(path.read_text(encoding="utf-8")).imported:
            parts = name.split(".")
            if parts[:2] == ["irtool", "planning"] and len(parts) > 2 and parts[2] in above:
                found.append(f"{path.name}:{line}: {own} imports {name}")
    assert found == []


def test_the_model_imports_nothing_of_ours() -> None:
    for path in (PACKAGE / "ir").glob("*.py"):
        names = {name for _, name in named(path.read_text(encoding="utf-8")).imported}
        ours = {name for name in names if name.split(".")[0] == "irtool"}
        assert {name for name in ours if not name.startswith("irtool.ir")} == set(), path


def direct_imports(sources: Mapping[str, str]) -> dict[str, set[str]]:
    """By module which of the others it imports, and which packages run for that.

    ``import p.b.c`` runs ``p`` and ``p.b`` before ``p.b.c``; those that the module itself lies in
    run before it anyway.
    """
    direct: dict[str, set[str]] = {name: set() for name in sources}
    for importer, source in sources.items():
        for _, name in named(source).imported:
            parts = name.split(".")
            for count in range(1, len(parts) + 1):
                package = ".".join(parts[:count])
                around = package != name and importer.startswith(f"{package}.")
                if package in sources and package != importer and not around:
                    direct[importer].add(package)
    return direct


def circles(direct: Mapping[str, set[str]]) -> list[list[str]]:
    """Names that lead to each other, directly or through others."""
    reached: dict[str, set[str]] = {}
    for name in direct:
        seen: set[str] = set()
        pending = [name]
        while pending:
            fresh = direct[pending.pop()] - seen
            seen |= fresh
            pending += fresh
        reached[name] = seen
    joined = {
        tuple(sorted(other for other in reached[name] if name in reached[other]))
        for name in reached
        if name in reached[name]
    }
    return sorted(map(list, joined))


def between_siblings(direct: Mapping[str, set[str]]) -> dict[str, set[str]]:
    """By part of a package, a module or a package, the other parts that something in it imports."""
    parts: dict[str, set[str]] = {}
    for importer, imported in direct.items():
        for name in imported:
            own, other = importer.split("."), name.split(".")
            common = 0
            while own[common : common + 1] == other[common : common + 1] != []:
                common += 1
            if common < min(len(own), len(other)):
                sibling = ".".join(other[: common + 1])
                parts.setdefault(".".join(own[: common + 1]), set()).add(sibling)
                parts.setdefault(sibling, set())
    return parts


@cache
def sources() -> dict[str, str]:
    return {module_name(path): path.read_text(encoding="utf-8") for path in modules()}


def test_no_modules_import_each_other_not_even_for_types() -> None:
    assert circles(direct_imports(sources())) == []


def test_no_parts_of_a_package_import_each_other() -> None:
    inner = {name: text for name, text in sources().items() if name != "irtool"}
    assert circles(between_siblings(direct_imports(inner))) == []


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
    assert circles(direct_imports(sources)) == [["p.a", "p.b", "p.c"]]


def test_a_circle_through_a_package_is_seen() -> None:
    sources = {
        "p": "",
        "p.a": "import p.b.c",
        "p.b": "import p.d",
        "p.b.c": "",
        "p.d": "import p.a",
    }
    assert circles(direct_imports(sources)) == [["p.a", "p.b", "p.d"]]


def test_parts_of_a_package_that_import_each_other_are_seen() -> None:
    sources = {
        "p": "",
        "p.a": "",
        "p.a.x": "import p.b.y",
        "p.b": "",
        "p.b.y": "",
        "p.b.z": "import p.a",
    }
    assert circles(direct_imports(sources)) == []
    assert circles(between_siblings(direct_imports(sources))) == [["p.a", "p.b"]]


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


BUILT_ALONE = {"syntax/grammar", "syntax/query"}
"""Families whose parts are imported without the rest: the wheel's build, and completion."""
FAMILIES_LEFT = {"planning/search/candidate", "planning/search/shared"}


def test_modules_that_share_a_prefix_are_a_package() -> None:
    families: dict[str, int] = {}
    for path in modules():
        family = (path.relative_to(PACKAGE).parent / path.stem.partition("_")[0]).as_posix()
        families[family] = families.get(family, 0) + 1
    large = {name for name, count in families.items() if count > 2}
    assert large == BUILT_ALONE | FAMILIES_LEFT


def test_no_import_is_relative() -> None:
    relative = [
        f"{name}:{line}"
        for name, source in sources().items()
        for line, imported in named(source).imported
        if imported.startswith(".")
    ]
    assert relative == []


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
        ("ir", "if TYPE_CHECKING:\n    from irtool.syntax.load import load"),
        ("ir", "add_source('irtool.report.notebook')"),
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
        ("operators", "if TYPE_CHECKING:\n    from irtool.syntax.load import load"),
        ("cli", "import_module('irtool.report.notebook')"),
        ("ir", "import lark"),
    ],
)
def test_the_check_allows_an_import_downwards(layer: str, source: str) -> None:
    assert offences(source, layer) == []
