"""Terms of certificates are data: words are made of them for people, and nothing reads words back."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from safetensors import safe_open

import anchorhead as ah
from anchorhead.certificate import Certificate
from anchorhead.conditions import KINDS
from anchorhead.lab.sweeps import multi_head_sweep
from anchorhead.terms import WORDS, EvenAnchors, Term, added_up, terms_from_json
from anchorhead.verify import verify
from tests.networks import network, row_of, tags
from tests.verify.files import written
from tools.make_golden import GOLDEN, file_name

LAST = sorted(GOLDEN.glob("format-3-words/*.safetensors"))
"""Files of the last version that wrote words."""
OLD = [*sorted(GOLDEN.glob("format-2/*.safetensors")), *LAST]


def stored(path: Path) -> dict[str, Any]:
    """The certificate of a file as it is written there; empty if there is none."""
    with safe_open(path, framework="numpy") as file:
        return json.loads(file.metadata()["anchorhead"])["certificate"] or {}


def one_of_each() -> Iterator[Term]:
    """A term of every kind and of everything, with all that its words need."""
    even = (EvenAnchors((7, 4), (24.75, 24.75)), EvenAnchors((6,), (20.17,), heads=1))
    for kind, some in WORDS.items():
        for place, of in enumerate(some):
            term = Term(kind, 0.1 * (place + 1), of, ("x", "y") if of == "grid" else (), label="{x} and }")
            term = term if kind == "other" else replace(term, label="")
            yield replace(term, anchors=even) if of in ("modulus", "activations") else term


@pytest.mark.parametrize("path", OLD, ids=lambda path: f"{path.parent.name}, {path.stem}")
def test_files_of_before_say_what_they_said(path: Path) -> None:
    """Words and numbers as they are in the file."""
    before, certificate = stored(path), ah.load(str(path)).certificate
    if certificate is None:
        return
    assert isinstance(before["terms"], dict)
    for words, terms in ((before["terms"], certificate.terms), (before["reference"], certificate.reference)):
        assert {str(term): term.amount for term in terms} == words


@pytest.mark.parametrize("path", LAST, ids=lambda path: path.stem)
def test_words_that_name_a_kind_and_nothing_more_are_known_again(path: Path) -> None:
    certificate = ah.load(str(path)).certificate
    assert certificate is not None
    for term in (*certificate.terms, *certificate.reference):
        assert (term.kind == "other") == (" (p = " in str(term) or str(term).startswith("a grid of "))


@pytest.mark.parametrize("path", OLD, ids=lambda path: f"{path.parent.name}, {path.stem}")
def test_a_file_of_before_is_written_as_data_and_comes_back(path: Path, tmp_path: Path) -> None:
    net = ah.load(str(path))
    net.save(tmp_path / "again.safetensors")
    again = ah.load(str(tmp_path / "again.safetensors"))
    assert again.certificate == net.certificate
    assert str(again.certificate) == str(net.certificate)
    if net.certificate is not None:
        assert isinstance(stored(tmp_path / "again.safetensors")["terms"], list)


def test_a_network_that_is_built_says_what_it_said() -> None:
    """The words that the last version with words wrote, for a handful of constructions."""
    folder = GOLDEN / "format-3-words"
    kept = json.loads((folder / "expected.json").read_text())
    assert len(kept) >= 8
    for name in kept:
        before, now = stored(folder / file_name(name)), network(name).certificate
        assert now is not None
        assert [str(term) for term in now.terms] == [*before["terms"]], name
        assert [str(term) for term in now.reference] == [*before["reference"]], name


@pytest.mark.parametrize("term", [*one_of_each()], ids=lambda term: f"{term.kind}, {term.of}")
def test_every_term_comes_back_from_json_and_has_words_of_its_own(term: Term) -> None:
    assert Term.from_json(json.loads(json.dumps(term.to_json(), allow_nan=False))) == term
    assert [str(one) for one in one_of_each()].count(str(term)) == 1
    changed = replace(term, amount=2 * term.amount)
    assert str(changed) == str(term)
    assert changed != term


def test_terms_are_asked_for_by_what_they_are() -> None:
    certificate = network("parts, tokens (float32)").certificate
    assert certificate is not None
    grid, neurons, rounding = certificate.terms
    assert certificate.term("approximation") is grid
    assert certificate.term("approximation", of="neurons") is neurons
    assert certificate.term("rounding") is rounding
    assert certificate.term("found") is None
    assert grid.variables == ("x[0,0]", "x[1,0]")
    assert 0.97 * certificate.bound <= added_up(certificate.terms) <= certificate.bound


GOOD = {"kind": "rounding", "of": "network", "amount": 0.5}


@pytest.mark.parametrize(
    "data",
    [
        {**GOOD, "kind": "rounding, weights as stored included"},
        {**GOOD, "of": "weights"},
        {**GOOD, "of": ["network"]},
        {**GOOD, "amount": -0.5},
        {**GOOD, "amount": True},
        {**GOOD, "amount": "0.5"},
        {**GOOD, "amount": float("nan")},
        {**GOOD, "amount": float("inf")},
        {**GOOD, "words": "trust me"},
        {**GOOD, "label": 3},
        {**GOOD, "variables": "xy"},
        {**GOOD, "variables": [1]},
        {**GOOD, "anchors": [{"sides": [7]}]},
        {**GOOD, "anchors": [{"sides": [0], "betas": [1.0], "heads": None}]},
        {**GOOD, "anchors": [{"sides": [7], "betas": ["1"], "heads": None}]},
        {"kind": "rounding", "amount": 0.5},
        "rounding",
        None,
    ],
)
def test_what_is_no_term_is_refused_with_a_sentence(data: Any) -> None:
    assert terms_from_json([GOOD]) == (Term("rounding", 0.5, "network"),)
    with pytest.raises(ah.AnchorheadError, match=r"term|certificate"):
        terms_from_json([data])


@pytest.mark.parametrize("data", [None, 3, "rounding", {"rounding": "0.5"}, {"rounding": -1.0}])
def test_what_are_no_terms_are_refused_with_a_sentence(data: Any) -> None:
    with pytest.raises(ah.AnchorheadError, match="term"):
        terms_from_json(data)


def test_a_certificate_takes_terms_and_nothing_else() -> None:
    certificate = network("truncated linear, one head (float32)").certificate
    assert certificate is not None
    for terms in ({"rounding": 0.1}, [*certificate.terms], ("rounding",), certificate.reference):
        with pytest.raises(ah.AnchorheadError, match="of a certificate"):
            replace(certificate, terms=terms)
    with pytest.raises(ah.AnchorheadError, match="of a certificate"):
        replace(certificate, reference=certificate.terms)


def _as_before(header: dict[str, Any], arrays: dict[str, np.ndarray]) -> None:
    terms = header["certificate"]["terms"]
    header["certificate"]["terms"] = {f"{one['kind']}, {one['of']}": one["amount"] for one in terms}
    header["certificate"]["reference"] = {}


@pytest.mark.parametrize("name", ["head (float64)", "truncated linear, one head (float32)", "parts (float64)"])
def test_the_verifier_takes_terms_as_they_are_and_as_they_were(name: str, tmp_path: Path) -> None:
    reports = [verify(written(name, tmp_path, change)) for change in (None, _as_before)]
    assert all(report.verified for report in reports), [report.why for report in reports]
    assert reports[0].found == reports[1].found


def _silent(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever asks for the words of a certificate, or of anything in it, is told off."""

    def refuse(self: Any) -> str:
        raise AssertionError("words were asked for")

    for kind in (Term, EvenAnchors, Certificate, *KINDS.values()):
        monkeypatch.setattr(kind, "__str__", refuse)


