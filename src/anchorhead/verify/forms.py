"""What is known of the features of tokens: affine forms in exact quantities of the program, with errors.

The quantities are real numbers that the program defines (its inputs, what its functions give), each with an interval.
Feature f of token t, as the dtype computes it, is for every input of the box

    coefficients[t, f] . quantities + constant[t, f] + a + r,    |a| <= approximation[t, f],  |r| <= rounding[t, f]:

what heads leave in exact arithmetic, and what floating point adds. A feature of which nothing is known beyond an
interval has no coefficients, the interval's middle as constant, and its radius as approximation.
Coefficients are float64; what the verifier's own arithmetic loses is added to `rounding`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

import numpy as np

from anchorhead.verify.errors import require
from anchorhead.verify.rounding import FOLDED, OWN_UNIT, SLACK, Arithmetic, dot_error, own_error, power_of_two

EXACT = Arithmetic("exact", 0.0, 0.0, np.inf)
"""Arithmetic that rounds nothing, for what a program says."""
SMALLEST = 2.0**-960
"""Coefficients are no smaller: quantities are up to 2^1024, and what underflows in float64 would be nothing of them."""
MAX_COEFFICIENTS = 2**28
"""Of one array, which may be the product of what few numbers of a file say: two gigabytes."""
LEAST = 2.0**-1022
"""More than what a product of constants, or a bound, loses to underflow in float64: later weights are up to 2^1024."""


class Quantities:
    """The live quantities: between what each lies."""

    def __init__(self) -> None:
        self.low, self.high = np.zeros(0), np.zeros(0)

    def add(self, low: np.ndarray, high: np.ndarray) -> np.ndarray:
        """New quantities between these ends; their numbers."""
        first = len(self.low)
        self.low, self.high = np.concatenate([self.low, low]), np.concatenate([self.high, high])
        require(bool((self.low <= self.high).all() and np.isfinite(self.high - self.low).all()), "an empty interval")
        return np.arange(first, len(self.low))

    def size(self, ids: np.ndarray) -> np.ndarray:
        return np.maximum(np.abs(self.low[ids]), np.abs(self.high[ids]))


@dataclass(frozen=True, eq=False)
class Forms:
    """ids (quantities,), coefficients (tokens, features, quantities), the rest (tokens, features)."""

    ids: np.ndarray
    coefficients: np.ndarray
    constant: np.ndarray
    approximation: np.ndarray
    rounding: np.ndarray

    @classmethod
    def constants(cls, values: np.ndarray) -> Forms:
        values = np.asarray(values, np.float64)
        nothing = np.zeros(values.shape)
        return cls(np.zeros(0, int), np.zeros((*values.shape, 0)), values, nothing, nothing)

    @classmethod
    def between(cls, low: np.ndarray, high: np.ndarray) -> Forms:
        """Nothing but intervals."""
        require(bool(np.isfinite(low).all() and np.isfinite(high).all()), "a feature of which no interval is known")
        middle = low / 2 + high / 2
        radius = np.maximum(high - middle, middle - low) * SLACK
        return cls(np.zeros(0, int), np.zeros((*middle.shape, 0)), middle, radius, np.zeros(middle.shape))

    @property
    def shape(self) -> tuple[int, int]:
        return self.constant.shape  # type: ignore[return-value]

    @property
    def error(self) -> np.ndarray:
        return self.approximation + self.rounding

    @property
    def fixed(self) -> np.ndarray:
        """Which features do not depend on the quantities: a constant, up to errors."""
        return ~(self.coefficients != 0).any(axis=2)

    @property
    def alike(self) -> bool:
        """Whether all features of a token are one form."""
        return all(bool((array == array[:, :1]).all()) for array in self.arrays)

    @property
    def zero(self) -> np.ndarray:
        """Which features are 0, exactly."""
        return self.fixed & (self.constant == 0) & (self.error == 0)

    def exact_size(self, quantities: Quantities) -> np.ndarray:
        """A bound on sum |coefficient| |quantity| + |constant|."""
        return np.abs(self.coefficients) @ quantities.size(self.ids) + np.abs(self.constant)

    def ends(self, quantities: Quantities, errors: bool = True) -> tuple[np.ndarray, np.ndarray]:
        """Between what each feature stays, as computed; without errors: the form alone. In float64, a sum of m products
        loses m - 1 units of the sum of their absolute values, and one more where products are rounded."""
        up, down = np.maximum(self.coefficients, 0.0), np.minimum(self.coefficients, 0.0)
        least, most = quantities.low[self.ids], quantities.high[self.ids]
        low, high = up @ least + down @ most + self.constant, up @ most + down @ least + self.constant
        filled = self.coefficients != 0
        sums = np.maximum(filled.sum(axis=2) + (self.constant != 0) - 1, 0)
        rounded = sums + (filled & ~power_of_two(self.coefficients)).any(axis=2)
        lost = OWN_UNIT * rounded * (self.exact_size(quantities) * (1 + 1e-9) + 2.0**-1000)
        reach = lost + (self.error if errors else 0.0)
        wide = filled.any(axis=2) | (reach > 0)
        return np.where(wide, np.nextafter(low - reach, -np.inf), low), np.where(
            wide, np.nextafter(high + reach, np.inf), high
        )

    def size(self, quantities: Quantities) -> np.ndarray:
        """A bound on the computed feature's absolute value."""
        low, high = self.ends(quantities)
        return np.maximum(np.abs(low), np.abs(high))

    def aligned(self, ids: np.ndarray) -> Forms:
        """The same with the columns of other ids, which hold all of its own."""
        if len(ids) == len(self.ids) and (ids == self.ids).all():
            return self
        coefficients = np.zeros((*self.shape, len(ids)))
        coefficients[:, :, np.searchsorted(ids, self.ids)] = self.coefficients
        return Forms(ids, coefficients, self.constant, self.approximation, self.rounding)

    def tokens(self, index: slice | np.ndarray | list[int]) -> Forms:
        return Forms(self.ids, *(array[index] for array in self.arrays))

    def features(self, index: slice | np.ndarray | list[int]) -> Forms:
        return Forms(self.ids, *(array[:, index] for array in self.arrays))

    def entry(self, token: int, feature: int) -> Forms:
        """One feature of one token, (1, 1), and what it depends on."""
        one = (slice(token, token + 1), slice(feature, feature + 1))
        return Forms(self.ids, *(array[one] for array in self.arrays)).pruned()

    def reshaped(self, tokens: int, features: int) -> Forms:
        coefficients = self.coefficients.reshape(tokens, features, len(self.ids))
        return Forms(self.ids, coefficients, *(array.reshape(tokens, features) for array in self.arrays[1:]))

    def pruned(self) -> Forms:
        """Without the quantities that no feature depends on."""
        used = (self.coefficients != 0).any(axis=(0, 1))
        return self if used.all() else Forms(self.ids[used], self.coefficients[:, :, used], *self.arrays[1:])

    @property
    def arrays(self) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        return self.coefficients, self.constant, self.approximation, self.rounding


