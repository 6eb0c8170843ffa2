"""Checks the bound of a head on a scalar again, from the stored weights and the stored target alone.

The exact-arithmetic part is proven anew with complex balls (proof.analytic). Rounding is bounded by a route of its own:
the interval is halved until, on every cell, enclosures of the weights in real balls leave room for it under the bound.
"""

from __future__ import annotations

from dataclasses import replace
from math import exp, expm1, log

import numpy as np
from flint import arb

from anchorhead.certificate import Certificate
from anchorhead.errors import AnchorheadError, CertificateError
from anchorhead.network import Network
from anchorhead.proof.analytic import lipschitz_bound
from anchorhead.proof.arithmetic import Arithmetic, arithmetic_of
from anchorhead.proof.balls import upper
from anchorhead.proof.head import prove_exact, prove_head
from anchorhead.proof.head_form import HeadForm, ReadPart, head_form
from anchorhead.proof.overflow import require_room
from anchorhead.proof.statement import Statement, error_of
from anchorhead.targets import ScalarTarget
from anchorhead.targets.precision import precision
from anchorhead.targets.record import TargetRecord

PRECISION = 128
MOST_CELLS = 200_000
NARROWEST = 2.0**-100  # of the interval: a cell that is halved no more
UP = 1 + 1e-9
FARTHEST = 300.0
"""Errors of logits up to here are taken as they are."""


def check_head(network: Network, record: TargetRecord, certificate: Certificate) -> Statement:
    """What follows, after the bound was found justified by rounding's own route; raises CertificateError if not."""
    try:
        target = ScalarTarget.from_json(record.data)
    except AnchorheadError as error:
        raise CertificateError(f"the stored target cannot be read: {error}") from error
    low, high = (float(end.reshape(-1)[0]) for end in (certificate.on.low, certificate.on.high))
    if (low, high) != (target.low, target.high) or certificate.on.low.size != 1:
        raise CertificateError(f"the certificate is for {certificate.on}, the target for [{target.low}, {target.high}]")
    form = head_form(network, low, high)
    require_room(network, certificate.on.broadcast_to((1, 1)))
    if len(form.bias) != target.outputs:
        raise CertificateError(f"the network has {len(form.bias)} outputs, the target {target.outputs}")
    model = arithmetic_of(network.dtype)
    exact = prove_exact(form.parts, form.origin, form.bias, target, floor=certificate.bound / 200).bound
    with precision(PRECISION):
        _Rounding(form, target, model, certificate.bound, exact).run()
    found = prove_head(form.parts, form.origin, form.bias, target, model).statement(target)
    return replace(found, error_at=error_of(network, lambda x: target.values(x[:, 0])))


