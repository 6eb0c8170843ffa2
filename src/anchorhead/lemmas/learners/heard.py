"""Keys that are asked with one number t: which of them are heard, and up to which t those that are not meant are not.

Anchors of a link stand beside anchors of other links, and beside tokens that are none: these have lower offsets.
"""

from __future__ import annotations

import numpy as np

from anchorhead.lemmas.learners.reading import require
from anchorhead.proof.arithmetic.readings import Keys
from anchorhead.proof.arithmetic.silence import SILENT, out_of_reach

Numbers = tuple[np.ndarray, ...]
"""Anchors as rows see them: slopes, offsets and values, of a grid along both axes."""


def loud(keys: Keys) -> np.ndarray:
    """The keys that some t may hear. For t >= 0 the largest logit, as computed, is at least the offset of any key with
    a slope of at least 0 and no other terms, and likewise below: rounding keeps the order of numbers. A key of slope 0
    rounds nothing."""
    sides = [keys.offsets[keys.plain & (side * keys.slopes >= 0)].max(initial=-np.inf) for side in (-1, 1)]
    silent = (keys.slopes == 0) & keys.plain & (keys.terms <= 1)
    return np.flatnonzero(~(silent & (keys.offsets + 2 * SILENT <= min(sides))))


def apart(keys: Keys) -> tuple[np.ndarray, float]:
    """The keys that are meant, whose offsets lie above the first wide gap, and |t| up to which all others are out of
    reach."""
    levels, heard = np.unique(keys.offsets), loud(keys)
    wide = np.flatnonzero(np.diff(levels) > np.ptp(levels) / 4)
    meant = keys.offsets[heard] >= (levels[wide[-1] + 1] if len(wide) else -np.inf)
    require(meant.any(), "a link has no anchors")
    near, far = heard[meant], heard[~meant]
    if not len(far):
        return near, np.inf
    slopes, offsets = np.abs(keys.slopes), keys.offsets
    rise = np.maximum(slopes[near][:, None] + slopes[far], 2.0**-64)
    gaps = (offsets[near][:, None] - offsets[far] - 4 * SILENT) / rise
    reach = max(float(gaps.max(axis=0).min()) / 2, 0.0)
    low, high = keys.ends((-reach, reach))
    return near, reach if out_of_reach(high[far], low[near].max()).all() else 0.0


def mirrored(up: Numbers, down: Numbers) -> bool:
    """Whether slopes and values are those of the other sign, and offsets the same."""
    signs = (-1.0, 1.0) * (len(up) // 2) + (-1.0,)
    return all(np.array_equal(a, sign * b) for a, b, sign in zip(up, down, signs, strict=True))
