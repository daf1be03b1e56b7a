"""``--map FILE``: names on the left, and what they are called on the right; msprobe's files too."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from irtool.cli.report import Failure
from irtool.compare.tensors.pairing.msprobe_maps import TOP, NameMaps, is_tensor, operator_of
from irtool.syntax.reading import parse_json, read_text

_OLD_TOP = "Cell"
"""What older layer files call the parent of all modules."""


def names_of(path: str | None) -> Mapping[str, str]:
    """The map of names: JSON (an object), or one ``left = right`` a line.

    Args:
        path: of the file; None: there is no map, and nothing is renamed.

    Returns:
        Names on the right by names on the left.

    Raises:
        Failure: it cannot be read.
    """
    if path is None:
        return {}
    try:
        text = read_text(path)
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        raise Failure(f"cannot read the map: {reason}", path) from None
    if text.lstrip().startswith("{"):
        return _json_names(text, path)
    names: dict[str, str] = {}
    for number, line in enumerate(text.splitlines(), 1):
        if not line.strip() or line.lstrip().startswith("#"):
            continue
        left, mark, right = line.partition("=")
        if not mark or not left.strip() or not right.strip():
            hint = "one pair a line: name on the left = name on the right"
            raise Failure("not a pair of names", f"{path}:{number}:1", text=line, hint=hint)
        names[left.strip()] = right.strip()
    return names


def maps_of(path: str | None) -> NameMaps:
    """The maps of names for two runs: what :func:`names_of` reads, and msprobe's mapping files.

    Those are YAML, of three kinds: cell, data and layer mappings.

    Args:
        path: of the file; its suffix tells YAML from the others; None: there is no map.

    Raises:
        Failure: it cannot be read.
    """
    if path is None or not path.endswith((".yaml", ".yml")):
        return NameMaps(names_of(path))
    try:
        text = read_text(path)
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        raise Failure(f"cannot read the map: {reason}", path) from None
    flat: dict[str, str] = {}
    layers: dict[str, dict[str, str]] = {}
    parent = ""
    for number, line in enumerate(text.splitlines(), 1):
        bare = line.split(" #")[0].rstrip()
        if not bare.strip() or bare.lstrip().startswith(("#", "---")):
            continue
        left, mark, right = (part.strip().strip("\"'") for part in bare.strip().partition(":"))
        is_child = bare[0].isspace()
        if not mark or not left or (is_child and not (right and parent)):
            hint = "cell and data files: name: name; layer files: Class:, and children below it"
            raise Failure("not a pair of names", f"{path}:{number}:1", text=line, hint=hint)
        if is_child:
            layers[parent][left] = right.partition("(")[0].strip()
        elif right:
            flat[left] = right
            parent = ""
        else:
            parent = TOP if left == _OLD_TOP else left
            layers.setdefault(parent, {})
    names = {operator_of(a): operator_of(b) for a, b in flat.items() if is_tensor(a)}
    return NameMaps(names, {a: b for a, b in flat.items() if not is_tensor(a)}, layers)


def _json_names(text: str, path: str) -> Mapping[str, str]:
    try:
        document: Any = parse_json(text)
    except ValueError as error:
        raise Failure(f"the map is not JSON: {error}", path) from None
    if not isinstance(document, dict) or not all(
        isinstance(value, str)
        for value in document.values()  # pyright: ignore[reportUnknownVariableType]  # JSON
    ):
        raise Failure("the map is no object of texts", path, hint='{"left name": "right name"}')
    return document  # pyright: ignore[reportUnknownVariableType]  # checked just above
