"""What verified learners rest on, against arithmetic chosen to hurt: invariants of exact paths, tokens that come
come apart, sums and heads of the layout sequence, and links that are read from a program."""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

from anchorhead.language.expressions.parser import parse
from anchorhead.verify.errors import NotVerified
from anchorhead.verify.grids.head import Grid
from anchorhead.verify.learners import box, heads, link, link_error
from anchorhead.verify.learners.average import Mean, prompt_moments
from anchorhead.verify.learners.form import line_of
from anchorhead.verify.learners.growth import Apart
from anchorhead.verify.learners.score import Score
from anchorhead.verify.learners.target import Descent
from anchorhead.verify.programs.expressions import Expression, read_expression
from anchorhead.verify.rounding import MODELS
from anchorhead.verify.scalar.part import Part


def expression(text: str) -> Expression:
    return read_expression(parse(text, ("s", "y", "x")).to_json())


def descent(g: str, size: int, times: int, rate: float, momentum: float = 0.0, decay: float = 0.0) -> Descent:
    decays = (Fraction(decay),) * size
    return Descent(size, False, times, rate, momentum, decays, (None,) * size, expression(g), 64)


def mirror(n: int) -> np.ndarray:
    """One feature for which a step of rate 1 maps residuals of -1 to a single one, as large as all of them together."""
    u = np.ones(n)
    u[0] -= math.sqrt(n)
    return (u * math.sqrt(2 * n / (u @ u)))[:, None]


def exact_path(target: Descent, A: np.ndarray, y: np.ndarray, g) -> list[tuple[np.ndarray, np.ndarray, np.ndarray]]:
    """w_t, v_t and the links, in long doubles."""
    A, y = A.astype(np.longdouble), y.astype(np.longdouble)
    w = v = np.zeros(A.shape[1], np.longdouble)
    path = []
    for _ in range(target.times + 1):
        links = g(A @ w, y)
        path.append((w, v, links))
        v = np.longdouble(target.momentum) * v - np.longdouble(target.rate) * (
            A.T @ links / len(A) + np.longdouble(float(target.decays[0])) * w
        )
        w = w + v
    return path


PATHS = {
    "a mirror": ("s - y", lambda s, y: s - y, descent("s - y", 1, 3, 1.0), mirror(4), np.ones(4)),
    "slow": ("s - y", lambda s, y: s - y, descent("s - y", 1, 8, 0.5), np.array([[0.1]]), np.ones(1)),
    "twice as steep": ("2*(s - y)", lambda s, y: 2 * (s - y), descent("2*(s - y)", 1, 3, 0.5), mirror(4), np.ones(4)),
    "with momentum": ("s - y", lambda s, y: s - y, descent("s - y", 1, 12, 1.0, 0.5), 1.2 * mirror(4), np.ones(4)),
    "with decay": ("s - y", lambda s, y: s - y, descent("s - y", 1, 6, 0.5, 0.3, 0.5), mirror(4), np.ones(4)),
    "logistic": (
        "sigmoid(s) - y", lambda s, y: 1 / (1 + np.exp(-s)) - y, descent("sigmoid(s) - y", 1, 6, 0.5),
        np.array([[1.0], [0.5]]), np.array([1.0, 0.0]),
    ),
}  # fmt: skip


def steepest(target: Descent, A: np.ndarray) -> float:
    return float(np.linalg.norm(A.T @ A / len(A), 2))


@pytest.mark.parametrize("name", PATHS)
def test_exact_paths_keep_to_their_invariants(name: str) -> None:
    """Links, w, v and arguments along exact paths: within what is said, and for some of them close to it."""
    text, g, target, A, y = PATHS[name]
    form = link.read_links(expression(text), 1.0)[0][0]
    slope = 1.0 if form.line is None else float(form.line[0])
    curved = target.rate * (0.25 * steepest(target, A) + float(target.decays[0])) * (1 + 1e-9)
    limit = 2 * (1 + target.momentum)
    assert target.rate * (slope * steepest(target, A) + float(target.decays[0])) <= limit * (1 + 1e-9)
    sizes = tuple(np.abs(A).max(axis=0).tolist())
    prompts = box.Box(sizes, float(np.abs(y).max()), len(A), limit, None if form.line else (0.25, 0.0, curved))
    along = box.invariant(target, form, prompts, 0.0)
    for t, (w, v, links) in enumerate(exact_path(target, A, y, g)[:-1]):
        arguments = A @ w - (y if form.form == "residual" else 0)
        assert np.abs(links).max() <= along.most * (1 + 1e-12)
        assert math.sqrt((links**2).mean()) <= along.rms * (1 + 1e-12)
        assert np.linalg.norm(w) <= along.weight(t) * (1 + 1e-12)
        assert np.linalg.norm(v) <= along.speed(t, False) * (1 + 1e-12)
        assert along.low * (1 + 1e-12) <= arguments.min()
        assert arguments.max() <= along.high * (1 + 1e-12)
    if name == "a mirror":
        assert along.most <= 2 * (1 + 1e-9)