class _Rounding:
    def __init__(self, form: HeadForm, target: ScalarTarget, model: Arithmetic, bound: float, exact: float) -> None:
        self.form, self.model, self.bound, self.exact = form, model, bound, exact
        self.speeds = [lipschitz_bound([part], target.low, target.high, form.origin) for part in form.parts]
        origin = arb(form.origin)
        self.low, self.high = arb(target.low) - origin, arb(target.high) - origin
        self.width = target.high - target.low

    def run(self) -> None:
        pending, cells = [(self.low, self.high)], 0
        while pending:
            left, right = pending.pop()
            centre, half = ((left + right) / 2).mid(), ((right - left) / 2).upper()
            cells += 1
            rounding = self._on_cell(centre, half)
            if (self.exact + rounding) * UP <= self.bound:
                continue
            if cells > MOST_CELLS or float(half) < NARROWEST * self.width or self.exact > self.bound:
                raise CertificateError(
                    f"the bound {self.bound:.4g} is not justified: {self.exact:.4g} in exact arithmetic, and "
                    f"{rounding:.4g} by rounding near s = {float(centre) + self.form.origin:.8g}"
                )
            pending += [(left, centre), (centre, right)]

    def _on_cell(self, centre: arb, half: arb) -> float:
        """A bound on the rounding of all outputs for t = s - origin within half of centre."""
        t = arb(centre, half)
        parts = [
            self._part(part, speed, centre, half, t) for part, speed in zip(self.form.parts, self.speeds, strict=True)
        ]
        worst = 0.0
        for m, bias in enumerate(self.form.bias):
            errors, sizes = ([part[m][n] for part in parts] for n in (0, 1))
            additions = len(parts) - 1 + int(bias != 0)
            summed = float(self.model.gamma(additions)) * (sum(sizes) + sum(errors) + abs(float(bias)))
            worst = max(worst, sum(errors) + summed)
        return worst * UP

    def _part(self, part: ReadPart, speed: float, centre: arb, half: arb, t: arb) -> list[tuple[float, float]]:
        slopes, offsets = ([arb(float(x)) for x in column] for column in (part.slopes, part.offsets))
        at = [a * centre + g for a, g in zip(slopes, offsets, strict=True)]
        top = max(range(len(at)), key=lambda k: float(at[k].mid()))
        gaps = [(slopes[top] - a) * t + offsets[top] - g for a, g in zip(slopes, offsets, strict=True)]
        weights = [_largest_weight(a, g, slopes, offsets, t) for a, g in zip(slopes, offsets, strict=True)]
        exact = [(-((slopes[top] - a) * centre + offsets[top] - g)).exp() for a, g in zip(slopes, offsets, strict=True)]
        total = sum(exact, arb(0))

        u, largest = self.model.unit, upper(abs(t))
        lift = max(0.0, max(-float(gap.lower()) for gap in gaps))
        steps = [upper(abs(a) * abs(t)) + upper(abs(a * t + g)) for a, g in zip(slopes, offsets, strict=True)]
        # s, s - origin, the product, the sum and its distance from the largest may each become 0 where they are tiny
        delta = [
            u * step * UP + 4 * self.model.tiny * (1 + upper(abs(a))) for step, a in zip(steps, slopes, strict=True)
        ]
        if self.form.origin:
            delta = [d + u * largest * upper(abs(a - slopes[top])) * UP for d, a in zip(delta, slopes, strict=True)]
        most = max(delta)
        errors = [
            d + u * (max(upper(gap), 0.0) + lift + d + most) * UP + self.model.exp_error
            for d, gap in zip(delta, gaps, strict=True)
        ]
        relative = [0.0 if k == top else error + errors[top] for k, error in enumerate(errors)]
        reach = speed * upper(half)
        results = []
        for m in range(part.values.shape[1]):
            values = [float(v) for v in part.values[:, m]]
            mean = sum((e * v for e, v in zip(exact, values, strict=True)), arb(0)) / total
            away = [upper(abs(arb(v) - mean)) + reach for v in values]
            size = upper(abs(mean)) + reach
            bound = min(self._read(weights, choice, away, size, values) for choice in (errors, relative))
            results.append((bound, size))
        return results

    def _read(
        self, weights: list[float], errors: list[float], away: list[float], size: float, values: list[float]
    ) -> float:
        """The formula of proof.rounding, at one cell, in plain floats rounded up at the end."""
        p = len(weights)
        weights = [max(w, 1e-300) for w in weights]
        capped = [min(error, FARTHEST) for error in errors]
        # beyond that a weight is left out, if whatever its error it stays below 1e-99
        beyond = [log(w) + e for w, e in zip(weights, errors, strict=True) if e > FARTHEST]
        if any(one > log(1e-99) for one in beyond):
            return float("inf")
        denominator = exp(-min(sum(w * e for w, e in zip(weights, capped, strict=True)), 600.0))
        moved = sum(w * expm1(e) * a for w, e, a in zip(weights, capped, away, strict=True)) / denominator
        read = sum(w * exp(e) * abs(v) for w, e, v in zip(weights, capped, values, strict=True)) / denominator
        few, many = float(self.model.gamma(p - 1)), float(self.model.gamma(p + 1))
        summed = (many * read + few * (size + moved)) / (1 - float(self.model.gamma(p)))
        largest = float(np.abs(values).max()) + max(away) + 1
        left_out = 2 * len(beyond) * 1e-99 * largest / denominator
        return (moved + summed + left_out + 4 * p * self.model.tiny * largest) * UP


def _largest_weight(slope: arb, offset: arb, slopes: list[arb], offsets: list[arb], t: arb) -> float:
    """1 / sum_j exp(z_j - z_k) at its largest, each difference at its least."""
    least = (((a - slope) * t + g - offset).lower().exp() for a, g in zip(slopes, offsets, strict=True))
    return min(upper(1 / sum(least, arb(0))), 1.0)
