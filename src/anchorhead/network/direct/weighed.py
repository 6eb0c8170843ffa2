"""Groups of a Softmax as heads on scalars: where the values that outputs give a group's keys are multiples of one row.

An output takes sum_k V_k w_k of a group. Groups with the same logits share a base b, the row of all with the largest
number, turned so that the last key (by slope) has no smaller value than the first; then

    V_k = take b_k (1 + e_k),  |e_k| <= off,      take = V_m / b_m,  m the key of the largest |b_m|,

and the group is a head with the values b, of which outputs take `take`: one product in the place of one a key. Values
that are further off than ROUNDED units are no multiples of one row. What that errs by is held against what a
certificate grants where that is made (proof.heads.evaluated_keys), and by anchorhead.verify.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float, Int

from anchorhead.network.direct.held import Refused
from anchorhead.network.direct.keys import Keys

OWN = 2.0**-53
"""The unit of the float64 in which this file computes."""
ROUNDED = 8
"""Units by which products with one row may be off: theirs, the row's and those of `take`."""


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
