"""Programs are composed and compiled: one proof for the whole."""

from __future__ import annotations

from dataclasses import fields, is_dataclass
from itertools import pairwise

import numpy as np
import pytest
import torch

import anchorhead as ah
from anchorhead.language.entries import same
from anchorhead.language.program import Writer
from anchorhead.language.targets.kernel_smoother import KernelSmoother
from tests.networks import names, network, row_of

RNG = np.random.default_rng(0)
BOX = {"x": (-1, 1), "y": (-1, 1)}


def sequential(*sizes, activation=torch.nn.ReLU):
    torch.manual_seed(0)
    layers = [part for a, b in pairwise(sizes) for part in (torch.nn.Linear(a, b), activation())]
    return torch.nn.Sequential(*layers[:-1])


def identical(one, two):
    """Whether two layers hold the same numbers and names."""
    if is_dataclass(one):
        return type(one) is type(two) and all(
            identical(getattr(one, field.name), getattr(two, field.name)) for field in fields(one)
        )
    if isinstance(one, tuple):
        return len(one) == len(two) and all(map(identical, one, two))
    return np.array_equal(one, two) if isinstance(one, np.ndarray) else one == two


def within_its_bound(net, program, x):
    assert net.certificate.kind == "proven"
    assert np.abs(net(x) - program(x)).max() <= net.certificate.bound


def test_a_function_of_a_function_is_proven_as_one():
    both = ah.program("exp(s)", on={"s": (-1, 1)}) @ ah.program("x*y", on=BOX)
    net = ah.compile(both, within=1e-6)
    assert net.certificate.bound <= 1e-6
    within_its_bound(net, both, RNG.uniform(-1, 1, (500, 2)))
    assert ah.check(net).stated == net.certificate.bound


def test_networks_after_networks_and_functions_of_networks():
    first = ah.program(sequential(3, 8, 2), on=(0, 1))
    x = RNG.uniform(0, 1, (300, 3))
    second = ah.program(sequential(2, 4, 1, activation=torch.nn.Tanh), on=(-3, 3))
    for after in (second, ah.program("tanh(a)*b + a", on={"a": (-3, 3), "b": (-3, 3)})):
        both = after @ first
        assert np.abs(both(x) - after(first(x))).max() < 1e-15
        net = ah.compile(both, within=1e-3, layout="transformer")
        within_its_bound(net, both, x)


@pytest.mark.parametrize(
    ("text", "on", "sizes", "options"),
    [
        ("a*b", 3.0, (2, 16, 16, 2), {"layout": "sequence"}),
        ("a*b + exp(a)", 7.0, (10, 64, 2), {}),
        ("sigmoid(a)", 30.0, (784, 32, 1), {}),
        ("a*b", 3.0, (2, 16, 16, 2), {"dtype": "float32", "within": 1e-2}),
    ],
)
def test_formulas_of_networks_of_any_size_are_proven_as_one_and_verified(text, on, sizes, options):
    outer = ah.program(text, on=dict.fromkeys("ab"[: sizes[-1]], (-on, on)))
    both = outer @ ah.program(sequential(*sizes).double(), on=(-1, 1))
    net = ah.compile(both, **{"within": 1e-4, **options})
    within_its_bound(net, both, RNG.uniform(-1, 1, (300, sizes[0])).astype(net.dtype))
    assert ah.check(net).stated == net.certificate.bound


def test_a_network_of_a_formula_of_a_network():
    first = ah.program(["x*y", "sin(x)"], on=BOX)
    middle = ah.program(sequential(2, 16, 16, 2).double(), on=(-1, 1))
    last = ah.program("exp(p*q)", on={"p": (-3, 3), "q": (-3, 3)})
    both = last @ middle @ first
    net = ah.compile(both, within=1e-3)
    within_its_bound(net, both, RNG.uniform(-1, 1, (300, 2)))
    assert ah.check(net).stated == net.certificate.bound


def test_a_map_across_tokens_may_have_one_bias_for_all():
    writer = Writer()
    x = writer.input(["a", "b"], np.full((3, 2), -1.0), np.ones((3, 2)), tokens=3)
    weight = np.einsum("ik,jl->ijkl", np.tril(np.ones((3, 3))), np.eye(2))
    program = writer.program(writer.affine({x: weight}, np.array([[0.5, -0.25]])))
    net = ah.compile(program, within=1e-3)
    within_its_bound(net, program, RNG.uniform(-1, 1, (50, 3, 2)))


