"""How far a network is from the program that is stored with it: computed in many ways, at inputs that hurt."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np
from flint import arb

from anchorhead import incontext
from anchorhead.conditions import AtMostExamples, Excluded, KeepsWithin, SafeCurvature, SafeRate
from anchorhead.incontext import Loss
from anchorhead.language.expressions.precision import precision
from anchorhead.language.interpret import run
from anchorhead.language.numbers import Balls, Floats
from anchorhead.language.steps import Apply, Opaque
from anchorhead.network import Network

from .orders import ORDERS, evaluate

WAYS = ("flushed", "alone", "module", "exact", "exp astray", *ORDERS)
"""All but torch itself, as a batch: see `computed`."""
SLOWLY = 20_000
"""About how many weights times inputs are worked through term by term."""
CORNERS = 6
"""Inputs of so many entries have all their corners tried."""
STEEPEST = 2.5
"""The largest |phi'| of the table's losses."""
HALVINGS = 4
"""How often examples for which a rate is not safe are halved."""
EXAMPLES = 3
"""Of a prompt, where it may have any number."""


def breaks(
    network: Network,
    rng: np.random.Generator,
    given: Any = None,
    points: int = 48,
    zooms: int = 3,
    all_ways: bool = True,
) -> float | None:
    """An error above the bound, if one is found: at random inputs, at corners, near the worst of them, and then by
    every arithmetic that the model allows. What is found is proven: the program's own value is a ball.

    given   what a network for a callable approximates, or the loss of a learner, for which prompts are made
    """
    claim = Claim.of(network, given)
    bound = network.certificate.bound  # type: ignore[union-attr]
    x = claim.inputs(points, rng)
    if not len(x):  # no input meets the conditions
        return None
    errors = claim.errors(x, "fast")
    if np.isinf(errors).all():
        return np.inf
    for zoom in range(zooms):
        best = x[np.argsort(errors)[-4:]]
        more = np.concatenate(
            [claim.near(np.repeat(best, 6, axis=0), 0.1 ** (zoom + 1), rng), claim.between(best, rng)]
        )
        x, errors = np.concatenate([x, more]), np.concatenate([errors, claim.errors(more, "fast")])
    order = np.argsort(errors)[::-1]
    for way in ("fast", "exact", "torch", *(WAYS if all_ways else ("exp astray",))):
        some = x[order[: 8 if all_ways else 3]]
        found = claim.proven(some, way)
        if found > bound:
            return found
    return None


@dataclass(eq=False)
class Claim:
    """That a network is its program, at inputs (batch, tokens, features) of a box."""

    network: Network
    given: Any
    low: np.ndarray
    high: np.ndarray

    @classmethod
    def of(cls, network: Network, given: Any = None) -> Claim:
        shape = (network.embed.tokens or 1, network.embed.inputs)
        box = network.certificate.on.broadcast_to(shape)  # type: ignore[union-attr]
        return cls(network, given, np.asarray(box.low, np.float64), np.asarray(box.high, np.float64))

    def conditions(self, kind: type) -> list[Any]:
        return [one for one in self.network.certificate.conditions if isinstance(one, kind)]  # type: ignore[union-attr]

    # inputs

    def inputs(self, count: int, rng: np.random.Generator) -> np.ndarray:
        """Anywhere, and with entries at the ends of the box and at 0."""
        if isinstance(self.given, Loss):
            return self.prompts(count, rng)
        x = rng.uniform(self.low, self.high, (count, *self.low.shape))
        special = rng.choice([0, 1, 2, 3], size=x.shape, p=[0.25, 0.25, 0.1, 0.4])
        special[: count // 2] = 3
        zero = np.clip(0.0, self.low, self.high)
        x = np.select([special == 0, special == 1, special == 2], np.broadcast_arrays(self.low, self.high, zero), x)
        if self.low.size <= CORNERS:
            ends = product(*zip(self.low.reshape(-1), self.high.reshape(-1), strict=True))
            x = np.concatenate([x, np.array(list(ends)).reshape(-1, *self.low.shape)])
        return self.held(x)

    def near(self, x: np.ndarray, scale: float, rng: np.random.Generator) -> np.ndarray:
        if isinstance(self.given, Loss):
            return self.prompts(len(x), rng)
        return self.held(x + scale * (self.high - self.low) * rng.normal(size=x.shape))

    def between(self, x: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        """Along a line through the worst of some inputs, in steps that become smaller: kinks lie on it."""
        if isinstance(self.given, Loss):
            return self.prompts(4, rng)
        along = rng.normal(size=x.shape[1:]) * (self.high - self.low)
        steps = 2.0 ** -rng.uniform(1, 20, 12) * rng.choice([-1, 1], 12)
        return self.held(x[-1] + steps.reshape(-1, 1, 1) * along)

    def held(self, x: np.ndarray) -> np.ndarray:
        """Numbers of the dtype in the box: what rounding inputs costs is another matter."""
        dtype = self.network.dtype
        x = np.clip(x, self.low, self.high)
        near = x.astype(dtype)
        below, above = (np.nextafter(near, near.dtype.type(end)) for end in (-np.inf, np.inf))
        near = np.where(near > self.high, below, np.where(near < self.low, above, near)).astype(np.float64)
        outside = (near < self.low) | (near > self.high)  # a box that holds no number of the dtype
        return np.where(outside, np.nan, near)[~outside.any(axis=(1, 2))]

    def prompts(self, count: int, rng: np.random.Generator) -> np.ndarray:
        """Examples of the box with either sign, for which the conditions on a learner hold."""
        most = min((one.most for one in self.conditions(AtMostExamples)), default=np.inf)
        n = int(min(EXAMPLES, most)) if self.network.embed.tokens is None else self.network.embed.tokens // 2
        d = self.low.shape[1] - 2
        ends = np.maximum(np.abs(self.low), np.abs(self.high))[0]
        X = rng.uniform(-1, 1, (count, max(n, 1), d)) * ends[:d]
        y = rng.uniform(-1, 1, (count, max(n, 1))) * ends[-1]
        X[: count // 4] = np.sign(X[: count // 4]) * ends[:d]
        y = {"numbers": y, "numbers of at least 0": np.abs(y)}.get(self.given.labels, np.sign(y))
        for _ in range(HALVINGS):
            X = np.where(np.array([self._safe(one) for one in X])[:, None, None], X, X / 2)
        X, y = (one.astype(self.network.dtype).astype(np.float64) for one in (X, y))
        made = incontext.prompt(X, y, self.given)
        return made[[self._safe(one) for one in X]] if n <= most else made[:0]

    def _safe(self, X: np.ndarray) -> bool:
        A = np.concatenate([X, np.ones((len(X), 1))], axis=1)
        largest = float(np.linalg.eigvalsh(A.T @ A / len(A))[-1])
        curved = self.conditions(SafeCurvature)
        steepest = max([STEEPEST, *(one.slope for one in curved)])
        return all(one.rate * steepest * largest <= one.limit for one in self.conditions(SafeRate)) and all(
            one.found(1.001 * largest) <= one.limit for one in curved
        )

    # what is computed, and what it should be

    def errors(self, x: np.ndarray, way: str) -> np.ndarray:
        """The largest |computed - program| of each input, in extended precision; 0 where nothing is claimed."""
        if not len(x):
            return np.zeros(0)
        quantities, covered = self.quantities(x)
        mine, theirs = self.computed(x, way).astype(np.longdouble), self.read(quantities)
        if mine.shape[1:] != theirs.shape[1:]:
            return np.full(len(x), np.inf)
        found = np.abs(mine - theirs)
        found = np.where(np.isnan(found), np.inf, found).reshape(len(x), -1).max(axis=1)
        return np.where(covered, found, 0.0).astype(np.float64)

    def proven(self, x: np.ndarray, way: str) -> float:
        """The largest error that is certain: of the program there are balls."""
        if not len(x):
            return 0.0
        _, covered = self.quantities(x)
        rows = self.computed(x, way)
        if self.given is not None and not isinstance(self.given, Loss):
            noise = 2.0**-48 * (1 + np.abs(self.read(self.quantities(x)[0]))).reshape(len(x), -1).max(axis=1)
            return float(np.where(covered, self.errors(x, way) - noise, 0.0).max())
        worst = 0.0
        for row, one, yes in zip(rows, x, covered, strict=False):
            if not yes:
                continue
            if not np.isfinite(row).all():
                return np.inf
            with precision(128):
                exactly = self.read(run(self.network.program, [_balls(self.examples(one[None])[0])], Balls()))
                for mine, theirs in zip(row.reshape(-1), exactly.reshape(-1), strict=True):
                    held = float(mine)
                    worst = max(worst, float(abs(arb(held) + arb(float(mine - held)) - theirs).lower()))
        return worst

    def quantities(self, x: np.ndarray) -> tuple[list[np.ndarray], np.ndarray]:
        """All that the program computes, and for which inputs the conditions hold."""
        functions: dict[str, Callable[..., Any]] = {}
        for step in self.network.program.steps:  # type: ignore[union-attr]
            if isinstance(step, Apply) and isinstance(step.functions[0], Opaque):
                functions[step.functions[0].digest] = self._called
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            given = [self.examples(x).astype(np.longdouble)]
            found = run(self.network.program, given, Floats(), functions)
        covered = np.ones(len(x), bool)
        for condition in self.conditions(Excluded):
            for step in self.network.program.steps:  # type: ignore[union-attr]
                for place in step.of if isinstance(step, Apply) else ():
                    covered &= condition.holds(found[place].astype(np.float64)).reshape(len(x), -1).all(axis=1)
        for condition in self.conditions(KeepsWithin):
            covered &= self._keeps(condition, x, found[self.network.program.output].astype(np.float64))  # type: ignore[union-attr]
        return found, covered

    def _keeps(self, condition: KeepsWithin, x: np.ndarray, path: np.ndarray) -> np.ndarray:
        """For which prompts exact descent, (prompts, steps + 1, weights), keeps to a condition."""
        given = self.examples(x)
        A, y = given[..., :-1], given[..., -1][:, None]
        A = np.concatenate([A, np.ones((*A.shape[:-1], path.shape[-1] - A.shape[-1]))], axis=-1)
        s = path @ np.swapaxes(A, 1, 2)
        argument = {"s": s, "s - y": s - y, "y s": y * s}[condition.quantity]
        return ((argument > condition.low) & (argument < condition.high)).all(axis=(1, 2))

    def _called(self, *points: np.ndarray) -> np.ndarray:
        return self.given(np.stack([one.reshape(-1) for one in points], axis=-1))

    def examples(self, x: np.ndarray) -> np.ndarray:
        """What the program is given: the inputs, or of a prompt its examples and their labels."""
        if not isinstance(self.given, Loss):
            return x
        half, d = x[:, : x.shape[1] // 2], x.shape[2] - 2
        if self.given.form == "y phi(y s)":
            label = half[..., d : d + 1]
            return np.concatenate([half[..., :d] * label, label], axis=-1)
        return half[..., [*range(d), d + 1]]

    def read(self, quantities: list[np.ndarray]) -> np.ndarray:
        """What the network should put out; of a learner the end of the path."""
        found = quantities[self.network.program.output]  # type: ignore[union-attr]
        if isinstance(self.given, Loss):
            found = found[..., -1:, :]
            if self.network.output == "register":
                found = np.repeat(found, self.network.streams[-1].registers, axis=-2)
        return found

    def computed(self, x: np.ndarray, way: str) -> np.ndarray:
        """The output (batch, tokens, features).

        fast        in numpy, in the network's dtype         exact    in extended precision
        torch       as the library does it                   flushed  underflow to zero
        alone       inputs one by one                        module   as exported
        exp astray  exponentials off by 3 ulp more           or the name of an order of sums
        """
        import torch

        network = self.network
        given = x if network.token_axis else x[:, 0]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            match way:
                case "torch" | "flushed" | "alone" | "module":
                    torch.set_flush_denormal(way == "flushed")
                    try:
                        tensor = torch.from_numpy(given.astype(network.dtype))
                        with torch.no_grad():
                            found = _torch(network, tensor, way)
                    finally:
                        torch.set_flush_denormal(False)
                    return found if network.token_axis else found[:, None]
                case "fast":
                    return evaluate(network, x, None, network.dtype)
                case "exact":
                    return evaluate(network, x, ORDERS["forwards"], np.longdouble)
                case "exp astray":
                    return evaluate(network, x, None, network.dtype, astray=True)
                case _:
                    return evaluate(network, x[: max(1, SLOWLY // network.parameters)], ORDERS[way], network.dtype)


def _torch(network: Network, x: Any, way: str) -> np.ndarray:
    if way == "module":
        return network.module()(x).numpy()
    parts = [x] if way != "alone" else [x[n : n + 1] for n in range(len(x))]
    found = [Network.__call__(network, one, outside="ignore", evaluation="plain").numpy() for one in parts]
    return np.concatenate(found)


def _balls(x: np.ndarray) -> np.ndarray:
    found = np.empty(x.shape, dtype=object)
    for place in np.ndindex(x.shape):
        found[place] = arb(float(x[place]))
    return found
