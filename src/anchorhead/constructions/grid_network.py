"""A head over a tensor grid as a network: registers are the grid's points, row by row.

One token. A register carries, for each axis, slope and offset of its index along it, and its values; the query of the
input token is (x_j - origin_j, 1) for each axis.

A sequence of n tokens, whose n features entries are the variables, with m outputs for every token. A first attention
gathers it: head j asks with 1 for the key FAR [position = j] and so copies token j into every token, exactly, because
the other weights underflow to 0. The grid gets one more axis of n points, one a token: its logits are 0 for the token
itself and -M for the others, out of reach. So token i reads the values of its own outputs. A skip adds their bias.
"""

from __future__ import annotations

import numpy as np

from anchorhead.errors import AnchorheadError
from anchorhead.heads.grid_atom import GridAtom
from anchorhead.network import Attention, Embed, Linear, Network

FAR = 2000.0
OUT_OF_REACH = 2.0**40
"""M: a power of two, so that products are exact, far beyond all logits of which anything is proven."""


def grid_network(atom: GridAtom, tokens: int | None = None) -> Network:
    """The network, without target and certificate: inputs (..., d) to outputs (..., m); with tokens=n, inputs
    (..., n, d/n) to outputs (..., n, m/n), entries in order.
    """
    if tokens is None:
        return _of_one_token(atom)
    if tokens < 1 or atom.variables % tokens or atom.outputs % tokens:
        raise AnchorheadError(
            f"tokens={tokens!r} for {atom.variables} variables and {atom.outputs} outputs: a number that divides both"
        )
    return _of_a_sequence(atom, tokens)


def _columns(atom: GridAtom) -> list[np.ndarray]:
    """Slope and offset along each axis, for every point of the grid, row by row."""
    index = np.indices(atom.sides).reshape(atom.variables, -1)
    return [array[k] for (slopes, offsets), k in zip(atom.axes, index, strict=True) for array in (slopes, offsets)]


def _key_names(atom: GridAtom) -> list[str]:
    return [f"{what} along axis {j}" for j in range(atom.variables) for what in ("slope", "offset")]


def _output_names(count: int) -> tuple[str, ...]:
    return tuple(f"output {i}" for i in range(count)) if count > 1 else ("output",)


def _of_one_token(atom: GridAtom) -> Network:
    d, m, dtype = atom.variables, atom.outputs, atom.dtype
    names = [f"input {j} less its origin" for j in range(d)] + ["one", *_key_names(atom)]
    names += [f"value {i}" for i in range(m)]
    width = len(names)
    registers = np.zeros((atom.anchors, width), dtype)
    registers[:, d + 1 : 3 * d + 1] = np.stack(_columns(atom), axis=1)
    registers[:, 3 * d + 1 :] = atom.values.reshape(-1, m)
    token = np.zeros(width, dtype)
    token[:d], token[d] = -atom.origins, 1
    pick = np.eye(width, dtype=dtype)
    query = pick[[feature for j in range(d) for feature in (j, d)]]
    attention = Attention(
        query[None],
        pick[None, d + 1 : 3 * d + 1],
        pick[None, 3 * d + 1 :],
        np.eye(m, dtype=dtype)[None],
        bias=atom.bias if atom.bias.any() else None,
        grid=atom.sides,
        features=_output_names(m),
    )
    embed = Embed(np.eye(width, d, dtype=dtype), token, registers=registers, tokens=1, features=tuple(names))
    return Network([embed, attention], token_axis=False)


def _of_a_sequence(atom: GridAtom, n: int) -> Network:
    d, dtype = atom.variables, atom.dtype
    few, m, block = d // n, atom.outputs // n, max(2, n)
    shared = ["one", *(f"at position {j}" for j in range(n)), *(f"out of reach of token {j}" for j in range(n))]
    shared += [*_key_names(atom), *(f"for token {j}" for j in range(n)), *(f"value {i}" for i in range(m))]
    one, at, away, keys = 0, 1, 1 + n, 1 + 2 * n
    own, values = keys + 2 * d, keys + 2 * d + n
    width = len(shared)

    registers = np.zeros((atom.anchors, n, width), dtype)
    registers[:, :, keys:own] = np.stack(_columns(atom), axis=1)[:, None]
    registers[:, :, own:values] = np.eye(n)
    registers[:, :, values:] = atom.values.reshape(-1, n, m)
    token = np.zeros((n, few + width), dtype)
    token[:, :few] = -atom.origins.reshape(n, few)
    token[:, few + one] = 1
    token[:, few + at : few + away] = np.eye(n)
    token[:, few + away : few + keys] = -OUT_OF_REACH * (1 - np.eye(n))
    names = [f"input {f} less its origin" for f in range(few)]
    embed = Embed(
        np.eye(few + width, few, dtype=dtype),
        token,
        registers=np.concatenate([np.zeros((*registers.shape[:2], few), dtype), registers], 2).reshape(-1, few + width),
        tokens=n,
        features=(*names, *shared),
    )

    pick = np.eye(few + width, dtype=dtype)
    output = np.zeros((n, d + width, few), dtype)
    for j in range(n):
        output[j, j * few : (j + 1) * few] = np.eye(few)
    skip = np.zeros((d + width, few + width), dtype)
    skip[d:, few:] = np.eye(width)
    gathered = tuple(f"{name} of token {j}" for j in range(n) for name in names) + tuple(shared)
    gather = Attention(
        np.broadcast_to(pick[few + one], (n, 1, few + width)),
        (FAR * pick[few + at : few + away])[:, None],
        pick[None, :few],
        output,
        skip=Linear(skip, features=gathered),
        features=gathered,
    )

    pick = np.eye(d + width, dtype=dtype)
    query, key = (np.zeros((d + 1, block, d + width), dtype) for _ in range(2))
    for j in range(d):
        query[j, :2] = pick[[j, d + one]]
        key[j, :2] = pick[d + keys + 2 * j : d + keys + 2 * j + 2]
    query[d, :n], key[d, :n] = pick[d + away : d + keys], pick[d + own : d + values]
    bias = np.zeros((m, d + width), dtype)
    bias[:, d + at : d + away] = atom.bias.reshape(n, m).T
    attention = Attention(
        query.reshape(1, -1, d + width),
        key.reshape(1, -1, d + width),
        pick[None, d + values :],
        np.eye(m, dtype=dtype)[None],
        skip=Linear(bias, features=_output_names(m)),
        grid=(*atom.sides, n),
        features=_output_names(m),
    )
    return Network([embed, gather, attention])
