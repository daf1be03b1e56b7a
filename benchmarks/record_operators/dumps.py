"""What a record keeps of MindSpore's dumps, read off their text by regular expressions.

This is on purpose not irtool's reader: the recorder must not share mistakes with what it measures.
"""

from __future__ import annotations

import ast
import glob
import os
import re
from typing import Any

COLLECTIVES = (
    "AllReduce", "AllGather", "ReduceScatter", "AlltoAll", "AlltoAllV", "AllToAll", "Broadcast",
    "NeighborExchange", "NeighborExchangeV2", "Send", "Receive", "AllGatherV", "ReduceScatterV",
)  # fmt: skip
_STATEMENT = re.compile(r"^  %(\d+)\(([^)]*)\) = (?:PrimFunc_)?([\w.]+)\((.*)$")
_PARAMETER = re.compile(r"^%para\d+_(\S+): <Ref\[Tensor\[\w+\]\], \(([^)]*)\)", re.MULTILINE)
_RANKS = (
    re.compile(r'group_ranks: "([^"]*)"'),
    re.compile(r"(?:group_rank_ids|rank_list): (\([^)]*\))"),
)
_PEERS = re.compile(r"(?:send_rank_ids|recv_rank_ids|dest_rank|src_rank): ([^a-z}\"]*)")


def of_passes(folder: str) -> dict[str, str]:
    """The texts of step_parallel_begin, step_parallel_end and validate, as far as there are any."""
    texts: dict[str, str] = {}
    for path in sorted(glob.glob(os.path.join(folder, "**", "*.ir"), recursive=True)):
        name = os.path.basename(path)
        for key in ("begin", "end", "validate"):
            if f"step_parallel_{key}_" in name or (key == "validate" and "_validate_" in name):
                with open(path, encoding="utf-8", errors="surrogateescape") as stream:
                    texts.setdefault(key, stream.read())
    return texts


def neutral(text: str) -> str:
    """A dump without what differs from one compilation to the next: addresses, lines of source."""
    text = re.sub(r"^ *# In file .*\n", "", text, flags=re.MULTILINE)
    return re.sub(r" : 0x[0-9a-f]+", " : 0x0", text)


def layouts(end: str, operator: str) -> dict[str, Any]:
    """Device matrix and tensor maps as the operator's node holds them after the parallel pass."""
    nodes = [
        (match[3], line)
        for line in end.splitlines()
        if "device_matrix: " in line
        and (match := _STATEMENT.match(line))
        and match[3] not in ("_VirtualDataset", "_VirtualOutput")
    ]
    nodes.sort(key=lambda node: node[0] != operator)
    if not nodes:
        return {}
    operator_name, line = nodes[0]
    read: dict[str, Any] = {"node": operator_name}
    for key, name in (
        ("matrix", "device_matrix"),
        ("inputs", "inputs_tensor_map"),
        ("outputs", "outputs_tensor_map"),
    ):
        if (text := _balanced(line, f"{name}: ")) is not None:
            read[key] = _value(text, nested=key != "matrix")
    applied = re.findall(r"\{in_strategy: (\(.*?\))(?:, out_strategy: (.*?))?\}", line)
    if applied:
        read["strategy"] = _value(applied[-1][0], nested=True)
    if "StandAlone" in line or "BatchParallel" in line:
        read["default"] = "StandAlone" if "StandAlone" in line else "BatchParallel"
    return read


def communications(validate: str, devices: int) -> list[list[Any]]:
    """All communication operators: [operator, ranks, count, phase, what it was inserted as]."""
    found: dict[tuple[Any, ...], int] = {}
    lines = validate.splitlines()
    for index, line in enumerate(lines):
        match = _STATEMENT.match(line)
        if match is None or match[3] not in COLLECTIVES:
            continue
        scope = next(
            (text for text in lines[index : index + 4] if "scope: (" in text or "Scope: (" in text),
            "",
        )
        phase = "backward" if "(Gradients/" in scope else "forward"
        key = (match[3], _ranks(line, devices), phase, _origin(line))
        found[key] = found.get(key, 0) + 1
    return [
        [op, list(ranks), count, phase, origin]
        for (op, ranks, phase, origin), count in sorted(found.items())
    ]


