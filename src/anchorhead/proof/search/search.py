"""The largest error of a network of truncated linear functions that a search finds, to hold against its bound.

The output of token i depends on s_i = w_i . x_i + t_i alone, so all tokens are driven at once, each along the segment
of the box from the corner with its smallest s to the corner with its largest, and the search is one in s. Errors live
in narrow places: it begins at points that crowd (proof.search.hunt_points) towards every crossing of neighbouring
anchors and the middles between them, the kinks of the target and the ends of what a certificate leaves out. In the end
other inputs with the worst s are tried, which round otherwise, and inputs at random.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from anchorhead.domain import Box
from anchorhead.language.targets.ramp import TruncatedLinear
from anchorhead.network import Network
from anchorhead.proof.heads.whole_head import WholeHead, read_network
from anchorhead.proof.search.callable_search import Search
from anchorhead.proof.search.hunt_points import FloatRange, from_ordinals

POINTS, ROUNDS, RANDOM_ROWS = 1 << 14, 30, 64
"""How many places are looked at first, how often the search climbs on, and how many other inputs are tried then."""


@dataclass(frozen=True, eq=False)
class Worst:
    """The largest error found, its token, its s = w . x + t, its input, and how many values were compared."""

    error: float
    token: int
    s: float
    x: Float[np.ndarray, "tokens inputs"]
    evaluations: int


@dataclass(frozen=True, eq=False)
class Segments:
    """The corners of the box with each token's smallest and largest s, and inputs with any s between."""

    target: TruncatedLinear
    box: Box
    start: Float[np.ndarray, "tokens inputs"]
    end: Float[np.ndarray, "tokens inputs"]

    @classmethod
    def of(cls, target: TruncatedLinear, on: Box) -> Segments:
        box, up = on.broadcast_to(target.w.shape), target.w > 0
        return cls(target, box, np.where(up, box.low, box.high), np.where(up, box.high, box.low))

    @property
    def reach(self) -> tuple[Float[np.ndarray, " tokens"], Float[np.ndarray, " tokens"]]:
        """The smallest and the largest s of each token."""
        return self._s(self.start), self._s(self.end)

    def inputs(
        self, s: Float[np.ndarray, "rows tokens"], base: Float[np.ndarray, "rows tokens inputs"] | None = None
    ) -> Float[np.ndarray, "rows tokens inputs"]:
        """Inputs in the box with the given s, or the nearest s that the box allows.

        They lie on the segment, or, with a base, between the base and the corner on whose side s lies.
        """
        base = np.broadcast_to(self.start, (*s.shape, self.start.shape[-1])) if base is None else base
        least, most = self.reach
        here = self._s(base)
        up = s >= here
        whole = np.where(up, most - here, here - least)
        part = np.clip(np.abs(s - here) / np.where(whole > 0, whole, 1.0), 0.0, 1.0)[..., None]
        corner = np.where(up[..., None], self.end, self.start)
        return np.clip(base + part * (corner - base), self.box.low, self.box.high)

    def random(self, rows: int, rng: np.random.Generator) -> Float[np.ndarray, "rows tokens inputs"]:
        """Inputs anywhere in the box."""
        return rng.uniform(self.box.low, self.box.high, (rows, *self.start.shape))

    def _s(self, x: np.ndarray) -> np.ndarray:
        return np.asarray(self.target.pre_activations(x), dtype=np.float64)


def worst_error(network: Network, target: TruncatedLinear, on: Box, seed: int = 0) -> Worst:
    """The largest |network(x) - target(x)| found over the box, without what the certificate leaves out."""
    segments = Segments.of(target, on)
    excluded = network.certificate.excluded if network.certificate else ()
    least, most = segments.reach

    def errors(x: np.ndarray) -> np.ndarray:
        """Of every token, for (rows, tokens, inputs); -inf where nothing is claimed."""
        s, computed = target.pre_activations(x), network(x, outside="ignore")
        error = np.abs(computed - target.values(x)).max(axis=-1).astype(np.float64)
        for low, high in excluded:
            error[(s > low) & (s < high)] = -np.inf
        return error

    def errors_at(s: np.ndarray) -> np.ndarray:
        """The error at each s (n, 1), seen by one of the tokens that reach it, where any does."""
        token = (((s >= least) & (s <= most)) + along.rng.random((len(s), len(least)))).argmax(axis=1)
        order, counts = np.argsort(token, kind="stable"), np.bincount(token, minlength=len(least))
        row = np.empty(len(s), int)
        row[order] = np.arange(len(s)) - np.repeat(np.cumsum(counts) - counts, counts)
        every = np.tile(least, (counts.max(), 1))
        every[row, token] = s[:, 0]
        return errors(segments.inputs(every))[row, token]

    along = Search.of(errors_at, [least.min()], [most.max()], seed)
    places, gap = _places(read_network(network, on), segments, excluded)
    low, high = float(least.min()), float(most.max())
    crowded = FloatRange.between(low, high, places, "float64")
    points = np.concatenate([crowded.places, crowded.explore(0, POINTS, POINTS, along.rng)])
    starts = np.concatenate([least, most, from_ordinals(points, "float64")])
    _, best = along.climbed(starts[:, None], ROUNDS, min(gap / max(high - low, 1e-300) / 16, 0.1))
    some, same = segments.random(RANDOM_ROWS, along.rng), np.broadcast_to(best, (RANDOM_ROWS, len(least)))
    x = np.concatenate([segments.inputs(same[:1]), some, segments.inputs(same, some)])
    found = errors(x)
    row, token = np.unravel_index(int(found.argmax()), found.shape)
    s = float(target.pre_activations(x[row])[token])
    return Worst(max(float(found[row, token]), 0.0), int(token), s, x[row], along.evaluations + len(x))


def _places(
    form: WholeHead, segments: Segments, excluded: Sequence[tuple[float, float]]
) -> tuple[Float[np.ndarray, " places"], float]:
    """The values of s around which to look, and the distance of crossings from one another."""
    least, most = segments.reach
    token = int((most - least).argmax())
    heads, number = [head.merged() for head in form.heads], form.number.token(token)
    asked = [
        float(number.coefficients[0, 0] @ corner[token] + number.constant[0, 0])
        for corner in (segments.start, segments.end)
    ]
    ends = np.array([segments.target.low, segments.target.high, *(end for interval in excluded for end in interval)])
    if asked[0] == asked[1]:
        return ends, 0.1
    spacing = (most[token] - least[token]) / (asked[1] - asked[0])
    met = least[token] + spacing * (np.unique(np.concatenate([head.crossings for head in heads])) - asked[0])
    gap = float(np.median(np.abs(np.diff(met)))) if len(met) > 1 else abs(spacing)
    return np.concatenate([ends, met, met[:-1] + np.diff(met) / 2]), gap
