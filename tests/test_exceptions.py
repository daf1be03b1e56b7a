"""Every exception of irtool travels between processes as it is: workers hand them back."""

from __future__ import annotations

import importlib
import inspect
import pickle
import pkgutil
from collections.abc import Iterator

import irtool


def exceptions() -> Iterator[type[Exception]]:
    for module in pkgutil.walk_packages(irtool.__path__, "irtool."):
        if module.name == "irtool.__main__":
            continue
        try:
            loaded = importlib.import_module(module.name)
        except ModuleNotFoundError:  # of an optional package
            continue
        for _, kind in inspect.getmembers(loaded, inspect.isclass):
            if issubclass(kind, Exception) and kind.__module__ == module.name:
                yield kind


def example(kind: type[Exception]) -> Exception:
    given = {"str": "text", "int": 3, "float": 0.5, "tuple[int, ...]": (1, 2)}
    if kind.__init__ is Exception.__init__ or "__init__" not in vars(kind):
        return kind("text")
    taken = list(inspect.signature(kind).parameters.values())
    return kind(*(given.get(str(each.annotation), "text") for each in taken))


def test_each_survives_a_journey() -> None:
    kinds = list(exceptions())
    assert len(kinds) > 30
    for kind in kinds:
        sent = example(kind)
        arrived = pickle.loads(pickle.dumps(sent))
        assert type(arrived) is kind
        assert str(arrived) == str(sent)
        assert vars(arrived) == vars(sent)
