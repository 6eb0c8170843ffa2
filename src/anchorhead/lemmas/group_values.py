"""Scalar heads that are groups of a softmax: a map of the weights stands in the place of values.

Neuron r, part p is group number r parts + p. The map that follows gives its weights the values C v_k for each output,
C being what that output takes of the neuron. With

    S >= sum_k w_k |v_k|,      |V_k - C v_k| <= rho |C v_k|      for the stored values V_k,

an output errs by |C| (|r - phi| + rounding of the softmax + rho S), and its sum of n terms by gamma_n sum |C| S.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from jaxtyping import Float, Int

from anchorhead.lemmas.scalar_head import Others, Reads
from anchorhead.proof.arithmetic.affine_forms import Forms, Sources
from anchorhead.proof.arithmetic.arithmetic import FLOAT64, Arithmetic
from anchorhead.proof.arithmetic.readings import Refusal
from anchorhead.proof.heads.neurons import Layer


@dataclass(frozen=True, eq=False)
class Taken:
    """What each output takes of each neuron, by how much stored values are off it, and the sizes and numbers of terms.

    For neuron r the stored values are V_k = C_r v_k (1 + e_k): `off` adds up |C_r| max |e_k| S, `reach` |C_r| S.
    """

    takes: Float[np.ndarray, "outputs neurons"]
    off: Float[np.ndarray, " outputs"]
    reach: Float[np.ndarray, " outputs"]
    terms: Float[np.ndarray, " outputs"]

    def outputs(self, reads: Reads, exact: Sources, others: Others, arithmetic: Arithmetic) -> Forms:
        """Forms of the outputs, one token, over the neurons' exact values."""
        size = self.reach + others.size
        rounding = others.rounding + self.off + 8 * FLOAT64.unit * size
        summed = replace(others, size=size, terms=self.terms + others.terms, rounding=rounding)
        # in the place of what each part reads, the weights of its anchors are added up
        alone = replace(reads.known(), reach=np.zeros((len(reads.scale), 0)))
        return alone.combined(summed, self.takes, exact, arithmetic)


def read_taken(
    neurons: Layer,
    values: Float[np.ndarray, "outputs neurons parts size"],
    place: Int[np.ndarray, "neurons parts anchors"],
    sums: list[list[float]],
    inside: np.ndarray,
) -> Taken:
    """What outputs take of the neurons that are inside their shapes, from the stored values of all features."""
    outputs = len(values)
    takes = np.zeros((outputs, neurons.neurons))
    off, reach, terms = (np.zeros(outputs) for _ in range(3))
    for number, shape in enumerate(neurons.shapes):
        own = (neurons.which == number) & inside
        if not own.any():
            continue
        stored = np.take_along_axis(values[:, own], np.maximum(place[own], 0)[None], axis=3)
        if values[:, own, len(shape.parts) :].any():
            raise Refusal("a group that belongs to no part has values")
        largest = max(range(len(shape.parts)), key=lambda p: float(np.abs(shape.parts[p].values).max()))
        best = int(np.abs(shape.parts[largest].values[:, 0]).argmax())
        # where all values are 0, so is what is read, and what is taken of it does not matter
        take = stored[:, :, largest, best] / (float(shape.parts[largest].values[best, 0]) or 1.0)
        takes[:, own] = take
        for number_of_part, part in enumerate(shape.parts):
            v = part.values[:, 0].astype(np.float64)
            here = place[own, number_of_part, : len(part)] >= 0
            V = np.where(here, stored[:, :, number_of_part, : len(part)], take[..., None] * v)
            zero = v == 0
            if V[..., zero].any():
                raise Refusal("an anchor of value 0 has one")
            ratio = V[..., ~zero] / v[~zero]
            total = sums[number][number_of_part]
            wrong = np.abs(ratio - take[..., None]).max(axis=2, initial=0.0) + 4 * FLOAT64.unit * np.abs(take)
            off += wrong.sum(axis=1) * total
            reach += np.abs(ratio).max(axis=2, initial=0.0).sum(axis=1) * total
            terms += (V != 0).sum(axis=(1, 2))
    return Taken(takes, off, reach, terms)
