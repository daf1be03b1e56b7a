"""Training steps written down by hand, statement by statement, for four ranks."""

from __future__ import annotations

import irtool
from irtool.cluster.memory import Memory, MemoryCounting, memory

RANKS = (0, 1, 2, 3)
GRADIENTS = "Gradients/Default/network-Net/"


def tensor(*shape: int, dtype: str = "Float32") -> str:
    return f"<Tensor[{dtype}], ({', '.join(map(str, shape))})>"


def reference(name: str, *shape: int) -> str:
    return f"<Ref[Tensor[Float32]], ({', '.join(map(str, shape))}), ref_key={name}>"


class Step:
    """Statements of a step, as text."""

    def __init__(self, parameters: dict[str, tuple[int, ...]]) -> None:
        self.head = ["# IR entry: @main", "# Total subgraphs: 1", "# Params:"]
        self.head += ["%para1_x: <Tensor[Float32], (8, 256)> : [8, 256]"]
        self.head += ["%para2_ids: <Tensor[Int32], (8)> : [8]"]
        self.types = {"x": tensor(8, 256), "ids": tensor(8, dtype="Int32")}
        self.names = {"x": "%para1_x", "ids": "%para2_ids"}
        for number, (name, shape) in enumerate(parameters.items(), 3):
            self.names[name] = f"%para{number}_{name}"
            self.types[name] = reference(name, *shape)
            self.head.append(f"{self.names[name]}: {self.types[name]}  :  has_default")
        self.lines: list[str] = []

    def do(self, op: str, *inputs: str, out: str, scope: str = "Default/network-Net/",
           instance: str = "", attributes: str = "", primal: str = "") -> str:  # fmt: skip
        number = len(self.lines)
        text = f"  %{number}(v) = {op}({', '.join(self.names[name] for name in inputs)})"
        text += f" {{instance name: {instance}}}" if instance else ""
        text += f" primitive_attrs: {{{attributes}}}" if attributes else ""
        text += f" cnode_primal_attrs: {{{primal}}}" if primal else ""
        types = ", ".join(self.types[name] for name in inputs)
        text += f"\n      : ({types}) -> ({out})"
        text += f"\n      # Fullname with scope: ({scope}{op}-op{number})"
        self.lines.append(text)
        name = f"%{number}"
        self.names[name], self.types[name] = name, out
        return name

    def collective(self, op: str, source: str, weight: str, out: str, instance: str) -> str:
        attributes = f'group: "g", fusion: I64(2), op: "sum", rank_list: {RANKS}'
        primal = f'mirror_user_id: "{weight}"'
        scope = "Default/network-Net/"
        if op != "AllGather":
            primal, scope = f'forward_unique_id: "9", {primal}', GRADIENTS
        return self.do(op, source, out=out, scope=scope, instance=instance,
                       attributes=attributes, primal=primal)  # fmt: skip

    def memory(self, returned: str) -> Memory:
        lines = [*self.head, "subgraph @main() {", *self.lines, f"  Return({returned})", "}", ""]
        dump = irtool.load("\n".join(lines).encode())
        return memory(dump, MemoryCounting(order="dump", rounding="none"))
