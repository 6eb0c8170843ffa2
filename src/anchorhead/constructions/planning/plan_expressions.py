"""How large a network for expressions becomes, before it is built: what was found in them, and sizes for some errors.

Heads and grids are solved for, which is quick, and not proven: sizes are those that ah.approximate builds, unless a
proof asks for a little more. The paper's even anchors are counted by formula, however many they would be.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from math import prod

import numpy as np

from anchorhead.constructions.build_request import BuildRequest, Placement
from anchorhead.constructions.causal import without_later_tokens
from anchorhead.constructions.grids.grid import AIM, MAX_ANCHORS
from anchorhead.constructions.grids.grid_network import grid_network
from anchorhead.constructions.layouts.side_by_side import side_by_side
from anchorhead.constructions.passes.budget import SHARES
from anchorhead.constructions.passes.layout import built, drafted
from anchorhead.constructions.passes.parts import ROOM, grid_part, grid_requests, network_part
from anchorhead.constructions.passes.run import Tries, forms_in_order
from anchorhead.constructions.planning.estimated_bound import estimated_bound
from anchorhead.constructions.planning.plan import LOOSEST, Plan, Row, check_request, plan_network
from anchorhead.constructions.planning.uniform_estimates import uniform_estimate
from anchorhead.constructions.representable import require_expressions_representable
from anchorhead.constructions.single.activation_heads import ActivationHeads, shape_of
from anchorhead.constructions.single.head import SEARCH
from anchorhead.constructions.single.head_network import head_network
from anchorhead.constructions.theorems.uniform_grid import SampledModulus
from anchorhead.decimals import round_up
from anchorhead.effort import Effort
from anchorhead.errors import AnchorheadError
from anchorhead.heads.atom import Atom, Dtype, Part
from anchorhead.heads.grids.grid import solve_grid
from anchorhead.heads.grids.grid_atom import MAX_VARIABLES, GridAtom
from anchorhead.heads.grids.grid_samples import BoxedFunction
from anchorhead.heads.solver.solve import SAFETY, smallest
from anchorhead.heads.tables.table import lookup
from anchorhead.language.analysis.summands import MAX_IN_A_GRID
from anchorhead.language.expressions.expression import Expression
from anchorhead.language.expressions.text import name_of
from anchorhead.language.targets import ScalarTarget
from anchorhead.language.targets.several import SeveralVariables
from anchorhead.network import Attention, Network
from anchorhead.progress import Progress, Status
from anchorhead.proof.arithmetic.arithmetic import require_model
from anchorhead.proof.heads.activation_head import ActivationHead
from anchorhead.proof.heads.uniform_activation_head import SHARPNESS

ESTIMATED = "estimated: solved for, not proven; a proof may ask for a little more"
USUAL = (1e-2, 1e-4, 1e-6, 1e-8)
"""The errors that are planned for where none are named."""
MAX_HEAD = 512


def plan_expressions(
    target: SeveralVariables,
    withins: Sequence[float],
    request: BuildRequest,
) -> Plan:
    """The sizes of what ah.approximate builds of expressions within each of these errors, ours beside the paper's."""
    dtype, form, layout = request.dtype, request.form, request.layout
    check_request(withins, dtype)
    if request.causal:
        target = without_later_tokens(target)
    require_expressions_representable(max(withins), target, dtype)
    if target.becomes(form, layout) == "head":
        rows = _heads(target, withins, request)
    else:
        target, rows = _first_way(target, withins, request)
    if all(row.parameters is None for row in rows) and len({row.note for row in rows}) == 1:
        raise AnchorheadError(rows[0].note)
    told = tuple(target.found())
    if len(target.variables) == 1 and rows[0].form == "head":
        told = tuple((str(one), "one head") for one in target.expressions)
    return Plan(name_of(target.expressions), target.on, dtype, tuple(rows), told, target.where)