def joined(parts: Sequence[Forms], axis: int = 0) -> Forms:
    """Tokens after tokens (axis 0), or features beside features (axis 1)."""
    ids = np.unique(np.concatenate([part.ids for part in parts])).astype(int)
    require_few(sum(prod(part.shape) for part in parts), len(ids))
    every = [part.aligned(ids) for part in parts]
    return Forms(ids, *(np.concatenate(arrays, axis) for arrays in zip(*(one.arrays for one in every), strict=True)))


def summed(parts: Sequence[Forms], quantities: Quantities) -> Forms:
    """The exact sum of forms of one shape. An addition in float64 loses at most u of its result, and nothing if a
    summand or the result is 0."""
    ids = np.unique(np.concatenate([part.ids for part in parts])).astype(int)
    require_few(*parts[0].shape, len(ids))
    size = quantities.size(ids)
    first, *rest = (part.aligned(ids).arrays for part in parts)
    coefficients, constant, approximation, rounding = first
    for more, shift, approximate, rounded in rest:
        total, middle = coefficients + more, constant + shift
        turned, moved = (coefficients != 0) & (more != 0) & (total != 0), (constant != 0) & (shift != 0) & (middle != 0)
        lost = np.where(turned, np.abs(total), 0.0) @ size + np.where(moved, np.abs(middle), 0.0)
        rounds = turned.any(axis=2) | moved
        coefficients, constant, approximation = total, middle, approximation + approximate
        rounding = rounding + rounded + np.where(rounds, 2 * OWN_UNIT * lost + LEAST, 0.0)
    return Forms(ids, coefficients, constant, approximation * SLACK, rounding * SLACK)


def require_few(*sides: int) -> None:
    """Refuses arrays of so many coefficients."""
    require(prod(sides) <= MAX_COEFFICIENTS, f"forms of {' x '.join(map(str, sides))} coefficients are too large")


