"""The program of a network is what was written; that it is what was built is proven, and no bound is too small."""

from __future__ import annotations

import dataclasses
import json
import random
from collections.abc import Callable, Iterable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from flint import arb, ctx
from safetensors import safe_open
from safetensors.numpy import save_file

import anchorhead as ah
from anchorhead.constructions.passes.simplify import lowered
from anchorhead.language.analysis.summands import parts_of
from anchorhead.language.canonical import to_data
from anchorhead.language.entries import Entries, same
from anchorhead.language.expressions.parser import parse
from anchorhead.language.of_targets import program_of
from anchorhead.language.program import Program
from anchorhead.network import Network
from anchorhead.verify import verify
from anchorhead.verify.equality.algebra import Algebra
from anchorhead.verify.equality.compare import difference
from anchorhead.verify.equality.polynomials import Monomial, Value
from anchorhead.verify.errors import NotVerified
from anchorhead.verify.files import Stored
from anchorhead.verify.programs.numbers import Range
from anchorhead.verify.programs.program import Affine, Input, read_program
from anchorhead.verify.programs.program import Program as Read
from benchmarks.figures_cases import DEEP
from tests.constructions.passes.test_equal_forms import NAMES, grown
from tests.networks import network as built

from ..files import report

BOX = dict.fromkeys("xyzwu", (0.5, 2.0))
SIGNED = dict.fromkeys("xyzw", (-1.0, 1.0))
FUNCTIONS: dict[str, dict[str, tuple[float, float]]] = {
    "exp(x*y)*abs(z) + w": SIGNED,
    "x*y*z*w": SIGNED,
    "x*y*z*w*u": BOX,
    "x*y/(z*w*u)": BOX,
    "(x + y)/(z + w) - u": BOX,
    "1/(2 + x**2*y**2 + abs(z)*w)": SIGNED,
    "max(x, y*z, w)": SIGNED,
    "max(x*y, min(z, w)) + abs(x - z*w)": SIGNED,
    "min(x*y, y*z, z*w)**2": SIGNED,
    "abs(x*y - z) - abs(w)/3": SIGNED,
    "sqrt(x*y + z*w)*abs(u - 1)": BOX,
    "sqrt(x**2 + y*z*w*u) - x": BOX,
    "log(sqrt(x**2 + y*z*w) + x) + u": BOX,
    "(x*y)**1.7/(z + w*u)": BOX,
    "(x*y)**(1/3)*z*w*u": BOX,
    "log(x*y*z + w)*u": BOX,
    "softplus(x*y)*relu(z) - w": SIGNED,
    "elu(x*y + z)*w": SIGNED,
    "clip(x*y*z, -0.3, 0.4)*w": SIGNED,
    "tanh(x*y)*sigmoid(z*w)*abs(x)": SIGNED,
    "pi*x*y*abs(z)/3 + sin(pi*w*x)": SIGNED,
    "exp(-(x**2 + y**2)/2)*abs(z*w)": SIGNED,
    "where(x < 0, x*y, y*z)*w": {**SIGNED, "x": (0.5, 1.0)},
    **{expression: on for expression, on, _ in DEEP.values()},
}


def read(program: Program) -> Read:
    """The program as the verifier knows it."""
    data, arrays = to_data(program)
    return read_program(Stored({}, data, None, None, {f"program.{name}": array for name, array in arrays.items()}))


def forms(text: str, on: dict[str, tuple[float, float]]) -> tuple[Read, list[Read], np.ndarray, np.ndarray]:
    """What is written, all forms that the compiler makes of it, and the box."""
    expression = parse(text, tuple(on))
    on = {name: ends for name, ends in on.items() if name in expression.variables}
    names, ends = tuple(on), ([a for a, _ in on.values()], [b for _, b in on.values()])
    low, high = (np.array([end], float) for end in ends)
    terms = [term.expression for term in parts_of((expression,), names, None, ends).terms]
    built = [read(program_of(one, (low, high))) for one in lowered([terms], names, ends)]
    return read(ah.program(text, on=on)), built, low, high


