"""Every form of an expression is the same function on its box, and quantities stay between their ends."""

from __future__ import annotations

import random

import numpy as np
import pytest
from flint import arb

import anchorhead as ah
from anchorhead.constructions.passes.forms.lowering import Lowering
from anchorhead.constructions.passes.forms.quantities import Combination, Quantities
from anchorhead.constructions.passes.forms.roots import ASINH
from anchorhead.constructions.passes.simplify import lowered
from anchorhead.language.expressions.parser import parse
from anchorhead.language.expressions.precision import precision
from anchorhead.language.expressions.simplify import simplified

NAMES = ("a", "b", "c", "d", "f")
FORMS = pytest.mark.parametrize("logarithms", [False, True], ids=["squares", "logarithms"])


def written(text, on, logarithms):
    with precision(256):
        quantities = Quantities(tuple(on), *zip(*on.values(), strict=True))
        output = Lowering(quantities, logarithms).plain(simplified(parse(text, tuple(on))))
        return quantities, output, quantities.range(output)


def value(quantities: Quantities, of: Combination, x):
    """The program at a point, in balls."""
    known = [arb(one) for one in x]

    def combined(one: Combination):
        return one.constant + sum((c * known[i] for i, c in one.coefficients.items()), arb(0))

    for step in quantities.steps:
        known.append(step.function.ball({"x": combined(step.of)}))
    return combined(of)


def grown(rng: random.Random, depth: int) -> str:
    """An expression at random."""
    if depth == 0 or rng.random() < 0.15:
        return rng.choice(NAMES) if rng.random() < 0.8 else rng.choice(["2", "0.5", "-3", "pi", "1/3"])
    one, two, three = (grown(rng, depth - 1) for _ in range(3))
    kinds = {
        f"({one} {rng.choice('+-')} {two})": 5,
        f"({one}*{two})": 5,
        f"({one}/{two})": 4,
        f"({one})**{rng.choice(['2', '3', '-1', '-2', '0.5', '1.7'])}": 3,
        f"(sqrt(({one})**2 + {two}) {rng.choice('+-')} {one})": 1,
        f"max({one}, {two}, {three})": 1,
        f"{rng.choice(['exp', 'log', 'sqrt', 'sin', 'square', 'reciprocal', 'abs'])}({one})": 5,
    }
    return rng.choices(list(kinds), list(kinds.values()))[0]


@FORMS
def test_random_expressions_are_what_they_were(logarithms):
    rng, compared = random.Random(5), 0
    while compared < 120:
        low = [rng.choice([0.1, 1, -1, 50, 1e-3, 0.5]) for _ in NAMES]
        on = {name: (a, a + abs(a) * rng.choice([0.1, 1, 3, 100])) for name, a in zip(NAMES, low, strict=True)}
        text = grown(rng, rng.choice([2, 3]))
        try:
            quantities, output, (least, most) = written(text, on, logarithms)
        except ah.AnchorheadError:
            continue
        x = [rng.choice([a, b, rng.uniform(a, b)]) for a, b in on.values()]
        with precision(300):
            exact = parse(text, NAMES).ball(dict(zip(NAMES, map(arb, x), strict=True)))
            if exact.is_finite():
                off = abs(value(quantities, output, x) - exact)
                assert off <= abs(exact) * 1e-30 + 1e-40, text
                assert arb(least) <= exact <= arb(most), text
                compared += 1


@pytest.mark.parametrize(
    ("text", "on", "functions"),
    [
        ("x*y/z", {"x": (1, 2), "y": (1, 9), "z": (5, 6)}, ["log(x)"] * 3 + ["exp(x)"]),
        ("x*y*z/(z*y)", {"x": (1, 2), "y": (3, 4), "z": (-6, -5)}, ["log(x)", "exp(x)"]),  # what cancels is gone
        ("log(x/y)", {"x": (1, 2), "y": (3, 4)}, ["log(x)"] * 2),
        ("x*y/(x*y + z)", {"x": (1, 2), "y": (3, 4), "z": (5, 6)}, ["log(x)"] * 3 + ["softplus(x)", "exp(x)"]),
        ("exp(x*y + z)*exp(-z)*w", dict.fromkeys("xyzw", (1, 2)), ["log(x)"] * 3 + ["exp(x)"] * 2),
    ],
)
def test_logarithms_cancel_and_are_shared(text, on, functions):
    quantities, output, _ = written(text, on, True)
    used, waiting = set(), set(output.coefficients)
    while waiting:
        place = waiting.pop()
        if place >= len(on) and place not in used:
            used.add(place)
            waiting |= set(quantities.steps[place - len(on)].of.coefficients)
    assert sorted(str(quantities.steps[place - len(on)].function) for place in used) == sorted(functions)


def test_a_root_that_cancels_keeps_its_sign_and_its_digits():
    on = {"a": (-3, 90), "b": (1, 2), "c": (1, 2)}
    assert 0 < written("sqrt(a**2 + b*c) - a", on, True)[2][0] < 1 / (2 * 90)
    with pytest.raises(ah.AnchorheadError):  # without it nothing is known of the sign
        written("log(sqrt(a**2 + b*c) - a)", on, False)
    x = np.array([-500.0, -1.0, 0.0, 1e-8, 2.0, 300.0])
    assert np.allclose(ASINH.values({"x": x}), np.arcsinh(x), rtol=1e-12, atol=1e-16)


def test_networks_of_all_forms_are_the_function():
    text = "x*(y - 2)/(z + w*x*x) + sin(x*z)*y"
    names, ends = ("x", "y", "z", "w"), ((1.0, -1.0, 2.0, 0.5), (3.0, 5.0, 80.0, 1.0))
    found = lowered([[parse(text, names)]], names, ends)
    assert len(found) == 2
    x = np.random.default_rng(0).uniform(*ends, (500, 4))
    exact = parse(text, names).values(dict(zip(names, x.T, strict=True)))
    for target in found:
        assert np.abs(target.values(x)[:, 0] - exact).max() < 1e-10


def test_what_has_no_value_somewhere_is_refused_with_its_place():
    with pytest.raises(ah.AnchorheadError, match=r"a part of the function, reciprocal\(x\), is needed for x in \[-1"):
        lowered([[parse("a*b/(c - d)", NAMES)]], NAMES, ((0.0,) * 5, (1.0,) * 5))


def test_more_neurons_than_can_be_built_are_refused(monkeypatch):
    monkeypatch.setattr("anchorhead.constructions.passes.forms.layers.MAX_NEURONS", 10)
    ends = (0.0,) * 5, (1.0,) * 5
    assert lowered([[parse("exp(a*b)*c", NAMES)]], NAMES, ends)
    with pytest.raises(ah.AnchorheadError, match="takes more than 10 neurons"):
        lowered([[parse("exp(a*b)*c + exp(c*d)*a + exp(d*f)*b", NAMES)]], NAMES, ends)
