"""The largest error of a converted network that a search finds, to hold against the bound that a proof gives.

Errors live where activations bend and where anchors hand over to one another, and add up where many neurons do so at
once. Inputs are taken at random, from the corners of the box (those at which a neuron's pre-activation is largest or
smallest among them), and from segments between such inputs, at the place where a neuron's pre-activation meets a kink
or a crossing of its anchors, or misses it by 10^-k. From the worst of them the search climbs on
(proof.search.callable_search).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from flint import arb, arb_mat
from jaxtyping import Float, Int

from anchorhead.domain import Box
from anchorhead.errors import AnchorheadError
from anchorhead.language.analysis.pieces import analyse
from anchorhead.language.expressions.expression import Expression
from anchorhead.language.expressions.precision import precision
from anchorhead.language.merge import merged
from anchorhead.language.targets.mlp import IDENTITY, Affine, Mlp
from anchorhead.network import Network
from anchorhead.proof.arithmetic.affine_forms import Sources
from anchorhead.proof.enclosures.balls import crossings, lower
from anchorhead.proof.heads.activation_head import ActivationHead
from anchorhead.proof.heads.neurons import Layer
from anchorhead.proof.search.callable_search import EACH, Search

EVALUATIONS = 20_000
MAX_PRODUCTS = {"network": 2e9, "exact": 3e8, "balls": 3e5}
"""How many products the search may spend on the network, on targets in extended precision, and on one in balls."""
MAX_NUMBERS = 2**21
"""How many numbers of one layer a batch may hold."""
CLIMBERS, FIRST = 16, 0.01
"""How many climb, and with steps of which size, as a part of the box."""
BISECTIONS = 60
PRECISION = 256


@dataclass(frozen=True, eq=False)
class Worst:
    """The largest error found, its input, the number of its output entry (all tokens in a row), and how many inputs
    were compared."""

    error: float
    x: Float[np.ndarray, "..."]
    output: int
    evaluations: int


def worst_error(network: Network, target: Mlp, on: Box, seed: int = 0, evaluations: int = EVALUATIONS) -> Worst:
    """The largest |network(x) - target(x)| found over the box, x in float64.

    The target is computed in extended precision where its activations are relu and abs. Others are in float64, and so
    are the matrices of large networks while the search is on: an error is then uncertain by the rounding of one
    evaluation. The error returned is therefore computed again at the worst input, in balls, and is a lower bound of
    the true one; of networks with more than 300,000 weights it is what extended precision gives.
    """
    hunt = _Hunt(network, target, on, seed, evaluations)
    share = hunt.allowed / 20
    starts = [hunt.ends(), hunt.anywhere(1 + int(3 * share)), hunt.corners(1 + int(3 * share))]
    starts.append(hunt.bends(1 + int(6 * share)))
    rounds = 1 + int(8 * share / (CLIMBERS * EACH))
    x = np.clip(np.concatenate(starts), hunt.low, hunt.high)
    _, worst = hunt.search.climbed(x, rounds, FIRST, CLIMBERS)
    return hunt.judged(worst)


@dataclass(frozen=True, eq=False)
class _Bend:
    """A neuron, and a pre-activation at which something happens; `size` is that of all its pre-activations."""

    layer: int
    neuron: int
    at: float
    size: float


class _Hunt:
    """Where errors live, and how large they are."""

    def __init__(self, network: Network, target: Mlp, on: Box, seed: int, evaluations: int) -> None:
        self.network, self.target = network, target
        box = on.broadcast_to(target.input_shape)
        self.low, self.high = (end.reshape(-1).astype(np.float64) for end in (box.low, box.high))
        self.maps = [*(layer.affine for layer in target.hidden), target.readout]
        weights = sum(one.weight.size for one in self.maps)
        cost = max(network.parameters, 10 * weights)
        self.allowed = max(64, min(int(evaluations), int(MAX_PRODUCTS["network"] / cost)))
        self.extended = weights * self.allowed <= MAX_PRODUCTS["exact"]
        self.balls = weights <= MAX_PRODUCTS["balls"]
        self.rows = max(1, MAX_NUMBERS // max(one.outputs for one in self.maps))
        self.search = Search.of(self._errors, self.low, self.high, seed, self.rows)
        self.rng = self.search.rng

    def _errors(self, x: Float[np.ndarray, "rows inputs"]) -> Float[np.ndarray, " rows"]:
        exact = self._exactly(x) if self.extended else self._layers(x)[-1]
        return np.abs(self._computed(x) - exact).max(axis=1).astype(np.float64)

    def _computed(self, x: Float[np.ndarray, "rows inputs"]) -> Float[np.ndarray, "rows outputs"]:
        return self.network(x.reshape(-1, *self.target.input_shape), outside="ignore").reshape(len(x), -1)

    def _exactly(self, x: Float[np.ndarray, "rows inputs"]) -> np.ndarray:
        return self.target.values(x.reshape(-1, *self.target.input_shape)).reshape(len(x), -1)

    def _layers(self, x: Float[np.ndarray, "rows inputs"], last: int | None = None) -> list[np.ndarray]:
        """The pre-activations of every layer up to a last one, then, without one, the outputs; in float64."""
        result, a = [], x
        for number, layer in enumerate(self.target.hidden[: None if last is None else last + 1]):
            result.append(_mapped(layer.affine, a))
            a = layer.values(result[number])
        return result if last is not None else [*result, _mapped(self.target.readout, a)]

    def ends(self) -> Float[np.ndarray, "rows inputs"]:
        """The lowest and the highest corner, and the middle."""
        return np.stack([self.low, self.high, self.low + (self.high - self.low) / 2])

    def anywhere(self, rows: int) -> Float[np.ndarray, "rows inputs"]:
        return self.rng.uniform(self.low, self.high, (rows, len(self.low)))

    def corners(self, rows: int) -> Float[np.ndarray, "rows inputs"]:
        """Corners at which an entry of some layer is as large or as small as the box allows, by the signs of the
        product of all weights up to there; and some at random, or random in a few entries alone."""
        found = []
        weight = np.eye(len(self.low))
        for one in self.maps:
            weight = one.weight @ weight
            some = self.rng.choice(len(weight), min(len(weight), 1 + rows // (4 * len(self.maps))), replace=False)
            up = weight[some] > 0
            found += [np.where(up, self.high, self.low), np.where(up, self.low, self.high)]
        found = np.concatenate(found)
        rest = max(1, rows - len(found))
        ends = np.where(self.rng.random((rest, len(self.low))) < 0.5, self.low, self.high)
        free = self.rng.random((rest, len(self.low))) < self.rng.choice([0.0, 0.1, 0.5], (rest, 1))
        return np.concatenate([found, np.where(free, self.anywhere(rest), ends)])

    def bends(self, rows: int) -> Float[np.ndarray, "rows inputs"]:
        """Inputs at which the pre-activation of a neuron meets a bend, or misses it by 10^-k of its size."""
        bends = bends_of(self.network, self.target, self.low, self.high)
        if not bends:
            return self.anywhere(1)
        chosen = [bends[i] for i in self.rng.integers(len(bends), size=rows)]
        misses = self.rng.choice([-1.0, 0.0, 1.0], rows) * 10.0 ** -self.rng.uniform(0, 17, rows)
        aims = np.array([bend.at + miss * bend.size for bend, miss in zip(chosen, misses, strict=True)])
        layers, neurons = (np.array([getattr(bend, name) for bend in chosen]) for name in ("layer", "neuron"))
        # half of the segments start at corners: other neurons are at the ends of their ranges there
        start = self.anywhere(rows)
        start[::2] = self.corners(rows)[: len(start[::2])]
        found = np.empty_like(start)
        for layer in np.unique(layers):
            own = np.flatnonzero(layers == layer)
            for i in range(0, len(own), self.rows):
                some = own[i : i + self.rows]
                found[some] = self._met(int(layer), neurons[some], aims[some], start[some])
        return found

    def _met(
        self,
        layer: int,
        neurons: Int[np.ndarray, " rows"],
        aims: Float[np.ndarray, " rows"],
        start: Float[np.ndarray, "rows inputs"],
    ) -> Float[np.ndarray, "rows inputs"]:
        """On a segment from each start to where the pre-activation is on the other side of the aim: where it meets it;
        where no other side is found, that end of the segment which is nearer to it."""

        def off(x: np.ndarray) -> np.ndarray:
            return self._layers(x, last=layer)[layer][np.arange(len(x)), neurons] - aims

        weight = np.eye(len(self.low))
        for one in self.maps[: layer + 1]:
            weight = one.weight @ weight
        here = off(start)
        up = (weight[neurons] > 0) ^ (here > 0)[:, None]
        end = np.where(up, self.high, self.low)
        there = off(end)
        near, far = start.copy(), end
        for _ in range(BISECTIONS if layer else 4):
            # within one layer the way is straight, and a secant is there at once
            part = 0.5 if layer else np.abs(here / np.where(here == there, 1.0, here - there))[:, None].clip(0, 1)
            middle = near + part * (far - near)
            at = off(middle)
            same = (at > 0) == (here > 0)
            near, here = np.where(same[:, None], middle, near), np.where(same, at, here)
            far, there = np.where(same[:, None], far, middle), np.where(same, there, at)
        return np.where((np.abs(here) <= np.abs(there))[:, None], near, far)

    def judged(self, x: Float[np.ndarray, " inputs"]) -> Worst:
        """The error at an input, computed once more, as well as may be."""
        computed = self._computed(x[None])
        if not np.isfinite(computed).all():
            errors = np.where(np.isfinite(computed[0]), 0.0, np.inf)
        elif self.balls:
            errors = np.array(_ball_errors(self.target, x, computed[0]))
        else:
            errors = np.abs(computed - self._exactly(x[None]))[0].astype(np.float64)
        output, shape = int(errors.argmax()), self.target.input_shape
        return Worst(float(errors[output]), x.reshape(shape).copy(), output, self.search.evaluations)


def bends_of(network: Network, target: Mlp, low: np.ndarray, high: np.ndarray) -> list[_Bend]:
    """Where each neuron's activation has kinks, and where its anchors cross, within its reach."""
    shapes = _stored_shapes(network)
    sources, result = Sources(low, high), []
    numbers = [number for number, layer in enumerate(target.hidden) if not layer.linear]
    for place, (number, hidden) in enumerate(zip(numbers, merged(target).hidden, strict=True)):
        known = shapes[place] if place < len(shapes) else None
        layer, features = Layer.extending(hidden), np.asarray(hidden.names)[:, 2]
        least, most, sources = layer.exact(sources)
        kinks = [_kinks(activation, least, most, layer.which == k) for k, activation in enumerate(layer.activations)]
        for neuron in range(layer.neurons):
            a, b = float(least[neuron]), float(most[neuron])
            at = list(kinks[layer.which[neuron]])
            if known is not None:
                at += _crossings(known[0][known[1][neuron]], a, b)
            size = max(b - a, 1e-300)
            result += [_Bend(number, int(features[neuron]), kink, size) for kink in at if a <= kink <= b]
    return result


