"""Networks become attention: bounds hold in every form, layout and dtype, causality is kept, nonsense is refused."""

import dataclasses
from fractions import Fraction
from itertools import pairwise, product

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import anchorhead as ah
from anchorhead.constructions.build_request import FORMS, LAYOUTS
from anchorhead.domain import Box
from anchorhead.language.expressions.parser import parse
from anchorhead.language.targets.mlp import IDENTITY, Affine, Hidden, Mlp
from anchorhead.proof.search.mlp_search import worst_error
from network.test_modules_hold_linear_maps_and_softmax_only import (
    ARITHMETIC_ON_SIZES,
    CONSTANT,
    LINEAR,
    SHAPE,
    SOFTMAX,
)

DTYPES = ("float32", "float64")
WITHIN = {"float32": 0.05, "float64": 1e-7}
RELU, ABS, LEAKY = parse("relu(x)"), parse("abs(x)"), parse("leaky_relu(x)")


def mlp(sizes, tokens=None, activations=(RELU,), causal=False, seed=0, scale=1.0, zeros=0.0):
    """A random network; with causal=True neurons belong to tokens and see those up to their own."""
    rng = np.random.default_rng(seed)
    owner = np.arange(sizes[0]) * (tokens or 1) // sizes[0]
    maps = []
    for number, (inputs, outputs) in enumerate(pairwise(sizes)):
        weight = scale * rng.normal(size=(outputs, inputs)) / np.sqrt(inputs)
        weight *= rng.random(weight.shape) >= zeros
        if causal:
            last = number == len(sizes) - 2
            after = np.arange(outputs) * tokens // outputs if last else rng.integers(tokens, size=outputs)
            weight *= owner <= after[:, None]
            owner = after
        maps.append(Affine(weight, scale * rng.normal(size=outputs)))
    hidden = [Hidden(one, activations, rng.integers(len(activations), size=one.outputs)) for one in maps[:-1]]
    return Mlp(tuple(hidden), maps[-1], tokens)


def exactly(target, x):
    """The target at one input, in rational arithmetic; for piecewise linear activations."""
    slope = Fraction(0.01)
    phi = {
        RELU: lambda z: max(z, Fraction(0)),
        ABS: abs,
        LEAKY: lambda z: z if z > 0 else slope * z,
        IDENTITY: lambda z: z,
    }
    a = [Fraction(float(one)) for one in x.reshape(-1)]
    for layer in [*target.hidden, None]:
        affine = target.readout if layer is None else layer.affine
        a = [
            sum((Fraction(float(w)) * one for w, one in zip(row, a, strict=True) if w), Fraction(float(bias)))
            for row, bias in zip(affine.weight, affine.bias, strict=True)
        ]
        if layer is not None:
            a = [phi[layer.activations[k]](z) for k, z in zip(layer.which, a, strict=True)]
    return a


def exact_error(network, target, x):
    """|network - target| at one input, without any rounding in the comparison."""
    y = network(x[None], outside="raise").reshape(-1)
    return max(abs(Fraction(float(one)) - exact) for one, exact in zip(y, exactly(target, x), strict=True))


def assert_never_exceeded(network, target, evaluations=500, seed=0):
    certificate = network.certificate
    assert certificate.kind == "proven"
    worst = worst_error(network, target, certificate.on, seed, evaluations)
    assert exact_error(network, target, worst.x) <= certificate.bound
    assert worst.error <= certificate.bound


@pytest.mark.parametrize(
    ("dtype", "tokens"),
    [
        pytest.param(dtype, tokens, marks=[pytest.mark.slow] if (tokens is None) == (dtype == "float64") else [])
        for dtype in DTYPES
        for tokens in (None, 3)
    ],
)
@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("form", FORMS)
def test_bounds_hold_for_one_hidden_layer_in_every_form_and_layout(form, layout, dtype, tokens):
    for activations, on in (((RELU,), (0, 1)), ((RELU, ABS, LEAKY), (-3, 1))):
        target = mlp((6, 11, 3), tokens, activations, seed=tokens or 7)
        network = ah.convert(target, on=on, within=WITHIN[dtype], form=form, layout=layout, dtype=dtype)
        assert network.certificate.bound <= WITHIN[dtype]
        assert network.dtype == dtype
        assert_never_exceeded(network, target)


