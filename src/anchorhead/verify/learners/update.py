"""What a step makes of w and v: multiples of both, and what heads read."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from anchorhead.verify.learners.average import MANY
from anchorhead.verify.learners.target import Descent
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


def update_of(target: Descent, kept: Sequence[float], pulled: Sequence[float], momentum: float, heads: int) -> Update:
    """The update with these factors of each entry of w in w' and, with momentum, in v', and of v, to which so many
    heads add what they read."""
    pulls = [Fraction(target.rate) * decay for decay in target.decays]
    off = [abs(Fraction(k) - (1 - pull)) for k, pull in zip(kept, pulls, strict=True)]
    off_v = [abs(Fraction(k) + pull) for k, pull in zip(pulled, pulls, strict=False)]
    off_speed = abs(Fraction(momentum) - Fraction(target.momentum))
    wrong, wrong_pull, wrong_speed = (float(max(one)) * SLACK for one in (off, [*off_v, Fraction(0)], [off_speed]))
    product = int(not power_of_two(np.array([*kept, *pulled])).all())
    sums = bool(pulled) + heads  # w, v and what heads read are added in any order
    largest = max(map(abs, kept)), max(map(abs, pulled), default=0.0), abs(momentum)
    return Update(*largest, wrong, wrong_pull, wrong_speed, (product + sums, 1 + sums, 1 + sums))
