"""The passes, in order: functions and networks of neurons in, attention-only networks with a proof out.

    simplify   equal ways to write functions, as neurons and grids; affine maps in a row multiplied out
    ranges     between which ends the argument of every function stays, with room for the errors that reach it
    budget     how far every head may be off, from how much the outputs feel it
    heads      the smallest proven head for each function, range and error
    layout     tokens, features, registers and heads: layers whose sizes are known before their weights are made
    prove      one walk over the weights that are stored

Where a proof finds more than the error asked for, the budget is cut and heads are chosen anew, a fixed number of times;
what comes closest travels in NotReached. A plan takes the same passes and stops before weights exist.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache, partial
from typing import TypeVar

import numpy as np

from anchorhead.constructions.build_request import BuildRequest
from anchorhead.constructions.grids.grid import solved_grid
from anchorhead.constructions.layouts.draft import counted
from anchorhead.constructions.layouts.neurons import Laid, laid_out
from anchorhead.constructions.passes import parts
from anchorhead.constructions.passes.budget import SHARES, budgets
from anchorhead.constructions.passes.estimate import Guesses
from anchorhead.constructions.passes.foresee import foreseen
from anchorhead.constructions.passes.heads import HeadRefused, with_heads
from anchorhead.constructions.passes.layout import built, drafted, require_room
from anchorhead.constructions.passes.parts import PartGrid
from anchorhead.constructions.passes.prove import ProvenMlp, certified
from anchorhead.constructions.passes.ranges import MARGIN, ranged
from anchorhead.constructions.passes.simplify import forms_of, ways_of
from anchorhead.constructions.representable import points_of, require_representable
from anchorhead.constructions.single.activation_heads import ActivationHeads
from anchorhead.domain import Box
from anchorhead.errors import AnchorheadError, NotDefined, NotReached
from anchorhead.heads.atom import Dtype
from anchorhead.language.targets.merge import merged
from anchorhead.language.targets.mlp import Mlp
from anchorhead.language.targets.several import SeveralVariables
from anchorhead.lemmas.mlp import prove_mlp
from anchorhead.lemmas.output import OutputBound
from anchorhead.network import Network
from anchorhead.proof.arithmetic.affine_forms import Sources
from anchorhead.proof.arithmetic.arithmetic import require_model

COARSER = 8.0
"""Where a head cannot be had, a network is built for so many times the error at which it could be."""
Way = TypeVar("Way")
Made = TypeVar("Made")
Grids = TypeVar("Grids")
Neurons = TypeVar("Neurons")


@dataclass(eq=False)
class Tries:
    """Neurons with ever finer heads, each found once: the passes up to layout, the same for all forms and layouts.

    heads   which heads stand in for functions
    ended   why there are no more tries, or not all of them, if so
    """

    target: Mlp
    on: Box
    within: float
    heads: ActivationHeads
    ended: AnchorheadError | None = None
    _found: list[Laid] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._more = self._passed()

    @cached_property
    def sources(self) -> Sources:
        """The inputs' intervals."""
        box = self.on.broadcast_to(self.target.input_shape)
        return Sources(*(end.reshape(-1).astype(np.float64) for end in (box.low, box.high)))

    def _passed(self) -> Iterator[Laid]:
        heads, within, sources, margin = self.heads, self.within, self.sources, MARGIN[self.heads.dtype]
        middle = sources.middle.astype(heads.dtype).astype(np.float64)
        tried: set[tuple[int, ...]] = set()
        try:
            neurons, readout = merged(self.target)  # simplify
            known = ranged(neurons, readout, sources, within, margin, heads.outline)
            for budget in budgets(known.layers, known.felt, within, heads.at_hand):
                try:
                    layers = with_heads(neurons, sources, budget, margin, heads.choose)
                except NotDefined as error:  # smaller errors move the next layer's arguments less
                    self.ended = error
                    continue
                these = tuple(id(shape) for layer in layers for shape in layer.shapes)
                if these not in tried:
                    tried.add(these)
                    yield laid_out(layers, readout, sources, middle)
        except AnchorheadError as error:
            self.ended = error

    def __iter__(self) -> Iterator[Laid]:
        place = 0
        while True:
            if place == len(self._found):
                laid = next(self._more, None)
                if laid is None:
                    return
                self._found.append(laid)
            yield self._found[place]
            place += 1


