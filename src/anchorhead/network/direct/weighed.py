"""Groups of a Softmax as heads on scalars: where the values that outputs give a group's keys are multiples of one row.

An output takes sum_k V_k w_k of a group. Groups with the same logits share a base b, the row of all with the largest
number, turned so that the last key (by slope) has no smaller value than the first; then

    V_k = take b_k (1 + e_k),  |e_k| <= off,      take = V_m / b_m,  m the key of the largest |b_m|,

and the group is a head with the values b, of which outputs take `take`: one product in the place of one a key. Values
that are further off than ROUNDED units are no multiples of one row.

That rounds otherwise than the sum over all weights of which a certificate speaks. So it is done only where it errs by
no more than every bound on that sum grants it (lemmas.group_values): with S >= sum_k w_k |b_k|, beside the rounding of
the softmaxes themselves,

    gamma_N sum over groups of |take| S      for an output that has N values that are not 0, in n groups.

What is computed here errs, for each group, |take| times
  - off S, with gamma_(n + 3) S for the roundings of take, of its product and of a sum of n + 1 terms, or
  - off S, with the error of a series in the place of the softmax's, and gamma_(n + 3) (|scale q| + |shift|).
S is at least what sum_k w_k |b_k| is at any t that some input leads to.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float, Int

from anchorhead.network.direct.held import Refused
from anchorhead.network.direct.keys import Keys
from anchorhead.network.direct.plans import AffinePlan, Plan
from anchorhead.network.direct.series import Series
from anchorhead.network.direct.two_keys import TwoKeys

OWN = 2.0**-53
"""The unit of the float64 in which this file computes."""
ROUNDED = 8
"""Units by which products with one row may be off: theirs, the row's and those of `take`."""
POINTS = 5
"""Between the ends of each t at which S is looked at."""
SMALL = 2.0**60
"""Times the smallest normal number: what outputs take is 0 or more than that, so that nothing underflows."""
SPARE = 1.001
"""For products of roundings, and for this file's own."""


@dataclass(frozen=True, eq=False)
class Entries:
    """Between what entries lie for inputs of a box, in exact arithmetic; how far the dtype's may be off, and float64's
    own."""

    low: Float[np.ndarray, " entries"]
    high: Float[np.ndarray, " entries"]
    off: Float[np.ndarray, " entries"]
    own: Float[np.ndarray, " entries"]

    @classmethod
    def after(cls, steps: Sequence[Plan], low: np.ndarray, high: np.ndarray, dtype: str) -> Entries:
        """Of affine maps: what they make of a box are intervals, all of whose points are reached."""
        middle, radius, size = (low + high) / 2, (high - low) / 2, np.maximum(np.abs(low), np.abs(high))
        counts = 0.0
        for step in steps:
            if not isinstance(step, AffinePlan):
                raise Refused("a softmax within tokens of what heads have read")
            weight = np.abs(step.weight)
            middle, radius = step.weight @ middle + step.bias, weight @ radius
            size, counts = weight @ size + np.abs(step.bias), counts + step.weight.shape[1] + 2.0
        off, own = (2 * (counts + 2) * unit * size for unit in (float(np.finfo(dtype).eps), OWN))
        return cls(middle - radius, middle + radius, off, own)

    def picked(self, place: Int[np.ndarray, " some"], factor: Float[np.ndarray, " some"]) -> Entries:
        """Some entries times powers of two."""
        one, other = self.low[place] * factor, self.high[place] * factor
        off, own = (each[place] * np.abs(factor) for each in (self.off, self.own))
        return Entries(np.minimum(one, other), np.maximum(one, other), off, own)


