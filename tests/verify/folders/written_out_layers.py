"""Small feed-forward layers written out as attention, of random matrices: no model of transformers is needed."""

from __future__ import annotations

from functools import cache

import numpy as np

from anchorhead.certificate import Certificate
from anchorhead.conditions import NormImage
from anchorhead.constructions.layouts.self_key_layout import self_key_network
from anchorhead.constructions.single.gate_head import gate_head
from anchorhead.constructions.single.self_key_head import self_key_head
from anchorhead.convert.attention_only.activations import activation_named
from anchorhead.convert.attention_only.heads import numbers_of
from anchorhead.convert.attention_only.networks import _certificate, _function, _program, parts_of
from anchorhead.domain import Box
from anchorhead.language.targets.mlp import Affine
from anchorhead.lemmas.activations import Steepness
from anchorhead.lemmas.self_key import SelfKeys
from anchorhead.network import Network
from anchorhead.proof.arithmetic.arithmetic import require_model
from anchorhead.proof.arithmetic.norm_image import NormSources

KINDS = ("gelu", "sigmoid", "hardswish", "gated silu")
REACH = 60.0


@cache
def layer(kind: str, dtype: str = "float32", within: float = 1e-5, d: int = 4, neurons: int = 3) -> Network:
    """down phi(asks z), or down (phi(asks z) * carries z), for what a LayerNorm puts out."""
    rng, gated, name = np.random.default_rng(0), kind.startswith("gated"), kind.removeprefix("gated ")
    shapes = ((neurons, d), (neurons, d), (d, neurons))
    maps = [Affine(*(_stored(rng.normal(size=one), dtype) for one in (shape, shape[0]))) for shape in shapes]
    asks, carries, down = maps[0], maps[1] if gated else None, maps[2]
    unit = require_model(dtype).unit
    image = NormImage("LayerNorm", *(tuple(rng.normal(size=d).tolist()) for _ in range(2)), 1e-3, 4 * unit)
    head = gate_head(name, within, dtype, REACH) if gated else self_key_head(name, within, dtype, -REACH, REACH)
    parts, sources = parts_of(numbers_of(head)), NormSources.of(image)
    network, activation = self_key_network(asks, carries, down, parts, dtype, REACH), activation_named(name)
    box = Box.of((sources.low, sources.high))
    known = Certificate("proven", 1.0, box, dtype, dtype, (), "by hand", "a layer", conditions=(image,))
    function = _function(activation)
    network = network.with_(program=_program(function, asks, carries, down, known))
    phi = Steepness(head.bound, *activation.on(REACH))
    lost = head.underflow if gated else 0.0
    claim = SelfKeys(function, parts, asks, carries, -REACH, REACH, phi, lost)
    return network.with_(certificate=_certificate(network, claim, down, known))


def tokens(network: Network, count: int = 4000) -> np.ndarray:
    """What the norm may put out, neurons driven to their ends among it, as numbers of the dtype."""
    assert network.certificate is not None
    assert network.program is not None
    (image,) = network.certificate.conditions
    assert isinstance(image, NormImage)
    rng, scale = np.random.default_rng(1), np.array(image.scale)
    p = rng.normal(size=(count, len(scale)))
    rows = network.program.steps[1].terms[0].weight * scale
    p[: 2 * len(rows)] = np.concatenate([rows, -rows])
    p -= p.mean(axis=1, keepdims=True)
    p *= np.sqrt(len(scale)) / np.linalg.norm(p, axis=1, keepdims=True)
    return (scale * p + np.array(image.shift)).astype(network.dtype)


def _stored(numbers: np.ndarray, dtype: str) -> np.ndarray:
    return numbers.astype(dtype).astype(np.float64)
