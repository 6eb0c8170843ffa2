"""What is known on cells of a function of which values and a Lipschitz constant are given.

On a cell around c it moves by at most L |h|_2 = sum_j L h_j^2 / |h|_2, or by sum_j L_j h_j. Along one axis, on a cell
[a, b] of width w with D = f(b) - f(a), it is between the cones of slope L at both ends, and so no further than
(L^2 w^2 - D^2) / (2 L w) from its chord, of the middle (f(a) + f(b)) / 2 and the slope D / w: few cells will do where f
is as steep as L allows.

Values are taken as right to VALUE_ERROR of themselves: an assumption.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from anchorhead.verify.errors import require
from anchorhead.verify.grids.cover import UP, Cells, Values, Way, Ways
from anchorhead.verify.rounding import OWN_UNIT

VALUE_ERROR = 2.0**-51


@dataclass(frozen=True)
class Lipschitz:
    """|f(x) - f(y)| <= L |x - y|_2, or with a constant for each axis sum_j L_j |x_j - y_j|."""

    constants: tuple[float, ...]
    euclidean: bool

    def along(self, step: np.ndarray) -> np.ndarray:
        """How much f may change over steps (…, d): by the sum of these, one for each axis."""
        if not self.euclidean:
            return np.abs(step) * np.array(self.constants) * UP
        length = np.sqrt((step**2).sum(axis=-1, keepdims=True))
        return self.constants[0] * np.abs(step) * (np.abs(step) / np.maximum(length, 1e-300)) * UP

    def over(self, step: np.ndarray) -> np.ndarray:
        return self.along(step).sum(axis=-1) * UP

    def of_sum(self, ids: Sequence[int], factor: float) -> Lipschitz:
        """That of a sum of outputs whose factors add up to so much in size, of inputs in another order."""
        constants = self.constants if self.euclidean else [self.constants[q] for q in ids]
        return Lipschitz(tuple(factor * one * UP for one in constants), self.euclidean)

    def __str__(self) -> str:
        if self.euclidean:
            return f"|f(x) - f(y)| <= {self.constants[0]:g} |x - y|"
        return f"|f(x) - f(y)| <= sum of L_j |x_j - y_j|, L = ({', '.join(f'{one:g}' for one in self.constants)})"

    def ways(self, function: Values) -> Ways:
        """For `cover`: by the constant alone, and on an interval by chords."""

        def ways(cells: Cells) -> list[Way]:
            d = cells.centre.shape[-1]
            truth, off = (one.reshape(cells.centre.shape[:-1]) for one in function(cells.centre.reshape(-1, d)))
            for axis in range(d):
                steps, gaps = np.diff(cells.centre, axis=axis), np.abs(np.diff(truth, axis=axis))
                self._require(gaps, self.over(steps) + 8 * float(off.max()))
            found = [Way(truth, off, np.zeros_like(cells.half), self.along(cells.half), central=True)]
            return [*found, self._chords(function, cells)] if d == 1 else found

        return ways

    def _chords(self, function: Values, cells: Cells) -> Way:
        ends = cells.cuts[0]
        values, off = function(ends[:, None])
        width, rise = np.diff(ends), np.diff(values)
        unsure = np.maximum(off[1:], off[:-1]) + 8 * OWN_UNIT * np.maximum(np.abs(values[1:]), np.abs(values[:-1]))
        steepest = float(self.over(np.ones((1, 1)))[0])
        most = steepest * width * UP + 1e-300
        self._require(np.abs(rise), most + 2 * unsure)
        cone = (most - np.maximum(np.abs(rise) - 2 * unsure, 0.0) ** 2 / most).clip(0.0) / 2
        unsure = unsure + 8 * OWN_UNIT * steepest * np.abs(ends).max()  # the centre is rounded
        with np.errstate(all="ignore"):
            slope = rise / width
            spread = cone + (4 * OWN_UNIT * steepest + 2 * unsure / width) * cells.half[:, 0]
        middle = values[1:] / 2 + values[:-1] / 2
        return Way(middle, unsure, slope[:, None], spread[:, None])

    def _require(self, changes: np.ndarray, most: np.ndarray) -> None:
        require(bool((changes <= most).all()), f"values of the function contradict its constant: {self}")