@dataclass(frozen=True, eq=False)
class Weighed:
    """Groups with the same logits as heads: the keys with the base as their values, what outputs take, by how much that
    is off, and how many of an output's values are not 0."""

    keys: Keys
    takes: Float[np.ndarray, "outputs groups"]
    offs: Float[np.ndarray, "outputs groups"]
    counts: Int[np.ndarray, " outputs"]

    @classmethod
    def of(
        cls, slopes: np.ndarray, offsets: np.ndarray, values: Float[np.ndarray, "outputs groups keys"], dtype: str
    ) -> Weighed:
        live = Keys(slopes, offsets, values.reshape(-1, len(slopes)).T).live()
        rows = live.values
        base = rows[:, int(np.abs(rows).max(axis=0).argmax())]
        base = -base if base[0] > base[-1] else base
        top = int(np.abs(base).argmax())
        if len(base) < 2 or base[top] == 0:
            raise Refused("a group of a softmax that is a constant")
        take = rows[top] / base[top]
        meant = base[:, None] * take
        apart = np.abs(rows - meant)
        off = np.divide(apart, np.abs(meant), out=np.where(apart > 0, np.inf, 0.0), where=meant != 0).max(axis=0)
        if (off > ROUNDED * np.finfo(dtype).eps / 2).any():
            raise Refused("values of a group of a softmax that are no multiples of one another")
        shape, counts = values.shape[:2], (rows != 0).sum(axis=0)
        keys = Keys(live.slopes, live.offsets, base[:, None])
        return cls(keys, take.reshape(shape), (off + 4 * OWN).reshape(shape), counts.reshape(shape).sum(axis=1))

    def sum_of_sizes(self, t: Entries) -> float:
        """S from below: the largest sum_k w_k |b_k| at some of the t that are reached, logits being off as they are."""
        places = (t.low + (t.high - t.low) * np.linspace(0, 1, POINTS)[:, None]).reshape(-1, 1)
        moved = np.tile(t.own, POINTS)[:, None]
        steep = np.abs(self.keys.slopes)
        logits = self.keys.slopes * places + self.keys.offsets
        noise = steep * moved + 8 * OWN * (steep * np.abs(places) + np.abs(self.keys.offsets))
        top = logits.max(axis=1, keepdims=True)
        least, most = (np.exp(np.minimum(logits - top + sign * noise, 700.0)) for sign in (-1, 1))
        return float((least @ np.abs(self.keys.values) / most.sum(axis=1, keepdims=True)).max())


def require_covered(
    found: Sequence[tuple[Weighed, Entries]], dtype: str, find: Callable[..., Series | TwoKeys | None]
) -> None:
    """Refuses groups, with their t, that err by more than is granted; find: the series of a head, if it has one."""
    unit, tiny = float(np.finfo(dtype).eps) / 2, float(np.finfo(dtype).tiny)

    def gamma(n: np.ndarray) -> np.ndarray:
        return n * unit / (1 - n * unit)

    takes, offs = (np.concatenate([getattr(one, name) for one, _ in found], axis=1) for name in ("takes", "offs"))
    used = takes != 0
    counts, summed = np.sum([one.counts for one, _ in found], axis=0), gamma(used.sum(axis=1) + 3)
    room = gamma(counts) / SPARE - np.where(used, offs, 0.0).max(axis=1)
    if (np.abs(takes[used]) < SMALL * tiny).any() or unit * counts.max() > 1e-3:
        raise Refused("groups of a softmax of which nothing, or too much, is taken")
    for one, t in found:
        some = (one.takes != 0).any(axis=1)
        series = find(*one.keys.column(0), dtype)
        if not isinstance(series, Series):
            errs, granted = summed, room
        else:
            low, high = float((t.low - t.off).min()), float((t.high + t.off).max())
            if series.fitted or not series.covers(low, high) or series.scale < SMALL * tiny:
                raise Refused("a series of a group of a softmax is asked for more than it covers")
            errs, granted = series.error + summed * series.magnitude(low, high), room * one.sum_of_sizes(t)
        if not (errs * SPARE <= granted)[some].all():
            raise Refused("groups of a softmax that may err by more as heads")
