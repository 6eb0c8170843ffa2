"""Heads with their own key in closed form: activations made of lines and exponentials.

relu          own key of slope A, a register of slope 0 and value 0: s sigmoid(A s), 0.28 / A from relu
leaky relu    the same times 1 - slope, and slope s is skipped past it; abs likewise
clip          own key of slope 0 between registers of slopes -A, A and values low, high, crossing where s is low, high
silu          own key of slope 1 against a register of slope 0: exact. x sigmoid(b x) with slope b
tanh          two registers of slopes 0, 2 and values -1, 1: exact. sigmoid with slopes 0, 1 and values 0, 1
elu           registers of slopes 0, …, q - 1 and weights e^k, e small, value -alpha for k = 0, else alpha (1/e - 1):
              the numerator is alpha (exp(s) - 1) times the denominator up to e^(q-1) exp(q s). The own key, of slope
              A, takes over at 0: 0.24 / A^2 from elu for alpha = 1, where slopes meet, else 0.28 (1 - alpha) / A
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from anchorhead.heads.arithmetic import arithmetic_of
from anchorhead.heads.atom import Dtype
from anchorhead.heads.self_keys.self_key import Own, SelfKeyHead
from anchorhead.language.analysis.asymptotes import gate_factor
from anchorhead.language.expressions.expression import Expression
from anchorhead.language.expressions.named import SELU_ALPHA, SELU_SCALE
from anchorhead.language.expressions.precision import FLOAT64_BITS, precision

_STEEP: dict[Dtype, float] = {"float32": 2.0**24, "float64": 2.0**52}
_ELU_RATIO: dict[Dtype, tuple[int, int]] = {"float32": (8, 4), "float64": (12, 5)}


@precision(FLOAT64_BITS)
def closed(function: Expression, name: str, dtype: Dtype) -> SelfKeyHead | None:
    """The head for an activation that has one in closed form, with weights rounded to the dtype; not yet proven."""
    factor = gate_factor(function)
    if factor is not None:
        return _head(name, dtype, [(0, 0, 0)], Own(factor, 0.0, 1.0), step=factor)
    if function.op != "variable" and (not function.args or function.args[0].op != "variable"):
        return None
    numbers = [float(arg.ball({}).mid()) for arg in function.args[1:]]
    build = _FORMS.get(function.op)
    return None if build is None else build(name, dtype, *numbers)


def _head(
    name: str,
    dtype: Dtype,
    registers: list[tuple[float, float, float]],
    own: Own | None,
    step: float = 0.0,
    skip: float = 0.0,
    bias: float = 0.0,
) -> SelfKeyHead:
    """Registers as (slope, offset, value), all weights rounded once."""
    kind: Any = np.dtype(dtype).type
    slopes, offsets, values = (np.array(column, dtype) for column in zip(*registers, strict=True))
    if own is not None:
        own = Own(float(kind(own.slope)), float(kind(own.offset)), float(kind(own.value)))
    skip, bias, step = (float(kind(number)) for number in (skip, bias, step))
    return SelfKeyHead(name, slopes, offsets, values, own, skip, bias, step, -np.inf, np.inf, dtype, np.inf, np.inf)


def _kinked(name: str, dtype: Dtype, left: float, right: float) -> SelfKeyHead:
    """left s for s < 0, right s for s > 0."""
    skip = float(np.dtype(dtype).type(left))
    return _head(name, dtype, [(0, 0, 0)], Own(_STEEP[dtype], 0.0, right - skip), step=_STEEP[dtype], skip=skip)


def _clipped(
    name: str,
    dtype: Dtype,
    low: float,
    high: float,
    slope: float = 1.0,
    values: tuple[float, float] | None = None,
    skip: float = 0.0,
    bias: float = 0.0,
) -> SelfKeyHead:
    """slope s between low and high, and beyond the values there."""
    far = max(abs(low), abs(high), 2.0**-20)
    # the logits A (s - high) are off by 2 u A high: a little less than 1 where keys cross
    steep = min(2.0 ** math.floor(math.log2(1 / (4 * arithmetic_of(dtype).unit * far))), _STEEP[dtype])
    first, last = values or (slope * low, slope * high)
    registers = [(-steep, steep * low, first), (steep, -steep * high, last)]
    return _head(name, dtype, registers, Own(0.0, 0.0, slope), skip=skip, bias=bias)


def _elu(name: str, dtype: Dtype, alpha: float, rate: float = 1.0, scale: float = 1.0) -> SelfKeyHead:
    """scale s for s > 0, scale alpha (exp(rate s) - 1) below."""
    bits, count = _ELU_RATIO[dtype]
    kind: Any = np.dtype(dtype).type
    rate = float(kind(rate))
    offsets = [float(kind(-k * bits * math.log(2))) for k in range(count)]
    # e^offset_(k-1) / e^offset_k - 1, of the offsets as they are stored
    values = [-1.0, *(math.expm1(offsets[k - 1] - offsets[k]) for k in range(1, count))]
    registers = [(k * rate, offsets[k], scale * alpha * values[k]) for k in range(count)]
    return _head(name, dtype, registers, Own(_STEEP[dtype], 0.0, scale))


def _two(name: str, dtype: Dtype, rise: float, left: float, right: float) -> SelfKeyHead:
    return _head(name, dtype, [(0, 0, left), (rise, 0, right)], None, step=rise)


_FORMS = {
    "relu": lambda name, dtype: _kinked(name, dtype, 0.0, 1.0),
    "leaky_relu": lambda name, dtype, slope: _kinked(name, dtype, slope, 1.0),
    "abs": lambda name, dtype: _kinked(name, dtype, -1.0, 1.0),
    "relu6": lambda name, dtype: _clipped(name, dtype, 0.0, 6.0),
    "hardtanh": _clipped,
    "clip": _clipped,
    "hardsigmoid": lambda name, dtype: _clipped(name, dtype, -3.0, 3.0, 1 / 6, (-0.5, 0.5), bias=0.5),
    "soft_threshold": lambda name, dtype, lam: _clipped(name, dtype, -lam, lam, -1.0, skip=1.0),
    "silu": lambda name, dtype: _head(name, dtype, [(0, 0, 0)], Own(1.0, 0.0, 1.0), step=1.0),
    "tanh": lambda name, dtype: _two(name, dtype, 2.0, -1.0, 1.0),
    "sigmoid": lambda name, dtype: _two(name, dtype, 1.0, 0.0, 1.0),
    "elu": _elu,
    "celu": lambda name, dtype, alpha: _elu(name, dtype, alpha, rate=1 / alpha),
    "selu": lambda name, dtype: _elu(
        name, dtype, float(SELU_ALPHA.ball({}).mid()), scale=float(SELU_SCALE.ball({}).mid())
    ),
    "variable": lambda name, dtype: _head(name, dtype, [(0, 0, 0)], None, step=1.0, skip=1.0),
}
