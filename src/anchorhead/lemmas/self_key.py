"""Softmaxes in which the token is a key itself: activations phi(s_r), and gated neurons phi(s_r) u_r.

build   heads.self_keys: the anchors of a head; OwnPart: one softmax of it; constructions.layouts.self_key_layout
read    a neuron's heads all ask with one number s^, up to the dtype's own rounding. Of the keys within reach, one is
        the token's own, the others are registers, and all are those of the head, number by number. What the token
        shows, v^, is its own dot product, and meant to be factor s + constant, or factor u
bound   for B, L and M of lemmas.activations. What is proven of a head holds for every way in which its operations may
        round, so also for one in which the own value is factor s^ exactly. A computed read is
        sum_k w_k v_k (1 + theta_k) with |theta_k| <= gamma and sum w_k <= 1 + gamma: with another own value v^ it moves
        by at most (1 + gamma) |v^ - factor s^|. Hence, with rho = |s^ - s| and e = |v^ - (factor s + constant)|,

            |sum of a neuron's reads - phi(s)| <= B max(1, |s^|) + L rho + (1 + gamma) sum_parts (e + |factor| rho)

        because what passes by (skip s + bias) is one softmax more, which copies. Gated, with v^ against factor u,

            |sum of a neuron's reads - phi(s) u| <= B max(1, |s^|) |u| + L rho |u| + (1 + gamma) sum_parts e

        and what products with a tiny u lose. Each part asks with a dot product of its own, in an order of its own: two
        computed s^ differ by up to 2 delta, delta what one rounds by. That moves factor w(s^) u by at most
        min(2 delta sup |factor w'|, |factor|) |u|, for all parts but one, to whose s^ the rest refers.
        A read is no larger than the largest value that it may hear
run     convert.attention_only.attend
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np
from jaxtyping import Float, Int

from anchorhead.heads.atom import Part
from anchorhead.language.expressions.expression import Expression
from anchorhead.language.targets.mlp import Affine
from anchorhead.lemmas import scalar_head
from anchorhead.lemmas.activations import Activations, Numbers, Steepness, Together, Vector, scale_of
from anchorhead.lemmas.known import Known
from anchorhead.lemmas.scalar_head import Others
from anchorhead.network import Attention
from anchorhead.proof.arithmetic.affine_forms import Forms, Sources, distance, mapped
from anchorhead.proof.arithmetic.arithmetic import FLOAT64, UP, Arithmetic
from anchorhead.proof.arithmetic.readings import Constants, Keys, Readings, Refusal, constants
from anchorhead.proof.arithmetic.rounding import exact_factor
from anchorhead.proof.enclosures.analytic import lipschitz_bound
from anchorhead.proof.enclosures.ranges import range_of
from anchorhead.proof.heads.neurons import exact_forms


@dataclass(frozen=True)
class OwnPart:
    """One softmax a neuron: slopes, offsets and values of registers; own: slope, offset and factor of the token's key.

    Without an own key the token's weight is 0. constant: added to the token's own value.
    """

    slopes: tuple[float, ...]
    offsets: tuple[float, ...]
    values: tuple[float, ...]
    own: tuple[float, float, float] | None
    name: str
    constant: float = 0.0

    @property
    def factor(self) -> float:
        return 0.0 if self.own is None else self.own[2]

    @property
    def largest(self) -> float:
        """Of the registers' values."""
        return max(map(abs, self.values), default=0.0)

    def keys(self) -> Part:
        """All keys, with two entries of a value each: what a register holds, and whether it is the token's own key."""
        rows = [(a, g, v, 0.0) for a, g, v in zip(self.slopes, self.offsets, self.values, strict=True)]
        rows += [] if self.own is None else [(*self.own[:2], 0.0, 1.0)]
        slopes, offsets, *values = zip(*rows, strict=True)
        return Part.of(slopes, offsets, np.stack(values, axis=1), "float64")


@lru_cache(maxsize=64)
def speed_of(part: OwnPart, low: float, high: float) -> float:
    """A bound on |factor w'(t)| for t between low and high, w the weight of the token's own key."""
    keys = part.keys()
    return lipschitz_bound([replace(keys, values=part.factor * keys.values[:, 1:])], low, high)


