"""Small dumps for tests of comparisons, written statement by statement."""

from __future__ import annotations

from collections.abc import Sequence

from irtool import loads
from irtool.ir.dump import Dump

PARAMETERS = {"x": "(8, 16)", "w": "(16, 16)", "v": "(16, 16)", "b": "(16)"}


def dump(*statements: str, name: str = "net.ir", shift: int = 0) -> Dump:
    """A dump of one graph.

    A statement reads ``a = MatMul(%x, %w) f32 (8, 16) @scope {attributes}``: result type and shape
    behind the call, then optionally scope and what stands in braces.  ``shift`` moves all numbers.
    """
    lines = ["# IR entry: @net_1", "# Total subgraphs: 1", "", "# Params:"]
    for number, (label, shape) in enumerate(PARAMETERS.items(), start=1):
        lines.append(
            f"%para{number}_{label}: <Ref[Tensor[Float32]], {shape}, ref_key={label}>"
            "  :  has_default"
        )
    lines += ["", "subgraph instance: net_1 : 0x55aa", "subgraph @net_1() {"]
    numbers: dict[str, int] = {}
    for statement in statements:
        lines += _lines(statement, numbers, shift)
    last = statements[-1].partition(" = ")[0]
    lines += [f"  Return(%{numbers[last]})", "      : (<Tensor[Float32], (8, 16)>)", "}", ""]
    return loads("\n".join(lines), name)


_TYPES = {"f32": "Float32", "f16": "Float16", "i32": "Int32"}


def _lines(statement: str, numbers: dict[str, int], shift: int) -> Sequence[str]:
    label, _, rest = statement.partition(" = ")
    call, _, rest = rest.partition(") ")
    operator, _, operands = call.partition("(")
    kind, _, rest = rest.partition(" ")
    shape, _, rest = rest.partition(")")
    scope, braces = "Default", ""
    for word in rest.split(maxsplit=1):
        if word.startswith("@"):
            scope = word[1:]
        else:
            braces = word
    if " {" in rest or rest.strip().startswith("{"):
        braces = rest[rest.index("{") :]
        scope = rest.strip().split()[0][1:] if rest.strip().startswith("@") else scope
    number = numbers[label] = len(numbers) + shift
    sources = [_reference(text.strip(), numbers) for text in operands.split(", ") if text]
    types = ", ".join("<Tensor[Float32], (8, 16)>" for _ in sources)
    attributes = f" primitive_attrs: {braces}" if braces else ""
    return [
        f"  %{number}(CNode_{number + 7 * shift}) = {operator}({', '.join(sources)}){attributes}",
        f"      : ({types}) -> (<Tensor[{_TYPES[kind]}], {shape})>)",
        f"      # Fullname with scope: ({scope}/{operator}-op{number})",
    ]


def _reference(text: str, numbers: dict[str, int]) -> str:
    if not text.startswith("%"):
        return text
    label = text[1:]
    if label in numbers:
        return f"%{numbers[label]}"
    return f"%para{list(PARAMETERS).index(label) + 1}_{label}"
