"""The verifier broken in one place: some claim about it then fails. What nobody would notice, nobody has tested."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import anchorhead.verify.attention as attention
import anchorhead.verify.certificate as certificate
import anchorhead.verify.claims as claims
import anchorhead.verify.constant as constant
import anchorhead.verify.expressions as expressions
import anchorhead.verify.forms as forms
import anchorhead.verify.functions as functions
import anchorhead.verify.grammar as grammar
import anchorhead.verify.readings as readings
import anchorhead.verify.rounding as rounding
import anchorhead.verify.scalar as scalar
import anchorhead.verify.verifier as verifier
import anchorhead.verify.walk as walk

from . import adversary
from .files import report
from .test_tampered_files_are_refused import DEEP, REFUSED, TWO

Noticed = Callable[[Path], bool]
"""Whether a claim of the other tests fails."""


def _refused(what: str) -> Noticed:
    """A file that must be refused is accepted."""
    return lambda folder: report(REFUSED[what][0], folder, REFUSED[what][1]).verified


def _head(name: str) -> Noticed:
    """A bound on a head is exceeded, or says nothing any more."""
    return lambda _: not adversary.head_holds(name)


def _no_longer_verified(name: str) -> Noticed:
    return lambda folder: not report(name, folder).verified


@dataclass(frozen=True)
class Mutation:
    """module.name replaced by make(what was there); for a class, owner is the class."""

    owner: Any
    name: str
    make: Callable[[Any], Any]
    noticed: Noticed


def _zero_error(form: forms.Forms) -> forms.Forms:
    nothing = np.zeros(form.shape)
    return forms.Forms(form.ids, form.coefficients, form.constant, nothing, nothing)


MUTATIONS: dict[str, Mutation] = {
    "rounding: exp is exact": Mutation(
        rounding.Arithmetic, "exp_error", lambda _: property(lambda self: 0.0), _head("tanh, float32")
    ),
    "rounding: logits are exact": Mutation(
        scalar, "dot_error", lambda f: lambda *a: 0 * f(*a), _head("logistic, float32")
    ),
    "rounding: the largest logit is taken off exactly": Mutation(
        scalar,
        "softmax_log_error",
        lambda f: lambda error, gap, model: f(error, 0 * gap, model),
        _head("logistic, float32"),
    ),
    "rounding: sums are exact": Mutation(
        rounding.Arithmetic, "gamma", lambda _: lambda self, n: 0.0 * np.asarray(n), _head("logistic, float32")
    ),
    "rounding: products are exact": Mutation(
        rounding,
        "dot_error",
        lambda f: lambda products, exact, count, result, model: f(products, products, count, result, model),
        lambda _: not all(adversary.dot_holds("float32", seed) for seed in range(40)),
    ),
    "rounding: additions are exact": Mutation(
        rounding,
        "dot_error",
        lambda f: lambda products, exact, count, result, model: f(products, exact, 0 * count, result, model),
        lambda _: not all(adversary.dot_holds("float32", seed) for seed in range(40)),
    ),
    "scalar head: no remainder": Mutation(
        scalar,
        "coefficient",
        lambda f: lambda series, n: f(series, n) * 0 if n == scalar.ORDER else f(series, n),
        _head("ramp, float32"),
    ),
    "scalar head: no polynomial": Mutation(
        scalar._Proof,
        "_bounds",
        lambda f: lambda self, cells: f(self, [replace(cell, coefficients=0 * cell.coefficients) for cell in cells]),
        _head("kink, float32"),
    ),
    "series: a function is half of what it is": Mutation(
        expressions.SERIES, "tanh", lambda f: lambda a: f(a) / 2, _head("tanh, float32")
    ),
    "functions: the slope of the middle": Mutation(
        functions._Search,
        "_on",
        lambda f: lambda self, a, b, middle: ((f(self, middle, middle, middle))[0], f(self, a, b, middle)[1]),
        lambda _: not adversary.behaviour_holds("x**3 - x", -1.3, 1.1),
    ),
    "functions: turns are forgotten": Mutation(
        functions,
        "range_on",
        lambda f: lambda e, known, low, high: f(e, replace(known, turns=()), low, high),
        lambda _: not adversary.behaviour_holds("sin(5*x)", -1.3, 1.1),
    ),
    "constant softmax: errors of values are forgotten": Mutation(
        constant,
        "mapped",
        lambda f: lambda weight, bias, x, *more: f(weight, bias, _zero_error(x), *more),
        lambda _: not adversary.constant_softmax_holds(2),
    ),
    "constant softmax: rounding is forgotten": Mutation(
        constant,
        "softmax_read_error",
        lambda f: lambda *a: (0 * f(*a)[0], f(*a)[1]),
        lambda _: not adversary.constant_softmax_holds(5),
    ),
    "readings: masks are not minded": Mutation(
        attention,
        "seen",
        lambda f: lambda layer, *more: f(replace(layer, mask=None), *more),
        _refused("a mask"),
    ),
    "readings: a causal mask is not minded": Mutation(
        attention,
        "seen",
        lambda f: lambda layer, *more: f(replace(layer, mask=None), *more),
        _refused("a causal mask"),
    ),
    "readings: a grid is not minded": Mutation(
        attention,
        "seen",
        lambda f: lambda layer, *more: f(replace(layer, grid=None), *more),
        _refused("fewer keys by a grid"),
    ),
    "readings: whatever is below the largest is silent": Mutation(
        readings, "silent", lambda f: lambda part, *more: part.offsets < part.offsets.max(), _no_longer_verified(TWO)
    ),
    "claims: arguments are what they should be": Mutation(
        claims.Claims, "_argument_error", lambda f: lambda self, *a: (0.0, 0.0), _refused("an input's weight, a little")
    ),
    "claims: heads have no error": Mutation(
        claims,
        "prove",
        lambda f: lambda *a: replace(f(*a), total=0.0, approximation=0.0),
        _refused("a value"),
    ),
    "walk: errors alone are compared": Mutation(
        verifier,
        "compared",
        lambda f: lambda found, exact: replace_constant(replace_coefficients(f(found, exact))),
        _refused("what neurons give"),
    ),
    "walk: constants need not agree": Mutation(
        verifier,
        "compared",
        lambda f: lambda found, exact: replace_constant(f(found, exact)),
        _refused("a bias of the last map"),
    ),
    "walk: biases are forgotten": Mutation(
        walk, "after_linear", lambda f: lambda c, layer, tokens: f(c, replace(layer, bias=None), tokens),
        _no_longer_verified(DEEP),
    ),
    "certificate: any dtype will do": Mutation(
        verifier, "_check_fit", lambda f: lambda n, p, c: f(n, p, replace(c, dtype=n.dtype)), _refused("another dtype")
    ),
    "certificate: any terms do": Mutation(certificate, "_consistent", lambda f: lambda *a: None, _refused("terms")),
    "certificate: the program's box is the one": Mutation(
        verifier,
        "read_certificate",
        lambda f: lambda stored, shape: halved(f(stored, shape)),
        _refused("a larger box in the program too"),
    ),
    "certificate: conditions are not read": Mutation(
        verifier, "require_only", lambda f: lambda *a: None, _refused("an unknown condition")
    ),
    "grammar: what is not known is left out": Mutation(
        grammar, "_FIELDS", lambda fields: {**fields, "Attention": (*fields["Attention"], "temperature")},
        _refused("something more"),
    ),
}  # fmt: skip


def replace_coefficients(form: forms.Forms) -> forms.Forms:
    return forms.Forms(form.ids, 0 * form.coefficients, *form.arrays[1:])


def replace_constant(form: forms.Forms) -> forms.Forms:
    return forms.Forms(form.ids, form.coefficients, 0 * form.constant, *form.arrays[2:])


def halved(found: certificate.Certificate) -> certificate.Certificate:
    return replace(found, high=found.high / 1.5)


@pytest.mark.parametrize("name", MUTATIONS)
def test_a_broken_verifier_is_noticed(name: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    mutation = MUTATIONS[name]
    functions.behaviour.cache_clear()
    assert not mutation.noticed(tmp_path), "nothing is broken yet"
    if isinstance(mutation.owner, dict):
        monkeypatch.setitem(mutation.owner, mutation.name, mutation.make(mutation.owner[mutation.name]))
    else:
        monkeypatch.setattr(mutation.owner, mutation.name, mutation.make(getattr(mutation.owner, mutation.name)))
    functions.behaviour.cache_clear()
    noticed = mutation.noticed(tmp_path)
    functions.behaviour.cache_clear()
    assert noticed
