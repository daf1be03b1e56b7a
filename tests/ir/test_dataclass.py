"""irtool's dataclasses behave as those of the standard library, which cost more to make."""

from __future__ import annotations

import copy
import dataclasses
import inspect
import pickle
from collections.abc import Callable
from dataclasses import FrozenInstanceError, field, fields, replace
from typing import Any, ClassVar

import pytest

from irtool.ir.dataclass import dataclass

Decorator = Callable[..., Any]
DECORATORS = pytest.mark.parametrize(
    "decorator", [dataclasses.dataclass, dataclass], ids=["standard", "ours"]
)


def plain(decorator: Decorator, **options: bool) -> Any:
    @decorator(**options)
    class Plain:
        """Of every kind of field."""

        kind: ClassVar[str] = "plain"
        name: str
        sizes: tuple[int, ...] = ()
        notes: list[str] = field(default_factory=list)
        place: int = field(default=0, compare=False)
        weight: int = field(default=1, hash=False)
        hidden: int = field(default=2, repr=False)
        made: list[int] = field(default_factory=list, init=False, compare=False)
        fixed: int = field(default=7, init=False)
        by_name: int = field(default=3, kw_only=True)

    return Plain


@DECORATORS
@pytest.mark.parametrize("slots", [True, False])
@pytest.mark.parametrize("frozen", [True, False])
class TestOfOneClass:
    def test_values_stand_in_their_fields(
        self, decorator: Decorator, frozen: bool, slots: bool
    ) -> None:
        one = plain(decorator, frozen=frozen, slots=slots)("a", (1,), by_name=4)
        assert dataclasses.asdict(one) == {
            "name": "a",
            "sizes": (1,),
            "notes": [],
            "place": 0,
            "weight": 1,
            "hidden": 2,
            "made": [],
            "fixed": 7,
            "by_name": 4,
        }
        assert hasattr(one, "__dict__") is not slots

    def test_defaults_are_made_anew(self, decorator: Decorator, frozen: bool, slots: bool) -> None:
        made = plain(decorator, frozen=frozen, slots=slots)
        assert made("a").notes is not made("a").notes
        assert made("a").made is not made("a").made

    def test_a_wrong_call_is_refused(self, decorator: Decorator, frozen: bool, slots: bool) -> None:
        made = plain(decorator, frozen=frozen, slots=slots)
        for arguments, named in (
            ((), {}),
            (("a", (), [], 0, 1, 2, 3), {}),
            (("a",), {"fixed": 1}),
        ):
            with pytest.raises(TypeError):
                made(*arguments, **named)

    def test_what_it_looks_like(self, decorator: Decorator, frozen: bool, slots: bool) -> None:
        made = plain(decorator, frozen=frozen, slots=slots)
        assert repr(made("a")).endswith(
            "Plain(name='a', sizes=(), notes=[], place=0, weight=1, made=[], fixed=7, by_name=3)"
        )
        assert str(inspect.signature(made)) == (
            "(name: 'str', sizes: 'tuple[int, ...]' = (), notes: 'list[str]' = <factory>,"
            " place: 'int' = 0, weight: 'int' = 1, hidden: 'int' = 2, *,"
            " by_name: 'int' = 3) -> None"
        )
        assert made.__match_args__ == ("name", "sizes", "notes", "place", "weight", "hidden")
        assert made.__init__.__qualname__ == f"{made.__qualname__}.__init__"

    def test_equal_is_what_is_compared(
        self, decorator: Decorator, frozen: bool, slots: bool
    ) -> None:
        made = plain(decorator, frozen=frozen, slots=slots)
        for _ in range(2):  # what is compiled at the first call stands in at the second
            assert made("a", place=1) == made("a", place=2)
            assert made("a", weight=1) != made("a", weight=2)
            assert made("a") != "a"
            assert made("a") != plain(decorator, frozen=frozen, slots=slots)("a")

    def test_only_what_never_changes_has_a_hash(
        self, decorator: Decorator, frozen: bool, slots: bool
    ) -> None:
        made = plain(decorator, frozen=frozen, slots=slots)
        if not frozen:
            with pytest.raises(TypeError, match="unhashable"):
                hash(made("a"))
            return
        for _ in range(2):
            assert hash(made("a", notes=())) == hash(made("a", notes=(), weight=9, place=9))
            assert hash(made("a", notes=())) == hash(("a", (), (), 2, 7, 3))

    def test_frozen_fields_stay(self, decorator: Decorator, frozen: bool, slots: bool) -> None:
        one = plain(decorator, frozen=frozen, slots=slots)("a")
        if not frozen:
            one.name = "b"
            del one.sizes
            assert one.name == "b"
            return
        with pytest.raises(FrozenInstanceError, match="cannot assign to field 'name'"):
            one.name = "b"
        with pytest.raises(FrozenInstanceError, match="cannot delete field 'name'"):
            del one.name

    def test_copies_are_equal(self, decorator: Decorator, frozen: bool, slots: bool) -> None:
        one = plain(decorator, frozen=frozen, slots=slots)("a", (1,))
        assert copy.copy(one) == one
        assert copy.deepcopy(one) == one
        assert replace(one, name="b").name == "b"
        with pytest.raises((ValueError, TypeError), match="fixed"):  # the latter since 3.13
            replace(one, fixed=1)


