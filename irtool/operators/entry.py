"""One operator of the table: what all commands ask of it."""

from __future__ import annotations

from irtool.ir.dataclass import dataclass
from irtool.operators.counting import Expression
from irtool.operators.facts import Computation, Search
from irtool.operators.gradients import Gradient
from irtool.operators.notation import Attribute, Rule


@dataclass(frozen=True, slots=True)
class Operator:
    """What the table says of one operator, for everyone who asks.

    Attributes:
        name: the primitive's name; or, in small letters, that of a function of PyTorch.
        family: operators that behave alike.
        rule: how it is sharded; None: MindSpore has no class for it, and runs it batch parallel or
            stand-alone.
        attributes: attributes, and constant inputs in their places.
        computes: its numeric family; "unknown" where it has none.
        flops: how many operations it does; None: nobody knows.
        gradient_of: the operator whose backward operator it is, or "".
        torch: what PyTorch calls it, functions and methods.
        modules: modules of MindSpore and PyTorch that compute it and nothing else.
        updates: inputs that it writes in place: afterwards they hold the new state.
        unwritten: outputs that kernels of some devices leave as they find the memory.
        weights: inputs that are parameters of the network.
        named: places of constant inputs that are no attributes above, with what MindSpore calls
            them.
        search: how the double recursive search treats it; None: it does not know it.
        propagates: what MindSpore's sharding propagation tries of it, if not all that is legal: a
            word of ``irtool.planning.propagation.choices``.
        gradients: the operands that have a gradient, and what each gradient reads of the forward
            pass, as measured; None: it was not.
        traits: words of ``facts.TRAITS``.
        declared: a user says how it is sharded, nobody has measured it.
    """

    name: str
    family: str = ""
    rule: Rule | None = None
    attributes: tuple[Attribute, ...] = ()
    computes: Computation = "unknown"
    flops: Expression | None = None
    gradient_of: str = ""
    torch: tuple[str, ...] = ()
    modules: tuple[str, ...] = ()
    updates: tuple[int, ...] = ()
    unwritten: tuple[int, ...] = ()
    weights: tuple[int, ...] = ()
    named: tuple[tuple[int, str], ...] = ()
    search: Search | None = None
    propagates: str = ""
    gradients: tuple[Gradient, ...] | None = None
    traits: frozenset[str] = frozenset()
    declared: bool = False

    def is_(self, trait: str) -> bool:
        """Whether it has a trait (a word of ``facts.TRAITS``)."""
        return trait in self.traits

    def operand_name(self, place: int) -> str:
        """What MindSpore calls an input, counted from 0; "" where the table does not say."""
        names = {one.position: one.name for one in self.attributes}
        return names.get(place) or dict(self.named).get(place, "")

    @property
    def is_heavy(self) -> bool:
        """Whether it is what networks spend their time in."""
        return self.computes in ("matmul", "convolution", "attention")

    @property
    def moves(self) -> bool:
        """Whether it moves or converts elements and computes nothing."""
        return self.computes in ("view", "cast")
