"""The keys of heads: which are left out because they never weigh anything, and which one a constant query picks."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from anchorhead.verify.direct.held import SUM, UNKNOWN, Held
from anchorhead.verify.errors import require
from anchorhead.verify.grammar import Attention
from anchorhead.verify.rounding import SILENT, own_error, power_of_two

MOST = 1 << 26
"""Numbers of a matrix or of a table of logits."""


@dataclass(frozen=True, eq=False)
class Keys:
    """Logits slopes t + offsets, where stored offsets are up to `wrong` off the constants that they stand for, and
    values (keys, columns). live: the keys that are not left out, in their order."""

    slopes: np.ndarray
    offsets: np.ndarray
    values: np.ndarray
    wrong: np.ndarray
    live: np.ndarray


def keys_of(slopes: np.ndarray, keys: np.ndarray, query: np.ndarray, values: np.ndarray) -> Keys:
    """Offsets are products of constant keys (keys, entries) with a constant query (entries,)."""
    products = keys * query
    terms, odd = (products != 0).sum(axis=1), (~power_of_two(keys) & ~power_of_two(query)).any(axis=1)
    wrong = np.where((terms > 1) | odd, own_error(terms) * np.abs(products).sum(axis=1), 0.0)
    offsets = keys @ query
    order = np.lexsort((offsets, slopes))
    return Keys(slopes, offsets, values, wrong, order[_within_reach(slopes, offsets)[order]])


def _within_reach(slopes: np.ndarray, offsets: np.ndarray) -> np.ndarray:
    """Which lines come within SILENT of the largest of all somewhere.

    The largest is convex and piecewise linear, so a line of a slope between its first and its last is closest to it at
    one of its corners; `1e-12` of all sizes allows for float64. This decides what the plan is; that what it leaves out
    is silent is shown where the plan is walked.
    """
    hull: list[int] = []
    for k in np.lexsort((offsets, slopes)).tolist():
        while hull and slopes[hull[-1]] == slopes[k]:
            hull.pop()
        while len(hull) > 1 and _meet(slopes, offsets, hull[-2], k) <= _meet(slopes, offsets, hull[-2], hull[-1]):
            hull.pop()
        hull.append(k)
    if len(hull) == 1:
        return offsets >= offsets[hull[0]] - SILENT
    corners = np.array([_meet(slopes, offsets, a, b) for a, b in pairwise(hull)])
    top = slopes[hull[:-1]] * corners + offsets[hull[:-1]]
    lines = slopes[:, None] * corners
    noise = 1e-12 * (np.abs(lines) + np.abs(offsets[:, None]) + np.abs(top))
    return (top - (lines + offsets[:, None]) - noise).min(axis=1) < SILENT


def _meet(slopes: np.ndarray, offsets: np.ndarray, a: int, b: int) -> float:
    return float((offsets[a] - offsets[b]) / (slopes[b] - slopes[a]))


def copies(layer: Attention, query: np.ndarray, key: np.ndarray, value: Held, visible: np.ndarray) -> Held:
    """What each token reads where queries (tokens, heads, size) are constants and every head has one winner."""
    count, heads, _ = query.shape
    require(count * heads * len(key) <= MOST, "direct: too many logits")
    key = np.broadcast_to(key, (len(key), heads, key.shape[2]))
    logits, sizes = (np.einsum("nhs,mhs->nhm", *pair) for pair in ((query, key), (np.abs(query), np.abs(key))))
    logits = np.where(visible[:, None, :], logits, -np.inf)
    winner = logits.argmax(axis=2)
    lead = np.take_along_axis(logits, winner[..., None], 2) - logits - 1e-5 * sizes.max(axis=2, keepdims=True)
    np.put_along_axis(lead, winner[..., None], np.inf, axis=2)
    require(bool((lead >= SILENT).all()), "direct: a head copies no single token")
    which = np.arange(heads) if value.place.shape[1] > 1 else np.zeros(heads, int)
    read = Held(value.place[winner, which], value.factor[winner, which]).reshaped(count, -1)
    used = (layer.output != 0).any(axis=1).reshape(-1)
    require(bool((read.place[:, used] != SUM).all()), "direct: what is copied is a sum")
    return Held(np.where(read.place == SUM, UNKNOWN, read.place), read.factor)


def first_alike(weight: np.ndarray, heads: int) -> np.ndarray:
    """For each head the first one with the same weights."""
    if len(weight) == 1:
        return np.zeros(heads, int)
    _, first, inverse = np.unique(weight.reshape(len(weight), -1), axis=0, return_index=True, return_inverse=True)
    return first[inverse.reshape(-1)]