@dataclass(frozen=True, eq=False)
class SelfKeys:
    """The claim a_r = phi(s_r), s = asks(source), or phi(s_r) u_r, u = carries(source).

    Each of n tokens has as many neurons, those of the first token first; its heads are part p of neuron r after one
    another, all neurons of the first part first.

    low, high   between these the head is proven
    underflow   what products with a tiny u may lose besides
    """

    function: Expression
    parts: tuple[OwnPart, ...]
    asks: Affine
    carries: Affine | None
    low: float
    high: float
    phi: Steepness
    underflow: float = 0.0

    def after(self, sources: Sources) -> Sources:
        """Between what the exact a_r lie."""
        ends = [end[0] for end in exact_forms(self.asks, sources).ends(sources)]
        least, most = range_of(self.function, *ends)
        if self.carries is None:
            return Sources(least, most)
        below, above = (end[0] for end in exact_forms(self.carries, sources).ends(sources))
        corners = np.stack([least * below, least * above, most * below, most * above])
        room = np.abs(corners).max(axis=0) * 4 * FLOAT64.unit
        return Sources(corners.min(axis=0) - room, corners.max(axis=0) + room)


@dataclass(frozen=True, eq=False)
class Asked:
    """What the heads of a token's neurons ask, and what the token shows to each part: forms (1, neurons).

    asking   the parts whose weights depend on what is asked
    """

    t: Forms
    asking: tuple[int, ...]
    shown: tuple[Forms, ...]
    weight: Float[np.ndarray, "outputs neurons"]


def at(known: Known, layer: Attention, token: int, readings: Readings | None, others: Others) -> tuple[Forms, Sources]:
    """What a token gets, over the exact values of all neurons, and these."""
    claim = known.claim(SelfKeys)
    if readings is None or known.sources.own:
        raise Refusal("its heads do not ask in one number each")
    tokens, (count, left) = len(known.inputs.constant), divmod(layer.heads, len(claim.parts))
    seen, _ = known.visible(layer, token)
    if left or claim.asks.outputs != count * tokens or len(seen.constant) != 1 or layer.grid is not None:
        raise Refusal(f"{layer.heads} heads on {tokens} tokens for {claim.asks.outputs} neurons with keys of their own")
    rows = slice(token * count, (token + 1) * count)
    asked = read(claim, layer, readings, known, token)
    activations = bound(claim, asked, rows, known.sources, known.arithmetic)
    exact = claim.after(known.sources)
    return _outputs(asked.weight, activations, rows, exact, others, known.arithmetic), exact


