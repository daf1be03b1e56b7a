"""msprobe's dump.json, of MindSpore and of PyTorch, at levels L0, L1 and mix.

An entry is an API call (``Functional.linear.0.forward``), a module
(``Module.blocks.0.up.Linear.forward.0``) or gradients of a module's parameters
(``….parameters_grad.0``).  Of a backward entry only gradients are stated: what it computes with
besides them are the tensors of its forward entry.
"""

from __future__ import annotations

import json
import math
import os
import re
from collections.abc import Mapping
from functools import lru_cache
from typing import Any, cast

from irtool.compare.tensors.dtypes import dtype_name
from irtool.compare.tensors.model import NAN, Columns, Level, NoTensors, Op, Phase, TensorRun
from irtool.compare.tensors.semantics import parameter_places
from irtool.ir.run import MsprobeDump

_API = re.compile(r"(?P<kind>[^.]+)\.(?P<api>.+)\.(?P<call>\d+)\.(?P<way>forward|backward)")
_MODULE = re.compile(
    r"(?P<kind>Module|Cell)\.(?P<path>.+)\.(?P<type>[^.]+)"
    r"\.(?P<way>forward|backward|parameters_grad)(?:\.(?P<call>\d+))?"
)
_FRAME = re.compile(r"File (?P<file>.+?),? line (?P<line>\d+),? in ")
_LIBRARY = re.compile(r"site-packages/|/msprobe/|dist-packages/|<string>|<frozen")
_NUMBERS = {"nan": math.nan, "inf": math.inf, "-inf": -math.inf, "infinity": math.inf}


def load_json(path: str) -> Any:
    """A JSON file, NaN and Infinity allowed; the quick reader is taken where it is installed."""
    with open(path, "rb") as stream:
        data = stream.read()
    try:
        import orjson
    except ImportError:
        return json.loads(data)
    try:
        return orjson.loads(data)
    except ValueError:
        return json.loads(data)  # NaN and Infinity are not JSON, and dumps have them


def read_msprobe(dump: MsprobeDump) -> TensorRun:
    """One ``dump.json`` with its neighbours.

    Raises:
        NoTensors: it cannot be read, or holds nothing.
    """
    path = next(
        (
            found
            for name in ("dump.json", "debug.json")
            if os.path.exists(found := os.path.join(dump.path, name))
        ),
        os.path.join(dump.path, "dump.json"),
    )
    try:
        document = load_json(path)
    except OSError as error:
        raise NoTensors((error.strerror or str(error)).lower()) from None
    except ValueError as error:
        detail = str(error).partition(":")[0].lower()
        raise NoTensors(f"dump.json is cut off or damaged ({detail})") from None
    data: Any = document.get("data") if isinstance(document, dict) else None
    if not isinstance(data, dict) or not data:
        raise NoTensors("dump.json holds no operators: was the run stopped before it was written?")
    header = cast("dict[str, Any]", document)
    folder = os.path.join(dump.path, "dump_tensor_data")
    has_files = header.get("task") == "tensor" and os.path.isdir(folder)
    reader = _Reader(f"{folder}{os.sep}" if has_files else "")
    for name, entry in cast("dict[str, Any]", data).items():
        if isinstance(entry, dict):
            reader.entry(name, cast("dict[str, Any]", entry))
        else:
            reader.complaints.append(f"{name}: not an operator")
    _mark_optimizer(reader.ops)
    _add_sources(reader.ops, dump.path)
    _add_owners(reader.ops, dump.path)
    return TensorRun(
        path,
        "msprobe",
        reader.level(),
        str(header.get("framework") or _framework(reader.ops)),
        reader.columns,
        reader.ops,
        dump.rank,
        dump.step,
        complaints=reader.complaints,
    )


