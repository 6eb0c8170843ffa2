"""From the queries of a layer of neurons to what is read of them: errors in, errors out.

A neuron's query t, times the scale of its shape, stands for z = w . source + b, the target's pre-activation. If it is
off by e, then |read - phi(z)| <= |r - phi| + L e + J, with L the largest slope of phi and J the sum of its jumps, if it
has any: the head's own error, and what phi makes of its argument's.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from jaxtyping import Bool, Float, Int

from anchorhead.proof.affine_forms import UNKNOWN, Forms, Sources, own_error, spread
from anchorhead.proof.arithmetic import FLOAT64, Arithmetic
from anchorhead.proof.shape import Shape, range_of
from anchorhead.targets.mlp import Hidden, Merged


@dataclass(frozen=True, eq=False)
class Layer:
    """The target's neurons a_r = phi_r(w_r . source + b_r), each with the shape that is to compute it.

    room  by how much the errors of a network may be expected to move each pre-activation: shapes leave room for it
    """

    merged: Merged
    hidden: Hidden
    shapes: tuple[Shape, ...]
    assigned: Int[np.ndarray, " neurons"]
    room: Float[np.ndarray, " neurons"] | float = 0.0
    _known: dict[Sources, tuple[np.ndarray, np.ndarray, Sources]] = field(default_factory=dict, init=False, repr=False)

    @property
    def neurons(self) -> int:
        return self.hidden.neurons

    @property
    def parts(self) -> int:
        """How many heads a neuron has: those of the largest shape."""
        return max(len(self.shapes[k].parts) for k in np.unique(self.assigned))

    def exact(self, sources: Sources) -> tuple[np.ndarray, np.ndarray, Sources]:
        """Intervals that hold the exact z_r, and those of the exact a_r; found once for the same sources."""
        if sources not in self._known:
            low, high = self.pre_activations(sources)
            self._known[sources] = low, high, self.activations(low, high)
        return self._known[sources]

    def pre_activations(self, sources: Sources) -> tuple[np.ndarray, np.ndarray]:
        """Intervals that hold the exact z_r."""
        affine = self.merged.affine
        middle = affine.weight @ sources.middle + affine.bias
        reach = np.abs(affine.weight) @ sources.radius
        size = np.abs(affine.weight) @ sources.size + np.abs(affine.bias)
        slack = own_error(affine.inputs) * size + self.merged.weight_error @ sources.size + self.merged.bias_error
        return middle - reach - slack, middle + reach + slack

    def activations(self, low: np.ndarray, high: np.ndarray) -> Sources:
        """Intervals that hold the exact a_r."""
        ends = np.empty((2, self.neurons))
        for k, activation in enumerate(self.hidden.activations):
            own = self.hidden.which == k
            if own.any():
                ends[:, own] = range_of(activation, low[own], high[own])
        return Sources(ends[0], ends[1])


@dataclass(frozen=True, eq=False)
class Reads:
    """What the heads of each neuron add up to: |scale_r read_r + shift_r - a_r| <= approximation_r + rounding_r.

    reach        for each neuron and part a bound on |what that head reads|
    weight_sums  for each neuron and part a bound on sum_k w_k |v_k|, where asked for
    """

    scale: Float[np.ndarray, " neurons"]
    shift: Float[np.ndarray, " neurons"]
    approximation: Float[np.ndarray, " neurons"]
    rounding: Float[np.ndarray, " neurons"]
    reach: Float[np.ndarray, "neurons parts"]
    inside: Bool[np.ndarray, " neurons"]

    def combined(
        self,
        weight: Float[np.ndarray, "outputs neurons"],
        sources: Sources,
        arithmetic: Arithmetic,
        others: Forms | None = None,
        extra_terms: int | np.ndarray = 0,
        extra_size: Float[np.ndarray, " outputs"] | float = 0.0,
    ) -> Forms:
        """sum_r weight_r read_r (+ others), of one token, as forms over the a_r; sums in any order.

        `others` are forms of the sources before, which must be constants; `extra_*` the terms that they take in sums.
        """
        coefficients = weight / self.scale
        absolute = np.abs(coefficients)
        constant = -(coefficients @ self.shift)
        terms = (weight != 0).sum(axis=1) * self.reach.shape[1] + extra_terms
        reach = np.abs(weight) @ self.reach.sum(axis=1) + extra_size
        noise = own_error(len(self.scale)) * (absolute @ (sources.size + np.abs(self.shift)))
        rounding = (
            spread(self.rounding[None], absolute)[0] + arithmetic.gamma(terms) * reach + terms * arithmetic.tiny + noise
        )
        approximation = absolute @ self.approximation
        if others is not None:
            constant = constant + others.constant[0]
            rounding, approximation = rounding + others.rounding[0], approximation + others.approximation[0]
        up = 1 + 1e-12
        return Forms(coefficients[None], constant[None], approximation[None] * up, rounding[None] * up)


def read(
    layer: Layer,
    query: Forms,
    sources: Sources,
    rounding: Sequence[float] | None = None,
) -> tuple[Reads, Sources]:
    """What the neurons' heads give for queries (one token, a feature a neuron), and the exact neurons' intervals.

    Nothing is known of neurons whose query may leave the interval of their shape: with a causal mask, those that are
    fed by tokens that cannot be seen.

    `rounding` replaces that of each shape, where heads are not computed as their own proofs assume.
    """
    low, high, exact = layer.exact(sources)
    coefficients, constant, approximation, rounded = (array[0] for array in query.arrays)
    weight, bias = layer.merged.affine.weight, layer.merged.affine.bias
    in_scale, in_shift, out_scale, out_shift = (
        np.array([getattr(shape, name) for shape in layer.shapes])[layer.assigned]
        for name in ("in_scale", "in_shift", "out_scale", "out_shift")
    )
    degree = np.array([shape.degree or 0.0 for shape in layer.shapes])[layer.assigned]
    scales = np.array([shape.degree is not None for shape in layer.shapes])[layer.assigned]
    k = np.where(scales, _exponents(weight, bias, coefficients, constant, in_scale), 0)
    unit_in, unit_out = np.ldexp(1.0, k), np.ldexp(1.0, (degree * k).astype(int))
    scale = unit_in * in_scale

    difference = scale[:, None] * coefficients - weight
    off = scale * constant + unit_in * in_shift - bias
    size = np.abs(weight) @ sources.size + np.abs(bias) + np.abs(unit_in * in_shift) + np.abs(scale * constant)
    e_rounded = (
        scale * rounded
        + np.abs(difference @ sources.middle + off)
        + np.abs(difference) @ sources.radius
        + layer.merged.weight_error @ sources.size
        + layer.merged.bias_error
        + own_error(weight.shape[1]) * (np.abs(difference) @ sources.size)
        + 16 * FLOAT64.unit * size
    )
    e_approximate = scale * approximation
    e = e_rounded + e_approximate

    results = {name: np.zeros(layer.neurons) for name in ("approximation", "rounding")}
    reach = np.zeros((layer.neurons, layer.parts))
    inside = np.zeros(layer.neurons, bool)
    for number, shape in enumerate(layer.shapes):
        own = layer.assigned == number
        if not own.any():
            continue
        fits = (low - e >= unit_in * shape.low) & (high + e <= unit_in * shape.high) & (rounded < UNKNOWN)
        inside[own] = fits[own]
        slope = shape.slope * unit_out / unit_in
        own_rounding = shape.rounding if rounding is None else rounding[number]
        results["approximation"][own] = (unit_out * shape.exact + slope * e_approximate)[own]
        results["rounding"][own] = (unit_out * (own_rounding + shape.jump) + slope * e_rounded)[own]
        # beyond the shape's interval other keys may be seen: nothing is known of what is read there
        results["rounding"][own & ~fits] = UNKNOWN
        for part, most in enumerate(float(np.abs(part.values.astype(float)).max()) for part in shape.parts):
            reach[own, part] = np.where(fits[own], min(shape.reach[part], most) + own_rounding, UNKNOWN)
    reads = Reads(
        unit_out * out_scale, unit_out * out_shift, results["approximation"], results["rounding"], reach, inside
    )
    return reads, exact


def _exponents(
    weight: np.ndarray, bias: np.ndarray, coefficients: np.ndarray, constant: np.ndarray, in_scale: np.ndarray
) -> Int[np.ndarray, " neurons"]:
    """k with w = 2^k in_scale a, as nearly as may be; a wrong one costs nothing but the bound."""
    ours, theirs = np.abs(coefficients).max(axis=1), np.abs(weight).max(axis=1)
    flat = (ours == 0) | (theirs == 0)
    ours, theirs = np.where(flat, np.abs(constant), ours), np.where(flat, np.abs(bias), theirs)
    known = (ours > 0) & (theirs > 0)
    ratio = np.where(known, theirs, 1.0) / np.where(known, ours * in_scale, 1.0)
    return np.where(known, np.rint(np.log2(ratio)), 0).astype(int)