def _least(numbers: np.ndarray) -> float:
    """The smallest absolute value of those that are not 0."""
    return float(np.min(np.abs(numbers), where=numbers != 0, initial=1.0))


def mapped(
    weight: np.ndarray,
    bias: np.ndarray | None,
    x: Forms,
    quantities: Quantities,
    model: Arithmetic,
    size: np.ndarray | None = None,
    terms: np.ndarray | None = None,
) -> Forms:
    """W x + b on the features of every token, as the dtype computes it: `dot_error` beside the exact map.

    A row with one entry that is a power of two, or meets an exact constant that is one, changes no digit: a constant
    stays as exact as it was, and the float64 of this file loses what it rounds where a bias is added. So it does where
    no quantity is in two features, up to powers of two: then coefficients are entries of W. Of other rows it loses at
    most own_error(n) (|W| (|coefficients| |quantities| + |constant|) + |b|), n products not being 0, as long as no
    coefficient underflows; half of that in arithmetic that rounds nothing, where no evaluation sums in float64, too.
    LEAST is more than what that loses to underflow, or a constant or an error times a weight.
    A feature may stand for several numbers that are added up: `terms` (features,) says how many, and `size`
    (tokens, features) bounds the sum of their absolute values. Where series may be folded into the map (`direct`),
    the bias is rounded once more, or twice, and weights may underflow.
    """
    require_few(len(x.constant), len(weight), len(x.ids))
    absolute, present = np.abs(weight), ~x.zero
    touched = (weight != 0).astype(np.float64)
    least = _least(weight) * _least(x.coefficients)
    require(least >= SMALLEST, "coefficients that are too small for float64")
    coefficients = np.einsum("of,tfq->toq", weight, x.coefficients, optimize=True)
    constant = x.constant @ weight.T
    size = x.size(quantities) if size is None else size
    require(bool(np.isfinite(size).all()), "a feature without a bound")
    products, exact = size @ absolute.T, size @ np.where(power_of_two(weight), absolute, 0.0).T
    several = np.ones(x.shape[1]) if terms is None else terms
    count, own = (present * several) @ touched.T, own_error(present @ touched.T) / (1 if model.unit else 2)
    rounds = present & ~(x.fixed & (x.error == 0) & power_of_two(x.constant))
    lossless = (count <= 1) & (rounds.astype(np.float64) @ np.where(power_of_two(weight), 0.0, touched).T == 0)
    magnitude = x.exact_size(quantities) @ absolute.T
    filled, constants = x.coefficients != 0, x.constant != 0
    alone = bool(power_of_two(x.coefficients).all() and (filled.sum(axis=1) <= 1).all())
    odd = (constants & ~power_of_two(x.constant)).astype(np.float64) @ np.where(power_of_two(weight), 0.0, touched).T
    copied = lossless | (alone & (constants @ touched.T <= 1) & (odd == 0))
    lost = (x.error > 0) | (constants & bool(_least(weight) * _least(x.constant) < SMALLEST))
    slack = np.where(copied, 0.0, own * magnitude + LEAST) + lost @ touched.T * LEAST
    if bias is not None:
        bias = np.broadcast_to(bias, constant.shape)
        added = np.where((bias != 0) & (constant != 0), 2 * OWN_UNIT * np.abs(constant + bias), 0.0)
        slack = slack + np.where(copied, added, own * np.abs(bias))
        lossless = np.where(bias != 0, count == 0, lossless)
        constant, products, exact = constant + bias, products + np.abs(bias), exact + np.abs(bias)
        count = count + (bias != 0)
    require(bool((products < model.largest / 4).all()), "a sum may overflow")
    carried_a, carried_r = x.approximation @ absolute.T * SLACK, x.rounding @ absolute.T * SLACK
    result = Forms(x.ids, coefficients, constant, carried_a, carried_r + slack)
    settled = lossless & result.fixed & (result.error == 0) & ((constant == 0) | (np.abs(constant) >= model.tiny))
    wrong = dot_error(products, exact, count, result.size(quantities), model)
    if model.direct:
        require(float(absolute.max(initial=0.0)) < model.largest / FOLDED / 4, "direct: a weight may overflow")
        lost = FOLDED * model.tiny * (count + size.sum(axis=1, keepdims=True))
        once = model.unit * (1 + model.gamma(count + 1)) ** 2 * np.where(count <= 2, 2.0, 1.0)
        wrong = wrong + lost + (0.0 if bias is None else once * np.abs(bias))
    return Forms(x.ids, coefficients, constant, carried_a, carried_r + slack + np.where(settled, 0.0, wrong)).pruned()
