"""Neurons as softmax attention on a GPU: the formulas of `attend.py`, one Triton kernel each.

A kernel reads every entry once, computes in float32 and writes once, so it takes about the time of a copy. Weights are
read from the buffers they are stored in. Float32 results use the precise exponential and quotient; in float16 and
bfloat16, whose rounding is coarser, the hardware's fast ones.
"""

# pyright: reportCallIssue=false, reportGeneralTypeIssues=false, reportOptionalMemberAccess=false
# Kernels are written in Triton's language, not in Python's.

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

try:
    import triton
    import triton.language as tl
    from triton.language.extra import libdevice
except ImportError as error:
    raise ImportError("the package triton is not installed: path='triton' needs it") from error

Weights = dict[str, Tensor]
BLOCK = 4096  # entries of one program
WARPS = 4


def own_powers(weights: Weights, own_index: int, s: Tensor) -> Tensor:
    """r(s) as a quotient of polynomials in one exponential."""
    s = s.contiguous()
    out = torch.empty_like(s)
    quotient, straight = weights["quotient"].float(), weights["straight"].float()
    _own_powers[(triton.cdiv(s.numel(), BLOCK),)](
        s,
        out,
        s.numel(),
        quotient,
        straight,
        POWERS=len(quotient) // 2 - 2,
        OWN=own_index,
        STRAIGHT=len(straight) > 0,
        PRECISE=s.dtype == torch.float32,
        BLOCK=BLOCK,
        num_warps=WARPS,
        enable_fp_fusion=True,
    )
    return out


def own_direct(weights: Weights, own_index: int, s: Tensor) -> Tensor:
    """r(s) from the exponentials of all logits less the largest."""
    count = (len(weights["keys"]),)
    return _attended(s, s, weights, count, weights["own_value"], weights["values"], weights["straight"])


def gate(weights: Weights, counts: tuple[int, ...], g: Tensor, u: Tensor) -> Tensor:
    """r(g, u): softmaxes over counts[j] keys each, the last of them the token's own."""
    nothing = weights["factors"][:0]
    return _attended(g, u.to(g.dtype), weights, counts, weights["factors"], nothing, nothing)


def _attended(
    x: Tensor, carried: Tensor, weights: Weights, counts: tuple[int, ...], own: Tensor, values: Tensor, straight: Tensor
) -> Tensor:
    x, carried = x.contiguous(), carried.contiguous()
    out = torch.empty_like(x)
    _softmaxes[(triton.cdiv(x.numel(), BLOCK),)](
        x,
        carried,
        out,
        x.numel(),
        weights["keys"].float(),
        values.float(),
        own.float(),
        straight.float(),
        COUNTS=counts,
        PARTS=len(counts),
        OWN=len(own) > 0,
        VALUES=len(values) > 0,
        STRAIGHT=len(straight) > 0,
        PRECISE=x.dtype == torch.float32,
        BLOCK=BLOCK,
        num_warps=WARPS,
        enable_fp_fusion=True,
    )
    return out


@triton.jit
def _exp(x, PRECISE: tl.constexpr):
    return libdevice.exp(x) if PRECISE else libdevice.fast_expf(x)


@triton.jit
def _over(a, b, PRECISE: tl.constexpr):
    return tl.div_rn(a, b) if PRECISE else libdevice.fast_dividef(a, b)


@triton.jit
def _own_powers(
    s_ptr,
    out_ptr,
    size,
    quotient_ptr,
    straight_ptr,
    POWERS: tl.constexpr,
    OWN: tl.constexpr,
    STRAIGHT: tl.constexpr,
    PRECISE: tl.constexpr,
    BLOCK: tl.constexpr,
):
    """n / d with y = exp(rate clip(s, low, high)), n and d by Horner's rule; n has own s at the power OWN."""
    at = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    inside = at < size
    s = tl.load(s_ptr + at, inside, other=0.0).to(tl.float32)
    rate = tl.load(quotient_ptr)
    low = tl.load(quotient_ptr + 1)
    high = tl.load(quotient_ptr + 2)
    own = tl.load(quotient_ptr + 3)
    numerator_ptr = quotient_ptr + 4
    denominator_ptr = numerator_ptr + POWERS
    t = tl.maximum(s, low, propagate_nan=tl.PropagateNan.ALL)
    t = tl.minimum(t, high, propagate_nan=tl.PropagateNan.ALL)
    y = _exp(rate * t, PRECISE)
    n = tl.load(numerator_ptr + POWERS - 1)
    d = tl.load(denominator_ptr + POWERS - 1)
    if POWERS - 1 == OWN:
        n += own * s
    for step in tl.static_range(2, POWERS + 1):
        n = n * y + tl.load(numerator_ptr + POWERS - step)
        d = d * y + tl.load(denominator_ptr + POWERS - step)
        if POWERS - step == OWN:
            n += own * s
    r = _over(n, d, PRECISE)
    if STRAIGHT:
        r += tl.load(straight_ptr) * s + tl.load(straight_ptr + 1)
    tl.store(out_ptr + at, r.to(out_ptr.dtype.element_ty), inside)


@triton.jit
def _softmax(
    x,
    last,
    keys_ptr,
    values_ptr,
    COUNT: tl.constexpr,
    OWN: tl.constexpr,
    VALUES: tl.constexpr,
    PRECISE: tl.constexpr,
):
    """sum_k v_k e^(z_k - top) / sum_k e^(z_k - top); the own key comes last, with the value `last`."""
    top = tl.load(keys_ptr) * x + tl.load(keys_ptr + 1)
    for k in tl.static_range(1, COUNT):
        z = tl.load(keys_ptr + 2 * k) * x + tl.load(keys_ptr + 2 * k + 1)
        top = tl.maximum(top, z, propagate_nan=tl.PropagateNan.ALL)
    total = tl.zeros_like(x)
    mean = tl.zeros_like(x)
    for k in tl.static_range(COUNT):
        e = _exp(tl.load(keys_ptr + 2 * k) * x + tl.load(keys_ptr + 2 * k + 1) - top, PRECISE)
        total += e
        if OWN and k == COUNT - 1:
            mean += e * last
        elif VALUES:
            mean += e * tl.load(values_ptr + k)
    return _over(mean, total, PRECISE)


@triton.jit
def _softmaxes(
    x_ptr,
    carried_ptr,
    out_ptr,
    size,
    keys_ptr,
    values_ptr,
    own_ptr,
    straight_ptr,
    COUNTS: tl.constexpr,
    PARTS: tl.constexpr,
    OWN: tl.constexpr,
    VALUES: tl.constexpr,
    STRAIGHT: tl.constexpr,
    PRECISE: tl.constexpr,
    BLOCK: tl.constexpr,
):
    """The sum of the softmaxes of all parts, over COUNTS keys each; the own key's value is own carried."""
    at = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    inside = at < size
    x = tl.load(x_ptr + at, inside, other=0.0).to(tl.float32)
    carried = tl.load(carried_ptr + at, inside, other=0.0).to(tl.float32)
    r = tl.zeros_like(x)
    for part in tl.static_range(PARTS):
        last = tl.load(own_ptr + part) * carried if OWN else carried
        r += _softmax(x, last, keys_ptr, values_ptr, COUNTS[part], OWN, VALUES, PRECISE)
        keys_ptr += 2 * COUNTS[part]
    if STRAIGHT:
        r += tl.load(straight_ptr) * x + tl.load(straight_ptr + 1)
    tl.store(out_ptr + at, r.to(out_ptr.dtype.element_ty), inside)


KERNELS: dict[str, Callable[..., Tensor]] = {"powers": own_powers, "direct": own_direct, "gate": gate}
