"""OPS003: what every step makes again out of the same things."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from irtool.ir.finding import Finding
from irtool.ir.graph import GraphParameter, Node, Source
from irtool.ir.operators import COMMUNICATION, PLUMBING, POINT_TO_POINT
from irtool.ir.parameter_roles import ParameterRole, parameter_roles
from irtool.ir.types import Abstract
from irtool.linting.facts import DumpFacts
from irtool.linting.rule import DumpRule, Threshold
from irtool.linting.rules.communication.chains import CARRIES
from irtool.operators.table import operator_of

_PRODUCTS = frozenset(("MatMul", "BatchMatMul"))
"""Products that take a weight as it is stored, or turned, by an attribute."""
_LAYS_OUT = frozenset(("StridedSlice", "Reshape", "Split", "TupleGetItem", "ExpandDims", "Squeeze"))
"""What an input may go through before somebody looks at its type."""
_WHOLE = ("Int64", "UInt64")


class MadeAnew(DumpRule):
    """A parameter transposed, cast or looked up in every step, or an input of a wider type."""

    code = "OPS003"
    name = "made-anew-in-every-step"
    severity = "warning"
    summary = "Every step makes the same tensor again"
    explanation = """
        Three things are looked for in a training step:

        - a weight that is transposed for a product: `MatMul(transpose_b=True)` reads it as it is
          stored, and the pass over the weight and over its gradient goes;
        - operators all of whose operands are constants and parameters that nothing updates: a
          frozen table that is cast, a position table that is gathered by constant indices, a
          parameter that is put together from its slices again. Their result is always the same;
        - an input of the network of type Int64 that is cast to Int32 and read nowhere else: the
          dataset can give Int32.

        Weights that are trained are not told when they are cast: mixed precision does that. Sizes
        count as a share of all weights.
        """
    hint = "make it once: when the parameter is created, in the dataset, or by an attribute"
    bad = """
        %7(w) = PrimFunc_Transpose(%para3_weight, (I64(1), I64(0)))
        %8(y) = PrimFunc_MatMul(%6, %7, Bool(0), Bool(0))
        """
    good = "%8(y) = PrimFunc_MatMul(%6, %para3_weight, Bool(0), Bool(1))"
    cases = (
        "tests/linting/evidence/weight_turned_encoder.validate",
        "tests/linting/evidence/ids_cast_gated.validate",
        "tests/linting/evidence/table_gathered_encoder.validate",
        "tests/linting/evidence/labels_cast_dense.validate",
        "tests/linting/evidence/weight_transpose_dense.validate",
        "tests/linting/evidence/recompute_idle_encoder.validate",
    )
    dumps = ("validate",)
    least_share = Threshold(0.1, "percent", "told from this share of the bytes of all weights on")
    least_bytes = Threshold(256, "bytes", "smaller tensors (slices, on one device) are not told")

    def check(self, facts: DumpFacts) -> Iterator[Finding]:
        dump = facts.dump
        phases = facts.phases
        nodes = [
            node
            for node in dump.nodes()
            if phases.get(node) in ("forward", "other") and not (node.micro or 0) > 0
        ]
        if not _has_any(nodes, {item.name for item in dump.parameters if item.is_weight}):
            return
        roles = parameter_roles(dump)
        if not any(role.updated for role in roles.values()):
            return  # no training step
        weights = sum(
            item.size or 0 for item in dump.parameters if roles[item.name].role == "weight"
        )
        least = max(self.least_bytes, weights * self.least_share / 100)
        # A weight whose gradients are summed up is trained, wherever its update stands.
        trained = {
            accumulator.weight
            for accumulator in roles.values()
            if accumulator.role == "accumulated gradient"
        }
        frozen = {
            name
            for name, role in roles.items()
            if role.role == "weight" and not role.updated and name not in trained
        }
        constant: set[Node] = set()
        for node in nodes:
            if _is_constant(node, frozen, constant):
                constant.add(node)
            elif node.op == "Transpose" and (node.output_bytes or 0) >= least:
                yield from self._turned(node, roles)
            elif node.op == "Cast":
                yield from self._narrowed(node)
        for node in constant:
            if (node.output_bytes or 0) < least or _is_written(node):
                continue
            if _is_last(node, constant):
                yield from self._constant(node)

    def _turned(self, node: Node, roles: Mapping[str, ParameterRole]) -> Iterator[Finding]:
        name = _weight(node.inputs[0] if node.inputs else None, roles)
        readers = [user for user in _products_behind(node) if not user[0].is_backward]
        if name is None or not readers or any(user.op not in _PRODUCTS for user, _ in readers):
            return
        reader, operand = readers[0]
        place = "b" if len(reader.inputs) > 1 and reader.inputs[1] is operand else "a"
        yield self.finding(
            f"a weight is transposed in every step for {reader.op}",
            node,
            fix=f"{reader.op}(transpose_{place}=True) of the weight as it is stored",
            related=(("the product that reads it", reader),),
            key=name,
        )

    def _constant(self, node: Node) -> Iterator[Finding]:
        names = ", ".join(sorted(_names(node))[:3])
        yield self.finding(
            f"{node.op} gives the same in every step: it reads only constants and {names}, which "
            "nothing updates",
            node,
            fix=f"do the {node.op} when the parameter is created",
            key=names,
        )

    def _narrowed(self, node: Node) -> Iterator[Finding]:
        before = node.input_types[0] if node.input_types else None
        after = node.output_type
        if before is None or after is None or before.dtype not in _WHOLE:
            return
        if after.dtype not in ("Int32", "UInt32") or not node.inputs:
            return
        source: Source | None = node.inputs[0]
        for _ in range(16):
            if isinstance(source, GraphParameter):
                declared = source.declaration
                if declared is not None and not declared.is_weight:
                    yield self.finding(
                        f"an input of the network is {before.dtype} and is cast to {after.dtype} "
                        "in every step",
                        node,
                        fix=f"give {after.dtype} from the dataset",
                        key=source.name,
                    )
                return
            if not isinstance(source, Node) or len(_readers(source)) != 1 or not source.inputs:
                return
            if source.op not in _LAYS_OUT and source.op not in CARRIES:
                return
            source = source.inputs[0]


def _has_any(nodes: Sequence[Node], weights: set[str]) -> bool:
    """Whether anything could be told, whatever is known of the weights: that takes longer."""
    return any(
        node.op == "Transpose"
        or (node.op == "Cast" and node.input_types and _is_whole(node.input_types[0]))
        or _is_constant(node, weights, set())
        for node in nodes
    )


def _is_whole(value: Abstract | None) -> bool:
    return value is not None and value.dtype in _WHOLE


def _is_constant(node: Node, frozen: set[str], known: set[Node]) -> bool:
    """Whether a node computes, and out of constants and parameters that nothing updates alone.

    What another stage sends is none of the operands of a Receive: they only say when.
    """
    if (
        node.op in POINT_TO_POINT
        or node.op in PLUMBING
        or operator_of(node.op).is_("random")
        or node.is_return
    ):
        return False
    has_parameter = False
    for source in node.inputs:
        source = _behind(source)
        if isinstance(source, GraphParameter):
            if source.name not in frozen:
                return False
            has_parameter = True
        elif isinstance(source, Node):
            if source not in known:
                return False
            has_parameter = True
    return has_parameter


def _behind(source: Source) -> Source:
    for _ in range(16):
        if not isinstance(source, Node) or source.op not in CARRIES or not source.inputs:
            return source
        source = source.inputs[0]
    return source


def _is_last(node: Node, constant: set[Node]) -> bool:
    """Whether something that changes reads it."""
    return any(user not in constant for user in _readers(node))


def _is_written(node: Node) -> bool:
    """Whether a reader writes to what it reads: a BatchNorm in training moves its mean."""
    return any(user.attribute("side_effect_mem") for user in _readers(node))


def _readers(node: Node) -> list[Node]:
    """Who takes the value, loads and depends looked through."""
    readers: list[Node] = []
    for user in node.users:
        if user.op in CARRIES and user.inputs and user.inputs[0] is node:
            readers += _readers(user)
        elif user.op not in ("UpdateState", "Depend"):
            readers.append(user)
    return readers


def _products_behind(node: Node) -> list[tuple[Node, Node]]:
    """Who takes the value, with what it takes; redistributions are looked through."""
    products: list[tuple[Node, Node]] = []
    queue = [(reader, node) for reader in _readers(node)]
    for _ in range(64):
        if not queue:
            break
        reader, operand = queue.pop(0)
        moves = reader.op in COMMUNICATION or reader.op in ("MakeTuple", "TupleGetItem")
        if moves or (reader.instance_name or "").startswith("redistribution"):
            queue += [(following, reader) for following in _readers(reader)]
        else:
            products.append((reader, operand))
    return products


def _names(node: Node) -> set[str]:
    """Parameters behind a constant node."""
    names: set[str] = set()
    queue: list[Source] = list(node.inputs)
    for _ in range(64):
        if not queue:
            break
        source = queue.pop()
        if isinstance(source, GraphParameter):
            names.add(source.name)
        elif isinstance(source, Node):
            queue += source.inputs
    return names


def _weight(source: Source | None, roles: Mapping[str, ParameterRole]) -> str | None:
    """The trained weight that an operand is, casts looked through."""
    for _ in range(8):
        if isinstance(source, GraphParameter):
            role = roles.get(source.name)
            return source.name if role is not None and role.role == "weight" else None
        if not isinstance(source, Node) or not source.inputs:
            return None
        if source.op not in CARRIES and source.op != "Cast":
            return None
        source = source.inputs[0]
    return None