def _stored_shapes(network: Network) -> list[tuple[list[ActivationHead], np.ndarray]]:
    """For each layer of neurons the shapes stored with the network, and which neuron has which; none if there are
    none to be read."""
    record = network.derivation
    if record is None or "shapes" not in record.data:
        return []
    try:
        every = [ActivationHead.from_record(n, data, record.arrays) for n, data in enumerate(record.data["shapes"])]
        return [
            ([every[i] for i in own], np.asarray(record.arrays[f"{n}.assigned"]))
            for n, own in enumerate(record.data["assigned"])
        ]
    except (AnchorheadError, KeyError, IndexError, TypeError):
        return []


def _kinks(activation: Expression, low: np.ndarray, high: np.ndarray, own: np.ndarray) -> list[float]:
    if activation is IDENTITY or not own.any() or not low[own].min() < high[own].max():
        return []
    pieces = analyse(activation, float(low[own].min()), float(high[own].max()))
    return [float(kink.at.mid()) for kink in pieces.kinks if not kink.end and not kink.smooth]


def _crossings(shape: ActivationHead, low: float, high: float) -> list[float]:
    """Where neighbouring anchors have the same logit, in the units of the pre-activation."""
    unit = float(np.ldexp(1.0, int(shape.exponents(np.array([low]), np.array([high]))[0])))
    return [unit * (shape.in_scale * t + shape.in_shift) for part in shape.parts for t in crossings(part).tolist()]


def _mapped(affine: Affine, x: Float[np.ndarray, "rows inputs"]) -> Float[np.ndarray, "rows outputs"]:
    return x @ affine.weight.T + affine.bias


def _ball_errors(target: Mlp, x: np.ndarray, y: np.ndarray) -> list[float]:
    """Lower bounds of |y - target(x)|."""
    with precision(PRECISION):
        a = [arb(float(one)) for one in x]
        for layer in [*target.hidden, None]:
            affine = target.readout if layer is None else layer.affine
            product = arb_mat(affine.weight.tolist()) * arb_mat([[one] for one in a])
            a = [product[i, 0] + float(bias) for i, bias in enumerate(affine.bias)]
            if layer is not None:
                chosen = [layer.activations[k] for k in layer.which]
                a = [z if phi is IDENTITY else phi.ball(_named(phi, z)) for phi, z in zip(chosen, a, strict=True)]
        return [max(lower(abs(arb(float(one)) - exact)), 0.0) for one, exact in zip(y, a, strict=True)]


def _named(activation: Expression, z: arb) -> dict[str, arb]:
    return {(activation.variables or ("x",))[0]: z}
