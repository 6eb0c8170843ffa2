"""What a step makes of w and v: the skip of the layer whose heads read the gradient, and what these write."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from anchorhead.verify.errors import NotVerified
from anchorhead.verify.grammar import Attention
from anchorhead.verify.learners.average import MANY, Average
from anchorhead.verify.learners.target import Descent
from anchorhead.verify.learners.written import Features, attention, powers
from anchorhead.verify.rounding import SLACK, Arithmetic, power_of_two


@dataclass(frozen=True, eq=False)
class Update:
    """w' = kept w + momentum v + what is read, v' = pulled w + momentum v + what is read; with the roundings of each.

    wrong, wrong_pull, wrong_speed   how far stored factors of w in w', of w in v', and of v are from the target's
    """

    kept: float
    pulled: float
    momentum: float
    wrong: float
    wrong_pull: float
    wrong_speed: float
    roundings: tuple[int, int, int]

    def error(self, w: float, v: float, size: float, model: Arithmetic) -> tuple[float, float]:
        """What w' and v' are off by the stored factors and by rounding, for |w|, |v| and what heads write."""
        of_w, of_v, of_read = (float(model.gamma(n)) for n in self.roundings)
        moving = of_v * self.momentum * v + of_read * size + MANY * 16 * model.tiny
        return (
            self.wrong * w + self.wrong_speed * v + of_w * self.kept * w + moving,
            self.wrong_pull * w + self.wrong_speed * v + of_w * self.pulled * w + moving,
        )


def read_update(
    target: Descent, layer: Attention, features: Features
) -> tuple[Update, np.ndarray, np.ndarray, np.ndarray]:
    """What becomes of w and v in a layer that adds to both what its heads read; o_a, by which head a does; and its
    skip and its output, written: all other features stay as they are."""
    w, v = features.at["w"], features.at["v"]
    if layer.skip is None or layer.skip.weight.ndim != 2:
        raise NotVerified("a skip of a learner is a matrix")
    stored = layer.skip.weight
    kept, pulled = stored[w, w], stored[v, w] if v else np.zeros(len(w))
    momentum, outputs = float(stored[w[0], v[0]]) if v else 0.0, layer.output[:, w[0], 0]
    skip, output = np.eye(features.width), np.zeros((layer.heads, features.width, len(w)))
    skip[w, w] = kept
    output[:, w] = outputs[:, None, None] * np.eye(len(w))
    if v:
        skip[w, v] = skip[v, v] = momentum
        skip[v, w], output[:, v] = pulled, output[:, w]
    pulls = [Fraction(target.rate) * decay for decay in target.decays]
    off = [abs(Fraction(float(k)) - (1 - pull)) for k, pull in zip(kept, pulls, strict=True)]
    off_v = [abs(Fraction(float(k)) + pull) for k, pull in zip(pulled, pulls, strict=True) if v]
    off_speed = abs(Fraction(momentum) - Fraction(target.momentum))
    wrong, wrong_pull, wrong_speed = (float(max(one)) * SLACK for one in (off, [*off_v, Fraction(0)], [off_speed]))
    product = int(not power_of_two(np.concatenate([kept, pulled])).all())
    sums = bool(v) + layer.heads  # w, v and what heads read are added in any order
    largest = float(np.abs(kept).max()), float(np.abs(pulled).max()), abs(momentum)
    found = Update(*largest, wrong, wrong_pull, wrong_speed, (product + sums, 1 + sums, 1 + sums))
    return found, outputs, skip, output


def read_average(
    target: Descent, layer: Attention, f: Features, asked: np.ndarray, gates: np.ndarray, key: np.ndarray,
    value: np.ndarray,
) -> tuple[Average, Update, Attention]:  # fmt: skip
    """A layer by which whoever carries w reads a signed average; and the layer, written: a head of sharpness h asks
    with h times some rows, whose products with keys are what logits sum up, and with gates."""
    sharpness = powers(layer.query[:, 0, asked[0].argmax()])
    update, outputs, skip, output = read_update(target, layer, f)
    query = np.stack([np.concatenate([h * asked, gates]) for h in sharpness])
    return Average(sharpness, tuple(outputs.tolist()), len(asked)), update, attention(query, key, value, output, skip)
