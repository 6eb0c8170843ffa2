"""Heads as the worst arithmetic that the model allows would compute them, and what the lemmas say of them."""

from __future__ import annotations

import numpy as np

from anchorhead.language.expressions.parser import parse
from anchorhead.verify import constant, functions, rounding
from anchorhead.verify.forms import Forms, Quantities
from anchorhead.verify.programs.expressions import Expression, read_expression
from anchorhead.verify.scalar.cells import Proven, prove
from anchorhead.verify.scalar.part import Claim, Part

HEADS = ("logistic, float32", "tanh, float32", "ramp, float32", "square, float64", "kink, float32")

TIGHT = 1.02
"""How much larger than what an adversary finds a bound may be."""


def expression(text: str) -> Expression:
    return read_expression(parse(text, ("x",)).to_json())


def head(name: str) -> tuple[Part, Claim, tuple[float, float], str]:
    """A softmax, what it computes nearly, on which interval, in which dtype."""
    what, _, dtype = name.partition(", ")
    model = rounding.MODELS[dtype]
    match what:
        case "logistic":
            slope, offset = (float(np.float32(number)) for number in (3.3, 0.4))
            arrays = ([-slope, slope], [-offset, offset], [-1.0, 1.0])
            text, ends, alpha = f"tanh({slope!r}*x + {offset!r})", (-2.0, 2.0), 1.0
        case "tanh":
            arrays, text, ends, alpha = ([-1.0, 1.0], [0.0, 0.0], [-1.0, 1.0]), "tanh(x)", (-3.0, 3.0), 1.0
        case "square":
            h = 2.0**-6
            arrays = ([-h, 0.0, h], [0.0, float(np.log(10.0)), 0.0], [1.0, 0.0, 1.0])
            text, ends, alpha = "x**2", (-1.0, 1.0), h**2 / 12
        case "ramp":
            k = np.arange(-4.0, 5.0)
            arrays, text, ends, alpha = (4 * k, -2 * k**2, k), "clip(x, -4, 4)", (-6.0, 6.0), 1.0
        case _:
            arrays = ([-100.0, -0.01, 0.01], [np.log(2.0), 0.0, 0.0], [0.0, -100.0, 100.0])
            text, ends, alpha = "relu(x)", (-1.0, 1.0), 1.0
    slopes, offsets, values = (np.array(array).astype(dtype).astype(np.float64) for array in arrays)
    nothing, sizes = np.zeros(len(slopes)), np.abs(offsets)
    part = Part(slopes, offsets, values, sizes, sizes, (offsets != 0).astype(int), nothing, nothing, nothing, model)
    shift = float(np.mean(head_values(part, np.linspace(*ends, 2001)) - alpha * function_values(text, ends)))
    return part, Claim(expression(text), 1.0, 0.0, alpha, shift if what == "square" else 0.0), ends, dtype


def function_values(text: str, ends: tuple[float, float], count: int = 2001) -> np.ndarray:
    return np.asarray(parse(text, ("x",)).values({"x": np.linspace(*ends, count)}), np.float64)


def head_bound(name: str) -> Proven:
    part, claim, ends, dtype = head(name)
    return prove([part], claim, [ends], rounding.MODELS[dtype])


def points(name: str) -> np.ndarray:
    """Many points of a head's interval, those where the arithmetic is worst among them, as the dtype holds them."""
    _, _, ends, dtype = head(name)
    near = np.geomspace(1e-9, 1, 400) * max(map(abs, ends))
    t = np.concatenate([np.linspace(*ends, 4001), near, -near])
    return np.clip(t, *ends).astype(dtype).astype(np.longdouble)


def head_values(part: Part, t: np.ndarray) -> np.ndarray:
    logits = part.slopes * t[:, None] + part.offsets
    weights = np.exp(logits - logits.max(axis=1, keepdims=True))
    return (weights * part.values).sum(axis=1) / weights.sum(axis=1)


def largest_difference(name: str) -> float:
    """|R - claim| in extended precision, where the machine has it."""
    part, claim, _, _ = head(name)
    t = points(name)
    return float(np.abs(head_values(part, t) - _claimed(claim, t)).max()) - 1e-15


def _claimed(claim: Claim, t: np.ndarray) -> np.ndarray:
    op = claim.function.nodes[-1][0]  # type: ignore[union-attr]
    numbers = [data for kind, data, _ in claim.function.nodes if kind == "number"]  # type: ignore[union-attr]
    slope, offset = (*numbers, 1.0, 0.0)[:2] if op == "tanh" and numbers else (1.0, 0.0)
    values = {
        "tanh": lambda x: np.tanh(x), "clip": lambda x: np.clip(x, -4, 4), "relu": lambda x: np.maximum(x, 0)
    }.get(op, lambda x: x**2)(slope * t + offset)  # fmt: skip
    return claim.alpha * values + claim.beta


