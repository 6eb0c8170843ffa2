"""Networks become attention: from a feed-forward target to an attention-only network, proven within an error.

The error that every layer's heads may leave is shared out by how much the layers after it can amplify it; the network
is built and proven, and where rounding has eaten the share, built anew with finer heads.
"""

from __future__ import annotations

from collections.abc import Sequence as Several
from dataclasses import replace

import numpy as np

from anchorhead.constructions.budgets import budgets
from anchorhead.constructions.derivations import neuron_entries
from anchorhead.constructions.neuron_layers import HeadRefused, Laid, laid_out, shaped
from anchorhead.constructions.representable import points_of, require_representable
from anchorhead.constructions.sequence_layout import Sequence
from anchorhead.constructions.shapes import Shapes
from anchorhead.constructions.sizes import sizes_of
from anchorhead.constructions.transformer_softmax import SoftmaxTransformer
from anchorhead.constructions.way import FORMS, LAYOUTS, Way
from anchorhead.domain import Box
from anchorhead.errors import AnchorheadError, NotDefined, NotReached
from anchorhead.lemmas.mlp import MlpBound, prove_mlp
from anchorhead.lemmas.mlp_statement import mlp_statement
from anchorhead.network import Network, Outside
from anchorhead.progress import Progress
from anchorhead.proof.arithmetic.affine_forms import Sources
from anchorhead.proof.arithmetic.arithmetic import require_model
from anchorhead.proof.heads.neurons import Layer
from anchorhead.targets.mlp import Merged, Mlp
from anchorhead.targets.record import TargetRecord

MARGIN = {"float32": 1e-3, "float64": 1e-6}
"""Room around a pre-activation's interval for the errors that reach it, as a part of its size."""
COARSER = 8.0
"""Where a head cannot be had, a network is built for so many times the error at which it could be."""
MOST_PARAMETERS = 100_000_000
"""How many numbers a network may hold: building and proving it takes several times their room."""


def mlp_network(
    target: Mlp,
    on: Box,
    within: float,
    way: Way,
    outside: Outside = "warn",
    progress: Progress | None = None,
) -> Network:
    """The smallest network in this way that is proven within the error, with its certificate.

    Where a head that it takes cannot be had, NotReached has a network for a larger error, if there is one.
    """
    try:
        return _proven(target, on, within, way, outside, progress)
    except HeadRefused as refused:
        said = f"{_refusal(within, way)}, for a head that it takes: {refused}"
        try:
            network = _proven(target, on, COARSER * refused.times * within, way, outside, progress)
        except NotReached as nearest:
            network = nearest.network
        except AnchorheadError:
            raise AnchorheadError(said) from refused
        bound = np.inf if network.certificate is None else network.certificate.bound
        raise NotReached(f"{said}. The best network is within {bound:.3g}", network, bound, within) from refused


def _proven(target: Mlp, on: Box, within: float, way: Way, outside: Outside, progress: Progress | None) -> Network:
    """Where linear maps act on a token alone, even a linear map of several tokens needs neurons: outputs differ by
    token."""
    if way.layout == "transformer" and (target.tokens or 1) > 1:
        target = target.with_neurons()
    require_model(way.dtype)
    if not all(layer.linear for layer in target.hidden):  # linear maps may be exact
        require_representable(within, target.values(points_of(on, target.input_shape)), way.dtype)
    shapes = Shapes(way.dtype, way.placement, progress)
    sources, middle = inputs_of(target, on, way.dtype)
    margin = MARGIN[way.dtype]
    best: tuple[MlpBound, Network, list[Layer], Merged] | None = None
    tried: set[tuple[int, ...]] = set()
    undefined: NotDefined | None = None
    for budget in budgets(target, sources, within, margin, shapes):
        try:
            layers, readout = shaped(target, sources, budget, margin, shapes.choose)
        except NotDefined as error:  # smaller errors keep the next layer's arguments closer to where they belong
            undefined = error
            continue
        except HeadRefused:
            if best is None:
                raise
            break
        these = tuple(id(shape) for layer in layers for shape in layer.shapes)
        if these in tried:
            continue
        tried.add(these)
        laid = laid_out(layers, readout, sources, middle)
        _require_room(laid, target, way)
        network = built(laid, target, way)
        bound = prove_mlp(network, target, layers, readout, on)
        if best is None or bound.total < best[0].total:
            best = bound, network, layers, readout
        if bound.total <= within:
            return certified(network, target, on, layers, readout, bound, outside, within)
    if best is None and undefined is not None:
        raise undefined
    if best is None or not np.isfinite(best[0].total):
        raise AnchorheadError(
            f"{_refusal(within, way)}: no bound was found: the errors of a layer carry the next one's neurons beyond "
            f"their heads' intervals. {_helps(way)}"
        )
    known, network, layers, readout = best
    network = certified(network, target, on, layers, readout, known, outside)
    terms = ", ".join(f"{value:.3g} by {what}" for what, value in known.terms().items())
    raise NotReached(
        f"{_refusal(within, way)}: the best bound found is {known.total:.3g} ({terms}). {_helps(way)}",
        network,
        np.inf if network.certificate is None else network.certificate.bound,
        within,
    )


