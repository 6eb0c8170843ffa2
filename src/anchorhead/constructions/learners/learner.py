"""A learner: a network that reads a prompt of examples and leaves fitted weights, with fixed weights of its own."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Self

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from anchorhead.certificate import Certificate
from anchorhead.conditions import AtMostExamples, KeepsWithin, SafeCurvature
from anchorhead.constructions.learners.approximating import approximating, learner_of
from anchorhead.constructions.learners.certified import (
    DescentSummary,
    certificate_for_prompt,
    course,
    eigenvalue_of,
)
from anchorhead.constructions.learners.derived import of_other_steps
from anchorhead.constructions.learners.prompts import Examples, examples_of, prompt, refused_label
from anchorhead.constructions.learners.written import step_of
from anchorhead.decimals import counted
from anchorhead.errors import AnchorheadError, CertificateError, OutsideWarning
from anchorhead.language.targets.descent import Descent
from anchorhead.lemmas.learners.loop import most_curvature
from anchorhead.lemmas.learners.steps import Step
from anchorhead.lemmas.learners.threshold import require_known
from anchorhead.network import Attention, Network, Outside, Repeat
from anchorhead.network.guard import checked_outside
from anchorhead.network.named_inputs import the_only
from anchorhead.network.tensors import without_torch
from anchorhead.progress import Progress, progress_line


@dataclass(frozen=True, eq=False, init=False, repr=False)
class Learner(Network):
    """net(prompt) are the weights w after all steps, (features,); net(prompt, path=True) all of w_0, ..., w_steps.

    >>> net = incontext.gradient_descent(steps=5, rate=0.3, features=1)
    >>> net(net.prompt([[1.0], [-1.0]], [2.0, -2.0]), path=True).shape
    (6, 1)
    """

    @cached_property
    def descent(self) -> Descent:
        """What it approximates."""
        return learner_of(self, Descent)

    @cached_property
    def step(self) -> Step:
        """The numbers that are free in its step; CertificateError where it is not the network of its descent."""
        return step_of(self, self.descent)

    def with_(self, **changes: Any) -> Self:
        certificate = changes.get("certificate")
        if certificate is not None and certificate.on.low.ndim > 1 and self.embed.tokens is None:
            raise AnchorheadError(
                "this certificate is for one prompt, and the network takes prompts of any length: it cannot carry it. "
                "Certificates for one prompt are established by net.certify(prompt), as often as needed"
            )
        return super().with_(**changes)

    def with_steps(self, steps: int) -> Learner:
        """The same learner with another number of steps, certificate left out."""
        layers = tuple(replace(layer, times=steps) if isinstance(layer, Repeat) else layer for layer in self.layers)
        given = None if self.program is None else self.program.input
        on = None if given is None or given.low is None else (given.low, given.high)
        other = of_other_steps(self.with_(layers=layers, certificate=None))
        return approximating(other, replace(self.descent, steps=steps), on)

    def prompt(self, X: Any, y: Any, standardise: bool = False) -> Any:
        """The prompt of examples X (n, d) with labels y (n,), for this learner's loss and in its dtype."""
        made = prompt(X, y, self.descent.loss, standardise)
        return made.to(getattr(torch, self.dtype)) if isinstance(made, Tensor) else made.astype(self.dtype)

    def __call__(self, *inputs: Any, outside: Outside | None = None, path: bool = False, **named: Any) -> Any:
        """The fitted weights, (..., weights); with path, (..., steps + 1, weights) of all steps from 0 on.

        Prompts for which the rate is too large are refused: their descent diverges.
        """
        x = the_only(inputs, named, "a prompt, as net.prompt(X, y) makes it")
        way = checked_outside(self.outside if outside is None else outside)
        sets = self._examples(self.cast(x))
        if way != "ignore":
            self._require_safe(sets, way)
            self._mind_the_count(len(sets[0].y), way)
        if not path:
            return self._calls.run(x, way)[..., 0, :]
        return self._calls.path(x, way)[..., 0, :]

    def exact(self, x: Any, path: bool = False) -> Float[np.ndarray, "..."]:
        """What gradient descent itself gives for the prompt, in float64: (..., weights), or with path all steps."""
        descent = self.descent
        paths = [descent.path(one.design(descent.intercept), one.y) for one in self._examples(self.cast(x))]
        found = np.array(paths).reshape(*np.shape(x)[:-2], descent.steps + 1, descent.weights)
        return found if path else found[..., -1, :]

    def certify(self, x: Any, progress: Progress | bool | None = True) -> Certificate:
        """A certificate for one prompt: a bound on |w_t - exact w_t| for all steps t, tighter than the box's.

        progress   as everywhere, see anchorhead.progress
        """
        cast = self.cast(x)
        sets = self._examples(cast)
        if len(sets) != 1:
            raise AnchorheadError(f"{len(sets)} prompts: certify one at a time")
        with progress_line(progress, "proving a bound for this prompt"):
            given = cast.reshape(cast.shape[-2:]).astype(np.float64)
            return certificate_for_prompt(self.step, self.descent, sets[0], given, self.dtype)

    def seen_by_the_state(self, x: Any, step: int) -> Float[np.ndarray, " tokens"]:
        """The weights with which the first head of the layer that updates the state sees the rows of one prompt.

        The network runs up to that step alone.
        """
        repeat = next(layer for layer in self.layers if isinstance(layer, Repeat))
        shorter = [replace(layer, times=step + 1) if layer is repeat else layer for layer in self.layers]
        network = Network(shorter, self.output)
        maps = network.attention(np.asarray(x, dtype=self.dtype))[-len(repeat.layers) :]
        tokens = np.shape(x)[-2]
        asked = [one for one, layer in zip(maps, repeat.layers, strict=True) if _updates(layer, one, tokens)]
        if not asked:
            raise AnchorheadError("no layer of this learner has the state look at the examples")
        return np.asarray(asked[-1][0, -1, :tokens])

    def cast(self, x: Any) -> np.ndarray:
        """The prompt as the network takes it: in its dtype. Refuses another that is no prompt."""
        given = without_torch(x, "a prompt")
        if isinstance(given, np.ndarray) and given.dtype == self.dtype:
            return given
        self._examples(given)
        with np.errstate(over="ignore"):
            return np.asarray(given, dtype=self.dtype)

    def _examples(self, x: Any) -> list[Examples]:
        """What the prompt says; refuses one that was made for another loss."""
        loss = self.descent.loss
        sets = examples_of(x, self.descent.features, loss)
        if self.embed.tokens is not None and 2 * len(sets[0].y) != self.embed.tokens:
            raise AnchorheadError(
                f"a prompt of {counted(len(sets[0].y), 'example')}: this layout was built for "
                f"{self.embed.tokens // 2:,}, each "
                f'with anchors of its own. Build with examples={len(sets[0].y)}, or with layout="transformer", which '
                "takes any number"
            )
        for one in sets:
            found = refused_label(loss, one.y)
            if found is not None:
                raise AnchorheadError(
                    f"the last column of this prompt has {found:g}, which no prompt for the {loss} has there: make it "
                    f"by net.prompt(X, y), or by incontext.prompt(X, y, loss=...), with labels {loss.labels}"
                )
        return sets

    def bears(self, x: Any) -> bool:
        """Whether exact descent on the prompts cannot diverge: the rate is small enough for how steep their loss is."""
        limit = most_curvature(self.descent) * (1 + 1e-9)
        return all(course(self.descent, one).steepest <= limit for one in self._examples(self.cast(x)))

    def _require_safe(self, sets: list[Examples], way: Outside) -> None:
        descent = self.descent
        for one in sets:
            taken = course(descent, one)
            if taken.steepest > most_curvature(descent) * (1 + 1e-9):
                safe = descent.rate * most_curvature(descent) / taken.steepest
                raise AnchorheadError(
                    f"rate={descent.rate:g} is too large for these {len(one.y)} examples: gradient descent on the "
                    f"{descent.loss} diverges. The largest safe rate is {safe:.4g}; standardised columns allow larger "
                    "ones"
                )
            self._mind_the_scores(taken, way)
            self._mind_the_curvature(one, way)

    def _mind_the_curvature(self, one: Examples, way: Outside) -> None:
        """For a curved link a proven certificate asks more of a prompt than that descent on it does not diverge."""
        stated = self.certificate and self.certificate.condition(SafeCurvature)
        if stated is None or (found := stated.found(eigenvalue_of(self.descent, one))) <= stated.limit:
            return
        self._outside(
            f"the certificate is for prompts for which {stated}; for this one it is {found:.4g}. Use "
            "net.certify(prompt), build with a smaller rate",
            way,
            key="curvature",
        )

    def _mind_the_scores(self, taken: DescentSummary, way: Outside) -> None:
        """Where exact descent takes the link's argument beyond the range that is served, or so near to its ends that
        errors might."""
        descent = self.descent
        if descent.scores is None or self.certificate is None:
            return
        (low, high), (least, most), stated = (
            descent.scores,
            taken.arguments,
            self.certificate.condition(KeepsWithin),
        )
        served = (low <= least and most <= high) or self._serves(least, most)
        if served and (stated is None or (stated.low <= least and most <= stated.high)):
            return
        more = f", and the certificate is for what keeps between {stated.low:g} and {stated.high:g}" if stated else ""
        self._outside(
            f"the link's argument reaches from {least:.9g} to {most:.9g}; its head serves from {low:g} to {high:g}"
            f"{more}. Build with scores=({np.floor(least) - 1:g}, {np.ceil(most) + 1:g})",
            way,
        )

    def _serves(self, low: float, high: float) -> bool:
        """Whether the link's head, as it is proven, serves on [low, high] too."""
        try:
            require_known(self.descent)
            facts = self.step.links[0].facts
        except CertificateError:
            return False
        return facts.low <= low and high <= facts.high

    def _mind_the_count(self, examples: int, way: Outside) -> None:
        stated = self.certificate and self.certificate.condition(AtMostExamples)
        if stated is None or examples <= stated.most:
            return
        self._outside(
            f"a prompt of {counted(examples, 'example')}: the certificate covers up to {stated.most:,}. Build with "
            f"examples={examples}, or use net.certify(prompt)",
            way,
        )

    def _outside(self, what: str, way: Outside, key: str | None = None) -> None:
        """Beyond what the certificate covers: once a warning, or an error, as was chosen; once for each `key`."""
        text = f'{what}, or call with outside="ignore"'
        if way in ("raise", "clip"):
            raise AnchorheadError(text)
        warned = self._calls.guard.warned
        if (key or what) not in warned:
            warned.add(key or what)
            warnings.warn(text, OutsideWarning, stacklevel=5)


def _updates(layer: Any, weights: np.ndarray, tokens: int) -> bool:
    """Whether states ask, and see the rows of the prompt."""
    return isinstance(layer, Attention) and layer.mask is None and layer.grid is None and weights.shape[-1] > tokens