@pytest.mark.parametrize(("layout", "dtype", "tokens"), list(product(LAYOUTS, DTYPES, (None, 2))))
def test_bounds_hold_for_deep_networks_with_linear_layers_between(layout, dtype, tokens):
    target = mlp((4, 8, 6, 7, 4), tokens, (RELU, ABS), seed=3)
    first, second, third = target.hidden
    mixed = Mlp((first, Hidden.of(second.affine.weight, second.affine.bias, IDENTITY), third), target.readout, tokens)
    for one, layers in ((target, 3), (mixed, 2)):
        network = ah.convert(one, on=(-1, 1), within=10 * WITHIN[dtype], layout=layout, dtype=dtype)
        neurons = sum(type(layer).__name__ == "Attention" for layer in network.layers)
        assert neurons == layers + (layout == "transformer" and tokens is not None)
        assert_never_exceeded(network, one)


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("form", FORMS)
def test_the_papers_anchors_keep_their_bound_too(form, layout):
    target = mlp((4, 5, 2), 2, seed=5)
    network = ah.convert(target, on=(0, 1), within=0.2, form=form, layout=layout, placement="uniform")
    assert network.certificate.bound <= min(0.2, *(theirs.amount for theirs in network.certificate.reference))
    assert_never_exceeded(network, target)


SMOOTH = ("gelu(x)", "tanh(x)", "sigmoid(x)", "silu(x)", "softplus(x)", "square(x)", "hardtanh(x)", "relu6(x)")


@pytest.mark.parametrize("activation", SMOOTH)
def test_bounds_hold_for_every_kind_of_activation(activation):
    target = mlp((3, 4, 2), None, (parse(activation),), seed=1)
    for number, dtype in enumerate(DTYPES):
        form, layout = FORMS[number], LAYOUTS[number]
        network = ah.convert(target, on=(-0.5, 0.5), within=0.02, form=form, layout=layout, dtype=dtype)
        worst = worst_error(network, target, network.certificate.on, evaluations=500)
        assert worst.error <= network.certificate.bound <= 0.02


BOXES = {
    "far from zero": (1000, 1001),
    "each feature its own": ([-1, 0, 2, 5], [0, 0.1, 3, 5.5]),
    "some entries fixed": ([-1, 0.3, -2, 5], [1, 0.3, 2, 5]),
    "one point": ([0.1, 0.3, -2, 5], [0.1, 0.3, -2, 5]),
    "tiny": (-1e-9, 1e-9),
    "huge": (-1e6, 1e6),
}


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", BOXES)
def test_bounds_hold_on_every_kind_of_box_for_inputs_of_more_digits_too(name, dtype):
    """Inputs are float64; a float32 network rounds them first, and its bound allows for it."""
    target = mlp((4, 6, 5, 2), None, (RELU, LEAKY), seed=2)
    size = max(1.0, float(np.abs(BOXES[name]).max()))
    layout = LAYOUTS[(list(BOXES).index(name) + DTYPES.index(dtype)) % 2]
    network = ah.convert(target, on=BOXES[name], within=WITHIN[dtype] * size, layout=layout, dtype=dtype)
    assert_never_exceeded(network, target)


@pytest.mark.parametrize("layout", LAYOUTS)
def test_neurons_that_are_dead_always_active_or_without_weights_do_no_harm(layout):
    target = mlp((3, 9, 4), None, (RELU, ABS), seed=8)
    weight, bias = np.array(target.hidden[0].affine.weight), np.array(target.hidden[0].affine.bias)
    weight[:3], bias[:2] = 0.0, (0.0, 3.0)
    bias[3:5], weight[5] = (-100, 100), 1e6 * weight[5]
    weight[6], bias[7:] = 1e-6 * weight[6], 0.0
    activations, which = target.hidden[0].activations, target.hidden[0].which
    readout = np.array(target.readout.weight)
    readout[2] = 0.0
    nothing = np.zeros_like(weight)
    for first in (weight, nothing):
        one = Mlp((Hidden(Affine(first, bias), activations, which),), Affine(readout, target.readout.bias))
        for form in FORMS:
            network = ah.convert(one, on=(-1, 1), within=1e-3, form=form, layout=layout)
            assert_never_exceeded(network, one, evaluations=400)