def _require_room(laid: Laid, target: Mlp, way: Way) -> None:
    """Refuses a network that would not fit into memory, before any of it is made."""

    def numbers(one: Way) -> int:
        return sizes_of(laid, target.tokens or 1, one).parameters

    count = numbers(way)
    if count <= MOST_PARAMETERS:
        return
    forms = FORMS if len(laid.neurons) == 1 else ("deep",)
    layouts = ("transformer",) if way.causal else LAYOUTS
    least, other = min((numbers(one), str(one)) for one in (
        replace(way, form=form, layout=layout) for form in forms for layout in layouts
    ))  # fmt: skip
    helps = f"{other}, with {least:,}" if least <= MOST_PARAMETERS else "a smaller model"
    raise AnchorheadError(
        f"{target} would become a network of {count:,} numbers ({way}), and at most {MOST_PARAMETERS:,} are built. "
        f"What would help: {helps}"
    )


def inputs_of(target: Mlp, on: Box, dtype: str) -> tuple[Sources, np.ndarray]:
    """The inputs' intervals, and the middle of the box as the dtype holds it."""
    box = on.broadcast_to(target.input_shape)
    sources = Sources(box.low.reshape(-1).astype(np.float64), box.high.reshape(-1).astype(np.float64))
    return sources, sources.middle.astype(dtype).astype(np.float64)


def built(laid: Laid, target: Mlp, way: Way) -> Network:
    """The network, without target and certificate."""
    tokens = target.tokens or 1
    if way.layout == "transformer":
        maker: SoftmaxTransformer | Sequence = SoftmaxTransformer(laid, tokens, way.dtype, target.variables, way.causal)
    else:
        maker = Sequence(laid, tokens, way.dtype, target.variables)
    build = {"two-layer": maker.two_layer, "attention-softmax": maker.attention_softmax, "deep": maker.deep}
    network = build[way.form]()
    return network if target.tokens is not None else network.with_(token_axis=False)


def certified(
    network: Network,
    target: Mlp,
    on: Box,
    layers: Several[Layer],
    readout: Merged,
    bound: MlpBound,
    outside: Outside,
    within: float | None = None,
) -> Network:
    used = list({id(shape): shape for layer in layers for shape in layer.shapes}.values())
    certificate = mlp_statement(bound, network, target, layers, readout).certificate(on, network.dtype, within)
    record = target.record()
    data, arrays = dict(record.data), dict(record.arrays)
    data["shapes"], data["assigned"] = [], []
    for number, shape in enumerate(used):
        one, more = shape.record(number)
        data["shapes"].append(one)
        arrays |= more
    for number, layer in enumerate(layers):
        data["assigned"].append([used.index(shape) for shape in layer.shapes])
        arrays[f"{number}.assigned"] = layer.assigned
    known = network.approximating(TargetRecord(record.kind, data, arrays), on, neuron_entries(network, layers))
    return known.with_(certificate=certificate, outside=outside)


def _refusal(within: float, way: Way) -> str:
    return f"within={within:g} is out of reach ({way}, {way.dtype})"


def _helps(way: Way) -> str:
    helps = ["a larger within", "a smaller box on="]
    if way.dtype == "float32":
        helps.append("dtype='float64'")
    if way.placement == "uniform":
        helps.append("placement='solved'")
    if way.form == "attention-softmax":
        helps.append("form='two-layer', whose sums are shorter")
    return f"What would help: {', '.join(helps)}"
