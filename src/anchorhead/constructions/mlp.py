"""Networks become attention: from a feed-forward target to an attention-only network, proven within an error.

The error that every layer's heads may leave is shared out by how much the layers after it can amplify it; the network
is built and proven, and where rounding has eaten the share, built anew with finer heads.
"""

from __future__ import annotations

from collections.abc import Sequence as Several
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from anchorhead.constructions.build_request import FORMS, LAYOUTS, BuildRequest
from anchorhead.constructions.derivations import neuron_entries
from anchorhead.constructions.ladder import Ladder
from anchorhead.constructions.layouts.draft import Draft, counted
from anchorhead.constructions.layouts.sequence_layout import Sequence
from anchorhead.constructions.layouts.transformer_softmax import SoftmaxTransformer
from anchorhead.constructions.neuron_layers import HeadRefused, Laid
from anchorhead.constructions.representable import points_of, require_representable
from anchorhead.constructions.single.activation_heads import ActivationHeads
from anchorhead.domain import Box
from anchorhead.errors import AnchorheadError, NotReached
from anchorhead.language.of_targets import program_of
from anchorhead.language.targets.mlp import Affine, Mlp
from anchorhead.lemmas.mlp import prove_mlp
from anchorhead.lemmas.mlp_statement import mlp_statement
from anchorhead.lemmas.output import OutputBound
from anchorhead.network import Network
from anchorhead.network.derivation import Derivation
from anchorhead.network.direct import series_data
from anchorhead.proof.arithmetic.arithmetic import require_model
from anchorhead.proof.heads.direct import evaluated_directly
from anchorhead.proof.heads.neurons import Layer

COARSER = 8.0
"""Where a head cannot be had, a network is built for so many times the error at which it could be."""
MAX_PARAMETERS = 100_000_000
"""How many numbers a network may hold: building and proving it takes several times their room."""


@dataclass(frozen=True, eq=False)
class ProvenMlp:
    """A network with its certificate, the layers of neurons that it computes, and the readout."""

    network: Network
    layers: Several[Layer]
    readout: Affine


def proven_mlp(target: Mlp, on: Box, request: BuildRequest) -> ProvenMlp:
    """The smallest network in this way that is proven within the error, with what its proof is about.

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


def _proven(target: Mlp, on: Box, request: BuildRequest) -> ProvenMlp:
    """Where linear maps act on a token alone, even a linear map of several tokens needs neurons: outputs differ by
    token."""
    within, dtype = request.error, request.dtype
    if request.layout == "transformer" and (target.tokens or 1) > 1:
        target = target.with_neurons()
    require_model(dtype)
    if not all(layer.linear for layer in target.hidden):  # linear maps may be exact
        require_representable(within, target.values(points_of(on, target.input_shape)), dtype)
    ladder = Ladder(target, on, within, ActivationHeads(dtype, request.placement, request.progress))
    best: tuple[OutputBound, Network, Laid] | None = None
    for laid in ladder:
        drafts = drafted(laid, target, request)
        _require_room(laid, drafts, target, request)
        network = built(drafts, target, request)
        bound = prove_mlp(network, target, laid.layers, laid.readout, on)
        if best is None or bound.total < best[0].total:
            best = bound, network, laid
        if bound.total <= within:
            network = _certified(network, target, on, laid, bound, request)
            return ProvenMlp(network, laid.layers, laid.readout)
    if best is None and ladder.ended is not None:
        raise ladder.ended
    if best is None or not np.isfinite(best[0].total):
        raise AnchorheadError(
            f"{_refusal(request)}: no bound was found: the errors of a layer carry the next one's neurons "
            f"beyond their heads' intervals. {_helps(request)}"
        )
    known, network, laid = best
    network = _certified(network, target, on, laid, known, replace(request, within=None))
    terms = ", ".join(f"{term.amount:.3g} by {term}" for term in known.terms("activations"))
    raise NotReached(
        f"{_refusal(request)}: the best bound found is {known.total:.3g} ({terms}). {_helps(request)}",
        network,
        np.inf if network.certificate is None else network.certificate.bound,
        within,
    )


def _require_room(laid: Laid, drafts: Several[Draft], target: Mlp, request: BuildRequest) -> None:
    """Refuses a network that would not fit into memory, before any of it is made."""
    tokens = target.tokens or 1
    count = counted(drafts, tokens).parameters
    if count <= MAX_PARAMETERS:
        return
    forms = FORMS if len(laid.neurons) == 1 else ("deep",)
    layouts = ("transformer",) if request.causal else LAYOUTS
    others = (replace(request, form=form, layout=layout) for form in forms for layout in layouts)
    least, other = min((counted(drafted(laid, target, one), tokens).parameters, str(one)) for one in others)
    helps = f"{other}, with {least:,}" if least <= MAX_PARAMETERS else "a smaller model"
    raise AnchorheadError(
        f"{target} would become a network of {count:,} numbers ({request}), and at most {MAX_PARAMETERS:,} are built. "
        f"What would help: {helps}"
    )


def drafted(laid: Laid, target: Mlp, request: BuildRequest) -> list[Draft]:
    """The layers of the network that these neurons become: how large they are, and what fills them."""
    tokens = target.tokens or 1
    if request.layout == "transformer":
        layout: SoftmaxTransformer | Sequence = SoftmaxTransformer(laid, tokens, target.variables, request.causal)
    else:
        layout = Sequence(laid, tokens, target.variables)
    form = {"two-layer": layout.two_layer, "attention-softmax": layout.attention_softmax, "deep": layout.deep}
    return form[request.form or "deep"]()


def built(drafts: Several[Draft], target: Mlp, request: BuildRequest) -> Network:
    """The network, without target and certificate."""
    network = Network([draft.made(request.dtype) for draft in drafts])
    return network if target.tokens is not None else network.with_(token_axis=False)


def _certified(
    network: Network, target: Mlp, on: Box, laid: Laid, bound: OutputBound, request: BuildRequest
) -> Network:
    layers = laid.layers
    used = list({id(shape): shape for layer in layers for shape in layer.shapes}.values())
    direct = evaluated_directly(network, layers, on)
    evaluations = ("plain",) if direct is None else ("plain", "direct")
    statement = mlp_statement(bound, target, layers, laid.readout, evaluations)
    data: dict[str, Any] = {"kept": [layer.kept for layer in target.hidden], "shapes": [], "assigned": []}
    if direct is not None:
        data["series"] = series_data(direct)
    arrays: dict[str, np.ndarray] = {}
    for number, shape in enumerate(used):
        one, more = shape.record(number)
        data["shapes"].append(one)
        arrays |= more
    for number, layer in enumerate(layers):
        data["assigned"].append([used.index(shape) for shape in layer.shapes])
        arrays[f"{number}.assigned"] = layer.which
    return network.with_(
        program=program_of(target, on),
        derivation=Derivation("mlp", data, arrays, neuron_entries(network, layers), claims=bound.claims),
        certificate=statement.certificate(on, network.dtype, request.within),
        outside=request.outside,
    )


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
