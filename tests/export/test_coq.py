"""Files of Coq: what they state is what is stored, and Coq accepts it on nothing but the axioms of its numbers."""

from __future__ import annotations

import re
from fractions import Fraction
from functools import cache
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

import anchorhead as ah
from anchorhead.export.coq.head_file import make
from anchorhead.export.coq.proof import SETTINGS
from anchorhead.export.coq.terms import dyadic, term
from anchorhead.language.targets import Expression
from anchorhead.proof.heads.head import head_errors
from export.coq_reader import anchors, function, rational, statement
from tools import coq
from tools.coq_files import assumptions, compiled, missing, strange

needs_coq = pytest.mark.skipif(bool(missing()), reason=f"not installed: {', '.join(missing())}")

HEADS = {
    "gelu": ((-4, 4), 1e-3, "float64"),
    "relu": ((-10, 10), 1e-6, "float64"),
    "elu": ((-10, 10), 1e-2, "float32"),
    "leaky_relu": ((-1, 1), 1e-6, "float64"),
    "hardswish": ((-10, 10), 1e-8, "float64"),
    "softsign": ((-10, 10), 1e-3, "float64"),
    "mish": ((-10, 10), 1e-2, "float64"),
    "tan": ((-1, 1), 1e-3, "float64"),
    "selu": ((-10, 10), 1e-2, "float32"),
    "where(x*x < 2, x*x, 2)": ((0, 2), 1e-2, "float64"),
}


@cache
def _head(function: str) -> ah.Head:
    on, within, dtype = HEADS[function]
    return ah.head(function, on=on, within=within, dtype=dtype, progress=False)


@pytest.fixture(params=HEADS)
def head(request: pytest.FixtureRequest) -> ah.Head:
    return _head(request.param)


@pytest.mark.slow_for("gelu", "where(x*x < 2, x*x, 2)")
def test_weights_in_the_file_are_the_stored_ones(head: ah.Head) -> None:
    text = ah.export(head, to="coq", progress=False)
    for number, part in enumerate(head.parts, start=1):
        stored = zip(part.slopes, part.offsets, part.values[:, 0], strict=True)
        assert anchors(text, number) == [tuple(Fraction(float(w)) for w in row) for row in stored]
    s = "x" if head.atom.origin == 0 else f"(x - {dyadic(head.atom.origin)})"
    means = [f"mean head_part_{number + 1} {s}" for number in range(len(head.parts))]
    bias = [dyadic(float(b)) for b in head.atom.bias if b]
    assert f"Definition head (x : R) : R := {' + '.join([*means, *bias])}.\n" in text


def test_the_statement_is_the_certificate_s(head: ah.Head) -> None:
    low, high, eps = statement(ah.export(head, to="coq", progress=False))
    exact, rounding = map(Fraction, head_errors(head.certificate))
    assert (low, high) == tuple(map(Fraction, head.on))
    assert exact <= eps
    assert eps + rounding <= Fraction(head.certificate.bound)


def test_the_function_in_the_file_is_the_target(head: ah.Head) -> None:
    f = function(ah.export(head, to="coq", progress=False))
    x = np.linspace(*head.on, 97)
    expected = head.network.program(x[:, None, None]).ravel()
    np.testing.assert_allclose([f(float(one)) for one in x], expected, rtol=1e-12, atol=1e-15)


def test_pieces_cover_the_interval(head: ah.Head) -> None:
    text = ah.export(head, to="coq", progress=False)
    ends = re.findall(r"Lemma piece_\d+ : forall x, (.*?) <= x <= (.*?) ->", text)
    low, high, _ = statement(text)
    assert rational(ends[0][0]) == low
    assert rational(ends[-1][1]) == high
    for (_, end), (start, _) in pairwise(ends):
        assert start == end


@pytest.mark.parametrize(
    ("function", "on", "within", "dtype", "anchors"),
    [
        ("log1p", (0, 1), 1e-2, "float64", 2),
        ("tanh", (-10, 10), 1e-3, "float32", 2),
        ("relu", (-10, 10), 1e-6, "float64", 3),
        ("square", (-1, 1), 1e-3, "float32", 3),
        ("gelu", (-10, 10), 1e-4, "float64", 6),
    ],
)
def test_what_is_computed_is_within_the_certificate_s_bound(
    function: str, on: tuple[float, float], within: float, dtype: str, anchors: int
) -> None:
    head = ah.head(function, on=on, within=within, dtype=dtype, progress=False)
    assert head.anchors == anchors
    text = ah.export(head, to="coq", progress=False)
    answer = r"result" if not head.atom.bias.any() else r"\(fl \S+ \d+ choice \(result \+ (?P<bias>.*?)\)\)"
    pattern = rf"Theorem computed_within : .*?Rabs \({answer} - f x\) <= (?P<bound>.*?)\.\n"
    stated = re.search(pattern, text, re.DOTALL)
    assert stated
    assert rational(stated["bound"]) == Fraction(head.certificate.bound)
    assert "bias" not in stated.groupdict() or rational(stated["bias"]) == Fraction(float(head.atom.bias[0]))
    assert {"float64": "fl (-1074) 53", "float32": "fl (-149) 24"}[dtype] in stated[0]


