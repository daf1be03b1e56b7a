"""Small changes of meaning in Python source: what the tests of a module should notice.

Each is a replacement of some bytes of the source, so that a survivor can be shown as the change a
person would have made.  Left alone is what has no meaning to test: texts, annotations, docstrings,
``__all__``, what only the type checker sees, the arguments of raised errors, and assertions, of
which ``strict=`` of ``zip`` is one.
"""

from __future__ import annotations

import ast
import re
from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise


@dataclass(frozen=True, slots=True)
class Mutant:
    """One change of one file.

    Attributes:
        file: relative to the root, with forward slashes.
        line: where the changed text begins, from 1.
        function: dotted name of the function or class around it, "" at the top of the module.
        operator: the kind of change.
        start: offset of the changed bytes in the source.
        before: text that stands there.
        after: text in its place.
        at_import: runs once when the module is imported, rather than whenever a function is called.
    """

    file: str
    line: int
    function: str
    operator: str
    start: int
    before: str
    after: str
    at_import: bool

    @property
    def key(self) -> str:
        """Names the mutant as long as the file does not change."""
        return f"{self.file}:{self.start}:{self.before}:{self.after}"

    def apply(self, source: bytes) -> bytes:
        """The source of the file with the change."""
        before = self.before.encode()
        end = self.start + len(before)
        if source[self.start : end] != before:
            raise ValueError(f"{self.file}:{self.line}: not the source the mutant was made for")
        return source[: self.start] + self.after.encode() + source[end:]


COMPARISONS: dict[type[ast.cmpop], tuple[str, tuple[str, ...]]] = {
    ast.Lt: ("<", ("<=", ">=")),
    ast.LtE: ("<=", ("<", ">")),
    ast.Gt: (">", (">=", "<=")),
    ast.GtE: (">=", (">", "<")),
    ast.Eq: ("==", ("!=",)),
    ast.NotEq: ("!=", ("==",)),
    ast.Is: ("is", ("is not",)),
    ast.IsNot: ("is not", ("is",)),
    ast.In: ("in", ("not in",)),
    ast.NotIn: ("not in", ("in",)),
}

ARITHMETIC: dict[type[ast.operator], tuple[str, str]] = {
    ast.Add: ("+", "-"),
    ast.Sub: ("-", "+"),
    ast.Mult: ("*", "//"),
    ast.Div: ("/", "*"),
    ast.FloorDiv: ("//", "*"),
    ast.Mod: ("%", "//"),
    ast.BitOr: ("|", "&"),
    ast.BitAnd: ("&", "|"),
}

OPPOSITES = {"min": "max", "max": "min", "any": "all", "all": "any", "ceil": "floor"}
METHODS = {
    "startswith": "endswith",
    "endswith": "startswith",
    "union": "intersection",
    "issubset": "issuperset",
    "issuperset": "issubset",
}
KEYWORDS = {"key", "default", "reverse", "initial", "maxsplit", "start"}
"""Arguments of library functions without which the call still works."""


def mutants_of(source: bytes, file: str) -> list[Mutant]:
    """All mutants of a module, in the order of the text."""
    found = dict.fromkeys(_Finder(source, file).module(ast.parse(source)))
    return sorted(
        (mutant for mutant in found if mutant.before != mutant.after),
        key=lambda mutant: (mutant.start, mutant.before, mutant.after),
    )


