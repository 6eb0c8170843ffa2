"""Rows of functions of several variables: grids, neurons, both side by side, and callables."""

from __future__ import annotations

from typing import Any

import numpy as np

import anchorhead as ah
from anchorhead.constructions.planning.plan import Plan
from anchorhead.network import Network

from .row import Row, row

BOX = {"x": (-1, 1), "y": (0, 1)}


def _function(name: str, kind: str, functions: Any, within: float, *tags: str, on: Any = None, **words: Any) -> Row:
    def build(dtype: str) -> Network:
        return ah.approximate(functions, BOX if on is None else on, within, dtype=dtype, **words)

    def plan(dtype: str) -> Plan:
        planned = {name: word for name, word in words.items() if name != "placement"}
        return ah.plan(functions, BOX if on is None else on, within, dtype=dtype, **planned)

    tags = ("proven", "tokens" if "tokens" in words else "variables", *tags)
    return row(name, kind, build, *tags, plan=plan, options=_options(within, words))


def _options(within: float, words: dict[str, Any]) -> dict[str, Any]:
    """Those that are no part of the program."""
    return {"within": within} | {name: words[name] for name in ("placement", "causal", "function") if name in words}


def _of_tokens(name: str, kind: str, functions: Any, *tags: str, within: float = 0.1, **words: Any) -> Row:
    words = {"on": (-1, 1), "tokens": 2, "features": 1, **words}
    return _function(name, kind, functions, within, *tags, **words)


def saddle(x: np.ndarray) -> np.ndarray:
    return x[:, 0] * x[:, 1]


def pair(x: np.ndarray) -> np.ndarray:
    return np.stack([x[:, 0], x[:, 0] * x[:, 1]], axis=1)


def largest(x: np.ndarray) -> np.ndarray:
    return np.maximum(x[:, 0], x[:, 1])


def _callable(name: str, function: Any, within: float, *tags: str, on: Any = None, **words: Any) -> Row:
    def build(dtype: str) -> Network:
        return ah.approximate(function, BOX if on is None else on, within, dtype=dtype, **words)

    tags = (*tags, "tokens" if "tokens" in words else "variables", "proven" if "lipschitz" in words else "measured")
    options = _options(within, {**words, "function": function})
    return row(name, "opaque several", build, *tags, function=function, options=options)


ROWS = (
    _function("grid", "grid", "exp(x*y)", 0.02, "grid heads", "sample"),
    _function("grid, uniform", "grid", "exp(x*y)", 1.0, "grid heads", "uniform", placement="uniform"),
    _of_tokens("grid, tokens", "grid", [["exp(x[0,0]*x[1,0])"], ["x[0,0]*x[1,0]"]], "grid heads"),
    _function("expressions", "mlp", ["abs(x) - 2*y", "relu(x + y)"], 0.02),
    _of_tokens(
        "expressions, causal",
        "mlp",
        [["x[0,0]**2"], ["x[0,0] + tanh(x[1,0])"]],
        *("smooth", "causal"),
        within=1e-2,
        causal=True,
    ),
    _function("parts", "expressions", ["exp(x*y) + abs(z)", "z"], 0.1, "parts", "grid heads", on={**BOX, "z": (-1, 1)}),
    _of_tokens("parts, tokens", "expressions", [["exp(x[0,0]*x[1,0])"], ["abs(x[1,0])"]], "parts", "grid heads"),
    _of_tokens(
        "parts, causal",
        "expressions",
        [["x[0,0]**2"], ["exp(x[0,0]*x[1,0])"]],
        *("parts", "grid heads", "causal"),
        causal=True,
    ),
    _callable("callable", saddle, 1e-2, "grid heads"),
    _callable("callable, Lipschitz", saddle, 0.5, "grid heads", lipschitz=1.5),
    _callable("callable, tokens", pair, 0.5, "grid heads", on=(-1, 1), tokens=2, features=1, lipschitz=2.0),
    _callable("callable, fitted", largest, 0.3, "smooth", on=dict.fromkeys("abcde", (-1, 1))),
)
