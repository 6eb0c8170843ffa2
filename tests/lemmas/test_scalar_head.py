"""Parts of a neuron that ask with sums of their own: what that may add is part of the bound."""

from __future__ import annotations

import numpy as np
import pytest
import torch

import anchorhead as ah
from anchorhead.heads.atom import Part
from anchorhead.language.expressions.parser import parse
from anchorhead.language.targets.mlp import Affine
from anchorhead.lemmas.scalar_head import query_of
from anchorhead.network import Attention
from anchorhead.proof.arithmetic.affine_forms import Forms, Sources
from anchorhead.proof.arithmetic.arithmetic import arithmetic_of
from anchorhead.proof.arithmetic.readings import Readings, of_attention
from anchorhead.proof.heads.activation_head import ActivationHead
from anchorhead.proof.heads.neurons import Layer


def shape() -> ActivationHead:
    """Two softmaxes of one number, one of them much steeper."""
    parts = [
        Part.of(np.array([0.0, a]), np.zeros(2), np.array([[0.0], [v]]), "float64")
        for a, v in ((3.0, 2.0), (40.0, 0.5))
    ]
    return ActivationHead(parse("tanh(x)", ("x",)), -1.0, 1.0, tuple(parts), 0.0, 0.0, out_scale=0.5)


def read(part: Part, t: np.ndarray) -> np.ndarray:
    z = part.slopes * t[:, None] + part.offsets
    weights = np.exp(z - z.max(axis=1, keepdims=True))
    return (weights @ part.values[:, 0]) / weights.sum(axis=1)


@pytest.mark.parametrize("apart", [1e-6, 1e-2, 0.5])
def test_parts_that_are_asked_apart_move_no_more_than_that(apart: float) -> None:
    head = shape()
    t = np.linspace(-1 + apart, 1 - apart, 20_001)
    each = [np.abs(read(part, t + apart) - read(part, t)).max() for part in head.parts]
    (found,) = head.moved(np.array([apart]))
    assert found >= head.out_scale * min(each)
    assert found <= 1.1 * head.out_scale * min(each) + head.out_scale * 0.5
    assert not head.moved(np.zeros(1)).any()


def readings(query: np.ndarray, rows: np.ndarray) -> Readings:
    """Of one token with features rows x, x in a box, of heads with such queries."""
    sources = Sources(-np.ones(rows.shape[1]), np.ones(rows.shape[1]))
    off = np.full((1, len(rows)), 1e-9)
    asking = Forms(rows[None], np.zeros((1, len(rows))), off, off)
    registers = Forms.constants(np.eye(2, len(rows)))
    key = np.ones((len(query), 1, len(rows)))
    layer = Attention(query[:, None], key, key, np.ones((len(query), 1, 1)), mask="registers+states")
    nobody = asking.tokens(slice(0))
    return of_attention(layer, asking, (nobody, registers), sources, arithmetic_of("float32"))


def test_equal_rows_are_one_sum_and_round_apart() -> None:
    row = np.array([0.3, 0.7])
    found = readings(np.stack([row, row, 2 * row]), np.eye(2))
    assert found.sums[0] == found.sums[1] != found.sums[2]
    assert (found.apart[:2] >= 2.0**-24 * np.abs(row).sum()).all()
    assert (found.apart[:2] <= 3 * 2.0**-24 * np.abs(row).sum()).all()  # and not what the features are off by
    picked = readings(np.array([[1.0, 0.0], [1.0, 0.0]]), np.eye(2))
    assert picked.sums[0] == picked.sums[1]
    assert not picked.apart.any()


def test_parts_share_a_number_or_are_apart_by_what_is_not_shared() -> None:
    """Equal rows of the same features, and heads that pick features of the same form: those are off each in its way."""
    head, row = shape(), np.array([[0.3, 0.7]])
    neuron = Layer(Affine(row, np.zeros(1)), (head.activation,), np.zeros(1, int), shapes=(head,))
    shared, picked = (query_of(readings(*given), neuron)[1][0] for given in (
        (np.concatenate([row, row]), np.eye(2)), (np.eye(2), np.concatenate([row, row]))))  # fmt: skip
    assert 2 * 2.0**-24 <= shared <= 6 * 2.0**-24
    assert 2 * 2e-9 <= picked <= 2.1 * 2e-9


@pytest.mark.parametrize("layout", ["transformer", "sequence"])
def test_bounds_of_two_parts_allow_for_it(layout: str) -> None:
    torch.manual_seed(1)
    model = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.Hardswish(), torch.nn.Linear(4, 2)).eval()
    net = ah.convert(model, (-1, 1), 1e-4, dtype="float32", layout=layout)
    assert ah.check(net).verified