def test_neurons_of_two_scales_share_a_layer_without_seeing_each_others_anchors():
    """Queries of one shape meet the keys of the other, a billion times as steep: these must stay out of reach."""
    weight = np.array([[1.0, 0.5], [1e-9, -1e-9], [0.3, 1.0]])
    hidden = Hidden(Affine(weight, np.zeros(3)), (parse("relu6(x)"), parse("tanh(x)")), np.array([0, 1, 0]))
    target = Mlp((hidden,), Affine(np.ones((1, 3)), np.zeros(1)))
    for form in FORMS:
        network = ah.convert(target, on=(0, 1), within=0.3, layout="sequence", form=form, placement="uniform")
        assert worst_error(network, target, network.certificate.on, evaluations=500).error <= network.certificate.bound


@settings(max_examples=15, deadline=None, derandomize=True)
@given(
    sizes=st.lists(st.integers(1, 9), min_size=1, max_size=3),
    features=st.integers(1, 4),
    tokens=st.sampled_from([None, 1, 2, 5]),
    layout=st.sampled_from(LAYOUTS),
    form=st.sampled_from(FORMS),
    dtype=st.sampled_from(DTYPES),
    log_scale=st.integers(-6, 6),
    zeros=st.sampled_from([0.0, 0.5, 0.95]),
    low=st.sampled_from([-1.0, 0.0, 1000.0, -1e-3]),
    width=st.sampled_from([0.0, 1e-3, 1.0, 7.3]),
    causal=st.booleans(),
    seed=st.integers(0, 10**6),
)
def test_no_network_is_found_whose_error_exceeds_its_bound(
    sizes, features, tokens, layout, form, dtype, log_scale, zeros, low, width, causal, seed
):
    causal = causal and layout == "transformer" and (tokens or 1) > 1
    count = tokens or 1
    ends = (features * count, *sizes, count)
    target = mlp(ends, tokens, (RELU, ABS), causal, seed, 10.0**log_scale, zeros)
    form = form if len(sizes) == 1 else "deep"
    reach = max(1.0, abs(low) + width)
    for layer in [*target.hidden, target.readout]:
        affine = layer if isinstance(layer, Affine) else layer.affine
        reach = float((np.abs(affine.weight).sum(axis=1) * reach + np.abs(affine.bias)).max())
    within = max({"float32": 1e-2, "float64": 1e-8}[dtype] * reach, 1e-12)
    network = ah.convert(
        target, on=(low, low + width), within=within, form=form, layout=layout, dtype=dtype, causal=causal
    )
    assert_never_exceeded(network, target, evaluations=400, seed=seed)


@pytest.mark.slow_for("attention-softmax-float64", "two-layer-float64", "deep-float32", "deep-float64")
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("form", FORMS)
def test_causal_networks_keep_their_bound_and_never_look_ahead(form, dtype):
    for sizes, on in (((8, 12, 4), (-1, 1)), ((8, 12, 4), (50, 51)), ((8, 12, 9, 4), (0, 1))):
        if len(sizes) > 3 and form != "deep":
            continue
        target = mlp(sizes, 4, (RELU, ABS), causal=True, seed=11)
        within = 2 * WITHIN[dtype] * max(on)
        network = ah.convert(target, on=on, within=within, form=form, dtype=dtype, causal=True)
        assert all(layer.mask == "causal" for layer in network.layers if type(layer).__name__ == "Attention")
        assert_never_exceeded(network, target)
        rng = np.random.default_rng(0)
        x = rng.uniform(*on, (50, 4, 2))
        y = network(x)
        for i in range(3):
            other = np.concatenate([x[:, : i + 1], rng.uniform(*on, (50, 3 - i, 2))], axis=1)
            z = network(other)
            assert np.array_equal(y[:, : i + 1], z[:, : i + 1])
            assert not np.array_equal(y, z)


