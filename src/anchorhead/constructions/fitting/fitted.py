"""Callables of many inputs: a network is fitted to values, and the network becomes attention.

The error has two parts. Fitting: how far the fitted network is from the function, as a search for the worst place finds
it. Conversion: how far the attention-only network is from the fitted one, proven for every input, rounding included.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from jaxtyping import Float

from anchorhead.certificate import Certificate
from anchorhead.constructions.build_request import BuildRequest
from anchorhead.constructions.causal import require_causal_values
from anchorhead.constructions.fitting.callable_checks import require_continuous, require_repeatable
from anchorhead.constructions.fitting.ridge_fit import EFFORT, fit_ridges
from anchorhead.constructions.fitting.ridge_network import RELU, bent, network_of, network_on
from anchorhead.constructions.grids.certified import OPAQUE
from anchorhead.constructions.passes.run import proven_mlp
from anchorhead.decimals import counted
from anchorhead.errors import AnchorheadError, NotReached
from anchorhead.language.of_targets import program_of
from anchorhead.language.program import Program
from anchorhead.language.targets.mlp import Affine, Hidden, Mlp
from anchorhead.language.targets.opaque_several import CallableSeveral
from anchorhead.network import Network
from anchorhead.network.derivation import Derivation, Entry
from anchorhead.proof.search.callable_search import largest_error
from anchorhead.proof.statement import Statement
from anchorhead.terms import Term

MAX_INPUTS = 1000
AIM = {"solved": 0.95, "uniform": 0.5}
"""The part of the error asked for that the fit may use up; conversion takes the rest."""
CONVERSION = 0.02
"""The part that conversion of solved anchors is given at first."""
KINDS = {"solved": ("tanh", "silu", "relu"), "uniform": ("relu",)}
"""Activations that are tried. The theorem on even anchors is one on truncated linear functions."""
STIFFNESS = {"float64": (1e-12, 1e-8), "float32": (1e-9, 1e-6)}
"""Of the outer weights; more where the network cannot be converted, for large weights amplify what heads leave."""
TRIES = 3


@dataclass(frozen=True, eq=False)
class Fitted:
    """A feed-forward network, the largest error that a search found, and where; why the fit ended before its aim."""

    network: Mlp
    error: float
    at: Float[np.ndarray, " inputs"]
    ended: str


def approximate_fitted(target: CallableSeveral, request: BuildRequest) -> Network:
    """The smallest network found whose error is within what is asked for; "measured", for the fit is.

    The forms "two-layer" and "attention-softmax" are for one hidden layer; by default there are two where one will not
    do. Causal is a network for each token, which sees the tokens up to it. With the same seed, of the fit and of the
    search, the result is the same. The neurons and the largest error met while neurons are added are told.

    Raises NotReached, which has the best network, where the error is not reached.
    """
    within, placement, seed = request.error, request.placement, request.seed
    if len(target.variables) > MAX_INPUTS:
        raise AnchorheadError(f"{target}: a network is fitted to functions of at most {MAX_INPUTS:,} inputs")
    request.of_network(_nothing(target))
    require_repeatable(target, within, seed)
    require_continuous(target, within, seed)
    if request.causal:
        require_causal_values(target)
    aim, stiffness = AIM[placement] * within, list(STIFFNESS[request.dtype])
    best: tuple[Network, Certificate, Fitted] | None = None
    for _ in range(TRIES):
        fitted = _fitted(target, aim, stiffness[0], request)
        one = request.of_network(fitted.network)
        try:
            network, certificate = _converted(target, fitted, one)
        except AnchorheadError as error:
            if len(stiffness) == 1:
                raise AnchorheadError(
                    f"a network was fitted to {target}, with an error of {fitted.error:.3g}, but not converted: {error}"
                ) from error
            del stiffness[0]
            aim /= 2
            continue
        if best is None or certificate.bound < best[1].bound:
            best = network, certificate, fitted
        if certificate.bound <= within:
            return network
        if fitted.ended:
            break
        aim *= 0.9 * within / certificate.bound
    raise _not_reached(*best, within) if best else AnchorheadError(f"within={within:g} was not reached for {target}")


def _nothing(target: CallableSeveral) -> Mlp:
    """A network of the target's shape that does nothing: words that do not go together are refused before any work."""
    hidden = Hidden.of(np.zeros((1, len(target.variables))), np.zeros(1), RELU)
    return Mlp((hidden,), Affine(np.zeros((target.outputs, 1)), np.zeros(target.outputs)), target.tokens)


