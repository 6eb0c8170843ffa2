"""What a step on the squared loss does, read from stored weights (incontext.squared, and its proof descent_squared)."""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property, lru_cache
from typing import NoReturn

import numpy as np

from anchorhead.errors import CertificateError
from anchorhead.network import Attention, Linear, Network, Repeat
from anchorhead.proof.arithmetic.silence import SILENT
from anchorhead.proof.descent.descent_threshold import Clip, unshrunk
from anchorhead.targets.descent import Descent


@dataclass(frozen=True)
class SquaredStep:
    """What a layer does to the state, as its stored weights say.

    sharpness     h_a of each head, powers of two
    outputs       o_a, with which what is read is added to w (and to v)
    kept          by which w is multiplied, entry by entry (1 - rate decay)
    momentum      by which v is multiplied
    pulled        by which w enters v, entry by entry (-rate decay)
    clip          what the soft threshold takes off, if there is one
    """

    sharpness: tuple[float, ...]
    outputs: tuple[float, ...]
    kept: tuple[float, ...]
    momentum: float
    pulled: tuple[float, ...]
    clip: Clip | None = None

    @cached_property
    def powers(self) -> tuple[Fraction, ...]:
        """k_0, k_1 and k_2."""
        heads = [(Fraction(o), Fraction(h)) for o, h in zip(self.outputs, self.sharpness, strict=True)]
        return tuple(sum((o * h**m for o, h in heads), Fraction(0)) for m in (1, 3, 5))

    def wrongly_kept(self, target: Descent) -> tuple[np.ndarray, np.ndarray, float]:
        """|stored - exact| of what multiplies w in w, w in v, and v."""
        in_w, in_v = _wrong(self.kept, self.pulled, target.rate, target.decay, target.intercept)
        of_v = float(abs(Fraction(self.momentum) - Fraction(target.momentum)))
        return np.array(in_w), np.array(in_v), of_v


@lru_cache(maxsize=256)
def _wrong(
    kept: tuple[float, ...], pulled: tuple[float, ...], rate: float, decay: float, intercept: bool
) -> tuple[list[float], list[float]]:
    """|kept - (1 - rate decay)| and |pulled + rate decay|, without the decay for the intercept, the last entry."""
    pull = Fraction(rate) * Fraction(decay)
    exact = [pull] * (len(kept) - intercept) + [Fraction(0)] * intercept
    in_w = [float(abs(Fraction(one) - (1 - by))) for one, by in zip(kept, exact, strict=True)]
    return in_w, [float(abs(Fraction(one) + by)) for one, by in zip(pulled, exact, strict=True)]


def read(network: Network, target: Descent) -> SquaredStep:
    """The step, if the network is one of incontext.squared for this target; CertificateError otherwise."""
    d, weights = target.features, target.weights
    label, kind, w = d + 1, d + 2, d + 3
    network, clip, registers = unshrunk(network, target, w, kind)
    layers = network.layers
    if len(layers) != 3 or not isinstance(layers[1], Repeat) or not isinstance(layers[2], Linear):
        _refuse("its layers are not Embed, Repeat, Linear")
    repeat, last = layers[1], layers[2]
    if network.output != "state" or last.mix is not None:
        _refuse("what leaves it is not the state alone")
    if repeat.times != target.steps or len(repeat.layers) != 1 or not isinstance(repeat.layers[0], Attention):
        _refuse(f"it does not repeat one attention {target.steps} times")
    layer = repeat.layers[0]
    width = w + weights * (2 if target.momentum else 1)
    pick = np.eye(width)
    columns = [*range(d), *([d] if target.intercept else [])]
    slots = np.arange(w, w + weights)
    embed = network.embed
    _same(embed.weight, np.eye(width, d + 2), "Embed's weight")
    _same(embed.bias, np.zeros(width), "Embed's bias")
    if embed.registers is not None or embed.states is None or embed.tokens is not None:
        _refuse("its Embed has registers, no state, or a fixed number of tokens")
    _same(embed.states, pick[None, kind], "the state at the start")
    if not (registers == pick[kind, : registers.shape[1]]).all():
        _refuse("registers of the threshold are not out of the examples' way")
    if layer.width != width or layer.mask or layer.grid or layer.bias is not None or layer.skip is None:
        _refuse("its attention has a mask, a grid, a bias, no skip or another width")
    _same(layer.value, pick[None, columns], "the values")
    far = float(-layer.key[0, -1, kind])
    _same(layer.key, np.concatenate([pick[columns], -pick[None, label], -far * pick[None, kind]])[None], "the keys")
    # a product with 1 and others with 0; no example's logit is below -1 where anything is proven (descent_squared)
    if not far >= 2 * SILENT:
        _refuse("the state's own key is not out of reach")
    sharpness = tuple(float(h) for h in layer.query[:, 0, w])
    if not all(h > 0 and np.frexp(h)[0] == 0.5 for h in sharpness):
        _refuse("a sharpness is no power of two")
    one = np.stack([*pick[slots], pick[kind]])
    _same(layer.query, np.stack([np.concatenate([h * one, pick[None, kind]]) for h in sharpness]), "the queries")
    outputs = tuple(float(o) for o in layer.output[:, w, 0])
    expected = np.zeros((len(sharpness), width, weights))
    for head, o in enumerate(outputs):
        for start in (w, w + weights) if target.momentum else (w,):
            expected[head, start : start + weights] = o * np.eye(weights)
    _same(layer.output, expected, "the outputs")
    _same(last.weight, pick[slots], "the last map")
    if last.bias is not None or layer.skip.bias is not None or layer.skip.weight.ndim != 2:
        _refuse("its skip or last map has a bias or another shape")
    return replace(read_skip(layer.skip.weight, slots, target, sharpness, outputs), clip=clip)


def read_skip(
    skip: np.ndarray, slots: np.ndarray, target: Descent, sharpness: tuple[float, ...], outputs: tuple[float, ...]
) -> SquaredStep:
    expected = np.eye(len(skip))
    kept = skip[slots, slots]
    expected[slots, slots] = kept
    momentum, pulled = 0.0, np.zeros(len(slots))
    if target.momentum:
        steps = slots + len(slots)
        momentum, pulled = float(skip[slots[0], steps[0]]), skip[steps, slots]
        expected[slots, steps], expected[steps, steps] = momentum, momentum
        expected[steps, slots] = pulled
    _same(skip, expected, "the skip")
    return SquaredStep(sharpness, outputs, tuple(map(float, kept)), momentum, tuple(map(float, pulled)))


def _same(found: np.ndarray, expected: np.ndarray, what: str) -> None:
    if found.shape != expected.shape or not np.array_equal(found.astype(np.float64), expected):
        _refuse(f"{what} are not those of the construction")


def _refuse(why: str) -> NoReturn:
    raise CertificateError(f"the network is no gradient descent on the squared loss: {why}")