def test_a_box_keeps_to_what_its_conditions_say() -> None:
    """Arguments between stated ends, eigenvalues below stated ones."""
    form = link.read_links(expression("exp(s) - y"), 1.0)[0][0]
    target = descent("exp(s) - y", 1, 50, 0.5)
    free = box.Box((1.0,), 1.0, 3, 2.0, (2.0, 0.0, 0.5), (-3.0, 1.0))
    along = box.invariant(target, form, free, 0.0)
    assert (along.low, along.high) == (-3.0, 1.0)
    assert math.e + 1 <= along.most <= math.e + 1.01
    assert 0.5 <= along.eigenvalue <= 0.5 * (1 + 1e-9)
    assert box.invariant(target, form, replace(free, curvature=(2.0, 0.5, 0.5)), 0.0).eigenvalue <= 0.25 * (1 + 1e-9)


@pytest.mark.parametrize("momentum", [0.0, 0.6])
def test_tokens_come_no_further_apart_than_is_said(momentum: float) -> None:
    """Two that carry w, each rounding against the other all the time."""
    apart, w, v = Apart(), 0.0, 0.0
    for _ in range(20):
        apart.step(0.9, 0.1, momentum, 1.0)
        w, v = 0.9 * w + momentum * v + 2.0, 0.1 * w + momentum * v + 2.0
        assert w <= apart.w <= 1.001 * w
        assert v <= apart.v


def test_rounding_that_is_chosen_against_plain_means() -> None:
    model = MODELS["float32"]
    for seed in range(20):
        rng = np.random.default_rng(seed)
        n = int(rng.integers(2, 40))
        A, g = rng.choice([-1.0, 1.0], (n, 1)), np.ones(n)
        at = prompt_moments(A, 1.0, g, 1.0, 1.0, np.zeros(n))
        pushes, sign = A[:, 0] * g, np.sign(A[:, 0])
        weights = np.exp(model.exp_error * sign)
        read = (weights / weights.sum() * pushes * (1 + float(model.gamma(n + 1)) * sign)).sum()
        found = Mean(-0.5, n).error(0.5, at, model)
        error = 0.5 * abs(read - pushes.mean())
        assert error <= found[1] <= 4 * error
        assert Mean(-0.501, n).error(0.5, at, model)[0] >= 0.001 * (1 - 1e-9)


def test_entries_of_pushes_are_off_each_on_their_own() -> None:
    """Examples along all axes, whose pushes are all 0; each entry of them is off by e, with the sign that hurts."""
    A, e = np.array([[1.0, 1.0], [1.0, -1.0]]), 1e-3
    eigenvalue = float(np.linalg.eigvalsh(A.T @ A / 2)[-1])
    found = Mean(-0.5, 2).error(
        0.5, prompt_moments(A, eigenvalue, np.zeros(2), 1.0, 1.0, np.full(2, e)), MODELS["float32"]
    )
    pushes = np.abs(A) * e
    assert 0.5 * float(np.linalg.norm(pushes.mean(axis=0))) <= found[0]


ENDS, ZERO = np.array([-1.0, 1.0]), np.zeros(2)
TANH = Part(ENDS, ZERO, ENDS, ZERO, ZERO, ZERO, ZERO, ZERO, ZERO, MODELS["float32"])


@pytest.mark.parametrize("kind", ["one argument", "a grid"])
def test_logits_that_are_sums_over_w_may_be_off_by_what_is_said(kind: str) -> None:
    """Logits of either anchor off in the direction that hurts, by gamma_6 of their terms."""
    model, terms = MODELS["float32"], 40.0
    form = link.Link("margin", expression("tanh(x)"), None)
    at = heads.At(-1.0, 1.0, 1.0, terms, 1.0, 0.0)
    used = heads.Heads((TANH,), roundings=6)
    off = float(model.gamma(6)) * terms + model.exp_error + model.unit
    if kind == "a grid":
        form = link.Link("both", expression("tanh(x)"), None, 1.0)
        axes = (TANH.slopes, TANH.offsets), (np.array([-1.0, 1.0]), np.zeros(2))
        values = np.repeat(TANH.values[:, None, None], 2, axis=1)
        used = heads.Heads(grid=Grid(axes, np.zeros(2), values[..., 0]), roundings=6)
        used.prove_grid(form, at, model, 4 * off)
        with pytest.raises(NotVerified):
            used.prove_grid(form, at, model, math.tanh(off) * (1 - 1e-6))
        return
    found = used.error(form, at, model)
    assert math.tanh(off) * (1 - 1e-6) <= found <= 4 * off


