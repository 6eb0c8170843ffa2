"""A softmax over a tensor grid, exactly: its values on tensor grids, and how far it is from a polynomial.

Along axis j the head is sum_k w_k(x_j) (…)_k, w = softmax(a_k t + g_k). Let a' be the middle of the slopes and
R = max |a_k - a'|. For z = x + iy multiply numerators and denominator by exp(-a' z): every term of the denominator
has a real part of at least cos(R y) times its size, so w is analytic for R |y| < pi/2 and

    sum_k |w_k(z)| <= 1 / cos(R y).                                                                        (S)

With the Bernstein ellipse of [low, high] on which R |y| <= STEEP, parameter rho and S = 1 / cos(STEEP): the Chebyshev
coefficients C_ik of w_k obey sum_k |C_ik| <= 2 S rho^-i. At real points of the other axes their weights are at least 0
and add up to 1, so r = sum_i T_i(x_j) B_i with |B_i| <= beta_i = max over the other indices |sum_k C_ik v_k|, and
interpolation at the cos(l pi / n) errs along axis j by at most 2 sum_{i > n} beta_i. That is far less than the decay of
the C_ik says, because the values vary smoothly.

C is computed for i <= N in balls from interpolation at N + 1 points. Aliasing moves each T_i, i > N, onto one T_i': the
sum over i and k of all changes, and the rest beyond N, are at most 2 S rho^-N / (rho - 1) each, times max |v|.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from flint import arb, arb_mat, fmpq
from jaxtyping import Float, Shaped

from anchorhead.errors import AnchorheadError
from anchorhead.heads.grids.grid_atom import GridAtom, contract
from anchorhead.language.expressions.precision import precision
from anchorhead.proof.arithmetic.arithmetic import UP
from anchorhead.proof.enclosures.balls import upper
from anchorhead.proof.remembered import remembered

STEEP = 1.45
LARGEST_RHO = 8.0
MAX_COEFFICIENTS = 640
PRECISION = 128
WIDE = np.longdouble
"""The widest type of the machine: values of a grid may be far larger than what they add up to."""
UNIT = max(float(np.finfo(WIDE).eps) / 2, 2.0**-64)
"""Its round-off, as far as it is used."""


def chebyshev_points(low: float, high: float, degree: int) -> list[arb]:
    """The balls of (low + high)/2 + (high - low)/2 cos(k pi / n), k = 0 … n."""
    centre, half = (arb(low) + arb(high)) / 2, (arb(high) - arb(low)) / 2
    return [centre + half * arb.cos_pi_fmpq(fmpq(k, degree)) for k in range(degree + 1)]


def weights(slopes: np.ndarray, offsets: np.ndarray, origin: float, points: Sequence[arb]) -> list[list[arb]]:
    """softmax(slopes t + offsets) in balls, a row a point."""
    a, g = ([arb(float(number)) for number in array] for array in (slopes, offsets))
    rows = []
    for x in points:
        t = x - origin
        logits = [slope * t + offset for slope, offset in zip(a, g, strict=True)]
        top = max(logits, key=lambda z: float(z.mid())).mid()
        powers = [(z - top).exp() for z in logits]
        total = sum(powers, arb(0))
        rows.append([power / total for power in powers])
    return rows


def rounded(rows: Sequence[Sequence[arb]], kind: type = np.float64) -> Shaped[np.ndarray, "n p"]:
    """Balls as floats of a kind, float64 or WIDE, each right to 4 units of itself, or to 1e-300."""
    if min(w.rel_accuracy_bits() for row in rows for w in row) < 72:
        raise AnchorheadError("the logits of the grid are too large for a proof: use fewer anchors or a smaller box")
    return _wide(rows).astype(kind)


def _wide(rows: Sequence[Sequence[arb]]) -> Shaped[np.ndarray, "n p"]:
    """The middles of balls, as the sum of two float64."""
    middles = [[w.mid() for w in row] for row in rows]
    near = np.array([[float(middle) for middle in row] for row in middles])
    rest = [[float(m - x) for m, x in zip(row, floats, strict=True)] for row, floats in zip(middles, near, strict=True)]
    return near.astype(WIDE) + np.array(rest)


@dataclass(frozen=True, eq=False)
class Expansion:
    """The weights of a grid along one axis in Chebyshev polynomials on an interval.

    table   (N + 1, p): C_ik, right to 4 UNIT of each, or to 1e-30
    sizes   (m, N + 1): bounds on beta_i
    far     for q = 0, 1, 2 a bound on the sum over i > N of d(i; q) beta_i, and what aliasing moves below, together
    reach   R times half the length of the interval
    """

    table: Shaped[np.ndarray, "degrees p"]
    sizes: Float[np.ndarray, "m degrees"]
    far: tuple[float, ...]
    reach: float

    def tail(self, order: int) -> Float[np.ndarray, "m degrees"]:
        """For every degree n, sum_{i > n} d(i; q) beta_i; never increasing."""
        moved = growth(self.sizes.shape[1], order) * self.sizes
        after = np.cumsum(moved[:, ::-1], axis=1)[:, ::-1]
        return np.concatenate([after[:, 1:], np.zeros((len(after), 1))], axis=1) + self.far[order]

    @cached_property
    def errors(self) -> Float[np.ndarray, "m degrees"]:
        """By how much interpolation along the axis may err, for every degree."""
        return 2 * self.tail(0) * UP

    def degree(self, allowed: float) -> int:
        """The smallest degree, at least 2, that errs by no more than allowed; as large as there are, if none does."""
        small = (self.errors.max(axis=0) <= allowed).nonzero()[0]
        return max(2, int(small[0]) if len(small) else self.errors.shape[1] - 1)

    def __getitem__(self, degree: int) -> Float[np.ndarray, " m"]:
        return self.errors[:, min(degree, self.errors.shape[1] - 1)]


def growth(degrees: int, order: int) -> Float[np.ndarray, " degrees"]:
    """d(i; q): the largest |T_i|, |T_i'|, |T_i''| on [-1, 1]: 1, i^2, i^2 (i^2 - 1) / 3."""
    i = np.arange(degrees, dtype=np.float64)
    return (np.ones_like(i), i**2, i**2 * (i**2 - 1) / 3)[order]


