"""As what heads the direct evaluation computes the parts of shapes, and what a bound grants sums of these.

A part with the anchors (a, g, v) is a head of attention with these keys, or groups of a Softmax that run as heads of
one base b = factor v, up to rounding (network.direct.weighed), of which outputs take c. A head that is off by `error`
moves an output by |c| error, which is error / |factor| of what the part reads; so series are asked to follow the keys
that run, and what they err by is counted in the units of the part.

Sums. The bound grants a sum of N products of groups, in which V_k are the values and S >= sum_k w_k |v_k|
(`weight_sums`), gamma_N of |factor c| S. Heads take the place of that: with size >= |scale q| + |shift|,

    sum_k w_k |V_k - c b_k|  <=  off |c factor| S,      gamma_(n + 4) |c| size

for n groups: the roundings of take and of its product, and n + 1 sums. So gamma_(n + 4) size / |factor| beyond
(gamma_N - off) S is counted as an error of the head, and of softmaxes, whose size is S, there must be none. A verifier
that counts N terms in both sums finds gamma_N (size / |factor| - S)^+, and that is counted where it is more. For heads
of attention the same holds with what they read at most in the place of S, off = 0, and as many terms in both sums.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from anchorhead.heads.atom import Part
from anchorhead.network import Network
from anchorhead.network.direct import Planned, Refused, planned
from anchorhead.network.direct.keys import Keys
from anchorhead.network.direct.plans import HeadsPlan
from anchorhead.network.direct.weighed import ROUNDED, Weighed
from anchorhead.proof.arithmetic.arithmetic import arithmetic_of
from anchorhead.proof.heads.activation_head import ActivationHead
from anchorhead.proof.heads.neurons import Layer
from anchorhead.proof.heads.weight_sums import weight_sums

Anchors = tuple[tuple[float, ...], ...]
"""Slopes, offsets and values."""
SMALL = 2.0**60
"""Times the smallest normal number: what outputs take is 0 or more than that, so that nothing underflows."""
SPARE = 1.001
"""For products of roundings, and for what b is off."""


def named(keys: Sequence[np.ndarray]) -> Anchors:
    return tuple(tuple(np.asarray(one, np.float64).tolist()) for one in keys)


@dataclass(frozen=True, eq=False)
class EvaluatedKeys:
    """The keys that run in the place of a part, and how many times as large their values are, nearly.

    factor  the same without its sign, or a little less, for what is rounded in these and in what outputs take
    reach   what the bound takes for the size of what the part adds to sums"""

    keys: tuple[np.ndarray, np.ndarray, np.ndarray]
    times: float
    factor: float
    reach: float

    @property
    def name(self) -> Anchors:
        return named(self.keys)


@dataclass(frozen=True)
class Sums:
    """Relative errors: of sums of heads (gamma_(n + 4)), what of those of groups is left for them (gamma_N - off), and
    gamma_N; the same for all outputs."""

    heads: float
    room: float
    terms: float

    @property
    def softmaxes(self) -> bool:
        """Whether what softmaxes read may be summed."""
        return self.heads <= self.room

    def beyond(self, size: float, reach: float) -> float:
        """What sums of heads of this size err by more than is granted those of this reach."""
        return max(0.0, self.heads * size - self.room * reach, self.terms * (size - reach))


@dataclass(frozen=True, eq=False)
class DirectHeads:
    """planned: what is computed; sums: what those of heads are granted; bases: of groups, by slopes and offsets."""

    planned: Planned
    sums: Sums
    bases: Mapping[Anchors, np.ndarray] = field(default_factory=dict)
    _known: dict[ActivationHead, list[EvaluatedKeys]] = field(default_factory=dict, init=False, repr=False)

    @classmethod
    def of(cls, network: Network, layers: Sequence[Layer]) -> DirectHeads:
        """Those of a network of such layers; raises Refused."""
        found, gamma = planned(network.layers, network.output, network.dtype), arithmetic_of(network.dtype).gamma
        weighed = [one for step in found.steps if isinstance(step, HeadsPlan) for one in step.weighed]
        if not weighed:
            terms = 16 + sum(layer.neurons * layer.parts for layer in layers) + max(s.width for s in network.streams)
            return cls(found, Sums(*[float(gamma(terms))] * 3))
        if len(layers) > 1:
            raise Refused("several layers of groups of a softmax")
        bases = {named((one.keys.slopes, one.keys.offsets)): one.keys.values[:, 0] for one in weighed}
        return cls(found, _granted(weighed, network.dtype), bases)

    @property
    def dtype(self) -> str:
        return self.planned.dtype

    def through(self, shape: ActivationHead) -> list[EvaluatedKeys]:
        """That of each part of a shape, found once; raises Refused where none is known."""
        if shape not in self._known:
            self._known[shape] = self._through(shape)
        return self._known[shape]

    def _through(self, shape: ActivationHead) -> list[EvaluatedKeys]:
        own = [_keys(part) for part in shape.parts]
        if not self.bases:
            most = [float(np.abs(part.values.astype(float)).max()) for part in shape.parts]
            reach = [min(one, other) + shape.rounding for one, other in zip(shape.reach, most, strict=True)]
            return [EvaluatedKeys(keys, 1.0, 1.0, most) for keys, most in zip(own, reach, strict=True)]
        sums = weight_sums(shape, arithmetic_of(self.dtype))
        return [self._of_groups(keys, most) for keys, most in zip(own, sums, strict=True)]

    def _of_groups(self, keys: tuple[np.ndarray, np.ndarray, np.ndarray], most: float) -> EvaluatedKeys:
        slopes, offsets, values = keys
        base = self.bases.get(named((slopes, offsets)))
        top = int(np.abs(values).argmax())
        if base is None or not values[top]:
            raise Refused("a part of a shape that is no group of a softmax")
        factor, rounded = float(base[top] / values[top]), ROUNDED * float(np.finfo(self.dtype).eps)
        if (np.abs(base - factor * values) > rounded * np.abs(factor * values)).any():
            raise Refused("values of a group of a softmax that are not those of its shape")
        return EvaluatedKeys((slopes, offsets, base), factor, abs(factor) / (1 + 8 * rounded), most / SPARE)


def _granted(weighed: Sequence[Weighed], dtype: str) -> Sums:
    """Of all outputs the most and the least; refused where what is taken may underflow, or there is no room."""
    tiny, gamma = np.finfo(dtype).tiny, arithmetic_of(dtype).gamma
    takes, offs = (np.concatenate([getattr(one, name) for one in weighed], axis=1) for name in ("takes", "offs"))
    used, counts = takes != 0, np.sum([one.counts for one in weighed], axis=0)
    least = min(float(np.abs(takes[used]).min()), *(float(np.abs(one.keys.values).max()) for one in weighed))
    if least < SMALL * tiny:
        raise Refused("groups of a softmax of which hardly anything is taken")
    summed, terms, off = gamma(used.sum(axis=1) + 4), gamma(counts), np.where(used, offs, 0.0).max(axis=1)
    found = Sums(float(summed.max()), float((terms / SPARE - off).min()), float(terms.max()))
    if found.room <= 0:
        raise Refused("groups of a softmax that may err by more as heads")
    return found


def _keys(part: Part) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Those of a part of a head that the direct evaluation keeps."""
    slopes, offsets, values = part.astype(np.float64)
    return Keys(slopes, offsets, values).live().column(0)
