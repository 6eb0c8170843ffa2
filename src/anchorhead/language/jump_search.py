"""Places where a function of several variables jumps, by a search: brackets on random segments, halved again and again.

With a bracket from a to b, |f(a) - f(b)| falls with |a - b| where f is continuous, however steep, and stays where f
jumps. So a jump is what does not shrink at all while the bracket falls from 1e-6 to 1e-12 of the box.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Float

from anchorhead.language.expressions.expression import Expression, postorder
from anchorhead.language.several import SeveralVariables

_SEGMENTS, _POINTS, _BRACKETS = 256, 17, 96
_HALVINGS = 48
_SWITCHES = 32
"""So many switches of an expression are looked at."""
_COARSE, _FINE = 1e-6, 1e-12
_STAYS = 0.999
_FEW = 1e-3
"""A bracket that floats keep from falling by this much further tells nothing."""
_SLIGHT = 1e-7
"""Of expressions: gaps up to this part of their size may be those of a continuous function, such as a root."""

Values = Callable[[Float[np.ndarray, "n d"]], Float[np.ndarray, "n m"]]


@dataclass(frozen=True, eq=False)
class Jump:
    """Two points next to each other, and the values of one output there, far from each other."""

    output: int
    points: tuple[tuple[float, ...], tuple[float, ...]]
    values: tuple[float, float]


def find_jump(
    values: Values, low: Float[np.ndarray, " d"], high: Float[np.ndarray, " d"], least: float,
    part: float = 0.0, sides: Values | None = None, seed: int = 0,
) -> Jump | None:  # fmt: skip
    """The largest jump found, if it is more than `least` and than `part` of the range of its output.

    sides  (n, d) -> (n, k): brackets keep what changes most in one of these; by default in f itself
    """
    low, high = np.asarray(low, np.float64), np.asarray(high, np.float64)
    ends = np.random.default_rng([seed, 2]).uniform(low, high, (2, _SEGMENTS, 1, len(low)))
    t = np.linspace(0, 1, _POINTS)[:, None]
    x = (ends[0] * (1 - t) + ends[1] * t).clip(low, high)
    y = values(x.reshape(-1, len(low)))
    keys = (y if sides is None else sides(x.reshape(-1, len(low)))).reshape(_SEGMENTS, _POINTS, -1)
    span = np.ptp(np.where(np.isfinite(y), y, 0), axis=0)
    scale = np.maximum(span, 1e-300) if sides is None else np.ones(keys.shape[-1])
    a, b, key_a, key_b, which = _brackets(x, keys, scale)
    if not len(a):
        return None
    length = np.where(high > low, high - low, 1.0)
    before, width = np.full((len(a), y.shape[1]), np.inf), np.full(len(a), np.inf)
    for _ in range(_HALVINGS):
        wide = (np.abs(a - b) / length).max(axis=1)
        first = (wide <= _COARSE) & np.isinf(width)
        if first.any():
            before[first] = np.abs(values(a[first]) - values(b[first]))
            width[first] = wide[first]
        if (wide <= _FINE).all():
            break
        middle = a / 2 + b / 2
        key = (values if sides is None else sides)(middle)[np.arange(len(a)), which]
        left = np.abs(key - key_a) >= np.abs(key_b - key)
        a, b = np.where(left[:, None], a, middle), np.where(left[:, None], middle, b)
        key_a, key_b = np.where(left, key_a, key), np.where(left, key, key_b)
    at_a, at_b = values(a), values(b)
    gap = np.abs(at_a - at_b)
    told = (np.abs(a - b) / length).max(axis=1) <= _FEW * width
    jumps = (gap > np.maximum(least, part * span)) & (gap >= _STAYS * before) & told[:, None]
    if not jumps.any():
        return None
    row, output = np.unravel_index(np.where(jumps, gap, -1).argmax(), gap.shape)
    points = tuple(a[row].tolist()), tuple(b[row].tolist())
    return Jump(int(output), points, (float(at_a[row, output]), float(at_b[row, output])))


def _brackets(
    x: Float[np.ndarray, "s p d"], keys: Float[np.ndarray, "s p k"], scale: Float[np.ndarray, " k"]
) -> tuple[np.ndarray, ...]:
    """Neighbours between which a key changes most: both ends (n, d), the key at both (n,), and which key it is (n,)."""
    change = np.abs(np.diff(keys, axis=1)) / scale
    change[~np.isfinite(change)] = 0
    order = np.argsort(-change, axis=None, kind="stable")
    flat = change.reshape(-1)
    changing = order[flat[order] > 0]
    # those of equal size, as of switches, are taken from all over and not from the first segments
    ties = changing[flat[changing] == flat[changing[0]]] if len(changing) else changing
    spread = ties[np.linspace(0, len(ties) - 1, min(len(ties), _BRACKETS)).astype(int)] if len(ties) else ties
    s, p, k = np.unravel_index(np.concatenate([spread, changing[len(ties) :]])[:_BRACKETS], change.shape)
    return x[s, p], x[s, p + 1], keys[s, p, k], keys[s, p + 1, k], k


def find_jump_of(target: SeveralVariables) -> Jump | None:
    """A place where expressions jump: brackets are those of the switches that they are written with, one by one."""
    nodes = {node: None for one in target.expressions if one.has_switches for node in postorder(one.core)}
    largest: Jump | None = None
    for switch in [node for node in nodes if node.op == "where"][:_SWITCHES]:
        found = _across(target, switch)
        if found and (largest is None or abs(np.diff(found.values)[0]) > abs(np.diff(largest.values)[0])):
            largest = found
    return largest


def _across(target: SeveralVariables, switch: Expression) -> Jump | None:
    a, b = switch.args[:2]

    def named(x: Float[np.ndarray, "n d"]) -> dict[str, Float[np.ndarray, " n"]]:
        return dict(zip(target.variables, x.T, strict=True))

    def below(x: Float[np.ndarray, "n d"]) -> Float[np.ndarray, "n 1"]:
        at = named(x)
        with np.errstate(all="ignore"):
            first, second = a.values(at), b.values(at)
            truth: Bool[np.ndarray, " n"] = first <= second if switch.data == "<=" else first < second
        return np.broadcast_to(truth, (len(x),)).astype(np.float64)[:, None]

    def values(x: Float[np.ndarray, "n d"]) -> Float[np.ndarray, "n m"]:
        with np.errstate(all="ignore"):
            return target.values(x)

    low, high = np.array(target.low), np.array(target.high)
    middle = values(low / 2 + high / 2)
    size = float(np.abs(middle[np.isfinite(middle)]).max(initial=0.0))
    with np.errstate(all="ignore"):
        return find_jump(values, low, high, _SLIGHT * (1 + size), sides=below)
