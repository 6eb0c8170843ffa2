"""Gates as a dtype computes them, in several ways that the model of arithmetic allows, and in 200 bits."""

import numpy as np
from flint import arb, ctx

from anchorhead.language.targets import target_of

TINY = {"float32": 2.0**-126, "float64": 2.0**-1022}


def computed(parts, g, u, dtype, rng, subtract=True):
    """sum_j w_j (F_j u): the largest logit taken off or not, the exponentials summed in a random order."""
    kind = np.dtype(dtype).type
    g, u = g.astype(dtype), u.astype(dtype)
    total = np.zeros(g.shape, dtype)
    with np.errstate(over="ignore", under="ignore"):
        for part in parts:
            logits = g[:, None] * part.slopes.astype(dtype) + part.offsets.astype(dtype)
            logits = np.concatenate([np.zeros((len(g), 1), dtype), logits], axis=1)
            top = logits.max(axis=1, keepdims=True) if subtract else kind(0)
            e = np.exp(logits - top)
            order = rng.permutation(e.shape[1])
            weight = e[:, 0] / np.cumsum(e[:, order], axis=1, dtype=dtype)[:, -1]
            total = total + weight * (kind(part.factor) * u)
    return total.astype(np.float64)


def exact_parts(parts, g):
    """sum_j F_j w_j(g) in balls of 200 bits, at one point."""
    with ctx.workprec(200):
        total = arb(0)
        for part in parts:
            pairs = zip(part.slopes, part.offsets, strict=True)
            total += part.factor / (1 + sum((arb(float(a)) * g + float(b)).exp() for a, b in pairs))
        return total


def excess(values, references, u):
    """|computed - reference u|, rounded down: what a bound may not be below."""
    gaps = []
    with ctx.workprec(200):
        for value, reference, factor in zip(values, references, u, strict=True):
            gaps.append(float(abs(arb(float(value)) - reference * float(factor)).lower()))
    return np.array(gaps) * (1 - 1e-15)


def function_values(function, g):
    """phi in 200 bits."""
    expression = target_of(function, (-2048.0, 2048.0)).expressions[0]
    with ctx.workprec(200):
        return [expression.ball({"x": arb(float(point))}) for point in g]


def gates_inputs(rng, reach, dtype, count, near=()):
    """g all over [-reach, reach], towards 0, around -1 and 1, at the ends and at points of interest; u of all sizes."""
    sign = rng.choice([-1.0, 1.0], size=count)
    g = np.concatenate([
        rng.uniform(-reach, reach, count), sign * reach * 10 ** rng.uniform(-9, 0, count), rng.normal(size=count),
        sign[:8] + 1e-6 * rng.normal(size=8), [-reach, reach, 0.0, 1.0, -1.0], np.asarray(near, float),
    ])  # fmt: skip
    g = np.clip(g, -reach, reach).astype(dtype).astype(np.float64)
    largest = 30 if dtype == "float32" else 280
    u = (rng.normal(size=len(g)) * 10 ** rng.uniform(-1.4 * largest, largest, len(g))).astype(dtype).astype(np.float64)
    u[::2] = rng.normal(size=len(u[::2])).astype(dtype)
    return g, u
