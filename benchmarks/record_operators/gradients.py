#!/usr/bin/env python3
"""Measure what each operator's gradient reads of the forward pass, and keep it as a table.

    PYTHON_OF_MINDSPORE benchmarks/record_operators/gradients.py [FAMILY...] [--only OPERATOR...]

Each call of the catalogue is compiled once for one device, with all its tensors as inputs of the
network, and its float results added up, each times a number that is an input too (so that nothing
of the gradient is constant). From the ``validate`` dump follows for each float input: of which
inputs and results its gradient reads the *values* (shapes are constants). A recomputed cell
computes those again in the backward pass.

A line of ``irtool/operators/gradients.tsv`` is an operator, then for each input that has a gradient
what is read: ``0<1`` (the gradient of input 0 reads input 1), ``0<=0`` (of result 0), ``0<`` (it
reads nothing); an input that is not listed has no gradient, or one that is always zero. Numbers are
places among all operands of the call, a tuple's items together at its place. Where calls of an
operator differ (transposed, with an optional input), what any of them reads is listed.
"""

from __future__ import annotations

import argparse
import importlib
import pkgutil
import re
import sys
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))

import catalogue  # noqa: E402
import compiling  # noqa: E402
import network  # noqa: E402
from forms import Form, case  # noqa: E402

TABLE = HERE.parents[1] / "irtool" / "operators" / "gradients.tsv"
_STATEMENT = re.compile(r"^  %(\d+)\([^)]*\) = (?:PrimFunc_)?(%?[\w.]+(?: @\w+)?)\((.*)", re.DOTALL)
_TOKEN = re.compile(r"%(?:para(\d+)_\w+|(\d+))")
_RETURN = re.compile(r"^  Return\((.*)", re.DOTALL)
ALONE = {"parallel_mode": "stand_alone", "device_num": 1, "full_batch": False}
_TYPES = re.compile(r"(Tensor\[\w+\])(?:\*(\d+))?")

STEP = """

class Step(nn.Cell):
    def __init__(self, network):
        super().__init__()
        self.gradient = ops.grad(network, {positions})

    def construct(self{given}, factor):
        return self.gradient({passed}, factor)
"""


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    names = sorted(module.name for module in pkgutil.iter_modules(catalogue.__path__))
    parser.add_argument(
        "family",
        nargs="*",
        help=f"{', '.join(names)} (all but dynamic)",
    )
    parser.add_argument("--only", nargs="*", help="only these operators")
    parser.add_argument("--out", type=Path, default=TABLE)
    options = parser.parse_args()
    compiling.source = source
    compiling._record = record
    compiler = compiling.Compiler()
    known = read_table(options.out) if options.out.exists() else {}
    again = set[str]()
    try:
        for name in options.family or sorted({*names} - {"dynamic"}):
            forms: list[Form] = importlib.import_module(f"catalogue.{name}").FORMS
            chosen = [one for one in forms if not options.only or one.operator in options.only]
            for operator in {one.operator for one in chosen} - again:
                known.pop(operator, None)
                again.add(operator)
            for answer in answers(compiler, chosen):
                add(known, answer)
            write_table(options.out, known)
            print(f"{name}: {len(chosen)} calls", flush=True)
    finally:
        compiler.close()
    return 0


def answers(compiler: compiling.Compiler, forms: list[Form]) -> Any:
    """The answer of each call; one whose results are of another kind is asked again."""
    todo = [described(one) for one in forms]
    while todo:
        again = []
        for answer in compiler.run(todo):
            outputs = answer.get("outputs")
            if outputs is not None and answer["case"].get("outputs") is None:
                inputs = float_inputs(written(answer["case"]))
                if inputs and any("Float" in kind for kind in outputs):
                    again.append({
                        **answer["case"], "outputs": outputs, "of_tuple": answer["of_tuple"]
                    })  # fmt: skip
                    continue
                if any("Complex" in kind for kind in outputs):
                    continue  # the instrument adds up real results
                answer["reads"] = {}  # whole numbers and truth values have no gradient
            yield answer
        todo = again


def described(one: Form) -> dict[str, Any]:
    """A call for one device, without a strategy, whose tensors are all inputs."""
    made = case(one, None, kind="none")
    made = {**made, "devices": 1, "context": ALONE}
    made["arguments"] = [as_input(argument) for argument in made["arguments"]]
    made["phase"] = "train"
    return made


