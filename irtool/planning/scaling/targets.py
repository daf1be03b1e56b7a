"""What each factor becomes where some roles get other sizes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from fractions import Fraction

from irtool.ir.dataclass import dataclass
from irtool.planning.scaling.roles import MEANINGS, NAMES, Role, Roles
from irtool.planning.scaling.sizes import Product, Sizes
from irtool.planning.search.operator_candidates import CannotPlan


@dataclass(frozen=True, slots=True)
class Targets:
    """What factors and sizes become in the scaled network.

    Attributes:
        factors: new numbers of factors that change, or were asked about.
        sizes: of each role, before and after.
    """

    factors: Mapping[int, int]
    sizes: Mapping[str, tuple[int, int]]


def wanted_sizes(roles: Roles, asked: Mapping[str, int]) -> dict[str, int]:
    """The size of every role: those that are asked for, what grows with them, and the rest.

    ``hidden`` keeps the head size unless heads are named, too: heads grow with it, heads of keys
    and values with the heads, and the feed-forward size with it.

    Raises:
        CannotPlan: a role is not there, or can't grow as much.
    """
    for name, size in asked.items():
        if size < 1:
            raise CannotPlan(f"--scale {name}={size}: a size is at least 1")
        roles.role(name)
    sizes = {name: role.size for name, role in roles.known.items()}
    sizes |= asked

    def grown(name: str, ratio: Fraction, why: str) -> None:
        if ratio == 1 or name in asked:
            return
        if name not in roles.known and name not in roles.open:
            return
        made = roles.role(name).size * ratio
        if made.denominator != 1:
            raise CannotPlan(
                f"{name} is {roles.role(name).size} and would be {float(made):g} {why}: name it, "
                f"--scale {name}=…"
            )
        sizes[name] = int(made)

    def ratio(name: str) -> Fraction:
        return Fraction(sizes[name], roles.known[name].size) if name in sizes else Fraction(1)

    hidden = ratio("hidden")
    if "head_size" in asked:
        grown("heads", hidden / ratio("head_size"), "as hidden and head_size are asked for")
    else:
        grown("heads", hidden, "as it grows with hidden")
    grown("head_size", hidden / ratio("heads"), "as hidden and heads are asked for")
    grown("kv_heads", ratio("heads"), "as it grows with heads")
    grown("feed_forward", hidden, "as it grows with hidden")
    _check_heads(sizes, roles)
    return sizes


def _check_heads(sizes: Mapping[str, int], roles: Roles) -> None:
    heads, own = sizes.get("heads"), sizes.get("kv_heads")
    if heads is not None and own is not None and heads % own:
        raise CannotPlan(f"{heads} heads can't share {own} heads of keys and values")


def targets_of(sizes: Sizes, roles: Roles, asked: Mapping[str, int]) -> Targets:
    """What every factor becomes.

    Args:
        sizes: the factors of the dump.
        roles: which sizes play which role.
        asked: new size by role, as ``--scale`` has them.

    Raises:
        CannotPlan: it can't be told, or does not fit.
    """
    wanted = wanted_sizes(roles, asked)
    setter = _Setter(sizes)
    for name in ("batch", "sequence", "vocabulary", "kv_heads", "heads", "head_size",
                 "feed_forward", "hidden"):  # fmt: skip
        role = roles.known.get(name)
        if role is None:
            continue
        for product in role.products:
            setter.put(product, wanted[name], role)
    before = {name: role.size for name, role in roles.known.items()}
    shown = {name: (before[name], wanted[name]) for name in NAMES if name in before}
    return Targets(setter.targets, shown)


@dataclass(eq=False, slots=True)
class _Setter:
    """Gives factors their new numbers."""

    sizes: Sizes
    targets: dict[int, int] = field(default_factory=dict[int, int])

    def put(self, product: Product, value: int, role: Role) -> None:
        """Make a product come to a value.

        Raises:
            CannotPlan: it can't, or it is not known which of its factors should change.
        """
        as_it_is = self.sizes.value(product) == self.sizes.scaled(product, self.targets) == value
        if as_it_is and self.targets.keys().isdisjoint(self.sizes.leaves(product)):
            return
        free: list[int] = []
        rest = Fraction(value)
        for factor in self.sizes.factors(product):
            if factor in self.targets:
                rest /= self.targets[factor]
            elif self.sizes.is_fixed(factor):
                rest /= self.sizes.size[factor]
            else:
                free.append(factor)
        if not free:
            if rest != 1:
                raise self._impossible(product, value, role)
            return
        if rest.denominator != 1:
            raise self._impossible(product, value, role)
        if len(free) > 1:
            if self.sizes.scaled(tuple(free), self.targets) == rest:
                return
            parts = " · ".join(str(self.sizes.size[factor]) for factor in free)
            raise CannotPlan(
                f"{role.name} ({MEANINGS[role.name]}) is {parts} here, as operators part it, and "
                "which of these should grow can't be told: leave it as it is"
            )
        terms = self.sizes.terms(free[0])
        if terms is None:
            self.targets[free[0]] = int(rest)
        elif len({self.sizes.factors(term) for term in terms}) == 1 and rest % len(terms) == 0:
            self.put(terms[0], int(rest) // len(terms), role)
        elif self.sizes.scaled((free[0],), self.targets) != rest:
            raise self._impossible(product, value, role)

    def _impossible(self, product: Product, value: int, role: Role) -> CannotPlan:
        parts = " · ".join(str(self.sizes.size[factor]) for factor in self.sizes.factors(product))
        return CannotPlan(
            f"{role.name} ({MEANINGS[role.name]}) can't be {value}: it is {parts} in the dump, and "
            "not all of that can change with what else is asked for"
        )
