"""Functions of two to four variables by one softmax over a tensor grid of anchors: keys chosen, values solved for.

Keys. Slopes delta (k - (p - 1)/2) with offsets kappa log binomial(p - 1, k). For kappa = 1 the weights of an axis are
the Bernstein polynomials of s = sigmoid(delta x), so that r is any polynomial of degree p - 1 in s. With a small delta
that is nearly a polynomial in x, for smooth functions the best there is, but values grow and rounding with them; a
large delta keeps values tame. kappa above 1 draws weights together, below 1 the reverse. The solver picks both.

Values. Given the keys, r is linear in the values and a product along axes: with f sampled at tensor Chebyshev nodes,
V = F x_1 pinv(W^1) … x_d pinv(W^d), one small least-squares problem an axis.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import product
from math import lgamma, log, prod
from typing import Any

import numpy as np
from jaxtyping import Float

from anchorhead.effort import Effort
from anchorhead.errors import AnchorheadError
from anchorhead.heads.arithmetic import arithmetic_of
from anchorhead.heads.atom import Dtype, softmax
from anchorhead.heads.grids.grid_atom import GridAtom, contract
from anchorhead.heads.grids.grid_samples import BoxedFunction, Samples, SeveralFunction, chebyshev
from anchorhead.progress import Progress, Status

__all__ = ["GridAtom", "even_places", "solve_grid", "uniform_grid"]

_DELTAS = (0.3, 0.45, 0.65, 0.9, 1.2, 1.6, 2.1, 2.8, 3.7, 5.0, 7.0)
"""Slope steps, per half width of the box."""
_POWERS = (0.5, 1.0, 2.0, 3.0)
_FAMILY = tuple(product(_DELTAS, _POWERS))
_CUTS = (1e-13, 1e-9)
"""Singular values below this part of the largest are left out: less error or smaller values."""
_SHARES = (0.02, 0.05, 0.1, 0.2, 0.35, 0.5, 0.7, 1.0, 1.4)
_GAINS = (1.5, 3, 6, 12, 30, 100, 1e3, 1e4, 1e5, 1e6, 1e8, 1e10)
_COUNTS = np.unique(np.concatenate([np.arange(1, 25), np.geomspace(25, 160, 24)]).astype(int))
"""How many anchors an axis may have."""
_TRIES = 150
_EACH = 4
"""How many grids are tried at each level of caution, and of each size."""
_SEARCH, _TRIED = 6_000_000, 0.05
"""The work (anchorhead.effort) that trying grids may take, and that of one grid for each value that it is held to."""
_ROUGH = 300.0
"""Errors of fewer units of rounding than these, of the function's size, are lost in the rounding of its samples."""
_REACHED = {"float64": 1e-9, "float32": 1e-4}
"""What grids for smooth functions reach, of the function's size: values grow to a multiple of it."""
_CAUTION = (0.3, 10.0, 300.0, 1e4)


@dataclass(frozen=True)
class _Keys:
    """p anchors along an axis, the error they leave, and the growth of values, weighted, that they cost."""

    p: int
    delta: float
    power: float
    cut: float
    error: float
    gain: float


