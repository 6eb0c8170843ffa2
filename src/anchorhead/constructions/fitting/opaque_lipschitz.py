"""Callables of a few variables with a Lipschitz constant as one head over a grid, proven.

Of two grids the one with fewer anchors is taken: solved, checked at the centres of cells that cover the box
(proof.grids.grid_cover); or uniform, the paper's, whose error follows from the constant alone
(proof.grids.uniform_grid).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from math import prod

import numpy as np
from jaxtyping import Float

from anchorhead.constructions.build_request import BuildRequest
from anchorhead.constructions.grids.certified import OPAQUE, certified_network
from anchorhead.constructions.grids.grid import MAX_ANCHORS, TRIES, SolvedGrid
from anchorhead.errors import AnchorheadError
from anchorhead.heads.grids.grid import even_places, solve_grid, uniform_grid
from anchorhead.heads.grids.grid_atom import GridAtom
from anchorhead.heads.grids.grid_samples import BoxedFunction, Samples
from anchorhead.language.of_targets import program_of_callable
from anchorhead.language.targets.lipschitz import Lipschitz
from anchorhead.language.targets.opaque_several import CallableSeveral
from anchorhead.progress import Status, at_its_pace
from anchorhead.proof.arithmetic.arithmetic import require_model
from anchorhead.proof.grids.grid_cover import cell_counts, prove_cover, steepest
from anchorhead.proof.grids.grid_rounding import prove_grid_rounding
from anchorhead.proof.grids.proven_grid import ProvenGrid
from anchorhead.proof.grids.uniform_grid import prove_uniform_lipschitz
from anchorhead.proof.heads.uniform_activation_head import SHARPNESS
from anchorhead.terms import added_up

MAX_EVALUATIONS = 2_000_000
_AIM = 0.15
"""The part of the error asked for that a solved grid may have, so that cells may be as large as they can."""
_SMOOTH = 100
"""A function that takes more Chebyshev nodes than this along an axis is best left to a uniform grid."""
_LOOKS = 2000


def prove_callable(target: CallableSeveral, lipschitz: Lipschitz, request: BuildRequest) -> SolvedGrid:
    """The smaller of the two grids that is proven within the error; refused with what both would take."""
    target.check_lipschitz(lipschitz)
    search, within = _Search(target, lipschitz, request), request.error
    sides = search.sides(0.97 * within)
    reason = "fewer anchors than one there cannot be"
    if prod(sides) > 1:
        try:
            return search.solved(min(MAX_ANCHORS, prod(sides) - 1), insist=prod(sides) > MAX_ANCHORS)
        except AnchorheadError as error:
            reason = str(error)
    if prod(sides) > MAX_ANCHORS:
        raise AnchorheadError(
            f"within={within:g} is not proven for {target}, given {lipschitz}: a uniform grid would take about "
            f"{' x '.join(f'{side:,}' for side in sides)} = {prod(sides):,} anchors, and at most {MAX_ANCHORS:,} are "
            f"allowed; and of a solved one: {reason}. What would help: a larger error, a smaller box, a smaller "
            "constant if one holds, or no constant and an error that is measured"
        )
    return search.uniform()


@dataclass(frozen=True)
class _Search:
    target: CallableSeveral
    lipschitz: Lipschitz
    request: BuildRequest

    @property
    def low(self) -> Float[np.ndarray, " d"]:
        return np.array(self.target.low)

    @property
    def high(self) -> Float[np.ndarray, " d"]:
        return np.array(self.target.high)

    def sides(self, aim: float) -> tuple[int, ...]:
        """How many even anchors: an equal share of the error for each axis, or of its square with one constant."""
        along, lengths = self.lipschitz.along, self.high - self.low
        active = max(1, int((along > 0).sum()))
        share = aim / (np.sqrt(active) if self.lipschitz.euclidean else active)
        # as a float first: a huge count is reported, not built
        cells = np.maximum(np.ceil(np.minimum(along * lengths / (2 * share), 1e15)), 1)
        return tuple(int(n) + 1 if rate > 0 else 1 for n, rate in zip(cells, along, strict=True))

    def uniform(self) -> SolvedGrid:
        """Even anchors, a little more of them until the proof agrees."""
        target, dtype, aim, total = self.target, self.request.dtype, 0.97 * self.request.error, np.inf
        for _ in range(TRIES):
            sides = self.sides(aim)
            if prod(sides) > MAX_ANCHORS:
                break
            places = [even_places(a, b, side) for a, b, side in zip(target.low, target.high, sides, strict=True)]
            values = target.values(np.stack(np.meshgrid(*places, indexing="ij"), axis=-1))
            atom = uniform_grid(lambda _, known=values: known, target.low, target.high, sides, SHARPNESS, dtype)
            table = values.reshape(atom.values.shape)
            bound = prove_uniform_lipschitz(atom, table, self.lipschitz, target.low, target.high, require_model(dtype))
            found = self._proven(bound)
            total = found.bound
            if self.request.progress:
                self.request.progress(Status("solving for a grid", atom.anchors, total))
            if total <= self.request.error:
                return found
            if bound.rounding > self.request.error:
                break
            aim *= 0.985 * self.request.error / total
        raise AnchorheadError(
            f"within={self.request.error:g} was not reached for {target} in {dtype}: the best uniform grid is proven "
            f"within {total:.3g}. What would help: {'float64, ' if dtype == 'float32' else ''}a larger error"
        )

    def solved(self, most: int, insist: bool) -> SolvedGrid:
        """A solved grid of at most so many anchors, with as many cells as it takes until the proof agrees.

        insist  try as well where f is not smooth, which takes long: there is no other way
        """
        target, total, spent, aim = self.target, np.inf, 0, _AIM * self.request.error
        self._cells(self.lipschitz.along / 2, self.request.error)
        if not insist and not smooth(target, aim):
            raise AnchorheadError("the function is not smooth enough for one")
        atom = solve_grid(target.values, target.low, target.high, aim, self.request.dtype, most, self.request.progress)
        rounding = prove_grid_rounding(atom, self.low, self.high, require_model(self.request.dtype))
        x = np.random.default_rng(0).uniform(self.low, self.high, (_LOOKS, atom.variables))
        seen = float(np.abs(atom(x).astype(np.float64) - target.values(x)).max())
        slopes, room = steepest(atom, target.low, target.high), 0.92 * (self.request.error - 1.2 * seen - rounding)
        for _ in range(TRIES):
            counts = self._cells(slopes, room, spent)
            bound = self._covered(atom, counts, rounding)
            found = self._proven(bound)
            total = found.bound
            spent += prod(counts)
            if self.request.progress:
                self.request.progress(Status("solving for a grid", atom.anchors, total))
            if total <= self.request.error:
                return found
            seen, moved = (added_up(term for term in bound.terms if term.of == of) for of in ("centres", "cells"))
            room *= 0.97 * (self.request.error - seen - rounding) / max(moved, 1e-300)
        raise AnchorheadError(f"the best one found is proven within {total:.3g} only")

    def _cells(self, slopes: Float[np.ndarray, " d"], room: float, spent: int = 0) -> tuple[int, ...]:
        """So many cells along each axis that f and a head of these slopes change by at most `room` from a centre."""
        if not room > 0:
            raise AnchorheadError(f"rounding and the grid's own error leave no room in {self.request.error:g}")
        counts = cell_counts(self.lipschitz, self.high - self.low, slopes, room)
        if prod(counts) + spent > MAX_EVALUATIONS:
            raise AnchorheadError(
                f"its proof would take about {prod(counts) + spent:,} evaluations of the function, and at most "
                f"{MAX_EVALUATIONS:,} are allowed"
            )
        return counts

    def _covered(self, atom: GridAtom, counts: tuple[int, ...], rounding: float) -> ProvenGrid:
        tell = at_its_pace(self.request.progress or (lambda status: None), "proving")
        return prove_cover(
            atom,
            self.target.values,
            self.lipschitz,
            self.target.low,
            self.target.high,
            counts,
            rounding,
            lambda share: tell(share, share, 1 - share),
        )

    def _proven(self, grid: ProvenGrid) -> SolvedGrid:
        target = self.target
        program = program_of_callable(target, lipschitz=self.lipschitz)
        return SolvedGrid(certified_network(grid, target, program, self.request, OPAQUE), grid.atom, grid)


def smooth(target: CallableSeveral, aim: float) -> bool:
    """Whether few enough Chebyshev nodes along each axis resolve the function: else solving for a grid is slow, and
    mostly in vain."""
    samples = Samples.of(BoxedFunction.of(target.values, target.low, target.high), aim / 50)
    return samples.resolved and max(map(len, samples.nodes)) <= _SMOOTH


def shown(at: Iterable[float]) -> str:
    return ", ".join(f"{c:.6g}" for c in at)
