"""Model to text: prints a dump, or any part of it, exactly as MindSpore printed it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from irtool.ir.comments import CommentLine, Heading, Location, Remark, Scope, SideEffect
from irtool.ir.dump import Dump
from irtool.ir.graph import Graph, Item, Node
from irtool.ir.items import (
    CommentBlock,
    Head,
    Marker,
    Opaque,
    Parameter,
    ParameterList,
    Property,
    Text,
)
from irtool.ir.statement import ClosureSet, ClosureTarget, GraphTarget, PrimitiveTarget, Target
from irtool.ir.types import (
    Abstract,
    AnyShape,
    DictionaryType,
    DynamicSequenceType,
    FunctionType,
    NamedShape,
    OtherType,
    RefType,
    ScalarType,
    SequenceType,
    Shape,
    Signature,
    TensorType,
    TextSignature,
    Type,
)
from irtool.ir.values import (
    Attributes,
    Dictionary,
    ForeignNode,
    ForeignParameter,
    GraphReference,
    NodeReference,
    ParameterReference,
    PrimitiveLiteral,
    Scalar,
    Sequence,
    SliceLiteral,
    String,
    SymbolicKey,
    Tagged,
    TensorLiteral,
    Value,
    Word,
)


def dumps(dump: Dump) -> str:
    """The text of a dump; ``.encode("utf-8", "surrogateescape")`` gives the file's bytes.

    Args:
        dump: as it was read, or changed.

    Returns:
        With the dump's own line ends, and its byte order mark if it has one.
    """
    ends = dump.line_ends
    lines = "\n".join(line for item in dump.items for line in item_lines(item))
    if ends.last:
        lines += "\n"
    if ends.exceptions:
        other = "\n" if ends.usual == "\r\n" else "\r\n"
        pieces = lines.split("\n")
        marks = (other if i in ends.exceptions else ends.usual for i in range(1, len(pieces)))
        lines = "".join(f"{p}{m}" for p, m in zip(pieces, marks, strict=False)) + pieces[-1]
    elif ends.usual != "\n":
        lines = lines.replace("\n", ends.usual)
    return ("\ufeff" if dump.bom else "") + lines


def item_lines(item: Item | Graph) -> Iterator[str]:
    """The lines of one item of a dump or graph, without line ends.

    Args:
        item: a graph with all that stands in it, or one item of any kind.
    """
    match item:
        case Node():
            yield from node_lines(item)
        case Graph():
            for inner in (*item.prelude, *([item.head] if item.head else []), *item.items):
                yield from item_lines(inner)
            if item.close is not None:
                yield item.close.text
        case Text() | Opaque():
            yield item.text
        case Property():
            yield f"{item.key}{item.separator}{item.value}"
        case Parameter():
            yield print_parameter(item)
        case CommentBlock():
            yield from map(print_comment, item.comments.lines)
        case ParameterList():
            yield print_parameter_list(item)
        case Head():
            yield print_head(item)
        case Marker():
            yield f"{item.lead}{item.depth}"


def node_lines(node: Node) -> Iterator[str]:
    """The lines of one statement: itself, its type lines, its comments.

    Args:
        node: of any dialect.
    """
    yield print_statement(node)
    strategy = ""
    if node.style.strategy_on_type_line and node.strategy is not None:
        strategy = f" {print_attributes(node.strategy)}"
    if node.signature is not None:
        yield strategy + print_signature(node.signature)
    for line in node.text_signatures:
        yield print_signature(line)
    for comment in node.comments.lines:
        yield print_comment(comment)


def print_statement(node: Node) -> str:
    """A node's statement, without its type lines and comments.

    Args:
        node: of any dialect.
    """
    style = node.style
    operands = ", ".join(map(print_value, node.operands))
    if node.number is None:
        text = f"{style.indent}{style.return_word}({operands})"
    else:
        target = print_target(node.target)
        text = f"{style.indent}%{node.number}({node.name}) = {target}({operands})"
    if node.instance_name is not None:
        text += f" {{instance name: {node.instance_name}}}"
    for block in (node.primitive_attributes, node.node_attributes, node.primal_attributes):
        if block is not None:
            text += f" {print_attributes(block)}"
    if node.strategy is not None and not style.strategy_on_type_line:
        text += f" {print_attributes(node.strategy)}"
    return f"{text}{node.prototype or ''}{style.trailing}"


def print_target(target: Target) -> str:
    """What a node applies or calls, as it stands before the operands.

    Args:
        target: a primitive, a graph, a closure, or another value.
    """
    match target:
        case PrimitiveTarget():
            arguments = target.arguments
            entries = "" if arguments is None else f"[{_entries(arguments)}]"
            return f"{target.kind}{target.name}{entries}"
        case GraphTarget():
            return f"call @{target.graph}"
        case ClosureTarget():
            callee = target.callee
            text = callee if isinstance(callee, str) else print_value(callee)
            if target.closure is None:
                return text
            return f"{text}[{target.at}{_closure(target.closure)}]"
        case _:
            return print_value(target.value)


def _closure(closures: ClosureSet) -> str:
    if closures.kind in ("", "@"):
        return closures.kind + closures.graphs[0]
    members = (_closure(m) for m in closures.members if isinstance(m, ClosureSet))
    return f"{closures.kind}({', '.join(members)})"


def print_value(value: Value) -> str:
    """One operand or attribute value as a dump has it.

    Args:
        value: of any kind.
    """
    match value:
        case NodeReference():
            return f"%{value.number}"
        case ParameterReference():
            number = "" if value.number is None else value.number
            return f"%para{number}" if value.label is None else f"%para{number}_{value.label}"
        case Scalar():
            return f"{value.type}({value.text})"
        case String():
            return f'"{value.text}"'
        case Word() | SymbolicKey():
            return value.text
        case Sequence():
            inner = ", ".join(map(print_value, value.items))
            if value.is_bare:
                return inner
            return f"[{inner}]" if value.is_list else f"({inner})"
        case Tagged():
            return value.tag + value.body
        case GraphReference():
            return f"@{value.name}"
        case ForeignNode():
            return f"$({value.at}{value.graph}:{value.name})"
        case ForeignParameter():
            number = "" if value.number is None else value.number
            return f"$({value.at}{value.graph}:para{number}_{value.label})"
        case TensorLiteral():
            name = "" if value.name is None else f", name={value.name}"
            shape = ", ".join(map(str, value.shape))
            return f"Tensor(shape=[{shape}], dtype={value.dtype}, value={value.data}{name})"
        case Dictionary():
            quote = value.quote
            entries = (f"{quote}{key}{quote}: {print_value(item)}" for key, item in value.entries)
            return f"{{{', '.join(entries)}}}"
        case SliceLiteral():
            parts = (value.start, value.stop, value.step)
            return f"Slice[{' : '.join(map(print_value, parts))}]"
        case PrimitiveLiteral():
            return _primitive(value)


def _primitive(value: PrimitiveLiteral) -> str:
    text = value.name
    if value.arguments is not None:
        text += f"[{_entries(value.arguments)}]"
    if value.instance_name is not None:
        text += f" {{instance name: {value.instance_name}}}"
    if value.attributes is not None:
        text += f" {print_attributes(value.attributes)}"
    return text


def print_attributes(block: Attributes) -> str:
    """An attribute block with its label and braces.

    Args:
        block: of attributes, in their order.
    """
    label = f"{block.label}: " if block.label else ""
    blank = " " if block.spaced else ""
    return f"{label}{{{blank}{_entries(block)}{blank}}}"


def _entries(block: Attributes) -> str:
    separator = block.separator
    return ", ".join(f"{key}{separator}{print_value(value)}" for key, value in block.entries)


# ---- types ---------------------------------------------------------------------------------


def print_signature(line: Signature | TextSignature) -> str:
    """A type line, or a line of its look.

    Args:
        line: types of operands and results, or lines of text that look so.
    """
    if isinstance(line, TextSignature):
        text = f"{line.lead}({', '.join(line.inputs)})"
        return text if line.outputs is None else f"{text}{line.arrow}({', '.join(line.outputs)})"
    text = f"{line.lead}({_abstracts(line.inputs, line.null)})"
    if line.outputs is None:
        return text
    return f"{text}{line.arrow}({_abstracts(line.outputs, line.null)})"


def _abstracts(items: Iterable[Abstract | None], null: str = "<null>") -> str:
    return ", ".join(null if item is None else print_abstract(item) for item in items)


def print_abstract(item: Abstract) -> str:
    """A type with its shape and notes, as ``<Tensor[Float32], (4, 8), value=...>``.

    Args:
        item: of an operand, a result or a parameter.
    """
    shape = "" if item.shape is None else print_shape(item.shape, outermost=True)
    notes = list(item.notes)
    if item.ref_key is not None:
        # Only the value mark stands before the key.
        position = 1 if notes[:1] == ["value=..."] else 0
        notes.insert(position, f"ref_key={item.ref_key_mark}{item.ref_key}")
    return f"<{print_type(item.type)}{shape}{''.join(f', {note}' for note in notes)}>"


def print_type(type: Type) -> str:
    """A type without its shape."""
    match type:
        case ScalarType():
            return type.name
        case TensorType():
            return type.kind if type.element is None else f"{type.kind}[{print_type(type.element)}]"
        case RefType():
            if type.brackets == "()" and isinstance(type.target, TensorType):
                element = type.target.element
                return f"Ref[{type.target.kind}({print_type(element) if element else ''})]"
            return f"Ref[{print_type(type.target)}]"
        case SequenceType():
            if type.runs is None:
                return type.kind
            return f"{type.kind}[{_runs(type.runs)}]"
        case DynamicSequenceType():
            return f"Dynamic {type.kind}[element: {print_type(type.element)}]"
        case FunctionType():
            result = "" if type.result is None else f", {print_type(type.result)}"
            return f"Func[({', '.join(map(print_type, type.arguments))}){result}]"
        case DictionaryType():
            keys = "".join(f"{key}," for key in type.keys)
            return f"Dictionary[[{keys}],[{_runs(type.runs)}]]"
        case OtherType():
            return type.name + type.body


def _runs(runs: tuple[tuple[Type, int | None], ...]) -> str:
    return ",".join(
        print_type(type) if count is None else f"{print_type(type)}*{count}" for type, count in runs
    )


def print_shape(shape: AnyShape, outermost: bool = False) -> str:
    """A shape; the outermost one carries the separator before it."""
    match shape:
        case Shape():
            inner = ", ".join(map(str, shape.dimensions))
            return shape.style % inner
        case NamedShape():
            text = shape.name
        case _:
            opening, closing = shape.brackets
            text = f"{shape.kind}{opening}{', '.join(map(print_shape, shape.items))}{closing}"
    return f", {text}" if outermost else text


# ---- lines around the statements -------------------------------------------------------------


def print_parameter(item: Parameter, null: str = "<null>") -> str:
    """A line of the ``# Params:`` section.

    Args:
        item: a parameter of the entry, or of a graph's head.
        null: what stands for a type that is not there.
    """
    joint, colon = item.spelling
    number = "" if item.number is None else item.number
    text = f"%para{number}{joint}{item.name}{colon}"
    text += null if item.type is None else print_abstract(item.type)
    if item.symbolic is not None:
        text += f" : {item.symbolic}"
    if item.has_default:
        text += "  :  has_default"
    if item.kernel is not None:
        text += f"  :  {item.kernel}"
    return text


def print_parameter_list(item: ParameterList) -> str:
    """The line ``# Parameters: 2, (…)`` of a graph.

    Args:
        item: with the types of the parameters.
    """
    return f"{item.lead}({_abstracts(item.types)})"


def print_head(head: Head) -> str:
    """The line ``subgraph @G(…) {`` that a graph begins with.

    Args:
        head: with the graph's name, parent and parameters.
    """
    opening, comma, close = head.spelling
    parent = "" if head.parent is None else f" parent: [subgraph @{head.parent}]"
    items = comma.join(
        print_parameter(item) if isinstance(item, Parameter) else print_value(item)
        for item in head.parameters
    )
    return f"subgraph @{head.name}{parent}{opening}{items}{close}"


def print_comment(line: CommentLine) -> str:
    """One line of comment as it stands under a statement or in a graph.

    Args:
        line: a scope, a location, a side effect, or a remark.
    """
    match line:
        case Scope():
            name = f"({line.name})" if line.parenthesised else line.name
            return f"{line.indent}{line.label}{name}"
        case Location():
            return f"{line.indent}{line.lead}{line.path}{line.span}{line.source or ''}{line.tail}"
        case SideEffect():
            return f"{line.indent}# SideEffect: {{{''.join(f' {e}' for e in line.effects)} }}"
        case Heading() | Remark():
            return f"{line.indent}{line.text}"