class _Finder:
    """Walks a module and yields the mutants of every node that has some."""

    def __init__(self, source: bytes, file: str) -> None:
        self.source = source
        self.file = file
        self.starts = [0]
        for line in source.splitlines(keepends=True):
            self.starts.append(self.starts[-1] + len(line))
        self.scope: tuple[str, ...] = ()
        self.functions = 0

    # -- positions ---------------------------------------------------------------------------

    def begin(self, node: ast.expr | ast.stmt) -> int:
        return self.starts[node.lineno - 1] + node.col_offset

    def end(self, node: ast.expr | ast.stmt) -> int:
        assert node.end_lineno is not None
        assert node.end_col_offset is not None
        return self.starts[node.end_lineno - 1] + node.end_col_offset

    def text(self, node: ast.expr | ast.stmt) -> str:
        return self.source[self.begin(node) : self.end(node)].decode()

    def change(self, operator: str, start: int, before: str, after: str) -> Mutant:
        line = bisect_right(self.starts, start)
        scope = ".".join(self.scope)
        return Mutant(self.file, line, scope, operator, start, before, after, not self.functions)

    def replace(self, operator: str, node: ast.expr | ast.stmt, after: str) -> Mutant:
        return self.change(operator, self.begin(node), self.text(node), after)

    # -- the walk ----------------------------------------------------------------------------

    def module(self, tree: ast.Module) -> Iterator[Mutant]:
        yield from self.body(tree.body)

    def body(self, statements: list[ast.stmt]) -> Iterator[Mutant]:
        for statement in statements:
            yield from self.statement(statement)

    def statement(self, node: ast.stmt) -> Iterator[Mutant]:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield from self.function(node)
        elif isinstance(node, ast.ClassDef):
            self.scope = (*self.scope, node.name)
            yield from self.body(node.body)
            self.scope = self.scope[:-1]
        elif not self.is_left_alone(node):
            yield from self.changed_statement(node)
            for value in ast.iter_child_nodes(node):
                yield from self.child(value, node)

    def is_left_alone(self, node: ast.stmt) -> bool:
        if isinstance(node, ast.If):
            return "TYPE_CHECKING" in self.text(node.test)
        if isinstance(node, ast.AnnAssign):
            return "TypeAlias" in self.text(node.annotation)
        if isinstance(node, ast.Assign):
            return not _names(node.targets).isdisjoint({"__all__", "__slots__"})
        return isinstance(node, ast.Raise | ast.Assert | ast.Import | ast.ImportFrom)

    def child(self, node: ast.AST, parent: ast.AST) -> Iterator[Mutant]:
        """What changes in a node below a statement or an expression."""
        if isinstance(node, ast.stmt):
            yield from self.statement(node)
        elif isinstance(node, ast.expr):
            if isinstance(parent, ast.AnnAssign) and node is parent.annotation:
                return
            yield from self.expression(node, parent)
        elif isinstance(node, ast.keyword) and node.arg == "strict":
            return
        else:  # handlers, cases, arguments, comprehensions
            if isinstance(node, ast.comprehension):
                for test in node.ifs:
                    yield self.replace("condition", test, "True")
            for inner in ast.iter_child_nodes(node):
                yield from self.child(inner, node)

    def function(self, node: ast.FunctionDef | ast.AsyncFunctionDef) -> Iterator[Mutant]:
        defaults = [value for value in (*node.args.defaults, *node.args.kw_defaults) if value]
        for value in defaults:
            yield from self.expression(value, node)
        self.scope = (*self.scope, node.name)
        self.functions += 1
        returns = self.text(node.returns) if node.returns else ""
        for statement in ast.walk(node):
            if isinstance(statement, ast.Return) and statement.value is not None:
                yield from self.returned(statement.value, returns)
        yield from self.body(node.body)
        self.functions -= 1
        self.scope = self.scope[:-1]

    def returned(self, value: ast.expr, returns: str) -> Iterator[Mutant]:
        text = self.text(value)
        if isinstance(value, ast.Constant):
            return
        if returns == "bool":
            yield self.replace("returned", value, f"not ({text})")
        elif returns.endswith("| None"):
            yield self.replace("returned", value, "None")
        elif returns.startswith(("list[", "Iterator[", "Sequence[", "tuple[")) and "..." in returns:
            yield self.replace("returned", value, "()")
        elif returns.startswith("dict["):
            yield self.replace("returned", value, "{}")

    # -- statements --------------------------------------------------------------------------

    def changed_statement(self, node: ast.stmt) -> Iterator[Mutant]:
        if isinstance(node, ast.If):
            for value in ("True", "False"):
                yield self.replace("condition", node.test, value)
        elif isinstance(node, ast.While) and not isinstance(node.test, ast.Constant):
            yield self.replace("condition", node.test, "False")
        elif _acts(node):
            yield self.replace("deleted", node, "pass")
        if isinstance(node, ast.AugAssign):
            yield from self.operator_between(node.target, node.op, node.value, "arithmetic", "=")

    # -- expressions -------------------------------------------------------------------------

    def expression(self, node: ast.expr, parent: ast.AST) -> Iterator[Mutant]:
        if isinstance(node, ast.JoinedStr):  # positions inside it are not those of the file
            return
        if isinstance(node, ast.Subscript) and _is_type(self.text(node.value)):
            return
        yield from self.changed(node, parent)
        if isinstance(node, ast.Call) and _called(node) in ("cast", "TypeVar", "isinstance"):
            return
        for inner in ast.iter_child_nodes(node):
            yield from self.child(inner, node)

    def changed(self, node: ast.expr, parent: ast.AST) -> Iterator[Mutant]:
        if isinstance(node, ast.Compare):
            left = node.left
            for op, right in zip(node.ops, node.comparators, strict=True):
                yield from self.comparison(left, op, right, isinstance(parent, ast.If | ast.IfExp))
                left = right
        elif isinstance(node, ast.BinOp):
            if not (_is_text(node.left) or _is_text(node.right)):
                yield from self.operator_between(node.left, node.op, node.right, "arithmetic")
        elif isinstance(node, ast.BoolOp):
            yield from self.connective(node)
        elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
            yield self.replace("not", node, f"({self.text(node.operand)})")
        elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
            yield self.replace("sign", node, self.text(node.operand))
        elif isinstance(node, ast.IfExp):
            for value in ("True", "False"):
                yield self.replace("condition", node.test, value)
        elif isinstance(node, ast.Constant):
            yield from self.constant(node, parent)
        elif isinstance(node, ast.Call):
            yield from self.call(node)
        elif isinstance(node, ast.Dict | ast.Set | ast.List | ast.Tuple):
            yield from self.entries(node, parent)

    def comparison(
        self, left: ast.expr, op: ast.cmpop, right: ast.expr, is_whole_condition: bool
    ) -> Iterator[Mutant]:
        spelled, others = COMPARISONS[type(op)]
        start = self.end(left)
        between = self.source[start : self.begin(right)].decode()
        match = re.fullmatch(rf"[\s)]*({spelled.replace(' ', ' +')})[\s(]*", between)
        if match:
            # A condition always true and one always false stand for its opposite.
            for other in others[:-1] if is_whole_condition else others:
                yield self.change("compare", start + match.start(1), match[1], other)

    def operator_between(
        self, left: ast.expr, op: ast.operator, right: ast.expr, kind: str, suffix: str = ""
    ) -> Iterator[Mutant]:
        if type(op) not in ARITHMETIC:
            return
        spelled, other = ARITHMETIC[type(op)]
        start = self.end(left)
        between = self.source[start : self.begin(right)].decode()
        match = re.fullmatch(rf"[\s)]*({re.escape(spelled + suffix)})[\s(]*", between)
        if match:
            yield self.change(kind, start + match.start(1), match[1], other + suffix)

    def connective(self, node: ast.BoolOp) -> Iterator[Mutant]:
        # Each operand left out is harder to notice than `or` in the place of `and`.
        spelled = "and" if isinstance(node.op, ast.And) else "or"
        texts = [f"({self.text(value)})" for value in node.values]
        for skipped in range(len(texts)):
            rest = texts[:skipped] + texts[skipped + 1 :]
            yield self.replace("dropped condition", node, f"({f' {spelled} '.join(rest)})")

    def constant(self, node: ast.Constant, parent: ast.AST) -> Iterator[Mutant]:
        value: object = node.value
        if isinstance(value, bool):
            yield self.replace("boolean", node, str(not value))
        elif isinstance(value, int):
            yield self.replace("constant", node, str(value + 1))
            if value > 1 and isinstance(parent, ast.Compare):
                yield self.replace("constant", node, str(value - 1))
        elif isinstance(value, float):
            for factor in (4, 0.25):
                changed = value * factor if value else float(factor)
                yield self.replace("constant", node, repr(changed))

    def call(self, node: ast.Call) -> Iterator[Mutant]:
        name = _called(node)
        function = node.func
        if isinstance(function, ast.Name) and name in OPPOSITES:
            yield self.replace("opposite", function, OPPOSITES[name])
        elif isinstance(function, ast.Attribute) and name in METHODS:
            at = self.end(function) - len(name)
            yield self.change("opposite", at, name, METHODS[name])
        if isinstance(function, ast.Name) and len(node.args) == 1:
            values = f"({self.text(node.args[0])})"
            if name == "sorted" and not any(word.arg == "reverse" for word in node.keywords):
                words = "".join(f", {self.keyword(word)}" for word in node.keywords)
                yield self.replace("order", node, f"sorted({values}{words}, reverse=True)")
            # A set of written entries is asked for membership, which a list answers alike.
            is_written = isinstance(node.args[0], ast.Tuple | ast.List | ast.Set)
            if name in ("reversed", "sorted", "abs", "set", "frozenset", "sum") and not is_written:
                kept = {"abs": "", "sum": "max"}.get(name, "list")
                yield self.replace("left out", node, f"{kept}{values}")
        for word in node.keywords:
            if word.arg in KEYWORDS and name != "field":
                yield from self.without_keyword(node, word)

    def keyword(self, word: ast.keyword) -> str:
        return f"{word.arg}={self.text(word.value)}" if word.arg else f"**{self.text(word.value)}"

    def without_keyword(self, node: ast.Call, word: ast.keyword) -> Iterator[Mutant]:
        values = [*node.args, *(other.value for other in node.keywords)]
        index = values.index(word.value)
        if index:
            start, end = self.end(values[index - 1]), self.end(word.value)
            yield self.change("argument", start, self.source[start:end].decode(), "")

    def entries(
        self, node: ast.Dict | ast.Set | ast.List | ast.Tuple, parent: ast.AST
    ) -> Iterator[Mutant]:
        """Tables without one of their entries, or with the values of two neighbours swapped."""
        if isinstance(node, ast.Dict):
            if any(key is None for key in node.keys):
                return
            pairs = [(key, value) for key, value in zip(node.keys, node.values, strict=True) if key]
            spans = [(self.begin(key), self.end(value)) for key, value in pairs]
            for (_, one), (_, other) in pairwise(pairs):
                if self.functions or (_is_prose(one) and _is_prose(other)):
                    continue
                if self.text(one) != self.text(other):
                    before = self.source[self.begin(one) : self.end(other)].decode()
                    middle = self.source[self.end(one) : self.begin(other)].decode()
                    after = self.text(other) + middle + self.text(one)
                    yield self.change("swapped", self.begin(one), before, after)
        else:
            if self.functions and not isinstance(parent, ast.Compare | ast.Call):
                return
            if isinstance(parent, ast.Call) and _called(parent) not in ("frozenset", "set"):
                return
            if isinstance(getattr(node, "ctx", None), ast.Store):
                return
            spans = [(self.begin(item), self.end(item)) for item in node.elts]
        if len(spans) < 2:
            return
        for index in range(len(spans)):
            start = spans[index][0] if index == 0 else spans[index - 1][1]
            end = spans[1][0] if index == 0 else spans[index][1]
            # One entry alone is a tuple only with its comma.
            rest = self.source[spans[-1][1] :].lstrip()
            is_pair = isinstance(node, ast.Tuple) and len(spans) == 2
            after = "," if is_pair and not rest.startswith(b",") else ""
            cut = self.source[start:end].decode()
            if cut.count("(") == cut.count(")") and not (is_pair and index == 0):
                yield self.change("entry", start, cut, after)


