"""What a normalisation can put out, and so what a linear map behind it can: ranges that hold for every input.

LayerNorm's output is z = scale * zhat + shift with mean(zhat) = 0 and |zhat|_2 <= sqrt(d), whatever comes in; RMSNorm's
has no shift and any mean. Its own rounding is allowed for: all that is assumed is

    z = scale * (p + e) + shift + r,    |p|_2 <= sqrt(d), p perpendicular to (1, ..., 1) if centred,
                                        |e|_2 <= SLACK sqrt(d),    |r_i| <= 4u (|scale_i| sqrt(d) + |shift_i|)

so that for a row w of a linear map, with a = w * scale and its part a' perpendicular to (1, ..., 1) (or a itself),

    |w.z + b - (w.shift + b)| <= sqrt(d) (|a'|_2 + SLACK |a|_2) + |w|.|r|.

The numbers here are float64 sums of at most 1e5 terms, wrong by less than 1e-10 of what they add up: bounds are
enlarged by ROOM of themselves.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import nn
from torch.nn.utils import parametrize

from anchorhead.conditions import NormImage
from anchorhead.convert.attention_only.families import Map
from anchorhead.errors import AnchorheadError
from anchorhead.heads.arithmetic import Arithmetic

SLACK = 1e-3
LAST_STEPS = 4
"""The product with the scale and the sum with the shift round by so many units, generously."""
ROOM = 1e-9
ROWS = 2048
"""How many rows of a matrix are taken to float64 at a time."""

Vector = Float[torch.Tensor, " n"]


@dataclass(frozen=True)
class Norm:
    """z = scale * zhat + shift, in float64."""

    scale: Vector
    shift: Vector
    centred: bool

    @property
    def width(self) -> int:
        return len(self.scale)

    @property
    def radius(self) -> float:
        return self.width**0.5

    def rounding(self, arithmetic: Arithmetic) -> Vector:
        """What the last product and sum may add to z, entry by entry."""
        return LAST_STEPS * arithmetic.unit * (self.scale.abs() * self.radius + self.shift.abs())

    def image(self, arithmetic: Arithmetic) -> NormImage:
        """All that the norm can put out, as the condition of a certificate."""
        kind = "LayerNorm" if self.centred else "RMSNorm"
        rows = (tuple(vector.tolist()) for vector in (self.scale, self.shift))
        return NormImage(kind, *rows, slack=SLACK, rounding=LAST_STEPS * arithmetic.unit)

    def reach(self, arithmetic: Arithmetic) -> Vector:
        """|z - shift| is at most this, entry by entry."""
        return (self.scale.abs() * self.radius * (1 + SLACK) + self.rounding(arithmetic)) * (1 + ROOM)


@dataclass(frozen=True)
class Range:
    """Where s = W z + b lies, and how it is rounded, for every z that the norm can put out.

    |s - centre| <= radius, entry by entry;  sum_i |w_i z_i| + |b| <= size;  |s|_2 <= length;
    |computed s - s| <= rounding
    """

    centre: Vector
    radius: Vector
    size: Vector
    length: float
    rounding: Vector

    @property
    def low(self) -> float:
        return float((self.centre - self.radius - self.rounding).min())

    @property
    def high(self) -> float:
        return float((self.centre + self.radius + self.rounding).max())

    @property
    def magnitude(self) -> Vector:
        """|computed s| is at most this."""
        return (self.centre.abs() + self.radius + self.rounding) * (1 + ROOM)

    @property
    def computed_length(self) -> float:
        """|computed s|_2 is at most this."""
        return (self.length + float(self.rounding.norm())) * (1 + ROOM)


def norm_of(module: nn.Module, gain: float, width: int) -> Norm:
    """The affine part of a LayerNorm, or of transformers' RMSNorm that multiplies by gain + weight."""
    weight, bias = getattr(module, "weight", None), getattr(module, "bias", None)
    scale = torch.ones(width, dtype=torch.float64) if weight is None else weight.detach().cpu().double() + gain
    shift = torch.zeros(width, dtype=torch.float64) if bias is None else bias.detach().cpu().double()
    kind = parametrize.type_before_parametrizations(module)
    centred = kind is nn.LayerNorm
    known = centred or (kind.__module__.startswith("transformers.models.") and kind.__name__.endswith("RMSNorm"))
    over = getattr(module, "normalized_shape", (width,))
    if not known or scale.shape != (width,) or tuple(over) != (width,):
        raise AnchorheadError(
            f"in front of a feed-forward sublayer stands a {kind.__name__} of {tuple(scale.shape)}, no LayerNorm or "
            f"RMSNorm of {width} features: the range of its neurons is not known"
        )
    added = getattr(module, "eps", getattr(module, "variance_epsilon", None))
    if not isinstance(added, int | float) or not 0 <= added < float("inf"):
        raise AnchorheadError(
            f"the {kind.__name__} in front of a feed-forward sublayer adds eps={added!r} to the variance: only from 0 "
            "on is its output never longer than sqrt(features), from which the range of the neurons follows"
        )
    return Norm(scale, shift, centred)