def _first_way(
    target: SeveralVariables, withins: Sequence[float], request: BuildRequest
) -> tuple[SeveralVariables, list[Row]]:
    """The first of the ways in which ah.approximate takes functions apart that reaches all errors; else the one that
    reaches most of them."""
    found: list[tuple[SeveralVariables, list[Row]]] = []
    refused: list[AnchorheadError] = []
    form, layout, gridded = request.form, request.layout, replace(target, in_a_grid=MAX_IN_A_GRID)

    def reached(rows: list[Row]) -> int:
        return len({row.within for row in rows if row.placement == "solved" and row.reachable})

    for way in target.ways:
        try:
            if way.becomes(form, layout) == "grids":
                rows = _grids(way, withins, request)
            else:
                rows = _neurons_alone(way, withins, request)
                if gridded.becomes(form, layout) == "grids":  # as which even anchors are built
                    solved = [row for row in rows if row.placement == "solved"]
                    rows = _by_error([*solved, *_even_grids(gridded, withins, request)])
        except AnchorheadError as error:
            refused.append(error)
            continue
        found.append((way, rows))
        if reached(rows) == len(set(withins)):
            break
    if not found:
        raise refused[0]
    return max(found, key=lambda one: reached(one[1]))


def _neurons_alone(target: SeveralVariables, withins: Sequence[float], request: BuildRequest) -> list[Row]:
    """Layers of neurons, for each error in the form that is tried first; one layer has one form."""
    dtype, form, layout = request.dtype, request.form, request.layout
    shapes, every = Estimates(dtype, "solved", request.progress), []
    for within in _sorted(withins):
        one_layer = target.parts.network
        layers = forms_in_order(target, within, dtype)[0] if target.needs_layers or one_layer is None else one_layer
        every += plan_network(layers, target.on, [within], request, shapes).rows
    rows = [row for row in every if form in (None, row.form) and layout in (None, row.layout)]
    if not rows:
        allowed = ", ".join(dict.fromkeys(f"{row.form} in the {row.layout} layout" for row in every))
        raise AnchorheadError(f"form={form!r}, layout={layout!r}: this function is built as {allowed}")
    return rows


class Estimates(ActivationHeads):
    """Shapes that are solved for and not proven; each serves for several errors."""

    def _solved(
        self, activation: Expression, interval: tuple[float, float], error: float, degree: float | None
    ) -> ActivationHead:
        key = (activation, interval)
        fits = [s for k, s in self._known.items() if k[:2] == key and error / 4 <= s.error <= error]
        if activation.op == "variable" or fits:
            return fits[0] if fits else self._line(error)
        target = ScalarTarget((activation,), *interval)
        found = smallest(
            target.values, target.kinks, *interval, error,
            dtype=self.dtype, max_anchors=MAX_HEAD, progress=self.progress, effort=Effort(SEARCH),
        )  # fmt: skip
        parts = found.estimate.exact, found.estimate.rounding
        self._known[(*key, error)] = shape_of(found.atom, *parts, activation, interval, degree)
        return self._known[(*key, error)]


@dataclass(frozen=True)
class _Counted:
    """The sizes of a network that was built to be counted."""

    layers: int
    heads: int
    parameters: int

    @classmethod
    def of(cls, network: Network) -> _Counted:
        attention = sum(layer.heads for layer in network.layers if isinstance(layer, Attention))
        return cls(len(network.layers), attention, network.parameters)

    @classmethod
    def grown(cls, made: Callable[[int], Network], anchors: int) -> _Counted:
        """Of a network whose parameters grow by the same number for every anchor: two small ones tell by how much."""
        one, two = (cls.of(made(count)) for count in (1, 2))
        return cls(one.layers, one.heads, one.parameters + (anchors - 1) * (two.parameters - one.parameters))


def _row(
    within: float,
    form: str,
    placement: Placement,
    bound: float,
    counted: _Counted | None,
    anchors: int | None,
    note: str,
    beta: float | None = None,
    reachable: bool = True,
) -> Row:
    return Row(
        within=within,
        form=form,  # type: ignore[arg-type]
        layout="transformer",
        placement=placement,
        layers=counted.layers if counted else None,
        heads=counted.heads if counted else None,
        anchors=anchors,
        keys=anchors,
        beta=beta,
        parameters=counted.parameters if counted else None,
        largest_logit=None,
        bound=min(round_up(bound), within) if bound <= within else bound,
        multiply_adds=None,
        reachable=reachable,
        note=note,
    )


