"""The passes, in order: networks of neurons in, attention-only networks with a proof out.

    simplify   affine maps in a row multiplied out, constants folded; functions first written as neurons (functions)
    ranges     between which ends the argument of every function stays, with room for the errors that reach it
    budget     how far every head may be off, from how much the outputs feel it
    heads      the smallest proven head for each function, range and error
    layout     tokens, features, registers and heads: layers whose sizes are known before their weights are made
    prove      one walk over the weights that are stored

Where a proof finds more than the error asked for, the budget is cut and heads are chosen anew, a fixed number of times;
what comes closest travels in NotReached. A plan takes the same passes and stops before weights exist.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np

from anchorhead.constructions.build_request import BuildRequest
from anchorhead.constructions.layouts.neurons import Laid, laid_out
from anchorhead.constructions.passes.budget import budgets
from anchorhead.constructions.passes.heads import HeadRefused, with_heads
from anchorhead.constructions.passes.layout import built, drafted, require_room
from anchorhead.constructions.passes.prove import ProvenMlp, certified
from anchorhead.constructions.passes.ranges import MARGIN, ranged
from anchorhead.constructions.passes.simplify import for_layout
from anchorhead.constructions.representable import points_of, require_representable
from anchorhead.constructions.single.activation_heads import ActivationHeads
from anchorhead.domain import Box
from anchorhead.errors import AnchorheadError, NotDefined, NotReached
from anchorhead.language.targets.merge import merged
from anchorhead.language.targets.mlp import Mlp
from anchorhead.lemmas.output import OutputBound
from anchorhead.lemmas.prove import prove_mlp
from anchorhead.network import Network
from anchorhead.proof.arithmetic.affine_forms import Sources
from anchorhead.proof.arithmetic.arithmetic import require_model

COARSER = 8.0
"""Where a head cannot be had, a network is built for so many times the error at which it could be."""


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
    within, dtype, target = request.error, request.dtype, for_layout(target, request.layout)
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