def value(program: Read, x: list[float]) -> arb:
    """A program of one token at a point."""
    found: list[list[arb]] = []
    for step in program.steps:
        if isinstance(step, Input):
            found.append([arb(one) for one in x])
        elif isinstance(step, Affine):
            sums = [
                sum((arb(w) * q for w, q in zip(row.tolist(), found[of], strict=True) if w), arb(0))
                for of, weight in zip(step.of, step.weights, strict=True)
                for row in weight
            ]
            rows = [sums[place :: len(step.bias[0])] for place in range(len(step.bias[0]))]
            found.append([sum(row, arb(float(b))) for row, b in zip(rows, step.bias[0], strict=True)])
        else:
            given = [found[of] for of in step.of]
            at = [
                {n: q[f % len(q)] for n, q in zip(step.arguments, given, strict=True)} for f in range(len(step.which))
            ]
            found.append([step.functions[k].ball(one) for k, one in zip(step.which, at, strict=True)])
    return found[program.outputs[0]][0]


def apart(one: Read, other: Read, low: np.ndarray, high: np.ndarray, rng: random.Random, points: int = 20) -> arb:
    """The largest difference of two programs that is found at corners and in between."""
    worst, before = arb(0), ctx.prec
    ctx.prec = 400
    try:
        for _ in range(points):
            box = zip(low[0].tolist(), high[0].tolist(), strict=True)
            x = [rng.choice([a, b, rng.uniform(a, b)]) for a, b in box]
            off = abs(value(one, x) - value(other, x))
            worst = worst.max(off.lower()) if off.is_finite() else worst
    finally:
        ctx.prec = before
    return worst


@pytest.mark.parametrize("text", FUNCTIONS)
def test_every_form_is_seen_to_be_the_function_that_was_written(text: str) -> None:
    written, built, low, high = forms(text, FUNCTIONS[text])
    size = apart(written, _zero(written), low, high, random.Random(1))
    for one in built:
        assert difference(written, one, low, high).max() <= 1e-8 * size


def _zero(program: Read) -> Read:
    """A program that is 0."""
    weight = np.zeros((1, len(program.steps[0].features)))
    return dataclasses.replace(
        program,
        steps=(program.steps[0], Affine((0,), (weight,), (None,), np.zeros((1, 1)), None)),
        names=("", ""),
        outputs=(1,),
    )


CHANGED = {
    "exp(x*y)*abs(z) + w": (
        "exp(x*y)*abs(z) - w",
        "exp(x*y)*abs(z) + 1.0001*w",
        "exp(x*z)*abs(y) + w",
        "x + y",
        "exp(x*y)*z + w",
    ),
    "max(x, y*z, w)": ("max(x, y*z)", "max(x, y*z, -w)", "min(x, y*z, w)", "max(x, y*w, z)"),
    "sqrt(x**2 + y*z*w*u) - x": ("sqrt(x**2 + y*z*w*u) + x", "sqrt(x**2 + y*z*w + u) - x", "sqrt(x**2 + y*z*w*u)"),
    "x*y/(z*w*u)": ("x*y*z/(w*u)", "x*y/(z*w + u)", "x/y/(z*w*u)", "x*y/(z*w*u)**1.001"),
    "tanh(x*y)*sigmoid(z*w)*abs(x)": (
        "tanh(x*y)*sigmoid(z*w)*abs(y)",
        "sin(x*y)*sigmoid(z*w)*abs(x)",
        "tanh(x*y)*sigmoid(z*w)*x",
    ),
    "log(x*y*z + w)*u": ("log(x*y*z + w + 1e-3)*u", "log(x*y*z)*w*u", "log(x*y*z + w)/u"),
}


