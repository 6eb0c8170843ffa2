"""Reads a head over a tensor grid back from its network: from nothing but the stored weights.

Both layouts of constructions.grid_network are understood, in any order of features: maps must pick features one by one,
so that what is copied is copied exactly. Anything else is refused with a CertificateError.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

import numpy as np
from jaxtyping import Bool, Float, Int

from anchorhead.errors import CertificateError
from anchorhead.heads.atom import Dtype
from anchorhead.heads.grids.grid_atom import GridAtom
from anchorhead.network import Attention, Embed, Linear, Network
from anchorhead.proof.arithmetic.arithmetic import Arithmetic, arithmetic_of
from anchorhead.proof.arithmetic.silence import one_winner

BEYOND = 2.0**30  # far beyond the logits of which grid_rounding proves anything


@dataclass(frozen=True, eq=False)
class GridForm:
    """The grid, with all outputs in order of tokens, and how many tokens there are (none: no token axis).

    axes    for each axis the entry of the input that it is along
    hidden  which tokens ask at the origin of an axis instead, because the entry is hidden from them
    """

    atom: GridAtom
    tokens: int | None
    axes: tuple[int, ...]
    hidden: Bool[np.ndarray, "tokens axes"]

    def only(self, outputs: Sequence[int]) -> GridAtom:
        """The grid of some of the outputs; refuses unless the others are 0, exactly."""
        kept = np.zeros(self.atom.outputs, bool)
        kept[list(outputs)] = True
        if self.atom.values[..., ~kept].any() or self.atom.bias[~kept].any():
            raise _unreadable("an output that has no share in the grid reads it")
        atom, order = self.atom, list(outputs)
        return GridAtom.of(atom.axes, atom.origins, atom.values[..., order], atom.bias[order], atom.dtype)


@dataclass(frozen=True, eq=False)
class _Tokens:
    """What tokens carry: a feature of an input token is an entry of the input (its number, or -1) plus a constant."""

    variable: Int[np.ndarray, "tokens features"]
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
        tokens, reads = _embedded(embed), np.zeros(1, int)
        return _grid(last, tokens, last.grid, reads, np.zeros((1, last.outputs)), network.dtype, None)
    if kinds == [Embed, Attention, Attention] and network.token_axis:
        return _of_sequence(network)
    raise _unreadable("the layers are not those of a head over a grid")


def _of_sequence(network: Network) -> GridForm:
    embed, gather, last = network.layers
    if not (isinstance(embed, Embed) and isinstance(gather, Attention) and isinstance(last, Attention) and last.grid):
        raise _unreadable("the layers are not those of a head over a grid")
    tokens = _gathered(gather, _embedded(embed), arithmetic_of(network.dtype))
    if len(last.grid) < 2:
        raise _unreadable("the grid has no axis of tokens")
    reads = _gate(last, tokens, len(last.grid))
    bias = np.zeros((len(reads), last.outputs)) if last.skip is None else _constants_of(last.skip, tokens)
    return _grid(last, tokens, last.grid[:-1], reads, bias, network.dtype, embed.tokens)


def _embedded(embed: Embed) -> _Tokens:
    """The tokens that leave an Embed; a feature that varies must be an input entry plus a constant, at every token."""
    n = embed.tokens or 1
    weight = np.broadcast_to(embed.weight, (n, *embed.weight.shape[-2:]))
    bias = np.broadcast_to(embed.bias, (n, weight.shape[1]))
    variable = np.full(weight.shape[:2], -1)
    for feature in np.flatnonzero((weight != 0).any(axis=(0, 2))):
        row = weight[:, feature]
        entry = int(row[0].argmax())
        if not np.array_equal(row, np.broadcast_to(np.eye(row.shape[1])[entry], row.shape)):
            raise _unreadable("an input is scaled or mixed before it is asked with")
        variable[:, feature] = np.arange(n) * embed.inputs + entry
    registers = np.asarray(embed.registers)
    return _Tokens(variable, bias, registers)


def _gathered(gather: Attention, tokens: _Tokens, arithmetic: Arithmetic) -> _Tokens:
    """The tokens after heads have copied other tokens into them, each by a key that wins over all others."""
    n = len(tokens.constant)
    if gather.mask not in (None, "causal") or gather.grid or gather.skip is None or gather.skip.bias is not None:
        raise _unreadable("the first attention does not gather")
    if gather.query.shape[1] != 1 or gather.skip.weight.ndim != 2 or gather.bias is not None:
        raise _unreadable("the first attention does not gather")
    kept = _picked(gather.skip.weight)
    passes = kept >= 0
    if (tokens.variable[:, kept[passes]] >= 0).any():
        raise _unreadable("the first attention passes inputs on beside those that it gathers")
    variable = np.full((n, gather.outputs), -1)
    constant = np.zeros((n, gather.outputs), tokens.constant.dtype)
    constant[:, passes] = tokens.constant[:, kept[passes]]
    registers = np.zeros((len(tokens.registers), gather.outputs), tokens.registers.dtype)
    registers[:, passes] = tokens.registers[:, kept[passes]]
    written = np.zeros(gather.outputs, bool)
    for h in range(gather.heads):
        winners = _winners(gather, h, tokens, arithmetic)
        value = _picked(gather.value[min(h, len(gather.value) - 1)])
        for place in np.flatnonzero(gather.output[h].any(axis=1)):
            entry = _picked(gather.output[h, place][None])[0]
            if entry < 0 or value[entry] < 0 or passes[place] or written[place]:
                raise _unreadable("what the first attention copies is not a feature")
            written[place] = True
            for i, winner in enumerate(winners):
                if winner < n:
                    variable[i, place] = tokens.variable[winner, value[entry]]
                    constant[i, place] = tokens.constant[winner, value[entry]]
                else:
                    constant[i, place] = tokens.registers[winner - n, value[entry]]
            registers[:, place] = np.nan  # registers gather something too: it must not matter
    return _Tokens(variable, constant, registers)


def _winners(gather: Attention, h: int, tokens: _Tokens, arithmetic: Arithmetic) -> list[int]:
    """For each token the one that a head copies into it: its key wins over all others that can be seen."""
    n = len(tokens.constant)
    ask, key = gather.query[h, 0], gather.key[min(h, len(gather.key) - 1), 0]
    asks, shows = np.flatnonzero(ask), np.flatnonzero(key)
    if len(asks) != 1 or (tokens.variable[:, asks[0]] >= 0).any() or (tokens.variable[:, shows] >= 0).any():
        raise _unreadable("the first attention asks with, or for, what depends on the input")
    if (ask[asks[0]] * tokens.constant[:, asks[0]] != 1).any():
        raise _unreadable("the first attention does not ask with 1")
    products = np.concatenate([tokens.constant, tokens.registers])[:, shows].astype(np.float64) * key[shows]
    if ((products != 0).sum(axis=1) > 1).any():
        raise _unreadable("a key of the first attention is a sum")
    logits = products.sum(axis=1)
    result = []
    for i in range(n):
        seen = logits.copy()
        if gather.mask == "causal":
            seen[i + 1 : n] = -np.inf
        winner = one_winner(seen, np.abs(logits), 2, arithmetic)  # a product of a product: it rounds twice
        if winner is None:
            raise _unreadable("a head of the first attention finds no single token")
        result.append(winner)
    return result


def _gate(last: Attention, tokens: _Tokens, axes: int) -> Int[np.ndarray, " tokens"]:
    """The point of the last axis that each token sees: at logit 0 exactly, all others out of reach."""
    size, points = last.query.shape[1] // axes, (last.grid or (1,))[-1]
    query, key = last.query[0, -size:], last.key[0, -size:]
    asks = np.stack([_fixed(row, tokens, of_registers=False) for row in query], axis=1)  # (n, size)
    shows = np.stack([_fixed(row, tokens, of_registers=True) for row in key], axis=1)[:points]  # others at their first
    products = asks[:, None, :] * shows[None, :, :]
    own = (products == 0).all(axis=-1)
    if (own.sum(axis=1) != 1).any() or (products > 0).any() or not (products[~own].min(axis=-1) <= -BEYOND).all():
        raise _unreadable("a token does not read its own outputs alone")
    return own.argmax(axis=1)


def _fixed(row: np.ndarray, tokens: _Tokens, of_registers: bool) -> np.ndarray:
    """A feature that a row picks, or zeros, as constants of the input tokens or of the registers."""
    table = tokens.registers if of_registers else tokens.constant
    feature = _picked(row[None])[0]
    if feature < 0:
        return np.zeros(len(table))
    if not of_registers and (tokens.variable[:, feature] >= 0).any():
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
        if (tokens.variable[:, used] >= 0).any() or not np.isin(ones, (0, 1)).all() or (ones.sum(axis=1) > 1).any():
            raise _unreadable("the bias depends on more than the position")
        result[:, output] = ones.astype(np.float64) @ row[used].astype(np.float64)
    return result


def _grid(
    last: Attention,
    tokens: _Tokens,
    sides: tuple[int, ...],
    reads: Int[np.ndarray, " tokens"],
    bias: Float[np.ndarray, "tokens columns"],
    dtype: str,
    count: int | None,
) -> GridForm:
    """The grid that a last attention is, for tokens that hold all of its variables, or the origin in their place."""
    d, axes, m = len(sides), len(last.grid or ()), last.outputs
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
    if (tokens.variable[:, query[:, 1]] >= 0).any() or (tokens.constant[:, query[:, 1]] != 1).any():
        raise _unreadable("a query is not (x - origin, 1) along every axis")
    entries, origins, hidden = _asked(tokens, query[:, 0])
    pairs = []
    for j, side in enumerate(sides):
        stride = prod((last.grid or ())[j + 1 :])
        along = tokens.registers[0 : side * stride : stride]
        pairs.append((_finite(along[:, key[j, 0]]), _finite(along[:, key[j, 1]])))
    table = _finite(tokens.registers[: last.points, picks_values]).reshape(*sides, -1, m)
    values = table[..., reads, :].reshape(*sides, -1)
    shared = np.zeros(m) if last.bias is None else np.asarray(last.bias, np.float64)
    if axes > d and shared.any():
        raise _unreadable("a bias is added twice")
    kind: Dtype = dtype  # type: ignore[assignment]
    atom = GridAtom.of(pairs, origins, values, (bias + shared).reshape(-1), kind)
    return GridForm(atom, count, entries, hidden)


def _asked(tokens: _Tokens, features: Int[np.ndarray, " axes"]) -> tuple[tuple[int, ...], np.ndarray, np.ndarray]:
    """The entry and the origin of each axis, and which tokens ask at the origin instead."""
    variable, constant = tokens.variable[:, features], tokens.constant[:, features]
    hidden = variable < 0
    entries = variable.max(axis=0)
    if (entries < 0).any() or ((variable != entries) & ~hidden).any() or len(set(entries.tolist())) < len(entries):
        raise _unreadable("the axes are not inputs, each one of its own")
    origins = -constant[hidden.argmin(axis=0), np.arange(len(entries))]
    if ((constant != -origins) & ~hidden).any():
        raise _unreadable("tokens take different origins from the same input")
    if (constant[hidden] != 0).any():
        raise _unreadable("what stands for a hidden input is not the origin")
    return tuple(entries.tolist()), origins, hidden


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
