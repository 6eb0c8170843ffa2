"""Checks the bound of a kernel smoother again, from the stored weights and the stored target alone, in balls.

Slopes, offsets and values are read through the matrices of the network as rationals. The estimate is the one that
proof.kernel_smoother derives; no code is shared, and every number here is a ball that encloses the exact one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from flint import arb
from jaxtyping import Float

from anchorhead.certificate import Certificate
from anchorhead.errors import AnchorheadError, CertificateError
from anchorhead.network import Network
from anchorhead.proof.arithmetic import Arithmetic, arithmetic_of
from anchorhead.proof.kernel_smoother import prove_kernel_smoother
from anchorhead.proof.layers import only_attention
from anchorhead.proof.overflow import require_room
from anchorhead.proof.statement import Statement
from anchorhead.targets.kernel_smoother import KernelSmoother
from anchorhead.targets.precision import precision
from anchorhead.targets.record import TargetRecord

PRECISION = 192
FAR = 1000


@dataclass(frozen=True, eq=False)
class _Form:
    """y(x) = bias + sum_k values_k softmax_k(slopes_k . (x - origin) + offsets_k), as stored."""

    origin: Float[np.ndarray, " d"]
    slopes: Float[np.ndarray, "p d"]
    offsets: Float[np.ndarray, " p"]
    values: Float[np.ndarray, "p m"]
    bias: Float[np.ndarray, " m"]


def check_kernel_smoother(network: Network, record: TargetRecord, certificate: Certificate) -> Statement:
    """What follows, after the bound was found justified in balls; raises CertificateError if not."""
    try:
        target = KernelSmoother.from_record(record)
        box = certificate.on.broadcast_to((target.inputs,))
    except AnchorheadError as error:
        raise CertificateError(f"the stored target or box cannot be read: {error}") from error
    form = _read(network)
    sizes, needed = (form.slopes.shape, form.values.shape), (target.centres.shape, target.responses.shape)
    if sizes != needed:
        raise CertificateError(f"the network has slopes and values of shape {sizes}, its target {needed}")
    require_room(network, box)
    with precision(PRECISION):
        error = _error(form, target, box.low, box.high, arithmetic_of(network.dtype))
    if not error <= certificate.bound:
        raise CertificateError(
            f"the bound {certificate.bound:.4g} is not justified: rounding may reach {float(error.upper()):.4g}"
        )
    return prove_kernel_smoother(network, target, box).statement(target)


def _read(network: Network) -> _Form:
    embed, attention = network.embed, only_attention(network)
    if attention is None or embed.tokens != 1 or attention.heads != 1:
        raise CertificateError("the layers are not those of a kernel smoother")
    weight = embed.weight.reshape(embed.weight.shape[-2:])
    row = embed.bias.reshape(1, -1)
    tokens = row if embed.registers is None else np.concatenate([row, embed.registers])
    asked, key, value = (_picked(matrix[0]) for matrix in (attention.query, attention.key, attention.value))
    moving = (weight != 0).any(axis=1)
    if not np.array_equal(attention.output[0], np.eye(len(value))) or moving[key].any() or moving[value].any():
        raise CertificateError("keys or values depend on the input, or what is read is changed")
    turning = [place for place, feature in enumerate(asked) if moving[feature]]
    still = [place for place, feature in enumerate(asked) if not moving[feature]]
    if len(still) != 1 or row[0, asked[still[0]]] != 1:
        raise CertificateError("the query does not hold exactly one 1 beside the inputs")
    features = [asked[place] for place in turning]
    if not np.array_equal(weight[features], np.eye(embed.inputs)):
        raise CertificateError("the query does not hold every input once")
    keys = tokens[:, key]
    bias = np.zeros(attention.outputs) if attention.bias is None else attention.bias
    return _Form(-row[0, features], keys[:, turning], keys[:, still[0]], tokens[:, value], bias)


def _picked(matrix: np.ndarray) -> list[int]:
    """The feature that each row copies."""
    if not (((matrix != 0).sum(axis=1) == 1).all() and (matrix.max(axis=1) == 1).all()):
        raise CertificateError("queries, keys and values are not copies of features")
    return [int(feature) for feature in matrix.argmax(axis=1)]


def _error(form: _Form, target: KernelSmoother, low: np.ndarray, high: np.ndarray, model: Arithmetic) -> arb:
    """A ball whose upper end bounds the error of every output on the box."""
    p, d = form.slopes.shape
    u, tiny = arb(model.unit), arb(model.tiny)
    origin = _balls(form.origin)
    ends = list(zip(_balls(low), _balls(high), strict=True))
    reach = [_largest([abs(a - o), abs(b - o)]) for (a, b), o in zip(ends, origin, strict=True)]
    cast = [arb(0) if model.dtype == "float64" else u * _largest([abs(a), abs(b)]) for a, b in ends]
    rounded = [one + tiny for one in cast]
    query_error = [r + u * (t + r) + tiny for t, r in zip(reach, rounded, strict=True)]

    scale = [1 / b**2 for b in _balls(target.bandwidth)]
    slope_errors: list[list[arb]] = []
    offset_residues = [-g for g in _balls(form.offsets)]
    if target.amplitudes is not None:
        offset_residues = [r + a.log() for r, a in zip(offset_residues, _balls(target.amplitudes), strict=True)]
    for j in range(d):
        away = [c - origin[j] for c in _balls(target.centres[:, j])]
        slope_errors.append(
            _distances([a * scale[j] - k for a, k in zip(away, _balls(form.slopes[:, j]), strict=True)])
        )
        offset_residues = [r - a**2 * scale[j] / 2 for r, a in zip(offset_residues, away, strict=True)]
    offset_errors = _distances(offset_residues)

    stored = evaluated = arb(0)
    lost = 4 * (d + 1) * tiny * (1 + _largest(reach))
    for k, (slopes, offset) in enumerate(zip(form.slopes, _balls(form.offsets), strict=True)):
        sizes = [abs(s) for s in _balls(slopes)]
        wrong = [slope_errors[j][k] * reach[j] for j in range(d)]
        moved = [s * e for s, e in zip(sizes, query_error, strict=True)]
        terms = [s * (t + e) for s, t, e in zip(sizes, reach, query_error, strict=True)]
        stored = stored.max(sum(wrong, offset_errors[k]))
        total = sum(terms, abs(offset))
        if not total < float(np.finfo(model.dtype).max) / 100:
            raise CertificateError(f"the logits reach {float(total):.3g}, too large for {model.dtype}")
        evaluated = evaluated.max(sum(moved, arb(0)) + _gamma(d + 1, u) * total + lost)
    shift = (stored.upper() / 2).tanh() + (evaluated.upper() / 2).tanh()
    if not p * u < 0.25:
        raise CertificateError(f"{p} anchors are too many for a bound in {model.dtype}")
    log_p = arb(p).log()
    shift += u * log_p * (u * (FAR + log_p)).exp() + (arb(model.exp_error) / 2).tanh()
    return _largest([_output(form, target, m, shift, u, tiny) for m in range(target.outputs)])


def _output(form: _Form, target: KernelSmoother, m: int, shift: arb, u: arb, tiny: arb) -> arb:
    """The error of one output, from how far the weight of any set of anchors may shift."""
    p = len(form.offsets)
    truth, values, bias = _balls(target.responses[:, m]), _balls(form.values[:, m]), arb(float(form.bias[m]))
    spread = _largest(truth) + _largest([-y for y in truth])
    wrong = _largest([abs(v + bias - y) for v, y in zip(values, truth, strict=True)])
    size = _largest([abs(v) for v in values])
    summed = (_gamma(p - 1, u) + _gamma(p + 1, u)) * size / (1 - _gamma(p - 1, u))
    added = arb(0) if bias.is_zero() else u * (size + abs(bias) + summed)
    return spread * shift + wrong + summed + added + 8 * p * tiny * (size + spread + 1)


def _distances(residues: list[arb]) -> list[arb]:
    """How far each is from the middle between the least and the largest: a common shift changes no softmax."""
    middle = ((_largest(residues) - _largest([-r for r in residues])) / 2).mid()
    return [abs(r - middle) for r in residues]


def _gamma(n: int, u: arb) -> arb:
    return n * u / (1 - n * u)


def _balls(numbers: np.ndarray) -> list[arb]:
    """Stored numbers, exactly."""
    return [arb(number) for number in numbers.astype(np.float64).tolist()]


def _largest(balls: Sequence[arb]) -> arb:
    largest = balls[0]
    for ball in balls[1:]:
        largest = largest.max(ball)
    return largest