@pytest.mark.parametrize(("within", "dtype", "by_sizes"), [(1e-2, "float64", True), (1e-3, "float32", False)])
def test_rounding_is_bounded_by_sizes_where_the_bound_leaves_room(within: float, dtype: str, by_sizes: bool) -> None:
    head = ah.head("softplus" if by_sizes else "square", on=(-1, 1), within=within, dtype=dtype, progress=False)
    text = ah.export(head, to="coq", progress=False)
    assert ("Lemma settings :" in text) == by_sizes
    assert ("Lemma computed_1 :" in text) != by_sizes
    assert "Theorem computed_within :" in text


@pytest.mark.slow
def test_at_a_kink_between_floats_no_taylor_model_is_asked_for() -> None:
    text = ah.export(ah.head("max(sin(x), cos(x))", on=(0, 3), within=1e-2, progress=False), to="coq", progress=False)
    assert text.count("decide_sides x. ") == text.count("Lemma piece_")
    pieces = re.findall(
        r"Lemma piece_\d+ : forall x, (\S.*?) <= x <= (.*?) ->.*?first \[impossible \| (.*?)\]", text, re.DOTALL
    )
    plain = [(rational(low), rational(high)) for low, high, how in pieces if "i_taylor" not in how]
    ((low, high),) = plain
    assert low < Fraction(np.pi) / 4 < high
    assert high - low < Fraction(1, 10**10)


def test_sums_of_heads_have_no_theorem_about_what_is_computed() -> None:
    head = ah.head("abs", on=(-1, 1), within=1e-3, dtype="float32", progress=False)
    assert len(head.parts) == 2
    text = ah.export(head, to="coq", progress=False)
    assert "computed_within" not in text
    assert "Theorem within" in text


def test_every_setting_states_the_same() -> None:
    network = ah.head("log1p", on=(0, 1), within=1e-2, progress=False).network
    texts = [make(network, settings) for settings in SETTINGS]
    assert len({*texts}) == len(SETTINGS)
    for text, settings in zip(texts, SETTINGS, strict=True):
        assert statement(text)[:2] == (0, 1)
        assert anchors(text, 1) == anchors(texts[0], 1)
        assert ("computed_within" in text) == settings.computed
        assert text.count("Lemma piece_") == settings.parts


def test_a_function_that_coq_does_not_know_is_refused_by_name() -> None:
    with pytest.raises(ah.AnchorheadError, match="bessel cannot be exported to Coq: known there are"):
        term(Expression("bessel", (Expression("variable", (), "x"),)))


@pytest.mark.parametrize("value", [0.0, 1.5, -0.1, 2.0**80, 1e300, 5e-324, -3.0])
def test_numbers_are_exact(value: float) -> None:
    assert rational(dyadic(value)) == Fraction(value)


def test_several_functions_are_several_theorems() -> None:
    text = ah.export(ah.head(["sin(x)", "cos(x)"], on=(-1, 1), within=1e-2, progress=False), to="coq", progress=False)
    assert re.findall(r"Theorem (within\w*) :", text) == ["within_1", "within_2"]


def test_nothing_is_admitted_or_assumed(head: ah.Head) -> None:
    text = ah.export(head, to="coq", progress=False)
    outside = re.sub(r"^Section (\w+)\..*?^End \1\.", "", text, flags=re.DOTALL | re.MULTILINE)
    assert not re.search(r"\b(Hypothes[ie]s|Variables?)\b", outside)  # those of a section are what its theorems ask for
    assert not re.search(r"\b(Admitted|admit|Axioms?|Parameters?|Conjecture)\b", text)
    for tactic in re.findall(r"\binterval\b[^.;]*", re.sub(r"\(\*.*?\*\)", "", text, flags=re.DOTALL)):
        assert "i_prec" in tactic  # without it, machine floats would be trusted


def test_a_kink_that_is_no_float_has_a_piece_of_its_own() -> None:
    text = ah.export(_head("where(x*x < 2, x*x, 2)"), to="coq", progress=False)
    pieces = [
        tuple(map(rational, ends)) for ends in re.findall(r"Lemma piece_\d+ : forall x, (.*?) <= x <= (.*?) ->", text)
    ]
    (around,) = [(low, high) for low, high in pieces if low**2 < 2 < high**2]
    assert around[1] - around[0] < Fraction(1, 10**11)


