"""Anchors that are asked with a score: which keys are heard, and what stands for links.

Anchors of a link stand beside anchors of other links, and beside tokens that are none: these have lower offsets, and up
to some score they are out of reach. Rows of sign -1 find the mirror image of what those of sign 1 find, -phi(-s).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from anchorhead.heads.atom import Dtype, Part
from anchorhead.heads.grids.grid_atom import GridAtom
from anchorhead.lemmas.learners.reading import Shown, of_head, refuse, require
from anchorhead.lemmas.learners.tokens import Held
from anchorhead.network import Attention
from anchorhead.proof.arithmetic.affine_forms import Sources
from anchorhead.proof.arithmetic.arithmetic import arithmetic_of
from anchorhead.proof.arithmetic.readings import Keys, Readings, of_attention, of_grid
from anchorhead.proof.arithmetic.silence import SILENT, out_of_reach

ROOM = 2.0**20
"""How far logits stay from overflow."""
SCORES = 2.0**64
"""Scores beyond which nothing is said."""
Anchors = tuple[Part, ...] | GridAtom
"""What stands for a link: the parts of a head, or a grid over scores and labels, without origins and bias."""
Numbers = tuple[np.ndarray, ...]
"""Anchors as rows see them: slopes, offsets and values, of a grid along both axes."""


def read_links(
    layer: Attention, rows: Held, seen: tuple[Held, Held, Held], feature: int, shown: Shown, dtype: Dtype
) -> tuple[tuple[Anchors, ...], float]:
    """For every link what rows of sign 1 find, and |score| up to which all else is out of their reach.

    rows      a token for each kind of example
    feature   the one that what is read is written to
    """
    _, registers, states = seen
    asking, arithmetic = rows.forms(), arithmetic_of(dtype)
    sources = Sources(-np.ones(shown.quantities - 1), np.ones(shown.quantities - 1))
    sides = layer.grid if layer.grid is not None and len(layer.grid) == 2 else None
    if sides is not None:
        _require_grid(layer, registers)
        axes = of_grid(layer, asking, registers.forms(), sources, arithmetic)
    else:
        axes = (of_attention(layer, asking, (states.forms(), registers.forms()), sources, arithmetic),)
    outputs, columns = layer.output[:, feature, 0].astype(np.float64), (shown.score, 1 + shown.label)
    kinds, most = [], np.inf
    for kind in range(len(shown.examples)):
        found: list[Numbers] = []
        for head in range(layer.heads):
            numbers, reach = _asked(axes, kind * layer.heads + head, columns, dtype)
            if sides is not None:
                points = registers.mapped(of_head(layer.value, head))
                fixed = not (points.loose.any() or points.varies.any())
                require(fixed and points.number.shape[1] == 1, "the values of a grid are not constants")
                values = points.constant.reshape(sides)[np.ix_(*(own for own, _, _ in numbers))]
            else:
                values = constants_of(axes[0].keys[int(axes[0].kinds[kind * layer.heads + head])], numbers[0][0])
            most = min(most, reach)
            if values.any():
                found.append((*(array for _, *axis in numbers for array in axis), outputs[head] * values))
        kinds.append(found)
    alike = all(
        len(up) == len(down) > 0 and all(_mirrored(*pair) for pair in zip(up, down, strict=True))
        for up, down in zip(kinds[::2], kinds[1::2], strict=True)
    )
    require(alike and (np.abs(outputs) == 1).all(), "rows of sign -1 do not find the mirror image of the link")
    require(sides is None or all(len(found) == 1 for found in kinds), "a link of two variables is not one grid")
    return tuple(_held(found, dtype) for found in kinds[::2]), most


def _asked(
    axes: Sequence[Readings], ask: int, columns: tuple[int, ...], dtype: Dtype
) -> tuple[list[tuple[np.ndarray, np.ndarray, np.ndarray]], float]:
    """Along each axis which keys one head of a row means, their slopes and offsets; and how far scores may go."""
    numbers, reach = [], np.inf
    for axis, (readings, column) in enumerate(zip(axes, columns, strict=False)):
        keys = readings.keys[int(readings.kinds[ask])]
        own, far = apart(keys) if axis == 0 else (loud(keys), np.inf)
        t, reach = readings.t.features(slice(ask, ask + 1)), min(reach, far)
        sign = float(t.coefficients[0, 0, column - 1])
        alone = not (np.delete(t.coefficients[0, 0], column - 1).any() or t.constant.any() or t.error.any())
        require((abs(sign) == 1 and alone) or not keys.slopes[own].any(), "anchors are not asked with the score")
        size = float(np.abs(keys.slopes).max()) * min(reach, SCORES) + float(np.abs(keys.offsets).max())
        good = keys.plain[own].all() and size <= np.finfo(dtype).max / ROOM
        require(good, "slopes or offsets round, or logits overflow")
        numbers.append((own, sign * keys.slopes[own], keys.offsets[own]))
    return numbers, reach


def constants_of(keys: Keys, own: np.ndarray) -> np.ndarray:
    """The values of some keys, a number each that the dtype has as it is."""
    if keys.values is None or keys.values.error[own].any() or keys.values.values.shape[1] != 1:
        refuse("the values of anchors are not constants")
    return keys.values.values[own, 0]


def _held(found: list[Numbers], dtype: Dtype) -> Anchors:
    if len(found[0]) == 3:
        return tuple(Part.of(slopes, offsets, values, dtype) for slopes, offsets, values in found)
    (a, g, b, h, values), *_ = found
    return GridAtom.of([(a, g), (b, h)], np.zeros(2), values[..., None], np.zeros(1), dtype)


def _require_grid(layer: Attention, registers: Held) -> None:
    """Along either axis all points of one index must have the same key."""
    size = layer.key.shape[1] // 2
    for head in range(len(layer.key)):
        for axis in (0, 1):
            key = registers.mapped(layer.key[head, axis * size : (axis + 1) * size]).constant
            along = np.moveaxis(key.reshape(*(layer.grid or ()), size), axis, 0)
            require((along == along[:, :1]).all(), "the points of a grid are no grid")


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


def _mirrored(up: Numbers, down: Numbers) -> bool:
    """Whether slopes and values are those of the other sign, and offsets the same."""
    signs = (-1.0, 1.0) * (len(up) // 2) + (-1.0,)
    return all(np.array_equal(a, sign * b) for a, b, sign in zip(up, down, signs, strict=True))
