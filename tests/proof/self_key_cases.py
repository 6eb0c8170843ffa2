"""Heads with their own key as a dtype evaluates them, and the exact function, for tests of their bounds."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import flint
import numpy as np

from anchorhead.heads.self_keys.self_key import SelfKeyHead
from anchorhead.heads.self_keys.self_key_powers import powers
from anchorhead.language.expressions.expression import Expression
from anchorhead.proof.self_key.self_key_softmax import ball_head

BITS = 300
Path = Callable[[np.ndarray], np.ndarray]


@np.errstate(under="ignore")
def as_attention(head: SelfKeyHead) -> Path:
    """Logits, softmax and values, each step in the dtype."""
    kind = np.dtype(head.dtype).type

    def compute(s: np.ndarray) -> np.ndarray:
        slopes, offsets, values = (np.asarray(a, head.dtype) for a in (head.slopes, head.offsets, head.values))
        logits = s[:, None] * slopes + offsets
        stored = np.broadcast_to(values, logits.shape)
        if head.own is not None:
            own = s * kind(head.own.slope) + kind(head.own.offset)
            logits = np.concatenate([logits, own[:, None]], axis=1)
            stored = np.concatenate([stored, (kind(head.own.value) * s)[:, None]], axis=1)
        weights = np.exp(logits - logits.max(axis=1, keepdims=True))
        weights = weights / weights.sum(axis=1, keepdims=True)
        read = np.zeros_like(s)
        for k in range(weights.shape[1]):
            read = read + weights[:, k] * stored[:, k]
        return (kind(head.skip) * s + kind(head.bias)) + read

    return compute


def fused(head: SelfKeyHead) -> Path:
    """The quotient of polynomials with a fused product and sum; of float32, in float64 between the steps."""
    numbers, kind = powers(head), np.dtype(head.dtype).type

    def compute(s: np.ndarray) -> np.ndarray:
        y = np.exp(kind(numbers.rate) * np.clip(s, kind(numbers.low), kind(numbers.high))).astype(np.float64)
        n, d = np.zeros_like(y), np.zeros_like(y)
        for k in reversed(range(len(numbers.denominator))):
            constant = numbers.numerator[k].astype(np.float64)
            if k == numbers.own_index and numbers.own:
                constant = constant + (kind(numbers.own) * s).astype(np.float64)
            n, d = (x.astype(head.dtype).astype(np.float64) for x in (n * y + constant, d * y + numbers.denominator[k]))
        return (kind(head.skip) * s + kind(head.bias)) + (n / d).astype(head.dtype)

    return compute


def paths(head: SelfKeyHead) -> dict[str, Path]:
    found = {"attention": as_attention(head)}
    if head.step > 0:
        found["powers"] = powers(head)
        if head.dtype == "float32":
            found["fused powers"] = fused(head)
    return found


def errors(computed: np.ndarray, exact: Callable[[flint.arb], flint.arb], s: np.ndarray) -> np.ndarray:
    """|computed - exact| / max(1, |s|), rounded to a float from below by less than 1e-15 of itself."""
    found = []
    with flint.ctx.workprec(BITS):
        for x, y in zip(s.astype(np.float64).tolist(), computed.astype(np.float64).tolist(), strict=True):
            at = flint.arb(x)
            found.append(
                float((abs(flint.arb(y) - exact(at)) / max(1.0, abs(x))).lower()) if np.isfinite(y) else np.inf
            )
    return np.array(found)


def of_function(function: Expression) -> Callable[[flint.arb], flint.arb]:
    return lambda s: function.ball({function.variables[0]: s})


def of_head(head: SelfKeyHead) -> Callable[[flint.arb], flint.arb]:
    balls = ball_head(head)
    return lambda s: balls(s)


def points(head: SelfKeyHead, count: int, seed: int) -> np.ndarray:
    """All over, around the crossings of keys and the ends of clipped queries, huge, tiny and subnormal."""
    rng = np.random.default_rng(seed)
    slopes, offsets, _ = head.keys
    crossings = [
        (offsets[j] - offsets[k]) / (slopes[k] - slopes[j])
        for k in range(len(slopes))
        for j in range(k)
        if slopes[k] != slopes[j]
    ]
    steep = 1 / max(np.ptp(slopes), 1.0)
    near = np.array(crossings or [0.0])
    close = near[:, None] + steep * rng.normal(size=(len(near), max(2, count // (4 * len(near))))) * rng.choice(
        [0.3, 3, 10]
    )
    info = np.finfo(head.dtype)
    special = [0.0, 1.0, -1.0, float(info.smallest_subnormal), -float(info.tiny), head.low, head.high]
    if head.step > 0:
        numbers = powers(head)
        special += [numbers.low, numbers.high]
    sizes = np.exp(rng.uniform(np.log(1e-8), np.log(60), count // 4)) * rng.choice([-1, 1], count // 4)
    huge = np.exp(rng.uniform(0, np.log(min(head.high, 1e300)) if head.high > 1 else 1.0, count // 8))
    every = np.concatenate(
        [special, close.ravel(), sizes, huge, -huge, rng.uniform(-8, 8, count // 2), rng.normal(size=count // 4)]
    )
    every = every.astype(head.dtype)
    every = np.concatenate([every, np.nextafter(every, np.inf), np.nextafter(every, -np.inf)])
    return every[(every >= head.low) & (every <= head.high)]


def climb(
    compute: Path, exact: Callable[[flint.arb], flint.arb], start: np.ndarray, head: SelfKeyHead, rounds: int, seed: int
) -> Iterator[float]:
    """Errors at ever worse points: random moves of all sizes from the worst ones so far."""
    rng = np.random.default_rng(seed)
    found = errors(compute(start), exact, start)
    yield float(found.max())
    worst = start[np.argsort(found)[-8:]]
    for _ in range(rounds):
        size = np.exp(rng.uniform(np.log(np.finfo(head.dtype).eps), np.log(0.3), (len(worst), 6)))
        moved = worst[:, None].astype(np.float64) * (1 + size * rng.choice([-1, 1], size.shape))
        tried = np.clip(np.concatenate([worst, moved.ravel()]), head.low, head.high).astype(head.dtype)
        found = errors(compute(tried), exact, tried)
        worst = tried[np.argsort(found)[-8:]]
        yield float(found.max())


def worst_attention(head: SelfKeyHead, s: np.ndarray, unit: float, exp_error: float) -> np.ndarray:
    """|what the model of arithmetic allows - r| / max(1, |s|) if all errors of the attention path pull one way.

    In float64, for a dtype whose unit is far above that of float64.
    """
    slopes, offsets, values = head.keys
    s = s.astype(np.float64)
    product = s[:, None] * slopes
    logits = product + offsets
    stored = np.where(np.arange(len(slopes)) == head.registers, values * s[:, None], values)
    gaps = logits.max(axis=1, keepdims=True) - logits
    weights = np.exp(-gaps)
    weights /= weights.sum(axis=1, keepdims=True)
    exact = (weights * stored).sum(axis=1, keepdims=True)
    wrong = unit * (np.abs(product) + np.abs(logits) + gaps) + exp_error
    worst = np.zeros(len(s))
    for sign in (-1, 1):
        pulled = weights * np.exp(sign * np.sign(stored - exact) * wrong)
        pulled /= pulled.sum(axis=1, keepdims=True)
        terms = pulled * stored * (1 + sign * np.sign(stored) * unit) ** 3
        read = terms.sum(axis=1) * (1 + sign * np.sign(exact[:, 0]) * unit * (len(slopes) - 1))
        line = head.skip * s + head.bias
        worst = np.maximum(worst, np.abs((read + line) * (1 + unit * (head.skip != 0)) - exact[:, 0] - line))
    return worst / np.maximum(1, np.abs(s))


def worst_powers(head: SelfKeyHead, s: np.ndarray, unit: float, exp_error: float) -> np.ndarray:
    """Likewise for the quotient of polynomials: every product and sum of Horner's rule pulled one way."""
    numbers = powers(head)
    s = s.astype(np.float64)
    t = np.clip(s, numbers.low, numbers.high)
    line = head.skip * s + head.bias
    exact = head(s) - line
    worst = np.zeros(len(s))
    rounded = 0.0 if np.frexp(abs(numbers.rate))[0] == 0.5 else unit
    for sign in (-1, 1):
        for shift in (-1, 1):
            y = np.exp(numbers.rate * t + shift * (exp_error + rounded * np.abs(numbers.rate * t)))
            n, d = np.zeros_like(y), np.zeros_like(y)
            for k in reversed(range(len(numbers.denominator))):
                constant = float(numbers.numerator[k]) + (numbers.own * s if k == numbers.own_index else 0.0)
                # both pull the quotient to one side, whatever the sign of what there is so far
                n = n * y * (1 + sign * np.sign(n) * unit) + constant
                d = d * y * (1 - sign * np.sign(exact) * unit) + float(numbers.denominator[k])
                if k < len(numbers.denominator) - 1:
                    n, d = n * (1 + sign * np.sign(n) * unit), d * (1 - sign * np.sign(exact) * unit)
            read = n / d * (1 + sign * np.sign(exact) * unit)
            worst = np.maximum(worst, np.abs(read - exact))
    return worst / np.maximum(1, np.abs(s))
