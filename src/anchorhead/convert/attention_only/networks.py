"""The layers of an attention-only model as networks of the grammar, one for each feed-forward sublayer.

    sequence   the tokens that the norm in front puts out, z; then register tokens
    mask       a token sees itself and the registers
    head       query [s, 1] of a token, s = w.z + b; keys [slope, offset]; the token's own value is s, or, gated, u

A head's own factor, and what passes a neuron by (skip s + bias), are in the value maps: heads of the kind "carry" see
the token alone. This is what the fast paths of `attend.py` compute without writing it out. Networks are made one at a
time, when they are asked for: that of a large layer takes more room than the layer.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, overload

import numpy as np
import torch

from anchorhead.certificate import Certificate
from anchorhead.convert.attention_only import bounds
from anchorhead.convert.attention_only.activations import Activation, activation_named
from anchorhead.convert.attention_only.families import FAMILIES, Map
from anchorhead.convert.attention_only.families.sublayers import Sublayer, sublayers_of
from anchorhead.convert.attention_only.ranges import norm_of, range_of
from anchorhead.convert.attention_only.report import AttentionOnlyReport, LayerReport
from anchorhead.errors import AnchorheadError
from anchorhead.heads.arithmetic import arithmetic_of
from anchorhead.language.expressions.activation_names import activation_of
from anchorhead.language.expressions.build import mul, variable
from anchorhead.language.program import Program, Writer
from anchorhead.network import Attention, Derivation, Embed, Network
from anchorhead.network.derivation import Entry, Lemma

ABSENT = 10_000.0
"""So far below the others is the logit of a key that a part does not have: its weight is 0 in floating point."""


@dataclass(frozen=True)
class Part:
    """One softmax a neuron: slopes, offsets and values of registers; own: slope, offset and factor of the token's key.

    Without an own key the token's weight is 0. constant: added to the token's own value.
    """

    slopes: tuple[float, ...]
    offsets: tuple[float, ...]
    values: tuple[float, ...]
    own: tuple[float, float, float] | None
    name: str
    constant: float = 0.0


class LayerNetworks(Sequence[Network]):
    """The layers of a model that `ah.attention_only` made, as networks, first to last, made when they are asked for.

    >>> from transformers import BertModel
    >>> model, report = ah.attention_only(BertModel.from_pretrained("examples/tiny-bert"), within=1e-5)
    >>> networks = ah.LayerNetworks(model, report)
    >>> len(networks), networks[0].certificate.kind, networks[0].layers[1].mask
    (2, 'proven', 'self+registers')
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
        program = _program(sublayer, activation, layer, dtype)
        network = _network(sublayer, parts_of(head), dtype, max(-layer.low, layer.high))
        lemma: Lemma = "gated pair" if head["kind"] == "gate" else "self key"
        parts = parts_of(head)
        what = f"{layer.activation} for {layer.neurons:,} neurons, off by this times max(1, |s|)"
        most = max(len(part.slopes) for part in parts) + 1
        entry = Entry(1, lemma, what, layer.neurons * len(parts), most, (layer.low, layer.high), layer.relative)
        known = Derivation(lemma, {"head": head}, {}, (entry,))
        certificate = _certificate(sublayer, activation, head, layer, dtype)
        return network.with_(program=program, derivation=known, certificate=certificate)

    def __repr__(self) -> str:
        return f"LayerNetworks({len(self)} layers of a {self._report.model})"


def parts_of(head: dict[str, Any]) -> list[Part]:
    """The softmaxes of a head as a config stores it; last, what passes the neuron by."""
    if head["kind"] == "gate":
        return [_gate_part(part, f"part {number}") for number, part in enumerate(head["parts"])]
    own = head["own"]
    key = None if own is None else (own["slope"], own["offset"], own["value"])
    parts = [Part(tuple(head["slopes"]), tuple(head["offsets"]), tuple(head["values"]), key, "anchors")]
    if head["skip"] or head["bias"]:
        parts.append(Part((), (), (), (0.0, 0.0, head["skip"]), "carry", head["bias"]))
    return parts


def _gate_part(part: dict[str, Any], name: str) -> Part:
    """Registers of value 0, and the token's own key of logit 0, which carries u."""
    slopes = tuple(part["slopes"])
    return Part(slopes, tuple(part["offsets"]), (0.0,) * len(slopes), (0.0, 0.0, part["factor"]), name)