def as_input(argument: Any) -> Any:
    if isinstance(argument, dict) and "tuple" in argument:
        return {"tuple": [as_input(item) for item in argument["tuple"]]}
    if isinstance(argument, dict) and argument.get("is") == "parameter":
        return {**argument, "is": "input"}
    return argument


def source(description: dict[str, Any]) -> str:
    """The network of a call: first the operator alone, then with gradients of its results."""
    outputs = description.get("outputs")
    alone = network.source({**description, "gradient": False, "returns": None})
    if outputs is None:
        return alone
    writer = written(description)
    names = [name for name, _ in writer.inputs]
    head, _, body = alone.partition("    def construct(self")
    call = re.search(r"return (self\.operator\(.*)", body)
    assert call is not None
    several = len(outputs) > 1 or description.get("of_tuple")
    terms = [
        f"ops.ReduceSum()(results{f'[{index}]' if several else ''} * factor)"
        for index, kind in enumerate(outputs)
        if "Float" in kind
    ]
    given = "".join(f", {name}" for name in names)
    values = "".join(f"{value}, " for value in writer.values)
    return (
        f"{head}    def construct(self{given}, factor):\n"
        f"        results = {call[1]}\n"
        f"        return {' + '.join(terms)}\n"
        + STEP.format(positions=float_inputs(writer), given=given, passed=given.removeprefix(", "))
        + f"\n\ndef network():\n    return Step(Network()), ({values}Tensor(2.0, ms.float32))\n"
    )


def written(description: dict[str, Any]) -> network._Writer:
    """The operands of a call as a network's source has them."""
    writer = network._Writer()
    for argument in description["arguments"]:
        writer.argument(argument)
    return writer


def float_inputs(writer: network._Writer) -> tuple[int, ...]:
    return tuple(place for place, (_, is_float) in enumerate(writer.inputs) if is_float)


def record(
    description: dict[str, Any], version: str, folder: str, answer: dict[str, Any]
) -> dict[str, Any]:
    """What one compilation says: types of the results, then what each gradient reads."""
    found: dict[str, Any] = {"case": description, "mindspore": version}
    paths = sorted(Path(folder, "dumps").rglob("*_validate_*.ir"))
    if answer["step"] != "done" or not paths:
        return {**found, "error": str(answer.get("error", "no dump"))[:300]}
    text = paths[0].read_text(encoding="utf-8", errors="replace")
    operator = description["operator"]
    try:
        if description.get("outputs") is None:
            return {**found, **results(text, operator)}
        inputs = float_inputs(written(description))
        return {**found, "reads": what_gradients_read(text, operator, inputs)}
    except LookupError as problem:
        return {**found, "error": str(problem)}


def results(text: str, operator: str) -> dict[str, Any]:
    """The element types of an operator's results, and whether they are a tuple.

    Raises:
        LookupError: the operator is not there.
    """
    lines = text.splitlines()
    for line, types in pairwise(lines):
        match = _STATEMENT.match(line)
        if match and match[2] == operator:
            after = types.partition(" -> ")[2]
            kinds = [kind for kind, count in _TYPES.findall(after) for _ in range(int(count or 1))]
            return {"outputs": kinds, "of_tuple": "Tuple[" in after}
    raise LookupError(f"no {operator} in the dump")


@dataclass(frozen=True)
class Statement:
    """A node of a dump: ``operands`` are numbers of nodes, ``p0`` is an input of the network."""

    op: str
    operands: list[str]
    index: int
    backward: bool


def what_gradients_read(text: str, operator: str, inputs: tuple[int, ...]) -> dict[int, list[str]]:
    """By input, the values that its gradient reads: ``1`` is an input, ``=0`` a result.

    Raises:
        LookupError: the dump is not one graph with a gradient for each input.
    """
    nodes, returned = statements(text)
    if returned == [""]:
        return {}  # they are constant
    if len(inputs) > 1 and nodes[returned[0]].op == "MakeTuple":
        returned = nodes[returned[0]].operands
    if len(returned) != len(inputs):
        raise LookupError(f"{len(returned)} gradients for {len(inputs)} inputs")
    of_inputs = zip(inputs, returned, strict=True)
    return {place: sorted(read_by(nodes, item, operator)) for place, item in of_inputs}


