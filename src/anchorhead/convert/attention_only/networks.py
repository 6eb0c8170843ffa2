"""The layers of an attention-only model as networks of the grammar, one for each feed-forward sublayer.

Each is a program, down phi(up z) or, gated, down (phi(gate z) * up z), laid out with keys of the tokens' own
(constructions.layouts.self_key_layout), and proven by the walk (lemmas.self_key). This is what the fast paths of
`attend.py` compute without writing it out. Networks are made one at a time, when they are asked for: that of a large
layer takes more room than the layer.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, overload

import numpy as np
import torch

from anchorhead.certificate import Certificate
from anchorhead.conditions import NormImage
from anchorhead.constructions.layouts.self_key_layout import self_key_network
from anchorhead.convert.attention_only.activations import Activation, activation_named
from anchorhead.convert.attention_only.families import FAMILIES, Map
from anchorhead.convert.attention_only.families.sublayers import sublayers_of
from anchorhead.convert.attention_only.ranges import asked_of_heads
from anchorhead.convert.attention_only.report import AttentionOnlyReport
from anchorhead.errors import AnchorheadError
from anchorhead.heads.self_keys.gate import gate_underflow
from anchorhead.language.expressions.activation_names import NEARLY, activation_of
from anchorhead.language.expressions.build import mul, variable
from anchorhead.language.expressions.expression import Expression
from anchorhead.language.program import Program, Writer
from anchorhead.language.targets.mlp import Affine
from anchorhead.lemmas.activations import Steepness
from anchorhead.lemmas.prove import prove_on_image
from anchorhead.lemmas.self_key import OwnPart, SelfKeys
from anchorhead.network import Derivation, Network
from anchorhead.network.derivation import Entry, Lemma
from anchorhead.proof.statement import stated_bound
from anchorhead.terms import Term


class LayerNetworks(Sequence[Network]):
    """The layers of a model that `ah.attention_only` made, as networks, first to last, made when they are asked for.

    >>> from transformers import BertModel
    >>> model, report = ah.attention_only(BertModel.from_pretrained("examples/tiny-bert"), within=1e-5)
    >>> networks = ah.LayerNetworks(model, report)
    >>> len(networks), networks[0].certificate.kind, networks[0].layers[1].mask
    (2, 'proven', 'self+registers')

    A network has a certificate of its own, for the evaluation "plain" alone, with a larger bound in float32 than the
    report has for the layer: as attention is written, s is computed anew for each map that takes it, as query and as
    the token's own value, and of gated neurons for either head, each a dot product whose order is its own. These may
    round apart. The heads of the model take one s for all (`attend.py`): the report's certificate is about them.
    """

    def __init__(self, model: Any, report: AttentionOnlyReport) -> None:
        config: Any = getattr(model, "config", None)
        settings = getattr(config, "attention_only", None)
        if settings is None:
            raise AnchorheadError(f"this {type(model).__name__} was not made by attention_only")
        self._settings, self._report = settings, report
        self._sublayers = list(sublayers_of(model, FAMILIES[config.model_type]))
        if [one.name for one in self._sublayers] != [layer.name for layer in report.layers]:
            raise AnchorheadError("the report is of another model: give the one that attention_only returned with it")

    def __len__(self) -> int:
        return len(self._sublayers)

    @overload
    def __getitem__(self, place: int) -> Network: ...
    @overload
    def __getitem__(self, place: slice) -> list[Network]: ...
    def __getitem__(self, place: Any) -> Any:
        if isinstance(place, slice):
            return [self[one] for one in range(*place.indices(len(self)))]
        sublayer, layer = self._sublayers[place], self._report.layers[place]
        head = self._settings["heads"][self._settings["layers"][sublayer.place]]
        dtype = self._settings["dtype"]
        activation = activation_named(layer.activation)
        function, parts = _function(activation), parts_of(head)
        up, down = (_affine(one, dtype) for one in (sublayer.up, sublayer.down))
        asks, carries = (up, None) if sublayer.gate is None else (_affine(sublayer.gate, dtype), up)
        reach = max(-layer.low, layer.high)
        network = self_key_network(asks, carries, down, parts, dtype, reach)
        lemma: Lemma = "gated pair" if head["kind"] == "gate" else "self key"
        what = f"{layer.activation} for {layer.neurons:,} neurons, off by this times max(1, |s|)"
        most = max(len(part.slopes) for part in parts) + 1
        program, ends = _program(function, asks, carries, down, layer.certificate), (layer.low, layer.high)
        proven, heads = layer.certificate.kind == "proven", layer.neurons * len(parts)
        entry = Entry(1, lemma, what, heads, most, ends, layer.relative, step=program.applied, measured=not proven)
        network = network.with_(program=program, derivation=Derivation(lemma, entries=(entry,)))
        if not proven:
            return network.with_(certificate=replace(layer.certificate, dtype=dtype, evaluations=("plain",)))
        phi = Steepness(layer.relative, *activation.on(reach))
        underflow = 0.0 if carries is None else gate_underflow([part.factor for part in parts], dtype)
        ends = asked_of_heads(layer.low, layer.high)
        claim = SelfKeys(function, parts, asks, carries, *ends, phi, underflow)
        return network.with_(certificate=_certificate(network, claim, down, layer.certificate))

    def __repr__(self) -> str:
        return f"LayerNetworks({len(self)} layers of a {self._report.model})"


def parts_of(head: dict[str, Any]) -> tuple[OwnPart, ...]:
    """The softmaxes of a head as a config stores it; last, what passes the neuron by."""
    if head["kind"] == "gate":
        return tuple(_gate_part(part, f"part {number}") for number, part in enumerate(head["parts"]))
    own = head["own"]
    key = None if own is None else (own["slope"], own["offset"], own["value"])
    parts = [OwnPart(tuple(head["slopes"]), tuple(head["offsets"]), tuple(head["values"]), key, "anchors")]
    if head["skip"] or head["bias"]:
        parts.append(OwnPart((), (), (), (0.0, 0.0, head["skip"]), "carry", head["bias"]))
    return tuple(parts)


def _gate_part(part: dict[str, Any], name: str) -> OwnPart:
    """Registers of value 0, and the token's own key of logit 0, which carries u."""
    slopes = tuple(part["slopes"])
    return OwnPart(slopes, tuple(part["offsets"]), (0.0,) * len(slopes), (0.0, 0.0, part["factor"]), name)


