"""The grammar once more, the slow way: loops over tokens, heads and keys, straight from the formulas.

No liveness, no sharing, no blocks, no torch: all that it has in common with the library are the arrays.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from itertools import product

import numpy as np

from anchorhead.network import Attention, Linear, Network, Repeat, Softmax


@dataclass
class Trace:
    """The numbers that were met on the way."""

    logit: float = 0.0
    activation: float = 0.0
    maps: list[np.ndarray] = field(default_factory=list)
    """(heads, tokens, tokens) weights of each attention, each time it ran."""
    kinds: list[list[str]] = field(default_factory=list)
    """The kinds of the tokens at each of them."""


def evaluate(network: Network, x: np.ndarray, trace: Trace | None = None) -> np.ndarray:
    """The output for one sequence x (tokens, inputs)."""
    trace = Trace() if trace is None else trace
    rows, kinds = embed(network, x.astype(np.float64))
    _note(rows, trace)
    for layer in network.layers[1:]:
        rows, kinds = step(layer, rows, kinds, trace)
    return np.array([row for row, kind in zip(rows, kinds, strict=True) if kind == network.output])


def embed(network: Network, x: np.ndarray) -> tuple[list[np.ndarray], list[str]]:
    first = network.embed
    sources = range(len(x)) if first.source is None else first.source
    rows, kinds = [], []
    for i, source in enumerate(sources):
        weight = first.weight if first.weight.ndim == 2 else first.weight[i]
        bias = first.bias if first.bias.ndim == 1 else first.bias[i]
        rows.append(weight.astype(np.float64) @ x[source] + bias)
        kinds.append("input")
    for kind, appended in (("register", first.registers), ("state", first.states)):
        for row in [] if appended is None else appended:
            rows.append(row.astype(np.float64))
            kinds.append(kind)
    return rows, kinds


def step(layer, rows, kinds, trace):
    if isinstance(layer, Repeat):
        for _ in range(layer.times):
            for inner in layer.layers:
                rows, kinds = step(inner, rows, kinds, trace)
        return rows, kinds
    if isinstance(layer, Softmax):
        trace.logit = max(trace.logit, max(float(np.abs(row).max()) for row in rows))
        rows = [_grouped(row, layer.groups) for row in rows]
    elif isinstance(layer, Linear) and layer.across:
        rows = _across(layer, rows)
        kinds = ["input"] * len(rows)
    elif isinstance(layer, Linear):
        rows = [_each(layer, row) for row in rows]
    elif isinstance(layer, Attention):
        rows = _attended(layer, rows, kinds, trace)
    _note(rows, trace)
    return rows, kinds


def _note(rows, trace):
    trace.activation = max(trace.activation, max(float(np.abs(row).max()) for row in rows))


def _softmax(logits):
    top = max(logits)
    powers = [math.exp(logit - top) for logit in logits]
    return [power / math.fsum(powers) for power in powers]


def _grouped(row, groups):
    result, start = [], 0
    for size in groups:
        result += _softmax(list(row[start : start + size]))
        start += size
    return np.array(result)


def _on_features(layer, row):
    weight = layer.weight.astype(np.float64)
    if weight.ndim == 2:
        return np.array([sum(w * x for w, x in zip(line, row, strict=True)) for line in weight])
    size = weight.shape[2]
    return np.concatenate([block @ row[g * size : (g + 1) * size] for g, block in enumerate(weight)])


def _each(layer, row):
    return _on_features(layer, row) + (0 if layer.bias is None else layer.bias)


def _across(layer, rows):
    result = []
    for j in range(layer.tokens_out):
        row = np.zeros(layer.outputs)
        for n, x in enumerate(rows):
            if layer.mix is None:
                row = row + layer.weight[j, :, n, :].astype(np.float64) @ x
            else:
                row = row + float(layer.mix[j, n]) * _on_features(layer, x)
        if layer.bias is not None:
            row = row + (layer.bias if layer.bias.ndim == 1 else layer.bias[j])
        result.append(row)
    return result


def _sees(layer, kinds, i, k):
    if layer.grid is not None:
        return kinds[k] == "register"
    if layer.mask == "self+registers":
        return i == k or kinds[k] == "register"
    if layer.mask == "registers+states":
        return kinds[k] == "register" or (kinds[k] == "state" and kinds[i] != "register")
    if layer.mask == "causal":
        if kinds[i] == "state":
            return True
        if kinds[i] == "register":
            return kinds[k] == "register"
        return kinds[k] == "register" or (kinds[k] == "input" and k <= i)
    return True


def _keys(layer, head, rows, kinds):
    """The key of every token; over a grid that of point (i, j, ...) is joined from those on the axes."""
    matrix = layer.key[head if len(layer.key) > 1 else 0].astype(np.float64)
    keys = [matrix @ row for row in rows]
    if layer.grid is None:
        return keys
    first, size = kinds.index("register"), len(matrix) // len(layer.grid)
    place = {point: first + n for n, point in enumerate(product(*map(range, layer.grid)))}
    joined = list(keys)
    for point, n in place.items():
        for axis in range(len(layer.grid)):
            alone = tuple(index if a == axis else 0 for a, index in enumerate(point))
            block = slice(axis * size, (axis + 1) * size)
            joined[n] = joined[n].copy()
            joined[n][block] = keys[place[alone]][block]
    return joined


def _attended(layer, rows, kinds, trace):
    maps = np.zeros((layer.heads, len(rows), len(rows)))
    result = [np.zeros(layer.outputs) for _ in rows]
    for head in range(layer.heads):
        keys = _keys(layer, head, rows, kinds)
        value = layer.value[head if len(layer.value) > 1 else 0].astype(np.float64)
        for i, row in enumerate(rows):
            query = layer.query[head].astype(np.float64) @ row
            seen = [k for k in range(len(rows)) if _sees(layer, kinds, i, k)]
            logits = [math.fsum(query * keys[k]) for k in seen]
            trace.logit = max(trace.logit, max(abs(logit) for logit in logits))
            for k, weight in zip(seen, _softmax(logits), strict=True):
                maps[head, i, k] = weight
                result[i] = result[i] + weight * (layer.output[head].astype(np.float64) @ (value @ rows[k]))
    for i, row in enumerate(rows):
        result[i] = result[i] + (0 if layer.bias is None else layer.bias)
        result[i] = result[i] + (0 if layer.skip is None else _each(layer.skip, row))
    trace.maps.append(maps)
    trace.kinds.append(list(kinds))
    return result