def _heads(target: SeveralVariables, withins: Sequence[float], request: BuildRequest) -> list[Row]:
    """A function of one variable: one head, by the solver's own estimate or from the table."""
    scalar = ScalarTarget(target.expressions, target.low[0], target.high[0])
    climbed = _Climbed(scalar, request.dtype, request.progress)
    solved = {within: climbed.row(within) for within in sorted(withins)}
    return [row for within in _sorted(withins) for row in (solved[within], _even_head(scalar, within, request.dtype))]


@dataclass(eq=False)
class _Climbed:
    """Heads of one function, for ever larger errors: on the way to a smooth one all smaller heads are met."""

    target: ScalarTarget
    dtype: Dtype
    progress: Progress | None
    effort: Effort = field(default_factory=lambda: Effort(SEARCH))
    _met: list[tuple[int, float]] = field(default_factory=list)

    def row(self, within: float) -> Row:
        target = self.target
        known = lookup(target.name, target.low, target.high, self.dtype, str(require_model(self.dtype)))
        entry = known.within(within) if known else None
        if entry is not None:
            return self._counted(within, entry.atom, entry.exact + entry.rounding, "")
        met = [(anchors, error) for anchors, error in self._met if error <= SAFETY * within]
        if met and not target.kinks:
            anchors, error = min(met)
            return _row(within, "head", "solved", error, _one_part(target, self.dtype, anchors), anchors, ESTIMATED)
        try:
            ends = target.low, target.high
            found = smallest(
                target.values, target.kinks, *ends, within,
                dtype=self.dtype, max_anchors=MAX_HEAD, progress=self._note, effort=self.effort,
            )  # fmt: skip
        except AnchorheadError as error:
            return _row(within, "head", "solved", np.inf, None, None, str(error), reachable=False)
        self._met.append((found.atom.anchors, found.total))
        return self._counted(within, found.atom, found.total, ESTIMATED)

    def _note(self, status: Status) -> None:
        if status.anchors is not None and status.error is not None:
            self._met.append((status.anchors, status.error))
        if self.progress:
            self.progress(status)

    def _counted(self, within: float, atom: Atom, bound: float, note: str) -> Row:
        counted = _Counted.of(head_network(atom, self.target))
        return _row(within, "head", "solved", bound, counted, atom.anchors, note)


def _one_part(target: ScalarTarget, dtype: Dtype, anchors: int) -> _Counted:
    """A head of so many anchors in one part."""

    def made(count: int) -> Network:
        part = Part.of(np.zeros(count), np.zeros(count), np.zeros((count, target.outputs)), dtype)
        return head_network(Atom.of((part,), 0.0, np.zeros(target.outputs), dtype), target)

    return _Counted.grown(made, anchors)


def _even_head(target: ScalarTarget, within: float, dtype: Dtype) -> Row:
    """The paper's even anchors, so many that the slope cannot exceed the error between them."""
    ends = target.low, target.high
    chosen = [uniform_estimate(one, *ends, within, dtype) for one in target.expressions if one.variables]
    if not chosen:
        return _row(within, "head", "uniform", 0.0, None, 1, "")
    most = max(chosen, key=lambda estimate: estimate.count)
    counted = _one_part(target, dtype, most.count)
    return _row(within, "head", "uniform", most.error, counted, most.count, most.refused, most.beta, not most.refused)


def _grids(target: SeveralVariables, withins: Sequence[float], request: BuildRequest) -> list[Row]:
    if request.form not in (None, "deep") or request.layout not in (None, "transformer"):
        raise AnchorheadError(
            f"form={request.form!r}, layout={request.layout!r}: {target.parts.grids[0]} has layers of its own, "
            "form='deep' and layout='transformer': leave them out"
        )
    shapes = Estimates(request.dtype, "solved", request.progress)
    requests = [replace(request, within=within, form="deep", layout="transformer") for within in _sorted(withins)]
    solved = [_side_by_side(target, one, shapes) for one in requests]
    return _by_error([*solved, *_even_grids(target, withins, request)])


def _even_grids(target: SeveralVariables, withins: Sequence[float], request: BuildRequest) -> list[Row]:
    if len(target.variables) > MAX_VARIABLES or request.causal:
        return []
    even = _EvenGrid(target, request.dtype)
    return [even.row(within) for within in _sorted(withins)]


