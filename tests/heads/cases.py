"""Targets that the tests of this room share: function, kinks, domain."""

from __future__ import annotations

import numpy as np
from scipy.special import erf

KNOTS = np.array([-0.83, -0.61, -0.35, -0.2, 0.05, 0.17, 0.4, 0.58, 0.77])
HEIGHTS = np.array([0.3, -0.2, 0.5, 0.1, 0.9, -0.4, 0.0, 0.6, 0.2, -0.1, 0.7])

TARGETS = {
    "relu": (lambda x: np.maximum(x, 0.0), (0.0,), -1.0, 1.0),
    "hardtanh": (lambda x: np.clip(x, -1.0, 1.0), (-1.0, 1.0), -2.0, 2.0),
    "abs": (np.abs, (0.0,), -1.0, 1.0),
    "leaky_relu": (lambda x: np.where(x > 0, x, 0.01 * x), (0.0,), -1.0, 1.0),
    "soft_threshold": (lambda x: np.sign(x) * np.maximum(np.abs(x) - 0.5, 0.0), (-0.5, 0.5), -2.0, 2.0),
    "elu": (lambda x: np.where(x > 0, x, np.expm1(np.minimum(x, 0.0))), (0.0,), -5.0, 5.0),
    "hardswish": (lambda x: x * np.clip(x + 3, 0, 6) / 6, (-3.0, 3.0), -6.0, 6.0),
    "broken line": (lambda x: np.interp(x, [-1.0, *KNOTS, 1.0], HEIGHTS), tuple(KNOTS), -1.0, 1.0),
    "silu": (lambda x: x / (1 + np.exp(-x)), (), -10.0, 10.0),
    "square": (np.square, (), -1.0, 1.0),
    "gelu": (lambda x: x * (1 + erf(x / np.sqrt(2))) / 2, (), -10.0, 10.0),
    "sin": (np.sin, (), -np.pi, np.pi),
    "sin(3x) exp(x)": (lambda x: np.sin(3 * x) * np.exp(x), (), -1.0, 1.0),
    "exp(-x^2)": (lambda x: np.exp(-x * x), (), -4.0, 4.0),
    "sigmoid": (lambda x: 1 / (1 + np.exp(-x)), (), -8.0, 8.0),
    "tanh": (np.tanh, (), -5.0, 5.0),
}
