"""The passes, in order: networks of neurons in, attention-only networks with a proof out.

    simplify   affine maps in a row multiplied out, constants folded; functions first written as neurons (functions)
    ranges     between which ends the argument of every function stays, with room for the errors that reach it
    budget     how far every head may be off, from how much the outputs feel it
    heads      the smallest proven head for each function, range and error
    layout     tokens, features, registers and heads: layers whose sizes are known before their weights are made
    prove      one walk over the weights that are stored

Where a proof finds more than the error asked for, what it found of each output says what the heads may err by in the
next try (budget), a fixed number of times at most; what comes closest travels in NotReached. A plan takes the same
passes and stops before weights exist.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Generic, TypeVar

import numpy as np
from jaxtyping import Float

from anchorhead.constructions.build_request import BuildRequest
from anchorhead.constructions.layouts.draft import Draft
from anchorhead.constructions.layouts.neurons import Laid, laid_out
from anchorhead.constructions.passes.budget import FAR_FINER, FIRST, STAYS, after_proof, budget_of, felt_by_outputs
from anchorhead.constructions.passes.heads import HeadRefused, with_heads
from anchorhead.constructions.passes.layout import built, drafted, require_room
from anchorhead.constructions.passes.prove import ProvenMlp, certified
from anchorhead.constructions.passes.ranges import MARGIN, ranged
from anchorhead.constructions.passes.simplify import for_layout
from anchorhead.constructions.representable import points_of, require_representable
from anchorhead.constructions.single.activation_heads import ActivationHeads
from anchorhead.domain import Box
from anchorhead.errors import AnchorheadError, NotDefined, NotReached
from anchorhead.language.merge import merged
from anchorhead.language.of_targets import program_of
from anchorhead.language.targets.mlp import Mlp
from anchorhead.lemmas.output import OutputBound
from anchorhead.lemmas.prove import prove_mlp
from anchorhead.network import Network
from anchorhead.proof.arithmetic.affine_forms import Sources
from anchorhead.proof.arithmetic.arithmetic import require_model
from anchorhead.proof.heads.neurons import Layer

Made = TypeVar("Made")
TRIES = 12
"""How often heads are chosen anew, where a proof found too large an error."""
COARSER = 8.0
"""Where a head cannot be had, a network is built for so many times the error at which it could be."""


@dataclass(frozen=True, eq=False)
class Try(Generic[Made]):
    """Neurons with heads, what was made of them, and the bound that a proof, or an estimate, found."""

    laid: Laid
    made: Made
    bound: OutputBound


@dataclass(eq=False)
class Tries:
    """A target on a box, to be within an error by heads that stand in for its functions: the passes up to layout, the
    same for all forms and layouts, and how the last of them tells the others to try again."""

    target: Mlp
    on: Box
    within: float
    heads: ActivationHeads

    @cached_property
    def sources(self) -> Sources:
        """The inputs' intervals."""
        return Sources.in_box(self.on.broadcast_to(self.target.input_shape))

    @cached_property
    def _simple(self) -> Mlp:
        return merged(self.target)

    @cached_property
    def _neurons(self) -> list[Layer]:
        """Without heads."""
        return [Layer.extending(hidden) for hidden in self._simple.hidden]

    @cached_property
    def _outlines(self) -> list[Layer]:
        """With ranges, and heads that have no anchors."""
        return ranged(self._neurons, self._simple.readout, self.sources, self.within, self._margin, self.heads.outline)

    @cached_property
    def _felt(self) -> list[Float[np.ndarray, "outputs shapes"]]:
        return felt_by_outputs(self._outlines, self._simple.readout, self.sources)

    @property
    def _margin(self) -> float:
        return MARGIN[self.heads.dtype]

    @cached_property
    def first(self) -> Laid:
        """Neurons whose heads take nearly all of the error."""
        return self.laid(self._nearly_all)

    @property
    def _nearly_all(self) -> Float[np.ndarray, " outputs"]:
        return np.full(self.target.outputs, FIRST * self.within)

    def laid(self, left: Float[np.ndarray, " outputs"]) -> Laid:
        """Neurons whose heads make each output err by what is left for them, at most."""
        budget = budget_of(self._outlines, self._felt, left, self.heads.at_hand)
        layers = with_heads(self._neurons, self.sources, budget, self._margin, self.heads.choose)
        middle = self.sources.middle.astype(self.heads.dtype).astype(np.float64)
        return laid_out(layers, self._simple.readout, self.sources, middle)

    def spent(self, laid: Laid) -> Float[np.ndarray, " outputs"]:
        """What the heads' own errors make each output err by, at most."""
        errors = (np.array([shape.error for shape in layer.shapes]) for layer in laid.layers)
        each = (felt @ own for felt, own in zip(self._felt, errors, strict=True))
        return sum(each, np.zeros(self.target.outputs))

    def each(self, prove: Callable[[Laid], tuple[Made, OutputBound]]) -> Iterator[Try[Made]]:
        """Tries, up to the first that is within the error; raises what stood against the first where there is none."""
        left, last, ended, rest = self._nearly_all, None, None, np.inf
        for number in range(TRIES):
            try:
                laid = self.laid(left) if number else self.first
            except NotDefined as error:  # smaller errors move the next layer's arguments less
                ended, left = error, FAR_FINER * left
                continue
            except AnchorheadError as error:
                ended = error
                break
            if last is not None and all(one is two for one, two in zip(laid.shapes, last.shapes, strict=True)):
                left = FAR_FINER * left
                continue
            made, bound = prove(laid)
            yield Try(laid, made, bound)
            spent, before = self.spent(laid), rest
            found = bound.approximation + bound.rounding
            last, rest = laid, float((found - spent).max())
            if bound.total <= self.within or rest > max(self.within, STAYS * before):
                break
            left = np.minimum(left, after_proof(found, spent, self.within))
        if last is None and ended is not None:
            raise ended

    def best(self, prove: Callable[[Laid], tuple[Made, OutputBound]]) -> Try[Made]:
        """The try that is within the error, or of none the one that comes closest."""
        return min(self.each(prove), key=lambda one: one.bound.total)


