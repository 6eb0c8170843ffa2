"""A network fitted to a function of which only values are known, for a small largest error.

One hidden layer first. Neurons are added by halves of what is there, each where it explains most of what is left over;
then all are moved together (ridge_step). Least squares at first; towards the end weights grow where
errors are large (Lawson), and the worst places found join the samples. Which activation serves best is tried out on
small networks. Where the errors fall so slowly that no number of neurons allowed would do, as for kinks that end at
other kinks (sorting), two hidden layers of relu are fitted instead. For the same seed the result is the same.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import inf, log
from typing import Any, Generic

import numpy as np
from jaxtyping import Float

from anchorhead.constructions.fitting.ridge_model import ACTIVATIONS, M, Ridges, TwoLayers, work_of
from anchorhead.constructions.fitting.ridge_samples import LEAST, NEAR, Samples
from anchorhead.constructions.fitting.ridge_step import Steps
from anchorhead.effort import Effort
from anchorhead.progress import Progress
from anchorhead.proof.search.callable_search import Sampled

EFFORT = 1e12
FIRST, GROWTH, TRIAL, MAX_NEURONS = 8, 1.5, 18, 512
WIDTHS = (12, 12, 18, 18, 27, 40, 60)
"""Neurons in each of two hidden layers, from one try to the next."""
MAX_DEEP_INPUTS, DEEP_SHARE = 64, 0.5
"""Two hidden layers: for how many inputs at most, and the part of the work left that they may take."""
LEAST_TO_JUDGE = 40
"""Neurons from which on it is estimated how many it will take."""
CANDIDATES = 400
IDLE = 0.01
"""Neurons without which the sum of squares grows by no more than this part make room for others."""
CLOSE = 4.0
"""Errors of small networks up to so many times the aim: no other activation is tried."""
STEPS, DEEP_STEPS = 60, 60
LEAST_GAIN = 0.03
POLISH, POLISH_STEPS = 4, 3
ROUNDS = 4


@dataclass(frozen=True, eq=False)
class Fit(Generic[M]):
    """A network on [-1, 1]^d, and the largest error that was met.

    searched  whether it is that of a search, or of fresh points alone
    ended     why no better one was looked for
    """

    model: M
    error: float
    searched: bool
    ended: str = ""


def fit_ridges(
    function: Sampled,
    aim: float,
    *,
    seed: int,
    stiffness: float,
    activations: tuple[str, ...] = tuple(ACTIVATIONS),
    deep: bool = True,
    effort: float = EFFORT,
    progress: Progress | None = None,
) -> Fit[Ridges] | Fit[TwoLayers]:
    """The smallest network found whose largest error is within the aim, or the best there was.

    function   on [-1, 1]^d
    stiffness  keeps the outer weights small, see Steps
    activations   which are tried
    deep       whether two hidden layers may be used
    effort     work that may be done, in multiplications
    """
    return _Fitting(function, aim, seed, stiffness, Effort(effort), progress).run(activations, deep)


class _Fitting:
    def __init__(
        self, function: Sampled, aim: float, seed: int, stiffness: float, effort: Effort, progress: Progress | None
    ) -> None:
        self.rng = np.random.default_rng(seed)
        self.samples = Samples(function, aim, self.rng, progress)
        self.aim, self.stiffness, self.effort = self.samples.aim, stiffness, effort
        self.best: dict[type, Fit[Any]] = {}

    def run(self, activations: tuple[str, ...], deep: bool) -> Fit[Any]:
        deep = deep and self.samples.d <= MAX_DEEP_INPUTS
        errors: list[tuple[int, float]] = []
        fit: Fit[Any] = self._one_layer(activations, errors, deep)
        if fit.error > self.aim and deep and not self.effort.over:
            wide, fit = fit, self._two_layers((1 - DEEP_SHARE) * self.effort.left)
            if fit.error > self.aim and not self.effort.over and wide.model.neurons < MAX_NEURONS:
                fit = self._grown(wide.model, MAX_NEURONS, errors, False)
        if fit.error > self.aim:
            ended = "the work allowed for was done" if self.effort.over else fit.ended
            searched = [replace(one, error=self.samples.searched(one.model)) for one in self.best.values()]
            fit = replace(min(searched, key=lambda one: one.error), ended=ended)
        elif isinstance(fit.model, Ridges):
            fit = self._trimmed(fit)
        scale = self.samples.scale
        return replace(fit, model=replace(fit.model, outer=fit.model.outer * scale), error=fit.error * scale)

    def _one_layer(
        self, activations: tuple[str, ...], errors: list[tuple[int, float]], may_give_up: bool
    ) -> Fit[Ridges]:
        """The activation that does best with few neurons goes on."""
        d, m = self.samples.d, self.samples.y.shape[1]
        none = Ridges(activations[0], np.empty((0, d)), np.empty(0), np.zeros((d + 1, m)))
        affine = self._judged(self._steps().solved(none)[0])
        if affine.error <= self.aim:
            return affine
        found: list[tuple[Fit[Ridges], list[tuple[int, float]]]] = []
        for activation in activations:
            met: list[tuple[int, float]] = []
            fit = self._grown(replace(none, activation=activation), TRIAL, met, False)
            if fit.error <= self.aim:
                return fit
            found.append((fit, met))
            if fit.error <= CLOSE * self.aim:
                break
        fit, met = min(found, key=lambda one: np.square(self.samples.left(one[0].model)).mean())
        errors.extend(met)
        return self._grown(fit.model, MAX_NEURONS, errors, may_give_up)

    def _grown(self, ridges: Ridges, most: int, errors: list[tuple[int, float]], may_give_up: bool) -> Fit[Ridges]:
        """More and more neurons, up to so many, or until it is clear that they will not do.

        errors  how large they were with how many neurons
        """
        while True:
            fit = self._improved(self._fitted(self._with_more(ridges, most)))
            ridges = fit.model
            errors.append((ridges.neurons, fit.error))
            if fit.error <= self.aim or self.effort.over:
                return fit
            if ridges.neurons >= most:
                return replace(fit, ended=f"{most} neurons in one hidden layer are the most that are fitted")
            if may_give_up and _neurons_needed(errors, self.aim) > MAX_NEURONS:
                return fit

    def _two_layers(self, until: float) -> Fit[TwoLayers]:
        """From random weights, ever wider, each as far as it goes; none is begun when so little work is left."""
        fits: list[Fit[TwoLayers]] = []
        for width in WIDTHS:
            model = self._steps().run(self._random(width), DEEP_STEPS)
            fits.append(self._improved(model, NEAR**4))
            if fits[-1].error <= self.aim or self.effort.left <= until:
                return fits[-1]
        fit = min(fits, key=lambda one: one.error)
        return replace(fit, ended=f"{WIDTHS[-1]} neurons in each of two hidden layers are the most that are fitted")

    def _improved(self, model: M, near: float = NEAR) -> Fit[M]:
        """The network judged; while its error is near the aim and falls, worked on with the worst places."""
        fit = self._judged(model)
        for _ in range(ROUNDS):
            if not self.aim < fit.error <= near * self.aim or self.effort.over:
                break
            again = self._judged(self._polished(fit.model, self._steps()))
            if again.searched <= fit.searched and again.error >= 0.95 * fit.error:
                break
            fit = again
        return fit

    def _fitted(self, ridges: Ridges) -> Ridges:
        """Least squares; then, where the aim may be near, towards the smallest largest error."""
        steps = self._steps()
        ridges = steps.run(ridges, STEPS, LEAST_GAIN)
        return self._polished(ridges, steps) if self.samples.largest(ridges) < 6 * self.aim else ridges

    def _polished(self, model: M, steps: Steps) -> M:
        """Lawson: weights are multiplied by the errors, and a few steps follow."""
        weight = np.ones(len(self.samples.x))
        best, least = model, inf
        for _ in range(POLISH + 1):
            error = np.abs(self.samples.left(model)).max(axis=1)
            largest = max(float(error.max()), 1e-300)
            if largest < least:
                best, least = model, largest
            if largest <= 0.8 * self.aim or self.effort.over:
                break
            weight *= error / largest + 0.03
            steps.root = np.sqrt(weight / weight.mean())[:, None]
            model = steps.run(model, POLISH_STEPS)
        return best

    def _judged(self, model: M) -> Fit[M]:
        fit = Fit(model, *self.samples.judged(model))
        if type(model) not in self.best or fit.error < self.best[type(model)].error:
            self.best[type(model)] = fit
        return fit

    def _steps(self) -> Steps:
        x, y = self.samples.x, self.samples.y
        return Steps(x, y, np.ones((len(x), 1)), self.stiffness, self.effort, self.rng)

    def _with_more(self, ridges: Ridges, most: int) -> Ridges:
        """The neurons that, one after the other, explain most of what is left over; from many drawn at random.

        Their directions have one, two or all inputs; their middles lie where errors are large.
        """
        d, count = self.samples.d, ridges.neurons
        more = min(max(4, int(count * (GROWTH - 1))) if count else FIRST, most - count)
        ridges = self._without_idle(ridges)
        more += count - ridges.neurons
        rows = self.rng.permutation(len(self.samples.x))[: LEAST // 2]
        x, left = self.samples.x[rows], self.samples.left(ridges)[rows]
        weight = self.rng.standard_normal((CANDIDATES, d))
        few = self.rng.choice(np.array([1, 2, d, d]), CANDIDATES)
        weight *= self.rng.random(weight.shape).argsort(axis=1) < few[:, None]
        weight *= 2 * np.exp(self.rng.uniform(-1.2, 1.2, (CANDIDATES, 1))) / np.linalg.norm(weight, axis=1)[:, None]
        square = (left * left).sum(axis=1) + 1e-300
        places = self.rng.choice(len(x), CANDIDATES, p=square / square.sum())
        tried = Ridges(ridges.activation, weight, -(weight * x[places]).sum(axis=1), np.empty((0, 0))).bounded()
        columns = ACTIVATIONS[ridges.activation](x @ tried.weight.T + tried.bias)[0]
        basis = np.linalg.qr(ridges.features(x))[0]
        self.effort.spend(work_of(len(x), basis.shape[1] + CANDIDATES // 4))
        chosen = _greedy(columns - basis @ (basis.T @ columns), left, more)
        return ridges.with_neurons(tried.weight[chosen], tried.bias[chosen])

    def _trimmed(self, fit: Fit[Ridges]) -> Fit[Ridges]:
        """Without the neurons that do nothing, if that is still within the aim."""
        trimmed = self._without_idle(fit.model, self.aim**2 * len(self.samples.x))
        if trimmed.neurons == fit.model.neurons:
            return fit
        error = self.samples.searched(trimmed)
        return replace(fit, model=trimmed, error=error) if error <= self.aim else fit

    def _without_idle(self, ridges: Ridges, squares: float | None = None) -> Ridges:
        """Without neurons that take little from the sum of squares, compared with what it is, or may be."""
        if not ridges.neurons:
            return ridges
        steps = self._steps()
        solved, left = steps.solved(ridges)
        idle = np.flatnonzero(steps.worth(solved)[: ridges.neurons] < IDLE * (left if squares is None else squares))
        return steps.solved(ridges.without(idle))[0] if len(idle) else ridges

    def _random(self, width: int) -> TwoLayers:
        """Two layers whose kinks pass through samples."""
        x, rng = self.samples.x, self.rng
        weight = rng.standard_normal((width, x.shape[1]))
        bias = -(weight * x[rng.integers(len(x), size=width)]).sum(axis=1)
        u = np.concatenate([np.maximum(x @ weight.T + bias, 0), x], axis=1)
        second = rng.standard_normal((width, u.shape[1]))
        shift = -(second * u[rng.integers(len(u), size=width)]).sum(axis=1)
        outer = np.zeros((2 * width + x.shape[1] + 1, self.samples.y.shape[1]))
        return TwoLayers(weight, bias, second, shift, outer).bounded()


def _neurons_needed(errors: list[tuple[int, float]], aim: float) -> float:
    """How many neurons would reach the aim, if errors went on falling with the same power of their number."""
    if len(errors) < 3 or errors[-1][0] < LEAST_TO_JUDGE:
        return 0.0
    (few, before), (many, now) = errors[-3], errors[-1]
    rate = log(before / now) / log(many / few)
    return many * (now / aim) ** (1 / rate) if rate > 0.1 else inf


def _greedy(columns: Float[np.ndarray, "n candidates"], left: Float[np.ndarray, "n m"], count: int) -> list[int]:
    """Columns that take most of what is left, each orthogonal to those before (orthogonal matching pursuit)."""
    columns, left = columns.copy(), left.copy()
    least = 1e-6 * float((columns * columns).sum(axis=0).max()) + 1e-300
    chosen: list[int] = []
    for _ in range(count):
        square = (columns * columns).sum(axis=0)
        gain = ((columns.T @ left) ** 2).sum(axis=1) / np.maximum(square, least)
        gain[square < least] = -1.0
        gain[chosen] = -2.0
        place = int(gain.argmax())
        chosen.append(place)
        if square[place] >= least:
            unit = columns[:, place] / np.sqrt(square[place])
            left -= np.outer(unit, unit @ left)
            columns -= np.outer(unit, unit @ columns)
    return chosen