def solve_grid(
    f: SeveralFunction,
    low: Any,
    high: Any,
    within: float,
    dtype: Dtype = "float64",
    most: int = 20_000,
    progress: Progress | None = None,
) -> GridAtom:
    """The smallest grid found whose estimated error, rounding included, is at most `within`.

    f         vectorised, (n, d) -> (n, m) or (n,)
    low, high the ends of the box, (d,)
    most      the most anchors that the grid may have; a grid that would be larger is refused before it is built
    progress  told the anchors and the error as the search goes on
    """
    if isinstance(within, bool) or not isinstance(within, int | float | np.number) or not within > 0:
        raise AnchorheadError(f"within={within!r}: the error asked for, a number above 0")
    samples = Samples.of(BoxedFunction.of(f, low, high), within / 50)
    d, unit = samples.box.variables, arithmetic_of(dtype).unit
    size = max(samples.scale, float(np.abs(samples.centre).max()))
    if within < unit * max(size, _CAUTION[0] * _reads(1, d) * samples.scale / 2):
        raise _below_rounding(within, dtype, samples.scale, size)
    axes = [_AxisTable(samples, j, within) for j in range(d)]
    needed = [axis.needed for axis in axes]
    too_long = not samples.resolved or not all(axis.options for axis in axes)
    if too_long or min(prod(choice) for choice in product(*(axis.sizes for axis in axes))) > most:
        if within < _ROUGH * unit * size:
            raise _below_rounding(within, dtype, samples.scale, size)
        raise _too_large(needed, within, most)
    best, effort = np.inf, Effort(_SEARCH)
    for keys in _in_order(axes, samples.scale, within, dtype, most):
        if effort.over:
            break
        atom = solved(samples, keys, dtype)
        exact, rounding = samples.error(atom)
        effort.spend(_TRIED * samples.looked_at)
        best = min(best, exact + rounding)
        if progress:
            progress(Status("solving for a grid", atom.anchors, exact + rounding))
        if exact + rounding <= within:
            return atom
    if not np.isfinite(best) and prod(needed) > most:
        raise _too_large(needed, within, most)
    if not np.isfinite(best) and within < _REACHED[dtype] * samples.scale:
        raise _below_rounding(within, dtype, samples.scale, size)
    closest = f": the best grid of at most {most:,} anchors errs by about {best:.3g}, rounding included"
    raise AnchorheadError(
        f"within={within:g} is not reached in {dtype}"
        f"{' with the work that a search may take' if effort.over else ''}{closest if np.isfinite(best) else ''}. "
        f"What would help: {'float64, ' if dtype == 'float32' else ''}a larger error, a smaller box"
    )


def solved(samples: Samples, keys: Sequence[_Keys], dtype: Dtype) -> GridAtom:
    """The grid with these keys and the values that fit the samples best.

    Values may be 1e10 times as large as the function, and cancel: as float64 solves for them they are off by much more
    than the fit is, and each machine's linear algebra in a way of its own. So what is left of the samples is taken in
    the machine's widest floats, and fitted once more.
    """
    box, wide = samples.box, np.longdouble
    weights, inverses, axes = [], [], []
    origins = box.mid.astype(dtype).astype(np.float64)
    for j, one in enumerate(keys):
        slopes, offsets = binomial_keys(one.p, one.delta, one.power)
        steep = slopes / box.half[j]
        tilted = offsets - steep * (box.mid[j] - origins[j])
        axes.append((steep.astype(dtype), (tilted - tilted.max() / 2).astype(dtype)))
        if not all(np.isfinite(array).all() for array in axes[-1]):
            raise AnchorheadError(
                f"a grid would need weights beyond what {dtype} holds: rescale the function and its box"
            )
        # weights of the keys as stored, so that their rounding is no error
        steep, tilted = (array.astype(wide) for array in axes[-1])
        x = box.mid[j] + box.half[j] * samples.nodes[j] - origins[j]
        weights.append(softmax(x[:, None] * steep + tilted))
        inverses.append(np.linalg.pinv(weights[-1].astype(np.float64), rcond=one.cut))
    values = contract(samples.values, inverses)
    left = samples.values - contract(values.astype(wide), weights)
    return GridAtom.of(axes, origins, values + contract(left.astype(np.float64), inverses), samples.centre, dtype)


def binomial_keys(p: int, delta: float, power: float) -> tuple[Float[np.ndarray, " p"], Float[np.ndarray, " p"]]:
    """Slopes and offsets on [-1, 1]; their softmax, for power 1: the Bernstein basis in sigmoid(delta x)."""
    k = np.arange(p)
    offsets = np.array([lgamma(p) - lgamma(i + 1) - lgamma(p - i) for i in range(p)])
    return delta * (k - (p - 1) / 2), power * offsets


@lru_cache(maxsize=96)
def _factored(n: int, p: int) -> tuple[np.ndarray, ...]:
    """The weights at n Chebyshev nodes, for each member of the family, and their singular value decompositions."""
    keys = [binomial_keys(p, delta, power) for delta, power in _FAMILY]
    weights = np.stack([softmax(chebyshev(n)[:, None] * a + g) for a, g in keys])
    return weights, *np.linalg.svd(weights, full_matrices=False)