def test_links_are_off_by_slopes_times_scores() -> None:
    """A score that is too flat, at arguments where it is worst."""
    score, model = Score((0.5,), (4.0,), 1), MODELS["float64"]
    form = link.Link("margin", expression("tanh(x)"), None)
    part = replace(TANH, model=model)
    error = link_error.LinkError(score, heads.Heads((part,)), form, heads.At(-0.4, 0.4, 0.0, 0.4, 0.4, 1e-6), model)
    z = np.linspace(-0.4, 0.4, 81)
    off = np.abs(np.tanh(4 * np.tanh(0.5 * z / 2)) - np.tanh(z))
    assert off.max() <= error.total(0.4, 0.4, 0.4) <= 2 * off.max() + 1e-3
    each, steep = error.each(z, z, np.abs(z), 0.4)
    assert (off <= each).all()
    assert (steep >= 1 - np.tanh(z) ** 2 - 1e-12).all()


FORMS = {
    "tanh(s - y) + s - y": ["residual", "both"],
    "s - y": ["residual", "labelled", "both"],
    "2*s - y": ["labelled", "both"],
    "sigmoid(s) - y": ["labelled", "both"],
    "sigmoid(s) - 2*y": ["both"],
    "y*(-sigmoid(-(y*s)))": ["margin", "both"],
    "y*y*s": ["margin", "both"],
    "y*s": ["both"],
    "-y*sigmoid(s)": ["both"],
    "tanh(s - 2*y)": ["both"],
    "sin(s*y) + s - y": ["both"],
}


@pytest.mark.parametrize("text", FORMS)
def test_the_forms_of_links(text: str) -> None:
    found = [one for (one,) in link.read_links(expression(text), 1.0)]
    assert [one.form for one in found] == FORMS[text]
    rng = np.random.default_rng(0)
    for one in found:
        for s, y in zip(rng.uniform(-2, 2, 8), rng.choice([-1.0, 1.0], 8), strict=True):
            at = {"residual": s - y, "margin": y * s}.get(one.form, s)
            value = float(parse(str_of(one.phi), ("x", "y")).values({"x": at, "y": y}))
            value = {"labelled": value - y, "margin": y * value}.get(one.form, value)
            assert value == pytest.approx(float(parse(text, ("s", "y")).values({"s": s, "y": y})), abs=1e-12)


LINES = {
    "x": (1, 0),
    "2*x - 1": (2, -1),
    "(x + 3*x)/4 - 1/2": (1, Fraction(-1, 2)),
    "x*x": None,
    "-x": None,
    "exp(x)": None,
}


@pytest.mark.parametrize("text", LINES)
def test_which_links_are_lines(text: str) -> None:
    assert line_of(expression(text)) == LINES[text]


def str_of(found: Expression) -> str:
    """The expression as a formula."""
    shown: list[str] = []
    infix = {"add": " + ", "mul": "*", "div": "/"}
    for op, data, places in found.nodes:
        inside = [f"({shown[place]})" for place in places]
        if op in ("number", "variable"):
            shown.append(repr(data) if op == "number" else data)
        elif op in infix:
            shown.append(infix[op].join(inside))
        else:
            shown.append(f"-{inside[0]}" if op == "neg" else f"{inside[0]}**{data}" if data else f"{op}{inside[0]}")
    return shown[-1]


def test_slopes_and_ranges_of_links_of_two_variables() -> None:
    one = link.Link("both", expression("sin(x)*(2 + y) + y**2"), None, 1.5)
    x, y = np.meshgrid(np.linspace(-1, 2, 200), np.linspace(-1.5, 1.5, 200))
    values, along = np.sin(x) * (2 + y) + y**2, np.cos(x) * (2 + y)
    low, high = link.between(one, -1.0, 2.0)
    assert low <= values.min()
    assert values.max() <= high <= values.max() + 0.5
    for fine, room in ((0.05, 0.2), (math.inf, 1.5)):
        least, most = link.slopes(one, -1.0, 2.0, fine)
        assert least <= along.min()
        assert along.max() - 1e-3 <= most <= along.max() + room