def read(claim: SelfKeys, layer: Attention, readings: Readings, known: Known, token: int) -> Asked:
    """What the heads of a token ask, if their keys and values are the claim's."""
    parts, arithmetic = len(claim.parts), known.arithmetic
    if layer.value.shape[1] != 1:
        raise Refusal("a head shows more than one value")
    t = readings.t.reshaped(parts, readings.t.constant.size // parts)
    heads = np.broadcast_to(layer.value[:, 0], (layer.heads, layer.width))
    told = constants(heads, known.visible(layer, token)[1], arithmetic)
    kinds, asking = readings.kinds.reshape(parts, -1), []
    for number, part in enumerate(claim.parts):
        wanted = part.keys()
        for kind in np.unique(kinds[number]).tolist():
            heads_of = number * kinds.shape[1] + np.flatnonzero(kinds[number] == kind)
            _require_values(readings.keys[kind], wanted, told, heads_of, (claim.low, claim.high))
        asking += [number] if not all(readings.keys[kind].still for kind in kinds[number]) else []
    asking = asking or [0]
    if any((array[asking] != array[asking[:1]]).any() for array in t.arrays):
        raise Refusal("the heads of one neuron ask different things")
    shown = mapped(heads, None, known.inputs.token(token), known.sources, arithmetic).reshaped(*t.constant.shape)
    weight = layer.output[..., 0].astype(np.float64).reshape(parts, -1, layer.outputs)
    if (weight != weight[:1]).any():
        raise Refusal("the parts of one neuron do not add up")
    return Asked(t.token(asking[0]), tuple(asking), tuple(shown.token(number) for number in range(parts)), weight[0].T)


def _require_values(
    keys: Keys, part: Part, told: Constants, heads: Int[np.ndarray, " some"], queries: tuple[float, float]
) -> None:
    """The keys within reach are the part's, the first of all being the token's own, and registers hold its values."""
    here, there = scalar_head.anchors_among(keys, part, queries)
    values, own = part.values[there].T
    if ((here == 0) != (own == 1)).any():
        raise Refusal("a token's own key is not the one that it is said to be")
    registers = here[here > 0] - 1
    stored, error = (array[np.ix_(registers, heads)] for array in (told.values, told.error))
    if error.any() or (stored != values[here > 0, None]).any():
        raise Refusal("the values of a head are not those that it is said to have")


def bound(claim: SelfKeys, asked: Asked, rows: slice, sources: Sources, arithmetic: Arithmetic) -> Activations:
    """What is known of a token's neurons, which are these rows of the claim."""
    low, high = asked.t.ends(sources)
    if not (claim.low <= low.min() and high.max() <= claim.high):
        raise Refusal(f"pre-activations from {low.min():.6g} to {high.max():.6g} leave what the head is proven for")
    meant = exact_forms(claim.asks, sources).features(rows)
    s = Numbers.of(asked.t, sources, _apart(asked.t, meant, 1.0, 0.0, sources))
    u, carried = None, meant
    if claim.carries is not None:
        carried = exact_forms(claim.carries, sources).features(rows)
        u = Numbers.of(carried, sources)
    rates = claim.phi.lipschitz * s.error + _asked_apart(claim, asked)
    moved = rates * (1.0 if u is None else u.magnitude) + claim.underflow
    reads, root = [], len(s.magnitude) ** 0.5
    for part, shown in zip(claim.parts, asked.shown, strict=True):
        more = 1 + arithmetic.gamma(2 * len(part.slopes) + 8)
        wrong, each = np.zeros(1), np.full(len(moved), part.largest)
        if part.own is not None:
            wrong = _apart(shown, carried, part.factor, part.constant, sources)
            wrong = wrong + (abs(part.factor) * s.error if u is None else 0.0)
            each = np.maximum(each, shown.size(sources)[0])
        moved = moved + more * wrong
        length = abs(part.factor) * (s if u is None else u).length + float(np.linalg.norm(wrong))
        whole = root * (part.largest + abs(part.constant)) + length
        reads.append(Together(each, whole, 2).times(more * UP))
    return Activations(scale_of(s, u).times(claim.phi.heads), moved * UP, tuple(reads))


def _asked_apart(claim: SelfKeys, asked: Asked) -> Vector:
    """What parts add that ask with computed numbers of their own, divided by |u|."""
    apart = 2 * asked.t.rounding[0]
    if len(asked.asking) < 2 or not apart.any():
        return np.zeros(len(apart))
    parts = [claim.parts[number] for number in asked.asking]
    if claim.carries is None or any(part.largest > 0 for part in claim.parts):
        raise Refusal("several parts of a neuron ask, and do not carry its value alone")
    speeds = sorted((speed_of(part, claim.low, claim.high), abs(part.factor)) for part in parts)
    return sum((np.minimum(speed * apart, most) for speed, most in speeds[:-1]), np.zeros(len(apart))) * UP


def _apart(computed: Forms, meant: Forms, factor: float, constant: float, sources: Sources) -> Vector:
    """How far computed features may be from factor times what is meant, and a constant; nothing but their own error
    where they are the same number by number."""
    difference = computed.coefficients - factor * meant.coefficients
    off = computed.constant - (factor * meant.constant + constant)
    size = abs(factor) * (sources.sizes(np.abs(meant.coefficients)) + np.abs(meant.constant)) + abs(constant)
    # factor times a weight is rounded here, once, and so is what is added to it
    units = 0.0 if exact_factor(np.float64(factor)) and constant == 0 else 2.0
    wrong = distance(difference, off, size, sources, units) + abs(factor) * meant.error + computed.error
    return wrong[0] * UP


def _outputs(
    weight: Float[np.ndarray, "outputs neurons"],
    neurons: Activations,
    rows: slice,
    exact: Sources,
    others: Others,
    arithmetic: Arithmetic,
) -> Forms:
    """One token of outputs, as forms of all neurons' exact values; what takes nothing of any is as exact as before."""
    size = np.abs(weight)
    coefficients = np.zeros((1, len(weight), exact.count))
    coefficients[0, :, rows] = weight
    approximation = neurons.off.weighed(size) + others.approximation
    rounding = size @ neurons.moved + neurons.rounding(size, others.size, others.terms, arithmetic)
    untouched = ~weight.any(axis=1) & (others.approximation == 0)
    rounding = np.where(untouched, 0.0, rounding * UP) + others.rounding
    return Forms(coefficients, others.constant[None], approximation[None], rounding[None])