def expansion(
    atom: GridAtom, axis: int, low: float, high: float, negligible: float, order: int = 0
) -> Expansion | None:
    """The expansion along an axis on [low, high]; None if it takes too many coefficients to make far[order]
    negligible."""
    slopes, offsets = (array.astype(np.float64) for array in atom.axes[axis])
    largest = atom.max_value
    reach = (slopes.max() - slopes.min()) / 2 * (high - low) / 2 * UP
    if reach == 0:
        table, far = np.zeros((3, len(slopes)), WIDE), (0.0, 0.0, 0.0)
        with precision(PRECISION):
            table[0] = _wide(weights(slopes, offsets, float(atom.origins[axis]), [arb(low)]))[0]
    else:
        sine = STEEP / reach / UP
        rho = min(sine + math.hypot(sine, 1.0), LARGEST_RHO) / UP
        counts = range(16, MAX_COEFFICIENTS + 1, 16)
        count = next((n for n in counts if _beyond(rho, n, order) * max(largest, 1e-300) <= negligible), None)
        if count is None:
            return None
        table = _coefficients(slopes, offsets, float(atom.origins[axis]), low, high, count)
        far = tuple(_beyond(rho, count, q) * largest for q in range(3))
    values = np.moveaxis(atom.values.astype(np.float64), axis, 0).reshape(len(slopes), -1, atom.outputs)
    read = np.tensordot(np.abs(table).astype(np.float64), np.abs(values), axes=(1, 0)).max(axis=1).T
    noise = (len(slopes) + 8) * UNIT * 1.01 * read + len(slopes) * 1e-30 * largest
    sizes = np.abs(np.tensordot(table, values.astype(WIDE), axes=(1, 0))).max(axis=1).T.astype(np.float64) + noise
    return Expansion(table, sizes, far, float(reach))


def _beyond(rho: float, count: int, order: int) -> float:
    """sum_{i > N} of d(i; q) 2 S rho^-i, twice: what lies beyond N, and what aliasing moves below."""
    power = 2 * order
    ratio = (1 + 1 / count) ** power / rho
    if ratio >= 1:
        return math.inf
    first = (count + 1.0) ** power * rho ** -(count + 1.0)
    return 4 / math.cos(STEEP * UP) * first / (1 - ratio) * UP


@remembered(32)
def _coefficients(
    slopes: Float[np.ndarray, " p"],
    offsets: Float[np.ndarray, " p"],
    origin: float,
    low: float,
    high: float,
    count: int,
) -> Shaped[np.ndarray, "coefficients p"]:
    """C_ik for i <= count, as WIDE floats, right to 4 UNIT of each, or to 1e-30.

    C_ik = (2/N) h_i sum_l h_l cos(i l pi / N) w_k(x_l),   h = 1/2 at 0 and N, otherwise 1.
    """
    with precision(PRECISION):
        rows = weights(slopes, offsets, origin, chebyshev_points(low, high, count))
        half = arb(1) / 2
        rows[0], rows[-1] = ([w * half for w in row] for row in (rows[0], rows[-1]))
        cosines = [arb.cos_pi_fmpq(fmpq(i, count)) for i in range(2 * count)]
        transform = arb_mat([[cosines[i * k % (2 * count)] for k in range(count + 1)] for i in range(count + 1)])
        product = transform * arb_mat(rows)
        balls = [[product[i, k] * 2 / count for k in range(len(slopes))] for i in range(count + 1)]
        if max(upper(ball.rad()) for row in balls for ball in row) > 1e-31:
            raise AnchorheadError("the logits of the grid are too large for a proof: use fewer anchors")
        table = _wide(balls)
    table[[0, -1]] /= 2
    return table


def head_on_grid(atom: GridAtom, matrices: Sequence[np.ndarray]) -> tuple[np.ndarray, Float[np.ndarray, " m"]]:
    """r on a tensor grid, (m, n_1, …, n_d), from `rounded` weights and in their kind, and a bound on its error.

    With u the unit of the kind, weights are off by 4 u of themselves, sums over p terms by gamma_p, relative to
    sum_k w_k |v_k|.
    """
    kind = matrices[0].dtype
    unit = max(float(np.finfo(kind).eps) / 2, UNIT)
    values = np.moveaxis(atom.values.astype(np.float64), -1, 0)
    read = np.stack([contract(one, matrices) for one in values.astype(kind)])
    narrow = [matrix.astype(np.float64) for matrix in matrices]
    largest = np.array([contract(one, narrow).max() for one in np.abs(values)]) * UP
    bias = atom.bias.astype(np.float64)
    steps = sum(side + 6 for side in atom.sides) + 2
    error = 1.01 * unit * (steps * largest + np.abs(bias)) + 1e-290 * (1 + atom.max_value)
    return read + bias.astype(kind).reshape(-1, *[1] * atom.variables), error