def _proven(target: Mlp, on: Box, request: BuildRequest) -> ProvenMlp:
    """Where linear maps act on a token alone, even a linear map of several tokens needs neurons: outputs differ by
    token."""
    within, dtype = request.error, request.dtype
    if request.layout == "transformer" and (target.tokens or 1) > 1:
        target = target.with_neurons()
    require_model(dtype)
    if not all(layer.linear for layer in target.hidden):  # linear maps may be exact
        require_representable(within, target.values(points_of(on, target.input_shape)), dtype)
    tries = Tries(target, on, within, ActivationHeads(dtype, request.placement, request.progress))
    best: tuple[OutputBound, Network, Laid] | None = None
    for laid in tries:  # simplify, ranges, budget, heads
        drafts = drafted(laid, target, request)  # layout
        require_room(laid, drafts, target, request)
        network = built(drafts, target, request)
        bound = prove_mlp(network, target, laid.layers, laid.readout, on)  # prove
        if best is None or bound.total < best[0].total:
            best = bound, network, laid
        if bound.total <= within:
            network = certified(network, target, on, laid, bound, request)
            return ProvenMlp(network, drafts, laid.layers, laid.readout)
    if best is None and tries.ended is not None:
        raise tries.ended
    if best is None or not np.isfinite(best[0].total):
        raise AnchorheadError(
            f"{_refusal(request)}: no bound was found: the errors of a layer carry the next one's neurons "
            f"beyond their heads' intervals. {_helps(request)}"
        )
    known, network, laid = best
    network = certified(network, target, on, laid, known, replace(request, within=None))
    terms = ", ".join(f"{term.amount:.3g} by {term}" for term in known.terms("activations"))
    raise NotReached(
        f"{_refusal(request)}: the best bound found is {known.total:.3g} ({terms}). {_helps(request)}",
        network,
        np.inf if network.certificate is None else network.certificate.bound,
        within,
    )


def proven_mlp(target: Mlp, on: Box, request: BuildRequest) -> ProvenMlp:
    """The smallest network of neurons that is proven within the error, with what its proof is about.

    Where a head that it takes cannot be had, NotReached has a network for a larger error, if there is one.
    """
    request = request.of_network(target)
    try:
        return _proven(target, on, request)
    except HeadRefused as refused:
        said = f"{_refusal(request)}, for a head that it takes: {refused}"
        try:
            coarser = replace(request, within=COARSER * refused.times * request.error)
            network = _proven(target, on, coarser).network
        except NotReached as nearest:
            network = nearest.network
        except AnchorheadError:
            raise AnchorheadError(said) from refused
        bound = np.inf if network.certificate is None else network.certificate.bound
        raise NotReached(f"{said}. The best network is within {bound:.3g}", network, bound, request.error) from refused


def taken_apart(
    target: SeveralVariables,
    request: BuildRequest,
    of_neurons: Callable[[Mlp, SeveralVariables, BuildRequest], Made],
    of_grids: Callable[[SeveralVariables, BuildRequest], Made],
) -> Made:
    """What is made of the first of all equal ways to write the functions that reaches the error, the best by estimate
    first; else the best refusal.

    of_neurons   makes something of a form, and of the functions as they were taken apart
    of_grids     the same where there are grids, alone or beside neurons
    """

    def of_way(way: SeveralVariables) -> Made:
        if way.becomes(request.form, request.layout) != "grids":
            return _first(
                forms_in_order(way, request.error, request.dtype), lambda form: of_neurons(form, way, request)
            )
        parts.require_plain(way, request)
        groupings = [way] if request.placement == "uniform" else parts.groupings(way, request.causal)
        plain = replace(request, form="deep", layout="transformer")
        return _first(groupings, lambda one: of_grids(one, plain))

    return _first(ways_of(target, request.placement), of_way)


def proven_functions(target: SeveralVariables, request: BuildRequest) -> Network:
    """Neurons, heads over grids, or both."""

    def of_neurons(form: Mlp, way: SeveralVariables, request: BuildRequest) -> Network:
        return proven_mlp(form, way.on, request).network

    return taken_apart(target, request, of_neurons, _proven_grids)