def test_programs_are_called_with_numbers_by_name_and_say_what_they_take():
    program = ah.program("x - 2*y", on=BOX)
    assert program(x=0.5, y=[0.25, 1.0]).tolist() == [[0.0], [-1.5]]
    for given, message in (((0.5,), "needed is"), (("abc",), "not an array of numbers"), ((1.0, 2.0), "2 inputs")):
        with pytest.raises(ah.AnchorheadError, match=message):
            program(*given)
    for named in ({"x": 1.0}, {"x": 1.0, "z": 1.0}, {"x": np.zeros(2), "y": np.zeros(3)}):
        with pytest.raises(ah.AnchorheadError, match=r"x, y, each by name|do not fit"):
            program(**named)


def test_what_approximate_and_convert_build_compile_builds():
    texts = "sin(x)*cos(y)"
    for within in (1e-3, 1e-6):
        one, two = ah.compile(ah.program(texts, on=BOX), within), ah.approximate(texts, on=BOX, within=within)
        assert one.certificate == two.certificate
    model = sequential(3, 8, 2).double()
    one, two = ah.compile(ah.program(model, on=(0, 1)), 1e-4), ah.convert(model, on=(0, 1), within=1e-4)
    assert (one.certificate.bound, one.parameters) == (two.certificate.bound, two.parameters)


def test_files_hold_the_program(tmp_path):
    net = ah.compile(ah.program("x*y + x", on=BOX), within=1e-4)
    net.save(tmp_path / "net.safetensors")
    x = RNG.uniform(-1, 1, (5, 2))
    assert np.array_equal(ah.load(tmp_path / "net.safetensors").program(x), net.program(x))


def test_what_does_not_fit_is_refused():
    inner, outer = ah.program("x*y", on=BOX), ah.program("exp(s)", on={"s": (-0.5, 0.5)})
    with pytest.raises(ah.AnchorheadError, match=r"s of the second program is in \[-0.5, 0.5\]"):
        outer @ inner
    with pytest.raises(ah.AnchorheadError, match="shapes must be the same"):
        inner @ inner
    with pytest.raises(ah.AnchorheadError, match="no program"):
        ah.compile("x*y", within=1e-3)
    with pytest.raises(ah.AnchorheadError, match="within is missing"):
        ah.compile(inner)
    with pytest.raises(ah.AnchorheadError, match="on is missing"):
        ah.program(sequential(2, 3, 1))
    for other in (3, "x*y", ah.head("sin(x)", on=(-1, 1), within=0.1)):
        with pytest.raises(ah.AnchorheadError, match="g @ f composes programs"):
            inner @ other


def test_networks_are_composed_as_programs():
    f, g = (ah.approximate(text, on={"x": (-1, 1)}, within=0.1) for text in ("sin(x)", "exp(x)"))
    with pytest.raises(ah.AnchorheadError, match=r"ah.compile\(ah.program\(g\) @ ah.program\(f\)"):
        g @ f
    assert ah.compile(ah.program(g) @ ah.program(f), within=0.1).certificate.kind == "proven"


def test_a_program_shows_its_steps():
    lines = str(ah.program("exp(x) + y", on={"x": (0, 1), "y": (-1, 1)})).splitlines()
    assert [line.split()[0] for line in lines] == ["input", "x", "y", "q3"]
    assert lines[-1].endswith("exp(x) + y at x, y -> out")
    assert "[0, 3.718]" in lines[-1]


class TestHeadsOfOnesOwnNumbers:
    def test_are_proven_for_what_they_are(self):
        shipped = ah.head("gelu", on=(-4, 4), within=1e-4)
        part = shipped.parts[0]
        words = {"bias": shipped.atom.bias, "origin": shipped.atom.origin}
        same = ah.Head.of(part.slopes, part.offsets, part.values, **words).certify("gelu", on=(-4, 4))
        assert same.certificate.bound == shipped.certificate.bound
        moved = np.array(part.values)
        moved[2] *= 1.01
        worse = ah.Head.of(part.slopes, part.offsets, moved, **words).certify("gelu", on=(-4, 4))
        x = np.linspace(-4, 4, 2001)
        error = np.abs(worse(x) - worse.target.values(x)[:, 0]).max()
        assert shipped.certificate.bound < error <= worse.certificate.bound <= 1.05 * error
        assert ah.check(worse).stated == worse.certificate.bound

    def test_compute_before_anything_is_claimed_and_refuse_what_does_not_fit(self):
        own = ah.Head.of([-1.0, 1.0], [0.0, 0.0], [-1.0, 1.0])
        assert own(0.5) == pytest.approx(np.tanh(0.5), abs=1e-15)
        assert own.anchors == 2
        with pytest.raises(ah.AnchorheadError, match="2 functions for a head of 1 output"):
            own.certify(["sin", "cos"], on=(0, 1))
        with pytest.raises(ah.AnchorheadError, match="give slopes, offsets and values"):
            ah.Head.of([1.0, 2.0])
        with pytest.raises(ah.AnchorheadError, match=r"\(p,\)"):
            ah.Head.of([1.0, 2.0], [0.0], [1.0, 2.0])


