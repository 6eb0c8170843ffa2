"""The hunt: the largest error of a network that a search finds, to hold against the bound that a proof gives.

The output of token i depends on s_i = w_i . x_i + t_i alone, so all tokens are driven at once, each along the
segment of the box from the corner with its smallest s to the corner with its largest. Errors live in narrow
places: the points are dealt geometrically towards every crossing of neighbouring anchors, every anchor, the
kinks of the target, the ends of what a certificate leaves out and the hand-overs between heads. Random inputs
come on top, then a golden-section search around the largest errors, then other inputs with the same s, which
round otherwise.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Float

from anchorhead.domain import Box
from anchorhead.language.targets.ramp import TruncatedLinear
from anchorhead.network import Network
from anchorhead.proof.heads.whole_head import WholeHead, read_network

GOLDEN = (np.sqrt(5) - 1) / 2
MAX_PLACES = 2048
"""Of more crossings and anchors than these, those at the ends and a random choice are searched."""
RUNGS = 40
"""How often the distance to a kink is halved."""
STEPS = 32
"""How often the golden section narrows a bracket."""
RANDOM_ROWS = 64


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
    rng = np.random.default_rng(seed)
    hunt = _Hunt(network, target, Segments.of(target, on))
    least, most = hunt.segments.reach
    points = _points(read_network(network, on), hunt, rng)
    points = points[(points >= least.min()) & (points <= most.max())]

    hunt.look(hunt.segments.inputs(np.stack([least, most])))
    hunt.look(hunt.segments.random(RANDOM_ROWS, rng))
    width = target.high - target.low
    aims = rng.uniform(target.low - width / 4, target.high + width / 4, (RANDOM_ROWS, len(least)))
    hunt.look(hunt.segments.inputs(aims, hunt.segments.random(RANDOM_ROWS, rng)))
    if _reached(points, hunt).any():
        errors = _dealt(points, hunt, rng)
        _narrow(hunt, *_brackets(points, errors, count=max(4, 64 // len(least))))
    same = np.broadcast_to(hunt.s, (RANDOM_ROWS, len(least)))
    hunt.look(hunt.segments.inputs(same, hunt.segments.random(RANDOM_ROWS, rng)))
    return hunt.worst()


class _Hunt:
    """Evaluates, and remembers the worst of each token."""

    def __init__(self, network: Network, target: TruncatedLinear, segments: Segments) -> None:
        self.network, self.target, self.segments = network, target, segments
        self.excluded = network.certificate.excluded if network.certificate else ()
        tokens = len(target.t)
        self.error, self.s = np.full(tokens, -np.inf), np.zeros(tokens)
        self.x = np.zeros((tokens, *target.w.shape))
        self.evaluations = 0

    def look(self, x: Float[np.ndarray, "rows tokens inputs"]) -> Float[np.ndarray, "rows tokens"]:
        """The error of each token at each input, -inf where nothing is claimed."""
        s = self.target.pre_activations(x)
        computed = self.network(x, outside="ignore")
        error = np.abs(computed - self.target.values(x)).max(axis=-1).astype(np.float64)
        for low, high in self.excluded:
            error[(s > low) & (s < high)] = -np.inf
        self.evaluations += error.size
        row = error.argmax(axis=0)
        found = error[row, np.arange(error.shape[1])]
        for token in np.flatnonzero(found > self.error):
            self.error[token], self.s[token], self.x[token] = (
                found[token],
                s[row[token], token],
                x[row[token]],
            )
        return error

    def worst(self) -> Worst:
        token = int(self.error.argmax())
        return Worst(
            max(float(self.error[token]), 0.0),
            token,
            float(self.s[token]),
            self.x[token].copy(),
            self.evaluations,
        )


def _points(form: WholeHead, hunt: _Hunt, rng: np.random.Generator) -> Float[np.ndarray, " points"]:
    """The values of s to look at, ascending."""
    least, most = hunt.segments.reach
    token = int((most - least).argmax())
    heads, number = [head.merged() for head in form.heads], form.number.token(token)
    asked = [
        float(number.coefficients[0, 0] @ corner[token] + number.constant[0, 0])
        for corner in (hunt.segments.start, hunt.segments.end)
    ]
    if asked[0] == asked[1]:
        return np.zeros(0)
    spacing = (most[token] - least[token]) / (asked[1] - asked[0])

    def to_s(query: np.ndarray) -> np.ndarray:
        return least[token] + spacing * (query - asked[0])

    crossings = np.unique(np.concatenate([head.crossings for head in heads]))
    steepest = max(float(np.diff(head.slopes).max()) for head in heads)
    gap = float(np.median(np.diff(crossings))) if len(crossings) > 1 else 1.0
    places = np.concatenate(
        [crossings, crossings[:-1] + np.diff(crossings) / 2, crossings[[0, -1]] + [-gap / 2, gap / 2]]
    )
    rungs = int(np.clip(np.ceil(np.log2(gap * steepest)) + 1, 3, 16))
    points = [to_s(_ladder(_thinned(places, rng), gap / 2, rungs))]

    hand_overs = np.unique([end for head in heads for end in head.crossings[[0, -1]]])
    points.append(to_s(_ladder(_thinned(hand_overs, rng, MAX_PLACES // 16), 4 * gap, rungs + 6)))
    edges = np.array([end for interval in hunt.excluded for end in interval])
    points.append(_ladder(_thinned(edges, rng, MAX_PLACES // 16), 4 * gap * abs(spacing), RUNGS))
    kinks = np.array([hunt.target.low, hunt.target.high])
    points.append(_ladder(kinks, 2 * float(max(most.max() - kinks[0], kinks[1] - least.min())), RUNGS))
    return np.unique(np.concatenate(points))


def _thinned(places: np.ndarray, rng: np.random.Generator, most: int = MAX_PLACES) -> np.ndarray:
    """At most so many of the places: the outermost, and a random choice of the others."""
    if len(places) <= most:
        return places
    places = np.sort(places)
    ends = most // 16
    inner = rng.choice(places[ends:-ends], most - 2 * ends, replace=False)
    return np.concatenate([places[:ends], inner, places[-ends:]])


def _ladder(places: np.ndarray, gap: float, rungs: int) -> np.ndarray:
    """The places, and points at distances gap / 2, gap / 4, ... on both sides of each."""
    distances = gap * 0.5 ** np.arange(1, rungs + 1)
    steps = np.concatenate([-distances, [0.0], distances])
    return (places[:, None] + steps).ravel()


def _reached(points: np.ndarray, hunt: _Hunt) -> Bool[np.ndarray, "points tokens"]:
    """Which tokens can have each value of s."""
    least, most = hunt.segments.reach
    return (points[:, None] >= least) & (points[:, None] <= most)


def _dealt(points: np.ndarray, hunt: _Hunt, rng: np.random.Generator) -> Float[np.ndarray, " points"]:
    """The error at each point, seen by one of the tokens that reach it; they take turns."""
    least, most = hunt.segments.reach
    can = _reached(points, hunt)
    # between the reaches of two tokens nobody can look
    seen = can.any(axis=1)
    turn = np.arange(len(points)) % np.maximum(can.sum(axis=1), 1)
    token = (can & (can.cumsum(axis=1) - 1 == turn[:, None])).argmax(axis=1)
    errors = np.full(len(points), -np.inf)
    own = [np.flatnonzero(seen & (token == i)) for i in range(len(least))]
    rows = max(len(indices) for indices in own)
    s = rng.uniform(least, most, (rows, len(least)))
    for i, indices in enumerate(own):
        s[: len(indices), i] = points[indices]
    found = hunt.look(hunt.segments.inputs(s))
    for i, indices in enumerate(own):
        errors[indices] = found[: len(indices), i]
    return errors


def _brackets(points: np.ndarray, errors: np.ndarray, count: int) -> tuple[np.ndarray, np.ndarray]:
    """The neighbours on both sides of the largest local maxima."""
    padded = np.concatenate([[-np.inf], errors, [-np.inf]])
    peaks = np.flatnonzero((errors >= padded[:-2]) & (errors >= padded[2:]) & np.isfinite(errors))
    peaks = peaks[np.argsort(-errors[peaks], kind="stable")[:count]]
    return points[np.maximum(peaks - 1, 0)], points[np.minimum(peaks + 1, len(points) - 1)]


def _narrow(hunt: _Hunt, low: np.ndarray, high: np.ndarray) -> None:
    """Golden section in every bracket, for all tokens at once, each by what it finds itself."""
    shape = (len(low), len(hunt.error))
    a, b = (np.broadcast_to(end[:, None], shape).copy() for end in (low, high))

    def errors(s: np.ndarray) -> np.ndarray:
        return hunt.look(hunt.segments.inputs(s))

    left, right = b - GOLDEN * (b - a), a + GOLDEN * (b - a)
    at_left, at_right = errors(left), errors(right)
    for _ in range(STEPS):
        keep = at_left > at_right
        a, b = np.where(keep, a, left), np.where(keep, right, b)
        fresh = np.where(keep, b - GOLDEN * (b - a), a + GOLDEN * (b - a))
        found = errors(fresh)
        left, right = np.where(keep, fresh, right), np.where(keep, left, fresh)
        at_left, at_right = np.where(keep, found, at_right), np.where(keep, at_left, found)
