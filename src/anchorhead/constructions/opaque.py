"""Callables of a few variables as one head over a grid: the error is measured, by a search for the worst place."""

from __future__ import annotations

import numpy as np
from jaxtyping import Float

from anchorhead.certificate import Certificate, round_up
from anchorhead.constructions.grid import MOST_ANCHORS, TRIES, Progress
from anchorhead.constructions.grid_network import grid_network
from anchorhead.domain import Box
from anchorhead.errors import AnchorheadError
from anchorhead.heads.atom import Dtype
from anchorhead.heads.grid import solve_grid
from anchorhead.heads.grid_atom import MOST_VARIABLES, GridAtom
from anchorhead.network import Network, Outside
from anchorhead.proof.arithmetic import require_model
from anchorhead.targets.opaque_several import CallableSeveral

SAMPLES = 20_000
CLIMBERS, STEPS = 50, 24


def approximate_callable(
    target: CallableSeveral, within: float, dtype: Dtype, outside: Outside = "warn", progress: Progress | None = None
) -> Network:
    """The smallest grid found whose largest error, as a search finds it, is within what is asked for."""
    if len(target.variables) > MOST_VARIABLES:
        raise AnchorheadError(
            f"{target} is opaque, and a grid takes at most {MOST_VARIABLES} variables: write it as an expression, or "
            "fit a torch network to it and use ah.convert"
        )
    aim, best = float(within), np.inf
    for _ in range(TRIES):
        try:
            atom = solve_grid(target.values, target.low, target.high, aim, dtype, MOST_ANCHORS, progress)
        except AnchorheadError:
            if not np.isfinite(best):
                raise
            break
        error, at = largest_error(atom, target)
        if error <= within:
            return _certified(atom, target, error, at, outside)
        best = min(best, error)
        aim *= 0.9 * within / error
    raise AnchorheadError(
        f"within={within:g} was not reached for {target} in {dtype}: the best grid found errs by {best:.3g}. What "
        "would help: a larger error, a smaller box; a function with kinks needs a network of its own, see ah.convert"
    )


def largest_error(atom: GridAtom, target: CallableSeveral, seed: int = 0) -> tuple[float, Float[np.ndarray, " inputs"]]:
    """The largest |network - f| found, as the dtype computes it: random points and corners, then climbs from the worst.

    A climb tries random steps around its best point so far, ever smaller ones.
    """
    rng = np.random.default_rng(seed)
    low, high = np.array(target.low), np.array(target.high)
    x = rng.uniform(low, high, (SAMPLES, len(low)))
    edges = rng.random(x.shape)
    x = np.where(edges < 0.1, low, np.where(edges > 0.9, high, x))
    error = _errors(atom, target, x)
    top = np.argsort(-error)[:CLIMBERS]
    x, error = x[top], error[top]
    for step in np.geomspace(0.2, 1e-5, STEPS):
        tried = np.clip(x[:, None] + step * (high - low) * rng.standard_normal((len(x), 8, len(low))), low, high)
        found = _errors(atom, target, tried.reshape(-1, len(low))).reshape(len(x), 8)
        place = found.argmax(axis=1)
        better = found.max(axis=1) > error
        x = np.where(better[:, None], tried[np.arange(len(x)), place], x)
        error = np.where(better, found.max(axis=1), error)
    return float(error.max()), x[int(error.argmax())]


def _errors(atom: GridAtom, target: CallableSeveral, x: Float[np.ndarray, "n inputs"]) -> Float[np.ndarray, " n"]:
    x = x.astype(atom.dtype)
    return np.abs(atom(x).astype(np.float64) - target.values(x)).max(axis=1)


def _certified(atom: GridAtom, target: CallableSeveral, error: float, at: np.ndarray, outside: Outside) -> Network:
    shape = (-1,) if target.tokens is None else (target.tokens, len(target.variables) // target.tokens)
    certificate = Certificate(
        kind="measured",
        bound=round_up(error),
        norm="sup",
        on=Box.of((np.reshape(target.low, shape), np.reshape(target.high, shape))),
        dtype=atom.dtype,
        arithmetic=str(require_model(atom.dtype)),
        terms={"largest error found, as the dtype computes it": error},
        method=f"a grid of {' x '.join(map(str, atom.sides))} anchors; {target.evaluations:,} evaluations of the "
        f"function, random ones and climbs from the worst; the largest is at ({', '.join(f'{c:.6g}' for c in at)})",
        target=str(target),
    )
    network = grid_network(atom, target.tokens)
    return network.with_(target=target.record(), certificate=certificate, outside=outside)
