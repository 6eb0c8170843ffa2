"""The theorems in coq/ are about the networks that the library builds, and none of them is left unproven."""

import re
from pathlib import Path

import numpy as np
import pytest

import anchorhead as ah
from tools import coq
from tools.coq_files import missing

COQ = Path(__file__).parents[2] / "coq"
LOW, HIGH, TOKENS = -1.5, 2.0, 6


def attention(logits, values):
    weights = np.exp(logits - logits.max(axis=-1, keepdims=True))
    return (weights * values).sum(axis=-1) / weights.sum(axis=-1)


def score(beta, s, anchors):
    """`score` of SingleHead.v: the query (s, 1) against the key (2 beta L, -beta L^2)."""
    return s[..., None] * 2 * beta * anchors - beta * anchors**2


def single_head(p, a, b, beta, s):
    """`single_head` of SingleHead.v."""
    anchors = a + np.arange(p) * (b - a) / (p - 1)
    return attention(score(beta, s, anchors), anchors)


def multi_head(n, heads, a, b, beta, s):
    """`multi_head` of MultiHead.v."""
    cell, total = (b - a) / ((n - 2) * heads), 0.0
    for h in range(heads):
        position = a + cell * h * (n - 2) + cell * (np.arange(n) - 0.5)
        carried = position.copy()
        carried[0], carried[-1] = (a if h == 0 else 0.0), (b if h == heads - 1 else 0.0)
        total = total + attention(score(beta, s, position), carried)
    return total


def centred_multi_head(n, heads, a, b, beta, s):
    """`centred_multi_head` of MultiHeadTheorem.v."""
    middle = (a + b) / 2
    return middle + multi_head(n, heads, a - middle, b - middle, beta, s - middle)


@pytest.fixture(scope="module")
def problem():
    """Linear functions, one a token, inputs, and pre-activations on both sides of both ends of the range."""
    rng = np.random.default_rng(0)
    w, t, x = rng.normal(size=(TOKENS, 3)), rng.normal(size=TOKENS), rng.uniform(-1, 1, size=(500, TOKENS, 3))
    s = (w * x).sum(axis=-1) + t
    assert s.min() < LOW
    assert s.max() > HIGH
    return w, t, x, s


@pytest.mark.parametrize("c", [0.7, 1.0, 2.72])
def test_the_single_head_of_the_theorem_is_the_one_that_is_built(problem, c):
    w, t, x, s = problem
    spacing = (HIGH - LOW) / 8
    network = ah.truncated_linear(w, t, LOW, HIGH, anchors=9, sharpness=c / spacing**2)
    built = network(x, outside="ignore")[..., 0]
    assert np.abs(built - single_head(9, LOW, HIGH, c / spacing**2, s)).max() < 1e-13
    q = np.exp(-c)
    softmax_term = 2 * q * (2 - q) / (1 - q) ** 2
    bound = {
        0.7: (HIGH - LOW) / 9 + max(-LOW, HIGH) * softmax_term / 8,  # single_head_theorem
        1.0: (HIGH - LOW) / 9,  # single_head_moderate
        2.72: 0.063 * spacing,  # single_head_063
    }[c]
    assert np.abs(built - np.clip(s, LOW, HIGH)).max() <= bound


@pytest.mark.parametrize("heads", [1, 3])
def test_the_heads_of_the_theorem_are_those_that_are_built(problem, heads):
    w, t, x, s = problem
    cell = (HIGH - LOW) / ((TOKENS - 2) * heads)
    beta = 3.0 / cell**2
    network = ah.truncated_linear(w, t, LOW, HIGH, heads=heads, sharpness=beta)
    built = network(x, outside="ignore")[..., 0]
    assert np.abs(built - centred_multi_head(TOKENS, heads, LOW, HIGH, beta, s)).max() < 1e-13
    r = np.exp(-6.0)
    leakage = 2 * r * (2 - r) / (1 - r) ** 2
    bound = cell + (HIGH - LOW) / 2 * leakage  # centred_multi_head_sharp
    assert np.abs(built - np.clip(s, LOW, HIGH)).max() <= bound


def test_every_file_is_compiled_and_nothing_is_admitted():
    listed = [line for line in (COQ / "_CoqProject").read_text().splitlines() if line.endswith(".v")]
    assert sorted(listed) == sorted(path.name for path in COQ.glob("*.v"))
    for name in listed:
        text = (COQ / name).read_text()
        assert not re.search(r"\b(Admitted|admit|Axiom|Axioms|Parameter|Parameters|Conjecture)\b\s*[.:(\w]", text), name
        for tactic in re.findall(r"\binterval\b[^.;]*", re.sub(r"\(\*.*?\*\)", "", text, flags=re.S)):
            assert "i_prec" in tactic, f"{name}: {tactic}"  # without it, machine floats would be trusted


@pytest.mark.slow
@pytest.mark.skipif(bool(missing()), reason=f"not installed: {', '.join(missing())}")
def test_the_library_rests_on_the_axioms_of_the_reals_and_machine_integers(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(coq, "OUT", tmp_path)
    theorems = coq.library()
    assert "Anchorhead.Layers.universal_approximation" in theorems
    assert coq.resting_on(theorems, tmp_path / "library", "-Q", ".", "Anchorhead")
    assert "ClassicalDedekindReals.sig_forall_dec" in capsys.readouterr().out
