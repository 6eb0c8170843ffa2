"""A head on one number: softmaxes in the same t whose readings add up to a function of it.

A neuron's query t, times the scale of its shape, stands for z = w . source + b, the target's pre-activation. If it is
off by e, then |read - phi(z)| <= |r - phi| + L e + J, with L the largest slope of phi and J the sum of its jumps, if it
has any: the head's own error (proof.heads.activation_head), and what phi makes of its argument's.

Each part asks with a number of its own. Where these are sums of the same products, computed t differ by up to 2 delta,
delta what one of them rounds by, and by what both are off else. That moves a part's read by at most
min(2 delta sup |r'|, max v - min v), for all parts but one, to whose t the rest refers.

The claim is a layer of neurons (proof.heads.neurons): ask number r parts + p is to be part p of neuron r. Which head it
is, is told by the keys that are not always out of reach: they must be the shape's anchors, number by number.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from jaxtyping import Bool, Float, Int

from anchorhead.heads.atom import Part
from anchorhead.lemmas import interval
from anchorhead.proof.arithmetic.affine_forms import Diagonal, Forms, Sources, distance, own_error
from anchorhead.proof.arithmetic.arithmetic import FLOAT64, UP, Arithmetic
from anchorhead.proof.arithmetic.readings import Keys, Readings, Refusal
from anchorhead.proof.arithmetic.rounding import sum_error
from anchorhead.proof.enclosures.ranges import range_of
from anchorhead.proof.heads.activation_head import ActivationHead
from anchorhead.proof.heads.neurons import Layer


@dataclass(frozen=True, eq=False)
class Others:
    """What is added to outputs beside neurons: constants, intervals around them, the sizes and numbers of terms."""

    constant: Float[np.ndarray, " outputs"]
    approximation: Float[np.ndarray, " outputs"]
    rounding: Float[np.ndarray, " outputs"]
    size: Float[np.ndarray, " outputs"]
    terms: Float[np.ndarray, " outputs"]

    @classmethod
    def bias(cls, bias: Float[np.ndarray, " outputs"]) -> Others:
        nothing = np.zeros(len(bias))
        return cls(bias, nothing, nothing, np.abs(bias), np.ones(len(bias)))

    def with_copy(self, values: Float[np.ndarray, " outputs"]) -> Others:
        """A softmax that always puts all its weight on one key, whose values these are."""
        return replace(self, constant=self.constant + values, size=self.size + np.abs(values), terms=self.terms + 1)

    def with_means(
        self,
        values: Float[np.ndarray, "outputs keys"],
        arithmetic: Arithmetic,
        error: Float[np.ndarray, "outputs keys"] | float = 0.0,
    ) -> Others:
        """A softmax of which nothing is known but the values of the keys that it may hear, up to an error."""
        moved = (np.abs(values) + error > 0).any(axis=1)  # a mean of zeros is 0
        if not moved.any():
            return self
        form = Forms.between(*(end[None] for end in interval.bound(values - error, values + error, arithmetic)))
        return replace(
            self,
            constant=self.constant + np.where(moved, form.constant[0], 0.0),
            approximation=(self.approximation + np.where(moved, form.approximation[0], 0.0)) * UP,
            size=self.size + (np.abs(values) + error).max(axis=1) * (1 + arithmetic.gamma(2 * values.shape[1] + 2)),
            terms=self.terms + moved * values.shape[1],
        )

    def alone(self, sources: int, arithmetic: Arithmetic) -> Forms:
        """One token of outputs that are nothing else, as forms of so many sources."""
        summed = sum_error(self.terms, self.size, arithmetic) + 1e-12 * self.size
        arrays = self.constant, self.approximation, self.rounding + summed
        return Forms(np.zeros((1, len(summed), sources)), *(array[None] for array in arrays))


@dataclass(frozen=True, eq=False)
class Reads:
    """What the heads of each neuron add up to: |scale_r read_r + shift_r - a_r| <= approximation_r + rounding_r.

    reach   for each neuron and part a bound on |what that head reads|
    inside  whether its query stays where its shape is proven; of other neurons nothing is known, all bounds are inf
    fits    whether its query t stands for the pre-activation, which is in_scale t + in_shift
    """

    scale: Float[np.ndarray, " neurons"]
    shift: Float[np.ndarray, " neurons"]
    approximation: Float[np.ndarray, " neurons"]
    rounding: Float[np.ndarray, " neurons"]
    reach: Float[np.ndarray, "neurons parts"]
    inside: Bool[np.ndarray, " neurons"]
    fits: Bool[np.ndarray, " neurons"]
    in_scale: Float[np.ndarray, " neurons"]
    in_shift: Float[np.ndarray, " neurons"]

    def known(self) -> Reads:
        """The same with bounds of 0 where nothing is known: these neurons are to be accounted for otherwise."""
        approximation, rounding = (np.where(self.inside, one, 0.0) for one in (self.approximation, self.rounding))
        reach = np.where(self.inside[:, None], self.reach, 0.0)
        return replace(self, approximation=approximation, rounding=rounding, reach=reach)

    def beside(
        self, others: Others, weight: Float[np.ndarray, "outputs neurons"], exact: Sources, arithmetic: Arithmetic
    ) -> Forms:
        """sum_r weight_r read_r and others, without what is not known; outputs that take nothing of any neuron stay as
        exact as they were."""
        weight = weight * self.inside
        mixed = self.known().combined(others, weight, exact, arithmetic)
        untouched = ~(weight != 0).any(axis=1) & (others.approximation == 0)
        return replace(mixed, rounding=np.where(untouched, others.rounding, mixed.rounding))

    def combined(
        self, others: Others, weight: Float[np.ndarray, "outputs neurons"], exact: Sources, arithmetic: Arithmetic
    ) -> Forms:
        """sum_r weight_r read_r and others, of one token, as forms over the exact a_r; sums in any order."""
        coefficients = weight / self.scale
        absolute = np.abs(coefficients)
        terms = (weight != 0).sum(axis=1) * self.reach.shape[1] + others.terms
        reach = np.abs(weight) @ self.reach.sum(axis=1) + others.size
        lost = self.rounding + own_error(len(self.scale)) * (exact.size + np.abs(self.shift))
        constant, approximation = others.constant - coefficients @ self.shift, absolute @ self.approximation
        rounding = absolute @ lost + sum_error(terms, reach, arithmetic) + others.rounding
        arrays = constant, (approximation + others.approximation) * UP, rounding * UP
        return Forms(*(array[None] for array in (coefficients, *arrays)))

    def apart(self, sources: Sources, arithmetic: Arithmetic, extra_terms: int) -> Diagonal:
        """The same with the identity for a weight: what each neuron reads, as a feature of its own."""
        coefficients = 1 / self.scale
        absolute = np.abs(coefficients)
        lost = self.rounding + own_error(len(self.scale)) * (sources.size + np.abs(self.shift))
        summed = sum_error(self.reach.shape[1] + extra_terms, self.reach.sum(axis=1), arithmetic)
        arrays = -coefficients * self.shift, absolute * self.approximation * UP, (absolute * lost + summed) * UP
        return Diagonal(Forms(coefficients[:, None, None], *(array[:, None] for array in arrays)))


def query_of(readings: Readings, layer: Layer) -> tuple[Forms, Float[np.ndarray, " neurons"]]:
    """The query of each neuron, a feature each, which all of its parts must share that ask for anything, and how far
    apart what the dtype makes of it may be in two of them."""
    kinds = readings.kinds.reshape(layer.neurons, layer.parts)
    lengths = np.array([len(shape.parts) for shape in layer.shapes])[layer.which]
    asks = ~np.array([keys.still for keys in readings.keys])[kinds] & (np.arange(layer.parts) < lengths[:, None])
    first = asks.argmax(axis=1)
    split = [array[0].reshape(layer.neurons, layer.parts, *array.shape[2:]) for array in readings.t.arrays]
    own = [array[np.arange(layer.neurons), first] for array in split]
    for array, mine in zip(split, own, strict=True):
        same = (array == mine[:, None]).reshape(layer.neurons, layer.parts, -1).all(axis=2)
        if not (same | ~asks).all():
            raise Refusal("the heads of one neuron ask different things")
    apart, sums = (array.reshape(layer.neurons, layer.parts) for array in (readings.apart, readings.sums))
    same = sums == sums[np.arange(layer.neurons), first][:, None]
    apart = np.where(same, apart, split[-2] + split[-1])
    alone = asks.sum(axis=1) < 2
    return Forms(*(array[None] for array in own)), np.where(alone, 0.0, 2 * np.where(asks, apart, 0.0).max(axis=1))


def read_entries(readings: Readings, layer: Layer) -> Int[np.ndarray, "neurons parts"]:
    """For each neuron and part the entry of the value that is read, where keys have values."""
    entries = np.zeros((layer.neurons, layer.parts), int)
    for part, shape_number, group, own in _kinds(readings, layer):
        shape, keys = layer.shapes[shape_number], readings.keys[group]
        if keys.values is None:
            raise Refusal("the values of a head depend on the input")
        if part < len(shape.parts):
            entries[own, part] = _column(keys, shape.parts[part], shape.queries)
        elif _speaks(keys, shape.queries):
            raise Refusal("a head that belongs to no part reads something")
    return entries


def read_places(readings: Readings, layer: Layer) -> Int[np.ndarray, "neurons parts anchors"]:
    """For each neuron, part and anchor which feature of its group it is; -1 where it is out of reach."""
    most = max(len(part) for shape in layer.shapes for part in shape.parts)
    places = np.full((layer.neurons, layer.parts, most), -1)
    for part, shape_number, group, own in _kinds(readings, layer):
        shape = layer.shapes[shape_number]
        if part < len(shape.parts):
            here, there = anchors_among(readings.keys[group], shape.parts[part], shape.queries)
            row = np.full(most, -1)
            row[there] = here
            places[own, part] = row
    return places


def _kinds(readings: Readings, layer: Layer) -> list[tuple[int, int, int, Bool[np.ndarray, " neurons"]]]:
    """Parts, shapes and kinds of keys that go together, with the neurons that have them."""
    kinds = readings.kinds.reshape(layer.neurons, layer.parts)
    found = []
    for part in range(layer.parts):
        pairs = {(int(k), int(s)) for k, s in zip(kinds[:, part], layer.which, strict=True)}
        found += [(part, s, k, (kinds[:, part] == k) & (layer.which == s)) for k, s in pairs]
    return found


def anchors_among(keys: Keys, part: Part, queries: tuple[float, float]) -> tuple[np.ndarray, np.ndarray]:
    """The numbers of the keys within reach, and of the part's anchors that they are."""
    own = Keys.of(part, keys.arithmetic)
    here, there = (np.flatnonzero(each.live(own, queries)) for each in (keys, own))
    here = here[np.lexsort((keys.offsets[here], keys.slopes[here]))]
    there = there[np.lexsort((own.offsets[there], own.slopes[there]))]
    names = ("slopes", "offsets")
    if not keys.plain[here].all() or not all(
        np.array_equal(getattr(keys, name)[here], getattr(own, name)[there]) for name in names
    ):
        raise Refusal("the keys of a head are not those of the shape that it is said to have")
    return here, there


