"""Small begin dumps, written one statement at a time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import irtool
from irtool.ir.dump import Dump
from irtool.sharding.check import check
from irtool.sharding.network.context import ParallelContext
from irtool.sharding.network.report import CheckResult, ParameterReport, RedistributionReport

Shape = Sequence[int]
Row = Sequence[int]


@dataclass(frozen=True)
class Value:
    """Something that a statement can use: how it is written, and its type."""

    text: str
    type: str


def tensor(shape: Shape, dtype: str = "Float32") -> str:
    """The type of a tensor."""
    return f"<Tensor[{dtype}], ({', '.join(map(str, shape))})>"


def constant(value: object) -> Value:
    """A constant: a truth value, a number, or some numbers."""
    if isinstance(value, tuple):
        items = ", ".join(f"I64({item})" for item in value)  # pyright: ignore[reportUnknownVariableType]  # numbers
        return Value(f"({items})", f"<Tuple[Int64*{len(value)}], TupleShape(NoShape)>")  # pyright: ignore[reportUnknownArgumentType]  # likewise
    if isinstance(value, bool):
        return Value(f"Bool({int(value)})", "<Bool, NoShape>")
    return Value(f"I64({value})", "<Int64, NoShape>")


def rows(strategy: Sequence[Row]) -> str:
    """``((4, 2), (2, 1))`` as the dump writes it."""
    return ", ".join(f"({', '.join(map(str, row))})" for row in strategy)


@dataclass
class Body:
    """The statements of a graph."""

    name: str
    parameters: list[Value] = field(default_factory=list[Value])
    lines: list[str] = field(default_factory=list[str])
    count: int = 0
    result: Value | None = None
    trains: bool = False

    def parameter(self, type: str) -> Value:
        """One more parameter of the graph."""
        found = Value(f"%para9{len(self.parameters)}_{self.name}", type)
        self.parameters.append(found)
        return found

    def add(
        self,
        op: str,
        inputs: Sequence[Value],
        type: str,
        strategy: Sequence[Row] | None = None,
        user: Sequence[Row] | None = None,
        attributes: str = "",
        scope: str = "Default",
        note: str = "",
    ) -> Value:
        """A statement.

        Args:
            op: as it stands behind the equals sign: ``call @inner`` too.
            inputs: its operands.
            type: of its result.
            strategy: behind the statement, from a search.
            user: among the primitive's attributes, from the user.
            attributes: more of these.
            scope: of the statement.
            note: what else stands behind the operands.
        """
        found = Value(f"%{self.count}", type)
        given = [f"in_strategy: ({rows(user)})"] if user is not None else []
        given += [attributes] if attributes else []
        line = f"  {found.text}(v{self.count}) = {op}({', '.join(item.text for item in inputs)})"
        if not op.startswith(("call", "%")):
            line += f" {{instance name: {op.removeprefix('PrimFunc_').lower()}}}"
        line += f" primitive_attrs: {{{', '.join(given)}}}" if given else ""
        line += note
        line += f" {{in_strategy: ({rows(strategy)})}}" if strategy is not None else ""
        types = ", ".join(item.type for item in inputs)
        self.lines += [line, f"      : ({types}) -> ({type})", f"      # Scope: ({scope})"]
        self.count += 1
        return found

    def op(
        self, op: str, source: Value, shape: Shape, strategy: Sequence[Row] | None = None
    ) -> Value:
        """An operator of one tensor, with a user's strategy."""
        return self.add(f"PrimFunc_{op}", [source], tensor(shape), user=strategy)

    def reshape(self, source: Value, shape: Shape, user: Sequence[Row] | None = None) -> Value:
        """A Reshape."""
        return self.add(
            "PrimFunc_Reshape", [source, constant(tuple(shape))], tensor(shape), user=user
        )

    def product(
        self, left: Value, right: Value, shape: Shape, strategy: Sequence[Row] | None = None
    ) -> Value:
        """A matrix product."""
        turns = [constant(False), constant(False)]
        return self.add("PrimFunc_MatMul", [left, right, *turns], tensor(shape), user=strategy)

    def gradients(
        self, of: Body, arguments: Sequence[Value], trained: Sequence[Value]
    ) -> list[Value]:
        """Differentiate a graph and take out the gradients of some weights."""
        self.trains = of.trains = True
        func = "<Func, NoShape>"
        made = self.add("J", [Value(f"@{of.name}", func)], func)
        pair = "<Tuple[Tensor[Float32],Func], TupleShape((), NoShape)>"
        applied = self.add(made.text, arguments, pair)
        back = self.add("TupleGetItem", [applied, constant(1)], func)
        one = Value("Tensor(shape=[], dtype=Float32, value=1)", "<Tensor[Float32], (), value=...>")
        both = "<Tuple[Object:EnvType,Tensor[Float32]], TupleShape(NoShape, (64, 64))>"
        given = self.add(back.text, [one], both)
        held = self.add("TupleGetItem", [given, constant(0)], "<Object:EnvType, NoShape>")
        found: list[Value] = []
        for weight in trained:
            key = self.add("RefToEmbed", [weight], "<Object:SymbolicKey, NoShape>")
            type = weight.type.replace("Ref[Tensor[Float32]]", "Tensor[Float32]")
            found.append(
                self.add("EnvironGet", [held, key, weight], type.split(", ref_key")[0] + ">")
            )
        return found

    def text(self) -> str:
        assert self.result is not None
        head = ", ".join(item.text for item in self.parameters)
        return "\n".join(
            (
                f"subgraph attr:\ntraining: {int(self.trains)}",
                f"subgraph instance: {self.name} : 0x1",
                f"subgraph @{self.name}({head}) {{",
                *self.lines,
                f"  Return({self.result.text})",
                f"      : ({self.result.type})",
                "}\n",
            )
        )