def test_the_same_weights_without_a_mask_may_look_ahead():
    target = mlp((8, 12, 4), 4, causal=False, seed=11)
    network = ah.convert(target, on=(-1, 1), within=1e-3)
    x = np.zeros((1, 4, 2))
    other = x.copy()
    other[:, 3] = 1
    assert not np.array_equal(network(x)[:, 0], network(other)[:, 0])


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("form", FORMS)
def test_shapes_with_and_without_tokens(form, layout):
    bare, one, three = (mlp((6, 5, 3), tokens, seed=1) for tokens in (None, 1, 3))
    networks = [ah.convert(t, on=(-1, 1), within=1e-3, form=form, layout=layout) for t in (bare, one, three)]
    x = np.random.default_rng(0).uniform(-1, 1, (5, 4, 6))
    y = [networks[0](x), networks[1](x[..., None, :])[..., 0, :], networks[2](x.reshape(5, 4, 3, 2)).reshape(5, 4, 3)]
    assert networks[0](x[0, 0]).shape == (3,)
    assert networks[0](np.zeros((0, 6))).shape == (0, 3)
    assert networks[2](np.zeros((3, 2))).shape == (3, 1)
    assert isinstance(networks[0](torch.zeros(2, 6)), torch.Tensor)
    for other in y[1:]:
        assert np.abs(other - y[0]).max() <= sum(n.certificate.bound for n in networks)


def assert_in_grammar(network, example):
    """As tests/network does for networks at large: linear maps, softmax, shapes, nothing else."""
    program = torch.export.export(network.module(), (example,))
    for node in program.graph.nodes:
        if node.op != "call_function":
            assert node.op in ("placeholder", "output", "get_attr")
        elif isinstance(node.target, torch._ops.OpOverload):
            operation = node.target._schema.name.removeprefix("aten::").rstrip("_")
            assert operation in LINEAR | SOFTMAX | SHAPE | CONSTANT, node
        else:
            assert node.target.__name__ in ARITHMETIC_ON_SIZES, node


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("tokens", [pytest.param(None, marks=pytest.mark.slow), 2])
def test_the_modules_hold_the_grammars_parts_alone(form, layout, tokens):
    causal = tokens is not None and layout == "transformer"
    target = mlp((4, 5, 2), tokens, (RELU, ABS), causal=causal)
    network = ah.convert(target, on=(-1, 1), within=1e-3, form=form, layout=layout, causal=causal)
    assert {type(layer).__name__ for layer in network.layers} <= {"Embed", "Attention", "Linear", "Softmax"}
    assert_in_grammar(network, torch.zeros(3, *target.input_shape, dtype=torch.float64))


@pytest.mark.parametrize("layout", LAYOUTS)
def test_forms_are_the_papers(layout):
    target = mlp((4, 5, 2), 2)
    for form, kinds in (
        ("two-layer", ["Embed", "Attention", "Linear", "Attention", "Linear"]),
        ("attention-softmax", ["Embed", "Attention", "Linear", "Softmax", "Linear"]),
    ):
        network = ah.convert(target, on=(0, 1), within=1e-3, form=form, layout=layout)
        assert [type(layer).__name__ for layer in network.layers] == kinds


def test_a_linear_network_becomes_a_linear_map():
    affine = Mlp((), Affine(np.ones((2, 3)), np.ones(2)))
    network = ah.convert(affine, on=(0, 1), within=1e-9)
    assert_never_exceeded(network, affine)
    tokens = Mlp((), Affine(np.arange(8.0).reshape(2, 4), np.ones(2)), 2)
    for layout in LAYOUTS:
        assert_never_exceeded(ah.convert(tokens, on=(0, 1), within=1e-9, layout=layout), tokens)


