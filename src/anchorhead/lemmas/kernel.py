"""A softmax head that is a kernel smoother: nothing but rounding.

With t = x - o for any origin o, the weights of a kernel smoother are exactly those of softmax(z),

    z_k = sum_j t_j (c_kj - o_j) / b_j^2 + ln a_k - sum_j (c_kj - o_j)^2 / (2 b_j^2),

because -t_j^2 / (2 b_j^2) is common to all k. So is any h . t + g: slopes and offsets count up to a common shift.
The network stores slopes K_k, offsets G_k and responses less a middle, V_k = y_k - mu, all in the dtype.

Proof, in steps that each start from where the one before ended; S = max y - min y, M = max |V|, for one output.

1. Logits. The computed t~ is off by dt_j: x may be given in float64 and is rounded to the dtype first, u |x_j|, and
   the subtraction rounds once, u |t~_j|. With the stored weights off by dK, dG (up to a common shift; read off in
   rational arithmetic) and a dot product of d + 1 terms in any order,

       |z~_k - z_k| <= sum_j T_j dK_kj + dG_k
                     + sum_j |K_kj| dt_j + gamma_(d+1) (sum_j |K_kj| (T_j + dt_j) + |G_k|),    T_j = max |t_j|.

   Logits off by at most L each multiply the odds of any set of anchors by at most exp(2 L), so its weight moves by at
   most tanh(L/2), and an average of the y_k by at most S tanh(L/2). L is a sum of two, and tanh is subadditive.
2. Exponents. The gaps g_k = max z~ - z~_k are rounded, by e_k <= u g_k. With w = softmax(z~) and r its average, the
   average moves by |sum w_k (exp(e_k) - 1) (y_k - r)| / sum w_k exp(e_k) <= S u E_w[g] exp(Y) / exp(-u E_w[g]),
   Y = u max g. The entropy of w is E_w[g] + ln sum exp(-g) <= ln p, and one g is 0, so E_w[g] <= ln p. Anchors with
   g > 1000 are left out here: their weights are below the smallest normal number before and after, see 5.
3. exp errs by a factor within exp(+-E): S tanh(E/2), as in 1.
4. Sums. Responses are stored to within dv. The sum of the exponentials errs by a factor 1 + theta_(p-1) that all
   weights share; a weight's division and its place in a dot product of p terms add 1 + theta_(p+1):
   (gamma_(p-1) + gamma_(p+1)) M / (1 - gamma_(p-1)). Adding mu rounds once.
5. What underflows, exponentials and products, is off by less than the smallest normal number each; so are x_j and t_j,
   which is part of dt_j.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from flint import arb
from jaxtyping import Float

from anchorhead.errors import AnchorheadError
from anchorhead.language.expressions.precision import precision
from anchorhead.language.targets.kernel_smoother import KernelSmoother
from anchorhead.lemmas.known import Known
from anchorhead.network import Attention
from anchorhead.proof.arithmetic.affine_forms import Forms, Sources
from anchorhead.proof.arithmetic.arithmetic import UP, Arithmetic
from anchorhead.proof.arithmetic.readings import Refusal, constant_part, constants

FAR = 1000.0
LOG_ERROR = 2.0**-140
METHOD = (
    "the head is the smoother in exact arithmetic; stored weights compared with exact ones in rational arithmetic, "
    "logits that err by L move an average by tanh(L/2) of the range of its values"
)


@dataclass(frozen=True, eq=False)
class Smoothed:
    """The claim that one token of inputs becomes what a smoother makes of it."""

    target: KernelSmoother

    @property
    def given(self) -> tuple[int, int]:
        """Tokens and inputs."""
        return 1, self.target.inputs

    @property
    def outputs(self) -> int:
        return self.target.outputs

    def after(self, sources: Sources) -> Sources:
        """A mean of responses lies between them."""
        return Sources(*(end(self.target.responses, axis=0)[None, None] for end in (np.min, np.max)))


@dataclass(frozen=True, eq=False)
class Kernel:
    """softmax_k(slopes_k . (x - origin) + offsets_k), the mean of the values, and the bias of the output."""

    origin: Float[np.ndarray, " d"]
    slopes: Float[np.ndarray, "p d"]
    offsets: Float[np.ndarray, " p"]
    values: Float[np.ndarray, "p m"]
    middle: Float[np.ndarray, " m"]


def exact_logits(
    target: KernelSmoother, origin: Float[np.ndarray, " d"]
) -> tuple[list[list[Fraction]], list[Fraction]]:
    """Slopes (p, d) and offsets (p,) of z, a function of t = x - origin; exact, but for ln a_k, within LOG_ERROR."""
    start = [Fraction(o) for o in origin.astype(np.float64).tolist()]
    scale = [1 / Fraction(b) ** 2 for b in target.bandwidth.tolist()]
    logs = (
        [Fraction(0)] * target.anchors if target.amplitudes is None else [_log(a) for a in target.amplitudes.tolist()]
    )
    slopes, offsets = [], []
    for centre, log in zip(target.centres.tolist(), logs, strict=True):
        away = [Fraction(c) - o for c, o in zip(centre, start, strict=True)]
        slopes.append([a * s for a, s in zip(away, scale, strict=True)])
        offsets.append(log - sum((a * k for a, k in zip(away, slopes[-1], strict=True)), Fraction(0)) / 2)
    return slopes, offsets


def after_kernel(known: Known, layer: Attention) -> Known:
    """What is known after the last layer of a network."""
    claim = known.claim(Smoothed)
    stored, computed = bound(read(known, layer), claim.target, known.sources, known.arithmetic)
    eye, nothing = np.eye(claim.outputs)[None], np.zeros((1, claim.outputs))
    return known.ended(Forms(eye, nothing, stored[None], computed[None]))


def read(known: Known, layer: Attention) -> Kernel:
    """The head of one token that asks with its inputs, each less a constant, and a 1; all else is copied."""
    embed, inputs = known.embed, known.inputs
    if embed is None or len(inputs.constant) != 1 or layer.heads != 1:
        raise Refusal("a kernel smoother is one head on one token, right after the Embed")
    if not (layer.mask is layer.skip is layer.grid is None):
        raise Refusal("an attention has a mask, a skip or a grid")
    rows = layer.query[0].astype(np.float64)
    asks = (rows[:, inputs.varying[0]] != 0).any(axis=1)
    features = rows[asks].argmax(axis=1)
    weight = np.broadcast_to(embed.weight, (1, *embed.weight.shape[-2:]))[0, features]
    if not np.array_equal(rows[asks], np.eye(layer.width)[features]) or not np.array_equal(weight, np.eye(len(weight))):
        raise Refusal("a query is not the inputs, each less a constant")
    shown = Forms.joined([constant_part(one) for one in (inputs, known.others)])
    fixed = constants(rows[~asks], inputs, known.arithmetic)
    key, value = (constants(weights[0], shown, known.arithmetic) for weights in (layer.key, layer.value))
    if fixed.values.tolist() != [[1.0]] or not all(one.exact for one in (fixed, key, value)):
        raise Refusal("keys, values or constants of a query are not copies of features")
    if not np.array_equal(layer.output[0], np.eye(layer.outputs)):
        raise Refusal("values are not handed on as they are")
    middle = np.zeros(layer.outputs) if layer.bias is None else layer.bias.astype(np.float64)
    origin = -inputs.constant[0, features]
    return Kernel(origin, key.values[:, asks], key.values[:, ~asks][:, 0], value.values, middle)


def bound(
    kernel: Kernel, target: KernelSmoother, sources: Sources, arithmetic: Arithmetic
) -> tuple[Float[np.ndarray, " m"], Float[np.ndarray, " m"]]:
    """For each output what stored weights cost, and what the dtype's arithmetic does, for every float64 input."""
    origin, slopes, offsets, values, middle = (
        getattr(kernel, name) for name in ("origin", "slopes", "offsets", "values", "middle")
    )
    if (slopes.shape, values.shape) != (target.centres.shape, target.responses.shape):
        raise Refusal(f"{len(slopes)} anchors for {target.anchors} centres, or of other inputs and outputs")
    d, p, u = target.inputs, target.anchors, arithmetic.unit
    low, high = sources.low[0, 0], sources.high[0, 0]
    reach = np.maximum(np.abs(low - origin), np.abs(high - origin)) * UP
    cast = 0.0 if arithmetic.dtype == "float64" else u * np.maximum(np.abs(low), np.abs(high))
    given = cast + arithmetic.tiny
    moved = (given + u * (reach + given)) * UP + arithmetic.tiny

    exact_slopes, exact_offsets = exact_logits(target, origin)
    wrong_slopes = np.stack([_off([row[j] for row in exact_slopes], slopes[:, j]) for j in range(d)], axis=1)
    stored = float((wrong_slopes @ reach + _off(exact_offsets, offsets)).max()) * UP + 4 * LOG_ERROR
    sizes = np.abs(slopes) @ (reach + moved) + np.abs(offsets)
    if not sizes.max() <= float(np.finfo(arithmetic.dtype).max) / 1e3:
        raise AnchorheadError(
            f"the logits reach {sizes.max():.3g}, too large for {arithmetic.dtype}: use a larger bandwidth"
        )
    logits = np.abs(slopes) @ moved + float(arithmetic.gamma(d + 1)) * sizes
    logit = float(logits.max()) * UP + 4 * (d + 1) * arithmetic.tiny * (1 + float(reach.max()))

    spread = np.ptp(target.responses, axis=0) * UP
    wrong_values = _value_errors(target.responses, values, middle)
    softmax = _softmax(arithmetic, p, spread, np.abs(values).max(axis=0), np.abs(middle))
    wrong = np.tanh(stored / 2) * spread + wrong_values
    return wrong * UP, (np.tanh(logit / 2) * spread + softmax) * UP


