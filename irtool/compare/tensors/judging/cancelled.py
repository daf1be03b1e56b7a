"""Gradients that add up where a value is read, and cancel: what is left of them is rounding.

Of ``(a + e * v) / (b + e)`` with a = b = 0 the result is v whatever e is, so the gradients that
come to e from both terms cancel.  A sum of terms is off by what its terms are off by, each of which
is rounded; relative to what is left of it that may be anything.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import field

from irtool.compare.tensors.dtypes import roundoff
from irtool.compare.tensors.judging.verdict import Judged
from irtool.compare.tensors.measuring.measure import Measure
from irtool.compare.tensors.model import Op, Places, TensorRun
from irtool.compare.tensors.pairing.flow import Flow
from irtool.ir.dataclass import dataclass

_ROUNDED = 4.0
"""Units that a term is off by, if nothing says more."""
_FEWEST = 2
"""Terms that can cancel."""


@dataclass(slots=True)
class Terms:
    """Finds the terms that a gradient is the sum of, by where its value is read.

    Attributes:
        run: the left dump.
        measures: of its tensors that were paired.
    """

    run: TensorRun
    measures: Mapping[Places, Measure]
    _flow: Flow | None = field(default=None, init=False)
    _errors: dict[int, float] | None = field(default=None, init=False)

    def error(self, judged: Judged, place: int, forward: Op) -> float:
        """The norm that the terms of a gradient may be off by; 0 where it is no sum of several.

        Args:
            judged: a gradient's call.
            place: the gradient that comes to it.
            forward: the call that it is the gradient of.
        """
        label = self.run.columns.labels[place].replace("input", "output")
        results = [p for p in forward.outputs if self.run.columns.labels[p] == label]
        if judged.pair.left.phase != "backward" or not results:
            return 0.0
        terms = list(self._terms(results[0]))
        return sum(terms) if len(terms) >= _FEWEST else 0.0

    def _terms(self, result: int) -> Iterator[float]:
        """How far off each gradient may be that comes to a result of the forward pass."""
        if self._flow is None:
            self._flow = Flow(self.run)
            self._errors = {a: measure.error for (a, _), measure in self.measures.items()}
        assert self._errors is not None
        columns, flow = self.run.columns, self._flow
        value = flow.value(result)
        for reader in () if value is None else flow.forward_readers(value):
            gradient = flow.gradient_calls.get(reader.call)
            for operand in reader.inputs if gradient is not None else ():
                if flow.value(operand) is not value or gradient is None:
                    continue
                label = columns.labels[operand].replace("input", "output")
                for place in gradient.outputs:
                    if columns.labels[place] == label and columns.norm[place] > 0:
                        unit = _ROUNDED * roundoff(columns.dtypes[place])
                        error = self._errors.get(place, 0.0)
                        yield max(unit, error if error == error else 0.0) * columns.norm[place]