def range_of(linear: Map, norm: Norm, arithmetic: Arithmetic) -> Range:
    """The range of a linear map behind a norm."""
    rounded = norm.rounding(arithmetic)
    rows, gram = [], torch.zeros(norm.width, norm.width, dtype=torch.float64)
    for start in range(0, len(linear.weight), ROWS):
        weight = linear.weight[start : start + ROWS].cpu().double()
        scaled = weight * norm.scale
        seen = scaled - scaled.mean(dim=1, keepdim=True) if norm.centred else scaled
        gram += seen.T @ seen
        size, wide = weight.abs(), scaled.norm(dim=1)
        rows.append(
            torch.stack([
                weight @ norm.shift,
                norm.radius * (seen.norm(dim=1) + (SLACK + ROOM) * wide) + size @ rounded,
                norm.radius * (1 + SLACK) * wide + size @ (norm.shift.abs() + rounded),
                scaled.sum(dim=1),
                size.sum(dim=1),
            ])
        )  # fmt: skip
    centre, radius, size, sums, weights = torch.cat(rows, dim=1)
    if linear.bias is not None:
        bias = linear.bias.cpu().double()
        centre, size = centre + bias, size + bias.abs()
    spectral = largest_singular_value(gram)
    whole = (spectral**2 + float(sums.square().sum()) / norm.width) ** 0.5 if norm.centred else spectral
    length = float(centre.norm()) + norm.radius * (spectral + (SLACK + ROOM) * whole)
    # |W| |r| <= 4u (|W| |scale| sqrt d + |W| |shift|), at most 4u sqrt(d) times `size`, entry by entry
    length += LAST_STEPS * arithmetic.unit * norm.radius * float(size.norm())
    terms = norm.width + (linear.bias is not None)
    # entries of z, weights, products and sums below the smallest normal number may become 0
    entries = norm.radius * float(norm.scale.abs().sum()) + float(norm.shift.abs().sum())
    vanished = arithmetic.tiny * (2 * terms + 2 * weights + 2 * entries)
    rounding = arithmetic.gamma(terms) * size * (1 + ROOM) + vanished
    return Range(centre, radius * (1 + ROOM) + ROOM * size, size * (1 + ROOM), length * (1 + ROOM), rounding)


def largest_singular_value(gram: Float[torch.Tensor, "d d"]) -> float:
    """A number that is not below the largest singular value of A, from its Gram matrix A'A.

    An estimate by power iteration is raised until lambda I - A'A has a Cholesky decomposition, which proves it positive
    semidefinite up to (d + 2) u of its trace (Rump): with room 1e-6 for that and for the rounding of A'A itself.
    """
    trace = float(gram.diagonal().sum())
    if not trace > 0:
        return 0.0
    vector = torch.ones(len(gram), dtype=gram.dtype) + torch.arange(len(gram)) / len(gram)
    for _ in range(30):
        vector = gram @ (vector / vector.norm())
        if not float(vector.norm()) > 0:
            return trace**0.5 * (1 + ROOM)
    estimate = float(vector.norm())
    identity = torch.eye(len(gram), dtype=gram.dtype)
    for above in (1.02, 1.1, 1.5, 2.5):
        if estimate * above < trace and torch.linalg.cholesky_ex(estimate * above * identity - gram).info == 0:
            return (estimate * above * (1 + 1e-6)) ** 0.5
    return trace**0.5 * (1 + 1e-6)
