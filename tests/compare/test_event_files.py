"""Losses of TensorBoard's event files; TensorBoard itself is stood in for by what it gives."""

from __future__ import annotations

import struct
import sys
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from irtool.compare.losses.read import read_loss
from irtool.compare.losses.series import NoLoss

MODULE = "tensorboard.backend.event_processing.event_accumulator"
Curve = dict[int, float]


def packed(value: float) -> Any:
    return SimpleNamespace(float_val=[], tensor_content=struct.pack("<f", value))


def plain(value: float) -> Any:
    return SimpleNamespace(float_val=[value], tensor_content=b"")


TEXT = SimpleNamespace(float_val=[], tensor_content=b"")


@dataclass
class Events:
    """What an event file holds."""

    scalars: dict[str, Curve] = field(default_factory=dict[str, Curve])
    tensors: dict[str, dict[int, Any]] = field(default_factory=dict[str, dict[int, Any]])
    broken: str = ""
    guidance: dict[str, int] = field(default_factory=dict[str, int])

    def Reload(self) -> None:  # noqa: N802 - as TensorBoard calls it
        if self.broken:
            raise RuntimeError(self.broken)

    def Tags(self) -> dict[str, list[str]]:  # noqa: N802
        return {"scalars": list(self.scalars), "tensors": list(self.tensors)}

    def Scalars(self, tag: str) -> list[Any]:  # noqa: N802
        return [SimpleNamespace(step=s, value=v) for s, v in self.scalars[tag].items()]

    def Tensors(self, tag: str) -> list[Any]:  # noqa: N802
        return [SimpleNamespace(step=s, tensor_proto=v) for s, v in self.tensors[tag].items()]


@pytest.fixture
def path(tmp_path: Path) -> str:
    file = tmp_path / "events.out.tfevents.1700000000.host"
    file.write_bytes(b"")
    return str(file)


def give(monkeypatch: pytest.MonkeyPatch, events: Events) -> Events:
    def made(path: str, size_guidance: dict[str, int]) -> Events:
        events.guidance = size_guidance
        return events

    parts = MODULE.split(".")
    for length in range(1, len(parts)):
        monkeypatch.setitem(sys.modules, ".".join(parts[:length]), ModuleType(parts[length - 1]))
    module = ModuleType(MODULE)
    module.EventAccumulator = made  # type: ignore[attr-defined]  # the stand-in
    monkeypatch.setitem(sys.modules, MODULE, module)
    return events


def test_scalars_called_loss_are_the_curve(monkeypatch: pytest.MonkeyPatch, path: str) -> None:
    events = give(monkeypatch, Events({"lr": {0: 1e-3}, "Loss": {0: 2.5, 10: 1.5}}))
    found = read_loss(path)
    assert (found.kind, dict(found.loss.values)) == ("event file", {0: 2.5, 10: 1.5})
    # Everything is kept: by itself TensorBoard keeps a sample of a long curve.
    assert events.guidance == {"scalars": 0, "tensors": 0}


@pytest.mark.parametrize("form", [packed, plain])
def test_newer_writers_keep_scalars_as_tensors(
    form: Any, monkeypatch: pytest.MonkeyPatch, path: str
) -> None:
    tensors = {"loss": {0: form(2.5), 1: form(1.5)}, "loss note": {0: TEXT}}
    give(monkeypatch, Events(tensors=tensors))
    assert dict(read_loss(path).loss.values) == {0: 2.5, 1: 1.5}


def test_of_several_the_training_loss_with_the_shortest_name_is_meant(
    monkeypatch: pytest.MonkeyPatch, path: str
) -> None:
    tags = ("loss", "eval/loss", "train/loss/total", "train/loss", "train/loss_scale")
    scalars = {tag: {0: float(number)} for number, tag in enumerate(tags)}
    give(monkeypatch, Events(scalars))
    assert dict(read_loss(path).loss.values) == {0: 3.0}
    del scalars["train/loss"], scalars["train/loss/total"]
    assert dict(read_loss(path).loss.values) == {0: 0.0}


def test_without_a_loss_what_there_is_is_told(monkeypatch: pytest.MonkeyPatch, path: str) -> None:
    give(monkeypatch, Events({"lr": {0: 1e-3}, "loss_scale": {0: 1024.0}}))
    with pytest.raises(NoLoss, match="no scalar is called loss; there are: lr, loss_scale"):
        read_loss(path)
    give(monkeypatch, Events())
    with pytest.raises(NoLoss, match="there are: none"):
        read_loss(path)


def test_what_tensorboard_can_not_read_is_said(monkeypatch: pytest.MonkeyPatch, path: str) -> None:
    give(monkeypatch, Events(broken="truncated record"))
    with pytest.raises(NoLoss, match="TensorBoard cannot read it: truncated record"):
        read_loss(path)
