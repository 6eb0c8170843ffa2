"""A layer of an attention-only model written out as a network, for any number of tokens: an Embed, then one Attention.

One token is enough. The Embed makes every token x = [z, constants] of one z alone, registers are constants, and the
mask lets a token see itself and the registers: what leaves token i is a function of z_i, the same for all i and for any
number of them. The sums that compute it are in any order, so also in those that other tokens bring about.

The program is down phi(asks z), or, gated, down (phi(asks z) * carries z). For every entry that is no 0 or 1 of such a
network it is said what it is: queries [s, 1], s = asks z, keys [slope, offset] as stored, values of registers as
stored, and for the token's own value the row v of a part, which is about F asks + constant, or F carries. Parts are
heads p n to p n + n - 1 of n neurons; keys that weigh nothing wherever s is are left out. A part of which the token
alone is heard copies: it is what passes a neuron by (skip s + constant).

Lemma. Let s^ be computed, rho = |s^ - s|, and v^ the own value of part p, computed as a dot product of its own, with
e_p >= |v^ - (F s + constant)|, or, gated, >= |v^ - F u|. If the head is within B max(1, |s|) (self_key), then

    |sum of a neuron's reads - phi(s)| <= B max(1, |s^|) + L rho + sum_p (1 + gamma) (e_p + |F_p| rho),

and if parts are within B max(1, |g|) |u| (gate, `lean`), all but one asked with another s^, 2 rho away at most, then

    |sum of a neuron's reads - phi(g) u| <= (B max(1, |g^|) + L rho + sum'_p min(2 rho sup |F_p w_p'|, |F_p|)) |u|
                                            + sum_p (1 + gamma) e_p + what underflows,

sum' over all parts but the fastest. Proof. What is shown of a head holds however its operations round, so also where
the own value is F s^, or F u, and skip s^ + constant, exactly. A computed read is sum_k w_k v_k (1 + theta_k) with
sum_k |w_k (1 + theta_k)| <= 1 + gamma: another own value moves it by (1 + gamma) |v^ - F s^| at most, and
|F s^ - F s| <= |F| rho. phi moves by L rho. The exact read F w(g) u of a part that is asked with another g moves by its
slope, and by no more than |F u|, as 0 <= w <= 1; what it rounds by there is counted with the heads (`lean`).

Reads are at most (1 + gamma) the largest of what is read, and the output is one sum of all of them and a bias.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from flint import arb

from anchorhead.verify.balls import above, below, hull, precision
from anchorhead.verify.certificate import Certificate
from anchorhead.verify.context import Step
from anchorhead.verify.errors import NotVerified, number, require
from anchorhead.verify.folders.activations import ACTIVATIONS, Activation
from anchorhead.verify.folders.layer import ROOM, Map, Norm, Range, length, range_of
from anchorhead.verify.grammar import Attention, Network
from anchorhead.verify.programs.expressions import Expression, Undecided
from anchorhead.verify.programs.program import Affine, Apply, Input, Program
from anchorhead.verify.rounding import OWN_UNIT, Arithmetic, arithmetic_of, power_of_two
from anchorhead.verify.scalar.part import silent
from anchorhead.verify.scalar.softmax import Softmax
from anchorhead.verify.self_keys.gate import GatePart, underflow, verify_gate
from anchorhead.verify.self_keys.self_key import SelfKey, stored, verify_self_key

CELLS = 20_000
CLOSE = 1.001
"""How far above its value at a point the largest slope may end."""


@dataclass(frozen=True, eq=False)
class Rows(Map):
    """A map that has a bias: every dot product has a term for it."""

    bias: np.ndarray


@dataclass(frozen=True, eq=False)
class Target:
    """What the program says: down phi(asks z), or, gated, down (phi(asks z) * carries z)."""

    asks: Rows
    carries: Rows | None
    down: Rows
    activation: Activation


@dataclass(frozen=True, eq=False)
class Part:
    """Heads of all neurons with the same keys: those that are heard, the token's own apart; `value` makes what it
    shows, about factor s + constant, or factor u."""

    slopes: list[float]
    offsets: list[float]
    values: list[float]
    own: tuple[float, float] | None
    value: Rows
    factor: float
    constant: float

    @property
    def largest(self) -> float:
        return max(map(abs, self.values), default=0.0)


def verify_written_out(network: Network, program: Program, certificate: Certificate) -> tuple[float, Step]:
    """What follows, at most what is stated, and by which lemma; NotVerified where the bound does not follow."""
    model = arithmetic_of(network.dtype)
    require(certificate.evaluations == ("plain",), "a layer that is written out has no other evaluation than 'plain'")
    require(len(certificate.conditions) == 1, "tokens that are not said to be what a norm puts out")
    norm, target = norm_of(certificate.conditions[0]), target_of(program)
    s = _room(range_of(target.asks, norm, model), target.asks, model)
    parts = parts_of(network, target, s, model)
    reached, rest = _errors(target, parts, s, norm, model)
    require(bool((rest < certificate.bound).all()), f"rounding alone may be {rest.max():.6g}, more than is stated")
    left = (certificate.bound * (2 - ROOM) - rest) / np.where(reached > 0, reached, math.inf)
    within = float(np.where(reached > 0, left, math.inf).min())
    require(math.isfinite(within), "a layer of which nothing leaves")
    _verify_heads(target, parts, s, within, model)
    found = float((rest + within * reached).max())
    require(found <= certificate.bound, f"only {found:.6g} could be shown")
    kind = "self key" if target.carries is None else "gated pair"
    words = f"{len(s.magnitude)} neurons, heads within {within:.3g} max(1, |s|) for s in [{s.low:.4g}, {s.high:.4g}]"
    return found, Step("layer 1 (Attention)", kind, words, within)


def norm_of(condition: Mapping[str, Any]) -> Norm:
    """What the certificate says of tokens: it is the claim, and no more is known of the norm."""
    fields = {"kind", "norm", "scale", "shift", "slack", "rounding"}
    good = set(condition) == fields and condition["kind"] == "image of a norm"
    require(good and condition["norm"] in ("LayerNorm", "RMSNorm"), "a condition that is none on what a norm puts out")
    good = all(isinstance(condition[name], list) for name in ("scale", "shift"))
    require(good, "the condition on what a norm puts out has no scale or shift")
    scale, shift = (np.array([number(x, name) for x in condition[name]]) for name in ("scale", "shift"))
    slack, rounding = (number(condition[name], name) for name in ("slack", "rounding"))
    good = len(scale) == len(shift) > 0 and slack >= 0 and rounding >= 0
    require(good, "the condition on what a norm puts out is damaged")
    return Norm(scale, shift, condition["norm"] == "LayerNorm", slack, rounding)


def target_of(program: Program) -> Target:
    """Input, asks, perhaps carries, phi, down: these steps and no others."""
    given, *maps, apply, last = program.steps if len(program.steps) in (4, 5) else (None,) * 4
    places, other = tuple(range(1, len(program.steps) - 2)), NotVerified("a program that is no feed-forward layer")
    if not isinstance(given, Input) or not isinstance(apply, Apply) or given.tokens is not None:
        raise other
    if program.outputs != (len(program.steps) - 1,) or apply.of != places or len(apply.functions) != 1:
        raise other
    asks, *carries = (_map(one, 0) for one in maps)
    down, (function,) = _map(last, len(program.steps) - 2), apply.functions
    neurons, inputs = asks.weight.shape
    fits = all(one.weight.shape == asks.weight.shape for one in carries) and inputs == len(given.features)
    fits = fits and len(apply.which) == neurons == down.weight.shape[1]
    if not fits or not isinstance(function, Expression):
        raise NotVerified("the maps of the program do not fit")
    phi = function if not carries else _without(function, apply.arguments[1])
    require(phi.variables == (apply.arguments[0],) == ("x",), "a function of something else than a pre-activation")
    found = [one for one in ACTIVATIONS.values() if one.function.key == phi.key]
    require(bool(found), "an activation that is not known")
    return Target(asks, carries[0] if carries else None, down, found[0])


def _map(step: Any, of: int) -> Rows:
    good = isinstance(step, Affine) and step.of == (of,) and step.weights[0].ndim == 2
    good = good and step.radii[0] is None and step.bias_radius is None
    require(good and step.bias.shape == (1, len(step.weights[0])), "a map of the program that is not one of each token")
    return Rows(step.weights[0], step.bias[0])


def _without(function: Expression, name: str) -> Expression:
    """phi of phi(x) u: a product of which one factor is u, of which no other knows."""
    op, data, places = function.nodes[-1]
    rest = tuple(one for one in places if function.nodes[one][:2] != ("variable", name))
    require(op == "mul" and data is None and len(rest) == len(places) - 1 > 0, "a gated neuron that is no product")
    if len(rest) == 1:
        return function.part(rest[0])
    return Expression.of((*function.nodes[:-1], ("mul", None, rest))).part(-1)


def parts_of(network: Network, target: Target, s: Range, model: Arithmetic) -> list[Part]:
    """Read off the weights, of which every number counts: all others are 0 or 1, as the layout has them."""
    embed, layers = network.embed, network.layers
    good = len(layers) == 1 and isinstance(layers[0], Attention) and network.output == "input" and network.token_axis
    good = good and layers[0].mask == "self+registers" and layers[0].skip is None and layers[0].grid is None
    good = good and not len(embed.states) and embed.source is None and len(embed.weight) == len(embed.bias) == 1
    require(good, "a network of any number of tokens is verified where it is one attention of registers and oneself")
    layer, (size, d), (n, _) = layers[0], embed.weight.shape[1:], target.asks.weight.shape
    constants, registers, heads = embed.bias[0], embed.registers, layer.heads
    require(heads % n == 0 and d < size and len(registers) > 0, f"{heads} heads for {n} neurons")
    plain = np.array_equal(embed.weight[0], np.eye(size, d)) and not constants[:d].any() and constants[d] == 1
    require(plain and not registers[:, : d + 1].any(), "tokens that are not [z, 1, constants], registers that are")
    require(layer.query.shape[1] == 2 and layer.value.shape[1] == 1, "queries that are not [s, 1], or several values")
    asked = layer.query.reshape(heads // n, n, 2, size)
    same = (asked[:, :, 0, :d] == target.asks.weight).all() and (asked[:, :, 0, d] == target.asks.bias).all()
    require(same and not asked[:, :, 0, d + 1 :].any(), "queries that are not the program's pre-activations")
    require(bool((asked[:, :, 1] == (np.arange(size) == d)).all()), "queries that are not [s, 1]")
    weight = layer.output[..., 0].reshape(heads // n, n, -1)
    bias = np.zeros(layer.outputs) if layer.bias is None else layer.bias
    same = weight.shape[2] == len(target.down.weight) and (weight == target.down.weight.T).all()
    require(same and np.array_equal(bias, target.down.bias), "another output map than the program's")
    keys = np.broadcast_to(layer.key, (heads, 2, size)).reshape(heads // n, n, 2, size)
    values = np.broadcast_to(layer.value[:, 0], (heads, size)).reshape(heads // n, n, size)
    found = []
    for key, value in zip(keys, values, strict=True):
        slope, offset = (_picked(key[:, row, d + 1 :]) + d + 1 for row in range(2))
        held = _picked(value[:, d + 1 :]) + d + 1
        require(not key[..., : d + 1].any() and constants[held] == 0, "keys of z, or a token with a register's value")
        columns = np.concatenate([constants[None], registers])[:, [slope, offset, held]].T
        found.append(_part(columns, Rows(value[:, :d], value[:, d]), target, s, model))
    return found


def _picked(rows: np.ndarray) -> int:
    """The column of which all rows take 1, and nothing of any other."""
    column = int(rows[0].argmax())
    require(bool((rows == np.eye(rows.shape[1])[column]).all()), "a map that is not said to be one that picks")
    return column


def _part(columns: np.ndarray, value: Rows, target: Target, s: Range, model: Arithmetic) -> Part:
    """Slopes, offsets and values of keys that are heard; of those that are given the first is the token's own."""
    slopes, offsets, values = columns
    far = max(-s.low, s.high)
    require(bool((np.abs(slopes) * far + np.abs(offsets)).max() < model.largest / 4), "a logit may overflow")
    loud = ~silent(stored(slopes, offsets, values, None, model), [(s.low, s.high)], model)
    own = (float(slopes[0]), float(offsets[0])) if loud[0] else None
    heard = columns[:, 1:][:, loud[1:]]
    tell = target.asks if target.carries is None else target.carries
    unit = float(np.abs(tell.weight).max()) or 1.0
    scaled = tell.weight / unit
    dtype = np.dtype(model.dtype).type
    factor = float(dtype((value.weight / unit * scaled).sum() / max(float((scaled**2).sum()), 1e-300))) if own else 0.0
    constant = 0.0
    if own and not heard.size and target.carries is None:
        constant = float(dtype((value.bias - factor * tell.bias).mean()))
    require(math.isfinite(factor) and math.isfinite(constant), "a token whose own value is no multiple of the neuron")
    return Part(heard[0].tolist(), heard[1].tolist(), heard[2].tolist(), own, value, factor, constant)