def _softmax(
    arithmetic: Arithmetic,
    p: int,
    spread: Float[np.ndarray, " m"],
    size: Float[np.ndarray, " m"],
    middle: Float[np.ndarray, " m"],
) -> Float[np.ndarray, " m"]:
    """Steps 2 to 5, without the rounding of the responses."""
    u = arithmetic.unit
    exponents = u * np.log(p) * np.exp(u * (FAR + np.log(p)))
    few, many = float(arithmetic.gamma(p - 1)), float(arithmetic.gamma(p + 1))
    if not (few < 0.5 and many > 0):
        raise AnchorheadError(f"{p} centres are too many for a bound in {arithmetic.dtype}: use fewer, or float64")
    summed = (few + many) * size / (1 - few)
    added = u * (size + middle + summed) * (middle > 0)
    underflow = 8 * p * arithmetic.tiny * (size + spread + 1)
    return spread * (exponents + np.tanh(arithmetic.exp_error / 2)) + summed + added + underflow


def _off(exact: list[Fraction], stored: Float[np.ndarray, " p"]) -> Float[np.ndarray, " p"]:
    """How far the stored numbers are from the exact ones, up to the common shift that suits them best."""
    away = [one - Fraction(two) for one, two in zip(exact, stored.tolist(), strict=True)]
    shift = (max(away) + min(away)) / 2
    return np.array([float(abs(a - shift)) for a in away]) * UP


def _value_errors(
    responses: Float[np.ndarray, "p m"], values: Float[np.ndarray, "p m"], middle: Float[np.ndarray, " m"]
) -> Float[np.ndarray, " m"]:
    worst = [
        max(abs(Fraction(v) + Fraction(mu) - Fraction(y)) for v, y in zip(column, truth, strict=True))
        for column, truth, mu in zip(values.T.tolist(), responses.T.tolist(), middle.tolist(), strict=True)
    ]
    return np.array([float(error) for error in worst]) * UP


def _log(a: float) -> Fraction:
    """ln a to within LOG_ERROR."""
    with precision(192):
        mantissa, exponent = arb(a).log().mid().man_exp()
    return Fraction(int(mantissa)) * Fraction(2) ** int(exponent)