def adversary_error(name: str, kind: str) -> float:
    """The largest |computed - claim| when exponentials, logits or sums err as they may, towards what hurts."""
    part, claim, _, dtype = head(name)
    u = rounding.MODELS[dtype].unit
    t = points(name)
    exactly = head_values(part, t)
    claimed = _claimed(claim, t)
    logits = part.slopes * t[:, None] + part.offsets
    worst = 0.0
    for sign in (-1, 1):
        pull = sign * np.sign(part.values - exactly[:, None])
        moved = logits
        if kind in ("logits", "all"):
            products = np.where(rounding.power_of_two(part.slopes), 0.0, np.abs(part.slopes * t[:, None]))
            added = np.where((part.offsets != 0) & (part.slopes != 0), np.abs(logits), 0.0)
            moved = moved + pull * u * (products + added) * (1 - 1e-3)
        gap = moved.max(axis=1, keepdims=True) - moved
        error = u * gap * (kind in ("logits", "all")) + np.log1p(8 * u) * (kind in ("exp", "all")) * (1 - 1e-6)
        weights = np.exp(-gap + pull * error)
        p = len(part.slopes)
        grown = 1 + (p + 1) * u * sign * np.sign(part.values) * (kind in ("sums", "all"))
        total = (weights * part.values * grown).sum(axis=1) / weights.sum(axis=1)
        total = total * (1 + sign * np.sign(total) * (p - 1) * u * (kind in ("sums", "all")))
        worst = max(worst, float(np.abs(total - claimed).max()))
    return worst - 1e-17


def head_holds(name: str) -> bool:
    """Nothing exceeds the bound, and the bound is no idle one."""
    bound = head_bound(name)
    worst = [adversary_error(name, kind) for kind in ("exp", "logits", "sums", "all")]
    exactly = largest_difference(name) <= bound.approximation
    return exactly and max(worst) <= bound.total <= TIGHT * worst[-1]


def dot_holds(dtype: str, seed: int) -> bool:
    """A dot product in a random order, in the dtype, beside its exact value."""
    rng = np.random.default_rng(seed)
    count = int(rng.integers(1, 9))
    a, b = (rng.normal(size=count) * 10.0 ** rng.uniform(-3, 3, size=count) for _ in range(2))
    a = np.where(rng.random(count) < 0.3, 2.0 ** np.round(np.log2(np.abs(a))), a)
    a, b = a.astype(dtype), b.astype(dtype)
    found, exactly = a.dtype.type(0), np.longdouble(0)
    for place in rng.permutation(count):
        found = found + a[place] * b[place]
        exactly += np.longdouble(a[place]) * np.longdouble(b[place])
    products = np.abs(a.astype(np.float64) * b.astype(np.float64))
    exact = products[rounding.power_of_two(a.astype(np.float64))].sum()
    sums = (np.array([number]) for number in (products.sum(), exact, count, abs(float(exactly))))
    (bound,) = rounding.dot_error(*sums, rounding.MODELS[dtype])
    noise = 2.0**-60 * float(products.sum())
    return abs(float(np.longdouble(found) - exactly)) <= float(bound) + noise


def behaviour_holds(text: str, low: float, high: float) -> bool:
    """Ranges, slopes and ranges of parts of the interval, beside values."""
    f = expression(text)
    known = functions.behaviour(f, low, high)
    x = np.linspace(low, high, 3001)
    y = np.asarray(parse(text, ("x",)).values({"x": x}), np.float64)
    steps = np.abs(np.diff(y)) <= known.slope * np.diff(x) * (1 + 1e-9) + known.jump + 1e-15
    inside = known.low - 1e-15 <= y.min() and y.max() <= known.high + 1e-15
    part = functions.range_on(f, known, float(x[500]), float(x[1700]))
    own = y[500:1701]
    return bool(steps.all() and inside and part[0] - 1e-15 <= own.min() and own.max() <= part[1] + 1e-15)


def constant_softmax_holds(keys: int) -> bool:
    """A constant softmax of values that are forms, at the corners of what they depend on."""
    rng = np.random.default_rng(keys)
    model = rounding.MODELS["float32"]
    quantities = Quantities()
    ids = quantities.add(np.array([-1.0, -2.0]), np.array([1.0, 3.0]))
    offsets = rng.normal(size=keys).astype(np.float32).astype(np.float64)
    nothing, sizes = np.zeros(keys), np.abs(offsets)
    logits = Part(nothing, offsets, nothing, sizes, sizes, np.ones(keys, int), nothing, nothing, nothing, model)
    forms = [rng.normal(size=(keys, 1, 2)), rng.normal(size=(keys, 1)), np.zeros((keys, 1)), np.full((keys, 1), 1e-3)]
    found, _ = constant.constant_softmax(logits, 0.0, Forms(ids, *forms), quantities, model)
    for corner in ((-1.0, -2.0), (1.0, 3.0), (-1.0, 3.0), (1.0, -2.0)):
        x = np.array(corner)
        values = forms[0][:, 0] @ x + forms[1][:, 0]
        middle = (np.exp(offsets) * values).sum() / np.exp(offsets).sum()
        for sign in (-1, 1):
            pull = sign * np.sign(values - middle) * 8 * model.unit
            weights = np.exp(offsets + pull)
            read = (weights * (values + sign * 1e-3)).sum() / weights.sum()
            said = float(found.coefficients[0, 0] @ x[np.searchsorted(ids, found.ids)] + found.constant[0, 0])
            if abs(read - said) > float(found.error[0, 0]):
                return False
    return True
