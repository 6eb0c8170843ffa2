"""The proof for the soft threshold at the end of a learner's step (incontext.threshold).

S(w) = w - clip(w, -tau, tau), tau = rate threshold, where the clip is a softmax on registers with slopes a_k, offsets
g_k and values v_k. Up to twice tau to either side the softmax is compared with the clip as any head is with its target
(proof.heads.head). Beyond, for s >= 2 tau and with e the steepest anchor, the gap

    z_e - z_k = (a_e - a_k) s + g_e - g_k,    less what rounding may take off it, u (1 + u) sum (2 |a| s + |g|),

grows with s as long as its slope in s is positive: every other anchor only loses weight. If the gap is large enough at
2 tau for their weights to vanish, what is read from there on is v_e, and the clip is tau; likewise below.

S brings points no further apart, |S(a) - S(b)| <= |a - b|, so a step followed by S errs by no more than the step and S
do: proof.descent.descent's sum of errors holds. Not so with momentum: S takes off some entries of w and v what it
leaves to others, and the products of such steps with those of momentum have no bound that is known.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cache
from typing import NoReturn

import numpy as np
from flint import acb, arb
from jaxtyping import Float

from anchorhead.errors import CertificateError
from anchorhead.network import Attention, Linear, Network, Repeat
from anchorhead.proof.arithmetic.arithmetic import UP, Arithmetic, arithmetic_of
from anchorhead.proof.arithmetic.silence import SILENT
from anchorhead.proof.enclosures.analytic import prove_sup
from anchorhead.proof.enclosures.balls import upper
from anchorhead.proof.heads.head_rounding import head_rounding
from anchorhead.targets.descent import Descent
from anchorhead.targets.expressions.precision import precision

MORE = 3
"""Features of the clip: slope, offset and value of an anchor."""
UNKNOWN = (
    "with momentum and a threshold at once errors of the steps are multiplied by products of matrices for which no "
    "bound is known"
)


class NotKnown(CertificateError):
    """No proof is known for such a learner: what is said of it can only be measured."""


@dataclass(frozen=True)
class Clip:
    """The anchors as they are stored; p of them, in the order of the registers."""

    slopes: tuple[float, ...]
    offsets: tuple[float, ...]
    values: tuple[float, ...]
    dtype: str

    @property
    def most(self) -> float:
        """|w| for which no logit overflows."""
        return float(np.finfo(self.dtype).max) / (8 * max(map(abs, self.slopes)))

    def error(self, target: Descent) -> ClipError:
        """What S gets wrong in one entry of w, the last subtraction left out."""
        return _clip_error(self, target.rate, target.threshold)


@dataclass(frozen=True)
class ClipError:
    """exact: |softmax - clip| in exact arithmetic; rounding: |computed - softmax|. For every w."""

    exact: float
    rounding: float

    def after(
        self, w: Float[np.ndarray, " weights"], target: Descent, model: Arithmetic
    ) -> Float[np.ndarray, " weights"]:
        """What S gets wrong, entry by entry, for |entries| <= w, with the subtraction; nothing in the intercept."""
        total = self.exact + self.rounding
        return (total + model.unit * UP * (w + total) + model.tiny) * target.penalised


def require_proof(target: Descent) -> None:
    """Refuses momentum and a threshold at once."""
    if target.momentum and target.threshold:
        raise NotKnown(f"{target}: {UNKNOWN}")


def unshrunk(network: Network, target: Descent, w: int, one: int) -> tuple[Network, Clip | None, np.ndarray]:
    """The network without its soft threshold, the clip, and the clip's registers as the other layers see them.

    w and one are the slots of w's first entry and of a feature that is 1 in every state: that they are is the caller's
    to check in what is left. CertificateError unless the threshold is that of incontext.threshold; without a threshold,
    the network as it is.
    """
    if not target.threshold:
        return network, None, np.zeros((0, 0))
    layers = network.layers
    if len(layers) != 3 or not isinstance(layers[1], Repeat) or not isinstance(layers[2], Linear):
        _refuse("its layers are not Embed, Repeat, Linear")
    repeat, read, embed = layers[1], layers[2], network.embed
    width = embed.weight.shape[-2] - MORE
    last = w + target.features - 1 + (target.weights if target.momentum else 0)
    if width <= max(last, one) or embed.registers is None or embed.states is None:
        _refuse("it has no registers, no states or too few features")
    if embed.tokens is not None or embed.weight.ndim != 2 or embed.bias.ndim != 1:
        _refuse("its Embed has a fixed number of tokens")
    _require_layer(repeat.layers[-1], width, target, w, one)
    _zero(embed.weight[width:], embed.bias[width:], read.weight[..., width:])
    far = -float(embed.states[0, width + 1])
    away = np.array([0.0, -far, 0.0])
    if not (embed.states[:, width:] == away).all():
        _refuse("a state's own key is not out of reach")
    others = (embed.registers[:, width:] == away).all(axis=1)
    count = int(others.sum())
    if not others[:count].all() or count == len(others):
        _refuse("registers of other layers do not stand before those of the clip, or there are none of the clip")
    slopes, offsets, values = (tuple(map(float, row)) for row in embed.registers[count:, width:].T)
    clip = Clip(slopes, offsets, values, network.dtype)
    _require_far(clip, far)
    narrow = Network(
        [
            replace(
                embed,
                weight=embed.weight[:width],
                bias=embed.bias[:width],
                registers=embed.registers[:count, :width] if count else None,
                states=embed.states[:, :width],
                features=(embed.features or ())[:width],
            ),
            Repeat(tuple(_narrowed(layer, width) for layer in repeat.layers[:-1]), repeat.times),
            replace(read, weight=read.weight[..., :width]),
        ],
        output=network.output,
        program=network.program,
        derivation=network.derivation,
    )
    return narrow, clip, embed.registers[count:, :width]


def _require_layer(layer: object, width: int, target: Descent, w: int, one: int) -> None:
    """The last layer of a step is that of incontext.threshold."""
    if not isinstance(layer, Attention) or layer.skip is None or layer.width != width + MORE:
        _refuse("a step does not end with an attention that has a skip")
    pick = np.eye(width + MORE)
    slots = range(w, w + target.features)
    changed = pick[list(slots)]
    if target.momentum:
        changed = changed + pick[[j + target.weights for j in slots]]
    expected = {
        "query": np.stack([pick[[j, one]] for j in slots]),
        "key": pick[None, [width, width + 1]],
        "value": pick[None, None, width + 2],
        "output": -changed[:, :, None],
    }
    for name, array in expected.items():
        if not np.array_equal(getattr(layer, name), array):
            _refuse(f"the {name} of its last layer is not that of the construction")
    plain = layer.bias is None and layer.grid is None and layer.skip.bias is None
    if not plain or layer.mask != "self+registers" or not np.array_equal(layer.skip.weight, pick):
        _refuse("the mask, bias or skip of its last layer is not that of the construction")


def _require_far(clip: Clip, far: float) -> None:
    """For s >= 0 the largest computed logit is at least the offset of any anchor with a slope of at least 0: rounding
    keeps the order of numbers. A state's own logit is -far, a product with 1 and one with 0: neither rounds."""
    sides = [
        max((g for a, g in zip(clip.slopes, clip.offsets, strict=True) if sign * a >= 0), default=-np.inf)
        for sign in (-1, 1)
    ]
    if not min(sides) + far >= 2 * SILENT:
        _refuse("a state's own key is not out of reach")