@dataclass
class Small:
    """A network: inputs, weights, and graphs, of which the last is the entry."""

    inputs: list[str] = field(default_factory=list[str])
    graphs: list[Body] = field(default_factory=list[Body])

    def input(self, name: str, shape: Shape, dtype: str = "Float32") -> Value:
        found = Value(f"%para{len(self.inputs) + 1}_{name}", tensor(shape, dtype))
        self.inputs.append(f"{found.text}: {found.type} : [{', '.join(map(str, shape))}]")
        return found

    def weight(self, name: str, shape: Shape, dtype: str = "Float32") -> Value:
        type = (
            f"<Ref[Tensor[{dtype}]], ({', '.join(map(str, shape))}), ref_key={name}, is_parameter>"
        )
        found = Value(f"%para{len(self.inputs) + 1}_{name}", type)
        self.inputs.append(f"{found.text}: {type}  :  has_default")
        return found

    def graph(self, name: str) -> Body:
        self.graphs.append(Body(name))
        return self.graphs[-1]

    def text(self) -> str:
        """The dump as it is printed."""
        head = (
            f"# IR entry: @{self.graphs[-1].name}\n# Total params: {len(self.inputs)}\n# Params:\n"
        )
        bodies = "\n".join(body.text() for body in self.graphs)
        return head + "\n".join(self.inputs) + "\n\n" + bodies

    def dump(self) -> Dump:
        dump = irtool.loads(self.text(), "begin.ir")
        assert not dump.problems, dump.problems
        return dump

    def checked(self, **options: object) -> CheckResult:
        """What ``check`` says, for eight devices that get the whole batch unless told otherwise."""
        values: dict[str, object] = {"device_num": 8, "full_batch": True, **options}
        return check(self.dump(), ParallelContext.from_mapping(values))


def around(report: CheckResult, number: int = 0) -> tuple[object, object]:
    """How the n-th Reshape's input and output are split; None: not known."""
    found = [item for item in report.redistributions if item.replaces][number]
    ends = (found.source, found.target)
    source, target = (None if end is None else end.splits for end in ends)
    return source, target


def edge(report: CheckResult, producer: str, consumer: str) -> RedistributionReport:
    """What is redistributed between two operators."""
    (found,) = (
        item for item in report.redistributions
        if not item.replaces and (item.producer.op, item.consumer.op) == (producer, consumer)
    )  # fmt: skip
    return found


def parameter(report: CheckResult, name: str) -> ParameterReport:
    """What is said of a weight."""
    (found,) = (item for item in report.parameters if item.name == name)
    return found
