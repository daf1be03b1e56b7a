"""What a command's parameters are declared with, and the parser's parameters made of these.

A parameter is annotated as ``Annotated[type, Option(…)]`` or ``Annotated[type, Argument(…)]``.  Of
types there are ``bool``, ``int``, ``float``, ``str``, an Enum of texts, lists of these, and each of
them or ``None``.
"""

from __future__ import annotations

import inspect
import math
import types
from collections.abc import Callable, Sequence
from enum import Enum
from typing import Annotated, Any, Union, cast, get_args, get_origin

import click
from click.shell_completion import CompletionItem

from irtool.ir.dataclass import dataclass

Complete = Callable[[str], Sequence["str | tuple[str, str]"]]
"""What a shell offers for the beginning of a word: texts, or texts and what they mean."""
_FILES = frozenset(
    ("BEGIN", "FILE", "FOLDER", "LEFT RIGHT", "NEW", "OLD", "PATH", "RUN", "SAVED.json", "VALIDATE")
)
"""What stands in a help for the path of a file or folder."""


class _Declared:
    """What options and arguments are declared with alike."""

    def __init__(
        self,
        *,
        metavar: str | None = None,
        help: str = "",
        show_default: bool | str = True,
        complete: Complete | None = None,
    ) -> None:
        self.metavar = metavar
        self.help = help
        self.show_default = show_default
        self.complete = complete


class Argument(_Declared):
    """A parameter without a name: required where it has no default, many where it is a list."""


class Option(_Declared):
    """How a parameter with a name is declared.

    Args:
        names: as they are typed, ``--on/--off`` for both states of a flag; by default the
            parameter's own, and for a flag both states.
        least, most: bounds of a number, which it may reach.
        group: the title in the help below which it stands.
        more: what :class:`Argument` takes, too.
    """

    def __init__(
        self,
        *names: str,
        least: float | None = None,
        most: float | None = None,
        group: str = "",
        **more: Any,
    ) -> None:
        super().__init__(**more)
        self.names = names
        self.least = least
        self.most = most
        self.group = group


class GroupedOption(click.Option):
    """An option that knows below which title its help stands."""

    def __init__(self, *arguments: Any, group: str, **more: Any) -> None:
        super().__init__(*arguments, **more)
        self.group = group


class HelpfulArgument(click.Argument):
    """An argument with a line in the help."""

    def __init__(self, *arguments: Any, help: str, **more: Any) -> None:
        super().__init__(*arguments, **more)
        self.help = help

    def make_metavar(self, ctx: click.Context) -> str:
        name = f"{self.metavar}..." if self.nargs == -1 else str(self.metavar)
        return name if self.required else f"[{name}]"

    def get_error_hint(self, ctx: click.Context | None) -> str:
        return f"'{self.metavar}'"

    def get_help_record(self, ctx: click.Context) -> tuple[str, str]:
        needed = "  [required]" if self.required else ""
        return str(self.metavar), f"{self.help}{needed}"


class _MemberOf(click.Choice[Any]):
    """A value of an Enum of texts, given as that text."""

    def __init__(self, kind: type[Enum]) -> None:
        super().__init__([member.value for member in kind])
        self._kind = kind

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Enum:
        return self._kind(super().convert(value, param, ctx))


class _Integer(click.IntRange):
    """A bounded integer, which is called one where something else was given."""

    name = "integer"


class _Number(click.FloatRange):
    """A bounded number, which is one: NaN lies within all bounds, infinity above most."""

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> float:
        number = super().convert(value, param, ctx)
        if not math.isfinite(number):
            self.fail(f"{value} is no finite number", param, ctx)
        return number


@dataclass(frozen=True, slots=True)
class _Kind:
    """A type as annotated: of one value, how many belong together, and whether any are taken."""

    of_one: Any
    count: int
    is_list: bool


def command_parameters(function: Callable[..., Any]) -> list[click.Parameter]:
    """The parameters of a command as the parser knows them.

    Args:
        function: its signature has no parameter that isn't annotated as above.

    Raises:
        TypeError: a parameter is declared otherwise.
    """
    return [_made(parameter) for parameter in inspect.signature(function).parameters.values()]