def _narrowed(layer: object, width: int) -> Attention:
    """The layer without the clip's features, which it neither reads nor changes."""
    if not isinstance(layer, Attention) or layer.skip is None or layer.skip.weight.ndim != 2:
        _refuse("its steps are not attention layers with a skip")
    if layer.width != width + MORE or layer.outputs != layer.width:
        _refuse("its layers are not all of one width")
    _zero(*(one[..., width:] for one in (layer.query, layer.key, layer.value)), layer.output[:, width:])
    _zero(*(one[width:] for one in (layer.bias, layer.skip.bias) if one is not None))
    kept = layer.skip.weight
    _zero(kept[width:, width:] - np.eye(MORE), kept[:width, width:], kept[width:, :width])
    names = (layer.features or ())[:width]
    biases = [None if one is None else one[:width] for one in (layer.bias, layer.skip.bias)]
    return replace(
        layer,
        query=layer.query[..., :width],
        key=layer.key[..., :width],
        value=layer.value[..., :width],
        output=layer.output[:, :width],
        bias=biases[0],
        skip=Linear(kept[:width, :width], biases[1], features=names),
        features=names,
    )


def _zero(*arrays: np.ndarray) -> None:
    if any(array.any() for array in arrays):
        _refuse("other layers read or change what the clip needs")


def _refuse(why: str) -> NoReturn:
    raise CertificateError(f"the network's soft threshold is not that of the construction: {why}")


@dataclass(frozen=True)
class _Part:
    """Anchors in the order of their slopes."""

    slopes: np.ndarray
    offsets: np.ndarray
    values: np.ndarray


@cache
def _clip_error(clip: Clip, rate: float, threshold: float) -> ClipError:
    model = arithmetic_of(clip.dtype)
    with precision(256):
        tau = arb(rate) * arb(threshold)
        reach = upper(2 * tau)
        pieces = [(arb(-reach), -tau, _constant(-tau)), (-tau, tau, _itself), (tau, arb(reach), _constant(tau))]
    order = np.argsort(clip.slopes, kind="stable")
    part = _Part(*(np.array(array)[order] for array in (clip.slopes, clip.offsets, clip.values)))
    part = replace(part, values=part.values[:, None])
    rounding = head_rounding([part], 0.0, np.zeros(1), -reach, reach, model)
    inside = prove_sup([part], 0.0, 0.0, pieces, -reach, reach, floor=rounding / 50).bound
    _require_settled(clip, reach, model)
    ends = part.values[0, 0], part.values[-1, 0]
    with precision(256):
        outside = max(upper(abs(arb(float(ends[0])) + tau)), upper(abs(arb(float(ends[1])) - tau)))
    vanished = 4 * len(clip.slopes) * model.tiny * (1 + max(map(abs, clip.values)))
    return ClipError(max(inside, outside), max(rounding, vanished))


def _require_settled(clip: Clip, reach: float, model: Arithmetic) -> None:
    """Beyond `reach` all anchors but the outermost have a computed weight of 0: see the top of this file."""
    u = Fraction(model.unit) * (1 + Fraction(model.unit))
    anchors = list(zip(map(Fraction, clip.slopes), map(Fraction, clip.offsets), strict=True))
    for sign in (-1, 1):
        end = max(range(len(anchors)), key=lambda k: sign * anchors[k][0])
        a_e, g_e = anchors[end]
        for k, (a, g) in enumerate(anchors):
            if k == end:
                continue
            grows = sign * (a_e - a) - 2 * u * (abs(a_e) + abs(a))
            gap = grows * Fraction(reach) + g_e - g - u * (abs(g_e) + abs(g))
            if not (grows > 0 and gap >= Fraction(2 * SILENT)):
                _refuse("beyond its kinks more than one anchor has weight")


def _constant(level: arb) -> object:
    return lambda z: z * 0 + level


def _itself(z: acb) -> acb:
    return z
