"""The paper's universal approximation theorem, carried out: a uniform grid of anchors that hold values of the function.

Any continuous function of one to four variables will do. How fine the grid must be follows from the function's modulus
of continuity, how sharp the softmax from one formula, beta = c / spacing^2, and proof.grids.uniform_grid proves the
error.
"""

from __future__ import annotations

from math import ceil, inf, isfinite, prod

import numpy as np
from jaxtyping import Float

from anchorhead.constructions.build_request import BuildRequest
from anchorhead.constructions.grids.certified import certified_network
from anchorhead.constructions.grids.grid import MAX_ANCHORS, require_few_variables
from anchorhead.decimals import round_up
from anchorhead.errors import AnchorheadError
from anchorhead.heads.grids.grid import uniform_grid
from anchorhead.heads.grids.grid_samples import BoxedFunction
from anchorhead.language.of_targets import program_of
from anchorhead.language.several import SeveralVariables
from anchorhead.network import Network
from anchorhead.progress import Status
from anchorhead.proof.arithmetic.arithmetic import require_model
from anchorhead.proof.grids.proven_grid import ProvenGrid
from anchorhead.proof.grids.uniform_grid import prove_uniform_grid
from anchorhead.proof.heads.uniform_activation_head import SHARPNESS
from anchorhead.terms import added_up

_TRIES = 8
_SAMPLES = {1: 2049, 2: 129, 3: 33, 4: 17}


def approximate_uniform_grid(target: SeveralVariables, request: BuildRequest) -> Network:
    """The smallest uniform grid found that is proven within the error, rounding included, as a network.

    The anchors and the proven error of every grid that is tried are told.
    """
    require_few_variables(target)
    return certified_network(_smallest(target, request), target, program_of(target), request)


def _smallest(target: SeveralVariables, request: BuildRequest) -> ProvenGrid:
    """Aims a little lower until the proof agrees; where it agrees by far, once more at a coarser grid."""
    within, dtype, model = request.error, request.dtype, require_model(request.dtype)
    modulus = SampledModulus(BoxedFunction.of(target.values, target.low, target.high))
    aim, found, before, hopeless = within, None, inf, inf
    least = (1,) * len(target.variables)
    for _ in range(_TRIES):
        sides = tuple(max(pair) for pair in zip(modulus.sides(aim), least, strict=True))
        if prod(sides) > MAX_ANCHORS:
            if found is None:
                raise _too_many(sides, within, before, modulus.jumps(aim))
            return found
        atom = uniform_grid(target.values, target.low, target.high, sides, SHARPNESS, dtype)
        bound = prove_uniform_grid(atom, target.expressions, target.variables, target.low, target.high, model)
        reached = round_up(bound.total * (1 + 1e-9))  # what the network's proof may add
        if request.progress:
            request.progress(Status("solving for a uniform grid", atom.anchors, reached))
        if reached <= within:
            if found is not None or reached >= 0.9 * within:
                return bound
            found = bound
        elif found is not None:
            return found
        elif bound.rounding > within or reached > hopeless:
            raise _stalled(target, bound, within, dtype)
        before, ratio = reached, 0.985 * within / reached if isfinite(reached) else 0.5
        hopeless = before * (0.97 if modulus.jumps(within) else ratio**0.25 if ratio < 0.7 else inf)
        aim *= ratio
        if found is None and all(
            a <= b for a, b in zip(modulus.sides(aim), sides, strict=True)
        ):  # samples may miss what the proof sees
            least = tuple(ceil(side / max(ratio, 0.1)) + 1 for side in sides)
    if found is not None:
        return found
    raise AnchorheadError(
        f"within={within:g} was not reached for {target} in {dtype}: the last of {_TRIES} uniform grids is proven "
        f"within {before:.3g}{_hint(modulus.jumps(within))}. What would help: a larger error, a smaller box"
    )


