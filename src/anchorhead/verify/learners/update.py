"""The end of a step: what becomes of w and v once a gradient is read, from the skip and the outputs of an attention.

w are the features that the last map of the network picks; v, with momentum, those that the skip adds to them.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from anchorhead.verify.errors import NotVerified, require
from anchorhead.verify.grammar import Attention, Linear, Network, Repeat
from anchorhead.verify.learners.average import MANY
from anchorhead.verify.learners.target import Descent
from anchorhead.verify.rounding import Arithmetic, power_of_two


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


def read_body(network: Network, target: Descent, output: str) -> tuple[list[Attention], list[int]]:
    """The layers that are repeated, and the features of w."""
    fits = network.output == output and len(network.layers) == 2
    repeat, last = network.layers if fits else (None, None)
    if not isinstance(repeat, Repeat) or not isinstance(last, Linear):
        raise NotVerified(f"a learner is Embed, Repeat, Linear to a {output}")
    require(repeat.times == target.times, f"it takes {repeat.times} steps, not {target.times}")
    for layer in repeat.layers:
        plain = isinstance(layer, Attention) and layer.bias is None
        plain = plain and layer.skip is not None and layer.skip.bias is None
        require(plain, "a step of a learner is attention with a skip, without biases")
    require(not last.across and last.bias is None and last.weight.ndim == 2, "the last map of a learner picks w")
    columns = network.embed.weight.shape[2]
    require(columns == target.features + 2, "an example has other features than the program says")
    places = [np.flatnonzero(row) for row in last.weight]
    w = [int(used[0]) for used in places if len(used) == 1]
    picks = len(set(w)) == len(places) == target.size and bool((last.weight[range(len(w)), w] == 1.0).all())
    require(picks, "the last map does not pick the entries of w")
    return list(repeat.layers), w


def speeds(layer: Attention, w: list[int], target: Descent) -> list[int]:
    """The features that the skip adds to w; none without momentum."""
    if not target.momentum:
        return []
    skip = layer.skip.on_features()  # type: ignore[union-attr]
    found = [[int(f) for f in np.flatnonzero(skip[one]) if f not in w] for one in w]
    require(all(len(one) == 1 for one in found), "the skip does not add one speed to each entry of w")
    return [one[0] for one in found]


def written(layer: Attention, w: list[int], v: list[int]) -> tuple[float, ...]:
    """o_a: what head a reads of entry j goes to entry j of w and of v, times o_a."""
    found = []
    for output in layer.output:
        o = float(output[w[0], 0])
        for slots in (w, v) if v else (w,):
            same = output[slots].shape == (len(w),) * 2 and (output[slots] == o * np.eye(len(w))).all()
            require(bool(same), "what a head reads does not go to w and v alike")
        found.append(o)
    return tuple(found)


def read_update(layer: Attention, w: list[int], v: list[int], target: Descent) -> Update:
    skip = layer.skip.on_features()  # type: ignore[union-attr]
    size, momentum, rows = len(w), 0.0, np.arange(len(w))
    kept, pulled = np.diagonal(skip[np.ix_(w, w)]), np.zeros(size)
    expected = np.zeros((size + len(v), skip.shape[1]))
    expected[rows, w] = kept
    if v:
        momentum, pulled = float(skip[w[0], v[0]]), np.diagonal(skip[np.ix_(v, w)])
        expected[rows, v] = expected[size + rows, v] = momentum
        expected[size + rows, w] = pulled
    require(bool((skip[[*w, *v]] == expected).all()), "the skip mixes other features into w or v")
    pulls = [Fraction(target.rate) * decay for decay in target.decays]
    off = [abs(Fraction(float(k)) - (1 - pull)) for k, pull in zip(kept, pulls, strict=True)]
    off_v = [abs(Fraction(float(k)) + pull) for k, pull in zip(pulled, pulls, strict=True)]
    speed = abs(Fraction(momentum) - Fraction(target.momentum))
    wrong, wrong_pull = (float(one) * (1 + 1e-15) for one in (max(off), max(off_v) if v else Fraction(0)))
    product = int(not power_of_two(np.concatenate([kept, pulled])).all())
    # a product, the sum of the skip, what the heads write, and the sum of both
    roundings = product + bool(v) + 1, 3, layer.heads + 1
    largest = float(np.abs(kept).max()), float(np.abs(pulled).max())
    return Update(*largest, abs(momentum), wrong, wrong_pull, float(speed) * (1 + 1e-15), roundings)