@dataclasses.dataclass(frozen=True, slots=True)
class StandardPoint:
    x: int
    y: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Point:
    x: int
    y: tuple[int, ...] = ()


@dataclass(frozen=True)
class WithoutSlots:
    x: int


@pytest.mark.parametrize("one", [StandardPoint(1, (2,)), Point(1, (2,)), WithoutSlots(1)])
@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
def test_instances_travel_between_processes(one: object, protocol: int) -> None:
    if protocol < 2 and not isinstance(one, WithoutSlots):
        return  # slots need __reduce_ex__ of protocol 2, here and there
    assert pickle.loads(pickle.dumps(one, protocol)) == one


@DECORATORS
def test_what_a_class_defines_itself_stays(decorator: Decorator) -> None:
    @decorator(frozen=True, slots=True)
    class Own:
        x: int

        def __init__(self) -> None:
            object.__setattr__(self, "x", 5)

        def __repr__(self) -> str:
            return "own"

        def __eq__(self, other: object) -> bool:
            return True

        def __hash__(self) -> int:
            return 12

    assert Own().x == 5
    assert (repr(Own()), hash(Own()), Own() == 3) == ("own", 12, True)


@DECORATORS
def test_equality_of_its_own_takes_the_hash_of_the_fields(decorator: Decorator) -> None:
    @decorator(frozen=True, slots=True)
    class Same:
        x: int

        def __eq__(self, other: object) -> bool:
            return isinstance(other, Same)

    assert hash(Same(4)) == hash((4,))


@DECORATORS
def test_without_equality_only_an_instance_is_equal_to_itself(decorator: Decorator) -> None:
    @decorator(frozen=True, eq=False, repr=False)
    class Node:
        x: int

    one = Node(1)
    assert one == one
    assert one != Node(1)
    assert len({one, Node(1)}) == 2
    assert repr(one).startswith("<")


@DECORATORS
def test_classes_inherit_fields_and_methods(decorator: Decorator) -> None:
    @decorator(frozen=True, slots=True)
    class Base:
        x: int
        y: int = 1

        def __post_init__(self) -> None:
            if self.x < 0:
                raise ValueError("below 0")

    @decorator(frozen=True, slots=True)
    class Derived(Base):
        y: int = 2
        z: int = 3

    assert [each.name for each in fields(Derived)] == ["x", "y", "z"]
    assert (Derived(0).y, Base(0).y) == (2, 1)
    assert Derived(0) != Base(0)
    assert Derived(0) == Derived(0)
    with pytest.raises(ValueError, match="below 0"):
        Derived(-1)


@DECORATORS
def test_an_instance_in_itself_is_shown(decorator: Decorator) -> None:
    @decorator(slots=True)
    class Ring:
        inner: Any = None

    ring = Ring()
    ring.inner = ring
    assert repr(ring).endswith("Ring(inner=...)")


def test_a_class_below_may_have_attributes_of_its_own() -> None:
    """With slots, the standard library's own check fails with a TypeError here."""

    class Later(Point):
        pass

    later: Any = Later(0)
    later.own = 1
    assert later.own == 1
    del later.own
    with pytest.raises(FrozenInstanceError):
        later.x = 1
    with pytest.raises(FrozenInstanceError):
        Point(0).other = 1  # type: ignore[attr-defined]
    assert later != Point(0)
