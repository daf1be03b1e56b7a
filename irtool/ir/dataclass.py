"""``dataclass`` as of the standard library, in a quarter of the time that making a class takes.

Some 300 classes are made whenever a command starts, and the standard library compiles six functions
for each, one by one: a third of all that a short command does.  Here the standard library collects
the fields and lays the slots; of the functions, only ``__init__`` is compiled at once, those that
compare when they are first called, and the others are shared.  What is not used in irtool
(``order``, ``InitVar``, …) is not offered.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from reprlib import recursive_repr
from typing import TYPE_CHECKING, Any, cast

_Fields = Sequence[dataclasses.Field[Any]]


class _MadeAnew:
    """Stands in a signature for a default that is made for each instance."""

    def __repr__(self) -> str:
        return "<factory>"


_MADE_ANEW = _MadeAnew()


def _dataclass(
    cls: type | None = None,
    /,
    *,
    frozen: bool = False,
    slots: bool = False,
    eq: bool = True,
    repr: bool = True,
) -> Any:
    """Make a class a dataclass: as :func:`dataclasses.dataclass`, where its arguments are told."""

    def made_of(cls: type) -> type:
        own = {name for name, value in vars(cls).items() if value is not None}
        own.update(() if repr else ("__repr__",))
        if not cls.__doc__:
            cls.__doc__ = cls.__name__  # else the standard library works the signature out
        collect = dataclasses.dataclass(init=False, repr=False, eq=False, slots=slots)
        made = cast("type", collect(cls))
        for name, method in _methods(made, frozen, slots, eq).items():
            if name not in own:
                setattr(made, name, method)
        return made

    return made_of if cls is None else made_of(cls)


if TYPE_CHECKING:
    from dataclasses import dataclass as dataclass
else:
    dataclass = _dataclass


def _methods(cls: type, frozen: bool, slots: bool, eq: bool) -> dict[str, Any]:
    """The methods that a dataclass gets, by name."""
    fields = dataclasses.fields(cls)
    methods: dict[str, Any] = {"__init__": _init(cls, fields, frozen), "__repr__": _repr}
    if eq:
        methods["__eq__"] = _equality(cls, fields)
        methods["__hash__"] = _hash(cls, fields) if frozen else None
    if frozen:
        methods["__setattr__"], methods["__delattr__"] = _refusals(cls, fields)
        if slots:
            methods["__getstate__"], methods["__setstate__"] = _state, _set_state
    return methods


def _init(cls: type, fields: _Fields, frozen: bool) -> Callable[..., None]:
    """``__init__``; parameters that go by name alone stand last."""
    names: dict[str, Any] = {"_set": object.__setattr__, "_MADE_ANEW": _MADE_ANEW}
    parameters = ["self"]
    lines: list[str] = []
    for field in sorted(fields, key=lambda field: bool(field.kw_only)):
        name = field.name
        default = _default_name(field, names)
        if field.init:
            if field.kw_only and "*" not in parameters:
                parameters.append("*")
            parameters.append(f"{name}={default}" if default else name)
            value = name
            if default == "_MADE_ANEW":
                value = f"_make_{name}() if {name} is _MADE_ANEW else {name}"
        elif default:
            value = f"_make_{name}()" if default == "_MADE_ANEW" else default
        else:
            continue
        lines.append(f"_set(self, {name!r}, {value})" if frozen else f"self.{name} = {value}")
    if hasattr(cls, "__post_init__"):
        lines.append("self.__post_init__()")
    source = f"def __init__({', '.join(parameters)}):\n " + "\n ".join(lines or ["pass"])
    init = _compiled(cls, source, names)
    init.__annotations__ = {field.name: field.type for field in fields if field.init}
    init.__annotations__["return"] = None
    return init


def _default_name(field: dataclasses.Field[Any], names: dict[str, Any]) -> str:
    """What a field's default is called in compiled text, "" without one; its value is noted."""
    if field.default_factory is not dataclasses.MISSING:
        names[f"_make_{field.name}"] = field.default_factory
        return "_MADE_ANEW"
    if field.default is dataclasses.MISSING:
        return ""
    names[f"_default_{field.name}"] = field.default
    return f"_default_{field.name}"


def _compiled(cls: type, source: str, names: Mapping[str, Any] | None = None) -> Callable[..., Any]:
    """The only function that a text defines, as a method of a class."""
    made: dict[str, Any] = {}
    exec(source, {"__name__": cls.__module__, **(names or {})}, made)
    (method,) = made.values()
    method.__qualname__ = f"{cls.__qualname__}.{method.__name__}"
    return cast("Callable[..., Any]", method)


def _equality(cls: type, fields: _Fields) -> Callable[[Any, object], Any]:
    """``__eq__``, which takes its own place when it is first called."""

    def __eq__(self: Any, other: object) -> Any:  # noqa: N807 - it is this method
        names = [field.name for field in fields if field.compare]
        source = (
            "def __eq__(self, other):\n"
            " if other.__class__ is self.__class__:\n"
            f"  return {_values('self', names)} == {_values('other', names)}\n"
            " return NotImplemented"
        )
        compiled = _compiled(cls, source)
        cls.__eq__ = compiled
        return compiled(self, other)

    return __eq__


def _hash(cls: type, fields: _Fields) -> Callable[[Any], int]:
    """``__hash__``, which takes its own place when it is first called."""

    def __hash__(self: Any) -> int:  # noqa: N807 - it is this method
        names = [
            field.name for field in fields if (field.compare if field.hash is None else field.hash)
        ]
        compiled = _compiled(cls, f"def __hash__(self):\n return hash({_values('self', names)})")
        cls.__hash__ = compiled
        return compiled(self)

    return __hash__


def _values(of: str, names: Sequence[str]) -> str:
    """The tuple of some attributes, as text."""
    return f"({''.join(f'{of}.{name},' for name in names)})"


def _refusals(cls: type, fields: _Fields) -> tuple[Callable[..., None], Callable[..., None]]:
    """``__setattr__`` and ``__delattr__`` of a class whose instances don't change."""
    names = frozenset(field.name for field in fields)

    def __setattr__(self: Any, name: str, value: object) -> None:  # noqa: N807 - it is this method
        if type(self) is cls or name in names:
            raise dataclasses.FrozenInstanceError(f"cannot assign to field {name!r}")
        super(cls, self).__setattr__(name, value)

    def __delattr__(self: Any, name: str) -> None:  # noqa: N807 - it is this method
        if type(self) is cls or name in names:
            raise dataclasses.FrozenInstanceError(f"cannot delete field {name!r}")
        super(cls, self).__delattr__(name)

    return __setattr__, __delattr__


@recursive_repr()
def _repr(self: Any) -> str:
    shown = (field for field in dataclasses.fields(self) if field.repr)
    values = ", ".join(f"{field.name}={getattr(self, field.name)!r}" for field in shown)
    return f"{self.__class__.__qualname__}({values})"


def _state(self: Any) -> list[Any]:
    """What is pickled of an instance with slots."""
    return [getattr(self, field.name) for field in dataclasses.fields(self)]


def _set_state(self: Any, state: Sequence[Any]) -> None:
    for field, value in zip(dataclasses.fields(self), state, strict=True):
        object.__setattr__(self, field.name, value)
