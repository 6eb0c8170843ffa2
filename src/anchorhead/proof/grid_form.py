"""Reads a head over a tensor grid back from its network: from nothing but the stored weights.

Both layouts of constructions.grid_network are understood, in any order of features: maps must pick features one by one,
so that what is copied is copied exactly. Anything else is refused with a CertificateError.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

import numpy as np
from jaxtyping import Float

from anchorhead.errors import CertificateError
from anchorhead.heads.atom import Dtype
from anchorhead.heads.grid_atom import GridAtom
from anchorhead.network import Attention, Embed, Linear, Network

SILENT = 1500.0  # exp of minus this is 0 in float32 and float64, however it underflows
BEYOND = 2.0**30  # far beyond the logits of which grid_rounding proves anything


@dataclass(frozen=True, eq=False)
class GridForm:
    """The grid, its variables and outputs in order of tokens, and how many tokens there are (none: no token axis)."""

    atom: GridAtom
    tokens: int | None


@dataclass(frozen=True, eq=False)
class _Tokens:
    """What tokens carry: features of input tokens are variables (their number, or -1) less an origin, or constants."""

    variable: np.ndarray  # (features,) of the network's only asking token, or of all of them alike
    constant: Float[np.ndarray, "tokens features"]
    registers: Float[np.ndarray, "registers features"]


def grid_form(network: Network) -> GridForm:
    layers = network.layers
    kinds = [type(layer) for layer in layers]
    embed, last = network.embed, layers[-1]
    plain = embed.tokens is not None and embed.source is None and embed.states is None and embed.registers is not None
    if not plain or network.output != "input" or not isinstance(last, Attention) or last.grid is None:
        raise _unreadable("the layers are not those of a head over a grid")
    if kinds == [Embed, Attention] and embed.tokens == 1 and not network.token_axis:
        tokens = _embedded(embed)
        return GridForm(_grid(last, tokens, last.grid, np.zeros((1, last.outputs)), network.dtype), None)
    if kinds == [Embed, Attention, Attention] and network.token_axis:
        return GridForm(_of_sequence(network), embed.tokens)
    raise _unreadable("the layers are not those of a head over a grid")


def _of_sequence(network: Network) -> GridAtom:
    embed, gather, last = network.layers
    if not (isinstance(embed, Embed) and isinstance(gather, Attention) and isinstance(last, Attention) and last.grid):
        raise _unreadable("the layers are not those of a head over a grid")
    tokens = _gathered(gather, _embedded(embed))
    n = len(tokens.constant)
    if last.grid[-1] != n or len(last.grid) < 2 or last.skip is None:
        raise _unreadable("the grid has no axis of tokens")
    _check_gate(last, tokens, len(last.grid))
    bias = _constants_of(last.skip, tokens)
    return _grid(last, tokens, last.grid[:-1], bias, network.dtype)


def _embedded(embed: Embed) -> _Tokens:
    """The tokens that leave an Embed; a feature that varies must be an input entry less a constant, at every token."""
    n = embed.tokens or 1
    weight = np.broadcast_to(embed.weight, (n, *embed.weight.shape[-2:]))
    bias = np.broadcast_to(embed.bias, (n, weight.shape[1]))
    variable = np.full(weight.shape[1], -1)
    for feature in np.flatnonzero((weight != 0).any(axis=(0, 2))):
        row = weight[:, feature]
        entry = int(row[0].argmax())
        if not np.array_equal(row, np.broadcast_to(np.eye(row.shape[1])[entry], row.shape)):
            raise _unreadable("an input is scaled or mixed before it is asked with")
        variable[feature] = entry
    registers = np.asarray(embed.registers)
    return _Tokens(variable, bias, registers)


def _gathered(gather: Attention, tokens: _Tokens) -> _Tokens:
    """The tokens after head j has copied token j into all of them, by a key that is 1 there and 0 elsewhere."""
    n = len(tokens.constant)
    if gather.mask or gather.grid or gather.skip is None or gather.skip.bias is not None or gather.bias is not None:
        raise _unreadable("the first attention does not gather")
    if gather.heads != n or gather.query.shape[1] != 1 or gather.skip.weight.ndim != 2:
        raise _unreadable("the first attention has not one head for each token")
    kept = _picked(gather.skip.weight)
    few = int(tokens.variable.max()) + 1
    variable = np.full(gather.outputs, -1)
    constant = np.zeros((n, gather.outputs), tokens.constant.dtype)
    passes = kept >= 0
    if (tokens.variable[kept[passes]] >= 0).any():
        raise _unreadable("the first attention passes inputs on beside those that it gathers")
    constant[:, passes] = tokens.constant[:, kept[passes]]
    registers = np.zeros((len(tokens.registers), gather.outputs), tokens.registers.dtype)
    registers[:, passes] = tokens.registers[:, kept[passes]]
    for j in range(n):
        ask, key = gather.query[j, 0], gather.key[min(j, len(gather.key) - 1), 0]
        value = _picked(gather.value[min(j, len(gather.value) - 1)])
        asks, shows = np.flatnonzero(ask), np.flatnonzero(key)
        one = (
            len(asks) == 1 and tokens.variable[asks[0]] < 0 and (ask[asks[0]] * tokens.constant[:, asks[0]] == 1).all()
        )
        own = len(shows) == 1 and tokens.variable[shows[0]] < 0 and key[shows[0]] >= SILENT
        if not (one and own) or not np.array_equal(tokens.constant[:, shows[0]], np.eye(n)[j]):
            raise _unreadable(f"head {j} of the first attention does not find token {j}")
        if (tokens.registers[:, shows[0]] != 0).any() or (value < 0).any():
            raise _unreadable("the first attention reads registers")
        for place in np.flatnonzero(gather.output[j].any(axis=1)):
            from_value = _picked(gather.output[j, place][None])[0]
            feature = value[from_value]
            if from_value < 0 or passes[place] or variable[place] >= 0 or tokens.variable[feature] < 0:
                raise _unreadable("what the first attention copies is not an input entry")
            variable[place] = j * few + tokens.variable[feature]
            constant[:, place] = tokens.constant[j, feature]
            registers[:, place] = np.nan  # registers gather something too: it must not matter
    return _Tokens(variable, constant, registers)


def _check_gate(last: Attention, tokens: _Tokens, axes: int) -> None:
    """Refuses unless token i sees, along the last axis, point i at logit 0 exactly and others out of reach."""
    size = last.query.shape[1] // axes
    query, key = last.query[0, -size:], last.key[0, -size:]
    n = len(tokens.constant)
    asks = np.stack([_fixed(row, tokens, of_registers=False) for row in query], axis=1)  # (n, size)
    shows = np.stack([_fixed(row, tokens, of_registers=True) for row in key], axis=1)[:n]  # first point of other axes
    products = asks[:, None, :] * shows[None, :, :]
    own = np.eye(n, dtype=bool)
    if (products[own] != 0).any() or (products > 0).any() or not (products[~own].min(axis=-1) <= -BEYOND).all():
        raise _unreadable("a token does not read its own outputs alone")


def _fixed(row: np.ndarray, tokens: _Tokens, of_registers: bool) -> np.ndarray:
    """A feature that a row picks, or zeros, as constants of the input tokens or of the registers."""
    table = tokens.registers if of_registers else tokens.constant
    feature = _picked(row[None])[0]
    if feature < 0:
        return np.zeros(len(table))
    if not of_registers and tokens.variable[feature] >= 0:
        raise _unreadable("a query that should be constant depends on the input")
    return _finite(table[:, feature].astype(np.float64))


def _constants_of(skip: Linear, tokens: _Tokens) -> np.ndarray:
    """What a skip adds at each token, if it is one of its constants, exactly: (n, outputs)."""
    if skip.bias is not None or skip.weight.ndim != 2:
        raise _unreadable("the bias is not that of a grid")
    result = np.zeros((len(tokens.constant), skip.outputs))
    for output, row in enumerate(skip.weight):
        used = np.flatnonzero(row)
        ones = tokens.constant[:, used]
        if (tokens.variable[used] >= 0).any() or not np.isin(ones, (0, 1)).all() or (ones.sum(axis=1) > 1).any():
            raise _unreadable("the bias depends on more than the position")
        result[:, output] = ones.astype(np.float64) @ row[used].astype(np.float64)
    return result


def _grid(last: Attention, tokens: _Tokens, sides: tuple[int, ...], bias: np.ndarray, dtype: str) -> GridAtom:
    """The grid that a last attention is, for tokens that all hold all variables."""
    n, d, axes = len(tokens.constant), len(sides), len(last.grid or ())
    m = last.outputs
    picks_values = _picked(last.value[0])
    identity = np.array_equal(last.output[0], np.eye(m)) if last.output.shape[1:] == (m, m) else False
    if last.heads != 1 or not identity or (picks_values < 0).any() or last.query.shape[1] % axes:
        raise _unreadable("keys and values are not copies of features")
    if axes == d and last.skip is not None:
        raise _unreadable("something is added to what the grid gives")
    size = last.query.shape[1] // axes
    query, key = (_picked(array[0]).reshape(axes, size)[:d] for array in (last.query, last.key))
    if size < 2 or (query[:, :2] < 0).any() or (key[:, :2] < 0).any() or (query[:, 2:] >= 0).any():
        raise _unreadable("a query is not (x - origin, 1) along every axis")
    if not np.array_equal(tokens.variable[query[:, 0]], np.arange(d)) or tokens.variable.max() != d - 1:
        raise _unreadable("the axes are not the inputs in order")
    if (tokens.variable[query[:, 1]] >= 0).any() or (tokens.constant[:, query[:, 1]] != 1).any():
        raise _unreadable("a query is not (x - origin, 1) along every axis")
    origins = -tokens.constant[:, query[:, 0]]
    if (origins != origins[0]).any():
        raise _unreadable("tokens take different origins from the same input")
    pairs = []
    for j, side in enumerate(sides):
        stride = prod((last.grid or ())[j + 1 :])
        along = tokens.registers[0 : side * stride : stride]
        pairs.append((_finite(along[:, key[j, 0]]), _finite(along[:, key[j, 1]])))
    values = _finite(tokens.registers[:, picks_values]).reshape(*sides, n * m)
    shared = np.zeros(m) if last.bias is None else np.asarray(last.bias, np.float64)
    if axes > d and shared.any():
        raise _unreadable("a bias is added twice")
    kind: Dtype = dtype  # type: ignore[assignment]
    return GridAtom.of(pairs, origins[0], values, (bias + shared).reshape(-1), kind)


def _picked(matrix: np.ndarray) -> np.ndarray:
    """Which feature each row picks, -1 for a row of zeros; a row with anything else is refused."""
    filled = (matrix != 0).sum(axis=1)
    if (filled > 1).any() or not np.isin(matrix, (0, 1)).all():
        raise _unreadable("a map does not pick features")
    return np.where(filled == 1, matrix.argmax(axis=1), -1)


def _finite(array: np.ndarray) -> np.ndarray:
    if not np.isfinite(array).all():
        raise _unreadable("registers are not constant where the grid reads them")
    return array


def _unreadable(why: str) -> CertificateError:
    return CertificateError(f"the network is not a head over a grid as it is built: {why}")
