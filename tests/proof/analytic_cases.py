"""Heads with known targets, and an attack on a bound that shares no code with the proof."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
from flint import acb, arb, ctx
from scipy.special import erf

from anchorhead.heads.atom import Part


class Softmax(NamedTuple):
    slopes: np.ndarray
    offsets: np.ndarray
    values: np.ndarray


def softmax(slopes, offsets, values) -> Softmax:
    return Softmax(*(np.array(array, dtype=np.float64) for array in (slopes, offsets, values)))


def stored(*parts: Softmax) -> list[Part]:
    """As heads hold them."""
    return [Part.of(*part, "float64") for part in parts]


class Case(NamedTuple):
    parts: list[Softmax]
    pieces: list[tuple[arb, arb, Callable[[acb], acb]]]
    low: float
    high: float
    origin: float = 0.0
    bias: float = 0.0


def relu_part(sharpness: float, h: float) -> Softmax:
    return softmax([-sharpness, -h, h], [math.log(2), 0, 0], np.array([0, -1 / h, 1 / h]) * (1 + h * h / 4))


def relu_pieces(low: float, high: float):
    return [(arb(low), arb(0), lambda z: z * 0), (arb(0), arb(high), lambda z: z)]


def relu5() -> Softmax:
    """Odd values: the linear part, (a sinh(hs) + b sinh(2hs)) / (cosh(hs) + cosh(2hs)), is s + O(h^4)."""
    h = 1e-3
    # the linear term of the quotient is (a + 2b) hs / 2, the cubic one vanishes if (a + 8b) h = 15
    a_plus_2b, a_plus_8b = 2 / h, 15 / h
    b = (a_plus_8b - a_plus_2b) / 6
    a = a_plus_2b - 2 * b
    return softmax([-1e10, -2 * h, -h, h, 2 * h], [math.log(4), 0, 0, 0, 0], [0, -b, -a, a, b])


def gelu(z: acb) -> acb:
    return z * (1 + (z / arb(2).sqrt()).erf()) / 2


def fitted(f: Callable, low: float, high: float, slopes, offsets) -> Softmax:
    s = np.cos(np.linspace(0, np.pi, 2001)) * (high - low) / 2 + (high + low) / 2
    logits = np.outer(s, slopes) + offsets
    weights = np.exp(logits - logits.max(axis=1, keepdims=True))
    weights /= weights.sum(axis=1, keepdims=True)
    return softmax(slopes, offsets, np.linalg.lstsq(weights, f(s), rcond=None)[0])


def gelu8() -> Softmax:
    slopes = [-3.20476, -3.199188, -1.50346, -0.017413, 1.287588, 1.325484, 2.649796, 2.661953]
    offsets = [0.0, 0.045807, 5.192117, 7.095221, 6.184608, 6.198265, 3.722129, 3.612011]
    return fitted(lambda s: s * (1 + erf(s / math.sqrt(2))) / 2, -10, 10, slopes, offsets)


def random_part(seed: int, anchors: int, steepness: float, low=-1.0, high=1.0) -> Softmax:
    rng = np.random.default_rng(seed)
    slopes = np.sort(rng.normal(size=anchors)) * steepness
    crossings = np.sort(rng.uniform(low, high, anchors - 1))
    offsets = np.concatenate([[0], np.cumsum(-np.diff(slopes) * crossings)])
    return softmax(slopes, offsets, rng.normal(size=anchors))


def exact(parts: Sequence[Softmax], origin: float, bias: float, output: int | None = None) -> Callable:
    """The head as its formula says, for real and complex balls: no gauge, no order, many bits."""

    def head(s):
        t, result = s - arb(origin), s * 0 + arb(bias)
        for slopes, offsets, values in parts:
            column = values if output is None else values[:, output]
            weights = [(arb(float(a)) * t + arb(float(g))).exp() for a, g in zip(slopes, offsets, strict=True)]
            top = sum((w * arb(float(v)) for w, v in zip(weights, column, strict=True)), s * 0)
            result += top / sum(weights, s * 0)
        return result

    return head


def perturbed_random(seed: int, anchors: int, steepness: float) -> Case:
    """A random head against itself with values moved by about 1e-6."""
    part = random_part(seed, anchors, steepness)
    moved = part._replace(values=part.values + 1e-6 * np.random.default_rng(seed + 1).normal(size=anchors))

    def target(z: acb) -> acb:
        # the reference gauge of a wide ball decides whether the naive quotient is finite
        j = int(np.argmax(moved.slopes * float(z.real.mid()) + moved.offsets))
        gauged = softmax(moved.slopes - moved.slopes[j], moved.offsets - moved.offsets[j], moved.values)
        return exact([gauged], 0.0, 0.0)(z)

    return Case([part], [(arb(-1), arb(1), target)], -1.0, 1.0)


def mirrored(part: Softmax) -> Softmax:
    return softmax(-part.slopes[::-1], part.offsets[::-1], part.values[::-1])


def worst(case: Case, bits: int = 400) -> arb:
    """The largest |target - head| found: evenly, towards kinks and crossings, then by golden sections."""
    head = exact(case.parts, case.origin, case.bias)
    with ctx.workprec(bits):
        best = arb(0)
        for left, right, target in case.pieces:
            a, b = left.max(arb(case.low)), right.min(arb(case.high))
            if not a < b:
                continue

            def size(x: arb, target=target) -> arb:
                return abs(target(acb(x)).real - head(x))

            points = sorted(candidates(case, a, b), key=float)
            sizes = [size(x) for x in points]
            order = sorted(range(len(points)), key=lambda i, sizes=sizes: -float(sizes[i]))
            best = max([best, *sizes], key=lambda ball: ball.mid())
            for i in order[:4]:
                section = golden(size, points[max(i - 1, 0)], points[min(i + 1, len(points) - 1)])
                best = max(best, section, key=lambda ball: ball.mid())
        return best


def candidates(case: Case, a: arb, b: arb) -> list[arb]:
    points = [a + (b - a) * k / 1000 for k in range(1001)]
    near = [a, b]
    for slopes, offsets, _ in case.parts:
        for j in range(len(slopes) - 1):
            crossing = (arb(offsets[j]) - offsets[j + 1]) / (arb(slopes[j + 1]) - slopes[j]) + case.origin
            near.append(crossing)
    for place in near:
        points += [place + sign * (b - a) * arb(2) ** (-k / 2) for k in range(2, 100) for sign in (-1, 1)]
    return [x.mid() for x in points if a <= x.mid() <= b]


def golden(size: Callable[[arb], arb], a: arb, b: arb) -> arb:
    ratio = (arb(5).sqrt() - 1) / 2
    c, d = (b - ratio * (b - a)).mid(), (a + ratio * (b - a)).mid()
    fc, fd = size(c), size(d)
    for _ in range(40):
        if fc.mid() > fd.mid():
            b, d, fd = d, c, fc
            c = (b - ratio * (b - a)).mid()
            fc = size(c)
        else:
            a, c, fc = c, d, fd
            d = (a + ratio * (b - a)).mid()
            fd = size(d)
    return fc if fc.mid() > fd.mid() else fd