def _proven(target: Mlp, on: Box, request: BuildRequest) -> ProvenMlp:
    within, dtype, target = request.error, request.dtype, for_layout(target, request.layout)
    require_model(dtype)
    if not all(layer.linear for layer in target.hidden):  # linear maps may be exact
        require_representable(within, program_of(target)(points_of(on, target.input_shape)), dtype)

    def prove(laid: Laid) -> tuple[tuple[Network, list[Draft]], OutputBound]:
        drafts = drafted(laid, target, request)  # layout
        require_room(laid, drafts, target, request)
        network = built(drafts, target, request)
        return (network, drafts), prove_mlp(network, target, laid.layers, laid.readout, on)  # prove

    tries = Tries(target, on, within, ActivationHeads(dtype, request.placement, request.progress))
    best = tries.best(prove)  # simplify, ranges, budget, heads
    (network, drafts), laid, bound = best.made, best.laid, best.bound
    if bound.total <= within:
        network = certified(network, target, on, laid, bound, request)
        return ProvenMlp(network, drafts, laid)
    if not np.isfinite(bound.total):
        raise AnchorheadError(
            f"{_refusal(request)}: no bound was found: the errors of a layer carry the next one's neurons "
            f"beyond their heads' intervals. {_helps(request)}"
        )
    network = certified(network, target, on, laid, bound, replace(request, within=None))
    terms = ", ".join(f"{term.amount:.3g} by {term}" for term in bound.terms("activations"))
    rest = float((bound.approximation + bound.rounding - tries.spent(laid)).max())
    if rest > within:
        terms = f"{terms}; {rest:.3g} is no error that these heads have by themselves"
    raise NotReached(
        f"{_refusal(request)}: the best bound found is {bound.total:.3g} ({terms}). {_helps(request)}",
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