def _affine(linear: Map, dtype: str) -> Affine:
    """A map's weights in the dtype of the network, in float64, which holds them exactly."""
    weight = linear.weight.detach().cpu().to(torch.float64).numpy()
    bias = np.zeros(len(weight)) if linear.bias is None else linear.bias.detach().cpu().to(torch.float64).numpy()
    return Affine(*(one.astype(dtype).astype(np.float64) for one in (weight, bias)))


def _function(activation: Activation) -> Expression:
    """What heads are for, or what that is up to less than their error: errors of such heads allow for it."""
    near, _ = NEARLY.get(activation.head, (activation.head, 0.0))
    return activation_of(near)[1]


def _program(function: Expression, asks: Affine, carries: Affine | None, down: Affine, known: Certificate) -> Program:
    """down phi(asks z), or, gated, down (phi(asks z) * carries z), for every z that the norm in front puts out."""
    writer = Writer()
    z = writer.input(("",) * asks.inputs, known.on.low, known.on.high, tokens=None)
    s = writer.affine({z: asks.weight}, asks.bias, "s" if carries is None else "g")
    if carries is None:
        hidden = writer.apply(function, (s,), ("x",), asks.outputs)
    else:
        u = writer.affine({z: carries.weight}, carries.bias, "u")
        hidden = writer.apply(mul(function, variable("u")), (s, u), ("x", "u"), asks.outputs)
    y = writer.affine({hidden: down.weight}, down.bias)
    return writer.program(y, conditions=known.conditions, title=known.target)


def _certificate(network: Network, claim: SelfKeys, readout: Affine, known: Certificate) -> Certificate:
    """What the walk proves of the network, for every z that the norm in front puts out."""
    image = next(one for one in known.conditions if isinstance(one, NormImage))
    bound = prove_on_image(network, [claim], readout, image)
    heads, rest = bound.worst
    terms = Term("error", heads, "heads"), Term("rounding", rest, "network")
    method = "the walk along the network as it is written, every head's dot products in an order of their own"
    return replace(
        known,
        dtype=network.dtype,
        bound=stated_bound(bound.total),
        terms=terms,
        method=method,
        evaluations=("plain",),
    )
