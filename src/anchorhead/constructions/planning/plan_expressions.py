"""How large a network for expressions becomes, before it is built: what was found in them, and sizes for some errors.

Heads and grids are solved for, which is quick, and not proven: sizes are those that ah.approximate builds, unless a
proof asks for a little more. The paper's even anchors are counted by formula, however many they would be.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import prod
from typing import Any

import numpy as np
from jaxtyping import Float

from anchorhead.constructions.build_request import BuildRequest, Placement
from anchorhead.constructions.causal import without_later_tokens
from anchorhead.constructions.grids.grid import AIM, MAX_ANCHORS
from anchorhead.constructions.grids.grid_network import GridFill, GridPlacement, grid_drafts, placed_drafts
from anchorhead.constructions.layouts.draft import Draft, counted
from anchorhead.constructions.layouts.side_by_side import side_by_side
from anchorhead.constructions.passes.estimated_bound import estimated_bound
from anchorhead.constructions.passes.functions import shared_out, taken_apart
from anchorhead.constructions.passes.layout import drafted
from anchorhead.constructions.passes.parts import ROOM, grid_part, grid_requests, network_part, require_uniform
from anchorhead.constructions.passes.run import Tries
from anchorhead.constructions.passes.simplify import for_layout
from anchorhead.constructions.planning.plan import Plan, Row, beside, check_request, row_of
from anchorhead.constructions.planning.plan_networks import NotPlanned, neuron_rows, reached
from anchorhead.constructions.planning.uniform_estimates import UniformEstimates, uniform_estimate
from anchorhead.constructions.representable import require_expressions_representable
from anchorhead.constructions.single.activation_heads import ActivationHeads, shape_of
from anchorhead.constructions.single.head import MAX_ANCHORS as MAX_ANCHORS_OF_HEAD
from anchorhead.constructions.single.head import SEARCH
from anchorhead.constructions.single.head_network import head_drafts
from anchorhead.constructions.theorems.uniform_grid import SampledModulus
from anchorhead.effort import Effort
from anchorhead.errors import AnchorheadError
from anchorhead.heads.atom import Atom, Dtype
from anchorhead.heads.grids.grid import solve_grid
from anchorhead.heads.grids.grid_atom import GridAtom
from anchorhead.heads.grids.grid_samples import BoxedFunction
from anchorhead.heads.solver.solve import SAFETY, smallest
from anchorhead.heads.tables.table import Entry, lookup
from anchorhead.language.expressions.expression import Expression
from anchorhead.language.expressions.text import name_of
from anchorhead.language.program import Program
from anchorhead.language.several import SeveralVariables
from anchorhead.language.targets import CallableTarget, ScalarTarget
from anchorhead.language.targets.mlp import Mlp
from anchorhead.progress import Status
from anchorhead.proof.arithmetic.arithmetic import require_model
from anchorhead.proof.heads.activation_head import ActivationHead
from anchorhead.proof.heads.uniform_activation_head import SHARPNESS

ESTIMATED = "estimated: solved for, not proven; a proof may ask for a little more"
USUAL = (1e-2, 1e-4, 1e-6, 1e-8)
"""The errors that are planned for where none are named."""
_Planned = tuple[SeveralVariables, Sequence[Row]]
"""Functions as they were taken apart, and rows of what becomes of them."""


def plan_expressions(
    target: SeveralVariables, _: Program, withins: Sequence[float] | None, request: BuildRequest
) -> Plan:
    """The sizes of what ah.approximate builds of expressions within each of these errors, ours beside the paper's."""
    errors = check_request(USUAL if withins is None else withins, request.dtype)
    if request.causal:
        target = without_later_tokens(target)
    require_expressions_representable(errors[0], target, request.dtype)
    if target.becomes(request.form, request.layout) == "head":
        rows, found = _heads(target, errors, request), [(str(one), "one head") for one in target.expressions]
    else:
        heads = Estimates(request.dtype, "solved", request.progress), UniformEstimates(request.dtype)
        rows, found = _Functions(target, {one.placement: one for one in heads}).planned(errors, request)
    if all(row.parameters is None for row in rows) and len({row.note for row in rows}) == 1:
        raise AnchorheadError(rows[0].note)
    return Plan(name_of(target.expressions), target.on, request.dtype, tuple(rows), tuple(found), target.where)


