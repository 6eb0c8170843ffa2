"""What a learner approximates: the path of exact gradient descent on the examples of a prompt."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from jaxtyping import Float

from anchorhead.decimals import counted
from anchorhead.errors import AnchorheadError
from anchorhead.given import checked_count, checked_number, checked_word, numbers, shown
from anchorhead.language.targets.losses import Loss, in_full
from anchorhead.language.targets.scalar import interval

LearnerLayout = Literal["direct", "transformer", "sequence"]
LAYOUTS: tuple[LearnerLayout, ...] = ("direct", "transformer", "sequence")


@dataclass(frozen=True, eq=False)
class Descent:
    """w_0 = v_0 = 0, and for t = 0, 1, ...

        w_(t+1) = S(w_t + momentum v_t - rate (gradient of the mean loss at w_t + decay w_t))
        v_(t+1) = w_(t+1) - w_t,    S(w) = sign(w) max(|w| - rate threshold, 0), entry by entry

    features    how many entries an example has; with an intercept, w has one entry more, the last, on which neither
                decay nor threshold acts
    threshold   of lasso: the penalty is threshold |w|_1
    decay       of ridge: the penalty is decay |w|^2 / 2
    examples    the most that a prompt may hold
    layout      how a network computes it: "direct", one attention a step, for the squared loss; "transformer", three
                attentions a step; "sequence", anchors for each example
    scores      the range of the link's argument (s, s - y or y s, as its form says) in which the network serves; none
                where it was not stated, as for "direct"
    labels      the largest |y| for which a link g(s, y) is served; none for other forms
    scales      of columns that were divided by numbers of their own, 1 over those: penalties are on w times the scales,
                threshold and decay on entry j are then threshold scales_j and decay scales_j^2; none where all are 1
    """

    loss: Loss
    steps: int
    rate: float
    features: int
    intercept: bool = False
    decay: float = 0.0
    threshold: float = 0.0
    momentum: float = 0.0
    examples: int = 64
    layout: LearnerLayout = "direct"
    scores: tuple[float, float] | None = None
    labels: float | None = None
    scales: tuple[float, ...] | None = None

    def __post_init__(self) -> None:
        for name in ("steps", "features", "examples"):
            count = getattr(self, name)
            object.__setattr__(self, name, checked_count(name, count))
        for name, low, high in (
            ("rate", 0.0, np.inf),
            ("decay", -1.0, np.inf),
            ("threshold", -1.0, np.inf),
            ("momentum", -1.0, 1.0),
        ):
            allowed = {"rate": "a number above 0", "momentum": "a number of at least 0 and below 1"}
            needed = allowed.get(name, "a number of at least 0")
            number = checked_number(name, getattr(self, name), needed, least=0.0, above=low, below=high)
            object.__setattr__(self, name, number)
        if self.scores is not None:
            object.__setattr__(self, "scores", interval(self.scores))
        if self.labels is not None:
            labels = checked_number("labels", self.labels, "the largest |y|, a number above 0", above=0.0)
            object.__setattr__(self, "labels", labels)
        if self.scales is not None:
            given = numbers(self.scales)
            if given is None or given.shape != (self.features,) or not (np.isfinite(given) & (given > 0)).all():
                raise AnchorheadError(f"scales={shown(self.scales)}: {self.features} numbers above 0, one a feature")
            object.__setattr__(self, "scales", tuple(map(float, given)))
        checked_word("layout", self.layout, LAYOUTS)
        if self.layout == "direct" and self.loss.name != "squared":
            raise AnchorheadError(
                f'layout="direct" is for the squared loss; for the {self.loss}: transformer or sequence'
            )
        steepest = float(self.decays.max())
        if self.rate * steepest >= 2:
            raise AnchorheadError(
                f"decay={steepest:g} with rate={self.rate:g}: the decay alone diverges; at most {2 / self.rate:g}"
            )

    @property
    def weights(self) -> int:
        """How many entries w has."""
        return self.features + self.intercept

    @property
    def penalised(self) -> Float[np.ndarray, " weights"]:
        """1 for the entries of w on which penalties act, 0 for the intercept."""
        return np.array([1.0] * self.features + [0.0] * self.intercept)

    @property
    def decays(self) -> Float[np.ndarray, " weights"]:
        """The decay of each entry of w."""
        return self.decay * self.penalised * self._scales**2

    @property
    def thresholds(self) -> Float[np.ndarray, " weights"]:
        """The threshold of each entry of w."""
        return self.threshold * self.penalised * self._scales

    @property
    def _scales(self) -> Float[np.ndarray, " weights"]:
        return np.array([*(self.scales or [1.0] * self.features), *([1.0] * self.intercept)])

    def weight_names(self, letter: str) -> tuple[str, ...]:
        """What the entries of w, or of what is like it, are called."""
        return (*(f"{letter}{j}" for j in range(self.features)), *([f"{letter} of the intercept"] * self.intercept))

    def entry_names(self) -> tuple[str, ...]:
        """What the entries of w, and with momentum those of v, are called."""
        return (*self.weight_names("w"), *(self.weight_names("v") if self.momentum else ()))

    def gradient(self, w: Any, A: Float[np.ndarray, "n weights"], y: Float[np.ndarray, " n"]) -> np.ndarray:
        """Of the mean loss and the decay, in float64."""
        return A.T @ self.loss.derivative(A @ w, y) / len(A) + self.decays * w

    def path(self, A: Float[np.ndarray, "n weights"], y: Float[np.ndarray, " n"]) -> Float[np.ndarray, "steps weights"]:
        """w_0, ..., w_steps as float64 computes them.

        A holds the examples, with the column of the intercept if there is one; for a loss of the margin, all
        multiplied by their labels.
        """
        w, v = np.zeros(self.weights), np.zeros(self.weights)
        found = [w]
        for _ in range(self.steps):
            v = self.momentum * v - self.rate * self.gradient(w, A, y)
            before, w = w, self.shrunk(w + v)
            v = w - before if self.threshold else v
            found.append(w)
        return np.array(found)

    def shrunk(self, w: Float[np.ndarray, " weights"]) -> Float[np.ndarray, " weights"]:
        """S(w), the soft threshold, in float64."""
        by = self.rate * self.thresholds
        return np.sign(w) * np.maximum(np.abs(w) - by, 0.0)

    def objective(self, w: Any, A: Float[np.ndarray, "n weights"], y: Float[np.ndarray, " n"]) -> float:
        """Mean loss and penalties, where the loss is known by more than its link."""
        if self.loss.value is None:
            raise AnchorheadError(f"the {self.loss} is known by its link alone: it has no value to report")
        w = np.asarray(w, dtype=np.float64)
        fit = float(self.loss.value(A @ w, y).mean())
        return fit + float(self.decays @ w**2) / 2 + float(self.thresholds @ np.abs(w))

    def to_json(self) -> dict[str, Any]:
        """All that it is, as it is saved with a network."""
        names = ("steps", "rate", "features", "intercept", "decay", "threshold", "momentum", "examples", "layout")
        names += tuple(name for name in ("scores", "labels", "scales") if getattr(self, name) is not None)
        return {"loss": self.loss.to_json(), **{name: getattr(self, name) for name in names}}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Descent:
        try:
            rest = {name: value for name, value in data.items() if name != "loss"}
            return cls(Loss.from_json(data["loss"]), **rest)
        except (KeyError, TypeError) as error:
            raise AnchorheadError(f"what is stored is no gradient descent: {error!r}") from error

    def __str__(self) -> str:
        named = [(name, getattr(self, name)) for name in ("decay", "threshold", "momentum")]
        extras = [f"{name} {in_full(number)}" for name, number in named if number]
        extras += ["an intercept"] if self.intercept else []
        also = f", with {', '.join(extras)}" if extras else ""
        return f"{counted(self.steps, 'step')} of gradient descent on the {self.loss}, rate {in_full(self.rate)}{also}"