@pytest.mark.parametrize("text", CHANGED)
def test_another_function_is_never_taken_for_it(text: str) -> None:
    names = tuple(name for name in FUNCTIONS[text] if name in parse(text, tuple(FUNCTIONS[text])).variables)
    on, rng = {name: FUNCTIONS[text][name] for name in names}, random.Random(2)
    _, built, low, high = forms(text, on)
    for other in CHANGED[text]:
        expression = parse(other, names)
        program = Entries((expression,), names, None, *zip(*on.values(), strict=True)).program()
        for one in built:
            bound = difference(read(program), one, low, high).max()
            assert arb(float(bound)) >= apart(read(program), one, low, high, rng) > 1e-6, other


@pytest.mark.parametrize("seed", [1, pytest.param(2, marks=pytest.mark.slow), pytest.param(3, marks=pytest.mark.slow)])
def test_no_bound_is_smaller_than_a_difference_that_is_found(seed: int) -> None:
    """Random functions, of whose forms one number is changed, by a little or by much."""
    rng, compared, close = random.Random(seed), 0, 0
    while compared < (40 if seed == 1 else 600):
        low = [rng.choice([0.1, 1, -1, 50, 1e-3, 0.5]) for _ in NAMES]
        on = {name: (a, a + abs(a) * rng.choice([0.1, 1, 3, 100])) for name, a in zip(NAMES, low, strict=True)}
        text = grown(rng, rng.choice([2, 3]))
        try:
            written, built, least, most = forms(text, on)
        except (ah.AnchorheadError, ValueError):
            continue
        for one in built:
            other = changed(one, rng)
            try:
                bound = float(difference(written, other, least, most).max())
            except NotVerified:
                continue
            found = apart(written, other, least, most, rng)
            assert found <= arb(bound), text
            compared += 1
            close += float(found) > 0 and bound < 10 * float(found)
    assert close > compared / 3


def _without_cancelled(self: Algebra, terms: Iterable[tuple[Monomial, arb]]) -> Value:
    found = MADE(self, terms)
    return dataclasses.replace(found, terms={m: c.mid() for m, c in found.terms.items() if not c.mid().is_zero()})


def _nearest(self: Algebra, a: Value, b: Value) -> arb | None:
    return arb(0) if DISTANCE(self, a, b) is not None else None


def _always_positive(self: Algebra, a: Value) -> Value:
    return dataclasses.replace(a, range=Range.hull(arb(2) ** -99, a.range.most))