@dataclass(frozen=True, eq=False)
class _Functions:
    """Functions of several variables through the passes, with heads that are solved for and not proven."""

    target: SeveralVariables
    heads: Mapping[Placement, ActivationHeads]

    def planned(self, withins: Sequence[float], request: BuildRequest) -> tuple[list[Row], list[tuple[str, str]]]:
        """Rows for each error, and what every term becomes within the smallest."""
        rows, way = [], self.target
        for within in withins:
            way, solved = self._planned(replace(request, within=within))
            try:
                _, even = self._planned(replace(request, within=within, placement="uniform"))
            except AnchorheadError:  # not every function has a uniform grid
                even = ()
            rows += beside(solved, even)
        return rows, way.found()

    def _planned(self, request: BuildRequest) -> _Planned:
        try:
            return taken_apart(self.target, request, self._of_neurons, self._of_grids)
        except NotPlanned as missed:
            return missed.way or self.target, missed.rows

    def _of_neurons(self, form: Mlp, way: SeveralVariables, request: BuildRequest) -> _Planned:
        if request.given("form", "layout"):
            request.of_network(form)
        return way, reached(neuron_rows(form, way.on, request, self.heads[request.placement]), way)

    def _of_grids(self, way: SeveralVariables, request: BuildRequest) -> _Planned:
        if request.placement == "uniform":
            return way, reached([_even_grid(way, request)], way)
        return way, reached([_Gridded(way, request, self.heads["solved"]).row()], way)


class Estimates(ActivationHeads):
    """Shapes that are solved for and not proven; each serves for several errors."""

    def _new(
        self, activation: Expression, interval: tuple[float, float], error: float, degree: float | None
    ) -> ActivationHead:
        target = ScalarTarget((activation,), *interval)
        found = smallest(
            target.values, target.kinks, *interval, error,
            dtype=self.dtype, max_anchors=MAX_ANCHORS_OF_HEAD, progress=self.progress, effort=Effort(SEARCH),
        )  # fmt: skip
        return shape_of(found.atom, found.estimate.exact, found.estimate.rounding, activation, interval, degree)


def row_of_drafts(
    request: BuildRequest,
    bound: float | None,
    drafts: Sequence[Draft] | None,
    anchors: int | None,
    note: str,
    beta: float | None = None,
    reachable: bool = True,
) -> Row:
    """Of a head or grids, whose softmax runs over their anchors and nothing else."""
    sizes: dict[str, Any] = {"anchors": anchors, "keys": anchors, "beta": beta}
    if drafts is not None:
        size = counted(drafts, 1)
        sizes |= {"layers": size.layers, "heads": size.heads, "parameters": size.parameters}
    return row_of(request, bound, sizes, reachable, note)


def _heads(target: SeveralVariables, withins: Sequence[float], request: BuildRequest) -> list[Row]:
    """A function of one variable: one head, by the solver's own estimate or from the table."""
    scalar = ScalarTarget(target.expressions, target.low[0], target.high[0])
    return [row for own in Climbed(scalar, request).rows(withins) for row in (own, _even_head(scalar, own, request))]


@dataclass(eq=False)
class Climbed:
    """Heads of one function, for ever larger errors: on the way to a smooth one all smaller heads are met."""

    target: ScalarTarget | CallableTarget
    request: BuildRequest
    effort: Effort = field(default_factory=lambda: Effort(SEARCH))
    _met: list[tuple[int, float]] = field(default_factory=list)

    def rows(self, withins: Sequence[float]) -> list[Row]:
        """For ever smaller errors."""
        return [self.row(within) for within in sorted(withins)][::-1]

    def row(self, within: float) -> Row:
        target, request = self.target, replace(self.request, within=within)
        entry = _in_table(target, within, request.dtype)
        if entry is not None:
            return self._counted(request, entry.atom, entry.exact + entry.rounding, "")
        met = [(anchors, error) for anchors, error in self._met if error <= SAFETY * within]
        if met and not target.kinks:
            anchors, error = min(met)
            return row_of_drafts(request, error, head_drafts([anchors], target.outputs), anchors, ESTIMATED)
        try:
            found = smallest(
                target.values, target.kinks, target.low, target.high, within,
                dtype=request.dtype, max_anchors=MAX_ANCHORS_OF_HEAD, progress=self._note, effort=self.effort,
            )  # fmt: skip
        except AnchorheadError as error:
            return row_of_drafts(request, np.inf, None, None, str(error), reachable=False)
        self._met.append((found.atom.anchors, found.total))
        return self._counted(request, found.atom, found.total, ESTIMATED)

    def _note(self, status: Status) -> None:
        if status.anchors is not None and status.error is not None:
            self._met.append((status.anchors, status.error))
        if self.request.progress:
            self.request.progress(status)

    def _counted(self, request: BuildRequest, atom: Atom, bound: float, note: str) -> Row:
        drafts = head_drafts([len(part) for part in atom.parts], self.target.outputs)
        return row_of_drafts(request, bound, drafts, atom.anchors, note)


def _in_table(target: ScalarTarget | CallableTarget, within: float, dtype: Dtype) -> Entry | None:
    """The head that the table has within an error; of callables it has none."""
    if isinstance(target, CallableTarget):
        return None
    known = lookup(target.name, target.low, target.high, dtype, str(require_model(dtype)))
    return known.within(within) if known else None


