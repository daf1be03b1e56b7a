"""How a call of an operator is written down, and what a case of it is.

A catalogue entry reads like a call: ``form("MatMul", "ab", "cb", transpose_b=True)``. Text is a
tensor, one letter a dimension (equal letters are equal sizes, and normally split alike); everything
else is a constant and stands as it is.

| text | means |
| --- | --- |
| ``"ab"`` | a float32 tensor of two dimensions; ``"a1"``: the second has size 1; ``""``: none |
| ``"ab:int32"`` | of another type |
| ``"~ab"``, ``"@ab"``, ``"!ab"`` | an input of the network, a parameter, a constant |
| ``["ab", "ab"]`` | a tuple of tensors |
| ``Text("sum")`` | a constant that is text |

Without a mark the first tensor and those not of a floating type are inputs, others parameters.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from dumps import output_shapes

DEVICES = 8


@dataclass(frozen=True)
class Text:
    """A constant argument that is text."""

    value: str


@dataclass(frozen=True)
class Form:
    """One way to call one operator.

    ``letters`` hold one entry a tensor operand, in the order in which MindSpore counts them
    (elements of a tuple one by one); ``arguments`` are what the call passes, tensors as
    dictionaries.
    """

    operator: str
    arguments: list[Any]
    attributes: dict[str, Any]
    letters: list[str]
    sizes: dict[str, Any]
    breadth: str = "full"
    options: dict[str, Any] = field(default_factory=dict)

    @property
    def text(self) -> str:
        shown = [_shown(argument) for argument in self.arguments]
        shown += [f"{key}={value!r}" for key, value in self.attributes.items()]
        return f"{self.operator}({', '.join(shown)})"


def form(
    operator: str,
    *arguments: Any,
    sizes: Mapping[str, Any] | None = None,
    breadth: str = "full",
    options: Mapping[str, Any] | None = None,
    **attributes: Any,
) -> Form:
    """An entry of the catalogue; ``breadth`` is ``full``, ``thin`` or ``few`` (cases)."""
    letters: list[str] = []
    sized: dict[str, Any] = dict(sizes or {})

    def tensor(text: str) -> dict[str, Any]:
        mark = text[0] if text[:1] in "~@!" and text else ""
        shape, _, dtype = text.removeprefix(mark).partition(":")
        dtype = dtype or "float32"
        for letter in shape:
            sized.setdefault(
                letter, 1 if letter == "1" else 16 * max(1 + "abcdefghij".find(letter), 1)
            )
        first = not letters
        kind = {"~": "input", "@": "parameter", "!": "constant", "": ""}[mark]
        kind = kind or (
            "input" if first or not dtype.startswith(("float", "bfloat")) else "parameter"
        )
        letters.append(shape)
        return {"shape": [sized[letter] for letter in shape], "dtype": dtype, "is": kind}

    def argument(value: Any) -> Any:
        if isinstance(value, str):
            return tensor(value)
        if isinstance(value, list):
            return {"tuple": [argument(item) for item in value]}
        if isinstance(value, Text):
            return value.value
        return list(value) if isinstance(value, tuple) else value

    passed = [argument(value) for value in arguments]
    named = {
        key: value.value
        if isinstance(value, Text)
        else list(value)
        if isinstance(value, tuple)
        else value
        for key, value in attributes.items()
    }
    return Form(operator, passed, named, letters, sized, breadth, dict(options or {}))


def _shown(argument: Any) -> str:
    if isinstance(argument, dict):
        if "tuple" in argument:
            return "(" + ", ".join(_shown(item) for item in argument["tuple"]) + ")"
        if "type" in argument:
            return str(argument["type"])
        dtype = "" if argument["dtype"] == "float32" else f":{argument['dtype']}"
        return f"{argument['is']}{argument['shape']}{dtype}".replace(" ", "")
    return repr(tuple(argument)) if isinstance(argument, list) else repr(argument)


def case(
    of: Form,
    in_strategy: Any,
    *,
    kind: str,
    out_strategy: Any = None,
    phase: str = "train",
    devices: int = DEVICES,
    **more: Any,
) -> dict[str, Any]:
    """The declarative description of one compilation: all that ``network.py`` needs."""
    made: dict[str, Any] = {
        "operator": of.operator,
        "form": of.text,
        "kind": kind,
        "arguments": of.arguments,
        "attributes": of.attributes,
        "in_strategy": in_strategy,
        "out_strategy": out_strategy,
        "phase": phase,
        "devices": devices,
    }
    said = {**of.options, **{key: value for key, value in more.items() if value is not None}}
    if said.pop("nested", False):
        made["in_strategy"] = _nested(of, in_strategy)
    said.pop("strategies", None)
    made.update(said)
    return made


def _nested(of: Form, strategy: Any) -> Any:
    """A strategy, or layouts, with an entry for a tuple that holds those of its tensors."""
    if strategy is None:
        return None
    if isinstance(strategy, dict):
        return {**strategy, "maps": _nested(of, [{"map": one} for one in strategy["maps"]])}
    left = list(strategy)
    made: list[Any] = []
    for argument in of.arguments:
        if isinstance(argument, dict) and "tuple" in argument:
            count = len(argument["tuple"])
            made.append(left[:count])
            left = left[count:]
        elif isinstance(argument, dict) and "shape" in argument:
            made += left[:1]
            left = left[1:]
    return made + left


def identity(description: Mapping[str, Any]) -> str:
    """A short name of a case that depends on nothing but its description."""
    text = json.dumps(description, sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:12]


def splits(of: Form, split: Mapping[str, int]) -> list[list[int]]:
    """The tuple strategy that splits each dimension as its letter says."""
    return [[split.get(letter, 1) for letter in operand] for operand in of.letters]


def layouts(of: Form, matrix: list[int], axes: Mapping[str, Any]) -> dict[str, Any]:
    """The layouts that map each dimension to the device axes its letter names."""
    return {
        "matrix": matrix,
        "names": list("xyzw"[: len(matrix)]),
        "maps": [[axes.get(letter, "None") for letter in operand] for operand in of.letters],
    }


def letters_of(of: Form) -> list[str]:
    """All letters but the sizes of 1, in order of appearance."""
    return list(
        dict.fromkeys(letter for operand in of.letters for letter in operand if letter != "1")
    )


def tuple_cases(of: Form) -> Iterator[dict[str, Any]]:
    """Legal and illegal tuple strategies, and none.

    Gradients take most of the time of a compilation, so that only some of the cases have them.
    """
    letters = letters_of(of)
    yield case(of, None, kind="none")
    for strategy in of.options.get("strategies", ()):
        yield case(of, strategy, kind="tuple", gradient=False)
    if not of.letters:
        return
    whole = splits(of, {})
    yield case(of, whole, kind="tuple", gradient=False)
    for index, letter in enumerate(letters):
        gradient = None if index < 2 else False
        yield case(of, splits(of, {letter: 2}), kind="tuple", gradient=gradient)
    if of.breadth == "few":
        return
    pairs = _pairs(letters)
    for index, (first, second) in enumerate(pairs[:2]):
        split = splits(of, {first: 2, second: 4})
        yield case(of, split, kind="tuple", gradient=False if index else None)
    if letters:
        yield case(of, splits(of, {letters[0]: 2 * DEVICES}), kind="tuple", gradient=False)
        yield case(of, splits(of, {letters[0]: DEVICES}), kind="tuple", gradient=False)
        yield case(of, splits(of, {letters[0]: 2}), kind="tuple", phase="predict")
    yield case(of, None, kind="none", phase="predict")
    if len(whole) > 1:
        yield case(of, whole[:-1], kind="tuple", gradient=False)
    for operand, dimension in _single(of)[: 8 if of.breadth == "full" else 2]:
        split = [list(entry) for entry in whole]
        split[operand][dimension] = 2
        yield case(of, split, kind="tuple", gradient=False)
    if of.breadth == "thin":
        return
    for first, second in pairs[2:6]:
        yield case(of, splits(of, {first: 2, second: 4}), kind="tuple", gradient=False)
    yield case(of, [*whole, [1]], kind="tuple", gradient=False)
    for letter in letters[1:]:
        yield case(of, splits(of, {letter: DEVICES}), kind="tuple", gradient=False)
    if len(letters) > 2:
        yield case(of, splits(of, dict.fromkeys(letters[:3], 2)), kind="tuple", gradient=False)
    if letters:
        yield case(of, splits(of, {letters[0]: 3}), kind="tuple", gradient=False)
    if whole[0]:
        yield case(of, [[*whole[0], 1], *whole[1:]], kind="tuple", gradient=False)


def layout_cases(of: Form) -> Iterator[dict[str, Any]]:
    """Layouts of inputs: whole, along one axis, two, an axis pair, and mismatched."""
    letters = letters_of(of)
    if not of.letters:
        return
    matrix = [2, 4]
    yield case(of, layouts(of, matrix, {}), kind="layout", gradient=False)
    for index, letter in enumerate(letters[: 2 if of.breadth == "few" else None]):
        gradient = None if index < 1 else False
        yield case(of, layouts(of, matrix, {letter: "x"}), kind="layout", gradient=gradient)
    if of.breadth == "few":
        return
    for first, second in _pairs(letters)[: 6 if of.breadth == "full" else 1]:
        axes = {first: "x", second: "y"}
        yield case(of, layouts(of, matrix, axes), kind="layout", gradient=False)
    for letter in letters[: 2 if of.breadth == "full" else 1]:
        axes = {letter: ["x", "y"]}
        yield case(of, layouts(of, matrix, axes), kind="layout", gradient=False)
    whole = layouts(of, matrix, {})
    for operand, dimension in _single(of)[: 8 if of.breadth == "full" else 2]:
        maps = [list(entry) for entry in whole["maps"]]
        maps[operand][dimension] = "x"
        yield case(of, {**whole, "maps": maps}, kind="layout", gradient=False)
    if of.breadth == "thin":
        return
    if letters:
        yield case(of, layouts(of, matrix, {letters[0]: "x"}), kind="layout", phase="predict")
        axes = {letters[-1]: ["z", "x"]}
        yield case(of, layouts(of, [2, 2, 2], axes), kind="layout", gradient=False)
        yield case(of, layouts(of, [4], {letters[0]: "x"}), kind="layout", gradient=False)
    for first, second in _pairs(letters):
        if not any(first in operand and second in operand for operand in of.letters):
            axes = {first: "x", second: "x"}
            yield case(of, layouts(of, matrix, axes), kind="layout", gradient=False)


def output_cases(of: Form, records: list[Mapping[str, Any]]) -> Iterator[dict[str, Any]]:
    """Strategies and layouts of outputs, made from the maps that earlier cases of the form got."""
    known = all(isinstance(size, int) for size in of.sizes.values())
    if of.options.get("nested") or (of.breadth == "few" and known):
        return
    done = [
        record
        for record in records
        if record["verdict"] == "accepted" and record["case"]["phase"] == "train"
    ]
    tuples = [
        record for record in done if record["case"]["kind"] == "tuple" and record.get("outputs")
    ]
    for record in _split_first(tuples)[: 3 if of.breadth == "full" else 1]:
        given = record["case"]["in_strategy"]
        natural = [_shards(record["matrix"], one) for one in record["outputs"]]
        whole = [[1] * len(one) for one in natural]
        yield case(of, given, kind="out_strategy", out_strategy=natural, gradient=False)
        if whole != natural:
            yield case(of, given, kind="out_strategy", out_strategy=whole, gradient=False)
        scattered = _scattered(record, natural)
        if scattered is not None:
            yield case(of, given, kind="out_strategy", out_strategy=scattered)
    placed = [
        record for record in done if record["case"]["kind"] == "layout" and _output_ratios(record)
    ]
    placed = [record for record in placed if record["case"]["in_strategy"]["matrix"] == [2, 4]]
    placed.sort(key=_is_plain)
    for record in placed[: 4 if of.breadth == "full" else 1]:
        given = record["case"]["in_strategy"]
        natural = [[_AXES_OF[ratio] for ratio in one] for one in _output_ratios(record)]
        whole = [["None"] * len(one) for one in natural]
        for maps in [natural, whole][: 2 if natural != whole else 1]:
            out = {**given, "maps": maps}
            yield case(of, given, kind="out_layout", out_strategy=out, gradient=False)
        spare = next((name for name in given["names"] if name not in str(natural)), None)
        if spare and natural[0] and of.breadth == "full":
            maps = [[_with_axis(natural[0][0], spare), *natural[0][1:]], *natural[1:]]
            out = {**given, "maps": maps}
            yield case(of, given, kind="out_layout", out_strategy=out, gradient=False)


def _is_plain(record: Mapping[str, Any]) -> tuple[bool, bool]:
    return not record["communications"], all(
        ratio == 1 for one in _output_ratios(record) for ratio in one
    )


_AXES_OF: dict[int, Any] = {1: "None", 2: "x", 4: "y", 8: ["x", "y"]}


def _output_ratios(record: Mapping[str, Any]) -> list[list[int]]:
    """How many ways each dimension of each output is split, from whole shapes and slices.

    Of a size that is not known nobody tells: it counts as whole.
    """
    if not record.get("shapes") or not record.get("slices"):
        return []
    pairs = zip(
        output_shapes(record["shapes"][0]), output_shapes(record["slices"][0]), strict=False
    )
    ratios = [
        [size // max(part, 1) if size > 0 else 1 for size, part in zip(whole, local, strict=False)]
        for whole, local in pairs
    ]
    if not ratios or any(not one or any(ratio not in _AXES_OF for ratio in one) for one in ratios):
        return []
    return ratios


def _pairs(letters: list[str]) -> list[tuple[str, str]]:
    return [(first, second) for i, first in enumerate(letters) for second in letters[i + 1 :]]


def _single(of: Form) -> list[tuple[int, int]]:
    """Dimensions that stand in several operands, or have size 1: split there alone."""
    if len(of.letters) < 2:
        return []
    return [
        (operand, dimension)
        for operand, letters in enumerate(of.letters)
        for dimension, letter in enumerate(letters)
        if letter == "1" or sum(letter in other for other in of.letters) > 1
    ]


def _is_split(record: Mapping[str, Any]) -> bool:
    return any(entry != -1 for one in record["outputs"] for entry in one)


def _split_first(records: list[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    reduced = [record for record in records if record.get("communications")]
    return sorted(records, key=lambda record: (record not in reduced, not _is_split(record)))


def _axis_size(matrix: list[int], entry: Any) -> int:
    axes = [entry] if isinstance(entry, int) else entry
    size = 1
    for axis in axes:
        size *= 1 if axis == -1 else matrix[len(matrix) - 1 - axis]
    return size


def _shards(matrix: list[int], tensor_map: list[Any]) -> list[int]:
    return [_axis_size(matrix, entry) for entry in tensor_map]


def _scattered(record: Mapping[str, Any], natural: list[list[int]]) -> list[list[int]] | None:
    """The first output's first dimension, split over the devices of a forward AllReduce as well."""
    for op, ranks, _count, phase, *_ in record["communications"]:
        if op == "AllReduce" and phase == "forward" and natural and natural[0]:
            return [[natural[0][0] * len(ranks), *natural[0][1:]], *natural[1:]]
    return None


def _with_axis(entry: Any, axis: str) -> Any:
    if entry == "None":
        return axis
    return [*([entry] if isinstance(entry, str) else entry), axis]
