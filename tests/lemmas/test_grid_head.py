"""Heads over grids, read from the weights: what the walk bounds holds, and what is not the grid is not taken for it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from anchorhead.constructions.grids.grid_network import grid_network
from anchorhead.domain import Box
from anchorhead.heads.atom import softmax
from anchorhead.heads.grids.grid_atom import GridAtom
from anchorhead.language.targets.mlp import Affine
from anchorhead.lemmas.output import OutputBound
from anchorhead.lemmas.prove import prove_claims
from anchorhead.network import Attention, Embed, Network
from anchorhead.proof.arithmetic.affine_forms import Sources, embedded
from anchorhead.proof.arithmetic.arithmetic import arithmetic_of
from anchorhead.proof.arithmetic.readings import of_grid
from anchorhead.proof.grids.grid_rounding import prove_grid_rounding
from anchorhead.proof.grids.proven_grid import GridClaim, ProvenGrid
from anchorhead.terms import Term

KINDS = ["one token", "two tokens", "causal"]


def grid(dtype: Any, outputs: int = 2, seed: int = 0) -> ProvenGrid:
    """A grid that is its own function: the network errs by rounding alone."""
    rng = np.random.default_rng(seed)
    sides, low, high = (4, 3), np.array([-1.0, 0.25]), np.array([1.0, 2.0])
    axes = [(np.sort(rng.normal(size=p) * 3), rng.normal(size=p)) for p in sides]
    atom = GridAtom.of(axes, low / 2 + high / 2, rng.normal(size=(*sides, outputs)), rng.normal(size=outputs), dtype)
    rounding = prove_grid_rounding(atom, low, high, arithmetic_of(dtype))
    return ProvenGrid(atom, low, high, (Term("approximation", 0.0),), rounding, "by itself")


def made(kind: str, dtype: Any) -> tuple[Network, GridClaim, Box]:
    found = grid(dtype)
    if kind == "causal":  # the first token sees the first variable alone, on which its function depends alone
        values = np.array(found.atom.values)
        values[..., 0] = values[:, :1, 0]
        atom = GridAtom.of(found.atom.axes, found.atom.origins, values, found.atom.bias, dtype)
        found = replace(found, atom=atom)
        network = grid_network(atom, 2, causal=True)
    else:
        network = grid_network(found.atom, 2 if kind == "two tokens" else None)
    tokens = None if kind == "one token" else 2
    claim = GridClaim.of(found, (0, 1), (0, 0) if tokens is None else (0, 1))
    if kind == "causal":
        claim = replace(claim, depends=np.array([[True, False], [True, True]]))
    shape = (2,) if tokens is None else (tokens, 1)
    return network, claim, Box.of((found.low.reshape(shape), found.high.reshape(shape)))


def proven(network: Network, claim: GridClaim, box: Box) -> OutputBound:
    readout = Affine(np.concatenate([np.zeros((2, 2)), np.eye(2)], axis=1), np.zeros(2))
    return prove_claims(network, [claim], readout, box)


def errors(network: Network, claim: GridClaim, box: Box) -> np.ndarray:
    """The largest error of each function at random points, corners and the middle."""
    rng = np.random.default_rng(5)
    low, high = claim.grid.low, claim.grid.high
    x = np.concatenate([rng.uniform(low, high, (200, 2)), np.where(rng.random((20, 2)) < 0.5, low, high)])
    given = x.reshape(len(x), *box.low.shape)
    y = np.asarray(network(given, outside="ignore"), np.longdouble).reshape(len(x), 2)
    return np.abs(y - claim.grid.atom.exact(x)).max(axis=0).astype(float)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_a_grid_is_read_from_its_network(kind: str, dtype: str) -> None:
    network, claim, box = made(kind, dtype)
    bound = proven(network, claim, box)
    assert (errors(network, claim, box) <= bound.approximation + bound.rounding).all()
    assert bound.approximation.max() == 0
    sizes = claim.ranges.size.max()
    assert bound.rounding.max() <= claim.grid.rounding + 400 * arithmetic_of(dtype).unit * sizes


def test_logits_are_sums_over_axes() -> None:
    """The softmax of the attention over all points is the product of those along the axes."""
    network, claim, _ = made("one token", "float64")
    sources = Sources(claim.grid.low, claim.grid.high)
    layer, model = network.layers[-1], arithmetic_of("float64")
    assert isinstance(layer, Attention)
    axes = of_grid(layer, *embedded(network.embed, sources, model), sources, model)
    x = np.array([0.3, 1.1])
    weights = np.ones(())
    for readings in axes:
        t = float(readings.t.coefficients[0, 0] @ x + readings.t.constant[0, 0])
        keys = readings.keys[0]
        weights = np.multiply.outer(weights, softmax(keys.slopes * t + keys.offsets))
    read = np.tensordot(weights, claim.grid.atom.values, axes=2) + claim.grid.atom.bias
    assert np.abs(read - np.asarray(network(x))).max() < 1e-14


def tampered(network: Network, rng: np.random.Generator) -> Network:
    """One weight changed, by a random amount, or a zero that is none any more."""
    layers = list(network.layers)
    place = int(rng.integers(len(layers)))
    names = ["weight", "bias", "registers"] if isinstance(layers[place], Embed) else ["query", "key", "value", "output"]
    name = str(rng.choice(names))
    array = np.array(getattr(layers[place], name))
    filled = np.argwhere(array != 0)
    entry = tuple(filled[rng.integers(len(filled))])
    if rng.random() < 0.3:
        entry = tuple(int(rng.integers(side)) for side in array.shape)
    array[entry] = array[entry] * (1 + 10 ** rng.uniform(-4, 0)) if array[entry] else 10 ** rng.uniform(-3, 0)
    layers[place] = replace(layers[place], **{name: array})
    return Network(layers, token_axis=network.token_axis, outside="ignore")


@pytest.mark.slow_for("two tokens", "causal")
@pytest.mark.parametrize("kind", KINDS)
def test_the_bound_holds_for_changed_weights(kind: str) -> None:
    network, claim, box = made(kind, "float64")
    rng = np.random.default_rng(KINDS.index(kind))
    refused = 0
    for _ in range(60):
        other = tampered(network, rng)
        bound = proven(other, claim, box)
        assert (errors(other, claim, box) <= bound.approximation + bound.rounding).all()
        refused += bound.rounding.max() + bound.approximation.max() > 1e-6
    assert refused > 30


def test_a_larger_box_and_another_function_are_not_claimed() -> None:
    network, claim, box = made("one token", "float64")
    wide = Box.of((box.low - 0.1, box.high))
    assert proven(network, claim, wide).approximation.max() > 0.1
    swapped = replace(claim, places=(1, 0))
    assert proven(network, swapped, Box.of(([0.25, 0.25], [1, 1]))).approximation.max() > 0.1


def test_what_is_hidden_must_not_matter() -> None:
    network, claim, box = made("causal", "float64")
    matters = replace(claim, depends=np.ones((2, 2), bool))
    assert proven(network, matters, box).approximation.max() > 0.1