def _proven_grids(target: SeveralVariables, request: BuildRequest) -> Network:
    """Grids and neurons, side by side, and one walk over all of them."""
    if request.placement == "uniform":
        return parts.even_grid(target, request)
    if target.one_grid and not request.causal:
        parts.require_continuous(target)
        return solved_grid(target, request).network
    for _, several, _ in parts.grid_requests(target, request.error):
        parts.require_continuous(several)

    def of_neurons(network: Mlp, grids: Sequence[PartGrid]) -> ProvenMlp:
        left = parts.left_for_neurons(target, request, grids)
        return proven_mlp(network, target.on, replace(request, within=left))

    def of_both(grids: Sequence[PartGrid], neurons: ProvenMlp | None) -> Network:
        network = parts.certified(target, request, grids, neurons)
        reached = np.inf if network.certificate is None else network.certificate.bound
        if reached > request.error:
            raise AnchorheadError(f"together the parts are within {reached:.3g}")
        return network

    return shared_out(target, request, partial(parts.solved, target, request), of_neurons, of_both)


def shared_out(
    target: SeveralVariables,
    request: BuildRequest,
    of_grids: Callable[[float], Grids],
    of_neurons: Callable[[Mlp, Grids], Neurons],
    of_both: Callable[[Grids, Neurons | None], Made],
) -> Made:
    """What is made of grids, which get a share of the error, and of neurons, which get what is left of it: of the first
    share within which both can be had."""
    refused: AnchorheadError | None = None
    least, most, network = 0.0, np.inf, target.parts.network
    for share in SHARES if network is not None else (1.0,):
        if not least < share < most:
            continue
        try:
            grids = of_grids(share)
        except AnchorheadError as error:
            refused, least = refused or error, share
            continue
        try:
            neurons = None if network is None else of_neurons(network, grids)
        except AnchorheadError as error:
            refused, most = refused or error, share
            continue
        try:
            return of_both(grids, neurons)
        except AnchorheadError as error:
            refused = refused or error
    raise AnchorheadError(
        f"within={request.error:g} is not reached for {target} in {request.dtype}, by parts that share it: {refused}"
    )


def _first(ways: Iterable[Way], make: Callable[[Way], Made]) -> Made:
    """What is made of the first way that reaches the error; where none does, the closest, or what stands against the
    first."""
    refused: list[AnchorheadError] = []
    for way in ways:
        try:
            return make(way)
        except AnchorheadError as error:
            refused.append(error)
    reached = [error for error in refused if isinstance(error, NotReached)]
    raise min(reached, key=lambda error: error.bound) if reached else refused[0]


@lru_cache(maxsize=8)
def forms_in_order(target: SeveralVariables, within: float, dtype: Dtype) -> list[Mlp]:
    """The functions as layers of neurons in every form, the best by estimate first; the same for all placements."""
    found, usual = forms_of(target), BuildRequest(within, dtype, "deep", "transformer")
    return found if len(found) == 1 else sorted(found, key=lambda form: _estimate(form, target.on, usual))


def _estimate(target: Mlp, on: Box, request: BuildRequest) -> tuple[bool, float]:
    """Whether the error is out of reach, and how many numbers the network will hold, as far as can be said at once:
    the passes with heads as large as they are likely to be."""
    tries = Tries(target, on, request.error, Guesses(request.dtype))
    laid = next(iter(tries), None)
    if laid is None or tries.ended is not None:
        return True, np.inf
    size = counted(drafted(laid, target, request), target.tokens or 1)
    return not foreseen(laid, tries.sources, request) <= request.error, float(size.parameters)


def _refusal(request: BuildRequest) -> str:
    return f"within={request.error:g} is out of reach ({request}, {request.dtype})"


def _helps(request: BuildRequest) -> str:
    helps = ["a larger within", "a smaller box on="]
    if request.dtype == "float32":
        helps.append("dtype='float64'")
    if request.placement == "uniform":
        helps.append("placement='solved'")
    if request.form == "attention-softmax":
        helps.append("form='two-layer', whose sums are shorter")
    return f"What would help: {', '.join(helps)}"