def test_the_program_of_a_network_is_what_it_approximates():
    net = ah.approximate("x*y", on=BOX, within=1e-3)
    assert ah.program(net) is net.program
    learner = ah.incontext.gradient_descent(steps=2, rate=0.1, features=1)
    assert "x 2" in str(ah.program(learner))
    with pytest.raises(ah.AnchorheadError, match=r"on=\(0, 1\) with a network"):
        ah.program(net, on=(0, 1))
    with pytest.raises(ah.AnchorheadError, match="it has no program"):
        ah.program(ah.Network([ah.network.Embed(np.eye(1), np.zeros(1))]))


def test_an_error_that_a_learner_does_not_reach_comes_with_the_learner():
    program = ah.program(ah.incontext.gradient_descent(steps=2, rate=0.1, features=1))
    with pytest.raises(ah.NotReached, match="a smaller box, fewer steps") as caught:
        ah.compile(program, within=1e-30)
    assert caught.value.network.certificate.bound == caught.value.bound
    assert ah.compile(program, within=2 * caught.value.bound).certificate.bound == caught.value.bound


def test_a_function_that_is_known_by_its_values_has_to_be_given():
    program = ah.program(ah.approximate(lambda x: x[..., :1] * x[..., 1:], on=BOX, within=0.1))
    with pytest.raises(ah.AnchorheadError, match="give it, function="):
        ah.compile(program, within=0.1)
    with pytest.raises(ah.AnchorheadError, match="is not the one that the program knows"):
        ah.compile(program, within=0.1, function=lambda x: x[..., :1] + x[..., 1:])


@pytest.mark.parametrize("name", names(without=("layer",)))
def test_of_its_program_a_network_is_compiled_again(name):
    net = network(name)
    again = ah.compile(ah.program(net), dtype=net.dtype, **row_of(name).options)
    assert type(again) is type(net)
    assert again.construction == net.construction
    assert same(again.program, net.program)
    assert again.certificate == net.certificate
    assert len(again.layers) == len(net.layers)
    assert all(identical(one, two) for one, two in zip(again.layers, net.layers, strict=True))


def test_outputs_that_change_between_other_anchors_are_refused():
    program = ah.program(network("truncated linear, outputs (float64)"))
    with pytest.raises(ah.AnchorheadError, match="not between 7 even anchors"):
        ah.compile(program, anchors=7)


@pytest.mark.parametrize(
    ("name", "words", "why"),
    [
        ("learner, direct (float64)", {"placement": "uniform"}, "built as its layout says"),
        ("many learners (float64)", {"within": 1e-3}, "certificates for prompts"),
        ("truncated linear, one head (float64)", {"form": "deep"}, "the paper's theorems"),
        ("deep, transformer (float64)", {"anchors": 3}, "heads for each of them"),
        ("grid (float64)", {"within": 0.1, "max_slope": 3.0}, "functions of one variable"),
        ("head (float64)", {"within": 0.1, "scores": (0, 1)}, "heads, neurons and grids"),
    ],
)
def test_words_that_say_nothing_of_a_program_are_refused(name, words, why):
    with pytest.raises(ah.AnchorheadError, match=why):
        ah.compile(ah.program(network(name)), **words)


def test_words_that_a_kernel_smoother_has_no_use_for_are_refused():
    smoother = KernelSmoother(RNG.normal(size=(3, 2)), RNG.normal(size=(3, 1)), 0.5)
    program = ah.program(smoother, on=(-1, 1))
    assert ah.compile(program).certificate.kind == "proven"
    for words in ({"form": "deep"}, {"layout": "sequence"}, {"placement": "uniform"}, {"causal": True}):
        with pytest.raises(ah.AnchorheadError, match="a kernel smoother is one softmax head"):
            ah.compile(program, **words)
