"""Converted networks: what is right is verified in every form, what was changed and matters is refused."""

from __future__ import annotations

import dataclasses
from itertools import product

import numpy as np
import pytest

import anchorhead as ah
from anchorhead.conditions import Excluded
from anchorhead.constructions.build_request import FORMS, LAYOUTS
from anchorhead.constructions.layouts import sequence_layout
from anchorhead.language.canonical import to_data
from anchorhead.language.expressions.parser import parse
from anchorhead.language.forms import mlp_of
from anchorhead.language.of_targets import program_of
from anchorhead.language.targets.mlp import Affine, Hidden, Mlp
from anchorhead.network import Attention, Linear, Network

DTYPES = ("float32", "float64")
RELU, ABS, LEAKY = parse("relu(x)"), parse("abs(x)"), parse("leaky_relu(x)")
WITHIN = {"float32": 0.05, "float64": 1e-6}


def mlp(layers=1, tokens=None, activations=(RELU,), seed=0):
    rng = np.random.default_rng(seed)
    count, hidden = tokens or 1, []
    size = 2 * count
    for _ in range(layers):
        affine = Affine(rng.normal(size=(5, size)), rng.normal(size=5))
        hidden.append(Hidden(affine, activations, rng.integers(len(activations), size=5)))
        size = 5
    return Mlp(tuple(hidden), Affine(rng.normal(size=(count, size)), rng.normal(size=count)), tokens)


def convert(target, dtype="float64", on=(-1, 1), **options) -> Network:
    return ah.convert(target, on=on, within=options.pop("within", WITHIN[dtype]), dtype=dtype, **options)


