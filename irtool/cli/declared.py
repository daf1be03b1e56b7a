"""Options that are declared once, as fields of a frozen dataclass, and passed whole."""

from __future__ import annotations

import dataclasses
import functools
import inspect
import typing
from collections.abc import Callable, Mapping, Sequence
from typing import Annotated, Any, TypeVar, get_args, get_origin

T = TypeVar("T")


def with_options(options: type[Any], name: str = "options") -> Callable[[T], T]:
    """A function of a command whose parameter ``name`` is given field by field.

    Args:
        options: a dataclass; its fields are annotated as parameters of commands are, and have
            defaults.
        name: the function's parameter that gets one.
    """
    fields = parameters_of(options)

    def gathered(arguments: dict[str, Any]) -> Any:
        return options(**{field: arguments.pop(field) for field in fields})

    return lambda function: given_by_parts(function, name, list(fields.values()), gathered)


def given_by_parts(
    function: Any,
    name: str,
    parts: Sequence[inspect.Parameter],
    gathered: Callable[[dict[str, Any]], Any],
) -> Any:
    """The function with several parameters in the place of one.

    Args:
        function: of a command.
        name: its parameter that is made of others.
        parts: those that stand there instead.
        gathered: takes them out of what was given, and makes the one.
    """

    @functools.wraps(function)
    def wrapped(**arguments: Any) -> Any:
        made = gathered(arguments)
        return function(**arguments, **{name: made})

    # Not typing.get_type_hints: up to Python 3.10 it hides an option whose default is None.
    declared = inspect.signature(function, eval_str=True).parameters
    shown = [part for own in declared.values() for part in (parts if own.name == name else [own])]
    return with_signature(wrapped, shown)


def with_signature(function: Any, parameters: Sequence[inspect.Parameter]) -> Any:
    """The function, which takes anything by name, with a signature to read its parameters from.

    Args:
        function: that is changed, and returned.
        parameters: with their annotations; they become keyword-only.
    """
    kind = inspect.Parameter.KEYWORD_ONLY
    shown = [parameter.replace(kind=kind) for parameter in parameters]
    function.__annotations__ = {parameter.name: parameter.annotation for parameter in shown} | {
        "return": int
    }
    function.__signature__ = inspect.Signature(shown)
    return function


def parameters_of(options: type[Any]) -> dict[str, inspect.Parameter]:
    """The fields of a dataclass as parameters of a command, its own before inherited ones."""
    hints = typing.get_type_hints(options, include_extras=True)
    kind = inspect.Parameter.KEYWORD_ONLY
    bases = filter(dataclasses.is_dataclass, options.__mro__[1:])
    inherited = {field.name for base in bases for field in dataclasses.fields(base)}
    return {
        field.name: inspect.Parameter(
            field.name, kind, default=field.default, annotation=hints[field.name]
        )
        for field in sorted(dataclasses.fields(options), key=lambda field: field.name in inherited)
    }


def notes_of(options: type[Any], kind: type[T]) -> Mapping[str, T]:
    """By field what stands of some kind in its annotation, beside the option itself.

    Args:
        options: a class of options.
        kind: the class of what is looked for, ``Option`` or another note.

    Returns:
        Fields without one are left out.
    """
    by_field: dict[str, T] = {}
    for name, hint in typing.get_type_hints(options, include_extras=True).items():
        if get_origin(hint) is Annotated:
            by_field |= [(name, note) for note in get_args(hint)[1:] if isinstance(note, kind)]
    return by_field
