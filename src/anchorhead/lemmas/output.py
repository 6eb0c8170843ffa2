"""How far a network is from its program: what the walk knows of its output, against the program's."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from jaxtyping import Float

from anchorhead.language.targets.mlp import Affine
from anchorhead.network.claim_table import ClaimTable
from anchorhead.proof.arithmetic.affine_forms import Forms, Sources, along, distance
from anchorhead.proof.arithmetic.arithmetic import UP
from anchorhead.terms import Term


@dataclass(frozen=True, eq=False)
class OutputBound:
    """|network - program| <= approximation + rounding, entry by entry of the output; claims: what its softmaxes were
    found to compute."""

    approximation: Float[np.ndarray, " outputs"]
    rounding: Float[np.ndarray, " outputs"]
    claims: ClaimTable = field(default_factory=ClaimTable.empty)

    @property
    def total(self) -> float:
        return float((self.approximation + self.rounding).max()) * UP

    @property
    def worst(self) -> tuple[float, float]:
        """The two of the output whose sum is the largest."""
        at = int((self.approximation + self.rounding).argmax())
        return float(self.approximation[at]), float(self.rounding[at])

    def terms(self, approximation: str = "", rounding: str = "network") -> tuple[Term, Term]:
        """The two of that output, each of what is said."""
        exact, rest = self.worst
        return Term("approximation", exact, approximation), Term("rounding", rest, rounding)


@np.errstate(invalid="ignore")
def compared(y: Forms, readout: Affine | None, sources: Sources) -> OutputBound:
    """The forms of the output against a last affine map, on all sources together; without one, the sources themselves,
    as many a token as there are outputs."""
    if readout is None:
        weight, bias = np.eye(sources.count), np.zeros(sources.count)
        off = 0.0
    else:
        y, weight, bias, (weight_error, bias_error) = y.flat(), readout.weight, readout.bias, readout.errors
        off = weight_error @ sources.size + bias_error
    size = along(np.abs(weight)[None], sources.size) + np.abs(bias)
    wrong = distance(y.coefficients - weight, y.constant - bias, np.broadcast_to(size, y.constant.shape), sources)
    rounding = y.rounding + wrong + off
    # infinities that cancel, of logits whose rounding has no bound, leave no number: nothing is known then
    exact, rest = (np.where(np.isnan(one), np.inf, one).reshape(-1) for one in (y.approximation, rounding))
    return OutputBound(exact, rest)
