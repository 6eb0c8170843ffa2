"""The evaluation "direct", as arithmetic: what it may do beside what the plain one does, so that one walk bounds both.

Model. Layers are computed as the grammar says, in the dtype's arithmetic, but

  constants   what no input reaches may be summed beforehand, in float64, and rounded to the dtype once;
  keys        a head may leave out keys whose logits stay SILENT below the largest, on the whole line of its t;
  series      a head on one number t that inputs move, whose keys and values are constants, is computed by a series if
              the file stores one for the keys that it has and that are not left out, which no rounding has touched, not
              all of slope 0 (`series`), as fl(fl(scale q) + shift), or not at all where that is always 0, but for
              registers that are not put out: of theirs nothing is known but a mean;
  folding     or the sum of its own layer takes q in its place, with weights fl(W scale) and a bias fl(b + W shift),
              where products and sums are those of float64, the bias's of twice its precision: no later sum does, whose
              rounding is bounded by the reads alone;
  two keys    or a head of two keys that weigh anything is computed by one sigmoid, where the file says so (`two_keys`),
              and hands on what it reads;
  softmaxes   or it is computed as sum_k v_k e_k / sum_k e_k, e_k = exp(z_k - max z): v_k weighs 1, and not 1 / keys;
  groups      groups of a Softmax whose logits are the same (0 and -0 are), in one feature t each, may be heads of one
              base b, of which an output takes c_o = V_om / b_m (in float64), V being the values that the map behind
              them gives its keys: b is the row of V, of all outputs and groups, with the largest |number|, the first of
              equal ones, turned so that its last value is no less than its first, keys sorted by slope, and m is where
              |b_m| is largest. Not if some |V_ok - c_o b_k| > 8u |c_o b_k|.

anchorhead.network.direct is an instance. It goes through the layers with features that are an entry of one vector times
a power of two, a constant that one exact product makes, or a sum; sums are rows of products of the stored weights, with
constants in their bias; two maps become one where one of them picks entries, times powers of two, which rounds nothing
as long as the products are normal numbers of the dtype (behind a sum, powers of no less than 1, or its products would
underflow one by one), and where it is not the sum behind heads that does; a skip with a bias is refused, being a sum of
its own. A number that several heads ask with is summed once.
An attention whose queries are constants copies the winner, all others being SILENT below it. One whose queries depend
on the input in one entry t, its keys and values being constants, is a head on t, without the keys that are nowhere
within reach: by a series, or as a softmax. Softmax groups of multiples of entries are heads of their bases, or they are
refused. Where the layer of heads sums what they read, that is folded; else reads are handed on. All else is refused,
and runs plainly.

Lemma. With the error and size of `Directly.read` in the place of a softmax's, where these are larger, with the error of
units whose softmaxes are series (`claims`) in the place of theirs, where that is larger, and with `forms.mapped`'s
allowance for biases, the plain walk bounds every evaluation of the model.
Proof. Constants: k addends of n, c their sum, become one that is rounded: relatively that is off by u and what float64
loses (`own_error` counts twice what one sum of float64 loses: the verifier's and this one), then n - k additions
follow; the plain sum has n - 1 of them, and k = 1 rounds c as often as the plain product does. Keys: a key that is left
out weighs less than e^-SILENT, which is below tiny; sums of fewer terms round less. Softmaxes: the quotient of sums has
as many roundings as the sum of quotients, and e_k <= 1, up to its rounding, so that sum_k |v_k| e_k does not overflow.
Folding: relative to |W| (|scale q| + |shift|) and |b|, a product W' q has the two roundings of W' and its own, b' one,
and m reads and b' are added by m additions: gamma_(m + 3) of the former and gamma_(m + 1) of |b|. The plain sum of m
terms has gamma_(m - 1) of the reads' sizes, or less where m <= 2, and gamma_m of |b|, or u |sum| where m = 1. 6u of the
sizes makes up for the former, since gamma_(m + 3) <= gamma_(m - 1) + 5u and m + 3 <= 5 where m <= 2, up to products of
roundings; for the latter gamma_(m + 1) - gamma_m <= u (1 + gamma_(m + 1))^2 of |b| does, twice that where m = 1.
Handed on, two products and a sum round by less than 4u of |scale q| + |shift|. W' may underflow: by tiny |q|, where
|q| <= size / scale, and scale is refused outside of [1/FOLDED, FOLDED].
Groups: c_o times a head of b instead of sum_k V_ok w_k, for which the walk takes take_o times a head of its own base v:
|c_o| error and sum_k w_k |c_o b_k - take_o v_k|, at most the largest of these. Sums are those of folding, or of fl(c_o)
times what a softmax or a sigmoid reads: two roundings and n sums for n groups and a bias. The walk counts N sums for as
many keys of these as some output takes, no less where N >= n + 2; outputs that take fewer are granted two more.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np

from anchorhead.verify.errors import require
from anchorhead.verify.reach import within_reach
from anchorhead.verify.rounding import Arithmetic
from anchorhead.verify.scalar.part import Claim
from anchorhead.verify.series import Found, that_runs

ROUNDED = 8
"""Units by which multiples of a base may be off."""


@dataclass(frozen=True, eq=False)
class Weighed:
    """A group as a head: its base, 0 for keys that are left out (`live` says which are not), what outputs take of it,
    and `Directly.read` of it, for all that have its base."""

    base: np.ndarray
    live: np.ndarray
    take: np.ndarray
    read: Callable[..., Otherwise]


Otherwise = tuple[float, float, Claim | None]
"""How far a head is off that is no softmax, of what size it is, and the series that it is held against."""
NOTHING: Otherwise = (0.0, 0.0, None)


class Directly:
    """How far heads are off that are not computed as softmaxes; of equal heads, on the hull of their intervals."""

    def __init__(self, model: Arithmetic, series: Sequence[Found] = ()) -> None:
        self.model, self.series = model, series
        self.known: dict[tuple, tuple[float, float, Otherwise]] = {}

    def read(
        self,
        slopes: np.ndarray,
        offsets: np.ndarray,
        values: np.ndarray,
        ends: tuple[float, float],
        off: np.ndarray | None = None,
        softmax: bool = True,
    ) -> Otherwise:
        """How far a head may be off its softmax in exact arithmetic for t between the ends, folding included, and a
        bound on |scale q| + |shift|; or, if it need not be held against its softmax, how far off its series, which is
        given then. NOTHING of a softmax. off: how far offsets may be."""
        total = 2 * len(values) * float(np.abs(values).max())
        require(total < self.model.largest, f"direct: a sum of values may overflow in {self.model.dtype}")
        off, keys = np.zeros(len(slopes)) if off is None else off, (slopes, offsets, values)
        way = that_runs(self.series, keys, off)
        if way is None:
            return NOTHING
        name = softmax, *(one.tobytes() for one in (slopes, offsets, values, off))
        low, high, found = self.known.get(name, (*ends, None))
        if found is None or ends[0] < low or ends[1] > high:
            low, high = min(low, ends[0]), max(high, ends[1])
            lost = 4 * len(slopes) * self.model.tiny * (float(np.abs(values).max()) + 1)
            error, size, claim = way.read(keys, low, high, self.model, softmax)
            found = error + lost, size, claim
            self.known[name] = low, high, found
        return found

    def weighed(
        self, logits: Sequence[tuple[np.ndarray, np.ndarray, tuple[float, float]] | None], values: np.ndarray
    ) -> list[Weighed | None]:
        """Of groups, as slopes, offsets and ends of t, and of their values (outputs, groups, keys): the heads that they
        may be computed as; None: no such groups, or no multiples of one row."""
        tables: dict[tuple, list[int]] = {}
        for g, one in enumerate(logits):
            if one is not None and one[0].any():
                tables.setdefault(tuple((array + 0.0).tobytes() for array in one[:2]), []).append(g)  # -0.0 is 0.0
        found: list[Weighed | None] = [None] * len(logits)
        for groups in tables.values():
            slopes, offsets, _ = logits[groups[0]]  # type: ignore[misc]
            order = np.lexsort((offsets, slopes))
            live = order[within_reach(slopes, offsets)[order]]
            rows = values[:, groups][:, :, live]
            base = rows.reshape(-1, len(live))[int(np.abs(rows).max(axis=2).argmax())]
            base = -base if base[0] > base[-1] else base
            top = int(np.abs(base).argmax())
            if not base[top]:
                continue
            take = rows[:, :, top] / base[top]
            apart = np.abs(rows - take[:, :, None] * base).max(axis=2)
            if (apart > 2 * ROUNDED * self.model.unit * np.abs(rows).max(axis=2)).any():
                continue
            whole, alive = np.zeros(len(slopes)), np.zeros(len(slopes), bool)
            whole[live], alive[live] = base, True
            lows, highs = zip(*(logits[g][2] for g in groups), strict=True)  # type: ignore[index]
            read = partial(self.read, slopes[live], offsets[live], base, (min(lows), max(highs)))
            for n, g in enumerate(groups):
                found[g] = Weighed(whole, alive, take[:, n], read)
        return found