def _is_type(name: str) -> bool:
    """Whether what stands in brackets behind it says a type, which nothing looks at."""
    return name.endswith("Literal") or name in _GENERIC


_GENERIC = frozenset(
    ("dict", "list", "set", "tuple", "frozenset", "type", "defaultdict", "Counter", "deque")
)


def _called(node: ast.Call) -> str:
    function = node.func
    if isinstance(function, ast.Name):
        return function.id
    return function.attr if isinstance(function, ast.Attribute) else ""


def _names(targets: list[ast.expr]) -> set[str]:
    return {target.id for target in targets if isinstance(target, ast.Name)}


def _acts(node: ast.stmt) -> bool:
    """Whether the rest still runs without the statement."""
    if isinstance(node, ast.Expr):
        return isinstance(node.value, ast.Call)
    if isinstance(node, ast.Assign):
        return any(isinstance(item, ast.Subscript | ast.Attribute) for item in node.targets)
    return isinstance(node, ast.Continue | ast.Break | ast.AugAssign)


def _is_prose(node: ast.expr) -> bool:
    """Whether it is a text of several words, which is there to be read."""
    return isinstance(node, ast.Constant) and isinstance(node.value, str) and " " in node.value


def _is_text(node: ast.expr) -> bool:
    """Whether the other arithmetic would only ever be an error of types."""
    if isinstance(node, ast.BinOp):
        return _is_text(node.left) or _is_text(node.right)
    is_text = isinstance(node, ast.Constant) and isinstance(node.value, str | bytes | None)
    return is_text or isinstance(node, ast.JoinedStr | ast.List | ast.Tuple | ast.ListComp)