class _Reader:
    """Entries to operators; leaves to columns."""

    def __init__(self, folder: str) -> None:
        self.columns = Columns()
        self.ops: list[Op] = []
        self.complaints: list[str] = []
        self._folder = folder

    def level(self) -> Level:
        if any(self.columns.files):
            return "tensors"
        if all(map(math.isnan, self.columns.most)) and any(self.columns.hashes):
            return "md5"
        return "statistics"

    def entry(self, name: str, entry: Mapping[str, Any]) -> None:
        _, type_, phase, owner, call, is_module = _parsed(name)
        attributes: dict[str, object] = {}
        inputs: list[int] = []
        outputs: list[int] = []
        parameters: list[int] = []
        if ".parameters_grad" in name:
            for key, values in entry.items():
                self._walk(values, f"{key}.grad", outputs, attributes)
        elif phase == "backward":
            self._walk(entry.get("input"), "input", inputs, attributes)
            self._walk(entry.get("output"), "output", outputs, attributes)
        else:
            self._walk(entry.get("input_args", entry.get("input")), "input", inputs, attributes)
            named = entry.get("input_kwargs")
            if named:
                self._walk(named, "input", inputs, attributes)
            for key, value in (entry.get("parameters") or {}).items():
                self._walk(value, key, parameters, attributes)
            self._walk(entry.get("output"), "output", outputs, attributes)
            if not is_module:
                labels = self.columns.labels
                wanted = {f"input.{place}" for place in parameter_places(type_)}
                parameters += [at for at in inputs if labels[at] in wanted]
        extra = [at for at in parameters if at not in inputs] if is_module else []
        self.ops.append(
            Op(
                len(self.ops),
                name,
                type_,
                phase,
                [*inputs, *extra] if extra else inputs,
                outputs,
                frozenset(parameters),
                attributes,
                owner,
                call,
                is_module=is_module,
            )
        )

    def _walk(
        self, value: Any, label: str, places: list[int], attributes: dict[str, object]
    ) -> None:
        """A leaf, or lists and maps of leaves, however deep."""
        if value.__class__ is list and not _is_nested(value):  # nearly always
            for n, item in enumerate(value):
                if item is None:
                    continue
                if "shape" in item:
                    places.append(self._tensor(item, _label(label, n)))
                elif "type" in item:
                    attributes[_label(label, n)] = item.get("value")
            return
        pending: list[tuple[Any, str]] = [(value, label)]
        while pending:
            value, label = pending.pop()
            if isinstance(value, list):
                items = cast("list[Any]", value)
                pending += [(item, f"{label}.{n}") for n, item in enumerate(items)][::-1]
            elif isinstance(value, dict):
                leaf = cast("dict[str, Any]", value)
                if "shape" in leaf:
                    places.append(self._tensor(leaf, label))
                elif "type" in leaf:
                    attributes[label] = leaf.get("value")
                else:
                    pending += [(item, f"{label}.{key}") for key, item in leaf.items()][::-1]

    def _tensor(self, leaf: dict[str, Any], label: str) -> int:
        file = leaf.get("data_name")
        most, least = leaf.get("Max"), leaf.get("Min")
        mean, norm = leaf.get("Mean"), leaf.get("Norm")
        columns = self.columns
        columns.labels.append(label)
        columns.dtypes.append(dtype_name(leaf.get("dtype") or ""))
        columns.shapes.append(tuple(leaf.get("shape") or ()))
        columns.most.append(most if most.__class__ is float else _number(most))
        columns.least.append(least if least.__class__ is float else _number(least))
        columns.mean.append(mean if mean.__class__ is float else _number(mean))
        columns.norm.append(norm if norm.__class__ is float else _number(norm))
        columns.broken.append(1 if _is_nan(most) or _is_nan(least) else -1)
        columns.hashes.append(leaf.get("md5") or leaf.get("xor") or "")
        folder = self._folder
        columns.files.append(folder + file if folder and file and file != "-1" else "")
        return len(columns.labels) - 1