def _column(keys: Keys, part: Part, queries: tuple[float, float]) -> int:
    """The entry of the value that this part of a shape is read into."""
    here, there = anchors_among(keys, part, queries)
    if keys.values is None or keys.values.error[here].any():
        raise Refusal("the values of a head are rounded")
    values, wanted = keys.values.values[here], part.values[there, 0].astype(np.float64)
    entries = np.flatnonzero((values != 0).any(axis=0))
    if not len(entries) and not wanted.any():
        return 0
    if len(entries) != 1 or not np.array_equal(values[:, entries[0]], wanted):
        raise Refusal("the values of a head are not those of the shape that it is said to have")
    return int(entries[0])


def _speaks(keys: Keys, queries: tuple[float, float]) -> bool:
    """Whether anything but zeros can be read here."""
    live = keys.live(keys, queries)
    return keys.values is None or bool((keys.values.values[live] != 0).any() or keys.values.error[live].any())


def bound(
    layer: Layer,
    query: Forms,
    sources: Sources,
    apart: Float[np.ndarray, " neurons"] | float = 0.0,
    rounding: Sequence[float] | None = None,
) -> tuple[Reads, Sources]:
    """What the neurons' heads give for queries (one token, a feature a neuron), and the exact neurons' intervals.

    A head whose query stands for something else than the neuron's pre-activation, as with a causal mask where inputs
    are hidden, still reads phi of what it asks: then the neuron's interval and that of phi are all that is compared.

    apart      how far from one another parts of a neuron may ask
    rounding   replaces that of each shape, where heads are not computed as their own proofs assume
    """
    low, high, exact = layer.exact(sources)
    coefficients, constant, approximation, rounded = (array[0] for array in query.arrays)
    weight, bias = layer.affine.weight, layer.affine.bias
    weight_error, bias_error = layer.affine.errors
    in_scale, in_shift, out_scale, out_shift = layer.of_shapes("in_scale", "in_shift", "out_scale", "out_shift")
    degree = np.array([shape.degree or 0.0 for shape in layer.shapes])[layer.which]
    k = exponents(layer, coefficients, constant)
    unit_in, unit_out = np.ldexp(1.0, k), np.ldexp(1.0, (degree * k).astype(int))
    scale = unit_in * in_scale

    difference = scale[:, None] * coefficients - weight
    off = scale * constant + unit_in * in_shift - bias
    size = np.abs(weight) @ sources.size + np.abs(bias) + np.abs(unit_in * in_shift) + np.abs(scale * constant)
    e_rounded = (
        scale * rounded + weight_error @ sources.size + bias_error + distance(difference, off, size, sources, 4.0)
    )
    e_approximate = scale * approximation
    e = e_rounded + e_approximate

    slack = 8 * FLOAT64.unit * (np.abs(scale) * query.size(sources)[0] + np.abs(unit_in * in_shift))
    t_low, t_high = (end[0] for end in query.ends(sources))
    asked_low, asked_high = scale * t_low + unit_in * in_shift - slack, scale * t_high + unit_in * in_shift + slack

    approximations, roundings = np.full(layer.neurons, np.inf), np.full(layer.neurons, np.inf)
    reach = np.full((layer.neurons, layer.parts), np.inf)
    inside, fitting = np.zeros(layer.neurons, bool), np.zeros(layer.neurons, bool)
    for number, shape in enumerate(layer.shapes):
        has = layer.which == number
        fits = has & (low - e >= unit_in * shape.low) & (high + e <= unit_in * shape.high)
        own = fits | has & (asked_low >= unit_in * shape.low) & (asked_high <= unit_in * shape.high)
        if not own.any():
            continue
        inside |= own
        fitting |= fits
        slope, moved = _moves(shape, e / unit_in)
        slope = slope * unit_out / unit_in
        own_rounding = shape.rounding if rounding is None else rounding[number]
        own_rounding = own_rounding + shape.moved(np.broadcast_to(apart, layer.neurons))
        approximations[fits] = (unit_out * shape.exact + slope * e_approximate)[fits]
        roundings[fits] = (unit_out * (own_rounding + shape.jump + moved) + slope * e_rounded)[fits]
        strange = own & ~fits
        if strange.any():
            approximations[strange] = unit_out[strange] * shape.exact + _apart(
                layer.shapes[number], asked_low[strange], asked_high[strange], exact.low[strange], exact.high[strange]
            )
            roundings[strange] = (unit_out * own_rounding)[strange]
        reach[own] = 0.0
        for part, most in enumerate(float(np.abs(part.values.astype(float)).max()) for part in shape.parts):
            reach[own, part] = min(shape.reach[part], most) + own_rounding[own]
    units = unit_out * out_scale, unit_out * out_shift
    return Reads(*units, approximations, roundings, reach, inside, fitting, scale, unit_in * in_shift), exact