MADE, DISTANCE = Algebra.made, Algebra.distance
BROKEN: dict[str, tuple[str, Any]] = {
    "errors are forgotten": ("off_by", lambda self, a, error: a),
    "what cancels is forgotten": ("made", _without_cancelled),
    "nearly the same is the same": ("distance", _nearest),
    "every sign is known": ("_with_sign", _always_positive),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", BROKEN)
def test_a_broken_rule_is_noticed(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    method, broken = BROKEN[name]
    monkeypatch.setattr(Algebra, method, broken)
    with pytest.raises(AssertionError):
        test_no_bound_is_smaller_than_a_difference_that_is_found(2)


def changed(program: Read, rng: random.Random) -> Read:
    places = [place for place, step in enumerate(program.steps) if isinstance(step, Affine) and step.weights[0].any()]
    if not places:
        return program
    place = rng.choice(places)
    weight = program.steps[place].weights[0].copy()
    at = tuple(rng.choice(np.argwhere(weight).tolist()))
    weight[at] *= rng.choice([1.0, 1 + 1e-12, 1 + 1e-6, -1.0, 2.0])
    steps = list(program.steps)
    steps[place] = dataclasses.replace(steps[place], weights=(weight, *steps[place].weights[1:]))
    return dataclasses.replace(program, steps=tuple(steps))


# networks and files

BUILT = {
    "exp(x*y)*abs(z) + w": (SIGNED, 1e-3),
    "abs(x)*y/(2 + z)": ({name: SIGNED[name] for name in "xyz"}, 1e-3),
    "x*y + abs(x - y)/3": ({name: SIGNED[name] for name in "xy"}, 1e-4),
    "sqrt((x*y)**2 + z*w*u) - x*y": (BOX, 1e-2),
}


@cache
def network(text: str) -> Network:
    on, within = BUILT[text]
    return ah.compile(ah.program(text, on=on), within, progress=False)


def saved(text: str, folder: Path, change: Callable[[dict[str, Any], dict[str, np.ndarray]], None]) -> Path:
    path = folder / "network.safetensors"
    network(text).save(path)
    with safe_open(path, framework="numpy") as file:
        header = json.loads(file.metadata()["anchorhead"])
        arrays = {key: file.get_tensor(key) for key in file.keys()}  # noqa: SIM118
    change(header, arrays)
    save_file(arrays, path, {"anchorhead": json.dumps(header)})
    return path


@pytest.mark.parametrize(
    "text", [text if "sqrt" not in text else pytest.param(text, marks=pytest.mark.slow) for text in BUILT]
)
def test_the_program_is_what_was_written_and_the_report_says_so(text: str, tmp_path: Path) -> None:
    net = network(text)
    assert net.program is not None
    assert same(net.program, ah.program(text, on=BUILT[text][0]))
    path = saved(text, tmp_path, lambda header, arrays: None)
    again = ah.load(path)
    assert again.program is not None
    assert same(again.program, net.program)
    assert again.derivation is not None
    assert "taken apart into what the network was built of" in str(again.derivation)
    assert ah.check(again, progress=False).stated == net.certificate.bound  # type: ignore[union-attr]
    found = verify(path)
    assert found.verified, found.why
    function = parse(text, tuple(BUILT[text][0]))
    printed = parse(found.why.split("(", 1)[1].split(")| <= ")[0], tuple(BUILT[text][0]))
    x = {name: np.linspace(a, b, 7) for name, (a, b) in BUILT[text][0].items()}
    assert np.allclose(np.asarray(function.values(x), float), np.asarray(printed.values(x), float))


def nodes_of(header: dict[str, Any]) -> list[Any]:
    return header["program"]["steps"][-1]["functions"][0]["nodes"]


def coefficient(header: dict[str, Any], arrays: dict[str, np.ndarray]) -> None:
    nodes = nodes_of(header)
    nodes += [["number", 1.01], ["mul", len(nodes), len(nodes) - 1]]


def sign(header: dict[str, Any], arrays: dict[str, np.ndarray]) -> None:
    nodes_of(header).append(["neg", len(nodes_of(header)) - 1])


def function(header: dict[str, Any], arrays: dict[str, np.ndarray]) -> None:
    for node in nodes_of(header):
        if node[0] in ("exp", "abs", "sqrt"):
            node[0] = "sin"


def variable(header: dict[str, Any], arrays: dict[str, np.ndarray]) -> None:
    weight = arrays["program.1.weight.0"]
    weight[:] = np.roll(weight, 1, axis=-1)


def as_built(header: dict[str, Any], arrays: dict[str, np.ndarray]) -> None:
    last = max(int(name.split(".")[1]) for name in arrays if name.startswith("lowered."))
    arrays[f"lowered.{last}.weight.0"] *= 1.01


def not_there(header: dict[str, Any], arrays: dict[str, np.ndarray]) -> None:
    del header["derivation"]["lowered"]


def rewritten(header: dict[str, Any], arrays: dict[str, np.ndarray]) -> None:
    header["program"]["title"] = header["derivation"]["lowered"]["title"] = header["certificate"]["target"] = "x + y"


@pytest.mark.parametrize("change", [coefficient, sign, function, variable, as_built, not_there])
@pytest.mark.parametrize("text", list(BUILT)[:2])
def test_a_program_that_was_changed_is_refused(text: str, change: Callable[..., None], tmp_path: Path) -> None:
    path = saved(text, tmp_path, change)
    found = verify(path)
    assert not found.verified
    assert "could not make sense" not in found.why
    with pytest.raises(ah.AnchorheadError):
        ah.check(path, progress=False)


def test_words_that_were_rewritten_are_seen_in_no_report(tmp_path: Path) -> None:
    text = next(iter(BUILT))
    path = saved(text, tmp_path, rewritten)
    found = verify(path)
    assert found.verified
    assert f"|network - ({text})| <= " in found.why
    again = ah.load(path)
    assert again.certificate is not None
    assert again.certificate.target == text


def test_a_composition_keeps_its_steps(tmp_path: Path) -> None:
    inner = ah.program(["x*y", "abs(x) + y"], on={"x": (-1, 1), "y": (-1, 1)})
    outer = ah.program("exp(s)/3 - s*t", on={"s": (-1, 1), "t": (-1, 2)})
    both = outer @ inner
    net = ah.compile(both, 1e-2, progress=False)
    assert net.program is not None
    assert same(net.program, both)
    net.save(tmp_path / "net.safetensors")
    found = verify(tmp_path / "net.safetensors")
    assert found.verified, found.why
    assert "exp(x*y)/3" in found.why


def test_what_is_not_reached_is_of_the_same_program() -> None:
    program = ah.program("abs(x)*y", on={name: SIGNED[name] for name in "xy"})
    with pytest.raises(ah.NotReached) as error:
        ah.compile(program, 1e-6, dtype="float32", progress=False)
    assert same(error.value.network.program, program)


def test_tokens_that_cancel_stay_in_what_was_written(tmp_path: Path) -> None:
    rows = [["abs(x[0,0])*x[0,1] + x[1,0] - x[1,0]"], ["x[0,0]*x[1,0]"]]
    program = ah.program(rows, on=(-1, 1), tokens=2, features=2)
    net = ah.compile(program, 1e-2, causal=True, progress=False)
    assert net.program is not None
    assert same(net.program, program)
    net.save(tmp_path / "net.safetensors")
    found = verify(tmp_path / "net.safetensors")
    assert found.verified, found.why
    assert "x[1,0] - x[1,0]" in found.why
    assert ah.check(net, progress=False).stated == net.certificate.bound  # type: ignore[union-attr]


def in_other_units(header: dict[str, Any], arrays: dict[str, np.ndarray]) -> None:
    """The same program written with pre-activations twice as large, of which functions take half."""
    written = header["program"]
    header["derivation"]["lowered"] = json.loads(json.dumps(written))
    for name in [name for name in arrays if name.startswith("program.")]:
        arrays[f"lowered.{name.removeprefix('program.')}"] = arrays[name].copy()
        arrays[name] *= 2 if name.startswith("program.1.") else 1
    for function in written["steps"][2]["functions"]:
        rest = ([n + 2 if type(n) is int else n for n in node] for node in function["nodes"][1:])
        function["nodes"] = [["variable", "s"], ["number", 0.5], ["mul", 0, 1], *rest]


def test_a_condition_on_pre_activations_is_one_on_those_that_were_written(tmp_path: Path) -> None:
    assert report("truncated linear, one head (float64)", tmp_path, in_other_units).verified
    found = report("truncated linear, outputs (float32)", tmp_path, in_other_units)
    assert not found.verified
    assert "a condition" in found.why


def test_a_network_of_parts_holds_what_it_was_built_of(tmp_path: Path) -> None:
    net = built("parts (float32)")
    assert net.program is not None
    assert net.derivation is not None
    assert net.derivation.lowered is not None
    x = np.random.default_rng(0).uniform(0, 1, (50, 3))
    assert np.allclose(net.program(x), net.derivation.lowered(x), rtol=1e-12)
    found = report("parts (float32)", tmp_path, not_there)
    assert not found.verified
    assert "build it again" in found.why


def of_a_grid(header: dict[str, Any], arrays: dict[str, np.ndarray]) -> None:
    steps = header["derivation"]["lowered"]["steps"]
    (nodes,) = (one["nodes"] for step in steps for one in step.get("functions", ()) if ["exp", 2] in one["nodes"])
    nodes[nodes.index(["exp", 2])] = ["expm1", 2]


@pytest.mark.parametrize("change", [of_a_grid, as_built])
def test_parts_that_were_changed_are_refused(change: Callable[..., None], tmp_path: Path) -> None:
    found = report("parts (float32)", tmp_path, change)
    assert not found.verified
    assert "not found to be the same" in found.why
