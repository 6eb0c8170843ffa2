"""What a certificate of a converted network says, from its layers of neurons and the bound that is proven."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from anchorhead.decimals import counted
from anchorhead.language.targets.mlp import Affine, Mlp
from anchorhead.lemmas.output import OutputBound
from anchorhead.proof.heads.activation_head import ActivationHead
from anchorhead.proof.heads.neurons import Layer
from anchorhead.proof.heads.uniform_activation_head import SHARPNESS
from anchorhead.proof.statement import Statement
from anchorhead.terms import EvenAnchors, Term


def mlp_statement(
    bound: OutputBound, target: Mlp, layers: Sequence[Layer], readout: Affine, evaluations: tuple[str, ...]
) -> Statement:
    """The bound, its terms and its words; a shape with a scale of its own has the paper's even anchors."""
    used = list({id(shape): shape for layer in layers for shape in layer.shapes}.values())
    anchors = ", ".join(
        f"{shape.activation}: {counted(shape.anchors, f'{_placement(shape)} anchor')}" for shape in used
    )
    *before, last = [layer.neurons * layer.parts for layer in layers] or [0]
    heads = " and ".join([*map(str, before), counted(last, "head")])
    return Statement(
        total=bound.total,
        terms=_terms(bound, used),
        method=f"{heads} ({anchors}); affine forms of the network's features in the target's own, layer by "
        "layer, from the stored weights",
        target=str(target),
        reference=_reference(layers, readout),
        evaluations=evaluations,
    )


def _placement(shape: ActivationHead) -> str:
    return "uniform" if shape.in_scale != 1 else "solved"


def _terms(bound: OutputBound, used: Sequence[ActivationHead]) -> tuple[Term, ...]:
    """The parts of the bound; where the paper's anchors are used, with its numbers for them."""
    ramps = [shape for shape in used if shape.in_scale != 1]
    even = tuple(EvenAnchors((shape.anchors,), (SHARPNESS / shape.in_scale**2,), heads=1) for shape in ramps)
    approximation, rounding = bound.terms("activations")
    return replace(approximation, anchors=even), rounding


def _reference(layers: Sequence[Layer], readout: Affine) -> tuple[Term, ...]:
    """What the theorem's own (b - a)/p gives for one hidden layer of uniform anchors."""
    if len(layers) != 1 or any(shape.in_scale == 1 for shape in layers[0].shapes):
        return ()
    theirs = np.array([shape.out_scale * (shape.anchors - 1) / shape.anchors for shape in layers[0].shapes])
    total = float((np.abs(readout.weight) @ theirs[layers[0].which]).max())
    return (Term("theorem", total, "neurons"),)
