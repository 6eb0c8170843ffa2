"""A learner at work on one prompt: its path, exact descent's, and what the state attends to."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Float

from anchorhead.as_html import block, folded, shown, table
from anchorhead.certificate import Certificate
from anchorhead.constructions.learners.learner import Learner
from anchorhead.constructions.learners.prompts import Examples, examples_of
from anchorhead.errors import AnchorheadError, CertificateError


@dataclass(frozen=True, eq=False)
class Trace:
    """What ah.plot draws of a learner and a prompt.

    path, exact   w_0, ..., w_steps, the network's and gradient descent's own
    certificate   the one for this prompt; none where nothing is proven for it, `why` says why
    """

    learner: Learner
    prompt: Float[np.ndarray, "tokens columns"]
    examples: Examples
    path: Float[np.ndarray, "steps weights"]
    exact: Float[np.ndarray, "steps weights"]
    certificate: Certificate | None
    why: str = ""

    @property
    def deviation(self) -> Float[np.ndarray, " steps"]:
        """The largest |w_t - exact w_t| of any entry, for each step."""
        return np.abs(self.path - self.exact).max(axis=1)

    def _repr_html_(self) -> str:
        descent, known = self.learner.descent, self.certificate
        rows = [
            ("learner", str(descent)),
            ("examples", f"{len(self.examples.y):,}"),
            ("weights after all steps", ", ".join(f"{w:.8g}" for w in self.path[-1])),
            ("largest distance from exact descent", f"{float(self.deviation.max()):.3g}"),
        ]
        bound = (
            folded("certificate for this prompt", shown(known)) if known is not None else f"not certified: {self.why}"
        )
        kind = "" if known is None else known.kind
        return block("A learner at work on one prompt", table((), rows), bound, kind=kind)

    def attention(self, step: int) -> Float[np.ndarray, " tokens"]:
        """The weights with which the state's first head sees the rows of the prompt, at a step from 0 on."""
        if not 0 <= step < self.learner.descent.steps:
            raise AnchorheadError(f"step={step!r}: one of 0 to {self.learner.descent.steps - 1}")
        return self.learner.seen_by_the_state(self.prompt, step)


def trace(learner: Learner, prompt: Any) -> Trace:
    """Runs a learner on one prompt, beside gradient descent itself, and certifies the result.

    returns   a Trace: path, exact, certificate; ah.plot draws it

        >>> net = incontext.gradient_descent(steps=5, rate=0.3, features=1)
        >>> incontext.trace(net, net.prompt([[1.0], [-1.0]], [2.0, -2.0])).path.shape
        (6, 1)
    """
    array = learner.cast(prompt)
    examples = examples_of(array, learner.descent.features, learner.descent.loss)
    if len(examples) != 1:
        raise AnchorheadError(f"{len(examples)} prompts: trace one at a time")
    try:
        certificate, why = learner.certify(array), ""
    except CertificateError as error:
        certificate, why = None, str(error)
    # what is proven for the prompt itself needs no warning that the box's certificate does not cover it
    path = learner(array, outside="ignore" if certificate else None, path=True).astype(np.float64)
    return Trace(learner, array, examples[0], path, learner.exact(array, path=True), certificate, why)
