"""Shares of an error add up to it, and what outputs feel of a head is never less than what they do."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest

from anchorhead.constructions.passes.budget import FAR_FINER, FINER, Budget, after_proof, felt_by_outputs
from anchorhead.constructions.passes.estimate import anchors_for, anchors_for_a_digit
from anchorhead.constructions.passes.run import Tries
from anchorhead.constructions.single.activation_heads import ActivationHeads
from anchorhead.domain import Box
from anchorhead.errors import NotDefined
from anchorhead.language.expressions.parser import parse
from anchorhead.language.targets.mlp import Affine, Hidden, Mlp
from anchorhead.lemmas.output import OutputBound
from anchorhead.proof.arithmetic.affine_forms import Sources
from anchorhead.proof.heads.activation_head import ActivationHead
from anchorhead.proof.heads.neurons import Layer

FAR = 100.0
SEEDS = pytest.mark.parametrize("seed", range(20))


def random_layers(rng, groups=3):
    """Layers of neurons size * sin(frequency * w . before), whose slopes are known for all arguments."""
    widths = rng.integers(1, 6, rng.integers(2, 5))
    layers = []
    for before, neurons in pairwise(widths):
        weight = rng.normal(size=(neurons, before)) * (rng.random((neurons, before)) < 0.8)
        both = zip(2.0 ** rng.integers(-3, 4, groups), 2.0 ** rng.integers(-2, 3, groups), strict=True)
        functions = tuple(parse(f"{size}*sin({frequency}*x)") for size, frequency in both)
        shapes = tuple(ActivationHead(one, -FAR, FAR, (), 0.0, 0.0) for one in functions)
        which = rng.integers(0, groups, neurons)
        layers.append(Layer(Affine(weight, np.zeros(neurons)), functions, which, shapes=shapes))
    outputs = rng.integers(1, 4)
    return layers, Affine(rng.normal(size=(outputs, widths[-1])), np.zeros(outputs))


def run(layers, readout, x, errors=None, rng=None):
    """The network, each neuron off by up to the error of its head."""
    a = x
    for number, layer in enumerate(layers):
        z = a @ layer.affine.weight.T
        a = np.stack([layer.activations[k].values({"x": z[:, r]}) for r, k in enumerate(layer.which)], axis=1)
        if errors is not None:
            a = a + errors[number][layer.which] * rng.choice([-1.0, 1.0], a.shape)
    return a @ readout.weight.T


@SEEDS
def test_outputs_err_by_no_more_than_is_shared_out(seed):
    rng = np.random.default_rng(seed)
    layers, readout = random_layers(rng)
    inputs = layers[0].affine.inputs
    felt = felt_by_outputs(layers, readout, Sources(np.full(inputs, -FAR), np.full(inputs, FAR)))
    within = float(10.0 ** rng.uniform(-6, 0))
    budget = Budget(felt, [rng.uniform(0.5, 3, one.shape[1]) for one in felt], np.full(readout.outputs, within))
    errors = [np.zeros(one.shape[1]) for one in felt]
    order = [(number, group) for number, one in enumerate(felt) for group in range(one.shape[1])]
    for place, (number, group) in enumerate(rng.permutation(order).tolist()):
        share = budget.share(number, group)
        errors[number][group] = share * (rng.uniform(0, 1) if place % 2 else 1.0)  # some take less than their share
        (budget.settle if place % 3 == 0 else budget.spend)(number, group, errors[number][group])
    total = sum(one @ error for one, error in zip(felt, errors, strict=True))
    assert (total <= within * (1 + 1e-12)).all()
    x = rng.normal(size=(2_000, inputs)).clip(-FAR, FAR)
    off = np.abs(run(layers, readout, x, errors, rng) - run(layers, readout, x))
    assert (off <= total * (1 + 1e-9) + 1e-12).all()


def test_all_of_the_error_is_shared_and_what_is_left_goes_to_the_others():
    felt = [np.array([[1.0, 4.0]]), np.array([[2.0]])]
    growth = [np.ones(2), np.full(1, 2.0)]
    budget = Budget(felt, growth, np.ones(1))
    assert np.isclose(budget.share(0, 0), 1 / 4)
    assert np.isclose(budget.share(0, 1), 1 / 16)
    assert np.isclose(budget.share(1, 0), 1 / 4)
    budget.spend(0, 0, 0.0)
    assert np.isclose(budget.share(0, 1), 1 / 12)
    budget.settle(0, 1, 1 / 100)
    assert np.isclose(budget.share(0, 1), 1 / 12)  # as it was
    assert np.isclose(budget.share(1, 0), (1 - 4 / 100) / 2)


def test_outputs_that_feel_different_heads_do_not_share_and_have_errors_of_their_own():
    budget = Budget([np.array([[1.0, 0.0], [0.0, 8.0]])], [np.ones(2)], np.array([1.0, 0.5]))
    assert budget.share(0, 0) == 1.0
    assert budget.share(0, 1) == 0.5 / 8


def test_what_a_proof_leaves_is_what_heads_may_err_by_next():
    left = after_proof(np.array([1.1, 1.7, 2.8, np.inf]), np.full(4, 0.8), 1.0)
    assert np.allclose(left, [0.7, FINER * 0.8, FINER * 0.8, FAR_FINER * 0.8])


class Narrow(ActivationHeads):
    """Heads whose larger errors would carry neurons to where they are not defined."""

    def choose(self, activation, low, high, error):
        if error > 1e-5:
            raise NotDefined("not there")
        return super().choose(activation, low, high, error)


def proven_with(rest, within=1e-3, heads=ActivationHeads):
    """The best try of a network of two layers whose proof finds this rest beside heads' errors; what all spent."""
    rng = np.random.default_rng(1)
    maps = [Affine(rng.normal(size=(b, a)), rng.normal(size=b)) for a, b in ((3, 4), (4, 4), (4, 2))]
    hidden = tuple(Hidden(one, (parse("gelu(x)"), parse("silu(x)")), np.arange(4) % 2) for one in maps[:-1])
    tries = Tries(Mlp(hidden, maps[-1]), Box.of((-1, 1)), within, heads("float64"))
    spent = []

    def prove(laid):
        felt = felt_by_outputs(laid.layers, laid.readout, tries.sources)
        errors = [np.array([shape.error for shape in layer.shapes]) for layer in laid.layers]
        spent.append(sum(one @ error for one, error in zip(felt, errors, strict=True)))
        return None, OutputBound(spent[-1], np.full(2, rest(len(spent)) * within))

    return tries.best(prove), [one.max() / within for one in spent]