def forward_looking():
    target = mlp((8, 12, 4), 4, causal=True, seed=11)
    weight = np.array(target.readout.weight)
    late = int(np.flatnonzero(target.hidden[0].affine.weight[:, 6:].any(axis=1))[0])
    weight[1, late] = 0.5
    return Mlp(target.hidden, Affine(weight, target.readout.bias), 4), late


def test_weights_that_look_ahead_are_named():
    target, late = forward_looking()
    with pytest.raises(ah.AnchorheadError) as caught:
        ah.convert(target, on=(0, 1), within=1e-3, causal=True)
    assert f"output token 1 depends on input token 3: layer 2's weight[1, {late}] = 0.5" in str(caught.value)
    assert f"layer 1's weight[{late}, " in str(caught.value)
    ah.convert(target, on=(0, 1), within=1e-3)


ONE, DEEP, TOKENS = mlp((4, 5, 2)), mlp((4, 5, 5, 2)), mlp((4, 5, 2), 2)
REFUSED = {
    "form": (ONE, {"form": "three-layer"}, "'two-layer', 'attention-softmax', 'deep'"),
    "layout": (ONE, {"layout": "image"}, "'transformer', 'sequence'"),
    "placement": (ONE, {"placement": "random"}, "'solved', 'uniform'"),
    "two-layer of a deep network": (DEEP, {"form": "two-layer"}, "has 2: use form='deep'"),
    "attention-softmax of a deep network": (DEEP, {"form": "attention-softmax"}, "has 2: use form='deep'"),
    "causal sequence": (TOKENS, {"causal": True, "layout": "sequence"}, "use layout='transformer'"),
    "causal without tokens": (ONE, {"causal": True}, "tokens="),
    "tokens of the inputs": (mlp((5, 5, 2)), {"tokens": 2}, "5 inputs do not divide into tokens=2"),
    "tokens of the outputs": (mlp((4, 5, 3)), {"tokens": 2}, "3 outputs do not divide into tokens=2"),
    "tokens": (ONE, {"tokens": 0}, "at least 1"),
    "box": (ONE, {"on": ([0, 0, 0], [1, 1, 1])}, "box has ends of shape"),
    "too small": (ONE, {"within": 1e-15}, r"out of reach.*best bound found is \d.*rounding.*larger within"),
    "too small for float32": (ONE, {"within": 5e-7, "dtype": "float32"}, "out of reach.*best bound.*dtype='float64'"),
    "too small for its dtype": (ONE, {"within": 1e-16}, "less than float64 can tell apart.*larger error"),
    "too many uniform anchors": (ONE, {"within": 1e-7, "placement": "uniform"}, "uniform anchors.*placement='solved'"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_makes_no_sense_is_refused_with_what_does(name):
    target, options, message = REFUSED[name]
    with pytest.raises(ah.AnchorheadError, match=message):
        ah.convert(target, **{"on": (0, 1), "within": 1e-3, **options})


def test_what_is_out_of_reach_can_be_had_at_the_bound_that_the_message_says():
    with pytest.raises(ah.AnchorheadError, match="best bound found is") as caught:
        ah.convert(ONE, on=(0, 1), within=1e-15)
    reachable = float(str(caught.value).split("best bound found is ")[1].split()[0])
    assert ah.convert(ONE, on=(0, 1), within=1.01 * reachable).certificate.bound <= 1.01 * reachable


def test_a_box_on_which_a_converted_network_would_overflow_is_refused():
    network = ah.convert(mlp((3, 4, 2)), on=(-1e30, 1e30), within=1e27, dtype="float32")
    wider = dataclasses.replace(network.certificate, on=Box.of((-1e38, 1e38)), bound=1e45, terms=())
    with pytest.raises(ah.CertificateError):
        ah.check(network.with_(certificate=wider))


def test_a_network_that_would_not_fit_into_memory_is_refused_before_it_is_made():
    wide = Mlp((Hidden.of(np.ones((1, 100_000)), np.zeros(1), RELU),), Affine(np.ones((1, 1)), np.zeros(1)))
    with pytest.raises(ah.AnchorheadError, match=r"network of 50,.* numbers .* at most 100,000,000 are built"):
        ah.convert(wide, on=(0, 1), within=1.0)