def with_lists(function: Callable[..., Any], given: dict[str, Any]) -> dict[str, Any]:
    """What was given, lists as lists; where one is empty, the default of the function.

    Args:
        function: of the command.
        given: what the parser gives, by parameter.
    """
    changed: dict[str, Any] = {}
    for name, parameter in inspect.signature(function).parameters.items():
        if _kind(get_args(parameter.annotation)[0]).is_list:
            usual = None if parameter.default is parameter.empty else parameter.default
            changed[name] = list(given[name]) or usual
    return {**given, **changed}


def _made(parameter: inspect.Parameter) -> click.Parameter:
    if get_origin(parameter.annotation) is not Annotated:
        raise TypeError(f"{parameter.name} is not annotated as a parameter of a command")
    annotated, *notes = get_args(parameter.annotation)
    declared = next((note for note in notes if isinstance(note, _Declared)), None)
    kind = _kind(annotated)
    if isinstance(declared, Option):
        return _option(parameter, declared, kind)
    if isinstance(declared, Argument):
        return _argument(parameter, declared, kind)
    raise TypeError(f"{parameter.name} is neither an option nor an argument")


def _kind(annotated: Any) -> _Kind:
    parts = get_args(annotated) if get_origin(annotated) in (Union, types.UnionType) else ()
    one = next((part for part in parts if part is not type(None)), annotated)
    of = get_args(one)
    if get_origin(one) is tuple:
        return _Kind(of[0], len(of), is_list=False)
    is_list = get_origin(one) is list
    return _Kind(of[0] if is_list else one, 1, is_list)


def _option(parameter: inspect.Parameter, declared: Option, kind: _Kind) -> click.Option:
    is_flag = kind.of_one is bool
    default = _default(parameter)
    return GroupedOption(
        [parameter.name, *_names(parameter.name, declared, is_flag)],
        type=None if is_flag else _type(kind.of_one, declared),
        is_flag=is_flag,
        nargs=kind.count,
        multiple=kind.is_list,
        required=parameter.default is parameter.empty,
        default=default,
        metavar=declared.metavar,
        help=declared.help,
        show_default=declared.show_default,
        shell_complete=_completer(declared),
        group=declared.group,
    )


def _names(name: str, declared: Option, is_flag: bool) -> tuple[str, ...]:
    if declared.names:
        return declared.names
    word = name.replace("_", "-")
    return (f"--{word}/--no-{word}",) if is_flag else (f"--{word}",)


def _argument(parameter: inspect.Parameter, declared: Argument, kind: _Kind) -> click.Argument:
    is_required = parameter.default is parameter.empty
    return HelpfulArgument(
        [parameter.name],
        type=_type(kind.of_one, None),
        nargs=-1 if kind.is_list else 1,
        required=is_required,
        **({} if is_required else {"default": _default(parameter)}),
        metavar=declared.metavar or parameter.name.upper(),
        help=declared.help,
        shell_complete=_completer(declared),
    )


def _default(parameter: inspect.Parameter) -> Any:
    value: Any = parameter.default
    if value is parameter.empty or value == [] or value == ():
        return None
    return value.value if isinstance(value, Enum) else value


def _type(kind: Any, declared: Option | None) -> Any:
    if isinstance(kind, type) and issubclass(kind, Enum):
        return _MemberOf(kind)
    least, most = (None, None) if declared is None else (declared.least, declared.most)
    if least is None and most is None:
        return cast("object", kind)
    if kind is float:
        return _Number(least, most)
    return _Integer(None if least is None else int(least), None if most is None else int(most))


def _completer(declared: _Declared) -> Any:
    offered = declared.complete
    has_files = not _FILES.isdisjoint((declared.metavar or "").split("|"))
    if offered is None and not has_files:
        return None

    def items(ctx: click.Context, param: click.Parameter, word: str) -> list[CompletionItem]:
        given = offered(word) if offered is not None else ()
        pairs = [(offer, "") if isinstance(offer, str) else offer for offer in given]
        names = [CompletionItem(text, help=meaning or None) for text, meaning in pairs]
        return [*files(word), *names] if has_files else names

    return items


def files(word: str) -> list[CompletionItem]:
    """Let the shell offer its files; bash does where no name is offered behind them.

    Args:
        word: what was typed of it.
    """
    return [CompletionItem(word, type="file")]