def _room(found: Range, linear: Rows, model: Arithmetic) -> Range:
    """Nothing overflows on the way to a dot product."""
    terms = linear.weight.shape[1] + 1
    require(bool((found.rounding / model.gamma(terms)).max() < model.largest / 4), "a dot product may overflow")
    return found


def _apart(part: Part, shown: Range, meant: Rows, known: Range, norm: Norm, model: Arithmetic) -> np.ndarray:
    """e_p: of the row that is stored from factor times what is meant, and what the row's own dot product rounds by.
    Here factor times a weight rounds once, unless the factor is a power of two, and a constant is taken off: errors of
    what products add up to, by which `known` is rounded. Differences of what is equal are 0."""
    off = Rows(
        part.value.weight - part.factor * meant.weight, part.value.bias - part.factor * meant.bias - part.constant
    )
    products = known.rounding / model.gamma(meant.weight.shape[1] + 1)
    exactly = power_of_two(np.array(part.factor)) and part.constant == 0
    own = 0.0 if exactly else 2 * OWN_UNIT * (abs(part.factor) * products + abs(part.constant))
    rounded = shown.rounding if part.value.weight.any() else 0.0  # a constant is one product with 1
    return (range_of(off, norm, model).magnitude + own + rounded) * ROOM


def _errors(target: Target, parts: list[Part], s: Range, norm: Norm, model: Arithmetic) -> tuple[np.ndarray, ...]:
    """For every output what an error of 1 of the heads adds, and what all else does."""
    sizes, n = np.abs(target.down.weight), len(s.magnitude)
    most, together = np.maximum(s.magnitude, 1.0), math.sqrt(n + s.length**2)
    steep, _ = target.activation.on(float(s.magnitude.max()))
    moved, meant, u = steep * s.rounding, target.asks, None
    reached = np.minimum(sizes @ most, length(sizes) * together)
    if target.carries is not None:
        meant, u = target.carries, _room(range_of(target.carries, norm, model), target.carries, model)
        moved = (moved + _asked_apart(parts, s, model)) * u.magnitude + underflow(_gates(parts), model.dtype)
        reached = np.minimum(sizes @ (most * u.magnitude), sizes.max(axis=1) * together * u.length)
    read, held = np.abs(target.down.bias), 0.0
    for part in parts:
        more, each, whole = 1 + float(model.gamma(2 * len(part.slopes) + 8)), np.full(n, part.largest), 0.0
        shown = _room(range_of(part.value, norm, model), part.value, model)
        if part.own is not None:
            wrong = _apart(part, shown, meant, s if u is None else u, norm, model)
            moved = moved + more * (wrong + (abs(part.factor) * s.rounding if u is None else 0.0))
            each, whole = np.maximum(each, shown.magnitude), shown.length
        whole = math.sqrt(n) * part.largest + whole
        read = read + more * np.minimum(sizes @ each, length(sizes) * whole)
        held += float(each.sum())
    require(float(read.max()) < model.largest / 4, "an output may overflow")
    count = len(parts) * n + 1
    lost = 4 * model.tiny * (count * (1 + float(sizes.max())) + held)
    return reached * ROOM, (sizes @ moved + float(model.gamma(count)) * read + lost) * ROOM