def _by_error(rows: list[Row]) -> list[Row]:
    return sorted(rows, key=lambda row: -row.within)


def _side_by_side(target: SeveralVariables, request: BuildRequest, shapes: ActivationHeads) -> Row:
    """Grids, and neurons beside them, solved and laid out as they would be, and counted."""
    share = SHARES[0] if target.parts.network is not None else 1.0
    try:
        atoms, error = [], 0.0
        for _, several, within in grid_requests(target, share * request.error):
            last = [0.0]
            aim = within * AIM[len(several.variables)]
            atoms.append(
                solve_grid(
                    several.values,
                    several.low,
                    several.high,
                    aim,
                    request.dtype,
                    MAX_ANCHORS,
                    _noted(last, request),
                )
            )
            error += last[0]
        neurons, more = _neurons(target, request, (1 - share) * request.error, shapes)
    except AnchorheadError as refused:
        return _row(request.error, "deep", "solved", np.inf, None, None, str(refused), reachable=False)
    if target.one_grid and not request.causal:
        network = grid_network(atoms[0], target.tokens)
    else:
        pairs = zip(target.parts.grids, atoms, strict=True)
        parts = [grid_part(target, part, atom, request.causal) for part, atom in pairs]
        parts += [] if neurons is None else [network_part(target, neurons)]
        network, _ = side_by_side(parts, target.input_shape[-1])
    anchors = max(atom.anchors for atom in atoms)
    return _row(request.error, "deep", "solved", error + more, _Counted.of(network), anchors, ESTIMATED)


def _noted(last: list[float], request: BuildRequest) -> Progress:
    def progress(status: Status) -> None:
        last[0] = last[0] if status.error is None else status.error
        if request.progress:
            request.progress(status)

    return progress


def _neurons(
    target: SeveralVariables, request: BuildRequest, within: float, shapes: ActivationHeads
) -> tuple[Network | None, float]:
    """The neurons beside the grids, as building would lay them out, and what they may err by."""
    network = target.parts.network
    if network is None:
        return None, 0.0
    if (network.tokens or 1) > 1:
        network = network.with_neurons()
    tries = Tries(network, target.on, ROOM * within, shapes)
    for laid in tries:
        drafts = drafted(laid, network, request)
        bound = estimated_bound(laid, drafts, tries.sources, network.tokens or 1, request)
        if bound <= LOOSEST * within:
            return built(drafts, network, request), min(bound, within)
    raise tries.ended or AnchorheadError(f"an error of {within:.3g} is out of reach of the neurons in {request.dtype}")


class _EvenGrid:
    """The paper's uniform grid of all variables: sides from how much the function changes along each of them."""

    def __init__(self, target: SeveralVariables, dtype: Dtype) -> None:
        self.target = target
        self.dtype: Dtype = dtype
        self.modulus = SampledModulus(BoxedFunction.of(target.values, target.low, target.high))

    def _network(self, side: int) -> Network:
        """So many anchors along the first variable."""
        outputs, others = len(self.target.expressions), len(self.target.variables) - 1
        axes = [(np.zeros(count), np.zeros(count)) for count in (side, *[1] * others)]
        values = np.zeros((side, *[1] * others, outputs))
        return grid_network(
            GridAtom.of(axes, np.zeros(len(axes)), values, np.zeros(outputs), self.dtype), self.target.tokens
        )

    def row(self, within: float) -> Row:
        sides = self.modulus.sides(within)
        anchors = prod(sides)
        low, high = (np.array(end) for end in (self.target.low, self.target.high))
        spacing = (high - low) / np.maximum(np.array(sides) - 1, 1)
        counted = _Counted.grown(self._network, anchors)
        refused = f"not built above {MAX_ANCHORS:,} anchors" if anchors > MAX_ANCHORS else ""
        note = refused or ESTIMATED
        beta = float((SHARPNESS / spacing**2).max())
        return _row(within, "deep", "uniform", within, counted, anchors, note, beta, not refused)


def _sorted(withins: Sequence[float]) -> list[float]:
    return sorted(set(withins), reverse=True)
