"""Checks the bound of a converted network again: its heads in balls, the rest from the stored weights."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from anchorhead.certificate import Certificate
from anchorhead.domain import Box
from anchorhead.errors import AnchorheadError, CertificateError
from anchorhead.lemmas.mlp import MlpBound, prove_mlp
from anchorhead.lemmas.mlp_statement import mlp_statement
from anchorhead.network import Network
from anchorhead.proof.arithmetic import arithmetic_of
from anchorhead.proof.head import prove_exact
from anchorhead.proof.head_rounding import head_rounding
from anchorhead.proof.neurons import Layer
from anchorhead.proof.shape import Shape, degree_of
from anchorhead.proof.statement import Statement
from anchorhead.proof.uniform_shape import prove_uniform, ramp_of
from anchorhead.targets import ScalarTarget
from anchorhead.targets.mlp import Mlp, merged
from anchorhead.targets.record import TargetRecord


def check_mlp(network: Network, record: TargetRecord, certificate: Certificate) -> Statement:
    """What follows from the stored weights; raises CertificateError if nothing does."""
    return bound_again(network, record, certificate.on).statement


@dataclass(frozen=True, eq=False)
class Again:
    """What was proven anew: entry by entry of the output, and in the words of a certificate."""

    bound: MlpBound
    statement: Statement


def bound_again(network: Network, record: TargetRecord, on: Box) -> Again:
    """What follows from the stored weights, for every input of a box."""
    try:
        target = Mlp.from_record(record)
        hidden, readout = merged(target)
        stored = [Shape.from_record(n, data, record.arrays) for n, data in enumerate(record.data["shapes"])]
        shapes = [_proven(shape, network.dtype) for shape in stored]
        layers = [
            _layer(n, pair, [shapes[i] for i in record.data["assigned"][n]], record) for n, pair in enumerate(hidden)
        ]
        with np.errstate(all="ignore"):  # what overflows is refused below
            bound = prove_mlp(network, target, layers, readout, on)
            return Again(bound, mlp_statement(bound, network, target, layers, readout))
    except (AnchorheadError, KeyError, IndexError, TypeError, ValueError) as error:
        raise CertificateError(f"the stored network does not prove its bound: {error}") from error


def _layer(number: int, pair: tuple, shapes: list[Shape], record: TargetRecord) -> Layer:
    """The target's layer with the stored shapes, each of which must be one of its own activation."""
    affine, hidden = pair
    assigned = np.asarray(record.arrays[f"{number}.assigned"])
    if assigned.shape != (hidden.neurons,) or assigned.min() < 0 or assigned.max() >= len(shapes):
        raise CertificateError("the stored heads do not say which neuron they belong to")
    for neuron, shape in enumerate(assigned):
        if shapes[shape].activation is not hidden.activations[hidden.which[neuron]]:
            raise CertificateError(f"neuron {neuron} of layer {number + 1} has the head of another activation")
    return Layer(affine, hidden, tuple(shapes), assigned)


def _proven(shape: Shape, dtype: str) -> Shape:
    """The stored shape with bounds that are proven here."""
    if shape.degree is not None and shape.degree != degree_of(shape.activation):
        raise CertificateError(f"{shape.activation} is not homogeneous of degree {shape.degree:g}")
    if any(part.slopes.dtype != dtype for part in shape.parts):
        raise CertificateError("a stored head has another dtype than the network")
    if shape.in_scale != 1:
        return _uniform(shape, dtype)
    if shape.out_scale != 1:
        raise CertificateError("a stored head has a scale of its own")
    bias = np.array([shape.out_shift])
    target = ScalarTarget((shape.activation,), shape.low, shape.high)
    rounding = head_rounding(shape.parts, shape.in_shift, bias, shape.low, shape.high, arithmetic_of(dtype))
    exact = prove_exact(shape.parts, shape.in_shift, bias, target, floor=rounding / 50).bound
    return shape.with_error(exact, rounding)


def _uniform(shape: Shape, dtype: str) -> Shape:
    """The paper's anchors again, from their number and their ends."""
    ramp = ramp_of(shape.activation, shape.low, shape.high)
    if ramp is None or len(shape.parts) != 1:
        raise CertificateError(f"{shape.activation} is not a truncated linear function, but has the head of one")
    again = prove_uniform(shape.activation, (shape.low, shape.high), ramp, shape.anchors, dtype)
    names, scales = ("slopes", "offsets", "values"), ("in_scale", "in_shift", "out_scale", "out_shift")
    same = all(np.array_equal(getattr(again.parts[0], name), getattr(shape.parts[0], name)) for name in names)
    if not same or any(getattr(again, name) != getattr(shape, name) for name in scales):
        raise CertificateError("a stored head is not the paper's")
    return again