def _network(sublayer: Sublayer, parts: list[Part], dtype: str, reach: float) -> Network:
    """reach: a bound on |s|, beyond which nothing is claimed."""
    asks = sublayer.gate if sublayer.gate is not None else sublayer.up
    ask, tell, down = (_rows(one, dtype) for one in (asks, sublayer.up, sublayer.down))
    neurons, width = ask.shape[0], ask.shape[1] - 1
    count = max(len(part.slopes) for part in parts)
    columns = ["one"] + [f"{what}, {part.name}" for part in parts for what in ("slope", "offset", "value")]
    one, size = width, width + len(columns)
    tokens = np.zeros(size)
    tokens[one] = 1.0
    registers = np.zeros((count, size))
    for place, part in enumerate(parts):
        at = one + 1 + 3 * place
        here = len(part.slopes)
        logits = [abs(a) * reach + abs(b) for a, b in zip(part.slopes, part.offsets, strict=True)]
        away = -ABSENT - max(logits, default=0.0)
        tokens[at : at + 2] = (0.0, away) if part.own is None else part.own[:2]
        if here:
            registers[:here, at : at + 3] = np.stack([part.slopes, part.offsets, part.values], axis=1)
        registers[here:, at + 1] = away if part.own is None else away - abs(part.own[0]) * reach - abs(part.own[1])
    query = np.zeros((neurons, 2, size))
    query[:, 0, :width], query[:, 0, one], query[:, 1, one] = ask[:, :width], ask[:, width], 1.0
    keys, values = [], []
    for place, part in enumerate(parts):
        at = one + 1 + 3 * place
        keys.append(np.eye(size)[at : at + 2])
        value = np.zeros((neurons, 1, size))
        factor = 0.0 if part.own is None else part.own[2]
        value[:, 0, :width], value[:, 0, at + 2] = factor * tell[:, :width], 1.0
        value[:, 0, one] = factor * tell[:, width] + part.constant
        values.append(value)
    several = len(parts)
    key = np.stack(keys[:1]) if several == 1 else np.concatenate([np.broadcast_to(k, (neurons, 2, size)) for k in keys])
    labels = tuple(f"neuron {r}, {part.name}" for part in parts for r in range(neurons))
    attention = Attention(
        np.concatenate([query] * several).astype(dtype),
        key.astype(dtype),
        np.concatenate(values).astype(dtype),
        np.concatenate([down[:, :neurons].T[..., None]] * several).astype(dtype),
        bias=down[:, neurons].astype(dtype) if down[:, neurons].any() else None,
        mask="self+registers",
        labels=labels,
    )
    names = (*(f"z{j}" for j in range(width)), *columns)
    embed = Embed(
        np.eye(size, width, dtype=dtype), tokens.astype(dtype), registers=registers.astype(dtype), features=names
    )
    return Network([embed, attention])


def _rows(linear: Map, dtype: str) -> np.ndarray:
    """A map's weights with its bias as the last column, in float64, which holds them exactly."""
    weight = linear.weight.detach().cpu().to(torch.float64).numpy()
    bias = np.zeros(len(weight)) if linear.bias is None else linear.bias.detach().cpu().to(torch.float64).numpy()
    return np.concatenate([weight, bias[:, None]], axis=1).astype(dtype).astype(np.float64)


def _program(sublayer: Sublayer, activation: Activation, layer: LayerReport, dtype: str) -> Program:
    """down phi(up z), or, gated, down (phi(gate z) * up z), for every z that the norm in front puts out."""
    writer = Writer()
    up, down = _rows(sublayer.up, dtype), _rows(sublayer.down, dtype)
    neurons, width = up.shape[0], up.shape[1] - 1
    box = layer.certificate.on
    z = writer.input(("",) * width, box.low, box.high, tokens=None)
    _, function = activation_of(activation.head)
    if sublayer.gate is None:
        s = writer.affine({z: up[:, :width]}, up[:, width], "s")
        hidden = writer.apply(function, (s,), ("x",), neurons)
    else:
        gate = _rows(sublayer.gate, dtype)
        g = writer.affine({z: gate[:, :width]}, gate[:, width], "g")
        u = writer.affine({z: up[:, :width]}, up[:, width], "u")
        hidden = writer.apply(mul(function, variable("u")), (g, u), ("x", "u"), neurons)
    y = writer.affine({hidden: down[:, :neurons]}, down[:, neurons])
    return writer.program(y, conditions=layer.certificate.conditions, title=layer.certificate.target)


def _certificate(
    sublayer: Sublayer, activation: Activation, head: dict[str, Any], layer: LayerReport, dtype: str
) -> Certificate:
    """The layer's own, but for what writing it out as attention adds.

    A token's value is its own sum of products, with weights times the head's factor: its rounding, of at most twice the
    query's, counts once more. Outputs add up a term for each head, none larger than max(1, |s|) times the factors.
    """
    known = layer.certificate
    if known.kind != "proven":
        return replace(known, dtype=dtype)
    arithmetic = arithmetic_of(dtype)
    norm = norm_of(sublayer.norm, sublayer.gain, sublayer.up.weight.shape[1])
    up, parts = range_of(sublayer.up, norm, arithmetic), parts_of(head)
    factors = sum(abs(part.own[2]) + abs(part.constant) for part in parts if part.own is not None)
    largest = max((abs(value) for part in parts for value in part.values), default=0.0)
    times = len(parts)
    if sublayer.gate is None:
        lipschitz, growth = activation.on(float(up.magnitude.max()))
        steepness = bounds.Steepness(layer.relative, lipschitz + 2 * factors, growth + factors + largest)
        found = bounds.two_matrices(up, sublayer.down, steepness, arithmetic, times)
    else:
        gate = range_of(sublayer.gate, norm, arithmetic)
        lipschitz, growth = activation.on(float(gate.magnitude.max()))
        steepness = bounds.Steepness(layer.relative, lipschitz, growth + 2 * factors)
        found = bounds.gated(gate, up, sublayer.down, steepness, _underflow(head), arithmetic, times)
    return replace(known, dtype=dtype, bound=found.bound, terms=found.terms)


def _underflow(head: dict[str, Any]) -> float:
    """What products with a tiny u may lose: see GateHead.underflow."""
    tiny = float(np.finfo(head["dtype"]).tiny)
    return 4 * sum(1 + abs(part["factor"]) for part in head["parts"]) * tiny
