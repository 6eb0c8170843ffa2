"""The error of the heads for a gated neuron phi(g) u, relative to max(1, |g|) |u|.

    r = sum_j F_j w_j(g) u,   w_j = 1 / (1 + sum_k e^(z_jk)),   z_jk = slopes_jk g + offsets_jk

In exact arithmetic r - phi(g) u = (sum_j F_j w_j - phi) u, so that phi and sum_j F_j w_j are compared as functions of
g, by complex balls and the theorem of `ellipse.py`. The rounding is in `gate_rounding.py`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from anchorhead.errors import AnchorheadError
from anchorhead.heads.self_keys.gate import GatePart
from anchorhead.language.targets import ScalarTarget, target_of
from anchorhead.proof.arithmetic.arithmetic import Arithmetic
from anchorhead.proof.enclosures.balls import ball_heads
from anchorhead.proof.enclosures.relative import prove_relative
from anchorhead.proof.heads.gate_rounding import gate_rounding, with_own


@dataclass(frozen=True)
class GateBound:
    """Bounds relative to max(1, |g|) |u|; `found` is the largest |phi - sum F w| / max(1, |g|) seen, at g = `at`."""

    exact: float
    rounding: float
    found: float
    at: float


def prove_gate(function: str, parts: Sequence[GatePart], low: float, high: float, arithmetic: Arithmetic) -> GateBound:
    """For every g of the dtype in [low, high] and every u whose products neither overflow nor underflow."""
    target = target_of(function, (low, high))
    if not isinstance(target, ScalarTarget) or target.outputs != 1:
        raise AnchorheadError(f"{function!r} is not a named function of one variable: nothing can be proven of it")
    rounding = gate_rounding(parts, low, high, arithmetic)
    (head,) = ball_heads([with_own(part) for part in parts])
    exact, sup = prove_relative(target, head, rounding / 50)
    return GateBound(exact, rounding, sup.found, sup.at)