class _AxisTable:
    """For one axis: which errors, at which growth of values, so many anchors achieve along it alone."""

    def __init__(self, samples: Samples, axis: int, within: float) -> None:
        table, nodes = samples.columns(axis), samples.nodes[axis]
        self.within, self.options = within, []
        self.curve: list[tuple[int, float]] = []
        scale = max(samples.scale, 1e-300)
        for p in (int(count) for count in _COUNTS if 3 * count <= 2 * len(nodes)):
            weights, left, sizes, right = _factored(len(nodes), p)
            onto = left.transpose(0, 2, 1) @ table
            best = np.inf
            for cut in _CUTS:
                kept = sizes > cut * sizes[:, :1]
                part = np.where(kept[:, :, None], onto, 0)
                errors = np.abs(left @ part - table).max(axis=(1, 2))
                best = min(best, float(errors.min()))
                near = np.flatnonzero(errors <= _SHARES[-1] * within)
                if not near.size:
                    continue
                scaled = part[near] / np.where(kept, sizes, 1)[near, :, None]
                sizes_of_values = np.abs(right[near].transpose(0, 2, 1) @ scaled)
                gains = np.maximum((weights[near] @ sizes_of_values).max(axis=(1, 2)) / scale, 1e-3)
                self.options += [
                    _Keys(p, *_FAMILY[k], cut, float(errors[k]), float(gain))
                    for k, gain in zip(near, gains, strict=True)
                ]
            self.curve.append((p, best))
            tame = any(o.p == p and o.error <= 0.1 * within and o.gain <= 2 for o in self.options)
            hopeless = p >= 20 and not self.options and self.needed > 2 * _COUNTS[-1]
            if tame or hopeless or p >= 6 + 3 * self.first:
                break

    @property
    def first(self) -> float:
        """The fewest anchors that come into question."""
        return min((option.p for option in self.options), default=np.inf)

    @property
    def sizes(self) -> list[int]:
        return sorted({option.p for option in self.options}) or [int(_COUNTS[-1])]

    @property
    def needed(self) -> int:
        """How many anchors it takes along this axis, extrapolated from how the error falls."""
        goal = self.within / 4
        reached = [p for p, error in self.curve if error <= goal]
        if reached:
            return reached[0]
        (p, last), (q, before) = self.curve[-1], self.curve[len(self.curve) // 2]
        if p == q or not last < before:
            return 10 * p
        steady = p + log(last / goal) * (p - q) / log(before / last)
        algebraic = p * (last / goal) ** (log(p / q) / log(before / last))
        return int(min(steady if _falls_fast(self.curve) else algebraic, 10**6)) + 1

    def choices(self) -> list[_Keys]:
        """The fewest anchors for each level of error and of growth, those that others beat left out."""
        found: dict[tuple[float, ...], _Keys] = {}
        for share, gain in product(_SHARES, _GAINS):
            fit = [o for o in self.options if o.error <= share * self.within and o.gain <= gain]
            if fit:
                best = min(fit, key=lambda o: (o.p, o.error / self.within + o.gain / gain))
                found[best.p, best.delta, best.power, best.cut] = best
        kept: list[_Keys] = []
        for one in sorted(found.values(), key=lambda o: (o.p, o.error)):
            if not any(o.p <= one.p and o.error <= one.error and o.gain <= one.gain for o in kept):
                kept.append(one)
        return kept


def _falls_fast(curve: list[tuple[int, float]]) -> bool:
    """Whether the error falls geometrically: with every anchor of the second half as fast as in the first."""
    (p, first), (q, middle), (r, last) = (curve[i] for i in (len(curve) // 4, len(curve) // 2, -1))
    if not first > middle > last > 0:
        return False
    return log(middle / last) / (r - q) > 0.75 * log(first / middle) / (q - p)


def _in_order(
    axes: list[_AxisTable], scale: float, within: float, dtype: Dtype, most: int
) -> Iterator[tuple[_Keys, ...]]:
    """Keys for all axes that may achieve the error: the smallest grids first, then those that keep values smaller.

    Values may grow by more than the product of what each axis does to them alone, so caution increases.
    """
    tables = [axis.choices() for axis in axes]
    while prod(len(table) for table in tables) > 2_000_000:
        longest = max(tables, key=len)
        longest[:] = longest[::2]
    seen = set()
    for caution in _CAUTION:
        for keys in _by_size(tables, scale, within, caution * arithmetic_of(dtype).unit, most):
            if keys not in seen:
                seen.add(keys)
                yield keys


def _by_size(tables: list[list[_Keys]], scale: float, within: float, unit: float, most: int) -> list[tuple[_Keys, ...]]:
    """Keys whose errors and rounding add up to no more than twice what is asked for, a few for each size."""
    d = len(tables)
    shaped = [
        [np.array([getattr(o, name) for o in table]).reshape([-1 if i == j else 1 for i in range(d)]) for name in names]
        for j, table in enumerate(tables)
        for names in [("p", "error", "gain")]
    ]
    size = prod(one[0] for one in shaped)
    error = sum(one[1] for one in shaped)
    rounding = unit * _reads(size, d) * scale * prod(one[2] for one in shaped)
    total = np.asarray(error + rounding)
    places = np.argwhere((total <= 2 * within) & (size <= most))
    # the most promising of each size, and then by size
    ranked = sorted(places.tolist(), key=lambda at: float(total[tuple(at)]))
    tried: dict[int, int] = {}
    chosen = []
    for at in ranked:
        keys = tuple(table[i] for table, i in zip(tables, at, strict=True))
        anchors = prod(one.p for one in keys)
        tried[anchors] = tried.get(anchors, 0) + 1
        if tried[anchors] <= _EACH:
            chosen.append((anchors, float(total[tuple(at)]), keys))
    chosen.sort(key=lambda one: one[:2])
    return [keys for _, _, keys in chosen[:_TRIES]]


def _reads(anchors: Any, variables: int) -> Any:
    """About how many units of rounding, of the size of its values, a head over a grid costs."""
    return 2 * anchors + 60 * variables


def _below_rounding(within: float, dtype: Dtype, scale: float, size: float) -> AnchorheadError:
    unit = arithmetic_of(dtype).unit
    reach = max(_REACHED[dtype] * scale, 2 * unit * size)
    wider = "use dtype='float64', give a larger error" if dtype == "float32" else "give a larger error"
    return AnchorheadError(
        f"within={within:g} is out of reach in {dtype}, whose rounding is the limit: the function is of size "
        f"{size:.2g}, {dtype} rounds by {unit:.2g} of that at each step, and a head over a grid of it gets to "
        f"about {reach:.0e} where it is smooth; {wider}, or a smaller box"
    )


def _too_large(needed: Sequence[int], within: float, most: int) -> AnchorheadError:
    size = f"{' x '.join(f'{n:,}' for n in needed)} = {prod(needed):,}"
    # what is extrapolated from few anchors may say less than what was tried in vain
    least = "about" if prod(needed) > most or max(needed) > _COUNTS[-1] else "more than"
    return AnchorheadError(
        f"within={within:g} would take a grid of {least} {size} anchors, and at most {most:,} are "
        f"allowed, {_COUNTS[-1]} along an axis: give a larger "
        "error or a smaller box, or write the function as a sum of functions of fewer variables "
        "(kinks and steep places take many anchors along their axis)"
    )


def even_places(low: float, high: float, count: int) -> Float[np.ndarray, " p"]:
    """Where the paper puts p anchors: evenly, from end to end; a single one in the middle."""
    return np.linspace(low, high, count) if count > 1 else np.array([low / 2 + high / 2])


def uniform_grid(f: SeveralFunction, low: Any, high: Any, sides: Any, c: float, dtype: Dtype = "float64") -> GridAtom:
    """The paper's placement: even anchors L along each axis, values f(L), one sharpness c.

    With beta_j = c / spacing_j^2:   slopes 2 beta_j L,   offsets -beta_j L^2, both from the middle of the box. A single
    anchor along an axis stands in its middle.
    """
    box = BoxedFunction.of(f, low, high)
    counts = tuple(int(side) for side in np.broadcast_to(np.asarray(sides, dtype=int), (box.variables,)))
    if min(counts) < 1 or not c > 0:
        raise AnchorheadError(f"sides={sides!r}, c={c!r}: at least 1 even anchor along each axis, and c above 0")
    origins = box.mid.astype(dtype).astype(np.float64)
    axes, places = [], [even_places(a, b, count) for a, b, count in zip(box.low, box.high, counts, strict=True)]
    for j, count in enumerate(counts):
        beta = c / ((box.high[j] - box.low[j]) / max(count - 1, 1)) ** 2
        away = places[j] - origins[j]
        axes.append((2 * beta * away, -beta * away**2))
    x = np.stack(np.meshgrid(*places, indexing="ij"), axis=-1)
    values = box.at(x.reshape(-1, box.variables)).reshape(*counts, -1)
    return GridAtom.of(axes, origins, values, np.zeros(values.shape[-1]), dtype)