@pytest.mark.parametrize("constant", ["3", "0.1", "0*x"])
def test_constants_are_met_exactly(constant: str) -> None:
    head = ah.head(constant, on=(0, 1), within=1e-2, progress=False)
    assert statement(ah.export(head, to="coq", progress=False)) == (0, 1, 0)


def test_what_is_no_head_is_refused() -> None:
    product = ah.approximate("x*y", on={"x": (-1, 1), "y": (-1, 1)}, within=1e-2, progress=False)
    with pytest.raises(ah.AnchorheadError, match="only heads on a scalar"):
        ah.export(product, to="coq", progress=False)


def test_callables_are_refused() -> None:
    measured = ah.head(np.sin, on=(-1, 1), within=1e-2, progress=False)
    with pytest.raises(ah.AnchorheadError, match="functions that are known"):
        ah.export(measured, to="coq", progress=False)


def test_erf_beyond_reach_is_refused() -> None:
    steep = ah.head("erf(100*x)", on=(-1, 1), within=1e-2, progress=False)
    with pytest.raises(ah.AnchorheadError, match="reaches beyond 64"):
        ah.export(steep, to="coq", progress=False)


def _written(folder: Path, name: str, text: str) -> Path:
    path = folder / f"{name}.v"
    path.write_text(text)
    return path


@pytest.mark.slow
@needs_coq
def test_coq_accepts_a_head_on_its_own_axioms_alone(tmp_path: Path) -> None:
    path = tmp_path / "log1p.v"
    ah.export(ah.head("log1p", on=(0, 1), within=1e-2, progress=False), path, progress=False)
    accepted, _, _, said = compiled(path)
    assert accepted, said
    assert not strange(assumptions(["log1p.within", "log1p.computed_within"], tmp_path))


def test_what_is_not_installed_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr("sys.argv", ["tools.coq"])
    assert coq.main() == 0
    said = capsys.readouterr().out
    assert "apt install coq libcoq-interval" in said
    assert "accepted" not in said


@needs_coq
def test_an_axiom_of_ours_would_be_seen(tmp_path: Path) -> None:
    assert compiled(_written(tmp_path, "bad", "Axiom wrong : False. Lemma within : False. exact wrong. Qed."))[0]
    assert strange(assumptions(["bad.within"], tmp_path)) == {"bad.wrong"}


@pytest.mark.slow
@needs_coq
@pytest.mark.parametrize(
    ("function", "on", "dtype"),
    [
        ("square", (-1, 1), "float32"),
        ("sin(3*x)*exp(x)", (-1, 1), "float64"),
        ("where(x < 0, sin(x), x)", (-2, 2), "float64"),
    ],
)
def test_coq_accepts_what_rounding_limits_and_expressions(
    function: str, on: tuple[float, float], dtype: str, tmp_path: Path
) -> None:
    head = ah.head(function, on=on, within=1e-3, dtype=dtype, progress=False)
    path = tmp_path / "head.v"
    ah.export(head, path, progress=False)
    accepted, seconds, megabytes, said = compiled(path)
    assert accepted, said
    assert seconds < 60
    assert megabytes < 4096
    assert not strange(assumptions(["head.within", "head.computed_within"], tmp_path))


@pytest.mark.slow
@needs_coq
def test_coq_refuses_a_smaller_error(tmp_path: Path) -> None:
    head = ah.head("log1p", on=(0, 1), within=1e-2, progress=False)
    text = ah.export(head, to="coq", progress=False)
    digits, exponent = re.search(r"Theorem within .* <= \((\d+) / 10 \^ (\d+)\)", text).groups()  # type: ignore[union-attr]
    smaller = text.replace(f"({digits} / 10 ^ {exponent})", f"({int(digits) // 2} / 10 ^ {exponent})")
    assert smaller != text
    accepted, _, _, said = compiled(_written(tmp_path, "smaller", smaller))
    assert not accepted
    assert "Numerical evaluation failed" in said or "No applicable tactic" in said


@needs_coq
@pytest.mark.slow
def test_coq_accepts_gelu_by_its_integral(tmp_path: Path) -> None:
    path = tmp_path / "gelu.v"
    ah.export(ah.head("gelu", on=(-4, 4), within=1e-3, progress=False), path, progress=False)
    accepted, seconds, _, said = compiled(path)
    assert accepted, said
    assert seconds < 60
    assert not strange(assumptions(["gelu.within"], tmp_path))