SPEECHLESS = [
    "head (float64)", "head, uniform (float32)", "truncated linear, many heads (float64)", "grid, uniform (float64)",
    "neurons, uniform (float32)", "two-layer, causal (float64)", "parts, tokens (float32)", "kernel smoother (float64)",
    "learner, direct (float32)", "callable, Lipschitz (float64)", "callable, fitted (float32)",
]  # fmt: skip


@pytest.mark.parametrize("name", SPEECHLESS)
def test_networks_are_built_kept_and_checked_without_a_word(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    expected, row = network(name).certificate, row_of(name)
    _silent(monkeypatch)
    (dtype,) = tags(name) & {"float32", "float64"}
    net = row.build(dtype)
    assert net.certificate == expected
    net.save(tmp_path / "network.safetensors")
    assert ah.load(str(tmp_path / "network.safetensors")).certificate == expected
    if expected is not None and expected.kind == "proven":
        assert ah.check(net, row.function, progress=False).stated == expected.bound


def test_theorems_pictures_and_sweeps_are_made_without_a_word(monkeypatch: pytest.MonkeyPatch) -> None:
    head = ah.head("tanh", on=(-1, 1), anchors=2)
    old = ah.load(str(GOLDEN / "format-2" / "head-float64.safetensors"))
    theorems = [ah.export(one, to="coq", progress=False) for one in (head, old)]
    _silent(monkeypatch)
    assert [ah.export(one, to="coq", progress=False) for one in (head, old)] == theorems
    ah.plot(head)
    ah.plot(old)
    rows = multi_head_sweep([1, 2]).rows
    assert all(0 < row.proven < row.theorem for row in rows)
