"""How far a network really is from the target that is stored with it: computed in many ways, at inputs that hurt."""

from __future__ import annotations

import warnings
from collections.abc import Callable

import numpy as np

import anchorhead as ah
from anchorhead import incontext
from anchorhead.network import Network
from anchorhead.targets import ScalarTarget
from anchorhead.targets.descent import Descent
from anchorhead.targets.expressions import Expressions
from anchorhead.targets.kernel_smoother import KernelSmoother
from anchorhead.targets.mlp import Mlp
from anchorhead.targets.ramp import TruncatedLinear
from anchorhead.targets.several import SeveralVariables

from .tampering_orders import ORDERS, evaluate

Truth = Callable[[np.ndarray], tuple[np.ndarray, np.ndarray]]
"""From inputs (batch, tokens, features) to outputs (batch, numbers), and which of these are claimed."""
NOISE = 2.0**-48
"""More than the truth itself, in float64 or better, may be off, relative to its size."""


SLOWLY = 20_000
"""About how many weights times inputs are worked through term by term."""


def worst_error(
    network: Network, x: np.ndarray, ways: tuple[str, ...], function: Callable[..., np.ndarray] | None = None
) -> tuple[float, np.ndarray]:
    """The largest |computed - exact| less what may be the truth's own error, and the error of each input.

    ways       "torch", "flushed" (underflow to zero), "alone" (the first inputs one by one), "module", "exact" (in
               extended precision), or one of ORDERS
    function   what a network for a callable approximates
    """
    truth, claimed = _truth(network, function)(x)
    noise = NOISE * (1 + np.abs(truth).astype(np.float64))
    worst = np.zeros(len(x))
    for way in ways:
        found = computed(network, x, way).astype(np.longdouble)
        rows = len(found)
        if found[0].size != truth[0].size:
            return np.inf, np.full(len(x), np.inf)
        # sequence learners answer once for every register
        error = np.abs(found - truth[:rows].reshape(found.shape))
        error = np.where(claimed[:rows].reshape(error.shape), error - noise[:rows].reshape(error.shape), 0)
        error = np.where(np.isnan(error), np.inf, error).reshape(rows, -1).max(axis=1)
        worst[:rows] = np.maximum(worst[:rows], error.astype(np.float64))
    return float(worst.max()), worst


def computed(network: Network, x: np.ndarray, way: str) -> np.ndarray:
    import torch

    given = x if network.token_axis else x[:, 0]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if way == "torch":
            return Network.__call__(network, given, outside="ignore")
        if way == "flushed":
            torch.set_flush_denormal(True)
            try:
                return Network.__call__(network, given, outside="ignore")
            finally:
                torch.set_flush_denormal(False)
        if way == "alone":
            return np.concatenate([Network.__call__(network, one[None], outside="ignore") for one in given[:8]])
        if way == "module":
            with torch.no_grad():
                return network.module()(torch.from_numpy(given.astype(network.dtype))).numpy()
        x = x[: max(4, SLOWLY // network.parameters)]
        dtype, order = (np.longdouble, "forwards") if way == "exact" else (network.dtype, way)
        found = evaluate(network, x, ORDERS[order], dtype)
        return found if network.token_axis else found[:, 0]


def inputs(network: Network, count: int, rng: np.random.Generator) -> np.ndarray:
    """Inputs of the certificate's box, (count, tokens, features): anywhere, and with entries at its ends and at 0."""
    if network.target.kind == "descent":
        return _prompts(network, count, rng)
    shape = (network.embed.tokens, network.embed.inputs)
    box = network.certificate.on.broadcast_to(shape)
    low, high = np.asarray(box.low, np.float64), np.asarray(box.high, np.float64)
    x = rng.uniform(low, high, (count, *shape))
    special = rng.choice([0, 1, 2, 3], size=x.shape, p=[0.25, 0.25, 0.1, 0.4])
    special[: count // 2] = 3
    zero = np.clip(0.0, low, high)
    x = np.select([special == 0, special == 1, special == 2], np.broadcast_arrays(low, high, zero), x)
    return np.clip(_held(x, network.dtype, low, high), low, high)


def near(network: Network, x: np.ndarray, scale: float, rng: np.random.Generator) -> np.ndarray:
    """Inputs near some, of the same box."""
    if network.target.kind == "descent":
        return _prompts(network, len(x), rng)
    box = network.certificate.on.broadcast_to(x.shape[1:])
    low, high = np.asarray(box.low, np.float64), np.asarray(box.high, np.float64)
    return np.clip(x + scale * (high - low) * rng.normal(size=x.shape), low, high)


def _held(x: np.ndarray, dtype: str, low: np.ndarray, high: np.ndarray) -> np.ndarray:
    """Numbers that the dtype holds: what rounding inputs costs is another matter."""
    held = x.astype(dtype).astype(np.float64)
    return np.where((held < low) | (held > high), x, held)


def _prompts(network: Network, count: int, rng: np.random.Generator) -> np.ndarray:
    target = Descent.from_record(network.target)
    on = network.certificate.on
    n = target.examples
    ends = on.broadcast_to((target.features + 2,)).magnitude
    X = rng.uniform(-1, 1, (count, n, target.features)) * ends[: target.features]
    y = rng.uniform(-1, 1, (count, n)) * ends[-1]
    X[: count // 4] = np.sign(X[: count // 4]) * ends[: target.features]
    if target.loss.labels != "numbers":
        y = np.sign(y)
    return incontext.prompt(_held32(X, network), _held32(y, network), target.loss)


def _held32(x: np.ndarray, network: Network) -> np.ndarray:
    return x.astype(network.dtype).astype(np.float64)


def _truth(network: Network, function: Callable[..., np.ndarray] | None) -> Truth:
    record = network.target
    match record.kind:
        case "scalar":
            scalar = ScalarTarget.from_json(record.data)
            return lambda x: _all(scalar.values(x[:, 0, 0]))
        case "truncated linear":
            return _of_ramp(TruncatedLinear.from_record(record), network.certificate.excluded)
        case "kernel smoother":
            smoother = KernelSmoother.from_record(record)
            return lambda x: _all(smoother.values(x[:, 0]))
        case "mlp":
            mlp = Mlp.from_record(record)
            return lambda x: _all(mlp.values(x.reshape(len(x), *mlp.input_shape)))
        case "grid" | "expressions":
            several = (SeveralVariables if record.kind == "grid" else Expressions).from_record(record)
            return lambda x: _all(several.values(x.reshape(len(x), -1)))
        case "opaque several" if function is not None:
            return lambda x: _all(function(x.reshape(len(x), -1)))
        case "descent":
            return _of_descent(Descent.from_record(record))
    raise ah.AnchorheadError(f"nothing is known of targets of the kind {record.kind!r}")


def _all(values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    flat = values.reshape(len(values), -1)
    return flat, np.ones(flat.shape, bool)


def _of_ramp(target: TruncatedLinear, excluded: tuple[tuple[float, float], ...]) -> Truth:
    def truth(x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        s, values = target.pre_activations(x), target.values(x)
        away = np.ones(s.shape, bool)
        for low, high in excluded:
            away &= (s <= low) | (s >= high)
        return values.reshape(len(x), -1), np.broadcast_to(away[..., None], values.shape).reshape(len(x), -1)

    return truth


def _of_descent(target: Descent) -> Truth:
    def truth(x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        found = []
        for one in incontext.prompts.examples_of(x, target.features):
            w = target.path(one.design(target.intercept), one.y)[-1]
            found.append(np.tile(w, target.examples if target.layout == "sequence" else 1))
        return _all(np.array(found))

    return truth
