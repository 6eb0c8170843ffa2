"""Which head stands in for an activation: from the table, solved anew, or the paper's uniform anchors."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import lru_cache, partial
from math import ceil, floor, log10

import numpy as np

from anchorhead.constructions.build_request import BuildRequest, Placement
from anchorhead.constructions.single.head import best_head
from anchorhead.errors import AnchorheadError, NotDefined
from anchorhead.heads.atom import Atom, Dtype, Part
from anchorhead.heads.solver.straight import best_straight
from anchorhead.heads.tables.table import STANDARD, Frontier, lookup
from anchorhead.language.expressions.expression import Expression
from anchorhead.language.expressions.named import call
from anchorhead.language.targets import ScalarTarget
from anchorhead.language.targets.mlp import IDENTITY
from anchorhead.progress import Progress
from anchorhead.proof.arithmetic.arithmetic import require_model
from anchorhead.proof.heads.activation_head import ActivationHead, degree_of
from anchorhead.proof.heads.head import head_errors, prove_head
from anchorhead.proof.heads.uniform_activation_head import prove_uniform, ramp_of

UNIT = (-1.0, 1.0)
TIDY = (1.0, 1.5, 2.0, 3.0, 4.0, 5.0, 6.0, 8.0, 10.0)
MAX_UNIFORM = 20_000
MAX_STRAIGHT = 8


@dataclass(eq=False)
class ActivationHeads:
    """Shapes for one dtype and placement; each is found once."""

    dtype: Dtype
    placement: Placement = "solved"
    progress: Progress | None = None
    _known: dict[tuple, ActivationHead] = field(default_factory=dict)

    def choose(self, activation: Expression, low: float, high: float, error: float) -> ActivationHead:
        """The smallest shape within `error` on [low, high], or on 2^k [-1, 1] where the activation scales.

        Where the table holds none so good, its best.
        """
        if self.placement == "uniform":
            key = (activation, low, high, error)
            return self._kept(key, lambda: self._even(*key))
        interval, degree = _interval(activation, low, high)
        frontier = self._frontier(activation, interval)
        if frontier is None:
            return self._solved(activation, interval, error, degree)
        entry = frontier.within(error) or frontier.heads[-1]
        key = (activation, interval, entry.atom.anchors)
        return self._kept(key, lambda: shape_of(entry.atom, entry.exact, entry.rounding, activation, interval, degree))

    def at_hand(self, outline: ActivationHead, error: float) -> float | None:
        """What the head errs by that `choose` would choose within an error, if it need not be solved for: from a table,
        or a straight line."""
        activation, low, high = outline.activation, outline.low, outline.high
        if self.placement == "uniform":
            return None
        if activation is not IDENTITY and self._frontier(activation, (low, high)) is None:
            return None
        return self.choose(activation, low, high, error).error

    def outline(self, activation: Expression, low: float, high: float, error: float) -> ActivationHead:
        """What `choose` would choose, as far as it is known before anything is solved for: no anchors."""
        interval, degree = ((low, high), None) if self.placement == "uniform" else _interval(activation, low, high)
        shape = ActivationHead(activation, *interval, (), error, 0.0, degree=degree)
        _ = shape.slope  # NotDefined where there is none
        return shape

    def _frontier(self, activation: Expression, interval: tuple[float, float]) -> Frontier | None:
        name = table_name(activation)
        return lookup(name, *interval, self.dtype, str(require_model(self.dtype))) if name else None

    def _kept(self, key: tuple, make: Callable[[], ActivationHead]) -> ActivationHead:
        if key not in self._known:
            self._known[key] = make()
        return self._known[key]

    def _solved(
        self, activation: Expression, interval: tuple[float, float], error: float, degree: float | None
    ) -> ActivationHead:
        """A straight line in closed form; else solved for, where no head that was serves as well."""
        if activation is IDENTITY:
            return self._line(error)
        for (known, where, asked), shape in self._known.items():
            if (known, where) == (activation, interval) and (asked == error or error / 4 <= shape.error <= error):
                return shape
        shape = self._new(activation, interval, error, degree)
        self._known[(activation, interval, error)] = shape
        return shape

    def _new(
        self, activation: Expression, interval: tuple[float, float], error: float, degree: float | None
    ) -> ActivationHead:
        request = BuildRequest(error, self.dtype, placement=self.placement, progress=self.progress)
        found = best_head(ScalarTarget((activation,), *interval), request)
        return shape_of(found.atom, *head_errors(found.certificate), activation, interval, degree)

    def _line(self, error: float) -> ActivationHead:
        """x on [-1, 1]: the fewest anchors within the error, or the best there is."""
        best: ActivationHead | None = None
        for anchors in range(2, MAX_STRAIGHT + 1):
            found = self._kept((IDENTITY, UNIT, anchors), partial(_straight, anchors, self.dtype))
            best = found if best is None or found.error < best.error else best
            if best.error <= error:
                break
        return best  # type: ignore[return-value]

    def _even(self, activation: Expression, low: float, high: float, error: float) -> ActivationHead:
        """By the single-head theorem, where the activation is a ramp: p even anchors from a to b, and (b - a)/p for the
        error asked for."""
        ramp = ramp_of(activation, low, high)
        if ramp is None:
            return self._new(activation, (low, high), error, None)
        anchors = uniform_anchors(ramp[1] - ramp[0], error)
        if anchors > MAX_UNIFORM:
            raise AnchorheadError(
                f"uniform anchors for an error of {error:.3g} on [{ramp[0]:g}, {ramp[1]:g}] are {anchors:,}, and at "
                f"most {MAX_UNIFORM:,} are built: ask for a larger within, use placement='solved', or look at ah.plan"
            )
        return prove_uniform(activation, (low, high), ramp, anchors, self.dtype)


def _interval(activation: Expression, low: float, high: float) -> tuple[tuple[float, float], float | None]:
    """Where a head is to be proven that is needed on [low, high], and the degree of an activation that scales."""
    degree = degree_of(activation)
    return (UNIT if degree is not None else enclosing(activation, low, high)), degree


def _straight(anchors: int, dtype: Dtype) -> ActivationHead:
    """x on [-1, 1]."""
    (slopes, offsets, values), _ = best_straight(anchors, dtype, 0)
    part = Part.of(slopes, offsets, values, dtype)
    bound = prove_head([part], 0.0, np.zeros(1), ScalarTarget((IDENTITY,), *UNIT), require_model(dtype))
    return ActivationHead(IDENTITY, *UNIT, (part,), bound.exact, bound.rounding, degree=1.0)


def shape_of(
    atom: Atom,
    exact: float,
    rounding: float,
    activation: Expression,
    interval: tuple[float, float],
    degree: float | None,
) -> ActivationHead:
    return ActivationHead(
        activation,
        *interval,
        atom.parts,
        exact,
        rounding,
        in_shift=atom.origin,
        out_shift=float(atom.bias[0]),
        degree=degree,
    )


def table_name(activation: Expression) -> str | None:
    """The name under which the table may hold it: all parameters at their defaults."""
    if activation.op not in STANDARD or activation.args[0].op != "variable":
        return None
    return activation.op if activation is call(activation.op, activation.args[:1]) else None


def enclosing(activation: Expression, low: float, high: float) -> tuple[float, float]:
    """An interval around [low, high] for which heads may be at hand: one of the table's, or one with tidy ends, unless
    the activation is not defined on all of it."""
    for known in STANDARD.get(table_name(activation) or "", ()):
        if known[0] <= low and high <= known[1]:
            return known
    tidied = -tidy(-low), tidy(high)
    return tidied if _defined(activation, tidied) else (low, high)


@lru_cache(maxsize=256)
def _defined(activation: Expression, interval: tuple[float, float]) -> bool:
    try:
        ScalarTarget((activation,), *interval)
    except NotDefined:
        return False
    return True


def tidy(end: float) -> float:
    """The next number up with a leading digit or two."""
    if end == 0:
        return 0.0
    power = 10.0 ** floor(log10(abs(end)))
    steps = [step * power for step in TIDY]
    if end < 0:
        return -max(step for step in steps if step <= -end * (1 + 1e-12))
    return min(step for step in steps if step >= end)


def uniform_anchors(span: float, error: float) -> int:
    """The theorem's p with (b - a)/p <= error."""
    return max(2, ceil(span / error))