class _Unit:
    """The first inputs of a function, brought to [-1, 1]; the others stay in the middle. Some of its outputs."""

    def __init__(self, target: CallableSeveral, inputs: int, outputs: slice) -> None:
        self.target, self.inputs, self.outputs = target, inputs, outputs
        self.box = np.array(target.low), np.array(target.high)
        self.low, self.high = (-1.0,) * inputs, (1.0,) * inputs

    def points(self, u: Float[np.ndarray, "n inputs"]) -> Float[np.ndarray, "n all"]:
        low, high = self.box
        x = np.tile(low / 2 + high / 2, (len(u), 1))
        x[:, : self.inputs] += u * (high / 2 - low / 2)[: self.inputs]
        return x.clip(low, high)

    def values(self, u: Float[np.ndarray, "n inputs"], /) -> Float[np.ndarray, "n outputs"]:
        return self.target.values(self.points(u))[:, self.outputs]


def _fitted(target: CallableSeveral, aim: float, stiffness: float, request: BuildRequest) -> Fitted:
    """One network for all outputs; if causal, one for the outputs of each token."""
    inputs, outputs, tokens = len(target.variables), target.outputs, (request.causal and target.tokens) or 1
    low, high = np.array(target.low), np.array(target.high)
    networks, ended, activations = [], "", KINDS[request.placement]
    for token in range(tokens):
        own = slice(token * outputs // tokens, (token + 1) * outputs // tokens)
        part = _Unit(target, (token + 1) * inputs // tokens, own)
        fit = fit_ridges(
            part,
            aim,
            seed=request.seed,
            stiffness=stiffness,
            activations=activations,
            deep=request.form in (None, "deep"),
            effort=EFFORT / tokens,
            progress=request.progress,
        )
        ends = low[: part.inputs], high[: part.inputs]
        network = network_on(fit.model, *ends)
        networks.append(bent(network, *ends) if activations == ("relu",) else network)
        ended = ended or fit.ended
    network = network_of(networks, target.tokens, inputs, target.variables)
    whole = _Unit(target, inputs, slice(None))

    def values(u: Float[np.ndarray, "n inputs"]) -> Float[np.ndarray, "n outputs"]:
        x = whole.points(u).reshape(-1, *network.input_shape)
        return program_of(network)(x).astype(np.float64).reshape(len(u), outputs)

    error, at = largest_error(values, whole, request.seed)
    return Fitted(network, error, whole.points(at[None])[0], ended)


def _converted(target: CallableSeveral, fitted: Fitted, request: BuildRequest) -> tuple[Network, Certificate]:
    """The network as attention, with its certificate: conversion gets little at first, then all that is left."""
    within, quiet = request.error, replace(request, progress=None)
    left = (1 - 1e-3) * within - fitted.error if fitted.error < 0.97 * within else fitted.error
    little = CONVERSION * max(within, fitted.error) if request.placement == "solved" else left
    try:
        network = proven_mlp(fitted.network, target.on, replace(quiet, within=min(little, left))).network
    except AnchorheadError:
        if left <= little:
            raise
        network = proven_mlp(fitted.network, target.on, replace(quiet, within=left)).network
    known = network.certificate
    if known is None:
        raise TypeError("a converted network without a certificate")
    found = Statement(
        total=fitted.error + known.bound,
        terms=(Term("found", fitted.error, "fitting"), Term("error", known.bound, "conversion")),
        method=f"{fitted.network} fitted, seed {request.seed}, with {target.evaluations:,} evaluations of the "
        "function; the largest error was found by points spread over the box, its faces and corners, and climbs from "
        f"the worst: at ({', '.join(f'{c:.6g}' for c in fitted.at)}); converted: {request}; {known.method}",
        target=str(target),
        reference=known.reference,
    )
    certificate = found.measured(known.on, known.dtype)
    program = program_of(target)
    return network.with_(
        program=program, derivation=_derived(network, program, fitted, target), certificate=certificate
    ), certificate


def _derived(network: Network, program: Program, fitted: Fitted, target: CallableSeveral) -> Derivation:
    """The fit, and the heads of the neurons that were fitted: all of them for the one function of the program."""
    heads, what = network.derivation, f"{fitted.network} fitted to {target.evaluations:,} values"
    fit = Entry(None, "fit", what, 0, 0, None, fitted.error, step=program.applied, measured=True)
    own = () if heads is None else (replace(entry, step=program.applied) for entry in heads.entries)
    return replace(OPAQUE, entries=(fit, *own))


def _not_reached(network: Network, certificate: Certificate, fitted: Fitted, within: float) -> NotReached:
    *before, last = [layer.neurons for layer in fitted.network.hidden]
    neurons = " and ".join([*map(str, before), counted(last, "neuron")])
    split = ", ".join(f"{term.amount:.3g} by {term.of}" for term in certificate.terms)
    why = f"; {fitted.ended}" if fitted.ended else ""
    return NotReached(
        f"within={within:g} was not reached: the best network fitted, of {neurons}, errs by "
        f"{certificate.bound:.3g} ({split}){why}. It is in this error, as .network, with its certificate. What would "
        "help: a larger within, a smaller box, another seed=, or the function as an expression",
        network,
        certificate.bound,
        float(within),
    )
