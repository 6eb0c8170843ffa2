"""A head as a theorem of Coq: what it is off by in exact arithmetic, stated with its weights and proven by intervals.

    Theorem within : forall x, low <= x <= high -> Rabs (head x - f x) <= eps

The weights are the stored ones, dyadic rationals; eps is what the certificate's bound leaves beside the rounding. The
file stands for itself: `coqc` accepts it with the libraries that CoqInterval brings (Debian: coq, libcoq-interval).
"""

from __future__ import annotations

import math
from fractions import Fraction
from importlib.metadata import version
from importlib.resources import files

from anchorhead.certificate import Certificate
from anchorhead.decimals import counted
from anchorhead.errors import AnchorheadError, CertificateError
from anchorhead.export.coq_erf import Integrals, integrals
from anchorhead.export.coq_pieces import pieces_of
from anchorhead.export.coq_proof import joined, lemma, settings
from anchorhead.export.coq_terms import decimal, dyadic, term
from anchorhead.network import Network
from anchorhead.proof.head import TERMS, target_words
from anchorhead.proof.head_form import HeadForm, head_form
from anchorhead.targets import ScalarTarget
from anchorhead.targets.scalar import KIND

RESOURCES = ("coq_preamble.v", "coq_functions.v")
PREPARE = (
    "unfold expm1, log1p, sigmoid, softplus, Rpower. rewrite ?tanh_by_exp, ?max_by_abs, ?min_by_abs. decide_conditions."
)


def make(network: Network) -> str:
    """The text of the file; refuses with a reason what is no head on a scalar, or has nothing proven."""
    certificate, target = _known(network)
    try:
        form = head_form(network, target.low, target.high)
    except CertificateError as error:
        raise AnchorheadError(f"only heads on a scalar can be exported to Coq: {error}") from error
    alone = target.outputs == 1
    theorems = [
        line
        for output in range(target.outputs)
        for line in _theorem(form, target, output, "" if alone else f"_{output + 1}", error_left(certificate))
    ]
    by_integral = any(integrals(expression.core) for expression in target.expressions)
    resources = [*RESOURCES, "coq_erf.v"] if by_integral else RESOURCES
    parts = [_comment(network, certificate, target, form), _libraries(by_integral), *map(_resource, resources)]
    return "\n".join([*parts, *theorems])


def to_bytes(made: str, network: Network) -> bytes:
    """What a file holds."""
    return made.encode()


def error_left(certificate: Certificate) -> tuple[int, int]:
    """The number with the fewest digits, and of these the largest, from the certified error in exact arithmetic to what
    the bound leaves beside rounding: (digits, exponent), which is digits 10^exponent."""
    exact, rounding = (Fraction(certificate.terms[name]) for name in TERMS)
    most = max(exact, Fraction(certificate.bound) - rounding)
    if most == 0:
        return 0, 0
    exponent = math.floor(math.log10(most)) + 1
    while True:
        digits = math.floor(most / Fraction(10) ** exponent)
        if digits * Fraction(10) ** exponent >= exact:
            return digits, exponent
        exponent -= 1


def _known(network: Network) -> tuple[Certificate, ScalarTarget]:
    """The certificate and the target, as far as Coq can be told of them."""
    certificate, record = network.certificate, network.target
    if certificate is None or record is None:
        raise AnchorheadError("the network has no certificate: a file of Coq states a bound, and there is none")
    if record.kind != KIND or not {*TERMS} <= {*certificate.terms}:
        raise AnchorheadError(
            f"only heads on a scalar can be exported to Coq, as ah.head makes them, of functions that are known: "
            f"this network is for {certificate.target}"
        )
    if certificate.kind != "proven":
        raise AnchorheadError(f"the certificate says {certificate.kind!r}: only proven bounds can be stated in Coq")
    return certificate, ScalarTarget.from_json(record.data)


def _libraries(by_integral: bool) -> str:
    names = ("Coq Require Import Reals List Lra", *(("Coquelicot Require Import Coquelicot",) if by_integral else ()))
    names = (*names, "Interval Require Import Tactic")
    return "\n".join([*(f"From {name}." for name in names), "Import ListNotations.", "Open Scope R_scope.\n"])


def _comment(network: Network, certificate: Certificate, target: ScalarTarget, form: HeadForm) -> str:
    anchors = sum(len(part.slopes) for part in form.parts)
    exact, rounding = (certificate.terms[name] for name in TERMS)
    words = (
        f"{target_words(target)} as attention: {counted(anchors, 'anchor')}, weights as {network.dtype} stores them.",
        f"Certificate: {certificate.bound!r} in all, of which {exact!r} in exact arithmetic and {rounding!r} rounding.",
        "What is proven here is the part in exact arithmetic, for every real x of the interval.",
        f"Written by anchorhead {version('anchorhead')}. coqc on this file checks it (Debian: coq, libcoq-interval).",
    )
    return "\n".join(f"(* {line.replace('(*', '( *').replace('*)', '* )')} *)" for line in words) + "\n"


def _theorem(form: HeadForm, target: ScalarTarget, output: int, suffix: str, eps: tuple[int, int]) -> list[str]:
    """Definitions, lemmas and the theorem of one output."""
    head, function = f"head{suffix}", f"f{suffix}"
    parts = [
        f"Definition {head}_part_{number} : list anchor := [\n  "
        + ";\n  ".join(
            f"({dyadic(float(a))}, {dyadic(float(b))}, {dyadic(float(v))})"
            for a, b, v in zip(part.slopes, part.offsets, part.values[:, output], strict=True)
        )
        + "\n].\n"
        for number, part in enumerate(form.parts, start=1)
    ]
    s = "x" if form.origin == 0 else f"(x - {dyadic(form.origin)})"
    means = [f"mean {head}_part_{number + 1} {s}" for number in range(len(form.parts))]
    bias = [dyadic(float(form.bias[output]))] if form.bias[output] else []
    claim = f"Rabs ({head} x - {function} x) <= {decimal(*eps)}"
    error = eps[0] * 10.0 ** eps[1]
    expression = target.expressions[output].core
    erf = Integrals.of(expression, target.variable, target.low, target.high, error)
    pieces = pieces_of(form, output, target.low, target.high, (*target.kinks, *erf.cuts), error)
    lemmas = [(f"piece{suffix}_{number}", piece) for number, piece in enumerate(pieces, start=1)]
    return [
        *parts,
        f"Definition {head} (x : R) : R := {' + '.join([*means, *bias])}.\n",
        f"Definition {function} (x : R) : R := {term(expression)}.\n",
        *erf.lemmas(),
        *(
            lemma(
                name,
                claim,
                piece,
                form,
                (head, function),
                settings(form, output, piece, error),
                f"{erf.tactic(piece.low, piece.high)} {PREPARE}",
            )
            for name, piece in lemmas
        ),
        f"Theorem within{suffix} : forall x, {dyadic(target.low)} <= x <= {dyadic(target.high)} -> {claim}.",
        joined(lemmas),
    ]


def _resource(name: str) -> str:
    return files("anchorhead.export").joinpath(name).read_text()
