"""What the layer *score* writes for the argument z of a link (lemmas.learners.steps), and how far that is from z.

The state and the reference answer with tanh(h_a z / 2), so S(z) = sum_a o_a tanh(h_a z / 2) is written. With
k_m = sum_a o_a (h_a / 2)^(2m+1), and because tanh t is t - t^3/3 up to 2 |t|^5/15 for every real t,

    |S(z) - z| <= d(|z|),    d(z) = |k_0 - 1| z + |k_1| z^3/3 + sum_a |o_a| 2 (h_a z / 2)^5 / 15.

For large z that says nothing. But two sharpnesses h_1 < h_2 with o_1 > 0 > o_2 and o_1 h_1 >= |o_2| h_2 make S grow
with z, because sech^2 falls: 2 S'(z) >= (o_1 h_1 + o_2 h_2) sech^2(h_2 z / 2) >= 0. So S(z) >= S(t) >= t - d(t) for
every t <= z: a link that has settled at t has settled at what is written for z.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property, lru_cache

import numpy as np
from jaxtyping import Float

from anchorhead.lemmas.learners.average import SHARES, sharpnesses
from anchorhead.proof.arithmetic.arithmetic import UP, Arithmetic

Array = Float[np.ndarray, " n"]
Weights = Float[np.ndarray, " weights"]


@dataclass(frozen=True, eq=False)
class Scoring:
    """The first layer: with z the argument of the link, it writes sum_a outputs_a tanh(sharpness_a z / 2).

    taken   whether a number is taken off what is written
    """

    sharpness: tuple[float, ...]
    outputs: tuple[float, ...]
    taken: bool = False

    @classmethod
    def of(cls, sharpness: float, dtype: str, taken: bool = False) -> Scoring:
        """With sharpnesses h and 2h, and outputs as the dtype stores them."""
        number, sharp = np.dtype(dtype).type, sharpnesses(sharpness)
        outputs = (float(number(2 * share / h)) for h, (_, share) in zip(sharp, SHARES, strict=True))
        return cls(sharp, tuple(outputs), taken)

    @cached_property
    def powers(self) -> tuple[float, float]:
        """|k_0 - 1| and |k_1|, k_m = sum_a outputs_a (sharpness_a / 2)^(2m+1)."""
        pairs = [(Fraction(o), Fraction(h) / 2) for o, h in zip(self.outputs, self.sharpness, strict=True)]
        k0, k1 = (sum((o * h**m for o, h in pairs), Fraction(0)) for m in (1, 3))
        return float(abs(k0 - 1)) * UP, float(abs(k1)) * UP

    @property
    def most(self) -> float:
        """No score that is written is larger, however large z is."""
        return float(np.abs(self.outputs).sum()) * (1 + 1e-5)


@dataclass(frozen=True, eq=False)
class Arguments:
    """Of examples where a step begins, however far w is off.

    low, high   between what their arguments lie
    terms       what the terms of arguments add up to at most, in size
    w           bounds on the entries of w
    less        what is taken off scores, already in low and high
    """

    low: Array
    high: Array
    terms: Array
    w: Weights
    less: Array | float = 0.0


@dataclass(frozen=True, eq=False)
class Written:
    """For arguments z in given intervals, what is written lies in [low_i, high_i], at most `wrong` from z, of which
    `rounding` by rounding."""

    low: Array
    high: Array
    wrong: Array
    rounding: Array


def written(scoring: Scoring | None, z: Arguments, model: Arithmetic) -> Written:
    """What a layer writes for arguments; nothing is written, and arguments are as they are, where there is none."""
    low, high, less = z.low, z.high, z.less
    if scoring is None:
        return Written(low, high, np.zeros_like(low), np.zeros_like(low))
    if scoring.taken:
        found = written(replace(scoring, taken=False), replace(z, low=low + less, high=high + less), model)
        size = np.maximum(np.abs(found.low), np.abs(found.high)) + np.abs(less)
        lost = (float(model.gamma(2)) * size + 4 * model.tiny) * UP
        ends = found.low - less - lost, found.high - less + lost
        return Written(*ends, found.wrong + lost, found.rounding + lost)
    farthest = np.maximum(np.abs(low), np.abs(high))
    rounding = _rounding(scoring, farthest, z.terms, z.w, model)
    lowest = np.where(low >= 0, _at_least(scoring, low), -_at_most(scoring, -low))
    highest = np.where(high >= 0, _at_most(scoring, high), -_at_least(scoring, -high))
    wrong = np.minimum(_distance(scoring, farthest), farthest + scoring.most) + rounding
    return Written(lowest - rounding, highest + rounding, wrong * UP, rounding)


def _distance(scoring: Scoring, z: Array) -> Array:
    """d(z)."""
    h, o = np.array(scoring.sharpness)[:, None], np.abs(scoring.outputs)[:, None]
    k0, k1 = scoring.powers
    with np.errstate(over="ignore", invalid="ignore"):
        found = (k0 * z + k1 * z**3 / 3 + (o * 2 / 15 * (h * z / 2) ** 5).sum(axis=0)) * UP
    return np.where(np.isnan(found), np.inf, found)


def _at_most(scoring: Scoring, z: Array) -> Array:
    """S(z) is not above this, for z >= 0."""
    z = np.maximum(z, 0.0)
    return np.minimum(z + _distance(scoring, z), scoring.most)


def _at_least(scoring: Scoring, z: Array) -> Array:
    """S(z) is not below this, for z >= 0."""
    z = np.maximum(z, 0.0)
    near = z - _distance(scoring, z)
    if not _grows(scoring):
        return near
    turn, most = _turn(scoring)
    return np.maximum(np.maximum(near, 0.0), np.where(z >= turn, most, 0.0))


@lru_cache(maxsize=64)
def _turn(scoring: Scoring) -> tuple[float, float]:
    """t, and t - d(t), which is the most that it becomes where d(t) is t/5, near t = 1/h."""
    turns = 1.0 / np.array([scoring.sharpness[0]])
    for _ in range(4):
        distance = float(_distance(scoring, turns)[0])
        turns = turns * min(max((0.2 * float(turns[0]) / distance) ** 0.25, 0.5), 2.0) if distance > 0 else turns
    return float(turns[0]), float((turns - _distance(scoring, turns))[0])


@lru_cache(maxsize=64)
def _grows(scoring: Scoring) -> bool:
    if len(scoring.sharpness) != 2:
        return False
    (h1, h2), (o1, o2) = (tuple(map(Fraction, pair)) for pair in (scoring.sharpness, scoring.outputs))
    return h1 < h2 and o1 > 0 > o2 and o1 * h1 + o2 * h2 >= 0


def _rounding(scoring: Scoring, z: Array, terms: Array, w: np.ndarray, model: Arithmetic) -> Array:
    """The logits are h z, with a dot product's error, and exactly 0. Their difference is wrong by at most twice the
    error of an exponent, and tanh of half of it by half as much; two weights that add up to 1 are divided and summed.
    """
    h, o = np.array(scoring.sharpness)[:, None], np.abs(scoring.outputs)[:, None]
    tiny = model.tiny * (len(w) + 2) * (1 + float(w.sum()))
    logit = float(model.gamma(len(w) + 2)) * h * terms + tiny
    exponent = logit + model.unit * (h * z + 2 * logit) + model.exp_error
    weighed = exponent + float(model.gamma(6)) + 8 * model.tiny
    summed = float(model.gamma(len(h) + 1)) * np.minimum(h * z / 2 + weighed, 1.1)
    return (o * (weighed + summed)).sum(axis=0) * UP