def _moves(shape: ActivationHead, e: Float[np.ndarray, " neurons"]) -> tuple[np.ndarray, np.ndarray]:
    """L and J with |phi(x) - phi(y)| <= L |x - y| + J beside phi's jumps, the best for |x - y| <= e."""
    pairs = np.array(shape.pairs)
    best = (pairs[:, 0] * e[:, None] + pairs[:, 1]).argmin(axis=1)
    return pairs[best, 0], pairs[best, 1]


def _apart(
    shape: ActivationHead, asked_low: np.ndarray, asked_high: np.ndarray, low: np.ndarray, high: np.ndarray
) -> np.ndarray:
    """How far phi(s) may be from a neuron between low and high, for s between what is asked."""
    least, most = range_of(shape.activation, asked_low, asked_high)
    return np.maximum(np.maximum(most - low, high - least), 0.0) * (1 + 4 * FLOAT64.unit)


def exponents(
    layer: Layer,
    coefficients: Float[np.ndarray, "neurons sources"],
    constant: Float[np.ndarray, " neurons"],
) -> Int[np.ndarray, " neurons"]:
    """k with w = 2^k in_scale a for what is asked, a . source + constant, as nearly as may be; a wrong one costs
    nothing but the bound. 0 where phi does not scale."""
    (in_scale,), weight, bias = layer.of_shapes("in_scale"), layer.affine.weight, layer.affine.bias
    ours, theirs = np.abs(coefficients).max(axis=1), np.abs(weight).max(axis=1)
    flat = (ours == 0) | (theirs == 0)
    ours, theirs = np.where(flat, np.abs(constant), ours), np.where(flat, np.abs(bias), theirs)
    known = (ours > 0) & (theirs > 0) & np.array([shape.degree is not None for shape in layer.shapes])[layer.which]
    ratio = np.where(known, theirs, 1.0) / np.where(known, ours * in_scale, 1.0)
    return np.where(known, np.rint(np.log2(ratio)), 0).astype(int)
