"""Whatever is given as a number, a box, a word or a tensor is taken for what it is, or refused in words."""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest
import torch
from torch import nn

import anchorhead as ah
from anchorhead import given
from anchorhead.errors import AnchorheadError
from anchorhead.incontext import gradient_descent, many_learners

ODD = {
    "beyond floats": 10**400,
    "below floats": -(10**400),
    "fraction beyond floats": Fraction(10**400, 3),
    "wide": np.longdouble("1e400"),
    "nan": float("nan"),
    "signalling": Decimal("sNaN"),
    "text": "1",
    "bytes": b"1",
    "complex": 1j,
    "date": np.datetime64("2020-01-01"),
    "list": [1],
    "one entry": np.array([0.5]),
    "object": object(),
    "dict": {},
    "function": lambda: 1,
    "meta": torch.empty((), device="meta"),
    "sparse": torch.eye(2).to_sparse(),
}
SINE = ah.head("sin", (-1, 1), 1e-2)
MLP = nn.Sequential(nn.Linear(2, 2), nn.ReLU(), nn.Linear(2, 1))
PLACES = {
    "head, within": lambda odd: ah.head("sin", (-1, 1), within=odd),
    "head, on": lambda odd: ah.head("sin", (odd, 1), within=1e-2),
    "head, on as a whole": lambda odd: ah.head("sin", odd, within=1e-2),
    "head, anchors": lambda odd: ah.head("sin", (-1, 1), anchors=odd),
    "head, max_value": lambda odd: ah.head("sin", (-1, 1), 1e-2, max_value=odd),
    "head, lipschitz": lambda odd: ah.head(np.sin, (-1, 1), 1e-1, lipschitz=odd),
    "head, placement": lambda odd: ah.head("sin", (-1, 1), 1e-2, placement=odd),
    "head, dtype": lambda odd: ah.head("sin", (-1, 1), 1e-2, dtype=odd),
    "approximate, within": lambda odd: ah.approximate("x + y", {"x": (0, 1), "y": (0, 1)}, odd),
    "approximate, an end": lambda odd: ah.approximate("x + y", {"x": (0, odd), "y": (0, 1)}, 1e-2),
    "approximate, layout": lambda odd: ah.approximate("x + y", {"x": (0, 1), "y": (0, 1)}, 1e-2, layout=odd),
    "approximate, features": lambda odd: ah.approximate([["x[0,0]"]], (0, 1), 1e-2, tokens=1, features=odd),
    "approximate, lipschitz": lambda odd: ah.approximate(_sum, {"x": (0, 1), "y": (0, 1)}, 1e-1, lipschitz=odd),
    "convert, within": lambda odd: ah.convert(MLP, (0, 1), odd),
    "convert, an end": lambda odd: ah.convert(MLP, ([0, odd], 2), 1e-2),
    "convert, form": lambda odd: ah.convert(MLP, (0, 1), 1e-2, form=odd),
    "convert, tokens": lambda odd: ah.convert(MLP, (0, 1), 1e-2, tokens=odd),
    "plan, within": lambda odd: ah.plan(MLP, (0, 1), [odd]),
    "truncated linear, w": lambda odd: ah.truncated_linear(odd, [1.0], 0, 1),
    "truncated linear, low": lambda odd: ah.truncated_linear([[1.0]], [0.0], odd, 1, anchors=4),
    "Box": lambda odd: ah.Box.of((odd, odd)),
    "export, to": lambda odd: ah.export(SINE, to=odd),
    "descent, rate": lambda odd: gradient_descent(steps=1, rate=odd, features=1),
    "many learners, reach": lambda odd: many_learners(steps=1, features=1, reach=odd),
}
MAY_BE = {
    ("Box", "list"),  # an array of one end
    ("Box", "one entry"),
    ("convert, an end", "one entry"),
    ("approximate, an end", "list"),
    ("approximate, an end", "one entry"),
}


def _sum(x):
    return x.sum(axis=1)


@pytest.mark.parametrize("place", PLACES)
def test_what_is_no_number_here_is_refused_in_words(place):
    for name, odd in ODD.items():
        if (place, name) in MAY_BE:
            continue
        with pytest.raises(AnchorheadError) as caught:
            PLACES[place](odd)
        assert len(str(caught.value)) < 1000, name


@pytest.mark.parametrize("half", [Fraction(1, 2), Decimal("0.5"), np.float32(0.5), np.array(0.5), torch.tensor(0.5)])
def test_whatever_has_a_value_is_a_number(half):
    assert given.checked_within(half) == 0.5
    assert given.number(half) == 0.5
    box = ah.Box.of(([-half, 0], half))
    assert box == ah.Box.of(([-0.5, 0], 0.5))
    assert ah.head("sin", (-half, half), within=half).on == (-0.5, 0.5)


def test_an_int_of_too_many_digits_has_no_repr_and_is_refused_all_the_same():
    for refused in (given.checked_within, lambda odd: ah.Box.of((0, odd)), lambda odd: given.checked_count("n", odd)):
        with pytest.raises(AnchorheadError):
            refused(10**5000)


def test_a_shape_that_is_not_two_ends_is_no_box():
    for on in (3, (1,), (0, 1, 2), "01", None, ([0, 1], [1, 2, 3]), ([[0], [0, 1]], 1), {}):
        with pytest.raises(AnchorheadError, match="is not a box"):
            ah.Box.of(on)


X = torch.rand(3, 2)
TENSORS = {
    "sparse": lambda: X.to_sparse(),
    "csr": lambda: X.to_sparse_csr(),
    "meta": lambda: torch.empty(3, 2, device="meta"),
    "quantized": lambda: torch.quantize_per_tensor(X, 0.1, 0, torch.qint8),
    "nested": lambda: torch.nested.nested_tensor([X[0], X[1]]),
}


@pytest.mark.filterwarnings("ignore::UserWarning", "ignore::DeprecationWarning")
@pytest.mark.parametrize("name", TENSORS)
def test_tensors_that_hold_no_number_in_every_place_are_refused(name):
    net = ah.convert(MLP, (0, 1), 1e-2)
    learner, tensor = gradient_descent(steps=1, rate=0.1, features=1), TENSORS[name]()
    for call in (net, net.attention, SINE, learner, learner.exact):
        with pytest.raises(AnchorheadError, match=r"quantized|stored as|meta device|nested"):
            call(tensor)


def test_ragged_lists_are_no_input():
    for ragged in ([[1], [1, 2]], [[10**400, 1]], object(), "1"):
        with pytest.raises(AnchorheadError):
            SINE(ragged)


def test_callables_of_too_many_outputs_are_refused_before_any_work():
    with pytest.raises(AnchorheadError, match="100,000 outputs: at most 1,000"):
        ah.approximate(lambda x: np.repeat(x[:, :1], 100_000, 1), {"x": (0, 1), "y": (0, 1)}, 1e-1)
    with pytest.raises(AnchorheadError, match="100,000 outputs: a head has at most 200"):
        ah.head(lambda x: np.repeat(x[:, None], 100_000, 1), (0, 1), 1e-1)
