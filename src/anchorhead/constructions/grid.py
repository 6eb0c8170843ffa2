"""Smooth functions of two to four variables as one softmax head over a tensor grid of anchors, proven.

heads.grid picks keys and solves for values, constructions.grid_network lays them out, proof.grid bounds the error.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from anchorhead.certificate import Certificate, round_up
from anchorhead.constructions.grid_network import grid_network
from anchorhead.domain import Box
from anchorhead.errors import AnchorheadError
from anchorhead.heads.atom import Dtype
from anchorhead.heads.grid import solve_grid
from anchorhead.heads.grid_atom import MOST_VARIABLES, GridAtom
from anchorhead.heads.grid_samples import BoxedFunction, Samples
from anchorhead.network import Network, Outside
from anchorhead.network.dtypes import dtype_name
from anchorhead.proof.arithmetic import require_model
from anchorhead.proof.grid import GridBound, prove_grid, smooth_on_box
from anchorhead.targets.several import SeveralVariables

__all__ = ["approximate_grid", "certified_grid", "grid_network"]

Progress = Callable[[int, float], None]
TRIES = 4
MOST_ANCHORS = 20_000
_METHOD = (
    "for every x of the box: difference of target and head interpolated at Chebyshev points, remainders bounded on "
    "products of Bernstein ellipses with complex balls; rounding on cells"
)


def approximate_grid(
    target: SeveralVariables,
    within: float,
    dtype: Any = "float64",
    prove: bool = True,
    progress: Progress | None = None,
    outside: Outside = "warn",
    tokens: int | None = None,
    most: int = MOST_ANCHORS,
) -> Network:
    """The smallest grid found within the error, rounding included, as a network with its certificate.

    prove     prove the bound; else it is measured, the largest error that a search found
    progress  called with (anchors, error) as the search goes on
    tokens    none: inputs (..., d), outputs (..., m); n: inputs (..., n, d/n), outputs (..., n, m/n)
    most      the most anchors; a grid that would be larger is refused before it is built
    """
    kind: Dtype = dtype_name(dtype)  # type: ignore[assignment]
    if not isinstance(target, SeveralVariables):
        raise AnchorheadError(f"{type(target).__name__} is not a target of several variables: give SeveralVariables")
    if isinstance(within, bool) or not isinstance(within, int | float | np.number) or not within > 0:
        raise AnchorheadError(f"within={within!r}: the error asked for, a number above 0")
    if len(target.variables) > MOST_VARIABLES:
        raise AnchorheadError(
            f"{target} has {len(target.variables)} variables: a grid takes at most {MOST_VARIABLES}, because its size "
            "is a power of them; write the function as a sum of functions of fewer variables"
        )
    if prove:
        smooth_on_box(target.expressions, target.variables, target.low, target.high)
    aim, best = float(within), np.inf
    for _ in range(TRIES):
        try:
            atom = solve_grid(target.values, target.low, target.high, aim, kind, most, progress)
        except AnchorheadError:
            if not np.isfinite(best):
                raise
            break  # what is asked for was nearly reached, but no closer
        network = certified_grid(atom, target, prove, tokens, outside)
        bound = network.certificate.bound if network.certificate else np.inf
        if bound <= within:
            return network
        best = min(best, bound)
        aim *= 0.95 * min(within / bound, 1.0)
    raise AnchorheadError(
        f"within={within:g} was not reached for {target} in {kind}: the best certificate says {best:.3g}. What would "
        f"help: a larger error, {'float64, ' if kind == 'float32' else ''}a smaller box"
    )


def certified_grid(
    atom: GridAtom,
    target: SeveralVariables,
    prove: bool = True,
    tokens: int | None = None,
    outside: Outside = "warn",
) -> Network:
    """The network of a given grid with the bound that is proven for it, or measured."""
    model = require_model(atom.dtype)
    network = grid_network(atom, tokens)
    if prove:
        bound = prove_grid(atom, target.expressions, target.variables, target.low, target.high, model)
        total, terms, method = bound.total, bound.terms(), f"{_METHOD}; {_seen(bound)}"
    else:
        found = Samples.of(BoxedFunction.of(target.values, target.low, target.high), 1e-8).error(atom)
        bound = GridBound(*found, found[0], ())
        total, terms = bound.total, bound.terms()
        method = "largest error found on a fine grid and at random points; rounding bounded at some of them"
    shape = (-1,) if tokens is None else (tokens, len(target.variables) // tokens)
    certificate = Certificate(
        kind="proven" if prove else "measured",
        bound=round_up(total),
        norm="sup",
        on=Box.of((np.reshape(target.low, shape), np.reshape(target.high, shape))),
        dtype=atom.dtype,
        arithmetic=str(model),
        terms=terms,
        method=method,
        target=str(target),
    )
    return network.with_(target=target.record(), certificate=certificate, outside=outside)


def _seen(bound: GridBound) -> str:
    return f"largest error found {bound.found:.4g}, at ({', '.join(f'{x:.6g}' for x in bound.at)})"