def causal(target):
    """The same with weights to later tokens set to 0: neuron r belongs to token r of the first ones."""
    count = target.tokens
    owner = np.minimum(np.arange(5), count - 1)
    first = target.hidden[0].affine
    weight = first.weight * (np.arange(2 * count) // 2 <= owner[:, None])
    layer = Hidden(Affine(weight, first.bias), target.hidden[0].activations, target.hidden[0].which)
    readout = Affine(target.readout.weight * (owner <= np.arange(count)[:, None]), target.readout.bias)
    return Mlp((layer,), readout, count)


def with_layers(network, layers):
    return Network(
        layers,
        program=network.program,
        derivation=network.derivation,
        certificate=network.certificate,
        outside="ignore",
        token_axis=network.token_axis,
    )


def changed(network, place, name, array):
    """The network with another array in a layer, or in the skip of one."""
    layers = list(network.layers)
    layer = layers[place]
    if name.startswith("skip."):
        array = dataclasses.replace(layer.skip, **{name.removeprefix("skip."): array})
        name = "skip"
    layers[place] = dataclasses.replace(layer, **{name: array})
    return with_layers(network, layers)


def arrays(network):
    names = ("weight", "bias", "registers", "query", "key", "value", "output")
    for place, layer in enumerate(network.layers):
        yield from ((place, n, getattr(layer, n)) for n in names if isinstance(getattr(layer, n, None), np.ndarray))
        if getattr(layer, "skip", None) is not None:
            yield place, "skip.weight", layer.skip.weight


@pytest.mark.slow_for(
    "deep-sequence-float64", "deep-transformer-float64", "two-layer-sequence-float64",
    "attention-softmax-sequence-float64", "attention-softmax-transformer-float64",
)  # fmt: skip
@pytest.mark.parametrize(("form", "layout", "dtype"), list(product(FORMS, LAYOUTS, DTYPES)))
def test_what_was_not_changed_is_accepted_and_files_keep_every_bit(tmp_path, form, layout, dtype):
    for tokens, activations in ((None, (RELU,)), (3, (RELU, LEAKY))):
        network = convert(mlp(1, tokens, activations), dtype, form=form, layout=layout)
        assert ah.check(network).stated == network.certificate.bound
        network.save(tmp_path / "network.safetensors")
        loaded = ah.load(tmp_path / "network.safetensors")
        assert loaded.token_axis is network.token_axis is (tokens is not None)
        for (place, name, array), (again, same, other) in zip(arrays(network), arrays(loaded), strict=True):
            assert (place, name) == (again, same)
            assert array.tobytes() == other.tobytes()
        assert loaded.derivation.data == network.derivation.data
        claims = (one.derivation.claims.arrays for one in (network, loaded))
        for ours, theirs in (tuple(claims), stored(network, loaded)):
            assert {n: a.tobytes() for n, a in ours.items()} == {n: a.tobytes() for n, a in theirs.items()}
        x = np.random.default_rng(0).uniform(-1, 1, (7, *mlp_of(loaded.program).input_shape))
        assert np.array_equal(loaded(x), network(x))
        assert ah.check(tmp_path / "network.safetensors").stated == network.certificate.bound


@pytest.mark.parametrize("options", [{"placement": "uniform", "within": 0.3}, {"causal": True}, {"layers": 2}])
def test_other_ways_to_build_are_accepted(options):
    target = mlp(options.pop("layers", 1), 3)
    network = convert(causal(target) if options.get("causal") else target, **options)
    assert ah.check(network).stated == network.certificate.bound


def stored(*networks):
    """The arrays of their programs."""
    return [to_data(network.program)[1] for network in networks]


def others(target):
    """Networks that differ a little: an entry of one array, activations, layers, tokens."""
    for place, layer in enumerate(target.hidden):
        around = target.hidden[:place], target.hidden[place + 1 :]
        for affine in shifted(layer.affine):
            yield dataclasses.replace(
                target, hidden=(*around[0], dataclasses.replace(layer, affine=affine), *around[1])
            )
        swapped = dataclasses.replace(layer, which=1 - layer.which)
        yield dataclasses.replace(target, hidden=(*around[0], swapped, *around[1]))
    first = dataclasses.replace(target.hidden[0], which=0 * target.hidden[0].which)
    yield dataclasses.replace(target, hidden=(first, *target.hidden[1:]))
    for affine in shifted(target.readout):
        yield dataclasses.replace(target, readout=affine)


def shifted(affine):
    for name in ("weight", "bias"):
        other = np.array(getattr(affine, name))
        other[(0,) * other.ndim] += 1e-3
        yield dataclasses.replace(affine, **{name: other})


@pytest.mark.slow
def test_another_target_is_refused():
    network = convert(mlp(2, None, (RELU, ABS)))
    refused = 0
    for other in others(mlp_of(network.program)):
        program = program_of(other, network.certificate.on)
        with pytest.raises(ah.CertificateError):
            ah.check(network.with_(program=program))
        refused += 1
    assert refused == 9
    with pytest.raises(ah.CertificateError):
        ah.check(network.with_(program=program_of(mlp(2, 3, (RELU, ABS)))))


def test_other_claims_are_refused():
    network = convert(mlp(1, 3, (RELU, ABS)))
    certificate = network.certificate
    for change in (
        {"bound": 0.5 * certificate.bound},
        {"bound": 0.0},
        {"on": ah.Box.of((-2, 1))},
        {"on": ah.Box.of(([-1, -1], [1, 2]))},
        {"conditions": (Excluded(((0.0, 1.0),)),)},
        {"kind": "measured"},
    ):
        with pytest.raises(ah.CertificateError):
            ah.check(network.with_(certificate=dataclasses.replace(certificate, **change)))
    smaller = dataclasses.replace(certificate, on=ah.Box.of((-0.5, 0.5)))
    assert ah.check(network.with_(certificate=smaller)).stated == smaller.bound


def test_a_skip_with_a_bias_another_output_and_a_missing_layer_are_refused():
    network = convert(mlp(1, 3), "float32", form="two-layer")
    place = max(i for i, layer in enumerate(network.layers) if isinstance(layer, Attention) and layer.skip is not None)
    bias = np.full(network.layers[place].outputs, 0.5, np.float32)
    same = np.eye(network.layers[-1].outputs, dtype=np.float32)
    with pytest.raises(ah.CertificateError):
        ah.check(changed(network, place, "skip.bias", bias))
    with pytest.raises(ah.CertificateError):
        ah.check(network.with_(output="register"))
    assert ah.check(with_layers(network, [*network.layers, Linear(same)]))
    with pytest.raises(ah.CertificateError):
        ah.check(with_layers(network, [*network.layers, Linear(2 * same)]))
    one, two = convert(mlp(1), "float32"), convert(mlp(2), "float32")
    for network, other in ((one, two), (two, one)):
        with pytest.raises(ah.CertificateError):
            ah.check(network.with_(program=other.program, derivation=other.derivation))


@pytest.mark.slow
def test_logits_that_are_lowered_below_those_out_of_reach_are_refused(monkeypatch):
    """What all logits of a group share changes no softmax, but those that were to be out of reach would then win."""
    monkeypatch.setattr(sequence_layout, "MAX_DEALT", 0)
    network = convert(mlp(1, None, (RELU, LEAKY), seed=2), form="attention-softmax", layout="sequence")
    assert ah.check(network)
    logits = network.layers[2]
    bias = np.array(logits.bias)
    padded = np.flatnonzero((bias == bias.min()).any(axis=1) & ((bias > bias.min()).sum(axis=1) > 1))
    assert len(padded)
    row = padded[0]
    bias[row] = np.where(bias[row] > bias.min(), bias[row] + 4 * bias.min(), bias[row])
    tampered = changed(network, 2, "bias", bias)
    x = np.random.default_rng(0).uniform(-1, 1, (200, 2))
    assert np.abs(tampered(x) - network(x)).max() > 0.01
    with pytest.raises(ah.CertificateError):
        ah.check(tampered)
