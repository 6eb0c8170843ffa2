"""The paper's last claim, run: gradient descent on made data by attention layers, for every loss and layout."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from anchorhead import incontext
from anchorhead.as_html import block, table
from anchorhead.errors import AnchorheadError
from anchorhead.incontext.trace import Trace
from anchorhead.language.targets.losses import LOSSES
from anchorhead.network import Repeat
from anchorhead.progress import Progress, Status, progress_line


@dataclass(frozen=True)
class LearnerRow:
    """One loss in one layout: how many attention layers run, how far it is from exact descent, what is proven."""

    loss: str
    layout: str
    layers: int
    parameters: int
    deviation: float
    bound: float
    kind: str


@dataclass(frozen=True, eq=False)
class LearnerStudy:
    rows: tuple[LearnerRow, ...]
    traces: tuple[Trace, ...]

    def _repr_html_(self) -> str:
        heads = ("loss", "layout", "attention layers", "weights", "distance from exact descent", "bound", "")
        rows = [
            (
                row.loss,
                row.layout,
                f"{row.layers:,}",
                f"{row.parameters:,}",
                f"{row.deviation:.1e}",
                f"{row.bound:.1e}",
                row.kind,
            )
            for row in self.rows
        ]
        return block("Gradient descent as attention layers", table(heads, rows))


def made_data(loss: str, examples: int, features: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Standardised columns, and labels that the loss takes, from a linear model."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((examples, features)) @ (np.eye(features) + 0.3 * rng.standard_normal((features, features)))
    X = incontext.standardised(X)[0]
    s = X @ rng.standard_normal(features)
    s = s / s.std()
    match loss:
        case "logistic" | "hinge":
            return X, np.where(rng.random(examples) < 1 / (1 + np.exp(-2 * s)), 1.0, -1.0)
        case "poisson":
            return X, rng.poisson(np.exp(0.5 * s)).astype(float)
        case _:
            return X, 0.9 * s + 0.3 * rng.standard_normal(examples)


def learner_study(
    losses: Sequence[str] | None = None,
    layouts: Sequence[str] = ("direct", "transformer", "sequence"),
    examples: int = 40,
    features: int = 2,
    steps: int = 50,
    seed: int = 0,
    dtype: str = "float64",
    progress: Progress | bool | None = True,
) -> LearnerStudy:
    """Every loss (or those named) in every layout that it has, on data of its own; "direct" is the squared loss's."""
    losses = list(LOSSES) if losses is None else losses
    unknown = [loss for loss in losses if loss not in LOSSES]
    if unknown:
        raise AnchorheadError(f"losses {', '.join(map(repr, unknown))}: choose from {', '.join(LOSSES)}")
    cases = [(loss, layout) for loss in losses for layout in layouts if layout != "direct" or loss == "squared"]
    rows, traces = [], []
    with progress_line(progress, "building learners") as tell:
        for done, (loss, layout) in enumerate(cases):
            tell(Status(f"{loss}, {layout}", share=done / len(cases)))
            X, y = made_data(loss, examples, features, seed)
            net = incontext.gradient_descent(
                loss,
                layout=layout,  # type: ignore[arg-type]
                steps=steps,
                rate=_rate(loss, X),
                features=features,
                examples=examples,
                on=(-float(np.abs(X).max()), float(np.abs(X).max())),
                labels=(-float(np.abs(y).max()), float(np.abs(y).max())),
                dtype=dtype,
                progress=False,
            )
            found = incontext.trace(net, net.prompt(X, y))
            certificate = found.certificate
            bound, kind = (np.nan, "") if certificate is None else (certificate.bound, certificate.kind)
            deviation = float(found.deviation.max())
            rows.append(LearnerRow(loss, layout, _layers(net), net.parameters, deviation, bound, kind))
            traces.append(found)
    return LearnerStudy(tuple(rows), tuple(traces))


def _rate(loss: str, X: np.ndarray) -> float:
    """A fifth of what is safe, rounded down to one digit, for the slope that the loss's link has at most."""
    slope = {"logistic": 0.25, "poisson": 8.0, "absolute": 10.0, "quantile": 2.5, "hinge": 2.5}.get(loss, 1.0)
    slow = 0.4 / (slope * float(np.linalg.eigvalsh(X.T @ X / len(X))[-1]))
    power = 10.0 ** np.floor(np.log10(slow))
    return float(np.floor(slow / power) * power)


def _layers(net: incontext.Learner) -> int:
    """How many attention layers run in all."""
    return sum(layer.steps for layer in net.layers if isinstance(layer, Repeat))
