"""The hunt: a search for inputs at which a head, as its dtype computes it, errs by more than its certificate allows.

A head is computed by torch and by numpy. Inputs are crowded where errors live (proof.search.hunt_points), and climbers
walk from the worst ones over the floats, at all scales at once. What is exact and what is not:

  - Whatever is *reported* is exact. An error is |computed - target| with the target enclosed by Arb at that very
    float, with 200 bits; a violation is an enclosure that lies above the bound as a whole.
  - What is *looked at closely* is chosen in floating point, by |computed - target.values|. The noise of target.values
    is measured against Arb at a sample of points, and taken four times as large; whatever comes within the noise of
    the bound is judged by Arb, and so are the 1000 worst of all inputs. A violation could be missed only where
    target.values errs by more than that; none can be invented. (A noise above a quarter of the bound counts as one.)
  - Where the noise is above 1% of the bound, as for float64 heads that are exact but for rounding, the distance of the
    computed value from the head in long double, which is their rounding, is a second way into the closer look.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from flint import arb
from jaxtyping import Float, Int

from anchorhead.disk import path_of, read_whole, write_atomically
from anchorhead.errors import AnchorheadError
from anchorhead.given import checked_count
from anchorhead.language.expressions.precision import precision
from anchorhead.progress import Progress, Status
from anchorhead.proof.search.hunt_claim import PRECISION, Claim, Found
from anchorhead.proof.search.hunt_points import FloatRange, from_ordinals, to_ordinals

KEPT, SHOWN = 1000, 100
"""The worst inputs that Arb judges in any case; those of them computed alone, and the most violations listed."""
SAMPLE, MARGIN = 2048, 4
CLIMBERS, STEPS = 64, 24
FORMAT = 2
LARGEST_STATE = 100_000_000


@dataclass(frozen=True)
class Hunted:
    """The largest error found and its input, how many inputs were tried, and the inputs with a proven error above the
    bound: the worst first, at most 100."""

    worst_error: float
    at: float
    inputs: int
    bound: float
    violations: tuple[Found, ...]

    @property
    def ratio(self) -> float:
        return self.worst_error / self.bound if self.bound else np.inf * self.worst_error


def hunt(
    claim: Claim,
    inputs: int = 10_000_000,
    seed: int = 0,
    state: str | Path | None = None,
    progress: Progress | None = None,
) -> Hunted:
    """Tries so many inputs. The result depends on the claim, `inputs` and `seed` alone.

    state     a file that is written after every chunk, and from which the hunt goes on if it exists
    progress  told how far it is after every chunk
    """
    inputs, seed = checked_count("inputs", inputs), checked_count("seed", seed, least=0)
    search = _Search(claim, inputs, seed)
    if state is not None and path_of(state).exists():
        search.resume(path_of(state))
    while search.tried < inputs:
        search.chunk()
        if state is not None:
            write_atomically(state, json.dumps(search.to_json()).encode())
        if progress is not None:
            progress(Status("trying inputs", share=search.tried / inputs))
    return search.finish()


def _digest(state: dict[str, Any]) -> str:
    return hashlib.sha256(json.dumps(state, sort_keys=True).encode()).hexdigest()


class _Search:
    """What is known so far: the worst inputs, with what was computed there and how far off it seems."""

    def __init__(self, claim: Claim, inputs: int, seed: int) -> None:
        self.claim, self.inputs, self.seed = claim, inputs, seed
        atom = claim.atom
        self.floats = FloatRange.of(claim.target, atom.parts, atom.origin, atom.dtype)
        self.size = int(np.clip(2**21 // atom.anchors, 2**12, 2**17))
        self.size = max(min(self.size, inputs // 4), min(inputs, 2**12))
        self.tried, self.violations = 0, dict[float, Found]()
        self.x, self.score = np.zeros(0, atom.dtype), np.zeros(0)
        self.computed = np.zeros((0, 2, len(atom.bias)))
        self.noise = self._noise()

    def chunk(self) -> None:
        """Explores with three quarters of the inputs, climbs with the others."""
        number, count = self.tried // self.size, min(self.size, self.inputs - self.tried)
        rng = np.random.default_rng([self.seed, number])
        ordinals = self.floats.explore(number, count - count // 4, self.inputs, rng)
        scores = self._look(ordinals)
        self._climb(*self._starts(ordinals, scores), count // 4, rng)
        self.violations = {found.at: found for found in self._worst_violations()}
        self.tried += count

    def finish(self) -> Hunted:
        """Judges the worst inputs; the first of them also as computed alone, when other kernels may be at work."""
        alone = [(x, self.claim.computed(np.array([x]))[0]) for x in self.x[:SHOWN]]
        judged = [self._judge(x, computed) for x, computed in (*zip(self.x, self.computed, strict=True), *alone)]
        worst = max([*judged, *self.violations.values()], key=lambda found: found.error)
        return Hunted(worst.error, worst.at, self.tried, self.claim.bound, tuple(self._worst_violations()))

    def _starts(
        self, ordinals: Int[np.ndarray, " n"], scores: Float[np.ndarray, " n"]
    ) -> tuple[Int[np.ndarray, " k"], Float[np.ndarray, " k"]]:
        """The worst of all inputs so far, and the worst of this chunk in each of as many stretches of the interval."""
        half = min(CLIMBERS // 2, len(self.x))
        order = np.argsort(ordinals, kind="stable")
        stretches = [part[scores[part].argmax()] for part in np.array_split(order, CLIMBERS // 2) if len(part)]
        best = np.concatenate([to_ordinals(self.x[:half]), ordinals[stretches]])
        return best, np.concatenate([self.score[:half], scores[stretches]])

    def _climb(
        self, at: Int[np.ndarray, " k"], height: Float[np.ndarray, " k"], count: int, rng: np.random.Generator
    ) -> None:
        """Every climber looks around, near and far, and goes to the largest error that it sees."""
        at, height = at.copy(), height.copy()
        for step in np.array_split(np.arange(count), STEPS):
            who = step % len(at)
            there = self.floats.near(at[who], rng)
            scores = self._look(there)
            order = np.argsort(scores, kind="stable")
            # of several entries for one climber the last one, which is the largest, stays
            best = np.full(len(at), -1)
            best[who[order]] = order
            better = (best >= 0) & (scores[best] > height) if len(scores) else np.zeros(len(at), bool)
            at[better], height[better] = there[best[better]], scores[best[better]]

    def _look(self, ordinals: Int[np.ndarray, " n"]) -> Float[np.ndarray, " n"]:
        """How far off the head seems at each; judged by Arb where that is near the bound. Keeps the worst."""
        x = from_ordinals(ordinals, self.floats.dtype)
        computed = self.claim.computed(x)
        score = self._seems(x, computed)
        near = np.flatnonzero(score > self.claim.bound - self.noise)
        near = near[np.argsort(-score[near], kind="stable")]
        for start in range(0, len(near), SHOWN):
            for index in near[start : start + SHOWN]:
                score[index] = self._judge(x[index], computed[index]).error
            if self.violations:  # the claim has fallen: the worst are enough from now on
                break
        self._keep(x, computed, score)
        return score

    def _seems(self, x: Float[np.ndarray, " n"], computed: Float[np.ndarray, "n 2 m"]) -> Float[np.ndarray, " n"]:
        score = np.abs(computed - self.claim.target.values(x)[:, None]).max(axis=(1, 2), initial=0.0)
        if self.noise > self.claim.bound / 100:
            rounding = np.abs(computed - self.claim.atom.exact(x)[:, None]).max(axis=(1, 2), initial=0.0)
            score = np.maximum(score, rounding.astype(np.float64))
        return np.where(np.isfinite(score), score, np.inf)

    def _keep(self, x: np.ndarray, computed: np.ndarray, score: np.ndarray) -> None:
        if len(score) > KEPT:
            top = np.argpartition(-score, KEPT)[:KEPT]
            x, computed, score = x[top], computed[top], score[top]
        x, computed, score = (
            np.concatenate(both) for both in ((self.x, x), (self.computed, computed), (self.score, score))
        )
        order = np.argsort(-score, kind="stable")
        _, once = np.unique(to_ordinals(x[order]), return_index=True)
        top = order[np.sort(once)][:KEPT]
        self.x, self.computed, self.score = x[top], computed[top], score[top]

    def _judge(self, x: Any, computed: Float[np.ndarray, "2 m"]) -> Found:
        found = self.claim.judge(float(x), computed)
        known = self.violations.get(found.at)
        if found.above and (known is None or found.error > known.error):
            self.violations[found.at] = found
        return found

    def _noise(self) -> float:
        """Four times the largest error of target.values at a sample of points; at most a quarter of the bound."""
        rng = np.random.default_rng([self.seed, 2**31])
        x = from_ordinals(self.floats.explore(0, SAMPLE, SAMPLE, rng), self.floats.dtype).astype(np.float64)
        worst = 0.0
        with precision(PRECISION):
            for point, row in zip(x, self.claim.target.values(x), strict=True):
                for value, exact in zip(row, self.claim.target.ball(arb(float(point))), strict=True):
                    error = float((arb(float(value)) - exact).abs_upper())
                    worst = max(worst, error) if np.isfinite(error) else worst
        return min(MARGIN * worst, self.claim.bound / 4)

    def _worst_violations(self) -> list[Found]:
        return sorted(self.violations.values(), key=lambda found: (-found.error, found.at))[:SHOWN]

    def to_json(self) -> dict[str, Any]:
        """All that the next chunk needs, with a digest of it."""
        kept = zip(self.x, self.computed, self.score, strict=True)
        state = {
            **self._identity(),
            "tried": self.tried,
            "worst": [
                Found(float(x), tuple(map(tuple, y.tolist())), float(score), False).to_json() for x, y, score in kept
            ],
            "violations": [found.to_json() for found in self._worst_violations()],
        }
        return {**state, "sha256": _digest(state)}

    def resume(self, path: Path) -> None:
        """Goes on from a saved state, refused where it is that of another hunt."""
        try:
            data = json.loads(read_whole(path, "the state of a hunt", LARGEST_STATE))
            if data.pop("sha256") != _digest(data):
                raise ValueError("its digest does not fit")
            saved = {key: data[key] for key in self._identity()}
            worst, violations = ([Found.from_json(one) for one in data[key]] for key in ("worst", "violations"))
            computed = np.array([found.computed for found in worst]).reshape(len(worst), *self.computed.shape[1:])
            tried = range(self.inputs + 1)[data["tried"]]
        except (ValueError, KeyError, IndexError, TypeError, AttributeError, OverflowError, RecursionError) as error:
            raise AnchorheadError(
                f"{path} is not the state of a hunt, or is damaged ({error}): give another file"
            ) from error
        different = [key for key, value in self._identity().items() if saved[key] != value]
        if different:
            raise AnchorheadError(
                f"{path} is the state of another hunt: another {' and another '.join(different)}. "
                "Give another file, or delete it to begin anew"
            )
        self.tried, self.computed = tried, computed
        self.violations = {found.at: found for found in violations}
        self.x = np.array([found.at for found in worst], self.floats.dtype)
        self.score = np.array([found.error for found in worst])

    def _identity(self) -> dict[str, Any]:
        return {"format": FORMAT, "head, target or bound": self.claim.digest, "inputs": self.inputs, "seed": self.seed}