def _even_head(target: ScalarTarget, beside: Row, request: BuildRequest) -> Row:
    """The paper's even anchors, so many that the slope cannot exceed the error between them."""
    request = replace(request, within=beside.within, placement="uniform")
    varying = [one for one in target.expressions if one.variables]
    chosen = [uniform_estimate(one, target.low, target.high, request.error, request.dtype) for one in varying]
    if not chosen:
        return row_of_drafts(request, 0.0, None, 1, "")
    most = max(chosen, key=lambda estimate: estimate.count)
    drafts = head_drafts([most.count], target.outputs)
    return row_of_drafts(request, most.error, drafts, most.count, most.refused, most.beta, not most.refused)


@dataclass(frozen=True, eq=False)
class _Gridded:
    """Grids, and neurons beside them, solved as they would be and not proven."""

    target: SeveralVariables
    request: BuildRequest
    heads: ActivationHeads

    def row(self) -> Row:
        try:
            if self.target.one_grid and not self.request.causal:
                atom, error = self._solved(self.target, self.request.error)
                return row_of_drafts(
                    self.request, error, _one_grid(self.target, atom.sides, atom), atom.anchors, ESTIMATED
                )
            return shared_out(self.target, self.request, self._of_grids, self._of_neurons, self._of_both)
        except AnchorheadError as refused:
            return row_of_drafts(self.request, np.inf, None, None, str(refused), reachable=False)

    def _solved(self, several: SeveralVariables, within: float) -> tuple[GridAtom, float]:
        """A grid within an error, and what the solver found it to err by."""
        last = 0.0

        def noted(status: Status) -> None:
            nonlocal last
            last = last if status.error is None else status.error
            if self.request.progress:
                self.request.progress(status)

        aim, dtype = within * AIM[len(several.variables)], self.request.dtype
        return solve_grid(several.values, several.low, several.high, aim, dtype, MAX_ANCHORS, noted), last

    def _of_grids(self, share: float) -> tuple[list[GridAtom], Float[np.ndarray, " outputs"]]:
        """The grids within a share of the error, and what they make each output err by."""
        atoms, errors = [], np.zeros(self.target.outputs)
        for part, several, within in grid_requests(self.target, share * self.request.error):
            atom, error = self._solved(several, within)
            atoms.append(atom)
            errors[list(part.outputs)] += error
        return atoms, errors

    def _of_neurons(
        self, network: Mlp, grids: tuple[list[GridAtom], Float[np.ndarray, " outputs"]]
    ) -> tuple[list[Draft], float]:
        """The neurons within what the grids leave, as building would lay them out, and what they err by."""
        network, within = for_layout(network, "transformer"), ROOM * (self.request.error - float(grids[1].max()))
        tries = Tries(network, self.target.on, within, self.heads)
        best = tries.best(lambda laid: (None, estimated_bound(laid, tries.sources, self.request)))
        if best.bound.total > within:
            raise AnchorheadError(f"an error of {within:.3g} is out of reach of the neurons in {self.request.dtype}")
        return drafted(best.laid, network, self.request), best.bound.total

    def _of_both(
        self, grids: tuple[list[GridAtom], Float[np.ndarray, " outputs"]], neurons: tuple[list[Draft], float] | None
    ) -> Row:
        target, (atoms, errors), (own, more) = self.target, grids, neurons or ([], 0.0)
        pairs = zip(target.parts.grids, atoms, strict=True)
        parts = [grid_part(target, part, atom, self.request.causal) for part, atom in pairs]
        parts += [network_part(target, own)] if own else []
        drafts = side_by_side(parts, target.input_shape[-1], target.tokens or 1)
        anchors = max(atom.anchors for atom in atoms)
        return row_of_drafts(self.request, float(errors.max()) + more, drafts, anchors, ESTIMATED)


def _even_grid(target: SeveralVariables, request: BuildRequest) -> Row:
    """The paper's uniform grid of all variables: sides from how much the function changes along each of them."""
    require_uniform(target, request)
    sides = SampledModulus(BoxedFunction.of(target.values, target.low, target.high)).sides(request.error)
    anchors, drafts = prod(sides), _one_grid(target, sides)
    spacing = np.subtract(target.high, target.low) / np.maximum(np.array(sides) - 1, 1)
    refused = f"not built above {MAX_ANCHORS:,} anchors" if anchors > MAX_ANCHORS else ""
    beta = float((SHARPNESS / spacing**2).max())
    return row_of_drafts(request, request.error, drafts, anchors, refused or ESTIMATED, beta, not refused)


def _one_grid(target: SeveralVariables, sides: Sequence[int], atom: GridAtom | None = None) -> list[Draft]:
    """The layers of a grid of all variables."""
    if target.tokens is None:
        return grid_drafts(sides, target.outputs, None if atom is None else GridFill(atom))
    return placed_drafts(sides, GridPlacement.of_all(target.tokens, len(target.variables), target.outputs))