class SampledModulus:
    """omega_j(delta), about: how much f changes along axis j over a distance, the largest change seen on samples.

    distances  (n,) for each axis      changes  (n,) for each axis, not decreasing
    """

    def __init__(self, box: BoxedFunction) -> None:
        count = _SAMPLES[box.variables]
        values = box.on_grid([np.linspace(-1, 1, count)] * box.variables)
        lags = np.unique(np.geomspace(1, count - 1, 24).astype(int))
        self.lengths = box.high - box.low
        self.distances = [length * lags / (count - 1) for length in self.lengths]
        self.changes = [np.maximum.accumulate(_changes(values, axis, lags)) for axis in range(box.variables)]

    def sides(self, aim: float) -> tuple[int, ...]:
        """How many even anchors along each axis, so that half a spacing changes f by an equal share of `aim`."""
        share = aim / max(1, sum(bool(change[-1] > 0) for change in self.changes))
        return tuple(
            1 if change[-1] == 0 else 1 + max(1, ceil(length / (2 * _inverse(distance, change, share)) - 1e-9))
            for length, distance, change in zip(self.lengths, self.distances, self.changes, strict=True)
        )

    def jumps(self, aim: float) -> bool:
        """Whether f changes by more than it may over the least distance, and hardly more over twice that."""
        return any(len(change) > 1 and change[0] > max(aim, 0.9 * change[1]) for change in self.changes)


def _changes(values: Float[np.ndarray, "..."], axis: int, lags: np.ndarray) -> Float[np.ndarray, " n"]:
    along = np.moveaxis(values, axis, 0)
    return np.array([np.abs(along[lag:] - along[:-lag]).max() for lag in lags])


def _inverse(distance: np.ndarray, change: np.ndarray, share: float) -> float:
    """The largest distance over which the change is at most the share; linear below the first one."""
    allowed = np.flatnonzero(change <= share)
    if not len(allowed):
        return float(distance[0] * share / change[0])
    i = int(allowed[-1])
    if i + 1 == len(change):
        return float(distance[i])
    part = (share - change[i]) / (change[i + 1] - change[i])
    return float(distance[i] + part * (distance[i + 1] - distance[i]))


def _too_many(sides: tuple[int, ...], within: float, reached: float, jumps: bool) -> AnchorheadError:
    """The refusal of a grid that would be too large, with its size."""
    size = f"{' x '.join(f'{side:,}' for side in sides)} = {prod(sides):,}"
    known = f" (the largest tried is proven within {reached:.3g})" if isfinite(reached) else ""
    return AnchorheadError(
        f"within={within:g} would take a uniform grid of about {size} anchors, and at most {MAX_ANCHORS:,} are "
        f'allowed{known}: give a larger error or a smaller box, or use placement="solved", which needs far fewer where '
        f"the function is smooth{_hint(jumps)}"
    )


def _hint(jumps: bool) -> str:
    return "; the function seems to jump, and the theorem is for continuous ones" if jumps else ""


def _stalled(target: SeveralVariables, bound: ProvenGrid, within: float, dtype: str) -> AnchorheadError:
    """Why a finer grid would not do better."""
    if bound.rounding > within:
        helps = "use dtype='float64' or a larger error" if dtype == "float32" else "give a larger error"
        return AnchorheadError(
            f"within={within:g} is out of reach of a uniform grid in {dtype}: rounding alone is bounded by "
            f"{bound.rounding:.3g}, because keys grow with the square of the anchors; {helps}, or use "
            'placement="solved"'
        )
    where = ", ".join(f"{name} = {x:.6g}" for name, x in zip(target.variables, bound.at, strict=True))
    modulus = added_up(term for term in bound.terms if term.of == "modulus")
    return AnchorheadError(
        f"within={within:g} was not reached for {target}: near {where} the function changes by up to "
        f"{modulus:.3g}, and a finer grid does not help. It jumps there (where), or is too steep: the theorem is "
        "for continuous functions; choose a box that keeps away from the place"
    )
