"""Rows of functions of one variable: heads, also where they are built by `ah.approximate` and `ah.convert`."""

from __future__ import annotations

from typing import Any

import numpy as np

import anchorhead as ah
from anchorhead.constructions.planning.plan import Plan
from anchorhead.network import Network

from .row import Row, row


def _head(name: str, function: Any, on: tuple[float, float], within: float, *tags: str, **words: Any) -> Row:
    kind = words.pop("kind", "scalar")

    def build(dtype: str) -> Network:
        return ah.head(function, on=on, within=within, dtype=dtype, **words).network

    options = {"within": within, **words, **({"function": function} if callable(function) else {})}
    return row(name, kind, build, "variables", *(tags or ("proven",)), options=options)


def _function(name: str, text: str, *tags: str) -> Row:
    def build(dtype: str) -> Network:
        return ah.approximate(text, {"x": (-1, 1)}, 1e-2, dtype=dtype)

    def plan(dtype: str) -> Plan:
        return ah.plan(text, {"x": (-1, 1)}, 1e-2, dtype=dtype)

    return row(name, "scalar", build, "variables", "proven", *tags, plan=plan, options={"within": 1e-2})


ROWS = (
    _head("head", "tanh", (-2, 2), 1e-2),
    _head("head, summed", "relu", (-1, 1), 2e-3),
    _head("head, far from 0", "sin(x)", (5, 7), 1e-2),
    _head("head, several outputs", ["sin(x)", "cos(x)"], (-1, 1), 1e-2),
    _head("head, uniform", "abs", (-1, 1), 0.1, "proven", "uniform", placement="uniform"),
    _head("head, of a callable", np.sin, (-1, 1), 1e-2, "measured", kind="opaque scalar"),
    _function("function of one variable", "sin(2*x)"),
    _function("function of one variable, constant", "3", "constant"),
)