def _is_nested(items: Any) -> bool:
    """Whether a list holds more than leaves."""
    for item in items:
        if item is not None and not (item.__class__ is dict and "type" in item):
            return True
    return False


@lru_cache(maxsize=4096)
def _label(label: str, place: int) -> str:
    return f"{label}.{place}"


def _is_nan(value: Any) -> bool:
    """Whether a figure is stated and is NaN (null says that it is not stated)."""
    return value != value or (value.__class__ is str and value.lower() == "nan")


def _number(value: Any) -> float:
    if isinstance(value, int | float):
        return float(value)
    if isinstance(value, str):
        try:
            return _NUMBERS.get(value.lower(), NAN) if value.isalpha() else float(value)
        except ValueError:
            return NAN
    return NAN


@lru_cache(maxsize=65536)
def _parsed(name: str) -> tuple[str, str, Phase, str, str, bool]:
    """Kind, operator, phase, owner, name of the forward call, whether it is a module."""
    if name.startswith(("Module.", "Cell.")):
        found = _MODULE.fullmatch(name)
        if found is not None:
            phase: Phase = "forward" if found["way"] == "forward" else "backward"
            call = f"{found['kind']}.{found['path']}.{found['type']}.forward.{found['call'] or 0}"
            return found["kind"], found["type"], phase, found["path"], call, True
    found = _API.fullmatch(name)
    if found is None:
        return "", name.rpartition(".")[2] or name, "forward", "", name, False
    phase = "forward" if found["way"] == "forward" else "backward"
    api = found["api"].rpartition(".")[2] if found["kind"] != "Primitive" else found["api"]
    if found["kind"] == "Primitive":
        api = api.partition(".")[2] or api
    call = f"{found['kind']}.{found['api']}.{found['call']}.forward"
    return found["kind"], api, phase, "", call, False


def _framework(ops: list[Op]) -> str:
    return "mindspore" if any(op.name.startswith("Cell.") for op in ops) else "pytorch"


def _mark_optimizer(ops: list[Op]) -> None:
    """What runs after the last gradient is the optimizer."""
    last = max((op.index for op in ops if op.phase == "backward"), default=len(ops))
    for op in ops[last + 1 :]:
        op.phase = "optimizer"


def _add_sources(ops: list[Op], folder: str) -> None:
    """The user's line of each forward call; older files state frames by name, newer by number."""
    try:
        stacks = load_json(os.path.join(folder, "stack.json"))
    except (OSError, ValueError):
        return
    if not isinstance(stacks, dict):
        return
    lines: dict[str, str] = {}
    for key, value in cast("dict[str, Any]", stacks).items():
        if not isinstance(value, list):
            continue
        parts = cast("list[Any]", value)
        if len(parts) == 2 and all(isinstance(part, list) for part in parts):
            line = _innermost(parts[1])
            for name in parts[0]:
                lines[str(name)] = line
        else:
            lines[key] = _innermost(parts)
    for op in ops:
        op.source = lines.get(op.name) or lines.get(op.call) or ""


def _innermost(frames: list[Any]) -> str:
    """``model.py:12``: the first frame that is not a library's."""
    for frame in frames:
        text = str(frame)
        if _LIBRARY.search(text):
            continue
        found = _FRAME.search(text)
        if found is not None:
            return f"{found['file']}:{found['line']}"
    return ""


def _add_owners(ops: list[Op], folder: str) -> None:
    """The module that each call ran in, by construct.json."""
    try:
        parents = load_json(os.path.join(folder, "construct.json"))
    except (OSError, ValueError):
        return
    if not isinstance(parents, dict) or not parents:
        return
    known = cast("dict[str, Any]", parents)
    for op in ops:
        if not op.owner:
            parent = known.get(op.name) or known.get(op.call)
            if isinstance(parent, list):
                parent = cast("list[Any]", parent)[0] if parent else None
            if isinstance(parent, str):
                op.owner = _parsed(parent)[3]