def statements(text: str) -> tuple[dict[str, Statement], list[str]]:
    """The nodes of a dump, and what its Return gives back.

    Raises:
        LookupError: there are several graphs.
    """
    if len(re.findall(r"^subgraph @", text, re.MULTILINE)) != 1:
        raise LookupError("several graphs")
    nodes: dict[str, Statement] = {}
    returned: list[str] = []
    starts = [match.start() for match in re.finditer(r"^  (?:%\d+\(|Return\()", text, re.MULTILINE)]
    for start, end in zip(starts, [*starts[1:], len(text)], strict=True):
        statement = text[start:end]  # constants may go over several lines
        if match := _RETURN.match(statement):
            returned = operands(match[1])
        if match := _STATEMENT.match(statement):
            index = re.match(r"%\d+, I64\((\d+)\)", match[3])
            backward = "forward_unique_id: " in statement or "(Gradients/" in statement
            nodes[match[1]] = Statement(
                match[2], operands(match[3]), int(index[1]) if index else 0, backward
            )
    return nodes, returned


def operands(text: str) -> list[str]:
    """What stands in the parentheses of a statement: ``7`` is a node, ``p0`` an input."""
    found = [""]
    depth = 1
    for letter in text:
        depth += {"(": 1, ")": -1, "[": 1, "]": -1}.get(letter, 0)
        if depth == 0:
            break
        if letter == "," and depth == 1:
            found.append("")
        else:
            found[-1] += letter
    return [operand(one.strip()) for one in found]


def operand(text: str) -> str:
    """A node's number or a parameter's; nothing of a constant."""
    match = _TOKEN.match(text)
    if match is None:
        return ""
    return f"p{int(match[1]) - 1}" if match[1] else match[2]


def read_by(nodes: dict[str, Statement], item: str, operator: str) -> set[str]:
    """What of the forward pass a gradient is computed from."""
    found: set[str] = set()
    todo, seen = [item], set[str]()
    while todo:
        value = todo.pop()
        if value in seen or not value:
            continue
        seen.add(value)
        if value.startswith("p"):
            found.add(value[1:])
            continue
        node = nodes[value]
        if node.op == "TupleGetItem" and is_result(nodes, node.operands[0], operator):
            found.add(f"={node.index}")
        elif is_result(nodes, value, operator):
            found.add("=0")
        else:
            todo += node.operands[:1] if node.op == "Depend" else node.operands
    return found


def is_result(nodes: dict[str, Statement], value: str, operator: str) -> bool:
    """Whether something is the operator of the forward pass."""
    if value.startswith("p") or not value:
        return False
    return nodes[value].op == operator and not nodes[value].backward


def add(known: dict[str, dict[str, set[str]]], answer: dict[str, Any]) -> None:
    """Join what a call says to what others of its operator said."""
    operator = answer["case"]["operator"]
    if "reads" not in answer:
        print(f"  {answer['case']['form']}: {answer['error'][:160]!r}", flush=True)
        return
    places = tensor_places(answer["case"]["arguments"])
    gradients = known.setdefault(operator, {})
    for tensor, read in answer["reads"].items():
        if str(len(places)) not in read:  # what comes behind all inputs is the factor
            continue
        gradient = gradients.setdefault(str(places[int(tensor)]), set())
        for one in read:
            if one.startswith("="):
                gradient.add(one)
            elif int(one) < len(places):
                gradient.add(str(places[int(one)]))


def tensor_places(arguments: list[Any]) -> list[int]:
    """Of each tensor that is an input of the network, the operand that it is, or is an item of."""
    found: list[int] = []
    for place, argument in enumerate(arguments):
        items = (
            argument["tuple"] if isinstance(argument, dict) and "tuple" in argument else [argument]
        )
        found += [place for item in items if isinstance(item, dict) and item.get("is") == "input"]
    return found


def read_table(path: Path) -> dict[str, dict[str, set[str]]]:
    known: dict[str, dict[str, set[str]]] = {}
    for line in path.read_text(encoding="utf-8").splitlines():
        operator, *gradients = line.split("\t")
        for gradient in gradients:
            place, _, read = gradient.partition("<")
            known.setdefault(operator, {})[place] = set(read.split())
    return known


def write_table(path: Path, known: dict[str, dict[str, set[str]]]) -> None:
    lines = (
        "\t".join([operator, *(
            f"{place}<{' '.join(sorted(read))}"
            for place, read in sorted(gradients.items(), key=lambda one: int(one[0]))
        )])
        for operator, gradients in sorted(known.items())
    )  # fmt: skip
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")


if __name__ == "__main__":
    sys.exit(main())