def mirrors(end: str, devices: int) -> list[list[Any]]:
    """[parameter, ranks] of each mirror operator that the parallel pass put in.

    Its gradient is an AllReduce, unless what it would add up turns out to be constant: the gradient
    of the network's output is ones here, and MindSpore folds what it can compute.
    """
    found: list[list[Any]] = []
    for line in end.splitlines():
        match = _STATEMENT.match(line)
        if match and match[3].startswith("_Mirror"):
            user = re.search(r'mirror_user_id: "([^"]*)"', line)
            found.append([user[1] if user else "", list(_ranks(line, devices))])
    return sorted(found)


def output_shapes(line: str) -> list[list[int]]:
    """The shapes behind the arrow of a type line; -1 for an unknown size."""
    found = re.findall(r"\(((?:-?\d+(?:, )?)*)\)", line.partition(" -> ")[2])
    return [[int(size) for size in text.split(",") if size.strip()] for text in found]


def slices(validate: str, operator: str) -> list[str]:
    """The type line of each forward node of the operator: whole shapes, or those of one rank."""
    lines = validate.splitlines()
    found: list[str] = []
    for index, line in enumerate(lines[:-2]):
        match = _STATEMENT.match(line)
        if match and match[3] == operator and "(Gradients/" not in lines[index + 2]:
            found.append(lines[index + 1].strip(" :"))
    return found


def parameters(validate: str) -> dict[str, list[int]]:
    """The slice of each parameter."""
    return {
        match[1]: [int(size) for size in match[2].split(",") if size.strip()]
        for match in _PARAMETER.finditer(validate)
    }


def _ranks(line: str, devices: int) -> tuple[int, ...]:
    """The ranks of its group; of an exchange between neighbours rank 0 and those it talks to."""
    if "NeighborExchange" in line.partition("(")[2][:60]:
        peers = {number for text in _PEERS.findall(line) for number in _numbers(text)}
        return tuple(sorted({0, *(rank for rank in peers if rank >= 0)}))
    for pattern in _RANKS:
        if match := pattern.search(line):
            text = match[1]
            if text == "WORLD_GROUP":
                return tuple(range(devices))
            if text.startswith("("):
                return _numbers(text)
            return tuple(int(rank) for rank in text.split("-"))
    if "hccl_world_group" in line:
        return tuple(range(devices))
    if peers := _PEERS.findall(line):
        return tuple(sorted({number for text in peers for number in _numbers(text)}))
    return ()


def _numbers(text: str) -> tuple[int, ...]:
    return tuple(int(number) for number in re.findall(r"-?\d+", re.sub(r"[A-Z]\d+\(", "(", text)))


def _origin(line: str) -> str:
    """What the operator was inserted as (forward_op, redistribution_op, …), without hashes."""
    match = re.search(r"\{instance name: ([^}]*)\}", line)
    if match is None:
        return ""
    return re.sub(r"_?op_\d+\w*$|\d{6,}", "_op", match[1])


def _balanced(line: str, key: str) -> str | None:
    begin = line.find(key)
    if begin < 0:
        return None
    begin += len(key)
    depth = 0
    for position in range(begin, len(line)):
        depth += {"(": 1, ")": -1}.get(line[position], 0)
        if depth == 0:
            return line[begin : position + 1]
    return None


def _value(text: str, *, nested: bool) -> Any:
    """A printed tuple as lists. MindSpore prints a tuple of one without its comma.

    In what is nested, a number in the place of a tuple is such a tuple of one.
    """
    parsed = ast.literal_eval(
        re.sub(r"(?<=[^,(])\)", ",)", re.sub(r"[IU]\d+\((-?\d+)\)", r"\1", text))
    )
    return _lists(parsed if not nested or isinstance(parsed, tuple) else (parsed,))


def _lists(value: Any) -> Any:
    return [_lists(item) for item in value] if isinstance(value, tuple) else value