def test_tries_end_at_the_first_that_is_within_the_error():
    best, spent = proven_with(lambda number: 0.0)
    assert len(spent) == 1
    assert best.bound.total <= 1e-3
    best, spent = proven_with(lambda number: 0.9)
    assert len(spent) > 1
    assert best.bound.total <= 1e-3
    assert spent[-1] <= 0.1
    assert all(two < one for one, two in pairwise(spent))


def test_finer_heads_are_tried_where_coarser_ones_are_not_defined():
    best, spent = proven_with(lambda number: 0.0, heads=Narrow)
    assert len(spent) == 1
    assert 0 < best.bound.total < 1e-4


def test_tries_end_where_what_heads_cannot_help_stays():
    best, spent = proven_with(lambda number: 3.0)
    assert len(spent) == 2
    assert best.bound.total > 3e-3
    best, spent = proven_with(lambda number: 8.0 / 4.0**number)  # as finer heads round by less
    assert len(spent) in (2, 3)
    assert best.bound.total <= 1e-3


@pytest.mark.parametrize(
    ("text", "on", "errors", "anchors"),
    [
        ("log(x)", (1, 500), (1e-3, 1e-7), (7, 14)),
        ("log(x)", (1, 64), (1e-5, 1e-9), (8, 13)),
        ("log(x)", (1, 2), (1e-5, 1e-9), (4, 5)),
        ("sin(x)", (-np.pi, np.pi), (1e-4, 5e-8), (5, 6)),
        ("gelu(x)", (-10, 10), (1e-4, 1e-6), (6, 8)),
    ],
)
def test_sizes_of_heads_are_guessed_to_a_few_anchors(text, on, errors, anchors):
    function = parse(text)
    guessed = [anchors_for(function, *map(float, on), error) for error in errors]
    assert np.abs(np.subtract(guessed, anchors)).max() <= 3
    assert anchors_for_a_digit(function, *map(float, on)) > 0