def _gates(parts: list[Part]) -> list[GatePart]:
    """The parts of gated neurons: their own key has logit 0, registers hold nothing."""
    for part in parts:
        require(part.own == (0.0, 0.0) and not any(part.values), "a gated neuron of other keys than gates have")
    return [GatePart(part.slopes, part.offsets, part.factor) for part in parts]


def _asked_apart(parts: list[Part], s: Range, model: Arithmetic) -> np.ndarray:
    """What parts add that ask with sums of their own, over |u|: all but the fastest, to whose s^ the rest refers."""
    gates = _gates(parts)
    speeds = sorted((fastest(one.softmax(s.low, s.high, model), s.low, s.high), abs(one.factor)) for one in gates)
    return sum((np.minimum(2 * s.rounding * speed, most) for speed, most in speeds[:-1]), np.zeros(len(s.rounding)))


def fastest(softmax: Softmax, low: float, high: float) -> float:
    """A bound on |dr/dt| for t between low and high: cells are halved until it is close to a slope at a point."""
    keys = np.arange(softmax.count)

    def slope(t: arb) -> arb:
        try:
            return abs(softmax.slope(t, keys))
        except Undecided:
            return arb("inf")

    with precision():
        cells = [(-above(slope(hull(low, high))), low, high)]
        floor = 0.0
        for _ in range(CELLS):
            most, a, b = cells[0]
            middle = (a + b) / 2
            floor = max(floor, below(slope(arb(middle))))
            if -most <= CLOSE * floor or not a < middle < b:
                break
            heapq.heapreplace(cells, (-above(slope(hull(a, middle))), a, middle))
            heapq.heappush(cells, (-above(slope(hull(middle, b))), middle, b))
    return -cells[0][0]


def _verify_heads(target: Target, parts: list[Part], s: Range, within: float, model: Arithmetic) -> None:
    function, ends = target.activation.function, (s.low, s.high, model.dtype, within)
    if target.carries is not None:
        verify_gate(_gates(parts), function, *ends, lean=2 * float(s.rounding.max()) if len(parts) > 1 else 0.0)
        return
    asking = [part for part in parts if part.slopes]
    passing = [part for part in parts if not part.slopes]
    if len(asking) != 1 or len(passing) > 1:
        raise NotVerified(f"neurons of {len(asking)} heads with registers, and {len(passing)} without")
    (head,) = asking
    slopes, offsets, values = head.slopes, head.offsets, head.values
    if head.own is not None:
        slopes, offsets, values = [*slopes, head.own[0]], [*offsets, head.own[1]], [*values, head.factor]
    skip, bias = next(((part.factor, part.constant) for part in passing), (0.0, 0.0))
    verify_self_key(SelfKey(slopes, offsets, values, head.own is not None, skip, bias), None, function, *ends)
