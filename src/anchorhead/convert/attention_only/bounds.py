"""The error of one feed-forward sublayer as attention: |computed output - exact feed-forward| for every input.

Neuron r has the pre-activation s_r = w_r.z + b_r; computed, s^_r, it is wrong by at most rho_r. Its head errs by at
most B max(1, |s^_r|), phi has the Lipschitz constant L, and |phi(s)| <= M max(1, |s|). So output o, sum_r c_or phi(s_r)
+ d_o, is wrong by at most the sum of

    heads     B sum_r |c_or| max(1, |s^_r|)
    queries   L sum_r |c_or| rho_r
    output    gamma_(n+1) (sum_r |c_or| (M + B) max(1, |s^_r|) + |d_o|)

where the first sum is at most what each neuron's own range says, and at most |c_o|_2 (n + |s^|_2^2)^(1/2): no input
drives all neurons to the end of their ranges at once.

Gated, the neuron is phi(g_r) u_r, and its heads err by at most B max(1, |g^_r|) |u^_r|:

    heads     B sum_r |c_or| max(1, |g^_r|) |u^_r|
    queries   sum_r |c_or| (L rho(g_r) |u^_r| + M max(1, |g_r|) rho(u_r))
    output    gamma_(n+1) (sum_r |c_or| (M + B) max(1, |g^_r|) |u^_r| + |d_o|)

and the first sum is also at most max_r |c_or| (n + |g^|_2^2)^(1/2) |u^|_2.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from jaxtyping import Float

from anchorhead.convert.attention_only.families import Map
from anchorhead.convert.attention_only.ranges import ROOM, ROWS, Range
from anchorhead.errors import AnchorheadError
from anchorhead.heads.arithmetic import Arithmetic
from anchorhead.terms import Term


@dataclass(frozen=True)
class Steepness:
    """What is known of the heads and of phi: B, L and M above."""

    heads: float
    lipschitz: float
    growth: float


@dataclass(frozen=True)
class LayerBound:
    """The largest error of an output entry, and the terms that it adds up, at the output where it is largest."""

    bound: float
    terms: tuple[Term, ...]


def two_matrices(s: Range, down: Map, phi: Steepness, arithmetic: Arithmetic, times: int = 1) -> LayerBound:
    """The bound for sum_r c_or phi(s_r) + d_o; times: how many terms of that sum a neuron is."""
    most = s.magnitude.clamp(min=1.0)
    together = (len(most) + s.computed_length**2) ** 0.5
    grown, queries = [], []
    for start in range(0, len(down.weight), ROWS):
        size = down.weight[start : start + ROWS].cpu().double().abs()
        grown.append(torch.minimum(size @ most, size.norm(dim=1) * together))
        queries.append(phi.lipschitz * (size @ s.rounding))
    return _added(torch.cat(grown), torch.cat(queries), float(most.sum()), down, phi, arithmetic, times)


def gated(
    g: Range, u: Range, down: Map, phi: Steepness, underflow: float, arithmetic: Arithmetic, times: int = 1
) -> LayerBound:
    """The bound for sum_r c_or phi(g_r) u_r + d_o; products with a tiny u may lose `underflow` besides."""
    most = g.magnitude.clamp(min=1.0)
    together = (len(most) + g.computed_length**2) ** 0.5 * u.computed_length
    moved = phi.lipschitz * g.rounding * u.magnitude + phi.growth * most * u.rounding + underflow
    grown, queries = [], []
    for start in range(0, len(down.weight), ROWS):
        size = down.weight[start : start + ROWS].cpu().double().abs()
        grown.append(torch.minimum(size @ (most * u.magnitude), size.amax(dim=1) * together))
        queries.append(size @ moved)
    together = float((most * u.magnitude).sum())
    return _added(torch.cat(grown), torch.cat(queries), together, down, phi, arithmetic, times)


def require_products(u: Range, factor: float, arithmetic: Arithmetic, name: str) -> None:
    """Refuses gated neurons whose values times a head's factor may be beyond the dtype: no bound covers infinities."""
    largest, most = float(u.magnitude.max()) * factor, float(torch.finfo(getattr(torch, arithmetic.dtype)).max)
    if not largest < most / 4:
        raise AnchorheadError(
            f"the gated neurons of {name} reach {float(u.magnitude.max()):.3g}, times up to {factor:.3g} in their "
            f"heads: more than {arithmetic.dtype} holds. Rescale the model's weights, or use float64"
        )


def _added(
    grown: Float[torch.Tensor, " outputs"],
    queries: Float[torch.Tensor, " outputs"],
    together: float,
    down: Map,
    phi: Steepness,
    arithmetic: Arithmetic,
    times: int,
) -> LayerBound:
    neurons = down.weight.shape[1] * times
    terms = neurons + (down.bias is not None)
    bias = torch.zeros(len(grown), dtype=torch.float64) if down.bias is None else down.bias.cpu().double().abs()
    # underflow of the gates is in `queries`, and so small beside 1 that no product of it with gamma shows
    output = arithmetic.gamma(terms) * ((phi.growth + phi.heads) * grown + bias)
    output = output + 4 * arithmetic.tiny * (terms + (phi.growth + phi.heads) * together)  # of weights as well
    parts = torch.stack([phi.heads * grown, queries, output])
    total = parts.sum(dim=0)
    worst = int(total.argmax())
    heads, maps, outputs = (float(part) * (1 + ROOM) for part in parts[:, worst])
    return LayerBound(
        bound=float(total[worst]) * (1 + ROOM),
        terms=(
            Term("error", heads, "heads"),
            Term("rounding", maps, "pre-activations"),
            Term("rounding", outputs, "output map"),
        ),
    )
